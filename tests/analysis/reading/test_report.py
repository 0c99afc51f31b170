"""Our own reading of reports against NVIDIA's library, value by value, on every recorded report."""

from __future__ import annotations

import lzma
import math
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded_data import DATA, ROOT
from reports_in_bytes import content_of, rewritten, set_metric

from gemmprof import metrics as m
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.analysis.reading.samples import series_of
from gemmprof.model import KernelProfile
from gemmprof.ncurep import ncu_messages_pb2 as messages

NATIVE_VALUES = ROOT / "tests" / "helpers" / "native_values.py"
EVERY = {"train_100": 10}
"""Of a long report, one launch in so many is compared: both readers take a tenth of a second a kernel."""
NATIVE_SEVERITIES = {0: "none", 1: "ok", 2: "optimization", 3: "warning", 4: "error"}
NATIVE_SCOPES = {0: None, 1: "local", 2: "global"}


REPRESENTATIVES = ("modes_graph_nodes", "modes_range", "names_nvtx", "partial_two_metrics")
"""Every kind of value and block; the others in the campaign."""

Profiles = tuple[KernelProfile, ...]
Natives = list[dict[str, Any]]


def same(ours: Any, theirs: Any) -> bool:
    """Equal and of one type; a NaN equals a NaN."""
    if isinstance(ours, float) and isinstance(theirs, float) and math.isnan(ours):
        return math.isnan(theirs)
    return type(ours) is type(theirs) and bool(ours == theirs)


def check_launches_and_names_are_the_natives(ours: Profiles, natives: Natives) -> None:
    names = [(p.name, p.function_name, p.mangled_name) for p in ours]
    assert names == [(n["demangled"], n["function"], n["mangled"]) for n in natives]
    step = EVERY.get(Path(ours[0].report).name.removesuffix(".ncu-rep"), 1)
    assert [p.index for p in ours] == list(range(0, step * len(ours), step))


def check_every_scalar_is_the_natives(ours: Profiles, natives: Natives) -> None:
    for profile, native in zip(ours, natives, strict=True):
        stored = {**profile.metrics, **dict.fromkeys(profile.instances)}
        without_value = set(native["scalars"]) - set(stored)
        assert all(native["scalars"][name] is None for name in without_value)
        assert set(profile.metrics) <= set(native["scalars"])
        wrong = [n for n, value in profile.metrics.items() if not same(value, native["scalars"][n])]
        assert not wrong
        # Metrics that have instance values only are 0 to the library: a number that nobody measured. Those sampled over
        # time have the sum over their samples there.
        of_time = {n for n in profile.instances if n in profile.sampled or n.startswith("profiler__")}
        only_instances = set(profile.instances) - set(profile.metrics) - of_time
        assert all(native["scalars"][name] in (0, None) for name in only_instances)


def check_every_instance_value_is_the_natives(ours: Profiles, natives: Natives) -> None:
    for profile, native in zip(ours, natives, strict=True):
        assert set(profile.instances) == set(native["instances"])
        for name, (keys, values) in native["instances"].items():
            found = profile.instances[name]
            assert list(found.keys) == keys, name
            assert all(map(same, found.values, values)), name


def check_every_sample_is_the_natives(ours: Profiles, natives: Natives) -> None:
    for profile, native in zip(ours, natives, strict=True):
        if native["timeline"] is None:
            pytest.skip("this ncu_report has no timelines()")
        found = {series.metric: series for series in series_of(profile)}
        assert found.keys() == native["timeline"].keys()
        for name, (times, values) in native["timeline"].items():
            series = found[name]
            assert (series.stamps[:1].sum() + series.timeline_ns).tolist() == times, name
            assert all(map(same, series.values[series.kept].tolist(), values)), name
            assert len(series.timeline_ns) == len(values), name


def check_every_unit_is_the_natives(ours: Profiles, natives: Natives) -> None:
    for profile, native in zip(ours, natives, strict=True):
        names = [*profile.metrics, *profile.instances]
        assert {n: profile.units[n] for n in names} == {n: native["units"][n] for n in names}


def check_rules_are_the_natives(ours: Profiles, natives: Natives) -> None:
    for profile, native in zip(ours, natives, strict=True):
        theirs = []
        for rule in native["rules"]:
            message, speedup = rule["rule_message"], rule.get("speedup_estimation", {})
            if not message["message"] and not rule.get("result_tables"):
                continue
            # The library gives the columns of a table; ours are rows.
            tables = [
                (t["title"], t["headers"], [list(row) for row in zip(*t["data"], strict=True)])
                for t in rule.get("result_tables", ())
            ]
            theirs.append(
                (
                    rule["rule_identifier"],
                    rule["section_identifier"],
                    message["title"],
                    message["message"],
                    NATIVE_SEVERITIES[message["type"]],
                    speedup.get("speedup"),
                    NATIVE_SCOPES[speedup.get("type", 0)],
                    tables,
                )
            )
        found = [
            (
                rule.rule,
                rule.section,
                rule.title,
                rule.message,
                rule.severity,
                rule.estimated_speedup,
                rule.speedup_scope,
                [(t["title"], list(t["headers"]), [list(row) for row in t["data"]]) for t in rule.tables],
            )
            for rule in profile.rules
        ]
        assert found == theirs


