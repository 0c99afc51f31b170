"""Code that nobody could disassemble: what was counted of its instructions by address tells how they access memory."""

from __future__ import annotations

from collections.abc import Iterator

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import Candidate, Variant, derived
from gemmprof.analysis.explanation.causes.access import APART
from gemmprof.analysis.explanation.demands.time_model import Fix
from gemmprof.analysis.explanation.demands.traffic import BELOW_L1, SECTORS_OF_A_LINE
from gemmprof.analysis.explanation.demands.work import Work, share
from gemmprof.analysis.sections.by_line import by_address


def unseen_accesses(work: Work) -> Iterator[Candidate]:
    """Requests that touch more sectors, and shared accesses that take more passes, than their bytes need.

    Fixed as where the code is seen, but for what loads wait: nobody knows which of these are loads.
    """
    l1 = work.loads.get("l1_data")
    if work.program is not None or l1 is None or not l1.busy or not work.elapsed:
        return
    passes = l1.busy * work.elapsed * work.sms
    yield from _coalesced(work, passes)
    yield from _without_conflicts(work, passes)


def _counted(work: Work, name: str) -> dict[int, int]:
    return by_address(work.profile, name) or {}


def _coalesced(work: Work, passes: float) -> Iterator[Candidate]:
    executed, lines = (
        _counted(work, name) for name in (metrics.INSTRUCTIONS_BY_ADDRESS, metrics.GLOBAL_TAGS_BY_ADDRESS)
    )
    sectors, ideal = (
        _counted(work, name) for name in (metrics.GLOBAL_SECTORS_BY_ADDRESS, metrics.GLOBAL_IDEAL_BY_ADDRESS)
    )
    wasteful = [at for at, there in sectors.items() if there >= APART * ideal.get(at, there) > 0]
    requests = sum(executed.get(at, 0) for at in wasteful)
    if not requests:
        return
    least = sum(max(executed.get(at, 0), ideal[at] / SECTORS_OF_A_LINE) for at in wasteful)
    gone = max(0.0, sum(lines.get(at, 0) for at in wasteful) - least)
    touched, needed = (sum(one[at] for at in wasteful) for one in (sectors, ideal))
    # What L1 has is not fetched now either.
    fetched = sum(sectors.values()) * (1.0 - (work.number(metrics.GLOBAL_LOAD_HIT_RATE) or 0.0) / 100.0)
    stays = min(1.0, share(float(sum(sectors.values()) - touched + needed), fetched) or 1.0)
    fix = Fix(resources={"l1_data": 1.0 - min(1.0, gone / passes), **dict.fromkeys(BELOW_L1, stays)})
    yield Candidate(
        cause="uncoalesced_access",
        variants=(Variant("neighbouring threads at neighbouring addresses", fix),),
        change=(
            f"Let neighbouring threads take neighbouring addresses: {requests:,} requests touch "
            f"{touched / requests:.0f} sectors each where {needed / requests:.0f} would hold the bytes. Swap which "
            "index runs along threadIdx.x, store structures as arrays, or go through shared memory."
        ),
        evidence=(
            derived("sectors per request", touched / requests, "sector"),
            derived("memory_l2_theoretical_sectors_global_ideal / request", needed / requests, "sector"),
            derived(metrics.GLOBAL_EXCESS, float(touched - needed), "sector"),
        ),
    )


def _without_conflicts(work: Work, passes: float) -> Iterator[Candidate]:
    taken, ideal = (
        _counted(work, name)
        for name in (metrics.SHARED_WAVEFRONTS_BY_ADDRESS, metrics.SHARED_IDEAL_BY_ADDRESS)
    )
    excess = {at: there - ideal.get(at, there) for at, there in taken.items()}
    gone = float(sum(excess.values()))
    if gone <= 0.0:
        return
    worst = max(excess, key=excess.__getitem__)
    fix = Fix(resources={"l1_data": 1.0 - min(1.0, gone / passes)})
    yield Candidate(
        cause="shared_bank_conflicts",
        variants=(Variant("another layout of the tile", fix),),
        change=(
            f"Pad or swizzle the shared array: its worst access takes {taken[worst] / max(1, ideal[worst]):.1f} times "
            "the passes that its bytes need, because threads of a warp meet in one bank."
        ),
        evidence=(
            derived(metrics.SHARED_EXCESS, gone, "wavefront"),
            derived("memory_l1_wavefronts_shared", float(sum(taken.values())), "wavefront"),
            *work.evidence(metrics.BUSY["l1_data"][0]),
        ),
    )
