"""Reads one side of a comparison: runs, reports, several of them as repetitions of one another."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from gemmprof import metrics as m
from gemmprof.analysis.comparison import records as recorded
from gemmprof.analysis.comparison.judgement import limit_of
from gemmprof.analysis.comparison.records import KernelRecord, likeness, measures
from gemmprof.analysis.inputs.families import census
from gemmprof.analysis.inputs.selection import EVERYTHING, Choice, Selection, expand, is_run, one_kernel
from gemmprof.analysis.kernel_analysis import KernelAnalysis, analyse
from gemmprof.analysis.reading.frame import unpacked_once
from gemmprof.analysis.reading.messages import clock_control, collected_by
from gemmprof.analysis.reading.report import ReportReader, code_digests, one_launch
from gemmprof.analysis.session import load_session, selected_reports, titled
from gemmprof.base.errors import GemmprofError, ReportError, RunError
from gemmprof.base.spread import each, grouped
from gemmprof.model import Instruction, KernelProfile, Problem, StageResult
from gemmprof.runs.directory import Run

# Severities of Nsight Compute's advice that count as findings.
RULES_THAT_FIND = frozenset({"optimization", "warning", "error"})

COUNT_REPORT = "count.ncu-rep"  # `gemmprof profile`'s report of its first run, in which it only counts


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison."""

    title: str  # what it is, for headings (untrusted text)
    kernels: tuple[recorded.KernelRecord, ...]  # in the order of their first launch
    failures: tuple[GemmprofError, ...] = ()  # why files could not be read
    stages: bool = False  # True where the kernels are stages of a run
    processes: int = 1  # how many reports or runs it is made of


@unpacked_once()
def load_side(
    # reports, runs, folders of them or patterns; several are repetitions of one another
    paths: Iterable[str | os.PathLike[str]],
    selection: Selection = EVERYTHING,
    *,
    each_launch: bool = False,  # make every launch a kernel of its own, paired by the order of launches of one family
    launch: int | None = None,  # of reports only the launch at this position; a run is read whole
) -> Side:
    """Read reports and runs as one side; UsageError if they are none or nothing matches, else the first failure."""
    found = expand(paths)
    # Beside the reports of `gemmprof profile` lies one that only counted all launches.
    named = [path for path in found if not path.name.startswith(COUNT_REPORT)] or found
    title = titled([path.name for path in named])
    if all(is_run(path) for path in named):
        return _of_runs(named, title, selection)
    if launch is not None:
        selection = Selection(launches=(range(launch, launch + 1),), within=selection)
    reports, failures = selected_reports(named, selection)
    failed = list(failures)
    parts: list[list[recorded.KernelRecord]] = []
    for kernels_of in each(_of_report, [(report, only, each_launch) for report, only in reports.items()]):
        try:
            parts.append(kernels_of())
        except ReportError as error:
            failed.append(error)
    if failed and not parts:
        raise failed[0]
    return Side(title, _merged(parts), tuple(failed), processes=len(parts))


def _of_report(path: Path, only: set[int] | None, each_launch: bool) -> list[recorded.KernelRecord]:
    groups: dict[tuple[str, ...], list[KernelProfile]] = {}
    seen: dict[tuple[str, ...], int] = {}
    with ReportReader(path) as reader:
        everything = list(reader.profiles(instances=False, rules=False))
        known = census(everything)
        for profile in everything:
            if only is not None and profile.index not in only:
                continue
            key: tuple[str, ...] = profile.family
            if each_launch:
                seen[key] = seen.get(key, -1) + 1  # counted from 0, as launches are everywhere
                key = (*key, f"repetition {seen[key]}")
            groups.setdefault(key, []).append(profile)
        middles = {key: middle_launch(launches) for key, launches in groups.items()}
        positions = {profile.index for profile in middles.values()}
        try:
            digests = reader.code_digests(middles.values())
        except ReportError:
            digests = {}  # code that cannot be read costs the reason of a change, not the comparison
        whole = {profile.index: profile for profile in reader.profiles(only=positions)}
    found = []
    for key, launches in groups.items():
        middle = middles[key]
        analysis = analyse(whole[middle.index])
        digest = digests.get(middle.index, "")
        identity = known.of[middle.report, middle.index]
        apart = [*identity.apart]
        if each_launch and seen[key[:-1]] > 0:
            apart.append(f"({key[-1]})")
        record = of_launches(identity.label, key, launches, analysis, digest)
        found.append(replace(record, nvtx=middle.nvtx, family=identity.number, apart=" ".join(apart)))
    return found


