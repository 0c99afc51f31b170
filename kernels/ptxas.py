"""What the assembler says of each kernel: ``ptxas -v`` read into numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gemmprof import ptxas

_DECIDING = ("false", "true", "int", "long")
_MANGLED_ARGUMENT = re.compile(r"I(?:N\w+?E|\d+[A-Za-z_]\w*?|f)*?(Lb\d|i|l)E")
"""The first of a mangled name's template arguments that is a bool or an integer type, names of types before it."""


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
    def is_main(self) -> bool:
        """Whether large, whole, aligned problems run this kernel, by the ladders' convention.

        That is a stage's only kernel called ``…gemm…``, or the one whose first template argument is ``false`` (no
        bounds guards) or ``int`` (32-bit indices), types of elements and tiles before it not counted.
        """
        if "gemm" not in self.kernel.partition("<")[0]:
            return False
        mangled = _MANGLED_ARGUMENT.search(self.kernel)
        if mangled is not None:
            return mangled[1] in ("Lb0", "i")
        _, _, arguments = self.kernel.partition("<")
        deciding = next(
            (word for item in arguments.rstrip(">").split(",") if (word := item.strip()) in _DECIDING), None
        )
        return deciding in (None, "false", "int")

    @property
    def spill_bytes(self) -> int:
        """Bytes spilled a thread, stores and loads together."""
        return self.spill_stores + self.spill_loads


def parse_ptxas(text: str) -> tuple[KernelResources, ...]:
    """Every kernel in the output of ``ptxas -v``, in the order of its source names, then architectures."""
    found = ptxas.parse_ptxas(text)
    names = demangle([kernel.name for kernel in found])
    kernels = [
        KernelResources(
            kernel=name,
            architecture=kernel.architecture,
            registers_per_thread=kernel.registers_per_thread,
            static_shared_memory=kernel.static_shared_memory,
            stack_frame=kernel.stack_bytes,
            spill_stores=kernel.spill_store_bytes or 0,
            spill_loads=kernel.spill_load_bytes or 0,
        )
        for name, kernel in zip(names, found, strict=True)
    ]
    return tuple(sorted(kernels, key=lambda k: (k.kernel, k.architecture)))


def demangle(names: list[str]) -> list[str]:
    """Function names without namespace and parameters; unchanged where no demangler is installed."""
    readable = ptxas.demangle(names)
    return names if readable == names else [_short(name) for name in readable]


def _short(name: str) -> str:
    """``void warptiled::sgemm_warptiled<false, true>(int, …)`` as ``sgemm_warptiled<false, true>``."""
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
