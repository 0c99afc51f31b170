"""Studies in Triton of models of language, run by what tests/cuda/variants/frameworks.py provides.

Usage: n_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- one token's way down ---


@triton.jit
def down_kernel(weights, x, out, depth, rows: tl.constexpr, piece: tl.constexpr, add: tl.constexpr):
    """``rows`` rows of weights by one token's values; ``depth`` of them for each of the second axis's programs."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    first = tl.program_id(1) * depth
    width = depth * tl.num_programs(1)
    total = tl.zeros((rows, piece), tl.float32)
    for start in range(first, first + depth, piece):
        at = start + tl.arange(0, piece)
        weight = tl.load(weights + row[:, None] * width + at[None, :]).to(tl.float32)
        total += weight * tl.load(x + at).to(tl.float32)[None, :]
    found = tl.sum(total, 1)
    if add:
        tl.atomic_add(out + row, found)
    else:
        tl.store(out + row, found)


def down(rows: int = 4096, width: int = 14336) -> tuple[dict[str, Run], Check]:
    weights, x = noise(rows, width, dtype=torch.half), noise(width, dtype=torch.half)
    out = torch.empty(rows, device="cuda")

    def read() -> torch.Tensor:
        found = out.clone()
        out.zero_()
        return found

    return {
        "flawed": lambda: down_kernel[(rows // 64, 1)](weights, x, out, width, 64, 128, False, num_warps=8),
        "rows": lambda: down_kernel[(rows // 4, 1)](weights, x, out, width, 4, 1024, False, num_warps=4),
        "parts": lambda: down_kernel[(rows // 64, 14)](
            weights, x, out, width // 14, 64, 128, True, num_warps=8
        ),
    }, read


# --- gradients of a norm's gains ---


@triton.jit
def gains_kernel(x, slope, scales, out, width: tl.constexpr):
    """What a row adds to the gradients of an RMS norm's gains."""
    row = tl.program_id(0)
    at = tl.arange(0, width)
    value = tl.load(x + row * width + at).to(tl.float32)
    value *= tl.load(slope + row * width + at).to(tl.float32) * tl.load(scales + row)
    tl.atomic_add(out + at, value)


@triton.jit
def gains_rows_kernel(x, slope, scales, out, rows, width: tl.constexpr):
    """The same of ``rows`` rows, added before."""
    first = tl.program_id(0) * rows
    at = tl.arange(0, width)
    total = tl.zeros((width,), tl.float32)
    for row in range(first, first + rows):
        value = tl.load(x + row * width + at).to(tl.float32)
        total += value * tl.load(slope + row * width + at).to(tl.float32) * tl.load(scales + row)
    tl.atomic_add(out + at, total)


@triton.jit
def gains_columns_kernel(x, slope, scales, out, rows, width, columns: tl.constexpr, tile: tl.constexpr):
    """The same of ``rows`` rows of some columns, ``tile`` rows at a time."""
    at = tl.program_id(0) * columns + tl.arange(0, columns)[None, :]
    first = tl.program_id(1) * rows
    total = tl.zeros((tile, columns), tl.float32)
    for start in range(first, first + rows, tile):
        row = start + tl.arange(0, tile)[:, None]
        value = tl.load(x + row * width + at).to(tl.float32)
        total += value * tl.load(slope + row * width + at).to(tl.float32) * tl.load(scales + row)
    tl.atomic_add(out + tl.program_id(0) * columns + tl.arange(0, columns), tl.sum(total, 0))


def gains(rows: int = 16384, width: int = 4096) -> tuple[dict[str, Run], Check]:
    x, slope = noise(rows, width, dtype=torch.half), noise(rows, width, dtype=torch.half).flip(0)
    scales = noise(rows) * 0.25 + 1.5
    out = torch.zeros(width, device="cuda")

    def read() -> torch.Tensor:
        found = out.clone()
        out.zero_()
        return found

    return {
        "flawed": lambda: gains_kernel[(rows,)](x, slope, scales, out, width, num_warps=8),
        "rows": lambda: gains_rows_kernel[(rows // 32,)](x, slope, scales, out, 32, width, num_warps=8),
        "columns": lambda: gains_columns_kernel[(width // 256, rows // 256)](
            x, slope, scales, out, 256, width, 256, 16, num_warps=8
        ),
    }, read


# --- weights in eight bits ---


@triton.jit
def restored_kernel(levels, scales, out, block: tl.constexpr, group: tl.constexpr):
    """Levels of eight bits times the scale of their group, as half values."""
    start = tl.program_id(0) * block
    at = start + tl.arange(0, block)
    scale = tl.load(scales + start // group)
    tl.store(out + at, (tl.load(levels + at).to(tl.float32) * scale).to(tl.float16))


def restored(rows: int = 16384, width: int = 8192) -> tuple[dict[str, Run], Check]:
    levels = (noise(rows, width) * 127.0).to(torch.int8)
    scales = noise(rows) * 0.001 + 0.01
    out = torch.empty_like(levels, dtype=torch.half)
    return {
        "sound": lambda: restored_kernel[(rows * width // 4096,)](
            levels, scales, out, 4096, width, num_warps=8
        ),
    }, out.float


STUDIES = (
    Study(
        "triton_one_token_down_by_64_rows",
        "one token's 14336 values by 4096 rows of half weights, in Triton",
        "64 rows a program: 64 programs, on half of the multiprocessors",
        (
            ("rows", "four rows a program: 1024 programs", ("small_grid",)),
            ("parts", "a 14th of the values a program, added by atomics: 896 programs", ("small_grid",)),
        ),
        down,
        tolerance=1e-3,
        domain="serving",
    ),
    Study(
        "triton_norm_gains_atomics_each_row",
        "gradients of the 4096 gains of an RMS norm over 16384 tokens, in Triton",
        "each token's program adds all of its 4096 products to the same gradients by atomics",
        (
            ("rows", "32 tokens a program, added before", ("global_atomics",)),
            ("columns", "256 tokens of 256 columns a program, added before", ("global_atomics",)),
        ),
        gains,
        tolerance=1e-3,
        domain="training",
    ),
    Study(
        "sound_triton_levels_to_half_by_scales",
        "16384 rows of 8192 weights of eight bits, times a scale each, as half values, in Triton",
        "",
        (),
        restored,
        tolerance=0.0,
        domain="quantisation",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
