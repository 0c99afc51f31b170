"""Helper programs: events arrive, Ctrl-C is gentle once and final twice, orphans notice a killed collection."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from profiler_fakes import a_job, event, launched, real_report

from gemmprof.analysis.reading.report import read_report
from gemmprof.base.errors import DeviceError, RunError
from gemmprof.model import Problem
from gemmprof.profiler.job import (
    Ending,
    Event,
    Events,
    Job,
    Task,
    collecting,
    collection_lives,
    follow_program,
    start_program,
)
from gemmprof.profiler.ncu.profile_pass import (
    PassFiles,
    cut_torn_end,
    earlier_passes,
    next_pass,
    outcome,
    whole_blocks,
)

TASKS = [Task(number, Problem(8, 8, 8)) for number in (0, 1, 2)]


def run_program(
    arguments: Sequence[str],
    *,
    events: Path,
    output: Path,
    stop_file: Path,
    keep_open: Sequence[int] = (),
    on_event: Callable[[Event], None],
    on_interrupt: Callable[[], None],
) -> Ending:
    """Start a program and follow it to its end: `start_program`, then `follow_program`."""
    program = start_program(arguments, output=output, keep_open=keep_open)
    return follow_program(
        program, events=events, stop_file=stop_file, on_event=on_event, on_interrupt=on_interrupt
    )


def run_job(job: Job, text: str, run: Path) -> tuple[Ending, list[str]]:
    """Run a Python program that knows its job as ``job``."""
    path = run / "job.json"
    job.save(path)
    start = f"from pathlib import Path\nfrom gemmprof.profiler.job import Job\njob = Job.load(Path({str(path)!r}))\n"
    kinds: list[str] = []
    ending = run_program(
        [sys.executable, "-c", start + text],
        events=job.events,
        output=run / "out.log",
        stop_file=job.stop_file,
        on_event=lambda event: kinds.append(event.event),
        on_interrupt=lambda: kinds.append("INTERRUPT"),
    )
    return ending, kinds


def test_a_job_survives_its_file(tmp_path: Path) -> None:
    job = a_job(tmp_path, [Task(3, Problem(1, 2, 0), verify=True), Task(0, Problem(4, 4, 4), time=True)])
    job.save(tmp_path / "job.json")
    assert Job.load(tmp_path / "job.json") == job


def test_events_exit_code_and_output_arrive(tmp_path: Path) -> None:
    job = a_job(tmp_path, TASKS)
    ending, kinds = run_job(
        job, "for t in job.tasks: job.emit('begin', t)\nprint('last words')\nraise SystemExit(7)", tmp_path
    )
    assert kinds == ["begin"] * 3
    assert ending == Ending(7, False, "last words\n")
    assert [e.key for e in Events(job.events).new()] == [task.key for task in TASKS]


def test_a_program_that_ends_by_a_signal_says_which(tmp_path: Path) -> None:
    ending, kinds = run_job(
        a_job(tmp_path, TASKS), "import os\njob.emit('ready')\nos.kill(os.getpid(), 11)", tmp_path
    )
    assert ending.exit_code == -11 and kinds == ["ready"]


def test_a_program_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="cannot start"):
        run_program(
            [str(tmp_path / "nothing")],
            events=tmp_path / "e",
            output=tmp_path / "o",
            stop_file=tmp_path / "s",
            on_event=lambda _: None,
            on_interrupt=lambda: None,
        )


def test_an_event_without_its_end_waits(tmp_path: Path) -> None:
    path = tmp_path / "events"
    reader = Events(path)
    assert list(reader.new()) == []
    path.write_text('{"event": "a"}\n{"event":')
    assert [e.event for e in reader.new()] == ["a"]
    assert list(reader.new()) == []
    with path.open("a") as file:
        file.write(' "b", "stage": 1, "problem": {"m": 1, "n": 2, "k": 3}}\n')
    (second,) = reader.new()
    assert (second.event, second.key) == ("b", (1, Problem(1, 2, 3)))


def test_ctrl_c_lets_the_program_finish_its_task(tmp_path: Path) -> None:
    text = (
        "import os, signal, time\n"
        "for number, task in enumerate(job.tasks):\n"
        "    if job.stop_file.exists(): job.emit('stopped'); break\n"
        "    job.emit('begin', task)\n"
        "    if number == 1: os.kill(os.getppid(), signal.SIGINT); time.sleep(0.5)\n"
        "    job.emit('launched', task)\n"
    )
    ending, kinds = run_job(a_job(tmp_path, TASKS), text, tmp_path)
    assert ending.interrupted and ending.exit_code == 0
    assert [kind for kind in kinds if kind != "INTERRUPT"] == [
        "begin",
        "launched",
        "begin",
        "launched",
        "stopped",
    ]
    assert kinds.count("INTERRUPT") == 1


def test_a_second_ctrl_c_ends_a_program_that_does_not_listen(tmp_path: Path) -> None:
    text = (
        "import os, signal, time\n"
        "job.emit('begin', job.tasks[0])\n"
        "os.kill(os.getppid(), signal.SIGINT); time.sleep(0.3); os.kill(os.getppid(), signal.SIGINT)\n"
        "time.sleep(60)\n"
    )
    started = time.monotonic()
    ending, kinds = run_job(a_job(tmp_path, TASKS), text, tmp_path)
    assert time.monotonic() - started < 30
    assert ending.interrupted and ending.exit_code == -signal.SIGTERM
    assert "begin" in kinds


def test_an_error_while_handling_an_event_ends_the_program(tmp_path: Path) -> None:
    job = a_job(tmp_path, TASKS)
    job.save(tmp_path / "job.json")
    pid = tmp_path / "pid"

    def fail(_: object) -> None:
        raise RunError("disk full")

    program = (
        f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\n"
        f"open({str(job.events)!r}, 'a').write('{{\"event\": \"ready\"}}\\n')\ntime.sleep(60)"
    )
    with pytest.raises(RunError):
        run_program(
            [sys.executable, "-c", program],
            events=job.events,
            output=tmp_path / "o",
            stop_file=job.stop_file,
            on_event=fail,
            on_interrupt=lambda: None,
        )
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


HOLDER = """
import subprocess, sys, time
from pathlib import Path
from gemmprof.profiler.job import collecting
with collecting(Path(sys.argv[1])) as lock:
    subprocess.Popen([sys.executable, "-c", sys.argv[2]], pass_fds=(lock,), stdout=subprocess.DEVNULL)
    print("held", flush=True)
    time.sleep(60)
