"""What came of predictions: those kept with a kernel's run are scored where its next run lacks the finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from gemmprof.analysis.comparison.causes import Prediction, Score, score

LAST = 40  # so many scored predictions are told of: older ones are of an older gemmprof
NONE = "-"  # what is kept of a launch that was explained and has no finding


def written(found: Sequence[Prediction] | None) -> str:
    """Predictions as the text that a history keeps; '' where nothing could be said of the launch."""
    if found is None:
        return ""
    return " ".join(f"{one.cause}:{one.saves:.5f}:{one.low:.5f}:{one.high:.5f}" for one in found) or NONE


def read(text: str) -> tuple[Prediction, ...] | None:
    """The predictions of such a text; None without any, or where it is none."""
    if text in ("", NONE):
        return () if text else None
    found = []
    for word in text.split(" "):
        cause, *numbers = word.split(":")
        try:
            saves, low, high = map(float, numbers)
        except ValueError:
            return None
        if not (cause and 0 <= low <= saves <= high <= 1):
            return None
        found.append(Prediction(cause, saves, low, high))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Kept:
    """What scoring needs to know of one point of a history."""

    series: int
    recorded_at: datetime
    time_ns: float
    code: str
    predictions: str


@dataclass(frozen=True, slots=True)
class Tally:
    """How many of the last predictions lay inside their intervals."""

    scored: int
    inside: int

    @property
    def words(self) -> str:
        """``of your last 40 predictions 33 lay inside``; '' before the first."""
        if self.scored <= 1:
            return f"your last prediction lay {'inside' if self.inside else 'outside'}" if self.scored else ""
        return f"of your last {self.scored} predictions {self.inside} lay inside"


def scores(points: Iterable[Kept]) -> list[tuple[datetime, Score]]:
    """Every score of a history, oldest first: a finding is gone, and the kernel's code is another."""
    found = []
    for before, after in pairwise(sorted(points, key=lambda one: (one.series, one.recorded_at))):
        if before.series != after.series or (before.code and before.code == after.code):
            continue
        was, now = read(before.predictions), read(after.predictions)
        if was is None or now is None or not before.time_ns > 0:
            continue
        came = score(was, now, after.time_ns / before.time_ns - 1)
        if came is not None:
            found.append((after.recorded_at, came))
    return sorted(found, key=lambda one: one[0])


def tally(points: Iterable[Kept], last: int = LAST) -> Tally:
    """The last scores of a history counted."""
    found = [one for _, one in scores(points)][-last:]
    return Tally(len(found), sum(one.inside for one in found))
