"""Configurations that come out of something else: a list of built kernels, a stage of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemmprof.analysis.inputs.one_kernel import stage_launch
from gemmprof.analysis.inputs.selection import EVERYTHING, Selection
from gemmprof.analysis.occupancy.calculator import Occupancy, occupancy
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy, analyse
from gemmprof.base.errors import GemmprofError, OccupancyError, RunError, UsageError
from gemmprof.gpu.arch import parse_compute_capability
from gemmprof.gpu.ptxas import KernelResources, parse_ptxas
from gemmprof.model import KernelProfile, NotCollected, StageRecord
from gemmprof.runs.directory import Run


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """One kernel of a build and its occupancy; ``problem`` says why there is none."""

    resources: KernelResources
    occupancy: Occupancy | None
    problem: str = ""


def read_ptxas(text: str) -> tuple[KernelResources, ...]:
    """Every kernel in what ``nvcc -Xptxas -v`` wrote.

    Raises:
        UsageError: if there is none.
    """
    kernels = parse_ptxas(text)
    if not kernels:
        first = next((line for line in text.splitlines() if line.strip()), "nothing at all")
        raise UsageError(
            "no kernel in the ptxas output",
            found=first[:120],
            remedies=["compile with `nvcc -Xptxas -v …` and give what it wrote to standard error (2>&1)"],
        )
    return kernels


def built_kernels(
    kernels: Iterable[KernelResources],
    threads_per_block: int,
    *,
    dynamic_shared_memory: int = 0,
    shared_memory_config: int | None = None,
    block_barriers: int | None = None,
    architectures: Sequence[tuple[int, int]] = (),
    default_architecture: tuple[int, int] | None = None,
) -> tuple[BuiltKernel, ...]:
    """The occupancy of every kernel of a build at one block size.

    Args:
        kernels: what ptxas or cuobjdump reported.
        threads_per_block: block size of the launch.
        dynamic_shared_memory: bytes per block asked for at the launch, on top of the kernels' static ones.
        shared_memory_config: carve-out in bytes; None: the largest.
        block_barriers: barriers per block; None: what the build says, else 1.
        architectures: keep the kernels for these only; all if empty.
        default_architecture: of kernels whose target the build does not name.

    Raises:
        UsageError: if no kernel is left.
    """
    found = []
    for kernel in kernels:
        try:
            target = (
                parse_compute_capability(kernel.architecture) if kernel.architecture else default_architecture
            )
        except OccupancyError as error:
            found.append(BuiltKernel(kernel, None, error.message))
            continue
        if target is None:
            raise UsageError(
                f"the build does not say which architecture {kernel.name} is for",
                remedies=["name it with --arch"],
            )
        if architectures and target not in architectures:
            continue
        barriers = block_barriers if block_barriers is not None else kernel.barriers
        try:
            answer = occupancy(
                target,
                threads_per_block,
                kernel.registers_per_thread,
                kernel.static_shared_memory + dynamic_shared_memory,
                shared_memory_config=shared_memory_config,
                block_barriers=1 if barriers is None else barriers,
            )
        except OccupancyError as error:
            found.append(BuiltKernel(kernel, None, error.message))
            continue
        found.append(BuiltKernel(kernel, answer))
    if not found:
        wanted = ", ".join(f"{major}.{minor}" for major, minor in architectures)
        raise UsageError(f"the build has no kernel for {wanted}", remedies=["leave out --arch to see all"])
    return tuple(found)


def recorded_launch(run: Run, record: StageRecord) -> KernelProfile:
    """The recorded launch of a stage: block size, registers and shared memory as the GPU ran it.

    Raises:
        RunError: if the run has no report of the stage.
        ReportError: if the report cannot be read.
    """
    from gemmprof.analysis.reading.report import read_report

    stage = record.stage
    for result in run.results:
        if result.report is None or run.record_of(result) != record:
            continue
        launch = stage_launch(run, result, read_report(run.report_path(result.report), source=False))
        if launch is not None:
            return launch
    raise RunError(
        f"{run.directory}: the run has no profile of stage {stage.number} ({stage.title})",
        remedies=[
            f"gemmprof collect --ladder {stage.ladder} --stage {stage.number} on a machine with a GPU",
            "give --threads and --regs instead",
        ],
    )


def launch_occupancies(
    paths: Iterable[Path], selection: Selection = EVERYTHING
) -> tuple[tuple[tuple[KernelProfile, LaunchOccupancy | NotCollected], ...], tuple[GemmprofError, ...]]:
    """Every selected launch of the inputs with its occupancy, and why others could not be read.

    Raises:
        UsageError: if nothing matches the selection.
        ReportError, RunError: the first failure, if nothing could be read.
    """
    from gemmprof.analysis.reading.report import ReportReader
    from gemmprof.analysis.session import selected_reports

    reports, refused = selected_reports(paths, selection)
    failures = list(refused)
    launches: list[tuple[KernelProfile, LaunchOccupancy | NotCollected]] = []
    for report, only in reports.items():
        try:
            with ReportReader(report) as reader:
                launches += [(profile, analyse(profile)) for profile in reader.profiles(only=only)]
        except GemmprofError as error:
            failures.append(error)
    if failures and not launches:
        raise failures[0]
    return tuple(launches), tuple(failures)
