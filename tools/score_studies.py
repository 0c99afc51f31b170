"""What `gemmprof explain` says of the studies (docs/corpus.md), and how far off it is.

Each fix of a study is judged as a pair is (score_pairs.py); a study by the fix that comes nearer to what was
predicted, for which of them is written nobody can know. A fix that is slower than the flawed kernel is none.

How far predictions of kernels that were never seen fell short is learnt here, too (`gemmprof.analysis.explanation.
prediction.Calibration`); its interval also from statements that were tried (try_statements.py).

Usage: score_studies.py [--data tests/data/blind2/h200] [--model] OUTPUT.csv
       score_studies.py --learn
"""

from __future__ import annotations

import atexit
import hashlib
import json
import math
import statistics
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from itertools import chain, groupby, product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from record_pairs import MUCH_SLOWER
from record_variants import SETS
from recording import ROOT, options_of, table_of
from score_pairs import COSTLY, UNNAMED, Judge, Outcome, Said, launches
from try_statements import STATEMENTS, TRIED, came

from gemmprof.analysis.explanation import prediction
from gemmprof.analysis.explanation.code.address_forms import LOOK_UP, RUNS, UNKNOWN, checked_forms
from gemmprof.analysis.explanation.demands.time_model import TimeModel
from gemmprof.analysis.explanation.demands.work import work
from gemmprof.analysis.explanation.prediction import Calibration
from gemmprof.analysis.ladder.predictions import Rung
from gemmprof.analysis.ladder.predictions import steps as ladder_steps
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.session import Session, load_session
from gemmprof.base.errors import GemmprofError
from gemmprof.base.spread import grouped
from gemmprof.model import KernelProfile, Problem
from gemmprof.runs.directory import recorded_run_directory

DATA = ROOT / "tests" / "data"
FOLDERS = BLIND, *SEEN = tuple(DATA / name for name in reversed(SETS))
"""Studies recorded to be judged at first sight; and those that were that in their turn, by which detectors have been
judged since.
"""
WHOLE = {"variants", "triton", "idioms", *(f"blind{number}" for number in (*range(2, 10), *range(11, 14)))}
"""Sets that have been looked at whole."""
HALVED = tuple(folder for folder in FOLDERS if folder.name not in WHOLE)
"""Of these one half may be looked at, which a hash of their names chose."""
FIRST_SIGHT = "first_sight.csv"
"""Beside studies.json: what was predicted before anything was changed for these studies. Written once, never again."""
MODEL = "first_sight_model.csv"
"""And what the time model alone said then. Of a set of which one half has been looked at only that half."""
ERROR, SKILL = "mean error against the nearer fix, points", "skill against the best constant"
RIGHT, INSIDE = "first cause right, of flaws that cost ≥ 5 %", "outcomes inside the interval"
AIMS = {
    "mean error": "≤ 8", "skill": "≥ 0.65", "first cause": "≥ 90 %", "outcomes": "75–90 %", "mean width": "≤ 25",
    "worst": "≤ 30", "fixed sides": "≤ 4 %",
}  # fmt: skip
FRAMEWORKS = ("triton", "torch")
FEW = 3
"""Fewer studies are no class: they are told together."""
SLACK = 0.005
"""How far outside the interval still counts as inside: what timing does not resolve."""


FAILED = "(failed)"
"""Named first of a launch that explain fails on: nothing was said of it."""


class Patient(Judge):
    """A judge whom one launch that explain fails on does not stop: it counts as one of which nothing was said."""

    def __init__(self, rows: Sequence[Outcome]) -> None:
        super().__init__(rows)
        self.failed: set[int] = set()

    def explained(self, profile: KernelProfile) -> Said:
        """The findings of a launch; none where explain fails, which is told on standard error."""
        try:
            return super().explained(profile)
        except Exception as error:
            print(f"explain failed on {profile.name}: {error!r}", file=sys.stderr)
            self.failed.add(id(profile))
            return Said()


@dataclass(frozen=True)
class Judged:
    """What was predicted of one fix of a study, as shares of the flawed kernel's time; one row of a CSV.

    Attributes:
        fix, causes: the fixed side and what it removes, main cause first; empty for a sound kernel.
        came: what the fix saved, measured.
        predicted, low, high: of these causes together, with the 80 % interval; of a sound kernel nothing came and
            its first finding is what was predicted.
        main: predicted of the main cause alone.
        first: the cause that was named first, and what was promised of it.
        left: promised on the fixed side of causes that no other fix removes with more success.
    """

    study: str
    domain: str
    fix: str
    causes: str
    came: float
    predicted: float
    low: float
    high: float
    main: float
    first: str
    first_saves: float
    left: float

    @property
    def error(self) -> float:
        """Share of the run time."""
        return abs(self.predicted - self.came)

    @property
    def inside(self) -> bool:
        """Whether what came lies in the interval."""
        return self.low - SLACK <= max(0.0, self.came) <= self.high + SLACK


