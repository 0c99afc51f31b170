#!/usr/bin/env python3
"""Record the programs of tests/cuda/programs on this machine's GPU, before and after an expert's proposals.

Times first, outside the profiler: all variants of a program in turns in one process (wall time of a step, and the sum
of its kernels), with a trace of torch's profiler of each. Then one step of the first variant of each under ncu.
Compilers run beside one another; the GPU is one program's at a time. docs/programs.md has what came of it.

Usage: record_programs.py OUTPUT [--budget SECONDS] [--only PROGRAM ...] [--timed PROGRAM ...] [--dry-run]
       record_programs.py --build            compile the C++ programs into build/programs, to be carried along

Writes OUTPUT/measured.json, OUTPUT/reports.tar (xz-compressed reports) and OUTPUT/traces.tar. Only the standard library
is needed here; four of the programs need PyTorch, one of them Triton.
"""

from __future__ import annotations

import fcntl
import json
import lzma
import os
import shutil
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import recording
from recording import ARCHITECTURE, ROOT, compiled, compress, ended, run_to_end

SOURCES = ROOT / "tests" / "cuda" / "programs"
PREBUILT = ROOT / "build" / "programs"
# Reports keep the paths of sources and programs: the same on every machine.
BUILD = Path("/tmp/gemmprof-programs")
NVCC = ("nvcc", "-O3", "-std=c++20", ARCHITECTURE, "-lineinfo")
NCU = ("ncu", "--clock-control", "none", "--force-overwrite", "--nvtx", "--profile-from-start", "off")
LEAN = ("SpeedOfLight", "LaunchStats", "Occupancy")
DEEP = (
    *(*LEAN, "SourceCounters", "WarpStateStats", "SchedulerStats", "InstructionStats"),
    *("ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables"),
)
TRAFFIC = "dram__bytes_read.sum,dram__bytes_write.sum"
# What the sums and the order of the launches are read from. A pass takes ncu 38 ms whatever it counts, and throughputs
# with their parts six: of hundreds of launches they would be minutes.
FEW = f"gpu__time_duration.sum,gpc__cycles_elapsed.max,sm__cycles_active.avg,sm__cycles_active.max,{TRAFFIC}"


@dataclass(frozen=True)
class Recording:
    """One report of a variant.

    Attributes:
        what: ``deep``: with counters by instruction; ``lean``: as ncu's basic set; ``few``: of hundreds of launches.
    """

    program: str
    variant: str = "base"
    what: str = "lean"

    @property
    def name(self) -> str:
        """Of its file."""
        return self.program if self.variant == "base" else f"{self.program}_{self.variant}"

    @property
    def python(self) -> bool:
        """Whether it is a program in Python."""
        return (SOURCES / f"{self.program}.py").exists()

    def command(self, *arguments: str) -> list[str]:
        """The program with these arguments."""
        if self.python:
            return [sys.executable, str(BUILD / "source" / f"{self.program}.py"), *arguments]
        return [str(BUILD / self.program), *arguments]

    def ncu(self, report: Path) -> list[str]:
        """The program under ncu."""
        sections, metrics = {
            "deep": (DEEP, ""), "lean": (LEAN, TRAFFIC), "few": (("LaunchStats", "Occupancy"), FEW)
        }[self.what]  # fmt: skip
        # A library's code is not the reader's, and fills megabytes; what people wrote themselves is read line by line.
        how = ["--import-sass", "no", "--metrics", metrics] if metrics else ["--import-source", "yes"]
        how += [word for name in sections for word in ("--section", name)]
        return [*NCU, *how, "--export", str(report), *self.command("profile", self.variant)]


# In the order in which they are wanted, should the time run out.
RECORDINGS = (
    Recording("train", what="few"),
    Recording("decode", what="few"),
    Recording("mixed", what="deep"),
    Recording("decode", "all", "few"),
    Recording("train", "all", "few"),
    Recording("diffusion", what="few"),
    Recording("triton_set", what="deep"),
    Recording("templates", what="deep"),
)
PROGRAMS = tuple(dict.fromkeys(one.program for one in RECORDINGS))


