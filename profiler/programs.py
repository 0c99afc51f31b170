"""Runs a user's program under ncu: once to count its launches, then to profile those that were chosen.

Everything lies in one folder: ``NAME.ncu-rep`` with the profiled launches (``NAME-2`` and so on where the program is
profiled several times); in ``logs`` the count, ``count.ncu-rep.zst``, which holds the duration of every launch, ncu's
messages and the program's output.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from gemmprof import metrics
from gemmprof.base.amounts import counted
from gemmprof.base.errors import UsageError
from gemmprof.base.foreign_files import LARGEST_DOCUMENT, open_file, read_bytes, read_end, read_text
from gemmprof.gpu.devices import Tool
from gemmprof.profiler.job import TAIL_BYTES, start_program
from gemmprof.profiler.ncu.command import (
    NOTHING,
    Collecting,
    NcuCommand,
    NcuError,
    NcuLog,
    known_to,
    require_ncu,
    section_folder,
    translate,
)
from gemmprof.profiler.ncu.profile_pass import Patience, cut_torn_end

# --- Which launches, what that costs, and the ncu filter that means just these ----------------------------------------
# A quick first run under ncu measures nothing but the duration of every launch. From it one launch of each kernel and
# launch configuration (grid, block, dynamic shared memory) is chosen, those that take most of the program's time first.
#
# ncu counts the invocations of a kernel for each launch configuration by itself (``--filter-mode per-launch-config``),
# so a list of mangled names and a list of invocation numbers say which launches are meant. Where several numbers are
# needed, a kernel may be profiled once for each: `Choice.launches` counts these too.
#
# Each process of a program counts its own: profiled with the number 1 under torchrun, every kernel stood in the report
# once for each of two ranks, with gloo and with NCCL (`tests/data/processes`).

COMMUNICATION = r"nccl|nvshmem"  # kernels that wait for other GPUs', for ever if ncu runs one alone
NEAR_LONGEST = 0.5  # a launch of this share of its kernel's longest stands for it as well as the longest
MINOR = 0.01  # of a kernel with less than this share of the time any launch will do
LONGEST_FILTER = 100_000  # characters of one argument that Linux passes on (MAX_ARG_STRLEN is 131,072)


# What a launch costs under ncu, by its set: seconds, and how often its own time is spent; on an H100 and an H200. The
# kernel's own time is spent once a pass, and several times over in instrumented passes; the fixed part is saving and
# restoring memory, and reading counters. Eight programs took 0.8 to 1.2 times what this says for the lean set; the
# others are rough.
LEAN_COST = 1.2, 100.0
SET_COSTS = {"basic": (0.2, 15.0), "detailed": (0.8, 60.0), "full": (1.6, 120.0), "roofline": (0.6, 40.0)}


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch as the count saw it. ``key`` is what ncu counts invocations by; ``duration`` is in nanoseconds."""

    name: str
    mangled_name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_memory: int
    duration: float
    wanted: bool = True  # whether the user's selection means it
    process: int | None = None
    """Which of several processes launched it: ncu counts the invocations of each by itself."""

    @property
    def key(self) -> tuple[object, ...]:
        """Kernel and launch configuration."""
        return (self.mangled_name, self.grid, self.block, self.shared_memory)


@dataclass(frozen=True, slots=True)
class Choice:
    """What to profile."""

    names: tuple[str, ...]  # mangled names of the kernels, most expensive first
    invocations: tuple[int, ...]  # which of each, counted from 1 for each launch configuration
    kernels: int  # kernels and launch configurations that are chosen
    launches: int  # launches that ncu will profile
    share: float  # of the GPU time that the user's selection holds, the part of the chosen kernels (0 to 1)
    left_out: int  # kernels and launch configurations that the limit left out
    duration: float  # nanoseconds that the profiled launches took in the count

    @property
    def filters(self) -> tuple[str, ...]:
        """The ncu options that choose the launches."""
        return launch_filter(self.names, self.invocations)

    def seconds(self, program: float, repeat: int = 1, metric_set: str = "lean") -> float:
        """What profiling them should take; ``program`` is what the counted run of the program took, in seconds."""
        fixed, times = SET_COSTS.get(metric_set, LEAN_COST)
        return repeat * (program + self.launches * fixed + times * 1e-9 * self.duration)


ALL_KERNELS = f"regex:^(?!.*({COMMUNICATION}))"  # every kernel but those of communication, as ncu writes it


