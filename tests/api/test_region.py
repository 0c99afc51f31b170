"""Marked regions of scripts and notebooks: run here once, and again in a child up to their end."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from profiler_fakes import write_ncu
from recorded_data import DATA

NCU = """
Path(value("--log-file")).write_text("")
assert value("--profile-from-start") == "off"
Path(value("--export")).write_bytes(Path({report!r}).read_bytes())
place = next(i for i, word in enumerate(arguments) if word == {python!r})
sys.exit(subprocess.run(arguments[place:]).returncode)
"""

SCRIPT = """
import os, sys
import gemmprof

def note(text):
    with open("trace", "a") as file:
        file.write(("child" if "GEMMPROF_REGION" in os.environ else "here") + " " + text + "\\n")

note("before")
with gemmprof.profile(top=1) as first:
    note("first")
note(f"between {len(first.report)}")

@gemmprof.profile
def step(value):
    note(f"step {value}")
    return value + 1

assert step(1) == 2 and step(2) == 3
note("after")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    report = tmp_path / "recorded.ncu-rep"
    report.write_bytes(lzma.decompress((DATA / "ladder_simple.ncu-rep.xz").read_bytes()))
    (tmp_path / "bin").mkdir()
    write_ncu(tmp_path / "bin" / "ncu", NCU.format(python=sys.executable, report=str(report)))
    return tmp_path


def run(folder: Path, *words: str, path: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GEMMPROF_NCU": str(folder / "bin" / "ncu") if path else "/no/ncu"}
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
        timeout=120,
    )


def test_a_region_of_a_script_runs_here_and_again_up_to_its_end(folder: Path) -> None:
    (folder / "script.py").write_text(SCRIPT)
    done = run(folder, "script.py", "--an", "argument")
    assert done.returncode == 0, done.stderr
    trace = (folder / "trace").read_text().splitlines()
    once = ["child before", "child first"]
    again = ["child before", "child first", "child between 3", "child step 1"]
    assert trace == [
        "here before", "here first", *once, *once, "here between 3",
        "here step 1", *again, *again, "here step 2", "here after",
    ]  # fmt: skip
    assert done.stderr.count("gemmprof: 3 launches of 3 kernels") == 2 and "about" in done.stderr


def test_a_region_that_fails_is_not_profiled(folder: Path) -> None:
    (folder / "script.py").write_text(
        "import gemmprof\nwith gemmprof.profile():\n    raise KeyError('mine')\n"
    )
    done = run(folder, "script.py")
    assert done.returncode == 1 and "KeyError: 'mine'" in done.stderr
    assert not (folder / "gemmprof-profiles").exists()


def test_without_ncu_it_says_so_before_the_work(folder: Path) -> None:
    (folder / "script.py").write_text(SCRIPT)
    done = run(folder, "script.py", path=False)
    assert done.returncode == 1 and "`ncu` was not found" in done.stderr
    assert (folder / "trace").read_text() == "here before\n"


def test_at_a_prompt_there_is_nothing_to_run_again(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-i"], capture_output=True, text=True, check=False, cwd=folder, timeout=60,
        input="import gemmprof\nwith gemmprof.profile(): pass\n\n",
        env={**os.environ, "GEMMPROF_NCU": str(folder / "bin" / "ncu")},
    )  # fmt: skip
    assert "entered at a prompt" in done.stderr and "use a notebook" in done.stderr


def test_a_notebook_runs_its_cells_again(folder: Path) -> None:
    """The shell is IPython's; a stand-in has what is asked of it."""
    cells = [
        "import os, inspect\nget_ipython().run_line_magic('matplotlib', 'inline')",
        "raise ValueError('a cell that failed')",
        "def kernel():\n    return 42",
        "assert 'return 42' in inspect.getsource(kernel)\nimport gemmprof\n"
        "with gemmprof.profile() as region:\n    open('trace', 'a').write(f'{os.environ.get(\"GEMMPROF_REGION\")} ')",
    ]
    (folder / "kernel_process.py").write_text(
        "import json, sys, types\n"
        f"cells = json.loads({json.dumps(cells)!r})\n"
        "shell = types.SimpleNamespace(history_manager=types.SimpleNamespace(input_hist_parsed=['', *cells]))\n"
        "sys.modules['IPython'] = types.SimpleNamespace(get_ipython=lambda: shell)\n"
        "import gemmprof\n"
        "with gemmprof.profile() as region:\n    open('trace', 'a').write('here ')\n"
        "assert len(region.report) == 3\n"
    )
    done = run(folder, "kernel_process.py")
    assert done.returncode == 0, done.stderr
    assert (folder / "trace").read_text() == "here 1 1 "


def test_a_report_before_its_region_is_an_error_that_says_so(folder: Path) -> None:
    (folder / "early.py").write_text(
        "import gemmprof\nwith gemmprof.profile() as region:\n    print(region.report)\n"
    )
    done = run(folder, "early.py")
    assert done.returncode == 1
    assert "this region has not been profiled yet" in done.stderr and "behind the with block" in done.stderr
