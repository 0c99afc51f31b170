"""What an owner can change: findings in the words of Triton, torch or a library's call, and what is said beside them.

Code of one's own CUDA is left to the causes. Triton's and CUTLASS's programmers change other things for the same flaw;
of a library only the call can be changed, so a flaw of its code is no finding unless a call avoids it. Sizes come from
the time model, or from times of cuBLAS that were recorded (`causes.library_calls`); where neither knows, a sentence
stands without one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import ANY_WARPS, LATENCY, Candidate, Variant
from gemmprof.analysis.explanation.causes.access import piece_by_piece
from gemmprof.analysis.explanation.causes.barriers import fewer_warps, hand_over_sums, selected
from gemmprof.analysis.explanation.causes.library_calls import in_fp32, is_fp32, without_padding
from gemmprof.analysis.explanation.causes.reuse import looked_up_again
from gemmprof.analysis.explanation.causes.threads import FILLED, filled_lanes
from gemmprof.analysis.explanation.causes.unseen import of_the_busiest
from gemmprof.analysis.explanation.demands.resources import WARPS_A_CYCLE
from gemmprof.analysis.explanation.demands.time_model import Fix
from gemmprof.analysis.explanation.demands.work import Work
from gemmprof.analysis.explanation.trust import SHORT
from gemmprof.analysis.inputs.names import Owner, owner_of
from gemmprof.base.amounts import counted
from gemmprof.base.foreign_files import facts
from gemmprof.gpu.arch import LIMITS, WARP, has_tensor_cores
from gemmprof.model import NOTABLE, KernelProfile

_EITHER = re.compile(r"\[([^][|]*)\|([^][|]*)\]")  # what CUDA's programmers call or write, and Triton's
Words = Mapping[str, tuple[str, str]]  # by cause: what is changed in a few words, and the sentence

# What is changed in the place of what the owner changes for the same cause: in a few words, and the sentence.
WAYS = {way: (instead, sentence) for way, instead, sentence in facts(__file__, "ways.csv")}
# An operator along an axis that is not the last: its threads walk that axis one by one.
ALONG_OTHERS = re.compile(r"SpatialSoftMax|_outer_dim")
ONE_BY_ONE = ("small_grid", "memory_latency", "redundant_loads")
"""Names of what such a kernel loses by it; the first that it has says it."""


def _words() -> dict[str, dict[str, tuple[str, str]]]:
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for owners, causes, *said in facts(__file__, "words.csv"):
        for owner in owners.split():
            found.setdefault(owner, {}).update(dict.fromkeys(causes.split(), (said[0], said[1])))
    return found


# What each owner changes, by cause, and in which words; `OTHERS` are libraries of which nothing else is known.
WORDS: Mapping[str, Words] = _words()
OTHERS = "library"

# Causes that a call avoids altogether; of others the library may keep some, down to all of it.
SURE = frozenset({"uncoalesced_access", "double_precision", "tensor_cores_idle"})
# Kernels whose flaw of that cause comes from what they are called with; others have it by themselves. A product of
# cuBLAS may be several kernels: the sum of a split K and the scaling of C are no calls; one of torch for each element
# has the blocks that its elements need.
_CALLS = tuple(
    (owner, frozenset(causes.split()), re.compile(pattern), (instead, sentence) if sentence else None)
    for owner, causes, pattern, instead, sentence in facts(__file__, "calls.csv")
)


def _taken_by(owner: Owner, cause: str) -> list[tuple[re.Pattern[str], tuple[str, str] | None]]:
    """Names of the owner's kernels that such a call avoids, and how, where that is not as usual; [] where all do."""
    return [(names, said) for one, causes, names, said in _CALLS if one == owner.key and cause in causes]


def offered(work: Work, found: Iterable[Candidate]) -> Iterator[Candidate]:
    """The candidates that the kernel's owner can do something about, in its words and its language."""
    language = r"\2" if owner_of(work.profile).key == "triton" else r"\1"
    for one in _of_the_owner(work, found):
        ways = tuple(replace(way, change=_EITHER.sub(language, way.change)) for way in one.variants)
        yield replace(one, variants=ways, change=_EITHER.sub(language, one.change))


