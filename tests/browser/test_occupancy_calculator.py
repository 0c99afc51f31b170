"""The interactive calculator in a real browser: its numbers against Python's, and what a reader can do with it."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from scale import inputs

from gemmprof import occupancy
from gemmprof.analysis.occupancy.calculator import RESOURCES, Occupancy
from gemmprof.base.errors import OccupancyError
from gemmprof.gpu.arch import LIMITS
from gemmprof.model import ArchLimits
from gemmprof.reports.figures.plots import curves, resident_warps
from gemmprof.reports.pages.occupancy_page import page_html, preset

PER_ARCHITECTURE = inputs(250, 1_000)

CALCULATE = """
const limits = JSON.parse(document.querySelector("[data-occupancy-limits]").textContent);
const byLabel = new Map(limits.map((row) => [row.label, row]));
return arguments[0].map(([label, threads, registers, shared, config, barriers]) =>
  gemmprofOccupancy.calculate(byLabel.get(label), { threads, registers, shared, config, barriers }));
"""

CURVES = """
const limits = JSON.parse(document.querySelector("[data-occupancy-limits]").textContent);
const row = limits.find((item) => item.label === arguments[0]);
const [threads, registers, shared, config, barriers] = arguments[1];
return ["threads", "registers", "shared"].map((name) =>
  gemmprofOccupancy.curve(row, { threads, registers, shared, config, barriers }, name));
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of its own, set to the example that people work out by hand."""
    path = tmp_path_factory.mktemp("occupancy") / "calculator.html"
    path.write_text(page_html(preset(occupancy("8.6", 1024, 37, 8192))), encoding="utf-8")
    return path


def open_calculator(browser: Any, page: Path, fragment: str = "") -> None:
    """Open the page and wait until the calculator has started, which it does once it is on the screen."""
    browser.open(page, fragment)
    started = "return document.querySelector('[data-occupancy-calculator][data-ready]') !== null"
    deadline = time.monotonic() + 10
    while not browser.script(started):
        assert time.monotonic() < deadline, "the calculator did not start"
        time.sleep(0.02)


def random_configuration(limits: ArchLimits, draw: random.Random) -> tuple[str, int, int, int, int, int]:
    """Mostly configurations that a device accepts; one in ten may be beyond a limit."""
    most = limits.max_shared_memory_per_block - limits.reserved_shared_memory_per_block
    if draw.random() < 0.1:
        return (
            limits.label, draw.randint(-1, 1100), draw.randint(-1, 300), draw.randint(-1, most + 2000),
            draw.choice([*limits.shared_memory_configs, 12_345, 135_168]), draw.randint(-1, 18),
        )  # fmt: skip
    threads = draw.choice([draw.randint(1, 1024), 32 * draw.randint(1, 32)])
    registers = draw.choice([draw.randint(1, 255), draw.randint(16, 64)])
    shared = draw.choice([0, draw.randint(0, most), draw.randint(0, 16_384)])
    config = draw.choice([limits.shared_memory_configs[0], draw.choice(limits.shared_memory_configs)])
    return limits.label, threads, registers, shared, config, draw.choice([1, draw.randint(0, 16)])


def expected(answer: Occupancy) -> dict[str, Any]:
    """An answer in the script's names."""
    return {
        "problem": "",
        "blocks": answer.blocks_per_sm,
        "activeWarps": answer.active_warps_per_sm,
        "occupancy": answer.theoretical_occupancy,
        "limiters": list(answer.limiters),
        "binding": list(answer.binding),
        "blockLimits": dict(answer.block_limits),
        "warps": answer.warps_per_block,
        "registersPerWarp": answer.registers_allocated_per_warp,
        "registersPerBlock": answer.registers_allocated_per_block,
        "sharedPerBlock": answer.shared_memory_allocated_per_block,
    }


def test_no_difference_from_python_over_random_configurations(browser: Any, page: Path) -> None:
    draw = random.Random(20)
    asked = [
        random_configuration(limits, draw) for limits in LIMITS.values() for _ in range(PER_ARCHITECTURE)
    ]
    assert len(asked) >= 10 * PER_ARCHITECTURE
    open_calculator(browser, page)
    answers = browser.script(CALCULATE, asked)
    differences = []
    solved = zero = refused = 0
    for (label, threads, registers, shared, config, barriers), answer in zip(asked, answers, strict=True):
        try:
            python = expected(
                occupancy(
                    label, threads, registers, shared, shared_memory_config=config, block_barriers=barriers
                )
            )
            solved += 1
            zero += python["blocks"] == 0
        except OccupancyError as error:
            python = {"problem": error.message}
            refused += 1
        if answer != python:
            differences.append((label, threads, registers, shared, config, barriers, answer, python))
    assert differences == []
    # The draw must have reached all three kinds of answers.
    assert solved > 6 * PER_ARCHITECTURE
    assert zero > PER_ARCHITECTURE / 2
    assert refused > PER_ARCHITECTURE


