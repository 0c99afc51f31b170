"""Stall reasons and the warp states of recorded launches."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asked import analysed
from recorded_data import ReadRecorded

from gemmprof import metrics
from gemmprof.analysis.sections import warp_states
from gemmprof.analysis.sections.warp_states import GROUPS, REASONS, reason


def test_every_reason_says_what_it_means() -> None:
    assert {item.group for item in REASONS.values()} == set(GROUPS)
    for item in REASONS.values():
        # The verdict begins its sentence with "a warp" and closes it itself.
        assert (
            item.meaning.endswith(".")
            and item.meaning.count(".") - item.meaning.count("warpgroup.arrive") == 1
        )


@pytest.mark.parametrize(
    ("name", "key"), [("no_instructions", "no_instruction"), ("warpgroup_arrive", "gmma")]
)
def test_sampler_and_counter_share_the_reason(name: str, key: str) -> None:
    assert reason(name) is REASONS[key]


def test_unknown_reason_keeps_its_name() -> None:
    item = reason("some_new_state")
    assert (item.key, item.title, item.group) == ("some_new_state", "Stall Some New State", "other")


def test_every_reason_of_a_recorded_report_is_known(recorded: ReadRecorded, report_name: str) -> None:
    for profile in recorded(report_name):
        names = (
            *metrics.stall_cycles(profile.metrics),
            *metrics.stall_samples(profile.metrics),
            *metrics.stall_samples(profile.metrics, not_issued=True),
        )
        assert {warp_states.reason(name).key for name in names} <= set(REASONS)


def test_samples_add_up_to_ncus_count(recorded: ReadRecorded, report_name: str) -> None:
    for profile in recorded(report_name):
        states = warp_states.analyse(profile)
        if not states or states.sample_count is None:
            continue
        assert sum(state.samples or 0 for state in states.states) == states.sample_count
        for state in states.states:
            assert state.samples_not_issued is None or state.samples is not None
            assert (state.samples_not_issued or 0) <= (state.samples or 0)


def test_shares_and_groups(recorded: ReadRecorded) -> None:
    states = analysed(warp_states, recorded("ladder_simple")[0])
    shares = [state.share for state in states.states]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0, rel=0.05)
    assert sum(group.share for group in states.groups) == pytest.approx(sum(shares))
    assert states.main_stall is states.states[0]
    assert states.main_stall.reason.key == "lg_throttle"


def test_samples_alone_are_enough(recorded: ReadRecorded) -> None:
    profile = recorded("ladder_simple")[0]
    kept = {name: value for name, value in profile.metrics.items() if "average_warp" not in name}
    states = analysed(warp_states, replace(profile, metrics=kept))
    assert states.cycles_per_issued_instruction is None
    assert sum(state.share for state in states.states) == pytest.approx(1.0)
    assert all(state.cycles_per_issue is None for state in states.states)
    assert states.missing is not None and metrics.CYCLES_PER_ISSUE in states.missing.metrics
