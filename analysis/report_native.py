"""The worker process around ``ncu_report``: disassembly, source lines and units, which the file itself does not hold.

Runs as a script with the standard library and ``ncu_report`` alone, so that it starts fast and can be thrown away: the
native library can abort the process on a damaged file and keeps memory for every launch that it has looked at.

One JSON object per line on standard input, one answer per line on standard output::

    {"open": PATH}                                load a report (no answer); warms the disassembler up
    {"source": [{"action": 0, "pcs": [...]}]}     SASS, file and line of each address
    {"units": {"0": ["metric", ...]}}             unit of each metric, asked of that action
    {}                                            names of all actions

Every answer holds ``actions`` (the native reader's count), ``resident`` (bytes) and ``module`` (ncu_report's version).
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_PAGE = os.sysconf("SC_PAGE_SIZE")


class _Report:
    """The report that is open in the native reader."""

    def __init__(self, module: Any, path: str) -> None:
        # The reader tells a compressed report by its name and takes no name that is not UTF-8.
        self.link = ""
        if path.endswith("z") or not path.isprintable() or _has_surrogates(path):
            import tempfile

            self.link = f"{tempfile.mkdtemp(prefix='gemmprof-')}/report.ncu-rep"
            os.symlink(path, self.link)
        self.context = module.load_report(self.link or path)
        self.actions: list[Any] = []
        for index in range(self.context.num_ranges()):
            found = self.context.range_by_idx(index)
            self.actions += [(found, action) for action in range(found.num_actions())]

    def action(self, index: int) -> Any:
        """The action at this place of the report; looked up when needed, as each costs memory."""
        found, place = self.actions[index]
        return found.action_by_idx(place)

    def close(self) -> None:
        if self.link:
            os.unlink(self.link)
            os.rmdir(os.path.dirname(self.link))


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _source(report: _Report, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """SASS and source line for the addresses of each job; file names are numbers into the job's ``files``."""
    answers = []
    for job in jobs:
        action = report.action(job["action"])
        files: dict[str, int] = {}
        lines: list[list[int] | None] = []
        for pc in job["pcs"]:
            info = action.source_info(pc)
            if info is None:
                lines.append(None)
            else:
                lines.append([files.setdefault(info.file_name(), len(files)), info.line()])
        answers.append(
            {
                "name": action.name(action.NameBase_FUNCTION),
                "sass": [action.sass_by_pc(pc) for pc in job["pcs"]],
                "lines": lines,
                "files": list(files),
            }
        )
    return answers


def _units(report: _Report, wanted: dict[str, list[str]]) -> dict[str, str]:
    units: dict[str, str] = {}
    for index, names in wanted.items():
        action = report.action(int(index))
        for name in names:
            metric = action.metric_by_name(name) if name else None
            if metric is not None:
                units[name] = metric.unit() or ""
    return units


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Serve requests until standard input ends. ``argv[1]``, if given, is where to import ``ncu_report`` from."""
    # The native library writes diagnostics wherever it likes; the answers keep their own descriptor.
    answers = os.fdopen(os.dup(1), "w", encoding="ascii", buffering=1)
    os.dup2(2, 1)
    # Python puts the script's folder, full of this package's modules, in front of everything else.
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    if len(sys.argv) > 1 and sys.argv[1]:
        sys.path.insert(0, sys.argv[1])
    try:
        import ncu_report
    except Exception as error:  # a broken installation may raise anything
        print(json.dumps({"missing": f"{type(error).__name__}: {error}"}), file=answers)
        return
    version = str(getattr(ncu_report, "__version__", "") or "")
    report: _Report | None = None
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        try:
            if "open" in request:
                if report is not None:
                    report.close()
                report = None
                report = _Report(ncu_report, request["open"])
                if report.actions:
                    report.action(0).sass_by_pc(0)
                continue
            if report is None:
                answer["actions"] = 0
            else:
                answer["actions"] = len(report.actions)
                if "source" in request:
                    answer["source"] = _source(report, request["source"])
                if "units" in request:
                    answer["units"] = _units(report, request["units"])
                if not request:
                    answer["names"] = [report.action(index).name() for index in range(len(report.actions))]
        except Exception as error:  # whatever the native reader raises becomes the answer
            answer["failure"] = f"{type(error).__name__}: {error}"
            if "open" in request:
                report = None
                continue
        print(json.dumps({**answer, "resident": _resident_bytes(), "module": version}), file=answers)


if __name__ == "__main__":
    main()
