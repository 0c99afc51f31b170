"""A few hundred damaged reports through the commands: refused or read, never a traceback, a crash or a hang.

`tools/fuzz_reports.py` does the same with as many thousands as one likes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from mutants import CHANGES, mutants
from recorded_data import ROOT
from reports_in_bytes import content_of

sys.path.insert(0, str(ROOT / "tools"))
import fuzz_reports

SEED = 20260801
COUNTS = {
    "names_nvtx": 68,
    "partial_basic": 34,
    "modes_graph": 34,
    "launches_same_kernel": 34,
    "modes_range": 17,
}


@pytest.mark.parametrize("name", COUNTS)
def test_damaged_reports_are_read_or_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "GEMMPROF_CACHE", str(tmp_path / "cache"))
    content = content_of(name)
    path, good = tmp_path / "mutant.ncu-rep", tmp_path / "good.ncu-rep"
    good.write_bytes(content)
    victim, codes = fuzz_reports.Victim(), set()
    commands = list(fuzz_reports.COMMANDS)
    try:
        for number, (kind, data) in enumerate(mutants(content, COUNTS[name], SEED)):
            path.write_bytes(data)
            answer, peak = victim.run(str(path), str(good), str(tmp_path), commands)
            for command, code, problem, seconds in answer:
                where = f"{name} {number} {kind} {command}"
                assert not problem, f"{where}: {problem}"
                assert code in (0, 1, 2), where
                assert seconds < fuzz_reports.SECONDS, where
                if kind in ("cut", "cut under compression"):
                    assert code == 2, where
                codes.add(code)
            assert peak < fuzz_reports.BYTES
    finally:
        victim.stop()
    assert {0, 2} <= codes
    assert set(CHANGES) >= {"flipped_bit", "cut", "doubled_block"}
