"""What this machine has for collecting: GPU, driver, compiler, Nsight Compute, its Python module, torch, permission.

Every check looks and never changes anything; none imports torch or creates a CUDA context, so all of them together
take a fraction of a second.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import shutil
from pathlib import Path

from gemmprof.base.errors import DeviceError
from gemmprof.base.foreign_files import read_text
from gemmprof.gpu import devices
from gemmprof.gpu.arch import LIMITS
from gemmprof.model.answers import Check
from gemmprof.profiler.ncu.command import COUNTER_REMEDIES, WITHOUT_NCU, require_ncu

DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")
PROCESS_STATUS = Path("/proc/self/status")
CAP_SYS_ADMIN, CAP_PERFMON = 21, 38  # bit numbers of the capabilities in ``CapEff`` (linux/capability.h)
PERFMON_DRIVER = 565  # first driver branch that accepts CAP_PERFMON for performance counters
# Oldest driver branch that runs programs of a CUDA release, any minor version (CUDA compatibility guide).
OLDEST_DRIVERS = {11: 450, 12: 525, 13: 580}
NEEDED_BYTES = 2 << 30


def effective_capabilities(status: str) -> int:
    """The bit mask behind ``CapEff:`` in the text of /proc/self/status; 0 if it is not there."""
    match = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", status, re.MULTILINE)
    return int(match.group(1), 16) if match else 0


def counters_permitted(parameters: str | None, capabilities: int, driver: tuple[int, ...]) -> bool | None:
    """Whether this process may read performance counters; None where the driver's parameters cannot be read."""
    if capabilities >> CAP_SYS_ADMIN & 1:
        return True
    if capabilities >> CAP_PERFMON & 1 and driver and driver[0] >= PERFMON_DRIVER:
        return True
    restricted = _restricted(parameters)
    return None if restricted is None else restricted == "0"


def _restricted(parameters: str | None) -> str | None:
    """The driver's setting, ``0`` where every user may; None if it does not say."""
    match = re.search(r"^RmProfilingAdminOnly:\s*(\d+)", parameters or "", re.MULTILINE)
    return None if match is None else match[1]


def check_counters(gpu: devices.Gpu | None) -> Check:
    """May this user read the GPU's performance counters?"""
    if gpu is None:
        return Check("counter permission", None, "there is no GPU whose counters could be read")
    driver = devices.parse_version(gpu.driver)
    parameters = _read(DRIVER_PARAMETERS)
    capabilities = effective_capabilities(_read(PROCESS_STATUS) or "")
    permitted = counters_permitted(parameters, capabilities, driver)
    known = {"CAP_SYS_ADMIN": CAP_SYS_ADMIN, "CAP_PERFMON": CAP_PERFMON}
    held = [name for name, bit in known.items() if capabilities >> bit & 1]
    restricted = _restricted(parameters)
    setting = f"RmProfilingAdminOnly: {restricted}" if restricted else f"{DRIVER_PARAMETERS} is not readable"
    found = f"{setting}; this process has {' and '.join(held) if held else 'neither CAP_SYS_ADMIN nor CAP_PERFMON'}"
    return Check("counter permission", permitted, found, () if permitted else COUNTER_REMEDIES)


def check_gpu() -> tuple[Check, devices.Gpu | None]:
    """Is there a GPU, and which one will be used?"""
    try:
        gpus = devices.list_gpus()
        gpu = devices.chosen_gpu(gpus)
    except DeviceError as error:
        return Check("GPU", False, error.found or error.message, error.remedies), None
    more = f" (the first of {len(gpus)})" if len(gpus) > 1 else ""
    memory = f", {gpu.memory_bytes / 2**30:.0f} GiB" if gpu.memory_bytes else ""
    capability = f"{gpu.compute_capability[0]}.{gpu.compute_capability[1]}"
    return Check("GPU", True, f"{gpu.name}, compute capability {capability}{memory}{more}"), gpu


def check_driver(gpu: devices.Gpu | None, torch_cuda: str | None) -> Check:
    """Is there a driver, and is it new enough for torch's CUDA?"""
    if gpu is None:
        return Check("driver", False, "no driver answers", ("install the NVIDIA driver, then reboot",))
    needed = OLDEST_DRIVERS.get(next(iter(devices.parse_version(torch_cuda or "")), 0))
    version = devices.parse_version(gpu.driver)
    if needed is None or not version or version[0] >= needed:
        return Check("driver", True, gpu.driver)
    older = f"or install a torch built for an older CUDA than {torch_cuda} (https://pytorch.org/get-started)"
    found = f"{gpu.driver}, but torch's CUDA {torch_cuda} needs {needed} or newer"
    return Check("driver", False, found, ("upgrade the NVIDIA driver", older))


