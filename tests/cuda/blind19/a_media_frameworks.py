"""Studies in Triton of pictures, sound and series, run by what tests/cuda/variants/frameworks.py provides.

Usage: a_media_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- pictures ---


@triton.jit
def samples_kernel(pixels, places, out, size, channels, block: tl.constexpr):
    """Values between pixels at any places, channel after channel."""
    sample = tl.program_id(0) * block + tl.arange(0, block)
    base = tl.program_id(1) * size * size
    x = tl.load(places + 2 * sample)
    y = tl.load(places + 2 * sample + 1)
    left, top = tl.floor(x), tl.floor(y)
    right_part, low_part = x - left, y - top
    corner = base + top.to(tl.int32) * size + left.to(tl.int32)
    for channel in range(0, channels):
        at = corner * channels + channel
        a = tl.load(pixels + at).to(tl.float32)
        b = tl.load(pixels + at + channels).to(tl.float32)
        c = tl.load(pixels + at + size * channels).to(tl.float32)
        d = tl.load(pixels + at + (size + 1) * channels).to(tl.float32)
        upper, lower = a + (b - a) * right_part, c + (d - c) * right_part
        found = (upper + (lower - upper) * low_part).to(tl.float16)
        tl.store(out + (tl.program_id(1) * tl.num_programs(0) * block + sample) * channels + channel, found)


@triton.jit
def samples_tile_kernel(pixels, places, out, size, channels: tl.constexpr, block: tl.constexpr):
    """The same, all channels of ``block`` places at once."""
    sample = tl.program_id(0) * block + tl.arange(0, block)
    channel = tl.arange(0, channels)
    base = tl.program_id(1) * size * size
    x = tl.load(places + 2 * sample)
    y = tl.load(places + 2 * sample + 1)
    left, top = tl.floor(x), tl.floor(y)
    right_part, low_part = (x - left)[:, None], (y - top)[:, None]
    corner = base + top.to(tl.int32) * size + left.to(tl.int32)
    at = corner[:, None] * channels + channel[None, :]
    a = tl.load(pixels + at).to(tl.float32)
    b = tl.load(pixels + at + channels).to(tl.float32)
    c = tl.load(pixels + at + size * channels).to(tl.float32)
    d = tl.load(pixels + at + (size + 1) * channels).to(tl.float32)
    upper, lower = a + (b - a) * right_part, c + (d - c) * right_part
    row = (tl.program_id(1) * tl.num_programs(0) * block + sample)[:, None] * channels
    tl.store(out + row + channel[None, :], (upper + (lower - upper) * low_part).to(tl.float16))


def samples(count: int = 16384, pictures: int = 8) -> tuple[dict[str, Run], Check]:
    size, channels = 64, 128
    pixels = noise(pictures, size, size, channels, dtype=torch.half)
    places = (noise(count, 2) * 0.49 + 0.49) * (size - 1)
    out = torch.empty(pictures, count, channels, device="cuda", dtype=torch.half)

    def tile(block: int, warps: int) -> Run:
        return lambda: samples_tile_kernel[(count // block, pictures)](
            pixels, places, out, size, channels, block, num_warps=warps
        )

    return {
        "flawed": lambda: samples_kernel[(count // 128, pictures)](
            pixels, places, out, size, channels, 128, num_warps=4
        ),
        "tile": tile(32, 4),
        "warp": tile(4, 1),
    }, lambda: out


@triton.jit
def over_byte(front, back, alpha):
    """A byte of colour over another."""
    return (front * alpha + back * (255 - alpha) + 127) // 255


@triton.jit
def over_kernel(front, back, out, block: tl.constexpr):
    """A picture over another, four bytes a pixel, one after the other."""
    at = 4 * (tl.program_id(0) * block + tl.arange(0, block))
    alpha = tl.load(front + at + 3).to(tl.int32)
    for colour in tl.static_range(3):
        own = tl.load(front + at + colour).to(tl.int32)
        under = tl.load(back + at + colour).to(tl.int32)
        tl.store(out + at + colour, over_byte(own, under, alpha).to(tl.uint8))
    tl.store(out + at + 3, over_byte(255, tl.load(back + at + 3).to(tl.int32), alpha).to(tl.uint8))


@triton.jit
def over_words_kernel(front, back, out, block: tl.constexpr):
    """The same, a word a pixel."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    own, under = tl.load(front + at), tl.load(back + at)
    alpha = (own >> 24) & 255
    word = over_byte(255, (under >> 24) & 255, alpha) << 24
    for colour in tl.static_range(3):
        word |= over_byte((own >> (8 * colour)) & 255, (under >> (8 * colour)) & 255, alpha) << (8 * colour)
    tl.store(out + at, word)


