"""Conditions are read as written, and what cannot be read is named."""

from __future__ import annotations

import pytest

from gemmprof.analysis.inputs.conditions import (
    Both,
    Comparison,
    Either,
    HasFinding,
    Match,
    Not,
    asks_change,
    names_in,
    parse_condition,
)
from gemmprof.base.errors import UsageError


def test_units_become_base_units() -> None:
    found = parse_condition("shared_bank_conflicts > 10% and time >= 1.5ms or dram_read < 2GiB")
    assert found == Either(
        (
            Both((Comparison("shared_bank_conflicts", ">", 10.0), Comparison("time", ">=", 1.5e6))),
            Comparison("dram_read", "<", 2.0 * 1024**3),
        )
    )
    assert names_in(found) == ("shared_bank_conflicts", "time", "dram_read")


def test_metrics_texts_and_brackets() -> None:
    found = parse_condition(
        "not (lts__t_sector_hit_rate.pct < 40 or registers == 1_000) and kernel ~ 'gemm|conv'"
    )
    assert found == Both(
        (
            Not(
                Either(
                    (
                        Comparison("lts__t_sector_hit_rate.pct", "<", 40.0),
                        Comparison("registers", "==", 1000.0),
                    )
                )
            ),
            Match("kernel", "gemm|conv", True),
        )
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected the name"),
        ("time >", "expected a number"),
        ("time > 3 parsecs", "no unit"),
        ("time > 1ms )", "expected 'and'"),
        ("(time > 1ms", "expected '\\)'"),
        ("kernel > 3", "is text"),
        ("time ~ 'x'", "looks at text"),
        ("kernel ~ '('", "no regular expression"),
        ("time > 1 ; drop table", "cannot be read"),
        ("(" * 200 + "time > 1" + ")" * 200, "nested too deeply"),
        ("not " * 5000 + "time > 1", "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        parse_condition(text)


def test_findings_and_changes_are_of_the_same_grammar() -> None:
    found = parse_condition("+UncoalescedGlobalAccess or low_occupancy and registers > + 5", two_sides=True)
    assert found == Either(
        (
            HasFinding("UncoalescedGlobalAccess", True),
            Both((HasFinding("low_occupancy"), Comparison("registers", ">", 5.0, change=True))),
        )
    )
    assert parse_condition("time > 3%", two_sides=True) == Comparison("time", ">", 3.0, change=True)
    assert not asks_change(parse_condition("low_occupancy and l2_hit_rate < 40%", two_sides=True))


@pytest.mark.parametrize(
    "text", ["time > +3%", "time > 3%", "+low_occupancy", "registers > 1 and cycles < +5"]
)
def test_one_side_has_no_changes(text: str) -> None:
    with pytest.raises(UsageError, match="about a change") as refused:
        parse_condition(text)
    assert "gemmprof diff" in refused.value.remedies[0]


@pytest.mark.parametrize("two_sides", [True, False])
@pytest.mark.parametrize("text", ["registers > 3%", "cycles < 40%", "local_memory > 1%"])
def test_a_share_of_what_is_no_share_is_refused_with_what_was_meant(text: str, two_sides: bool) -> None:
    with pytest.raises(UsageError, match="no per cent") as refused:
        parse_condition(text, two_sides=two_sides)
    name, compare, value = text.split()
    assert any(f"'{name} {compare} +{value}'" in remedy for remedy in refused.value.remedies)


@pytest.mark.parametrize("text", ["registers > 1ms", "time > 1MB", "occupancy < 3us", "registers > +1 KiB"])
def test_a_unit_that_a_figure_cannot_have_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"{text.split()[0]} is no (time|size)"):
        parse_condition(text, two_sides=True)
    parse_condition("time > 1ms and dram_read > 1MB and sm_clock > 1G and odd__metric > 1ms")


def test_a_finding_has_the_name_that_pages_show_too() -> None:
    assert parse_condition("Threads_without_work > 50%") == Comparison("idle_threads", ">", 50.0)
    assert parse_condition("local_memory > 1") == Comparison("local_memory", ">", 1.0)
    assert parse_condition("divergent_constant_loads") == HasFinding("constant_divergence")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 KiB", 2048), ("2kb", 2000), ("3 MiB", 3 << 20), ("3MB", 3e6), ("1 GiB", 1 << 30), ("1GB", 1e9),
        ("4 ns", 4), ("4 us", 4e3), ("4 µs", 4e3), ("4ms", 4e6), ("4 s", 4e9),
        ("5k", 5e3), ("5 M", 5e6), ("5G", 5e9), ("7 %", 7), ("7", 7), ("1,024 B", 1024), ("1_000", 1000), ("1e3", 1000),
    ],
)  # fmt: skip
def test_units_are_base_units_times_their_factor(text: str, value: float) -> None:
    assert parse_condition(f"x > {text}") == Comparison("x", ">", value)
