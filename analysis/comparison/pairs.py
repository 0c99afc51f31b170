"""Which launches of two sessions belong together: by stage and problem, or by kernel name."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof.analysis.comparison.quantify import Change, Comparison, compare
from gemmprof.analysis.comparison.quantities import LESS_IS_BETTER
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.session import Session
from gemmprof.base.brief import brief
from gemmprof.model import StageResult
from gemmprof.runs.directory import Run


@dataclass(frozen=True, slots=True)
class Subject:
    """One side of a pair: a launch, a stage's result of a run, or both.

    Attributes:
        label: name for people (untrusted text).
        key: what it is matched by.
        analysis: None where a stage was timed and not profiled.
        seconds: median time without the profiler, None where it was not timed.
    """

    label: str
    key: tuple[object, ...]
    analysis: KernelAnalysis | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two subjects that belong together; one of them is None where the other side has no counterpart."""

    label: str
    before: Subject | None
    after: Subject | None
    comparison: Comparison | None = None

    def __repr__(self) -> str:
        change = self.slower_percent
        only = "only before" if self.after is None else "only after" if self.before is None else ""
        return brief(self, self.label, only, "" if change is None else f"time {change:+.1f} %")

    @property
    def time(self) -> Change | None:
        """The time that the two are compared by (see `Comparison.time`), None if there is none."""
        return None if self.comparison is None else self.comparison.time

    @property
    def slower_percent(self) -> float | None:
        """By how much the second is slower than the first (negative: faster); None without a time on both sides."""
        ratio = None if self.time is None else self.time.ratio
        return None if ratio is None else 100.0 * (ratio - 1.0)


def subjects(session: Session) -> tuple[Subject, ...]:
    """Everything in a session that can be compared: the stages of its run, else its launches."""
    if session.run is not None:
        run = session.run
        return tuple(_of_stage(session, run, result) for result in run.results if result.failure is None)
    seen: dict[str, int] = {}
    found = []
    for analysis in session.kernels:
        name = analysis.profile.name
        seen[name] = seen.get(name, -1) + 1
        # The n-th launch of a kernel belongs to the n-th launch of the same kernel.
        again = f" (repetition {seen[name]})" if seen[name] else ""
        found.append(Subject(analysis.profile.function_name + again, (name, seen[name]), analysis))
    return tuple(found)


def _of_stage(session: Session, run: Run, result: StageResult) -> Subject:
    stage = run.record_of(result).stage
    seconds = None if result.timing is None else result.timing.median
    label = f"{stage.number} {stage.title}, {result.problem.label}"
    return Subject(label, (stage.number, result.problem), session.kernel_for(result), seconds)


def pair_up(before: Session, after: Session) -> tuple[Pair, ...]:
    """Pairs of two sessions: same stage and problem, or same kernel; two single launches pair whatever their names."""
    left, right = subjects(before), subjects(after)
    if len(left) == len(right) == 1:
        return (_pair(left[0], right[0]),)
    by_key = {subject.key: subject for subject in right}
    pairs = [_pair(subject, by_key.pop(subject.key, None)) for subject in left]
    return (*pairs, *(_pair(None, subject) for subject in by_key.values()))


def _pair(before: Subject | None, after: Subject | None) -> Pair:
    if before is None or after is None:
        present = before or after
        return Pair("" if present is None else present.label, before, after)
    label = before.label if before.label == after.label else f"{before.label} → {after.label}"
    if before.analysis is None or after.analysis is None:
        time = Change("time", "Median time", "time", "s", before.seconds, after.seconds, LESS_IS_BETTER)
        return Pair(label, before, after, Comparison(before.label, after.label, (time,)))
    comparison = compare(
        before.analysis,
        after.analysis,
        before_name=before.label,
        after_name=after.label,
        before_seconds=before.seconds,
        after_seconds=after.seconds,
    )
    return Pair(label, before, after, comparison)
