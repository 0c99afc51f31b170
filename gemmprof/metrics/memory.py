"""Shared, global and local memory, and the memory chart."""

from __future__ import annotations

from gemmprof.base.foreign_files import facts
from gemmprof.base.spread import grouped
from gemmprof.metrics import throughput
from gemmprof.metrics.groups import MetricGroup

# --- Shared memory ---------------------------------------------------------------------------------------------------

# Shared memory: counters by operation, in ncu's words. ``op_ld`` counts LDS, LD and LDSM.
_SHARED_OPERATIONS = {
    **{"load": "l1tex__{}_ld", "store": "l1tex__{}_st", "atomic": "l1tex__{}_atom"},
    **{"ldmatrix": "smsp__sass_l1tex_{}_ldsm", "stmatrix": "smsp__sass_l1tex_{}_stsm"},
    **{"async_copy": "smsp__sass_l1tex_{}_ldgsts", "wgmma": "l1tex__{}_gmma"},
}
SHARED_WAVEFRONTS_OF = {
    kind: f"{name.format('data_pipe_lsu_wavefronts_mem_shared_op')}.sum"
    for kind, name in _SHARED_OPERATIONS.items()
}
SHARED_CONFLICTS_OF: dict[str, tuple[str, ...]] = {
    kind: (f"{name.format('data_bank_conflicts_pipe_lsu_mem_shared_op')}.sum",)
    for kind, name in _SHARED_OPERATIONS.items()
}
SHARED_CONFLICTS_OF["async_copy"] = (
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
    *SHARED_CONFLICTS_OF["async_copy"],
)
# Warp-level instructions by address space and operation: the sum over the entries, each the first name that the report
# has (another version of ncu, another name).
_TERMS = grouped(
    ((space, operation, term), name) for space, operation, term, name in facts(__file__, "instructions.csv")
)
SPACE_INSTRUCTIONS = grouped(
    ((space, operation), tuple(names)) for (space, operation, _), names in _TERMS.items()
)
SHARED_INSTRUCTIONS_OF = {
    kind: SPACE_INSTRUCTIONS["global" if kind == "async_copy" else "shared", kind][0]
    for kind in ("load", "store", "atomic", "ldmatrix", "stmatrix", "async_copy")
}

L1_ACTIVE_CYCLES = "l1tex__cycles_active.sum"
L1_ELAPSED_CYCLES = "l1tex__cycles_elapsed.sum"

BANK_CONFLICTS = MetricGroup(
    sections=("MemoryWorkloadAnalysis_Tables", "SourceCounters"),
    required=(
        SHARED_WAVEFRONTS_OF["load"],
        SHARED_WAVEFRONTS_OF["store"],
        *SHARED_CONFLICTS_OF["load"],
        *SHARED_CONFLICTS_OF["store"],
    ),
    of_tables=(
        *SHARED_WAVEFRONTS_OF.values(),
        *(name for names in SHARED_CONFLICTS_OF.values() for name in names),
        *(name for names in SHARED_INSTRUCTIONS_OF.values() for name in names),
        throughput.L1_THROUGHPUT,
        L1_ACTIVE_CYCLES,
        L1_ELAPSED_CYCLES,
    ),
)

# --- Global memory ---------------------------------------------------------------------------------------------------

# ncu's words for the kinds of access.
_KINDS = {"load": "ld", "store": "st", "reduction": "red", "atomic": "atom"}
_LOAD_AND_STORE = ("load", "store")
GLOBAL_REQUESTS_OF = {
    **{kind: f"l1tex__t_requests_pipe_lsu_mem_global_op_{word}.sum" for kind, word in _KINDS.items()},
    "async_copy": "sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts.sum",
}
GLOBAL_SECTORS_OF = {
    kind: f"l1tex__t_sectors_pipe_lsu_mem_global_op_{word}.sum" for kind, word in _KINDS.items()
}
# The two add up; `GLOBAL_SECTORS_OF` and `GLOBAL_REQUESTS_OF` of loads count asynchronous copies too.
ASYNC_COPY_SECTORS = (
    "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
    "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum",
)
GLOBAL_HIT_RATE_OF = {
    kind: f"l1tex__t_sector_pipe_lsu_mem_global_op_{word}_hit_rate.pct" for kind, word in _KINDS.items()
}
GLOBAL_BYTES_PER_SECTOR_OF, GLOBAL_BYTES_PER_SECTOR_LIMIT_OF = (
    {
        kind: f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{_KINDS[kind]}.{value}"
        for kind in _LOAD_AND_STORE
    }
    for value in ("ratio", "max_rate")
)
L2_ACTIVE_CYCLES = "lts__cycles_active.sum"
L2_ELAPSED_CYCLES = "lts__cycles_elapsed.sum"

