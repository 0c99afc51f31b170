"""The front door as a user meets it: its exit codes, its streams, and what only a process of its own shows."""

from __future__ import annotations

import functools
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import in_process
import pytest
from rich.console import Console
from scale import few, inputs

from gemmprof import __version__
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.session import load_session
from gemmprof.commands import COMMANDS
from gemmprof.commands.export import FORMATS
from gemmprof.reports.terminal import roofline_table
from gemmprof.runs.directory import load_recorded_run

DATA = Path(__file__).parent / "data"
EXAMPLES = Path(__file__).parents[1] / "docs" / "examples" / "recorded"


def gemmprof(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return in_process.run(["gemmprof", *arguments], cwd=cwd)


def test_help_lists_every_command() -> None:
    shown = gemmprof("--help")
    assert shown.returncode == 0
    for name, summary in COMMANDS.items():
        assert name in shown.stdout
        assert summary.split()[0] in shown.stdout


@pytest.mark.parametrize("command", ["show", "diff", "history", "watch", "baseline", "stages"])
def test_prose_of_help_is_as_wide_as_the_terminal(command: str) -> None:
    narrow, wide = (
        in_process.run(["gemmprof", command, "--help"], env={**os.environ, "COLUMNS": str(columns)}).stdout
        for columns in (60, 200)
    )
    # What is typed stays whole on its line, as do the options that usage lists.
    prose = [line for line in narrow.partition("\n\n")[2].splitlines() if "gemmprof " not in line]
    assert max(map(len, prose)) <= 60
    assert narrow.split()[-1] == wide.split()[-1]
    examples = re.findall(r"^ *(gemmprof \S.*?)(?: {3}|$)", wide, re.MULTILINE)
    assert len(examples) > 1 and all(example in narrow for example in examples)


def test_no_argument_prints_the_commands_in_groups() -> None:
    shown = gemmprof()
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == gemmprof("--help").stdout
    for group in ("your kernel:", "compare:", "collect:", "more:", "examples:"):
        assert f"\n{group}\n" in shown.stdout


def test_version() -> None:
    assert gemmprof("--version").stdout.strip() == f"gemmprof {__version__}"


@pytest.mark.parametrize("arguments", [("nonsense",), ("report", "--nonsense")])
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...]) -> None:
    result = gemmprof(*arguments)
    assert result.returncode == 2
    assert "usage: gemmprof" in result.stderr


@pytest.mark.parametrize("command", ["report", "roofline"])
def test_a_missing_file_is_named(command: str, tmp_path: Path) -> None:
    result = gemmprof(command, "no-such.ncu-rep", cwd=tmp_path)
    assert result.returncode == 2
    assert "no-such.ncu-rep" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    shell = f"{sys.executable} -m gemmprof stages --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.stderr == ""
    assert result.returncode == 0


def test_a_reader_that_leaves_a_table_early_is_no_finding(tmp_path: Path) -> None:
    shell = (
        f"{sys.executable} -m gemmprof occupancy --threads 256 --regs 64 | head -c 1; exit ${{PIPESTATUS[0]}}"
    )
    result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.stderr == ""
    assert result.returncode == 0


@pytest.mark.parametrize("stage", ["5", "block2d"])
def test_a_stage_of_the_recorded_run_has_its_own_occupancy(stage: str, tmp_path: Path) -> None:
    record = next(entry for entry in load_recorded_run().stages if entry.stage.name == "block2d")
    result = gemmprof("occupancy", "--stage", stage, "--json", cwd=tmp_path)
    assert result.returncode == 0
    assert "Stage 5 (2D block tiling)" in result.stderr
    answer = json.loads(result.stdout)
    assert answer["format"] == "gemmprof.occupancy/1"
    (row,) = answer["answers"]
    assert row["registers_per_thread"] == record.registers_per_thread
    assert row["shared_memory_per_block"] == record.static_shared_memory


def test_a_stage_that_the_run_lacks_names_those_it_holds(tmp_path: Path) -> None:
    result = gemmprof("occupancy", "--stage", "99", cwd=tmp_path)
    assert result.returncode == 2
    assert "holds no stage 99" in result.stderr
    assert "5 block2d" in result.stderr


