"""The store of a history: a folder of Parquet files that are only ever added.

    <store>/history.json                    format version
    <store>/records/<time>-<id>.parquet     the points of one `gemmprof history record`
    <store>/records/compact-<id>.parquet    the points of many records, by series and time

A record is written beside its place and takes its name in one step, so any number of writers need no lock, and one that
is killed leaves either its whole record or a file that a later writer clears away. A compact file names the
records that it replaces, and readers pass over those: whether they are already deleted makes no difference.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from gemmprof.analysis.history.changes import Point
from gemmprof.analysis.history.recording import ON, Kept
from gemmprof.analysis.inputs.selection import expression
from gemmprof.base import system
from gemmprof.base.documents import Document, DocumentError, OtherFormatError, json_text, read_json
from gemmprof.base.errors import GemmprofError, UsageError
from gemmprof.base.foreign_files import open_lock, read_bytes, refuse_links
from gemmprof.base.output import remove_leftovers, write_new
from gemmprof.base.spread import grouped
from gemmprof.reports.history.point_files import (
    PointsReader,
    Series,
    points_of,
    read_points,
    series_in,
    table_of,
    write_compacted,
    write_points,
)

Result = TypeVar("Result")

FORMAT = "gemmprof.history/1"
MARKER, RECORDS = "history.json", "records"
COMPACT = "compact-"  # how the name of a compacted file begins


class Marker(Document, frozen=True, tag=FORMAT):
    """``history.json``."""


STORE_VARIABLE = "GEMMPROF_HISTORY"
DEFAULT_STORE = "gemmprof-history"
COMPACT_AFTER = 8  # so many records, and the next writer puts them together: a query opens every file


def default_store() -> Path:
    """The folder of the history where none is named."""
    return Path(os.environ.get(STORE_VARIABLE) or DEFAULT_STORE)


class HistoryError(GemmprofError):
    """A store that is missing, of another format, or damaged."""


@dataclass(frozen=True, slots=True)
class HistoryStore:
    """A store on disk."""

    folder: Path

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, create: bool = False) -> HistoryStore:
        """The store in a folder.

        Raises:
            HistoryError: if there is none (and ``create`` is not set), or it has another format.
        """
        path = Path(folder)
        marker = path / MARKER
        if not marker.is_file():
            if not create:
                raise HistoryError(
                    f"{path} holds no history",
                    "record a first run: gemmprof history record RUN",
                    "name a store with --store",
                )
            # Without a marker yet, another first writer may be at work, or one was killed there.
            ours = re.compile(rf"{MARKER}|{RECORDS}|compact\.lock|\.{MARKER}\..*")
            if path.is_dir() and not all(ours.fullmatch(entry.name) for entry in path.iterdir()):
                remedy = "name an empty folder with --store"
                raise HistoryError(f"{path} holds other files", remedy)
            (path / RECORDS).mkdir(parents=True, exist_ok=True)
            write_new(marker, json_text(Marker(), 0) + "\n", durable=True)
        try:
            refuse_links(path, (RECORDS,))
        except OSError as error:
            raise HistoryError(f"{path} cannot be read", found=str(error)) from None
        try:
            read_json(read_bytes(marker), Marker)
        except OtherFormatError as error:
            raise HistoryError(
                f"{path} is a history of another format", "use the gemmprof that wrote it", found=str(error)
            ) from None
        except (OSError, DocumentError) as error:
            raise HistoryError(
                f"{marker} cannot be read",
                f'the times beside it are whole: write {{"format": "{FORMAT}"}} into it',
                found=str(error),
            ) from None
        return cls(path)

    def add(self, points: Sequence[Point]) -> Path:
        """Keep these points as one record; it is whole or not there; UsageError if there are none."""
        if not points:
            raise UsageError("there is no time to record", "name a run or report with durations")
        remove_leftovers(self.folder / RECORDS)
        stamp = max(point.origin.recorded_at for point in points).astimezone(UTC).strftime("%Y%m%dT%H%M%S")
        target = self.folder / RECORDS / f"{stamp}-{uuid.uuid4().hex[:12]}.parquet"
        try:
            target.parent.mkdir(exist_ok=True)
            write_points(table_of(points), target)
        except OSError as error:
            raise HistoryError(
                f"the record could not be written to {self.folder}",
                "free some space or name another store with --store; nothing was changed",
                found=str(error),
            ) from None
        with contextlib.suppress(OSError):  # the record is kept; the next writer tries again
            self.compact(at_least=COMPACT_AFTER)
        return target

    def compact(self, *, at_least: int = 2) -> bool:
        """Put records together into one file sorted by series, if there are so many; False if another process does.

        Killed at any moment it loses nothing and doubles nothing.

        Raises:
            HistoryError: a record is damaged.
            OSError: the disk is full, or the store cannot be written.
        """
        with open_lock(self.folder / "compact.lock") as lock:
            try:
                system.lock(lock)
            except OSError:
                return False
            files, replaced = self._files()
            for name in replaced:
                (self.folder / RECORDS / name).unlink(missing_ok=True)
            merged = [path for path in files if not path.name.startswith(COMPACT)]
            if len(merged) < at_least:
                return True
            # Compact files grow by merging only with ones of their own size, so a point is rewritten few times.
            size = sum(path.stat().st_size for path in merged)
            older = (path for path in files if path.name.startswith(COMPACT))
            for path in sorted(older, key=lambda path: path.stat().st_size):
                if path.stat().st_size < 4 * size:
                    merged.append(path)
                    size += path.stat().st_size
            target = self.folder / RECORDS / f"{COMPACT}{uuid.uuid4().hex[:12]}.parquet"
            try:
                write_compacted(merged, target)
            except (OSError, pa.ArrowException) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise  # the disk's, not the file's
                raise HistoryError(f"a record of {self.folder} is damaged", found=str(error)[:500]) from None
            for path in merged:
                path.unlink(missing_ok=True)
        return True

    def series(
        self, pattern: str | None = None, *, device: str | None = None, kind: str | None = None
    ) -> list[Series]:
        """The series whose kernel matches a regular expression (all without one), longest last time first.

        Args:
            device, kind: those of this card, on whatever machine, and of this kind alone.

        Raises:
            UsageError: if the pattern is no regular expression.
        """
        wanted = expression("REGEX", pattern)
        found = [
            one
            for one in self._steadily(series_in)
            if (wanted is None or wanted.search(one.kernel))
            and (device is None or one.device == device or one.device.startswith(f"{device}{ON}"))
            and (kind is None or one.kind == kind)
        ]
        return sorted(found, key=lambda one: (-one.last_ns, *one.key))

    def points(self, series: Iterable[Series]) -> dict[tuple[str, str, str, str], list[Point]]:
        """The points of these series by `Series.key`, each in order of time."""
        numbers = [one.number for one in series]
        points = points_of(self._steadily(lambda files: read_points(files, series=numbers)))
        return grouped((point.series, point) for point in points)

    def predictions(self) -> list[Kept]:
        """The points that were kept with predictions."""
        names = ["series", "recorded_at", "time_ns", "code", "predictions"]

        def read(files: Sequence[Path]) -> list[Kept]:
            found = []
            for path in files:
                with PointsReader(path) as file:
                    if "predictions" in file.schema.names:
                        rows = file.read(names)
                        rows = rows.filter(pc.greater(pc.binary_length(rows.column("predictions")), 0))
                        found += [Kept(**{name: row[name] for name in names}) for row in rows.to_pylist()]
            return found

        return self._steadily(read)

    def _files(self) -> tuple[list[Path], set[str]]:
        """The files that count, and the names of records that compacted ones hold: those do not, if they are there."""
        found = sorted((self.folder / RECORDS).glob("[!.]*.parquet"))
        # What was put together is older than what was not yet.
        found.sort(key=lambda path: not path.name.startswith(COMPACT))
        replaced: set[str] = set()
        for path in found:
            if path.name.startswith(COMPACT):
                with PointsReader(path) as file:
                    replaced |= file.replaced
        return [path for path in found if path.name not in replaced], replaced

    def _steadily(self, read: Callable[[Sequence[Path]], Result]) -> Result:
        """Read the files that count; where a compaction takes one away meanwhile, read those that count then."""
        for attempt in range(3):
            files: list[Path] | None = None
            try:
                files, _ = self._files()
                if not files:
                    remedy = "gemmprof history record RUN"
                    raise HistoryError(f"{self.folder} holds no record yet", remedy)
                return read(files)
            except (OSError, pa.ArrowException) as error:
                if attempt == 2 or (files is not None and all(path.exists() for path in files)):
                    kind = "cannot be read" if isinstance(error, OSError) else "is damaged"
                    raise HistoryError(f"a record of {self.folder} {kind}", found=str(error)[:500]) from None
        raise AssertionError("the loop returns or raises")
