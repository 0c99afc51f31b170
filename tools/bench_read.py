#!/usr/bin/env python3
"""Measure how fast reports are read, with NVIDIA's library one value at a time and with gemmprof, in one run.

Usage: bench_read.py [REPORT ...] [--launches N ...] [--json FILE]

Without a report, the recorded launches of a training step are read, and one report is made for each number of launches
by repeating the launches of a recorded report: every launch is a block of its own in the file, so that repeating blocks
gives a true report of any length. Prints wall and CPU seconds and the largest memory of each process of each way, and
the ratio of the two. Compressed reports are unpacked first, outside the measured time.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from recording import ROOT, options_of, peak_mb, processor_seconds

from gemmprof.ncurep import ncu_frame
from gemmprof.ncurep.ncu_messages_pb2 import KernelResult

DATA = ROOT / "tests" / "data"
REAL_REPORT = "train_100"  # a hundred launches of a PyTorch training step
SEED_REPORT = "names_nvtx"  # launches of about 560 metrics
FULL_REPORT = "flaws_cluster"  # one launch with everything
NATIVE_LAUNCHES = 1000
"""NVIDIA's library keeps some MB for every launch: with more than this it is left out."""

NATIVE = """
import sys, ncu_report
context, count = ncu_report.load_report(sys.argv[1]), 0
for part in context:
    for action in part:
        for name in action.metric_names():
            action.metric_by_name(name).value()
            count += 1
print(count)
"""
SCALARS = """
import sys
from gemmprof.analysis.reading.report import ReportReader
with ReportReader(sys.argv[1]) as reader:
    print(sum(len(p.metrics) for p in reader.profiles(instances=False, rules=False)))
"""
EXPORT = """
import sys
from gemmprof.reports.tables.export import export_tables
from gemmprof.base.system import without_modules
with without_modules("pandas"):  # as the command does
    print(export_tables([sys.argv[1]], sys.argv[2]).launches)
"""
ANALYSE = """
import sys, time
from gemmprof.analysis.kernel_analysis import analyse
from gemmprof.analysis.reading.report import read_report
started = time.perf_counter()
for profile in read_report(sys.argv[1]):
    analyse(profile).complete()
print(time.perf_counter() - started)
"""


@dataclass(frozen=True)
class Measured:
    """One way of reading: seconds of wall clock and of CPU, and the peak memory of each of its processes."""

    label: str
    wall: float
    cpu: float
    peaks_mb: tuple[int, ...]
    output: str

    def __str__(self) -> str:
        peaks = " + ".join(map(str, self.peaks_mb))
        return f"  {self.label:<46} {self.wall:7.2f} s  {self.cpu:7.2f} s CPU   {peaks} MB"


def descendants(pid: int) -> Iterator[int]:
    """This process and all below it."""
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return
    for child in children:
        yield from descendants(int(child))


def measure(label: str, program: str, *arguments: str, cache: Path) -> Measured:
    """Run a Python program in a process of its own and watch it and its children."""
    environment = {**os.environ, "GEMMPROF_CACHE": str(cache)}
    before = processor_seconds()
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )
    peaks: dict[int, int] = {}
    while process.poll() is None:
        for pid in descendants(process.pid):
            peaks[pid] = max(peaks.get(pid, 0), peak_mb(pid))
        time.sleep(0.005)
    wall = time.perf_counter() - started
    cpu = processor_seconds() - before
    assert process.stdout is not None
    output = process.stdout.read().strip()
    if process.returncode:
        raise SystemExit(f"{label}: exit code {process.returncode}")
    return Measured(label, wall, cpu, tuple(sorted((p for p in peaks.values() if p), reverse=True)), output)


