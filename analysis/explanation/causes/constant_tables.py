"""Tables in constant memory that its caches do not hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import Candidate, Variant, derived
from gemmprof.analysis.explanation.causes.waits import FULL_CACHE_BYTES
from gemmprof.analysis.explanation.code import flow, latency
from gemmprof.analysis.explanation.code.address_forms import WIDEST
from gemmprof.analysis.explanation.demands.footprint import OUTPUTS, computing
from gemmprof.analysis.explanation.demands.resources import ADU, WARPS_A_CYCLE
from gemmprof.analysis.explanation.demands.time_model import Fix, held_meanwhile
from gemmprof.analysis.explanation.demands.work import (
    CONSTANT_LOADS,
    Array,
    Mask,
    Work,
    constant_turns,
    constants_missed,
    indexed_constants,
    share,
    table_constants,
)
from gemmprof.analysis.opcodes import bytes_per_thread
from gemmprof.gpu.arch import WARP

PASSES_OF_A_VECTOR = 2.0  # of L1's data stage, for 16 bytes of shared memory that all lanes read alike


def constant_cache(work: Work) -> Iterator[Candidate]:
    """A table that warps walk in shared memory, or read once for several results.

    The caches next to the schedulers hold 2 KiB of constants at most. Warps that walk a table at different places throw
    out one another's, and what else is named of constants; an instruction that misses waits, and is issued again.
    Counted are the waits at constants at computed places, or at any where the code that runs often names more than
    these caches hold, and those for loads that take turns of the constant cache beyond one for each address. Fixed:
    shared loads of 16 bytes take their place, with their issue slots, passes and waits; or a thread has four results
    for each constant that it reads, in a fourth of the threads and with the registers of these. Instructions are
    issued once, and code that the caches hold is not waited for.
    """
    if not work.samples or not work.warp_cycles:
        return
    table, looked_up = table_constants(work), indexed_constants(work)
    if not constants_missed(work):
        table &= ~looked_up
    waits = np.where(table, work.samples.get(flow.NO_CONSTANT, 0.0), 0.0)
    waits += np.where(table & looked_up, work.attributed.get(flow.SHORT, 0.0), 0.0)
    if (part := float(waits.sum())) < 0.05:
        return
    yield Candidate(
        cause="constant_cache",
        variants=(
            Variant("a table in shared memory", _in_shared_memory(work, table)),
            *_several_results(work, table),
        ),
        change=(
            "Copy this table to shared memory once a block (or read it through L1) and load 16 bytes at a time, or let "
            f"a thread compute {OUTPUTS} results from each constant: warps wait for constants {100 * part:.0f} % of "
            "their time, for the caches next to the schedulers hold 2 KiB of them at most."
        ),
        evidence=(
            derived("imc_miss and short_scoreboard samples at constants of a table / all samples", part),
            *work.evidence(metrics.stalled_per_issue(flow.NO_CONSTANT), metrics.BUSY["idc"][0]),
        ),
        attributed=waits,
    )


def _in_shared_memory(work: Work, table: Mask) -> Fix:
    """Vectors of shared memory in place of constants: of loads, and of operands that instructions name themselves."""
    loads = table & work.where(lambda line: line.opcode in CONSTANT_LOADS)
    sizes = [bytes_per_thread(line.full) if loads[at] else 4.0 for at, line in enumerate(work.sass)]
    vectors = np.where(table, sizes, 0.0) / WIDEST
    count = float(work.executed @ vectors)
    each, looked_up = work.practice.shared_cycles / latency.under_way(work, loads), indexed_constants(work)
    waited = float(np.where(looked_up, 0.0, work.executed * vectors) @ each) / (work.warp_cycles or 1.0)
    keep = np.where(loads, vectors, 1.0)
    # A constant load at a place that a thread computed waits for its answer, which shared memory gives at once.
    answered = latency.idle_share(work, work.attributed.get(flow.SHORT, np.zeros(len(keep))), each)
    turns = constant_turns(work)
    idc = share(turns[~loads].sum(), turns.sum())
    adu = min(1.0, share(work.executed[(work.pipes == ADU) & ~loads].sum(), turns.sum()))
    return Fix(
        keep=keep,
        latency=np.where(loads & looked_up, answered, 1.0),
        reasons=_waits(work, table, keep, 0.0, waited),
        resources=_issued_once(work, keep)
        | {"idc": idc, "adu": adu, **dict.fromkeys(("mio", "mio_data"), max(idc, adu))},
        added={"lsu": share(count, work.sms * work.elapsed)},
        passes=PASSES_OF_A_VECTOR * count,
    )


def _several_results(work: Work, table: Mask) -> Iterator[Variant]:
    """Constants are the same for all lanes: a thread that has several results reads each once for them."""
    launch, own = work.profile.launch, work.code.by_data & computing(work) & work.ran & ~table
    loads = table & work.where(lambda line: line.opcode in CONSTANT_LOADS)
    if not loads.any() or work.products.any() or launch.blocks < OUTPUTS * work.sms:
        return
    keep = work.all_kept()
    counting = work.ran & ~computing(work) & ~work.code.by_data & ~work.where(lambda line: bool(line.space))
    keep[counting | loads] = 1.0 / OUTPUTS
    held = held_meanwhile(work, np.flatnonzero(loads).tolist(), frozenset(np.flatnonzero(own).tolist()))
    warps = launch.blocks * launch.threads_per_block / WARP / OUTPUTS / work.sms
    yield Variant(
        f"registers, {OUTPUTS} outputs a thread",
        Fix(
            keep=keep,
            reasons=_waits(work, table, keep, 1.0 / OUTPUTS),
            resources=_issued_once(work, keep) | {"block_launch": 1.0 / OUTPUTS},
            registers=round((OUTPUTS - 1.0) * held),
            warps=min(1.0, warps / (work.resident_warps or warps)),
        ),
    )


def _waits(work: Work, table: Mask, keep: Array, stays: float, more: float = 0.0) -> dict[str, float]:
    """Factors on the waits for constants, beside what goes with their instructions, and for instructions: so much of
    them stays, and ``more`` of the warps' time comes. Most are a table's, or those at other constants are none of its.
    """
    missed = work.samples.get(flow.NO_CONSTANT, np.zeros(len(keep)))
    of_table, all_of_them = float(missed[table].sum()), float(missed.sum())
    gone = (1.0 - stays) * (all_of_them if 2.0 * of_table > all_of_them else of_table)
    found = {flow.NO_CONSTANT: share(all_of_them - gone + more, float(missed @ keep))}
    if gone and work.hot_bytes < FULL_CACHE_BYTES:
        found[flow.NO_INSTRUCTION] = 1.0 - share(gone, all_of_them)
    return found


def _issued_once(work: Work, keep: Array) -> dict[str, float]:
    """Factor on the issue slots, of which instructions that miss a constant take several each."""
    issued = WARPS_A_CYCLE["issue"] * (work.busy_cycles("issue") or 0.0)
    return {"issue": min(1.0, share(work.executed @ keep, issued))} if issued else {}
