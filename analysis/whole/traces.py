"""What another profiler saw of the program: torch's trace, or nsys' database, beside the report.

Nsight Compute runs one launch at a time, so a report knows neither what the GPU did between two launches nor which
operator a launch is of. A trace of the same program does. Its kernels are tied to the report's launches by their order
and names; what does not fit is left out, and said.

Both are files of somebody else's: they come through `base.foreign_files`, bounded, and their texts are untrusted.
"""

from __future__ import annotations

import difflib
import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import repeat
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from gemmprof.analysis.whole.spans import plain_range
from gemmprof.base.errors import ReportError
from gemmprof.base.foreign_files import LARGEST_DOCUMENT, UnpackError, is_packed, read_bytes, read_packed
from gemmprof.model import KernelProfile

SQLITE = b"SQLite format 3\0"
# Bytes of nsys' SQLite; an hour of training has some hundred MiB.
LARGEST_DATABASE = 1 << 30
# What is unpacked of a compressed database: SQLite has it a second time in memory, and the rows beside it.
LARGEST_UNPACKED_DATABASE = 128 << 20
# Rows that are read of all tables, and objects of a JSON trace (two an event): each costs up to 250 bytes of memory.
MOST_ROWS = 2_000_000
# Bytes that no row is shorter than: a damaged database that leads to one page again and again holds more rows than fit.
ROW_BYTES = 8
# Steps from a launch outwards through the ranges open around it, over all launches; real ones are some ten deep.
MOST_STEPS = 20_000_000
# Million steps of SQLite's machine for one question: a table that is a view may hide work without end.
BUDGET = 200
# Pairs of equal names up to which two orders are aligned where they differ (seconds at worst); beyond that the one must
# hold the other in a row.
MOST_MATCHED = 2_000_000
# Share of the launches that must be found in a trace, below which it is of another program.
LEAST_TIED = 0.5
_OPERATORS = frozenset(("cpu_op", "user_annotation", "python_function"))
_CALLS = frozenset(("cuda_runtime", "cuda_driver", "runtime"))


@dataclass(frozen=True, slots=True)
class Ran:
    """One kernel as a trace has it."""

    name: str  # untrusted text
    # start, end: ns on the trace's clock
    start: float
    end: float
    launched: float  # when the host launched it; its order among the launches of its program
    # the host's ranges and operators around that, outermost first; untrusted texts
    stack: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace beside a report."""

    source: str  # ``torch`` or ``nsys``
    path: str  # of the file, as it was named
    kernels: tuple[Ran, ...] = field(repr=False)  # in the order in which the host launched them
    # of each launch of the report that was found in the trace, by its position: the host's stack
    operators: Mapping[int, tuple[str, ...]] = field(default_factory=dict, repr=False)
    span_ns: float = 0.0  # from the first of those kernels to the end of the last
    busy_ns: float = 0.0  # of that, time in which at least one kernel ran
    # time without any, by the operator that launched what ended it; most first
    gaps: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    host_ns: float = 0.0  # from the launch of the first to that of the last: what the host takes for a step

    @property
    def idle(self) -> float:
        """Share of the time in which the GPU had nothing to do."""
        return max(0.0, 1.0 - self.busy_ns / self.span_ns) if self.span_ns else 0.0

    def operator(self, position: int) -> str:
        """The operator that a launch of the report is of, '' where the trace does not say."""
        return _operator(self.operators.get(position, ()))


def _operator(stack: Sequence[str]) -> str:
    """The innermost of these ranges that is an operator (``aten::mm``), else the innermost."""
    return next((name for name in reversed(stack) if "::" in name), stack[-1] if stack else "")


class _Arguments(msgspec.Struct):
    correlation: int | float | str | None = None


class _Event(msgspec.Struct):
    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: float | str = 0.0
    dur: float | str = 0.0
    tid: int | str = 0
    args: _Arguments | None = None


class _Chrome(msgspec.Struct):
    traceEvents: list[_Event]


def read_trace(path: str | Path, profiles: Sequence[KernelProfile] = ()) -> Trace:
    """A trace, tied to these launches; ReportError if it is none, holds no kernel, or is of another program."""
    try:
        data = _bytes(Path(path))
    except UnpackError as error:
        raise ReportError(f"{path}: {error}", "unpack it, or write the trace again") from None
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror or error}", "check the file's name") from None
    source = "nsys" if data.startswith(SQLITE) else "torch"
    try:
        found = _nsys(data) if source == "nsys" else _torch(data)
        kernels = tuple(sorted(found, key=lambda ran: (ran.launched, ran.start)))
    except (msgspec.MsgspecError, sqlite3.Error, ValueError, TypeError, RecursionError) as error:
        raise ReportError(
            f"{path}: no trace of torch's profiler and no database of nsys",
            "torch: profiler.export_chrome_trace('trace.json.gz')",
            "nsys: nsys export --type sqlite REPORT.nsys-rep",
            found=str(error)[:200],
        ) from None
    if not kernels:
        torch = "torch: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"
        remedy = "nsys: nsys profile --trace cuda,nvtx" if source == "nsys" else torch
        raise ReportError(f"{path}: the trace holds no kernel", remedy)
    return _tied(Trace(source, str(path), kernels), profiles)


def _bytes(path: Path) -> bytes:
    data = read_bytes(path, LARGEST_DATABASE)
    if not is_packed(data[:8]):
        return data
    del data
    data = read_packed(path, LARGEST_DOCUMENT)
    if data.startswith(SQLITE) and len(data) > LARGEST_UNPACKED_DATABASE:
        raise UnpackError("a database this large is not read from a compressed file")
    return data


def _torch(data: bytes) -> Iterator[Ran]:
    """Kernels of a trace in Chrome's format, with the operators open on the thread that launched each."""
    if data.count(b"{") > MOST_ROWS:
        raise ValueError(f"more than {MOST_ROWS:,} objects")
    events = [event for event in msgspec.json.decode(data, type=_Chrome).traceEvents if event.ph == "X"]
    opened: dict[int | str, list[tuple[float, float, str]]] = {}
    calls: dict[str, tuple[float, int | str]] = {}
    for event in events:
        if event.cat in _OPERATORS:
            opened.setdefault(event.tid, []).append((*_times(event), event.name))
        elif event.cat in _CALLS and (number := _correlation(event)):
            calls.setdefault(number, (1000.0 * float(event.ts), event.tid))
    stacks = _Stacks(opened)
    for event in events:
        if event.cat != "kernel":
            continue
        started, ended = _times(event)
        when, thread = calls.get(_correlation(event), (started, ""))
        yield Ran(event.name, started, ended, when, stacks.at(thread, when))


