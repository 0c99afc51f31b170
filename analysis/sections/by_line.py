"""Joins per-instruction metrics with SASS and CUDA lines: by absolute address, never by position.

Nsight Compute stores each source metric with its own list of addresses, and the lists of two metrics differ in
length. Lines are keyed by (file, line), so that line 12 of a header and line 12 of the kernel stay two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, TypeVar

from gemmprof import metrics
from gemmprof.analysis import opcodes
from gemmprof.analysis.figure import declared
from gemmprof.analysis.figure import total as sum_of
from gemmprof.analysis.reading.line_table import Call
from gemmprof.base.spread import grouped
from gemmprof.model import Instruction, KernelProfile


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the code: one SASS instruction, or one CUDA line with all its instructions."""

    addresses: tuple[int, ...]  # absolute PCs, ascending; one for an instruction
    sass: str = ""  # text of the instruction; '' for a line of several instructions
    # path on the machine that compiled the kernel, untrusted; None without line information
    file: str | None = None
    line: int | None = None  # 1-based line number in ``file``
    text: str = ""  # the CUDA source of the line, untrusted; '' if the report carries none

    def total(self, values: Mapping[int, int] | None) -> int | None:
        """Sum of the values at its addresses (one without a value counts 0); None if not collected."""
        return None if values is None else sum_of(values, self.addresses)

    @property
    def label(self) -> str:
        """Short name: ``kernel.cu:42``, else the address."""
        if self.file is None or self.line is None:
            return f"0x{self.addresses[0]:x}" if self.addresses else "unknown"
        return f"{base_name(self.file)}:{self.line}"


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted at one instruction, or at one line with all its instructions: metrics by address.

    A figure whose type has no None was counted wherever there is a row at all.
    """

    place: Place
    # ``load``, ``store``, ``atomic``, ``async_copy`` or '' (unknown, several, or no memory)
    operation: str = ""

    @property
    def label(self) -> str:
        """Where it stands."""
        return self.place.label


Found = TypeVar("Found", bound=Counted)


def ranked(
    profile: KernelProfile, kind: type[Found], count: str, *weights: str
) -> tuple[tuple[Found, ...], tuple[Found, ...]]:
    """What was counted at each instruction with a ``count`` above 0, and at each CUDA line; the heaviest by the figures
    ``weights`` first. Both are empty where a figure that a row must have was not collected by instruction.
    """
    metric = {name: item.names for name, item in declared(kind).items() if item.of}
    columns = {name: first_by_address(profile, names) for name, names in metric.items()}
    if any(columns[field.name] is None for field in fields(kind) if field.type == "int"):
        return (), ()
    code, codes = Code(profile), by_address(profile, metrics.ACCESS_TYPE_BY_ADDRESS)
    touching = [address for address, executions in (columns[count] or {}).items() if executions]

    def made(place: Place) -> Found:
        values: dict[str, Any] = {name: place.total(column) for name, column in columns.items()}
        return kind(place, operation_of(codes, place.addresses), **values)

    def heat(one: Found) -> tuple[object, ...]:
        # Of equals the one that stands first in the code, so that the order is the same in every run.
        return (*(-getattr(one, name) for name in weights), one.place.addresses)

    instructions, lines = map(made, map(code.place, touching)), map(made, code.lines(touching))
    return tuple(sorted(instructions, key=heat)), tuple(sorted(lines, key=heat))


def whole(profile: KernelProfile, metric: str) -> int | None:
    """The sum of a source metric over all instructions; None if it was not collected."""
    counts = by_address(profile, metric)
    return None if counts is None else sum_of(counts)


def kinds_counted(profile: KernelProfile, names: Mapping[str, str]) -> frozenset[str]:
    """The kinds of access whose metric the report has: one that did not occur is 0 then."""
    return frozenset(kind for kind, name in names.items() if profile.number(name) is not None)


def base_name(path: str) -> str:
    """Last part of a path from a Linux or a Windows machine."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


_MOST = 1 << 64


def by_address(profile: KernelProfile, metric: str) -> dict[int, int] | None:
    """The instance values of a source metric by absolute address; None if it was not collected per instruction.

    A metric that was collected and touched no instruction has the scalar 0 and no instances in the report: that is
    an empty dictionary here.
    """
    instances = profile.instances.get(metric)
    if instances is None:
        return profile.named({}, metric) if profile.metrics.get(metric) == 0 else None
    if {*map(type, instances.keys), *map(type, instances.values)} <= {int}:
        found: dict[int, int] = dict(zip(instances.keys, instances.values, strict=True))  # type: ignore[arg-type]
        return profile.named(found, metric)
    # A damaged report may hold NaN where a count should be, or more than any counter of 64 bits.
    found = {
        int(key): int(value)
        for key, value in instances.items()
        if not isinstance(key, str) and not isinstance(value, str) and abs(value) < _MOST and abs(key) < _MOST
    }
    return profile.named(found, metric)


def constants_set(profile: KernelProfile, metric: str) -> int | None:
    """How often (by this count per instruction) a half-precision multiply-add only set a register to a constant.

    None where the report does not say which instructions were executed.
    """
    counts = by_address(profile, metric)
    if counts is None or not profile.source.instructions:
        return None
    code = profile.source.instructions
    halves = ((one.address, opcodes.parse(one.sass)) for one in code if "HFMA2" in one.sass)
    return sum_of(counts, [address for address, sass in halves if sass.moves_a_constant])


