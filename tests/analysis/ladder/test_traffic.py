"""The traffic model: its formulas, and its predictions against measured launches."""

from __future__ import annotations

from dataclasses import replace

import pytest
from named import named
from recorded_data import ReadRecorded

from gemmprof.analysis import kernel_analysis
from gemmprof.analysis.ladder import declared_traffic
from gemmprof.analysis.ladder.access_pattern import AccessPatterns
from gemmprof.analysis.ladder.declared_traffic import access_patterns
from gemmprof.kernels.catalog import SINGLE, stage_by_number
from gemmprof.model import Problem, Stage

CUBE = Problem(4096, 4096, 4096)
OURS = [stage for stage in SINGLE.stages if stage.addresses is not None]


def per_output(stage: Stage, space: str, problem: Problem = CUBE) -> float | None:
    row = named(declared_traffic.model(stage, problem).rows, f"{space}_loads_per_output")
    return None if row is None else row.predicted


SQUARE = {"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8}
WARPS = {"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 64, "WNITER": 4, "TM": 8, "TN": 4}


@pytest.mark.parametrize(
    ("name", "parameters", "global_loads", "shared_loads"),
    [
        ("naive", {"BLOCK": 32}, 2.0, None),
        ("coalesced", {"BLOCK": 16}, 2.0, None),
        ("shared", {"TILE": 32}, 2 / 32, 2.0),
        ("shared", {"TILE": 16}, 2 / 16, 2.0),
        ("block1d", {"BM": 64, "BN": 64, "BK": 8, "TM": 8}, 1 / 32, 9 / 8),
        ("block2d", SQUARE, 1 / 64, 1 / 4),
        ("vectorized", SQUARE, 1 / 64, 1 / 4),
        ("linearized", SQUARE, 1 / 64, 1 / 4),
        ("padded", {**SQUARE, "PAD": 4}, 1 / 64, 1 / 4),
        ("autotuned", {**SQUARE, "BN": 64, "BK": 16, "TN": 4, "PAD": 4}, 1 / 128 + 1 / 64, 12 / 32),
        ("warptiled", WARPS, 1 / 64, (8 + 4 * 4) / (8 * 4 * 4)),
        ("double_buffered", WARPS, 1 / 64, (8 + 4 * 4) / (8 * 4 * 4)),
        ("async_copy", {**WARPS, "STAGES": 3}, 1 / 64, (8 + 4 * 4) / (8 * 4 * 4)),
        (
            "fastest",
            {"BM": 128, "BN": 128, "BK": 32, "WM": 64, "WN": 64, "TM": 16, "TN": 8},
            1 / 64,
            (16 + 8) / (16 * 8),
        ),
    ],
)
def test_textbook_loads_per_output(
    name: str, parameters: dict[str, int], global_loads: float, shared_loads: float | None
) -> None:
    """In multiples of K."""
    stage = next(stage for stage in SINGLE.stages if stage.name == name)
    stage = replace(stage, parameters={**stage.parameters, **parameters})
    assert per_output(stage, "global") == pytest.approx(global_loads * CUBE.k)
    assert per_output(stage, "shared") == (
        None if shared_loads is None else pytest.approx(shared_loads * CUBE.k)
    )


@pytest.mark.parametrize("stage", OURS, ids=lambda stage: stage.name)
def test_the_printed_formula_is_the_prediction(stage: Stage) -> None:
    letters = {**stage.parameters, "K": CUBE.k}
    if "WNITER" in letters:
        letters["WMITER"] = (
            letters["WM"] * letters["WN"] // (32 * letters["TM"] * letters["TN"] * letters["WNITER"])
        )
    model = declared_traffic.model(stage, CUBE)
    for name in ("global_loads_per_output", "shared_loads_per_output"):
        row = named(model.rows, name)
        if row is None:
            assert "BLOCK" in letters and name.startswith("shared")
            continue
        expression = row.formula.replace("2K", "2 * K").replace("K (", "K * (")
        for product in ("WMITER TM WNITER TN", "TM TN", "WMITER TM", "WNITER TN"):
            expression = expression.replace(product, product.replace(" ", " * "))
        assert eval(expression, {}, letters) == pytest.approx(row.predicted)


@pytest.mark.parametrize("stage", OURS, ids=lambda stage: stage.name)
def test_arithmetic_intensity_grows_with_the_shape_of_the_tile_only(stage: Stage) -> None:
    small, large = (declared_traffic.model(stage, Problem(size, size, size)) for size in (1024, 4096))
    for name in ("l1_intensity", "l2_intensity"):
        left, right = named(small.rows, name), named(large.rows, name)
        if name == "l1_intensity" and stage.name == "fastest":
            # Tensor copies touch no sector of L1.
            assert left is right is None
            continue
        assert left.predicted == pytest.approx(right.predicted)
    compulsory = named(large.rows, "dram_intensity")
    assert compulsory.predicted == pytest.approx(2 * 4096 / 8)


def test_a_library_kernel_gets_what_holds_for_any_product() -> None:
    model = declared_traffic.model(stage_by_number(0), CUBE)
    known = ["fma_per_output", "l2_write_bytes", "dram_read_bytes", "dram_write_bytes", "dram_intensity"]
    assert [row.name for row in model.rows if row.predicted] == known


def test_shapes_that_are_no_multiple_of_the_tile_are_marked() -> None:
    stage = stage_by_number(5)
    assert declared_traffic.model(stage, CUBE).whole_tiles
    assert not declared_traffic.model(stage, Problem(4095, 4096, 4096)).whole_tiles


def test_a_stage_of_another_version_is_no_crash() -> None:
    stage = replace(stage_by_number(5), parameters={"BLOCKSIZE": 3})
    assert named(declared_traffic.model(stage, CUBE).rows, "global_loads_per_output") is None


@pytest.mark.parametrize("value", [0, -8, 1.5, "128", None, [128], True])
@pytest.mark.parametrize("stage", OURS, ids=lambda stage: stage.name)
def test_a_run_may_hold_any_parameters(stage: Stage, value: object) -> None:
    """``run.json`` is not ours to trust: an odd parameter costs the prediction, not the page."""
    for letter in stage.parameters:
        odd = replace(stage, parameters={**stage.parameters, letter: value})
        for row in declared_traffic.model(odd, CUBE).rows:
            assert row.predicted is None or row.predicted > 0


@pytest.mark.parametrize("shape", [(1, 1, 0), (1, 1, 1), (7, 1, 3)])
@pytest.mark.parametrize("stage", SINGLE.stages, ids=lambda stage: stage.name)
def test_tiny_shapes(stage: Stage, shape: tuple[int, int, int]) -> None:
    declared_traffic.model(stage, Problem(*shape))


def test_predictions_meet_the_measurement_of_simple_kernels(recorded: ReadRecorded) -> None:
    """Three kernels of the same structure as stages 1 to 3, 1024 cubed: what no cache touches agrees exactly."""
    problem = Problem(1024, 1024, 1024)
    for number, profile in enumerate(recorded("ladder_simple", source=True), start=1):
        model = declared_traffic.model(stage_by_number(number), problem, kernel_analysis.analyse(profile))
        loaded = ("global_loads_per_output", "shared_loads_per_output", "shared_bytes", "l1_bytes")
        for name in ("fma_per_output", *loaded):
            row = named(model.rows, name)
            if row is not None:
                assert row.measured == row.predicted, (number, name)
        for name in ("l2_read_bytes", "dram_read_bytes", "l2_intensity"):
            row = named(model.rows, name)
            assert row is not None and row.ratio == pytest.approx(1, abs=0.01), (number, name)
        assert named(model.rows, "global_loads_per_output") is not None


def test_without_source_counters_opcode_counts_serve(recorded: ReadRecorded) -> None:
    """No disassembly: loads are counted from opcodes with modifiers where the report has them."""
    problem = Problem(1024, 1024, 1024)
    profile = recorded("ladder_simple")[2]
    model = declared_traffic.model(stage_by_number(3), problem, kernel_analysis.analyse(profile))
    row = named(model.rows, "shared_loads_per_output")
    assert row.measured == row.predicted


def test_what_was_not_collected_has_no_measurement(recorded: ReadRecorded) -> None:
    profile = recorded("partial_two_metrics")[0]
    model = declared_traffic.model(
        stage_by_number(1), Problem(1024, 1024, 1024), kernel_analysis.analyse(profile)
    )
    assert all(row.measured is None for row in model.rows)
    assert all(row.predicted is not None for row in model.rows)


def test_multiply_adds_of_tensor_cores_are_not_zero_but_uncounted(recorded: ReadRecorded) -> None:
    profile = recorded("flaws_tensor", source=True)[0]
    halves = Problem(1024, 1024, 1024, "float16")
    model = declared_traffic.model(stage_by_number(0), halves, kernel_analysis.analyse(profile))
    row = named(model.rows, "fma_per_output")
    assert row is not None and row.predicted == 1024 and row.measured is None


OBLONG = Problem(300, 500, 100, "bfloat16", "float32")


def oblong() -> AccessPatterns:
    """Stage 5 with a tile of 64 x 32 x 8 that divides neither of the sides."""
    parameters = {"BM": 64, "BN": 32, "BK": 8, "TM": 4, "TN": 4}
    found = access_patterns(replace(stage_by_number(5), parameters=parameters), OBLONG)
    assert found is not None
    return found


def test_what_a_ragged_shape_begins_counts_whole() -> None:
    patterns = oblong()
    assert (patterns.steps, patterns.blocks) == (13, 5 * 16)  # 100 / 8, (300 / 64) x (500 / 32)


def test_rows_of_a_lie_k_apart_and_rows_of_b_n() -> None:
    for matrix, length in (("A", OBLONG.k), ("B", OBLONG.n)):
        access = named(oblong().accesses, f"global_load_{matrix.lower()}")
        places = zip(access.rows, access.columns, strict=True)
        assert access.addresses == tuple(2 * (row * length + column) for row, column in places)


def test_bytes_of_an_oblong_tile_and_of_a_wider_c() -> None:
    stage = replace(stage_by_number(5), parameters={"BM": 64, "BN": 32, "BK": 8, "TM": 4, "TN": 4})
    rows = {row.name: row.predicted for row in declared_traffic.model(stage, OBLONG).rows}
    outputs = 300 * 500
    assert rows["l2_read_bytes"] == pytest.approx(2 * outputs * (100 / 64 + 100 / 32))
    assert rows["l2_write_bytes"] == rows["dram_write_bytes"] == 4 * outputs
    assert rows["dram_read_bytes"] == 2 * (300 * 100 + 100 * 500)
