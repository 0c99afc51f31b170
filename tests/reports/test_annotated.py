from __future__ import annotations

import re

import pytest
from recorded_data import DATA

from gemmprof.analysis.sections.source_view import SourceView
from gemmprof.analysis.session import load_session
from gemmprof.cli import main

TENSOR = DATA / "flaws_tensor.ncu-rep.xz"


def test_lines_and_their_hot_instructions_have_their_shares(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(TENSOR), "#1", "--source"]) == 0
    told = capsys.readouterr().out
    session = load_session([TENSOR])
    view = session.kernels[session.by_time[0].representative].get(SourceView)
    assert isinstance(view, SourceView) and view.totals.samples
    shares = {}
    for row in told.splitlines():
        place = row[15:21].strip()
        if place.isdigit() and len(place) < 4:  # an instruction's has four digits
            shares[int(place)] = float(row[:8].rstrip(" %") or 0)
    counted: dict[int, int] = {}
    for item, own in zip(view.sass, view.own_lines, strict=True):
        assert own is not None
        counted[own[1]] = counted.get(own[1], 0) + (item.counters.samples or 0)
    for line, samples in counted.items():
        assert shares.get(line, 0.0) == pytest.approx(100 * samples / view.totals.samples, abs=0.06), line
    # What a call of a header costs stands on the line that calls it, with the instructions that wait.
    assert re.search(r"92\.4 % .* wmma::mma_sync.*\n +43\.7 % .* DMMA\S+ .*long scoreboard", told)
    assert "\x1b" not in told, "no colours in a file"


def test_without_lines_the_hottest_instructions_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["show", str(DATA / "launches_same_kernel.ncu-rep.xz"), "--top", "1", "--source"]) == 0
    assert capsys.readouterr().out.startswith("#1 ")


def test_a_document_of_it_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(TENSOR), "--source", "--json"]) == 2
    assert "--table lines" in capsys.readouterr().err


@pytest.mark.parametrize("option", [("--section", "roofline"), ("--all",)])
def test_what_the_source_alone_does_not_show_is_refused(
    option: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(TENSOR), "--source", *option]) == 2
    assert "leave out --section and --all" in capsys.readouterr().err