def recordings(folder: Path) -> list[Path]:
    """The recordings of a set, one a card, that of the H200 first."""
    return [path.parent for path in sorted(folder.glob("*/studies.json"), reverse=True)]


@cache
def reports(folder: Path) -> Path:
    """Where a recording's reports lie: beside studies.json, or unpacked from what the recordings of a set share.

    Reports of one program on two GPUs hold the same code: packed together they take a third.
    """
    packed = folder.parent / "reports.tar.xz"
    if any(folder.glob("*.ncu-rep*")):
        return folder
    return _unpacked(packed) / folder.name


@cache
def _unpacked(packed: Path) -> Path:
    place = tempfile.TemporaryDirectory(prefix="gemmprof-studies-")
    atexit.register(place.cleanup)
    unpack(packed, Path(place.name))
    return Path(place.name)


def unpack(packed: Path, place: Path) -> None:
    """Unpack the reports of a set; in pieces larger than Python's own, which take a third more time."""
    with tarfile.open(packed, copybufsize=1 << 18) as archive:
        archive.extractall(place, filter="data")


def _with(profile: KernelProfile, kept: Callable[[str], bool]) -> KernelProfile:
    """The same launch with the metrics of these names alone."""
    return replace(
        profile,
        metrics={name: value for name, value in profile.metrics.items() if kept(name)},
        instances={name: values for name, values in profile.instances.items() if kept(name)},
    )


def without_samples(profile: KernelProfile) -> KernelProfile:
    """The same launch as ncu tells it that sampled no warp and counted no state."""
    sampled = ("pcsamp", "issue_stalled", "average_warp")
    return _with(profile, lambda name: not any(word in name for word in sampled))


def as_basic(profile: KernelProfile) -> KernelProfile:
    """The same launch as ``ncu --set basic`` tells it: what a report recorded with that set holds."""
    return _with(profile, launches(DATA / "partial_basic.ncu-rep.xz")[0].metrics.__contains__)


Strip = Callable[[KernelProfile], KernelProfile]


def studies(
    folder: Path, only: Sequence[str], strip: Strip | None = None
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]], list[Outcome]]]:
    """Each study with those of its fixes that are not much slower, and what each of these saved; all, or these."""
    packed = reports(folder)

    @cache
    def launches_of(report: str) -> Sequence[KernelProfile]:
        found = launches(packed / report)
        return found if strip is None else tuple(map(strip, found))

    for study in listed(folder):
        if only and study["study"] not in only:
            continue
        name, kernel = study["study"], study["kernel"]
        flawed = launches_of(kernel["report"])[kernel["launch"]]
        fixes = [fix for fix in study["fixes"] if fix["time_ns"] <= MUCH_SLOWER * kernel["time_ns"]]
        rows = [
            Outcome(
                name, name, str(study["size"]), "study", tuple(fix["causes"]), flawed,
                launches_of(fix["report"])[fix["launch"]], 1.0 - fix["time_ns"] / kernel["time_ns"],
            )
            for fix in fixes
        ]  # fmt: skip
        yield study | {"flawed": flawed}, fixes, rows


def left(judge: Judge, row: Outcome, rows: Iterable[Outcome]) -> float:
    """What is promised on a fixed side of causes that no other fix removes with more success."""
    better = [one for one in rows if 1 - one.saved < (1 - COSTLY) * (1 - row.saved)]
    still = set(row.causes) - {cause for one in better for cause in one.causes}
    return max((one.saves for one in judge.said(row.mended).of(tuple(still))), default=0.0)


