#!/usr/bin/env python3
"""Record the test reports of tests/data on a machine with an NVIDIA GPU, nvcc and Nsight Compute.

Builds the small programs of tests/cuda, profiles each with ``ncu``, lets ncu export every report as CSV (the referee
that gemmprof's numbers are compared with) and compresses all of it with xz. Only the standard library is used; the
training reports want PyTorch in the Python that runs this script. One report that fails does not stop the others.

Usage: record_tests.py OUTPUT [--budget SECONDS] [--only TOPIC ...]

Writes OUTPUT/tests_data/ (to be copied to tests/data) and OUTPUT/large/ (the training report of 800 launches and more,
for benchmarks; too large for the repository).
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import recording as tools
from recording import ROOT, compress

SOURCES = ROOT / "tests" / "cuda"
# Reports keep the paths of sources and programs: build in a place that is the same on every machine.
BUILD = Path("/tmp/gemmprof-tests")
NVCC = ("nvcc", "-O3", "-std=c++17", "-arch=sm_90", "--extended-lambda")
# Clock control would change the settings of a GPU that may be shared.
NCU = ("ncu", "--clock-control", "none", "--force-overwrite")
ODD_SOURCES = {"odd_path": "odd folder/kern&l 'q' é.cu", "odd_text": "odd folder/mark<b>up 'q'.cu"}
TRAINING = "train_step.py"
TRAINING_LAUNCHES = 843
PRESET = 9 | lzma.PRESET_EXTREME


class Recording(NamedTuple):
    """One report: which program is run, with what arguments of its own and of ncu's, and which exports are kept."""

    topic: str
    program: str
    arguments: tuple[str, ...]
    options: tuple[str, ...]
    exports: tuple[str, ...]


# What each export asks of ``ncu --import FILE``; the name becomes part of the file's name.
EXPORTS: dict[str, tuple[str, ...]] = {
    "details": ("--page", "details"),
    "details_all": ("--page", "details", "--print-details", "all"),
    "raw": ("--page", "raw"),
    "raw_base": ("--page", "raw", "--print-units", "base"),
    "raw_function": ("--page", "raw", "--print-kernel-base", "function"),
    "raw_mangled": ("--page", "raw", "--print-kernel-base", "mangled"),
    "raw_instances": ("--page", "raw", "--print-metric-instances", "details"),
    "raw_nvtx_rename": ("--page", "raw", "--print-nvtx-rename", "kernel"),
    "source": ("--page", "source"),
    "source_sass": ("--page", "source", "--print-source", "sass"),
    "source_cuda": ("--page", "source", "--print-source", "cuda"),
    "source_cuda_sass": ("--page", "source", "--print-source", "cuda,sass"),
    "session": ("--page", "session"),
}


def recordings() -> Iterator[Recording]:
    """The rows of tests/cuda/reports.csv."""
    for row in tools.rows_of(SOURCES / "reports.csv"):
        arguments, options, exports = (tuple(row[one].split()) for one in ("arguments", "options", "exports"))
        exports = tuple(EXPORTS) if exports == ("all",) else exports
        yield Recording(row["topic"], row["program"], arguments, options, exports)


@dataclass
class Outcome:
    """What became of one report: for the summary table."""

    topic: str
    seconds: float = 0.0
    report_bytes: int = 0
    packed_bytes: int = 0
    launches: int = 0
    problems: list[str] = field(default_factory=list)


def execute(command: tuple[str, ...], timeout: float) -> subprocess.CompletedProcess[str]:
    """Run in the build folder, to the end or to the timeout."""
    return tools.run_to_end(command, timeout, folder=BUILD, grace=8.0)


def build_programs() -> list[str]:
    """Compile every program of tests/cuda, all at once; return the messages of those that failed."""
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(SOURCES, BUILD / "cuda")
    sources = {source.stem: source.name for source in sorted((BUILD / "cuda").glob("*.cu"))} | ODD_SOURCES
    commands = {
        name: (*NVCC, "-lineinfo", "-o", str(BUILD / name), str(BUILD / "cuda" / path))
        for name, path in sources.items()
    }
    name = "gemm_ladder_no_lineinfo"
    commands[name] = (*NVCC, "-o", str(BUILD / name), str(BUILD / "cuda" / "gemm_ladder.cu"))
    return tools.compiled(commands)


def record(recording: Recording, timeout: float) -> tuple[Outcome, Path]:
    """Profile one program; return the outcome and the path of the (uncompressed) report."""
    outcome = Outcome(recording.topic)
    report = BUILD / f"{recording.topic}.ncu-rep"
    program = (str(BUILD / recording.program), *recording.arguments)
    result = profiled(outcome, (*recording.options, "--export", str(report), *program), report, timeout)
    if result.returncode != 0:
        outcome.problems.append(f"ncu ended with {result.returncode}")
    outcome.problems += [one for one in tools.complaints_of(result) if "unmodified GPU clocks" not in one]
    if not report.exists():
        outcome.problems.append("no report written")
    return outcome, report


