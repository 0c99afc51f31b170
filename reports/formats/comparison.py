"""Two sides and one launch's room: ``diff`` and ``occupancy``."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from gemmprof.analysis.comparison.reasons import Reason


class DiffKernel(TypedDict):
    """What became of one kernel: the contract of the format."""

    name: Annotated[str, "full demangled name; untrusted text"]
    grid: Annotated[str, "`64x32x1`"]
    launches_before: Annotated[int, "repetitions of the side before"]
    launches_after: Annotated[int, "repetitions of the side after"]
    verdict: Annotated[str, "same, faster, slower, unclear, new or gone"]
    time_change: Annotated[float | None, "time after over time before, minus 1"]
    low: Annotated[float | None, "lower end of its interval, corrected for the number of kernels"]
    high: Annotated[float | None, "upper end of its interval"]
    changed: Annotated[list[str], "what differs between the sides: code, counters, clocks, tools"]


class QuantityChange(TypedDict):
    """One quantity before and after."""

    name: Annotated[str, "identifier, for example `ffma_per_shared_load`"]
    title: Annotated[str, "name for people"]
    group: Annotated[str, "time, limits, instructions, memory, shared memory, occupancy or stalls"]
    unit: Annotated[str, "of both values"]
    before: Annotated[float | None, "null where it was not collected"]
    after: Annotated[float | None, "null where it was not collected"]
    better: Annotated[str, "lower, higher or neither"]
    whole: Annotated[float, "what the quantity is a part of, in its unit; 0 for one of its own"]
    verdict: Annotated[str, "better, worse, same, or changed where neither is better"]
    ratio: Annotated[float | None, "after over before"]


class DiffDetails(TypedDict):
    """More of the same kernel; as many entries as ``kernels``, in the same order."""

    label: Annotated[str, "short name"]
    before: Annotated[str | None, "name before, null for a new kernel"]
    after: Annotated[str | None, "name after, null for one that is gone"]
    block: Annotated[str, "`256x1x1`"]
    paired_by: Annotated[str, "how the two were recognised as one kernel"]
    seconds_before: Annotated[float | None, "median time"]
    seconds_after: Annotated[float | None, "median time"]
    timed_without_profiler: Annotated[bool, "whether the times are from outside the profiler"]
    cycles_change: Annotated[float | None, "elapsed cycles after over before, minus 1"]
    detectable: Annotated[float | None, "the smallest change that these data could have shown"]
    probability: Annotated[float | None, "of seeing such a difference where nothing changed"]
    noise_class: Annotated[str, "which kernels it was compared with for its usual noise"]
    reasons: Annotated[list[Reason], "what differs, a sentence each"]
    note: Annotated[str, "a remark, '' without one"]
    changes: Annotated[list[QuantityChange], "every quantity that both sides have"]


class BrokenCondition(TypedDict):
    """A condition that does not hold."""

    kernel: Annotated[str, "full demangled name"]
    condition: Annotated[str, "as it was written"]
    text: Annotated[str, "in words"]
    waived: Annotated[str | None, "the waiver's reason, null without one"]


class Undecided(TypedDict):
    """A condition that the data cannot decide."""

    kernel: Annotated[str, "full demangled name"]
    text: Annotated[str, "in words"]


class Gate(TypedDict):
    """What the gate says."""

    holds: Annotated[bool, "no condition is broken without a waiver"]
    conditions: Annotated[list[str], "as they were written"]
    checked: Annotated[int, "kernels that were looked at"]
    broken: Annotated[list[BrokenCondition], "conditions that do not hold"]
    undecided: Annotated[list[Undecided], "conditions that cannot be decided"]


class DiffRecord(TypedDict):
    """``gemmprof diff``."""

    format: Annotated[str, "gemmprof.diff/1"]
    kernels: Annotated[list[DiffKernel], "a kernel and grid each"]
    details: Annotated[list[DiffDetails], "more of each"]
    before: Annotated[str, "what was read as before"]
    after: Annotated[str, "what was read as after"]
    notes: Annotated[list[str], "what makes the comparison doubtful"]
    gate: NotRequired[Annotated[Gate, "with conditions only"]]


class OccupancyAnswer(TypedDict):
    """What the calculator says of one configuration."""

    compute_capability: Annotated[str, "`9.0`"]
    threads_per_block: Annotated[int, "as asked"]
    registers_per_thread: Annotated[int, "as asked"]
    shared_memory_per_block: Annotated[int, "bytes, as asked"]
    shared_memory_config: Annotated[int, "carve-out of shared memory, bytes"]
    block_barriers: Annotated[int, "as asked"]
    cluster_size: Annotated[int, "blocks of a cluster, 1 without"]
    blocks_per_sm: Annotated[int, "resident blocks on an SM"]
    active_warps_per_sm: Annotated[int, "their warps"]
    max_warps_per_sm: Annotated[int, "the SM's warp slots"]
    theoretical_occupancy_percent: Annotated[float, "the one over the other, 0 to 100"]
    limiters: Annotated[list[str], "resources that admit no further block"]
    binding: Annotated[list[str], "those of them that cost occupancy"]
    block_limits: Annotated[
        dict[str, int | None], "blocks that each resource admits; null: it does not limit"
    ]
    registers_allocated_per_block: Annotated[int, "with what allocation rounds up"]
    shared_memory_allocated_per_block: Annotated[int, "bytes, with what allocation rounds up"]
    registers_left: Annotated[int, "of the SM"]
    shared_memory_left: Annotated[int, "of the carve-out, bytes"]
    warps_left: Annotated[int, "warp slots of the SM"]


class Helps(TypedDict):
    """A change that raises occupancy."""

    change: Annotated[str, "in words"]
    blocks_per_sm: Annotated[int, "resident blocks then"]
    theoretical_occupancy_percent: Annotated[float, "0 to 100"]


class GpuAnswer(OccupancyAnswer):
    """The same for a GPU, with its reasoning."""

    gpu: Annotated[str | None, "its name; null for an architecture"]
    sm_count: NotRequired[Annotated[int, "SMs of the GPU, where it is known"]]
    blocks_per_gpu: NotRequired[Annotated[int, "resident blocks on the whole GPU"]]
    max_active_clusters_bound: NotRequired[Annotated[int, "clusters that fit at most"]]
    reasoning: Annotated[list[str], "the arithmetic, a sentence a step"]
    what_would_help: Annotated[list[Helps], "the nearest changes that raise occupancy"]


class Refused(TypedDict):
    """A configuration that a GPU cannot launch."""

    gpu: Annotated[str | None, "its name; null for an architecture"]
    compute_capability: Annotated[str, "`9.0`"]
    error: Annotated[str, "why"]


class CalculatorRecord(TypedDict):
    """``gemmprof occupancy --regs … --threads …``."""

    format: Annotated[str, "gemmprof.occupancy/1"]
    answers: Annotated[list[GpuAnswer | Refused], "one a GPU"]


class BuiltRecord(TypedDict):
    """One kernel of a build."""

    kernel: Annotated[str, "demangled name"]
    architecture: Annotated[str, "`sm_90`"]
    registers_per_thread: Annotated[int, "as compiled"]
    static_shared_memory: Annotated[int, "bytes"]
    barriers: Annotated[int, "block barriers"]
    stack_bytes: Annotated[int, "of a thread"]
    spill_store_bytes: Annotated[int, "of a thread"]
    spill_load_bytes: Annotated[int, "of a thread"]
    warning: Annotated[str | None, "what the compiler said"]
    occupancy: Annotated[OccupancyAnswer | None, "null where it cannot be computed"]
    error: Annotated[str | None, "why not"]


class BuildRecord(TypedDict):
    """``gemmprof occupancy --ptxas`` and ``--cubin``."""

    format: Annotated[str, "gemmprof.occupancy/1"]
    kernels: Annotated[list[BuiltRecord], "every kernel of the build"]


class Loss(TypedDict):
    """Occupancy that a launch did not reach."""

    kind: Annotated[str, "of the loss"]
    points: Annotated[float, "per cent of the warp slots"]
    text: Annotated[str, "in words"]


class LaunchOccupancyRecord(TypedDict):
    """One launch of a report."""

    report: Annotated[str, "the report, as it was named"]
    launch: Annotated[int, "position in it, from 0"]
    kernel: Annotated[str, "full demangled name; untrusted text"]
    gpu: Annotated[str, "name of the GPU"]
    theoretical_occupancy_percent: Annotated[float | None, "0 to 100"]
    achieved_occupancy_percent: Annotated[float | None, "0 to 100, averaged over time and SMs"]
    even_occupancy_percent: Annotated[float | None, "what blocks spread evenly over SMs and time would reach"]
    blocks_per_sm: Annotated[int | None, "resident blocks on an SM"]
    block_limits: Annotated[dict[str, int | None], "blocks that each resource admits"]
    limited_by: Annotated[list[str], "resources that admit the fewest"]
    waves: Annotated[float | None, "grid over resident blocks"]
    full_waves: Annotated[int | None, "whole waves"]
    last_wave_blocks: Annotated[int | None, "blocks of the last wave, 0 if it is whole"]
    losses: Annotated[list[Loss], "where the achieved occupancy was lost"]
    what_would_help: Annotated[list[str], "changes that raise it, a sentence each"]


class LaunchNotCollected(TypedDict):
    """A launch whose report lacks what is needed."""

    report: Annotated[str, "the report, as it was named"]
    launch: Annotated[int, "position in it, from 0"]
    kernel: Annotated[str, "full demangled name; untrusted text"]
    gpu: Annotated[str, "name of the GPU"]
    not_collected: Annotated[list[str], "metrics that are missing"]
    collect_with: Annotated[str, "the ncu option that collects them"]


class LaunchesRecord(TypedDict):
    """``gemmprof occupancy REPORT``."""

    format: Annotated[str, "gemmprof.occupancy/1"]
    launches: Annotated[list[LaunchOccupancyRecord | LaunchNotCollected], "in the order of the reports"]