def copy_sources() -> Path:
    """The programs where reports may name them."""
    folder = BUILD / "source"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def build(folder: Path) -> list[str]:
    """Compile the C++ programs into ``folder``; return what failed."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = sorted(copy_sources().glob("*.cu"))
    return compiled({one.name: (*NVCC, "-o", str(folder / one.stem), str(one)) for one in sources})


class Session(recording.Recording):
    """What was found so far, written after each step, so that a machine that is taken away leaves what there is."""

    def __init__(self, folder: Path, budget: float, only: list[str], timed: list[str]) -> None:
        super().__init__(budget)
        self.folder, self.only, self.timed = folder, only, timed
        head = {"format": "gemmprof.programs/1", "gpu": recording.device()}
        self.found: dict[str, Any] = {**head, "measured": [], "reports": []}
        self.seconds: dict[str, float] = {}
        os.environ["GEMMPROF_PROGRAMS_LOCK"] = str(BUILD / "turn.lock")
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(BUILD / "inductor")
        os.environ["TRITON_CACHE_DIR"] = str(BUILD / "triton")

    def save(self) -> None:
        """Write what there is."""
        self.found |= {"problems": self.problems, "seconds": self.seconds}
        (self.folder / "measured.json").write_text(json.dumps(self.found, indent=1) + "\n", encoding="utf-8")

    def attempt(self, step: Callable[[Any], None], what: Any) -> None:
        """One step; what fails is a problem of its own, and the others go on."""
        try:
            step(what)
        except Exception as error:
            self.problem(f"{what}: {type(error).__name__}: {str(error)[:300]}")

    def measure(self, program: str) -> None:
        """Times of all variants, and traces."""
        one = Recording(program)
        target = BUILD / f"{program}.json"
        extra = ["--json", str(target), "--traces", str(BUILD / "traces")] if one.python else []
        result = run_to_end(one.command("measure", *extra), self.left() - 5, folder=BUILD)
        if said := result.stderr.strip():
            self.problem(f"{program}: {said[-600:]}")
        text = target.read_text("utf-8") if target.exists() else ""
        rows = json.loads(text) if one.python and text else recording.lines_of(result.stdout)
        self.found["measured"] += rows
        self.seconds[f"measure {program}"] = round(time.monotonic() - self.started, 1)
        self.save()

    def profile(self, one: Recording) -> None:
        """One report."""
        report = BUILD / "reports" / f"{one.name}.ncu-rep"
        if self.left() < 8:
            self.problem(f"no time left for {one.name}")
            return
        begun = time.monotonic()
        # Workers that compile would be under ncu as well; what is measured first has filled the caches.
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        with nullcontext() if one.python else alone():
            result = run_to_end(one.ncu(report), self.left() - 4, folder=BUILD)
        passes = recording.passes_of(result)
        self.seconds[f"ncu {one.name}"] = round(time.monotonic() - begun, 1)
        if not report.exists():
            self.problem(f"{one.name}: {ended(result)}")
            return
        size = compress(report, report.with_suffix(".ncu-rep.xz"), preset=9 | lzma.PRESET_EXTREME)
        report.unlink()
        self.found["reports"].append(
            {
                "report": one.name, "program": one.program, "variant": one.variant, "launches": len(passes),
                "passes": max(passes, default=0), "bytes": size, "rc": result.returncode,
            }
        )  # fmt: skip
        self.save()


@contextmanager
def alone() -> Iterator[None]:
    """The GPU for one program that takes no turns by itself."""
    with (BUILD / "turn.lock").open("w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def pack(folder: Path, target: Path) -> None:
    """The files of a folder as one archive; what they hold is compressed already."""
    with tarfile.open(target, "w") as archive:
        for path in sorted(folder.iterdir()):
            if path.suffix != ".ncu-rep":
                archive.add(path, path.name)


def record(session: Session) -> None:
    """Everything, as far as the time suffices."""
    chosen = [one for one in RECORDINGS if not session.only or one.program in session.only]
    programs = dict.fromkeys([*(one.program for one in chosen), *session.timed])
    with ThreadPoolExecutor(len(programs)) as pool:
        for program in programs:
            if Recording(program).python:
                pool.submit(session.attempt, session.measure, program)
    for program in programs:
        if not Recording(program).python:
            session.attempt(session.measure, program)
    # They import and compile for longer than they are profiled; the GPU is their lock's.
    with ThreadPoolExecutor(4) as pool:
        for one in chosen:
            pool.submit(session.attempt, session.profile, one)


def main() -> int:
    """Run."""
    parser = recording.options_of(__doc__)
    parser.add_argument("output", nargs="?", type=Path)
    parser.add_argument("--budget", type=float, default=150.0)
    parser.add_argument("--only", nargs="*", default=[], choices=PROGRAMS)
    parser.add_argument("--timed", nargs="*", default=[], choices=PROGRAMS, help="these without a report")
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--dry-run", action="store_true", help="print the commands")
    options = parser.parse_args()
    if options.dry_run:
        for one in RECORDINGS:
            print(*one.ncu(BUILD / "reports" / f"{one.name}.ncu-rep"))
        return 0
    if options.build or options.output is None:
        problems = build(PREBUILT)
        print("\n".join(problems) or f"built into {PREBUILT.relative_to(ROOT)}")
        return bool(problems)
    options.output.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(BUILD, ignore_errors=True)
    for name in ("reports", "traces"):
        (BUILD / name).mkdir(parents=True)
    copy_sources()
    session = Session(options.output, options.budget, options.only, options.timed)
    if PREBUILT.is_dir():
        for path in PREBUILT.iterdir():
            shutil.copy2(path, BUILD)
    else:
        session.problems += build(BUILD)
    try:
        record(session)
    finally:
        pack(BUILD / "reports", options.output / "reports.tar")
        pack(BUILD / "traces", options.output / "traces.tar")
        session.save()
    print(json.dumps({"problems": session.problems, "seconds": session.seconds}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
