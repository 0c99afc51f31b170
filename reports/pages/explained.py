"""The explanation of every launch that has a page: what to change first there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from gemmprof.reports.pages.contents import Plan
from gemmprof.reports.pages.workers import ordered

if TYPE_CHECKING:
    from gemmprof.analysis.session import Session


def explain_all(sessions: Iterable[Session], *, processes: int) -> None:
    """Explain every launch that is not yet, several at the same time (see `workers.ordered`)."""
    waiting = [kernel for session in sessions for kernel in session.kernels if not kernel.is_explained]
    made = ordered(lambda place: waiting[place].explanation, len(waiting), processes=processes)
    for kernel, found in zip(waiting, made, strict=True):
        kernel.take_explanation(found)


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
