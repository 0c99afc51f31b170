#!/usr/bin/env python3
"""Judge the predictions of `gemmprof explain` by the corpus of pairs and by the studies, and write
docs/explain_scores.md.

For each pair the flawed kernel's report alone is explained; what it says of the planted cause is compared
with the times of both kernels. Beside that stand the best constant guess and the largest estimate of
Nsight Compute's rules.
The studies, and what was predicted of them at first sight, are score_studies.py's.

Usage: score_pairs.py [--data tests/data/pairs] [--check] [--rows]
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import recording
from recording import ROOT, filled, options_of

from gemmprof.analysis.explanation.demands.rounds import with_counts
from gemmprof.analysis.explanation.demands.time_model import TimeModel
from gemmprof.analysis.explanation.engine import Weighed, at_once, weigh
from gemmprof.analysis.explanation.prediction import Prediction, Predictor
from gemmprof.analysis.reading.report import read_report
from gemmprof.model import KernelProfile

DATA = ROOT / "tests" / "data" / "pairs"
PAGE = ROOT / "docs" / "explain_scores.md"
COSTLY = 0.05
"""A flaw that costs less needs not be named first, and a finding that promises less is no false alarm."""
UNNAMED = 0.03
"""Upper end of the interval of a cause that no finding names."""


@dataclass(frozen=True)
class Outcome:
    """One row of the corpus: a flawed kernel, the mended one, and what mending saved."""

    pair: str
    kernel: str
    size: str
    kind: str
    causes: tuple[str, ...]
    flawed: KernelProfile
    mended: KernelProfile
    saved: float

    @property
    def single(self) -> bool:
        """Whether one cause alone was mended."""
        return len(self.causes) == 1


@dataclass(frozen=True)
class Judged:
    """What was predicted of one row."""

    row: Outcome
    predicted: float
    low: float
    high: float
    named: bool
    left: float
    """What is still predicted of the mended cause on the mended kernel."""

    @property
    def error(self) -> float:
        """Points of run time, 0 to 1."""
        return abs(self.predicted - self.row.saved)


def corpus(folder: Path) -> list[Outcome]:
    """Every row but those whose "mended" side turned out slower by more than a measurement's noise."""
    listed = json.loads((folder / "outcomes.json").read_text("utf-8"))["pairs"]
    rows = []
    for one in listed:
        if one["kind"] == "not_mended":
            continue
        flawed, mended = one["flawed"], one["mended"]
        rows.append(
            Outcome(
                pair=one["pair"],
                kernel=one["kernel"],
                size=str(one["size"]),
                kind=one["kind"],
                causes=tuple(one["causes"]),
                flawed=launches(folder / flawed["report"])[flawed["launch"]],
                mended=launches(folder / mended["report"])[mended["launch"]],
                saved=1.0 - mended["time_ns"] / flawed["time_ns"],
            )
        )
    return rows


@lru_cache(maxsize=64)
def launches(path: Path) -> tuple[KernelProfile, ...]:
    """The launches of a report."""
    return read_report(path)


@dataclass(frozen=True)
class Said:
    """What was said of one launch: its findings; none of one that could not be explained."""

    weighed: Sequence[Weighed] = ()
    predictor: Predictor | None = None

    @property
    def findings(self) -> list[tuple[str, Prediction]]:
        """The causes in their order, and what each is told to save."""
        return [(one.candidate.cause, one.prediction) for one in self.weighed]

    def of(self, causes: tuple[str, ...]) -> list[Prediction]:
        """The findings of these causes."""
        return [prediction for cause, prediction in self.findings if cause in causes]

    def together(self, causes: tuple[str, ...]) -> Prediction | None:
        """What is told of all these causes at once: they may be the same time. No less than of one of them."""
        mine = [one for one in self.weighed if one.candidate.cause in causes]
        told = [one.prediction for one in mine]
        if self.predictor is not None and len(mine) > 1:
            told.append(at_once(mine, self.predictor))
        return max(told, key=lambda one: one.saves, default=None)


