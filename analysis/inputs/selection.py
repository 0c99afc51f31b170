"""Which launches a user means: by kernel name, position in the report, NVTX range, or the most time.

A selection is decided on the launches alone, without instance values and before anything is analysed, so that one
launch of a report of ten thousand costs little more than itself.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemmprof import metrics as m
from gemmprof.analysis.inputs.names import labels, owner_of
from gemmprof.base.amounts import counted
from gemmprof.base.buckets import below
from gemmprof.base.errors import ReportError, UsageError
from gemmprof.base.foreign_files import url_of
from gemmprof.base.regex import Regex, RegexError, regex
from gemmprof.model import KernelProfile, Problem, StageResult
from gemmprof.runs.directory import COMPRESSIONS, NVTX_PREFIX, RUN_FILE, Run, nvtx_range

# Ids of families as every door prints them: ``#3``, or several: ``#3,#7``.
_FAMILIES = re.compile(r"#\d{1,9}(\s*,\s*#\d{1,9})*")
_LAUNCHES = re.compile(r"^(?P<first>\d+)?(?P<dash>-)?(?P<last>\d+)?$")


@dataclass(frozen=True, slots=True)
class Selection:
    """What to look at; the parts that are given must all hold."""

    kernel: Regex | None = None  # searched in the full demangled name, and in a stage's name and title
    # positions in the report, counted from 0 (``range`` objects; an open end is a very large one)
    launches: tuple[range, ...] = ()
    nvtx: Regex | None = None  # searched in the launch's NVTX ranges, joined by ``/``, outermost first
    top: int | None = None  # keep the launches of the so many kernels (full names) that took most time
    owner: Regex | None = None  # searched in the word and title of whose code it is (`analysis.inputs.names`)
    families: tuple[int, ...] = ()  # numbers of families (`analysis.families`): ``#3`` is 3
    within: Selection | None = None  # the selection that this is a part of: its ``top`` is decided first

    def __bool__(self) -> bool:
        """False where everything is selected."""
        return any((self.kernel, self.launches, self.nvtx, self.top, self.owner, self.families, self.within))

    def matches(self, launch: Candidate) -> bool:
        """Whether a launch is meant, but for ``top``, which needs the others too, and for ``within``."""
        return (
            (not self.families or launch.family in self.families)
            and (not self.launches or any(launch.index in wanted for wanted in self.launches))
            and (self.kernel is None or self.kernel.search(launch.name) or self.kernel.search(launch.stage))
            and (self.nvtx is None or self.nvtx.search("/".join(launch.nvtx)))
            and (self.owner is None or self.owner.search(launch.owner))
        )

    def __str__(self) -> str:
        """The options that say the same."""
        given = (
            ("kernel", self.kernel and f"'{self.kernel.pattern}'"),
            ("kernel", self.families and f"'{','.join(f'#{number}' for number in self.families)}'"),
            ("launch", ",".join(map(_span, self.launches))),
            ("nvtx", self.nvtx and f"'{self.nvtx.pattern}'"),
            ("owner", self.owner and f"'{self.owner.pattern}'"),
            ("top", self.top),
        )
        parts = [f"--{option} {value}" for option, value in given if value]
        return " ".join([str(self.within), *parts] if self.within else parts)


EVERYTHING = Selection()
_END = 1 << 62


def _span(positions: range) -> str:
    if len(positions) == 1:
        return str(positions.start)
    return f"{positions.start}-" if positions.stop == _END else f"{positions.start}-{positions.stop - 1}"


def selection(
    kernel: str | None = None,  # a regular expression, in any case. ``#3`` is the family of that id
    # ``3``, ``2-5``, ``0,4,7-9`` or ``10-``, or several such texts; positions as numbers do, too
    launches: int | str | Iterable[int | str] | None = None,
    nvtx: str | None = None,  # a regular expression; case makes no difference
    top: int | None = None,  # 1 or more
    owner: str | None = None,  # a regular expression, in any case, searched in ``triton own Triton``
) -> Selection:
    """A selection from texts as a user writes them; UsageError if a text is not what it should be."""
    texts = _texts(launches)
    if top is not None and (not isinstance(top, int) or isinstance(top, bool)):
        raise UsageError(f"top is a number of kernels, not {top!r}", "give 1 or more")
    if top is not None and top < 1:
        raise UsageError(f"--top {top} selects nothing", "give 1 or more")
    of_families = is_family_id(kernel) if isinstance(kernel, str) else False
    return Selection(
        kernel=None if of_families else expression("--kernel", kernel),
        launches=tuple(_positions(part) for text in texts for part in text.split(",")),
        nvtx=expression("--nvtx", nvtx),
        top=top,
        owner=expression("--owner", owner),
        families=family_numbers(kernel) if of_families and kernel else (),
    )


def is_family_id(text: str) -> bool:
    """Whether a word is the id of a family, or several: ``#3``, ``#3,#7``."""
    return _FAMILIES.fullmatch(text.strip()) is not None


