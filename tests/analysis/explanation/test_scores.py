"""The predictions, judged by the corpus of pairs: docs/explain_scores.md is current and reaches its
figures.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def scores() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score_pairs", ROOT / "tools" / "score_pairs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.campaign
def test_the_page_is_current(scores: ModuleType) -> None:
    rows = scores.corpus(scores.DATA)
    assert scores.written(rows) == scores.PAGE.read_text("utf-8"), "run tools/score_pairs.py"


def test_the_figures_are_reached(scores: ModuleType) -> None:
    """With a kernel left out; what is not reached yet stands in docs/explain.md and may not get worse."""
    text = scores.PAGE.read_text("utf-8")

    def figures(name: str) -> list[float]:
        row = next(line for line in text.splitlines() if line.startswith(f"| {name}"))
        return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", row.split("|")[3])]

    assert figures("mean error")[0] <= 8
    assert figures("skill")[0] >= 0.70
    assert figures("worst")[0] <= 50
    assert 75 <= figures("outcomes inside")[0] <= 90
    right, of = figures("cause named first")
    assert right >= 0.87 * of
    alarms, of = figures("still promised")
    assert alarms <= 0.08 * of
