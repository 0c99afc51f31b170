"""The rows of the exported tables: launches, metrics, samples, instructions and lines as Arrow tables, slice by slice.

Columns are typed as the report stores them: counters are 64-bit integers, ratios are doubles, names are text, and what
was not collected is null.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gemmprof import metrics as m
from gemmprof.analysis.inputs.families import Census
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.analysis.reading.samples import series_of
from gemmprof.analysis.reading.values import InstanceTable
from gemmprof.model import KernelProfile, MetricValue

CODE_COLUMNS: dict[str, type] = {
    "report": str,
    "launch": int,
    "address": int,
    "offset": int,
    "sass": str,
    "file": str,
    "line": int,
}
LINE_KEYS = ("report", "launch", "file", "line")


@dataclass(slots=True)
class Columns:
    """Rows as lists, one a column; a column that some rows lack is None there."""

    kinds: Mapping[str, type]  # the columns that are there in any case, with their types
    rows: int = 0
    _values: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def cells(self) -> int:
        """How many values are held."""
        return sum(map(len, self._values.values()))

    def extend(self, count: int, values: Mapping[str, Iterable[Any]]) -> None:
        """Add ``count`` rows."""
        for name, column in values.items():
            held = self._values.setdefault(name, [])
            held += [None] * (self.rows - len(held))
            held += column
        self.rows += count

    def add(self, row: Mapping[str, Any]) -> None:
        """Add one row."""
        self.extend(1, {name: [value] for name, value in row.items()})

    def take(self) -> pa.Table:
        """The rows as a table; none are left."""
        columns = {name: self._values.get(name, []) for name in {**self.kinds, **self._values}}
        table = pa.table(
            {
                name: column(values + [None] * (self.rows - len(values)), self.kinds.get(name))
                for name, values in columns.items()
            }
        )
        self.rows, self._values = 0, {}
        return table


def column(values: list[Any], kind: type | None = None) -> pa.Array:
    """An array of the narrowest type that holds the values: 64-bit integers, else doubles, else text.

    Without any value, ``kind`` decides, and without a kind the type stays open (null), for other launches to decide;
    ``int`` as ``kind`` is signed where the values allow it.
    """
    kinds: set[type | None] = {type(value) for value in values if value is not None} or {kind}
    if kinds == {None}:
        return pa.nulls(len(values))
    if kinds == {int}:
        signed = kind is int and max((value for value in values if value is not None), default=0) < 1 << 63
        return pa.array(values, pa.int64() if signed else pa.uint64())
    if kinds == {float}:
        return pa.array(values, pa.float64())
    if kinds == {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def add_code(report: str, profile: KernelProfile, code: Columns) -> None:
    """Add the instructions of a launch."""
    instructions = {instruction.address: instruction for instruction in profile.source.instructions}
    measured = _metrics_by_address(profile, instructions)
    addresses = sorted({*instructions, *(address for values in measured.values() for address in values)})
    found = [instructions.get(address) for address in addresses]
    base, count = profile.source.function_address, len(addresses)
    columns: dict[str, list[Any]] = {
        "report": [report] * count,
        "launch": [profile.index] * count,
        "address": addresses,
        "offset": [address - base for address in addresses],
    }
    columns |= {name: [one and getattr(one, name) for one in found] for name in ("sass", "file", "line")}
    counted = {name: _filled(name, values, addresses) for name, values in measured.items()}
    code.extend(count, columns | counted)


def _filled(name: str, values: Mapping[Any, Any], addresses: Sequence[int]) -> list[Any]:
    """The values of a metric that was collected, at every address: 0 where none is stored, as ncu prints it.

    ncu stores nothing for instructions that a counter does not concern. Null is left for what was not collected, and
    for the kind of an access, which other instructions do not have.
    """
    if name in m.CODES_BY_ADDRESS:
        return list(map(values.get, addresses))
    nothing = 0.0 if any(isinstance(value, float) for value in values.values()) else 0
    return [values.get(address, nothing) for address in addresses]


def _metrics_by_address(profile: KernelProfile, code: Iterable[int]) -> dict[str, dict[Any, Any]]:
    """Metrics whose instances are keyed by the address of an instruction."""
    known: set[Any] = set(code)
    executed = profile.instances.get(m.INSTRUCTIONS_BY_ADDRESS)
    known.update(executed.keys if executed is not None else ())
    found = {}
    table = profile.instances
    for name in table:
        # The values need not be decoded for their keys; the first address may lie in another function, which is called.
        keys = table.columns_of(name)[0] if isinstance(table, InstanceTable) else table[name].keys
        if any(key in known for key in keys):
            found[name] = dict(table[name].items())
    return found


def lines_of(code: pa.Table) -> pa.Table:
    """The CUDA lines of instructions: sums over them, without metrics whose sum means nothing."""
    others = CODE_COLUMNS.keys() | m.NOT_ADDITIVE_BY_ADDRESS
    summed = [name for name in code.column_names if name not in others]
    numbers = [name for name in summed if not pa.types.is_string(code.schema.field(name).type)]
    placed = code.filter(pc.is_valid(code["file"]))
    totals = [("address", "count"), *((name, "sum") for name in numbers)]
    found = placed.group_by(LINE_KEYS, use_threads=False).aggregate(totals)
    found = found.select([*LINE_KEYS, *(f"{name}_{how}" for name, how in totals)])
    named = found.rename_columns([*LINE_KEYS, "instructions", *numbers])
    return named.sort_by([(name, "ascending") for name in LINE_KEYS[1:]])


# Of each launch of a slice its position, its name and its scalar metrics.
Held = Sequence[tuple[int, str, Mapping[str, MetricValue]]]


def long_table(report: str, held: Held) -> pa.Table:
    """One row a launch and metric. ``value`` is the number; ``integer`` keeps every digit of a counter.

    The column ``unit`` is added when the file is written (`with_units`).
    """
    names = [name for *_, metrics in held for name in metrics]
    values = [value for *_, metrics in held for value in metrics.values()]
    launches = np.array([launch for launch, *_ in held], np.int64)
    return pa.table(
        {
            "report": _repeated(report, len(names)),
            "launch": np.repeat(launches, [len(metrics) for *_, metrics in held]),
            "metric": pa.array(names, pa.string()).dictionary_encode(),
            "value": pa.array([None if type(v) is str else float(v) for v in values], pa.float64()),
            "integer": pa.array([v if type(v) is int else None for v in values], pa.uint64()),
            "text": pa.array([v if type(v) is str else None for v in values], pa.string()),
        }
    )


def wide_table(report: str, held: Held) -> pa.Table:
    """One row a launch, one column a metric, null where it was not collected."""
    columns = Columns({"report": str, "launch": int, "name": str})
    for launch, kernel, metrics in held:
        columns.add({"report": report, "launch": launch, "name": kernel, **metrics})
    return columns.take()


def with_units(table: pa.Table, units: Mapping[str, Mapping[str, str]]) -> pa.Table:
    """The long table of one report with the unit of each metric, which another GPU or ncu may not know."""
    of_report = next(iter(table["report"].combine_chunks().dictionary.to_pylist()), "")
    known = units.get(of_report, {})
    metric = table["metric"].combine_chunks()
    names = metric.dictionary.to_pylist()
    units_of = pa.array([known.get(name, "") for name in names], pa.string()).dictionary_encode()
    column = pa.DictionaryArray.from_arrays(units_of.indices.take(metric.indices), units_of.dictionary)
    return table.add_column(table.column_names.index("metric") + 1, "unit", column)


def samples_of(report: str, profile: KernelProfile) -> Iterator[pa.RecordBatch]:
    """The samples of a launch over time, one row each, series by series."""
    for series in series_of(profile):
        rows = len(series.values)
        # Only the samples of NVIDIA's timeline have a place on it.
        on_timeline = np.zeros(rows, np.int64)
        on_timeline[series.kept] = series.timeline_ns
        texts = {"report": report, "metric": series.metric, "counter": series.counter}
        columns = {name: _repeated(text, rows) for name, text in texts.items()} | {
            "launch": pa.repeat(pa.scalar(profile.index, pa.int64()), rows),
            "pass": pa.repeat(pa.scalar(series.in_pass, pa.int64()), rows),
            "start_ns": pa.array(series.since_start, mask=series.stamps == 0),
            "timeline_ns": pa.array(on_timeline, mask=~series.kept),
            "value": pa.array(series.values),
        }
        yield pa.record_batch([columns[part.name] for part in _SAMPLES], schema=_SAMPLES)


_TEXT = pa.dictionary(pa.int32(), pa.string())
_SAMPLES = pa.schema(
    {
        "report": _TEXT,
        "launch": pa.int64(),
        "metric": _TEXT,
        "counter": _TEXT,
        "pass": pa.int64(),
        "start_ns": pa.int64(),
        "timeline_ns": pa.int64(),
        "value": pa.float64(),
    }
)


def _repeated(text: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([text]))


# Those whose type is not told by the values of every slice; ``launch`` is of one type in all tables, to join
# them.
KERNEL_COLUMNS: dict[str, type] = {"report": str, "launch": int, "name": str, "doubts": str, "nvtx": str}

# A slice ends with the launch that brings its metrics to this number of rows, or its code to 16 times as many
# values. Each is a row group of every file, and hundreds of columns cost 30 µs each: with two thirds as many rows 843
# launches took a tenth more time, with twice as many a tenth more memory (136 → 155 MB).
SLICE_ROWS = 3 << 15


def is_measured_by_address(profile: KernelProfile) -> bool:
    """Whether the launch has values by instruction."""
    return m.INSTRUCTIONS_BY_ADDRESS in profile.instances


@dataclass(slots=True)
class TableBuilder:
    """Collects the rows of one slice of launches and turns them into Arrow tables."""

    report: str
    names: tuple[str, ...]
    kernels: Columns = field(default_factory=lambda: Columns(KERNEL_COLUMNS))
    metrics: list[tuple[int, str, Mapping[str, MetricValue]]] = field(default_factory=list)
    code: Columns = field(default_factory=lambda: Columns(CODE_COLUMNS))
    samples: list[pa.RecordBatch] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)  # of metrics and samples

    @property
    def is_full(self) -> bool:
        """Whether the slice should be written now."""
        return max(self.rows["metrics"], self.rows["samples"], self.code.cells // 16) >= SLICE_ROWS

    def add(self, profile: KernelProfile) -> None:
        """Add the rows of one launch."""
        if is_measured_by_address(profile) and {"instructions", "lines"}.intersection(self.names):
            add_code(self.report, profile, self.code)
        if "samples" in self.names:
            for batch in samples_of(self.report, profile):
                self.samples.append(batch)
                self.rows["samples"] += len(batch)
        self.kernels.add(_kernel_row(self.report, profile))
        self.metrics.append((profile.index, profile.name, profile.metrics))
        self.rows["metrics"] += len(profile.metrics)

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """The slice as tables, by name; the builder is empty afterwards."""
        kernels, code = self.kernels.take(), self.code.take()
        taken: dict[str, Callable[[], pa.Table]] = {
            "kernels": lambda: kernels,
            "metrics": lambda: long_table(self.report, self.metrics),
            "metrics_wide": lambda: wide_table(self.report, self.metrics),
            "samples": lambda: pa.Table.from_batches(self.samples, _SAMPLES).unify_dictionaries(),
            "instructions": lambda: code,
            "lines": lambda: lines_of(code),
        }
        for name in self.names:
            yield name, taken[name]()
        for held in (self.metrics, self.samples, self.rows):
            held.clear()


def with_families(table: pa.Table, known: Census) -> pa.Table:
    """The table of kernels with the number and the one spelling of each launch's family: ``family`` 3 for ``#3``."""
    places = zip(table["report"].to_pylist(), table["launch"].to_pylist(), strict=True)
    found = [known.of[place] for place in places]
    at = table.column_names.index("name")
    labels = pa.array([one.label for one in found], pa.string())
    numbers = pa.array([one.number for one in found], pa.int64())
    return table.add_column(at, "label", labels).add_column(at, "family", numbers)


# What the table of kernels has of `LaunchStatistics`, as it is called there.
_OF_LAUNCH = (
    *("registers_per_thread", "static_shared_memory", "dynamic_shared_memory", "driver_shared_memory"),
    *("waves_per_sm", "stream", "context"),
)


def _kernel_row(report: str, profile: KernelProfile) -> dict[str, Any]:
    launch, device = profile.launch, profile.device
    return {
        "report": report,
        "launch": profile.index,
        "workload": profile.workload,
        "name": profile.name,
        "function": profile.function_name,
        "mangled": profile.mangled_name,
        "owner": owner_of(profile).key,
        "device": device.name,
        "compute_capability": ".".join(map(str, device.compute_capability)),
        **{f"grid_{axis}": size for axis, size in zip("xyz", launch.grid, strict=True)},
        **{f"block_{axis}": size for axis, size in zip("xyz", launch.block, strict=True)},
        **{name: getattr(launch, name) for name in _OF_LAUNCH},
        "duration_ns": profile.number(m.DURATION),
        # A list in one cell: range names may hold any character.
        "doubts": "; ".join(profile.doubts) or None,
        "nvtx": json.dumps(profile.nvtx, ensure_ascii=False) if profile.nvtx else None,
    }