COALESCING = MetricGroup(
    sections=("MemoryWorkloadAnalysis_Tables", "SourceCounters"),
    required=(
        GLOBAL_REQUESTS_OF["load"],
        GLOBAL_REQUESTS_OF["store"],
        GLOBAL_SECTORS_OF["load"],
        GLOBAL_SECTORS_OF["store"],
    ),
    of_tables=(
        *GLOBAL_REQUESTS_OF.values(),
        *GLOBAL_SECTORS_OF.values(),
        *ASYNC_COPY_SECTORS,
        *GLOBAL_HIT_RATE_OF.values(),
        L2_ACTIVE_CYCLES,
        L2_ELAPSED_CYCLES,
    ),
)

# --- Local memory ----------------------------------------------------------------------------------------------------

LOCAL_LOADS, LOCAL_STORES = (SPACE_INSTRUCTIONS["local", kind][0] for kind in _LOAD_AND_STORE)
LOCAL_REQUESTS_OF, LOCAL_SECTORS_OF, LOCAL_HIT_RATE_OF = (
    {kind: f"l1tex__t_{what}_pipe_lsu_mem_local_op_{_KINDS[kind]}{value}" for kind in _LOAD_AND_STORE}
    for what, value in (("requests", ".sum"), ("sectors", ".sum"), ("sector", "_hit_rate.pct"))
)
SPILLING_REQUESTS = "derived__local_spilling_requests"
SPILLING_LOADS = "sass__inst_executed_register_spilling_op_read"
SPILLING_STORES = "sass__inst_executed_register_spilling_op_write"

SPILLS = MetricGroup(
    sections=("MemoryWorkloadAnalysis_Chart", "MemoryWorkloadAnalysis_Tables", "SourceCounters"),
    required=(LOCAL_LOADS[0], LOCAL_STORES[0]),
    of_tables=(
        *LOCAL_REQUESTS_OF.values(),
        *LOCAL_SECTORS_OF.values(),
        *LOCAL_HIT_RATE_OF.values(),
    ),
)

# --- Memory chart ----------------------------------------------------------------------------------------------------

# Memory chart. Where a quantity has another name on some architectures, the names stand in the order of preference.
L1_HIT_RATE = "l1tex__t_sector_hit_rate.pct"
L2_HIT_RATE = "lts__t_sector_hit_rate.pct"
# Sectors that SMs asked of L2: all that it had to fetch first, and those read.
L2_SECTORS_MISSED = "lts__t_sectors_srcunit_tex_lookup_miss.sum"
L2_SECTORS_READ = "lts__t_sectors_srcunit_tex_op_read.sum"
MEMORY_BUSY = "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_BANDWIDTH = "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_PIPES_BUSY = "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed"
PERCENT_SUFFIX = ".pct_of_peak_sustained_elapsed"
PER_SECOND_SUFFIX = ".per_second"

# Requests at the L1 tag stage; with `PERCENT_SUFFIX` their per cent of peak.
SPACE_REQUESTS: dict[tuple[str, str], str] = {
    **{("global", operation): name for operation, name in GLOBAL_REQUESTS_OF.items()},
    **{("local", operation): name for operation, name in LOCAL_REQUESTS_OF.items()},
    ("texture", "load"): "l1tex__t_requests_pipe_tex_mem_texture.sum",
    **{
        ("surface", kind): f"l1tex__t_requests_pipe_tex_mem_surface_op_{word}.sum"
        for kind, word in _KINDS.items()
    },
    **{
        ("distributed_shared", kind): f"l1tex__t_requests_pipe_lsu_mem_dshared_op_{word}.sum"
        for kind, word in {**_KINDS, "reduction": "redas"}.items()
    },
}

