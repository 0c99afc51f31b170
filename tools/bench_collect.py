"""Wall time of `gemmprof collect` against the usual way: one `ncu --set full` process for each stage.

    python tools/bench_collect.py [--shape 4096] [--stage 0-6 …] [--json FILE] [--keep FOLDER]

Both run on the same machine one after the other. The usual way only profiles: it neither verifies nor times nor
renders, and starts Python and torch once for each stage.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from recording import ended, options_of

from gemmprof.kernels.build import build
from gemmprof.kernels.catalog import SINGLE
from gemmprof.model import Problem, Stage
from gemmprof.profiler.job import Job, Task
from gemmprof.profiler.ncu.command import NcuCommand, NcuLog, require_ncu
from gemmprof.profiler.settings import select_stages


def timed(command: list[str]) -> float:
    """Seconds that a command takes.

    Raises:
        SystemExit: if it fails.
    """
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[:4])} … {ended(done)}")
    return time.perf_counter() - started


def collect_seconds(stages: Sequence[Stage], problem: Problem, folder: Path) -> float:
    """Seconds of `gemmprof collect` for these stages: verify, time, profile, render."""
    command = [sys.executable, "-m", "gemmprof", "collect", "--shape", problem.key]
    for stage in stages:
        command += ["--stage", stage.name]
    return timed([*command, "--output", str(folder / "collect")])


def one_process_seconds(stage: Stage, problem: Problem, folder: Path) -> tuple[float, int, int]:
    """Seconds, replay passes and report size of one `ncu --set full` process for one stage."""
    ncu = require_ncu()
    report = folder / f"full-{stage.name}.ncu-rep"
    job_file, log = report.with_suffix(".job"), report.with_suffix(".log")
    # A run directory without a lock: the workload then never stops early.
    job = Job(
        (Task(stage.number, problem),), folder / "nowhere", report.with_suffix(".events"), folder / "stop"
    )
    job.save(job_file)
    command = NcuCommand(
        executable=ncu.path,
        report=report,
        log=log,
        collection=("--set", "full"),
        program=(sys.executable, "-m", "gemmprof.profiler.workload", str(job_file)),
    )
    seconds = timed(command.arguments())
    passes = sum(kernel.passes for kernel in NcuLog.read(log).kernels)
    return seconds, passes, report.stat().st_size


def main() -> None:
    """Measure both ways and print a table."""
    parser = options_of(__doc__)
    parser.add_argument("--shape", default="4096")
    parser.add_argument(
        "--stage", action="append", help="a stage or range (default: all), as `collect` takes it"
    )
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    parser.add_argument("--keep", type=Path, help="keep run and reports in this folder")
    options = parser.parse_args()
    problem = Problem.parse(options.shape)
    stages = select_stages(options.stage) if options.stage else SINGLE.stages
    build()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        whole = collect_seconds(stages, problem, folder)
        print(f"gemmprof collect, {len(stages)} stages, --shape {problem.key}: {whole:.1f} s", flush=True)
        rows, usual = [], 0.0
        for stage in stages:
            seconds, passes, size = one_process_seconds(stage, problem, folder)
            rows.append({"stage": stage.name, "seconds": seconds, "passes": passes, "bytes": size})
            print(
                f"ncu --set full, {stage.name:<12} {seconds:6.1f} s  {passes:3d} passes  {size / 1e6:5.1f} MB",
                flush=True,
            )
            usual += seconds
    print(f"one ncu --set full process a stage: {usual:.1f} s, {usual / whole:.1f} times as long")
    if options.json:
        figures = {"shape": problem.key, "collect_seconds": whole, "usual_seconds": usual, "stages": rows}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
