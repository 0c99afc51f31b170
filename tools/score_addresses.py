"""For how many accesses of the recorded reports the code tells the address, and how many of those the counters confirm.

Usage: score_addresses.py (prints the section that score_pairs.py writes into docs/explain_scores.md)
"""

from __future__ import annotations

from collections import Counter

from recording import ROOT, table_of
from score_studies import reports

from gemmprof.analysis.explanation.code.address_forms import LOOK_UP, RUNS, UNKNOWN, checked_forms
from gemmprof.analysis.explanation.demands.work import work
from gemmprof.analysis.reading.report import read_report
from gemmprof.base.errors import GemmprofError

FOLDERS = ("tests/data", "tests/data/pairs", "tests/data/variants/h200", "docs/examples/recorded")


def counted() -> tuple[int, Counter[tuple[str, str]]]:
    """Launches with code and counters, and their accesses by space and what is known: shares of each launch's."""
    launches = 0
    found: Counter[tuple[str, str]] = Counter()
    for folder in FOLDERS:
        for path in sorted(reports(ROOT / folder).glob("*.ncu-rep*")):
            try:
                profiles = read_report(path)
            except GemmprofError:
                continue
            for profile in profiles:
                made = work(profile)
                known = checked_forms(made)
                if not known:
                    continue
                launches += 1
                for space in ("global", "shared"):
                    mine = [one for one in known.values() if one.form.space == space]
                    whole = sum(made.executed[one.form.index] for one in mine)
                    found[space, ""] += bool(mine)  # type: ignore[assignment]
                    for one in mine:
                        what = one.form.kind if one.form.kind in (RUNS, LOOK_UP, UNKNOWN) else one.verdict
                        found[space, what] += made.executed[one.form.index] / whole
    return launches, found


def section() -> list[str]:
    """The part of docs/explain_scores.md on addresses."""
    launches, found = counted()
    rows = {
        "exact": "a form that predicts the counted sectors and lines (passes) within 2 %",
        "agrees": "a form between whose bounds the counts lie (unknown start, guarded or partly filled warps)",
        RUNS: "runs: each lane walks on from a place that was loaded before its loop",
        LOOK_UP: "a look-up: the place comes from a loaded value",
        UNKNOWN: "not known",
        "open": "a form of which nothing was counted that could confirm it; not used",
        "contradicted": "a form that the counts contradict; not used",
    }
    return [
        "## Addresses",
        "",
        f"What the code tells of the addresses of loads, stores and atomics, over {launches} recorded launches with "
        "code; per cent of the",
        "executed accesses, each launch counting the same ([what a form is](explain.md#addresses)).",
        "",
        *table_of(
            " | global> | shared>",
            (
                (text, *(f"{100 * found[of, key] / found[of, '']:.1f} %" for of in ("global", "shared")))
                for key, text in rows.items()
            ),
        ),
        "",
    ]


if __name__ == "__main__":
    print("\n".join(section()))
