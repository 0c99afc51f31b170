from __future__ import annotations

from gemmprof.kernels import compiler
from gemmprof.kernels.build import tuned_parameters
from gemmprof.kernels.catalog import all_variants
from gemmprof.kernels.tuned import FILE_NAME, Tuned, forget_tuned, load_tuned, save_tuned

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