def judged(folder: Path, only: Sequence[str] = (), strip: Strip | None = None) -> list[Judged]:
    """One row a fix, and one a sound kernel; of these studies, or of all."""
    found = []
    for study, fixes, rows in studies(folder, only, strip):
        name, flawed = study["study"], study["flawed"]
        judge = Patient(rows)
        said = [(cause, one.saves) for cause, one in judge.said(flawed).findings]
        first, saves = said[0] if said else (FAILED if id(flawed) in judge.failed else "", 0.0)
        if not study["fixes"]:
            found.append(
                Judged(name, study["domain"], "", "", 0.0, saves, 0.0, saves, saves, first, saves, saves)
            )
        for fix, row in zip(fixes, rows, strict=True):
            one = judge.judge(row)
            found.append(
                Judged(
                    name, study["domain"], fix["side"], " ".join(row.causes), row.saved, one.predicted,
                    max(0.0, one.low), min(1.0, one.high),
                    max((saved for cause, saved in said if cause == row.causes[0]), default=0.0), first, saves,
                    left(judge, row, rows),
                )
            )  # fmt: skip
    return found


def save(rows: Sequence[Judged] | Sequence[Recorded], path: Path) -> None:
    """Write the rows, rounded to a hundredth of a point."""
    pd.DataFrame(rows).to_csv(path, index=False, float_format="%.4f", na_rep="nan", lineterminator="\n")


Row = TypeVar("Row", "Judged", "Recorded")


def load(path: Path, kind: type[Row]) -> list[Row]:
    """The rows of a CSV that `save` wrote."""
    types = {field.name: field.type for field in fields(kind)}
    found = pd.read_csv(path, dtype=types, na_values=["nan"], keep_default_na=False)
    return [kind(**row) for row in found.to_dict("records")]


def listed(folder: Path) -> list[dict[str, Any]]:
    """The studies of a recording."""
    found: list[dict[str, Any]] = json.loads((folder / "studies.json").read_text("utf-8"))["studies"]
    return found


def by_study(rows: Iterable[Judged]) -> list[list[Judged]]:
    """The rows of each flawed study, the nearer fix first."""
    flawed = [row for row in rows if row.fix]
    return [sorted(group, key=lambda row: row.error) for _, group in groupby(flawed, lambda row: row.study)]


def named(study: Sequence[Judged]) -> bool:
    """Whether the cause named first is one of the study's."""
    return study[0].first in {cause for row in study for cause in row.causes.split()}


def costly(studies: Iterable[Sequence[Judged]]) -> list[Sequence[Judged]]:
    """The studies whose best fix saves enough."""
    return [study for study in studies if max(row.came for row in study) >= COSTLY]


def slower(row: Judged, rows: Iterable[Judged]) -> bool:
    """Whether another fix of the study is faster by more than 5 %: there was more to gain, whatever it was."""
    others = (1.0 - one.came for one in rows if one.study == row.study)
    return min(others) < (1.0 - COSTLY) * (1.0 - row.came)


def constant_error(studies: Sequence[Sequence[Judged]]) -> float:
    """Mean error of the best constant guess, judged by the nearer fix, too; chosen on the other studies."""
    guesses = [percent / 100 for percent in range(101)]
    errors = [[min(abs(guess - row.came) for row in study) for guess in guesses] for study in studies]
    sums = [sum(column) for column in zip(*errors, strict=True)]
    chosen = [min(range(101), key=lambda at, mine=mine: sums[at] - mine[at]) for mine in errors]  # type: ignore[misc]
    return statistics.fmean(mine[at] for mine, at in zip(errors, chosen, strict=True))


def figures(rows: Sequence[Judged]) -> dict[str, str]:
    """The figures of these predictions by name, as the page shows them."""
    studies = by_study(rows)
    nearer = [study[0] for study in studies]
    error, constant = statistics.fmean(row.error for row in nearer), constant_error(studies)
    main = statistics.fmean(min(abs(row.main - row.came) for row in study) for study in studies)
    first = statistics.fmean(min(abs(row.first_saves - row.came) for row in study) for study in studies)
    sound, fixed = [row for row in rows if not row.fix], [row for row in rows if row.fix]
    dear = costly(studies)
    promised = [row for row in fixed if row.left > COSTLY]
    return {
        "studies": str(len(studies)),
        ERROR: f"{100 * error:.1f}",
        "… of the main cause alone, points": f"{100 * main:.1f}",
        "… of what was named first, whatever it was, points": f"{100 * first:.1f}",
        "… over every fix, points": f"{100 * statistics.fmean(row.error for row in fixed):.1f}",
        "best constant, points": f"{100 * constant:.1f}",
        SKILL: f"{1 - error / constant:.2f}",
        RIGHT: f"{sum(map(named, dear))} of {len(dear)}",
        INSIDE: f"{100 * statistics.fmean(row.inside for row in nearer):.0f} %",
        "mean width of the interval, points": f"{100 * statistics.fmean(row.high - row.low for row in nearer):.0f}",
        "worst, points": f"{100 * max(row.error for row in nearer):.0f}",
        "sound kernels promised > 5 points": f"{sum(row.predicted > COSTLY for row in sound)} of {len(sound)}",
        "fixed sides still promised > 5 points": f"{len(promised)} of {len(fixed)}",
        "… of them those that another fix is faster than": str(sum(slower(row, fixed) for row in promised)),
    }


