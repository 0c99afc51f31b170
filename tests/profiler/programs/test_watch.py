"""`gemmprof watch -- PROGRAM` in a process of its own, over a stand-in for ncu that hands out two recorded reports."""

from __future__ import annotations

import lzma
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import in_process
import pytest
from profiler_fakes import write_ncu
from recorded_data import ROOT

RECORDED = ROOT / "docs" / "examples" / "recorded"
NCU = """
here = Path(__file__).parent
if (here / "broken").exists():
    Path(value("--log-file")).write_text("==ERROR== The application returned an error code (11).\\n")
    sys.exit(11)
done = len(list(here.glob("done-*")))
(here / f"done-{done}").touch()
Path(value("--log-file")).write_text("")
Path(value("--export")).write_bytes((here / ("before" if done == 0 else "after")).read_bytes())
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    write_ncu(tmp_path / "bin" / "ncu", NCU)
    for name, report in (("before", "gelu"), ("after", "gelu_fixed")):
        packed = (RECORDED / f"{report}.ncu-rep.xz").read_bytes()
        (tmp_path / "bin" / name).write_bytes(lzma.decompress(packed))
    (tmp_path / "kernel.sh").write_text("#!/bin/sh\ntrue\n")
    (tmp_path / "kernel.sh").chmod(0o755)
    return tmp_path


class Watching:
    """The command at work; its lines as they come."""

    def __init__(self, folder: Path, *words: str) -> None:
        environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        environment.pop("GEMMPROF_HISTORY", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gemmprof", "watch", *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip()

    def end(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, out


@pytest.fixture
def started() -> Iterator[list[Watching]]:
    all_of_them: list[Watching] = []
    yield all_of_them
    for one in all_of_them:
        one.process.kill()
        one.process.wait()


def test_a_save_profiles_again_and_says_what_the_change_was(machine: Path, started: list[Watching]) -> None:
    watching = Watching(machine, "--", "./kernel.sh")
    started.append(watching)
    first = watching.line()
    assert first.startswith("run 1: #1 gelu: 270 µs; first: ")
    time.sleep(0.2)
    (machine / "bin" / "broken").touch()
    (machine / "kernel.sh").write_text("#!/bin/sh\nfalse\n")
    assert watching.line().startswith("run 2: ")  # it failed, and is watched further
    while not (line := watching.line()).startswith("run 3"):
        if (machine / "bin" / "broken").exists():
            (machine / "bin" / "broken").unlink()
            (machine / "kernel.sh").write_text("#!/bin/sh\ntrue  # again\n")
    assert line.startswith("run 3: FASTER #1 gelu: 270 µs → 214 µs, −20.9 % (")
    said = r"double precision \(predicted \d+ %, \d+ to \d+\) is gone(, [a-z ]+ \(predicted [^)]+\) is gone)*"
    said += r": −20\.9 % measured, as predicted; next: "
    assert re.search(said, line)
    assert watching.line() == "run 3: your last prediction lay inside"
    code, left = watching.end()
    assert code == 0 and left == "gemmprof watch: stopped after 3 runs; reports are in gemmprof-watch\n"
    reports = sorted((machine / "gemmprof-watch").glob("run-*.ncu-rep"))
    assert len(reports) == 2 and (machine / "gemmprof-watch" / "history" / "history.json").is_file()


def test_so_many_runs_and_no_more(machine: Path, started: list[Watching]) -> None:
    mine = [machine / "gemmprof-watch" / f"run-{number}.ncu-rep" for number in range(12)]
    mine[0].parent.mkdir()
    for path in mine:
        path.write_text("somebody's own")
    watching = Watching(machine, "kernel.sh", "--runs", "1", "--", "sh", "-c", "./kernel.sh")
    started.append(watching)
    out, _ = watching.process.communicate(timeout=60)
    assert watching.process.returncode == 0 and out.startswith("run 1: #1 gelu") and "stopped" not in out
    assert all(path.is_file() for path in mine)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--", "true"], "the command names no file"),
        (["none.cu", "--", "true"], "none.cu is not there"),
        (["--", "./none"], "none"),
        ([], "no program was named"),
    ],
)
def test_what_cannot_be_watched_is_named(words: list[str], complaint: str, machine: Path) -> None:
    path = f"{machine / 'bin'}{os.pathsep}{os.environ['PATH']}"
    found = in_process.run(["gemmprof", "watch", *words], cwd=machine, env={**os.environ, "PATH": path})
    assert found.returncode == 2 and complaint in found.stderr and "fix:" in found.stderr


def test_without_ncu_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "kernel.sh").write_text("#!/bin/sh\n")
    (tmp_path / "kernel.sh").chmod(0o755)
    found = in_process.run(
        ["gemmprof", "watch", "--", "./kernel.sh"],
        cwd=tmp_path,
        env={"PATH": "/nowhere", "HOME": str(tmp_path)},
    )
    assert (found.returncode == 2 and "ncu" in found.stderr) or "Nsight Compute" in found.stderr
