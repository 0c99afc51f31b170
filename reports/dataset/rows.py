"""The reading side of a data set: reports to rows, one Parquet part a batch, with a manifest. Runs as a worker process.

A row of a part is one launch: where it is from, its figures (``figure:duration``), its findings
(``finding:low_occupancy``, per cent of its time). Its scalar metrics lie beside it (`metrics_of`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof import __version__
from gemmprof.base.buckets import below, write_text
from gemmprof.base.documents import Document, json_text
from gemmprof.base.errors import GemmprofError, ReportError, UnreachableError
from gemmprof.base.foreign_files import url_of

# pyarrow is loaded by what makes or reads rows: where nothing is new, a command over ten thousand reports needs none.
if TYPE_CHECKING:
    import pyarrow as pa

    from gemmprof.model import KernelProfile, MetricValue

MODULE = "gemmprof.reports.dataset.rows"
FIGURE, FINDING = "figure:", "finding:"
MANIFESTS = "manifests"
METRIC_ROWS = 1 << 15  # rows of a row group of metrics: a reader of one metric reads one or two of them


@dataclass(frozen=True, slots=True)
class Entry:
    """One report as it was when it was read."""

    # size, changed_ns: of the file; another size or time means that it is read again, -1 that the file system
    # did not give it
    size: int
    changed_ns: int
    part: str = ""  # name of the part with its rows, '' if it could not be read
    launches: int = 0  # its number of rows
    error: str = ""  # why it could not be read, '' if it could


class Manifest(Document, frozen=True, tag="gemmprof.dataset-part/1"):
    """``manifests/*.json``: what one part holds, or which reports are gone. Written once, by whoever wrote the part."""

    version: str  # of the gemmprof that wrote it
    explained: bool  # its part holds what to change in each launch
    generation: int  # of two that name a report the higher one holds
    reports: dict[str, Entry]  # by path
    gone: list[str]  # paths of reports that manifests of lower generations name in vain


def write_part(
    reports: Mapping[str, Sequence[int]],  # size and time of change of each
    target: Path,  # the part, and beside it the one with its metrics; neither is written if no report could be read
    generation: int,  # see `Manifest`
    *,
    explained: bool,  # also find out what to change in each launch, which needs the disassembly
) -> dict[str, Any]:
    """Read these reports into one Parquet file, which takes its name when it is whole, and write its manifest; whoever
    does it twice writes the same twice. Returns what the file system said of those that were ``unreachable`` for this
    machine, whatever is in them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from gemmprof.reports.tables.parquet import write_parquet

    pairs: list[tuple[pa.Table, pa.Table]] = []
    entries: dict[str, Entry] = {}
    for report, state in reports.items():
        try:
            pair = _tables(report, explained=explained)
        except (ReportError, OSError) as error:
            given = isinstance(error, ReportError) and not isinstance(error, UnreachableError)
            size, changed = state if given else (-1, -1)
            entries[report] = Entry(size, changed, error=str(error))
            continue
        pairs.append(pair)
        entries[report] = Entry(state[0], state[1], target.name, len(pair[0]))
    if pairs:
        metrics, before = [], 0
        for launches, scalars in pairs:  # launches are counted through
            row = pc.add(scalars["launch"], before).cast(pa.int32())
            names = scalars["metric"].cast(pa.string())
            metrics.append(pa.table({"metric": names, "row": row, "value": scalars["value"]}))
            before += len(launches)
        ordered = pa.concat_tables(metrics).sort_by([("metric", "ascending"), ("row", "ascending")])
        write_parquet(ordered, metrics_of(target), row_group=METRIC_ROWS, statistics=["metric"])
        write_parquet(pa.concat_tables([rows for rows, _ in pairs], promote_options="permissive"), target)
    manifest = Manifest(__version__, explained, generation, entries, [])
    # From now on what it names is part of the data set.
    write_text(target.parent.parent / MANIFESTS / f"{target.stem}.json", json_text(manifest, 0))
    return {"unreachable": {report: entry.error for report, entry in entries.items() if entry.size < 0}}


def metrics_of(part: Path) -> Path:
    """Where the metrics of a part's launches lie: one row a value, sorted by metric; ``row`` is that in the part.

    A column a metric would cost more to open than to read: a full report has two thousand.
    """
    return part.parent.parent / "metrics" / part.name


_WHOLE = ("launch", "family")
_TEXTS = ("report", "kernel", "label", "function", "nvtx", "device", "owner", "workload")


def _tables(report: str, *, explained: bool) -> tuple[pa.Table, pa.Table]:
    """One report's launches, and their scalar metrics in the same order."""
    # Late, here and below: a question to a data set reads no report, and need not wait for what does.
    import pyarrow as pa

    from gemmprof.analysis.inputs.families import census, without_values
    from gemmprof.analysis.reading.report import ReportReader, few_collections
    from gemmprof.analysis.session import has_counters
    from gemmprof.reports.tables.launches import long_table

    scalars: list[tuple[int, str, Mapping[str, MetricValue]]] = []
    rows: list[dict[str, Any]] = []
    bare: list[KernelProfile] = []
    with few_collections(), ReportReader(report) as reader:
        source = has_counters if explained else False
        for profile in reader.profiles(source=source, rules=False):
            rows.append(_row(report, profile, explained=explained))
            scalars.append((profile.index, profile.name, profile.metrics))
            bare.append(without_values(profile))
    if not rows:
        raise ReportError(f"{report} holds no launch", "collect it again")
    known = census(bare)
    for row, profile in zip(rows, bare, strict=True):
        identity = known.of[profile.report, profile.index]
        row |= {"label": identity.label, "family": identity.number}
    names = list(dict.fromkeys(name for row in rows for name in row))
    launches = pa.table(
        {name: pa.array([row.get(name) for row in rows], column_type(name)) for name in names}
    )
    return launches, long_table(report, scalars).select(["metric", "launch", "value"]).drop_null()


def metric_column_type(name: str) -> pa.DataType | None:
    """The type of a column beside a part, None of one that is not there."""
    import pyarrow as pa

    return {"metric": pa.string(), "row": pa.int32(), "value": pa.float64()}.get(name)


def column_type(name: str) -> pa.DataType:
    """The type of a column of a part: all but a few are figures or findings."""
    import pyarrow as pa

    return pa.string() if name in _TEXTS else pa.int64() if name in _WHOLE else pa.float64()


def _row(report: str, profile: KernelProfile, *, explained: bool) -> dict[str, Any]:
    from gemmprof.analysis.inputs.named_figures import figures, findings
    from gemmprof.analysis.inputs.names import owner_of
    from gemmprof.analysis.kernel_analysis import analyse

    row: dict[str, Any] = {
        "report": report,
        "launch": profile.index,
        "kernel": profile.name,
        "function": profile.function_name,
        "nvtx": "/".join(profile.nvtx),
        "device": profile.device.name,
        "owner": str(owner_of(profile)),
        "workload": profile.workload,
    }
    analysis = analyse(profile)
    row |= {f"{FIGURE}{name}": value for name, value in figures(analysis).items()}
    if explained:
        row |= {f"{FINDING}{name}": value for name, value in findings(analysis.explanation).items()}
    return row


def reports_below(inputs: Iterable[Path]) -> tuple[list[Path], tuple[GemmprofError, ...]]:
    """The reports that these inputs stand for: of a folder all below it; links to folders are not followed. An error if
    there are none at all: a mistyped name alone makes no empty data set.
    """
    from gemmprof.analysis.inputs.selection import is_report_name, is_run

    found: dict[Path, None] = {}
    problems: list[GemmprofError] = []
    for path in inputs:
        if url := url_of(path):
            found.update((Path(name), None) for name in sorted(below(url, deep=True)) if is_report_name(name))
            continue
        if path.is_dir() and not is_run(path):
            for folder, folders, files in os.walk(path):
                folders.sort()
                found.update((Path(folder) / name, None) for name in sorted(files) if is_report_name(name))
            continue
        from gemmprof.analysis.reading.frame import no_such_file
        from gemmprof.analysis.session import selected_reports

        try:
            reports, failures = selected_reports([path])
        except GemmprofError as error:
            problems.append(error)
            continue
        missing = [report for report in reports if not os.path.lexists(report)]
        problems += [no_such_file(report) for report in missing]
        found.update(dict.fromkeys(report for report in reports if report not in missing))
        problems += failures
    if not found and problems:
        raise problems[0]
    if not found:
        raise ReportError("no report was found", "name a folder that holds .ncu-rep files, at any depth")
    return list(found), tuple(problems)


if __name__ == "__main__":
    from gemmprof.base.system import without_modules
    from gemmprof.children.line_worker import serve

    with without_modules("pandas"):
        serve(lambda asked: write_part(**{**asked, "target": Path(asked["target"])}))
