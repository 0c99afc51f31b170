"""Writes what type checkers and editors read of the table of metric names: gemmprof/metrics/constants.pyi.

Usage: build_metric_constants.py
"""

from __future__ import annotations

from pathlib import Path

from gemmprof.metrics import constants

GROUPS = [*constants.GROUPS.values()]
HEAD = """\
# Written by tools/build_metric_constants.py from constants.csv and groups.csv.
from collections.abc import Mapping

from gemmprof.metrics.groups import MetricGroup

ROWS_OF: dict[str, list[tuple[str, str]]]
OLDER_NAMES: Mapping[str, str]
GROUPS: dict[str, MetricGroup]

"""


def kind(value: object) -> str:
    """The type of a constant."""
    if isinstance(value, dict):
        key, one = next(iter(value.items()))
        return f"dict[{kind(key)}, {'tuple[str, ...]' if isinstance(one, tuple) else 'str'}]"
    return f"tuple[{', '.join(['str'] * len(value))}]" if isinstance(value, tuple) else "str"


def stub() -> str:
    """The text of the file."""
    groups = {name: "MetricGroup" for name, value in vars(constants).items() if value in GROUPS}
    kinds = {name: kind(getattr(constants, name)) for name in constants.ROWS_OF}
    return HEAD + "".join(f"{name}: {said}\n" for name, said in sorted({**kinds, **groups}.items()))


if __name__ == "__main__":
    Path(constants.__file__).with_suffix(".pyi").write_text(stub(), encoding="utf-8")