def of_launches(
    label: str, key: tuple[str, ...], launches: Sequence[KernelProfile], middle: KernelAnalysis, digest: str
) -> recorded.KernelRecord:
    """The launches of one kernel in one process, with the quantities of one of them, whose code has this digest."""
    profile, session = middle.profile, middle.profile.session
    return recorded.KernelRecord(
        name=profile.name,
        label=label,
        grid=profile.launch.grid,
        block=profile.launch.block,
        key=key,
        launches=len(launches),
        times=(recorded.times_of(launches),),
        origin=recorded.Origin(
            profile.device.name, clock_control(session), collected_by(session), dict(session.versions)
        ),
        limit=limit_of(profile.number(m.SM_THROUGHPUT), profile.number(m.MEMORY_THROUGHPUT)),
        code=recorded.Code(digest) if digest else None,
        metrics=recorded.ranges_of(launches),
        measures=measures(middle),
        rules=tuple(dict.fromkeys(rule.rule for rule in profile.rules)),
        findings=tuple(
            dict.fromkeys(rule.rule for rule in profile.rules if rule.severity in RULES_THAT_FIND)
        ),
        place=(profile.report, profile.index),
    )


def middle_launch(launches: Sequence[KernelProfile]) -> KernelProfile:
    """The launch with the median time; the first where there is no time."""
    timed = [launch for launch in launches if launch.number(m.DURATION) is not None]
    ordered = sorted(timed, key=lambda launch: launch.number(m.DURATION) or 0.0)
    return ordered[(len(ordered) - 1) // 2] if ordered else launches[0]


def _merged(parts: Sequence[Sequence[recorded.KernelRecord]]) -> tuple[recorded.KernelRecord, ...]:
    """The kernels of several processes, those of one key as repetitions: code and quantities are of the first."""
    found = grouped((record.key, record) for part in parts for record in part)
    for key, records in found.items():
        if len(records) > 1:
            ranges = grouped(item for record in records for item in record.metrics.items())
            of_all = replace(
                records[0],
                launches=sum(record.launches for record in records),
                times=tuple(times for record in records for times in record.times),
                metrics={name: recorded.Range.over(several) for name, several in ranges.items()},
            )
            found[key] = [of_all]
    return tuple(record for (record,) in found.values())


def _of_runs(paths: Sequence[Path], title: str, selection: Selection) -> Side:
    parts: list[list[recorded.KernelRecord]] = []
    failures: list[GemmprofError] = []
    for path in paths:
        session = load_session([path], selection=selection)
        failures += session.failures
        run = session.run
        if run is None:
            raise RunError(f"{path} holds no run")
        launches = [(result, session.kernel_for(result)) for result in run.results if result.failure is None]
        digests = code_digests(analysis.profile for _, analysis in launches if analysis is not None)
        parts.append([_of_stage(run, result, analysis, digests) for result, analysis in launches])
    return Side(title, _merged(parts), tuple(failures), stages=True, processes=len(parts))


def _of_stage(
    run: Run, result: StageResult, analysis: KernelAnalysis | None, digests: Mapping[tuple[str, int], str]
) -> recorded.KernelRecord:
    stage = run.record_of(result).stage
    label = f"{stage.number} {stage.title}, {result.problem.label}"
    key = ("stage", str(stage.number), result.problem.key)
    versions = dict(run.info.versions)
    if analysis is None:
        origin = recorded.Origin(run.info.device, versions=versions)
        times = (recorded.Times(),) if result.timing is not None else ()
        record = recorded.KernelRecord(label, label, (), (), key, 0, times, origin)
    else:
        profile = analysis.profile
        digest = digests.get((profile.report, profile.index), "")
        record = of_launches(label, key, [profile], analysis, digest)
        versions |= profile.session.versions
        record = replace(record, origin=replace(record.origin, versions=versions))
    if (timed := result.timing) is None:
        return record
    percentiles = (timed.median, timed.p10, timed.p90)
    own = replace(record.times[0], timed=percentiles, repetitions=timed.repetitions)
    return replace(record, times=(own,), measures=replace(record.measures, seconds=timed.median))


def problem_of(record: recorded.KernelRecord) -> str:
    """The problem of a stage of a run, '' for other kernels."""
    return record.key[2] if record.key[0] == "stage" else ""


def disassembled(record: recorded.KernelRecord) -> recorded.KernelRecord:
    """The record with its opcodes, where its report can be disassembled; else as it is."""
    if record.code is None or record.code.instructions:
        return record
    sass = [instruction.sass for instruction in _instructions(record.place)]
    return replace(record, code=recorded.code_of(record.code.digest, sass)) if sass else record


def source_place(record: recorded.KernelRecord) -> tuple[str, int] | None:
    """File and first line of a kernel: of the file that most of its instructions are from (``-lineinfo``)."""
    code = _instructions(record.place)
    lines = grouped((one.file, one.line) for one in code if one.file and one.line)
    if not lines:
        return None
    file = max(lines, key=lambda name: len(lines[name]))
    return file, min(lines[file])


@lru_cache(maxsize=64)
def _instructions(place: tuple[str, int] | None) -> tuple[Instruction, ...]:
    """The code of a launch; () where there is no report or it cannot be read."""
    if place is None:
        return ()
    profile = one_launch(*place, source=True, instances=False, rules=False)
    return () if profile is None else profile.source.instructions


# --- Which kernels of two sides belong together -----------------------------------------------------------------------

How = Literal["name", "launch", "renamed", "only", "chosen", "ladder"]
ALIKE = 0.75  # kernels of other names whose code is alike by at least this are taken for one that was renamed
# The same where grid or block differ, too: kernels of one library are alike (element-wise ones of torch by 0.8).
ALIKE_ELSEWHERE = 0.9
MOST_PAIRS = 2500  # codes are not held against each other beyond this: it takes a disassembly a kernel


@dataclass(frozen=True, slots=True)
class Match:
    """Two kernels that belong together, or one that has no counterpart."""

    before: KernelRecord | None  # before, after: None where there is none
    after: KernelRecord | None
    # by name; of one name launched otherwise; renamed (by code); the only ones; chosen by the user; rungs of a ladder
    how: How = "name"
    likeness: float = 1.0  # of the code of a renamed kernel, 0 to 1

    @property
    def both(self) -> tuple[KernelRecord, KernelRecord] | None:
        """The two of it; None where one has no counterpart."""
        return None if self.before is None or self.after is None else (self.before, self.after)

    @property
    def title(self) -> str:
        """Name for people, with what tells it from others of that name (untrusted text)."""
        return " → ".join(dict.fromkeys(record.title for record in (self.before, self.after) if record))

    @property
    def label(self) -> str:
        """The one spelling of the name; of a renamed kernel both."""
        return " → ".join(dict.fromkeys(record.label for record in (self.before, self.after) if record))

    @property
    def ids(self) -> str:
        """``#3``, its family's id, ``#1→#3`` where the later report has another; '' where it has none."""
        numbers = (record.family for record in (self.before, self.after) if record)
        return "→".join(dict.fromkeys(f"#{number}" for number in numbers if number is not None))

    @property
    def family(self) -> int | None:
        """Number of its family in the later report, in the earlier one if it is gone; None where it has none."""
        present = self.after or self.before
        return None if present is None else present.family


def match(before: Side, after: Side) -> tuple[Match, ...]:
    """The kernels of two sides in pairs; what has no counterpart stands alone, at the end.

    First those of one key; of the rest those of one full name, the more of the launch is alike the sooner (another
    grid or block is the usual change when a kernel is tuned); then those that were renamed.
    """
    if len(before.kernels) == len(after.kernels) == 1:
        left, right = before.kernels[0], after.kernels[0]
        how: How = "name" if left.key == right.key else "launch" if left.name == right.name else "only"
        return (Match(left, right, how),)
    right_by_key = {record.key: record for record in after.kernels}
    found: list[Match] = []
    gone: list[KernelRecord] = []
    for record in before.kernels:
        other = right_by_key.pop(record.key, None)
        if other is None:
            gone.append(record)
        else:
            found.append(Match(record, other))
    new = list(right_by_key.values())
    for rule in (_launched_otherwise, _renamed):
        pairs = list(rule(gone, new))
        found += pairs
        # No key is on both sides any more.
        taken = {record.key for pair in pairs for record in (pair.before, pair.after) if record}
        gone, new = ([record for record in left if record.key not in taken] for left in (gone, new))
    found += [Match(record, None) for record in gone]
    found += [Match(None, record) for record in new]
    return tuple(found)


def _launched_otherwise(gone: Sequence[KernelRecord], new: Sequence[KernelRecord]) -> Iterable[Match]:
    """Pairs of one full name with another grid, block, shared memory or NVTX path, those most alike first."""
    of_name = grouped((record.name, record) for record in new if _is_family(record))
    scored = []
    for place, left in enumerate(gone):
        for position, right in enumerate(of_name.get(left.name, ()) if _is_family(left) else ()):
            # The range and then the number of launches say more than sizes do.
            in_common = (
                left.nvtx == right.nvtx,
                left.launches == right.launches,
                (left.grid == right.grid) + (left.block == right.block),
                left.code is not None and right.code is not None and left.code.digest == right.code.digest,
            )
            scored.append((in_common, -abs(place - position), left, right))
    return (Match(left, right, "launch") for left, right, _ in _best(scored))


def _is_family(record: KernelRecord) -> bool:
    """Stages of runs and kernels of builds have keys of their own, which say all there is to say."""
    return record.key[0] not in ("stage", "build")


def _renamed(gone: Sequence[KernelRecord], new: Sequence[KernelRecord]) -> Iterable[Match]:
    """Pairs of kernels with other names and like code, or of one template with other numbers; most alike first."""
    if len(gone) * len(new) > MOST_PAIRS:
        return
    left_codes, right_codes = ([disassembled(record).code for record in side] for side in (gone, new))
    scored = []
    for left, code in zip(gone, left_codes, strict=True):
        for position, (right, other) in enumerate(zip(new, right_codes, strict=True)):
            alike = likeness(code, other)
            if _may_be_renamed(left, right, alike):
                score = (alike, left.grid == right.grid, left.block == right.block, left.nvtx == right.nvtx)
                scored.append((score, -position, left, right))
    for left, right, (alike, *_) in _best(scored):
        yield Match(left, right, "renamed", alike)


def _may_be_renamed(left: KernelRecord, right: KernelRecord, alike: float) -> bool:
    if left.key[0] != right.key[0] and not (_is_family(left) and _is_family(right)):
        return False
    if left.key[0] == "build":
        return alike >= ALIKE and left.key[2] == right.key[2]  # of one architecture
    if left.key[0] == "stage" or not (left.grid and right.grid):
        return False  # stages of runs have names of their own
    same_launch = left.grid == right.grid and left.block == right.block
    if alike >= (ALIKE if same_launch else ALIKE_ELSEWHERE):
        return True
    # ``tile<128, 8>(float *)`` is one with ``tile<64, 8>``; other types or functors make another kernel.
    return _NUMBER.sub("#", left.name) == _NUMBER.sub("#", right.name)


def _best(
    scored: Sequence[tuple[tuple[float, ...], int, KernelRecord, KernelRecord]],
) -> Iterable[tuple[KernelRecord, KernelRecord, tuple[float, ...]]]:
    """Pairs with the highest scores, each record once, and their scores."""
    taken: set[tuple[str, ...]] = set()
    for score, _, left, right in sorted(scored, key=lambda item: item[:2], reverse=True):
        if left.key not in taken and right.key not in taken:
            taken |= {left.key, right.key}
            yield left, right, score


def rungs(side: Side) -> tuple[Match, ...]:
    """Each kernel of a ladder with the one before it; () if the side is no ladder.

    A run of stages is a ladder, and so is a report of single launches whose function names begin alike
    (``gemm_naive``, ``gemm_shared``).
    """
    found = (_FUNCTION.search(record.name) for record in side.kernels)
    functions = ["" if one is None else one[1].lstrip("_") for one in found]
    # Triton's and C's names often begin with an underscore, which says nothing of what they have in common.
    named_alike = all("_" in n for n in functions) and len({n.partition("_")[0] for n in functions}) == 1
    single = len(side.kernels) > 1 and all(record.launches == 1 for record in side.kernels)
    if not side.stages and not (single and named_alike):
        return ()
    groups = grouped((problem_of(record), record) for record in side.kernels)
    return tuple(Match(one, other, "ladder") for group in groups.values() for one, other in pairwise(group))


_NUMBER = re.compile(r"\b(?:\d+|true|false)\b")
_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*(?:<[^()]*>)?\s*\(")


def chosen(side: Side, selector: str) -> KernelRecord:
    """The one kernel that a selector names, as `one_kernel` reads it (a number is a launch); UsageError otherwise."""
    choices = []
    for record in side.kernels:
        number = int(record.key[1]) if record.key[0] == "stage" else None
        problem = Problem.parse(problem_of(record)) if number is not None else None
        positions = tuple(position for times in record.times for position in times.positions)
        found = Choice(record.title, record.name, positions, number, problem=problem, family=record.family)
        choices.append(found)
    return side.kernels[one_kernel(selector, choices, side.title)]
