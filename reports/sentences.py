"""The verdicts of a comparison in sentences. Names in them are untrusted: whoever prints them makes them harmless."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from gemmprof.base.amounts import counted, signed_percent
from gemmprof.reports import formatting

if TYPE_CHECKING:  # pages of one report compare nothing
    from gemmprof.analysis.comparison.gate import Break, GateResult, Waiver
    from gemmprof.analysis.comparison.outcome import Compared, Outcome, Verdict
    from gemmprof.analysis.comparison.records import Change

# The verdicts as a reader sees them, what is seen first in front.
VERDICTS: dict[Verdict, str] = {
    "slower": "SLOWER",
    "gone": "GONE",
    "faster": "FASTER",
    "new": "NEW",
    "unclear": "CAN'T TELL",
    "same": "SAME",
}
# Those on kernels of a build, of whose time nothing is said.
BUILT: dict[Verdict, str] = {**VERDICTS, "unclear": "CHANGED"}


def named(kernel: Compared) -> str:
    """Id and name of what is compared: ``#3 gemm<128>``, ``#1→#3 gemm<128>`` where the later report has another id."""
    return f"{kernel.match.ids} {kernel.match.title}".lstrip()


def shift(kernel: Compared) -> str:
    """The change: ``+2.0 %``; '' without times."""
    return "" if kernel.judgement is None else signed_percent(100 * kernel.judgement.change)


def interval(kernel: Compared) -> str:
    """Between what it lies: ``+1.4 % to +2.6 %``."""
    found = kernel.judgement
    return "" if found is None else f"{signed_percent(100 * found.low)} to {signed_percent(100 * found.high)}"


def change(kernel: Compared) -> str:
    """The change with its interval: ``+2.0 % (+1.4 % to +2.6 %)``; '' without times."""
    return f"{shift(kernel)} ({interval(kernel)})" if kernel.judgement is not None else ""


def times(kernel: Compared) -> str:
    """``270 µs → 214 µs``."""
    return f"{seconds(kernel, 'before')} → {seconds(kernel, 'after')}"


def cycles(kernel: Compared) -> str:
    """The change of the elapsed cycles, '' if unknown."""
    return "" if kernel.cycles is None else signed_percent(100 * kernel.cycles)


def seconds(kernel: Compared, side: str) -> str:
    """The time of one side, '–' if there is none."""
    return formatting.quantity(kernel.seconds[side == "after"], "s")


def launches(kernel: Compared) -> tuple[int, int]:
    """How often the kernel ran on each side: launches under the profiler, or timed repetitions."""
    counts = []
    for record in (kernel.match.before, kernel.match.after):
        found = () if record is None else record.times
        counts.append(
            sum(item.repetitions if kernel.timed else len(item.nanoseconds) or item.count for item in found)
        )
    return counts[0], counts[1]


def detectable(kernel: Compared) -> str:
    """What CAN'T TELL means in figures, '' for other verdicts."""
    if kernel.verdict != "unclear" or kernel.judgement is None:
        return ""
    return f"a change of {100 * kernel.judgement.detectable:.1f} % would have shown"


def why(kernel: Compared) -> list[str]:
    """What the change was in the words of findings, reasons and remarks, one sentence each."""
    reasons = (f"{reason.kind}: {reason.text}" for reason in kernel.reasons)
    return [text for text in (kernel.said, *reasons, kernel.note, detectable(kernel)) if text]


def moved(kernel: Compared) -> list[Change]:
    """The quantities beside the time that became better or worse, what moved most first."""
    found = (one for one in kernel.changes if one.group != "time" and one.verdict in ("better", "worse"))
    return sorted(found, key=lambda one: -one.magnitude)


def one_line(kernel: Compared) -> str:
    """``FASTER #1 gelu: 270 µs → 214 µs, -20.9 % (-25.1 % to -16.6 %)`` and what the change was, in one line."""
    facts = ", ".join(filter(None, (times(kernel), change(kernel))))
    why_ = kernel.said or ("" if kernel.verdict in ("slower", "faster") else kernel.note)
    return f"{VERDICTS[kernel.verdict]} {named(kernel)}: {facts}" + (f"; {why_}" if why_ else "")


def tally(outcome: Outcome, words: Mapping[Verdict, str] = VERDICTS) -> str:
    """``35 families: 2 SLOWER, 30 SAME, 3 CAN'T TELL``; stages of a run, and what was only built, are kernels."""
    of_reports = any(kernel.match.family is not None for kernel in outcome.kernels)
    noun = "pair" if outcome.ladder else "family" if of_reports else "kernel"
    counts = [f"{count} {words[name]}" for name in VERDICTS if (count := outcome.count(name))]
    return f"{formatting.counted(len(outcome.kernels), noun)}: {', '.join(counts) or 'nothing'}"


# ``error``, ``warning`` or ``notice``; a sentence; the kernel that it is of
GateLine: TypeAlias = "tuple[str, str, Compared | None]"


def gate_lines(gate: GateResult) -> Iterator[GateLine]:
    """What a gate has to say, the breaks first."""
    for item in gate.broken:
        yield "error" if item.waiver is None else "warning", break_words(item), item.kernel
    for waiver in gate.expired:
        said = f"the waiver for {waiver.kernel} ended on {waiver.until}: {waiver.reason}"
        yield "warning", said, None
    for kernel, text in gate.undecided:
        yield "notice", f"{kernel.match.title}: not decided: {text}", kernel


def break_words(item: Break) -> str:
    """One break of a gate, and the waiver that lets it pass."""
    text = f"{item.kernel.match.title}: {item.text}"
    return text if item.waiver is None else f"{text}; {waiver_words(item.waiver)}"


def waiver_words(waiver: Waiver) -> str:
    """Until when and why a break passes."""
    return f"waived until {waiver.until}: {waiver.reason}"


def gate_summary(gate: GateResult, outcome: Outcome) -> str:
    """One line: whether the gate holds, what was compared and what could not be."""
    open_ = [item for item in gate.broken if item.waiver is None]
    waived = len(gate.broken) - len(open_)
    kernels = f"{gate.checked} of {counted(len(outcome.kernels), 'kernel')}"
    parts = [f"{kernels} checked against {'; '.join(gate.conditions) or 'nothing'}"]
    if waived:
        parts.append(f"{waived} waived")
    if gate.undecided:
        parts.append(f"{len(gate.undecided)} not decided")
    state = "holds" if gate.holds else f"is broken by {len(open_)}"
    return f"the gate {state}: {', '.join(parts)}"
