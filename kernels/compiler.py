"""What the build needs of the machine, compiler calls, and the cache of what they made, keyed by content.

An object is cached under the hash of all that decides its code: source, included headers, parameters, flags, compiler
version, architectures. The cache is ``$GEMMPROF_CACHE``, else ``$XDG_CACHE_HOME/gemmprof``, else
``~/.cache/gemmprof``; it may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from gemmprof.base.documents import DocumentError, json_text, read_json
from gemmprof.base.errors import BuildError, DeviceError
from gemmprof.base.foreign_files import LARGEST_DOCUMENT, open_file, read_bytes, read_text
from gemmprof.base.progress import SILENT, Progress
from gemmprof.base.system import cache_directory
from gemmprof.gpu import devices
from gemmprof.gpu.cubins import code_spans
from gemmprof.gpu.devices import KernelResources, Tool, cuobjdump_path, parse_ptxas, with_short_names
from gemmprof.model.ladder import Variant

# --- What the build needs of the machine ------------------------------------------------------------------------------
# nvcc, torch's headers, the GPU's architecture. Nothing here imports torch.

DEFAULT_ARCHITECTURE = "9.0"  # compute capability that is built for where no GPU is present

_ARCHITECTURE = re.compile(r"^(?:sm_?|compute_?)?(\d{1,2})\.?(\d)([af]?)$")


def require_nvcc() -> Tool:
    """The compiler that `gemmprof.gpu.devices.find_nvcc` finds; BuildError if there is none, or it does not run."""
    nvcc = devices.find_nvcc()
    if nvcc is None:
        raise BuildError(
            "the CUDA compiler nvcc was not found",
            "install the CUDA toolkit (12.8 or newer) and put its bin folder on the PATH",
            "or set CUDA_HOME to the toolkit's folder",
        )
    if not nvcc.banner:
        raise BuildError(f"{nvcc.path} does not run", "`gemmprof doctor` checks this machine")
    return nvcc


def require_torch() -> devices.TorchInstallation:
    """The torch of this Python environment; BuildError if it is not installed."""
    torch = devices.find_torch()
    if torch is None:
        fix = "pip install '.[gpu]' in the checkout of gemmprof"
        raise BuildError("torch is not installed in this Python environment", fix)
    return torch


def present_architectures() -> tuple[str, ...]:
    """Compute capabilities of the GPUs that CUDA sees here, for example ``("9.0",)``; empty if there is none."""
    try:
        gpus = devices.visible_gpus(devices.list_gpus())
    except DeviceError:
        return ()
    known = sorted({gpu.compute_capability for gpu in gpus})
    return tuple(f"{major}.{minor}" for major, minor in known if major)


def architecture_number(label: str) -> str:
    """``90`` for ``9.0``, ``90`` or ``sm_90``; a suffix (``90a``) is kept; BuildError if it is no architecture."""
    match = _ARCHITECTURE.match(label.strip().lower())
    if match is None:
        fix = "write a compute capability, for example 9.0 or sm_90"
        raise BuildError(f"'{label}' is no GPU architecture", fix)
    return "".join(match.groups())


def target_number(architectures: Sequence[str], number: str) -> str | None:
    """What code for the architecture ``number`` (``90``) is compiled for, where a stage is written for some only.

    The stage's own spelling counts (``90a`` for ``9.0a``); None if it is written for others.
    """
    if not architectures:
        return number
    known = (architecture_number(label) for label in architectures)
    return next((own for own in known if own.rstrip("af") == number.rstrip("af")), None)


def why_skipped(architectures: Sequence[str], numbers: Sequence[str]) -> str | None:
    """Why a stage that is written for ``architectures`` is not built for any of ``numbers``; None if it is."""
    if any(target_number(architectures, number) is not None for number in numbers):
        return None
    own = " or ".join(f"sm_{architecture_number(label)}" for label in architectures)
    here = " and ".join(f"sm_{number}" for number in numbers)
    return f"it is written for {own}, this is {here}"


# --- Entries of the cache ---------------------------------------------------------------------------------------------
# A disk that fills up, a copy that was cut or a flipped bit leaves an entry whose content is not what the seal says; it
# counts as missing and is made again. (The seal finds accidents. Who can write to the cache can also write a seal.)


SEAL = "seal"


@contextmanager
def new_entry(target: Path) -> Iterator[Path]:
    """A folder to fill that takes the target's name, sealed, at the end: a reader sees all of it or nothing.

    The name stands for the content: where somebody else was faster, what they made stays, and is read undisturbed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".scratch-") as scratch:
        folder = Path(scratch) / "result"
        folder.mkdir()
        yield folder
        (folder / SEAL).write_text(_content(folder), encoding="ascii")
        if is_whole(target):
            return
        with contextlib.suppress(FileNotFoundError):
            target.rename(Path(scratch) / "damaged")
        try:
            folder.rename(target)
        except OSError:
            if not is_whole(target):
                raise


