"""Operands of one matrix product on a device: fresh random data between guard bands, the output poisoned.

A guard band is a strip of one particular NaN before and after a matrix, in the same allocation. A kernel that reads
past the edge of A or B computes NaN, one that writes past the edge of C leaves a band that no longer holds the
pattern, and an element of C that nobody wrote still holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gemmprof.model import Problem, Stage

POISON_BITS = 0x7FC05AFE
"""A quiet NaN whose payload no arithmetic produces: an operation on it sets or keeps other bits on every GPU seen."""

GUARD_ELEMENTS = 8192
"""Floats in a guard band; a multiple of 64, so that the matrix keeps the alignment of its allocation."""


@dataclass(frozen=True, slots=True)
class GuardedMatrix:
    """A contiguous float32 matrix [rows, columns] in the middle of a larger allocation."""

    buffer: Any
    matrix: Any

    @classmethod
    def poisoned(cls, rows: int, columns: int, device: Any) -> GuardedMatrix:
        """Allocate and fill everything, the matrix too, with the poison."""
        import torch

        count = rows * columns
        buffer = torch.empty(count + 2 * GUARD_ELEMENTS, dtype=torch.float32, device=device)
        buffer.view(torch.int32).fill_(POISON_BITS)
        return cls(buffer, buffer[GUARD_ELEMENTS : GUARD_ELEMENTS + count].view(rows, columns))

    @classmethod
    def holding(cls, values: Any) -> GuardedMatrix:
        """Allocate with guard bands around a copy of ``values`` [rows, columns]."""
        guarded = cls.poisoned(values.shape[0], values.shape[1], values.device)
        guarded.matrix.copy_(values)
        return guarded

    def poison(self) -> None:
        """Fill everything with the poison again."""
        import torch

        self.buffer.view(torch.int32).fill_(POISON_BITS)

    def overwritten_guards(self) -> int:
        """How many elements of the guard bands no longer hold the poison."""
        import torch

        bits = self.buffer.view(torch.int32)
        before, after = bits[:GUARD_ELEMENTS], bits[-GUARD_ELEMENTS:]
        return int((before != POISON_BITS).sum() + (after != POISON_BITS).sum())

    def unwritten_elements(self) -> int:
        """How many elements of the matrix still hold the poison."""
        import torch

        return int((self.matrix.view(torch.int32) == POISON_BITS).sum())


@dataclass(frozen=True, slots=True)
class Operands:
    """A [m, k], B [k, n] and C [m, n] of one problem, each between guard bands, all on one device."""

    problem: Problem
    a: GuardedMatrix
    b: GuardedMatrix
    c: GuardedMatrix
    seed: int = 0

    def start_values(self) -> Any:
        """Standard normal values [m, n] that C may hold before a product with beta, the same on every call."""
        import torch

        generator = torch.Generator(device=self.c.matrix.device)
        generator.manual_seed(self.seed + 1)
        return torch.empty_like(self.c.matrix).normal_(generator=generator)


def generator_seed(seed: int, stage: Stage, problem: Problem) -> int:
    """A seed that differs between stages and problems and is the same in every run with the same ``seed``."""
    mixed = seed
    for part in (stage.number, problem.m, problem.n, problem.k):
        mixed = (mixed * 1_000_003 + part + 1) % (1 << 61)
    return mixed


def random_operands(problem: Problem, *, seed: int, device: Any) -> Operands:
    """Standard normal A and B from a generator of their own, C poisoned.

    Raises:
        torch.OutOfMemoryError: if the three matrices do not fit.
    """
    import torch

    generator = torch.Generator(device=device)
    generator.manual_seed(seed)

    def normal(rows: int, columns: int) -> GuardedMatrix:
        guarded = GuardedMatrix.poisoned(rows, columns, device)
        guarded.matrix.normal_(generator=generator)
        return guarded

    return Operands(
        problem,
        normal(problem.m, problem.k),
        normal(problem.k, problem.n),
        GuardedMatrix.poisoned(problem.m, problem.n, device),
        seed,
    )
