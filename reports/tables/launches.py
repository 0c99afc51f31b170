"""The rows of the exported tables: launches, metrics, instructions and lines as Arrow tables, slice by slice.

Columns are typed as the report stores them: counters are 64-bit integers, ratios are doubles, names are text, and what
was not collected is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from gemmprof import metrics as m
from gemmprof.analysis.inputs.owners import owner_of
from gemmprof.model import KernelProfile
from gemmprof.reports.tables.by_instruction import CODE_COLUMNS, LINE_COLUMNS, Columns, add_code
from gemmprof.reports.tables.metrics import MetricRows

TABLES = ("kernels", "metrics", "metrics_wide", "instructions", "lines")

# Those whose type is not told by the values of every slice; ``launch`` is of one type in all tables, to join
# them.
KERNEL_COLUMNS: dict[str, type] = {"report": str, "launch": int, "doubts": str, "nvtx": str}

# A slice ends with the launch that brings its metrics to this number of rows, or its code to 16 times as many
# values.
SLICE_ROWS = 1 << 17


def is_measured_by_address(profile: KernelProfile) -> bool:
    """Whether the launch has values by instruction."""
    return m.INSTRUCTIONS_BY_ADDRESS in profile.instances


@dataclass(slots=True)
class TableBuilder:
    """Collects the rows of one slice of launches and turns them into Arrow tables."""

    report: str
    names: tuple[str, ...]
    kernels: Columns = field(default_factory=lambda: Columns(KERNEL_COLUMNS))
    metrics: MetricRows = field(default_factory=MetricRows)
    instructions: Columns = field(default_factory=lambda: Columns(CODE_COLUMNS))
    lines: Columns = field(default_factory=lambda: Columns(LINE_COLUMNS))

    @property
    def is_full(self) -> bool:
        """Whether the slice should be written now."""
        code_cells = self.instructions.cells + self.lines.cells
        return max(self.metrics.count, code_cells // 16) >= SLICE_ROWS

    def add(self, profile: KernelProfile) -> None:
        """Add the rows of one launch."""
        code, lines = ("instructions" in self.names, "lines" in self.names)
        if is_measured_by_address(profile) and (code or lines):
            add_code(self.report, profile, self.instructions if code else None, self.lines if lines else None)
        row = _kernel_row(self.report, profile)
        self.kernels.extend(1, {name: [value] for name, value in row.items()})
        self.metrics.add(profile.index, profile.name, profile.metrics)

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """The slice as tables, by name; the builder is empty afterwards."""
        for name in self.names:
            if name == "kernels":
                yield name, self.kernels.take()
            elif name == "metrics":
                yield name, self.metrics.long_table(self.report)
            elif name == "metrics_wide":
                yield name, self.metrics.wide_table(self.report)
            elif name == "instructions":
                yield name, self.instructions.take()
            elif name == "lines":
                yield name, self.lines.take()
        self.kernels.take()
        self.metrics.clear()


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
        "registers_per_thread": launch.registers_per_thread,
        "static_shared_memory": launch.static_shared_memory,
        "dynamic_shared_memory": launch.dynamic_shared_memory,
        "driver_shared_memory": launch.driver_shared_memory,
        "waves_per_sm": launch.waves_per_sm,
        "stream": launch.stream,
        "context": launch.context,
        "duration_ns": profile.number(m.DURATION),
        # A list in one cell: range names may hold any character.
        "doubts": "; ".join(profile.doubts) or None,
        "nvtx": json.dumps(profile.nvtx, ensure_ascii=False) if profile.nvtx else None,
    }
