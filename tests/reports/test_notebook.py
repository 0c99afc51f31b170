from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html import unescape

import pytest
from page_sessions import SMALL
from recorded_data import ROOT

import gemmprof
from gemmprof.analysis.kernel_analysis import analyse
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.session import Session
from gemmprof.reports.formatting import percent


def test_a_run_shows_its_ladder(ladder: Session) -> None:
    assert ladder.run is not None
    html = ladder.run._repr_html_()
    assert html.startswith('<div class="gp-notebook">') and html.count("<div") == html.count("</div")
    assert "GEMM ladder on NVIDIA H100" in html and "6.32" in html and "illegal memory access" in html
    assert "<script" not in html


def test_a_kernel_shows_its_verdict_and_sections(ladder: Session) -> None:
    kernel = ladder.kernels[2]
    html = kernel._repr_html_()
    light = kernel.get(SpeedOfLight)
    assert isinstance(light, SpeedOfLight)
    assert percent(light.sm_percent) in html and "Memory chart" in html
    assert 'class="memory-chart"' in html and "var(--gp-dram)" in html
    for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        ElementTree.fromstring(svg)


def test_two_outputs_in_one_notebook_have_different_ids(ladder: Session) -> None:
    ids = [
        set(re.findall(r' id="([^"]*)"', kernel._repr_html_()))
        for kernel in (ladder.kernels[0], ladder.kernels[0])
    ]
    assert ids[0] and not ids[0] & ids[1]


def test_styles_touch_nothing_outside_the_output(ladder: Session) -> None:
    style = re.search(r"<style>(.*?)</style>", ladder.kernels[0]._repr_html_(), re.DOTALL)
    assert style is not None
    rules = re.sub(r"/\*.*?\*/", "", style.group(1), flags=re.DOTALL)
    depth, selectors, current = 0, [], ""
    for character in rules:
        if character == "{":
            if depth == 0:
                selectors.append(current.strip())
            depth, current = depth + 1, ""
        elif character == "}":
            depth, current = depth - 1, ""
        else:
            current += character
    parts = [part.strip() for selector in selectors for part in selector.split(",")]
    assert parts and all(".gp-notebook" in part or ".memory-chart" in part for part in parts), parts


def test_hostile_names_stay_text(hostile: Session) -> None:
    assert hostile.run is not None
    for html in (hostile.run._repr_html_(), hostile.kernels[0]._repr_html_()):
        assert "<script" not in html and "<img" not in html and "\u202e" not in html
        assert "&lt;/script&gt;" in html


def test_frames_hold_base_units(ladder: Session) -> None:
    assert ladder.run is not None
    frame = ladder.run.to_dataframe().set_index(["stage", "m"])
    assert frame.loc[(2, SMALL.m), "median_s"] == pytest.approx(0.34e-3)
    assert frame.loc[(2, SMALL.m), "tflops"] == pytest.approx(6.316, abs=1e-3)
    assert frame.loc[(4, SMALL.m), "failure"] and frame.loc[(4, SMALL.m), "median_s"] != 0
    metrics = ladder.kernels[2].to_dataframe()
    profile = ladder.kernels[2].profile
    assert len(metrics) == len(profile.metrics)
    assert metrics.loc["gpu__time_duration.sum", "value"] == profile.metrics["gpu__time_duration.sum"]
    assert metrics.loc["gpu__time_duration.sum", "unit"] == profile.units["gpu__time_duration.sum"]


def test_a_kernel_of_which_nothing_was_collected_says_so(ladder: Session) -> None:
    profile = ladder.kernels[0].profile
    bare = analyse(replace(profile, metrics={}, instances={}, rules=()))
    html = bare._repr_html_()
    assert "not collected: use --section" in html and "0.0 %" not in html
    doubts = bare.explanation.trust
    assert doubts and all(doubt in unescape(html) for doubt in doubts), (
        "what other doors say before a finding"
    )


def test_families_findings_and_a_comparison_show_themselves_as_tables() -> None:
    before, after = (
        gemmprof.open(ROOT / "docs" / "examples" / "recorded" / f"{name}.ncu-rep.xz")
        for name in ("gelu", "gelu_fixed")
    )
    for shown, words in (
        (before.families, ("#1", before.families[0].label, "launches")),
        (before.findings, ("#1", "saves", before.findings[0].finding.change[:20])),
        (before.diff(after), ("before", "after", "%")),
    ):
        text = unescape(shown._repr_html_())
        assert text.count("<tr>") == 1 + len(shown) > 1
        assert all(word in text for word in words), words
