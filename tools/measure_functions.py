"""What precise functions and fast ones in their place cost, counted in compiled code, and what `explain` sees of them.

Each function of tests/data/functions/functions.csv is compiled for compute capability 9.0 by nvcc and by Triton, once
and four times a thread: the difference is three calls without what surrounds them. The listings are kept beside that
table, and a test holds `functions.csv` of `gemmprof.analysis.explanation.code` against them: a signature stands in its
own function and in those that have it as a part, and what goes away is what the fast function does not need.

Usage: measure_functions.py nvcc | triton      (compiles; Triton needs no GPU, but its own environment)
       measure_functions.py                    (prints what is counted and what is found)
"""

from __future__ import annotations

import heapq
import lzma
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from recording import ROOT, loaded, rows_of

DATA = ROOT / "tests" / "data" / "functions"
CALLS = (1, 4)  # a thread
THREADS = 128
ARGUMENTS = "abc"
COMPILERS = ("nvcc", "triton")

TRITON = """import triton, triton.language as tl
from triton.language.extra import libdevice
@triton.jit
def kernel(x0, x1, x2, out, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    {code}
    tl.store(out + i, r)
"""
CUDA = """#include <cstddef>
struct alignas(4 * {calls}) Values {{ float of[{calls}]; }};
extern "C" __global__ void kernel(const Values *x0, const Values *x1, const Values *x2, Values *out) {{
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    {loads}
    Values results;
    #pragma unroll
    for (int k = 0; k < {calls}; ++k) {{ {code}; results.of[k] = r; }}
    out[i] = results;
}}
"""


@dataclass(frozen=True)
class Row:
    """A function of the table; code is an expression, or statements of which one sets r."""

    function: str
    cuda: str
    triton: str
    cuda_fast: str
    triton_fast: str
    recognised_as: str  # rows of `functions.csv` that may find something in it, itself first

    def code(self, compiler: str, *, fast: bool) -> str:
        """What is compiled, '' for nothing."""
        names = {"nvcc": ("cuda", "cuda_fast"), "triton": ("triton", "triton_fast")}[compiler]
        return str(getattr(self, names[fast]))


def table() -> list[Row]:
    """All functions."""
    return [Row(**row) for row in rows_of(DATA / "functions.csv")]


# --- Compiling --------------------------------------------------------------------------------------------------------


def _arguments(code: str) -> list[int]:
    return [place for place, name in enumerate(ARGUMENTS) if re.search(rf"\b{name}\b", code)]


def _cuda(code: str, calls: int, folder: Path) -> Path:
    used = _arguments(code)
    loads = " ".join(f"Values v{place} = x{place}[i];" for place in used)
    result = code if re.search(r"\br=", code) else f"r={code}"
    declared = "".join(f"float {ARGUMENTS[place]} = v{place}.of[k]; " for place in used)
    source = folder / "kernel.cu"
    source.write_text(CUDA.format(calls=calls, loads=loads, code=f"{declared}float r; {result}"), "utf-8")
    made = folder / "kernel.cubin"
    subprocess.run(
        ["nvcc", "-std=c++17", "-arch=sm_90a", "-cubin", "-o", made, source], check=True, capture_output=True
    )
    return made


def _triton(code: str, calls: int, folder: Path) -> Path:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    result = code if re.search(r"\br = ", code) else f"r = {code}"
    loads = [f"{ARGUMENTS[place]} = tl.load(x{place} + i)" for place in _arguments(code)]
    name = f"kernel_{abs(hash((code, calls)))}"  # Triton reads a function's source by its file's name
    source = folder / f"{name}.py"
    source.write_text(TRITON.format(code="; ".join([*loads, result])), "utf-8")
    pointers = ("x0", "x1", "x2", "out")
    made = triton.compile(
        ASTSource(
            fn=loaded(source).kernel,
            signature=dict.fromkeys(pointers, "*fp32") | {"block": "constexpr"},
            constexprs={"block": THREADS * calls},
            attrs={(place,): [["tt.divisibility", 16]] for place in range(len(pointers))},
        ),
        target=GPUTarget("cuda", 90, 32),
        options={"num_warps": THREADS // 32},
    )
    cubin = folder / "kernel.cubin"
    cubin.write_bytes(made.asm["cubin"])
    return cubin


def _disassembled(cubin: Path) -> list[str]:
    """The instructions; branches name the address that a report names."""
    found = shutil.which("nvdisasm") or next(map(str, Path(sys.prefix).rglob("bin/nvdisasm")))
    text = subprocess.run([found, "-c", cubin], check=True, capture_output=True, text=True).stdout
    lines: list[str] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if label := re.match(r"(\S+):\s*$", line):
            labels[label[1]] = 16 * len(lines)
        elif code := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?;)", line):
            lines.append(re.sub(r"\s+", " ", code[1]))
    lines = [re.sub(r"`\((.+?)\)", lambda name: f"0x{labels.get(name[1], 0):06x}", line) for line in lines]
    while lines and (lines[-1].startswith("NOP") or lines[-1] == f"BRA 0x{16 * (len(lines) - 1):06x};"):
        lines.pop()
    return lines


def compiled(compiler: str) -> None:
    """Compiles every function and writes the listings."""
    text = ""
    with tempfile.TemporaryDirectory() as place:
        for row in table():
            for kind in (False, True):
                code = row.code(compiler, fast=kind)
                for calls in CALLS if code else ():
                    cubin = (_cuda if compiler == "nvcc" else _triton)(code, calls, Path(place))
                    text += f"# {row.function}|{'fast' if kind else 'precise'}|{calls}\n"
                    text += "\n".join([*_disassembled(cubin), ""])
    (DATA / f"{compiler}.sass.xz").write_bytes(lzma.compress(text.encode(), preset=9))


