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
    "flaws_spills",
    "flaws_tensor",
    "launches_same_kernel",
    "modes_application_replay",
    "modes_graph_nodes",
    "modes_range",
    "names_markup",
    "partial_basic",
    "partial_no_source",
    "partial_source_counters",
)
"""Recorded reports that between them have every section, kind of kernel and way of profiling."""
