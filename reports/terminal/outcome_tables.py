"""A comparison in the terminal: the table of verdicts, why, and what the gate says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from gemmprof.analysis.comparison.baseline import Baseline
from gemmprof.analysis.comparison.outcome import Compared, Outcome
from gemmprof.analysis.comparison.records import Change
from gemmprof.base.amounts import signed, wrapped
from gemmprof.reports import formatting, sentences
from gemmprof.reports.terminal import columns

STYLE = {
    "slower": "bold red",
    "gone": "red",
    "faster": "green",
    "new": "cyan",
    "unclear": "yellow",
    "same": "",
}
WIDE = 110  # columns from which on everything stands beside the name


def print_outcome(console: Console, outcome: Outcome, *, details: bool) -> None:
    """The verdicts, the reasons of all that is not SAME, and with ``details`` every quantity."""
    console.print(Text(f"{outcome.before} → {outcome.after}: {sentences.tally(outcome)}"))
    for note in outcome.notes:
        console.print(Text(f"Note: {note}", style="yellow"))
    kernels = outcome.kernels
    console.print(_table(kernels) if console.width >= WIDE else _narrow(kernels))
    for kernel in kernels:
        texts = sentences.why(kernel)
        if texts and (kernel.verdict != "same" or kernel.note or details):
            console.print(Text(sentences.named(kernel), style="bold"))
            for text in texts:
                _indented(console, text)
    if details:
        for kernel in kernels:
            if kernel.changes:
                console.print()
                console.print(_quantities(kernel))


LINES_OF_A_PAIR, LINES_OF_A_REASON = 24, 2  # a pair of kernels is told on one screen of 80 columns


def print_pair(console: Console, outcome: Outcome) -> None:
    """One pair alone: verdict, times, why, and what moved most, in at most `LINES_OF_A_PAIR` lines."""
    (kernel,) = outcome.kernels
    width = console.width

    def short(text: str, lines: int = LINES_OF_A_REASON) -> str:
        # Words are not cut where a line ends: a few columns of each stay empty.
        room = lines * (max(width, 80) - 12)
        return text if len(text) <= room else f"{text[: room - 1]}…"

    console.print(Text(short(f"{outcome.before} → {outcome.after}", 1)))
    head = Text(sentences.VERDICTS[kernel.verdict], style=STYLE[kernel.verdict])
    console.print(head.append(short(f" {sentences.named(kernel)}"), style="bold"))
    cycles = sentences.cycles(kernel)
    facts = [sentences.times(kernel), sentences.change(kernel), f"cycles {cycles}" if cycles else ""]
    facts.append("launches {}, {}".format(*sentences.launches(kernel)))
    console.print(Text("  " + short(", ".join(filter(None, facts)))))
    # What was found and predicted is the answer: more of it than of the rest.
    for text in sentences.why(kernel):
        _indented(console, short(text, LINES_OF_A_REASON + (text == kernel.said)))
    if moved := sentences.moved(kernel):
        most = "; ".join(f"{one.title} {_moved(one)}" for one in moved[:4])
        _indented(console, short(f"moved most: {most}", 3))
    for note in outcome.notes:
        console.print(Text(short(f"Note: {note}"), style="yellow"))
    if kernel.changes:
        console.print(Text(f"All {len(kernel.changes)} quantities: --details"))


def _indented(console: Console, text: str) -> None:
    console.print(Text("\n".join(wrapped(text, console.width, "  ", "  "))))


def _table(kernels: Iterable[Compared]) -> Table:
    numbers = (">Before", ">After", ">Change", "Interval", ">In cycles", ">Launches")
    table = columns("Verdict", "Kernel", *numbers, "Changed", ruled=True)
    for kernel in kernels:
        verdict = Text(sentences.VERDICTS[kernel.verdict], style=STYLE[kernel.verdict])
        times = (sentences.seconds(kernel, side) for side in ("before", "after"))
        change = sentences.shift(kernel), sentences.interval(kernel), sentences.cycles(kernel)
        launches, changed = "{}, {}".format(*sentences.launches(kernel)), ", ".join(kernel.changed)
        table.add_row(verdict, Text(sentences.named(kernel)), *times, *change, launches, changed)
    return table


def _narrow(kernels: Iterable[Compared]) -> Table:
    """The same for a narrow terminal: times below the name, the interval below the change."""
    table = columns("!Verdict", "Kernel", ">!Change", ruled=True, padding=(0, 1, 0, 0))
    for kernel in kernels:
        judgement = kernel.judgement
        facts = "; ".join(filter(None, (sentences.times(kernel), ", ".join(kernel.changed))))
        change = sentences.shift(kernel)
        if judgement is not None:
            change += f"\n{signed(100 * judgement.low)} to {signed(100 * judgement.high)}"
        verdict = Text(sentences.VERDICTS[kernel.verdict], style=STYLE[kernel.verdict])
        table.add_row(verdict, Text(f"{sentences.named(kernel)}\n  {facts}"), change)
    return table


def _quantities(kernel: Compared) -> Table:
    titles = ("Quantity", ">Before", ">After", ">Change", "")
    table = columns(*titles, ruled=True, title=Text(sentences.named(kernel)), title_justify="left")
    for _, changes in groupby(kernel.changes, key=attrgetter("group")):
        table.add_section()
        for change in changes:
            sides = (formatting.quantity(value, change.unit) for value in (change.before, change.after))
            verdict = "" if change.verdict in ("changed", "same", "unknown") else change.verdict
            style = {"better": "green", "worse": "red"}.get(change.verdict)
            table.add_row(change.title, *sides, _moved(change), verdict, style=style)
    return table


def _moved(change: Change) -> str:
    return f"{change.arrow} {formatting.change_text(change)}".rstrip()


def print_builds(console: Console, outcome: Outcome) -> None:
    """Two builds: what changed in each kernel of each architecture; a build does not tell the time."""
    console.print(Text(f"{outcome.before} → {outcome.after}: {sentences.tally(outcome, sentences.BUILT)}"))
    table = columns("", "Kernel", "What changed", ruled=True)
    for kernel in outcome.kernels:
        if kernel.verdict != "same":
            said = "; ".join(filter(None, (*(reason.text for reason in kernel.reasons), kernel.note)))
            table.add_row(sentences.BUILT[kernel.verdict], Text(kernel.match.title), Text(said))
    if table.row_count:
        console.print(table)


def baselines(found: Sequence[tuple[str, Baseline]], folder: Path) -> RenderableType:
    """One line a baseline."""
    if not found:
        return Text(f"no baseline in {folder}; gemmprof baseline save NAME REPORT makes one")
    table = columns("baseline", ">!kernels", ">!launches", ">!processes")
    for name, kept in found:
        devices = ", ".join(dict.fromkeys(kernel.origin.device for kernel in kept.kernels))
        saved = kept.saved[:16].replace("T", " ")
        counts = len(kept.kernels), sum(kernel.launches for kernel in kept.kernels), kept.processes
        table.add_row(Text(f"{name}\n  {saved}, {kept.title}\n  {devices}"), *map(str, counts))
    return table


def baseline_parts(name: str, kept: Baseline) -> Iterator[RenderableType]:
    """The kernels of one baseline."""
    devices = list(dict.fromkeys(kernel.origin.device for kernel in kept.kernels))
    where = f", on {devices[0]}" if len(devices) == 1 else ""
    yield f"{name}: saved {kept.saved} from {kept.title}, {formatting.counted(kept.processes, 'process')}{where}"
    numbers = (">Grid", ">Launches", ">Time", ">Registers", ">!Instructions")
    table = columns("Kernel", *numbers, *["GPU"] * (not where), ruled=True, padding=(0, 1, 0, 0))
    for kernel in kept.kernels:
        registers = kernel.measures.values.get("registers")
        code = kernel.code.instructions if kernel.code is not None else 0
        size = "" if registers is None else f"{registers:g}", f"{code:,}" if code else ""
        times = str(kernel.launches), formatting.quantity(kernel.seconds, "s")
        grid = formatting.dimensions(kernel.grid)
        device = [] if where else [Text(kernel.origin.device)]
        table.add_row(Text(kernel.title), grid, *times, *size, *device)
    yield table
