#!/usr/bin/env python3
"""Try the settings of Triton that `explain` names: so many num_warps, so many num_stages in a loop.

`--told` goes through the recorded studies in Triton (docs/corpus.md), flawed and fixed, and writes down which settings
explanations name and what they are told to save. Where there is a GPU each of those is then tried, in random turns
with the kernel as it is and a cold L2: tests/data/settings holds what it saved, docs/explain.md the table.

Usage: record_settings.py --told TOLD.csv
       record_settings.py TOLD.csv SAVED.csv     (needs torch, Triton and a GPU)
       record_settings.py --write                the table, of what was recorded
"""

from __future__ import annotations

import csv
import inspect
import random
import re
import shutil
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from recording import ROOT, loaded, options_of, rows_of, table_of, write_block

SETTINGS = ROOT / "tests" / "data" / "settings"
SOURCES = Path("/tmp/gemmprof-settings")
TOLD = re.compile(r"Try (num_warps=\d+)|tl\.range\(\.\.\., (num_stages=\d+)\)")
"""A setting that is told to take."""
LOOP = re.compile(r"^(\s+for \w+ in )(?:tl\.)?range\((.+?)(?:, num_stages=\w+)?\):$")
TURNS = 15
ALIKE = 0.02  # of the largest value: sums in another order, no other results

Row = dict[str, str]


def staged(source: str, stages: int) -> str:
    """The source with so many stages in each loop of its kernels."""
    lines, kernel, decorated = [], False, False
    for line in source.split("\n"):
        if line.startswith("@triton.jit"):
            decorated = True
        elif line.startswith(("def ", "class ")):
            kernel, decorated = decorated, False
        lines.append(LOOP.sub(rf"\1tl.range(\2, num_stages={stages}):", line) if kernel else line)
    return "\n".join(lines)


def told() -> Iterator[Row]:
    """Settings that explanations name, and what each is told to save, in %."""
    from score_pairs import launches
    from score_studies import DATA, listed, reports

    from gemmprof.analysis.explanation.engine import explain

    for folder in sorted(path.parent for path in DATA.glob("*/h?00/studies.json")):
        for study in listed(folder):
            for side in (study["kernel"], *study["fixes"]) if "triton_" in study["study"] else ():
                launch = launches(reports(folder) / side["report"])[side["launch"]]
                for number, finding in enumerate(explain(launch).findings, 1):
                    for setting in TOLD.finditer(finding.change):
                        of = {"card": folder.name, "set": folder.parent.name, "study": study["study"]}
                        named = {
                            "side": side["side"],
                            "setting": setting[1] or setting[2],
                            "place": str(number),
                        }
                        yield {**of, **named, "told": f"{100.0 * finding.saves:.0f}"}


class Warps:
    """Launches of Triton's kernels with so many warps in place of their own, and which kernel was launched last."""

    count: int | None = None
    kernel: Any = None

    def __init__(self) -> None:
        from triton.runtime.jit import JITFunction

        launch = JITFunction.run

        def run(kernel: Any, *arguments: Any, **options: Any) -> Any:
            self.kernel = kernel
            return launch(kernel, *arguments, **options | ({"num_warps": self.count} if self.count else {}))

        JITFunction.run = run

    def of(self, run: Callable[[], Any], count: int) -> Callable[[], Any]:
        """The same launch with so many."""

        def launched() -> None:
            self.count = count
            run()
            self.count = None

        return launched


