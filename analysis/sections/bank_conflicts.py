"""Shared-memory bank conflicts: how many passes (wavefronts) an access takes beyond what its data needs.

Shared memory has 32 banks of 4 bytes. Threads of one warp that touch different words of one bank are served one
after the other, each pass is a wavefront. Two sources tell of it: hardware counters by kind of access for the whole
launch, and an instrumented pass that looks at the addresses of each instruction. They differ: the hardware also counts
what has to wait for the data stage for other reasons, so a few per cent of "conflicts" without a colliding address are
nothing that a layout could remove (`BankConflicts.excess_of` is 0 then).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from gemmprof import metrics
from gemmprof.analysis.figure import derived, difference, figure, quotient, unlisted
from gemmprof.analysis.sections import by_line
from gemmprof.gpu.arch import has
from gemmprof.model import KernelProfile, NotCollected

NAME = "bank_conflicts"
TITLE = "Shared-memory bank conflicts"
GROUP = metrics.BANK_CONFLICTS


@dataclass(frozen=True, slots=True)
class SharedOperation:
    """One kind of shared-memory access over the whole launch, from the hardware counters."""

    name: str  # ``load``, ``store``, ``atomic``, ``ldmatrix``, ``stmatrix``, ``async_copy`` or ``wgmma``
    title: str  # the same in words, with the SASS opcodes
    # warp-level instructions as Nsight Compute's rule counts them, None where no counter tells
    requests: float | None = figure("Requests")
    wavefronts: float | None = figure("Wavefronts", "", "passes through the data stage of shared memory")
    conflicts: float | None = figure("Conflicts", "", "wavefronts that bank conflicts added")
    part_of: str = ""  # name of the kind whose wavefronts include this one's, '' for a kind of its own
    # matrix stores, whose wavefronts the counter of stores includes but ncu's count of requests does not; 0 for other
    # kinds
    matrix_requests: float = 0.0

    @derived("Wavefronts per request")
    def n_way(self) -> float | None:
        """Wavefronts a request, None without requests.

        That is ncu's "n-way bank conflict", except where a kernel stores with STSM: ncu divides the wavefronts of
        all stores by the plain ones alone and arrives at conflicts of hundreds of ways.
        """
        if self.wavefronts is None or self.requests is None or not self.requests + self.matrix_requests:
            return None
        return self.wavefronts / (self.requests + self.matrix_requests)

    share = derived("Share of conflicts", "%", "of the wavefronts")(quotient("conflicts", "wavefronts", 100))


@dataclass(frozen=True, slots=True)
class SharedAccess(by_line.Counted):
    """Executions by warps and shared-memory wavefronts of one instruction or one line, as the pass instruments them."""

    executed: int | None = figure("Executed", of=metrics.INSTRUCTIONS_BY_ADDRESS)
    wavefronts: int = figure("Wavefronts", of=metrics.SHARED_WAVEFRONTS_BY_ADDRESS)
    ideal: int = figure("Needed", "", "wavefronts without conflicts", of=metrics.SHARED_IDEAL_BY_ADDRESS)
    excess = derived("Too many")(difference("wavefronts", "ideal"))
    n_way = derived("Passes per execution")(quotient("wavefronts", "executed"))


@dataclass(frozen=True, slots=True)
class BankConflicts:
    """Bank conflicts of one launch."""

    # kinds of access that occurred, from the hardware counters; empty if they were not collected
    operations: tuple[SharedOperation, ...]
    # instructions that touch shared memory, most excess first; empty without source counters
    instructions: tuple[SharedAccess, ...] = ()
    # the same per CUDA line; instructions without line information are left out here
    lines: tuple[SharedAccess, ...] = ()
    wavefronts: int | None = unlisted("Wavefronts of all instructions")
    ideal: int | None = unlisted("Wavefronts that their data needs")
    # the half that the report lacks (hardware counters or source counters), None if both are there
    missing: NotCollected | None = None
    # kinds of access of which the report has wavefronts; one that is not among `operations` is 0
    counted: frozenset[str] = frozenset()
    # True where the instrumented pass looked at every instruction and none touched shared memory
    untouched: bool = False

    @property
    def uses_shared_memory(self) -> bool | None:
        """Whether the kernel touches shared memory; None where too little was counted to say no."""
        if self.operations or self.instructions:
            return True
        return False if self.untouched or self.counted.issuperset(_ATTRIBUTED) else None

    @property
    def without_conflicts(self) -> bool | None:
        """Whether conflicts are below 1 % of the wavefronts of every kind; None where they were not counted."""
        if self.worst is not None and (self.worst.share or 0) >= 1:
            return False
        if self.instructions:
            return (self.excess_share or 0) < 1
        own = [kind for kind in self.operations if not kind.part_of and kind.wavefronts]
        return True if own and all(kind.share is not None for kind in own) else None

    excess = derived("Wavefronts beyond the ideal", listed=False)(difference("wavefronts", "ideal"))
    excess_share = derived("Wavefronts beyond what the data needs", "%", listed=False)(
        quotient("excess", "wavefronts", 100)
    )

    def excess_of(self, name: str) -> int | None:
        """Wavefronts beyond the ideal of the instructions of one kind, by their addresses; None if unknown."""
        unknown = any(access.excess and not access.operation for access in self.instructions)
        if unknown or not self.instructions:
            return None
        return sum(access.excess or 0 for access in self.instructions if access.operation == name)

    @property
    def worst(self) -> SharedOperation | None:
        """The kind with the largest share of conflicts, those left out whose addresses never collide."""
        own = (kind for kind in self.operations if kind.share and not kind.part_of)
        colliding = [kind for kind in own if kind.name not in _ATTRIBUTED or self.excess_of(kind.name) != 0]
        return max(colliding, key=lambda kind: kind.share or 0.0, default=None)

    def operation(self, name: str) -> SharedOperation | None:
        """The kind of access with this name, or None if it did not occur."""
        return next((operation for operation in self.operations if operation.name == name), None)


_TITLES = {
    "load": "Loads (LDS, LD, LDSM)",
    "store": "Stores (STS, ST, STSM)",
    "atomic": "Atomics (ATOMS)",
    "ldmatrix": "Matrix loads (LDSM)",
    "stmatrix": "Matrix stores (STSM)",
    "async_copy": "Asynchronous copies (LDGSTS)",
    "wgmma": "Operands of wgmma (HGMMA, QGMMA)",
}
_LATER_OPCODES = (("ldmatrix", "LDSM"), ("stmatrix", "STSM"))
_PART_OF = {"ldmatrix": "load", "stmatrix": "store"}


def analyse(profile: KernelProfile) -> BankConflicts | NotCollected:
    """Bank conflicts of one launch; `NotCollected` if neither hardware nor source counters are in the report."""
    missing = GROUP.missing(profile.metrics)
    by_address = by_line.by_address(profile, metrics.SHARED_WAVEFRONTS_BY_ADDRESS)
    if by_address is None:
        if missing is not None:
            return missing
        missing = NotCollected((metrics.SHARED_WAVEFRONTS_BY_ADDRESS,), "--section SourceCounters")
    instructions, lines = by_line.ranked(profile, SharedAccess, "wavefronts", "excess", "wavefronts")
    wavefronts, ideal = (
        by_line.whole(profile, name) if instructions else None
        for name in (metrics.SHARED_WAVEFRONTS_BY_ADDRESS, metrics.SHARED_IDEAL_BY_ADDRESS)
    )
    untouched = by_address is not None and not any(by_address.values())
    kinds, operations = by_line.kinds_counted(profile, metrics.SHARED_WAVEFRONTS_OF), _operations(profile)
    return BankConflicts(operations, instructions, lines, wavefronts, ideal, missing, kinds, untouched)


def _operations(profile: KernelProfile) -> tuple[SharedOperation, ...]:
    capability = profile.device.compute_capability
    absent = [opcode for feature, opcode in _LATER_OPCODES if not has(feature, capability)]
    operations = (
        SharedOperation(
            name,
            reduce(lambda words, opcode: words.replace(f", {opcode}", ""), absent, title),
            _requests(profile, name),
            profile.number(metrics.SHARED_WAVEFRONTS_OF[name]),
            profile.first_number(metrics.SHARED_CONFLICTS_OF[name]),
            _PART_OF.get(name, ""),
            (_requests(profile, "stmatrix") or 0.0) if name == "store" else 0.0,
        )
        for name, title in _TITLES.items()
    )
    return tuple(one for one in operations if one.requests or one.wavefronts or one.conflicts)


def _requests(profile: KernelProfile, name: str) -> float | None:
    """Instructions of one kind; plain loads include LDSM, because the hardware counters of loads do."""
    requests = profile.first_number(metrics.SHARED_INSTRUCTIONS_OF.get(name, ()))
    if name == "load" and requests is not None:
        requests += profile.first_number(metrics.SHARED_INSTRUCTIONS_OF["ldmatrix"]) or 0
    return requests


# Kinds whose instructions are told apart by `SharedAccess.operation`.
_ATTRIBUTED = ("load", "store", "atomic", "async_copy")
