"""Show the ladders: every stage, the one thing that it changes, and its tile parameters.

gemmprof stages                 all ladders
gemmprof stages --ladder half   one of them
"""

from __future__ import annotations

import argparse

from gemmprof.arguments.common import console, print_json
from gemmprof.arguments.ladder_options import LADDER, TYPE_VALUES
from gemmprof.arguments.parser import JSON
from gemmprof.kernels import catalog
from gemmprof.model.answers import StagesDocument

ARGUMENTS = LADDER + JSON
VALUES = TYPE_VALUES


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
