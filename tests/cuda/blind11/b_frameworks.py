"""Studies in Triton and torch, run by what tests/cuda/variants/frameworks.py provides.

Usage: b_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise


@triton.jit
def nearest_centre_kernel(
    x, centres, out, count, number, width: tl.constexpr,
    tile: tl.constexpr, centre_tile: tl.constexpr, piece: tl.constexpr,
):  # fmt: skip
    """Squared distance to the nearest centre, differences first."""
    row = tl.program_id(0) * tile + tl.arange(0, tile)
    best = tl.full((tile,), float("inf"), tl.float32)
    for first in range(0, number, centre_tile):
        centre = first + tl.arange(0, centre_tile)
        distance = tl.zeros((tile, centre_tile), tl.float32)
        for start in range(0, width, piece):
            axis = start + tl.arange(0, piece)
            a = tl.load(x + row[:, None] * width + axis[None, :], mask=row[:, None] < count, other=0.0)
            b = tl.load(centres + centre[:, None] * width + axis[None, :])
            off = a.to(tl.float32)[:, None, :] - b.to(tl.float32)[None, :, :]
            distance += tl.sum(off * off, 2)
        best = tl.minimum(best, tl.min(distance, 1))
    tl.store(out + row, best, mask=row < count)


@triton.jit
def nearest_centre_product_kernel(
    x, centres, norms, out, count, number, width: tl.constexpr, tile: tl.constexpr, centre_tile: tl.constexpr
):
    """The same from products and squared lengths."""
    row, axis = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, width)
    a = tl.load(x + row[:, None] * width + axis[None, :], mask=row[:, None] < count, other=0.0)
    best = tl.full((tile,), float("inf"), tl.float32)
    for first in range(0, number, centre_tile):
        centre = first + tl.arange(0, centre_tile)
        b = tl.load(centres + centre[:, None] * width + axis[None, :])
        part = tl.load(norms + centre)[None, :] - 2.0 * tl.dot(a, tl.trans(b))
        best = tl.minimum(best, tl.min(part, 1))
    length = tl.sum(a.to(tl.float32) * a.to(tl.float32), 1)
    tl.store(out + row, best + length, mask=row < count)


def nearest_centres() -> tuple[dict[str, Run], Check]:
    count, number, width = 65536, 256, 64
    x, centres = noise(count, width, dtype=torch.half), -noise(number, width, dtype=torch.half)
    norms = centres.float().square().sum(1)
    out = torch.zeros(count, device="cuda")

    def product(tile: int, centre_tile: int, warps: int) -> Run:
        return lambda: nearest_centre_product_kernel[(triton.cdiv(count, tile),)](
            x, centres, norms, out, count, number, width, tile, centre_tile, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": lambda: nearest_centre_kernel[(triton.cdiv(count, 32),)](
            x, centres, out, count, number, width, 32, 32, 16, num_warps=4
        ),
        "product": product(64, 64, 4),
        "bigger_product": product(128, 128, 8),
    }
    return sides, lambda: out


@triton.jit
def volatility_kernel(prices, out, assets, days, pitch, tile: tl.constexpr, piece: tl.constexpr):
    """Variance of the daily logarithmic returns of ``tile`` assets, ``piece`` days at a time."""
    asset = tl.program_id(0) * tile + tl.arange(0, tile)
    first = tl.zeros((tile, piece), tl.float32)
    second = tl.zeros((tile, piece), tl.float32)
    for start in range(1, days, piece):
        day = start + tl.arange(0, piece)
        inside = (asset < assets)[:, None] & (day < days)[None, :]
        at = asset[:, None] * pitch + day[None, :]
        now = tl.load(prices + at, mask=inside, other=1.0)
        before = tl.load(prices + at - 1, mask=inside, other=1.0)
        change = tl.log(now / before)
        first += change
        second += change * change
    mean = tl.sum(first, 1) / (days - 1)
    tl.store(out + asset, tl.sum(second, 1) / (days - 1) - mean * mean, mask=asset < assets)


def volatilities() -> tuple[dict[str, Run], Check]:
    assets, days = 32768, 2048
    prices = noise(assets, days) * 5 + 20
    out = torch.zeros(assets, device="cuda")

    def run(tile: int, piece: int, warps: int) -> Run:
        return lambda: volatility_kernel[(triton.cdiv(assets, tile),)](
            prices, out, assets, days, days, tile, piece, num_warps=warps
        )

    sides: dict[str, Run] = {
        "flawed": run(256, 4, 4),
        "along_days": run(4, 256, 4),
        "row_each": run(1, 1024, 4),
    }
    return sides, lambda: out


@triton.jit
def density_kernel(queries, samples, widths, out, count, tile: tl.constexpr, sample_tile: tl.constexpr):
    """A sum of Gaussians whose widths differ, at points of the plane."""
    query = tl.program_id(0) * tile + tl.arange(0, tile)
    x, y = tl.load(queries + 2 * query), tl.load(queries + 2 * query + 1)
    total = tl.zeros((tile,), tl.float32)
    for start in range(0, count, sample_tile):
        sample = start + tl.arange(0, sample_tile)
        dx = x[:, None] - tl.load(samples + 2 * sample)[None, :]
        dy = y[:, None] - tl.load(samples + 2 * sample + 1)[None, :]
        h = tl.load(widths + sample)[None, :]
        u = tl.sqrt(dx * dx + dy * dy) / h
        total += tl.sum(tl.exp(-0.5 * u * u) / (6.2831853 * h * h), 1)
    tl.store(out + query, total / count)


@triton.jit
def density_hoisted_kernel(
    queries, samples, widths, out, count, tile: tl.constexpr, sample_tile: tl.constexpr
):
    """The same; what depends on the sample alone is computed once a sample and program."""
    query = tl.program_id(0) * tile + tl.arange(0, tile)
    x, y = tl.load(queries + 2 * query), tl.load(queries + 2 * query + 1)
    total = tl.zeros((tile,), tl.float32)
    for start in range(0, count, sample_tile):
        sample = start + tl.arange(0, sample_tile)
        dx = x[:, None] - tl.load(samples + 2 * sample)[None, :]
        dy = y[:, None] - tl.load(samples + 2 * sample + 1)[None, :]
        h = tl.load(widths + sample)
        inverse = 1.0 / (h * h)
        shrink, height = inverse * -0.72134752, inverse * 0.15915494
        total += tl.sum(tl.exp2((dx * dx + dy * dy) * shrink[None, :]) * height[None, :], 1)
    tl.store(out + query, total / count)


@triton.jit
def density_records_kernel(queries, records, out, count, tile: tl.constexpr):
    """The same; a record of place, shrinkage and height a sample, one after another for each query."""
    query = tl.program_id(0) * tile + tl.arange(0, tile)
    x, y = tl.load(queries + 2 * query), tl.load(queries + 2 * query + 1)
    total = tl.zeros((tile,), tl.float32)
    for sample in range(count):
        dx, dy = x - tl.load(records + 4 * sample), y - tl.load(records + 4 * sample + 1)
        shrink, height = tl.load(records + 4 * sample + 2), tl.load(records + 4 * sample + 3)
        total += tl.exp2((dx * dx + dy * dy) * shrink) * height
    tl.store(out + query, total / count)


def densities() -> tuple[dict[str, Run], Check]:
    number, count = 131072, 8192
    queries, samples = noise(number, 2), noise(count, 2).flip(0).contiguous()
    widths = noise(count) * 0.05 + 0.08
    inverse = 1.0 / widths.square()
    records = torch.stack((samples[:, 0], samples[:, 1], inverse * -0.72134752, inverse * 0.15915494), 1)
    records = records.contiguous()
    out = torch.zeros(number, device="cuda")
    sides: dict[str, Run] = {
        "flawed": lambda: density_kernel[(number // 64,)](
            queries, samples, widths, out, count, 64, 64, num_warps=4
        ),
        "hoisted": lambda: density_hoisted_kernel[(number // 64,)](
            queries, samples, widths, out, count, 64, 64, num_warps=4
        ),
        "records": lambda: density_records_kernel[(number // 64,)](
            queries, records, out, count, 64, num_warps=2
        ),
    }
    return sides, lambda: out


@triton.jit
def machine_kernel(
    x, vectors, norms, shares, out, number, gamma, width: tl.constexpr,
    tile: tl.constexpr, vector_tile: tl.constexpr,
):  # fmt: skip
    """Decisions of a support vector machine with a radial kernel."""
    row, axis = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, width)
    a = tl.load(x + row[:, None] * width + axis[None, :])
    length = tl.sum(a.to(tl.float32) * a.to(tl.float32), 1)
    total = tl.zeros((tile,), tl.float32)
    for start in range(0, number, vector_tile):
        vector = start + tl.arange(0, vector_tile)
        b = tl.load(vectors + vector[:, None] * width + axis[None, :])
        distance = length[:, None] + tl.load(norms + vector)[None, :] - 2.0 * tl.dot(a, tl.trans(b))
        total += tl.sum(tl.exp2(distance * gamma) * tl.load(shares + vector)[None, :], 1)
    tl.store(out + row, total)


def machine() -> tuple[dict[str, Run], Check]:
    count, number, width = 65536, 4096, 64
    x, vectors = noise(count, width, dtype=torch.half), noise(number, width, dtype=torch.half).flip(0)
    vectors = vectors.contiguous()
    norms = vectors.float().square().sum(1)
    shares = noise(number) + 0.5
    out = torch.zeros(count, device="cuda")
    gamma = -0.05

    def run(tile: int, vector_tile: int, warps: int) -> Run:
        return lambda: machine_kernel[(count // tile,)](
            x, vectors, norms, shares, out, number, gamma, width, tile, vector_tile, num_warps=warps
        )

    sides: dict[str, Run] = {"flawed": run(16, 64, 4), "taller": run(128, 64, 8), "half": run(64, 64, 4)}
    return sides, lambda: out


@triton.jit
def bucket_probe_kernel(keys, table, payload, out, mask, tile: tl.constexpr):
    """The payload of each key, from buckets of eight slots; slots are looked at one after another."""
    at = tl.program_id(0) * tile + tl.arange(0, tile)
    key = tl.load(keys + at)
    bucket = (key.to(tl.uint32) * 0x9E3779B1 >> 7).to(tl.int32) & mask
    found = tl.zeros((tile,), tl.int32)
    for slot in tl.static_range(8):
        stored = tl.load(table + bucket * 8 + slot)
        value = tl.load(payload + bucket * 8 + slot)
        found = tl.where(stored == key, value, found)
    tl.store(out + at, found)


@triton.jit
def bucket_probe_place_kernel(keys, table, payload, out, mask, tile: tl.constexpr):
    """The same: a payload is read only where its key was found."""
    at = tl.program_id(0) * tile + tl.arange(0, tile)
    key = tl.load(keys + at)
    bucket = (key.to(tl.uint32) * 0x9E3779B1 >> 7).to(tl.int32) & mask
    place = tl.full((tile,), -1, tl.int32)
    for slot in tl.static_range(8):
        stored = tl.load(table + bucket * 8 + slot)
        place = tl.where(stored == key, bucket * 8 + slot, place)
    tl.store(out + at, tl.load(payload + place, mask=place >= 0, other=0))


@triton.jit
def bucket_probe_rows_kernel(keys, table, payload, out, mask, tile: tl.constexpr):
    """The same: all slots of a bucket are a row of one load."""
    at, slot = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, 8)
    key = tl.load(keys + at)
    bucket = (key.to(tl.uint32) * 0x9E3779B1 >> 7).to(tl.int32) & mask
    stored = tl.load(table + bucket[:, None] * 8 + slot[None, :])
    place = tl.max(tl.where(stored == key[:, None], bucket[:, None] * 8 + slot[None, :], -1), 1)
    tl.store(out + at, tl.load(payload + place, mask=place >= 0, other=0))


def buckets() -> tuple[dict[str, Run], Check]:
    count, number = 1 << 23, 1 << 19
    generator = torch.Generator(device="cuda").manual_seed(7)

    def numbers(high: int, size: int) -> torch.Tensor:
        return torch.randint(1, high, (size,), device="cuda", dtype=torch.int64, generator=generator)

    stored = torch.unique(numbers(1 << 24, 5 * number // 2))
    home = ((stored * 0x9E3779B1) & 0xFFFFFFFF) >> 7 & (number - 1)
    home, order = torch.sort(home, stable=True)
    stored = stored[order]
    first = torch.searchsorted(home, home)
    rank = torch.arange(len(home), device="cuda") - first
    kept = rank < 8
    place = (home * 8 + rank)[kept]
    table = torch.zeros(8 * number, device="cuda", dtype=torch.int32)
    payload = torch.zeros_like(table)
    table[place] = stored[kept].to(torch.int32)
    payload[place] = (stored[kept] % 65521 + 1).to(torch.int32)
    strange, known = numbers(1 << 24, count), stored[numbers(len(stored), count)]
    keys = torch.where(strange % 4 == 0, strange, known).to(torch.int32)
    out = torch.zeros(count, device="cuda", dtype=torch.int32)
    grid = (count // 256,)
    sides: dict[str, Run] = {
        "flawed": lambda: bucket_probe_kernel[grid](keys, table, payload, out, number - 1, 256, num_warps=4),
        "found_alone": lambda: bucket_probe_place_kernel[grid](
            keys, table, payload, out, number - 1, 256, num_warps=4
        ),
        "rows": lambda: bucket_probe_rows_kernel[grid](
            keys, table, payload, out, number - 1, 256, num_warps=4
        ),
    }
    return sides, lambda: out


def cubes() -> tuple[dict[str, Run], Check]:
    x = noise(8192, 8192, dtype=torch.half)
    exponents, out = torch.full_like(x, 3.0), torch.empty_like(x)
    three = torch.full((1, 1), 3.0, device="cuda", dtype=torch.half)

    def run(exponent: torch.Tensor | float) -> Run:
        return lambda: torch.pow(x, exponent, out=out)

    return {"flawed": run(exponents), "scalar": run(3.0), "one_exponent": run(three)}, lambda: out


STUDIES = (
    Study(
        "triton_nearest_centre_by_differences",
        "squared distances of 65536 points of 64 half values to the nearest of 256 centres, in Triton",
        "differences and their squares are formed and summed for each pair: no product that tensor cores could do",
        (
            ("product", "squared lengths less twice a product", ("tensor_cores_idle",)),
            (
                "bigger_product",
                "the same, 128 points and 128 centres at a time by eight warps",
                ("tensor_cores_idle", "redundant_loads"),
            ),
        ),
        nearest_centres,
        tolerance=2e-3,
        domain="machine learning",
    ),
    Study(
        "triton_volatility_tile_of_four_days",
        "variances of the daily logarithmic returns of 32768 assets over 2048 days, in Triton",
        "a tile is 256 assets high and four days wide: neighbouring lanes read rows 8 KB apart",
        (
            ("along_days", "four assets and 256 days at a time", ("uncoalesced_access",)),
            ("row_each", "an asset a program, 1024 days at a time", ("uncoalesced_access",)),
        ),
        volatilities,
        domain="finance",
    ),
    Study(
        "triton_density_divides_for_each_pair",
        "a density of 8192 samples with widths of their own at 131072 points of the plane, in Triton",
        "root, two divisions and the height of a sample are computed for each pair",
        (
            (
                "hoisted",
                "what depends on the sample alone before the pairs, exp2 of squares",
                ("expensive_math",),
            ),
            (
                "records",
                "prepared records, read one after another, a sum for each query without reductions",
                ("expensive_math", "barriers"),
            ),
        ),
        densities,
        domain="machine learning",
    ),
    Study(
        "triton_radial_machine_sixteen_rows",
        "decisions of a radial support vector machine, 65536 rows of 64 half values, 4096 vectors, in Triton",
        "a program takes 16 rows: all vectors are loaded again for so few",
        (
            ("taller", "128 rows by eight warps", ("redundant_loads", "instruction_latency")),
            ("half", "64 rows", ("redundant_loads", "instruction_latency")),
        ),
        machine,
        tolerance=2e-3,
        domain="machine learning",
    ),
    Study(
        "triton_bucket_payloads_of_all_slots",
        "the payloads of 8388608 keys from a hash table of 524288 buckets of eight slots, in Triton",
        "key and payload of each slot of a bucket are read, slot after slot, though one payload at most is wanted",
        (
            (
                "found_alone",
                "the payload of the slot that was found alone",
                ("redundant_loads", "uncoalesced_access"),
            ),
            (
                "rows",
                "the keys of a bucket as a row of one load, then the payload that was found",
                ("redundant_loads", "uncoalesced_access", "narrow_access"),
            ),
        ),
        buckets,
        tolerance=0.0,
        domain="databases",
    ),
    Study(
        "torch_cubes_by_a_tensor_of_exponents",
        "torch's power of 67108864 half values, all to the third",
        "the exponents are a tensor: they are read, and a general power is taken of each value",
        (
            (
                "scalar",
                "the exponent as a number: two multiplications",
                ("expensive_math", "redundant_loads"),
            ),
            ("one_exponent", "a tensor of one exponent, spread over all", ("redundant_loads",)),
        ),
        cubes,
        tolerance=4e-3,
        domain="models",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