def classes(
    studies: Sequence[Sequence[Judged]], key: Callable[[Judged], str]
) -> dict[str, list[Sequence[Judged]]]:
    """The studies by what ``key`` says of their first fix as it is written; small classes together, last."""
    found = grouped((key(study[0]), study) for study in studies)
    large = {name: found[name] for name in sorted(found) if len(found[name]) >= FEW}
    rest = [study for name in found.keys() - large.keys() for study in found[name]]
    return large | ({"all others": rest} if rest else {})


Table = tuple[str, list[tuple[object, ...]]]
"""Head and rows, as `recording.table_of` takes them."""
ByCard = dict[str, list[Judged]]


def table(first: ByCard, today: ByCard) -> Table:
    """The figures at first sight and today, a column a card; on a card without a first sight only today's."""
    columns = {}
    for card, rows in today.items():
        if card in first:
            columns[f"{card.upper()}, first sight"] = figures(first[card])
        columns[f"{card.upper()}, today"] = figures(rows)
    lines: list[tuple[object, ...]] = []
    for name in next(iter(columns.values())):
        aim = next((aim for start, aim in AIMS.items() if name.startswith(start)), "")
        lines.append((name, aim, *(column[name] for column in columns.values())))
    return " | aim> | " + " | ".join(f"{column}>" for column in columns), lines


@cache
def _of_frameworks() -> frozenset[str]:
    """Studies that a Python program runs."""
    recorded = (study for folder in FOLDERS for card in recordings(folder) for study in listed(card))
    return frozenset(study["study"] for study in recorded if study["file"].endswith("frameworks"))


def language(row: Judged) -> str:
    """What the study's kernels are written in: what a Python program runs is Triton's, unless named otherwise."""
    if row.study.startswith(FRAMEWORKS):
        return row.study.split("_")[0]
    return "triton" if row.study in _of_frameworks() else "CUDA"


def where(rows: Sequence[Judged]) -> Table:
    """The table of classes: where the error of these predictions lies."""
    lines: list[tuple[object, ...]] = []
    studies = list(grouped((row.study, row) for row in rows if row.fix).values())
    kinds = {
        "main cause": classes(studies, lambda row: row.causes.split()[0]),
        "where they run": classes(studies, lambda row: row.domain),
        "language": classes(studies, language),
    }
    for kind, found in kinds.items():
        for name, members in found.items():
            off = [one.predicted - one.came for one in (study[0] for study in by_study(chain(*members)))]
            dear = costly(members)
            wrong = sum(one < -0.1 for one in off), sum(one > 0.1 for one in off)
            mean, right = (
                f"{100 * statistics.fmean(map(abs, off)):.1f}",
                f"{sum(map(named, dear))} of {len(dear)}",
            )
            lines.append((kind, name, len(members), mean, *wrong, right))
    return "studies by | class | studies> | mean error> | too low> | too high> | first cause right>", lines


def unopened(study: str) -> bool:
    """Whether a study belongs to the half whose kernels and predictions nobody has looked at one by one."""
    return hashlib.sha256(study.encode()).digest()[-1] % 2 == 0


def halves(first: ByCard, today: ByCard) -> Table:
    """What rules that were changed with one half of the set in sight brought on the other."""
    lines: list[tuple[object, ...]] = []
    for half, of in (("half in sight", False), ("other half", True)):
        columns = [
            figures([row for row in rows[card] if unopened(row.study) == of])
            for card in first
            for rows in (first, today)
        ]
        lines += [(f"{half}: {name}", *(column[name] for column in columns)) for name in (ERROR, SKILL)]
    cards = (f"{card.upper()}, first sight> | {card.upper()}, today>" for card in first)
    return " | " + " | ".join(cards), lines


