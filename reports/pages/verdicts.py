"""The verdicts at the head of a report that was rendered with a baseline: what became slower or faster, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gemmprof.analysis.comparison.outcome import Compared, Outcome
from gemmprof.reports.pages.contents import KernelPage
from gemmprof.reports.verdicts import sentences

# Class of the mark of each verdict.
CHIPS = {"slower": "bad", "gone": "bad", "faster": "good", "unclear": "warn", "new": "", "same": ""}


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """One kernel; texts are untrusted.

    Attributes:
        verdict: as a reader sees it; ``chip`` is the class of its mark.
        label: name of the kernel, ``page`` its page if it has one.
        before, after: times in seconds.
        change, low, high: after/before - 1, None without times; ``cycles`` the same of the elapsed cycles.
        changed: kinds of reasons.
        why: reasons and remarks, a sentence each.
    """

    verdict: str
    chip: str
    label: str
    name: str
    page: KernelPage | None
    before: float | None
    after: float | None
    change: float | None
    cycles: float | None
    low: float | None
    high: float | None
    changed: str
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the section shows: the rows that a reader should look at, and those that are SAME."""

    before: str
    tally: str
    notes: tuple[str, ...]
    rows: tuple[VerdictRow, ...]
    same: tuple[VerdictRow, ...]


def verdicts(outcome: Outcome, pages: Iterable[KernelPage]) -> Verdicts:
    """The section's content, the worst first."""
    found: dict[tuple[str, str], KernelPage] = {}
    for page in pages:
        profile = page.analysis.profile
        found.setdefault((profile.name, "x".join(map(str, profile.launch.grid))), page)
        found.setdefault((profile.name, ""), page)  # for a grid without a page of its own
    rows = [_row(kernel, found) for kernel in sentences.ordered(outcome)]
    return Verdicts(
        outcome.before,
        sentences.tally(outcome),
        outcome.notes,
        tuple(row for row in rows if row.verdict != sentences.VERDICTS["same"]),
        tuple(row for row in rows if row.verdict == sentences.VERDICTS["same"]),
    )


def _row(kernel: Compared, pages: dict[tuple[str, str], KernelPage]) -> VerdictRow:
    after, judgement = kernel.match.after, kernel.judgement
    return VerdictRow(
        verdict=sentences.VERDICTS[kernel.verdict],
        chip=CHIPS[kernel.verdict],
        label=kernel.match.label,
        name=kernel.record.name,
        page=None
        if after is None
        else pages.get((after.name, after.grid_text)) or pages.get((after.name, "")),
        before=kernel.seconds[0],
        after=kernel.seconds[1],
        change=None if judgement is None else judgement.change,
        cycles=kernel.cycles,
        low=None if judgement is None else judgement.low,
        high=None if judgement is None else judgement.high,
        changed=", ".join(kernel.changed),
        why=tuple(sentences.why(kernel)),
    )
