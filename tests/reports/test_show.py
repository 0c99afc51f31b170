"""`gemmprof show`: the whole analysis in a terminal of any width."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import in_process
import pytest
from profiles import launch
from recorded_data import DATA, ReadRecorded
from scale import few

from gemmprof.analysis.kernel_analysis import analyse, analyses
from gemmprof.reports.terminal.section_tables import rows


def show(*arguments: str, columns: int = 100) -> subprocess.CompletedProcess[str]:
    return in_process.run(
        [sys.executable, "-m", "gemmprof", "show", *arguments],
        capture_output=True, text=True, check=False, timeout=120, env={**os.environ, "COLUMNS": str(columns)},
    )  # fmt: skip


TRAIN = str(DATA / "train_100.ncu-rep.xz")
LADDER = str(DATA / "ladder_simple.ncu-rep.xz")


@pytest.mark.parametrize("columns", few([60, 80, 120], [60]))
def test_no_line_is_longer_than_the_terminal_and_no_name_is_cut(columns: int) -> None:
    result = show(TRAIN, columns=columns)
    assert result.returncode == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= columns
    joined = "".join(line[-columns:].strip() for line in result.stdout.splitlines())
    assert "execute_kernel__5x_cublas" in joined.replace(" ", "")
    assert "NVIDIAH10080GBHBM3" in joined.replace(" ", "") and "100 launches of 39 kernels" in result.stdout


def test_kernels_come_first_and_lead_to_one_launch() -> None:
    result = show(TRAIN)
    lines = result.stdout.splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("id "))
    first = lines[header + 1].split()[0]
    assert re.fullmatch(r"#\d+", first)
    assert f"the same with '{first}' behind it" in " ".join(lines[-2:])
    one = show(TRAIN, "--kernel", first)
    assert "of 1 kernel in 1 family" in one.stdout and "Speed of light" in one.stdout
    assert show(TRAIN, first).stdout == one.stdout, "an id may stand behind the inputs"


def test_a_section_can_be_asked_for_and_a_typo_is_answered() -> None:
    result = show(LADDER, "--section", "warp_states")
    assert result.stdout.count("Warp states") == 3 and "Speed of light" not in result.stdout
    typo = show(LADDER, "--section", "warp_stats")
    assert typo.returncode == 2 and "did you mean 'warp_states'?" in typo.stderr


def test_a_section_is_printed_alone_and_a_roofline_as_by_its_command() -> None:
    shown = show(LADDER, "--section", "roofline").stdout.splitlines()
    assert [line for line in shown if line.startswith(("Whose time", "id ", "To change first"))] == []
    assert sum(line.startswith("#") for line in shown) == 3
    points = [" ".join(line.split()) for line in shown if "FLOP/s" in line]
    wide = {**os.environ, "COLUMNS": "100"}
    printed = in_process.run([sys.executable, "-m", "gemmprof", "roofline", LADDER], env=wide)
    rows = [" ".join(line.split()) for line in printed.stdout.splitlines() if "FLOP/s" in line]
    assert points and all(any(row.endswith(point) for point in points) for row in rows)


def test_json_holds_families_and_sections() -> None:
    record = json.loads(show(LADDER, "--json", "--all").stdout)
    assert [family["count"] for family in record["families"]] == [1, 1, 1]
    assert set(record["kernels"][0]["sections"]) == {analysis.NAME for analysis in analyses()}
    light = record["kernels"][0]["sections"]["speed_of_light"]["rows"]
    duration = next(row for row in light if row["name"] == "Duration under the profiler")
    assert duration["value"] == "4.42 ms"


def test_what_was_not_collected_says_how_to_get_it() -> None:
    result = show(str(DATA / "partial_two_metrics.ncu-rep.xz"), "--section", "warp_states")
    assert "--section WarpStateStats" in result.stdout


def test_every_section_of_every_recorded_report_has_rows_of_text(
    report_name: str, recorded: ReadRecorded
) -> None:
    for profile in recorded(report_name)[:4]:
        analysis = analyse(profile)
        for name, result in analysis.results.items():
            found = rows(result)
            assert all(isinstance(text, str) for row in found for text in row), name
            assert not any("None" in value or "nan" in value for _, value, _ in found), (name, found)


def test_one_of_a_thing_is_told_as_one() -> None:
    told = [" ".join(row) for row in rows(analyse(launch()).results["launch"])]
    assert "Grid 1x1x1 1 block" in told and "Block 32x1x1 32 threads, 1 warp" in told


def test_a_hostile_name_prints_harmlessly() -> None:
    result = show(str(DATA / "names_nvtx.ncu-rep.xz"))
    assert "\u202e" not in result.stdout and "\x1b" not in result.stdout


def test_a_folder_without_reports_is_an_error(tmp_path: Path) -> None:
    result = show(str(tmp_path))
    assert result.returncode == 2 and "holds no report" in result.stderr


def test_source_without_lines_is_its_hottest_instructions_and_without_counters_says_how_to_get_them() -> None:
    bare = show(str(DATA / "partial_no_lineinfo.ncu-rep.xz"), "#1", "--source").stdout.splitlines()
    at = next(at for at, line in enumerate(bare) if "compile with -lineinfo" in line)
    assert all(re.match(r" +[\d.]+ % +\d+ +[0-9a-f]{4} +[A-Z]", line) for line in bare[at + 1 : -1]), bare
    assert sum(map(float, re.findall(r"(?m)^ +([\d.]+) %", "\n".join(bare)))) <= 101
    lean = show(str(DATA / "partial_basic.ncu-rep.xz"), "#1", "--source")
    assert lean.returncode == 0 and "profile with --section SourceCounters" in lean.stdout


def test_what_warps_wait_for_stands_under_the_phases() -> None:
    """The kernel's second phase streams: warps wait for memory there, and not before."""
    report = DATA / "phases" / "h200" / "stalls.ncu-rep.xz"
    lines = show(str(report), "--section", "timeline", "--kernel", "three_phases").stdout.splitlines()
    (waits,) = (line.partition("|")[2] for line in lines if "stalled: Long Scoreboard" in line)
    assert waits[:17].strip() == "" and waits[20:30].count("█") > 8
