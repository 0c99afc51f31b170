"""Bank conflicts, coalescing, local memory, divergence and the memory chart: planted flaws, absence, other GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from asked import analysed, metrics_read
from profiles import code, launch
from recorded_data import ReadRecorded

from gemmprof import metrics
from gemmprof.analysis.kernel_analysis import result_of
from gemmprof.analysis.sections import (
    bank_conflicts,
    coalescing,
    divergence,
    memory_chart,
    source_view,
    spills,
)
from gemmprof.analysis.sections.memory_chart import MemoryChart
from gemmprof.analysis.sections.spills import Spills
from gemmprof.model import KernelProfile, NotCollected

MODULES: tuple[Any, ...] = (bank_conflicts, coalescing, divergence, memory_chart, spills, source_view)


def named(profiles: tuple[KernelProfile, ...], name: str) -> KernelProfile:
    return next(profile for profile in profiles if name in profile.name.replace("(int)", ""))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.NAME))
def test_an_empty_report_is_not_collected_and_says_how(module: Any) -> None:
    result = module.analyse(launch())
    assert isinstance(result, NotCollected)
    assert result.metrics
    assert "--section" in result.remedy
    assert not result


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.NAME))
def test_two_metrics_are_not_enough_and_no_crash(module: Any, recorded: ReadRecorded) -> None:
    for profile in recorded("partial_two_metrics", source=True):
        result = module.analyse(profile)
        assert isinstance(result, NotCollected)
        assert result.metrics


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.NAME))
def test_any_subset_of_the_metrics_is_read_without_a_crash(module: Any, recorded: ReadRecorded) -> None:
    """Every metric of the group left out once, and each alone."""
    profile = named(recorded("flaws_bank_conflicts", source=True), "conflict_load<32>")
    names = metrics_read(module, profile)
    assert names

    def reduced(keep: set[str]) -> KernelProfile:
        return replace(
            profile,
            metrics={n: v for n, v in profile.metrics.items() if n in keep},
            instances={n: v for n, v in profile.instances.items() if n in keep},
        )

    for name in sorted(names):
        for keep in (names - {name}, {name}):
            assert isinstance(module.analyse(reduced(keep)), (NotCollected, result_of(module))), name


class TestBankConflicts:
    @pytest.mark.parametrize("ways", [1, 2, 8, 32])
    def test_planted_conflicts_are_found_where_they_are(self, ways: int, recorded: ReadRecorded) -> None:
        profile = named(recorded("flaws_bank_conflicts", source=True), f"conflict_load<{ways}>")
        result = analysed(bank_conflicts, profile)
        loads = result.operation("load")
        assert loads.n_way == ways
        assert loads.conflicts == (ways - 1) * loads.requests
        assert result.excess == loads.conflicts
        if ways > 1:
            worst = result.lines[0]
            assert worst.place.text == "sum += tile[word];"
            assert (worst.n_way, worst.operation) == (ways, "load")
            assert "LDS" in result.instructions[0].place.sass
            # One line of the loop, unrolled to many instructions.
            assert sum(a.excess for a in result.instructions) == sum(a.excess for a in result.lines)

    def test_padding_removes_the_conflicts_of_the_store(self, recorded: ReadRecorded) -> None:
        profiles = recorded("flaws_bank_conflicts", source=True)
        found = [bank_conflicts.analyse(named(profiles, name)) for name in ("conflict_store", "padded_store")]
        ways = [result.operation("store").n_way for result in found]  # type: ignore[union-attr]
        assert ways == [32, 1]

    def test_a_kernel_without_shared_memory_has_none(self, recorded: ReadRecorded) -> None:
        profile = recorded("flaws_global_access")[0]
        # The counter over all operations is not zero there; the ones by operation are.
        assert profile.number("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum") != 0
        result = analysed(bank_conflicts, profile)
        assert not result.uses_shared_memory
        assert result.operations == ()

    def test_asynchronous_copies_conflict_too(self, recorded: ReadRecorded) -> None:
        profile = named(recorded("flaws_async_copy", source=True), "async_copy_conflicts")
        result = analysed(bank_conflicts, profile)
        copies = result.operation("async_copy")
        assert copies.n_way == 32
        assert result.instructions[0].place.sass.startswith("LDGSTS")

    def test_matrix_stores_count_as_requests_of_stores(self, recorded: ReadRecorded) -> None:
        result = analysed(bank_conflicts, named(recorded("flaws_async_copy"), "matrix_load<16>"))
        stores = result.operation("store")
        assert stores.n_way == pytest.approx((4 * 67584 + 1056) / (67584 + 1056))

    def test_replays_are_not_blamed_on_the_layout(self, recorded: ReadRecorded) -> None:
        """The hardware counts conflicts of stores whose addresses never collide."""
        profile = named(recorded("ladder_simple", source=True), "gemm_shared")
        result = analysed(bank_conflicts, profile)
        stores = result.operation("store")
        assert stores is not None and stores.share is not None and stores.share > 10
        assert result.excess_of("store") == 0
        assert result.worst is None

    @pytest.mark.parametrize(
        ("report", "kernel", "worst"),
        [
            ("flaws_bank_conflicts", "conflict_load<32>", "load"),
            ("flaws_bank_conflicts", "conflict_store", "store"),
            ("flaws_bank_conflicts", "padded_store", None),
            ("flaws_async_copy", "async_copy_conflicts", "async_copy"),
            ("flaws_atomics", "shared_cas_max", "atomic"),
        ],
    )
    def test_the_worst_kind(
        self, report: str, kernel: str, worst: str | None, recorded: ReadRecorded
    ) -> None:
        result = analysed(bank_conflicts, named(recorded(report, source=True), kernel))
        assert (None if result.worst is None else result.worst.name) == worst
        if worst is not None:
            assert result.excess_of(worst) == result.excess

    def test_one_half_of_the_counters_says_what_the_other_needs(self) -> None:
        counters = launch(
            {
                **dict.fromkeys(metrics.BANK_CONFLICTS.required, 0.0),
                metrics.SHARED_WAVEFRONTS_OF["load"]: 64.0,
                metrics.SHARED_CONFLICTS_OF["load"][0]: 32.0,
            }
        )
        result = analysed(bank_conflicts, counters)
        loads = result.operation("load")
        assert (loads.share, loads.n_way) == (50.0, None)
        assert result.missing is not None and "SourceCounters" in result.missing.remedy
        assert result.excess is None

        source = launch(
            per_instruction={
                metrics.SHARED_WAVEFRONTS_BY_ADDRESS: {0: 64, 16: 2},
                metrics.SHARED_IDEAL_BY_ADDRESS: {0: 32, 16: 2},
            }
        )
        result = analysed(bank_conflicts, source)
        assert (result.wavefronts, result.excess) == (66, 32)
        assert result.excess_of("load") is None, "nothing tells loads from stores here"
        assert result.instructions[0].n_way is None
        assert result.missing is not None and "MemoryWorkloadAnalysis_Tables" in result.missing.remedy


class TestCoalescing:
    @pytest.mark.parametrize(
        ("kernel", "operation", "sectors"),
        [
            ("coalesced_copy", "load", 4.0),
            ("strided_load", "load", 32.0),
            ("strided_store", "store", 32.0),
            ("aos_mass", "load", 32.0),
            ("misaligned_copy", "load", 5.0),
        ],
    )
    def test_planted_patterns(
        self, kernel: str, operation: str, sectors: float, recorded: ReadRecorded
    ) -> None:
        result = analysed(coalescing, named(recorded("flaws_global_access", source=True), kernel))
        kind = result.operation(operation)
        assert kind.sectors_per_request == pytest.approx(sectors, rel=0.01)
        assert result.lines[0].place.text
        assert (result.excess == 0) == (kernel == "coalesced_copy")

    def test_the_worst_line_comes_first(self, recorded: ReadRecorded) -> None:
        result = analysed(coalescing, named(recorded("flaws_global_access", source=True), "strided_store"))
        worst = result.instructions[0]
        assert worst.place.sass.startswith("STG")
        assert (worst.operation, worst.sectors_per_request) == ("store", 32.0)

    def test_asynchronous_copies_are_part_of_loads(self, recorded: ReadRecorded) -> None:
        result = analysed(coalescing, named(recorded("flaws_async_copy"), "async_copy_conflicts"))
        loads, copies = result.operation("load"), result.operation("async_copy")
        assert (copies.part_of, copies.sectors) == ("load", loads.sectors)
        assert loads.bytes_used_per_sector is None, "ncu's ratio is 0 there, which no load can be"

    def test_an_impossible_ratio_is_not_passed_on(self, recorded: ReadRecorded) -> None:
        profile = recorded("flaws_cluster")[0]
        name = metrics.GLOBAL_BYTES_PER_SECTOR_OF["load"]
        assert (profile.number(name) or 0) > 32
        result = analysed(coalescing, profile)
        loads = result.operation("load")
        assert loads.bytes_used_per_sector is None


class TestDivergence:
    def test_planted_divergence(self, recorded: ReadRecorded) -> None:
        profiles = recorded("flaws_divergence", source=True)
        result = analysed(divergence, named(profiles, "divergent_branches"))
        assert result.active_share is not None and result.active_share < 30
        assert result.instructions and result.instructions[0].place.sass.find("BRA") >= 0
        assert sum(branch.divergent for branch in result.instructions) == result.divergent_branches
        worst, *others = result.lines
        assert worst.place.text.startswith("for (int r = 0; r < static_cast<int>(threadIdx.x)")
        assert any(line.place.text.startswith("switch") for line in others)

    def test_uniform_branches_are_efficient(self, recorded: ReadRecorded) -> None:
        result = analysed(divergence, named(recorded("flaws_divergence"), "uniform_branches"))
        assert (result.uniform_share, result.divergent_branches) == (100.0, 0)
        assert result.instructions == ()

    def test_no_branch_that_could_diverge_is_not_always_divergent(self, recorded: ReadRecorded) -> None:
        profile = named(recorded("flaws_divergence"), "single_lane")
        assert profile.number(metrics.UNIFORM_BRANCHES_PERCENT[0]) == 0
        result = analysed(divergence, profile)
        assert result.uniform_share is None

    def test_always_divergent_is_zero(self) -> None:
        result = analysed(
            divergence,
            launch({metrics.UNIFORM_BRANCHES_PERCENT[0]: 0.0, metrics.DIVERGENT_BRANCHES[0]: 64.0}),
        )
        assert result.uniform_share == 0.0


class TestSpills:
    def test_spilled_registers_are_told_from_arrays(self, recorded: ReadRecorded) -> None:
        profiles = recorded("flaws_spills", source=True)
        spilled, array = (spills.analyse(named(profiles, n)) for n in ("spilled_registers", "local_array"))
        assert isinstance(spilled, Spills) and isinstance(array, Spills)
        assert spilled.any and array.any
        assert spilled.spilling_requests == spilled.loads + spilled.stores
        assert array.spilling_requests == 0
        assert "STL" in spilled.instructions[0].place.sass or "LDL" in spilled.instructions[0].place.sass
        assert spilled.share_of_l1_sectors is not None and spilled.share_of_l1_sectors > 90

    def test_without_local_memory_there_is_no_hit_rate(self, recorded: ReadRecorded) -> None:
        result = analysed(spills, recorded("flaws_global_access")[0])
        assert not result.any
        assert (result.load_hit_rate, result.store_hit_rate) == (None, None)

    def test_old_metric_names(self) -> None:
        result = analysed(
            spills, launch({"sass__inst_executed_local_loads": 6.0, "sass__inst_executed_local_stores": 2.0})
        )
        assert (result.loads, result.stores, result.spilling_requests) == (6.0, 2.0, None)


class TestMemoryChart:
    def test_links_of_a_copy(self, recorded: ReadRecorded) -> None:
        profile = named(recorded("flaws_global_access"), "coalesced_copy")
        chart = analysed(memory_chart, profile)
        load, store = (chart.link("global", "l1", kind) for kind in ("load", "store"))
        assert load.bytes == store.bytes and load.requests
        assert load.bytes == 128 * load.requests
        shared = chart.link("kernel", "shared", "load")
        assert shared is not None and shared.idle
        assert chart.not_collected == ()

    def test_shared_memory_is_idle_where_no_instruction_uses_it(self, recorded: ReadRecorded) -> None:
        chart = analysed(memory_chart, named(recorded("flaws_atomics"), "global_histogram"))
        link = chart.link("shared", "shared_memory")
        assert link.percent_of_peak and link.idle

    def test_shared_memory_moves_128_bytes_a_wavefront(self, recorded: ReadRecorded) -> None:
        profiles = recorded("flaws_bank_conflicts")
        for ways in (1, 32):
            chart = analysed(memory_chart, named(profiles, f"conflict_load<{ways}>"))
            link = chart.link("shared", "shared_memory")
            assert link.bytes == pytest.approx(128 * (ways * 135168 + 8448), rel=0.02)
            peak = memory_chart.shared_peak(profiles[0])
            assert link.bytes_per_second and peak and link.percent_of_peak
            assert 100 * link.bytes_per_second / peak == pytest.approx(link.percent_of_peak, rel=0.05)

    def test_stores_and_copies_that_share_a_wavefront_count_once(self, recorded: ReadRecorded) -> None:
        """An asynchronous copy's wavefronts, counted in another pass, are more than the data stage was busy for."""
        profile = recorded("flaws_async_copy")[0]
        kinds = [profile.number(metrics.SHARED_WAVEFRONTS_OF[kind]) or 0 for kind in ("load", "async_copy")]
        chart = analysed(memory_chart, profile)
        link = chart.link("shared", "shared_memory")
        assert link.bytes < 128 * sum(kinds)
        assert link.bytes == 128 * (profile.number(metrics.SHARED_WAVEFRONTS) or 0)

    def test_bandwidth_is_bytes_over_duration(self, recorded: ReadRecorded) -> None:
        for profile in recorded("flaws_global_access"):
            chart = analysed(memory_chart, profile)
            duration = profile.number(metrics.DURATION)
            assert duration is not None
            for link in chart.links:
                if link.bytes and link.bytes_per_second is not None:
                    assert link.bytes_per_second == pytest.approx(link.bytes / duration * 1e9, rel=1e-6)

    def test_host_memory_comes_from_the_system(self, recorded: ReadRecorded) -> None:
        chart = analysed(memory_chart, named(recorded("flaws_other_memory"), "host_memory"))
        link = chart.link("system", "l2", "read")
        assert link is not None and link.bytes

    def test_textures_and_clusters_have_their_own_links(self, recorded: ReadRecorded) -> None:
        texture = memory_chart.analyse(named(recorded("flaws_other_memory"), "texture_fetch"))
        cluster = memory_chart.analyse(recorded("flaws_cluster")[0])
        assert isinstance(texture, MemoryChart) and isinstance(cluster, MemoryChart)
        for chart, link in ((texture, ("texture", "l1")), (cluster, ("other_sm", "shared_memory"))):
            found = chart.link(*link)
            assert found is not None and not found.idle

    def test_device_memory_under_its_name_on_another_chip(self) -> None:
        chart = analysed(
            memory_chart,
            launch(
                {
                    "dram__bytes_op_read.sum": 4096.0,
                    "dram__bytes_op_read.sum.per_second": 2e9,
                    metrics.DURATION: 7.0,
                },
                capability=(12, 0),
            ),
        )
        link = chart.link("device", "l2")
        assert (link.bytes, link.bytes_per_second) == (4096.0, 2e9)
        assert "l2→l1 read" in chart.not_collected

    def test_every_link_ends_at_a_unit(self, recorded: ReadRecorded) -> None:
        chart = analysed(memory_chart, recorded("flaws_cluster")[0])
        for link in chart.links:
            assert chart.unit(link.source) is not None, link
            assert chart.unit(link.target) is not None, link