def first_by_address(profile: KernelProfile, names: Iterable[str]) -> dict[int, int] | None:
    """`by_address` of the first of several names for one quantity that the report has."""
    return next((values for name in names if (values := by_address(profile, name)) is not None), None)


class Code:
    """The instructions and lines of one launch, looked up by address."""

    def __init__(self, profile: KernelProfile) -> None:
        self._instructions: Mapping[int, Instruction] = {i.address: i for i in profile.source.instructions}
        self._files = profile.source.files
        self._lines: dict[str, list[str]] = {}

    def line_text(self, file: str | None, line: int | None) -> str:
        """The CUDA source of a line without surrounding blanks, '' if the report carries none."""
        if file is None or line is None or not self._files.get(file):
            return ""
        if file not in self._lines:
            self._lines[file] = self._files[file].split("\n")
        lines = self._lines[file]
        return lines[line - 1].strip() if 1 <= line <= len(lines) else ""

    def place(self, address: int) -> Place:
        """The instruction at this address; without source, a place that knows its address only."""
        if (instruction := self._instructions.get(address)) is None:
            return Place((address,))
        text = self.line_text(instruction.file, instruction.line)
        return Place((address,), instruction.sass, instruction.file, instruction.line, text)

    def lines(self, addresses: Iterable[int]) -> tuple[Place, ...]:
        """The CUDA lines of these instructions in file and line order; those without line information left out."""
        code = ((address, self._instructions.get(address)) for address in addresses)
        placed = (((one.file, one.line), address) for address, one in code if one is not None)
        groups = grouped(
            ((file, line), at) for (file, line), at in placed if file is not None and line is not None
        )
        found = ((tuple(sorted(group)), "", *place) for place, group in sorted(groups.items()))
        return tuple(Place(*facts, self.line_text(*facts[2:])) for facts in found)


# Bits of ncu's ``memory_type``; an asynchronous copy carries two of them.
MEMORY_SPACES = {4: "global", 8: "local", 16: "shared"}

# Bits of ncu's ``memory_access_type``; a reduction carries none.
ACCESS_OPERATIONS = {2: "load", 4: "store", 8: "atomic"}


def flags(code: int | None, names: Mapping[int, str]) -> tuple[str, ...]:
    """The names of the bits that are set in a code of the report; () for None."""
    return () if code is None else tuple(name for bit, name in names.items() if code & bit)


def operation_of(codes: Mapping[int, int] | None, addresses: Iterable[int]) -> str:
    """What all these instructions do: ``load``, ``store``, ``atomic`` or ``async_copy``; '' if several or unknown.

    An asynchronous copy (LDGSTS) carries the bits of a load and of a store.
    """
    if codes is None:
        return ""
    kinds = {flags(codes.get(address), ACCESS_OPERATIONS) for address in addresses}
    if len(kinds) != 1:
        return ""
    names = kinds.pop()
    return "async_copy" if names == ("load", "store") else "".join(names[:1])


_TOOLKIT = re.compile(
    r"/(?:cuda(?:-[\d.]+)?|cccl|hpc_sdk)/(?:[^/]+/)*include/|/targets/[\w-]+/include/|"
    r"/(?:cub|thrust|cuda/std|libcudacxx|cooperative_groups|cutlass|cute|crt)/[^/]*(?:/[^/]*)*\.(?:cuh|hpp?|inl)$|"
    r"/triton/(?:language|runtime|compiler|tools|ops|backends|experimental)/|"
    r"/usr/(?:local/)?include/|/include/c\+\+/|/VC/Tools/MSVC/|"
    r"/sm_\d+_\w+\.hpp?$|/cuda_(?:fp|bf)\d+\.hpp?$|/device_\w*functions\.hpp?$"
)


@lru_cache(maxsize=1024)
def is_users(path: str | None) -> bool:
    """Whether a source file is the user's own, not a header of a toolkit."""
    return path is not None and not _TOOLKIT.search("/" + path.replace("\\", "/"))


def own_lines(
    lines: Iterable[tuple[str | None, int | None]], inlined: Sequence[tuple[Call, ...]] = ()
) -> list[tuple[str, int] | None]:
    """The user's line that each instruction, in address order, counts against: its own, else the innermost call's.

    None without line information. Where the report does not say what was inlined (the calls, innermost first), a
    header's code counts against the line of the user's before it; ``lines``: file and line that each came from.
    """
    found: list[tuple[str, int] | None] = []
    places = [None if file is None or line is None else (file, line) for file, line in lines]
    # A header's code before the first line of the user's counts against that line.
    last = next((place for place in places if place is not None and is_users(place[0])), None)
    for place in places:
        if place is not None and is_users(place[0]):
            last = place
        found.append(None if place is None else last)
    for at, chain in enumerate(inlined):
        if chain and not ((place := places[at]) and is_users(place[0])):
            found[at] = next(((call.file, call.line) for call in chain if is_users(call.file)), found[at])
    return found
