"""Compares two builds without a GPU: what the compiler said, and the code in cubins, objects and libraries.

Each kernel of each architecture is a record with the compiler's figures as metrics, so that the same gate reads them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from gemmprof.analysis.comparison.outcome import Compared, Outcome, worst_first
from gemmprof.analysis.comparison.reasons import Reason, changed_opcodes, same_code
from gemmprof.analysis.comparison.records import Code, KernelRecord, Origin, Range, code_of
from gemmprof.analysis.comparison.sides import Match, Side, match
from gemmprof.analysis.occupancy.configurations import built_kernels, read_cubin, read_ptxas, read_sass
from gemmprof.analysis.opcodes import CLASSES, info
from gemmprof.analysis.session import titled
from gemmprof.base.errors import UsageError
from gemmprof.base.foreign_files import open_file, read_text
from gemmprof.gpu.devices import KernelResources, demangle, sass_encodings, sass_functions

# Block size that occupancy is worked out for where none is given: a build does not know how it is launched.
DEFAULT_THREADS = 256
# How cubins, objects, executables, libraries and fat binaries begin.
_BINARY = (b"\x7fELF", b"!<arch>", b"\x50\xed\x55\xba")
_LINE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;")

# What is compared of a build, besides the mix of instructions (``instructions_<class>``): name in conditions and title.
FIGURES = {
    "registers": "registers", "spill_stores": "bytes of spill stores", "spill_loads": "bytes of spill loads",
    "local_accesses": "bytes of stack and local memory", "shared_memory": "bytes of shared memory",
    "barriers": "barriers", "theoretical_occupancy": "% occupancy", "executed": "instructions",
}  # fmt: skip


def load_build(paths: Sequence[str], threads: int = DEFAULT_THREADS) -> Side:
    """Read logs of ``nvcc -Xptxas -v``, cubins, objects, libraries, executables as one side; UsageError for others."""
    records: dict[tuple[str, ...], KernelRecord] = {}
    for path in map(Path, paths):
        for record in _of_file(path, threads):
            held = records.get(record.key)
            if held is not None and held.metrics != record.metrics:
                what = f"{path}: {record.label} is there twice with other figures"
                raise UsageError(what, "give each build's files once")
            records[record.key] = record
    return Side(titled([Path(path).name for path in paths]), tuple(records.values()))


def _of_file(path: Path, threads: int) -> Iterator[KernelRecord]:
    try:
        with open_file(path) as file:
            begin = file.read(8)
    except OSError as error:
        raise UsageError(f"{path} cannot be read", found=error.strerror or str(error)) from None
    codes: dict[tuple[str, str], Code] = {}
    if begin.startswith(_BINARY):
        kernels = read_cubin(path)
        codes = {
            (built_for, name): code_of(hashlib.sha256(sass_encodings(lines)).hexdigest(), sass)
            for built_for, name, lines in sass_functions(read_sass(path), kernels[0].architecture)
            if (sass := [found[1] for line in lines if (found := _LINE.match(line))])
        }
    else:
        kernels = read_ptxas(read_text(path, errors="replace"))
    names = demangle([kernel.name for kernel in kernels])
    built = built_kernels(kernels, threads)
    for kernel, name, answer in zip(kernels, names, built, strict=True):
        occupancy = None if answer.occupancy is None else answer.occupancy.theoretical_percent
        code = codes.get((kernel.architecture, kernel.name))
        label = f"{name} [{kernel.architecture}]"
        yield KernelRecord(
            name=name,
            label=label,
            grid=(),
            block=(),
            key=("build", name, kernel.architecture),
            launches=0,
            times=(),
            origin=Origin(),
            code=code,
            metrics={key: Range.of([value]) for key, value in _figures(kernel, occupancy, code).items()},
        )


def _figures(kernel: KernelResources, occupancy: float | None, code: Code | None) -> dict[str, float]:
    stores, loads = kernel.spill_store_bytes, kernel.spill_load_bytes
    found: dict[str, float | None] = {
        "registers": kernel.registers_per_thread,
        "shared_memory": kernel.static_shared_memory,
        # The stack frame holds what is spilled; only old compilers spill beside it.
        "local_accesses": kernel.stack_bytes + (kernel.local_bytes or 0) or (stores or 0) + (loads or 0),
        "spill_stores": stores,
        "spill_loads": loads,
        "barriers": kernel.barriers,
        "theoretical_occupancy": occupancy,
    }
    if code is not None and code.instructions:
        counts = Counter(dict.fromkeys(CLASSES, 0))
        for opcode, count in code.opcodes.items():
            counts[info(opcode.partition(".")[0]).instruction_class] += count
        found |= {"executed": code.instructions} | {f"instructions_{one}": n for one, n in counts.items()}
    return {name: float(value) for name, value in found.items() if value is not None}


def compare_builds(before: Side, after: Side) -> Outcome:
    """The kernels of two builds in pairs: SAME, or changed (``unclear``: a build does not tell the time)."""
    pairs = match(before, after)
    if len(before.kernels) == len(after.kernels) == 1 and before.kernels[0].key[2] != after.kernels[0].key[2]:
        # Code for another architecture is no counterpart.
        pairs = Match(before.kernels[0], None), Match(None, after.kernels[0])
    built, still = (dict.fromkeys(record.key[2] for record in side.kernels) for side in (before, after))
    missing = [name for name in built if name not in still]
    lost = "was built before and is missing (--allow-gone lets it pass)"
    broken = tuple(f"architecture {name} {lost}" for name in missing)
    return Outcome(before.title, after.title, worst_first(map(_compared, pairs)), broken=broken)


def _compared(pair: Match) -> Compared:
    if pair.both is None:
        return Compared(pair, "new" if pair.before is None else "gone")
    before, after = pair.both
    changes = [
        f"{title} {left.middle:,.6g} → {right.middle:,.6g}"
        for name, title in FIGURES.items()
        if (left := before.metrics.get(name)) and (right := after.metrics.get(name))
        if left.middle != right.middle
    ]
    same = same_code(before, after)
    if same is False and before.code and after.code:
        changes.append(f"code: {changed_opcodes(before.code, after.code)}")
    note = f"renamed: its code is {100 * pair.likeness:.0f} % alike" if pair.how == "renamed" else ""
    reasons = (Reason("code", "; ".join(changes)),) if changes else ()
    return Compared(pair, "unclear" if changes else "same", reasons=reasons, note=note, code_same=same)
