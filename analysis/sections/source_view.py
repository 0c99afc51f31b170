"""Source view: every CUDA line beside its SASS, with executions, samples, stalls, conflicts and excess sectors.

Every counter of the report has its own list of addresses; all are joined here by address. A line's figures are the
sums over its instructions, keyed by (file, line).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple

from gemmprof import metrics
from gemmprof.analysis.figure import difference, quotient, total, traced
from gemmprof.analysis.reading.line_table import Call, inlined_calls, ptx_lines
from gemmprof.analysis.sections import by_line
from gemmprof.base.spread import grouped
from gemmprof.model import Instruction, KernelProfile, LineTable, NotCollected

NAME = "source_view"
TITLE = "Source"
GROUP = metrics.SOURCE_VIEW


class Counters(NamedTuple):
    """What the report knows of one instruction, or summed over the instructions of one line.

    A counter that was not collected is None; one that was collected and has no entry for an address is 0. A tuple,
    because a frozen dataclass takes three times as long to make, and a report has a hundred thousand instructions.
    """

    executed: int | None = None  # warp-level executions
    # thread-level executions, threads switched off by a predicate not counted
    threads_predicated_on: int | None = None
    samples: int | None = None  # warp samples, all stall reasons
    # samples by stall reason (``long_scoreboard``, …), most first, zeros left out
    stalls: Mapping[str, int] = MappingProxyType({})
    # shared_wavefronts, shared_ideal: shared-memory passes taken and needed
    shared_wavefronts: int | None = None
    shared_ideal: int | None = None
    # global_sectors, global_ideal: 32-byte sectors touched and needed
    global_sectors: int | None = None
    global_ideal: int | None = None
    global_tags: int | None = None  # L1 tag look-ups of global accesses
    local_sectors: int | None = None  # 32-byte sectors of local memory
    divergent_branches: int | None = None  # executions after which the warp's threads went different ways
    threads: int | None = None  # thread-level executions, those switched off by a predicate counted too
    samples_not_issued: int | None = None  # those of `samples` in whose cycle the scheduler issued nothing

    @property
    def shared_excess(self) -> int | None:
        """Wavefronts that bank conflicts added."""
        return difference("shared_wavefronts", "shared_ideal")(self)

    @property
    def global_excess(self) -> int | None:
        """Sectors beyond what the bytes need."""
        return difference("global_sectors", "global_ideal")(self)

    @property
    def threads_predicated_on_per_instruction(self) -> float | None:
        """Average active threads of a warp, those switched off by a predicate not counted; None if nothing ran."""
        return quotient("threads_predicated_on", "executed")(self)


# Where each counter's values by address are; of divergent branches under either name.
_COUNTED = {
    "executed": metrics.INSTRUCTIONS_BY_ADDRESS,
    "threads_predicated_on": metrics.THREADS_PREDICATED_BY_ADDRESS,
    "samples": metrics.SAMPLE_COUNT,
    "shared_wavefronts": metrics.SHARED_WAVEFRONTS_BY_ADDRESS,
    "shared_ideal": metrics.SHARED_IDEAL_BY_ADDRESS,
    "global_sectors": metrics.GLOBAL_SECTORS_BY_ADDRESS,
    "global_ideal": metrics.GLOBAL_IDEAL_BY_ADDRESS,
    "global_tags": metrics.GLOBAL_TAGS_BY_ADDRESS,
    "local_sectors": metrics.LOCAL_SECTORS_BY_ADDRESS,
    "divergent_branches": metrics.DIVERGENT_BRANCHES_BY_ADDRESS[0],
    "threads": metrics.THREADS_BY_ADDRESS,
    "samples_not_issued": metrics.SAMPLES_NOT_ISSUED,
}
# Counters that only know their formulas, ``[here]`` being a row's instruction or the instructions of its line.
OF_AN_INSTRUCTION = Counters(**{name: traced(1, f"{metric}[here]") for name, metric in _COUNTED.items()})


@dataclass(frozen=True, slots=True)
class SassLine:
    """One SASS instruction."""

    index: int  # its place in ``SourceView.sass``
    address: int  # absolute PC
    offset: int  # byte offset in the function
    sass: str  # text, '' where the report carries no code
    # file, line: the CUDA line that it came from, None without line information
    file: str | None
    line: int | None
    counters: Counters  # what happened in it
    # ``global``, ``local``, ``shared``: the memory that it accesses, () for none
    spaces: tuple[str, ...] = ()
    # ``load``, ``store``, ``atomic``: what it does there, () for none or a reduction
    operations: tuple[str, ...] = ()
    access_bits: int | None = None  # width of the access of one thread in bits, None for no access

    @property
    def label(self) -> str:
        """Its place: ``0x01a0``."""
        return f"0x{self.offset:04x}"

    @property
    def text(self) -> str:
        """What it says."""
        return self.sass

    @property
    def access(self) -> str:
        """What it does to memory, in words: ``global load, 128 bits a thread``; '' for nothing."""
        words = " and ".join(self.spaces) + "".join(f" {operation}" for operation in self.operations)
        width = f", {self.access_bits} bits a thread" if self.access_bits else ""
        return f"{words}{width}" if words else ""


@dataclass(frozen=True, slots=True)
class CudaLine:
    """One CUDA line that code came from. ``instructions`` are indices into ``SourceView.sass``, ascending."""

    file: str
    line: int
    text: str
    instructions: tuple[int, ...]
    counters: Counters

    @property
    def label(self) -> str:
        """Its place: ``kernel.cu:42``."""
        return f"{by_line.base_name(self.file)}:{self.line}"


@dataclass(frozen=True)
class SourceView:
    """The kernel's code with what happened in it."""

    sass: tuple[SassLine, ...]  # all instructions in address order
    # CUDA lines that have instructions, in file and line order; empty without line information
    lines: tuple[CudaLine, ...]
    # path to the whole text of the source files that the report carries (those with text only)
    files: Mapping[str, str]
    totals: Counters  # sums over all instructions
    # cycles between two samples of one scheduler, None if unknown
    sampling_interval_cycles: int | None = None
    # line_table, function: what tells which calls were inlined, and the kernel's mangled name in it
    line_table: LineTable | None = None
    function: str = ""

    @cached_property
    def inlined(self) -> Sequence[tuple[Call, ...]]:
        """The calls that each instruction was inlined through, innermost first; () where none is known."""
        found = inlined_calls(self.line_table, self.function)
        return [found.get(item.offset, ()) for item in self.sass]

    @cached_property
    def own_lines(self) -> Sequence[tuple[str, int] | None]:
        """The user's line that each instruction counts against (`by_line.own_lines`)."""
        return by_line.own_lines(((item.file, item.line) for item in self.sass), self.inlined)

    @cached_property
    def by_own_line(self) -> Mapping[tuple[str, int], Sequence[SassLine]]:
        """The instructions that count against each of the user's lines, in their order."""
        placed = zip(self.own_lines, self.sass, strict=True)
        return grouped((own, item) for own, item in placed if own is not None)

    def hottest(self, *, sass: bool = False) -> Sequence[CudaLine | SassLine]:
        """The lines (instructions where there are none, or with ``sass``), most samples first, then executions."""

        def heat(one: CudaLine | SassLine) -> tuple[int, int]:
            return -(one.counters.samples or 0), -(one.counters.executed or 0)

        return sorted(self.sass if sass or not self.lines else self.lines, key=heat)

    @cached_property
    def ptx(self) -> tuple[Sequence[str], Sequence[int]]:
        """The lines of the module's PTX, and which of them, from 1, each instruction came from (0 for none).

        Both are empty where the report holds none.
        """
        found = ptx_lines(self.line_table, self.function)
        if self.line_table is None or not found:
            return (), ()
        text = self.line_table.ptx.decode("utf-8", "replace").split("\0")
        rows = sorted(found)  # a row holds up to the next one
        places = (bisect_right(rows, item.offset) for item in self.sass)
        at = [found[rows[place - 1]] if place else 0 for place in places]
        return text, [line if 0 < line <= len(text) else 0 for line in at]

    def share(self, counters: Counters) -> float | None:
        """Per cent of all samples that fall on these counters; None without samples."""
        if counters.samples is None or not self.totals.samples:
            return None
        return 100 * counters.samples / self.totals.samples


