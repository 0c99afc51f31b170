"""A data set on disk: which reports are in it, as they were when they were read, and the parts that hold their rows.

    <dataset>/dataset.json       format, and for each report: size, time of change, part, launches or what was wrong
    <dataset>/parts/*.parquet    the launches of many reports: names, figures, findings; written once, never changed
    <dataset>/metrics/*.parquet  their metrics, one row a value, in the order of the metrics

`dataset.json` is replaced in one step after every batch, so a run that is killed goes on where it was.
"""

from __future__ import annotations

import os
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from gemmprof import __version__
from gemmprof.base import system
from gemmprof.base.documents import Document, DocumentError, OtherFormatError, json_text, read_json
from gemmprof.base.errors import GemmprofError, ReportError
from gemmprof.base.foreign_files import LARGEST_DOCUMENT, open_lock, read_bytes
from gemmprof.base.output import is_leftover, remove_leftovers
from gemmprof.base.spread import each, is_elsewhere, unseen
from gemmprof.children.line_worker import LineWorker, WorkerError
from gemmprof.children.watched import python_command
from gemmprof.reports.dataset.rows import MODULE, write_part
from gemmprof.runs.directory import write_atomically

MANIFEST = "dataset.json"
ROOMS = ("parts", "metrics")
BATCH_REPORTS = 64
# A part holds so many reports or so many bytes of them, whichever comes first: memory stays flat, parts stay
# few.
BATCH_BYTES = 48 << 20
SMALLEST_BATCH = 8  # fewer reports make no part of their own while there are more: a search opens every part
# A worker that takes longer over a report is given up, and its batch is read again one report at a time.
SECONDS_PER_REPORT = 120.0


class DatasetError(GemmprofError):
    """A data set that is missing, of another format, damaged, or being written by somebody else."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One report as it was when it was read.

    Attributes:
        size, changed_ns: of the file; another size or time means that it is read again.
        part: name of the part with its rows, '' if it could not be read.
        launches: its number of rows.
        error: why it could not be read, '' if it could.
    """

    size: int
    changed_ns: int
    part: str = ""
    launches: int = 0
    error: str = ""


class Manifest(Document, frozen=True, tag="gemmprof.dataset/1"):
    """``dataset.json``."""

    version: Annotated[str, "of the gemmprof that wrote it"]
    explained: Annotated[bool, "it holds what to change in each launch"]
    metrics: Annotated[set[str], "names of all metrics"]
    reports: Annotated[dict[str, Entry], "by path"]

    @classmethod
    def empty(cls, explained: bool) -> Manifest:
        """A data set without reports."""
        return cls(__version__, explained, set(), {})

    @property
    def launches(self) -> int:
        """Number of launches in the data set."""
        return sum(entry.launches for entry in self.reports.values())


@dataclass(frozen=True, slots=True)
class Update:
    """What an update did: reports read anew, those that were there already, those gone, and what could not be read."""

    read: int
    kept: int
    removed: int
    launches: int
    errors: tuple[tuple[str, str], ...]
    seconds: float


# Called with the number of reports done, of all to do, and an estimate of the seconds that are left.
Progress = Callable[[int, int, float], None]


def is_dataset(path: Path) -> bool:
    """Whether this folder is a data set."""
    return (path / MANIFEST).is_file()


def load_manifest(folder: Path) -> Manifest:
    """What a data set holds.

    Raises:
        DatasetError: if there is none, or it cannot be read.
    """
    try:
        data = read_bytes(folder / MANIFEST, LARGEST_DOCUMENT)
        manifest = read_json(data, Manifest)
        for part in {entry.part for entry in manifest.reports.values()}:
            if Path(part).name != part:
                raise DocumentError(f"'{part[:100]}' is no part")
        if (fewest := min((entry.launches for entry in manifest.reports.values()), default=0)) < 0:
            raise DocumentError(f"a report of {fewest} launches")
        return manifest
    except OSError as error:
        raise DatasetError(f"{folder} holds no data set", found=str(error)) from None
    except OtherFormatError as error:
        raise DatasetError(
            f"{folder} is a data set of another format",
            found=str(error),
            remedies=["write a new one: gemmprof export --format dataset -o OTHER"],
        ) from None
    except ValueError as error:
        raise DatasetError(
            f"{folder / MANIFEST} is damaged",
            found=str(error)[:200],
            remedies=["delete the folder, and export again"],
        ) from None


