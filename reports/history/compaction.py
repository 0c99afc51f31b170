"""Many records as one file, sorted by series and time, with its index."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from gemmprof.analysis.history.overview import Times, series_with_steps
from gemmprof.reports.history.files import ROW_GROUP, new_parquet, write_table
from gemmprof.reports.history.index import index_of, index_table
from gemmprof.reports.history.listing import REPLACES, Listing

MEMORY = "1GB"
"""What sorting may take; more rows than fit go through files."""


def write_compacted(files: Listing, target: Path) -> None:
    """Write the rows of these files into one, and its index; rows pass through in bounded memory.

    Args:
        files: what to put together.
        target: the compacted file; it counts from the moment that it has its name, which is after its index has.

    Raises:
        duckdb.Error: if a file is damaged.
    """
    import duckdb
    import numpy as np
    import pyarrow as pa

    piece, names = files.piece(), files.catalogue()
    kinds = names.column("kind").to_pylist()
    times = Times(piece.numbers, piece.counts, piece.values, [kind == "profiled" for kind in kinds])
    loud = list(series_with_steps(times))
    quiet = ~np.isin(piece.numbers, loud)
    order = np.lexsort((piece.numbers, quiet))
    starts = np.empty(len(order), np.int64)
    starts[order] = np.cumsum(piece.counts[order]) - piece.counts[order]

    replaces = {REPLACES: json.dumps([path.name for path in files.all]).encode()}
    write_table(index_table(piece, names, starts).replace_schema_metadata(replaces), index_of(target))
    with tempfile.TemporaryDirectory(prefix="gemmprof-") as spill, duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false; SET TimeZone = 'UTC'")
        connection.execute(f"SET memory_limit = '{MEMORY}'")
        connection.execute("SET temp_directory = $1", [spill])
        connection.register("loud", pa.table({"number": pa.array(loud, pa.int64())}))
        paths = [str(path) for path in files.all]
        connection.register("points", connection.read_parquet(paths, union_by_name=True))
        rows = connection.sql(
            "SELECT * FROM points ORDER BY series NOT IN (SELECT number FROM loud), series, recorded_at"
        ).to_arrow_reader(16 * ROW_GROUP)
        with new_parquet(target, rows.schema.with_metadata(replaces)) as writer:
            for batch in rows:
                table = pa.Table.from_batches([batch]).replace_schema_metadata(replaces)
                writer.write_table(table, row_group_size=ROW_GROUP)
