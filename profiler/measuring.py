"""The part of a collection that verifies and times: the parts that the run lacks, on every GPU that is lent.

A stage whose kernel faults takes its child along; it is attributed, and another child goes on with the rest.
"""

from __future__ import annotations

import dataclasses
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Literal

from gemmprof.base.errors import DeviceError, GemmprofError
from gemmprof.model import Problem, Timing, Verification
from gemmprof.profiler.job import Task, counted_interrupts
from gemmprof.profiler.keeper import Interrupted, Keeper
from gemmprof.profiler.site import CRASHED, Answer, LocalPlaces, NotBegun, Request

if TYPE_CHECKING:
    from gemmprof.profiler.cluster.cluster_site import ClusterPlaces

    Places = LocalPlaces | ClusterPlaces

MODULE = "gemmprof.profiler.stage_worker"

PART_SECONDS = 600.0  # for a part of a task beyond its arithmetic: loading, a plug-in that tunes itself

SLOWEST_RATE = 1e10  # FLOP/s that the slowest kernel on the oldest GPU still reaches; what is slower hangs
POLL_SECONDS = 0.2


def measure(keeper: Keeper, places: Places, part: Literal["verify", "time"]) -> None:
    """Verify what is not verified, or time what is not timed; Interrupted by Ctrl-C, DeviceError if no GPU is left."""
    asked: dict[Future[Answer], Task] = {}
    for task in keeper.unmeasured():
        if task.verify if part == "verify" else task.time and not task.verify:
            record = {"part": part, "stage": task.stage, "problem": dataclasses.asdict(task.problem)}
            asked[places.submit(Request(record, seconds_for(task.problem)))] = task
    told, lost = False, None
    pending = set(asked)
    with counted_interrupts() as interrupts:
        while pending:
            if interrupts and not told:
                keeper.tell_interrupt()
            if keeper.stopping.is_set() and not told:
                told = True
                places.cancel_waiting()
            if len(interrupts) > 1 or keeper.leaving.is_set():
                raise Interrupted
            done, pending = wait(pending, POLL_SECONDS, FIRST_COMPLETED)
            for future in done:
                lost = _take(keeper, part, asked[future], future, several=places.width > 1) or lost
    if told:
        raise Interrupted
    if lost is not None:
        raise lost


def _take(
    keeper: Keeper, part: str, task: Task, future: Future[Answer], *, several: bool
) -> GemmprofError | None:
    """Keep what came of a part of a task; returns the error that leaves no GPU for it."""
    try:
        answer = future.result()
    except NotBegun:
        return None
    except DeviceError as error:
        return error
    key, record, label = task.key, answer.record, keeper.label(task.key)
    where = f" ({answer.card.label})" if several else ""
    if answer.status == CRASHED:
        keeper.fail(key, "measure", f"the program ended: {record.get('detail', '')}{where}")
    elif answer.status == "timed":
        timing = dataclasses.replace(Timing(**record["timing"]), card=answer.card)
        keeper.keep(key, timing=timing)
        rate = f"{timing.tflops(task.problem):.2f} TFLOP/s" if task.problem.flops else "no arithmetic"
        keeper.progress.done(f"time {label}: {timing.median * 1e3:.3f} ms, {rate}{where}")
    elif answer.status == "verified":
        verification = dataclasses.replace(Verification(**record["verification"]), card=answer.card)
        failure = None if verification.passed else f"verification: {verification.detail}"
        keeper.keep(key, verification=verification, failure=failure)
        passed = f"relative error {verification.relative_error:.1e} (allowed {verification.tolerance:.1e})"
        said = f"FAILED, {verification.detail}" if failure else passed
        keeper.progress.done(f"verify {label}: {said}{where}")
    else:
        keeper.fail(key, part, str(record.get("detail", "")))
    return None


def seconds_for(problem: Problem) -> float:
    """How long a child may take for a part of a task before it counts as hung."""
    return PART_SECONDS + problem.flops / SLOWEST_RATE
