"""The verdict: one paragraph made of numbers about one kernel, and one word for tables.

It says nothing of its own: every number comes from the result of another analysis, and what was not collected is left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gemmprof import metrics
from gemmprof.analysis import opcodes
from gemmprof.analysis.explanation.causes import CAUSES
from gemmprof.analysis.explanation.levers import DEBUG_BUILD
from gemmprof.analysis.explanation.trust import WAITS, mostly_launching
from gemmprof.analysis.sections import instruction_mix, roofline, scheduler, speed_of_light, warp_states
from gemmprof.analysis.sections.by_line import base_name
from gemmprof.analysis.sections.instruction_mix import InstructionMix
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.sections.scheduler import Scheduler
from gemmprof.analysis.sections.speed_of_light import BreakdownEntry, SpeedOfLight
from gemmprof.analysis.sections.warp_states import WarpStates
from gemmprof.base.amounts import scaled, significant
from gemmprof.base.printable import lower_first
from gemmprof.model import Explanation, NotCollected

UNKNOWN = "unknown"

VISIBLE_PERCENT = 0.05  # smaller percentages print as 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a performance engineer would say first."""

    # a few words for a table: ``FMA pipe``, ``DRAM``, ``shared memory``, ``memory latency``, ``small grid``,
    # ``launching``, ``unknown`` …
    limited_by: str
    closeness: str  # sentence: how close to which limit
    waiting: str = ""  # sentence: what the warps wait for; '' if not collected
    # sentence: what to change first; '' if nothing is known. The findings of the explanation say more.
    advice: str = ""

    @property
    def paragraph(self) -> str:
        """All sentences."""
        return f"{self.figures} {self.advice}".strip()

    @property
    def figures(self) -> str:
        """All but what to change."""
        return f"{self.closeness} {self.waiting}".strip()


def judge(results: Mapping[str, Any], explanation: Explanation) -> Verdict:
    """The verdict on one launch, from the results of its analyses by name (`KernelAnalysis.results`; missing and not
    collected ones are fine). What limits it and what to change first are what the explanation says.
    """

    def known(name: str) -> Any:
        return None if isinstance(found := results.get(name), NotCollected) else found

    light, roofs, states = known(speed_of_light.NAME), known(roofline.NAME), known(warp_states.NAME)
    unit = partial(_unit, roofs, known(instruction_mix.NAME))
    limited_by, closeness = _limited_by(explanation, states, unit), _closeness(light, roofs, unit)
    return Verdict(limited_by, closeness, _waiting(states, known(scheduler.NAME)), _advice(explanation))


_Unit = Callable[[str], str]


def _unit(roofs: Roofline | None, mix: InstructionMix | None, name: str) -> str:
    """A hardware unit in words: its name, but the L1 data stage by what keeps it busy."""
    if name != metrics.L1_DATA_STAGE:
        return name
    shared = cache = 0.0
    if roofs is not None:
        levels = {memory.level: memory.percent or 0.0 for memory in roofs.memory_roofs}
        shared, cache = levels.get(roofline.SHARED, 0.0), levels.get(roofline.L1, 0.0)
    if shared == cache == 0.0 and mix is not None:
        shared = float(mix.count(*opcodes.members("shared_load", "shared_store")))
        cache = float(mix.count(*opcodes.members("global_load", "global_store", "local", "atomic")))
    if shared == cache:
        return metrics.L1_DATA_STAGE
    return "shared memory" if shared > cache else "L1 cache"


def _limited_by(explanation: Explanation, states: WarpStates | None, unit: _Unit) -> str:
    """What the explanation says that the time goes to: of waits that nothing hides, what is waited for."""
    if explanation.losses and explanation.losses[0][0].cause == "small_grid":
        return "small grid"
    if mostly_launching(explanation):
        return "launching"
    most = explanation.time[0].resource if explanation.time else UNKNOWN
    if most != WAITS:
        return unit(most)
    return warp_states.LIMITED_BY[states.main_stall.group if states and states.main_stall else "other"]


def _closeness(light: SpeedOfLight | None, roofs: Roofline | None, unit: _Unit) -> str:
    sentences = []
    if light is not None:
        compute = "compute", light.sm_percent, unit(_busiest(light.sm_breakdown))
        memory = "memory", light.memory_percent, unit(_busiest(light.memory_breakdown))
        sides = [
            (side, f"{n:.1f} %", f" (busiest: {one})" if one else "")
            for side, n, one in (compute, memory)
            if n is not None
        ]
        reached = ", ".join(
            f"{side} reaches {percent} of its peak{busiest}" for side, percent, busiest in sides
        )
        sentences += [f"{reached[:1].upper()}{reached[1:]}."] if reached else []
    point = None if roofs is None else roofs.tightest
    if point is not None:
        level = point.memory.label
        if point.memory.level in (roofline.DRAM, roofline.SHARED):  # the others begin with an abbreviation
            level = lower_first(level)
        rate = scaled(point.achieved, "OP/s" if "int" in point.compute.key else "FLOP/s")
        sentences.append(
            f"At {significant(point.intensity)} operations per byte of {level} it does {rate} of "
            f"{point.compute.label}, {point.percent:.1f} % of what the {point.bound} roof allows there."
        )
    return " ".join(sentences) or "Too little was collected to say how close the kernel is to a limit."


def _busiest(breakdown: tuple[BreakdownEntry, ...]) -> str:
    """The busiest unit of a breakdown, '' where none is busy."""
    if not breakdown or (breakdown[0].percent or 0.0) < VISIBLE_PERCENT:
        return ""
    return breakdown[0].unit or breakdown[0].label


def _waiting(states: WarpStates | None, issue: Scheduler | None) -> str:
    sentences = []
    if states is not None and (stall := states.main_stall) is not None:
        what = f"{lower_first(stall.meaning)[:-1]} ({stall.reason.title.removeprefix('Stall ')})"
        cycles, share = states.cycles_per_issued_instruction, f"{100 * stall.share:.0f} %"
        if cycles is not None and stall.cycles_per_issue is not None:
            sentences.append(f"A warp issues every {cycles:.1f} cycles; {share} of its time it {what}.")
        else:
            sentences.append(f"In {share} of the samples a warp {what}.")
    if issue is not None and (idle := issue.no_eligible_percent) is not None:
        warps = ""
        if issue.active_warps is not None and issue.max_warps is not None:
            warps = f", with {issue.active_warps:.1f} of {issue.max_warps:.0f} possible warps resident"
        sentences.append(f"Schedulers issue nothing in {idle:.0f} % of cycles{warps}.")
    return " ".join(sentences)


def _advice(explanation: Explanation) -> str:
    """What to change first: the findings below say the rest."""
    if DEBUG_BUILD in explanation.levers:
        return DEBUG_BUILD
    if explanation.losses:
        first = explanation.losses[0][0]
        title = CAUSES.get(first.cause, first.cause)
        place = next((f" ({base_name(p.file)}:{p.line})" for p in first.places if p.file is not None), "")
        return (
            f"First to change: {lower_first(title)}{place}, which would save about "
            f"{100 * first.saves:.0f} % of its time."
        )
    if explanation.at_limit is not None:
        return "No change that these numbers show would save a notable part of its time."
    return ""
