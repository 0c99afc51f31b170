"""What accesses and branches cost: coalescing, bank conflicts, divergence, spills."""

from __future__ import annotations

from gemmprof import metrics as m
from gemmprof.analysis.provenance.figure import Figure, table

FIGURES: tuple[Figure, ...] = (
    *table(
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
    *table(
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
    *table(
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
    *table(
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
)
