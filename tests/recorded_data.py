"""Where the recorded reports lie and the type of the fixture that reads them (`conftest` is no importable name)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gemmprof.model import KernelProfile

DATA = Path(__file__).parent / "data"

ReadRecorded = Callable[..., tuple[KernelProfile, ...]]