def is_whole(entry: Path) -> bool:
    """Whether an entry is there and holds what was put into it."""
    try:
        return read_text(entry / SEAL, private=True) == _content(entry)
    except (OSError, ValueError):
        return False


def _content(folder: Path) -> str:
    """Hash of the names and bytes of every file but the seal."""
    parts = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.name != SEAL:
            data = read_bytes(path, LARGEST_DOCUMENT, private=True)
            parts.update(f"{path.name}\0{len(data)}\0".encode())
            parts.update(data)
    return parts.hexdigest()


# --- Compiler calls ---------------------------------------------------------------------------------------------------


Note = TypeVar("Note")

# Where the device and host sources lie: ``include/`` for what all ladders share, and one folder a ladder.
SOURCES = Path(__file__).resolve().parent

# How a stage is compiled; ``-lineinfo`` ties SASS to source lines and does not change the code.
DEVICE_FLAGS = ("-std=c++17", "-O3", "-lineinfo", "-Xptxas=-v", "-Xcompiler=-fPIC")

HOST_FLAGS = ("-std=c++17", "-O2", "-Xcompiler=-fPIC")

OBJECT_NAME = "object.o"
RECORD_NAME = "record.json"

NOTES_VERSION = 3  # counts what is noted beside an object: one with other notes is compiled again

# In a source whose kernels several calls compile side by side.
_PARTS = re.compile(r"^constexpr int PARTS = (\d+);", re.MULTILINE)

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Unit:
    """One compiler call."""

    name: str  # the operator's name (all parts of a stage have that one), or the file's
    file: str  # source under ``kernels/``
    command: tuple[str, ...]  # the call, without input and output
    key: str  # name of its folder in the cache
    source_hash: str  # hash of source, headers and parameters only
    length: int  # characters of source and headers: what takes long to compile has many


def included_file(file: Path, name: str) -> Path:
    """The file that ``#include "name"`` in ``file`` means: beside it, else in ``include/``, as the compiler looks."""
    beside = file.parent / name
    return beside if beside.is_file() else SOURCES / "include" / name


def source_closure(file: Path) -> tuple[Path, ...]:
    """The file and every header of ours that it includes, directly or not."""
    seen: set[Path] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path not in seen and path.is_file():
            seen.add(path)
            waiting += [included_file(path, name) for name in _INCLUDE.findall(read_text(path))]
    return tuple(sorted(seen))


def contents(file: Path) -> list[tuple[str, str]]:
    """Name and text of a source and its headers."""
    return [(path.name, read_text(path)) for path in source_closure(file)]


def digest(*parts: object) -> str:
    """A short hash of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]


def code_hash(variant: Variant) -> str:
    """Hash of a variant's source and headers, whatever its parameters."""
    return digest(contents(SOURCES / variant.source))


def source_hash(variant: Variant) -> str:
    """Hash of what a variant's code is made from: source, headers, parameters."""
    return digest(contents(SOURCES / variant.source), sorted(variant.parameters.items()))


