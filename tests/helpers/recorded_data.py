"""Where the recorded reports lie and the type of the fixture that reads them (`conftest` is no importable name)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gemmprof.model import KernelProfile

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""

DATA = ROOT / "tests" / "data"

ReadRecorded = Callable[..., tuple[KernelProfile, ...]]
