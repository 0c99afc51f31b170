"""What threads load again, counted from addresses, and what writing it otherwise brings, beside what was measured."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from made_code import made
from recorded_data import DATA, one_launch, studies_of, study_reports

from gemmprof.analysis.explanation.causes.access import (
    _indices,
    _of_the_rest,
    in_patches,
    narrow_access,
    uncoalesced_access,
)
from gemmprof.analysis.explanation.causes.arithmetic import expensive_math
from gemmprof.analysis.explanation.causes.reuse import cache_locality, looked_up_again, redundant_loads
from gemmprof.analysis.explanation.causes.shared import local_memory, shared_memory_bandwidth
from gemmprof.analysis.explanation.causes.threads import _until_done
from gemmprof.analysis.explanation.causes.waits import instruction_latency
from gemmprof.analysis.explanation.code.address_forms import LOOK_UP, checked_forms
from gemmprof.analysis.explanation.demands.distinct import evaluations, same_along
from gemmprof.analysis.explanation.demands.footprint import _array, arrays, own_places, places_of_a_thread
from gemmprof.analysis.explanation.demands.time_model import TimeModel
from gemmprof.analysis.explanation.demands.work import Work, work
from gemmprof.analysis.explanation.engine import explain_work
from gemmprof.analysis.explanation.prediction import Predictor

STUDIES = DATA / "variants" / "h200"


@cache
def study(name: str, side: str = "", of: Path = STUDIES) -> tuple[Work, dict[str, float]]:
    """The flawed kernel, or this fix of it, and what each fix saves."""
    one = studies_of(of)[name]
    kernel = next((fix for fix in one["fixes"] if fix["side"] == side), one["kernel"])
    saved = {fix["side"]: 1.0 - fix["time_ns"] / kernel["time_ns"] for fix in one["fixes"]}
    return work(one_launch(study_reports(of) / kernel["report"], kernel["launch"])), saved


def test_a_stencil_s_taps_and_what_neighbours_share() -> None:
    found, _ = study("depthwise_conv_3x3")
    weights, image = sorted(arrays(found), key=lambda one: one.block)
    assert (weights.asked, weights.thread, weights.block) == (9.0, 9.0, 9.0)  # the same for all threads
    assert (image.asked, image.thread) == (9.0, 9.0)
    assert image.block == (32 + 2) * (8 + 2)  # a tile of 32 x 8 with its border
    assert image.outputs["y"] == 3 * (4 + 2)  # a column of four
    # A row of four by vectors of 16 bytes: three of them hold the six words of each of three rows, and a warp's lanes
    # lie in four rows of eight, of a line each or two, in place of one. A column's lie as they do now.
    assert image.spread["x"] == pytest.approx(3 / 6 * (4 * 4 / 3) / (5 / 3))
    assert image.spread["y"] == 1.0 == weights.spread["x"]


def test_results_far_apart_that_share_what_they_load() -> None:
    """A block has a token, whose logits its warps make: blocks side by side share weights, threads nothing."""
    found, _ = study("router_logits_experts_again_for_each_token", of=DATA / "blind11" / "h100")
    tokens, weights = sorted(arrays(found), key=lambda one: one.thread)
    for one, share in ((tokens, 4), (weights, 1)):
        assert one.outputs["that lie 1 block apart"] == pytest.approx(share * one.thread)
        assert one.outputs["x"] == pytest.approx(4 * one.thread)
    (candidate,) = redundant_loads(found)
    assert any("4 results that lie 1 block apart" in way.change for way in candidate.variants)


def test_a_length_that_fits_by_chance_is_none() -> None:
    """Lanes in five rows would touch as many sectors as those of a rolled one that begins anywhere, but other lines."""
    found, _ = study("roll_four_axes_long_remainders", of=DATA / "blind6" / "h100")
    assert not arrays(found)


def test_three_passes_over_a_row_load_it_three_times() -> None:
    found, _ = study("layer_norm_three_passes")
    (row,) = (one for one in arrays(found) if len(one.rows) == 3)
    assert row.thread == pytest.approx(row.asked / 3)
    assert row.block == pytest.approx(512 * row.thread)


@pytest.mark.parametrize("chain", [True, False], ids=["a chain's end", "a length"])
def test_how_many_rounds_a_chain_takes_nothing_tells_before_them(chain: bool) -> None:
    """A length that was loaded can be sorted by; where a list ends only its last item says."""
    item = "LDG.E R4, [R6.64] ;" if chain else "IADD3 R4, R4, -0x1, RZ ;"
    code = ("S2R R0, SR_TID.X ;", "IMAD.WIDE R2, R0, 0x4, c[0x0][0x210] ;", "LDG.E R4, [R2.64] ;")
    around = ("IMAD.WIDE R6, R4, 0x4, c[0x0][0x218] ;", item, "ISETP.NE.AND P0, PT, R4, RZ, PT ;")
    found = _until_done(made(*code, *around, "@P0 BRA 0x000030 ;", "EXIT ;"))
    assert list(found.values()) == [slice(3, 7)] * chain


@pytest.mark.parametrize(
    ("to", "changed"),
    [
        ("IMAD.WIDE R4, R0, 0x4, c[0x0][0x218]", False),
        ("IMAD.WIDE R4, R0, 0x4, c[0x0][0x210]", True),
        ("LDG.E.64 R4, [R2.64]", True),
    ],
    ids=["elsewhere", "there", "nobody knows where"],
)
def test_what_a_loop_may_have_stored_there_is_another_value_in_each_round(to: str, changed: bool) -> None:
    code = ("S2R R0, SR_TID.X ;", "IMAD.WIDE R2, R0, 0x4, c[0x0][0x210] ;", f"{to} ;", "LDG.E R6, [R2.64] ;")
    again = ("STG.E [R4.64], R6 ;", "@P0 BRA 0x000030 ;", "EXIT ;")
    different = evaluations(made(*code, *again, executed=[10, 10, 10, 100, 100, 100, 10])).different
    assert different[3] == (10.0 if changed else 1.0) * different[1]


def test_a_loop_that_an_address_does_not_follow_loads_the_same_again() -> None:
    rescanned, _ = study("top_k_rescans")  # a row is searched for the largest of what is left, eight times
    (row,) = arrays(rescanned)
    assert row.thread == pytest.approx(row.asked / 8)
    multiplied, _ = study("big_multiply_local_array")
    one, other = sorted(arrays(multiplied), key=lambda array: array.asked)
    assert one.thread == pytest.approx(one.asked) == pytest.approx(16)
    assert other.thread == pytest.approx(other.asked / 16) == pytest.approx(16)


@pytest.mark.parametrize(
    ("name", "cause", "variant", "side"),
    [
        ("spmv_csr_thread_per_row", uncoalesced_access, "neighbouring threads", "eight_lanes"),
        (
            "spmv_ell_row_major",
            uncoalesced_access,
            "neighbouring threads",
            "column_major",
        ),  # its look-ups stay
        ("rgb_to_grey_bytes", narrow_access, "16 bytes a thread", "words"),  # three bytes a pixel, one by one
        (
            "bias_gelu_index64",
            narrow_access,
            "16 bytes a thread",
            "four",
        ),  # the bias is the same for all rows
        ("big_multiply_local_array", local_memory, "values in registers", "unrolled"),
        ("layer_norm_three_passes", redundant_loads, "kept in registers", "registers"),
        ("triton_cross_entropy_passes", redundant_loads, "one pass", "online"),
        ("depthwise_conv_3x3", redundant_loads, "registers, 4 outputs", "column"),
        ("conv1d_causal", redundant_loads, "registers, 4 outputs", "eight_outputs"),
        ("gather_field_scattered", cache_locality, "3 arrays as one", "packed"),
        ("tridiagonal_thomas", uncoalesced_access, "neighbouring threads", "interleaved"),
    ],
)
def test_a_variant_brings_what_it_brought(name: str, cause: object, variant: str, side: str) -> None:
    found, saved = study(name)
    assert callable(cause)
    (candidate,) = cause(found)
    (one,) = (one for one in candidate.variants if one.name.startswith(variant))
    assert TimeModel(found).saves(one.fix) == pytest.approx(saved[side], abs=0.12)


def test_fields_that_a_thread_reads_side_by_side_are_one_vector() -> None:
    structures, _ = study(
        "sph_density_structures"
    )  # four floats of a structure of 64 bytes, looked up one by one
    (candidate,) = narrow_access(structures)
    (vectors,) = (one for one in candidate.variants if one.name == "vectors of 16 bytes")
    looked_up = [one.form.index for one in checked_forms(structures).values() if one.form.kind == LOOK_UP]
    assert looked_up
    assert vectors.fix.keep[looked_up].max() <= 1 / 3


def test_elements_are_taken_until_the_widest_access_is_a_vector() -> None:
    # Eight 4-bit values in a word make 16 bytes of halves, 8-byte words 16 bytes of floats: nothing gets wider.
    assert not list(narrow_access(study("dequantise_4bit_nibbles", "words")[0]))
    assert not list(narrow_access(study("dictionary_constant", "shared")[0]))


def test_rows_whose_beginnings_were_loaded_hold_no_vectors() -> None:
    rows, _ = study("spmv_csr_thread_per_row", "eight_lanes")  # eight lanes a row, neighbours side by side
    assert not list(narrow_access(rows))


def test_a_row_goes_from_a_thread_to_lanes_along_it() -> None:
    rows, _ = study("softmax_thread_per_row")  # rows of 96 values, and four warps of each block
    (candidate,) = uncoalesced_access(rows)
    (warp,) = (one for one in candidate.variants if one.name == "a warp a row")
    assert warp.fix.resources["l2_tags"] < 0.1
    assert warp.fix.warps > 1.0


def test_passes_that_are_unrolled_otherwise_walk_over_the_same_row() -> None:
    """150 classes: all at once, then thirty and ten a round."""
    classes, saved = study("entropy_map_three_sweeps_of_classes", of=DATA / "blind14" / "h100")
    (row,) = arrays(classes)
    assert (row.asked, row.thread) == (450.0, 150.0)
    (candidate,) = redundant_loads(classes)
    assert TimeModel(classes).saves(candidate.fix) == pytest.approx(saved["online"], abs=0.05)


def test_a_thread_s_number_that_a_round_finds_anew_is_none_that_it_changes() -> None:
    """What a block sums up in each of five rounds is stored by few lanes, for which the number is read again."""
    filters, _ = study("row_filters_tried_one_after_the_other", of=DATA / "blind14" / "h100")
    loads = [one for one in checked_forms(filters).values() if filters.sass[one.form.index].is_load]
    assert {one.verdict for one in loads} <= {"agrees", "exact"}
    assert all(one.asked >= 5 * one.thread for one in arrays(filters))  # once for each prediction


@pytest.mark.filterwarnings("error")
def test_many_rows_of_unknown_length_are_still_places() -> None:
    """Offsets that were passed one by one, each times a thread's number, are more than 64 bits hold far apart."""
    rows = [f"IMAD R2, R0, c[0x0][0x{0x220 + 4 * at:x}], R2 ;" for at in range(8)]
    code = ("S2R R0, SR_TID.X ;", "LDC.64 R4, c[0x0][0x210] ;", "MOV R2, R0 ;", *rows)
    found = made(*code, "IMAD.WIDE R6, R2, 0x4, R4 ;", "LDG.E R8, desc[UR4][R6.64] ;", "EXIT ;")
    ((_, one),) = checked_forms(found).items()
    assert len(one.form.address.terms) == 10
    reuse = _array(found, [one.form])
    assert reuse is not None and reuse.thread > 0
    threads = found.profile.launch.threads_per_block
    assert reuse.block / reuse.thread == pytest.approx(threads)


