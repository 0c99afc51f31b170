"""Kernels with tensor copies and warps of different roles: what no load asked for stays, and roles are no flaw."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from made_code import made
from recorded_data import EXAMPLES

from gemmprof import metrics
from gemmprof.analysis.explanation.causes.access import uncoalesced_access
from gemmprof.analysis.explanation.causes.barriers import barriers
from gemmprof.analysis.explanation.causes.threads import branch_divergence
from gemmprof.analysis.explanation.demands.time_model import Fix, TimeModel
from gemmprof.analysis.explanation.demands.traffic import traffic
from gemmprof.analysis.explanation.demands.work import Work, elected, specialised, tensor_copies, work
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.reading.report import read_report
from gemmprof.model import Explanation, KernelProfile


@cache
def launches(name: str) -> tuple[KernelProfile, ...]:
    return read_report(EXAMPLES / f"{name}.ncu-rep.xz")


def cutlass() -> KernelProfile:
    return launches("gemm_cutlass")[1]


def attention() -> tuple[KernelProfile, KernelProfile]:
    forward, backward = (one for one in launches("transformer") if "flash" in one.name)
    return forward, backward


def causes(explanation: Explanation) -> list[str]:
    return [finding.cause for finding in explanation.findings]


class TestCutlass:
    def test_what_tensor_copies_bring_stays_when_stores_are_coalesced(self) -> None:
        found = work(cutlass())
        flows = traffic(found)
        assert flows.asked == 0 and flows.copied == flows.missed > 0
        (store,) = uncoalesced_access(found)
        for key in ("l2_to_l1", "l2_out"):
            assert store.fix.resources[key] == pytest.approx(1.0)
        # Its epilogue is a thirtieth of the traffic: not the 13 % of the time that all of the operands would be.
        model = TimeModel(found)
        assert model.saves(replace(store.fix, stalled=0.0)) < 0.02
        # Stores of two bytes a lane in quarter sectors do hold all of its warps behind each tile.
        assert 0.04 < store.fix.stalled < model.saves(store.fix) + 1e-9 < 0.08

    def test_producers_that_leave_early_are_no_imbalance(self) -> None:
        found = work(cutlass())
        assert specialised(found) and "workload_imbalance" not in causes(explain(cutlass()))

    def test_one_elected_thread_does_not_diverge(self) -> None:
        found = work(cutlass())
        assert elected(found).any()
        for candidate in branch_divergence(found):
            assert candidate.attributed is not None and not candidate.attributed[elected(found)].any()
        assert "branch_divergence" not in causes(explain(cutlass()))

    def test_wgmmas_in_series_are_named_where_they_wait(self) -> None:
        finding = next(one for one in explain(cutlass()).findings if one.cause == "instruction_latency")
        assert "C7510" in finding.change and "WARPGROUP.DEPBAR" in finding.places[0].sass
        assert finding.evidence[0].value == pytest.approx(1.0, abs=0.05)  # a wait for each

    def test_wgmmas_in_groups_are_not(self) -> None:
        for profile in launches("transformer"):
            assert not any("C7510" in finding.change for finding in explain(profile).findings)


class TestAttention:
    @pytest.mark.parametrize("which", [0, 1])
    def test_a_barrier_is_not_the_wait_for_wgmma(self, which: int) -> None:
        found = work(attention()[which])
        waits = found.samples["barrier"]
        for_wgmma = np.array([line.opcode == "WARPGROUP" for line in found.sass])
        assert waits[for_wgmma].any()
        (candidate,) = barriers(found)
        steps = candidate.attributed[for_wgmma & (waits > 0)]
        assert not steps.any()
        # What is not a wait at a barrier stays: the factor on the state cannot fall below its share.
        assert candidate.fix.reasons["barrier"] > float(waits[for_wgmma].sum() / waits.sum())

    @pytest.mark.parametrize("which", [0, 1])
    def test_roles_are_no_imbalance_of_warps(self, which: int) -> None:
        for finding in explain(attention()[which]).findings:
            assert "times as many warps could be resident" not in finding.change


class TestLaunchingOfBlocks:
    def test_is_known_from_ordinary_reports(self) -> None:
        """One block of 256 stores of two bytes a cycle: more work a thread, not more chains of arithmetic."""
        fill = launches("gemm_cutlass")[0]
        assert fill.number(metrics.SM_ELAPSED_CYCLES_MAX) is None
        found = explain(fill)
        assert found.limit is not None and found.limit.resource == "launching of blocks"
        assert causes(found)[0] == "narrow_access"


class TestPeaks:
    def launch(self) -> Work:
        counted = {
            metrics.ELAPSED_CYCLES: 1000.0,
            metrics.SM_ACTIVE_CYCLES: 1000.0,
            metrics.ACTIVE_CYCLES_MAX: 1000.0,
            metrics.SM_COUNT: 10.0,
            metrics.BUSY["tensor"][0]: 94.0,
            metrics.BUSY["l2_out"][0]: 80.0,
            metrics.BUSY["l1_data"][0]: 80.0,
        }
        return made("EXIT ;", counted=counted)

    def test_nothing_saves_more_than_the_busiest_unit_leaves(self) -> None:
        model = TimeModel(self.launch())
        gone = Fix(resources={"l2_out": 0.0, "l1_data": 0.0})
        assert model.saves(gone) == pytest.approx(0.06)  # the tensor cores were counted busy for 94 %
        assert model.saves(Fix(resources={"tensor": 0.0})) > 0.06


def test_no_copies_no_elected_thread() -> None:
    found = made("@P0 LDG.E R2, [R4.64] ;", "EXIT ;")
    assert not tensor_copies(found).any() and not elected(found).any() and not specialised(found)


def test_a_place_without_lines_is_a_stretch_of_code() -> None:
    """torch's kernels have no lines: the weight of neighbouring instructions is said together, by the heaviest."""
    norm = next(one for one in launches("transformer") if "vectorized_layer_norm" in one.name)
    for finding in explain(norm).findings:
        shares = [place.share for place in finding.places]
        assert not shares or (shares[0] > 0.3 and finding.places[0].line is None)
