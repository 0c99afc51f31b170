"""Asks a data set: which launches meet a condition."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof.analysis.comparison.quantities import ALIASES
from gemmprof.analysis.inputs.conditions import (
    Both,
    Comparison,
    Condition,
    Either,
    Match,
    Not,
    names_in,
)
from gemmprof.analysis.inputs.named_figures import UNITS, canonical
from gemmprof.analysis.inputs.selection import some
from gemmprof.base.errors import UsageError
from gemmprof.reports.dataset.rows import FIGURE, FINDING, metrics_of
from gemmprof.reports.dataset.store import DatasetError, load_manifest

if TYPE_CHECKING:
    import pyarrow as pa

_SQL = {">": ">", ">=": ">=", "<": "<", "<=": "<=", "==": "=", "!=": "!="}
DURATION = f"{FIGURE}duration"
IDENTITY = ("report", "launch", "kernel", "nvtx", "device")


@dataclass(frozen=True, slots=True)
class Found:
    """One launch that met a condition. Texts are untrusted.

    Attributes:
        values: what the condition looked at, by the name that the user wrote.
    """

    report: str
    launch: int
    kernel: str
    nvtx: str
    device: str
    duration_ns: float | None
    values: dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """The launches found, those that took longest first, how many there are in all, and how many were looked at."""

    found: tuple[Found, ...]
    matches: int
    looked_at: int


def search(folder: Path, condition: Condition, *, limit: int | None = None) -> Answer:
    """The launches of a data set that meet a condition. A launch that lacks a figure does not meet a condition on it.

    Raises:
        UsageError: if the condition names no figure, finding or metric that the data set knows.
        DatasetError: if it cannot be read.
    """
    import duckdb
    import pyarrow as pa

    manifest = load_manifest(folder)
    live: dict[str, dict[str, int]] = {}
    for path, entry in manifest.reports.items():
        if entry.part:
            live.setdefault(entry.part, {})[path] = entry.launches
    if not live:
        return Answer((), 0, 0)
    try:
        names = _columns(folder, live, manifest.metrics, names_in(condition))
        wanted = list(dict.fromkeys([*IDENTITY, DURATION, *names.values()]))
        with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as readers:
            parts = list(readers.map(lambda part: _part(folder, part, live[part], wanted), live))
        launches = pa.concat_tables(parts, promote_options="permissive")
        matches = matches_in(condition)
        where, values = to_sql(condition, {name: f"c{wanted.index(c)}" for name, c in names.items()}, matches)
        connection = duckdb.connect()
        connection.register("launches", _numbered(launches.select(wanted), matches))
        rows = _ask(connection, where, values, [f"c{wanted.index(c)}" for c in names.values()], limit)
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise DatasetError(
            f"{folder} cannot be read",
            found=str(error)[:300],
            remedies=["delete the data set; it is made anew from the reports"],
        ) from None
    found = tuple(
        Found(report, launch, kernel, nvtx, device, duration, dict(zip(names, rest[:-1], strict=True)))
        for report, launch, kernel, nvtx, device, duration, *rest in rows
    )
    return Answer(found, rows[0][-1] if rows else 0, manifest.launches)


def _numbered(launches: pa.Table, matches: Sequence[Match]) -> pa.Table:
    """The columns as ``c0``, ``c1`` … (metrics may differ in case alone), then a truth for each match."""
    named = launches.rename_columns([f"c{at}" for at in range(launches.num_columns)])
    for at, match in enumerate(matches):
        found = _found_in(launches[match.name], match.pattern)
        named = named.append_column(f"m{at}", found)
    return named


def _found_in(texts: pa.ChunkedArray, pattern: str) -> pa.Array:
    """In which texts an expression is found: Python's expressions, as everywhere here; each text is looked at once."""
    import pyarrow as pa

    expression = re.compile(pattern, re.IGNORECASE)
    coded = pa.chunked_array(texts, pa.string()).combine_chunks().dictionary_encode()
    met = [expression.search(text) is not None for text in coded.dictionary.to_pylist()]
    return pa.array(met, pa.bool_()).take(coded.indices)


def _ask(
    connection: Any, where: str, values: Sequence[Any], chosen: Sequence[str], limit: int | None
) -> list[Any]:
    """The identities, the durations and the chosen columns of what meets a condition, and how many do."""
    duration, *shown = [_number(column) for column in (f"c{len(IDENTITY)}", *chosen)]
    columns = [*(f"c{at}" for at in range(len(IDENTITY))), duration, *shown, "count(*) OVER ()"]
    found: list[Any] = connection.execute(
        f"SELECT {', '.join(columns)} FROM launches WHERE {where} ORDER BY {duration} DESC NULLS LAST, c0, c1"
        + (f" LIMIT {int(limit)}" if limit else ""),
        list(values),
    ).fetchall()
    return found


