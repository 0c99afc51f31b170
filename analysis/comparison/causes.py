"""gemmprof's own findings of a kernel, and what came of their predictions where a finding is gone.

Findings are worked out where they are asked for: that needs the disassembly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from gemmprof.analysis.comparison.records import KernelRecord
from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.base.errors import GemmprofError

__all__ = ["CAUSES", "Prediction", "Score", "causes_of", "findings_at", "score", "what_changed"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a finding says its fix would save, as shares of the launch's time, with the interval."""

    cause: str
    saves: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """``predicted 21 %, 9 to 29``."""
        return f"predicted {_per_cent(self.saves)}, {100 * self.low:.0f} to {100 * self.high:.0f}"


@dataclass(frozen=True, slots=True)
class Score:
    """What came of findings that are gone.

    Attributes:
        causes: of the findings.
        predicted: of all of them together.
        measured: what was saved, a share of the earlier time.
    """

    causes: tuple[str, ...]
    predicted: Prediction
    measured: float

    @property
    def inside(self) -> bool:
        """Whether the measured saving lies in the interval, whose ends are shown in whole per cent."""
        return self.predicted.low - 0.005 <= self.measured <= self.predicted.high + 0.005

    @property
    def words(self) -> str:
        """``as predicted``, ``more than predicted`` or ``less than predicted``."""
        if self.inside:
            return "as predicted"
        return f"{'more' if self.measured > self.predicted.high else 'less'} than predicted"


def score(before: Iterable[Prediction], after: Iterable[Prediction], change: float) -> Score | None:
    """The score of the predictions of one kernel's earlier launch; None where all its findings are still there.

    Args:
        before, after: of the two launches.
        change: of the time, after/before - 1.
    """
    still = {one.cause for one in after}
    gone = [one for one in before if one.cause not in still]
    if not gone:
        return None

    def together(shares: Iterable[float]) -> float:
        return 1 - math.prod(1 - share for share in shares)

    # Together they save at least what the surest of them does alone: they may be the same time.
    all_of_them = Prediction(
        "",
        together(one.saves for one in gone),
        max(one.low for one in gone),
        together(one.high for one in gone),
    )
    return Score(tuple(one.cause for one in gone), all_of_them, -change)


def causes_of(record: KernelRecord) -> frozenset[str] | None:
    """Keys of the causes found in the kernel's middle launch; None where nothing can be said."""
    if record.causes is not None:
        return frozenset(record.causes)
    found = None if record.place is None else findings_at(*record.place)
    return None if found is None else frozenset(one.cause for one in found)


def what_changed(before: KernelRecord, after: KernelRecord, change: float) -> str:
    """A change in the words of findings: which is gone with what it was predicted to save, which came, what is next.

    Args:
        before, after: the kernel; a side without its report has no predictions, and nothing is said.
        change: of the time, after/before - 1.
    """
    was, now = (None if side.place is None else findings_at(*side.place) for side in (before, after))
    if was is None or now is None:
        return ""
    names = [{one.cause for one in side} for side in (was, now)]
    parts = [
        f"{_title(one.cause)} ({one.words}) is gone"
        for one in was
        if one.cause not in names[1] and change < 0
    ]
    parts += [
        f"{_title(one.cause)} is new (would save {_per_cent(one.saves)})"
        for one in now
        if one.cause not in names[0] and change > 0
    ]
    if not parts:
        return ""
    found = score(was, now, change) if change < 0 else None
    came = f", {found.words}" if found else ""
    following = f"; next: {_title(now[0].cause)} {_per_cent(now[0].saves)}" if now and change < 0 else ""
    return f"{', '.join(parts[:2])}: {100 * change:+.1f} % measured{came}{following}"


def _title(cause: str) -> str:
    title = CAUSES.get(cause, cause)
    return title[:1].lower() + title[1:]


def _per_cent(share: float) -> str:
    return f"{100 * share:.0f} %"


@cache
def findings_at(path: str, index: int) -> tuple[Prediction, ...] | None:
    """The findings of a launch of a report, the most to save first; None where nothing can be said of it."""
    try:
        with ReportReader(path) as reader:
            profile = next(reader.profiles(source=True, units=True, only={index}))
    except (GemmprofError, StopIteration):
        return None
    found = explain(profile)
    if not (found.limit or found.findings):
        return None
    return tuple(Prediction(one.cause, one.saves, one.saves_low, one.saves_high) for one in found.findings)
