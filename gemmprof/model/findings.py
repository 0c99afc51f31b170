"""What holds a launch back, where, and what fixing it would bring."""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof.base.amounts import brief, nanoseconds, ratio


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number that a finding rests on: a metric of the report, or what was derived from several, named in words."""

    metric: str
    value: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class CodePlace:
    """Where a finding sits, with its share of the finding (0 to 1).

    Attributes:
        file, line: the user's own line; None without line information.
        share: of the finding's weight.
        text: the line of source, '' where the report carries none; untrusted.
        address, sass: the heaviest instruction of the place.
        inlined: ``file:line`` from the innermost header line outwards, where the code was inlined there.
    """

    file: str | None
    line: int | None
    share: float
    text: str = ""
    address: int | None = None
    sass: str = ""
    inlined: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One way to change what a finding names, and what it would bring.

    Attributes:
        name: what is written instead, in a few words.
        saves: predicted share of the launch's time, 0 to 1.
        saves_low, saves_high: 80 % interval of it.
        same_arithmetic: it computes the same to the same precision.
    """

    name: str
    saves: float
    saves_low: float
    saves_high: float
    same_arithmetic: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause that holds a launch back, and what fixing it alone would bring.

    Attributes:
        cause: key of ``analysis.explanation.causes.CAUSES``.
        saves: predicted share of the launch's time, 0 to 1: of the best of its variants.
        saves_low, saves_high: 80 % interval of it.
        places: where it sits, heaviest first.
        evidence: the numbers that it rests on.
        change: what to try, one sentence.
        variants: the ways to change it, the best first.
        another_way_to: cause of a finding before it that saves the same loss, '' where it is a loss of its own.
    """

    cause: str
    saves: float
    saves_low: float
    saves_high: float
    places: tuple[CodePlace, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    change: str = ""
    variants: tuple[Rewrite, ...] = ()
    another_way_to: str = ""


@dataclass(frozen=True, slots=True)
class AtLimit:
    """A resource and the share of its practical rate that is in use, or of the time that it would need alone."""

    resource: str
    share: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What to change first in one launch, and how far to trust that.

    Attributes:
        launch: position of the launch in its report.
        report: path of the report as the user gave it.
        name: the kernel's demangled name, untrusted text.
        nvtx: NVTX ranges around it, outermost first, untrusted text.
        duration_ns: under the profiler; None if not collected.
        trust: what makes the numbers doubtful, a sentence each.
        at_limit: set where no finding is worth its work and a resource does at least nine tenths of what it can.
        findings: most saved first.
        together: predicted share of the time that fixing all findings saves; None for fewer than two.
        limit: the resource that bounds the launch as it is, with its share, known or None.
        traffic: the memory that needs longest for what the launch moves, at the rate that it reaches in practice, and
            that time as a share of the launch's: the floor as long as no byte less is moved. None without findings.
        other_arithmetic: what only another arithmetic or a lower precision would save, most saved first.
        time: what the launch's time consists of: the resources that would need most of it alone, and the warps' waits
            that nothing hides.
        levers: what can be changed about the call besides, a sentence each: what it brings is not known from here.
    """

    launch: int
    report: str
    name: str
    nvtx: tuple[str, ...]
    duration_ns: float | None
    trust: tuple[str, ...]
    at_limit: AtLimit | None
    findings: tuple[Finding, ...]
    together: float | None = None
    limit: AtLimit | None = None
    traffic: AtLimit | None = None
    other_arithmetic: tuple[Finding, ...] = ()
    time: tuple[AtLimit, ...] = ()
    levers: tuple[str, ...] = ()

    @property
    def floor_ns(self) -> float | None:
        """How long the launch takes at least as long as it moves what it moves; None where that is not known."""
        if self.traffic is None or self.duration_ns is None:
            return None
        return self.traffic.share * self.duration_ns

    def __repr__(self) -> str:
        causes = [f"{one.cause} saves {ratio(one.saves, 0)}" for one in self.findings]
        return brief(
            self,
            self.name,
            f"launch {self.launch}",
            nanoseconds(self.duration_ns),
            *(causes or ["no finding"]),
        )
