"""Exported tables on disk: slices in a scratch folder until all columns are known, then one file a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from gemmprof.base.printable import json_safe, spreadsheet
from gemmprof.reports.tables.parquet import fitted, parquet_writer

FORMATS = ("parquet", "csv", "jsonl")


class Spool:
    """Slices of one table on disk until its columns are known, then written as one file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.slices: list[Path] = []

    def write(self, table: pa.Table, name: str) -> Path:
        """Write a slice under a name of its own, which is added by whoever knows that the report is whole."""
        path = self.folder / f"{name}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return path

    def schema(self) -> pa.Schema:
        """All columns of all slices."""
        schema: pa.Schema | None = None
        for path in self.slices:
            with pa.OSFile(str(path), "rb") as source:
                found = pa.ipc.open_file(source).schema
            schema = found if schema is None else _unified(schema, found)
        # A column without any value in any slice: a number is as good as anything.
        return pa.schema(
            [(part.name, pa.float64() if pa.types.is_null(part.type) else part.type) for part in schema or ()]
        )

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """The slices, each with the columns of the schema."""
        for path in self.slices:
            with pa.OSFile(str(path), "rb") as source:
                table = pa.ipc.open_file(source).read_all()
            yield table if table.schema == schema else fitted(table, schema)

    def finish(
        self, target: Path, format_name: str, amend: Callable[[pa.Table], pa.Table] | None = None
    ) -> Path:
        """Write the file, in a folder that is published when all of it is written, and return its path.

        Args:
            target: the file.
            format_name: one of `FORMATS`.
            amend: adds columns to each slice.
        """
        schema = self.schema()
        tables = self.tables(schema)
        if amend is not None:
            schema = amend(schema.empty_table()).schema
            tables = map(amend, tables)
        _WRITERS[format_name](target, schema, tables)
        return target


def _unified(known: pa.Schema, new: pa.Schema) -> pa.Schema:
    """All columns of both; where types differ, numbers become doubles and anything with text becomes text.

    A column that is null throughout in one of them has the other's type.
    """
    types = {part.name: part.type for part in known}
    for part in new:
        old = types.setdefault(part.name, part.type)
        if pa.types.is_null(old):
            types[part.name] = part.type
        elif old != part.type and not pa.types.is_null(part.type):
            numeric = all(pa.types.is_floating(t) or pa.types.is_integer(t) for t in (old, part.type))
            types[part.name] = pa.float64() if numeric else pa.string()
    return pa.schema(list(types.items()))


def _write_parquet(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    schema = schema.with_metadata({**(schema.metadata or {}), b"pandas": _for_pandas(schema)})
    with parquet_writer(path, schema, checksums=True) as writer:
        for table in tables:
            writer.write_table(table)


def _for_pandas(schema: pa.Schema) -> bytes:
    """What pandas looks at: whole numbers stay whole numbers where some are null, and do not become floats."""
    kinds = {pa.int64(): "Int64", pa.uint64(): "UInt64"}
    columns = [
        {"name": part.name, "field_name": part.name, "pandas_type": str(part.type), "metadata": None}
        | {"numpy_type": kinds[part.type]}
        for part in schema
        if part.type in kinds
    ]
    document = {
        "index_columns": [],
        "column_indexes": [],
        "columns": columns,
        "creator": {"library": "gemmprof"},
    }
    return json.dumps(document).encode("utf-8")


def _write_csv(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Texts are as a spreadsheet may have them (`spreadsheet`); the other formats hold them as they are."""
    import pyarrow.csv as pc

    plain = _plain_schema(schema)
    named = pa.schema([field.with_name(spreadsheet(field.name)) for field in plain])
    with pc.CSVWriter(path, named) as writer:
        for table in tables:
            found = table.cast(plain)
            for at, column in enumerate(found.itercolumns()):
                if pa.types.is_string(column.type):
                    safe = {text: text and spreadsheet(text) for text in column.unique().to_pylist()}
                    if any(text != cell for text, cell in safe.items()):
                        cells = pa.array([safe[text] for text in column.to_pylist()], pa.string())
                        found = found.set_column(at, found.schema.field(at), cells)
            writer.write_table(found.rename_columns(named.names))


def _write_jsonl(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """One object a line, without the fields that are null. NaN and infinities are the strings that Python prints."""
    names = schema.names
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    with path.open("w", encoding="utf-8") as file:
        for table in tables:
            columns = [column.to_pylist() for column in table.itercolumns()]
            for row in zip(*columns, strict=True):
                pairs = {
                    name: value if value == value and value not in _INFINITIES else str(value)
                    for name, value in zip(names, row, strict=True)
                    if value is not None
                }
                file.write(json_safe(encode(pairs)) + "\n")


_INFINITIES = (float("inf"), float("-inf"))
_WRITERS: dict[str, Callable[[Path, pa.Schema, Iterable[pa.Table]], None]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "jsonl": _write_jsonl,
}


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema without dictionary encoding, which CSV does not know."""
    return pa.schema(
        [
            (part.name, part.type.value_type if pa.types.is_dictionary(part.type) else part.type)
            for part in schema
        ]
    )
