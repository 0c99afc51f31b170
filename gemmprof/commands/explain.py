"""What to change first in a kernel, where, and what it brings.

  gemmprof explain my.ncu-rep                 the families of launches with the most to gain, on one screen
  gemmprof explain my.ncu-rep '#3'            one of them in full
  gemmprof explain my.ncu-rep --budget 2000   for an issue or a language model

For each family of launches, the one with the most to gain first: causes ranked by the share of its time that fixing
each alone saves, with an 80 % interval, the line where it sits, the evidence and the change to try. What makes the
numbers doubtful is said before. docs/explain.md has the model, every cause and how well the predictions have come true.
"""

from __future__ import annotations

import argparse

from gemmprof.arguments import common
from gemmprof.arguments.parser import INPUTS, JSON, READ_THERE, READING_PLACE, values

ARGUMENTS = f"""{INPUTS}
--format                text (default), markdown, or json
{JSON}
--budget TOKENS>=50     at most about so many tokens, for an issue or a language model (markdown unless said otherwise)
--all                   every family in full, longer than a screen
{READING_PLACE}"""
VALUES = values(READ_THERE, format=("text", "markdown", "json"))


def run(options: argparse.Namespace) -> int:
    """Print the explanations; exit code 0, or 2 if some input could not be read."""
    from gemmprof.analysis.reading.frame import unpacked_once
    from gemmprof.reports.words import explained

    chosen = "json" if options.json else options.format or ("text" if options.budget is None else "markdown")
    with unpacked_once():
        session = common.load_inputs(options, listed=True)
        if chosen == "json":
            from gemmprof.reports.documents.of_findings import explain_document

            common.print_json(explain_document(session))
        elif chosen == "markdown":
            from gemmprof.reports.agents import markdown

            print(markdown(explained(session, session.families), budget=options.budget), end="")
        else:
            from gemmprof.reports.words import lines_for, screen

            rows = lines_for(options.budget, everything=options.all or bool(session.selected))
            found = session.families if rows is None else session.leaders(rows)
            told = explained(session, found)
            print(screen(told, of=len(session.by_time), width=common.columns(), lines=rows))
    return common.read_all(options, session)
