"""How a long command says where it is, and how long it will take: bars on a terminal, lines in a pipe; on stderr."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from gemmprof.base.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID


def progress_on(console: Console, *, bars: bool, quiet: bool) -> PlainProgress | BarProgress:
    """Bars on this console, or plain lines (none with ``quiet``)."""
    return BarProgress(console) if bars else PlainProgress(quiet=quiet)


ESTIMATE_SECONDS = 15.0  # how often a pipe hears how much is left


class PlainProgress(Progress):
    """One line an outcome on stderr, and now and then one about what is left."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._steps = self._done = 0
        self._begun = self._told = time.monotonic()

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def phase(self, name: str, steps: int) -> None:
        """A part begins."""
        self._steps, self._done = steps, 0
        self._begun = self._told = time.monotonic()
        if name != "build":
            self.note(f"{name}: {steps} steps")

    def advance(self) -> None:
        """Count the step; say what is left if that was not said for a while."""
        self._done += 1
        now = time.monotonic()
        if now - self._told >= ESTIMATE_SECONDS and self._done < self._steps:
            self._told = now
            left = (now - self._begun) / self._done * (self._steps - self._done)
            self.note(f"{self._done} of {self._steps}, about {left:.0f} s left")

    def note(self, text: str) -> None:
        """Print a line."""
        if not self._quiet:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


class BarProgress(Progress):
    """A bar a phase, with the outcomes above it."""

    def __init__(self, console: Console) -> None:
        from rich import progress as rich

        self._bars = rich.Progress(
            rich.TextColumn("{task.description:<16}"),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            rich.TimeElapsedColumn(),
            rich.TimeRemainingColumn(),
            rich.TextColumn("{task.fields[step]}"),
            console=console,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> BarProgress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def phase(self, name: str, steps: int) -> None:
        """Start a bar."""
        if self._task is not None:
            self._bars.update(self._task, step="")
        self._task = self._bars.add_task(name, total=steps, step="")

    def step(self, text: str) -> None:
        """Name the step at hand beside the bar."""
        if self._task is not None:
            self._bars.update(self._task, step=text)

    def advance(self) -> None:
        """Move the bar on."""
        if self._task is not None:
            self._bars.advance(self._task)

    def note(self, text: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(text)
