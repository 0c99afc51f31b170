"""Roofline points of kernels, as a table or a picture.

  gemmprof roofline my.ncu-rep
  gemmprof roofline my.ncu-rep --kernel '#3' -o roofline.svg

One row a kernel and memory level: achieved FLOP/s, arithmetic intensity, what the roofs allow there. With -o the
roofline is drawn into a .png, .svg or .pdf file: one kernel against all memory levels, several against device memory.
"""

from __future__ import annotations

import argparse
import sys

from gemmprof.arguments import common
from gemmprof.arguments.parser import FORCE, INPUTS, JSON
from gemmprof.base.errors import UsageError
from gemmprof.model import Problem

FORMATS = (".png", ".svg", ".pdf")
ARGUMENTS = f"""{INPUTS}
--shape MxNxK           only the stages of a run on this shape
-o, --output FILE       draw into FILE (.png, .svg or .pdf) instead of a table
{FORCE}{JSON}"""


def run(options: argparse.Namespace) -> int:
    """Print or draw the points; exit code 0, or 2 if some input could not be read."""
    from gemmprof.reports.documents.of_launches import RooflineDocument, roofline_part
    from gemmprof.reports.terminal import roofline_table

    shape = Problem.parse(options.shape) if options.shape else None
    target = None
    if options.output:
        target = common.new_output(options.output, force=options.force)
        if target.suffix.lower() not in FORMATS:
            raise UsageError(f"{target} has no known picture format", f"end the name in {', '.join(FORMATS)}")
    session = common.load_inputs(options)
    pages = roofline_table.kernels(session, shape=shape)
    if not pages:
        raise UsageError(
            f"no kernel was launched on the shape {options.shape}" if shape else "the input holds no kernel",
            *(["leave out --shape to see them all"] if shape else []),
        )
    if target is not None:
        problem = pages[0].problem  # one picture holds those on one problem: the first, which is the largest
        drawn = [page for page in pages if page.problem == problem]
        if len(drawn) < len(pages) and problem is not None:
            print(f"Drawing {problem.label} (--shape chooses another)", file=sys.stderr)
        roofline_table.draw(drawn, target)
        common.announce(target)
    if options.json or target is None:
        common.answer(
            options,
            lambda: RooflineDocument.of(kernels=map(roofline_part, pages)),
            lambda width: roofline_table.parts(pages, width=width),
        )
    return common.exit_code(session.failures)
