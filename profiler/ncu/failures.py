"""What went wrong under Nsight Compute, read from its log and turned into one error with its remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gemmprof.base.errors import ProfilerError
from gemmprof.base.foreign_files import LARGEST_DOCUMENT, read_text

COUNTER_REMEDIES = (
    "as root, allow it for every user: write `options nvidia NVreg_RestrictProfilingToAdminUsers=0` to "
    "/etc/modprobe.d/nvidia-profiling.conf, then reload the nvidia module or reboot (update the initramfs if it holds "
    "the module)",
    "or run as root, or in a container started with --cap-add=SYS_ADMIN; from driver R565 on CAP_PERFMON is enough",
    "on a rented machine, ask the provider to set NVreg_RestrictProfilingToAdminUsers=0 on the host or to grant the "
    "container CAP_PERFMON (driver R565 or newer) or CAP_SYS_ADMIN: nothing inside the container can change it",
    "`gemmprof collect --no-profile` verifies and times the stages without counters",
)

BUSY_REMEDIES = (
    "end other profilers on this GPU: ncu, nsys with --gpu-metrics-devices, PyTorch's profiler",
    "if DCGM monitors the machine, pause it: `dcgmi profiling --pause` (and --resume afterwards)",
)


class KnownFailure(ProfilerError):
    """A failure whose cause shows in the log.

    Attributes:
        SHOWN: how it looks there, whatever the case.
        SAYS, FIXES: what to say about it, and what to do.
        EVERYWHERE: the cause hits every stage alike: trying the next one would be in vain.
    """

    SHOWN: ClassVar[str]
    SAYS: ClassVar[str]
    FIXES: ClassVar[tuple[str, ...]]
    EVERYWHERE: ClassVar[bool] = True


class CounterPermissionError(KnownFailure):
    """The user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)."""

    SHOWN = r"ERR_NVGPUCTRPERM|does not have permission to (access|profile)"
    SAYS = "this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM)"
    FIXES = COUNTER_REMEDIES


class ProfilerBusyError(KnownFailure):
    """Another profiler holds the GPU's counters."""

    SHOWN = r"another (instance of a )?(profiler|tool)|already (attached|being profiled)|Profiler is already"
    SAYS = "another profiler holds the GPU's counters"
    FIXES = BUSY_REMEDIES


class DriverResourceError(ProfilerBusyError):
    """Another profiler holds what the driver gives to one at a time; it may be done in a moment (`patience`)."""

    SHOWN = r"driver resource was unavailable"


class DriverMismatchError(KnownFailure):
    """The driver is too old for this Nsight Compute, or cannot profile at all."""

    SHOWN = (
        r"driver is not compatible|driver version is insufficient|driver .*(too old|not supported)|"
        r"LibraryNotLoaded|Failed to initialize the profiler|unsupported driver"
    )
    SAYS = "the NVIDIA driver does not work with this Nsight Compute"
    FIXES = (
        "upgrade the driver to the one that the CUDA toolkit of this ncu came with, or newer",
        "or use an Nsight Compute as old as the driver: set GEMMPROF_NCU=/path/to/ncu",
        "in a sandboxed container (gVisor) or a vGPU without profiling, counters cannot be read at all",
    )


class DiskFullError(KnownFailure):
    """The report could not be written."""

    SHOWN = (
        r"No space left on device|disk (is )?full|(could|can)(not| not) (write|save|create|open).*(report|file)|"
        r"failed to (write|save|create|open).*(report|file)|Insufficient disk space|not enough (disk )?space|"
        r"File size limit exceeded"
    )
    SAYS = "the report could not be written"
    FIXES = (
        "free disk space for the run directory and for temporary files (ncu writes to $TMPDIR, else /tmp)",
        "choose another --output, or set TMPDIR to a folder with more room and write permission",
    )


class MetricNameError(KnownFailure):
    """A section or metric that this Nsight Compute does not know on this GPU."""

    SHOWN = (
        r"Failed to find (metric|section|rule)|Unknown (section|metric)|did not match any section|"
        r"metric.*not (found|available)|"
        r"unrecognised option|invalid (metric|section|option)|not a valid (metric|section)|"
        r"could not find (section|metric)"
    )
    SAYS = "ncu refused a section, metric or option"
    FIXES = (
        "list what this ncu knows: `ncu --list-sections`, `ncu --query-metrics --chips gh100`",
        "check --section and --metrics for spelling",
        "upgrade Nsight Compute if it is older than the GPU",
    )


class KernelFaultError(KnownFailure):
    """The profiled program or its kernel failed."""

    SHOWN = (
        r"LaunchFailed|Failed to profile|illegal (memory access|address|instruction)|unspecified launch failure|"
        r"misaligned address|application returned an error|Failed to prepare kernel|"
        r"error occurred while trying to profile"
    )
    SAYS = "the kernel or its program failed under Nsight Compute"
    FIXES = (
        "see whether it fails without the profiler: `gemmprof collect --no-profile`",
        "look for invalid accesses: `compute-sanitizer python -m pytest …`, or run the stage alone",
    )
    EVERYWHERE = False


class NothingProfiledError(KnownFailure):
    """Nsight Compute ran through and profiled no kernel."""

    SHOWN = r"No kernels were profiled"
    SAYS = "Nsight Compute profiled no kernel"
    FIXES = (
        "see the log for an earlier warning",
        "check that the program runs on the GPU without the profiler: `gemmprof collect --no-profile`",
    )


class KilledError(ProfilerError):
    """Something ended ncu from outside."""


# In the order in which they are looked for: causes before their consequences.
KNOWN_FAILURES: tuple[type[KnownFailure], ...] = (
    *(CounterPermissionError, DriverResourceError, ProfilerBusyError, DriverMismatchError),
    *(DiskFullError, MetricNameError, KernelFaultError, NothingProfiledError),
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


def known_failure(lines: Sequence[str]) -> tuple[type[KnownFailure], str] | None:
    """The first known cause that some line shows, and that line."""
    for known in KNOWN_FAILURES:
        pattern = known.SHOWN
        for line in lines:
            if re.search(pattern, line, re.IGNORECASE):
                return known, line
    return None


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
        return failure(failure.SAYS, remedies=(*failure.FIXES, see), found=line)
    if log.errors:
        return ProfilerError("Nsight Compute reported an error", remedies=[see], found="; ".join(log.errors))
    number = _signal(exit_code)
    if number is not None:
        return KilledError(
            f"ncu was ended by signal {number}",
            remedies=["check free memory (a killed process is often out of memory)", see],
            found=spoken[-1] if spoken else "",
        )
    if exit_code:
        return ProfilerError(
            f"ncu ended with exit code {exit_code}", remedies=[see], found=spoken[-1] if spoken else ""
        )
    return None


def _signal(exit_code: int | None) -> int | None:
    """The signal that ended ncu, None if none did. ncu is a shell script, and shells report 128 + signal."""
    if exit_code is None:
        return None
    return {128 + 9: 9, 128 + 15: 15}.get(exit_code) if exit_code >= 0 else -exit_code


def hits_every_stage(error: ProfilerError) -> bool:
    """Whether the cause of ``error`` would stop every other stage as well."""
    return isinstance(error, KnownFailure) and error.EVERYWHERE
