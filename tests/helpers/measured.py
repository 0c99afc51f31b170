"""The command in a process of its own, whose memory and processor time are bounded."""

from __future__ import annotations

import os
from pathlib import Path

import forked

SECONDS, MIB = 10, 1 << 20


def gemmprof(*arguments: str | Path, cwd: Path, **environment: str) -> forked.Ended:
    """Run the command: within ten seconds of a processor, one GiB, and five minutes whatever it waits for."""
    answer = forked.run(*arguments, cwd=cwd, env=os.environ | environment)
    told = answer.returncode, answer.stderr
    assert "Traceback" not in answer.stderr and answer.returncode in (0, 2), told
    used = f"{answer.memory >> 10} MiB, {answer.seconds} s"
    assert answer.memory <= MIB and answer.seconds <= SECONDS, used
    return answer
