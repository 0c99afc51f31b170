"""Where the recorded reports lie and the type of the fixture that reads them (`conftest` is no importable name)."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from gemmprof.analysis.reading.report import ReportReader
from gemmprof.model import KernelProfile

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""

DATA = ROOT / "tests" / "data"
EXAMPLES = ROOT / "docs" / "examples" / "recorded"
"""The reports that the documentation speaks of."""

ReadRecorded = Callable[..., tuple[KernelProfile, ...]]


def one_launch(report: Path, which: int | Callable[[KernelProfile], bool]) -> KernelProfile:
    """A launch of a report, by its number or by what holds of it: the code of the others is not disassembled."""
    with ReportReader(report) as reader:
        if not isinstance(which, int):
            which = next(one.index for one in reader.profiles(instances=False, rules=False) if which(one))
        return next(reader.profiles(source=True, units=True, only={which}))


def study_reports(of: Path) -> Path:
    """Where the reports of a recorded set of studies lie (`tests/data/variants/h200`), packed or not."""
    tools = str(ROOT / "tools")
    if tools not in sys.path:
        sys.path.insert(0, tools)
    found: Path = importlib.import_module("score_studies").reports(of)
    return found


@cache
def studies_of(of: Path) -> dict[str, dict[str, Any]]:
    """What a recorded set says of each study, by its name: the kernel, and its fixes."""
    return {one["study"]: one for one in json.loads((of / "studies.json").read_text("utf-8"))["studies"]}


@cache
def pair_of(name: str, size: str) -> dict[str, Any]:
    """What the corpus says of a pair."""
    pairs = json.loads((DATA / "pairs" / "outcomes.json").read_text("utf-8"))["pairs"]
    return next(one for one in pairs if (one["pair"], one["size"]) == (name, size))


REPRESENTATIVES = (
    "flaws_atomics",
    "flaws_cluster",
    "flaws_other_memory",
    "flaws_precision",
    "modes_range",
    "names_markup",
    "partial_no_source",
)
"""Recorded reports that between them reach all but some 20 of the lines that all of them reach (8,671 of analysis and
reports), which other tests reach; chosen by what each reaches beyond the others."""