def _of_the_owner(work: Work, found: Iterable[Candidate]) -> Iterator[Candidate]:
    owner, everything = owner_of(work.profile), tuple(found)
    words = WORDS.get(owner.key, {} if owner.editable else WORDS[OTHERS])
    triton = owner.key == "triton"
    if triton:
        everything = tuple(_of_exchanges(work, everything))
    everything = tuple(_of_generators(work, everything))
    usual = [names for names, said in _taken_by(owner, "narrow_access") if said is None]
    if any(names.search(work.profile.name) for names in usual):
        everything = tuple(_vectorised(everything))
    measured = {one.cause for one in everything if one.variants[0].known is not None}
    along = owner.key == "torch" and ALONG_OTHERS.search(work.profile.name)
    loses = next((cause for cause in ONE_BY_ONE if along and cause in {one.cause for one in everything}), "")
    for candidate in everything:
        known = candidate.variants[0].known is not None
        said = words.get(candidate.cause)
        fewer_blocks = "block_launch" in candidate.variants[0].fix.resources
        if triton and candidate.cause == "low_occupancy" and fewer_blocks:
            said = WAYS["short programs"]  # a smaller block, which helps otherwise, makes this worse
        elif triton and candidate.cause == "low_occupancy" and candidate.rank == ANY_WARPS:
            said = WAYS["rounds shared out" if work.program and work.program.loops else "more programs"]
        elif triton and candidate.cause == "uncoalesced_access" and piece_by_piece(work):
            said = WAYS["side by side"]
        elif triton and candidate.variants[0].of_threads:
            said = WAYS["more elements"]
        if candidate.cause == loses:
            said = WAYS["axis last"]
        calls = _taken_by(owner, candidate.cause)
        mine = [own for names, own in calls if names.search(work.profile.name)]
        # What was timed says more than a model; and not every kernel of an owner's has a flaw from its call.
        if (candidate.cause in measured and not known) or (calls and not mine):
            continue
        said = next(filter(None, mine), said)
        if owner.editable and all(way.plain for way in candidate.variants):
            yield candidate
        elif said is not None and owner.key == "cutlass":
            yield replace(candidate, change=f"{candidate.change} In CUTLASS: {said[1]}")
        elif said is not None:
            yield _in_words(work, candidate, said, owner)
        elif known or (owner.editable and not triton):
            yield candidate


# The toolkit's random numbers on the device: a header, whose code stands in the kernel.
_GENERATORS = re.compile(r"\bcurand\w*\.h$")
# A kernel that only sets up states of generators which skip ahead (Philox's do not).
_SETTING_UP = re.compile(
    r"^[^(]*(?:init|set_?up|seed)[^(]*\(.*\bcurandState(?:XORWOW|MRG32k3a|_t)?\b", re.IGNORECASE
)
FEWER_GENERATORS = (
    "Set up fewer of cuRAND's generators: curand_init skips ahead by tables, for each thread anew. Let a thread draw "
    "more numbers, keep the states between launches, or take Philox4_32_10, which starts at once."
)


def _of_generators(work: Work, everything: Sequence[Candidate]) -> Iterator[Candidate]:
    """What costs most inside cuRAND's header nobody rewrites: fewer generators are set up, or others."""
    files = {line.file for line in work.instructions}
    headers = {file for file in files if file is not None and _GENERATORS.search(file)}
    theirs = [line.file in headers for line in work.instructions]
    if not headers:
        yield from everything
        return
    mine = []
    for one in everything:
        lost = one.attributed
        within = lost is not None and 2.0 * float(lost[theirs].sum()) > float(lost.sum())
        if within:
            mine.append(one)
        else:
            yield one
    if mine:
        fix = reduce(Fix.together, (one.fix for one in mine))
        yield replace(
            mine[0],
            variants=(Variant("fewer generators", fix, up_to=True),),
            change=FEWER_GENERATORS,
        )


def _of_exchanges(work: Work, everything: Sequence[Candidate]) -> Iterator[Candidate]:
    """In Triton nobody lays out what warps exchange, unless it is operands of tensor cores: where that meets in banks,
    the exchange can go, or nothing can.
    """
    conflicts = next((one for one in everything if one.cause == "shared_bank_conflicts"), None)
    meetings = next((one for one in everything if one.cause == "barriers"), None)
    if (conflicts is None and meetings is None) or work.warps_of_block == 1 or work.products.any():
        yield from everything
        return
    alone = fewer_warps(work) if meetings is None else None
    known = conflicts is not None or hand_over_sums(work)
    ways = tuple(filter(None, (alone, selected(work) if known else None)))
    for one in everything:
        if one is meetings and ways:
            # The program's work is dealt out anew: what is wrong with it comes first.
            yield replace(one, variants=(*one.variants, *ways), rank=min(one.rank, LATENCY))
        elif one is not conflicts:
            yield one
        elif meetings is None and ways:
            yield replace(one, cause="barriers", variants=ways)


