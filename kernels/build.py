"""Builds the ladder as a torch extension, cached by content.

Every stage is compiled by nvcc alone and cached under the hash of all that decides its object code: source, included
headers, parameters, flags, compiler version, architectures. The library is cached under the hash of its objects and
of torch. So a second build compiles nothing, and changing one stage compiles one file. Builds may run concurrently.

The cache is ``$GEMMPROF_CACHE``, else ``$XDG_CACHE_HOME/gemmprof``, else ``~/.cache/gemmprof``; it may be deleted at
any time.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmprof.errors import BuildError
from gemmprof.kernels.catalog import Variant, all_variants
from gemmprof.kernels.ptxas import KernelResources, parse_ptxas
from gemmprof.kernels.toolchain import (
    DEFAULT_ARCHITECTURE,
    Nvcc,
    TorchInstallation,
    architecture_number,
    find_nvcc,
    find_torch,
    present_architectures,
)

if TYPE_CHECKING:
    from gemmprof.kernels.operators import Extension

CSRC = Path(__file__).resolve().parent / "csrc"
LIBRARY_NAME = "libgemmprof.so"
RECORDS_NAME = "build.json"

DEVICE_FLAGS = ("-std=c++17", "-O3", "-lineinfo", "-Xptxas=-v", "-Xcompiler=-fPIC")
"""How a stage is compiled; ``-lineinfo`` ties SASS to source lines and does not change the code."""

HOST_FLAGS = ("-std=c++17", "-O2", "-Xcompiler=-fPIC")

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StageBuild:
    """What the compiler made of one variant of a stage.

    Attributes:
        name: the operator's name.
        source_hash: hash of the source, its headers and its parameters (not of flags or compiler).
        compiled: whether this build compiled it; False if the cache had it.
        seconds: how long the compiler took, also where that was an earlier build.
        kernels: resources of each kernel on each architecture.
    """

    name: str
    source_hash: str
    compiled: bool
    seconds: float
    kernels: tuple[KernelResources, ...] = field(repr=False)

    def resources(self, architecture: str | None = None) -> KernelResources:
        """The stage's main kernel: the one for whole tiles (first template argument false), or its only one."""
        chosen = [k for k in self.kernels if architecture is None or k.architecture == architecture]
        main = [k for k in chosen if "<false" in k.kernel or "ILb0" in k.kernel]
        if not chosen:
            raise BuildError(f"stage {self.name} was not built for {architecture}")
        return (main or chosen)[0]


@dataclass(frozen=True, slots=True)
class BuildResult:
    """A built extension.

    Attributes:
        library: the shared library that ``load`` opens.
        architectures: targets that it holds code for, for example ``("sm_90",)``.
        compiler: nvcc's build line.
        stages: by operator name, in the order of the ladder.
        compiled: what this build compiled (operator names, and ``binding.cpp``), empty if all came from the cache.
        seconds: wall time of this build.
        log: what the compiler said (warnings), empty if nothing was compiled.
    """

    library: Path
    architectures: tuple[str, ...]
    compiler: str
    stages: Mapping[str, StageBuild]
    compiled: tuple[str, ...]
    seconds: float
    log: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class _Unit:
    """One compiler call."""

    name: str
    file: str
    command: tuple[str, ...]
    key: str
    source_hash: str


