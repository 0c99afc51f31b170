"""Whatever a report holds, every analysis gives a result or says what to collect; it neither crashes nor invents."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import launch
from recorded_data import ReadRecorded
from scale import inputs

from gemmprof import metrics
from gemmprof.analysis import kernel_analysis
from gemmprof.analysis.kernel_analysis import KernelAnalysis, analyses, result_of
from gemmprof.analysis.sections.instruction_mix import InstructionMix
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.sections.scheduler import Scheduler
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.sections.warp_states import WarpStates
from gemmprof.model import (
    Instances,
    MetricValue,
    NotCollected,
    Source,
)


def check(analysis: KernelAnalysis) -> None:
    """Every result has its type, and absence is always said with a way out."""
    for module in analyses():
        result = analysis.results[module.NAME]
        assert isinstance(result, (result_of(module), NotCollected)), module.NAME
        if isinstance(result, NotCollected):
            assert result.remedy.startswith("--"), module.NAME
    assert analysis.verdict.limited_by
    assert analysis.verdict.paragraph


def test_names_are_unique_and_registered() -> None:
    names = [module.NAME for module in analyses()]
    assert len(set(names)) == len(names)
    assert len({result_of(module) for module in analyses()}) == len(names)
    for module in analyses():
        assert module.GROUP in metrics.GROUPS.values()
        assert module.TITLE


def test_every_recorded_launch_has_all_results(recorded: ReadRecorded, report_name: str) -> None:
    for profile in recorded(report_name):
        check(kernel_analysis.analyse(profile))


def test_nothing_collected() -> None:
    analysis = kernel_analysis.analyse(launch())
    check(analysis)
    for kind in (SpeedOfLight, Roofline, InstructionMix, WarpStates, Scheduler):
        assert isinstance(analysis.get(kind), NotCollected)
    assert analysis.verdict.limited_by == "unknown"


def test_two_metrics_still_give_an_analysis(recorded: ReadRecorded) -> None:
    for profile in recorded("partial_two_metrics"):
        analysis = kernel_analysis.analyse(profile)
        check(analysis)
        light = analysis.get(SpeedOfLight)
        assert isinstance(light, SpeedOfLight)
        assert light.duration_ns == profile.metrics[metrics.DURATION]
        assert light.sm_percent == profile.metrics[metrics.SM_THROUGHPUT]
        assert light.memory_percent is None and light.bottleneck is None
        assert light.missing is not None and metrics.MEMORY_THROUGHPUT in light.missing.metrics
        assert light.missing.remedy == "--section SpeedOfLight"
        assert analysis.verdict.paragraph.startswith(f"Compute reaches {light.sm_percent:.1f} % of its peak")


def test_absent_part_is_none_and_named(recorded: ReadRecorded) -> None:
    profile = recorded("ladder_simple")[0]
    kept = {name: value for name, value in profile.metrics.items() if name != metrics.L2_THROUGHPUT}
    light = kernel_analysis.analyse(replace(profile, metrics=kept)).get(SpeedOfLight)
    assert isinstance(light, SpeedOfLight)
    assert light.l2_percent is None
    assert light.missing is not None and light.missing.metrics == (metrics.L2_THROUGHPUT,)


def test_complete_reports_miss_nothing(recorded: ReadRecorded) -> None:
    analysis = kernel_analysis.analyse(recorded("ladder_simple")[0])
    for kind in (SpeedOfLight, Roofline, InstructionMix, WarpStates, Scheduler):
        result: Any = analysis.get(kind)
        assert result.missing is None, kind


def test_required_metrics_are_named(recorded: ReadRecorded) -> None:
    profile = recorded("ladder_simple")[2]
    name = metrics.EXECUTED_PER_OPCODE
    kept = {key: value for key, value in profile.metrics.items() if key != name}
    counted = {key: value for key, value in profile.instances.items() if key != name}
    result = kernel_analysis.analyse(replace(profile, metrics=kept, instances=counted)).get(InstructionMix)
    assert isinstance(result, NotCollected)
    assert result.metrics == (name,)


ODD_VALUES: list[MetricValue] = [
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -1.0,
    1e300,
    0,
    -(2**63),
    "",
    "N/A",
    "a,b,,c",
]
OUR_METRICS = sorted(
    {name for group in metrics.GROUPS.values() for name in (*group.required, *group.expected)}
)


@settings(
    max_examples=inputs(20, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32))
def test_any_part_of_a_report(recorded: ReadRecorded, seed: int) -> None:
    """Random parts of real launches, some of their values replaced by what a damaged report may hold."""
    choice = random.Random(seed)
    profile = choice.choice([*recorded("ladder_simple"), *recorded("flaws_tensor")])
    share = choice.choice([0.02, 0.3, 0.9, 1.0])
    kept = {name: value for name, value in profile.metrics.items() if choice.random() < share}
    counted = {name: value for name, value in profile.instances.items() if choice.random() < share}
    for name in choice.sample(OUR_METRICS, 6):
        kept[name] = choice.choice(ODD_VALUES)
    for name in choice.sample(sorted(counted), min(2, len(counted))):
        odd = choice.choice(ODD_VALUES)
        counted[name] = Instances(counted[name].keys, tuple(odd for _ in counted[name].values))
    capability = choice.choice([(7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 1), (0, 0)])
    part = replace(
        profile,
        metrics=kept,
        instances=counted,
        device=replace(profile.device, compute_capability=capability),
        launch=replace(profile.launch, waves_per_sm=choice.choice([None, 0.0, 0.5, 7.0])),
        source=Source(),
    )
    check(kernel_analysis.analyse(part))
