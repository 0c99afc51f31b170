"""What to change first in a program: advice that takes several launches to see, and what many kernels have in common.

A chain of small kernels, a loop over parameters, attention written out: no launch shows it alone. Each is inferred from
the order of the launches, names and grids, with what it would save of the program's time, and an interval; a
finding that stands in twenty kernels is said once. Nothing is claimed twice: of what two pieces of advice save in one
launch, together they save the larger part.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.explanation.causes.library_calls import about, as_tf32, card_of, is_fp32
from gemmprof.analysis.explanation.causes.threads import MOSTLY_IDLE, SHORT_LAUNCH
from gemmprof.analysis.explanation.demands.resources import loads
from gemmprof.analysis.inputs.families import LEAST, Family
from gemmprof.analysis.inputs.names import owner_of
from gemmprof.analysis.occupancy.of_launch import LIMITS
from gemmprof.analysis.whole.spans import Span, Sums, kind_of, ranges_of
from gemmprof.base.amounts import counted, nanoseconds, ratio
from gemmprof.base.foreign_files import facts
from gemmprof.model import FamilyKey, Finding

# Advice on several launches: its heading, what there is, and what to do; what is said of one kernel has its cause's.
_ADVICE = {cause: texts for cause, *texts in facts(__file__, "program_advice.csv")}
TITLES: Mapping[str, str] = {cause: title for cause, (title, _, _) in _ADVICE.items()}

# Arrays that an elementwise kernel moves on average: one or two read, one written.
ARRAYS = 2.5
# Arrays that a fused chain moves: two in, one out.
FUSED_ARRAYS = 3.0
# Of Adam in one pass: parameter, gradient and two moments read, three of them written.
OPTIMIZER_ARRAYS = 7.0
# No chain loses more of its traffic than that: something must be read and written.
MOST_FUSED = 0.8
# Of torch's multi-tensor kernels with four lists: tensors, elements of a chunk, chunks (MultiTensorApply.cuh).
TENSORS_A_LAUNCH, CHUNK, CHUNKS_A_LAUNCH = 36, 65_536, 320
# Launches of one family in a row from which on it is a loop that could be one launch.
ALIKE = 6
# Launches between the two products of attention that is written out, at most: scale, mask, softmax, dropout, casts.
NEAR = 6
# Kinds of kernels that torch.compile generates anew; products and convolutions it leaves to the libraries.
SMALL = frozenset(("elementwise", "norm", "softmax", "reduction", "copy", "other"))
_REDUCING = frozenset(("norm", "softmax", "reduction"))
_OPTIMIZER_RANGE = re.compile(r"optim|\badamw?\b|\bsgd\b", re.IGNORECASE)
_OPTIMIZER_NAME = re.compile(r"addcdiv|multi_tensor_apply")
_FUSED_OPTIMIZER = re.compile(
    r"Fused(?:Adam|Sgd|Adagrad)|fused_adam|multi_tensor_adam|AdamFunctor", re.IGNORECASE
)
_STEP = re.compile(r"addcdiv")
_WRITES = re.compile(r"distribution_elementwise|FillFunctor|arange")
# Of the time in which the multiprocessors work, what TF32 saves where no product like it was timed: about, least, most.
TENSOR_CORES = (0.7, 0.5, 0.85)
# Share of the tensor cores' rate below which an own product is far from tuned, and what tuned ones reach: the median of
# 334 aligned products of 10 GFLOP and more on which cuBLAS was timed, at the least what one's own may (a guess), and
# the best of those (docs/cublas_cliffs.md).
SLOW_PRODUCT, TUNED_PRODUCT = 0.4, (0.62, 0.4, 0.79)
# ncu's options that leave out launches in between; but for those that only exclude what must not be profiled.
_CHOSEN = re.compile(r"--filter-mode|--kernel-id|(?:--kernel-name|\s-k)[ =](?!\"?regex:\^\(\?!)")


class Gain(NamedTuple):
    """What a change saves in one launch, ns, with an 80 % interval."""

    saves: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """One change, over all the launches that it concerns."""

    cause: str  # key of `TITLES`, or of a kernel's cause (`analysis.explanation.causes.CAUSES`)
    says: str  # what there is, a sentence with its sums
    change: str  # what to do about it, a sentence
    # saves, low, high: share of the program's time, with an 80 % interval
    saves: float
    low: float
    high: float
    span: Span = field(repr=False)  # the launches that it concerns, added up
    families: tuple[str, ...] = ()  # ids of theirs, most time first
    # what that is a share of: ``kernels``, the sum of all launches, or ``wall``, with the gaps of a trace
    share_of: str = "kernels"
    # what it saves in each launch, by its position
    gains: Mapping[int, Gain] = field(default_factory=dict, repr=False)

    @property
    def title(self) -> str:
        """Heading."""
        return TITLES.get(self.cause) or CAUSES.get(self.cause, self.cause)

    @property
    def of_what(self) -> str:
        """What the share is of, where that is not the kernels' time."""
        return " of the wall time" if self.share_of == "wall" else ""


