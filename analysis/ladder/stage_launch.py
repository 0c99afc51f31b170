"""Which launch of a report is a stage's: the link between a run's results and what ncu recorded."""

from __future__ import annotations

from collections.abc import Sequence

from gemmprof import metrics as m
from gemmprof.model import KernelProfile, StageResult
from gemmprof.runs.directory import NVTX_PREFIX, Run, nvtx_range


def stage_launch(run: Run, result: StageResult, launches: Sequence[KernelProfile]) -> KernelProfile | None:
    """The launch of one stage on one problem among the launches of the report that its result names.

    Without an index in the run, the NVTX range tells; the longest launch where a library split the work into several.
    The launches may be a selection: one launch alone is the stage's only if it is in no other stage's range.
    """
    if result.launch_index is not None:
        return next((launch for launch in launches if launch.index == result.launch_index), None)
    in_ranges = any(name.startswith(NVTX_PREFIX) for launch in launches for name in launch.nvtx)
    if len(launches) > 1 or in_ranges:
        name = nvtx_range(run.record_of(result).stage.name, result.problem)
        launches = [launch for launch in launches if name in launch.nvtx]
    return max(launches, key=lambda launch: launch.number(m.DURATION) or 0.0, default=None)
