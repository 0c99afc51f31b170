"""Studies in Triton of distillation, caches of keys and ranges of channels, run by tests/cuda/variants/frameworks.py.

Usage: a_frameworks.py list | check | time | profile [STUDY ...]
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "variants"))

from frameworks import Check, Run, Study, main, noise

# --- what a student has to learn ---


@triton.jit
def logits_at(logits, row, at, words: tl.constexpr):
    return tl.load(logits + row + at, mask=at < words, other=-float("inf")).to(tl.float32)


@triton.jit
def distil_kernel(teacher, student, out, words: tl.constexpr, piece: tl.constexpr):
    """How far the student's chances are from the teacher's (Kullback-Leibler), a row a program."""
    row = tl.program_id(0).to(tl.int64) * words
    place = tl.arange(0, piece)
    tops = tl.full((piece,), -float("inf"), tl.float32)
    student_tops = tops
    for start in range(0, words, piece):
        tops = tl.maximum(tops, logits_at(teacher, row, start + place, words))
        student_tops = tl.maximum(student_tops, logits_at(student, row, start + place, words))
    top = tl.max(tops, 0)
    student_top = tl.max(student_tops, 0)
    sums = tl.zeros((piece,), tl.float32)
    student_sums = sums
    for start in range(0, words, piece):
        sums += tl.exp(logits_at(teacher, row, start + place, words) - top)
        student_sums += tl.exp(logits_at(student, row, start + place, words) - student_top)
    norm = top + tl.log(tl.sum(sums, 0))
    student_norm = student_top + tl.log(tl.sum(student_sums, 0))
    losses = tl.zeros((piece,), tl.float32)
    for start in range(0, words, piece):
        at = start + place
        known = logits_at(teacher, row, at, words) - norm
        learnt = logits_at(student, row, at, words) - student_norm
        losses += tl.where(at < words, tl.exp(known) * (known - learnt), 0.0)
    tl.store(out + tl.program_id(0), tl.sum(losses, 0))


@triton.jit
def distil_two_kernel(teacher, student, out, words: tl.constexpr, piece: tl.constexpr):
    """The same; once the maxima are known, all sums in one go."""
    row = tl.program_id(0).to(tl.int64) * words
    place = tl.arange(0, piece)
    tops = tl.full((piece,), -float("inf"), tl.float32)
    student_tops = tops
    for start in range(0, words, piece):
        tops = tl.maximum(tops, logits_at(teacher, row, start + place, words))
        student_tops = tl.maximum(student_tops, logits_at(student, row, start + place, words))
    top = tl.max(tops, 0)
    student_top = tl.max(student_tops, 0)
    sums = tl.zeros((piece,), tl.float32)
    student_sums = sums
    apart = sums
    for start in range(0, words, piece):
        at = start + place
        known = logits_at(teacher, row, at, words) - top
        learnt = logits_at(student, row, at, words) - student_top
        chance = tl.exp(known)
        sums += chance
        student_sums += tl.exp(learnt)
        apart += tl.where(at < words, chance * (known - learnt), 0.0)
    total = tl.sum(sums, 0)
    loss = tl.sum(apart, 0) / total - tl.log(total) + tl.log(tl.sum(student_sums, 0))
    tl.store(out + tl.program_id(0), loss)


@triton.jit
def distil_online_kernel(teacher, student, out, words: tl.constexpr, piece: tl.constexpr):
    """The same in one pass: what was summed up is scaled whenever a maximum rises."""
    row = tl.program_id(0).to(tl.int64) * words
    place = tl.arange(0, piece)
    top = -float("inf")
    student_top = -float("inf")
    total = 0.0
    student_total = 0.0
    apart = 0.0  # sum of exp(teacher - top) * (teacher - student)
    for start in range(0, words, piece):
        at = start + place
        known = logits_at(teacher, row, at, words)
        learnt = logits_at(student, row, at, words)
        higher = tl.maximum(top, tl.max(known, 0))
        student_higher = tl.maximum(student_top, tl.max(learnt, 0))
        chance = tl.exp(known - higher)
        scale = tl.exp(top - higher)
        total = total * scale + tl.sum(chance, 0)
        apart = apart * scale + tl.sum(tl.where(at < words, chance * (known - learnt), 0.0), 0)
        student_sum = tl.sum(tl.exp(learnt - student_higher), 0)
        student_total = student_total * tl.exp(student_top - student_higher) + student_sum
        top = higher
        student_top = student_higher
    loss = apart / total - top - tl.log(total) + student_top + tl.log(student_total)
    tl.store(out + tl.program_id(0), loss)


def distil(rows: int = 2048, words: int = 32000) -> tuple[dict[str, Run], Check]:
    teacher = noise(rows, words, dtype=torch.half) * 6
    student = teacher.roll(1, 1) * 0.5 + teacher * 0.5
    out = torch.empty(rows, device="cuda")
    return {
        "flawed": lambda: distil_kernel[(rows,)](teacher, student, out, words, 2048, num_warps=8),
        "two_passes": lambda: distil_two_kernel[(rows,)](teacher, student, out, words, 2048, num_warps=8),
        "online": lambda: distil_online_kernel[(rows,)](teacher, student, out, words, 4096, num_warps=8),
    }, lambda: out


# --- keys, one value of all tokens after another ---


@triton.jit
def cache_keys_kernel(keys, cache, length, width: tl.constexpr, tokens: tl.constexpr, values: tl.constexpr):
    """Keys of some tokens into a cache where a value's tokens lie side by side."""
    token = tl.program_id(0) * tokens + tl.arange(0, tokens)
    value = tl.program_id(1) * values + tl.arange(0, values)
    text = tl.program_id(2)
    found = tl.load(keys + (text * length + token)[:, None] * width + value[None, :])
    tl.store(cache + (text * width + value)[None, :] * length + token[:, None], found)


