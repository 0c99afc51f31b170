#!/usr/bin/env python3
"""Record the test reports of tests/data on a machine with an NVIDIA GPU, nvcc and Nsight Compute.

Builds the small programs of tests/cuda, profiles each with ``ncu``, lets ncu export every report as CSV (the referee
that gemmprof's numbers are compared with) and compresses all of it with xz. Only the standard library is used; the
training step wants PyTorch in the Python that runs this script. One report that fails does not stop the others.

Usage: record_tests.py OUTPUT [--budget SECONDS] [--only TOPIC ...]

Writes what is to be copied to tests/data, and into OUTPUT/large what is too large for the repository (the training
step's 843 launches, for benchmarks).
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import recording as tools
from recording import ROOT, Recording, compress, ended

SOURCES = ROOT / "tests" / "cuda"
# Reports keep the paths of sources and programs: build in a place that is the same on every machine.
BUILD = Path("/tmp/gemmprof-tests")
NVCC = ("nvcc", "-O3", "-std=c++17", "-arch=sm_90", "--extended-lambda")
# Clock control would change the settings of a GPU that may be shared.
NCU = ("ncu", "--clock-control", "none", "--force-overwrite")
ODD_SOURCES = {"odd_path": "odd folder/kern&l 'q' é.cu", "odd_text": "odd folder/mark<b>up 'q'.cu"}
PRESET = 9 | lzma.PRESET_EXTREME
LARGE = 100e6  # bytes of a report that the repository does not keep
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


def execute(command: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
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


def record(row: Mapping[str, str], made: Recording) -> Path:
    """Profile the program of a row of tests/cuda/reports.csv; return where its report lies if it does."""
    report = BUILD / f"{row['topic']}.ncu-rep"
    python = row["program"].endswith(".py")
    program = (
        [sys.executable, str(BUILD / "cuda" / row["program"])] if python else [str(BUILD / row["program"])]
    )
    command = (*NCU, *row["options"].split(), "--export", str(report), *program, *row["arguments"].split())
    # "--kill yes" ends the program with a signal once all launches are profiled: no failure. It is long; what is left
    # behind it is for exporting and compressing the report.
    long = "--kill" in command
    result = execute(command, made.left() - 30 if long else min(60.0, made.left()))
    launches = tools.launches_of(result)
    if launches < int(command[command.index("--launch-count") + 1]) if long else result.returncode:
        made.problem(f"{row['topic']}: ncu {ended(result)}")
    for complaint in tools.complaints_of(result):
        if "unmodified GPU clocks" not in complaint:
            made.problem(f"{row['topic']}: {complaint}")
    made.say(f"{row['topic']}: {launches} launches")
    return report


def pack(report: Path, exports: Sequence[str], folder: Path) -> list[str]:
    """Compress a report and ncu's exports of it into ``folder``; return what went wrong."""
    compress(report, folder / f"{report.name}.xz", preset=PRESET)
    problems = []
    for name in exports:
        result = execute(("ncu", "--import", str(report), "--csv", *EXPORTS[name]), 120)
        if result.returncode != 0 or not result.stdout.strip():
            problems.append(f"{report.stem}, {name}: ncu {ended(result)}")
            continue
        text = BUILD / f"{report.stem}.{name}.csv"
        text.write_text(result.stdout, encoding="utf-8")
        compress(text, folder / f"{text.name}.xz", preset=PRESET)
    return problems


def main() -> int:
    """Record everything within the budget; return 1 if something went wrong."""
    parser = tools.options_of(__doc__)
    parser.add_argument("output", type=Path, help="folder to write into")
    parser.add_argument("--budget", type=float, default=360.0, help="seconds for everything (default: 360)")
    parser.add_argument("--only", nargs="+", metavar="TOPIC", help="record these topics alone")
    options = parser.parse_args()
    made, folder = Recording(options.budget), options.output.resolve()
    (folder / "large").mkdir(parents=True, exist_ok=True)
    for message in build_programs():
        made.problem(message)
    torch = tools.first((sys.executable, "-c", "import torch; print(torch.__version__)"), r"(\S+)")
    made_by = {**tools.versions(), "python": sys.version.split()[0], "torch": torch}
    (folder / "tools.json").write_text(json.dumps(made_by, indent=2) + "\n", encoding="utf-8")
    rows = tools.rows_of(SOURCES / "reports.csv")
    # Profiling needs the GPU for itself; exports and compression run beside it on the other cores.
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 2)) as pool:
        packing: list[Future[list[str]]] = []
        for row in (row for row in rows if not options.only or row["topic"] in options.only):
            if made.left() < 20:
                made.problem(f"{row['topic']}: no time left")
            elif (report := record(row, made)).exists():
                exports = list(EXPORTS) if row["exports"] == "all" else row["exports"].split()
                place = folder / "large" if report.stat().st_size > LARGE else folder
                packing.append(pool.submit(pack, report, exports, place))
        for problem in (problem for task in packing for problem in task.result()):
            made.problem(problem)
    return int(bool(made.problems))


if __name__ == "__main__":
    sys.exit(main())
