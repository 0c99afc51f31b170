"""What a launch asks of the machine: its instructions with their executions, stalls and traffic, and its resources.

`Work` is what every cause looks at. Its numbers are those of the report; arrays have one entry an instruction.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from gemmprof import metrics
from gemmprof.analysis.explanation.code import flow
from gemmprof.analysis.explanation.code.flow import once as once
from gemmprof.analysis.explanation.demands.resources import Load, busiest_sm, loads, pipe
from gemmprof.analysis.opcodes import Sass
from gemmprof.analysis.reading.line_table import inlined_calls
from gemmprof.analysis.sections import warp_states
from gemmprof.analysis.sections.by_line import by_address, own_lines
from gemmprof.gpu.arch import WARP, has, practice_of
from gemmprof.model import Evidence, Instruction, KernelProfile, Practice

# Copies from global to shared memory that one thread starts for its block.
TENSOR_COPIES = ("UTMALDG", "UBLKCP")
ONE_THREAD = 1.05  # active threads of an instruction that a single elected thread executes
FULL_WARP = 31.0  # active threads of a warp, on average, from which on it is whole
Array = npt.NDArray[np.float64]  # a number for each instruction
Mask = npt.NDArray[np.bool_]  # whether something holds, for each instruction


@dataclass(frozen=True)
class Work:
    """One launch, ready to be explained."""

    profile: KernelProfile
    loads: Mapping[str, Load]  # busy share of each resource by its key
    # cycles of the launch, and of the average and the busiest SM
    elapsed: float
    active_average: float
    active_most: float
    # control flow, None where the report has no SASS or no counters per instruction
    program: flow.Program | None
    instructions: tuple[Instruction, ...]  # in the order of all arrays
    executed: Array  # executions by a warp
    threads: Array  # active threads over all executions (at most 32 times ``executed``)
    # whether these follow from the code and the launch's totals (`demands.rounds`), for none were recorded
    worked_out: bool = False
    kept: dict[object, object] = field(default_factory=dict, repr=False, compare=False)

    # --- Time structure ---

    @cached_property
    def idle_start(self) -> float:
        """Share of the elapsed cycles in which no SM works: the launch, and the draining of its last stores."""
        return min(0.95, max(0.0, 1.0 - self.active_most / self.elapsed)) if self.elapsed > 0 else 0.0

    @cached_property
    def imbalance(self) -> float:
        """Cycles of the busiest SM over those of the average one, at least 1."""
        return max(1.0, self.active_most / self.active_average) if self.active_average > 0 else 1.0

    @cached_property
    def shares(self) -> float:
        """Blocks of the SM with the most over those of the average one."""
        even = max(1, self.profile.launch.blocks) / self.sms
        return math.ceil(even) / even

    def has(self, feature: str) -> bool:
        """Whether its GPU has something that a change may use (`gemmprof.gpu.arch.has`)."""
        return has(feature, self.profile.device.compute_capability)

    @property
    def practice(self) -> Practice:
        """What was measured on its chip, or on another one where nothing was (`trust` says so)."""
        return practice_of(self.profile.device.compute_capability, self.profile.device.name)[0]

    @cached_property
    def sms(self) -> float:
        """SMs that the launch could use."""
        return self.number(metrics.SM_COUNT) or float(self.profile.device.sm_count or 1)

    def busy_cycles(self, key: str) -> float | None:
        """Cycles in which all SMs together had a resource at its peak rate; None where nobody counted."""
        load = self.loads.get(key)
        return None if load is None else load.busy * self.elapsed * self.sms

    @property
    def duration(self) -> float | None:
        """Nanoseconds under the profiler."""
        return self.number(metrics.DURATION)

    @cached_property
    def most_warps(self) -> float:
        """Warps that an SM can hold."""
        return self.number(metrics.MAX_WARPS_PER_SM) or float(self.profile.device.max_warps_per_sm or 64)

    @cached_property
    def warps_of_block(self) -> int:
        """Warps of a block; its last may have lanes to spare."""
        return max(1, -(-self.profile.launch.threads_per_block // WARP))

    @cached_property
    def launched_warps(self) -> int:
        """Warps of the whole grid."""
        return self.profile.launch.blocks * self.warps_of_block

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        launch = self.profile.launch
        return (launch.static_shared_memory or 0) + (launch.dynamic_shared_memory or 0)

    @cached_property
    def resident_warps(self) -> float | None:
        """Average warps on an SM while it works."""
        return self.number(metrics.ACHIEVED_WARPS)

    def number(self, name: str) -> float | None:
        """A metric of the launch, None where it was not collected."""
        return counted(self.profile, name)

    # --- Per instruction ---

    @cached_property
    def code(self) -> flow.Program:
        """Control flow, for whoever looks at instructions: only a launch with a `program` has any."""
        assert self.program is not None
        return self.program

    @cached_property
    def sass(self) -> tuple[Sass, ...]:
        """The instructions as parsed."""
        return self.program.sass if self.program is not None else ()

    @once
    def table(self, *names: str) -> Array | None:
        """The first of these metrics that was collected per instruction; None for none."""
        found = (_in_order(self.profile, self._addresses, name) for name in names)
        return next((values for values in found if values is not None), None)

    @cached_property
    def widths(self) -> Array:
        """Bytes that a thread moves with each instruction."""
        return np.array([line.access_bytes for line in self.sass], dtype=np.float64)

    @cached_property
    def total_executed(self) -> float:
        """Instructions that all warps executed."""
        return float(self.executed.sum())

    @cached_property
    def _addresses(self) -> tuple[int, ...]:
        return tuple(line.address for line in self.instructions)

    @cached_property
    def raw_samples(self) -> dict[str, Array]:
        """Samples by stall reason, one entry an instruction; reasons without any are left out."""
        by_reason: dict[str, Array] = {}
        for name, metric in metrics.stall_samples(self.profile.instances).items():
            if not any(self.profile.instances[metric].values):
                continue
            values = _in_order(self.profile, self._addresses, metric)
            if values is not None and values.any():
                by_reason[warp_states.reason(name).key] = values
        return by_reason

    @cached_property
    def stall_cycles(self) -> dict[str, float]:
        """Cycles that warps spent in each state for an instruction that was issued, as counted."""
        return {
            warp_states.reason(name).key: self.number(metric) or 0.0
            for name, metric in metrics.stall_cycles(self.profile.metrics).items()
        }

    @cached_property
    def samples(self) -> dict[str, Array]:
        """Share of the warps' time by stall reason, one entry an instruction; all together are 1.

        The sampler says where, the counters say how much: each reason's samples are scaled to what was counted.
        """
        by_reason, counted = dict(self.raw_samples), self.stall_cycles
        total = sum(float(values.sum()) for values in by_reason.values())
        if not total:
            return {}
        whole = sum(counted.get(key, 0.0) for key in by_reason)
        for key, values in by_reason.items():
            if whole > 0 and counted.get(key, 0.0) > 0:
                by_reason[key] = values / values.sum() * counted[key] / whole
            else:
                by_reason[key] = values / total
        rest = sum(float(values.sum()) for values in by_reason.values())
        return {key: values / rest for key, values in by_reason.items()}

    @cached_property
    def sample_count(self) -> float:
        """Samples that the shares rest on."""
        counted = self.number(metrics.SAMPLE_COUNT)
        return float(sum(map(np.sum, self.raw_samples.values()))) if counted is None else counted

    @cached_property
    def reason_shares(self) -> dict[str, float]:
        """Share of the warps' time by state: of the samples, else as counted."""
        if self.samples:
            return {name: float(values.sum()) for name, values in self.samples.items()}
        whole = sum(self.stall_cycles.values())
        return {key: value / whole for key, value in self.stall_cycles.items()} if whole > 0 else {}

    @cached_property
    def attributed(self) -> dict[str, Array]:
        """`samples` on the instructions that cause them."""
        if self.program is None:
            return {}
        moved = dict(self.samples)
        for reason in moved.keys() & {flow.LONG, flow.SHORT, flow.WAIT, flow.BRANCH, "drain"}:
            values, to = moved[reason], np.zeros(len(self.instructions))
            for index in np.flatnonzero(values):
                found = list(flow.producers(self.code, int(index), reason))
                if len(found) == 1:
                    to[found[0]] += values[index]
                    continue
                often = self.executed[found]
                to[found] += values[index] * (often / often.sum() if often.any() else 1.0 / len(found))
            moved[reason] = to
        return moved

    @cached_property
    def attributed_total(self) -> Array:
        """Share of the warps' time that is attributed to each instruction."""
        total = np.zeros(len(self.instructions))
        for values in self.attributed.values():
            total = total + values
        return total

    @cached_property
    def warp_cycles(self) -> float | None:
        """Cycles of all warps together."""
        warps = self.resident_warps
        return None if warps is None else warps * self.active_average * self.sms

    @property
    def one_wave(self) -> bool:
        """Whether all blocks of the launch are on the SMs at once."""
        return 0.0 < (self.profile.launch.waves_per_sm or 0.0) <= 1.0

    @cached_property
    def pipes(self) -> npt.NDArray[np.str_]:
        """Pipe of each instruction."""
        return np.array([pipe(line) for line in self.sass], dtype=np.str_)

    @cached_property
    def whole_warps(self) -> Mask:
        """Instructions in whose executions all lanes took part, but for the grid's last warps."""
        return np.asarray(self.threads >= FULL_WARP * self.executed)

    @cached_property
    def own_lines(self) -> list[tuple[str, int] | None]:
        """File and line of the user's for each instruction; None without line information."""
        source = self.profile.source
        base = source.function_address or (self.instructions[0].address if self.instructions else 0)
        calls = inlined_calls(source.line_table, self.profile.mangled_name)
        inlined = [calls.get(line.address - base, ()) for line in self.instructions]
        return own_lines(((line.file, line.line) for line in self.instructions), inlined)

    @property
    def switched_on(self) -> Array:
        """Threads of each instruction that its predicate lets pass; the active ones where that was not counted."""
        counted = self.table(metrics.THREADS_PREDICATED_BY_ADDRESS)
        return self.threads if counted is None else counted

    @property
    def global_loads(self) -> Mask:
        """Loads from global memory."""
        return self.where(lambda line: line.is_load and line.space == "global")

    @property
    def global_fetches(self) -> Mask:
        """The same, and copies from there to shared memory (``LDGSTS``)."""
        return self.global_loads | self.where(lambda line: line.opcode == "LDGSTS")

    @cached_property
    def often(self) -> Mask:
        """Instructions that run often, as those of a loop do."""
        return np.asarray(self.executed > 0.2 * self.executed.max(initial=0.0))

    @property
    def hot_bytes(self) -> float:
        """Bytes of the code that runs often."""
        return 16.0 * float(self.often.sum())

    @cached_property
    def barriers(self) -> Mask:
        """The barriers of a block that ran."""
        return self.where(lambda line: line.opcode == "BAR") & (self.executed > 0)

    @cached_property
    def products(self) -> Mask:
        """The instructions of tensor cores that ran."""
        return self.where(lambda line: line.instruction_class == "tensor") & (self.executed > 0)

    def where(self, wanted: Callable[[Sass], bool]) -> Mask:
        """A mask of the instructions that this holds for."""
        if self.program is None:
            return np.zeros(0, dtype=bool)
        # What depends on the code alone is the same for every launch of it.
        cells = tuple(cell.cell_contents for cell in getattr(wanted, "__closure__", None) or ())
        key = getattr(wanted, "__code__", None), cells
        plain = all(isinstance(cell, (str, frozenset)) for cell in cells)
        if key[0] is None or not plain or getattr(wanted, "__defaults__", None):
            return self.code.where(wanted)
        if key not in self.code.masks:
            self.code.masks[key] = self.code.where(wanted, _TOLD.setdefault(key, {}))
        return self.code.masks[key].copy()

    @cached_property
    def barrier_cycles(self) -> float:
        """Cycles that a warp of this launch waits at a barrier which all warps of its block reach at once."""
        warps = max(1.0, self.profile.launch.threads_per_block / WARP)
        return self.practice.barrier_cycles + self.practice.barrier_warp_cycles * (warps - 1.0)

    # --- What causes say ---

    @property
    def ran(self) -> Mask:
        """Instructions that were executed at all; another mask each time, to be edited."""
        return self.executed > 0

    def all_kept(self) -> Array:
        """A ``keep`` that takes nothing away, to be edited."""
        return np.ones(len(self.instructions))

    def within(self, keep: Array) -> float:
        """Share of the warps' time, as sampled, that goes with what does not stay; 1 without samples."""
        time = self.attributed_total
        return share(time @ (1.0 - keep), time.sum()) if self.samples else 1.0

    def evidence(self, *names: str) -> tuple[Evidence, ...]:
        """These metrics of the launch with their units, those that it has."""
        found = ((name, self.number(name)) for name in names)
        units = self.profile.units
        return tuple(Evidence(name, value, units.get(name, "")) for name, value in found if value is not None)

    def of_all(self, what: str, executed: Array | float) -> Evidence:
        """How many of all executed instructions these are."""
        return Evidence(f"{what} / instructions executed", share(np.sum(executed), self.total_executed))

    # --- Traffic ---

    @cached_property
    def global_sectors(self) -> Array:
        """32-byte sectors that its global accesses asked for."""
        return self._or_zeros(metrics.GLOBAL_SECTORS_BY_ADDRESS)

    @cached_property
    def global_ideal(self) -> Array:
        """The fewest sectors that could hold the same bytes."""
        return np.minimum(self._or_zeros(metrics.GLOBAL_IDEAL_BY_ADDRESS), self.global_sectors)

    @cached_property
    def global_tags(self) -> Array:
        """Lookups in the tags of L1: 128-byte lines touched by its requests."""
        return self._or_zeros(metrics.GLOBAL_TAGS_BY_ADDRESS)

    @cached_property
    def local_sectors(self) -> Array:
        """Sectors of local memory."""
        return self._or_zeros(metrics.LOCAL_SECTORS_BY_ADDRESS)

    @cached_property
    def shared_wavefronts(self) -> Array:
        """Passes through the data stage that its shared accesses took."""
        return self._or_zeros(metrics.SHARED_WAVEFRONTS_BY_ADDRESS)

    @cached_property
    def data_passes(self) -> Array:
        """Passes through L1's data stage: of shared accesses, a line each of global ones, and of local ones.

        A copy from global to shared memory is looked up, but passes once, as it is written; those past L1
        (``LDGSTS.BYPASS``) mostly not at all: as many as the counted total leaves for them.
        """
        copies = self.where(lambda line: line.opcode == "LDGSTS")
        past = self.where(lambda line: line.opcode == "LDGSTS" and "BYPASS" in line.modifiers)
        tags = np.where(copies, 0.0, self.global_tags)
        shared = self.shared_wavefronts
        if past.any() and (counted := self.busy_cycles("l1_data")) is not None:
            others = float(shared[~past].sum() + tags.sum())
            shared = np.where(
                past, shared * min(1.0, max(0.0, counted - others) / max(1.0, shared[past].sum())), shared
            )
        return shared + tags + self.local_sectors / 4.0

    @cached_property
    def shared_ideal(self) -> Array:
        """The fewest passes that could serve the same bytes."""
        return np.minimum(self._or_zeros(metrics.SHARED_IDEAL_BY_ADDRESS), self.shared_wavefronts)

    def _or_zeros(self, name: str) -> Array:
        found = self.table(name)
        return np.zeros(len(self.instructions)) if found is None else found


