"""One ncu process on a worker: the same pass as at home, in a folder of the worker's disk."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from gemmprof.base.errors import ProfilerError
from gemmprof.base.foreign_files import read_end
from gemmprof.gpu.toolchain import Tool
from gemmprof.model import Card
from gemmprof.profiler.cluster import remote
from gemmprof.profiler.cluster.content import Content
from gemmprof.profiler.job import Job, Task
from gemmprof.profiler.keeper import STOP_FILE
from gemmprof.profiler.lock import collecting
from gemmprof.profiler.ncu.command import require_ncu
from gemmprof.profiler.ncu.lean_sections import section_folder
from gemmprof.profiler.ncu.profile_pass import LOGS, REPORTS, PassOutcome, finish_pass, next_pass, start_pass
from gemmprof.profiler.places.gpu_child import VISIBLE
from gemmprof.profiler.settings import Settings


@dataclass(frozen=True, slots=True)
class Order:
    """What to profile and how, and for which command."""

    command: str
    tasks: tuple[Task, ...]
    settings: Settings
    model: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """What came of a pass.

    Attributes:
        outcome: as at home; its report and launches are named as in the worker's folder.
        report: None where nothing was profiled.
        texts: ncu's log and the program's output, by the end of the file's name.
    """

    outcome: PassOutcome
    card: Card
    report: Content | None
    texts: Mapping[str, str]


def profile(order: Order, carried: Mapping[str, Content], extension: remote.Extension | None) -> Delivery:
    """Profile the tasks of an order on a free GPU of this worker.

    Raises:
        GpuGone: no GPU of that model can be used here.
        DeviceError: there is no ncu here.
    """
    ncu = require_ncu()
    with remote.folder_of_a_pass() as folder:
        return _in_folder(folder, ncu, order, carried, extension)


def _in_folder(
    folder: Path, ncu: Tool, order: Order, carried: Mapping[str, Content], extension: remote.Extension | None
) -> Delivery:
    settings = order.settings
    for name in (REPORTS, LOGS):
        (folder / name).mkdir()
    files = next_pass(folder)
    environment = remote.environment({**carried, **(extension.carried if extension else {})})
    with ExitStack() as stack:
        card = stack.enter_context(remote.profiled_gpu())
        if card.model != order.model:
            raise remote.GpuGone(f"{card.label} is of another model: {card.model}")
        stack.enter_context(remote.alone_on_host())
        remote.free_for_profiler(card)
        lock = stack.enter_context(collecting(folder))
        job = Job(order.tasks, folder, files.events, folder / STOP_FILE, settings.seed)
        if not stack.enter_context(remote.at_work(order.command, job.stop_file)):
            return Delivery(PassOutcome(interrupted=True), card, None, {})
        program = start_pass(
            ncu,
            files,
            collection=settings.collection_options,
            clock_control=settings.clock_control,
            section_folder=stack.enter_context(
                section_folder(ncu, settings.metric_set, timeline=settings.timeline)
            ),
            lock=lock,
            environment={**environment, VISIBLE: card.uuid},
        )
        outcome = finish_pass(program, files, job, on_event=lambda event: None, on_interrupt=lambda: None)
    report = Content.of(files.report) if outcome.finished else None
    written = (files.log, files.output, files.events)
    texts = {path.name.removeprefix(files.name): read_end(path, LONGEST_TEXT) for path in written}
    return Delivery(outcome, card, report, texts)


LONGEST_TEXT = 256 << 10


def lost(message: str) -> ProfilerError:
    """The error where no worker is left to profile."""
    return ProfilerError(message, remedies=["start more workers, then `gemmprof collect --resume`"])
