from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from page_sessions import HOSTILE, LARGE, SMALL

from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.session import Session
from gemmprof.reports.figures import plots as figures
from gemmprof.reports.figures.drawings import roofline
from gemmprof.reports.figures.svg import PALETTE
from gemmprof.reports.pages.environment import asset
from gemmprof.reports.terminal import roofline_table


@pytest.fixture(scope="module")
def roofs(load: Callable[[str], Session]) -> Roofline:
    result = load("ladder_simple").kernels[2].get(Roofline)
    assert isinstance(result, Roofline)
    return result


def svg_of(picture: figures.RooflinePicture | None, **changes: str) -> str:
    assert picture is not None
    return str(
        picture.drawn(**{"identifier": "k", "title": "Roofline", "description": "words"} | changes).figure
    )


def test_the_palette_is_the_style_sheets() -> None:
    assert len(set(PALETTE.values())) == len(PALETTE), "colours must be distinct to stand for their names"
    assert set(re.findall(r"--gp-([\w-]+): light-dark", asset("style.css"))) == set(PALETTE)


def test_a_figure_is_well_formed_themed_and_without_inline_styles(roofs: Roofline) -> None:
    text = svg_of(figures.kernel_roofline(roofs))
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img" and root.get("aria-label", "").startswith("Roofline")
    assert "style=" not in text and "<style" not in text and "xlink" not in text and "<image" not in text
    assert not re.search(r'(?:fill|stroke)="#', text), "every colour follows the theme"
    assert "var(--gp-dram)" in text


def test_text_stays_text(roofs: Roofline) -> None:
    texts = "".join(ElementTree.fromstring(svg_of(figures.kernel_roofline(roofs))).itertext())
    assert "arithmetic intensity" in texts and "FP32" in texts and "Device memory" in texts


def test_a_roof_above_the_main_one_lies_within_the_picture(roofs: Roofline) -> None:
    """FP32's, of a kernel of FP64: its name was cut at the upper edge."""
    assert roofs.main is not None
    above = replace(roofs.main, key="above", label="above", peak=2.0 * roofs.main.peak)
    picture = figures.kernel_roofline(replace(roofs, compute_roofs=(*roofs.compute_roofs, above)))
    assert picture is not None
    (axes,) = picture.figure.axes
    assert (
        axes.get_ylim()[1] > 1.2 * max(max(line.get_ydata()) for line in axes.lines) >= 2.2 * roofs.main.peak
    )


def test_ids_carry_the_prefix_and_references_resolve(roofs: Roofline) -> None:
    text = svg_of(figures.kernel_roofline(roofs), identifier="page7-roof")
    ids = set(re.findall(r' id="([^"]*)"', text))
    assert ids and all(item.startswith("page7-roof-") for item in ids)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) | set(re.findall(r'href="#([^"]*)"', text)) <= ids


def test_tooltips_sit_on_their_points(roofs: Roofline) -> None:
    root = ElementTree.fromstring(svg_of(figures.kernel_roofline(roofs)))
    titles = {
        group.get("id"): group[0].text
        for group in root.iter()
        if len(group) and group[0].tag.endswith("title")
    }
    assert "FLOP/byte" in (titles["k-point-dram"] or "")


def test_hostile_labels_stay_text(roofs: Roofline) -> None:
    steps = [
        figures.Step("1", HOSTILE, roofs),
        figures.Step("2", "$\\frac{1}{0}$ \u202e<b>", roofs),
    ]
    text = svg_of(figures.ladder_roofline(steps), title=HOSTILE, description=HOSTILE)
    root = ElementTree.fromstring(text)
    tags = {element.tag.rsplit("}")[-1] for element in root.iter()}
    assert tags <= {"svg", "g", "path", "text", "tspan", "defs", "clipPath", "rect", "use", "title"}
    assert "⟨U+202E⟩" in "".join(root.itertext()) and "\u202e" not in text
    assert "$\\frac{1}{0}$" in "".join(root.itertext()), "no mathtext"


def test_a_kernel_without_arithmetic_has_no_figure(load: Callable[[str], Session]) -> None:
    without = [
        roofs
        for kernel in load("flaws_global_access").kernels + load("flaws_atomics").kernels
        if isinstance(roofs := kernel.get(Roofline), Roofline) and roofs.main is None
    ]
    assert without
    assert all(figures.kernel_roofline(roofs) is None for roofs in without)


def test_figures_are_the_same_each_time(roofs: Roofline) -> None:
    assert svg_of(figures.kernel_roofline(roofs)) == svg_of(figures.kernel_roofline(roofs))


def test_a_picture_holds_one_shape_of_a_run(ladder: Session) -> None:
    rows = roofline_table.kernels(ladder)
    assert [roofline_table.name_of(page) for page in rows] == [
        "1 Naive 1024³",
        "2 Coalesced 1024³",
        "3 Shared-memory tiling 1024³",
    ]
    assert roofline_table.kernels(ladder, shape=SMALL) == rows
    assert roofline_table.kernels(ladder, shape=LARGE) == ()


def test_only_a_ladder_has_a_path(roofs: Roofline) -> None:
    steps = [figures.Step(str(n), f"{n}", roofs) for n in (1, 2)]
    with_path, without = (svg_of(figures.ladder_roofline(steps, path=path)) for path in (True, False))
    assert with_path.count("<path") > without.count("<path")


def test_stages_near_the_fastest_stand_once_more_and_larger_beside(load: Callable[[str], Session]) -> None:
    found = [one.get(Roofline) for one in load("ladder_simple").kernels]
    slow, *_, fast = sorted(
        (one for one in found if isinstance(one, Roofline)), key=lambda one: one.points[0].achieved
    )
    assert fast.points[0].achieved > 2 * slow.points[0].achieved
    few, many = (
        svg_of(
            figures.ladder_roofline(
                [figures.Step(str(n), f"{n}", one) for n, one in enumerate((slow, *[fast] * of))]
            )
        )
        for of in (3, 4)
    )
    assert "near-" not in few and re.findall(r'id="[^"]*near-(\d)"', many) == ["0", "1", "2", "3", "4"]
    # Each mark stands once: at its point, or where it is larger.
    texts = [
        text for text in ElementTree.fromstring(many).itertext() if re.fullmatch(r"[0-4] ?", text.strip())
    ]
    assert len(texts) == 5, texts


def test_a_figure_does_not_show_what_was_drawn_on_it_before(load: Callable[[str], Session]) -> None:
    rooflines = [kernel.results["roofline"] for kernel in load("ladder_simple").kernels[:3]]
    with ThreadPoolExecutor(1) as another:  # nothing was drawn there yet
        fresh = another.submit(roofline, rooflines[0], "a-").result()
    drawn = [roofline(item, "a-") for item in (*rooflines, rooflines[0])]
    assert drawn[0] == drawn[-1] == fresh is not None
    assert len({one.figure for one in drawn if one is not None}) == len(rooflines)
