"""Regenerate what README.md and docs/ show: the front door, the ladders, stage 13 against cuBLAS, the commands.

Everything comes from the recorded run that ships with the package (``gemmprof/recorded``), so a figure in the text
cannot drift from it. ``--check`` writes nothing and exits with 1 if a file is out of date; ``--quick`` leaves out what
explains the run's kernels.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import try_statements
from compiled_resources import committed_sass
from recording import ROOT, options_of, printed, table_of, with_block, written
from score_studies import rungs_of

from gemmprof.analysis.explanation.causes import CAUSES, definition
from gemmprof.analysis.figure import declared, figures, formula_of
from gemmprof.analysis.kernel_analysis import analyse, analyses
from gemmprof.analysis.ladder.predictions import steps as ladder_steps
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.session import Session, load_session
from gemmprof.base.foreign_files import facts
from gemmprof.commands import COMMANDS
from gemmprof.gpu import arch
from gemmprof.kernels.catalog import FP8, HALF, LADDERS, SINGLE
from gemmprof.model import Finding, Ladder, Problem
from gemmprof.reports.terminal.summary import SummaryRow, summarise
from gemmprof.runs.directory import Run, load_recorded_run

README = ROOT / "README.md"
READING = ROOT / "docs" / "expert_reading.md"
ANSWERED = Path("docs") / "examples" / "recorded" / "transformer.ncu-rep.xz"
"""The report whose front door README shows."""
LADDERS_PAGE = ROOT / "docs" / "ladders.md"
GUIDE = ROOT / "docs" / "guide.md"
NOTES = ROOT / "docs" / "fastest_sgemm.md"
HALF_NOTES = ROOT / "docs" / "fastest_hgemm.md"
EXPLAIN = ROOT / "docs" / "explain.md"
ANALYSES_NOTES = ROOT / "docs" / "analyses.md"
SHOWN = {ladder.name: Problem(4096, 4096, 4096, ladder.dtypes[0]) for ladder in LADDERS}
ARITHMETIC = {
    "single": "FP32 without tensor cores",
    "half": "BF16 operands and C, float32 sums",
    "fp8": "e4m3 operands, B stored transposed, BF16 C, float32 sums",
}
GOAL = tuple(
    Problem.parse(text)
    for text in ("1024", "2048", "4096", "8192", "4096x4096x1024", "8192x1024x4096", "1000", "4097")
)
"""The shapes over which stage 13's goal is a geometric mean."""
OF_FIGURES = (
    "ladder_simple",
    *(f"flaws_{name}" for name in ("async_copy", "cluster", "divergence", "spills", "tensor")),
)
"""Recorded reports that between them have every figure."""


def figure_rows() -> str:
    """Every figure of the pages: what is declared of it, and its formula in the first recorded launch that has it."""
    formulas: dict[str, str] = {}
    declarations = {}
    for name in OF_FIGURES:
        for profile in read_report(ROOT / "tests" / "data" / f"{name}.ncu-rep.xz"):
            for analysis, result in analyse(profile).traced.results.items():
                for field, item in declared(type(result)).items() if result else ():
                    declarations.setdefault(f"{analysis}.{field}", item)
                for key, row, item, value in figures(result) if result else ():
                    declarations.setdefault(f"{analysis}.{key}", item)
                    if formula := formula_of(value):
                        here = re.sub(r"\[0x[^]]*\]", "[here]", formula)
                        of = f"{row}: " if row and here == formula else ""
                        formulas.setdefault(f"{analysis}.{key}", f"{of}`{here}`")
    rows = []
    order = [analysis.NAME for analysis in analyses()]
    for key, item in sorted(declarations.items(), key=lambda pair: order.index(pair[0].partition(".")[0])):
        formula = (formulas.get(key, "") or item.how).replace("|", "\\|")
        rows.append((f"`{key}`", item.title, item.meaning, formula))
    return "\n".join(table_of("figure | on the page | what it says | formula", rows))