def check_source_is_the_natives(ours: Profiles, natives: Natives) -> None:
    for profile, native in zip(ours, natives, strict=True):
        source = profile.source
        if profile.workload != "kernel":
            # Nothing is measured per instruction there, so no code is read.
            addresses = range(native["base"], native["base"] + 16 * len(native["sass"]))
            assert all(key not in addresses for found in profile.instances.values() for key in found.keys)
            assert (source.instructions, dict(source.files)) == ((), native["files"])
            continue
        assert source.function_address == native["base"]
        at = {instruction.address: instruction for instruction in source.instructions}
        for index, text in enumerate(native["sass"]):
            found = at.get(native["base"] + 16 * index)
            if found is None:  # behind the kernel's end, where the library goes on with the next function
                assert index * 16 >= len(source.instructions) * 16
                continue
            assert found.sass == text.strip()
            line = native["lines"][index]
            assert (found.file, found.line) == (line if line is not None else (None, None))
        assert dict(source.files) == native["files"]
        assert all(instruction.sass for instruction in source.instructions)


def check_nvtx_ranges_are_the_natives(ours: Profiles, natives: Natives) -> None:
    for profile, native in zip(ours, natives, strict=True):
        assert sorted(profile.nvtx) == sorted(native["nvtx"])


def native_values(path: Path, step: int = 1) -> Natives:
    """What the library says of each launch, or of one in ``step``."""
    answer = subprocess.run(
        [sys.executable, str(NATIVE_VALUES), str(path), str(step)], capture_output=True, check=True
    )
    found: Natives = pickle.loads(answer.stdout)
    return found


CHECKS: tuple[Callable[[Profiles, Natives], None], ...] = (
    check_launches_and_names_are_the_natives,
    check_every_scalar_is_the_natives,
    check_every_instance_value_is_the_natives,
    check_every_sample_is_the_natives,
    check_every_unit_is_the_natives,
    check_rules_are_the_natives,
    check_source_is_the_natives,
    check_nvtx_ranges_are_the_natives,
)


def test_everything_is_what_the_native_reader_says(
    report_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice, so that what comes out of the cache is checked, too."""
    monkeypatch.setenv("GEMMPROF_CACHE", str(tmp_path / "cache"))
    step = EVERY.get(report_name, 1)
    path = tmp_path / f"{report_name}.ncu-rep"
    path.write_bytes(lzma.decompress((DATA / f"{report_name}.ncu-rep.xz").read_bytes()))
    natives = native_values(path, step)
    for _ in range(2):
        with ReportReader(path) as reader:
            chosen = range(0, len(reader), step)
            ours = tuple(reader.profiles(source=True, units=True, only=chosen))
        for check in CHECKS:
            check(ours, natives)


@pytest.mark.parametrize(
    "name",
    [
        "h100/graph",
        *(pytest.param(n, marks=pytest.mark.campaign) for n in ("h200/stalls", "h200/phases", "h100/phases")),
    ],
)
def test_samples_of_kernels_and_graphs_whose_shape_is_known(name: str, tmp_path: Path) -> None:
    path = tmp_path / "phases.ncu-rep"
    path.write_bytes(lzma.decompress((DATA / "phases" / f"{name}.ncu-rep.xz").read_bytes()))
    with ReportReader(path) as reader:
        ours = tuple(reader.profiles())
    check_every_sample_is_the_natives(ours, native_values(path))
    for profile in ours:
        for series in series_of(profile):
            assert series.began is not None and series.ended is not None
            # A launch as long as ncu's own time of it: a graph's to the end of its last node.
            duration = profile.number(m.DURATION)
            if profile.workload == "kernel" and duration:
                assert series.ended - series.began == pytest.approx(duration, rel=0.2, abs=5000)
            elif profile.workload == "graph":
                assert series.ended - series.began > 200_000


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.campaign) for n in range(1, 7))])
def test_samples_of_a_gpu_that_others_use_too(tmp_path: Path, seed: int) -> None:
    """The GPU switches between contexts, as that of a desktop does: which samples count is the library's answer.

    Together with the recorded reports, more than a million samples.
    """
    chance = random.Random(seed)
    switches = m.CONTEXT_SWITCHES.format(0)

    def change(launch: messages.KernelResult, names: list[str], _: int) -> None:
        first = min(when for found in launch.metrics for when in stamps_of(found, names))
        moments = sorted(first + chance.randrange(-20_000, 1_000_000) for _ in range(chance.randrange(1, 90)))
        states = {moment: float(chance.random() < 0.6) for moment in moments}
        set_metric(launch, names, switches, 1.0, states, by_time=True)

    path = tmp_path / "shared.ncu-rep"
    path.write_bytes(rewritten(content_of("ladder_simple"), change))
    with ReportReader(path) as reader:
        ours = tuple(reader.profiles())
    check_every_sample_is_the_natives(ours, native_values(path))
    kept = [series.kept.mean() for profile in ours for series in series_of(profile)]
    assert len(kept) == 96
    assert min(kept) < 0.9


def stamps_of(metric: bytes, names: list[str]) -> list[int]:
    """The time stamps of a sampled metric; none of another one."""
    found = messages.Metric.FromString(metric)
    if found.keyed_by != 1 or names[found.name].startswith("profiler__"):
        return []
    return [when for when in found.elements.keys.whole if when]