def stage_units(variant: Variant, nvcc: Tool, numbers: Sequence[str]) -> tuple[Unit, ...]:
    """The calls that compile a variant for the architectures with these numbers (``90``), those that it is written for.

    One for each of the stage's parts: they run side by side, and each has some of its kernels. BuildError for none.
    """
    if reason := why_skipped(variant.stage.architectures, numbers):
        raise BuildError(f"stage {variant.name} is not built: {reason}")
    known = (target_number(variant.stage.architectures, number) for number in numbers)
    targets = [target for target in known if target is not None]
    command = (
        str(nvcc.path),
        *DEVICE_FLAGS,
        *(f"-gencode=arch=compute_{target},code=sm_{target}" for target in targets),
        f"-DGEMMPROF_STAGE={variant.name}",
        *(f"-D{letter}={value}" for letter, value in variant.parameters.items()),
        *variant.stage.compiler_flags,
    )
    sources, made_from = contents(SOURCES / variant.source), source_hash(variant)
    parts = _PARTS.search(read_text(SOURCES / variant.source))
    numbered = range(int(parts[1])) if parts else ()
    commands = [(*command, f"-DGEMMPROF_PART={part}") for part in numbered] or [command]
    keys = [digest(sources, call[1:], nvcc.banner, NOTES_VERSION) for call in commands]
    calls = zip(commands, keys, strict=True)
    return tuple(
        Unit(variant.name, variant.source, call, key, made_from, _length(sources)) for call, key in calls
    )


def host_unit(file: str, nvcc: Tool, flags: Sequence[str] = (), also: Sequence[str] = ()) -> Unit:
    """The call that compiles a file without kernels; ``also`` is what else its code depends on."""
    command = (str(nvcc.path), *HOST_FLAGS, *flags)
    sources = contents(SOURCES / file)
    key = digest(sources, command[1:], nvcc.banner, also)
    return Unit(file, file, command, key, digest(sources), _length(sources))


def _length(sources: Sequence[tuple[str, str]]) -> int:
    return sum(len(text) for _, text in sources)


def object_directory(cache: Path, unit: Unit) -> Path:
    """Where a unit's object and record lie once it is compiled."""
    return cache / "objects" / unit.key


def is_compiled(cache: Path, unit: Unit) -> bool:
    """Whether the cache has the unit's object, undamaged."""
    return is_whole(object_directory(cache, unit))


@dataclass(frozen=True, slots=True)
class Compiled:
    """What was noted when a unit was compiled: seconds, what its kernels take, and digests of their machine code."""

    seconds: float
    kernels: tuple[KernelResources, ...]
    name: str = ""
    command: tuple[str, ...] = ()
    functions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By architecture and mangled name, a digest of a function's machine code; empty where there was no cuobjdump."""

    @property
    def sass(self) -> dict[str, str]:
        """By architecture, a digest of the machine code of all functions.

        Sources that differ in words only have one: a recorded run of the older one holds for the newer.
        """
        found = sorted(self.functions.items())
        return {target: digest(sorted(map(list, functions.items()))) for target, functions in found}


def read_record(cache: Path, units: Sequence[Unit]) -> Compiled:
    """What was noted when the units of a stage were compiled, as if they were one; BuildError if it is damaged."""
    parts = [read_note(object_directory(cache, unit) / RECORD_NAME, Compiled) for unit in units]
    functions: dict[str, dict[str, str]] = {}
    for part in parts:
        for architecture, found in part.functions.items():
            functions.setdefault(architecture, {}).update(found)
    every = (kernel for part in parts for kernel in part.kernels)
    kernels = sorted(every, key=lambda kernel: (kernel.name, kernel.architecture))
    seconds = sum(part.seconds for part in parts)
    return Compiled(seconds, tuple(kernels), parts[0].name, parts[0].command, functions)


def read_note(path: Path, kind: type[Note]) -> Note:
    """A note of the build cache, which its seal says is whole; BuildError if it is not what a build writes."""
    try:
        return read_json(read_bytes(path, private=True), kind)
    except (OSError, DocumentError) as error:
        again = f"remove {path.parent}; it is made again"
        raise BuildError(f"{path} in the build cache is damaged", again, found=str(error)) from None


