"""The GPUs of this machine, as nvidia-smi lists them and CUDA shows them, and NVIDIA's tools with their versions.

Nothing here creates a CUDA context, runs a GPU program or imports a package of NVIDIA's.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from gemmprof.base import system
from gemmprof.base.errors import DeviceError, UsageError
from gemmprof.base.foreign_files import read_text
from gemmprof.model import Card

VISIBLE = "CUDA_VISIBLE_DEVICES"
_QUERY = ("index", "name", "compute_cap", "memory.total", "driver_version", "uuid")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as nvidia-smi lists it; ``memory_bytes`` is its whole device memory."""

    index: int
    name: str
    compute_capability: tuple[int, int]
    memory_bytes: int
    driver: str
    uuid: str

    @property
    def card(self) -> Card:
        """What results that come from it are labelled with."""
        return Card(self.name, self.index, self.uuid)


def list_gpus() -> tuple[Gpu, ...]:
    """The GPUs that nvidia-smi lists, in its order; DeviceError if it is not there, fails, or lists none."""
    nvidia_smi = shutil.which("nvidia-smi")
    remedies = (
        "run this on a machine with an NVIDIA GPU and its driver; `nvidia-smi` must list the GPU",
        "in a container, start it with the GPU passed through (docker run --gpus all …)",
        "without a GPU, `gemmprof report` and the other commands read reports and the recorded run",
    )
    if nvidia_smi is None:
        raise DeviceError("no NVIDIA GPU was found on this machine", *remedies, found="no nvidia-smi on PATH")
    call = [nvidia_smi, f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeviceError("nvidia-smi does not answer", *remedies, found=str(error)) from error
    if answer.returncode != 0:
        said = (answer.stdout + answer.stderr).strip().splitlines()
        raise DeviceError("nvidia-smi finds no usable GPU", *remedies, found=said[0] if said else "")
    gpus = parse_gpus(answer.stdout)
    if not gpus:
        raise DeviceError("no NVIDIA GPU was found on this machine", *remedies, found="nvidia-smi lists none")
    return gpus


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """Read nvidia-smi's CSV; a line with other than the asked fields is left out."""
    gpus = []
    for row in csv.reader(io.StringIO(text), skipinitialspace=True):
        if len(row) != len(_QUERY):
            continue
        index, name, capability, mebibytes, driver, uuid = (field.strip() for field in row)
        major, _, minor = capability.partition(".")
        pair = (int(major), int(minor or 0)) if major.isdecimal() else (0, 0)
        memory = int(mebibytes) << 20 if mebibytes.isdecimal() else 0
        gpus.append(Gpu(int(index), name, pair, memory, driver, uuid))
    return tuple(gpus)


def visible_gpus(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The GPUs that CUDA shows a program, in its order: those of ``CUDA_VISIBLE_DEVICES`` (indices or UUIDs), else all.

    As CUDA does, the list ends at the first entry that names no GPU.
    """
    visible = os.environ.get(VISIBLE)
    if visible is None:
        return tuple(gpus)
    chosen: list[Gpu] = []
    for entry in (word.strip() for word in visible.split(",")):
        by_id = entry.startswith("GPU-")
        named = [g for g in gpus if entry == str(g.index) or (by_id and g.uuid.startswith(entry))]
        if not named:
            break
        chosen.append(named[0])
    return tuple(chosen)


def chosen_gpu(gpus: Sequence[Gpu]) -> Gpu:
    """The GPU that CUDA uses first, see `visible_gpus`; DeviceError if ``CUDA_VISIBLE_DEVICES`` hides every GPU."""
    if seen := visible_gpus(gpus):
        return seen[0]
    visible = os.environ.get(VISIBLE)
    raise DeviceError(
        "CUDA_VISIBLE_DEVICES hides every GPU of this machine",
        "unset CUDA_VISIBLE_DEVICES, or give the index of a GPU that nvidia-smi lists",
        found=f"CUDA_VISIBLE_DEVICES={visible!r}, GPUs {', '.join(str(gpu.index) for gpu in gpus)}",
    )


def selected_gpus(gpus: Sequence[Gpu], selection: str) -> tuple[Gpu, ...]:
    """The GPUs that ``--gpus`` means: '' the one that CUDA uses first, ``all``, or indices and UUIDs with commas.

    All are of one model, because results of different models are not compared: of several, ``all`` means those of the
    most frequent one, at equal numbers the first. DeviceError if all are hidden, UsageError for others than there are.
    """
    first = chosen_gpu(gpus)
    if not selection:
        return (first,)
    visible = visible_gpus(gpus)
    if selection.strip() == "all":
        models = [gpu.name for gpu in visible]
        most = max(dict.fromkeys(models), key=models.count)
        return tuple(gpu for gpu in visible if gpu.name == most)
    known = ", ".join(f"{gpu.index} ({gpu.name})" for gpu in visible)
    chosen: dict[Gpu, None] = {}
    for word in (part.strip() for part in selection.split(",")):
        named = [gpu for gpu in visible if word == str(gpu.index) or (word and gpu.uuid == word)]
        if not named:
            hidden = any(word == str(gpu.index) for gpu in gpus)
            why = f"CUDA_VISIBLE_DEVICES hides GPU {word}" if hidden else f"there is no GPU '{word}'"
            fixes = "--gpus all", "--gpus with indices that nvidia-smi lists: --gpus 0,1"
            raise UsageError(f"--gpus: {why}", *fixes, found=f"GPUs that CUDA shows: {known}")
        chosen[named[0]] = None
    if len({gpu.name for gpu in chosen}) > 1:
        what = "--gpus names GPUs of several models; what they measure cannot be compared"
        fix = "choose GPUs of one model, and run the command once for each model"
        raise UsageError(what, fix, found=", ".join(f"{gpu.index}: {gpu.name}" for gpu in chosen))
    return tuple(chosen)


# --- Where NVIDIA's tools lie, and which versions they are ------------------------------------------------------------
# Nothing here runs a GPU program or imports a package of NVIDIA's; versions come from asking the tool once.

NCU_VARIABLE = "GEMMPROF_NCU"  # the environment variable that names the ncu to use instead of PATH's
_VERSION = re.compile(r"(\d+(?:\.\d+){1,3})")
_ENCODING = re.compile(r"/\* (0x[0-9a-f]{16}) \*/")
_ASK_SECONDS = 30.0
TOOLKIT = Path("/usr/local/cuda")  # where the CUDA toolkit usually lies


@dataclass(frozen=True, slots=True)
class Tool:
    """An executable and what it says of its version."""

    path: Path
    version: tuple[int, ...]  # its number, () where the tool would not say
    banner: str = ""  # last line of ``--version``: nvcc's build, which decides (with flags) what it makes

    @property
    def version_text(self) -> str:
        """The version as people write it, for example ``2025.3.1``."""
        return ".".join(str(part) for part in self.version) or "unknown version"


def parse_version(text: str) -> tuple[int, ...]:
    """The first dotted number in ``text``: ``(2025, 3, 1)`` for ``Version 2025.3.1.0 (build …)``, () if none.

    A fourth part is dropped: ncu appends a zero that its file names and its Python package do not have.
    """
    match = _VERSION.search(text)
    return tuple(int(part) for part in match.group(1).split(".")[:3]) if match else ()


def _first(candidates: Iterable[str | Path | None]) -> Path | None:
    """The first of these names (looked up on PATH) and paths that can be executed."""
    return next((Path(found) for one in candidates if one and (found := shutil.which(one))), None)


def find_ncu() -> Tool | None:
    """Nsight Compute's command line: ``$GEMMPROF_NCU``, else PATH, else the usual installation folders."""
    path = _ncu_path()
    return None if path is None else Tool(path, _ask_version(path, "Version "))


def _in_named_toolkits(tool: str) -> list[Path]:
    homes = map(os.environ.get, ("CUDA_HOME", "CUDA_PATH"))
    return [Path(home) / "bin" / tool for home in homes if home]


def find_nvcc() -> Tool | None:
    """The CUDA compiler: ``$CUDACXX``, ``$CUDA_HOME/bin``, PATH, ``/usr/local/cuda/bin``, in this order; else None."""
    path = _first((os.environ.get("CUDACXX"), *_in_named_toolkits("nvcc"), "nvcc", TOOLKIT / "bin" / "nvcc"))
    if path is None:
        return None
    lines = _ask(path).strip().splitlines()
    return Tool(path, _ask_version(path, "release "), lines[-1] if lines else "")


def cuobjdump_path() -> Path | None:
    """cuobjdump: on PATH, in the CUDA toolkit, or in the Python package ``nvidia-cuda-cuobjdump``; else None."""
    # NVIDIA's Python packages unpack into the namespace package "nvidia", under cu13/bin or cuda_cuobjdump/bin.
    spec = importlib.util.find_spec("nvidia")
    packages = (spec.submodule_search_locations if spec is not None else None) or ()
    unpacked = (tool for one in packages for tool in sorted(Path(one).glob("*/bin/cuobjdump"), reverse=True))
    return _first(("cuobjdump", *_in_named_toolkits("cuobjdump"), TOOLKIT / "bin" / "cuobjdump", *unpacked))


def sass_functions(text: str, architecture: str = "") -> Iterator[tuple[str, str, list[str]]]:
    """Architecture (given for a bare cubin), mangled name and lines of each function that ``--dump-sass`` printed."""
    name, lines = "", list[str]()
    for line in [*text.splitlines(), "\t\tFunction : "]:
        heading = line.startswith("\tcode for ")
        if not heading and "Function : " not in line:
            lines.append(line)
            continue
        if name:
            yield architecture, name, lines
        name, lines = "" if heading else line.partition("Function : ")[2].strip(), []
        if heading:
            architecture = line.rpartition(" ")[2]


def sass_encodings(lines: Iterable[str]) -> bytes:
    """The instructions of a function, as the GPU reads them."""
    return "".join(encoding for line in lines for encoding in _ENCODING.findall(line)).encode()


def ncu_installation(ncu: Path | None = None) -> Path | None:
    """The installation (it holds ``extras/python``) of this executable, else of the one that `find_ncu` finds."""
    executable = ncu if ncu is not None else _ncu_path()
    if executable is None:
        return None
    for folder in executable.resolve().parents:
        if _holds_modules(folder):
            return folder
    # The CUDA toolkit's bin/ncu is a script that starts an installation beside or outside the toolkit.
    version = ".".join(str(part) for part in _ask_version(executable, "Version "))
    found = [folder for folder in _installations(executable) if _holds_modules(folder)]
    same = (folder for folder in found if version and version in folder.name)
    return next(same, found[0] if found else None)


def ncu_python_directory(ncu: Path | None = None) -> Path | None:
    """The folder with the ``ncu_report`` module that belongs to this very ncu (``extras/python``), or None."""
    installation = ncu_installation(ncu)
    return None if installation is None else installation / "extras" / "python"


def _ncu_path() -> Path | None:
    if named := os.environ.get(NCU_VARIABLE):
        return _first([named])
    return _first(["ncu", TOOLKIT / "bin" / "ncu", *(folder / "ncu" for folder in _installations(None))])


def _installations(executable: Path | None) -> Iterator[Path]:
    """Folders where an Nsight Compute installation usually lies, newest first within a place."""
    places = [(Path("/opt/nvidia/nsight-compute"), "*"), (TOOLKIT, "nsight-compute-*")]
    if executable is not None:
        places.insert(0, (executable.resolve().parent.parent, "nsight-compute-*"))
    for place, pattern in places:
        yield from sorted(place.glob(pattern), key=lambda folder: parse_version(folder.name), reverse=True)


def _holds_modules(folder: Path) -> bool:
    return (folder / "extras" / "python" / "ncu_report.py").is_file()


def _ask_version(path: Path, before: str) -> tuple[int, ...]:
    """Version that ``path --version`` prints after the text ``before``; () if it cannot be asked."""
    answer = _ask(path)
    _, found, rest = answer.partition(before)
    return parse_version(rest if found else answer)


@lru_cache(maxsize=16)
def _ask(path: Path) -> str:
    """What ``path --version`` prints, '' if it cannot be asked."""
    try:
        command = [str(path), "--version"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout


@dataclass(frozen=True, slots=True)
class TorchInstallation:
    """An installed torch, found without importing it (that takes seconds)."""

    root: Path  # its C++ headers lie in ``include`` and in ``include/torch/csrc/api/include``, its libraries in ``lib``
    version: str  # ``2.11.0+cu130``
    cuda: str | None  # the CUDA release that it was built for, None for a build without
    version_file: str  # the text of ``torch/version.py``: version, git commit and CUDA version


def find_torch() -> TorchInstallation | None:
    """The torch of this Python environment, found without importing it; None if there is none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    try:
        text = read_text(root / "version.py")
    except OSError:
        return None
    version = re.search(r"__version__\s*=\s*['\"]([^'\"]+)['\"]", text)
    cuda = re.search(r"^cuda(?:\s*:[^=]*)?\s*=\s*['\"]([\d.]+)['\"]", text, re.MULTILINE)
    return TorchInstallation(root, version[1] if version else "unknown", cuda[1] if cuda else None, text)


# --- What ptxas says --------------------------------------------------------------------------------------------------
# What the compiler says about its kernels: the output of ``nvcc -Xptxas -v`` (``ptxas -v``).


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What one kernel of a build takes, before it is launched."""

    name: str  # the kernel as the tool names it, usually mangled; untrusted text
    architecture: str  # the compiler's target, for example ``sm_90``
    registers_per_thread: int  # registers
    static_shared_memory: int = 0  # bytes per block without the driver's reserve
    barriers: int | None = None  # block barriers, None where the tool does not say
    stack_bytes: int = 0  # stack frame per thread
    local_bytes: int | None = None  # bytes a thread beside the stack, None where unknown
    spill_store_bytes: int | None = None  # bytes of spill code a thread, None where unknown
    spill_load_bytes: int | None = None  # likewise of those loaded

    @property
    def spill_bytes(self) -> int:
        """Bytes spilled a thread, stores and loads together, 0 where the tool does not say."""
        return (self.spill_store_bytes or 0) + (self.spill_load_bytes or 0)

    @property
    def warning(self) -> str:
        """What is wrong with the kernel's registers, '' if nothing is."""
        stores, loads = self.spill_store_bytes, self.spill_load_bytes
        if stores or loads:
            return f"spills: {stores or 0:,} bytes stored, {loads or 0:,} bytes loaded per thread"
        if stores is None and (self.stack_bytes or self.local_bytes):
            size = self.stack_bytes + (self.local_bytes or 0)
            return f"{size:,} bytes of stack per thread: spills or local arrays (ptxas -v tells which)"
        return ""


_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)' for '(?P<arch>[^']+)'")
_PROPERTIES = re.compile(r"Function properties for (?P<name>\S+)")
_SPILLS = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)
_USED = re.compile(r"Used (?P<registers>\d+) registers")
_BARRIERS = re.compile(r"used (?P<barriers>\d+) barriers")
# Compilers before CUDA 5 wrote "4096+16 bytes smem": static plus parameters.
_SHARED = re.compile(r"(?P<static>\d+)(?:\+(?P<system>\d+))? bytes smem")

# A hundred thousand names take a second; one of 300 letters may stand for gigabytes, each part naming the last twice.
DEMANGLE_SECONDS, DEMANGLED_BYTES = 5.0, 64 << 20


def parse_ptxas(text: str) -> tuple[KernelResources, ...]:
    """Every kernel of the output, in its order; other compilers' and other tools' lines are skipped."""
    kernels = []
    entry: tuple[str, str] | None = None
    described = ""
    stack = stores = loads = 0
    for line in text.splitlines():
        if match := _ENTRY.search(line):
            entry = (match["name"], match["arch"])
            described, stack, stores, loads = match["name"], 0, 0, 0
        elif match := _PROPERTIES.search(line):
            described = match["name"]  # device functions that were not inlined have properties of their own
        elif (match := _SPILLS.search(line)) and entry is not None and described == entry[0]:
            stack, stores, loads = int(match["stack"]), int(match["stores"]), int(match["loads"])
        elif (match := _USED.search(line)) and entry is not None:
            barriers = _BARRIERS.search(line)
            shared = _SHARED.search(line)
            made = KernelResources(
                *entry,
                registers_per_thread=int(match["registers"]),
                static_shared_memory=int(shared["static"]) + int(shared["system"] or 0) if shared else 0,
                barriers=int(barriers["barriers"]) if barriers else None,
                stack_bytes=stack,
                spill_store_bytes=stores,
                spill_load_bytes=loads,
            )
            kernels.append(made)
            entry = None
    return tuple(kernels)


def demangle(names: Sequence[str]) -> list[str]:
    """C++ names in readable form where a demangler is installed (cu++filt or c++filt), else as they are."""
    tool = shutil.which("cu++filt") or shutil.which("c++filt")
    if tool is None or not names:
        return list(names)
    text = "\n".join(names) + "\n"
    try:
        answer = system.ask_tool([tool], given=text, seconds=DEMANGLE_SECONDS, most=DEMANGLED_BYTES)
    except (OSError, subprocess.TimeoutExpired):
        return list(names)
    lines = answer.stdout.splitlines()
    return lines if answer.returncode == 0 and len(lines) == len(names) else list(names)


def with_short_names(kernels: Sequence[KernelResources]) -> tuple[KernelResources, ...]:
    """The kernels under the names that people gave them, in the order of those names, then of architectures."""
    names = demangle([kernel.name for kernel in kernels])
    named = (replace(kernel, name=short_name(name)) for name, kernel in zip(names, kernels, strict=True))
    return tuple(sorted(named, key=lambda kernel: (kernel.name, kernel.architecture)))


def short_name(name: str) -> str:
    """A demangled name without namespace and parameters; a mangled one as it is.

    ``void warptiled::sgemm_warptiled<false, true>(int, …)`` becomes ``sgemm_warptiled<false, true>``.
    """
    if "(" not in name:
        return name
    depth = 0
    for position, character in enumerate(name):
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0:
            name = name[:position]
            break
    # NVIDIA's demangler writes template arguments as casts.
    name = re.sub(r"\(bool\)([01])", lambda match: ("false", "true")[int(match[1])], name)
    name = name.replace("(int)", "")
    head, angle, arguments = name.partition("<")
    return head.split()[-1].rpartition("::")[2] + angle + arguments
