"""What a compiled file holds: the resource usage of every kernel in a cubin, object, library or executable."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from gemmprof.base import system
from gemmprof.base.errors import DeviceError, OccupancyError, UsageError
from gemmprof.gpu.arch import limits_of
from gemmprof.gpu.ptxas import KernelResources
from gemmprof.gpu.toolchain import cuobjdump_path

_ARCH = re.compile(r"^arch = (\S+)", re.MULTILINE)
_LISTED = re.compile(r"^ELF file.*\.(sm_\w+)\.cubin\s*$", re.MULTILINE)
_FUNCTION = re.compile(r"^\s*Function (.+):$")
_USAGE = re.compile(r"^\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")

_SECONDS = 120
_PRINTED = 1 << 29  # bytes: a library of 50 MiB prints as much


def find_cuobjdump() -> Path:
    """cuobjdump: on PATH, in the CUDA toolkit, or in the Python package ``nvidia-cuda-cuobjdump``.

    Raises:
        DeviceError: if it is in none of them.
    """
    if (path := cuobjdump_path()) is not None:
        return path
    raise DeviceError(
        "cuobjdump was not found: it reads the resource usage out of compiled files",
        remedies=[
            "pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm",
            "set CUDA_HOME to a CUDA toolkit, or put its bin folder on PATH",
            "compile with `nvcc -Xptxas -v … 2>&1 | gemmprof occupancy --ptxas - --threads N` instead",
        ],
    )


def read_cubin(path: str | Path) -> tuple[KernelResources, ...]:
    """The kernels of a cubin, object file, library or executable, for every architecture that it was compiled for.

    Raises:
        UsageError: if the file does not exist or holds no kernel.
        DeviceError: if there is no cuobjdump.
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
            found=found[0] if found else "",
            remedies=[
                "give a cubin, or an object, library or executable that nvcc made",
                "code that is PTX only has no registers yet: compile it for a target such as -arch=sm_90",
            ],
        )
    return kernels


def read_sass(path: str | Path) -> str:
    """What ``cuobjdump --dump-sass`` prints of a compiled file: every function of every architecture.

    Raises:
        DeviceError: if there is no cuobjdump, or it fails.
    """
    return _ask(find_cuobjdump(), "--dump-sass", Path(path)).stdout


def _ask(tool: Path, option: str, file: Path) -> subprocess.CompletedProcess[str]:
    try:
        # By its whole path: a file's name may begin as an option does.
        return system.ask_tool([str(tool), option, str(file.absolute())], seconds=_SECONDS, most=_PRINTED)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeviceError(f"{tool} could not read {file}", found=str(error)) from error


def parse_resource_usage(text: str, *, architecture: str = "") -> tuple[KernelResources, ...]:
    """The kernels in the output of ``cuobjdump --dump-resource-usage``, in its order.

    Args:
        text: what cuobjdump printed.
        architecture: the target of the kernels that the text names none for (a bare cubin), for example ``sm_90``.
    """
    return tuple(_kernels(text, architecture))


def _kernels(text: str, architecture: str) -> Iterator[KernelResources]:
    name = ""
    for line in text.splitlines():
        if match := _ARCH.match(line):
            architecture = match[1]
        elif match := _FUNCTION.match(line):
            name = match[1]
        elif (match := _USAGE.match(line)) and name:
            registers, stack, shared, local = (int(group) for group in match.groups())
            yield KernelResources(
                name=name,
                architecture=architecture,
                registers_per_thread=registers,
                static_shared_memory=shared - _reserve_within(architecture, shared),
                stack_bytes=stack,
                local_bytes=local,
            )
            name = ""


def _reserve_within(architecture: str, shared: int) -> int:
    """Bytes of ``SHARED`` that are the driver's reserve and not the kernel's; ``ptxas -v`` never counts it."""
    try:
        limits = limits_of(architecture)
    except OccupancyError:
        return 0
    if not limits.cubin_counts_reserve or shared < limits.reserved_shared_memory_per_block:
        return 0
    return limits.reserved_shared_memory_per_block