def test_ways_of_an_unrolled_loop_are_no_repetition() -> None:
    """Half of the warps take 16 values at once, the others 8, 4 and one at a time: nobody loads any of them twice."""
    half, _ = study("sessions_thread_per_user", "warp", DATA / "blind10" / "h200")
    (several,) = (one for one in arrays(half) if len(one.rows) > 2)
    assert several.thread == pytest.approx(several.asked, rel=0.01)


def test_what_a_table_of_jumps_leads_to_reads_what_stood_before_it() -> None:
    """Each of eight ways goes on from the value that was loaded for the element: nothing that comes again."""
    ways = work(one_launch(DATA / "pairs" / "control.ncu-rep.xz", 2))
    code = ways.code
    jumps = tuple(at for at, line in enumerate(code.sass) if line.opcode == "BRX")
    assert jumps in code.predecessors and () not in code.predecessors[1:]
    assert not list(expensive_math(ways))


def test_fragments_of_tensor_cores_are_no_wider() -> None:
    assert not list(narrow_access(work(one_launch(DATA / "flaws_tensor.ncu-rep.xz", 1))))


def test_what_only_its_own_thread_stores_and_loads_again_is_kept() -> None:
    of = DATA / "blind12" / "h100"
    bonds, saved = study("water_bonds_back_to_memory_each_bond", of=of)
    (places,) = own_places(bonds).values()  # of three atoms a thread, moved six times in each of 12 rounds
    assert (places.stores.thread, places.stores.asked, places.filled) == (3.0, 72.0, False)
    (candidate,) = redundant_loads(bonds)
    (kept,) = (one for one in candidate.variants if one.name == "kept in registers, 12 a thread")
    assert TimeModel(bonds).saves(kept.fix) == pytest.approx(saved["kept"], abs=0.05)
    assert kept.fix.keep[list(places.stores.rows)] == pytest.approx(3 / 72)
    once, _ = study("water_bonds_back_to_memory_each_bond", "kept", of)
    assert not list(redundant_loads(once))


