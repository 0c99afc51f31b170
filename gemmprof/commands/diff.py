"""Say of every kernel whether it is SAME, FASTER or SLOWER, or that one CAN'T TELL, and what changed. A gate for CI.

All launches of one full name, grid, block, shared memory and NVTX path are repetitions: the more, the smaller the
change that shows. Several reports a side are better still. Same code with same counters is never called slower.

  gemmprof diff old.ncu-rep new.ncu-rep                       the verdicts and why
  gemmprof diff old_*.ncu-rep --with new_*.ncu-rep            several reports a side
  gemmprof diff --against main new.ncu-rep --fail-if 'time > +3%' --fail-if 'local_memory > 0'
  gemmprof diff old.ncu-rep new.ncu-rep --format html -o diff.html    source and SASS side by side, what moved
  gemmprof diff run/ --before 5 --after 6                     two stages of one run (5@2048: on another shape)
  gemmprof diff --build old.log new.log --fail-if 'registers > +0'   logs of nvcc -Xptxas -v, cubins or objects
  gemmprof diff --learn-noise noise.json control_*.ncu-rep    what this machine's noise is; then: --noise noise.json
  gemmprof diff ladder.ncu-rep                                a ladder: each kernel with the one before it

Exit codes: 0 the gate holds (or none was given), 1 it is broken, 2 an error.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof.arguments import common, parser
from gemmprof.base.buckets import write_text
from gemmprof.base.errors import GemmprofError, UsageError
from gemmprof.base.printable import GuardedStream, encoding_of, github_command, json_safe

if TYPE_CHECKING:
    from gemmprof.analysis.comparison.gate import GateResult
    from gemmprof.analysis.comparison.outcome import Outcome
    from gemmprof.analysis.comparison.sides import Side

FORMATS = ("text", "markdown", "json", "junit", "sarif", "github", "html")
ARGUMENTS = f"""
inputs RUN|REPORT*      before and after; one: a ladder is compared within itself; none: the newest run here, else the
                        recorded run
[the two sides]
--with/other RUN|REPORT+  the later side; the inputs are the earlier
--against NAME          a saved baseline is the earlier side, the inputs the later
{parser.BASELINES}
--before KERNEL         stage of a run (5, or 5@2048), launch of a report (30) or part of a name
--after KERNEL          the same for the other side
--across…               compare although GPU, clock control or what ncu collected differ; may be repeated
--build                 the inputs are builds: logs of nvcc -Xptxas -v, cubins, objects, libraries or executables
--threads N>=1          with --build: block size to work the occupancy out for (default 256)
--each-launch           the n-th launch with the n-th: no repetitions
--learn-noise FILE      the inputs are several reports of one unchanged program: write what this machine's noise is
--noise FILE            compare with the noise that --learn-noise wrote
{parser.SELECTION}
[the gate]
--fail-if CONDITION…    'time > +3%%', 'registers > +0', 'local_memory > 0', any metric of ncu's, or a finding's name
                        (+NAME: a new one); may be repeated
