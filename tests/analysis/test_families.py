"""Kernels grouped by name and NVTX path, and names short enough to read that still tell them apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_data import DATA, ReadRecorded
from scale import few, inputs

from gemmprof.analysis.inputs.families import census, families
from gemmprof.analysis.inputs.names import labels
from gemmprof.analysis.inputs.selection import selection
from gemmprof.analysis.session import Session, load_session
from gemmprof.base.errors import UsageError

TRAINING = DATA / "train_100.ncu-rep.xz"


@pytest.fixture(scope="module")
def training() -> Session:
    """A training step, of which every family was explained."""
    session = load_session([TRAINING], listed=True)
    assert session.families
    return session


@pytest.fixture(scope="module")
def whole() -> Session:
    """The same step, all of it read at once."""
    return load_session([TRAINING])


def test_every_launch_is_in_one_family_and_the_shares_make_the_whole(whole: Session) -> None:
    session = whole
    found = session.families
    assert sorted(position for family in found for position in family.members) == list(range(100))
    assert len({family.name for family in found}) == 39
    assert sorted(family.number for family in found) == list(range(1, len(found) + 1))
    assert sum(family.share or 0 for family in found) == pytest.approx(1)
    for family in found:
        profiles = [session.kernels[position].profile for position in family.members]
        durations = [profile.number("gpu__time_duration.sum") or 0 for profile in profiles]
        assert family.total_ns == sum(durations)
        assert durations[family.members.index(family.representative)] == max(durations) == family.longest_ns
        assert len({profile.family for profile in profiles}) == 1
        losses = session.kernels[family.representative].explanation.losses
        assert family.worst == (losses[0][0] if losses else None)
    assert sum(family.worst is not None for family in found) >= 8


def test_the_order_is_by_gain_and_the_ids_by_time(whole: Session) -> None:
    session = whole
    # What is not worth a line of the whole time does not go before what takes longer.
    gains = [family.leading_ns for family in session.families]
    assert gains == sorted(gains, reverse=True) and gains[0] > 0.0
    small = [family for family in session.families if not family.leading_ns]
    assert all(
        (family.saves_ns or 0.0) < 0.01 * (family.total_ns or 0.0) / (family.share or 1.0) for family in small
    )
    assert any(family.saves_ns for family in small)
    assert [family.number for family in small] == sorted(family.number for family in small)
    totals = [family.total_ns or 0.0 for family in sorted(session.families, key=lambda family: family.number)]
    assert totals == sorted(totals, reverse=True)


@pytest.mark.parametrize("most", few([1, 3, 8, 1000], [3]))
def test_the_leaders_are_the_first_families_without_explaining_the_others(
    most: int, training: Session
) -> None:
    part = load_session([TRAINING], listed=True)
    ids = [family.id for family in part.leaders(most)]
    assert ids == [family.id for family in training.families[:most]]
    explained = part.explain([])
    assert len(explained) <= len(training.families)
    # Fewer where the leaders' gains are larger: many of these families have none, so that bounds of the others count.
    assert most > 3 or len(explained) < 0.6 * len(training.families)


def test_an_id_and_a_name_are_the_same_whatever_is_selected(training: Session) -> None:
    for family in training.by_time[:: inputs(20, 7)]:
        chosen = load_session([TRAINING], listed=True, selection=selection(family.id))
        (alone,) = chosen.by_time
        assert (alone.id, alone.label, alone.share) == (family.id, family.label, family.share)
        assert [training.kernels[at].profile.index for at in family.members] == [
            kernel.profile.index for kernel in chosen.kernels
        ]
    both = load_session([TRAINING], listed=True, selection=selection("#2, #5"))
    assert {family.id for family in both.by_time} == {"#2", "#5"}
    with pytest.raises(UsageError, match="#999"):
        load_session([TRAINING], listed=True, selection=selection("#999"))


def test_what_is_only_listed_is_explained_as_what_was_read(training: Session) -> None:
    read = load_session([TRAINING])
    assert [(family.id, family.label, family.worst) for family in training.families] == [
        (family.id, family.label, family.worst) for family in read.families
    ]
    assert [kernel.profile.index for kernel in training.kernels] == [
        kernel.profile.index for kernel in read.kernels
    ]


def test_the_same_kernel_within_another_range_is_another_family() -> None:
    found = load_session([DATA / "names_nvtx.ncu-rep.xz"]).families
    assert {family.label for family in found} == {"inside"}
    assert len({family.path for family in found}) == len(found) == 6


def test_grid_block_and_shared_memory_tell_families_apart(recorded: ReadRecorded) -> None:
    first = recorded("launches_same_kernel")[0]
    launch = first.launch
    others = [
        replace(launch, grid=(7, 1, 1)),
        replace(launch, block=(launch.block[0] + 1, 1, 1)),
        replace(launch, dynamic_shared_memory=(launch.dynamic_shared_memory or 0) + 1024),
    ]
    launches = [first, *(replace(first, index=9 + at, launch=one) for at, one in enumerate(others))]
    same = replace(first, index=20)
    found = families([*launches, same], census([*launches, same]))
    assert sorted(family.count for family in found) == [1, 1, 1, 2]
    elsewhere = replace(first, report="another.ncu-rep")
    assert len(families([first, elsewhere], census([first, elsewhere]))) == 2, "reports are not merged"


def test_what_was_not_measured_is_not_known(recorded: ReadRecorded) -> None:
    profiles = [
        replace(p, launch=recorded("launches_same_kernel")[0].launch)
        for p in recorded("launches_same_kernel")
    ]
    without = [
        replace(p, metrics={k: v for k, v in p.metrics.items() if not k.startswith("gpu__time_duration")})
        for p in profiles
    ]
    (family,) = families(without, census(without))
    assert (family.count, family.total_ns, family.share, family.spread) == (5, None, None, None)
    some = [*without[:4], profiles[4]]
    (mixed,) = families(some, census(some))
    assert (mixed.representative, mixed.share) == (4, 1.0)


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


def test_a_name_that_was_cut_is_no_longer_than_another() -> None:
    """Some tools cut names of thousands of characters: their brackets do not match, and one filled a page's screen."""
    whole = f"void f<{', '.join(f'ns::type_{number}<int>' for number in range(200))}>(int *)"
    cut = labels([whole[:2000]])[whole[:2000]]
    assert len(labels([whole])[whole]) <= 120 and len(cut) <= 120 and cut.startswith("f<ns::type_0<int>")


def test_labels_of_recorded_kernels_are_short_and_distinct() -> None:
    session = load_session([DATA / "train_100.ncu-rep.xz"])
    found = labels(kernel.profile.name for kernel in session.kernels)
    assert len(set(found.values())) == len(found) == 39
    assert max(map(len, found.values())) < 240 < max(map(len, found))


def test_arguments_that_tell_two_kernels_apart_are_shown_and_no_return_type() -> None:
    """Two of the optimizer's kernels differ in the number of arguments: what they share is left out all the same."""
    session = load_session([DATA / "programs" / "train_all.ncu-rep.xz"], listed=True)
    found = labels(kernel.profile.name for kernel in session.kernels)
    assert len(set(found.values())) == len(found) == 43
    assert not [
        label for label in found.values() if label.startswith("void ") or label.endswith("(T1, T2, T3...)")
    ]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("ab<>(),[]{} :&1o…", max_size=14), max_size=6))
def test_no_two_kernels_share_a_label(names: list[str]) -> None:
    found = labels(names)
    assert set(found) == set(names)
    assert len(set(found.values())) == len(found)