def family_numbers(text: str) -> tuple[int, ...]:
    """3 and 7 of ``#3,#7``."""
    return tuple(dict.fromkeys(int(one.strip().removeprefix("#")) for one in text.split(",")))


def _texts(launches: int | str | Iterable[int | str] | None) -> list[str]:
    """Positions as texts. 0 is a position: what is False must not stand for all launches."""
    if launches is None:
        return []
    given = [launches] if isinstance(launches, (int, str)) else launches
    try:
        found = [str(one) for one in given]
    except TypeError:
        found = []
    if not found:
        raise UsageError(f"{launches!r} names no launch", "count from 0: 3, range(4), '2-5', [0, 4]")
    return found


def expression(option: str, text: str | None) -> Regex | None:
    """A regular expression for names, whatever the case; None without one; UsageError, naming the option, if none."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise UsageError(f"{option} is a regular expression, not {text!r}", "give a text")
    try:
        return regex(text)
    except RegexError as error:
        fix = f"to look for just this text, write {option} '{re.escape(text)}'"
        raise UsageError(f"{option} '{text}' is no regular expression", fix, found=str(error)) from None


def _positions(text: str) -> range:
    found = _LAUNCHES.match(text.strip())
    if found is None or found["first"] is None or len(text) > 20:
        fix = "count from 0: --launch 3, --launch 2-5, --launch 0,4,7-9, --launch 10- for all from there"
        raise UsageError(f"--launch '{text}' is no position of a launch", fix)
    first = int(found["first"])
    last = int(found["last"]) if found["last"] else (_END - 1 if found["dash"] else first)
    if last < first:
        raise UsageError(f"--launch '{text}' ends before it begins", f"write {last}-{first}")
    return range(first, last + 1)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is known of a launch before it is read in full: enough to select it."""

    report: str
    index: int
    name: str
    nvtx: tuple[str, ...] = ()
    duration_ns: float = 0.0
    stage: str = ""
    family: int = 0
    owner: str = ""

    @classmethod
    def of(cls, profile: KernelProfile, stage: str = "", family: int = 0) -> Candidate:
        """The launch as a candidate; a duration that was not collected counts as none."""
        duration = profile.number(m.DURATION) or 0.0
        code = str(owner_of(profile))
        return cls(profile.report, profile.index, profile.name, profile.nvtx, duration, stage, family, code)


def selected(candidates: Sequence[Candidate], wanted: Selection) -> list[Candidate]:
    """Those that a selection means, ``top`` and ``within`` heeded."""
    if wanted.within is not None:
        candidates = selected(candidates, wanted.within)
    meant = [candidate for candidate in candidates if wanted.matches(candidate)]
    total: dict[str, float] = {}
    for candidate in meant:
        total[candidate.name] = total.get(candidate.name, 0.0) + candidate.duration_ns
    kept = set(sorted(total, key=lambda name: total[name], reverse=True)[: wanted.top])
    return [candidate for candidate in meant if candidate.name in kept]


