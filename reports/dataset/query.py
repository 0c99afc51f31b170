"""Asks a data set, part by part: which launches meet a condition."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from gemmprof.analysis.inputs import conditions
from gemmprof.base.documents import Document, Part
from gemmprof.base.errors import UsageError
from gemmprof.base.foreign_files import RefusedFileError, shown
from gemmprof.base.regex import regex
from gemmprof.reports.dataset.manifest import DatasetError, load_contents
from gemmprof.reports.dataset.rows import FIGURE, FINDING, column_type, metric_column_type, metrics_of
from gemmprof.reports.tables.parquet import ParquetReader

_COMPARE = {
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    "==": pc.equal,
    "!=": pc.not_equal,
}
MEANT_PARTS = 16  # so many are asked for the names of their metrics where a name is none
DURATION = f"{FIGURE}duration"
IDENTITY = ("report", "launch", "family", "label", "kernel", "nvtx", "device", "owner")


class FoundLaunch(Part, frozen=True):
    """A launch that meets the condition."""

    report: str  # path of its report
    launch: int  # position in it, from 0
    family: str  # id of its family in its report (`#3`)
    label: str  # the name as every door spells it
    name: str  # demangled name of the kernel; untrusted text
    nvtx: str  # NVTX ranges around it, joined by /
    device: str  # name of the GPU
    owner: str  # whose code the kernel is: `own`, `cublas` …
    duration_ns: float | None  # under the profiler
    values: Mapping[str, float | None]  # figures, findings and metrics that the condition names


class FindDocument(Document, frozen=True, tag="gemmprof.find/1"):
    """``gemmprof find``."""

    condition: str  # as it was asked
    matches: int  # launches that meet it
    launches: int  # launches that were looked at
    found: tuple[FoundLaunch, ...]  # the longest of them, at most --limit


def search(
    folder: Path, condition: conditions.Condition, *, asked: str = "", limit: int | None = None
) -> FindDocument:
    """The launches of a data set that meet a condition, whose text was ``asked``; one that lacks a figure does not meet
    a condition on it. UsageError if the data set knows none of that name, DatasetError if it cannot be read.
    """
    for last in (False, True):
        try:
            return _search(folder, condition, asked, limit)
        except (pa.ArrowException, OSError) as error:
            # A part may have been read anew, and deleted, since its manifest was read: then once more.
            if last or not isinstance(error, FileNotFoundError):
                what = f"{shown(folder)} cannot be read"
                remedy = "delete the data set; it is made anew from the reports"
                raise DatasetError(what, remedy, found=str(error)[:300]) from None
    raise AssertionError("the loop returns or raises")


def _search(folder: Path, condition: conditions.Condition, asked: str, limit: int | None) -> FindDocument:
    contents = load_contents(folder)
    live: dict[str, dict[str, int]] = {}
    for path, entry in contents.reports.items():
        if entry.part:
            live.setdefault(entry.part, {})[path] = entry.launches
    if not live:
        return FindDocument(asked, 0, 0, ())
    names = _columns(folder, tuple(live), conditions.names_in(condition))
    texts = [part.name for part in conditions.parts_of(condition) if isinstance(part, conditions.Match)]
    wanted = list(dict.fromkeys([*IDENTITY, *texts, DURATION, *names.values()]))

    def met(part: str) -> tuple[int, pa.Table]:
        launches = _part(folder, part, live[part], wanted)
        found = launches.filter(_meeting(condition, launches, names))
        return len(found), _longest(found, limit)

    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as readers:
        matches, tables = zip(*readers.map(met, live), strict=True)
    kept = _longest(pa.concat_tables(tables, promote_options="permissive"), limit)
    if nameless := [name for name in IDENTITY if kept[name].null_count]:
        raise RefusedFileError(folder, f"is damaged: a launch without its {nameless[0]}")
    answer = tuple(
        FoundLaunch(
            name=row["kernel"],
            owner=row["owner"].partition(" ")[0],  # ``triton own Triton``: word and title
            family=f"#{row['family']}",
            duration_ns=row[DURATION],
            values={name: row[column] for name, column in names.items()},
            **{name: row[name] for name in ("report", "launch", "label", "nvtx", "device")},
        )
        for row in kept.to_pylist()
    )
    return FindDocument(asked, sum(matches), contents.launches, answer)


def _longest(met: pa.Table, limit: int | None) -> pa.Table:
    """The longest launches, so many."""
    # What is no number (NaN, which is larger than all where tables are sorted) is absent.
    parts = zip(met.column_names, met.columns, strict=True)
    found = pa.table({name: _number(one) if pa.types.is_floating(one.type) else one for name, one in parts})
    order = [(DURATION, "descending"), ("report", "ascending"), ("launch", "ascending")]
    return found.take(pc.sort_indices(found, order)[:limit])


def _number(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of numbers, absent where it is NaN."""
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)


