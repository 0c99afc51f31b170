"""What a user clicked on, weighed by how well it fits the item to be ranked: a softmax over histories of any length."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tried"))

import math

import torch
import triton
import triton.language as tl
from tried import DEVICE, empty, judge, small

USERS, ITEMS, WIDTH, LONGEST = small(16384, 64), small(1 << 20, 2048), 64, 200
generator = torch.Generator(device=DEVICE).manual_seed(1)


def popular(*shape: int) -> torch.Tensor:
    """Items, few of which are clicked often."""
    rank = torch.exp(torch.rand(*shape, device=DEVICE, generator=generator) * math.log(ITEMS)).long() - 1
    return (rank * 7919 % ITEMS).to(torch.int32)


table = torch.randn(ITEMS, WIDTH, device=DEVICE, generator=generator)
clicks = torch.exp(3.4 + 0.9 * torch.randn(USERS, device=DEVICE, generator=generator))  # 30 in the median
lengths = clicks.clamp(1, LONGEST).to(torch.int32)
histories, targets = popular(USERS, LONGEST), popular(USERS)
interests = empty(USERS, WIDTH)


@triton.jit
def as_it_is(
    table, histories, lengths, targets, interests, longest, scale, WIDTH: tl.constexpr, ROOM: tl.constexpr
):  # fmt: skip
    user = tl.program_id(0)
    length = tl.load(lengths + user)
    click = tl.arange(0, ROOM)
    column = tl.arange(0, WIDTH)
    inside = click < length
    items = tl.load(histories + user * longest + click, mask=inside, other=0)
    rows = tl.load(table + items[:, None] * WIDTH + column[None, :], mask=inside[:, None], other=0.0)
    target = tl.load(table + tl.load(targets + user) * WIDTH + column)
    fit = tl.sum(rows * target[None, :], 1) * scale
    fit = tl.where(inside, fit, float("-inf"))
    weight = tl.exp(fit - tl.max(fit, 0))
    weight /= tl.sum(weight, 0)
    tl.store(interests + user * WIDTH + column, tl.sum(weight[:, None] * rows, 0))


# First step, threads without work: a history in pieces, a loop that ends where it does.
@triton.jit
def in_pieces(
    table, histories, lengths, targets, interests, longest, scale, WIDTH: tl.constexpr, PIECE: tl.constexpr
):  # fmt: skip
    user = tl.program_id(0)
    length = tl.load(lengths + user)
    column = tl.arange(0, WIDTH)
    target = tl.load(table + tl.load(targets + user) * WIDTH + column)
    largest, total = float("-inf"), 0.0
    interest = tl.zeros((WIDTH,), tl.float32)
    for start in range(0, length, PIECE):
        click = start + tl.arange(0, PIECE)
        inside = click < length
        items = tl.load(histories + user * longest + click, mask=inside, other=0)
        rows = tl.load(table + items[:, None] * WIDTH + column[None, :], mask=inside[:, None], other=0.0)
        fit = tl.sum(rows * target[None, :], 1) * scale
        fit = tl.where(inside, fit, float("-inf"))
        larger = tl.maximum(largest, tl.max(fit, 0))
        weight = tl.exp(fit - larger)
        kept = tl.exp(largest - larger)
        total = total * kept + tl.sum(weight, 0)
        interest = interest * kept + tl.sum(weight[:, None] * rows, 0)
        largest = larger
    tl.store(interests + user * WIDTH + column, interest / total)


# Second step, threads without work: pieces of 32 that a history fills, the rest in pieces of eight; or pieces of 16.
@triton.jit
def with_piece(
    table, histories, length, target, longest, scale, user, start, column, largest, total, interest,
    WIDTH: tl.constexpr, PIECE: tl.constexpr
):  # fmt: skip
    click = start + tl.arange(0, PIECE)
    inside = click < length
    items = tl.load(histories + user * longest + click, mask=inside, other=0)
    rows = tl.load(table + items[:, None] * WIDTH + column[None, :], mask=inside[:, None], other=0.0)
    fit = tl.where(inside, tl.sum(rows * target[None, :], 1) * scale, float("-inf"))
    larger = tl.maximum(largest, tl.max(fit, 0))
    weight = tl.exp(fit - larger)
    kept = tl.exp(largest - larger)
    return larger, total * kept + tl.sum(weight, 0), interest * kept + tl.sum(weight[:, None] * rows, 0)


@triton.jit
def in_filled_pieces(
    table, histories, lengths, targets, interests, longest, scale, WIDTH: tl.constexpr, PIECE: tl.constexpr,
    REST: tl.constexpr
):  # fmt: skip
    user = tl.program_id(0)
    length = tl.load(lengths + user)
    column = tl.arange(0, WIDTH)
    target = tl.load(table + tl.load(targets + user) * WIDTH + column)
    largest, total = float("-inf"), 0.0
    interest = tl.zeros((WIDTH,), tl.float32)
    filled = length // PIECE * PIECE
    for start in range(0, filled, PIECE):
        largest, total, interest = with_piece(
            table, histories, length, target, longest, scale, user, start, column, largest, total, interest,
            WIDTH, PIECE
        )  # fmt: skip
    for start in range(filled, length, REST):
        largest, total, interest = with_piece(
            table, histories, length, target, longest, scale, user, start, column, largest, total, interest,
            WIDTH, REST
        )  # fmt: skip
    tl.store(interests + user * WIDTH + column, interest / total)


# As many rows at a time as two warps hold in few registers, and no further than the history goes; the softmax is
# corrected as it goes, and the next items' numbers are there before they are needed.
@triton.jit
def expert(
    table, histories, lengths, targets, interests, longest, scale, WIDTH: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    user = tl.program_id(0)
    length = tl.load(lengths + user)
    click = tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    items = tl.load(histories + user * longest + click, mask=click < length, other=0)
    target = tl.load(table + tl.load(targets + user) * WIDTH + column) * scale
    most = tl.full((), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    weighed = tl.zeros((ROWS, WIDTH), tl.float32)
    for start in range(0, length, ROWS):
        inside = start + click < length
        rows = tl.load(table + items[:, None] * WIDTH + column[None, :], mask=inside[:, None], other=0.0)
        further = start + ROWS + click
        items = tl.load(histories + user * longest + further, mask=further < length, other=0)
        fit = tl.where(inside, tl.sum(rows * target[None, :], 1), float("-inf"))
        now = tl.maximum(most, tl.max(fit, 0))
        shrunk = tl.exp(most - now)
        weight = tl.exp(fit - now)
        total = total * shrunk + weight
        weighed = weighed * shrunk + weight[:, None] * rows
        most = now
    tl.store(interests + user * WIDTH + column, tl.sum(weighed, 0) / tl.sum(total, 0))


data = (table, histories, lengths, targets, interests, LONGEST, 1 / math.sqrt(WIDTH), WIDTH)
judge({
    "as_it_is": lambda: as_it_is[(USERS,)](*data, triton.next_power_of_2(LONGEST)),
    "pieces_of_32": lambda: in_pieces[(USERS,)](*data, 32),
    "pieces_of_64": lambda: in_pieces[(USERS,)](*data, 64),
    "thirty_twos_and_eights": lambda: in_filled_pieces[(USERS,)](*data, 32, 8),
    "pieces_of_16": lambda: in_pieces[(USERS,)](*data, 16),
    "expert": lambda: expert[(USERS,)](*data, 32, num_warps=2),
    "expert_2": lambda: expert[(USERS,)](*data, 16, num_warps=1),
}, [interests])  # fmt: skip
