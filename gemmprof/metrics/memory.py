"""Shared, global and local memory, and the memory chart."""

from __future__ import annotations

from gemmprof.base.spread import grouped
from gemmprof.metrics.constants import INSTRUCTION_TERMS, SPACE_REQUESTS, SPACE_SECTORS

# Warp-level instructions by address space and operation: the sum over the entries, each the first name that the report
# has (another version of ncu, another name).
SPACE_INSTRUCTIONS = grouped(
    ((space, operation), names) for (space, operation, _), names in INSTRUCTION_TERMS.items()
)
LOCAL_LOADS, LOCAL_STORES = (SPACE_INSTRUCTIONS["local", kind][0] for kind in ("load", "store"))
SHARED_INSTRUCTIONS_OF = {
    kind: SPACE_INSTRUCTIONS["global" if kind == "async_copy" else "shared", kind][0]
    for kind in ("load", "store", "atomic", "ldmatrix", "stmatrix", "async_copy")
}
GLOBAL_REQUESTS_OF, GLOBAL_SECTORS_OF, LOCAL_REQUESTS_OF, LOCAL_SECTORS_OF = (
    {operation: name for (of, operation), name in names.items() if of == space}
    for space in ("global", "local")
    for names in (SPACE_REQUESTS, SPACE_SECTORS)
)

# Behind the name of a count: its per cent of peak, and its rate.
PERCENT_SUFFIX = ".pct_of_peak_sustained_elapsed"
PER_SECOND_SUFFIX = ".per_second"
