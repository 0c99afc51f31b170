"""Where NVIDIA's tools lie on this machine, and which versions they are: ncu, its Python modules, nvcc, nvidia-smi.

Nothing here runs a GPU program or imports a package of NVIDIA's; versions come from asking the tool once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

NCU_VARIABLE = "GEMMPROF_NCU"
"""Environment variable that names the ncu executable to use instead of the one on PATH."""

_VERSION = re.compile(r"(\d+(?:\.\d+){1,3})")
_ASK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Tool:
    """An executable and its version; ``version`` is () where the tool would not say."""

    path: Path
    version: tuple[int, ...]

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


def find_ncu() -> Tool | None:
    """Nsight Compute's command line: ``$GEMMPROF_NCU``, else PATH, else the usual installation folders."""
    path = _ncu_path()
    return None if path is None else Tool(path, _ask_version(path, "Version "))


def nvcc_path() -> Path | None:
    """The CUDA compiler: ``$CUDACXX``, ``$CUDA_HOME/bin``, PATH, ``/usr/local/cuda/bin``, in this order; else None."""
    homes = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"))
    named = [os.environ.get("CUDACXX"), *(str(Path(home) / "bin" / "nvcc") for home in homes if home)]
    for candidate in (*named, "nvcc", "/usr/local/cuda/bin/nvcc"):
        if candidate and (found := shutil.which(candidate)):
            return Path(found)
    return None


def find_nvcc() -> Tool | None:
    """The CUDA compiler and its version, None if there is none."""
    path = nvcc_path()
    return None if path is None else Tool(path, _ask_version(path, "release "))


def ncu_installation(ncu: Path | None = None) -> Path | None:
    """The folder of an Nsight Compute installation (the one that holds ``extras/python``), or None.

    Args:
        ncu: the executable whose installation is meant; by default the one that `find_ncu` finds.
    """
    executable = ncu if ncu is not None else _ncu_path()
    if executable is None:
        return None
    for folder in executable.resolve().parents:
        if _holds_modules(folder):
            return folder
    # The CUDA toolkit's bin/ncu is a script that starts an installation beside or outside the toolkit.
    version = ".".join(str(part) for part in _ask_version(executable, "Version "))
    found = [folder for folder in _installations(executable) if _holds_modules(folder)]
    return next(
        (folder for folder in found if version and version in folder.name), found[0] if found else None
    )


def ncu_python_directory(ncu: Path | None = None) -> Path | None:
    """The folder with the ``ncu_report`` module that belongs to this very ncu (``extras/python``), or None."""
    installation = ncu_installation(ncu)
    return None if installation is None else installation / "extras" / "python"


def _ncu_path() -> Path | None:
    named = os.environ.get(NCU_VARIABLE)
    if named:
        path = shutil.which(named)
        return None if path is None else Path(path)
    on_path = shutil.which("ncu")
    if on_path:
        return Path(on_path)
    candidates = [Path("/usr/local/cuda/bin/ncu"), *(folder / "ncu" for folder in _installations(None))]
    return next((path for path in candidates if os.access(path, os.X_OK)), None)


def _installations(executable: Path | None) -> Iterator[Path]:
    """Folders where an Nsight Compute installation usually lies, newest first within a place."""
    places = [(Path("/opt/nvidia/nsight-compute"), "*"), (Path("/usr/local/cuda"), "nsight-compute-*")]
    if executable is not None:
        places.insert(0, (executable.resolve().parent.parent, "nsight-compute-*"))
    for place, pattern in places:
        yield from sorted(place.glob(pattern), key=lambda folder: parse_version(folder.name), reverse=True)


def _holds_modules(folder: Path) -> bool:
    return (folder / "extras" / "python" / "ncu_report.py").is_file()


@lru_cache(maxsize=16)
def _ask_version(path: Path, before: str) -> tuple[int, ...]:
    """Version that ``path --version`` prints after the text ``before``; () if it cannot be asked."""
    try:
        answer = subprocess.run(
            [str(path), "--version"], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    _, found, rest = answer.stdout.partition(before)
    return parse_version(rest if found else answer.stdout)
