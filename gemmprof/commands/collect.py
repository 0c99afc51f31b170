"""Build, verify, time and profile the stages on this machine's GPU, and render the pages.

  gemmprof collect                              every stage of the FP32 ladder at 4096³
  gemmprof collect --ladder half --shape 8192   the 16-bit ladder, on another shape
  gemmprof collect --resume                     what an interrupted run still lacks

Everything finished is kept in the run directory: Ctrl-C, a kill or a failing stage loses nothing, and --resume goes on.
Exits with 0 if every stage is fine, with 1 if some stage failed, with 2 if nothing (more) could be done here.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof.arguments import common, ladder_options
from gemmprof.arguments.ladder_options import DEFAULT_SHAPE, asked_problems, chosen_ladder, on_site
from gemmprof.arguments.parser import COLLECTION, JSON, on_disk, values, whole
from gemmprof.base.errors import GemmprofError, UsageError
from gemmprof.kernels import catalog
from gemmprof.kernels.catalog import ladder_named
from gemmprof.metrics import LEAN, counter_of
from gemmprof.model import Stage
from gemmprof.profiler.settings import CLOCK_CONTROLS, METRIC_SETS, Settings, select_stages
from gemmprof.runs.directory import Run, load_run, newest_run_directory, runs_directory, save_run, timestamped

if TYPE_CHECKING:
    from gemmprof.analysis.session import Session

PAGES = "report"  # folder of the rendered pages in the run directory
ARGUMENTS = f"""
[what to measure]
--all-stages            the whole ladder, or every ladder where none is chosen
--stage STAGE…          a stage by number, name or range (3, warptiled, 1-6); may be repeated
--plugin FILE           a Python file with GEMMs of your own (Triton, CUTLASS, a .cu …), measured as stages are, beside
                        cuBLAS and the stages that are chosen
--shape MxNxK…          problem size (default {DEFAULT_SHAPE}); may be repeated
{ladder_options.TYPES}
--seed                  seed of the random operands (default 0)
[how to measure]
--bench                 time the stages (default: yes, or as the run that is resumed)
--profile               run Nsight Compute (default likewise)
{COLLECTION}{ladder_options.PLACE}
[where to]
-o, --output RUN        run directory (default: a new one in gemmprof-runs)
--resume RUN?           continue a run (--output, else the newest one); without other options, with the run's own
                        settings
--no-report             do not render the pages
[]
{JSON}"""
VALUES = values(
    ladder_options.TYPE_VALUES,
    ladder_options.PLACE_VALUES,
    bench={"action": argparse.BooleanOptionalAction},
    profile={"action": argparse.BooleanOptionalAction},
    metric_set=METRIC_SETS,
    clock_control=CLOCK_CONTROLS,
    output=on_disk,
    seed=whole(0),
)


def run(options: argparse.Namespace) -> int:
    """Collect, render, and print the summary."""
    from gemmprof.profiler.collect import Interrupted, collect

    directory = run_directory(options)
    resume = options.resume is not None
    older = load_run(directory) if resume else None
    # What this command began it goes on with, once a scheduler is there again; somebody's older run it leaves alone.
    begun_here = not (directory / "run.json").exists()
    settings = settings_from(options, older)
    try:
        result = on_site(
            options,
            lambda site, progress, again: collect(
                settings, directory, resume=resume or (again and begun_here), progress=progress, site=site
            ),
        )
    except (Interrupted, KeyboardInterrupt):
        goes_on = f"`gemmprof collect --resume {directory}` goes on"
        print(f"gemmprof collect: interrupted; {goes_on}", file=sys.stderr)
        return 130
    return _finish(result, options)


def run_directory(options: argparse.Namespace) -> Path:
    """The run directory that is meant; a new one is only named, not made; UsageError if ``--resume`` finds no run."""
    if options.resume is None:
        return Path(options.output) if options.output else runs_directory() / timestamped()
    named = options.resume or options.output
    if named:
        return Path(named)
    newest = newest_run_directory()
    if newest is None:
        none = f"there is no run in {runs_directory()} to resume"
        raise UsageError(none, "name it: --resume RUN", "start a new one")
    return newest


def settings_from(options: argparse.Namespace, older: Run | None) -> Settings:
    """The settings that are meant, where they are left open the older run's; UsageError for no stage or shape."""
    plugged = _plugged(options)
    if options.stage:
        stages = (*select_stages(options.stage, chosen_ladder(options)), *plugged)
    elif plugged and not options.all_stages:
        stages = (chosen_ladder(options).yardstick, *plugged)
    elif options.all_stages:
        ladders = [chosen_ladder(options)] if options.ladder or options.dtype else catalog.LADDERS
        stages = tuple(stage for ladder in ladders for stage in ladder.stages)
    elif older is not None:
        numbers = ((one.name, [str(s.number) for s in one.stages]) for one in older.ladders)
        stages = tuple(s for name, own in numbers for s in select_stages(own, ladder_named(name)))
    else:
        fixes = "--all-stages for the whole ladder", "--stage NUMBER, NAME or FIRST-LAST"
        raise UsageError("no stage was chosen", *fixes)
    problems = older.problems if older is not None else ()
    if options.shape or older is None:
        problems = asked_problems(options, [ladder_named(stage.ladder).dtypes[0] for stage in stages])
    info = older.info if older is not None else None
    parts = dict(info.notes.get("parts", {})) if info is not None else {}
    recorded = dict(info.notes.get("options", {})) if info is not None else {}
    return Settings(
        stages=stages,
        problems=problems,
        metric_set=options.metric_set or (info.metric_set if info else LEAN),
        extra_sections=tuple(options.section or recorded.get("extra_sections", ())),
        extra_metrics=tuple(common.metrics_named(options) or recorded.get("extra_metrics", ())),
        # A run that was begun without goes on so.
        timeline=not options.no_timeline and recorded.get("timeline", True),
        bench=parts.get("bench", True) if options.bench is None else options.bench,
        profile=parts.get("profile", True) if options.profile is None else options.profile,
        seed=options.seed if options.seed is not None else (info.seed if info else 0),
        clock_control=options.clock_control or (info.clock_control if info else CLOCK_CONTROLS[0]),
    )


