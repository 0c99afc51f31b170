"""Nsight Compute's command line as data: which options, in which order, for one profiled program; and how it failed."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from gemmprof import metrics
from gemmprof.base.errors import DeviceError, ProfilerError, UsageError
from gemmprof.base.foreign_files import LARGEST_DOCUMENT, facts, read_text
from gemmprof.gpu.devices import NCU_VARIABLE, Tool, find_ncu, ncu_installation
from gemmprof.metrics import LEAN
from gemmprof.metrics.patterns import PM_SAMPLING

OLDEST_NCU = (2023, 1)  # the first release with every option and section that we ask for on an H100
SAMPLES_SINCE = (2023, 3)  # the first ncu that samples counters over time


def known_to(ncu: Tool, collection: Sequence[str]) -> tuple[str, ...]:
    """These options without the section that an older ncu does not know, which would end it."""
    if not ncu.version or ncu.version >= SAMPLES_SINCE:
        return tuple(collection)
    kept: list[str] = []
    for word in collection:
        if word == PM_SAMPLING and kept[-1:] == ["--section"]:
            kept.pop()
        else:
            kept.append(word)
    return tuple(kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collecting:
    """What ncu collects of each launch, and at which clocks."""

    metric_set: str = LEAN  # ``lean`` (what gemmprof's analyses read) or one of ncu's own sets
    # more ncu sections, extra_metrics: more metric names, both passed through
    extra_sections: tuple[str, ...] = ()
    extra_metrics: tuple[str, ...] = ()
    timeline: bool = True  # sample counters over the launch
    clock_control: str = "none"  # ncu's ``--clock-control``; ``none`` leaves the clocks as they are

    def collection(self, own: Sequence[str] = (), *, tensor: bool = True) -> tuple[str, ...]:
        """The ncu options that choose sections and metrics; ``own``: metrics besides, ``tensor``: of tensor cores."""
        names = (*own, *self.extra_metrics)
        return metrics.collection_options(
            self.metric_set, tensor=tensor, timeline=self.timeline, sections=self.extra_sections, names=names
        )


@dataclass(frozen=True, slots=True)
class NcuCommand:
    """One call of ncu."""

    executable: Path  # ncu itself
    report: Path  # the report to write, ending in ``.ncu-rep``
    log: Path  # file for ncu's own messages; the program's output stays on its own standard output
    collection: Sequence[str]  # options that choose sections and metrics
    program: Sequence[str]  # the program to profile, with its arguments
    clock_control: str = "none"  # ``none`` leaves the clocks alone, ``base`` locks them to the base clock
    source_folders: Sequence[Path] = ()  # where ncu looks for sources whose recorded path does not exist
    section_folder: Path | None = None  # where ncu finds its sections, instead of in its own installation
    filters: Sequence[str] = ()  # options that choose the launches to profile
    marked_only: bool = True  # only between cudaProfilerStart and cudaProfilerStop, which the program calls
    children: bool = False  # also profile the processes that the program starts
    # for counting: without the CUDA sources in the report, and without emptying the GPU's caches before each pass, so
    # that a launch may profit from the one before
    quick: bool = False
    ranges_of_all_threads: bool = False  # NVTX ranges hold other threads' launches, too, as autograd's

    def __post_init__(self) -> None:
        if self.report.suffix != ".ncu-rep":
            raise UsageError(f"a report's name ends in .ncu-rep, '{self.report.name}' does not")

    def arguments(self) -> list[str]:
        """The argument list for `subprocess`.

        A user's own ncu configuration file is ignored, because it could change what is collected.
        """
        arguments = [
            str(self.executable),
            *("--config-file", "off"),
            *("--target-processes", "all" if self.children else "application-only"),
            *(("--profile-from-start", "off") if self.marked_only else ()),
            "--nvtx",
            *(("--nvtx-push-pop-scope", "process") if self.ranges_of_all_threads else ()),
            *("--import-source", "no" if self.quick else "yes"),
            *("--clock-control", self.clock_control),
            *(("--cache-control", "none") if self.quick else ()),
            *self.filters,
            *self.collection,
            *("--log-file", _literal(self.log)),
            *("--export", _literal(self.report)),
            "--force-overwrite",
        ]
        if self.section_folder is not None:
            arguments += ["--section-folder", str(self.section_folder)]
        if self.source_folders:
            arguments += ["--source-folders", ",".join(str(folder) for folder in self.source_folders)]
        return [*arguments, *self.program]


def _literal(path: Path) -> str:
    """The path with ncu's file-name macros (``%p``, ``%i`` …) switched off."""
    return str(path).replace("%", "%%")


WITHOUT_NCU = "`gemmprof collect --no-profile` verifies and times the stages without it"


