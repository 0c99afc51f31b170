"""What named rewrites bring on kernels as people write them: predicted of the flawed side, against a fixed one."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import try_statements
from made_code import made
from profiles import BASE
from recorded_data import DATA, ReadRecorded, one_launch, pair_of, studies_of, study_reports

from gemmprof import metrics
from gemmprof.analysis.explanation import engine, prediction
from gemmprof.analysis.explanation.causes import product_tiles
from gemmprof.analysis.explanation.causes.access import added_up, narrow_access
from gemmprof.analysis.explanation.causes.arithmetic import (
    _of_doubles,
    double_precision,
    expensive_math,
    turned_loops,
)
from gemmprof.analysis.explanation.causes.atomics import global_atomics
from gemmprof.analysis.explanation.causes.barriers import barriers, fewer_warps
from gemmprof.analysis.explanation.causes.grid import uneven_work
from gemmprof.analysis.explanation.causes.reuse import _begins_with_the_last
from gemmprof.analysis.explanation.causes.shared import (
    _over_the_array,
    _words_of_the_frame,
    constant_divergence,
    local_memory,
)
from gemmprof.analysis.explanation.causes.tensor import mma_macs, stages
from gemmprof.analysis.explanation.causes.threads import _drawn, _in_groups, branch_divergence, idle_threads
from gemmprof.analysis.explanation.causes.waits import chains
from gemmprof.analysis.explanation.code.address_forms import (
    AFFINE,
    LOOK_UP,
    UNKNOWN,
    checked_forms,
    random_passes,
)
from gemmprof.analysis.explanation.code.divisions import chained_remainders, integer_divisions
from gemmprof.analysis.explanation.code.latency import crowding
from gemmprof.analysis.explanation.code.sequences import precise_functions
from gemmprof.analysis.explanation.code.symbolic import MOST_SYMBOLS, Values
from gemmprof.analysis.explanation.demands import distinct
from gemmprof.analysis.explanation.demands.distinct import (
    FLOATS,
    computed_again,
    evaluations,
    neighbours_alike,
)
from gemmprof.analysis.explanation.demands.footprint import arrays, distinct_along
from gemmprof.analysis.explanation.demands.time_model import TimeModel, held_meanwhile
from gemmprof.analysis.explanation.demands.traffic import beside_each_other, traffic
from gemmprof.analysis.explanation.demands.work import Work, work
from gemmprof.analysis.explanation.engine import detect
from gemmprof.analysis.explanation.levers import is_debug_build
from gemmprof.analysis.explanation.prediction import Predictor
from gemmprof.analysis.opcodes import parse
from gemmprof.analysis.reading.report import read_report
from gemmprof.gpu.arch import WARP
from gemmprof.model import Explanation, Finding, Instances, KernelProfile

SETS = (
    *(DATA / name / "h200" for name in ("variants", *(f"blind{number}" for number in range(2, 12)))),
    *sorted(path.parent for path in DATA.glob("*/h100/studies.json")),
)
"""Where a study is looked up, the first recording that has it."""


class ModelAlone(prediction.Calibration):
    """Tells what the model says, within what its rewrites may be off."""

    def around(self, told: Any, saves: Any, *_others: Any) -> Any:
        return told, 0.8 * saves - prediction.FLOOR, told + prediction.FLOOR + 0.35 * (1.0 - told)


MODEL_ALONE = ModelAlone(part=0.0, roomy=0.0, sure=1e-9, down=0.0, up=0.0, inside=0, of=0)


@pytest.fixture(autouse=True)
def model_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a rewrite takes away is judged, not how such predictions came true elsewhere."""
    monkeypatch.setattr(prediction, "calibration", lambda: MODEL_ALONE)


@cache
def study(name: str, side: str = "", sets: Sequence[Path] = SETS) -> tuple[KernelProfile, dict[str, float]]:
    """The flawed kernel of a study, or a fixed side, and what each fix saved."""
    of = next(of for of in sets if name in studies_of(of))
    one = studies_of(of)[name]
    flawed = one["kernel"]
    came = {fix["side"]: 1.0 - fix["time_ns"] / flawed["time_ns"] for fix in one["fixes"]}
    shown = next((fix for fix in one["fixes"] if fix["side"] == side), flawed)
    launch = one_launch(study_reports(of) / shown["report"], shown["launch"])
    KEPT[id(launch)] = launch
    return launch, came


KEPT: dict[int, KernelProfile] = {}
"""The launches of studies, by their `id`: they stay, as `study` keeps them."""
TOLD: dict[tuple[int, bool], Explanation] = {}


def explain(launch: KernelProfile) -> Explanation:
    """What is told of a launch: of one of a study once, however many tests ask."""
    if KEPT.get(id(launch)) is not launch:
        return engine.explain(launch)
    key = id(launch), prediction.calibration() is MODEL_ALONE
    if key not in TOLD:
        TOLD[key] = engine.explain(launch)
    return TOLD[key]


def said_of(name: str, side: str = "") -> set[str]:
    """The causes that are told of a study's flaw, or of a fixed side."""
    return {one.cause for one in explain(study(name, side)[0]).findings}


def found(name: str, cause: str) -> Finding:
    """What is said of a study's flaw."""
    said = explain(study(name)[0])
    return next(one for one in (*said.findings, *said.other_arithmetic) if one.cause == cause)


@pytest.mark.parametrize(
    "name, side, ran, kept",
    [
        ("align_rows_in_global", "", lambda at, sass: at % 2, ()),
        ("bond_price_pow_per_coupon", "", lambda at, sass: at % 2, ()),
        # Loads that warps execute with all their lanes off.
        (
            "rock_reactions_lanes_without_pores",
            "listed",
            lambda at, sass: "LDG" not in sass,
            ("inst_executed",),
        ),
        ("match_lengths_by_byte", "", lambda at, sass: "LDG" not in sass, ("inst_executed",)),
    ],
)
def test_instructions_that_never_ran_stop_nothing(
    name: str, side: str, ran: Callable[[int, str], object], kept: Sequence[str]
) -> None:
    """A branch that is never taken, or counters that a replay lost: each cause can still be looked for."""
    profile, _ = study(name, side)
    idle = {line.address for at, line in enumerate(profile.source.instructions) if not ran(at, line.sass)}
    lost = {
        metric: Instances(
            of.keys, tuple(0.0 if key in idle and metric not in kept else value for key, value in of.items())
        )
        for metric, of in profile.instances.items()
    }
    said = explain(replace(profile, instances=lost)).findings
    assert all(0.0 <= one.saves < 1.0 for one in said)


@pytest.mark.parametrize(
    "name, cause, fix",
    [
        # Both divisors stay, and one of two exponentials depends on the loops' counters alone.
        ("bilateral_two_exponentials", "expensive_math", "one_exponential"),
        # A root that is only divided by: rsqrtf, and four copies of the loop's body mixed without the slow paths.
        ("nbody_precise_root", "expensive_math", "rsqrt"),
        # Three FP64 powers of one base.
        ("eos_powers", "expensive_math", "one_pow"),
        # FP64 results whose sign is picked half by half are stored: half their bytes go, too.
        ("torch_erf_double", "double_precision", "floats"),
        # Powers of a kernel's parameters, the same in every thread.
        ("adam_pow_per_thread", "expensive_math", "host"),
        # 64-bit remainders of values by one modulus: products with its reciprocal.
        ("ntt_stage_remainder", "integer_arithmetic", "barrett"),
        ("power_modulo_long_division", "integer_arithmetic", "barrett"),
        # FP64 powers of one base whose exponent counts a loop's rounds: a product each.
        ("bond_price_pow_per_coupon", "expensive_math", "annuity"),
        # Cosines that depend on the thread's number alone: a table.
        ("dct_8x8_cosines", "expensive_math", "table"),
        # Conversions from and to FP64 keep the special-function unit busy, not the arithmetic.
        ("resize_bilinear_double", "double_precision", "floats"),
        # Blocks of one warp that end as fast as new ones are launched: fewer and larger ones.
        ("momentum_tiny_blocks", "low_occupancy", "bigger"),
        ("triton_swiglu_tiny_blocks", "low_occupancy", "bigger_blocks"),
        # A table in shared memory that each small block of a grid of one wave keeps for itself: one large block an SM.
        ("tabulated_forces_whole_table_in_shared", "low_occupancy", "wide"),
        # Columns of rows one after the other: DRAM delivers each sector again for each of them, more than is allocated.
        ("spmm_columns_outermost", "uncoalesced_access", "warp"),
        ("gnn_mean_thread_per_node", "uncoalesced_access", "warp"),
        # A tile loaded, stored and used in turn: copies that do not stop in registers relieve L1's data stage.
        ("triton_matmul_one_stage", "memory_latency", "staged"),
        # A thread for each cell of a block of which only the faces are stored.
        ("halo_pack_all_cells", "idle_threads", "faces"),
        # A warp a matrix of six columns; every second cell of a chess-board: lanes whose number leaves them idle.
        ("spatial_inertias_six_lanes_of_a_warp", "idle_threads", "five"),
        ("red_black_half_idle", "idle_threads", "cells"),
        # Keys one by one, each with a sum over the warp: with eight lanes a key four at once.
        ("sliding_window_warp_per_query", "narrow_access", "four_keys"),
        # A remainder by the grid's size for each of 19 neighbours.
        ("lbm_d3q19_remainders", "integer_arithmetic", "masked"),
        # Sixteen powers of one base, whose logarithm the compiler takes once: an exponential each.
        ("expected_errors_pow", "expensive_math", "exponential"),
        # What is computed again behind each call of a division's slow path is computed once without them.
        ("shan_chen_nine_exponentials", "expensive_math", "fast"),
        # A tree over a row in shared memory, in every warp of its block: a warp a row.
        ("cross_entropy_tree", "barriers", "warp_per_row"),
        ("qk_norm_block_per_head", "barriers", "warp"),
        # The same in every round of a loop, in which the row's values stay.
        ("sparsemax_tree_each_halving", "barriers", "one_barrier"),
        # As many values as eight warps hold in the registers of one: fewer warps, of which none waits.
        ("gram_schmidt_tree_sums", "barriers", "warp"),
        # Three sums over the block in each round, which only later rounds' are added to: once, behind the loop.
        ("triton_cosine_summed_each_piece", "barriers", "kept_apart"),
        # A row a thread on four warps an SM: with lanes along the row as many warps as fit.
        ("integral_rows_thread", "uncoalesced_access", "warp_per_row"),
        # Records of five values: what DRAM takes beyond its ceiling, that of whole sectors, goes with the rest of them.
        ("adagrad_records_of_five", "uncoalesced_access", "planes"),
        # 256 warps for 528 schedulers.
        ("decode_cache_warp_per_head", "small_grid", "warps"),
        # Products of two tiles, each exchanged between the lanes of a warp and between warps to be added up.
        ("triton_scores_sums_of_products", "tensor_cores_idle", "dot"),
        # Halves widened on their way to shared memory: half the bytes, and a fragment for two results.
        ("all_pairs_correlation_half_on_fma", "tensor_cores_idle", "tensor"),
        # As many targets as DRAM delivered for no load.
        ("triton_segment_sums_row_atomics", "global_atomics", "rows"),
        # torch's kernel for operands of one layout reads whole sectors, and several elements at once.
        ("torch_product_of_fields", "uncoalesced_access", "planes"),
        # One value a thread: the reduction over the threads of a program takes most of its instructions.
        ("triton_scales_group_a_program", "narrow_access", "one_warp"),
        # torch divides 64-bit integers, where a mask would do.
        ("torch_remainder_of_long", "integer_arithmetic", "mask"),
        # Passes over one column, the first half of each in a loop of two rounds and the rest unrolled behind it.
        ("stacked_frames_read_six_times", "redundant_loads", "registers"),
        # Four warps share 128 bytes, which eight lanes load at once.
        ("triton_gates_four_warps_a_token", "idle_threads", "tile"),
        # 32 bits of a shift register, one after the other.
        ("scrambler_bit_at_a_time", "integer_arithmetic", "words"),
        # Remainders by a number, each of what the last one left: 64 bits wide, by the form of 2^31 - 1.
        ("minimal_standard_long_modulo", "integer_arithmetic", "folded"),
        # Bits of packed codes, each by a mask at a place that is not known, and with the load of its word.
        ("unpack_13_bits_one_by_one", "integer_arithmetic", "shift"),
        # Entries of a table that each thread compares with its own value: in a loop, and in copies of its rounds.
        ("in_list_compared_one_by_one", "branch_divergence", "bits"),
        ("cash_flows_walk_along_the_curve", "branch_divergence", "halves"),
        # Three exponentials at once, whose coefficients are moved to registers that they share.
        ("credit_spreads_exponentials_in_double", "double_precision", "single"),
        # Rows of four: what a warp does with all of its lanes for one (its bounds, the sum) it does for eight at once.
        ("spmv_csr_short_rows", "branch_divergence", "four_lanes"),
        # Votes for many words: a copy in shared memory for each block.
        ("hough_votes_global_atomics", "global_atomics", "pieces"),
        # Loops of compare-and-swap in shared memory, no more of the time than the warps are in them.
        ("gradient_votes_shared_float_atomics", "shared_atomics", "fixed_point"),
        # A row for each lane, and in each a place that was computed or looked up: lanes along the rows.
        ("moveout_lanes_across_the_traces", "uncoalesced_access", "along_time"),
        ("lattice_polynomials_thread_each", "uncoalesced_access", "warp"),
        # Links as records: coalesced, each sector is fetched once, though threads share them.
        ("su3_links_as_records", "uncoalesced_access", "planes"),
        # One word of each record, in a window: a plane of them holds what five loads ask for once.
        ("closing_prices_out_of_whole_days", "uncoalesced_access", "plane"),
        # Look-ups at one index in several planes: a record brings all in one sector.
        ("mesh_cells_numbered_as_read", "uncoalesced_access", "records"),
        ("source_sets_in_planes", "uncoalesced_access", "rows"),
        # A matrix in registers, one row a round, whose sums the threads of a program exchange.
        ("triton_hadamard_rows_summed", "tensor_cores_idle", "products"),
        # Each product of a network written out names weights of its own: constants are waited for, not instructions.
        ("surface_network_of_12288_products_written_out", "instruction_cache", "loop"),
        # Levels that a block's threads hand to one another between barriers, through global memory.
        ("option_lattice_levels_in_global", "redundant_loads", "shared"),
        # Sums of two floats by compare-and-swap: three attempts each, and all wait.
        ("visibilities_added_by_compare_and_swap", "global_atomics", "paired"),
        # Planes of a volume, each read by three layers of blocks that L2 has forgotten by then.
        ("volume_smoothed_plane_after_plane", "cache_locality", "columns"),
        # A bias that all samples share, which L2 has lost when the next sample's programs come to it.
        ("triton_pair_bias_softmax_samples_outermost", "cache_locality", "order"),
        # Windows of five planes, which overlap with those of the next plane's blocks.
        ("triton_smoothed_over_depth_plane_by_plane", "cache_locality", "depth"),
        # More loads in flight save no more of the waits than DRAM leaves while it delivers.
        ("careful_dot_one_chain_a_thread", "memory_latency", "more_blocks"),
        # Digits of a number, each of what the last one left: a product with the reciprocal stays of each quotient.
        ("halton_digits_by_a_base_from_a_table", "integer_arithmetic", "known_bases"),
        # A scan: each thread takes a sum of its own from the steps, which no warp does for all at once.
        ("time_stamps_summed_between_barriers", "barriers", "shuffled"),
        ("viewshed_maxima_two_barriers_a_step", "barriers", "shuffles"),
        # Which node a thread has come to only its own way tells: no table that all walk along.
        # Places that are looked up within a block's window of the grid: what is left are the window's words.
        ("plasma_charges_four_additions_each", "global_atomics", "tile"),
        # A sort, each step of which all lanes take: no tree, and of ten distances four are between warps.
        ("candidates_sorted_by_blocks_in_step", "barriers", "lanes"),
        # A column scaled and one taken off the others: a single step between other meetings is no reduction.
        ("taste_roots_two_barriers_a_column", "barriers", "lanes"),
        # Powers of one base, whose tests for awkward arguments are mixed with the exponential beside them.
        ("flame_rates_by_powers", "expensive_math", "exponent"),
        # Windows of five rows, of which the next round's has four: their slopes, and sums of these, are made again.
        ("triton_corners_slopes_of_25_pixels_for_each", "redundant_loads", "kept"),
        # All programs pass the same points through shared memory, for one result each.
        ("triton_nearest_points_a_point_a_program", "redundant_loads", "tile"),
    ],
)
def test_the_rewrite_brings_what_was_predicted(name: str, cause: str, fix: str) -> None:
    said, (_, came) = found(name, cause), study(name)
    assert said.saves == pytest.approx(came[fix], abs=0.11)
    assert said.saves_low < came[fix] < said.saves_high + 0.03


