"""Spectra of four microphones become their covariance at each frequency, which a beamformer is made of."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tried"))

import triton
import triton.language as tl
from tried import Form, empty, judge, noise, small

MICROPHONES, FRAMES, BINS = 4, small(8192, 256), small(513, 33)
spectra = noise(MICROPHONES, FRAMES, BINS, 2)  # as torch.view_as_real says it
out = empty(BINS, MICROPHONES, MICROPHONES, 2)


@triton.jit
def as_it_is(spectra, out, frames, bins, MICROPHONES: tl.constexpr, BLOCK: tl.constexpr):
    frequency = tl.program_id(0)
    microphone = tl.arange(0, MICROPHONES)
    real = tl.zeros((MICROPHONES, MICROPHONES), tl.float32)
    imaginary = tl.zeros((MICROPHONES, MICROPHONES), tl.float32)
    for start in range(0, frames, BLOCK):
        frame = start + tl.arange(0, BLOCK)
        at = spectra + ((microphone[:, None] * frames + frame[None, :]) * bins + frequency) * 2
        inside = (microphone[:, None] >= 0) & (frame[None, :] < frames)
        a = tl.load(at, mask=inside, other=0.0)
        b = tl.load(at + 1, mask=inside, other=0.0)
        real += tl.sum(a[:, None, :] * a[None, :, :] + b[:, None, :] * b[None, :, :], 2)
        imaginary += tl.sum(b[:, None, :] * a[None, :, :] - a[:, None, :] * b[None, :, :], 2)
    place = out + ((frequency * MICROPHONES + microphone[:, None]) * MICROPHONES + microphone[None, :]) * 2
    tl.store(place, real / frames)
    tl.store(place + 1, imaginary / frames)


@triton.jit
def _covariances(a, b):
    """Sums over the frames of microphone, frame and bin."""
    real = tl.sum(a[:, None, :, :] * a[None, :, :, :] + b[:, None, :, :] * b[None, :, :, :], 2)
    imaginary = tl.sum(b[:, None, :, :] * a[None, :, :, :] - a[:, None, :, :] * b[None, :, :, :], 2)
    return real, imaginary


@triton.jit
def beside_each_other(
    spectra, out, frames, bins,
    MICROPHONES: tl.constexpr, BLOCK: tl.constexpr, EACH: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """First step, uncoalesced access: the innermost index runs over bins, or (PARTS) over their parts as they lie."""
    frequency = tl.program_id(0) * EACH + tl.arange(0, EACH)
    microphone = tl.arange(0, MICROPHONES)
    real = tl.zeros((MICROPHONES, MICROPHONES, EACH), tl.float32)
    imaginary = tl.zeros((MICROPHONES, MICROPHONES, EACH), tl.float32)
    for start in range(0, frames, BLOCK):
        frame = start + tl.arange(0, BLOCK)
        line = spectra + (microphone[:, None] * frames + frame[None, :])[:, :, None] * bins * 2
        there = ((microphone[:, None] >= 0) & (frame[None, :] < frames))[:, :, None]
        if PARTS:
            part = tl.program_id(0) * EACH * 2 + tl.arange(0, EACH * 2)
            values = tl.load(line + part, mask=there & (part < bins * 2), other=0.0)
            a, b = tl.split(tl.reshape(values, (MICROPHONES, BLOCK, EACH, 2)))
        else:
            a = tl.load(line + frequency * 2, mask=there & (frequency < bins), other=0.0)
            b = tl.load(line + frequency * 2 + 1, mask=there & (frequency < bins), other=0.0)
        more_real, more_imaginary = _covariances(a, b)
        real += more_real
        imaginary += more_imaginary
    pair = microphone[:, None] * MICROPHONES + microphone[None, :]
    place = out + (frequency * (MICROPHONES * MICROPHONES) + pair[:, :, None]) * 2
    inside = (frequency < bins) & (pair[:, :, None] >= 0)
    tl.store(place, real / frames, mask=inside)
    tl.store(place + 1, imaginary / frames, mask=inside)


@triton.jit
def as_products(
    spectra, out, frames, bins,
    MICROPHONES: tl.constexpr, BLOCK: tl.constexpr, EACH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Second step, idle tensor cores: a bin's sums are its microphones' parts times themselves, with tl.dot."""
    SIDE: tl.constexpr = MICROPHONES * 2
    microphone = tl.arange(0, MICROPHONES)
    part = tl.program_id(0) * EACH * 2 + tl.arange(0, EACH * 2)
    sums = tl.zeros((EACH, SIDE, SIDE), tl.float32)
    for start in range(0, frames, BLOCK):
        frame = start + tl.arange(0, BLOCK)
        line = spectra + (microphone[:, None] * frames + frame[None, :])[:, :, None] * bins * 2
        there = ((microphone[:, None] >= 0) & (frame[None, :] < frames))[:, :, None]
        values = tl.load(line + part, mask=there & (part < bins * 2), other=0.0)
        values = tl.permute(tl.reshape(values, (MICROPHONES, BLOCK, EACH, 2)), (2, 0, 3, 1))
        values = tl.reshape(values, (EACH, SIDE, BLOCK))
        sums = tl.dot(values, tl.permute(values, (0, 2, 1)), sums, input_precision=PRECISION)
    # Of bin, microphone, its part, the other microphone, its part: products of equal parts, and of unlike ones.
    of_a, of_b = tl.split(tl.reshape(sums, (EACH, MICROPHONES, 2, MICROPHONES, 2)))
    aa, ba = tl.split(tl.permute(of_a, (0, 1, 3, 2)))
    ab, bb = tl.split(tl.permute(of_b, (0, 1, 3, 2)))
    frequency = (tl.program_id(0) * EACH + tl.arange(0, EACH))[:, None, None]
    pair = (microphone[:, None] * MICROPHONES + microphone[None, :])[None, :, :]
    place = out + (frequency * (MICROPHONES * MICROPHONES) + pair) * 2
    inside = (frequency < bins) & (pair >= 0)
    tl.store(place, (aa + bb) / frames, mask=inside)
    tl.store(place + 1, (ba - ab) / frames, mask=inside)


