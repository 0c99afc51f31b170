"""The comparison of two sides: pairs, verdicts, reasons, and what could not be compared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

from gemmprof.analysis.comparison import judgement as statistics
from gemmprof.analysis.comparison.baseline import Control
from gemmprof.analysis.comparison.judgement import usual_noise
from gemmprof.analysis.comparison.reasons import (
    Reason,
    changed_counters,
    clock_change,
    reasons,
    same_code,
    what_changed,
)
from gemmprof.analysis.comparison.records import Change, KernelRecord, Measures, batches, changes_between
from gemmprof.analysis.comparison.sides import Match, Side, disassembled, of_launches
from gemmprof.analysis.comparison.sides import match as paired
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.base.amounts import brief, dimensions, signed_percent
from gemmprof.base.errors import UsageError
from gemmprof.base.views import Shown
from gemmprof.model import FamilyKey, Timing

Verdict = Literal["same", "faster", "slower", "unclear", "new", "gone"]
RANK: tuple[Verdict, ...] = ("slower", "gone", "faster", "new", "unclear", "same")  # what a reader sees first

CONTROLS = 5  # so many kernels with the same code and counters tell how much the machine changed
WORK_WITHIN = 0.02  # kernels whose multiply-adds differ by more did not compute the same product
TOLD = 5  # so many of the kernels that changed most are explained on both sides, which takes a second each
ACROSS = ("card", "clocks", "set")  # what may be compared although it differs, where the user asks for it


@dataclass(frozen=True, slots=True)
class Compared:
    """One kernel, or one that has no counterpart."""

    match: Match  # the two sides of it
    verdict: Verdict  # of the four, or ``new`` or ``gone``
    judgement: statistics.Judgement | None = None  # the statistics behind it; None without times of both
    reasons: tuple[Reason, ...] = ()  # what differs
    said: str = ""  # what the change was in the words of findings, and what became of their predictions; '' if nothing
    note: str = ""  # what else a reader has to know about the verdict, '' if nothing
    timed: bool = False  # True if the times are those without the profiler
    noise: str = ""  # name of the class that the verdict leans on
    # change of the elapsed cycles, after/before - 1: the change with the clock taken out; None if unknown
    cycles: float | None = None
    code_same: bool | None = None  # whether the machine code is the same; None if unknown
    counters_same: bool | None = None  # whether the counters are the same; None if unknown

    def __repr__(self) -> str:
        change = self.slower_percent
        moved = "" if change is None else f"time {signed_percent(change)}"
        return brief(self, self.match.title, self.verdict, moved)

    @property
    def label(self) -> str:
        """Name for people (untrusted text)."""
        return self.match.title

    @property
    def slower_percent(self) -> float | None:
        """The change of time in per cent (negative: faster); None without a time on both sides."""
        return None if self.judgement is None else 100.0 * self.judgement.change

    @property
    def record(self) -> KernelRecord:
        """The later side where there is one."""
        found = self.match.after or self.match.before
        assert found is not None
        return found

    @property
    def changed(self) -> list[str]:
        """Kinds of reasons, in the order of the reasons."""
        return list(dict.fromkeys(reason.kind for reason in self.reasons))

    @property
    def seconds(self) -> tuple[float | None, float | None]:
        """The times before and after that the verdict's change is of; without a verdict the middle of what there is."""
        if self.judgement is not None:
            return self.judgement.before, self.judgement.after
        before, after = self.match.before, self.match.after
        return None if before is None else before.seconds, None if after is None else after.seconds

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every quantity of the two kernels, in reading order; () without two. The times are those of the verdict."""
        sides = [
            _with_all_launches(record, None if self.timed else seconds)
            for record, seconds in zip(self.match.both or (), self.seconds, strict=False)
        ]
        return changes_between(*sides) if sides else ()

    @property
    def time(self) -> Change | None:
        """The median time where both sides were timed, else the duration under ncu; None if neither is on both."""
        found = (self.change("time"), self.change("duration"))
        return next((change for change in found if change is not None and change.ratio is not None), None)

    @property
    def caution(self) -> str:
        """Why the quantities need care ('' if they do not): another GPU, another amount of work."""
        before, after = self.match.before, self.match.after
        if before is None or after is None:
            return ""
        found = []
        if before.origin.device != after.origin.device:
            devices = f"{before.origin.device} and {after.origin.device}"
            found.append(f"They ran on different devices ({devices}).")
        work = [record.measures.values.get("ffma") for record in (before, after)]
        if work[0] and work[1] and abs(work[0] - work[1]) > WORK_WITHIN * max(work[0], work[1]):
            found.append("They did different amounts of work: compare ratios, not totals.")
        return " ".join(found)

    def change(self, name: str) -> Change | None:
        """The quantity with this name, or None."""
        return next((change for change in self.changes if change.name == name), None)

    def ranked(self, verdict: str) -> tuple[Change, ...]:
        """Quantities that became ``better`` or ``worse``, the largest change first."""
        chosen = [change for change in self.changes if change.verdict == verdict]
        return tuple(sorted(chosen, key=lambda change: change.magnitude, reverse=True))


def _with_all_launches(record: KernelRecord, seconds: float | None) -> Measures:
    """The quantities of the middle launch, time and cycles those of all its launches, as the verdict has them."""
    values = dict(record.measures.values)
    if "duration" in values and seconds is not None:
        values["duration"] = statistics.as_measured(seconds * 1e9)
    cycles = _cycles(record)
    if "elapsed_cycles" in values and cycles is not None:
        values["elapsed_cycles"] = statistics.as_measured(math.exp(cycles))
    return replace(record.measures, values=values)


@dataclass(frozen=True, slots=True)
class Outcome(Shown):
    """All kernels of a comparison."""

    before: str  # before, after: titles of the sides
    after: str
    kernels: tuple[Compared, ...]  # the worst first (`worst_first`); a ladder in its own order
    # what holds for all of them: what was compared although it differs, what the unchanged kernels did
    notes: tuple[str, ...] = ()
    ladder: bool = False  # True if they are the rungs of one side
    broken: tuple[str, ...] = ()  # what fails without any gate: an architecture that is not built any more

    def __repr__(self) -> str:
        verdicts = Counter(kernel.verdict for kernel in self.kernels)
        counted = (f"{number} {name}" for name, number in verdicts.items())
        return brief(self, f"{self.before} → {self.after}", *counted)

    def __iter__(self) -> Iterator[Compared]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def __getitem__(self, position: int) -> Compared:
        return self.kernels[position]

    def count(self, *verdicts: str) -> int:
        """How many kernels have one of these verdicts."""
        return sum(kernel.verdict in verdicts for kernel in self.kernels)


def compare(before: Side, after: Side, *, across: Collection[str] = ()) -> Outcome:
    """Judge every kernel of two sides; arguments and errors are those of `compare_matches`."""
    return compare_matches(paired(before, after), before=before.title, after=after.title, across=across)


def compare_matches(
    matches: Sequence[Match],
    *,
    before: str = "",  # before, after: titles of the sides
    after: str = "",
    margin: float = statistics.EQUIVALENT_WITHIN,
    across: Collection[str] = (),  # which of `ACROSS` may differ
    control: Control | None = None,  # the noise of one's own machine, if it was learnt
) -> Outcome:
    """Judge pairs of kernels; UsageError if cards, clock controls or sets differ and that was not asked for."""
    notes = list(_differences(matches, across))
    if control is not None:
        notes.append(control.words())
        for what, learnt in (("device", control.device), ("clock_control", control.clock_control)):
            others = {getattr(match.after.origin, what) for match in matches if match.after} - {"", learnt}
            if learnt and others:
                listed = ", ".join(sorted(others))
                notes.append(f"The noise was learnt elsewhere: {learnt}, and not {listed}.")
    ladder = bool(matches) and all(match.how == "ladder" for match in matches)
    found = [_unjudged(match) for match in matches]
    estimates: dict[int, statistics.Estimate] = {}
    for position, one in enumerate(found):
        made = _estimate(one, control)
        if made is not None:
            estimates[position], found[position] = made
    spread = _moved_controls(found, estimates)
    if spread > 1:
        notes.append(
            f"Kernels whose code and counters are what they were moved {math.sqrt(spread):.1f} times as far as noise "
            "explains (another card of the model, other clocks or load?): all intervals are widened as much."
        )
        wider = math.sqrt(spread)
        estimates = {at: replace(one, noise=one.noise.scaled(wider)) for at, one in estimates.items()}
    pairs = [both for position in estimates if (both := found[position].match.both)]
    if pairs and all(len(record.times) == 1 for both in pairs for record in both):
        notes.append(
            "One process a side: what is usual between processes is assumed. "
            "Several reports a side (--with) measure it."
        )
    if pairs and all(one.times == other.times and one.metrics == other.metrics for one, other in pairs):
        notes.append("Both sides hold the same numbers to the last digit: one report twice, or a copy of it?")
    judged = statistics.judge(list(estimates.values()), margin=margin)
    for position, judgement in zip(estimates, judged, strict=True):
        found[position] = _with_verdict(found[position], judgement, margin)
    _in_words_of_findings(found)
    return Outcome(before, after, tuple(found) if ladder else worst_first(found), tuple(notes), ladder)


def worst_first(found: Iterable[Compared]) -> tuple[Compared, ...]:
    """The one order of a comparison: by verdict, then what changed most, then by the ids, which are by time."""

    def rank(one: Compared) -> tuple[int, float, int]:
        size = 0.0 if one.judgement is None else abs(one.judgement.change)
        return RANK.index(one.verdict), -size, one.match.family or 0

    return tuple(sorted(found, key=rank))


def compare_launches(
    before: tuple[str, KernelAnalysis, Timing | None], after: tuple[str, KernelAnalysis, Timing | None]
) -> Compared:
    """The quantities of two launches side by side, with names and times without the profiler; no verdict."""
    return Compared(Match(_of_launch(*before), _of_launch(*after), "chosen"), "unclear")


def _of_launch(label: str, analysis: KernelAnalysis, timing: Timing | None) -> KernelRecord:
    seconds = None if timing is None else timing.median
    record = of_launches(label, analysis.profile.family, [analysis.profile], analysis, "")
    return replace(record, times=(), measures=replace(record.measures, seconds=seconds))


def _unjudged(match: Match) -> Compared:
    """What is known without the times."""
    if match.both is None:
        return Compared(match, "new" if match.before is None else "gone")
    before, after = match.both
    same = same_code(before, after)
    if same is False and match.how != "ladder":
        before, after = disassembled(before), disassembled(after)
        match = replace(match, before=before, after=after)
    counters = changed_counters(before, after)
    alike = None if counters is None else not counters
    why, note = reasons(before, after), "no time on both sides"
    return Compared(match, "unclear", reasons=why, note=note, code_same=same, counters_same=alike)


def _estimate(one: Compared, control: Control | None) -> tuple[statistics.Estimate, Compared] | None:
    if (both := one.match.both) is None:
        return None
    timed = all(record.timed for record in both)
    left, right = (batches(record, timed) for record in both)
    if not left or not right:
        return None
    seconds = math.exp(left[0].centre)
    mine = control is not None and control.timed == timed
    model = control.noise if control is not None and mine else usual_noise(timed)
    noise = model.of(seconds * 1e9, "" if timed else both[0].limit)
    return statistics.estimate(left, right, noise), replace(one, timed=timed, noise=noise.name, note="")


def _moved_controls(found: Sequence[Compared], estimates: dict[int, statistics.Estimate]) -> float:
    """By how much the variance of kernels that did not change exceeds what noise explains; 1 without enough of them."""
    controls = [one for at, one in estimates.items() if found[at].code_same and found[at].counters_same]
    if len(controls) < CONTROLS:
        return 1.0
    # The change in standard deviations of a normal distribution that is as unlikely.
    squares = [NormalDist().inv_cdf(max(one.probability, 1e-15) / 2) ** 2 for one in controls]
    mean = sum(squares) / len(squares)
    # A mean of n squares of unit variance scatters by √(2/n): only what goes well beyond that is the machine's.
    return mean if mean > 1 + 3 * math.sqrt(2 / len(squares)) else 1.0


def _with_verdict(one: Compared, judgement: statistics.Judgement, margin: float) -> Compared:
    verdict: Verdict = judgement.verdict
    notes = []
    assert one.match.both is not None
    before, after = one.match.both
    was, now, clock = _cycles(before), _cycles(after), clock_change(before, after)
    cycles = None if was is None or now is None else math.expm1(now - was)
    if verdict in ("slower", "faster") and one.code_same and one.counters_same and one.match.how != "ladder":
        if judgement.equivalent:
            verdict = "same"
        elif cycles is not None and abs(cycles) < margin and clock is not None and abs(clock) > margin / 2:
            verdict = "same"
            notes.append(
                f"same code, same counters, same cycles ({signed_percent(100 * cycles)}): the time moved with the SM "
                f"clock ({signed_percent(100 * clock)})"
            )
        else:
            verdict = "unclear"
            notes.append(
                "same code and same counters: the machine made the difference (another card, placement in memory, load)"
            )
    elif (
        verdict in ("slower", "faster") and not one.timed and one.match.how != "ladder" and cycles is not None
    ):
        # Processes of one program on an H100 that nothing was learnt from ran at clocks 0.7 % apart.
        confirmed = cycles * judgement.change > 0 and abs(cycles) >= statistics.SMALLEST_SHARE * margin
        if clock is not None and abs(clock) > margin / 2 and not confirmed:
            verdict = "unclear"
            moved, stayed = signed_percent(100 * clock), signed_percent(100 * cycles)
            notes.append(f"the time moved with the SM clock ({moved}), the cycles did not ({stayed})")
    if verdict in ("slower", "faster") and not one.reasons:
        missing = [] if one.counters_same is not None else ["the counters"]  # nothing is known that differs
        missing += [] if one.code_same is not None else ["the machine code"]
        if missing:
            which = " and ".join(missing)
            notes.append(f"{which} that would tell why are not in both sides: collect them with --set full")
    if judgement.estimate.own_share == 0:  # no process launched the kernel twice
        usual = f"what is usual for kernels of {one.noise}"
        notes.append(
            f"one launch a report: how far launches of a process differ is {usual}"
            if any(len(record.times) > 1 for record in (before, after))
            else f"one launch a side: the interval rests on {usual}"
        )
    if judgement.estimate.unsteady:
        notes.append("the launches of a process drift or change between modes: the interval allows for it")
    if judgement.estimate.paired:
        notes.append("compared launch by launch: they do different work in an order that repeats")
    if one.match.how in ("launch", "renamed", "chosen", "only"):
        notes += _launched_otherwise(before, after)
    if one.match.how == "renamed":
        alike = "other template arguments" if not one.match.likeness else ""
        alike = alike or f"its code is {100 * one.match.likeness:.0f} % alike"
        notes.append(f"renamed: {'its code is the same' if one.match.likeness == 1 else alike}")
    elif one.match.how == "only" and before.name != after.name:
        notes.append("other names, compared because each side holds one kernel")
    cycles = None if one.timed else cycles
    return replace(one, verdict=verdict, judgement=judgement, cycles=cycles, note="; ".join(notes))


def _in_words_of_findings(found: list[Compared]) -> None:
    """Say of those that changed most what the change was."""
    changed = [at for at, one in enumerate(found) if one.verdict in ("slower", "faster") and not one.timed]
    for at in sorted(changed, key=lambda at: -abs(found[at].judgement.change))[:TOLD]:  # type: ignore[union-attr]
        one = found[at]
        assert one.match.both is not None and one.judgement is not None
        found[at] = replace(one, said=what_changed(*one.match.both, one.judgement.change))


def _launched_otherwise(before: KernelRecord, after: KernelRecord) -> Iterator[str]:
    """What of the launch is not what it was."""
    sides = before, after
    words = [
        ("grid", *(record.grid_text for record in sides)),
        ("block", *(dimensions(record.block) for record in sides)),
        ("NVTX range", *("/".join(record.nvtx) or "none" for record in sides)),
    ]
    families = [record.key for record in sides]
    if all(len(key) >= len(FamilyKey._fields) for key in families):
        at = FamilyKey._fields.index("shared_memory")
        known = (f"{int(key[at]):,} bytes" if key[at] else "unknown" for key in families)
        words.append(("shared memory of a block", *known))
    changed = [f"{what} {left} → {right}" for what, left, right in words if left != right]
    if changed:
        yield f"launched otherwise: {', '.join(changed)}"


def _cycles(record: KernelRecord) -> float | None:
    """Logarithm of the elapsed cycles of all launches; None where they were not collected."""
    centres = [statistics.Batch.of_times(times.cycles).centre for times in record.times if times.cycles]
    return sum(centres) / len(centres) if centres else None


def _differences(matches: Sequence[Match], across: Collection[str]) -> list[str]:
    """Sentences on what differs and was asked for."""
    words = {"card": "GPU", "clocks": "clock control", "set": "what ncu collected"}
    facts = {"card": "device", "clocks": "clock_control", "set": "collected"}
    found: dict[str, tuple[str, str]] = {}
    for both in filter(None, (match.both for match in matches)):
        # Times without the profiler are not touched by how it was run.
        for kind in ("card",) if all(side.timed for side in both) else ACROSS:
            left, right = (getattr(side.origin, facts[kind]) for side in both)
            if left and right and left != right:
                pair = (_only(left, right), _only(right, left)) if kind == "set" else (left, right)
                found.setdefault(kind, pair)
    refused = [kind for kind in found if kind not in across]
    if refused:
        kind = refused[0]
        raise UsageError(
            f"the two sides differ in {words[kind]}: their times are not comparable",
            "collect both sides alike",
            "compare all the same: " + " ".join(f"--across {item}" for item in refused),
            found="; ".join(f"{words[item]}: {found[item][0]} → {found[item][1]}" for item in refused),
        )
    return [f"Compared across {words[kind]}: {left} → {right}." for kind, (left, right) in found.items()]


def _only(mine: Sequence[str], other: Sequence[str]) -> str:
    """What one side asked ncu for and the other did not."""
    more = (item if len(item) <= 60 else item[:57] + "…" for item in mine if item not in other)
    return " ".join(more) or "nothing more"
