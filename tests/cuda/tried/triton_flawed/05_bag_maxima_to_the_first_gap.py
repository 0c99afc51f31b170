"""bag_maxima_to_the_first_gap, side flawed: more for a program to do, by a larger block or a loop over several bags."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import triton
import triton.language as tl
from tried import DEVICE, empty, judge, kernels, noise, small

walk = kernels("triton/science_frameworks").bags_walk_kernel
count, rows, most, width = small(32768, 32), small(1 << 20, 100), 32, 128
lengths = (noise(count).abs() * most).int().clamp(1, most - 1)
items = (noise(count + 1, most).abs() * (rows - 1)).int()
items[torch.arange(most, device=DEVICE) >= torch.cat((lengths, lengths[:1]))[:, None]] = -1
table, out = noise(rows, width), empty(count, width)


@triton.jit
def in_turn(items, table, out, most: tl.constexpr, width: tl.constexpr, bags: tl.constexpr):
    column = tl.arange(0, width)
    for number in range(bags):
        bag = tl.program_id(0) * bags + number
        total = tl.full((width,), -float("inf"), tl.float32)
        place = bag * most
        item = tl.load(items + place)
        while item >= 0:
            total = tl.maximum(total, tl.load(table + item * width + column))
            place += 1
            item = tl.load(items + place)
        tl.store(out + bag * width + column, total)


@triton.jit
def at_once(items, table, out, most: tl.constexpr, width: tl.constexpr, bags: tl.constexpr):
    bag, column = tl.program_id(0) * bags + tl.arange(0, bags), tl.arange(0, width)
    total = tl.full((bags, width), -float("inf"), tl.float32)
    place = bag * most
    item = tl.load(items + place)
    while tl.max(item, 0) >= 0:
        there = (item >= 0)[:, None] & (column >= 0)[None, :]
        value = tl.load(table + item[:, None] * width + column[None, :], there, -float("inf"))
        total = tl.maximum(total, value)
        place += (item >= 0).to(tl.int32)
        item = tl.load(items + place)
    tl.store(out + bag[:, None] * width + column[None, :], total)


judge({
    "as_it_is": lambda: walk[(count,)](items, table, out, most, width, num_warps=1),
    "four_in_turn": lambda: in_turn[(count // 4,)](items, table, out, most, width, 4, num_warps=1),
    "four_at_once": lambda: at_once[(count // 4,)](items, table, out, most, width, 4, num_warps=4),
}, [out])  # fmt: skip
