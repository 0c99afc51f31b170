"""How a launch fills the GPU, and its code: occupancy, source view, launch."""

from __future__ import annotations

from gemmprof import metrics as m
from gemmprof.analysis.provenance.figure import Figure, table

FIGURES: tuple[Figure, ...] = (
    *table(
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
    *table(
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
    *table(
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
