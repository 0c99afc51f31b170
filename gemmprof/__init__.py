"""gemmprof: profile CUDA GEMM kernels with Nsight Compute and explain what holds them back.

The names below are loaded on first use, so that ``import gemmprof`` stays cheap.
"""

from __future__ import annotations

import os
import sys


def end_at_once(_number: int, _frame: object) -> None:
    """What Ctrl-C does while modules load: an exception there would be whatever the module at hand makes of it."""
    try:
        os.write(2, b"gemmprof: interrupted\n")
    finally:
        os._exit(130)


if sys.argv and (sys.argv[0] == "-m" or sys.argv[0].endswith("/gemmprof")):
    # The command's own process: what follows takes its time to load (see `__main__`).
    import _signal  # type: ignore[import-not-found]

    if _signal.getsignal(_signal.SIGINT) is not _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, end_at_once)

from importlib import import_module  # noqa: E402 (Ctrl-C comes first)
from typing import TYPE_CHECKING, Any  # noqa: E402

from gemmprof.base import views  # noqa: E402

if TYPE_CHECKING:
    from gemmprof.analysis.kernel_analysis import analyse as analyse
    from gemmprof.analysis.occupancy.calculator import Occupancy as Occupancy
    from gemmprof.analysis.occupancy.calculator import occupancy as occupancy
    from gemmprof.analysis.occupancy.table import occupancy_table as occupancy_table
    from gemmprof.analysis.reading.report import read_report as read_report
    from gemmprof.api.opened import Report as Report
    from gemmprof.api.opened import explain as explain
    from gemmprof.api.opened import open as open  # noqa: A004
    from gemmprof.api.region import profile as profile
    from gemmprof.base.errors import GemmprofError as GemmprofError
    from gemmprof.base.errors import ReportError as ReportError
    from gemmprof.base.errors import UsageError as UsageError
    from gemmprof.runs.directory import load_recorded_run as load_recorded_run
    from gemmprof.runs.directory import load_run as load_run

__version__ = "0.1.0"
_NAMES = {
    "gemmprof.analysis.kernel_analysis": "analyse",
    "gemmprof.analysis.occupancy.calculator": "Occupancy occupancy",
    "gemmprof.analysis.occupancy.table": "occupancy_table",
    "gemmprof.analysis.reading.report": "read_report",
    "gemmprof.api.opened": "Report explain open",
    "gemmprof.api.region": "profile",
    "gemmprof.base.errors": "GemmprofError ReportError UsageError",
    "gemmprof.runs.directory": "load_recorded_run load_run",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 (names, all of them)

views.drawn_by(lambda: import_module("gemmprof.reports.pages.notebook").VIEWS)


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'gemmprof' has no attribute {name!r}") from None
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