def _vectorised(everything: Sequence[Candidate]) -> Iterator[Candidate]:
    """Operands of one layout take the operator's vectorised path: its accesses are wide, too."""
    narrow = next((one.fix for one in everything if one.cause == "narrow_access"), None)
    for one in everything:
        # So does a power whose exponent is a number.
        if narrow is not None and one.cause in ("uncoalesced_access", "expensive_math"):
            yield replace(one, variants=(replace(one.variants[0], fix=one.fix.together(narrow)),))
        else:
            yield one


def _idle_sms(work: Work) -> str:
    """How many SMs get no block, or schedulers no warp."""
    have, thing, there_are, places = work.profile.launch.blocks, "block", work.sms, "SMs"
    if have >= there_are:
        have, thing = work.launched_warps, "warp"
        there_are, places = WARPS_A_CYCLE["issue"] * there_are, "schedulers"
    leave = "leaves" if have == 1 else "leave"
    return f"{counted(have, thing)} {leave} {there_are - have:.0f} of {there_are:.0f} {places} without work."


def _in_words(work: Work, candidate: Candidate, said: tuple[str, str], owner: Owner) -> Candidate:
    """A candidate as its owner would put it. Of code that the reader cannot change: one way, and no place."""
    name, change = said
    cause, ways, blocks, sms = candidate.cause, candidate.variants, work.profile.launch.blocks, work.sms
    # What the launch's numbers say, before what to do about it.
    if cause == "small_grid":
        change = f"{_idle_sms(work)} {change}"
    elif cause == "low_occupancy" and candidate.rank == ANY_WARPS:
        change = f"{counted(blocks, 'block')} of {counted(work.warps_of_block, 'warp')} for {sms:.0f} SMs. {change}"
    elif cause == "tail_effect":
        change = f"{blocks:,} blocks are {blocks / sms:.2f} for each of {sms:.0f} SMs. {change}"
    if owner.editable and len(ways) > 1:
        variants = tuple(way if way.plain else replace(way, change="") for way in ways)
    else:
        up_to = not owner.editable and cause not in SURE
        variants = (replace(ways[0], name=name, up_to=up_to, change=""),)
    attributed = candidate.attributed if owner.editable else None
    return replace(candidate, variants=variants, change=change, attributed=attributed)


_OPERATORS = tuple((re.compile(pattern), sentence) for pattern, sentence in facts(__file__, "operators.csv"))

# Share of the instructions that only copy a register, from which on nobody optimised the code: of recorded kernels few
# have more than 13 %, of eleven compiled with -G the fewest 36 %, of a twelfth 27 %. Shorter code than that says
# nothing, nor does what fills up its last line.
COPIES, CODE = 0.25, 64
# A predicate in place of a branch is an optimiser's choice: of eleven kernels compiled with -G at most 2 % of the code
# has one, of an optimised kernel that is mostly copies (values that move on through stages of a clipping) 20 %.
GUARDED = 0.05
_GUARDED = re.compile(r"@!?U?P\d+ ")
# A copy under a predicate is a choice that an optimiser made of a branch: code for a debugger branches.
_COPIES = ("MOV R", "IADD3 R", "IMAD.MOV")
_COPY = re.compile(
    r"(?:MOV R\d+, R\d+|IADD3 R\d+, R\d+, RZ, RZ|IMAD\.MOV(?:\.U32)? R\d+, RZ, RZ, R\d+)\s*;?\s*$"
)


DEBUG_BUILD = (
    "A debug build: its code is not optimised (nvcc -G). Compile without -G (-lineinfo keeps the lines) and "
    "profile again: what holds this code back says nothing of the optimised one."
)


