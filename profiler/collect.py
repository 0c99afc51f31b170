"""The collection: check the machine, build, verify, time, profile, and keep every finished part in the run directory.

The run is saved after each part of each stage. Whatever ends the collection (Ctrl-C, a kill, a fault), `--resume`
goes on with the parts that are missing, and a stage that fails takes no other with it. What a run says of itself stands
at the end: the facts it is made with, its stages as built, and how an older run is continued.
"""

from __future__ import annotations

import dataclasses
import datetime
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import gemmprof
from gemmprof.base.errors import BuildError, DeviceError, GemmprofError, RunError
from gemmprof.base.progress import Progress
from gemmprof.gpu.devices import Gpu
from gemmprof.kernels import plugin
from gemmprof.model import Problem, RunInfo, Stage, StageRecord, StageResult, Timing, Verification
from gemmprof.profiler.job import Task, collecting, counted_interrupts
from gemmprof.profiler.keeper import STOP_FILE, Interrupted, Keeper
from gemmprof.profiler.ncu.profile_pass import LOGS, REPORTS
from gemmprof.profiler.settings import Settings, differences
from gemmprof.profiler.site import CRASHED, HERE, Answer, Here, LocalPlaces, Machine, NotBegun, Request, Work
from gemmprof.runs.directory import Run, load_run

if TYPE_CHECKING:
    from gemmprof.kernels.build import BuildResult
    from gemmprof.profiler.cluster.cluster_site import ClusterPlaces, ClusterSite

    Site = Here | ClusterSite
    Places = LocalPlaces | ClusterPlaces

__all__ = ["Interrupted", "collect"]


def collect(
    settings: Settings, directory: Path, *, resume: bool, progress: Progress, site: Site = HERE
) -> Run:
    """Do everything that ``settings`` ask for and that the run in ``directory`` does not have yet.

    Returns:
        The run. Stages that failed carry their ``failure``.

    Raises:
        DeviceError, BuildError, ProfilerError: nothing (more) can be done on this machine; finished parts are saved.
        RunError: the directory holds another run, or one that these settings do not fit.
        Interrupted: Ctrl-C; finished parts are saved.
    """
    found = site.check(profile=settings.profile, runs=directory)
    try:
        for folder in (directory, directory / REPORTS, directory / LOGS):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"the run directory {directory} cannot be made", found=str(error)) from error
    stop_file = directory / STOP_FILE

    def waiting() -> None:
        stop_file.touch()  # the orphan ends after the stage at hand
        progress.note("waiting for the profiler of the interrupted collection to finish its stage")

    with collecting(directory, waiting=waiting) as lock:
        stop_file.unlink(missing_ok=True)
        return Collection(settings, directory, found, progress, lock, site).do(resume)


