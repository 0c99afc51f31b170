"""The table that says how figures are computed, against the code that computes them."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recorded_data import DATA, ReadRecorded

from gemmprof import metrics
from gemmprof.analysis.kernel_analysis import ANALYSES
from gemmprof.analysis.provenance.table import ANALYSES_WITHOUT_FIGURES, FIGURES, figures_of
from gemmprof.model import KernelProfile, NotCollected

BY_NAME = {analysis.NAME: analysis for analysis in ANALYSES}
REPORTS = (
    "ladder_simple",
    "flaws_async_copy",
    "flaws_bank_conflicts",
    "flaws_cluster",
    "flaws_divergence",
    "flaws_precision",
    "flaws_spills",
    "flaws_tensor",
    "partial_roofline",
)

OF_THE_LAUNCH = {"blocks", "threads_per_block", "threads", "warps_per_block", "idle_lanes", "launches"}
"""Facts of the launch itself, not of a metric; green_context is a flag."""
NOT_MEASURED = {
    "launch": OF_THE_LAUNCH | {"green_context"},
    "divergence": {"warp_size"},
    "roofline": {"duration_ns"},  # the duration of the speed of light
    "coalescing": {"sectors", "ideal"},  # parts of excess_share
    "bank_conflicts": {"estimated_speedup", "estimated_speedup_by_source"},  # ncu's rules, docs/analyses.md
    "occupancy": {
        "blocks_per_sm",
        "full_waves",
        "last_wave_blocks",
        "wave_blocks",
    },  # of block_limits and grid
    "source_view": {"sampling_interval_cycles"},  # stands in the warp states
}


class Read(dict[str, Any]):
    """A mapping that remembers which keys were asked for."""

    def __init__(self, values: typing.Mapping[str, Any], asked: set[str]) -> None:
        super().__init__(values)
        self.asked = asked

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)


def launches(recorded: ReadRecorded) -> Iterator[KernelProfile]:
    for name in REPORTS:
        yield from recorded(name, source=True)


@pytest.fixture(scope="module")
def asked(recorded: ReadRecorded) -> dict[str, set[str]]:
    """Names of the metrics that each analysis asks for in the recorded launches."""
    found: dict[str, set[str]] = {name: set() for name in BY_NAME}
    for profile in launches(recorded):
        for name, analysis in BY_NAME.items():
            analysis.analyse(
                replace(
                    profile,
                    metrics=Read(profile.metrics, found[name]),
                    instances=Read(profile.instances, found[name]),
                )
            )
            # Of several names for one quantity the later ones are asked for where the first are absent.
            firsts = {figure.metrics[0] for figure in figures_of(name) if len(figure.metrics) > 1}
            rest = {key: value for key, value in profile.metrics.items() if key not in firsts}
            analysis.analyse(replace(profile, metrics=Read(rest, found[name])))
    return found


def test_every_number_of_a_result_is_in_the_table() -> None:
    missing = []
    for name, analysis in BY_NAME.items():
        hints = typing.get_type_hints(analysis.RESULT)
        known = {figure.key.split(".")[1] for figure in figures_of(name)}
        for field in dataclasses.fields(analysis.RESULT):
            hint = hints[field.name]
            if typing.get_origin(hint) is tuple:
                continue
            kinds = set(typing.get_args(hint)) or {hint}
            if kinds <= {int, float, type(None)} and field.name not in known | NOT_MEASURED.get(name, set()):
                missing.append(f"{name}.{field.name}")
    assert missing == []
    assert frozenset({"rules"}) == ANALYSES_WITHOUT_FIGURES


def test_every_figure_is_a_field_of_its_result() -> None:
    virtual = {"states", "links", "units", "points", "memory_roofs", "lines", "sass", "operations", "pipes"}
    for figure in FIGURES.values():
        name, field, *_ = figure.key.split(".")
        fields = {item.name for item in dataclasses.fields(BY_NAME[name].RESULT)}
        assert field in fields or hasattr(BY_NAME[name].RESULT, field), figure.key
        assert figure.metrics and figure.title
        assert len(figure.key.split(".")) == 2 or field in virtual | fields


@pytest.mark.parametrize("key", [key for key, figure in FIGURES.items() if not figure.formula])
def test_a_figure_without_a_formula_is_the_metric_itself(key: str, recorded: ReadRecorded) -> None:
    figure = FIGURES[key]
    name, *path = key.split(".")
    (metric,) = figure.metrics
    compared = 0
    for profile in launches(recorded):
        result = BY_NAME[name].analyse(profile)
        value = profile.number(metric)
        if isinstance(result, NotCollected) or value is None:
            continue
        if path == ["points", "memory", "achieved"]:
            shown = {p.memory.achieved for p in result.points if p.memory.level == "dram"} or {value}
        else:
            # None: the analysis says that the value means nothing here (a hit rate without accesses).
            shown = {getattr(result, path[0])} - {None} or {value}
        assert shown == {value}, (profile.name, metric)
        compared += 1
    if metric in UNRECORDED:
        pytest.skip("no recorded launch of an H100 has it")
    assert compared, f"no recorded report holds {metric}"


UNRECORDED: frozenset[str] = frozenset()


def test_the_metrics_of_a_formula_are_read_by_the_analysis(asked: dict[str, set[str]]) -> None:
    wrong = []
    for figure in FIGURES.values():
        if not figure.formula:
            continue
        name = figure.key.partition(".")[0]
        for metric in figure.metrics:
            pattern = re.compile(
                re.sub(r"<\w+>", r"\\w+", re.escape(metric).replace(r"\<", "<").replace(r"\>", ">"))
            )
            if not any(pattern.fullmatch(read) for read in asked[name]):
                wrong.append(f"{figure.key}: {metric}")
    assert wrong == []


@pytest.mark.parametrize(
    "key", [key for key, figure in FIGURES.items() if figure.formula and len(key.split(".")) == 2]
)
def test_without_its_metrics_a_figure_is_gone(key: str, recorded: ReadRecorded) -> None:
    """The formula really rests on what the table names: taken away, the figure goes or changes."""
    name, field = key.split(".")
    gone = set(FIGURES[key].metrics)
    changed = 0
    for profile in launches(recorded):
        before = BY_NAME[name].analyse(profile)
        if isinstance(before, NotCollected) or getattr(before, field) in (None, ()):
            continue
        after = BY_NAME[name].analyse(
            replace(
                profile,
                metrics={k: v for k, v in profile.metrics.items() if k not in gone},
                instances={k: v for k, v in profile.instances.items() if k not in gone},
            )
        )
        changed += isinstance(after, NotCollected) or getattr(after, field) != getattr(before, field)
    assert changed


def test_the_hit_rate_of_l2_leads_to_its_metric() -> None:
    assert metrics.L2_HIT_RATE in FIGURES["memory_chart.units.hit_rate"].metrics
    assert metrics.L2_HIT_RATE == "lts__t_sector_hit_rate.pct"


def test_the_documentation_names_every_figure() -> None:
    text = (DATA.parent.parent / "docs" / "analyses.md").read_text(encoding="utf-8")
    table = text[text.index("<!-- figures") : text.index("<!-- /figures -->")]
    assert {key for key in FIGURES if f"`{key}`" not in table} == set()
    names = {name for figure in FIGURES.values() for name in figure.metrics}
    assert {name for name in names if f"`{name}`" not in table} == set()


def test_templates_use_only_known_figures() -> None:
    used = set()
    for file in (Path(__file__).resolve().parents[2] / "templates").glob("*.html"):
        used |= set(re.findall(r'tip\("([\w.]+)"\)', file.read_text(encoding="utf-8")))
    assert len(used) > 15 and used <= set(FIGURES)
