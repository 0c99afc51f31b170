"""The store of a history: a folder of Parquet files that are only ever added.

    <store>/history.json                    format version
    <store>/records/<time>-<id>.parquet     the points of one `gemmprof history record`
    <store>/records/compact-<id>.parquet    the points of many records, by series and time

A record is written beside its place and takes its name in one step, so any number of writers need no lock, and one that
is killed leaves either its whole record or a file that a later writer clears away. A compact file names the
records that it replaces, and readers pass over those: whether they are already deleted makes no difference.

A row of a file is a point: its columns are the fields of the point and of its origin, and a column a counter. Of a file
no more is read than a question needs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gemmprof.analysis.history.changes import Numbers, Origin, Point
from gemmprof.analysis.history.recording import COUNTERS, ON, Kept
from gemmprof.analysis.inputs.selection import expression
from gemmprof.base import system
from gemmprof.base.documents import Document, DocumentError, OtherFormatError, json_text, read_json
from gemmprof.base.errors import GemmprofError, UsageError
from gemmprof.base.foreign_files import RefusedFileError, open_lock, read_bytes, refuse_links
from gemmprof.base.output import remove_leftovers, write_new
from gemmprof.base.spread import grouped
from gemmprof.reports.tables.parquet import ParquetReader, fitted, new_parquet, write_parquet

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
        """The store in a folder; HistoryError if there is none (and not ``create``), or it has another format."""
        path = Path(folder)
        marker = path / MARKER
        if not marker.is_file():
            if not create:
                first = "record a first run: gemmprof history record RUN"
                raise HistoryError(f"{path} holds no history", first, "name a store with --store")
            # Without a marker yet, another first writer may be at work, or one was killed there.
            ours = re.compile(rf"{MARKER}|{RECORDS}|compact\.lock|\.{MARKER}\..*")
            if path.is_dir() and not all(ours.fullmatch(entry.name) for entry in path.iterdir()):
                raise HistoryError(f"{path} holds other files", "name an empty folder with --store")
            (path / RECORDS).mkdir(parents=True, exist_ok=True)
            write_new(marker, json_text(Marker(), 0) + "\n", durable=True)
        try:
            refuse_links(path, (RECORDS,))
        except OSError as error:
            raise HistoryError(f"{path} cannot be read", found=str(error)) from None
        try:
            read_json(read_bytes(marker), Marker)
        except OtherFormatError as error:
            what, remedy = f"{path} is a history of another format", "use the gemmprof that wrote it"
            raise HistoryError(what, remedy, found=str(error)) from None
        except (OSError, DocumentError) as error:
            remedy = f'the times beside it are whole: write {{"format": "{FORMAT}"}} into it'
            raise HistoryError(f"{marker} cannot be read", remedy, found=str(error)) from None
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
            write_parquet(table_of(points), target, row_group=ROW_GROUP, **WRITTEN)
        except OSError as error:
            remedy = "free some space or name another store with --store; nothing was changed"
            what = f"the record could not be written to {self.folder}"
            raise HistoryError(what, remedy, found=str(error)) from None
        with contextlib.suppress(OSError):  # the record is kept; the next writer tries again
            self.compact(at_least=COMPACT_AFTER)
        return target

    def compact(self, *, at_least: int = 2) -> bool:
        """Put records together into one file sorted by series, if there are so many; False if another process does.

        Killed at any moment it loses nothing and doubles nothing. HistoryError if a record is damaged, OSError if the
        store cannot be written.
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
        """The series whose kernel matches a regular expression (all without one; UsageError if it is none), of this
        card, on whatever machine, and of this kind alone, longest last time first.
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
                    raise HistoryError(f"{self.folder} holds no record yet", "gemmprof history record RUN")
                return read(files)
            except (OSError, pa.ArrowException) as error:
                if attempt == 2 or (files is not None and all(path.exists() for path in files)):
                    kind = "cannot be read" if isinstance(error, OSError) else "is damaged"
                    raise HistoryError(f"a record of {self.folder} {kind}", found=str(error)[:500]) from None
        raise AssertionError("the loop returns or raises")


# --- The files --------------------------------------------------------------------------------------------------------

COUNTER = "counter_"
_HINTS = {**get_type_hints(Origin), **get_type_hints(Point)}
_ORIGIN = tuple(one.name for one in fields(Origin))
_PLAIN = tuple(one.name for one in fields(Point) if one.name not in ("origin", "counters"))
# A column is a field of the point or of its origin, of the type that it has there.
_TEXTS = frozenset(name for name, kind in _HINTS.items() if kind is str)


def series_number(point: Point) -> int:
    """A number for a series that every writer finds alike; it is not negative."""
    digest = hashlib.blake2b("\0".join(point.series).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def table_of(points: Sequence[Point]) -> pa.Table:
    """One row a point, sorted by the number of its series."""
    points = sorted(points, key=series_number)
    columns: dict[str, list[Any]] = {"series": list(map(series_number, points))}
    columns |= {name: [getattr(p.origin, name) for p in points] for name in _ORIGIN}
    columns |= {name: [getattr(p, name) for p in points] for name in _PLAIN}
    columns |= {f"{COUNTER}{name}": [p.counters.get(name) for p in points] for name in COUNTERS}
    return pa.table({name: pa.array(values, column_type(name)) for name, values in columns.items()})


def column_type(name: str) -> pa.DataType:
    """The type of a column of points; one that a later gemmprof adds is a number, too."""
    kinds = {datetime: pa.timestamp("us", tz="UTC"), str: pa.string(), int: pa.int64()}
    return pa.int64() if name == "series" else kinds.get(_HINTS.get(name, float), pa.float64())


def schema_of(columns: Iterable[str], metadata: dict[bytes, bytes]) -> pa.Schema:
    """A file of points with these columns."""
    return pa.schema([(name, column_type(name)) for name in columns], metadata)


def points_of(rows: pa.Table) -> list[Point]:
    """The points of these rows, in their order. What a record lacks is None, or '' for a text."""

    def column(name: str) -> Iterable[Any]:
        nothing = "" if name in _TEXTS else None
        if name not in rows.column_names:
            return repeat(nothing, len(rows))
        return (nothing if value is None else value for value in rows[name].to_pylist())

    counters = [name for name in rows.column_names if name.startswith(COUNTER)]
    titles = [name.removeprefix(COUNTER) for name in counters]
    counted = zip(*map(column, counters), strict=True) if counters else repeat((), len(rows))
    origins = map(Origin, *map(column, _ORIGIN))
    return [
        Point(
            **dict(zip(_PLAIN, values, strict=True)),
            origin=origin,
            counters={title: value for title, value in zip(titles, found, strict=True) if value is not None},
        )
        for *values, origin, found in zip(*map(column, _PLAIN), origins, counted, strict=True)
    ]


LAST_MICROSECOND = 253_402_300_800_000_000  # of the year 9999, the last one that Python's dates know
# Rows that a reader of one series decodes at least; each group costs every reader of the file a little.
ROW_GROUP = 1 << 13
BIN_ROWS = 1 << 16  # rows of which memory holds all columns while files are put together
NAMES = ("kernel", "grid", "device", "kind")
REPLACES = b"gemmprof.replaces"  # key of a compacted file's metadata: the names of the records that are in it
# Times hardly shrink; by the bounds of its series a row group is known that need not be read.
WRITTEN: dict[str, Any] = {"plain": ("time_ns",), "statistics": ("series",)}


def write_compacted(paths: Sequence[Path], target: Path) -> None:
    """Write the points of these files into one, by series and time: some series after the others, in bounded memory. It
    counts once it has its name; pyarrow.ArrowException or OSError if a file is damaged, or the disk full.
    """
    replaces = {REPLACES: json.dumps([path.name for path in paths]).encode()}
    with contextlib.ExitStack() as opened:
        files = [opened.enter_context(PointsReader(path)) for path in paths]
        series = np.concatenate([file.read(["series"])["series"].to_numpy() for file in files])
        numbers, counts = np.unique(series, return_counts=True)
        schema = schema_of(dict.fromkeys(name for file in files for name in file.schema.names), replaces)
        bins = np.split(numbers, np.flatnonzero(np.diff(np.cumsum(counts) // BIN_ROWS)) + 1)
        with new_parquet(target, schema, **WRITTEN) as writer:
            for several in bins:
                parts = [file.read(among=("series", several.tolist())) for file in files]
                rows = by_series(pa.concat_tables(parts, promote_options="permissive").unify_dictionaries())
                writer.write_table(fitted(rows, schema), row_group_size=ROW_GROUP)


class PointsReader(ParquetReader):
    """A file of points, perhaps somebody's. Errors as `ParquetReader`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, column_type, NAMES)
        # A row has at least a time, and times hardly shrink.
        if self.metadata.num_rows > path.stat().st_size:
            raise RefusedFileError(path, "claims more rows than it has bytes")

    @property
    def replaced(self) -> set[str]:
        """The names of the records that a compacted file says it replaces: they are deleted, so they are names."""
        try:
            names = read_json((self.schema.metadata or {}).get(REPLACES, b"[]"), set[str])
        except DocumentError as error:
            raise self.refused(f"is damaged: {error}") from None
        if strange := [name for name in names if Path(name).name != name]:
            raise self.refused(f"is damaged: it replaces {min(strange)[:100]!r}")
        return names

    def read(
        self, columns: Iterable[str] | None = None, among: tuple[str, Sequence[Any]] | None = None
    ) -> pa.Table:
        """As `ParquetReader.read`; every row has what a point must have."""
        found = super().read(columns, among)
        for name in found.column_names:
            if problem := _problem(name, found.column(name)):
                raise self.refused(f"is no table of points: {name} {problem}")
        return found