def latency_rows() -> str:
    """The latencies that the time model of `explain` works with."""
    known = [row for row in facts(arch.__file__, "practice.csv") if row[0].endswith("_cycles")]
    rows = ((says, f"{getattr(arch.MEASURED, name):.0f}") for name, _, says in known if says)
    return "\n".join(table_of("from there to the consumer, idle machine | cycles>", rows))


def cause_sections() -> str:
    """One heading a cause with its definition, from the docstrings of the code that finds it."""
    parts = []
    for cause, title in CAUSES.items():
        text = textwrap.dedent(definition(cause)).strip()
        paragraphs = [" ".join(part.split()).replace("``", "`") for part in text.split("\n\n")]
        wrapped = ["\n".join(textwrap.wrap(part, 118, break_long_words=False)) for part in paragraphs]
        parts.append(f"### {cause}\n\n**{title}.** " + "\n\n".join(wrapped))
    return "\n\n".join(parts)


def milliseconds(seconds: float) -> str:
    """Three significant digits, in milliseconds."""
    return f"{seconds * 1e3:#.3g} ms" if seconds < 0.1 else f"{seconds * 1e3:.0f} ms"


def changed_since(run: Run, ladder: Ladder) -> list[int]:
    """Numbers, as recorded, of the stages whose machine code is no longer that of the recorded run."""
    architecture = "sm_{}{}".format(*run.info.compute_capability)
    now = {stage.name: committed_sass(stage.name, architecture) for stage in ladder.stages if stage.source}
    return sorted(
        record.stage.number
        for record in run.stages
        if record.stage.ladder == ladder.name and record.sass != now.get(record.stage.name, record.sass)
    )


def tried(run: Run, ladder: Ladder) -> str:
    """What came of trying random products (`make campaign-gpu`) by the code of today, in a sentence."""
    file = run.directory / "campaign.json"
    made = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"ladders": {}}
    found = made["ladders"].get(ladder.name, {"stages": {}})
    architecture = "sm_{}{}".format(*run.info.compute_capability)
    built = [stage.name for stage in ladder.stages if stage.source is not None]
    missing = [
        name
        for name in built
        if found["stages"].get(name, {}).get("sass") != committed_sass(name, architecture)
    ]
    if not found["stages"]:
        return f"Not tried on a million random products (`make campaign-gpu`) as they are now: {', '.join(missing)}."
    other = f" Tried as other machine code than the table's: {', '.join(missing)}." if missing else ""
    return (
        f"Random products compared bit by bit (`make campaign-gpu`, {made['device']}, {made['created'][:10]}): "
        f"{found['problems']:,} problems, {found['launches']:,} launches, {found['wrong']} wrong.{other}"
    )


def ladder_table(run: Run, rows: tuple[SummaryRow, ...], ladder: Ladder, changed: list[int]) -> str:
    """A ladder at `SHOWN` as a Markdown table with the facts of the run under it."""
    shown = SHOWN[ladder.name]
    if shown not in run.problems:
        return f"The recorded run has no {ladder.title} yet: `make record` adds it."
    titles = {r.stage.number: r.stage.title for r in run.stages if r.stage.ladder == ladder.name}
    table = []
    for row in rows:
        if row.problem != shown or row.seconds is None or row.tflops is None:
            continue
        share = f"{100 * row.of_cublas:.1f} %" if row.of_cublas is not None else "–"
        beside = f"{row.cublas_tflops:.1f}" if row.cublas_tflops is not None else "–"
        occupancy = f"{row.achieved_occupancy:.0f} %" if row.achieved_occupancy is not None else "–"
        error = f"{row.relative_error:.1e}" if row.relative_error is not None else "–"
        speed = milliseconds(row.seconds), f"{row.tflops:.1f}", beside, share
        table.append((row.stage, titles[row.stage], *speed, occupancy, row.limited_by or "–", error))
    versions = run.info.versions
    collected = run.info.notes.get("collected", {}).get(ladder.name, run.info.created)
    made = ", ".join(
        f"{label} {versions[key]}"
        for key, label in (("driver", "driver"), ("cuda", "CUDA"), ("torch", "torch"), ("ncu", "ncu"))
        if versions.get(key)
    )
    head = "stage> |  | time> | TFLOP/s> | cuBLAS beside it> | of cuBLAS> | occupancy> | limited by | error>"
    lines = [
        *table_of(head, table),
        "",
        f"{run.info.device}, recorded on {collected[:10]}, M = N = K = {shown.m:,}, {ARITHMETIC[ladder.name]}, "
        f"random normal data; {made}. "
        "Median time, L2 flushed before every repetition, alternating with cuBLAS in one process, whose speed in "
        "the same turns stands beside it (its own row: the median of those); the error is the "
        "relative Frobenius distance to a float64 product. Occupancy and limit are from the profiled launch.",
    ]
    clocks = [
        result.timing.sm_clock_mhz
        for result in run.results
        if result.problem == shown and result.timing is not None and result.timing.sm_clock_mhz
    ]
    if clocks and max(clocks) > 1.05 * min(clocks):
        lines[-1] += (
            f" Under this load the card sets the SM clock, {min(clocks):.0f} to {max(clocks):.0f} MHz here: compare "
            "the shares of cuBLAS rather than the times of two rows."
        )
    lines += ["", tried(run, ladder)]
    if changed:
        numbers = ", ".join(str(number) for number in changed)
        stages = "stage" if len(changed) == 1 else "stages"
        lines += ["", f"The code of {stages} {numbers} changed since the recording."]
    return "\n".join(lines)


