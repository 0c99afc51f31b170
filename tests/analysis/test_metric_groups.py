"""The metric groups: what collect asks ncu for, and how names are told apart."""

from __future__ import annotations

import pytest
from recorded_data import ReadRecorded

from gemmprof import metrics
from gemmprof.metrics import MetricGroup
from gemmprof.model import NotCollected


def test_all_groups_together_ask_for_every_section_once() -> None:
    options = metrics.collection_options()
    sections = [options[i + 1] for i, word in enumerate(options) if word == "--section"]
    assert len(sections) == len(set(sections))
    wanted = {section for group in metrics.GROUPS.values() for section in group.sections}
    assert set(sections) == wanted
    assert options.count("--metrics") == 1
    # What gemmprof shows nothing of is not collected.
    assert not wanted & {"NumaAffinity", "Nvlink", "Nvlink_Tables", "Nvlink_Topology"}


def test_sections_collect_what_the_groups_expect(recorded: ReadRecorded) -> None:
    """A full report of an H100 holds every expected metric of every group."""
    profile = recorded("ladder_simple")[2]
    for name, group in metrics.GROUPS.items():
        absent = {*group.required, *group.expected} - profile.metrics.keys() - profile.instances.keys()
        assert not absent, name


def test_missing_names_the_metrics_and_the_option() -> None:
    group = MetricGroup(sections=("S",), required=("a", "b"), expected=("c",), requested=("d",))
    assert group.missing(["a", "b"]) is None
    assert group.missing({"a": 1}) == NotCollected(("b",), "--section S --metrics d")
    assert group.incomplete({"a", "b"}) == NotCollected(("c",), "--section S --metrics d")
    assert group.not_collected(["b"]).metrics == ("a",)
    assert group.not_collected(["a", "b"]).metrics == ("c",)
    assert group.not_collected(["a", "b", "c"]).metrics == ("a", "b", "c")
    assert str(group.not_collected([])) == "not collected: use --section S --metrics d"


def test_remedy_names_only_what_is_needed() -> None:
    group = MetricGroup(
        sections=("S", "T"),
        expected=("a", "b", "c", "d"),
        requested=("c",),
        sources={"S": ("a",), "T": ("b",)},
    )
    assert group.remedy == "--section S --section T --metrics c"
    assert group.remedy_for(["b"]) == "--section T"
    assert group.remedy_for(["a", "c"]) == "--section S --metrics c"
    assert group.remedy_for(["d"]) == group.remedy, "nobody said where d comes from"
    missing = group.incomplete(["a", "b", "d"])
    assert missing is not None and missing.remedy == "--metrics c"


def test_sources_cover_the_groups_that_have_them() -> None:
    for name, group in metrics.GROUPS.items():
        if group.sources:
            assert set(group.sources) <= set(group.sections), name
            known = {*group.requested, *(metric for listed in group.sources.values() for metric in listed)}
            assert known == {*group.required, *group.expected}, name


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed", "load/store unit"),
        ("sm__pipe_fmaheavy_cycles_active.avg.pct_of_peak_sustained_elapsed", "FMA pipe"),
        ("sm__inst_executed.avg.pct_of_peak_sustained_elapsed", "issue slots"),
        ("sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed", "tensor cores"),
        ("l1tex__data_bank_reads.avg.pct_of_peak_sustained_elapsed", metrics.L1_DATA_STAGE),
        ("l1tex__m_xbar2l1tex_read_sectors.avg.pct_of_peak_sustained_elapsed", "L1 cache"),
        ("lts__t_sectors.avg.pct_of_peak_sustained_elapsed", "L2 cache"),
        ("dram__cycles_active.avg.pct_of_peak_sustained_elapsed", "DRAM"),
        ("some__other.avg", ""),
    ],
)
def test_hardware_unit(name: str, unit: str) -> None:
    assert metrics.hardware_unit(name) == unit


def test_readable_name() -> None:
    name = "breakdown:sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed"
    assert metrics.readable(name) == "SM: Pipe Fma Cycles Active"
    assert metrics.readable("plain") == "plain"