@pytest.mark.parametrize("command", ["occupancy", "roofline"])
def test_a_damaged_report_does_not_stop_the_others(command: str, tmp_path: Path) -> None:
    good = DATA / "flaws_spills.ncu-rep.xz"
    (tmp_path / "cut.ncu-rep.xz").write_bytes(good.read_bytes()[:5000])
    shutil.copy(good, tmp_path)
    result = gemmprof(command, "cut.ncu-rep.xz", good.name, cwd=tmp_path)
    assert result.returncode == 2
    assert "not read: cut.ncu-rep.xz is damaged" in result.stderr
    assert "spilled_registers" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("flaws_spills.ncu-rep.xz", "spilled_registers"), "fix: for a kernel: --kernel spilled_registers"),
        (("flaws_spills.ncu-rep.xz", "3"), "fix: for a launch: '#3' or --launch 3"),
        (("names_nvtx.ncu-rep.xz", "--launch", "70"), "6 launches of 1 kernel: "),
        (("watch",), "fix: write it behind two dashes: gemmprof watch -- python"),
        (("find", "time >", "."), "cannot be read at its end: expected a number"),
    ],
)
def test_what_is_missing_or_wrong_is_told_in_the_words_of_what_was_typed(
    arguments: tuple[str, ...], said: str
) -> None:
    result = gemmprof(*arguments, cwd=DATA)
    assert result.returncode == 2 and said in result.stderr
    assert "and 1 more" not in result.stdout, "a report is not called by what was not read"


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_a_narrow_terminal_cuts_no_number_of_the_roofline(columns: int) -> None:
    session = load_session([DATA / "flaws_tensor.ncu-rep.xz"])
    rows = roofline_table.kernels(session)
    terminal = Console(width=columns, record=True, file=io.StringIO())
    for part in roofline_table.parts(rows, width=columns):
        terminal.print(part)
    lines = terminal.export_text().splitlines()
    numbers = [line.split() for line in lines if "FLOP/s" in line]
    assert len(numbers) == sum(len(page.analysis.field(Roofline, "main_points") or ()) for page in rows)
    assert not any("…" in line for line in lines)
    assert max(map(len, lines)) <= columns
    names = map(roofline_table.name_of, rows)
    assert all(any(line.startswith(name) for line in lines) for name in names)


