"""Reads ``run.json``: types, ranges and sizes are checked at the door, whoever wrote the file.

A run may come from elsewhere. What it says reaches pages, tables, file names and divisions, so everything that is not
of the type and in the range that gemmprof writes is refused here, naming the place in the file.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gemmprof.base.addresses import Addresses
from gemmprof.base.errors import RunError
from gemmprof.base.expressions import is_arithmetic
from gemmprof.model import (
    Problem,
    ReportRecord,
    RunInfo,
    Stage,
    StageRecord,
    StageResult,
    Timing,
    Verification,
)

FORMAT_VERSION = 2
"""1 knew one ladder, of float32; its runs are read as such."""

MAX_FILE_BYTES = 64 << 20
MAX_DIMENSION = 1 << 24
MAX_NUMBER = 10_000
MAX_SECONDS = 1e6
MAX_TEXT = 1 << 20
"""No run that gemmprof wrote comes near these."""

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class RunDocument:
    """What a ``run.json`` says, checked."""

    info: RunInfo
    stages: tuple[StageRecord, ...]
    problems: tuple[Problem, ...]
    results: tuple[StageResult, ...]
    reports: Mapping[str, ReportRecord] = field(default_factory=dict)


def read_document(file: Path) -> RunDocument:
    """Read and check a ``run.json``.

    Raises:
        FileNotFoundError: if there is none.
        RunError: if it cannot be read, is damaged, or a newer gemmprof wrote it.
    """
    document = _json(file)
    version = document.get("format_version") if isinstance(document, dict) else None
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise RunError(
            f"{file} has format version {repr(version)[:40]}; this gemmprof reads versions 1 to {FORMAT_VERSION}",
            remedies=["upgrade gemmprof", "collect the run again"],
        )
    try:
        found = RunDocument(
            info=_convert(document, "info", RunInfo),
            stages=_convert(_of_version(document, version), "stages", tuple[StageRecord, ...]),
            problems=_convert(document, "problems", tuple[Problem, ...]),
            results=_convert(_of_version(document, version), "results", tuple[StageResult, ...]),
            reports=_convert({"reports": {}, **document}, "reports", dict[str, ReportRecord]),
        )
        _check_texts(document)
        _check_ranges(found)
    except (ValueError, RecursionError, OverflowError) as error:
        raise RunError(
            f"{file} is damaged", found=str(error)[:300], remedies=["copy or collect the run again"]
        ) from error
    return found


def _json(file: Path) -> Any:
    remedies = ["copy or collect the run again"]
    try:
        # Without waiting: a pipe under this name would never end.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise RunError(f"{file} is no regular file", remedies=remedies)
            if facts.st_size > MAX_FILE_BYTES:
                raise RunError(
                    f"{file} has {facts.st_size >> 20} MiB: no run.json is that large", remedies=remedies
                )
            text = stream.read(MAX_FILE_BYTES + 1)
        return json.loads(text.decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{file} cannot be read", found=str(error)[:300], remedies=remedies) from error


def _convert(document: Mapping[str, Any], part: str, kind: type[_Part]) -> _Part:
    if part not in document:
        raise ValueError(f"it has no {part!r}")
    _no_surprise(document[part], part, *_WORDS[part])
    try:
        return msgspec.convert(document[part], kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{part}: {error}") from None


_WORDS: dict[str, tuple[type, dict[str, type]]] = {
    "info": (RunInfo, {}),
    "problems": (Problem, {}),
    "stages": (StageRecord, {"stage": Stage}),
    "results": (StageResult, {"problem": Problem, "verification": Verification, "timing": Timing}),
    "reports": (ReportRecord, {}),
}


def _no_surprise(value: Any, place: str, kind: type, inside: Mapping[str, type]) -> None:
    """Refuse fields that gemmprof does not write: a name with a flipped bit would be a fact lost without a word."""
    if place == "reports" and isinstance(value, dict):
        value = list(value.values())
    known = {part.name for part in fields(kind)}
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, dict):
            continue
        if unknown := sorted(set(item) - known):
            raise ValueError(f"{place}: unknown field {unknown[0][:40]!r}")
        for name, part in inside.items():
            _no_surprise(item.get(name), f"{place}.{name}", part, {})


def _of_version(document: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The document in the words of this version."""
    if version >= FORMAT_VERSION:
        return dict(document)
    stages = [
        # Its one stage without a source of ours was what the others were measured against.
        {**record, "stage": {**record["stage"], "yardstick": record["stage"].get("source") is None}}
        if isinstance(record, dict) and isinstance(record.get("stage"), dict)
        else record
        for record in _list(document, "stages")
    ]
    results = []
    for result in _list(document, "results"):
        timing = result.get("timing") if isinstance(result, dict) else None
        if isinstance(timing, dict) and "cublas_median" in timing:
            renamed = {("yardstick_median" if k == "cublas_median" else k): v for k, v in timing.items()}
            results.append({**result, "timing": renamed})
        else:
            results.append(result)
    return {**document, "stages": stages, "results": results}


