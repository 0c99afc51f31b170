"""The one way a Parquet file is written here: beside its place, onto the disk, then under its name, or not at all.

A whole folder of tables is made that way too, by `gemmprof.base.output.new_folder`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof.base.output import new_file

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


def parquet_writer(
    path: Path,
    schema: pa.Schema,
    *,
    plain: Collection[str] = (),
    statistics: Sequence[str] = (),
    checksums: bool = False,
) -> pq.ParquetWriter:
    """A writer of a Parquet file that nobody reads yet.

    Texts are written as dictionaries, since they repeat; measured values hardly do, so theirs would only cost time.

    Args:
        path: in a folder that is published as a whole (`gemmprof.base.output.new_folder`); else see `new_parquet`.
        schema: its columns.
        plain: columns that are not compressed.
        statistics: columns whose bounds are kept for each row group.
        checksums: keep one for each page: a flipped bit in one page of four goes unnoticed without.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetWriter(
        path,
        schema,
        compression={name: "none" if name in plain else "zstd" for name in schema.names} or "zstd",
        use_dictionary=[part.name for part in schema if not pa.types.is_primitive(part.type)],
        write_statistics=list(statistics) or False,
        write_page_checksum=checksums,
    )


@contextmanager
def new_parquet(
    target: Path, schema: pa.Schema, *, plain: Collection[str] = (), statistics: Sequence[str] = ()
) -> Iterator[pq.ParquetWriter]:
    """A Parquet file to write to, which takes its name when it is whole on disk; at an error nothing is left.

    Args:
        target: the file; what a killed process left of an earlier attempt at it is cleared away.
        schema, plain, statistics: as `parquet_writer` takes them.

    Raises:
        OSError: if it cannot be written; it names the target.
    """
    with (
        new_file(target, durable=True) as path,
        parquet_writer(path, schema, plain=plain, statistics=statistics) as writer,
    ):
        yield writer


def write_parquet(
    table: pa.Table,
    target: Path,
    *,
    row_group: int | None = None,
    plain: Collection[str] = (),
    statistics: Sequence[str] = (),
) -> None:
    """Write a table as a Parquet file, whole or not at all; see `new_parquet`."""
    with new_parquet(target, table.schema, plain=plain, statistics=statistics) as writer:
        writer.write_table(table, row_group_size=row_group)
