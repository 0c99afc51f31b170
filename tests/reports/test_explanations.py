"""One explanation as text, Markdown and JSON: it fits, it validates, and foreign text cannot act."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import in_process
import pytest
from json_formats import violations
from profiles import launch
from recorded_data import DATA, ROOT, ReadRecorded
from rich.console import Console

from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.inputs.selection import selection
from gemmprof.analysis.kernel_analysis import analyse
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.session import Session, load_session
from gemmprof.base.documents import json_text
from gemmprof.gpu.arch import practice_of
from gemmprof.model import Explanation, KernelProfile
from gemmprof.reports.agents import markdown
from gemmprof.reports.documents.of_findings import ExplainDocument, explain_document
from gemmprof.reports.formatting import nanoseconds
from gemmprof.reports.pages.environment import code
from gemmprof.reports.terminal import summary
from gemmprof.reports.words import Explained, explained, screen
from gemmprof.runs.directory import recorded_run_directory


def loaded(*profiles: KernelProfile) -> Session:
    return Session("made", tuple(map(analyse, profiles)))


def told(*profiles: KernelProfile) -> tuple[Explained, ...]:
    session = loaded(*profiles)
    return explained(session, session.families)


def test_every_report_validates(recorded: ReadRecorded, report_name: str) -> None:
    made = json.loads(json_text(explain_document(loaded(*recorded(report_name, source=True)))))
    assert made["format"] == "gemmprof.explain/1"
    assert violations(made, ExplainDocument) == []
    assert [kernel["launch"] for kernel in made["kernels"]] == list(range(len(made["kernels"])))


def test_the_schema_forbids_what_is_wrong(recorded: ReadRecorded) -> None:
    made = json.loads(json_text(explain_document(loaded(recorded("flaws_spills", source=True)[0]))))
    made["kernels"][0]["findings"][0]["saves"] = 1.5
    made["kernels"][0]["findings"][0]["cause"] = "bad_luck"
    assert len(violations(made, ExplainDocument)) == 2


def test_a_screen_is_30_lines_of_80(recorded: ReadRecorded, report_name: str) -> None:
    lines = screen(told(*recorded(report_name, source=True))).split("\n")
    assert len(lines) <= 30
    assert all(len(line) <= 80 for line in lines)


def test_no_kernel_is_said() -> None:
    assert "no kernel" in screen([]) and "no kernel" in markdown([])


@pytest.mark.parametrize("budget", [60, 200, 1000])
def test_a_budget_is_kept(recorded: ReadRecorded, budget: int) -> None:
    kernels = told(*recorded("flaws_atomics", source=True))
    text = markdown(kernels, budget=budget)
    assert len(text) <= 4 * budget
    assert "Global atomics" in markdown(kernels)


def test_foreign_text_stays_code(recorded: ReadRecorded) -> None:
    hostile = "evil`` <script>alert(1)</script>\n# heading ![x](http://a) ```\n::error::x \x1b[31m"
    profile = recorded("flaws_spills", source=True)[0]
    (one,) = told(replace(profile, name=hostile))
    made = one.explanation
    place = replace(made.findings[0].places[0], text=hostile, file="/tmp/`x`/\x1b]8;;a\x07b.cu")
    made = replace(made, findings=(replace(made.findings[0], places=(place,)), *made.findings[1:]))
    one = replace(one, explanation=made)
    for text in (markdown([one]), screen([one])):
        assert "\x1b" not in text and "\x07" not in text
    shown = markdown([one])
    assert "\n# heading" not in shown
    fence = code(hostile)
    run = fence[: len(fence) - len(fence.lstrip("`"))]
    assert run not in fence[len(run) : -len(run)]


def _explain(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gemmprof", "explain", *arguments]
    return in_process.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=cwd,
        env={"PYTHONPATH": str(ROOT)},
    )


def test_the_command_prints_json_of_every_launch() -> None:
    answer = _explain(str(DATA / "flaws_global_access.ncu-rep.xz"), "--json")
    assert answer.returncode == 0, answer.stderr
    made = json.loads(answer.stdout)
    assert violations(made, ExplainDocument) == []
    assert len(made["kernels"]) == 5


def test_the_command_takes_several_inputs_and_a_selection(tmp_path: Path) -> None:
    both = [str(DATA / f"{name}.ncu-rep.xz") for name in ("flaws_spills", "flaws_atomics")]
    answer = _explain(*both, "--kernel", "histogram|spilled", "--format", "markdown")
    assert answer.returncode == 0, answer.stderr
    assert "spilled_registers" in answer.stdout and "shared_histogram" in answer.stdout
    assert "local_array" not in answer.stdout
    bad = tmp_path / "bad.ncu-rep"
    bad.write_bytes(b"no report")
    answer = _explain(both[0], str(bad))
    assert answer.returncode == 2 and "bad.ncu-rep" in answer.stderr and "Local memory" in answer.stdout
    assert _explain(both[0], "--budget", "3").returncode == 2


def test_a_full_report_takes_a_second() -> None:
    _ = load_session([DATA / "flaws_tensor.ncu-rep.xz"], listed=True).families  # the native reader starts
    started = time.process_time()
    assert load_session([DATA / "ladder_simple.ncu-rep.xz"], listed=True).families
    assert time.process_time() - started < 3.0  # 1 s on a quiet machine


def test_the_summary_of_a_run_says_what_to_change_first() -> None:
    session = load_session([recorded_run_directory()], selection=selection("sgemm_naive"))
    assert session.run is not None
    rows = [row for row in summary.summarise(session.run, session) if row.name == "naive"]
    assert rows and rows[0].change_first is not None
    assert rows[0].change_first.startswith("Uncoalesced access, saves 9")
    assert rows[0].change_first.endswith("at naive.cu:24")
    console = Console(width=100, record=True, file=io.StringIO())
    summary.print_run(console, rows, {})
    assert "To change first" in console.export_text()


def test_one_kernel_that_is_left_out_is_one() -> None:
    (one,) = told(launch())
    made = replace(one, explanation=Explanation(0, "a.ncu-rep", "kernel(int)", (), 1e3, (), None, ()))
    two, three = [made] * 2, [made] * 3
    assert "1 more family is left out." in markdown(two, budget=45)
    assert "2 more families are left out." in markdown(three, budget=45)
    assert screen(two, lines=1).endswith("and 1 more family: --all shows all, '#3' behind it one.")
    assert screen(three, lines=1).endswith("and 2 more families: --all shows all, '#3' behind it one.")


def test_names_with_underscores_are_code_in_markdown(recorded: ReadRecorded) -> None:
    shown = markdown(told(*recorded("flaws_global_access", source=True)))
    assert "\\_" not in shown
    assert re.search(r"`[a-z]+__[a-z_.]+`", shown)


def test_the_floor_of_its_own_traffic_is_no_longer_than_the_kernel(
    recorded: ReadRecorded, report_name: str
) -> None:
    for one in told(*recorded(report_name, source=True)):
        floor, time = one.explanation.floor_ns, one.explanation.duration_ns
        assert floor is None or time is None or 0 < floor <= time
        sentence = f"What it moves takes {nanoseconds(floor)} alone ("
        saves = max((finding.saves for loss in one.explanation.losses for finding in loss[:1]), default=0.0)
        saves = max(saves, one.explanation.together or 0.0)
        near = floor is not None and time is not None and (1 - saves) / 2 <= floor / time <= 1 - saves
        assert (near and saves > 0) == (sentence in markdown([one])), "said where it is what is left"


def test_the_floor_of_a_kernel_on_dram_is_its_bytes_over_what_the_card_does() -> None:
    profile = read_report(ROOT / "docs" / "examples" / "recorded" / "gelu.ncu-rep.xz")[0]
    made = explain(profile)
    assert made.traffic is not None and made.traffic.resource == "DRAM" and made.floor_ns is not None
    moved = sum(profile.number(f"dram__bytes_{way}.sum") or 0.0 for way in ("read", "write"))
    h200 = 4.8e12  # bytes a second, by its data sheet
    practice, _ = practice_of(profile.device.compute_capability)
    assert made.floor_ns == pytest.approx(1e9 * moved / (h200 * practice.ceilings["dram"]), rel=0.1)


def test_what_needs_next_to_none_of_the_time_is_not_said(recorded: ReadRecorded) -> None:
    """One block of a few threads: it waits, and two units that are busy for 2 and 3 % of the time tell nothing."""
    tiny = next(one for one in recorded("flaws_occupancy", source=True) if "tiny_grid" in one.name)
    text = " ".join(screen(told(tiny)).split())
    assert "What would need most of its time alone: exposed latency 85 %. Exposed latency is" in text