@pytest.mark.parametrize(
    "name, size",
    [
        # Few blocks of many warps: each sums over its own row, and nothing goes on to the next row.
        ("small_grid_compute", "64"),
        ("causal_order", "3072"),
        # Every second byte takes two sectors of a warp, and so do bytes that begin anywhere: but those not always.
        ("two_mipmap:first_mended>mended", "8192"),
    ],
)
def test_what_is_said_of_a_pair(name: str, size: str) -> None:
    one = pair_of(name, size)
    flawed = one_launch(DATA / "pairs" / one["flawed"]["report"], one["flawed"]["launch"])
    said = next(finding for finding in explain(flawed).findings if finding.cause in one["causes"])
    assert said.saves == pytest.approx(1.0 - one["mended"]["time_ns"] / one["flawed"]["time_ns"], abs=0.16)


def test_the_whole_inlined_slice_of_a_function_goes() -> None:
    """A division is seven instructions, and the branch around its slow path with what marks where the ways meet."""
    launch = work(study("bilateral_two_exponentials")[0])
    slices = precise_functions(launch)
    checks = np.flatnonzero(launch.where(lambda line: line.opcode == "FCHK") & (launch.executed > 0))
    turns = launch.where(lambda line: line.opcode in ("BRA", "BSSY", "BSYNC", "CALL"))
    loop = launch.code.loop_of(int(checks[0])) if launch.program is not None else None
    inside = np.zeros(len(turns), dtype=bool)
    inside[loop.first : loop.last] = launch.executed[loop.first : loop.last] > 0
    assert slices.instructions[turns & inside].all()
    # The loads and the sums stay as they are.
    kept = launch.where(lambda line: line.opcode in ("LDG", "IMAD", "VIMNMX")) & inside
    assert not slices.instructions[kept].any()


def test_the_sum_of_a_quotient_becomes_a_multiply_add() -> None:
    """A charge by a distance is a product with the reciprocal root, which the sum takes up."""
    launch = work(study("coulomb_precise_division")[0])
    sums = launch.where(lambda line: line.opcode == "FADD") & launch.ran
    assert sums.sum() == 4 and not precise_functions(launch).fast[sums].any()


def test_what_depends_on_no_thread_needs_no_fast_function() -> None:
    (candidate,) = expensive_math(work(study("bilateral_two_exponentials")[0]))
    once = next(one for one in candidate.variants if one.exact)
    assert "once" in once.name and once.fix.keep is not None
    assert [one.exact for one in candidate.variants].count(True) == 1


def test_random_numbers_that_come_four_at_a_time_are_the_same_in_four_threads() -> None:
    launch = work(study("dropout_grad_one_of_four_numbers")[0])
    alike = neighbours_alike(launch)
    products = launch.where(lambda line: line.full.startswith("IMAD.WIDE.U32")) & (launch.executed > 0)
    # The rounds of the generator depend on the thread's number without its lowest two bits; which of its four numbers
    # is taken, and where it is used, on all of it.
    assert (alike[products] == 4).sum() == products.sum() - 1
    assert (alike[launch.where(lambda line: line.space == "global")] == 1).all()


def test_bits_of_a_word_are_one_load() -> None:
    """Thirteen bits a value are read, each with its word; how many a value has, only the sectors tell."""
    launch = work(study("unpack_13_bits_one_by_one")[0])
    (loads,) = (one for one in arrays(launch) if one.width == 4)
    assert loads.asked == 13 and loads.thread == pytest.approx(1 + 12 / 32)
    said = found("unpack_13_bits_one_by_one", "redundant_loads")
    # A thread that takes four neighbours' values has their words as well.
    names = [one.name for one in said.variants[:2]]
    assert names == ["registers, 4 outputs a thread", "kept in registers, 1 a thread"] and said.saves > 0.2


def test_a_place_within_a_page_is_no_look_up() -> None:
    """The page is looked up, the same for all lanes; which of its sixteen tokens, only the loop tells."""
    launch = work(study("paged_values_feature_major")[0])
    values = [one.form for at, one in checked_forms(launch).items() if launch.sass[at].access_bytes == 2]
    assert values and all(form.kind == AFFINE for form in values)
    assert explain(study("paged_values_feature_major")[0]).findings[0].cause == "uncoalesced_access"


def test_a_pair_is_added_to_a_wide_product() -> None:
    assert parse("IMAD.WIDE.U32.X R8, R7, 0x2, R12, P1").reads == ("R7", "R12", "R13", "P1")
    assert parse("IMAD.WIDE R2, R5, 0x4, R2").reads == ("R5", "R2", "R3")
    assert parse("IMAD.WIDE.U32 R8, R7, 0x5, RZ").reads == ("R7",)


def test_blocks_that_each_add_to_one_word_are_too_many() -> None:
    """Floating-point sums of one word come at a third of the rate of the atomic units' input."""
    profile, came = study("cg_dot_small_blocks")
    launch = work(profile)
    assert launch.loads["l2_atomics"].share > 0.9
    said = found("cg_dot_small_blocks", "global_atomics")
    assert "loop over the grid" in said.variants[0].name
    assert 0.6 < said.saves < came["grid_stride"]


@pytest.mark.parametrize(
    "name, fix",
    [
        ("triton_segment_sums_row_atomics", "rows"),
        ("embedding_bag_atomic_each_index", "warp"),
        # Targets that L2 cannot keep: it fetches them, and writes them back, again and again.
        ("triton_experts_added_by_atomics", "turns"),
        # Every second word, at places that are computed: about nine atomics for four targets.
        ("prolong_scatter_atomics", "cell"),
    ],
)
def test_what_threads_add_to_the_same_targets_is_gathered_by_the_owner(name: str, fix: str) -> None:
    """Lanes update words of their own, but there are fewer targets than updates: the atomics and their fences go."""
    _, came = study(name)
    said = found(name, "global_atomics")
    assert 0.5 * came[fix] < said.saves < came[fix] + 0.06
    assert {one.metric: one.value for one in said.evidence}["sectors of atomics"] > 4e6


def test_a_loop_that_becomes_short_is_unrolled() -> None:
    """Of 67 instructions a round 24 stay with a fast logarithm: compilers take four rounds at once then, and their
    loads are under way together.
    """
    _, came = study("triton_generalised_means_by_logarithms")
    said = found("triton_generalised_means_by_logarithms", "expensive_math")
    assert said.saves == pytest.approx(came["fast_logarithm"], abs=0.06)
    # So they do where the call of a slow path kept them from it, and what they load lies in shared memory.
    said = found("kuramoto_sine_each_pair", "expensive_math")
    assert said.saves == pytest.approx(study("kuramoto_sine_each_pair")[1]["fast"], abs=0.06)
    # A loop that is long still is not.
    assert (
        found("nbody_precise_root", "expensive_math").saves < study("nbody_precise_root")[1]["rsqrt"] + 0.05
    )


def test_results_of_wgmma_are_made_anew_in_each_tile() -> None:
    """A program that walks over tiles of a product hands nothing on from one to the next: they can be dealt out."""
    _, came = study("triton_token_merging_picture_a_program")
    assert found("triton_token_merging_picture_a_program", "small_grid").saves == pytest.approx(
        came["tiles"], abs=0.05
    )


@pytest.mark.parametrize(
    "name, side, in_order",
    [
        # Warps exchange largest values and sums of softmax, piece by piece, through the same words of shared memory.
        ("triton_decode_head_a_program", "", False),
        ("triton_policy_entropy_row_in_registers", "online", False),
        # Weights follow an error, likelihoods a sum of the last ones; sweeps need others' values; halves are halved.
        ("adaptive_filter_tree_each_sample", "", True),
        ("haplotype_mosaic_tree_each_site", "", True),
        ("coarsest_grid_a_launch_each_sweep", "in_one_block", True),
        ("sparsemax_tree_each_halving", "", True),
    ],
)
def test_pieces_of_a_sum_can_change_places(name: str, side: str, in_order: bool) -> None:
    assert work(study(name, side)[0]).code.in_order.any() == in_order


def test_what_data_make_long_is_cut_to_fill_the_gpu() -> None:
    """Of experts with thirty times as many tokens as others a few programs run alone in the end."""
    said = found("triton_grouped_product_expert_a_program", "workload_imbalance")
    assert 0.4 < said.saves < study("triton_grouped_product_expert_a_program")[1]["listed"]


def test_what_drawing_the_next_item_costs_tells_what_it_brings() -> None:
    """Three quarters of the lanes wait for a pixel with many photons; each draws a few random numbers, so that fetching
    and storing pixels lane by lane comes to as much as these.
    """
    name = "photon_counts_wait_for_the_brightest"
    said, (flawed, came) = found(name, "branch_divergence"), study(name)
    assert "draw its next item" in said.change and said.saves == pytest.approx(came["handed_out"], abs=0.12)
    (candidate,) = branch_divergence(work(flawed))
    keep, ran = candidate.fix.keep, work(flawed).ran
    assert keep is not None and keep[ran].min() < 0.25 and keep[ran].max() > 2.0
    # Rounds that are long ask for no vote: the first lane that is done draws.
    assert _drawn(each=100.0, walk=500.0, item=20.0) == (100.0, 32.0, False)
    # Where an item is as much as its walk, several wait for one another.
    assert _drawn(each=8.0, walk=40.0, item=300.0)[2]


def test_sms_that_execute_as_much_have_equal_shares() -> None:
    """Equal rows of a batch, of which some wait longer for memory: the busiest SM works 1.2 times as long as the
    average one, and executes no more.
    """
    launch = study("align_rows_in_global")[0]
    assert work(launch).imbalance > 1.2
    assert not list(uneven_work(work(launch)))
    uncounted = {name: one for name, one in launch.metrics.items() if name != metrics.SM_INSTRUCTIONS_MAX}
    (one,) = uneven_work(work(replace(launch, metrics=uncounted)))
    assert one.cause == "workload_imbalance"


def test_copies_of_a_tile_that_is_smaller_than_a_program_are_idle() -> None:
    """Sixteen values in 128 threads: eight groups of lanes exchange the same, and one of them stores."""
    name = "triton_stream_mixing_token_a_program"
    said, (_, came) = found(name, "idle_threads"), study(name)
    assert said.saves == pytest.approx(came["lanes"], abs=0.1)


def test_parts_of_a_depth_are_added_up_by_fewer_warps() -> None:
    """Sixteen programs add to each tile of a product: one that owns it multiplies all, and so many fewer run."""
    launch = work(study("triton_prefill_product_in_sixteen_parts")[0])
    (one,) = global_atomics(launch)
    keep, resident = one.fix.keep, launch.resident_warps
    assert keep[launch.where(lambda line: line.opcode == "HGMMA") & (launch.executed > 0)].min() == 1.0
    whole = work(study("triton_prefill_product_in_sixteen_parts", "whole_depth")[0])
    assert one.fix.warps * resident == pytest.approx(whole.resident_warps, rel=0.05)


def test_nothing_is_owned_whose_targets_are_scattered() -> None:
    """Who adds to a word that was looked up, no target knows; nor who adds to lanes' places around one."""
    for name, side in (("relax_edges_atomic_always", ""), ("raster_thread_per_triangle", "warp")):
        assert "global_atomics" not in [one.cause for one in detect(work(study(name, side)[0]))], name


