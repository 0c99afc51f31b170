"""Families: launches grouped so that hundreds read as a few lines. Home of their key, id, name, order and count.

Two launches belong to one family if their report and their `KernelProfile.family` (full name, grid, block, shared
memory, NVTX ranges) are the same; nothing is folded beyond that. A family's id (``#3``) is its rank by time among *all*
families that were opened, whatever of them is selected, so it is known before anything is analysed and means the same
everywhere.
Families are listed by what there is to gain: their time × what the first finding saves. Times are what ncu measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from gemmprof.analysis.inputs.names import Owner, labels, owner_of
from gemmprof.base.amounts import brief, nanoseconds, ratio
from gemmprof.base.spread import grouped
from gemmprof.metrics import DURATION
from gemmprof.model import Explanation, FamilyKey, Finding, KernelProfile, Source

Place = tuple[str, int]  # a launch: path of its report, position in it

LEAST = 0.01  # share of the time of all launches below which a gain is not worth a line


@dataclass(frozen=True, slots=True)
class Identity:
    """What a launch's family is called: its number and the one spelling of its kernel's name (untrusted text)."""

    number: int
    label: str
    apart: tuple[str, ...] = ()  # what tells the family from others of its name: grid, block … as they differ


@dataclass(frozen=True, slots=True)
class Census:
    """Every launch of what was opened, selected or not."""

    of: Mapping[Place, Identity]  # identity by path of the report and position
    total_ns: float = 0.0  # time of all launches; 0 where no duration was collected


def census(profiles: Iterable[KernelProfile]) -> Census:
    """Count and name the families of these launches, which must be all that was opened."""
    found: dict[tuple[str, FamilyKey], list[Place]] = {}
    time: dict[tuple[str, FamilyKey], float] = {}
    names: dict[str, list[str]] = {}
    for profile in profiles:
        report = profile.report
        key = (report, profile.family)
        found.setdefault(key, []).append((report, profile.index))
        time[key] = time.get(key, 0.0) + (profile.number(DURATION) or 0.0)
        names.setdefault(report, []).append(profile.name)
    # A name is spelled as in its own report, so that it does not depend on what else was opened.
    spelled = {report: labels(of_report) for report, of_report in names.items()}
    differs = {report: _told_apart(keys) for report, keys in grouped(found).items()}
    reports = Counter(family for _, family in found)
    of: dict[Place, Identity] = {}
    for number, (report, family) in enumerate(sorted(found, key=lambda key: -time[key]), 1):
        where = [f"from {Path(report).name}"] * (reports[family] > 1)
        one = Identity(number, spelled[report][family.name], (*differs[report][family], *where))
        of.update(dict.fromkeys(found[report, family], one))
    return Census(of, sum(time.values()))


_APART: dict[str, Callable[[str], str]] = {
    "grid": lambda grid: grid if grid != "0x0x0" else "of no known grid",  # ncu could not profile it
    "block": "block {}".format,
    "shared_memory": lambda size: f"shared {size or 'unknown'}",
    "nvtx": lambda path: f"in {path or 'no range'}",
}
"""What families of one name differ in, in words, what is looked at first in front."""


def _told_apart(keys: Iterable[FamilyKey]) -> dict[FamilyKey, list[str]]:
    """What must be named beside the kernel, where one name has several families: only what differs."""
    found: dict[FamilyKey, list[str]] = {key: [] for key in keys}
    alike = [*grouped((key.name, key) for key in found).values()]
    for field, words in _APART.items():
        parts = [grouped((getattr(key, field), key) for key in group) for group in alike]
        for by_value in parts:
            for value, members in by_value.items() if len(by_value) > 1 else ():
                for key in members:
                    found[key].append(words(value))
        alike = [members for by_value in parts for members in by_value.values()]
    return found


def without_values(profile: KernelProfile) -> KernelProfile:
    """A launch with no more than `census` looks at, for reports whose launches are not kept."""
    duration = {name: value for name, value in profile.metrics.items() if name == DURATION}
    return replace(profile, metrics=duration, units={}, instances={}, rules=(), source=Source())


@dataclass(frozen=True, slots=True)
class Family:
    """The launches of one kernel, grid, block, shared memory and NVTX path in one report. Names are untrusted text."""

    number: int  # rank by time among all families of what was opened, from 1
    report: str  # path of the report
    name: str  # the full demangled name
    label: str  # the one spelling of the name for people (`analysis.inputs.names`)
    apart: tuple[str, ...]  # what tells it from others of its name, in words
    grid: tuple[int, int, int]  # blocks in x, y, z
    block: tuple[int, int, int]  # threads in x, y, z
    shared_memory: int  # static and dynamic, bytes a block
    nvtx: tuple[str, ...]  # the NVTX ranges around the launches, outermost first
    members: tuple[int, ...]  # positions of the launches in ``session.kernels``, in the order of profiling
    representative: int  # the member that took longest, which is the one to look at
    owner: Owner  # whose code the kernel is
    total_ns: float | None = None  # the members' time in all; None where no duration was collected
    # of the time of all launches that were opened, 0 to 1; None where that is not known
    share: float | None = None
    shortest_ns: float | None = None  # shortest_ns, median_ns, longest_ns: of one launch
    median_ns: float | None = None
    longest_ns: float | None = None
    # what saves most in the representative, None where nothing is worth its work
    worst: Finding | None = None

    def __repr__(self) -> str:
        launches = f"{self.count:,} launch{'' if self.count == 1 else 'es'}"
        saves = f"{self.worst.cause} saves {ratio(self.worst.saves, 0)}" if self.worst is not None else ""
        share = f"{ratio(self.share, 0)} of the time" if self.share is not None else ""
        name = "/".join((*self.nvtx, self.label))
        return brief(self, f"{self.id} {name}", launches, nanoseconds(self.total_ns), share, saves)

    @property
    def id(self) -> str:
        """What to type for it wherever launches are chosen: ``#3``."""
        return f"#{self.number}"

    @property
    def title(self) -> str:
        """Its name, with what tells it from others of that name: ``gemm<128> 64x1x1``."""
        return " ".join((self.label, *self.apart))

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
        """Time that fixing `worst` would save in all launches, if each is like the representative."""
        return None if self.worst is None or self.total_ns is None else self.worst.saves * self.total_ns

    @property
    def leading_ns(self) -> float:
        """The same where it is worth a line among all that was opened, else 0: what `by_gain` goes by."""
        saves = self.saves_ns or 0.0
        return saves if saves >= LEAST * (self.total_ns or 0.0) / (self.share or 1.0) else 0.0

    @property
    def path(self) -> str:
        """The NVTX ranges as one text, outermost first."""
        return "/".join(self.nvtx)

    def explained(self, explanation: Explanation | None) -> Family:
        """The same with what saves most in its representative."""
        losses = explanation.losses if explanation is not None else ()
        return replace(self, worst=losses[0][0]) if losses else self


