"""The verdicts at the head of a report that was rendered with a baseline: what became slower or faster, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gemmprof.analysis.comparison.outcome import Compared, Outcome
from gemmprof.reports.pages.contents import KernelPage
from gemmprof.reports.verdicts import sentences

# Class of the mark of each verdict.
CHIPS = {"slower": "bad", "gone": "bad", "faster": "good", "unclear": "warn", "new": "", "same": ""}

Row = tuple[Compared, KernelPage | None]  # one kernel, whose texts are untrusted, and its page if it has one


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the section shows: the rows that a reader should look at, and those that are SAME."""

    outcome: Outcome
    rows: tuple[Row, ...]
    same: tuple[Row, ...]
    sentences = sentences
    chips = CHIPS


def verdicts(outcome: Outcome, pages: Iterable[KernelPage]) -> Verdicts:
    """The section's content, the worst first."""
    found: dict[tuple[str, ...], KernelPage] = {}  # by `KernelRecord.key`
    for page in pages:
        found.setdefault(page.analysis.profile.family, page)
        if page.record is not None and page.problem is not None:
            found["stage", str(page.record.stage.number), page.problem.key] = page

    def row(kernel: Compared) -> Row:
        after = kernel.match.after
        return kernel, None if after is None else found.get(after.key)

    rows = [row(kernel) for kernel in outcome.kernels]
    return Verdicts(
        outcome,
        tuple(one for one in rows if one[0].verdict != "same"),
        tuple(one for one in rows if one[0].verdict == "same"),
    )
