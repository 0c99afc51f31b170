"""Make the recorded run that ships with the package: every ladder on this machine's GPU, packed small.

    make record    or, one ladder anew:    python tools/record.py --ladder half --output gemmprof/recorded

Every stage is verified, timed and profiled at 4096³ and 2048³ (of FP8 at 4096³), and timed at more sizes. What is
profiled is the lean set, and the bytes used per sector, which need a replay of their own. The run must be complete: a
failing stage, a missing report or more than 7 MB end the script with 1 and leave the output as it was; what was
collected is kept then and can be packed with ``--from-run`` once the cause is fixed. ``--collect-into`` only
collects: packing is slow and needs no GPU. Reports name the kernels' sources by their absolute path; record from a
folder whose name may be published.
"""

from __future__ import annotations

import dataclasses
import lzma
import shutil
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from recording import options_of

from gemmprof import metrics
from gemmprof.analysis.session import load_session
from gemmprof.arguments.common import console
from gemmprof.base.errors import RunError
from gemmprof.kernels.catalog import LADDERS, ladder_of
from gemmprof.metrics import LEAN
from gemmprof.model import Problem, Stage
from gemmprof.profiler.collect import collect
from gemmprof.profiler.ncu.profile_pass import REPORTS
from gemmprof.profiler.settings import Settings
from gemmprof.reports.terminal import summary
from gemmprof.reports.terminal.progress_bars import PlainProgress
from gemmprof.runs.directory import RUN_FILE, Run, load_run, save_run

PROFILED = {"single": ("4096", "2048"), "half": ("4096", "2048"), "fp8": ("4096",)}
"""What is timed and profiled, by ladder."""
_SIZES = ("128", "256", "512", "1024", "1536", "3072", "4097", "8192")
_LARGE = ("8192x8192x2048", "4096x14336x4096", "16384x4096x4096", "4096x4096x16384")
TIMED = {
    "single": (*_SIZES, "1000", "4096x4096x1024", "8192x1024x4096"),
    "half": (*_SIZES, *_LARGE),
    # Multiples of 16: what cuBLAS takes of 8-bit operands without a copy of them.
    "fp8": ("512", "1024", "2048", "3072", "8192", *_LARGE),
}
"""What is timed only, by ladder: sizes for the curves, and the shapes of the ladder's goal."""
TIMED_BUDGET = 0.25
"""Seconds for timing a stage on one of these."""
NOT_SAMPLED = "single"
"""With this ladder counters are not sampled over the launches: of its slow stages that would be 5 MB."""
MOST_FLOPS = {"naive": 2 * 5000**3}
"""Operations up to which a slow stage is timed: naive takes 2 s at 8192 cubed."""
LARGEST_BYTES = 7_000_000
COMMAND = "make record"
COLLECTED = "collected"
"""Among a run's notes: when a ladder was collected that is newer than the run."""
EXTRA_METRICS = tuple(
    name.replace("_mem_global_", f"_mem_{space}_")
    for space in ("global", "local")
    for names in (metrics.GLOBAL_BYTES_PER_SECTOR_OF, metrics.GLOBAL_BYTES_PER_SECTOR_LIMIT_OF)
    for name in names.values()
)


def collect_run(
    directory: Path, profiled: Sequence[Problem], timed: Sequence[Problem], metric_set: str
) -> Run:
    """Collect into ``directory``, or go on there: one ncu process for each profiled problem, so that each has a report
    of its own.
    """
    progress = PlainProgress()
    begun = (directory / RUN_FILE).exists()
    settings = partial(
        Settings,
        metric_set=metric_set,
        extra_metrics=EXTRA_METRICS if metric_set == LEAN else (),
        timeline=NOT_SAMPLED not in {ladder_of(problem.dtype).name for problem in profiled},
    )
    for number, problem in enumerate(profiled):
        made = settings(stages_for(problem), (problem,))
        run = collect(made, directory, resume=begun or number > 0, progress=progress)
    for stages, problems in grouped_by_stages(timed):
        made = settings(stages, problems, profile=False, time_budget=TIMED_BUDGET)
        run = collect(made, directory, resume=True, progress=progress)
    return run


def is_recorded(stage: Stage, problem: Problem) -> bool:
    """Whether a stage computes in the problem's type and ends in reasonable time."""
    return problem.dtype in stage.dtypes and problem.flops <= MOST_FLOPS.get(stage.name, problem.flops)


