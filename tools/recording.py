"""What the tools that record on a GPU machine share: running to the end or to a timeout, and packing reports.

Only the standard library is used: such a machine needs nothing else.
"""

from __future__ import annotations

import json
import lzma
import os
import signal
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

CHUNK = 16 << 20
"""Bytes of input per xz stream, so that a large report is compressed by several cores."""


def run_to_end(
    command: Sequence[str], timeout: float, *, folder: Path, grace: float = 15.0
) -> subprocess.CompletedProcess[str]:
    """Run ``command`` in a folder; a timeout is a result with return code 124, not an exception.

    ``ncu`` is a shell script that starts the real profiler, which starts the program: all of them are one process
    group and are ended together. An interrupt first, for then ncu closes a report of the launches profiled so far
    within ``grace`` seconds.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=max(timeout, 1.0))
        return subprocess.CompletedProcess(command, process.returncode, output, errors)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
    try:
        output, errors = process.communicate(timeout=grace)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
    return subprocess.CompletedProcess(command, 124, output, errors)


def compress(source: Path, target: Path, *, preset: int) -> int:
    """Compress ``source`` into ``target`` as xz; return the size. Large files become several streams, made at once."""
    content = source.read_bytes()
    chunks = [content[start : start + CHUNK] for start in range(0, len(content), CHUNK)] or [b""]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        packed = b"".join(pool.map(lambda chunk: lzma.compress(chunk, preset=preset), chunks))
    target.write_bytes(packed)
    return len(packed)


def lines_of(text: str) -> list[dict[str, Any]]:
    """The JSON lines among what a program (and ncu around it) printed."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
