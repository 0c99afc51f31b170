"""``run.json``: one typed class is written and read. Types, ranges and sizes are checked at the door, whoever wrote it.

A run may come from elsewhere. What it says reaches pages, tables, file names and divisions, so everything that is not
of the type and in the range that gemmprof writes is refused here, naming the place in the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gemmprof.base.documents import checked, plain
from gemmprof.base.errors import RunError
from gemmprof.base.expressions import Addresses, is_arithmetic
from gemmprof.base.foreign_files import read_bytes
from gemmprof.model import Problem, ReportRecord, RunInfo, StageRecord, StageResult

FORMAT_VERSION = 2

MAX_FILE_BYTES = 64 << 20
MAX_TEXT = 1 << 20  # no run that gemmprof wrote comes near these


@dataclass(frozen=True, slots=True)
class RunDocument:
    """What a ``run.json`` says."""

    format_version: int  # `FORMAT_VERSION` of the gemmprof that wrote it
    info: RunInfo  # what holds for the whole run
    problems: tuple[Problem, ...]  # the matrix products
    stages: tuple[StageRecord, ...]  # as they were when the run was made
    results: tuple[StageResult, ...]  # of each stage on each problem
    # each report as it was when it was collected, by its name in the results
    reports: Mapping[str, ReportRecord] = field(default_factory=dict)


def written(document: RunDocument) -> str:
    """The document as text. NaN and infinities stand as such, which is no JSON: an output may hold them."""
    return json.dumps(msgspec.to_builtins(document, enc_hook=plain), indent=1, ensure_ascii=False) + "\n"


def read_document(file: Path) -> RunDocument:
    """Read and check a ``run.json``.

    Raises:
        FileNotFoundError: if there is none.
        RunError: if it cannot be read, is damaged, or a newer gemmprof wrote it.
    """
    document = _json(file)
    version = document.get("format_version") if isinstance(document, dict) else None
    if version != FORMAT_VERSION:
        raise RunError(
            f"{file} has format version {repr(version)[:40]}; this gemmprof reads version {FORMAT_VERSION}",
            "upgrade gemmprof",
            "collect the run again",
        )
    try:
        _check_texts(document)
        found = checked(document, RunDocument)
        _no_surprise(document, msgspec.to_builtins(found, enc_hook=plain))
        _check(found)
    except (ValueError, RecursionError, OverflowError) as error:
        raise RunError(
            f"{file} is damaged", "copy or collect the run again", found=str(error)[:300]
        ) from error
    return found


def _json(file: Path) -> Any:
    remedies = ["copy or collect the run again"]
    try:
        return json.loads(read_bytes(file, MAX_FILE_BYTES).decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{file} cannot be read", *remedies, found=str(error)[:300]) from error


def _no_surprise(given: Any, known: Any, place: str = "run") -> None:
    """Refuse fields that gemmprof does not write: a name with a flipped bit would be a fact lost without a word."""
    if isinstance(given, dict):
        if unknown := sorted(set(given) - set(known)):
            raise ValueError(f"{place}: unknown field {unknown[0][:40]!r}")
        for name, item in given.items():
            _no_surprise(item, known[name], f"{place}.{name}")
    elif isinstance(given, list):
        for item, same in zip(given, known, strict=True):
            _no_surprise(item, same, place)


def _check_texts(value: Any, place: str = "run", depth: int = 0) -> None:
    """No text with a NUL or of a megabyte, nothing nested deeper than gemmprof nests."""
    if depth > 12:
        raise ValueError(f"{place} is nested too deep")
    if isinstance(value, str):
        if "\0" in value or len(value) > MAX_TEXT:
            raise ValueError(f"{place} holds a text with a NUL, or too long a one")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _check_texts(key, place, depth)
            _check_texts(item, f"{place}.{key[:40]}", depth + 1)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _check_texts(item, f"{place}[{number}]", depth + 1)


def _check(found: RunDocument) -> None:
    """What the types of the fields do not say: what belongs together, and what is evaluated."""
    if not -(2**63) <= found.info.seed < 2**64:
        raise ValueError("the seed has more than 64 bits")
    for record in found.stages:
        if record.stage.addresses is not None:
            _check_addresses(record.stage.name, record.stage.addresses)
    known = {record.stage.number for record in found.stages}
    for number, result in enumerate(found.results):
        place = f"results[{number}]"
        if result.problem not in found.problems:
            raise ValueError(f"{place} is of a problem that the run does not list")
        if result.stage not in known:
            raise ValueError(f"{place} is of a stage that the run does not list")
        # NaN and infinity are outcomes: an output may hold them.
        if result.verification is not None and result.verification.relative_error < 0:
            raise ValueError(f"{place}.verification is below zero")


def _check_addresses(stage: str, addresses: Addresses) -> None:
    """Only integer arithmetic: these texts are evaluated."""
    texts = [*addresses.tile, addresses.threads, *addresses.names.values()]
    texts += filter(None, [addresses.computing])
    for access in addresses.accesses:
        texts += [access.row, access.column, access.executions, access.ahead, *filter(None, [access.place])]
    for copy in addresses.copies:
        texts += [copy.rows, copy.columns, copy.boxes, copy.receivers]
    for read in addresses.operand_reads:
        texts += [read.rows, read.columns]
    for text in texts:
        if not is_arithmetic(text):
            raise ValueError(f"{stage[:40]}: {text[:60]!r} is no integer arithmetic")
