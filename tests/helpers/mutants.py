"""Damaged variants of a real report, each from a seed: what disks, transfers, editors and enemies do to a file."""

from __future__ import annotations

import gzip
import lzma
import random
import struct
from collections.abc import Callable, Iterator

import zstandard
from reports_in_bytes import blocks, boundaries, fields_of, varint, varint_at

Change = Callable[[random.Random, bytes], bytes]


def flipped_bit(dice: random.Random, content: bytes) -> bytes:
    """One bit turned."""
    changed = bytearray(content)
    changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def flipped_bits(dice: random.Random, content: bytes) -> bytes:
    """Up to sixty-four bits turned, near each other."""
    changed = bytearray(content)
    start = dice.randrange(len(changed))
    for _ in range(dice.randrange(2, 64)):
        changed[min(len(changed) - 1, start + dice.randrange(4096))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def flipped_in_a_head(dice: random.Random, content: bytes) -> bytes:
    """A byte changed where lengths and counts stand: in the first bytes of a block or an item."""
    changed = bytearray(content)
    at = dice.choice(boundaries(content)[:-1]) + dice.randrange(64)
    changed[min(at, len(changed) - 1)] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
    return bytes(changed)


def edited_field(dice: random.Random, content: bytes) -> bytes:
    """A field somewhere in a launch that keeps its length and has another value: the file's frame stays whole."""
    parts = blocks(content)
    number = dice.choice([i for i, part in enumerate(parts) if i and len(part) > 4096 + len(_head(part))])
    part = bytearray(parts[number])
    header = struct.unpack_from("<I", part)[0]
    start = 4 + header + 4
    end = start + struct.unpack_from("<I", part, 4 + header)[0]
    for _ in range(8):  # go down a few levels
        fields = _fields(bytes(part[start:end]))
        if not fields:
            break
        _, kind, _, value, stop = dice.choice(fields)
        begin, finish = start + value, start + stop
        if kind == 2 and finish - begin > 2 and dice.random() < 0.8:
            start, end = begin, finish
            continue
        fresh = _fresh(dice, kind, finish - begin)
        part[begin:finish] = fresh
        break
    parts[number] = bytes(part)
    return b"".join(parts)


def _head(part: bytes) -> bytes:
    return part[: 4 + struct.unpack_from("<I", part)[0]]


def _fields(message: bytes) -> list[tuple[int, int, int, int, int]]:
    try:
        found = fields_of(message)
    except IndexError:
        return []
    return found if found and found[-1][-1] == len(message) else []


def _fresh(dice: random.Random, kind: int, length: int) -> bytes:
    if kind == 1:
        special = (
            0.0,
            -1.0,
            float("nan"),
            float("inf"),
            -float("inf"),
            1e308,
            5e-324,
            -0.0,
            2.0**63,
            dice.random(),
        )
        return struct.pack("<d", dice.choice(special))
    if kind == 0:
        return (
            b"\x80" * (length - 1) + bytes([dice.choice((0, 1, 0x7F))])
            if length > 1
            else bytes([dice.randrange(128)])
        )
    return bytes(dice.choice((0, 0xFF, dice.randrange(256))) for _ in range(length))


def cut(dice: random.Random, content: bytes) -> bytes:
    """The end is missing."""
    return content[: dice.randrange(len(content))]


def cut_at_a_block(dice: random.Random, content: bytes) -> bytes:
    """The end is missing, from exactly between two blocks on."""
    return content[: dice.choice(boundaries(content)[:-1])]


def removed_bytes(dice: random.Random, content: bytes) -> bytes:
    """Some bytes in the middle are missing."""
    start = dice.randrange(len(content))
    return content[:start] + content[start + dice.randrange(1, 5000) :]


def inserted_bytes(dice: random.Random, content: bytes) -> bytes:
    """Some bytes too many in the middle."""
    start = dice.randrange(len(content))
    return content[:start] + dice.randbytes(dice.randrange(1, 200)) + content[start:]


def zeroed_page(dice: random.Random, content: bytes) -> bytes:
    """A sector of the disk that was never written."""
    start = dice.randrange(len(content)) & ~511
    return content[:start] + bytes(len(content[start : start + 4096])) + content[start + 4096 :]


def removed_block(dice: random.Random, content: bytes) -> bytes:
    """A block is missing."""
    parts = blocks(content)
    del parts[dice.randrange(1, len(parts))]
    return b"".join(parts)


def doubled_block(dice: random.Random, content: bytes) -> bytes:
    """A block stands there twice, the second time somewhere behind the first."""
    parts = blocks(content)
    which = dice.randrange(1, len(parts))
    parts.insert(dice.randrange(which + 1, len(parts) + 1), parts[which])
    return b"".join(parts)


def swapped_blocks(dice: random.Random, content: bytes) -> bytes:
    """Two blocks changed places."""
    parts = blocks(content)
    one, two = dice.sample(range(1, len(parts)), 2)
    parts[one], parts[two] = parts[two], parts[one]
    return b"".join(parts)


def edited_length(dice: random.Random, content: bytes) -> bytes:
    """A length or a count in a block's header says something else."""
    parts = blocks(content)
    which = dice.randrange(1, len(parts))
    part = parts[which]
    size = struct.unpack_from("<I", part)[0]
    header = part[4 : 4 + size]
    numbers = [field for field in fields_of(header) if field[1] == 0]
    if not numbers or dice.random() < 0.2:
        parts[which] = struct.pack("<I", dice.choice((0, size - 1, size + 1, 0xFFFFFFFF))) + part[4:]
        return b"".join(parts)
    _, _, _, start, end = dice.choice(numbers)
    value = varint_at(header, start)[0]
    value = max(0, dice.choice((0, value - 1, value + 1, value * 2, 2**31, 2**63, 2**64 - 1)))
    header = header[:start] + varint(value) + header[end:]
    parts[which] = struct.pack("<I", len(header)) + header + part[4 + size :]
    return b"".join(parts)


def trailing(dice: random.Random, content: bytes) -> bytes:
    """Something stands behind the report."""
    more = dice.choice(
        (bytes(dice.randrange(1, 5000)), dice.randbytes(dice.randrange(1, 500)), content[:5000])
    )
    return content + more


def _compressed(change: Change) -> Change:
    def changed(dice: random.Random, content: bytes) -> bytes:
        pack = dice.choice((gzip.compress, lzma.compress, zstandard.compress))
        return change(dice, pack(content))

    return changed


CHANGES: dict[str, Change] = {
    change.__name__: change
    for change in (
        flipped_bit, flipped_bits, flipped_in_a_head, edited_field, cut, cut_at_a_block, removed_bytes, inserted_bytes,
        zeroed_page, removed_block, doubled_block, swapped_blocks, edited_length, trailing,
    )
}  # fmt: skip
CHANGES["flipped bit under compression"] = _compressed(flipped_bit)
CHANGES["cut under compression"] = _compressed(cut)
CHANGES["compressed after damage"] = lambda dice, content: zstandard.compress(edited_field(dice, content))


def mutants(content: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """``count`` damaged variants with their kind, the same ones for the same seed."""
    for number in range(count):
        dice = random.Random(f"{seed}/{number}")
        kind = tuple(CHANGES)[number % len(CHANGES)]
        yield kind, CHANGES[kind](dice, content)