def update(
    folder: Path,
    reports: Iterable[Path],
    *,
    explained: bool = True,
    processes: int = 2,
    progress: Progress | None = None,
) -> Update:
    """Bring a data set in line with these reports: read new and changed ones, forget those that are gone.

    Args:
        folder: the data set; it is created.
        reports: every report that it is to hold.
        explained: also keep what to change in each launch.
        processes: how many read at a time.
        progress: called after every batch.

    Raises:
        DatasetError: if another process writes it, or it cannot be written.
    """
    started = time.monotonic()
    with _locked(folder):
        manifest = load_manifest(folder) if is_dataset(folder) else Manifest.empty(explained)
        if manifest.version != __version__ or (explained and not manifest.explained):
            manifest = Manifest.empty(explained)  # other figures: everything is read again
        for room in ("", *ROOMS):
            remove_leftovers(folder / room)
        wanted = {str(path.resolve()): _state(path) for path in reports}
        gone = [path for path in manifest.reports if path not in wanted]
        for path in gone:
            del manifest.reports[path]
        todo = {
            path: state
            for path, state in wanted.items()
            if path not in manifest.reports or _changed(manifest.reports[path], state)
        }
        kept = len(manifest.reports) - sum(path in manifest.reports for path in todo)
        done = 0
        for states, part, answer in _read(folder, todo, explained=manifest.explained, processes=processes):
            for path, state in states.items():
                # What the file system did not give is no report's own fault: it is asked for again next time.
                size, changed = (-1, -1) if path in answer.get("unreachable", ()) else state
                error = answer["errors"].get(path, "")
                launches = int(answer["launches"].get(path, 0))
                manifest.reports[path] = Entry(size, changed, "" if error else part, launches, error)
            manifest.metrics.update(answer.get("metrics", ()))
            done += len(states)
            _save(folder, manifest)
            if progress is not None:
                elapsed = time.monotonic() - started
                progress(done, len(todo), elapsed / done * (len(todo) - done))
        _save(folder, manifest)
        _drop_unused_parts(folder, manifest)
    errors = tuple((path, entry.error) for path, entry in manifest.reports.items() if entry.error)
    return Update(len(todo), kept, len(gone), manifest.launches, errors, time.monotonic() - started)


def _read(
    folder: Path, todo: dict[str, tuple[int, int]], *, explained: bool, processes: int
) -> Iterator[tuple[dict[str, tuple[int, int]], str, dict[str, Any]]]:
    """Batches of reports with their part and the worker's answer, as they get done."""
    if is_elsewhere():
        for batch, part, answer in _read_elsewhere(
            folder, list(_batches(todo, processes)), explained=explained
        ):
            yield {path: todo[path] for path in batch}, part, answer
        return
    batches: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    listed = list(_batches(todo, processes))
    for batch in listed:
        batches.put(batch)
    answers: queue.SimpleQueue[tuple[list[str], str, dict[str, Any]] | BaseException] = queue.SimpleQueue()
    stop = threading.Event()

    def work() -> None:
        worker = LineWorker(python_command(MODULE), name="the reader of reports")
        try:
            while not stop.is_set():
                batch = batches.get_nowait()
                for reports, part, answer in _answers(worker, folder, batch, explained=explained):
                    answers.put((reports, part, answer))
        except queue.Empty:
            pass
        except BaseException as error:
            answers.put(error)
        finally:
            worker.stop()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(max(1, min(processes, len(listed))))]
    for thread in threads:
        thread.start()
    left = len(todo)
    try:
        while left:
            found = answers.get()
            if isinstance(found, BaseException):
                raise found
            reports, part, answer = found
            left -= len(reports)
            yield {path: todo[path] for path in reports}, part, answer
    finally:
        stop.set()


