"""All analyses of one profiled launch, and the one list that says which analyses there are.

An analysis is a module with five names::

    NAME = "speed_of_light"                  # key in KernelAnalysis.results
    TITLE = "Speed of light"                 # heading on the pages
    GROUP = metrics.SPEED_OF_LIGHT           # the metrics that it reads
    RESULT = SpeedOfLight                    # its frozen result dataclass
    def analyse(profile: KernelProfile) -> SpeedOfLight | NotCollected: ...

To add one: write the module and its template, add it to `ANALYSES`; and its metric group, if it reads what no other
analysis does, to `gemmprof.metrics.GROUPS`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gemmprof.analysis import (
    bank_conflicts,
    coalescing,
    divergence,
    instruction_mix,
    launch,
    memory_chart,
    roofline,
    rules,
    scheduler,
    source_view,
    speed_of_light,
    spills,
    warp_states,
)
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.occupancy import profile as occupancy_profile
from gemmprof.analysis.verdict import Verdict, judge
from gemmprof.errors import UsageError
from gemmprof.metrics import MetricGroup
from gemmprof.model import Explanation, KernelProfile, NotCollected
from gemmprof.views import view_of

if TYPE_CHECKING:
    import pandas as pd

Result = TypeVar("Result")


class Analysis(Protocol):
    """What `ANALYSES` holds: a module (or object) with these five names."""

    @property
    def NAME(self) -> str: ...  # noqa: D102
    @property
    def TITLE(self) -> str: ...  # noqa: D102
    @property
    def GROUP(self) -> MetricGroup: ...  # noqa: D102
    @property
    def RESULT(self) -> type[Any]: ...  # noqa: D102
    @property
    def analyse(self) -> Any: ...  # noqa: D102


ANALYSES: tuple[Analysis, ...] = (
    speed_of_light,
    roofline,
    launch,
    instruction_mix,
    occupancy_profile,
    scheduler,
    warp_states,
    memory_chart,
    coalescing,
    bank_conflicts,
    divergence,
    spills,
    source_view,
    rules,
)
"""Every analysis, in the order of the pages."""


@dataclass(frozen=True, slots=True)
class KernelAnalysis:
    """Everything that gemmprof has to say about one profiled launch.

    Attributes:
        profile: the launch as the report holds it.
        results: result of each analysis by its ``NAME``, in the order of `ANALYSES`; `NotCollected` where the
            report lacks the metrics.
        verdict: the kernel in one paragraph.
        explanation: what to change first, where, and what it brings.
        slimmed: True where the profile's instance values were dropped after the analyses, to save memory.
    """

    profile: KernelProfile
    results: Mapping[str, Any] = field(repr=False)
    verdict: Verdict
    explanation: Explanation
    slimmed: bool = False

    def get(self, kind: type[Result]) -> Result | NotCollected:
        """The result of this type, for example ``analysis.get(Roofline)``.

        Raises:
            UsageError: if no analysis yields this type.
        """
        try:
            result: Result | NotCollected = self.results[_names_by_type()[kind]]
        except (KeyError, TypeError):
            raise _no_such_result(kind, self.results) from None
        return result

    def _repr_html_(self) -> str:
        return view_of(self).html(self)

    def to_dataframe(self) -> pd.DataFrame:
        """Every scalar metric of the launch: ``value`` (base units) and ``unit``, indexed by metric name."""
        return view_of(self).frame(self)


@cache
def _names_by_type() -> dict[type[Any], str]:
    return {analysis.RESULT: analysis.NAME for analysis in ANALYSES}


def _no_such_result(kind: object, results: Mapping[str, Any]) -> UsageError:
    if kind in results:
        return UsageError(
            f"a result is asked for by its type, not by its name '{kind}'",
            remedies=[f"analysis.results[{kind!r}]"],
        )
    kinds = ", ".join(sorted(known.__name__ for known in _names_by_type()))
    return UsageError(f"no analysis yields {getattr(kind, '__name__', kind)!r}", found=f"they yield {kinds}")


def no_launch(given: object) -> UsageError:
    """What to say where one launch is expected and something else was given."""
    shown = repr(str(given)) if isinstance(given, (str, os.PathLike)) else '"my.ncu-rep"'
    return UsageError(
        f"one launch (a KernelProfile) is expected, not {type(given).__name__}",
        remedies=[
            f"gemmprof.open({shown}).launches has them analysed",
            f"gemmprof.read_report({shown})[0] is one",
        ],
    )


def analyse(profile: KernelProfile) -> KernelAnalysis:
    """Run every analysis on one launch.

    Raises:
        UsageError: something else was given, a path for example.
    """
    given: object = profile
    if not isinstance(given, KernelProfile):
        raise no_launch(given)
    results = {analysis.NAME: analysis.analyse(profile) for analysis in ANALYSES}
    explanation = explain(profile)
    return KernelAnalysis(profile, results, judge(results, explanation), explanation)