def launch_filter(names: Iterable[str] = (), invocations: Iterable[int] = (1,)) -> tuple[str, ...]:
    """ncu's options for these invocations of the kernels with these mangled names (none: of all but communication)."""
    listed = "|".join(re.escape(name) for name in names)
    kernel = f"regex:^({listed})$" if listed else ALL_KERNELS
    numbers = "|".join(map(str, invocations))
    counted_so = ("--filter-mode", "per-launch-config", "--kernel-name-base", "mangled")
    return (*counted_so, "--kernel-id", f"::{kernel}:^({numbers})$")


def choose(launches: Sequence[Launch], *, limit: int, every: bool = False) -> Choice:
    """One launch (``every``: all) of each wanted kernel and launch configuration, the most expensive up to a limit."""
    counts: Counter[tuple[tuple[object, ...], int | None]] = Counter()
    numbered: dict[tuple[object, ...], list[tuple[int, Launch]]] = {}
    for launch in launches:
        counts[launch.key, launch.process] += 1
        numbered.setdefault(launch.key, []).append((counts[launch.key, launch.process], launch))
    wanted = {key: many for key, many in numbered.items() if any(one.wanted for _, one in many)}
    total = {key: sum(one.duration for _, one in many if one.wanted) for key, many in wanted.items()}
    ranked = sorted(wanted, key=lambda key: total[key], reverse=True)
    kept, listed, length = [], set(), 0  # as many of the first as fit into one argument of a command line
    for key in ranked[:limit]:
        if key[0] not in listed:
            listed.add(key[0])
            length += len(re.escape(str(key[0]))) + 1
        if length > LONGEST_FILTER:
            break
        kept.append(key)
    everything = sum(total.values())
    suitable = {}  # the launches that stand for a kernel: wanted, and of one that matters not short
    for key in kept:
        near = 0.0 if every or total[key] < MINOR * everything else NEAR_LONGEST
        meant = [(number, launch.duration) for number, launch in wanted[key] if launch.wanted]
        longest = max(duration for _, duration in meant)
        suitable[key] = {number for number, duration in meant if duration >= near * longest}
    names = {str(key[0]) for key in kept}
    lengths = [length for (key, _), length in counts.items() if key[0] in names]
    invocations = sorted(set().union(*suitable.values())) if every else _covering(suitable, lengths)
    # What the filter means: these invocations of every launch configuration of the named kernels.
    named = [member for key, members in numbered.items() if key[0] in names for member in members]
    profiled = [launch for number, launch in named if number in invocations]
    return Choice(
        names=tuple(dict.fromkeys(str(key[0]) for key in kept)),
        invocations=tuple(invocations),
        kernels=len(kept),
        launches=len(profiled),
        share=sum(total[key] for key in kept) / everything if everything else 1.0,
        left_out=len(ranked) - len(kept),
        duration=sum(launch.duration for launch in profiled),
    )


def _covering(suitable: dict[tuple[object, ...], set[int]], lengths: Sequence[int]) -> list[int]:
    """A few invocation numbers of which each kernel has a suitable one, and which mean few launches.

    Greedily: the number that serves most kernels, and of several the one because of which ncu profiles fewest launches
    (by the number of launches of every configuration of the named kernels).
    """
    waiting = list(suitable.values())
    chosen = []
    while waiting:
        served = Counter(number for numbers in waiting for number in numbers)
        best = min(served, key=lambda number: (-served[number], sum(length >= number for length in lengths)))
        chosen.append(best)
        waiting = [numbers for numbers in waiting if best not in numbers]
    return sorted(chosen)


# --- The program under ncu --------------------------------------------------------------------------------------------

COUNT_LIMIT = 5_000  # launches that are counted: ncu takes some milliseconds for each
COUNTED = ("--metrics", ",".join(metrics.COUNT))  # what ncu is asked to count: the duration of each launch
COUNTED_LAUNCHES = ("--kernel-name", ALL_KERNELS, "--launch-count", str(COUNT_LIMIT))
POLL_SECONDS = 0.2
NVTX_SCOPES = (2025, 3)  # from this release on ncu can give a range to all threads
LOGS = "logs"
# Launchers whose processes may be children of a service rather than their own, where ncu does not see them.
_STARTED_ELSEWHERE = frozenset({"srun", "mpirun", "mpiexec", "jsrun", "aprun", "kubectl", "docker"})

# Where torchrun, Open MPI, PMIx, MPICH and srun put a rank; the first that is set counts.
VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
_CONNECTED = re.compile(r"^==PROF== Connected to process (\d+)", re.MULTILINE)


