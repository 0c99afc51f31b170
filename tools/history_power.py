"""Simulate how often `gemmprof history check` cries wolf and finds a step; writes the table of docs/history.md."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from recording import ROOT, options_of, table_of, write_block

from gemmprof.analysis.history.changes import MINIMUM_AFTER, MINIMUM_BEFORE, find_steps

PAGE = ROOT / "docs" / "history.md"
YEAR = 365
NOISE = 0.01


KINDS = (
    "normal", "heavy tails (t, 3 degrees)", "2 % disturbed runs", "clock ticks of 1.2 %", "drift of 3 % a year",
    "season of ±1 % a year", "autoregression, correlation 0.5",
)  # fmt: skip


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
    elif kind == "drift of 3 % a year":
        noise += 0.03 * np.arange(YEAR) / YEAR
    elif kind == "season of ±1 % a year":
        noise += 0.01 * np.sin(2 * np.pi * (np.arange(YEAR) / YEAR + rng.random()))
    elif kind.startswith("autoregression"):
        for run in range(1, YEAR):
            noise[run] = 0.5 * noise[run - 1] + noise[run] * 0.75**0.5
    return 1000 * np.exp(noise)


def alarmed_some_day(times: npt.NDArray[np.float64]) -> bool:
    """Whether a look after each run of the year finds a step on any day."""
    return any(find_steps(times[:day]) for day in range(MINIMUM_BEFORE + MINIMUM_AFTER, YEAR + 1))


def others() -> dict[str, Callable[[npt.NDArray[np.float64]], list[int]]]:
    """Other searches that are installed here, with the settings that their documentation gives."""
    found: dict[str, Callable[[npt.NDArray[np.float64]], list[int]]] = {}
    if importlib.util.find_spec("ruptures"):
        import ruptures

        def pelt(times: npt.NDArray[np.float64]) -> list[int]:
            logs = np.log(times)
            penalty = 2 * float(np.var(np.diff(logs))) / 2 * float(np.log(len(logs)))
            search = ruptures.Pelt(model="l2", min_size=5, jump=1).fit(logs)
            return [int(place) for place in search.predict(pen=penalty)[:-1]]

        found[f"ruptures {ruptures.version.version}, PELT, l2, penalty 2 σ² log n"] = pelt
    if importlib.util.find_spec("otava"):
        from importlib.metadata import version

        from otava.analysis import compute_change_points

        def otava(times: npt.NDArray[np.float64]) -> list[int]:
            points, _ = compute_change_points(list(map(float, times)), max_pvalue=0.001, min_magnitude=0.0)
            return [point.index for point in points]

        found[f"Otava {version('apache-otava')}, p below 0.001"] = otava
    return found


def row(kind: str, series: int, seed: int) -> tuple[str, ...]:
    """One line of the table; what takes one look is tried ten times as often as what takes one a day."""
    rng = np.random.default_rng(seed)
    looks = 10 * series
    once = sum(bool(find_steps(quiet_year(rng, kind))) for _ in range(looks))
    daily = sum(alarmed_some_day(quiet_year(rng, kind)) for _ in range(series // 8))
    found = 0
    for _ in range(looks):
        times = quiet_year(rng, kind)
        start = int(rng.integers(20, YEAR - 5))
        times[start:] *= 1.03
        found += any(abs(step.position - start) <= 5 for step in find_steps(times[: start + 5]))
    shares = (once / looks, daily / (series // 8), found / looks)
    return kind, *(f"{100 * share:.1f} %" for share in shares)


def beside(series: int) -> list[str]:
    """The table of other searches on the same years: alarms of quiet ones, and a step of 3 % in the middle half."""
    searches: dict[str, Callable[[npt.NDArray[np.float64]], list[int]]] = {
        "gemmprof": lambda times: [step.position for step in find_steps(times)],
        **others(),
    }
    rows = []
    for seed, kind in enumerate(KINDS):
        rng = np.random.default_rng(1000 + seed)
        years = [quiet_year(rng, kind) for _ in range(series)]
        starts = [int(start) for start in rng.integers(YEAR // 4, 3 * YEAR // 4, series)]
        cells = [kind]
        for search in searches.values():
            alarms = sum(bool(search(times)) for times in years)
            found = 0
            for times, start in zip(years, starts, strict=True):
                stepped = times.copy()
                stepped[start:] *= 1.03
                found += any(abs(place - start) <= 5 for place in search(stepped))
            cells.append(f"{100 * alarms / series:.0f} %; {100 * found / series:.0f} %")
        rows.append(cells)
    head = ["quiet years with a step; years with one of 3 %, found within 5 runs"]
    return table_of(" | ".join([*head, *(f"{name}>" for name in searches)]), rows)


def main() -> None:
    """Simulate and write."""
    parser = options_of(__doc__)
    parser.add_argument("--series", type=int, default=32)
    options = parser.parse_args()
    head = "noise | quiet year, one look> | quiet year, alarmed some day> | 3 % step found within 5 runs>"
    rows = (row(kind, options.series, seed) for seed, kind in enumerate(KINDS))
    blocks = {"power": table_of(head, rows)}
    if others():  # without them the committed table stays
        blocks["others"] = beside(options.series // 4)
    for name, table in blocks.items():
        write_block(PAGE, name, "\n".join(table))
        print("\n".join(table))


if __name__ == "__main__":
    main()
