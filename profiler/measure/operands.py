"""Operands of one matrix product on a device: fresh random data between guard bands, the output poisoned.

A guard band is a strip of one particular NaN before and after a matrix, in the same allocation. A kernel that reads
past the edge of A or B computes NaN, one that writes past the edge of C leaves a band that no longer holds the
pattern, and an element of C that nobody wrote still holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gemmprof.gpu.dtypes import ELEMENT_TYPES, FLOAT32, ElementType
from gemmprof.model import Problem, Stage

GUARD_ELEMENTS = 8192  # in a guard band; a multiple of 128, so that the matrix stays aligned


@dataclass(frozen=True, slots=True)
class GuardedMatrix:
    """A contiguous matrix [rows, columns] (or the transpose of one) in the middle of a larger allocation."""

    buffer: Any
    matrix: Any
    element: ElementType

    @classmethod
    def poisoned(
        cls, rows: int, columns: int, device: Any, element: ElementType = FLOAT32, *, transposed: bool = False
    ) -> GuardedMatrix:
        """Allocate and fill everything, the matrix too, with the poison; ``transposed`` puts columns side by side."""
        import torch

        count = rows * columns
        buffer = torch.empty(count + 2 * GUARD_ELEMENTS, dtype=getattr(torch, element.name), device=device)
        middle = buffer[GUARD_ELEMENTS : GUARD_ELEMENTS + count]
        matrix = middle.view(columns, rows).t() if transposed else middle.view(rows, columns)
        guarded = cls(buffer, matrix, element)
        guarded.poison()
        return guarded

    @classmethod
    def holding(cls, values: Any, element: ElementType = FLOAT32) -> GuardedMatrix:
        """Allocate with guard bands around a copy of ``values`` [rows, columns]."""
        guarded = cls.poisoned(values.shape[0], values.shape[1], values.device, element)
        guarded.matrix.copy_(values)
        return guarded

    def poison(self) -> None:
        """Fill everything with the poison again."""
        self._bits(self.buffer).fill_(self.element.poison_bits)

    def overwritten_guards(self) -> int:
        """How many elements of the guard bands no longer hold the poison."""
        bits, poison = self._bits(self.buffer), self.element.poison_bits
        before, after = bits[:GUARD_ELEMENTS], bits[-GUARD_ELEMENTS:]
        return int((before != poison).sum() + (after != poison).sum())

    def unwritten_elements(self) -> int:
        """How many elements of the matrix still hold the poison."""
        return int((self._bits(self.matrix) == self.element.poison_bits).sum())

    def snapshot(self) -> Any:
        """A copy of everything, guard bands included, for `holds`."""
        return self._bits(self.buffer).clone()

    def holds(self, snapshot: Any) -> bool:
        """Whether nothing changed since the snapshot, bit for bit."""
        import torch

        return bool(torch.equal(self._bits(self.buffer), snapshot))

    def _bits(self, tensor: Any) -> Any:
        """The elements as integers of their size: NaN is not equal to itself."""
        import torch

        return tensor.view({4: torch.int32, 2: torch.int16, 1: torch.int8}[self.element.bytes])


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
    """Standard normal A and B from a generator of their own, C poisoned; torch.OutOfMemoryError if they do not fit.

    B is stored transposed where the type's tensor cores read it so.
    """
    import torch

    generator = torch.Generator(device=device)
    generator.manual_seed(seed)

    element, c_element = ELEMENT_TYPES[problem.dtype], ELEMENT_TYPES[problem.c_dtype]

    def normal(rows: int, columns: int, *, transposed: bool = False) -> GuardedMatrix:
        guarded = GuardedMatrix.poisoned(rows, columns, device, element, transposed=transposed)
        if element.bytes > 1:
            guarded.matrix.normal_(generator=generator)
        else:  # torch draws no 8-bit numbers
            guarded.matrix.copy_(torch.empty(rows, columns, device=device).normal_(generator=generator))
        return guarded

    a, b = normal(problem.m, problem.k), normal(problem.k, problem.n, transposed=element.k_major)
    c = GuardedMatrix.poisoned(problem.m, problem.n, device, c_element)
    return Operands(problem, a, b, c, seed)
