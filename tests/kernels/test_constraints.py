"""Tile parameters: the constraints as read from the sources are the ones the compiler enforces."""

from __future__ import annotations

import random
import re

import pytest
from scale import few, inputs

from gemmprof.base.errors import BuildError
from gemmprof.kernels.catalog import TUNING_VALUES, all_variants
from gemmprof.kernels.compiler import SOURCES, compile_candidate
from gemmprof.kernels.parameters import read_constraints, valid_parameters
from gemmprof.model.ladder import Variant

VARIANTS = {variant.name: variant for variant in all_variants()}


@pytest.mark.parametrize("name", VARIANTS)
def test_the_catalog_satisfies_its_own_constraints(name):
    variant = VARIANTS[name]
    constraints = read_constraints(SOURCES / variant.source)
    assert constraints.sentences
    assert constraints.violation(variant.parameters) is None


@pytest.mark.parametrize("name", VARIANTS)
def test_every_assertion_of_the_source_is_read(name):
    """A static_assert in a form that the reader overlooks would let a search propose what does not compile."""
    from gemmprof.kernels.compiler import source_closure

    variant = VARIANTS[name]
    text = "".join(path.read_text(encoding="utf-8") for path in source_closure(SOURCES / variant.source))
    # One within a template that names no parameter is about the template's own arguments, which no search chooses.
    within = re.findall(r"^ +static_assert\(([^;]*);", text, re.MULTILINE)
    own = [one for one in within if not set(re.findall(r"\w+", one)) & set(variant.parameters)]
    assert text.count("static_assert(") - len(own) == len(
        read_constraints(SOURCES / variant.source).sentences
    )


def test_first_broken_constraint_is_named():
    constraints = read_constraints(SOURCES / "sgemm" / "warptiled.cu")
    broken = {**VARIANTS["warptiled"].parameters, "WM": 48}
    assert (
        constraints.violation(broken) == "BM must be a multiple of WM: whole warp tiles fill the block tile"
    )


def test_a_letter_without_value():
    with pytest.raises(BuildError, match="speaks of BM, which has no value"):
        read_constraints(SOURCES / "sgemm" / "block2d.cu").violation({})


def test_condition_that_is_no_arithmetic(tmp_path):
    file = tmp_path / "stage.cu"
    file.write_text('static_assert(sizeof(float[BM]) == 4, "sentence");\nstatic_assert(f("x"), "other");\n')
    with pytest.raises(BuildError, match="is not plain integer arithmetic"):
        read_constraints(file)


def test_constants_headers_and_operators(tmp_path):
    (tmp_path / "header.cuh").write_text(
        "#pragma once\nconstexpr int HALF = BM / 2;  // a comment; with a semicolon\n"
    )
    (tmp_path / "stage.cu").write_text(
        '#include "header.cuh"\n#include "header.cuh"\n'
        'static_assert(HALF % 2 == 0 && !(BM < 8) || BM == 1,\n              "BM must be a multiple of 4, or 1");\n'
    )
    constraints = read_constraints(tmp_path / "stage.cu")
    allowed = [p["BM"] for p in valid_parameters(constraints, {"BM": range(1, 17)})]
    assert allowed == [1, 8, 9, 12, 13, 16]


@pytest.mark.parametrize("name", few(["block1d", "autotuned", "async_copy"], ["block1d"]))
def test_compiler_agrees(nvcc, monkeypatch, tmp_path, name):
    """Of random parameter sets, exactly those that break no constraint compile."""
    monkeypatch.setenv("GEMMPROF_CACHE", str(tmp_path))
    variant = VARIANTS[name]
    constraints = read_constraints(SOURCES / variant.source)
    rng = random.Random(name)
    valid = valid_parameters(constraints, {letter: TUNING_VALUES[letter] for letter in variant.parameters})
    assert len(valid) >= 3
    compile_candidate(Variant(name, variant.stage, variant.source, rng.choice(valid)), "9.0")
    broken = []
    while len(broken) < inputs(1, 2):
        chosen = {letter: rng.choice(TUNING_VALUES[letter]) for letter in variant.parameters}
        if constraints.violation(chosen) is not None:
            broken.append(chosen)
    for chosen in broken:
        with pytest.raises(BuildError) as caught:
            compile_candidate(Variant(name, variant.stage, variant.source, chosen), "9.0")
        assert constraints.violation(chosen) in caught.value.found
