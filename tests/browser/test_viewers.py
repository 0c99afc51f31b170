"""Files for other viewers, opened by those viewers' own parsers.

speedscope: its released viewer (npm package ``speedscope``) in a browser; ``GEMMPROF_SPEEDSCOPE`` names its folder,
else a global installation is looked for. Perfetto: the message definitions of its Python package.
"""

from __future__ import annotations

import base64
import json
import lzma
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.unknown_fields import UnknownFieldSet
from recorded_data import DATA

from gemmprof import metrics
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.reading.samples import series_of
from gemmprof.base.printable import visible
from gemmprof.cli import main
from gemmprof.reports.tables.perfetto_pb2 import Trace


@pytest.fixture
def report(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / f"{request.param}.ncu-rep"
    path.write_bytes(lzma.decompress((DATA / f"{request.param}.ncu-rep.xz").read_bytes()))
    return path


def export(report: Path, kind: str, *options: str) -> Path:
    target = report.with_name(f"out.{kind}")
    assert main(["export", str(report), "--format", kind, "-o", str(target), *options]) == 0
    return target


@pytest.mark.parametrize("report", ["ladder_simple", "flaws_tensor"], indirect=True)
def test_flames_hold_every_sample_where_it_fell(report: Path) -> None:
    document = json.loads(export(report, "speedscope").read_text(encoding="utf-8"))
    frames = document["shared"]["frames"]
    profiles = {profile.index: profile for profile in read_report(report)}
    assert len(document["profiles"]) == len({profile.family for profile in profiles.values()})
    of_all: Counter[str] = Counter()
    for flame in document["profiles"]:
        assert sum(flame["weights"]) == flame["endValue"] and len(flame["weights"]) == len(flame["samples"])
        for stack, weight in zip(flame["samples"], flame["weights"], strict=True):
            names = [frames[index]["name"] for index in stack]
            assert len(stack) % 2 == 1 and names[0].endswith(".cu") and names[2].startswith(f"{names[0]}:")
            of_all[names[-1]] += weight
    told: Counter[str] = Counter()
    for profile in profiles.values():
        for reason, name in metrics.stall_samples(profile.instances).items():
            told[reason] += sum(int(value) for value in profile.instances[name].values)
    assert of_all == +told


@pytest.mark.parametrize("report", ["names_nvtx"], indirect=True)
def test_perfetto_reads_every_launch_in_its_ranges(report: Path) -> None:
    proto = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
        reason="Perfetto's definitions are not installed (pip install '.[test]')",
    )
    trace = proto.Trace.FromString(export(report, "perfetto").read_bytes())
    tracks = {
        packet.track_descriptor.uuid: packet.track_descriptor
        for packet in trace.packet
        if packet.HasField("track_descriptor")
    }
    open_slices: dict[int, list[str]] = {}
    seen: list[tuple[str, tuple[str, ...], int]] = []
    begun: dict[int, int] = {}
    for packet in trace.packet:
        # A field that Perfetto does not know would be dropped by it in silence.
        assert not any(
            len(UnknownFieldSet(part)) for part in (packet, packet.track_event, packet.track_descriptor)
        )
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        stack = open_slices.setdefault(event.track_uuid, [])
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append(event.name)
            begun[event.track_uuid] = packet.timestamp
        elif event.type == event.TYPE_SLICE_END:
            name = stack.pop()
            if tracks[event.track_uuid].name != "NVTX":
                ranges = next(
                    (tuple(found) for uuid, found in open_slices.items() if tracks[uuid].name == "NVTX"), ()
                )
                seen.append((name, ranges, packet.timestamp - begun[event.track_uuid]))
        else:
            assert tracks[event.track_uuid].counter.unit_name and event.double_counter_value >= 0
    assert not any(open_slices.values())
    profiles = read_report(report)
    assert [(ranges, time) for _, ranges, time in seen] == [
        (tuple(map(visible, profile.nvtx)), pytest.approx(profile.number(metrics.DURATION), abs=1))
        for profile in profiles
    ]
    assert [name for name, _, _ in seen] == [visible(profile.function_name) for profile in profiles]


