"""Compare two runs, reports or kernels: time, instructions, bytes per level, conflicts, occupancy, stalls.

With two inputs, stages of runs are matched by number and shape, kernels of reports by name. With one input, each
kernel is compared with the one before it. --before and --after pick one kernel on each side.

  gemmprof diff old-run/ new-run/ --fail-slower 5    exit code 1 if anything became more than 5 % slower
  gemmprof diff a.ncu-rep b.ncu-rep --details        every quantity, grouped
  gemmprof diff run/ --before 5 --after 6            two stages of one run, on its first shape (5@2048: on another)
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gemmprof.commands import _shared
from gemmprof.errors import UsageError

if TYPE_CHECKING:
    from gemmprof.analysis.comparison.pairs import Pair


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "inputs",
        nargs="*",
        metavar="RUN|REPORT",
        help="before and after; one: compare inside it; none: the newest run here, else the recorded H100 run",
    )
    parser.add_argument(
        "--before", metavar="KERNEL", help="stage number (5, or 5@2048), launch index or part of a name"
    )
    parser.add_argument("--after", metavar="KERNEL", help="the same for the other side")
    parser.add_argument(
        "--fail-slower",
        type=_percent,
        metavar="PCT",
        help="exit with 1 if a kernel is more than PCT per cent slower, is missing, or has no time to compare",
    )
    parser.add_argument("--details", action="store_true", help="every quantity of every pair")
    _shared.add_json_argument(parser)


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of per cent, 0 or more")
    return value


def run(options: argparse.Namespace) -> int:
    """Print the comparison; 1 if ``--fail-slower`` was given and does not hold."""
    from gemmprof.analysis.comparison.pairs import too_slow
    from gemmprof.reports.terminal import comparison

    pairs = _pairs(options)
    if not pairs:
        raise UsageError(
            "there is nothing to compare",
            remedies=["give two runs or reports", "give one that holds at least two kernels"],
        )
    stopped = () if options.fail_slower is None else too_slow(pairs, options.fail_slower)
    if options.json:
        _shared.print_json(comparison.records(pairs, stopped))
    else:
        comparison.print_pairs(_shared.console(), pairs, details=options.details or len(pairs) == 1)
    for pair in stopped:
        print(f"gemmprof diff: {pair.label}: {comparison.reason(pair, options.fail_slower)}", file=sys.stderr)
    return 1 if stopped else 0


def _pairs(options: argparse.Namespace) -> tuple[Pair, ...]:
    from gemmprof.analysis.comparison import pairs as comparison_pairs
    from gemmprof.analysis.session import load_session

    if len(options.inputs) > 2:
        raise UsageError("more than two inputs were named", remedies=["name a before and an after"])
    picked = (options.before, options.after)
    if any(picked) and not all(picked):
        raise UsageError("--before and --after belong together", remedies=["give both, or neither"])
    if len(options.inputs) == 2:
        before, after = (load_session([path]) for path in options.inputs)
        _shared.name_failures(options, (*before.failures, *after.failures))
    else:
        before = after = _shared.load_inputs(options)
    if all(picked):
        left, right = (comparison_pairs.chosen(s, p) for s, p in zip((before, after), picked, strict=True))
        return (comparison_pairs.pair_of(left, right),)
    return comparison_pairs.rungs(before) if before is after else comparison_pairs.pair_up(before, after)
