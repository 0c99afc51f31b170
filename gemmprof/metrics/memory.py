"""Shared, global and local memory, and the memory chart."""

from __future__ import annotations

from gemmprof.base.foreign_files import facts
from gemmprof.base.spread import grouped
from gemmprof.metrics import constants
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
    ((space, operation), tuple(found)) for (space, operation, _), found in _TERMS.items()
)
SHARED_INSTRUCTIONS_OF = {
    kind: SPACE_INSTRUCTIONS["global" if kind == "async_copy" else "shared", kind][0]
    for kind in ("load", "store", "atomic", "ldmatrix", "stmatrix", "async_copy")
}


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
        *(name for known in SHARED_CONFLICTS_OF.values() for name in known),
        *(name for known in SHARED_INSTRUCTIONS_OF.values() for name in known),
        constants.L1_THROUGHPUT,
        constants.L1_ACTIVE_CYCLES,
        constants.L1_ELAPSED_CYCLES,
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
        *constants.ASYNC_COPY_SECTORS,
        *GLOBAL_HIT_RATE_OF.values(),
        constants.L2_ACTIVE_CYCLES,
        constants.L2_ELAPSED_CYCLES,
    ),
)

# --- Local memory ----------------------------------------------------------------------------------------------------

LOCAL_LOADS, LOCAL_STORES = (SPACE_INSTRUCTIONS["local", kind][0] for kind in _LOAD_AND_STORE)
LOCAL_REQUESTS_OF, LOCAL_SECTORS_OF, LOCAL_HIT_RATE_OF = (
    {kind: f"l1tex__t_{what}_pipe_lsu_mem_local_op_{_KINDS[kind]}{value}" for kind in _LOAD_AND_STORE}
    for what, value in (("requests", ".sum"), ("sectors", ".sum"), ("sector", "_hit_rate.pct"))
)

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
    required=(constants.L2_TO_L1_BYTES, constants.L1_TO_L2_BYTES),
    of_tables=(
        constants.DSHARED_READ_BYTES,
        constants.DSHARED_WRITE_BYTES,
        constants.TMA_LOAD_BYTES,
        constants.TMA_STORE_BYTES,
        constants.TMA_REDUCTION_BYTES,
        constants.ASYNC_COPY_L1_BYTES,
        constants.ASYNC_COPY_L2_BYTES,
        constants.L2_FABRIC_SECTORS,
        *(name for terms in SPACE_INSTRUCTIONS.values() for known in terms for name in known),
        *SPACE_REQUESTS.values(),
        *SPACE_SECTORS.values(),
        constants.MEMORY_PIPES_BUSY,
        constants.DRAM_BYTES_PER_SECOND,
        constants.L1_HIT_RATE,
        constants.L2_HIT_RATE,
        constants.SHARED_PEAK_PERCENT,
        constants.SHARED_WAVEFRONTS,
        *constants.DRAM_READ_BYTES,
        *constants.DRAM_WRITE_BYTES,
        *(name for known in OFF_CHIP_SECTORS.values() for name in known),
    ),
)