@pytest.mark.parametrize(
    "name, side, cause, way",
    [
        # Four warps on an SM wait for loads in 58 % of their time.
        ("chunk_fingerprints_a_warp_each", "", "memory_latency", "loads in flight"),
        # Each lane's sum follows from the month before: more warps, which others would bring, are no help to it.
        ("policies_of_mixed_terms_in_a_warp", "refilled", "uncoalesced_access", "lanes at one place"),
    ],
)
def test_no_more_is_told_than_the_waits_that_go(
    name: str, side: str, cause: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # as told, with what kernels have beyond the model
    launch = work(study(name, side)[0])
    predictor = Predictor(TimeModel(launch))
    (one,) = (
        variant
        for said in detect(launch)
        if said.cause == cause
        for variant in said.variants
        if way in variant.name
    )
    assert one.bound < 0.6
    assert predictor.told(one, predictor.predict(one)).saves <= one.bound


def test_rows_of_targets_are_counted_where_a_loop_walks_along_them() -> None:
    """Two experts add to each token's row, piece by piece: half as many sectors came to L2 as were added to."""
    launch = work(study("moe_combine_atomics")[0])
    (one,) = global_atomics(launch)
    assert one.fix.resources["block_launch"] == pytest.approx(0.5, abs=0.01)


def test_rounds_of_a_loop_update_windows_of_their_own() -> None:
    """Votes for lines: each angle has its own counters, which shared memory holds; all angles' it does not."""
    said = found("lines_voted_for_in_global_memory", "global_atomics")
    assert said.saves == pytest.approx(study("lines_voted_for_in_global_memory")[1]["angle"], abs=0.1)


def test_targets_that_l2_keeps_are_nobodys() -> None:
    """Nothing of them reaches memory, so that nothing tells how many they are (and who owned none ran no warp)."""
    launch = work(study("triton_style_matrices_32_programs", "parts")[0])
    assert all(one.fix.warps > 0 for one in detect(launch))


def test_what_a_blocks_rounds_update_at_the_same_computed_places_is_combined() -> None:
    """Diagonals: each word of a strip's rows and columns is lowered by many threads, in different rounds of theirs."""
    said, (_, came) = (
        found("nearest_windows_two_atomics_a_pair", "global_atomics"),
        study("nearest_windows_two_atomics_a_pair"),
    )
    assert said.saves == pytest.approx(came["in_block"], abs=0.1)
    numbers = {one.metric: one.value for one in said.evidence}
    assert numbers["updates of a block at each word, at least"] == pytest.approx(42, abs=1)
    combined = work(study("nearest_windows_two_atomics_a_pair", "in_block")[0])
    assert not list(global_atomics(combined))


def test_keys_that_claim_a_place_are_nothing_to_add_up() -> None:
    """A compare-and-swap with a constant looks for a free place, its loop goes on to the next one; a sum's compares
    with what was read.
    """
    keys, sums = (
        [one.cause for one in detect(work(study(name, side)[0]))]
        for name, side in (
            ("product_rows_hashed_in_global", "shared"),
            ("joint_histogram_floats_in_shared", ""),
        )
    )
    assert "shared_atomics" not in keys and "shared_atomics" in sums
    (table,) = global_atomics(work(study("product_rows_hashed_in_global")[0]))
    assert table.change.startswith("Keep the table")


# What nvcc 13.0 makes of a sum of halves by compare-and-swap: of a pair on the FMA pipe, of one in its word.
_SWAPS = """
LDG.E R8, desc[UR4][R4.64]
{made}
ATOMG.E.CAS.STRONG.GPU PT, R9, [R4], R8, R9
ISETP.NE.AND P0, PT, R8, R9, PT
IMAD.MOV.U32 R8, RZ, RZ, R9
@P0 BRA 0x000010
EXIT
"""
_PAIR = "HFMA2.MMA R9, R8, 1, 1, R7"
_IN_A_WORD = """PRMT R2, R8, R5, RZ
HADD2 R2, R2.H0_H0, R0.H0_H0
LOP3.LUT R2, R2, 0xffff, RZ, 0xc0, !PT
PRMT R9, R8, R3, R2"""
_MOVING_AVERAGE = "FFMA R9, R8, 0.9, R7"
_BYTE = """LOP3.LUT R2, R8, R5, RZ, 0xc0, !PT
LOP3.LUT R9, R2, R6, RZ, 0xfc, !PT"""


@pytest.mark.parametrize(
    "value, adds", [(_PAIR, True), (_IN_A_WORD, True), (_MOVING_AVERAGE, False), (_BYTE, False)]
)
def test_sums_of_halves_are_sums(value: str, adds: bool) -> None:
    code = [f"{line} ;" for line in _SWAPS.format(made=value).split("\n") if line]
    found = global_atomics(made(*code, executed=[100, *[300] * (len(code) - 2), 100]))
    assert ("added by the memory" in [way.name for one in found for way in one.variants]) == adds


def test_columns_that_a_program_adds_up_are_no_row() -> None:
    """Eight lanes of a warp or more each store the sum of a column of their own: no warp takes all of the block's."""
    found = detect(work(study("triton_channel_moments_of_32_rows")[0]))
    assert "global_atomics" in [one.cause for one in found]
    assert "a warp a row" not in [variant.name for one in found for variant in one.variants]


@pytest.mark.parametrize(
    "name, side, cause",
    [
        # Lanes of one source have combined theirs; all others go to words of their own.
        ("components_atomic_min", "combined", "global_atomics"),
        # A thread keeps the planes it marches through; where its loads go is not known.
        ("stencil_27_point", "marching", "redundant_loads"),
        # The largest block shares its table already.
        ("tabulated_forces_whole_table_in_shared", "wide", "low_occupancy"),
        # Its 48 registers are alive at once.
        ("stencil_27_point", "marching", "low_occupancy"),
        # Its bits are worked out a word at a time: a carry runs through them.
        ("edit_distance_row_in_local", "bits", "integer_arithmetic"),
        # Each state takes its neighbours' of the step before: steps cut into pieces have no ends to join.
        ("ctc_alpha_through_global", "shared", "low_occupancy"),
        ("seam_costs_two_barriers_a_row", "ahead", "low_occupancy"),
        ("ctc_alpha_through_global", "", "low_occupancy"),
        # Each row's quotient is divided by in the next: no scan joins pieces of that.
        ("eigenvalue_counts_chain_of_quotients", "", "low_occupancy"),
        # L1 has each sector already that lanes of other rows touch: what blocks read comes from DRAM once.
        ("triton_enlarged_and_skip_joined_flat", "rows", "uncoalesced_access"),
        # Each round's row is looked up: no order of blocks decides what lies in the cache.
        ("bags_of_four_bit_rows_a_value_a_thread", "warp", "cache_locality"),
        # A quotient's remainder, another one in each round, says which day is read.
        ("bootstrap_days_by_remainders_of_64_bits", "", "redundant_loads"),
        # Its rows are walked down: wider loads are those of fewer threads, of which there are too few already.
        ("kept_keys_scored_by_32_blocks", "", "narrow_access"),
        # Rows of a matrix that lanes change in turn hold nothing that a table could.
        ("mass_inverses_two_barriers_a_joint", "warp", "expensive_math"),
        # Its blocks count what is common in shared memory, and add that up.
        ("token_pairs_counted_by_an_atomic_each", "common_in_shared", "global_atomics"),
        # Rounds are counted alike, but which of them was a thread's last only its own way through them tells.
        ("fractal_contiguous_rows", "small", "integer_arithmetic"),
        # Which of two cities is next, each tour's own digits say, and where its distance lies.
        ("tour_numbers_unranked_in_local", "chosen", "narrow_access"),
        # Nor does a thread of four pixels count their rounds once.
        ("fractal_contiguous_rows", "small", "narrow_access"),
        # A thread of four results leaves a quarter of the warps, where the grid is too small already.
        ("legendre_sums_block_per_wave", "pieces", "redundant_loads"),
        ("code_words_one_chain_of_4096_products", "four", "integer_arithmetic"),
        # Where a round reads, the last one's load says: a decoder's state, the letter before.
        ("entropy_symbols_found_by_walking", "table", "low_occupancy"),
        ("inverse_transform_entered_every_512_letters", "packed", "low_occupancy"),
        ("photon_counts_wait_for_the_brightest", "", "integer_arithmetic"),
        # A parameter tells by how much is shifted: no place comes again.
        ("bit_reversal_scattered", "tiles", "redundant_loads"),
        # Threads behind the diagonal leave at once, and all others' work stays.
        ("tour_exchanges_triangle_by_city", "pieces", "idle_threads"),
        # Trees in shared memory: a comparison of what was loaded chooses the node.
        ("forest_nodes_in_four_arrays", "shared", "shared_memory_bandwidth"),
        # Tables in shared memory: a nibble of the data chooses the word.
        ("ghash_bit_by_bit", "nibbles", "shared_memory_bandwidth"),
        ("motif_constant_lookup", "shared", "shared_memory_bandwidth"),
        # Thirty loads of a warp are under way, read 200 instructions on: DRAM delivers no faster.
        ("sinking_dust_a_layer_at_a_time", "eight", "memory_latency"),
        # More loads are under way than DRAM answers at its rate.
        ("snow_cover_day_after_day", "tens", "memory_latency"),
        ("growing_degrees_a_load_waits_for_the_store", "ahead", "memory_latency"),
        # Lanes that are done draw their next item, by a counter and by votes.
        ("seeds_extended_one_a_lane", "next", "branch_divergence"),
        ("photons_of_all_lengths_in_a_warp", "next", "branch_divergence"),
        ("expected_ranges_beams_of_all_lengths_in_a_warp", "taken", "branch_divergence"),
        # A tile of 4 x 4 results: for the sums of a larger one an SM holds half as many warps.
        ("rating_matrices_a_word_of_shared_a_product", "fours", "shared_memory_bandwidth"),
        # Its lanes scan by shuffles already.
        ("time_stamps_summed_between_barriers", "shuffled", "barriers"),
        # Its blocks follow one another through the planes.
        ("volume_smoothed_plane_after_plane", "columns", "cache_locality"),
    ],
)
def test_what_is_done_already_is_not_promised_again(name: str, side: str, cause: str) -> None:
    profile, _ = study(name, side)
    assert sum(one.saves for one in explain(profile).findings if one.cause == cause) < 0.05


def test_bytes_that_lanes_share_begin_nowhere() -> None:
    """Six bits a result, in bytes that neighbours read, too: results of two bytes are stored one by one."""
    (first, *_) = explain(study("lattice_noise_bit_by_bit")[0]).findings
    assert first.cause == "narrow_access" and "8 elements" in first.change


def test_bytes_of_shared_memory_are_told_as_words() -> None:
    """Cells of a byte that neighbours read: what each cell takes beside its loads stays."""
    (first, *_) = explain(study("automaton_a_barrier_of_32_warps_each_generation")[0]).findings
    assert first.cause == "narrow_access" and "4 elements at once, a word of shared memory" in first.change
    compared = explain(study("census_63_bytes_from_memory", "tile")[0])
    assert all(one.saves < 0.15 for one in compared.findings)


def test_pieces_that_a_thread_takes_one_by_one_are_told_as_a_vector() -> None:
    """Tiles of 4 x 4 at every second pixel: how far lanes lie apart, the sectors that they touch tell."""
    (first, *_) = explain(study("winograd_tiles_across_the_lanes", "turned")[0]).findings
    assert "Move what a thread takes side by side with one vector" in first.change


def test_a_warp_wants_no_more_addresses_than_it_has_threads() -> None:
    """Where the constant cache counts a load's turns several times over."""
    (looked_up,) = [
        one for one in explain(study("dictionary_constant")[0]).findings if one.cause == "constant_divergence"
    ]
    assert "want 32.0 addresses at once" in looked_up.change


def test_what_threads_read_again_is_no_order_of_blocks() -> None:
    """Three passes of each thread over its own column of 150 planes: no block shares anything with another."""
    sweeps, _ = study("entropy_map_three_sweeps_of_classes")
    said = {one.cause: one.change for one in explain(sweeps).findings}
    assert said["cache_locality"].startswith("Read it once: 2.9 times")


def test_a_tile_is_told_by_the_uses_of_its_values() -> None:
    """Whatever it computes with: a least sum of integers uses each value of a shared tile once, as a product does."""
    folds, _ = study("rna_folds_a_cell_a_thread")
    said = {one.cause: one.change for one in explain(folds).findings}
    assert "a thread uses it 1.0 times now" in said["shared_memory_bandwidth"]


def test_a_kernel_that_computes_in_fp64_is_told_of_fp32_apart() -> None:
    """What changes the arithmetic is no first advice to a stencil of doubles; FP64 literals among floats are."""
    stencil, literals = (
        explain(study("stencil_7_point_axes", "marching")[0]),
        explain(study("swiglu_double_literals")[0]),
    )
    assert "double_precision" in [one.cause for one in stencil.other_arithmetic]
    assert "double_precision" in [one.cause for one in literals.findings]


def test_what_dram_reaches_falls_with_writes() -> None:
    """Recorded kernels that only read came to 93 % of the peak, none that writes half to more than 87."""
    ceilings = [work(study(name)[0]).loads["dram"].ceiling for name in ("sound_sum", "sound_transpose")]
    assert ceilings == pytest.approx([0.93, 0.87], abs=0.01)


def test_a_slow_path_between_a_value_and_its_use_hides_nothing() -> None:
    """Cosines after one another: what reads the reduced argument stands behind the slow path that writes it, too."""
    launch = work(study("dct_8x8_cosines")[0])
    assert launch.program is not None
    reduced = [
        at for at, line in enumerate(launch.sass) if line.text.startswith("FFMA") and "-5.390302" in line.text
    ]
    used = [launch.code.consumers(at) for at in reduced if launch.executed[at]]
    assert len(used) == 16 and all(used)


def test_loads_wait_behind_atomics_whose_words_change_in_the_course_of_a_launch() -> None:
    """No slice of L2 is busy on average, and yet each load takes five times as long as DRAM does."""
    flawed, came = study("betweenness_passed_back_edge_by_edge")
    launch = work(flawed)
    assert launch.loads["l2_atomics"].share < 0.2 and crowding(launch) == 1.0
    said = explain(flawed).findings[0]
    assert (said.cause, said.saves) == ("global_atomics", pytest.approx(came["segments"], abs=0.15))
    # Blocks that count in shared memory first add little at a time: nothing waits behind that.
    assert crowding(work(study("window_bias_gradient_atomic_each_score", "shared")[0])) < 1.0


def test_a_queue_behind_atomics_is_seen_where_their_unit_was_not_counted() -> None:
    launch, _ = study("betweenness_passed_back_edge_by_edge")
    others = {name: one for name, one in launch.metrics.items() if name not in metrics.BUSY["l2_atomics"]}
    assert explain(replace(launch, metrics=others)).findings[0].cause == "global_atomics"


def test_a_tile_that_is_a_row_grows_no_longer() -> None:
    """Each program has a time of its own, whose row it fills."""
    (said,) = (
        one
        for one in explain(study("triton_time_embedding_both_functions_each_lane", "halves")[0]).findings
        if one.cause == "redundant_loads"
    )
    assert "Give a program 4 rows, or fewer num_warps: " in said.change


def test_copies_of_a_table_keep_look_ups_apart() -> None:
    """Random words of tables in shared memory: as many copies as fit without costing more warps than they bring."""
    said, (_, came) = found("aes_tables_conflicts", "shared_bank_conflicts"), study("aes_tables_conflicts")
    assert said.saves == pytest.approx(max(came.values()), abs=0.15)
    assert {way.name for way in said.variants} >= {"8 copies of the table", "16 copies of the table"}


def test_a_walk_in_a_row_of_ones_own_lies_apart() -> None:
    """A tree says which of a row's features is next: rows lie a line apart, wherever the walk leads."""
    assert found("forest_nodes_in_four_arrays", "uncoalesced_access").saves > 0.4


def test_links_that_threads_follow_from_their_own_place_are_doubled() -> None:
    """Every node's thread walks to its root: what the others have found on the way is theirs, too."""
    said, (launch, came) = found("find_roots_long_chains", "memory_latency"), study("find_roots_long_chains")
    assert said.saves == pytest.approx(came["doubling"], abs=0.05)
    # Where a table's buckets begin, or one root for all, no place is a thread's own.
    assert list(chains(work(launch)))
    for other in ("join_probe_linked_chains", "binary_search_one_at_a_time", "huffman_bit_by_bit"):
        assert not list(chains(work(study(other)[0])))


def test_bins_at_random_do_not_meet() -> None:
    """32 lanes' bins at random take 3.5 passes, each a bank's: nothing to combine in the warp."""
    generator = np.random.default_rng(0)
    thrown = generator.integers(0, 32, (20_000, 32))
    passes = np.mean([np.bincount(row, minlength=32).max() for row in thrown])
    assert random_passes(32) == pytest.approx(float(passes), rel=0.01) and random_passes(1) == 1.0
    few = np.mean([np.bincount(row // 8, minlength=4).max() for row in thrown[:, :16]])
    assert random_passes(16, 4) == pytest.approx(float(few), rel=0.01)
    assert "shared_atomics" not in [one.cause for one in explain(study("sound_histogram")[0]).findings]


def test_all_of_a_division_goes_and_nothing_else() -> None:
    """From the conversion of its divisor to the quotient's sign, interleaved with another by the same divisor. Of what
    is made of quotients, comparisons stay, and loads and branches around them; two instructions find a place.
    """
    launch = work(study("col2im_divisions")[0])
    divided = integer_divisions(launch)
    first = int(np.argmax(np.where([line.full == "I2F.RP" for line in launch.sass], launch.executed, 0.0)))
    last = next(at for at in range(first, len(launch.sass)) if launch.sass[at].opcode == "LDG")
    stays = [launch.sass[at].opcode for at in range(first, last) if not divided.instructions[at]]
    assert set(stays) <= {"BRA", "LDC", "ISETP"} and stays.count("ISETP") == stays.count("BRA") == 4
    # Divisions of quotients are divisions of their own, each with its reciprocal: here stand none in loops.
    conversions = [at for at, line in enumerate(launch.sass) if line.full == "I2F.RP" and launch.executed[at]]
    assert not divided.keep[conversions].any()
    (place,) = launch.code.producers(last, "R12")
    assert launch.sass[place].full == "IMAD.WIDE" and divided.keep[place] < 0.5


def test_a_remainder_of_128_bits_is_made_digit_by_digit() -> None:
    """A loop of three digits and the reciprocal of a constant; the product that is reduced, and its sum, stay."""
    launch = work(study("trace_columns_by_wide_remainders")[0])
    divided = integer_divisions(launch)
    fixed = work(study("trace_columns_by_wide_remainders", "folded")[0])
    kept = float(launch.executed @ np.where(divided.instructions, divided.keep, 1.0))
    assert divided.bits == 128 and kept == pytest.approx(fixed.total_executed, rel=0.1)
    assert not divided.instructions[launch.global_loads].any()


def test_remainders_of_what_remainders_left_are_taken_less_often() -> None:
    """Two sums of bytes, each reduced after every byte; a digit and an index are reduced once."""
    flawed, came = study("adler32_remainder_per_byte")
    keep = chained_remainders(work(flawed))
    assert keep is not None and sorted(set(keep.tolist())) == [0.125, 1.0]
    said = explain(flawed).findings[0]
    assert said.cause == "integer_arithmetic" and 0.5 * came["deferred"] < said.saves < came["deferred"]
    remainder = (
        "IMAD.WIDE.U32 R6, R4, -0x7ff87f8f, RZ ;",
        "SHF.R.U32.HI R7, RZ, 0xf, R7 ;",
        "IMAD R4, R7, -0xfff1, R4 ;",
    )
    load, store = "LDG.E R4, desc[UR4][R2.64] ;", "STG.E desc[UR4][R2.64], R4 ;"
    assert chained_remainders(made(load, *remainder, store, "EXIT ;")) is None
    # Of what is multiplied in between as many are put off as 32 bits have room for: 65521 times 10000.
    for between, stays in (("IADD3 R4, R4, R9, RZ ;", 0.125), ("IMAD R4, R4, 0xa, R9 ;", 0.25)):
        told = chained_remainders(made(load, *remainder, between, *remainder, store, "EXIT ;"))
        assert told is not None and told.tolist()[1:4] == [stays] * 3
    unknown = made(load, *remainder, "IMAD R4, R4, R8, R9 ;", *remainder, store, "EXIT ;")
    assert chained_remainders(unknown) is None


def test_the_same_value_beyond_ways_that_no_thread_took_is_computed_once() -> None:
    """Cosines of three axes at each of 64 nodes, with ways for large arguments between them: the fast functions leave
    straight code, where neither what leads there nor the same cosine again is left.
    """
    launch = work(study("marker_velocities_cosines_at_each_node")[0])
    found = precise_functions(launch)
    first = [at for at, line in enumerate(launch.sass) if launch.executed[at] and "-1.570796251" in line.text]
    assert len(first) == 12 and found.fast[first].max() == 0.0
    left = float(launch.executed @ found.both) / launch.total_executed
    assert left < 0.25


def test_a_division_by_what_each_thread_loaded_has_nothing_to_go() -> None:
    """Its reciprocal takes what the division takes."""
    code = """I2F.RP R4, R2
        MUFU.RCP R4, R4
        IADD3 R4, R4, 0xffffffe, RZ
        F2I.FTZ.U32.TRUNC.NTZ R5, R4
        IMAD.MOV R6, RZ, RZ, -R5
        IMAD R7, R6, R2, RZ
        MOV R4, RZ
        IMAD.HI.U32 R5, R5, R7, R4
        IMAD.HI.U32 R8, R5, R3, RZ
        IMAD.MOV R9, RZ, RZ, -R8
        IMAD R9, R2, R9, R3"""
    end = ["STG.E desc[UR4][R10.64], R9", "EXIT"]
    loaded = ["LDG.E R2, desc[UR4][R10.64]", "LDG.E R3, desc[UR4][R12.64]"]
    given = ["LDC R2, c[0x0][0x210]", "S2R R3, SR_TID.X"]
    lines = [line.strip() for line in code.splitlines()]
    assert integer_divisions(made(*loaded, *lines, *end)).keep.min() == 1.0
    kept = integer_divisions(made(*given, *lines, *end)).keep
    assert kept[2:8].max() == 0.0 and kept[8:-2].max() < 0.5
    # A divisor that is taken from the parameters once more is the same one.
    twice = ["LDC R14, c[0x0][0x210]", *lines[:-1], "IMAD R9, R14, R9, R3"]
    divided = integer_divisions(made(*given, *twice, *end)).instructions
    assert divided[-3] and not divided[-2]
    # A loaded dividend that the divisor was added to wraps by a comparison: half of what a remainder takes.
    by_data = [given[0], "LDG.E R3, desc[UR4][R12.64]"]
    corrected = [*lines, *["ISETP.GE.U32.AND P0, PT, R9, R2, PT", "@P0 IADD3 R9, R9, -R2, RZ"] * 2, *end]
    whole, wrapped = (
        integer_divisions(made(*by_data, *first, *corrected)).keep[-9:-2].sum()
        for first in ([], ["IADD3 R3, R3, R2, RZ"])
    )
    assert wrapped == pytest.approx(0.5 * whole)


def test_doubles_take_half_the_bytes_however_late_they_are_used() -> None:
    """A value of FP64 meets the first FP64 instruction hundreds of others after its load."""
    between = ["FADD R9, R9, R9"] * 300
    load, store = "LDG.E.64 R2, desc[UR4][R10.64]", "STG.E desc[UR4][R10.64], R4"
    launch = made(load, *between, "DMUL R4, R2, R2", "F2F.F32.F64 R4, R4", store, "EXIT")
    assert _of_doubles(launch, launch.where(lambda line: line.opcode == "DMUL")).nonzero()[0].tolist() == [0]


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("max_pool_wrong_order", "l2_tags"),
        ("nchw_to_nhwc_scattered", "l2_in"),
        ("row_store_four_fields", "l2_atomics"),
    ],
)
def test_no_kernel_does_more_than_what_is_called_the_most(name: str, resource: str) -> None:
    assert work(study(name)[0]).loads[resource].share <= 1.02


def test_a_window_s_rows_that_are_kept_within_the_image_are_known() -> None:
    """Every index goes through a minimum with a parameter: what neighbours load again is counted all the same."""
    profile, came = study("blur_columns_25_taps")
    first = explain(profile).findings[0]
    assert first.cause == "redundant_loads"
    assert "outputs a thread" in first.variants[0].name
    assert first.saves_low <= came["registers"] <= first.saves_high


def test_three_passes_over_a_row_load_it_three_times() -> None:
    """Each pass's loop is unrolled with a rest, of which this launch ran one: the row is the same for all that."""
    for one in arrays(work(study("masked_softmax_three_reads")[0])):
        assert one.asked == pytest.approx(3 * one.thread)


def test_a_warp_does_the_row_of_a_block_whose_warps_reduce_by_themselves() -> None:
    """20 sums over a block by shuffles, each with a barrier for eight warps' own."""
    _, came = study("sparsemax_tree_each_halving")
    said = explain(study("sparsemax_tree_each_halving", "one_barrier")[0]).findings[0]
    saved = 1.0 - (1.0 - came["warp"]) / (1.0 - came["one_barrier"])
    assert said.cause == "barriers" and 0.5 * saved < said.saves < saved
    # No registers hold the row of a program whose threads have 255 already.
    causes = [one.cause for one in explain(study("triton_policy_entropy_row_in_registers")[0]).findings]
    assert "barriers" not in causes


def test_all_that_is_read_of_a_node_is_found_where_the_last_one_said() -> None:
    """A step down a trie: what ends there, four bytes, and where it goes on, eight; each lane's own address tells which
    way. No order of the lanes brings nodes together; one record brings both.
    """
    launch = work(study("routes_found_bit_by_bit")[0])
    loads = [at for at in np.flatnonzero(launch.global_loads) if launch.code.loop_of(int(at))]
    assert len(loads) == 2 and launch.code.chased[loads].all()
    assert [checked_forms(launch)[int(at)].form.kind for at in loads] == [LOOK_UP, LOOK_UP]
    ways = [way.name for one in detect(launch) for way in one.variants if one.cause == "uncoalesced_access"]
    assert ways == ["2 arrays as one of records of 16 bytes"]


def test_a_search_begins_from_a_table_of_starts() -> None:
    """Where its first step is the same for all threads: not where each walks on from a place of its own (another
    step's, a row's), nor where a node says which of a key's numbers to look at (a forest).
    """

    def begun(name: str, side: str = "") -> list[float]:
        said = explain(study(name, side)[0]).findings
        return [way.saves for one in said for way in one.variants if way.name.startswith("a table of")]

    for name, fix in (("routes_found_bit_by_bit", "from_16"), ("adam_codes_found_by_halving", "direct")):
        assert begun(name) == [pytest.approx(study(name)[1][fix], abs=0.12)]
    # As timed of a table of 2 ** 15: 38 %.
    assert begun("binary_search_one_at_a_time") == [pytest.approx(0.38, abs=0.1)]
    assert not begun("binary_search_one_at_a_time", "top")
    assert not begun("random_walk_long_modulo") and not begun("forest_nodes_in_four_arrays")


def test_what_lanes_search_together_is_searched_once_for_several() -> None:
    """Sixteen steps, in each of which a warp's lanes find the same word: as counted, for none could know."""
    launch, came = study("gene_counts_cell_found_by_bisection")
    said = {one.cause: one.saves for one in explain(launch).findings}
    assert 0.75 * came["eight"] < said["redundant_loads"] < came["eight"]


def test_a_key_and_its_value_are_one_record() -> None:
    """Keys probed in a loop, and behind it one load at the place that was found in another array."""
    launch, came = study("hash_probe_split_table")
    ways = [way for one in explain(launch).findings for way in one.variants if "records" in way.name]
    assert [way.name for way in ways[:1]] == ["2 arrays as one of records of 8 bytes"]
    assert ways[0].saves == pytest.approx(came["pairs"], abs=0.06)


def test_loads_that_leave_a_loop_take_no_look_up_beside_them_along() -> None:
    """Three coalesced loads a level of a hash grid, and eight look-ups that touch a sector a lane."""
    said = explain(study("hash_grid_levels_in_a_loop")[0])
    assert all(one.cause != "redundant_loads" or one.saves < 0.1 for one in said.findings)


def test_a_tile_that_is_loaded_once_is_waited_for_by_all_warps_of_its_block() -> None:
    """A warp reads two borders and a value, each once: from a tile it would have them no sooner."""
    said = explain(study("run_lengths_thread_per_run", "warp")[0])
    assert all("tile in shared memory" not in way.name for one in said.findings for way in one.variants)


def test_steps_that_are_no_reduction_do_not_halve() -> None:
    """255 steps of a tree, two barriers each: one of two, or a warp that does the block's work; no reduction."""
    said, (_, came) = found("binomial_tree_two_barriers", "barriers"), study("binomial_tree_two_barriers")
    ways = {one.name: one.saves for one in said.variants}
    assert ways["one barrier a step"] == pytest.approx(came["two_buffers"], abs=0.03)
    assert said.variants[0].name.startswith("a warp in place of a block")
    assert said.saves == pytest.approx(came["warp"], abs=0.2)


@pytest.mark.parametrize("registers, ways", [(200, 1), (250, 0)])
def test_a_warp_takes_a_blocks_values_only_where_its_registers_hold_them(registers: int, ways: int) -> None:
    """The tree's block has eight values a lane: a thread of 250 registers has no room for them."""
    launch = study("binomial_tree_two_barriers")[0]
    full = work(replace(launch, launch=replace(launch.launch, registers_per_thread=registers)))
    names = [way.name for one in barriers(full) for way in one.variants]
    assert sum(name.startswith("a warp in place of a block") for name in names) == ways


def test_a_divisions_subroutine_goes_with_its_calls() -> None:
    """Every warp has lanes that take the slow path of a division by the row's sum: it is called as often as not."""
    launch = work(study("masked_softmax_three_reads")[0])
    stays = precise_functions(launch).once
    assert launch.program is not None
    first, last = launch.code.functions[-1]
    ran = [at for at in range(first, last + 1) if launch.executed[at]]
    calls = [at for at in launch.code.callers((first, last)) if launch.executed[at]]
    assert stays[ran].max() == stays[calls].max() == 0.0


def opcodes(launch: Work, full: str) -> list[int]:
    """The instructions of this name that ran."""
    return [at for at, line in enumerate(launch.sass) if line.full == full and launch.executed[at]]


def test_what_comes_to_few_values_is_computed_once() -> None:
    """The root of an edge's length is the same in all threads of a warp; the root of a distance, behind it, is
    another one for each pixel.
    """
    launch = work(study("outline_distance_root_each_edge")[0])
    edges, pixels = opcodes(launch, "MUFU.RSQ")[:2]
    again, found = computed_again(launch, FLOATS), evaluations(launch)
    assert found.different[edges] <= launch.threads[edges] / WARP
    assert again.keep[edges] < 0.05 and again.loads > 0
    assert found.different[pixels] == launch.threads[pixels] and again.keep[pixels] == 1.0
    assert precise_functions(launch).once[edges] == again.keep[edges]


def test_powers_of_the_kernels_own_arguments_are_a_value_of_the_host() -> None:
    """Both corrections of Adam's moments are powers of arguments, in a function that is called twice."""
    launch = work(study("adam_pow_per_thread")[0])
    power = launch.code.functions[-1]
    steps = [at for at in opcodes(launch, "DFMA") if power[0] <= at <= power[1]]
    assert steps and evaluations(launch).different[steps].max() == 1.0
    assert computed_again(launch, FLOATS).loads == 0.0


def test_what_a_loop_adds_up_stays_where_its_reciprocal_leaves_another() -> None:
    """The sum of a row is needed once, but of as many terms as ever."""
    side = pair_of("two_softmax:both>second_mended", "524288")["mended"]
    launch = work(read_report(DATA / "pairs" / side["report"])[side["launch"]])
    again = computed_again(launch, FLOATS)
    (reciprocal,) = (at for at in again.rows if launch.sass[at].full == "MUFU.RCP")
    summing = min(launch.code.loops, key=lambda loop: loop.first)
    assert again.keep[reciprocal] < 0.2 and reciprocal not in summing
    assert (again.keep[summing.first : summing.last] == 1.0).all()


def test_local_sectors_are_those_of_local_memory_alone() -> None:
    profile, _ = study("nearest_16_insertion")
    (found,) = local_memory(work(profile))
    flows = traffic(work(profile))
    told = next(one.value for one in found.evidence if one.metric.startswith("local sectors"))
    assert told == pytest.approx(flows.local / flows.l2)


def test_a_table_is_read_from_shared_memory_at_what_its_banks_take() -> None:
    """A warp wants the weights of four letters: their words lie in four banks, seldom in fewer."""
    profile, came = study("motif_constant_lookup")
    (found,) = constant_divergence(work(profile))
    loads = found.attributed
    assert loads is not None and found.evidence[0].value == pytest.approx(4.0, abs=0.1)
    assert 1.0 < found.fix.passes / loads.sum() < 1.3
    finding = next(one for one in explain(profile).findings if one.cause == "constant_divergence")
    assert finding.saves == pytest.approx(came["shared"], abs=0.07)


def test_what_the_constant_cache_serves_is_counted_in_addresses_not_in_cycles() -> None:
    """It takes two cycles each: 32 letters at random of a table of 256 words want 30, a round's number wants one."""
    (found,) = constant_divergence(work(study("crc32_constant_table")[0]))
    assert found.evidence[0].value == pytest.approx(256 * (1.0 - (255 / 256) ** 32), abs=0.1)
    for alike in ("sha256_schedule_array", "blake2s_message_array", "in_list_compared_one_by_one"):
        assert not list(constant_divergence(work(study(alike)[0])))


def test_what_the_data_decide_is_no_thread_without_work() -> None:
    """Few threads store, but which of them is known only when they have loaded."""
    loads = ("LDG.E R2, desc[UR4][R4.64] ;", "ISETP.GT.AND P0, PT, R2, RZ, PT ;")
    numbers = ("S2R R2, SR_TID.X ;", "ISETP.GT.AND P0, PT, R2, 0x3, PT ;")
    for code, causes in ((loads, []), (numbers, ["idle_threads"])):
        profile = made(*code, "@!P0 STG.E desc[UR4][R6.64], R8 ;", "EXIT ;").profile
        switched = {
            metrics.THREADS_PREDICATED_BY_ADDRESS: {0: 3200, 16: 3200, 32: 320, 48: 3200},
            metrics.GLOBAL_SECTORS_BY_ADDRESS: {32: 40},
        }
        instances = {
            name: Instances(tuple(BASE + at for at in counts), tuple(counts.values()))
            for name, counts in switched.items()
        }
        found = idle_threads(work(replace(profile, instances={**profile.instances, **instances})))
        assert [one.cause for one in found] == causes


def test_threads_whose_votes_a_barrier_counts_have_work() -> None:
    """One thread of a block stores how many of them found something wrong (``__syncthreads_count``)."""
    assert not list(idle_threads(work(study("utf8_checked_a_byte_a_thread")[0])))


def test_rows_shorter_than_a_warp_get_fewer_lanes_and_kinds_are_sorted() -> None:
    assert "8 rows, 4 lanes each" in found("spmv_csr_short_rows", "branch_divergence").change
    assert "Sort or regroup" in found("hits_shaded_in_the_order_of_pixels", "branch_divergence").change
    # Lanes that share a motion's steps bring 24 %, motions in order of their lengths take 43 % longer.
    assert (
        "lanes share a walk" in found("motions_checked_step_by_step_by_a_thread", "branch_divergence").change
    )
    # Rounds that need what the one before left are no walk to be shared.
    said = explain(study("modular_inverse_by_euclid")[0]).findings
    assert not any("share a walk" in one.change for one in said)


def test_look_ups_that_fill_l2_are_at_no_limit() -> None:
    """Four lanes a point share sectors of which each thread looked up its own."""
    scattered, came = study("spline_gather_thread_per_atom")
    assert came["four"] > 0.3 and explain(scattered).at_limit is None
    assert explain(study("sound_pages_gathered")[0]).at_limit is not None


def test_atomics_of_tritons_default_order_are_told_the_relaxed_one() -> None:
    """On an H100 the order alone took 43 % off sums by row, 10 % off atomics that meet and 0.2 % off a sum of all."""
    for name, came in (
        ("triton_segment_sums_row_atomics", 0.43),
        ("triton_norm_weight_grad_atomics", 0.10),
        ("triton_square_sum_small_programs", 0.002),
    ):
        assert saved(name, "global_atomics")["relaxed order"] == pytest.approx(came, abs=0.2)
    # Nor need anything else be wrong with them.
    parts = explain(study("triton_projection_144_tiles", "parts")[0]).findings[0]
    assert parts.cause == "global_atomics" and [one.name for one in parts.variants] == ["relaxed order"]
    # A fence of the program's own publishes what others read.
    assert "relaxed order" not in saved("components_atomic_min", "global_atomics")


def saved(name: str, cause: str, side: str = "") -> dict[str, float]:
    """What the model says of each way to be rid of a study's flaw, or of a cause on its fixed side."""
    launch = work(study(name, side)[0])
    model = TimeModel(launch)
    return {
        one.name: model.saves(one.fix)
        for candidate in detect(launch)
        if candidate.cause == cause
        for one in candidate.variants
    }


def test_a_reduction_in_every_round_of_a_loop_is_one() -> None:
    """A block that reduces row after row meets often, and yet halves what it sums each time."""
    flawed = pair_of("row_norms_1024", "128")["flawed"]
    launch = work(one_launch(DATA / "pairs" / flawed["report"], flawed["launch"]))
    (candidate,) = barriers(launch)
    assert candidate.variants[0].name == "shuffles within the warp"


def test_what_blocks_load_elsewhere_is_no_reuse_of_theirs() -> None:
    """Distances of all pairs: a block loads the rows of its own number and of its column's, which are others."""
    tile = work(study("hamming_pairs_bytes", "tile")[0])
    assert all(one.thread == pytest.approx(one.asked) for one in arrays(tile))
    assert not any(one.cause == "redundant_loads" for one in detect(tile))


def test_a_share_of_the_work_for_each_warp_is_not_one_for_all() -> None:
    """A stretch of tokens a warp, as long as nobody knows: read twice by its warp, and by no other."""
    (tokens,) = arrays(work(study("expert_ranks_warp_per_expert", "chunks")[0]))
    assert tokens.thread == pytest.approx(tokens.asked / 2)
    assert tokens.block == pytest.approx(1024 * tokens.thread)


def test_vectors_write_the_bytes_that_narrow_stores_wrote() -> None:
    (candidate,) = narrow_access(
        work(study("rms_norm_fp16", "eight")[0])
    )  # four stores of 4 bytes side by side
    (vectors,) = (one for one in candidate.variants if one.name == "vectors of 16 bytes")
    assert vectors.fix.resources["dram"] == pytest.approx(1.0)
    assert vectors.fix.resources["l2_tags"] < 0.5


def test_lanes_that_change_places_in_groups_of_eight_share_no_row() -> None:
    transposed, _ = study("cosine_tiles_rows_of_eight_words", "lanes")
    assert "idle_threads" not in {one.cause for one in detect(work(transposed))}


def test_packed_threads_save_what_missing_ones_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # calibrated
    warp, _ = study("run_lengths_thread_per_run", "warp")  # 26 of 32 threads are active
    (candidate,) = (one for one in detect(work(warp)) if one.cause == "branch_divergence")
    assert candidate.variants[0].most < 0.2
    assert all(one.saves < 0.2 for one in explain(warp).findings if one.cause == "branch_divergence")


def test_what_two_changes_do_to_one_access_is_counted_once() -> None:
    """Of loads that become fewer a tile is read as much less often."""
    launch = work(study("motion_search_bytes")[0])
    model = TimeModel(launch)
    fixes = {one.cause: max((way.fix for way in one.variants), key=model.saves) for one in detect(launch)}
    tile = fixes["redundant_loads"]
    (wide,) = (way.fix for one in detect(launch) for way in one.variants if way.name == "vectors of 4 bytes")
    both = tile.together(wide)
    assert both.shared == pytest.approx(tile.shared * wide.keep)
    assert 0.0 < both.shared.sum() < 0.5 * tile.shared.sum()
    assert model.saves(both) > max(model.saves(tile), model.saves(wide)) + 0.02
    assert model.saves(wide.together(tile)) == pytest.approx(model.saves(both))


def test_whole_numbers_on_the_uniform_datapath_are_no_precise_functions() -> None:
    """A key shifted bit by bit, the same in every thread."""
    launch = work(study("ghash_bit_by_bit")[0])
    assert {one.cause for one in detect(launch)} & {"expensive_math", "integer_arithmetic"} == {
        "integer_arithmetic"
    }


def test_lanes_share_no_row_whose_rounds_look_up_the_next() -> None:
    """An automaton's state is looked up for each letter: lanes can have the letters of a line, but not the rounds."""
    assert list(saved("automaton_line_per_thread", "uncoalesced_access")) == [
        "neighbouring threads at neighbouring addresses"
    ]


def test_a_name_that_stands_for_itself_is_a_loss_that_others_are_ways_to() -> None:
    """Wider loads save twice what the flaw does that they would be another way to: what they take along is no other
    loss.
    """
    told = explain(study("relation_turned_again_for_each_tail", "once")[0])
    assert [one.cause for one, *_ in told.losses] == ["narrow_access"]


def test_choices_of_registers_are_no_debug_build() -> None:
    """600 comparisons whose results are copied under predicates: nobody who optimises nothing writes that."""
    rank = study("median_5x5_insertion", "rank")[0]
    assert not is_debug_build(rank)


def test_nothing_is_cut_finer_where_a_thread_does_one_thing() -> None:
    (kernel,) = (one for one in read_report(DATA / "flaws_cluster.ncu-rep.xz") if "neighbour_sum" in one.name)
    assert "low_occupancy" not in {one.cause for one in explain(kernel).findings}
    # Rounds of a loop are what more warps could share.
    insertion = study("nearest_16_insertion", "registers")[0]
    assert "low_occupancy" in {one.cause for one in explain(insertion).findings}


def test_an_operator_along_an_axis_in_the_middle_is_told_once_to_have_it_last() -> None:
    """Few blocks, one load under way and three passes are one loss: of torch's kernel for such axes."""
    said = explain(study("torch_softmax_inner_axis")[0]).findings
    assert [one.cause for one in said if "axis last" in one.change] == ["small_grid"]
    assert not {"memory_latency", "redundant_loads"} & {one.cause for one in said}
    last = explain(study("torch_softmax_inner_axis", "contiguous_axis")[0]).findings
    assert not [one for one in last if "axis last" in one.change]


def test_the_ways_to_write_a_program_of_triton_are_weighed_apart() -> None:
    """A row in registers spills where one in shared memory does not: the better one is told, in Triton's words."""
    launch = work(study("triton_rms_norm_pieces")[0])
    variants = {one.cause: len(one.variants) for one in detect(launch)}
    told = {one.cause: one for one in explain(launch.profile).findings}
    assert variants["redundant_loads"] > 1 and "BLOCK" in told["redundant_loads"].change


def test_short_programs_of_triton_get_more_to_do() -> None:
    """Blocks of a warp, launched as fast as can be: a smaller one would make it worse."""
    said = {
        one.cause: one.change for one in explain(study("triton_embedding_row_each", "one_warp")[0]).findings
    }
    assert "larger BLOCK" in said["low_occupancy"] and "smaller" not in said["low_occupancy"]


def test_shorter_waits_gain_nothing_where_memory_is_busy() -> None:
    """L2 delivers at 97 % of what it can: more loads under way, or more warps, do not make it faster."""
    causes = said_of("fd_25_point_direct", "four")
    assert "redundant_loads" in causes
    assert not causes & {"memory_latency", "low_occupancy"}


def test_no_order_of_the_work_is_promised_to_help_look_ups() -> None:
    """A walk goes where chance takes it: L2 is full of look-ups, which other blocks in another order do as well."""
    causes = said_of("random_walk_long_modulo")
    assert "cache_locality" not in causes


def test_a_logarithm_of_one_and_more_is_a_precise_function() -> None:
    """`log1pf` as nvcc 13.0 writes it: all of it but what the fast logarithm of a sum takes goes away."""
    sass = (
        "HFMA2.MMA R7, -RZ, RZ, 1.625, 0 ;",
        "MOV R9, 0x3d39bf78 ;",
        "BSSY B0, 0x000190 ;",
        "FADD.RZ R4, R2.reuse, 1 ;",
        "ISETP.GE.U32.AND P0, PT, R2, 0x7f800000, PT ;",
        "IADD3 R4, R4, -0x3f400000, RZ ;",
        "LOP3.LUT R5, R4, 0xff800000, RZ, 0xc0, !PT ;",
        "IADD3 R6, -R5, 0x40800000, RZ ;",
        "IADD3 R4, R2, -R5.reuse, RZ ;",
        "I2FP.F32.S32 R5, R5 ;",
        "FFMA R7, R6, R7, -1 ;",
        "FADD R4, R4, R7 ;",
        "FMUL R5, R5, 1.1920928955078125e-07 ;",
        "FFMA R7, R4, -R9, 0.10546888411045074463 ;",
        "FFMA R7, R4, R7, -0.13229703903198242188 ;",
        "FFMA R7, R4, R7, 0.14491446316242218018 ;",
        "FFMA R7, R4, R7, -0.16641564667224884033 ;",
        "FFMA R7, R4, R7, 0.19988867640495300293 ;",
        "FFMA R7, R4, R7, -0.25000196695327758789 ;",
        "FFMA R7, R4, R7, 0.33333510160446166992 ;",
        "FFMA R7, R4, R7, -0.5 ;",
        "FMUL R7, R4, R7 ;",
        "FFMA R4, R4, R7, R4 ;",
        "FFMA R5, R5, 0.69314718246459960938, R4 ;",
        "@!P0 BRA 0x000190 ;",
        "EXIT ;",
    )
    found = precise_functions(made(*sass))
    assert found.names == ("log1pf",) and found.remedy == "__logf of the sum"
    assert found.fast.sum() <= 10.0  # six, and what is around it


def test_calls_that_share_a_number_are_each_a_function() -> None:
    """Sixteen logarithms before a loop have a coefficient in one register; of each as much stays as a fast one takes.
    A complementary error function is one function, not the exponential and the divisions in it.
    """
    launch = work(study("hidden_markov_all_in_logs")[0])
    first = [
        at for at, line in enumerate(launch.sass) if "0.14084610342" in line.text and launch.executed[at]
    ]
    assert len(first) > 16 and (precise_functions(launch).fast[first] < 0.5).all()
    assert "erfcf" in precise_functions(work(study("ewald_erfc_each_pair")[0])).names


def test_searches_are_look_ups() -> None:
    """Each step of a bisection goes where the last one's value sends it: nothing brings lanes side by side."""
    causes = said_of("binary_search_one_at_a_time")
    assert "uncoalesced_access" not in causes


def test_records_that_no_vector_fits_are_padded() -> None:
    """An entry of three floats is looked up by three loads; one of 16 bytes brings it where four are stored."""
    flawed, came = study("colour_cube_three_floats")
    (finding,) = (one for one in explain(flawed).findings if one.cause == "narrow_access")
    assert "3.0 of its accesses become one of 16 bytes. Records of 12 bytes" in finding.change
    assert finding.saves_low <= came["padded"] <= finding.saves_high
    fixed, _ = study("colour_cube_three_floats", "padded")
    assert all("pad them" not in one.change for one in explain(fixed).findings)


def test_results_in_single_precision_are_read_sooner() -> None:
    """What waits for the result of an FP64 instruction waits half as long for that of an FP32 one."""
    launch = work(study("resize_bilinear_double")[0])
    (found,) = double_precision(launch)
    waits = launch.attributed["wait"]
    doubles = launch.where(lambda line: line.opcode in ("DADD", "DMUL", "DFMA", "DSETP"))
    waits = waits * found.fix.keep
    assert found.fix.reasons["wait"] * waits.sum() == pytest.approx(waits @ np.where(doubles, 0.5, 1.0))
    assert found.fix.reasons["wait"] < 0.9


def test_fp64_divisions_become_divisions_of_fp32() -> None:
    """A Newton step divides doubles, most often by the way for awkward arguments: in FP32 both are shorter."""
    launch = work(study("kepler_one_double_literal")[0])
    (found,) = double_precision(launch)
    keep = found.fix.keep
    starts = launch.where(lambda line: line.full == "MUFU.RCP64H") & (launch.executed > 0)
    assert np.count_nonzero(starts) == 2 and (keep[starts] == 7 / 16).all()


def test_fp64_divisions_by_what_divided_before_become_products() -> None:
    """Six values are divided by the same root, and two by a constant: a reciprocal serves them all."""
    flawed, _ = study("principal_stresses_in_double")
    (finding,) = (one for one in explain(flawed).findings if one.cause == "expensive_math")
    assert "FP64 division" in finding.change
    assert [variant.name for variant in finding.variants] == ["evaluated once, products with reciprocals"]
    assert "/= p" in finding.places[0].text and "/ 6.0" in finding.places[1].text
    fixed, _ = study("principal_stresses_in_double", "pairs")
    assert all("FP64 division" not in one.change for one in explain(fixed).findings)


def test_divisions_are_counted_where_no_code_can_be_read() -> None:
    """A chip that ncu's library no longer disassembles: of each opcode no more is known than how often it ran."""
    known, _ = study("resize_bilinear_double")
    executed = dict(known.instances[metrics.INSTRUCTIONS_BY_ADDRESS].items())
    lines = known.source.instructions
    divisions = sum(executed.get(line.address, 0) for line in lines if "RCP64H" in line.sass)
    assert divisions > 0.01 * sum(executed.values())
    hidden = replace(
        known, source=replace(known.source, instructions=tuple(replace(line, sass="???") for line in lines))
    )
    (finding,) = (one for one in explain(hidden).findings if one.cause == "expensive_math")
    assert finding.evidence[0].value == divisions and finding.saves_low == 0.0 < finding.saves
    assert "not disassembled" in finding.change
    without = replace(
        hidden, instances={**hidden.instances, metrics.EXECUTED_PER_MODIFIER: Instances((), ())}
    )
    assert all(one.cause != "expensive_math" for one in explain(without).findings)


def test_two_names_of_the_same_time_are_one_statement() -> None:
    """Once wider accesses leave a quarter of the loads, more of them in flight have little to hide."""
    explanation = explain(study("running_balance_two_barriers_a_step", "shuffles")[0])
    first, *ways = explanation.findings
    assert first.cause == "narrow_access" and not first.another_way_to
    found = [(one.cause, one.another_way_to) for one in ways if one.another_way_to]
    assert ("memory_latency", "narrow_access") in found
    # A general name that saves far less than what stands before it is no statement.
    latency = next(one for one in ways if one.cause == "memory_latency")
    assert latency.minor and latency.saves < 0.8 * first.saves
    assert all(one.cause != "memory_latency" for loss in explanation.losses for one in loss)
    # Divisions of indices and idle lanes are apart: each is told, and both together save more than one.
    two = explain(study("ising_idle_lanes")[0])
    assert [loss[0].cause for loss in two.losses][:2] == ["idle_threads", "integer_arithmetic"]
    assert two.together is not None and two.together > max(loss[0].saves for loss in two.losses)


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("gaussian_exponentials_each_tap", ""),  # rows of 16 threads that begin a place before a border
        ("product_codes_tables_in_global", "wide"),  # 32 bytes a thread, in two loads of 16
    ],
)
def test_lanes_that_waste_no_sector_are_coalesced(name: str, side: str) -> None:
    assert all(one.cause != "uncoalesced_access" for one in explain(study(name, side)[0]).findings)


