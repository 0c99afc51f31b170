"""How long the warps of a launch would wait if no queue were full: the floor under its time at this
occupancy.

By Little's law a launch takes as long as all its warps' cycles divided by the warps that are resident. Of
the cycles that were sampled, a part is queueing (throttles, `not_selected`, and what a load takes beyond an
empty machine's latency): it goes away when the resource behind the queue gets less to do. The rest, the
*unloaded* share, is latency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation import blame
from gemmprof.analysis.explanation.work import Array, Work

SHARED_CYCLES = 30.0
"""From a shared load to its consumer, no bank conflict; conversions and special functions take about as
long.
"""
L1_CYCLES = 38.0
L2_CYCLES = 270.0
DRAM_CYCLES = 850.0
ATOMIC_CYCLES = 700.0
STORE_CYCLES = 600.0
"""A warp's last stores before it may leave."""
TAG_CYCLES = 2.0
"""More for each further 128-byte line that a request touches."""
WAVEFRONT_CYCLES = 2.0
"""More for each further wavefront of a shared access."""

FULL = (
    blame.SELECTED,
    blame.WAIT,
    "branch_resolving",
    blame.NO_INSTRUCTION,
    "imc_miss",
    "membar",
    "sleeping",
    "misc",
)
"""States that are latency whatever else the machine does."""
QUEUES = (*blame.THROTTLES, blame.NOT_SELECTED)


@dataclass(frozen=True)
class Unloaded:
    """Share of the warps' time that is latency, by the instruction to blame and by state."""

    by_reason: dict[str, Array]

    @property
    def total(self) -> float:
        """All of it, 0 … 1."""
        return float(sum(values.sum() for values in self.by_reason.values()))


def load_cycles(work: Work, lines: float | None = None) -> Array:
    """Cycles from each long-latency instruction to its consumer on an idle machine, from the launch's hit
    rates.

    Args:
        lines: 128-byte lines that each request touches, instead of what was counted.
    """
    number = work.number
    first = (number(metrics.GLOBAL_LOAD_HIT_RATE) or number(metrics.L1_HIT_RATE) or 0.0) / 100
    second = (number(metrics.L2_READ_HIT_RATE) or number(metrics.L2_HIT_RATE) or 0.0) / 100
    executed = np.maximum(work.executed, 1.0)
    tags = np.maximum(work.global_tags / executed, 1.0) if lines is None else np.full(len(executed), lines)
    # The slowest of its lines is waited for; lines of one request are alike, so a few stand for all.
    several = np.clip(tags, 1.0, 8.0)
    miss = 1.0 - np.clip(first, 0.0, 1.0) ** several
    beyond = 1.0 - min(1.0, max(0.0, second)) ** several
    cycles = L1_CYCLES + miss * (L2_CYCLES - L1_CYCLES) + miss * beyond * (DRAM_CYCLES - L2_CYCLES)
    cycles = cycles + TAG_CYCLES * (tags - 1.0)
    atomic = work.where(lambda line: line.is_atomic)
    local = work.where(lambda line: line.space == "local")
    cycles = np.where(atomic, ATOMIC_CYCLES, cycles)
    return np.where(local, L1_CYCLES + 0.2 * (L2_CYCLES - L1_CYCLES), cycles)


def short_cycles(work: Work) -> Array:
    """Cycles from each short-latency instruction to its consumer, its bank conflicts included."""
    executed = np.maximum(work.executed, 1.0)
    wavefronts = np.maximum(work.shared_wavefronts / executed, 1.0)
    return SHARED_CYCLES + WAVEFRONT_CYCLES * (wavefronts - 1.0)


def unloaded(work: Work, scale: float = 1.0) -> Unloaded | None:
    """The latency share of one launch; None without samples.

    Args:
        scale: factor on every latency of the idle machine, for the uncertainty of the figures above.
    """
    cycles = work.warp_cycles
    if not work.samples or not cycles or not work.total_executed:
        return None
    executed = np.maximum(work.executed, 1.0)
    found: dict[str, Array] = {}

    def floor(values: Array, latency: Array | float) -> Array:
        per_execution = values * cycles / executed
        return values * np.minimum(1.0, scale * latency / np.maximum(per_execution, 1e-9))

    for reason, values in work.blamed.items():
        if reason == blame.LONG:
            found[reason] = floor(values, work.once("load cycles", lambda: load_cycles(work)))
        elif reason == blame.SHORT:
            found[reason] = floor(values, work.once("short cycles", lambda: short_cycles(work)))
        elif reason == "drain":
            found[reason] = floor(values, STORE_CYCLES)
        elif reason == "gmma":
            found[reason] = 0.3 * values
        elif reason in FULL:
            found[reason] = values
    barrier = work.blamed.get(blame.BARRIER)
    if barrier is not None:
        # A warp waits at a barrier for as long as the late ones take, queues included.
        others = 1.0 - float(barrier.sum())
        rest = float(sum(values.sum() for values in found.values()))
        found[blame.BARRIER] = barrier * (min(1.0, rest / others) if others > 0 else 1.0)
    return Unloaded(found)