def _list(document: Mapping[str, Any], part: str) -> list[Any]:
    found = document.get(part)
    if not isinstance(found, list):
        raise ValueError(f"{part}: a list is expected")
    return found


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


def _within(what: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low <= value <= high:
        raise ValueError(f"{what} is {str(value)[:40]}, not within {low:g} to {high:g}")


def _check_ranges(found: RunDocument) -> None:
    for part in found.info.compute_capability:
        _within("compute_capability", part, 0, 99)
    _within("seed", found.info.seed, -(2**63), 2**64 - 1)
    for problem in found.problems:
        _check_problem(problem)
    for record in found.stages:
        stage = record.stage
        _within(f"the number of stage {stage.name[:40]!r}", stage.number, 0, MAX_NUMBER)
        for name, value in stage.parameters.items():
            _within(f"{stage.name[:40]}.{name[:40]}", value, 0, MAX_DIMENSION)
        if stage.addresses is not None:
            _check_addresses(stage.name, stage.addresses)
        for what in ("registers_per_thread", "static_shared_memory", "spill_bytes"):
            _within(what, getattr(record, what), 0, MAX_DIMENSION)
    known = {(record.stage.number) for record in found.stages}
    for number, result in enumerate(found.results):
        place = f"results[{number}]"
        _check_problem(result.problem)
        if result.problem not in found.problems:
            raise ValueError(f"{place} is of a problem that the run does not list")
        if result.stage not in known:
            raise ValueError(f"{place} is of a stage that the run does not list")
        _within(f"{place}.launch_index", result.launch_index, 0, 10**7)
        if result.report is not None and not result.report.strip("/. "):
            raise ValueError(f"{place} names no report")
        verification = result.verification
        # NaN and infinity are outcomes: an output may hold them.
        if verification is not None and (
            verification.relative_error < 0 or not 0 <= verification.tolerance < math.inf
        ):
            raise ValueError(f"{place}.verification is below zero")
        if (timing := result.timing) is not None:
            _within(f"{place}.timing.repetitions", timing.repetitions, 0, 10**9)
            _within(f"{place}.timing.sm_clock_mhz", timing.sm_clock_mhz, 0, 1e5)
            for what in ("median", "minimum", "p10", "p90", "yardstick_median"):
                _within(f"{place}.timing.{what}", getattr(timing, what), 1e-9, MAX_SECONDS)


def _check_addresses(stage: str, addresses: Addresses) -> None:
    """Only integer arithmetic: these texts are evaluated."""
    texts = [*addresses.tile, addresses.threads, *addresses.names.values()]
    texts += filter(None, [addresses.computing])
    for access in addresses.accesses:
        texts += [access.row, access.column, access.executions, access.ahead, *filter(None, [access.place])]
        _within(f"{stage[:40]}: elements", access.elements, 1, 1024)
    for copy in addresses.copies:
        texts += [copy.rows, copy.columns, copy.boxes, copy.receivers]
    for read in addresses.operand_reads:
        texts += [read.rows, read.columns]
    for text in texts:
        if not is_arithmetic(text):
            raise ValueError(f"{stage[:40]}: {text[:60]!r} is no integer arithmetic")


def _check_problem(problem: Problem) -> None:
    for what, low in (("m", 1), ("n", 1), ("k", 0)):
        _within(f"{what} of a problem", getattr(problem, what), low, MAX_DIMENSION)
