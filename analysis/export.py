"""Tables of everything in reports: kernels, metrics (long and wide), instructions and lines, as Parquet, CSV or JSON lines.

Reports are read launch by launch and written slice by slice, so memory does not grow with the number of launches. Each
table's columns are typed as the report stores them: counters are 64-bit integers, ratios are doubles, names are text, and
what was not collected is null.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof import metrics as m
from gemmprof.analysis.report_file import ReportReader
from gemmprof.errors import GemmprofError, ReportError, UsageError
from gemmprof.model import Instances, KernelProfile, MetricValue

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = ("kernels", "metrics", "metrics_wide", "instructions", "lines")
FORMATS = ("parquet", "csv", "jsonl")

SLICE_ROWS = 1 << 17
"""A slice ends with the launch that brings its metrics or its instructions to this number of rows."""

Progress = Callable[[int, int], None]
"""Called with the number of launches done and the number of all."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the files, the launches in them, and why other reports could not be read."""

    files: tuple[Path, ...]
    launches: int
    failures: tuple[GemmprofError, ...] = ()


def export_tables(
    reports: Sequence[str | os.PathLike[str]],
    directory: str | os.PathLike[str],
    *,
    format: str = "parquet",  # noqa: A002 (the option's name)
    tables: Sequence[str] = TABLES,
    progress: Progress | None = None,
) -> Exported:
    """Write tables of these reports into a folder, one file a table.

    A file appears under its name only when it is complete. Columns ``report`` and ``launch`` join the tables.

    Raises:
        UsageError: for an unknown table or format, or no report.
        ReportError: the first failure, if no report can be read. Otherwise failures are in the result, and launches
            of a report that turned out damaged half-way are not in the tables.
    """
    if format not in FORMATS:
        raise UsageError(f"'{format}' is no table format", remedies=[f"use one of {', '.join(FORMATS)}"])
    if unknown := [name for name in tables if name not in TABLES]:
        raise UsageError(f"'{unknown[0]}' is no table", remedies=[f"use some of {', '.join(TABLES)}"])
    if not reports:
        raise UsageError("no report was named", remedies=["name a .ncu-rep file"])
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    failures: list[GemmprofError] = []
    launches = 0
    with tempfile.TemporaryDirectory(dir=folder, prefix=".gemmprof-") as scratch:
        spools = {name: _Spool(Path(scratch) / name) for name in tables}
        try:
            for path in reports:
                marks = {name: spool.mark() for name, spool in spools.items()}
                try:
                    launches += _export_report(path, spools, progress)
                except ReportError as error:
                    failures.append(error)
                    for name, spool in spools.items():
                        spool.rewind(marks[name])
            if len(failures) == len(reports):
                raise failures[0]
            files = tuple(spool.finish(folder / f"{name}.{format}", format) for name, spool in spools.items())
        finally:
            for spool in spools.values():
                spool.close()
    return Exported(files, launches, tuple(failures))


def _export_report(
    path: str | os.PathLike[str], spools: dict[str, _Spool], progress: Progress | None
) -> int:
    with ReportReader(path) as reader:
        count = len(reader)
        # Without this metric no launch was measured by address, and instance values need not be looked at.
        by_address = bool({"instructions", "lines"} & set(spools)) and m.INSTRUCTIONS_BY_ADDRESS in reader.names
        builder = _Builder(os.fspath(path), tuple(spools))
        profiles = reader.profiles(
            source=_is_measured_by_address if by_address else False,
            units="metrics" in spools,
            instances=by_address,
            rules=False,
        )
        for done, profile in enumerate(profiles, 1):
            builder.add(profile)
            if builder.is_full or done == count:
                for name, table in builder.tables():
                    spools[name].write(table)
                if progress is not None:
                    progress(done, count)
    return count


def _is_measured_by_address(profile: KernelProfile) -> bool:
    return m.INSTRUCTIONS_BY_ADDRESS in profile.instances


