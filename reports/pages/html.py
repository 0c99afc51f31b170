"""The HTML report: an index page and a page for each kernel, or all of them in one file.

Every document stands alone: style sheet and scripts inside, figures as SVG, no request to anywhere, and a
Content-Security-Policy that lets only these scripts and styles act.
"""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from markupsafe import Markup

from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.reading.report import few_collections
from gemmprof.analysis.session import Session
from gemmprof.base import system
from gemmprof.base.foreign_files import open_file
from gemmprof.base.output import new_folder, refuse_foreign, write_new
from gemmprof.base.spread import batched, each, grouped, is_elsewhere
from gemmprof.children.line_worker import end_with
from gemmprof.model import CodePlace
from gemmprof.reports import sentences
from gemmprof.reports.agents import markdown
from gemmprof.reports.facts import nothing_found, run_facts, tiles, whose
from gemmprof.reports.pages.contents import KernelPage, Plan, choose, neighbours, plan, stage_before, twin
from gemmprof.reports.pages.environment import document, filled
from gemmprof.reports.pages.ladder_page import Overview
from gemmprof.reports.pages.sections import sections
from gemmprof.reports.words import Explained

if TYPE_CHECKING:
    from gemmprof.analysis.comparison.outcome import Outcome

INDEX = "index"
# How a page begins that gemmprof wrote and may replace: templates/document.html.
_OUR_HEAD = re.compile(
    rb'<!doctype html>\s*<html lang="en">\s*<head>\s*<meta charset="utf-8">\s*'
    rb'<meta http-equiv="Content-Security-Policy" content="[^"]*">\s*<meta name="generator" content="gemmprof">'
)


@dataclass(frozen=True, slots=True)
class Report:
    """What all pages of one report share, and where links to them go: to files, or to fragments of a single one."""

    session: Session
    plan: Plan
    single_file: bool = False
    baseline: KernelPage | None = None  # the kernel that all are compared with; None: the stage before
    other: Plan | None = None  # pages of another session, to compare each kernel with its twin there
    outcome: Outcome | None = None  # the comparison with a baseline that the index leads with
    earlier: Session | None = None  # the other session

    @property
    def title(self) -> str:
        """Heading of the index (untrusted text)."""
        run = self.session.run
        return self.session.title if run is None else f"GEMM ladder on {run.info.device}"

    def to(self, page: KernelPage | None) -> str:
        """Address of a kernel page, or of the index for None."""
        key = page.key if page is not None else INDEX
        return f"#{key}" if self.single_file else f"{key}.html"

    def prefix(self, page: KernelPage | None) -> str:
        """What ids of this page begin with, so that they are unique in their document."""
        return f"{page.key if page is not None else INDEX}-" if self.single_file else ""

    def before(self, page: KernelPage) -> KernelPage | None:
        """What this page is compared with."""
        if self.other is not None:
            return twin(self.other.pages, page)
        ladders = [one and one.record and one.record.stage.ladder for one in (page, self.baseline)]
        if self.baseline is not None and ladders[0] == ladders[1]:
            wanted = self.baseline.label, page.problem
            chosen = next((p for p in self.plan.pages if (p.label, p.problem) == wanted), None)
            return None if page is chosen else chosen or self.baseline
        return stage_before(self.plan.pages, page)


def render(
    session: Session,
    # for ``index.html`` and the kernel pages; with ``single_file`` the file to write if its name ends in ``.html``
    directory: str | Path,
    *,
    single_file: bool = False,
    # what each kernel is compared with: another session (the same stage or kernel there), or a stage number, stage name
    # or part of a kernel name in this session; None for the stage before
    baseline: Session | str | None = None,
    every: bool = False,  # a page for each launch, also in a report of hundreds
    processes: int = 1,  # how many may render pages at the same time (see `ordered`)
    outcome: Outcome
    | None = None,  # a comparison of the session with an earlier one, for the head of the index
) -> Path:
    """Write the report of a session, in a folder or one file; returns the file to open; UsageError if ``baseline``
    names no kernel of the session.
    """
    with session_set_aside():
        other = None if baseline is None or isinstance(baseline, str) else baseline
        explain_all([session] if other is None else [session, other], processes=processes)
        pages = plan(session, every=every)
        chosen = choose(pages.pages, baseline) if isinstance(baseline, str) else None
        before = plan(other, every=True) if other is not None else None
        report = Report(session, pages, single_file, chosen, before, outcome, other)
        target = Path(directory)
        if single_file:
            path = target if target.suffix == ".html" else target / f"{INDEX}.html"
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not is_our_page(path):
                refuse_foreign([path])
            return write_new(path, document(report.title, list(map(Markup, _texts(report, processes)))))
        # The index takes as long as several kernel pages, so it comes first.
        files = [target / f"{key}.html" for key in (INDEX, *(page.key for page in pages.pages))]
        refuse_foreign([path for path in files if os.path.lexists(path) and not is_our_page(path)])
        with (
            new_folder(target, is_ours=is_our_page) as staging,
            closing(_texts(report, processes)) as texts,
        ):
            for path, text in zip(files, texts, strict=True):
                (staging / path.name).write_text(text, encoding="utf-8")
        return files[0]