# What no point is without.
_ALWAYS = ("series", "recorded_at", "time_ns", *NAMES)


def _problem(name: str, column: pa.ChunkedArray) -> str:
    """What keeps a column from being one of points; '' if nothing does."""
    if name not in _ALWAYS:
        return ""
    if column.null_count:
        return "is missing in some rows"
    if name == "series" and len(column) and pc.min(column).as_py() < 0:
        return "is negative"
    if name == "time_ns" and not pc.all(pc.is_finite(column)).as_py() and len(column):
        return "is no number in some rows"
    if name == "recorded_at" and len(column):
        bounds = pc.min_max(column.cast("int64")).as_py()
        if bounds["min"] < 0 or bounds["max"] >= LAST_MICROSECOND:
            return "is no date in some rows"
    return ""


def read_points(
    paths: Iterable[Path], columns: Sequence[str] | None = None, series: Sequence[int] | None = None
) -> pa.Table:
    """Some columns (None: all) of these files' points (of some series alone), by series and time."""
    parts = []
    for path in paths:
        with PointsReader(path) as file:
            parts.append(file.read(columns, None if series is None else ("series", series)))
    return by_series(pa.concat_tables(parts, promote_options="default").unify_dictionaries())


def by_series(rows: pa.Table) -> pa.Table:
    """The rows, sorted by series and time."""
    # A stable sort: of one moment, what was recorded first stays first.
    return rows.sort_by([("series", "ascending"), ("recorded_at", "ascending")])


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a store: which, since when, and its times; its points are read where they are asked for."""

    number: int  # by which its rows are found
    kernel: str
    grid: str
    device: str
    kind: str
    first: datetime
    last: datetime
    times_ns: Numbers = field(compare=False)  # oldest first

    @property
    def key(self) -> tuple[str, str, str, str]:
        """As `Point.series`."""
        return (self.kernel, self.grid, self.device, self.kind)

    @property
    def count(self) -> int:
        """How many points it has."""
        return len(self.times_ns)

    @property
    def last_ns(self) -> float:
        """The newest time."""
        return float(self.times_ns[-1])


def series_in(paths: Sequence[Path]) -> list[Series]:
    """The series of these files, by number."""
    rows = read_points(paths, ["series", "recorded_at", "time_ns", *NAMES])
    numbers, times = rows["series"].to_numpy(), rows["time_ns"].to_numpy()
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))  # no number is negative
    stops = np.append(starts[1:], len(rows))
    last = rows["recorded_at"].take(pa.array(stops - 1)).to_pylist()
    firsts = rows.select(["series", "recorded_at", *NAMES]).take(pa.array(starts)).to_pylist()
    return [
        Series(
            number=row["series"],
            **{name: row[name] for name in NAMES},
            first=row["recorded_at"],
            last=date,
            times_ns=times[start:stop],
        )
        for row, date, start, stop in zip(firsts, last, starts, stops, strict=True)
    ]