def is_debug_build(profile: KernelProfile) -> bool:
    """Whether the code was compiled for a debugger (-G), without optimisation."""
    # What was not disassembled says nothing either way.
    lines = [one.sass.lstrip() for one in profile.source.instructions if one.sass]
    code = [line for line in lines if not line.startswith("NOP")]
    # Of launches whose times alone were measured the code is not always read.
    read = len(code) >= CODE and metrics.counts_more_than_time(profile.metrics)
    if not read or not owner_of(profile).editable:
        return False
    copies = sum(line.startswith(_COPIES) and _COPY.match(line) is not None for line in code)
    return copies >= COPIES * len(code) and sum(map(bool, map(_GUARDED.match, code))) <= GUARDED * len(code)


def levers(profile: KernelProfile, said: Collection[str] = ()) -> tuple[str, ...]:
    """What can be changed about the call besides the causes that are said, a sentence each, without a size."""
    owner, name = owner_of(profile), profile.name
    if is_debug_build(profile):
        return (DEBUG_BUILD,)
    if owner.editable and not said and _SETTING_UP.search(name):
        return (FEWER_GENERATORS,)
    if owner.key == "torch":
        found = next((sentence for pattern, sentence in _OPERATORS if pattern.search(name)), "")
        return (found,) if found else ()  # the first that matches may have no sentence
    if owner.key == "cudnn" and re.search(r"n(?:chw|hwc)ToN(?:hwc|chw)", name, re.IGNORECASE):
        return (
            "A change of layout between NCHW and NHWC: with channels_last throughout, these launches go away.",
        )
    if owner.key == "cudnn" and is_fp32(name):
        return ("FP32 on the FMA pipe: torch.backends.cudnn.allow_tf32, or FP16 or BF16 by autocast.",)
    if owner.key == "cublas":
        return tuple(_of_a_product(profile, said))
    if owner.key == "nccl":
        return ("A collective waits for the slowest rank and the links, of which this report says nothing.",)
    if owner.key == "attention" and re.search(r"_f32_|float,", name):
        return ("FP32 attention: with FP16 or BF16 operands it runs on the tensor cores.",)
    return ()


def of_the_launch(work: Work) -> Iterator[str]:
    """What the launch's size alone tells, where nothing else was found: SMs and lanes that have no work at all; and
    what the code alone tells of the unit at its limit.
    """
    launch, sms = work.profile.launch, work.sms
    if not work.duration or work.duration < SHORT or is_debug_build(work.profile):
        return  # as long as a launch of nothing
    # CUB takes as many blocks as there are elements for.
    if sms and 0 < launch.blocks <= (1.0 - NOTABLE) * sms and owner_of(work.profile).key != "cub":
        yield _idle_sms(work)
    filled = filled_lanes(work)
    if filled < FILLED and owner_of(work.profile).editable:
        yield (
            f"Blocks of {counted(launch.threads_per_block, 'thread')} leave {100 * (1.0 - filled):.0f} % of their "
            f"warps' lanes without work: a block's threads should be a multiple of {WARP}."
        )
    if owner_of(work.profile).editable and not _SETTING_UP.search(work.profile.name):
        yield from filter(None, [of_the_busiest(work)])
    if owner_of(work.profile).editable and (again := looked_up_again(work)):
        yield (
            f"Its look-ups read {again:.1f} times all allocated memory from DRAM: in another order of what is looked "
            "up, or a part of the table at a time, they find in L2 what others have read."
        )


def _of_a_product(profile: KernelProfile, said: Collection[str]) -> Iterator[str]:
    """Sentences on a call of cuBLAS."""
    if "splitKreduce" in profile.name:
        yield "The second half of a product whose K was split: fewer, larger products need none."
    if re.search(r"gemv|dot_kernel|gemmk1|gemmSN", profile.name):
        yield (
            "A product with one row or few: rows that meet the same matrix take about as long together as one does "
            "(docs/cublas_cliffs.md): batch them."
        )
    if "unaligned_operands" not in said and without_padding(profile) is not None:
        yield "Rows of its operands are no multiples of 16 bytes; padded, they take this architecture's own kernels."
    device, capability = profile.device, profile.device.compute_capability
    if (profile.number(metrics.DURATION) or SHORT) < SHORT:
        return  # other pipes make little of what is mostly a launch
    if "tensor_cores_idle" not in said and in_fp32(profile) and has_tensor_cores(device.name, capability):
        limits = LIMITS.get(capability)
        types = "TF32 or BF16" if limits is None or "tf32" in limits.tensor else "FP16"
        yield f"FP32 on the FMA pipe: {types} operands take the tensor cores, where their precision suffices."
