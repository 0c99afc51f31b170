"""Scaling and rounding as ncu does it; the recorded exports test the same on some hundred thousand values."""

from __future__ import annotations

import math

import ncu_units as units
import pytest


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (4421120.0, "ns", "4.42 ms"),
        (999.0, "ns", "999 ns"),
        (1000.0, "ns", "1 us"),
        (5e12, "ns", "5,000 s"),
        (1024, "byte/block", "1.02 Kbyte/block"),
        (0, "byte/block", "0 byte/block"),
        (2.54e12, "byte/s", "2.54 Tbyte/s"),
        (2602912621.36, "hz", "2.60 Ghz"),
        (654720.0, "inst", "654,720 inst"),
        (1250.0378, "inst", "1,250.04 inst"),
        (40.0, "%", "40 %"),
        (5148816747.57, "sector/s", "5.15 sector/ns"),
        (0.2675, "", "0.27"),
        (-2048.0, "byte", "-2.05 Kbyte"),
    ],
)
def test_value_and_unit_are_those_of_ncu(value: float, unit: str, text: str) -> None:
    scaled, scaled_unit = units.scale(float(value), unit)
    assert f"{units.number_text(scaled)} {scaled_unit}".rstrip() == text


def test_not_a_number_is_printed_as_such() -> None:
    assert units.number_text(math.nan) == "nan"
    assert units.number_text(units.scale(math.inf, "byte/s")[0]) == "inf"
