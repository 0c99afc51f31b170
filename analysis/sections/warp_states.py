"""Warp states: where the cycles between two instructions of a warp go, measured per issue and sampled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gemmprof import metrics
from gemmprof.analysis import opcodes
from gemmprof.analysis.figure import collected, figure, unlisted
from gemmprof.analysis.sections.by_line import by_address
from gemmprof.base.foreign_files import facts
from gemmprof.gpu.arch import has
from gemmprof.model import Instruction, KernelProfile, NotCollected

# --- Stall reasons ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StallReason:
    """One warp state."""

    key: str  # ncu's name in ``smsp__average_warps_issue_stalled_<key>_per_issue_active.ratio``
    title: str  # as ncu prints it ("Stall Long Scoreboard")
    group: str  # key of `GROUPS`
    meaning: str  # one sentence: what a warp in this state waits for


_GROUPS = facts(__file__, "stall_groups.csv")
# Title of each group of reasons, in the order of the pages, and what limits a kernel that mostly waits so.
GROUPS = {key: title for key, title, _ in _GROUPS}
LIMITED_BY = {key: limit for key, _, limit in _GROUPS}
ISSUING = "issuing"  # the group of the two states in which nothing holds the warp back

_ABBREVIATIONS = ("lg", "imc", "mio", "gmma")

# Every state that ncu counts, and what the instructions tell apart within one.
REASONS = {key: StallReason(key, *more) for key, *more in facts(__file__, "stalls.csv")}
BLOCK, CLUSTER, WGMMA, MBARRIER = (REASONS.pop(key) for key in ("block", "cluster", "wgmma", "mbarrier"))

# Reasons that the sampler calls otherwise than the warp-state counters do.
_SAMPLING_NAMES = {"no_instructions": "no_instruction", "warpgroup_arrive": "gmma"}


def reason(name: str, compute_capability: tuple[int, int] = (0, 0)) -> StallReason:
    """The reason by its name in a counter or a sampling metric; a plain one for a name that is new to gemmprof. ncu
    counts more to a barrier on GPUs where there is more to wait for.
    """
    key = _SAMPLING_NAMES.get(name, name)
    if (known := REASONS.get(key)) is not None:
        if key != "barrier" or not has("clusters", compute_capability):
            return known
        results = ", or for the results of wgmma" if has("wgmma", compute_capability) else ""
        return replace(known, meaning=f"Waits at a barrier of its block (__syncthreads) or cluster{results}.")
    words = key.split("_")
    title = " ".join(word.upper() if word in _ABBREVIATIONS else word.title() for word in ("stall", *words))
    return StallReason(key, title, "other", f"Is in the state that ncu calls '{' '.join(words)}'.")


# --- Warp states ------------------------------------------------------------------------------------------------------


BARRIER, LONG = "barrier", "long_scoreboard"
LEAST = 0.02  # waits of less than this share of their state are not told apart from it
# Instructions between the question to an mbarrier and the branch on its answer, and in a loop after that.
_LOOK_BACK, _LOOK_AHEAD = 32, 48


@dataclass(frozen=True, slots=True)
class WaitShare:
    """A wait and its samples; ``share`` is of the samples of its state, 0 to 1."""

    wait: StallReason
    samples: int
    share: float


def waits_by_state(profile: KernelProfile, samples: Mapping[str, str]) -> dict[str, tuple[WaitShare, ...]]:
    """The waits that the instructions tell apart, by the state that ncu counts them to, largest first.

    Nothing for a state that was not sampled by instruction (``samples`` has the metric of each), and for one in which
    all warps wait for what its name says.
    """
    code = profile.source.instructions
    found: dict[str, tuple[WaitShare, ...]] = {}
    for state in (BARRIER, LONG):
        counts = by_address(profile, samples[state]) if state in samples else None
        whole = sum(counts.values()) if counts else 0
        if not code or not counts or not whole:
            continue
        totals: Counter[StallReason] = Counter()
        for index, instruction in enumerate(code):
            if not (count := counts.get(instruction.address, 0)):
                continue
            opcode = opcodes.opcode_of(instruction.sass)
            if state == BARRIER:
                group, cluster = opcode.startswith("WARPGROUP"), opcode.startswith("UCGABAR")
                totals[WGMMA if group else CLUSTER if cluster else BLOCK] += count
            elif _asks_an_mbarrier(code, index, opcode):
                totals[MBARRIER] += count
        shares = (WaitShare(wait, count, count / whole) for wait, count in totals.items())
        if told := tuple(sorted((s for s in shares if s.share >= LEAST), key=lambda s: -s.samples)):
            found[state] = told
    return found


def _asks_an_mbarrier(code: Sequence[Instruction], index: int, opcode: str) -> bool:
    """Whether the instruction waits for the answer of an mbarrier: it is a question, a sleep, or a branch on one."""
    if opcode.startswith("SYNCS") or opcode == "NANOSLEEP.SYNCS":
        return True
    if opcode.partition(".")[0] != "BRA":
        return False
    predicates = {name for name in opcodes.parse(code[index].sass).reads if "P" in name}
    behind = code[max(0, index - _LOOK_BACK) : index]
    # In a loop the question of the last round stands below the branch.
    for other in (*reversed(behind), *code[index + 1 : index + _LOOK_AHEAD]):
        if predicates.intersection(opcodes.parse(other.sass).writes):
            return "TRYWAIT" in other.sass
    return False


NAME = "warp_states"
TITLE = "Warp states"
GROUP = metrics.WARP_STATES
MOSTLY = 0.9  # a state of which so much is one wait is called by that wait


@dataclass(frozen=True, slots=True)
class StateShare:
    """One warp state of this kernel; each number is None where it was not collected."""

    reason: StallReason
    cycles_per_issue: float | None = figure("Cycles per issue", "", "of a warp, spent in this state")
    samples: int | None = figure("Samples", "", "that found a warp in this state")
    samples_not_issued: int | None = figure(
        "Nothing issued", "", "samples in whose cycle the scheduler issued nothing: the stalls that cost time"
    )
    share: float = figure(
        "Share", "share", "of the warp's cycles per issue, of all samples where there are none"
    )
    waits: tuple[WaitShare, ...] = ()  # what the warps of this state wait for, where the instructions tell it

    @property
    def label(self) -> str:
        """ncu's name of the state."""
        return self.reason.title

    @property
    def meaning(self) -> str:
        """What a warp in this state waits for: what most of them do where that is known, else what ncu's name says."""
        if not self.waits:
            return self.reason.meaning
        if self.waits[0].share >= MOSTLY:
            return self.waits[0].wait.meaning
        named = sum(part.share for part in self.waits)
        parts = [f"{100 * part.share:.0f} % {part.wait.title}" for part in self.waits]
        if named < 1 - LEAST and self.reason.group == "memory":
            parts.append(f"{100 * (1 - named):.0f} % other data")
        return f"Waits: {', '.join(parts)}."

    @property
    def group(self) -> str:
        """Group of the state, or of the wait that most of it is."""
        return self.waits[0].wait.group if self.waits and self.waits[0].share >= 0.5 else self.reason.group


