"""What to change first in a kernel, where, and what it brings.

For each kernel, the one with the most time first: causes ranked by the share of its time that mending each
alone saves, with an 80 % interval, the line where it sits, the evidence and the change to try. What makes
the numbers doubtful is said before. docs/explain.md has the model, every cause and how well the predictions
have come true.
"""

from __future__ import annotations

import argparse
import sys

from gemmprof.arguments import common
from gemmprof.arguments.numbers import whole
from gemmprof.base.printable import one_line

FORMATS = ("text", "markdown", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_input_arguments(parser)
    common.add_selection_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, help="text (default), markdown, or json")
    common.add_json_argument(parser)
    parser.add_argument(
        "--budget",
        metavar="TOKENS",
        type=whole(50),
        help=(
            "at most about so many tokens, for an issue or a language model (markdown unless said otherwise)"
        ),
    )
    parser.add_argument("--all", action="store_true", help="every kernel in full, longer than a screen")


def run(options: argparse.Namespace) -> int:
    """Print the explanations; exit code 0, or 1 if some input could not be read."""
    from gemmprof.analysis.explanation.reports import explain_reports

    paths, notice = common.chosen_inputs(options)
    if notice:
        print(one_line(notice), file=sys.stderr)
    selection = common.selection(options)
    found = explain_reports(paths, selection)
    common.name_failures(options, found.failures)
    chosen = "json" if options.json else options.format or ("text" if options.budget is None else "markdown")
    if chosen == "json":
        from gemmprof.reports.documents.of_findings import explained

        common.print_json(explained(found.kernels))
    elif chosen == "markdown":
        from gemmprof.reports.explanations.markdown import document

        print(document(found.kernels, budget=options.budget), end="")
    else:
        from gemmprof.reports.explanations.text import lines_for, screen

        rows = lines_for(options.budget, everything=options.all or bool(selection))
        print(screen(found.kernels, width=common.columns(), lines=rows))
    return 1 if found.failures else 0
