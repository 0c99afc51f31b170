"""Show the ladders: every stage, the one thing that it changes, and its tile parameters.

gemmprof stages                 all ladders
gemmprof stages --ladder half   one of them
"""

from __future__ import annotations

import argparse

from gemmprof.arguments.common import add_json_argument, console, print_json
from gemmprof.arguments.ladder_options import add_ladder_argument
from gemmprof.kernels import catalog
from gemmprof.model.answers import StagesDocument


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``gemmprof stages``."""
    add_ladder_argument(parser)
    add_json_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Print the ladders."""
    ladders = (catalog.ladder_named(options.ladder),) if options.ladder else catalog.LADDERS
    if options.json:
        print_json(StagesDocument(tuple(stage for ladder in ladders for stage in ladder.stages)))
        return 0
    from gemmprof.reports.terminal.summary import stages_table

    out = console()
    for place, ladder in enumerate(ladders):
        if len(ladders) > 1:
            out.print(("\n" if place else "") + f"{ladder.title} ({ladder.name}): {', '.join(ladder.dtypes)}")
        out.print(stages_table(ladder.stages))
    return 0
