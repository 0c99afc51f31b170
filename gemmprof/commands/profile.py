"""Profile any program with Nsight Compute: what it will cost, the reports, the explanation and the pages.

  gemmprof profile -- ./my_kernel 4096
  gemmprof profile --kernel softmax --top 3 -- python train.py --steps 1
  gemmprof profile --nvtx 'step 2/forward' --count 20 -- torchrun --nproc-per-node 2 train.py
  gemmprof profile --print-command -- ./my_kernel

The program runs twice: once to count its launches and their time, then to profile one launch of each kernel and grid,
the most expensive ones first. Kernels of NCCL and NVSHMEM are left alone, because they wait for each other. Nothing of
the program needs to change; compiled with -lineinfo its source lines appear beside the numbers.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof.arguments import common
from gemmprof.arguments.parser import COLLECTION, JSON, on_disk, values
from gemmprof.base.errors import UsageError
from gemmprof.metrics import LEAN
from gemmprof.profiler.settings import CLOCK_CONTROLS, METRIC_SETS
from gemmprof.runs.directory import DEFAULT_PROFILES_DIRECTORY, timestamped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gemmprof.analysis.inputs.selection import Selection
    from gemmprof.analysis.session import Session
    from gemmprof.profiler.programs import Choice, Collected, ProgramProfiler

ARGUMENTS = f"""
program                 the program and its arguments
[which launches]
--kernel REGEX          those whose full demangled name the expression is found in
--nvtx REGEX            those in an NVTX range; nested ranges are joined by /
--top N>=1              the N kernels and grids that take most time
--skip N>=0             not the first N launches of the program
--count N>=1            at most N kernels and grids, the most expensive ones (default: %(default)s)
--all-launches          every launch of each kernel instead of one of each grid
[how]
{COLLECTION}
--repeat N>=1           profile N times, for gemmprof diff
--no-count              without the first run: the first launch of every kernel and grid
--marked-only           only between cudaProfilerStart and cudaProfilerStop
[what comes of it]
-o, --output DIR        folder (default: a new one in {DEFAULT_PROFILES_DIRECTORY})
--print-command         print ncu's command line and run nothing
--cost                  count and say what profiling would cost, then stop
--no-pages              do not render the pages
[]
{JSON}"""
VALUES = values(
    program={"nargs": "*", "metavar": "-- COMMAND"},
    skip=0,
    count=50,
    repeat=1,
    metric_set=METRIC_SETS,
    clock_control=CLOCK_CONTROLS,
    output=on_disk,
)


def run(options: argparse.Namespace) -> int:
    """Count, profile, explain; exit code 0, or 1 if not all that was chosen could be profiled."""
    from gemmprof.analysis.inputs.selection import selection
    from gemmprof.profiler.ncu.command import require_ncu
    from gemmprof.profiler.programs import ProgramProfiler, check_program, program_name

    wanted = selection(options.kernel, None, options.nvtx, options.top)
    program = tuple(options.program) if options.print_command else check_program(options.program)
    if not program:
        check_program(program)
    profiler = ProgramProfiler(
        program=program,
        folder=_folder(options, program_name(program)),
        metric_set=options.metric_set or LEAN,
        extra_sections=tuple(options.section or ()),
        timeline=not options.no_timeline,
        extra_metrics=common.metrics_named(options),
        clock_control=options.clock_control or CLOCK_CONTROLS[0],
        marked_only=options.marked_only,
        output=_terminal(options),
        note=common.say,
    )
    if options.print_command:
        if wanted:
            what = f"{wanted} is worked out from a count; this line profiles the first launch of every kernel"
            common.say(f"Note: {what}")
        return _print_command(profiler)
    require_ncu()
    profiler.folder.mkdir(parents=True, exist_ok=True)
    filters: Sequence[str]
    choice = None
    if options.no_count:
        from gemmprof.profiler.programs import launch_filter

        if wanted:
            raise UsageError("--kernel, --nvtx and --top need the count", "leave out --no-count")
        filters = (*launch_filter(), "--launch-skip", str(options.skip), "--launch-count", str(options.count))
    else:
        choice = _counted(options, profiler, wanted)
        filters = choice.filters
        if options.cost:
            return 0
    names = [profiler.name, *(f"{profiler.name}-{number}" for number in range(2, options.repeat + 1))]
    collected = [_profile(profiler, filters, choice, stem) for stem in names]
    return _finish(options, profiler, collected, choice)


def _folder(options: argparse.Namespace, name: str) -> Path:
    if not options.output:
        return Path(DEFAULT_PROFILES_DIRECTORY) / f"{name}_{timestamped()}"
    folder = Path(options.output)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise UsageError(f"{folder} exists already", "choose another folder with -o, or remove this one")
    return folder


def _terminal(options: argparse.Namespace) -> int | None:
    """Where the program's own output goes while it is counted: never among JSON."""
    try:
        return sys.stderr.fileno() if options.json else sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return None


