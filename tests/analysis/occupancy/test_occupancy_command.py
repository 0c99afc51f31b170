"""`gemmprof occupancy` as a user meets it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import CUBE, make_run
from recorded_data import DATA
from scale import few

import gemmprof
from gemmprof.cli import main
from gemmprof.gpu.arch import LIMITS
from gemmprof.kernels.catalog import SINGLE
from gemmprof.model import StageRecord, StageResult
from gemmprof.runs.directory import load_run, save_run

EXAMPLE = ["occupancy", "--regs", "37", "--smem", "8192", "--threads", "1024"]


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a machine without a GPU and without runs of its own, whatever this one has."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setenv("GEMMPROF_RUNS", str(tmp_path / "runs"))


def test_without_a_gpu_every_architecture_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(EXAMPLE) == 0
    text = capsys.readouterr().out
    rows = re.findall(r"^(\d+\.\d) .*?(\d+ of \d+) +([\d.]+) % +(.*?) *$", text, re.MULTILINE)
    assert [row[0] for row in rows] == [limits.label for limits in LIMITS.values()]
    by_label = {label: (warps, percent, why) for label, warps, percent, why in rows}
    assert by_label["8.6"] == by_label["8.9"] == ("32 of 48", "66.7", "registers and warp slots")
    assert by_label["9.0"] == ("32 of 64", "50.0", "registers")
    assert by_label["7.5"] == ("32 of 32", "100.0", "nothing")


def test_the_reasoning_stands_under_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EXAMPLE, "--arch", "8.6"]) == 0
    text = capsys.readouterr().out
    for words in (
        "37 registers × 32 threads = 1,184 → rounded to 1,280 a warp",
        "40,960 a block",
        "1,024 of 1,536 threads",
        "8,192 + 1,024 reserved bytes = 9,216 a block, of 102,400 → 11 blocks",
        "32 of 48 warps, 66.7 %: limited by registers and warp slots",
        "What would help",
        "768 threads per block: 2 blocks, 100.0 %",
    ):
        assert words in text


def test_the_documentation_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DATA.parent.parent / "docs" / "occupancy.md").read_text(encoding="utf-8")
    command, _, shown = text.partition("```console\n$ gemmprof ")[2].partition("```")[0].partition("\n")
    assert main(command.split()) == 0
    printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert printed == shown.rstrip()


def test_several_architectures_and_products(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EXAMPLE, "--arch", "sm_86", "--arch", "9.0", "--gpu", "l4", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["answers"]
    assert [(row["compute_capability"], row["gpu"]) for row in rows] == [
        ("8.6", None),
        ("9.0", None),
        ("8.9", "L4"),
    ]
    assert rows[2]["sm_count"] == rows[2]["blocks_per_gpu"] == 58
    assert rows[0]["limiters"] == ["blocks", "registers"]
    assert rows[0]["theoretical_occupancy_percent"] == pytest.approx(100 * 2 / 3)
    assert rows[1]["what_would_help"][0]["change"] == "≤ 32 registers per thread"
    assert any("1,184" in step for step in rows[0]["reasoning"])


def test_carve_out_barriers_and_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["occupancy", "-t", "128", "-r", "32", "-s", "10k", "--gpu", "H100"]
    call += ["--carveout", "32k", "--barriers", "2"]
    assert main([*call, "--cluster", "4", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["answers"]
    assert (row["shared_memory_per_block"], row["shared_memory_config"]) == (10240, 32768)
    assert row["block_limits"] == {
        "registers": 16,
        "shared_memory": 2,
        "warps": 16,
        "blocks": 32,
        "barriers": 32,
    }
    assert row["max_active_clusters_bound"] == 2 * 132 // 4
    assert main([*call, "--cluster", "4"]) == 0
    assert "cudaOccupancyMaxActiveClusters" in capsys.readouterr().out
    # 264 blocks are 37 clusters of seven and five blocks more, in the table as in the record.
    assert main([*call, "--cluster", "7", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answers"][0]["blocks_per_gpu"] == 259
    assert main([*call, "--cluster", "7"]) == 0
    assert re.search(r"H100 +2 +8 of 64 +12.5 % +259 ", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-t", "1025", "-r", "32", "--arch", "8.6"], ("1,025 threads per block", "8.6", "1,024")),
        (["-t", "128", "-r", "256"], ("256 registers per thread", "255", "13")),
        (["-t", "128", "-r", "32", "-s", "100k", "--arch", "8.6"], ("102,400 bytes", "8.6", "101,376")),
        (
            ["-t", "128", "-r", "32", "-s", "40k", "--arch", "8.6", "--carveout", "32k"],
            ("too small", "65,536"),
        ),
        (["-t", "128", "-r", "32", "--arch", "8.8"], ("8.8", "7.0")),
        (["-t", "128", "-r", "32", "--gpu", "H1000"], ("H1000", "did you mean")),
        (["-t", "128"], ("--regs",)),
        ([], ("--threads", "--ptxas")),
        (["--ptxas", "x", "--cubin", "y"], ("one source only",)),
        (["--ptxas", "/nowhere/x", "-t", "128"], ("/nowhere/x",)),
        (["--ptxas", "x"], ("--threads",)),
        (["nowhere.ncu-rep"], ("nowhere.ncu-rep",)),
    ],
)
def test_errors_name_the_cause_and_exit_with_2(
    arguments: list[str], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["occupancy", *arguments]) == 2
    message = capsys.readouterr().err
    assert message.startswith("gemmprof occupancy: error: ")
    for word in words:
        assert word in message


def test_what_is_impossible_on_one_architecture_is_said_beside_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["occupancy", "-t", "128", "-r", "32", "-s", "150k", "--arch", "8.6", "--arch", "9.0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("8.6") and "at most 101,376" in line for line in lines)
    assert any(line.startswith("9.0") and "4 of 64" in line for line in lines)


def test_a_kernel_that_cannot_be_launched_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["occupancy", "-t", "512", "-r", "255", "--arch", "8.6"]) == 1
    assert "the launch fails" in capsys.readouterr().out


def test_sizes_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["occupancy", "-t", "128", "-r", "32", "-s", "5q"])
    assert stopped.value.code == 2
    assert "'5q' is no size" in capsys.readouterr().err


@pytest.mark.parametrize("ending", few(["svg", "png", "pdf"], ["svg"]))
def test_the_three_curves_as_a_picture(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"curves.{ending}"
    assert main([*EXAMPLE, "--arch", "8.6", "--arch", "9.0", "-o", str(path)]) == 0
    assert f"Wrote {path}" in capsys.readouterr().err
    start = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[ending]
    assert path.read_bytes().startswith(start)
    if ending == "svg":
        text = "".join(ElementTree.parse(path).getroot().itertext())
        for words in (
            "threads per block",
            "registers per thread",
            "KiB of shared memory per block",
            "8.6",
            "9.0",
        ):
            assert words in text
    assert main([*EXAMPLE, "--arch", "8.6", "-o", str(path)]) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*EXAMPLE, "--arch", "8.6", "-o", str(path), "--force"]) == 0


def test_a_picture_of_no_known_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EXAMPLE, "--arch", "8.6", "-o", str(tmp_path / "curves.txt")]) == 2
    assert ".svg" in capsys.readouterr().err


def test_the_calculator_as_a_page(tmp_path: Path) -> None:
    path = tmp_path / "calculator.html"
    assert main(["occupancy", "-o", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert 'data-threads="256" data-registers="32"' in text
    assert main([*EXAMPLE, "--arch", "8.9", "-o", str(path), "--force"]) == 0
    assert 'data-arch="8.9" data-threads="1024" data-registers="37"' in path.read_text(encoding="utf-8")


def test_a_build_from_a_file_and_from_standard_input(capsys: pytest.CaptureFixture[str]) -> None:
    file = DATA / "occupancy" / "ptxas_verbose.txt"
    assert main(["occupancy", "--ptxas", str(file), "--threads", "512", "--arch", "9.0"]) == 0
    text = capsys.readouterr().out
    assert text.count("sm_90") == 6
    assert "spills: 1,504 bytes stored" in text
    call = [sys.executable, "-m", "gemmprof", "occupancy", "--ptxas", "-", "--threads", "512", "--json"]
    done = subprocess.run(call, input=file.read_text(), capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)["kernels"]
    assert len(rows) == 18
    assert rows[1]["warning"].startswith("spills")
    assert rows[6]["occupancy"]["theoretical_occupancy_percent"] == 100.0


def test_a_report_shows_theoretical_beside_achieved(capsys: pytest.CaptureFixture[str]) -> None:
    report = str(DATA / "flaws_occupancy.ncu-rep.xz")
    assert main(["occupancy", report]) == 0
    text = capsys.readouterr().out
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert {"Theoretical 25.00 % limited by shared memory", "Achieved 23.84 % of an SM's warp slots"} <= {
        *rows
    }
    assert {
        "Waves 1.14 where a small part is left for the last one, it leaves SMs idle",
        "Blocks in a wave 264",
    } <= {*rows}
    assert "131 of 132 SMs get no block" in text
    assert main(["occupancy", report, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["launches"]
    assert [row["theoretical_occupancy_percent"] for row in rows] == [25.0, 50.0, 25.0, 100.0]
    assert rows[0]["losses"][0]["kind"] == "tail"
    families = gemmprof.open(report).families
    assert {row["family"] for row in rows} == {family.id for family in families}
    heads = [line for line in text.splitlines() if line.startswith("#")]
    by_time = sorted(families, key=lambda family: int(family.id[1:]))
    assert [line.split("  ")[0] for line in heads] == [f"{family.id} {family.label}" for family in by_time]


def test_a_family_is_said_once_however_often_it_is_launched(capsys: pytest.CaptureFixture[str]) -> None:
    report = str(DATA / "launches_same_kernel.ncu-rep.xz")
    assert main(["occupancy", report]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if line.startswith("#")]
    assert len(heads) == len(gemmprof.open(report).families) and "the longest of" in heads[0]


def test_options_that_a_report_answers_itself_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["occupancy", str(DATA / "flaws_occupancy.ncu-rep.xz"), "--threads", "256"]) == 2
    assert "--threads does not go with a report" in capsys.readouterr().err
    assert main(["occupancy", str(DATA / "flaws_cluster.ncu-rep.xz"), "--cluster", "2"]) == 2
    assert "--cluster does not go with a report" in capsys.readouterr().err


def test_the_command_needs_no_heavy_package() -> None:
    code = (
        "import sys; from gemmprof.cli import main; main(['occupancy', '-t', '256', '-r', '64']);"
        "heavy = {'numpy', 'pandas', 'matplotlib', 'torch', 'jinja2', 'ncu_report', 'pyarrow'} & set(sys.modules);"
        "print('HEAVY', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_a_stage_takes_the_numbers_of_its_recorded_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = load_run(make_run(tmp_path / "runs" / "one", {1: None, 3: None}))
    unbuilt = StageRecord(SINGLE.stages[4], registers_per_thread=96, static_shared_memory=4096)
    failed = StageResult(4, CUBE, failure="did not compile")
    save_run(replace(run, stages=(*run.stages, unbuilt)).with_result(failed))
    assert main(["occupancy", "--stage", "3", "--json"]) == 0
    printed = capsys.readouterr()
    (row,) = json.loads(printed.out)["answers"]
    assert row["gpu"] == "NVIDIA H100 80GB HBM3"
    assert (row["threads_per_block"], row["registers_per_thread"], row["shared_memory_per_block"]) == (
        1024,
        32,
        8192,
    )
    assert (row["theoretical_occupancy_percent"], row["blocks_per_gpu"]) == (100.0, 264)
    assert (row["shared_memory_config"], row["block_limits"]["shared_memory"]) == (32768, 3)
    assert main(["occupancy", "--stage", "3", "--smem", "16k", "--json"]) == 0
    (changed,) = json.loads(capsys.readouterr().out)["answers"]
    assert changed["shared_memory_config"] == 233472, "the driver would choose anew"
    assert "Stage 3" in printed.err
    # What is typed stands in place of what was recorded.
    assert main(["occupancy", "--stage", "3", "--regs", "64", "--arch", "8.6", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["answers"]
    assert (row["compute_capability"], row["registers_per_thread"], row["blocks_per_sm"]) == ("8.6", 64, 1)
    assert main(["occupancy", "--stage", "4"]) == 2
    assert "no profile of stage 4" in capsys.readouterr().err
    assert main(["occupancy", "--stage", "4", "--threads", "512", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["answers"]
    assert (row["registers_per_thread"], row["shared_memory_per_block"], row["blocks_per_sm"]) == (
        96,
        4096,
        1,
    )
    assert main(["occupancy", "--stage", "9"]) == 2
    assert "no stage 9" in capsys.readouterr().err


def test_a_stage_of_clusters_keeps_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["occupancy", "--stage", "hgemm_clusters", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["answers"]
    assert (row["cluster_size"], row["max_active_clusters_bound"]) == (2, 66)
    assert main(["occupancy", "--stage", "hgemm_clusters", "--arch", "8.0", "--smem", "0", "--json"]) == 0
