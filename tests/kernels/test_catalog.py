from __future__ import annotations

import re

import pytest

from gemmprof.kernels.catalog import LADDERS, all_variants
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
