"""Who reads reports need not sit at Linux: every command for them without what only Unix has, and without ncu_report.

The modules and functions are hidden in all processes, children included, by a ``sitecustomize`` on their path; the
start method of `multiprocessing` is spawn. What Windows does more strictly (open files and folders) is refused, too.
This is no Windows: it shows that nothing asks for what is missing there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kept import own_cache
from recorded_data import DATA
from reports_in_bytes import content_of
from scale import few

HIDDEN = """
import errno, fcntl, os, select, sys, signal, multiprocessing
if hasattr(select, "poll"):
    del select.poll
GET_FLAGS, flags_of = fcntl.F_GETFL, fcntl.fcntl
for name in ("fcntl", "resource", "pwd", "grp"):
    sys.modules[name] = None
for name in ("fork", "forkpty", "pread", "memfd_create", "register_at_fork", "set_blocking", "geteuid", "getuid",
             "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "killpg", "setsid", "sched_getaffinity", "fchdir",
             "sysconf", "getpgid", "mkfifo", "statvfs", "fchown", "chown"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGALRM", "SIGHUP", "alarm", "setitimer", "pthread_sigmask"):
    if hasattr(signal, name):
        delattr(signal, name)
multiprocessing.set_start_method("spawn")

def elsewhere(event, arguments):
    if event == "open" and str(arguments[0]).startswith(("/proc/", "/dev/fd")):
        raise FileNotFoundError(errno.ENOENT, "not on this system", arguments[0])
sys.addaudithook(elsewhere)

def is_open(path):
    for handle in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + handle) == os.path.realpath(path):
                return True
        except OSError:
            pass
    return False

# Windows opens no folders, renames and removes no open files, and brings none to the disk that is open to be read.
def stricter(name, refuses):
    known = getattr(os, name)
    def function(path, *others, **options):
        if refuses(path, *others):
            raise PermissionError(errno.EACCES, "refused on Windows: os." + name, str(path))
        return known(path, *others, **options)
    setattr(os, name, function)
stricter("open", lambda path, flags=0, *_: os.path.isdir(path) and flags & os.O_TMPFILE != os.O_TMPFILE)
stricter("rename", lambda path, other: is_open(path) or is_open(other))
stricter("replace", lambda path, other: is_open(path) or is_open(other))
stricter("unlink", lambda path: is_open(path))
stricter("fsync", lambda handle: not flags_of(handle, GET_FLAGS) & (os.O_WRONLY | os.O_RDWR))
"""

NO_NCU_REPORT = """
import sys
sys.modules["ncu_report"] = None
"""

REPORT, OTHER = DATA / "flaws_bank_conflicts.ncu-rep.xz", DATA / "flaws_global_access.ncu-rep.xz"
COMMANDS = {
    "show": ["show", str(REPORT)],
    "explain": ["explain", str(REPORT), "--json"],
    "report": ["report", str(REPORT), str(OTHER), "-o", "pages"],
    "one page": ["report", str(REPORT), "-o", "page.html", "--single-file"],
    "roofline": ["roofline", str(REPORT)],
    "diff": ["diff", str(REPORT), str(REPORT)],
    "export": ["export", str(REPORT), "-o", "tables"],
    "find": ["find", "time > 0", str(REPORT)],
    "occupancy": ["occupancy", "--arch", "9.0", "-t", "256", "-r", "64"],
    "front door": [str(REPORT)],
}


def run(
    folder: Path, arguments: list[str], hidden: str, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    place = folder / "hidden"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(hidden)
    return subprocess.run(
        [sys.executable, "-m", "gemmprof", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(place), "GEMMPROF_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        input=stdin,
        timeout=180,
        check=False,
    )


@pytest.mark.parametrize("command", few(list(COMMANDS), ["export"]))
def test_reading_asks_for_nothing_that_only_unix_has(command: str, tmp_path: Path) -> None:
    """`report`, which locks, reads side by side and starts children, is called below with names of Windows."""
    (
        tmp_path / "matplotlibrc"
    ).touch()  # somebody's: it is not read, the folder is left while matplotlib is loaded
    answer = run(tmp_path, COMMANDS[command], HIDDEN)
    assert answer.returncode == 0, answer.stderr
    said = [
        line
        for line in answer.stderr.splitlines()
        if not line.startswith(("Wrote ", "1 of 1 report", "1 report read"))
    ]
    assert said == []
    if command == "explain":
        assert '"findings"' in answer.stdout and json.loads(answer.stdout)
    if command == "export":
        assert list((tmp_path / "tables").glob("instructions*"))
    if command in ("report", "one page"):
        assert list(tmp_path.glob("**/*.html"))


def test_agents_are_served_there_too(tmp_path: Path) -> None:
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    requests: list[dict[str, object]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    # The package mcp asks the system's name whether it may use fcntl, and has its own way on Windows.
    hidden = HIDDEN.replace('"fcntl", ', "")
    assert hidden != HIDDEN
    answer = run(tmp_path, ["mcp"], hidden, "".join(json.dumps(request) + "\n" for request in requests))
    assert "explain" in answer.stdout and answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("command", few(["show", "explain", "export", "report", "roofline"], ["explain"]))
def test_without_ncu_report_everything_but_sass_is_there(command: str, tmp_path: Path) -> None:
    """There is none for Linux on Arm."""
    answer = run(tmp_path, COMMANDS[command], NO_NCU_REPORT)
    assert answer.returncode == 0, answer.stderr
    if command == "report":
        assert "no SASS" in answer.stderr and "ncu_report" in answer.stderr
    if command == "explain":
        assert "ncu_report" in answer.stdout
    if command == "export":
        assert list((tmp_path / "tables").glob("metrics*"))


@pytest.mark.skipif(os.name == "nt", reason="there a backslash separates folders")
@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        (["report", "-o", "D:\\pages", str(OTHER)], "D:\\pages/index.html"),
        *(
            pytest.param([*command], wanted, marks=pytest.mark.campaign)
            for command, wanted in (
                (["show"], "mine.ncu-rep"),
                (["explain"], "neighbour_sum"),
                (["diff", "{}"], "mine.ncu-rep"),
                (["find", "time > 0"], "mine.ncu-rep"),
                (["export", "--format", "csv", "-o", "D:\\tables"], "D:\\tables/kernels.csv"),
            )
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_paths_of_windows_are_names_here(command: list[str], wanted: str, tmp_path: Path) -> None:
    """A drive letter is no URL and a backslash no separator; both come back as they were given."""
    name = "C:\\reports\\mine.ncu-rep"
    (tmp_path / name).write_bytes(content_of("flaws_cluster"))
    own_cache(tmp_path / "cache")
    answer = run(tmp_path, [name if word == "{}" else word for word in (*command, "{}")], HIDDEN)
    assert answer.returncode == 0, answer.stderr
    assert wanted in answer.stdout or (tmp_path / wanted).is_file(), answer.stdout
