"""The pytest plugin: a fixture ``ncu`` that profiles a program or a function and asserts on what came of it.

    def test_softmax(ncu):
        report = ncu.profile(["./softmax", "4096"])          # or a function of this file without arguments
        kernel = report.kernel("softmax")
        assert kernel.figure("registers") <= 64
        report.check("local_memory > 0")                     # fails where the condition is met, and shows the figures
        report.check_against("main", "time > +3%")           # a baseline of `gemmprof baseline`

Without a GPU or ncu such tests are skipped; ``--ncu-required`` makes that a failure. ``ncu.open(path)`` reads a report
that is there already and needs neither. ``pytest --ncu-save-baselines`` saves what ``check_against`` compares with.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gemmprof.base.errors import DeviceError, ProfilerError, UsageError
from gemmprof.base.printable import log_text, one_line
from gemmprof.base.regex import regex

if TYPE_CHECKING:
    from gemmprof.analysis.comparison.outcome import Outcome
    from gemmprof.analysis.comparison.records import KernelRecord
    from gemmprof.analysis.comparison.sides import Side

LAUNCHES = 200  # launches that are profiled unless a test asks for more
_RUNNER = (
    "import importlib.util, sys; "
    "spec = importlib.util.spec_from_file_location('profiled', sys.argv[1]); "
    "module = importlib.util.module_from_spec(spec); sys.modules['profiled'] = module; "
    "spec.loader.exec_module(module); getattr(module, sys.argv[2])()"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's options."""
    group = parser.getgroup("gemmprof", "profiling with Nsight Compute")
    fails = "tests that cannot profile fail instead of being skipped"
    group.addoption("--ncu-required", action="store_true", help=fails)
    where = "folder of baselines (default: .gemmprof/baselines)"
    group.addoption("--ncu-baselines", metavar="DIR", default=None, help=where)
    saves = "save what check_against would compare with, and pass"
    group.addoption("--ncu-save-baselines", action="store_true", help=saves)


@pytest.fixture
def ncu(request: pytest.FixtureRequest, tmp_path: Path) -> Profiler:
    """Profiles programs and functions, opens reports."""
    return Profiler(request.config, tmp_path)


class Profiler:
    """What the fixture ``ncu`` is."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self._config, self._folder, self._count = config, folder, 0

    def profile(
        self,
        what: Sequence[str] | Callable[[], object],
        *,
        metric_set: str = "lean",
        metrics: Sequence[str] = (),
        kernel: str | None = None,
        launches: int = LAUNCHES,
        repeat: int = 1,
        clock_control: str = "none",
    ) -> Profile:
        """Run a program, or a function at the top of a test file, under ncu.

        Args:
            what: the command with its arguments, or a function without arguments that another process can import.
            metric_set: ``lean`` (what gemmprof reads), or ``basic``, ``detailed``, ``full``, ``roofline`` of ncu's.
            metrics: more of ncu's metrics.
            kernel: regular expression on the kernel's function name.
            launches: at most so many.
            repeat: so many processes: changes below 2 % want more than one.
            clock_control: ncu's; ``base`` locks the clocks.
        """
        __tracebackhide__ = True
        from gemmprof.profiler.programs import ProgramProfiler

        self._count += 1
        folder = self._folder / f"ncu-{self._count}"
        folder.mkdir()
        profiler = ProgramProfiler(
            program=tuple(what) if not callable(what) else _program(what),
            folder=folder,
            metric_set=metric_set,
            extra_metrics=tuple(metrics),
            clock_control=clock_control,
        )
        filters = ["--launch-count", str(launches)]
        if kernel is not None:
            filters += ["--kernel-name", f"regex:{kernel}"]
        paths = []
        try:
            for number in range(repeat):
                collected = profiler.profile(filters, stem=f"profile-{number + 1}")
                if collected.report is not None:
                    paths.append(str(collected.report))
        except (DeviceError, ProfilerError) as error:
            if self._config.getoption("--ncu-required"):
                pytest.fail(f"ncu could not profile: {error}", pytrace=False)
            pytest.skip(f"ncu cannot profile here: {error.message}")
        return self.open(*paths)

    def open(self, *paths: str | os.PathLike[str]) -> Profile:
        """Read reports or runs that are there already; several are repetitions of one another."""
        from gemmprof.analysis.comparison.sides import load_side

        return Profile(load_side(paths), self._config)


def _program(function: Callable[[], object]) -> tuple[str, ...]:
    """A command that runs a function in a process of its own."""
    name = getattr(function, "__qualname__", "")
    if not name.isidentifier():
        fix = "give a function at the top of the test file, or the command of a program"
        raise UsageError(f"{name or function!r} cannot be run in another process", fix)
    return (sys.executable, "-c", _RUNNER, inspect.getfile(function), name)


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One kernel of a report, all its launches together."""

    record: KernelRecord

    @property
    def name(self) -> str:
        """Full demangled name."""
        return self.record.name

    @property
    def seconds(self) -> float:
        """Median time, as ncu measured it."""
        value = self.record.seconds
        if value is None:
            raise UsageError(f"{self.record.title}: no time was collected")
        return value

    @property
    def launches(self) -> int:
        """How many launches there are."""
        return self.record.launches

    @property
    def findings(self) -> frozenset[str]:
        """ncu's rules that found something, and the causes that `explain` tells."""
        from gemmprof.analysis.comparison.reasons import causes_of

        return frozenset(self.record.findings) | (causes_of(self.record, told=True) or frozenset())

    def figure(self, name: str) -> float:
        """A figure of ``gemmprof diff --details`` (``registers``, ``dram_read``) or a metric of ncu's.

        Raises:
            UsageError: if it was not collected.
        """
        from gemmprof.analysis.comparison.gate import figure

        value = figure(self.record, name)
        if value is None:
            known = ", ".join(sorted(self.record.measures.values))
            raise UsageError(f"{self.record.title}: {name} was not collected", found=f"there are {known}")
        return value.middle


