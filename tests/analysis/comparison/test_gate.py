"""The gate, the pairs and the reasons on records made by hand: what no recorded pair of collections shows."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from gemmprof.analysis.comparison import sides
from gemmprof.analysis.comparison.gate import GateResult, Waiver, check
from gemmprof.analysis.comparison.judgement import FALSE_DISCOVERY_RATE, Batch, estimate, judge, usual_noise
from gemmprof.analysis.comparison.outcome import Outcome, compare_matches
from gemmprof.analysis.comparison.reasons import changed_counters, reasons
from gemmprof.analysis.comparison.records import (
    Code,
    KernelRecord,
    Measures,
    Origin,
    Range,
    Times,
    batches,
    code_of,
    likeness,
)
from gemmprof.analysis.comparison.sides import ALIKE, Side, chosen, match, rungs
from gemmprof.base.errors import UsageError
from gemmprof.reports.sentences import gate_lines

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
    return check(compared(before, after), conditions)


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

    def test_conditions_are_joined(self) -> None:
        before, after = (
            record(metrics={METRIC: (value,) * 3}, measures={"registers": 40}) for value in (1.0, 9.0)
        )
        for text, holds in (
            (f"{METRIC} > +5 and registers > 39", False),
            (f"{METRIC} > +5 and registers > 40", True),
            (f"{METRIC} > +9 or not registers > 40", False),
            (f"kernel ~ 'kern' and {METRIC} > +5", False),
            (f"kernel !~ 'kern' and {METRIC} > +5", True),
            ("kernel ~ 'other' and time > +3%", True),
        ):
            assert gate(before, after, text).holds is holds, text
        waived = check(
            compared(before, after),
            [f"{METRIC} > +5 and registers > 39"],
            waivers=[Waiver("kernel", "agreed", datetime.date.max, METRIC)],
        )
        assert waived.holds and waived.broken[0].condition == f"{METRIC} > +5 and registers > 39"

    def test_what_is_undecided_stays_so_unless_the_rest_decides(self) -> None:
        before, after = record(nanoseconds=((100.0,),)), record(nanoseconds=((104.0,),))
        assert len(gate(before, after, "time > +3% and time > 0").undecided) == 1
        assert not gate(before, after, "time > +3% or time > 0").holds
        assert not gate(before, after, "time > +3% and time > 1s").undecided

    @pytest.mark.parametrize(("met", "unmet"), [("90ns", "110ns"), ("0.09us", "0.11us"), ("0.09", "0.11")])
    def test_a_time_has_a_unit_or_is_in_microseconds(self, met: str, unmet: str) -> None:
        one = record(nanoseconds=((100.0,),))
        assert not gate(one, one, f"time > {met}").holds and gate(one, one, f"time > {unmet}").holds

    def test_a_gate_speaks_where_every_kernel_is_gone(self) -> None:
        outcome = compare_matches(match(side(record("a"), record("b")), Side("after", ())))
        found = check(outcome, ["time > +3%"])
        assert not found.holds and {item.condition for item in found.broken} == {"gone"}

    def test_a_finding_is_new_where_the_earlier_side_was_looked_at_and_had_none(self) -> None:
        looked = replace(record(), rules=("Rule",))
        found = replace(looked, findings=("Rule",))
        assert not gate(looked, found, "+Rule").holds and not gate(found, found, "Rule").holds
        assert gate(found, found, "+Rule").holds and gate(found, looked, "Rule").holds

    def test_what_cannot_be_told_is_not_decided_however_large(self) -> None:
        before, after = record(nanoseconds=((100.0,),)), record(nanoseconds=((104.0,),))
        found = gate(before, after, "time > +3%")
        assert found.holds and [text.split(":")[1] for _, text in found.undecided] == [
            " CAN'T TELL whether it is > +3 %"
        ]
        assert found.checked == 0
        assert gate(before, after, "time > +3%", "time > 0").checked == 1

    def test_a_small_rise_that_is_sure_is_slower(self) -> None:
        sure = ((1e7,) * 20, (1e7,) * 20, (1e7,) * 20)
        slower = tuple(tuple(1.006 * time for time in times) for times in sure)
        (one,) = compare_matches(
            match(side(record(nanoseconds=sure)), side(record(nanoseconds=slower))), margin=0.001
        ).kernels
        assert one.verdict == "slower"

    def test_local_accesses_that_nobody_counted_are_those_of_the_code(self) -> None:
        code = Code("a", 9, {"LDL": 1, "LDL.64": 2, "STL.128": 3, "STG.E": 3})
        held = gate(record(), record(code=code), "local_memory > 5", "spills > 6")
        assert [item.text for item in held.broken] == ["local_accesses is 6 (local_memory > 5)"]


class TestNotes:
    def test_launches_of_several_reports_are_not_one_launch(self) -> None:
        several = ((1000.0,), (1010.0,), (990.0,))
        (one,) = compared(record(nanoseconds=several), record(nanoseconds=several)).kernels
        assert "one launch a side" not in one.note
        assert (
            "one launch a report: how far launches of a process differ is what is usual for kernels of about 1.00 µs"
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


INSTRUCTIONS = "smsp__inst_executed.sum"
TRAFFIC = "lts__t_sectors.sum"


def same_work(**more: object) -> dict[str, object]:
    """What two records have in common whose code and counters are the same."""
    return {"code": Code("a"), "metrics": {INSTRUCTIONS: (1e6, 1e6, 1e6)}, **more}


def with_clocks(of: KernelRecord, hz: float, cycles: float) -> KernelRecord:
    times = tuple(replace(one, sm_hz=(hz,) * one.count, cycles=(cycles,) * one.count) for one in of.times)
    return replace(of, times=times)


class TestVerdicts:
    def test_what_would_have_shown_is_found_nineteen_times_of_twenty(self) -> None:
        noise = usual_noise().of(1e6)
        times = [Batch.of_times([1e6 * (1 + 0.001 * n) for n in range(8)])]
        one = estimate(times, times, noise)
        (judged,) = judge([one])
        width = one.noise.quantile(FALSE_DISCOVERY_RATE)
        least = math.log1p(judged.detectable)
        # A slowdown of that size is missed where the noise takes it back below the width: 5 % on one side.
        assert one.noise.tail(least - width) / 2 == pytest.approx(0.05, rel=1e-4)

    def test_a_clock_of_32_ns_is_told_by_multiples_of_it(self) -> None:
        coarse, fine = (
            batches(record(nanoseconds=(times,)), False) for times in ((3200.0, 3232.0), (3200.0, 3233.0))
        )
        assert coarse[0].step == pytest.approx(0.01, rel=0.02) and fine[0].step == 0

    def test_five_unchanged_kernels_that_moved_widen_every_interval(self) -> None:
        def outcome(controls: int) -> Outcome:
            names = [f"kernel_{n}(int)" for n in range(controls)]
            before = side(*(record(name, nanoseconds=((1e5,) * 6,), **same_work()) for name in names))
            after = side(*(record(name, nanoseconds=((1.3e5,) * 6,), **same_work()) for name in names))
            return compare_matches(match(before, after))

        assert any("moved" in note for note in outcome(5).notes)
        assert not any("moved" in note for note in outcome(4).notes)

    def test_time_that_moved_with_the_clock_is_the_same(self) -> None:
        def judged(hz: float, cycles: float) -> tuple[str, str]:
            before = with_clocks(record(nanoseconds=((1e5,) * 9,), **same_work()), 2e9, 2e5)
            after = with_clocks(record(nanoseconds=((1.1e5,) * 9,), **same_work()), hz, cycles)
            (one,) = compared(before, after).kernels
            return one.verdict, one.note

        assert judged(1.8e9, 2e5)[0] == "same" and "SM clock (−10.0 %)" in judged(1.8e9, 2e5)[1]
        # More cycles, or the same clock: then it is not the clock.
        assert judged(1.8e9, 2.1e5)[0] == judged(2e9, 2e5)[0] == "unclear"

    def test_a_change_that_the_clock_made_is_not_the_codes(self) -> None:
        def judged(hz: float, cycles: float) -> tuple[str, str]:
            before = with_clocks(record(nanoseconds=((1e5,) * 9,), code=Code("a")), 2e9, 2e5)
            after = with_clocks(record(nanoseconds=((1.02e5,) * 9,), code=Code("b")), hz, cycles)
            (one,) = compared(before, after).kernels
            return one.verdict, one.note

        assert (
            judged(1.96e9, 2e5)[0] == "unclear"
            and "moved with the SM clock (−2.0 %)" in judged(1.96e9, 2e5)[1]
        )
        # More cycles, or the same clock: then it is not the clock.
        assert judged(1.96e9, 2.03e5)[0] == judged(2e9, 2.04e5)[0] == judged(2e9, 2e5)[0] == "slower"

    def test_sides_that_ncu_was_run_for_otherwise_compare_only_where_both_were_timed(self) -> None:
        timed = (Times(timed=(1e-3, 1e-3, 1e-3), repetitions=9),)
        one = replace(record(), origin=Origin(clock_control="base"))
        other = replace(record(), origin=Origin(clock_control="none"))
        assert compared(replace(one, times=timed), replace(other, times=timed)).kernels
        for two in ((one, other), (replace(one, times=timed), other), (one, replace(other, times=timed))):
            with pytest.raises(UsageError, match="clock control"):
                compared(*two)


class TestCounters:
    @pytest.mark.parametrize(
        ("after", "launches", "differs"),
        [(1.12e6, 3, True), (1.10e6, 3, False), (1.12e6, 1, False), (1.26e6, 1, True)],
    )
    def test_amounts_behind_l1_may_differ_by_a_tenth_and_of_few_launches_by_two(
        self, after: float, launches: int, differs: bool
    ) -> None:
        times = ((1000.0,) * launches,)
        sides = [
            record(nanoseconds=times, metrics={INSTRUCTIONS: (5.0, 5.0, 5.0), TRAFFIC: (value, value, value)})
            for value in (1e6, after)
        ]
        found = changed_counters(*sides)
        assert found is not None and bool(found) is differs

    def test_small_amounts_are_left_over_from_other_work(self) -> None:
        before = record(metrics={INSTRUCTIONS: (5.0, 5.0, 5.0), TRAFFIC: (1000.0,) * 3})
        after = record(metrics={INSTRUCTIONS: (5.0, 5.0, 5.0), TRAFFIC: (5000.0,) * 3})
        assert changed_counters(before, after) == []
        assert changed_counters(record(), record()) is None

    def test_instructions_are_named_before_traffic(self) -> None:
        before = record(metrics={INSTRUCTIONS: (100.0,) * 3, TRAFFIC: (1e6,) * 3})
        after = record(metrics={INSTRUCTIONS: (101.0,) * 3, TRAFFIC: (9e6,) * 3})
        (reason,) = reasons(before, after)
        assert reason.kind == "counters" and reason.text.index("+1.0 %") < reason.text.index("+800.0 %")

    def test_clocks_that_differ_and_that_drift(self) -> None:
        steady = with_clocks(record(), 2e9, 1.0)
        assert reasons(steady, with_clocks(record(), 2.009e9, 1.0)) == ()
        (reason,) = reasons(steady, with_clocks(record(), 2.02e9, 1.0))
        assert reason.text == "SM clock 2,000 → 2,020 MHz (+1.0 %)"
        drifting = replace(steady, times=(replace(steady.times[0], sm_hz=(1.96e9, 2e9, 2.04e9)),))
        (reason,) = reasons(steady, drifting)
        assert reason.text == "SM clock moved between 1,960 and 2,040 MHz after"


def test_code_that_was_not_disassembled_is_counted_and_not_named() -> None:
    """Of an older chip's code the disassembler writes question marks."""
    before, after = code_of("a", ("???",) * 9), code_of("b", ("???",) * 5)
    assert (before.instructions, after.instructions) == (9, 5) and likeness(before, after) == 0.0
    (reason,) = reasons(record(code=before), record(code=after))
    assert "instructions 9 → 5" in reason.text and "?" not in reason.text and "opcodes" not in reason.text


