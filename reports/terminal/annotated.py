"""A kernel's source with what each line cost, and the instructions of the hot ones, as ``perf annotate`` prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from gemmprof.analysis.explanation.code.live import live_in
from gemmprof.analysis.reading.lookup import is_disassembled
from gemmprof.analysis.sections.by_line import base_name, is_users
from gemmprof.analysis.sections.source_view import SassLine, SourceView
from gemmprof.analysis.session import Session
from gemmprof.base.printable import visible
from gemmprof.reports.formatting import percent

CONTEXT = 2  # lines shown around those with code
HOT_LINE = 5.0  # per cent of the samples from which a line's instructions are shown
INSTRUCTIONS = 6  # of a line at most, the hottest
WARM, HOT = 1.0, 10.0  # per cent from which a row is coloured
FRONT = 26  # columns before the code


def annotated(session: Session, *, width: int) -> Iterator[Text]:
    """The source of each family's longest launch, the family with most time first."""
    for family in session.by_time:
        kernel = session.whole(family.representative, code=True)
        yield Text(visible(f"{family.id} {family.title}"), style="bold")
        view = kernel.get(SourceView)
        if isinstance(view, SourceView):
            yield from _of_view(view, width)
        else:
            yield Text(f"no counters by instruction: profile with {view.remedy}")
        yield Text()


def _of_view(view: SourceView, width: int) -> Iterator[Text]:
    live = live_in(view)
    lines = view.by_own_line
    what = f"{'line':>6}  source" if lines else f"{'':>6}  address  instruction"
    yield Text(f"{'samples':>8} {'live':>5} {what}", style="dim")
    if not lines:
        yield Text("no line information (compile with -lineinfo): the hottest instructions", style="dim")
        yield from _instructions(view, view.sass, live, width, 4 * INSTRUCTIONS)
        return
    for path in dict.fromkeys(sorted((path for path, _ in lines), key=lambda path: not is_users(path))):
        yield Text(visible(base_name(path)), style="underline")
        text = view.files.get(path, "").split("\n")
        with_code = {number: found for (file, number), found in lines.items() if file == path}
        shown = sorted(
            {near for number in with_code for near in range(number - CONTEXT, number + CONTEXT + 1)}
            & {*range(1, len(text) + 1), *with_code}
        )
        last = 0
        for number in shown:
            if last and number > last + 1:
                yield Text(f"{'…':>21}", style="dim")
            last = number
            found = with_code.get(number, [])
            samples, total = sum(one.counters.samples or 0 for one in found), view.totals.samples
            share = 100 * samples / total if found and total else None
            code = text[number - 1].rstrip("\r").expandtabs(4) if number <= len(text) else ""
            most = str(max(live[one.index] for one in found)) if live and found else ""
            yield _row(share, most, str(number), code, width, "" if found else "dim")
            if share is not None and share >= HOT_LINE:
                yield from _instructions(view, found, live, width, INSTRUCTIONS)


def _instructions(
    view: SourceView, found: Sequence[SassLine], live: Sequence[int], width: int, most: int
) -> Iterator[Text]:
    """The hottest of these instructions in their order, with what they wait for."""
    hottest = sorted(found, key=lambda one: -(one.counters.samples or 0))[:most]
    for item in sorted(hottest, key=lambda one: one.index):
        share = view.share(item.counters)
        if not share:
            continue
        reason = next(iter(item.counters.stalls), "").replace("_", " ")
        known = item.sass.strip() if is_disassembled([item.sass]) else "not disassembled"
        code = f"{format(item.offset, '04x'):>7}  {known:<44}" + (f" {reason}" if reason else "")
        yield _row(share, str(live[item.index]) if live else "", "", code, width, "cyan")


def _row(share: float | None, live: str, place: str, code: str, width: int, style: str) -> Text:
    cell = percent(share) if share is not None and share >= 0.05 else ""
    heat = "bold red" if (share or 0.0) >= HOT else "yellow" if (share or 0.0) >= WARM else ""
    made = Text(no_wrap=True, overflow="ellipsis")
    made.append(f"{cell:>8}", style=heat)
    made.append(f" {live:>5} {place:>6}  ", style="dim")
    # What stands in a source file is somebody else's text.
    made.append(visible(code.rstrip())[: max(width - FRONT, 20)], style=style)
    return made