def test_hashes_of_shared_windows_are_made_once_for_several_results() -> None:
    """A window's hash is its neighbour's in the next round; bytes that a thread uses for four results already are no
    more shared for others.
    """
    hashes, saved = study("minimisers_hash_every_window", of=DATA / "blind8" / "h100")
    assert explain_work(hashes).findings[0].saves == pytest.approx(saved["shared"], abs=0.05)
    for side, several in (("", True), ("four_pixels", False)):
        rows, _ = study("blur_rows_bytes", side)
        ways = [one.name for found in redundant_loads(rows) for one in found.variants]
        assert any("outputs" in name for name in ways) == several


def test_factors_from_shared_memory_are_told_where_its_data_stage_has_a_queue() -> None:
    """Each product of a sound field reads both of its factors there; warps wait for one another most of the time."""
    field, saved = study("loudspeaker_field_two_shared_reads_a_product", of=DATA / "blind11" / "h100")
    assert 0.4 < field.loads["l1_data"].share < 0.6
    told = {one.cause: one.saves for one in explain_work(field).findings}
    assert max(told, key=lambda cause: told[cause]) == "shared_memory_bandwidth"
    assert told["shared_memory_bandwidth"] == pytest.approx(saved["sums"], abs=0.1)


@pytest.mark.parametrize(
    ("name", "fix", "of"),
    [
        ("spline_gather_thread_per_atom", "four", "blind6"),  # 64 points around an atom, rows of four
        ("sph_density_structures", "packed", "variants"),  # a particle's fields, in a structure of 32 bytes
        ("spmv_block_rows_scalar", "lanes", "blind2"),  # blocks of 4 x 4 of a matrix
    ],
)
def test_what_a_thread_looks_up_in_one_place_lanes_share(name: str, fix: str, of: str) -> None:
    """Each load of a warp fetches 32 sectors, and several loads of a thread lie in one."""
    looked_up, saved = study(name, of=DATA / of / "h100")
    patch = in_patches(looked_up)
    assert TimeModel(looked_up).saves(patch.fix) == pytest.approx(saved[fix], abs=0.12)
    if of == "blind6":
        for side in ("four", "sixteen"):
            assert in_patches(study(name, side, DATA / of / "h100")[0]) is None


