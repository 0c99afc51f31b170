"""What the compiler says about its kernels: the output of ``nvcc -Xptxas -v`` (``ptxas -v``)."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gemmprof.base import system


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What one kernel of a build takes, before it is launched.

    Attributes:
        name: the kernel as the tool names it, usually mangled; untrusted text.
        architecture: the compiler's target, for example ``sm_90``.
        registers_per_thread: registers.
        static_shared_memory: bytes per block without the driver's reserve.
        barriers: block barriers, None where the tool does not say.
        stack_bytes: stack frame per thread.
        local_bytes: local memory per thread outside the stack, None where the tool does not say.
        spill_store_bytes, spill_load_bytes: bytes of spill code per thread, None where the tool does not say.
    """

    name: str
    architecture: str
    registers_per_thread: int
    static_shared_memory: int = 0
    barriers: int | None = None
    stack_bytes: int = 0
    local_bytes: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None

    @property
    def spill_bytes(self) -> int:
        """Bytes spilled a thread, stores and loads together, 0 where the tool does not say."""
        return (self.spill_store_bytes or 0) + (self.spill_load_bytes or 0)

    @property
    def warning(self) -> str:
        """What is wrong with the kernel's registers, '' if nothing is."""
        stores, loads = self.spill_store_bytes, self.spill_load_bytes
        if stores or loads:
            return f"spills: {stores or 0:,} bytes stored, {loads or 0:,} bytes loaded per thread"
        if stores is None and (self.stack_bytes or self.local_bytes):
            size = self.stack_bytes + (self.local_bytes or 0)
            return f"{size:,} bytes of stack per thread: spills or local arrays (ptxas -v tells which)"
        return ""


_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)' for '(?P<arch>[^']+)'")
_PROPERTIES = re.compile(r"Function properties for (?P<name>\S+)")
_SPILLS = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)
_USED = re.compile(r"Used (?P<registers>\d+) registers")
_BARRIERS = re.compile(r"used (?P<barriers>\d+) barriers")
# Compilers before CUDA 5 wrote "4096+16 bytes smem": static plus parameters.
_SHARED = re.compile(r"(?P<static>\d+)(?:\+(?P<system>\d+))? bytes smem")


# A hundred thousand names take a second; one of 300 letters may stand for gigabytes, each part naming the last twice.
DEMANGLE_SECONDS, DEMANGLED_BYTES = 5.0, 64 << 20


def parse_ptxas(text: str) -> tuple[KernelResources, ...]:
    """Every kernel of the output, in its order; other compilers' and other tools' lines are skipped."""
    return tuple(_kernels(text.splitlines()))


def demangle(names: Sequence[str]) -> list[str]:
    """C++ names in readable form where a demangler is installed (cu++filt or c++filt), else as they are."""
    tool = shutil.which("cu++filt") or shutil.which("c++filt")
    if tool is None or not names:
        return list(names)
    text = "\n".join(names) + "\n"
    try:
        answer = system.ask_tool([tool], given=text, seconds=DEMANGLE_SECONDS, most=DEMANGLED_BYTES)
    except (OSError, subprocess.TimeoutExpired):
        return list(names)
    lines = answer.stdout.splitlines()
    return lines if answer.returncode == 0 and len(lines) == len(names) else list(names)


def with_short_names(kernels: Sequence[KernelResources]) -> tuple[KernelResources, ...]:
    """The kernels under the names that people gave them, in the order of those names, then of architectures."""
    names = demangle([kernel.name for kernel in kernels])
    named = (replace(kernel, name=short_name(name)) for name, kernel in zip(names, kernels, strict=True))
    return tuple(sorted(named, key=lambda kernel: (kernel.name, kernel.architecture)))


def short_name(name: str) -> str:
    """A demangled name without namespace and parameters; a mangled one as it is.

    ``void warptiled::sgemm_warptiled<false, true>(int, …)`` becomes ``sgemm_warptiled<false, true>``.
    """
    if "(" not in name:
        return name
    depth = 0
    for position, character in enumerate(name):
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0:
            name = name[:position]
            break
    # NVIDIA's demangler writes template arguments as casts.
    name = re.sub(r"\(bool\)([01])", lambda match: ("false", "true")[int(match[1])], name)
    name = name.replace("(int)", "")
    head, angle, arguments = name.partition("<")
    return head.split()[-1].rpartition("::")[2] + angle + arguments


def _kernels(lines: Iterable[str]) -> Iterable[KernelResources]:
    entry: tuple[str, str] | None = None
    described = ""
    stack = stores = loads = 0
    for line in lines:
        if match := _ENTRY.search(line):
            entry = (match["name"], match["arch"])
            described, stack, stores, loads = match["name"], 0, 0, 0
        elif match := _PROPERTIES.search(line):
            # Device functions that were not inlined have properties of their own.
            described = match["name"]
        elif (match := _SPILLS.search(line)) and entry is not None and described == entry[0]:
            stack, stores, loads = int(match["stack"]), int(match["stores"]), int(match["loads"])
        elif (match := _USED.search(line)) and entry is not None:
            barriers = _BARRIERS.search(line)
            shared = _SHARED.search(line)
            yield KernelResources(
                name=entry[0],
                architecture=entry[1],
                registers_per_thread=int(match["registers"]),
                static_shared_memory=int(shared["static"]) + int(shared["system"] or 0) if shared else 0,
                barriers=int(barriers["barriers"]) if barriers else None,
                stack_bytes=stack,
                spill_store_bytes=stores,
                spill_load_bytes=loads,
            )
            entry = None
