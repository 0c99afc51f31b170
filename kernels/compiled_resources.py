"""The committed table of what each kernel needs: registers, spills and shared memory as ptxas counts them.

``python -m gemmprof.kernels.compiled_resources`` compiles the ladder for every supported architecture and rewrites
the table. A test compares it with a fresh build, so a change that costs registers is seen where it is made.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from gemmprof.gpu.arch import BUILT
from gemmprof.kernels.build import BuildResult, build

TABLE = Path(__file__).resolve().parent / "resources.csv"

COLUMNS = {
    "kernel": "name",
    "architecture": "architecture",
    "registers_per_thread": "registers_per_thread",
    "static_shared_memory": "static_shared_memory",
    "spill_stores": "spill_store_bytes",
    "spill_loads": "spill_load_bytes",
}
"""Heading to attribute of `KernelResources`."""


def table(built: BuildResult) -> str:
    """The table of a build as CSV: one line a kernel and architecture, in the order of the ladder. Bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["stage", *COLUMNS])
    for name, stage in built.stages.items():
        for kernel in stage.kernels:
            writer.writerow([name, *(getattr(kernel, attribute) for attribute in COLUMNS.values())])
    return text.getvalue()


def main() -> None:
    """Rewrite the committed table."""
    built = build(architectures=[limits.label for limits in BUILT])
    TABLE.write_text(f"# {built.compiler}\n{table(built)}", encoding="utf-8")


if __name__ == "__main__":
    main()