def test_fp64_that_never_meets_fp32_is_meant() -> None:
    """Arithmetic on FP64 alone is another precision's list, whatever share of the traffic it is."""
    said = explain(study("implied_volatility_bisection_double")[0])
    assert "double_precision" in {one.cause for one in (*said.findings, *said.other_arithmetic)}


def test_a_tile_of_what_l1_has_saves_what_shared_memory_is_faster() -> None:
    """All 8192 bodies lie in L1, and each load waits for nothing else: 0.64 if shared memory took no time."""
    profile, _ = study("nbody_precise_root", "rsqrt")
    tile = next(one for one in explain(profile).findings if one.cause == "redundant_loads")
    assert "tile in shared memory" in tile.variants[0].name
    assert tile.saves < 0.55


@pytest.mark.parametrize(("report", "came"), [("real_smaller", 0.752), ("real", 0.675)])
def test_a_tile_is_waited_for_a_vector_at_a_time(report: str, came: float) -> None:
    """Keys and values of attention, which a thread walks along; what the pair's other side saved."""
    said = explain(read_report(DATA / "pairs" / f"{report}.ncu-rep.xz")[0]).findings
    assert said[0].cause == "redundant_loads" and said[0].saves == pytest.approx(came, abs=0.1)


def test_ways_to_part_threads_have_one_number_whatever_their_values() -> None:
    """Else two ways that are one take turns, and what differs by them is never told to the end."""
    ways = distinct._Classes(64)
    halves, turned = ways.of(np.arange(64) // 32), ways.of(1 - np.arange(64) // 32)
    pairs = ways.of(-(np.arange(64) // 2))
    assert halves == turned
    assert ways.join(pairs, halves) == ways.join(turned, pairs) == pairs


@pytest.mark.parametrize(
    ("name", "fix", "way"),
    [
        ("triton_text_attention_sixteen_queries", "more_rows", "rows of 4 blocks along x in one"),
        ("triton_attention_flat_tiles", "taller", "rows of 4 blocks along x in one"),
        ("triton_decode_head_a_program", "whole_group", "rows of 8 blocks along y in one"),
    ],
)
def test_blocks_that_load_one_operand_for_few_rows_are_one(name: str, fix: str, way: str) -> None:
    """16 queries a program, and one head of eight that share keys and values; the fixed sides have tall tiles."""
    launch, came = study(name)
    first = explain(launch).findings[0]
    assert (first.cause, first.variants[0].name) == ("redundant_loads", way)
    assert first.saves == pytest.approx(came[fix], abs=0.06)
    ways = [way.name for one in explain(study(name, fix)[0]).findings for way in one.variants]
    assert not [one for one in ways if one.startswith("rows of")]


@pytest.mark.parametrize(
    ("name", "side", "larger", "still"),
    [
        # Tiles of 16 x 32 by mma.sync, of 64 x 64 by wgmma; 64 rows of queries, of which twice as many meet a key.
        ("triton_chunk_states_in_small_tiles", "", "whole", 0.05),
        ("triton_matmul_one_stage", "staged", "bigger_tile", 0.08),
        ("triton_attention_flat_tiles", "taller", "tallest", 0.03),
    ],
)
def test_one_program_computes_the_tiles_of_several_that_load_alike(
    name: str, side: str, larger: str, still: float
) -> None:
    def told(of: str) -> float:
        findings = explain(study(name, of)[0]).findings
        return max(
            (w.saves for one in findings for w in one.variants if w.name.startswith("tiles of")), default=0.0
        )

    came = study(name)[1] | {"": 0.0}
    assert told(side) == pytest.approx(1.0 - (1.0 - came[larger]) / (1.0 - came[side]), abs=0.125)
    assert told(larger) < still


def test_blocks_share_an_operand_whose_places_numbers_confirm() -> None:
    """Tiles of two matrices, of one of which bits that nobody knows stand beside the rest of an address."""
    product = work(study("triton_matmul_one_stage")[0])
    loads = [one.form for at, one in checked_forms(product).items() if product.global_loads[at]]
    assert {one.kind for one in loads} > {UNKNOWN}
    shared = {tuple(distinct_along(product, one, axis, 4) for axis in (0, 1)) for one in loads}
    assert shared == {(0.25, 1.0), (1.0, 0.25)}


def test_a_row_that_registers_of_more_warps_keep_is_not_read_again() -> None:
    """Rows of 8192 values walked three times by four warps, for which DRAM delivers them more than once."""
    launch, came = study("triton_norm_backward_three_walks")
    first = explain(launch).findings[0]
    assert (first.cause, first.variants[0].name) == (
        "redundant_loads",
        "kept in registers, 48 a thread of 8 warps",
    )
    assert came["two_walks"] < first.saves < came["whole_row"]


def test_rows_of_several_blocks_are_a_product_of_matrices_with_what_all_of_them_load() -> None:
    """A program for one of four heads that share keys and values, whose products lanes add up: no tensor core works.
    A norm's weight, which all programs load, too, makes no product.
    """
    launch, came = study("triton_decode_head_a_program", sets=(DATA / "triton" / "h100",))
    first = explain(launch).findings[0]
    assert (first.cause, first.variants[0].name) == ("redundant_loads", "rows of 4 blocks along x in one")
    assert first.saves == pytest.approx(came["group"], abs=0.05)
    norm = detect(work(study("sound_triton_add_rms_norm")[0]))
    assert not [way.name for one in norm for way in one.variants if way.name.startswith("rows of")]


def test_threads_that_a_predicate_switches_off_store_no_padding(recorded: ReadRecorded) -> None:
    """A warp comes to a store of the tile twice, each time with half of its threads: all that is stored was loaded."""
    launch = recorded("pairs/tensor", source=True)[3]
    stores = {line.address for line in launch.source.instructions if "STS" in line.sass}

    def twice(name: str) -> Instances:
        counted = dict(launch.instances[name].items())
        return Instances(tuple(counted), tuple(n * (1 + (at in stores)) for at, n in counted.items()))

    counts = {name: twice(name) for name in (metrics.INSTRUCTIONS_BY_ADDRESS, metrics.THREADS_BY_ADDRESS)}
    for one in (launch, replace(launch, instances={**launch.instances, **counts})):
        found = work(one)
        macs, forms = float((found.executed * mma_macs(found)).sum()), checked_forms(found)
        loads = [at for at in np.flatnonzero(found.global_fetches).tolist() if at in forms]
        alike = [at for at in loads if distinct_along(found, forms[at].form, 0, 2) == 0.5]
        rows, filled, _ = product_tiles._tile(found, macs, alike, 0) or (0, 0, None)
        assert (rows, filled) == (64, 64)


def test_zeros_that_a_copy_writes_for_a_mask_are_multiplied() -> None:
    """80 features filled up to 128; in parts of 64 and 16 nothing is padding."""
    name = "triton_picture_attention_80_padded_to_128"
    launch, came = study(name)
    first = explain(launch).findings[0]
    assert (first.cause, first.variants[0].name) == ("idle_threads", "lanes for 62 % of the elements")
    assert first.saves == pytest.approx(came["two_parts"], abs=0.05)
    assert "idle_threads" not in said_of(name, "two_parts")


def test_what_triton_computes_for_lanes_that_a_mask_keeps_from_loading_is_too_much() -> None:
    """A row of 2304 in a block of 4096; as parts of 2048 and 256 all lanes load."""
    launch, came = study("triton_layer_norm_padded_to_4096")
    first = explain(launch).findings[0]
    assert (first.cause, first.variants[0].name) == ("idle_threads", "lanes for 56 % of the elements")
    assert first.saves == pytest.approx(came["parts"], abs=0.03)
    assert not [
        one
        for one in detect(work(study("triton_layer_norm_padded_to_4096", "parts")[0]))
        if one.cause == "idle_threads"
    ]


def test_what_a_mask_turns_off_in_a_loop_is_rounds_and_elsewhere_no_exchange() -> None:
    """Documents walked to the longest one's end, whose sum stays; rows of 300 numbers of 512, stored as they are."""
    for name, sides in (
        ("triton_documents_pooled_to_the_longest", ("own_length", "full_rounds")),
        ("triton_noise_rows_filled_up_to_512_numbers", ("pieces", "flat")),
    ):
        launch, came = study(name)
        first = explain(launch).findings[0]
        assert first.cause == "idle_threads"
        assert min(abs(first.saves - came[side]) for side in sides) < 0.06


def test_programs_beyond_a_bound_that_they_load_compute_for_nothing() -> None:
    """Tiles of 128 places, of which an expert's tokens fill a third; the fixed sides leave the others out."""
    launch, came = study("triton_experts_multiply_their_padding")
    first = explain(launch).findings[0]
    assert (first.cause, first.variants[0].name) == ("idle_threads", "blocks that have work: 43 %")
    assert first.saves == pytest.approx(came["listed"], abs=0.03)
    for side in ("stops", "listed"):
        said = explain(study("triton_experts_multiply_their_padding", side)[0]).findings
        assert "idle_threads" not in {one.cause for one in said}


def test_one_thread_that_stores_what_its_block_added_up_is_no_bound() -> None:
    """The thread whose number is the row's label stores what all 512 computed."""
    said = detect(work(study("cross_entropy_tree")[0]))
    assert "idle_threads" not in {one.cause for one in said}


def test_ways_around_what_is_computed_once_go_with_it() -> None:
    """Factorials in loops that the compiler unrolled, with the tests around each piece: the same for all threads."""
    launch, came = study("wave_front_factorials_each_pixel")
    first = explain(launch).findings[0]
    assert first.cause == "expensive_math"
    assert came["factors"] - 0.25 < first.saves < came["factors"]


def test_loops_change_places_where_the_inner_one_works_out_the_same_anew() -> None:
    """Distances to 64 points for each of six bits: once, with twelve minima kept, and the bits' tests are none."""
    launch, came = study("soft_bits_all_points_for_each_bit")
    first = explain(launch).findings[0]
    assert (first.cause, first.variants[0].name) == ("expensive_math", "once for 6 rounds of the loop around")
    assert first.saves == pytest.approx(came["once"], abs=0.06)


@pytest.mark.parametrize("name", ["top_k_rescans", "kuramoto_sine_each_pair", "fractal_contiguous_rows"])
def test_loops_stay_in_order_where_rounds_need_one_another_or_registers_do_not_hold_their_sums(
    name: str,
) -> None:
    """The next largest value after the last one; 132 sums; a loop that each pixel leaves elsewhere."""
    assert turned_loops(work(study(name)[0])) is None


def test_what_short_blocks_along_an_axis_work_out_alike_one_block_does_once() -> None:
    """32 heads of a token turn by the same angles, a program of one warp each: a table leaves as many programs."""
    launch, came = study("triton_rotary_angles_each_head")
    first = explain(launch).findings[0]
    assert (first.cause, first.variants[0].name) == ("expensive_math", "32 blocks along y in one")
    assert first.saves == pytest.approx(came["all_heads"], abs=0.03) and came["tables"] < 0.01


@pytest.mark.parametrize(
    "name, cause, fix, call",
    [
        # A block of 128 threads a row of 32: eight lanes load it.
        ("torch_layer_norm_of_32", "idle_threads", "compiled", "torch.compile"),
        # The general power function of an exponent in a tensor; a number takes the vectorised kernel, too.
        ("torch_pow_by_learnt_exponent", "expensive_math", "number", "Pass the exponent as a number"),
    ],
)
def test_what_a_kernel_of_torch_loses_another_call_avoids(name: str, cause: str, fix: str, call: str) -> None:
    """Told with what the call saves, and not of the kernel that it takes."""
    launch, came = study(name)
    first = explain(launch).findings[0]
    assert first.cause == cause and call in first.change
    assert first.saves == pytest.approx(came[fix], abs=0.06)
    assert cause not in said_of(name, fix)


def test_torch_rolls_whole_rows_along_the_first_axis() -> None:
    """A value a thread, each place by quotients of 64 bits; ``index_select`` takes the rows of the first axis whole."""
    launch, came = study("torch_roll_along_the_steps")
    first = explain(launch).findings[0]
    assert (first.cause, first.variants[0].name) == ("narrow_access", "whole rows")
    assert first.saves == pytest.approx(came["steps_first"], abs=0.05) and first.saves_low == 0.0


def test_windows_of_torch_are_compiled_for_their_sizes() -> None:
    """Quotients for the place of each value, by sizes that the kernel is given."""
    launch, came = study("torch_max_pool_by_planes")
    first = explain(launch).findings[0]
    assert first.cause == "integer_arithmetic" and "torch.compile" in first.change
    assert 0.2 < first.saves < came["compiled"]


def test_a_loop_ends_where_its_mask_lets_nothing_pass_any_more() -> None:
    """Causal attention over 16 tiles of 128 rows: of 32 tiles of 64 columns a program needs 17 on average."""
    launch, came = study("triton_causal_rows_to_the_end")
    first = explain(launch).findings[0]
    assert (first.cause, first.variants[0].name) == ("redundant_loads", "53 % of the rounds")
    assert first.saves == pytest.approx(came["stops"], abs=0.05)
    for side in ("stops", "longest_first"):
        said = detect(work(study("triton_causal_rows_to_the_end", side)[0]))
        assert not [way.name for one in said for way in one.variants if way.name.endswith("of the rounds")]


def test_a_compiled_reduction_in_passes_is_told_to_have_its_axis_last() -> None:
    """Channels that lie apart, read three times by `triton_red_`; channels last, torch.compile writes `triton_per_`."""
    launch, came = study("torch_compiled_norm_over_channels")
    first = explain(launch).findings[0]
    assert first.cause == "redundant_loads" and "channels_last" in first.change
    assert first.saves_low <= came["channels_last"] <= first.saves_high
    assert "redundant_loads" not in said_of("torch_compiled_norm_over_channels", "channels_last")


@pytest.mark.parametrize(
    "name, side, cause",
    [
        # Each step takes the rows of two other threads: no reduction, and no scan.
        ("cyclic_reduction_doubling_strides", "parallel", "barriers"),
        # One barrier in all has none to be one with.
        ("kmer_hash_bytes", "shared", "barriers"),
        # Lanes along a row, rounds from row to row: wider accesses leave half of the threads, each with all rounds.
        ("harmonics_coefficients_again_each_latitude", "mirrored", "narrow_access"),
        # All blocks are there at once, and wait: those of an SM with three of them no longer than others.
        ("depth_fusion_columns_one_behind_the_other", "side_by_side", "tail_effect"),
        # Fragments of tensor cores, and counters of a block: no results of a thread that could have four.
        ("all_pairs_correlation_half_on_fma", "wide", "redundant_loads"),
        # Sums of the block go to global memory, beside single words.
        ("in_degrees_hub_atomics", "hubs", "global_atomics"),
        # What each round finds parts the threads anew: pairs within a distance, rows that pass a filter.
        ("pair_distances_binned_in_double", "fast", "branch_divergence"),
        ("star_join_all_tables_before_the_test", "bitmaps", "branch_divergence"),
        ("dual_contour_few_cells_are_cut", "of_cells", "branch_divergence"),
        # A long wave and the short one that makes up for it have coefficients of their own.
        ("legendre_sums_block_per_wave", "paired", "redundant_loads"),
        # Places that a called division makes of a loaded key are looked up.
        ("bloom_filter_long_modulo", "flawed", "uncoalesced_access"),
    ],
)
def test_what_is_mended_is_not_asked_for_again(name: str, side: str, cause: str) -> None:
    """What the fixed side has, or cannot have."""
    findings = explain(study(name, side)[0]).losses
    assert cause not in {one.cause for loss in findings for one in loss}


def test_a_way_to_another_arithmetic_is_a_loss_of_its_own() -> None:
    """FP64 stands in a list apart: what else saves its time stands behind nothing there."""
    said = explain(study("eos_powers")[0])
    assert said.other_arithmetic and said.losses and all(said.losses)


def test_what_saves_twice_as_much_stands_behind_nothing() -> None:
    """Nine warps an SM, 75 %, was told as another way to divisions that save 28."""
    first = explain(study("depth_fusion_columns_one_behind_the_other", "side_by_side")[0]).losses[0][0]
    assert first.cause == "low_occupancy"


def test_blocks_whose_length_is_loaded_are_uneven_and_no_tail() -> None:
    """A program walks all tokens of an expert, as many as a list says: its grid of 3.9 blocks an SM is not at fault."""
    said = explain(study("triton_grouped_product_expert_a_program")[0]).findings
    assert said[0].cause == "workload_imbalance"
    assert "tail_effect" not in {one.cause for one in said}
    equal = explain(study("triton_projection_144_tiles")[0]).findings
    assert equal[0].cause == "tail_effect"


def test_lanes_that_walk_along_rows_by_vectors_share_them() -> None:
    """Each takes 16 bytes of its own row a round: both halves of a sector are used, but a request touches 32 lines."""
    first, *others = explain(study("triton_gate_eight_columns_at_a_time")[0]).losses
    came = study("triton_gate_eight_columns_at_a_time")[1]
    assert first[0].cause == "uncoalesced_access" and not others
    assert first[0].saves == pytest.approx(came["wide"], abs=0.06)
    wide = explain(study("triton_gate_eight_columns_at_a_time", "wide")[0]).findings
    assert "uncoalesced_access" not in {one.cause for one in wide}
    # A lane's row of two vectors is as wide as it is.
    groups = explain(study("mxfp4_groups_of_32_a_thread_each", "vectors")[0]).findings
    assert "uncoalesced_access" not in {one.cause for one in groups}


def test_a_row_that_each_round_puts_together_is_a_warps_in_each_round() -> None:
    """What a loop's round does alike in all warps of a block (where the next row begins, the turn) one warp does."""
    said, came = (
        explain(study("triton_negatives_scored_one_by_one")[0]),
        study("triton_negatives_scored_one_by_one")[1],
    )
    assert said.findings[0].cause == "barriers"
    assert 0.55 < said.findings[0].saves < came["warp"]
    # Warps of sixteen that reduce by themselves, and meet in each round: what a warp for each brings beside them.
    shuffled, came = study("haplotype_mosaic_tree_each_site", "shuffled")
    more = next(one for one in explain(shuffled).findings if one.cause == "barriers")
    assert 0.4 < more.saves < 1.0 - (1.0 - came["warp"]) / (1.0 - came["shuffled"])


@pytest.mark.parametrize(
    ("name", "fix", "blocks", "warps"),
    [
        ("gravity_survey_of_140_blocks_of_1024", "small", 8 * 140, 4),
        ("lorenz_eight_blocks_over", "small_blocks", 8 * 140, 4),
        ("books_valued_by_160_blocks_of_1024", "quarters", 8 * 160, 4),
        ("triton_projection_144_tiles", "halved", 2 * 144, 4),
    ],
)
def test_whole_waves_are_as_whole_as_smaller_blocks_make_them(
    name: str, fix: str, blocks: int, warps: int
) -> None:
    """Where an even share is a block and a bit, blocks of 128 threads leave the busiest SM some work more still."""
    flawed, came = study(name)
    assert flawed.launch.threads_per_block * flawed.launch.blocks == blocks * warps * WARP
    sms = flawed.device.sm_count
    assert sms
    (tail,) = (one for one in uneven_work(work(flawed)) if one.cause == "tail_effect")
    assert tail.fix.imbalance == pytest.approx(-(-blocks // sms) * sms / blocks, abs=0.02)
    assert found(name, "tail_effect").saves == pytest.approx(came[fix], abs=0.1)


def test_what_triton_s_warps_exchange_can_go_and_is_nobody_s_layout() -> None:
    """A row is sorted across four warps; sums of float tiles for tensor cores meet in banks for another reason."""
    finding, *_ = explain(study("triton_largest_eight_by_sorting")[0]).findings
    assert finding.cause == "barriers"
    assert "1 warp a program" in {way.name for way in finding.variants}
    operands = explain(study("triton_matmul_ieee_products", "tf32")[0]).findings
    assert "shared_bank_conflicts" in {one.cause for one in operands}


def test_lanes_that_all_do_the_same_value_by_value_share_out_the_rounds() -> None:
    """Averages over time, a value a round; where all blocks walk over one list, it is the loads that come again."""
    _, came = study("triton_averages_step_by_step")
    finding = found("triton_averages_step_by_step", "idle_threads")
    assert finding.saves == pytest.approx(came["pieces"], abs=0.1)
    of_all = explain(study("triton_positions_walk_the_starts")[0]).findings
    assert of_all[0].cause == "redundant_loads"


@pytest.mark.parametrize(
    "name, fix",
    [("triton_adamax_step_odd_count", "rounded_up"), ("triton_picture_over_another_byte_by_byte", "words")],
)
def test_what_triton_takes_apart_is_narrow_and_not_uncoalesced(name: str, fix: str) -> None:
    """Halves at places that are known to be no multiple of a vector's bytes, and the four bytes of a pixel."""
    said, (_, came) = explain(study(name)[0]).findings, study(name)
    assert said[0].cause == "narrow_access"
    assert said[0].saves == pytest.approx(came[fix], abs=0.11)
    assert "uncoalesced_access" not in {one.cause for one in said}


def test_records_of_words_that_a_thread_takes_apart_stay_uncoalesced() -> None:
    """Positions and speeds of a particle side by side: as planes each load has neighbours of its own."""
    assert explain(study("triton_particles_pushed_as_records")[0]).findings[0].cause == "uncoalesced_access"


def test_warps_that_reduce_need_not_wait_long_to_do_so_for_nothing() -> None:
    """The nearest of many in each step: 2 % of the time at barriers, more in what lanes hand one another."""
    launch = work(study("triton_nearest_minimum_each_step")[0])
    assert float(launch.samples["barrier"].sum()) < 0.03
    assert "barriers" in {one.cause for one in detect(launch)}


def test_products_that_fill_the_issue_slots_are_for_tensor_cores() -> None:
    """FP32 tiles multiplied exactly (Triton's `ieee`): 87 % of what is issued, with the FMA pipe two thirds busy."""
    finding = found("triton_matmul_ieee_products", "tensor_cores_idle")
    _, came = study("triton_matmul_ieee_products")
    assert finding.saves == pytest.approx(came["half"], abs=0.15)


@pytest.mark.parametrize(
    "name, cause, fix, tolerance",
    [
        # Bytes multiplied four at a time: what is told is the rate of a product whose copies are ahead of it, too.
        ("kinship_by_dot_products_of_four_bytes", "tensor_cores_idle", "copied", 0.2),
        # A ring in local memory, at a place that all threads share; the loop is as long as a parameter says.
        ("brain_waves_past_in_a_ring", "local_memory", "rounds", 0.12),
        # Look-ups at corners that the blocks of every hour read again.
        ("triton_climate_regridded_hour_after_hour", "cache_locality", "hours", 0.14),
    ],
)
def test_what_hid_behind_how_a_kernel_looked(name: str, cause: str, fix: str, tolerance: float) -> None:
    assert found(name, cause).saves == pytest.approx(study(name)[1][fix], abs=tolerance)


def test_places_that_data_tell_are_unrolled_nowhere() -> None:
    launch = work(study("queen_ways_stack_in_local")[0])
    indexed = launch.where(lambda line: line.space == "local") & launch.ran
    words = _words_of_the_frame(launch)
    assert words
    assert not any(_over_the_array(launch, loop, indexed, words) for loop in launch.code.loops)


def test_codes_of_a_byte_are_rows_of_a_tile_too() -> None:
    """Weights of eight bits, copied as they are and widened as they are read: a program has 32 rows of their tile."""
    change = found("triton_codes_unpacked_for_32_rows", "redundant_loads").change
    assert "each for a tile of 32 rows" in change


@pytest.mark.parametrize("name", ["triton_cost_volume_shifts_last", "film_mean_frame_by_frame"])
def test_what_dram_delivers_once_l2_takes_in_once(name: str) -> None:
    """Programs and frames in an order that stays in L2: L2 is busy for half as long and less, as was measured, too."""
    side = {"triton_cost_volume_shifts_last": "shifts_first", "film_mean_frame_by_frame": "order"}[name]
    assert found(name, "cache_locality").saves == pytest.approx(study(name)[1][side], abs=0.1)


def test_what_finds_places_of_look_ups_is_no_one_s_but_an_element_s() -> None:
    """Tours from their numbers, digit by digit: four a thread need four times the digits. Of powers by one exponent a
    thread's four share the rounds.
    """
    assert all(
        one.saves < 0.1 for one in explain(study("tour_numbers_unranked_in_local", "digits")[0]).findings
    )
    rounds = explain(study("power_modulo_long_division", "montgomery")[0]).findings
    assert [one.cause for one in rounds] == ["narrow_access"]


def test_sentences_say_what_there_is() -> None:
    """No round to fetch ahead where nothing goes round, no reciprocal where nothing is divided, sizes as they are."""
    said = {one.cause: one.change for one in explain(study("focal_loss_pow", "square")[0]).findings}
    assert "load them all before it uses the first" in said["memory_latency"]
    assert "1 to 4 bytes each" in said["narrow_access"]
    rows = explain(study("stereo_path_minimum_by_tree", "warp")[0]).findings
    waits = next(one for one in rows if one.cause == "memory_latency")
    assert "prefetch the next iteration" in waits.change
    assert "reciprocal" not in found("binomial_tree_two_barriers", "expensive_math").change
    assert "reciprocal" in found("back_projection_sine_of_each_angle", "expensive_math").change


def test_in_triton_elements_of_one_thread_that_lie_side_by_side_go_to_neighbours() -> None:
    """The axis has stride 1 already: words of a tile one by one, and halves of a row that begins anywhere."""
    tile = explain(study("triton_matmul_ieee_products", "tf32")[0]).findings
    words = next(one for one in tile if one.cause == "uncoalesced_access")
    assert "neighbouring threads hold neighbouring elements" in words.change
    halves = {one.cause for one in detect(work(study("triton_cost_volume_shifts_last")[0]))}
    assert "narrow_access" in halves and "uncoalesced_access" not in halves


def test_a_search_between_two_barriers_is_no_step_of_a_reduction() -> None:
    """Ranks found by halves in shared memory, once between the block's two meetings."""
    said = said_of("merge_runs_thread_each", "ranks")
    assert "barriers" not in said


def test_tiles_are_laid_out_anew_with_their_loads_and_stores() -> None:
    """What fixed columns of four at a time leaves room for: more in Triton than its arithmetic as shared out now does;
    as much as ever where only waits go away.
    """
    model = TimeModel(work(study("triton_columns_scaled_four_at_a_time")[0]))
    now, anew = prediction.room(model), prediction.room(model, laid_out_anew=True)
    assert now is not None and anew is not None and now + 0.1 < anew


def test_what_is_only_loaded_alike_is_no_arithmetic() -> None:
    """Eight lanes load the ends of their string: no function is computed there."""
    said = said_of("names_capitalised_string_a_thread", "eight_lanes")
    assert "expensive_math" not in said


def test_lanes_of_a_fragment_are_not_told_to_share_a_row() -> None:
    """Operands of WMMA straight from memory: which lane has what is the instruction's; shared memory helps."""
    wmma = one_launch(DATA / "flaws_tensor.ncu-rep.xz", lambda one: "wmma_half" in one.name)
    change = next(one.change for one in explain(wmma).findings if one.cause == "uncoalesced_access")
    assert "into shared memory" in change
    # All of an operand's registers are fragments, not its first alone.
    ways = saved("router_logits_experts_again_for_each_token", "uncoalesced_access", side="tensor")
    assert list(ways) == ["neighbouring threads at neighbouring addresses"]


def test_results_of_other_programs_are_told_to_a_program() -> None:
    """Shifts of an image, a program each: along y of the grid four of them load 40 % of what they load now."""
    change = found("triton_cost_volume_shifts_last", "redundant_loads").change
    assert "Let a program compute 4 neighbouring results along y: they need 40 %" in change


def test_bytes_side_by_side_are_coalesced_wherever_a_few_lanes_are_ahead() -> None:
    """Letters of 32 strings in order: a warp has 32 bytes that begin anywhere, and lanes of short strings are ahead."""
    said = explain(study("names_capitalised_string_a_thread", "warp")[0]).findings
    assert "uncoalesced_access" not in {one.cause for one in said}
    assert found("names_capitalised_string_a_thread", "uncoalesced_access").saves > 0.5


def test_what_a_thread_takes_side_by_side_is_a_vector_s_first_of_all() -> None:
    """Pairs of neighbours, a lane each: lanes lie eight bytes apart, of which each takes all."""
    pairs = explain(study("collisions_thread_per_cell", "warp")[0]).findings
    change = next(one.change for one in pairs if one.cause == "uncoalesced_access")
    assert "lanes lie 8 bytes apart. Move what a thread takes side by side with one vector" in change


def test_a_scan_in_one_pass_is_told_to_look_back() -> None:
    """An average over time in pieces reads its row twice; sums of a row (cross entropy) are had online."""
    pieces = explain(study("ema_one_load_in_flight", "pieces")[0]).findings
    assert "look-back" in next(one.change for one in pieces if one.cause == "redundant_loads")
    assert "online" in found("triton_cross_entropy_passes", "redundant_loads").change


def test_rounds_that_a_scan_joins_are_cut_for_all_sms() -> None:
    """A mean over time for each of 8,192 shares, in 32 blocks: pieces of the time are other blocks' work."""
    name = "market_volatility_a_thread_a_share"
    said = found(name, "small_grid")
    assert "whose ends a second step joins" in said.change
    assert said.saves == pytest.approx(study(name)[1]["warmed"], abs=0.11)


def test_loads_of_a_loop_within_are_not_unrolled_with_what_is_kept() -> None:
    """Numbers of pages, read again in a second pass: kept, they save their own waits, not those of the pages."""
    attention = study("page_scores_room_for_the_longest_context", "longest_here")[0]
    # A tenth of what a thread loads it had: what it loads otherwise is no more under way for that.
    bitmaps = study("bitmap_containers_merged_by_lanes", "bits")[0]
    for profile in (attention, bitmaps):
        assert all(one.saves < 0.05 for one in explain(profile).findings if one.cause == "redundant_loads")
    # Half of what it loads a row at a time comes again: registers hold that.
    rows = one_launch(DATA / "programs" / "triton_set.ncu-rep.xz", 0)
    assert any(one.cause == "redundant_loads" and one.saves > 0.15 for one in explain(rows).findings)


def test_stages_of_a_triton_program_are_for_what_is_multiplied() -> None:
    """``num_stages`` of the kernel pipelines loads that feed tl.dot; other loops have stages of their own."""
    # A wait of five rounds' time needs as many under way; one round more a variable holds.
    assert "tl.range(..., num_stages=6)" in found("triton_gated_scan_32_programs", "memory_latency").change
    assert "in variables" in found("triton_nearest_minimum_each_step", "memory_latency").change
    assert "num_stages=3" in found("triton_matmul_one_stage", "memory_latency").change
    # Nothing goes round here: a program takes more at once.
    assert "larger BLOCK" in found("triton_embedding_row_each", "memory_latency").change


def test_what_is_looked_at_before_its_atomic_is_not_told_to_be() -> None:
    assert "Skip those" in found("ground_heights_an_atomic_each_point", "global_atomics").change
    looked = explain(study("ground_heights_an_atomic_each_point", "look")[0]).findings
    assert not any("Skip those" in one.change for one in looked)


def test_an_array_walked_both_ways_at_once_is_one_pass() -> None:
    """Products of a row's values with those from its other end: each is loaded twice in one walk."""
    flawed = pair_of("triangle_bands", "33792")["flawed"]
    said = explain(one_launch(DATA / "pairs" / flawed["report"], flawed["launch"])).findings
    assert said and not any("fewer passes" in one.change for one in said)


def test_atomics_that_all_stay_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of an embedding's gradient by fewer threads: the memory adds as many words."""
    monkeypatch.undo()  # calibrated
    for card in ("h100", "h200"):
        profile, came = study("embedding_backward_atomics", sets=(DATA / "variants" / card,))
        fewer = [
            one for one in explain(profile).findings if one.cause in ("narrow_access", "redundant_loads")
        ]
        assert fewer and all(abs(one.saves - came["vector_atomics"]) < 0.07 for one in fewer)


def test_rows_that_a_list_names_take_as_many_rounds_of_fewer_threads() -> None:
    """Positions of a desk, whose shares' scenarios lie along the lanes: few blocks, and wider accesses leave fewer."""
    findings = explain(study("profits_of_24_desks_a_block_each", "columns")[0]).findings
    assert all(one.saves < 0.35 for one in findings if one.cause == "narrow_access")


def test_one_store_of_a_warp_is_not_what_its_lanes_are_idle_for() -> None:
    """A warp a row of few entries: lanes have none of them, and one stores the sum."""
    assert "Give a row fewer lanes" in found("spmv_power_law_warp_per_row", "branch_divergence").change


def test_rows_that_meet_where_loads_miss_as_often() -> None:
    """Entries of a sparse matrix that Triton adds to their rows, by vectors: all misses are counted as the loads'."""
    name = "triton_sparse_entries_added_by_atomics"
    for card in ("h100", "h200"):
        profile, came = study(name, sets=(DATA / "blind19" / card,))
        first = explain(profile).findings[0]
        assert first.cause == "global_atomics" and "walk all that goes to a target" in first.change
        assert abs(first.saves - came["sixteen_rows"]) < 0.1


def test_what_shared_memory_gives_back_to_l1_moves_nothing_less() -> None:
    """Six stages of a product whose loads keep L2 busy: three times the blocks load as much."""
    _, came = study("triton_product_six_stages_of_128")
    assert abs(found("triton_product_six_stages_of_128", "low_occupancy").saves - came["two_stages"]) < 0.06


@pytest.mark.parametrize(
    "name, side, cause, least, most",
    [
        # A sum over chains goes through a logarithm, by shared memory: no more programs make its steps fewer (17 came).
        ("triton_tag_chains_exponentials_each_step", "product", "low_occupancy", 0.0, 0.0),
        # Of its 128 programs a quarter would be left where each has the rows of a wgmma.
        ("triton_tag_chains_exponentials_each_step", "product", "warp_level_mma", 0.0, 0.0),
        # A window that moves on from lane to lane is in no tensor of a program (22 came).
        ("triton_ring_filter_remainder_each_tap", "flawed", "redundant_loads", 0.0, 0.22),
        # What each block fetches for itself DRAM delivers once then; what all fetch lies in L2 (39 came).
        ("triton_norm_backward_three_walks", "two_walks", "redundant_loads", 0.2, 0.44),
        # Of smaller tiles of operands there are more rounds, each of which waits as long (18 came).
        ("triton_attention_four_warps", "small_tiles", "low_occupancy", 0.13, 0.25),
        # The same words make another value in each block, which each computes (10 came).
        ("triton_position_bias_hidden_again_for_each_head", "product", "redundant_loads", 0.0, 0.15),
    ],
)
def test_what_was_tried_in_triton(name: str, side: str, cause: str, least: float, most: float) -> None:
    told = explain(study(name, side)[0]).findings
    assert least <= max((one.saves for one in told if one.cause == cause), default=0.0) <= most


def test_programs_that_start_together_load_nothing_alike_where_each_sector_comes_from_dram() -> None:
    """Eight programs for each question read its passages through L2; one for each reads every sector from DRAM."""
    name = "triton_passages_read_for_each_word"
    eight, one = (explain(study(name, side)[0]).findings for side in ("flawed", "question"))
    assert max(told.saves for told in eight if told.cause == "redundant_loads") > 0.5
    assert max((told.saves for told in one if told.cause == "redundant_loads"), default=0.0) < 0.05


@pytest.mark.parametrize(
    ("grid", "waves", "axes", "together"),
    [
        ((8, 4, 1), 2.0, (0,), True),
        ((8, 4, 1), 2.0, (1,), False),
        ((8, 4, 1), 2.0, (0, 1), False),
        ((1, 4, 1), 2.0, (1,), True),
        ((8, 4, 1), 0.5, (0, 1), True),
        ((8, 4, 1), None, (1,), False),
    ],
)
def test_which_neighbours_start_together(
    grid: tuple[int, int, int], waves: float | None, axes: Sequence[int], together: bool
) -> None:
    launch = study("triton_passages_read_for_each_word", "question")[0]
    changed = replace(launch, launch=replace(launch.launch, grid=grid, waves_per_sm=waves))
    assert beside_each_other(work(changed), axes) == together


def test_larger_tiles_are_told_with_stages_where_fewer_than_three_take_turns() -> None:
    """Tiles of 256 x 128 bring 10 % with one stage, 60 with three."""
    for name, side, count in (
        ("triton_product_six_stages_of_128", "flawed", 6.0),
        ("triton_product_six_stages_of_128", "two_stages", 2.0),
        ("triton_matmul_one_stage", "flawed", 1.0),
        ("triton_matmul_one_stage", "staged", 4.0),
    ):
        launch = study(name, side)[0]
        assert stages(work(launch)) == count
        larger = next(one for one in explain(launch).findings if one.cause == "redundant_loads")
        assert ("num_stages of 3" in larger.change) == (count < 3.0)
        # The sums of two tiles a warp spill in four warps.
        assert ("num_warps=8" in larger.change) == (launch.launch.threads_per_block < 256)


def test_tiles_that_share_operands_in_shared_memory_are_as_large_as_that_has_room() -> None:
    launch = study("triton_matmul_one_stage", "flawed")[0]
    for taken, most in ((0, 8), (100 << 10, 4), (200 << 10, 0)):
        found = work(replace(launch, launch=replace(launch.launch, dynamic_shared_memory=taken)))
        several = [int(one.name.split()[2]) for one in product_tiles.larger_tiles(found, traffic(found))]
        assert max(several, default=0) == most, (taken, several)


def test_fewer_warps_of_a_triton_program_are_told_by_their_number() -> None:
    """Sums over chains: what four warps hold fits the registers of one (61 came, of two 38), or of two."""
    for side, warps in (("weights", 1), ("flawed", 2)):
        told = explain(study("triton_tag_chains_exponentials_each_step", side)[0]).findings
        (exchange,) = (one for one in told if one.cause == "barriers")
        assert f"num_warps={warps}:" in exchange.change and 0.25 < exchange.saves < 0.6


def test_fewer_warps_are_told_where_nobody_counted_registers() -> None:
    launch = study("triton_tag_chains_exponentials_each_step", "flawed")[0]
    uncounted = replace(launch, launch=replace(launch.launch, registers_per_thread=None))
    way = fewer_warps(work(uncounted))
    assert way is not None and way.name == "2 warps a program" and way.fix.warps == 0.5


def test_fewer_warps_are_told_of_what_warps_hand_over_not_of_layouts() -> None:
    """A tile that goes through shared memory into another layout does so with one warp, too: 8 came, 54 were told."""
    assert fewer_warps(work(study("triton_class_distances_as_sums")[0])) is None


def test_copies_ahead_cost_what_each_round_does_for_them() -> None:
    """Four numbers a round, which L1 has: copying them takes longer (-181 came, 36 were told)."""
    told = explain(study("triton_density_divides_for_each_pair", "records")[0]).findings
    assert not any("num_stages" in one.change for one in told)


@pytest.mark.parametrize(
    "name, fix",
    [
        ("triton_nearest_centre_by_differences", "product"),
        ("triton_matmul_ieee_products", "half"),
        ("triton_states_in_full_floats", "tf32"),
    ],
)
def test_tensor_cores_read_a_fragment_for_a_row_of_what_triton_gives_a_warp(name: str, fix: str) -> None:
    launch, came = study(name)
    said = explain(launch)
    told = max(
        one.saves for one in (*said.findings, *said.other_arithmetic) if one.cause == "tensor_cores_idle"
    )
    assert abs(told - came[fix]) < 0.06
    # Twice the tile of a thread has no room beside 172 registers.
    shared = [one for one in said.findings if one.cause == "shared_memory_bandwidth"]
    assert bool(shared) == (name == "triton_matmul_ieee_products")


@pytest.mark.parametrize(
    "name, fix", [("triton_medians_by_sorting_the_row", "bits"), ("triton_largest_eight_by_sorting", "kept")]
)
def test_one_rank_of_many_values_needs_no_sort(name: str, fix: str) -> None:
    launch, came = study(name)
    first = explain(launch).findings[0]
    assert "Do not sort" in first.change and abs(first.saves - came[fix]) < 0.1
    # Nor is a sort told of where the largest are found otherwise.
    assert not any("Do not sort" in one.change for one in explain(study(name, fix)[0]).findings)


def test_places_of_tiles_for_tensor_cores_are_looked_up_nowhere() -> None:
    """The uniform path finds the buffer whose turn it is, and what describes it to wgmma."""
    product = explain(study("triton_product_tiles_of_128_by_256_in_four_warps", "warps")[0]).findings
    assert "tail_effect" in {one.cause for one in product}
    assert not any(one.cause == "integer_arithmetic" for one in product)
    bits = explain(study("ghash_bit_by_bit")[0]).findings
    assert bits[0].cause == "integer_arithmetic"


def test_of_larger_blocks_the_axis_is_told() -> None:
    """Tiles of 32 x 256 bring what taller ones lose."""
    told = explain(study("triton_manhattan_distances_four_rows_a_program", "wide")[0]).findings
    assert any("along its innermost axis" in one.change for one in told)


def test_dram_has_no_more_than_global_accesses_ask_once_nothing_spills() -> None:
    """Rows of a softmax in one warp: spilled lines go to DRAM and back."""
    _, came = study("triton_softmax_one_warp")
    assert abs(found("triton_softmax_one_warp", "local_memory").saves - came["more_warps"]) < 0.05


@pytest.mark.parametrize(
    "kind, name",
    [
        # FP64 is no more alive where a thread holds most registers: as many warps as before.
        ("fixed", "pauli_letters_read_for_each_amplitude"),
        # Three bytes side by side that a thread loads at once: two of them wait for the first.
        ("fixed", "lattice_polynomials_thread_each"),
        # Looked-up places of which eight lie in two or three sectors: records of them lie in as many as lanes.
        ("fixed", "rock_reactions_lanes_without_pores"),
        # A tile copied in rounds of their own by threads that it does not belong to.
        ("fixed", "spectral_angles_whole_spectra_in_shared"),
        # The two values beside a thread's own, of which a lane has all but those at its ends.
        ("fixed", "option_lattice_levels_in_global"),
        # What else those warps do stays where a few values are worked out once.
        ("flawed", "neutrino_mixing_six_sines_in_double"),
        # Copies of four bytes pass L1 as loads do.
        ("flawed", "linear_fp32_small_tile"),
        # Which of four words a round needs tests choose: no register is named by a number of the loop.
        ("flawed", "credit_spreads_exponentials_in_double"),
    ],
)
def test_what_was_tried_is_told(kind: str, name: str) -> None:
    """What a statement brought that was done (tests/cuda/tried), when the launch said something else."""
    tried = json.loads((try_statements.TRIED / kind / try_statements.STATEMENTS).read_text("utf-8"))
    one = next(one for one in tried["statements"] if one["study"] == name)
    said = explain(study(name, one["side"], (DATA / one["set"] / "h100",))[0]).findings
    told = max((finding.saves for finding in said if finding.cause == one["cause"]), default=0.0)
    assert abs(told - try_statements.came(one)[1] / 100) < 0.1


def test_a_state_machine_in_registers_is_explained_in_bounded_room() -> None:
    """Each register of it holds one of many values in each state: without a bound there were millions of symbols."""
    launch, _ = study("formula_with_its_stack_in_local", "registers")
    engine.explain(launch)
    made = [one for one in gc.get_objects() if isinstance(one, Values)]
    assert made and max(len(one._symbols) for one in made) < 2 * MOST_SYMBOLS


def test_what_results_hold_while_they_load_what_they_share() -> None:
    """A loop's sum; without one no more than what is shared, which may be held as well."""
    shared, own = "LDG.E R6, desc[UR4][R2.64] ;", "LDG.E R4, desc[UR4][R2.64] ;"
    looping = made(own, shared, "FFMA R5, R4, R6, R5 ;", "@P0 BRA 0x000010 ;", "STG.E desc[UR4][R2.64], R5 ;")
    assert held_meanwhile(looping, [1], frozenset({0, 2})) == 2.0
    others = [f"LDG.E R{at}, desc[UR4][R2.64] ;" for at in (8, 9, 10)]
    sums = ["FADD R5, R6, R8 ;", "FADD R5, R5, R9 ;", "FADD R5, R5, R10 ;", "STG.E desc[UR4][R2.64], R5 ;"]
    straight = made(*others, shared, *sums)
    straight = made(*others, shared, *sums, executed=round(straight.launched_warps))
    assert held_meanwhile(straight, [3], frozenset({0, 1, 2})) == 1.0


def test_groups_of_lanes_that_exchange_in_turn_are_no_ways() -> None:
    turn = ("WARPSYNC.EXCLUSIVE R0 ;", "REDUX.SUM UR5, R15 ;", "BSYNC B0 ;")
    assert _in_groups(made("MATCH.ANY R0, R13 ;", *turn, "EXIT ;")).tolist() == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert not _in_groups(made("WARPSYNC.ALL ;", "REDUX.SUM UR5, R15 ;", "EXIT ;")).any()


_STEPS = """\
LDG.E R9, desc[UR4][R2.64]
{first}
SHFL.DOWN PT, R5, R4, 0x1, 0x1f
{guard}FADD R4, R4, R5
SHFL.DOWN PT, R5, R4, 0x2, 0x1f
{guard}FADD R4, R4, R5
STG.E desc[UR4][R2.64], R4
EXIT"""


@pytest.mark.parametrize(
    "first, guard, adds",
    [
        ("S2R R0, SR_LANEID", "", True),
        ("ISETP.GE.AND P0, PT, R0, 0x1, PT", "@P0 ", True),  # a scan's lanes
        ("ISETP.NE.AND P0, PT, R9, 0x0, PT", "@P0 ", False),  # runs of any length
    ],
)
def test_sums_of_runs_are_no_sum_of_a_warp(first: str, guard: str, adds: bool) -> None:
    code = [f"{line} ;" for line in _STEPS.format(first=first, guard=guard).split("\n")]
    assert added_up(made(*code)).any() == adds


_ROUNDS = """\
MOV R7, RZ
MOV R5, RZ
LDG.E R4, desc[UR4][R2.64]
FADD R5, R4, {with_it}
@P0 BRA 0x000020
FMUL R7, R5, R5
@P1 BRA 0x000010
STG.E desc[UR4][R2.64], R7
EXIT"""


@pytest.mark.parametrize("with_it, begins", [("R5", False), ("R7", True)])
def test_a_pass_that_begins_with_what_the_last_one_found(with_it: str, begins: bool) -> None:
    code = [f"{line} ;" for line in _ROUNDS.format(with_it=with_it).split("\n")]
    assert _begins_with_the_last(made(*code), 2) == begins