@dataclass(slots=True)
class _Builder:
    """Collects the rows of one slice of launches and turns them into Arrow tables."""

    report: str
    names: tuple[str, ...]
    profiles: list[KernelProfile] = field(default_factory=list)
    instructions: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    metrics: int = 0

    @property
    def is_full(self) -> bool:
        return self.metrics >= SLICE_ROWS or len(self.instructions) + len(self.lines) >= SLICE_ROWS

    def add(self, profile: KernelProfile) -> None:
        if _is_measured_by_address(profile) and ("instructions" in self.names or "lines" in self.names):
            rows = list(_instruction_rows(self.report, profile))
            if "lines" in self.names:
                self.lines += _line_rows(self.report, profile.index, rows)
            if "instructions" in self.names:
                self.instructions += rows
        self.profiles.append(profile)
        self.metrics += len(profile.metrics)

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """The slice as tables, by name; the builder is empty afterwards."""
        for name in self.names:
            if name == "kernels":
                yield name, _table([_kernel_row(self.report, profile) for profile in self.profiles])
            elif name == "metrics":
                yield name, _long_table(self.report, self.profiles)
            elif name == "metrics_wide":
                yield name, _wide_table(self.report, self.profiles)
            elif name == "instructions":
                yield name, _table(self.instructions, _CODE_COLUMNS)
            elif name == "lines":
                yield name, _table(self.lines, _LINE_COLUMNS)
        self.profiles, self.instructions, self.lines, self.metrics = [], [], [], 0


_KEY_COLUMNS: dict[str, type] = {"report": str, "launch": int}
_CODE_COLUMNS: dict[str, type] = {
    **_KEY_COLUMNS,
    "address": int,
    "offset": int,
    "sass": str,
    "file": str,
    "line": int,
}
_LINE_COLUMNS: dict[str, type] = {**_KEY_COLUMNS, "file": str, "line": int, "instructions": int}


def _kernel_row(report: str, profile: KernelProfile) -> dict[str, Any]:
    launch, device = profile.launch, profile.device
    return {
        "report": report,
        "launch": profile.index,
        "workload": profile.workload,
        "name": profile.name,
        "function": profile.function_name,
        "mangled": profile.mangled_name,
        "device": device.name,
        "compute_capability": ".".join(map(str, device.compute_capability)),
        **{f"grid_{axis}": size for axis, size in zip("xyz", launch.grid, strict=True)},
        **{f"block_{axis}": size for axis, size in zip("xyz", launch.block, strict=True)},
        "registers_per_thread": launch.registers_per_thread,
        "static_shared_memory": launch.static_shared_memory,
        "dynamic_shared_memory": launch.dynamic_shared_memory,
        "driver_shared_memory": launch.driver_shared_memory,
        "waves_per_sm": launch.waves_per_sm,
        "stream": launch.stream,
        "context": launch.context,
        "duration_ns": profile.number(m.DURATION),
        # A list in one cell: range names may hold any character.
        "nvtx": json.dumps(profile.nvtx, ensure_ascii=False) if profile.nvtx else None,
    }


def _long_table(report: str, profiles: Sequence[KernelProfile]) -> pa.Table:
    """One row a launch and metric. ``value`` is the number; ``integer`` keeps every digit of a counter."""
    import pyarrow as pa

    numbers: dict[str, int] = {}
    launches: list[int] = []
    metrics: list[int] = []
    values: list[MetricValue] = []
    for profile in profiles:
        launches += [profile.index] * len(profile.metrics)
        metrics += [numbers.setdefault(name, len(numbers)) for name in profile.metrics]
        values += profile.metrics.values()
    names = list(numbers)
    # All profiles of a report share one mapping of units, which the last one has seen whole.
    units = [profiles[-1].units.get(name, "") if profiles else "" for name in names]
    unit_names = list(dict.fromkeys(units))
    unit_numbers = [unit_names.index(unit) for unit in units]
    indices = pa.array(metrics, pa.int32())
    return pa.table(
        {
            "report": _repeated(report, len(metrics)),
            "launch": pa.array(launches, pa.int64()),
            "metric": pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string())),
            "unit": pa.DictionaryArray.from_arrays(
                pa.array(unit_numbers, pa.int32()).take(indices), pa.array(unit_names, pa.string())
            ),
            "value": pa.array([None if type(v) is str else float(v) for v in values], pa.float64()),
            "integer": pa.array([v if type(v) is int else None for v in values], pa.uint64()),
            "text": pa.array([v if type(v) is str else None for v in values], pa.string()),
        }
    )


