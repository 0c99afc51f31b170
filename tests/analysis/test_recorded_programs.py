"""Programs that were recorded with their traces: what is said of them first, as docs/programs.md has it."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from recorded_data import DATA, ROOT

from gemmprof.analysis.session import Session, load_session
from gemmprof.analysis.whole.overall import came
from gemmprof.analysis.whole.traces import read_trace
from gemmprof.base.errors import ReportError
from gemmprof.cli import main

PROGRAMS = DATA / "programs"
FIRST = {
    "train": ["graph", "precision", "optimizer", "compile"],
    "decode": ["graph", "compile"],
    "diffusion": ["graph", "precision", "compile", "attention"],
    "triton_set": ["product", "elementwise"],
    "templates": ["product", "batch"],
    "mixed": ["global_atomics", "uncoalesced_access", "launch_overhead"],
}
"""What matters most in each, by those who wrote them (docs/programs.md)."""


def program(name: str) -> Session:
    session = load_session([PROGRAMS / f"{name}.ncu-rep.xz"], listed=True)
    path = PROGRAMS / f"{name}.json.gz"
    if not path.exists():
        return session
    return replace(session, trace=read_trace(path, [kernel.profile for kernel in session.kernels]))


@pytest.mark.parametrize("name", FIRST)
def test_what_matters_most_is_said_first(name: str) -> None:
    said = [one.cause for one in program(name).program.advice.proposals]
    assert set(said[: len(FIRST[name])]) == set(FIRST[name])


def test_a_trace_of_torch_ties_every_launch_to_its_operator() -> None:
    session = program("diffusion")
    trace = session.trace
    assert trace is not None and len(trace.operators) == len(session.kernels) == 96
    names = {at: trace.operator(at) for at in trace.operators}
    for at, kernel in enumerate(session.kernels):
        if "softmax" in kernel.profile.name:
            assert names[at] == "aten::_softmax"
        if "fprop" in kernel.profile.name:
            assert names[at] == "aten::cudnn_convolution"
    assert trace.idle > 0.5, "the host launches, the GPU waits"


def test_launching_is_told_of_the_program_and_a_graph_of_its_gaps_alone() -> None:
    """A graph removes gaps between kernels, which no report times."""
    session = program("mixed")
    assert "launch_overhead" in {one.cause for one in session.program.advice.proposals}
    explained = [
        found.explanation(family.representative) for found in map(program, FIRST) for family in found.families
    ]
    said = [text for one in explained for text in (*one.levers, *(each.change for each in one.findings))]
    assert said and not [text for text in said if "graph" in text.lower()]


def test_a_loop_that_keeps_the_gpu_busy_needs_no_graph() -> None:
    trace = program("triton_set").trace
    assert trace is not None and trace.idle > 0.1, "one traced step shows gaps"
    assert "graph" not in {one.cause for one in program("triton_set").program.advice.proposals}


def test_what_behind_the_last_instruction_still_adds_is_no_launching() -> None:
    """A histogram whose last atomics L2 works off when no SM works any more: in shared memory first, 39 % came."""
    said = next(one for one in program("mixed").program.advice.proposals if one.cause == "global_atomics")
    assert said.low < 0.387 < said.high
    assert said.span.launching is not None and said.span.launching > 0.15


@pytest.mark.parametrize(
    ("name", "gone"), [("train", {"optimizer", "precision", "attention"}), ("decode", {"compile"})]
)
def test_advice_that_was_followed_is_held_against_what_came(name: str, gone: set[str]) -> None:
    before, after = program(name), program(f"{name}_all")
    found = came(before.program, after.program)
    assert found is not None and found.predicted is not None
    said = {one.cause: left for one, left in found.proposals}
    assert "graph" not in said, "gaps are in no report"
    assert not any(said[cause] for cause in gone)
    _, low, high = found.predicted
    assert found.measured == pytest.approx(1 - after.program.whole.time_ns / before.program.whole.time_ns)
    assert (low <= round(found.measured, 2) <= high) == (found.words == "as predicted")
    unchanged = came(before.program, before.program)
    assert (
        unchanged is not None
        and unchanged.predicted is None
        and unchanged.words == ""
        and unchanged.measured == 0
    )


def test_a_trace_of_another_program_is_refused() -> None:
    session = program("mixed")
    with pytest.raises(ReportError, match="of the report's 22 launches"):
        read_trace(PROGRAMS / "train.json.gz", [kernel.profile for kernel in session.kernels])


@pytest.mark.campaign
def test_the_page_of_programs_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "score_programs.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_page_says_what_came_of_the_advice_before(tmp_path: Path) -> None:
    page = tmp_path / "decode.html"
    before, after = (PROGRAMS / f"{name}.ncu-rep.xz" for name in ("decode", "decode_all"))
    assert main(["report", str(after), "--baseline", str(before), "--single-file", "-o", str(page)]) == 0
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.read_text("utf-8")))
    (said,) = re.findall(r"What came of the advice before(.*?)Whose code.*Against decode.ncu-rep.xz", text)
    assert "Compile chains of small kernels 51 % (36 to 61) nothing" in said
    assert "was to save 52 % (36 to 64) together. 53 % of the kernels’ time came: as predicted." in said
