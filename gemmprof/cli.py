"""The front door: one parser over the list of commands, one place where errors become messages and exit codes.

Exit codes: 0 fine, 1 a finding (a stage failed, a gate did not hold), 2 an error.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from gemmprof import __version__
from gemmprof.commands import COMMANDS
from gemmprof.errors import GemmprofError

EXIT_OK, EXIT_FINDING, EXIT_ERROR = 0, 1, 2


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The whole command line; ``only`` names the one command whose arguments are needed."""
    parser = argparse.ArgumentParser(
        prog="gemmprof",
        description="Profile CUDA kernels with Nsight Compute and explain what holds them back.",
        epilog="`gemmprof COMMAND --help` shows a command's options. Reports are read without a GPU.",
        formatter_class=_HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gemmprof {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if only is not None and name != only:
            subparsers.add_parser(name, help=summary, add_help=False)
            continue
        module = import_module(f"gemmprof.commands.{name.replace('-', '_')}")
        command = subparsers.add_parser(
            name, help=summary, description=module.__doc__, formatter_class=_HelpFormatter
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def _named_command(arguments: Sequence[str]) -> str:
    """The command that the arguments name, '' if none: only its module is imported."""
    for argument in arguments:
        if argument in COMMANDS:
            return argument
        if not argument.startswith("-"):
            break
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    parser = build_parser(only=_named_command(argv))
    options = parser.parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that is not UTF-8 gets a ? for what it cannot show, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except GemmprofError as error:
        print(f"gemmprof {options.command}: error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output left (`gemmprof … | head`); keep Python from complaining at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except OSError as error:
        # The file system said no: a full disk, a folder that may not be written.
        where = f"{error.filename}: " if error.filename else ""
        print(f"gemmprof {options.command}: error: {where}{error.strerror or error}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        print(f"gemmprof {options.command}: interrupted", file=sys.stderr)
        return 130
