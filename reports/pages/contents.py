"""Which pages a report has: one a kernel, with its stage, its neighbours and what it is compared with.

Each stage of a run has a page and so has the representative of each family, up to `PAGE_LIMIT` pages; the index lists
every family and every launch.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gemmprof.analysis.inputs import names
from gemmprof.analysis.inputs.families import Family, families
from gemmprof.analysis.inputs.selection import Choice, one_kernel
from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.session import Session
from gemmprof.model import Finding, Problem, StageRecord, StageResult, Timing

PAGE_LIMIT = 128  # most kernel pages of one report unless all are asked for


@dataclass(frozen=True, slots=True)
class KernelPage:
    """One kernel page."""

    key: str  # safe in file names and fragments, unique in the report
    analysis: KernelAnalysis  # the launch and everything known of it
    family: Family | None = None  # the launches that it is one of; None outside a session
    record: StageRecord | None = None  # the stage where the launch belongs to a run
    result: StageResult | None = None  # the stage's
    of_yardstick: float | None = None  # speed as a share of the yardstick's (`Run.of_yardstick`)

    @property
    def title(self) -> str:
        """Name for people: the stage's, else the kernel's (untrusted text)."""
        if self.record is not None:
            return self.record.stage.title
        return names.label(self.analysis.profile.name) if self.family is None else self.family.label

    @property
    def label(self) -> str:
        """Short name for lists and figures: ``5 2D block tiling``."""
        return self.title if self.record is None else f"{self.record.stage.number} {self.title}"

    @property
    def problem(self) -> Problem | None:
        """The matrix product, where it is known."""
        return None if self.result is None else self.result.problem

    @property
    def timing(self) -> Timing | None:
        """Time outside the profiler, where it was measured."""
        return None if self.result is None else self.result.timing

    @property
    def tflops(self) -> float | None:
        """TFLOP/s at the median time outside the profiler."""
        return None if self.timing is None or self.problem is None else self.timing.tflops(self.problem)

    @property
    def worst(self) -> Finding | None:
        """The finding that saves most, None without one."""
        losses = self.analysis.explanation.losses
        return losses[0][0] if losses else None

    @property
    def is_yardstick(self) -> bool:
        """True for the yardstick itself."""
        return self.record is not None and self.record.stage.yardstick


@dataclass(frozen=True, slots=True)
class Plan:
    """The pages of one report, and which launches of the session have one."""

    pages: tuple[KernelPage, ...]
    by_launch: dict[int, KernelPage]  # page by position of the launch in ``session.kernels``
    left_out: int  # launches without a page of their own
    # the launches that belong to no stage, grouped; those with the most time first
    families: tuple[Family, ...] = ()


def plan(session: Session, *, every: bool = False) -> Plan:
    """Choose and name the pages of a session (``every``: a page for each launch, however many)."""
    run = session.run
    owners: dict[int, StageResult] = {}  # the stage result that each launch belongs to, by position
    for result in run.results if run is not None else ():
        if (own := session.kernel_for(result)) is not None:
            owners[next(at for at, one in enumerate(session.kernels) if one is own)] = result
    # Launches of a run by problem (largest first) and stage, others after them as they stand in the report.
    of_run = sorted(owners, key=lambda index: (-owners[index].problem.flops, owners[index].stage))
    order = list(dict.fromkeys([*of_run, *range(len(session.kernels))]))
    profiles = [kernel.profile for kernel in session.kernels]
    found = families(profiles, session.census, sorted(set(order) - owners.keys()))
    of = {member: family for family in session.by_time for member in family.members}
    chosen = set(order)
    if not every:
        chosen = {*owners, *(family.representative for family in found[: max(0, PAGE_LIMIT - len(owners))])}
    keys: set[str] = set()
    by_launch: dict[int, KernelPage] = {}
    for index in order:
        if index not in chosen:
            continue
        page = KernelPage("", session.kernels[index], of[index])
        base = f"{index:03d}-{_slug(page.analysis.profile.function_name) or 'kernel'}"
        if run is not None and index in owners:
            result = owners[index]
            record, share = run.record_of(result), run.of_yardstick(result)
            page = replace(page, record=record, result=result, of_yardstick=share)
            base = f"{record.stage.number:02d}-{_slug(record.stage.name)}-{result.problem.key}"
        # Of letters, digits and dashes, and no other page's.
        names = (f"{base}-{number}" if number > 1 else base for number in itertools.count(1))
        key = next(name for name in names if name not in keys)
        keys.add(key)
        by_launch[index] = replace(page, key=key)
    return Plan(tuple(by_launch.values()), by_launch, len(order) - len(by_launch), found)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:48].strip("-")


def neighbours(pages: Sequence[KernelPage], page: KernelPage) -> tuple[KernelPage | None, KernelPage | None]:
    """The pages before and after this one (of the same problem, where there is one)."""
    same = [other for other in pages if other.problem == page.problem]
    place = same.index(page)
    return (same[place - 1] if place else None), (same[place + 1] if place + 1 < len(same) else None)


def stage_before(pages: Sequence[KernelPage], page: KernelPage) -> KernelPage | None:
    """The stage of the ladder below this one on the same problem; None for the first and for the yardstick."""
    if page.record is None or page.is_yardstick:
        return None
    beside = (other for other in pages if not other.is_yardstick and other.problem == page.problem)
    rungs = {other.record.stage.number: other for other in beside if other.record is not None}
    below = [number for number in rungs if number < page.record.stage.number]
    return rungs[max(below)] if below else None


def choose(pages: Sequence[KernelPage], name: str) -> KernelPage:
    """The page that a user means, as `inputs.selection.one_kernel` reads it; UsageError if none or several match."""
    candidates = []
    for page in pages:
        profile = page.analysis.profile
        number = None if page.family is None else page.family.number
        candidate = Choice(page.label, profile.name, (profile.index,), family=number)
        if page.record is not None:
            stage = page.record.stage
            candidate = replace(candidate, number=stage.number, stage=stage.name, problem=page.problem)
            candidate = replace(candidate, ladder=stage.ladder)
        candidates.append(candidate)
    return pages[one_kernel(name, candidates, "this report")]


def twin(pages: Sequence[KernelPage], page: KernelPage) -> KernelPage | None:
    """The page of another report that shows the same stage on the same problem, else the same kernel.

    Of several launches of a kernel the one with the same grid and block, else the first.
    """
    alike: KernelPage | None = None
    for other in pages:
        if page.record is not None and other.record is not None:
            if (page.record.stage.number, page.problem) == (other.record.stage.number, other.problem):
                return other
        elif page.analysis.profile.name == other.analysis.profile.name:
            launches = (page.analysis.profile.launch, other.analysis.profile.launch)
            if len({(launch.grid, launch.block) for launch in launches}) == 1:
                return other
            alike = alike or other
    return alike
