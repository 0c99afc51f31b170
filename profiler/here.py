"""This machine as the place where work runs: the GPU that CUDA uses first, or several."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gemmprof.base.errors import DeviceError
from gemmprof.base.progress import Progress
from gemmprof.gpu.devices import Gpu, find_torch, list_gpus, selected_gpus
from gemmprof.kernels.candidates import compile_candidate
from gemmprof.kernels.compiler import require_nvcc
from gemmprof.profiler import machine as machine_checks
from gemmprof.profiler.keeper import Keeper
from gemmprof.profiler.ncu.command import WITHOUT_NCU, require_ncu
from gemmprof.profiler.profiling import Profiling
from gemmprof.profiler.site import Compilers, LocalPlaces, Machine, Work

if TYPE_CHECKING:
    from gemmprof.kernels.build import BuildResult


@dataclass(frozen=True, slots=True)
class Here:
    """This machine."""

    gpus: str = ""  # which GPUs (`gemmprof.gpu.devices.selected_gpus`); the first of them is profiled

    def check(self, *, profile: bool, runs: Path) -> Machine:
        """Make sure that this machine can do what is asked; DeviceError names what is missing, UsageError a GPU."""
        listed = list_gpus()
        gpu = selected_gpus(listed, self.gpus)[0]
        torch = find_torch()
        checks = [
            machine_checks.check_torch(torch),
            machine_checks.check_driver(gpu, torch.cuda if torch else None),
        ]
        checks.append(machine_checks.check_nvcc(gpu))
        checks += [machine_checks.check_host_compiler(), machine_checks.check_space(runs)]
        ncu = None
        if profile:
            ncu = require_ncu(WITHOUT_NCU)
            checks.append(machine_checks.check_counters(gpu))
        for check in checks:
            if check.ok is False:
                raise DeviceError(f"{check.name}: {check.found}", *check.remedies)
        versions = machine_checks.versions(gpu, ncu)
        return Machine(gpu, ncu, pinned=_pinned(self.gpus, listed), versions=versions)

    def build(self, machine: Machine, progress: Progress) -> BuildResult:
        """Build the extension; for GPUs that were chosen as a program would that sees one of them alone."""
        from gemmprof.kernels.build import build

        targets = ["{}.{}".format(*machine.gpu.compute_capability)] if machine.pinned else None
        return build(architectures=targets, progress=progress)

    def places(self, work: Work, progress: Progress, keep_open: Sequence[int] = ()) -> LocalPlaces:
        """A child on each GPU."""
        gpus = list_gpus()
        cards = [gpu.card for gpu in selected_gpus(gpus, self.gpus)]
        return LocalPlaces(work, cards, progress, pinned=_pinned(self.gpus, gpus), keep_open=keep_open)

    def profiler(self, keeper: Keeper, machine: Machine) -> Profiling:
        """One ncu for all."""
        return Profiling(keeper, machine.ncu, machine.gpu.card, pinned=machine.pinned)

    def compilers(self, jobs: int) -> Compilers:
        """So many compilers at a time."""
        return Compilers(jobs, require_nvcc().banner, compile_candidate, lambda: jobs)


HERE = Here()


def _pinned(selection: str, gpus: Sequence[Gpu]) -> bool:
    """Whether programs must be shown their GPU alone, so that it is the one that results are labelled with."""
    # CUDA counts GPUs in nvidia-smi's order, that of the PCI bus, where CUDA_DEVICE_ORDER asks for it. Else it puts the
    # fastest one first: of several models that may be any.
    ordered = len({gpu.name for gpu in gpus}) <= 1 or os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    return bool(selection) or not ordered
