from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from page_sessions import HOSTILE
from recorded_data import DATA

from gemmprof.analysis.kernel_analysis import analyse, analyses
from gemmprof.analysis.opcodes import TARGET
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.session import Session, load_session
from gemmprof.model import KernelProfile
from gemmprof.reports.formatting import nanoseconds, percent
from gemmprof.reports.pages.environment import environment
from gemmprof.reports.pages.html import render

VOID = {"meta", "link", "input", "br", "hr", "img", "rect", "path", "line", "use"}
MOST_BYTES = 1_500_000


class Page(HTMLParser):
    """A page's tags, ids, links and text; checks that tags nest."""

    def __init__(self, file: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open and self.open[-1] == tag, f"</{tag}> closes <{self.open[-1:]}> at {self.getpos()}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text.append(data)

    def attributes(self, name: str) -> list[str]:
        return [value for _, attributes in self.tags if (value := attributes.get(name)) is not None]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def check(file: Path) -> Page:
    """What holds for every page that gemmprof writes."""
    page = Page(file)
    assert not page.open, f"left open: {page.open}"
    ids = Counter(page.attributes("id"))
    assert not [item for item, count in ids.items() if count > 1], "ids are unique"
    for name in ("href", "src", "action", "data", "xlink:href", "srcset"):
        for value in page.attributes(name):
            target, _, fragment = value.partition("#")
            assert ":" not in target and "//" not in value, f"{name}={value!r} leads out of the report"
            assert not target or (file.parent / target).is_file(), f"{value} leads nowhere"
            if fragment and not target:
                assert fragment in ids, f"#{fragment} leads nowhere"
    for label in page.attributes("aria-labelledby") + page.attributes("for"):
        assert label in ids
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], (
            tag,
            attributes,
        )
    assert {tag for tag, _ in page.tags}.isdisjoint({"iframe", "object", "embed", "base", "link", "img"})
    policies = [a["content"] for tag, a in page.tags if tag == "meta" and a.get("http-equiv")]
    assert len(policies) == 1 and "default-src 'none'" in (policies[0] or "")
    return page


def test_every_recorded_report_becomes_pages(
    report_name: str, load: Callable[[str], Session], tmp_path: Path
) -> None:
    session = load(report_name)
    index = render(session, tmp_path, every=True)
    files = sorted(tmp_path.glob("*.html"))
    assert len(files) == len(session.kernels) + 1
    checked = {file: check(file) for file in files}
    assert all(file.stat().st_size <= MOST_BYTES for file in files)
    listed = checked[index]
    for kernel in session.kernels:
        light = kernel.get(SpeedOfLight)
        if isinstance(light, SpeedOfLight):
            assert nanoseconds(light.duration_ns) in listed.words
            assert light.sm_percent is None or percent(light.sm_percent) in listed.words


