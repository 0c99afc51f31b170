"""What is kept on disk: one directory, in which the cache of disassembly clears up after itself only."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmprof.analysis.reading import lookup as report_cache
from gemmprof.base.system import cache_directory, kept_folder


def test_off_is_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("GEMMPROF_CACHE", "off")
    assert cache_directory() == tmp_path / "gemmprof"
    assert kept_folder(report_cache.FOLDER) is None


def test_old_disassembly_makes_room_without_touching_tuned_stages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GEMMPROF_CACHE", str(tmp_path))
    monkeypatch.setattr(report_cache, "MAX_ENTRIES", 4)
    (tmp_path / "tuned.json").write_text("{}", encoding="utf-8")
    for number in range(12):
        report_cache.store(f"entry{number}", {"number": number})
    assert report_cache.load("entry11", dict[str, int]) == {"number": 11}
    folder = kept_folder(report_cache.FOLDER)
    assert folder is not None and len(list(folder.iterdir())) <= 4
    assert (tmp_path / "tuned.json").read_text(encoding="utf-8") == "{}"
