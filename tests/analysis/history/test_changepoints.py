"""Steps are found where they are, and quiet series stay quiet. The figures of docs/history.md, on fewer series."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scale import few

from gemmprof.analysis.history.changes import find_steps

YEAR = 365


def a_year(rng: np.random.Generator, kind: str = "normal") -> np.ndarray:
    noise = rng.normal(0, 0.01, YEAR)
    if kind == "outliers":
        noise[rng.random(YEAR) < 0.01] += 0.15
    if kind == "quantised":
        noise = np.round(noise / 0.01) * 0.01
    return 1000 * np.exp(noise)


@pytest.mark.parametrize("kind", ["normal", "outliers", "quantised"])
def test_a_quiet_year_has_no_step(kind: str) -> None:
    rng = np.random.default_rng(7)
    alarms = sum(bool(find_steps(a_year(rng, kind))) for _ in range(100))
    assert alarms <= 1


@pytest.mark.parametrize(
    "kind",
    few(
        ["drift", "season", "drift and season", "neighbours alike"], ["drift and season", "neighbours alike"]
    ),
)
def test_a_year_that_drifts_has_no_step_and_one_in_it_is_found(kind: str) -> None:
    """Steps alone explained a drift of 3 % and a season of 1 % by one to four steps in every series."""
    rng = np.random.default_rng(11)
    ticks = np.arange(YEAR) / YEAR
    alarms = found = 0
    for _ in range(60):
        noise = rng.normal(0, 0.01, YEAR)
        if kind == "neighbours alike":
            for run in range(1, YEAR):
                noise[run] = 0.5 * noise[run - 1] + noise[run] * 0.75**0.5
        if "drift" in kind:
            noise += 0.03 * ticks
        if "season" in kind:
            noise += 0.01 * np.sin(2 * np.pi * (ticks + rng.random()))
        times = 1000 * np.exp(noise)
        alarms += bool(find_steps(times))
        start = int(rng.integers(80, 300))
        times[start:] *= 1.03
        found += any(abs(step.position - start) <= 5 for step in find_steps(times))
    assert alarms <= 4 and found >= 57


def test_three_per_cent_are_found_within_five_runs() -> None:
    rng = np.random.default_rng(8)
    found = 0
    for _ in range(400):
        times = a_year(rng)
        start = int(rng.integers(20, YEAR - 5))
        times[start:] *= 1.03
        steps = find_steps(times[: start + 5])
        found += any(abs(step.position - start) <= 5 for step in steps)
    assert found >= 380


def test_two_steps_and_their_sizes() -> None:
    rng = np.random.default_rng(9)
    times = a_year(rng)
    times[100:] *= 1.05
    times[250:] /= 1.10
    steps = find_steps(times)
    assert [abs(step.position - at) <= 1 for step, at in zip(steps, (100, 250), strict=True)] == [True, True]
    assert [step.ratio for step in steps] == pytest.approx([1.05, 1 / 1.10], rel=0.005)
    assert all(0.008 < step.noise < 0.013 for step in steps)


def test_two_disturbed_runs_at_the_end_are_no_step() -> None:
    times = a_year(np.random.default_rng(10))
    times[-2:] *= 1.4
    assert find_steps(times) == ()


def test_a_constant_clock_does_not_make_a_tick_a_step() -> None:
    assert find_steps([2048.0] * 40 + [2080.0] * 40, resolution=32.0) == ()
    assert find_steps([2048.0] * 40 + [2080.0] * 40)


def test_values_that_are_no_times_are_passed_over() -> None:
    times = a_year(np.random.default_rng(11))
    times[200:] *= 1.2
    times[[3, 50]] = [np.nan, 0.0]
    (step,) = find_steps(times)
    assert step.position == 200


def test_a_stair_of_hundreds_of_steps_takes_no_minute() -> None:
    """Each step that might be left out cost a fit of all columns: three minutes of 800 values, 0.02 s now."""
    begun = time.process_time()
    steps = find_steps(np.repeat(np.arange(1.0, 101), 8))
    assert time.process_time() - begun < 5
    assert len(steps) > 50
