"""Make a store of a year of runs of many kernels, and time what `gemmprof history` says of it.

python tools/bench_history.py make /tmp/year --series 20000 --runs 365     # records, not put together yet
python tools/bench_history.py compact /tmp/year                             # puts them together: time and memory
python tools/bench_history.py time /tmp/year                                # the commands, best of nine each
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from recording import options_of

from gemmprof.analysis.history.recording import COUNTERS
from gemmprof.reports.history.store import COUNTER, ROW_GROUP, WRITTEN, HistoryStore
from gemmprof.reports.tables.parquet import write_parquet

NOISE = 0.01
STEPS = 200
COMMANDS = {
    "one kernel": ("show", "kernel_00042<"),
    "steps of the last 10 runs": ("check", "--last", "10"),
    "every step": ("check",),
}


def make(folder: Path, series: int, runs: int) -> None:
    """Write one record a run; ``STEPS`` of the series have a step."""
    rng = np.random.default_rng(0)
    store = HistoryStore.open(folder, create=True)
    numbers = np.sort(rng.choice((1 << 63) - 1, series, replace=False))
    names = [f"void kernel_{at:05d}<float, {at % 128}, {at % 7}>(Params)" for at in range(series)]
    level = rng.uniform(5e3, 5e6, series)
    counters = rng.uniform(1e3, 1e9, (len(COUNTERS), series))
    stepping = rng.choice(series, min(STEPS, series), replace=False)
    when = rng.integers(20, max(runs - 6, 21), len(stepping))
    codes = np.array([f"{value:016x}" for value in rng.integers(0, 1 << 62, series)])
    for run in range(runs):
        changed = stepping[when == run]
        level[changed] *= rng.choice([0.9, 1.03, 1.1], len(changed))
        codes[changed] = [f"{value:016x}" for value in rng.integers(0, 1 << 62, len(changed))]
        times = level * np.exp(rng.normal(0, NOISE, series))
        kinds = np.where(np.arange(series) % 2, "profiled", "timed")
        times = np.where(kinds == "profiled", np.round(times / 32) * 32, times)
        when_run = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(days=run)
        same = {
            "recorded_at": pa.scalar(when_run, pa.timestamp("us", "UTC")),
            "commit": f"{run:09x}",
            "branch": "main",
            "machine": "ci-7",
            "note": "",
            "tools": "Display Driver 580.95.05, CUDA 13.0, Nsight Compute Target 2025.3.1",
            "grid": "64x64x1",
            "device": "NVIDIA H100 80GB HBM3",
        }
        column = {name: pa.repeat(value, series) for name, value in same.items()}
        column |= {"series": pa.array(numbers), "kernel": pa.array(names), "kind": pa.array(kinds)}
        of_time = {"time_ns": 1.0, "low_ns": 0.98, "high_ns": 1.03}
        column |= {name: pa.array(times * factor) for name, factor in of_time.items()}
        column |= {"repetitions": pa.repeat(pa.scalar(3), series), "cycles": pa.array(np.round(times * 1.7))}
        column |= {"sm_clock_hz": pa.array(1.7e9 * np.exp(rng.normal(0, 0.001, series)))}
        column |= {"memory_clock_hz": pa.repeat(pa.scalar(2.6e9), series), "code": pa.array(codes)}
        column |= {
            # Instructions and requests are the same in every run; what goes to memory varies a little.
            f"{COUNTER}{name}": pa.array(np.round(values * (1 + rng.normal(0, 1e-4, series) * (at % 4 == 3))))
            for at, (name, values) in enumerate(zip(COUNTERS, counters, strict=True))
        }
        order = [
            "series",
            "recorded_at",
            "commit",
            "branch",
            "machine",
            "note",
            "kernel",
            "grid",
            "device",
            "kind",
        ]
        write_parquet(
            pa.table({name: column[name] for name in dict.fromkeys([*order, *column])}),
            store.folder / "records" / f"run-{run:04d}.parquet",
            row_group=ROW_GROUP,
            **WRITTEN,
        )


def compact(folder: Path) -> None:
    """Put the records together in this process; says what it took."""
    began = time.perf_counter()
    HistoryStore.open(folder).compact()
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        f"put together: {time.perf_counter() - began:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of processor time, "
        f"{used.ru_maxrss / 1e3:,.0f} MB at most"
    )


def clock(folder: Path, rounds: int) -> None:
    """Time whole commands, process start included, in turn."""
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, arguments in COMMANDS.items():
            began = time.perf_counter()
            child = subprocess.Popen(
                [sys.executable, "-m", "gemmprof", "history", *arguments, "--store", str(folder)],
                stdout=subprocess.DEVNULL,
            )
            _, status, used = os.wait4(child.pid, 0)
            if os.waitstatus_to_exitcode(status) > 1:
                raise SystemExit(f"history {' '.join(arguments)} failed")
            wall = time.perf_counter() - began
            taken[name].append((wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3))
    for name, rows in taken.items():
        walls = sorted(wall for wall, _, _ in rows)
        print(
            f"{name}: best {walls[0]:.2f} s, median {walls[len(walls) // 2]:.2f} s, "
            f"{min(cpu for _, cpu, _ in rows):.2f} s of processor time, {max(mb for *_, mb in rows):,.0f} MB"
        )


def main() -> None:
    """Do what was asked."""
    parser = options_of(__doc__)
    parser.add_argument("what", choices=("make", "compact", "time"))
    parser.add_argument("store", type=Path)
    parser.add_argument("--series", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=365)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    if options.what == "make":
        make(options.store, options.series, options.runs)
    elif options.what == "compact":
        compact(options.store)
    else:
        clock(options.store, options.rounds)


if __name__ == "__main__":
    main()
