"""Launches that no tool would write, or only on other GPUs: the answer stays within bounds, and nothing breaks."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from recorded_data import DATA, EXAMPLES, one_launch
from scale import few

from gemmprof import metrics
from gemmprof.analysis.explanation.engine import explain
from gemmprof.analysis.reading.report import read_report
from gemmprof.model import KernelProfile, MetricValue

Variation = Callable[[KernelProfile], KernelProfile]


@cache
def kernels() -> tuple[KernelProfile, ...]:
    """FP64 constants, a store of two bytes, wgmma, an attention, a small grid, FFMA tiles, atomics, spills."""
    return (
        *read_report(EXAMPLES / "gelu.ncu-rep.xz"),
        *read_report(EXAMPLES / "gemm_cutlass.ncu-rep.xz"),
        *(one_launch(EXAMPLES / "transformer.ncu-rep.xz", at) for at in (7, 9)),
        read_report(DATA / "ladder_simple.ncu-rep.xz")[-1],
        *(one_launch(DATA / f"flaws_{name}.ncu-rep.xz", 0) for name in ("atomics", "spills", "tensor")),
    )


def with_numbers(change: Callable[[str, float], float | None]) -> Variation:
    """Every number changed, or left out where the change is None."""

    def vary(profile: KernelProfile) -> KernelProfile:
        changed: dict[str, MetricValue] = {}
        for name, value in profile.metrics.items():
            new = change(name, value) if isinstance(value, int | float) else value
            if new is not None:
                changed[name] = new
        return replace(profile, metrics=changed)

    return vary


def on(capability: tuple[int, int]) -> Variation:
    without_peaks = with_numbers(lambda name, value: None if "ops_path_tensor" in name else value)

    def vary(profile: KernelProfile) -> KernelProfile:
        device = replace(profile.device, compute_capability=capability)
        return without_peaks(replace(profile, device=device))

    return vary


def half_of_them(seed: int) -> Variation:
    chance = random.Random(seed)
    return with_numbers(lambda _, value: value if chance.random() < 0.5 else None)


VARIATIONS: dict[str, Variation] = {
    "no duration": with_numbers(lambda name, value: 0.0 if name == metrics.DURATION else value),
    "no cycles": with_numbers(lambda name, value: 0.0 if "cycles" in name else value),
    "nothing busy": with_numbers(lambda name, value: 0.0 if "pct_of_peak" in name else value),
    "not a number": with_numbers(lambda _, value: math.nan),
    "endless": with_numbers(lambda _, value: math.inf),
    "below zero": with_numbers(lambda _, value: -abs(value)),
    "no metrics": with_numbers(lambda _, value: None),
    "tiny": with_numbers(lambda _, value: 1e-9 * value),
    "huge": with_numbers(lambda _, value: 1e9 * value),
    "one SM": with_numbers(lambda name, value: 1.0 if name == metrics.SM_COUNT else value),
    "one block": lambda profile: replace(profile, launch=replace(profile.launch, grid=(1, 1, 1))),
    "no instances": lambda profile: replace(profile, instances={}),
    "samples only": lambda profile: replace(
        profile, instances={name: of for name, of in profile.instances.items() if "pcsamp" in name}
    ),
    "no samples": lambda profile: replace(
        profile, instances={name: of for name, of in profile.instances.items() if "pcsamp" not in name}
    ),
    "unknown code": lambda profile: replace(
        profile,
        source=replace(
            profile.source,
            instructions=tuple(replace(one, sass=one.sass[::-1]) for one in profile.source.instructions),
        ),
    ),
    "half the code": lambda profile: replace(
        profile, source=replace(profile.source, instructions=profile.source.instructions[::2])
    ),
    **{
        f"compute capability {one}": on(one)
        for one in ((5, 2), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0), (13, 0))
    },
    **{f"half of the metrics, {seed}": half_of_them(seed) for seed in range(4)},
}


@pytest.mark.parametrize("name", few(VARIATIONS, ["no instances", "below zero", *[*VARIATIONS][::6]]))
def test_the_answer_stays_within_bounds(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a division by zero would go unseen otherwise
        for profile in kernels():
            found = explain(VARIATIONS[name](profile))
            for one in found.findings:
                assert 0 <= one.saves_low <= one.saves <= one.saves_high <= 1, (profile.name, one)
                assert all(math.isfinite(fact.value) for fact in one.evidence), (profile.name, one.evidence)
                assert all(0 < place.share <= 1.0001 for place in one.places)
                assert "nan" not in one.change.split() and "inf" not in one.change.split()
            assert found.limit is None or math.isfinite(found.limit.share)


@pytest.mark.parametrize("workload", ["range", "graph"])
def test_several_launches_at_once_are_not_explained(workload: str) -> None:
    for profile in kernels():
        found = explain(replace(profile, workload=workload))
        assert not found.findings and found.trust[0].startswith(f"This is a {workload} of several launches")
        assert found.at_limit is None
