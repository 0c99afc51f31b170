"""The explanation of every launch that has a page: what to change first there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gemmprof.reports.pages.contents import Plan
from gemmprof.reports.pages.workers import WORTH_IT_FROM, ordered

if TYPE_CHECKING:
    from gemmprof.analysis.kernel_analysis import KernelAnalysis
    from gemmprof.analysis.session import Session

TOGETHER = 4  # most launches of one kernel that one process explains in a row


def explain_all(sessions: Iterable[Session], *, processes: int) -> None:
    """Explain every launch that is not yet, several at the same time (see `workers.ordered`)."""
    waiting = [kernel for session in sessions for kernel in session.kernels if not kernel.is_explained]
    groups = _of_one_code(waiting)
    made = ordered(
        lambda place: [kernel.explanation for kernel in groups[place]], len(groups), processes=processes
    )
    for group, found in zip(groups, made, strict=True):
        for kernel, explanation in zip(group, found, strict=True):
            kernel.take_explanation(explanation)


def _of_one_code(kernels: Sequence[KernelAnalysis]) -> list[list[KernelAnalysis]]:
    """Launches of one kernel side by side: what depends on its code alone is then worked out by one process."""
    most = max(1, min(TOGETHER, len(kernels) // WORTH_IT_FROM))
    groups: dict[str, list[list[KernelAnalysis]]] = {}
    for kernel in kernels:
        lots = groups.setdefault(kernel.profile.name, [[]])
        if len(lots[-1]) == most:
            lots.append([])
        lots[-1].append(kernel)
    return [lot for lots in groups.values() for lot in lots]


def explained(pages: Plan) -> Plan:
    """The same plan with every page's launch explained."""
    by_launch = {
        index: replace(page, explanation=page.analysis.explanation) for index, page in pages.by_launch.items()
    }
    by_key = {page.key: page for page in by_launch.values()}
    return replace(
        pages,
        pages=tuple(by_launch.values()),
        by_launch=by_launch,
        stand_ins={index: by_key[page.key] for index, page in pages.stand_ins.items()},
    )