@pytest.mark.parametrize(
    ("each", "offsets", "sectors"),
    [
        (52, [4 * word for word in range(12)], 2.38),  # a vector of a code book that begins anywhere
        (64, [4 * word for word in range(8)], 1.0),  # the keys of a bucket
        (4, [4096 * row + 4 * column for row in range(4) for column in range(4)], 5.5),  # a bicubic filter
        (4, [4096 * row for row in range(4)], 4.0),  # a column
    ],
)
def test_how_many_sectors_a_thread_s_words_lie_in(each: int, offsets: list[int], sectors: float) -> None:
    code = [
        "S2R R0, SR_TID.X ;",
        "LDC.64 R2, c[0x0][0x218] ;",
        "IMAD.WIDE R2, R0, 0x4, R2 ;",
        "LDG.E R4, desc[UR4][R2.64] ;",
        "LDC.64 R6, c[0x0][0x210] ;",
        f"IMAD.WIDE R6, R4, {each:#x}, R6 ;",
        *(f"LDG.E R{10 + at}, desc[UR4][R6.64+{offset:#x}] ;" for at, offset in enumerate(offsets)),
        "EXIT ;",
    ]
    launch = made(*code)
    words = [checked_forms(launch)[at].form for at in range(6, 6 + len(offsets))]
    assert places_of_a_thread(launch, words, 32) == pytest.approx(sectors, abs=0.01)