# --- Counting ---------------------------------------------------------------------------------------------------------


@cache
def listings(compiler: str) -> Mapping[tuple[str, str, int], tuple[str, ...]]:
    """The instructions of each function, precise or fast, with so many calls a thread."""
    found = {}
    text = lzma.decompress((DATA / f"{compiler}.sass.xz").read_bytes()).decode()
    for part in filter(None, re.split(r"^# ", text, flags=re.MULTILINE)):
        head, *lines = part.splitlines()
        function, kind, calls = head.split("|")
        found[function, kind, int(calls)] = tuple(lines)
    return found


def _behind(code: Sequence[str], at: int) -> Iterator[int]:
    guard, opcode, rest = re.match(r"(@!?U?P\w+ )?(\S+?)(?:;| (.*))?$", code[at]).groups()  # type: ignore[union-attr]
    if opcode.startswith("BRA"):
        yield int(re.findall(r"0x([0-9a-f]+)", rest)[-1], 16) // 16
    if guard or not re.match(r"EXIT|RET|BRA(?!.*\bU?P\d)", code[at].removeprefix(guard or "")):
        yield at + 1


CALL = 1000  # no way leads through a subroutine where another leads around it


def _way(code: Sequence[str], start: int, ends: set[int]) -> list[int]:
    """The shortest one, without its first instruction."""
    before: dict[int, tuple[int, int]] = {start: (0, start)}
    waiting = [(0, start)]
    while waiting:
        length, at = heapq.heappop(waiting)
        if at in ends and at != start:
            way = []
            while at != start:
                way.append(at)
                at = before[at][1]
            return way[::-1]
        for on in _behind(code, at):
            further = length + (CALL if on < len(code) and re.search(r"\bCALL\b", code[on]) else 1)
            if on < len(code) and (on not in before or further < before[on][0]):
                before[on] = further, at
                heapq.heappush(waiting, (further, on))
    return []


def executed(code: Sequence[str], through: Sequence[int]) -> list[int]:
    """The shortest way through the code that passes these instructions, as far as one passes them."""
    ends = {at for at, line in enumerate(code) if line.startswith("EXIT")}
    way = [0]
    for place in sorted(through):
        if place not in way:
            way += _way(code, way[-1], {place})
    return way + _way(code, way[-1], ends)


@cache
def _signed(line: str, compiler: str) -> tuple[str, ...]:
    from gemmprof.analysis.explanation.code import sequences

    functions = sequences.FUNCTIONS if compiler == "nvcc" else sequences.TRITON_FUNCTIONS
    return tuple(function.name for function in functions if re.search(function.signature, line))


def signed(code: Sequence[str], compiler: str) -> list[tuple[str, int]]:
    """The functions whose signatures stand in it, and where."""
    return [(name, at) for at, line in enumerate(code) for name in _signed(line, compiler)]


def counted(compiler: str, function: str, kind: str) -> float | None:
    """Instructions of one call, None for a function that is not compiled."""
    code = listings(compiler)
    if (function, kind, 1) not in code:
        return None
    one, four = (
        len(executed(lines, [at for _, at in signed(lines, compiler)]))
        for lines in (code[function, kind, calls] for calls in CALLS)
    )
    nothing = [len(executed(code["nothing", "precise", calls], ())) for calls in CALLS]
    # An addition of each call is in "nothing"; what else it has more of is the launch's own.
    return (four - one - (nothing[1] - nothing[0])) / (CALLS[1] - CALLS[0]) + 1.0


def launch_of(compiler: str, function: str, calls: int) -> tuple[Any, list[int]]:
    """A launch in which one warp takes that way, as `explain` sees it, and the way."""
    from made_code import made

    from gemmprof.analysis.explanation.demands.work import work

    code = listings(compiler)[function, "precise", calls]
    way = executed(code, [at for _, at in signed(code, compiler)])
    counts = [way.count(at) for at in range(len(code))]
    launch = made(*code, executed=counts)
    if compiler == "triton":
        launch = work(replace(launch.profile, name="kernel", mangled_name="kernel", lines="python"))
    return launch, way


def gone(compiler: str, function: str) -> tuple[float, tuple[str, ...]]:
    """Instructions of one call that `explain` takes away, and the functions that it names."""
    from gemmprof.analysis.explanation.code.sequences import precise_functions

    launch, _ = launch_of(compiler, function, CALLS[1])
    found = precise_functions(launch)
    return float(launch.executed @ (1.0 - found.fast)) / CALLS[1], found.names


def main() -> None:
    """Compiles, or prints."""
    if len(sys.argv) > 1:
        compiled(sys.argv[1])
        return
    for row in table():
        for compiler in COMPILERS:
            precise = counted(compiler, row.function, "precise")
            if precise is None:
                continue
            fast = counted(compiler, row.function, "fast")
            away, names = gone(compiler, row.function)
            need = "" if fast is None else f"{fast:5.1f} fast, {precise - fast:5.1f} less"
            print(
                f"{row.function:36} {compiler:7} {precise:6.1f} precise {need:24} {away:6.1f} found  {', '.join(names)}"
            )


if __name__ == "__main__":
    main()
