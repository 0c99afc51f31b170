"""Studies in Triton of colonies, climates, layers, posts, seas, returns and stars.

They are run by what tests/cuda/variants/frameworks.py provides.

Usage: t_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- a colony of cells, a bit each ---


@triton.jit
def beside(board, at):
    """Words of cells and of their neighbours to both sides, of one row."""
    own = tl.load(board + at).to(tl.uint32, bitcast=True)
    before = tl.load(board + at - 1).to(tl.uint32, bitcast=True)
    after = tl.load(board + at + 1).to(tl.uint32, bitcast=True)
    return own << 1 | before >> 31, own, own >> 1 | after << 31


@triton.jit
def colony_kernel(board, out, pitch, block: tl.constexpr):
    """The next generation; every fourth cell of a word at a time, four bits for each one's neighbours."""
    at = (tl.program_id(1) + 1) * pitch + tl.program_id(0) * block + 32 + tl.arange(0, block)
    a, b, c = beside(board, at - pitch)
    d, own, e = beside(board, at)
    f, g, h = beside(board, at + pitch)
    found = tl.zeros((block,), tl.uint32)
    for k in tl.static_range(4):
        count = (a >> k & 0x11111111) + (b >> k & 0x11111111) + (c >> k & 0x11111111) + (d >> k & 0x11111111)
        count += (e >> k & 0x11111111) + (f >> k & 0x11111111) + (g >> k & 0x11111111) + (h >> k & 0x11111111)
        lives = (count | own >> k) & (count >> 1) & ~(count >> 2) & ~(count >> 3) & 0x11111111
        found |= lives << k
    tl.store(out + at, found.to(tl.int32, bitcast=True))


@triton.jit
def three(a, b, c):
    """Sum of three bits, for all bits of words at once."""
    return a ^ b ^ c, (a & b) | ((a ^ b) & c)


@triton.jit
def colony_sums_kernel(board, out, pitch, block: tl.constexpr):
    """The same; neighbours of all cells of a word counted at once, a word for each bit of the counts."""
    at = (tl.program_id(1) + 1) * pitch + tl.program_id(0) * block + 32 + tl.arange(0, block)
    a, b, c = beside(board, at - pitch)
    d, own, e = beside(board, at)
    f, g, h = beside(board, at + pitch)
    ones0, twos0 = three(a, b, c)
    ones1, twos1 = three(f, g, h)
    ones, twos2 = three(ones0, ones1, d ^ e)
    twos, fours0 = three(twos0, twos1, d & e)
    lives = (ones | own) & (twos ^ twos2) & ~(fours0 | (twos & twos2))
    tl.store(out + at, lives.to(tl.int32, bitcast=True))


@triton.jit
def column_sums(board, at, pitch):
    above = tl.load(board + at - pitch).to(tl.uint32, bitcast=True)
    own = tl.load(board + at).to(tl.uint32, bitcast=True)
    below = tl.load(board + at + pitch).to(tl.uint32, bitcast=True)
    ones, twos = three(above, own, below)
    return ones, twos, own


@triton.jit
def colony_columns_kernel(board, out, pitch, block: tl.constexpr):
    """The same; three cells above each other are added before they are moved aside."""
    at = (tl.program_id(1) + 1) * pitch + tl.program_id(0) * block + 32 + tl.arange(0, block)
    ones_before, twos_before, _ = column_sums(board, at - 1, pitch)
    ones_own, twos_own, own = column_sums(board, at, pitch)
    ones_after, twos_after, _ = column_sums(board, at + 1, pitch)
    ones, carried = three(ones_own << 1 | ones_before >> 31, ones_own, ones_own >> 1 | ones_after << 31)
    twos, fours = three(twos_own << 1 | twos_before >> 31, twos_own, twos_own >> 1 | twos_after << 31)
    fours ^= twos & carried
    twos ^= carried
    lives = (ones & twos & ~fours) | (own & ~ones & ~twos & fours)
    tl.store(out + at, lives.to(tl.int32, bitcast=True))