@dataclass(slots=True)
class Ranks:
    """The ranks of the processes that ncu has connected to, looked up while they run.

    ncu's report knows processes by their ids, their users by their ranks, which a launcher puts into the environment of
    what it starts; Linux shows that as long as the process lives.
    """

    known: dict[int, int] = field(default_factory=dict)  # rank by process; those without one are left out
    _seen: set[int] = field(default_factory=set)

    def look(self, log: Path) -> None:
        """Look up the processes that ncu's log has named since."""
        try:
            text = read_text(log, LARGEST_DOCUMENT, errors="replace")
        except OSError:
            return
        for process in {int(number) for number in _CONNECTED.findall(text)} - self._seen:
            self._seen.add(process)
            rank = rank_of(process)
            if rank is not None:
                self.known[process] = rank


def rank_of(process: int) -> int | None:
    """The rank in a running process's environment; None where there is none of its own, or it cannot be seen."""
    try:
        content = read_bytes(f"/proc/{process}/environ")
    except OSError:
        return None
    variables = dict(entry.partition(b"=")[::2] for entry in content.split(b"\0"))
    # What it has from this process (which srun may have started, say) is no rank among those that are profiled.
    own = (
        variables[name]
        for name in map(str.encode, VARIABLES)
        if name in variables and variables[name] != os.environb.get(name)
    )
    told = next(own, b"")
    return int(told) if told.isdigit() else None


@dataclass(frozen=True, slots=True)
class Collected:
    """What one run under ncu left behind."""

    report: Path | None  # the report, None if ncu wrote none
    launches: int  # launches in it
    passes: int  # most passes of a launch
    seconds: float  # wall clock of the run
    exit_code: int  # of ncu, which passes on the program's
    interrupted: bool = False  # Ctrl-C ended it; what was profiled before is in the report
    ranks: Mapping[int, int] = field(default_factory=dict)  # by process, where a launcher gave them ranks

    def __str__(self) -> str:
        return f"{counted(self.launches, 'launch')} in {self.seconds:.1f} s, {self.passes} passes at most"


@dataclass(frozen=True, slots=True)
class ProgramProfiler(Collecting):
    """One user's program, and how it is run under ncu."""

    program: tuple[str, ...]  # the command with its arguments
    folder: Path  # where everything is written; it exists
    marked_only: bool = False  # profile only between cudaProfilerStart and cudaProfilerStop
    output: int | None = None  # stream for the program's own output while it is counted (None: its log)
    # variables that the program gets besides those of this process
    environment: Mapping[str, str] = field(default_factory=dict)
    # told when ncu has to wait for another profiler
    note: Callable[[str], object] = field(default=lambda _: None, compare=False)

    @property
    def name(self) -> str:
        """A name for reports, from the program's: that of the script where an interpreter runs one."""
        return program_name(self.program)

    def command(
        self, ncu: Tool, filters: Sequence[str] | None = None, *, stem: str = "", sections: Path | None = None
    ) -> NcuCommand:
        """The run that profiles what ``filters`` mean; without any, the one that only counts launches and their time.

        It collects what the analyses read of any kernel, tensor cores included.
        """
        counts = filters is None
        stem = "count" if counts else stem or self.name
        return NcuCommand(
            executable=ncu.path,
            # The count lies apart, so that the folder as an input stands for what was profiled.
            report=(self.folder / LOGS if counts else self.folder) / f"{stem}.ncu-rep",
            log=self.folder / LOGS / f"{stem}.ncu.log",
            collection=COUNTED if counts else known_to(ncu, self.collection()),
            program=self.program,
            clock_control=self.clock_control,
            source_folders=() if counts else (Path.cwd(),),
            section_folder=sections,
            filters=COUNTED_LAUNCHES if filters is None else filters,
            marked_only=self.marked_only,
            children=True,
            quick=counts,
            ranges_of_all_threads=ncu.version >= NVTX_SCOPES,
        )

    def count(self) -> Collected:
        """Run the program once, record each launch's duration; DeviceError without ncu or program, or ProfilerError."""
        return self._run(self.command(require_ncu()), shown=self.output)

    def profile(
        self, filters: Sequence[str], *, stem: str = "", on_launch: Callable[[int], None] | None = None
    ) -> Collected:
        """Run the program and profile the launches that ``filters`` (`choice.launch_filter`) mean; errors as `count`.

        ``stem`` is the report's name without its ending; ``on_launch`` is told the number of launches profiled so far.
        """
        ncu = require_ncu()
        with section_folder(ncu, self) as sections:
            return self._run(self.command(ncu, filters, stem=stem, sections=sections), on_launch=on_launch)

    def _run(
        self, command: NcuCommand, *, shown: int | None = None, on_launch: Callable[[int], None] | None = None
    ) -> Collected:
        """Run the program under ncu, again where another profiler was at work."""
        patience = Patience(self.note)
        while True:
            try:
                (self.folder / LOGS).mkdir(parents=True, exist_ok=True)
                log_of_output = self.folder / LOGS / f"{command.report.stem}.out.log"
                started = time.monotonic()
                program = start_program(
                    command.arguments(), output=log_of_output, shown=shown, environment=self.environment
                )
                ranks = Ranks()
                interrupted = _wait(program.process, command.log, on_launch, ranks)
                seconds = time.monotonic() - started
                exit_code, log = program.process.returncode, NcuLog.read(command.log)
                kernels = cut_torn_end(command.report).kernels if command.report.exists() else 0
                if not kernels and not interrupted:
                    raise self._explained(log, command.log, exit_code, read_end(log_of_output, TAIL_BYTES))
                report = command.report if kernels else None
                passes = max((kernel.passes for kernel in log.kernels), default=0)
                return Collected(report, kernels, passes, seconds, exit_code, interrupted, ranks.known)
            except NcuError as error:
                if not patience.again(error):
                    raise

    def _explained(self, log: NcuLog, file: Path, exit_code: int, output: str) -> NcuError:
        """ncu's failure in the words of `collect`, with the remedies that fit a user's own program."""
        error = translate(log, log_file=file, exit_code=exit_code, output=output)
        if error is None:
            error = NcuError("Nsight Compute profiled no kernel", f"the whole log is in {file}", kind=NOTHING)
        of_collect = "`gemmprof collect", "python -m pytest"
        remedies = [text for text in error.remedies if not any(word in text for word in of_collect)]
        if len(remedies) < len(error.remedies) or error.kind == NOTHING:
            alone = f"see that the program launches kernels without the profiler: {shlex.join(self.program)}"
            remedies.insert(0, alone)
        launcher = Path(self.program[0]).name
        if launcher in _STARTED_ELSEWHERE and error.kind == NOTHING:
            remedies.insert(
                0,
                f"{launcher} may start its processes where ncu does not see them: put the profiler behind it, "
                f"{launcher} … gemmprof profile -o DIR -- PROGRAM, with a DIR of each process's own",
            )
        return error.but(remedies=remedies)


