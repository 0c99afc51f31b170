"""Which of a stage's kernels is the main one: that which large, whole, aligned problems run.

A stage says so twice, in its own terms, and a test on the GPU compares: it lists that kernel first (the array that
``GEMMPROF_EXPORT_STAGE`` exports), and it gives it the template arguments that `is_main` knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gemmprof.gpu.toolchain import KernelResources

_DECIDING = ("false", "true", "int", "long")
# The first of a mangled name's template arguments that is a bool or an integer type, names of types before
# it.
_MANGLED_ARGUMENT = re.compile(r"I(?:N\w+?E|\d+[A-Za-z_]\w*?|f)*?(Lb\d|i|l)E")


def is_main(name: str) -> bool:
    """Whether a kernel of this name is its stage's main one (of several tiles and types, one of the main ones).

    That is a stage's only kernel called ``…gemm…``, or the one whose first template argument is ``false`` (no bounds
    guards) or ``int`` (32-bit indices), types of elements and tiles before it not counted.
    """
    if "gemm" not in name.partition("<")[0]:
        return False
    mangled = _MANGLED_ARGUMENT.search(name)
    if mangled is not None:
        return mangled[1] in ("Lb0", "i")
    _, _, arguments = name.partition("<")
    words = (item.strip() for item in arguments.rstrip(">").split(","))
    return next((word for word in words if word in _DECIDING), None) in (None, "false", "int")


def main_kernels(kernels: Iterable[KernelResources]) -> tuple[KernelResources, ...]:
    """The main kernels of a stage, the one with most registers (the largest tile) first; all of them if none is."""
    every = tuple(kernels)
    main = tuple(kernel for kernel in every if is_main(kernel.name)) or every
    return tuple(sorted(main, key=lambda kernel: -kernel.registers_per_thread))
