"""The resources that a kernel may run out of: how busy each was, and how busy it gets in practice.

How busy is measured by the hardware, as a share of the launch's elapsed cycles. The ceiling is what a micro-benchmark
(`tests/cuda/pairs`) reaches on an H200; a kernel at the ceiling cannot go faster without asking less of the resource.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gemmprof.model import KernelProfile

SM = "sm"
GPU = "gpu"

_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
_ELAPSED_MAX = ".max.pct_of_peak_sustained_elapsed"


@dataclass(frozen=True, slots=True)
class Resource:
    """A part of the GPU with a limited rate.

    Attributes:
        key: name in formulas and in ``at_limit``.
        title: name in sentences.
        metrics: how busy it is, per cent of its peak over elapsed cycles; the busiest of those present counts.
        scope: ``sm`` where every SM has its own, ``gpu`` where all share it.
        ceiling: share of the peak that a kernel reaches in practice.
        changes: what goes beyond it, for a kernel with nothing else left to gain.
    """

    key: str
    title: str
    metrics: tuple[str, ...]
    scope: str
    ceiling: float
    changes: str = ""


def _elapsed(*names: str) -> tuple[str, ...]:
    return tuple(name + _ELAPSED for name in names)


RESOURCES: tuple[Resource, ...] = (
    Resource("issue", "issue slots", _elapsed("sm__issue_active", "sm__inst_issued"), SM, 0.97),
    Resource("fma", "FMA pipe", _elapsed("sm__pipe_fma_cycles_active"), SM, 0.97),
    Resource("fma_heavy", "integer multiply-add pipe", _elapsed("sm__pipe_fmaheavy_cycles_active"), SM, 0.97),
    Resource("alu", "integer ALU", _elapsed("sm__pipe_alu_cycles_active", "sm__pipe_aluheavy_cycles_active"), SM, 0.97),
    Resource("fp64", "FP64 pipe", _elapsed("sm__pipe_fp64_cycles_active"), SM, 0.97),
    Resource("xu", "special-function unit", _elapsed("sm__inst_executed_pipe_xu", "sm__pipe_xu_cycles_active"), SM, 0.97),
    Resource(
        "tensor",
        "tensor cores",
        _elapsed(
            "sm__pipe_tensor_cycles_active",
            "sm__pipe_tensor_cycles_active_v2",
            "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active",
            "sm__pipe_tensor_op_dmma_cycles_active",
            "sm__pipe_tc_cycles_active",
        ),
        SM,
        0.95,
    ),
    Resource("uniform", "uniform datapath", _elapsed("sm__inst_executed_pipe_uniform"), SM, 0.97),
    Resource("adu", "address-divergence unit", _elapsed("sm__inst_executed_pipe_adu"), SM, 0.95),
    Resource("cbu", "branch unit", _elapsed("sm__inst_executed_pipe_cbu_pred_on_any"), SM, 0.95),
    Resource("idc", "constant cache", _elapsed("idc__request_cycles_active"), SM, 0.95),
    Resource("lsu", "load/store unit", _elapsed("sm__inst_executed_pipe_lsu", "l1tex__lsuin_requests"), SM, 0.97),
    Resource("mio", "memory I/O queue", _elapsed("sm__mio_inst_issued"), SM, 0.97),
    Resource("mio_data", "memory I/O data path", _elapsed("sm__mio2rf_writeback_active"), SM, 0.97),
    Resource("l1_data", "L1 data stage", _elapsed("l1tex__data_pipe_lsu_wavefronts"), SM, 0.97),
    Resource("l1_writeback", "L1 write-back to registers", _elapsed("l1tex__lsu_writeback_active"), SM, 0.97),
    Resource(
        "tex",
        "texture unit",
        _elapsed("l1tex__data_pipe_tex_wavefronts", "l1tex__f_wavefronts", "sm__inst_executed_pipe_tex"),
        SM,
        0.95,
    ),
    Resource("l1_to_l2", "requests from L1 to L2", _elapsed("l1tex__m_l1tex2xbar_req_cycles_active"), SM, 0.9),
    Resource("l2_to_l1", "data from L2 to L1", _elapsed("l1tex__m_xbar2l1tex_read_sectors"), SM, 0.9),
    Resource(
        "l2",
        "L2 cache",
        _elapsed(
            "lts__t_sectors",
            "lts__d_sectors",
            "lts__lts2xbar_cycles_active",
            "lts__xbar2lts_cycles_active",
        ),
        GPU,
        0.85,
    ),
    Resource(
        "l2_tags",
        "tag lookups of L2",
        _elapsed("lts__t_tag_requests", "gpu__compute_memory_access_throughput_internal_activity"),
        GPU,
        0.85,
    ),
    Resource(
        "l2_atomics", "atomic units of L2", ("lts__d_atomic_input_cycles_active" + _ELAPSED_MAX,), GPU, 0.85
    ),
    Resource("dram", "DRAM", _elapsed("dram__cycles_active", "gpu__dram_throughput"), GPU, 0.92),
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
