"""Traces of other profilers and line tables of code, made to cost: read or refused in ten seconds and one GiB."""

from __future__ import annotations

import gzip
import json
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from measured import gemmprof
from recorded_data import DATA
from scale import few

from gemmprof.analysis.reading.line_table import inlined_calls
from gemmprof.analysis.session import load_session
from gemmprof.gpu.cubins import sections_of
from gemmprof.model import LineTable

REPORT = DATA / "train_100.ncu-rep.xz"
SAXPY = "saxpy(int, float, const float *, float *)"
TABLES = {
    "StringIds": "id, value",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, correlationId, globalTid",
    "NVTX_EVENTS": "start, end, text, textId, globalTid",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, correlationId, demangledName",
}


def event(kind: str, name: str, start: object, lasts: object = 1, number: object = 1) -> dict[str, object]:
    told = {"cat": kind, "name": name, "ts": start, "dur": lasts, "args": {"correlation": number}}
    return {"ph": "X", "tid": 1, **told}


def trace(events: list[dict[str, object]]) -> bytes:
    return json.dumps({"traceEvents": events}).encode()


def nested(ranges: int, kernels: int) -> bytes:
    """Kernels that are all launched within every range."""
    around = [event("cpu_op", f"r{at}", at, 3 * ranges - 2 * at) for at in range(ranges)]
    calls = [event("cuda_runtime", "launch", ranges + 1, number=at + 1) for at in range(kernels)]
    ran = [event("kernel", SAXPY, ranges + at, number=at + 1) for at in range(kernels)]
    return trace([*around, *calls, *ran])


def shrinking() -> bytes:
    """Two names in runs that get shorter: blocks that are found one after the other, each by a look at all of them."""
    names = [profile.profile.name for profile in load_session([REPORT]).kernels]
    order = [name for run in range(150, 1, -1) for name in (*(names[:1] * run), "x")]
    return trace([event("kernel", name, at) for at, name in enumerate(order)])


def repeated(item: bytes, times: int) -> bytes:
    return gzip.compress(b'{"traceEvents":[' + item * times + b"{}]}", 1)


JSON: dict[str, Callable[[], bytes]] = {
    "empty events": lambda: repeated(b"{},", 80_000_000),
    "empty kernels": lambda: repeated(b'{"ph":"X","cat":"kernel"},', 9_000_000),
    "a number that is a list": lambda: repeated(
        b'{"ph":"X","args":{"correlation":[' + b"[]," * 1000 + b"[]]}},", 60_000
    ),
    "ranges within one another": lambda: nested(20_000, 5_000),
    "runs that get shorter": shrinking,
    "times that are none": lambda: trace(
        [event("kernel", SAXPY, at, "nan") for at in ("inf", "-inf", 1e308)]
    ),
}


@pytest.mark.parametrize("kind", few(JSON, ["times that are none"]))
def test_a_trace_costs_no_more_than_it_holds(kind: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(JSON[kind]())
    gemmprof("show", REPORT, "--trace", "t.json", cwd=tmp_path)


COMPUTED = "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT GENERATED ALWAYS AS ({}))"


def database(path: Path, text: str = "") -> Path:
    """nsys' tables without a row; with a text, 30,000 strings that are computed from it when they are read."""
    with sqlite3.connect(path) as made:
        for name, columns in TABLES.items():
            computed = text and name == "StringIds"
            made.execute(COMPUTED.format("1") if computed else f"CREATE TABLE {name}({columns})")
        if text:
            made.executemany("INSERT INTO StringIds(id) VALUES(?)", [(at,) for at in range(30_000)])
            made.execute("PRAGMA writable_schema=ON")  # SQLite would compute each when it is inserted, too
            made.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'StringIds'", [COMPUTED.format(text)])
    return path


@pytest.mark.parametrize(
    "text", few(["hex(zeroblob(300000000))", "hex(zeroblob(100000))", "1"], ["hex(zeroblob(100000))"])
)
def test_a_database_that_computes_more_than_it_holds_is_refused(text: str, tmp_path: Path) -> None:
    database(tmp_path / "t.sqlite", text)
    told = gemmprof("show", REPORT, "--trace", "t.sqlite", cwd=tmp_path)
    assert told.returncode == 2
    assert ("no database of nsys" in told.stderr) == (text != "1"), told.stderr


def line_table(program: bytes, folders: bytes = b"", files: bytes = b"a\0\0\0\0") -> tuple[bytes, int]:
    """A table of one unit, and where the address of its one run of rows stands."""
    operands = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1])
    head = operands + folders + b"\0" + files + b"\0"
    unit = struct.pack("<HIBBbBB", 2, len(head) + 5, 16, 1, -5, 14, 10) + head
    return struct.pack("<I", len(unit) + len(program)) + unit + program, 4 + len(unit) + 3


BEGIN, END = b"\0\x09\x02" + bytes(8), b"\0\x01\x01"

LINES: dict[str, Callable[[], tuple[bytes, int]]] = {
    "rows": lambda: line_table(BEGIN + b"\x01" * 30_000_000 + END),
    "endless folder": lambda: line_table(BEGIN + END, b"d" * 9_000_000 + b"\0", b"f\0\x01\0\0" * 1_000_000),
}


@pytest.mark.parametrize("kind", LINES)
def test_a_line_table_costs_no_more_than_a_true_one(kind: str) -> None:
    import resource

    rows, place = LINES[kind]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    found = inlined_calls(LineTable(rows, b"n" * 10_000_000 + b"\0", {place: "k"}), "k")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 10
    assert len(found) <= 1 << 19


def test_names_of_sections_that_lie_within_one_another_are_not_read_for_ever() -> None:
    names = b"x" * 65_000 + b"\0"
    sections = [(0, 0), (0, len(names)), *((at % len(names), 16) for at in range(100_000))]
    head = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        2,
        190,
        1,
        0,
        0,
        64 + len(names),
        0,
        64,
        0,
        0,
        64,
        0,
        0xFFFF,
    )
    table = [struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, 64, size, 0, 0, 1, 0) for name, size in sections]
    table[0] = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, len(sections), 1, 0, 0, 0)
    assert sections_of(b"".join([head, names, *table])) == {}
