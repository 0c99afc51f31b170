"""Reasoning and advice: the sentences follow from the numbers, and every suggestion is true."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmprof import Occupancy, occupancy
from gemmprof.analysis.occupancy.calculator import (
    MIN_USEFUL_REGISTERS,
    conclusion,
    explain,
    explain_together,
    limited_by,
    suggest,
)
from gemmprof.base.errors import OccupancyError
from gemmprof.gpu.arch import LIMITS


def changes(answer: Occupancy) -> list[str]:
    return [str(suggestion) for suggestion in suggest(answer)]


def test_the_reasoning_of_the_example() -> None:
    answer = occupancy("8.6", 1024, 37, 8192)
    registers, shared, warps, blocks = explain(answer)
    assert registers.text.startswith("37 registers × 32 threads = 1,184 → rounded to 1,280 a warp")
    assert "= 40,960 a block" in registers.text
    assert registers.text.endswith("→ 1 block")
    assert shared.text == "8,192 + 1,024 reserved bytes = 9,216 a block, of 102,400 → 11 blocks"
    assert warps.text == "1,024 of 1,536 threads = 32 of 48 warps → 1 block"
    assert blocks.text == "an SM has 16 block slots → 16 blocks"
    assert [step.binding for step in (registers, shared, warps, blocks)] == [True, False, True, False]
    assert (
        conclusion(answer)
        == "1 block × 32 warps = 32 of 48 warps, 66.7 %: limited by registers and warp slots"
    )
    assert "50.0 %: limited by registers" in conclusion(occupancy("9.0", 1024, 37, 8192))


def test_odd_blocks_barriers_and_no_shared_memory() -> None:
    texts = {step.resource: step.text for step in explain(occupancy("9.0", 100, 16, block_barriers=0))}
    assert (
        texts["warps"] == "100 of 2,048 threads = 4 of 64 warps (28 lanes of the last warp idle) → 16 blocks"
    )
    assert texts["barriers"] == "no barrier: as many as there are block slots → 32 blocks"
    assert (
        "no shared memory" in {s.resource: s.text for s in explain(occupancy("7.5", 64, 16))}["shared_memory"]
    )


def test_steps_that_architectures_share_are_said_once() -> None:
    answers = [occupancy(pair, 1024, 37, 8192) for pair in LIMITS]
    shared = explain_together(answers)
    assert len({step.text for step in shared}) == len(shared)
    said = [(step.resource, label) for step, labels in shared.items() for label in labels]
    expected = [(step.resource, answer.limits.label) for answer in answers for step in explain(answer)]
    assert sorted(said) == sorted(expected)


def test_where_nothing_limits() -> None:
    full = occupancy("9.0", 256, 32)
    assert limited_by(full) == "nothing"
    assert conclusion(full).endswith("100.0 %: every warp slot is taken")
    assert suggest(full) == ()


def test_the_nearest_changes_of_the_example() -> None:
    assert changes(occupancy("9.0", 1024, 37, 8192)) == [
        "≤ 32 registers per thread: 2 blocks, 100.0 %",
        "768 threads per block: 2 blocks, 75.0 %",
    ]
    # Warps and registers both bind on 8.6: only another block size helps.
    assert changes(occupancy("8.6", 1024, 37, 8192)) == ["768 threads per block: 2 blocks, 100.0 %"]


def test_changes_that_only_help_together_are_named_together() -> None:
    answer = occupancy("9.0", 256, 80, 76_800)
    assert answer.block_limits["registers"] == answer.block_limits["shared_memory"] == 3
    assert (
        "≤ 64 registers per thread and ≤ 57,344 bytes of shared memory per block: 4 blocks, 50.0 %"
        in changes(answer)
    )


def test_a_larger_carve_out_is_suggested() -> None:
    answer = occupancy("9.0", 256, 32, 40_000, shared_memory_config=102_400)
    assert changes(answer)[0] == "a carve-out of 135,168 bytes: 3 blocks, 37.5 %"


def test_a_kernel_that_cannot_be_launched_gets_a_way_out() -> None:
    answer = occupancy("8.6", 512, 255)
    assert "the launch fails" in conclusion(answer)
    assert changes(answer)[0] == "≤ 128 registers per thread: 1 block, 33.3 %"


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(sorted(LIMITS)),
    st.integers(1, 1024),
    st.integers(1, 255),
    st.integers(0, 60_000),
    st.integers(0, 16),
    st.booleans(),
)
def test_every_suggestion_is_true_and_the_nearest_of_its_kind(
    pair: tuple[int, int], threads: int, registers: int, shared: int, barriers: int, small: bool
) -> None:
    config = 65_536 if small else None
    try:
        present = occupancy(
            pair, threads, registers, shared, shared_memory_config=config, block_barriers=barriers
        )
    except OccupancyError:
        return
    for suggestion in suggest(present):
        after = suggestion.occupancy
        again = occupancy(
            pair,
            after.threads_per_block,
            after.registers_per_thread,
            after.shared_memory_per_block,
            shared_memory_config=after.shared_memory_config,
            block_barriers=after.block_barriers,
        )
        assert again == after
        assert after.theoretical_occupancy > present.theoretical_occupancy
        changed = {
            "threads": after.threads_per_block != present.threads_per_block,
            "registers": after.registers_per_thread != present.registers_per_thread,
            "shared_memory": after.shared_memory_per_block != present.shared_memory_per_block,
            "shared_memory_config": after.shared_memory_config != present.shared_memory_config,
            "barriers": after.block_barriers != present.block_barriers,
        }
        assert {name for name, is_changed in changed.items() if is_changed} == set(suggestion.resources)
        assert after.registers_per_thread >= min(MIN_USEFUL_REGISTERS, present.registers_per_thread)
        # One register or one byte more than suggested would not reach as many blocks.
        if suggestion.resources == ("registers",):
            assert with_one_more(after, registers=1) < after.blocks_per_sm
        if suggestion.resources == ("shared_memory",):
            assert with_one_more(after, shared=1) < after.blocks_per_sm


def with_one_more(answer: Occupancy, *, registers: int = 0, shared: int = 0) -> int:
    try:
        return occupancy(
            answer.compute_capability,
            answer.threads_per_block,
            answer.registers_per_thread + registers,
            answer.shared_memory_per_block + shared,
            shared_memory_config=answer.shared_memory_config,
            block_barriers=answer.block_barriers,
        ).blocks_per_sm
    except OccupancyError:
        return 0


def test_the_most_that_can_be_reached_is_suggested_where_all_slots_cannot() -> None:
    """8 KiB hold the driver's reserve of eight blocks and nothing besides, and that of 16 not at all."""
    present = occupancy("8.6", 32, 32, 3000, shared_memory_config=8192)
    assert present.blocks_per_sm == 2
    fewer = [found for found in suggest(present) if found.resources == ("shared_memory",)]
    assert [(found.occupancy.blocks_per_sm, found.occupancy.shared_memory_per_block) for found in fewer] == [
        (3, 1664),
        (8, 0),
    ]


