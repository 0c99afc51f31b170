"""A data set on disk: which reports are in it, as they were when they were read, and the parts that hold their rows.

    <dataset>/dataset.json       says that this is a data set, and of which format
    <dataset>/manifests/*.json   of a part: for each report its size, time of change, launches or what was wrong
    <dataset>/parts/*.parquet    the launches of many reports: names, figures, findings
    <dataset>/metrics/*.parquet  their metrics, one row a value, in the order of the metrics

Each file is written once, by whoever read the reports, and never changed: any number of commands and workers fill one
data set at a time without a lock, and a run that is killed goes on where it was. Of two manifests that name a report
the one of the higher generation holds; parts of which nothing holds any more are deleted.
"""

from __future__ import annotations

import os
import queue
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gemmprof import __version__
from gemmprof.base.buckets import below, content, is_there, listed, remove, write_text
from gemmprof.base.documents import Document, DocumentError, OtherFormatError, json_text, read_json
from gemmprof.base.errors import GemmprofError, ReportError, UnreachableError
from gemmprof.base.foreign_files import refuse_links, shown, url_of
from gemmprof.base.output import is_leftover, remove_leftovers
from gemmprof.base.spread import each, is_elsewhere, unseen
from gemmprof.children.line_worker import LineWorker, WorkerError
from gemmprof.children.watched import python_command
from gemmprof.reports.dataset.rows import MANIFESTS, MODULE, Entry, Manifest, write_part

MARK = "dataset.json"
ROOMS = (MANIFESTS, "parts", "metrics")
# A part without a manifest is being written, or was when its writer was killed: no batch takes a day.
ORPHAN_SECONDS = 86_400.0
# A part holds so many reports or so many bytes of them, whichever comes first: memory stays flat, and parts few, for a
# question opens all of them and takes 1.5 ms for each.
BATCH_REPORTS = 256
BATCH_BYTES = 96 << 20
MANIFESTS_AT_A_TIME = 16
SMALLEST_BATCH = 8  # fewer reports make no part of their own while there are more: a search opens every part
# A worker that takes longer over a report is given up, and its batch is read again one report at a time.
SECONDS_PER_REPORT = 120.0


class DatasetError(GemmprofError):
    """A data set that is missing, of another format, damaged, or being written by somebody else."""


class Mark(Document, frozen=True, tag="gemmprof.dataset/2"):
    """``dataset.json``."""

    version: str  # of the gemmprof that began the data set


@dataclass(frozen=True, slots=True)
class Contents:
    """What a data set holds."""

    reports: dict[str, Entry]  # by path
    generation: int  # the highest one
    idle: set[str]  # names of manifests that hold nothing (any more)
    other: set[str]  # reports that another gemmprof read, or nobody explained
    explained: bool  # every launch is

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


State = tuple[int, int]  # size and time of change
Batch = Mapping[str, State]
# Called with the number of reports done, of all to do, and an estimate of the seconds that are left.
Progress = Callable[[int, int, float], None]
# As `_Reading` names parts: nothing else is cleared away.
_PART = re.compile(r"[0-9a-f]{32}")


def is_dataset(path: Path) -> bool:
    """Whether this folder is a data set."""
    try:
        return is_there(path / MARK)
    except UnreachableError:  # whoever reads what is there instead says so, of the folder
        return False


def _damaged(path: Path, error: ValueError) -> DatasetError:
    remedy = "delete the folder, and export again"
    return DatasetError(f"{shown(path)} is damaged", remedy, found=str(error)[:200])


def load_contents(folder: Path) -> Contents:
    """What a data set holds; DatasetError if there is none, or it cannot be read."""
    try:
        refuse_links(folder, ROOMS)
        read_json(content(folder / MARK), Mark)
    except OSError as error:
        raise DatasetError(f"{shown(folder)} holds no data set", found=str(error)) from None
    except OtherFormatError as error:
        remedy = "write a new one: gemmprof export --format dataset -o OTHER"
        what = f"{shown(folder)} is a data set of another format"
        raise DatasetError(what, remedy, found=str(error)) from None
    except ValueError as error:
        raise _damaged(folder / MARK, error) from None
    manifests: dict[str, Manifest] = {}
    try:
        files = [folder / MANIFESTS / name for name in listed(folder / MANIFESTS) if name.endswith(".json")]
        # From a bucket each takes a moment in which another comes.
        with ThreadPoolExecutor(MANIFESTS_AT_A_TIME if url_of(folder) else 1) as readers:
            for file, manifest in zip(files, readers.map(_manifest, files), strict=True):
                if manifest is not None:
                    manifests[file.stem] = manifest
    except OSError as error:
        raise DatasetError(f"{shown(folder)} cannot be read", found=str(error)) from None
    reports: dict[str, tuple[str, Entry]] = {}
    for name, manifest in sorted(manifests.items(), key=lambda item: (item[1].generation, item[0])):
        for path in manifest.gone:
            # A generation may have several writers: who says that a report is gone did not see the others of it.
            if path in reports and manifests[reports[path][0]].generation < manifest.generation:
                del reports[path]
        reports.update((path, (name, entry)) for path, entry in manifest.reports.items())
    holding = {name for name, _ in reports.values()}
    # A manifest without which a report that is gone would be back, for an older one names it still, is needed, too.
    named = {path for manifest in manifests.values() for path in manifest.reports if path not in reports}
    needed = {name for name, manifest in manifests.items() if named.intersection(manifest.gone)}
    return Contents(
        {path: entry for path, (_, entry) in reports.items()},
        max((manifest.generation for manifest in manifests.values()), default=0),
        manifests.keys() - holding - needed,
        {path for path, (name, _) in reports.items() if manifests[name].version != __version__},
        all(manifests[name].explained for name in holding),
    )