def check_nvcc(gpu: devices.Gpu | None) -> Check:
    """Is there a CUDA compiler that knows the GPU?"""
    nvcc = devices.find_nvcc()
    if nvcc is None:
        remedy = "install the CUDA toolkit (https://developer.nvidia.com/cuda-downloads), or set CUDA_HOME"
        return Check("nvcc", False, "no nvcc in $CUDA_HOME/bin, on PATH or in /usr/local/cuda/bin", (remedy,))
    found = f"{nvcc.version_text} ({nvcc.path})"
    limits = LIMITS.get(gpu.compute_capability) if gpu is not None else None
    if limits is not None and nvcc.version and nvcc.version < limits.oldest_nvcc:
        need = ".".join(map(str, limits.oldest_nvcc))
        remedy = f"install CUDA {need} or newer, or set CUDA_HOME to one that is installed"
        old = f"{found} cannot compile for compute capability {limits.label}"
        return Check("nvcc", False, old, (remedy,))
    return Check("nvcc", True, found)


def check_host_compiler() -> Check:
    """Is there a C++ compiler for nvcc and the torch binding?"""
    named = os.environ.get("CXX")
    compiler = shutil.which(named) if named else shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        found = f"$CXX names {named}, which is not there" if named else "no c++ or g++ on PATH"
        remedy = "install one that nvcc supports: apt install g++ (or set CXX)"
        return Check("C++ compiler", False, found, (remedy,))
    return Check("C++ compiler", True, compiler)


def check_ncu() -> Check:
    """Is Nsight Compute's command line there and new enough?"""
    try:
        ncu = require_ncu(WITHOUT_NCU)
    except DeviceError as error:
        return Check("ncu", False, f"{error.message} ({error.found})", error.remedies)
    return Check("ncu", True, f"{ncu.version_text} ({ncu.path})")


def check_ncu_report() -> Check:
    """Can the reports that this ncu writes be read here?"""
    module = _package_version("ncu-report")
    ncu = devices.find_ncu()
    shipped = devices.ncu_python_directory(ncu.path) if ncu else None
    if module is None and shipped is None:
        return Check("ncu-report", False, "not installed", ("pip install ncu-report",))
    if module is None:
        return Check("ncu-report", True, f"the module inside Nsight Compute ({shipped})")
    if ncu is not None and ncu.version and devices.parse_version(module) < ncu.version:
        found = f"{module}, older than ncu {ncu.version_text}"
        if shipped is not None:
            return Check("ncu-report", True, f"{found}: the module inside Nsight Compute is used ({shipped})")
        return Check("ncu-report", None, found, ("pip install --upgrade ncu-report",))
    return Check("ncu-report", True, module)


def check_torch(torch: devices.TorchInstallation | None) -> Check:
    """Is torch there, with CUDA?"""
    if torch is None:
        return Check("torch", False, "not installed", ("pip install '.[gpu]' in the checkout of gemmprof",))
    if torch.cuda is None:
        remedy = "install a CUDA build: https://pytorch.org/get-started/locally"
        return Check("torch", False, f"{torch.version}, built without CUDA", (remedy,))
    return Check("torch", True, f"{torch.version} for CUDA {torch.cuda}")


def check_space(folder: Path) -> Check:
    """Is there room for a run?"""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    found = f"{free / 2**30:.0f} GiB free in {existing}"
    if free < NEEDED_BYTES:
        return Check("disk space", False, found, ("free some space, or choose another --output",))
    return Check("disk space", True, found)


def versions(gpu: devices.Gpu, ncu: devices.Tool | None) -> dict[str, str]:
    """Versions of what decides the numbers of a run on this machine, by name; what is not there is left out."""
    nvcc, torch = devices.find_nvcc(), devices.find_torch()
    found = {
        "driver": gpu.driver,
        "torch": torch.version if torch else None,
        "cuda": torch.cuda if torch else None,
        "nvcc": nvcc.version_text if nvcc else None,
        "ncu": ncu.version_text if ncu else None,
    }
    return {name: version for name, version in found.items() if version}


def examine(runs: Path) -> tuple[Check, ...]:
    """Every check, in the order in which its failure would stop a collection into the folder ``runs``."""
    gpu_check, gpu = check_gpu()
    torch = devices.find_torch()
    nvml = _package_version("nvidia-ml-py")
    found = nvml or "not installed: SM clocks are not recorded"
    fixes = () if nvml else ("pip install nvidia-ml-py",)
    clocks = Check("nvidia-ml-py", nvml is not None, found, fixes, needed=False)
    of_gpu = gpu_check, check_driver(gpu, torch.cuda if torch else None), check_torch(torch), check_nvcc(gpu)
    others = check_host_compiler(), check_ncu(), check_ncu_report(), check_counters(gpu), check_space(runs)
    return (*of_gpu, *others, clocks)


def _package_version(name: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return None


def _read(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return read_text(path, errors="replace")
    return None
