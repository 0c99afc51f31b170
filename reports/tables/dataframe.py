"""The launches of a session as one typed DataFrame, for notebooks and scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.sections.warp_states import WarpStates

if TYPE_CHECKING:
    from gemmprof.analysis.session import Session

# Columns and their types; what was not collected is NA or NaN.
_TYPES = {
    "report": "string",
    "launch": "int64",
    "process": "Int64",
    "kernel": "string",
    "name": "string",
    "nvtx": "string",
    "family": "int64",
    "owner": "string",
    **{f"{what}_{axis}": "int64" for what in ("grid", "block") for axis in "xyz"},
    "registers": "Int64",
    "static_shared_bytes": "Int64",
    "dynamic_shared_bytes": "Int64",
    **dict.fromkeys(
        (
            "waves",
            "duration_ns",
            "sm_clock_hz",
            "sm_percent",
            "memory_percent",
            "l1_percent",
            "l2_percent",
            "dram_percent",
            "flops",
            "bytes_per_second",
            "theoretical_occupancy_percent",
            "achieved_occupancy_percent",
        ),
        "float64",
    ),
    "main_stall": "string",
    "limited_by": "string",
}


def launches_frame(session: Session, metrics: tuple[str, ...] = ()) -> pd.DataFrame:
    """One row a launch; ``kernel`` is the name for people, ``name`` the full demangled one, ``family`` 3 for ``#3``.

    Args:
        session: what was loaded.
        metrics: scalar metrics as more columns, float64 in base units.
    """
    family = {member: one for one in session.by_time for member in one.members}
    rows = [
        {
            **_row(kernel),
            "kernel": family[position].label,
            "family": family[position].number,
            "owner": family[position].owner.key,
            **{name: kernel.profile.number(name) for name in metrics},
        }
        for position, kernel in enumerate(session.kernels)
    ]
    columns = {**_TYPES, **dict.fromkeys(metrics, "float64")}
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def _row(kernel: KernelAnalysis) -> dict[str, Any]:
    profile = kernel.profile
    launch = profile.launch
    row: dict[str, Any] = {
        "report": profile.report,
        "launch": profile.index,
        "process": profile.session.process,
        "name": profile.name,
        "nvtx": "/".join(profile.nvtx),
        **{f"grid_{axis}": size for axis, size in zip("xyz", launch.grid, strict=True)},
        **{f"block_{axis}": size for axis, size in zip("xyz", launch.block, strict=True)},
        "registers": launch.registers_per_thread,
        "static_shared_bytes": launch.static_shared_memory,
        "dynamic_shared_bytes": launch.dynamic_shared_memory,
        "waves": launch.waves_per_sm,
        "limited_by": kernel.verdict.limited_by,
    }
    if isinstance(light := kernel.get(SpeedOfLight), SpeedOfLight):
        for name in ("duration_ns", "sm_clock_hz", "sm_percent", "memory_percent"):
            row[name] = getattr(light, name)
        for name in ("l1_percent", "l2_percent", "dram_percent"):
            row[name] = getattr(light, name)
    if isinstance(roofline := kernel.get(Roofline), Roofline):
        row["flops"] = roofline.main.achieved if roofline.main is not None else None
        row["bytes_per_second"] = next((m.achieved for m in roofline.memory_roofs if m.level == "dram"), None)
    if isinstance(occupancy := kernel.get(LaunchOccupancy), LaunchOccupancy):
        row["theoretical_occupancy_percent"] = occupancy.theoretical_percent
        row["achieved_occupancy_percent"] = occupancy.achieved_percent
    if isinstance(states := kernel.get(WarpStates), WarpStates) and states.main_stall is not None:
        row["main_stall"] = states.main_stall.reason.key
    return row
