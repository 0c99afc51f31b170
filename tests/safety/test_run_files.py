"""A run that was changed, by damage or by hand: refused by name, never a traceback, never led elsewhere."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import lzma
import os
import random
import shutil
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import in_process
import pytest
from reports_in_bytes import blocks
from scale import few, inputs

from gemmprof.analysis.reading.frame import trusting
from gemmprof.analysis.session import load_session, selected_reports
from gemmprof.base.errors import ReportError, RunError, UsageError
from gemmprof.cli import main
from gemmprof.model import Problem
from gemmprof.runs.directory import (
    RUN_FILE,
    load_recorded_run,
    load_run,
    recorded_run_directory,
    save_run,
)

COMMANDS = (["roofline"], ["explain"], ["diff"], ["occupancy"], ["report", "--force"])
STRANGE: tuple[Any, ...] = (
    None, -1, 0, 1, True, "x", "", "\0", "a" * 5000, "../../etc/passwd", [], {}, [[[[]]]], {"a": {"b": {"c": 1}}},
    float("inf"), float("nan"), 1e308, 5e-324, -5.5, 10**30, 2**63, 10**400,
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of the recorded run."""
    return Path(shutil.copytree(recorded_run_directory(), tmp_path / "run"))


@pytest.fixture
def small_run(run: Path) -> Path:
    """The recorded run as if its first report were its only one."""
    name = next(iter(load_recorded_run().reports))
    document = json.loads((run / RUN_FILE).read_text())
    document["results"] = [one for one in document["results"] if one["report"] == name]
    document["reports"] = {name: document["reports"][name]}
    (run / RUN_FILE).write_text(json.dumps(document))
    return run


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = (
        value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    )
    for key, item in inside:
        yield (*place, key)
        yield from places(item, (*place, key))


def mutated(base: dict[str, Any], number: int) -> tuple[str, dict[str, Any]]:
    """The document with one place removed or holding something strange, and which place."""
    dice = random.Random(number)
    document = copy.deepcopy(base)
    *way, last = dice.choice(list(places(base)))
    part = document
    for key in way:
        part = part[key]
    if dice.random() < 0.1:
        del part[last]
    else:
        part[last] = dice.choice(STRANGE)
    return f"{way} {last}", document


def test_a_changed_run_file_is_read_or_refused(run: Path) -> None:
    base = json.loads((run / RUN_FILE).read_text())
    outcomes = {"read": 0, "refused": 0}
    for number in range(inputs(36, 600)):
        place, document = mutated(base, number)
        (run / RUN_FILE).write_text(json.dumps(document))
        try:
            found = load_run(run)
        except RunError as error:
            assert "run.json" in str(error), place
            outcomes["refused"] += 1
        else:
            assert found.ladders and all(result.problem in found.problems for result in found.results), place
            outcomes["read"] += 1
    assert min(outcomes.values()) > inputs(2, 50), outcomes


def test_commands_on_a_changed_run_file(run: Path) -> None:
    """What is read does not end in a traceback; without its reports, so that it takes little time."""
    shutil.rmtree(run / "reports")
    base = json.loads((run / RUN_FILE).read_text())
    codes = set()
    for number in range(inputs(10, 60)):
        place, document = mutated(base, 1000 + number)
        (run / RUN_FILE).write_text(json.dumps(document))
        command = COMMANDS[number % len(COMMANDS)]
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                codes.add(
                    main([*command, str(run), *(["-o", str(run / "pages")] if "report" in command else [])])
                )
        except Exception:
            pytest.fail(f"{command} after {place}: {traceback.format_exc()}")
    assert 2 in codes and codes <= {0, 1, 2}


def nested(depth: int) -> str:
    return '{"format_version": 2, "info": ' + "[" * depth + "]" * depth + "}"


FILES: dict[str, str] = {
    "nested": nested(100_000),
    "nested a little": nested(500),
    "digits": '{"format_version": ' + "9" * 5000 + "}",
    "digits in a field": '{"format_version": 2, "info": ' + "9" * 5000 + "}",
    "NUL": '{"format_version": 2}\0',
    "no UTF-8": "\udcff",
}


@pytest.mark.parametrize("kind", FILES)
def test_strange_run_files_are_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / RUN_FILE).write_text(FILES[kind], errors="surrogateescape")
    with pytest.raises(RunError, match=r"run\.json"):
        load_run(tmp_path)