_TOLD: dict[object, dict[str, bool | None]] = {}
"""What was answered of opcodes, by the code of the question: it is the same in all kernels."""


def _in_order(profile: KernelProfile, addresses: tuple[int, ...], metric: str) -> Array | None:
    """A metric for each instruction, 0 where it has no value; None where it was not collected by instruction."""
    instances = profile.instances.get(metric)
    counts = np.array(() if instances is None else instances.values)
    places = None if instances is None or counts.dtype.kind != "i" else _places(addresses, instances.keys)
    if places is None:
        values = by_address(profile, metric)
        return None if values is None else np.array([values.get(at, 0) for at in addresses], dtype=np.float64)
    found = np.zeros(len(addresses))
    found[places[places >= 0]] = counts[places >= 0]
    return found


@lru_cache(maxsize=64)
def _places(addresses: tuple[int, ...], keys: tuple[object, ...]) -> npt.NDArray[np.int64] | None:
    """Which of these instructions each key means, -1 for none: the same for most metrics. None of a damaged report."""
    known: dict[object, int] = {address: at for at, address in enumerate(addresses)}
    if len(known) < len(addresses) or {*map(type, keys)} != {int}:
        return None
    return np.array([known.get(key, -1) for key in keys])


def share(part: Array | float, whole: Array | float) -> float:
    """``part / whole``, each one number; 0 of nothing."""
    return float(part / whole) if whole > 0 else 0.0


