"""`gemmprof.open` and the report that it returns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from recorded_data import DATA, one_launch

import gemmprof
from gemmprof.analysis.sections.roofline import Roofline

TRAIN = DATA / "train_100.ncu-rep.xz"
LADDER = DATA / "ladder_simple.ncu-rep.xz"


@pytest.fixture(scope="module")
def train() -> gemmprof.Report:
    return gemmprof.open(TRAIN)


@pytest.fixture(scope="module")
def ladder() -> gemmprof.Report:
    return gemmprof.open(LADDER)


def test_the_package_shows_its_api_and_loads_every_name() -> None:
    assert {"open", "profile", "Report", "GemmprofError", "ReportError", "explain"} <= set(dir(gemmprof))
    for name in dir(gemmprof):
        assert getattr(gemmprof, name) is not None
    program = "import sys, gemmprof; print([m for m in ('pandas', 'numpy', 'jinja2') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_report_has_launches_families_and_findings(train: gemmprof.Report) -> None:
    assert len(train) == len(train.launches) == 100 and train[3] is train.launches[3]
    assert sum(family.count for family in train.families) == 100
    whole = "100 launches of 39 kernels in 56 families"
    assert repr(train) == f"<Report train_100.ncu-rep.xz · {whole} · NVIDIA H100 80GB HBM3>"
    saved = [finding.saves_ns or 0 for finding in train.findings]
    assert saved and saved == sorted(saved, reverse=True)
    assert all(one.saves_ns == one.finding.saves * one.family.total_ns for one in train.findings)


def test_findings_rest_on_counters_that_a_long_report_drops(
    train: gemmprof.Report, ladder: gemmprof.Report
) -> None:
    assert not train[0].profile.instances
    position = train.findings[0].family.representative
    whole = gemmprof.explain(one_launch(TRAIN, position))
    assert train.explain(position) == whole, "also the units of its evidence"
    assert any(one.unit for one in whole.findings[0].evidence)
    assert ladder.findings[0].finding.cause == "uncoalesced_access"
    assert ladder.findings[0].finding.places[0].line == 8


def test_a_launch_is_explained_as_read_or_as_analysed(ladder: gemmprof.Report) -> None:
    assert gemmprof.explain(ladder[0]) == gemmprof.explain(ladder[0].profile) == ladder.explain(0)


def test_the_table_has_one_typed_row_a_launch(train: gemmprof.Report, ladder: gemmprof.Report) -> None:
    frame = train.to_dataframe(metrics=["gpu__time_duration.sum", "no__such.metric"])
    assert len(frame) == 100 and "object" not in {str(kind) for kind in frame.dtypes}
    assert str(frame["registers"].dtype) == "Int64" and str(frame["duration_ns"].dtype) == "float64"
    assert frame["duration_ns"].tolist() == frame["gpu__time_duration.sum"].tolist()
    assert frame["no__such.metric"].isna().all()
    whole = ladder.to_dataframe(metrics=["dram__bytes.sum.per_second"])
    assert whole["bytes_per_second"].tolist() == whole["dram__bytes.sum.per_second"].tolist()
    assert frame["kernel"].nunique() == frame["name"].nunique() == 39
    times = frame.groupby("family")["duration_ns"].sum()
    assert {family.number: family.total_ns for family in train.families} == times.to_dict()


def test_the_words_of_the_command_line_select(train: gemmprof.Report) -> None:
    assert [k.profile.index for k in gemmprof.open(TRAIN, launch="3,5-6")] == [3, 5, 6]
    assert len(train.select("softmax", nvtx="forward")) == 1
    with pytest.raises(gemmprof.UsageError, match="no launch matches"):
        train.select("nothing")


def test_a_part_of_a_part(train: gemmprof.Report, ladder: gemmprof.Report) -> None:
    """What was selected stays selected: the two kernels that take most of those in the forward pass."""
    forward = train.select(nvtx="forward")
    top = forward.select(top=2)
    known = {launch.profile.index for launch in forward}
    assert {launch.profile.index for launch in top} < known
    time: dict[str, float] = {}
    for launch in forward:
        name = launch.profile.name
        time[name] = time.get(name, 0.0) + (launch.profile.number("gpu__time_duration.sum") or 0.0)
    assert {launch.profile.name for launch in top} == set(sorted(time, key=time.__getitem__)[-2:])
    outside = next(launch.profile.index for launch in train if launch.profile.index not in known)
    with pytest.raises(gemmprof.UsageError, match=f"matches --nvtx 'forward' --launch {outside}\n"):
        forward.select(launch=str(outside))
    one = ladder.select("naive")
    assert [kernel.match.label for kernel in one.compare(one).kernels] == ["gemm_naive"]


def test_two_reports_are_compared(ladder: gemmprof.Report) -> None:
    outcome = ladder.diff(LADDER)
    assert len(outcome) == len(outcome.kernels) == 3
    assert all(kernel.changes for kernel in outcome) and "SAME" in outcome._repr_html_()
    assert set(outcome.to_dataframe()["verdict"]) <= {"same", "unclear"}
    assert ladder.compare(LADDER) == outcome
    assert len(outcome.kernels) == 3 and outcome.count("slower", "faster", "new", "gone") == 0


def test_a_part_of_findings_and_families_shows_itself_as_the_whole(train: gemmprof.Report) -> None:
    for whole in (train.findings, train.families):
        some = whole[1:3]
        assert type(some) is type(whole) and list(some) == list(whole)[1:3] and whole[1] is some[0]
        assert 0 < some._repr_html_().count("<tr") - 1 == len(some) < len(whole)


def test_pages_and_notebook(ladder: gemmprof.Report, tmp_path: Path) -> None:
    one = ladder.write_html(tmp_path / "one.html")
    assert one == tmp_path / "one.html" and "gemm_naive" in one.read_text(encoding="utf-8")
    with pytest.raises(gemmprof.UsageError, match="exists already"):
        ladder.write_html(one)
    assert ladder.write_html(tmp_path / "pages").name == "index.html"
    shown = ladder._repr_html_()
    assert (
        shown.startswith('<div class="gp-notebook">') and "gemm_coalesced" in shown and "<script" not in shown
    )
    hostile = gemmprof.open(DATA / "names_nvtx.ncu-rep.xz")._repr_html_()
    assert "<script" not in hostile and "&lt;script" in hostile


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gemmprof.open(3), "a path is expected"),  # type: ignore[call-overload]
        (lambda: gemmprof.open("none.ncu-rep"), "there is no file"),
        (lambda: gemmprof.analyse(str(LADDER)), "gemmprof.open("),  # type: ignore[arg-type]
        (lambda: gemmprof.explain(str(LADDER)), "gemmprof.open("),  # type: ignore[arg-type]
        (lambda: gemmprof.open(LADDER)["gemm"], "report.select('gemm')"),  # type: ignore[index]
        (lambda: gemmprof.open(LADDER)[99], "holds 3"),
        (lambda: gemmprof.open(LADDER)[0].get("roofline"), "results['roofline']"),  # type: ignore[arg-type]
        (lambda: gemmprof.open(LADDER)[0].get(str), "they yield"),
        (lambda: gemmprof.profile("x.ncu-rep"), "gemmprof.open(path)"),  # type: ignore[call-overload]
    ],
)
def test_what_is_not_meant_gets_the_sentence_that_helps(call: object, said: str) -> None:
    assert callable(call)
    with pytest.raises(gemmprof.GemmprofError) as error:
        call()
    assert said in str(error.value)


def test_a_result_is_asked_for_by_its_type(ladder: gemmprof.Report) -> None:
    assert isinstance(ladder[0].get(Roofline), Roofline)
