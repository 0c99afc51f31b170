"""Launches of a few instructions written by hand, as `analysis.explanation` sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from profiles import code, launch

from gemmprof import metrics
from gemmprof.analysis.explanation.demands.work import Work, work
from gemmprof.model import MetricValue

SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
"""What the metrics of samples by stall reason begin with."""


def made(
    *sass: str,
    executed: int | Sequence[int] = 100,
    stalls: Mapping[str, Mapping[int, int]] | None = None,
    counted: Mapping[str, MetricValue] | None = None,
    capability: tuple[int, int] = (9, 0),
    shared_memory_config: int | None = None,
    places: Sequence[tuple[str, int]] | None = None,
) -> Work:
    """A launch of these instructions.

    Args:
        sass: the code, an instruction each; a branch names its target by its place times 16.
        executed: executions of each by a warp, or of all.
        stalls: samples by stall reason and place of the instruction.
        counted: metrics of the launch.
        capability: of the GPU.
        shared_memory_config: bytes set aside for shared memory.
        places: file and line of each; a line of ``made.cu`` each if not given.
    """
    counts = [executed] * len(sass) if isinstance(executed, int) else list(executed)
    where = places or [("made.cu", 1 + place) for place in range(len(sass))]
    lines = code(*((text, file, line) for text, (file, line) in zip(sass, where, strict=True)))
    per_instruction = {metrics.INSTRUCTIONS_BY_ADDRESS: {16 * at: count for at, count in enumerate(counts)}}
    for reason, samples in (stalls or {}).items():
        per_instruction[f"{SAMPLES}{reason}"] = {16 * at: count for at, count in samples.items()}
    profile = launch(counted, per_instruction=per_instruction, instructions=lines, capability=capability)
    statistics = replace(profile.launch, shared_memory_config=shared_memory_config)
    return work(replace(profile, launch=statistics))