def colony(rows: int = 16384, words: int = 1024) -> tuple[dict[str, Run], Check]:
    pitch = words + 64
    board = (noise(rows + 2, pitch) * 2147483000.0).to(torch.int32)
    board ^= board.roll(777) << 13
    out = torch.zeros_like(board)
    grid = (words // 512, rows)
    return {
        "flawed": lambda: colony_kernel[grid](board, out, pitch, 512, num_warps=4),
        "sums": lambda: colony_sums_kernel[grid](board, out, pitch, 512, num_warps=4),
        "columns": lambda: colony_columns_kernel[grid](board, out, pitch, 512, num_warps=4),
    }, lambda: out


# --- climates of a coarse grid at places of a fine one ---


@triton.jit
def placed(fields, corners, weights, out, hour, at, coarse, fine):
    """What a field is at places, from four corners around each."""
    field = fields + hour * coarse
    value = tl.load(field + tl.load(corners + at)) * tl.load(weights + at)
    for k in tl.static_range(1, 4):
        corner = tl.load(corners + k * fine + at)
        value += tl.load(field + corner) * tl.load(weights + k * fine + at)
    tl.store(out + hour * fine + at, value)


@triton.jit
def regrid_kernel(fields, corners, weights, out, coarse, fine, block: tl.constexpr):
    """Some places of an hour a program."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    placed(fields, corners, weights, out, tl.program_id(1), at, coarse, fine)


@triton.jit
def regrid_hours_kernel(fields, corners, weights, out, coarse, fine, block: tl.constexpr):
    """The same; hours along the grid's first axis."""
    at = tl.program_id(1) * block + tl.arange(0, block)
    placed(fields, corners, weights, out, tl.program_id(0), at, coarse, fine)


@triton.jit
def regrid_inside_kernel(fields, corners, weights, out, coarse, fine, hours, block: tl.constexpr):
    """All hours of some places a program."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    a = tl.load(corners + at)
    b = tl.load(corners + fine + at)
    c = tl.load(corners + 2 * fine + at)
    d = tl.load(corners + 3 * fine + at)
    first = tl.load(weights + at)
    second = tl.load(weights + fine + at)
    third = tl.load(weights + 2 * fine + at)
    fourth = tl.load(weights + 3 * fine + at)
    for start in range(0, hours, 2):
        for k in tl.static_range(2):
            field = fields + (start + k) * coarse
            value = tl.load(field + a) * first + tl.load(field + b) * second
            value += tl.load(field + c) * third + tl.load(field + d) * fourth
            tl.store(out + (start + k) * fine + at, value)


def regridded(
    hours: int = 24, height: int = 768, width: int = 1024, times: int = 2
) -> tuple[dict[str, Run], Check]:
    fields = noise(hours, height, width)
    rows, columns = height * times, width * times
    y = (torch.arange(rows, device="cuda") + 0.5) / times - 0.5
    x = (torch.arange(columns, device="cuda") + 0.5) / times - 0.5
    top, left = y.floor().clamp(0, height - 2), x.floor().clamp(0, width - 2)
    down, right = (y - top)[:, None].expand(rows, columns), (x - left)[None, :].expand(rows, columns)
    corner = (top[:, None] * width + left[None, :]).to(torch.int32)
    corners = torch.stack((corner, corner + 1, corner + width, corner + width + 1)).contiguous()
    shares = ((1 - down) * (1 - right), (1 - down) * right, down * (1 - right), down * right)
    weights = torch.stack(shares).float().contiguous()
    coarse, fine = height * width, rows * columns
    out = torch.empty(hours, fine, device="cuda")
    return {
        "flawed": lambda: regrid_kernel[(fine // 512, hours)](
            fields, corners, weights, out, coarse, fine, 512, num_warps=4
        ),
        "hours": lambda: regrid_hours_kernel[(hours, fine // 512)](
            fields, corners, weights, out, coarse, fine, 512, num_warps=4
        ),
        "inside": lambda: regrid_inside_kernel[(fine // 512,)](
            fields, corners, weights, out, coarse, fine, hours, 512, num_warps=4
        ),
    }, lambda: out


# --- light through layers ---


@triton.jit
def layers_kernel(layers, out, count, modes: tl.constexpr, precision: tl.constexpr):
    """Product of the matrices of one structure's layers, from the top down."""
    row = tl.arange(0, modes)[:, None]
    place = row * modes + tl.arange(0, modes)[None, :]
    at = layers + tl.program_id(0) * count * modes * modes + place
    product = tl.load(at)
    for k in range(1, count):
        product = tl.dot(product, tl.load(at + k * modes * modes), input_precision=precision)
    tl.store(out + tl.program_id(0) * modes * modes + place, product)


@triton.jit
def halved(value):
    """The value rounded to half precision, and what is left of it."""
    high = value.to(tl.float16)
    return high, (value - high.to(tl.float32)).to(tl.float16)


@triton.jit
def layers_halves_kernel(layers, out, count, modes: tl.constexpr):
    """The same; each matrix as a sum of two of half precision."""
    row = tl.arange(0, modes)[:, None]
    place = row * modes + tl.arange(0, modes)[None, :]
    at = layers + tl.program_id(0) * count * modes * modes + place
    product = tl.load(at)
    for k in range(1, count):
        high, low = halved(product)
        own_high, own_low = halved(tl.load(at + k * modes * modes))
        product = tl.dot(low, own_high)
        product = tl.dot(high, own_low, product)
        product = tl.dot(high, own_high, product)
    tl.store(out + tl.program_id(0) * modes * modes + place, product)


def layered(structures: int = 2048, count: int = 8, modes: int = 64) -> tuple[dict[str, Run], Check]:
    layers = noise(structures, count, modes, modes) * (3.0 / modes) ** 0.5
    out = torch.empty(structures, modes, modes, device="cuda")
    grid = (structures,)
    return {
        "flawed": lambda: layers_kernel[grid](layers, out, count, modes, "ieee", num_warps=4),
        "tf32x3": lambda: layers_kernel[grid](layers, out, count, modes, "tf32x3", num_warps=4),
        "halves": lambda: layers_halves_kernel[grid](layers, out, count, modes, num_warps=4),
    }, lambda: out


# --- posts that set off others ---


@triton.jit
def posts_kernel(times, out, base, jump, fade, posts: tl.constexpr, threads: tl.constexpr):
    """How likely each post of a thread was, by all those before it."""
    post = tl.arange(0, posts)
    first = (tl.program_id(0) * threads + tl.arange(0, threads)) * posts
    later = tl.load(times + first[:, None] + post[None, :])[:, :, None]
    earlier = tl.load(times + first[:, None] + post[None, :])[:, None, :]
    past = post[None, :, None] > post[None, None, :]
    left = tl.where(past, tl.exp2((earlier - later) * fade), 0.0)
    tl.store(out + first[:, None] + post[None, :], base + jump * tl.sum(left, 2))


@triton.jit
def fades(kept, left, kept_after, left_after):
    return kept * kept_after, left * kept_after + left_after


@triton.jit
def posts_passed_on_kernel(times, out, base, jump, fade, posts: tl.constexpr, threads: tl.constexpr):
    """The same; what is left of the posts before is passed on from post to post."""
    post = tl.arange(0, posts)[None, :]
    at = (tl.program_id(0) * threads + tl.arange(0, threads)[:, None]) * posts + post
    last = tl.load(times + at - 1, mask=post > 0, other=-float("inf"))
    kept = tl.exp2((last - tl.load(times + at)) * fade)
    _, left = tl.associative_scan((kept, kept), 1, fades)
    tl.store(out + at, base + jump * left)


@triton.jit
def posts_factors_kernel(times, out, base, jump, fade, posts: tl.constexpr, threads: tl.constexpr):
    """The same; a factor for when a post was and one for when it is felt, both from the first post."""
    post = tl.arange(0, posts)[None, :]
    thread = tl.program_id(0) * threads + tl.arange(0, threads)[:, None]
    at = thread * posts + post
    since = (tl.load(times + at) - tl.load(times + thread * posts)) * fade
    risen = tl.exp2(since)
    past = tl.cumsum(risen, 1) - risen
    tl.store(out + at, base + jump * past * tl.exp2(-since))


def cascades(threads: int = 1 << 18, posts: int = 16) -> tuple[dict[str, Run], Check]:
    times = ((noise(threads, posts) * 0.5 + 0.5) * 0.9 + 0.05).cumsum(1)
    out = torch.empty_like(times)
    fade = 1.4426950408889634
    return {
        "flawed": lambda: posts_kernel[(threads // 16,)](times, out, 0.2, 0.6, fade, posts, 16, num_warps=4),
        "passed_on": lambda: posts_passed_on_kernel[(threads // 64,)](
            times, out, 0.2, 0.6, fade, posts, 64, num_warps=4
        ),
        "factors": lambda: posts_factors_kernel[(threads // 64,)](
            times, out, 0.2, 0.6, fade, posts, 64, num_warps=4
        ),
    }, lambda: out


# --- weight of the sea ---


@triton.jit
def heaviness(warm, salt, thick):
    """Weight of a layer of the sea."""
    return thick * (0.75 * salt - 0.15 * warm - 0.005 * warm * warm)


@triton.jit
def sea_kernel(warmth, salts, layers, out, count: tl.constexpr, block: tl.constexpr):
    """Weight of the sea above each of ``count`` depths, from layer to layer downwards; a place a lane."""
    at = (tl.program_id(0) * block + tl.arange(0, block)) * count
    above = tl.zeros((block,), tl.float32)
    for k in range(count):
        above += heaviness(tl.load(warmth + at + k), tl.load(salts + at + k), tl.load(layers + k))
        tl.store(out + at + k, above)


@triton.jit
def sea_whole_kernel(warmth, salts, layers, out, count: tl.constexpr, places: tl.constexpr):
    """The same; all layers of some places at once."""
    layer = tl.arange(0, count)[None, :]
    at = (tl.program_id(0) * places + tl.arange(0, places)[:, None]) * count + layer
    own = heaviness(tl.load(warmth + at), tl.load(salts + at), tl.load(layers + layer))
    tl.store(out + at, tl.cumsum(own, 1))


@triton.jit
def sea_pieces_kernel(
    warmth, salts, layers, out, count: tl.constexpr, piece: tl.constexpr, places: tl.constexpr
):
    """The same; ``piece`` layers of more places at a time."""
    first = (tl.program_id(0) * places + tl.arange(0, places)[:, None]) * count
    above = tl.zeros((places,), tl.float32)
    for start in range(0, count, piece):
        layer = start + tl.arange(0, piece)[None, :]
        own = heaviness(
            tl.load(warmth + first + layer), tl.load(salts + first + layer), tl.load(layers + layer)
        )
        tl.store(out + first + layer, above[:, None] + tl.cumsum(own, 1))
        above += tl.sum(own, 1)


def weighed(places: int = 1 << 18, count: int = 64) -> tuple[dict[str, Run], Check]:
    warmth, salts = noise(places, count) * 8.0 + 9.0, noise(places, count).flip(0).contiguous() + 35.0
    layers = 5.0 * 1.05 ** torch.arange(count, device="cuda", dtype=torch.float32)
    out = torch.empty_like(warmth)
    return {
        "flawed": lambda: sea_kernel[(places // 128,)](warmth, salts, layers, out, count, 128, num_warps=4),
        "whole": lambda: sea_whole_kernel[(places // 16,)](
            warmth, salts, layers, out, count, 16, num_warps=4
        ),
        "pieces": lambda: sea_pieces_kernel[(places // 32,)](
            warmth, salts, layers, out, count, 32, 32, num_warps=4
        ),
    }, lambda: out


# --- how well a critic foresees what is earned ---


@triton.jit
def horizons_kernel(rewards, values, out, games, discount, steps: tl.constexpr, block: tl.constexpr):
    """Squared errors of values against one to four rewards and the value behind them, summed over the steps."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    wrong = tl.zeros((block,), tl.float32)
    for horizon in tl.static_range(1, 5):
        for step in range(steps):
            earned = tl.load(values + (step + horizon) * games + at)
            for k in tl.static_range(horizon):
                earned = earned * discount + tl.load(rewards + (step + horizon - 1 - k) * games + at)
            off = earned - tl.load(values + step * games + at)
            wrong += off * off
    tl.store(out + at, wrong)


@triton.jit
def horizons_kept_kernel(rewards, values, out, games, discount, steps: tl.constexpr, block: tl.constexpr):
    """The same; the last four rewards and values are kept, all horizons of a step at once."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    wrong = tl.zeros((block,), tl.float32)
    v0 = tl.load(values + at)
    v1 = tl.load(values + games + at)
    v2 = tl.load(values + 2 * games + at)
    v3 = tl.load(values + 3 * games + at)
    r0 = tl.load(rewards + at)
    r1 = tl.load(rewards + games + at)
    r2 = tl.load(rewards + 2 * games + at)
    for start in range(0, steps, 4):
        for k in tl.static_range(4):
            r3 = tl.load(rewards + (start + k + 3) * games + at)
            v4 = tl.load(values + (start + k + 4) * games + at)
            one = v1 * discount + r0 - v0
            two = (v2 * discount + r1) * discount + r0 - v0
            three_ahead = ((v3 * discount + r2) * discount + r1) * discount + r0 - v0
            four = (((v4 * discount + r3) * discount + r2) * discount + r1) * discount + r0 - v0
            wrong += one * one + two * two + three_ahead * three_ahead + four * four
            v0, v1, v2, v3 = v1, v2, v3, v4
            r0, r1, r2 = r1, r2, r3
    tl.store(out + at, wrong)


@triton.jit
def horizons_rounds_kernel(
    rewards, values, out, games, discount, steps: tl.constexpr, round_of: tl.constexpr, block: tl.constexpr
):
    """The same; ``round_of`` steps at a time, with all that they need in registers."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    wrong = tl.zeros((block,), tl.float32)
    for start in range(0, steps, round_of):
        own = ()
        earned = ()
        for k in tl.static_range(round_of + 4):
            own += (tl.load(values + (start + k) * games + at),)
        for k in tl.static_range(round_of + 3):
            earned += (tl.load(rewards + (start + k) * games + at),)
        for k in tl.static_range(round_of):
            for horizon in tl.static_range(1, 5):
                total = own[k + horizon]
                for j in tl.static_range(horizon):
                    total = total * discount + earned[k + horizon - 1 - j]
                wrong += (total - own[k]) * (total - own[k])
    tl.store(out + at, wrong)


def horizons(games: int = 1 << 18, steps: int = 128) -> tuple[dict[str, Run], Check]:
    rewards, values = noise(steps + 4, games), noise(steps + 4, games).flip(0).contiguous()
    out = torch.empty(games, device="cuda")
    grid = (games // 256,)
    return {
        "flawed": lambda: horizons_kernel[grid](rewards, values, out, games, 0.97, steps, 256, num_warps=4),
        "kept": lambda: horizons_kept_kernel[grid](
            rewards, values, out, games, 0.97, steps, 256, num_warps=4
        ),
        "rounds": lambda: horizons_rounds_kernel[grid](
            rewards, values, out, games, 0.97, steps, 8, 256, num_warps=4
        ),
    }, lambda: out


# --- how light of stars is polarised ---


@triton.jit
def stokes_kernel(waves, out, count, block: tl.constexpr):
    """Four numbers of Stokes from two complex waves across each other."""
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    a = tl.load(waves + at)
    b = tl.load(waves + count + at)
    c = tl.load(waves + 2 * count + at)
    d = tl.load(waves + 3 * count + at)
    along = a * a + b * b
    across = c * c + d * d
    tl.store(out + at, along + across)
    tl.store(out + count + at, along - across)
    tl.store(out + 2 * count + at, 2.0 * (a * c + b * d))
    tl.store(out + 3 * count + at, 2.0 * (b * c - a * d))


def stokes(count: int = 1 << 24) -> tuple[dict[str, Run], Check]:
    waves = noise(4, count)
    out = torch.empty_like(waves)
    return {
        "sound": lambda: stokes_kernel[(count // 1024,)](waves, out, count, 1024, num_warps=4)
    }, lambda: out


STUDIES = (
    Study(
        "triton_colony_neighbours_of_every_fourth_cell",
        "the next generation of a colony of 536870912 cells, 32 in a word, in Triton",
        "neighbours are counted in four bits each, for a quarter of a word's cells at a time",
        (
            ("sums", "a word for each bit of the counts, all cells at once", ("integer_arithmetic",)),
            (
                "columns",
                "three cells above each other added first, sums moved aside",
                ("integer_arithmetic",),
            ),
        ),
        colony,
        tolerance=0.0,
        domain="biology",
    ),
    Study(
        "triton_climate_regridded_hour_after_hour",
        "24 hours of a climate of 768 x 1024 places brought to 1536 x 2048, in Triton",
        "programs go through all places of an hour before the next: corners and weights left the cache by then",
        (
            ("hours", "hours along the grid's first axis", ("cache_locality",)),
            ("inside", "all hours of 512 places a program", ("cache_locality", "redundant_loads")),
        ),
        regridded,
        tolerance=1e-5,
        domain="climate",
    ),
    Study(
        "triton_optical_layers_chained_in_full_precision",
        "products of eight layers' matrices of 64 modes, of 2048 structures, in Triton",
        "products of full precision leave the tensor cores idle",
        (
            ("tf32x3", "three products of shorter numbers each", ("tensor_cores_idle",)),
            ("halves", "each matrix as a sum of two of half precision", ("tensor_cores_idle",)),
        ),
        layered,
        tolerance=1e-4,
        domain="optics",
    ),
    Study(
        "triton_posts_an_exponential_a_pair",
        "how likely each of sixteen posts was in 262144 threads, by those before it, in Triton",
        "an exponential for each pair of posts, though what is left only fades on",
        (
            ("passed_on", "a scan that passes on what is left", ("expensive_math",)),
            ("factors", "two factors a post and a sum of those before", ("expensive_math",)),
        ),
        cascades,
        tolerance=1e-4,
        domain="social networks",
    ),
    Study(
        "triton_sea_weighed_layer_by_layer",
        "weight of the sea above 64 depths at 262144 places, from warmth and salt, in Triton",
        "lanes are places, whose layers lie 256 bytes apart",
        (
            ("whole", "all layers of sixteen places at once, summed by a scan", ("uncoalesced_access",)),
            ("pieces", "32 layers of 32 places at a time", ("uncoalesced_access",)),
        ),
        weighed,
        tolerance=1e-4,
        domain="oceanography",
    ),
    Study(
        "triton_critic_four_horizons_walked_by_turns",
        "errors of a critic's values at one to four steps ahead in 262144 games of 128 steps, in Triton",
        "rewards and values of a game are walked again for each of four horizons",
        (
            ("kept", "all horizons of a step, the last four steps in registers", ("redundant_loads",)),
            ("rounds", "eight steps a round with all that they need", ("redundant_loads",)),
        ),
        horizons,
        tolerance=1e-4,
        domain="reinforcement learning",
    ),
    Study(
        "sound_triton_polarised_light",
        "four numbers of Stokes of 16777216 samples of two complex waves, in Triton",
        "",
        (),
        stokes,
        domain="astronomy",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
