"""Show what reports hold, in the terminal: kernels first, then the whole analysis of what you choose.

  gemmprof show my.ncu-rep                          families, the most to gain first
  gemmprof show my.ncu-rep '#3'                     everything known of one family
  gemmprof show my.ncu-rep --launch 3               the same of one launch
  gemmprof show my.ncu-rep --kernel softmax --section warp_states --section source_view
  gemmprof show 'runs/**/*.ncu-rep' --top 5

Launches of one kernel, grid, block, shared memory and NVTX path are one family, with an id such as #3; its longest
launch stands for it. Times are Nsight Compute's. `gemmprof REPORT` says the same on one screen.
"""

from __future__ import annotations

import argparse

from gemmprof.arguments import common
from gemmprof.arguments.parser import INPUTS, JSON, TRACE
from gemmprof.base.errors import UsageError
from gemmprof.base.printable import printable

SOURCE = """
--source                the source of each family's longest launch with what each line cost, and the hot lines'
                        instructions
"""
ARGUMENTS = f"""{INPUTS}{TRACE}
--section NAME…         only this analysis (warp_states, roofline, source_view …) of each family; may be repeated
--all                   every family and every section
{SOURCE}{JSON}"""
FRONT_ARGUMENTS = f"""{INPUTS}{TRACE}
--all                   every family, not only as many as a screen holds
{SOURCE}{JSON}"""


def run(options: argparse.Namespace) -> int:
    """Print; exit code 0, or 2 if some input could not be read."""
    from gemmprof.analysis.reading.frame import unpacked_once
    from gemmprof.reports.documents.of_launches import ShowDocument
    from gemmprof.reports.terminal import overview
    from gemmprof.reports.terminal.annotated import annotated

    overview.section_titles(options.section)
    if options.source and options.json:
        raise UsageError("--source is for people", "leave out --json", "gemmprof export REPORT --table lines")
    if options.source and (options.section or options.all):
        raise UsageError("--source shows the source alone", "leave out --section and --all")
    with unpacked_once():
        session = common.load_inputs(options, listed=True)
        common.answer(
            options,
            lambda: ShowDocument.of_session(session, options.section, everything=options.all),
            lambda width: (
                annotated(session, width=width)
                if options.source
                else overview.parts(session, width=width, sections=options.section, everything=options.all)
            ),
        )
    return common.read_all(options, session)


FRONT_HELP = """What a report or run holds, on one screen: the program in a sentence, its families of
launches with the most to gain first, and what to type next.

  gemmprof my.ncu-rep                  the program and its families, each with an id
  gemmprof my.ncu-rep '#3'             one family in full
  gemmprof my.ncu-rep '#3' --source    its source with what each line cost
  gemmprof run/ --kernel softmax       only those launches
  gemmprof run/ --all                  all families
"""


def front(options: argparse.Namespace) -> int:
    """Print one screen, or the families in full whose ids were given; exit code as of `run`."""
    from gemmprof.analysis.reading.frame import unpacked_once

    if options.json or options.source or common.selection(options).families:
        options.section, options.all = [], not options.source and (options.all or not options.json)
        return run(options)
    with unpacked_once():
        session = common.load_inputs(options, listed=True)
        width = common.columns()
        # Before what explains is loaded, let alone at work.
        from gemmprof.reports.terminal import program_lines

        for line in program_lines.sentence(session, width):
            print(printable(line), flush=True)
        where = list(program_lines.where(session, width))
        for line in where:
            print(printable(line), flush=True)
        from gemmprof.reports.terminal import overview

        command, every = common.typed(options), options.all
        for line in overview.front(session, command, width=width, said=len(where), every=every):
            print(printable(line))
    return common.read_all(options, session)