@triton.jit
def _joined(real, imaginary, a, b, c, d):
    return real + a * c + b * d, imaginary + b * c - a * d


@triton.jit
def _added(place, row: tl.constexpr, column: tl.constexpr, real, imaginary, inside):
    """Adds to a value off the diagonal and to its conjugate."""
    above = place + (row * 4 + column) * 2
    below = place + (column * 4 + row) * 2
    tl.atomic_add(above, real, mask=inside, sem="relaxed")
    tl.atomic_add(above + 1, imaginary, mask=inside, sem="relaxed")
    tl.atomic_add(below, real, mask=inside, sem="relaxed")
    tl.atomic_add(below + 1, -imaginary, mask=inside, sem="relaxed")


@triton.jit
def expert(spectra, out, frames, bins, BLOCK: tl.constexpr, RUN: tl.constexpr, AHEAD: tl.constexpr):
    """Neighbouring lanes have neighbouring frequencies, and each the upper half of its matrix over a run of frames."""
    frequency = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = frequency < bins
    at = spectra + (tl.program_id(1) * RUN * bins + frequency) * 2
    next_microphone = frames * bins * 2
    none = tl.zeros((BLOCK,), tl.float32)
    r00, r11, r22, r33 = none, none, none, none
    r01, r02, r03, r12, r13, r23 = none, none, none, none, none, none
    i01, i02, i03, i12, i13, i23 = none, none, none, none, none, none
    for _ in range(0, RUN, AHEAD):
        for _k in tl.static_range(AHEAD):
            a0 = tl.load(at, mask=inside, other=0.0)
            b0 = tl.load(at + 1, mask=inside, other=0.0)
            a1 = tl.load(at + next_microphone, mask=inside, other=0.0)
            b1 = tl.load(at + next_microphone + 1, mask=inside, other=0.0)
            a2 = tl.load(at + 2 * next_microphone, mask=inside, other=0.0)
            b2 = tl.load(at + 2 * next_microphone + 1, mask=inside, other=0.0)
            a3 = tl.load(at + 3 * next_microphone, mask=inside, other=0.0)
            b3 = tl.load(at + 3 * next_microphone + 1, mask=inside, other=0.0)
            r00 += a0 * a0 + b0 * b0
            r11 += a1 * a1 + b1 * b1
            r22 += a2 * a2 + b2 * b2
            r33 += a3 * a3 + b3 * b3
            r01, i01 = _joined(r01, i01, a0, b0, a1, b1)
            r02, i02 = _joined(r02, i02, a0, b0, a2, b2)
            r03, i03 = _joined(r03, i03, a0, b0, a3, b3)
            r12, i12 = _joined(r12, i12, a1, b1, a2, b2)
            r13, i13 = _joined(r13, i13, a1, b1, a3, b3)
            r23, i23 = _joined(r23, i23, a2, b2, a3, b3)
            at += bins * 2
    place = out + frequency * 32
    share = 1.0 / frames
    tl.atomic_add(place + 0, r00 * share, mask=inside, sem="relaxed")
    tl.atomic_add(place + 10, r11 * share, mask=inside, sem="relaxed")
    tl.atomic_add(place + 20, r22 * share, mask=inside, sem="relaxed")
    tl.atomic_add(place + 30, r33 * share, mask=inside, sem="relaxed")
    _added(place, 0, 1, r01 * share, i01 * share, inside)
    _added(place, 0, 2, r02 * share, i02 * share, inside)
    _added(place, 0, 3, r03 * share, i03 * share, inside)
    _added(place, 1, 2, r12 * share, i12 * share, inside)
    _added(place, 1, 3, r13 * share, i13 * share, inside)
    _added(place, 2, 3, r23 * share, i23 * share, inside)


def four(parts: bool) -> Form:
    return lambda: beside_each_other[(triton.cdiv(BINS, 4),)](
        spectra, out, FRAMES, BINS, MICROPHONES, 128, 4, parts
    )


def products(precision: str) -> Form:
    return lambda: as_products[(triton.cdiv(BINS, 4),)](
        spectra, out, FRAMES, BINS, MICROPHONES, 128, 4, precision
    )


def runs(block: int, run: int, ahead: int, warps: int) -> Form:
    return lambda: expert[(triton.cdiv(BINS, block), FRAMES // run)](
        spectra, out, FRAMES, BINS, block, run, ahead, num_warps=warps
    )


forms: dict[str, Form] = {
    "as_it_is": lambda: as_it_is[(BINS,)](spectra, out, FRAMES, BINS, MICROPHONES, 128),
    "four_bins_and_parts": four(True),
    "four_bins": four(False),
    "dot_ieee": products("ieee"),
    "dot_tf32": products("tf32"),
    "expert": runs(32, 64, 4, 1),
    "expert_128_frames": runs(32, 128, 4, 1),
    "expert_64_bins": runs(64, 64, 2, 2),
}
judge(forms, [out], out.zero_)