def profiled(
    outcome: Outcome, options: tuple[str, ...], report: Path, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run ncu; time, launches and size of the report go into ``outcome``."""
    started = time.monotonic()
    result = execute((*NCU, *options), timeout)
    outcome.seconds, outcome.launches = time.monotonic() - started, tools.launches_of(result)
    outcome.report_bytes = report.stat().st_size if report.exists() else 0
    return result


def export(report: Path, name: str, folder: Path) -> tuple[int, str]:
    """Let ncu print one page of ``report`` as CSV into ``folder``; return the compressed size and a problem."""
    result = execute(("ncu", "--import", str(report), "--csv", *EXPORTS[name]), 120)
    if result.returncode != 0 or not result.stdout.strip():
        return 0, f"{name}: {(result.stderr or result.stdout or 'printed nothing').strip().splitlines()[0]}"
    text = BUILD / f"{report.stem}.{name}.csv"
    text.write_text(result.stdout, encoding="utf-8")
    return compress(text, folder / f"{report.stem}.{name}.csv.xz", preset=PRESET), ""


def pack(outcome: Outcome, report: Path, exports: tuple[str, ...], folder: Path) -> None:
    """Compress a report and its exports into ``folder``; sizes and problems go into ``outcome``."""
    outcome.packed_bytes += compress(report, folder / f"{report.name}.xz", preset=PRESET)
    for name in exports:
        size, problem = export(report, name, folder)
        outcome.packed_bytes += size
        if problem:
            outcome.problems.append(problem)


def training(topic: str, launches: int, timeout: float) -> tuple[Outcome, Path]:
    """Profile ``launches`` kernels of the training loop with the basic set (about 560 metrics a launch)."""
    outcome = Outcome(topic)
    report = BUILD / f"{topic}.ncu-rep"
    steps = launches // 100 + 2  # more than enough; ncu ends the program after the last launch
    command = (
        "--set", "basic", "--nvtx", "--profile-from-start", "off", "--launch-count", str(launches),
        "--kill", "yes", "--export", str(report), sys.executable, str(BUILD / "cuda" / TRAINING), str(steps),
    )  # fmt: skip
    result = profiled(outcome, command, report, timeout)
    # "--kill yes" ends the program with a signal once all launches are profiled: no failure.
    if outcome.launches < launches:
        outcome.problems.append(f"ncu {tools.ended(result)}")
    return outcome, report


def summary(outcomes: list[Outcome], elapsed: float) -> str:
    """A table of one line per report."""
    lines = [f"{'report':26} {'launches':>8} {'seconds':>8} {'report MB':>10} {'packed KB':>10}  problems"]
    for outcome in outcomes:
        lines.append(
            f"{outcome.topic:26} {outcome.launches:8d} {outcome.seconds:8.1f} {outcome.report_bytes / 1e6:10.2f} "
            f"{outcome.packed_bytes / 1e3:10.1f}  {'; '.join(outcome.problems)[:160]}"
        )
    total = sum(outcome.packed_bytes for outcome in outcomes)
    lines.append(f"{len(outcomes)} reports, {total / 1e6:.2f} MB packed, {elapsed:.0f} s")
    return "\n".join(lines)


def main() -> int:
    """Record everything within the budget; return 1 if a report is missing."""
    parser = tools.options_of(__doc__)
    parser.add_argument("output", type=Path, help="folder to write into")
    parser.add_argument("--budget", type=float, default=360.0, help="seconds for everything (default: 360)")
    parser.add_argument("--only", nargs="+", metavar="TOPIC", help="record these topics alone")
    parser.add_argument("--skip", nargs="+", default=[], metavar="TOPIC", help="do not record these topics")
    options = parser.parse_args()
    budget = tools.Recording(options.budget)
    data, large = options.output.resolve() / "tests_data", options.output.resolve() / "large"
    data.mkdir(parents=True, exist_ok=True)
    large.mkdir(parents=True, exist_ok=True)
    for message in build_programs():
        print("build failed:", message)
    torch = tools.first((sys.executable, "-c", "import torch; print(torch.__version__)"), r"(\S+)")
    made_by = {**tools.versions(), "python": sys.version.split()[0], "torch": torch}
    (data / "tools.json").write_text(json.dumps(made_by, indent=2) + "\n", encoding="utf-8")

    def wanted(topic: str) -> bool:
        return topic not in options.skip and (not options.only or topic in options.only)

    chosen = [entry for entry in recordings() if wanted(entry.topic)]
    outcomes: list[Outcome] = []
    # Profiling needs the GPU for itself; exports and compression run beside it on the other cores.
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 2)) as pool:
        packing: list[Future[None]] = []
        for entry in chosen:
            if budget.left() < 20:
                outcomes.append(Outcome(entry.topic, problems=["no time left"]))
                continue
            outcome, report = record(entry, min(60.0, budget.left()))
            outcomes.append(outcome)
            budget.say(entry.topic)
            if report.exists():
                packing.append(pool.submit(pack, outcome, report, entry.exports, data))
        for topic, launches, folder, exports in (
            ("train_100", 100, data, ("details", "raw")),
            ("train_800", TRAINING_LAUNCHES, large, ("raw",)),
        ):
            if not wanted(topic) or budget.left() < 40:
                continue
            # What is left, less the time that exporting and compressing the report will take.
            outcome, report = training(topic, launches, budget.left() - 30)
            outcomes.append(outcome)
            budget.say(topic)
            if report.exists():
                packing.append(pool.submit(pack, outcome, report, exports, folder))
        for task in packing:
            task.result()
    print(summary(outcomes, time.monotonic() - budget.started))
    return int(any(outcome.report_bytes == 0 for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