@triton.jit
def over_lanes_kernel(front, back, out, block: tl.constexpr):
    """The same, bytes side by side and the pixel's opacity for each."""
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    colour = tl.arange(0, 4)
    at = 4 * pixel[:, None] + colour[None, :]
    own = tl.load(front + at).to(tl.int32)
    under = tl.load(back + at).to(tl.int32)
    alpha = tl.sum(tl.where(colour[None, :] == 3, own, 0), 1)[:, None]
    own = tl.where(colour[None, :] == 3, 255, own)
    tl.store(out + at, over_byte(own, under, alpha).to(tl.uint8))


def over(pixels: int = 1 << 24) -> tuple[dict[str, Run], Check]:
    generator = torch.Generator(device="cuda").manual_seed(2)
    front = torch.randint(0, 256, (pixels, 4), device="cuda", dtype=torch.uint8, generator=generator)
    back = front.flip(0).contiguous()
    out = torch.empty_like(front)
    words = tuple(picture.view(torch.int32) for picture in (front, back, out))
    grid = (pixels // 1024,)
    return {
        "flawed": lambda: over_kernel[grid](front, back, out, 1024, num_warps=4),
        "words": lambda: over_words_kernel[grid](*words, 1024, num_warps=4),
        "lanes": lambda: over_lanes_kernel[grid](front, back, out, 1024, num_warps=4),
    }, lambda: out


@triton.jit
def pointwise_kernel(
    x, weights, out, tiles_down, tiles_along, depth, columns, tall: tl.constexpr, wide: tl.constexpr,
    deep: tl.constexpr, group: tl.constexpr,
):  # fmt: skip
    """Channels of pixels mixed; programs in groups of ``group`` tiles of pixels."""
    whole = group * tiles_along
    first = tl.program_id(0) // whole * group
    height = tl.minimum(tiles_down - first, group)
    down = first + tl.program_id(0) % whole % height
    along = tl.program_id(0) % whole // height
    row = down * tall + tl.arange(0, tall)
    column = along * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    total = tl.zeros((tall, wide), tl.float32)
    for k in range(0, depth, deep):
        a = tl.load(x + row[:, None] * depth + k + inner[None, :])
        b = tl.load(weights + (k + inner)[:, None] * columns + column[None, :])
        total = tl.dot(a, b, total)
    tl.store(out + row[:, None] * columns + column[None, :], tl.maximum(total, 0.0).to(tl.float16))


@triton.jit
def pointwise_down_kernel(
    x, weights, out, tiles_down, depth, columns, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr
):
    """The same, all tiles of pixels for the first outputs, then all for the next."""
    row = tl.program_id(0) % tiles_down * tall + tl.arange(0, tall)
    column = tl.program_id(0) // tiles_down * wide + tl.arange(0, wide)
    inner = tl.arange(0, deep)
    total = tl.zeros((tall, wide), tl.float32)
    for k in range(0, depth, deep):
        a = tl.load(x + row[:, None] * depth + k + inner[None, :])
        b = tl.load(weights + (k + inner)[:, None] * columns + column[None, :])
        total = tl.dot(a, b, total)
    tl.store(out + row[:, None] * columns + column[None, :], tl.maximum(total, 0.0).to(tl.float16))


def pointwise(pixels: int = 131072, depth: int = 256, columns: int = 1024) -> tuple[dict[str, Run], Check]:
    x, weights = noise(pixels, depth, dtype=torch.half), noise(depth, columns, dtype=torch.half) * 0.1
    out = torch.empty(pixels, columns, device="cuda", dtype=torch.half)
    down, along = pixels // 128, columns // 128

    def grouped(group: int) -> Run:
        return lambda: pointwise_kernel[(down * along,)](
            x, weights, out, down, along, depth, columns, 128, 128, 64, group, num_warps=8, num_stages=3
        )

    return {
        "flawed": lambda: pointwise_down_kernel[(down * along,)](
            x, weights, out, down, depth, columns, 128, 128, 64, num_warps=8, num_stages=3
        ),
        "along_first": grouped(1),
        "groups": grouped(16),
    }, lambda: out


# --- sound and series ---


@triton.jit
def loudness_kernel(sound, out, frame: tl.constexpr, hop: tl.constexpr):
    """Mean square of a frame; frames overlap."""
    at = tl.program_id(0) * hop + tl.arange(0, frame)
    value = tl.load(sound + at)
    tl.store(out + tl.program_id(0), tl.sum(value * value, 0) / frame)


@triton.jit
def loudness_pieces_kernel(
    sound, out, frames, frame: tl.constexpr, hop: tl.constexpr, many: tl.constexpr, some: tl.constexpr
):
    """The same for as many frames as ``many`` pieces of a hop hold, each piece squared once."""
    each: tl.constexpr = frame // hop
    own: tl.constexpr = many - each
    first = tl.program_id(0) * own
    piece = tl.arange(0, many)
    total = tl.zeros((many, some), tl.float32)
    for start in range(0, hop, some):
        at = (first + piece)[:, None] * hop + start + tl.arange(0, some)[None, :]
        value = tl.load(sound + at, mask=(first + piece)[:, None] < frames + each - 1, other=0.0)
        total += value * value
    energy = tl.sum(total, 1)
    which = tl.arange(0, many)
    within = (piece[:, None] >= which[None, :]) & (piece[:, None] < which[None, :] + each)
    found = tl.sum(tl.where(within, energy[:, None], 0.0), 0) / frame
    tl.store(out + first + which, found, mask=(which < own) & (first + which < frames))


@triton.jit
def loudness_running_kernel(sound, out, frame: tl.constexpr, hop: tl.constexpr, many: tl.constexpr):
    """The same for ``many`` frames in turn: what enters is added and what leaves taken away."""
    each: tl.constexpr = frame // hop
    first = tl.program_id(0) * many
    column = tl.arange(0, hop)
    at = (first + tl.arange(0, each))[:, None] * hop + column[None, :]
    value = tl.load(sound + at)
    total = tl.sum(value * value, 0)
    tl.store(out + first, tl.sum(total, 0) / frame)
    for step in range(1, many):
        leaves = tl.load(sound + (first + step - 1) * hop + column)
        enters = tl.load(sound + (first + step - 1 + each) * hop + column)
        total += enters * enters - leaves * leaves
        tl.store(out + first + step, tl.sum(total, 0) / frame)


def loudness(frames: int = 65536) -> tuple[dict[str, Run], Check]:
    frame, hop = 4096, 256
    sound = noise((frames + frame // hop - 1) * hop)
    out = torch.empty(frames, device="cuda")
    many = 64
    return {
        "flawed": lambda: loudness_kernel[(frames,)](sound, out, frame, hop, num_warps=4),
        "pieces": lambda: loudness_pieces_kernel[(triton.cdiv(frames, many - frame // hop),)](
            sound, out, frames, frame, hop, many, 64, num_warps=4
        ),
        "running": lambda: loudness_running_kernel[(frames // 32,)](sound, out, frame, hop, 32, num_warps=1),
    }, lambda: out


@triton.jit
def ring_kernel(signal, taps, out, length, count, block: tl.constexpr):
    """A filter around a closed signal: each tap's place by a remainder."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for tap in range(0, count):
        total += tl.load(taps + tap) * tl.load(signal + (at + length - tap) % length)
    tl.store(out + at, total)


@triton.jit
def ring_select_kernel(signal, taps, out, length, count, block: tl.constexpr):
    """The same: one length added where a place is before the beginning."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for tap in range(0, count):
        place = at - tap
        total += tl.load(taps + tap) * tl.load(signal + tl.where(place < 0, place + length, place))
    tl.store(out + at, total)


@triton.jit
def ring_opened_kernel(signal, taps, out, count, block: tl.constexpr):
    """The same with the signal's end repeated before its beginning."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for tap in range(0, count):
        total += tl.load(taps + tap) * tl.load(signal + count + at - tap)
    tl.store(out + at, total)


def ring(blocks: int = 8191, count: int = 64) -> tuple[dict[str, Run], Check]:
    length = blocks * 512
    signal, taps = noise(length), noise(count)
    opened = torch.cat((signal[-count:], signal))
    out = torch.empty_like(signal)
    return {
        "flawed": lambda: ring_kernel[(blocks,)](signal, taps, out, length, count, 512, num_warps=4),
        "select": lambda: ring_select_kernel[(blocks,)](signal, taps, out, length, count, 512, num_warps=4),
        "opened": lambda: ring_opened_kernel[(blocks,)](opened, taps, out, count, 512, num_warps=4),
    }, lambda: out


@triton.jit
def median_kernel(x, out, width: tl.constexpr):
    """The median of a row, which is sorted for it."""
    column = tl.arange(0, width)
    value = tl.load(x + tl.program_id(0) * width + column)
    ordered = tl.sort(value)
    tl.store(out + tl.program_id(0), tl.sum(tl.where(column == width // 2, ordered.to(tl.float32), 0.0), 0))


@triton.jit
def median_bits_kernel(x, out, width: tl.constexpr):
    """The same, bit after bit: how many values are below is counted sixteen times."""
    value = tl.load(x + tl.program_id(0) * width + tl.arange(0, width))
    bits = value.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
    key = tl.where(bits >= 0x8000, 0xFFFF - bits, bits + 0x8000)
    found = 0
    for step in tl.static_range(16):
        higher = found + (1 << (15 - step))
        below = tl.sum((key < higher).to(tl.int32), 0)
        found = tl.where(below <= width // 2, higher, found)
    tl.store(out + tl.program_id(0), tl.max(tl.where(key == found, value.to(tl.float32), -float("inf")), 0))


def medians(rows: int = 16384, width: int = 1024) -> tuple[dict[str, Run], Check]:
    x = noise(rows, width, dtype=torch.half)
    out = torch.empty(rows, device="cuda")
    grid = (rows,)
    return {
        "flawed": lambda: median_kernel[grid](x, out, width, num_warps=8),
        "warp_sorts": lambda: median_kernel[grid](x, out, width, num_warps=1),
        "bits": lambda: median_bits_kernel[grid](x, out, width, num_warps=1),
    }, lambda: out


STUDIES = (
    Study(
        "triton_samples_between_pixels_channel_by_channel",
        "values between pixels at 16384 places of 8 pictures of 64 x 64, 128 half channels, in Triton",
        "a lane takes a place and walks its channels: two bytes of as many lines as there are lanes",
        (
            ("tile", "32 places and all channels a program", ("uncoalesced_access", "narrow_access")),
            (
                "warp",
                "four places and all channels a program of one warp",
                ("uncoalesced_access", "narrow_access"),
            ),
        ),
        samples,
        tolerance=2e-3,
        domain="images",
    ),
    Study(
        "triton_picture_over_another_byte_by_byte",
        "a picture of 16777216 pixels of four bytes over another, in Triton",
        "each byte of a pixel is loaded and stored on its own, four bytes from its neighbour's",
        (
            ("words", "a word a pixel, taken apart by shifts", ("narrow_access",)),
            ("lanes", "bytes side by side, four a pixel", ("narrow_access",)),
        ),
        over,
        tolerance=0.0,
        domain="images",
    ),
    Study(
        "triton_pointwise_convolution_pixels_first",
        "256 channels of 131072 pixels mixed to 1024, half values, in Triton",
        "all pixels for the first 128 outputs, then all for the next: they come from memory eight times",
        (
            ("along_first", "all outputs of 128 pixels, then the next pixels", ("cache_locality",)),
            ("groups", "groups of sixteen tiles of pixels", ("cache_locality",)),
        ),
        pointwise,
        tolerance=2e-3,
        domain="images",
    ),
    Study(
        "triton_loudness_frames_read_sixteen_times",
        "mean squares of 65536 frames of 4096 samples, 256 apart, in Triton",
        "a program a frame: each sample is loaded and squared for sixteen of them",
        (
            ("pieces", "squares of pieces of 256 once, summed for 48 frames", ("redundant_loads",)),
            (
                "running",
                "32 frames in turn, what enters added and what leaves taken away",
                ("redundant_loads",),
            ),
        ),
        loudness,
        domain="sound",
    ),
    Study(
        "triton_ring_filter_remainder_each_tap",
        "a filter of 64 taps around a closed signal of 4193792 floats, in Triton",
        "the place of each tap's value by a remainder",
        (
            ("select", "a length added where the place is negative", ("integer_arithmetic",)),
            ("opened", "the signal's end repeated before its beginning", ("integer_arithmetic",)),
        ),
        ring,
        domain="signals",
    ),
    Study(
        "triton_medians_by_sorting_the_row",
        "medians of 16384 rows of 1024 half values, in Triton",
        "eight warps sort the whole row, through shared memory, for one of its values",
        (
            ("warp_sorts", "one warp sorts it", ("barriers",)),
            ("bits", "one warp finds the value bit by bit", ("barriers",)),
        ),
        medians,
        tolerance=0.0,
        domain="statistics",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
