"""What machine code a kernel is: a fingerprint, its opcodes, and how much two codes are alike."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gemmprof.analysis.opcodes import opcode_of

GRAM = 4  # codes are compared by the runs of this many opcodes that they share
SKETCH = 128  # how many of the smallest hashes of such runs are kept (Broder's bottom-k sketch)


@dataclass(frozen=True, slots=True)
class Code:
    """The machine code of one function. Names, addresses and source lines are no part of it.

    Attributes:
        digest: SHA-256 of the code's bytes.
        instructions: how many instructions it has; 0 if it was not disassembled.
        opcodes: how many of each opcode.
        sketch: hashes of runs of opcodes, for likeness.
    """

    digest: str
    instructions: int = 0
    opcodes: Mapping[str, int] = field(default_factory=dict)
    sketch: tuple[int, ...] = ()


def code_of(digest: str, sass: Iterable[str]) -> Code:
    """The code from its fingerprint and its lines of SASS."""
    opcodes = [opcode for line in sass if (opcode := opcode_of(line))]
    return Code(digest, len(opcodes), dict(Counter(opcodes)), _sketch(opcodes))


def _sketch(opcodes: Sequence[str]) -> tuple[int, ...]:
    grams = {" ".join(opcodes[at : at + GRAM]) for at in range(max(len(opcodes) - GRAM + 1, 1))}
    hashes = (int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=6).digest(), "big") for gram in grams)
    return tuple(sorted(hashes)[:SKETCH])


def likeness(first: Code | None, second: Code | None) -> float:
    """0 to 1: share of runs of opcodes that two codes have in common, times how alike their lengths are."""
    if first is None or second is None:
        return 0.0
    if first.digest and first.digest == second.digest:
        return 1.0
    if not (first.sketch and second.sketch):
        return 0.0
    kept = set(sorted({*first.sketch, *second.sketch})[:SKETCH])
    shared = kept & set(first.sketch) & set(second.sketch)
    lengths = sorted((first.instructions, second.instructions))
    return len(shared) / len(kept) * lengths[0] / max(lengths[1], 1)


def opcode_changes(before: Code, after: Code) -> list[tuple[str, int, int]]:
    """Opcodes whose number differs: (opcode, before, after), the largest differences first."""
    names = {*before.opcodes, *after.opcodes}
    changes = [(name, before.opcodes.get(name, 0), after.opcodes.get(name, 0)) for name in names]
    return sorted(
        (change for change in changes if change[1] != change[2]),
        key=lambda change: (-abs(change[2] - change[1]), change[0]),
    )