def tried(row: Row, warps: Warps) -> float:
    """What a setting saves of the time of the kernel as it is, in %.

    Raises:
        ValueError: it computes something else, or nothing of it can be set.
    """
    import torch

    name, value = row["setting"].split("=")
    source = next(
        path
        for path in sorted((SOURCES / row["set"]).glob("*frameworks.py"))
        if f'"{row["study"]}"' in path.read_text()
    )
    made = [source]
    if name == "num_stages":
        made.append(source.with_name(f"{source.stem}_{value}.py"))
        made[1].write_text(staged(source.read_text("utf-8"), int(value)), "utf-8")
    runs, results, kernels = list[Callable[[], Any]](), list[Any](), set[str]()
    for module in made:
        sides, check = next(one for one in loaded(module).STUDIES if one.name == row["study"]).make()
        run = sides[row["side"]]
        for each in (run, warps.of(run, int(value))) if name == "num_warps" else (run,):
            check()  # zeroes what kernels add to
            each()
            results.append(check().double().clone())
            runs.append(each)
            kernels.add(inspect.getsource(warps.kernel.fn))
    if len(kernels) < len(made):
        raise ValueError("it has no loop")
    if float((results[0] - results[1]).abs().max()) > ALIKE * float(results[0].abs().max()):
        raise ValueError("another result")
    flush, times = torch.zeros(64 << 20, device="cuda"), ([], [])
    for _ in range(TURNS):
        for which in random.sample((0, 1), 2):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.sum()
            torch.cuda._sleep(400_000)  # keeps the GPU busy while the host queues the launch
            start.record()
            runs[which]()
            stop.record()
            torch.cuda.synchronize()
            times[which].append(start.elapsed_time(stop))
    before, after = map(statistics.median, times)
    return 100.0 * (1.0 - after / before)


def try_all(rows: list[Row], card: str) -> Iterator[Row]:
    """Those of this card, with what they saved; what fails is printed."""
    import torch

    shutil.rmtree(SOURCES, ignore_errors=True)
    shutil.copytree(ROOT / "tests" / "cuda", SOURCES)
    sys.path.insert(0, str(SOURCES / "variants"))
    warps = Warps()
    for row in (one for one in rows if one["card"] == card):
        try:
            yield row | {"saved": f"{tried(row, warps):.0f}"}
        except Exception as error:
            print(*row.values(), f"{error!r:.120}", file=sys.stderr)
        torch.cuda.empty_cache()


def write(path: Path, rows: list[Row]) -> None:
    """Write a table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, tuple(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def summary() -> list[tuple[str, ...]]:
    """Rows of the table: how many settings of a kind were told, what they were told to save, and what came."""
    from score_studies import DATA, HALVED, unopened

    from gemmprof.base.spread import grouped

    def of(row: Row) -> tuple[str, str, str]:
        half = "kept" if DATA / row["set"] in HALVED and unopened(row["study"]) else "open"
        return row["card"].upper(), row["setting"].split("=")[0], half

    every = (row for path in sorted(SETTINGS.glob("*.csv")) for row in rows_of(path))
    found = grouped((of(row), (float(row["told"]), float(row["saved"]))) for row in every)
    rows = []
    for names, outcomes in sorted(found.items()):
        said, came = map(statistics.mean, zip(*outcomes, strict=True))
        off = statistics.mean(abs(one - other) for one, other in outcomes)
        slower = sum(other <= -5.0 for _, other in outcomes)
        rows.append((*names, str(len(outcomes)), *(f"{value:.0f}" for value in (said, came, off, slower))))
    return rows


def main() -> int:
    """List, try or write."""
    parser = options_of(__doc__)
    parser.add_argument(
        "tables", type=Path, nargs="*", help="the settings that are told, and the table to write"
    )
    parser.add_argument("--told", type=Path, help="write down which settings are told")
    parser.add_argument("--write", action="store_true", help="put the table into docs/explain.md")
    options = parser.parse_args()
    if options.told:
        write(options.told, list(told()))
    elif options.write:
        head = "card | setting | kernels | told> | told to save, %> | saved, %> | off by, points> | slower by 5 %>"
        write_block(ROOT / "docs" / "explain.md", "settings", "\n".join(table_of(head, summary())))
    elif len(options.tables) == 2:
        import torch

        card = "h200" if "H200" in torch.cuda.get_device_name() else "h100"
        write(options.tables[1], list(try_all(rows_of(options.tables[0]), card)))
    else:
        parser.error("say what to try and where to write, --told or --write")
    return 0


if __name__ == "__main__":
    sys.exit(main())
