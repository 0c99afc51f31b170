"""Tables of everything in reports, as Parquet, CSV or JSON lines: kernels, metrics, samples, instructions and lines.

Reports are read launch by launch and written slice by slice, so memory does not grow with the number of launches.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from gemmprof.analysis.inputs.families import census, without_values
from gemmprof.analysis.reading.report import ReportReader, few_collections, units_of_report
from gemmprof.analysis.session import MANY_LAUNCHES, listing, lots_of
from gemmprof.base.buckets import sent
from gemmprof.base.errors import GemmprofError, ReportError, UsageError
from gemmprof.base.foreign_files import url_of
from gemmprof.base.output import new_folder
from gemmprof.base.printable import json_safe, spreadsheet
from gemmprof.base.spread import each, is_elsewhere
from gemmprof.model import KernelProfile
from gemmprof.reports.tables import TABLES
from gemmprof.reports.tables.launches import TableBuilder, is_measured_by_address, with_families, with_units
from gemmprof.reports.tables.parquet import fitted, parquet_writer


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the files, the launches in them, and why other reports could not be read."""

    files: tuple[Path, ...]
    launches: int
    failures: tuple[GemmprofError, ...] = ()


def export_tables(
    # a mapping gives the positions of the launches to write of each (None: all)
    reports: Iterable[str | os.PathLike[str]] | Mapping[Path, Collection[int] | None],
    directory: str | os.PathLike[str],  # is created; in object storage each file is whole or not there
    *,
    format: str = "parquet",  # noqa: A002 (the option's name): one of `FORMATS`
    tables: Sequence[str] = TABLES,
) -> Exported:
    """Write tables of these reports into a folder, one file a table, which appears under its name only when it is
    complete. Columns ``report`` and ``launch`` join the tables.

    UsageError for an unknown table or format, or no report; ReportError, the first failure, if no report can be read.
    Otherwise failures are in the result, and nothing of a report that turned out damaged is in the tables.
    """
    if format not in FORMATS:
        raise UsageError(f"'{format}' is no table format", f"use one of {', '.join(FORMATS)}")
    if unknown := [name for name in tables if name not in TABLES]:
        raise UsageError(f"'{unknown[0]}' is no table", f"use some of {', '.join(TABLES)}")
    if not reports:
        raise UsageError("no report was named", "name a .ncu-rep file")
    wanted = {Path(path): None for path in reports} if not isinstance(reports, Mapping) else dict(reports)
    folder = Path(directory)
    if url_of(folder):
        # Made where workers see it, too, and sent when all of it is there.
        with sent(folder, within=Path.cwd() if is_elsewhere() else None) as here:
            made = export_tables(wanted, here, format=format, tables=tables)
        return replace(made, files=tuple(folder / file.name for file in made.files))
    names = {name: f"{name}.{format}" for name in tables}
    with_unit = {"metrics", "samples"}.intersection(tables)
    failures: list[GemmprofError] = []
    units: dict[str, Mapping[str, str]] = {}
    listed: list[KernelProfile] = []
    launches = 0
    with new_folder(folder, is_ours=lambda file: file.name in names.values(), durable=True) as staging:
        scratch = staging / "slices"
        scratch.mkdir()
        slices: dict[str, list[Path]] = {name: [] for name in tables}
        lots = {path: lots_of(path, only) for path, only in wanted.items()}
        places = ((path, number, at) for number, path in enumerate(lots) for at in range(len(lots[path])))
        named = ((path, lots[path][at], f"{number:06d}-{at:06d}") for path, number, at in places)
        done_lots = each(_spool_lot, named, (scratch, tuple(tables), bool(with_unit)))
        for path, of_report in lots.items():
            spooled = [next(done_lots) for _ in of_report]
            try:
                done = [lot() for lot in spooled]
            except ReportError as error:
                failures.append(error)
                continue
            if "kernels" in tables and wanted[path] is not None:  # ids are of all launches that were named
                listed += listing(path)
            for count, of_lot, known, bare in done:
                launches += count
                listed += bare if wanted[path] is None else ()
                units[os.fspath(path)] = known
                for name, parts in of_lot.items():
                    slices[name] += parts
        if len(failures) == len(wanted):
            raise failures[0]
        amend = dict.fromkeys(with_unit, partial(with_units, units=units))
        amend["kernels"] = partial(with_families, known=census(listed))
        for name, parts in slices.items():
            joined(parts, staging / names[name], format, amend.get(name))
        shutil.rmtree(scratch)
    return Exported(tuple(folder / name for name in names.values()), launches, tuple(failures))


