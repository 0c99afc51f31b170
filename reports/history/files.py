"""The Parquet files of a history: written whole or not at all, and read no further than a question needs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof.reports.tables.parquet import new_parquet

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    import pyarrow.parquet as pq

ROW_GROUP = 1 << 14
"""Rows that a reader of one series decodes at least; each group costs every reader of the file a little."""


def new_points(target: Path, schema: pa.Schema) -> AbstractContextManager[pq.ParquetWriter]:
    """A file of points to write to, which takes its name when it is whole on disk; at an error nothing is left."""
    # Times hardly shrink; a reader of one series finds it by the bounds of its number.
    return new_parquet(target, schema, plain=["time_ns"], statistics=["series"])


def write_points(table: pa.Table, target: Path) -> None:
    """Write points as a file, whole or not at all."""
    with new_points(target, table.schema) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP)


def read_columns(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A Parquet file, or some columns of it (``pyarrow.parquet.read_table`` would load what reads data sets first)."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return file.read(columns=columns)


def rows_at(path: Path, starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> pa.Table:
    """Rows of a compacted file: spans by their first row and length; row groups without any are not read."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    order = np.argsort(starts)
    starts, counts = starts[order], counts[order]
    rows = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
    edges = np.cumsum([0, *sizes])
    groups = np.unique(np.searchsorted(edges, rows, "right") - 1)

    def part(group: int) -> pa.Table:
        with pq.ParquetFile(path, metadata=metadata) as file:
            whole = file.read_row_group(group, use_threads=False)
        within = rows[np.searchsorted(rows, edges[group]) : np.searchsorted(rows, edges[group + 1])]
        if within[-1] - within[0] == len(within) - 1:  # one span, as neighbours make it
            return whole.slice(within[0] - edges[group], len(within))
        return whole.take(pa.array(within - edges[group]))

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
        found = list(threads.map(part, groups.tolist()))
    return pa.concat_tables(found) if found else metadata.schema.to_arrow_schema().empty_table()


def rows_of_series(
    path: Path, numbers: npt.NDArray[np.int64], columns: Sequence[str] | None = None
) -> pa.Table:
    """The rows of these series in a single record, which is sorted by series."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    wanted = np.unique(numbers)
    with pq.ParquetFile(path) as file:
        groups = [at for at in range(file.num_row_groups) if _holds(file.metadata.row_group(at), wanted)]
        rows = file.read_row_groups(groups, columns=columns)
    return rows.filter(pc.is_in(rows.column("series"), value_set=pa.array(wanted)))


def _holds(group: pq.RowGroupMetaData, wanted: npt.NDArray[np.int64]) -> bool:
    """Whether a row group can hold one of these series, by the bounds that Parquet keeps of its first column."""
    import numpy as np

    bounds = group.column(0).statistics
    if bounds is None or not bounds.has_min_max:
        return True
    return bool(np.searchsorted(wanted, bounds.max, "right") > np.searchsorted(wanted, bounds.min))
