"""A report with a baseline leads with the verdicts, then says what changed and why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from recorded_data import DATA

from gemmprof.cli import main

NOISE = DATA / "noise"
BASE, FEWER = (str(NOISE / f"code_{name}.ncu-rep.xz") for name in ("base", "fewer_registers"))


def text_of(page: Path) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8")))


def test_the_verdicts_come_first(tmp_path: Path) -> None:
    assert main(["report", FEWER, "--baseline", BASE, "-o", str(tmp_path / "pages")]) == 0
    page = tmp_path / "pages" / "index.html"
    source, text = page.read_text(encoding="utf-8"), text_of(page)
    assert source.index('id="verdicts"') < source.index('id="families"')
    assert "1 SLOWER, 4 SAME" in text and "registers 48 → 32" in text and "+24.8 to +31.3" in text
    (linked,) = re.findall(r'SLOWER</span></td><td[^>]*>[^<]*</td><th[^>]*><a href="([^"]+)">', source)
    assert "normalise" in text_of(tmp_path / "pages" / linked)
    assert "<unnamed>" not in source


def test_a_saved_baseline_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["baseline", "save", "main", BASE]) == 0
    assert main(["report", FEWER, "--baseline", "main", "-o", "one.html", "--single-file"]) == 0
    assert "Against baseline main – 5 families: 1 SLOWER, 4 SAME" in text_of(tmp_path / "one.html")


def test_what_is_not_alike_is_named_and_not_refused(tmp_path: Path) -> None:
    other = str(DATA / "partial_basic.ncu-rep.xz")
    base = ["report", other, "--baseline", str(DATA / "partial_detailed.ncu-rep.xz")]
    assert main([*base, "-o", str(tmp_path / "pages")]) == 0
    assert "Compared across what ncu collected" in text_of(tmp_path / "pages" / "index.html")
