"""gemmprof: profile CUDA GEMM kernels with Nsight Compute and explain what holds them back.

The names below are loaded on first use, so that ``import gemmprof`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gemmprof import views

if TYPE_CHECKING:
    from gemmprof.analysis.kernel_analysis import analyse as analyse
    from gemmprof.analysis.occupancy.calculator import Occupancy as Occupancy
    from gemmprof.analysis.occupancy.calculator import occupancy as occupancy
    from gemmprof.analysis.occupancy.table import occupancy_table as occupancy_table
    from gemmprof.analysis.reading.report import read_report as read_report
    from gemmprof.run import load_recorded_run as load_recorded_run
    from gemmprof.run import load_run as load_run

__version__ = "0.1.0"

_HOMES = {
    "Occupancy": "gemmprof.analysis.occupancy.calculator",
    "analyse": "gemmprof.analysis.kernel_analysis",
    "load_recorded_run": "gemmprof.run",
    "load_run": "gemmprof.run",
    "occupancy": "gemmprof.analysis.occupancy.calculator",
    "occupancy_table": "gemmprof.analysis.occupancy.table",
    "read_report": "gemmprof.analysis.reading.report",
}

__all__ = [
    "Occupancy",
    "__version__",
    "analyse",
    "load_recorded_run",
    "load_run",
    "occupancy",
    "occupancy_table",
    "read_report",
]

views.provided_by(lambda: import_module("gemmprof.reports.pages.notebook"))


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'gemmprof' has no attribute {name!r}") from None
    return getattr(import_module(home), name)
