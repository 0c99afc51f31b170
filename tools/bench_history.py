"""Make a store of a year of runs of many kernels and put it together; of one that is there, time what is said of it.

python tools/bench_history.py /tmp/year --series 4000 --runs 250     # makes it
python tools/bench_history.py /tmp/year                              # asks: a process without a store's memory
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from recording import options_of, peak_mb, processor_seconds

from gemmprof.analysis.history.changes import Origin, Point
from gemmprof.analysis.history.recording import COUNTERS
from gemmprof.reports.history.store import ROW_GROUP, WRITTEN, HistoryStore, table_of
from gemmprof.reports.tables.parquet import write_parquet

NOISE = 0.01
STEPS = 200
ROUNDS = 9
COMMANDS = {
    "one kernel": ("show", "kernel_00042<"),
    "steps of the last 10 runs": ("check", "--last", "10"),
    "every step": ("check",),
}


def make(folder: Path, series: int, runs: int) -> None:
    """Write one record a run; ``STEPS`` of the series have a step."""
    rng = np.random.default_rng(0)
    store = HistoryStore.open(folder, create=True)
    names = [f"void kernel_{at:05d}<float, {at % 128}, {at % 7}>(Params)" for at in range(series)]
    level = rng.uniform(5e3, 5e6, series)
    counted = rng.uniform(1e3, 1e9, (series, len(COUNTERS)))
    # Instructions and requests are the same in every run; what goes to memory varies a little.
    varied = 1e-4 * (np.arange(len(COUNTERS)) % 4 == 3)
    stepping = rng.choice(series, min(STEPS, series), replace=False)
    when = rng.integers(20, max(runs - 6, 21), len(stepping))
    code = np.zeros(series, int)
    tools = "Display Driver 580.95.05, CUDA 13.0, Nsight Compute Target 2025.3.1"
    for run in range(runs):
        changed = stepping[when == run]
        level[changed] *= rng.choice([0.9, 1.03, 1.1], len(changed))
        code[changed] += 1
        origin = Origin(datetime(2025, 1, 1, tzinfo=UTC) + timedelta(days=run), f"{run:09x}", "main", "ci-7")
        times = level * np.exp(rng.normal(0, NOISE, series))
        counts = np.round(counted * (1 + varied * rng.normal(0, 1, counted.shape)))
        clocks = 1.7e9 * np.exp(rng.normal(0, 0.001, series))
        points = []
        for at, name in enumerate(names):
            ns, kind = (round(times[at] / 32) * 32.0, "profiled") if at % 2 else (float(times[at]), "timed")
            of_card = name, "64x64x1", "NVIDIA H100 80GB HBM3", kind, origin, ns, 0.98 * ns, 1.03 * ns, 3
            clock = float(clocks[at])
            counters = dict(zip(COUNTERS, counts[at].tolist(), strict=True))
            digest = f"{at:08x}{code[at]:08x}"
            points.append(Point(*of_card, round(1.7 * ns), clock, 2.6e9, tools, digest, counters=counters))
        target = store.folder / "records" / f"run-{run:04d}.parquet"
        write_parquet(table_of(points), target, row_group=ROW_GROUP, **WRITTEN)


def ask(folder: Path) -> None:
    """Time whole commands, process start included, in turn."""
    took: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, arguments in COMMANDS.items():
            before = processor_seconds()
            command = [sys.executable, "-m", "gemmprof", "history", *arguments, "--store", str(folder)]
            if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode > 1:
                raise SystemExit(f"history {' '.join(arguments)} failed")
            took[name].append(processor_seconds() - before)
    for name, seconds in took.items():
        print(
            f"{name}: {min(seconds):.2f} s of processor time, {statistics.median(seconds):.2f} in the median"
        )
    print(f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3:,.0f} MB at most")


def main() -> None:
    """Make and put together, or ask."""
    parser = options_of(__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--series", type=int, default=4_000)
    parser.add_argument("--runs", type=int, default=250)
    options = parser.parse_args()
    if options.store.exists():
        ask(options.store)
        return
    make(options.store, options.series, options.runs)
    began, before = time.perf_counter(), processor_seconds(children=False)
    HistoryStore.open(options.store).compact()
    used, took = processor_seconds(children=False) - before, time.perf_counter() - began
    print(f"put together: {took:.1f} s, {used:.1f} s of processor time, {peak_mb(os.getpid()):,} MB at most")


if __name__ == "__main__":
    main()
