"""Baselines: one side of a comparison in a small file that can be committed.

A baseline is one JSON document, compressed with zstd (with its checksum): ``<folder>/<name>.json.zst``. It holds times,
counters, code fingerprints and opcode counts of each kernel, and no SASS, source or report. It is replaced atomically.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import zstandard

from gemmprof.analysis.comparison.reasons import causes_of
from gemmprof.analysis.comparison.records import KernelRecord, Times
from gemmprof.analysis.comparison.sides import Side, disassembled
from gemmprof.analysis.inputs.names import owner_of_name
from gemmprof.analysis.inputs.selection import EVERYTHING, Candidate, Selection, selected
from gemmprof.base.documents import Document, DocumentError, OtherFormatError, read_json, values_beyond
from gemmprof.base.errors import ReportError, UsageError
from gemmprof.base.foreign_files import UnpackError, read_packed
from gemmprof.base.output import new_file

FORMAT = "gemmprof.baseline/1"
FOLDER = Path(".gemmprof") / "baselines"
SUFFIX = ".json.zst"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Baseline(Document, frozen=True, tag=FORMAT):
    """What the file holds."""

    saved: Annotated[str, "when, ISO 8601"]
    title: Annotated[str, "what it was saved from"]
    stages: Annotated[bool, "the kernels are stages of a run"]
    processes: Annotated[int, "how many reports or runs it is made of"]
    kernels: Annotated[tuple[KernelRecord, ...], "the side"]


def folder_of(folder: str | None) -> Path:
    """Where baselines lie: the named folder, else ``.gemmprof/baselines``."""
    return Path(folder) if folder else FOLDER


def path_of(name: str, folder: str | None = None) -> Path:
    """The file of a baseline; UsageError if the name is none."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' is no name of a baseline", "letters, digits, '.', '_' and '-', a letter or digit first"
        )
    return folder_of(folder) / f"{name}{SUFFIX}"


def save_baseline(name: str, side: Side, folder: str | None = None, *, force: bool = False) -> Path:
    """Write a baseline; returns its path.

    Raises:
        UsageError: if it exists and ``force`` is not given, or there is nothing to save.
    """
    path = path_of(name, folder)
    if path.exists() and not force:
        raise UsageError(f"there is a baseline {name} already", "add --force to replace it")
    if not side.kernels:
        raise UsageError(f"{side.title} holds no kernel")
    kept = Baseline(
        datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        side.title,
        side.stages,
        side.processes,
        tuple(_kept(record) for record in side.kernels),
    )
    text = msgspec.json.encode(kept)
    if too_many := values_beyond(text):
        raise UsageError(
            f"the baseline would be too large: {too_many}",
            "keep fewer kernels in it: --kernel REGEX, --top N",
            "one baseline for each part",
        )
    data = zstandard.ZstdCompressor(level=19, write_checksum=True).compress(text)
    path.parent.mkdir(parents=True, exist_ok=True)
    with new_file(path, durable=True) as temporary:
        temporary.write_bytes(data)
    return path


def _kept(record: KernelRecord) -> KernelRecord:
    """A record that stands without its report."""
    causes = causes_of(record)
    return replace(
        disassembled(record),
        causes=None if causes is None else tuple(sorted(causes)),
        place=None,
        family=None,
    )


def read_baseline(name: str, folder: str | None = None) -> Baseline:
    """Read a baseline.

    Raises:
        UsageError: if there is none of this name.
        ReportError: if it is damaged or of another format.
    """
    path = path_of(name, folder)
    again = f"save it again: gemmprof baseline save {name} REPORT --force"
    try:
        return read_json(read_packed(path), Baseline)
    except FileNotFoundError:
        known = ", ".join(names(folder)) or "none"
        raise UsageError(
            f"there is no baseline {name} in {path.parent}",
            f"gemmprof baseline save {name} REPORT|RUN",
            "name another folder with --baselines DIR",
            found=f"it holds {known}",
        ) from None
    except OtherFormatError as error:
        raise ReportError(
            f"{path} has format {str(error)!r}; this gemmprof reads {FORMAT}", "upgrade gemmprof", again
        ) from None
    except (OSError, UnpackError, DocumentError) as error:
        raise ReportError(f"{path} is damaged", again, found=str(error)) from None


def load_baseline(name: str, folder: str | None = None, selection: Selection = EVERYTHING) -> Side:
    """A baseline as a side of a comparison; the selection is that of the other side. Errors: see `read_baseline`.

    Raises:
        UsageError: launches are chosen by position, and the baseline was saved before those were kept.
    """
    kept = read_baseline(name, folder)
    kernels = tuple(_selected(kept.kernels, selection, name)) if selection else kept.kernels
    return Side(f"baseline {name}", kernels, stages=kept.stages, processes=kept.processes)


def _selected(kernels: Sequence[KernelRecord], selection: Selection, name: str) -> Iterator[KernelRecord]:
    """The kernels that a selection means, each with those of its launches."""
    candidates = [
        Candidate(
            f"{at}.{process}",
            position,
            record.name,
            record.nvtx,
            nanoseconds,
            record.label if record.key[0] == "stage" else "",
            owner=str(owner_of_name(record.name)),
        )
        for at, record in enumerate(kernels)
        for process, times in enumerate(record.times)
        for position, nanoseconds in _launches(times)
    ]
    if selection.launches and any(candidate.index < 0 for candidate in candidates):
        raise UsageError(
            f"baseline {name} does not say which launches it holds, so --launch cannot choose among them",
            f"save it again: gemmprof baseline save {name} REPORT --force",
        )
    meant: dict[str, set[int]] = {}
    for candidate in selected(candidates, selection):
        meant.setdefault(candidate.report, set()).add(candidate.index)
    for at, record in enumerate(kernels):
        kept = [
            times.only(positions) if times.positions else times
            for process, times in enumerate(record.times)
            if (positions := meant.get(f"{at}.{process}"))
        ]
        if kept:
            yield replace(record, times=tuple(kept), launches=sum(times.count for times in kept))


def _launches(times: Times) -> Iterable[tuple[int, float]]:
    """Position and duration of each launch; one of no position for all, where positions were not kept."""
    if len(times.positions) == len(times.nanoseconds):
        return zip(times.positions, times.nanoseconds, strict=True)
    return [(position, 0.0) for position in times.positions] or [(-1, sum(times.nanoseconds))]


def is_saved(name: str) -> bool:
    """Whether there is a baseline of this name."""
    return _NAME.fullmatch(name) is not None and path_of(name).is_file()


def names(folder: str | None = None) -> list[str]:
    """The baselines of a folder, sorted."""
    found: Iterable[Path] = folder_of(folder).glob(f"*{SUFFIX}")
    return sorted(path.name.removesuffix(SUFFIX) for path in found if not path.name.startswith("."))


def remove_baseline(name: str, folder: str | None = None) -> Path:
    """Delete a baseline; returns where it lay; UsageError if there is none of this name."""
    path = path_of(name, folder)
    if not path.is_file():
        raise UsageError(f"there is no baseline {name}", found=", ".join(names(folder)) or "none at all")
    path.unlink()
    return path
