"""Families: launches grouped by kernel and NVTX path, so that hundreds of launches read as a few lines.

Two launches belong to one family if their full demangled names and the NVTX ranges around them are the same. Times are
what ncu measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from gemmprof import metrics as m
from gemmprof.analysis.inputs.names import labels
from gemmprof.base.brief import brief, percent_words, time_words

if TYPE_CHECKING:
    from gemmprof.analysis.kernel_analysis import KernelAnalysis
    from gemmprof.model import Finding


@dataclass(frozen=True, slots=True)
class Family:
    """The launches of one kernel within one NVTX path. Names are untrusted text.

    Attributes:
        name: the full demangled name.
        label: the name without what all kernels of the session share (`analysis.names`).
        nvtx: the NVTX ranges around the launches, outermost first.
        members: positions of the launches in ``session.kernels``, in the order of profiling.
        representative: the member that took longest, which is the one to look at.
        total_ns: the members' time in all; None where no duration was collected.
        share: of the time of all families, 0 to 1; None where that is not known.
        shortest_ns, median_ns, longest_ns: of one launch.
        grids: the different grids, each once.
        worst: what saves most in the representative, None where nothing is worth its work.
    """

    name: str
    label: str
    nvtx: tuple[str, ...]
    members: tuple[int, ...]
    representative: int
    total_ns: float | None = None
    share: float | None = None
    shortest_ns: float | None = None
    median_ns: float | None = None
    longest_ns: float | None = None
    grids: tuple[tuple[int, int, int], ...] = ()
    worst: Finding | None = None

    def __repr__(self) -> str:
        launches = f"{self.count:,} launch{'' if self.count == 1 else 'es'}"
        saves = (
            f"{self.worst.cause} saves {percent_words(self.worst.saves)}" if self.worst is not None else ""
        )
        share = f"{percent_words(self.share)} of the time" if self.share is not None else ""
        return brief(
            self, "/".join((*self.nvtx, self.label)), launches, time_words(self.total_ns), share, saves
        )

    @property
    def count(self) -> int:
        """Number of launches."""
        return len(self.members)

    @property
    def spread(self) -> float | None:
        """The longest launch over the shortest; None for a single launch or without durations."""
        if self.count < 2 or not self.shortest_ns or self.longest_ns is None:
            return None
        return self.longest_ns / self.shortest_ns

    @property
    def saves_ns(self) -> float | None:
        """Time that mending `worst` would save in all launches, if each is like the representative."""
        return None if self.worst is None or self.total_ns is None else self.worst.saves * self.total_ns

    @property
    def path(self) -> str:
        """The NVTX ranges as one text, outermost first."""
        return "/".join(self.nvtx)


def families(kernels: Sequence[KernelAnalysis]) -> tuple[Family, ...]:
    """The families of these launches, those that took most time in all first."""
    shown = labels(kernel.profile.name for kernel in kernels)
    members: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for position, kernel in enumerate(kernels):
        members.setdefault((kernel.profile.name, kernel.profile.nvtx), []).append(position)
    durations = [kernel.profile.number(m.DURATION) for kernel in kernels]
    all_ns = sum(duration for duration in durations if duration is not None)
    found = [
        _family(kernels, name, shown[name], nvtx, positions, durations, all_ns)
        for (name, nvtx), positions in members.items()
    ]
    return tuple(sorted(found, key=lambda family: (-(family.total_ns or 0.0), family.members[0])))


def _family(
    kernels: Sequence[KernelAnalysis],
    name: str,
    label: str,
    nvtx: tuple[str, ...],
    positions: Sequence[int],
    durations: Sequence[float | None],
    all_ns: float,
) -> Family:
    known = {position: duration for position in positions if (duration := durations[position]) is not None}
    total = sum(known.values()) if known else None
    representative = max(known, key=lambda position: known[position]) if known else positions[0]
    findings = kernels[representative].explanation.findings
    return Family(
        name=name,
        label=label,
        nvtx=nvtx,
        members=tuple(positions),
        representative=representative,
        total_ns=total,
        share=total / all_ns if total is not None and all_ns > 0 else None,
        shortest_ns=min(known.values(), default=None),
        median_ns=median(known.values()) if known else None,
        longest_ns=max(known.values(), default=None),
        grids=tuple(dict.fromkeys(kernels[position].profile.launch.grid for position in positions)),
        worst=findings[0] if findings else None,
    )


def covering(found: Iterable[Family], share: float) -> tuple[Family, ...]:
    """The first families that together hold at least this share of the time (0 to 1); all where times are unknown."""
    kept: list[Family] = []
    held = 0.0
    for family in found:
        kept.append(family)
        held += family.share or 0.0
        if held >= share:
            break
    return tuple(kept)