def _times(event: _Event) -> tuple[float, float]:
    """Begin and end in nanoseconds."""
    started = 1000.0 * float(event.ts)
    return started, started + 1000.0 * float(event.dur)


def _correlation(event: _Event) -> str:
    return "" if event.args is None or event.args.correlation is None else str(event.args.correlation)


class _Stacks:
    """Which ranges are open on a thread at a time."""

    def __init__(self, opened: Mapping[Any, list[tuple[float, float, str]]]) -> None:
        self._left = MOST_STEPS
        # Of each thread its ranges as they began, and the range around each one: what is open at a time is the last
        # that began, and those around it.
        self._of: dict[Any, tuple[list[tuple[float, float, str]], list[int]]] = {}
        for thread, ranges in opened.items():
            plain = ((start, end, plain_range(name)) for start, end, name in ranges)
            found = sorted(plain, key=lambda one: (one[0], -one[1]))
            around: list[int] = []
            open_now: list[int] = []
            for at, (_, ended, _) in enumerate(found):
                while open_now and found[open_now[-1]][1] < ended:
                    open_now.pop()
                around.append(open_now[-1] if open_now else -1)
                open_now.append(at)
            self._of[thread] = found, around

    def at(self, thread: Any, when: float) -> tuple[str, ...]:
        """Their names, outermost first."""
        found, around = self._of.get(thread, ([], []))
        at = bisect_right(found, when, key=itemgetter(0)) - 1
        names: list[str] = []
        while at >= 0:
            if found[at][1] >= when:
                names.append(found[at][2])
            at = around[at]
            self._left -= 1
        if self._left < 0:
            raise ValueError("ranges without end within one another")
        return tuple(reversed(names))


