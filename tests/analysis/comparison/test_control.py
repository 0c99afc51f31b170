"""The noise of one's own machine: learnt from a control, kept, and what is compared with it."""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import in_process
import pytest
from recorded_data import DATA

from gemmprof.analysis.comparison.baseline import learn, read_control
from gemmprof.analysis.comparison.judgement import usual_noise
from gemmprof.analysis.comparison.records import KernelRecord, Origin, Times
from gemmprof.analysis.comparison.sides import Side
from gemmprof.base.errors import GemmprofError, UsageError


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return in_process.run(["gemmprof", *map(str, words)])


BASE = [DATA / "noise" / f"base_{number}.ncu-rep.xz" for number in (0, 1)]
MORE = DATA / "noise" / "more_020_0.ncu-rep.xz"


def control(noise: float, between: float, *, kernels: int = 20, processes: int = 3, seed: int = 1) -> Side:
    """Kernels of 100 µs whose launches and processes differ by so many standard deviations, in per cent."""
    dice = random.Random(seed)
    records = []
    for number in range(kernels):
        times = []
        for _ in range(processes):
            shift = dice.gauss(0, between / 100)
            times.append(Times(tuple(1e5 * math.exp(shift + dice.gauss(0, noise / 100)) for _ in range(12))))
        name = f"kernel_{number}(int)"
        records.append(
            KernelRecord(name, name, (1,), (32,), (name,), 36, tuple(times), Origin("NVIDIA H200", "none"))
        )
    return Side("made", tuple(records), processes=processes)


def test_a_noisier_machine_is_learnt_and_so_is_a_quieter() -> None:
    loud, usual, quiet = (learn(control(noise, 0.05)).noise for noise in (3.0, 0.5, 0.1))
    assert loud.middle > 3 * usual_noise().middle and loud.largest > usual_noise().largest
    assert usual.middle == pytest.approx(usual_noise().middle, rel=0.15)
    assert quiet.middle < 0.4 * usual_noise().middle and quiet.largest == usual_noise().largest


def test_processes_that_lie_apart_are_learnt_and_alarm_no_more() -> None:
    found = learn(control(0.1, 2.0))
    assert found.noise.between_floor > 3 * usual_noise().between_floor
    assert (found.compared, found.kernels, found.processes) == (60, 20, 3)
    assert found.alarms <= 4 and "60 comparisons of the control with itself" in found.words()


def test_one_process_is_no_control() -> None:
    with pytest.raises(UsageError, match="several reports") as refused:
        learn(control(0.5, 0.1, processes=1))
    assert "1 process" in refused.value.found


def test_recorded_reports_are_learnt_from_and_compared_with(tmp_path: Path) -> None:
    kept = tmp_path / "noise.json"
    learning = run("diff", "--learn-noise", kept, *BASE)
    assert learning.returncode == 0 and "0 false alarms in 35 comparisons" in learning.stdout
    assert read_control(kept).noise.middle == pytest.approx(usual_noise().middle, rel=0.2)
    document = json.loads(run("diff", BASE[0], MORE, "--noise", kept, "--json").stdout)
    assert document["notes"][0].startswith("Noise of this machine") and "35 kernels" in document["notes"][0]
    again = run("diff", "--learn-noise", kept, *BASE)
    assert again.returncode == 2 and "--force" in again.stderr


def test_noise_of_another_card_is_named(tmp_path: Path) -> None:
    kept = tmp_path / "noise.json"
    assert run("diff", "--learn-noise", kept, *BASE).returncode == 0
    kept.write_text(kept.read_text().replace("NVIDIA H200", "NVIDIA H100"))
    assert "learnt elsewhere: NVIDIA H100, and not NVIDIA H200" in run("diff", *BASE, "--noise", kept).stdout


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is kept of the noise of some reports."""
    kept = tmp_path_factory.mktemp("noise") / "noise.json"
    assert run("diff", "--learn-noise", kept, *BASE).returncode == 0
    return kept.read_text()


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"middle": 0', '"middle": -0'),
        lambda text: text.replace("gemmprof.noise/1", "gemmprof.show/1"),
        lambda text: text.replace('"factor": 0', '"factor": "x'),
        lambda text: re.sub('"middle": [^,]*', '"middle": 1e-320', text),
    ],
)
def test_a_damaged_file_is_named(change: Callable[[str], str], learnt: str, tmp_path: Path) -> None:
    kept = tmp_path / "noise.json"
    kept.write_text(change(learnt))
    with pytest.raises(GemmprofError, match="noise"):
        read_control(kept)
    found = run("diff", *BASE, "--noise", kept)
    assert found.returncode == 2 and "--learn-noise" in found.stderr


def test_a_control_is_not_a_comparison(tmp_path: Path) -> None:
    found = run("diff", "--learn-noise", tmp_path / "n.json", BASE[0], "--with", BASE[1])
    assert found.returncode == 2 and "several reports" in found.stderr
