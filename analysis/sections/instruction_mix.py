"""Instruction mix: what the kernel executed, by opcode, by class and by pipe, per warp and per thread.

Warp-level counts say what the schedulers had to issue; thread-level counts (predicated-on threads) what it achieved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from gemmprof import metrics
from gemmprof.analysis import opcodes
from gemmprof.analysis.figure import collected, declared, derived, figure, unlisted
from gemmprof.analysis.figure import total as sum_of
from gemmprof.analysis.sections.by_line import by_address, constants_set
from gemmprof.base.foreign_files import facts
from gemmprof.base.printable import lower_first
from gemmprof.model import KernelProfile, NotCollected

NAME = "instruction_mix"
TITLE = "Instruction mix"
GROUP = metrics.INSTRUCTION_MIX


@dataclass(frozen=True, slots=True)
class OpcodeCount:
    """Executions of one opcode (``LDS``) or opcode with modifiers (``LDS.128``)."""

    opcode: str
    instruction_class: str  # key of the class, see `opcodes.CLASSES`
    meaning: str  # the opcode in words, '' if gemmprof does not know it
    executed: int = figure("Warp instructions")
    thread_executed: int | None = figure("Thread instructions")  # of threads that were predicated on


@dataclass(frozen=True, slots=True)
class ClassCount:
    """Executions of one class of instructions, with its opcodes (most executed first)."""

    key: str
    title: str
    opcodes: tuple[OpcodeCount, ...]
    executed: int = figure("Warp instructions")
    thread_executed: int | None = figure("Thread instructions")
    share: float = figure("Share", "share", "of all executed warp instructions")


_PIPE_ORDER = ("cycles_of_active", "instructions_of_active", "cycles_of_elapsed", "instructions_of_elapsed")


@dataclass(frozen=True, slots=True)
class PipeUse:
    """How busy one execution pipe was, in per cent of its peak; None where that was not collected.

    ncu has four tables of it: by busy cycles and by executed instructions, each over the cycles in which the SM was
    active and over all elapsed ones. A pipe has rows in some of them.
    """

    pipe: str  # ncu's short name: ``fma``, ``lsu``, ``tensor_op_hmma``
    label: str  # the one that it prints
    meaning: str
    cycles_of_active: float | None = figure("Busy cycles of active ones", "%")
    cycles_of_elapsed: float | None = figure("Busy cycles of elapsed ones", "%")
    instructions_of_active: float | None = figure("Instructions of the most in active cycles", "%")
    instructions_of_elapsed: float | None = figure("Instructions of the most in elapsed cycles", "%")

    @property
    def counts(self) -> str:
        """What `percent` counts, by the title of its figure: busy cycles before instructions, of active ones first."""
        known = next((name for name in _PIPE_ORDER if getattr(self, name) is not None), _PIPE_ORDER[0])
        return lower_first(declared(PipeUse)[known].title)

    @derived("Pipe use", "%", "of its peak, by what its row says", listed=False)
    def percent(self) -> float:
        """One number: busy cycles before instructions, of active cycles before elapsed ones."""
        known = (getattr(self, name) for name in _PIPE_ORDER)
        return next((percent for percent in known if percent is not None), 0.0)


@dataclass(frozen=True, slots=True)
class Ratios:
    """Ratios that decide a GEMM's speed; None where the kernel executes none of the divisor or counts are absent."""

    # arithmetic that the kernel does most of: ``HGMMA``, ``FFMA``, ``DFMA`` …; '' if it does none
    main_opcode: str
    main_share: float = unlisted("Main arithmetic, share of all", "share")
    main_per_shared_load: float | None = figure("Arithmetic per shared load", "", "LDS and LDSM")
    main_per_global_load: float | None = figure("Arithmetic per global load", "", "LDG and LDGSTS")
    ffma_per_shared_load: float | None = unlisted(
        "FFMA per shared load", "", "LDS and LDSM", alone="FFMA per LDS", shown=False
    )
    ffma_per_global_load: float | None = unlisted(
        "FFMA per global load", "", "LDG and LDGSTS", alone="FFMA per LDG", shown=False
    )
    bytes_per_shared_load: float | None = figure(
        "Bytes per thread and shared load",
        "byte",
        "4 for LDS, 16 for LDS.128",
        alone="Bytes of a thread's LDS",
    )
    bytes_per_global_load: float | None = figure(
        "Bytes per thread and global load",
        "byte",
        "4 for LDG.E, 16 for LDG.E.128",
        alone="Bytes of a thread's LDG",
    )
    math_share: float = figure("Arithmetic, share of all", "share", "floating-point and tensor")
    fma_share: float = figure(
        "Fused multiply-adds, share of all",
        "share",
        "FFMA, DFMA, HFMA2; those that only set a register to a constant do not count",
        alone="Share of multiply-adds",
    )