def _plugged(options: argparse.Namespace) -> tuple[Stage, ...]:
    """The stages of the user's own file, in the ladder that is asked for."""
    if not options.plugin:
        return ()
    from gemmprof.kernels.plugin import install

    every = install(Path(options.plugin))
    ladder = chosen_ladder(options)
    found = tuple(stage for stage in every if stage.ladder == ladder.name)
    if not found:
        none = f"{options.plugin} holds no GEMM for {', '.join(ladder.dtypes)}"
        raise UsageError(none, "choose its type with --dtype")
    return found


def _finish(result: Run, options: argparse.Namespace) -> int:
    """Analyse and render what was profiled, print the summary, and say by the exit code whether all went well."""
    from gemmprof.reports.terminal import summary

    started = time.monotonic()
    session = _session(result)
    pages = None
    if session is not None and not options.no_report:
        pages = common.rendered(options, session, result.directory / PAGES)
    spent = round(time.monotonic() - started, 3)
    seconds = {**result.info.notes.get("seconds", {}), "analyse and render": spent}
    result = replace(result, info=replace(result.info, notes={**result.info.notes, "seconds": seconds}))
    save_run(result)
    rows = summary.summarise(result, session)
    failed = [row for row in rows if row.failure]
    if options.json:
        common.print_json(summary.CollectDocument(result.directory, pages, result.info, rows))
    else:
        summary.print_run(common.console(), rows, seconds)
    if session is not None and (unknown := _not_collected(result, session)):
        print(f"Nsight Compute collected nothing under the name of: {', '.join(unknown)}", file=sys.stderr)
    for row in failed:
        print(f"stage {row.stage} {row.name}, {row.problem.label}: {row.failure}", file=sys.stderr)
    common.announce(result.directory)
    if pages is not None:
        common.announce(pages)
    return 1 if failed else 0


def _not_collected(run: Run, session: Session) -> list[str]:
    """Metrics that the user asked for and that no launch holds: ncu passes over some misspelt names in silence."""
    asked = run.info.notes.get("options", {}).get("extra_metrics", [])
    held = {name for kernel in session.kernels for name in kernel.profile.metrics}
    held |= {counter_of(name) for kernel in session.kernels for name in kernel.profile.sampled}
    return [one for one in asked if counter_of(one) not in held and not one.startswith(("group:", "regex:"))]


def _session(run: Run) -> Session | None:
    """The run with its reports analysed; None, with the reason on stderr, if they cannot be read."""
    if not run.report_paths():
        return None
    from gemmprof.analysis.session import load_session

    try:
        session = load_session([run.directory])
    except GemmprofError as error:
        print(f"gemmprof collect: the reports cannot be read: {error}", file=sys.stderr)
        return None
    for failure in session.failures:
        print(f"gemmprof collect: {failure}", file=sys.stderr)
    return session
