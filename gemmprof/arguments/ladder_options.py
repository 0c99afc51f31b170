"""Which ladder a command works on, in which types, and where `collect` and `tune` have their work done."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from gemmprof.arguments import common
from gemmprof.arguments.parser import DEFAULT_WAIT, cluster, values
from gemmprof.base.errors import UsageError
from gemmprof.gpu.dtypes import ELEMENT_TYPES
from gemmprof.kernels import catalog
from gemmprof.model import Ladder, Problem

if TYPE_CHECKING:
    from gemmprof.base.progress import Progress
    from gemmprof.profiler.cluster.connection import Jobs
    from gemmprof.profiler.collect import Site

Result = TypeVar("Result")
DEFAULT_SHAPE = "4096"
AGAIN_SECONDS = 1.0  # between two looks for a scheduler that went away
LADDER = f"""
--ladder                of {", ".join(f"{ladder.name} ({ladder.title})" for ladder in catalog.LADDERS)}
"""
TYPES = f"""{LADDER}
--dtype…                operand type (default: the ladder's first); may be repeated
--c-dtype               type of C: the operands' (default; with 8-bit ones bfloat16) or float32
"""
TYPE_VALUES = values(
    ladder=tuple(ladder.name for ladder in catalog.LADDERS),
    dtype=catalog.ladder_dtypes(),
    c_dtype=tuple(dict.fromkeys(c for name in catalog.ladder_dtypes() for c in ELEMENT_TYPES[name].c_types)),
)
# Where work runs.
PLACE = cluster(
    "where to run",
    "whose workers have the resource GPU=1",
    """| --gpus 0,1|all       GPUs of this machine that share the work, of one model, by their index in nvidia-smi
                        (default: the one that CUDA uses first)""",
)
PLACE_VALUES = values(gpus="", wait=DEFAULT_WAIT)


def asked_problems(options: argparse.Namespace, dtypes: Iterable[str]) -> tuple[Problem, ...]:
    """Every shape that is asked for, in the types that are, else in these."""
    asked = ((text, dtype) for dtype in options.dtype or dtypes for text in options.shape or [DEFAULT_SHAPE])
    problems = (Problem.parse(text, dtype, options.c_dtype or "") for text, dtype in asked)
    return tuple(dict.fromkeys(problems))


def chosen_ladder(options: argparse.Namespace) -> Ladder:
    """The ladder that is named, else that of the type, of the stages by name, the first; UsageError for other types."""
    dtypes = options.dtype or []
    if options.ladder:
        ladder = catalog.ladder_named(options.ladder)
    elif dtypes:
        ladder = catalog.ladder_of(dtypes[0])
    else:
        # The first that has all stages named: names tell ladders apart, numbers mean the first one.
        given = getattr(options, "stage", None) or ()
        listed = [given] if isinstance(given, str) else given
        words = {word.strip().lower() for selector in listed for word in selector.split(",")}
        stages = {item.name: {stage.name for stage in item.stages} for item in catalog.LADDERS}
        named = words & set().union(*stages.values())
        fitting = (item for item in catalog.LADDERS if named <= stages[item.name])
        ladder = next(fitting, catalog.LADDERS[0])
    for dtype in dtypes:
        if dtype not in ladder.dtypes:
            fix = f"choose --dtype {' or '.join(ladder.dtypes)}, or another --ladder"
            raise UsageError(f"the ladder {ladder.name} does not compute in {dtype}", fix)
    return ladder


def on_site(options: argparse.Namespace, work: Callable[[Site, Progress, bool], Result]) -> Result:
    """What the work returns on the site that the options name, its progress on stderr; it is done again (True) once a
    lost scheduler answers.

    Raises:
        UsageError: options that do not go together.
        SchedulerGone: none does within ``--wait``.
        DeviceError: no cluster, or no worker; or it answers, and the work cannot be done there.
    """
    from gemmprof.profiler.cluster.connection import NoScheduler, SchedulerGone
    from gemmprof.reports.terminal.progress_bars import progress_on

    where = common.chosen_cluster(options, gpu=True)
    gone: SchedulerGone | None = None
    end = 0.0
    bars = sys.stderr.isatty() and not options.json
    with progress_on(common.console(stderr=True), bars=bars, quiet=options.json) as progress:
        while True:
            try:
                with _site(where, options, progress) as site:
                    return work(site, progress, gone is not None)
            except SchedulerGone as error:
                gone, end = error, time.monotonic() + options.wait
                progress.note(f"{error.message}; waiting for it, {options.wait} s at most")
            except NoScheduler:
                if gone is None:
                    raise
            if time.monotonic() >= end:
                raise gone
            time.sleep(AGAIN_SECONDS)


def _site(
    where: str | Jobs | None, options: argparse.Namespace, progress: Progress
) -> AbstractContextManager[Site]:
    if where is None:
        from gemmprof.profiler.site import Here

        return nullcontext(Here(options.gpus))
    from gemmprof.profiler.cluster.cluster_site import cluster_site

    return cluster_site(where, wait=options.wait, progress=progress)
