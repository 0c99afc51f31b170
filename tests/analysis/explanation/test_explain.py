"""What `explain` says of kernels with a planted flaw, of sound ones, and of reports that hold little."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from recorded_data import DATA, ROOT, ReadRecorded, one_launch, studies_of, study_reports
from scale import inputs

from gemmprof import metrics
from gemmprof.analysis.explanation.causes import CAUSES, definition
from gemmprof.analysis.explanation.code.flow import program
from gemmprof.analysis.explanation.code.live import live_registers
from gemmprof.analysis.explanation.demands.resources import loads
from gemmprof.analysis.explanation.demands.rounds import with_counts
from gemmprof.analysis.explanation.demands.time_model import NOTHING, Fix, TimeModel
from gemmprof.analysis.explanation.demands.work import work
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.explanation.levers import is_debug_build
from gemmprof.analysis.explanation.prediction import FLOOR
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.analysis.opcodes import opcode_of
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.whole.spans import idle_share
from gemmprof.cli import main
from gemmprof.gpu.arch import LIMITS, WARP
from gemmprof.model import NOTABLE, Explanation, Finding, KernelProfile, MetricValue
from gemmprof.runs.directory import load_recorded_run


class Asked(dict[str, MetricValue]):
    """Metrics that remember which of them were asked for."""

    def __init__(self, metrics: Mapping[str, MetricValue]) -> None:
        super().__init__(metrics)
        self.names: dict[str, None] = {}

    def get(self, name: str, default: Any = None) -> Any:
        self.names[name] = None
        return super().get(name, default)


def launch(recorded: ReadRecorded, report: str, function: str, number: int = 0) -> KernelProfile:
    return [p for p in recorded(report, source=True) if p.function_name == function][number]


def first(explanation: Explanation) -> Finding:
    return explanation.findings[0]


@pytest.mark.parametrize(
    ("report", "function", "number", "cause", "line"),
    [
        ("ladder_simple", "gemm_naive", 0, "uncoalesced_access", 8),
        ("ladder_simple", "gemm_coalesced", 0, "redundant_loads", None),
        ("ladder_simple", "gemm_shared", 0, "shared_memory_bandwidth", None),
        ("flaws_bank_conflicts", "conflict_load", 3, "shared_bank_conflicts", None),
        ("flaws_global_access", "strided_load", 0, "uncoalesced_access", 17),
        ("flaws_global_access", "aos_mass", 0, "uncoalesced_access", 29),
        ("flaws_atomics", "global_histogram", 0, "global_atomics", None),
        ("flaws_atomics", "global_tickets", 0, "global_atomics", 12),
        ("flaws_atomics", "shared_cas_max", 0, "shared_atomics", None),
        ("flaws_divergence", "divergent_branches", 0, "branch_divergence", None),
        ("flaws_spills", "spilled_registers", 0, "local_memory", 14),
        ("flaws_spills", "local_array", 0, "local_memory", None),
        ("flaws_other_memory", "divergent_constants", 0, "constant_divergence", None),
        ("flaws_async_copy", "matrix_load", 1, "shared_bank_conflicts", None),
    ],
)
def test_the_planted_flaw_comes_first(
    recorded: ReadRecorded, report: str, function: str, number: int, cause: str, line: int | None
) -> None:
    found = first(explain(launch(recorded, report, function, number)))
    assert found.cause == cause
    assert found.saves_low <= found.saves <= found.saves_high
    assert found.change.endswith(".") and found.evidence
    if line is not None:
        assert found.places[0].line == line


def test_spills_and_arrays_are_told_apart(recorded: ReadRecorded) -> None:
    assert "spills" in first(explain(launch(recorded, "flaws_spills", "spilled_registers"))).change
    assert (
        "array indexed at run time" in first(explain(launch(recorded, "flaws_spills", "local_array"))).change
    )


def test_misalignment_is_not_uncoalesced(recorded: ReadRecorded) -> None:
    causes = [f.cause for f in explain(launch(recorded, "flaws_global_access", "misaligned_copy")).findings]
    assert "uncoalesced_access" not in causes
    assert "narrow_access" not in causes, "a vector begins at a multiple of its width"


def test_every_report_reads_well(recorded: ReadRecorded, report_name: str) -> None:
    for profile in recorded(report_name, source=True):
        explanation = explain(profile)
        losses = [finding for finding in explanation.findings if not finding.another_way_to]
        saves = [finding.saves for finding in losses]
        kept = [one.saves for one in losses if one.cause not in ("narrow_access", "expensive_math")]
        assert kept == sorted(kept, reverse=True)
        for finding in explanation.findings:
            assert finding.cause in CAUSES
            assert 0.0 <= finding.saves_low <= finding.saves <= finding.saves_high <= 1.0
            assert finding.change.endswith(".") and "  " not in finding.change and "nan" not in finding.change
            assert sum(place.share for place in finding.places) <= 1.0 + 1e-6
        if explanation.together is not None:
            assert max(saves) - 1e-9 <= explanation.together < 1.0
        assert not (explanation.findings and explanation.at_limit)
        for sentence in explanation.trust:
            assert sentence.endswith((".", ")."))


@pytest.mark.parametrize(
    ("of", "name", "cause", "behind"),
    [
        # Fast functions save more, but not the same results: what computes those comes first.
        ("blind11", "hits_shaded_in_the_order_of_pixels", "branch_divergence", "expensive_math"),
        ("blind17", "gravity_survey_of_140_blocks_of_1024", "tail_effect", "expensive_math"),
        # Four results a thread have wide accesses either way: that they share their loads is what is wrong.
        ("variants", "depthwise_conv_3x3", "redundant_loads", "narrow_access"),
        ("blind2", "gqa_scores_head_each", "redundant_loads", "narrow_access"),
        # A row of 32 elements leaves no lane of its warp idle.
        ("blind16", "candidates_ranked_again_by_blocks_of_32", "low_occupancy", "idle_threads"),
        # More warps are another way to loads in flight, and these to equal shares of the work.
        ("blind4", "triangular_product_in_chunks", "workload_imbalance", "low_occupancy"),
        # Warps wait for those whose atomics meet.
        ("blind15", "wave_power_shared_atomics_on_few_lengths", "shared_atomics", "workload_imbalance"),
    ],
)
def test_what_is_wrong_stands_before_what_saves_as_much_otherwise(
    of: str, name: str, cause: str, behind: str
) -> None:
    folder = DATA / of / "h100"
    kernel = studies_of(folder)[name]["kernel"]
    found = explain(one_launch(study_reports(folder) / kernel["report"], kernel["launch"]))
    causes = [one.cause for one in found.findings if one.cause in (cause, behind)]
    assert causes == [cause, behind] and found.findings[0].cause == cause


def test_what_cannot_be_told_from_nothing_is_not_said(recorded: ReadRecorded, report_name: str) -> None:
    for profile in recorded(report_name, source=True):
        for finding in explain(profile).findings:
            assert finding.saves > FLOOR
            assert finding.cause != "launch_overhead"


@pytest.mark.parametrize(
    ("part", "function", "refuted"),
    [
        ("part3", "ema", {"narrow_access"}),  # a filter over time, of too few threads already
        (
            "part7",
            "embedding_block",
            {"redundant_loads"},
        ),  # one index a block serves neighbours, its rows do not
        ("part3", "deposit_shared", {"branch_divergence"}),  # its threads go round a compare-and-swap again
        ("part6", "thomas", {"cache_locality"}),  # read again for what each request touches beyond its bytes
    ],
)
def test_what_a_study_plainly_is_not(part: str, function: str, refuted: set[str]) -> None:
    reports = study_reports(DATA / "variants" / "h200")
    found = one_launch(reports / f"{part}.ncu-rep", lambda one: one.function_name == function)
    causes = {finding.cause for finding in explain(found).findings}
    assert not causes & refuted


def test_a_list_is_followed_one_element_at_a_time(recorded: ReadRecorded) -> None:
    """More blocks, or more loads in flight, would wait for the element before as well."""
    causes = {one.cause for one in explain(launch(recorded, "flaws_occupancy", "tiny_grid")).findings}
    assert not causes & {"small_grid", "memory_latency", "redundant_loads", "instruction_latency"}


def test_equal_shares_of_a_grid_are_not_uneven(recorded: ReadRecorded) -> None:
    histogram = launch(recorded, "flaws_atomics", "shared_histogram")
    assert 1.1 < work(histogram).imbalance < 1.2
    assert "workload_imbalance" not in {one.cause for one in explain(histogram).findings}


def test_sums_of_a_triangle_divide_by_its_blocks_and_are_uneven() -> None:
    """A row takes from all before it, 32 rows a block: each SM has one block, the last one twice the average work."""
    mixing = one_launch(
        study_reports(DATA / "variants" / "h200") / "part2.ncu-rep",
        lambda one: one.function_name == "causal_mix",
    )
    assert work(mixing).imbalance > 1.9
    assert "workload_imbalance" in {one.cause for one in explain(mixing).findings}


def test_a_debug_build_is_said_once_and_nothing_else(recorded: ReadRecorded) -> None:
    good = launch(recorded, "ladder_simple", "gemm_naive")
    code = good.source.instructions
    # nvcc -G moves each value through registers of its own: of every instruction's result another one.
    copied = [replace(one, sass="MOV R4, R5") if at % 3 == 1 else one for at, one in enumerate(code)]
    slow = replace(good, source=replace(good.source, instructions=tuple(copied)))
    assert explain(good).findings and not explain(good).levers
    found = explain(slow)
    assert not found.findings and found.at_limit is None
    assert len(found.levers) == 1 and "-G" in found.levers[0]

    # What fills up the last line says nothing of what compiled the rest.
    filled = [*copied, *(replace(code[-1], sass="NOP") for _ in copied)]
    assert is_debug_build(replace(good, source=replace(good.source, instructions=tuple(filled))))

    # Nor does what was not disassembled.
    unread = [*copied, *(replace(code[-1], sass="") for _ in 4 * copied)]
    assert is_debug_build(replace(good, source=replace(good.source, instructions=tuple(unread))))

    # Predicates in place of branches are an optimiser's.
    chosen = [replace(one, sass=f"@P0 {one.sass}") if at % 9 == 2 else one for at, one in enumerate(copied)]
    assert not is_debug_build(replace(good, source=replace(good.source, instructions=tuple(chosen))))


def test_a_recorded_debug_build_is_said_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """``nvcc -G`` with everything collected: nothing is missing, and nothing else is to be said."""
    report = DATA / "phases" / "h200" / "debug_build.ncu-rep.xz"
    assert all(is_debug_build(profile) for profile in read_report(report))
    assert main(["explain", str(report), "--all"]) == 0
    told = capsys.readouterr().out
    assert told.count("A debug build") == 2 and "Too little" not in told
    assert not any(map(is_debug_build, read_report(DATA / "phases" / "h200" / "host_reads.ncu-rep.xz")))


def test_nothing_but_other_memory_helps_what_waits_for_the_host() -> None:
    """Wider accesses and more of them under way wait for the same link."""
    of_the_host, own = read_report(DATA / "phases" / "h200" / "host_reads.ncu-rep.xz")
    findings = explain(of_the_host).findings
    assert [one.cause for one in findings] == ["memory_latency"]
    assert findings[0].variants[0].name == "memory of the GPU" and findings[0].saves > 0.8
    assert explain(own).findings[0].cause == "narrow_access"


def test_what_starts_and_ends_is_not_cut_into_more_blocks(recorded: ReadRecorded) -> None:
    """Of 3.2 microseconds no SM works for more than half: other blocks would not make the launch shorter."""
    loss = next(one for one in recorded("train_100", source=False) if "nll_loss_backward" in one.name)
    assert work(loss).idle_start > 0.5 and not explain(loss).findings


def test_registers_that_are_needed_at_once_are_no_limit_to_be_lifted() -> None:
    """240 registers leave room for one block; the sums of its tile lie in them."""
    kernel = one_launch(ROOT / "gemmprof" / "recorded" / "reports" / "profile-03.ncu-rep.xz", 3)
    assert not any(one.cause == "low_occupancy" for one in explain(kernel).findings)


def test_no_recorded_code_is_called_a_debug_build(recorded: ReadRecorded, report_name: str) -> None:
    assert not any(map(is_debug_build, recorded(report_name, source=True)))


def test_multiprocessors_without_a_block_are_not_idle_time(recorded: ReadRecorded) -> None:
    tiny = launch(recorded, "flaws_occupancy", "tiny_grid")
    assert tiny.launch.blocks == 1
    average_alone = replace(
        tiny, metrics={k: v for k, v in tiny.metrics.items() if k != metrics.ACTIVE_CYCLES_MAX}
    )
    for idle in (lambda profile: work(profile).idle_start, idle_share):
        assert idle(average_alone) == pytest.approx(idle(tiny), abs=0.02)
    # Of a launch of a second, with as many cycles, others work where the average one does not.
    second = {metrics.DURATION: 1e9, metrics.SM_ELAPSED_CYCLES_MAX: 1.8e9, metrics.ELAPSED_CYCLES: 1.8e9}
    assert idle_share(replace(average_alone, metrics=average_alone.metrics | second)) < 1e-5


def test_a_sparse_report_gives_no_guess_but_the_options(recorded: ReadRecorded) -> None:
    for profile in recorded("partial_two_metrics", source=True):
        explanation = explain(profile)
        assert not explanation.findings and explanation.at_limit is None
        assert any("ncu --set full brings it" in sentence for sentence in explanation.trust)


def test_lines_need_line_information(recorded: ReadRecorded) -> None:
    naive = launch(recorded, "partial_no_lineinfo", "gemm_naive")
    explanation = explain(naive)
    # What compiles it says how: nvcc, Numba, or nobody here for torch's own kernels.
    for name, how in (
        (naive.name, " Compile with -lineinfo to see lines."),
        ("cudapy::__main__::gemm(Array<float, 1, C>)", " Use @cuda.jit(lineinfo=True) to see lines."),
        ("void at::native::reduce_kernel<512>(float *)", ""),
    ):
        assert (
            f"No line information: places are instructions.{how}" in explain(replace(naive, name=name)).trust
        )
    place = first(explanation).places[0]
    assert place.file is None and place.line is None and place.sass.startswith("LDG")


@pytest.mark.parametrize(
    ("options", "held"),
    [
        ("", True),
        ("--clock-control=base", True),
        ("--clock-control base", True),
        ("--clock-control none", False),
    ],
)
def test_clocks_that_ncu_held_are_told(recorded: ReadRecorded, options: str, held: bool) -> None:
    profile = launch(recorded, "ladder_simple", "gemm_shared")
    session = replace(profile.session, command_line=f"ncu {options} --set full ./app --clock-control base")
    explanation = explain(replace(profile, session=session))
    assert any("held the clocks" in sentence for sentence in explanation.trust) is held


def test_a_value_above_its_peak_is_remarked_on(recorded: ReadRecorded) -> None:
    profile = launch(recorded, "ladder_simple", "gemm_shared")
    name = metrics.BUSY["l1_data"][0]
    explanation = explain(replace(profile, metrics={**profile.metrics, name: 196.0}))
    assert any("196 % of its peak" in sentence for sentence in explanation.trust)


def test_the_model_is_exact_for_the_launch_as_measured(recorded: ReadRecorded, report_name: str) -> None:
    for profile in recorded(report_name, source=True):
        found = work(profile)
        model = TimeModel(found)
        if profile.workload == "kernel" and found.elapsed and model.known:
            assert model.time(NOTHING) == pytest.approx(1.0, abs=0.02)
            assert model.time(Fix(warps=2.0)) <= model.time(NOTHING) + 1e-9


def test_a_counter_below_nothing_counts_as_absent(recorded: ReadRecorded) -> None:
    whole = launch(recorded, "ladder_simple", "gemm_shared")
    asked = Asked(whole.metrics)
    explain(replace(whole, metrics=asked))
    numbers = [name for name in asked.names if isinstance(whole.metrics.get(name), (int, float))]
    assert len(numbers) > 50
    for name in numbers[:: inputs(6, 1)]:
        found = explain(replace(whole, metrics={**whole.metrics, name: -1.0}))
        for finding in found.findings:
            assert 0 <= finding.saves_low <= finding.saves <= finding.saves_high <= 1, name
            assert all(item.value >= 0 for item in finding.evidence), name


OF_CAUSES = {
    "uncoalesced_access": r"LD|ST|ATOM|RED|TEX|SU|UBLKCP",
    "narrow_access": r"LD|ST",
    "cache_locality": r"LD|ST|U",
    "constant_divergence": r"LDC",
    "shared_bank_conflicts": r"LD|ST|ATOMS",
    "global_atomics": r"ATOM|RED|MEMBAR|ERRBAR|CCTL|FENCE",
}
"""What stands at the places of a cause."""
TRITON_S = r"\bprograms?\b|BLOCK_|\btl\.(?:load|dot|sum|constexpr|float)|num_warps|num_stages|libdevice"
CUDA_S = r"float4|__[a-z]+\(|cuda::|-maxrregcount|blockDim"


def test_no_statement_contradicts_its_report(recorded: ReadRecorded, report_name: str) -> None:
    """Its numbers are possible on the GPU, its places are instructions of its kind, its words the language's."""
    for profile in recorded(report_name, source=True):
        made, limits = explain(profile), LIMITS.get(profile.device.compute_capability)
        foreign = {"triton": CUDA_S, "own": TRITON_S}.get(owner_of(profile).key, "(?!)")
        # What is at its limit was counted so.
        counted = {load.resource.title: load.share * work(profile).imbalance for load in loads(profile)}
        if made.at_limit is not None and made.at_limit.resource in counted:
            assert counted[made.at_limit.resource] > 0.99 * made.at_limit.share, made.at_limit
        for one in (*made.findings, *made.other_arithmetic):
            assert 0.0 <= one.saves_low <= one.saves <= one.saves_high <= 1.0
            lanes = re.findall(r"([\d.]+) (?:of 32 are active|addresses at once)", one.change)
            assert all(float(number) <= WARP for number in lanes), one.change
            idle = re.findall(r"leaves? (-?[\d,]+) of ([\d,]+) (?:SMs|schedulers)", one.change)
            assert all(0 < int(some.replace(",", "")) <= int(of.replace(",", "")) for some, of in idle), (
                one.change
            )
            # Registers that hold what is needed at once cannot be fewer.
            for now in re.findall(r"fewer registers a thread \((\d+) now", one.change):
                assert max(live_registers(program(profile.source.instructions))) < int(now), one.change
            # What fits L2 is not read from DRAM again.
            for times in re.findall(r"([\d,.]+) times what all blocks load was read", one.change):
                read = profile.number(metrics.DRAM_READ_BYTES[0]) or 0.0
                assert read / float(times.replace(",", "")) > 0.9 * (profile.device.l2_bytes or 0), one.change
            # Loads that hardly any instruction is are no reason.
            if "of the loads that as many" in one.change:
                counts = with_counts(profile)
                asks = counts.where(lambda line: line.is_load or line.opcode == "LDGSTS")
                assert counts.executed[asks].sum() > 0.01 * counts.executed.sum(), one.change
            warps = re.findall(r"where (\d+) would fit", one.change)
            assert limits is None or all(int(number) <= limits.max_warps_per_sm for number in warps), (
                one.change
            )
            assert not re.search(foreign, one.change) and "|" not in one.change, one.change
            kinds = OF_CAUSES.get(one.cause, "") if one.saves >= NOTABLE else ""
            assert all(re.match(kinds, opcode_of(place.sass)) for place in one.places), (
                one.cause,
                one.places,
            )


def test_every_cause_says_what_mended_means() -> None:
    for cause in CAUSES:
        assert "fixed" in definition(cause).lower(), cause


def test_the_fastest_stage_has_nothing_cheap_left() -> None:
    run = load_recorded_run()
    report = run.report_path(next(r.report for r in run.results if r.report is not None))
    profile = one_launch(report, lambda one: "fastest" in one.function_name)
    started = time.process_time()
    explanation = explain(profile)
    assert time.process_time() - started < 5.0
    assert all(f.cause in ("tensor_cores_idle",) or f.saves < 0.06 for f in explanation.findings)
