#!/usr/bin/env python3
"""Pack what tools/record_noise.py recorded into tests/data/noise.

One table of all launches, one of all timings, and a few whole reports.

Usage: pack_noise.py FOLDER [FOLDER ...]    (one a machine)
"""

from __future__ import annotations

import csv
import io
import lzma
import shutil
import sys
from pathlib import Path

from recording import ROOT

from gemmprof.analysis.reading.report import read_report
from gemmprof.metrics import (
    DRAM_CLOCK,
    DURATION,
    ELAPSED_CYCLES,
    INSTRUCTIONS_EXECUTED,
    MEMORY_THROUGHPUT,
    SM_CLOCK,
    SM_THROUGHPUT,
)

TARGET = ROOT / "tests" / "data" / "noise"
WHOLE = ("base_0", "base_1", "more_020_0", "code_base", "code_renamed", "code_fewer_registers")
"""Reports that tests read as a user would."""
COLUMNS = {
    "ns": DURATION,
    "cycles": ELAPSED_CYCLES,
    "sm_hz": SM_CLOCK,
    "memory_hz": DRAM_CLOCK,
    "instructions": INSTRUCTIONS_EXECUTED,
    "compute_percent": SM_THROUGHPUT,
    "memory_percent": MEMORY_THROUGHPUT,
}


def main() -> None:
    """Read every collection, write the tables."""
    folders = [Path(argument) for argument in sys.argv[1:]]
    TARGET.mkdir(parents=True, exist_ok=True)
    launches, timings = io.StringIO(), io.StringIO()
    table, times = csv.writer(launches), csv.writer(timings)
    table.writerow(("collection", "lease", "kernel", "grid", *COLUMNS))
    times.writerow(("collection", "lease", "kernel", "repetition", "milliseconds"))
    for lease, folder in enumerate(folders):
        for path in sorted(folder.glob("*.ncu-rep.xz")):
            name = path.name.split(".")[0]
            if name in WHOLE:
                shutil.copyfile(path, TARGET / path.name)
            for profile in read_report(path, source=False, units=False, instances=False):
                values = (profile.number(metric) for metric in COLUMNS.values())
                grid = "x".join(map(str, profile.launch.grid))
                table.writerow(
                    (name, lease, profile.name, grid, *("" if v is None else f"{v:.7g}" for v in values))
                )
        for path in sorted(folder.glob("*.csv")):
            for row in list(csv.reader(path.read_text().splitlines()))[1:]:
                times.writerow((path.stem, lease, *row))
    for name, text in (("launches", launches), ("timings", timings)):
        (TARGET / f"{name}.csv.xz").write_bytes(lzma.compress(text.getvalue().encode(), preset=9))


if __name__ == "__main__":
    main()
