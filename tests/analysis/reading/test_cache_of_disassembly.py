"""The cache of what the native reader says keeps no answer that says nothing."""

from __future__ import annotations

import gzip
import json
import os
import tarfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from kept import SAID
from profiles import launch
from recorded_data import DATA
from scale import few

from gemmprof.analysis.reading import lookup
from gemmprof.analysis.reading.frame import Module
from gemmprof.analysis.reading.report import read_report, units_of_report

REPORT = DATA / "flaws_cluster.ncu-rep.xz"


def sass_entries(folder: Path) -> dict[Path, dict[str, list[object]]]:
    entries = {path: json.loads(gzip.decompress(path.read_bytes())) for path in folder.iterdir()}
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
        path.write_bytes(gzip.compress(json.dumps(blank).encode("ascii")))
    assert read_report(REPORT, units=False)[0].source == first
    assert sass_entries(tmp_path / "disassembly") == good


def test_other_code_under_the_same_name_and_address_is_asked_for_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A kernel that was changed and compiled again is often loaded to the same place."""
    monkeypatch.setenv("GEMMPROF_CACHE", str(tmp_path))
    monkeypatch.setattr(lookup, "kernel_report", lambda *_: b"")
    asked: list[list[int]] = []

    def answer(self: lookup.Lookup, content: bytes, reader: object, *, pcs: list[int]) -> dict[str, object]:
        asked.append(pcs)
        return {"name": "made", "sass": [f"NOP {len(asked)} ;"], "lines": [None], "files": []}

    monkeypatch.setattr(lookup.Lookup, "_ask", answer)
    found = lookup.Lookup(SimpleNamespace(path="made.ncu-rep"))  # type: ignore[arg-type]

    def sass(digest: str, *pcs: int) -> str:
        module = Module({}, {}, (), digest)
        instructions = found._instructions(launch(), None, module, pcs[0], list(pcs))  # type: ignore[arg-type]
        return instructions[0].sass

    assert [sass("a", 16), sass("b", 16), sass("a", 16), sass("a", 32)] == [
        "NOP 1 ;",
        "NOP 2 ;",
        "NOP 1 ;",
        "NOP 3 ;",
    ]


def test_reports_that_were_collected_alike_on_one_kind_of_gpu_are_asked_about_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GEMMPROF_CACHE", str(tmp_path))
    entries = tmp_path / "disassembly"
    first = units_of_report(REPORT)
    assert len(list(entries.iterdir())) == 1
    monkeypatch.setattr(lookup, "NativeReader", None)  # nobody is asked again
    assert units_of_report(DATA / "flaws_divergence.ncu-rep.xz") == first
    monkeypatch.undo()
    monkeypatch.setenv("GEMMPROF_CACHE", str(tmp_path))
    other = units_of_report(DATA / "partial_two_metrics.ncu-rep.xz")
    assert len(list(entries.iterdir())) == 2 and other.keys() < first.keys()


def test_the_half_that_was_not_used_for_longest_goes_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GEMMPROF_CACHE", str(tmp_path))
    monkeypatch.setattr(lookup, "MAX_ENTRIES", 5)
    for number in range(5):
        lookup.store(f"entry{number}", {"number": number})
        os.utime(tmp_path / "disassembly" / f"entry{number}", (1000 + number, 1000 + number))
    assert lookup.load("entry0", dict[str, int]) == {"number": 0}
    lookup.store("entry5", {"number": 5})
    kept = [number for number in range(6) if lookup.load(f"entry{number}", dict[str, int])]
    assert kept == [0, 4, 5]


@cache
def said() -> dict[str, bytes]:
    with tarfile.open(SAID) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "report", few(sorted(DATA.glob("*.ncu-rep.xz")), [REPORT]), ids=lambda path: path.name
)
def test_what_was_said_is_what_the_library_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, report: Path
) -> None:
    """Tests that look at code need not ask the library of it (`kept.put_what_was_said`)."""
    monkeypatch.setenv("GEMMPROF_CACHE", str(tmp_path))
    read_report(report)
    says = {path.name: path.read_bytes() for path in (tmp_path / "disassembly").iterdir()}
    known = says.keys() & said().keys()
    if not known:
        pytest.skip("said by another version of ncu_report, or of other reports: tools/keep_said.py")
    assert {name: json.loads(gzip.decompress(says[name])) for name in known} == {
        name: json.loads(said()[name]) for name in known
    }
