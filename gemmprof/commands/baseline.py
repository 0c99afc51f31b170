"""Keep one side of a comparison in a small file, to commit and to compare with later: `gemmprof diff --against NAME`.

gemmprof baseline save main runs/main_*.ncu-rep     all reports as repetitions of one another
gemmprof baseline list
gemmprof baseline show main
gemmprof baseline rm main
"""

from __future__ import annotations

import argparse

from gemmprof.arguments import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    save = actions.add_parser("save", help="save reports or a run under a name")
    save.add_argument("name", metavar="NAME")
    save.add_argument("inputs", nargs="+", metavar="REPORT|RUN")
    save.add_argument("--force", action="store_true", help="replace a baseline of this name")
    common.add_selection_arguments(save)
    listed = actions.add_parser("list", help="the baselines of the folder")
    show = actions.add_parser("show", help="the kernels of a baseline")
    show.add_argument("name", metavar="NAME")
    remove = actions.add_parser("rm", help="delete a baseline")
    remove.add_argument("name", metavar="NAME")
    for action in (save, listed, show, remove):
        action.add_argument(
            "--baselines", metavar="DIR", help="folder of the baselines (default: .gemmprof/baselines)"
        )
    for action in (listed, show):
        common.add_json_argument(action)


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
        found = [
            (name, baseline.read_baseline(name, options.baselines))
            for name in baseline.names(options.baselines)
        ]
    else:
        found = [(options.name, baseline.read_baseline(options.name, options.baselines))]
    if options.json:
        from gemmprof.reports.documents import of_history

        common.print_json(of_history.baselines(found))
    elif options.action == "list":
        outcome_tables.print_baselines(common.console(), found, baseline.folder_of(options.baselines))
    else:
        outcome_tables.print_baseline(common.console(), *found[0])
    return 0
