#!/usr/bin/env python3
"""Judge the predictions of `gemmprof explain` by the corpus of pairs, and write docs/explain_scores.md.

For each pair the flawed kernel's report alone is explained; what it says of the planted cause is compared
with the times of both kernels. The few numbers of the time model are chosen on the other kernels only
(leave one kernel out), from a small grid; how they do when chosen on all pairs stands beside it. Beside
those stand the best constant guess and the largest estimate of Nsight Compute's rules.

Usage: score_pairs.py [--data tests/data/pairs] [--check] [--rows]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gemmprof.analysis.explanation.engine import explain  # noqa: E402
from gemmprof.analysis.explanation.prediction import SPREAD  # noqa: E402
from gemmprof.analysis.explanation.time_model import Settings  # noqa: E402
from gemmprof.analysis.reading.report import read_report  # noqa: E402
from gemmprof.model import Explanation, KernelProfile  # noqa: E402

DATA = ROOT / "tests" / "data" / "pairs"
PAGE = ROOT / "docs" / "explain_scores.md"
GRID = tuple(
    Settings(overlap=overlap, sharpness=sharpness, latency_scale=scale)
    for overlap in (3.0, 4.0, 6.0)
    for sharpness in (1.0, 2.0, 4.0)
    for scale in (0.9, 1.0, 1.1)
)
"""What the model's numbers are chosen from. The shipped ones are the middle."""
SHIPPED = Settings()
COSTLY = 0.05
"""A flaw that costs less needs not be named first, and a finding that promises less is no false alarm."""
INSIDE = 0.82
"""Share of outcomes that the interval should hold."""
BOUNDS = (0.0, 1.0)


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
    """Every row whose mended side is not slower than a measurement can tell."""
    listed = json.loads((folder / "outcomes.json").read_text("utf-8"))["pairs"]
    rows = []
    for one in listed:
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


