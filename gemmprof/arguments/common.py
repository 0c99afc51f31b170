"""Plumbing that every command shares: inputs, ``--json``, output files, the terminal.

Nothing here computes; heavy packages are imported only inside the functions.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from gemmprof.base.errors import GemmprofError, UsageError
from gemmprof.base.foreign_files import shown, url_of
from gemmprof.base.printable import GuardedStream, encoding_of, json_safe, one_line, printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from gemmprof.analysis.inputs.selection import Selection
    from gemmprof.analysis.session import Session
    from gemmprof.base.documents import Document
    from gemmprof.profiler.cluster.connection import Jobs

DOUBTS_SHOWN = 3  # so many reasons why launches are doubtful are named; the others are counted
PIPE_COLUMNS = 200  # width of a table that goes into a file or another program


def take_ids(options: argparse.Namespace) -> None:
    """Ids of families among the inputs (``'#3'``) choose launches, as --kernel does; UsageError for what is none."""
    ids = [item for item in options.inputs if item.startswith("#") and not os.path.lexists(item)]
    if not ids:
        return
    from gemmprof.analysis.inputs.selection import is_family_id

    if wrong := [item for item in ids if not is_family_id(item)]:
        raise UsageError(f"'{wrong[0]}' is no family's id", "an id is a # and a number: '#3', '#3,#7'")
    if options.kernel is not None:
        fixes = "give one of the two", "--kernel '#3,#7'"
        raise UsageError(f"{ids[0]} and --kernel both choose kernels", *fixes)
    options.kernel = ",".join(ids)
    options.inputs = [item for item in options.inputs if item not in ids]


def selection(options: argparse.Namespace) -> Selection:
    """What `declared.SELECTION` was given; UsageError for no regular expression, no position, or ``--top`` below 1."""
    from gemmprof.analysis.inputs.selection import selection as selected

    return selected(options.kernel, options.launch or None, options.nvtx, options.top, options.owner)


def typed(options: argparse.Namespace) -> str:
    """The command line so far, to type again with more behind it: program, inputs, selection."""
    import shlex

    words = ["gemmprof", *options.inputs]
    for name in ("kernel", "nvtx", "owner", "trace"):
        if value := getattr(options, name, None):
            words += [f"--{name}", value]
    return shlex.join(words)


def metrics_named(options: argparse.Namespace) -> tuple[str, ...]:
    """The names behind every ``--metrics``."""
    return tuple(name for text in options.metrics or () for name in text.split(",") if name)


def chosen_inputs(options: argparse.Namespace, *, quiet: bool = False) -> list[Path]:
    """The paths to read; which were chosen where the user named none is said on stderr."""
    if options.inputs:
        return [Path(item) for item in options.inputs]
    from gemmprof.runs.directory import newest_run_directory, recorded_run_directory

    newest = newest_run_directory()
    recorded = "the recorded run that ships with gemmprof (no run found here)."
    found = f"the newest run here: {newest}" if newest else recorded
    if not quiet:
        say(f"Using {one_line(found)}")
    return [newest or recorded_run_directory()]


def say(text: str) -> None:
    """Tell a person something, on stderr so that it never mixes with data."""
    print(text, file=sys.stderr, flush=True)


def load_inputs(options: argparse.Namespace, *, listed: bool = False) -> Session:
    """Load what the user named, else the newest run, else the recorded one, and say on stderr which it is.

    With the kernels' code, whatever is printed: waits, FP16 that only sets constants and more are told by it, and a
    figure must not depend on the command that prints it. Errors are those of `load_session`; files that failed beside
    others that did not are in ``session.failures`` and are named on stderr.
    """
    from gemmprof.analysis.session import load_session

    wanted = selection(options)
    session = load_session(chosen_inputs(options), selection=wanted, listed=listed)
    if trace := getattr(options, "trace", None):
        from dataclasses import replace

        from gemmprof.analysis.whole.traces import read_trace

        session = replace(session, trace=read_trace(trace, [kernel.profile for kernel in session.kernels]))
    name_failures(options, session.failures)
    name_doubts(options, session)
    from gemmprof.analysis.reading.frame import is_redacted

    redacted = getattr(options, "redact_source", None)
    files = {path for kernel in session.kernels for path in kernel.profile.source.files}
    # An expression that finds no source file was meant to hide one.
    if redacted and redacted != "all" and files and not any(map(is_redacted, files)):
        there = f"there are {', '.join(sorted(files)[:6])}"
        raise UsageError(f"no source file here has '{redacted}' in its path", there)
    return session


def who(options: argparse.Namespace) -> str:
    """Who speaks: ``gemmprof show``, or ``gemmprof`` at the front door."""
    return f"gemmprof {options.command}".rstrip()


def name_doubts(options: argparse.Namespace, session: Session) -> None:
    """Say on stderr why launches are not to be trusted, each reason once, and what was not disassembled."""
    launches: dict[str, list[str]] = {}
    unread: dict[str, None] = {}
    for kernel in session.kernels:
        profile = kernel.profile
        for doubt in profile.doubts:
            launches.setdefault(doubt, []).append(f"{profile.report}, launch {profile.index}")
        if profile.source.unread:
            unread.setdefault(profile.source.unread)
    notes = []
    for doubt, where in launches.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        notes.append(f"doubtful: {where[0]}{more}: {doubt}")
    if len(notes) > DOUBTS_SHOWN:
        notes[DOUBTS_SHOWN:] = [f"doubtful: {len(notes) - DOUBTS_SHOWN} reasons more"]
    for note in (*notes, *(f"no SASS: {reason}" for reason in unread)):
        say(f"{who(options)}: {one_line(note)}")


def name_failures(options: argparse.Namespace, failures: Iterable[GemmprofError]) -> None:
    """Say on stderr which files were not read, and why."""
    for failure in failures:
        say(f"{who(options)}: not read: {failure}")


def read_all(options: argparse.Namespace, session: Session) -> int:
    """The exit code of a command that reads, after naming the inputs that could not be read and are not yet named."""
    name_failures(options, session.failures[len(session.unread) :])
    return exit_code(session.failures)


def exit_code(failures: object) -> int:
    """Of a command that did what it could: 2 if some input could not be read (1 is for findings alone)."""
    return GemmprofError.exit_code if failures else 0


def new_output(path: str | Path, *, force: bool) -> Path:
    """The output path, which may be written: else UsageError, or UnreachableError where a storage does not answer."""
    target = Path(path)
    if url_of(target):
        from gemmprof.base.buckets import is_there

        if is_there(target) and not force:
            raise exists_already(target)
        return target
    if target.is_dir():
        raise UsageError(f"{target} is a folder", "name a file")
    if os.path.lexists(target) and not force:
        raise exists_already(target)
    if target.exists() and not target.is_file():
        raise UsageError(f"{target} is no regular file", "name a file")
    if not target.parent.is_dir():
        fix = f"create it first: mkdir -p {target.parent}"
        raise UsageError(f"the folder {target.parent} does not exist", fix)
    return target


def exists_already(target: Path) -> UsageError:
    """The refusal to replace what a user may still want."""
    return UsageError(f"{shown(target)} exists already", "add --force to replace it", "choose another name")


def announce(path: Path) -> None:
    """Say what was written."""
    say(f"Wrote {one_line(shown(path))}")


def rendered(options: argparse.Namespace, session: Session, folder: Path) -> Path | None:
    """The pages of what was just profiled; a failure there must not hide it, and is said on stderr."""
    from gemmprof.reports.pages.html import render

    try:
        folder.mkdir(parents=True, exist_ok=True)
        return render(session, folder, processes=2)
    except (GemmprofError, OSError) as error:
        say(f"{who(options)}: the pages cannot be rendered: {error}")
        return None


def print_error(command: str, error: GemmprofError, *, as_json: bool) -> None:
    """The one place where an error becomes text: for people on stderr, with ``--json`` as JSON on stdout as well."""
    where = f"gemmprof {command}".strip()
    print(f"{where}: error: {error}", file=sys.stderr)
    if as_json:
        from gemmprof.base.documents import ErrorDocument

        print_json(ErrorDocument.of(error, command=command))


def print_json(document: Document) -> None:
    """Print a document as indented JSON on standard output."""
    from gemmprof.base.documents import json_text

    print(json_safe(json_text(document), encoding_of(sys.stdout)))


def answer(
    options: argparse.Namespace,
    document: Callable[[], Document],
    parts: Callable[[int], Iterable[RenderableType]],
) -> None:
    """Print a command's answer: as a document with ``--json``, else as these parts, for so many columns."""
    if options.json:
        print_json(document())
        return
    terminal = console()
    for part in parts(terminal.width):
        terminal.print(part)