def _manifest(path: Path) -> Manifest | None:
    """One manifest; None of one that somebody has just found idle. DatasetError if it is damaged."""
    try:
        manifest = read_json(content(path), Manifest)
        for part in {entry.part for entry in manifest.reports.values()}:
            if Path(part).name != part:
                raise DocumentError(f"'{part[:100]}' is no part")
        if (fewest := min((entry.launches for entry in manifest.reports.values()), default=0)) < 0:
            raise DocumentError(f"a report of {fewest} launches")
        return manifest
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise _damaged(path, error) from None


def update(
    folder: Path,
    reports: Iterable[Path],
    *,
    explained: bool = True,
    processes: int = 2,
    progress: Progress | None = None,
) -> Update:
    """Bring a data set, which is created, in line with these reports, all that it is to hold: read new and changed
    ones, ``processes`` at a time, forget those that are gone. DatasetError if it cannot be written.
    """
    started = time.monotonic()
    there = _opened(folder)
    explained = explained or (bool(there.reports) and there.explained)
    again = set(there.reports) if explained and not there.explained else there.other
    wanted = _states(reports)
    gone = [path for path in there.reports if path not in wanted]
    todo = {
        path: state
        for path, state in wanted.items()
        if path in again
        or (entry := there.reports.get(path)) is None
        or (entry.size, entry.changed_ns) != state
    }
    generation = there.generation + 1
    if gone:
        _keep(folder, uuid.uuid4().hex, Manifest(__version__, explained, generation, {}, gone))
    done = 0
    for count in _Reading(folder, generation, explained).read(todo, processes):
        done += count
        if progress is not None:
            elapsed = time.monotonic() - started
            progress(done, len(todo), elapsed / done * (len(todo) - done))
    now = _cleared(folder)
    unread = ((path, entry.error) for path, entry in now.reports.items() if entry.error and path in wanted)
    seconds = time.monotonic() - started
    return Update(len(todo), len(wanted) - len(todo), len(gone), now.launches, tuple(unread), seconds)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The reading of many reports into a data set."""

    folder: Path
    generation: int
    explained: bool

    def read(self, todo: Mapping[str, State], processes: int) -> Iterator[int]:
        """Read the reports in batches; yields the number of reports of each batch that is done."""
        batches = [{path: todo[path] for path in batch} for batch in _batches(todo, processes)]
        return self._elsewhere(batches) if is_elsewhere() else self._here(batches, processes)

    def _here(self, batches: Sequence[Batch], processes: int) -> Iterator[int]:
        waiting, stop = iter(batches), threading.Event()
        answers: queue.SimpleQueue[int | BaseException] = queue.SimpleQueue()

        def work() -> None:
            worker = LineWorker(python_command(MODULE), name="the reader of reports")
            try:
                for batch in waiting:
                    if stop.is_set():
                        break
                    self._ask(worker, batch)
                    answers.put(len(batch))
            except BaseException as error:
                answers.put(error)
            finally:
                worker.stop()

        threads = [threading.Thread(target=work, daemon=True) for _ in batches[: max(1, processes)]]
        for thread in threads:
            thread.start()
        try:
            for _ in batches:
                found = answers.get()
                if isinstance(found, BaseException):
                    raise found
                yield found
            for thread in threads:  # nothing is left to do: no reader outlives its command
                thread.join()
        finally:
            stop.set()

    def _ask(self, worker: LineWorker, batch: Batch, *, again: bool = True) -> None:
        """Have the worker read a batch; where it dies over one, each report is tried alone, and that one named.

        Alone there is another try (unless not ``again``) where it was killed or crashed, and did not hang: something
        else may have killed it, and a report that is attributed is not read again before it changes.
        """
        wanted = {"generation": self.generation, "explained": self.explained}
        request = {"reports": batch, "target": str(self._part()), **wanted}
        try:
            worker.ask(request, SECONDS_PER_REPORT * len(batch))
        except WorkerError as error:
            alone = len(batch) == 1
            if alone and not (again and error.ending):
                self._refuse(batch, error)
                return
            for report, state in batch.items():
                self._ask(worker, {report: state}, again=not alone)

    def _elsewhere(self, batches: Sequence[Batch]) -> Iterator[int]:
        """As the workers of a cluster read them; where one takes its workers along, each report is tried alone."""
        wanted = [(batch, self._part(), self.generation) for batch in batches]
        made = each(partial(write_part, explained=self.explained), wanted)
        for (batch, part, _), take in zip(wanted, made, strict=True):
            try:
                answer = take()
            except ReportError as error:
                if len(batch) > 1:
                    yield from self._elsewhere([{report: state} for report, state in batch.items()])
                else:
                    self._refuse(batch, error)
                    yield 1
                continue
            for report, why in answer["unreachable"].items():
                if os.access(report, os.R_OK):
                    raise unseen(report, why)
            if not is_there(self.folder / MANIFESTS / f"{part.stem}.json"):
                raise unseen(shown(self.folder), "what it wrote there is not here")
            yield len(batch)

    def _part(self) -> Path:
        return self.folder / "parts" / f"{uuid.uuid4().hex}.parquet"

    def _refuse(self, batch: Batch, error: Exception) -> None:
        """Note a report that cannot be read because it ends whoever reads it."""
        entries = {report: Entry(*state, error=str(error)) for report, state in batch.items()}
        manifest = Manifest(__version__, self.explained, self.generation, entries, [])
        _keep(self.folder, self._part().stem, manifest)


def _batches(todo: Mapping[str, State], processes: int) -> Iterator[list[str]]:
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
            fewest = min(SMALLEST_BATCH, -(-left // processes))
            most = min(BATCH_REPORTS, max(fewest, left // (2 * processes)))
        batch.append(path)
        size += bytes_
    if batch:
        yield batch


def _states(reports: Iterable[Path]) -> dict[str, State]:
    """Size and time of change of each report, -1 of what is not there; a folder in object storage is listed once."""
    stored: dict[str, Mapping[str, State]] = {}
    states = {}
    for path in map(os.fspath, reports):
        if url := url_of(path):
            folder = url.rpartition("/")[0]
            if folder not in stored:
                stored[folder] = below(folder, deep=False)
            states[url] = stored[folder].get(url, (-1, -1))
            continue
        place = os.path.realpath(path)
        try:
            facts = os.stat(place)  # noqa: PTH116 (of ten thousand a Path costs more than the question)
            states[place] = facts.st_size, facts.st_mtime_ns
        except OSError:
            states[place] = -1, -1
    return states


def _keep(folder: Path, name: str, manifest: Manifest) -> None:
    try:
        write_text(folder / MANIFESTS / f"{name}.json", json_text(manifest, 0))
    except OSError as error:
        remedy = "free some space, or name another folder with -o; what was read before is kept"
        raise DatasetError(f"{shown(folder)} cannot be written", remedy, found=str(error)) from None


def _cleared(folder: Path) -> Contents:
    """What the data set holds; what nothing of it holds is deleted.

    First the manifest, then what it names: who finds the manifest finds the rest, or looks again.
    """
    found = load_contents(folder)
    for name in found.idle:
        remove(folder / MANIFESTS / f"{name}.json")
    holding = {name.removesuffix(".json") for name in listed(folder / MANIFESTS)}
    for room in ("parts", "metrics"):
        for name, (_, changed) in listed(folder / room).items():
            stem, _, kind = name.partition(".")
            orphan = stem not in holding and time.time() - changed / 1e9 > ORPHAN_SECONDS
            if _PART.fullmatch(stem) and kind == "parquet" and (stem in found.idle or orphan):
                remove(folder / room / name)
    return found


def _opened(folder: Path) -> Contents:
    """What a data set holds, which is made if it is not there."""
    try:
        there = is_dataset(folder)
        if not there and (others := _others(folder)):
            remedy = "name a new folder with -o"
            raise DatasetError(f"{shown(folder)} holds other files", remedy, found=", ".join(others))
        refuse_links(folder, ROOMS)
        for room in ROOMS if not url_of(folder) else ():
            (folder / room).mkdir(parents=True, exist_ok=True)
            remove_leftovers(folder / room)
        if not there:
            write_text(folder / MARK, json_text(Mark(__version__), 0))
        return load_contents(folder)
    except OSError as error:
        raise DatasetError(f"{shown(folder)} cannot be written", found=str(error)) from None


def _others(folder: Path) -> Sequence[str]:
    if url := url_of(folder):
        names = {name[len(url) + 1 :].partition("/")[0] for name in below(url, deep=True)}
    else:
        there = folder.iterdir() if folder.is_dir() else ()
        names = {path.name for path in there if not is_leftover(path)}
    return sorted(names - set(ROOMS))[:5]
