"""One launch of each kernel and grid, the expensive ones first, and the ncu filter that means just these."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_data import DATA

from gemmprof import metrics
from gemmprof.analysis.inputs.selection import EVERYTHING
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.api import launch_choice
from gemmprof.profiler.programs import LONGEST_FILTER, Launch, choose, launch_filter


def launch(name: str, grid: int = 1, duration: float = 1e6, wanted: bool = True) -> Launch:
    return Launch(f"{name}(int)", f"_Z{name}", (grid, 1, 1), (128, 1, 1), 0, duration, wanted)


def meant(options: tuple[str, ...], launches: list[Launch]) -> list[int]:
    """Positions that ncu would profile: its own rule, that invocations count for each launch configuration."""
    assert options[:4] == ("--filter-mode", "per-launch-config", "--kernel-name-base", "mangled")
    _, _, kernel = options[5].partition("regex:")
    name, _, number = kernel.rpartition(":")
    seen: dict[object, int] = {}
    found = []
    for position, one in enumerate(launches):
        if re.search(name, one.mangled_name) is None:
            continue
        counted = (one.key, one.process)  # each process counts its own launches
        seen[counted] = seen.get(counted, 0) + 1
        if re.search(number, str(seen[counted])):
            found.append(position)
    return found


def test_one_launch_of_each_kernel_and_grid() -> None:
    launches = [launch("a"), launch("b"), launch("a"), launch("a", grid=2), launch("b")]
    choice = choose(launches, limit=10)
    assert (choice.kernels, choice.launches, choice.left_out, choice.share) == (3, 3, 0, 1.0)
    profiled = meant(choice.filters, launches)
    assert {launches[position].key for position in profiled} == {one.key for one in launches}


def test_the_hot_launch_of_one_of_several_processes_is_not_missed() -> None:
    """Numbered across ranks it would be the fourth, which no rank launches."""
    steps = [launch("a", duration=duration) for duration in (1e3, 1e3, 1e3, 5e6)]
    launches = [replace(one, process=100 + place % 2) for place, one in enumerate(steps)]
    choice = choose(launches, limit=10)
    profiled = meant(choice.filters, launches)
    assert choice.launches == len(profiled) == 2, "the second of each"
    assert max(launches[position].duration for position in profiled) == 5e6


def counted(name: str) -> tuple[Launch, ...]:
    """A count that `gemmprof profile` made."""
    return launch_choice.counted_launches(DATA / "processes" / f"{name}.ncu-rep.xz", EVERYTHING)


def test_what_was_chosen_in_each_process_is_what_ncu_profiled() -> None:
    """torchrun with NCCL on two GPUs: the count, and the report of the run that was given the choice.

    Were invocations numbered across processes, the first of each kernel would stand in the report once.
    """
    launches = counted("nccl_count")
    choice = choose(launches, limit=3)
    chosen = [launches[position] for position in meant(choice.filters, list(launches))]
    assert choice.launches == len(chosen) == 6
    with ReportReader(DATA / "processes" / "nccl.ncu-rep.xz") as reader:
        profiled = list(reader.profiles(instances=False, rules=False))
    assert choice.filters[5] in profiled[0].session.command_line, "this very choice was profiled"
    of_ranks = [
        [(one.mangled_name, one.grid) for one in chosen if one.process == process]
        for process in sorted({one.process for one in chosen if one.process})
    ]
    seen = [
        [(one.mangled_name, one.launch.grid) for one in profiled if one.session.process == process]
        for process in sorted({one.session.process for one in profiled if one.session.process})
    ]
    assert of_ranks == seen and len(seen) == 2, "name, grid and order, in each process"
    by_name = {one.mangled_name: one.duration for one in chosen}
    for one in profiled:
        assert one.number(metrics.DURATION) == pytest.approx(by_name[one.mangled_name], rel=0.15), (
            "caches are flushed"
        )


def test_ranks_that_launch_different_numbers() -> None:
    """tests/cuda/ranks.cu, counted: rank 0 launches ``step`` three times, rank 1 four times."""
    launches = counted("ranks_count")
    choice = choose(launches, limit=10)
    chosen = [launches[position] for position in meant(choice.filters, list(launches))]
    assert choice.invocations == (3,) and choice.launches == len(chosen) == 3
    longest = {
        name: max(one.duration for one in launches if one.name == name) for name in choice_names(chosen)
    }
    assert set(longest) == choice_names(list(launches))
    for name, duration in longest.items():
        assert max(one.duration for one in chosen if one.name == name) >= 0.5 * duration


def choice_names(launches: list[Launch]) -> set[str]:
    return {one.name for one in launches}


def test_the_hot_ones_are_never_missed() -> None:
    launches = [launch(f"cold{number}", duration=1e3) for number in range(500)]
    launches[300] = launch("hot", duration=1e9)
    choice = choose(launches, limit=5)
    assert choice.names[0] == "_Zhot" and choice.kernels == 5 and choice.left_out == 495
    assert choice.share > 0.999


def test_the_launch_that_stands_for_a_kernel_is_about_as_long_as_its_longest() -> None:
    launches = [launch("a", duration=d) for d in (1e3, 1e3, 5e6, 4.9e6)]
    (profiled,) = meant(choose(launches, limit=1).filters, launches)
    assert launches[profiled].duration > 4e6


def test_only_what_is_wanted_is_chosen_but_all_launches_are_counted() -> None:
    launches = [launch("a", wanted=False), launch("b", wanted=False), launch("a"), launch("c", wanted=False)]
    choice = choose(launches, limit=10)
    assert meant(choice.filters, launches) == [2]


def test_every_launch_of_a_kernel_can_be_asked_for() -> None:
    launches = [launch("a"), launch("b", duration=1.0), launch("a"), launch("a")]
    assert meant(choose(launches, limit=1, every=True).filters, launches) == [0, 2, 3]


def test_names_are_taken_literally_and_communication_is_left_alone() -> None:
    options = launch_filter(["_Z1a$b", "sm80.x"])
    assert options[5] == r"::regex:^(_Z1a\$b|sm80\.x)$:^(1)$"
    everything = launch_filter()[5].removeprefix("::regex:").rpartition(":")[0]
    assert re.search(everything, "_Z5gemm") and not re.search(everything, "ncclDevKernel_AllReduce_Sum_f32")


def test_thousands_of_long_names_fit_one_argument() -> None:
    launches = [launch("x" * 900 + str(number)) for number in range(1000)]
    choice = choose(launches, limit=1000)
    assert 100 < choice.kernels < 112
    assert len(choice.filters[5]) < LONGEST_FILTER + 100


launches_of_programs = st.lists(
    st.builds(
        launch,
        st.sampled_from("abc"),
        st.integers(1, 2),
        st.floats(1e3, 1e7),
        st.booleans(),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=200, deadline=None)
@given(launches_of_programs, st.integers(1, 6))
def test_each_chosen_kernel_gets_a_launch_that_was_wanted_and_long(
    launches: list[Launch], limit: int
) -> None:
    if not any(one.wanted for one in launches):
        return
    choice = choose(launches, limit=limit)
    profiled = [launches[position] for position in meant(choice.filters, launches)]
    assert len(profiled) == choice.launches
    total: dict[object, float] = {}
    for one in launches:
        if one.wanted:
            total[one.key] = total.get(one.key, 0) + one.duration
    order = sorted(total, key=lambda key: -total[key])
    assert choice.kernels == len(order[:limit])
    # Of kernels that took equally long either may be left out.
    left_out = total[order[limit]] if len(order) > limit else -1.0
    for key in (key for key in order[:limit] if total[key] > left_out):
        longest = max(item.duration for item in launches if item.key == key and item.wanted)
        near = 0.5 if total[key] >= 0.01 * sum(total.values()) else 0.0
        assert any(item.key == key and item.wanted and item.duration >= near * longest for item in profiled)


def test_a_training_step_needs_few_launches_beyond_one_a_kernel() -> None:
    counted = DATA.parent.parent / "docs" / "examples" / "recorded" / "transformer_launches.ncu-rep.xz"
    with ReportReader(counted) as reader:
        launches = [
            Launch(p.name, p.mangled_name, p.launch.grid, p.launch.block, p.launch.dynamic_shared_memory or 0,
                   p.number("gpu__time_duration.sum") or 0.0)
            for p in reader.profiles(instances=False, rules=False)
        ]  # fmt: skip
    assert len(launches) == 464
    choice = choose(launches, limit=8)
    assert (choice.kernels, choice.left_out) == (8, 64) and choice.launches <= 10
    everything = choose(launches, limit=1000)
    assert everything.kernels == 72 and everything.launches < 100


@pytest.mark.parametrize("skip", [0, 1, 3])
def test_the_first_launches_are_skipped_and_no_more(skip: int) -> None:
    launches = launch_choice.counted_launches(DATA / "launches_same_kernel.ncu-rep.xz", EVERYTHING, skip)
    assert len(launches) > 3
    assert [launch.wanted for launch in launches] == [position >= skip for position in range(len(launches))]
