"""What all tests share: the recorded reports."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from functools import cache
from pathlib import Path

import pytest
from kept import forget_if_large, keep_recorded, put_what_was_said, read_anew
from recorded_data import DATA, REPRESENTATIVES, ReadRecorded
from scale import CAMPAIGN, few, inputs

from gemmprof.analysis.reading.report import read_report
from gemmprof.model import KernelProfile


@cache
def _read(name: str, source: bool) -> tuple[KernelProfile, ...]:
    return read_report(DATA / f"{name}.ncu-rep.xz", source=source)


@pytest.fixture(scope="session")
def recorded() -> ReadRecorded:
    """``recorded("flaws_tensor")``: the launches of a recorded report, read once; ``source=True`` with SASS."""

    def read(name: str, *, source: bool = False) -> tuple[KernelProfile, ...]:
        return _read(name, source)

    return read


def recorded_names() -> list[str]:
    """Name of every recorded report."""
    return sorted(file.name.removesuffix(".ncu-rep.xz") for file in DATA.glob("*.ncu-rep.xz"))


def pytest_configure(config: pytest.Config) -> None:
    """Children can be interrupted, and output is the same, wherever the tests were started from.

    A script's background and nohup have SIGINT ignored, which children inherit; one that is handled they do not.
    Output is as wide as in a pipe, whatever terminal the tests were started from.

    pytest imports readline, which puts the width of a terminal that is not there into the environment of children,
    behind the back of `os.environ`.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
        os.unsetenv(name)
    # Kept launches are millions of objects: walking them as often as Python does takes a tenth of the time.
    gc.set_threshold(100_000, 50, 50)
    _begin_elsewhere(config)
    if not CAMPAIGN:
        if not hasattr(config, "workerinput"):
            put_what_was_said()
        keeping = ExitStack()
        keep_recorded(keeping)
        config.add_cleanup(keeping.close)


def _begin_elsewhere(config: pytest.Config) -> None:
    """Each worker collects other files first: what one has compiled, the others find compiled (24 s are 8)."""
    worker = getattr(config, "workerinput", None)
    folders = [Path(arg) for arg in config.args]
    if worker is None or config.option.ignore or not all(folder.is_dir() for folder in folders):
        return
    files = [str(file) for folder in folders for file in sorted(folder.rglob("test_*.py"))]
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    config.args[:] = files[first:] + files[:first]


@pytest.hookimpl(tryfirst=True, specname="pytest_collection_modifyitems")
def pytest_one_order(items: list[pytest.Item]) -> None:
    """Wherever a worker began, its tests are in the same order."""
    items.sort(key=lambda item: item.path)


ABOUT_READING = {"reading", "safety", "cluster", "test_session.py", "test_run.py", "test_doors.py"}
"""Folders and files of tests that see how reports are read."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """What is kept of recorded reports is kept from tests of the reading itself, and goes where it is too much."""
    try:
        with read_anew() if ABOUT_READING & set(item.path.parts) else nullcontext():
            return (yield)
    finally:
        if nextitem is not None and nextitem.path != item.path:
            _read.cache_clear()
            forget_if_large()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes ``report_name`` for the recorded reports that reach every path, the others in the campaign.

    What is compared with ncu's own output (tests/referee) is compared of every report. A module may name others.
    """
    if "report_name" in metafunc.fixturenames:
        referee = metafunc.definition.path.parent.name == "referee"
        chosen = getattr(metafunc.module, "REPRESENTATIVES", recorded_names() if referee else REPRESENTATIVES)
        metafunc.parametrize("report_name", few(recorded_names(), chosen))


def pytest_itemcollected(item: pytest.Item) -> None:
    """A test with more inputs in the campaign is the campaign's there, marked or not: its whole file is."""
    if CAMPAIGN and getattr(getattr(item, "module", None), "inputs", None) is inputs:
        item.add_marker("campaign")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """The GPU that GPU tests run on, in their recorded output."""
    if "gpu" not in config.option.markexpr:
        return []
    from gemmprof.base.errors import DeviceError
    from gemmprof.gpu.devices import list_gpus

    try:
        return [f"GPU {gpu.index}: {gpu.name}, driver {gpu.driver}" for gpu in list_gpus()]
    except DeviceError as error:
        return [f"GPU: {error.message}"]


def pytest_sessionfinish() -> None:
    """What is kept goes with the process: pytest and Python would look through all of it three times before."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what ``-m`` does not ask for: tests that need a GPU (`make test-gpu`), and the campaign's (`make
    campaign`). On a GPU begin with what takes longest.
    """
    if "gpu" in config.option.markexpr:
        marks = {item: item.get_closest_marker("long") for item in items}
        items.sort(key=lambda item: -marks[item].kwargs["seconds"] if marks[item] else 0)
        return
    others = {"gpu"} if "campaign" in config.option.markexpr else {"gpu", "campaign"}
    left_out = {item for item in items if any(mark.name in others for mark in item.iter_markers())}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