class Judge:
    """Explains each launch once for each setting."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, Settings], Explanation] = {}

    def explanation(self, profile: KernelProfile, settings: Settings) -> Explanation:
        """The explanation of a launch with these numbers."""
        key = (id(profile), settings)
        if key not in self._found:
            self._found[key] = explain(profile, settings)
        return self._found[key]

    def judge(self, row: Outcome, settings: Settings) -> Judged:
        """What was predicted of a row: of its cause, or of all findings where several were mended."""
        before, after = self.explanation(row.flawed, settings), self.explanation(row.mended, settings)
        mine = [finding for finding in before.findings if finding.cause in row.causes]
        if row.single:
            saves, low, high = (
                (mine[0].saves, mine[0].saves_low, mine[0].saves_high) if mine else (0.0, 0.0, 0.03)
            )
        else:
            saves = before.together if before.together is not None else (mine[0].saves if mine else 0.0)
            width = max((finding.saves_high - finding.saves_low for finding in mine), default=0.1) / 2
            low, high = saves - width, saves + width
        left = max((finding.saves for finding in after.findings if finding.cause in row.causes), default=0.0)
        named = bool(before.findings) and before.findings[0].cause in row.causes
        return Judged(row, saves, low, high, named, left)


def chosen_without(judged: dict[Settings, list[Judged]], kernel: str) -> Settings:
    """The numbers that do best on all other kernels."""

    def error(settings: Settings) -> float:
        return statistics.fmean(one.error for one in judged[settings] if one.row.kernel != kernel)

    return min(judged, key=error)


def left_out(judged: dict[Settings, list[Judged]]) -> list[Judged]:
    """Each row as predicted with the numbers chosen on the other kernels."""
    kernels = {one.row.kernel for one in judged[SHIPPED]}
    choice = {kernel: chosen_without(judged, kernel) for kernel in kernels}
    return [judged[choice[one.row.kernel]][at] for at, one in enumerate(judged[SHIPPED])]


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


def page(rows: Sequence[Outcome], judged: dict[Settings, list[Judged]]) -> str:
    """docs/explain_scores.md."""
    out, inside = left_out(judged), judged[SHIPPED]
    scores = score(out), score(inside)
    rules = [abs(of_the_rules(row) - row.saved) for row in rows]
    constant = constant_error(rows)
    text = [
        "# How well the predictions came true",
        "",
        "Generated by `tools/score_pairs.py` from the corpus of pairs ([corpus.md](corpus.md)); a test "
        "checks that it is",
        "current. Each pair is a kernel with a planted flaw and the same kernel without it, both timed. "
        "Predicted is from",
        "the flawed kernel's report alone. Points are per cent of the flawed kernel's run time.",
        "",
        "| | aim | a kernel left out | shipped numbers | best constant | Nsight Compute's rules |",
        "|---|---:|---:|---:|---:|---:|",
        f"| pairs | | {scores[0].rows} | {scores[1].rows} | {len(rows)} | {len(rows)} |",
        f"| mean error, points | ≤ 8 | {scores[0].error:.1f} | {scores[1].error:.1f} | "
        f"{100 * constant:.1f} | "
        f"{100 * statistics.fmean(rules):.1f} |",
        f"| skill against the best constant | ≥ 0.70 | {scores[0].skill:.2f} | {scores[1].skill:.2f} | 0 | "
        f"{1 - statistics.fmean(rules) / constant:.2f} |",
        f"| worst, points | ≤ 25 | {scores[0].worst:.0f} | {scores[1].worst:.0f} | | "
        f"{100 * max(rules):.0f} |",
        f"| outcomes inside the interval | 75–90 % | {scores[0].inside:.0f} % | {scores[1].inside:.0f} % "
        "| | |",
        f"| cause named first, of flaws that cost ≥ 5 % | ≥ 90 % | {_of(scores[0].named)} | "
        f"{_of(scores[1].named)} | | |",
        f"| still promised > 5 points when mended | ≤ 5 % | {_of(scores[0].alarms)} | "
        f"{_of(scores[1].alarms)} | | |",
        "",
        "Left out means: the model's three free numbers (overlap, sharpness, latency) are chosen from "
        f"{len(GRID)}",
        "combinations by the error on all other kernels. The interval's width is one number, chosen so "
        "that about four of",
        "five outcomes lie inside.",
        "",
        "## By cause",
        "",
        "| cause | rows | mean error | worst | named first |",
        "|---|---:|---:|---:|---:|",
    ]
    for cause in sorted({cause for one in out for cause in one.row.causes if one.row.single}):
        mine = [one for one in out if one.row.causes == (cause,)]
        costly = [one for one in mine if one.row.saved >= COSTLY]
        text.append(
            f"| [{cause}](explain.md#{cause}) | {len(mine)} | "
            f"{100 * statistics.fmean(one.error for one in mine):.1f} | "
            f"{100 * max(one.error for one in mine):.0f} | {sum(one.named for one in costly)} of "
            f"{len(costly)} |"
        )
    text += [
        "",
        "## Every pair",
        "",
        "| pair | size | cause | came | predicted | interval | named first | rules |",
        "|---|---:|---|---:|---:|---:|---|---:|",
    ]
    for one in sorted(out, key=lambda found: -found.error):
        row = one.row
        text.append(
            f"| {row.pair} | {row.size} | {', '.join(row.causes)} | {100 * row.saved:.0f} % | "
            f"{100 * one.predicted:.0f} % | "
            f"{100 * max(0.0, one.low):.0f} to {100 * min(1.0, one.high):.0f} % | "
            f"{'yes' if one.named else 'no'} | "
            f"{100 * of_the_rules(row):.0f} % |"
        )
    return "\n".join(text) + "\n"


def _of(counted: tuple[int, int]) -> str:
    return f"{counted[0]} of {counted[1]}"


def spread_wanted(judged: Iterable[Judged]) -> float:
    """Factor on the interval's width that brings the wanted share of outcomes inside."""
    needed = []
    for one in judged:
        came = max(0.0, one.row.saved)
        width = (one.high - one.predicted) if came >= one.predicted else (one.predicted - one.low)
        needed.append(abs(came - one.predicted) / max(width, 1e-6))
    needed.sort()
    return needed[min(len(needed) - 1, int(INSIDE * len(needed)))] * SPREAD


def main() -> int:
    """Write the page, or check that it is current."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder with outcomes.json and the reports")
    parser.add_argument("--check", action="store_true", help="fail if the page is not what would be written")
    parser.add_argument("--rows", action="store_true", help="print every row and the figures, write nothing")
    options = parser.parse_args()
    rows = corpus(options.data)
    judge = Judge()
    settings = (SHIPPED,) if options.rows else (SHIPPED, *(one for one in GRID if one != SHIPPED))
    judged: dict[Settings, list[Judged]] = {one: [judge.judge(row, one) for row in rows] for one in settings}
    text = page(rows, judged)
    if options.rows:
        print(text)
        print(f"interval's width wanted: {spread_wanted(judged[SHIPPED]):.2f}", file=sys.stderr)
        return 0
    if options.check:
        current = PAGE.read_text("utf-8") if PAGE.exists() else ""
        if current != text:
            print(f"{PAGE} is not current: run tools/score_pairs.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text, "utf-8")
    print(f"Wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
