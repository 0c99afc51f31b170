"""How every figure on a page is computed, and from which metrics: one table, which tests compare with the code.

A figure is named ``<analysis>.<field>`` after the result's dataclass; fields of rows are ``<analysis>.<list>.<field>``.
Where the formula is '' the figure is the metric itself, to the last digit. ``<…>`` in a metric's name stands for a part
that differs from row to row.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof import metrics as m
from gemmprof.analysis.kernel_analysis import ANALYSES


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        key: ``<analysis>.<field>``.
        title: its name on the pages.
        metrics: names of the metrics that it is computed from (instance values where they are per instruction).
        formula: in the metrics' terms, '' where it is the one metric itself.
    """

    key: str
    title: str
    metrics: tuple[str, ...]
    formula: str = ""

    @property
    def words(self) -> str:
        """Formula and metrics in a line."""
        return f"{self.formula}, from {', '.join(self.metrics)}" if self.formula else ", ".join(self.metrics)


_Row = tuple[str, str, "tuple[str, ...] | str"] | tuple[str, str, "tuple[str, ...] | str", str]


def _table(analysis: str, *rows: _Row) -> list[Figure]:
    """Figures of one analysis from rows of field, title, metrics and, where it is no metric itself, formula."""
    return [
        Figure(
            f"{analysis}.{row[0]}",
            row[1],
            (row[2],) if isinstance(row[2], str) else row[2],
            row[3] if len(row) == 4 else "",
        )
        for row in rows
    ]


_SCALAR_FP32 = tuple(m.executed_per_cycle(operation) for operation in ("fadd", "fmul", "ffma"))

