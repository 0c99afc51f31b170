"""Tables of everything in reports, as Parquet, CSV or JSON lines: kernels, metrics, samples, instructions and lines.

Reports are read launch by launch and written slice by slice, so memory does not grow with the number of launches. The
second half of a large report is read by a second process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gemmprof.analysis.reading.report import ReportReader, units_of_report
from gemmprof.analysis.session import MANY_LAUNCHES
from gemmprof.base import system
from gemmprof.base.errors import GemmprofError, ReportError, UsageError
from gemmprof.base.output import new_folder
from gemmprof.children.line_worker import MASTER, end_with_master
from gemmprof.children.watched import python_command
from gemmprof.reports.tables.files import FORMATS, Spool, without_pandas
from gemmprof.reports.tables.launches import TABLES, TableBuilder, is_measured_by_address
from gemmprof.reports.tables.metrics import with_units

PARALLEL_LAUNCHES = 300  # from this number of launches on, a second process is worth its start

MODULE = "gemmprof.reports.tables.export"


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the files, the launches in them, and why other reports could not be read."""

    files: tuple[Path, ...]
    launches: int
    failures: tuple[GemmprofError, ...] = ()


def export_tables(
    reports: Iterable[str | os.PathLike[str]] | Mapping[Path, Collection[int] | None],
    directory: str | os.PathLike[str],
    *,
    format: str = "parquet",  # noqa: A002 (the option's name)
    tables: Sequence[str] = TABLES,
    processes: int = 2,
) -> Exported:
    """Write tables of these reports into a folder, one file a table.

    A file appears under its name only when it is complete. Columns ``report`` and ``launch`` join the tables.

    Args:
        reports: the report files; a mapping gives the positions of the launches to write of each (None: all).
        directory: the folder; it is created.
        format: ``parquet``, ``csv`` or ``jsonl``.
        tables: which of `TABLES`.
        processes: 1 keeps all reading in this process.

    Raises:
        UsageError: for an unknown table or format, or no report.
        ReportError: the first failure, if no report can be read. Otherwise failures are in the result, and nothing of
            a report that turned out damaged is in the tables.
    """
    if format not in FORMATS:
        raise UsageError(f"'{format}' is no table format", remedies=[f"use one of {', '.join(FORMATS)}"])
    if unknown := [name for name in tables if name not in TABLES]:
        raise UsageError(f"'{unknown[0]}' is no table", remedies=[f"use some of {', '.join(TABLES)}"])
    if not reports:
        raise UsageError("no report was named", remedies=["name a .ncu-rep file"])
    wanted = {Path(path): None for path in reports} if not isinstance(reports, Mapping) else dict(reports)
    folder = Path(directory)
    names = {name: f"{name}.{format}" for name in tables}
    with_unit = {"metrics", "samples"}.intersection(tables)
    failures: list[GemmprofError] = []
    units: dict[str, Mapping[str, str]] = {}
    launches = 0
    with new_folder(folder, is_ours=lambda file: file.name in names.values(), durable=True) as staging:
        scratch = str(staging / "slices")
        os.mkdir(scratch)  # noqa: PTH102
        spools = {name: Spool(Path(scratch) / name) for name in tables}
        for number, (path, only) in enumerate(wanted.items()):
            try:
                with ThreadPoolExecutor(1) as background:
                    # The native reader works on the units while the values are read.
                    known = background.submit(units_of_report, path) if with_unit else _nothing()
                    count, slices = _spool_report(path, only, number, scratch, tables, processes)
                    units[os.fspath(path)] = known.result()
            except ReportError as error:
                failures.append(error)
                continue
            launches += count
            for name, paths in slices.items():
                spools[name].slices += map(Path, paths)
        if len(failures) == len(wanted):
            raise failures[0]
        amend = partial(with_units, units=units)
        for name, spool in spools.items():
            spool.finish(staging / names[name], format, amend if name in with_unit else None)
        shutil.rmtree(scratch)
    files = tuple(folder / name for name in names.values())
    return Exported(files, launches, tuple(failures))


