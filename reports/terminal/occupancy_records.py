"""Occupancy as plain data for ``--json``: names as in the Python API, percentages from 0 to 100."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gemmprof.analysis.occupancy.advice import suggest
from gemmprof.analysis.occupancy.calculator import Occupancy
from gemmprof.analysis.occupancy.configurations import BuiltKernel
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy
from gemmprof.analysis.occupancy.reasoning import explain
from gemmprof.base.errors import OccupancyError
from gemmprof.gpu.arch import Product
from gemmprof.model import KernelProfile, NotCollected


def occupancy_data(answer: Occupancy) -> dict[str, Any]:
    """One answer of the calculator."""
    return {
        "compute_capability": answer.limits.label,
        "threads_per_block": answer.threads_per_block,
        "registers_per_thread": answer.registers_per_thread,
        "shared_memory_per_block": answer.shared_memory_per_block,
        "shared_memory_config": answer.shared_memory_config,
        "block_barriers": answer.block_barriers,
        "cluster_size": answer.cluster_size,
        "blocks_per_sm": answer.blocks_per_sm,
        "active_warps_per_sm": answer.active_warps_per_sm,
        "max_warps_per_sm": answer.limits.max_warps_per_sm,
        "theoretical_occupancy_percent": 100 * answer.theoretical_occupancy,
        "limiters": list(answer.limiters),
        "binding": list(answer.binding),
        "block_limits": dict(answer.block_limits),
        "registers_allocated_per_block": answer.registers_allocated_per_block,
        "shared_memory_allocated_per_block": answer.shared_memory_allocated_per_block,
        "registers_left": answer.registers_left,
        "shared_memory_left": answer.shared_memory_left,
        "warps_left": answer.warps_left,
    }


def answers_data(answers: Sequence[tuple[Product, Occupancy | OccupancyError]]) -> list[dict[str, Any]]:
    """Answers for several GPUs, each with its reasoning and with what would help; refusals with their reason."""
    rows = []
    for target, answer in answers:
        if isinstance(answer, OccupancyError):
            label = ".".join(map(str, target.compute_capability))
            rows.append({"gpu": target.name or None, "compute_capability": label, "error": answer.message})
            continue
        row = {"gpu": target.name or None, **occupancy_data(answer)}
        if target.sm_count is not None:
            row["sm_count"] = target.sm_count
            row["blocks_per_gpu"] = answer.max_active_blocks(target.sm_count)
        if answer.cluster_size > 1 and target.sm_count is not None:
            row["max_active_clusters_bound"] = answer.max_active_clusters(target.sm_count)
        row["reasoning"] = [step.text for step in explain(answer)]
        row["what_would_help"] = [
            {
                "change": suggestion.change,
                "blocks_per_sm": suggestion.occupancy.blocks_per_sm,
                "theoretical_occupancy_percent": 100 * suggestion.occupancy.theoretical_occupancy,
            }
            for suggestion in suggest(answer)
        ]
        rows.append(row)
    return rows


def build_data(kernels: Sequence[BuiltKernel]) -> list[dict[str, Any]]:
    """Every kernel of a build."""
    return [
        {
            "kernel": kernel.resources.name,
            "architecture": kernel.resources.architecture,
            "registers_per_thread": kernel.resources.registers_per_thread,
            "static_shared_memory": kernel.resources.static_shared_memory,
            "barriers": kernel.resources.barriers,
            "stack_bytes": kernel.resources.stack_bytes,
            "spill_store_bytes": kernel.resources.spill_store_bytes,
            "spill_load_bytes": kernel.resources.spill_load_bytes,
            "warning": kernel.resources.warning or None,
            "occupancy": None if kernel.occupancy is None else occupancy_data(kernel.occupancy),
            "error": kernel.problem or None,
        }
        for kernel in kernels
    ]


def launches_data(
    launches: Sequence[tuple[KernelProfile, LaunchOccupancy | NotCollected]],
) -> list[dict[str, Any]]:
    """Every launch of some reports; null stands for what was not collected."""
    rows: list[dict[str, Any]] = []
    for profile, result in launches:
        row: dict[str, Any] = {
            "report": profile.report,
            "launch": profile.index,
            "kernel": profile.name,
            "gpu": profile.device.name,
        }
        if isinstance(result, NotCollected):
            rows.append({**row, "not_collected": list(result.metrics), "collect_with": result.remedy})
            continue
        rows.append(
            {
                **row,
                "theoretical_occupancy_percent": result.theoretical_percent,
                "achieved_occupancy_percent": result.achieved_percent,
                "even_occupancy_percent": result.even_percent,
                "blocks_per_sm": result.blocks_per_sm,
                "block_limits": {limit.resource: limit.blocks for limit in result.block_limits},
                "limited_by": list(result.limited_by),
                "waves": result.waves,
                "full_waves": result.full_waves,
                "last_wave_blocks": result.last_wave_blocks,
                "losses": [
                    {"kind": loss.kind, "points": loss.points, "text": loss.text} for loss in result.losses
                ],
                "what_would_help": [str(suggestion) for suggestion in result.suggestions],
            }
        )
    return rows
