from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from recorded_data import DATA, ROOT

from gemmprof.cli import main
from gemmprof.runs.directory import recorded_run_directory

LADDER = str(DATA / "ladder_simple.ncu-rep.xz")


def test_report_writes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "pages"
    assert main(["report", LADDER, "-o", str(folder)]) == 0
    assert capsys.readouterr().err.strip() == f"Wrote {folder / 'index.html'}"
    assert sorted(file.name for file in folder.iterdir()) == [
        "000-gemm-naive.html",
        "001-gemm-coalesced.html",
        "002-gemm-shared.html",
        "index.html",
    ]


def test_report_refuses_to_overwrite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept.txt").write_text("mine", encoding="utf-8")
    assert main(["report", LADDER, "-o", str(tmp_path)]) == 2
    assert "--force" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["kept.txt"]
    assert main(["report", LADDER, "-o", str(tmp_path), "--force"]) == 0
    assert (tmp_path / "kept.txt").read_text(encoding="utf-8") == "mine"


def test_report_writes_one_file_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "all.html"
    assert main(["report", LADDER, "-o", str(file), "--single-file", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["index"] == str(file) and answer["launches"] == 3 and file.is_file()
    assert main(["report", LADDER, "-o", str(file), "--single-file"]) == 2
    assert main(["report", LADDER, "-o", str(tmp_path / "folder"), "--single-file"]) == 2


def test_report_goes_on_beside_a_broken_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.ncu-rep"
    broken.write_bytes(b"not a report")
    assert main(["report", LADDER, str(broken), "-o", str(tmp_path / "pages")]) == 2
    assert "broken.ncu-rep" in capsys.readouterr().err
    assert "broken.ncu-rep" in (tmp_path / "pages" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("baseline", ["gemm_naive", LADDER])
def test_report_compares_with_a_chosen_baseline(baseline: str, tmp_path: Path) -> None:
    assert main(["report", LADDER, "-o", str(tmp_path), "--force", "--baseline", baseline]) == 0
    text = (tmp_path / "002-gemm-shared.html").read_text(encoding="utf-8")
    assert (
        "Against gemm_naive" if baseline == "gemm_naive" else "Against gemm_shared in the other report"
    ) in text
    first = (tmp_path / "000-gemm-naive.html").read_text(encoding="utf-8")
    assert ("Against" in first) == (baseline == LADDER), "no kernel is compared with itself"


def test_report_names_the_kernels_when_the_baseline_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", LADDER, "-o", str(tmp_path), "--force", "--baseline", "nothing"]) == 2
    assert "gemm_shared" in capsys.readouterr().err


def test_roofline_prints_a_row_for_each_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roofline", LADDER, "--kernel", "shared"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and lines[1].startswith("#3 gemm_shared")
    assert "Device memory" in lines[1] and "TFLOP/s" in lines[1] and "Shared memory" in lines[4]


def test_roofline_has_families_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    report = str(ROOT / "docs" / "examples" / "recorded" / "transformer.ncu-rep.xz")
    assert main(["roofline", report]) == 0
    ids = [int(found) for found in re.findall(r"^#(\d+) ", capsys.readouterr().out, re.MULTILINE)]
    assert len(ids) > 5 and ids == sorted(ids)
    assert main(["roofline", report, "--json"]) == 0
    told = [int(one["family"].strip("#")) for one in json.loads(capsys.readouterr().out)["kernels"]]
    assert len(told) >= len(ids) and told == sorted(told)


def test_roofline_json_holds_base_units_and_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roofline", LADDER, str(DATA / "partial_two_metrics.ncu-rep.xz"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    shared = next(item for item in answer["kernels"] if item["points"] and "gemm_shared" in item["kernel"])
    point = next(item for item in shared["points"] if item["level"] == "dram")
    assert point["attainable_flops"] == pytest.approx(
        min(point["peak_flops"], point["intensity"] * point["peak_bandwidth"])
    )
    assert point["achieved_flops"] == pytest.approx(
        point["intensity"] * point["achieved_bandwidth"], rel=1e-6
    )
    partial = [item for item in answer["kernels"] if "partial" in item["report"]]
    assert partial and all(item["points"] == [] and "--section" in item["not_collected"] for item in partial)


@pytest.mark.parametrize(("name", "magic"), [("r.png", b"\x89PNG"), ("r.svg", b"<?xml"), ("r.pdf", b"%PDF")])
@pytest.mark.parametrize("kernel", ["shared", ""])
def test_roofline_draws_a_picture(name: str, magic: bytes, kernel: str, tmp_path: Path) -> None:
    path = tmp_path / name
    assert main(["roofline", LADDER, "-o", str(path), "--kernel", kernel]) == 0
    assert path.read_bytes().startswith(magic) and path.stat().st_size > 2000


def test_roofline_explains_what_it_cannot_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roofline", LADDER, "-o", str(tmp_path / "r.docx")]) == 2
    assert ".png" in capsys.readouterr().err
    assert main(["roofline", LADDER, "--kernel", "nothing"]) == 2
    assert "nothing" in capsys.readouterr().err
    partial = str(DATA / "partial_two_metrics.ncu-rep.xz")
    assert main(["roofline", partial, "-o", str(tmp_path / "r.png")]) == 2
    assert "--section" in capsys.readouterr().err


def test_roofline_chooses_kernels_by_shape(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roofline", LADDER, "--shape", "1024"]) == 2, "a plain report knows no shapes"
    assert "the shape 1024" in capsys.readouterr().err


def test_a_shape_without_its_type_means_the_stages_of_that_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ["roofline", str(recorded_run_directory()), "--kernel", "hgemm_wmma"]
    assert main([*chosen, "--shape", "2048", "--json"]) == 0
    kernels = json.loads(capsys.readouterr().out)["kernels"]
    assert [kernel["problem"] for kernel in kernels] == ["2048x2048x2048-bfloat16"]
    assert main([*chosen, "-o", str(tmp_path / "r.svg")]) == 0
    assert "Drawing 4096³ bfloat16 (--shape chooses another)" in capsys.readouterr().err
