"""Show the ladder: every stage, the one thing that it changes, and its tile parameters."""

from __future__ import annotations

import argparse

from gemmprof.commands._shared import add_json_argument, console, print_json
from gemmprof.kernels.catalog import STAGES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``gemmprof stages``."""
    add_json_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Print the ladder."""
    if options.json:
        print_json(STAGES)
        return 0
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("stage", justify="right")
    table.add_column("name")
    table.add_column("its one idea", overflow="fold")
    table.add_column("tile parameters", overflow="fold")
    for stage in STAGES:
        parameters = " ".join(f"{letter}={value}" for letter, value in stage.parameters.items())
        table.add_row(str(stage.number), stage.name, stage.idea, parameters)
    console().print(table)
    return 0