def _columns(folder: Path, parts: Iterable[str], metrics: set[str], names: Sequence[str]) -> dict[str, str]:
    """The column of each name."""
    import pyarrow.parquet as pq

    known = set(metrics)
    for part in parts:
        names_there = pq.read_metadata(folder / "parts" / part).schema.names
        known.update(name for name in names_there if name == "launch" or name.startswith((FIGURE, FINDING)))
    return {name: column(name, known) for name in names}


def _candidates(name: str) -> tuple[str, str, str]:
    return (f"{FIGURE}{canonical(name)}", f"{FINDING}{name}", name)


def _part(folder: Path, name: str, reports: dict[str, int], wanted: Sequence[str]) -> pa.Table:
    """The wanted columns of a part, without the rows of reports that were read again since or are gone."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    launches = pq.ParquetFile(folder / "parts" / name)
    there = [c for c in dict.fromkeys(wanted) if c in launches.schema.names]
    table = launches.read(columns=there)
    absent = [c for c in dict.fromkeys(wanted) if c not in there]
    metrics = [c for c in absent if not c.startswith((FIGURE, FINDING))]
    values = _metrics(metrics_of(folder / "parts" / name), metrics, len(table)) if metrics else {}
    for missing in absent:
        table = table.append_column(missing, values.get(missing, pa.nulls(len(table), pa.float64())))
    if len(table) != sum(reports.values()):
        table = table.filter(pc.is_in(table["report"], pa.array(list(reports))))
    return table


def column(name: str, known: set[str]) -> str:
    """The column of a name.

    Raises:
        UsageError: if there is none, with the closest names.
    """
    for candidate in _candidates(name):
        if candidate in known:
            return candidate
    if canonical(name) in UNITS:
        raise UsageError(
            f"no report here holds what '{name}' needs",
            remedies=["collect more: ncu --set full", "findings need a data set made without --no-findings"],
        )
    raise _unknown(name, {c.partition(":")[2] or c for c in known})


def _unknown(name: str, known: set[str]) -> UsageError:
    """What to say of a name that nothing has, with what was probably meant."""
    from difflib import get_close_matches

    close = get_close_matches(name, known | set(ALIASES), n=5, cutoff=0.5)
    meant = [f"did you mean {close[0]}?"] if close else []
    return UsageError(
        f"'{name}' is no figure, finding or metric of these reports",
        found=some(close or sorted(UNITS)),
        remedies=[*meant, "`gemmprof find --names` lists the figures and findings; metrics have ncu's names"],
    )


def _metrics(path: Path, names: Sequence[str], rows: int) -> dict[str, pa.Array]:
    """These metrics of all launches of a part, null where one lacks it."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pq.read_table(path, filters=[("metric", "in", list(names))])
    metric = found["metric"].to_numpy()
    row, value = found["row"].to_numpy(), found["value"].to_numpy()
    columns = {}
    for name in names:
        mine = metric == name
        data, absent = np.zeros(rows), np.ones(rows, bool)
        data[row[mine]], absent[row[mine]] = value[mine], False
        columns[name] = pa.array(data, mask=absent)
    return columns


def _number(column: str) -> str:
    """The SQL of a number: what is not one (NaN, which DuckDB takes for the largest) is as good as absent."""
    return f"nullif({column}, 'NaN'::DOUBLE)"


def matches_in(condition: Condition) -> list[Match]:
    """The comparisons of text in a condition, each once."""
    if isinstance(condition, Match):
        return [condition]
    if isinstance(condition, Comparison):
        return []
    parts = (condition.part,) if isinstance(condition, Not) else condition.parts
    return list(dict.fromkeys(match for part in parts for match in matches_in(part)))


def to_sql(
    condition: Condition, columns: Mapping[str, str], matches: Sequence[Match]
) -> tuple[str, list[Any]]:
    """A condition as SQL with question marks, and the values for them.

    Args:
        columns: by name of a figure or metric.
        matches: whose truths the columns ``m0``, ``m1`` … hold.
    """
    if isinstance(condition, Comparison):
        return f"{_number(columns[condition.name])} {_SQL[condition.operator]} ?", [condition.value]
    if isinstance(condition, Match):
        truth = f"m{matches.index(condition)}"
        return (truth if condition.wanted else f"NOT {truth}"), []
    if isinstance(condition, Not):
        sql, values = to_sql(condition.part, columns, matches)
        return f"NOT ({sql})", values
    assert isinstance(condition, (Both, Either))
    pieces: list[str] = []
    values = []
    for part in condition.parts:
        sql, more = to_sql(part, columns, matches)
        pieces.append(f"({sql})")
        values += more
    return (" AND " if isinstance(condition, Both) else " OR ").join(pieces), values
