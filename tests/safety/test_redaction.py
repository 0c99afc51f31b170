"""`--redact-source`: the text of source files is in nothing that a command shows or writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from recorded_data import DATA, ROOT

from gemmprof.analysis.reading.report import read_report
from gemmprof.cli import main

REPORT = str(DATA / "flaws_tensor.ncu-rep.xz")
GELU = [
    str(ROOT / "docs" / "examples" / "recorded" / f"{name}.ncu-rep.xz") for name in ("gelu", "gelu_fixed")
]


@pytest.fixture(scope="module")
def secrets() -> set[bytes]:
    """Lines of the reports' source files, long enough to be nobody else's, as a page or JSON may write them."""
    lines = {
        line.strip()
        for report in (REPORT, *GELU)
        for profile in read_report(report, units=False)
        for text in profile.source.files.values()
        for line in text.split("\n")
    }
    plain = {line for line in lines if len(line) > 24 and not set(line) & set("<>&\"'\\")}
    assert len(plain) > 20
    return {line.encode() for line in plain}


DOORS = {
    "report": ["report", REPORT, "-o", "out"],
    "single file": ["report", REPORT, "--single-file", "-o", "out.html"],
    "show": ["show", REPORT, "--all"],
    "show --json": ["show", REPORT, "--all", "--json"],
    "front": [REPORT, "#1"],
    "source": [REPORT, "#1", "--source"],
    "explain": ["explain", REPORT, "--all"],
    "explain --json": ["explain", REPORT, "--all", "--json"],
    "diff": ["diff", *GELU, "--details"],
    "diff html": ["diff", *GELU, "--format", "html", "-o", "out.html"],
    "diff json": ["diff", *GELU, "--json"],
    "diff sarif": ["diff", *GELU, "--format", "sarif"],
    "csv": ["export", REPORT, "--format", "csv", "-o", "out"],
    "speedscope": ["export", REPORT, "--format", "speedscope", "-o", "out.json"],
}  # fmt: skip
WITH_TEXT = {"report", "single file", "source", "diff html", "speedscope"}
"""Doors that show lines of source where nothing is redacted."""


def said(arguments: list[str], folder: Path, capfd: pytest.CaptureFixture[str]) -> bytes:
    """All that a command prints and writes."""
    before = Path.cwd()
    folder.mkdir()
    os.chdir(folder)
    try:
        assert main(arguments) == 0
    finally:
        os.chdir(before)
    printed = "".join(capfd.readouterr())
    return printed.encode() + b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("door", DOORS)
def test_no_door_shows_a_line_of_source(
    door: str, secrets: set[bytes], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = said([*DOORS[door], "--redact-source", "all"], tmp_path / "redacted", capfd)
    assert not [secret for secret in secrets if secret in found]
    if door in WITH_TEXT:
        assert b"[redacted]" in found
        told = said(DOORS[door], tmp_path / "told", capfd)
        assert [secret for secret in secrets if secret in told], "without the option the door shows them"
    assert "GEMMPROF_REDACT_SOURCE" not in os.environ


def test_an_expression_hides_the_files_that_it_finds(
    secrets: set[bytes], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hidden = said([*DOORS["source"], "--redact-source", r"tensor\.cu$"], tmp_path / "hidden", capfd)
    assert b"[redacted]" in hidden and not [secret for secret in secrets if secret in hidden]
    shown = said([*DOORS["source"], "--redact-source", r"\.hpp$"], tmp_path / "shown", capfd)
    assert [secret for secret in secrets if secret in shown]


@pytest.mark.parametrize(
    ("wanted", "told"), [("[", "no expression"), ("tensr", "there are"), ("(?=x)", "no expression")]
)
def test_what_would_hide_nothing_is_refused(
    wanted: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", REPORT, "-o", "unwritten", "--redact-source", wanted]) == 2
    assert told in capsys.readouterr().err and not Path("unwritten").exists()


def test_a_cluster_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", REPORT, "--redact-source", "all", "--cluster", "tcp://127.0.0.1:1"]) == 2
    assert "on this machine alone" in capsys.readouterr().err