def expected(today: dict[Path, ByCard]) -> Table:
    """What is told today of all halves that nobody looks at, by language: what the next kernel may expect."""
    everything = ((card, row) for folder in HALVED for card, rows in today[folder].items() for row in rows)
    kept = grouped((card, row) for card, row in everything if unopened(row.study))
    names = ("studies", ERROR, SKILL, RIGHT, INSIDE)
    lines: list[tuple[object, ...]] = []
    for card, rows in kept.items():
        found = {of: [row for row in rows if language(row) == of] for of in ("CUDA", "triton")}
        for of, members in {"all": rows, **found}.items():
            shown = figures(members)
            lines.append((card.upper(), of, *(shown[name] for name in names)))
    return " |  | " + " | ".join(f"{name}>" for name in names), lines


@dataclass(frozen=True)
class Recorded:
    """What the time model alone said of one fix of a study, and what came; one row of a CSV.

    Attributes:
        room: share of the flawed kernel's time that has no reason to stay.
        said: saving; not a number of a fix whose cause was not named.
        stays: share of the executed instructions that the fix keeps, as the model sees it.
        misfit: how far the model is off the flawed kernel's own time.
        came: what it saved.
        left, left_room: what is still predicted on the fixed side, and its room. Nothing more came.
    """

    study: str
    fix: str
    room: float
    said: float
    stays: float
    misfit: float
    came: float
    left: float = 0.0
    left_room: float = 0.0


def recorded(folder: Path) -> list[Recorded]:
    """What the time model alone says of a set, as it is today."""
    half = folder.parent in HALVED
    found = []
    for study, fixes, rows in studies(folder, ()):
        if half and unopened(study["study"]):
            continue
        judge, model = Judge(rows, calibrated=False), TimeModel(work(study["flawed"]))
        for fix, row in zip(fixes, rows, strict=True):
            mine = judge.said(row.flawed).of(row.causes)
            found.append(
                Recorded(
                    study["study"], fix["side"], prediction.room(model) or 0.0,
                    judge.judge(row).predicted if mine else math.nan, math.prod(one.stays for one in mine),
                    model.misfit, row.saved, left(judge, row, rows),
                    prediction.room(TimeModel(work(row.mended))) or 0.0,
                )
            )  # fmt: skip
    return found


class Records:
    """Studies of one set, as arrays with one entry a fix."""

    def __init__(self, of: Sequence[Recorded]) -> None:
        self.room, self.said, self.stays, self.misfit, self.came, self.left, self.left_room = np.array(
            [(one.room, one.said, one.stays, one.misfit, one.came, one.left, one.left_room) for one in of]
        ).T
        self.named = np.isfinite(self.said)
        self.said = np.nan_to_num(self.said)
        self.starts = [at for at, one in enumerate(of) if not at or one.study != of[at - 1].study]

    def off(self, told: Calibration) -> tuple[float, float]:
        """Mean error of the fixes that come nearer to what is told of them; the same of what is told of fixed sides."""
        saves = np.where(self.named, told.of_new_kernels(self.said, self.room)[0], 0.0)
        nearer = np.minimum.reduceat(abs(saves - self.came), self.starts)
        false = np.where(self.left > 0, told.of_new_kernels(self.left, self.left_room)[0], 0.0)
        return float(nearer.mean()), float(false.mean())

    def held(self, told: Calibration) -> tuple[int, int, float, float]:
        """Outcomes inside the interval, outcomes whose cause was named, mean width, and the interval's score: its width
        and 2 / `MISSED` times what lies outside (Gneiting and Raftery 2007, 6.2). The nearer fixes'.
        """
        saves, low, high = told.of_new_kernels(self.said, self.room, self.stays, self.misfit)
        off = abs(np.where(self.named, saves, 0.0) - self.came)
        ends = [*self.starts[1:], len(off)]
        mine = [start + int(off[start:end].argmin()) for start, end in zip(self.starts, ends, strict=True)]
        mine = [at for at in mine if self.named[at]]
        came = np.maximum(0.0, self.came[mine])
        outside = np.maximum(0.0, np.maximum(low[mine] - came, came - high[mine]) - SLACK)
        width = float((high - low)[mine].mean())
        return int((outside == 0).sum()), len(mine), width, width + 2.0 / MISSED * float(outside.mean())


@cache
def records() -> dict[tuple[str, str], list[Recorded]]:
    """What the time model said at first sight, by set and card."""
    paths = [path for folder in FOLDERS for path in sorted(folder.glob(f"*/{MODEL}"), reverse=True)]
    return {(path.parent.parent.name, path.parent.name): load(path, Recorded) for path in paths}


