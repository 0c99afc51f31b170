"""Everything that ``ncu_report`` says about a report, as a pickle: the reference for our own reading.

Run as a script with the report's path and the step from one launch to the next (1: all of them), because the library
keeps memory and may abort the process.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

import ncu_report


def instances(metric: Any) -> tuple[list[Any], list[Any]] | None:
    count = metric.num_instances()
    if not count:
        return None
    ids = metric.correlation_ids()
    keys = [ids.value(i) for i in range(count)] if ids is not None else list(range(count))
    return keys, [metric.value(i) for i in range(count)]


def timeline(action: Any, metrics: dict[str, Any]) -> dict[str, tuple[list[int], list[float]]] | None:
    """Times and values of every sampled metric as the library aligns them; None before ncu_report 2026.3."""
    if not hasattr(action, "timelines"):
        return None
    timelines = action.timelines()
    if timelines is None:
        return {}
    found = {}
    for name, metric in metrics.items():
        if name.startswith("profiler__") or metric.num_instances() == 0:
            continue
        aligned = timelines.aligned_metric(metric)
        if aligned is not None:
            keys, values = instances(aligned) or ([], [])
            found[name] = (keys, values)
    return found


def launch(action: Any) -> dict[str, Any]:
    metrics = {name: action.metric_by_name(name) for name in action.metric_names()}
    function_pcs = metrics.get("launch__function_pcs")
    base = function_pcs.as_uint64(0) if function_pcs is not None else 0
    lines = []
    for offset in range(0, 64 * 16, 16):
        info = action.source_info(base + offset) if base else None
        lines.append((info.file_name(), info.line()) if info is not None else None)
    return {
        "demangled": action.name(action.NameBase_DEMANGLED),
        "function": action.name(action.NameBase_FUNCTION),
        "mangled": action.name(action.NameBase_MANGLED),
        "scalars": {name: metric.value() for name, metric in metrics.items()},
        "units": {name: metric.unit() or "" for name, metric in metrics.items()},
        "instances": {name: found for name, metric in metrics.items() if (found := instances(metric))},
        "timeline": timeline(action, metrics),
        "rules": action.rule_results_as_dicts(),
        "files": {path: str(text) for path, text in action.source_files().items()},
        "base": base,
        "sass": [action.sass_by_pc(base + offset) for offset in range(0, 64 * 16, 16)] if base else [],
        "lines": lines,
        "nvtx": nvtx(action),
    }


def nvtx(action: Any) -> list[str]:
    state = action.nvtx_state()
    if state is None:
        return []
    domains = [state.domain_by_id(identity) for identity in state.domains()]
    return [name for domain in domains for name in (*domain.start_end_ranges(), *domain.push_pop_ranges())]


def main() -> None:
    context = ncu_report.load_report(sys.argv[1])
    actions = [action for part in context for action in part]
    launches = [launch(action) for action in actions[:: int(sys.argv[2])]]
    pickle.dump(launches, sys.stdout.buffer)


if __name__ == "__main__":
    main()
