"""What a cause says of a launch before its worth is known: what is wrong, where, and what fixing it takes away."""

from __future__ import annotations

from dataclasses import dataclass, field

from gemmprof.analysis.explanation.demands.time_model import Fix
from gemmprof.analysis.explanation.demands.work import Array
from gemmprof.model import Evidence

# Ranks of names: a cause in the code or the launch, a latency that nothing hides, too few warps whatever the
# reason, an order of work that might be better.
SPECIFIC, LATENCY, ANY_WARPS, ORDER = 3, 2, 1, 0


@dataclass(frozen=True)
class Variant:
    """One way to write it instead.

    Attributes:
        name: what is written instead, in a few words and with its parameters (``registers, 4 outputs a thread``).
        fix: all that it changes.
        change: what to try, one plain sentence; '' for the candidate's own.
        known: saving with its 80 % interval where it was measured elsewhere, so that no model is asked.
        up_to: the change may bring less, down to nothing: the interval begins at 0.
        most: share of the time that has no reason to stay where it is changed: the warps' time in what it touches.
        exact: the arithmetic and its precision stay. What changes them stands in a list of its own.
        plain: the sentence says what Triton's programmers change, too, with ``[block|program]`` for what they call it.
        of_threads: it deals out work to other threads, which Triton does by itself.
        counted: resources of which all that stays is counted, whatever else is rewritten: it takes its time.
    """

    name: str
    fix: Fix
    change: str = ""
    exact: bool = True
    known: tuple[float, float, float] | None = None
    up_to: bool = False
    most: float = 1.0
    plain: bool = False
    of_threads: bool = False
    counted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A flaw that was found, not yet weighed.

    Attributes:
        cause: key of `CAUSES`.
        variants: the ways to be rid of it, at least one. The one that saves most stands for the finding.
        change: what to try, one plain sentence.
        evidence: the numbers that it rests on.
        attributed: share of the flaw by instruction; None for a flaw of the launch.
        least: the cause is not a finding below this share of the time.
        rank: a general name for the same loss (``low_occupancy`` beside ``memory_latency``) steps behind a
            more specific one, as another way to the same.
        yields: ... where that one saves this share of it.
        another_arithmetic: whatever is written instead computes something else, or less precisely: a list of its own.
    """

    cause: str
    variants: tuple[Variant, ...]
    change: str
    evidence: tuple[Evidence, ...] = ()
    attributed: Array | None = field(default=None, repr=False)
    least: float = 0.02
    rank: int = SPECIFIC
    yields: float = 0.55
    another_arithmetic: bool = False

    @property
    def fix(self) -> Fix:
        """What the first variant changes."""
        return self.variants[0].fix


def derived(metric: str, value: float, unit: str = "") -> Evidence:
    """A number that follows from several metrics or from the SASS; ``metric`` says in words or by names how."""
    return Evidence(metric, float(value), unit)