def test_a_remedy_that_all_kernels_share_is_said_once() -> None:
    result = gemmprof("roofline", str(DATA / "train_100.ncu-rep.xz"))
    assert result.stdout.count("--set roofline") == 1
    assert "and 97 more" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("roofline", "-o", "."), ". is a folder"),
        (("occupancy", "-o", "none/page.html"), "mkdir -p none"),
        (("diff", "--fail-slower", "x"), "argument --fail-slower: 'x' is not a percentage: write 5 or 2.5"),
        (("diff", "--fail-slower", "-5"), "argument --fail-slower: -5 is no percentage from 0 on: write 5"),
        (("diff", "--same-within", "nan"), "nan is no percentage from 0 on"),
        (("show", "--top", "0"), "argument --top: 0 is too small: write 1 or more"),
        (("show", "--top", "1.5"), "argument --top: '1.5' is not a whole number: write 1, 2, 3"),
        (("find", "--limit", "²"), "argument --limit: '²' is not a whole number"),
        (("history", "check", "--last", "-1"), "argument --last: -1 is too small: write 1 or more"),
        (("explain", "--budget", "3"), "argument --budget: 3 is too small: write 50 or more"),
        (("occupancy", "--threads", "9" * 5000), "is too large: write at most"),
        (("collect", "--seed", "-1"), "argument --seed: -1 is too small: write 0 or more"),
        (("report", str(DATA / "modes_range.ncu-rep.xz"), "-o", "/proc/none"), "/proc/none"),
    ],
)
def test_an_impossible_request_is_one_message(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    result = gemmprof(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr and "did you mean" not in result.stderr


def test_a_terminal_that_knows_ascii_only_gets_the_table(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "gemmprof", "occupancy", "--threads", "256", "--regs", "64"],
        capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
    assert "64 registers x 32 threads" in result.stdout


@pytest.mark.parametrize("encoding", few(["ascii", "latin-1"], ["ascii"]))
def test_units_and_cuts_are_told_in_any_encoding(encoding: str, tmp_path: Path) -> None:
    report = tmp_path / "日本.ncu-rep.xz"
    report.write_bytes((EXAMPLES / "transformer.ncu-rep.xz").read_bytes())
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "100"}
    run = functools.partial(
        subprocess.run, capture_output=True, check=False, cwd=tmp_path, env=environment, encoding=encoding
    )
    for arguments in (["show"], ["find", "time > 1us"], ["explain"], ["roofline"])[: inputs(1, 4)]:
        result = run([sys.executable, "-m", "gemmprof", *arguments, str(report)])
        assert result.returncode == 0, result.stderr
        assert "?" not in result.stdout
        assert {"ascii": " us", "latin-1": " µs"}[encoding] in result.stdout or arguments == ["roofline"]
        assert "..." in result.stdout, "a cut name"
    report.write_bytes((DATA / "names_nvtx.ncu-rep.xz").read_bytes())
    listed = run([sys.executable, "-m", "gemmprof", "show", "--json", "--top", "1", str(report)])
    assert "日本.ncu-rep.xz" in str(json.loads(listed.stdout)), "data stay data"


@pytest.mark.parametrize(
    ("program", "fix"),
    [
        ("./my_kernel", "check its path, or build it first"),
        ("my_kernel", "is written with its path: ./my_kernel"),
        ("build/my_kernel", "the folder build does not exist"),
    ],
)
def test_a_program_that_is_not_there_is_not_told_to_be_written_as_it_is(
    program: str, fix: str, tmp_path: Path
) -> None:
    result = gemmprof("profile", "--", program, cwd=tmp_path)
    assert result.returncode == 2
    (said,) = [line for line in result.stderr.splitlines() if line.startswith("  fix: ")]
    assert said.endswith(fix) and f": {program}" not in said.replace(fix, "")


def test_a_picture_without_points_names_the_option_that_brings_them(tmp_path: Path) -> None:
    report = DATA / "partial_basic.ncu-rep.xz"
    result = gemmprof("roofline", str(report), "-o", "roofline.svg", cwd=tmp_path)
    assert result.returncode == 2
    assert "fix: profile it with ncu --set roofline" in result.stderr


@pytest.mark.parametrize("words", [("find", "time > 1us"), ("export", "--format", "dataset", "-o", "kept")])
def test_a_mistyped_folder_is_no_empty_data_set(words: tuple[str, ...], tmp_path: Path) -> None:
    result = gemmprof(*words, "nightyl/", cwd=tmp_path)
    assert result.returncode == 2
    assert "there is no file" in result.stderr and "fix: check the name" in result.stderr
    assert not (tmp_path / "kept").exists()


def test_what_was_chosen_stands_in_the_head() -> None:
    report = str(DATA / "train_100.ncu-rep.xz")
    head = gemmprof("show", report, "--top", "3").stdout.splitlines()[0]
    assert head.startswith("train_100.ncu-rep.xz") and "chosen by --top 3" in head


def test_two_stages_of_a_run_are_compared_on_its_first_shape_or_a_named_one(tmp_path: Path) -> None:
    for before, after, label in (("5@2048", "6@2048", "2048³"), ("5", "6", "4096³"))[: inputs(1, 2)]:
        result = gemmprof("diff", "--before", before, "--after", after, "--json", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        (pair,) = json.loads(result.stdout)["details"]
        assert pair["label"] == f"5 2D block tiling, {label} → 6 Vectorised loads, {label}"
    missing = gemmprof("diff", "--before", "5@99", "--after", "6", cwd=tmp_path)
    assert missing.returncode == 2
    assert "matches nothing" in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "usage", "meant"),
    [
        (("roofline", "--kernl", "x"), "usage: gemmprof roofline", "did you mean --kernel?"),
        (("report", "--recored"), "usage: gemmprof report", "did you mean --recorded?"),
        (("rooflin",), "usage: gemmprof ", "did you mean roofline?"),
        (("export", "--format", "parket"), "usage: gemmprof export", "did you mean parquet?"),
        (("report", "--rec"), "usage: gemmprof report", "there is no option: --rec"),
    ],
)
def test_a_typo_gets_the_usage_of_its_command_and_what_was_meant(
    arguments: tuple[str, ...], usage: str, meant: str
) -> None:
    result = gemmprof(*arguments)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith(usage) and meant in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("roofline", "none.ncu-rep", "--json"), "none.ncu-rep"),
        (("show", "--json", "--setcion", "roofline"), "--setcion"),
        (("explain", "--json", "--kernel", "("), "regular expression"),
    ],
)
def test_with_json_an_error_is_json_too(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    result = gemmprof(*arguments, cwd=tmp_path)
    answer = json.loads(result.stdout)
    assert result.returncode == 2 and answer["format"] == "gemmprof.error/1"
    assert said in answer["message"] and answer["remedies"] and answer["command"] == arguments[0]
    assert "error:" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("stages",),
        ("roofline", str(DATA / "ladder_simple.ncu-rep.xz")),
        ("show", str(DATA / "ladder_simple.ncu-rep.xz")),
        ("explain", str(DATA / "ladder_simple.ncu-rep.xz")),
        ("occupancy", str(DATA / "ladder_simple.ncu-rep.xz")),
        ("doctor",),
    ],
)
def test_json_names_its_format(arguments: tuple[str, ...]) -> None:
    answer = json.loads(gemmprof(*arguments, "--json").stdout)
    assert answer["format"] == f"gemmprof.{arguments[0]}/1"
    assert next(iter(answer)) == "format"