def _spool_lot(
    scratch: Path, tables: tuple[str, ...], units: bool, path: Path, only: Collection[int] | None, name: str
) -> tuple[int, dict[str, list[Path]], Mapping[str, str], list[KernelProfile]]:
    """Write the slices of a report, or some of its launches: their number, the files of each table in order, units, and
    the launches without their values.
    """
    bare = []
    slices: dict[str, list[Path]] = {table: [] for table in tables}
    with ThreadPoolExecutor(1) as background, ReportReader(path) as reader, few_collections():
        # The native reader works on the units while the values are read.
        known = background.submit(units_of_report, path) if units else None
        launches = len(reader) if only is None else len(only)
        builder = TableBuilder(os.fspath(path), tables)
        # Also what no table shows is read: where the other commands find damage, nothing is exported.
        source = is_measured_by_address if len(reader) > MANY_LAUNCHES else True
        profiles = reader.profiles(source=source, rules=False, only=only)
        for done, profile in enumerate(profiles, 1):
            builder.add(profile)
            if "kernels" in tables:
                bare.append(without_values(profile))
            if builder.is_full or done == launches:
                for of, table in builder.tables():
                    slices[of].append(spool(table, scratch / f"{of}-{name}-{done:06d}.arrow"))
        return launches, slices, known.result() if known else {}, bare


def spool(table: pa.Table, path: Path) -> Path:
    """Write a slice of a table, which counts when its report is known to be whole; returns its path."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return path


def joined(
    slices: Sequence[Path], target: Path, kind: str, amend: Callable[[pa.Table], pa.Table] | None = None
) -> None:
    """Write slices, to each of which ``amend`` adds columns, as one table with all columns of all of them, in a folder
    that is published when it is whole; ``kind``: one of `FORMATS`.
    """
    found = pa.schema([])
    for path in slices:
        with pa.OSFile(str(path), "rb") as source:
            found = _unified(found, pa.ipc.open_file(source).schema)
    # A column without any value in any slice: a number is as good as anything.
    kinds = (pa.float64() if pa.types.is_null(part.type) else part.type for part in found)
    schema = pa.schema(list(zip(found.names, kinds, strict=True)))

    def fitting() -> Iterator[pa.Table]:
        for path in slices:
            with pa.OSFile(str(path), "rb") as source:
                table = pa.ipc.open_file(source).read_all()
            yield table if table.schema == schema else fitted(table, schema)

    tables = fitting()
    if amend is None:
        _WRITERS[kind](target, schema, tables)
    else:
        _WRITERS[kind](target, amend(schema.empty_table()).schema, map(amend, tables))


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
    # What pandas looks at: whole numbers stay whole numbers where some are null, and do not become floats.
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
    schema = schema.with_metadata({**(schema.metadata or {}), b"pandas": json.dumps(document).encode()})
    with parquet_writer(path, schema, checksums=True) as writer:
        for table in tables:
            writer.write_table(table)


def _write_csv(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Texts are as a spreadsheet may have them (`spreadsheet`); the other formats hold them as they are."""
    import pyarrow.csv as pc

    # CSV knows no dictionary encoding.
    kinds = (part.type.value_type if pa.types.is_dictionary(part.type) else part.type for part in schema)
    plain = pa.schema(zip(schema.names, kinds, strict=True))
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
_WRITERS = {"parquet": _write_parquet, "csv": _write_csv, "jsonl": _write_jsonl}
FORMATS = tuple(_WRITERS)
