"""Shared, global and local memory, and the memory chart."""

from __future__ import annotations

from gemmprof.base.foreign_files import facts
from gemmprof.base.spread import grouped
from gemmprof.metrics import constants
from gemmprof.metrics.constants import (
    GLOBAL_HIT_RATE_OF,
    LOCAL_HIT_RATE_OF,
    OFF_CHIP_SECTORS,
    SHARED_CONFLICTS_OF,
    SHARED_WAVEFRONTS_OF,
    SPACE_REQUESTS,
    SPACE_SECTORS,
)
from gemmprof.metrics.groups import MetricGroup

# --- Shared memory ---------------------------------------------------------------------------------------------------

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

GLOBAL_REQUESTS_OF, GLOBAL_SECTORS_OF, LOCAL_REQUESTS_OF, LOCAL_SECTORS_OF = (
    {operation: name for (of, operation), name in names.items() if of == space}
    for space in ("global", "local")
    for names in (SPACE_REQUESTS, SPACE_SECTORS)
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

LOCAL_LOADS, LOCAL_STORES = (SPACE_INSTRUCTIONS["local", kind][0] for kind in ("load", "store"))

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

# Behind the name of a count: its per cent of peak, and its rate.
PERCENT_SUFFIX = ".pct_of_peak_sustained_elapsed"
PER_SECOND_SUFFIX = ".per_second"

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
