"""Keep a history of runs, show a kernel's times over it, and find the steps in them.

  gemmprof history record RUN|REPORT… --commit "$(git rev-parse --short HEAD)"
  gemmprof history list
  gemmprof history show 'sgemm_fastest' -o fastest.html
  gemmprof history check                     exit code 1 if a kernel became slower and stayed so

A store is a folder of Parquet files that are only ever added (default: gemmprof-history, or $GEMMPROF_HISTORY). Several
processes may record into one at once. Each step that `check` finds says what changed with it: the kernel's code, the
tools, the clocks, the counters, or nothing that was recorded.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gemmprof.arguments import common
from gemmprof.arguments.parser import FORCE, INPUTS, JSON, values
from gemmprof.base.buckets import write_text
from gemmprof.base.errors import UsageError
from gemmprof.base.system import without_modules

if TYPE_CHECKING:
    from gemmprof.analysis.history.changes import Step
    from gemmprof.reports.history.store import HistoryStore

PAGE = ".html"
KERNEL = "kernel REGEX{}  kernels whose name the expression is found in; case makes no difference"
ONE_CARD = """
--device NAME           only times of this card
--kind                  only timed, or only profiled, times
"""
STORE = f"""
--store DIR             the history's folder (default: $GEMMPROF_HISTORY, else gemmprof-history)
{JSON}"""
ACTIONS = {
    "record": (
        "keep the times of runs or reports",
        f"""{INPUTS}
--commit                what was measured, for example a git commit
--branch                the branch it is on
--machine               a name for the machine
--note                  anything worth knowing later
--date WHEN             when it was measured (2026-03-01 or 2026-03-01T12:00+00:00); default: now
{STORE}""",
    ),
    "list": ("the kernels of the history", KERNEL.format("?") + STORE),
    "show": (
        "one kernel's times",
        f"""{KERNEL.format("")}{ONE_CARD}
-o, --output FILE       write a page (.html) instead
{FORCE}{STORE}""",
    ),
    "check": (
        "find steps; exit code 1 for a slower kernel",
        f"""{KERNEL.format("?")}{ONE_CARD}
--last N>=1             only steps within the last N runs of a kernel, as CI wants them
{STORE}""",
    ),
}
VALUES = values(kind=("timed", "profiled"), commit="", branch="", machine="", note="")


def run(options: argparse.Namespace) -> int:
    """Do what was asked; exit code 0, 1 for a slower kernel, or 2 for an input that could not be read."""
    with without_modules("pandas"):
        return {"record": _record, "list": _list, "show": _show, "check": _check}[options.action](options)


def _store(options: argparse.Namespace, *, create: bool = False) -> HistoryStore:
    from gemmprof.reports.history.store import HistoryStore, default_store

    return HistoryStore.open(options.store or default_store(), create=create)


def _record(options: argparse.Namespace) -> int:
    from gemmprof.analysis.history.changes import Origin
    from gemmprof.analysis.history.recording import points, tally

    if not options.inputs:
        fix = "gemmprof history record RUN|REPORT… (a history is not guessed)"
        raise UsageError("no run or report was named", fix)
    try:
        when = datetime.now(UTC) if options.date is None else datetime.fromisoformat(options.date)
    except ValueError:
        fix = "write 2026-03-01 or 2026-03-01T12:00:00+00:00"
        raise UsageError(f"'{options.date}' is no date", fix) from None
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    origin = Origin(when, options.commit, options.branch, options.machine, options.note)
    session = common.load_inputs(options)
    kept = points(session, origin)
    store = _store(options, create=True)
    file = store.add(kept)
    came = tally(store.predictions())
    if options.json:
        from gemmprof.reports.documents.of_history import HistoryRecordDocument

        common.print_json(HistoryRecordDocument.of(file=file, points=len(kept), predictions=came))
    elif came.words:
        print(came.words)
    common.announce(file)
    return common.exit_code(session.failures)


def _list(options: argparse.Namespace) -> int:
    from gemmprof.reports.documents.of_history import HistoryListDocument
    from gemmprof.reports.terminal.history_tables import series_table

    series = _store(options).series(options.kernel)
    common.answer(
        options,
        lambda: HistoryListDocument.of(series=series),
        lambda width: [series_table(series, width=width)],
    )
    return 0


def _show(options: argparse.Namespace) -> int:
    from gemmprof.analysis.history.changes import changes
    from gemmprof.reports.documents import of_history
    from gemmprof.reports.terminal.history_tables import plots

    target = common.new_output(options.output, force=options.force) if options.output else None
    if target is not None and target.suffix.lower() != PAGE:
        raise UsageError(f"{target} has no known format", f"end the name in {PAGE}")
    store = _store(options)
    found = store.points(store.series(options.kernel, device=options.device, kind=options.kind))
    if not found:
        raise _none_matches(store, options)
    shown = [(points, changes(points)) for points in found.values()]
    if options.json or target is None:
        common.answer(options, lambda: of_history.shown(shown), lambda width: plots(shown, width=width))
    if target is not None:
        from gemmprof.reports.pages.history import page_html

        common.announce(write_text(target, page_html(shown)))
    return 0


def _none_matches(store: HistoryStore, options: argparse.Namespace) -> UsageError:
    """What to say where no series is meant: what there is, the closest first."""
    import difflib

    from gemmprof.analysis.inputs.names import labels
    from gemmprof.analysis.inputs.selection import some

    series = store.series()
    names = list(labels(item.kernel for item in series).values())
    close = difflib.get_close_matches(options.kernel, names, n=1, cutoff=0.4)
    what = [f"'{options.kernel}'"]
    what += [f"{name} {value}" for name, value in (("on", options.device), ("kind", options.kind)) if value]
    meant = [f"did you mean '{close[0]}'?"] if close else []
    problem = f"no kernel of the history matches {' '.join(what)}"
    fixes = *meant, "`gemmprof history list` shows all"
    return UsageError(problem, *fixes, found=f"{len(series):,} series: {some(names)}")


def _check(options: argparse.Namespace) -> int:
    from gemmprof.analysis.history.changes import FEWEST, changes, steps_in
    from gemmprof.analysis.history.recording import tally
    from gemmprof.reports.documents.of_history import HistoryCheckDocument
    from gemmprof.reports.terminal.history_tables import changes_found

    store = _store(options)
    series = store.series(options.kernel, device=options.device, kind=options.kind)
    looked_at, too_short = len(series), sum(one.count < FEWEST for one in series)
    steps = {one.key: steps_in(one.times_ns, one.kind) for one in series}

    def recent(step: Step, count: int) -> bool:
        return options.last is None or count - step.position <= options.last

    # Points have thirty columns: they are read of the series alone that something is said of.
    stepped = [one for one in series if any(recent(step, one.count) for step in steps[one.key])]
    found = [
        change
        for key, points in store.points(stepped).items()
        for change in changes(points, steps[key])
        if recent(change.step, len(points))
    ]
    found.sort(key=lambda change: -change.step.ratio)
    came = tally(store.predictions())
    common.answer(
        options,
        lambda: HistoryCheckDocument.of(
            kernels=looked_at, too_short=too_short, steps=found, predictions=came
        ),
        lambda width: [*changes_found(found, looked_at, too_short), *([came.words] if came.words else [])],
    )
    return 1 if any(change.is_slower for change in found) else 0
