"""What a run says of itself: the facts it is made with, its stages as built, and how an older run is continued."""

from __future__ import annotations

import dataclasses
import datetime
import platform
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import gemmprof
from gemmprof.base.errors import BuildError, RunError
from gemmprof.gpu.devices import Gpu
from gemmprof.kernels import plugin
from gemmprof.model import RunInfo, Stage, StageRecord, StageResult
from gemmprof.profiler.settings import Settings, differences
from gemmprof.runs.directory import Run

if TYPE_CHECKING:
    from gemmprof.kernels.build import BuildResult


# Tools of whose versions the times of a kernel, and of cuBLAS, may depend.
_DECIDE_TIMES = ("driver", "cuda", "torch", "nvcc")


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
        notes={
            "options": dict(settings.recorded_options()),
            "parts": {"bench": settings.bench, "profile": settings.profile},  # which --resume goes on with
        },
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
        made.sass.get(resources.architecture, ""),
    )


def continued(
    old: Run,
    settings: Settings,
    device: str,
    records: Sequence[StageRecord],
    versions: Mapping[str, str] = MappingProxyType({}),
) -> Run:
    """The older run with this call's stages and problems added, its failures cleared for another try.

    Args:
        versions: of this machine's tools and driver, by name; one that the run or the machine does not know is passed
            over.

    Raises:
        RunError: something that the older numbers depend on is different now.
    """
    reasons = list(differences(settings, old))
    if old.info.device != device:
        reasons.append(f"GPU: the run has {old.info.device}, this machine {device}")
    reasons += _other_tools(old, versions)
    known = {(record.stage.ladder, record.stage.number): record for record in old.stages}
    for record in records:
        before = known.get((record.stage.ladder, record.stage.number))
        if before is not None and not _same_code(before, record) and _has_results(old, before):
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
    results = tuple(dataclasses.replace(r, failure=None) if r.key in wanted else r for r in old.results)
    return dataclasses.replace(
        old,
        stages=tuple(stages[key] for ladder in ladders for key in sorted(stages) if key[0] == ladder),
        problems=tuple(dict.fromkeys([*old.problems, *settings.problems])),
        results=results,
    )


def _other_tools(old: Run, versions: Mapping[str, str]) -> list[str]:
    """What else than in the run decides numbers now: only of what the run holds numbers of."""
    names = [*(_DECIDE_TIMES if any(_is_kept(r) for r in old.results) else ())]
    names += ["ncu"] if any(r.report is not None for r in old.results) else []
    return [
        f"{name}: the run has {old.info.versions[name]}, this machine {versions[name]}"
        for name in names
        if name in versions and old.info.versions.get(name, versions[name]) != versions[name]
    ]


def _same_code(before: StageRecord, now: StageRecord) -> bool:
    """Whether results of the one are results of the other: of one source, or of one machine code."""
    return before.source_hash == now.source_hash or (now.sass != "" and before.sass == now.sass)


def _has_results(run: Run, record: StageRecord) -> bool:
    """Whether anything of the stage is kept that its source decided."""
    return any(_is_kept(result) for result in run.results if run.record_of(result) == record)


def _is_kept(result: StageResult) -> bool:
    """Whether a result holds numbers; a failed verification is made again anyway."""
    verified = result.verification is not None and result.verification.passed
    return verified or result.timing is not None or result.report is not None