@pytest.mark.parametrize(("threads", "registers"), [(480, 40), (352, 64), (704, 32), (96, 160)])
@pytest.mark.parametrize("pair", ["8.0", "8.6", "9.0"])
def test_the_nearest_block_sizes_that_help_are_suggested(pair: str, threads: int, registers: int) -> None:
    present = occupancy(pair, threads, registers)
    better = {
        size: after.theoretical_occupancy
        for size in range(32, 1025, 32)
        if (after := occupancy(pair, size, registers)).theoretical_occupancy > present.theoretical_occupancy
    }
    suggested = [s.occupancy.threads_per_block for s in suggest(present) if s.resources == ("threads",)]
    most = [size for size, reached in better.items() if reached == max(better.values())]
    nearest = min(most, key=lambda size: abs(size - threads), default=None)
    smaller = max((size for size in better if size < threads), default=None)
    larger = min((size for size in better if size > threads), default=None)
    assert set(suggested) == {smaller, larger, nearest} - {None}


def test_the_reasoning_counts_the_warps_that_the_registers_hold() -> None:
    """Where the division leaves nothing over, and where it does."""
    texts = [explain(occupancy("9.0", 256, registers))[0].text for registers in (32, 40, 64)]
    assert "; 65,536 hold 64 such warps →" in texts[0]
    assert "; 65,536 hold 51 such warps, 48 in whole fours →" in texts[1]
    assert "; 65,536 hold 32 such warps →" in texts[2]
