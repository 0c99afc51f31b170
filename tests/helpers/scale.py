"""How much of a long test runs: a few of its inputs in `make test`, all of them in `make campaign`."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest

CAMPAIGN = os.environ.get("GEMMPROF_CAMPAIGN") == "1"


def inputs(few: int, everything: int) -> int:
    """``few``, or in a campaign ``everything``."""
    return everything if CAMPAIGN else few


def few(values: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """Parameters of a test: those chosen, which between them reach every path, and the campaign's rest.

    A tuple stands for several parameters.

    Raises:
        AssertionError: one that is chosen is none of the values.
    """
    everything = list(values)
    assert all(value in everything for value in chosen), f"{chosen} are not all of {everything}"
    return [
        value
        if value in chosen
        else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.campaign)
        for value in everything
    ]
