"""Studies in Triton and torch; the commands and what they print are those of main.cu.

Usage: frameworks.py list | check | time | profile [STUDY ...]
"""

import json
import random
import statistics
import sys
from collections.abc import Callable, Iterable
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
class Study:
    """One kernel with a flaw and its fixes: ``make()`` gives each side's launch and a reader of the results."""

    name: str
    about: str
    flaw: str
    fixes: tuple[tuple[str, str, tuple[str, ...]], ...]  # side, transformation, causes
    make: Callable[[], tuple[dict[str, Run], Check]]
    tolerance: float = 1e-3
    domain: str = "models"


def noise(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator(device="cuda").manual_seed(1)
    return (torch.rand(*shape, device="cuda", generator=generator) * 2 - 1).to(dtype)


# --- Triton ---


@triton.jit
def rms_pieces_kernel(x, weight, out, columns: tl.constexpr, piece: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    total = tl.zeros((piece,), tl.float32)
    for start in range(0, columns, piece):
        value = tl.load(x + row + start + tl.arange(0, piece)).to(tl.float32)
        total += value * value
    scale = tl.rsqrt(tl.sum(total, 0) / columns + 1e-6)
    for start in range(0, columns, piece):
        at = start + tl.arange(0, piece)
        value = tl.load(x + row + at).to(tl.float32)
        tl.store(out + row + at, (value * scale * tl.load(weight + at).to(tl.float32)).to(tl.float16))


@triton.jit
def rms_whole_kernel(x, weight, out, columns: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, columns)
    value = tl.load(x + row + at).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + 1e-6)
    tl.store(out + row + at, (value * scale * tl.load(weight + at).to(tl.float32)).to(tl.float16))


def rms_norm() -> tuple[dict[str, Run], Check]:
    rows, columns = 32768, 4096
    x, weight = noise(rows, columns, dtype=torch.half), noise(columns, dtype=torch.half)
    out = torch.empty_like(x)
    grid = (rows,)
    sides: dict[str, Run] = {
        "flawed": lambda: rms_pieces_kernel[grid](x, weight, out, columns, 128, num_warps=4),
        "bigger_pieces": lambda: rms_pieces_kernel[grid](x, weight, out, columns, 1024, num_warps=4),
        "whole_row": lambda: rms_whole_kernel[grid](x, weight, out, columns, num_warps=4),
    }
    return sides, lambda: out


@triton.jit
def softmax_kernel(x, out, columns: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * columns + tl.arange(0, columns)
    value = tl.load(x + at)
    value = tl.exp(value - tl.max(value, 0))
    tl.store(out + at, value / tl.sum(value, 0))


@triton.jit
def softmax_online_kernel(x, out, columns: tl.constexpr, piece: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    top = -float("inf")
    total = 0.0
    for start in range(0, columns, piece):
        value = tl.load(x + row + start + tl.arange(0, piece))
        higher = tl.maximum(top, tl.max(value, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(value - higher), 0)
        top = higher
    for start in range(0, columns, piece):
        at = row + start + tl.arange(0, piece)
        tl.store(out + at, tl.exp(tl.load(x + at) - top) / total)


def softmax() -> tuple[dict[str, Run], Check]:
    rows, columns = 8192, 16384
    x = noise(rows, columns)
    out = torch.empty_like(x)
    grid = (rows,)
    sides: dict[str, Run] = {
        "flawed": lambda: softmax_kernel[grid](x, out, columns, num_warps=1),
        "more_warps": lambda: softmax_kernel[grid](x, out, columns, num_warps=16),
        "online": lambda: softmax_online_kernel[grid](x, out, columns, 2048, num_warps=8),
    }
    return sides, lambda: out


@triton.jit
def swiglu_kernel(gate, up, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    g = tl.load(gate + at, mask=inside).to(tl.float32)
    u = tl.load(up + at, mask=inside).to(tl.float32)
    tl.store(out + at, (g * tl.sigmoid(g) * u).to(tl.float16), mask=inside)


@triton.jit
def swiglu_persistent_kernel(gate, up, out, n, block: tl.constexpr):
    for piece in range(tl.program_id(0), tl.cdiv(n, block), tl.num_programs(0)):
        at = piece * block + tl.arange(0, block)
        inside = at < n
        g = tl.load(gate + at, mask=inside).to(tl.float32)
        u = tl.load(up + at, mask=inside).to(tl.float32)
        tl.store(out + at, (g * tl.sigmoid(g) * u).to(tl.float16), mask=inside)


def swiglu() -> tuple[dict[str, Run], Check]:
    n = 1 << 25
    gate, up = noise(n, dtype=torch.half), noise(n, dtype=torch.half)
    out = torch.empty_like(gate)
    sides: dict[str, Run] = {
        "flawed": lambda: swiglu_kernel[(n // 64,)](gate, up, out, n, 64, num_warps=1),
        "bigger_blocks": lambda: swiglu_kernel[(n // 2048,)](gate, up, out, n, 2048, num_warps=4),
        "persistent": lambda: swiglu_persistent_kernel[(132 * 8,)](gate, up, out, n, 2048, num_warps=8),
    }
    return sides, lambda: out


@triton.jit
def silu_kernel(x, out, double: tl.constexpr, base_two: tl.constexpr, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at)
    if double:
        value = value.to(tl.float64)
    power = tl.exp2(value * -1.4426950408889634) if base_two else tl.exp(-value)
    tl.store(out + at, (value / (1.0 + power)).to(tl.float32))


def silu() -> tuple[dict[str, Run], Check]:
    n = 1 << 26
    x = noise(n)
    out = torch.empty_like(x)
    grid = (n // 1024,)
    sides: dict[str, Run] = {
        "flawed": lambda: silu_kernel[grid](x, out, True, False, 1024, num_warps=4),
        "single": lambda: silu_kernel[grid](x, out, False, False, 1024, num_warps=4),
        "single_base_two": lambda: silu_kernel[grid](x, out, False, True, 1024, num_warps=4),
    }
    return sides, lambda: out


@triton.jit
def column_sums_kernel(
    x, out, rows, columns, width: tl.constexpr, height: tl.constexpr, pieces: tl.constexpr
):
    column = tl.program_id(0) * width + tl.arange(0, width)
    total = tl.zeros((height, width), tl.float32)
    length = rows // pieces
    first = tl.program_id(1) * length
    for start in range(0, length, height):
        row = first + start + tl.arange(0, height)
        total += tl.load(x + row[:, None] * columns + column[None, :])
    if pieces == 1:
        tl.store(out + column, tl.sum(total, 0))
    else:
        tl.atomic_add(out + column, tl.sum(total, 0))


def column_sums() -> tuple[dict[str, Run], Check]:
    rows, columns = 16384, 4096
    x, out = noise(rows, columns) + 2, torch.zeros(columns, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: column_sums_kernel[(columns // 4, 1)](
            x, out, rows, columns, 4, 256, 1, num_warps=4
        ),
        "wide": lambda: column_sums_kernel[(columns // 32, 1)](x, out, rows, columns, 32, 64, 1, num_warps=8),
        "wide_pieces": lambda: column_sums_kernel[(columns // 128, 32)](
            x, out, rows, columns, 128, 32, 32, num_warps=8
        ),
    }
    return sides, lambda: (out.clone(), out.zero_())[0]


@triton.jit
def cross_entropy_kernel(x, target, loss, columns, piece: tl.constexpr, online: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = -float("inf")
    total = 0.0
    if online:
        for start in range(0, columns, piece):
            at = start + tl.arange(0, piece)
            value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
            higher = tl.maximum(top, tl.max(value, 0))
            total = total * tl.exp(top - higher) + tl.sum(tl.exp(value - higher), 0)
            top = higher
    else:
        for start in range(0, columns, piece):
            at = start + tl.arange(0, piece)
            value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
            top = tl.maximum(top, tl.max(value, 0))
        for start in range(0, columns, piece):
            at = start + tl.arange(0, piece)
            value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32)
            total += tl.sum(tl.exp(value - top), 0)
    right = tl.load(x + row * columns + tl.load(target + row)).to(tl.float32)
    tl.store(loss + row, tl.log(total) + top - right)


def cross_entropy() -> tuple[dict[str, Run], Check]:
    rows, columns = 4096, 50257
    x, loss = noise(rows, columns, dtype=torch.half), torch.empty(rows, device="cuda")
    target = torch.arange(rows, device="cuda", dtype=torch.int32) * 7
    grid = (rows,)

    def side(piece: int, online: bool, warps: int) -> Run:
        return lambda: cross_entropy_kernel[grid](x, target, loss, columns, piece, online, num_warps=warps)

    return {
        "flawed": side(512, False, 4),
        "online": side(512, True, 4),
        "bigger_pieces": side(8192, False, 8),
    }, lambda: loss


@triton.jit
def dequantise_kernel(packed, scale, out, block: tl.constexpr, once: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * block
    if once:
        half: tl.constexpr = block // 2
        byte = tl.load(packed + start // 2 + tl.arange(0, half)).to(tl.int32)
        nibble = tl.interleave(byte & 15, (byte >> 4) & 15)
        at = start + tl.arange(0, block)
    else:
        at = start + tl.arange(0, block)
        byte = tl.load(packed + at // 2).to(tl.int32)
        nibble = (byte >> ((at % 2) * 4).to(tl.int32)) & 15
    tl.store(out + at, ((nibble - 8).to(tl.float32) * tl.load(scale + at // 128)).to(tl.float16))


@triton.jit
def dequantise_group_kernel(packed, scale, out, groups: tl.constexpr):
    group = tl.program_id(0).to(tl.int64) * groups + tl.arange(0, groups)
    byte = tl.load(packed + group[:, None] * 64 + tl.arange(0, 64)[None, :]).to(tl.int32)
    value = (
        tl.interleave((byte & 15) - 8, ((byte >> 4) & 15) - 8).to(tl.float32)
        * tl.load(scale + group)[:, None]
    )
    tl.store(out + group[:, None] * 128 + tl.arange(0, 128)[None, :], value.to(tl.float16))


def dequantise() -> tuple[dict[str, Run], Check]:
    n = 1 << 26
    packed = torch.randint(0, 256, (n // 2,), device="cuda", dtype=torch.uint8)
    scale, out = noise(n // 128), torch.empty(n, device="cuda", dtype=torch.half)
    sides: dict[str, Run] = {
        "flawed": lambda: dequantise_kernel[(n // 1024,)](packed, scale, out, 1024, False, num_warps=4),
        "once": lambda: dequantise_kernel[(n // 4096,)](packed, scale, out, 4096, True, num_warps=4),
        "groups": lambda: dequantise_group_kernel[(n // 4096,)](packed, scale, out, 32, num_warps=4),
    }
    return sides, lambda: out


@triton.jit
def matmul_kernel(a, b, c, n, tile: tl.constexpr, depth: tl.constexpr):
    rows = tl.program_id(1) * tile + tl.arange(0, tile)
    columns = tl.program_id(0) * tile + tl.arange(0, tile)
    inner = tl.arange(0, depth)
    total = tl.zeros((tile, tile), tl.float32)
    for start in range(0, n, depth):
        left = tl.load(a + rows[:, None] * n + start + inner[None, :])
        right = tl.load(b + (start + inner[:, None]) * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16))


def matmul() -> tuple[dict[str, Run], Check]:
    n = 4096
    a, b = noise(n, n, dtype=torch.half), noise(n, n, dtype=torch.half)
    c = torch.empty_like(a)

    def side(tile: int, depth: int, warps: int, stages: int) -> Run:
        grid = (n // tile, n // tile)
        return lambda: matmul_kernel[grid](a, b, c, n, tile, depth, num_warps=warps, num_stages=stages)

    return {
        "flawed": side(64, 32, 4, 1),
        "staged": side(64, 32, 4, 4),
        "bigger_tile": side(128, 64, 8, 3),
    }, lambda: c


@triton.jit
def embedding_kernel(ids, table, out, rows: tl.constexpr, columns: tl.constexpr):
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    column = tl.arange(0, columns)
    word = tl.load(ids + row).to(tl.int64)
    value = tl.load(table + word[:, None] * columns + column[None, :])
    tl.store(out + row[:, None].to(tl.int64) * columns + column[None, :], value)


def embedding() -> tuple[dict[str, Run], Check]:
    tokens, columns = 1 << 20, 64
    ids = torch.randint(0, 100_000, (tokens,), device="cuda", dtype=torch.int32)
    table, out = noise(100_000, columns), torch.empty(tokens, columns, device="cuda")

    def side(rows: int, warps: int) -> Run:
        return lambda: embedding_kernel[(tokens // rows,)](ids, table, out, rows, columns, num_warps=warps)

    return {"flawed": side(1, 4), "one_warp": side(1, 1), "many_rows": side(32, 4)}, lambda: out


# --- torch: which of its kernels runs is decided by layout and type ---


def torch_add_transposed() -> tuple[dict[str, Run], Check]:
    n = 8192
    x, y, out = noise(n, n), noise(n, n), torch.empty(n, n, device="cuda")
    turned, halves = y.t(), y.t().contiguous()
    sides: dict[str, Run] = {
        "flawed": lambda: torch.add(x, turned, out=out),
        "stored_turned": lambda: torch.add(x, halves, out=out),
    }
    return sides, lambda: out


def torch_softmax_first_axis() -> tuple[dict[str, Run], Check]:
    x = noise(64, 4096, 256)
    last = x.transpose(1, 2).contiguous()
    found: dict[str, torch.Tensor] = {}

    def first() -> None:
        found["out"] = torch.softmax(x, 1)

    def turned() -> None:
        found["out"] = torch.softmax(last, 2).transpose(1, 2)

    return {"flawed": first, "contiguous_axis": turned}, lambda: found.get("out", x)


def torch_double_scalar() -> tuple[dict[str, Run], Check]:
    n = 1 << 25
    x, out = noise(n), torch.empty(n, device="cuda")
    double, wide = x.double(), torch.empty(n, device="cuda", dtype=torch.float64)
    found: dict[str, torch.Tensor] = {}

    def doubles() -> None:
        found["out"] = torch.special.erf(double, out=wide)

    def floats() -> None:
        found["out"] = torch.special.erf(x, out=out)

    return {"flawed": doubles, "floats": floats}, lambda: found.get("out", x)


def torch_embedding_add() -> tuple[dict[str, Run], Check]:
    tokens, words, columns = 1 << 18, 512, 128
    ids = torch.randint(0, words, (tokens,), device="cuda")
    grad = noise(tokens, columns) + 2
    out = torch.zeros(words, columns, device="cuda")
    chosen = torch.nn.functional.one_hot(ids, words).to(torch.float32).t().contiguous()
    sides: dict[str, Run] = {
        "flawed": lambda: out.index_add_(0, ids, grad),
        "product": lambda: torch.mm(chosen, grad, out=out),
    }
    return sides, lambda: (out.clone(), out.zero_())[0]


STUDIES = (
    Study(
        "triton_rms_norm_pieces",
        "RMS norm of rows of 4096 half values in Triton, a program a row",
        "pieces of 128 values, one a thread, and the row read twice",
        (
            ("bigger_pieces", "pieces of 1024: eight values a thread, still two passes", ("narrow_access",)),
            ("whole_row", "the whole row in registers: one pass", ("narrow_access", "redundant_loads")),
        ),
        rms_norm,
    ),
    Study(
        "triton_softmax_one_warp",
        "softmax of rows of 16384 floats in Triton, a program a row",
        "one warp holds the whole row: 512 values a thread do not fit in registers",
        (
            ("more_warps", "16 warps a program", ("local_memory",)),
            ("online", "pieces of 2048 with a running maximum, two passes", ("local_memory",)),
        ),
        softmax,
    ),
    Study(
        "triton_swiglu_tiny_blocks",
        "SwiGLU of half values in Triton",
        "programs of one warp and 64 values",
        (
            ("bigger_blocks", "2048 values a program", ("narrow_access", "low_occupancy")),
            ("persistent", "eight programs a multiprocessor in a loop", ("narrow_access", "low_occupancy")),
        ),
        swiglu,
    ),
    Study(
        "triton_silu_double",
        "SiLU of floats in Triton",
        "computed in double precision",
        (
            ("single", "single precision", ("double_precision",)),
            ("single_base_two", "single precision, base-2 exponential", ("double_precision",)),
        ),
        silu,
    ),
    Study(
        "triton_column_sums_narrow",
        "sums of the columns of 16384 x 4096 floats in Triton",
        "four columns a program: rows are touched in pieces of 16 bytes",
        (
            ("wide", "32 columns a program", ("uncoalesced_access",)),
            (
                "wide_pieces",
                "128 columns and a 32nd of the rows a program, atomics",
                ("uncoalesced_access", "small_grid"),
            ),
        ),
        column_sums,
    ),
    Study(
        "triton_cross_entropy_passes",
        "cross entropy over 50257 classes in half precision in Triton",
        "two passes over the row in pieces of 512",
        (
            ("online", "one pass with a running maximum", ("redundant_loads",)),
            ("bigger_pieces", "two passes in pieces of 8192", ("memory_latency",)),
        ),
        cross_entropy,
    ),
    Study(
        "triton_dequantise_nibbles",
        "4-bit weights to half in Triton, a scale for 128 weights",
        "every byte is loaded for each of its two weights, the scale for every weight",
        (
            ("once", "bytes loaded once, weights interleaved", ("narrow_access", "redundant_loads")),
            ("groups", "a row a group: bytes and scale loaded once", ("narrow_access", "redundant_loads")),
        ),
        dequantise,
    ),
    Study(
        "triton_matmul_one_stage",
        "product of 4096 x 4096 half matrices in Triton, tiles of 64",
        "a single stage: no tile is fetched while another is used",
        (
            ("staged", "four stages", ("memory_latency",)),
            (
                "bigger_tile",
                "tiles of 128, depth 64, three stages",
                ("memory_latency", "shared_memory_bandwidth"),
            ),
        ),
        matmul,
        1e-2,
    ),
    Study(
        "triton_embedding_row_each",
        "embedding look-up of rows of 64 floats in Triton",
        "a program of four warps for a row of 64 floats: warps do the same twice",
        (
            ("one_warp", "one warp a program", ("low_occupancy", "redundant_loads")),
            ("many_rows", "32 rows a program", ("low_occupancy", "redundant_loads")),
        ),
        embedding,
    ),
    Study(
        "torch_add_transposed",
        "torch adds a transposed matrix to one that is not",
        "one operand is read across its rows",
        (("stored_turned", "operand stored transposed", ("uncoalesced_access",)),),
        torch_add_transposed,
    ),
    Study(
        "torch_softmax_inner_axis",
        "torch's softmax along an axis that is not the last",
        "4096 values 1 KiB apart, 256 of them side by side",
        (("contiguous_axis", "data stored with that axis last", ("cache_locality",)),),
        torch_softmax_first_axis,
    ),
    Study(
        "torch_erf_double",
        "torch's erf of a tensor that became double by accident",
        "double precision for single-precision data",
        (("floats", "a float tensor", ("double_precision",)),),
        torch_double_scalar,
    ),
    Study(
        "torch_index_add_few_rows",
        "gradient of an embedding of 512 words by torch's index_add_",
        "an atomic a value on few rows",
        (("product", "product with the one-hot matrix made beforehand", ("global_atomics",)),),
        torch_embedding_add,
        1e-2,
    ),
)


def listing(studies: Iterable[Study]) -> list[dict[str, object]]:
    return [
        {
            "family": s.name, "kernel": s.name, "file": "frameworks", "sizes": [1], "domain": s.domain,
            "about": s.about, "flaw": s.flaw,
            "rows": [
                {"from": "flawed", "to": side, "kind": "real", "causes": list(causes), "transformation": words}
                for side, words, causes in s.fixes
            ] or [{"from": "sound", "to": "", "kind": "near_optimal", "causes": []}],
        }
        for s in studies
    ]  # fmt: skip


def show(record: dict[str, object]) -> None:
    print(json.dumps(record), flush=True)


def errors(study: Study, sides: dict[str, Run], check: Check) -> dict[str, float]:
    """The largest difference of each side's results to the flawed one's, as a share of the largest value."""
    results = {}
    for side, run in sides.items():
        check()  # zeroes what kernels add to
        run()
        results[side] = check().double().clone()
    first = next(iter(results.values()))
    return {side: float((found - first).abs().max() / first.abs().max()) for side, found in results.items()}


def check_study(study: Study) -> None:
    sides, check = study.make()
    for side, error in errors(study, sides, check).items():
        show({"family": study.name, "side": side, "error": error, "agrees": error <= study.tolerance})


def time_study(study: Study) -> None:
    """Time all sides in random turns with a cold L2."""
    sides, check = study.make()
    found = errors(study, sides, check)
    flush = torch.zeros(FLUSH_BYTES // 4, device="cuda")
    times: dict[str, list[float]] = {side: [] for side in sides}
    turns, shuffled = list(sides), random.Random(1)
    for _ in range(REPETITIONS):
        shuffled.shuffle(turns)
        for side in turns:
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            check()
            flush.sum()
            torch.cuda._sleep(SPIN_CYCLES)
            start.record()
            sides[side]()
            stop.record()
            torch.cuda.synchronize()
            times[side].append(start.elapsed_time(stop) * 1e6)
    for side, taken in times.items():
        quarters = statistics.quantiles(taken, n=4)
        record = {"family": study.name, "size": 1, "side": side, "time_ns": quarters[1]}
        record |= {"spread": (quarters[2] - quarters[0]) / quarters[1], "repetitions": REPETITIONS}
        show(record | {"error": found[side], "agrees": found[side] <= study.tolerance})


def profile_study(study: Study) -> None:
    """Launch each side once between the profiler's start and stop (each was compiled by a launch before)."""
    sides, _ = study.make()
    for side, run in sides.items():
        run()
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStart()
        run()
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStop()
        show({"family": study.name, "size": 1, "side": side})


def main(studies: Iterable[Study] = STUDIES) -> int:
    """Run one of the four commands on these studies."""
    commands = {"check": check_study, "time": time_study, "profile": profile_study}
    if len(sys.argv) < 2 or sys.argv[1] not in ("list", *commands):
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1] == "list":
        for record in listing(studies):
            show(record)
        return 0
    failed = 0
    for study in sorted(studies, key=lambda one: one.name):
        if len(sys.argv) == 2 or study.name in sys.argv[2:]:
            try:
                commands[sys.argv[1]](study)
            except Exception as error:  # the others are still worth running
                print(f"{study.name}: {error}", file=sys.stderr)
                failed = 1
            torch.cuda.empty_cache()
    return failed


if __name__ == "__main__":
    sys.exit(main())