def _read_elsewhere(
    folder: Path, batches: Sequence[list[str]], *, explained: bool
) -> Iterator[tuple[list[str], str, dict[str, Any]]]:
    """Batches as the workers of a cluster read them; where one takes its workers along, each report is tried alone."""
    parts = [f"{uuid.uuid4().hex}.parquet" for _ in batches]
    wanted = [(batch, folder / "parts" / part) for batch, part in zip(batches, parts, strict=True)]
    for batch, part, made in zip(
        batches, parts, each(partial(write_part, explained=explained), wanted), strict=True
    ):
        try:
            answer = made()
        except ReportError as error:
            if len(batch) > 1:
                yield from _read_elsewhere(folder, [[report] for report in batch], explained=explained)
                continue
            answer = {"launches": {}, "errors": {batch[0]: str(error)}}
        for report in answer.get("unreachable", ()):
            if os.access(report, os.R_OK):
                raise unseen(report, answer["errors"][report])
        if answer["launches"] and not (folder / "parts" / part).exists():
            raise unseen(folder, "what it wrote there is not here")
        yield batch, part, answer


def _answers(
    worker: LineWorker, folder: Path, batch: list[str], *, explained: bool, again: bool = True
) -> Iterator[tuple[list[str], str, dict[str, Any]]]:
    """What the worker makes of a batch; where it dies over one, each report is tried alone, and that one named.

    Alone there is another try (unless not ``again``) where it was killed or crashed, and did not hang: something else
    may have killed it, and a report that is attributed is not read again before it changes.
    """
    part = f"{uuid.uuid4().hex}.parquet"
    request = {"reports": batch, "target": str(folder / "parts" / part), "explained": explained}
    try:
        yield batch, part, worker.ask(request, SECONDS_PER_REPORT * len(batch))
    except WorkerError as error:
        alone = len(batch) == 1
        if alone and not (again and error.ending):
            yield batch, part, {"launches": {}, "errors": {batch[0]: str(error)}}
            return
        for report in batch:
            yield from _answers(worker, folder, [report], explained=explained, again=not alone)


def _batches(todo: dict[str, tuple[int, int]], processes: int) -> Iterator[list[str]]:
    """Reports in batches of bounded size, smaller ones towards the end: no process waits long for the last."""
    batch: list[str] = []
    size = 0
    most = 1
    for done, (path, (bytes_, _)) in enumerate(todo.items()):
        if batch and (len(batch) >= most or size + bytes_ > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        if not batch:
            left = len(todo) - done
            most = min(
                BATCH_REPORTS, max(min(SMALLEST_BATCH, -(-left // processes)), left // (2 * processes))
            )
        batch.append(path)
        size += bytes_
    if batch:
        yield batch


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (-1, -1)
    return found.st_size, found.st_mtime_ns


def _changed(entry: Entry, state: tuple[int, int]) -> bool:
    return (entry.size, entry.changed_ns) != state


def _save(folder: Path, manifest: Manifest) -> None:
    try:
        write_atomically(folder / MANIFEST, json_text(manifest, 0))
    except OSError as error:
        raise DatasetError(
            f"{folder} cannot be written",
            found=str(error),
            remedies=["free some space, or name another folder with -o; what was read before is kept"],
        ) from None


def _drop_unused_parts(folder: Path, manifest: Manifest) -> None:
    used = {entry.part for entry in manifest.reports.values()}
    for room in ROOMS:
        for path in (folder / room).glob("[!.]*.parquet"):
            if path.name not in used:
                path.unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time."""
    try:
        for room in ROOMS:
            (folder / room).mkdir(parents=True, exist_ok=True)
        if not is_dataset(folder) and (others := _others(folder)):
            raise DatasetError(
                f"{folder} holds other files", found=", ".join(others), remedies=["name a new folder with -o"]
            )
        with open_lock(folder / ".lock") as lock:
            try:
                system.lock(lock)
            except OSError:
                raise DatasetError(
                    f"another process writes {folder}",
                    remedies=["wait for it, or name another folder with -o"],
                ) from None
            yield
    except OSError as error:
        raise DatasetError(f"{folder} cannot be written", found=str(error)) from None


def _others(folder: Path) -> Sequence[str]:
    return sorted(
        os.fspath(p.name) for p in folder.iterdir() if p.name not in (*ROOMS, ".lock") and not is_leftover(p)
    )[:5]
