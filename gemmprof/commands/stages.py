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
    from gemmprof.reports.terminal import stages

    console().print(stages.table(STAGES))
    return 0
