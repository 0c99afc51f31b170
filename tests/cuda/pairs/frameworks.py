"""Pairs of Triton's and torch's kernels; the commands and what they print are those of main.cu.

Usage: frameworks.py list | time [FAMILY[=SIZE] ...] | profile [FAMILY[=SIZE] ...]
"""

import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

REPETITIONS = 21
FLUSH_BYTES = 256 << 20  # several times the L2 of any GPU of today
SPIN_CYCLES = 500_000  # keeps the GPU busy while the host queues the launch to be timed

Run = Callable[[], object]  # launches one kernel
Check = Callable[[], object]  # the results as one tensor


@dataclass(frozen=True)
class Family:
    """One kernel with a flaw and without: ``make(size)`` gives both sides' launches and a reader of the results."""

    name: str
    kernel: str
    sizes: tuple[int, ...]
    cause: str
    kind: str
    make: Callable[[int], tuple[Run, Run, Check]]
    tolerance: float = 1e-4


def noise(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator(device="cuda").manual_seed(1)
    return torch.rand(*shape, device="cuda", generator=generator).to(dtype)


# --- Triton ---


@triton.jit
def softmax_kernel(x, out, columns: tl.constexpr, double: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, columns)
    value = tl.load(x + row * columns + offsets)
    if double:
        value = value.to(tl.float64)
    value = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + offsets, (value / tl.sum(value, 0)).to(tl.float32))


def softmax(rows: int) -> tuple[Run, Run, Check]:
    x, out = noise(rows, 2048), torch.empty(rows, 2048, device="cuda")
    sides = [lambda d=d: softmax_kernel[(rows,)](x, out, 2048, d, num_warps=8) for d in (True, False)]
    return sides[0], sides[1], lambda: out