@pytest.fixture(scope="module")
def pages(ladder: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ladder")
    render(ladder, folder)
    return folder


def test_a_run_page_tells_the_ladder(pages: Path) -> None:
    page = check(pages / "index.html")
    for words in (
        "GEMM ladder on NVIDIA H100 80GB HBM3",
        "The ladder at 1024³",
        "Performance over size",
        "an illegal memory access was encountered",
        "passed",
        "SM clock while timing",
        "1,755 MHz",
        "2026-01-02 03:04 UTC",
        "Collected",
    ):
        assert words in page.words
    assert "6.32" in page.words, "TFLOP/s of stage 2 at 1024³"
    assert "14.7 %" in page.words, "of cuBLAS"
    assert "The ladder at 2048³" not in page.words, "that problem was not profiled"
    assert "18.8" in page.words, "TFLOP/s of stage 4 at 2048³, in the table of all sizes"


def test_without_profiles_the_largest_problem_is_shown_at_length(ladder: Session, tmp_path: Path) -> None:
    assert ladder.run is not None
    timed = [dataclasses.replace(result, report=None) for result in ladder.run.results]
    run = dataclasses.replace(ladder.run, results=tuple(timed))
    render(Session("timed only", (), run), tmp_path)
    page = check(tmp_path / "index.html")
    assert "The ladder at 2048³" in page.words and "The ladder at 1024³" not in page.words
    assert "6.32" in page.words, "TFLOP/s of stage 2 at 1024³, in the table of all sizes"


def test_a_kernel_page_has_every_section(pages: Path, ladder: Session) -> None:
    page = check(pages / "03-shared-1024x1024x1024.html")
    ids = set(page.attributes("id"))
    collected = {name for name, result in ladder.kernels[2].results.items() if result}
    assert collected <= ids and {"verdict", "raw_metrics", "access_pattern"} <= ids
    assert ladder.kernels[2].verdict.closeness in page.words
    contents = [href[1:] for href in page.attributes("href") if href.startswith("#")]
    assert collected <= set(contents), "the contents list every section"


def test_every_analysis_has_its_partial() -> None:
    partials = set(environment().list_templates())
    assert {f"analysis_{item.NAME}.html" for item in analyses()} <= partials


def test_each_section_opens_with_a_sentence(pages: Path) -> None:
    text = (pages / "02-coalesced-1024x1024x1024.html").read_text(encoding="utf-8")
    sections = re.findall(
        r'<section id="(\w+)" class="card" aria-labelledby.*?</h2>\s*(<[^>]*>)', text, re.DOTALL
    )
    assert len(sections) >= 14
    assert [name for name, opening in sections if opening != '<p class="lead">'] == []


def test_a_page_says_what_would_collect_what_is_missing(
    load: Callable[[str], Session], tmp_path: Path
) -> None:
    render(load("partial_two_metrics"), tmp_path)
    page = check(next(file for file in tmp_path.glob("*.html") if file.name != "index.html"))
    assert "Not in this report" in page.words
    assert "--section SpeedOfLight" in page.words
    assert "roofline" not in page.attributes("id")


def test_one_file_holds_all_pages_with_unique_ids(ladder: Session, tmp_path: Path) -> None:
    path = render(ladder, tmp_path / "all.html", single_file=True)
    assert [file.name for file in tmp_path.iterdir()] == ["all.html"] and path.name == "all.html"
    page = check(path)
    assert {"index", "01-naive-1024x1024x1024", "02-coalesced-1024x1024x1024"} <= set(page.attributes("id"))
    assert "#02-coalesced-1024x1024x1024" in page.attributes("href")


def test_pages_of_an_older_report_go_and_other_files_stay(ladder: Session, tmp_path: Path) -> None:
    render(ladder, tmp_path)
    (tmp_path / "mine.html").write_text("<p>mine</p>", encoding="utf-8")
    render(replace(ladder, kernels=ladder.kernels[:1], _by_launch={}), tmp_path)
    assert sorted(file.name for file in tmp_path.glob("*.html")) == [
        "000-gemm-naive.html",
        "index.html",
        "mine.html",
    ]


def test_an_empty_session_still_has_a_page(tmp_path: Path) -> None:
    assert "no profiled launch" in check(render(Session("nothing", ()), tmp_path)).words


def test_hundreds_of_launches_are_all_listed(load: Callable[[str], Session], tmp_path: Path) -> None:
    session = load("ladder_simple")
    many = replace(session, kernels=tuple(replace(session.kernels[index % 3]) for index in range(800)))
    page = check(render(many, tmp_path))
    assert len(list(tmp_path.glob("*.html"))) == 4
    assert page.words.count("gemm_shared") == 266 + 1, "and once as a family"
    assert "797 of them have no page of their own" in page.words


def test_a_kernel_that_many_files_and_instructions_make_up_fits(
    recorded: Callable[..., tuple[KernelProfile, ...]], tmp_path: Path
) -> None:
    profile = recorded("ladder_simple", source=True)[2]
    source, size = profile.source, len(profile.source.instructions)
    long = tuple(
        # Each copy jumps within itself: the loops stand one behind the other.
        replace(
            item,
            address=source.function_address + 16 * index,
            sass=re.sub(
                TARGET, lambda jump, by=index // size * 16 * size: f"0x{int(jump[1], 16) + by:06x}", item.sass
            ),
        )
        for index, item in enumerate(source.instructions * 80)
    )
    session = Session("long", (analyse(replace(profile, source=replace(source, instructions=long))),))
    render(session, tmp_path)
    page = tmp_path / "000-gemm-shared.html"
    assert page.stat().st_size <= MOST_BYTES
    assert "cold instructions left out" in check(page).words


def test_hostile_strings_stay_text_on_every_page(hostile: Session, tmp_path: Path) -> None:
    render(hostile, tmp_path)
    render(hostile, tmp_path / "one.html", single_file=True)
    files = list(tmp_path.glob("*.html"))
    assert len(files) == 6
    for file in files:
        page = check(file)
        text = file.read_text(encoding="utf-8")
        assert not set(text) & set("\x00\x1b\u202e\u2066\u200b"), "hidden characters are shown by name"
        assert "⟨U+202E⟩" in page.words and "{{7*7}}" in page.words and "window.pwned=1" in page.words
    assert HOSTILE not in "".join(file.read_text(encoding="utf-8") for file in files)


def test_two_processes_write_the_same_pages_as_one(load: Callable[[str], Session], tmp_path: Path) -> None:
    session = load("ladder_simple")
    many = replace(session, kernels=tuple(replace(session.kernels[index % 3]) for index in range(10)))
    render(many, tmp_path / "one", processes=1, every=True)
    render(many, tmp_path / "two", processes=2, every=True)
    pages = sorted((tmp_path / "one").glob("*.html"))
    assert len(pages) == 11
    for page in pages:
        assert page.read_bytes() == (tmp_path / "two" / page.name).read_bytes(), page.name


def test_a_report_of_one_kernel_opens_on_what_to_change(tmp_path: Path) -> None:
    session = load_session([DATA / "flaws_global_access.ncu-rep.xz"])
    with_findings = [kernel for kernel in session.kernels if kernel.explanation.findings]
    only = replace(session, kernels=with_findings[:1])
    render(only, tmp_path)
    page = check(tmp_path / "index.html")
    finding = only.kernels[0].explanation.findings[0]
    assert "What to change first" in page.words and finding.change[:30] in page.words
    assert "most to gain first" not in page.words, "of one there is no order"


def test_a_count_of_launches_says_that_nothing_explains_them(tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "docs" / "examples" / "recorded"
    session = load_session([examples / "transformer_launches.ncu-rep.xz"])
    render(replace(session, kernels=session.kernels[:60]), tmp_path)
    words = check(tmp_path / "index.html").words
    assert words.count("Not collected: ") == 1 and "ncu --set full brings it" in words
    assert "the most time first" in words and "most to gain" not in words
    assert "Limited by" not in words, "a column without a value"
