"""Launches made by hand, for what no recorded report shows: other versions of ncu, missing halves, odd places."""

from __future__ import annotations

from collections.abc import Mapping

from gemmprof.model import (
    Device,
    Instances,
    Instruction,
    KernelProfile,
    LaunchStatistics,
    MetricValue,
    Source,
)

BASE = 0x7F0000000000
"""Address of the first instruction."""


def launch(
    metrics: Mapping[str, MetricValue] | None = None,
    *,
    per_instruction: Mapping[str, Mapping[int, int]] | None = None,
    instructions: tuple[Instruction, ...] = (),
    files: Mapping[str, str] | None = None,
    capability: tuple[int, int] = (9, 0),
) -> KernelProfile:
    """A launch with these scalars, and per-instruction metrics as {metric: {offset: value}}.

    As in real reports, the scalar of a per-instruction metric is the sum over its instances.
    """
    by_address = per_instruction or {}
    sums = {name: sum(values.values()) for name, values in by_address.items()}
    return KernelProfile(
        index=0,
        report="made.ncu-rep",
        name="made(float *)",
        function_name="made",
        mangled_name="_Z4madePf",
        device=Device("Test GPU", capability),
        launch=LaunchStatistics((1, 1, 1), (32, 1, 1)),
        metrics={**sums, **(metrics or {})},
        instances={
            name: Instances(tuple(BASE + offset for offset in values), tuple(values.values()))
            for name, values in by_address.items()
        },
        source=Source(instructions, files or {}, BASE if instructions else 0),
    )


def code(*lines: tuple[str, str | None, int | None]) -> tuple[Instruction, ...]:
    """Instructions 16 bytes apart from (SASS, file, line)."""
    return tuple(
        Instruction(BASE + 16 * index, sass, file, line) for index, (sass, file, line) in enumerate(lines)
    )
