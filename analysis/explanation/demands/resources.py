"""The resources that a kernel may run out of: how busy each was, and how busy it gets in practice.

How busy is measured by the hardware, as a share of the launch's elapsed cycles. The ceiling is what a
micro-benchmark (`tests/cuda/pairs`) reaches on an H200; a kernel at the ceiling cannot go faster without
asking less of the resource.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.model import KernelProfile

SM = "sm"
GPU = "gpu"


@dataclass(frozen=True, slots=True)
class Resource:
    """A part of the GPU with a limited rate.

    Attributes:
        key: name in formulas and in ``at_limit``.
        title: name in sentences.
        metrics: how busy it is, per cent of its peak over elapsed cycles; the busiest of those present
            counts.
        scope: ``sm`` where every SM has its own, ``gpu`` where all share it.
        ceiling: share of the peak that a kernel reaches in practice.
    """

    key: str
    title: str
    metrics: tuple[str, ...]
    scope: str
    ceiling: float


def _resource(key: str, title: str, scope: str, ceiling: float) -> Resource:
    return Resource(key, title, metrics.BUSY[key], scope, ceiling)


RESOURCES: tuple[Resource, ...] = (
    _resource("issue", "issue slots", SM, 0.97),
    _resource("fma", "FMA pipe", SM, 0.97),
    _resource("fma_heavy", "integer multiply-add pipe", SM, 0.97),
    _resource("alu", "integer ALU", SM, 0.97),
    _resource("fp64", "FP64 pipe", SM, 0.97),
    _resource("xu", "special-function unit", SM, 0.97),
    _resource("tensor", "tensor cores", SM, 0.95),
    _resource("uniform", "uniform datapath", SM, 0.97),
    _resource("adu", "address-divergence unit", SM, 0.95),
    _resource("cbu", "branch unit", SM, 0.95),
    _resource("idc", "constant cache", SM, 0.95),
    _resource("lsu", "load/store unit", SM, 0.97),
    _resource("mio", "memory I/O queue", SM, 0.97),
    _resource("mio_data", "memory I/O data path", SM, 0.97),
    _resource("l1_data", "L1 data stage", SM, 0.97),
    _resource("l1_writeback", "L1 write-back to registers", SM, 0.97),
    _resource("tex", "texture unit", SM, 0.95),
    _resource("l1_to_l2", "requests from L1 to L2", SM, 0.9),
    _resource("l2_to_l1", "data from L2 to L1", SM, 0.9),
    _resource("l2", "L2 cache", GPU, 0.85),
    _resource("l2_in", "requests and data into L2", GPU, 0.85),
    _resource("l2_out", "data out of L2", GPU, 0.85),
    _resource("l2_tags", "tag lookups of L2", GPU, 0.85),
    _resource("l2_atomics", "atomic units of L2", GPU, 0.85),
    _resource("dram", "DRAM", GPU, 0.92),
    Resource("block_launch", "launching of blocks", (), GPU, 0.85),
    Resource("l1_lines", "room in L1 for loads under way", (), SM, 1.0),
)
"""Every resource that the time model knows."""

BY_KEY = {resource.key: resource for resource in RESOURCES}


@dataclass(frozen=True, slots=True)
class Load:
    """How busy one resource was in a launch: ``busy`` is the share of elapsed cycles, ``metric`` says so."""

    resource: Resource
    busy: float
    metric: str

    @property
    def share(self) -> float:
        """Of what the resource does in practice."""
        return self.busy / self.resource.ceiling


def loads(profile: KernelProfile) -> Iterator[Load]:
    """How busy each resource was, where the report says so."""
    for resource in RESOURCES:
        found = [(value, name) for name in resource.metrics if (value := profile.number(name)) is not None]
        if found:
            busy, metric = max(found)
            yield Load(resource, max(0.0, busy / 100.0), metric)
    cycles = profile.number(metrics.SM_ELAPSED_CYCLES_MAX) or profile.number(metrics.ELAPSED_CYCLES)
    if cycles is not None and cycles > 0 and profile.workload == "kernel":
        # One block a cycle leaves the distributor, whatever its size.
        yield Load(BY_KEY["block_launch"], profile.launch.blocks / cycles, metrics.GRID_SIZE)
