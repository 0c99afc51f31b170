"""Which launches of two sessions belong together: by stage and problem, by kernel name, or as the user chose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from gemmprof.analysis.comparison.quantify import Change, Comparison, compare
from gemmprof.analysis.comparison.quantities import LESS_IS_BETTER
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.selection import some
from gemmprof.analysis.session import Session
from gemmprof.errors import UsageError
from gemmprof.model import Problem, StageResult
from gemmprof.run import Run


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

    @property
    def time(self) -> Change | None:
        """The time that the two are compared by (see `Comparison.time`), None if there is none."""
        return None if self.comparison is None else self.comparison.time

    @property
    def slower_percent(self) -> float | None:
        """By how much the second is slower than the first (negative: faster); None without a time on both sides."""
        ratio = None if self.time is None else self.time.ratio
        return None if ratio is None else 100.0 * (ratio - 1.0)

    def fails(self, allowed_percent: float) -> bool:
        """True if the second is slower by more than this, is missing, or cannot be compared."""
        slower = self.slower_percent
        return slower is None or not slower <= allowed_percent


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


def rungs(session: Session) -> tuple[Pair, ...]:
    """Each subject of one session with the one before it; in a run, each stage with the stage before it."""
    groups: dict[Problem | None, list[Subject]] = {}
    for subject in subjects(session):
        problem = subject.key[1] if session.run is not None else None
        groups.setdefault(problem if isinstance(problem, Problem) else None, []).append(subject)
    return tuple(_pair(first, second) for group in groups.values() for first, second in pairwise(group))


def chosen(session: Session, selector: str) -> Subject:
    """The one subject that a selector names: a stage's number, a launch's index, or a part of its name.

    ``5@2048`` is stage 5 on that shape; without a shape a number means the first shape of the run.

    Raises:
        UsageError: if it names none, or several.
    """
    everything = subjects(session)
    found = list(_matching(session, everything, selector))
    if len(found) == 1:
        return found[0]
    names = some((subject.label for subject in (found or everything)), limit=12)
    problem = "matches several" if found else "matches nothing"
    raise UsageError(
        f"'{selector}' {problem} in {session.title}",
        found=names or "no kernels",
        remedies=["give a stage's number (5, or 5@2048), a launch's index (from 0), or more of the name"],
    )


def _matching(session: Session, everything: tuple[Subject, ...], selector: str) -> Iterator[Subject]:
    digits, at, shape = selector.partition("@")
    if digits.isdigit() and session.run is not None:
        problem = Problem.parse(shape) if at else None
        of_stage = [subject for subject in everything if subject.key[0] == int(digits)]
        exact = [subject for subject in of_stage if subject.key[1] == problem]
        # Without a type, the shape alone may tell: in a run of the 16-bit ladder 2048 means its 2048³.
        of_shape = [
            s for s in of_stage if isinstance(s.key[1], Problem) and problem and problem.is_shape_of(s.key[1])
        ]
        yield from (exact or of_shape) if at else of_stage[:1]
        return
    if selector.isdigit():
        yield from everything[int(selector) : int(selector) + 1]
        return
    for subject in everything:
        name = "" if subject.analysis is None else subject.analysis.profile.name
        if selector.lower() in subject.label.lower() or selector in name:
            yield subject


def pair_of(before: Subject, after: Subject) -> Pair:
    """A pair that the user chose."""
    return _pair(before, after)


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


def too_slow(pairs: Iterable[Pair], allowed_percent: float) -> tuple[Pair, ...]:
    """The pairs that a gate of ``allowed_percent`` stops."""
    return tuple(pair for pair in pairs if pair.fails(allowed_percent))
