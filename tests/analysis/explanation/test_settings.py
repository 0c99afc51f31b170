"""Settings of Triton that explanations name, and what trying them saved (tools/record_settings.py)."""

import importlib
import re
from types import ModuleType

import pytest
from recorded_data import ROOT


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool, imported from its folder."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("record_settings")


def test_the_table_is_of_what_was_recorded(settings: ModuleType) -> None:
    page = (ROOT / "docs" / "explain.md").read_text("utf-8")
    block = re.search(r"<!-- settings:.*?-->\n(.*?)\n<!-- /settings -->", page, re.DOTALL)
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in block[1].splitlines()[2:]]
    assert rows == settings.summary() and len(rows) >= 4


def test_the_loops_of_kernels_get_stages(settings: ModuleType) -> None:
    kernel = "@triton.jit\ndef kernel(x, n):\n    for at in range(0, n, 4):\n        x += at\n"
    kernel += "    for at in tl.range(n, loop_unroll_factor=2, num_stages=few):\n        x += at\n"
    source = f"{kernel}\n\ndef host(n):\n    for at in range(n):\n        pass\n"
    staged = settings.staged(source, 5)
    assert "    for at in tl.range(0, n, 4, num_stages=5):\n" in staged
    assert "    for at in tl.range(n, loop_unroll_factor=2, num_stages=5):\n" in staged
    assert "    for at in range(n):\n" in staged


@pytest.mark.parametrize(
    ("said", "setting"),
    [
        ("Try num_warps=2: what is reduced …", "num_warps=2"),
        ("Have those of the next 5 rounds under way: tl.range(..., num_stages=6) copies them", "num_stages=6"),
    ],
)  # fmt: skip
def test_what_is_told_to_set(settings: ModuleType, said: str, setting: str) -> None:
    found = settings.TOLD.search(said)
    assert found and setting in found.groups()
