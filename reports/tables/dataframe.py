"""The launches of a session as one typed DataFrame, for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd

from gemmprof.analysis.inputs.families import Family
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.sections.warp_states import WarpStates

if TYPE_CHECKING:
    from gemmprof.analysis.session import Session

Column = tuple[str, Callable[[KernelAnalysis, Family], Any]]


def _of_light(name: str) -> Column:
    return "float64", lambda one, _: one.field(SpeedOfLight, name)


def _size(what: str, at: int) -> Column:
    return "int64", lambda one, _: getattr(one.profile.launch, what)[at]


def _dram_rate(one: KernelAnalysis) -> float | None:
    roofs = one.field(Roofline, "memory_roofs") or ()
    return next((roof.achieved for roof in roofs if roof.level == "dram"), None)


# Type and value of each column; what was not collected is NA or NaN.
_COLUMNS: dict[str, Column] = {
    "report": ("string", lambda one, _: one.profile.report),
    "launch": ("int64", lambda one, _: one.profile.index),
    "process": ("Int64", lambda one, _: one.profile.session.process),
    "kernel": ("string", lambda _, family: family.label),
    "name": ("string", lambda one, _: one.profile.name),
    "nvtx": ("string", lambda one, _: "/".join(one.profile.nvtx)),
    "family": ("int64", lambda _, family: family.number),
    "owner": ("string", lambda _, family: family.owner.key),
    **{f"grid_{axis}": _size("grid", at) for at, axis in enumerate("xyz")},
    **{f"block_{axis}": _size("block", at) for at, axis in enumerate("xyz")},
    "registers": ("Int64", lambda one, _: one.profile.launch.registers_per_thread),
    "static_shared_bytes": ("Int64", lambda one, _: one.profile.launch.static_shared_memory),
    "dynamic_shared_bytes": ("Int64", lambda one, _: one.profile.launch.dynamic_shared_memory),
    "waves": ("float64", lambda one, _: one.profile.launch.waves_per_sm),
    "duration_ns": _of_light("duration_ns"),
    "sm_clock_hz": _of_light("sm_clock_hz"),
    "sm_percent": _of_light("sm_percent"),
    "memory_percent": _of_light("memory_percent"),
    "l1_percent": _of_light("l1_percent"),
    "l2_percent": _of_light("l2_percent"),
    "dram_percent": _of_light("dram_percent"),
    "flops": ("float64", lambda one, _: one.field(Roofline, "main", "achieved")),
    "bytes_per_second": ("float64", lambda one, _: _dram_rate(one)),
    "theoretical_occupancy_percent": (
        "float64",
        lambda one, _: one.field(LaunchOccupancy, "theoretical_percent"),
    ),
    "achieved_occupancy_percent": ("float64", lambda one, _: one.field(LaunchOccupancy, "achieved_percent")),
    "main_stall": ("string", lambda one, _: one.field(WarpStates, "main_stall", "reason", "key")),
    "limited_by": ("string", lambda one, _: one.verdict.limited_by),
}


def launches_frame(session: Session, metrics: tuple[str, ...] = ()) -> pd.DataFrame:
    """One row a launch; ``kernel`` is the name for people, ``name`` the full demangled one, ``family`` 3 for ``#3``.

    Args:
        metrics: scalar metrics as more columns, float64 in base units.
    """
    family = {member: one for one in session.by_time for member in one.members}
    rows = [
        {
            **{name: value(kernel, family[position]) for name, (_, value) in _COLUMNS.items()},
            **{name: kernel.profile.number(name) for name in metrics},
        }
        for position, kernel in enumerate(session.kernels)
    ]
    columns = {**{name: kind for name, (kind, _) in _COLUMNS.items()}, **dict.fromkeys(metrics, "float64")}
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)
