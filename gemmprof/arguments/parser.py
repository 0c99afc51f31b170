"""How commands declare their options, and the parser of the command line: of all commands, or of one that is called."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import groupby
from typing import Any, NoReturn

from gemmprof import __version__
from gemmprof.arguments.common import columns, print_error
from gemmprof.base.errors import UsageError
from gemmprof.commands import COMMANDS, FRONT, help_text

# --- Options as a command declares them -------------------------------------------------------------------------------
# An argument is a line, its help two spaces or more behind it and on indented lines below::
#
#     inputs RUN|REPORT*       what to read
#     [which launches]
#     --launch WHICH…          position in the report; may be repeated
#     -t, --top N>=1           the N kernels that took most time
#     --force                  replace what is already there
#
# Behind the word for the value: ``…`` where it may be given again, ``*``, ``+`` and ``?`` as argparse has them, ``>=1``
# where it is a whole number from there on, ``%`` where it is a percentage. Behind a slash: the name among the options,
# where it is another. ``[title]`` begins a group, ``[]`` ends it; of the lines that begin with ``|`` one alone may be
# given. What else there is to say of values stands by the argument's name in `values`: choices (a tuple), a type (a
# function), what stands where none is given, or argparse's own words.

Values = Mapping[str, Any]
LARGEST = 0x7FFF_FFFF_FFFF_FFFF  # no option means more; a number of five thousand digits would take its time
_ARGUMENT = re.compile(
    r"(?P<flags>\w+|-[\w-]+(?:, --[\w-]+)*)(?:/(?P<name>\w+))?"
    r"(?: (?P<metavar>\S+?)(?:>=(?P<least>\d+)|(?P<percent>%))?)?(?P<more>[?*+…])?(?:  +(?P<help>.*))?"
)


def values(*others: Values, **own: Any) -> Values:
    """What a command says of its arguments' values, on top of what others say."""
    return {name: value for every in (*others, own) for name, value in every.items()}


def declare(parser: argparse.ArgumentParser, text: str, said: Values) -> None:
    """Add the arguments of a text; a plain value of a name that it does not declare is set as it stands."""
    place: argparse._ActionsContainer = parser
    one_of: argparse._ActionsContainer | None = None
    known = set()
    for entry in re.split(r"\n(?=\S)", text.strip("\n")):
        line = " ".join(map(str.strip, entry.splitlines())).rstrip()
        if line.startswith("["):
            place, one_of = parser.add_argument_group(line[1:-1]) if line != "[]" else parser, None
            continue
        if line.startswith("|"):
            one_of = one_of or place.add_mutually_exclusive_group()
        flags, name, words = _words(line.removeprefix("| "), said)
        known.add(name)
        (one_of if line.startswith("|") and one_of else place).add_argument(*flags, **words)
    rest = {name: value for name, value in said.items() if name not in known}
    parser.set_defaults(**{key: one for key, one in rest.items() if isinstance(one, (bool, str, list))})


def _words(line: str, said: Values) -> tuple[list[str], str, dict[str, Any]]:
    """An argument's flags, its name, and the rest in argparse's words."""
    found = _ARGUMENT.fullmatch(line)
    assert found is not None, line
    flags, more = found["flags"].split(", "), found["more"]
    name = found["name"] or flags[-1].lstrip("-").replace("-", "_")
    words: dict[str, Any] = {"metavar": found["metavar"], "help": found["help"]}
    words |= {"dest": name} if found["name"] else {}
    if more == "…":
        words |= {"action": "append", "default": []}
    elif more:
        words |= {"nargs": more} | ({"const": ""} if more == "?" and len(flags[0]) > len(name) else {})
    if found["least"]:
        words["type"] = whole(int(found["least"]))
    elif found["percent"]:
        words["type"] = percentage
    given = said.get(name)
    if isinstance(given, dict):
        words |= given
    elif isinstance(given, tuple):
        words["choices"] = given
    elif callable(given):
        words["type"] = given
    elif name in said:
        words["default"] = given
    if flags[0].startswith("-") and not (
        words["metavar"] or words.keys() & {"choices", "action", "type", "default"}
    ):
        return flags, name, {"action": "store_true", "help": words["help"]}
    return flags, name, words


def whole(least: int) -> Callable[[str], int]:
    """What reads a whole number from ``least`` on."""

    def read(text: str) -> int:
        digits = text[1:] if text[:1] in "+-" else text
        if not (digits.isascii() and digits.isdecimal()):
            some = ", ".join(str(least + step) for step in range(3))
            raise ArgumentTypeError(f"'{text[:40]}' is not a whole number: write {some} …")
        if len(digits) > len(str(LARGEST)) or int(text) > LARGEST:
            raise ArgumentTypeError(f"{text[:40]} is too large: write at most {LARGEST}")
        if int(text) < least:
            raise ArgumentTypeError(f"{text} is too small: write {least} or more")
        return int(text)

    return read