@contextmanager
def locked(cache: Path) -> Iterator[None]:
    """One build at a time; the lock goes with the process that holds it; BuildError if the cache cannot be written."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        file = open_file(cache / "lock", private=True, write=True)
    except OSError as error:
        fix = "set GEMMPROF_CACHE to a folder that you can write"
        raise BuildError(f"the build cache {cache} cannot be written", fix, found=str(error)) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def compile_units(
    cache: Path,
    units: Sequence[Unit],
    jobs: int,
    progress: Progress,
    generated: Mapping[str, str] | None = None,  # written for this build, by name; None for none
) -> tuple[str, dict[str, BuildError]]:
    """Compile in parallel into the cache; returns the compiler's warnings, and the error of each unit that failed."""
    logs: list[str] = []
    errors: dict[str, BuildError] = {}
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        futures = {pool.submit(compile_unit, cache, unit, generated): unit for unit in units}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                name = futures[future].name
                try:
                    logs.append(future.result())
                except BuildError as error:
                    errors[name] = error
                progress.note(f"compiled {name} ({done} of {len(units)})")
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    return "\n".join(log for log in logs if log), errors


def compile_unit(cache: Path, unit: Unit, generated: Mapping[str, str] | None = None) -> str:
    """Compile one unit into the cache; returns the compiler's warnings; BuildError with its message."""
    started = time.perf_counter()
    target = object_directory(cache, unit)
    with new_entry(target) as folder:
        headers = folder.parent / "generated"
        headers.mkdir()
        for name, text in (generated or {}).items():
            (headers / name).write_text(text, encoding="utf-8")
        paths = [
            *("-I", str(SOURCES / "include"), "-I", headers.name),  # of this machine: no part of a cache key
            *("-c", str(SOURCES / unit.file), "-o", f"{folder.name}/{OBJECT_NAME}"),
        ]
        said = _compiled(unit.file, [*unit.command, *paths], folder.parent)
        kernels = tuple(with_short_names(parse_ptxas(said)))
        functions = function_digests(folder / OBJECT_NAME)
        note = Compiled(time.perf_counter() - started, kernels, unit.name, tuple(unit.command), functions)
        (folder / RECORD_NAME).write_text(json_text(note, 1), encoding="utf-8")
    return "\n".join(line for line in said.splitlines() if "warning" in line.lower())


def link(cache: Path, nvcc: Tool, units: Iterable[Unit], library: Path, what: str, *flags: str) -> None:
    """Link the objects of units into a library; errors name ``what``."""
    objects = [str(object_directory(Path(), unit) / OBJECT_NAME) for unit in units]
    made = os.path.relpath(library, cache)
    # The static CUDA runtime: torch may bring another one, or (a CPU build) none.
    _compiled(what, [str(nvcc.path), "-shared", "-cudart=static", *objects, "-o", made, *flags], cache)


def _compiled(what: str, command: Sequence[str], folder: Path) -> str:
    """What a compiler or linker says of its work in a folder of the cache; BuildError with its message and remedies.

    What lies in the cache is named from there: nvcc takes a path with a comma in it for two.
    """
    completed = run_tool(command, folder)
    if completed.returncode == 0:
        return completed.stderr
    output = completed.stderr + completed.stdout
    lines = [line for line in output.splitlines() if not line.startswith("ptxas info")]
    telling = [line for line in lines if re.search(r"error|fatal|undefined|unsupported", line, re.IGNORECASE)]
    remedies = ["fix the source, then build again: only changed files are compiled"]
    if "nsupported gpu architecture" in output:
        remedies = ["use a newer CUDA toolkit, or leave this architecture out"]
    elif "unsupported GNU version" in output or "host compiler" in output:
        remedies = ["install a host compiler that this nvcc supports: export NVCC_CCBIN=/usr/bin/g++-12"]
    elif "No space left" in output:
        remedies = ["free some disk space, or set GEMMPROF_CACHE to another disk"]
    elif "No such file" in output and ".h" in output:
        remedies = ["check that torch and the CUDA toolkit are installed completely"]
    raise BuildError(f"{what} could not be built", *remedies, found="\n".join((telling or lines)[:20]))


