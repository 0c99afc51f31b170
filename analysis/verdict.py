"""The verdict: one paragraph made of numbers about one kernel, and one word for tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a performance engineer would say first.

    Attributes:
        limited_by: one or two words for a table: ``FP32``, ``DRAM``, ``shared memory``, ``latency``,
            ``small grid``, ``unknown`` …
        closeness: sentence: how close to which limit.
        waiting: sentence: what the warps wait for; '' if not collected.
        advice: sentence: what to try; '' if there is nothing to say.
    """

    limited_by: str
    closeness: str
    waiting: str = ""
    advice: str = ""

    @property
    def paragraph(self) -> str:
        """All sentences."""
        return " ".join(sentence for sentence in (self.closeness, self.waiting, self.advice) if sentence)