@dataclass(frozen=True, slots=True)
class Advice:
    """All proposals, most saved first."""

    proposals: tuple[Proposal, ...] = ()  # what is worth a line
    # what they save together, share, low and high; None for fewer than two
    together: tuple[float, float, float] | None = None
    # whether the report holds chosen launches alone, so that their neighbours in it are none
    sampled: bool = False


class Launches:
    """The launches of a program in their order, with what rules ask of each; ``ids``: of the family at a position."""

    def __init__(self, sums: Sums, ids: Callable[[int], str]) -> None:
        self.sums, self.ids = sums, ids
        self.profiles = sums.profiles
        self.kinds = [kind_of(profile.name) for profile in sums.profiles]
        self.owners = [owner_of(profile) for profile in sums.profiles]
        self.optimizer = frozenset(self._optimizer())

    def _optimizer(self) -> Iterator[int]:
        """Positions of the launches of an optimiser: in a range that says so, or around what only optimisers launch."""
        for at, profile in enumerate(self.profiles):
            if self.kinds[at] in SMALL and any(map(_OPTIMIZER_RANGE.search, ranges_of(profile))):
                yield at
        for run in self.runs(lambda at: self.owners[at].key == "torch" and self.kinds[at] == "elementwise"):
            if any(_OPTIMIZER_NAME.search(self.profiles[at].name) for at in run):
                yield from run

    def proposal(self, cause: str, gains: Mapping[int, Gain], says: str, change: str) -> Proposal:
        """One change with what it saves in all."""
        members = sorted(gains)
        families = dict.fromkeys(map(self.ids, sorted(members, key=lambda at: -self.sums.times[at])))
        span = self.sums.span(TITLES.get(cause, cause), members)
        shares = _share(gains.values(), self.sums.total)
        return Proposal(cause, says, change, *shares, span, tuple(families), gains=gains)

    def runs(self, belongs: Callable[[int], bool]) -> Iterator[list[int]]:
        """Stretches of launches that follow one another in a report and all belong."""
        positions = range(len(self.profiles))
        stretches = itertools.groupby(positions, key=lambda at: (belongs(at), self.profiles[at].report))
        yield from (list(run) for (belong, _), run in stretches if belong)

    def launching(self, at: int) -> float:
        """Time of a launch in which no multiprocessor works, ns; 0 where that is not known."""
        return self.sums.times[at] * (self.sums.idle[at] or 0.0)

    def words(self, positions: Iterable[int]) -> str:
        """``412 launches of 3.1 µs, 31 % of the time, of which 58 % is launching``, if that is worth saying."""
        span = self.sums.span("", positions)
        one, often = nanoseconds(span.time_ns / max(1, span.launches)), span.launching or 0.0
        text = f"{counted(span.launches, 'launch')} of {one}, {ratio(span.share, 0)} of the time"
        return f"{text}, of which {ratio(often, 0)} is launching" if often >= 0.1 else text

    def fills(self, at: int) -> bool:
        """Whether a launch has a block for each multiprocessor: its time is then traffic, else mostly waiting."""
        return self.profiles[at].launch.blocks >= (self.profiles[at].device.sm_count or 1)

    def in_one(self, run: Sequence[int], left: float, traffic: float) -> dict[int, Gain]:
        """What a run saves where ``left`` launches do its work and move ``traffic`` less, as a share."""
        gone = 1.0 - left / len(run)
        gains = {}
        for at in run:
            launching = self.launching(at)
            moving = self.sums.times[at] - launching
            saves = launching * gone + moving * (traffic if self.fills(at) else gone)
            # How far models of traffic alone were off on single kernels.
            gains[at] = Gain(saves, 0.7 * saves, 1.2 * saves)
        return gains


def in_words(cause: str, words: Mapping[str, object]) -> tuple[str, str]:
    """What there is and what to do about it, with what the table leaves open."""
    _, says, change = _ADVICE[cause]
    return says.format_map(words), change.format_map(words)


