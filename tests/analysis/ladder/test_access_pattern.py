"""How a warp's threads map to sectors and banks: the hardware's rules, the stages' patterns, and measured launches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from asked import analysed
from named import named
from recorded_data import ReadRecorded

from gemmprof.analysis.ladder.access_pattern import AccessPatterns, WarpAccess
from gemmprof.analysis.ladder.declared_traffic import access_patterns
from gemmprof.analysis.sections import bank_conflicts, coalescing
from gemmprof.gpu.arch import BANKS
from gemmprof.kernels.catalog import SINGLE, stage_by_number
from gemmprof.model import KernelProfile, Problem, Stage
from gemmprof.reports.figures.drawings import access_patterns as access_drawings

CUBE = Problem(4096, 4096, 4096)
OURS = [stage for stage in SINGLE.stages if stage.addresses is not None]


def access(place: Callable[[int], int], floats: int = 1) -> WarpAccess:
    """Lane to float index."""
    places = tuple(place(lane) for lane in range(32))
    addresses = tuple(4 * at for at in places)
    return WarpAccess(
        "shared_load_a", "Load of A", "shared", "load", "A", "", 4 * floats, addresses, (0,) * 32, places
    )


def patterns(stage: Stage) -> AccessPatterns:
    found = access_patterns(stage, CUBE)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("place", "floats", "sectors", "wavefronts"),
    [
        (lambda lane: lane, 1, 4, 1),
        (lambda lane: 7, 1, 1, 1),
        (lambda lane: 2 * lane, 1, 8, 2),
        (lambda lane: 8 * lane, 1, 32, 8),
        (lambda lane: 32 * lane, 1, 32, 32),
        (lambda lane: 33 * lane, 1, 32, 1),
        (lambda lane: lane + 1, 1, 5, 1),
        (lambda lane: 4 * lane, 4, 16, 4),
        (lambda lane: 0, 4, 1, 2),
        (lambda lane: 8 * lane, 4, 32, 8),
        (lambda lane: 2 * lane, 2, 8, 2),
        (lambda lane: 4 * (lane // 2), 4, 8, 2),
    ],
)
def test_sectors_and_wavefronts(
    place: Callable[[int], int], floats: int, sectors: int, wavefronts: int
) -> None:
    model = access(place, floats)
    assert len(model.sectors) == sectors
    assert model.wavefronts == wavefronts
    assert sorted(lane for group in model.passes for lane in group) == list(range(32))


@pytest.mark.parametrize(
    ("kernel", "place", "floats"),
    [
        ("conflict_load<1>", lambda lane: lane, 1),
        ("conflict_load<2>", lambda lane: 2 * lane, 1),
        ("conflict_load<8>", lambda lane: 8 * lane, 1),
        ("conflict_load<32>", lambda lane: 32 * lane, 1),
        ("conflict_wide", lambda lane: 8 * lane, 4),
    ],
)
def test_wavefronts_are_those_of_the_hardware(
    kernel: str, place: Callable[[int], int], floats: int, recorded: ReadRecorded
) -> None:
    profile = next(
        p for p in recorded("flaws_bank_conflicts", source=True) if kernel in p.name.replace("(int)", "")
    )
    measured = analysed(bank_conflicts, profile)
    loads = measured.operation("load")
    model = access(place, floats)
    assert loads.n_way == model.wavefronts
    assert loads.share == pytest.approx(100 * model.conflicts / model.wavefronts)


@pytest.mark.parametrize("stage", OURS, ids=lambda stage: stage.name)
def test_every_stage_moves_every_element_once(stage: Stage) -> None:
    """The accesses of all warps of a block together are as many as its tiles have elements."""
    model = patterns(stage)
    found = {
        a.name: model.warps_per_block * a.executions * len(a.addresses) * a.bytes_per_thread // 4
        for a in model.accesses
    }
    parameters = stage.parameters
    if "BLOCK" in parameters:
        square = parameters["BLOCK"] ** 2
        assert found == {"global_load_a": square, "global_load_b": square, "global_store_c": square}
        return
    bm, bn, bk = (
        (parameters[letter] for letter in ("BM", "BN", "BK"))
        if "BM" in parameters
        else [parameters["TILE"]] * 3
    )
    assert found["global_store_c"] == bm * bn
    if model.copies:
        # The copy engine moves the tiles, and no warp loads or stores them.
        assert {copy.matrix: (copy.rows, copy.columns) for copy in model.copies} == {
            "A": (bm, bk),
            "B": (bk, bn),
        }
        assert set(found) == {"shared_load_a", "shared_load_b", "global_store_c"}
        return
    assert found["global_load_a"] == found["shared_store_a"] == bm * bk
    assert found["global_load_b"] == found["shared_store_b"] == bk * bn


@pytest.mark.parametrize(
    ("stride", "size", "used", "ideal", "words"),
    [
        (0, 2, 2, 1, "All 32 threads use the same element"),
        (0, 4, 4, 1, "All 32 threads use the same element"),
        (2, 2, 64, 2, "fills every sector that it touches: 2 sectors, no byte wasted"),
        # Each lane uses half of a word: 64 bytes of 4 sectors.
        (4, 2, 64, 2, "4 sectors where 2 would do: 50 % of the bytes moved are used"),
        (1, 1, 32, 1, "fills every sector that it touches: 1 sector, no byte wasted"),
    ],
)
def test_sentences_count_bytes(stride: int, size: int, used: int, ideal: int, words: str) -> None:
    model = replace(
        access(lambda lane: 0),
        space="global",
        bytes_per_thread=size,
        addresses=tuple(stride * lane for lane in range(32)),
    )
    assert (model.distinct_bytes, model.ideal_sectors) == (used, ideal)
    assert words in model.explanation
    drawn = access_drawings(replace(patterns(OURS[0]), accesses=(model,)))[0]
    assert sum(int(cell.text) for cell in drawn.cells if cell.text) == used


def test_few_bytes_of_one_sector_are_no_full_sector() -> None:
    model = replace(access(lambda lane: lane % 3), space="global")
    assert (
        model.explanation
        == "The warp touches no more sectors than its bytes need: 1 sector, 38 % of it used."
    )


@pytest.mark.parametrize("stage", OURS, ids=lambda stage: stage.name)
def test_what_pages_draw_is_complete(stage: Stage) -> None:
    for model in patterns(stage).accesses:
        assert model.title and model.code and model.explanation
        assert len(model.addresses) == len(model.rows) == len(model.columns) == 32
        assert all(0 <= bank < BANKS for lane in model.banks for bank in lane)
        assert model.bytes_per_thread in (4, 8, 16)
        assert all(address % model.bytes_per_thread == 0 for address in model.addresses)
        assert set(model.sectors) == {s for lane in model.sectors_of_lanes for s in lane}
        assert len(model.sectors) >= model.ideal_sectors
    for copy in patterns(stage).copies:
        assert copy.title and copy.code and copy.layout and copy.bytes


def test_the_ladder_in_sectors() -> None:
    loads = {stage.number: patterns(stage).sectors("load") for stage in OURS}
    # Stage 1: 32 + 1 sectors of a step, stage 2: 1 + 4.
    assert loads[1] / loads[2] == 33 / 5
    assert loads[3] < loads[2] / 10
    assert loads[4] == loads[3] / 2
    assert all(loads[number] == loads[5] for number in (6, 7, 8))
    assert loads[13] == 0


def test_what_a_tensor_copy_brings_is_read_without_conflicts_thanks_to_the_swizzle() -> None:
    model = patterns(stage_by_number(13))
    load = named(model.accesses, "shared_load_a")
    assert load.addresses[8] == load.addresses[0] + 128 + 16
    assert {a.name: a.conflicts for a in model.accesses if a.conflicts} == {}
    # The same rows without it: four lanes' pieces on the same four banks.
    plain = access(lambda lane: lane // 8 * 32, floats=4)
    assert plain.wavefronts > load.wavefronts


def test_what_is_loaded_ahead_counts_once_a_warp() -> None:
    """Counted on an H100: 100,696,064 shared loads of a warp, 268,533,760 wavefronts, at 4096 cubed."""
    model = patterns(stage_by_number(13))
    loads = [a for a in model.accesses if a.space == "shared"]
    assert sum(map(model.requests, loads)) == 100_696_064
    assert sum(model.requests(a) * a.wavefronts for a in loads) == 268_533_760
    assert model.bytes_ahead == 16 * 32 * (100_696_064 - sum(map(model.needed_requests, loads)))
    assert model.copied_bytes == 4 * 4096**3 // 64


def test_where_the_conflicts_are_and_what_removes_them() -> None:
    def conflicts(number: int) -> dict[str, int]:
        model = patterns(stage_by_number(number))
        return {a.name: a.conflicts for a in model.accesses if a.space == "shared" and a.conflicts}

    assert set(conflicts(6)) == {"shared_store_a", "shared_load_b"}
    assert conflicts(7) == {}
    assert conflicts(8) == {}
    assert conflicts(3) == {}


def test_no_model_no_invention() -> None:
    assert access_patterns(stage_by_number(0), CUBE) is None
    assert access_patterns(Stage(99, "foreign", "", ""), CUBE) is None
    assert access_patterns(replace(stage_by_number(5), parameters={"OTHER": 1}), CUBE) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"row": "t / 0"},
        {"row": "__import__('os').getpid()"},
        {"column": "missing"},
        {"place": "row ** column"},
        {"executions": "0 - 1"},
        {"elements": 64},
        {"elements": "4"},
        {"space": "texture"},
        {"matrix": "<b>"},
        {"asynchronous": True, "matrix": "C"},
    ],
    ids=str,
)
def test_a_declaration_from_anybody_costs_the_model_not_the_page(changes: dict[str, Any]) -> None:
    stage = stage_by_number(5)
    odd = replace(stage.addresses.accesses[2], **changes)
    addresses = replace(stage.addresses, accesses=(*stage.addresses.accesses[:2], odd))
    assert access_patterns(replace(stage, addresses=addresses), CUBE) is None
    many = replace(stage.addresses, accesses=1000 * stage.addresses.accesses)
    assert access_patterns(replace(stage, addresses=many), CUBE) is None


def test_elements_of_two_bytes() -> None:
    """Half the bytes: a warp's 32 neighbours fill two sectors, and lie two to a bank without a conflict."""
    stage = replace(stage_by_number(3), dtypes=("bfloat16",))
    model = access_patterns(stage, Problem(4096, 4096, 4096, "bfloat16", "float32"))
    widths = {a.name: (a.bytes_per_thread, len(a.sectors)) for a in model.accesses if a.space == "global"}
    assert widths == {"global_load_a": (2, 2), "global_load_b": (2, 2), "global_store_c": (4, 4)}
    assert not any(a.conflicts for a in model.accesses)


def test_requests_of_a_launch() -> None:
    model = patterns(stage_by_number(3))
    load = named(model.accesses, "global_load_a")
    store = named(model.accesses, "global_store_c")
    assert load is not None and store is not None
    assert model.requests(load) == (128 * 128) * 32 * 128
    assert model.requests(store) == (128 * 128) * 32


def measured_sectors(profile: KernelProfile) -> dict[str, float | None]:
    result = analysed(coalescing, profile)
    kinds = {name: result.operation(name) for name in ("load", "store")}
    return {name: None if kind is None else kind.sectors for name, kind in kinds.items()}


def test_sectors_of_simple_kernels_agree_exactly(recorded: ReadRecorded) -> None:
    for number, profile in enumerate(recorded("ladder_simple"), start=1):
        model = access_patterns(stage_by_number(number), Problem(1024, 1024, 1024))
        measured = measured_sectors(profile)
        assert measured["load"] == model.sectors("load")
        # A scattered store that is replayed counts again in the hardware.
        assert measured["store"] == pytest.approx(model.sectors("store"), rel=0.002)
