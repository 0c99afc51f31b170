"""The time model: how long a launch takes, from what it asks of each resource, and what when it asks for less.

With all times as shares of the measured one::

    time = idle + (sum over terms of (scale * term) ** P) ** (1 / P)

The terms are the resources (busy share over ceiling; those of an SM times the imbalance, because the
busiest SM is waited for) and the latency (`latency.unloaded`; times the working share of the time).
``idle`` is the share before the first and behind the last instruction. A large P is perfect overlap: the
largest term alone counts.

``scale`` makes the formula exact for the launch as measured: what the terms leave unexplained is put on the
busiest of them, ``k ** ((term / largest) ** 2)``, so that it goes away with what causes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.code import latency
from gemmprof.analysis.explanation.code.flow import BARRIER, LONG, SELECTED, SHORT, WAIT
from gemmprof.analysis.explanation.code.live import live_results
from gemmprof.analysis.explanation.demands.resources import GPU, LSU, WARPS_A_CYCLE
from gemmprof.analysis.explanation.demands.work import Array, Work, constant_turns, once
from gemmprof.analysis.occupancy.of_launch import of_launch
from gemmprof.analysis.opcodes import info
from gemmprof.gpu.arch import REGISTERS_PER_THREAD

OVERLAP = 4.0  # P: how well the work of different resources overlaps
SHARPNESS = 2.0  # how strongly the unexplained part of the time is put on the busiest terms

# Time over what all terms explain, from which on too little was recorded to say anything.
MOST_UNEXPLAINED = 10.0

MOST_LOG_SCALE = 3.0  # the factor on the terms lies within e to the power of plus and minus this
# Steps that are taken to find it at most (about six are), and the step that is too short to be taken.
NEWTON_STEPS, NEWTON_ENDS = 40, 1e-12

FEW_LOADS = 8  # resources whose use is known, up to which nobody can say that all of them were idle
LATENCY, LINES, LINK = "latency", "l1_lines", "link"
ESTIMATED = (LATENCY, LINES, LINK)  # terms that rest on latencies of an idle machine; all others are counted
WAITS_FOR_RESULTS = (LONG, SHORT, "drain")  # the states that `Fix.latency` scales


@dataclass(frozen=True)
class Fix:
    """What fixing one cause takes away, or changes."""

    # share of each instruction's executions that stays, above 1 where there are more; None for all
    keep: Array | None = None
    latency: Array | None = None  # factor on the wait for each instruction's result, beside ``keep``
    reasons: Mapping[str, float] = field(default_factory=dict)  # factor on the latency of a warp state
    # factor on what is asked of a resource, beside ``keep``; these replace what ``keep`` implies for the same resource
    resources: Mapping[str, float] = field(default_factory=dict)
    added: Mapping[str, float] = field(
        default_factory=dict
    )  # busy share that the fixed kernel adds to a resource
    # warp instructions that the fixed kernel executes beside, by the pipe that they run on; they take issue slots and
    # the warps' time as the launch's own arithmetic does
    instructions: Mapping[str, float] = field(default_factory=dict)
    # accesses of shared memory for each execution of an instruction that they take the place of, or stand beside; what
    # another change leaves of the instruction, it leaves of these
    shared: Array | None = None
    passes: float = 0.0  # through L1's data stage (shared memory) that it makes beside
    barriers: float = 0.0  # times that a warp meets the others of its block beside
    # registers a thread and bytes a block that it needs more, or fewer below 0; the warps that an SM holds follow
    registers: int = 0
    shared_bytes: int = 0
    warps: float = 1.0  # factor on the warps that are resident on an SM, for other reasons
    imbalance: float | None = None  # cycles of the busiest SM over the average one; None to leave it
    idle: float = 1.0  # factor on the share of the time before the first and behind the last instruction
    # share of the time, as measured, for which all warps of a block no longer stand still together; of this and what
    # the terms save, the larger counts
    stalled: float = 0.0
    # share of the traffic that asks for whole sectors only then, as those accesses do whose rates are the ceilings, or
    # of the warps' time in which they no longer do one thing after another all at once: what a launch needs beyond its
    # terms goes away with it
    regular: float = 0.0
    parts: tuple[Fix, ...] = ()  # the changes that were made at once, where there are several

    def together(self, other: Fix) -> Fix:
        """Both changes at once: of what both take away, the larger part is gone."""

        def least(one: Array | None, two: Array | None) -> Array | None:
            return two if one is None else one if two is None else np.minimum(one, two)

        def fewer(one: Mapping[str, float], two: Mapping[str, float]) -> dict[str, float]:
            return {key: min(one.get(key, 1.0), two.get(key, 1.0)) for key in {*one, *two}}

        def more(one: Mapping[str, float], two: Mapping[str, float]) -> dict[str, float]:
            return {key: max(one.get(key, 0.0), two.get(key, 0.0)) for key in {*one, *two}}

        def beside(one: Fix, two: Fix) -> Array | None:
            return one.shared if one.shared is None or two.keep is None else one.shared * two.keep

        shared = [one for one in (beside(self, other), beside(other, self)) if one is not None]
        sides = [value for value in (self.imbalance, other.imbalance) if value is not None]
        return Fix(
            keep=least(self.keep, other.keep),
            latency=least(self.latency, other.latency),
            reasons=fewer(self.reasons, other.reasons),
            resources=fewer(self.resources, other.resources),
            added=more(self.added, other.added),
            instructions=more(self.instructions, other.instructions),
            shared=np.maximum.reduce(shared) if shared else None,
            passes=max(self.passes, other.passes),
            barriers=max(self.barriers, other.barriers),
            registers=max(self.registers, other.registers),
            shared_bytes=max(self.shared_bytes, other.shared_bytes),
            warps=max(self.warps, other.warps),
            imbalance=min(sides) if sides else None,
            idle=min(self.idle, other.idle),
            stalled=max(self.stalled, other.stalled),
            regular=max(self.regular, other.regular),
            parts=(*(self.parts or (self,)), *(other.parts or (other,))),
        )


NOTHING = Fix()


class TimeModel:
    """The time model of one launch."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.unloaded = latency.unloaded(work)
        self.inner = 1.0 - work.idle_start
        self.rest = 0.0
        terms = self.terms(NOTHING)
        # What waits for the host's memory, more than for anything else, waits in that term.
        of_the_host = LINK in terms and terms[LINK] >= max(terms.values())
        if self.unloaded is None and len(work.loads) > FEW_LOADS and not of_the_host:
            # No warp was sampled: latency is what no unit was busy with, on the busiest SM.
            busy = sum(term**OVERLAP for term in _apart(terms).values())
            self.rest = float(max(0.0, self.inner**OVERLAP - busy) ** (1.0 / OVERLAP))
            terms = self.terms(NOTHING)
        sum_of_terms = _norm(_apart(terms))
        # What rests on latencies alone, where nothing was sampled and no unit counted, is no model of the time.
        counted = any(key not in ESTIMATED or key == LATENCY for key in terms)
        self.known = counted and sum_of_terms * MOST_UNEXPLAINED > self.inner
        # How far all terms together are off the time that was measured: the logarithm of the one over the other.
        self.misfit = abs(math.log(self.inner / sum_of_terms)) if self.known else 0.0
        self.scales = self._scales(terms) if self.known else {}

    # --- Terms ---

    def terms(self, fix: Fix) -> dict[str, float]:
        """Each resource's share of the time, and the latency's, with a change made."""
        work = self.work
        imbalance = work.imbalance if fix.imbalance is None else fix.imbalance
        # Blocks that are all there at once wait at once, but what they do takes its turn.
        at_once = fix.imbalance is None and work.one_wave
        on_sm = max(imbalance, work.shares) if at_once else imbalance
        found: dict[str, float] = {}
        for key, load in work.loads.items():
            busy = load.busy
            if fix is not NOTHING:
                busy = busy * self.factor(key, fix) + fix.added.get(key, 0.0) + _more_busy(work, key, fix)
            found[key] = busy / load.ceiling * (1.0 if load.resource.scope == GPU else on_sm)
        if latency.behind_atomics(work):
            found["l2_atomics"] = self.inner * self.factor("l2_atomics", fix)
        if lines := latency.lines_under_way(work):
            found[LINES] = lines * self.factor(LINES, fix) * imbalance
        average = work.active_average / work.elapsed if work.elapsed else 1.0
        if link := latency.on_the_link(work):
            found[LINK] = link * average * fix.resources.get(LINK, 1.0)
        if self.unloaded is not None:
            found[LATENCY] = self.latency_share(fix) * average * imbalance / self.resident(fix)
        elif self.rest:
            found[LATENCY] = self.rest * imbalance / work.imbalance / self.resident(fix)
        return found

    def latency_share(self, fix: Fix) -> float:
        """Unloaded share of the warps' time with a change made."""
        assert self.unloaded is not None
        work, sums = self.work, self.unloaded.sums
        before = after = barrier = more = 0.0
        for reason, values in self.unloaded.by_reason.items():
            kept = values
            if fix.keep is not None and reason != BARRIER:
                kept = kept * fix.keep
            if fix.latency is not None and reason in WAITS_FOR_RESULTS:
                kept = kept * fix.latency
            share = (sums[reason] if kept is values else float(kept.sum())) * fix.reasons.get(reason, 1.0)
            if reason == BARRIER:
                barrier = share
            else:
                before += sums[reason]
                after += share
        # Added instructions and barriers take as long as those that are there.
        if added := sum(_added(work, fix).values()):
            more += (sums.get(SELECTED, 0.0) + sums.get(WAIT, 0.0)) * added / work.total_executed
        if fix.barriers and work.warp_cycles:
            more += fix.barriers * work.barrier_cycles / work.warp_cycles
        # What the late warps no longer do, the early ones no longer wait for.
        return after + more + barrier * (min(1.0, after / before) if before > 0 else 1.0)

    def resident(self, fix: Fix) -> float:
        """Factor on the warps that an SM holds."""
        if not fix.registers and not fix.shared_bytes:
            return fix.warps
        return fix.warps * held(self.work, fix.registers, fix.shared_bytes) / held(self.work, 0, 0)

    def factor(self, key: str, fix: Fix) -> float:
        """What stays of the demand on a resource."""
        parts = fix.parts or (fix,)
        told = [part.resources[key] for part in parts if key in part.resources]
        keeps = [part.keep for part in parts if key not in part.resources and part.keep is not None]
        whole = _whole_weight(self.work, key) if keeps else 0.0
        if whole > 0:
            keep = keeps[0] if len(keeps) == 1 else np.minimum.reduce(keeps)
            told.append(float((_weights(self.work, key) * keep).sum()) / whole)
        return min(told, default=1.0)

    def _scales(self, terms: Mapping[str, float]) -> dict[str, float]:
        """Factor on each group of terms that makes the model exact for the launch as measured."""
        apart = _apart(terms)
        largest = max(apart.values())
        weight = {key: (term / largest) ** SHARPNESS for key, term in apart.items()}
        # In x = ln(k) the logarithm of the terms together, to the power P, is ln(sum(exp(start + slope * x))): it rises
        # and is convex, so Newton's steps from the right end come down to the root and do not pass it.
        lines = [(OVERLAP * math.log(term), OVERLAP * weight[key]) for key, term in apart.items() if term > 0]
        wanted = OVERLAP * math.log(self.inner)
        x = MOST_LOG_SCALE
        for _ in range(NEWTON_STEPS):
            heights = [start + slope * x for start, slope in lines]
            highest = max(heights)
            shares = [math.exp(height - highest) for height in heights]
            whole = sum(shares)
            beyond = highest + math.log(whole) - wanted
            rise = sum([share * slope for share, (_, slope) in zip(shares, lines, strict=True)]) / whole
            if beyond < NEWTON_ENDS * rise:
                break
            x = max(x - beyond / rise, -MOST_LOG_SCALE)
        return {key: math.exp(x * weight[key]) for key in apart}

    # --- Results ---

    def time(self, fix: Fix) -> float:
        """Time with a change made, as a share of the measured one."""
        if not self.known:
            return 1.0
        terms = self.terms(fix)
        scales = {key: min(one, one ** (1.0 - fix.regular)) for key, one in self.scales.items()}
        inner = _norm({key: term * scales.get(key, 1.0) for key, term in _apart(terms).items()})
        inner = min(inner, self.inner - fix.stalled) if fix.stalled else inner
        # The busiest resource at its peak is a counted share, which no overlap takes away.
        loads = self.work.loads
        peaks = (term * loads[key].ceiling for key, term in terms.items() if key in loads)
        return self.work.idle_start * fix.idle + max(inner, min(self.inner, max(peaks, default=0.0)))

    def saves(self, fix: Fix) -> float:
        """Share of the time that a change saves; negative where it costs."""
        return 1.0 - self.time(fix)

    def saves_in_turn(self, fix: Fix) -> float:
        """The same if no two units ever worked at once, so that as little as possible of the time is waiting: the least
        that it may be where nobody saw what warps wait for.
        """
        now, then = _apart(self.terms(NOTHING)), _apart(self.terms(fix))
        waits, less = now.pop(LATENCY, 0.0), then.pop(LATENCY, 0.0)
        rest = max(0.0, self.inner - sum(now.values()))
        scale = self.inner / (sum(now.values()) + rest)
        after = sum(then.values()) + rest * (less / waits if waits else 1.0)
        return 1.0 - self.work.idle_start * fix.idle - scale * after