@dataclass(frozen=True, slots=True)
class InstructionMix:
    """Everything executed, most executed first; all counts are of warp instructions unless they say threads.

    ``executed`` is the sum over the opcodes and the whole of all shares here. ``executed_counter`` is what ncu prints
    as "Executed Instructions": the same, but counted in another pass, so it differs where passes differ (a kernel that
    spins on a lock).
    """

    opcodes: tuple[OpcodeCount, ...]
    modifiers: tuple[OpcodeCount, ...]  # the same by full opcode (``LDG.E.128``); empty if not collected
    classes: tuple[ClassCount, ...]
    pipes: tuple[PipeUse, ...]
    ratios: Ratios
    executed: int = figure("Executed", "inst", "warp instructions", alone="Instructions executed")
    executed_counter: int | None = figure(
        "Executed, by its own counter",
        meaning="counted in another pass",
        alone="Instructions executed",
        of=metrics.INSTRUCTIONS_EXECUTED,
    )
    issued: int | None = figure(
        "Issued",
        meaning="above those executed where an instruction was issued again",
        alone="Instructions issued",
        of=metrics.INSTRUCTIONS_ISSUED,
    )
    executed_per_scheduler: float | None = figure(
        "Executed per scheduler", of=metrics.INSTRUCTIONS_EXECUTED_PER_SCHEDULER
    )
    issued_per_scheduler: float | None = figure(
        "Issued per scheduler", of=metrics.INSTRUCTIONS_ISSUED_PER_SCHEDULER
    )
    thread_executed: int | None = figure("Thread instructions", "", "of threads that were predicated on")
    # ncu's own, coarser, with their executions; empty before ncu 2025
    categories: tuple[tuple[str, int], ...] = ()
    missing: NotCollected | None = None

    def count(self, *opcodes: str) -> int:
        """Warp-level executions of these opcodes together."""
        return sum(item.executed for item in self.opcodes if item.opcode in opcodes)

    def share(self, executed: int) -> float:
        """``executed`` as a share of all executed instructions, 0 to 1."""
        return executed / self.executed if self.executed else 0.0


# Label (ncu's, where it has one) and meaning of each pipe.
_PIPES = {pipe: (label, meaning) for pipe, label, meaning in facts(__file__, "pipes.csv")}


def analyse(profile: KernelProfile) -> InstructionMix | NotCollected:
    """Instruction mix of one launch."""
    executed = counts_by_opcode(profile, metrics.EXECUTED_PER_OPCODE)
    if executed is None:
        absent = (metrics.EXECUTED_PER_OPCODE,)
        return NotCollected(absent, GROUP.remedy_for(absent))
    finer = {metric: finer_counts(profile, metric) for metric in _BY_ADDRESS}
    threads = finer[metrics.THREADS_PER_OPCODE]
    by_opcode = _opcode_counts(executed, threads)
    by_modifier = finer[metrics.EXECUTED_PER_MODIFIER] or {}
    modifiers = _opcode_counts(by_modifier, finer[metrics.THREADS_PER_MODIFIER])
    known = {metric for metric, counts in finer.items() if counts is not None}
    total = sum_of(executed)
    working = _without_constants(profile, by_opcode)
    by_category = counts_by_opcode(profile, metrics.EXECUTED_PER_CATEGORY) or {}
    categories = ((key, sum_of(by_category, [key])) for key in by_category)
    return InstructionMix(
        **collected(InstructionMix, profile),
        executed=total,
        thread_executed=None if threads is None else sum_of(threads),
        opcodes=by_opcode,
        modifiers=modifiers,
        classes=_classes(working, total),
        pipes=_pipes(profile),
        ratios=_ratios(working, modifiers, total),
        categories=tuple(sorted(categories, key=lambda item: -item[1])),
        missing=GROUP.incomplete(profile.metrics.keys() | known),
    )


# From which count per instruction a count per opcode follows, and whether its keys keep the modifiers.
_BY_ADDRESS = {
    metrics.EXECUTED_PER_MODIFIER: (metrics.INSTRUCTIONS_BY_ADDRESS, True),
    metrics.THREADS_PER_OPCODE: (metrics.THREADS_PREDICATED_BY_ADDRESS, False),
    metrics.THREADS_PER_MODIFIER: (metrics.THREADS_PREDICATED_BY_ADDRESS, True),
}


def finer_counts(profile: KernelProfile, metric: str) -> dict[str, int] | None:
    """Count by opcode of a metric: as collected, else summed over the instructions of the source; None without both.

    The two are equal to the last execution in every recorded report that has both.
    """
    counts = counts_by_opcode(profile, metric)
    source, keep_modifiers = _BY_ADDRESS[metric]
    if counts is not None or source not in profile.instances or not profile.source.instructions:
        return counts
    values, counts = by_address(profile, source) or {}, {}
    for instruction in profile.source.instructions:
        opcode = opcodes.opcode_of(instruction.sass)
        if opcode and (value := values.get(instruction.address)):
            key = opcode if keep_modifiers else opcode.partition(".")[0]
            counts[key] = counts.get(key, 0) + value
    return profile.named(counts, source)


