#!/usr/bin/env python3
"""Measure what `gemmprof explain` predicts with on this machine's GPU, and print its entry for gemmprof/gpu/chips.csv.

Builds tests/cuda/ceilings, times every ceiling with a cold L2 (half a minute on an H200) and writes
OUTPUT/ceilings.json. Needs nvcc and a GPU of compute capability 7.0 or later; Nsight Compute is not needed.
The latencies that a stream of loads sees are longer than those of a chain of dependent ones, as they are in
tests/data/ceilings/h200.json: what is printed for a new GPU is the recorded chip's figure times the ratio of the
two chains.

Usage: measure_ceilings.py OUTPUT [--arch native] [--recorded CEILINGS.json]
       measure_ceilings.py --entry CEILINGS.json
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import ROOT, device, lines_of, options_of

from gemmprof.gpu.arch import MEASURED

CUDA = ROOT / "tests" / "cuda"
RECORDED = ROOT / "tests" / "data" / "ceilings" / "h200.json"
NVCC = ("nvcc", "-O3", "-std=c++17", "-diag-suppress=128,177")
FFMA_CYCLES = 4.0
"""From one FFMA to the next that needs it, on every chip since Volta: what turns times into cycles."""
MOST_SECONDS = 300.0

Times = Mapping[tuple[str, int], float]
"""Nanoseconds of one operation by ceiling and size."""


def measured(arch: str) -> dict[str, Any]:
    """Build and time every ceiling."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "ceilings")
        sources = [str(CUDA / "pairs" / "main.cu"), str(CUDA / "ceilings" / "ceilings.cu")]
        include = str(ROOT / "kernels" / "include")
        subprocess.run([*NVCC, f"-arch={arch}", "-I", include, "-o", program, *sources], check=True)

        def said(word: str) -> list[dict[str, Any]]:
            told = subprocess.run(
                [program, word], check=True, capture_output=True, text=True, timeout=MOST_SECONDS
            )
            return lines_of(told.stdout)

        listed, timed = said("list"), said("time")
    units = {one["family"]: one["kernel"] for one in listed}
    empty = next((one["empty_launch_ns"] for one in timed if "empty_launch_ns" in one), 0.0)
    rows = [
        {"ceiling": one["family"], "size": one["size"], "unit": units[one["family"]], "amount": one["amount"],
         "time_ns": one["time_ns"], "spread": one["spread"]}
        for one in timed if "family" in one
    ]  # fmt: skip
    return {"format": "gemmprof.ceilings/1", "device": device(), "empty_launch_ns": empty, "ceilings": rows}


def times(content: Mapping[str, Any]) -> Times:
    """Nanoseconds of one operation, the launch taken off."""
    empty = content.get("empty_launch_ns", 0.0)
    return {
        (one["ceiling"], one["size"]): max(0.0, one["time_ns"] - empty) / one["amount"]
        for one in content["ceilings"]
    }


def cycles(found: Times, ceiling: str, size: int) -> float:
    """Cycles of one dependent operation."""
    return FFMA_CYCLES * found[ceiling, size] / found["latency_ffma", 1024]


def entry(content: Mapping[str, Any], recorded: Mapping[str, Any]) -> dict[str, float]:
    """The latencies of a chip, by the names of `Practice`."""
    now, then = times(content), times(recorded)

    def scaled(value: float, ceiling: str, size: int) -> float:
        return round(value * cycles(now, ceiling, size) / cycles(then, ceiling, size), 1)

    fewest, most = cycles(now, "barrier_alone", 32), cycles(now, "barrier_alone", 1024)
    return {
        "shared_cycles": scaled(MEASURED.shared_cycles, "latency_shared", 8192),
        "l1_cycles": scaled(MEASURED.l1_cycles, "latency_global", 16),
        "l2_cycles": scaled(MEASURED.l2_cycles, "latency_global", 8192),
        "dram_cycles": scaled(MEASURED.dram_cycles, "latency_global", 1 << 20),
        "atomic_cycles": scaled(MEASURED.atomic_cycles, "latency_global", 8192),
        "barrier_cycles": round(fewest, 1),
        "barrier_warp_cycles": round((most - fewest) / 31.0, 2),
    }


def main() -> int:
    """Measure and write, or read what was measured; print the entry."""
    parser = options_of(__doc__)
    parser.add_argument("output", type=Path, nargs="?", help="folder to write ceilings.json into")
    parser.add_argument("--arch", default="native", help="nvcc's -arch (default: native)")
    then = "what was measured on the recorded chip"
    parser.add_argument("--recorded", type=Path, default=RECORDED, help=then)
    only = "measure nothing: print its entry"
    parser.add_argument("--entry", type=Path, metavar="CEILINGS.json", help=only)
    options = parser.parse_args()
    if (options.output is None) == (options.entry is None):
        parser.error("give a folder to write into, or --entry with a file")
    if options.entry is not None:
        content = json.loads(options.entry.read_text("utf-8"))
    else:
        content = measured(options.arch)
        options.output.mkdir(parents=True, exist_ok=True)
        path = options.output / "ceilings.json"
        path.write_text(json.dumps(content, indent=0) + "\n", "utf-8")
        print(f"Wrote {path}")
    values = entry(content, json.loads(options.recorded.read_text("utf-8")))
    print(f"{content['device']}: {' '.join(f'{name}={value}' for name, value in values.items())}")
    for one in content["ceilings"]:
        if one["unit"] in ("bytes", "operations"):
            rate = f"{one['amount'] / one['time_ns']:.4g} {one['unit']}/ns"
            print(f"    {one['ceiling']} {one['size']}: {rate}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
