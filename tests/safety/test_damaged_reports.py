"""A few hundred damaged reports through the commands: refused or read, never a traceback, a crash or a hang.

`tools/fuzz_reports.py` does the same with as many thousands as one likes.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import in_process
import pytest
from mutants import CHANGES, mutants
from recorded_data import ROOT
from reports_in_bytes import blocks, content_of, fields_of, length_prefixed, rewritten, varint
from scale import CAMPAIGN, few, inputs

from gemmprof.analysis.reading.frame import open_frame
from gemmprof.analysis.session import load_session
from gemmprof.base.errors import ReportError
from gemmprof.ncurep import ncu_frame
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.reports.pages.html import render

sys.path.insert(0, str(ROOT / "tools"))
import fuzz_reports

SEED = 20260801
COUNTS = {
    "names_nvtx": inputs(6, 68),
    "partial_basic": inputs(3, 34),
    "modes_graph": inputs(3, 34),
    "launches_same_kernel": inputs(3, 34),
    "modes_range": inputs(2, 17),
}


@pytest.mark.parametrize("name", few(COUNTS, ["modes_graph"]))
def test_damaged_reports_are_read_or_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "GEMMPROF_CACHE", str(tmp_path / "cache"))
    content = content_of(name)
    path, good = tmp_path / "mutant.ncu-rep", tmp_path / "good.ncu-rep"
    good.write_bytes(content)
    victim, codes = fuzz_reports.Victim(), set()
    commands = list(fuzz_reports.COMMANDS)
    try:
        for number, (kind, data) in enumerate(mutants(content, COUNTS[name], SEED)):
            path.write_bytes(data)
            chosen = commands if CAMPAIGN else commands[number % 2 :: 2]
            answer, peak = victim.run(str(path), str(good), str(tmp_path), chosen)
            for command, code, problem, seconds in answer:
                where = f"{name} {number} {kind} {command}"
                assert not problem, f"{where}: {problem}"
                assert code in (0, 1, 2), where
                assert seconds < fuzz_reports.SECONDS, where
                if kind in ("cut", "cut under compression"):
                    assert code == 2, where
                codes.add(code)
            assert peak < fuzz_reports.MEGABYTES
    finally:
        victim.stop()
    assert {0, 2} <= codes
    assert set(CHANGES) >= {"flipped_bit", "cut", "doubled_block"}


def with_block(content: bytes, size: int) -> bytes:
    """The report with this many threads along x in every launch (below 128), as its own field says."""
    return re.sub(
        rb"(\x5a[\x06-\x08]\x08)(?:[\x80-\xff][\x00-\x7f]|[\x00-\x7f])(?=\x10\x01\x18\x01)",
        _same(size),
        content,
    )


def _same(size: int) -> Callable[[re.Match[bytes]], bytes]:
    def written(found: re.Match[bytes]) -> bytes:
        wide = len(found[0]) - len(found[1]) == 2
        return found[1] + (bytes([size | 0x80, 0]) if wide else bytes([size]))

    return written


def test_a_block_without_threads_is_refused(tmp_path: Path) -> None:
    content = content_of("names_nvtx")
    path = tmp_path / "none.ncu-rep"
    path.write_bytes(with_block(content, 0))
    assert path.read_bytes() != content
    with pytest.raises(ReportError, match="damaged") as caught:
        load_session([path])
    assert "a block of 0 × 1 × 1" in caught.value.found


IMPOSSIBLE = (float("nan"), float("inf"), -1.0, 2.0**80)


@pytest.mark.parametrize("value", few(IMPOSSIBLE, IMPOSSIBLE[1:2]))
@pytest.mark.parametrize(
    "metric",
    ["launch__waves_per_multiprocessor", "launch__registers_per_thread", "device__attribute_clock_rate"],
)
def test_impossible_facts_of_launch_and_device_are_left_out(
    metric: str, value: float, tmp_path: Path
) -> None:
    """As if they had not been collected; the metric itself keeps what the report says."""
    content = content_of("launches_same_kernel")
    path = tmp_path / "odd.ncu-rep"
    path.write_bytes(content)
    with open_frame(path) as frame:
        number, item = frame.strings.index(metric), frame.workloads[-1]
        message = content[item.start : item.end]
    inner = b"\x08" + varint(number) + b"\x12\x09\x19" + struct.pack("<d", value)
    kept = b"".join(
        message[start:end]
        for field, _, start, inside, end in fields_of(message)
        if field != 13 or not message[inside:end].startswith(b"\x08" + varint(number) + b"\x12")
    )
    changed = ncu_frame.block_bytes([kept + length_prefixed(13, inner)], kind="kernel", process=item.process)
    path.write_bytes(b"".join([*blocks(content)[:-1], changed]))
    session = load_session([path])
    profile = session.kernels[-1].profile
    assert repr(profile.metrics[metric]) == repr(value)
    facts = (profile.launch.waves_per_sm, profile.launch.registers_per_thread, profile.device.max_clock_hz)
    assert all(fact is None or 0 <= fact < 1e15 for fact in facts)
    assert render(session, tmp_path / "pages").is_file()


def test_a_doubt_stands_on_the_page_and_in_the_explanation(tmp_path: Path) -> None:
    *parts, last = blocks(content_of("partial_basic"))
    path = tmp_path / "moved.ncu-rep"
    path.write_bytes(b"".join([*parts[:-1], last, parts[-1]]))
    session = load_session([path])
    render(session, tmp_path / "pages")
    pages = [page.read_text() for page in (tmp_path / "pages").glob("*.html")]
    assert any("launches of the report were moved or doubled." in page for page in pages)


def with_doubles(message: bytes, value: float, depth: int = 0) -> bytes:
    """The message with every double in it replaced."""
    out = bytearray(message)
    for _, kind, _, start, end in fields_of(message):
        if kind == 1:
            out[start:end] = struct.pack("<d", value)
        elif kind == 2 and depth < 5 and not message[start:end].isascii():  # which a text is
            with contextlib.suppress(IndexError):
                if fields_of(message[start:end])[-1][-1] == end - start:
                    out[start:end] = with_doubles(message[start:end], value, depth + 1)
    return bytes(out)


@pytest.mark.parametrize("value", few((1.7e308, -1.7e308, 2.0**70, float("nan")), [1.7e308]))
def test_values_by_instruction_and_by_time_that_no_counter_holds_are_left_out(
    value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(launch: messages.KernelResult, _names: list[str], _position: int) -> None:
        for at, metric in enumerate(launch.metrics):
            if len(metric) > 60:  # many values
                launch.metrics[at] = with_doubles(metric, value)

    monkeypatch.chdir(tmp_path)
    Path("odd.ncu-rep").write_bytes(rewritten(content_of("flaws_cluster"), change))
    for line in ("show odd.ncu-rep --all", "report odd.ncu-rep", "export odd.ncu-rep --format perfetto -o t"):
        done = in_process.run(["gemmprof", *line.split()])
        assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr
