"""The documentation builds, and every link in it leads somewhere."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from recorded_data import ROOT

pytest.importorskip("mkdocs")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    importlib.import_module("build_docs").build(folder / "docs")
    return folder


@pytest.mark.campaign
def test_the_site_builds_and_every_link_leads_somewhere(built: Path) -> None:
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    settings = settings.replace("build/docs", str(built / "docs")).replace("build/site", str(built / "site"))
    settings = settings.replace("tools/docs_hooks.py", str(ROOT / "tools" / "docs_hooks.py"))
    (built / "mkdocs.yml").write_text(settings, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(built / "mkdocs.yml")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert (built / "site" / "start" / "cuda.html").is_file()


@pytest.mark.campaign
def test_tutorials_end_in_pages_of_recorded_reports(built: Path) -> None:
    for name in ("gelu", "softmax_triton", "gemm_cutlass", "transformer"):
        assert "NVIDIA H200" in (built / "docs" / "pages" / name / "index.html").read_text(encoding="utf-8")
    text = (built / "docs" / "start" / "cuda.md").read_text(encoding="utf-8")
    assert "Double precision: saves" in text and "gelu.cu:10" in text and "{{" not in text


@pytest.mark.campaign
def test_every_cause_has_a_page_and_every_command_its_options(built: Path) -> None:
    from gemmprof.analysis.explanation.causes import CAUSES
    from gemmprof.commands import COMMANDS

    assert {path.stem for path in (built / "docs" / "causes").glob("*.md")} == set(CAUSES)
    commands = (built / "docs" / "commands.md").read_text(encoding="utf-8")
    assert all(f"usage: gemmprof {name}" in commands for name in COMMANDS)
    fields = (built / "docs" / "json.md").read_text(encoding="utf-8")
    assert "| `kernels[].findings[].saves` | number |" in fields and "gemmprof.error/1" in fields


def code_samples() -> list[tuple[str, str]]:
    """Where each Python sample of the documentation stands, and its text."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        (f"{page.relative_to(ROOT)}:{number}", sample)
        for page in pages
        for number, sample in enumerate(
            re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        )
    ]


@pytest.mark.parametrize(("place", "sample"), code_samples())
def test_what_a_sample_imports_exists(place: str, sample: str) -> None:
    for node in ast.walk(ast.parse(sample)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gemmprof"):
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                known = hasattr(module, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}")
                assert known, f"{place}: {node.module}.{alias.name}"


@pytest.mark.campaign
def test_every_option_of_every_command_stands_on_a_page(built: Path) -> None:
    from gemmprof.cli import build_parser
    from gemmprof.commands import COMMANDS

    page = (built / "docs" / "commands.md").read_text(encoding="utf-8")
    missing = []
    for name in COMMANDS:
        parsers = [build_parser(name)]
        while parsers:
            parser = parsers.pop()
            for action in parser._actions:
                missing += [f"{name} {option}" for option in action.option_strings if option not in page]
                if isinstance(action.choices, dict):
                    parsers += [below for words, below in action.choices.items() if below is not parser]
    assert not missing


@pytest.mark.campaign
def test_the_site_asks_no_other_host_and_escapes_nothing(built: Path) -> None:
    pages = sorted((built / "site").rglob("*.html"))
    own = [page for page in pages if "pages" not in page.relative_to(built / "site").parts]
    for page in own:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(https?://[^\"' >]+)", text)
        assert not loaded, (page.name, loaded)
    assert "text|markdown" in (built / "site" / "explain.html").read_text(encoding="utf-8")


@pytest.mark.campaign
def test_the_search_works_in_a_page_opened_as_a_file(built: Path, browser: Any) -> None:
    browser.driver.get((built / "site" / "explain.html").as_uri())
    field = browser.driver.find_element("css selector", "input.md-search__input")
    field.click()
    field.send_keys("coalesced")
    for _ in range(100):
        found = browser.driver.find_elements("css selector", ".md-search-result__item")
        if found:
            break
        time.sleep(0.1)
    assert found
