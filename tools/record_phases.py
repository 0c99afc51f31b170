#!/usr/bin/env python3
"""Record the kernels whose shape in time is known (tests/cuda/phases), and what samples over time cost to collect.

Usage: record_phases.py OUTPUT [--only REPORT ...] [--budget SECONDS] [--built]
       record_phases.py --build     compile only, to be carried to a machine with a GPU, where --built takes it

Writes OUTPUT/phases/*.ncu-rep.xz and OUTPUT/phases/costs.json (passes and seconds of each set with and without samples
over time): copy the folder to tests/data. OUTPUT/large/ holds the stall reasons of all kernels over time, too large for
the repository.
"""

from __future__ import annotations

import json
import lzma
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import recording
from record_pairs import NVCC
from recording import ARCHITECTURE, ROOT, compress, passes_of, run_to_end

from gemmprof import metrics
from gemmprof.gpu.devices import ncu_installation
from gemmprof.profiler.ncu.command import write_lean_sections

# Reports keep the paths of sources: build in a place that is the same on every machine.
BUILD = Path("/tmp/gemmprof-phases")
NCU = ("ncu", "--clock-control", "none", "--force-overwrite", "--import-source", "yes")
WARP_STATES = "PmSampling_WarpStates"
# In the repository; the others are too large.
KEPT = ("phases", "graph", "host_reads", "debug_build", "stalls")


def build() -> None:
    """Compile the programs, ``host_reads`` a second time as a debug build."""
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir()
    shutil.copytree(ROOT / "tests" / "cuda" / "phases", BUILD / "cuda" / "phases")
    shutil.copy(ROOT / "tests" / "cuda" / "common.cuh", BUILD / "cuda")
    for program, source, options in (
        ("phases", "phases", ("-I", str(ROOT / "kernels" / "include"))),
        ("host_reads", "host_reads", ()),
        ("host_reads_debug", "host_reads", ("-G",)),
    ):
        command = (*NVCC, ARCHITECTURE, *options, "-o", program, f"cuda/phases/{source}.cu")
        subprocess.run(command, check=True, cwd=BUILD)


class Recording(recording.Recording):
    """Everything that is recorded, until the budget is spent."""

    def __init__(self, folder: Path, budget: float) -> None:
        super().__init__(budget)
        self.folder = folder
        self.costs: list[dict[str, Any]] = []

    def profile(self, name: str, options: tuple[str, ...], *program: str) -> None:
        """One report, its passes and seconds."""
        report = BUILD / f"{name}.ncu-rep"
        report.unlink(missing_ok=True)
        started = time.monotonic()
        result = run_to_end((*NCU, *options, "--export", str(report), *program), self.left(), folder=BUILD)
        seconds = round(time.monotonic() - started, 2)
        passes = passes_of(result)
        self.costs.append({"report": name, "launches": len(passes), "passes": passes, "seconds": seconds})
        self.say(f"{name}: {len(passes)} launches, {sum(passes)} passes, {seconds} s")
        if result.returncode or not report.exists():
            self.problem(f"{name}: ncu ended with {result.returncode}: {recording.complaints_of(result)[:3]}")
        else:
            target = self.folder / ("phases" if name in KEPT else "large") / f"{name}.ncu-rep.xz"
            compress(report, target, preset=9 | lzma.PRESET_EXTREME if name in KEPT else 6)


def reports(lean: Path, unsampled: Path) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """What is recorded: the program's command and ncu's options, by the name of the report."""
    of_lean = ("--section-folder", str(lean))
    sampled = (*of_lean, *metrics.collection_options())
    # What a graph as a whole is profiled with: ncu refuses what needs a patched kernel.
    of_graph = ("--graph-profiling", "graph", "--set", "basic", "--section", "PmSampling")
    over_time = ("--section", "PmSampling", "--section", WARP_STATES)
    few = ("./phases", "tail_quarter_wave", "three_phases", "tiles_with_epilogues", "clock_drop")
    return {
        "phases": (("./phases",), sampled),
        "graph": (("./phases", "graph"), of_graph),
        "host_reads": (("./host_reads",), sampled),
        "debug_build": (("./host_reads_debug",), sampled),
        "stalls": (("./phases", "serial_middle", "three_phases"), (*sampled, "--section", WARP_STATES)),
        "over_time": (("./phases",), over_time),
        "over_time_fine": (("./phases", "clock_drop"), (*over_time, "--pm-sampling-interval", "1000")),
        "lean_sampled_few": (few, sampled),
        "lean_unsampled_few": (few, (*of_lean, *metrics.collection_options(timeline=False))),
        "full_few": (few, ("--set", "full")),
        "full_unsampled_few": (few, ("--section-folder", str(unsampled), "--set", "full")),
    }


def main() -> int:
    """Record; return 1 where something failed, after saving all that did not."""
    parser = recording.options_of(__doc__)
    parser.add_argument("output", type=Path, nargs="?", help="folder to write into")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds for everything (default: 300)")
    parser.add_argument("--only", nargs="+", metavar="REPORT", help="record these alone")
    parser.add_argument("--build", action="store_true", help="compile only")
    parser.add_argument("--built", action="store_true", help="take what --build has compiled")
    options = parser.parse_args()
    if options.build or not options.built:
        build()
    if options.build:
        return 0
    folder = options.output.resolve()
    for part in ("phases", "large"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    installation = ncu_installation()
    if installation is None:
        sys.exit("no installation of Nsight Compute was found")
    with tempfile.TemporaryDirectory(prefix="gemmprof-sections-") as sections:
        lean, unsampled = Path(sections) / "lean", Path(sections) / "unsampled"
        for copy, without in ((lean, metrics.LEAN_WITHOUT), (unsampled, ())):
            copy.mkdir()
            write_lean_sections(installation / "sections", copy, without)
        made = Recording(folder, options.budget)
        plain = run_to_end(("./phases",), 60, folder=BUILD)
        kernels = recording.lines_of(plain.stdout)
        print(plain.stdout + plain.stderr)
        for name, (command, arguments) in reports(lean, unsampled).items():
            if not options.only or name in options.only:
                made.profile(name, arguments, *command)
    document = {**recording.versions(), "kernels": kernels, "costs": made.costs}
    (folder / "phases" / "costs.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return int(bool(made.problems))


if __name__ == "__main__":
    sys.exit(main())
