#!/usr/bin/env python3
"""Record how much the same kernels differ from run to run, on a machine with an NVIDIA GPU, nvcc and Nsight Compute.

Builds the program of tests/cuda/noise (kernels of all kinds, 2 µs to 50 ms), collects it again and again, each time in
a process of its own, as it is and with 1, 2, 5 and 10 % more work, and times it without the profiler, too. Only the
standard library is used.
What ``gemmprof diff`` knows of noise, and the table of its errors in docs/comparison.md, come from these collections
(tools/learn_noise.py).

Usage: record_noise.py OUTPUT [--budget SECONDS]

Writes OUTPUT/<collection>.ncu-rep.xz, OUTPUT/<timed run>.csv and OUTPUT/noise.json (tools, order, what failed).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from recording import ROOT, Recording, compiled, compress, ended, options_of, run_to_end, versions

SOURCES = ROOT / "tests" / "cuda" / "noise"
# Reports keep the paths of sources and programs: build in a place that is the same on every machine.
BUILD = Path("/tmp/gemmprof-noise")
NVCC = ("nvcc", "-O3", "-std=c++17", "-arch=sm_90")
# Clock control would change the settings of a GPU that may be shared.
NCU = ("ncu", "--clock-control", "none", "--force-overwrite", "--profile-from-start", "off")
LIGHT = (
    "--section",
    "LaunchStats",
    "--metrics",
    "gpu__time_duration.sum,gpc__cycles_elapsed.max,gpc__cycles_elapsed.avg.per_second,"
    "dram__cycles_elapsed.avg.per_second,sm__cycles_active.avg,smsp__inst_executed.sum,"
    "dram__bytes_read.sum,dram__bytes_write.sum,lts__t_sectors.sum",
)
BASIC = ("--set", "basic", "--metrics", "smsp__inst_executed.sum")
LIMITS = (
    "--metrics",
    "gpu__time_duration.sum,gpc__cycles_elapsed.max,sm__throughput.avg.pct_of_peak_sustained_elapsed,"
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed,smsp__inst_executed.sum",
)
CODE_CHANGED = "sine,stencil,product_tiled,normalise<1024>,local_array"
MORE_WORK = (1010, 1020, 1050, 1100)
ROUNDS = 3
LAUNCHES = 12


@dataclass(frozen=True)
class Collection:
    """One process: under ncu with these options, or (``options`` empty) timed with CUDA events."""

    name: str
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = LIGHT
    program: str = "noise"


def plan() -> Iterator[Collection]:
    """What to collect, the most needed first: a recording that runs out of time is still of use."""
    few = ("--only", CODE_CHANGED, "--launches", "6")
    for turn in range(ROUNDS):
        # Every second one launches the kernels in turns, as a training step does.
        order = ("--interleave",) if turn % 2 else ()
        yield Collection(f"base_{turn}", order)
        for work in MORE_WORK:
            yield Collection(f"more_{work - 1000:03}_{turn}", (*order, "--work", str(work)))
        yield Collection(f"timed_{turn}", ("--time", "0.05"), ())
        if turn == 0:
            yield Collection("limits_0", ("--launches", "1"), LIMITS)
            yield Collection("code_base", few, BASIC)
            yield Collection("code_renamed", few, BASIC, "noise_renamed")
            yield Collection("code_fewer_registers", few, BASIC, "noise_fewer_registers")
            yield Collection("timed_more_020_0", ("--time", "0.05", "--work", "1020"), ())
    for turn in range(ROUNDS, 2 * ROUNDS):
        yield Collection(f"base_{turn}", ("--interleave",) if turn % 2 else ())
        yield Collection(f"timed_{turn}", ("--time", "0.05"), ())
    yield Collection("basic_0", (), BASIC)
    yield Collection("base_6")
    yield Collection("base_7", ("--interleave",))
    yield Collection("basic_1", ("--interleave",), BASIC)


def build() -> None:
    """Compile the program, one with two kernels renamed and their lines moved, one with few registers."""
    BUILD.mkdir(parents=True, exist_ok=True)
    renamed = BUILD / "renamed"
    renamed.mkdir(exist_ok=True)
    (BUILD / "common.cuh").write_text((SOURCES.parent / "common.cuh").read_text())
    for file in SOURCES.iterdir():
        text = file.read_text()
        if file.name in ("compute.cu", "memory.cu"):
            text = "\n\n// The lines below stand two lines further down.\n" + text
            text = re.sub(r"\bsine(?=\(|<<<)", "waves", re.sub(r"\bstencil(?=\(|<<<)", "five_points", text))
        (renamed / file.name).write_text(text)
    jobs = {}
    for program, folder, flags in (
        ("noise", SOURCES, ()),
        ("noise_renamed", renamed, ()),
        ("noise_fewer_registers", SOURCES, ("-maxrregcount=32",)),
    ):
        for source in sorted(folder.glob("*.cu")):
            target = f"{program}.{source.stem}.o"
            jobs[target] = (*NVCC, *flags, "-c", str(source), "-o", str(BUILD / target))
    if failures := compiled(jobs):
        raise SystemExit("\n".join(failures))
    for program in ("noise", "noise_renamed", "noise_fewer_registers"):
        objects = [str(path) for path in sorted(BUILD.glob(f"{program}.*.o"))]
        subprocess.run((*NVCC, *objects, "-o", str(BUILD / program)), check=True)


def collect(one: Collection, output: Path, limit: float) -> Path:
    """Run one collection; returns the file that it wrote.

    Raises:
        RuntimeError: it failed (with 124: it took longer than ``limit`` seconds).
    """
    command: tuple[str, ...] = (str(BUILD / one.program), *one.arguments)
    target = output / f"{one.name}.csv"
    if one.options:
        target = BUILD / f"{one.name}.ncu-rep"
        command = (*NCU, *one.options, "-o", str(target), *command)
    done = run_to_end(command, limit, folder=BUILD)
    if done.returncode:
        raise RuntimeError(ended(done))
    if not one.options:
        target.write_text("kernel,repetition,milliseconds\n" + done.stdout)
    return target


def main() -> None:
    """Record until everything is there or the budget is spent."""
    parser = options_of(__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--budget", type=float, default=600.0, metavar="SECONDS")
    options = parser.parse_args()
    output: Path = options.output
    output.mkdir(parents=True, exist_ok=True)
    recording = Recording(options.budget)
    build()
    recording.say("built")
    record: dict[str, object] = {**versions(), "launches": LAUNCHES}
    collections: list[dict[str, object]] = []
    waiting: list[Future[int]] = []
    with ThreadPoolExecutor(os.cpu_count()) as packers:
        for one in plan():
            entry: dict[str, object] = {"name": one.name, "arguments": one.arguments, "at": time.time()}
            collections.append(entry)
            start = time.monotonic()
            try:
                if recording.left() < 10:
                    raise RuntimeError("no time left")
                file = collect(one, output, recording.left())
                if file.suffix == ".ncu-rep":
                    target = output / f"{file.name}.xz"
                    waiting.append(packers.submit(compress, file, target, preset=6))
            except RuntimeError as error:
                entry["failure"] = str(error)
            entry["seconds"] = round(time.monotonic() - start, 2)
            recording.say(f"{one.name} {entry.get('failure', '')}")
    for pending in waiting:
        pending.result()
    (output / "noise.json").write_text(json.dumps({**record, "collections": collections}, indent=1) + "\n")


if __name__ == "__main__":
    main()
