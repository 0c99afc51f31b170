"""The command, and dask's, in a process of its own that need not load its modules: forked from one that has.

Loading is half of what such a process does. Tests of the start itself (the environment, what is imported and when)
begin one anew.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from gemmprof.children.line_worker import MASTER

ROOT = Path(__file__).resolve().parents[2]
LOADED = ("analysis", "api", "arguments", "base", "children", "commands", "reports", "runs")
"""Packages of gemmprof that every command may need; what builds, profiles and draws is left to who needs it."""
MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Ended:
    """What a process left: its exit code, output, most memory in KiB and processor time, with its children's."""

    returncode: int
    stdout: str
    stderr: str
    memory: int
    seconds: float


def run(
    *words: str | Path, cwd: Path, env: Mapping[str, str] | None = None, load: Sequence[str] = ()
) -> Ended:
    """Run ``gemmprof WORD…`` in this folder and environment (default: the tests'), with these modules loaded, too."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        files = out.fileno(), err.fileno()
        code, memory, seconds = _asked(files, words=words, cwd=cwd, env=env, load=load)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8"))
    return Ended(code, texts[0], texts[1], memory, seconds)


class Begun:
    """A process that goes on while its test does, as far as `subprocess.Popen` is like it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._handle = os.pidfd_open(pid)  # nobody has waited for it: the number is still its own

    def poll(self) -> int | None:
        """A number once it has ended."""
        return 0 if select.select([self._handle], [], [], 0)[0] else None

    def wait(self) -> None:
        """Return when it has ended."""
        select.select([self._handle], [], [])

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)  # type: ignore[attr-defined]

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def begin(module: str, *words: str | Path, cwd: Path, log: Path, env: Mapping[str, str]) -> Begun:
    """Begin ``python -m MODULE WORD…``, whose output goes to the end of this file."""
    with log.open("ab") as file:
        files = file.fileno(), file.fileno()
        pid, *_ = _asked(files, words=words, cwd=cwd, env=env, load=[module], module=module)
    return Begun(pid)


READERS = frozenset({"gemmprof.reports.dataset.rows", "gemmprof.api.server"})
"""Modules of workers that read reports."""


class Reader:
    """A worker that reads, as far as `gemmprof.children.line_worker` asks for what `subprocess.Popen` is."""

    def __init__(self, module: str, messages: BinaryIO, env: Mapping[str, str]) -> None:
        given, stdin = os.pipe()
        stdout, told = os.pipe()
        self._ending, ending = os.pipe()
        self.stdin, self.stdout = os.fdopen(stdin, "wb", 0), os.fdopen(stdout, "rb", 0)
        files = told, messages.fileno(), given, ending
        _asked(files, words=(), cwd=Path.cwd(), env=env, load=[module], module=module)
        for file in (given, told, ending):
            os.close(file)
        self.pid, self.returncode = int(self._line()), None

    def _line(self) -> bytes:
        return b"".join(iter(lambda: os.read(self._ending, 1).strip(), b""))

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        if self.returncode is None and select.select([self._ending], [], [], 0)[0]:
            self.returncode = int(self._line())
            os.close(self._ending)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code."""
        if self.returncode is None:
            select.select([self._ending], [], [], timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired("a reader", timeout or 0.0)
        return self.returncode

    def kill(self) -> None:
        """End it at once."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class Subprocess:
    """What `gemmprof.children.line_worker` takes for the module ``subprocess``: readers are forked."""

    PIPE, TimeoutExpired = subprocess.PIPE, subprocess.TimeoutExpired

    def Popen(self, command: Sequence[str], **more: Any) -> Any:
        """The process."""
        if command[-1] not in READERS:
            return subprocess.Popen(command, **more)
        return Reader(command[-1], more["stderr"], more["env"])


def _asked(
    files: tuple[int, ...],
    *,
    words: Sequence[str | Path],
    cwd: Path,
    env: Mapping[str, str] | None,
    load: Sequence[str],
    module: str = "",
) -> tuple[int, int, float]:
    """What the process that has loaded the modules answers: of a module that begins, its process's number first."""
    job = {
        "load": load,
        "module": module,
        "words": [str(word) for word in words],
        "cwd": str(cwd),
        "env": dict(os.environ if env is None else env),
    }
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
    with _one_asks:  # readers are begun by threads
        link = _nursery()
        link.sendmsg([json.dumps(job).encode()], rights)
        first, memory, seconds = json.loads(link.recv(MOST_BYTES))
    return first, memory, seconds


_one_asks = threading.Lock()


@cache
def _nursery() -> socket.socket:
    """The process that has loaded the modules; it ends when this end of the connection is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(300)
    process = subprocess.Popen(
        [sys.executable, "-P", __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], cwd="/",
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    theirs.close()
    atexit.register(process.wait)  # what it used counts as the tests'
    atexit.register(ours.close)
    return ours


def _serve(link: socket.socket) -> int:
    """Answer requests until nobody is there to ask; in the processes that are forked, the exit code of the command."""
    for package in LOADED:
        home = importlib.import_module(f"gemmprof.{package}")
        for module in pkgutil.walk_packages(home.__path__, f"{home.__name__}."):
            if not module.name.endswith(("__main__", "pytest_plugin", "native_reader")):
                importlib.import_module(module.name)
    gc.freeze()  # what is there already is neither looked at nor copied
    begun: set[int] = set()
    while True:
        message, files, _, _ = socket.recv_fds(link, MOST_BYTES, 4)
        if not message:
            return 0
        begun = {child for child in begun if os.waitpid(child, os.WNOHANG) == (0, 0)}
        job = json.loads(message)
        for name in job["load"]:
            importlib.import_module(name)
        child = os.fork()
        if not child:
            link.close()
            if len(files) > 2:
                _hold(files)
            return _command(job, files)
        for file in files:
            os.close(file)
        if job["module"]:
            begun.add(child)
            link.send(json.dumps((child, 0, 0.0)).encode())
            continue
        _, status, used = os.wait4(child, 0)
        answer = os.waitstatus_to_exitcode(status), used.ru_maxrss, used.ru_utime + used.ru_stime
        link.send(json.dumps(answer).encode())


def _hold(files: list[int]) -> None:
    """Return in a child that reads from the third file; the fourth is told its number and how it ended."""
    given, ending = files[2:]
    if child := os.fork():
        for file in files[:3]:
            os.close(file)
        os.write(ending, f"{child}\n".encode())
        os.write(ending, f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())
        os._exit(0)
    os.dup2(given, 0)
    for file in (given, ending):
        os.close(file)
    del files[2:]


def _command(job: dict[str, Any], files: list[int]) -> int:
    """What a new process would be given, then the command."""
    for file, number in zip(files, (1, 2), strict=True):
        os.dup2(file, number)
        os.close(file)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    sys.argv = [job["module"] or "gemmprof", *job["words"]]
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if "dask" in sys.modules:  # it has read the environment of the process that it was loaded in
        sys.modules["dask"].config.refresh()
    if job["module"] in READERS:
        os.environ[MASTER] = str(os.getppid())
        runpy.run_module(job["module"], run_name="__main__", alter_sys=True)
        return 0
    if job["module"]:
        sys.modules[job["module"]].main()
        return 0
    from gemmprof.__main__ import entry

    return entry()


if __name__ == "__main__":
    sys.exit(_serve(socket.socket(fileno=int(sys.argv[1]))))