@triton.jit
def cache_keys_eights_kernel(
    keys, cache, length, width: tl.constexpr, tokens: tl.constexpr, values: tl.constexpr
):
    """The same into a cache that keeps eight values of a token together."""
    token = tl.program_id(0) * tokens + tl.arange(0, tokens)
    value = tl.program_id(1) * values + tl.arange(0, values)
    text = tl.program_id(2)
    found = tl.load(keys + (text * length + token)[:, None] * width + value[None, :])
    eight = (text * (width // 8) + value // 8)[None, :] * length + token[:, None]
    tl.store(cache + eight * 8 + (value % 8)[None, :], found)


def cache_keys(texts: int = 16, length: int = 4096, width: int = 1024) -> tuple[dict[str, Run], Check]:
    keys = noise(texts, length, width, dtype=torch.half)
    cache = torch.empty(texts, width, length, device="cuda", dtype=torch.half)
    eights = torch.empty(texts, width // 8, length, 8, device="cuda", dtype=torch.half)
    last = {"eights": False}

    def flawed() -> None:
        last["eights"] = False
        grid = (length // 4, 1, texts)
        cache_keys_kernel[grid](keys, cache, length, width, 4, width, num_warps=8)

    def tiles() -> None:
        last["eights"] = False
        grid = (length // 64, width // 64, texts)
        cache_keys_kernel[grid](keys, cache, length, width, 64, 64, num_warps=4)

    def together() -> None:
        last["eights"] = True
        grid = (length // 32, width // 64, texts)
        cache_keys_eights_kernel[grid](keys, eights, length, width, 32, 64, num_warps=4)

    def results() -> torch.Tensor:
        return eights.transpose(2, 3).reshape(texts, width, length) if last["eights"] else cache

    return {"flawed": flawed, "tiles": tiles, "eights": together}, results


# --- how large a channel's values get ---


@triton.jit
def ranges_kernel(
    x, out, rows_each: tl.constexpr, width: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
    shared: tl.constexpr,
):  # fmt: skip
    """The largest magnitude of each of some columns in ``rows_each`` rows."""
    column = tl.program_id(0) * columns + tl.arange(0, columns)
    first = tl.program_id(1) * rows_each
    top = tl.zeros((rows, columns), tl.float32)
    for start in range(0, rows_each, rows):
        row = first + start + tl.arange(0, rows)
        top = tl.maximum(top, tl.abs(tl.load(x + row[:, None] * width + column[None, :]).to(tl.float32)))
    if shared:
        tl.atomic_max(out + column, tl.max(top, 0))
    else:
        tl.store(out + column, tl.max(top, 0))


def ranges(rows: int = 32768, width: int = 4096) -> tuple[dict[str, Run], Check]:
    x = noise(rows, width, dtype=torch.half)
    x *= noise(width, dtype=torch.half)
    out = torch.zeros(width, device="cuda")

    def side(columns: int, tile: int, parts: int) -> Run:
        grid = (width // columns, parts)
        return lambda: ranges_kernel[grid](
            x, out, rows // parts, width, tile, columns, parts > 1, num_warps=8
        )

    sides = {"flawed": side(64, 128, 1), "parts": side(64, 128, 16), "narrow": side(16, 512, 1)}
    return sides, lambda: (out.clone(), out.zero_())[0]


STUDIES = (
    Study(
        "triton_distillation_three_passes",
        "Kullback-Leibler loss of 2048 rows of 32000 half logits of a student and its teacher in Triton",
        "three passes over both rows: for maxima, for sums and for the loss",
        (
            ("two_passes", "sums and loss in one pass after that for the maxima", ("redundant_loads",)),
            ("online", "one pass with running maxima", ("redundant_loads",)),
        ),
        distil,
        domain="language models",
    ),
    Study(
        "triton_key_cache_four_tokens_a_store",
        "65536 keys of 1024 half values into a cache that is transposed for its products, in Triton",
        "four tokens of all values a program: eight bytes side by side in the cache",
        (
            ("tiles", "64 tokens of 64 values a program", ("uncoalesced_access",)),
            ("eights", "a cache that keeps eight values of a token together", ("uncoalesced_access",)),
        ),
        cache_keys,
        domain="language models",
    ),
    Study(
        "triton_channel_ranges_few_programs",
        "the largest magnitude of each of 4096 channels of 32768 tokens in half precision in Triton",
        "64 programs, each for all tokens of 64 channels",
        (
            ("parts", "a sixteenth of the tokens a program, maxima by atomics", ("small_grid",)),
            ("narrow", "sixteen channels a program: 256 programs", ("small_grid",)),
        ),
        ranges,
        domain="quantisation",
    ),
)

if __name__ == "__main__":
    sys.exit(main(STUDIES))
