"""Conditions over random launches: DuckDB finds what a slow reading of the same condition in Python finds."""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import in_process
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmprof import __version__
from gemmprof.analysis.inputs.conditions import (
    Both,
    Comparison,
    Condition,
    Either,
    HasFinding,
    Match,
    Not,
    canonical,
    parse_condition,
)
from gemmprof.reports.dataset.query import search
from gemmprof.reports.tables.parquet import write_parquet

FIGURES = ("duration", "registers", "l2_hit_rate")
FINDINGS = ("low_occupancy",)
METRICS = ("sm__cycles.sum", "Sm__Cycles.sum", "odd__metric")
KERNELS = (
    "void gemm<float>(int)",
    "softmax",
    "GEMM_x",
    "größe",
    "",
    "a'b\"; DROP TABLE launches; --",
    "naïve\n2",
)
NUMBERS = (0.0, 1.0, -1.0, 2.5, 64.0, 1e6, math.inf, math.nan, None)

Row = dict[str, Any]


def random_rows(count: int, seed: int) -> list[Row]:
    dice = random.Random(seed)
    return [
        {
            "report": f"night/{dice.randrange(9)}.ncu-rep", "launch": at, "kernel": dice.choice(KERNELS),
            "function": "f", "nvtx": dice.choice(("", "step/forward", "step")), "device": "NVIDIA H100",
            "workload": "w", "label": "k", "owner": "own own own CUDA", "family": 1,
            **{name: dice.choice(NUMBERS) for name in (*FIGURES, *FINDINGS, *METRICS)},
        }
        for at in range(count)
    ]  # fmt: skip


def column_of(name: str) -> str:
    return f"figure:{name}" if name in FIGURES else f"finding:{name}" if name in FINDINGS else name


def write_dataset(folder: Path, parts: list[list[Row]]) -> None:
    """A data set as `reports.dataset.rows` writes it."""
    entries = {}
    for number, rows in enumerate(parts):
        name = f"{number}.parquet"
        texts = ("report", "kernel", "label", "function", "nvtx", "device", "owner", "workload")
        columns: dict[str, Any] = {text: pa.array([row[text] for row in rows], pa.string()) for text in texts}
        for whole in ("launch", "family"):
            columns[whole] = pa.array([row[whole] for row in rows], pa.int64())
        for figure in (*FIGURES, *FINDINGS):
            columns[column_of(figure)] = pa.array([row[figure] for row in rows], pa.float64())
        values = [(metric, at, row[metric]) for metric in sorted(METRICS) for at, row in enumerate(rows)]
        there = [(metric, at, value) for metric, at, value in values if value is not None]
        metric, at, value = zip(*there, strict=True)
        long = {"metric": metric, "row": pa.array(at, pa.int32()), "value": pa.array(value, pa.float64())}
        for room in ("parts", "metrics"):
            (folder / room).mkdir(parents=True, exist_ok=True)
        write_parquet(pa.table(long), folder / "metrics" / name, statistics=["metric"])
        write_parquet(pa.table(columns), folder / "parts" / name)
        for report in {row["report"] for row in rows}:
            row_count = sum(row["report"] == report for row in rows)
            entries[f"{report}"] = {
                "size": 1,
                "changed_ns": 1,
                "part": name,
                "launches": row_count,
                "error": "",
            }
    document = {
        "format": "gemmprof.dataset-part/1",
        "version": __version__,
        "explained": True,
        "generation": 1,
        "reports": entries,
        "gone": [],
    }
    (folder / "manifests").mkdir()
    (folder / "manifests" / "all.json").write_text(json.dumps(document))
    (folder / "dataset.json").write_text(json.dumps({"format": "gemmprof.dataset/2", "version": __version__}))


ROWS = random_rows(300, 3)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("find") / "set"
    halves: list[list[Row]] = [[], []]
    for row in ROWS:
        halves[int(row["report"][6]) % 2].append(row)
    write_dataset(folder, halves)
    return folder


def slowly(condition: Condition, row: Row) -> bool | None:
    """Whether a launch meets a condition; None where it lacks what that needs."""
    if isinstance(condition, HasFinding):
        return slowly(Comparison(condition.name, ">", 0.0), row)
    if isinstance(condition, Comparison):
        value = row[canonical(condition.name) if canonical(condition.name) in FIGURES else condition.name]
        if value is None or math.isnan(value):
            return None
        return {
            ">": value > condition.value, ">=": value >= condition.value, "<": value < condition.value,
            "<=": value <= condition.value, "==": value == condition.value, "!=": value != condition.value,
        }[condition.operator]  # fmt: skip
    if isinstance(condition, Match):
        found = re.search(condition.pattern, row[condition.name], re.IGNORECASE) is not None
        return found == condition.wanted
    if isinstance(condition, Not):
        inner = slowly(condition.part, row)
        return None if inner is None else not inner
    assert isinstance(condition, (Both, Either))
    answers = [slowly(part, row) for part in condition.parts]
    decides = isinstance(condition, Either)
    return decides if decides in answers else None if None in answers else not decides


