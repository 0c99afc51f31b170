"""A stand-in for the ncu executable, for the ways in which ncu fails; what it prints are ncu's own words."""

from __future__ import annotations

import json
import lzma
import stat
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from recorded_data import DATA

from gemmprof.profiler.job import Job, Task

_HEAD = """#!{python}
import json, os, signal, subprocess, sys, time
from pathlib import Path
arguments = sys.argv[1:]
if arguments == ["--version"]:
    print("NVIDIA (R) Nsight Compute Command Line Profiler")
    print("Copyright (c) 2018-2025 NVIDIA Corporation")
    print("Version {version} (build 36398880) (public-release)")
    sys.exit(0)
value = lambda option: arguments[arguments.index(option) + 1]
"""

_SCRIPT = """
plan = json.loads(Path({plan!r}).read_text())
Path({plan!r}).with_suffix(".calls").open("a").write(json.dumps(arguments) + "\\n")
Path(value("--log-file")).write_text(plan["log"])
if plan["report"]:
    Path(value("--export")).write_bytes(Path(plan["report"]).read_bytes())
waited = time.monotonic() + 30
while not Path(arguments[-1]).exists() and time.monotonic() < waited:
    time.sleep(0.01)  # the job is written while ncu starts, and the profiled program waits for it
job = json.loads(Path(arguments[-1]).read_text())
with open(job["events"], "a") as events:
    for event in plan["events"]:
        events.write(json.dumps(event) + "\\n")
print(plan["output"])
sys.stdout.flush()
if plan["signal"]:
    os.kill(os.getpid(), plan["signal"])
sys.exit(plan["exit_code"])
"""


def ncu_script(body: str, version: str = "2025.3.1.0") -> str:
    """A script that answers ``--version`` as ncu does, and else runs ``body``.

    That is Python; ``arguments`` and ``value("--option")`` are there, and ``Path`` and the usual modules.
    """
    return _HEAD.format(python=sys.executable, version=version) + body


def write_ncu(path: Path, body: str, version: str = "2025.3.1.0") -> Path:
    """Write a `ncu_script` that can be started."""
    path.write_text(ncu_script(body, version))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def fake_ncu(
    folder: Path,
    *,
    log: str = "",
    output: str = "",
    exit_code: int = 0,
    signal: int = 0,
    events: Sequence[dict[str, object]] = (),
    report: Path | None = None,
    version: str = "2025.3.1.0",
) -> Path:
    """Write an executable that behaves like ncu in one situation.

    Args:
        log: what goes to the ``--log-file``, output: to standard output.
        events: what the profiled program reports.
        report: a file to leave behind as the report.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plan = folder / "plan.json"
    plan.write_text(
        json.dumps(
            {
                "log": log,
                "output": output,
                "exit_code": exit_code,
                "signal": int(signal),
                "events": list(events),
                "report": str(report) if report else "",
            }
        )
    )
    return write_ncu(folder / "ncu", _SCRIPT.format(plan=str(plan)), version)


def calls(executable: Path) -> list[list[str]]:
    """The argument lists with which a fake was called, ``--version`` aside."""
    return [json.loads(line) for line in executable.with_name("plan.calls").read_text().splitlines()]


def event(kind: str, task: Task, **facts: object) -> dict[str, object]:
    """An event as the profiled program writes it."""
    return {"event": kind, "clock": 0.0, "stage": task.stage, "problem": asdict(task.problem), **facts}


def launched(tasks: Sequence[Task]) -> list[dict[str, object]]:
    """The events of tasks that were launched without trouble."""
    return [event(kind, task) for task in tasks for kind in ("begin", "launched")]


def a_job(run: Path, tasks: Sequence[Task], name: str = "profile-01") -> Job:
    """A job in the run directory ``run``."""
    for folder in ("reports", "logs"):
        (run / folder).mkdir(parents=True, exist_ok=True)
    return Job(tuple(tasks), run, run / "logs" / f"{name}.events.jsonl", run / ".stop")


def real_report(folder: Path, kernels: int) -> Path:
    """A real report with so many kernels, cut from a recorded one at the end of a block."""
    from gemmprof.profiler.ncu.profile_pass import whole_blocks

    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{kernels}.ncu-rep"
    data = lzma.decompress((DATA / "launches_same_kernel.ncu-rep.xz").read_bytes())
    end = len(data)
    while True:
        target.write_bytes(data[:end])
        whole = whole_blocks(target)
        if whole.kernels == kernels:
            target.write_bytes(data[: whole.end])
            return target
        if not whole.kernels:
            raise AssertionError(f"the recorded report has no prefix of {kernels} kernels")
        end = whole.end - 1


def profiling_line(index: int, name: str = "sgemm_naive", passes: int = 36) -> str:
    """What ncu prints of a kernel that it profiled."""
    return f'==PROF== Profiling "{name}" - {index}: 0%....50%....100% - {passes} passes\n'