def test_blocks_that_load_and_compute_alike_are_one() -> None:
    codes, saved = study("lattice_codes_decoded_again_for_each_token", of=DATA / "blind12" / "h100")
    weights = [at for at, line in enumerate(codes.sass) if line.opcode == "I2F" and codes.executed[at]]
    # Made of a table in shared memory, which all blocks fill alike: those along y, tokens, come to the same.
    assert same_along(codes, 1)[weights].all()
    assert not same_along(codes, 0)[weights].any()
    (candidate,) = redundant_loads(codes)
    (one,) = (one for one in candidate.variants if one.name == "4 blocks along y in one")
    assert TimeModel(codes).saves(one.fix) == pytest.approx(saved["all_tokens"], abs=0.05)


def test_rows_that_neighbouring_programs_share_are_loaded_once() -> None:
    """A program a row of means over 31 rows: four programs need 34 rows, not 124, and add as much up as ever."""
    means, saved = study("triton_column_means_31_loads", of=DATA / "triton" / "h100")
    (candidate,) = redundant_loads(means)
    (one,) = (one for one in candidate.variants if one.name == "4 blocks along y in one")
    loads = means.global_loads & means.ran
    assert one.fix.keep is not None and one.fix.keep[loads].max() == pytest.approx(34.0 / 124.0, abs=0.01)
    assert (one.fix.keep[means.where(lambda line: line.opcode == "FADD")] == 1.0).all()
    assert TimeModel(means).saves(one.fix) == pytest.approx(saved["band"], abs=0.06)


def test_one_word_for_all_lanes_of_a_warp_is_no_tile() -> None:
    rows, _ = study("spmv_csr_short_rows")  # a warp a row: where it begins and where it ends
    ends = [one for one in arrays(rows) if one.warp == one.thread]
    assert ends and all(one.block < 256 * one.thread for one in ends)  # neighbouring rows share one
    assert not any(way.name.startswith("tile") for found in redundant_loads(rows) for way in found.variants)


