"""What a collection is asked to do: stages, problems, metrics, and whether an older run can be continued with it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.base.errors import UsageError
from gemmprof.gpu.dtypes import ELEMENT_TYPES, FLOAT32
from gemmprof.kernels.catalog import SINGLE, ladder_dtypes
from gemmprof.metrics import LEAN
from gemmprof.model import Ladder, Problem, Stage
from gemmprof.profiler.ncu.command import Collecting
from gemmprof.runs.directory import Run

NCU_SETS = ("basic", "detailed", "full", "roofline")
METRIC_SETS = (LEAN, *NCU_SETS)
CLOCK_CONTROLS = ("none", "base")
_RANGE = re.compile(r"(\d+)\s*-\s*(\d+)")


@dataclass(frozen=True, slots=True)
class Settings(Collecting):
    """One collection: every stage in ``stages`` on every problem in ``problems`` that is of one of its types."""

    stages: tuple[Stage, ...]
    problems: tuple[Problem, ...]
    verify: bool = True  # first compare with a float64 reference; a stage that fails is not timed or profiled
    bench: bool = True  # time against the yardstick
    profile: bool = True  # run Nsight Compute
    seed: int = 0  # seed of the random operands
    time_budget: float = 0.5  # seconds to spend on timing one stage, the yardstick's share included

    def __post_init__(self) -> None:
        if not self.stages:
            raise UsageError("no stage was chosen", "--all-stages, or --stage NUMBER|NAME|FIRST-LAST")
        if not self.problems:
            raise UsageError("no shape was given", "--shape 4096x4096x4096")
        for problem in self.problems:
            if not any(problem.dtype in stage.dtypes for stage in self.stages):
                known = ", ".join(ladder_dtypes())
                fix = f"choose --ladder and --dtype (of {known}) that fit each other"
                raise UsageError(f"no stage that was chosen computes in {problem.dtype}", fix)
            c_types = ELEMENT_TYPES[problem.dtype].c_types
            if problem.c_dtype not in c_types:
                none = f"no stage writes {problem.c_dtype} from {problem.dtype}"
                raise UsageError(none, f"C is {' or '.join(c_types)}")

    @property
    def pairs(self) -> tuple[tuple[Stage, Problem], ...]:
        """Every stage on every problem of its types, problem by problem, in the order of the ladders."""
        return tuple((s, p) for p in self.problems for s in self.stages if p.dtype in s.dtypes)

    @property
    def collection_options(self) -> tuple[str, ...]:
        """The ncu options that choose sections and metrics, ``--metrics`` at most once.

        What is read of tensor cores costs ncu some tenths of a second a launch: only where they may be used, for other
        types than float32 and in kernels of the user's own (TF32).
        """
        foreign = any(stage.source is None and not stage.yardstick for stage in self.stages)
        others = any(problem.dtype != FLOAT32.name for problem in self.problems)
        return self.collection(self._own, tensor=foreign or others)

    @property
    def _own(self) -> list[str]:
        """What the analyses read beyond ncu's largest set."""
        every = (name for group in metrics.GROUPS.values() for name in group.requested)
        return [*every] if self.metric_set == "full" else []

    def recorded_options(self) -> Mapping[str, object]:
        """The settings that a run records so that ``--resume`` can compare them."""
        return {
            "extra_sections": list(self.extra_sections),
            "extra_metrics": list(self.extra_metrics),
            "timeline": self.timeline,
            # The same for both ladders, so that one can be added to the run of the other.
            "collection": list(self.collection(self._own, tensor=False)),
        }


def select_stages(selectors: Sequence[str], ladder: Ladder = SINGLE) -> tuple[Stage, ...]:
    """The stages of a ladder that ``selectors`` name, each once, in the order of the ladder.

    A selector is a number (``3``), a name (``warptiled``), a range of numbers with both ends included (``1-6``), or
    several of these with commas between them. UsageError, naming the stages there are, if one fits none.
    """
    chosen: set[int] = set()
    for word in (word.strip() for selector in selectors for word in selector.split(",")):
        numbers = _numbers_of(word, ladder.stages)
        if not numbers:
            names = [stage.name for stage in ladder.stages]
            close = difflib.get_close_matches(word.lower(), names, n=1)
            remedies = [f"did you mean '{close[0]}'?"] if close else []
            known = ", ".join(f"{stage.number} {stage.name}" for stage in ladder.stages)
            raise UsageError(f"no stage '{word}'", *remedies, f"the ladder {ladder.name} has {known}")
        chosen |= numbers
    return tuple(stage for stage in ladder.stages if stage.number in chosen)


def _numbers_of(word: str, stages: Sequence[Stage]) -> set[int]:
    if word.isdecimal():
        return {stage.number for stage in stages if stage.number == int(word)}
    if ends := _RANGE.fullmatch(word):
        first, last = sorted((int(ends.group(1)), int(ends.group(2))))
        return {stage.number for stage in stages if first <= stage.number <= last}
    return {stage.number for stage in stages if stage.name == word.lower()}


def differences(settings: Settings, run: Run) -> tuple[str, ...]:
    """Why ``run`` cannot be continued with these settings, one sentence each; () if it can.

    Stages, problems and parts (verification, timing, profiling) may grow; what the numbers depend on may not change.
    """
    info = run.info
    same = ("metric_set", "--set"), ("seed", "--seed"), ("clock_control", "--clock-control")
    pairs = ((option, getattr(info, name), getattr(settings, name)) for name, option in same)
    found = [f"{name}: the run has {old!r}, this call {new!r}" for name, old, new in pairs if old != new]
    recorded = info.notes.get("options")
    if isinstance(recorded, Mapping) and not found:
        for name, new in settings.recorded_options().items():
            if name in recorded and recorded[name] != new:
                found.append(f"{name.replace('_', ' ')}: the run has {recorded[name]!r}, this call {new!r}")
    return tuple(found)