class _Unpadded:
    """A stream of a pipe or file: rich fills lines with blanks to their end, which only a terminal's colours need."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the text without the blanks at the ends of its lines."""
        import re

        return int(self._stream.write(re.sub(r" +(?=\n)", "", text)))


def console(*, stderr: bool = False) -> Console:
    """A rich console that prints untrusted text harmlessly; in a pipe wide enough that no cell is cut."""
    from rich.console import Console
    from rich.segment import Segment

    class HarmlessConsole(Console):
        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                if not segment.control and (safe := printable(segment.text)) != segment.text:
                    segment = Segment(safe, segment.style)  # noqa: PLW2901
                yield segment

        def on_broken_pipe(self) -> None:
            # rich would exit with 1, which means a finding here; the command line knows what to do.
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    # rich adds colours to what was cleaned; the guard of the stream would take them for somebody else's.
    file = stream.styled if isinstance(stream, GuardedStream) else stream
    if not stream.isatty():
        file = _Unpadded(file)
    return HarmlessConsole(file=cast(TextIO, file), width=_columns(stream), highlight=False, markup=False)


def refresh_dataset(folder: Path, inputs: list[Path], options: argparse.Namespace) -> bool:
    """Bring a data set in line with these inputs (reports, else an error); True if some report could not be read."""
    from gemmprof.base.system import without_modules

    with without_modules("pandas", "numpy"):  # others read
        from gemmprof.reports.dataset.manifest import update
        from gemmprof.reports.dataset.rows import reports_below
    from gemmprof.reports.terminal import found

    reports, problems = reports_below(inputs)
    name_failures(options, problems)
    try:
        done = update(
            folder,
            reports,
            explained=not options.no_findings,
            processes=options.processes,
            progress=lambda *state: print(found.progress(*state), file=sys.stderr),
        )
    except KeyboardInterrupt:
        print("what was read is kept: the same command goes on from there", file=sys.stderr)
        raise
    for line in found.summary(done):
        print(line, file=sys.stderr)
    return bool(done.errors or problems)


