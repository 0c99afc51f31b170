from __future__ import annotations

import json

import pytest

from gemmprof.kernels import compiler
from gemmprof.kernels.build import tuned_parameters
from gemmprof.kernels.catalog import all_variants
from gemmprof.kernels.parameters import FILE_NAME, Tuned, forget_tuned, load_tuned, save_tuned

AUTOTUNED = next(variant for variant in all_variants() if variant.name == "autotuned")


def winner(**changes):
    fields = {
        "name": "autotuned",
        "architecture": "sm_90",
        "source": compiler.code_hash(AUTOTUNED),
        "parameters": {**AUTOTUNED.parameters, "BK": 32},
        "shapes": ("4096x4096x4096",),
        "gain": 1.1,
    }
    return Tuned(**{**fields, **changes})


def test_winner_replaces_the_catalogs_parameters(tmp_path):
    save_tuned(tmp_path, winner())
    assert tuned_parameters(tmp_path, ["90"]) == {"autotuned": {**AUTOTUNED.parameters, "BK": 32}}


def test_winner_of_another_architecture_or_source_does_not_count(tmp_path):
    save_tuned(tmp_path, winner(architecture="sm_80"))
    save_tuned(tmp_path, winner(source="older"))
    assert tuned_parameters(tmp_path, ["90"]) == {}
    assert tuned_parameters(tmp_path, ["86"]) == {}


def test_build_for_several_architectures_takes_none(tmp_path):
    save_tuned(tmp_path, winner())
    assert tuned_parameters(tmp_path, ["80", "90"]) == {}


def test_later_winner_replaces_and_forgetting_removes(tmp_path):
    save_tuned(tmp_path, winner())
    save_tuned(tmp_path, winner(gain=1.2))
    save_tuned(tmp_path, winner(architecture="sm_80"))
    assert {key: entry.gain for key, entry in load_tuned(tmp_path).items()} == {
        ("autotuned", "sm_90"): 1.2,
        ("autotuned", "sm_80"): 1.1,
    }
    assert forget_tuned(tmp_path, "autotuned")
    assert load_tuned(tmp_path) == {}
    assert not forget_tuned(tmp_path, "autotuned")


def test_damaged_file_counts_as_none(tmp_path):
    (tmp_path / FILE_NAME).write_text("[{")
    assert load_tuned(tmp_path) == {}
    save_tuned(tmp_path, winner())
    assert len(load_tuned(tmp_path)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": {**AUTOTUNED.parameters, "BM": "64$(touch x)"}},
        {"parameters": {**AUTOTUNED.parameters, "BM": 64.0}},
        {"parameters": {**AUTOTUNED.parameters, "BM": True}},
        {"parameters": {**AUTOTUNED.parameters, "BM": -64}},
        {"parameters": {**AUTOTUNED.parameters, "BM": 1 << 40}},
        {"parameters": {**AUTOTUNED.parameters, "BM=1 -DX": 1}},
        {"parameters": [64]},
        {"name": "autotuned; touch x"},
        {"architecture": "sm_90 -o x"},
        {"architecture": 90},
        {"source": None},
        {"shapes": "4096"},
        {"gain": float("nan")},
        {"gain": "1.1"},
        {"more": 1},
    ],
    ids=str,
)
def test_an_entry_of_other_types_or_ranges_is_left_out(tmp_path, changes):
    save_tuned(tmp_path, winner(architecture="sm_80"))
    file = tmp_path / FILE_NAME
    good = json.loads(file.read_text())
    file.write_text(json.dumps([*good, {**good[0], "architecture": "sm_90", **changes}, 7, None]))
    assert set(load_tuned(tmp_path)) == {("autotuned", "sm_80")}
    assert tuned_parameters(tmp_path, ["90"]) == {}


@pytest.mark.parametrize("text", ["{}", "7", "null", "[" * 100_000])
def test_another_document_counts_as_none(tmp_path, text):
    (tmp_path / FILE_NAME).write_text(text)
    assert load_tuned(tmp_path) == {}


def test_a_winner_that_the_source_forbids_or_that_lacks_a_letter_does_not_count(tmp_path):
    save_tuned(tmp_path, winner(parameters={**AUTOTUNED.parameters, "BK": 3}))
    assert tuned_parameters(tmp_path, ["90"]) == {}
    save_tuned(tmp_path, winner(parameters={"BK": 32}))
    assert tuned_parameters(tmp_path, ["90"]) == {}
