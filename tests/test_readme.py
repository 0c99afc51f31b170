"""README.md shows what the recorded run and the list of commands say."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
from scale import few

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("whole", few([False, True], [False]), ids=["quick", "whole"])
def test_generated_parts_are_up_to_date(
    whole: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In `make test` what explains no kernel of the recorded run: that takes longest."""
    monkeypatch.setattr(sys, "argv", ["update_readme.py", "--check", *(() if whole else ("--quick",))])
    assert importlib.import_module("update_readme").main() == 0, capsys.readouterr().err


def test_every_file_that_the_readme_names_is_there() -> None:

    named = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
