"""A report as a Python object: launches, families, findings, tables, comparisons and pages."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, SupportsIndex, TypeVar, overload

from gemmprof.analysis.inputs.families import Family
from gemmprof.analysis.inputs.selection import EVERYTHING, Selection, selection
from gemmprof.analysis.kernel_analysis import KernelAnalysis, no_launch
from gemmprof.analysis.session import Session, load_session
from gemmprof.base.amounts import brief, nanoseconds, ratio
from gemmprof.base.errors import GemmprofError, UsageError
from gemmprof.base.printable import one_line
from gemmprof.model import KernelProfile

if TYPE_CHECKING:
    import pandas as pd

    from gemmprof.analysis.comparison.outcome import Outcome
    from gemmprof.model import Explanation, Finding

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class ReportFinding:
    """One finding in one launch.

    Attributes:
        family: the launches that it holds for, of which ``explanation`` is about the longest.
        explanation: all that is known of that launch.
        finding: cause, predicted share of time with its interval, places, evidence, change.
        saves_ns: the predicted saving over all launches of the family, in nanoseconds; None without durations.
    """

    family: Family
    explanation: Explanation
    finding: Finding
    saves_ns: float | None

    def __repr__(self) -> str:
        saves = f"saves {ratio(self.finding.saves, 0)} of its time"
        return brief(self, f"{self.finding.cause} in {self.family.label}", saves, nanoseconds(self.saves_ns))


T = TypeVar("T")


class _Listed(tuple[T, ...]):
    """A tuple of which a part shows itself as the whole does: ``report.findings[:3]``."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> T: ...
    @overload
    def __getitem__(self, key: slice, /) -> Self: ...
    def __getitem__(self, key: SupportsIndex | slice, /) -> T | Self:
        return type(self)(super().__getitem__(key)) if isinstance(key, slice) else super().__getitem__(key)


class Families(_Listed[Family]):
    """Families that show themselves as a table in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from gemmprof.reports.pages.notebook import families_html

        return families_html(self)


class Findings(_Listed[ReportFinding]):
    """Findings that show themselves as a table in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from gemmprof.reports.pages.notebook import findings_html

        return findings_html([(one.family, one.finding, one.saves_ns) for one in self])


