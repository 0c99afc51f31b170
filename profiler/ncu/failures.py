"""What went wrong under Nsight Compute, read from its log and turned into one error with its remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gemmprof.base.errors import ProfilerError
from gemmprof.base.foreign_files import LARGEST_DOCUMENT, facts, read_text

# What went wrong, in the order in which it is looked for, causes before their consequences: how it looks in the log,
# whatever the case, what to say of it, and what to do, most likely remedy first.
_TABLE = {
    kind: (re.compile(pattern, re.IGNORECASE), says, tuple(remedies))
    for kind, pattern, says, *remedies in facts(__file__, "failures.csv")
}
# The kinds that somebody asks for, and that of an ncu which something ended from outside.
RESOURCE, KERNEL, NOTHING, KILLED = "resource", "kernel", "nothing", "killed"

COUNTER_REMEDIES = _TABLE["permission"][2]


class NcuError(ProfilerError):
    """What went wrong under Nsight Compute; ``kind`` is its row of the table beside this file."""

    def __init__(self, message: str, *remedies: str, kind: str = "", found: str = "") -> None:
        super().__init__(message, *remedies, found=found)
        self.kind = kind

    @property
    def hits_every_stage(self) -> bool:
        """Whether the cause would stop every other stage as well: trying the next one would be in vain."""
        return self.kind not in ("", KERNEL, KILLED)

    def but(self, *, remedies: Sequence[str] | None = None, found: str | None = None) -> NcuError:
        """The same with other remedies, or other words for what was found."""
        return NcuError(
            self.message,
            *(self.remedies if remedies is None else remedies),
            kind=self.kind,
            found=self.found if found is None else found,
        )


_MARKED = re.compile(r"==(ERROR|WARNING)==\s*(.*)$")
_PROFILING = re.compile(r'==PROF== Profiling "(?P<name>.*)"(?: - \d+|: )')
_PROFILED = re.compile(r"100% - (?P<passes>\d+) pass")
_GIVEN_UP = "==PROF== Trying to shutdown"


@dataclass(frozen=True, slots=True)
class ProfiledKernel:
    """A kernel that the log reports as profiled, in launch order."""

    name: str
    passes: int


@dataclass(frozen=True, slots=True)
class NcuLog:
    """What ncu said: its errors and warnings, and the kernels it profiled."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    kernels: tuple[ProfiledKernel, ...] = ()

    @classmethod
    def parse(cls, text: str) -> NcuLog:
        """Read a log. Lines that are not ncu's own (no ``==WORD==``) are ignored."""
        marked: dict[str, list[str]] = {"ERROR": [], "WARNING": []}
        kernels = []
        name = ""
        for line in text.splitlines():
            # A warning may come between the percentages of a kernel, and an error behind them on the same line.
            if found := _MARKED.search(line):
                marked[found.group(1)].append(found.group(2).strip())
            if started := _PROFILING.search(line):
                name = started["name"]
            if _GIVEN_UP in line:
                name = ""
            if name and (ended := _PROFILED.search(line)):
                kernels.append(ProfiledKernel(name, int(ended["passes"])))
                name = ""
        return cls(
            tuple(dict.fromkeys(marked["ERROR"])), tuple(dict.fromkeys(marked["WARNING"])), tuple(kernels)
        )

    @classmethod
    def read(cls, path: Path) -> NcuLog:
        """Read a log file; an absent one is an empty log."""
        try:
            return cls.parse(read_text(path, LARGEST_DOCUMENT, errors="replace"))
        except FileNotFoundError:
            return cls()


def _known(lines: Sequence[str]) -> tuple[str, str] | None:
    """The first known cause that some line shows, and that line."""
    found = ((kind, line) for kind, (shown, *_) in _TABLE.items() for line in lines if shown.search(line))
    return next(found, None)


def translate(
    log: NcuLog, *, log_file: Path, exit_code: int | None = None, output: str = ""
) -> NcuError | None:
    """One error for everything the log complains about, None if it complains about nothing.

    Args:
        log_file: named in the error, for the whole text.
        exit_code: ncu's own exit code; a negative one is a signal.
        output: the last lines that ncu and the program wrote to standard output and error.
    """
    spoken = [line for line in output.splitlines() if line.strip()]
    cause = _known([*log.errors, *log.warnings]) or _known(spoken)
    see = f"the whole log is in {log_file}"
    if cause is not None:
        kind, line = cause
        _, says, remedies = _TABLE[kind]
        return NcuError(says, *remedies, see, kind=kind, found=line)
    if log.errors:
        return NcuError("Nsight Compute reported an error", see, found="; ".join(log.errors))
    last = spoken[-1] if spoken else ""
    if (number := _signal(exit_code)) is not None:
        remedies = ("check free memory (a killed process is often out of memory)", see)
        return NcuError(f"ncu was ended by signal {number}", *remedies, kind=KILLED, found=last)
    if exit_code:
        return NcuError(f"ncu ended with exit code {exit_code}", see, found=last)
    return None


def _signal(exit_code: int | None) -> int | None:
    """The signal that ended ncu, None if none did. ncu is a shell script, and shells report 128 + signal."""
    if exit_code is None:
        return None
    return {128 + 9: 9, 128 + 15: 15}.get(exit_code) if exit_code >= 0 else -exit_code
