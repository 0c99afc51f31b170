"""The memory chart: what flows over every link between the kernel and device memory, and how well caches do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryUnit:
    """A box of the chart.

    Attributes:
        name: ``kernel``; the logical spaces ``global``, ``local``, ``texture``, ``surface``, ``shared``,
            ``distributed_shared``; the physical ``l1``, ``shared_memory``, ``l2``, ``device``, ``system``, ``peer``.
        title: name for people.
        hit_rate: per cent of the sectors found in this cache, None for what is no cache or was not collected.
        percent_of_peak: how busy the unit was, per cent of its peak, None if unknown.
    """

    name: str
    title: str
    hit_rate: float | None = None
    percent_of_peak: float | None = None


@dataclass(frozen=True, slots=True)
class MemoryLink:
    """Traffic in one direction between two boxes. A quantity that has no meaning or no counter is None.

    Attributes:
        source, target: names of the units; data or requests flow from source to target.
        label: what flows, for example ``loads`` or ``writes``.
        instructions: warp-level instructions.
        requests: requests at the L1 tag stage.
        bytes: bytes moved.
        bytes_per_second: bandwidth.
        percent_of_peak: per cent of the link's peak.
    """

    source: str
    target: str
    label: str
    instructions: float | None = None
    requests: float | None = None
    bytes: float | None = None
    bytes_per_second: float | None = None
    percent_of_peak: float | None = None

    @property
    def idle(self) -> bool:
        """True if every known quantity is zero: the link is there, nothing flowed."""
        known = (self.instructions, self.requests, self.bytes)
        return not any(known)


@dataclass(frozen=True, slots=True)
class MemoryChart:
    """All boxes and links of one launch; links whose counters were not collected are absent."""

    units: tuple[MemoryUnit, ...]
    links: tuple[MemoryLink, ...]
    not_collected: tuple[str, ...] = ()
    """Links that exist in the hardware but not in the report, as ``source→target``."""

    def unit(self, name: str) -> MemoryUnit | None:
        """The box with this name, or None."""
        return next((unit for unit in self.units if unit.name == name), None)

    def link(self, source: str, target: str, label: str | None = None) -> MemoryLink | None:
        """The first link between two boxes (with this label), or None."""
        for link in self.links:
            if (link.source, link.target) == (source, target) and label in (None, link.label):
                return link
        return None
