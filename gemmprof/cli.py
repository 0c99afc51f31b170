"""The front door: `gemmprof REPORT`, one parser over the list of commands, one place where errors become messages.

Exit codes: 0 fine, 1 a finding (a stage failed, a gate did not hold), 2 an error that its user can act on, 70 a fault
of gemmprof itself (``EX_SOFTWARE`` of sysexits.h), 128 and the signal's number where somebody ended it.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from gemmprof import __version__, end_at_once
from gemmprof.base import system
from gemmprof.base.errors import GemmprofError, UsageError
from gemmprof.base.printable import guarded_output, one_line, silence
from gemmprof.commands import COMMANDS, GROUPS, TAKE_A_PROGRAM, help_text

if TYPE_CHECKING:
    import argparse
    from types import FrameType

    from gemmprof.arguments.parser import Parser

EXIT_OK, EXIT_FINDING, EXIT_ERROR, EXIT_FAULT = 0, 1, 2, 70


def build_parser(only: str | None = None) -> Parser:
    """The whole command line; ``only`` names the one command whose arguments are needed."""
    from gemmprof.arguments.parser import parser_of_commands

    return parser_of_commands(only)


def _named(arguments: Sequence[str]) -> tuple[str, bool]:
    """The command that the arguments name, '' if none (only its module is imported), and whether they name an input.

    An input, as the first word that is no option, is a report, a run, a folder, a pattern or a family's id.
    """
    first = next((argument for argument in arguments if not argument.startswith("-")), "")
    if not first or first in COMMANDS:
        return first, False
    return "", first[0] == "#" or any(c in first for c in "/\\*?[.") or os.path.lexists(first)


_interrupts: list[int] = []
"""Signals of Ctrl-C that came while the command runs: some modules, loading, make another exception of it."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    _interrupts.append(number)
    signal.default_int_handler(number, frame)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    _interrupts.clear()
    if arguments is None:
        system.runs_one_command(begins_others=not GROUPS["collect"].keys().isdisjoint(sys.argv))
    argv = list(sys.argv[1:] if arguments is None else arguments)
    with guarded_output(), _orderly_endings():
        try:
            code = _run(argv)
        except (KeyboardInterrupt, _Terminated) as ending:
            # Before the command itself began: while its modules were loading.
            return _ended("gemmprof", ending)
        except Exception as error:
            if behind := _ending_behind(error) or (KeyboardInterrupt() if _interrupts else None):
                return _ended("gemmprof", behind)
            return _fault(argv, error)
        try:
            sys.stdout.flush()
        except OSError as error:
            silence(sys.stdout)
            print(f"gemmprof: error: standard output: {_advice(error)}", file=sys.stderr)
            return EXIT_ERROR
        return code


