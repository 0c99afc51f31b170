"""Studies in Triton and torch, run by what tests/cuda/variants/frameworks.py provides.

Usage: frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- Triton ---


@triton.jit
def norm_weight_grad_kernel(dy, x, grad, columns: tl.constexpr, rows: tl.constexpr):
    column = tl.arange(0, columns)
    total = tl.zeros((columns,), tl.float32)
    for r in range(rows):
        at = (tl.program_id(0) * rows + r).to(tl.int64) * columns + column
        total += tl.load(dy + at).to(tl.float32) * tl.load(x + at).to(tl.float32)
    tl.atomic_add(grad + column, total)


@triton.jit
def norm_weight_grad_columns_kernel(
    dy, x, grad, count, columns: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr
):
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    total = tl.zeros((tall, wide), tl.float32)
    for first in range(tl.program_id(1) * tall, count, tl.num_programs(1) * tall):
        row = first + tl.arange(0, tall)
        at = row[:, None].to(tl.int64) * columns + column[None, :]
        total += tl.load(dy + at).to(tl.float32) * tl.load(x + at).to(tl.float32)
    tl.atomic_add(grad + column, tl.sum(total, 0))


def norm_weight_grad() -> tuple[dict[str, Run], Check]:
    rows, columns = 16384, 1024
    dy, x = noise(rows, columns, dtype=torch.half) + 1, noise(rows, columns, dtype=torch.half)
    grad = torch.zeros(columns, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: norm_weight_grad_kernel[(rows,)](dy, x, grad, columns, 1, num_warps=4),
        "rows": lambda: norm_weight_grad_kernel[(rows // 32,)](dy, x, grad, columns, 32, num_warps=4),
        "columns": lambda: norm_weight_grad_columns_kernel[(columns // 64, 32)](
            dy, x, grad, rows, columns, 32, 64, num_warps=4
        ),
    }
    return sides, lambda: (grad.clone(), grad.zero_())[0]


@triton.jit
def attention_kernel(q, k, v, out, length, tall: tl.constexpr, wide: tl.constexpr, features: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * length * features
    row, feature = tl.program_id(0) * tall + tl.arange(0, tall), tl.arange(0, features)
    mine = tl.load(q + head + row[:, None] * features + feature[None, :])
    top = tl.full((tall,), -float("inf"), tl.float32)
    total = tl.zeros((tall,), tl.float32)
    result = tl.zeros((tall, features), tl.float32)
    for first in range(0, length, wide):
        column = first + tl.arange(0, wide)
        keys = tl.load(k + head + column[None, :] * features + feature[:, None])
        score = tl.dot(mine, keys) * 0.18033688  # 1 / sqrt(64) / ln 2
        higher = tl.maximum(top, tl.max(score, 1))
        weight, shrink = tl.exp2(score - higher[:, None]), tl.exp2(top - higher)
        total = total * shrink + tl.sum(weight, 1)
        values = tl.load(v + head + column[:, None] * features + feature[None, :])
        result = result * shrink[:, None] + tl.dot(weight.to(tl.float16), values)
        top = higher
    tl.store(
        out + head + row[:, None] * features + feature[None, :], (result / total[:, None]).to(tl.float16)
    )


def attention() -> tuple[dict[str, Run], Check]:
    heads, length, features = 64, 2048, 64
    q, k, v = (noise(heads, length, features, dtype=torch.half) * scale for scale in (1, 2, 1))
    out = torch.empty_like(q)

    def side(tall: int, wide: int, warps: int) -> Run:
        grid = (length // tall, heads)
        return lambda: attention_kernel[grid](
            q, k, v, out, length, tall, wide, features, num_warps=warps, num_stages=2
        )

    return {"flawed": side(16, 32, 4), "taller": side(64, 32, 4), "tallest": side(128, 64, 8)}, lambda: out


@triton.jit
def heads_apart_kernel(x, out, length, heads, features, total, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    d = at % features
    t = at // features % length
    h = at // (features * length) % heads
    b = at // (features * length * heads)
    tl.store(out + at, tl.load(x + ((b * length + t) * heads + h) * features + d, at < total), at < total)


@triton.jit
def heads_apart_tile_kernel(x, out, length, heads, features: tl.constexpr, tall: tl.constexpr):
    row, d = tl.program_id(0) * tall + tl.arange(0, tall), tl.arange(0, features)
    h, b = tl.program_id(1), tl.program_id(2)
    value = tl.load(x + ((b * length + row[:, None]) * heads + h) * features + d[None, :])
    tl.store(out + ((b * heads + h) * length + row[:, None]) * features + d[None, :], value)


def heads_apart() -> tuple[dict[str, Run], Check]:
    batch, length, heads, features = 8, 2048, 16, 64
    x = noise(batch, length, heads, features, dtype=torch.half)
    out = torch.empty(batch, heads, length, features, device="cuda", dtype=torch.half)
    n = x.numel()

    def tile(tall: int) -> Run:
        return lambda: heads_apart_tile_kernel[(length // tall, heads, batch)](
            x, out, length, heads, features, tall, num_warps=4
        )

    sides: dict[str, Run] = {
        "flawed": lambda: heads_apart_kernel[(n // 512,)](
            x, out, length, heads, features, n, 512, num_warps=4
        ),
        "grid": tile(8),
        "tile": tile(64),
    }
    return sides, lambda: out


@triton.jit
def matvec_kernel(a, x, y, columns: tl.constexpr, rows: tl.constexpr, piece: tl.constexpr):
    row, at = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, piece)
    total = tl.zeros((rows, piece), tl.float32)
    for first in range(0, columns, piece):
        left = tl.load(a + row[:, None] * columns + first + at[None, :])
        total += left.to(tl.float32) * tl.load(x + first + at)[None, :].to(tl.float32)
    tl.store(y + row, tl.sum(total, 1))


def matvec() -> tuple[dict[str, Run], Check]:
    rows, columns = 8192, 8192
    a, x, y = (
        noise(rows, columns, dtype=torch.half),
        noise(columns, dtype=torch.half),
        torch.empty(rows, device="cuda"),
    )

    def side(each: int, piece: int, warps: int) -> Run:
        return lambda: matvec_kernel[(rows // each,)](a, x, y, columns, each, piece, num_warps=warps)

    return {"flawed": side(1, 64, 1), "wider": side(1, 2048, 4), "rows": side(4, 512, 4)}, lambda: y


# --- torch: which of its kernels runs is decided by layout and type ---


def torch_select_columns() -> tuple[dict[str, Run], Check]:
    rows, columns, wanted = 16384, 4096, 1024
    x = noise(rows, columns)
    index = torch.randperm(columns, device="cuda", generator=torch.Generator("cuda").manual_seed(2))[:wanted]
    turned = x.t().contiguous()
    out, turned_out = torch.empty(rows, wanted, device="cuda"), torch.empty(wanted, rows, device="cuda")
    found = {"out": out}

    def columns_of() -> None:
        found["out"] = torch.index_select(x, 1, index, out=out)

    def rows_of() -> None:
        found["out"] = torch.index_select(turned, 0, index, out=turned_out).t()

    def result() -> torch.Tensor:
        return found["out"].contiguous()

    return {"flawed": columns_of, "stored_turned": rows_of}, result


def torch_every_fourth() -> tuple[dict[str, Run], Check]:
    n = 1 << 24
    x, out = noise(n, 4), torch.empty(n, device="cuda")
    planes = x.t().contiguous()
    sides: dict[str, Run] = {
        "flawed": lambda: torch.mul(x[:, 1], x[:, 2], out=out),
        "planes": lambda: torch.mul(planes[1], planes[2], out=out),
    }
    return sides, lambda: out


@triton.jit
def residual_kernel(x, y, out, block: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at) + tl.load(y + at))


def residual() -> tuple[dict[str, Run], Check]:
    n = 1 << 26
    x, y = noise(n, dtype=torch.half), noise(n, dtype=torch.half)
    out = torch.empty_like(x)
    return {"sound": lambda: residual_kernel[(n // 2048,)](x, y, out, 2048, num_warps=8)}, lambda: out


def torch_relu() -> tuple[dict[str, Run], Check]:
    x = noise(1 << 26, dtype=torch.half)
    out = torch.empty_like(x)
    return {"sound": lambda: torch.clamp_min(x, 0, out=out)}, lambda: out


STUDIES = (
    Study(
        "triton_norm_weight_grad_atomics",
        "gradient of a norm's gain over 16384 rows of 1024 half values in Triton",
        "a program a row adds 1024 values to the same words by atomics",
        (
            ("rows", "32 rows a program, then the atomics", ("global_atomics",)),
            ("columns", "64 columns and a 32nd of the rows a program", ("global_atomics",)),
        ),
        norm_weight_grad,
        1e-2,
    ),
    Study(
        "triton_attention_flat_tiles",
        "attention over 2048 keys of 64 half values, 64 heads, in Triton",
        "16 queries a program: keys and values are fetched for 16 rows a time",
        (
            ("taller", "64 queries a program", ("redundant_loads", "shared_memory_bandwidth")),
            (
                "tallest",
                "128 queries, 64 keys a time, eight warps",
                ("redundant_loads", "shared_memory_bandwidth"),
            ),
        ),
        attention,
        2e-2,
    ),
    Study(
        "triton_heads_apart_divisions",
        "(batch, step, head, feature) to (batch, head, step, feature), half values, in Triton",
        "the flat index is taken apart by divisions through sizes known at run time only",
        (
            (
                "grid",
                "head and batch from the grid, 8 steps a program",
                ("integer_arithmetic", "narrow_access"),
            ),
            (
                "tile",
                "head and batch from the grid, 64 steps a program",
                ("integer_arithmetic", "narrow_access"),
            ),
        ),
        heads_apart,
    ),
    Study(
        "triton_matvec_one_warp",
        "product of an 8192 x 8192 half matrix and a vector in Triton",
        "a warp a row, in pieces of 64 values: four bytes a lane and load",
        (
            (
                "wider",
                "four warps a row, pieces of 2048",
                ("narrow_access", "memory_latency", "low_occupancy"),
            ),
            (
                "rows",
                "four rows a program, pieces of 512",
                ("narrow_access", "memory_latency", "low_occupancy"),
            ),
        ),
        matvec,
    ),
    Study(
        "torch_index_select_columns",
        "torch takes 1024 of 4096 columns in random order",
        "values are picked one by one out of each row",
        (
            (
                "stored_turned",
                "the matrix stored turned: rows are taken",
                ("uncoalesced_access", "integer_arithmetic"),
            ),
        ),
        torch_select_columns,
    ),
    Study(
        "torch_product_of_fields",
        "torch multiplies two fields of records of four floats",
        "two of four fields are read, lanes 16 bytes apart",
        (("planes", "fields stored as planes", ("uncoalesced_access", "narrow_access")),),
        torch_every_fourth,
        domain="physics",
    ),
    Study("sound_triton_residual", "sum of two half tensors in Triton, 16 bytes an access", "", (), residual),
    Study("sound_torch_relu", "torch's clamp of a half tensor", "", (), torch_relu),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
