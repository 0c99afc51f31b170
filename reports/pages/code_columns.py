"""The columns that a listing of source or SASS can show, the stall mix of a row, and where a branch leads."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from gemmprof.analysis.figure import formula_of
from gemmprof.analysis.sections import warp_states
from gemmprof.analysis.sections.source_view import OF_AN_INSTRUCTION, Counters
from gemmprof.base.foreign_files import facts
from gemmprof.reports.formatting import number, percent

# Colour of each group of stall reasons, in the order of a bar.
COLOURS = {
    "memory": "dram",
    "shared": "shared",
    "execution": "sm",
    "synchronisation": "l2",
    "control": "l1",
    "other": "other",
    "issuing": "faint",
}
NOT_HELD_BACK = ("selected", "not_selected")


@dataclass(frozen=True, slots=True)
class Column:
    """One metric that a reader may switch on."""

    key: str  # identifier
    title: str  # heading
    tip: str  # what it counts
    of: str  # the field of `Counters` that its cells show, None where that was not collected
    on: bool = False  # whether it is shown at first
    sums: str = ""  # the field that is summed over instructions, where ``of`` is a ratio
    over: str = ""  # key of the column that the sum is divided by then

    def value(self, counters: Counters) -> float | None:
        """What it counts."""
        found: float | None = getattr(counters, self.of)
        return found

    def text(self, counters: Counters) -> str:
        """The cell; empty for nothing, but for executions: 0 of them says something, too."""
        value = self.value(counters)
        return number(value) if value or (value is not None and self.key == "executed") else ""

    def counted(self, counters: Counters) -> float | None:
        """What adds up over instructions."""
        found: float | None = getattr(counters, self.sums or self.of)
        return found

    @property
    def how(self) -> str:
        """What it counts and the formula of its cells."""
        return f"{self.tip}: {formula_of(self.value(OF_AN_INSTRUCTION))}"


COLUMNS = tuple(
    Column(key, title, tip, of, bool(on), sums, over)
    for key, title, tip, of, on, sums, over in facts(__file__, "code_columns.csv")
)


def columns_of(counters: Iterable[Counters]) -> tuple[Column, ...]:
    """The columns that have something to show in at least one row."""
    rows = list(counters)
    return tuple(column for column in COLUMNS if any(column.value(row) for row in rows))


def cells(columns: Sequence[Column], counters: Counters) -> Markup:
    """The cells of a row: numbers of ours, nothing of the report's text."""
    return Markup("".join(f'<td class="n">{column.text(counters)}</td>' for column in columns))


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a stall bar, 0 to 100."""

    colour: str
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class Mix:
    """Why the samples of a row did not issue: a bar by group, every reason in words, and the main one."""

    parts: tuple[Part, ...]
    words: str
    main: str
    main_percent: float | None


def mix_of(stalls: Mapping[str, int]) -> Mix | None:
    """The stall mix of a row; None without samples."""
    total = sum(stalls.values())
    if not total:
        return None
    groups = dict.fromkeys(COLOURS, 0)
    for reason, samples in stalls.items():
        group = warp_states.reason(reason).group
        groups[group if group in groups else "other"] += samples
    parts, start = [], 0.0
    for group, samples in groups.items():
        if samples:
            width = 100.0 * samples / total
            parts.append(Part(COLOURS[group], start, width))
            start += width
    ordered = sorted(stalls.items(), key=lambda item: -item[1])
    words = ", ".join(f"{name.replace('_', ' ')} {percent(100 * n / total, 0)}" for name, n in ordered[:6])
    main = next((item for item in ordered if item[0] not in NOT_HELD_BACK), None)
    return Mix(
        tuple(parts),
        words,
        main[0].replace("_", " ") if main else "",
        100.0 * main[1] / total if main else None,
    )


_ADDRESS = re.compile(r"0x([0-9a-f]{5,16})\b")


def branch(sass: str, address: int, offset: int, offsets: Container[int]) -> tuple[str, int | None, str]:
    """The text of an instruction around the address that it names, and that address as an offset in the function.

    Args:
        sass: the instruction.
        address, offset: where it stands: its absolute address, and its offset.
        offsets: offsets of the function's instructions.

    Returns:
        Text before, offset of the target (None if it names no instruction of this function), text behind.
    """
    for found in _ADDRESS.finditer(sass):
        target = int(found.group(1), 16) - (address - offset)
        if target in offsets:
            return sass[: found.start()], target, sass[found.end() :]
    return sass, None, ""
