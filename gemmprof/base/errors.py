"""The errors gemmprof raises on purpose: each says what happened, what to do, and what was found."""

from __future__ import annotations

from gemmprof.base.printable import one_line, printable, without_log_commands


class GemmprofError(Exception):
    """A failure that a user can act on; the command line prints it without a traceback and exits with 2.

    Args:
        message: what happened, in one sentence, naming the file, option or stage.
        remedies: what to do about it, most likely remedy first.
        found: what was seen, verbatim where it helps (a tool's own error line, a version).
    """

    exit_code = 2

    def __init__(self, message: str, *remedies: str, found: str = "") -> None:
        super().__init__(message)
        self.message, self.remedies, self.found = message, remedies, found

    def __str__(self) -> str:
        # Messages quote names of files and kernels: only what a tool said may have lines of its own.
        lines = [one_line(self.message)]
        if self.found:
            lines.append(f"  found: {printable(self.found)}")
        lines += [f"  fix: {one_line(remedy)}" for remedy in self.remedies]
        return without_log_commands("\n".join(lines))


class UsageError(GemmprofError):
    """The call itself is off: an option, an argument or a combination of them."""


class ReportError(GemmprofError):
    """A report file that is missing, damaged, truncated, empty or of another kind."""


class UnreachableError(ReportError):
    """The file system did not give a report to this machine: no defect of the report's, and maybe not so elsewhere.

    Attributes:
        path: its name.
    """

    path = ""

    @classmethod
    def of(cls, path: object, message: str, *remedies: str, found: str = "") -> UnreachableError:
        """The error for a file; it travels between processes, which know of the message alone."""
        error = cls(message, *remedies, found=found)
        error.path = str(path)
        return error


class RunError(GemmprofError):
    """A run directory that is missing, of another format version, or damaged."""


class OccupancyError(GemmprofError, ValueError):
    """A launch configuration that no device of the architecture can run."""


class DeviceError(GemmprofError):
    """No usable GPU, driver, compiler or profiler on this machine."""


class BuildError(GemmprofError):
    """The extension could not be compiled or loaded."""


class ProfilerError(GemmprofError):
    """Nsight Compute ran and failed, or profiled nothing."""