def families(
    profiles: Sequence[KernelProfile], known: Census, positions: Iterable[int] | None = None
) -> tuple[Family, ...]:
    """The families of these launches (or of those at these positions), most time first; nothing is explained.

    `Family.members` are positions among the profiles; what is known is of all launches that were opened with them.
    """
    chosen = range(len(profiles)) if positions is None else positions
    places = ((at, (profiles[at].report, profiles[at].index)) for at in chosen)
    members = grouped((known.of[place].number, at) for at, place in places)
    found = [_family(profiles, known, positions) for positions in members.values()]
    return tuple(sorted(found, key=lambda family: (-(family.total_ns or 0.0), family.number)))


def _family(profiles: Sequence[KernelProfile], known: Census, positions: Sequence[int]) -> Family:
    times = {at: found for at in positions if (found := profiles[at].number(DURATION)) is not None}
    total = sum(times.values()) if times else None
    representative = max(times, key=lambda position: times[position]) if times else positions[0]
    profile = profiles[representative]
    identity = known.of[profile.report, profile.index]
    launch = profile.launch
    return Family(
        number=identity.number,
        report=profile.report,
        name=profile.name,
        label=identity.label,
        apart=identity.apart,
        grid=launch.grid,
        block=launch.block,
        shared_memory=(launch.static_shared_memory or 0) + (launch.dynamic_shared_memory or 0),
        nvtx=profile.nvtx,
        members=tuple(positions),
        representative=representative,
        owner=owner_of(profile),
        total_ns=total,
        share=total / known.total_ns if total is not None and known.total_ns > 0 else None,
        shortest_ns=min(times.values(), default=None),
        median_ns=median(times.values()) if times else None,
        longest_ns=max(times.values(), default=None),
    )


def by_gain(found: Iterable[Family]) -> tuple[Family, ...]:
    """The one order in which families are listed: the most to gain first, then the most time.

    A gain of less than `LEAST` of the whole time does not go before what takes longer.
    """
    return tuple(sorted(found, key=lambda one: (-one.leading_ns, -(one.total_ns or 0.0), one.number)))
