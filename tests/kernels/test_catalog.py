from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import pairwise

import pytest
from recorded_data import ROOT

from gemmprof.kernels.catalog import HALF, LADDERS, all_variants
from gemmprof.kernels.compiler import SOURCES, source_closure

EVERY = [stage for ladder in LADDERS for stage in ladder.stages]


@pytest.mark.parametrize("ladder", LADDERS, ids=lambda ladder: ladder.name)
def test_numbers_count_up_and_one_stage_is_the_yardstick(ladder):
    numbers = [stage.number for stage in ladder.stages]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert [stage.yardstick for stage in ladder.stages].count(True) == 1
    assert ladder.yardstick.source is None
    assert all(
        stage.ladder == ladder.name and set(stage.dtypes) <= set(ladder.dtypes) for stage in ladder.stages
    )


def test_names_are_unique_over_all_ladders():
    names = [variant.name for variant in all_variants()]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)


def test_every_source_is_a_stage_and_says_which():
    for stage in EVERY:
        if stage.source is None:
            continue
        text = (SOURCES / stage.source).read_text(encoding="utf-8")
        head = text.partition("//\n")[0]
        assert re.search(rf"^// Stage {stage.number}, ", head, re.MULTILINE), (
            f"{stage.source} names no {stage.number}"
        )


def test_every_parameter_is_read_by_its_source():
    """A letter in the catalog that no source reads would be a number that means nothing."""
    for variant in all_variants():
        text = "".join(path.read_text(encoding="utf-8") for path in source_closure(SOURCES / variant.source))
        text = re.sub(
            r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL
        )  # a comment that names a letter reads nothing
        for letter in variant.parameters:
            assert re.search(rf"\b{letter}\b", text), f"{variant.name}: {letter}"


LINES = 130
LANDINGS = {"hgemm_fastest", "fastest"}
"""Stages of many ideas, read by the order that their notes give (docs/fastest_hgemm.md)."""


def code_of(stage):
    """Lines of a stage's source and its ladder's headers, without comments and the stage's own name."""
    files = (file for file in source_closure(SOURCES / stage.source) if file.parent.name != "include")
    lines = (re.sub(r"\s*//.*", "", line) for file in files for line in file.read_text("utf-8").splitlines())
    return [line.replace(stage.name, "STAGE") for line in lines if line.strip() and "#include" not in line]


def added_lines(ladder):
    """By name of a stage: how many lines it has that the stage before has not."""
    stages = [stage for stage in ladder.stages if stage.source]
    changes = {
        after.name: SequenceMatcher(None, code_of(before), code_of(after), autojunk=False).get_opcodes()
        for before, after in pairwise(stages)
    }
    return {
        name: sum(stop - start for what, _, _, start, stop in found if what != "equal")
        for name, found in changes.items()
    }


def test_a_rung_is_a_step_that_can_be_read():
    for ladder in LADDERS:
        for name, added in added_lines(ladder).items():
            assert (added <= LINES) != (name in LANDINGS), f"{name} adds {added} lines"


def test_the_documented_steps_are_those_of_the_code():
    cells = [str(added) for name, added in added_lines(HALF).items() if name not in LANDINGS]
    assert f"| added | {' | '.join(cells)} |" in (ROOT / "docs/fastest_hgemm.md").read_text("utf-8")