@dataclass(frozen=True)
class Report:
    """Reports and runs as loaded by `open`.

    Attributes:
        paths: what was opened.
        session: the same in the words of the analysis.
        selection: which of the launches were asked for.
    """

    paths: tuple[Path, ...]
    session: Session = field(repr=False)
    selection: Selection = field(default=EVERYTHING, repr=False)

    @property
    def launches(self) -> tuple[KernelAnalysis, ...]:
        """Every profiled launch with its analyses, in the order of profiling."""
        return self.session.kernels

    @property
    def failures(self) -> tuple[GemmprofError, ...]:
        """Why some of several files could not be read."""
        return self.session.failures

    @property
    def families(self) -> Families:
        """Launches of one kernel, grid, block, shared memory and NVTX path, the most to gain first."""
        return Families(self.session.families)

    @cached_property
    def explanations(self) -> tuple[Explanation, ...]:
        """What to change first in the longest launch of each family, in the order of the families."""
        return tuple(self.session.explanation(family.representative) for family in self.families)

    @cached_property
    def findings(self) -> Findings:
        """What saves each loss of every family, those that save most time over all its launches first."""
        found = []
        for family, explanation in zip(self.families, self.explanations, strict=True):
            for one, *_ in explanation.losses:
                saves_ns = None if family.total_ns is None else one.saves * family.total_ns
                found.append(ReportFinding(family, explanation, one, saves_ns))
        return Findings(sorted(found, key=lambda one: -(one.saves_ns or 0.0)))

    def explain(self, launch: int = 0) -> Explanation:
        """What to change first in one launch.

        Args:
            launch: its position in `launches`.

        Raises:
            UsageError: there is no such launch.
        """
        _ = self[launch]  # says what is wrong with a position that is none
        return self.session.explanation(launch % len(self))

    def select(
        self,
        kernel: str | None = None,
        *,
        launch: int | str | Iterable[int | str] | None = None,
        nvtx: str | None = None,
        top: int | None = None,
        owner: str | None = None,
    ) -> Report:
        """A report of a part of these launches, by the words of the command line.

        Raises:
            UsageError: a text is no regular expression or position, or nothing matches.
        """
        wanted = replace(selection(kernel, launch, nvtx, top, owner), within=self.selection or None)
        return Report(self.paths, load_session(self.paths, selection=wanted), wanted)

    def diff(self, other: Report | AnyPath, *, across: Iterable[str] = ()) -> Outcome:
        """SAME, FASTER, SLOWER or CAN'T TELL for every kernel from this report to another, with the reasons.

        All launches of one name, grid and block are repetitions, and so are several files opened together. It is what
        ``gemmprof diff`` prints; each kernel knows every quantity (``changes``).

        Args:
            other: the later report, or its path.
            across: ``card``, ``clocks``, ``set``: compare although they differ.

        Raises:
            UsageError: the sides differ in something else than the kernels, and that was not asked for.
        """
        from gemmprof.analysis.comparison.outcome import compare
        from gemmprof.analysis.comparison.sides import load_side

        if not isinstance(other, (Report, str, os.PathLike)):
            raise _no_path(other)
        after = load_side(other.paths, other.selection) if isinstance(other, Report) else load_side([other])
        return compare(load_side(self.paths, self.selection), after, across=tuple(across))

    compare = diff

    def write_html(self, path: AnyPath, *, force: bool = False) -> Path:
        """Write pages: one file if the name ends in ``.html``, else a folder.

        Returns:
            The file to open in a browser.

        Raises:
            UsageError: something is there already and ``force`` is not given.
        """
        from gemmprof.reports.pages.html import render

        target = Path(path)
        if target.exists() and not force and (target.is_file() or any(target.iterdir())):
            raise UsageError(f"{target} exists already", "force=True replaces it", "choose another name")
        return render(self.session, target, single_file=target.suffix == ".html")

    def to_dataframe(self, metrics: str | Iterable[str] = ()) -> pd.DataFrame:
        """One typed row a launch: names, grid, times in nanoseconds, per cent of peaks, occupancy, main stall.

        Args:
            metrics: more columns, by ncu's names in base units; NaN where a launch does not have one. A text is
                one name.
        """
        from gemmprof.reports.pages.notebook import launches_frame

        return launches_frame(self.session, (metrics,) if isinstance(metrics, str) else tuple(metrics))

    def to_markdown(self, *, tokens: int | None = None) -> str:
        """The explanation of each family for an issue or a language model, within about so many tokens."""
        from gemmprof.reports.agents import markdown
        from gemmprof.reports.words import explained

        return markdown(explained(self.session, self.families), budget=tokens)

    def __len__(self) -> int:
        return len(self.launches)

    def __iter__(self) -> Iterator[KernelAnalysis]:
        return iter(self.launches)

    def __getitem__(self, launch: int) -> KernelAnalysis:
        try:
            return self.launches[launch]
        except TypeError:
            what = f"a launch is named by its position, not by {launch!r}"
            raise UsageError(what, f"report.select({launch!r}) finds kernels by name") from None
        except IndexError:
            raise UsageError(f"there is no launch {launch}: the report holds {len(self)}") from None

    def __repr__(self) -> str:
        from gemmprof.reports.facts import headline

        return f"<Report {one_line(headline(self.session))}>"

    def _repr_html_(self) -> str:
        from gemmprof.reports.pages.notebook import session_html

        return session_html(self.session)


def _no_path(given: object) -> UsageError:
    return UsageError(f"a path is expected, not {type(given).__name__}", 'gemmprof.open("my_kernel.ncu-rep")')


def explain(launch: KernelProfile | KernelAnalysis) -> Explanation:
    """What to change first in one launch, as `read_report` or `open` gives it.

    Raises:
        UsageError: something else was given, a path for example.
    """
    from gemmprof.analysis.explanation.engine import explain as explained

    given: object = launch.profile if isinstance(launch, KernelAnalysis) else launch
    if not isinstance(given, KernelProfile):
        raise no_launch(given)
    return explained(given)


def open(  # noqa: A001 (the word that users look for)
    path: AnyPath | Iterable[AnyPath],
    *more: AnyPath,
    kernel: str | None = None,
    launch: int | str | Iterable[int | str] | None = None,
    nvtx: str | None = None,
    top: int | None = None,
    owner: str | None = None,
) -> Report:
    """Read and analyse reports, run directories, folders of them, or a pattern of names.

    Args:
        path, more: what to read; a list of paths works as well.
        kernel: only launches in whose full name this regular expression is found.
        launch: only these positions, from 0: ``3``, ``range(4)``, ``"2-5"``, ``"0,4,7-9"``.
        nvtx: only launches in whose NVTX ranges, joined by ``/``, this regular expression is found.
        top: only launches of the so many kernels that took most time.
        owner: only kernels whose owner this regular expression is found in: ``"cublas|cudnn"``, ``"own"``.

    Raises:
        UsageError: a selection is wrong or matches nothing, or something other than paths was given.
        ReportError, RunError: nothing could be read.
    """
    try:
        given = (path, *more) if isinstance(path, (str, os.PathLike)) else (*path, *more)
        paths = tuple(map(Path, given))
    except TypeError:
        raise _no_path(path) from None
    if "" in given:  # Path("") is this folder
        raise UsageError("an empty name was given", 'gemmprof.open(".") reads what lies in this folder')
    wanted = selection(kernel, launch, nvtx, top, owner)
    return Report(paths, load_session(paths, selection=wanted), wanted)
