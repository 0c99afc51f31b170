"""The gate, the pairs and the reasons on records made by hand: what no recorded pair of collections shows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gemmprof.analysis.comparison import sides
from gemmprof.analysis.comparison.code import Code
from gemmprof.analysis.comparison.conditions import Condition
from gemmprof.analysis.comparison.gate import GateResult, check
from gemmprof.analysis.comparison.matching import chosen, match, rungs
from gemmprof.analysis.comparison.outcome import Outcome, compare_matches
from gemmprof.analysis.comparison.quantify import Measures
from gemmprof.analysis.comparison.reasons import reasons
from gemmprof.analysis.comparison.records import KernelRecord, Origin, Range, Times
from gemmprof.analysis.comparison.sides import Side
from gemmprof.errors import UsageError

METRIC = "sm__made_up.sum"


def record(
    name: str = "kernel(float *)",
    *,
    nanoseconds: tuple[tuple[float, ...], ...] = ((1000.0,),),
    metrics: Mapping[str, tuple[float, float, float]] | None = None,
    measures: Mapping[str, float] | None = None,
    code: Code | None = None,
    key: tuple[str, ...] | None = None,
) -> KernelRecord:
    """A kernel whose metrics are (middle, low, high), with the durations of each of its processes."""
    return KernelRecord(
        name=name,
        label=name.partition("(")[0],
        grid=(1, 1, 1),
        block=(32, 1, 1),
        key=key or (name, "1x1x1", "32x1x1"),
        launches=sum(map(len, nanoseconds)),
        times=tuple(Times(values) for values in nanoseconds),
        origin=Origin(),
        code=code,
        metrics={metric: Range(*values) for metric, values in (metrics or {}).items()},
        measures=Measures(measures or {}),
    )


def side(*records: KernelRecord, stages: bool = False) -> Side:
    return Side("made", records, stages=stages)


def compared(before: KernelRecord, after: KernelRecord) -> Outcome:
    return compare_matches(match(side(before), side(after)))


def gate(before: KernelRecord, after: KernelRecord, *conditions: str) -> GateResult:
    return check(compared(before, after), [Condition.parse(text) for text in conditions])


class TestGate:
    @pytest.mark.parametrize("condition", [f"{METRIC} > +5%", f"{METRIC} > +5"])
    def test_ranges_that_overlap_are_not_decided_from_nothing_either(self, condition: str) -> None:
        before = record(metrics={METRIC: (0.0, 0.0, 100.0)})
        after = record(metrics={METRIC: (50.0, 0.0, 100.0)})
        found = gate(before, after, condition)
        assert found.holds and len(found.undecided) == 1

    def test_a_rise_from_nothing_is_beyond_any_per_cent(self) -> None:
        before, after = (record(metrics={METRIC: (value, value, value)}) for value in (0.0, 1.0))
        assert not gate(before, after, f"{METRIC} > +500%").holds
        assert gate(before, before, f"{METRIC} > +0%").holds

    @pytest.mark.parametrize("text", ["registers > 3%", "cycles < 40%", "local_memory > 1%"])
    def test_a_share_of_what_is_no_share_is_refused_with_what_was_meant(self, text: str) -> None:
        with pytest.raises(UsageError, match="no per cent") as refused:
            Condition.parse(text)
        name, compare, value = text.split()
        assert any(f"'{name} {compare} +{value}'" in remedy for remedy in refused.value.remedies)

    def test_a_share_of_what_is_one_is_a_value(self) -> None:
        condition = Condition.parse("achieved_occupancy < 40%")
        assert not condition.difference and not condition.relative and condition.value == 40

    def test_a_gate_speaks_where_every_kernel_is_gone(self) -> None:
        outcome = compare_matches(match(side(record("a"), record("b")), Side("after", ())))
        found = check(outcome, [Condition.parse("time > +3%")])
        assert not found.holds and {item.condition for item in found.broken} == {"gone"}


class TestNotes:
    def test_launches_of_several_reports_are_not_one_launch(self) -> None:
        several = ((1000.0,), (1010.0,), (990.0,))
        (one,) = compared(record(nanoseconds=several), record(nanoseconds=several)).kernels
        assert "one launch a side" not in one.note
        assert (
            "one launch a report: how far launches of one process differ is the noise of its class"
            in one.note
        )

    def test_one_launch_of_each_is(self) -> None:
        (one,) = compared(record(), record()).kernels
        assert "one launch a side" in one.note


class TestSides:
    def test_the_middle_of_three_processes_is_their_median_in_any_order(self) -> None:
        def process(middle: float) -> list[KernelRecord]:
            return [record(metrics={METRIC: (middle, middle - 1, middle + 1)})]

        for order in ((1.0, 2.0, 100.0), (100.0, 1.0, 2.0), (2.0, 100.0, 1.0)):
            (one,) = sides._merged([process(value) for value in order])
            assert one.metrics[METRIC] == Range(2.0, 0.0, 101.0)
            assert one.launches == len(one.times) == 3

    def test_a_metric_that_one_process_lacks_is_of_the_others(self) -> None:
        (one,) = sides._merged([[record()], [record(metrics={METRIC: (5.0, 4.0, 6.0)})]])
        assert one.metrics[METRIC] == Range(5.0, 4.0, 6.0)


class TestPairs:
    @pytest.mark.parametrize("selector", ["²", "①", "5²"])
    def test_a_digit_that_is_no_number_is_a_part_of_a_name(self, selector: str) -> None:
        for stages in (False, True):
            with pytest.raises(UsageError, match="matches nothing"):
                chosen(side(record(), stages=stages), selector)

    def test_stages_of_two_types_are_told_apart(self) -> None:
        problems = ("1024x1024x1024", "1024x1024x1024-bfloat16", "2048x2048x2048-float16")
        run = side(
            *(record(f"stage 1, {problem}", key=("stage", "1", problem)) for problem in problems), stages=True
        )
        for selector, problem in (("1@1024", problems[0]), ("1@1024-bfloat16", problems[1])):
            assert chosen(run, selector).key[2] == problem
        # Where the type goes without saying, the shape alone tells.
        assert chosen(run, "1@2048").key[2] == problems[2]
        with pytest.raises(UsageError, match="matches nothing"):
            chosen(run, "1@4096")

    def test_names_that_begin_with_an_underscore_are_no_ladder(self) -> None:
        assert rungs(side(record("_softmax(float *)"), record("_layer_norm(float *)"))) == ()
        assert len(rungs(side(record("_gemm_naive(float *)"), record("_gemm_tiled(float *)")))) == 1


class TestReasons:
    def test_local_accesses_that_nobody_counted_are_not_none(self) -> None:
        before = record(code=Code("a"))
        after = record(code=Code("b"), measures={"local_accesses": 50.0})
        texts = " ".join(reason.text for reason in reasons(before, after))
        assert "the machine code differs" in texts and "local memory" not in texts
        counted = record(code=Code("a"), measures={"local_accesses": 0.0})
        assert "local memory accesses 0 → 50" in reasons(counted, after)[0].text