def nothing_selected(wanted: Selection, names: Mapping[str, int]) -> UsageError:
    """What to say where a selection leaves nothing of these names, with the number of launches of each."""
    ranked = list(labels(sorted(names, key=lambda name: -names[name])).values())
    return UsageError(
        f"no launch matches {wanted}",
        "`gemmprof show` lists what the input holds, with the id of each family (#3)",
        *(["launches are counted from 0 in each report"] if wanted.launches else []),
        found=f"{counted(sum(names.values()), 'launch')} of {counted(len(names), 'kernel')}: {some(ranked)}"
        if names
        else "no launches",
    )


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Key that sorts names as people do: ``stage 2`` before ``stage 10``."""
    return tuple((0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part.lower())
                 for part in re.split(r"(\d+)", text) if part)  # fmt: skip


def some(names: Iterable[str], limit: int = 8) -> str:
    """A list for a sentence, which says how many it leaves out."""
    found = list(dict.fromkeys(names))
    more = len(found) - limit
    return "; ".join(found[:limit]) + (f"; and {more:,} more" if more > 0 else "")


KINDS = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")  # of names of reports; the last before 2020.2
SUFFIXES = tuple(kind + packed for kind in KINDS for packed in ("", *COMPRESSIONS))


def is_run(path: Path) -> bool:
    """Whether this is a run directory or its ``run.json``."""
    return path.name == RUN_FILE or (path / RUN_FILE).is_file()


def is_report_name(name: str) -> bool:
    """Whether a file of this name is taken for a report in a folder."""
    return name.endswith(SUFFIXES)


def expand(inputs: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The reports and run directories that these words name, each once, in the order given.

    A folder stands for the reports and run directories right inside it, sorted as people sort (``run2`` before
    ``run10``); a name with ``*``, ``?`` or ``[`` that no file has is a pattern (``**`` looks into folders). ReportError
    if one yields nothing; a named file is passed on whether it exists or not.
    """
    found: dict[Path, None] = {}
    for item in inputs:
        path = Path(item)
        if url := url_of(path):
            objects = below(url, deep=False)  # the object itself, or the reports right inside a folder
            kept = sorted(objects if list(objects) == [url] else filter(is_report_name, objects), key=natural)
            if not kept:
                fixes = "check the name", "`gemmprof find` looks at all depths"
                raise ReportError(f"there is no report {url}, and none right inside it", *fixes)
            found.update((Path(name), None) for name in kept)
        elif path.is_dir() and not is_run(path):
            found.update(dict.fromkeys(_inside(path)))
        elif not path.exists() and glob.has_magic(str(item)):
            found.update(dict.fromkeys(_matching(str(item))))
        else:
            found[path] = None
    return list(found)


def _inside(folder: Path) -> list[Path]:
    children = sorted(folder.iterdir(), key=lambda child: natural(child.name))
    kept = [
        child
        for child in children
        if (child.is_file() and is_report_name(child.name)) or (child.is_dir() and is_run(child))
    ]
    if kept:
        return kept
    raise ReportError(
        f"{folder} holds no report and no run",
        f"reports end in {SUFFIXES[0]}; for those in folders further down: '{folder}/**/*{SUFFIXES[0]}'",
        "a run directory, which `gemmprof collect` writes, holds a run.json",
        found=some(child.name for child in children) or "an empty folder",
    )


def _matching(pattern: str) -> list[Path]:
    anchor = Path(pattern).anchor
    found = sorted(Path(anchor or ".").glob(pattern.removeprefix(anchor)), key=lambda one: natural(str(one)))
    kept = [path for path in found if path.is_file() or is_run(path)]
    if kept:
        # What lies beside reports (exports, logs) is meant only where nothing else matches.
        return [path for path in kept if is_run(path) or is_report_name(path.name)] or kept
    raise ReportError(f"no file matches {pattern}", "check the pattern with: ls " + pattern)


# --- One kernel -------------------------------------------------------------------------------------------------------
# Which one kernel a user means: every option that takes one (``--before``, ``--after``, ``--baseline``) reads it here.
#
# ``5``, ``warptile``, ``half:3``, ``5@2048``, ``5@2048-bfloat16`` name a stage of a run: by number or name, of a ladder
# where two have it, on a shape. In a report without stages a number is the position of a launch, counted from 0 as in
# ``--launch``; ``#3`` is the family of that id. Anything else is a part of one kernel's name.