--fail-slower PCT%      short for --fail-if 'time > +PCT%%'
--fail-unclear          CAN'T TELL breaks the gate, too
--allow-new             kernels that only the later side has pass
--allow-gone            kernels that only the earlier side has pass
--waivers FILE          TOML: [[waiver]] with kernel, reason, until
[]
{parser.TRUST}{parser.REDACT}
[how to say it]
--format                default: text
--json                  short for --format json
--details               every quantity of every pair
--same-within PCT%      SAME is less than this (default 1)
[]
-o, --output FILE       write the document there instead of printing it
{parser.FORCE}{parser.READING_PLACE}"""
VALUES = parser.values(
    parser.READ_THERE,
    across=("card", "clocks", "set"),
    format={"choices": FORMATS, "default": "text"},
    same_within=1.0,
)


def run(options: argparse.Namespace) -> int:
    """Print the comparison; 1 if a gate was given and does not hold."""
    from gemmprof.analysis.comparison.gate import check, read_waivers
    from gemmprof.analysis.inputs.conditions import parse_condition

    if options.learn_noise:
        return _learn_noise(options)
    kind = "json" if options.json else options.format  # what cannot be is refused before anything is read
    if kind == "html" and (options.build or not options.output):
        raise UsageError(
            "a build has no samples to show" if options.build else "a page needs a file",
            *(["choose another --format"] if options.build else ["-o diff.html"]),
        )
    if kind == "text" and options.output:
        raise UsageError("text goes to the terminal", "choose a --format for the file")
    conditions = list(options.fail_if)
    if options.fail_slower is not None:
        conditions.append(f"time > +{options.fail_slower:g}%")
    if not conditions and not options.build and (options.waivers or options.allow_new or options.allow_gone):
        alone = "--waivers, --allow-new and --allow-gone belong to a gate"
        raise UsageError(alone, "add --fail-if 'time > +3%'")
    for text in conditions:  # what cannot be read is said before the reports are
        parse_condition(text, two_sides=True)
    waivers = read_waivers(Path(options.waivers)) if options.waivers else ()
    outcome = _built(options) if options.build else _outcome(options)
    gate = None
    if conditions or options.fail_unclear:
        allowed = {name: getattr(options, name) for name in ("allow_new", "allow_gone", "fail_unclear")}
        gate = check(outcome, conditions, **allowed, waivers=waivers)
    _print(outcome, gate, options)
    # What was built for an architecture must not vanish unseen; only of builds is something always wrong.
    for note in () if options.allow_gone else outcome.broken:
        print(f"gemmprof diff: {note}", file=sys.stderr)
    lost = bool(outcome.broken) and not options.allow_gone
    return 0 if (gate is None or gate.holds) and not lost else 1


def _learn_noise(options: argparse.Namespace) -> int:
    """Write the noise of this machine; 1 where a report could not be read."""
    from gemmprof.analysis.comparison.baseline import learn
    from gemmprof.analysis.comparison.sides import load_side
    from gemmprof.base.documents import json_text

    if options.other or options.against or options.build or options.fail_if or not options.inputs:
        raise UsageError(
            "--learn-noise takes several reports of one unchanged program, and nothing to compare them with",
            "gemmprof diff --learn-noise noise.json control_*.ncu-rep",
        )
    target = common.new_output(options.learn_noise, force=options.force)
    side = load_side(options.inputs, common.selection(options))
    common.name_failures(options, side.failures)
    control = learn(side)
    write_text(target, json_text(control) + "\n")
    if options.json:
        common.print_json(control)
    else:
        common.console().print(control.words(), markup=False, highlight=False)
    common.announce(target)
    return common.exit_code(side.failures)


def _built(options: argparse.Namespace) -> Outcome:
    from gemmprof.analysis.comparison.builds import DEFAULT_THREADS, compare_builds, load_build

    inputs, other = list(options.inputs), options.other
    if other is None and len(inputs) == 2:
        inputs, other = inputs[:1], inputs[1:]
    if not inputs or not other or options.against:
        fixes = "diff --build OLD NEW", "several files a side: diff --build OLD… --with NEW…"
        raise UsageError("--build compares two builds", *fixes)
    threads = options.threads or DEFAULT_THREADS
    return compare_builds(load_build(inputs, threads), load_build(other, threads))


def _outcome(options: argparse.Namespace) -> Outcome:
    from gemmprof.analysis.comparison import sides
    from gemmprof.analysis.comparison.baseline import read_control
    from gemmprof.analysis.comparison.outcome import compare_matches
    from gemmprof.analysis.reading.frame import unpacked_once

    picked = (options.before, options.after)
    if any(picked) and not all(picked):
        raise UsageError("--before and --after belong together", "give both, or neither")
    with unpacked_once():
        before, after = _sides(options)
    for side in (before, after):
        if side is not None:
            common.name_failures(options, side.failures)
    later = before if after is None else after
    if all(picked):
        left, right = sides.chosen(before, options.before), sides.chosen(later, options.after)
        matches: tuple[sides.Match, ...] = (sides.Match(left, right, "chosen"),)
    elif after is not None:
        matches = sides.match(before, after)
    else:
        matches = sides.rungs(before)
    if not matches:
        named = shlex.join(options.inputs)
        fixes = f"gemmprof diff {named} LATER", f"gemmprof diff --against BASELINE {named}"
        raise UsageError(f"there is nothing to compare {before.title} with", *fixes)
    if meant := common.selection(options).families:
        matches = tuple(match for match in matches if match.family in meant)
        if not matches:
            fixes = f"`gemmprof {later.title}` lists them", "ids are those of the later side"
            raise UsageError(f"no family of {later.title} has this id", *fixes)
    found = compare_matches(
        matches,
        before=before.title,
        after=later.title,
        margin=options.same_within / 100,
        across=options.across,
        control=read_control(Path(options.noise)) if options.noise else None,
    )
    if kept := _came_of_predictions():
        found = replace(found, notes=(*found.notes, kept))
    return found


def _came_of_predictions() -> str:
    """How predictions of the history here came out; '' where there is none."""
    from gemmprof.analysis.history.recording import tally
    from gemmprof.reports.history.store import HistoryStore, default_store

    try:
        store = HistoryStore.open(default_store())
        words = tally(store.predictions()).words
    except GemmprofError:  # a damaged history is told of by its own command
        return ""
    return f"{words[:1].upper()}{words[1:]} (history {store.folder})." if words else ""


def _sides(options: argparse.Namespace) -> tuple[Side, Side | None]:
    """The earlier and the later side; the later is None where there is one input."""
    from gemmprof.analysis.comparison.baseline import load_baseline
    from gemmprof.analysis.comparison.sides import load_side
    from gemmprof.analysis.inputs.selection import position_in

    # An id is the later side's own: of what there is in common, `_outcome` keeps the families that are meant.
    selection = replace(common.selection(options), families=())

    def side(paths: list[str], picked: str | None) -> Side:
        return load_side(paths, selection, each_launch=options.each_launch, launch=position_in(picked))

    inputs = list(options.inputs)
    if options.against is not None and options.other is not None:
        raise UsageError("--against and --with both name a side", "give one of them")
    if options.against is not None:
        if not inputs:
            inputs = [str(path) for path in common.chosen_inputs(options, quiet=True)]
        kept = load_baseline(options.against, options.baselines, selection)
        return kept, side(inputs, options.after)
    if options.other is not None:
        if not inputs:
            raise UsageError("--with names the later side, the earlier is missing", "diff OLD --with NEW")
        return side(inputs, options.before), side(options.other, options.after)
    if len(inputs) > 2:
        many = f"{len(inputs)} inputs were named, and which are before is not clear"
        raise UsageError(many, "diff OLD… --with NEW…")
    if len(inputs) == 2:
        return side(inputs[:1], options.before), side(inputs[1:], options.after)
    named = [str(path) for path in common.chosen_inputs(options)]
    before = side(named, options.before)
    by_position = any(position_in(text) is not None for text in (options.before, options.after))
    return before, side(named, options.after) if by_position and not before.stages else None


def _print(outcome: Outcome, gate: GateResult | None, options: argparse.Namespace) -> None:
    from gemmprof.base.documents import json_text
    from gemmprof.reports import interchange, sentences
    from gemmprof.reports.documents.of_comparison import compared
    from gemmprof.reports.pages.code_diff import diff_page
    from gemmprof.reports.terminal import outcome_tables

    kind = "json" if options.json else options.format
    # What stands for a kernel without line information: where the gate is written down, else what was compared.
    settings = str(options.waivers or (options.other or options.inputs or [""])[-1])
    annotations = partial(interchange.github_annotations, outcome, gate, settings)
    makers: dict[str, Callable[[], str]] = {
        "json": lambda: json_text(compared(outcome, gate)),
        "junit": lambda: interchange.junit_text(outcome, gate),
        "sarif": lambda: interchange.sarif_text(outcome, gate, settings),
        "markdown": lambda: interchange.markdown_text(outcome, gate),
        "html": lambda: diff_page(outcome),
        "github": lambda: "\n".join(github_command(*item) for item in annotations()),
    }
    if options.output:
        target = common.new_output(options.output, force=options.force)
        write_text(target, _encodable(makers[kind](), kind, "utf-8") + "\n")
        common.announce(target)
    elif kind == "github" and isinstance(sys.stdout, GuardedStream):
        for item in annotations():
            sys.stdout.write_command(*item)
    elif kind != "text":
        print(_encodable(makers[kind](), kind, encoding_of(sys.stdout)))
    elif options.build:
        outcome_tables.print_builds(common.console(), outcome)
    elif len(outcome.kernels) == 1 and not options.details:
        outcome_tables.print_pair(common.console(), outcome)
    else:
        outcome_tables.print_outcome(common.console(), outcome, details=options.details)
    if gate is None or (kind == "github" and not options.output):
        return
    for severity, text, _ in sentences.gate_lines(gate):
        if severity != "notice" or kind == "text":
            print(f"gemmprof diff: {text}", file=sys.stderr)
    print(f"gemmprof diff: {sentences.gate_summary(gate, outcome)}", file=sys.stderr)


def _encodable(text: str, kind: str, encoding: str) -> str:
    """A document in characters of the encoding, saying the same."""
    if kind in ("json", "sarif"):
        return json_safe(text, encoding)
    return text if kind != "junit" else text.encode(encoding, "xmlcharrefreplace").decode(encoding)
