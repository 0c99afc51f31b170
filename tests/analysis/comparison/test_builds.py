"""The gate on builds, without a GPU: compiler logs and objects of two architectures."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from recorded_data import DATA

from gemmprof.analysis.comparison.builds import load_build
from gemmprof.analysis.occupancy.calculator import occupancy
from gemmprof.cli import main
from gemmprof.gpu.devices import cuobjdump_path

BUILDS = DATA / "builds"
OLD, NEW = str(BUILDS / "old.log"), str(BUILDS / "new.log")


@pytest.fixture
def objects(tmp_path: Path) -> tuple[str, str]:
    if cuobjdump_path() is None:
        pytest.skip("needs cuobjdump")
    paths = []
    for name in ("old", "new"):
        path = tmp_path / f"{name}.o"
        path.write_bytes(lzma.decompress((BUILDS / f"{name}.o.xz").read_bytes()))
        paths.append(str(path))
    return paths[0], paths[1]


def test_a_build_is_what_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "--build", OLD, OLD, "--fail-if", "registers > +0"]) == 0
    shown = capsys.readouterr()
    assert "12 kernels: 12 SAME" in shown.out and "12 of 12 kernels checked" in shown.err


def test_an_architecture_that_vanished_fails_without_any_condition(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["diff", "--build", OLD, NEW]) == 1
    shown = capsys.readouterr()
    assert "architecture sm_80 was built before and is missing" in shown.err
    assert "registers 31 → 23" in shown.out
    assert main(["diff", "--build", OLD, NEW, "--allow-gone"]) == 0


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("registers > +0", 1),
        ("registers > 30", 1),
        ("spill_stores > +0", 0),
        ("theoretical_occupancy < -1", 0),
        ("time > +3%", 0),
        ("no_such_figure > 1", 2),
    ],
)
def test_conditions_on_logs(condition: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    # Backwards: sm_80 is new, and a kernel takes more registers.
    assert main(["diff", "--build", NEW, OLD, "--fail-if", condition, "--allow-new"]) == code
    if code == 1:
        assert "registers" in capsys.readouterr().err


def test_objects_hold_the_mix_of_instructions(
    objects: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = objects
    # The kernel that spills.
    words = ["diff", "--build", old, new, "--allow-gone", "--json", "--fail-if"]
    assert main([*words, "instructions_local > 0"]) == 1
    found = json.loads(capsys.readouterr().out)
    changed = [item for item in found["kernels"] if item["changed"]]
    assert [item["name"] for item in changed] == ["calls(float*)"]
    assert changed[0]["verdict"] == "unclear" and changed[0]["time_change"] is None
    assert main([*words, "instructions_tensor > 0 or instructions_local > +0"]) == 0


def test_wrong_builds_are_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.log"
    empty.write_text("nothing to see\n")
    for arguments in ([OLD], [OLD, str(empty)], [OLD, str(tmp_path / "missing.log")], [OLD, NEW, NEW]):
        assert main(["diff", "--build", *arguments]) == 2
        assert "fix:" in capsys.readouterr().err or arguments[-1].endswith("missing.log")


@pytest.mark.parametrize("threads", [64, 1024])
def test_the_occupancy_of_a_built_kernel_is_the_calculator_s(threads: int) -> None:
    for record in load_build([OLD], threads).kernels:
        figures = {name: figure.middle for name, figure in record.metrics.items()}
        answer = occupancy(
            record.key[2],
            threads,
            int(figures["registers"]),
            int(figures["shared_memory"]),
            block_barriers=int(figures.get("barriers", 1)),
        )
        assert figures["theoretical_occupancy"] == pytest.approx(100 * answer.theoretical_occupancy)
