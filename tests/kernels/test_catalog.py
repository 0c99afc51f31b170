from __future__ import annotations

import re

from gemmprof.kernels.catalog import STAGES, all_variants
from gemmprof.kernels.compiler import SOURCES, source_closure


def test_numbers_and_names_are_unique_and_in_order():
    numbers = [stage.number for stage in STAGES]
    assert sorted(set(numbers)) == sorted(numbers)
    names = [variant.name for variant in all_variants()]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)


def test_every_source_is_a_stage_and_says_which():
    for stage in STAGES:
        if stage.source is None:
            continue
        text = (SOURCES / stage.source).read_text(encoding="utf-8")
        assert re.match(rf"// Stage {stage.number}, ", text), (
            f"{stage.source} does not begin with its stage's number"
        )


def test_every_parameter_is_read_by_its_source():
    """A letter in the catalog that no source reads would be a number that means nothing."""
    for variant in all_variants():
        text = "".join(path.read_text(encoding="utf-8") for path in source_closure(SOURCES / variant.source))
        for letter in variant.parameters:
            assert re.search(rf"\b{letter}\b", text), f"{variant.name}: {letter}"
