"""Tables in constant memory that its caches do not hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from recorded_data import DATA, one_launch, studies_of, study_reports

from gemmprof import metrics
from gemmprof.analysis.explanation.causes.constant_tables import constant_cache
from gemmprof.analysis.explanation.causes.shared import constant_divergence
from gemmprof.analysis.explanation.demands.time_model import TimeModel
from gemmprof.analysis.explanation.demands.work import (
    constant_addresses,
    constants_missed,
    table_constants,
    work,
)
from gemmprof.analysis.explanation.engine import explain
from gemmprof.model import KernelProfile

CARDS = tuple(DATA / "constants" / card for card in ("h200", "h100"))
SETS = (CARDS[0], DATA / "blind28" / "h200")
WALKED = {
    "vectors_coded_by_centres_in_constants": ("shared", "four"),
    "echoes_filter_of_768_taps_as_parameter": ("shared",),
    "channels_mixed_by_a_row_of_constants_each_warp": ("shared", "loaded"),
    "collisions_network_of_1312_weights_in_constants": ("shared",),
}


@cache
def recorded(name: str, of: Path | None = None) -> KernelProfile:
    """The flawed side of a study, on an H200 where no folder is named."""
    of = of or next(of for of in SETS if name in studies_of(of))
    kernel = studies_of(of)[name]["kernel"]
    return one_launch(study_reports(of) / kernel["report"], kernel["launch"])


def came(name: str, of: Path) -> dict[str, float]:
    """What each fix of a study saved."""
    one = studies_of(of)[name]
    return {fix["side"]: 1.0 - fix["time_ns"] / one["kernel"]["time_ns"] for fix in one["fixes"]}


def saves(name: str, of: Path) -> Iterator[float]:
    """What the model says of each way to be rid of the waits for constants."""
    found = work(recorded(name, of))
    model = TimeModel(found)
    for candidate in constant_cache(found):
        yield from (model.saves(variant.fix) for variant in candidate.variants)


@pytest.mark.parametrize("of", CARDS, ids=lambda of: of.name)
@pytest.mark.parametrize("name", WALKED)
def test_a_table_larger_than_the_constant_caches_costs_what_its_waits_take(name: str, of: Path) -> None:
    most = max(saves(name, of))
    assert all(most == pytest.approx(came(name, of)[side], abs=0.09) for side in WALKED[name])


def test_constants_that_the_caches_hold_are_no_loss() -> None:
    """Few, the same for all lanes; or many that warps walk in step, so that all but the first find them."""
    for name in ("sound_series_of_20_constants", "sound_pictures_sharpened_by_25_constants"):
        assert not list(constant_cache(work(recorded(name))))
        assert not explain(recorded(name)).findings
    assert not list(constant_cache(work(recorded("loudspeakers_walked_in_constants"))))


def test_a_missed_constant_is_no_other_address_of_a_warp() -> None:
    """Both take turns of the constant cache; the addresses were counted."""
    missed, apart = (
        work(recorded(name))
        for name in (
            "channels_mixed_by_a_row_of_constants_each_warp",
            "raw_pictures_toned_by_4096_constants",
        )
    )
    assert constant_addresses(missed) < 1.2 and constants_missed(missed)
    assert not list(constant_divergence(missed)) and list(constant_cache(missed))
    assert constant_addresses(apart) > 20 and not constants_missed(apart)
    assert list(constant_divergence(apart)) and not list(constant_cache(apart))
    # Where nobody counted them, turns are all that is known.
    profile = recorded("channels_mixed_by_a_row_of_constants_each_warp")
    kept = {name: value for name, value in profile.metrics.items() if name != metrics.CONSTANT_REQUESTS}
    assert not constants_missed(work(replace(profile, metrics=kept)))


def test_what_misses_a_constant_is_issued_again() -> None:
    """Four of five issue slots went to instructions whose constant was not there."""
    (found,) = constant_cache(work(recorded("vectors_coded_by_centres_in_constants")))
    assert 0.1 < found.fix.resources["issue"] < 0.25


def test_constants_of_straight_code_are_a_table_if_they_are_many() -> None:
    many, few = map(
        work,
        map(
            recorded,
            ("collisions_network_of_1312_weights_in_constants", "sound_pictures_sharpened_by_25_constants"),
        ),
    )
    assert table_constants(many).sum() > 600 and not table_constants(few).any()


def test_a_kernel_that_waits_for_constants_does_not_lack_warps() -> None:
    """2048 charges that each warp walks: more warps would queue for them."""
    first = explain(recorded("sound_charges_potential")).findings[0]
    assert first.cause == "constant_cache" and "shared memory" in first.change
