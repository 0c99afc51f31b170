"""Where the recorded reports lie and the type of the fixture that reads them (`conftest` is no importable name)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gemmprof.model import KernelProfile

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""

DATA = ROOT / "tests" / "data"

ReadRecorded = Callable[..., tuple[KernelProfile, ...]]

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
