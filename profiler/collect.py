"""The collection: check the machine, build, verify, time, profile, and keep every finished part in the run directory.

The run is saved after each part of each stage. Whatever ends the collection (Ctrl-C, a kill, a fault), `--resume`
goes on with the parts that are missing, and a stage that fails takes no other with it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof.errors import DeviceError, GemmprofError, RunError
from gemmprof.gpus import Gpu, list_gpus, selected_gpus
from gemmprof.model import Card
from gemmprof.profiler import machine
from gemmprof.profiler.keeper import STOP_FILE, Interrupted, Keeper
from gemmprof.profiler.lock import collecting
from gemmprof.profiler.measuring import Measuring, measuring_work
from gemmprof.profiler.ncu.command import require_ncu
from gemmprof.profiler.ncu.profile_pass import (
    LOGS,
    REPORTS,
)
from gemmprof.profiler.places.local import LocalPlaces
from gemmprof.profiler.profiling import Profiling
from gemmprof.profiler.run_records import continued, new_info, stage_record
from gemmprof.profiler.settings import Settings
from gemmprof.progress import Progress
from gemmprof.run import Run, load_run
from gemmprof.toolchain import Tool

if TYPE_CHECKING:
    from gemmprof.kernels.build import BuildResult

__all__ = ["Interrupted", "Machine", "check_machine", "collect"]


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """The tools that a collection uses, after they were checked.

    Attributes:
        gpu: the one that is profiled.
        helpers: more of the same model that help to verify and time.
        pinned: programs are shown their GPU alone; else they take the one that CUDA uses first.
    """

    gpu: Gpu
    ncu: Tool | None
    helpers: tuple[Gpu, ...] = ()
    pinned: bool = False

    @property
    def cards(self) -> tuple[Card, ...]:
        """All GPUs, the one that is profiled first."""
        return tuple(gpu.card for gpu in (self.gpu, *self.helpers))


def check_machine(*, profile: bool, runs: Path, gpus: str = "") -> Machine:
    """Make sure that this machine can do what is asked.

    Args:
        gpus: which GPUs (`gemmprof.gpus.selected_gpus`).

    Raises:
        DeviceError: naming the first thing that is missing, with its remedy.
        UsageError: ``gpus`` names GPUs that are not there, or of several models.
    """
    gpu, *helpers = selected_gpus(list_gpus(), gpus)
    torch_version, torch_cuda = machine.torch_build()
    checks = [
        machine.check_torch(torch_version, torch_cuda),
        machine.check_driver(gpu, torch_cuda),
        machine.check_nvcc(gpu),
        machine.check_host_compiler(),
        machine.check_space(runs),
    ]
    ncu = None
    if profile:
        ncu = require_ncu()
        checks.append(machine.check_counters(gpu))
    for check in checks:
        if check.ok is False:
            raise DeviceError(f"{check.name}: {check.found}", remedies=check.remedies)
    return Machine(gpu, ncu, tuple(helpers), pinned=bool(gpus))


def collect(settings: Settings, directory: Path, *, resume: bool, progress: Progress, gpus: str = "") -> Run:
    """Do everything that ``settings`` ask for and that the run in ``directory`` does not have yet.

    Args:
        gpus: which GPUs verify and time (`gemmprof.gpus.selected_gpus`); the first of them is profiled.

    Returns:
        The run. Stages that failed carry their ``failure``.

    Raises:
        DeviceError, BuildError, ProfilerError: nothing (more) can be done on this machine; finished parts are saved.
        RunError: the directory holds another run, or one that these settings do not fit.
        Interrupted: Ctrl-C; finished parts are saved.
    """
    found = check_machine(profile=settings.profile, runs=directory, gpus=gpus)
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
        collection = Collection(settings, directory, found, progress, lock)
        return collection.do(resume)


class Collection:
    """One collection at work: its steps in order."""

    def __init__(
        self, settings: Settings, directory: Path, found: Machine, progress: Progress, lock: int
    ) -> None:
        self._machine = found
        self._keeper = Keeper(settings, directory, progress, lock)
        self._profiling = Profiling(self._keeper, found.ncu, found.gpu.card, pinned=found.pinned)
        self._skipped: Mapping[str, str] = {}

    def do(self, resume: bool) -> Run:
        """All steps."""
        keeper = self._keeper
        started = time.monotonic()
        built = self._build()
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
        """Verify and time what is missing; with several GPUs, profile on the first while the others time.

        Returns:
            Whether what was to be profiled was profiled meanwhile.
        """
        keeper, machine = self._keeper, self._machine
        tasks = keeper.unmeasured()
        if not tasks:
            return False
        keeper.progress.phase("verify and time", sum(task.verify + task.time for task in tasks))
        with LocalPlaces(
            measuring_work(keeper.settings),
            machine.cards,
            keeper.progress,
            pinned=machine.pinned,
            keep_open=(keeper.lock,),
        ) as places:
            measuring = Measuring(keeper, places)
            measuring.verify()
            waiting = [task for task in keeper.unmeasured() if task.time]
            profile = keeper.unprofiled() if keeper.settings.profile else ()
            others = [card for card in places.cards if card != machine.gpu.card]
            if not (waiting and profile and others):
                measuring.time()
                return False
            keeper.progress.phase("time and profile", len(waiting) + len(profile))
            places.leave(machine.gpu.card)
            with ThreadPoolExecutor(1) as beside:
                timing = beside.submit(measuring.time)
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

    def _build(self) -> BuildResult:
        from gemmprof.kernels.build import build

        self._keeper.progress.phase("build", 1)
        started = time.monotonic()
        capability = self._machine.gpu.compute_capability
        # The GPUs of one model: what a program that sees one of them alone would build.
        targets = ["{}.{}".format(*capability)] if self._machine.pinned else None
        result = build(architectures=targets, progress=self._keeper.progress)
        self._leave_out(result.skipped)
        what = f"compiled {len(result.compiled)} files" if result.compiled else "nothing to compile"
        self._keeper.progress.done(f"{what}, {time.monotonic() - started:.1f} s")
        return result

    def _leave_out(self, skipped: Mapping[str, str]) -> None:
        """Go on without the stages that are written for other GPUs than this one."""
        stages = tuple(stage for stage in self._keeper.settings.stages if stage.name not in skipped)
        left_out = {s.name: skipped[s.name] for s in self._keeper.settings.stages if s.name in skipped}
        for name, reason in left_out.items():
            self._keeper.progress.note(f"{name} is skipped: {reason}")
        if not any(stage.source is not None for stage in stages) and left_out:
            raise DeviceError(
                "no stage that was chosen runs on this GPU",
                found="; ".join(f"{name}: {reason}" for name, reason in left_out.items()),
                remedies=["`gemmprof stages` says what each stage needs"],
            )
        self._skipped = left_out
        self._keeper.settings = dataclasses.replace(self._keeper.settings, stages=stages)

    def _open(self, built: BuildResult, resume: bool) -> None:
        gpu = self._machine.gpu
        records = tuple(
            stage_record(stage, built, gpu.compute_capability) for stage in self._keeper.settings.stages
        )
        if (self._keeper.directory / "run.json").exists():
            if not resume:
                raise RunError(
                    f"{self._keeper.directory} holds a run already",
                    remedies=["add --resume to continue it", "choose another --output"],
                )
            self._keeper.run = continued(
                load_run(self._keeper.directory), self._keeper.settings, gpu.name, records
            )
        else:
            info = new_info(self._keeper.settings, gpu, self._machine.ncu)
            self._keeper.run = Run(self._keeper.directory, info, records, self._keeper.settings.problems)
        if self._skipped:
            self._keeper.note(skipped={**self._keeper.run.info.notes.get("skipped", {}), **self._skipped})
        self._keeper.save()
        for stage, problem in self._keeper.settings.pairs:
            if stage.name in built.failures:
                self._keeper.fail((stage.number, problem), "build", built.failures[stage.name])
