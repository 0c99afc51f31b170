"""What workers of a test's cluster do in place of compiling: they import this module by its name."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gemmprof.gpu.devices import KernelResources
from gemmprof.kernels.build import BuildResult
from gemmprof.kernels.operators import EXTENSION_VARIABLE
from gemmprof.profiler.cluster.remote import Content, Extension, Library

LIBRARY = b"the extension, as one worker built it" * 1000

NVIDIA_SMI = """#!/bin/sh
for index in 0 1 2 3; do echo "$index, NVIDIA Fake, 9.0, 81559, 580.95.05, GPU-$index"; done
"""

NVCC = """#!/bin/sh
echo "Cuda compilation tools, release 13.0, V13.0.88"
echo "Build cuda_13.0.r13.0/compiler.36424714_0"
"""

NCU = """
while not Path(arguments[-1]).exists():
    time.sleep(0.01)
job = json.loads(Path(arguments[-1]).read_text())
tasks = job["tasks"]
time.sleep(0.2 * len(tasks))
line = '==PROF== Profiling "kernel" - {{}}: 0%....50%....100% - 36 passes\\n'
Path(value("--log-file")).write_text("".join(line.format(n) for n in range(len(tasks))))
Path(value("--export")).write_bytes((Path({reports!r}) / f"{{len(tasks)}}.ncu-rep").read_bytes())
with open(job["events"], "a") as events:
    for task in tasks:
        for kind in ("begin", "launched"):
            events.write(json.dumps({{"event": kind, "stage": task["stage"], "problem": task["problem"]}}) + "\\n")
"""


def build_extension(architecture: str, parameters: Any) -> Extension:
    """In place of `remote.build_extension`."""
    record = BuildResult(Path("/elsewhere"), ("sm_90",), "nvcc", {}, (), 0.0)
    return Extension(
        record, Content("libgemmprof.so", sha256(LIBRARY).hexdigest(), LIBRARY), EXTENSION_VARIABLE
    )


def compile_library(variant: Any, architecture: str) -> Library:
    """In place of `remote.compile_library`: a library is what it would be made from."""
    text = json.dumps([variant.name, architecture, sorted(variant.parameters.items())]).encode()
    content = Content("candidate.so", sha256(text).hexdigest(), text)
    return Library((KernelResources("k", "sm_90", 64),), content)


def frozen(parameters: Any) -> Any:
    """Mappings of the catalog must travel."""
    return MappingProxyType(dict(parameters))