@cache
def tried() -> list[Recorded]:
    """What the time model said of statements that were tried, when they were drawn, and what came."""
    return [
        Recorded(f"{one['study']}, {one['side']}", one["cause"], came=came(one)[1] / 100, **one["model"])
        for path in sorted(TRIED.glob(f"*/{STATEMENTS}"))
        for one in json.loads(path.read_text("utf-8"))["statements"]
    ]


CARD = "h200"
"""The card that recorded every kernel of the sets that the interval is learnt from."""
FIXED = 0.3
"""Weight of what is told of fixed kernels beside the error of flawed ones. Alike, they take small savings from kernels
that are nearly done, of which the corpus has few: on the ladders those came true."""
MISSED = 0.2
"""Share of the outcomes that may lie outside of their interval."""


def _steps(first: int, last: int) -> list[float]:
    return [step / 20 for step in range(first, last + 1)]


def learnt(of: Iterable[Sequence[Recorded]], beside: Sequence[Recorded] = ()) -> Calibration:
    """The numbers with the least error, of flawed kernels and of fixed ones; then the interval with the best score, of
    what was tried ``beside``, too. Each set counts alike, however many kernels it has.
    """
    sets = [Records(one) for one in of]
    others = [Records(beside)] if beside else []

    def least(
        sets: Sequence[Records],
        numbers: Iterable[tuple[float, ...]],
        make: Callable[..., Calibration],
        cost: Callable[[Records, Calibration], float],
    ) -> Calibration:
        return min((make(*one) for one in numbers), key=lambda told: sum(cost(mine, told) for mine in sets))

    told = least(
        sets,
        product(_steps(0, 20), _steps(0, 10), _steps(1, 12)),
        lambda *numbers: Calibration(*numbers, 0.0, 0.0, 0, 0),
        lambda mine, told: mine.off(told)[0] + FIXED * mine.off(told)[1],
    )
    return least(
        [*sets, *others],
        product([step / 100 for step in range(21)], _steps(0, 20)),
        lambda down, up: replace(told, down=down, up=up),
        lambda mine, told: mine.held(told)[3],
    )


def learn() -> tuple[Calibration, Table]:
    """The calibration, and the table of how each set fares with what is learnt on the others."""
    everything = records()
    head = (
        "left out | studies> | mean error, model alone> | calibrated> | told of fixed sides, model alone> "
        "| calibrated> | inside> | width, points>"
    )
    lines: list[tuple[object, ...]] = []
    alone = Calibration(0.0, 0.0, 1e-9, 0.0, 0.0, 0, 0)
    both = {**everything, ("tried", "h100"): tried()}

    def learnt_without(name: str) -> Calibration:
        """What all others teach."""
        others = [rows for (other, card), rows in everything.items() if other != name and card == CARD]
        return learnt(others, () if name == "tried" else tried())

    without = {name: learnt_without(name) for name in dict.fromkeys(name for name, _ in both)}
    for (name, card), rows in both.items():
        mine, told = Records(rows), without[name]
        before, after, held = mine.off(alone), mine.off(told), mine.held(told)
        errors = (f"{100 * of[at]:.1f}" for at in (0, 1) for of in (before, after))
        inside = f"{held[0]} of {held[1]}", f"{100 * held[2]:.0f}"
        lines.append((f"{name}, {card.upper()}", len(mine.starts), *errors, *inside))
    everywhere = learnt_without("")
    since = seen_since({name for name, _ in everything})
    counted = replace(everywhere, inside=sum(row.inside for row in since), of=len(since))
    return counted, (head, lines)


def seen_since(known: Collection[str]) -> list[Judged]:
    """What was said at first sight of the studies of all other sets, on both cards: of each whose cause was named, the
    fix that came nearer.
    """
    paths = (
        path
        for folder in FOLDERS
        if folder.name not in known
        for path in sorted(folder.glob(f"*/{FIRST_SIGHT}"))
    )
    nearer = (study[0] for path in paths for study in by_study(load(path, Judged)))
    return [row for row in nearer if row.predicted > 0]


