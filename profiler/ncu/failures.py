"""What went wrong under Nsight Compute, read from its log and turned into one error with its remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gemmprof.base.errors import ProfilerError
from gemmprof.base.foreign_files import LARGEST_DOCUMENT, facts, read_text

# How each failure looks in the log, whatever the case, what to say of it, and what to do, most likely remedy first.
_TABLE = {
    name: (re.compile(pattern, re.IGNORECASE), says, tuple(remedies))
    for name, pattern, says, *remedies in facts(__file__, "failures.csv")
}


class KnownFailure(ProfilerError):
    """A failure whose cause shows in the log; the table beside this file has its words by the name of the class."""

    EVERYWHERE: ClassVar[bool] = True
    """The cause hits every stage alike: trying the next one would be in vain."""


class CounterPermissionError(KnownFailure):
    """The user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)."""


class ProfilerBusyError(KnownFailure):
    """Another profiler holds the GPU's counters."""


class DriverResourceError(ProfilerBusyError):
    """Another profiler holds what the driver gives to one at a time; it may be done in a moment (`patience`)."""


class DriverMismatchError(KnownFailure):
    """The driver is too old for this Nsight Compute, or cannot profile at all."""


class DiskFullError(KnownFailure):
    """The report could not be written."""


class MetricNameError(KnownFailure):
    """A section or metric that this Nsight Compute does not know on this GPU."""


class KernelFaultError(KnownFailure):
    """The profiled program or its kernel failed."""

    EVERYWHERE = False


class NothingProfiledError(KnownFailure):
    """Nsight Compute ran through and profiled no kernel."""


class KilledError(ProfilerError):
    """Something ended ncu from outside."""


# In the order in which they are looked for: causes before their consequences.
KNOWN_FAILURES: tuple[type[KnownFailure], ...] = (
    *(CounterPermissionError, DriverResourceError, ProfilerBusyError, DriverMismatchError),
    *(DiskFullError, MetricNameError, KernelFaultError, NothingProfiledError),
)

COUNTER_REMEDIES = _TABLE[CounterPermissionError.__name__][2]

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


def known_failure(lines: Sequence[str]) -> tuple[type[KnownFailure], str] | None:
    """The first known cause that some line shows, and that line."""
    return next(
        (
            (known, line)
            for known in KNOWN_FAILURES
            for line in lines
            if _TABLE[known.__name__][0].search(line)
        ),
        None,
    )


def translate(
    log: NcuLog, *, log_file: Path, exit_code: int | None = None, output: str = ""
) -> ProfilerError | None:
    """One error for everything the log complains about, None if it complains about nothing.

    Args:
        log_file: named in the error, for the whole text.
        exit_code: ncu's own exit code; a negative one is a signal.
        output: the last lines that ncu and the program wrote to standard output and error.
    """
    spoken = [line for line in output.splitlines() if line.strip()]
    cause = known_failure([*log.errors, *log.warnings]) or known_failure(spoken)
    see = f"the whole log is in {log_file}"
    if cause is not None:
        failure, line = cause
        _, says, remedies = _TABLE[failure.__name__]
        return failure(says, remedies=(*remedies, see), found=line)
    if log.errors:
        return ProfilerError("Nsight Compute reported an error", remedies=[see], found="; ".join(log.errors))
    last = spoken[-1] if spoken else ""
    if (number := _signal(exit_code)) is not None:
        remedies = ("check free memory (a killed process is often out of memory)", see)
        return KilledError(f"ncu was ended by signal {number}", remedies=remedies, found=last)
    if exit_code:
        return ProfilerError(f"ncu ended with exit code {exit_code}", remedies=[see], found=last)
    return None


def _signal(exit_code: int | None) -> int | None:
    """The signal that ended ncu, None if none did. ncu is a shell script, and shells report 128 + signal."""
    if exit_code is None:
        return None
    return {128 + 9: 9, 128 + 15: 15}.get(exit_code) if exit_code >= 0 else -exit_code


def hits_every_stage(error: ProfilerError) -> bool:
    """Whether the cause of ``error`` would stop every other stage as well."""
    return isinstance(error, KnownFailure) and error.EVERYWHERE
