"""Which stages tests compile: those that they call, and those that are not what the tables' lines were made from."""

from __future__ import annotations

import compiled_resources

from gemmprof.gpu.devices import Tool

CALLED = ("naive", "vectorized", "hgemm_wgmma")
"""Stages whose operators tests call without a GPU: of 32 and 16 bits (one of 8 bits takes twice as long as these)."""


def as_noted(nvcc: Tool) -> set[str]:
    """Stages whose lines were made by this compiler from what their sources are now."""
    lines = compiled_resources.MADE_FROM.read_text(encoding="utf-8").splitlines()
    return {name for name, value in compiled_resources.made_from(nvcc).items() if f"{name},{value}" in lines}
