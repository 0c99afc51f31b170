"""Studies in Triton of earthquakes and plasmas, run by what tests/cuda/variants/frameworks.py provides.

Usage: b_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- how loud each station's day was ---


@triton.jit
def station_energy_kernel(traces, gains, energy, samples, block: tl.constexpr):
    """Energy of a station's trace, a program a station."""
    station = tl.program_id(0)
    at = traces + station.to(tl.int64) * samples
    gain = tl.load(gains + station)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, samples, block):
        value = tl.load(at + start + tl.arange(0, block)) * gain
        total += value * value
    tl.atomic_add(energy + station, tl.sum(total, 0))


@triton.jit
def station_energy_pieces_kernel(traces, gains, energy, samples, length, block: tl.constexpr):
    """The same, a piece of a trace a program."""
    station = tl.program_id(0)
    at = traces + station.to(tl.int64) * samples + tl.program_id(1) * length
    gain = tl.load(gains + station)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, length, block):
        value = tl.load(at + start + tl.arange(0, block)) * gain
        total += value * value
    tl.atomic_add(energy + station, tl.sum(total, 0))


@triton.jit
def array_energy_kernel(traces, gains, energy, samples, length, together: tl.constexpr, block: tl.constexpr):
    """The same, some seconds of ``together`` stations a program."""
    station = tl.program_id(0) * together + tl.arange(0, together)
    first = tl.program_id(1) * length + tl.arange(0, block)
    at = traces + station.to(tl.int64)[:, None] * samples + first[None, :]
    total = tl.zeros((together, block), tl.float32)
    for start in range(0, length, block):
        value = tl.load(at + start)
        total += value * value
    gain = tl.load(gains + station)
    tl.atomic_add(energy + station, tl.sum(total, 1) * gain * gain)


