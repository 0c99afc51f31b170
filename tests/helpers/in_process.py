"""The command line without a process of its own: what most tests need, in a tenth of the time.

`run` takes what `subprocess.run` takes for ``[sys.executable, "-m", "gemmprof", …]``. Tests of what only a process has
(signals, pipes, imports, memory) start one.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gemmprof.cli import main


def run(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = False,
    **_of_a_process: Any,
) -> subprocess.CompletedProcess[str]:
    """Exit code and output of ``python -m gemmprof WORD…``, run here, in that folder and environment."""
    words = list(command)[list(command).index("gemmprof") + 1 :]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    before = Path.cwd(), dict(os.environ), sys.stdout, sys.stderr, sys.stdin
    try:
        if cwd is not None:
            os.chdir(cwd)
        if env is not None:
            os.environ.clear()
            os.environ.update(env)
            tempfile.tempdir = None  # the folder of this environment
        sys.stdout, sys.stderr, sys.stdin = out, err, io.StringIO()
        try:
            code = main(words)
        except SystemExit as ending:  # argparse: --help, or a word that it does not know
            code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    finally:
        os.chdir(before[0])
        os.environ.clear()
        os.environ.update(before[1])
        tempfile.tempdir = None
        sys.stdout, sys.stderr, sys.stdin = before[2:]
    texts = [stream.buffer.getvalue().decode("utf-8") for stream in (out, err)]  # type: ignore[attr-defined]
    done = subprocess.CompletedProcess(words, code, *texts)
    if check:
        done.check_returncode()
    return done
