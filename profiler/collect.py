"""The collection: check the machine, build, verify, time, profile, and keep every finished part in the run directory.

The run is saved after each part of each stage. Whatever ends the collection (Ctrl-C, a kill, a fault), `--resume`
goes on with the parts that are missing, and a stage that fails takes no other with it.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof import metrics
from gemmprof.children import python_command
from gemmprof.errors import DeviceError, GemmprofError, ProfilerError, RunError
from gemmprof.gpus import Gpu, chosen_gpu, list_gpus
from gemmprof.model import Problem, StageResult, Timing, Verification
from gemmprof.profiler import machine
from gemmprof.profiler.job import Event, Job, Task
from gemmprof.profiler.lock import collecting
from gemmprof.profiler.ncu.command import require_ncu
from gemmprof.profiler.ncu.errors import KilledError, hits_every_stage
from gemmprof.profiler.ncu.lean_sections import write_lean_sections
from gemmprof.profiler.ncu.profile_pass import (
    LOGS,
    REPORTS,
    PassFiles,
    PassOutcome,
    ProfiledTask,
    earlier_passes,
    finish_pass,
    next_pass,
    outcome,
    start_pass,
)
from gemmprof.profiler.program import Ending, Program, run_program
from gemmprof.profiler.run_records import continued, new_info, stage_record
from gemmprof.profiler.settings import LEAN, Settings
from gemmprof.progress import Progress
from gemmprof.run import Run, load_run, save_run
from gemmprof.toolchain import Tool, ncu_installation

if TYPE_CHECKING:
    from gemmprof.kernels.build import BuildResult

STOP_FILE = ".stop"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended the collection after the stage at hand; everything finished is in the run."""


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """The tools that a collection uses, after they were checked."""

    gpu: Gpu
    ncu: Tool | None


def check_machine(*, profile: bool, runs: Path) -> Machine:
    """Make sure that this machine can do what is asked.

    Raises:
        DeviceError: naming the first thing that is missing, with its remedy.
    """
    gpu = chosen_gpu(list_gpus())
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
    return Machine(gpu, ncu)


