"""Kernels grouped by name and NVTX path, and names short enough to read that still tell them apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_data import DATA, ReadRecorded

from gemmprof.analysis.inputs.families import covering, families
from gemmprof.analysis.inputs.names import labels
from gemmprof.analysis.kernel_analysis import analyse
from gemmprof.analysis.session import load_session


def test_every_launch_is_in_one_family_and_the_shares_make_the_whole() -> None:
    session = load_session([DATA / "train_100.ncu-rep.xz"], source=False)
    found = families(session.kernels)
    assert sorted(position for family in found for position in family.members) == list(range(100))
    assert len({family.name for family in found}) == 39
    assert sum(family.share or 0 for family in found) == pytest.approx(1)
    totals = [family.total_ns or 0 for family in found]
    assert totals == sorted(totals, reverse=True)
    for family in found:
        durations = [session.kernels[p].profile.number("gpu__time_duration.sum") or 0 for p in family.members]
        assert family.total_ns == sum(durations)
        assert durations[family.members.index(family.representative)] == max(durations) == family.longest_ns
        assert all(session.kernels[p].profile.nvtx == family.nvtx for p in family.members)
        findings = session.kernels[family.representative].explanation.findings
        assert family.worst == (findings[0] if findings else None)
    assert sum(family.worst is not None for family in found) > 10


def test_the_same_kernel_within_another_range_is_another_family() -> None:
    session = load_session([DATA / "names_nvtx.ncu-rep.xz"], source=False)
    found = families(session.kernels)
    assert {family.label for family in found} == {"inside"}
    assert len({family.path for family in found}) == len(found) == 6


def test_what_was_not_measured_is_not_known(recorded: ReadRecorded) -> None:
    profiles = recorded("launches_same_kernel")
    without = [
        replace(p, metrics={k: v for k, v in p.metrics.items() if not k.startswith("gpu__time_duration")})
        for p in profiles
    ]
    (family,) = families([analyse(profile) for profile in without])
    assert (family.count, family.total_ns, family.share, family.spread) == (5, None, None, None)
    (mixed,) = families([analyse(profile) for profile in (*without[:4], profiles[4])])
    assert (mixed.representative, mixed.share) == (4, 1.0)


def test_few_families_cover_most_of_the_time() -> None:
    found = families(load_session([DATA / "train_100.ncu-rep.xz"], source=False).kernels)
    kept = covering(found, 0.5)
    assert sum(f.share or 0 for f in kept) >= 0.5 > sum(f.share or 0 for f in kept[:-1])


def test_labels_keep_the_arguments_that_differ() -> None:
    gemm = "void gemm<float, Tile<(int)128, (int){}>, Row>(const float *, float *)"
    names = [gemm.format(64), gemm.format(32), "void plain(int *)", "void plain(float *)", "alone<int>(int)"]
    assert list(labels(names).values()) == [
        "gemm<…, Tile<…, 64>, …>",
        "gemm<…, Tile<…, 32>, …>",
        "plain(int *)",
        "plain(float *)",
        "alone<int>",
    ]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("void pick<&operator <>(const Vector *, Vector *)", "pick<&operator <>"),
        ("<unnamed>::hidden(float *)", "<unnamed>::hidden"),
        ("(anonymous namespace)::hidden(float *)", "(anonymous namespace)::hidden"),
        ("void f<main::[lambda(int) (instance 1)]>(T1)", "f<main::[lambda(int) (instance 1)]>"),
        ("broken<<<(", "broken<<<("),
        ("", ""),
    ],
)
def test_odd_names_stay_whole(name: str, label: str) -> None:
    assert labels([name]) == {name: label}


def test_labels_of_recorded_kernels_are_short_and_distinct() -> None:
    session = load_session([DATA / "train_100.ncu-rep.xz"], source=False)
    found = labels(kernel.profile.name for kernel in session.kernels)
    assert len(set(found.values())) == len(found) == 39
    assert max(map(len, found.values())) < 240 < max(map(len, found))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("ab<>(),[]{} :&1o…", max_size=14), max_size=6))
def test_no_two_kernels_share_a_label(names: list[str]) -> None:
    found = labels(names)
    assert set(found) == set(names)
    assert len(set(found.values())) == len(found)
