"""The rows of the exported tables: launches, metrics, instructions and lines as Arrow tables, slice by slice.

Columns are typed as the report stores them: counters are 64-bit integers, ratios are doubles, names are text, and what
was not collected is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gemmprof import metrics as m
from gemmprof.analysis.export_metrics import MetricRows
from gemmprof.model import Instances, KernelProfile

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = ("kernels", "metrics", "metrics_wide", "instructions", "lines")

SLICE_ROWS = 1 << 17
"""A slice ends with the launch that brings its metrics or its instructions to this number of rows."""


def is_measured_by_address(profile: KernelProfile) -> bool:
    """Whether the launch has values by instruction."""
    return m.INSTRUCTIONS_BY_ADDRESS in profile.instances


@dataclass(slots=True)
class TableBuilder:
    """Collects the rows of one slice of launches and turns them into Arrow tables."""

    report: str
    names: tuple[str, ...]
    kernels: list[dict[str, Any]] = field(default_factory=list)
    metrics: MetricRows = field(default_factory=MetricRows)
    instructions: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Whether the slice should be written now."""
        return self.metrics.count >= SLICE_ROWS or len(self.instructions) + len(self.lines) >= SLICE_ROWS

    def add(self, profile: KernelProfile) -> None:
        """Add the rows of one launch."""
        if is_measured_by_address(profile) and ("instructions" in self.names or "lines" in self.names):
            rows = list(_instruction_rows(self.report, profile))
            if "lines" in self.names:
                self.lines += _line_rows(self.report, profile.index, rows)
            if "instructions" in self.names:
                self.instructions += rows
        self.kernels.append(_kernel_row(self.report, profile))
        self.metrics.add(profile.index, profile.name, profile.metrics)

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """The slice as tables, by name; the builder is empty afterwards."""
        for name in self.names:
            if name == "kernels":
                yield name, _table(self.kernels)
            elif name == "metrics":
                yield name, self.metrics.long_table(self.report)
            elif name == "metrics_wide":
                yield name, self.metrics.wide_table(self.report)
            elif name == "instructions":
                yield name, _table(self.instructions, _CODE_COLUMNS)
            elif name == "lines":
                yield name, _table(self.lines, _LINE_COLUMNS)
        self.kernels, self.instructions, self.lines = [], [], []
        self.metrics.clear()


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
            if (
                name not in _CODE_COLUMNS
                and name not in m.NOT_ADDITIVE_BY_ADDRESS
                and not isinstance(value, str)
            ):
                line[name] = line.get(name, 0) + value
    return iter(lines[key] for key in sorted(lines))
