"""Tables of what works on a GPU: a run's stages with their timings, a machine's checks, the ladders, a search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.table import Table

from gemmprof.base.amounts import DASH
from gemmprof.base.documents import Document
from gemmprof.model import Card, Problem, RunInfo, Stage, StageResult
from gemmprof.model.answers import Check, TuneDocument, WorkerReport
from gemmprof.reports.terminal import columns

if TYPE_CHECKING:
    from gemmprof.analysis.kernel_analysis import KernelAnalysis
    from gemmprof.analysis.session import Session
    from gemmprof.runs.directory import Run


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One stage on one problem. What was not measured is None."""

    # stage, name: number and name of the stage
    stage: int
    name: str
    problem: Problem  # the matrix product
    # median time outside the profiler; of cuBLAS, the median of its times in turns with the stages
    seconds: float | None = None
    # seconds_p10, seconds_p90: the times that a tenth of the repetitions were below, and above
    seconds_p10: float | None = None
    seconds_p90: float | None = None
    repetitions: int | None = None  # how often it was timed
    tflops: float | None = None  # TFLOP/s in these seconds
    cublas_tflops: float | None = None  # cuBLAS's in alternating repetitions
    of_cublas: float | None = None  # speed as a share of that, 0 to 1 and above
    # rate of the main arithmetic under the profiler, in per cent of its peak at the same clocks
    peak_percent: float | None = None
    achieved_occupancy: float | None = None  # per cent, under the profiler
    limited_by: str | None = None  # what holds the kernel back, in a few words
    relative_error: float | None = None  # of the verification
    failure: str | None = None  # what went wrong
    # the first finding, what it saves and where; None where nothing is left to gain
    change_first: str | None = None
    card: Card | None = None  # the GPU that it was timed on, else verified on; None where that was not noted


class CollectDocument(Document, frozen=True, tag="gemmprof.collect/1"):
    """``gemmprof collect``."""

    run: Path  # the run directory
    pages: Path | None  # the page to open first; null with --no-report, or if rendering failed
    info: RunInfo  # what holds for the whole run
    rows: tuple[SummaryRow, ...]  # a row a stage and problem


def summarise(run: Run, session: Session | None) -> tuple[SummaryRow, ...]:
    """The rows of a run, with the profiler's part where ``session`` holds the run's reports."""
    return tuple(_row(run, result, session.kernel_for(result) if session else None) for result in run.results)


def _row(run: Run, result: StageResult, kernel: KernelAnalysis | None) -> SummaryRow:
    # What explains kernels takes half of the start of `stages`, `doctor` and `tune`, which have none.
    from gemmprof.analysis.sections.roofline import Roofline
    from gemmprof.reports import words
    from gemmprof.reports.facts import achieved_occupancy, limited_by

    timing, verification = result.timing, result.verification
    seconds, cublas = run.seconds(result), run.yardstick_seconds(result)
    first = kernel.explanation.losses[0][0] if kernel and kernel.explanation.losses else None
    where = f", at {words.place(first.places[0])}" if first and first.places else ""
    return SummaryRow(
        stage=result.stage,
        name=run.record_of(result).stage.name,
        problem=result.problem,
        seconds=seconds,
        seconds_p10=timing.p10 if timing and seconds == timing.median else None,
        seconds_p90=timing.p90 if timing and seconds == timing.median else None,
        repetitions=timing.repetitions if timing else None,
        tflops=result.problem.tflops(seconds),
        cublas_tflops=result.problem.tflops(cublas),
        of_cublas=run.of_yardstick(result),
        peak_percent=kernel.field(Roofline, "main", "percent") if kernel else None,
        achieved_occupancy=achieved_occupancy(kernel) if kernel else None,
        limited_by=(limited_by(kernel) or None) if kernel else None,
        relative_error=verification.relative_error if verification else None,
        failure=result.failure,
        change_first=f"{words.title(first)}, saves {words.saved(first)}{where}" if first else None,
        card=(timing.card if timing else None) or (verification.card if verification else None),
    )


def table(rows: Sequence[SummaryRow]) -> Table:
    """The rows for a terminal."""
    problems = dict.fromkeys(row.problem for row in rows)
    several = len({row.card.label for row in rows if row.card is not None}) > 1
    numbers = ("time ms", "p10–p90", "TFLOP/s", "cuBLAS", "% of it", "% of peak*", "occupancy %*", "error")
    result = columns(
        *(">!stage", "!name", *["!shape"] * (len(problems) > 1), *["!GPU"] * several),
        *(f">!{title}" for title in numbers),
        "limited by*",
        header_style="bold",
    )
    for row in rows:
        cells = [str(row.stage), row.name]
        if len(problems) > 1:
            cells.append(row.problem.label)
        if several:
            cells.append(row.card.label.removeprefix("GPU ") if row.card else DASH)
        low, high = (_text(time, 1e3, "{:.3f}") for time in (row.seconds_p10, row.seconds_p90))
        cells += [_text(row.seconds, 1e3, "{:.3f}"), f"{low}–{high}" if DASH not in (low, high) else DASH]
        cells += [_text(speed, 1, "{:.2f}") for speed in (row.tflops, row.cublas_tflops)]
        percents = (row.of_cublas and 100 * row.of_cublas, row.peak_percent, row.achieved_occupancy)
        cells += [_text(percent, 1, "{:.1f}") for percent in percents]
        failed = row.failure and f"FAILED: {row.failure.splitlines()[0]}"
        result.add_row(*cells, _text(row.relative_error, 1, "{:.1e}"), failed or row.limited_by or DASH)
    return result


