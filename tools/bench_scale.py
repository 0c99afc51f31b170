#!/usr/bin/env python3
"""Measure a data set of thousands of reports: a question, an export with nothing new, one report added.

Usage: bench_scale.py [--reports 10000] [--folder DIR]

Recorded reports are read once, 64 of them; the others are hard links to these, whose rows are copies of theirs under
their own names, so that a data set of any size takes a minute and little of the disk. Prints CPU seconds of each
command, its children's included, the median of three, and how many times those of `python -c pass` that is.
"""

from __future__ import annotations

import itertools
import json
import lzma
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from recording import ROOT, options_of, processor_seconds

from gemmprof.reports.dataset.manifest import BATCH_REPORTS, update
from gemmprof.reports.dataset.rows import METRIC_ROWS, write_part
from gemmprof.reports.tables.parquet import write_parquet

DATA = ROOT / "tests" / "data"
SEEDS, LARGEST = 64, 120_000  # reports that are read, and the largest of them that is taken, compressed
QUESTION = "shared_bank_conflicts > 10% or duration > 1ms"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cpu(*command: str | Path) -> float:
    """CPU seconds of a command and its children."""
    before = processor_seconds()
    words = [sys.executable, *map(str, command)]
    subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, check=True, capture_output=True)
    return processor_seconds() - before


def seeds(folder: Path) -> list[Path]:
    """The first reports: recorded ones, unpacked, each as often as it takes."""
    folder.mkdir(parents=True)
    made: list[Path] = []
    small = sorted(path for path in DATA.glob("*.ncu-rep.xz") if path.stat().st_size < LARGEST)
    for path in itertools.islice(itertools.cycle(small), SEEDS):
        made.append(folder / f"{len(made):02}_{path.name.removesuffix('.xz')}")
        if len(made) <= len(small):
            made[-1].write_bytes(lzma.decompress(path.read_bytes()))
        else:
            os.link(made[len(made) - 1 - len(small)], made[-1])
    return made


def multiply(dataset: Path, reports: Path, count: int) -> int:
    """Copies of the parts of a data set, of as many reports as are wanted; returns how many there are in all."""
    (first,) = (dataset / "manifests").glob("*.json")
    manifest = json.loads(first.read_bytes())
    rows, scalars = (pq.read_table(dataset / room / f"{first.stem}.parquet") for room in ("parts", "metrics"))
    for number in itertools.count(1):
        if number * SEEDS >= count:
            return number * SEEDS
        if (copies := (number - 1) % (BATCH_REPORTS // SEEDS)) == 0:
            part, tables, metrics, entries = f"{number:08x}{first.stem[8:]}", [], [], {}
        folder = reports / f"{number:05}"
        folder.mkdir()
        places = {name: str(folder / Path(name).name) for name in manifest["reports"]}
        for name, place in places.items():
            os.link(name, place)
            entries[place] = manifest["reports"][name] | {"part": f"{part}.parquet"}
        # Launches of one kernel do not take the same time to the last digit.
        longer = pc.multiply(rows["figure:duration"], 1 + number / 1e6)
        texts = pa.array([places[name] for name in rows["report"].to_pylist()], pa.string())
        columns = dict(zip(rows.column_names, rows.columns, strict=True))
        tables.append(pa.table(columns | {"figure:duration": longer, "report": texts}))
        moved = pc.add(scalars["row"], copies * len(rows)).cast(pa.int32())
        metrics.append(pa.table({"metric": scalars["metric"], "row": moved, "value": scalars["value"]}))
        if len(tables) == BATCH_REPORTS // SEEDS or (number + 1) * SEEDS >= count:
            whole = pa.concat_tables(metrics).sort_by([("metric", "ascending"), ("row", "ascending")])
            write_parquet(
                whole, dataset / "metrics" / f"{part}.parquet", row_group=METRIC_ROWS, statistics=["metric"]
            )
            write_parquet(pa.concat_tables(tables), dataset / "parts" / f"{part}.parquet")
            (dataset / "manifests" / f"{part}.json").write_text(json.dumps(manifest | {"reports": entries}))
    return 0


def main() -> int:
    """Make the data set, ask, add."""
    parser = options_of(__doc__)
    parser.add_argument("--reports", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="where the data set is made, or is of an earlier call")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        folder = options.folder or Path(own)
        reports, dataset = folder / "reports", folder / "dataset"
        export = ("-m", "gemmprof", "export", reports, "--format", "dataset", "-o", dataset)
        if not dataset.exists():
            first = seeds(reports / "00000")
            update(dataset, [])
            states = {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in first}
            write_part(states, dataset / "parts" / f"{'0' * 32}.parquet", 1, explained=True)
            multiply(dataset, reports, options.reports)
        base = statistics.median(cpu("-c", "pass") for _ in range(5))
        find = ("-m", "gemmprof", "find", QUESTION, dataset, "--json")
        first = next((reports / "00000").iterdir())
        rows = {
            f"find '{QUESTION}'": [cpu(*find) for _ in range(3)],
            "nothing new": [cpu(*export) for _ in range(3)],
        }
        for number in range(3):
            os.link(first, reports / f"added_{os.getpid()}_{number}.ncu-rep")
            rows.setdefault("one report added", []).append(cpu(*export))
        held = sum(1 for _ in reports.rglob("*.ncu-rep"))
        print(
            f"{held:,} reports, {len(list((dataset / 'parts').iterdir()))} parts; python -c pass {base:.3f} s"
        )
        for name, seconds in rows.items():
            took = statistics.median(seconds)
            print(f"{name:50} {took:6.2f} s   {took / base:6.1f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
