"""The predictions, judged by the corpus of pairs: docs/explain_scores.md is current and reaches its
figures.
"""

from __future__ import annotations

import importlib
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scale import inputs

from gemmprof.analysis.explanation import prediction

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def scores() -> ModuleType:
    return importlib.import_module("score_pairs")


@pytest.fixture(scope="module")
def studies(scores: ModuleType) -> ModuleType:
    """score_studies.py, which the page's first part comes from."""
    return importlib.import_module("score_studies")


@pytest.mark.campaign
def test_the_page_is_current(scores: ModuleType) -> None:
    rows = scores.corpus(scores.DATA)
    assert scores.written(rows) == scores.PAGE.read_text("utf-8"), "run tools/score_pairs.py"


@pytest.mark.campaign
def test_the_calibration_is_what_the_records_say(studies: ModuleType) -> None:
    assert studies.learn()[0] == prediction.calibration(), "run tools/score_studies.py --learn"


def recorded(
    studies: ModuleType, room: float, *fixes: tuple[float, float], times: int = 1, **more: float
) -> list[Any]:
    """As many studies with these fixes, each with what the model says of it and what came."""
    said = {"stays": 1.0, "misfit": 0.0, **more}
    return [
        studies.Recorded(str(study), "fix", room, saves, came=came, **said)
        for study in range(times)
        for saves, came in fixes
    ]


@pytest.mark.campaign
def test_a_calibration_is_learnt_from_what_fell_short(studies: ModuleType) -> None:
    """All of the room in one set and half of the way there in the other, which has fewer kernels and counts alike."""
    several = recorded(studies, 1.0, (0.4, 1.0), times=9)
    other = recorded(studies, 1.0, (0.4, 0.7), (math.nan, 0.95))
    assert studies.learnt([several]).part == 1.0
    # Any part between would do as well for both, and the least is taken; by kernels it would be all.
    assert studies.learnt([several, other]).part == 0.5
    # Nothing is told of a fix whose cause was not named.
    assert studies.Records(recorded(studies, 0.6, (math.nan, 0.1))).off(prediction.calibration()) == (
        pytest.approx(0.1), 0.0,
    )  # fmt: skip
    # What is still predicted of fixed kernels makes small savings where there is little room doubtful.
    fixed = recorded(studies, 0.9, (0.8, 0.8), times=9, left=0.1, left_room=0.05)
    told = studies.learnt([fixed])
    assert told.of_new_kernels(0.1, 0.05)[0] < 0.05 and told.of_new_kernels(0.8, 0.9)[0] >= 0.8
    # The interval holds what came of four in five, no more; where all instructions go, nothing comes on top.
    spread = [one for step in range(10) for one in recorded(studies, 0.0, (0.5, 0.5 + step / 40))]
    spread = [replace(one, study=str(at)) for at, one in enumerate(spread)]
    told = studies.learnt([spread])
    inside, of, width, score = studies.Records(spread).held(told)
    assert 8 <= inside <= 10 == of and width <= score < 0.35
    gone = studies.Records([replace(one, stays=0.0) for one in spread])
    assert gone.held(told)[0] < inside


def test_what_the_model_says_today_can_be_learnt_from(studies: ModuleType) -> None:
    """What is learnt from holds every fix of the studies that may be looked at, with what came of it."""
    for (name, card), rows in studies.records().items():
        folder = studies.DATA / name / card
        came = {
            (one.study, one.fix): one.came
            for one in studies.load(folder / studies.FIRST_SIGHT, studies.Judged)
        }
        assert all(one.came == pytest.approx(came[one.study, one.fix], abs=2e-4) for one in rows)
        halved = len({one.study for one in rows}) < len({study for study, fix in came if fix})
        assert not halved or not any(studies.unopened(one.study) for one in rows)


def test_the_figures_are_reached(scores: ModuleType, studies: ModuleType) -> None:
    """What is not reached yet stands in docs/explain.md and may not get worse."""
    seen, _, text = scores.PAGE.read_text("utf-8").partition("## Pairs")

    def figures(name: str) -> list[float]:
        row = next(line for line in text.splitlines() if line.startswith(f"| {name}"))
        return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", row.split("|")[3])]

    # What is told is calibrated by kernels as people write them: a planted flaw alone brings less (docs/explain.md).
    assert figures("mean error")[0] <= 9
    assert figures("skill")[0] >= 0.65
    # A product in Triton whose operands go to tensor cores by one word, its tiles as they were (84 told, 12 came); rows
    # of a small matrix (matvec_rows, two_matvec): the mend that was timed keeps its few warps; lanes along a row, which
    # are told there, were not tried.
    assert figures("worst")[0] <= 72
    # Intervals are learnt from kernels as people write them, not from pairs, of which more were inside before that.
    assert 70 <= figures("outcomes inside")[0] <= 90
    right, of = figures("cause named first")
    assert right >= 0.87 * of
    alarms, of = figures("still promised")
    assert alarms <= 0.08 * of
    # The studies as they are predicted today may not come out worse than at first sight: all sets. Of the newest, which
    # stands first, of blind25 and blind28 nobody has seen what changed (of blind28's half in sight nothing did, the
    # other moved by 0.06 points): there three tenths of a point are chance.
    lines = [line for line in seen.splitlines() if line.startswith("| mean error")]
    assert len(lines) == len(studies.SETS)
    unseen = studies.BLIND, studies.DATA / "blind25", studies.DATA / "blind28"
    for folder, line in zip(studies.FOLDERS, lines, strict=True):
        then, today = (float(cell) for cell in line.split("|")[3:5])
        assert today <= then + (0.35 if folder in unseen else 0.0)