def repeated(content: bytes, launches: int) -> Iterator[bytes]:
    """The parts of a report with this many launches, from the blocks of one with fewer."""

    def read(start: int, end: int) -> bytes:
        return content[start:end]

    position = ncu_frame.read_head(read, len(content))[1]
    yield content
    seeds: list[tuple[bytes, int]] = []
    for block in ncu_frame.blocks(read, position, len(content)):
        for item in ncu_frame.items(read, block, len(content)):
            if item.kind == "kernel":
                seeds.append((content[item.start : item.end], item.process))
    launches_of = [(KernelResult.FromString(message), process) for message, process in seeds]
    call = max(launch.call for launch, _ in launches_of)
    created = max(launch.created for launch, _ in launches_of)
    for number in range(launches - len(seeds)):
        launch, process = launches_of[number % len(seeds)]
        # The number of the call rises from launch to launch, and time does not go back, as in a report of ncu's.
        launch.call = call = call + 1
        launch.created = created
        # Fields that the message does not declare travel on. A name that is there and empty does not, and without one
        # NVIDIA's library passes over the launch.
        message = launch.SerializeToString() + (b"" if launch.demangled_name else b"\x3a\0")
        yield ncu_frame.block_bytes([message], kind="kernel", process=process)


def recorded(name: str) -> Path:
    """A report of the tests, as it is kept."""
    return DATA / f"{name}.ncu-rep.xz"


def unpacked_to(folder: Path, path: Path) -> Path:
    """The report itself, or its unpacked copy in the folder."""
    if path.suffix != ".xz":
        return path
    copy = folder / path.stem
    with lzma.open(path) as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target)
    return copy


def compare(report: Path, scratch: Path, *, native: bool) -> list[Measured]:
    """Read one report in all ways."""
    cold, out = scratch / f"cold-{report.stem}", str(scratch / "out")
    ways = [
        ("ncu_report, every value one by one", NATIVE, [], scratch / "cache"),
        ("gemmprof, every scalar, one process", SCALARS, [], scratch / "cache"),
        ("gemmprof export, 5 tables, Parquet, cold cache", EXPORT, [out], cold),
        ("gemmprof export, 5 tables, Parquet, warm cache", EXPORT, [out], cold),
    ]
    results = []
    for label, program, more, cache in ways if native else ways[1:]:
        results.append(measure(label, program, str(report), *more, cache=cache))
        print(results[-1], flush=True)
    if native:
        first, scalars, last = results[0], results[1], results[-1]
        assert int(first.output) >= int(scalars.output)
        print(
            f"  CPU time: scalars {first.cpu / scalars.cpu:.1f} times, export {first.cpu / last.cpu:.1f} times less"
        )
    return results


def main() -> None:
    """Measure and print."""
    parser = options_of(__doc__)
    parser.add_argument("reports", nargs="*", type=Path, help="reports of your own (.ncu-rep or .ncu-rep.xz)")
    parser.add_argument(
        "--launches", type=int, nargs="+", default=[843, 10000], help="lengths of the made reports"
    )
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    figures: dict[str, list[Measured]] = {}
    with tempfile.TemporaryDirectory(prefix="gemmprof-bench-") as folder:
        scratch = Path(folder)
        reports = [unpacked_to(scratch, path) for path in options.reports or [recorded(REAL_REPORT)]]
        native = set(reports)
        for launches in [] if options.reports else options.launches:
            path = scratch / f"made-{launches}.ncu-rep"
            with path.open("wb") as file:
                file.writelines(repeated(lzma.decompress(recorded(SEED_REPORT).read_bytes()), launches))
            reports.append(path)
            if launches <= NATIVE_LAUNCHES:
                native.add(path)
        for report in reports:
            print(f"{report.name}: {report.stat().st_size / 1e6:.0f} MB")
            figures[report.name] = compare(report, scratch, native=report in native)
        full = unpacked_to(scratch, recorded(FULL_REPORT))
        print(
            f"{full.name}: one launch with everything, read with source and analysed (seconds within the process)"
        )
        figures[full.name] = []
        for label in ("cold cache", "warm cache"):
            found = measure(f"gemmprof, {label}", ANALYSE, str(full), cache=scratch / "one")
            print(f"{found}   of which {float(found.output):.2f} s read and analyse", flush=True)
            figures[full.name].append(found)
    if options.json:
        document = {name: [asdict(entry) for entry in found] for name, found in figures.items()}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