def test_a_way_of_a_loss_is_no_second_loss() -> None:
    """Four pixels a thread: one of two ways to load less, which save alike, and what wider accesses take as well."""
    found, _ = study("bilateral_two_exponentials", "one_exponential", DATA / "variants" / "h100")
    assert [loss[0].cause for loss in explain_work(found).losses] == ["redundant_loads"]


@pytest.mark.parametrize(
    "name, of, cause, fix",
    [
        # Passes through L1's data stage: of values that are kept in shared memory.
        ("row_filters_tried_one_after_the_other", "blind14/h100", "redundant_loads", "at_once"),
        # Look-ups beside the atomics, which keep L2's tags busy; all of the atomics, where a sketch is looked up.
        ("components_atomic_min", "variants/h100", "global_atomics", "checked"),
        ("count_min_sketch_four_atomics_a_key", "blind15/h100", "global_atomics", "matched"),
        # But a table that is kept in shared memory takes its look-ups along.
        ("product_rows_hashed_in_global", "blind6/h200", "global_atomics", "shared"),
    ],
)
def test_what_is_counted_to_stay_takes_its_time(name: str, of: str, cause: str, fix: str) -> None:
    """Nothing is told on top of the model's word that would need it gone."""
    found, saved = study(name, of=DATA / of)
    said = next(one for one in explain_work(found).findings if one.cause == cause)
    assert said.saves == pytest.approx(saved[fix], abs=0.1)
    assert said.saves_high > said.saves + 0.1  # another rewrite may do more


def test_what_a_round_s_number_chooses_between_changes_from_round_to_round() -> None:
    """Hazards of five terms, of which the quarter tells the one that a round reads: not one word again and again."""
    swaps, _ = study("credit_spreads_exponentials_in_double", of=DATA / "blind15" / "h100")
    hazard = max(arrays(swaps), key=lambda one: one.asked)
    assert hazard.asked > 20.0 and hazard.thread == pytest.approx(4.0, abs=0.1)


def test_tiles_copied_ahead_save_no_more_than_the_busiest_unit_leaves() -> None:
    """A quarter of the time is waited for a tile, and the loads that stay keep shared memory busy for most of it."""
    tiles = study("linear_fp32_small_tile", "two", DATA / "blind2" / "h200")[0]
    said = next(one for one in explain_work(tiles).findings if one.cause == "memory_latency")
    assert 0.02 < said.saves < 0.12  # copies of four bytes pass L1 as loads do


@pytest.mark.parametrize(
    ("of", "name", "side", "again"),
    [
        # Blocks behind one another in depth share two of three planes: they follow one another in what was faster.
        ("blind17", "volume_smoothed_plane_after_plane", "", True),
        # Neighbouring blocks share sectors, or heads; blocks further apart do not.
        ("blind12", "bias_gradient_block_a_column", "", False),
        ("blind2", "gqa_scores_head_each", "", False),
        ("blind2", "multigrid_restrict_27", "shared", False),
        # Most of what L2 serves are look-ups, at places that data tell.
        ("blind16", "particle_scans_a_sine_for_each_beam", "", False),
    ],
)
def test_what_fits_l2_is_read_once(of: str, name: str, side: str, again: bool) -> None:
    said = [one.change for one in explain_work(study(name, side, DATA / of / "h100")[0]).findings]
    starts = ("Work on what lies in L2", "Make z the first axis of the grid")
    assert [one.startswith(starts[1]) for one in said if one.startswith(starts)] == [True] * again
    assert not any("times what comes from DRAM" in one for one in said if "scans" in name)


def test_a_square_of_results_reads_its_rows_and_columns_once() -> None:
    found, saved = study("linear_fp32_small_tile", of=DATA / "blind2" / "h100")
    said = {one.cause: one for one in explain_work(found).findings}["shared_memory_bandwidth"]
    assert said.variants[0].name == "4 x 4 results a thread"
    assert said.saves == pytest.approx(saved["four"], abs=0.1)


