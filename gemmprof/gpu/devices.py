"""The GPUs of this machine, as nvidia-smi lists them and CUDA shows them. Nothing here creates a CUDA context."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from gemmprof.base.errors import DeviceError, UsageError
from gemmprof.model import Card

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
    """The GPUs that nvidia-smi lists, in its order.

    Raises:
        DeviceError: there is no nvidia-smi, it fails, or it lists none.
    """
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
        gpus.append(
            Gpu(
                index=int(index),
                name=name,
                compute_capability=(int(major), int(minor or 0)) if major.isdecimal() else (0, 0),
                memory_bytes=int(mebibytes) << 20 if mebibytes.isdecimal() else 0,
                driver=driver,
                uuid=uuid,
            )
        )
    return tuple(gpus)


def visible_gpus(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The GPUs that CUDA shows a program, in its order: those of ``CUDA_VISIBLE_DEVICES`` (indices or UUIDs), else all.

    As CUDA does, the list ends at the first entry that names no GPU.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return tuple(gpus)
    chosen: list[Gpu] = []
    for entry in (word.strip() for word in visible.split(",")):
        named = [
            g
            for g in gpus
            if entry == str(g.index) or (entry.startswith("GPU-") and g.uuid.startswith(entry))
        ]
        if not named:
            break
        chosen.append(named[0])
    return tuple(chosen)


def are_ordered_as_listed(gpus: Sequence[Gpu]) -> bool:
    """Whether CUDA counts these GPUs, all of the machine, in nvidia-smi's order, which is that of the PCI bus.

    Unless ``CUDA_DEVICE_ORDER`` asks for the same, CUDA puts the fastest one first: of several models that may be any.
    """
    return len({gpu.name for gpu in gpus}) <= 1 or os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"


def chosen_gpu(gpus: Sequence[Gpu]) -> Gpu:
    """The GPU that CUDA uses first, see `visible_gpus`; DeviceError if ``CUDA_VISIBLE_DEVICES`` hides every GPU."""
    if seen := visible_gpus(gpus):
        return seen[0]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    raise DeviceError(
        "CUDA_VISIBLE_DEVICES hides every GPU of this machine",
        "unset CUDA_VISIBLE_DEVICES, or give the index of a GPU that nvidia-smi lists",
        found=f"CUDA_VISIBLE_DEVICES={visible!r}, GPUs {', '.join(str(gpu.index) for gpu in gpus)}",
    )


def selected_gpus(gpus: Sequence[Gpu], selection: str) -> tuple[Gpu, ...]:
    """The GPUs that ``--gpus`` means: '' the one that CUDA uses first, ``all``, or indices and UUIDs with commas.

    All are of one model, because results of different models are not compared: of several, ``all`` means those of
    the most frequent one, at equal numbers the first.

    Raises:
        DeviceError: ``CUDA_VISIBLE_DEVICES`` hides every GPU.
        UsageError: the selection names a GPU that is not there or hidden, or GPUs of several models.
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
            raise UsageError(
                f"--gpus: CUDA_VISIBLE_DEVICES hides GPU {word}"
                if hidden
                else f"--gpus: there is no GPU '{word}'",
                "--gpus all",
                "--gpus with indices that nvidia-smi lists: --gpus 0,1",
                found=f"GPUs that CUDA shows: {known}",
            )
        chosen[named[0]] = None
    if len({gpu.name for gpu in chosen}) > 1:
        raise UsageError(
            "--gpus names GPUs of several models; what they measure cannot be compared",
            "choose GPUs of one model, and run the command once for each model",
            found=", ".join(f"{gpu.index}: {gpu.name}" for gpu in chosen),
        )
    return tuple(chosen)