class _Tables:
    """The per-address tables of one launch, each read once."""

    def __init__(self, profile: KernelProfile) -> None:
        self.counted = {name: by_line.by_address(profile, metric) for name, metric in _COUNTED.items()}
        self.stalls, waiting = _stalls(profile), _stalls(profile, not_issued=True)
        by_all = None if waiting is None else {address: sum(by.values()) for address, by in waiting.items()}
        self.counted["samples_not_issued"] = by_all
        branches = by_line.first_by_address(profile, metrics.DIVERGENT_BRANCHES_BY_ADDRESS)
        self.counted["divergent_branches"] = branches
        self.memory_types = by_line.by_address(profile, metrics.MEMORY_TYPE_BY_ADDRESS) or {}
        self.access_types = by_line.by_address(profile, metrics.ACCESS_TYPE_BY_ADDRESS) or {}
        self.access_sizes = by_line.by_address(profile, metrics.ACCESS_SIZE_BY_ADDRESS) or {}

    def access(self, address: int) -> tuple[tuple[str, ...], tuple[str, ...], int | None]:
        """Memory spaces, operations and width of what the instruction at this address accesses."""
        spaces = by_line.flags(self.memory_types.get(address), by_line.MEMORY_SPACES)
        operations = by_line.flags(self.access_types.get(address), by_line.ACCESS_OPERATIONS)
        return spaces, operations, self.access_sizes.get(address) or None

    def counters(self, addresses: Sequence[int]) -> Counters:
        """The sums over these addresses."""
        counted = self.counted.items()
        sums = {name: None if table is None else total(table, addresses) for name, table in counted}
        stalls: Counter[str] = Counter()
        for samples in map((self.stalls or {}).get, addresses):
            stalls.update(samples or {})
        return Counters(**sums, stalls=_most_first(dict(stalls)))

    def each(self, addresses: Sequence[int]) -> Iterator[Counters]:
        """``counters((address,))`` of each address, column by column: a kernel has thousands of instructions."""
        nothing: dict[str, int] = {}
        columns: dict[str, Iterable[Any]] = {
            name: repeat(None) if table is None else map(table.get, addresses, repeat(0))
            for name, table in self.counted.items()
        }
        columns["stalls"] = map(_most_first, map((self.stalls or {}).get, addresses, repeat(nothing)))
        return map(Counters._make, zip(*(columns[name] for name in Counters._fields), strict=False))


