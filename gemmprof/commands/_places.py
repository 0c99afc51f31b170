"""``--gpus``: where `collect` and `tune` have their work done."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _ActionsContainer

    from gemmprof.profiler.site import Site


def add_place_arguments(parser: _ActionsContainer) -> None:
    """Add the options that say where work runs."""
    parser.add_argument(
        "--gpus",
        default="",
        metavar="0,1|all",
        help="GPUs of this machine that share the work, of one model, by their index in nvidia-smi (default: the one "
        "that CUDA uses first)",
    )


def chosen_site(options: argparse.Namespace) -> Site:
    """Where the options have the work done."""
    from gemmprof.profiler.here import Here

    return Here(options.gpus)
