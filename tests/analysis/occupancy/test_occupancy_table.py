"""Many configurations at once: the same answers as one at a time, and the same refusals."""

from __future__ import annotations

import csv
import io
import lzma

import numpy as np
import pandas as pd
import pytest
from recorded_data import DATA

from gemmprof import occupancy, occupancy_table
from gemmprof.base.errors import OccupancyError
from gemmprof.gpu.arch import LIMITS

REFERENCE = DATA / "occupancy" / "reference.csv.xz"


@pytest.fixture(scope="module")
def reference() -> pd.DataFrame:
    rows = list(csv.DictReader(io.StringIO(lzma.decompress(REFERENCE.read_bytes()).decode())))
    frame = pd.DataFrame(rows)
    labels = ["compute_capability", "limiters"]
    return frame.astype({name: float for name in frame.columns if name not in labels})


def configurations(reference: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "compute_capability": reference["compute_capability"],
            "threads_per_block": reference["threads"],
            "registers_per_thread": reference["registers"],
            "shared_memory_per_block": reference["shared_memory"],
            "shared_memory_config": reference["config"],
            "block_barriers": reference["barriers"],
        }
    )


def test_agrees_with_the_official_calculator_on_every_row(reference: pd.DataFrame) -> None:
    answers = occupancy_table(configurations(reference))
    assert len(answers) == 3000
    assert (answers["blocks_per_sm"] == reference["blocks"]).all()
    assert (100 * answers["theoretical_occupancy"]).round(4).equals(reference["occupancy_percent"])
    assert (answers["registers_allocated_per_block"] == reference["block_registers"]).all()
    assert (answers["shared_memory_allocated_per_block"] == reference["block_shared_memory"]).all()
    some = reference["blocks"] > 0
    ours = answers["limiters"].astype(str).str.replace("|", "+")
    assert (ours[some] == reference["limiters"][some]).all()


