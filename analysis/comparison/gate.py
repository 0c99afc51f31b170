"""A gate: conditions that a comparison must not meet, waivers that let one pass for a time, what is undecided."""

from __future__ import annotations

import datetime
import difflib
import math
import operator
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from gemmprof.analysis.comparison.outcome import Compared, Outcome
from gemmprof.analysis.comparison.reasons import CAUSES, causes_of
from gemmprof.analysis.comparison.records import KernelRecord, Range
from gemmprof.analysis.comparison.sides import disassembled
from gemmprof.analysis.inputs import conditions as language
from gemmprof.analysis.inputs.named_figures import QUANTITIES
from gemmprof.analysis.inputs.names import owner_of_name
from gemmprof.analysis.sections.rules import KNOWN as RULES
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.base.amounts import signed_percent
from gemmprof.base.errors import UsageError
from gemmprof.base.foreign_files import read_text
from gemmprof.base.regex import regex

# --- Waivers ----------------------------------------------------------------------------------------------------------

LARGEST_BYTES = 256 << 10  # of a file of waivers; Python's TOML parser takes seconds for a megabyte


class Waiver(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lets kernels pass although a condition is met, until a day."""

    kernel: str  # regular expression that is looked for in full name and label
    reason: Annotated[str, msgspec.Meta(pattern=r"\S")]  # why
    until: datetime.date  # last day on which it holds
    condition: str = ""  # name of the figure or finding, '' for any

    def covers(self, kernel: Compared, condition: str) -> bool:
        """Whether it is about this kernel and condition."""
        record, wanted = kernel.record, regex(self.kernel, ignore_case=False)
        texts = (record.name, record.title, kernel.match.title)
        return named(self.condition) in ("", condition) and any(map(wanted.search, texts))


class _File(msgspec.Struct, forbid_unknown_fields=True):
    waiver: tuple[Waiver, ...]


def read_waivers(path: Path) -> tuple[Waiver, ...]:
    """Waivers from a TOML file, tables ``[[waiver]]``; UsageError if it is missing or holds others."""
    fix = 'write [[waiver]] with kernel = "regex", reason = "why" and until = 2030-12-31'
    try:
        found = msgspec.convert(tomllib.loads(read_text(path, LARGEST_BYTES)), _File).waiver
        for one in found:  # what is no expression is said here
            regex(one.kernel, ignore_case=False)
        return found
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as waivers", fix, found=str(error)) from None


# --- A gate -----------------------------------------------------------------------------------------------------------

_COMPARES: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
LOCAL = "local_accesses"
# Figures that are a metric, of which every launch is known.
DIRECT = {one.name: one.metric for one in QUANTITIES if one.analysis is SpeedOfLight}
# Figures that are the same in every launch of the same work.
EXACT = frozenset(
    [one.name for one in QUANTITIES if one.group == "instructions"]
    + ["theoretical_occupancy", "registers", "shared_memory", LOCAL]
)
ONE_LAUNCH_WITHIN = 0.02  # others are worked out of the middle launch alone, and not decided within this


def figure(record: KernelRecord, name: str) -> Range | None:
    """A figure of the middle launch, or a metric over all launches; None where it was not collected."""
    name = language.canonical(name)
    direct = record.metrics.get(DIRECT.get(name, ""))
    if direct is not None:
        return direct
    value = record.measures.values.get(name)
    if value is None and name in record.metrics:
        return record.metrics[name]
    if value is None and name == LOCAL:
        # Not counted while it ran: whether the code has such instructions at all is known from the code.
        code = disassembled(record).code
        if code is not None and code.instructions:
            value = float(sum(n for opcode, n in code.opcodes.items() if opcode.startswith(("LDL", "STL"))))
    return None if value is None else Range.of([value])


def _has_finding(finding: str, record: KernelRecord, *, told: bool) -> bool | None:
    """Whether a kernel has a finding: a rule of ncu's, or a cause of gemmprof's, ``told`` or not; None if nobody
    looked.
    """
    if finding in CAUSES:
        causes = causes_of(record, told=told)
        return None if causes is None else finding in causes
    if finding in record.rules or (record.rules and finding in RULES):
        return finding in record.findings
    return None


@dataclass(frozen=True, slots=True)
class Break:
    """A kernel that meets a condition: the line that broke the gate, and the waiver that lets it pass, if one does."""

    kernel: Compared
    condition: str
    text: str
    waiver: Waiver | None = None


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate found."""

    conditions: tuple[str, ...]  # the conditions, as written
    broken: tuple[Break, ...]  # kernels that meet one, waived ones too
    undecided: tuple[tuple[Compared, str], ...]  # (kernel, why); the gate does not break at them
    expired: tuple[Waiver, ...]  # waivers whose day has passed
    checked: int  # how many kernels at least one condition could be checked on

    @property
    def holds(self) -> bool:
        """True if nothing broke it that is not waived."""
        return all(item.waiver is not None for item in self.broken)


def check(
    outcome: Outcome,
    conditions: Sequence[str],  # what must not hold, see `analysis.inputs.conditions`
    *,
    allow_new: bool = False,  # allow_new, allow_gone: let kernels pass that only one side has
    allow_gone: bool = False,
    fail_unclear: bool = False,  # CAN'T TELL breaks the gate, too
    waivers: Iterable[Waiver] = (),
    today: datetime.date | None = None,
) -> GateResult:
    """Hold a comparison against conditions.

    A change in time counts only where the verdict is SLOWER (or FASTER) and the whole interval is beyond the limit; a
    change in another figure only where its values on the two sides do not overlap. What cannot be decided does not
    break the gate and is listed. UsageError if a condition cannot be read, or no kernel has a figure that it names.
    """
    day = today or datetime.date.today()
    given = tuple(waivers)
    asked = [(text.strip(), language.parse_condition(text, two_sides=True)) for text in conditions]
    gate = _Gate(asked, [waiver for waiver in given if waiver.until >= day])
    for kernel in outcome.kernels:
        if kernel.verdict == "gone":
            gate.absent(kernel, "is gone", "is missing after (--allow-gone lets it pass)", allow_gone)
            continue
        if kernel.verdict == "new":
            gate.absent(kernel, "is new", "has no counterpart before (--allow-new lets it pass)", allow_new)
        gate.hold(kernel)
        if kernel.verdict == "unclear" and fail_unclear:
            gate.breaks(kernel, "unclear", "CAN'T TELL (--fail-unclear)")
    if any(kernel.verdict != "gone" for kernel in outcome.kernels):  # nothing can be asked of what is gone
        for text, condition in asked:
            for part in language.parts_of(condition):
                if part not in gate.known:
                    raise _unknown(outcome, text, part)
    texts, expired = tuple(text for text, _ in asked), tuple(one for one in given if one.until < day)
    return GateResult(texts, tuple(gate.broken), tuple(gate.undecided), expired, gate.checked)


class _Answer(NamedTuple):
    """What one condition says of one kernel."""

    met: bool | None  # None where it cannot be decided
    words: str = ""  # the figures
    there: bool = True  # whether the kernel has what it asks for


class _Gate:
    """What is found while kernel after kernel is held against the conditions, as `GateResult` has it."""

    def __init__(self, asked: Sequence[tuple[str, language.Condition]], waivers: Sequence[Waiver]) -> None:
        self._asked, self._waivers = asked, waivers
        self.broken: list[Break] = []
        self.undecided: list[tuple[Compared, str]] = []
        self.checked = 0
        self.known: set[language.Condition] = set()  # parts whose figure at least one kernel has

    def breaks(self, kernel: Compared, condition: str, text: str, names: Iterable[str] = ()) -> None:
        """The kernel meets a condition; the first waiver that covers it lets it pass."""
        meant = (condition, *names)
        waiver = next((one for one in self._waivers if any(one.covers(kernel, name) for name in meant)), None)
        self.broken.append(Break(kernel, condition, text, waiver))

    def absent(self, kernel: Compared, allowed_words: str, words: str, allowed: bool) -> None:
        """Only one side has the kernel."""
        if allowed:
            self.undecided.append((kernel, allowed_words))
        else:
            self.breaks(kernel, kernel.verdict, words)

    def hold(self, kernel: Compared) -> None:
        """Hold a kernel against every condition."""
        decided = False
        for text, condition in self._asked:
            answers: dict[language.Part, _Answer] = {}
            for part in language.parts_of(condition):
                answers[part] = _answer(part, kernel)
                if answers[part].there:
                    self.known.add(part)
            # Of three values, as in SQL: what is not decided stays so unless the rest decides.
            truth = {part: UNDECIDED if one.met is None else float(one.met) for part, one in answers.items()}
            found = language.evaluated(condition, truth.__getitem__, lambda one: 1.0 - one, min, max)
            met = None if found == UNDECIDED else bool(found)
            told = [one for one in answers.values() if (one.met is None) == (met is None)]
            said = "; ".join(one.words for one in told if one.words)
            if met is None and said:
                self.undecided.append((kernel, f"{text}: {said}"))
            elif met:
                names = [named(name) for name in language.names_in(condition)]
                called = names[0] if len(names) == len(answers) == 1 else text
                self.breaks(kernel, called, f"{said} ({text})" if said else text, names)
            decided |= met is not None and NO_TIME not in said
        self.checked += decided


def named(name: str) -> str:
    """What a word of a condition means; ``time`` stays, since a gate judges it by all repetitions."""
    return name if name == language.TIME else language.canonical(name)


UNDECIDED = 0.5  # between false and true
NO_TIME = "no time on both sides"
NOT_THERE = _Answer(None, "not collected", there=False)


def _answer(part: language.Part, kernel: Compared) -> _Answer:
    """Whether a kernel meets one part of a condition, and the figures in words."""
    before, after = kernel.match.before, kernel.match.after
    assert after is not None
    if isinstance(part, language.Match):
        texts = {
            "kernel": f"{after.name}\n{kernel.match.title}",
            "owner": str(owner_of_name(after.name)),
            "nvtx": "/".join(after.nvtx),
            "device": after.origin.device,
            "report": after.place[0] if after.place else "",
        }
        return _Answer(bool(regex(part.pattern).search(texts[part.name])) == part.wanted)
    if kernel.verdict == "new" and language.asks_change(part):
        return _Answer(None)
    if isinstance(part, language.HasFinding):
        # What was too small to be told is not new where it is told: noise moves it over that threshold.
        was = None if before is None else _has_finding(part.name, before, told=False)
        now = None if after is None else _has_finding(part.name, after, told=True)
        if now is None or (part.new and was is None):
            return NOT_THERE
        there = now and not (part.new and was)
        return _Answer(there, f"{part.name} {'is found' if there else 'is not found'}")
    compare, name = _COMPARES[part.operator], named(part.name)
    if name == language.TIME:
        return _time(part, kernel, compare)
    right = figure(after, name)
    if right is None:
        return NOT_THERE
    if not part.change:
        return _Answer(compare(right.middle, part.value), f"{name} is {right.middle:,.6g}")
    left = None if before is None else figure(before, name)
    if left is None:
        return NOT_THERE
    change = right.middle - left.middle
    words = f"{name} {left.middle:,.6g} → {right.middle:,.6g}"
    if part.unit == "%":
        # From nothing to something it is beyond every limit.
        beyond = math.copysign(math.inf, change) if change else 0.0
        change = 100 * (right.middle / left.middle - 1) if left.middle else beyond
        words += f" ({signed_percent(change, 2)})" if left.middle else ""
    distance, largest = abs(right.middle - left.middle), max(abs(left.middle), abs(right.middle))
    # Known of the middle launch only, and it may differ from launch to launch.
    one_launch = name in after.measures.values and name not in EXACT and DIRECT.get(name) not in after.metrics
    if one_launch and 0 < distance <= ONE_LAUNCH_WITHIN * largest:
        return _Answer(None, f"{words}, within what one launch of each side may differ by")
    apart = left.high < right.low or right.high < left.low or left.middle == right.middle
    if not apart and compare(change, part.value):
        return _Answer(None, f"{words}, within what launches of one side differ by")
    return _Answer(compare(change, part.value), words)


def _time(part: language.Comparison, kernel: Compared, compare: Callable[[float, float], bool]) -> _Answer:
    judgement = kernel.judgement
    if not part.change:
        after = kernel.seconds[1]
        if after is None:
            return NOT_THERE
        limit = part.value * (1 if part.unit else 1000)  # without a unit a gate's time is in microseconds
        return _Answer(compare(1e9 * after, limit), f"time is {1e6 * after:,.6g} µs")
    if judgement is None:
        # It must not pass because nobody took the time; a build has none by its nature.
        return _Answer(None if kernel.record.key[0] == "build" else True, NO_TIME)
    change = 100 * judgement.change
    direction = "slower" if change > 0 else "faster"
    between = f"{signed_percent(100 * judgement.low)} to {signed_percent(100 * judgement.high)}"
    words = f"{abs(change):.1f} % {direction}, {between}"
    limit = part.value if part.unit in ("", "%") else part.value / (1e7 * judgement.before)
    # The limit itself is tested, at both ends of the interval that is shown: an estimate beyond it may be chance.
    ends = [compare(100 * end, limit) for end in (judgement.low, judgement.high)]
    if kernel.verdict in ("slower", "faster", "same") and all(ends):
        return _Answer(kernel.verdict != "same", words)
    if any(ends) and kernel.verdict != "same":
        return _Answer(None, f"CAN'T TELL whether it is {part.operator} {limit:+g} %: {words}")
    return _Answer(False, words)


def _unknown(outcome: Outcome, text: str, part: language.Part) -> UsageError:
    names = {one.name for one in QUANTITIES} | {language.TIME, *language.ALIASES}
    for kernel in outcome.kernels:
        names |= kernel.record.metrics.keys()
    near = difflib.get_close_matches(part.name, names, 3)
    asked = "been looked at for" if isinstance(part, language.HasFinding) else "the figure"
    figures = ", ".join(sorted(name for name in names if "__" not in name))
    return UsageError(
        f"'{text}': no kernel has {asked} {part.name}",
        f"figures: {figures}",
        "any metric of ncu's that was collected, as --page raw of ncu names it",
        "findings: the names of ncu's rules, and gemmprof's causes: " + ", ".join(sorted(CAUSES)),
        found=f"near it: {', '.join(near)}" if near else "",
    )