@dataclass(frozen=True, slots=True)
class Choice:
    """A kernel that may be meant."""

    label: str  # its name for people
    name: str = ""  # its full name
    positions: tuple[int, ...] = ()  # of its launches in the report
    number: int | None = None  # number, stage, ladder, problem: what it is in a run, as far as that is known
    stage: str = ""
    ladder: str = ""
    problem: Problem | None = None
    family: int | None = None  # number of the family that it is a launch of (``#3`` is 3)


def one_kernel(selector: str, candidates: Sequence[Choice], where: str) -> int:
    """Position of the one candidate that is named, of a stage on its first shape; UsageError for none or several."""
    found = _meant(selector, candidates)
    if found and is_family_id(selector):
        return found[0]
    kernels = {at if (c := candidates[at]).number is None else (c.ladder, c.number) for at in found}
    if len(kernels) == 1:
        return found[0]
    labels = sorted((candidates[at].label for at in (found or range(len(candidates)))), key=natural)
    raise UsageError(
        f"'{selector}' matches {'several kernels' if found else 'nothing'} in {where}",
        "give a stage's number or name (5, or 5@2048, or half:5)"
        if any(candidate.number is not None for candidate in candidates)
        else "give a launch's position, counted from 0",
        "or more of one kernel's name",
        found=some(labels, limit=12) or "no kernels",
    )


def position_in(selector: str | None) -> int | None:
    """The number that a selector is, None if it is none."""
    return int(selector) if selector and re.fullmatch(r"[0-9]{1,9}", selector) else None


def _meant(selector: str, candidates: Sequence[Choice]) -> list[int]:
    if is_family_id(selector):
        (*_, family) = family_numbers(selector)
        return [place for place, candidate in enumerate(candidates) if candidate.family == family]
    text, at, shape = selector.partition("@")
    ladder, _, text = text.rpartition(":")
    number = position_in(text)
    in_a_run = any(candidate.number is not None for candidate in candidates)
    of_stage = [
        (place, candidate.problem)
        for place, candidate in enumerate(candidates)
        if candidate.number is not None
        and ladder in ("", candidate.ladder)
        and (candidate.number == number or (text and candidate.stage == text))
    ]
    if of_stage:
        if not at:
            return [of_stage[0][0]]
        wanted = Problem.parse(shape)
        exact = [place for place, problem in of_stage if problem == wanted]
        # Without a type, the shape alone may tell: in a run of the 16-bit ladder 2048 means its 2048³.
        return exact or [place for place, problem in of_stage if problem and wanted.is_shape_of(problem)]
    if number is not None:
        at_position = (n for n, candidate in enumerate(candidates) if number in candidate.positions)
        return [] if in_a_run else [*at_position]
    wanted_name = selector.lower()
    texts = ((candidate.label.lower(), candidate.name.lower()) for candidate in candidates)
    return [at for at, (label, name) in enumerate(texts) if wanted_name in label or wanted_name in name]


def stage_launch(run: Run, result: StageResult, launches: Sequence[KernelProfile]) -> KernelProfile | None:
    """The launch of one stage on one problem among the launches of the report that its result names.

    Without an index in the run, the NVTX range tells; the longest launch where a library split the work into several.
    The launches may be a selection: one launch alone is the stage's only if it is in no other stage's range.
    """
    if result.launch_index is not None:
        return next((launch for launch in launches if launch.index == result.launch_index), None)
    in_ranges = any(name.startswith(NVTX_PREFIX) for launch in launches for name in launch.nvtx)
    if len(launches) > 1 or in_ranges:
        name = nvtx_range(run.record_of(result).stage.name, result.problem)
        launches = [launch for launch in launches if name in launch.nvtx]
    return max(launches, key=lambda launch: launch.number(m.DURATION) or 0.0, default=None)
