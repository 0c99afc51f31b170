"""An explanation as JSON: format ``gemmprof.explain/1``, described by ``explain-1.schema.json`` beside this
file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from importlib import resources
from typing import Any

from gemmprof.model import CodePlace, Explanation, Finding

FORMAT = "gemmprof.explain/1"


def record(kernels: Iterable[Explanation]) -> dict[str, Any]:
    """Every launch in the report's order, as the schema says."""
    return {"format": FORMAT, "kernels": [_kernel(kernel) for kernel in kernels]}


def schema() -> dict[str, Any]:
    """The JSON schema of `record`."""
    text = (
        resources.files("gemmprof.reports.explanations").joinpath("explain-1.schema.json").read_text("utf-8")
    )
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _kernel(kernel: Explanation) -> dict[str, Any]:
    limit = kernel.at_limit
    return {
        "launch": kernel.launch,
        "report": kernel.report,
        "name": kernel.name,
        "nvtx": list(kernel.nvtx),
        "duration_ns": _finite(kernel.duration_ns),
        "trust": list(kernel.trust),
        "at_limit": None if limit is None else {"resource": limit.resource, "share": round(limit.share, 4)},
        "findings": [finding_record(finding) for finding in kernel.findings],
        "together": None if kernel.together is None else round(kernel.together, 4),
    }


def finding_record(finding: Finding) -> dict[str, Any]:
    """One finding, as it stands in a launch's ``findings``."""
    return {
        "cause": finding.cause,
        "saves": round(finding.saves, 4),
        "saves_low": round(finding.saves_low, 4),
        "saves_high": round(finding.saves_high, 4),
        "places": [_place(place) for place in finding.places],
        "evidence": [
            {"metric": item.metric, "value": _finite(item.value), "unit": item.unit}
            for item in finding.evidence
        ],
        "change": finding.change,
    }


def _place(place: CodePlace) -> dict[str, Any]:
    found: dict[str, Any] = {"file": place.file, "line": place.line, "share": round(place.share, 4)}
    if place.sass:
        found["sass"] = place.sass
    if place.inlined:
        found["inlined"] = list(place.inlined)
    return found


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
