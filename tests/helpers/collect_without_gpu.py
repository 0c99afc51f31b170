"""``gemmprof collect`` where there is no GPU: `fake_gpu` and `slow_ncu` play one; all else is the command itself."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace


def collect() -> int:
    """The command."""
    from gemmprof.cli import main
    from gemmprof.gpu.devices import Gpu, Tool
    from gemmprof.kernels import build
    from gemmprof.profiler import collect as collection
    from gemmprof.profiler import site
    from gemmprof.profiler.site import Machine

    gpu = Gpu(0, "NVIDIA Fake", (9, 0), 80 << 30, "580.1", "GPU-0")
    ncu = Tool(Path(os.environ["SLOW_NCU"]), (2025, 3, 1))
    site.Here.check = lambda *_, **__: Machine(gpu, ncu)  # type: ignore[method-assign]
    site.list_gpus = lambda: (gpu,)
    build.build = lambda **_: SimpleNamespace(stages={}, compiled=(), failures={}, skipped={})  # type: ignore[assignment]
    collection.MODULE = "fake_gpu"
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return main(["collect", *sys.argv[1:]])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # what is imported above is not the command
    sys.exit(collect())
