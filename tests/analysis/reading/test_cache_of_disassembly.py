"""The cache of what the native reader says keeps no answer that says nothing."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest
from recorded_data import DATA

from gemmprof.analysis.reading.report import read_report

REPORT = DATA / "flaws_cluster.ncu-rep.xz"


def sass_entries(folder: Path) -> dict[Path, dict[str, list[object]]]:
    entries = {path: json.loads(zlib.decompress(path.read_bytes())) for path in folder.iterdir()}
    return {path: entry for path, entry in entries.items() if "sass" in entry}


def test_blank_disassembly_in_the_cache_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GEMMPROF_CACHE", str(tmp_path))
    first = read_report(REPORT, units=False)[0].source
    assert any("LDC" in instruction.sass for instruction in first.instructions)
    good = sass_entries(tmp_path / "disassembly")
    assert len(good) == 1
    for path, entry in good.items():
        blank = {**entry, "sass": [""] * len(entry["sass"])}
        path.write_bytes(zlib.compress(json.dumps(blank).encode("ascii")))
    assert read_report(REPORT, units=False)[0].source == first
    assert sass_entries(tmp_path / "disassembly") == good
