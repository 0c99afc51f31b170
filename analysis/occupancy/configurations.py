"""Configurations that come out of something else: a list of built kernels, a stage of a run."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemmprof.analysis.inputs.selection import stage_launch
from gemmprof.analysis.occupancy.calculator import Occupancy, occupancy
from gemmprof.base import system
from gemmprof.base.errors import DeviceError, OccupancyError, RunError, UsageError
from gemmprof.gpu.arch import limits_of, parse_compute_capability
from gemmprof.gpu.devices import KernelResources, cuobjdump_path, parse_ptxas
from gemmprof.model import KernelProfile, StageRecord
from gemmprof.runs.directory import Run


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """One kernel of a build and its occupancy; ``problem`` says why there is none."""

    resources: KernelResources
    occupancy: Occupancy | None
    problem: str = ""


def read_ptxas(text: str) -> tuple[KernelResources, ...]:
    """Every kernel in what ``nvcc -Xptxas -v`` wrote; UsageError if there is none."""
    kernels = parse_ptxas(text)
    if not kernels:
        first = next((line for line in text.splitlines() if line.strip()), "nothing at all")
        remedy = "compile with `nvcc -Xptxas -v …` and give what it wrote to standard error (2>&1)"
        raise UsageError("no kernel in the ptxas output", remedy, found=first[:120])
    return kernels


def built_kernels(
    kernels: Iterable[KernelResources],  # as ptxas or cuobjdump reported them
    threads_per_block: int,
    *,
    dynamic_shared_memory: int = 0,  # bytes per block asked for at the launch, on top of the kernels' static ones
    shared_memory_config: int | None = None,  # carve-out in bytes; None: the largest
    block_barriers: int | None = None,  # None: what the build says, else 1
    architectures: Sequence[tuple[int, int]] = (),  # keep the kernels for these only; all if empty
    default_architecture: tuple[int, int] | None = None,  # of kernels whose target the build does not name
) -> tuple[BuiltKernel, ...]:
    """The occupancy of every kernel of a build at one block size; UsageError if no kernel is left."""
    found = []
    for kernel in kernels:
        barriers = block_barriers if block_barriers is not None else kernel.barriers
        try:
            built_for = kernel.architecture
            target = parse_compute_capability(built_for) if built_for else default_architecture
            if target is None:
                what = f"the build does not say which architecture {kernel.name} is for"
                raise UsageError(what, "name it with --arch")
            if architectures and target not in architectures:
                continue
            size = threads_per_block, kernel.registers_per_thread
            shared = kernel.static_shared_memory + dynamic_shared_memory
            count = 1 if barriers is None else barriers
            answer = occupancy(
                target, *size, shared, shared_memory_config=shared_memory_config, block_barriers=count
            )
            found.append(BuiltKernel(kernel, answer))
        except OccupancyError as error:
            found.append(BuiltKernel(kernel, None, error.message))
    if not found:
        wanted = ", ".join(f"{major}.{minor}" for major, minor in architectures)
        raise UsageError(f"the build has no kernel for {wanted}", "leave out --arch to see all")
    return tuple(found)


def recorded_launch(run: Run, record: StageRecord) -> KernelProfile:
    """The recorded launch of a stage: block size, registers and shared memory as the GPU ran it; RunError if the run
    has no report of the stage, ReportError if it cannot be read.
    """
    from gemmprof.analysis.reading.report import read_report

    stage = record.stage
    for result in run.results:
        if result.report is None or run.record_of(result) != record:
            continue
        launch = stage_launch(run, result, read_report(run.report_path(result.report), source=False))
        if launch is not None:
            return launch
    what = f"{run.directory}: the run has no profile of stage {stage.number} ({stage.title})"
    collect = f"gemmprof collect --ladder {stage.ladder} --stage {stage.number} on a machine with a GPU"
    raise RunError(what, collect, "give --threads and --regs instead")


# --- Cubins -----------------------------------------------------------------------------------------------------------

_ARCH = re.compile(r"^arch = (\S+)", re.MULTILINE)
_LISTED = re.compile(r"^ELF file.*\.(sm_\w+)\.cubin\s*$", re.MULTILINE)
_FUNCTION = re.compile(r"^\s*Function (.+):$")
_USAGE = re.compile(r"^\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")

_SECONDS = 120
_PRINTED = 1 << 29  # bytes: a library of 50 MiB prints as much


def find_cuobjdump() -> Path:
    """cuobjdump: on PATH, in the CUDA toolkit, or in the package ``nvidia-cuda-cuobjdump``; DeviceError if in none."""
    if (path := cuobjdump_path()) is not None:
        return path
    raise DeviceError(
        "cuobjdump was not found: it reads the resource usage out of compiled files",
        "pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm",
        "set CUDA_HOME to a CUDA toolkit, or put its bin folder on PATH",
        "compile with `nvcc -Xptxas -v … 2>&1 | gemmprof occupancy --ptxas - --threads N` instead",
    )


def read_cubin(path: str | Path) -> tuple[KernelResources, ...]:
    """The kernels of a cubin, object file, library or executable, for every architecture that it was compiled for;
    UsageError if the file does not exist or holds no kernel, DeviceError if there is no cuobjdump.
    """
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"{file} does not exist")
    tool = find_cuobjdump()
    answer = _ask(tool, "--dump-resource-usage", file)
    # Of a bare cubin the resource usage names no architecture; the list of contents does.
    listed = None if _ARCH.search(answer.stdout) else _LISTED.search(_ask(tool, "--list-elf", file).stdout)
    kernels = parse_resource_usage(answer.stdout, architecture=listed[1] if listed else "")
    if not kernels:
        found = (answer.stderr.strip() or answer.stdout.strip()).splitlines()
        raise UsageError(
            f"{file} holds no compiled kernel",
            "give a cubin, or an object, library or executable that nvcc made",
            "code that is PTX only has no registers yet: compile it for a target such as -arch=sm_90",
            found=found[0] if found else "",
        )
    return kernels


def read_sass(path: str | Path) -> str:
    """What ``cuobjdump --dump-sass`` prints of a compiled file; DeviceError if there is no cuobjdump, or it fails."""
    return _ask(find_cuobjdump(), "--dump-sass", Path(path)).stdout


def _ask(tool: Path, option: str, file: Path) -> subprocess.CompletedProcess[str]:
    try:
        # By its whole path: a file's name may begin as an option does.
        return system.ask_tool([str(tool), option, str(file.absolute())], seconds=_SECONDS, most=_PRINTED)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeviceError(f"{tool} could not read {file}", found=str(error)) from error


def parse_resource_usage(text: str, *, architecture: str = "") -> tuple[KernelResources, ...]:
    """The kernels in the output of ``cuobjdump --dump-resource-usage``, in its order; ``architecture``: the target
    (``sm_90``) of those that the text names none for, as of a bare cubin.
    """
    name, kernels = "", []
    for line in text.splitlines():
        if match := _ARCH.match(line):
            architecture = match[1]
        elif match := _FUNCTION.match(line):
            name = match[1]
        elif (match := _USAGE.match(line)) and name:
            registers, stack, shared, local = (int(group) for group in match.groups())
            static = shared - _reserve_within(architecture, shared)
            found = KernelResources(
                name, architecture, registers, static, stack_bytes=stack, local_bytes=local
            )
            kernels.append(found)
            name = ""
    return tuple(kernels)


def _reserve_within(architecture: str, shared: int) -> int:
    """Bytes of ``SHARED`` that are the driver's reserve and not the kernel's; ``ptxas -v`` never counts it."""
    try:
        limits = limits_of(architecture)
    except OccupancyError:
        return 0
    if not limits.cubin_counts_reserve or shared < limits.reserved_shared_memory_per_block:
        return 0
    return limits.reserved_shared_memory_per_block