@triton.jit
def row_sums_kernel(x, out, columns, rows_each: tl.constexpr, wide: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * rows_each + tl.arange(0, rows_each)
    total = tl.zeros((rows_each,), tl.float32)
    if wide:
        part = tl.zeros((rows_each, 32), tl.float32)
        for start in range(0, columns, 32):
            part += tl.load(x + rows[:, None] * columns + start + tl.arange(0, 32)[None, :])
        total = tl.sum(part, 1)
    else:
        for column in range(0, columns):
            total += tl.load(x + rows * columns + column)
    tl.store(out + rows, total)


def row_sums(rows: int) -> tuple[Run, Run, Check]:
    x, out = noise(rows, 512), torch.empty(rows, device="cuda")
    sides = [
        lambda w=w: row_sums_kernel[(rows // 128,)](x, out, 512, 128, w, num_warps=4) for w in (False, True)
    ]
    return sides[0], sides[1], lambda: out


@triton.jit
def matmul_kernel(a, b, c, n, tile: tl.constexpr, depth: tl.constexpr, precision: tl.constexpr):
    rows = tl.program_id(1) * tile + tl.arange(0, tile)
    columns = tl.program_id(0) * tile + tl.arange(0, tile)
    inner = tl.arange(0, depth)
    total = tl.zeros((tile, tile), tl.float32)
    for start in range(0, n, depth):
        left = tl.load(a + rows[:, None] * n + start + inner[None, :])
        right = tl.load(b + (start + inner[:, None]) * n + columns[None, :])
        total = tl.dot(left, right, total, input_precision=precision)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


def matmul(n: int) -> tuple[Run, Run, Check]:
    a, b, c = noise(n, n), noise(n, n), torch.empty(n, n, device="cuda")
    grid = (n // 64, n // 64)
    sides = [lambda p=p: matmul_kernel[grid](a, b, c, n, 64, 32, p, num_warps=4) for p in ("ieee", "tf32")]
    return sides[0], sides[1], lambda: c


@triton.jit
def histogram_kernel(x, counts, each: tl.constexpr, straight: tl.constexpr):
    offsets = tl.program_id(0) * each + tl.arange(0, each)
    value = tl.load(x + offsets)
    if straight:
        tl.atomic_add(counts + value, 1)
    else:
        tl.atomic_add(counts + tl.arange(0, 256), tl.histogram(value, 256))


def histogram(n: int) -> tuple[Run, Run, Check]:
    x, counts = (noise(n) * 256).to(torch.int32), torch.zeros(256, device="cuda", dtype=torch.int32)
    sides = [
        lambda s=s: histogram_kernel[(n // 4096,)](x, counts, 4096, s, num_warps=8) for s in (True, False)
    ]
    return sides[0], sides[1], lambda: (counts.clone(), counts.zero_())[0]


@triton.jit
def shift_kernel(x, out, width, height, each: tl.constexpr, divided: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * each + tl.arange(0, each)
    if divided:
        column = offsets % width
        row = (offsets // width) % height
        image = offsets // (width * height)
        source = (image * height + row) * width + (column + 1) % width
    else:
        # A program has a row of its own: the column alone wraps.
        source = tl.program_id(0).to(tl.int64) * each + (tl.arange(0, each) + 1) % each
    tl.store(out + offsets, tl.load(x + source))


def shift(rows: int) -> tuple[Run, Run, Check]:
    x, out = noise(rows, 1024), torch.empty(rows, 1024, device="cuda")
    sides = [lambda d=d: shift_kernel[(rows,)](x, out, 1024, 8, 1024, d, num_warps=4) for d in (True, False)]
    return sides[0], sides[1], lambda: out


@triton.jit
def bytes_kernel(x, out, each: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * each + tl.arange(0, each)
    tl.store(out + offsets, tl.load(x + offsets) + 1)


def add_bytes(n: int) -> tuple[Run, Run, Check]:
    x, out = (noise(n) * 100).to(torch.int8), torch.empty(n, device="cuda", dtype=torch.int8)
    sides = [lambda e=e: bytes_kernel[(n // e,)](x, out, e, num_warps=4) for e in (128, 2048)]
    return sides[0], sides[1], lambda: out


@triton.jit
def norms_kernel(x, out, columns, each: tl.constexpr, pieces: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    piece = tl.program_id(1)
    length = columns // pieces
    total = tl.zeros((each,), tl.float32)
    for start in range(0, length, each):
        value = tl.load(x + row * columns + piece * length + start + tl.arange(0, each))
        total += value * value
    tl.atomic_add(out + row, tl.sum(total, 0))


def long_norms(rows: int) -> tuple[Run, Run, Check]:
    x, out = noise(rows, 1 << 18), torch.zeros(rows, device="cuda")
    sides = [lambda p=p: norms_kernel[(rows, p)](x, out, 1 << 18, 1024, p, num_warps=4) for p in (1, 64)]
    return sides[0], sides[1], lambda: (out.clone(), out.zero_())[0]


# --- torch ---


def add_transposed(n: int) -> tuple[Run, Run, Check]:
    x, y, out = noise(n, n), noise(n, n), torch.empty(n, n, device="cuda")
    flipped = y.t().contiguous()
    return (lambda: torch.add(x, y.t(), out=out)), (lambda: torch.add(x, flipped, out=out)), lambda: out


def select_rows(count: int) -> tuple[Run, Run, Check]:
    table, out = noise(1 << 20, 64), torch.empty(count, 64, device="cuda")
    near = torch.arange(count, device="cuda") // 16
    shuffled = near[torch.randperm(count, device="cuda", generator=torch.Generator("cuda").manual_seed(2))]
    sides = [lambda i=i: torch.index_select(table, 0, i, out=out) for i in (shuffled, near)]
    return sides[0], sides[1], lambda: out.double().sum(0)


def copy_offset(n: int) -> tuple[Run, Run, Check]:
    x, out = noise(n + 1), torch.empty(n, device="cuda")
    aligned = x[1:].clone()
    return (lambda: torch.neg(x[1:], out=out)), (lambda: torch.neg(aligned, out=out)), lambda: out


FAMILIES = [
    Family("triton_softmax_double", "softmax", (2048, 16384), "double_precision", "real", softmax),
    Family("triton_row_sums", "matvec", (16384, 131072), "uncoalesced_access", "real", row_sums),
    Family("triton_matmul_ieee", "gemm", (1024, 2048), "tensor_cores_idle", "real", matmul, 5e-3),
    Family("triton_histogram", "histogram", (1 << 20, 1 << 24), "global_atomics", "real", histogram),
    Family("triton_shift_divided", "patches", (16384, 131072), "integer_arithmetic", "real", shift),
    Family("triton_bytes", "copy", (1 << 24, 1 << 27), "narrow_access", "real", add_bytes),
    Family("triton_long_norms", "norm", (16, 64), "small_grid", "real", long_norms),
    Family("torch_add_transposed", "transpose", (2048, 8192), "uncoalesced_access", "real", add_transposed),
    Family(
        "torch_select_shuffled",
        "embedding",
        (1 << 20, 1 << 22),
        "cache_locality",
        "behind_limit",
        select_rows,
    ),
    Family("torch_neg_offset", "scale", (1 << 22, 1 << 26), "narrow_access", "behind_limit", copy_offset),
]


def listing() -> list[dict[str, object]]:
    """What ``list`` prints."""
    return [
        {
            "family": f.name,
            "kernel": f.kernel,
            "file": "frameworks",
            "sizes": list(f.sizes),
            "rows": [{"from": "flawed", "to": "mended", "kind": f.kind, "causes": [f.cause]}],
        }
        for f in FAMILIES
    ]


def show(record: dict[str, object]) -> None:
    print(json.dumps(record), flush=True)


def time_family(family: Family, size: int) -> None:
    """Verify that both sides agree, then time them in turns with a cold L2."""
    flawed, mended, check = family.make(size)
    results = []
    for run in (flawed, mended):
        check()  # zeroes what kernels add to
        run()
        results.append(check().double().clone())
    error = float((results[0] - results[1]).abs().max() / results[0].abs().max())
    flush = torch.zeros(FLUSH_BYTES // 4, device="cuda")
    times: dict[str, list[float]] = {"flawed": [], "mended": []}
    for repetition in range(REPETITIONS):
        order = [("flawed", flawed), ("mended", mended)]
        for side, run in order if repetition % 2 else reversed(order):
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            flush.sum()
            torch.cuda._sleep(SPIN_CYCLES)
            start.record()
            run()
            stop.record()
            torch.cuda.synchronize()
            times[side].append(start.elapsed_time(stop) * 1e6)
    for side, found in times.items():
        quarters = statistics.quantiles(found, n=4)
        record = {"family": family.name, "size": size, "side": side, "time_ns": quarters[1]}
        record |= {
            "spread": (quarters[2] - quarters[0]) / quarters[1],
            "repetitions": REPETITIONS,
            "launches": 1,
        }
        show(record | {"amount": 0, "error": error, "agrees": error <= family.tolerance})


def profile_family(family: Family, size: int) -> None:
    """Launch either side once between the profiler's start and stop (each was compiled by a launch before)."""
    flawed, mended, _ = family.make(size)
    for side, run in (("flawed", flawed), ("mended", mended)):
        run()
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStart()
        run()
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStop()
        show({"family": family.name, "size": size, "side": side})


def main() -> int:
    """Run one of the three commands."""
    if len(sys.argv) < 2 or sys.argv[1] not in ("list", "time", "profile"):
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1] == "list":
        for record in listing():
            show(record)
        return 0
    act = time_family if sys.argv[1] == "time" else profile_family
    failed = 0
    for family in FAMILIES:
        for size in family.sizes:
            if len(sys.argv) == 2 or {family.name, f"{family.name}={size}"} & set(sys.argv[2:]):
                try:
                    act(family, size)
                except (RuntimeError, TypeError, ValueError) as error:
                    print(f"{family.name} {size}: {error}", file=sys.stderr)
                    failed = 1
                torch.cuda.empty_cache()
    return failed


if __name__ == "__main__":
    sys.exit(main())
