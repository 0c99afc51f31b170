"""Joins per-instruction metrics with SASS and CUDA lines: by absolute address, never by position.

Nsight Compute stores each source metric with its own list of addresses, and the lists of two metrics differ in
length. Lines are keyed by (file, line), so that line 12 of a header and line 12 of the kernel stay two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gemmprof.model import Instruction, KernelProfile


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the code: one SASS instruction, or one CUDA line with all its instructions.

    Attributes:
        addresses: absolute PCs, ascending; one for an instruction.
        sass: text of the instruction; '' for a line of several instructions.
        file: path on the machine that compiled the kernel, untrusted; None without line information.
        line: 1-based line number in ``file``.
        text: the CUDA source of the line, untrusted; '' if the report carries none.
    """

    addresses: tuple[int, ...]
    sass: str = ""
    file: str | None = None
    line: int | None = None
    text: str = ""

    @property
    def label(self) -> str:
        """Short name: ``kernel.cu:42``, else the address."""
        if self.file is None or self.line is None:
            return f"0x{self.addresses[0]:x}" if self.addresses else "unknown"
        name = self.file.replace("\\", "/").rsplit("/", 1)[-1]
        return f"{name}:{self.line}"
