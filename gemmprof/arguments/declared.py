"""Arguments as the help shows them: a command declares its own in a text, and `declare` gives them to argparse.

An argument is a line, its help two spaces or more behind it and on indented lines below::

    inputs RUN|REPORT*       what to read
    [which launches]
    --launch WHICH…          position in the report; may be repeated
    -t, --top N>=1           the N kernels that took most time
    --force                  replace what is already there

Behind the word for the value: ``…`` where it may be given again, ``*``, ``+`` and ``?`` as argparse has them, ``>=1``
where it is a whole number from there on, ``%`` where it is a percentage. Behind a slash: the name among the options,
where it is another. ``[title]`` begins a group, ``[]`` ends it; of the lines that begin with ``|`` one alone may be
given. What else there is to say of values stands by the argument's name in `values`: choices (a tuple), a type (a
function), what stands where none is given, or argparse's own words.
"""

from __future__ import annotations

import argparse
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from typing import Any

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
    parser.set_defaults(
        **{name: value for name, value in rest.items() if isinstance(value, (bool, str, list))}
    )


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
