"""The parser of the command line: of all commands, or of the one that is called."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module
from itertools import groupby
from typing import Any, NoReturn

from gemmprof import __version__
from gemmprof.arguments.common import columns, print_error
from gemmprof.arguments.declared import declare
from gemmprof.base.errors import UsageError
from gemmprof.commands import COMMANDS, FRONT, help_text

EXIT_ERROR = 2

# A line of help that is no prose: what to type, or a row of a list.
_EXAMPLE = re.compile(r"\s|(\w+: +)?gemmprof \w")


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Prose as wide as the terminal; of an example that is wider, what it says below what is typed."""
        lines: list[str] = []
        for example, block in groupby(text.splitlines(), lambda line: not line or bool(_EXAMPLE.match(line))):
            if not example:
                lines += textwrap.wrap(" ".join(block), width)
                continue
            for line in block:
                typed, gap, says = line.lstrip().rpartition("   ")
                if len(line) <= width or not gap:
                    lines.append(line if not line or line[0] == " " else f"  {line}")
                    continue
                lines.append(f"  {typed.rstrip()}")
                lines += (f"      {part}" for part in textwrap.wrap(says.strip(), width - 6))
        return "\n".join(indent + line for line in lines)


class Parser(argparse.ArgumentParser):
    """A parser that takes no abbreviations and answers a mistyped word with the one that was meant."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, "formatter_class": _HelpFormatter, **kwargs})

    def error(self, message: str) -> NoReturn:
        """Print the usage of this very command, the mistake and what was meant; exit code 2."""
        problem = UsageError(message, *self._meant(message))
        typed = sys.argv[1:] if self.arguments is None else self.arguments
        if "--json" in typed or "--format=json" in typed:
            print_error(self.prog.removeprefix("gemmprof").strip(), problem, as_json=True)
        else:
            # Somebody who typed no command wants to know which there are.
            lost = self.prog == "gemmprof" and message.endswith("required: COMMAND")
            (self.print_help if lost else self.print_usage)(sys.stderr)
            print(f"{self.prog}: error: {problem}", file=sys.stderr)
        raise SystemExit(EXIT_ERROR)

    arguments: Sequence[str] | None = None
    """What is being parsed, where it is not the process's own command line."""

    def _meant(self, message: str) -> list[str]:
        """Remedies for a word that is close to one that exists; a value that an option refuses is no such word."""
        if message.startswith("argument ") and "invalid choice" not in message:
            return [f"`{self.prog} --help` lists what there is"]
        known = [
            *self._option_string_actions,
            *(name for a in self._actions for name in map(str, a.choices or ())),
        ]
        words = message.split(": ", 1)[-1].partition(" (choose from")[0].replace("'", " ").split()
        found = [f"did you mean {close[0]}?" for word in words if (close := _closest(word, known))]
        return [*found, f"`{self.prog} --help` lists what there is"]


def _closest(word: str, known: Sequence[str]) -> list[str]:
    import difflib

    name = word.partition("=")[0]
    # Dashes make every two options alike, so names are compared without them.
    bare = {one.lstrip("-"): one for one in known if one.startswith("-") == name.startswith("-")}
    close = difflib.get_close_matches(name.lstrip("-"), bare, n=1, cutoff=0.6)
    return [] if name in known else [bare[one] for one in close]


class _FrontParser(Parser):
    """The parser of everything, whose help lists the commands in groups."""

    def format_help(self) -> str:
        """Usage, the front door, the commands by group, examples."""
        return help_text() + "\n"


def parser_of_commands(only: str | None = None) -> Parser:
    """The whole command line; ``only`` names the one that is called, '' if it is none."""
    parser = _FrontParser(prog="gemmprof")
    parser.add_argument("--version", action="version", version=f"gemmprof {__version__}")
    # What belongs to one command must not be the class that lists them all.
    subparsers = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=Parser, prog="gemmprof"
    )
    for name in [only] if only else COMMANDS:
        if only == "":  # none is called: their names, for what was mistyped
            subparsers.add_parser(name, add_help=False)
            continue
        module = import_module(f"gemmprof.commands.{name}")
        command = subparsers.add_parser(name, help=COMMANDS[name], description=module.__doc__)
        values = getattr(module, "VALUES", {})
        if hasattr(module, "ACTIONS"):
            actions = command.add_subparsers(dest="action", metavar="ACTION", required=True)
            for action, (text, arguments) in module.ACTIONS.items():
                declare(actions.add_parser(action, help=text), arguments, values)
        else:
            declare(command, module.ARGUMENTS, values)
        command.set_defaults(run=module.run, parser=command)
    return parser


def parser_of_front_door() -> Parser:
    """What `gemmprof REPORT` takes."""
    module = import_module(f"gemmprof.commands.{FRONT}")
    parser = Parser(prog="gemmprof", description=module.FRONT_HELP)
    declare(parser, module.FRONT_ARGUMENTS, {})
    parser.set_defaults(run=module.front, parser=parser, command="")
    return parser
