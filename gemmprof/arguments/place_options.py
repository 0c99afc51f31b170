"""``--gpus``, ``--cluster``, ``--slurm``, ``--pbs``: where `collect` and `tune` have their work done."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gemmprof.arguments.numbers import whole
from gemmprof.base.errors import UsageError

if TYPE_CHECKING:
    from gemmprof.base.progress import Progress
    from gemmprof.profiler.site import Site

DEFAULT_WAIT = 300


def add_place_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where work runs."""
    group = parser.add_argument_group("where to run")
    where = group.add_mutually_exclusive_group()
    where.add_argument(
        "--gpus",
        default="",
        metavar="0,1|all",
        help="GPUs of this machine that share the work, of one model, by their index in nvidia-smi (default: the one "
        "that CUDA uses first)",
    )
    where.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="a Dask scheduler (tcp://host:8786, or its scheduler file) whose workers have the resource GPU=1",
    )
    for system, title in (("slurm", "Slurm"), ("pbs", "PBS")):
        where.add_argument(
            f"--{system}",
            type=whole(1),
            metavar="N",
            help=f"start N workers through {title}, a GPU each, for this command",
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
        help=f"wait so long for a cluster's scheduler file, and for its workers (default {DEFAULT_WAIT})",
    )


@contextmanager
def chosen_site(options: argparse.Namespace, progress: Progress) -> Iterator[Site]:
    """Where the options have the work done.

    Raises:
        UsageError: options that do not go together.
        DeviceError: no cluster, or no worker.
    """
    system = "slurm" if options.slurm else "pbs" if options.pbs else ""
    if options.job and not system:
        raise UsageError("--job belongs to --slurm or --pbs", remedies=["add --slurm N", "leave --job out"])
    if not system and not options.cluster:
        from gemmprof.profiler.here import Here

        yield Here(options.gpus)
        return
    from gemmprof.profiler.cluster.cluster_site import cluster_site
    from gemmprof.profiler.cluster.connection import Jobs

    jobs = Jobs(system, options.slurm or options.pbs, tuple(options.job or ())) if system else None
    with cluster_site(jobs or options.cluster, wait=options.wait, progress=progress) as site:
        yield site