class Judge:
    """Explains each launch once.

    Args:
        rows: what is to be judged.
        calibrated: whether by what is told, or by what the time model alone says.
    """

    def __init__(self, rows: Sequence[Outcome], *, calibrated: bool = True) -> None:
        self._calibrated = calibrated
        self._said: dict[int, Said] = {}
        self._planted: dict[int, set[str]] = {}
        for row in rows:
            self._planted.setdefault(id(row.flawed), set()).update(row.causes)

    def said(self, profile: KernelProfile) -> Said:
        """The findings of a launch."""
        if id(profile) not in self._said:
            self._said[id(profile)] = self.explained(profile)
        return self._said[id(profile)]

    def explained(self, profile: KernelProfile) -> Said:
        """The same, made anew."""
        found = with_counts(profile)
        model = TimeModel(found)
        predictor = Predictor(model, calibrated=self._calibrated)
        return Said(weigh(found, predictor) if model.known else (), predictor)

    def judge(self, row: Outcome) -> Judged:
        """What was predicted of a row: of its cause, or of its two causes together."""
        before, after = self.said(row.flawed), self.said(row.mended)
        mine = before.together(row.causes)
        saves, low, high = (mine.saves, mine.low, mine.high) if mine else (0.0, 0.0, UNNAMED)
        # What another pair shows to be a flaw of the mended side is no false alarm.
        still = set(row.causes) - self._planted.get(id(row.mended), set())
        left = max((one.saves for one in after.of(tuple(still))), default=0.0)
        planted = self._planted[id(row.flawed)]
        named = bool(before.findings) and before.findings[0][0] in planted
        return Judged(row, saves, low, high, named, left)


@dataclass(frozen=True)
class Score:
    """The figures of one set of predictions, in points of run time and shares."""

    rows: int
    error: float
    skill: float
    worst: float
    inside: float
    named: tuple[int, int]
    alarms: tuple[int, int]


def constant_error(rows: Sequence[Outcome]) -> float:
    """Mean error of the best constant guess, each row's chosen on the other kernels."""
    errors = []
    for row in rows:
        others = [other.saved for other in rows if other.kernel != row.kernel]
        errors.append(abs(statistics.median(others) - row.saved))
    return statistics.fmean(errors)


def score(judged: Sequence[Judged]) -> Score:
    """The figures of these predictions."""
    error = statistics.fmean(one.error for one in judged)
    costly = [one for one in judged if one.row.single and one.row.saved >= COSTLY]
    inside = sum(one.low - 0.005 <= max(0.0, one.row.saved) <= one.high + 0.005 for one in judged)
    return Score(
        rows=len(judged),
        error=100 * error,
        skill=1.0 - error / constant_error([one.row for one in judged]),
        worst=100 * max(one.error for one in judged),
        inside=100 * inside / len(judged),
        named=(sum(one.named for one in costly), len(costly)),
        alarms=(sum(one.left > COSTLY for one in judged), len(judged)),
    )


def of_the_rules(row: Outcome) -> float:
    """The largest share of the run time that a rule of Nsight Compute promises."""
    promised = [
        rule.estimated_speedup
        for rule in row.flawed.rules
        if rule.estimated_speedup is not None and rule.speedup_scope == "global"
    ]
    return max(promised, default=0.0) / 100.0


def page(rows: Sequence[Outcome], studies: Mapping[str, object] | None = None) -> str:
    """docs/explain_scores.md: the studies' part (`score_studies.shown`), then the pairs."""
    judge = Judge(rows)
    judged = [judge.judge(row) for row in rows]
    rules = [abs(of_the_rules(row) - row.saved) for row in rows]
    causes = []
    for cause in sorted({cause for one in judged for cause in one.row.causes if one.row.single}):
        mine = [one for one in judged if one.row.causes == (cause,)]
        costly = [one for one in mine if one.row.saved >= COSTLY]
        errors = [100 * one.error for one in mine]
        named = f"{sum(one.named for one in costly)} of {len(costly)}"
        error, worst = f"{statistics.fmean(errors):.1f}", f"{max(errors):.0f}"
        causes.append((f"[{cause}](explain.md#{cause})", len(mine), error, worst, named))
    pairs = [
        (
            one.row.pair, one.row.size, ", ".join(one.row.causes), f"{100 * one.row.saved:.0f} %",
            f"{100 * one.predicted:.0f} %",
            f"{100 * max(0.0, one.low):.0f} to {100 * min(1.0, one.high):.0f} %",
            "yes" if one.named else "no", f"{100 * of_the_rules(one.row):.0f} %",
        )
        for one in sorted(judged, key=lambda found: -found.error)
    ]  # fmt: skip
    return filled(
        "explain_scores.md.jinja",
        studies=studies,
        found=score(judged),
        constant=constant_error(rows),
        of_rules=statistics.fmean(rules),
        worst_of_rules=max(rules),
        by_cause=causes,
        every_pair=pairs,
    )


def written(rows: Sequence[Outcome]) -> str:
    """The page."""
    from score_studies import shown

    return page(rows, shown())


def main() -> int:
    """Write the page, or check that it is current."""
    parser = options_of(__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with outcomes.json and the reports")
    parser.add_argument("--check", action="store_true", help="fail if the page is not what would be written")
    parser.add_argument("--rows", action="store_true", help="print every row and the figures, write nothing")
    options = parser.parse_args()
    rows = corpus(options.data)
    if options.rows:
        print(page(rows))
        return 0
    return recording.written({PAGE: written(rows)}, check=options.check)


if __name__ == "__main__":
    sys.exit(main())
