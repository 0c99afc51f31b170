"""Single causes and the weighing of all of them, on code made by hand: what no recorded kernel shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_code import made
from recorded_data import ReadRecorded

from gemmprof import metrics
from gemmprof.analysis.explanation import explain
from gemmprof.analysis.explanation.candidate import LATENCY, SPECIFIC, Candidate
from gemmprof.analysis.explanation.causes.arithmetic import non_fused_arithmetic
from gemmprof.analysis.explanation.engine import weigh
from gemmprof.analysis.explanation.prediction import Prediction, Predictor
from gemmprof.analysis.explanation.time_model import Mend, TimeModel
from gemmprof.analysis.explanation.work import Work, work


class TestNotFused:
    def test_a_product_and_the_sum_that_uses_it(self) -> None:
        (found,) = non_fused_arithmetic(made("FMUL R2, R0, R1 ;", "FADD R3, R2, R4 ;", "EXIT ;"))
        assert found.blamed is not None and list(np.flatnonzero(found.blamed)) == [1]

    @pytest.mark.parametrize("sum_", ["FADD R3, R2, R2 ;", "FADD R3, R2, -R2 ;", "FADD R3, |R2|, R2 ;"])
    def test_a_product_that_is_both_summands_is_none(self, sum_: str) -> None:
        assert list(non_fused_arithmetic(made("FMUL R2, R0, R1 ;", sum_, "EXIT ;"))) == []


class Told(Predictor):
    """A predictor that was told what each candidate saves."""

    def __init__(self, found: Work, predictions: dict[str, Prediction]) -> None:
        super().__init__(TimeModel(found))
        self._predictions = predictions

    def quick(self, mend: Mend) -> float:
        return 1.0

    def predict(self, candidate: Candidate) -> Prediction:
        return self._predictions[candidate.cause]


class TestWeighing:
    def weighed(
        self, candidates: tuple[Candidate, ...], *predictions: tuple[float, float, float]
    ) -> list[tuple[str, Prediction]]:
        found = made("EXIT ;")
        found.once("candidates", lambda: candidates)
        told = {one.cause: Prediction(*numbers) for one, numbers in zip(candidates, predictions, strict=True)}
        return [(one.cause, prediction) for one, prediction in weigh(found, Told(found, told))]

    def test_a_follower_keeps_its_saving_within_its_interval(self) -> None:
        lead = Candidate("specific", Mend(), "", rank=SPECIFIC)
        follower = Candidate("general", Mend(), "", rank=LATENCY, follows=True)
        (_, _), (cause, general) = self.weighed((lead, follower), (0.7, 0.6, 0.8), (0.79, 0.75, 0.85))
        assert cause == "general" and general.saves == 0.7
        assert general.low <= general.saves <= general.high

    def test_a_general_name_steps_behind_a_specific_one_that_explains_the_same(self) -> None:
        lead = Candidate("specific", Mend(), "", rank=SPECIFIC)
        behind = Candidate("general", Mend(), "", rank=LATENCY)
        assert [cause for cause, _ in self.weighed((lead, behind), (0.3, 0.2, 0.4), (0.5, 0.4, 0.6))] == [
            "specific"
        ]
        assert [cause for cause, _ in self.weighed((lead, behind), (0.2, 0.1, 0.3), (0.5, 0.4, 0.6))] == [
            "general",
            "specific",
        ]

    def test_no_more_than_a_reader_takes_in(self) -> None:
        many = tuple(Candidate(str(number), Mend(), "") for number in range(12))
        found = self.weighed(many, *((0.01 * (1 + number), 0.0, 1.0) for number in range(12)))
        assert [cause for cause, _ in found] == [str(number) for number in reversed(range(4, 12))]


def test_samples_that_nobody_summed_up_are_counted(recorded: ReadRecorded) -> None:
    whole = next(p for p in recorded("ladder_simple", source=True) if p.function_name == "gemm_shared")
    kept = {name: value for name, value in whole.metrics.items() if name != metrics.SAMPLE_COUNT}
    instances = {name: value for name, value in whole.instances.items() if name != metrics.SAMPLE_COUNT}
    without = replace(whole, metrics=kept, instances=instances)
    assert work(without).sample_count == work(whole).sample_count > 0
    assert explain(without).trust == explain(whole).trust
