"""Which metrics count what a kernel did, whatever the clocks: the same code on the same data counts the same."""

from __future__ import annotations

import re

_EXECUTED = re.compile(
    r"(?:smsp|sm)__(?:sass_|thread_)*inst_executed(?!.*(?:pct|per_|ratio|peak)).*\.sum$|sass__\w+$"
)
_LAUNCHED = re.compile(
    r"launch__(?:registers_per_thread|shared_mem_per_block\w*|block_size|grid_size|thread_count|cluster_size|stack_size)$"
)
_TRAFFIC = re.compile(
    r"(?:l1tex|lts|dram|lrc)__(?!.*(?:cycles|pct|per_|ratio|rate|throughput|peak|average|hit)).*\.sum$"
)


def counts_instructions(metric: str) -> bool:
    """Whether the metric counts executed instructions: the same in every launch of the same work."""
    return _EXECUTED.match(metric) is not None


def states_launch(metric: str) -> bool:
    """Whether the metric is a parameter of the launch that the code or its caller decides."""
    return _LAUNCHED.match(metric) is not None


def counts_at_l1(metric: str) -> bool:
    """Whether an amount is one at L1, where it depends on the kernel alone."""
    return metric.startswith("l1tex")


def counts_traffic(metric: str) -> bool:
    """Whether the metric is an amount at a level of memory: the same work gives nearly, not exactly, the same."""
    return _TRAFFIC.match(metric) is not None
