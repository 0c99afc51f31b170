"""Reads the CSV files that ``ncu --import … --page details|raw|source --csv`` wrote beside a recorded report."""

from __future__ import annotations

import csv
import io
import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from recorded_data import DATA


def has_export(report: str, page: str) -> bool:
    """Whether this page of the report was recorded."""
    return _path(report, page).is_file()


def _path(report: str, page: str) -> Path:
    return DATA / f"{report}.{page}.csv.xz"


def csv_rows(report: str, page: str) -> list[list[str]]:
    """All rows of one export, as text."""
    text = lzma.decompress(_path(report, page).read_bytes()).decode("utf-8")
    return list(csv.reader(io.StringIO(text, newline="")))


@dataclass(frozen=True)
class Detail:
    """One printed value of the details page; ``table`` names the table or chart below the section's header."""

    section: str
    metric: str
    unit: str
    value: str
    table: str = ""


@dataclass(frozen=True)
class PrintedRule:
    """One printed rule result of the details page."""

    section: str
    rule: str
    kind: str
    text: str
    speedup_scope: str
    speedup: str


@dataclass(frozen=True)
class LaunchDetails:
    """The details page of one launch."""

    kernel: str
    details: tuple[Detail, ...]
    rules: tuple[PrintedRule, ...]


@cache
def details_page(report: str, page: str = "details") -> list[LaunchDetails]:
    """The details page, launch by launch; ``details_all`` with the tables and charts of every section."""
    header, *rows = csv_rows(report, page)
    launches: dict[str, tuple[str, list[Detail], list[PrintedRule]]] = {}
    for row in rows:
        # Some sections print tables of their own (NVLink, NUMA) between the rows.
        if len(row) <= header.index("Metric Value"):
            continue
        # ncu leaves out trailing empty columns, and the columns of rules where a report has none.
        line = dict(zip(header, row + [""] * (len(header) - len(row)), strict=False))
        _, details, rules = launches.setdefault(line["ID"], (line["Kernel Name"], [], []))
        if line["Metric Name"]:
            details.append(
                Detail(
                    line["Section Name"],
                    line["Metric Name"],
                    line["Metric Unit"],
                    line["Metric Value"],
                    line.get("Body Item Label", ""),
                )
            )
        if line.get("Rule Name"):
            rules.append(
                PrintedRule(
                    line["Section Name"],
                    line["Rule Name"],
                    line["Rule Type"],
                    line["Rule Description"],
                    line["Estimated Speedup Type"],
                    line["Estimated Speedup"],
                )
            )
    return [
        LaunchDetails(kernel, tuple(details), tuple(rules)) for kernel, details, rules in launches.values()
    ]


@dataclass(frozen=True)
class RawPage:
    """The raw page: per launch one text per metric, and the unit of each metric."""

    units: dict[str, str]
    launches: tuple[dict[str, str], ...]


_LAUNCH_COLUMNS = 11
"""ID, process, kernel name, launch configuration … stand before the metrics."""


@cache
def raw_page(report: str, page: str = "raw_base") -> RawPage:
    """The raw page: ``raw_base`` in base units, ``raw`` as ncu scales it."""
    header, units, *rows = csv_rows(report, page)
    names = header[_LAUNCH_COLUMNS:]
    return RawPage(
        units=dict(zip(names, units[_LAUNCH_COLUMNS:], strict=True)),
        launches=tuple(dict(zip(names, row[_LAUNCH_COLUMNS:], strict=True)) for row in rows),
    )