def _texts(report: Report, processes: int) -> Generator[str, None, None]:
    """The index and each kernel's page, or what a single file has of it, in order: on a cluster, else as `ordered`."""
    pages = report.plan.pages
    if is_elsewhere():
        yield from (made() for made in each(_text, ((place,) for place in range(len(pages) + 1)), (report,)))
        return
    # Here, before the others: the page that is made soonest, of the kernel with the fewest instructions.
    lengths = [len(page.analysis.profile.source.instructions) for page in pages]
    place = 1 + lengths.index(min(lengths)) if lengths else None
    yield from ordered(partial(_text, report), len(pages) + 1, processes=processes, here=place)


def _text(report: Report, place: int) -> str:
    page = report.plan.pages[place - 1] if place else None
    article = index_article(report) if page is None else kernel_article(report, page)
    title = report.title if page is None else f"{page.label} – {report.title}"
    return str(article) if report.single_file else document(title, [article])


def is_our_page(file: Path) -> bool:
    """Whether gemmprof wrote this file and may replace or remove it.

    Told by how the file begins: a page of somebody else's that quotes the mark differs there. A link is nobody's.
    """
    if file.suffix != ".html" or file.is_symlink() or not file.is_file():
        return False
    with open_file(file) as stream:
        return _OUR_HEAD.match(stream.read(8192)) is not None


def index_article(report: Report) -> Markup:
    """The page of a run, or the list of the kernels where there is no run."""
    prefix = report.prefix(None)
    view = Overview(report.session, report.plan, prefix, report.earlier)
    contents = {} if report.outcome is None else {"verdicts": "Verdicts"}
    contents |= {"summary": "In short"} if len(view.groups) > 1 else {}
    contents |= {f"ladder-{group.problem.key}": f"Ladder at {group.problem.label}" for group in view.groups}
    for sizes in view.sizes:
        which = f", {sizes.types or sizes.ladder}" if len(view.sizes) > 1 else ""
        contents[f"over-size-{sizes.ladder}"] = f"Over size{which}"
    contents |= {"launches": "Other launches"} if view.launches else {}
    contents["how"] = "How measured"
    found: dict[tuple[str, ...], KernelPage] = {}  # by `KernelRecord.key`
    for page in report.plan.pages:
        found.setdefault(page.analysis.profile.family, page)
        if page.record is not None and page.problem is not None:
            found["stage", str(page.record.stage.number), page.problem.key] = page
    # Every kernel of a comparison, the worst first, whose texts are untrusted, and its page if it has one.
    compared = () if report.outcome is None else report.outcome.kernels
    verdicts = [(one, one.match.after and found.get(one.match.after.key)) for one in compared]
    return filled(
        "run.html" if report.session.run is not None else "kernels.html",
        view=view,
        session=report.session,
        plan=report.plan,
        links=report,
        row_link=lambda row: report.to(row.page) if row.page else "",
        nowhere=lambda place: "",
        p=prefix,
        page_key=INDEX,
        title=report.title,
        toc=[(prefix + name, title) for name, title in contents.items()],
        nothing_found=lambda: nothing_found(
            report.session, [row.family for row in view.families], view.too_little
        ),
        outcome=report.outcome,
        verdicts=verdicts,
        chips=CHIPS,
        sentences=sentences,
        run_facts=run_facts(report.session.run) if report.session.run is not None else [],
    )


# Class of the mark of each verdict.
CHIPS = {"slower": "bad", "gone": "bad", "faster": "good", "unclear": "warn", "new": "", "same": ""}


