"""What long work tells while it goes on; the commands decide how it looks."""

from __future__ import annotations


class Progress:
    """Receives the course of the work; this one keeps it to itself."""

    def phase(self, name: str, steps: int) -> None:
        """A part begins: ``build``, ``verify``, ``time``, ``profile``, with so many steps."""

    def step(self, text: str) -> None:
        """What the current step is about; it has just begun."""

    def done(self, text: str) -> None:
        """One step of the phase ended, with this outcome."""
        self.note(text)
        self.advance()

    def advance(self) -> None:
        """One step ended without a word."""

    def note(self, text: str) -> None:
        """Something worth a line beside the steps."""


SILENT = Progress()
