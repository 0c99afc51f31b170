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

from gemmprof.base.errors import DeviceError, GemmprofError, RunError
from gemmprof.base.progress import Progress
from gemmprof.profiler.here import HERE, Here
from gemmprof.profiler.keeper import STOP_FILE, Interrupted, Keeper
from gemmprof.profiler.lock import collecting
from gemmprof.profiler.measuring import Measuring, measuring_work
from gemmprof.profiler.ncu.profile_pass import LOGS, REPORTS
from gemmprof.profiler.run_records import continued, new_info, stage_record
from gemmprof.profiler.settings import Settings
from gemmprof.profiler.site import Machine
from gemmprof.runs.directory import Run, load_run

if TYPE_CHECKING:
    from gemmprof.kernels.build import BuildResult
    from gemmprof.profiler.cluster.cluster_site import ClusterSite

    Site = Here | ClusterSite

__all__ = ["Interrupted", "collect"]


def collect(
    settings: Settings, directory: Path, *, resume: bool, progress: Progress, site: Site = HERE
) -> Run:
    """Do everything that ``settings`` ask for and that the run in ``directory`` does not have yet.

    Args:
        site: where the work is done.

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
        collection = Collection(settings, directory, found, progress, lock, site)
        return collection.do(resume)


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
        self._machine = found
        self._keeper = Keeper(settings, directory, progress, lock)
        self._site = site
        self._profiling = site.profiler(self._keeper, found)
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
        work = measuring_work(keeper.settings)
        with self._site.places(work, keeper.progress, (keeper.lock,)) as places:
            measuring = Measuring(keeper, places)
            measuring.verify()
            waiting = [task for task in keeper.unmeasured() if task.time]
            profile = keeper.unprofiled() if keeper.settings.profile else ()
            if not (waiting and profile and places.leave(machine.gpu.card)):
                measuring.time()
                return False
            keeper.progress.phase("time and profile", len(waiting) + len(profile))
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
        self._keeper.progress.phase("build", 1)
        started = time.monotonic()
        result = self._site.build(self._machine, self._keeper.progress)
        self._leave_out(result.skipped)
        what = f"compiled {len(result.compiled)} files" if result.compiled else "nothing to compile"
        self._keeper.progress.done(f"{what}, {time.monotonic() - started:.1f} s")
        return result

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
                found="; ".join(f"{name}: {reason}" for name, reason in left_out.items()),
                remedies=["`gemmprof stages` says what each stage needs"],
            )
        lost = {stage.ladder for stage in settings.stages if stage.name in left_out}
        lost -= {stage.ladder for stage in stages if not stage.yardstick}
        stages = tuple(stage for stage in stages if stage.ladder not in lost)
        problems = tuple(p for p in settings.problems if any(p.dtype in s.dtypes for s in stages))
        self._skipped = left_out
        self._keeper.settings = dataclasses.replace(settings, stages=stages, problems=problems)

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
                load_run(self._keeper.directory),
                self._keeper.settings,
                gpu.name,
                records,
                self._machine.versions,
            )
        else:
            info = new_info(self._keeper.settings, gpu, self._machine.versions)
            self._keeper.run = Run(self._keeper.directory, info, records, self._keeper.settings.problems)
        if self._skipped:
            self._keeper.note(skipped={**self._keeper.run.info.notes.get("skipped", {}), **self._skipped})
        self._keeper.save()
        for stage, problem in self._keeper.settings.pairs:
            if stage.name in built.failures:
                self._keeper.fail((stage.number, problem), "build", built.failures[stage.name])
