"""Instruction mix: what the kernel executed, by opcode, by class and by pipe, per warp and per thread.

Warp-level counts say what the schedulers had to issue; thread-level counts (predicated-on threads) what it achieved.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof.model import NotCollected

NAME = "instruction_mix"
TITLE = "Instruction mix"


@dataclass(frozen=True, slots=True)
class OpcodeCount:
    """Executions of one opcode (``LDS``) or opcode with modifiers (``LDS.128``).

    ``executed`` counts warps, ``thread_executed`` threads that were predicated on (None: not collected).
    """

    opcode: str
    executed: int
    thread_executed: int | None
    instruction_class: str
    """Key of the class, see `opcodes.CLASSES`."""
    meaning: str
    """The opcode in words, '' if gemmprof does not know it."""


@dataclass(frozen=True, slots=True)
class ClassCount:
    """Executions of one class of instructions, with its opcodes (most executed first)."""

    key: str
    title: str
    executed: int
    thread_executed: int | None
    share: float
    """Of all executed warp instructions, 0 to 1."""
    opcodes: tuple[OpcodeCount, ...]


@dataclass(frozen=True, slots=True)
class PipeUse:
    """How busy one execution pipe was. ``pipe`` is ncu's short name (``fma``, ``lsu``, ``tensor_op_hmma``)."""

    pipe: str
    label: str
    meaning: str
    metric: str
    percent: float
    """Of the pipe's peak, in SM-active cycles."""


@dataclass(frozen=True, slots=True)
class Ratios:
    """Ratios that decide a GEMM's speed; None where the kernel executes none of the divisor or counts are absent."""

    ffma_per_shared_load: float | None
    """FFMA per LDS instruction (LDS and LDSM)."""
    ffma_per_global_load: float | None
    """FFMA per global load instruction (LDG and LDGSTS)."""
    fma_share: float
    """Share of fused multiply-adds (FFMA, DFMA, HFMA2) in all executed instructions, 0 to 1."""
    math_share: float
    """Share of floating-point and tensor arithmetic in all executed instructions, 0 to 1."""
    bytes_per_shared_load: float | None
    """Mean bytes that one thread asks for with one LDS: 4 for LDS, 16 for LDS.128."""
    bytes_per_global_load: float | None
    """Mean bytes that one thread asks for with one LDG: 4 for LDG.E, 16 for LDG.E.128."""


@dataclass(frozen=True, slots=True)
class InstructionMix:
    """Everything executed, most executed first. ``executed`` and ``issued`` count warp instructions."""

    executed: int
    issued: int | None
    thread_executed: int | None
    opcodes: tuple[OpcodeCount, ...]
    modifiers: tuple[OpcodeCount, ...]
    """The same by full opcode (``LDG.E.128``); empty if not collected."""
    classes: tuple[ClassCount, ...]
    pipes: tuple[PipeUse, ...]
    ratios: Ratios
    missing: NotCollected | None = None

    def count(self, *opcodes: str) -> int:
        """Warp-level executions of these opcodes together."""
        return sum(item.executed for item in self.opcodes if item.opcode in opcodes)

    def share(self, executed: int) -> float:
        """``executed`` as a share of all executed instructions, 0 to 1."""
        return executed / self.executed if self.executed else 0.0


RESULT = InstructionMix
