#!/usr/bin/env python3
"""Do what `explain` says beside the planted flaws, and see whether it comes true (docs/expert_reading.md).

The folders of tests/cuda/tried hold one program a statement, in CUDA C++ or Triton: the kernel as it is, and forms that
do what is said; each compares all results and prints its forms' times. What was said, and the times of the last run,
stand in statements.json, in the order of the programs. A form whose results differ is an error. Climbs
(tests/cuda/climbs) go on from there: a kernel as it is first written, what was said of it, then of what came of doing
that, and so on, beside an expert's form, which was written before anything was said.

Usage: try_statements.py [FOLDER …]   (needs nvcc, torch, Triton and a GPU; update_readme.py then writes the tables)
"""

from __future__ import annotations

import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import Any

from recording import ARCHITECTURE, ROOT, device, options_of, table_of

TRIED = ROOT / "tests" / "cuda" / "tried"
CLIMBS = ROOT / "tests" / "cuda" / "climbs"
STATEMENTS = "statements.json"
AS_IT_IS = "as_it_is"
EXPERT = "expert"  # so begin the names of all forms that were an expert's before anything was said
LEAST = 5  # % of the time from which on something came
ALIKE = 2e-3  # of the largest value: fast functions and another order of sums, no other results
LINE = re.compile(r"STMT (\S+) ([\d.]+) (\S+)")


def compiled(source: Path, folder: str) -> Path:
    """The program of a statement; one in Triton compiles its kernels itself."""
    if source.suffix == ".py":
        return source
    program = Path(folder) / source.stem
    flags = ("-O3", "-std=c++17", ARCHITECTURE, "-lineinfo", "-o", str(program))
    subprocess.run(["nvcc", *flags, str(source)], check=True)
    return program


def run(program: Path) -> dict[str, float]:
    """Microseconds of each form of a statement, the faster of two turns.

    Raises:
        ValueError: a form computes something else than the kernel as it is.
    """
    command = [sys.executable, program] if program.suffix == ".py" else [program]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    found: dict[str, float] = {}
    for name, time, off in LINE.findall(said):
        if not float(off) <= ALIKE:
            raise ValueError(f"{program.name}, {name}: results differ by {off}")
        found[name] = min(float(time), found.get(name, float("inf")))
    return found


def came(statement: Mapping[str, Any]) -> tuple[str, int]:
    """The fastest form that does no more than what is said, and the % of the time that it saves."""
    times = {name: time for name, time in statement["us"].items() if name not in statement["beyond"]}
    before = times.pop(AS_IT_IS)
    best = min(times, key=times.__getitem__)
    return best, round(100 * (1 - times[best] / before))


def table(*kinds: str, again: bool = False) -> str:
    """A table of docs/expert_reading.md, with what it says in all: of these folders what was drawn first, or again."""
    files = [json.loads((TRIED / kind / STATEMENTS).read_text("utf-8")) for kind in kinds]
    rows: list[tuple[object, ...]] = []
    off, inside, right = [], 0, 0
    for one in (one for file in files for one in file["statements"] if one.get("again", False) == again):
        form, saved = came(one)
        told = f"{one['cause']}: {one['told']} ({one['low']} to {one['high']})"
        rows.append((f"`{one['study']}`, {one['side']}", told, saved, form.replace("_", " ")))
        off.append(abs(saved - one["told"]))
        inside += one["low"] <= saved <= one["high"]
        right += saved >= LEAST
    count = len(off)
    lines = [
        *table_of("kernel | told, % of its time> | came> | form", rows),
        "",
        f"**{right} of {count} bring {LEAST} % or more; what is told is off by {statistics.fmean(off):.1f} points, "
        f"{inside} of {count} lie inside the interval** ({files[0]['gpu']}, {files[0]['date']}).",
    ]
    return "\n".join(lines)


def climbs(hands: str) -> tuple[str, str, int]:
    """The table of these hands' climbs in docs/expert_reading.md with what they say in all, and from that how much of
    the expert's gain comes in the median, and of how many; a form that gains nothing is no expert's.
    """
    files = [json.loads(file.read_text("utf-8")) for file in sorted(CLIMBS.glob(f"[{hands}]_*.json"))]
    rows: list[tuple[object, ...]] = []
    off, shares, inside, right, undone = [], [], 0, 0, 0
    for climb in (climb for file in files for climb in file["climbs"]):
        times, said = climb["us"], []
        start = after = times[AS_IT_IS]
        for step in climb["steps"]:
            told = f"{step['cause']} {step['told']}"
            if "forms" not in step:
                undone += 1
                said.append(f"{told} (not done)")
                continue
            best = min(times[form] for form in step["forms"])
            saved = round(100 * (1 - best / times[step["of"]]))
            said.append(f"{told} → {saved}")
            off.append(abs(saved - step["told"]))
            inside += step["low"] <= saved <= step["high"]
            right += saved >= LEAST
            after = min(after, best)
        expert = min(time for form, time in times.items() if form.startswith(EXPERT))
        if expert < start:
            shares.append(math.log(start / after) / math.log(start / expert))
        name = climb["program"][2:].replace("_", " ")
        us = (f"{time:.0f}" for time in (start, after, expert))
        share = f"{100 * shares[-1]:.0f}" if expert < start else "–"
        rows.append((name, "; ".join(said) or "nothing", *us, share))
    gained = f"{100 * statistics.median(shares):.0f} %"
    lines = [
        *table_of(
            "kernel | told → came, % of its time | as it is, µs> | after> | expert> | of the gain, %>", rows
        ),
        "",
        f"**{right} of {len(off)} steps bring {LEAST} % or more; what is told is off by {statistics.fmean(off):.1f} "
        f"points ({statistics.median(off):.0f} in the median), {inside} lie inside the interval; "
        f"{undone} could not be done. Of the logarithm of the expert's gain "
        f"{gained} come in the median, 90 % or more in "
        f"{sum(share >= 0.9 for share in shares)} of {len(shares)}** ({files[0]['gpu']}, {files[0]['date']}).",
    ]
    return "\n".join(lines), gained, len(shares)


def timed(file: Path, kind: str, sources: Sequence[Path]) -> None:
    """Compile and time every form of the programs of a record anew."""
    record = json.loads(file.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        programs = list(pool.map(compiled, sources, repeat(folder)))
        for one, program in zip(record[kind], programs, strict=True):
            one["us"] = run(program)
    record |= {"gpu": device(), "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    file.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main() -> int:
    """Compile and time every form anew."""
    options = options_of(__doc__)
    options.add_argument("folder", nargs="*", help="those of these folders (fixed, climbs …) instead of all")
    chosen = options.parse_args().folder
    for file in sorted([*TRIED.glob(f"*/{STATEMENTS}"), *CLIMBS.glob("*.json")]):
        if chosen and file.parent.name not in chosen:
            continue
        if file.parent != CLIMBS:
            timed(file, "statements", sorted(file.parent.glob("[0-9]*")))
            continue
        names = [climb["program"] for climb in json.loads(file.read_text("utf-8"))["climbs"]]
        timed(file, "climbs", [next(CLIMBS.glob(f"{name}.*")) for name in names])
    return 0


if __name__ == "__main__":
    sys.exit(main())