def cache_directory() -> Path:
    """Where objects and libraries are kept."""
    if named := os.environ.get("GEMMPROF_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gemmprof"


def source_closure(file: Path) -> tuple[Path, ...]:
    """The file and every header of ours that it includes, directly or not."""
    seen: dict[Path, None] = {}
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path in seen or not path.is_file():
            continue
        seen[path] = None
        waiting += [path.parent / name for name in _INCLUDE.findall(path.read_text(encoding="utf-8"))]
    return tuple(sorted(seen))


def source_hash(variant: Variant) -> str:
    """Hash of what a variant's code is made from: source, our headers, parameters."""
    return _digest(_contents(CSRC / variant.source), sorted(variant.parameters.items()))


def build(
    *,
    architectures: Sequence[str] | None = None,
    jobs: int | None = None,
    force: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
    names: Sequence[str] | None = None,
    parameters: Mapping[str, Mapping[str, int]] | None = None,
) -> BuildResult:
    """Build the extension, or find it in the cache.

    Args:
        architectures: compute capabilities (``9.0``); the GPUs of this machine if None, 9.0 if it has none.
        jobs: compilers at a time; the number of cores if None.
        force: compile everything again.
        progress: called with (name, compiled so far, how many to compile) after every compiler call.
        names: operator names to build; the whole ladder if None.
        parameters: tile parameters by operator name, in place of the catalog's.

    Raises:
        BuildError: no compiler, no torch, or the compiler's own message.
    """
    started = time.perf_counter()
    nvcc, torch = find_nvcc(), find_torch()
    targets = architectures or present_architectures() or (DEFAULT_ARCHITECTURE,)
    numbers = tuple(dict.fromkeys(architecture_number(target) for target in targets))
    variants = with_parameters(all_variants(), parameters or {})
    if names is not None:
        variants = tuple(variant for variant in variants if variant.name in names)
    units = [_stage_unit(variant, nvcc, numbers) for variant in variants]
    runtime = _plain_unit("runtime.cu", nvcc, ())
    stage_list = "".join(f"GEMMPROF_STAGE({variant.name})\n" for variant in variants)
    binding = _binding_unit(nvcc, torch, stage_list)
    # The binding takes longest, so it starts first.
    everything = [binding, runtime, *units]

    cache = cache_directory()
    key = _digest([unit.key for unit in everything], str(torch.root), torch.version_file)
    library = cache / "libraries" / key / LIBRARY_NAME
    compiled: tuple[str, ...] = ()
    log = ""
    if force or not library.is_file():
        with _lock(cache):
            missing = [u for u in everything if force or not _is_cached(cache, u)]
            if force or missing or not library.is_file():
                log = _compile(cache, missing, jobs or os.cpu_count() or 1, progress, stage_list)
                _link(cache, everything, nvcc, torch, library)
                compiled = tuple(unit.name for unit in missing)
    records = json.loads((library.parent / RECORDS_NAME).read_text(encoding="utf-8"))
    return BuildResult(
        library=library,
        architectures=tuple(f"sm_{number}" for number in numbers),
        compiler=nvcc.version,
        stages={unit.name: _stage_build(records[unit.name], unit, unit.name in compiled) for unit in units},
        compiled=compiled,
        seconds=time.perf_counter() - started,
        log=log,
    )


def with_parameters(
    variants: Sequence[Variant], parameters: Mapping[str, Mapping[str, int]]
) -> tuple[Variant, ...]:
    """The variants with some parameters replaced.

    Raises:
        BuildError: if a name is not in the ladder or a letter is not one of the stage's.
    """
    names = {variant.name: variant for variant in variants}
    for name, values in parameters.items():
        if name not in names or set(values) - set(names[name].parameters):
            raise BuildError(f"no stage {name} with parameters {', '.join(values)}")
    return tuple(
        Variant(v.name, v.stage, v.source, {**v.parameters, **parameters.get(v.name, {})}) for v in variants
    )


def compile_command(variant: Variant, nvcc: Nvcc, numbers: Sequence[str]) -> tuple[str, ...]:
    """The call of nvcc that compiles one variant, without input and output file."""
    return (
        str(nvcc.path),
        *DEVICE_FLAGS,
        *(f"-gencode=arch=compute_{number},code=sm_{number}" for number in numbers),
        f"-DGEMMPROF_STAGE={variant.name}",
        *(f"-D{letter}={value}" for letter, value in variant.parameters.items()),
    )


def _stage_unit(variant: Variant, nvcc: Nvcc, numbers: Sequence[str]) -> _Unit:
    command = compile_command(variant, nvcc, numbers)
    key = _digest(_contents(CSRC / variant.source), command[1:], nvcc.version)
    return _Unit(variant.name, variant.source, command, key, source_hash(variant))


def _plain_unit(file: str, nvcc: Nvcc, flags: tuple[str, ...], *also: str) -> _Unit:
    command = (str(nvcc.path), *HOST_FLAGS, *flags)
    sources = _contents(CSRC / file)
    return _Unit(file, file, command, _digest(sources, command[1:], nvcc.version, *also), _digest(sources))


def _binding_unit(nvcc: Nvcc, torch: TorchInstallation, stage_list: str) -> _Unit:
    includes = tuple(f"-isystem={path}" for path in torch.include_directories)
    return _plain_unit("binding.cpp", nvcc, includes, stage_list, torch.version_file)


def _contents(file: Path) -> list[tuple[str, str]]:
    return [(path.name, path.read_text(encoding="utf-8")) for path in source_closure(file)]


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]


def _object_directory(cache: Path, unit: _Unit) -> Path:
    return cache / "objects" / unit.key


def _is_cached(cache: Path, unit: _Unit) -> bool:
    return (_object_directory(cache, unit) / "object.o").is_file()


