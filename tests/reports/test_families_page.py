"""The index of a report of many launches: families first, every row leads somewhere, several reports are told apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from recorded_data import DATA

from gemmprof.analysis.kernel_analysis import KernelAnalysis
from gemmprof.analysis.session import Session, load_session
from gemmprof.reports.facts import facts
from gemmprof.reports.pages.contents import PAGE_LIMIT, plan
from gemmprof.reports.pages.html import render
from gemmprof.reports.pages.ladder_page import Overview


@pytest.fixture(scope="module")
def training() -> Session:
    """A hundred launches of a PyTorch training step."""
    return load_session([DATA / "train_100.ncu-rep.xz"])


@pytest.fixture(scope="module")
def index(training: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return render(training, tmp_path_factory.mktemp("training"), processes=2)


def test_families_hold_every_launch_once_and_all_the_time(training: Session) -> None:
    pages = plan(training)
    view = Overview(training, pages)
    rows = view.families
    members = [member for row in rows for member in row.family.members]
    assert sorted(members) == list(range(100)) and len(rows) == 56
    assert sum(row.family.share or 0.0 for row in rows) == pytest.approx(1.0)
    assert all(row.page is pages.by_launch[row.family.representative] for row in rows)
    facts = dict(view.facts)
    assert facts["GPU"] == "NVIDIA H100 80GB HBM3" and facts["Nsight Compute"] == "2025.3.1.0"
    assert facts["Captured"].startswith("100 launches of 39 kernels in 56 families, 673 µs in all")


@pytest.mark.parametrize("created", [-(2**62), 2**62, 2**40])
def test_a_moment_that_no_calendar_has_is_left_out(training: Session, created: int) -> None:
    (kernel, *_) = training.kernels
    profile = replace(kernel.profile, session=replace(kernel.profile.session, created=created))
    session = replace(training, kernels=(replace(kernel, profile=profile),))
    assert "Profiled" not in dict(Overview(session, plan(session)).facts)
    assert "UTC" not in facts(session)


def test_the_most_to_gain_stands_first(training: Session) -> None:
    rows = Overview(training, plan(training)).families
    saved = [row.family.leading_ns for row in rows]
    assert saved == sorted(saved, reverse=True) and saved[0] > 0
    first = rows[0].family
    assert first.worst is not None and first.total_ns is not None
    assert saved[0] == pytest.approx(first.worst.saves * first.total_ns)


def test_every_row_leads_to_a_page_that_is_there(index: Path) -> None:
    text = index.read_text(encoding="utf-8")
    targets = re.findall(r'<th scope="row"[^>]*><a href="([^"#]+)"', text)
    assert len(targets) == 56 + 100
    assert {(index.parent / target).is_file() for target in targets} == {True}
    assert len({*targets}) == 56, "a launch without a page of its own leads to its family's"


def test_the_filter_knows_full_names(index: Path) -> None:
    text = index.read_text(encoding="utf-8")
    names = re.findall(r'<th scope="row" class="wrap" title="([^"]+)"', text)
    assert len(names) == 156, "the filter reads them there"
    assert sum("TensorIteratorBase &amp;" in name for name in names) > 10, "parameters are searched, too"


def test_beyond_the_limit_a_family_leads_to_its_launch(
    load: Callable[[str], Session], tmp_path: Path
) -> None:
    one = load("partial_two_metrics").kernels[0]

    def named(number: int) -> KernelAnalysis:
        return replace(one, profile=replace(one.profile, name=f"kernel_{number}(int)", index=number))

    many = Session("many", tuple(named(number) for number in range(PAGE_LIMIT + 20)))
    index = render(many, tmp_path, processes=2)
    text = index.read_text(encoding="utf-8")
    assert len(list(tmp_path.glob("*.html"))) == PAGE_LIMIT + 1
    anchors = re.findall(r'<a href="#(launch-\d+)"', text)
    assert len(anchors) == 20 and all(f'<tr id="{anchor}"' in text for anchor in anchors)
    assert "the families with a page hold" in text


def test_launches_of_several_reports_say_which(tmp_path: Path) -> None:
    session = load_session([DATA / "ladder_simple.ncu-rep.xz", DATA / "flaws_tensor.ncu-rep.xz"])
    text = render(session, tmp_path).read_text(encoding="utf-8")
    families = text[text.index("family-table") : text.index("launch-table")]
    launches = text[text.index("launch-table") :]
    for part in (families, launches):
        assert part.count("ladder_simple.ncu-rep.xz</") == 3
        assert part.count("flaws_tensor.ncu-rep.xz</") == 3


def test_a_ladder_shows_the_first_finding_of_each_stage(ladder: Session, tmp_path: Path) -> None:
    text = render(ladder, tmp_path).read_text(encoding="utf-8")
    row = text[text.index('href="01-naive-', text.index("Every stage in numbers")) :]
    row = row[: row.index("</tr>")]
    assert "Uncoalesced access" in row and re.search(r"9\d %", row)


def test_findings_lead_a_kernel_page_and_name_their_lines(ladder: Session, tmp_path: Path) -> None:
    render(ladder, tmp_path)
    text = (tmp_path / "01-naive-1024x1024x1024.html").read_text(encoding="utf-8")
    ids = re.findall(r'<section id="(\w+)"', text)
    assert ids[:2] == ["findings", "verdict"]
    section = text[text.index('id="findings"') : text.index("</section>", text.index('id="findings"'))]
    assert "Uncoalesced access" in section and "gemm_ladder.cu:8" in section
    assert re.search(r"saves <strong>9\d %</strong> of the time", section)
