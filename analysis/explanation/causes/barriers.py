"""Waits at barriers: the meeting itself, or warps of a block that have far more to do than the others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import Candidate, Variant, derived, evidence, keep_of, share
from gemmprof.analysis.explanation.code import attribution
from gemmprof.analysis.explanation.code.roles import specialised
from gemmprof.analysis.explanation.code.sass import Sass
from gemmprof.analysis.explanation.demands.time_model import Fix
from gemmprof.analysis.explanation.demands.traffic import BELOW_L1
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work
from gemmprof.model import Evidence

STEP = 36  # instructions between two barriers up to which they may be a step of a reduction
WARP = 32.0
ONE_OF_TWO = 0.5  # barriers that stay where two a step, before and after a tile is used, become one
# Instructions beside two for each halving: each warp stores its sum, the block meets, and a warp reads them.
EXCHANGE = 6.0
SHUFFLES = 1.0  # shuffles for each barrier from which on a block reduces through them
# Cycles at one barrier beyond which it is the late warps' work, not the meeting, that costs.
LONG_WAIT = 1500.0


@dataclass(frozen=True, slots=True)
class _Waits:
    """What warps wait at the barriers of a block.

    Attributes:
        bars: the barriers.
        count: how often warps execute one.
        at: share of the warps' time by instruction.
        part: all of it.
        of_state: of the state that ncu counts it to, which wgmma and clusters share.
        each: cycles that a warp waits at one.
        evidence: the same in numbers.
    """

    bars: Mask
    count: float
    at: Array
    part: float
    of_state: float
    each: float
    evidence: tuple[Evidence, ...]

    def leaving(self, stays: float) -> float:
        """Factor on the whole state when this share of the waits at barriers stays."""
        return 1.0 - (1.0 - stays) * self.part / self.of_state


def barriers(work: Work) -> Iterator[Candidate]:
    """No wait at barriers (a reduction through shuffles, warps that need not meet).

    Fixed: the time that warps spend at barriers is gone. What it counts against is what the late warps do
    meanwhile.
    """
    found = _waits(work)
    if found is None:
        return
    if found.each > LONG_WAIT:
        # Warps with roles of their own wait for one another's turn.
        if not specialised(work):
            yield _late_warps(work, found)
        return
    if float(work.executed[work.where(lambda line: line.opcode == "SHFL")].sum()) > SHUFFLES * found.count:
        return  # the warps already reduce by themselves, and meet for the rest
    yield _meetings(work, found)


def _waits(work: Work) -> _Waits | None:
    """The waits at barriers, None where they are few."""
    waits = work.samples.get(attribution.BARRIER)
    if work.code is None or waits is None or float(waits.sum()) < 0.03:
        return None
    bars = work.where(lambda line: line.opcode == "BAR")
    # ncu counts the waits for wgmma's results and at a cluster's barrier to the same state.
    others = work.where(lambda line: line.opcode in ("WARPGROUP", "UCGABAR_WAIT"))
    whole = float(waits.sum())
    waits = np.where(others, 0.0, waits)
    part = float(waits.sum())
    count = float(work.executed[bars].sum())
    if part < max(0.03, 0.5 * whole) or not count:
        return None
    each = share(part * (work.warp_cycles or 0.0), count)
    numbers = (
        *evidence(work, metrics.stalled_per_issue("barrier")),
        derived("barriers executed by warps", count),
        derived("cycles waited per barrier", each, "cycle"),
        derived("barrier samples / all samples", part),
    )
    return _Waits(bars, count, waits, part, whole, each, numbers)


def _late_warps(work: Work, waits: _Waits) -> Candidate:
    """The barrier is not the cause: some warps of the block have far more to do than the others."""
    return Candidate(
        cause="workload_imbalance",
        variants=(
            Variant(
                "even warps",
                Fix(reasons={attribution.BARRIER: waits.leaving(0.05)}),
                cautious=Fix(reasons={attribution.BARRIER: waits.leaving(0.5)}),
            ),
        ),
        change=(
            f"Share the work out among the warps of a block: the others wait {waits.each:,.0f} cycles at each "
            "barrier for the one with the most to do."
        ),
        evidence=waits.evidence,
        attributed=_between_barriers(work, waits.bars),
        least=0.03,
    )


def _meetings(work: Work, waits: _Waits) -> Candidate:
    """Fewer meetings: reductions through shuffles, one barrier a step elsewhere."""
    steps = _steps(work, waits.bars)
    of_steps = share(float(work.executed[steps & waits.bars].sum()), waits.count)
    warps = max(1.0, np.ceil(work.profile.launch.threads_per_block / WARP))
    # As many steps as the block's threads can be halved; the meeting before the first of them stays.
    halvings = np.log2(max(2.0, warps * WARP))
    each = float(work.executed[steps].sum()) / max(1.0, float(work.executed[steps & waits.bars].sum()))
    shuffled = 2.0 * halvings + EXCHANGE
    keep = keep_of(work)
    keep[steps] = min(1.0, share(shuffled, halvings * each))
    met = min(1.0, 1.0 / halvings)
    keep[steps & waits.bars] = met
    keep[waits.bars & ~steps] = ONE_OF_TWO
    # A shuffle's answer is waited for as long as that of shared memory.
    rounds = float(work.executed[steps & waits.bars].sum()) / halvings
    answers = work.attributed.get(attribution.SHORT, np.zeros(len(keep)))
    waited = share(float(answers[steps].sum()) * (work.warp_cycles or 0.0), rounds)
    answered = min(1.0, share(halvings * work.practice.shared_cycles, waited))
    latency = np.where(steps & ~waits.bars & (keep > 0), answered / np.maximum(keep, 1e-9), 1.0)
    at_steps = share(float(waits.at[steps].sum()), waits.part)
    same_traffic = dict.fromkeys(BELOW_L1, 1.0)

    def fix(of_step: float, elsewhere: float, keep: Array) -> Fix:
        stays = of_step * at_steps + elsewhere * (1.0 - at_steps)
        return Fix(
            keep=keep,
            latency=latency,
            reasons={attribution.BARRIER: waits.leaving(stays), "membar": of_step if of_steps > 0.5 else 1.0},
            resources=same_traffic,
        )

    return Candidate(
        cause="barriers",
        variants=(
            Variant(
                "shuffles within the warp" if of_steps > 0.5 else "one barrier a step",
                fix(met, ONE_OF_TWO, keep),
                cautious=fix(0.5, 1.0, 0.5 * (1.0 + keep)),
                bold=fix(0.0, 0.0, keep),
            ),
        ),
        change=(
            f"Meet less often: warps wait at barriers for {100 * waits.part:.0f} % of their time. "
            + (
                "Reduce or scan through shuffles within a warp, so that the block meets once or twice."
                if of_steps > 0.5
                else "Double buffer so that one barrier a step suffices, or use smaller blocks."
            )
        ),
        evidence=waits.evidence,
        attributed=waits.at + np.where(steps, work.attributed_total, 0.0),
        least=0.03,
    )


def _steps(work: Work, bars: Mask) -> Mask:
    """The steps of reductions and scans: short stretches between barriers that read and write shared memory
    only.
    """
    found = np.zeros(len(bars), dtype=bool)
    places = [int(at) for at in np.flatnonzero(bars) if work.executed[at] > 0]
    for loop in work.code.loops if work.code is not None else ():
        inside = [at for at in places if at in loop]
        # Of a loop with a barrier the stretch from the last one around to the first belongs together.
        if inside and len(loop) <= STEP * len(inside) and _is_step(work, loop.first, loop.last):
            found[loop.first : loop.last + 1] = True
    for first, last in itertools.pairwise(places):
        if last - first <= STEP and _is_step(work, first, last):
            found[first : last + 1] = True
    return found


def _is_step(work: Work, first: int, last: int) -> bool:
    lines = work.sass[first : last + 1]
    # What a step combines it has read, and leaves for the next one.
    combined = all(any(wanted(line) for line in lines) for wanted in (_reads_shared, _writes_shared))
    return combined and not any(
        line.space in ("global", "local") or line.opcode == "SHFL" or line.instruction_class == "tensor"
        for line in lines
    )


def _reads_shared(line: Sass) -> bool:
    return line.is_load and line.space == "shared"


def _writes_shared(line: Sass) -> bool:
    return line.is_store and line.space == "shared" and line.opcode != "LDGSTS"


def _between_barriers(work: Work, bars: Mask) -> Array:
    """What the late warps do while the others wait: their time outside of barriers."""
    outside = work.attributed_total - work.samples.get(attribution.BARRIER, np.zeros(len(bars)))
    return np.where(bars, 0.0, np.maximum(outside, 0.0))
