from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmprof.analysis.inputs.names import label
from gemmprof.base.printable import visible
from gemmprof.model import Explanation, NotCollected
from gemmprof.reports import formatting as f
from gemmprof.reports import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f.seconds(0.00244), "2.44 ms"),
        (f.seconds(1.5), "1.50 s"),
        (f.seconds(52e-6), "52 µs"),
        (f.nanoseconds(4_420_000), "4.42 ms"),
        (f.flops(2.58e13), "25.8 TFLOP/s"),
        (f.bandwidth(3.352e12), "3.35 TB/s"),
        (f.capacity(8192), "8 KiB"),
        (f.capacity(37), "37 B"),
        (f.capacity(50 * 1024 * 1024), "50 MiB"),
        (f.number(99_999), "99,999"),
        (f.number(16_777_216), "16.8 M"),
        (f.number(999_950), "1.00 M"),
        (f.number(0.9999), "1.00"),
        (f.number(0), "0"),
        (f.percent(87.44), "87.4 %"),
        (f.ratio(0.5), "50.0 %"),
        (f.times(1.455), "1.46×"),
        (f.hertz(1.98e9), "1.98 GHz"),
        (f.dimensions((32, 1024, 1)), "32x1024x1"),
        (f.quantity(3.0e9, "byte/second"), "3 GB/s"),
        (f.quantity("a name", "byte"), "a name"),
    ],
)
def test_numbers_read_as_people_write_them(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    "function", [f.number, f.percent, f.seconds, f.flops, f.capacity, f.times, f.quantity, f.ratio]
)
@pytest.mark.parametrize("unknown", [None, math.nan, math.inf, NotCollected(("m",), "--section X")])
def test_what_is_not_known_is_never_zero(function: object, unknown: object) -> None:
    assert callable(function)
    assert function(unknown) == f.DASH


@given(st.floats(min_value=1e-12, max_value=1e18))
def test_a_scaled_number_keeps_its_value(value: float) -> None:
    text, _, unit = f.scaled(value, "B").partition(" ")
    factor = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15, "EB": 1e18, "B": 1.0}[unit]
    assert float(text.replace(",", "")) * factor == pytest.approx(value, rel=6e-3, abs=1e-9)


def test_hidden_characters_are_shown_by_name() -> None:
    assert visible("a\u202eb\u2066c\u200bd\ufeff") == "a⟨U+202E⟩b⟨U+2066⟩c⟨U+200B⟩d⟨U+FEFF⟩"
    assert visible("a\x00\x1b\x7f\ud800") == "a␀␛��"
    assert visible("tab\tline\nπ 日本 ×") == "tab\tline\nπ 日本 ×"


@given(st.text())
def test_visible_text_can_be_written_and_reorders_nothing(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert not any(
        character in shown for character in "\x00\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200f"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void gemm<128, 8>(int, float const*)", "gemm<128, 8>"),
        ("gemm_naive(int, const float *)", "gemm_naive"),
        ("void (anonymous namespace)::kernel(int)", "(anonymous namespace)::kernel"),
        ("void apply<int (*)(int)>(int*)", "apply<int (*)(int)>"),
        ("plain", "plain"),
    ],
)
def test_labels_keep_template_arguments(name: str, expected: str) -> None:
    assert label(name) == expected


def test_over_long_names_are_cut_in_the_middle() -> None:
    short = f.fit("kernel<" + "x" * 500 + ">::tail")
    assert len(short) <= 62
    assert short.startswith("kernel<") and short.endswith("tail")


def test_raw_values_are_exact() -> None:
    assert f.raw_value(16_777_216) == f.raw_value(16_777_216.0) == "16,777,216"
    assert f.raw_value(12.3456789) == "12.345679" and f.raw_value(0.5) == "0.5"
    assert f.raw_value(1.25e-9) == "1.25e-09" and f.raw_value(float("nan")) == "nan"
    assert f.raw_value("SM: a, b") == "SM: a, b"


def test_a_duration_is_one_text_wherever_it_is_written() -> None:
    for duration, text in (
        (999.6, "1.00 µs"),
        (999_600, "1.00 ms"),
        (50_000, "50 µs"),
        (999.4, "999 ns"),
        (5e9, "5 s"),
    ):
        assert f.nanoseconds(duration) == text
        assert f.seconds(duration * 1e-9) == text
        launch = Explanation(0, "r.ncu-rep", "kernel()", (), duration, (), None, ())
        assert text in repr(launch) and text == words.duration(launch)


def test_no_number_is_rounded_beside_the_formatter() -> None:
    """`{value:.3g}` turns 2160 into 2.16e+03."""
    root = Path(__file__).resolve().parents[2]
    own = [
        f"{file.relative_to(root)}:{number}"
        for folder in ("analysis", "reports", "gemmprof/base", "gemmprof/api", "gemmprof/model")
        for file in sorted((root / folder).rglob("*.py"))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r":,?\.[1-4]g\}", line)
    ]
    assert own == []
