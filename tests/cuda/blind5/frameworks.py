"""Studies in Triton and torch, run by what tests/cuda/variants/frameworks.py provides.

Usage: frameworks.py list | check | time | profile [STUDY ...]
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

# --- Triton ---


@triton.jit
def matmul_kernel(
    a, b, c, m, n, k, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr, group: tl.constexpr
):
    program, across = tl.program_id(0), n // wide
    if group > 1:
        first = program // (group * across) * group
        row_block, column_block = first + program % group, program % (group * across) // group
    else:
        row_block, column_block = program // across, program % across
    row, column = row_block * tall + tl.arange(0, tall), column_block * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    total = tl.zeros((tall, wide), tl.float32)
    for start in range(0, k, deep):
        left = tl.load(a + row[:, None] * k + start + inner[None, :])
        right = tl.load(b + (start + inner)[:, None] * n + column[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + row[:, None] * n + column[None, :], total.to(tl.float16))


def matmul() -> tuple[dict[str, Run], Check]:
    m, n, k = 8192, 8192, 1024
    a, b = noise(m, k, dtype=torch.half), noise(k, n, dtype=torch.half)
    c = torch.empty(m, n, device="cuda", dtype=torch.half)

    def side(group: int) -> Run:
        return lambda: matmul_kernel[(m // 128 * (n // 128),)](
            a, b, c, m, n, k, 128, 128, 64, group, num_warps=8, num_stages=3
        )

    return {"flawed": side(1), "groups": side(8)}, lambda: c


@triton.jit
def int8_weights_kernel(
    x, w, scale, out, n, k, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr, inside: tl.constexpr
):
    row, column = (
        tl.program_id(1) * tall + tl.arange(0, tall),
        tl.program_id(0) * wide + tl.arange(0, wide),
    )
    inner = tl.arange(0, deep)
    factor = tl.load(scale + column)
    total = tl.zeros((tall, wide), tl.float32)
    for start in range(0, k, deep):
        left = tl.load(x + row[:, None] * k + start + inner[None, :])
        right = tl.load(w + (start + inner)[:, None] * n + column[None, :])
        if inside:
            right = right.to(tl.float32) * factor[None, :]
        total = tl.dot(left, right.to(tl.float16), total)
    if not inside:
        total = total * factor[None, :]
    tl.store(out + row[:, None] * n + column[None, :], total)


def int8_weights() -> tuple[dict[str, Run], Check]:
    m, n, k = 1024, 8192, 4096
    x = noise(m, k, dtype=torch.half)
    w = (noise(k, n) * 127).to(torch.int8)
    scale, out = noise(n).abs() + 0.5, torch.empty(m, n, device="cuda")

    def side(inside: bool, warps: int) -> Run:
        return lambda: int8_weights_kernel[(n // 128, m // 128)](
            x, w, scale, out, n, k, 128, 128, 64, inside, num_warps=warps, num_stages=3
        )

    return {"flawed": side(True, 8), "after": side(False, 8)}, lambda: out


@triton.jit
def group_scales_kernel(x, codes, scales, groups: tl.constexpr):
    group = tl.program_id(0) * groups + tl.arange(0, groups)
    at = group[:, None] * 128 + tl.arange(0, 128)[None, :]
    value = tl.load(x + at).to(tl.float32)
    scale = tl.max(tl.abs(value), 1) / 127.0 + 1e-8
    tl.store(codes + at, tl.floor(value / scale[:, None] + 0.5).to(tl.int8))
    tl.store(scales + group, scale)


def group_scales() -> tuple[dict[str, Run], Check]:
    n = 1 << 25
    x = noise(n, dtype=torch.half)
    codes = torch.empty(n, device="cuda", dtype=torch.int8)
    scales = torch.empty(n // 128, device="cuda")

    def side(groups: int, warps: int) -> Run:
        return lambda: group_scales_kernel[(n // 128 // groups,)](x, codes, scales, groups, num_warps=warps)

    return {"flawed": side(1, 4), "one_warp": side(4, 1), "many": side(32, 4)}, lambda: codes


@triton.jit
def segment_atomics_kernel(x, segments, out, width: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, width)
    tl.atomic_add(out + tl.load(segments + row) * width + column, tl.load(x + row * width + column))


@triton.jit
def segment_rows_kernel(x, starts, out, width: tl.constexpr):
    segment, column = tl.program_id(0), tl.arange(0, width)
    total = tl.zeros((width,), tl.float32)
    for row in range(tl.load(starts + segment), tl.load(starts + segment + 1)):
        total += tl.load(x + row * width + column)
    tl.store(out + segment * width + column, total)


def segment_sums() -> tuple[dict[str, Run], Check]:
    rows, width, count = 131072, 256, 8192
    x = noise(rows, width)
    segments = (noise(rows).abs() * count).to(torch.int32).clamp(max=count - 1).sort().values
    starts = torch.searchsorted(segments, torch.arange(count + 1, device="cuda", dtype=torch.int32)).int()
    out = torch.zeros(count, width, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: segment_atomics_kernel[(rows,)](x, segments, out, width, num_warps=4),
        "rows": lambda: segment_rows_kernel[(count,)](x, starts, out, width, num_warps=2),
    }
    return sides, lambda: (out.clone(), out.zero_())[0]


@triton.jit
def depthwise_flat_kernel(x, weights, out, channels, height, width, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    column, row = at % width, at // width % height
    channel = at // (width * height) % channels
    total = tl.zeros((block,), tl.float32)
    for i in range(3):
        for j in range(3):
            inside = (row + i >= 1) & (row + i <= height) & (column + j >= 1) & (column + j <= width)
            value = tl.load(x + at + (i - 1) * width + j - 1, inside, 0.0).to(tl.float32)
            total += value * tl.load(weights + channel * 9 + i * 3 + j)
    tl.store(out + at, total.to(tl.float16))


@triton.jit
def depthwise_plane_kernel(x, weights, out, channels, height, tall: tl.constexpr, width: tl.constexpr):
    plane = tl.program_id(1)
    row, column = tl.program_id(0) * tall + tl.arange(0, tall), tl.arange(0, width)
    at = plane * height * width + row[:, None] * width + column[None, :]
    total = tl.zeros((tall, width), tl.float32)
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            inside = ((row + i >= 1) & (row + i <= height))[:, None] & (
                (column + j >= 1) & (column + j <= width)
            )[None, :]
            value = tl.load(x + at + (i - 1) * width + j - 1, inside, 0.0).to(tl.float32)
            total += value * tl.load(weights + plane % channels * 9 + i * 3 + j)
    tl.store(out + at, total.to(tl.float16))


def depthwise() -> tuple[dict[str, Run], Check]:
    batch, channels, height, width = 32, 192, 64, 64
    x = noise(batch, channels, height, width, dtype=torch.half)
    weights, out = noise(channels, 9), torch.empty_like(x)
    sides: dict[str, Run] = {
        "flawed": lambda: depthwise_flat_kernel[(x.numel() // 1024,)](
            x, weights, out, channels, height, width, 1024, num_warps=4
        ),
        "planes": lambda: depthwise_plane_kernel[(height // 32, batch * channels)](
            x, weights, out, channels, height, 32, width, num_warps=4
        ),
    }
    return sides, lambda: out


@triton.jit
def squared_gate_kernel(x, y, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.maximum(tl.load(x + at).to(tl.float32), 0.0)
    tl.store(out + at, (value * value * tl.load(y + at).to(tl.float32)).to(tl.float16))


def squared_gate() -> tuple[dict[str, Run], Check]:
    n = 1 << 26
    x, y = noise(n, dtype=torch.half), noise(n, dtype=torch.half)
    out = torch.empty_like(x)
    return {"sound": lambda: squared_gate_kernel[(n // 4096,)](x, y, out, 4096, num_warps=8)}, lambda: out


# --- torch: compiled, or its own kernels, of which layout and type choose one ---


def normed_over_channels(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    mean = x.mean(1, keepdim=True)
    variance = (x - mean).square().mean(1, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-6) * gain[None, :, None, None]


def torch_channel_norm() -> tuple[dict[str, Run], Check]:
    x, gain = noise(32, 256, 56, 56), noise(256) + 2
    last = x.contiguous(memory_format=torch.channels_last)
    found = {"out": x}
    compiled = torch.compile(normed_over_channels, dynamic=False)  # once for each layout

    def channels_first() -> None:
        found["out"] = compiled(x, gain)

    def channels_last() -> None:
        found["out"] = compiled(last, gain)

    def result() -> torch.Tensor:
        return found["out"].contiguous()

    return {"flawed": channels_first, "channels_last": channels_last}, result


def torch_bias() -> tuple[dict[str, Run], Check]:
    x, bias = noise(64, 256, 4096, dtype=torch.half), noise(256, dtype=torch.half)
    out = torch.empty_like(x)
    found = {"out": out}
    compiled = torch.compile(lambda a, b: a + b[None, :, None], dynamic=False)

    def eager() -> None:
        found["out"] = torch.add(x, bias[None, :, None], out=out)

    def fused() -> None:
        found["out"] = compiled(x, bias)

    return {"flawed": eager, "compiled": fused}, lambda: found["out"]


def torch_gather_rows() -> tuple[dict[str, Run], Check]:
    table, out = noise(50000, 256), torch.empty(131072, 256, device="cuda")
    index = (noise(131072).abs() * 50000).long().clamp(max=49999)
    expanded = index[:, None].expand(-1, 256)
    sides: dict[str, Run] = {
        "flawed": lambda: torch.gather(table, 0, expanded, out=out),
        "rows": lambda: torch.index_select(table, 0, index, out=out),
    }
    return sides, lambda: out


def torch_repeat_heads() -> tuple[dict[str, Run], Check]:
    batch, heads, times, steps, features = 8, 8, 4, 4096, 128
    keys = noise(batch, heads, steps, features, dtype=torch.half)
    out = torch.empty(batch, heads, times, steps, features, device="cuda", dtype=torch.half)
    four, four_out = keys.view(torch.int64), out.view(torch.int64)
    sides: dict[str, Run] = {
        "flawed": lambda: out.copy_(keys[:, :, None].expand_as(out)),
        "by_eight_bytes": lambda: four_out.copy_(four[:, :, None].expand_as(four_out)),
    }
    return sides, lambda: out.flatten()[::7]


def torch_running_sums() -> tuple[dict[str, Run], Check]:
    x = noise(16384, 2048)
    turned = x.t().contiguous()
    out, turned_out = torch.empty_like(x), torch.empty_like(turned)
    found = {"out": out}

    def down() -> None:
        found["out"] = torch.cumsum(x, 0, out=out)

    def along() -> None:
        found["out"] = torch.cumsum(turned, 1, out=turned_out).t()

    def result() -> torch.Tensor:
        return found["out"].contiguous()

    return {"flawed": down, "stored_turned": along}, result


def torch_gated() -> tuple[dict[str, Run], Check]:
    x, y = noise(1 << 25), noise(1 << 25)
    found = {"out": x}
    compiled = torch.compile(lambda a, b: torch.nn.functional.silu(a) * b, dynamic=False)

    def gated() -> None:
        found["out"] = compiled(x, y)

    return {"sound": gated}, lambda: found["out"]


STUDIES = (
    Study(
        "triton_matmul_programs_by_rows",
        "product of half matrices in Triton, 8192 x 8192 of depth 1024",
        "programs follow the result's rows: those that run together share one block of rows and all columns",
        (("groups", "programs in groups of eight blocks of rows", ("cache_locality",)),),
        matmul,
        1e-2,
    ),
    Study(
        "triton_int8_weights_scaled_in_the_loop",
        "1024 rows of 4096 half values times int8 weights for 8192 outputs, a scale an output, in Triton",
        "weights become float, are scaled and become half in every step",
        (("after", "weights become half, sums are scaled at the end", ("expensive_math",)),),
        int8_weights,
        2e-2,
    ),
    Study(
        "triton_scales_group_a_program",
        "int8 codes of 33554432 half values, a scale for 128, in Triton",
        "a program of four warps takes 128 values",
        (
            ("one_warp", "four groups a program of one warp", ("narrow_access", "barriers")),
            ("many", "32 groups a program of four warps", ("narrow_access", "barriers")),
        ),
        group_scales,
        2e-2,
    ),
    Study(
        "triton_segment_sums_row_atomics",
        "131072 rows of 256 floats summed by 8192 sorted segments in Triton",
        "a program a row adds its values to the segment's sum by atomics",
        (("rows", "a program a segment walks its rows", ("global_atomics",)),),
        segment_sums,
        domain="graphs",
    ),
    Study(
        "triton_depthwise_flat_index",
        "3 x 3 depthwise convolution of half planes of 64 x 64 in Triton",
        "row, column and channel of each value by divisions, a weight for each value and tap",
        (
            (
                "planes",
                "32 rows of a plane a program",
                ("integer_arithmetic", "redundant_loads", "narrow_access"),
            ),
        ),
        depthwise,
        2e-3,
        domain="images",
    ),
    Study(
        "sound_triton_squared_gate",
        "square of the positive part times a gate, half values, in Triton",
        "",
        (),
        squared_gate,
    ),
    Study(
        "torch_compiled_norm_over_channels",
        "norm over the 256 channels of 32 images of 56 x 56, compiled by torch",
        "channels lie 12544 bytes apart: what is normed together is far apart",
        (("channels_last", "images stored channels last", ("uncoalesced_access", "redundant_loads")),),
        torch_channel_norm,
        domain="images",
    ),
    Study(
        "torch_bias_of_middle_axis",
        "torch adds a bias a channel to a half tensor of 64 x 256 x 4096",
        "the broadcast sends it to the kernel that finds each value's place by divisions",
        (("compiled", "compiled by torch", ("integer_arithmetic", "narrow_access")),),
        torch_bias,
    ),
    Study(
        "torch_gather_expanded_index",
        "131072 rows of 256 floats gathered by torch.gather with an expanded index",
        "the row's index is read, and its place computed, for each value",
        (("rows", "index_select: rows", ("integer_arithmetic", "redundant_loads")),),
        torch_gather_rows,
    ),
    Study(
        "torch_repeat_heads_by_half",
        "torch repeats eight key heads four times, half values",
        "an expanded tensor is copied value by value",
        (
            (
                "by_eight_bytes",
                "the same copy of a view of 8-byte values",
                ("narrow_access", "integer_arithmetic"),
            ),
        ),
        torch_repeat_heads,
    ),
    Study(
        "torch_running_sums_down",
        "torch's running sums down 2048 columns of 16384 rows",
        "a thread walks a column: 2048 threads for the whole GPU",
        (("stored_turned", "stored turned: sums along the rows", ("small_grid", "memory_latency")),),
        torch_running_sums,
        2e-3,
    ),
    Study(
        "sound_torch_compiled_gate",
        "SiLU of one float tensor times another, compiled by torch",
        "",
        (),
        torch_gated,
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