def random_frame(size: int, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    labels = np.array([limits.label for limits in LIMITS.values()])
    return pd.DataFrame(
        {
            "compute_capability": labels[random.integers(0, len(labels), size)],
            "threads_per_block": random.integers(-2, 1100, size),
            "registers_per_thread": random.integers(-2, 270, size),
            "shared_memory_per_block": random.integers(-100, 120_000, size),
            "shared_memory_config": random.choice([65536, 102400, 32768, 0, 12345], size),
            "block_barriers": random.integers(-1, 18, size),
        }
    )


def test_every_row_is_what_the_scalar_calculator_answers() -> None:
    frame = random_frame(4_000, seed=1)
    answers = occupancy_table(frame, invalid="mark")
    refused = 0
    for (_, row), (_, answer) in zip(frame.iterrows(), answers.iterrows(), strict=True):
        try:
            one = occupancy(**dict(row.items()))
        except OccupancyError as error:
            assert answer["problem"] == error.message
            assert np.isnan(answer["theoretical_occupancy"])
            refused += 1
            continue
        assert answer["problem"] == ""
        assert answer["blocks_per_sm"] == one.blocks_per_sm
        assert answer["active_warps_per_sm"] == one.active_warps_per_sm
        assert answer["theoretical_occupancy"] == one.theoretical_occupancy
        assert answer["limiters"] == "|".join(one.limiters)
        assert answer["registers_left"] == one.registers_left
        assert answer["shared_memory_left"] == one.shared_memory_left
        for resource, blocks in one.block_limits.items():
            assert answer[f"limit_{resource}"] == blocks
        assert pd.isna(answer["limit_barriers"]) == ("barriers" not in one.block_limits)
    assert 1_000 < refused < 3_900


def test_arrays_and_single_values_mix() -> None:
    answers = occupancy_table(
        compute_capability="9.0", threads_per_block=np.array([128, 256]), registers_per_thread=[32, 64]
    )
    assert answers["blocks_per_sm"].tolist() == [16, 4]
    assert answers["theoretical_occupancy"].tolist() == [1.0, 0.5]


@pytest.mark.parametrize("column", [["8.6", "sm_90"], [8.6, 9.0], [(8, 6), (9, 0)], np.array([8.6, 9.0])])
def test_architectures_in_every_form(column: object) -> None:
    answers = occupancy_table(compute_capability=column, threads_per_block=1024, registers_per_thread=37)
    assert answers["active_warps_per_sm"].tolist() == [32, 32]
    assert answers["theoretical_occupancy"].round(3).tolist() == [0.667, 0.5]


def test_columns_stand_in_for_arguments_and_the_index_is_kept() -> None:
    frame = pd.DataFrame(
        {"threads_per_block": [128, 256], "registers_per_thread": [32, 32], "name": ["a", "b"]}
    )
    frame.index = pd.Index(["first", "second"])
    answers = occupancy_table(frame, compute_capability=(8, 6), registers_per_thread=64)
    assert answers.index.tolist() == ["first", "second"]
    assert answers["blocks_per_sm"].tolist() == [8, 4]


def test_a_gap_in_the_carve_out_means_the_largest() -> None:
    answers = occupancy_table(
        compute_capability="8.6", threads_per_block=128, registers_per_thread=32, shared_memory_per_block=20_000,
        shared_memory_config=[None, 65_536],
    )  # fmt: skip
    assert answers["limit_shared_memory"].tolist() == [4, 3]


def test_the_first_impossible_row_is_named() -> None:
    frame = pd.DataFrame({"threads_per_block": [128, 1025]}, index=["fine", "wrong"])
    with pytest.raises(
        OccupancyError, match=r"configuration wrong: 1,025 threads per block: .* 8\.6"
    ) as raised:
        occupancy_table(frame, compute_capability="8.6", registers_per_thread=32)
    assert "invalid=" in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads_per_block": [128, 256], "registers_per_thread": [32, 32, 32]}, "different lengths"),
        ({"threads_per_block": [128.5, 256], "registers_per_thread": 32}, "row 0: .*128.5.* whole number"),
        ({"threads_per_block": [128, np.nan], "registers_per_thread": 32}, "row 1"),
        ({"threads_per_block": ["128", "256"], "registers_per_thread": 32}, "row 0: '128' is not a whole"),
        ({"threads_per_block": [True, False], "registers_per_thread": 32}, "row 0: True is not a whole"),
        ({"threads_per_block": [128, 256]}, "no 'registers_per_thread'"),
    ],
)
def test_nonsense_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(OccupancyError, match=message):
        occupancy_table(compute_capability="8.6", **options)  # type: ignore[arg-type]


def test_an_unknown_architecture_is_refused_even_when_marking() -> None:
    with pytest.raises(OccupancyError, match="not in the table of limits"):
        occupancy_table(
            compute_capability=["8.6", "8.8"], threads_per_block=128, registers_per_thread=32, invalid="mark"
        )


def test_huge_numbers_do_not_wrap_around() -> None:
    with pytest.raises(OccupancyError, match="at most 1,024"):
        occupancy_table(compute_capability="8.6", threads_per_block=[2**32 + 128], registers_per_thread=32)
    with pytest.raises(OccupancyError):
        occupancy_table(compute_capability="8.6", threads_per_block=[2**70], registers_per_thread=32)


def test_no_rows_are_no_rows() -> None:
    answers = occupancy_table(compute_capability="8.6", threads_per_block=[], registers_per_thread=[])
    assert len(answers) == 0
    assert "blocks_per_sm" in answers


@pytest.mark.parametrize("number", [np.float64, np.int64, np.uint16, object])
def test_the_reason_is_the_same_whatever_type_the_column_has(number: type) -> None:
    """A column with a gap elsewhere is one of floats, also where it holds 16 registers."""
    answers = occupancy_table(
        compute_capability=8.0,
        threads_per_block=np.array([2000, 64, 64], dtype=number),
        registers_per_thread=np.array([16, 16, 0], dtype=number),
        invalid="mark",
    )
    assert answers["problem"].tolist() == [
        "2,000 threads per block: compute capability 8.0 allows at most 1,024",
        "",
        "0 registers per thread: compute capability 8.0 allows 1 to 255",
    ]