def function_digests(file: Path) -> dict[str, dict[str, str]]:
    """By architecture and name, a digest of the machine code of each function in an object; {} without cuobjdump.

    Its words are hashed as a disassembly writes them, so that digests of older builds stay comparable.
    """
    tool = cuobjdump_path()
    if tool is None:
        return {}
    found: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        run_tool([str(tool), "--extract-elf", "all", str(file.resolve())], folder)
        for path in Path(folder).iterdir():  # module.sm_90a.cubin
            cubin = read_bytes(path, private=True)
            digests = found.setdefault(path.suffixes[-2].removeprefix("."), {})
            for name, (begin, size) in code_spans(cubin).items():
                words = struct.iter_unpack("<Q", cubin[begin : begin + size])
                text = "".join(f"0x{word:016x}" for (word,) in words)
                digests[name] = hashlib.sha256(text.encode()).hexdigest()
    return found


def run_tool(command: Sequence[str], folder: str | Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a compiler or linker, in a folder if one is named, and keep what it says; BuildError if it cannot start."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    except OSError as error:
        raise BuildError(f"{command[0]} does not run", found=str(error)) from error


_DECIDING = ("false", "true", "int", "long")
# The first of a mangled name's template arguments that is a bool or an integer type, names of types before it.
_MANGLED_ARGUMENT = re.compile(r"I(?:N\w+?E|\d+[A-Za-z_]\w*?|f)*?(Lb\d|i|l)E")


def is_main(name: str) -> bool:
    """Whether a kernel of this name is its stage's main one (of several tiles and types, one of the main ones).

    That is a stage's only kernel called ``…gemm…``, or the one whose first template argument is ``false`` (no bounds
    guards) or ``int`` (32-bit indices), types of elements and tiles before it not counted.
    """
    if "gemm" not in name.partition("<")[0]:
        return False
    mangled = _MANGLED_ARGUMENT.search(name)
    if mangled is not None:
        return mangled[1] in ("Lb0", "i")
    _, _, arguments = name.partition("<")
    words = (item.strip() for item in arguments.rstrip(">").split(","))
    return next((word for word in words if word in _DECIDING), None) in (None, "false", "int")


def main_kernels(kernels: Iterable[KernelResources]) -> tuple[KernelResources, ...]:
    """The main kernels of a stage, the one with most registers (the largest tile) first; all of them if none is."""
    every = tuple(kernels)
    main = tuple(kernel for kernel in every if is_main(kernel.name)) or every
    return tuple(sorted(main, key=lambda kernel: -kernel.registers_per_thread))


# --- One variant with some parameters as a small library of its own, without torch: what a search compiles ------------

CANDIDATE_NAME = "candidate.so"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A compiled variant."""

    library: Any  # its path, or what stands for it where the compiler runs elsewhere
    kernels: tuple[KernelResources, ...]  # what the assembler said of them


def compile_candidate(variant: Variant, architecture: str) -> Candidate:
    """Compile a variant for one architecture as its own library, or find it in the cache; BuildError if it fails."""
    nvcc, cache = require_nvcc(), cache_directory()
    parts = stage_units(variant, nvcc, [architecture_number(architecture)])
    units = (*parts, host_unit("include/runtime.cu", nvcc))
    missing = [unit for unit in units if not is_compiled(cache, unit)]
    _, errors = compile_units(cache, missing, len(parts), SILENT)
    if errors:
        raise next(iter(errors.values()))
    library = cache / "candidates" / digest(*(unit.key for unit in units)) / CANDIDATE_NAME
    if not is_whole(library.parent):
        with new_entry(library.parent) as folder:
            link(cache, nvcc, units, folder / CANDIDATE_NAME, variant.source)
    return Candidate(library, read_record(cache, parts).kernels)