def _nsys(data: bytes) -> list[Ran]:
    """Kernels of nsys' database, with the NVTX ranges open on the thread that launched each."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(data)
        # Asked every 100,000 steps, whether to stop.
        left = repeat(0, 10 * BUDGET)
        database.set_progress_handler(lambda: next(left, 1), 100_000)
        database.set_authorizer(_allows)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, len(data))
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        room = [min(MOST_ROWS, len(data) // ROW_BYTES), len(data)]  # rows and text that the file can hold

        def rows(table: str, columns: str) -> Iterator[tuple[Any, ...]]:
            for row in database.execute(f"SELECT {columns} FROM {table}") if table in tables else ():
                room[0] -= 1
                room[1] -= sum(len(value) for value in row if isinstance(value, (str, bytes)))
                if min(room) < 0:
                    raise ValueError("more rows than are read, or than the file can hold")
                yield row

        names = dict(rows("StringIds", "id, value"))
        launched = rows("CUPTI_ACTIVITY_KIND_RUNTIME", "start, correlationId, globalTid")
        calls = {number: (start, thread) for start, number, thread in launched}
        opened: dict[Any, list[tuple[float, float, str]]] = {}
        for start, end, text, text_id, thread in rows("NVTX_EVENTS", "start, end, text, textId, globalTid"):
            if end is not None:
                name = text if text is not None else names.get(text_id, "")
                opened.setdefault(thread, []).append((float(start), float(end), str(name)))
        stacks = _Stacks(opened)
        found = []
        wanted = "start, end, correlationId, demangledName"
        for start, end, number, name in rows("CUPTI_ACTIVITY_KIND_KERNEL", wanted):
            when, thread = calls.get(number, (start, None))
            stack = stacks.at(thread, float(when))
            found.append(Ran(str(names.get(name, name)), float(start), float(end), float(when), stack))
        return found


def _allows(action: int, *_: str | None) -> int:
    """Columns of tables may be read; what a schema would have computed, and every other statement, may not."""
    allowed = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
    return sqlite3.SQLITE_OK if action in allowed else sqlite3.SQLITE_DENY


@lru_cache(maxsize=8192)
def bare(name: str) -> str:
    """A kernel's name as far as every tool writes it alike: without return type, spaces, arguments and parameters."""
    name = name.removeprefix("void ").replace("(anonymous namespace)", "<unnamed>").replace("<unnamed>::", "")
    return name.partition("<")[0].partition("(")[0].strip()


def _tied(trace: Trace, profiles: Sequence[KernelProfile]) -> Trace:
    """The trace with the launches of the report that it shows, and the time between their kernels."""
    if not profiles:
        return trace
    ours = [bare(profile.name) for profile in profiles]
    theirs = [bare(ran.name) for ran in trace.kernels]
    pairs = _aligned(ours, theirs)
    if len(pairs) < LEAST_TIED * len(ours):
        what = f"only {len(pairs)} of the report's {len(ours)} launches are in the trace"
        remedy = "trace the same step of the same program that was profiled"
        found = f"{len(theirs)} kernels, the first {theirs[0][:80]}"
        raise ReportError(f"{trace.path}: {what}", remedy, found=found)
    first, last = min(pairs.values()), max(pairs.values())
    shown = trace.kernels[first : last + 1]
    span, busy, gaps = _gaps(shown)
    return replace(
        trace,
        operators={ours_at: trace.kernels[theirs_at].stack for ours_at, theirs_at in pairs.items()},
        span_ns=span,
        busy_ns=busy,
        gaps=gaps,
        host_ns=max(ran.launched for ran in shown) - min(ran.launched for ran in shown),
    )


def _aligned(ours: Sequence[str], theirs: Sequence[str]) -> dict[int, int]:
    """Which kernel of the trace each launch is, by order and name."""
    # A character a name: Python finds a text within another in linear time, whatever repeats in them.
    letters = {name: chr(at) for at, name in enumerate(dict.fromkeys(ours), 1)}
    start = "".join(letters.get(name, "\0") for name in theirs).find("".join(letters[name] for name in ours))
    if start >= 0:
        return {at: start + at for at in range(len(ours))}
    there = Counter(theirs)
    if sum(count * there[name] for name, count in Counter(ours).items()) > MOST_MATCHED:
        return {}
    matcher = difflib.SequenceMatcher(None, list(ours), list(theirs), autojunk=False)
    blocks = matcher.get_matching_blocks()
    return {block.a + step: block.b + step for block in blocks for step in range(block.size)}


def _gaps(kernels: Sequence[Ran]) -> tuple[float, float, tuple[tuple[str, float], ...]]:
    """The time from the first kernel to the last, that in which one runs, and what is between by what ended it."""
    ordered = sorted(kernels, key=lambda ran: ran.start)
    end = ordered[0].start
    busy = 0.0
    waited: dict[str, float] = {}
    for ran in ordered:
        if ran.start > end:
            name = _operator(ran.stack)
            waited[name] = waited.get(name, 0.0) + ran.start - end
        busy += max(0.0, ran.end - max(end, ran.start))
        end = max(end, ran.end)
    gaps = tuple(sorted(waited.items(), key=lambda one: -one[1]))
    return end - ordered[0].start, busy, gaps
