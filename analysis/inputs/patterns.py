"""What a user's words for inputs stand for: files, run directories, folders of either, and patterns of names."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from gemmprof.analysis.inputs.selection import natural, some
from gemmprof.base.errors import ReportError
from gemmprof.runs.directory import COMPRESSIONS, RUN_FILE

# How the name of a report ends.
SUFFIXES = tuple(kind + packed for kind in (".ncu-rep", ".ncu-repz") for packed in ("", *COMPRESSIONS))


def is_run(path: Path) -> bool:
    """Whether this is a run directory or its ``run.json``."""
    return path.name == RUN_FILE or (path / RUN_FILE).is_file()


def is_report_name(name: str) -> bool:
    """Whether a file of this name is taken for a report in a folder."""
    return name.endswith(SUFFIXES)


def expand(inputs: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The reports and run directories that these words name, each once, in the order given.

    A folder stands for the reports and run directories right inside it, sorted as people sort (``run2`` before
    ``run10``); a name with ``*``, ``?`` or ``[`` that no file has is a pattern (``**`` looks into folders).

    Raises:
        ReportError: if a folder or pattern yields nothing. A named file is passed on whether it exists or not.
    """
    found: dict[Path, None] = {}
    for item in inputs:
        path = Path(item)
        if path.is_dir() and not is_run(path):
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
        found=some(child.name for child in children) or "an empty folder",
        remedies=[
            f"reports end in {SUFFIXES[0]}; for those in folders further down: '{folder}/**/*{SUFFIXES[0]}'",
            "a run directory, which `gemmprof collect` writes, holds a run.json",
        ],
    )


def _matching(pattern: str) -> list[Path]:
    anchor = Path(pattern).anchor
    found = sorted(
        Path(anchor or ".").glob(pattern.removeprefix(anchor)), key=lambda path: natural(str(path))
    )
    kept = [path for path in found if path.is_file() or is_run(path)]
    if kept:
        # What lies beside reports (exports, logs) is meant only where nothing else matches.
        return [path for path in kept if is_run(path) or is_report_name(path.name)] or kept
    raise ReportError(f"no file matches {pattern}", remedies=["check the pattern with: ls " + pattern])