# 32-byte sectors of these requests (section MemoryWorkloadAnalysis_Tables).
SPACE_SECTORS: dict[tuple[str, str], str] = {
    **{("global", operation): name for operation, name in GLOBAL_SECTORS_OF.items()},
    **{("local", operation): name for operation, name in LOCAL_SECTORS_OF.items()},
    **{
        key: name.replace("_requests_", "_sectors_")
        for key, name in SPACE_REQUESTS.items()
        if key[0] not in ("global", "local")
    },
}

L2_TO_L1_BYTES = "l1tex__m_xbar2l1tex_read_bytes.sum"
L1_TO_L2_BYTES = "l1tex__m_l1tex2xbar_write_bytes.sum"
DSHARED_READ_BYTES = "l1tex__m_xbar2l1tex_read_bytes_mem_dshared.sum"
DSHARED_WRITE_BYTES = "l1tex__m_l1tex2xbar_write_bytes_mem_dshared.sum"
TMA_LOAD_BYTES = "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum"
TMA_STORE_BYTES = "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum"
TMA_REDUCTION_BYTES = "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_red.sum"
# LDGSTS that goes through L1 (``cp.async.ca``).
ASYNC_COPY_L1_BYTES = "l1tex__t_bytes_pipe_lsu_mem_global_op_ldgsts_cache_access.sum"
# LDGSTS that goes around L1 (``cp.async.cg``).
ASYNC_COPY_L2_BYTES = "sm__sass_l1tex_m_xbar2l1tex_read_bytes_mem_global_op_ldgsts_cache_bypass.sum"
L2_FABRIC_SECTORS = "lts__t_sectors_srcunit_ltcfabric.sum"  # between the two halves of the L2 of large chips
DRAM_READ_BYTES = ("dram__bytes_read.sum", "dram__bytes_op_read.sum")
DRAM_WRITE_BYTES = ("dram__bytes_write.sum", "dram__bytes_op_write.sum")
# L2 sectors that go to or come from system memory (``sysmem``) or another GPU (``peer``).
OFF_CHIP_SECTORS: dict[tuple[str, str], tuple[str, ...]] = {
    (aperture, operation): tuple(
        f"{unit}__t_sectors_srcunit_tex_aperture_{aperture}_op_{operation}{suffix}.sum"
        for unit in ("lts", "syslts")
        # What is written, reduced or updated elsewhere is not looked up in this L2 on newer chips.
        for suffix in (("_lookup_miss",) if operation == "read" else ("", "_lookup_miss"))
    )
    for aperture in ("sysmem", "peer")
    for operation in ("read", "write", "red", "atom")
}

MEMORY_CHART = MetricGroup(
    sections=("MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Chart", "MemoryWorkloadAnalysis_Tables"),
    required=(L2_TO_L1_BYTES, L1_TO_L2_BYTES),
    of_tables=(
        DSHARED_READ_BYTES,
        DSHARED_WRITE_BYTES,
        TMA_LOAD_BYTES,
        TMA_STORE_BYTES,
        TMA_REDUCTION_BYTES,
        ASYNC_COPY_L1_BYTES,
        ASYNC_COPY_L2_BYTES,
        L2_FABRIC_SECTORS,
        *(name for terms in SPACE_INSTRUCTIONS.values() for names in terms for name in names),
        *SPACE_REQUESTS.values(),
        *SPACE_SECTORS.values(),
        MEMORY_PIPES_BUSY,
        throughput.DRAM_BYTES_PER_SECOND,
        L1_HIT_RATE,
        L2_HIT_RATE,
        throughput.SHARED_PEAK_PERCENT,
        throughput.SHARED_WAVEFRONTS,
        *DRAM_READ_BYTES,
        *DRAM_WRITE_BYTES,
        *(name for names in OFF_CHIP_SECTORS.values() for name in names),
    ),
)