def _nothing() -> Future[Mapping[str, str]]:
    done: Future[Mapping[str, str]] = Future()
    done.set_result({})
    return done


def _spool_report(
    path: Path, only: Collection[int] | None, number: int, scratch: str, tables: Sequence[str], processes: int
) -> tuple[int, dict[str, list[str]]]:
    """Write the slices of one report; returns its number of launches and the slices of each table in order."""
    with ReportReader(path) as reader:
        positions = range(len(reader)) if only is None else sorted(only)
        count = len(positions)
        # A compressed report would have to be unpacked twice: its uncompressed copy serves both, where a child can
        # open it.
        file = reader.frame.file.fileno()
        job: dict[str, Any] = {
            "file": file,
            "opened": f"/dev/fd/{file}" if system.DESCRIPTOR_PATHS else os.fspath(path),
            "report": os.fspath(path),
            "scratch": scratch,
            "name": f"{number:06d}",
            "tables": list(tables),
        }
        half = count // 2 if processes > 1 and count >= PARALLEL_LAUNCHES else count
        helper = (
            _Helper({**job, "launches": [*positions[half:]], "name": f"{number:06d}b"})
            if half < count
            else None
        )
        try:
            slices = _spool_range(reader, job, positions[:half])
            if helper is not None:
                for name, paths in helper.result().items():
                    slices[name] += paths
        finally:
            if helper is not None:
                helper.stop()
    return count, slices


def _spool_range(reader: ReportReader, job: dict[str, Any], launches: Sequence[int]) -> dict[str, list[str]]:
    """Write the slices of some launches; returns their files by table."""
    tables = tuple(job["tables"])
    spools = {name: Spool(Path(job["scratch"]) / name) for name in tables}
    builder = TableBuilder(job["report"], tables)
    profiles = reader.profiles(
        # Also what no table shows is read: where the other commands find damage, nothing is exported.
        source=is_measured_by_address if len(reader) > MANY_LAUNCHES else True,
        only=frozenset(launches),
    )
    written = 0
    for done, profile in enumerate(profiles, 1):
        builder.add(profile)
        if builder.is_full or done == len(launches):
            for name, table in builder.tables():
                spools[name].write(table, f"{job['name']}-{written:06d}")
            written += 1
    return {name: [str(path) for path in spool.slices] for name, spool in spools.items()}


class _Helper:
    """A second process that writes the slices of a range of launches."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.process = subprocess.Popen(
            python_command(MODULE),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=(job["file"],) if system.DESCRIPTOR_PATHS else (),
            env={**os.environ, MASTER: str(os.getpid())},
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(job))
        self.process.stdin.close()
        self.process.stdin = None

    def result(self) -> dict[str, list[str]]:
        """The slices that it wrote.

        Raises:
            ReportError: if it met damage.
        """
        output, _ = self.process.communicate()
        try:
            answer = json.loads(output)
        except ValueError:
            raise ReportError(
                f"{self.job['report']} could not be exported",
                found=f"the helper process ended with exit code {self.process.returncode}",
            ) from None
        if "error" in answer:
            raise ReportError(answer["error"], found=answer["found"], remedies=answer["remedies"])
        slices: dict[str, list[str]] = answer["slices"]
        return slices

    def stop(self) -> None:
        """End it, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def _main() -> None:
    """Serve one job from standard input; who would take the answer may be killed meanwhile."""
    end_with_master()
    job = json.load(sys.stdin)
    try:
        with without_pandas(), ReportReader(job["opened"]) as reader:
            answer: dict[str, Any] = {"slices": _spool_range(reader, job, job["launches"])}
    except ReportError as error:
        message = error.message.replace(job["opened"], job["report"])
        answer = {"error": message, "found": error.found, "remedies": error.remedies}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    _main()