def stages_for(problem: Problem) -> tuple[Stage, ...]:
    """The stages of the problem's ladder that are recorded on it."""
    return tuple(stage for stage in ladder_of(problem.dtype).stages if is_recorded(stage, problem))


def grouped_by_stages(problems: Sequence[Problem]) -> list[tuple[tuple[Stage, ...], tuple[Problem, ...]]]:
    """The problems that are for the same stages together, and ladders with each other: a program starts slowly."""
    alike: dict[tuple[str, ...], list[Problem]] = {}
    for problem in problems:
        alike.setdefault(tuple(stage.name for stage in stages_for(problem)), []).append(problem)
    groups: list[tuple[tuple[Stage, ...], tuple[Problem, ...]]] = []
    for found in map(tuple, alike.values()):
        stages = stages_for(found[0])
        for place, (others, before) in enumerate(groups):
            if stages[0].ladder not in {stage.ladder for stage in others}:
                groups[place] = (*others, *stages), (*before, *found)
                break
        else:
            groups.append((stages, found))
    return groups


def complaints(run: Run, profiled: Sequence[Problem]) -> list[str]:
    """What a recorded run may not lack, one line each."""
    found = []
    for problem in run.problems:
        for record in run.stages:
            if not is_recorded(record.stage, problem):
                continue
            name = f"{record.stage.name} {problem.key}"
            result = run.result(record.stage.number, problem)
            if result is None or result.failure is not None:
                found.append(f"{name}: {result.failure if result else 'no result'}")
            elif result.verification is None or not result.verification.passed or result.timing is None:
                found.append(f"{name}: not verified or not timed")
            elif problem in profiled and result.report is None:
                found.append(f"{name}: not profiled")
    return found


def pack(run: Run, target: Path) -> Run:
    """Write the run into the empty folder ``target``, every report compressed with xz beside its name in run.json."""
    names = sorted({result.report for result in run.results if result.report is not None})

    def compress(name: str) -> None:
        packed = target / f"{name}.xz"
        packed.parent.mkdir(parents=True, exist_ok=True)
        report = run.report_path(name)
        if report.suffix == packed.suffix:  # it was packed before, with another ladder's
            shutil.copyfile(report, packed)
        else:
            packed.write_bytes(lzma.compress(report.read_bytes(), preset=9 | lzma.PRESET_EXTREME))

    with ThreadPoolExecutor() as pool:
        list(pool.map(compress, names))
    info = dataclasses.replace(run.info, command=COMMAND)
    save_run(dataclasses.replace(run, directory=target, info=info))
    return load_run(target)


def of_ladders(run: Run, names: Collection[str]) -> Run:
    """The run with nothing but the stages of these ladders."""
    results = tuple(result for result in run.results if run.record_of(result).stage.ladder in names)
    return dataclasses.replace(
        run,
        stages=tuple(record for record in run.stages if record.stage.ladder in names),
        problems=tuple(dict.fromkeys(result.problem for result in results)),
        results=results,
    )


def merged(new: Run, old: Run, folder: Path) -> Run:
    """The new run's ladders beside the others of the old run, in a folder of their own.

    Raises:
        RunError: they were made on another GPU or by other tools, so that their times do not belong together.
    """
    facts = [
        (run.info.device, run.info.versions, run.info.metric_set, run.info.clock_control)
        for run in (old, new)
    ]
    if facts[0] != facts[1]:
        raise RunError("the two runs do not belong together", found=f"{facts[0]} and {facts[1]}")
    fresh = {record.stage.ladder for record in new.stages}
    rest = of_ladders(old, {ladder.name for ladder in LADDERS} - fresh)
    order = [ladder.name for ladder in LADDERS]
    made = [(run, result) for run in (rest, new) for result in run.results]
    made.sort(key=lambda one: order.index(ladder_of(one[1].problem.dtype).name))
    results, reports = [], {}
    names: dict[tuple[Path, str], str] = {}
    for run, result in made:
        source = (run.directory, result.report or "")
        if result.report is not None and source not in names:
            name = names[source] = f"{REPORTS}/profile-{len(names) + 1:02}.ncu-rep"
            if result.report in run.reports:  # older runs know nothing of their reports
                reports[name] = run.reports[result.report]
            path = run.report_path(result.report)
            target = folder / (name + path.name.removeprefix(Path(result.report).name))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        results.append(dataclasses.replace(result, report=result.report and names[source]))
    stages = sorted((*rest.stages, *new.stages), key=lambda record: order.index(record.stage.ladder))
    dates = {**old.info.notes.get(COLLECTED, {}), **dict.fromkeys(sorted(fresh), new.info.created)}
    info = dataclasses.replace(old.info, created=new.info.created, notes={**old.info.notes, COLLECTED: dates})
    problems = tuple(dict.fromkeys(result.problem for result in results))
    save_run(Run(folder, info, tuple(stages), problems, tuple(results), reports))
    return load_run(folder)


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def publish(packed: Path, output: Path) -> None:
    """Put the packed run in the place of the one in ``output``; other files there stay."""
    shutil.rmtree(output / "reports", ignore_errors=True)
    shutil.copytree(packed, output, dirs_exist_ok=True)


