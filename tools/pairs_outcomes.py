"""What came out of a recording: outcomes.json and ceilings.json (docs/corpus.md), from times*.json and the reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

# What ceilings.json keeps of a ceiling's report: how much of each peak was reached, where it is worth a word, and
# cycles and clock, which turn times into cycles.
OF_PEAK = re.compile(r"\.avg\.pct_of_peak_sustained_(?:elapsed|active)$")
LEAST_SHARE = 2.0
MUCH_SLOWER = 1.05
CYCLES = ("gpu__time_duration.sum", "sm__cycles_elapsed.max", "gpc__cycles_elapsed.avg.per_second")

Record = dict[str, Any]


def outcomes(families: Iterable[Record], times: Iterable[Record], launches: Iterable[Record]) -> list[Record]:
    """One record a row and size, as docs/corpus.md documents them; rows with a side missing are left out."""
    timed = {(t["family"], t["size"], t["side"]): t for t in times}
    profiled = {(p["family"], p["size"], p["side"]): p for p in launches}

    def side(key: tuple[str, int, str]) -> Record:
        t, p = timed[key], profiled[key]
        return {"report": p["report"], "launch": p["launch"], "time_ns": t["time_ns"], "spread": t["spread"],
                "launches": t["launches"], "side": key[2]}  # fmt: skip

    rows = []
    for family in families:
        for size in family["sizes"]:
            for row in family["rows"]:
                before, after = ((family["family"], size, row[end]) for end in ("from", "to"))
                if not {before, after} <= timed.keys() & profiled.keys():
                    continue
                name = (
                    family["family"]
                    if len(family["rows"]) == 1
                    else f"{family['family']}:{row['from']}>{row['to']}"
                )
                flawed, mended = side(before), side(after)
                # Slower without the flaw: at this size the change brings another flaw along (a small grid, say).
                kind = "not_mended" if mended["time_ns"] > MUCH_SLOWER * flawed["time_ns"] else row["kind"]
                rows.append({"pair": name, "kernel": family["kernel"], "size": str(size), "kind": kind,
                             "causes": row["causes"], "flawed": flawed, "mended": mended})  # fmt: skip
    return rows


def ceilings(
    folder: Path, times: Sequence[Record], launches: Sequence[Record], units: dict[str, str]
) -> list[Record]:
    """One record a ceiling and size: the time, what was done in it and, where profiled, how much of each peak."""
    from gemmprof.analysis.reading.report import read_report

    reports = {name: read_report(folder / name) for name in {p["report"] for p in launches}}
    profiled = {(p["family"], p["size"]): p for p in launches}
    records = []
    for t in times:
        record = {"ceiling": t["family"], "size": t["size"], "unit": units[t["family"]], "amount": t["amount"],
                  "time_ns": t["time_ns"], "spread": t["spread"]}  # fmt: skip
        if p := profiled.get((t["family"], t["size"])):
            metrics = reports[p["report"]][p["launch"]].metrics
            record |= {"report": p["report"], "launch": p["launch"], "metrics": reached(metrics)}
        records.append(record)
    return records


def reached(metrics: Mapping[str, object]) -> dict[str, float]:
    """The shares of peaks of a launch, in per cent, that are worth a word, and its cycles."""
    numbers = {name: value for name, value in sorted(metrics.items()) if isinstance(value, int | float)}
    shares = {n: round(v, 3) for n, v in numbers.items() if OF_PEAK.search(n) and v >= LEAST_SHARE}
    return shares | {name: round(numbers[name], 1) for name in CYCLES if name in numbers}


def write(folder: Path) -> None:
    """Make outcomes.json and ceilings.json of what was measured (times*.json) and the reports."""
    measured: Record = {"families": {}, "times": [], "launches": []}
    for file in sorted(folder.glob("times*.json")):
        part = json.loads(file.read_text(encoding="utf-8"))
        measured["families"] |= {family["family"]: family for family in part["families"]}
        measured["times"] += part["times"]
        measured["launches"] += part["launches"]
        measured["versions"] = part["versions"]
    measured["families"] = list(measured["families"].values())
    is_ceiling = {family["family"]: not family["rows"] for family in measured["families"]}
    head = measured["versions"]

    def split(records: Iterable[Record], wanted: bool) -> list[Record]:
        return [record for record in records if is_ceiling[record["family"]] == wanted]

    def dump(name: str, content: Record, key: str) -> None:
        lines = ",\n".join(json.dumps(record) for record in content.pop(key))
        text = json.dumps(content)[:-1] + f', "{key}": [\n{lines}\n]}}\n'
        (folder / name).write_text(text, encoding="utf-8")

    pairs = outcomes(
        measured["families"], split(measured["times"], False), split(measured["launches"], False)
    )
    dump("outcomes.json", {"format": "gemmprof.pairs/1", **head, "pairs": pairs}, "pairs")
    units = {family["family"]: family["kernel"] for family in measured["families"]}
    found = ceilings(folder, split(measured["times"], True), split(measured["launches"], True), units)
    if found:
        dump("ceilings.json", {"format": "gemmprof.ceilings/1", **head, "ceilings": found}, "ceilings")
    for row in pairs:
        saved = 1.0 - row["mended"]["time_ns"] / row["flawed"]["time_ns"]
        took = row["flawed"]["time_ns"] / 1e3
        causes = "+".join(row["causes"])
        print(
            f"{row['pair']:40} {row['size']:>9} {took:9.1f} us  saved {100 * saved:5.1f} %  {causes} ({row['kind']})"
        )