class TestSourceView:
    def test_without_disassembly_addresses_remain(self) -> None:
        view = analysed(
            source_view,
            launch(per_instruction={"inst_executed": {16: 4, 0: 8}, metrics.SAMPLE_COUNT: {0: 1, 32: 5}}),
        )
        assert [line.offset for line in view.sass] == [0, 16, 32]
        assert [line.counters.executed for line in view.sass] == [8, 4, 0]
        assert [line.label for line in view.hottest()] == ["0x0020", "0x0000", "0x0010"]
        assert view.lines == ()
        assert view.totals.shared_wavefronts is None

    def test_counters_of_a_line_are_those_of_its_instructions(self) -> None:
        stall = "smsp__pcsamp_warps_issue_stalled_"
        view = analysed(
            source_view,
            launch(
                instructions=code(
                    ("LDS R0, [R1]", "k.cu", 2), ("FADD R0, R0, R0", "k.cu", 1), ("EXIT", "k.cu", 2)
                ),
                files={"k.cu": "float x;\nx = tile[i];"},
                per_instruction={
                    "inst_executed": {0: 10, 16: 10, 32: 10},
                    metrics.SAMPLE_COUNT: {0: 6, 16: 1, 32: 2},
                    stall + "short_scoreboard": {0: 5},
                    stall + "wait": {0: 1, 16: 1, 32: 2},
                    metrics.SHARED_WAVEFRONTS_BY_ADDRESS: {0: 320},
                    metrics.SHARED_IDEAL_BY_ADDRESS: {0: 10},
                },
            ),
        )
        first, second = view.lines
        assert (first.line, second.line) == (1, 2)
        assert second.instructions == (0, 2)
        assert second.text == "x = tile[i];"
        assert second.counters.samples == 8
        assert dict(second.counters.stalls) == {"short_scoreboard": 5, "wait": 3}
        assert second.counters.shared_excess == 310
        assert second.counters.global_sectors is None
        assert view.hottest() == [second, first]
        assert view.share(second.counters) == pytest.approx(100 * 8 / 9)
        assert view.files == {"k.cu": "float x;\nx = tile[i];"}
