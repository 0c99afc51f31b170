"""What gemmprof works out from a report's code, against ``nvdisasm``: live registers, and calls that were inlined."""

from __future__ import annotations

import re
import shutil
import subprocess
from bisect import bisect_right
from pathlib import Path

import pytest
from recorded_data import DATA, ReadRecorded
from scale import few

from gemmprof.analysis.explanation.code.flow import program
from gemmprof.analysis.explanation.code.live import live_registers
from gemmprof.analysis.reading.frame import open_frame, source_index
from gemmprof.analysis.reading.line_table import inlined_calls, line_table_of, ptx_lines
from gemmprof.gpu.devices import cuobjdump_path
from gemmprof.ncurep import ncu_messages_pb2 as messages

REPRESENTATIVES = ("flaws_tensor", "flaws_cluster", "flaws_spills", "flaws_precision", "ladder_simple")
OFFSET = re.compile(r"\s+/\*([0-9a-f]{4,})\*/.*?// \|\s*(\d*)")
PTX = re.compile(r'\s*//## File ".nv_debug_ptx_txt", line (\d+)')
ADDRESS = re.compile(r"\s+/\*([0-9a-f]{4,})\*/")
FILE = re.compile(r'\s*//## File "(.*?)", line (\d+)(?: inlined at "(.*?)", line (\d+))?')


@pytest.fixture(params=few(REPRESENTATIVES, ["flaws_cluster", "flaws_spills"]))
def cubins(request: pytest.FixtureRequest) -> list[bytes]:
    with open_frame(DATA / f"{request.param}.ncu-rep.xz") as frame:
        return [
            found.cubin
            for items in source_index(frame).values()
            for item in items
            if (found := messages.SourceData.FromString(frame.read(item.start, item.end))).cubin
        ]


def disassembled(cubin: bytes, folder: Path, *options: str) -> dict[str, list[str]]:
    """Lines of ``nvdisasm`` by function."""
    cuobjdump = cuobjdump_path()
    tool = shutil.which("nvdisasm") or (cuobjdump and shutil.which("nvdisasm", path=str(cuobjdump.parent)))
    if not tool:
        pytest.skip("nvdisasm is not installed (pip install '.[test]')")
    file = folder / "code.cubin"
    file.write_bytes(cubin)
    options = options or ("--print-life-ranges", "--print-line-info-inline")
    command = [tool, *options, "--print-code", file]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    functions: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if named := re.match(r"\.text\.(\S+):", line):
            lines = functions.setdefault(named[1], [])
        lines.append(line)
    return functions


def test_live_registers_are_those_of_the_disassembler(
    recorded: ReadRecorded, request: pytest.FixtureRequest, cubins: list[bytes], tmp_path: Path
) -> None:
    name = request.node.callspec.params["cubins"]
    told = {function: lines for cubin in cubins for function, lines in disassembled(cubin, tmp_path).items()}
    for profile in recorded(name, source=True):
        lines = told[profile.mangled_name]
        known = {
            int(at, 16): int(live or 0) for at, live in (m.groups() for m in map(OFFSET.match, lines) if m)
        }
        code = profile.source.instructions
        live = live_registers(program(code))
        found = {
            item.address - profile.source.function_address: count
            for item, count in zip(code, live, strict=True)
        }
        assert {at: found[at] for at in known} == known, profile.function_name


def test_inlined_calls_are_those_of_the_disassembler(cubins: list[bytes], tmp_path: Path) -> None:
    for cubin in cubins:
        table = line_table_of(cubin)
        for function, lines in disassembled(cubin, tmp_path).items():
            calls = inlined_calls(table, function)
            chain: list[tuple[str, int]] = []
            fresh = False
            for line in lines:
                if place := FILE.match(line):
                    chain = chain if fresh else []
                    chain += [(place[3], int(place[4]))] if place[3] else []
                    fresh = True
                # It names a place only where the innermost line changes, the way there or not.
                elif (at := OFFSET.match(line)) and fresh:
                    assert [(call.file, call.line) for call in calls.get(int(at[1], 16), ())] == chain, (
                        function,
                        at[1],
                    )
                    fresh = False


def test_a_damaged_line_table_is_no_line_table(cubins: list[bytes]) -> None:
    for cubin in cubins:
        table = line_table_of(cubin)
        assert table is not None
        for cut in (0, 9, 60, len(table.rows) // 2, len(table.rows) - 3):
            shorter = type(table)(table.rows[:cut], table.names[: cut // 2], table.functions)
            for function in {*table.functions.values()}:
                assert isinstance(inlined_calls(shorter, function), dict)


def test_lines_of_the_ptx_are_those_of_the_disassembler(cubins: list[bytes], tmp_path: Path) -> None:
    for cubin in cubins:
        told = disassembled(cubin, tmp_path, "--print-line-info-ptx")
        table = line_table_of(cubin)
        assert table is not None and b".version" in table.ptx
        for function, lines in told.items():
            expected: dict[int, int] = {}
            line = 0
            for row in lines:
                if found := PTX.match(row):
                    line = int(found[1])
                elif (at := OFFSET.match(row) or ADDRESS.match(row)) and line:
                    expected.setdefault(int(at[1], 16), line)
            ours = ptx_lines(table, function)
            rows = sorted(ours)
            assert expected and rows
            assert {at: ours[rows[bisect_right(rows, at) - 1]] for at in expected} == expected, function