@pytest.mark.parametrize("report", ["names_nvtx"], indirect=True)
def test_processes_of_two_reports_have_numbers_of_their_own(report: Path, tmp_path: Path) -> None:
    """Perfetto lays tracks of one process number into one process, whatever their names."""
    again = tmp_path / "again.ncu-rep"
    again.write_bytes(report.read_bytes())
    target = tmp_path / "both.perfetto"
    assert main(["export", str(report), str(again), "--format", "perfetto", "-o", str(target)]) == 0
    trace = Trace.FromString(target.read_bytes())
    found = [p.track_descriptor.process for p in trace.packet if p.track_descriptor.HasField("process")]
    assert len(found) == 2 == len({one.pid for one in found}), found
    assert len({one.process_name for one in found}) == 2


@pytest.mark.parametrize("report", ["flaws_tensor"], indirect=True)
def test_perfetto_reads_what_was_sampled_within_launches(report: Path) -> None:
    proto = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
        reason="Perfetto's definitions are not installed (pip install '.[test]')",
    )
    trace = proto.Trace.FromString(export(report, "perfetto").read_bytes())
    names = {
        p.track_descriptor.uuid: p.track_descriptor.name
        for p in trace.packet
        if p.HasField("track_descriptor")
    }
    read: dict[str, list[float]] = {}
    last: dict[str, int] = {}
    for packet in trace.packet:
        event = packet.track_event
        if packet.HasField("track_event") and event.type == event.TYPE_COUNTER:
            name = names[event.track_uuid]
            assert packet.timestamp >= last.get(name, 0), "a counter's samples come in their order"
            last[name] = packet.timestamp
            read.setdefault(name, []).append(event.double_counter_value)
    profiles = read_report(report)
    for series in series_of(profiles[0]):
        assert read[series.counter], series.metric
    # Blocks are launched once, at the beginning of a launch: none of what the sampler saw of it is missing.
    launched = [
        series.values.sum()
        for profile in profiles
        for series in series_of(profile)
        if series.counter == "gr__ctas_launched_realtime.sum"
    ]
    assert sum(read["gr__ctas_launched_realtime.sum"]) == sum(launched) > 0


def speedscope() -> Path:
    """The folder of speedscope's released viewer; skips the test without it."""
    named = os.environ.get("GEMMPROF_SPEEDSCOPE")
    folders = [Path(named)] if named else []
    if not named and (npm := shutil.which("npm")):
        found = subprocess.run([npm, "root", "-g"], check=False, capture_output=True, text=True, timeout=60)
        folders.append(Path(found.stdout.strip()) / "speedscope")
    for folder in folders:
        if (folder / "dist/release/index.html").is_file():
            return folder / "dist/release"
    pytest.skip(
        "speedscope's viewer is not here: npm install -g speedscope, or name its folder in GEMMPROF_SPEEDSCOPE"
    )


@pytest.mark.parametrize("report", ["flaws_tensor"], indirect=True)
def test_speedscope_opens_the_flames(report: Path, browser: Any, tmp_path: Path) -> None:
    release = speedscope()
    flames = export(report, "speedscope")
    document = json.loads(flames.read_text(encoding="utf-8"))
    # As its own command does: a script that hands the file over, named in the address.
    content = base64.b64encode(flames.read_bytes()).decode("ascii")
    script = tmp_path / "file.js"
    script.write_text(
        f"speedscope.loadFileFromBase64({json.dumps(flames.name)}, {json.dumps(content)})", "utf-8"
    )
    browser.open(release / "index.html", f"localProfilePath={script}")
    from selenium.webdriver.support.ui import WebDriverWait

    name = document["profiles"][0]["name"]
    WebDriverWait(browser.driver, 20).until(
        lambda _: name in browser.script("return document.body.innerText")
    )
    text = browser.script("return document.body.innerText")
    assert f"1/{len(document['profiles'])}" in text, text
    assert not browser.console_errors()