def _stalls(profile: KernelProfile, *, not_issued: bool = False) -> dict[int, dict[str, int]] | None:
    """Samples by address and stall reason, zeros (most of them) left out; None if none was sampled by instruction."""
    sampled = metrics.stall_samples(profile.instances, not_issued=not_issued)
    table: dict[int, dict[str, int]] = {}
    for reason, name in sampled.items():
        counts = by_line.by_address(profile, name) if any(profile.instances[name].values) else None
        for address, samples in (counts or {}).items():
            if samples:
                table.setdefault(address, {})[reason] = samples
    return table if sampled else None


def _most_first(samples: dict[str, int]) -> dict[str, int]:
    if len(samples) < 2:
        return samples
    return dict(sorted(samples.items(), key=lambda item: (-item[1], item[0])))


def analyse(profile: KernelProfile) -> SourceView | NotCollected:
    """The source view of one launch.

    Without SASS in the report the instructions have no text; without line information there are no lines; without
    source counters there is no view at all (`NotCollected`).
    """
    tables = _Tables(profile)
    if tables.counted["executed"] is None and tables.counted["samples"] is None:
        return NotCollected(GROUP.required, GROUP.remedy)
    known = {instruction.address: instruction for instruction in profile.source.instructions}
    # Every address that some table knows: the code, where the report carries no SASS.
    counted = (tables.counted["executed"], tables.counted["samples"], tables.stalls)
    addresses = sorted(known.keys() | {address for table in counted for address in table or ()})
    base = profile.source.function_address or (addresses[0] if addresses else 0)
    sass = []
    for index, (address, counters) in enumerate(zip(addresses, tables.each(addresses), strict=True)):
        code = known.get(address) or Instruction(address, "")
        where = (code.sass, code.file, code.line)
        sass.append(SassLine(index, address, address - base, *where, counters, *tables.access(address)))
    index_of = {address: index for index, address in enumerate(addresses)}
    lines = []
    for place in by_line.Code(profile).lines(addresses):
        own, sums = tuple(map(index_of.__getitem__, place.addresses)), tables.counters(place.addresses)
        lines.append(CudaLine(place.file or "", place.line or 0, place.text, own, sums))
    return SourceView(
        sass=tuple(sass),
        lines=tuple(lines),
        files={path: text for path, text in profile.source.files.items() if text},
        totals=tables.counters(addresses),
        sampling_interval_cycles=profile.whole(metrics.SAMPLING_INTERVAL_CYCLES),
        line_table=profile.source.line_table,
        function=profile.mangled_name,
    )