def percentage(text: str) -> float:
    """Per cent, 0 or more, with or without its sign."""
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        raise ArgumentTypeError(f"'{text[:40]}' is not a percentage: write 5 or 2.5") from None
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"{text[:40]} is no percentage from 0 on: write 5 or 2.5")
    return value


def on_disk(path: str) -> str:
    """The argument that is a place to write a run to, which grows there, and none in object storage."""
    from gemmprof.base.foreign_files import url_of

    if url := url_of(path):
        raise ArgumentTypeError(f"{url} is in object storage, where no run is made: name a folder here")
    return path


# --- Arguments that several commands have -----------------------------------------------------------------------------

TRUST = """
--trust                 read a run's reports although their hashes in run.json differ (which find accidents, and are no
                        signature); their launches are marked
"""
REDACT = """
--redact-source all|REGEX  show the text of no source file (all), or of none whose path an expression finds: line
                        numbers and costs stay, as do SASS, file and function names
"""
# The same words wherever launches are read.
SELECTION = """
[which launches (all that is given must hold)]
--kernel REGEX          those whose full demangled name, or stage, the expression is found in (case makes no
                        difference), or the family of an id: '#3'
--launch WHICH…         position in the report, from 0: 3, 2-5, 0,4,7-9 or 10-; may be repeated
--nvtx REGEX            those in an NVTX range; nested ranges are joined by /, outermost first
--owner REGEX           those whose code is theirs: own, triton, cublas, 'cudnn|cublas', torch ('gemmprof show' lists
                        owners)
--top N>=1              those of the N kernels that took the most time in all
[]
"""
INPUTS = f"""
inputs RUN|REPORT*      run directories, .ncu-rep files (.ncu-repz, .xz, .gz, .zst too), folders of them, or patterns in
                        quotes; without any: the newest run here, else the recorded run; '#3' chooses a family of theirs
{TRUST}{REDACT}{SELECTION}"""
TRACE = """
--trace FILE            what another profiler saw of the same step: torch's trace (.json, .json.gz) or nsys' SQLite;
                        ties launches to operators, and shows the gaps between them
"""
JSON = """
--json                  print JSON instead of a table
"""
FORCE = """
--force                 replace what is already there
"""
BASELINES = """
--baselines DIR         folder of the baselines (default: .gemmprof/baselines)
"""
# What Nsight Compute collects, and at which clocks; nothing has a default, so that what was given is known.
COLLECTION = """
--set/metric_set        what Nsight Compute collects: lean (default) is what gemmprof's analyses read, the others are
                        ncu's own
--section NAME…         one more ncu section; may be repeated
--metrics NAME[,NAME…]…  more ncu metrics; may be repeated
--clock-control         ncu's clock control: none (default) measures at the clocks of real life, base locks the base
                        clock
--no-timeline           do not sample counters over each launch (one or two passes more; reports are larger)
"""
DEFAULT_WAIT = 300


def cluster(title: str, whose: str, here: str = "") -> str:
    """The arguments that name a cluster, in a group of their own; ``here`` is the one that names this machine."""
    return f"""
[{title}]
{here}
| --cluster ADDRESS     a Dask scheduler (tcp://host:8786, or its scheduler file) {whose}
| --slurm N>=1          start N workers through Slurm for this command
| --pbs N>=1            start N workers through PBS for this command
--job NAME=VALUE…       option of dask-jobqueue for --slurm and --pbs (queue, account, walltime, memory, directive …);
                        may be repeated
--wait SECONDS>=0       wait so long for a cluster's scheduler file, its workers, and a scheduler that went away
                        (default {DEFAULT_WAIT})
[]
"""


READING_PLACE = cluster(
    "where to read", "whose workers read the reports, from storage that they share with this machine"
)
READ_THERE = values(wait=DEFAULT_WAIT, reads_on_a_cluster=True)
# Where thousands of reports are read into a data set (`common.refresh_dataset`).
DATASET = """
--processes N>=1        reports read at a time (default: %(default)s)
--no-findings           do not look for what to change: reads faster
"""
READ_INTO_DATASET = values(READ_THERE, processes=2)

# --- The parser that is made of them ----------------------------------------------------------------------------------

EXIT_ERROR = 2

_EXAMPLE = re.compile(r"\s|(\w+: +)?gemmprof \w")  # help that is no prose: what to type, or a row of a list


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
        values = (name for action in self._actions for name in map(str, action.choices or ()))
        known = [*self._option_string_actions, *values]
        import difflib

        words = message.split(": ", 1)[-1].partition(" (choose from")[0].replace("'", " ").split()
        found = []
        for name in (word.partition("=")[0] for word in words):
            # Dashes make every two options alike, so names are compared without them.
            bare = {one.lstrip("-"): one for one in known if one.startswith("-") == name.startswith("-")}
            close = difflib.get_close_matches(name.lstrip("-"), bare, n=1, cutoff=0.6)
            found += [f"did you mean {bare[one]}?" for one in close if name not in known]
        return [*found, f"`{self.prog} --help` lists what there is"]


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
