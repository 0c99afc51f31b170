"""What warps and schedulers do: warp states, scheduler, instruction mix."""

from __future__ import annotations

from gemmprof import metrics as m
from gemmprof.analysis.provenance.figure import Figure, table

FIGURES: tuple[Figure, ...] = (
    *table(
        "warp_states",
        ("cycles_per_issued_instruction", "Cycles per issued instruction", m.CYCLES_PER_ISSUE),
        ("cycles_per_executed_instruction", "Cycles per executed instruction", m.CYCLES_PER_EXECUTED),
        ("threads_per_instruction", "Threads per instruction", m.THREADS_PER_INSTRUCTION),
        (
            "threads_per_instruction_not_predicated",
            "The same, predicated on",
            m.THREADS_PER_INSTRUCTION_PREDICATED_ON,
        ),
        (
            "states.cycles_per_issue",
            "Cycles per issue of a state",
            m.STALL_CYCLES_FAMILY,
            "the metric itself",
        ),
        (
            "states.share",
            "Share of a state",
            (m.STALL_CYCLES_FAMILY, m.CYCLES_PER_ISSUE),
            "its cycles per issue ÷ cycles per issued instruction",
        ),
        ("states.samples", "Samples of a state", m.STALL_SAMPLES_FAMILY, "the metric itself"),
        ("sample_count", "Samples", m.SAMPLE_COUNT),
        ("sampling_interval_cycles", "Cycles between samples", m.SAMPLING_INTERVAL_CYCLES),
    ),
    *table(
        "scheduler",
        ("issued_per_cycle", "Issued", m.ISSUE_ACTIVE),
        ("one_or_more_eligible_percent", "Cycles that issue", m.ISSUE_ACTIVE_PERCENT),
        ("no_eligible_percent", "Cycles without a ready warp", m.ISSUE_IDLE_PERCENT),
        ("cycles_per_issue", "Cycles per issue", m.ISSUE_ACTIVE, "1 ÷ instructions issued per cycle"),
        ("active_warps", "Active", m.WARPS_ACTIVE_PER_SCHEDULER),
        ("eligible_warps", "Eligible", m.WARPS_ELIGIBLE_PER_SCHEDULER),
        ("max_warps", "Warps that a scheduler can hold", m.WARPS_MAX_PER_SCHEDULER),
        ("theoretical_warps", "Allowed by the launch", m.WARPS_THEORETICAL_PER_SCHEDULER),
        ("instructions_per_cycle_active", "Instructions per cycle, executed (active)", m.IPC_ACTIVE),
        ("instructions_per_cycle_elapsed", "Instructions per cycle, executed (elapsed)", m.IPC_ELAPSED),
        (
            "issued_instructions_per_cycle_active",
            "Instructions per cycle, issued (active)",
            m.ISSUED_IPC_ACTIVE,
        ),
        ("issue_slots_busy_percent", "Issue slots busy", m.ISSUE_SLOTS_BUSY),
        ("sm_busy_percent", "SM busy", m.SM_BUSY),
    ),
    *table(
        "instruction_mix",
        (
            "executed",
            "Executed",
            m.EXECUTED_PER_OPCODE,
            "sum over all opcodes",
        ),
        ("executed_counter", "Executed, by its own counter", m.INSTRUCTIONS_EXECUTED),
        ("issued", "Issued", m.INSTRUCTIONS_ISSUED),
        ("executed_per_scheduler", "Executed per scheduler", m.INSTRUCTIONS_EXECUTED_PER_SCHEDULER),
        ("issued_per_scheduler", "Issued per scheduler", m.INSTRUCTIONS_ISSUED_PER_SCHEDULER),
        (
            "thread_executed",
            "Thread instructions",
            (m.THREADS_PER_OPCODE, m.THREADS_PREDICATED_BY_ADDRESS),
            "sum over all opcodes, else over all instructions",
        ),
        ("classes.share", "Share of a class", m.EXECUTED_PER_OPCODE, "its opcodes ÷ all executed"),
        (
            "ratios.main_per_shared_load",
            "Arithmetic per shared load",
            m.EXECUTED_PER_OPCODE,
            "executions of the main arithmetic ÷ (LDS + LDSM)",
        ),
        (
            "ratios.main_per_global_load",
            "Arithmetic per global load",
            m.EXECUTED_PER_OPCODE,
            "executions of the main arithmetic ÷ (LDG + LDGSTS)",
        ),
        (
            "ratios.bytes_per_shared_load",
            "Bytes per thread and shared load",
            m.EXECUTED_PER_MODIFIER,
            "mean width of LDS and LDSM by their modifiers",
        ),
        (
            "ratios.bytes_per_global_load",
            "Bytes per thread and global load",
            m.EXECUTED_PER_MODIFIER,
            "mean width of LDG and LDGSTS by their modifiers",
        ),
        (
            "ratios.math_share",
            "Arithmetic, share of all",
            m.EXECUTED_PER_OPCODE,
            "FP32, FP64, FP16, tensor and special ÷ all",
        ),
        (
            "ratios.fma_share",
            "Fused multiply-adds, share of all",
            m.EXECUTED_PER_OPCODE,
            "FFMA, DFMA, HFMA2 ÷ all",
        ),
        ("pipes.percent", "Pipes", m.PIPE_FAMILY, "the metric itself"),
        ("categories", "Nsight Compute's categories", m.EXECUTED_PER_CATEGORY, "the metric itself"),
    ),
)