def complete(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    program = (
        f"source {script}; COMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}; "
        "_shtab_gemmprof; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    return done.stdout.split()


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    script = tmp_path / "gemmprof.bash"
    script.write_text(gemmprof("completion", "bash").stdout)
    assert complete(script, "gemmprof", "roof") == ["roofline"]
    assert set(complete(script, "gemmprof", "roofline", "--k")) == {"--kernel"}
    assert set(complete(script, "gemmprof", "export", "--format", "")) >= {"parquet", "csv", "jsonl"}
    assert "warp_states" in complete(script, "gemmprof", "show", "--section", "")
    assert complete(script, "gemmprof", "profile", "--section", "SourceC") == ["SourceCounters"]
    assert "warptiled" in complete(script, "gemmprof", "tune", "--stage", "")
    assert "9.0" in complete(script, "gemmprof", "occupancy", "--arch", "")
    assert gemmprof("completion", "zsh").stdout.startswith("#compdef gemmprof")


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_completes_commands_options_and_choices(tmp_path: Path) -> None:
    script = tmp_path / "gemmprof.fish"
    script.write_text(gemmprof("completion", "fish").stdout)
    (tmp_path / "one.ncu-rep").touch()

    def complete(line: str) -> list[str]:
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
            capture_output=True, text=True, check=True, cwd=tmp_path,
        )  # fmt: skip
        assert done.stderr == ""
        return [line.partition("\t")[0] for line in done.stdout.splitlines()]

    assert complete("gemmprof roof") == ["roofline"]
    assert complete("gemmprof roofline --k") == ["--kernel"]
    assert set(complete("gemmprof export --format ")) == set(FORMATS)
    assert set(complete("gemmprof history ")) == {"record", "list", "show", "check"}
    assert complete("gemmprof history show k --ki") == ["--kind"]
    assert complete("gemmprof show one") == ["one.ncu-rep"]  # reports are files, the names of stages are not
    assert complete("gemmprof stages one") == []
    assert "--kernel" not in complete("gemmprof history list --")


def test_no_home_to_write_to_is_no_warning(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": "/proc", "XDG_CONFIG_HOME": "/proc/none"}
    environment.pop("MPLCONFIGDIR", None)
    report, picture = str(DATA / "flaws_cluster.ncu-rep.xz"), str(tmp_path / "r.svg")
    result = subprocess.run(
        [sys.executable, "-m", "gemmprof", "roofline", report, "-o", picture],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, f"Wrote {tmp_path / 'r.svg'}\n")


@pytest.mark.parametrize("ending", ["html", "svg"])
def test_a_file_is_written_instead_of_the_table(ending: str, tmp_path: Path) -> None:
    result = gemmprof("occupancy", "-t", "256", "-r", "64", "-o", f"x.{ending}", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "")
    assert (tmp_path / f"x.{ending}").stat().st_size > 1000


@pytest.mark.parametrize(
    "arguments", [["--help"], ["explain", "--help"], ["report", "--help"], ["occupancy", "--help"]]
)
def test_help_starts_without_what_reads_and_draws(arguments: list[str]) -> None:
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gemmprof", *arguments],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
        timeout=60,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in told.stderr.splitlines()}
    assert "argparse" in loaded or arguments == ["--help"]
    assert not loaded & {
        "google",
        "jinja2",
        "matplotlib",
        "msgspec",
        "numpy",
        "pandas",
        "pyarrow",
        "rich",
        "torch",
    }


@pytest.mark.parametrize(("command", "threads"), [("explain", "1"), ("profile", "None"), ("collect", "None")])
def test_programs_of_the_user_keep_their_environment(command: str, threads: str) -> None:
    """numpy's BLAS begins one thread for us; what a command begins for its user finds what its shell says."""
    program = (
        "import os, sys; from gemmprof.cli import main\n"
        f"sys.argv = ['gemmprof', '{command}', '--help']\n"
        "try: main()\n"
        "finally: print(os.environ.get('OPENBLAS_NUM_THREADS'))\n"
    )
    own = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    told = subprocess.run(
        [sys.executable, "-c", program], env=own, capture_output=True, text=True, check=False
    )
    assert told.stdout.split()[-1] == threads