class Profile:
    """What was profiled: its kernels, and the checks on all of them."""

    def __init__(self, side: Side, config: pytest.Config | None = None) -> None:
        self.side, self._config = side, config

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """In the order of their first launch."""
        return tuple(Kernel(record) for record in self.side.kernels)

    def kernel(self, pattern: str = "") -> Kernel:
        """The one kernel in whose name this expression is found, or in what it is called beside others (with its grid).

        Raises:
            UsageError: if there is none, or several.
        """
        __tracebackhide__ = True
        wanted = regex(pattern, ignore_case=False)
        found = [one for one in self.kernels if wanted.search(one.name) or wanted.search(one.record.title)]
        if len(found) == 1:
            return found[0]
        raise UsageError(
            f"'{pattern}' is in the name of {len(found)} kernels",
            "give more of the name, or the grid behind it, so that one is left",
            found="; ".join(kernel.record.title for kernel in (found or self.kernels)) or "no kernels",
        )

    def check(self, *conditions: str) -> None:
        """Fail where a kernel meets a condition: ``local_memory > 0``, ``time > 500`` (µs), a finding's name.

        Args:
            conditions: as for ``gemmprof diff --fail-if``.

        Raises:
            AssertionError: with a line for each.
            UsageError: if a condition speaks of a change, or nobody collected its figure.
        """
        __tracebackhide__ = True
        from gemmprof.analysis.comparison.outcome import compare_matches
        from gemmprof.analysis.comparison.sides import Match
        from gemmprof.analysis.inputs.conditions import asks_change, parse_condition

        for text in conditions:
            if asks_change(parse_condition(text, two_sides=True)):
                raise UsageError(f"'{text}' is about a change", "use check_against(baseline, …)")
        kernels = [Match(None, record) for record in self.side.kernels]
        outcome = compare_matches(kernels, after=self.side.title)
        _hold(outcome, conditions, allow_new=True)

    def check_against(
        self,
        before: str | Profile,
        *conditions: str,
        across: Sequence[str] = (),
        allow_new: bool = True,
        allow_gone: bool = False,
    ) -> Outcome:
        """Fail where a kernel changed too much since a baseline or another report.

        Args:
            before: name of a baseline, or what ``ncu.profile`` or ``ncu.open`` returned.
            conditions: default ``time > +3%``.
            across: ``card``, ``clocks``, ``set``: compare although they differ.
            allow_new, allow_gone: let kernels pass that only one side has.

        Returns:
            The comparison, for more assertions.

        Raises:
            AssertionError: with the verdict, the change and the reason of each kernel that fails.
            UsageError: there is no such baseline.
        """
        __tracebackhide__ = True
        from gemmprof.analysis.comparison.baseline import load_baseline, path_of, save_baseline
        from gemmprof.analysis.comparison.outcome import compare

        folder = None if self._config is None else self._config.getoption("--ncu-baselines")
        if isinstance(before, str):
            if self._config is not None and self._config.getoption("--ncu-save-baselines"):
                save_baseline(before, self.side, folder, force=True)
            if not (path := path_of(before, folder)).exists():
                raise UsageError(
                    f"there is no baseline {before} in {path.parent}",
                    "pytest --ncu-save-baselines saves it from what this run profiles or opens",
                    "pytest --ncu-baselines DIR looks in another folder",
                )
            earlier = load_baseline(before, folder)
        else:
            earlier = before.side
        outcome = compare(earlier, self.side, across=tuple(across))
        _hold(outcome, conditions or ("time > +3%",), allow_new=allow_new, allow_gone=allow_gone)
        return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test with ``ncu`` reports holds names of kernels, in any place: nothing of it is a command for CI."""
    report = yield
    if "ncu" in getattr(item, "fixturenames", ()):
        text = report.longreprtext
        if (safe := log_text(text)) != text:
            report.longrepr = safe
        report.sections = [(title, log_text(captured)) for title, captured in report.sections]
    return report


def _hold(
    outcome: Outcome, conditions: Sequence[str], *, allow_new: bool = False, allow_gone: bool = False
) -> None:
    __tracebackhide__ = True
    from gemmprof.analysis.comparison.gate import check
    from gemmprof.reports import sentences

    gate = check(outcome, conditions, allow_new=allow_new, allow_gone=allow_gone)
    if gate.holds:
        return
    # Of one side alone no change is left undecided.
    if not any(kernel.match.before for kernel in outcome.kernels):
        gate = dataclasses.replace(gate, undecided=())
    lines = [sentences.gate_summary(gate, outcome)]
    for item in gate.broken:
        lines.append(one_line(sentences.break_words(item)))
        lines += [f"    {text}" for text in sentences.why(item.kernel)]
    raise AssertionError(log_text("\n".join(lines)))
