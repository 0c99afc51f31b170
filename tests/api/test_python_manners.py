"""What somebody meets who tries things in a REPL: short words for results, and errors that say what is expected."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from page_sessions import HOSTILE
from recorded_data import DATA, ROOT

import gemmprof

EXAMPLES = ROOT / "docs" / "examples" / "recorded"


@pytest.fixture(scope="module")
def report() -> gemmprof.Report:
    return gemmprof.open(EXAMPLES / "gelu.ncu-rep.xz")


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (lambda r: r, "<Report gelu.ncu-rep.xz · 1 launch of 1 kernel in 1 family · NVIDIA H200>"),
        (lambda r: r[0], "<KernelAnalysis gelu: launch 0, 270 µs>"),
        (
            lambda r: r.families[0],
            "<Family #1 gelu: 1 launch, 270 µs, 100 % of the time, double_precision saves ",
        ),
        (
            lambda r: r.findings[0],
            "<ReportFinding double_precision in gelu: saves ",
        ),
        (lambda r: r.diff(EXAMPLES / "gelu_fixed.ncu-rep.xz")[0], "<Compared gelu: faster, time −20.9 %>"),
        (lambda r: r.compare(EXAMPLES / "gelu_fixed.ncu-rep.xz"), ": 1 faster>"),
        (lambda r: r.explain(0), "launch 0, 270 µs, double_precision saves "),
        (lambda r: r[0].profile, "launch 0 of "),
        (lambda r: gemmprof.load_recorded_run(), "NVIDIA H200"),
    ],
)
def test_a_result_is_one_line(report: gemmprof.Report, what: Callable[[Any], Any], told: str) -> None:
    shown = repr(what(report))
    assert told in shown
    assert len(shown) < 250 and "\n" not in shown
    listed = repr((what(report),))
    assert len(listed) < 260, "also in a tuple, as launches, families and findings are"


def test_names_do_nothing_to_a_terminal_in_a_repl(report: gemmprof.Report) -> None:
    from dataclasses import replace

    hostile = replace(report.families[0], label=f"\x1b[2J{HOSTILE}\n", nvtx=("\u202e",))
    assert not set(repr(hostile)) & {"\x1b", "\n", "\u202e"}


@pytest.mark.parametrize(
    ("words", "indices"),
    [
        ({"launch": 0}, [0]),
        ({"launch": "0"}, [0]),
        ({"launch": [0, 2]}, [0, 2]),
        ({"launch": range(1, 3)}, [1, 2]),
        ({"launch": ["0", 1]}, [0, 1]),
        ({"launch": None}, [0, 1, 2]),
    ],
)
def test_positions_may_be_numbers(words: dict[str, Any], indices: list[int]) -> None:
    found = gemmprof.open(DATA / "partial_basic.ncu-rep.xz", **words)
    assert [launch.profile.index for launch in found] == indices


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda r: gemmprof.open(""), "an empty name"),
        (lambda r: gemmprof.open(["a", ""]), "an empty name"),
        (lambda r: gemmprof.open(3), "a path is expected, not int"),
        (lambda r: r.select(kernel=3), "--kernel is a regular expression, not 3"),
        (lambda r: r.select(top="3"), "top is a number of kernels, not '3'"),
        (lambda r: r.select(launch=[]), "names no launch"),
        (lambda r: r.select(launch=1.5), "1.5 names no launch"),
        (lambda r: r.select(launch=-1), "is no position"),
        (lambda r: r.compare(None), "a path is expected, not NoneType"),
        (lambda r: r.diff(3), "a path is expected, not int"),
        (lambda r: r["gelu"], "report.select('gelu')"),
    ],
)
def test_a_wrong_type_is_told_what_is_expected(
    report: gemmprof.Report, wrong: Callable[[Any], Any], said: str
) -> None:
    with pytest.raises(gemmprof.GemmprofError) as raised:
        wrong(report)
    assert said in str(raised.value)


def test_one_metric_is_one_column(report: gemmprof.Report) -> None:
    frame = report.to_dataframe("dram__bytes_read.sum")
    assert frame.columns[-1] == "dram__bytes_read.sum" and frame.iloc[0, -1] > 1e8


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_reports_travel_to_other_processes(report: gemmprof.Report, again: Callable[[Any], Any]) -> None:
    same = again(report)
    assert same.families == report.families and repr(same[0]) == repr(report[0])
    assert same.explain(0) == report.explain(0)


USER = """
from pathlib import Path

import gemmprof
from gemmprof import GemmprofError, Report

report: Report = gemmprof.open("my.ncu-rep", launch=0)
grids: list[tuple[int, int, int]] = [launch.profile.launch.grid for launch in report.launches]
saved: list[float] = [found.finding.saves for found in report.findings]
total: float = report.to_dataframe("dram__bytes.sum")["duration_ns"].sum()
slower: list[float | None] = [pair.slower_percent for pair in report.diff("after.ncu-rep")]
page: Path = report.write_html("pages/")
try:
    verdict: str = gemmprof.analyse(gemmprof.read_report("my.ncu-rep")[0]).verdict.paragraph
except GemmprofError as error:
    print(error.message, error.remedies)


@gemmprof.profile
def step(x: int) -> int:
    return x


result: int = step(3)
with gemmprof.profile(kernel="softmax") as region:
    step(1)
text: str = region.report.to_markdown()
wrong: int = region.report.to_markdown()  # the only error
"""


@pytest.mark.campaign
def test_a_users_script_passes_strict_mypy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    import subprocess
    import sys

    script = tmp_path / "user.py"
    script.write_text(USER)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "user.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
        env={"PATH": "/usr/bin:/bin", "MYPYPATH": str(ROOT), "HOME": str(tmp_path)},
    )  # fmt: skip
    found = [line for line in done.stdout.splitlines() if line.startswith("user.py:")]
    (expected,) = found or [done.stdout + done.stderr]
    assert 'expression has type "str", variable has type "int"' in expected, (
        "nothing else, and types are seen"
    )
