"""How a long command says where it is: bars on a terminal, a line an outcome in a pipe; on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID


def progress_on(console: Console, *, bars: bool, quiet: bool) -> PlainProgress | BarProgress:
    """Bars on this console, or plain lines (none with ``quiet``)."""
    return BarProgress(console) if bars else PlainProgress(quiet=quiet)


class PlainProgress:
    """One line an outcome on stderr."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def phase(self, name: str, steps: int) -> None:
        """A part begins."""
        if name != "build":
            self.note(f"{name}: {steps} steps")

    def step(self, text: str) -> None:
        """Nothing: a line an outcome is enough."""

    def done(self, text: str) -> None:
        """A step ended."""
        self.note(text)

    def advance(self) -> None:
        """Nothing: only a bar moves in silence."""

    def note(self, text: str) -> None:
        """Print a line."""
        if not self._quiet:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


class BarProgress:
    """A bar a phase, with the outcomes above it."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._bars = Progress(
            TextColumn("{task.description:<16}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[step]}"),
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

    def done(self, text: str) -> None:
        """Move the bar on and print the outcome above it."""
        self.note(text)
        self.advance()

    def advance(self) -> None:
        """Move the bar on."""
        if self._task is not None:
            self._bars.advance(self._task)

    def note(self, text: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(text)
