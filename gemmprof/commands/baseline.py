"""Keep one side of a comparison in a small file, to commit and to compare with later: `gemmprof diff --against NAME`.

gemmprof baseline save main runs/main_*.ncu-rep     all reports as repetitions of one another
gemmprof baseline list
gemmprof baseline show main
gemmprof baseline rm main
"""

from __future__ import annotations

import argparse

from gemmprof.arguments import common
from gemmprof.arguments.parser import BASELINES, JSON, SELECTION

NAME = "name NAME"
ACTIONS = {
    "save": (
        "save reports or a run under a name",
        f"{NAME}\ninputs REPORT|RUN+\n--force  replace a baseline of this name\n{SELECTION}{BASELINES}",
    ),
    "list": ("the baselines of the folder", BASELINES + JSON),
    "show": ("the kernels of a baseline", NAME + BASELINES + JSON),
    "rm": ("delete a baseline", NAME + BASELINES),
}


def run(options: argparse.Namespace) -> int:
    """Do what was asked."""
    from gemmprof.analysis.comparison import baseline
    from gemmprof.analysis.comparison.sides import load_side
    from gemmprof.reports.terminal import outcome_tables

    if options.action == "save":
        side = load_side(options.inputs, common.selection(options))
        common.name_failures(options, side.failures)
        path = baseline.save_baseline(options.name, side, options.baselines, force=options.force)
        common.announce(path)
        return common.exit_code(side.failures)
    if options.action == "rm":
        baseline.remove_baseline(options.name, options.baselines)
        return 0
    if options.action == "list":
        every = baseline.names(options.baselines)
        found = [(name, baseline.read_baseline(name, options.baselines)) for name in every]
    else:
        found = [(options.name, baseline.read_baseline(options.name, options.baselines))]
    from gemmprof.reports.documents import of_history

    common.answer(
        options,
        lambda: of_history.baselines(found),
        lambda _: (
            [outcome_tables.baselines(found, baseline.folder_of(options.baselines))]
            if options.action == "list"
            else outcome_tables.baseline_parts(*found[0])
        ),
    )
    return 0
