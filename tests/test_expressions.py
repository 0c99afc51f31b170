"""Integer arithmetic from anybody's file: C's rules, and nothing but arithmetic."""

from __future__ import annotations

import pytest

from gemmprof.base.expressions import ExpressionError, evaluate, is_arithmetic


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 / 2", 3),
        ("BM / TM * (BN / TN)", 256),
        ("t % 32 / 8 ^ 3", 2),
        ("BM % TM == 0 && !(BN < 8) || 0", 1),
        ("-3 + 4", 1),
        ("row * 4\n + column", 9),
        ("!BM == row", 0),
        ("!(BM - 128) % 2", 1),
        ("!!row", 1),
        ("(BM && TM) * 4 + (0 || row)", 5),
        ("(BM & (BM - 1)) == 0", 1),
        ("1 + (TM > 4)", 2),
        ("(TM & TN) == (TM | TN)", 1),
        ("TM == (TM & TN)", 1),
        ("BM & TM ^ TM", 8),
    ],
)
def test_values(text: str, value: int) -> None:
    names = {"BM": 128, "BN": 128, "TM": 8, "TN": 8, "t": 9, "row": 2, "column": 1}
    assert evaluate(text, names) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "x.y",
        "f(1)",
        "2 ** 99",
        "1 << 99",
        "1.5",
        "True if x else 0",
        "x, y",
        "lambda: 0",
        "9" * 30,
        "1 +",
        "(" * 300,
        "1" * 401,
        "",
        "[1]",
        "'a'",
        "a = 1",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    assert not is_arithmetic(text)
    with pytest.raises(ExpressionError, match="is not plain integer arithmetic"):
        evaluate(text, {"x": 1})


@pytest.mark.parametrize("text", ["a & 1 == 0", "0 < a < 8", "a == 1 ^ 1", "a < (b) | 1", "a == b != 0"])
def test_what_python_reads_otherwise_than_c_is_refused(text: str) -> None:
    assert not is_arithmetic(text)
    with pytest.raises(ExpressionError, match="reads otherwise in C"):
        evaluate(text, {"a": 3, "b": 4})


@pytest.mark.parametrize("text", ["1 / 0", "1 % (t - t)", "missing + 1", "t * t * t"])
def test_no_value(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, {"t": 1 << 40})


def test_constants_of_python_are_no_names() -> None:
    with pytest.raises(ExpressionError):
        evaluate("True + 1", {})
