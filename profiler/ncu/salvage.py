"""How much of a report that ncu was killed over is whole.

ncu appends a block to the report after each kernel, so a killed ncu leaves all finished kernels and at worst a torn
block at the end. `gemmprof.ncurep.ncu_frame` reads the blocks; everything else about reports is the analysis' business.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gemmprof.base.foreign_files import open_file
from gemmprof.ncurep import ncu_frame
from gemmprof.ncurep.wire import WireError


@dataclass(frozen=True, slots=True)
class WholeBlocks:
    """The whole blocks of a report: where the last one ends, and how many kernels they hold."""

    end: int
    kernels: int


def whole_blocks(report: Path) -> WholeBlocks:
    """Walk the blocks of a report up to its end or the first torn one; nothing whole if it is no report."""
    end = kernels = 0
    try:
        with open_file(report) as file:
            size = os.fstat(file.fileno()).st_size

            def read(start: int, stop: int) -> bytes:
                data = os.pread(file.fileno(), stop - start, start)
                if len(data) < stop - start:
                    raise ncu_frame.Torn(f"the file ends at byte {start + len(data)}")
                return data

            if read(0, len(ncu_frame.MAGIC)) != ncu_frame.MAGIC:
                return WholeBlocks(0, 0)
            _, end = ncu_frame.read_head(read, size)
            for block in ncu_frame.blocks(read, end, size):
                end = block.end
                kernels += block.count("kernel")
    except (OSError, WireError):
        pass  # an unreadable or malformed rest is not whole
    return WholeBlocks(end, kernels)


def cut_torn_end(report: Path) -> WholeBlocks:
    """Cut off a torn block at the end of a report that nobody writes any more; returns what is left."""
    whole = whole_blocks(report)
    if whole.kernels and whole.end < report.stat().st_size:
        os.truncate(report, whole.end)
    return whole
