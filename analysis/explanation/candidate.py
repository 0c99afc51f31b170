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
    """One way to write it instead."""

    name: str  # what is written instead, in a few words and with its parameters (``registers, 4 outputs a thread``)
    fix: Fix  # all that it changes
    change: str = ""  # what to try, one plain sentence; '' for the candidate's own
    exact: bool = True  # the arithmetic and its precision stay; what changes them stands in a list of its own
    # saving with its 80 % interval where it was measured elsewhere, so that no model is asked
    known: tuple[float, float, float] | None = None
    up_to: bool = False  # the change may bring less, down to nothing: the interval begins at 0
    most: float = 1.0  # share of the time that has no reason to stay: the warps' time in what it touches
    bound: float = 1.0  # share of the time beyond which it saves nothing, whatever the model says
    # the sentence says what Triton's programmers change, too, with ``[block|program]`` for what they call it
    plain: bool = False
    of_threads: bool = False  # it deals out work to other threads, which Triton does by itself
    counted: tuple[str, ...] = ()  # resources of which all that stays is counted, whatever else is rewritten


@dataclass(frozen=True)
class Candidate:
    """A flaw that was found, not yet weighed."""

    cause: str  # key of `CAUSES`
    variants: tuple[
        Variant, ...
    ]  # ways to be rid of it, at least one; the one that saves most stands for the finding
    change: str = ""  # what to try, one plain sentence; '' for what the first variant says
    evidence: tuple[Evidence, ...] = ()  # the numbers that it rests on
    attributed: Array | None = field(
        default=None, repr=False
    )  # share by instruction; None for a flaw of the launch
    least: float = 0.02  # the cause is not a finding below this share of the time
    # a general name for the same loss (``low_occupancy`` beside ``memory_latency``) steps behind a more specific one,
    # as another way to the same, where that one saves the share ``yields`` of it
    rank: int = SPECIFIC
    yields: float = 0.55
    another_arithmetic: bool = False  # what is written instead computes something else, or less precisely

    def __post_init__(self) -> None:
        if not self.change:
            object.__setattr__(self, "change", self.variants[0].change)

    @property
    def fix(self) -> Fix:
        """What the first variant changes."""
        return self.variants[0].fix


def derived(metric: str, value: float, unit: str = "") -> Evidence:
    """A number that follows from several metrics or from the SASS; ``metric`` says in words or by names how."""
    return Evidence(metric, float(value), unit)