class TestRenamed:
    ALIKE = tuple(f"OP{n} R1, R2 ;" for n in range(100))

    def test_like_code_of_the_same_grid_under_another_name(self) -> None:
        first, second = code_of("a", self.ALIKE), code_of("b", (*self.ALIKE[:95], "NOP ;"))
        assert likeness(first, first) == 1.0 and 0.75 < likeness(first, second) < 1.0
        kernels = (
            [record("one(int)", code=first), record("stays(int)")],
            [record("two(int)", code=second), record("stays(int)")],
        )
        found = match(side(*kernels[0]), side(*kernels[1]))
        assert [pair.how for pair in found] == ["name", "renamed"]
        # In another grid a likeness of 0.75 is not enough: kernels of one library are so much alike.
        elsewhere = replace(kernels[1][0], grid=(2, 1, 1), code=code_of("b", (*self.ALIKE[:90], "NOP ;")))
        assert [pair.how for pair in match(side(*kernels[0]), side(elsewhere, kernels[1][1]))] == ["name"] * 3
        nearly = replace(elsewhere, code=second)
        assert [pair.how for pair in match(side(*kernels[0]), side(nearly, kernels[1][1]))] == [
            "name",
            "renamed",
        ]

    def test_one_name_in_another_grid_or_block_is_compared(self) -> None:
        def launched(name: str, grid: int, block: int, launches: int = 3) -> KernelRecord:
            key = (name, f"{grid}x1x1", f"{block}x1x1", "0", "")
            found = record(name, key=key, nanoseconds=((100.0,) * launches,))
            return replace(found, grid=(grid, 1, 1), block=(block, 1, 1))

        before = side(
            *(launched("tile<8>(int)", grid, 128) for grid in (4, 8)), launched("stays(int)", 1, 32)
        )
        after = side(*(launched("tile<8>(int)", grid, 256) for grid in (2, 4)), launched("stays(int)", 1, 32))
        pairs = [pair for pair in match(before, after) if pair.how == "launch"]
        assert [
            (pair.before.grid[0], pair.after.grid[0]) for pair in pairs if pair.before and pair.after
        ] == [
            (4, 4),
            (8, 2),
        ]
        others = side(launched("tile<16>(int)", 2, 256), launched("other<8>(int)", 2, 256), before.kernels[2])
        assert [pair.how for pair in match(side(*before.kernels[:1], before.kernels[2]), others)] == [
            "name",
            "renamed",
            "name",
        ]
        found = compare_matches(pairs)
        assert "launched otherwise: block 128x1x1 → 256x1x1" in found.kernels[0].note

    def test_other_code_is_another_kernel(self) -> None:
        stays = record("stays(int)")
        old = record("one(int)", code=code_of("a", self.ALIKE))
        new = record("two(int)", code=code_of("b", self.ALIKE[:50]))
        assert [pair.how for pair in match(side(old, stays), side(new, stays))] == ["name"] * 3
        assert [pair.before is None for pair in match(side(old, stays), side(new, stays))] == [
            False,
            False,
            True,
        ]

    def test_a_tail_of_the_code_is_not_the_code(self) -> None:
        whole = code_of("a", self.ALIKE * 4)
        assert likeness(whole, code_of("b", self.ALIKE * 2)) == pytest.approx(0.5, abs=0.05)

    def test_the_most_alike_are_paired(self) -> None:
        gone = record("old(int)", code=code_of("a", self.ALIKE))
        near = record("near(int)", code=code_of("b", self.ALIKE[:97]))
        far = record("far(int)", code=code_of("c", self.ALIKE[:92]))
        assert far.code is not None and likeness(gone.code, far.code) > ALIKE
        found = match(side(gone, record("stays(int)")), side(far, near, record("stays(int)")))
        assert [pair.label for pair in found if pair.how == "renamed"] == ["old → near"]


class TestWaivers:
    def test_the_last_day_counts_and_another_condition_does_not(self) -> None:
        day = datetime.date(2027, 3, 31)
        before, after = (record(metrics={METRIC: (value,) * 3}) for value in (1.0, 9.0))
        outcome = compared(before, after)
        condition = [f"{METRIC} > +0"]
        for name, today, holds in (
            ("", day, True),
            (METRIC, day, True),
            ("time", day, False),
            ("", day + datetime.timedelta(1), False),
        ):
            waiver = Waiver("kernel", "agreed", day, name)
            found = check(outcome, condition, waivers=[waiver], today=today)
            assert found.holds is holds and bool(found.expired) is (today > day)
            if found.expired:
                assert ("warning", "the waiver for kernel ended on 2027-03-31: agreed", None) in gate_lines(
                    found
                )

    def test_cannot_tell_alone_breaks_where_it_must_not_stand(self) -> None:
        one = compared(record(nanoseconds=((1e5,) * 9,)), record(nanoseconds=((1e5,) * 9,)))
        assert [kernel.verdict for kernel in one.kernels] == ["same"]
        assert check(one, [], fail_unclear=True).holds