def columns() -> int:
    """Columns for running text: ``$COLUMNS``, else the terminal's, else 80; never wider than reads well."""
    wide = _columns(sys.stdout) if "COLUMNS" in os.environ or sys.stdout.isatty() else 80
    if wide is None:
        # As `shutil` does it, which takes a tenth of a short answer's time to load.
        try:
            wide = os.get_terminal_size(sys.stdout.fileno()).columns or 80
        except (OSError, ValueError):
            wide = 80
    return min(100, wide)


def _columns(stream: TextIO) -> int | None:
    """Width to print in: ``$COLUMNS``, else the terminal's (None: rich asks it), else wide enough for a pipe."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and 20 <= int(wanted) <= 10_000:
        return int(wanted)
    return None if stream.isatty() else PIPE_COLUMNS


def chosen_cluster(options: argparse.Namespace, *, gpu: bool) -> str | Jobs | None:
    """The cluster that the options name, None without one; UsageError if options do not go together."""
    system = "slurm" if options.slurm else "pbs" if options.pbs else ""
    if options.job and not system:
        raise UsageError("--job belongs to --slurm or --pbs", "add --slurm N", "leave --job out")
    if not system:
        return options.cluster or None
    from gemmprof.profiler.cluster.connection import Jobs

    return Jobs(system, options.slurm or options.pbs, tuple(options.job or ()), gpu)
