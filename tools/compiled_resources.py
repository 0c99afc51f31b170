"""The committed table of what each kernel needs: registers, spills and shared memory as ptxas counts them.

``python tools/compiled_resources.py`` compiles the ladder for every supported architecture and rewrites
the table. A test compares it with a fresh build, so a change that costs registers is seen where it is made; it compiles
what is not made from the same sources, flags and compiler any more as the table's lines (``made_from.csv``).
"""

from __future__ import annotations

import csv
import io

from gemmprof.base.foreign_files import read_text
from gemmprof.gpu.arch import BUILT
from gemmprof.gpu.devices import Tool
from gemmprof.kernels.build import BuildResult, build
from gemmprof.kernels.catalog import all_variants
from gemmprof.kernels.compiler import SOURCES, digest, require_nvcc, stage_units

TABLE = SOURCES / "resources.csv"
SASS_TABLE = TABLE.with_name("sass.csv")
MADE_FROM = TABLE.with_name("made_from.csv")
NUMBER = "90"
"""The architecture for which a change of what lines are made from is noted."""

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
        for kernel in stage.note.kernels:
            writer.writerow([name, *(getattr(kernel, attribute) for attribute in COLUMNS.values())])
    return text.getvalue()


def sass_table(built: BuildResult) -> str:
    """Digests of the machine code of a build as CSV: one line a stage and architecture."""
    lines = [
        f"{name},{architecture},{code}"
        for name, stage in built.stages.items()
        for architecture, code in stage.note.sass.items()
    ]
    return "\n".join(["stage,architecture,sass", *lines, ""])


def committed_sass(name: str, architecture: str) -> str:
    """The digest of a stage's machine code for an architecture (``sm_90``); '' where the table has none."""
    for row in csv.reader(read_text(SASS_TABLE).splitlines()):
        if row[0] == name and _family(row[1]) == architecture:
            return row[2]
    return ""


def made_from(nvcc: Tool) -> dict[str, str]:
    """Of each stage a digest of all that decides its machine code for `NUMBER`, and of its lines in both tables."""
    lines = (line for path in (TABLE, SASS_TABLE) for line in read_text(path).splitlines())
    rows = [row for row in csv.reader(lines) if len(row) > 1]
    found = {}
    for variant in all_variants():
        lines = [row for row in rows if row[0] == variant.name and f"sm_{NUMBER}" in map(_family, row)]
        keys = [unit.key for unit in stage_units(variant, nvcc, [NUMBER])]
        found[variant.name] = digest(keys, lines)
    return found


def _family(architecture: str) -> str:
    return architecture.rstrip("af")


def main() -> None:
    """Rewrite the committed tables."""
    built = build(architectures=[limits.label for limits in BUILT])
    for path, text in ((TABLE, table(built)), (SASS_TABLE, sass_table(built))):
        path.write_text(f"# {built.compiler}\n{text}", encoding="utf-8")
    note_sources()


def note_sources() -> None:
    """Note what the tables' lines were made from: once they are what a build gives."""
    lines = [f"{name},{value}\n" for name, value in made_from(require_nvcc()).items()]
    MADE_FROM.write_text(f"# sm_{NUMBER}\nstage,digest\n{''.join(lines)}", encoding="utf-8")


if __name__ == "__main__":
    main()