def test_no_difference_from_python_in_the_curves(browser: Any, page: Path) -> None:
    draw = random.Random(7)
    open_calculator(browser, page)
    for limits in LIMITS.values():
        while True:
            label, threads, registers, shared, config, barriers = random_configuration(limits, draw)
            try:
                present = occupancy(
                    label, threads, registers, shared, shared_memory_config=config, block_barriers=barriers
                )
            except OccupancyError:
                continue
            break
        drawn = browser.script(CURVES, label, [threads, registers, shared, config, barriers])
        changed = ("threads_per_block", "registers_per_thread", "shared_memory_per_block")
        for resource, curve, points in zip(changed, curves(present), drawn, strict=True):
            assert [tuple(point) for point in points] == list(zip(curve.x, curve.warps, strict=True))
            assert resident_warps(present, resource, curve.present) == present.active_warps_per_sm


def shown(browser: Any, part: str) -> str:
    return str(browser.find(f'[data-part="{part}"]').text)


def set_value(browser: Any, name: str, value: object) -> None:
    """Type into a field, or choose in a list, as a reader does, and wait for the drawing."""
    browser.script(
        "const field = document.querySelector(`[name=${arguments[0]}]`); field.value = arguments[1];"
        "field.dispatchEvent(new Event(field.name === 'arch' ? 'change' : 'input', { bubbles: true }));",
        name,
        str(value),
    )
    wait_for_drawing(browser)


def wait_for_drawing(browser: Any) -> None:
    browser.driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
    )


def test_it_opens_with_the_preset_and_marks_what_binds(browser: Any, page: Path) -> None:
    open_calculator(browser, page)
    assert shown(browser, "percent") == "66.7 %"
    assert shown(browser, "blocks") == "1 block per SM, 32 of 48 warps"
    rows = [row.text for row in browser.find_all('[data-part="rows"] tr')]
    assert [row.split()[0] for row in rows] == ["Registers", "Shared", "Warps", "Blocks"]
    marked = [row.text.split()[0] for row in browser.find_all("tr.binding")]
    assert marked == ["Registers", "Warps"]
    assert len(browser.find_all(".curves svg circle.here")) == 3
    assert len(browser.find_all(".map rect.cell")) == 32 * 32
    assert browser.console_errors() == []


def test_it_answers_while_typing_and_says_what_is_impossible(browser: Any, page: Path) -> None:
    open_calculator(browser, page)
    set_value(browser, "registers", 32)
    set_value(browser, "threads", 768)
    assert shown(browser, "percent") == "100.0 %"
    set_value(browser, "threads", 1025)
    assert shown(browser, "problem") == "1,025 threads per block: compute capability 8.6 allows at most 1,024"
    assert browser.find('[name="threads"]').get_attribute("aria-invalid") == "true"
    assert not browser.find('[data-part="answer"]').is_displayed()
    set_value(browser, "threads", "")
    assert "whole number" in shown(browser, "problem")
    set_value(browser, "threads", 512)
    set_value(browser, "registers", 255)
    assert shown(browser, "blocks").startswith("No block fits")
    assert browser.console_errors() == []


def test_another_architecture_brings_its_own_limits(browser: Any, page: Path) -> None:
    open_calculator(browser, page)
    assert not browser.find('[name="barriers"]').is_enabled()
    set_value(browser, "arch", "9.0")
    assert browser.find('[name="barriers"]').is_enabled()
    configs = [option.get_attribute("value") for option in browser.find_all('[name="config"] option')]
    assert configs == ["largest", *map(str, LIMITS[9, 0].shared_memory_configs)]
    assert shown(browser, "percent") == "50.0 %"
    assert [row.text.split()[0] for row in browser.find_all("tr.binding")] == ["Registers"]
    assert len(browser.find_all('[data-part="rows"] tr')) == len(RESOURCES)


