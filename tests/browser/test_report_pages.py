"""The report's pages in Chromium: nothing runs that should not, everything works that should, for everybody."""

from __future__ import annotations

import base64
import itertools
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from page_sessions import HOSTILE, hostile, ladder, load  # noqa: F401
from recorded_data import DATA, ROOT, ReadRecorded
from scale import few, inputs

from gemmprof.analysis.inputs.selection import selection
from gemmprof.analysis.kernel_analysis import KernelAnalysis, analyse
from gemmprof.analysis.opcodes import TARGET
from gemmprof.analysis.sections.source_view import SourceView
from gemmprof.analysis.session import Session, load_session
from gemmprof.model import Instances, KernelProfile
from gemmprof.reports.pages.contents import plan
from gemmprof.reports.pages.environment import document
from gemmprof.reports.pages.html import Report, index_article, render
from gemmprof.runs.directory import load_recorded_run

KERNEL = "03-shared-1024x1024x1024.html"


@pytest.fixture(scope="module")
def pages(ladder: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    folder = tmp_path_factory.mktemp("ladder")
    render(ladder, folder)
    return folder


@pytest.fixture(scope="module")
def one_file(ladder: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    return render(ladder, tmp_path_factory.mktemp("one") / "report.html", single_file=True)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of a hundred launches of a training step, a page of its own."""
    session = load_session([DATA / "train_100.ncu-rep.xz"])
    report = Report(session, plan(session))
    page = tmp_path_factory.mktemp("training") / "index.html"
    page.write_text(document("training", [index_article(report)]), encoding="utf-8")
    return page


@pytest.mark.parametrize("scheme", few(["light", "dark"], ["light"]))
def test_axe_finds_nothing_serious_in_families(training: Path, browser: Any, scheme: str) -> None:
    assert _violations(browser, training, scheme) == []


def test_families_fit_every_screen_and_stay_short(training: Path, browser: Any) -> None:
    for width in (360, 768, 1280, 2200):
        browser.viewport(width, 900)
        browser.open(training)
        program = browser.script("return document.getElementById('program').offsetHeight")
        assert program < 2400
        assert browser.script("return document.documentElement.scrollHeight") < 8200 + program
        browser.script("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert browser.overflow() == 0
        assert browser.script("return document.documentElement.scrollHeight") < 9000 + program
    browser.find("#family-filter").send_keys("TensorIteratorBase layer_norm")
    shown = browser.script(
        "return [...document.querySelectorAll('#family-table tbody tr')].filter(row => !row.hidden).length"
    )
    assert browser.find("#family-table-count").text == f"{shown} of 56"
    browser.find("#family-filter").clear()
    browser.find("#family-filter").send_keys("const float *")
    browser.script("document.getElementById('family-filter').dispatchEvent(new Event('input'))")
    assert browser.find("#family-table-count").text != "0 of 56", "parameters stand in full names only"


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 844)])
def test_the_first_finding_stands_on_the_first_screen(
    pages: Path, browser: Any, tmp_path: Path, width: int, height: int
) -> None:
    # The second is a kernel of torch: its name takes two lines at 1280 and four on a phone.
    transformer = ROOT / "docs" / "examples" / "recorded" / "transformer.ncu-rep.xz"
    session = load_session([transformer], selection=selection("#4"))
    render(session, tmp_path)
    (long,) = tmp_path.glob("0*.html")
    for page in (pages / KERNEL, long):
        browser.viewport(width, height)
        browser.open(page)
        first = browser.find(".findings > li")
        box = browser.script("return arguments[0].getBoundingClientRect().toJSON()", first)
        assert 0 < box["top"] < box["bottom"] <= height, page.name
        assert browser.overflow() == 0
    assert browser.find("h1").text == session.families[0].label, "the name is not cut"
    assert "/" not in browser.find(".foot").text.partition("launch")[0], "nor is a path of this machine told"


def _of_another_report(session: Session) -> list[KernelAnalysis]:
    """The session's launches as if from another report, each in a hostile NVTX range."""
    return [
        replace(kernel, profile=replace(kernel.profile, report=f"other {HOSTILE}", nvtx=(HOSTILE,)))
        for kernel in session.kernels
    ]


def test_nothing_of_a_hostile_report_runs(hostile: Session, browser: Any, tmp_path: Path) -> None:  # noqa: F811
    render(hostile, tmp_path)
    if inputs(0, 1):  # the same pages in one file
        render(hostile, tmp_path / "one.html", single_file=True)
    # Without its run the launches are families, from two reports with hostile names.
    kernels = (*hostile.kernels[:3], *_of_another_report(hostile))
    families = Session(hostile.title, kernels, unread=hostile.failures)
    render(families, tmp_path / "families.html", single_file=True)
    files = sorted(tmp_path.glob("*.html"))
    pages = [file for file in files if file.name[0].isdigit()]
    for file in [file for file in files if file not in pages[inputs(1, len(pages)) :]]:
        browser.open(file)
        browser.script("document.querySelectorAll('details').forEach(d => d.open = true)")
        for control in browser.find_all("th button")[:12]:
            browser.script("arguments[0].click()", control)
        assert browser.script("return typeof window.pwned") == "undefined", file.name
        assert browser.console_errors() == []
        assert browser.script("return document.querySelectorAll('img, iframe, [onerror]').length") == 0
        text = browser.script("return document.body.textContent")
        assert "window.pwned=1" in text, "the text itself is shown"
        assert not set(text) & set("\u202e\u2066\u200b")
        assert "\u202e" not in browser.driver.title
        # Injected by hand, the same markup is stopped by the policy: escaping is not the only guard.
        browser.script(
            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.pwned=2\">')"
        )
        browser.script(
            "const s = document.createElement('script'); s.textContent = 'window.pwned=3'; document.body.append(s)"
        )
        assert browser.script("return typeof window.pwned") == "undefined", file.name
        browser.console_errors()


def test_pages_ask_nobody_for_anything_and_are_interactive_within_a_second(
    pages: Path, one_file: Path, browser: Any
) -> None:
    interactive = "return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
    cut = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    browser.driver.execute_cdp_cmd("Network.enable", {})
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", cut)
    try:
        for file in [*sorted(pages.glob("*.html")), one_file]:
            browser.open(file)
            assert browser.script("return document.documentElement.dataset.ready") == "true"
            assert browser.console_errors() == []
            assert (
                browser.script("return performance.getEntriesByType('resource').map(entry => entry.name)")
                == []
            )
            times = [browser.script(interactive)]
            while times[-1] > 1000 and len(times) < 3:  # the machine may be busy with something else
                browser.open(file)
                times.append(browser.script(interactive))
            assert min(times) <= 1000, f"{file.name}: {times} ms"
    finally:
        online = cut | {"offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
        browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", online)
        browser.driver.execute_cdp_cmd("Network.disable", {})


@pytest.mark.parametrize(
    ("name", "scheme"),
    few(
        itertools.product(["index.html", KERNEL], ["light", "dark"]),
        [("index.html", "dark"), (KERNEL, "light")],
    ),
)
def test_axe_finds_nothing_serious(pages: Path, browser: Any, name: str, scheme: str) -> None:
    assert _violations(browser, pages / name, scheme) == []


def _violations(browser: Any, page: Path, scheme: str) -> list[Any]:
    """What axe finds that matters, everything on the page opened."""
    with browser.media(prefers_color_scheme=scheme):
        browser.open(page)
        browser.script("document.querySelectorAll('details').forEach(d => d.open = true)")
        # Hundreds of rows of one kind take axe long and tell it nothing new.
        browser.script("document.querySelectorAll('tbody tr:nth-child(n + 30)').forEach(row => row.remove())")
        browser.script(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
        found = browser.driver.execute_async_script(
            "const done = arguments[0], told = (v) => [v.id, v.impact, v.nodes.length, v.nodes[0].html.slice(0, 200),"
            " v.nodes[0].failureSummary.slice(0, 300)];"
            "axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations.map(told)))"
        )
    return [violation for violation in found if violation[1] in ("serious", "critical", "moderate")]


@pytest.mark.parametrize("name", ["index.html", KERNEL])
def test_no_page_is_wider_than_its_screen(pages: Path, browser: Any, name: str) -> None:
    browser.viewport(360, 900)
    browser.open(pages / name)
    browser.script("document.querySelectorAll('details').forEach(d => d.open = true)")
    for width in (360, 768, 1280, 2200):
        browser.viewport(width, 900)
        assert browser.overflow() == 0, width


def test_notebook_outputs_stay_within_their_cell(ladder: Session, browser: Any, tmp_path: Path) -> None:  # noqa: F811
    page = tmp_path / "notebook.html"
    outputs = (load_recorded_run()._repr_html_(), ladder.kernels[2]._repr_html_())
    cells = "".join(f"<div style='width: 1000px'>{html}</div>" for html in outputs)
    page.write_text(f"<!doctype html><meta charset='utf-8'><body style='margin: 0'>{cells}", encoding="utf-8")
    browser.viewport(1000, 900)
    browser.open(page)
    browser.script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.overflow() == 0
    inner = "return [...document.querySelectorAll('.gp-notebook')].map(e => e.scrollWidth - e.clientWidth)"
    assert browser.script(inner) == [0, 0]


def test_a_table_sorts_by_value_and_keeps_unknowns_last(pages: Path, browser: Any) -> None:
    browser.open(pages / "index.html")
    column = (
        "return [...document.querySelectorAll('#ladder-1024x1024x1024 .tight[data-sortable] tbody tr')].map("
        "row => row.cells[3].textContent.trim())"
    )
    header = browser.find("#ladder-1024x1024x1024 .tight[data-sortable] th:nth-child(4) button")
    assert browser.script(column) == ["42.9", "0.50", "6.32", "9.14", "–"]
    browser.script("arguments[0].click()", header)
    assert browser.script(column) == ["42.9", "9.14", "6.32", "0.50", "–"]
    assert (
        browser.find("#ladder-1024x1024x1024 .tight[data-sortable] th:nth-child(4)").get_attribute(
            "aria-sort"
        )
        == "descending"
    )
    browser.script("arguments[0].click()", header)
    assert browser.script(column) == ["0.50", "6.32", "9.14", "42.9", "–"]


def test_the_filter_shows_metrics_with_every_word(pages: Path, browser: Any) -> None:
    browser.open(pages / KERNEL)
    browser.script("document.querySelectorAll('#raw_metrics details').forEach(d => d.open = true)")
    browser.find("#raw-filter").send_keys("DRAM bytes_read")
    shown = browser.script(
        "return [...document.querySelectorAll('#raw tbody tr')].filter(row => !row.hidden)"
        ".map(row => row.cells[0].textContent)"
    )
    assert "dram__bytes_read.sum" in shown and len(shown) < 10
    assert browser.find("#raw-count").text.startswith(f"{len(shown)} of ")


LINKED = "return [...document.querySelectorAll('{} .linked')].map(row => row.firstChild.textContent)"
SOURCE, SASS = "[data-part=source]", "[data-part=sass]"


def test_a_source_line_leads_to_its_instructions_and_back(pages: Path, browser: Any) -> None:
    browser.open(pages / KERNEL)
    link = browser.find("#source_view table a")
    browser.script("arguments[0].click()", link)
    number = link.text.rpartition(":")[2]
    assert browser.script(LINKED.format(SOURCE)) == [number]
    assert len(browser.script(LINKED.format(SASS))) > 10
    visible = (
        "const pane = document.querySelector(arguments[0]), frame = pane.getBoundingClientRect();"
        "return [...pane.querySelectorAll('.linked')].some(row => { const box = row.getBoundingClientRect();"
        "return box.top >= frame.top && box.bottom <= frame.bottom })"
    )
    assert browser.script(visible, SASS)
    # The other way: an instruction marks its line alone.
    row = browser.find(f"{SASS} .code-row:not(.linked) .code-text")
    browser.script("arguments[0].click()", row)
    assert len(browser.script(LINKED.format(SASS))) == 1
    assert len(browser.script(LINKED.format(SOURCE))) == 1 and browser.script(visible, SOURCE)


def test_a_link_to_a_line_marks_it_and_a_branch_is_followed(pages: Path, browser: Any) -> None:
    browser.open(pages / KERNEL, "gemm-ladder-cu-30")
    seen = (
        "const row = document.querySelector(`${arguments[0]} .chosen`);"
        "const box = row.getBoundingClientRect(), pane = row.closest('.code-pane').getBoundingClientRect();"
        "return [row.firstChild.textContent, box.top >= pane.top, box.bottom <= pane.bottom,"
        " pane.top < innerHeight, pane.bottom > 0]"
    )
    assert browser.script(seen, SOURCE) == ["30", True, True, True, True]
    browser.open(pages / KERNEL, "sass-00e0")
    branch = browser.find(f"{SASS} .chosen .code-text a")
    assert branch.text == "0x0770"
    browser.script("arguments[0].click()", branch)
    assert browser.script("return location.hash") == "#sass-0770"
    assert browser.script(seen, SASS)[:3] == ["0770", True, True]
    # A finding leads to its line.
    place = browser.find("#findings .places a")
    browser.script("arguments[0].click()", place)
    assert browser.script(seen, SOURCE)[1:] == [True] * 4
    assert place.get_attribute("href").endswith(f"-{browser.script(seen, SOURCE)[0]}")


def test_the_ptx_is_a_file_that_is_linked_with_the_instructions(pages: Path, browser: Any) -> None:
    view = load_session([DATA / "ladder_simple.ncu-rep.xz"]).kernels[2].get(SourceView)
    assert isinstance(view, SourceView)
    text, at = view.ptx
    line = next(at[item.index] for item in view.sass if "FFMA" in item.sass)
    assert text[line - 1].startswith("fma.rn.f32")
    browser.open(pages / KERNEL, f"ptx-{line}")
    row = browser.find(f"{SOURCE} .code-row.chosen")
    assert row.text.startswith(str(line)) and "fma.rn.f32" in row.text
    assert (
        browser.script("return document.querySelector('[data-part=files]').selectedOptions[0].text")[:3]
        == "PTX"
    )
    linked = browser.find(f"{SASS} .code-row.linked .code-text")
    assert "FFMA" in linked.text
    # From an instruction to its line there, as long as the PTX is shown.
    browser.script("arguments[0].click()", linked)
    assert [row.text for row in browser.find_all(f"{SOURCE} .code-row.linked .code-no")] == [str(line)]


def test_a_key_follows_a_branch_to_the_first_instruction(pages: Path, browser: Any, tmp_path: Path) -> None:
    text = (pages / KERNEL).read_text(encoding="utf-8")
    page = tmp_path / KERNEL
    page.write_text(re.sub(r'"jumps":\[\[(\d+),\d+\]', r'"jumps":[[\1,0]', text, count=1), encoding="utf-8")
    branch = int(re.search(r'"jumps":\[\[(\d+),0\]', page.read_text(encoding="utf-8"))[1])  # type: ignore[index]
    browser.open(page, f"sass-{16 * branch:04x}")
    browser.script(
        "document.querySelector('[data-code-area]').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'g', bubbles: true}))"
    )
    assert browser.script("return location.hash") == "#sass-0000"


def test_the_roofline_zooms_and_answers(pages: Path, browser: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    browser.open(pages / KERNEL)
    svg = browser.find("#roofline svg.plot")
    browser.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", svg)
    view = (
        "return document.querySelector('#roofline svg.plot').getAttribute('viewBox').split(' ').map(Number)"
    )
    whole = browser.script(view)
    point = browser.find("#roofline-figure-point-shared")
    ActionChains(browser.driver).move_to_element(point).perform()
    assert browser.find("#roofline .readout").text.startswith("Shared memory: 0.317 FLOP/byte, 8.81 TFLOP/s")
    ActionChains(browser.driver).move_by_offset(90, -60).perform()
    told = browser.find("#roofline .readout").text
    assert "The roofs allow here: Device memory" in told and "FLOP/byte" in told
    plus, minus, reset = browser.find_all("#roofline figure .tools button")
    assert not minus.is_enabled()
    plus.click()
    assert browser.script(view) != whole and minus.is_enabled()
    # The scale goes with the picture: the point answers where it now is.
    browser.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", svg)
    reset.click()
    assert browser.script(view) == pytest.approx(whole, abs=1e-3)
    assert browser.console_errors() == []


def test_heat_columns_and_order_are_chosen(pages: Path, browser: Any) -> None:
    browser.open(pages / KERNEL)
    heads = f"return [...document.querySelectorAll('{SASS} .code-head span')].map(cell => cell.textContent)"
    assert browser.script(heads) == ["Offset", "Samples", "Waits", "Live", "Instruction"]
    choose = (
        "const heat = document.querySelector('[data-part=heat]'); heat.value = arguments[0];"
        "heat.dispatchEvent(new Event('change'))"
    )
    offered = browser.script(
        "return [...document.querySelector('[data-part=heat]').options].map(o => o.value)"
    )
    assert {"samples", "executed", "sectors", "wavefronts", "stall:mio_throttle"} <= {*offered}
    browser.script(choose, "sectors")
    column = (
        f"return [...document.querySelectorAll('{SASS} .code-row')].slice(0, 3)"
        ".map(row => row.children[1].textContent)"
    )
    browser.script("document.querySelector('[data-part=sort]').click()")
    assert browser.script(heads)[1] == "Sectors"
    assert all(text.endswith("M") for text in browser.script(column)[:2]), (
        "the instructions with most come first"
    )
    for box in browser.find_all("[data-part=columns] input"):
        browser.script("arguments[0].click()", box)
    assert {"Executed", "Threads", "Wavefronts", "Not issued"} < {*browser.script(heads)}
    assert browser.console_errors() == []


def test_the_panes_agree_with_the_analysis_and_are_searched(
    ladder: Session,  # noqa: F811
    pages: Path,
    browser: Any,
) -> None:
    """Lines' shares are summed by the script: they are those that Python counts."""
    browser.open(pages / KERNEL)
    view = next(kernel for kernel in ladder.kernels if "shared" in kernel.profile.name).get(SourceView)
    assert isinstance(view, SourceView)
    told = dict(
        browser.script(
            f"return [...document.querySelectorAll('{SOURCE} .code-row')]"
            ".map(row => [row.children[0].textContent, row.children[1].textContent])"
        )
    )
    for line in view.lines:
        share = view.share(line.counters)
        if share is not None and share >= 0.1:
            assert told[str(line.line)] == f"{share:.1f} %"
    # Text is found in both of them.
    field = browser.find("[data-part=find]")
    field.send_keys("syncthreads\ue007")
    assert browser.find("[data-part=found]").text == "1 of 2"
    field.send_keys("\ue007")
    assert browser.find("[data-part=found]").text == "2 of 2"
    assert "__syncthreads" in browser.find(".code-row.found .code-text").text
    field.clear()
    field.send_keys("no such thing\ue007")
    assert browser.find("[data-part=found]").text == "nowhere" and not browser.find_all(".code-row.found")


def test_the_keyboard_reaches_what_scrolls_and_what_acts_and_moves_through_the_code(
    pages: Path, browser: Any
) -> None:
    browser.open(pages / KERNEL)
    unreachable = browser.script(
        "return [...document.querySelectorAll('.scroll, .listing, .code-pane')]"
        ".filter(e => e.scrollWidth > e.clientWidth && e.tabIndex < 0)"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert unreachable == []
    browser.find("body").send_keys("\ue004")
    assert browser.script("return document.activeElement.className") == "skip"
    pane = browser.find(SOURCE)
    chosen = f"return document.querySelector('{SOURCE} .chosen').firstChild.textContent"
    hottest = browser.script(chosen)
    pane.send_keys("j")
    after = browser.script(chosen)
    assert int(after) > int(hottest)
    pane.send_keys("k")
    assert browser.script(chosen) == hottest
    pane.send_keys("n")
    assert browser.script(chosen) not in (hottest, after)
    assert not browser.find("[data-part=help]").is_displayed()
    pane.send_keys("?")
    assert browser.find("[data-part=help]").is_displayed()
    pane.send_keys("\ue007")
    assert browser.script(f"return document.activeElement === document.querySelector('{SASS}')")


def long_kernel(profile: KernelProfile, instructions: int) -> KernelAnalysis:
    """A launch whose code stands in it so often that it has so many instructions, from a file of 2,000 lines."""
    code = profile.source.instructions
    size, times = code[-1].address - code[0].address + 16, -(-instructions // len(code))
    (file,) = {item.file for item in code if item.file is not None}
    lines = profile.source.files[file].split("\n")
    copies = [
        replace(
            item,
            address=item.address + size * copy,
            # Each copy jumps within itself: the loops stand one behind the other.
            sass=re.sub(TARGET, lambda jump, by=size * copy: f"0x{int(jump[1], 16) + by:06x}", item.sass),
            line=(item.line or 1) + len(lines) * (copy % (2000 // len(lines))),
        )
        for copy in range(times)
        for item in code
    ]
    known = {item.address for item in code}
    instances = {
        name: Instances(
            tuple(key + size * copy for copy in range(times) for key in values.keys), values.values * times
        )
        if known.issuperset(values.keys)
        else values
        for name, values in profile.instances.items()
    }
    text = "\n".join(lines * (2000 // len(lines)))
    source = replace(profile.source, instructions=tuple(copies), files={file: text})
    return analyse(replace(profile, source=source, instances=instances))


def test_inlined_functions_roll_up_to_the_callers_line(browser: Any, tmp_path: Path) -> None:
    session = load_session([DATA / "flaws_tensor.ncu-rep.xz"])
    render(session, tmp_path)
    browser.open(tmp_path / "000-wmma-half.html", "tensor-cu-17")
    tree = browser.find(".code-tree").text
    assert "nvcuda::wmma::load_matrix_sync" in tree and "mma.hpp:" in tree
    # A line of the header names the calls that it came through.
    browser.script("arguments[0].click()", browser.find(".code-tree a"))
    assert browser.find("[data-part=files]").get_property("value") != "0"
    browser.script("arguments[0].click()", browser.find(f"{SASS} .linked .code-text"))
    assert (
        "in nvcuda::wmma::load_matrix_sync, inlined at tensor.cu:17"
        in browser.find("[data-part=chosen]").text
    )
    assert browser.console_errors() == []


def test_code_without_lines_is_sorted_searched_and_moved_through(browser: Any, tmp_path: Path) -> None:
    """Built without -lineinfo, as most code of others is: the pane of SASS stands alone, and all of it works."""
    render(load_session([DATA / "partial_no_lineinfo.ncu-rep.xz"]), tmp_path)
    page = max(tmp_path.glob("0*.html"), key=lambda file: file.stat().st_size)
    browser.open(page)
    assert not browser.find_all("[data-part=files]") and browser.find_all(f"{SASS} .code-row")
    before = [row.text for row in browser.find_all(f"{SASS} .code-row")]
    browser.script("arguments[0].click()", browser.find("[data-part=sort]"))
    assert [row.text for row in browser.find_all(f"{SASS} .code-row")] != before
    browser.find("[data-part=find]").send_keys("EXIT\n")
    browser.script("arguments[0].click()", browser.find(f"{SASS} .code-row"))
    assert browser.find("[data-part=chosen]").text
    assert browser.console_errors() == []


def test_a_kernel_of_many_instructions_scrolls(recorded: ReadRecorded, browser: Any, tmp_path: Path) -> None:
    """A recorded kernel, its code many times over: in the campaign 20,000 instructions on 2,000 lines."""
    instructions = inputs(6_000, 20_000)
    render(Session("long", (long_kernel(recorded("ladder_simple", source=True)[2], instructions),)), tmp_path)
    (page,) = tmp_path.glob("0*.html")
    assert page.stat().st_size < 1_500_000 + 75 * instructions
    browser.open(page)
    # The page's own processor time, whatever else the machine does.
    browser.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})

    def busy() -> float:
        told = browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(float(item["value"]) for item in told if item["name"] == "TaskDuration")

    before = busy()
    browser.driver.execute_async_script(
        f"const pane = document.querySelector('{SASS}'), done = arguments[0]; let left = 40;"
        "const step = () => { pane.scrollTop += 4000; if (left--) requestAnimationFrame(step); else done() };"
        "requestAnimationFrame(step)"
    )
    assert (busy() - before) / 40 < 0.050, "seconds a frame"
    assert browser.script(f"return document.querySelectorAll('{SASS} .code-row').length") < 100
    place = f"{16 * instructions - 16:x}"
    browser.open(page, f"sass-{place}")
    assert browser.script(f"return document.querySelector('{SASS} .chosen').firstChild.textContent") == place


def test_the_findings_are_copied_as_markdown(pages: Path, browser: Any) -> None:
    browser.open(pages / "01-naive-1024x1024x1024.html")
    browser.script(
        "Object.defineProperty(navigator, 'clipboard',"
        " {value: {writeText: async (text) => { window.copied = text; }}})"
    )
    browser.script("arguments[0].click()", browser.find("[data-copy]"))
    text = browser.script("return window.copied")
    assert re.match(r"## #\d+ `gemm_naive`", text) and "**Uncoalesced access**" in text
    assert "gemm_ladder.cu:8" in text


def test_the_theme_follows_the_system_until_the_reader_chooses(pages: Path, browser: Any) -> None:
    background = "return getComputedStyle(document.body).backgroundColor"
    with browser.media(prefers_color_scheme="light"):
        browser.open(pages / "index.html")
        light = browser.script(background)
    with browser.media(prefers_color_scheme="dark"):
        browser.open(pages / "index.html")
        dark = browser.script(background)
        assert dark != light
        browser.find("[data-theme-toggle]").click()
        assert browser.script(background) == light
        # Figures follow: a roof's stroke is a variable of the theme.
        assert browser.script("return document.documentElement.dataset.theme") == "light"
        browser.script("localStorage.clear()")


@pytest.mark.parametrize("width", few([1280, 360], [1280]))
def test_every_link_of_the_contents_lands_on_its_section(pages: Path, browser: Any, width: int) -> None:
    browser.viewport(width, 900)
    landed = (
        "const e = document.getElementById(arguments[0]), d = document.documentElement;"
        "const from = parseFloat(getComputedStyle(d).scrollPaddingTop), top = e.getBoundingClientRect().top;"
        "const end = d.scrollHeight - d.clientHeight - d.scrollTop < 2;"
        "return Math.abs(top - from) < 6 || (end && top > from) ? '' : `${arguments[0]} ${top} ${from}`"
    )
    with browser.media(prefers_reduced_motion="reduce"):
        browser.open(pages / KERNEL)
        names = [link.get_attribute("href").rpartition("#")[2] for link in browser.find_all(".toc a")]
        assert len(names) > 14
        for name in names[:: inputs(8, 4)]:  # as somebody who was sent the link
            browser.open(pages / KERNEL, name)
            assert browser.script(landed, name) == ""
        for name in reversed(names):  # and as somebody who reads on
            browser.script("arguments[0].click()", browser.find(f".toc a[href='#{name}']"))
            assert browser.script(landed, name) == ""
        browser.open(pages / KERNEL, "calculator?threads=96")
        assert browser.find("#calculator [name=threads]").get_attribute("value") == "96"
        assert browser.find("#calculator").is_displayed()


def test_one_file_shows_one_page_at_a_time(one_file: Path, browser: Any) -> None:
    shown = "return [...document.querySelectorAll('.page')].filter(page => !page.hidden).map(page => page.id)"
    browser.open(one_file)
    assert browser.script(shown) == ["index"]
    browser.script("arguments[0].click()", browser.find("#index a[href^='#03-shared']"))
    assert browser.script(shown) == ["03-shared-1024x1024x1024"]
    assert "Shared-memory tiling" in browser.driver.title
    browser.open(one_file, "02-coalesced-1024x1024x1024-roofline")
    assert browser.script(shown) == ["02-coalesced-1024x1024x1024"]
    browser.open(one_file, "%zz")
    assert browser.script(shown) == ["index"] and browser.console_errors() == []


@pytest.mark.parametrize("single", [False, True])
def test_everything_is_readable_without_scripts(
    pages: Path, one_file: Path, browser: Any, single: bool
) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(one_file if single else pages / KERNEL)
        text = browser.script("return document.querySelector('#main').innerText")
        for words in ("Limited by", "Roofline", "Memory chart", "Warp states", "Raw metrics"):
            assert words in text
        assert not browser.find("[data-theme-toggle]").is_displayed(), "what needs a script is not shown"
        assert browser.script("return document.documentElement.dataset.ready ?? ''") == ""
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_kernel_page_prints_on_a_few_sheets(pages: Path, browser: Any) -> None:
    browser.open(pages / KERNEL)
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    content = base64.b64decode(printed["data"])
    assert content.startswith(b"%PDF")
    assert 4 <= len(re.findall(rb"/Type /Page\b(?!s)", content)) <= 18, (
        "cold instructions and closed details stay out"
    )
    with browser.media():
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        browser.viewport(794, 1123)
        hidden = (
            "return ['.top', '.toc', '#occupancy .interactive']"
            ".map(selector => document.querySelector(selector)?.offsetHeight ?? 0)"
        )
        assert browser.script(hidden) == [0, 0, 0]
        assert browser.overflow() == 0
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