def _more_busy(work: Work, key: str, fix: Fix) -> float:
    """Share of the elapsed cycles for which added instructions and passes keep a resource busy."""
    if not work.elapsed or not (fix.instructions or fix.passes or fix.shared is not None):
        return 0.0
    if key == "l1_data":
        return (fix.passes + _beside(work, fix)) / (work.sms * work.elapsed)
    added = _added(work, fix)
    count = sum(added.values()) if key == "issue" else added.get(key, 0.0)
    return count / (WARPS_A_CYCLE.get(key, 1.0) * work.sms * work.elapsed)


def _beside(work: Work, fix: Fix) -> float:
    """Accesses of shared memory that stand beside the launch's instructions."""
    return 0.0 if fix.shared is None else float(work.executed @ fix.shared)


def _added(work: Work, fix: Fix) -> dict[str, float]:
    """Warp instructions that the fixed kernel executes beside, by pipe."""
    return {**fix.instructions, LSU: fix.instructions.get(LSU, 0.0) + _beside(work, fix)}


@once
def held(work: Work, registers: int, shared_bytes: int, cut: int = 1) -> float:
    """Warps that an SM holds at once with so many more registers a thread and bytes a block, of blocks cut into so many
    each; 1 if nobody knows.
    """
    launch = work.profile.launch
    changed = replace(
        launch,
        block=launch.block if cut == 1 else (launch.threads_per_block // cut, 1, 1),
        registers_per_thread=max(1, (launch.registers_per_thread or 1) + registers),
        dynamic_shared_memory=max(0, (launch.dynamic_shared_memory or 0) + shared_bytes),
        shared_memory_config=None if shared_bytes else launch.shared_memory_config,
    )
    found = of_launch(replace(work.profile, launch=changed)) if launch.registers_per_thread else None
    if found is None:
        return 1.0
    return max(1.0, min(found.blocks_per_sm, cut * launch.blocks / work.sms) * found.warps_per_block)


def registers_of(work: Work, more: Array) -> int:
    """Registers a thread beyond those that it has, where it holds so many more at each instruction; as many as there
    are at most.
    """
    needed = round(float(more[work.ran].max(initial=0.0)))
    return min(needed, REGISTERS_PER_THREAD - (work.profile.launch.registers_per_thread or 0))


def held_meanwhile(work: Work, rows: Sequence[int], own: frozenset[int]) -> float:
    """Registers that a thread has to hold of results of its ``own`` while it loads what it shares with others; what
    lies in shared memory it finds there. Of a loop's loads none need wait for more than the round begins with; where
    there is no loop, what it shares may be held instead.
    """
    code = work.code
    live = np.array(live_results(code, frozenset(at for at in own if work.sass[at].space != "shared")))
    found = 0.0
    for loop in {code.loop_of(row) for row in rows}:
        mine = [row for row in rows if code.loop_of(row) == loop]
        loaded = float(work.executed[mine].sum()) / work.launched_warps
        found = max(found, float(live[mine].min()) if loop else min(float(live[mine].max()), loaded))
    return found


# Stages of one unit that work in step: the slowest one counts.
_GROUPS = (
    ("l1_data", "l1_writeback", "lsu", "mio", "mio_data", "adu", "idc"),
    ("l1_to_l2", "l2_to_l1", "l2", "l2_in", "l2_out", "l2_tags", "l2_atomics"),
    ("fma", "fma_heavy"),
)
_GROUPED = frozenset(name for group in _GROUPS for name in group)


def _apart(terms: Mapping[str, float]) -> dict[str, float]:
    """The terms with those of one unit joined."""
    found = {name: value for name, value in terms.items() if name not in _GROUPED}
    for group in _GROUPS:
        found[group[0]] = max([terms.get(name, 0.0) for name in group])
    return found


def _norm(apart: Mapping[str, float]) -> float:
    """The terms together."""
    largest = max(apart.values(), default=0.0)
    together = sum([(term / largest) ** OVERLAP for term in apart.values()]) if largest > 0 else 0.0
    return float(largest * together ** (1.0 / OVERLAP))


@once
def _whole_weight(work: Work, key: str) -> float:
    return float(_weights(work, key).sum())


@once
def _weights(work: Work, key: str) -> Array:
    pipes, executed = work.pipes, work.executed

    def of(*names: str) -> Array:
        return np.where(np.isin(pipes, names), executed, 0.0) if len(pipes) else executed

    if key == "issue":
        return executed
    if key == "block_launch":
        return np.zeros(len(executed))
    if key in ("fma", "alu", "fp64", "xu", "tensor", "uniform", "cbu", "lsu"):
        return of(key)
    if key == "fma_heavy":
        # The half of the FMA pipe that multiplies integers: half the rate.
        heavy = work.where(lambda line: info(line.opcode).pipe == "fma_heavy")
        return np.where(heavy, executed, 0.0) + 0.5 * np.where(~heavy, of("fma"), 0.0)
    if key == "idc":
        return constant_turns(work)
    if key == "adu":
        return np.asarray(np.maximum(of(key), constant_turns(work)))
    if key in ("mio", "mio_data"):
        return of("lsu", "xu", "adu")
    if key in ("l1_data", "l1_writeback"):
        stores = work.where(lambda line: line.is_store)
        return work.data_passes - np.where(stores, 0.5 * work.global_tags, 0.0)
    sectors = work.global_sectors + work.local_sectors
    if key == "l2_atomics":
        return np.where(work.where(lambda line: line.is_atomic), np.maximum(sectors, executed), 0.0)
    if key in ("l1_to_l2", "l2_to_l1", "l2", "l2_in", "l2_out", "l2_tags", "l1_lines", "dram"):
        hit = (work.number(metrics.GLOBAL_LOAD_HIT_RATE) or 0.0) / 100.0
        loads = work.where(lambda line: line.is_load)
        return sectors * np.where(loads, max(0.02, 1.0 - hit), 1.0)
    return executed