def _meeting(
    condition: conditions.Condition, launches: pa.Table, places: Mapping[str, str]
) -> pa.ChunkedArray:
    """Which launches, with all that it looks at, meet a condition: true, false, or null where a figure is absent, as in
    SQL; ``places``: the column of each figure or metric by its name.
    """

    def of_part(part: conditions.Part) -> pa.ChunkedArray:
        if isinstance(part, conditions.Match):
            wanted = regex(part.pattern)
            coded = launches[part.name].combine_chunks().dictionary_encode()  # each text is looked at once
            found = [text is not None and wanted.search(text) for text in coded.dictionary.to_pylist()]
            met = pa.array(found, pa.bool_()).take(coded.indices)
            return met if part.wanted else pc.invert(met)
        values = _number(launches[places[part.name]].cast("float64"))
        if isinstance(part, conditions.HasFinding):
            return pc.greater(values, 0.0)
        return _COMPARE[part.operator](values, part.value)

    return conditions.evaluated(condition, of_part, pc.invert, pc.and_kleene, pc.or_kleene)


def _columns(folder: Path, parts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The column of each name: nearly always the first part tells, and no other is opened twice."""
    known: set[str] = set()
    for part in parts:
        with ParquetReader(folder / "parts" / part, column_type) as file:
            known.update(c for c in file.schema.names if c == "launch" or c.startswith((FIGURE, FINDING)))
        if all(known.intersection(_candidates(name)) for name in names):
            break
    else:
        others = [name for name in names if not known.intersection(_candidates(name))]
        known.update(name for name in others if any(_metrics_in(folder, part, name) for part in parts))
        if not known.issuperset(others):  # only then, for the closest names, are all looked at
            known.update(*(_metrics_in(folder, part) for part in parts[:MEANT_PARTS]))
    return {name: column(name, known) for name in names}


def _metrics_in(folder: Path, part: str, *names: str) -> list[str]:
    """The metrics of a part, of these alone where some are named."""
    with ParquetReader(metrics_of(folder / "parts" / part), metric_column_type) as file:
        found = file.read(["metric"], among=("metric", names) if names else None)
    return [str(name) for name in pc.unique(found["metric"]).to_pylist()]


def _candidates(name: str) -> tuple[str, str, str]:
    return (f"{FIGURE}{conditions.canonical(name)}", f"{FINDING}{name}", name)


def _part(folder: Path, name: str, reports: dict[str, int], wanted: Sequence[str]) -> pa.Table:
    """The wanted columns of a part, without the rows of reports that were read again since or are gone."""
    with ParquetReader(folder / "parts" / name, column_type) as file:
        stale = file.metadata.num_rows != sum(reports.values())
        there = [c for c in dict.fromkeys([*wanted, *["report"] * stale]) if c in file.schema.names]
        table = file.read(there)
    absent = [c for c in wanted if c not in there]
    metrics = [c for c in absent if not c.startswith((FIGURE, FINDING))]
    values = _metrics(metrics_of(folder / "parts" / name), metrics, len(table)) if metrics else {}
    for missing in absent:
        table = table.append_column(missing, values.get(missing, pa.nulls(len(table), pa.float64())))
    if stale:
        table = table.filter(pc.is_in(table["report"], pa.array(list(reports))))
    return table.select(wanted)


def column(name: str, known: set[str]) -> str:
    """The column of a name; UsageError if there is none, with the closest names."""
    for candidate in _candidates(name):
        if candidate in known:
            return candidate
    if conditions.unit_of(name) is not None:
        findings = "findings need a data set made without --no-findings"
        raise UsageError(
            f"no report here holds what '{name}' needs", "collect more: ncu --set full", findings
        )
    from difflib import get_close_matches

    from gemmprof.analysis.inputs.named_figures import UNITS
    from gemmprof.analysis.inputs.selection import some

    words = {*(c.partition(":")[2] or c for c in known), *conditions.ALIASES, *conditions.TITLES}
    close = get_close_matches(name, words, n=5, cutoff=0.5)
    raise UsageError(
        f"'{name}' is no figure, finding or metric of these reports",
        *(f"did you mean {word}?" for word in close[:1]),
        "`gemmprof find --names` lists the figures and findings; metrics have ncu's names",
        found=some(close or sorted(UNITS)),
    )


def _metrics(path: Path, names: Sequence[str], rows: int) -> dict[str, pa.ChunkedArray]:
    """These metrics of all launches of a part, null where one lacks it."""
    with ParquetReader(path, metric_column_type) as file:
        found = file.read(["metric", "row", "value"], among=("metric", names))
    if any(column.null_count for column in found.columns):
        raise file.refused("is no table of metrics: something is missing in some rows")
    bounds = pc.min_max(found["row"]).as_py()
    if len(found) and not 0 <= bounds["min"] <= bounds["max"] < rows:
        raise file.refused("holds metrics of launches that there are not")
    columns, all_rows = {}, pa.array(range(rows), pa.int32())
    for name in names:
        mine = found.filter(pc.equal(found["metric"], name)).combine_chunks()
        columns[name] = mine["value"].take(pc.index_in(all_rows, value_set=mine["row"].combine_chunks()))
    return columns