def row(studies: ModuleType, study: str, fix: str, came: float, **said: object) -> object:
    """A row of which nothing was said but this."""
    nothing = dict.fromkeys(("predicted", "low", "high", "main", "first_saves", "left"), 0.0)
    return studies.Judged(
        **{"study": study, "domain": "d", "fix": fix, "came": came, "first": "", **nothing, **said}
    )


def test_a_study_is_judged_by_the_nearer_fix(studies: ModuleType) -> None:
    rows = [
        row(studies, "a", "tile", 0.9, causes="barriers", predicted=0.5, low=0.4, high=0.6, first="local_memory"),
        row(studies, "a", "shuffles", 0.6, causes="local_memory", predicted=0.5, low=0.4, high=0.6, left=0.2,
            first="local_memory"),
        row(studies, "b", "tile", 0.2, causes="barriers", first="small_grid"),
        row(studies, "sound", "", 0.0, causes="", predicted=0.06),
    ]  # fmt: skip
    found = list(studies.figures(rows).values())
    # Errors 0.1 and 0.2; the best constant is 0.2 of the other for a, 0.6 or 0.9 for b.
    assert found[:2] == ["2", "15.0"] and found[4] == f"{100 * (0.1 + 0.4 + 0.2) / 3:.1f}"
    assert found[5:8] == ["40.0", f"{1 - 15 / 40:.2f}", "1 of 2"]
    assert found[8:] == ["50 %", "10", "20", "1 of 1", "1 of 3", "1"]


def test_a_few_studies_are_judged_from_their_reports(studies: ModuleType) -> None:
    """The page's way, in miniature: of what was measured, and of a sound kernel nothing that counts."""
    folder = studies.DATA / "variants" / "h200"
    then = {(one.study, one.fix): one for one in studies.load(folder / studies.FIRST_SIGHT, studies.Judged)}
    now = studies.judged(folder, ("rgb_to_grey_bytes", "sound_axpy"))
    assert {one.fix for one in now} == {"staged", "words", ""}
    for one in now:
        seen = then[one.study, one.fix]
        assert (one.domain, one.causes) == (seen.domain, seen.causes) and one.came == pytest.approx(
            seen.came, abs=6e-5
        )
        assert one.low <= one.predicted <= one.high
        assert (one.predicted > studies.COSTLY) == bool(one.fix), one


def test_studies_without_their_samples_are_told_nearly_as_well(studies: ModuleType) -> None:
    """What waits for what follows from the code and its counters; latency that shrank with nothing was far off."""
    folder = studies.DATA / "blind8" / "h200"
    everyone = [one["study"] for one in json.loads((folder / "studies.json").read_text("utf-8"))["studies"]]
    some = everyone[:: inputs(6, 1)]
    nearer = {
        strip: [study[0].error for study in studies.by_study(studies.judged(folder, some, strip))]
        for strip in (None, studies.without_samples)
    }
    full, stripped = (sum(errors) / len(errors) for errors in nearer.values())
    assert stripped < full + 0.03


@pytest.mark.parametrize(
    "sight",
    sorted((ROOT / "tests" / "data").glob("*/*/first_sight.csv")),
    ids=lambda path: "_".join(path.parts[-3:-1]),
)
def test_first_sight_holds_what_was_measured(studies: ModuleType, sight: Path) -> None:
    """Every fix that is no slower is judged, against the times of studies.json."""
    recorded = json.loads((sight.parent / "studies.json").read_text("utf-8"))["studies"]
    came = {
        (study["study"], fix["side"]): 1 - fix["time_ns"] / study["kernel"]["time_ns"]
        for study in recorded
        for fix in study["fixes"] or [study["kernel"] | {"side": ""}]
        if fix["time_ns"] <= 1.05 * study["kernel"]["time_ns"]  # one of blind9 takes just so long
    }
    seen = {(one.study, one.fix): one.came for one in studies.load(sight, studies.Judged)}
    assert seen == pytest.approx(came, abs=6e-5)
    assert len(seen) > 10
