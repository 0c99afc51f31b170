"""The page of a history: every run with its words, the band, each step with its class."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from gemmprof.analysis.history.changes import Change, Origin, Point, changes
from gemmprof.reports.pages.history import MOST_SERIES, Card, page_html

START = datetime(2025, 11, 20, tzinfo=UTC)
NAME = "void softmax<float>(</title><script>alert(1)</script>)"


def series(runs: int, *, days: float = 1.0, name: str = NAME) -> tuple[list[Point], tuple[Change, ...]]:
    rng = np.random.default_rng(1)
    points = []
    for run in range(runs):
        time = 56e3 * float(np.exp(rng.normal(0, 0.008))) * (1.1 if run >= runs // 2 else 1)
        origin = Origin(START + timedelta(days=days * run), commit=f"c{run}<b>", machine="ci-7")
        code = "b" if run >= runs // 2 else "a"
        points.append(Point(name, "2x1x1", "H100", "timed", origin, time, time, time * 1.1, 5, code=code))
    return points, changes(points)


def test_every_run_and_step_stands_on_the_page() -> None:
    shown = [series(120)]
    text = page_html(shown)
    assert text.count("<circle") == 120 and text.count('class="level"') == 2
    assert "<script>alert" not in text and "c7&lt;b&gt;" in text
    assert re.search(r'<line class="step bad"', text) and "code</text>" in text
    assert "the instructions differ, since commit c60&lt;b&gt;" in text
    assert "style=" not in text.partition("<main")[2]


def test_a_step_is_from_level_to_level() -> None:
    ((points, found),) = [series(120)]
    points[60] = replace(points[60], time_ns=2 * points[60].time_ns)  # the first run behind it is an outlier
    text = page_html([(points, found)])
    before, after = (float(re.search(rf'data-label="{word}">([\d.]+)', text)[1]) for word in ("From", "To"))  # type: ignore[index]
    assert after / before == pytest.approx(found[0].step.ratio, rel=0.01)


@pytest.mark.parametrize(
    ("runs", "days"), [(1, 1.0), (2, 0.001), (20, 0.01), (30, 1.0), (400, 1.0), (100, 40.0)]
)
def test_the_picture_stays_in_its_frame(runs: int, days: float) -> None:
    points, found = series(runs, days=days)
    card = Card("k", points, found)
    places = [(card.x(point.origin.recorded_at), card.y(point.time_ns)) for point in points]
    assert all(card.left <= x <= card.right and 0 <= y <= card.bottom + 0.1 for x, y in places)
    assert (2 if runs > 1 else 1) <= len(card.dates) <= 16
    commits = [text for _, text in card.commits]
    assert commits[0] == "c0<b>"
    assert runs < 100 or commits[1:] == [f"c{runs // 2}<b>", f"c{runs - 1}<b>"]
    assert 2 <= len(card.times) <= 8
    assert len({text for _, text in card.times}) == len(card.times)


def test_a_page_holds_so_many_kernels_and_says_how_many_more() -> None:
    text = page_html([series(3, name=f"kernel {number}") for number in range(MOST_SERIES + 5)])
    assert text.count('<section class="card history"') == MOST_SERIES
    assert "5 more kernels" in text
