"""The options that give a command a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gemmprof.arguments.common import whole
from gemmprof.base.errors import UsageError

if TYPE_CHECKING:
    from gemmprof.profiler.cluster.connection import Jobs

DEFAULT_WAIT = 300


def add_cluster_arguments(
    group: argparse._ArgumentGroup, where: argparse._ActionsContainer, whose: str
) -> None:
    """Add the options.

    Args:
        group: takes those that belong to the others.
        where: takes the one of which there is one.
        whose: what the workers are like.
    """
    where.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help=f"a Dask scheduler (tcp://host:8786, or its scheduler file) {whose}",
    )
    for system, title in (("slurm", "Slurm"), ("pbs", "PBS")):
        where.add_argument(
            f"--{system}",
            type=whole(1),
            metavar="N",
            help=f"start N workers through {title} for this command",
        )
    group.add_argument(
        "--job",
        action="append",
        metavar="NAME=VALUE",
        help="option of dask-jobqueue for --slurm and --pbs (queue, account, walltime, memory, directive …); may be "
        "repeated",
    )
    group.add_argument(
        "--wait",
        type=whole(0),
        default=DEFAULT_WAIT,
        metavar="SECONDS",
        help="wait so long for a cluster's scheduler file, its workers, and a scheduler that went away (default "
        f"{DEFAULT_WAIT})",
    )


def add_reading_place_arguments(parser: argparse.ArgumentParser) -> None:
    """Add them to a command that reads reports."""
    group = parser.add_argument_group("where to read")
    whose = "whose workers read the reports, from storage that they share with this machine"
    add_cluster_arguments(group, group.add_mutually_exclusive_group(), whose)
    parser.set_defaults(reads_on_a_cluster=True)


def chosen_cluster(options: argparse.Namespace, *, gpu: bool) -> str | Jobs | None:
    """The cluster that the options name, None without one.

    Raises:
        UsageError: options that do not go together.
    """
    system = "slurm" if options.slurm else "pbs" if options.pbs else ""
    if options.job and not system:
        raise UsageError("--job belongs to --slurm or --pbs", remedies=["add --slurm N", "leave --job out"])
    if not system:
        return options.cluster or None
    from gemmprof.profiler.cluster.connection import Jobs

    return Jobs(system, options.slurm or options.pbs, tuple(options.job or ()), gpu)


@contextmanager
def read_elsewhere(options: argparse.Namespace) -> Iterator[None]:
    """Have the reports of a command that `add_reading_place_arguments` was called for read where its options say.

    Raises:
        UsageError: options that do not go together.
        DeviceError: no cluster, or no worker.
    """
    where = chosen_cluster(options, gpu=False)
    if where is None:
        yield
        return
    from gemmprof.profiler.cluster.readers import reading_on
    from gemmprof.reports.terminal.progress_bars import PlainProgress

    with reading_on(where, wait=options.wait, progress=PlainProgress()):
        yield
