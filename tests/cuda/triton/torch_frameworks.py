"""Studies of torch's own kernels, of which layout, type and shape choose one; see tests/cuda/variants/frameworks.py.

Usage: torch_frameworks.py list | check | time | profile [STUDY ...]
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no pool of processes for four small kernels

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise


def powers(n: int = 1 << 25) -> tuple[dict[str, Run], Check]:
    x, out = noise(n).abs() + 1e-3, torch.empty(n, device="cuda")
    found = {"out": out}
    learnt = torch.full((), 3.0, device="cuda")
    compiled = torch.compile(lambda a: a * a * a, dynamic=False)

    def by_tensor() -> None:
        found["out"] = torch.pow(x, learnt, out=out)

    def by_number() -> None:
        found["out"] = torch.pow(x, 3.0, out=out)

    def products() -> None:
        found["out"] = compiled(x)

    return {"flawed": by_tensor, "number": by_number, "products": products}, lambda: found["out"]


def enlarged(images: int = 4, channels: int = 256, side: int = 64) -> tuple[dict[str, Run], Check]:
    x = noise(images, channels, side, side)
    last = x.contiguous(memory_format=torch.channels_last)
    found = {"out": x}

    def twice(a: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(a, scale_factor=2.0, mode="bilinear", align_corners=False)

    compiled = torch.compile(twice, dynamic=False)

    def planes() -> None:
        found["out"] = twice(x)

    def channels_last() -> None:
        found["out"] = twice(last)

    def fused() -> None:
        found["out"] = compiled(x)

    def result() -> torch.Tensor:
        return found["out"].contiguous()

    return {"flawed": planes, "channels_last": channels_last, "compiled": fused}, result


def weighted(n: int = 1 << 25) -> tuple[dict[str, Run], Check]:
    weights, out = noise(n), torch.empty(n, device="cuda")
    counts = (noise(n).abs() * 100).int()
    floats = counts.float()
    found = {"out": out}
    compiled = torch.compile(lambda a, b: a * b, dynamic=False)

    def mixed() -> None:
        found["out"] = torch.mul(counts, weights, out=out)

    def stored() -> None:
        found["out"] = torch.mul(floats, weights, out=out)

    def fused() -> None:
        found["out"] = compiled(counts, weights)

    return {"flawed": mixed, "stored_floats": stored, "compiled": fused}, lambda: found["out"]


@triton.jit
def norm_rows_kernel(x, out, columns: tl.constexpr, rows: tl.constexpr):
    row, column = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, columns)
    at = row[:, None] * columns + column[None, :]
    value = tl.load(x + at)
    value -= (tl.sum(value, 1) / columns)[:, None]
    scale = tl.rsqrt(tl.sum(value * value, 1) / columns + 1e-5)
    tl.store(out + at, value * scale[:, None])


def short_norms(rows: int = 1 << 19) -> tuple[dict[str, Run], Check]:
    columns = 32
    x = noise(rows, columns)
    out = torch.empty_like(x)
    found = {"out": out}

    def norm(a: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(a, (columns,))

    compiled = torch.compile(norm, dynamic=False)

    def eager() -> None:
        found["out"] = norm(x)

    def fused() -> None:
        found["out"] = compiled(x)

    def tile() -> None:
        norm_rows_kernel[(rows // 64,)](x, out, columns, 64, num_warps=4)
        found["out"] = out

    return {"flawed": eager, "compiled": fused, "tile": tile}, lambda: found["out"]


STUDIES = (
    Study(
        "torch_pow_by_learnt_exponent",
        "torch raises 33554432 floats to a power that is a tensor of one value, 3",
        "nothing is known of the exponent: the general power function",
        (
            ("number", "the exponent as a number, for which torch multiplies", ("expensive_math",)),
            ("products", "x * x * x, compiled by torch", ("expensive_math",)),
        ),
        powers,
    ),
    Study(
        "torch_bilinear_twice_as_large",
        "torch enlarges four images of 256 float channels from 64 x 64 to 128 x 128",
        "a thread a place of the image walks all images and channels: 16384 threads",
        (
            ("channels_last", "images stored channels last", ("small_grid",)),
            ("compiled", "compiled by torch", ("small_grid",)),
        ),
        enlarged,
        domain="images",
    ),
    Study(
        "torch_counts_times_weights",
        "torch multiplies 33554432 32-bit integers with floats",
        "operands of two types go through the kernel that converts each value as it is loaded",
        (
            ("stored_floats", "counts stored as floats", ("narrow_access",)),
            ("compiled", "compiled by torch", ("narrow_access",)),
        ),
        weighted,
        domain="data",
    ),
    Study(
        "torch_layer_norm_of_32",
        "torch's layer norm of 524288 rows of 32 floats",
        "a block of 128 threads a row of 32",
        (
            ("compiled", "compiled by torch", ("idle_threads", "barriers")),
            ("tile", "64 rows a program, in Triton", ("idle_threads", "barriers")),
        ),
        short_norms,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
