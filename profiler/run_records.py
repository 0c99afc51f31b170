"""What a run says of itself: the facts it is made with, its stages as built, and how an older run is continued."""

from __future__ import annotations

import dataclasses
import datetime
import platform
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import gemmprof
from gemmprof.errors import BuildError, RunError
from gemmprof.gpus import Gpu
from gemmprof.kernels import plugin
from gemmprof.model import RunInfo, Stage, StageRecord
from gemmprof.profiler.settings import Settings, differences
from gemmprof.run import Run

if TYPE_CHECKING:
    from gemmprof.kernels.build import BuildResult


def new_info(settings: Settings, gpu: Gpu, versions: Mapping[str, str]) -> RunInfo:
    """The facts of a run that begins now with this GPU and these tools."""
    return RunInfo(
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        device=gpu.name,
        compute_capability=gpu.compute_capability,
        versions={"gemmprof": gemmprof.__version__, "python": platform.python_version(), **versions},
        clock_control=settings.clock_control,
        seed=settings.seed,
        metric_set=settings.metric_set,
        command=" ".join(["gemmprof", *sys.argv[1:]]),
        notes={"options": dict(settings.recorded_options())},
    )


def stage_record(stage: Stage, built: BuildResult, compute_capability: tuple[int, int]) -> StageRecord:
    """A stage as it was built: its tile parameters (the catalog's or tuned ones), source hash and resources."""
    made = built.stages.get(stage.name)
    if made is None:
        return StageRecord(stage, plugin.source_hash(stage))
    stage = dataclasses.replace(stage, parameters=made.parameters)
    try:
        resources = made.resources(f"sm_{compute_capability[0]}{compute_capability[1]}")
    except BuildError:
        return StageRecord(stage, made.source_hash)
    return StageRecord(
        stage,
        made.source_hash,
        resources.registers_per_thread,
        resources.static_shared_memory,
        resources.spill_bytes,
    )


def continued(old: Run, settings: Settings, device: str, records: Sequence[StageRecord]) -> Run:
    """The older run with this call's stages and problems added, its failures cleared for another try.

    Raises:
        RunError: something that the older numbers depend on is different now.
    """
    reasons = list(differences(settings, old))
    if old.info.device != device:
        reasons.append(f"GPU: the run has {old.info.device}, this machine {device}")
    known = {(record.stage.ladder, record.stage.number): record for record in old.stages}
    for record in records:
        before = known.get((record.stage.ladder, record.stage.number))
        if before is not None and before.source_hash != record.source_hash and _has_results(old, before):
            reasons.append(f"the source of stage {record.stage.name} changed since the run was made")
    if reasons:
        raise RunError(
            f"the run in {old.directory} cannot be continued with these settings",
            found="; ".join(reasons),
            remedies=["collect a new run (another --output)", "or resume without the options that differ"],
        )
    stages = {**known, **{(record.stage.ladder, record.stage.number): record for record in records}}
    ladders = {record.stage.ladder: None for record in [*old.stages, *records]}
    wanted = {(stage.number, problem) for stage, problem in settings.pairs}
    results = tuple(
        dataclasses.replace(r, failure=None) if (r.stage, r.problem) in wanted else r for r in old.results
    )
    return dataclasses.replace(
        old,
        stages=tuple(stages[key] for ladder in ladders for key in sorted(stages) if key[0] == ladder),
        problems=tuple(dict.fromkeys([*old.problems, *settings.problems])),
        results=results,
    )


def _has_results(run: Run, record: StageRecord) -> bool:
    """Whether anything of the stage is kept that its source decided; a failed verification is made again anyway."""
    return any(
        (r.verification is not None and r.verification.passed) or r.timing is not None or r.report is not None
        for r in run.results
        if run.record_of(r) == record
    )