def kernel_article(report: Report, page: KernelPage) -> Markup:
    """The page of one kernel."""
    previous, following = neighbours(report.plan.pages, page)
    before = report.before(page)
    prefix = report.prefix(page)
    shown, absent = sections(page, before, prefix, other_report=report.other is not None)
    listings = (section.extra for section in shown if section.name == "source_view")
    anchors: Mapping[Any, str] = next((listing.anchors for listing in listings), {})

    def at(place: CodePlace) -> str:
        # The id of the row that shows a finding's place, '' where no listing of the page does.
        on_line = place.file is not None and place.line is not None
        anchor = anchors.get((place.file, place.line) if on_line else place.address)
        return f"{prefix}{anchor}" if anchor else ""

    assert page.family is not None  # a session's pages have families
    return filled(
        "kernel.html",
        page=page,
        title=f"{page.label} – {report.title}",
        profile=page.analysis.profile,
        verdict=page.analysis.verdict,
        sections=shown,
        absent=absent,
        explanation=page.analysis.explanation,
        at=at,
        markdown=markdown([Explained(page.analysis.explanation, page.family)]),
        toc=[(f"{prefix}{section.name}", section.short) for section in shown],
        tiles=tiles(page),
        whose=whose(page.analysis.profile),
        previous=previous,
        following=following,
        session=report.session,
        links=report,
        p=prefix,
        page_key=page.key,
    )


TOGETHER = 4  # most launches of one kernel that one process explains in a row


def explain_all(sessions: Iterable[Session], *, processes: int) -> None:
    """Explain every launch that is not yet, several at the same time (see `workers.ordered`)."""
    waiting = [kernel for session in sessions for kernel in session.kernels if not kernel.is_explained]
    groups = _of_one_code(waiting)
    made = ordered(lambda at: [one.explanation for one in groups[at]], len(groups), processes=processes)
    for group, found in zip(groups, made, strict=True):
        for kernel, explanation in zip(group, found, strict=True):
            kernel.take_explanation(explanation)


def _of_one_code(kernels: Sequence[KernelAnalysis]) -> list[list[KernelAnalysis]]:
    """Launches of one kernel side by side: what depends on its code alone is then worked out by one process."""
    most = max(1, min(TOGETHER, len(kernels) // WORTH_IT_FROM))
    groups = grouped((kernel.profile.name, kernel) for kernel in kernels)
    return [list(lot) for group in groups.values() for lot in batched(group, most)]


WORTH_IT_FROM = 8  # fewer pages than this are made faster by one process

Made = TypeVar("Made")

# What a worker runs, a copy of this process.
_make: Callable[[int], Any] | None = None


def ordered(
    make: Callable[[int], Made],
    count: int,
    *,
    processes: int,
    # made by this process before it forks: what that loads and remembers (templates, matplotlib), no worker loads again
    here: int | None = None,
) -> Generator[Made, None, None]:
    """``make(0)``, ``make(1)``, … in order, made by this process or by several.

    Workers are forks, so that they share the session's memory. A process with threads cannot be forked safely, nor can
    any on macOS: then this process does all the work.
    """
    alone = processes < 2 or count < WORTH_IT_FROM or (os.cpu_count() or 1) < 2
    if alone or not system.can_fork():
        yield from map(make, range(count))
        return
    # What pages made by one process need not wait for.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    made_here = {} if here is None else {here: make(here)}
    # Not a Pool: that one is terminated where the reader of this iterator fails, and can hang in it.
    forks = multiprocessing.get_context("fork")
    workers = ProcessPoolExecutor(processes, forks, _left_to_parent, (os.getpid(), make))
    try:
        made = workers.map(_in_worker, [place for place in range(count) if place != here])
        yield from (made_here.pop(place) if place == here else next(made) for place in range(count))
    finally:
        workers.shutdown(wait=True, cancel_futures=True)


def _left_to_parent(parent: int, make: Callable[[int], Any]) -> None:
    """A worker leaves Ctrl-C to its parent, and ends without a word when it is told to or its parent is killed."""
    global _make
    _make = make
    # It holds both ends of the pipe from which it takes its work, so it would wait there for ever.
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def session_set_aside() -> Iterator[None]:
    """Keep the garbage collector off what exists already: a session is a million objects that all stay.

    Walking them again and again takes a third of the rendering, and in a forked worker copies their memory. What
    rendering itself leaves behind is still collected.
    """
    gc.freeze()
    try:
        with few_collections():
            yield
    finally:
        gc.unfreeze()


def _in_worker(index: int) -> Any:
    assert _make is not None
    return _make(index)
