"""All analyses of one profiled launch, and the one list that says which analyses there are.

An analysis is a module with four names::

    NAME = "speed_of_light"                  # key in KernelAnalysis.results
    TITLE = "Speed of light"                 # heading on the pages
    GROUP = metrics.SPEED_OF_LIGHT           # the metrics that it reads
    def analyse(profile: KernelProfile) -> SpeedOfLight | NotCollected: ...

To add one: write the module and its template, add it to `_MODULES`; and its metric group, if it reads what no other
analysis does, to `gemmprof.metrics.GROUPS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, get_args, get_type_hints

from gemmprof.base.amounts import brief, nanoseconds
from gemmprof.base.errors import UsageError
from gemmprof.base.views import Shown
from gemmprof.metrics import DURATION, MetricGroup
from gemmprof.model import Explanation, KernelProfile, NotCollected

if TYPE_CHECKING:
    from gemmprof.analysis.sections.verdict import Verdict

Result = TypeVar("Result")


class Analysis(Protocol):
    """What `analyses` holds: a module (or object) with these four names."""

    NAME: str
    TITLE: str
    GROUP: MetricGroup
    analyse: Callable[[KernelProfile], Any]


# In the order of the pages.
_MODULES = (
    *("sections.speed_of_light", "sections.timeline", "sections.roofline", "sections.launch_statistics"),
    *("sections.instruction_mix", "occupancy.of_launch", "sections.scheduler", "sections.warp_states"),
    *("sections.memory_chart", "sections.coalescing", "sections.bank_conflicts", "sections.divergence"),
    *("sections.spills", "sections.source_view", "sections.rules"),
)


@cache
def analyses() -> tuple[Analysis, ...]:
    """Every analysis, in the order of the pages; loaded late, for a list of launches needs none of them."""
    return tuple(cast(Analysis, import_module(f"gemmprof.analysis.{name}")) for name in _MODULES)


class Results(Mapping[str, Any]):
    """The result of each analysis by its ``NAME``, in the order of `analyses`, made when it is first looked at."""

    def __init__(self, profile: KernelProfile, made: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._profile = profile.in_names_of_today()
        self._made: dict[str, Any] = dict(made)

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            analysis = _analyses_by_name()[name]
            known = self._profile.profiled
            self._made[name] = analysis.analyse(self._profile) if known else NotCollected((), "")
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_analyses_by_name())

    def __len__(self) -> int:
        return len(analyses())

    def __contains__(self, name: object) -> bool:
        return name in _analyses_by_name()

    def __repr__(self) -> str:
        return repr(dict(self))


@cache
def _analyses_by_name() -> dict[str, Analysis]:
    return {analysis.NAME: analysis for analysis in analyses()}


@dataclass(frozen=True, slots=True)
class KernelAnalysis(Shown):
    """Everything that gemmprof has to say about one profiled launch; what is not looked at costs nothing."""

    profile: KernelProfile  # the launch as the report holds it
    # of each analysis by its ``NAME``, in the order of `analyses`; `NotCollected` where the report lacks the metrics
    results: Mapping[str, Any] = field(repr=False)
    slimmed: bool = False  # the profile's instance values were dropped after the analyses, to save memory
    _made: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        one, time = self.profile, self.profile.number(DURATION)
        return brief(self, one.function_name or one.name, f"launch {one.index}", nanoseconds(time))

    @property
    def traced(self) -> KernelAnalysis:
        """The same with numbers that know their formulas, for pages; itself where instance values were dropped."""
        if self.slimmed:
            return self
        if "traced" not in self._made:
            from gemmprof.analysis.figure import with_formulas

            # Code is shown by the thousand lines, each column under one formula.
            plain = {"source_view": self.results["source_view"]}
            self._made["traced"] = replace(self, results=Results(with_formulas(self.profile), plain))
        found: KernelAnalysis = self._made["traced"]
        return found

    @property
    def explanation(self) -> Explanation:
        """What to change first, where, and what it brings."""
        if "explanation" not in self._made:
            # Here, because a list of launches, which comes first, would wait for all that explaining needs.
            from gemmprof.analysis.explanation.engine import explain

            self._made["explanation"] = explain(self.profile)
        found: Explanation = self._made["explanation"]
        return found

    @property
    def is_explained(self) -> bool:
        """Whether the explanation is there already."""
        return "explanation" in self._made

    def take_explanation(self, found: Explanation) -> None:
        """Take an explanation that another process made of the same launch."""
        self._made["explanation"] = found

    @property
    def verdict(self) -> Verdict:
        """The kernel in one paragraph."""
        if "verdict" not in self._made:
            from gemmprof.analysis.explanation.trust import NOT_PROFILED
            from gemmprof.analysis.sections.verdict import UNKNOWN, Verdict, judge

            judged = judge(self.results, self.explanation) if self.profile.profiled else None
            self._made["verdict"] = judged or Verdict(UNKNOWN, NOT_PROFILED)
        found: Verdict = self._made["verdict"]
        return found

    def slim(self) -> KernelAnalysis:
        """The same with everything made and without instance values, which take most of the memory."""
        _ = self.verdict
        values = replace(self.profile, instances={})
        return replace(self, profile=values, results=dict(self.results), slimmed=True)

    def get(self, kind: type[Result]) -> Result | NotCollected:
        """The result of this type, for example ``analysis.get(Roofline)``; UsageError if no analysis yields it."""
        try:
            result: Result | NotCollected = self.results[_names_by_type()[kind]]
        except (KeyError, TypeError):
            raise _no_such_result(kind, self.results) from None
        return result

    def field(self, kind: type[Any], *path: str) -> Any:
        """A field of an analysis' result by its path (``Roofline, "main", "percent"``); None where there is none."""
        found: Any = self.get(kind)
        for name in path:
            if found is None or isinstance(found, NotCollected):
                return None
            found = getattr(found, name)
        return found


def result_of(analysis: Analysis) -> type[Any]:
    """The frozen dataclass that an analysis returns where its metrics were collected."""
    declared = get_type_hints(analysis.analyse)["return"]
    found: type[Any] = next(kind for kind in get_args(declared) or (declared,) if kind is not NotCollected)
    return found


@cache
def _names_by_type() -> dict[type[Any], str]:
    return {result_of(analysis): analysis.NAME for analysis in analyses()}


def _no_such_result(kind: object, results: Mapping[str, Any]) -> UsageError:
    if kind in results:
        asked = f"a result is asked for by its type, not by its name '{kind}'"
        return UsageError(asked, f"analysis.results[{kind!r}]")
    kinds = ", ".join(sorted(known.__name__ for known in _names_by_type()))
    return UsageError(f"no analysis yields {getattr(kind, '__name__', kind)!r}", found=f"they yield {kinds}")


def no_launch(given: object) -> UsageError:
    """What to say where one launch is expected and something else was given."""
    shown = repr(str(given)) if isinstance(given, (str, os.PathLike)) else '"my.ncu-rep"'
    fixes = f"gemmprof.open({shown}).launches has them analysed", f"gemmprof.read_report({shown})[0] is one"
    return UsageError(f"one launch (a KernelProfile) is expected, not {type(given).__name__}", *fixes)


def analyse(profile: KernelProfile) -> KernelAnalysis:
    """Every analysis of one launch; UsageError if something else was given, a path for example."""
    given: object = profile
    if not isinstance(given, KernelProfile):
        raise no_launch(given)
    return KernelAnalysis(profile, Results(profile))
