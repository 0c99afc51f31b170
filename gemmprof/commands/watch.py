"""Profile a program again whenever one of its files is saved, and say in one line what the change was.

  gemmprof watch -- ./my_kernel 4096                          the program itself is watched
  gemmprof watch kernel.cu -- sh -c 'make -s && ./my_kernel'   sources, with the build in the command
  gemmprof watch src/ --kernel softmax -- python train.py

Each run is compared with the one before. Predictions are kept in the folder's own history, and the line says what came
of them. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof.arguments.common import say
from gemmprof.arguments.parser import on_disk, values
from gemmprof.base.amounts import counted, nanoseconds
from gemmprof.base.errors import GemmprofError, UsageError
from gemmprof.base.printable import one_line

if TYPE_CHECKING:
    from gemmprof.profiler.programs import ProgramProfiler

DEFAULT_FOLDER = "gemmprof-watch"
POLL_SECONDS = 0.5
SETTLED_SECONDS = 0.3  # a file that is being written changes more than once: it has to rest so long
KEPT = 10  # reports that are kept; the history has all
SHOWN = 3  # kernels that a run's line names, those that changed most
ARGUMENTS = """
paths FILE|FOLDER*      what is watched (default: the files that the command names)
--kernel REGEX          kernels whose name the expression is found in
--count N>=1            profile at most N launches a run (default: %(default)s)
--runs N>=1             stop after N runs
-o, --output DIR        folder (default: %(default)s)
"""
VALUES = values(
    program=[],  # behind the two dashes, or none
    count=50,
    output={"type": on_disk, "default": DEFAULT_FOLDER},
)


def run(options: argparse.Namespace) -> int:
    """Profile, compare, wait for a change, again; exit code 0 when Ctrl-C or ``--runs`` ends it."""
    from gemmprof.profiler.ncu.command import require_ncu
    from gemmprof.profiler.programs import ProgramProfiler, check_program

    program = check_program(options.program, "watch")
    named = [Path(word) for word in program if Path(word).is_file()]
    watched = [Path(path) for path in options.paths] or named
    missing = [path for path in watched if not path.exists()]
    if missing or not watched:
        raise UsageError(
            f"{missing[0]} is not there" if missing else "nothing to watch: the command names no file",
            "name files or folders: gemmprof watch kernel.cu -- ./my_kernel",
        )
    require_ncu()
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    profiler = ProgramProfiler(program=program, folder=folder, note=say)
    done = 0
    before: Path | None = None
    try:
        while True:
            seen = _times(watched)
            done += 1
            before = _one_run(options, profiler, done, before)
            if done == options.runs:
                return 0
            _wait(watched, seen)
    except KeyboardInterrupt:
        say(f"gemmprof watch: stopped after {counted(done, 'run')}; reports are in {folder}")
        return 0


def _one_run(
    options: argparse.Namespace, profiler: ProgramProfiler, number: int, before: Path | None
) -> Path | None:
    """One run and its line; returns the report that the next is compared with."""
    filters = ["--launch-count", str(options.count)]
    if options.kernel:
        filters += ["--kernel-name", f"regex:{options.kernel}"]
    stem = f"run-{datetime.now(UTC):%Y%m%dT%H%M%S}-{number}"
    try:
        collected = profiler.profile(filters, stem=stem)
        if collected.interrupted:
            raise KeyboardInterrupt
        if collected.report is None:
            return before
        lines = list(_lines(collected.report, before, profiler.folder))
    except GemmprofError as error:
        # The program may be half-edited: the next save may fix it.
        say(f"run {number}: {error}")
        return before
    for line in lines:
        print(one_line(f"run {number}: {line}"), flush=True)
    # Those that a watch made, whose names go by time: somebody's run-1.ncu-rep stays.
    for old in sorted(profiler.folder.glob("run-????????T??????-*.ncu-rep"))[:-KEPT]:
        old.unlink(missing_ok=True)
    return collected.report


def _lines(report: Path, before: Path | None, folder: Path) -> Iterator[str]:
    """What one run says, a line a kernel, and what came of predictions."""
    from gemmprof.analysis.comparison.outcome import ACROSS, compare
    from gemmprof.analysis.comparison.sides import load_side
    from gemmprof.analysis.history.changes import Origin
    from gemmprof.analysis.history.recording import points, tally
    from gemmprof.analysis.session import load_session
    from gemmprof.reports import sentences
    from gemmprof.reports.history.store import HistoryStore
    from gemmprof.reports.words import saved, title

    session = load_session([report])
    store = HistoryStore.open(folder / "history", create=True)
    came = tally(store.predictions() if before else ())
    store.add(points(session, Origin(datetime.now(UTC))))
    now = tally(store.predictions())
    if before is None:
        for family in session.families[:SHOWN]:
            first = f"; first: {title(family.worst)} {saved(family.worst)}" if family.worst else ""
            yield f"{family.id} {family.title}: {nanoseconds(family.total_ns)}{first}"
        return
    outcome = compare(load_side([before]), load_side([report]), across=ACROSS)
    for kernel in outcome.kernels[:SHOWN]:
        yield sentences.one_line(kernel)
    if left := len(outcome.kernels[SHOWN:]):
        yield f"and {left} more: gemmprof diff {before} {report}"
    if now != came and now.words:
        yield now.words


def _times(watched: Sequence[Path]) -> dict[Path, tuple[int, int]]:
    """Time of the last change and size of every file that is watched; hidden files and reports are no sources."""
    found = {}
    for path in watched:
        files = path.rglob("[!.]*") if path.is_dir() else [path]
        for file in files:
            try:
                facts = file.stat()
            except OSError:  # an editor replaces a file by another
                continue
            if file.is_file() and file.suffix != ".ncu-rep" and DEFAULT_FOLDER not in file.parts:
                found[file] = (facts.st_mtime_ns, facts.st_size)
    return found


def _wait(watched: Sequence[Path], seen: dict[Path, tuple[int, int]]) -> None:
    """Until something has changed since and rests."""
    while (now := _times(watched)) == seen or not now:
        time.sleep(POLL_SECONDS)
    while True:
        time.sleep(SETTLED_SECONDS)
        later = _times(watched)
        if later == now:
            return
        now = later
