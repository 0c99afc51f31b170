"""Roofline points of kernels, as a table or a picture.

One row a kernel and memory level: achieved FLOP/s, arithmetic intensity, what the roofs allow there. With -o the
roofline is drawn into a .png, .svg or .pdf file: one kernel against all memory levels, several against device memory.
"""

from __future__ import annotations

import argparse

from gemmprof.commands import _shared
from gemmprof.errors import UsageError

FORMATS = (".png", ".svg", ".pdf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    _shared.add_input_arguments(parser)
    parser.add_argument(
        "--kernel", metavar="TEXT", help="only kernels whose name or stage title contains TEXT"
    )
    _shared.add_output_argument(
        parser, metavar="FILE", text="draw into FILE (.png, .svg or .pdf) instead of a table"
    )
    _shared.add_json_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Print or draw the points; exit code 0."""
    from gemmprof.reports import roofline_table

    target = None
    if options.output:
        target = _shared.new_output(options.output, force=options.force)
        if target.suffix.lower() not in FORMATS:
            raise UsageError(
                f"{target} has no known picture format", remedies=[f"end the name in {', '.join(FORMATS)}"]
            )
    session = _shared.load_inputs(options, source=False)
    rows = roofline_table.kernels(session, containing=options.kernel)
    if not rows:
        raise UsageError(
            f"no kernel's name contains '{options.kernel}'"
            if options.kernel
            else "the input holds no kernel",
            remedies=["leave out --kernel to see them all"] if options.kernel else [],
        )
    if target is not None:
        roofline_table.draw(rows, target)
        _shared.announce(target)
    if options.json:
        _shared.print_json(roofline_table.records(rows))
    elif target is None:
        _shared.console().print(roofline_table.table(rows))
    return 0