def counts_by_opcode(profile: KernelProfile, metric: str) -> dict[str, int] | None:
    """Count by opcode of an instanced metric; None if it was not collected."""
    instances = profile.instances.get(metric)
    if instances is None:
        return None
    counts: dict[str, int] = {}
    for key, value in instances.items():
        if not isinstance(value, str) and math.isfinite(value):
            counts[str(key)] = counts.get(str(key), 0) + int(value)
    return profile.named(counts, metric)


def _opcode_counts(executed: dict[str, int], threads: dict[str, int] | None) -> tuple[OpcodeCount, ...]:
    found = []
    for opcode in sorted(executed, key=lambda opcode: (-executed[opcode], opcode)):
        info, count = opcodes.info(opcode), sum_of(executed, [opcode])
        own = None if threads is None or opcode not in threads else sum_of(threads, [opcode])
        found.append(OpcodeCount(opcode, info.instruction_class, info.meaning, count, own))
    return tuple(found)


def _without_constants(profile: KernelProfile, counts: tuple[OpcodeCount, ...]) -> tuple[OpcodeCount, ...]:
    """The counts with the half-precision multiply-adds that only set a register told apart as moves."""
    warps = constants_set(profile, metrics.INSTRUCTIONS_BY_ADDRESS)
    threads = constants_set(profile, metrics.THREADS_PREDICATED_BY_ADDRESS)
    found = next((item for item in counts if item.opcode == "HFMA2"), None)
    if not warps or found is None or warps > found.executed:
        return counts
    left = None if found.thread_executed is None or threads is None else found.thread_executed - threads
    rest = replace(found, executed=found.executed - warps, thread_executed=left)
    moves = OpcodeCount("HFMA2", "move", "sets a register to a constant", warps, threads)
    others = (item for item in counts if item is not found)
    return (*others, *((rest,) if rest.executed else ()), moves)


def _classes(counts: tuple[OpcodeCount, ...], total: int) -> tuple[ClassCount, ...]:
    found = []
    for key, title in opcodes.CLASSES.items():
        if members := tuple(item for item in counts if item.instruction_class == key):
            executed = sum(item.executed for item in members)
            known = [item.thread_executed for item in members if item.thread_executed is not None]
            threads = sum(known) if len(known) == len(members) else None
            share = executed / total if total else 0.0
            found.append(ClassCount(key, title, members, executed, threads, share))
    return tuple(sorted(found, key=lambda item: -item.executed))


def _pipes(profile: KernelProfile) -> tuple[PipeUse, ...]:
    """Every pipe of the report, busiest first."""
    found: dict[str, dict[str, float]] = {}
    for name, pipe, kind in metrics.pipe_metrics(profile.metrics):
        if (percent := profile.number(name)) is not None:
            found.setdefault(pipe, {})[kind] = percent
    pipes = []
    for pipe, percents in found.items():
        label, meaning = _PIPES.get(pipe, (pipe.replace("_", " ").upper(), ""))
        pipes.append(PipeUse(pipe, label, meaning, **percents))
    return tuple(sorted(pipes, key=lambda use: (-use.percent, use.label)))


_TENSOR_WEIGHT = 64  # a warp-wide matrix instruction does at least this many times the work of a scalar one


def _ratios(counts: tuple[OpcodeCount, ...], modifiers: tuple[OpcodeCount, ...], total: int) -> Ratios:
    math = [item for item in counts if item.instruction_class in opcodes.MATH_CLASSES]

    def executed(*names: str) -> int:
        mine = (item for item in counts if item.instruction_class != "move")
        return sum(item.executed for item in mine if item.opcode in names)

    def share(part: int) -> float:
        return part / total if total else 0.0

    def work(item: OpcodeCount) -> int:
        return item.executed * (_TENSOR_WEIGHT if item.instruction_class == "tensor" else 1)

    found: dict[str, float | None] = {}
    main = max(math, key=work).opcode if math else ""
    for space, loads in (("shared", ("LDS", "LDSM")), ("global", ("LDG", "LDGSTS"))):
        loaded = executed(*loads)
        found[f"main_per_{space}_load"] = executed(main) / loaded if main and loaded else None
        found[f"ffma_per_{space}_load"] = executed("FFMA") / loaded if loaded else None
        variants = [item for item in modifiers if item.opcode.partition(".")[0] in loads]
        moved = sum(item.executed * opcodes.bytes_per_thread(item.opcode) for item in variants)
        often = sum(item.executed for item in variants)
        found[f"bytes_per_{space}_load"] = moved / often if often else None
    return Ratios(
        main,
        main_share=share(executed(main) if main else 0),
        math_share=share(sum(item.executed for item in math)),
        fma_share=share(executed(*opcodes.FUSED_MULTIPLY_ADD)),
        **found,
    )
