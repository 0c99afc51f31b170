"""The command in a process of its own, whose memory and processor time are bounded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SECONDS, MIB = 10, 1 << 20


MEASURED = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[2:], timeout=300)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    json.dump([used.ru_maxrss, used.ru_utime + used.ru_stime], file)
sys.exit(done.returncode)
"""
"""Starts a command and notes its memory (KiB) and processor time, with those of its children. It is small itself: the
kernel counts what a process had when it became another one."""


def gemmprof(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command: within ten seconds of a processor, one GiB, and five minutes whatever it waits for."""
    answer = subprocess.run(
        [sys.executable, "-ISc", MEASURED, cwd / "used", sys.executable, "-m", "gemmprof", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, check=False, env=os.environ | environment,
    )  # fmt: skip
    assert "Traceback" not in answer.stderr and answer.returncode in (0, 2), (
        answer.returncode,
        answer.stderr,
    )
    memory, seconds = json.loads((cwd / "used").read_text())
    assert memory <= MIB and seconds <= SECONDS, f"{memory >> 10} MiB, {seconds} s"
    return answer
