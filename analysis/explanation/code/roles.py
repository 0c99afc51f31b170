"""Warps and threads that take a role of their own: producers that copy for the others, one elected thread."""

from __future__ import annotations

import numpy as np

from gemmprof.analysis.explanation.demands.work import Mask, Work

# Copies from global to shared memory that one thread starts for its block.
TENSOR_COPIES = ("UTMALDG", "UBLKCP")
ONE_THREAD = 1.05  # active threads of an instruction that a single elected thread executes


def tensor_copies(work: Work) -> Mask:
    """The tensor copies and bulk copies (TMA) that ran."""
    copies = work.where(lambda line: line.opcode in TENSOR_COPIES)
    return copies & (work.executed > 0) if len(copies) else copies


def specialised(work: Work) -> bool:
    """Whether warps divide their registers by role: some only copy, and leave or idle when that is done."""
    moved = work.where(lambda line: line.opcode == "USETMAXREG")
    return bool(len(moved)) and bool((work.executed[moved] > 0).any())


def elected(work: Work) -> Mask:
    """What one thread does for its block in a kernel with tensor copies: starting them, and their barriers."""
    alone = (work.executed > 0) & (work.threads <= ONE_THREAD * work.executed)
    return alone if tensor_copies(work).any() else np.zeros_like(alone)