@dataclass(frozen=True, slots=True)
class GroupShare:
    """The states of one group together (``memory``, ``synchronisation``, …)."""

    key: str
    title: str
    share: float
    states: tuple[StateShare, ...]


@dataclass(frozen=True, slots=True)
class WarpStates:
    """Warp states, largest first; ``selected`` (the warp issues) is among them."""

    states: tuple[StateShare, ...]
    groups: tuple[GroupShare, ...]
    cycles_per_issued_instruction: float | None = figure(
        "Cycles per issued instruction",
        "cycle",
        "of one warp",
        alone="Cycles between two instructions of a warp",
        of=metrics.CYCLES_PER_ISSUE,
    )
    cycles_per_executed_instruction: float | None = figure(
        "Cycles per executed instruction", meaning="of one warp", of=metrics.CYCLES_PER_EXECUTED
    )
    threads_per_instruction: float | None = figure(
        "Threads per instruction", meaning="of 32", of=metrics.THREADS_PER_INSTRUCTION
    )
    threads_per_instruction_not_predicated: float | None = figure(
        "The same, predicated on", of=metrics.THREADS_PER_INSTRUCTION_PREDICATED_ON
    )
    sample_count: int | None = unlisted("Samples", of=metrics.SAMPLE_COUNT)
    sampling_interval_cycles: int | None = unlisted(
        "Cycles between samples", of=metrics.SAMPLING_INTERVAL_CYCLES
    )
    missing: NotCollected | None = None

    @property
    def main_stall(self) -> StateShare | None:
        """The largest state in which the warp is held back (neither selected nor ready and waiting its turn)."""
        held = (state for state in self.states if state.reason.group != ISSUING and state.share > 0)
        return next(held, None)


def analyse(profile: KernelProfile) -> WarpStates | NotCollected:
    """Warp states of one launch, from the counters, the sampler, or both."""
    cycles = _by_reason(profile, metrics.stall_cycles(profile.metrics))
    sampled = metrics.stall_samples(profile.metrics)
    samples, told = _by_reason(profile, sampled, whole=True), waits_by_state(profile, sampled)
    not_issued = _by_reason(profile, metrics.stall_samples(profile.metrics, not_issued=True), whole=True)
    latency = profile.number(metrics.CYCLES_PER_ISSUE)
    if not cycles and not samples and latency is None:
        return GROUP.not_collected(profile.metrics)
    weights = cycles or samples
    # The reasons are counted in other passes than the latency, so their sum is a few per mille off it (some per cent
    # for a kernel of few microseconds). ncu relates them to the latency; so do we.
    whole = latency if cycles and latency else sum(weights.values())
    states = []
    for key in dict.fromkeys((*cycles, *samples)):
        state, waits = reason(key, profile.device.compute_capability), told.get(key, ())
        share = weights.get(key, 0.0) / whole if whole > 0 else 0.0
        counts = cycles.get(key), samples.get(key), not_issued.get(key)
        states.append(StateShare(state, *counts, share, waits))
    states.sort(key=lambda state: (-state.share, state.reason.key))
    of = {key: tuple(state for state in states if state.reason.group == key) for key in GROUPS}
    groups = [
        GroupShare(key, GROUPS[key], sum(one.share for one in mine), mine) for key, mine in of.items() if mine
    ]
    return WarpStates(
        **collected(WarpStates, profile),
        states=tuple(states),
        groups=tuple(sorted(groups, key=lambda group: -group.share)),
        missing=GROUP.incomplete(profile.metrics),
    )


def _by_reason(profile: KernelProfile, names: dict[str, str], *, whole: bool = False) -> dict[str, Any]:
    """Value of each counter under the reason's key, which counters and sampler share."""
    read = profile.whole if whole else profile.number
    values = {reason(name).key: read(metric) for name, metric in names.items()}
    return {key: value for key, value in values.items() if value is not None}
