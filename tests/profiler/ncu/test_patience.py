"""Two ncu at once: the one that is refused a driver resource waits and tries again, and says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from profiler_fakes import a_job, launched, profiling_line, real_report, write_ncu
from tiny_ladder import TINY

from gemmprof.base.errors import ProfilerError
from gemmprof.gpu.devices import Tool
from gemmprof.model import Problem
from gemmprof.profiler import profiling
from gemmprof.profiler.job import Task
from gemmprof.profiler.ncu import profile_pass
from gemmprof.profiler.ncu.command import KILLED, RESOURCE, NcuError
from gemmprof.profiler.ncu.profile_pass import Patience
from gemmprof.profiler.programs import ProgramProfiler

BUSY = (
    "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is "
    'concurrently collecting profiling data.\\n==ERROR== Failed to profile "k" in process 9437\\n'
)

NCU = """
calls = Path(__file__).with_name("calls")
with calls.open("a") as file:
    file.write("x")
refused = len(calls.read_text()) <= {refusals}
if {waits}:
    while not Path(arguments[-1]).exists():
        time.sleep(0.01)
Path(value("--log-file")).write_text('''{busy}''' if refused else {log!r})
if not refused:
    Path(value("--export")).write_bytes(Path({report!r}).read_bytes())
    if {waits}:
        job = json.loads(Path(arguments[-1]).read_text())
        Path(job["events"]).write_text({events!r})
sys.exit(9 if refused else 0)
"""


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``ncu(refusals)`` makes an ncu that is refused so often, then does its work; ``ncu.calls()`` counts."""
    monkeypatch.setattr(profile_pass, "PAUSES", (0.01, 0.02, 0.03))

    def make(refusals: int, tasks: tuple[Task, ...] = ()) -> Path:
        log = "".join(profiling_line(at) for at in range(len(tasks) or 1))
        events = "".join(json.dumps(event) + "\n" for event in launched(tasks))
        report = real_report(tmp_path, len(tasks) or 1)
        body = NCU.format(
            refusals=refusals, waits=bool(tasks), busy=BUSY, log=log, report=str(report), events=events
        )
        return write_ncu(tmp_path / "ncu", body)

    make.calls = lambda: len((tmp_path / "calls").read_text())  # type: ignore[attr-defined]
    return make


def profiler(folder: Path, told: list[str]) -> ProgramProfiler:
    return ProgramProfiler(("true",), folder, note=told.append)


def test_a_program_is_profiled_as_soon_as_the_other_ncu_is_done(ncu, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GEMMPROF_NCU", str(ncu(2)))
    told: list[str] = []
    collected = profiler(tmp_path, told).profile(())
    assert collected.launches == 1 and ncu.calls() == 3
    assert [text.partition(": ")[2] for text in told] == [
        "trying again in 0.01 s (1 of 3)",
        "trying again in 0.02 s (2 of 3)",
    ]


def test_one_that_is_never_done_is_told(ncu, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GEMMPROF_NCU", str(ncu(99)))
    with pytest.raises(NcuError, match="still did after 4 tries") as error:
        profiler(tmp_path, []).profile(())
    assert ncu.calls() == 4 and error.value.kind == RESOURCE
    assert "driver resource was unavailable" in error.value.found
    assert any("end other profilers" in remedy for remedy in error.value.remedies)


def test_another_error_is_not_waited_for() -> None:
    assert not Patience(lambda _: pytest.fail("it waits")).again(
        NcuError("ncu was ended by signal 9", kind=KILLED)
    )


class Kept:
    """What `Profiling` needs of a keeper."""

    def __init__(self, folder: Path, tasks: tuple[Task, ...]) -> None:
        from threading import Event
        from types import SimpleNamespace

        self.directory, self.lock = folder, 0
        self.left, self.told, self.failed = list(tasks), [], []
        self.stopping = Event()
        self.settings = SimpleNamespace(collection_options=(), clock_control="none")
        self.progress = SimpleNamespace(
            note=self.told.append, step=lambda _: None, done=lambda _: None, phase=lambda *_: None
        )

    def unprofiled(self) -> tuple[Task, ...]:
        return tuple(self.left)

    def job(self, tasks, events):
        return a_job(self.directory, tasks, events.name.removesuffix(".events.jsonl"))

    def keep_report(self, profiled, card) -> None:
        self.left.remove(profiled.task)

    def label(self, key) -> str:
        return str(key)

    def fail(self, key, part, message) -> None:
        self.failed.append(message)

    def tell_interrupt(self) -> None:
        raise AssertionError


@pytest.mark.parametrize("refusals", [2, 99])
def test_a_collection_waits_too(ncu, tmp_path: Path, refusals: int) -> None:
    tasks = tuple(Task(stage.number, Problem(64, 64, 64, "bfloat16")) for stage in TINY.stages)
    kept = Kept(tmp_path / "run", tasks)
    a_job(kept.directory, tasks)
    work = profiling.Profiling(kept, Tool(ncu(refusals, tasks), (2025, 3, 1)))
    if refusals == 2:
        work.do()
        assert not kept.left and not kept.failed and len(kept.told) == 2
    else:
        with pytest.raises(ProfilerError, match="still did after 4 tries") as error:
            work.do()
        assert "--resume" in error.value.remedies[-1] and kept.left == list(tasks)