def _print_command(profiler: ProgramProfiler) -> int:
    """ncu's command line as one would type it; without a count, with the first launch of every kernel and grid."""
    from gemmprof.gpu.devices import Tool, find_ncu
    from gemmprof.profiler.programs import launch_filter

    ncu = find_ncu()
    command = profiler.command(Tool(Path("ncu"), ncu.version if ncu is not None else ()), launch_filter())
    print(shlex.join(command.arguments()))
    return 0


def _counted(options: argparse.Namespace, profiler: ProgramProfiler, wanted: Selection) -> Choice:
    """Count the launches, choose, and say what it will cost."""
    from gemmprof.api import launch_choice

    common.say(f"Counting the launches of: {shlex.join(profiler.program)}")
    counted = launch_choice.count(profiler, wanted, options.skip)
    common.say(f"  {counted}")
    choice = launch_choice.chosen(counted, wanted, limit=options.count, every=options.all_launches)
    for line in launch_choice.cost(choice, counted, options.repeat, profiler.metric_set):
        common.say(line)
    return choice


def _profile(
    profiler: ProgramProfiler, filters: Sequence[str], choice: Choice | None, stem: str
) -> Collected:
    from gemmprof.reports.terminal.progress_bars import progress_on

    with progress_on(common.console(stderr=True), bars=sys.stderr.isatty(), quiet=True) as progress:
        progress.phase("profile", choice.launches if choice is not None else 0)
        told = 0

        def on_launch(done: int) -> None:
            nonlocal told
            for _ in range(done - told):
                progress.advance()
            told = done

        return profiler.profile(filters, stem=stem, on_launch=on_launch)


def _finish(
    options: argparse.Namespace,
    profiler: ProgramProfiler,
    collected: Sequence[Collected],
    choice: Choice | None,
) -> int:
    """Say what was profiled, explain it, render the pages."""
    from rich.text import Text

    from gemmprof.analysis.session import load_session
    from gemmprof.reports.documents.of_launches import ProfileDocument
    from gemmprof.reports.terminal import overview
    from gemmprof.reports.words import explained, screen

    first = collected[0]
    reports = [run.report for run in collected if run.report is not None]
    if not reports:
        common.say("gemmprof profile: interrupted before a launch was profiled")
        return 130
    session = load_session([reports[0]])
    pages = None if options.no_pages else common.rendered(options, session, profiler.folder / "pages")
    seconds = tuple(run.seconds for run in collected)
    common.answer(
        options,
        lambda: ProfileDocument.of_session(
            session, ranks=first.ranks, reports=tuple(reports), pages=pages, seconds=seconds
        ),
        lambda width: [
            *overview.parts(session, width=width, headlines=False),
            Text(screen(explained(session, session.families), width=width)),
        ],
    )
    for run in collected:
        common.say(f"Profiled {run}")
    if len(first.ranks) > 1:
        by_rank = sorted((rank, process) for process, rank in first.ranks.items())
        common.say("Ranks: " + ", ".join(f"{rank} is process {process}" for rank, process in by_rank))
    for line in _hints(session, first, choice):
        common.say(line)
    for report in reports:
        common.announce(report)
    if pages is not None:
        common.announce(pages)
    if len(reports) > 1:
        common.say(f"Compare with a later profile: gemmprof diff {profiler.folder} LATER")
    complete = choice is None or first.launches >= choice.kernels
    return 130 if first.interrupted else 0 if complete and first.exit_code == 0 else 1


def _hints(session: Session, first: Collected, choice: Choice | None) -> list[str]:
    """What would have made the profile better, each with what to do."""
    from gemmprof.analysis.sections.source_view import SourceView

    lines = []
    if choice is not None and first.launches < choice.kernels:
        few = f"{first.launches} of {choice.kernels} kernels and grids were profiled"
        lines.append(f"Note: {few}: the program did not launch the others again, or ended early")
    if first.exit_code:
        lines.append(f"Note: the program ended with exit code {first.exit_code} while it was profiled")
    views = [view for kernel in session.kernels if isinstance(view := kernel.get(SourceView), SourceView)]
    if views and not any(view.lines for view in views):
        lines.append("Note: no source lines: compile with -lineinfo (nvcc, NVRTC); Triton kernels have them")
    elif views and not any(view.files for view in views):
        lines.append("Note: line numbers without text: run where the sources lie, so that ncu finds them")
    return lines
