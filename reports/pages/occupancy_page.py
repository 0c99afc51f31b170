"""The interactive occupancy calculator: as a part of a kernel's page, and as a page of its own.

The numbers that it computes with are the table of `gemmprof.gpu.arch`, embedded as JSON; the arithmetic is
``templates/occupancy.js``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from markupsafe import Markup

from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.occupancy.calculator import Occupancy, most_shared_memory_per_block
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy
from gemmprof.gpu.arch import LIMITS, PRODUCTS
from gemmprof.model import ArchLimits
from gemmprof.reports.pages.environment import document, filled

LARGEST = "largest"  # the carve-out that is chosen when nobody named one


def _row(limits: ArchLimits) -> dict[str, Any]:
    known = [one.name for one in PRODUCTS if one.compute_capability == limits.compute_capability]
    return {"label": limits.label, "products": ", ".join(known[:3]), **asdict(limits)}


def preset(answer: Occupancy, identifier: str = "calculator") -> dict[str, Any]:
    """What a calculator starts with: this configuration (sizes in bytes), and the limits of every architecture."""
    largest = answer.shared_memory_config == answer.limits.shared_memory_configs[0]
    return {
        "id": identifier,
        "answer": answer,
        "config": LARGEST if largest else str(answer.shared_memory_config),
        "most_shared": most_shared_memory_per_block(answer.limits),
        "limits": [_row(limits) for limits in LIMITS.values()],
    }


def calculator(analysis: KernelAnalysis, prefix: str = "") -> Markup | None:
    """The calculator of a kernel's page, set to its launch; None where the launch's numbers are not known."""
    result = analysis.get(LaunchOccupancy)
    if not isinstance(result, LaunchOccupancy) or result.calculated is None:
        return None
    # The page around it brings ``occupancy.css`` and ``occupancy.js``.
    return filled("occupancy_calculator.html", calculator=preset(result.calculated, f"{prefix}calculator"))


def page_html(start: Mapping[str, Any]) -> str:
    """A whole page with nothing but the calculator; it works from a file, without a network."""
    labels = [limits.label for limits in LIMITS.values()]
    article = filled("occupancy_page.html", calculator=start, labels=labels)
    return document("CUDA occupancy calculator", [article])
