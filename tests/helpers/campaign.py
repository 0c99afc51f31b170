"""Processes that are killed and stopped at random, and what they leave behind."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path

MARK = "GEMMPROF_TEST_CAMPAIGN"

PATIENCE_SECONDS = 10.0
"""How long a process to hit is waited for."""


class Campaign:
    """Finds the processes of a test by a variable that they inherit, and hits them.

    Args:
        seed: of its dice.
    """

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.mark = uuid.uuid4().hex
        self.environment = {**os.environ, MARK: self.mark}
        self.killed = self.stopped = 0

    def processes(self) -> dict[int, str]:
        """Those that live: their command lines by number."""
        found = {}
        wanted = f"{MARK}={self.mark}".encode()
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                number = int(entry.name)
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    if (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                        continue
                    found[number] = (entry / "cmdline").read_text().replace("\0", " ")
        return found

    def hit(self, chosen: Callable[[str], bool] = lambda _: True, *, stop: float = 0.0) -> None:
        """Kill one of the chosen processes, or with the probability ``stop`` stop it for a moment."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not (found := [number for number, command in self.processes().items() if chosen(command)]):
            if time.monotonic() > end:
                return
            time.sleep(0.01)
        number = self.dice.choice(sorted(found))
        with contextlib.suppress(ProcessLookupError):
            if self.dice.random() < stop:
                os.kill(number, signal.SIGSTOP)
                time.sleep(self.dice.uniform(0.05, 0.3))
                os.kill(number, signal.SIGCONT)
                self.stopped += 1
            else:
                os.kill(number, signal.SIGKILL)
                self.killed += 1

    def orphans(self, seconds: float = 10.0) -> dict[int, str]:
        """Processes that still live when they had so long to end."""
        end = time.monotonic() + seconds
        while (found := self.processes()) and time.monotonic() < end:
            time.sleep(0.05)
        return found

    def end(self) -> None:
        """Kill what is left."""
        for number in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