# What a rule finds: what is saved in each launch, and what the table's words leave open.
Found = tuple[Mapping[int, Gain], Mapping[str, object]]


def _optimizer(known: Launches) -> Found:
    """An optimiser in many launches, which torch has in a few: by the arrays that its steps move one after another."""
    members = sorted(known.optimizer)
    if len(members) < ALIKE or any(_FUSED_OPTIMIZER.search(known.profiles[at].name) for at in members):
        return {}, {}
    steps = [at for at in members if _STEP.search(known.profiles[at].name)]
    several = any("multi_tensor_apply" in known.profiles[at].name for at in members)
    different = len({known.profiles[at].name for at in members})
    tensors = len(steps) if steps and not several else max(1, len(members) // max(1, different))
    each = different if several else max(1.0, len(members) / tensors)
    launches = (known.profiles[at].launch for at in steps)
    elements = sum(4 * one.blocks * one.threads_per_block for one in launches)
    left = max(1, math.ceil(tensors / TENSORS_A_LAUNCH), math.ceil(elements / CHUNK / CHUNKS_A_LAUNCH))
    traffic = min(MOST_FUSED, max(0.0, 1.0 - OPTIMIZER_ARRAYS / (ARRAYS * each)))
    return known.in_one(members, left, traffic), {"left": left}


def _chains(known: Launches) -> Found:
    """Runs of torch's small kernels, which torch.compile makes one kernel each; a reduction ends one."""

    def small(at: int) -> bool:
        return known.owners[at].key == "torch" and known.kinds[at] in SMALL and at not in known.optimizer

    gains: dict[int, Gain] = {}
    left = 0
    for run in known.runs(small):
        # Random numbers and constants that are only written are no chain: none reads what another one wrote.
        if len(run) < 2 or all(_WRITES.search(known.profiles[at].name) for at in run):
            continue
        after = min(len(run), max(1, sum(known.kinds[at] in _REDUCING for at in run)))
        left += after
        moved = (FUSED_ARRAYS - 1 + after) / (ARRAYS * len(run))
        gains |= known.in_one(run, after, min(MOST_FUSED, max(0.0, 1.0 - moved)))
    return gains, {"left": left}


def _neighbours(known: Launches) -> Found:
    """Kernels of one's own on the same grid, one behind the other, each moving about what it computes on."""

    def plain(at: int) -> bool:
        return known.owners[at].editable and known.kinds[at] in ("elementwise", "copy")

    gains: dict[int, Gain] = {}
    names: dict[str, None] = {}
    for first, second in (pair for run in known.runs(plain) for pair in itertools.pairwise(run)):
        a, b = known.profiles[first], known.profiles[second]
        if a.launch.grid != b.launch.grid or a.launch.block != b.launch.block or a.name == b.name:
            continue
        moved = 1.0 - (2 * ARRAYS - 2.0) / (2 * ARRAYS)  # the array between them, written and read
        for at, gain in known.in_one([first, second], 1, moved).items():
            # Where not the memory but a thread's work limits them, the second comes along for nothing.
            most = min(known.sums.times[first], known.sums.times[second]) / 2
            gains[at] = Gain(gain.saves, 0.5 * gain.saves, max(1.2 * gain.saves, most))
        names |= {a.function_name: None, b.function_name: None}
    return gains, {"names": ", ".join(list(names)[:4])}


def _attention(known: Launches) -> Found:
    """A softmax between two products, with nothing but elementwise kernels: attention with its scores in memory."""
    between: set[int] = set()
    products: set[int] = set()
    for at, profile in enumerate(known.profiles):
        if known.kinds[at] != "softmax" or "LogSoft" in profile.name or known.owners[at].key != "torch":
            continue
        before, after = _product(known, at, -1), _product(known, at, 1)
        if before is not None and after is not None:
            products |= {before, after}
            between |= set(range(before + 1, after))
    times = known.sums.times
    gains = {at: Gain(0.85 * times[at], 0.5 * times[at], times[at]) for at in between}
    # With the scores in registers the products may gain, too; how much nothing tells.
    gains |= {at: Gain(0.0, 0.0, 0.4 * times[at]) for at in products if between}
    return gains, {"words": known.words(sorted(between))}


def _product(known: Launches, at: int, step: int) -> int | None:
    """The nearest matrix product before or behind a softmax, None where something else stands between."""
    for place in range(at + step, at + step * (NEAR + 1), step):
        if not 0 <= place < len(known.profiles) or known.profiles[place].report != known.profiles[at].report:
            return None
        if known.kinds[place] == "matrix product":
            return place
        if known.kinds[place] not in ("elementwise", "copy", "reduction"):
            return None
    return None


def _layout(known: Launches) -> Found:
    """cuDNN's conversions between channels first and last."""
    converts = re.compile(r"n[ch]hwc?ToN[ch]", re.IGNORECASE)
    times = ((at, known.sums.times[at]) for at, one in enumerate(known.profiles) if converts.search(one.name))
    # Other kernels change with the layout, and some of them for the worse.
    return {at: Gain(0.6 * time, 0.0, time) for at, time in times}, {}


def _copies(known: Launches) -> Found:
    """``torch.cat`` of something large: it copies what was there before as well."""
    profiles = enumerate(known.profiles)
    found = [at for at, one in profiles if "CatArrayBatchedCopy" in one.name and known.fills(at)]
    # What is new is still copied, by a launch of its own.
    moved = ((at, known.sums.times[at] - known.launching(at)) for at in found)
    gains = {at: Gain(0.5 * moving, 0.0, moving) for at, moving in moved if moving}
    return gains, {"words": known.words(found)}


def _alike(known: Launches) -> Found:
    """Launches of one kernel on one small grid in a row, outside the optimiser: a loop that could be one launch."""

    def small(at: int) -> bool:
        return known.owners[at].key not in ("torch", "inductor") and not known.fills(at)

    gains: dict[int, Gain] = {}
    alike = (itertools.groupby(run, key=lambda at: known.profiles[at].family) for run in known.runs(small))
    for loop in (list(loop) for loops in alike for _, loop in loops):
        if len(loop) < ALIKE:
            continue
        profile = known.profiles[loop[0]]
        blocks, sms = len(loop) * profile.launch.blocks, profile.device.sm_count or 1
        # Blocks that a multiprocessor holds at once, 1 where that was not collected.
        limits = (name for resource, name in LIMITS if resource != "barriers")
        each = max(1, int(min(filter(None, map(profile.number, limits)), default=1)))
        share = 1.0 - max(1, math.ceil(blocks / (sms * each))) / len(loop)
        # An SM may hold one block of a time only.
        least = max(0.0, 1.0 - max(1, math.ceil(blocks / sms)) / len(loop))
        for at in loop:
            time = known.sums.times[at]
            gains[at] = Gain(0.93 * share * time, least * 0.7 * time, share * time)
    return gains, {}


def _products(known: Launches) -> Found:
    """Own matrix products on the tensor cores, far below what tuned ones reach."""
    gains: dict[int, Gain] = {}
    for at, profile in enumerate(known.profiles):
        if not (known.owners[at].editable and known.kinds[at] == "matrix product" and known.fills(at)):
            continue
        rate = next((load.share for load in loads(profile) if load.resource.key == "tensor"), 0.0)
        if 0.02 < rate < SLOW_PRODUCT:
            about, least, most = (max(0.0, 1.0 - rate / tuned) for tuned in TUNED_PRODUCT)
            time = known.sums.times[at]
            gains[at] = Gain(about * time, least * time, most * time)
    how = "Take larger tiles, three or four stages and a warp tile of 64 or more; or call cuBLAS or CUTLASS's own."
    if any(known.owners[at].key == "triton" for at in gains):
        tiles = "BLOCK of 128 and 256, 8 warps, 3 or 4 num_stages"
        how = f"Tune the tile with triton.autotune ({tiles}), or call torch.matmul."
    return gains, {"slow": ratio(SLOW_PRODUCT, 0), "how": how}


def _precision(known: Launches) -> Found:
    """Libraries' products in FP32 without tensor cores, known by their names."""
    gains = {}
    for at, profile in enumerate(known.profiles):
        # What TF32 brings differs from chip to chip: nothing on some, and before 8.0 there is none.
        if not known.owners[at].editable and is_fp32(profile.name) and card_of(profile) is not None:
            timed, time = as_tf32(profile), known.sums.times[at]
            of, shares = (time, about(timed)) if timed else (time - known.launching(at), TENSOR_CORES)
            # What it moves it moves with tensor cores, too.
            moving = next((load.share for load in loads(profile) if load.resource.key == "dram"), 0.0)
            gains[at] = Gain(*(max(0.0, min(of * share, time * (1.0 - moving))) for share in shares))
    cudnn = any(known.owners[at].key == "cudnn" for at in gains)
    return gains, {"convolutions": "; convolutions: torch.backends.cudnn.allow_tf32" if cudnn else ""}


def _launching(known: Launches, claimed: Mapping[int, Gain]) -> Iterator[Proposal]:
    """Short kernels of one's own that are launched again and again, most of whose time no multiprocessor works."""
    often = Counter(profile.family for profile in known.profiles)
    found: dict[FamilyKey, list[int]] = {}
    for at, profile in enumerate(known.profiles):
        short = known.sums.times[at] <= SHORT_LAUNCH and (known.sums.idle[at] or 0.0) >= MOSTLY_IDLE
        if short and known.owners[at].editable and often[profile.family] > 1 and at not in claimed:
            found.setdefault(profile.family, []).append(at)
    gains = {at: gain for group in found.values() for at, gain in known.in_one(group, 1, 0.0).items()}
    if gains:
        fuse = "fuse them with one another or with their neighbours, or give each more data at once."
        says = f"{counted(len(found), 'kernel')}, {known.words(gains)}."
        yield known.proposal("launch_overhead", gains, says, f"Do more in one launch: {fuse}")


Rule = Callable[[Launches], Found]
# What is inferred from launches that follow one another, and from each alone: by the advice.
OF_THE_ORDER: Mapping[str, Rule] = {
    "optimizer": _optimizer,
    "compile": _chains,
    "attention": _attention,
    "elementwise": _neighbours,
    "batch": _alike,
}
OF_EACH: Mapping[str, Rule] = {
    "layout": _layout,
    "copies": _copies,
    "product": _products,
    "precision": _precision,
}


def _in_common(
    known: Launches, explained: Iterable[Family], claimed: Mapping[int, Gain]
) -> Iterator[Proposal]:
    """The first finding of each family, one a cause; without launches in which other advice saves as much."""
    found: dict[str, list[tuple[float, Finding, Family]]] = {}
    gains: dict[str, dict[int, Gain]] = {}
    for family in explained:
        worst = family.worst
        if worst is None:
            continue
        mine = {
            at: Gain(worst.saves * time, worst.saves_low * time, worst.saves_high * time)
            for at in family.members
            if (time := known.sums.times[at])
            and (at not in claimed or claimed[at].saves < 0.5 * worst.saves * time)
        }
        if mine:
            gains.setdefault(worst.cause, {}).update(mine)
            found.setdefault(worst.cause, []).append((sum(g.saves for g in mine.values()), worst, family))
    for cause, members in found.items():
        members.sort(key=lambda one: -one[0])
        kernels = len({family.name for _, _, family in members})
        says = f"{counted(kernels, 'kernel')}, {known.words(gains[cause])}."
        yield known.proposal(cause, gains[cause], says, members[0][1].change)


def advise(sums: Sums, explained: Sequence[Family], ids: Callable[[int], str]) -> Advice:
    """What to change first; ``explained``: families with what saves most in each, without those not looked into."""
    if len(sums.profiles) < 2 or not sums.total:
        return Advice()
    known = Launches(sums, ids)
    sampled = any(_CHOSEN.search(profile.session.command_line) for profile in sums.profiles[:1])
    rules = OF_EACH if sampled else {**OF_THE_ORDER, **OF_EACH}
    found = []
    for cause, rule in rules.items():
        gains, words = rule(known)
        if gains:
            texts = in_words(cause, {"words": known.words(gains), **words})
            found.append(known.proposal(cause, gains, *texts))
    claimed: dict[int, Gain] = {}
    for one in found:
        _larger(claimed, one.gains)
    found += [*_launching(known, claimed), *_in_common(known, explained, claimed)]
    found.sort(key=lambda one: (-one.saves, one.cause))
    kept = tuple(one for one in found if one.saves >= LEAST)
    return Advice(kept, together(kept, sums.total) if len(kept) > 1 else None, sampled)


def together(proposals: Iterable[Proposal], total: float) -> tuple[float, float, float]:
    """What these save of so many ns, share, low and high: in one launch the larger of two."""
    best: dict[int, Gain] = {}
    for one in proposals:
        _larger(best, one.gains)
    return _share(best.values(), total)


def _larger(into: dict[int, Gain], gains: Mapping[int, Gain]) -> None:
    for at, gain in gains.items():
        if at not in into or into[at].saves < gain.saves:
            into[at] = gain


def _share(gains: Iterable[Gain], total: float) -> tuple[float, float, float]:
    listed = list(gains) or [Gain(0.0, 0.0, 0.0)]
    saves, low, high = (min(1.0, sum(values) / total) for values in zip(*listed, strict=True))
    return saves, low, high