_FIGURES: tuple[Figure, ...] = (
    *_table(
        "speed_of_light",
        ("sm_percent", "Compute (SM)", m.SM_THROUGHPUT),
        ("memory_percent", "Memory", m.MEMORY_THROUGHPUT),
        ("l1_percent", "L1/TEX", m.L1_THROUGHPUT),
        ("l2_percent", "L2", m.L2_THROUGHPUT),
        ("dram_percent", "Device memory", m.DRAM_THROUGHPUT),
        ("duration_ns", "Duration under the profiler", m.DURATION),
        ("elapsed_cycles", "Cycles elapsed", m.ELAPSED_CYCLES),
        ("sm_active_cycles", "SM active cycles", m.SM_ACTIVE_CYCLES),
        ("sm_clock_hz", "SM clock", m.SM_CLOCK),
        ("dram_clock_hz", "Memory clock", m.DRAM_CLOCK),
        ("sm_breakdown.percent", "What compute is made of", m.BREAKDOWN_SM, "the metrics that it lists"),
        (
            "memory_breakdown.percent",
            "What memory is made of",
            m.BREAKDOWN_MEMORY,
            "the metrics that it lists",
        ),
        (
            "bottleneck",
            "Nsight Compute calls it",
            (m.SM_THROUGHPUT, m.MEMORY_THROUGHPUT),
            "80 % of either: high throughput; both below 60 %: latency; else the larger, balanced within 10 points",
        ),
    ),
    *_table(
        "roofline",
        (
            "points.achieved",
            "Achieved FLOP/s (FP32)",
            (*_SCALAR_FP32, m.SMSP_CLOCK),
            "(FADD + FMUL + 2 FFMA) per cycle × SMSP clock; tensor paths: operations per cycle × SM clock",
        ),
        (
            "points.compute.peak",
            "Compute peak (FP32)",
            (m.peak_per_cycle("ffma"), m.SM_ELAPSED_CLOCK),
            "2 × peak FFMA per cycle × SM clock",
        ),
        ("points.memory.achieved", "Bandwidth of device memory", m.DRAM_BYTES_PER_SECOND),
        (
            "points.memory.peak",
            "Peak of device memory",
            (m.DRAM_BYTES_PEAK, m.DRAM_CLOCK),
            "peak bytes per cycle × DRAM clock",
        ),
        (
            "memory_roofs.l2",
            "L2 bandwidth and peak",
            (m.L2_TO_XBAR_PER_SECOND, m.L2_TO_XBAR_PEAK, m.L2_CLOCK),
            "32 byte × active cycles of L2 to crossbar; peak: 32 byte × their peak × L2 clock",
        ),
        (
            "memory_roofs.l1",
            "L1 bandwidth and peak",
            (m.L1_WRITEBACK_DSHARED_PER_SECOND, m.L1_WRITEBACK_DSHARED_PEAK, m.L1_CLOCK),
            "128 byte × write-back cycles; peak: 128 byte × their peak × L1 clock",
        ),
        (
            "memory_roofs.shared",
            "Shared-memory bandwidth and peak",
            (*m.SHARED_WAVEFRONTS, m.DURATION, m.L1_CLOCK),
            "128 byte × wavefronts ÷ duration; peak: 128 byte × SMs × L1 clock",
        ),
        (
            "points.intensity",
            "Intensity",
            (*_SCALAR_FP32, m.SMSP_CLOCK, m.DRAM_BYTES_PER_SECOND),
            "achieved FLOP/s ÷ achieved byte/s of the level",
        ),
        (
            "points.attainable",
            "Attainable",
            (m.peak_per_cycle("ffma"), m.SM_ELAPSED_CLOCK, m.DRAM_BYTES_PEAK, m.DRAM_CLOCK),
            "min(compute peak, intensity × memory peak); reached: achieved ÷ attainable; headroom: the inverse",
        ),
    ),
    *_table(
        "memory_chart",
        ("units.hit_rate", "Hit rates", (m.L1_HIT_RATE, m.L2_HIT_RATE), "the metrics themselves"),
        (
            "units.percent_of_peak",
            "How busy a unit is",
            (m.L1_THROUGHPUT, m.L2_THROUGHPUT, m.DRAM_THROUGHPUT, m.SHARED_PEAK_PERCENT),
            "the metrics themselves",
        ),
        (
            "units.busiest",
            "Busiest part of a unit",
            m.BREAKDOWN_MEMORY,
            "the largest of the unit's metrics that it lists",
        ),
        (
            "links.bytes",
            "Bytes of a link",
            (m.L2_TO_L1_BYTES, m.L1_TO_L2_BYTES, m.DRAM_READ_BYTES[0], m.DRAM_WRITE_BYTES[0]),
            "the metrics themselves; at L1's tag stage 32 byte × sectors, at shared memory 128 byte × wavefronts",
        ),
        ("busy_percent", "Memory busy", m.MEMORY_BUSY),
        ("bandwidth_percent", "Busiest connection", m.MEMORY_BANDWIDTH),
        ("pipes_busy_percent", "Memory pipes busy", m.MEMORY_PIPES_BUSY),
        ("dram_bytes_per_second", "Device memory, both ways", m.DRAM_BYTES_PER_SECOND),
    ),
    *_table(
        "warp_states",
        ("cycles_per_issued_instruction", "Cycles per issued instruction", m.CYCLES_PER_ISSUE),
        ("cycles_per_executed_instruction", "Cycles per executed instruction", m.CYCLES_PER_EXECUTED),
        ("threads_per_instruction", "Threads per instruction", m.THREADS_PER_INSTRUCTION),
        (
            "threads_per_instruction_not_predicated",
            "The same, predicated on",
            m.THREADS_PER_INSTRUCTION_PREDICATED_ON,
        ),
        (
            "states.cycles_per_issue",
            "Cycles per issue of a state",
            m.STALL_CYCLES_FAMILY,
            "the metric itself",
        ),
        (
            "states.share",
            "Share of a state",
            (m.STALL_CYCLES_FAMILY, m.CYCLES_PER_ISSUE),
            "its cycles per issue ÷ cycles per issued instruction",
        ),
        ("states.samples", "Samples of a state", m.STALL_SAMPLES_FAMILY, "the metric itself"),
        ("sample_count", "Samples", m.SAMPLE_COUNT),
        ("sampling_interval_cycles", "Cycles between samples", m.SAMPLING_INTERVAL_CYCLES),
    ),
    *_table(
        "scheduler",
        ("issued_per_cycle", "Issued", m.ISSUE_ACTIVE),
        ("one_or_more_eligible_percent", "Cycles that issue", m.ISSUE_ACTIVE_PERCENT),
        ("no_eligible_percent", "Cycles without a ready warp", m.ISSUE_IDLE_PERCENT),
        ("cycles_per_issue", "Cycles per issue", m.ISSUE_ACTIVE, "1 ÷ instructions issued per cycle"),
        ("active_warps", "Active", m.WARPS_ACTIVE_PER_SCHEDULER),
        ("eligible_warps", "Eligible", m.WARPS_ELIGIBLE_PER_SCHEDULER),
        ("max_warps", "Warps that a scheduler can hold", m.WARPS_MAX_PER_SCHEDULER),
        ("theoretical_warps", "Allowed by the launch", m.WARPS_THEORETICAL_PER_SCHEDULER),
        ("instructions_per_cycle_active", "Instructions per cycle, executed (active)", m.IPC_ACTIVE),
        ("instructions_per_cycle_elapsed", "Instructions per cycle, executed (elapsed)", m.IPC_ELAPSED),
        (
            "issued_instructions_per_cycle_active",
            "Instructions per cycle, issued (active)",
            m.ISSUED_IPC_ACTIVE,
        ),
        ("issue_slots_busy_percent", "Issue slots busy", m.ISSUE_SLOTS_BUSY),
        ("sm_busy_percent", "SM busy", m.SM_BUSY),
    ),
    *_table(
        "instruction_mix",
        (
            "executed",
            "Executed",
            m.EXECUTED_PER_OPCODE,
            "sum over all opcodes",
        ),
        ("executed_counter", "Executed, by its own counter", m.INSTRUCTIONS_EXECUTED),
        ("issued", "Issued", m.INSTRUCTIONS_ISSUED),
        ("executed_per_scheduler", "Executed per scheduler", m.INSTRUCTIONS_EXECUTED_PER_SCHEDULER),
        ("issued_per_scheduler", "Issued per scheduler", m.INSTRUCTIONS_ISSUED_PER_SCHEDULER),
        (
            "thread_executed",
            "Thread instructions",
            (m.THREADS_PER_OPCODE, m.THREADS_PREDICATED_BY_ADDRESS),
            "sum over all opcodes, else over all instructions",
        ),
        ("classes.share", "Share of a class", m.EXECUTED_PER_OPCODE, "its opcodes ÷ all executed"),
        (
            "ratios.main_per_shared_load",
            "Arithmetic per shared load",
            m.EXECUTED_PER_OPCODE,
            "executions of the main arithmetic ÷ (LDS + LDSM)",
        ),
        (
            "ratios.main_per_global_load",
            "Arithmetic per global load",
            m.EXECUTED_PER_OPCODE,
            "executions of the main arithmetic ÷ (LDG + LDGSTS)",
        ),
        (
            "ratios.bytes_per_shared_load",
            "Bytes per thread and shared load",
            m.EXECUTED_PER_MODIFIER,
            "mean width of LDS and LDSM by their modifiers",
        ),
        (
            "ratios.bytes_per_global_load",
            "Bytes per thread and global load",
            m.EXECUTED_PER_MODIFIER,
            "mean width of LDG and LDGSTS by their modifiers",
        ),
        (
            "ratios.math_share",
            "Arithmetic, share of all",
            m.EXECUTED_PER_OPCODE,
            "FP32, FP64, FP16, tensor and special ÷ all",
        ),
        (
            "ratios.fma_share",
            "Fused multiply-adds, share of all",
            m.EXECUTED_PER_OPCODE,
            "FFMA, DFMA, HFMA2 ÷ all",
        ),
        ("pipes.percent", "Pipes", m.PIPE_FAMILY, "the metric itself"),
        ("categories", "Nsight Compute's categories", m.EXECUTED_PER_CATEGORY, "the metric itself"),
    ),
    *_table(
        "coalescing",
        (
            "operations.requests",
            "Requests",
            m.GLOBAL_REQUESTS_OF["load"],
            "the metric itself; other accesses alike",
        ),
        (
            "operations.sectors",
            "Sectors",
            m.GLOBAL_SECTORS_OF["load"],
            "the metric itself; other accesses alike",
        ),
        (
            "operations.sectors_per_request",
            "Sectors per request",
            (m.GLOBAL_SECTORS_OF["load"], m.GLOBAL_REQUESTS_OF["load"]),
            "sectors ÷ requests",
        ),
        (
            "operations.bytes_used_per_sector",
            "Bytes used per sector",
            m.GLOBAL_BYTES_PER_SECTOR_OF["load"],
            "the metric itself",
        ),
        ("operations.l1_hit_rate", "L1 hit rate", m.GLOBAL_HIT_RATE_OF["load"], "the metric itself"),
        (
            "excess_share",
            "Sectors beyond what the data needs",
            (m.GLOBAL_SECTORS_BY_ADDRESS, m.GLOBAL_IDEAL_BY_ADDRESS),
            "(sectors − ideal) ÷ sectors",
        ),
        (
            "estimated_speedup",
            "Estimated speed-up",
            (m.GLOBAL_SECTORS_BY_ADDRESS, m.GLOBAL_IDEAL_BY_ADDRESS, m.L2_ACTIVE_CYCLES, m.L2_ELAPSED_CYCLES),
            "share of the excess × share of the cycles in which L2 was active",
        ),
        (
            "lines.tag_requests",
            "Tag look-ups of a line",
            m.GLOBAL_TAGS_BY_ADDRESS,
            "sum over its instructions",
        ),
    ),
    *_table(
        "bank_conflicts",
        (
            "operations.wavefronts",
            "Wavefronts",
            m.SHARED_WAVEFRONTS_OF["load"],
            "the metric itself; other accesses alike",
        ),
        (
            "operations.conflicts",
            "Conflicts",
            m.SHARED_CONFLICTS_OF["load"],
            "the first of them that was collected",
        ),
        (
            "operations.n_way",
            "Wavefronts per request",
            (m.SHARED_WAVEFRONTS_OF["load"], m.SHARED_INSTRUCTIONS_OF["load"][0]),
            "wavefronts ÷ requests",
        ),
        (
            "operations.share",
            "Share of conflicts",
            (m.SHARED_WAVEFRONTS_OF["load"], *m.SHARED_CONFLICTS_OF["load"]),
            "conflicts ÷ wavefronts",
        ),
        (
            "lines.excess",
            "Too many wavefronts of a line",
            (m.SHARED_WAVEFRONTS_BY_ADDRESS, m.SHARED_IDEAL_BY_ADDRESS),
            "wavefronts − ideal",
        ),
    ),
    *_table(
        "divergence",
        ("threads_per_instruction", "Threads per instruction", m.THREADS_PER_INSTRUCTION),
        (
            "threads_per_instruction_predicated_on",
            "The same, predicated on",
            m.THREADS_PER_INSTRUCTION_PREDICATED_ON,
        ),
        ("branches", "Branches executed", m.BRANCHES, "the first of them that was collected"),
        (
            "branch_share",
            "Share of all instructions",
            m.BRANCH_FRACTION,
            "100 × the metric, which is a fraction",
        ),
        (
            "uniform_share",
            "Uniform branch targets",
            m.UNIFORM_BRANCHES_PERCENT,
            "the first of them that was collected",
        ),
        (
            "divergent_branches",
            "Divergent branches",
            m.DIVERGENT_BRANCHES,
            "the first of them that was collected",
        ),
        (
            "divergent_branches_per_scheduler",
            "Divergent branches per scheduler",
            m.DIVERGENT_BRANCHES_PER_SCHEDULER,
            "the first of them that was collected",
        ),
    ),
    *_table(
        "spills",
        ("loads", "Local loads", m.LOCAL_LOADS, "the first of them that was collected"),
        ("stores", "Local stores", m.LOCAL_STORES, "the first of them that was collected"),
        ("load_sectors", "Sectors loaded", m.LOCAL_SECTORS_OF["load"]),
        ("store_sectors", "Sectors stored", m.LOCAL_SECTORS_OF["store"]),
        ("load_hit_rate", "L1 hit rate of loads", m.LOCAL_HIT_RATE_OF["load"]),
        ("store_hit_rate", "L1 hit rate of stores", m.LOCAL_HIT_RATE_OF["store"]),
        ("spilling_requests", "Attributed to spilling by Nsight Compute", m.SPILLING_REQUESTS),
        ("spilling_loads", "of them loads", m.SPILLING_LOADS),
        ("spilling_stores", "of them stores", m.SPILLING_STORES),
        (
            "share_of_l1_sectors",
            "Share of the sectors at L1",
            (*m.LOCAL_SECTORS_OF.values(), m.GLOBAL_SECTORS_OF["load"], m.GLOBAL_SECTORS_OF["store"]),
            "local ÷ (local + global) sectors",
        ),
    ),
    *_table(
        "occupancy",
        ("theoretical_percent", "Theoretical", m.THEORETICAL_OCCUPANCY),
        ("achieved_percent", "Achieved", m.ACHIEVED_OCCUPANCY),
        ("theoretical_warps", "Theoretical, warps", m.THEORETICAL_WARPS),
        ("achieved_warps", "Achieved, warps", m.ACHIEVED_WARPS),
        (
            "block_limits.blocks",
            "Blocks that each resource admits",
            (
                m.BLOCK_LIMIT_REGISTERS,
                m.BLOCK_LIMIT_SHARED_MEMORY,
                m.BLOCK_LIMIT_WARPS,
                m.BLOCK_LIMIT_BLOCKS,
                m.BLOCK_LIMIT_BARRIERS,
            ),
            "the metrics themselves",
        ),
        ("waves", "Waves", m.WAVES_PER_SM),
        (
            "even_percent",
            "Even split",
            (m.THEORETICAL_OCCUPANCY, m.BLOCK_LIMIT_REGISTERS, m.SM_COUNT),
            "theoretical × blocks ÷ (rounds of the SMs × blocks that an SM holds), blocks of equal length",
        ),
        (
            "block_cycles",
            "A block lives, cycles",
            (m.ACHIEVED_WARPS, m.SM_ACTIVE_CYCLES, m.SM_COUNT),
            "achieved warps × active cycles × SMs ÷ warps of the grid",
        ),
        ("max_active_clusters", "Clusters that fit the GPU", m.MAX_ACTIVE_CLUSTERS),
        ("cluster_percent", "Cluster slots filled", m.CLUSTER_OCCUPANCY),
    ),
    *_table(
        "source_view",
        ("sass.executed", "Executed", m.INSTRUCTIONS_BY_ADDRESS, "of a line: sum over its instructions"),
        ("sass.samples", "Samples", m.SAMPLE_COUNT, "samples ÷ all samples"),
        ("sass.stalls", "Waits for", m.STALL_SAMPLES_FAMILY, "samples of each reason ÷ samples"),
        (
            "sass.threads",
            "Threads",
            (m.THREADS_PREDICATED_BY_ADDRESS, m.INSTRUCTIONS_BY_ADDRESS),
            "predicated-on thread executions ÷ warp executions",
        ),
        (
            "sass.sectors",
            "Sectors",
            (m.GLOBAL_SECTORS_BY_ADDRESS, m.GLOBAL_IDEAL_BY_ADDRESS),
            "sectors (sectors ÷ ideal ×)",
        ),
        (
            "sass.wavefronts",
            "Wavefronts",
            (m.SHARED_WAVEFRONTS_BY_ADDRESS, m.SHARED_IDEAL_BY_ADDRESS),
            "wavefronts (wavefronts ÷ ideal ×)",
        ),
        ("sass.local", "Local", m.LOCAL_SECTORS_BY_ADDRESS, "32-byte sectors"),
        (
            "sass.divergent",
            "Divergent",
            m.DIVERGENT_BRANCHES_BY_ADDRESS,
            "the first of them that was collected",
        ),
    ),
    *_table(
        "launch",
        ("waves_per_sm", "Waves per SM", m.WAVES_PER_SM),
        ("registers_per_thread", "Registers per thread", m.REGISTERS_PER_THREAD),
        ("static_shared_memory", "Static shared memory", m.SHARED_MEMORY_STATIC),
        ("dynamic_shared_memory", "Dynamic shared memory", m.SHARED_MEMORY_DYNAMIC),
        ("driver_shared_memory", "Reserved by the driver", m.SHARED_MEMORY_DRIVER),
        ("shared_memory_config", "Shared memory configuration", m.SHARED_MEMORY_CONFIG),
        ("cluster_size", "Cluster size", m.CLUSTER_SIZE),
        ("stack_bytes", "Stack", m.STACK_SIZE),
        ("tpc_count", "Pairs of SMs", m.TPC_COUNT),
        ("sm_count", "SMs", m.SM_COUNT),
    ),
)

FIGURES: dict[str, Figure] = {figure.key: figure for figure in _FIGURES}
"""Every figure by its key."""


def figures_of(analysis: str) -> tuple[Figure, ...]:
    """The figures of one analysis, in the order of its section; () where it has none."""
    return tuple(figure for figure in _FIGURES if figure.key.partition(".")[0] == analysis)


ANALYSES_WITHOUT_FIGURES = frozenset(
    {analysis.NAME for analysis in ANALYSES} - {f.key.partition(".")[0] for f in _FIGURES}
)
"""Analyses that show no number of their own: Nsight Compute's advice."""