def keep(run: Run, options: Namespace) -> int:
    """Save the collected run from the scratch folder, and say where it is; returns the exit code."""
    if options.from_run is None:
        folder = Path(tempfile.mkdtemp(prefix="gemmprof-run-")) / "run"
        shutil.copytree(run.directory, folder)
        print(f"the collected run is kept in {folder}: pack it with --from-run", file=sys.stderr)
    return 1


def main() -> int:
    """Record, check, pack, publish; returns the exit code."""
    parser = options_of(__doc__)
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("-o", "--output", type=Path, help="folder of the recorded run")
    target.add_argument("--collect-into", type=Path, metavar="RUN", help="only collect, into this folder")
    usual = ", ".join(f"{' and '.join(shapes)} of {name}" for name, shapes in PROFILED.items())
    parser.add_argument("--shape", action="append", help=f"profiled and timed (default: {usual})")
    parser.add_argument("--timed", action="append", help="timed only (default: a list); 'none' for none")
    parser.add_argument(
        "--ladder",
        action="append",
        choices=[ladder.name for ladder in LADDERS],
        help="this one only (again: these): the others stay as they are",
    )
    parser.add_argument("--set", dest="metric_set", default=LEAN, help=f"the metric set (default {LEAN})")
    parser.add_argument("--from-run", type=Path, help="pack this collected run instead of collecting")
    options = parser.parse_args()
    ladders = [ladder for ladder in LADDERS if not options.ladder or ladder.name in options.ladder]
    profiled, timed = (
        [
            Problem.parse(text, ladder.dtypes[0])
            for ladder in ladders
            for text in asked or usual[ladder.name]
            if text != "none"
        ]
        for asked, usual in ((options.shape, PROFILED), (options.timed, TIMED))
    )
    if options.collect_into is not None:
        wrong = complaints(collect_run(options.collect_into, profiled, timed, options.metric_set), profiled)
        print(*wrong, sep="\n", file=sys.stderr)
        return 1 if wrong else 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gemmprof-record-") as scratch:
        folder = Path(scratch)
        if options.from_run is not None:
            run = of_ladders(load_run(options.from_run), {ladder.name for ladder in ladders})
        else:
            run = collect_run(folder / "run", profiled, timed, options.metric_set)
        if options.ladder and (options.output / RUN_FILE).exists():
            run = merged(run, load_run(options.output), folder / "merged")
        if wrong := complaints(run, profiled):
            print("the run is not complete, nothing was written:", *wrong, sep="\n  ", file=sys.stderr)
            return keep(run, options)
        collected = time.monotonic()
        packed = pack(run, folder / "packed")
        size = size_of(folder / "packed")
        if size > LARGEST_BYTES:
            most = f"more than the {LARGEST_BYTES} that may ship"
            print(f"{size} bytes are {most}, nothing was written", file=sys.stderr)
            return keep(run, options)
        session = load_session([folder / "packed"])
        if session.failures or any(
            session.kernel_for(r) is None for r in packed.results if r.report is not None
        ):
            print("the packed reports do not read back:", *session.failures, sep="\n  ", file=sys.stderr)
            return keep(run, options)
        publish(folder / "packed", options.output)
    out = console()
    out.print(summary.table(summary.summarise(packed, session)))
    out.print(
        f"{size / 1e6:.2f} MB in {options.output / RUN_FILE} and reports; collected in {collected - started:.0f} s, "
        f"packed and read back in {time.monotonic() - collected:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