def _run(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(help_text())  # without a parser, which takes longer to load than all else that help needs
        return EXIT_OK
    from gemmprof.arguments.common import take_ids
    from gemmprof.arguments.parser import Parser, parser_of_front_door

    name, front = _named(argv)
    program: list[str] = []
    if name in TAKE_A_PROGRAM and "--" in argv:  # what stands behind it is the user's own command, untouched
        argv, program = argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    Parser.arguments = argv
    parser = parser_of_front_door() if front else build_parser(only=name)
    options, unknown = parser.parse_known_args(argv)
    if "inputs" in options and not any(word.startswith("-") for word in unknown):
        options.inputs += (
            unknown  # `show my.ncu-rep --source '#3'`: argparse takes those before an option alone
        )
    elif unknown:
        what = "option" if unknown[0].startswith("-") else "argument"
        options.parser.error(f"there is no {what}: {' '.join(unknown)}")
    if program:
        options.program = program
    try:
        if "inputs" in options and "kernel" in options:
            take_ids(options)
        with _as_asked(options):
            return int(options.run(options))
    except GemmprofError as error:
        return _no_luck(options, error)
    except OSError as error:
        # The file system said no: a full disk, a folder that may not be written.
        return _no_luck(options, _advice(error))
    except MemoryError:
        return _no_luck(options, UsageError("not enough memory"))
    except (KeyboardInterrupt, _Terminated) as ending:
        return _ended(f"gemmprof {options.command}".rstrip(), ending)


def _ending_behind(error: BaseException) -> KeyboardInterrupt | _Terminated | None:
    """The ending that an exception came of: Python 3.11 and some packages wrap what is raised while modules load."""
    seen: BaseException | None = error
    for _ in range(20):
        if isinstance(seen, (KeyboardInterrupt, _Terminated)):
            return seen
        seen = seen and (seen.__cause__ or seen.__context__)
    return None


def _fault(argv: Sequence[str], error: Exception) -> int:
    """Say that gemmprof itself is at fault; never with the exit code of a finding, which would pass for an answer."""
    if sys.flags.dev_mode:
        raise error
    import traceback
    from pathlib import Path

    from gemmprof.arguments.common import print_error

    places = traceback.extract_tb(error.__traceback__)
    place = next((one for one in reversed(places) if "gemmprof" in one.filename), places[-1])
    where = f"{Path(place.filename).name}:{place.lineno}, {place.name}"
    problem = GemmprofError(
        f"this is a fault of gemmprof, version {__version__}: {type(error).__name__} in {where}",
        "report it with the file it happened on; `python -P -X dev -m gemmprof …` shows where it is from",
        found=str(error)[:500],
    )
    with suppress(OSError):
        print_error(_named(argv)[0], problem, as_json="--json" in argv or "--format=json" in argv)
    return EXIT_FAULT


@contextmanager
def _as_asked(options: argparse.Namespace) -> Iterator[None]:
    """What ``--trust`` and ``--redact-source`` ask for, and where reports are read: here, or by a cluster's workers.

    Without them nothing that reads reports is imported here.
    """
    with ExitStack() as stack:
        if getattr(options, "trust", False):
            from gemmprof.analysis.reading.frame import trusting

            stack.enter_context(trusting(True))
        if wanted := getattr(options, "redact_source", None):
            from gemmprof.analysis.reading.frame import REDACTED_SOURCES
            from gemmprof.base.regex import RegexError, regex

            if any(getattr(options, name, None) for name in ("cluster", "slurm", "pbs")):
                raise UsageError("--redact-source holds on this machine alone", "leave out the cluster")
            try:
                regex(wanted)
            except RegexError as error:
                raise UsageError(f"--redact-source: '{wanted}' is no expression: {error}", "all") from None
            if (before := os.environ.get(REDACTED_SOURCES)) is None:
                stack.callback(os.environ.pop, REDACTED_SOURCES)
            else:
                stack.callback(os.environ.__setitem__, REDACTED_SOURCES, before)
            os.environ[REDACTED_SOURCES] = wanted  # there: pages are made by several processes
        if getattr(options, "reads_on_a_cluster", False):
            from gemmprof.arguments.common import chosen_cluster

            if (where := chosen_cluster(options, gpu=False)) is not None:
                from gemmprof.profiler.cluster.readers import reading_on
                from gemmprof.reports.terminal.progress_bars import PlainProgress

                stack.enter_context(reading_on(where, wait=options.wait, progress=PlainProgress()))
        yield


def _no_luck(options: argparse.Namespace, problem: GemmprofError) -> int:
    from gemmprof.arguments.common import print_error

    with suppress(OSError):  # standard output itself may be what fails
        print_error(options.command, problem, as_json=getattr(options, "json", False))
    return problem.exit_code


_REMEDIES = {
    errno.ENOSPC: "free some space, or write to another disk with -o; temporary files go to $TMPDIR",
    errno.EDQUOT: "your quota is used up: free some space, or write to another disk with -o",
    errno.EROFS: "this disk is read-only: write elsewhere with -o",
    errno.EACCES: "check the permissions, or write elsewhere with -o",
    errno.EPERM: "check the permissions, or write elsewhere with -o",
    errno.EIO: "the disk fails or was removed: write elsewhere with -o",
    errno.ENOENT: "the folder is gone: was it removed, or its disk?",
}


def _advice(error: OSError) -> UsageError:
    """What the file system said, where, and what to do about it."""
    where = f"{one_line(error.filename)}: " if error.filename else ""
    remedy = _REMEDIES.get(error.errno or 0)
    return UsageError(f"{where}{error.strerror or error}", *([remedy] if remedy else []))


class _Terminated(BaseException):
    """Somebody asked this process to end (SIGTERM, SIGHUP): raised so that what was begun is cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _ended(who: str, ending: KeyboardInterrupt | _Terminated) -> int:
    """Say that somebody stopped us; the exit code is the shell's for a process that the signal ended."""
    if isinstance(ending, _Terminated):
        print(f"{who}: ended by {signal.Signals(ending.number).name}", file=sys.stderr)
        return 128 + ending.number
    print(f"{who}: interrupted", file=sys.stderr)
    return 128 + signal.SIGINT


SOON_SECONDS = 0.01


def _end_soon(ignored: sys.UnraisableHookArgs) -> None:
    """An ending that came while Python was clearing something up is no exception there, where it is lost: once more."""
    ending = ignored.exc_value
    if not isinstance(ending, (KeyboardInterrupt, _Terminated)):
        sys.__unraisablehook__(ignored)
        return

    def end(_number: int, _frame: object) -> None:
        raise ending

    number = ending.number if isinstance(ending, _Terminated) else signal.SIGINT
    system.raise_soon(SOON_SECONDS, number, end)


@contextmanager
def _orderly_endings() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exception, unless somebody else handles or ignores them."""

    def end(number: int, _frame: object) -> None:
        raise _Terminated(number)

    changed = []
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, end_at_once):  # see `gemmprof.__main__`
            signal.signal(signal.SIGINT, _interrupt)
        for number in system.endings():
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, end)
                changed.append(number)
    hook = sys.unraisablehook
    if changed and hook is sys.__unraisablehook__:
        sys.unraisablehook = _end_soon
    try:
        yield
    finally:
        if sys.unraisablehook is _end_soon:
            system.raise_soon(0, signal.SIGTERM, signal.default_int_handler)
            sys.unraisablehook = hook
        for number in changed:
            signal.signal(number, signal.SIG_DFL)
