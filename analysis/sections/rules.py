"""Nsight Compute's own advice, with its estimated speed-ups, strongest first."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.model import KernelProfile, NotCollected, RuleResult

NAME = "rules"
TITLE = "Advice from Nsight Compute"
GROUP = metrics.ADVICE

# Identifiers of ncu's rules that some recorded report holds; a rule with nothing to say is not in a report.
KNOWN = frozenset(
    (
        "AchievedOccupancy", "CPIStall", "FPInstructions", "HighPipeUtilization", "IssueSlotUtilization",
        "LaunchConfiguration", "MemoryCacheAccessPattern", "MemoryL2Compression", "PMSamplingData", "SOLBottleneck",
        "SOLFPRoofline", "SharedMemoryConflicts", "TheoreticalOccupancy", "ThreadDivergence", "UncoalescedGlobalAccess",
        "UncoalescedSharedAccess", "WorkloadImbalance",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Advice:
    """Rule results that say something (empty ones are left out). Estimates overlap: they do not add up."""

    # optimisations with their estimates first (largest first, ``global`` before ``local`` at the same estimate), then
    # warnings and errors, then the rest
    items: tuple[RuleResult, ...]

    @property
    def best(self) -> RuleResult | None:
        """The advice with the largest estimated speed-up of the whole kernel, or None."""
        estimated = [item for item in self.items if item.estimated_speedup and item.speedup_scope == "global"]
        return max(estimated, key=lambda item: item.estimated_speedup or 0.0, default=None)


_SEVERITIES = ("error", "warning", "optimization", "ok", "none")


def analyse(profile: KernelProfile) -> Advice | NotCollected:
    """The advice that the report holds, strongest first; `NotCollected` if it holds no rule result at all."""
    if not profile.rules:
        return NotCollected((), f"{GROUP.remedy} --apply-rules yes")
    said = (item for item in profile.rules if item.message or item.title or item.tables)
    return Advice(tuple(sorted(said, key=_strength)))


def _strength(item: RuleResult) -> tuple[float, int, int]:
    """Sort key: estimated speed-up (none counts below any), scope, severity."""
    speedup = -1.0 if item.estimated_speedup is None else item.estimated_speedup
    severity = _SEVERITIES.index(item.severity) if item.severity in _SEVERITIES else len(_SEVERITIES)
    return -speedup, 0 if item.speedup_scope == "global" else 1, severity


_SECTION_LINK = re.compile(r"@section:[^:@]*:([^@]*)@")
_OTHER_LINK = re.compile(r"@(?:source|shortcut|sass|button):([^:@]*):[^@]*@")
_WEB_LINK = re.compile(r"@url:([^:@]*):([^@]*)@")


def plain_text(message: str, *, addresses: bool = True) -> str:
    """A rule's message as ncu prints it: links to sections become their names, web links keep the address in brackets.

    In the report they are ``@section:Identifier:Name@`` and ``@url:Name:address@``. Without ``addresses`` a web link
    is its words only.
    """
    words = _OTHER_LINK.sub(r"\1", _SECTION_LINK.sub(r"\1", message))
    return _WEB_LINK.sub(r"\1 (\2)" if addresses else r"\1", words)
