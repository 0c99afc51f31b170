"""What a collection tells while it works; the commands decide how it looks."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives the course of a collection."""

    def phase(self, name: str, steps: int) -> None:
        """A part begins: ``build``, ``verify``, ``time``, ``profile``, with so many steps."""

    def step(self, text: str) -> None:
        """What the current step is about; it has just begun."""

    def done(self, text: str) -> None:
        """One step of the phase ended, with this outcome."""

    def note(self, text: str) -> None:
        """Something worth a line beside the steps."""


class Silent:
    """Tells nothing."""

    def phase(self, name: str, steps: int) -> None:
        """Ignore."""

    def step(self, text: str) -> None:
        """Ignore."""

    def done(self, text: str) -> None:
        """Ignore."""

    def note(self, text: str) -> None:
        """Ignore."""
