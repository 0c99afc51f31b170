"""What the build needs of the machine: nvcc, torch's headers, the GPU's architecture. Nothing here imports torch."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gemmprof.base.errors import BuildError, DeviceError
from gemmprof.gpu.devices import Tool, TorchInstallation, find_nvcc, find_torch, list_gpus, visible_gpus

DEFAULT_ARCHITECTURE = "9.0"  # compute capability that is built for where no GPU is present

_ARCHITECTURE = re.compile(r"^(?:sm_?|compute_?)?(\d{1,2})\.?(\d)([af]?)$")


def require_nvcc() -> Tool:
    """The compiler that `gemmprof.gpu.devices.find_nvcc` finds; BuildError if there is none, or it does not run."""
    nvcc = find_nvcc()
    if nvcc is None:
        raise BuildError(
            "the CUDA compiler nvcc was not found",
            "install the CUDA toolkit (12.8 or newer) and put its bin folder on the PATH",
            "or set CUDA_HOME to the toolkit's folder",
        )
    if not nvcc.banner:
        raise BuildError(f"{nvcc.path} does not run", "`gemmprof doctor` checks this machine")
    return nvcc


def require_torch() -> TorchInstallation:
    """The torch of this Python environment; BuildError if it is not installed."""
    torch = find_torch()
    if torch is None:
        fix = "pip install '.[gpu]' in the checkout of gemmprof"
        raise BuildError("torch is not installed in this Python environment", fix)
    return torch


def present_architectures() -> tuple[str, ...]:
    """Compute capabilities of the GPUs that CUDA sees here, for example ``("9.0",)``; empty if there is none."""
    try:
        gpus = visible_gpus(list_gpus())
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
