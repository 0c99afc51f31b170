"""Each step is told with what changed: code, tools, clocks, counters, or nothing known."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from recorded_data import DATA

from gemmprof.analysis.comparison.sides import load_side
from gemmprof.analysis.history.changes import Origin, Point, changes
from gemmprof.analysis.history.recording import points
from gemmprof.analysis.session import load_session

START = datetime(2026, 1, 1, tzinfo=UTC)


def series(ratio: float, **after: object) -> list[Point]:
    """Sixty runs, the second half ``ratio`` times as long and different in what ``after`` says."""
    rng = np.random.default_rng(3)
    made = []
    for run in range(60):
        time = 1e6 * float(np.exp(rng.normal(0, 0.005))) * (ratio if run >= 30 else 1.0)
        point = Point(
            kernel="k", grid="1x1x1", device="H100", kind="profiled",
            origin=Origin(START + timedelta(days=run), commit=f"c{run}"),
            time_ns=time, low_ns=time, high_ns=time, repetitions=1, sm_clock_hz=1.9e9,
            tools="Display Driver 580", code="aa", counters={"dram_read": 1000.0, "executed": 500.0},
        )  # fmt: skip
        made.append(replace(point, **after) if run >= 30 else point)  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize(
    ("after", "causes"),
    [
        ({"code": "bb"}, ("code",)),
        ({"tools": "Display Driver 590"}, ("tools",)),
        ({"sm_clock_hz": 1.9e9 / 1.1}, ("clocks",)),
        ({"counters": {"dram_read": 1500.0, "executed": 500.0}}, ("counters",)),
        ({"code": "bb", "counters": {"dram_read": 1500.0, "executed": 500.0}}, ("code", "counters")),
        ({}, ("unknown",)),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else "",
)
def test_causes(after: dict[str, object], causes: tuple[str, ...]) -> None:
    (change,) = changes(series(1.1, **after))
    assert change.causes == causes
    assert change.is_slower
    assert change.after.origin.commit == "c30"


def test_a_change_without_a_step_is_no_change() -> None:
    assert changes(series(1.0, code="bb")) == ()


def test_points_of_a_recorded_report() -> None:
    session = load_session([DATA / "launches_same_kernel.ncu-rep.xz"])
    kept = points(session, Origin(START, commit="abc"))
    assert sum(point.repetitions for point in kept) == len(session.kernels)
    repeated = max(kept, key=lambda point: point.repetitions)
    assert repeated.repetitions > 1
    assert repeated.low_ns <= repeated.time_ns <= repeated.high_ns
    assert repeated.code and repeated.counters["executed"] > 0
    assert "CUDA 13.0" in repeated.tools


def test_a_fingerprint_is_of_the_machine_code_and_not_of_how_it_is_written() -> None:
    report = DATA / "ladder_simple.ncu-rep.xz"
    kept = points(load_session([report]), Origin(START, commit="abc"))
    assert len({point.code for point in kept}) == len(kept) == 3 and all(point.code for point in kept)
    # The disassembler has no part in it: another version of it is no change of the code.
    without = points(load_session([report]), Origin(START, commit="abc"))
    assert [point.code for point in without] == [point.code for point in kept]
    side = load_side([report])
    assert {record.code.digest[:16] for record in side.kernels if record.code} == {
        point.code for point in kept
    }