def fastest_table(run: Run, rows: tuple[SummaryRow, ...]) -> str:
    """The fastest FP32 stage against cuBLAS on every timed problem, those of the goal first."""
    found = {row.problem: row for row in rows if row.name == "fastest" and row.of_cublas and row.tflops}
    others = sorted(found.keys() - set(GOAL), key=lambda problem: problem.flops)
    if missing := [problem.label for problem in GOAL if problem not in found]:
        raise SystemExit(f"the recorded run lacks {', '.join(missing)}")

    def line(problem: Problem) -> tuple[str, ...]:
        row = found[problem]
        speeds = f"{row.tflops:.3g}", f"{row.cublas_tflops:.3g}", f"{row.of_cublas:.3f}"
        return f"{problem.m} × {problem.n} × {problem.k}", *speeds, f"{row.relative_error:.0e}"

    mean = statistics.geometric_mean([found[problem].of_cublas or 0.0 for problem in GOAL])
    rows = [*map(line, GOAL), ("**geometric mean**", "", "", f"**{mean:.3f}**", ""), *map(line, others)]
    return "\n".join(table_of("M × N × K | TFLOP/s> | cuBLAS> | ratio> | error>", rows))


def explained_table(session: Session, ladder: Ladder) -> str:
    """What `gemmprof explain` says of each stage's report at `SHOWN`, beside what the next stage brought."""
    run, shown = session.run, SHOWN[ladder.name]
    assert run is not None
    rungs = rungs_of(session, shown)[ladder.name, shown]
    rows = []
    steps = {step.before.number: step for step in ladder_steps(rungs)}
    for rung in rungs:
        first = next(iter(rung.explanation.findings), None)
        said = "nothing left to gain" if first is None else f"{CAUSES[first.cause].lower()}, {saving(first)}"
        cells = ["–"] * 4
        if step := steps.get(rung.stage.number):
            cells[2] = f"{100 * step.came_out:.0f} %"
            if step.fixed is not None:
                held = "yes" if step.held else "no"
                cells = [CAUSES[step.fixed.cause].lower(), saving(step.fixed), cells[2], held]
        rows.append((rung.stage.number, said, *cells))
    told = [step.held for step in steps.values() if step.held is not None]
    head = "stage> | explain's first, of its report | fixed by the next | predicted> | came> | inside"
    said = f"{run.info.device}, {shown.label}; {sum(told)} of {len(told)} inside the interval."
    return "\n".join([*table_of(head, rows), "", said])


def saving(finding: Finding) -> str:
    """A finding's share of the time with its interval: ``19 % (10 to 26)``."""
    low, high = 100 * finding.saves_low, 100 * finding.saves_high
    return f"{100 * finding.saves:.0f} % ({low:.0f} to {high:.0f})"