VALUES = ("0", "1", "-1", "2.5", "64", "1ms", "1_000_000", "1e6ns", "64 B", "1e400", "2.5%", "1M")


def without(name: str) -> tuple[str, ...]:
    """Units that are refused with this name (tests/analysis/test_conditions.py); a share of time is a change."""
    if name in METRICS:
        return ()
    return (
        ("%", " B")
        if name in ("duration", "time")
        else (("ns", "ms", " B") if name != "registers" else ("%", "s", "B"))
    )


comparisons = st.tuples(
    st.sampled_from((*FIGURES, "time", *FINDINGS, *METRICS)),
    st.sampled_from((">", ">=", "<", "<=", "==", "!=")),
    st.sampled_from(VALUES),
).map(lambda it: f"{it[0]} {it[1]} {'64' if it[2].endswith(without(it[0])) else it[2]}")
matches = st.builds(
    lambda name, operator, pattern: f"{name} {operator} '{pattern}'",
    st.sampled_from(("kernel", "nvtx", "device", "report")),
    st.sampled_from(("~", "!~")),
    st.sampled_from(
        ("gemm", "^$", "GRÖSSE|größe", "(?:soft)s?", r"(s|o){2}", "[3-5]", "DROP TABLE", r"\d$", ".")
    ),
)
findings = st.sampled_from(FINDINGS)
conditions = st.recursive(
    comparisons | matches | findings,
    lambda inner: (
        st.builds(lambda part: f"not ({part})", inner)
        | st.builds(lambda a, b: f"({a}) and {b}", inner, inner)
        | st.builds(lambda a, b: f"{a} or ({b})", inner, inner)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(text=conditions)
def test_every_condition_finds_what_a_slow_reading_finds(dataset: Path, text: str) -> None:
    condition = parse_condition(text)
    answer = search(dataset, condition)
    expected = {row["launch"] for row in ROWS if slowly(condition, row)}
    assert {found.launch for found in answer.found} == expected
    assert answer.matches == len(expected) and answer.launches == len(ROWS)
    for found in answer.found:
        row = ROWS[found.launch]
        assert (found.report, found.name) == (row["report"], row["kernel"])
        assert all(value is None or value == value for value in found.values.values())


def find(condition: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return in_process.run(
        [sys.executable, "-m", "gemmprof", "find", condition, str(folder)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "complaint"),
    [
        ("(" * 20_000 + "time > 1" + ")" * 20_000, "nested too deeply"),
        ("(" * 60 + "time > 1" + ")" * 60, "nested too deeply"),
        ("not " * 60 + "time > 1", "nested too deeply"),
        (" or ".join(["time > 1"] * 5_000), "more than 1,000 words"),
        ('time" > 1; DROP TABLE launches; --', "cannot be read at"),
        ("time); DROP TABLE launches > 1", "cannot be read at"),
        ("report == 'x' or 1 == 1", "text"),
        ("function > 3", "is no figure, finding or metric"),
        ("workload > 3", "is no figure, finding or metric"),
        ("größe > 3", "is no figure, finding or metric"),
        ("kernel ~ '('", "no regular expression"),
        ("kernel ~ 'a{99999}'", "no regular expression"),
        ("time > nan", "expected a number"),
        ("time > 1 parsec", "is no unit"),
        ("time == None", "expected a number"),
        ("time > 1 \u202e", "cannot be read at"),
    ],
)
def test_hostile_conditions_are_refused_in_words(dataset: Path, condition: str, complaint: str) -> None:
    done = find(condition, dataset)
    assert done.returncode == 2, done.stdout
    assert complaint in done.stderr and "fix:" in done.stderr
    assert "Traceback" not in done.stderr and "DROP TABLE" not in done.stdout


def test_long_conditions_are_answered(dataset: Path) -> None:
    text = " or ".join(f"registers == {at}" for at in range(240))
    answer = search(dataset, parse_condition(text))
    assert answer.matches == sum(row["registers"] in (0.0, 1.0, 64.0) for row in ROWS)
