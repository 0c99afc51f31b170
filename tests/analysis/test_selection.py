"""Which launches the words of the command line mean, and which files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from recorded_data import DATA
from scale import few

from gemmprof.analysis.inputs.selection import expand, natural, selection, some
from gemmprof.analysis.session import load_session, selected_reports
from gemmprof.base.errors import GemmprofError, ReportError, UsageError
from gemmprof.runs.directory import recorded_run_directory

TRAIN = DATA / "train_100.ncu-rep.xz"
NVTX = DATA / "names_nvtx.ncu-rep.xz"


def positions(path: Path, **words: object) -> list[int]:
    session = load_session([path], selection=selection(**words))  # type: ignore[arg-type]
    return [kernel.profile.index for kernel in session.kernels]


@pytest.mark.parametrize(
    ("text", "expected"),
    few(
        [
            ("3", [3]),
            ("2-5", [2, 3, 4, 5]),
            ("0,4, 7-9", [0, 4, 7, 8, 9]),
            ("97-", [97, 98, 99]),
            (["1", "1-2"], [1, 2]),
        ],
        [("0,4, 7-9", [0, 4, 7, 8, 9]), ("97-", [97, 98, 99]), (["1", "1-2"], [1, 2])],
    ),
)
def test_launches_are_named_by_their_position(text: str | list[str], expected: list[int]) -> None:
    assert positions(TRAIN, launches=text) == expected


@pytest.mark.parametrize("text", ["", "x", "-3", "5-2", "1-2-3", "9" * 30, "1,,2"])
def test_what_is_no_position_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(UsageError, match="--launch") as error:
        selection(launches=text)
    assert error.value.remedies


def test_a_kernel_is_found_by_any_part_of_its_full_name() -> None:
    everything = load_session([TRAIN]).kernels
    expected = [k.profile.index for k in everything if "CUDAFunctor_add<float>" in k.profile.name]
    assert 0 < len(expected) < len(everything)
    assert positions(TRAIN, kernel=r"cudafunctor_add<float>") == expected


def test_an_expression_that_is_none_is_refused_with_its_escaped_form() -> None:
    with pytest.raises(UsageError) as error:
        selection(kernel="f(")
    assert r"f\(" in error.value.remedies[0]


def test_nvtx_ranges_are_searched_as_one_path() -> None:
    session = load_session([TRAIN])
    forward = [k.profile.index for k in session.kernels if k.profile.nvtx == ("step 0", "forward")]
    assert positions(TRAIN, nvtx="^step 0/forward$") == forward


def test_top_keeps_every_launch_of_the_kernels_that_took_most_time() -> None:
    session = load_session([TRAIN])
    total: dict[str, float] = {}
    for kernel in session.kernels:
        duration = kernel.profile.number("gpu__time_duration.sum")
        total[kernel.profile.name] = total.get(kernel.profile.name, 0.0) + (duration or 0.0)
    best = sorted(total, key=lambda name: -total[name])[:2]
    assert positions(TRAIN, top=2) == [k.profile.index for k in session.kernels if k.profile.name in best]
    with pytest.raises(UsageError, match="--top"):
        selection(top=0)


def test_nothing_that_matches_says_what_there_is() -> None:
    with pytest.raises(UsageError, match="no launch matches --kernel 'nowhere'") as error:
        positions(TRAIN, kernel="nowhere")
    assert "100 launches of 39 kernels" in error.value.found
    assert "and 31 more" in error.value.found


def test_a_selection_of_a_run_knows_its_stages_and_drops_the_other_results() -> None:
    session = load_session([recorded_run_directory()], selection=selection(kernel="^1 naive|async"))
    assert {(r.stage, r.problem.dtype) for r in session.run.results} == {
        (1, "float32"),
        (12, "float32"),
        (4, "bfloat16"),
    }
    assert len(session.kernels) == len(session.run.results)
    assert all(session.kernel_for(result) is not None for result in session.run.results)


def test_a_damaged_report_is_named_beside_a_selection(tmp_path: Path) -> None:
    cut = tmp_path / "cut.ncu-rep.xz"
    cut.write_bytes(TRAIN.read_bytes()[:5000])
    session = load_session([cut, TRAIN], selection=selection(launches="0"))
    assert len(session.kernels) == 1 and "cut.ncu-rep.xz" in session.failures[0].message
    reports, _ = selected_reports([cut, TRAIN], selection(launches="0"))
    assert reports == {cut: None, TRAIN: {0}}


def test_folders_and_patterns_stand_for_their_reports(tmp_path: Path) -> None:
    for name in ("b10.ncu-rep.xz", "b2.ncu-rep.xz", "notes.txt", "b2.details.csv.xz"):
        shutil.copy(NVTX, tmp_path / name)
    shutil.copytree(recorded_run_directory(), tmp_path / "run")
    names = [path.name for path in expand([tmp_path])]
    assert names == ["b2.ncu-rep.xz", "b10.ncu-rep.xz", "run"]
    assert [path.name for path in expand([f"{tmp_path}/b*"])] == names[:2]
    assert [path.name for path in expand([f"{tmp_path}/**/*.ncu-rep.xz"])][:2] == names[:2]
    assert expand([NVTX, NVTX, "none.ncu-rep"]) == [NVTX, Path("none.ncu-rep")]
    literal = tmp_path / "odd[1].ncu-rep.xz"
    shutil.copy(NVTX, literal)
    assert expand([literal]) == [literal]


@pytest.mark.parametrize("words", ["empty", "empty/*.ncu-rep"])
def test_a_folder_or_pattern_without_reports_is_an_error(words: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReportError) as error:
        expand([tmp_path / words])
    assert "empty" in error.value.message and error.value.remedies


def test_one_path_where_a_list_belongs_says_so() -> None:
    with pytest.raises(GemmprofError, match="a list of paths") as error:
        load_session(str(NVTX))
    assert "gemmprof.open" in error.value.remedies[0]


def test_lists_say_how_many_they_leave_out_and_sort_as_people_do() -> None:
    assert some(map(str, range(3))) == "0; 1; 2"
    assert some(map(str, range(20))).endswith("and 12 more")
    assert sorted(["10 b", "2 a", "1"], key=natural) == ["1", "2 a", "10 b"]
