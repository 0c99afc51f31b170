"""What `gemmprof explain` reads beside the other analyses' metrics: how busy each unit was, and who moved
what.
"""

from __future__ import annotations


def _elapsed(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}.avg.pct_of_peak_sustained_elapsed" for name in names)


# By resource: how busy it was, per cent of its peak over elapsed cycles. The busiest of those present counts.
# Atomics on few words keep one slice of L2 busy, so there the busiest slice counts, not the average one.
BUSY: dict[str, tuple[str, ...]] = {
    "issue": _elapsed("sm__issue_active", "sm__inst_issued"),
    "fma": _elapsed("sm__pipe_fma_cycles_active"),
    "fma_heavy": _elapsed("sm__pipe_fmaheavy_cycles_active"),
    "alu": _elapsed("sm__pipe_alu_cycles_active", "sm__pipe_aluheavy_cycles_active"),
    "fp64": _elapsed("sm__pipe_fp64_cycles_active"),
    "xu": _elapsed("sm__inst_executed_pipe_xu", "sm__pipe_xu_cycles_active"),
    "tensor": _elapsed(
        "sm__pipe_tensor_cycles_active",
        "sm__pipe_tensor_cycles_active_v2",
        "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active",
        "sm__pipe_tensor_op_dmma_cycles_active",
        "sm__pipe_tc_cycles_active",
    ),
    "uniform": _elapsed("sm__inst_executed_pipe_uniform"),
    "adu": _elapsed("sm__inst_executed_pipe_adu"),
    "cbu": _elapsed("sm__inst_executed_pipe_cbu_pred_on_any"),
    "idc": _elapsed("idc__request_cycles_active"),
    "lsu": _elapsed("sm__inst_executed_pipe_lsu", "l1tex__lsuin_requests"),
    "mio": _elapsed("sm__mio_inst_issued"),
    "mio_data": _elapsed("sm__mio2rf_writeback_active"),
    "l1_data": _elapsed("l1tex__data_pipe_lsu_wavefronts"),
    "l1_writeback": _elapsed("l1tex__lsu_writeback_active"),
    "tex": _elapsed("l1tex__data_pipe_tex_wavefronts", "l1tex__f_wavefronts", "sm__inst_executed_pipe_tex"),
    "l1_to_l2": _elapsed("l1tex__m_l1tex2xbar_req_cycles_active"),
    "l2_to_l1": _elapsed("l1tex__m_xbar2l1tex_read_sectors"),
    "l2": _elapsed("lts__t_sectors", "lts__d_sectors"),
    "l2_in": _elapsed("lts__xbar2lts_cycles_active"),
    "l2_out": _elapsed("lts__lts2xbar_cycles_active"),
    "l2_tags": _elapsed("lts__t_tag_requests", "gpu__compute_memory_access_throughput_internal_activity"),
    "l2_atomics": ("lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed",),
    "dram": _elapsed("dram__cycles_active", "gpu__dram_throughput"),
}

L2_ATOMICS_AVERAGE = _elapsed("lts__d_atomic_input_cycles_active")[0]
SM_ELAPSED_CYCLES_MAX = "sm__cycles_elapsed.max"
L1_ACTIVE_CYCLES_AVERAGE = "l1tex__cycles_active.avg"
MAX_WARPS_PER_SM = "device__attribute_max_warps_per_multiprocessor"
SHARED_MEMORY_PER_BLOCK = "launch__shared_mem_per_block"

GLOBAL_LOAD_HIT_RATE = "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct"
LOCAL_LOAD_HIT_RATE = "l1tex__t_sector_pipe_lsu_mem_local_op_ld_hit_rate.pct"
L2_READ_HIT_RATE = "lts__t_sector_op_read_hit_rate.pct"
L1_LOAD_SECTORS_FETCHED = "l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld.sum"
L1_STORE_SECTORS_WRITTEN = "l1tex__m_l1tex2xbar_write_sectors_mem_lg_op_st.sum"
# Sectors at L1's tags: ``space`` is global or local, ``lookup`` is '' or ``_lookup_miss``.
LSU_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_{space}_op_{operation}{lookup}.sum"
SHARED_ATOMIC_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"
SHARED_LOAD_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
SHARED_EXCESS = "derived__memory_l1_wavefronts_shared_excessive"
GLOBAL_EXCESS = "derived__memory_l2_theoretical_sectors_global_excessive"
CONSTANT_REQUESTS = "idc__requests.sum"
# Device memory that the program has allocated, counted by ncu before it replays a kernel.
ACCESSIBLE_BYTES = "profiler__replayer_bytes_mem_accessible.avg"
UNIFORM_BRANCHES = "smsp__sass_average_branch_targets_threads_uniform.pct"


def stalled_per_issue(state: str) -> str:
    """Cycles that a warp spends in a state for each instruction that it issues."""
    return f"smsp__average_warps_issue_stalled_{state}_per_issue_active.ratio"