"""


def a_collection(run: Path, orphan: str) -> subprocess.Popen[str]:
    """A process that holds the run, with a program that inherits the tools' lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(run), orphan], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_two_collections_do_not_share_a_run(tmp_path: Path) -> None:
    holder = a_collection(tmp_path, "pass")
    try:
        assert collection_lives(tmp_path)
        with pytest.raises(RunError, match="another `gemmprof collect`"), collecting(tmp_path):
            pass
    finally:
        holder.kill()
        holder.wait()
    assert not collection_lives(tmp_path)
    with collecting(tmp_path):
        assert collection_lives(tmp_path)
    assert not collection_lives(tmp_path)


def test_a_job_stops_when_its_collection_was_killed(tmp_path: Path) -> None:
    job = a_job(tmp_path, TASKS)
    holder = a_collection(tmp_path, "pass")
    assert not job.should_stop()
    holder.kill()
    holder.wait()
    assert job.should_stop()


def test_resuming_waits_for_the_orphans_of_a_killed_collection(tmp_path: Path) -> None:
    done = tmp_path / "done"
    holder = a_collection(tmp_path, f"import time; time.sleep(1.5); open({str(done)!r}, 'w')")
    holder.kill()
    holder.wait()
    told: list[str] = []
    with collecting(tmp_path, waiting=lambda: told.append("waiting")):
        assert done.exists()
    assert told == ["waiting"]


def test_patience_with_an_orphan_ends(tmp_path: Path) -> None:
    holder = a_collection(tmp_path, "import time; time.sleep(3)")
    holder.kill()
    holder.wait()
    with pytest.raises(RunError, match="still runs"), collecting(tmp_path, patience=0.3):
        pass


def test_passes_are_numbered_after_every_earlier_one(tmp_path: Path) -> None:
    assert next_pass(tmp_path).name == "profile-01"
    for name in ("reports/profile-01.ncu-rep", "logs/profile-07.ncu.log", "logs/measure-1.out.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert next_pass(tmp_path).name == "profile-08"
    assert [files.name for files in earlier_passes(tmp_path)] == ["profile-01", "profile-07"]


def test_what_a_killed_pass_finished_is_found_in_its_files_later(tmp_path: Path) -> None:
    files = PassFiles(tmp_path, "profile-01")
    job = a_job(tmp_path, TASKS)
    job.save(files.job)
    files.report.write_bytes(real_report(tmp_path / "scratch", 2).read_bytes() + b"\x10\0\0\0torn")
    lines = [*launched(TASKS[:2]), event("begin", TASKS[2])]
    files.events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = outcome(files, TASKS)
    assert [(p.task, p.report) for p in found.finished] == [
        (task, "reports/profile-01.ncu-rep") for task in TASKS[:2]
    ]
    assert found.attributed == TASKS[2]
    assert whole_blocks(files.report).end == files.report.stat().st_size


def test_every_cut_of_a_report_leaves_whole_kernels_that_read_back(tmp_path: Path) -> None:
    data = real_report(tmp_path, 3).read_bytes()
    target = tmp_path / "cut.ncu-rep"
    before = 0
    for cut in [*range(0, len(data), len(data) // 11), len(data) - 1, len(data)]:
        target.write_bytes(data[:cut])
        whole = cut_torn_end(target)
        assert before <= whole.kernels and whole.end <= cut
        before = whole.kernels
        if whole.kernels:
            assert target.read_bytes() == data[: whole.end]
            assert len(read_report(target, source=False)) == whole.kernels
    assert before == 3


@pytest.mark.parametrize(
    "content", [b"", b"NVR\0", b"NVR\0\xff\xff\xff\xff", b"\x7fELF" + bytes(100), bytes(1000)]
)
def test_what_is_no_report_has_no_kernels(tmp_path: Path, content: bytes) -> None:
    target = tmp_path / "no.ncu-rep"
    target.write_bytes(content)
    assert cut_torn_end(target).kernels == 0
    assert target.read_bytes() == content
    assert whole_blocks(tmp_path / "absent").kernels == 0