def _repeated(text: str, count: int) -> pa.DictionaryArray:
    import numpy as np
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text], pa.string()))


def _wide_table(report: str, profiles: Sequence[KernelProfile]) -> pa.Table:
    """One row a launch, one column a metric."""
    import pyarrow as pa

    columns: dict[str, Any] = {
        "report": pa.array([report] * len(profiles), pa.string()),
        "launch": pa.array([profile.index for profile in profiles], pa.int64()),
        "name": pa.array([profile.name for profile in profiles], pa.string()),
    }
    mappings = [profile.metrics for profile in profiles]
    for name in dict.fromkeys(name for mapping in mappings for name in mapping):
        columns[name] = _column([mapping.get(name) for mapping in mappings])
    return pa.table(columns)


def _column(values: list[Any], kind: type | None = None) -> pa.Array:
    """An array of the narrowest type that holds the values: 64-bit integers, else doubles, else text."""
    import pyarrow as pa

    kinds = set(map(type, values)) - {type(None)} or {kind or float}
    if kinds == {int}:
        whole = [value for value in values if value is not None]
        return pa.array(values, pa.uint64() if kind is None or (whole and max(whole) >> 63) else pa.int64())
    if kinds == {float}:
        return pa.array(values, pa.float64())
    if kinds == {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _table(rows: Sequence[dict[str, Any]], columns: dict[str, type] | None = None) -> pa.Table:
    """Rows as a table; ``columns`` are there even if no row has them."""
    import pyarrow as pa

    names = dict.fromkeys([*(columns or ()), *(name for row in rows for name in row)])
    return pa.table(
        {name: _column([row.get(name) for row in rows], (columns or {}).get(name)) for name in names}
    )


def _instruction_rows(report: str, profile: KernelProfile) -> Iterator[dict[str, Any]]:
    """One row an instruction, with every metric that the report holds by address."""
    source = profile.source
    code = {instruction.address: instruction for instruction in source.instructions}
    measured = _metrics_by_address(profile, code)
    addresses = sorted({*code, *(address for values in measured.values() for address in values)})
    for address in addresses:
        instruction = code.get(address)
        row: dict[str, Any] = {
            "report": report,
            "launch": profile.index,
            "address": address,
            "offset": address - source.function_address,
            "sass": instruction.sass if instruction else None,
            "file": instruction.file if instruction else None,
            "line": instruction.line if instruction else None,
        }
        for name, values in measured.items():
            if address in values:
                row[name] = values[address]
        yield row


def _metrics_by_address(profile: KernelProfile, code: Iterable[int]) -> dict[str, dict[Any, Any]]:
    """Metrics whose instances are keyed by the address of an instruction."""
    known = set(code)
    executed = profile.instances.get(m.INSTRUCTIONS_BY_ADDRESS)
    known.update(executed.keys if executed is not None else ())  # type: ignore[arg-type]
    found = {}
    for name, instances in profile.instances.items():
        if len(instances) and isinstance(instances, Instances) and instances.keys[0] in known:
            found[name] = dict(instances.items())
    return found


def _line_rows(report: str, launch: int, rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row a CUDA line: sums over its instructions, without metrics whose sum means nothing."""
    lines: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        if row["file"] is None:
            continue
        key = (row["file"], row["line"])
        line = lines.get(key)
        if line is None:
            line = lines[key] = {
                "report": report,
                "launch": launch,
                "file": row["file"],
                "line": row["line"],
                "instructions": 0,
            }
        line["instructions"] += 1
        for name, value in row.items():
            if name not in _CODE_COLUMNS and name not in m.NOT_ADDITIVE_BY_ADDRESS and not isinstance(value, str):
                line[name] = line.get(name, 0) + value
    return iter(lines[key] for key in sorted(lines))


class _Spool:
    """Slices of one table on disk until its columns are known, then written as one file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.slices: list[Path] = []
        self.schema: pa.Schema | None = None

    def mark(self) -> tuple[int, pa.Schema | None]:
        """Where the spool stands, for `rewind`."""
        return len(self.slices), self.schema

    def rewind(self, mark: tuple[int, pa.Schema | None]) -> None:
        """Forget the slices after the mark."""
        for path in self.slices[mark[0] :]:
            path.unlink()
        self.slices, self.schema = self.slices[: mark[0]], mark[1]

    def write(self, table: pa.Table) -> None:
        """Add a slice."""
        import pyarrow as pa

        if table.num_rows or self.schema is None:
            self.schema = table.schema if self.schema is None else _unified(self.schema, table.schema)
            path = self.folder / f"{len(self.slices)}.arrow"
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
            self.slices.append(path)

    def tables(self) -> Iterator[pa.Table]:
        """The slices, each with all columns."""
        import pyarrow as pa

        schema = self.schema
        assert schema is not None
        for path in self.slices:
            with pa.OSFile(str(path), "rb") as source:
                table = pa.ipc.open_file(source).read_all()
            if table.schema != schema:
                there = dict(zip(table.column_names, table.columns, strict=True))
                table = pa.table(
                    [
                        there[part.name].cast(part.type) if part.name in there else pa.nulls(len(table), part.type)
                        for part in schema
                    ],
                    schema=schema,
                )
            yield table

    def finish(self, target: Path, format_name: str) -> Path:
        """Write the file and return its path."""
        assert self.schema is not None
        temporary = self.folder / target.name
        _WRITERS[format_name](temporary, self.schema, self.tables())
        temporary.replace(target)
        return target

    def close(self) -> None:
        """Nothing is held open between slices."""


def _unified(known: pa.Schema, new: pa.Schema) -> pa.Schema:
    """All columns of both; where types differ, numbers become doubles and anything with text becomes text."""
    import pyarrow as pa

    types = {part.name: part.type for part in known}
    for part in new:
        old = types.setdefault(part.name, part.type)
        if old != part.type:
            numeric = all(pa.types.is_floating(t) or pa.types.is_integer(t) for t in (old, part.type))
            types[part.name] = pa.float64() if numeric else pa.string()
    return pa.schema(list(types.items()))


def _write_parquet(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Measured values hardly repeat: a dictionary of them would only cost time.
    texts = [part.name for part in schema if not pa.types.is_primitive(part.type)]
    with pq.ParquetWriter(
        path, schema, compression="zstd", write_statistics=False, use_dictionary=texts
    ) as writer:
        for table in tables:
            writer.write_table(table)


def _write_csv(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    import pyarrow.csv as pc

    plain = _plain_schema(schema)
    with pc.CSVWriter(path, plain) as writer:
        for table in tables:
            writer.write_table(table.cast(plain))


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
                file.write(encode(pairs) + "\n")


_INFINITIES = (float("inf"), float("-inf"))
_WRITERS: dict[str, Callable[[Path, pa.Schema, Iterable[pa.Table]], None]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "jsonl": _write_jsonl,
}


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema without dictionary encoding, which CSV does not know."""
    import pyarrow as pa

    return pa.schema(
        [
            (part.name, part.type.value_type if pa.types.is_dictionary(part.type) else part.type)
            for part in schema
        ]
    )
