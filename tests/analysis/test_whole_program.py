"""A whole program: its parts add up, its advice claims nothing twice, traces are tied to launches or refused."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recorded_data import DATA, ROOT

from gemmprof.analysis.inputs.families import LEAST
from gemmprof.analysis.session import Session, load_session
from gemmprof.analysis.whole.overall import Program
from gemmprof.analysis.whole.spans import BESIDE, Span, plain_range, walk
from gemmprof.analysis.whole.traces import Trace, read_trace
from gemmprof.base.errors import ReportError
from gemmprof.cli import main
from gemmprof.model import KernelProfile

TRAINING = DATA / "train_100.ncu-rep.xz"
CHOSEN = ROOT / "docs" / "examples" / "recorded" / "transformer.ncu-rep.xz"


@pytest.fixture(scope="module")
def training() -> Session:
    """A hundred launches of a training step."""
    return load_session([TRAINING], listed=True)


@pytest.fixture(scope="module")
def program(training: Session) -> Program:
    return training.program


def profiles(session: Session) -> list[KernelProfile]:
    return [kernel.profile for kernel in session.kernels]


def test_owners_operators_and_ranges_each_hold_every_launch_once(program: Program) -> None:
    everything = set(program.whole.members)
    for parts in (program.owners, program.operators, program.tree.children):
        members = [at for part in parts for at in part.members]
        assert len(members) == len(everything) and set(members) == everything
        assert sum(part.time_ns for part in parts) == pytest.approx(program.whole.time_ns)
        assert [part.time_ns for part in parts] == sorted((part.time_ns for part in parts), reverse=True)
    nodes: list[Span] = [program.tree, *(span for _, span in walk(program.tree))]
    for node in nodes:
        if node.children:
            assert sorted(at for child in node.children for at in child.members) == sorted(node.members)


def test_ranges_are_those_of_the_report(training: Session, program: Program) -> None:
    for _, span in walk(program.tree):
        for at in span.members:
            assert training.kernels[at].profile.nvtx[: len(span.path)] == span.path
    assert any(span.name == BESIDE for _, span in walk(program.tree)), "backward runs in torch's own thread"


def test_numbers_that_autograd_gives_each_call_do_not_tell_ranges_apart() -> None:
    assert plain_range("aten::addmm, seq = 12, op_id = 40") == "aten::addmm"
    assert plain_range("AddmmBackward0, seq = 3") == "AddmmBackward0"
    assert plain_range("layer 3, left") == "layer 3, left"


def test_nothing_is_claimed_twice(program: Program) -> None:
    advice = program.advice
    assert len(advice.proposals) >= 3
    for proposal in advice.proposals:
        assert LEAST <= proposal.saves <= proposal.span.share + 1e-9, "no launch saves more than it takes"
        assert proposal.low <= proposal.saves <= proposal.high
    saves = [proposal.saves for proposal in advice.proposals]
    assert max(saves) <= advice.together[0] <= sum(saves) + 1e-9
    assert saves == sorted(saves, reverse=True)


def test_what_torch_launches_in_chains_is_said_once_for_all_of_them(program: Program) -> None:
    (proposal,) = (one for one in program.advice.proposals if one.cause == "compile")
    assert len(proposal.families) > 20 and "torch.compile" in proposal.change
    assert f"{proposal.span.launches} launches" in proposal.says
    members = set(proposal.span.members)
    overhead = [one for one in program.advice.proposals if one.cause == "launch_overhead"]
    assert all(not members & set(one.span.members) for one in overhead), "its launches are advised on already"


def test_random_numbers_that_nothing_reads_are_no_chain(training: Session) -> None:
    """Inputs are made before they are used: one kernel for all of them would be none the shorter."""
    name = "void at::native::distribution_elementwise_grid_stride_kernel<float, 4>(long)"
    made = [replace(profile, name=name, nvtx=()) for profile in profiles(training)]
    advice = Program(made, list, str, None).advice
    assert "compile" not in {one.cause for one in advice.proposals}


def test_of_chosen_launches_nothing_is_told_that_takes_their_neighbours() -> None:
    advice = load_session([CHOSEN], listed=True).program.advice
    assert advice.sampled
    assert not {one.cause for one in advice.proposals} & {"compile", "optimizer", "attention", "batch"}


# --- Traces -----------------------------------------------------------------------------------------------------------


def event(kind: str, name: str, start: float, lasts: float, number: int = 0) -> dict[str, Any]:
    """One of torch's; the kernel's has the number of the call that launched it."""
    told = {"cat": kind, "name": name, "ts": start, "dur": lasts, "args": {"correlation": number}}
    return {"ph": "X", "pid": 1, "tid": 7, **told}


def chrome(launches: list[KernelProfile], gap: float = 40.0) -> dict[str, Any]:
    """A trace as torch writes it: an operator for each launch on the host, the kernels with a gap before each."""
    events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "args": {"name": "python"}}]
    for number, profile in enumerate(launches):
        clock = 1000.0 + number * (20.0 + gap)
        events += [
            event("user_annotation", "step", clock - 15.0, 9.0),
            event("cpu_op", f"aten::op{number % 3}", clock - 14.0, 7.0),
            event("cuda_runtime", "cudaLaunchKernel", clock - 13.0, 3.0, number + 1),
            event("kernel", profile.name, clock, 20.0, number + 1),
        ]
    return {"schemaVersion": 1, "traceEvents": events}


def nsys(path: Path, launches: list[KernelProfile], gap: int = 40_000) -> Path:
    """A database as ``nsys export --type sqlite`` writes it, as far as it is read."""
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, correlationId INT, demangledName INT);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, correlationId INT, globalTid INT);"
            "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT);"
        )
        database.execute("INSERT INTO NVTX_EVENTS VALUES (-5000, 100000000, 59, 'step', NULL, 3)")
        clock = 0
        for number, profile in enumerate(launches):
            database.execute("INSERT INTO StringIds VALUES (?, ?)", (number, profile.name))
            database.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, 3)",
                (clock - 2000, clock - 1000, number),
            )
            database.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?)",
                (clock, clock + 20_000, number, number),
            )
            clock += 20_000 + gap
    return path


def written(path: Path, trace: object) -> Path:
    path.write_text(json.dumps(trace), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["torch", "torch, compressed", "nsys"])
def test_a_trace_ties_launches_to_operators_and_shows_gaps(
    kind: str, training: Session, tmp_path: Path
) -> None:
    launches = profiles(training)
    if kind == "nsys":
        path = nsys(tmp_path / "trace.sqlite", launches)
    elif kind == "torch":
        path = written(tmp_path / "trace.json", chrome(launches))
    else:
        path = tmp_path / "trace.json.gz"
        path.write_bytes(gzip.compress(json.dumps(chrome(launches)).encode()))
    trace = read_trace(path, launches)
    assert len(trace.operators) == len(launches)
    assert trace.span_ns == pytest.approx(60_000 * len(launches) - 40_000)
    assert trace.idle == pytest.approx(2 / 3, abs=0.01)
    assert trace.operator(4) == ("step" if kind == "nsys" else "aten::op1")
    found = replace(training, trace=trace).program
    assert found.told_from == "trace" and "the GPU works 34 %" in found.gaps
    (graph,) = (one for one in found.advice.proposals if one.cause == "graph")
    assert graph.share_of == "wall" and 0.2 < graph.low <= graph.saves <= graph.high <= 0.7


def test_a_trace_of_several_steps_is_tied_to_the_one_that_was_profiled(
    training: Session, tmp_path: Path
) -> None:
    launches = profiles(training)
    warm_up = [replace(profile, name=f"warm_up_{number}()") for number, profile in enumerate(launches[:9])]
    trace = read_trace(written(tmp_path / "t.json", chrome([*warm_up, *launches, *warm_up])), launches)
    assert len(trace.operators) == len(launches) and len(trace.kernels) == len(launches) + 18
    assert trace.span_ns == pytest.approx(60_000 * len(launches) - 40_000), "the warm-up is no part of it"
    partly = read_trace(written(tmp_path / "u.json", chrome(launches[:40] + launches[60:])), launches)
    assert len(partly.operators) == 80


def test_a_trace_that_is_none_is_refused_with_what_to_do(training: Session, tmp_path: Path) -> None:
    launches = profiles(training)
    view = tmp_path / "view.sqlite"
    with sqlite3.connect(view) as database:
        database.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start")
    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(b" " * (300 << 20), 9))
    other = chrome([replace(profile, name=f"other_{at}()") for at, profile in enumerate(launches)])
    no_kernels = {"traceEvents": [e for e in chrome(launches)["traceEvents"] if e.get("cat") != "kernel"]}
    strange = {"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": "yesterday"}]}
    cases = {
        tmp_path / "nothing.json": "No such file",
        tmp_path: "folder",
        bomb: "unpacks to more than",
        view: "(?s)holds no kernel.*nsys profile --trace",
        written(tmp_path / "list.json", [1, 2]): "no trace of torch",
        written(tmp_path / "strange.json", strange): "no trace of torch",
        written(tmp_path / "none.json", no_kernels): "holds no kernel",
        written(tmp_path / "other.json", other): "0 of the report's 100 launches",
    }
    (tmp_path / "deep.json").write_text('{"traceEvents": ' + "[" * 200_000, encoding="utf-8")
    cases[tmp_path / "deep.json"] = "no trace of torch"
    (tmp_path / "cut.sqlite").write_bytes(nsys(tmp_path / "whole.sqlite", launches).read_bytes()[:5000])
    cases[tmp_path / "cut.sqlite"] = "no trace of torch"
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.json")
        cases[tmp_path / "pipe.json"] = "no regular file"
    for path, why in cases.items():
        with pytest.raises(ReportError, match=why) as refused:
            read_trace(path, launches)
        assert refused.value.remedies, path


def test_a_trace_at_the_command_line(
    training: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    trace = str(written(tmp_path / "trace.json", chrome(profiles(training), gap=40.0)))
    assert main([str(TRAINING), "--trace", trace]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert "torch's trace: the GPU works 34 % of 5.96 ms, and waits longest before aten::op" in " ".join(
        lines
    )
    assert any("Launch as a CUDA graph" in line for line in lines)
    assert main(["show", str(TRAINING), "--trace", trace, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["program"]
    assert shown["trace"]["tied"] == 100 and {one["name"] for one in shown["operators"]} == {
        "aten::op0", "aten::op1", "aten::op2",
    }  # fmt: skip
    assert main([str(TRAINING), "--trace", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err


def test_without_a_trace_gaps_are_said_to_be_unseen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(TRAINING)]) == 0
    assert "Gaps between launches are not seen: --trace FILE" in capsys.readouterr().out
    assert Trace("torch", "t", ()).idle == 0.0


def test_show_prints_owners_ranges_operators_and_all_advice(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(TRAINING)]) == 0
    text = capsys.readouterr().out
    head = text.partition("\nid ")[0]
    for part in (*program.owners, *(span for _, span in walk(program.tree) if span.share > LEAST)):
        assert part.name in head
    flat = " ".join(head.split())
    for place, proposal in enumerate(program.advice.proposals, 1):
        assert f"{place}. {proposal.title}" in flat and " ".join(proposal.change.split()) in flat