REMOVES = {
    "coalesced": "uncoalesced_access: neighbouring threads", "shared": "redundant_loads: tile in shared memory",
    "block1d": "shared_memory_bandwidth", "block2d": "shared_memory_bandwidth", "vectorized": "narrow_access",
    "linearized": "shared_bank_conflicts", "padded": "shared_bank_conflicts", "autotuned": "shared_memory_bandwidth",
    "warptiled": "shared_memory_bandwidth", "double_buffered": "memory_latency: two tiles in turn",
    "async_copy": "memory_latency: asynchronous copies", "hgemm_wmma": "tensor_cores_idle",
    "hgemm_mma": "shared_bank_conflicts", "hgemm_async_copy": "memory_latency: asynchronous copies",
    "hgemm_wgmma": "warp_level_mma", "hgemm_specialized": "barriers", "hgemm_clusters": "cache_locality",
    "hgemm_staged": "uncoalesced_access", "hgemm_stream_k": "workload_imbalance", "hgemm_tiles": "workload_imbalance",
    "hgemm_split_k": "small_grid",
}  # fmt: skip
"""The cause that each stage's idea removes from the stage before, with the start of the rewrite's name where the cause
has several, read from the ideas and not from what is found. Stages of several ideas at once have none. Tiles by shape
come after a grid that fills the GPU: its SMs have unequal shares.
"""


def rungs_of(session: Session, *problems: Problem) -> dict[tuple[str, Problem], list[Rung]]:
    """The stages of a run that were timed and explained, by ladder and problem: of these, or of all."""
    assert session.run is not None
    rungs: dict[tuple[str, Problem], list[Rung]] = defaultdict(list)
    for result in session.run.results:
        kernel, stage = session.kernel_for(result), session.run.record_of(result).stage
        if stage.yardstick or (problems and result.problem not in problems):
            continue
        if kernel and kernel.explanation and result.timing:
            rungs[stage.ladder, result.problem].append(Rung(stage, kernel.explanation, result.timing))
    return rungs


def of_the_ladders() -> dict[str, Any]:
    """Whether what each stage of the recorded run does was named on the stage before, and what was predicted of it: a
    row a step, and of those that brought much how many were named, and how many came as predicted.
    """
    rows = []
    counted: Counter[str] = Counter()
    for (ladder, problem), mine in rungs_of(load_session([recorded_run_directory()])).items():
        for rung, step in zip(mine, ladder_steps(mine), strict=False):
            removes = REMOVES.get(step.after.name, "–")
            cause, _, rewrite = removes.partition(": ")
            found = (*rung.explanation.findings, *rung.explanation.other_arithmetic)
            written = (way for one in found if one.cause == cause for way in one.variants)
            said = next((way for way in written if way.name.startswith(rewrite)), None)
            low, high = (said.saves_low, said.saves_high) if said else (0.0, UNNAMED)
            held = low - SLACK <= max(0.0, step.came_out) <= high + SLACK
            if step.came_out >= COSTLY:
                counted.update({"named": said is not None, "inside": held, "of": 1})
            told = f"{100 * said.saves:.0f} % ({100 * low:.0f} to {100 * high:.0f})" if said else "–"
            came = "yes" if said else "no", told, f"{100 * step.came_out:.0f} %"
            rows.append((f"{ladder}, {problem.label}", step.after.title, removes, *came))
    return {"rows": rows, **counted}


WITH_CODE = ("tests/data", "tests/data/pairs", "tests/data/variants/h200", "docs/examples/recorded")


def _addresses() -> tuple[int, Counter[tuple[str, str]]]:
    """Launches with code and counters, and their accesses by space and what is known: shares of each launch's."""
    count = 0
    found: Counter[tuple[str, str]] = Counter()
    for folder in WITH_CODE:
        for path in sorted(reports(ROOT / folder).glob("*.ncu-rep*")):
            try:
                profiles = read_report(path)
            except GemmprofError:
                continue
            for profile in profiles:
                made = work(profile)
                known = checked_forms(made)
                if not known:
                    continue
                count += 1
                for space in ("global", "shared"):
                    mine = [one for one in known.values() if one.form.space == space]
                    whole = sum(made.executed[one.form.index] for one in mine)
                    found[space, ""] += bool(mine)  # type: ignore[assignment]
                    for one in mine:
                        what = one.form.kind if one.form.kind in (RUNS, LOOK_UP, UNKNOWN) else one.verdict
                        found[space, what] += made.executed[one.form.index] / whole
    return count, found


ADDRESSES = {
    "exact": "a form that predicts the counted sectors and lines (passes) within 2 %",
    "agrees": "a form between whose bounds the counts lie (unknown start, guarded or partly filled warps)",
    RUNS: "runs: each lane walks on from a place that was loaded before its loop",
    LOOK_UP: "a look-up: the place comes from a loaded value",
    UNKNOWN: "not known",
    "open": "a form of which nothing was counted that could confirm it; not used",
    "contradicted": "a form that the counts contradict; not used",
}
"""What may be known of an address, in words."""


