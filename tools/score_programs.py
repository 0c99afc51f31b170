#!/usr/bin/env python3
"""Hold what gemmprof says first of the recorded programs against an expert's list and against what came of it.

Writes the generated part of docs/programs.md from tests/data/programs: the reports, the expert's proposals
(expected.json) and which variant follows which of gemmprof's (followed.csv), what it said before a recording with what
came of it (first_look.json, second_look.json, kept as they were), and the times of tools/record_programs.py
(measured.json).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from recording import ROOT, options_of, rows_of, table_of, with_block

from gemmprof.analysis.session import load_session
from gemmprof.analysis.whole.traces import read_trace
from gemmprof.reports.documents.of_launches import program_part

DATA = ROOT / "tests" / "data" / "programs"
PAGE = ROOT / "docs" / "programs.md"
FIRST = 3
# What was said before an outcome was known, kept as it was with what came.
LOOKS = {
    "first": "First look (the first recording, H100 and H200): rules of a program from before it, causes of kernels as "
    "of that commit",
    "second": "Second look (the second recording, H200): all as of the commit before it",
}
# Which variant follows a proposal, by program and cause.
FOLLOWED = {(row["program"], row["cause"]): row["variant"] for row in rows_of(DATA / "followed.csv")}

Row = dict[str, Any]


def said(program: str) -> list[Row]:
    """What gemmprof proposes for a program's report, with the trace where there is one."""
    session = load_session([DATA / f"{program}.ncu-rep.xz"], listed=True)
    trace = DATA / f"{program}.json.gz"
    if trace.exists():
        session = replace(session, trace=read_trace(trace, [kernel.profile for kernel in session.kernels]))
    part = program_part(session)
    assert part is not None
    return [
        {"cause": one.cause, "title": one.title, "share_of": one.share_of}
        | {"saves": one.saves, "low": one.low, "high": one.high}
        for one in part.proposals
    ]


def document(name: str) -> Any:
    """One of the JSON documents."""
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


def timed(program: str) -> dict[str, Row]:
    """The times of a program's variants."""
    return {row["variant"]: row for row in document("measured")["measured"] if row["program"] == program}


def came(program: str, variant: str | None, share_of: str) -> float | None:
    """The share that a variant saved, of the kernels' time or of the wall time; None where it was not timed."""
    rows = timed(program)
    key = "wall_ns" if share_of == "wall" else "kernels_ns"
    if variant not in rows:
        return None
    return 1.0 - float(rows[variant][key]) / float(rows["base"][key])


def scored(program: str, found: list[Row]) -> Iterator[Row]:
    """The proposals with what came of them."""
    for place, one in enumerate(found, 1):
        variant = FOLLOWED.get((program, one["cause"]))
        # What was looked at earlier keeps what came then.
        yield {"place": place, "variant": variant, "came": came(program, variant, one["share_of"])} | one


def inside(row: Row) -> bool:
    """Whether what came lies in the interval, whose ends are whole per cents as they are printed."""
    return round(row["low"], 2) <= round(row["came"], 2) <= round(row["high"], 2)


def percent(value: float) -> str:
    """Whole."""
    return f"{100 * value:.0f} %"


def table(title: str, told: dict[str, list[Row]]) -> list[str]:
    """One table and its count."""
    rows = [(program, row) for program, found in told.items() for row in scored(program, found)]
    tried = [row for _, row in rows if row["came"] is not None]
    first = [row for _, row in rows if row["place"] <= FIRST]
    lines = [
        f"**{title}**: {sum(map(inside, tried))} of {len(tried)} that were followed came within the interval, of the "
        f"first three of each program {sum(inside(row) for row in first if row in tried)} of "
        f"{sum(row in tried for row in first)}; {sum(row['variant'] is not None for row in first)} of {len(first)} "
        "among the first three are the expert's.",
        "",
    ]
    shown = []
    for program, row in rows:
        if row["place"] > FIRST and row["came"] is None:
            continue
        what = row["title"] + (" (of wall time)" if row["share_of"] == "wall" else "")
        outcome = "not tried" if row["came"] is None else percent(row["came"])
        if row["came"] is not None:
            outcome += "" if inside(row) else ", outside"
        interval = f"{100 * row['low']:.0f} to {100 * row['high']:.0f}"
        shown.append((program, row["place"], what, percent(row["saves"]), interval, outcome))
    return [*lines, *table_of("program |  | gemmprof says | saves | interval | came", shown), ""]


def experts() -> list[str]:
    """The expert's list with what came."""
    lines = [
        "**The expert's proposals**, with what each should bring of the kernels' time (or of what is named):",
        "",
    ]
    rows = []
    for one in document("expected")["proposals"]:
        outcome = came(one["program"], one["variant"], one["of"])
        if one["of"] == "per item" and outcome is not None:
            outcome = 1.0 - (1.0 - outcome) / 8
        low, high = one["saves"]
        expected = f"{100 * low:.0f} to {100 * high:.0f} %"
        expected += "" if one["of"] == "kernels" else f" ({one['of']})"
        shown = "–" if outcome is None else percent(outcome)
        rows.append((one["program"], one["rank"], one["proposal"], expected, shown))
    return [*lines, *table_of("program |  | proposal | expected | came", rows), ""]


def generated() -> str:
    """The generated part."""
    programs = document("measured")["programs"]
    steps = []
    for program, facts in programs.items():
        rows = timed(program)
        base, best = rows["base"], rows["all"]
        step, after = (
            f"{row['kernels_ns'] / 1e6:.2f} ms of kernels, {row['wall_ns'] / 1e6:.2f} ms wall"
            for row in (base, best)
        )
        steps.append((program, facts["gpu"], facts["profiled"] or "–", base["launches"], step, after))
    head = "program | GPU | launches profiled | of a step | step as written | all changes together"
    lines = [
        *table_of(head, steps),
        "",
        *(
            line
            for name, title in LOOKS.items()
            for line in table(title, document(f"{name}_look")["programs"])
        ),
    ]
    lines += table("Now", {program: said(program) for program in programs})
    return "\n".join([*lines, *experts()]).rstrip()


def _recorded(text: str) -> str:
    """The page without what is said now, which moves with every rule that is changed."""
    head, _, rest = text.partition("**Now**")
    return head + rest.partition("**The expert")[2]


def main() -> int:
    """Write, or check what was recorded."""
    parser = options_of(__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    parser.add_argument("--look", metavar="NAME", help="keep what is said now as NAME_look.json instead")
    options = parser.parse_args()
    if options.look:
        programs = document("measured")["programs"]
        looks = {program: [*scored(program, said(program))] for program in programs}
        kept = {"format": "gemmprof.look/1", "programs": looks}
        (DATA / f"{options.look}_look.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        return 0
    text = PAGE.read_text("utf-8")
    wanted = with_block(text, "programs", generated())
    if options.check:
        same = _recorded(wanted) == _recorded(text)
        print("up to date" if same else f"{PAGE.name} is out of date: run tools/score_programs.py")
        return int(not same)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
