"""A weather model's fields go from its own levels, which follow the ground, to 13 levels of pressure."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tried"))

import torch
import triton
import triton.language as tl
from tried import DEVICE, INTERPRETED, Form, empty, judge, noise, small
from triton.language.extra import libdevice

FIELDS, LEVELS, LATITUDES, LONGITUDES = 4, 64, small(256, 4), small(512, 64)
COLUMNS = LATITUDES * LONGITUDES
targets = 100 * torch.tensor(
    [50, 100, 150, 200, 250, 300, 400, 500, 600, 700, 850, 925, 1000], dtype=torch.float32, device=DEVICE
)
# A level's pressure is a + b times that at the ground, where mountains take up to a quarter of it.
eta = (torch.arange(LEVELS, dtype=torch.float32, device=DEVICE) + 0.5) / LEVELS
a, b = 6e4 * eta * (1 - eta), eta**2.2
south = torch.linspace(0, 3.14159, LATITUDES, device=DEVICE)[:, None]
east = torch.linspace(0, 6.28318, LONGITUDES, device=DEVICE)[None, :]
weather = 1500 * torch.sin(3 * east + 4 * south) + 20 * noise(LATITUDES, LONGITUDES)
mountains = 45000 * (torch.sin(2 * east + south) * torch.sin(5 * south - east) - 0.4).clamp(min=0)
ground = (101000 + weather - mountains).reshape(-1).contiguous()
fields = noise(FIELDS, LEVELS, COLUMNS)
out = empty(FIELDS, len(targets), COLUMNS)


@triton.jit
def as_it_is(
    fields, a, b, ground, targets, out, levels, columns,
    FIELDS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    field = tl.arange(0, FIELDS)
    inside = column < columns
    both = (field[:, None] >= 0) & inside[None, :]
    target = tl.load(targets + tl.program_id(1))
    pressure = tl.load(ground + column, mask=inside, other=1e5)
    at = fields + field[:, None] * levels * columns + column[None, :]
    above = tl.load(a) + tl.load(b) * pressure
    values_above = tl.load(at, mask=both, other=0.0)
    found = values_above
    for level in range(1, levels):
        below = tl.load(a + level) + tl.load(b + level) * pressure
        values_below = tl.load(at + level * columns, mask=both, other=0.0)
        share = (tl.log(target) - tl.log(above)) / (tl.log(below) - tl.log(above))
        between = (above <= target) & (target < below)
        found = tl.where(
            between[None, :], values_above + share[None, :] * (values_below - values_above), found
        )
        above = below
        values_above = values_below
    found = tl.where((target >= above)[None, :], values_above, found)  # under the lowest level
    place = out + (field[:, None] * tl.num_programs(1) + tl.program_id(1)) * columns + column[None, :]
    tl.store(place, found, mask=both)


@triton.jit
def _log(x, FAST: tl.constexpr):
    return libdevice.fast_logf(x) if FAST else tl.log(x)


@triton.jit
def _with_logs_once(
    fields, a, b, ground, targets, out, levels, columns, block, of, count,
    FIELDS: tl.constexpr, BLOCK: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    column = block * BLOCK + tl.arange(0, BLOCK)
    field = tl.arange(0, FIELDS)
    inside = column < columns
    both = (field[:, None] >= 0) & inside[None, :]
    target = tl.load(targets + of)
    pressure = tl.load(ground + column, mask=inside, other=1e5)
    at = fields + field[:, None] * levels * columns + column[None, :]
    above = tl.load(a) + tl.load(b) * pressure
    log_target = _log(target, FAST)
    log_above = _log(above, FAST)
    values_above = tl.load(at, mask=both, other=0.0)
    found = values_above
    for level in range(1, levels):
        below = tl.load(a + level) + tl.load(b + level) * pressure
        values_below = tl.load(at + level * columns, mask=both, other=0.0)
        log_below = _log(below, FAST)
        if FAST:
            share = libdevice.fast_dividef(log_target - log_above, log_below - log_above)
        else:
            share = (log_target - log_above) / (log_below - log_above)
        between = (above <= target) & (target < below)
        found = tl.where(
            between[None, :], values_above + share[None, :] * (values_below - values_above), found
        )
        above = below
        log_above = log_below
        values_above = values_below
    found = tl.where((target >= above)[None, :], values_above, found)  # under the lowest level
    place = out + (field[:, None] * count + of) * columns + column[None, :]
    tl.store(place, found, mask=both)


@triton.jit
def logs_once(
    fields, a, b, ground, targets, out, levels, columns,
    FIELDS: tl.constexpr, BLOCK: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """First step, expensive functions: the target's logarithm before the loop, a level's once; and (FAST) fast ones."""
    _with_logs_once(
        fields, a, b, ground, targets, out, levels, columns,
        tl.program_id(0), tl.program_id(1), tl.num_programs(1), FIELDS, BLOCK, FAST,
    )  # fmt: skip


@triton.jit
def ordered(
    fields, a, b, ground, targets, out, levels, columns, count,
    FIELDS: tl.constexpr, BLOCK: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
):  # fmt: skip
    """Second step, cache locality: the targets of GROUP_SIZE_M blocks of columns, which read the same, run together."""
    blocks = tl.cdiv(columns, BLOCK)
    block, of = tl.swizzle2d(tl.program_id(0) // count, tl.program_id(0) % count, blocks, count, GROUP_SIZE_M)
    _with_logs_once(
        fields, a, b, ground, targets, out, levels, columns, block, of, count, FIELDS, BLOCK, False
    )


@triton.jit
def _between(found, target, log_target, above, below, log_above, log_below, values_above, values_below):
    share = (log_target - log_above) / (log_below - log_above)
    between = (above <= target) & (target < below)
    return tl.where(between[None, :], values_above + share[None, :] * (values_below - values_above), found)


@triton.jit
def four_targets(
    fields, a, b, ground, targets, out, levels, columns, count,
    FIELDS: tl.constexpr, BLOCK: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
):  # fmt: skip
    """Third step, redundant loads: a program takes four targets of its columns, and keeps what it found for each."""
    blocks, fours = tl.cdiv(columns, BLOCK), tl.cdiv(count, 4)
    block, of = tl.swizzle2d(tl.program_id(0) // fours, tl.program_id(0) % fours, blocks, fours, GROUP_SIZE_M)
    of *= 4
    column = block * BLOCK + tl.arange(0, BLOCK)
    field = tl.arange(0, FIELDS)
    inside = column < columns
    both = (field[:, None] >= 0) & inside[None, :]
    target0 = tl.load(targets + of)
    target1 = tl.load(targets + of + 1, mask=of + 1 < count, other=1.0)
    target2 = tl.load(targets + of + 2, mask=of + 2 < count, other=1.0)
    target3 = tl.load(targets + of + 3, mask=of + 3 < count, other=1.0)
    log0, log1, log2, log3 = tl.log(target0), tl.log(target1), tl.log(target2), tl.log(target3)
    pressure = tl.load(ground + column, mask=inside, other=1e5)
    at = fields + field[:, None] * levels * columns + column[None, :]
    above = tl.load(a) + tl.load(b) * pressure
    log_above = tl.log(above)
    values_above = tl.load(at, mask=both, other=0.0)
    found0, found1, found2, found3 = values_above, values_above, values_above, values_above
    for level in range(1, levels):
        below = tl.load(a + level) + tl.load(b + level) * pressure
        values_below = tl.load(at + level * columns, mask=both, other=0.0)
        log_below = tl.log(below)
        found0 = _between(
            found0, target0, log0, above, below, log_above, log_below, values_above, values_below
        )
        found1 = _between(
            found1, target1, log1, above, below, log_above, log_below, values_above, values_below
        )
        found2 = _between(
            found2, target2, log2, above, below, log_above, log_below, values_above, values_below
        )
        found3 = _between(
            found3, target3, log3, above, below, log_above, log_below, values_above, values_below
        )
        above = below
        log_above = log_below
        values_above = values_below
    found0 = tl.where((target0 >= above)[None, :], values_above, found0)  # under the lowest level
    found1 = tl.where((target1 >= above)[None, :], values_above, found1)
    found2 = tl.where((target2 >= above)[None, :], values_above, found2)
    found3 = tl.where((target3 >= above)[None, :], values_above, found3)
    place = out + (field[:, None] * count + of) * columns + column[None, :]
    tl.store(place, found0, mask=both)
    tl.store(place + columns, found1, mask=both & (of + 1 < count))
    tl.store(place + 2 * columns, found2, mask=both & (of + 2 < count))
    tl.store(place + 3 * columns, found3, mask=both & (of + 3 < count))


@triton.jit
def expert(
    fields, a, b, ground, targets, out, columns,
    LEVELS: tl.constexpr, HALVINGS: tl.constexpr, FIELDS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Pressure alone says between which levels the target lies: found by halving; only those two are read."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    target = tl.load(targets + tl.program_id(1))
    pressure = tl.load(ground + column)
    level = tl.zeros((BLOCK,), tl.int32)
    # The last level whose pressure is at most the target's, or the first.
    for k in tl.static_range(1, HALVINGS + 1):
        tried = level + (LEVELS >> k)
        level = tl.where(tl.load(a + tried) + tl.load(b + tried) * pressure <= target, tried, level)
    next_level = tl.minimum(level + 1, LEVELS - 1)
    above = tl.log(tl.load(a + level) + tl.load(b + level) * pressure)
    below = tl.log(tl.load(a + next_level) + tl.load(b + next_level) * pressure)
    share = (tl.log(target) - above) / tl.maximum(below - above, 1e-6)
    share = tl.minimum(tl.maximum(share, 0.0), 1.0)
    for field in tl.static_range(FIELDS):
        at = fields + field * LEVELS * columns + column
        values_above = tl.load(at + level * columns)
        values_below = tl.load(at + next_level * columns)
        place = out + (field * tl.num_programs(1) + tl.program_id(1)) * columns + column
        tl.store(place, values_above + share * (values_below - values_above))


def halved(block: int, warps: int) -> Form:
    halvings = LEVELS.bit_length() - 1
    return lambda: expert[(COLUMNS // block, len(targets))](
        fields, a, b, ground, targets, out, COLUMNS, LEVELS, halvings, FIELDS, block, num_warps=warps
    )


def once(fast: bool) -> Form:
    return lambda: logs_once[of_128](
        fields, a, b, ground, targets, out, LEVELS, COLUMNS, FIELDS, 128, fast and not INTERPRETED
    )  # the interpreter has no fast functions


def grouped(size: int) -> Form:
    return lambda: ordered[(of_128[0] * of_128[1],)](
        fields, a, b, ground, targets, out, LEVELS, COLUMNS, len(targets), FIELDS, 128, size
    )


def several(size: int) -> Form:
    return lambda: four_targets[(of_128[0] * triton.cdiv(len(targets), 4),)](
        fields, a, b, ground, targets, out, LEVELS, COLUMNS, len(targets), FIELDS, 128, size
    )


of_128 = (triton.cdiv(COLUMNS, 128), len(targets))
forms: dict[str, Form] = {
    "as_it_is": lambda: as_it_is[of_128](fields, a, b, ground, targets, out, LEVELS, COLUMNS, FIELDS, 128),
    "logs_once": once(False),
    "logs_once_and_fast": once(True),
    "ordered_by_one": grouped(1),
    "ordered_by_eight": grouped(8),
    "four_targets": several(8),
    "expert": halved(128, 4),
    "expert_256": halved(256, 4),
}
judge(forms, [out])
