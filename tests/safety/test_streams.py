"""Exit codes and messages whatever standard output is: closed, full, or a reader that leaves."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recorded_data import DATA
from scale import few

PYTHON = sys.executable
REPORT = DATA / "partial_basic.ncu-rep.xz"
BEFORE, AFTER = DATA / "names_nvtx.ncu-rep.xz", DATA / "launches_same_kernel.ncu-rep.xz"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line.replace("gemmprof", f"{PYTHON} -m gemmprof", 1)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "command",
    few(
        ["stages", "stages --json", f"occupancy {REPORT}", f"roofline {REPORT} --json"],
        [f"roofline {REPORT} --json"],
    ),
)
def test_a_closed_standard_output_is_no_failure(command: str) -> None:
    for closed in (">&-", ">&- 2>&-", "<&- >&-"):
        answer = shell(f"gemmprof {command} {closed}")
        assert answer.returncode == 0, answer.stderr
        assert "Traceback" not in answer.stderr


def test_a_file_does_not_become_standard_output(tmp_path: Path) -> None:
    """The first file that is opened gets the lowest free descriptor: not the one that is printed to."""
    answer = shell(f"gemmprof report {REPORT} --single-file -o {tmp_path / 'page.html'} >&- 2>&-")
    assert answer.returncode == 0
    page = (tmp_path / "page.html").read_text()
    assert page.rstrip().endswith("</html>") and "Wrote" not in page


def test_a_full_standard_output_is_an_error_with_a_remedy() -> None:
    answer = shell("gemmprof stages > /dev/full")
    assert answer.returncode == 2
    assert "No space left on device" in answer.stderr and "fix: free some space" in answer.stderr
    assert "Traceback" not in answer.stderr and "Exception ignored" not in answer.stderr


@pytest.mark.campaign
@pytest.mark.parametrize("form", ["--json", ""])
def test_the_gates_exit_code_survives_a_reader_that_leaves(form: str) -> None:
    whole = shell(f"gemmprof diff {BEFORE} {AFTER} --fail-slower 1 {form} > /dev/null")
    assert whole.returncode == 1, whole.stderr
    cut = shell(f"gemmprof diff {BEFORE} {AFTER} --fail-slower 1 {form} | head -c 1; exit ${{PIPESTATUS[0]}}")
    assert cut.returncode == 1
    assert "Broken pipe" not in cut.stderr and "Traceback" not in cut.stderr


def test_sigterm_ends_a_command_in_order() -> None:
    process = subprocess.Popen(
        [PYTHON, "-m", "gemmprof", "explain", str(DATA / "ladder_simple.ncu-rep.xz")],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(0.6)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, 128 + signal.SIGTERM, -signal.SIGTERM)
    assert "Traceback" not in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_while_something_is_cleared_up(number: signal.Signals) -> None:
    """An exception in there would be printed and forgotten, and the command would go on."""
    program = (
        "import os, sys, time\nimport gemmprof.cli as cli\n"
        "class Thing:\n"
        "    def __del__(self):\n"
        f"        os.kill(os.getpid(), {int(number)})\n"
        "        time.sleep(0)\n"
        "def build(only):\n"
        "    Thing()\n"
        "    time.sleep(30)\n"
        "cli.build_parser = build\n"
        "sys.exit(cli.main(['show', 'x.ncu-rep']))"
    )
    stopped = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert stopped.returncode == 128 + number
    said = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
    assert stopped.stderr == f"gemmprof: {said}\n"


# In 3.11 what a descriptor's __set_name__ raises comes wrapped in a RuntimeError.
AT_ONCE = "cli.build_parser = stop"
IN_A_CLASS = (
    "def build(only):\n"
    "    class Made:\n"
    "        field = type('Field', (), {'__set_name__': stop})()\n"
    "cli.build_parser = build"
)


@pytest.mark.parametrize("loads", [AT_ONCE, IN_A_CLASS], ids=["at once", "while a class is made"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_while_its_modules_load_it_says_so(number: signal.Signals, loads: str) -> None:
    program = (
        "import os, sys, time\nimport gemmprof.cli as cli\n"
        f"def stop(*_, **__):\n    os.kill(os.getpid(), {int(number)})\n    time.sleep(30)\n"
        f"{loads}\n"
        "sys.exit(cli.main(['show', 'x.ncu-rep']))"
    )
    stopped = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert stopped.returncode == 128 + number
    assert stopped.stderr.startswith("gemmprof: ") and "Traceback" not in stopped.stderr
