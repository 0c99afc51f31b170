"""Numbers of the command line: their bounds, and what is said beyond them."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from gemmprof.arguments.parser import LARGEST, percentage, whole


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0.0), ("5", 5.0), ("2.5%", 2.5), (" 1e1 % ", 10.0), ("1000", 1000.0)]
)
def test_percentages(text: str, value: float) -> None:
    assert percentage(text) == value


@pytest.mark.parametrize("text", ["-0.1", "inf", "nan", "five", ""])
def test_what_is_no_percentage(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"write 5 or 2\.5"):
        percentage(text)


@pytest.mark.parametrize(
    ("least", "text", "value"), [(0, "0", 0), (1, "1", 1), (1, "+7", 7), (0, str(LARGEST), LARGEST)]
)
def test_whole_numbers(least: int, text: str, value: int) -> None:
    assert whole(least)(text) == value


@pytest.mark.parametrize(
    ("least", "text", "said"),
    [
        (1, "0", "too small: write 1 or more"),
        (0, "-1", "too small: write 0 or more"),
        (0, str(LARGEST + 1), "too large"),
        (0, "9" * 5000, "too large"),
        (3, "1.5", "write 3, 4, 5"),
        (0, "٣", "not a whole number"),
    ],
)
def test_what_is_no_whole_number(least: int, text: str, said: str) -> None:
    with pytest.raises(ArgumentTypeError, match=said):
        whole(least)(text)
