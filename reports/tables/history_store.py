"""The store of a history: a folder of Parquet files that are only ever added, read through DuckDB.

    <store>/history.json                    format version
    <store>/records/<time>-<id>.parquet     the points of one `gemmprof history record`
    <store>/records/compact-<id>.parquet    the points of many records, sorted by series

A record is written beside its place and takes its name in one step, so any number of writers need no lock, and one that
is killed leaves either its whole record or a scratch file that a later writer clears away. A compact file names the
records that it replaces, and readers pass over those: whether they are already deleted makes no difference.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gemmprof.analysis.history.points import COUNTERS, Origin, Point
from gemmprof.errors import GemmprofError, UsageError

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

Result = TypeVar("Result")

FORMAT = "gemmprof.history/1"
DEFAULT_STORE = "gemmprof-history"
SCRATCH = ".scratch-"
COMPACT = "compact-"
REPLACES = b"gemmprof.replaces"
COMPACT_AFTER = 48
"""So many records, and the next writer puts them together: a query opens every file."""
ROW_GROUP = 1 << 15
FORGOTTEN_SECONDS = 3600.0
"""A scratch file older than this belongs to no living writer."""


class HistoryError(GemmprofError):
    """A store that is missing, of another format, or damaged."""


@dataclass(frozen=True, slots=True)
class SeriesSummary:
    """One series of a store: which, how many points, since when, and its last time."""

    kernel: str
    grid: str
    device: str
    kind: str
    count: int
    first: datetime
    last: datetime
    last_ns: float


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
        marker = path / "history.json"
        if not marker.is_file():
            if not create:
                raise HistoryError(
                    f"{path} holds no history",
                    remedies=["record a first run: gemmprof history record RUN", "name a store with --store"],
                )
            if path.is_dir() and any(path.iterdir()):
                raise HistoryError(
                    f"{path} holds other files", remedies=["name an empty folder with --store"]
                )
            (path / "records").mkdir(parents=True, exist_ok=True)
            _write_whole(marker, (json.dumps({"format": FORMAT}) + "\n").encode())
        try:
            found = json.loads(marker.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise HistoryError(f"{marker} cannot be read", found=str(error)) from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            shown = found.get("format") if isinstance(found, dict) else found
            raise HistoryError(
                f"{path} is a history of another format",
                found=str(shown)[:200],
                remedies=["use the gemmprof that wrote it"],
            )
        (path / "records").mkdir(exist_ok=True)
        return cls(path)

    def add(self, points: Sequence[Point]) -> Path:
        """Keep these points as one record; it is whole or not there.

        Raises:
            UsageError: if there are none.
        """
        import pyarrow.parquet as pq

        if not points:
            raise UsageError("there is no time to record", remedies=["name a run or report with durations"])
        self._clear_forgotten()
        stamp = max(point.origin.recorded_at for point in points).astimezone(UTC).strftime("%Y%m%dT%H%M%S")
        target = self.folder / "records" / f"{stamp}-{uuid.uuid4().hex[:12]}.parquet"
        scratch = target.with_name(f"{SCRATCH}{target.name}")
        try:
            with scratch.open("wb") as file:
                pq.write_table(_table(points), file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(target)
        except OSError as error:
            scratch.unlink(missing_ok=True)
            raise HistoryError(
                f"the record could not be written to {self.folder}",
                found=str(error),
                remedies=["free some space or name another store with --store; nothing was changed"],
            ) from None
        self.compact(at_least=COMPACT_AFTER)
        return target

    def compact(self, *, at_least: int = 2) -> bool:
        """Put records together into one file sorted by series, if there are so many; False if another process does.

        Killed at any moment it loses nothing and doubles nothing.
        """
        import pyarrow.parquet as pq

        with (self.folder / "compact.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            replaced, live = self._files()
            for name in replaced:
                (self.folder / "records" / name).unlink(missing_ok=True)
            small = [path for path in live if not path.name.startswith(COMPACT)]
            if len(small) < at_least:
                return True
            # Compact files grow by merging only with ones of their own size, so a point is rewritten few times.
            size = sum(path.stat().st_size for path in small)
            merged = [*small]
            for path in sorted(live, key=lambda path: path.stat().st_size):
                if path.name.startswith(COMPACT) and path.stat().st_size < 4 * size:
                    merged.append(path)
                    size += path.stat().st_size
            table = self._query(
                "SELECT * FROM points ORDER BY series, recorded_at",
                lambda rows: rows.to_arrow_table(),
                files=merged,
            )
            names = json.dumps([path.name for path in merged]).encode()
            table = table.replace_schema_metadata({REPLACES: names})
            target = self.folder / "records" / f"{COMPACT}{uuid.uuid4().hex[:12]}.parquet"
            scratch = target.with_name(f"{SCRATCH}{target.name}")
            with scratch.open("wb") as file:
                pq.write_table(table, file, compression="zstd", row_group_size=ROW_GROUP)
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(target)
            for path in merged:
                path.unlink(missing_ok=True)
        return True

    def _files(self) -> tuple[set[str], list[Path]]:
        """Names that compact files replace, and the files that count."""
        import pyarrow.parquet as pq

        present = sorted((self.folder / "records").glob("[!.]*.parquet"))
        replaced: set[str] = set()
        for path in present:
            if path.name.startswith(COMPACT):
                replaced |= set(json.loads((pq.read_schema(path).metadata or {}).get(REPLACES, b"[]")))
        return replaced, [path for path in present if path.name not in replaced]

    def series(self, pattern: str | None = None) -> list[SeriesSummary]:
        """The series whose kernel matches a regular expression (all without one), longest last time first."""
        rows = self._query(
            "SELECT kernel, grid, device, kind, count(*), min(recorded_at)::TIMESTAMP, max(recorded_at)::TIMESTAMP, "
            "arg_max(time_ns, recorded_at) AS last_ns FROM points "
            "WHERE $pattern IS NULL OR regexp_matches(kernel, $pattern, 'i') "
            "GROUP BY ALL ORDER BY last_ns DESC, kernel, grid, device, kind",
            lambda rows: rows.fetchall(),
            pattern=pattern,
        )
        return [SeriesSummary(*row) for row in rows]

    def points(
        self, pattern: str | None = None, *, device: str | None = None, kind: str | None = None
    ) -> dict[tuple[str, str, str, str], list[Point]]:
        """The points of matching series, each in order of time.

        Raises:
            UsageError: if the pattern is no regular expression.
        """
        # One name a series first: an expression over millions of rows would take seconds.
        names = self._query(
            "WITH known AS (SELECT series, any_value(kernel) AS kernel, any_value(device) AS device, "
            "any_value(kind) AS kind FROM points GROUP BY series) "
            "SELECT series FROM known WHERE ($pattern IS NULL OR regexp_matches(kernel, $pattern, 'i')) "
            "AND ($device IS NULL OR device = $device) AND ($kind IS NULL OR kind = $kind)",
            lambda rows: rows.fetchall(),
            pattern=pattern,
            device=device,
            kind=kind,
        )
        return self.points_of([number for (number,) in names])

    def unsettled(self) -> list[int]:
        """Numbers of the series that may hold a step: a quick look at all, so that only those are read whole."""
        import numpy as np

        from gemmprof.analysis.history.changepoints import (
            MINIMUM_AFTER,
            MINIMUM_BEFORE,
            quiet_series,
        )

        columns = self._query(
            "SELECT series, epoch_us(recorded_at) AS recorded, time_ns FROM points WHERE time_ns > 0",
            lambda rows: rows.fetchnumpy(),
        )
        series, values = columns["series"], columns["time_ns"]
        if not _is_sorted(series, columns["recorded"]):
            order = np.lexsort((columns["recorded"], series))
            series, values = series[order], values[order]
        starts = np.flatnonzero(np.r_[True, series[1:] != series[:-1]])
        lengths = np.diff(np.r_[starts, len(series)])
        loud: list[int] = []
        for length in np.unique(lengths[lengths >= MINIMUM_BEFORE + MINIMUM_AFTER]):
            rows = starts[lengths == length]
            quiet = quiet_series(values[rows[:, None] + np.arange(length)])
            loud += series[rows[~quiet]].tolist()
        return loud

    def points_of(self, numbers: Sequence[int]) -> dict[tuple[str, str, str, str], list[Point]]:
        """The points of exactly these series (`unsettled`)."""
        if not numbers:
            return {}
        # Plain numbers in the text, so that DuckDB passes over row groups that hold none of them.
        listed = ", ".join(str(int(number)) for number in numbers)
        return _by_series(
            self._query(
                f"SELECT * FROM points WHERE series IN ({listed}) ORDER BY series, recorded_at",
                lambda rows: rows.to_arrow_table(),
            )
        )

    def _query(
        self,
        sql: str,
        read: Callable[[duckdb.DuckDBPyRelation], Result],
        *,
        files: Sequence[Path] | None = None,
        **values: Any,
    ) -> Result:
        """Ask the points of these files (all that count, by default); a compaction meanwhile is waited out.

        Args:
            sql: over the table ``points``, with ``$name`` for each of the values.
            read: takes the rows out; the query runs while it does.
            files: the files to ask.
            values: by name.
        """
        import duckdb

        for attempt in range(3):
            chosen = [str(path) for path in (self._files()[1] if files is None else files)]
            if not chosen:
                raise HistoryError(
                    f"{self.folder} holds no record yet", remedies=["gemmprof history record RUN"]
                )
            try:
                return self._answer(chosen, sql, read, values)
            except duckdb.IOException as error:
                if attempt == 2 or all(Path(path).exists() for path in chosen):
                    raise HistoryError(f"{self.folder} cannot be read", found=str(error)[:500]) from None
        raise AssertionError("the loop returns or raises")

    def _answer(
        self,
        files: list[str],
        sql: str,
        read: Callable[[duckdb.DuckDBPyRelation], Result],
        values: dict[str, Any],
    ) -> Result:
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET enable_progress_bar = false; SET TimeZone = 'UTC'")
        try:
            source = connection.read_parquet(files, union_by_name=True)
            connection.register("points", source)
            return read(connection.sql(sql, params=values or None))
        except duckdb.IOException:
            raise
        except duckdb.InvalidInputException as error:
            if "regex" in str(error).lower():
                raise UsageError(
                    "the kernel is no regular expression", found=str(error).splitlines()[0]
                ) from None
            raise HistoryError(f"a record of {self.folder} is damaged", found=str(error)[:500]) from None
        except duckdb.Error as error:
            raise HistoryError(f"a record of {self.folder} is damaged", found=str(error)[:500]) from None

    def _clear_forgotten(self) -> None:
        for path in (self.folder / "records").glob(f"{SCRATCH}*"):
            try:
                if time.time() - path.stat().st_mtime > FORGOTTEN_SECONDS:
                    path.unlink()
            except FileNotFoundError:
                continue


def _write_whole(target: Path, content: bytes) -> None:
    scratch = target.with_name(f"{SCRATCH}{uuid.uuid4().hex}")
    scratch.write_bytes(content)
    scratch.replace(target)


_ORIGIN = ("recorded_at", "commit", "branch", "machine", "note")
_PLAIN = (
    "kernel",
    "grid",
    "device",
    "kind",
    "time_ns",
    "low_ns",
    "high_ns",
    "repetitions",
    "cycles",
    "sm_clock_hz",
    "memory_clock_hz",
    "tools",
    "code",
)


def _by_series(rows: pa.Table) -> dict[tuple[str, str, str, str], list[Point]]:
    found: dict[tuple[str, str, str, str], list[Point]] = {}
    for row in rows.to_pylist():
        point = _point(row)
        found.setdefault(point.series, []).append(point)
    return found


def _series_number(point: Point) -> int:
    """A number for a series that every writer finds alike."""
    digest = hashlib.blake2b("\0".join(point.series).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _is_sorted(series: npt.NDArray[np.int64], recorded: npt.NDArray[np.int64]) -> bool:
    """Whether rows stand by series and time already, as they do in a compact file."""
    import numpy as np

    same = series[1:] == series[:-1]
    return bool(np.all((series[1:] > series[:-1]) | (same & (recorded[1:] >= recorded[:-1]))))


def _table(points: Sequence[Point]) -> pa.Table:
    import pyarrow as pa

    texts = {"kernel", "grid", "device", "kind", "tools", "code", "commit", "branch", "machine", "note"}

    def column(name: str, values: list[Any]) -> pa.Array:
        if name == "recorded_at":
            return pa.array(values, pa.timestamp("us", tz="UTC"))
        kind = pa.string() if name in texts else pa.int64() if name == "repetitions" else pa.float64()
        return pa.array(values, kind)

    points = sorted(points, key=_series_number)
    columns: dict[str, Any] = {"series": pa.array([_series_number(p) for p in points], pa.int64())}
    columns |= {name: column(name, [getattr(p.origin, name) for p in points]) for name in _ORIGIN}
    columns |= {name: column(name, [getattr(p, name) for p in points]) for name in _PLAIN}
    columns |= {f"counter_{name}": column(name, [p.counters.get(name) for p in points]) for name in COUNTERS}
    return pa.table(columns)


def _point(row: dict[str, Any]) -> Point:
    origin = Origin(**{name: row[name] for name in _ORIGIN})
    counters = {
        key.removeprefix("counter_"): value
        for key, value in row.items()
        if key.startswith("counter_") and value is not None
    }
    return Point(**{name: row[name] for name in _PLAIN}, origin=origin, counters=counters)
