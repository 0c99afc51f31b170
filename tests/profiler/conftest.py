"""GPUs that are not there: `fake_gpu` plays them in real child processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from recorded_data import ROOT

from gemmprof.gpu.devices import Gpu
from gemmprof.model import Card

HELPERS = ROOT / "tests" / "helpers"
GPUS = tuple(Gpu(index, "NVIDIA Fake", (9, 0), 80 << 30, "580.1", f"GPU-{index}") for index in range(3))


class Plan:
    """What the fake GPUs do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def tell(self, gpu: int, what: str) -> None:
        """Have a GPU do this."""
        (self.folder / f"GPU-{gpu}").write_text(what)

    def answered(self, gpu: int) -> int:
        """How many requests a GPU answered."""
        log = self.folder / f"GPU-{gpu}.log"
        return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Fake GPUs that work, until they are told otherwise."""
    folder = tmp_path / "gpus"
    folder.mkdir()
    monkeypatch.setenv("FAKE_GPU_PLAN", str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(HELPERS)]))
    return Plan(folder)


@pytest.fixture
def gpus() -> tuple[Gpu, ...]:
    """Three of one model."""
    return GPUS


@pytest.fixture
def cards() -> tuple[Card, ...]:
    """The labels of `gpus`."""
    return tuple(gpu.card for gpu in GPUS)


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], None]:
    """Wait until something holds."""

    def wait(holds: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.01)

    return wait
