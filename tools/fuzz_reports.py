#!/usr/bin/env python3
"""Damage recorded reports in thousands of ways and run the commands over them; what goes wrong is listed.

Usage: fuzz_reports.py [--count N] [--seed N] [--reports NAME ...] [--commands NAME ...] [--keep DIR]

Each mutant is read, analysed, compared, rendered and exported by the commands, in one process that is replaced when it
dies. A traceback, a crash, more than 10 s of a processor or more than 1 GB is a failure; a refusal (exit code 2) and a
plain result are not. How often which kind was refused or read is counted.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from recording import options_of, peak_mb, processor_seconds

SECONDS, MEGABYTES = 10.0, 1024
REPORTS = (
    "names_nvtx", "names_templates", "launches_same_kernel", "modes_graph", "modes_range", "partial_basic",
    "partial_two_metrics", "flaws_cluster", "partial_source_counters", "ladder_simple", "flaws_spills",
)  # fmt: skip
COMMANDS = {
    "report": ["report", "{path}", "--force", "-o", "{out}/pages"],
    "roofline": ["roofline", "{path}"],
    "diff": ["diff", "{path}", "{good}"],
    "occupancy": ["occupancy", "{path}"],
    "export": ["export", "{path}", "--force", "-o", "{out}/tables"],
    "explain": ["explain", "{path}"],
    "source": ["show", "{path}", "--source"],
    "html": ["diff", "{good}", "{path}", "--format", "html", "--force", "-o", "{out}/diff.html"],
    "speedscope": ["export", "{path}", "--format", "speedscope", "--force", "-o", "{out}/samples.json"],
    "perfetto": ["export", "{path}", "--format", "perfetto", "--force", "-o", "{out}/launches.pftrace"],
}


def run_commands(path: str, good: str, out: str, commands: list[str]) -> list[tuple[str, int, str, float]]:
    """Run the commands in this process: name, exit code, what went wrong ('' if nothing), seconds."""
    import in_process

    found = []
    for name in commands:
        arguments = [part.format(path=path, good=good, out=out) for part in COMMANDS[name]]
        code, printed, problem = 1, "", ""
        started = _spent()
        try:
            done = in_process.run(["gemmprof", *arguments])
            code, printed = done.returncode, done.stdout + done.stderr
        except BaseException:
            problem = traceback.format_exc()
        if "Traceback" in printed:
            problem = printed
        if code == 2 and "error:" not in printed:
            problem = f"exit code 2 without an error: {printed[-500:]}"
        found.append((name, code, problem, _spent() - started))
    return found


def _spent() -> float:
    """Processor seconds: a clock on the wall counts who else works here."""
    return processor_seconds() + processor_seconds(children=False)


def _serve(pipe: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    while (job := pipe.recv()) is not None:
        answer = run_commands(*job)
        pipe.send((answer, peak_mb()))


class Victim:
    """The process that runs the commands; a new one after each death."""

    def __init__(self) -> None:
        self.process: Any = None

    def run(self, *job: Any) -> tuple[list[tuple[str, int, str, float]], int]:
        """The outcome of one mutant."""
        if self.process is None:
            # A fork would begin with the memory of whoever runs this: a test process has a gigabyte.
            spawning = multiprocessing.get_context("spawn")
            self.pipe, theirs = spawning.Pipe()
            self.process = spawning.Process(target=_serve, args=(theirs,))
            self.process.start()
            theirs.close()
        self.pipe.send(job)
        try:
            if not self.pipe.poll(60):
                raise EOFError
            answer, peak = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            alive = self.process.is_alive()
            self.process.kill()
            self.process.join()
            code = self.process.exitcode
            self.process = None
            return [("all", -1, "hang" if alive else f"death with {code}", 60.0)], 0
        if peak > MEGABYTES // 2:
            self.stop()
        return answer, peak

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.pipe.send(None)
            self.process.join(10)
            self.process = None


def main() -> int:
    """Damage, run, list."""
    from mutants import mutants
    from reports_in_bytes import content_of

    parser = options_of(__doc__)
    parser.add_argument("--count", type=int, default=200, help="mutants of each report")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reports", nargs="+", default=REPORTS)
    parser.add_argument("--commands", nargs="+", default=[n for n in COMMANDS if n != "explain"])
    parser.add_argument("--keep", type=Path, help="folder for mutants that failed")
    options = parser.parse_args()
    outcomes, failures = Counter[tuple[str, str]](), Counter[str]()
    slowest, largest, victim = 0.0, 0, Victim()
    os.environ.setdefault("GEMMPROF_CACHE", "off")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path, good = Path(folder) / "mutant.ncu-rep", Path(folder) / "good.ncu-rep"
        for name in options.reports:
            content = content_of(name)
            good.write_bytes(content)
            for number, (kind, data) in enumerate(mutants(content, options.count, options.seed)):
                path.write_bytes(data)
                answer, peak = victim.run(str(path), str(good), folder, options.commands)
                largest = max(largest, peak)
                for command, code, found, seconds in answer:
                    slowest = max(slowest, seconds)
                    costly = seconds > SECONDS or peak > MEGABYTES
                    problem = found or (f"{seconds:.0f} s, {peak} MB" if costly else "")
                    outcomes[kind, "failed" if problem else "refused" if code == 2 else "read"] += 1
                    if problem:
                        last = problem.strip().splitlines()
                        place = next((line.strip() for line in reversed(last) if "line " in line), "")
                        failures[f"{command}: {last[-1]} ({place})"] += 1
                        print(f"{name} {number} {kind} {command}: {last[-1]} {place}", flush=True)
                        if options.keep:
                            options.keep.mkdir(parents=True, exist_ok=True)
                            shutil.copy(path, options.keep / f"{name}-{options.seed}-{number}.ncu-rep")
    victim.stop()
    for (kind, outcome), count in sorted(outcomes.items()):
        print(f"{kind:32}{outcome:10}{count:6}")
    print(f"{sum(outcomes.values())} commands, slowest {slowest:.1f} s, largest process {largest} MB")
    for failure, count in failures.most_common():
        print(f"{count:5} {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