def test_a_link_brings_back_the_same_configuration(browser: Any, page: Path) -> None:
    open_calculator(browser, page)
    set_value(browser, "arch", "9.0")
    set_value(browser, "threads", 256)
    set_value(browser, "registers", 96)
    set_value(browser, "shared", 49_152)
    set_value(browser, "config", 135_168)
    set_value(browser, "barriers", 3)
    fragment = browser.script("return location.hash").removeprefix("#")
    assert parse_qs(fragment.partition("?")[2]) == {
        "arch": ["9.0"], "threads": ["256"], "registers": ["96"], "shared": ["49152"], "config": ["135168"],
        "barriers": ["3"],
    }  # fmt: skip
    percent = shown(browser, "percent")
    open_calculator(browser, page, fragment)
    assert shown(browser, "percent") == percent == "25.0 %"
    assert browser.find('[name="config"]').get_attribute("value") == "135168"
    browser.find('[data-part="reset"]').click()
    assert shown(browser, "percent") == "66.7 %"


def test_a_link_with_nonsense_does_no_harm(browser: Any, page: Path) -> None:
    nonsense = "calculator?arch=99&threads=%3Cimg%20src=x%20onerror=alert(1)%3E&config=7&registers=1e9"
    open_calculator(browser, page, nonsense)
    assert browser.find('[name="arch"]').get_attribute("value") == "8.6"
    assert browser.find('[name="config"]').get_attribute("value") == "largest"
    assert shown(browser, "problem") != ""
    assert browser.find_all("img") == []
    assert browser.console_errors() == []


def test_everything_is_reached_with_the_keyboard(browser: Any, page: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    open_calculator(browser, page)
    left = {"arch", "threads", "registers", "shared", "config", "threads-slider", "reset", "link", "grid"}
    for _ in range(40):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        active = browser.driver.switch_to.active_element
        left -= {active.get_attribute("name"), active.get_attribute("data-part")}
        if not left:
            break
    assert not left
    grid = browser.find('[data-part="grid"]')
    grid.send_keys(Keys.ARROW_LEFT)
    wait_for_drawing(browser)
    # Left of 1,024 threads and on the row of 37 registers, which is that of 40.
    assert browser.find('[name="threads"]').get_attribute("value") == "992"
    assert browser.find('[name="registers"]').get_attribute("value") == "40"
    assert "992 threads, 40 registers" in shown(browser, "readout")
    slider = browser.find('[data-part="registers-slider"]')
    slider.send_keys(Keys.ARROW_RIGHT)
    wait_for_drawing(browser)
    assert browser.find('[name="registers"]').get_attribute("value") == "41"


def test_a_cell_of_the_grid_can_be_taken(browser: Any, page: Path) -> None:
    open_calculator(browser, page)
    cell = browser.find('.map rect[data-threads="256"][data-registers="64"]')
    browser.driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", cell)
    cell.click()
    wait_for_drawing(browser)
    assert browser.find('[name="threads"]').get_attribute("value") == "256"
    assert shown(browser, "blocks") == "4 blocks per SM, 32 of 48 warps"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_in_light_and_dark(browser: Any, page: Path, scheme: str) -> None:
    with browser.media(prefers_color_scheme=scheme):
        browser.viewport(360, 740, phone=True)
        open_calculator(browser, page)
        assert browser.overflow() == 0
        background = browser.script("return getComputedStyle(document.body).backgroundColor")
        assert background == {"light": "rgb(247, 247, 245)", "dark": "rgb(19, 21, 25)"}[scheme]
        # Fingers need room: the fields and buttons are at least 28 CSS pixels high.
        heights = browser.script(
            "return [...document.querySelectorAll('.fields select, .fields input[type=number], .fields button')]"
            ".map((field) => field.getBoundingClientRect().height)"
        )
        assert min(heights) >= 28
    assert browser.console_errors() == []


def test_a_phone_shows_all_of_what_is_chosen(browser: Any, page: Path) -> None:
    browser.viewport(390, 844, phone=True)
    open_calculator(browser, page)
    room = browser.script("""const pen = document.createElement('canvas').getContext('2d');
      return [...document.querySelectorAll('.fields select')].map(select => {
        pen.font = getComputedStyle(select).font;
        return select.clientWidth - pen.measureText(select.selectedOptions[0].text).width; });""")
    assert len(room) == 2 and min(room) > 32, "the arrow and the padding stand beside the text"


def test_nothing_is_loaded_from_anywhere(browser: Any, page: Path) -> None:
    open_calculator(browser, page)
    assert browser.script("return performance.getEntriesByType('resource').map((entry) => entry.name)") == []
    text = page.read_text(encoding="utf-8")
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    assert "onclick=" not in text
    assert "eval(" not in text
