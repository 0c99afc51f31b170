"""What the assembler says of each kernel: ``ptxas -v`` read into numbers."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True, slots=True)
class KernelResources:
    """Resources of one kernel on one architecture, in registers a thread and bytes.

    Attributes:
        kernel: the function with its template arguments, for example ``sgemm_block2d<false>``.
        architecture: the compiler's name of the target, for example ``sm_90``.
        spill_stores, spill_loads: bytes that a thread moves to and from local memory for want of registers.
        static_shared_memory: bytes a block declares; dynamic shared memory is asked for at launch and is not here.
    """

    kernel: str
    architecture: str
    registers_per_thread: int
    static_shared_memory: int
    stack_frame: int
    spill_stores: int
    spill_loads: int

    @property
    def spill_bytes(self) -> int:
        """Bytes spilled a thread, stores and loads together."""
        return self.spill_stores + self.spill_loads


def parse_ptxas(text: str) -> tuple[KernelResources, ...]:
    """Every kernel in the output of ``ptxas -v``, in the order of its source names, then architectures."""
    found: list[tuple[str, str, list[int]]] = []
    for line in text.splitlines():
        if match := _ENTRY.search(line):
            found.append((match.group(1), match.group(2), [0, 0, 0, 0, 0]))
        elif not found:
            continue
        elif match := _STACK.search(line):
            found[-1][2][2:5] = map(int, match.groups())
        elif match := _USED.search(line):
            found[-1][2][0] = int(match.group(1))
            shared = _SHARED.search(line)
            found[-1][2][1] = int(shared.group(1)) if shared else 0
    names = demangle([name for name, _, _ in found])
    kernels = [
        KernelResources(name, architecture, *numbers)
        for name, (_, architecture, numbers) in zip(names, found, strict=True)
    ]
    return tuple(sorted(kernels, key=lambda k: (k.kernel, k.architecture)))


def demangle(names: list[str]) -> list[str]:
    """Function names without namespace and parameters; unchanged where no demangler is installed."""
    tool = shutil.which("cu++filt") or shutil.which("c++filt")
    if tool is None or not names:
        return names
    completed = subprocess.run([tool, *names], capture_output=True, text=True, check=False)
    lines = completed.stdout.splitlines()
    if completed.returncode != 0 or len(lines) != len(names):
        return names
    return [_short(line) for line in lines]


def _short(name: str) -> str:
    """``void warptiled::sgemm_warptiled<false, true>(int, …)`` as ``sgemm_warptiled<false, true>``."""
    depth = 0
    for position, character in enumerate(name):
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0:
            name = name[:position]
            break
    name = re.sub(r"\((?:bool|int)\)", "", name)
    head, angle, arguments = name.partition("<")
    return head.split()[-1].rpartition("::")[2] + angle + arguments
