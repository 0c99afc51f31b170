"""The launches of a report as the index lists them: families first, then every launch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gemmprof.analysis.inputs.families import Family, by_gain
from gemmprof.analysis.sections.by_line import base_name
from gemmprof.reports.facts import collected_with, whose
from gemmprof.reports.formatting import nanoseconds, ratio

if TYPE_CHECKING:
    from gemmprof.analysis.kernel_analysis import KernelAnalysis
    from gemmprof.analysis.session import Session
    from gemmprof.reports.pages.contents import KernelPage, Plan


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """One family in the table.

    Attributes:
        family: its launches; names are untrusted text.
        page: the page of its representative, None if it has none.
        reports: names of the files that its launches are from.
        limited_by: what holds the representative back, '' if not known.
    """

    family: Family
    page: KernelPage | None
    reports: tuple[str, ...]
    limited_by: str


def family_rows(session: Session, plan: Plan) -> tuple[FamilyRow, ...]:
    """The families of launches that belong to no stage, in the one order of `analysis.inputs.families`."""
    explained = [family.explained(session.explanation(family.representative)) for family in plan.families]
    return tuple(_row(session, plan, family) for family in by_gain(explained))


def _row(session: Session, plan: Plan, family: Family) -> FamilyRow:
    limit = session.whole(family.representative).verdict.limited_by
    return FamilyRow(
        family=family,
        page=plan.by_launch.get(family.representative),
        reports=report_names(session.kernels[member] for member in family.members),
        limited_by="" if limit == "unknown" else limit,
    )


def report_names(kernels: Iterable[KernelAnalysis]) -> tuple[str, ...]:
    """File names of the reports that these launches are from, each once (untrusted text)."""
    return tuple(dict.fromkeys(base_name(kernel.profile.report) for kernel in kernels))


def session_facts(session: Session, plan: Plan) -> list[tuple[str, str]]:
    """What stands above the families: GPU, clocks, versions, date, and how much of the time has pages."""
    kernels = session.kernels
    if not kernels:
        return []
    facts = [("GPU", ", ".join(dict.fromkeys(kernel.profile.device.name for kernel in kernels)))]
    facts += collected_with(session).items()
    facts.append(("Captured", _captured(session, plan)))
    if several := session.processes:
        named = dict.fromkeys(whose(kernel.profile).removeprefix("process ") for kernel in kernels)
        facts.append(("Processes", f"{len(several)}: {', '.join(filter(None, named))}"))
    return facts


def _captured(session: Session, plan: Plan) -> str:
    total = sum(family.total_ns or 0.0 for family in plan.families)
    text = session.counts
    if not total:
        return text
    shown = sum(family.total_ns or 0.0 for family in plan.families if family.representative in plan.by_launch)
    text += f", {nanoseconds(total)} in all"
    if shown < total:
        text += f"; the families with a page hold {ratio(shown / total)} of it"
    return text
