"""Writes what type checkers and editors read of the table of metric names: gemmprof/metrics/constants.pyi.

Usage: build_metric_constants.py
"""

from __future__ import annotations

from pathlib import Path

from gemmprof.metrics import constants

HEAD = """\
# Written by tools/build_metric_constants.py from constants.csv.
from collections.abc import Mapping

from gemmprof.metrics.groups import MetricGroup

METRICS_OF: dict[str, list[str]]
OLDER_NAMES: Mapping[str, str]

def group_of(analysis: str, *sections: str) -> MetricGroup: ...

"""


def kind(metrics: list[str]) -> str:
    """The type of a constant."""
    return "str" if len(metrics) == 1 else f"tuple[{', '.join(['str'] * len(metrics))}]"


def stub() -> str:
    """The text of the file."""
    return HEAD + "".join(f"{name}: {kind(found)}\n" for name, found in sorted(constants.METRICS_OF.items()))


if __name__ == "__main__":
    Path(constants.__file__).with_suffix(".pyi").write_text(stub(), encoding="utf-8")