def test_passes_that_ask_nothing_of_one_another_are_one() -> None:
    found, _ = study("row_filters_tried_one_after_the_other", of=DATA / "blind14" / "h100")
    (candidate,) = redundant_loads(found)
    (way,) = (one for one in candidate.variants if one.name == "one pass")
    assert "Its 5 passes ask nothing of one another" in way.change


def test_who_asks_for_a_value_is_no_index() -> None:
    """Where a key was found lies its value: loaded by those that found one, with a pointer that they alone load."""
    code = ("S2R R0, SR_TID.X ;", "IMAD.WIDE R2, R0, 0x4, c[0x0][0x210] ;", "LDG.E R6, [R2.64] ;")
    key = (
        "LOP3.LUT R9, R6, 0xff, RZ, 0xc0, !PT ;",
        "IMAD.WIDE R2, R9, 0x4, c[0x0][0x218] ;",
        "LDG.E R3, [R2.64] ;",
    )
    value = ("ISETP.NE.AND P0, PT, R3, R6, PT ;", "@!P0 LDC.64 R4, c[0x0][0x220] ;")
    looked_up = ("@!P0 IMAD.WIDE R4, R9, 0x4, R4 ;", "@!P0 LDG.E R8, [R4.64] ;", "EXIT ;")
    found = made(*code, *key, *value, *looked_up)
    assert _indices(found, 5) == _indices(found, 9) == {3}


def test_twice_the_tile_leaves_half_of_the_passes() -> None:
    """Least sums from a tile in shared memory: four results a thread saved 47 %."""
    tile = study("min_plus_no_tile", "tile", DATA / "blind2" / "h100")[0]
    said = {one.cause: one.saves for one in explain_work(tile).findings}
    assert 0.4 < said["shared_memory_bandwidth"] < 0.55
    assert said.get("memory_latency", 0.0) < 0.1  # the tile is loaded in a seventh of the time


@pytest.mark.parametrize(
    ("name", "of", "causes", "fix"),
    [
        # A tap at a time out of constant memory: warps wait for both, and nothing is busy.
        ("room_response_sample_a_thread", "blind22", "shared_memory_bandwidth", "slid"),
        ("mixture_factor_from_shared_for_each_product", "blind11", "shared_memory_bandwidth", "four_points"),
        # Bytes: four results' come by words and are picked out of them; other arithmetic (__vminu4) is not promised.
        ("erode_9x9_direct", "blind2", "redundant_loads", "separable"),
        ("blur_rows_bytes", "variants", "redundant_loads", "four_pixels"),
        ("conv2d_direct", "variants", "redundant_loads", "four_channels"),
    ],
)
def test_results_a_thread_bring_what_their_neighbours_share(
    name: str, of: str, causes: str, fix: str
) -> None:
    found, saved = study(name, of=DATA / of / "h100")
    told = {one.cause: one for one in explain_work(found).findings}[causes]
    assert told.variants[0].name == "registers, 4 outputs a thread"
    assert told.saves == pytest.approx(saved[fix], abs=0.12)


@pytest.mark.parametrize("side", ["four", "slid"])
def test_a_thread_that_uses_each_value_for_four_results_has_them_already(side: str) -> None:
    found, _ = study("room_response_sample_a_thread", side, DATA / "blind22" / "h100")
    assert sum(one.asked for one in arrays(found, "shared")) > 60  # words a thread, of 256 taps
    assert not list(shared_memory_bandwidth(found))


def test_integers_that_make_results_take_their_time() -> None:
    """A census of bytes is at the limit of integer arithmetic: with all loads gone it takes as long (3 % came)."""
    found, saved = study("census_63_bytes_from_memory", of=DATA / "blind6" / "h100")
    (told,) = (one for one in explain_work(found).findings if one.cause == "redundant_loads")
    assert told.saves == pytest.approx(saved["words"], abs=0.16)


