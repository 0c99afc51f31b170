"""How often each instruction ran where no report says so: once a warp, or as many rounds as the launch's totals leave.

Code without counts has its straight way, and loops of which nobody knows the rounds. One or two of them take nearly all
instructions: as many rounds as make up what all warps issued. What else was counted has to agree then: what the integer
ALU, the special-function unit and the load/store unit executed, and the passes through L1 that follow from where each
access goes. Of what does not agree nothing is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.code import flow
from gemmprof.analysis.explanation.code.address_forms import (
    LINE,
    SECTOR,
    WIDEST,
    checked_forms,
    passes,
    touched,
)
from gemmprof.analysis.explanation.demands.resources import LSU, WARPS_A_CYCLE, pipe
from gemmprof.analysis.explanation.demands.work import Array, Mask, Work, work
from gemmprof.analysis.explanation.levers import is_debug_build
from gemmprof.analysis.explanation.trust import SHORT
from gemmprof.gpu.arch import BANK_BYTES, BANKS, WARP
from gemmprof.model import Instances, KernelProfile

AGREES = 0.1  # share by which what the rounds make of a unit's work and what was counted may differ …
NEXT_TO_NONE = 0.01  # … beyond this share of all instructions: less of them says nothing
# Of L1's passes as counted, those that lines and banks make: wide values take some of their own (0.79 on an H100).
LEAST_PASSES = 0.7
SAME_RATE = ("alu", "xu")  # pipes that begin as many instructions a cycle on every chip
BLACKWELL = (10, 0)
LSU_RATES = (0.5, 1.0)  # of the load/store unit, by chip
MOST_LOOPS = 12  # of a kernel, above which nobody tells which of them takes the time


def with_counts(profile: KernelProfile) -> Work:
    """The launch with the counts by instruction that its code and its totals tell; as it is where these do not agree,
    where they were recorded, and where it takes no longer than one that does nothing.
    """
    found = work(profile)
    if found.program is not None or profile.workload != "kernel" or (found.duration or 0.0) < SHORT:
        return found
    if not any(line.sass for line in profile.source.instructions) or is_debug_build(profile):
        return found
    code = flow.program(profile.source.instructions)
    told = [one for executed in _ways(found, code) if (one := _agreeing(found, code, executed)) is not None]
    known = next((one for one, all_placed in told if all_placed), None)
    if known is None and told:
        # Where loaded values place an access it takes the passes that are left: nothing tells two ways apart then.
        first, *others = (one for one, _ in told)
        known = first if all(_alike(first, other) for other in others) else None
    return known or found


def _alike(one: Work, other: Work) -> bool:
    """Whether two ways through the code are one within what counts tell."""
    return float(np.abs(one.executed - other.executed).sum()) <= AGREES * one.total_executed


def straight_way(code: flow.Program) -> Mask:
    """The instructions on the way that turns off nowhere: what a branch may leave out runs, and loops are left. Only
    where a branch alone leads on to a loop (what lies before it is for none of its rounds) it is taken.
    """
    ran = np.zeros(len(code.sass), dtype=bool)
    within = [at for loop in code.loops for at in range(loop.first, loop.last + 1)]
    to_loops = flow.reached(within, lambda at: code.predecessors[at])
    at: int | None = 0
    while at is not None and at < len(code.sass) and not ran[at]:
        ran[at] = True
        line, target = code.sass[at], code.target(at)
        jumps = line.opcode in ("BRA", "JMP") and "DIV" not in line.modifiers
        ends = line.ends_block and not line.guard and "DIV" not in line.modifiers
        on = target is not None and target > at and target in to_loops and at + 1 not in to_loops
        at = target if jumps and (ends or on) else None if ends else at + 1
    return ran


def _ways(whole: Work, code: flow.Program) -> Iterator[Array]:
    """Executions of each instruction: what one loop alone, or two, make of the instructions that were counted."""
    total, ran = _counted(whole, "issue"), straight_way(code)
    if total is None or not total:
        return
    once = np.where(ran, float(whole.launched_warps), 0.0)
    left = total - float(once.sum())
    if abs(left) < AGREES * total:
        yield once
    if left <= 0.0:
        return
    within = [*map(code.loop_of, range(len(ran)))]
    mine = {loop: ran & np.array([one is loop for one in within]) for loop in code.loops}
    rounds = [inside for inside in mine.values() if inside.any()][:MOST_LOOPS]
    yield from (once + np.where(inside, left / inside.sum(), 0.0) for inside in rounds)
    of_alu, alu = code.where(lambda line: pipe(line) == "alu"), _counted(whole, "alu")
    if alu is None:
        return
    wanted = np.array([left, alu - float(once[of_alu].sum())])
    for pair in combinations(rounds, 2):
        each = np.array([[inside.sum() for inside in pair], [(inside & of_alu).sum() for inside in pair]])
        if abs(np.linalg.det(each)) < 1.0:
            continue
        often = np.linalg.solve(each, wanted)
        if (often > 0.0).all():
            yield once + sum(np.where(inside, n, 0.0) for inside, n in zip(pair, often, strict=True))


def _counted(whole: Work, key: str, rate: float | None = None) -> float | None:
    """Warp instructions that a unit began in the whole launch."""
    cycles = whole.busy_cycles(key)
    return None if cycles is None else cycles * (WARPS_A_CYCLE.get(key, 1.0) if rate is None else rate)


def _agreeing(whole: Work, code: flow.Program, executed: Array) -> tuple[Work, bool] | None:
    """The launch with these executions and what follows from them, where all that was counted agrees; and whether each
    access's place is known.
    """
    pipes, few = np.array([pipe(line) for line in code.sass]), NEXT_TO_NONE * float(executed.sum())
    made = {key: float(executed[pipes == key].sum()) for key in (*SAME_RATE, LSU)}
    # What another pipe may have taken: integers the FMA pipe's since Blackwell, conversions of FP64 the FP64 pipe's
    # where that is narrow.
    apart = executed[code.where(lambda line: line.opcode == "F2F" and "F64" in line.full)]
    blackwell = whole.profile.device.compute_capability >= BLACKWELL
    elsewhere = {"alu": 0.5 * made["alu"] if blackwell else 0.0, "xu": float(apart.sum())}
    # A thread's indices come through the load/store unit, too, on some chips.
    indices = float(executed[code.where(lambda line: line.opcode == "S2R")].sum())

    def agrees(told: float, counted: float | None, more: float = 0.0, less: float = 0.0) -> bool:
        low, high = told - less - few, told + few + more
        return counted is None or low / (1.0 + AGREES) <= counted <= (1.0 + AGREES) * high

    if not all(agrees(made[key], _counted(whole, key), less=elsewhere[key]) for key in SAME_RATE):
        return None
    if not any(agrees(made[LSU], _counted(whole, LSU, rate), indices) for rate in LSU_RATES):
        return None
    lanes = whole.profile.launch.threads_per_block / whole.warps_of_block
    counts = {metrics.INSTRUCTIONS_BY_ADDRESS: executed, metrics.THREADS_BY_ADDRESS: lanes * executed}
    found, taken = work(_beside(whole.profile, counts)), _counted(whole, "l1_data")
    moved = None if taken is None else _moved(found, lanes, taken)
    if moved is None or taken is None:
        return None
    tables, all_placed = moved
    found = replace(work(_beside(found.profile, tables)), worked_out=True)
    passes_made = float(found.data_passes.sum())
    if agrees(passes_made, taken, (1.0 / LEAST_PASSES - 1.0) * passes_made):
        return found, all_placed
    return None


def _beside(profile: KernelProfile, counts: Mapping[str, Array]) -> KernelProfile:
    """The launch with these counts, one an instruction."""
    places = tuple(line.address for line in profile.source.instructions)
    more = {
        name: Instances(places, tuple(round(one) for one in numbers.tolist()))
        for name, numbers in counts.items()
    }
    return replace(profile, instances={**profile.instances, **more})


def _moved(found: Work, lanes: float, taken: float) -> tuple[dict[str, Array], bool] | None:
    """What each access touches, by its form, and whether that is known of all: where loaded values tell where it goes,
    it takes a like part of the passes that are left of those ``taken``. None where they tell whether it goes, and of
    what an atomic changes.
    """
    code, unplaced = found.code, np.zeros(len(found.sass), dtype=bool)
    sectors, ideal, tags, wavefronts, fewest = (np.zeros(len(found.sass)) for _ in range(5))
    for at, one in checked_forms(found).items():
        often, form, when = found.executed[at], one.form, found.sass[at].when
        if when and code.by_loads[list(code.producers(at, when.lstrip("!")))].any():
            return None
        if code.by_loads[list(code.of_place(at))].any():
            unplaced[at] = True
        if form.space == "global":
            there, lines = touched(form, SECTOR), touched(form, LINE)
            ideal[at] = often * max(1.0, lanes * form.width / SECTOR)
            if unplaced[at]:
                continue
            if there is None or lines is None:
                return None
            sectors[at], tags[at] = often * there.fewest_mean, often * lines.fewest_mean
        elif not found.sass[at].is_atomic and form.width <= WIDEST:
            fewest[at] = often * max(1.0, lanes * form.width / (BANKS * BANK_BYTES))
            if unplaced[at]:
                continue
            if (expected := passes(form)) is None:
                return None
            wavefronts[at] = often * expected
    if unplaced.any():
        # How many meet at a place no code tells, nor how long they stand in its queue; nor what local memory passes.
        if found.where(lambda line: line.is_atomic or line.space == "local")[found.executed > 0].any():
            return None
        each = (taken - float(tags.sum() + wavefronts.sum())) / float(found.executed[unplaced].sum())
        if not LEAST_PASSES <= each <= WARP:
            return None
        each = max(1.0, each)
        tags = np.where(unplaced & (ideal > 0), each * found.executed, tags)
        sectors = np.where(unplaced & (ideal > 0), np.maximum(ideal, tags), sectors)
        wavefronts = np.where(unplaced & (fewest > 0), np.maximum(fewest, each * found.executed), wavefronts)
    tables = {
        metrics.GLOBAL_SECTORS_BY_ADDRESS: sectors,
        metrics.GLOBAL_IDEAL_BY_ADDRESS: ideal,
        metrics.GLOBAL_TAGS_BY_ADDRESS: tags,
        metrics.SHARED_WAVEFRONTS_BY_ADDRESS: wavefronts,
        metrics.SHARED_IDEAL_BY_ADDRESS: fewest,
    }
    return tables, not unplaced.any()
