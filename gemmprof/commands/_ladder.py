"""``--ladder``, ``--dtype`` and ``--c-dtype``: which ladder a command works on, and in which types."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gemmprof.errors import UsageError
from gemmprof.kernels import catalog
from gemmprof.model import Ladder

if TYPE_CHECKING:
    from argparse import _ActionsContainer


def add_ladder_argument(parser: _ActionsContainer) -> None:
    """Add ``--ladder``."""
    names = ", ".join(f"{ladder.name} ({ladder.title})" for ladder in catalog.LADDERS)
    parser.add_argument("--ladder", choices=[ladder.name for ladder in catalog.LADDERS], help=f"of {names}")


def add_type_arguments(parser: _ActionsContainer) -> None:
    """Add ``--ladder`` and the types of operands and result."""
    add_ladder_argument(parser)
    parser.add_argument(
        "--dtype",
        action="append",
        choices=catalog.ladder_dtypes(),
        help="operand type (default: the ladder's first); may be repeated",
    )
    parser.add_argument(
        "--c-dtype", choices=catalog.ladder_dtypes(), help="type of C: the operands' (default) or float32"
    )


def chosen_ladder(options: argparse.Namespace) -> Ladder:
    """The ladder that the options mean: the one named, else the one of the type, else the first.

    Raises:
        UsageError: the ladder that is named, or that of the first type, does not compute in a type.
    """
    dtypes = options.dtype or []
    if options.ladder:
        ladder = catalog.ladder_named(options.ladder)
    else:
        ladder = catalog.ladder_of(dtypes[0]) if dtypes else catalog.LADDERS[0]
    for dtype in dtypes:
        if dtype not in ladder.dtypes:
            raise UsageError(
                f"the ladder {ladder.name} does not compute in {dtype}",
                remedies=[f"choose --dtype {' or '.join(ladder.dtypes)}, or another --ladder"],
            )
    return ladder
