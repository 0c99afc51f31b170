"""The part of a collection that profiles: one ncu process for all tasks that lack a report, more where one fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from gemmprof.base.documents import DocumentError
from gemmprof.base.errors import ProfilerError
from gemmprof.gpu.devices import VISIBLE, Tool
from gemmprof.model import Card
from gemmprof.profiler.job import Event, Job, Program, Task
from gemmprof.profiler.keeper import Interrupted, Keeper, Key
from gemmprof.profiler.ncu import profile_pass
from gemmprof.profiler.ncu.command import KILLED, NcuError, section_folder


class Profiling:
    """Profiles what the run lacks, on this GPU for the reports' label; ``pinned``: the program is shown it alone."""

    def __init__(
        self, keeper: Keeper, ncu: Tool | None, card: Card | None = None, *, pinned: bool = False
    ) -> None:
        self._keeper, self._ncu, self._card = keeper, ncu, card
        self._environment = {VISIBLE: card.uuid} if card is not None and pinned else {}
        self._section_folder: Path | None = None
        self._program: tuple[Program, profile_pass.PassFiles] | None = None

    def adopt(self) -> None:
        """Take over the reports that passes of an interrupted collection finished.

        A kernel whose source changed since is left: what it was built from then stands in the job.
        """
        known = {result.report for result in self._keeper.run.results}
        for files in profile_pass.earlier_passes(self._keeper.directory):
            if str(files.report.relative_to(self._keeper.directory)) in known or not files.job.exists():
                continue
            try:
                job = Job.load(files.job)
            except (OSError, DocumentError):
                continue  # a damaged job: which tasks it had is not known
            built_from = {task.key: made for task, made in zip(job.tasks, job.sources, strict=False)}
            made = self._keeper.source_hash
            missing = {one.key for one in self._keeper.unprofiled() if built_from.get(one.key) == made(one)}
            finished = profile_pass.outcome(files, job.tasks).finished
            kept = [task for task in finished if task.task.key in missing]
            for profiled in kept:
                self._keeper.keep_report(profiled, None)
            if kept:
                self._keeper.progress.note(f"took over {len(kept)} profiled stages from {files.report.name}")

    def do(self) -> None:
        """Profile what is missing: all tasks in one ncu process, the rest in another if one of them fails."""
        self._do(self._keeper.unprofiled(), self._once)

    def _do(self, share: Sequence[Task], once: Callable[[Sequence[Task]], profile_pass.PassOutcome]) -> None:
        """`do` for these tasks; ``once`` makes a pass."""
        keys = {task.key for task in share}

        def missing() -> list[Task]:
            return [task for task in self._keeper.unprofiled() if task.key in keys]

        tasks = missing()
        one_by_one = False
        given_another_try: set[Key] = set()
        patience = profile_pass.Patience(self._keeper.progress.note, self._keeper.stopping.wait)
        while tasks:
            result = once(tasks[:1] if one_by_one else tasks)
            for profiled in result.finished:
                self._keeper.keep_report(profiled, result.card or self._card)
                patience.reset()
            if result.interrupted:
                raise Interrupted
            if result.error is not None and self._passes(result.error, patience):
                pass  # whoever had the counters may have done with them
            elif result.error is not None:
                if result.error.hits_every_stage:
                    raise self._with_kept(result.error)
                if result.attributed is not None or len(tasks) == 1 or one_by_one:
                    attributed = result.attributed or tasks[0]
                    if result.error.kind == KILLED and attributed.key not in given_another_try:
                        # Somebody, or the kernel's out-of-memory killer, ended ncu: hardly this stage's fault.
                        given_another_try.add(attributed.key)
                        tasks = missing()
                        continue
                    self._keeper.fail(attributed.key, "profile", str(result.error))
                elif not result.finished:
                    one_by_one = True  # launches cannot be told apart: find the one that fails
            tasks = missing()

    def _passes(self, error: NcuError, patience: profile_pass.Patience) -> bool:
        """Wait where another profiler has the counters; whether to try again."""
        try:
            again = patience.again(error)
        except NcuError as last:
            raise self._with_kept(last) from None
        if self._keeper.stopping.is_set():
            raise Interrupted
        return again

    def _once(self, tasks: Sequence[Task]) -> profile_pass.PassOutcome:
        program, files = self._program or self._start_pass()
        self._program = None

        def on_event(event: Event) -> None:
            if event.event == "begin":
                self._keeper.progress.step(f"profile {self._keeper.label(event.key)}")
            elif event.event == "launched":
                self._keeper.progress.done(f"profile {self._keeper.label(event.key)}")

        job, on_interrupt = self._keeper.job(tasks, files.events), self._keeper.tell_interrupt
        return profile_pass.finish_pass(program, files, job, on_event=on_event, on_interrupt=on_interrupt)

    def _start_pass(self) -> tuple[Program, profile_pass.PassFiles]:
        if self._ncu is None:
            raise ProfilerError("there is no ncu to profile with")
        keeper, files = self._keeper, profile_pass.next_pass(self._keeper.directory)
        given = keeper.settings, self._section_folder, keeper.lock, self._environment
        return profile_pass.start_pass(self._ncu, files, *given), files

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let ncu and torch in it start while the stages are verified and timed, and end them if they get no job."""
        if self._ncu is None or not self._keeper.unprofiled():
            yield
            return
        with ExitStack() as stack:
            self._section_folder = stack.enter_context(section_folder(self._ncu, self._keeper.settings))
            self._program = self._start_pass()
            try:
                yield
            finally:
                if self._program is not None:
                    self._program[0].end()

    def _with_kept(self, error: NcuError) -> NcuError:
        """The error, with the way to continue."""
        kept = f"verification and timing are kept: `gemmprof collect --resume {self._keeper.directory}` continues"
        return error.but(remedies=(*error.remedies, kept))