class Collection:
    """One collection at work: its steps in order."""

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        found: Machine,
        progress: Progress,
        lock: int,
        site: Site = HERE,
    ) -> None:
        self._machine, self._site = found, site
        self._keeper = Keeper(settings, directory, progress, lock)
        self._profiling = site.profiler(self._keeper, found)
        self._skipped: Mapping[str, str] = {}

    def do(self, resume: bool) -> Run:
        """All steps."""
        keeper = self._keeper
        started = time.monotonic()
        keeper.progress.phase("build", 1)
        built = self._site.build(self._machine, keeper.progress)
        self._leave_out(built.skipped)
        what = f"compiled {len(built.compiled)} files" if built.compiled else "nothing to compile"
        keeper.progress.done(f"{what}, {time.monotonic() - started:.1f} s")
        self._open(built, resume)
        keeper.spent("build", started)
        self._profiling.adopt()
        with self._profiling.waiting():
            started = time.monotonic()
            beside = self._measure()
            keeper.spent("verify and time", started)
            if keeper.settings.profile and not beside:
                started = time.monotonic()
                keeper.progress.phase("profile", len(keeper.unprofiled()))
                self._profiling.do()
                keeper.spent("profile", started)
        return keeper.run

    def _measure(self) -> bool:
        """Verify and time what is missing; with several GPUs, profile on the first meanwhile: then True."""
        keeper, machine = self._keeper, self._machine
        tasks = keeper.unmeasured()
        if not tasks:
            return False
        keeper.progress.phase("verify and time", sum(task.verify + task.time for task in tasks))
        settings = {"seed": keeper.settings.seed, "time_budget": keeper.settings.time_budget}
        work = Work(MODULE, settings, "the program that verifies and times the stages")
        with self._site.places(work, keeper.progress, (keeper.lock,)) as places:
            measure(keeper, places, "verify")
            waiting = [task for task in keeper.unmeasured() if task.time]
            profile = keeper.unprofiled() if keeper.settings.profile else ()
            if not (waiting and profile and places.leave(machine.gpu.card)):
                measure(keeper, places, "time")
                return False
            keeper.progress.phase("time and profile", len(waiting) + len(profile))
            with ThreadPoolExecutor(1) as beside:
                timing = beside.submit(measure, keeper, places, "time")
                try:
                    self._profiling.do()
                except GemmprofError:
                    timing.result()  # times are worth having without a profile
                    raise
                except BaseException:
                    keeper.stopping.set()  # what is being timed is finished, and no more begun
                    raise
                timing.result()
            return True

    def _leave_out(self, skipped: Mapping[str, str]) -> None:
        """Go on without the stages that are written for other GPUs than this one.

        A ladder of which nothing stays loses its yardstick and its problems, too: the library may not have its types
        either.
        """
        settings = self._keeper.settings
        stages = tuple(stage for stage in settings.stages if stage.name not in skipped)
        left_out = {s.name: skipped[s.name] for s in settings.stages if s.name in skipped}
        for name, reason in left_out.items():
            self._keeper.progress.note(f"{name} is skipped: {reason}")
        if not any(stage.source is not None for stage in stages) and left_out:
            raise DeviceError(
                "no stage that was chosen runs on this GPU",
                "`gemmprof stages` says what each stage needs",
                found="; ".join(f"{name}: {reason}" for name, reason in left_out.items()),
            )
        lost = {stage.ladder for stage in settings.stages if stage.name in left_out}
        lost -= {stage.ladder for stage in stages if not stage.yardstick}
        stages = tuple(stage for stage in stages if stage.ladder not in lost)
        problems = tuple(p for p in settings.problems if any(p.dtype in s.dtypes for s in stages))
        self._skipped = left_out
        self._keeper.settings = dataclasses.replace(settings, stages=stages, problems=problems)

    def _open(self, built: BuildResult, resume: bool) -> None:
        gpu = self._machine.gpu
        stages = self._keeper.settings.stages
        records = tuple(stage_record(stage, built, gpu.compute_capability) for stage in stages)
        if (self._keeper.directory / "run.json").exists():
            if not resume:
                there = f"{self._keeper.directory} holds a run already"
                raise RunError(there, "add --resume to continue it", "choose another --output")
            old, versions = load_run(self._keeper.directory), self._machine.versions
            self._keeper.run = continued(old, self._keeper.settings, gpu.name, records, versions)
        else:
            info = new_info(self._keeper.settings, gpu, self._machine.versions)
            self._keeper.run = Run(self._keeper.directory, info, records, self._keeper.settings.problems)
        if self._skipped:
            self._keeper.note(skipped={**self._keeper.run.info.notes.get("skipped", {}), **self._skipped})
        self._keeper.save()
        for stage, problem in self._keeper.settings.pairs:
            if stage.name in built.failures:
                self._keeper.fail((stage.number, problem), "build", built.failures[stage.name])


# --- Verifying and timing ---------------------------------------------------------------------------------------------
# The parts that the run lacks, on every GPU that is lent. A stage whose kernel faults takes its child along; it is
# attributed, and another child goes on with the rest.

MODULE = "gemmprof.profiler.gpu_worker"

PART_SECONDS = 600.0  # for a part of a task beyond its arithmetic: loading, a plug-in that tunes itself

SLOWEST_RATE = 1e10  # FLOP/s that the slowest kernel on the oldest GPU still reaches; what is slower hangs
POLL_SECONDS = 0.2


