"""Show what reports hold, in the terminal: kernels first, then the whole analysis of what you choose.

  gemmprof show my.ncu-rep                          families, most time first, and what limits them
  gemmprof show my.ncu-rep --launch 3               everything known of one launch
  gemmprof show my.ncu-rep --kernel softmax --section warp_states --section source_view
  gemmprof show 'runs/**/*.ncu-rep' --top 5

Launches of one kernel within the same NVTX ranges are one family; its longest launch stands for it. Times are Nsight
Compute's.
"""

from __future__ import annotations

import argparse

from gemmprof.arguments import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    common.add_input_arguments(parser)
    common.add_selection_arguments(parser)
    parser.add_argument(
        "--section",
        metavar="NAME",
        action="append",
        default=[],
        help="only this analysis (warp_states, roofline, source_view …) of each family; may be repeated",
    )
    parser.add_argument("--all", action="store_true", help="every family and every section")
    common.add_json_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Print; exit code 0, or 1 if some input could not be read."""
    from gemmprof.reports.terminal import overview

    overview.section_titles(options.section)
    session = common.load_inputs(options)
    if options.json:
        from gemmprof.reports.documents.of_launches import ShowDocument

        common.print_json(ShowDocument.of_session(session, options.section, everything=options.all))
    else:
        terminal = common.console()
        for part in overview.parts(
            session, width=terminal.width, sections=options.section, everything=options.all
        ):
            terminal.print(part)
    return 1 if session.failures else 0
