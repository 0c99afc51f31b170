"""Global-memory coalescing: how many 32-byte sectors a warp's access touches, and how many it would need.

A warp that reads 32 neighbouring floats needs 4 sectors; one that strides through memory touches up to 32 and uses
4 bytes of each. Counters at L1 tell it by kind of access, an instrumented pass for each instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.analysis.figure import derived, difference, figure, quotient, unlisted
from gemmprof.analysis.sections import by_line
from gemmprof.gpu.arch import has
from gemmprof.model import KernelProfile, NotCollected

NAME = "coalescing"
TITLE = "Global-memory coalescing"
GROUP = metrics.COALESCING


@dataclass(frozen=True, slots=True)
class GlobalOperation:
    """One kind of global-memory access over the whole launch."""

    name: str  # ``load``, ``store``, ``reduction``, ``atomic`` or ``async_copy``
    title: str  # the same in words, with the SASS opcodes
    # requests, sectors: of warps at the L1 tag stage, and the 32-byte sectors that they touched
    requests: float = figure("Requests")
    sectors: float | None = figure("Sectors")
    # bytes that threads asked for in an average sector; None if not collected, or if ncu's value makes no sense (it
    # is 0 for loads that are all asynchronous copies, and beyond the limit where reads of distributed shared memory
    # are mixed in)
    bytes_used_per_sector: float | None = figure("Bytes used per sector", "", "of 32")
    bytes_per_sector_limit: float | None = figure("Bytes of a sector that could be used")
    l1_hit_rate: float | None = figure("L1 hit rate", "%")
    part_of: str = ""  # name of the kind that already counts this one, '' for a kind of its own

    sectors_per_request = derived(
        "Sectors per request", "", "4 is ideal for 4-byte elements of a full warp, 32 the worst"
    )(quotient("sectors", "requests"))


@dataclass(frozen=True, slots=True)
class GlobalAccess(by_line.Counted):
    """Executions by warps and 32-byte sectors (before any cache) of one instruction or line, as instrumented."""

    executed: int | None = figure("Executed", of=metrics.INSTRUCTIONS_BY_ADDRESS)
    sectors: int = figure("Sectors", of=metrics.GLOBAL_SECTORS_BY_ADDRESS)
    ideal: int = figure(
        "Needed",
        meaning="sectors that the same bytes would fill side by side",
        of=metrics.GLOBAL_IDEAL_BY_ADDRESS,
    )
    tag_requests: int | None = figure("Tag look-ups", of=metrics.GLOBAL_TAGS_BY_ADDRESS)
    excess = derived("Too many")(difference("sectors", "ideal"))
    sectors_per_request = derived("Per execution")(quotient("sectors", "executed"))


@dataclass(frozen=True, slots=True)
class Coalescing:
    """Coalescing of one launch's global accesses."""

    # kinds of access that occurred; empty if the L1 counters were not collected
    operations: tuple[GlobalOperation, ...]
    # instructions that touch global memory, most excess first; empty without source counters
    instructions: tuple[GlobalAccess, ...] = ()
    # the same per CUDA line; instructions without line information are left out here
    lines: tuple[GlobalAccess, ...] = ()
    sectors: int | None = unlisted("Sectors of all instructions")
    ideal: int | None = unlisted("Sectors that their data needs")
    # the half that the report lacks (L1 counters or source counters), None if both are there
    missing: NotCollected | None = None
    # kinds of access of which the report has the count; one that is not among `operations` is 0
    counted: frozenset[str] = frozenset()

    @property
    def touches(self) -> bool | None:
        """Whether the kernel accesses global memory; None where too little was counted to say no."""
        if self.operations or self.sectors:
            return True
        return False if self.sectors == 0 or self.counted.issuperset(_KINDS) else None

    excess = derived("Sectors beyond the ideal", listed=False)(difference("sectors", "ideal"))
    excess_share = derived(
        "Sectors beyond what the data needs", "%", listed=False, alone="Sectors beyond the ideal"
    )(quotient("excess", "sectors", 100))

    def operation(self, name: str) -> GlobalOperation | None:
        """The kind of access with this name, or None if it did not occur."""
        return next((operation for operation in self.operations if operation.name == name), None)


# Kinds that together are every access: the counts of loads include asynchronous copies.
_KINDS = ("load", "store", "reduction", "atomic")

_TITLES = {
    "load": "Loads (LDG, LDGSTS)",
    "store": "Stores (STG)",
    "reduction": "Reductions (RED)",
    "atomic": "Atomics (ATOMG)",
    "async_copy": "Asynchronous copies (LDGSTS)",
}


def analyse(profile: KernelProfile) -> Coalescing | NotCollected:
    """Coalescing of one launch; `NotCollected` if neither L1 nor source counters are in the report."""
    missing = GROUP.missing(profile.metrics)
    sectors = by_line.whole(profile, metrics.GLOBAL_SECTORS_BY_ADDRESS)
    ideal = by_line.whole(profile, metrics.GLOBAL_IDEAL_BY_ADDRESS)
    if sectors is None or ideal is None:
        if missing is not None:
            return missing
        sectors = ideal = None
        missing = NotCollected((metrics.GLOBAL_SECTORS_BY_ADDRESS,), "--section SourceCounters")
    instructions, lines = by_line.ranked(profile, GlobalAccess, "sectors", "excess", "sectors")
    kinds = by_line.kinds_counted(profile, metrics.GLOBAL_REQUESTS_OF)
    return Coalescing(_operations(profile), instructions, lines, sectors, ideal, missing, kinds)


def _operations(profile: KernelProfile) -> tuple[GlobalOperation, ...]:
    operations = []
    copies = has("asynchronous copies", profile.device.compute_capability)
    for name, title in _TITLES.items():
        if not (requests := profile.number(metrics.GLOBAL_REQUESTS_OF[name])):
            continue
        copied = name == "async_copy"
        sectors = async_copy_sectors(profile) if copied else profile.number(metrics.GLOBAL_SECTORS_OF[name])
        used = profile.number(metrics.GLOBAL_BYTES_PER_SECTOR_OF.get(name, ""))
        limit = profile.number(metrics.GLOBAL_BYTES_PER_SECTOR_LIMIT_OF.get(name, ""))
        used = used if used and not (limit is not None and used > limit) else None
        hits, words = profile.number(metrics.GLOBAL_HIT_RATE_OF.get(name, "")), title
        if not copies:
            words = title.replace(", LDGSTS", "")
        counted = requests, sectors, used, limit, hits
        operations.append(GlobalOperation(name, words, *counted, "load" if copied else ""))
    return tuple(operations)


def async_copy_sectors(profile: KernelProfile) -> float | None:
    """Sectors of all asynchronous copies, through L1 and past it; None if one of the two counters is absent."""
    ways = [profile.number(name) for name in metrics.ASYNC_COPY_SECTORS]
    known = [sectors for sectors in ways if sectors is not None]
    return sum(known) if len(known) == len(ways) else None
