"""Ranges, command lists and graphs: a launch's values in the message of another workload, read by both readers."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from recorded_data import DATA

from gemmprof.analysis.kernel_analysis import analyse
from gemmprof.analysis.reading.frame import open_frame
from gemmprof.analysis.reading.report import read_report
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.ncu_frame import MAGIC
from gemmprof.reports.tables.export import export_tables

SEED = DATA / "names_nvtx.ncu-rep.xz"
LAUNCH = 3  # has NVTX ranges and rules

# The field of the block header that counts them, their message, and what they are called.
WORKLOADS = {
    "range": (7, messages.RangeResult, "range"),
    "command list": (8, messages.CommandListResult, "my list"),
    "graph": (9, messages.GraphResult, "graph"),
}
NATIVE = """
import json, sys, ncu_report
action = ncu_report.load_report(sys.argv[1])[0][0]
values = {n: action.metric_by_name(n).value() for n in action.metric_names()}
units = {n: action.metric_by_name(n).unit() or "" for n in action.metric_names()}
kind = {1: "range", 2: "command list", 3: "graph"}[action.workload_type()]
print(json.dumps([kind, action.name(), values, units]))
"""


def encoded(value: int) -> bytes:
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def number(field: int, value: int) -> bytes:
    return encoded(field << 3) + encoded(value)


def content(field: int, data: bytes) -> bytes:
    return encoded(field << 3 | 2) + encoded(len(data)) + data


def framed(message: bytes) -> bytes:
    return struct.pack("<I", len(message)) + message


@pytest.mark.parametrize("workload", WORKLOADS)
def test_other_workloads_are_read_as_the_native_reader_reads_them(workload: str, tmp_path: Path) -> None:
    counter, kind, name = WORKLOADS[workload]
    with open_frame(SEED) as frame:
        item = frame.workloads[LAUNCH]
        found = messages.KernelResult.FromString(frame.read(item.start, item.end))
        fields = {"thread": found.thread, "call": 7, "metrics": found.metrics, "rules": found.rules}
        fields |= {"nvtx": found.nvtx, "context": found.context}
        if workload == "command list":
            fields["display_name"] = name
        message = kind(**fields).SerializeToString()
        table = content(4, b"".join(content(1, text.encode()) for text in frame.strings))
        payload = framed(message)
        header = number(counter, 1) + table + number(5, len(payload)) + content(6, number(1, item.process))
        version = framed(number(1, frame.version))
    path = tmp_path / "workload.ncu-rep"
    path.write_bytes(
        MAGIC + version + framed(header + content(6, content(2, b"h") + content(3, b"p"))) + payload
    )
    (profile,) = read_report(path)
    answer = subprocess.run(
        [sys.executable, "-c", NATIVE, str(path)], capture_output=True, text=True, check=True
    )
    native_kind, native_name, values, units = json.loads(answer.stdout)
    assert (profile.workload, profile.name) == (native_kind, native_name) == (workload, name)
    assert profile.metrics == {n: v for n, v in values.items() if n in profile.metrics}
    assert {n: profile.units[n] for n in profile.metrics} == {n: units[n] for n in profile.metrics}
    launch = read_report(SEED)[LAUNCH]
    assert (profile.metrics, profile.rules, profile.nvtx) == (launch.metrics, launch.rules, launch.nvtx)
    assert profile.rules and profile.nvtx and not profile.source.instructions
    assert analyse(profile).results
    assert export_tables([path], tmp_path / "tables").launches == 1
