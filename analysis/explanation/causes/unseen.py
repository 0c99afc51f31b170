"""Launches whose instructions nobody counted, or could disassemble: what the code by itself, or counts by address, and
the units' use tell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import Candidate, Variant, derived
from gemmprof.analysis.explanation.causes.access import APART, COALESCED
from gemmprof.analysis.explanation.causes.arithmetic import FLOATS, IN_SINGLE
from gemmprof.analysis.explanation.causes.waits import from_the_host
from gemmprof.analysis.explanation.code import flow
from gemmprof.analysis.explanation.code.address_forms import LINE
from gemmprof.analysis.explanation.code.latency import on_the_link
from gemmprof.analysis.explanation.code.sequences import calls_in, compiled_by_triton
from gemmprof.analysis.explanation.demands.footprint import WORD
from gemmprof.analysis.explanation.demands.resources import WARPS_A_CYCLE
from gemmprof.analysis.explanation.demands.time_model import Fix
from gemmprof.analysis.explanation.demands.traffic import BELOW_L1, SECTORS_OF_A_LINE
from gemmprof.analysis.explanation.demands.work import Work, share
from gemmprof.analysis.sections.by_line import by_address
from gemmprof.analysis.sections.speed_of_light import HIGH_PERCENT
from gemmprof.gpu.arch import WARP, has_tensor_cores

WIDE_WORD = 8  # bytes of an FP64 value
HALVINGS = 3  # steps of a sum that shuffles are worth
SUMS = {"FADD", "DADD", "HADD2", "IADD3", "VIADD", "IMAD"}  # what adds two values up
ISSUED = ("issue", "alu", "fma", "fma_heavy")  # units that the copies of registers keep busy
_COPY = re.compile(r"@\S+\s+(?:IMAD\.MOV|MOV)\b")
COMBINED = SUMS | {"FMNMX", "IMNMX", "VIMNMX", "DMNMX"}  # or takes one of two
HOW = "which index runs along threadIdx.x, store structures as arrays, or go through shared memory."


def unseen_accesses(work: Work) -> Iterator[Candidate]:
    """Requests that touch more sectors, and shared accesses that take more passes, than their bytes need.

    Fixed as where the code is seen, but for what loads wait: nobody knows which of these are loads.
    """
    passes = work.busy_cycles("l1_data")
    if work.program is not None or not passes:
        return
    yield from _coalesced(work, passes)
    yield from _without_conflicts(work, passes)


def unseen_passes(work: Work) -> Iterator[Candidate]:
    """As many passes through L1 as a warp's bytes fill, where that is the busiest unit and requests take several times
    as many: to places of which loaded values do not tell each.
    """
    l1, lsu, lines = work.loads.get("l1_data"), work.loads.get("lsu"), work.profile.source.instructions
    busiest = max((one.share for one in work.loads.values()), default=0.0)
    if (
        work.program is not None
        or l1 is None
        or lsu is None
        or not lsu.busy
        or l1.share < busiest
        or not lines
    ):
        return
    code = flow.program(lines)
    accesses = [at for at, line in enumerate(code.sass) if line.space not in ("", "constant")]
    told = [bool(code.by_loads[list(code.of_place(at))].any()) for at in accesses]
    spaces = {code.sass[at].space for at in accesses if not code.sass[at].is_atomic}
    retried = any(code.sass[at].space == "shared" and code.sass[at].is_atomic for at in accesses)
    if all(told) or retried or not spaces <= {"global", "shared"}:
        return
    # A request a cycle at most: of chips that begin one in two it takes twice as many passes.
    each, width = l1.busy / lsu.busy, max(code.sass[at].access_bytes for at in accesses)
    fewest = max(1.0, WARP * width / LINE)
    if each < APART * fewest:
        return
    along = work.profile.launch.block[0]
    wider = f"Give blocks more threads along x ({along} now), or swap" if along < WARP else "Swap"
    if banks := spaces == {"shared"}:
        change = (
            f"Pad or swizzle the shared arrays: a request takes {each:.1f} passes through L1 or more where "
            f"{fewest:.0f} would hold its bytes, because threads of a warp meet in one bank."
        )
    else:
        change = (
            f"Let neighbouring threads take neighbouring addresses: a request takes {each:.1f} passes through L1 or "
            f"more where {fewest:.0f} would hold its bytes. {wider} {HOW}"
        )
    if len(spaces) > 1:
        change += " They may also meet in banks of shared memory: ncu --set full counts both by instruction."
    yield Candidate(
        cause="shared_bank_conflicts" if banks else "uncoalesced_access",
        variants=(Variant(COALESCED, Fix(resources={"l1_data": fewest / each})),),
        change=change,
        evidence=work.evidence(metrics.BUSY["l1_data"][0], *metrics.BUSY["lsu"]),
    )


def unseen_host(work: Work) -> Iterator[Candidate]:
    """The GPU's own memory for the host's, which most of what L2 takes in comes from."""
    if not work.samples and on_the_link(work):
        yield from_the_host(work)


def unseen_doubles(work: Work) -> Iterator[Candidate]:
    """FP32 for FP64, as where its instructions were counted: the FP64 pipe has nothing to do then, the FMA pipe as much
    more as that began at most, and no more than all that was issued.
    """
    pipe, issue = work.loads.get("fp64"), work.loads.get("issue")
    if work.program is not None or pipe is None or not pipe.busy:
        return
    lines = work.profile.source.instructions
    code = flow.program(lines).sass if lines else ()
    doubles = sum(line.opcode in FLOATS for line in code)
    narrowed = sum(line.opcode == "F2F" and "F64" in line.full for line in code)
    wide = any(line.space == "global" and line.access_bytes == WIDE_WORD for line in code)
    at_most = pipe.busy * WARPS_A_CYCLE["fp64"] / WARPS_A_CYCLE["fma"]
    added = min(at_most, issue.busy if issue else at_most)
    # While the pipe is busy, warps stand still before it, but for what other units have to do as well.
    others = max((one.busy for key, one in work.loads.items() if key != "fp64"), default=0.0)
    fix = Fix(resources={"fp64": 0.0}, added={"fma": added}, stalled=max(0.0, pipe.busy - max(others, added)))
    yield Candidate(
        cause="double_precision",
        variants=(Variant("FP32", fix, exact=False),),
        change=(
            "Write constants as FP32 (1.0f) and call the f-functions: its code converts FP32 values to FP64 and back."
            if narrowed and not wide
            else IN_SINGLE
        ),
        evidence=(
            *(
                [derived("FP64 instructions in the code / its instructions", doubles / len(code))]
                if code
                else []
            ),
            *work.evidence(metrics.BUSY["fp64"][0]),
        ),
        another_arithmetic=wide or not narrowed,
    )


def of_the_busiest(work: Work) -> str:
    """What asks less of the unit that a launch is bound by, by what stands in the code's loops, or of none where
    warps wait; '' where the code shows nothing, and where instructions were counted, so that detectors have seen it.
    """
    busiest = max(work.loads.values(), key=lambda load: load.share, default=None)
    lines = work.profile.source.instructions
    if work.program is not None or not lines or busiest is None:
        return ""
    code = flow.program(lines)
    if 100.0 * busiest.share < HIGH_PERCENT:
        return _of_none(code, work.profile.launch.threads_per_block)
    inside = code.within(code.loops)
    there = [line for line, within in zip(code.sass, inside, strict=True) if within]
    chosen = sum(bool(line.guard) and _COPY.match(line.text) is not None for line in there)
    if busiest.resource.key in ISSUED and 3 * chosen > len(there):
        return (
            f"{chosen} of the {len(there)} instructions in its loops copy a register under a condition: a thread's own "
            "array is indexed by a number that the compiler does not know. With a constant number of rounds (a "
            "template parameter, #pragma unroll) each element is a register of its own."
        )
    if busiest.resource.key == "issue":
        calls = {one.name: one.remedy for one, at in calls_in(code, compiled_by_triton(work)) if inside[at]}
        if calls:
            return (
                f"Its loops evaluate precise functions ({', '.join(calls)}): faster ones ({', '.join(calls.values())}; "
                "-use_fast_math for all) are fewer instructions, where their accuracy suffices."
            )
    elif busiest.resource.key == "lsu":
        accesses = [
            at
            for at in np.flatnonzero(inside).tolist()
            if code.sass[at].space in ("global", "shared", "local")
        ]
        # What loaded values place lies side by side with nothing.
        narrow = [
            at
            for at in accesses
            if code.sass[at].access_bytes <= WORD and not code.by_loads[list(code.of_place(at))].any()
        ]
        if 2 * len(narrow) > len(accesses):
            return (
                f"{len(narrow)} of the {len(accesses)} loads and stores in its loops move {WORD} bytes a thread or "
                "less: accesses of 16 (float4), or more results a thread from what it holds in registers, ask less of "
                "the load/store unit."
            )
    elif busiest.resource.key == "fma":
        products = sum(line.opcode == "FFMA" for line in there)
        device = work.profile.device
        if 2 * products > len(there) and has_tensor_cores(device.name, device.compute_capability):
            return (
                "Its loops are FP32 multiply-adds, which keep the FMA pipe busy: if they multiply matrices, operands "
                "of 16 bits or TF32 take the tensor cores, where their precision suffices."
            )
    return ""


def _of_none(code: flow.Program, threads: int) -> str:
    """What warps of blocks of so many threads wait for one after the other: sums put together step by step, and atomics
    that each lane has.
    """
    bars = [at for at, line in enumerate(code.sass) if line.opcode == "BAR"]
    steps = sum(_adds_up(code, range(first + 1, last)) for first, last in pairwise(bars))
    # A loop of such steps takes half as many threads in each.
    halving = [
        one
        for one in code.loops
        if any(at in one for at in bars) and _adds_up(code, range(one.first, one.last))
    ]
    if halving:
        steps = max(steps, math.ceil(math.log2(max(2, threads))))
    if steps >= HALVINGS:
        return (
            f"It adds up through shared memory in {steps} steps, each with a barrier: lanes of a warp add up by "
            "shuffles (__shfl_down_sync, __reduce_add_sync) without any, and one step is left for a block's warps."
        )
    # What a block has added up in shared memory is no element.
    in_shared = {at for at, line in enumerate(code.sass) if line.is_load and line.space == "shared"}
    added = [
        at
        for at, line in enumerate(code.sass)
        if line.is_atomic and line.space == "global" and in_shared.isdisjoint(code.of_values(at))
    ]
    inside = code.within(code.loops)
    by_lane = code.by_loads | code.made_by(lambda line: any("SR_TID" in one for one in line.operands))
    # Sums of a block's own loops come together once, after them.
    if any(by_lane[list(code.of_place(at))].any() and (inside[at] or not inside.any()) for at in added):
        return (
            "Each element is added to memory by an atomic of its own: where many meet in one place, let fewer blocks "
            "take more elements each, add up in shared memory, and bring each sum to memory once in the end."
        )
    return ""


def _adds_up(code: flow.Program, step: range) -> bool:
    """Whether between two meetings threads add another's value to their own in shared memory, and do nothing else."""

    def packed(at: int) -> bool:
        return code.sass[at].opcode == "LOP3"  # several values in a word

    stores = [at for at in step if code.sass[at].space == "shared" and code.sass[at].is_store]
    made = [
        {
            code.sass[of].opcode
            for one in code.of_values(at)
            for of in (code.sources(one) if packed(one) else (one,))
        }
        for at in stores
    ]
    elsewhere = any(
        code.sass[at].space in ("global", "local") or code.sass[at].opcode == "SHFL" for at in step
    )
    return bool(stores) and not elsewhere and all(one and one <= COMBINED for one in made)


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
        variants=(Variant(COALESCED, fix),),
        change=(
            f"Let neighbouring threads take neighbouring addresses: {requests:,} requests touch "
            f"{touched / requests:.0f} sectors each where {needed / requests:.0f} would hold the bytes. Swap {HOW}"
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