def measure(keeper: Keeper, places: Places, part: Literal["verify", "time"]) -> None:
    """Verify what is not verified, or time what is not timed; Interrupted by Ctrl-C, DeviceError if no GPU is left."""
    asked: dict[Future[Answer], Task] = {}
    for task in keeper.unmeasured():
        if task.verify if part == "verify" else task.time and not task.verify:
            record = {"part": part, "stage": task.stage, "problem": dataclasses.asdict(task.problem)}
            asked[places.submit(Request(record, seconds_for(task.problem)))] = task
    told, lost = False, None
    pending = set(asked)
    with counted_interrupts() as interrupts:
        while pending:
            if interrupts and not told:
                keeper.tell_interrupt()
            if keeper.stopping.is_set() and not told:
                told = True
                places.cancel_waiting()
            if len(interrupts) > 1 or keeper.leaving.is_set():
                raise Interrupted
            done, pending = wait(pending, POLL_SECONDS, FIRST_COMPLETED)
            for future in done:
                lost = _take(keeper, part, asked[future], future, several=places.width > 1) or lost
    if told:
        raise Interrupted
    if lost is not None:
        raise lost


def _take(
    keeper: Keeper, part: str, task: Task, future: Future[Answer], *, several: bool
) -> GemmprofError | None:
    """Keep what came of a part of a task; returns the error that leaves no GPU for it."""
    try:
        answer = future.result()
    except NotBegun:
        return None
    except DeviceError as error:
        return error
    key, record, label = task.key, answer.record, keeper.label(task.key)
    where = f" ({answer.card.label})" if several else ""
    if answer.status == CRASHED:
        keeper.fail(key, "measure", f"the program ended: {record.get('detail', '')}{where}")
    elif answer.status == "timed":
        timing = dataclasses.replace(Timing(**record["timing"]), card=answer.card)
        keeper.keep(key, timing=timing)
        rate = f"{timing.tflops(task.problem):.2f} TFLOP/s" if task.problem.flops else "no arithmetic"
        keeper.progress.done(f"time {label}: {timing.median * 1e3:.3f} ms, {rate}{where}")
    elif answer.status == "verified":
        verification = dataclasses.replace(Verification(**record["verification"]), card=answer.card)
        failure = None if verification.passed else f"verification: {verification.detail}"
        keeper.keep(key, verification=verification, failure=failure)
        passed = f"relative error {verification.relative_error:.1e} (allowed {verification.tolerance:.1e})"
        said = f"FAILED, {verification.detail}" if failure else passed
        keeper.progress.done(f"verify {label}: {said}{where}")
    else:
        keeper.fail(key, part, str(record.get("detail", "")))
    return None


def seconds_for(problem: Problem) -> float:
    """How long a child may take for a part of a task before it counts as hung."""
    return PART_SECONDS + problem.flops / SLOWEST_RATE


# --- What a run says of itself ----------------------------------------------------------------------------------------

_DECIDE_TIMES = ("driver", "cuda", "torch", "nvcc")  # on their versions times may depend, of cuBLAS too


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
    sizes = resources.registers_per_thread, resources.static_shared_memory, resources.spill_bytes
    return StageRecord(stage, made.source_hash, *sizes, made.note.sass.get(resources.architecture, ""))


def continued(
    old: Run, settings: Settings, device: str, records: Sequence[StageRecord], versions: Mapping[str, str]
) -> Run:
    """The older run with this call's stages and problems added, its failures cleared for another try.

    ``versions`` are those of this machine's tools and driver, by name; one that the run or the machine does not know is
    passed over. RunError if something that the older numbers depend on is different now.
    """
    reasons = list(differences(settings, old))
    if old.info.device != device:
        reasons.append(f"GPU: the run has {old.info.device}, this machine {device}")
    reasons += _other_tools(old, versions)
    known = {(record.stage.ladder, record.stage.number): record for record in old.stages}
    for record in records:
        before = known.get((record.stage.ladder, record.stage.number))
        if before is None or before.source_hash == record.source_hash:
            continue
        same_machine_code = record.sass != "" and before.sass == record.sass
        kept = any(_is_kept(result) for result in old.results if old.record_of(result) == before)
        if kept and not same_machine_code:
            reasons.append(f"the source of stage {record.stage.name} changed since the run was made")
    if reasons:
        what = f"the run in {old.directory} cannot be continued with these settings"
        fixes = "collect a new run (another --output)", "or resume without the options that differ"
        raise RunError(what, *fixes, found="; ".join(reasons))
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


def _is_kept(result: StageResult) -> bool:
    """Whether a result holds numbers; a failed verification is made again anyway."""
    verified = result.verification is not None and result.verification.passed
    return verified or result.timing is not None or result.report is not None