@contextmanager
def _lock(cache: Path) -> Iterator[None]:
    """One build at a time; the lock goes with the process that holds it, however it ends."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        file = (cache / "lock").open("w")
    except OSError as error:
        raise BuildError(
            f"the build cache {cache} cannot be written",
            found=str(error),
            remedies=["set GEMMPROF_CACHE to a folder that you can write"],
        ) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(
    cache: Path,
    units: Sequence[_Unit],
    jobs: int,
    progress: Callable[[str, int, int], None] | None,
    stage_list: str,
) -> str:
    """Compile the units in parallel into the cache; returns what the compiler said."""
    logs: list[str] = []
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        futures = {pool.submit(_compile_one, cache, unit, stage_list): unit for unit in units}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                logs.append(future.result())
                if progress is not None:
                    progress(futures[future].name, done, len(units))
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    return "\n".join(log for log in logs if log)


def _compile_one(cache: Path, unit: _Unit, stage_list: str) -> str:
    started = time.perf_counter()
    target = _object_directory(cache, unit)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".compiling-") as scratch:
        folder = Path(scratch) / "result"
        generated = Path(scratch) / "generated"
        folder.mkdir()
        generated.mkdir()
        (generated / "stages.inc").write_text(stage_list, encoding="utf-8")
        output = ["-I", str(generated), "-c", str(CSRC / unit.file), "-o", str(folder / "object.o")]
        completed = _run([*unit.command, *output])
        if completed.returncode != 0:
            raise _compiler_error(unit.file, completed.stderr + completed.stdout)
        seconds = time.perf_counter() - started
        record = {
            "name": unit.name,
            "command": unit.command,
            "seconds": seconds,
            "kernels": [asdict(kernel) for kernel in parse_ptxas(completed.stderr)],
        }
        (folder / "record.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
        _move_into_place(folder, target)
    return "\n".join(line for line in completed.stderr.splitlines() if "warning" in line.lower())


def _link(cache: Path, units: Sequence[_Unit], nvcc: Nvcc, torch: TorchInstallation, library: Path) -> None:
    library.parent.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent.parent, prefix=".linking-") as scratch:
        folder = Path(scratch) / "result"
        folder.mkdir()
        records = {unit.name: _record(cache, unit) for unit in units}
        (folder / RECORDS_NAME).write_text(json.dumps(records, indent=1), encoding="utf-8")
        objects = [str(_object_directory(cache, unit) / "object.o") for unit in units]
        # The static CUDA runtime: torch may bring another one, or (a CPU build) none.
        command = [str(nvcc.path), "-shared", "-cudart=static", *objects, "-o", str(folder / library.name)]
        command += [f"-L{torch.library_directory}", "-ltorch_cpu", "-ltorch", "-lc10"]
        completed = _run(command)
        if completed.returncode != 0:
            raise _compiler_error(library.name, completed.stderr + completed.stdout)
        _move_into_place(folder, library.parent)


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"{command[0]} does not run", found=str(error)) from error


def _move_into_place(folder: Path, target: Path) -> None:
    """Give a finished folder its name, so that a reader sees all of it or nothing."""
    if target.exists():
        shutil.rmtree(target)
    folder.rename(target)


def _compiler_error(file: str, output: str) -> BuildError:
    lines = [line for line in output.splitlines() if not line.startswith("ptxas info")]
    interesting = [
        line for line in lines if re.search(r"error|fatal|undefined|unsupported", line, re.IGNORECASE)
    ]
    remedies = ["fix the source, then build again: only changed files are compiled"]
    if "nsupported gpu architecture" in output:
        remedies = ["use a newer CUDA toolkit, or leave this architecture out"]
    elif "unsupported GNU version" in output or "host compiler" in output:
        remedies = [
            "install a host compiler that this nvcc supports and name it: export NVCC_CCBIN=/usr/bin/g++-12"
        ]
    elif "No space left" in output:
        remedies = ["free some disk space, or set GEMMPROF_CACHE to another disk"]
    elif "No such file" in output and ".h" in output:
        remedies = ["check that torch and the CUDA toolkit are installed completely"]
    return BuildError(
        f"{file} could not be built", remedies=remedies, found="\n".join((interesting or lines)[:20])
    )


def _record(cache: Path, unit: _Unit) -> dict[str, Any]:
    text = (_object_directory(cache, unit) / "record.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def _stage_build(record: Mapping[str, Any], unit: _Unit, compiled: bool) -> StageBuild:
    kernels = tuple(KernelResources(**item) for item in record["kernels"])
    return StageBuild(unit.name, unit.source_hash, compiled, record["seconds"], kernels)


def load(built: BuildResult | None = None) -> Extension:
    """Build (or find) the extension and load it into torch; see ``operators.load``."""
    from gemmprof.kernels import operators

    return operators.load(built)
