"""The only home of Nsight Compute metric names, and of which sections collect them.

An analysis reads one `MetricGroup`; ``collect`` asks ncu for the union of all groups (`collection_options`). Names
that exist only on some architectures stand under ``optional``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gemmprof.model import NotCollected


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """The metrics of one analysis.

    Attributes:
        sections: ncu section identifiers that collect the group.
        required: without all of these the analysis has no result.
        optional: used where present.
        requested: metrics that no section lists, to be asked for by name.
    """

    sections: tuple[str, ...]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    requested: tuple[str, ...] = ()

    @property
    def remedy(self) -> str:
        """The ncu options that collect the group."""
        options = [f"--section {section}" for section in self.sections]
        if self.requested:
            options.append("--metrics " + ",".join(self.requested))
        return " ".join(options)

    def missing(self, present: Iterable[str]) -> NotCollected | None:
        """`NotCollected` naming the required metrics that are not in ``present``; None if all are there."""
        have = set(present)
        absent = tuple(name for name in self.required if name not in have)
        return NotCollected(absent, self.remedy) if absent else None


# Speed of light
DURATION = "gpu__time_duration.sum"
SM_THROUGHPUT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_THROUGHPUT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
L1_THROUGHPUT = "l1tex__throughput.avg.pct_of_peak_sustained_active"
L2_THROUGHPUT = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
DRAM_THROUGHPUT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
ELAPSED_CYCLES = "gpc__cycles_elapsed.max"
SM_ACTIVE_CYCLES = "sm__cycles_active.avg"
SM_CLOCK = "gpc__cycles_elapsed.avg.per_second"
DRAM_CLOCK = "dram__cycles_elapsed.avg.per_second"
BREAKDOWN_SM = "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed"
BREAKDOWN_MEMORY = "breakdown:gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"

SPEED_OF_LIGHT = MetricGroup(
    sections=("SpeedOfLight",),
    required=(SM_THROUGHPUT, MEMORY_THROUGHPUT),
    optional=(
        DURATION,
        L1_THROUGHPUT,
        L2_THROUGHPUT,
        DRAM_THROUGHPUT,
        ELAPSED_CYCLES,
        SM_ACTIVE_CYCLES,
        SM_CLOCK,
        DRAM_CLOCK,
        BREAKDOWN_SM,
        BREAKDOWN_MEMORY,
    ),
)

GROUPS: dict[str, MetricGroup] = {
    "speed_of_light": SPEED_OF_LIGHT,
}
"""Every group by the name of the analysis that reads it."""


def collection_options(groups: Iterable[MetricGroup] | None = None) -> tuple[str, ...]:
    """ncu options (sections and metrics, each once) that collect the union of the groups (default: all)."""
    chosen = list(GROUPS.values() if groups is None else groups)
    sections = dict.fromkeys(section for group in chosen for section in group.sections)
    names = dict.fromkeys(name for group in chosen for name in group.requested)
    options = [word for section in sections for word in ("--section", section)]
    return (*options, "--metrics", ",".join(names)) if names else tuple(options)


def readable(name: str) -> str:
    """A metric name in words, as ncu's breakdown tables write it: ``SM: Inst Executed Pipe Lsu``."""
    unit, _, rest = name.removeprefix("breakdown:").partition("__")
    quantity = rest.partition(".")[0]
    return f"{unit.upper()}: {quantity.replace('_', ' ').title()}" if quantity else name
