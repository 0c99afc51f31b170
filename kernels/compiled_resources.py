"""The committed table of what each kernel needs: registers, spills and shared memory as ptxas counts them.

``python -m gemmprof.kernels.compiled_resources`` compiles the ladder for every supported architecture and rewrites
the table. A test compares it with a fresh build, so a change that costs registers is seen where it is made.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from gemmprof.base.foreign_files import read_text
from gemmprof.gpu.arch import BUILT
from gemmprof.kernels.build import BuildResult, build

TABLE = Path(__file__).resolve().parent / "resources.csv"
SASS_TABLE = TABLE.with_name("sass.csv")

# Heading to attribute of `KernelResources`.
COLUMNS = {
    "kernel": "name",
    "architecture": "architecture",
    "registers_per_thread": "registers_per_thread",
    "static_shared_memory": "static_shared_memory",
    "spill_stores": "spill_store_bytes",
    "spill_loads": "spill_load_bytes",
}


def table(built: BuildResult) -> str:
    """The table of a build as CSV: one line a kernel and architecture, in the order of the ladder. Bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["stage", *COLUMNS])
    for name, stage in built.stages.items():
        for kernel in stage.kernels:
            writer.writerow([name, *(getattr(kernel, attribute) for attribute in COLUMNS.values())])
    return text.getvalue()


def sass_table(built: BuildResult) -> str:
    """Digests of the machine code of a build as CSV: one line a stage and architecture."""
    lines = [
        f"{name},{architecture},{code}"
        for name, stage in built.stages.items()
        for architecture, code in stage.sass.items()
    ]
    return "\n".join(["stage,architecture,sass", *lines, ""])


def committed_sass(name: str, architecture: str) -> str:
    """The digest of a stage's machine code for an architecture (``sm_90``); '' where the table has none."""
    for row in csv.reader(read_text(SASS_TABLE).splitlines()):
        if row[0] == name and row[1].rstrip("af") == architecture:
            return row[2]
    return ""


def main() -> None:
    """Rewrite the committed tables."""
    built = build(architectures=[limits.label for limits in BUILT])
    for path, text in ((TABLE, table(built)), (SASS_TABLE, sass_table(built))):
        path.write_text(f"# {built.compiler}\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()
