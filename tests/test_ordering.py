"""What takes longest begins first where tests run side by side."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ordering import longest_first, shares
from recorded_data import ROOT


@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, 5.0, 9.0, 200.0]), max_size=80), st.integers(1, 12))
def test_every_test_once_and_the_long_ones_at_the_fronts(seconds: list[float], workers: int) -> None:
    order = longest_first(seconds, workers)
    assert sorted(order) == list(range(len(seconds)))
    long = [place for place in order if seconds[place]]
    stretches, start = [], 0
    for size in shares(len(seconds), workers):
        stretches.append(order[start : start + size])
        start += size
    assert start == len(seconds)
    if all(size > len(long) for size in shares(len(seconds), workers)):
        firsts = sorted((seconds[stretch[0]] for stretch in stretches), reverse=True)
        longest = sorted(seconds, reverse=True)[:workers]
        assert firsts == longest, "each worker begins with one of the longest"
    short = [place for place in order if not seconds[place]]
    assert short == sorted(short), "the others stay in their order, which shares fixtures"


TESTS = """
import time
from pathlib import Path
import pytest

@pytest.mark.gpu
@pytest.mark.parametrize("number", range(60))
def test_short(number): begun(f"short {number}"); time.sleep(0.01)

@pytest.mark.gpu
@pytest.mark.long(seconds=3)
def test_long(): begun("long"); time.sleep(0.3)

@pytest.mark.gpu
@pytest.mark.long(seconds=90)
def test_longest(): begun("longest"); time.sleep(0.5)

def test_without_gpu(): begun("wrong")

def begun(name):
    with (Path(__file__).parent / "begun").open("a") as file:
        file.write(name + "\\n")
"""


def test_xdist_begins_with_them(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {ROOT} {ROOT / 'tests' / 'helpers'}\nmarkers =\n gpu\n long\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", "-n", "3", "--dist", "worksteal"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    begun = (tmp_path / "begun").read_text().splitlines()
    assert len(begun) == 62 and {"long", "longest"} <= set(begun[:12]), begun
