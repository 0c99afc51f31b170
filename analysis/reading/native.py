"""The worker process around ``ncu_report``: disassembly, source lines and units, which a report does not hold.

Runs as a script with the standard library and ``ncu_report`` alone, so that it starts fast and can be thrown away: the
native library can abort the process on a damaged file, and keeps memory for everything that it has looked at.

One JSON object per line on standard input, one answer per line on standard output::

    {"path": PATH, "pcs": [...], "units": [...]}

``path`` is a report with one launch (`extract`). The answer holds its function ``name``, ``sass`` and ``lines``
([file number, line] or null) of each address, the ``files``, the ``units`` by metric, and ``resident``, this process's
bytes of memory; or ``failure``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

# For one request: longer than whoever asks waits, who may have been killed while the native library hangs.
LONGEST_SECONDS = 180


def _answer(module: Any, request: dict[str, Any]) -> dict[str, Any]:
    context = module.load_report(request["path"])
    found = context.range_by_idx(0) if context.num_ranges() else None
    if found is None or not found.num_actions():
        return {"failure": "it sees no launch in it"}
    action = found.action_by_idx(0)
    files: dict[str, int] = {}
    lines: list[list[int] | None] = []
    for pc in request["pcs"]:
        info = action.source_info(pc)
        lines.append(None if info is None else [files.setdefault(info.file_name(), len(files)), info.line()])
    units: dict[str, str] = {}
    for name in request["units"]:
        metric = action.metric_by_name(name) if name else None
        if metric is not None:
            units[name] = metric.unit() or ""
    return {
        "name": action.name(action.NameBase_FUNCTION),
        "sass": [action.sass_by_pc(pc) or "" for pc in request["pcs"]],
        "lines": lines,
        "files": list(files),
        "units": units,
    }


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError):
        try:
            import resource
        except ImportError:
            return 0  # nobody knows: it is never replaced for its size
        # Bytes on macOS, elsewhere KiB.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    """Serve requests until standard input ends. ``argv[1]``, if given, is where to import ``ncu_report`` from."""
    # The native library writes diagnostics wherever it likes; the answers keep a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w", encoding="ascii", buffering=1)
    os.dup2(2, 1)
    # A relative entry means the folder that the user stands in, where a file beside a report must not be imported.
    sys.path[:] = [entry for entry in sys.path if Path(entry).is_absolute()]
    if len(sys.argv) > 1 and sys.argv[1]:
        sys.path.insert(0, sys.argv[1])
    try:
        import ncu_report
    except Exception as error:  # a broken installation may raise anything
        print(json.dumps({"missing": f"{type(error).__name__}: {error}"}), file=answers)
        return
    alarm = getattr(signal, "alarm", lambda seconds: None)  # Windows has none: whoever asks ends this process
    for line in sys.stdin:
        alarm(LONGEST_SECONDS)  # ends the process inside native code as well
        try:
            answer = _answer(ncu_report, json.loads(line))
        except Exception as error:  # whatever the native reader raises becomes the answer
            answer = {"failure": f"{type(error).__name__}: {error}"}
        alarm(0)
        print(json.dumps({**answer, "resident": _resident_bytes()}), file=answers)


if __name__ == "__main__":
    main()