def taken_by_others(today: dict[Path, ByCard]) -> dict[str, Any]:
    """What no report of the flawed kernel tells: how many fixes take several launches; and the errors of torch's fixes
    by another kernel of the library, and by the same one.
    """
    several, another, same = 0, list[float](), list[float]()
    for folder, cards in today.items():
        card, rows = next(iter(cards.items()))
        sides = {(row.study, row.fix): row.error for row in rows}
        for study in listed(folder / card):
            flawed = study["kernel"]
            for fix in study["fixes"]:
                several += fix["launches"] > 1
                error = sides.get((study["study"], fix["side"]))
                if study["study"].startswith("torch") and error is not None:
                    kernels = {_kernel(folder / card, side) for side in (flawed, fix)}
                    (another if len(kernels) > 1 else same).append(error)
    return {"several": several, "another": another, "same": same}


def _kernel(folder: Path, side: dict[str, Any]) -> str:
    """The kernel's name without what it was instantiated for."""
    name = launches(reports(folder) / side["report"])[side["launch"]].name
    return name.partition("<(")[0].partition("<float")[0]


def shown() -> dict[str, Any]:
    """What docs/explain_scores.md shows of studies, ladders and addresses: what came of the first sight, what is
    predicted today, and where the error lies.
    """
    today: dict[Path, ByCard] = {}
    first: dict[Path, ByCard] = {}
    for folder in FOLDERS:
        cards = recordings(folder)
        today[folder] = {path.name: judged(path) for path in cards}
        seen = {path.name: path / FIRST_SIGHT for path in cards if (path / FIRST_SIGHT).exists()}
        first[folder] = {card: load(path, Judged) for card, path in seen.items()}
    card, *others = first[BLIND]
    mine = figures(first[BLIND][card])
    other = figures(first[BLIND][others[0]]) if others else {}
    count, known = _addresses()
    spaces = ("global", "shared")
    return {
        "set": BLIND.name,
        "names": (ERROR, SKILL, RIGHT, INSIDE),
        "card": card,
        "shown": mine,
        "other": other,
        "elsewhere": f"{other['studies']} of them on an {others[0].upper()}: " if other else "",
        "out": sum(bool(study["fixes"]) for study in listed(BLIND / card)) - int(mine["studies"]),
        "failed": len({one.study for one in first[BLIND][card] if one.first == FAILED}),
        "figures": {folder.name: table(first[folder], today[folder]) for folder in FOLDERS},
        "halves": {folder.name: halves(first[folder], today[folder]) for folder in HALVED},
        "expected": expected(today),
        **taken_by_others(today),
        "where": where(first[BLIND][card]),
        "calibration": learn()[1],
        "steps": of_the_ladders(),
        "with_code": count,
        "addresses": [
            (text, *(f"{100 * known[of, key] / known[of, '']:.1f} %" for of in spaces))
            for key, text in ADDRESSES.items()
        ],
    }


def main() -> int:
    """Explain every launch once and write the rows."""
    parser = options_of(__doc__)
    parser.add_argument(
        "--data", type=Path, default=recordings(BLIND)[0], help="folder with studies.json and the reports"
    )
    parser.add_argument("--model", action="store_true", help="what the time model alone says, to learn from")
    parser.add_argument(
        "--without-samples",
        action="store_true",
        help="of reports whose warps were not sampled, nor their states counted",
    )
    parser.add_argument("--basic", action="store_true", help="of reports collected with --set basic")
    parser.add_argument("--learn", action="store_true", help="write calibration.json instead")
    parser.add_argument("output", type=Path, nargs="?", help="where the rows go")
    options = parser.parse_args()
    if options.learn:
        told, text = learn()
        path = Path(prediction.__file__).with_name("calibration.json")
        path.write_text(json.dumps(asdict(told)) + "\n", "utf-8")
        print("\n".join([*table_of(*text), f"{path}: {told}"]))
        return 0
    if options.output is None:
        parser.error("say where the rows go, or --learn")
    if options.model:
        save(recorded(options.data), options.output)
        return 0
    strip = as_basic if options.basic else without_samples if options.without_samples else None
    save(judged(options.data, strip=strip), options.output)
    for name, figure in figures(load(options.output, Judged)).items():
        print(f"{name:50} {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
