"""How close a launch comes to its limits: speed of light, roofline, memory chart."""

from __future__ import annotations

from gemmprof import metrics as m
from gemmprof.analysis.provenance.figure import Figure, table

_SCALAR_FP32 = tuple(m.executed_per_cycle(operation) for operation in ("fadd", "fmul", "ffma"))

FIGURES: tuple[Figure, ...] = (
    *table(
        "speed_of_light",
        ("sm_percent", "Compute (SM)", m.SM_THROUGHPUT),
        ("memory_percent", "Memory", m.MEMORY_THROUGHPUT),
        ("l1_percent", "L1/TEX", m.L1_THROUGHPUT),
        ("l2_percent", "L2", m.L2_THROUGHPUT),
        ("dram_percent", "Device memory", m.DRAM_THROUGHPUT),
        ("duration_ns", "Duration under the profiler", m.DURATION),
        ("elapsed_cycles", "Cycles elapsed", m.ELAPSED_CYCLES),
        ("sm_active_cycles", "SM active cycles", m.SM_ACTIVE_CYCLES),
        ("sm_clock_hz", "SM clock", m.SM_CLOCK),
        ("dram_clock_hz", "Memory clock", m.DRAM_CLOCK),
        ("sm_breakdown.percent", "What compute is made of", m.BREAKDOWN_SM, "the metrics that it lists"),
        (
            "memory_breakdown.percent",
            "What memory is made of",
            m.BREAKDOWN_MEMORY,
            "the metrics that it lists",
        ),
        (
            "bottleneck",
            "Nsight Compute calls it",
            (m.SM_THROUGHPUT, m.MEMORY_THROUGHPUT),
            "80 % of either: high throughput; both below 60 %: latency; else the larger, balanced within 10 points",
        ),
    ),
    *table(
        "roofline",
        (
            "points.achieved",
            "Achieved FLOP/s (FP32)",
            (*_SCALAR_FP32, m.SMSP_CLOCK),
            "(FADD + FMUL + 2 FFMA) per cycle × SMSP clock; tensor paths: operations per cycle × SM clock",
        ),
        (
            "points.compute.peak",
            "Compute peak (FP32)",
            (m.peak_per_cycle("ffma"), m.SM_ELAPSED_CLOCK),
            "2 × peak FFMA per cycle × SM clock",
        ),
        ("points.memory.achieved", "Bandwidth of device memory", m.DRAM_BYTES_PER_SECOND),
        (
            "points.memory.peak",
            "Peak of device memory",
            (m.DRAM_BYTES_PEAK, m.DRAM_CLOCK),
            "peak bytes per cycle × DRAM clock",
        ),
        (
            "memory_roofs.l2",
            "L2 bandwidth and peak",
            (m.L2_TO_XBAR_PER_SECOND, m.L2_TO_XBAR_PEAK, m.L2_CLOCK),
            "32 byte × active cycles of L2 to crossbar; peak: 32 byte × their peak × L2 clock",
        ),
        (
            "memory_roofs.l1",
            "L1 bandwidth and peak",
            (m.L1_WRITEBACK_DSHARED_PER_SECOND, m.L1_WRITEBACK_DSHARED_PEAK, m.L1_CLOCK),
            "128 byte × write-back cycles; peak: 128 byte × their peak × L1 clock",
        ),
        (
            "memory_roofs.shared",
            "Shared-memory bandwidth and peak",
            (m.SHARED_WAVEFRONTS, m.DURATION, m.L1_CLOCK),
            "128 byte × wavefronts ÷ duration; peak: 128 byte × SMs × L1 clock",
        ),
        (
            "points.intensity",
            "Intensity",
            (*_SCALAR_FP32, m.SMSP_CLOCK, m.DRAM_BYTES_PER_SECOND),
            "achieved FLOP/s ÷ achieved byte/s of the level",
        ),
        (
            "points.attainable",
            "Attainable",
            (m.peak_per_cycle("ffma"), m.SM_ELAPSED_CLOCK, m.DRAM_BYTES_PEAK, m.DRAM_CLOCK),
            "min(compute peak, intensity × memory peak); reached: achieved ÷ attainable; headroom: the inverse",
        ),
    ),
    *table(
        "memory_chart",
        ("units.hit_rate", "Hit rates", (m.L1_HIT_RATE, m.L2_HIT_RATE), "the metrics themselves"),
        (
            "units.percent_of_peak",
            "How busy a unit is",
            (m.L1_THROUGHPUT, m.L2_THROUGHPUT, m.DRAM_THROUGHPUT, m.SHARED_PEAK_PERCENT),
            "the metrics themselves",
        ),
        (
            "units.busiest",
            "Busiest part of a unit",
            m.BREAKDOWN_MEMORY,
            "the largest of the unit's metrics that it lists",
        ),
        (
            "links.bytes",
            "Bytes of a link",
            (m.L2_TO_L1_BYTES, m.L1_TO_L2_BYTES, m.DRAM_READ_BYTES[0], m.DRAM_WRITE_BYTES[0]),
            "the metrics themselves; at L1's tag stage 32 byte × sectors, at shared memory 128 byte × wavefronts",
        ),
        ("busy_percent", "Memory busy", m.MEMORY_BUSY),
        ("bandwidth_percent", "Busiest connection", m.MEMORY_BANDWIDTH),
        ("pipes_busy_percent", "Memory pipes busy", m.MEMORY_PIPES_BUSY),
        ("dram_bytes_per_second", "Device memory, both ways", m.DRAM_BYTES_PER_SECOND),
    ),
)