def stations(count: int = 96, samples: int = 1 << 19) -> tuple[dict[str, Run], Check]:
    traces, gains = noise(count, samples), noise(count) * 0.2 + 1.0
    energy = torch.zeros(count, device="cuda")
    return {
        "flawed": lambda: station_energy_kernel[(count,)](traces, gains, energy, samples, 2048, num_warps=8),
        "pieces": lambda: station_energy_pieces_kernel[(count, 16)](
            traces, gains, energy, samples, samples // 16, 2048, num_warps=8
        ),
        "array": lambda: array_energy_kernel[(count // 16, 256)](
            traces, gains, energy, samples, samples // 256, 16, 256, num_warps=8
        ),
    }, lambda: (energy.clone(), energy.zero_())[0]


# --- charged particles in a magnetic field ---


@triton.jit
def pushed(x, y, z, u, v, w, half, step):
    """Boris' push: half of the electric field, a turn about the magnetic one, the other half."""
    u += half * 0.3
    v += half * -0.2
    tx = half * 0.05
    tz = half * 1.5
    scale = 2.0 / (1.0 + tx * tx + tz * tz)
    a = u + v * tz
    b = v + w * tx - u * tz
    c = w - v * tx
    u += b * tz * scale
    v += (c * tx - a * tz) * scale
    w -= b * tx * scale
    u += half * 0.3
    v += half * -0.2
    return x + u * step, y + v * step, z + w * step, u, v, w


@triton.jit
def push_kernel(particles, out, step, block: tl.constexpr):
    """A particle is eight floats: place, velocity, charge by mass and weight."""
    at = (tl.program_id(0) * block + tl.arange(0, block)) * 8
    ratio = tl.load(particles + at + 6)
    x, y, z, u, v, w = pushed(
        tl.load(particles + at),
        tl.load(particles + at + 1),
        tl.load(particles + at + 2),
        tl.load(particles + at + 3),
        tl.load(particles + at + 4),
        tl.load(particles + at + 5),
        ratio * step * 0.5,
        step,
    )
    tl.store(out + at, x)
    tl.store(out + at + 1, y)
    tl.store(out + at + 2, z)
    tl.store(out + at + 3, u)
    tl.store(out + at + 4, v)
    tl.store(out + at + 5, w)
    tl.store(out + at + 6, ratio)
    tl.store(out + at + 7, tl.load(particles + at + 7))


@triton.jit
def push_rows_kernel(particles, out, step, block: tl.constexpr):
    """The same; whole particles are loaded and stored, and taken apart between."""
    at = tl.program_id(0) * block * 8 + tl.arange(0, block)[:, None] * 8 + tl.arange(0, 8)[None, :]
    rows = tl.reshape(tl.load(particles + at), (block, 2, 2, 2))
    even, odd = tl.split(rows)
    even_0, even_2 = tl.split(even)
    odd_0, odd_2 = tl.split(odd)
    x, v = tl.split(even_0)
    z, ratio = tl.split(even_2)
    y, w = tl.split(odd_0)
    u, weight = tl.split(odd_2)
    x, y, z, u, v, w = pushed(x, y, z, u, v, w, ratio * step * 0.5, step)
    even = tl.join(tl.join(x, v), tl.join(z, ratio))
    odd = tl.join(tl.join(y, w), tl.join(u, weight))
    tl.store(out + at, tl.reshape(tl.join(even, odd), (block, 8)))


@triton.jit
def push_fields_kernel(particles, out, step, count, block: tl.constexpr):
    """The same; a row a field."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    ratio = tl.load(particles + at + 6 * count)
    x, y, z, u, v, w = pushed(
        tl.load(particles + at),
        tl.load(particles + at + count),
        tl.load(particles + at + 2 * count),
        tl.load(particles + at + 3 * count),
        tl.load(particles + at + 4 * count),
        tl.load(particles + at + 5 * count),
        ratio * step * 0.5,
        step,
    )
    tl.store(out + at, x)
    tl.store(out + at + count, y)
    tl.store(out + at + 2 * count, z)
    tl.store(out + at + 3 * count, u)
    tl.store(out + at + 4 * count, v)
    tl.store(out + at + 5 * count, w)
    tl.store(out + at + 6 * count, ratio)
    tl.store(out + at + 7 * count, tl.load(particles + at + 7 * count))


def particles(count: int = 1 << 22) -> tuple[dict[str, Run], Check]:
    rows = noise(count, 8)
    fields = rows.t().contiguous()
    out, turned = torch.empty_like(rows), torch.empty_like(fields)
    found = {"out": out}

    def by_rows(kernel: triton.JITFunction, block: int, warps: int) -> Run:
        def run() -> None:
            kernel[(count // block,)](rows, out, 0.02, block, num_warps=warps)
            found["out"] = out

        return run

    def by_fields() -> None:
        push_fields_kernel[(count // 512,)](fields, turned, 0.02, count, 512, num_warps=4)
        found["out"] = turned.t()

    return {
        "flawed": by_rows(push_kernel, 256, 4),
        "rows": by_rows(push_rows_kernel, 128, 1),
        "fields": by_fields,
    }, lambda: found["out"]


STUDIES = (
    Study(
        "triton_station_energy_a_program_a_station",
        "energy of 96 seismic traces of 524288 samples in Triton",
        "a program a station: 96 programs, fewer than there are multiprocessors",
        (
            ("pieces", "16 pieces of each trace, added up by atomics", ("small_grid",)),
            ("array", "some samples of sixteen stations a program, added up by atomics", ("small_grid",)),
        ),
        stations,
        domain="geophysics",
    ),
    Study(
        "triton_boris_push_fields_of_particle_rows",
        "Boris' push of 4194304 charged particles of eight floats each in Triton",
        "each field is loaded and stored by itself, 32 bytes from lane to lane",
        (
            ("rows", "whole particles loaded and stored, taken apart in between", ("uncoalesced_access",)),
            ("fields", "a row of memory a field", ("uncoalesced_access",)),
        ),
        particles,
        domain="plasma physics",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