def test_a_pipe_and_a_huge_file_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / RUN_FILE)
    with pytest.raises(RunError, match="no regular file"):
        load_run(tmp_path)
    (tmp_path / RUN_FILE).unlink()
    with (tmp_path / RUN_FILE).open("wb") as file:
        file.truncate(100 << 20)
    with pytest.raises(RunError, match="has 100 MiB"):
        load_run(tmp_path)


@pytest.mark.parametrize("suffix", few(["", ".xz", ".zst"], [".xz"]))
def test_a_link_out_of_the_run_is_not_followed(suffix: str, run: Path, tmp_path: Path) -> None:
    (name, *_) = load_recorded_run().reports
    for file in (run / "reports").glob(f"{Path(name).name}*"):
        outside = tmp_path / "outside"
        outside.write_bytes(lzma.decompress(file.read_bytes()))
        file.unlink()
    (run / f"{name}{suffix}").symlink_to(outside)
    reports, failures = selected_reports([run])
    assert ["outside its folder" in failure.message for failure in failures] == [True]
    assert not [report for report in reports if report.name.startswith(Path(name).name)]


def unpacked(run: Path) -> Path:
    """The first report of the run, uncompressed in its place."""
    (name, *_) = load_recorded_run().reports
    packed = run / f"{name}.xz"
    (run / name).write_bytes(lzma.decompress(packed.read_bytes()))
    packed.unlink()
    return run / name


def lost(content: bytes) -> bytes:
    return b"".join(blocks(content)[:-1])


def gained(content: bytes) -> bytes:
    parts = blocks(content)
    return b"".join([*parts, parts[-1]])


def changed(content: bytes) -> bytes:
    at = content.rindex(b"\x12\x09\x19") + 5
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


CHANGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "lost": (lost, "it lost launches: 14 were collected, it holds 13"),
    "gained": (gained, "it gained launches: 14 were collected, it holds 15"),
    "changed": (changed, "its content is not what was collected"),
}


@pytest.mark.parametrize("kind", few(CHANGES, ["gained"]))
def test_a_report_that_is_not_the_collected_one_is_refused_unless_trusted(kind: str, small_run: Path) -> None:
    run = small_run
    change, says = CHANGES[kind]
    report = unpacked(run)
    assert not load_session([run]).failures  # uncompressed it is the same report
    report.write_bytes(change(report.read_bytes()))
    session = load_session([run])
    assert [says in failure.found for failure in session.failures] == [True]
    assert "--trust" in str(session.failures[0])
    with trusting(True):
        session = load_session([run])
    assert not session.failures
    doubted = [kernel for kernel in session.kernels if says in " ".join(kernel.profile.doubts)]
    assert load_session([run]).failures  # trust ends with its context
    assert len(doubted) == 14 + {"lost": -1, "gained": 1, "changed": 0}[kind]


def test_trust_is_an_option_of_the_commands(small_run: Path) -> None:
    run = small_run
    report = unpacked(run)
    report.write_bytes(lost(report.read_bytes()))
    for options, code in (((), 2), (("--trust",), 0)):
        answer = in_process.run(["gemmprof", "roofline", str(run), *options])
        assert answer.returncode == code, answer.stderr
        assert ("doubtful" in answer.stderr) == bool(options)
        assert "it lost launches" in answer.stderr


def test_the_recorded_run_is_what_was_collected(run: Path) -> None:
    recorded = load_recorded_run()
    assert set(recorded.reports) == {result.report for result in recorded.results} - {None}
    session = load_session([run])
    assert not session.failures and all(kernel.profile.doubts == () for kernel in session.kernels)
    save_run(load_run(run))
    assert load_run(run).reports == recorded.reports


@pytest.mark.parametrize("text", ["9" * 5000, "1x2x" + "3" * 5000, "-5", "4096x", "٣"])
def test_strange_shapes_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a matrix shape"):
        Problem.parse(text)


def test_a_report_that_is_a_pipe_is_refused(run: Path) -> None:
    report = unpacked(run)
    report.unlink()
    os.mkfifo(report)
    _, failures = selected_reports([run])
    assert [
        isinstance(failure, ReportError) and "no regular file" in failure.message for failure in failures
    ] == [True]
