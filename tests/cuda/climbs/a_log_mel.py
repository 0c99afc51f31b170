"""Spectra of speech become 80 mel bands: the power of 513 complex values, a product with the bands, and a logarithm."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tried"))

import torch
import triton
import triton.language as tl
from tried import DEVICE, Form, empty, judge, noise, small

frames, bins, bands = small(65536, 256), 513, 80
spectra = noise(frames, bins, 2)  # as torch.view_as_real says it
# Triangles, evenly spaced in mel.
mel = torch.linspace(0, 2595 * torch.log10(torch.tensor(1 + 8000 / 700.0)).item(), bands + 2, device=DEVICE)
edges = 700 * (10 ** (mel / 2595) - 1)
hertz = torch.linspace(0, 8000, bins, device=DEVICE)[:, None]
rising = (hertz - edges[:-2]) / (edges[1:-1] - edges[:-2])
falling = (edges[2:] - hertz) / (edges[2:] - edges[1:-1])
filters = torch.minimum(rising, falling).clamp(min=0).contiguous()
out = empty(frames, bands)


@triton.jit
def as_it_is(
    spectra,
    filters,
    out,
    frames,
    bins,
    bands,
    block_f: tl.constexpr,
    block_k: tl.constexpr,
    block_n: tl.constexpr,
):
    frame = tl.program_id(0) * block_f + tl.arange(0, block_f)
    band = tl.arange(0, block_n)
    total = tl.zeros((block_f, block_n), tl.float32)
    for start in range(0, bins, block_k):
        k = start + tl.arange(0, block_k)
        inside = (frame[:, None] < frames) & (k[None, :] < bins)
        at = spectra + (frame[:, None] * bins + k[None, :]) * 2
        real = tl.load(at, mask=inside, other=0.0)
        imaginary = tl.load(at + 1, mask=inside, other=0.0)
        power = real * real + imaginary * imaginary
        weights = tl.load(
            filters + k[:, None] * bands + band[None, :],
            mask=(k[:, None] < bins) & (band[None, :] < bands),
            other=0.0,
        )
        total += tl.dot(power, weights)
    found = tl.log(tl.maximum(total, 1e-10)) * 0.4342944819032518
    tl.store(
        out + frame[:, None] * bands + band[None, :],
        found,
        mask=(frame[:, None] < frames) & (band[None, :] < bands),
    )


@triton.jit
def both_parts_at_once(
    spectra,
    filters,
    out,
    frames,
    bins,
    bands,
    block_f: tl.constexpr,
    block_k: tl.constexpr,
    block_n: tl.constexpr,
):
    """First step, uncoalesced access: the innermost index runs over the parts, which lie side by side."""
    frame = tl.program_id(0) * block_f + tl.arange(0, block_f)
    band = tl.arange(0, block_n)
    total = tl.zeros((block_f, block_n), tl.float32)
    for start in range(0, bins, block_k):
        k = start + tl.arange(0, block_k)
        part = start * 2 + tl.arange(0, 2 * block_k)
        inside = (frame[:, None] < frames) & (part[None, :] < bins * 2)
        values = tl.load(spectra + frame[:, None] * (bins * 2) + part[None, :], mask=inside, other=0.0)
        power = tl.sum(tl.reshape(values * values, (block_f, block_k, 2)), 2)
        weights = tl.load(
            filters + k[:, None] * bands + band[None, :],
            mask=(k[:, None] < bins) & (band[None, :] < bands),
            other=0.0,
        )
        total += tl.dot(power, weights)
    found = tl.log(tl.maximum(total, 1e-10)) * 0.4342944819032518
    tl.store(
        out + frame[:, None] * bands + band[None, :],
        found,
        mask=(frame[:, None] < frames) & (band[None, :] < bands),
    )


@triton.jit
def expert(
    spectra, filters, out, frames, bins, bands: tl.constexpr,
    block_f: tl.constexpr, block_k: tl.constexpr, wide: tl.constexpr, rest: tl.constexpr,
):  # fmt: skip
    """Both parts of a value by one load, 64 + 16 bands, and the last bin, in no piece, by itself."""
    frame = tl.program_id(0) * block_f + tl.arange(0, block_f)
    first = tl.arange(0, wide)
    second = wide + tl.arange(0, rest)
    total = tl.zeros((block_f, wide), tl.float32)
    further = tl.zeros((block_f, rest), tl.float32)
    k = tl.arange(0, block_k)
    parts = tl.arange(0, 2 * block_k)
    line = spectra + frame[:, None] * (bins * 2)
    for start in range(0, bins - 1, block_k):
        values = tl.load(line + start * 2 + parts[None, :])
        power = tl.sum(tl.reshape(values * values, (block_f, block_k, 2)), 2)
        weights = filters + (start + k)[:, None] * bands
        total = tl.dot(power, tl.load(weights + first[None, :]), total)
        further = tl.dot(power, tl.load(weights + second[None, :]), further)
    last = spectra + frame * (bins * 2) + (bins - 1) * 2
    real = tl.load(last)
    imaginary = tl.load(last + 1)
    power = real * real + imaginary * imaginary
    total += power[:, None] * tl.load(filters + (bins - 1) * bands + first)[None, :]
    further += power[:, None] * tl.load(filters + (bins - 1) * bands + second)[None, :]
    place = out + frame[:, None] * bands
    tl.store(place + first[None, :], tl.log(tl.maximum(total, 1e-10)) * 0.4342944819032518)
    tl.store(place + second[None, :], tl.log(tl.maximum(further, 1e-10)) * 0.4342944819032518)


def tiles(rows: int, piece: int, warps: int, stages: int) -> Form:
    return lambda: expert[(frames // rows,)](
        spectra, filters, out, frames, bins, bands, rows, piece, 64, 16, num_warps=warps, num_stages=stages
    )


of_32, of_256 = (triton.cdiv(frames, 32),), (triton.cdiv(frames, 256),)
sizes = (spectra, filters, out, frames, bins, bands)
judge({
    "as_it_is": lambda: as_it_is[of_32](*sizes, 32, 32, 128),
    "both_parts_at_once": lambda: both_parts_at_once[of_32](*sizes, 32, 32, 128),
    "frames_256": lambda: both_parts_at_once[of_256](*sizes, 256, 32, 128),
    "frames_256_of_eight_warps": lambda: both_parts_at_once[of_256](*sizes, 256, 32, 128, num_warps=8),
    "expert": tiles(64, 32, 4, 4),
    "expert_128_frames": tiles(128, 32, 8, 3),
    "expert_pieces_of_64": tiles(64, 64, 4, 2),
}, [out])  # fmt: skip