FOOTNOTE = "* measured under Nsight Compute; times and TFLOP/s are not."


def print_run(console: Console, rows: Sequence[SummaryRow], seconds: Mapping[str, float]) -> None:
    """The table, and where the time of the collection went (seconds by part)."""
    console.print()
    console.print(table(rows))
    console.print(FOOTNOTE)
    findings = [row for row in rows if row.change_first]
    if findings:
        console.print("To change first (gemmprof explain says how, and what else):")
    for row in findings:
        shape = f" {row.problem.label}" if len({other.problem for other in rows}) > 1 else ""
        console.print(f"  {row.stage} {row.name}{shape}: {row.change_first}", markup=False, highlight=False)
    parts = ", ".join(f"{part} {spent:.1f} s" for part, spent in seconds.items())
    console.print(f"{sum(seconds.values()):.1f} s spent on this run: {parts}")


def _text(value: float | None, factor: float, form: str) -> str:
    return DASH if value is None else form.format(value * factor)


_MARKS = {True: "ok", False: "MISSING", None: "unsure"}


def _missing(checks: Sequence[Check]) -> str:
    return ", ".join(check.name for check in checks if check.is_missing)


def check_parts(checks: Sequence[Check]) -> Iterator[RenderableType]:
    """Everything that was looked for, then the remedies, then whether one can collect here."""
    yield from _all(checks)
    if missing := _missing(checks):
        yield f"\n`gemmprof collect` cannot run here: {missing}. Reports can be read without any of it."
    else:
        yield "\n`gemmprof collect --all-stages` can run here."


def hint(checks: Sequence[Check]) -> str:
    """One or two lines: what was found, and how to collect."""
    found = {check.name: check for check in checks}
    gpu, ncu = found["GPU"], found["ncu"]
    if not gpu.ok:
        return (
            "No NVIDIA GPU was found here: every command but `collect`, `profile`, `tune` and `watch` works on the "
            "recorded run and on any report."
        )
    here = f"Found {gpu.found}" + (f" and ncu {ncu.found}." if ncu.ok else ".")
    if missing := _missing(checks):
        return f"{here}\nTo collect here, first see `gemmprof doctor`: {missing}."
    return f"{here}\nCollect on it with `gemmprof collect --all-stages`."


def worker_parts(workers: Sequence[WorkerReport]) -> Iterator[RenderableType]:
    """Every worker with what was looked for, then how many of them can work."""
    for worker in workers:
        yield f"worker {worker.worker} on {worker.host}"
        yield from _all(worker.checks)
        yield ""
    good = sum(1 for worker in workers if not _missing(worker.checks))
    if not workers:
        yield "The scheduler answers, and has no workers."
    else:
        yield f"{good} of {len(workers)} workers can verify, time and profile."


def _all(checks: Sequence[Check]) -> Iterator[RenderableType]:
    """The checks as a table, then the remedies."""
    table = columns("", "", "", show_header=False)
    for check in checks:
        mark = "optional" if check.ok is False and not check.needed else _MARKS[check.ok]
        table.add_row(mark, check.name, check.found)
    yield table
    for check in checks:
        if check.ok is not True and check.remedies:
            yield "\n".join((f"\n{check.name}:", *(f"  fix: {remedy}" for remedy in check.remedies)))


def stages_table(stages: Sequence[Stage]) -> Table:
    """A row a stage: number, name, idea (and the GPUs that it is written for, if not all), tile parameters."""
    result = columns(">stage", "name", "its one idea", "tile parameters")
    result.columns[1].min_width = max((len(stage.name) for stage in stages), default=4)
    result.columns[3].max_width = 60
    for stage in stages:
        needs = f" Needs {' or '.join(stage.architectures)}." if stage.architectures else ""
        result.add_row(str(stage.number), stage.name, stage.idea + needs, letters(stage.parameters))
    return result


def letters(parameters: Mapping[str, int]) -> str:
    """Tile parameters as one writes them: ``BM=64 BN=64``."""
    return " ".join(f"{letter}={value}" for letter, value in parameters.items())


LISTED = 10


def print_search(console: Console, result: TuneDocument) -> None:
    """The fastest parameter sets, how many were dropped for what, the pace, the winner."""
    timed = sorted((o for o in result.outcomes if o.status == "timed"), key=lambda o: -(o.score or 0.0))
    table = columns("parameters", ">% of cuBLAS", ">registers", ">blocks an SM")
    for one in timed[:LISTED]:
        cells = f"{100 * (one.score or 0.0):.1f}", str(one.registers), str(one.blocks_per_sm)
        table.add_row(letters(one.parameters), *cells)
    console.print(table)
    tried = Counter(outcome.status for outcome in result.outcomes)
    console.print("tried: " + ", ".join(f"{count} {status}" for status, count in sorted(tried.items())))
    if result.tried:
        pace = 60 * result.tried / result.seconds
        console.print(f"{result.tried} parameter sets in {result.seconds:.0f} s, {pace:.0f} a minute")
    if len(result.cards) > 1:
        shares = Counter(outcome.card for outcome in result.outcomes)
        told = ", ".join(f"{shares[card]} on {card.label}" for card in result.cards)
        console.print(f"measured: {told} ({result.cards[0].model})")
    console.print(
        f"winner: {letters(result.winner)}: {100 * result.best:.1f}% of cuBLAS, "
        f"{result.gain:.3f} times the catalog's parameters"
    )