def collect(settings: Settings, directory: Path, *, resume: bool, progress: Progress) -> Run:
    """Do everything that ``settings`` ask for and that the run in ``directory`` does not have yet.

    Returns:
        The run. Stages that failed carry their ``failure``.

    Raises:
        DeviceError, BuildError, ProfilerError: nothing (more) can be done on this machine; finished parts are saved.
        RunError: the directory holds another run, or one that these settings do not fit.
        Interrupted: Ctrl-C; finished parts are saved.
    """
    found = check_machine(profile=settings.profile, runs=directory)
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
    """One collection at work: the run as it grows, and the steps that make it grow."""

    def __init__(
        self, settings: Settings, directory: Path, found: Machine, progress: Progress, lock: int
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._machine = found
        self._progress = progress
        self._lock = lock
        self._stage_names = {
            (stage.number, dtype): stage.name for stage in settings.stages for dtype in stage.dtypes
        }
        self._build_failures: Mapping[str, str] = {}
        self._skipped: Mapping[str, str] = {}
        self._section_folder: Path | None = None
        self._waiting: tuple[Program, PassFiles] | None = None
        self.run: Run

    def do(self, resume: bool) -> Run:
        """All steps in order."""
        started = time.monotonic()
        built = self._build()
        self._open(built, resume)
        self._spent("build", started)
        self._adopt()
        with self._profiler():
            started = time.monotonic()
            self._measure()
            self._spent("verify and time", started)
            if self._settings.profile:
                started = time.monotonic()
                self._profile()
                self._spent("profile", started)
        return self.run

    def _save(self) -> None:
        try:
            save_run(self.run)
        except OSError as error:
            raise RunError(
                f"the run in {self._directory} cannot be written",
                found=str(error),
                remedies=["free some disk space, then `gemmprof collect --resume`"],
            ) from error

    def _spent(self, part: str, started: float) -> None:
        seconds = dict(self.run.info.notes.get("seconds", {}))
        seconds[part] = round(seconds.get(part, 0.0) + time.monotonic() - started, 3)
        self._note(seconds=seconds)

    def _note(self, **notes: Any) -> None:
        info = dataclasses.replace(self.run.info, notes={**self.run.info.notes, **notes})
        self.run = dataclasses.replace(self.run, info=info)
        self._save()

    # Building

    def _build(self) -> BuildResult:
        from gemmprof.kernels.build import build

        self._progress.phase("build", 1)
        started = time.monotonic()
        result = build(progress=self._progress)
        self._build_failures = result.failures
        self._leave_out(result.skipped)
        what = f"compiled {len(result.compiled)} files" if result.compiled else "nothing to compile"
        self._progress.done(f"{what}, {time.monotonic() - started:.1f} s")
        return result

    def _leave_out(self, skipped: Mapping[str, str]) -> None:
        """Go on without the stages that are written for other GPUs than this one."""
        stages = tuple(stage for stage in self._settings.stages if stage.name not in skipped)
        left_out = {s.name: skipped[s.name] for s in self._settings.stages if s.name in skipped}
        for name, reason in left_out.items():
            self._progress.note(f"{name} is skipped: {reason}")
        if not any(stage.source is not None for stage in stages) and left_out:
            raise DeviceError(
                "no stage that was chosen runs on this GPU",
                found="; ".join(f"{name}: {reason}" for name, reason in left_out.items()),
                remedies=["`gemmprof stages` says what each stage needs"],
            )
        self._skipped = left_out
        self._settings = dataclasses.replace(self._settings, stages=stages)

    # The run

    def _open(self, built: BuildResult, resume: bool) -> None:
        gpu = self._machine.gpu
        records = tuple(stage_record(stage, built, gpu.compute_capability) for stage in self._settings.stages)
        if (self._directory / "run.json").exists():
            if not resume:
                raise RunError(
                    f"{self._directory} holds a run already",
                    remedies=["add --resume to continue it", "choose another --output"],
                )
            self.run = continued(load_run(self._directory), self._settings, gpu.name, records)
        else:
            info = new_info(self._settings, gpu, self._machine.ncu)
            self.run = Run(self._directory, info, records, self._settings.problems)
        if self._skipped:
            self._note(skipped={**self.run.info.notes.get("skipped", {}), **self._skipped})
        self._save()
        for stage, problem in self._settings.pairs:
            if stage.name in self._build_failures:
                self._fail((stage.number, problem), "build", self._build_failures[stage.name])

    def _result(self, key: tuple[int, Problem]) -> StageResult:
        return self.run.result(*key) or StageResult(*key)

    def _keep(self, result: StageResult) -> None:
        self.run = self.run.with_result(result)
        self._save()

    def _keep_report(self, profiled: ProfiledTask) -> None:
        self._keep(
            dataclasses.replace(
                self._result(profiled.task.key),
                report=profiled.report,
                launch_index=profiled.launch_index,
            )
        )

    def _fail(self, key: tuple[int, Problem], part: str, message: str) -> None:
        self._keep(dataclasses.replace(self._result(key), failure=f"{part}: {message}"))
        self._progress.done(f"{self._label(key)}: FAILED, {message.splitlines()[0]}")

    def _label(self, key: tuple[int, Problem]) -> str:
        return f"{self._stage_names.get((key[0], key[1].dtype), key[0])} {key[1].label}"

    # Verification and timing

    def _unmeasured(self) -> tuple[Task, ...]:
        tasks = []
        for stage, problem in self._settings.pairs:
            result = self._result((stage.number, problem))
            verified = result.verification is not None and result.verification.passed
            task = Task(
                stage.number,
                problem,
                verify=self._settings.verify and not verified,
                time=self._settings.bench and result.timing is None,
            )
            if result.failure is None and (task.verify or task.time):
                tasks.append(task)
        return tuple(tasks)

    def _measure(self) -> None:
        """Verify and time what is missing, in as many helper programs as faults make necessary."""
        tasks = self._unmeasured()
        if not tasks:
            return
        self._progress.phase("verify and time", sum(task.verify + task.time for task in tasks))
        attempt = 0
        while tasks:
            attempt += 1
            ending, begun = self._measure_once(tasks, attempt)
            remaining = self._unmeasured()
            if ending.interrupted:
                raise Interrupted
            if begun is None and len(remaining) == len(tasks):
                raise DeviceError(
                    "the program that verifies and times the stages did not get as far as the first one",
                    found=(ending.output.strip().splitlines() or [f"exit code {ending.exit_code}"])[-1],
                    remedies=[f"see {self._directory / LOGS}", "`gemmprof doctor` checks this machine"],
                )
            if begun is not None and begun in {task.key for task in remaining}:
                why = (
                    f"signal {-ending.exit_code}" if ending.exit_code < 0 else f"exit code {ending.exit_code}"
                )
                self._fail(begun, "measure", f"the program ended with {why}")
                remaining = self._unmeasured()
            tasks = remaining

    def _measure_once(self, tasks: Sequence[Task], attempt: int) -> tuple[Ending, tuple[int, Problem] | None]:
        """One helper program; returns how it ended and the task that it was working on at the end."""
        logs = self._directory / LOGS
        stem = f"measure-{time.time_ns():x}-{attempt}"
        job = self._job(tasks, logs / f"{stem}.events.jsonl")
        job_file = logs / f"{stem}.job.json"
        job.save(job_file)
        begun: list[tuple[int, Problem]] = []

        def on_event(event: Event) -> None:
            if event.kind == "begin":
                begun.append(event.key)
                self._progress.step(f"{event.facts['part']} {self._label(event.key)}")
            elif event.kind == "no_device":
                raise DeviceError(
                    "torch finds no usable GPU",
                    found=str(event.facts["message"]),
                    remedies=[
                        "`gemmprof doctor` says what is missing",
                        "a driver too old for torch needs an upgrade",
                    ],
                )
            elif event.kind in ("verified", "timed", "failed"):
                self._measured(event)

        ending = run_program(
            [*python_command("gemmprof.profiler.worker"), str(job_file)],
            events=job.events,
            output=logs / f"{stem}.out.log",
            stop_file=job.stop_file,
            keep_open=(self._lock,),
            on_event=on_event,
            on_interrupt=self._tell_interrupt,
        )
        return ending, begun[-1] if begun else None

    def _measured(self, event: Event) -> None:
        result, label = self._result(event.key), self._label(event.key)
        if event.kind == "failed":
            self._fail(event.key, str(event.facts["part"]), str(event.facts["message"]))
        elif event.kind == "timed":
            timing = Timing(**event.facts["timing"])
            self._keep(dataclasses.replace(result, timing=timing))
            rate = f"{timing.tflops(event.key[1]):.2f} TFLOP/s" if event.key[1].flops else "no arithmetic"
            self._progress.done(f"time {label}: {timing.median * 1e3:.3f} ms, {rate}")
        else:
            verification = Verification(**event.facts["verification"])
            failure = None if verification.passed else f"verification: {verification.detail}"
            self._keep(dataclasses.replace(result, verification=verification, failure=failure))
            if failure is None:
                self._progress.done(
                    f"verify {label}: relative error {verification.relative_error:.1e} "
                    f"(allowed {verification.tolerance:.1e})"
                )
            else:
                self._progress.done(f"verify {label}: FAILED, {verification.detail}")

    def _job(self, tasks: Sequence[Task], events: Path) -> Job:
        return Job(
            tasks=tuple(tasks),
            run_directory=self._directory.resolve(),
            events=events.resolve(),
            stop_file=(self._directory / STOP_FILE).resolve(),
            seed=self._settings.seed,
            time_budget=self._settings.time_budget,
        )

    def _tell_interrupt(self) -> None:
        self._progress.note("interrupted: ending after the stage at hand (Ctrl-C again: at once)")

    # Profiling

    def _unprofiled(self) -> tuple[Task, ...]:
        """Tasks without a report whose kernel is not known to be wrong."""
        results = [self._result((stage.number, problem)) for stage, problem in self._settings.pairs]
        return tuple(Task(r.stage, r.problem) for r in results if r.report is None and r.failure is None)

    def _adopt(self) -> None:
        """Take over the reports that passes of an interrupted collection finished."""
        known = {result.report for result in self.run.results}
        for files in earlier_passes(self._directory):
            if str(files.report.relative_to(self._directory)) in known or not files.job.exists():
                continue
            try:
                tasks = Job.load(files.job).tasks
            except (ValueError, TypeError, KeyError):
                continue  # a damaged job: which tasks it had is not known
            missing = {task.key for task in self._unprofiled()}
            kept = [task for task in outcome(files, tasks).finished if task.task.key in missing]
            for profiled in kept:
                self._keep_report(profiled)
            if kept:
                self._progress.note(f"took over {len(kept)} profiled stages from {files.report.name}")

    def _profile(self) -> None:
        """Profile what is missing: all tasks in one ncu process, the rest in another if one of them fails."""
        tasks = self._unprofiled()
        if not tasks:
            return
        self._progress.phase("profile", len(tasks))
        one_by_one = False
        given_another_try: set[tuple[int, Problem]] = set()
        while tasks:
            result = self._profile_once(tasks[:1] if one_by_one else tasks)
            for profiled in result.finished:
                self._keep_report(profiled)
            if result.interrupted:
                raise Interrupted
            if result.error is not None:
                if hits_every_stage(result.error):
                    raise self._with_kept(result.error)
                if result.blamed is not None or len(tasks) == 1 or one_by_one:
                    blamed = result.blamed or tasks[0]
                    if isinstance(result.error, KilledError) and blamed.key not in given_another_try:
                        # Somebody, or the kernel's out-of-memory killer, ended ncu: hardly this stage's fault.
                        given_another_try.add(blamed.key)
                        tasks = self._unprofiled()
                        continue
                    self._fail(blamed.key, "profile", str(result.error))
                elif not result.finished:
                    # The launches of this pass cannot be told apart: find the culprit one by one.
                    one_by_one = True
            tasks = self._unprofiled()

    def _profile_once(self, tasks: Sequence[Task]) -> PassOutcome:
        program, files = self._waiting or self._start_pass()
        self._waiting = None

        def on_event(event: Event) -> None:
            if event.kind == "begin":
                self._progress.step(f"profile {self._label(event.key)}")
            elif event.kind == "launched":
                self._progress.done(f"profile {self._label(event.key)}")

        return finish_pass(
            program,
            files,
            self._job(tasks, files.events),
            on_event=on_event,
            on_interrupt=self._tell_interrupt,
        )

    def _start_pass(self) -> tuple[Program, PassFiles]:
        if self._machine.ncu is None:
            raise ProfilerError("there is no ncu to profile with")
        files = next_pass(self._directory)
        program = start_pass(
            self._machine.ncu,
            files,
            collection=self._settings.collection_options,
            clock_control=self._settings.clock_control,
            section_folder=self._section_folder,
            lock=self._lock,
        )
        return program, files

    @contextmanager
    def _profiler(self) -> Iterator[None]:
        """Let ncu and torch in it start while the stages are verified and timed, and end them if they get no job."""
        if self._machine.ncu is None or not self._unprofiled():
            yield
            return
        with ExitStack() as stack:
            if self._settings.metric_set == LEAN:
                self._section_folder = self._lean_sections(self._machine.ncu, stack)
            self._waiting = self._start_pass()
            try:
                yield
            finally:
                if self._waiting is not None:
                    self._waiting[0].end()

    def _lean_sections(self, ncu: Tool, stack: ExitStack) -> Path | None:
        """A folder with ncu's sections for the lean set, there as long as ``stack``; None for ncu's own folder."""
        installation = ncu_installation(ncu.path)
        if installation is None:
            return None
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gemmprof-sections-")))
            lean = write_lean_sections(installation / "sections", folder, metrics.LEAN_WITHOUT)
        except OSError:
            # No room for temporary files. ncu's own sections take longer, and do as well.
            return None
        return folder if lean else None

    def _with_kept(self, error: ProfilerError) -> GemmprofError:
        """The error, with the way to continue."""
        kept = f"verification and timing are kept: `gemmprof collect --resume {self._directory}` continues"
        return type(error)(error.message, remedies=(*error.remedies, kept), found=error.found)
