"""Simulate how often `gemmprof history check` cries wolf and finds a step; writes the table of docs/history.md."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gemmprof.analysis.history.changepoints import MINIMUM_AFTER, MINIMUM_BEFORE, find_steps

PAGE = Path(__file__).resolve().parent.parent / "docs" / "history.md"
YEAR = 365
NOISE = 0.01


def quiet_year(rng: np.random.Generator, kind: str) -> npt.NDArray[np.float64]:
    """A year of times without a step."""
    noise = rng.normal(0, NOISE, YEAR)
    if kind == "heavy tails (t, 3 degrees)":
        noise = rng.standard_t(3, YEAR) * NOISE / 1.5
    elif kind == "2 % disturbed runs":
        disturbed = rng.random(YEAR) < 0.02
        noise[disturbed] += rng.choice([0.05, 0.1, 0.2], disturbed.sum())
    elif kind == "clock ticks of 1.2 %":
        noise = np.round(noise / 0.012) * 0.012
    return 1000 * np.exp(noise)


def alarmed_some_day(times: npt.NDArray[np.float64]) -> bool:
    """Whether a look after each run of the year finds a step on any day."""
    return any(find_steps(times[:day]) for day in range(MINIMUM_BEFORE + MINIMUM_AFTER, YEAR + 1))


def row(kind: str, series: int, seed: int) -> str:
    """One line of the table."""
    rng = np.random.default_rng(seed)
    once = sum(bool(find_steps(quiet_year(rng, kind))) for _ in range(series))
    daily = sum(alarmed_some_day(quiet_year(rng, kind)) for _ in range(series // 4))
    found = 0
    for _ in range(series):
        times = quiet_year(rng, kind)
        start = int(rng.integers(20, YEAR - 5))
        times[start:] *= 1.03
        found += any(abs(step.position - start) <= 5 for step in find_steps(times[: start + 5]))
    shares = (once / series, daily / (series // 4), found / series)
    return f"| {kind} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |"


def main() -> None:
    """Simulate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=400)
    options = parser.parse_args()
    kinds = ("normal", "heavy tails (t, 3 degrees)", "2 % disturbed runs", "clock ticks of 1.2 %")
    lines = [
        "| noise | quiet year, one look | quiet year, alarmed some day | 3 % step found within 5 runs |",
        "|---|---:|---:|---:|",
        *(row(kind, options.series, seed) for seed, kind in enumerate(kinds)),
    ]
    table = "\n".join(lines)
    text = PAGE.read_text(encoding="utf-8")
    replaced = re.sub(
        r"(<!-- power: [^>]*-->\n).*?(<!-- /power -->)",
        lambda m: f"{m[1]}{table}\n{m[2]}",
        text,
        flags=re.DOTALL,
    )
    PAGE.write_text(replaced, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