def _wait(
    process: subprocess.Popen[bytes], log: Path, on_launch: Callable[[int], None] | None, ranks: Ranks
) -> bool:
    """Wait for ncu, telling how far it is, and asking who its processes are; returns whether Ctrl-C ended it."""
    told = 0
    interrupted = False
    while process.poll() is None:
        try:
            if on_launch is not None and (done := len(NcuLog.read(log).kernels)) != told:
                told = done
                on_launch(done)
            ranks.look(log)
            time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL if interrupted else signal.SIGTERM)
            interrupted = True
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    return interrupted


def packed(report: Path) -> Path:
    """Put a compressed report in the place of a plain one: ncu adds the code of every library, which packs well."""
    import zstandard

    target = report.with_name(report.name + ".zst")
    with open_file(report) as source, target.open("wb") as file:
        zstandard.ZstdCompressor(level=3, write_checksum=True).copy_stream(source, file)
    report.unlink()
    return target


def program_name(program: Sequence[str]) -> str:
    """A short name for the files of a program: the script's where an interpreter or launcher runs one."""
    words = [word for word in program[1:] if not word.startswith("-")]
    script = next((word for word in words if word.endswith((".py", ".sh"))), program[0])
    if "-m" in program[:-1] and not script.endswith(".py"):
        script = program[program.index("-m") + 1]
    return re.sub(r"[^\w.+-]+", "_", Path(script).stem)[:60].strip(".-_") or "program"


def check_program(program: Sequence[str], command: str = "profile") -> tuple[str, ...]:
    """The command line, whose program exists; UsageError, with how to type ``gemmprof COMMAND``, if it does not."""
    if not program:
        fix = f"write it behind two dashes: gemmprof {command} -- python train.py --steps 1"
        raise UsageError("no program was named", fix)
    if shutil.which(program[0]) is None:
        here = Path(program[0])
        remedies = [f"it is not executable: chmod +x {here}"] if here.is_file() else []
        if here.suffix == ".py":
            remedies.insert(0, f"name the interpreter: gemmprof {command} -- python {shlex.join(program)}")
        if here.suffix == ".cu":
            remedies.insert(0, f"build it first: nvcc -O3 -lineinfo {here} -o {here.stem}")
        there = "" if here.parent.is_dir() else f"; the folder {here.parent} does not exist"
        by_path = f"check its path, or build it first{there}"
        by_name = f"check its name; a program in this folder is written with its path: ./{program[0]}"
        fix = by_path if "/" in program[0] else by_name
        raise UsageError(f"the program {program[0]} was not found", *(remedies or [fix]))
    return tuple(program)
