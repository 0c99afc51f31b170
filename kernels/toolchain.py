"""What the build needs of the machine: nvcc, torch's headers, the GPU's architecture. Nothing here imports torch."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gemmprof.errors import BuildError
from gemmprof.toolchain import nvcc_path

DEFAULT_ARCHITECTURE = "9.0"
"""Compute capability that is built for where no GPU is present."""

_ARCHITECTURE = re.compile(r"^(?:sm_?|compute_?)?(\d{1,2})\.?(\d)([af]?)$")


@dataclass(frozen=True, slots=True)
class Nvcc:
    """The CUDA compiler: where it is and its version line, which decides (with the flags) what it makes."""

    path: Path
    version: str


@dataclass(frozen=True, slots=True)
class TorchInstallation:
    """An installed torch, found without importing it (that takes seconds)."""

    root: Path
    version: str
    version_file: str
    """The text of ``torch/version.py``: version, git commit and CUDA version."""

    @property
    def include_directories(self) -> tuple[Path, ...]:
        """Where torch's C++ headers lie."""
        include = self.root / "include"
        return (include, include / "torch" / "csrc" / "api" / "include")

    @property
    def library_directory(self) -> Path:
        """Where ``libtorch_cpu.so`` and ``libc10.so`` lie."""
        return self.root / "lib"


@lru_cache(maxsize=1)
def find_nvcc() -> Nvcc:
    """The compiler that `gemmprof.toolchain.nvcc_path` finds, and what it says of its version.

    Raises:
        BuildError: if there is none, or it does not run.
    """
    if (path := nvcc_path()) is not None:
        completed = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if completed.returncode != 0:
            raise BuildError(f"{path} does not run", found=completed.stderr.strip())
        return Nvcc(path, completed.stdout.strip().splitlines()[-1])
    raise BuildError(
        "the CUDA compiler nvcc was not found",
        remedies=[
            "install the CUDA toolkit (12.8 or newer) and put its bin folder on the PATH",
            "or set CUDA_HOME to the toolkit's folder",
        ],
    )


def find_torch() -> TorchInstallation:
    """The torch of this Python environment, found without importing it.

    Raises:
        BuildError: if it is not installed.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise BuildError(
            "torch is not installed in this Python environment", remedies=["pip install 'gemmprof[gpu]'"]
        )
    root = Path(spec.origin).parent
    text = (root / "version.py").read_text(encoding="utf-8")
    match = re.search(r"__version__ = '([^']+)'", text)
    return TorchInstallation(root, match.group(1) if match else "unknown", text)


@lru_cache(maxsize=1)
def present_architectures() -> tuple[str, ...]:
    """Compute capabilities of the GPUs in this machine, for example ``("9.0",)``; empty if there is none."""
    if shutil.which("nvidia-smi") is None:
        return ()
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        return ()
    found = {line.strip() for line in completed.stdout.splitlines() if _ARCHITECTURE.match(line.strip())}
    return tuple(sorted(found, key=lambda label: tuple(map(int, label.split(".")))))


def architecture_number(label: str) -> str:
    """``90`` for ``9.0``, ``90`` or ``sm_90``; a suffix (``90a``) is kept.

    Raises:
        BuildError: if the text names no architecture.
    """
    match = _ARCHITECTURE.match(label.strip().lower())
    if match is None:
        raise BuildError(
            f"'{label}' is no GPU architecture",
            remedies=["write a compute capability, for example 9.0 or sm_90"],
        )
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