def counted(profile: KernelProfile, name: str) -> float | None:
    """A metric that counts, times or rates something. Below 0 it is damage, which is as good as absent."""
    value = profile.number(name)
    return value if value is not None and value >= 0 else None


# Share of the executed instructions that are in the code of a report, below which it says nothing of the launch.
MOSTLY_SEEN = 0.5


def runs_elsewhere(profile: KernelProfile) -> bool:
    """Whether most of what ran is in no code of the report: printf, malloc and the like, which the driver brings.

    Where nobody counted each instruction, code that calls what lies elsewhere runs once a warp, if it has no loop.
    """
    lines, launch = profile.source.instructions, profile.launch
    executed = _in_order(profile, tuple(line.address for line in lines), metrics.INSTRUCTIONS_BY_ADDRESS)
    if executed is not None:
        there = float(executed.sum())
    elif any("CALL.ABS" in line.sass for line in lines) and not (code := flow.program(lines)).loops:
        inside = any(line.opcode == "CALL" and "REL" in line.modifiers for line in code.sass)
        there = 0.0 if inside else float(len(lines) * launch.blocks * -(-launch.threads_per_block // WARP))
    else:
        return False
    return profile.workload == "kernel" and 0 < there < MOSTLY_SEEN * (
        profile.number(metrics.INSTRUCTIONS_EXECUTED) or 0.0
    )


def work(profile: KernelProfile) -> Work:
    """Read a launch for explanation. What was not collected is absent: no code, no loads, no samples."""
    counted_there = (metrics.INSTRUCTIONS_BY_ADDRESS, metrics.SAMPLE_COUNT)
    seen = any(by_address(profile, name) for name in counted_there) and not runs_elsewhere(profile)
    instructions = profile.source.instructions if seen else ()
    code = flow.program(instructions) if instructions else None
    addresses = tuple(line.address for line in instructions)
    executed = _in_order(profile, addresses, metrics.INSTRUCTIONS_BY_ADDRESS)
    counts = np.zeros(len(addresses)) if executed is None else executed
    threads = _in_order(profile, addresses, metrics.THREADS_BY_ADDRESS)
    active = 32.0 * counts if threads is None else threads
    elapsed = counted(profile, metrics.SM_ELAPSED_CYCLES_MAX) or counted(profile, metrics.ELAPSED_CYCLES)
    elapsed = elapsed or 0.0
    average = counted(profile, metrics.SM_ACTIVE_CYCLES) or elapsed
    most = max(0.0, busiest_sm(profile) or average)
    busy = {load.resource.key: load for load in loads(profile)}
    if code is not None and "l2_atomics" in busy and _sums_meet(profile, code, counts, active):
        ceilings = practice_of(profile.device.compute_capability, profile.device.name)[0].ceilings
        double = any(line.is_atomic and "F64" in line.modifiers for line in code.sass)
        ceiling = ceilings["l2_atomics_meeting_fp64" if double else "l2_atomics_meeting"]
        busy["l2_atomics"] = replace(busy["l2_atomics"], ceiling=ceiling)
    return Work(
        profile=profile,
        loads=busy,
        elapsed=elapsed,
        active_average=average,
        active_most=min(most, elapsed) if elapsed else most,
        program=code,
        instructions=instructions,
        executed=counts,
        threads=active,
    )


WORDS_OF_A_SECTOR = 8.0  # of four bytes: more threads than that at one sector meet at a word
# The busiest slice of L2 (of an H200's 94) over the average one where all atomics go to one or two words.
SLICES_APART = 47.0


def _sums_meet(profile: KernelProfile, code: flow.Program, executed: Array, threads: Array) -> bool:
    """Whether most floating-point atomics of global memory add to a word that others add to at the same time."""
    sums = np.array([
        line.is_atomic and line.space == "global" and any(word in line.modifiers for word in ("F32", "F64", "F16x2"))
        for line in code.sass
    ])  # fmt: skip
    if not (sums & (executed > 0)).any():
        return False
    average = profile.number(metrics.L2_ATOMICS_AVERAGE) or 0.0
    most = profile.number(metrics.BUSY["l2_atomics"][0]) or 0.0
    if average > 0 and most > SLICES_APART * average * (1.0 - 1e-2):
        return True
    sectors = by_address(profile, metrics.GLOBAL_SECTORS_BY_ADDRESS) or {}
    lines = profile.source.instructions
    touched = sum(sectors.get(lines[at].address, 0) for at in np.flatnonzero(sums))
    return touched > 0 and float(threads[sums].sum()) > WORDS_OF_A_SECTOR * touched


def tensor_copies(work: Work) -> Mask:
    """The tensor copies and bulk copies (TMA) that ran."""
    copies = work.where(lambda line: line.opcode in TENSOR_COPIES)
    return copies & (work.executed > 0) if len(copies) else copies


def specialised(work: Work) -> bool:
    """Whether warps divide their registers by role: some only copy, and leave or idle when that is done."""
    moved = work.where(lambda line: line.opcode == "USETMAXREG")
    return bool(len(moved)) and bool((work.executed[moved] > 0).any())


# Cycles of the constant cache for one address that a thread computed: 2.00 to 2.02 a load in three kernels whose warps
# want one, 60.3 where 32 random words of 256 make 30.1.
CONSTANT_LOADS = ("LDC", "LDCU", "ULDC")
TURN = 2.0


def indexed_constants(work: Work) -> Mask:
    """Loads from constant memory at places that a thread computed, so that those of a warp may differ."""
    return (work.executed > 0) & work.where(
        lambda line: line.opcode in ("LDC", "LDCU") and any(name[0] == "R" for name in line.reads)
    )


@once
def constant_turns(work: Work) -> Array:
    """Cycles of the constant cache: one a load, and for those at computed places alike what was counted beyond."""
    found = np.where(work.where(lambda line: line.opcode in CONSTANT_LOADS), work.executed, 0.0)
    loads, busy = indexed_constants(work), work.busy_cycles("idc")
    if loads.any() and busy is not None:
        turns = busy - float(found[~loads].sum())
        found[loads] *= max(1.0, turns / float(found[loads].sum()))
    return found


# Addresses of a warp's load from which on its lanes want different constants; and turns for each, from which on the
# cache had not what was wanted.
DIVERGENT = 1.7


def constant_addresses(work: Work) -> float:
    """Addresses that a warp wants of constant memory with a load at places that it computed, the mean; 0 for none."""
    turns, requests = _of_a_load(work), work.number(metrics.CONSTANT_REQUESTS)
    counted = float(work.executed[indexed_constants(work)].sum())
    # Misses take turns, too, where requests were not counted.
    return turns if requests is None else min(turns, max(1.0, share(requests, counted)))


def constants_missed(work: Work) -> bool:
    """Whether loads from constant memory at computed places take turns that are no other address of a warp."""
    return _of_a_load(work) >= DIVERGENT * max(1.0, constant_addresses(work))


def _of_a_load(work: Work) -> float:
    """Turns of the constant cache that a load at a computed place takes; where loads are counted again, no more than a
    warp has threads.
    """
    loads = indexed_constants(work)
    turns = float(constant_turns(work)[loads].sum())
    return min(float(WARP), share(turns, TURN * float(work.executed[loads].sum())))


# Bytes of constant memory that the caches next to the schedulers hold at most, and fetch at once: what MT4G
# (github.com/caps-tum/mt4g) measured on an H100, 2,112 and 64.
CONSTANTS_CACHED, CONSTANTS_FETCHED = 2048, 64
_CONSTANT = re.compile(r"c\[(0x[0-9a-f]+)\]\[(U?R\d+)?\+?(-?0x[0-9a-f]+)?\]")


@once
def table_constants(work: Work) -> Mask:
    """Instructions that name constants of a table: at places that are computed; at any, where the code that runs often
    names more of them than the caches next to the schedulers hold.
    """
    named = [_CONSTANT.search(line.text) for line in work.sass]
    fetched = {
        (one[1], int(one[3] or "0x0", 16) // CONSTANTS_FETCHED)
        for one, often in zip(named, work.often.tolist(), strict=True)
        if one and often
    }
    many = len(fetched) * CONSTANTS_FETCHED > CONSTANTS_CACHED
    table: Mask = np.array([one is not None and (many or bool(one[2])) for one in named], dtype=bool)
    return table & work.ran


def elected(work: Work) -> Mask:
    """What one thread does for its block in a kernel with tensor copies: starting them, and their barriers."""
    alone = (work.executed > 0) & (work.threads <= ONE_THREAD * work.executed)
    return alone if tensor_copies(work).any() else np.zeros_like(alone)