def require_ncu(*remedies: str) -> Tool:
    """The ncu of this machine; DeviceError, with more ``remedies``, if there is none, or it is too old."""
    ncu = find_ncu()
    if ncu is None:
        raise DeviceError(
            "Nsight Compute's command line `ncu` was not found",
            "install it: it comes with the CUDA toolkit (package cuda-nsight-compute-*) or from "
            "https://developer.nvidia.com/nsight-compute",
            f"if it is installed, put its folder on PATH or set {NCU_VARIABLE}=/path/to/ncu",
            *remedies,
            found="no ncu on PATH, in /usr/local/cuda/bin or in /opt/nvidia/nsight-compute",
        )
    if ncu.version and ncu.version < OLDEST_NCU:
        oldest = ".".join(str(part) for part in OLDEST_NCU)
        raise DeviceError(
            f"ncu {ncu.version_text} is too old; gemmprof needs {oldest} or newer",
            "install a newer Nsight Compute (it works with an older CUDA toolkit too)",
            f"if a newer one is installed beside it, set {NCU_VARIABLE}=/path/to/ncu",
            found=str(ncu.path),
        )
    return ncu


# --- Sections ---------------------------------------------------------------------------------------------------------
# For some metrics of a section ncu patches the kernel and runs it several times slower, once more for each kind; some
# tables make it collect hundreds of metrics. ncu takes its sections from any folder, so the lean set gets a copy of the
# installation's folder in which these blocks are missing. The rules that hang on the sections come along, and apply as
# ever (but for those that need what is missing).

# A metric, or a table of the memory tables, whose metrics ncu knows by itself.
_NAME = re.compile(r'\bName:\s*"([^"]+)"|\b(Memory\w+Table)\s*\{')
_SETS = re.compile(r"\bSets\s*\{[^{}]*\}")  # a section says of itself which sets it belongs to


@contextmanager
def section_folder(ncu: Tool, wanted: Collecting) -> Iterator[Path | None]:
    """A folder with ncu's sections for a set, there as long as the context; None for ncu's own folder.

    Without its timeline ncu's own sets are without what is sampled over time; the lean set is asked for by section.
    """
    lean_set, installation = wanted.metric_set == LEAN, ncu_installation(ncu.path)
    if (wanted.timeline and not lean_set) or installation is None:
        yield None
        return
    with ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gemmprof-sections-")))
            without = metrics.LEAN_WITHOUT if lean_set else ()
            lean = write_lean_sections(installation / "sections", folder, without)
        except OSError:
            lean = False  # No room for temporary files. ncu's own sections take longer, and do as well.
        yield folder if lean else None


def write_lean_sections(installed: Path, folder: Path, without: Collection[str]) -> bool:
    """Copy an installation's section and rule files, the sections without some metrics; whether that made a difference.

    ``without``: prefixes of the names of the metrics and tables to leave out; without any, what is sampled over time is
    left out of ncu's sets, and is there for who asks for the section.
    """
    changed = False
    for file in sorted(installed.glob("*.*")):
        if file.suffix != ".section":
            shutil.copyfile(file, folder / file.name)
            continue
        text = read_text(file, errors="surrogateescape")
        if without:
            lean = without_metrics(text, without)
        else:
            lean = _SETS.sub("", text) if file.stem.startswith(metrics.PM_SAMPLING) else text
        changed |= lean != text
        (folder / file.name).write_text(lean, encoding="utf-8", errors="surrogateescape")
    return changed


def without_metrics(section: str, without: Collection[str]) -> str:
    """The text of a section file less the innermost block around each metric or table whose name begins like this."""
    cuts: set[tuple[int, int]] = set()
    for match in _NAME.finditer(section):
        name = match.group(1) or match.group(2)
        if name.startswith(tuple(without)) and (block := _block_around(section, match.start())):
            cuts.add(block)
    for first, end in sorted(cuts, reverse=True):
        section = section[:first] + section[end:]
    return section


def _block_around(text: str, position: int) -> tuple[int, int] | None:
    """Where the ``Metrics { … }`` or ``Items { … }`` right around ``position`` begins and ends; None if none is."""
    first, depth = position, 0
    while depth >= 0:
        first -= 1
        if first < 0:
            return None
        depth += {"}": 1, "{": -1}.get(text[first], 0)
    keyword = re.search(r"\b(?:Metrics|Items)\s*$", text[:first])
    if keyword is None:
        return None
    end, depth = first, 0
    while True:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
        if depth == 0:
            return keyword.start(), end
        if end == len(text):
            return None


# --- What went wrong, read from its log -------------------------------------------------------------------------------

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
        remedies = self.remedies if remedies is None else remedies
        found = self.found if found is None else found
        return NcuError(self.message, *remedies, kind=self.kind, found=found)


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
        errors, warnings = (tuple(dict.fromkeys(marked[word])) for word in ("ERROR", "WARNING"))
        return cls(errors, warnings, tuple(kernels))

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

    A negative exit code is a signal; ``output`` are the last lines that ncu and the program wrote.
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
    ended = exit_code or 0
    # ncu is a shell script, and shells report 128 + signal.
    number = {128 + 9: 9, 128 + 15: 15}.get(ended) if ended >= 0 else -ended
    if number is not None:
        remedies = ("check free memory (a killed process is often out of memory)", see)
        return NcuError(f"ncu was ended by signal {number}", *remedies, kind=KILLED, found=last)
    if exit_code:
        return NcuError(f"ncu ended with exit code {exit_code}", see, found=last)
    return None
