"""The tables of docs/fastest_hgemm.md are those that its benchmark makes of the numbers kept beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def test_tables_are_made_from_the_numbers():
    command = [sys.executable, ROOT / "tools" / "bench_hgemm.py", "--from-json", DOCS / "fastest_hgemm.json"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    document = (DOCS / "fastest_hgemm.md").read_text(encoding="utf-8")
    tables = [block.partition("\n")[2] for block in printed.strip().split("\n\n")]
    assert [table.count("\n") for table in tables] == [9, 34]
    for table in tables:
        assert table in document