@pytest.mark.parametrize(
    ("name", "of", "cause", "fix"),
    [
        # Six recurrences one after the other; each instruction waits 1.4 cycles, a warp of each scheduler all of them.
        ("orbit_series_one_part_after_the_other", "blind21", "instruction_latency", "together"),
        # Letters of two places: to pick them out of words takes what it takes.
        ("match_lengths_by_byte", "blind4", "narrow_access", "carried"),
    ],
)
def test_waits_and_work_that_stay_are_counted(name: str, of: str, cause: str, fix: str) -> None:
    found, saved = study(name, of=DATA / of / "h100")
    told = {one.cause: one.saves for one in explain_work(found).findings}[cause]
    assert 0.0 < told == pytest.approx(saved[fix], abs=0.13)


def test_look_ups_are_in_no_order() -> None:
    """A search in halves: most of what L2 serves are places that the search tells."""
    searched = explain_work(study("common_neighbours_linear", "binary", DATA / "blind3" / "h100")[0]).findings
    assert all(one.cause != "cache_locality" for one in searched)


def test_chains_of_arithmetic_leave_the_waits_for_loads() -> None:
    """Warps wait for loads for 57 % of their time: a share that more chains do not touch."""
    found, saved = study("code_words_one_chain_of_4096_products", of=DATA / "blind17" / "h100")
    (way,) = next(one.variants for one in instruction_latency(found))
    predictor = Predictor(TimeModel(found))
    assert predictor.told(way, predictor.predict(way)).saves == pytest.approx(saved["four"], abs=0.15)


def test_sums_that_all_threads_make_alike_are_no_operands_of_more_results() -> None:
    """A block's warps add up what each of them has left in shared memory: four results a thread are four such sums."""
    found, _ = study("gram_schmidt_tree_sums", "shuffles", DATA / "blind3" / "h200")
    assert not any(one.variants for one in shared_memory_bandwidth(found))


def test_few_blocks_leave_room_for_tiles_twice_as_long() -> None:
    found, _ = study("feature_differences_two_shared_reads_each", of=DATA / "siblings" / "h100")
    grid = found.profile.launch.grid

    def ways(blocks: float) -> list[str]:
        cut = replace(found.profile.launch, grid=(round(blocks * found.sms / grid[1]), grid[1], 1))
        told = shared_memory_bandwidth(work(replace(found.profile, launch=cut)))
        return [way.name for one in told for way in one.variants]

    assert ways(8.0)[0] != "a tile of a thread twice as long"
    assert ways(3.0) == ["a tile of a thread twice as long"] and ways(1.5) == []


def test_look_ups_that_dram_answers_again_are_at_no_limit() -> None:
    """Nodes numbered by chance: neighbours' rows come from DRAM three times, in order once."""
    found, saved = study("triton_mesh_means_nodes_numbered_by_chance", of=DATA / "blind22" / "h100")
    assert saved["renumbered"] > 0.7 and looked_up_again(found) == pytest.approx(3.0, abs=0.1)
    told = explain_work(found)
    assert told.at_limit is None and "3.0 times all allocated memory" in " ".join(told.levers)


def test_local_memory_is_no_order_of_blocks() -> None:
    """Rows in local memory move twice what the program has allocated."""
    found, _ = study("rms_norm_gradient_row_kept_in_local", of=DATA / "blind11" / "h100")
    assert "cache_locality" not in {one.cause for one in explain_work(found).findings}


@pytest.mark.parametrize(("moved", "part"), [(0.4, 0.25), (0.8, 1.0), (0.9, 1.0)])
def test_accesses_are_not_the_reason_for_what_arithmetic_needs_beyond_its_own(
    moved: float, part: float
) -> None:
    units = {"alu": SimpleNamespace(share=0.8), "dram": SimpleNamespace(share=moved)}
    assert _of_the_rest(cast(Work, SimpleNamespace(loads=units))) == pytest.approx(part)
