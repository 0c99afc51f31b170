"""Long work in a pipe says now and then how much is left."""

from __future__ import annotations

import pytest

from gemmprof.reports.terminal import progress_bars


def test_what_is_left_is_estimated_from_what_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr(progress_bars.time, "monotonic", lambda: now[0])
    plain = progress_bars.PlainProgress()
    plain.phase("search", 10)
    for step in range(10):
        now[0] += 4.0
        plain.done(f"step {step}")
    said = [line for line in capsys.readouterr().err.splitlines() if "left" in line]
    assert said == ["4 of 10, about 24 s left", "8 of 10, about 8 s left"]
    quiet = progress_bars.PlainProgress(quiet=True)
    quiet.phase("search", 10)
    now[0] += 100
    quiet.done("step")
    assert capsys.readouterr().err == ""