def front_door() -> str:
    """What `gemmprof REPORT` prints of a recorded step of a transformer."""
    shown = printed(str(ANSWERED)).replace(str(ANSWERED), ANSWERED.name).replace(".ncu-rep.xz", ".ncu-rep")
    return f"\n```text\n$ gemmprof {ANSWERED.name.removesuffix('.xz')}\n{shown.rstrip()}\n```"


def trust() -> str:
    """How far off explanations of unseen kernels are today, by language, and what climbs brought."""
    lines = (ROOT / "docs" / "explain_scores.md").read_text("utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    found = {(row[0], row[1]): row[2:] for row in cells if len(row) == 7}
    (cuda, cuda_error, _, cuda_right, _), (triton, triton_error, _, triton_right, _) = (
        found["H200", language] for language in ("CUDA", "triton")
    )
    _, gained, climbs = try_statements.climbs("abcd")
    return (
        f"How far to trust it: of kernels that nobody had looked at, fixes saved **{cuda_error} points** more or less "
        f"than told in CUDA C++ ({cuda}\nkernels, H200; {found['H100', 'CUDA'][1]} on an H100), {triton_error} in "
        f"Triton ({triton}; {found['H100', 'triton'][1]}); of those that cost 5 % or more, the cause named first is\n"
        f"right on {cuda_right} and {triton_right} ([every figure](docs/explain_scores.md)). {climbs} everyday "
        f"kernels, changed step by step as told,\ncame {gained} of the way to an expert's version (logarithm of the "
        "speed-up, median; [each step](docs/expert_reading.md#climbs))."
    )


def command_table() -> str:
    """The commands with their one-line summaries."""
    rows = ((f"`gemmprof {name}`", summary) for name, summary in COMMANDS.items())
    return "\n".join(table_of("command | what it does", rows))


def of_the_kernels(run: Run) -> dict[Path, dict[str, str]]:
    """The ladders, and what `explain` says of their stages."""
    session = load_session([run.directory])
    # Only these are explained, which takes its time; what is known of the others is in run.json.
    shown = tuple(result for result in run.results if result.problem in SHOWN.values())
    rows = summarise(replace(run, results=shown), session)
    ladders = (("ladder", SINGLE), ("half", HALF), ("fp8", FP8))
    return {
        LADDERS_PAGE: {
            name: ladder_table(run, rows, ladder, changed_since(run, ladder)) for name, ladder in ladders
        },
        HALF_NOTES: {"explained": explained_table(session, HALF)},
    }


def main() -> int:
    """Rewrite README.md; returns the exit code."""
    parser = options_of(__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the files are up to date")
    parser.add_argument("--quick", action="store_true", help="leave out what explains the run's kernels")
    options = parser.parse_args()
    run = load_recorded_run()
    blocks = {
        README: {"answer": front_door(), "trust": trust()},
        GUIDE: {"commands": command_table()},
        NOTES: {"goal": fastest_table(run, summarise(run, None))},
        ANALYSES_NOTES: {"figures": figure_rows()},
        EXPLAIN: {"latencies": latency_rows(), "causes": cause_sections()},
        READING: {
            **{kind: try_statements.table(kind) for kind in ("fixed", "flawed")},
            "again": try_statements.table("fixed", "flawed", again=True),
            "triton": try_statements.table("triton_fixed", "triton_flawed"),
            "triton_again": try_statements.table("triton_fixed", "triton_flawed", again=True),
            "climbs": try_statements.climbs("ab")[0],
            "climbs_again": try_statements.climbs("cd")[0],
        },
    }
    if not options.quick:
        blocks |= of_the_kernels(run)
    pages = {}
    for file, contents in blocks.items():
        pages[file] = file.read_text(encoding="utf-8")
        for name, content in contents.items():
            pages[file] = with_block(pages[file], name, content)
    return written(pages, check=options.check)


if __name__ == "__main__":
    sys.exit(main())
