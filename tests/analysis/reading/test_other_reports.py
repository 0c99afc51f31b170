"""Reports as other versions of ncu, other GPUs and unlucky runs write them: our own ones, with those fields changed."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import pytest
from recorded_data import DATA
from reports_in_bytes import content_of, keep_metrics, rewritten, set_metric

from gemmprof import metrics
from gemmprof.analysis.inputs.selection import expand
from gemmprof.analysis.kernel_analysis import analyse
from gemmprof.analysis.reading import line_table
from gemmprof.analysis.reading.report import read_report
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.session import load_session
from gemmprof.cli import main
from gemmprof.model import KernelProfile
from gemmprof.ncurep import ncu_messages_pb2 as messages

DURATION = "gpu__time_duration.sum"


def read(path: Path, content: bytes) -> tuple[KernelProfile, ...]:
    path.write_bytes(content)
    return read_report(path, source=False, units=False)


def not_profiled(launch: messages.KernelResult, names: list[str], *, grid: bool) -> None:
    """What ncu writes of a launch that failed: NaN in every counter, and mostly neither grid nor block."""
    found = [messages.Metric.FromString(data) for data in launch.metrics]
    del launch.metrics[:]
    for metric in found:
        name = names[metric.name]
        if name.startswith("launch__") and not grid:
            continue
        if "." in name and not name.startswith(("device__", "launch__", "profiler__")):
            metric.Clear()
            metric.name = names.index(name)
            metric.value.real = math.nan if ".peak_sustained" not in name else 4.0
        launch.metrics.append(metric.SerializeToString())
    if not grid:
        for size in (launch.grid, launch.block):
            size.x = size.y = size.z = 0


@pytest.mark.parametrize("grid", [False, True])
def test_a_launch_that_ncu_could_not_profile_loses_no_other_one(
    grid: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(launch: messages.KernelResult, names: list[str], position: int) -> None:
        if position == 1:
            not_profiled(launch, names, grid=grid)

    content = content_of("launches_same_kernel")
    path = tmp_path / "failed.ncu-rep"
    good, found = read(path, content), read(path, rewritten(content, change))
    assert [profile.profiled for profile in found] == [index != 1 for index in range(len(good))]
    assert not any(profile.doubts for profile in found)
    assert repr(found[0].metrics) == repr(good[0].metrics) and repr(found[2].metrics) == repr(good[2].metrics)
    assert math.isnan(float(found[1].metrics[DURATION]))
    for command in ("show", "explain", ""):
        assert main([*filter(None, [command]), str(path), "--launch", "1"]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert "ncu could not profile it" in out
        assert "not collected" not in out and "0 × 0" not in out and "nan" not in out
    assert main([str(path)]) == 0
    front = " ".join(capsys.readouterr().out.split())
    assert "ncu could not profile 1 launch." in front and "1 ncu could not profile it" in front
    assert main(["roofline", str(path)]) == 0
    assert capsys.readouterr().out.count("#4") == 1
    assert main(["report", str(path), "-o", str(tmp_path / "pages")]) == 0
    pages = [page.read_text() for page in (tmp_path / "pages").glob("**/*.html")]
    assert any("ncu could not profile it" in page for page in pages)


def test_a_report_that_is_written_anew_keeps_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no disassembly is kept: else a test sees another report than the one before it."""
    monkeypatch.setenv("GEMMPROF_CACHE", "off")
    content = content_of("programs/triton_set")
    recorded, written = tmp_path / "recorded.ncu-rep", tmp_path / "written.ncu-rep"
    recorded.write_bytes(content)
    written.write_bytes(rewritten(content, lambda *_: None))
    told = [profile.source for profile in read_report(recorded, units=False)]
    assert all(source.instructions for source in told)
    assert [profile.source for profile in read_report(written, units=False)] == told


def test_what_ncu_could_not_profile_took_no_time_that_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither 0 ns nor 0 % of the program, nor a grid of 0 x 0 x 0."""
    path = tmp_path / "failed.ncu-rep"
    content = content_of("programs/triton_set")
    path.write_bytes(content)
    (softmax,) = [one for one in load_session([path], listed=True).program.operators if one.name == "softmax"]

    def change(launch: messages.KernelResult, names: list[str], position: int) -> None:
        if position in softmax.members:
            not_profiled(launch, names, grid=False)

    path.write_bytes(rewritten(content, change))
    assert main(["show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "0 ns" not in shown
    assert main([str(path)]) == 0
    assert "0x0x0" not in capsys.readouterr().out and "0 × 0" not in shown
    assert main(["report", str(path), "-o", str(tmp_path / "pages")]) == 0
    index = (tmp_path / "pages" / "index.html").read_text()
    assert re.search(r'softmax</span><span class="n">–</span><span class="n">–</span>', index)
    assert "in all; ncu could not profile 1 launch" in index
    assert "0 ns" not in index and "0x0x0" not in index


def test_where_no_launch_has_a_time_none_is_the_longest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "failed.ncu-rep"
    path.write_bytes(
        rewritten(content_of("launches_same_kernel"), lambda *of: not_profiled(*of[:2], grid=True))
    )
    assert main(["show", str(path), "--all"]) == 0
    out = capsys.readouterr().out
    assert "the first of 2" in out and "longest" not in out


@pytest.mark.parametrize("stated", [True, False])
def test_a_grid_in_threads_is_read_in_blocks(stated: bool, tmp_path: Path) -> None:
    """Up to ncu 2020.2 the record of a launch holds grid × block; those of 2019 name no version."""

    def change(launch: messages.KernelResult, names: list[str], position: int) -> None:
        for axis in "xyz":
            size = (getattr(launch.grid, axis) or 1) * (getattr(launch.block, axis) or 1)
            setattr(launch.grid, axis, size)
        if not stated:
            drop = {
                names.index(n) for n in names if n.startswith("launch__grid") or n == "launch__thread_count"
            }
            kept = [data for data in launch.metrics if messages.Metric.FromString(data).name not in drop]
            del launch.metrics[:]
            launch.metrics.extend(kept)

    def of_2020(session: messages.Session) -> None:
        session.ClearField("command_line")
        kept = [version for version in session.versions if version.provider != "Nsight Compute Target"]
        del session.versions[:]
        session.versions.extend(kept)

    content = content_of("launches_same_kernel")
    good = read(tmp_path / "good.ncu-rep", content)
    found = read(tmp_path / "old.ncu-rep", rewritten(content, change, session=of_2020))
    assert any(profile.launch.threads_per_block > 1 for profile in good)
    assert [profile.launch.grid for profile in found] == [profile.launch.grid for profile in good]
    assert not any(profile.doubts for profile in found)


def test_of_a_metric_that_stands_twice_the_last_one_counts(tmp_path: Path) -> None:
    """As ncu_report reads it: nothing of the first one is left, its values by instruction included."""

    def change(launch: messages.KernelResult, names: list[str], position: int) -> None:
        set_metric(launch, names, DURATION, 1.0, beside=True)
        set_metric(launch, names, "inst_executed", 7.0, beside=True)
        set_metric(launch, names, "thread_inst_executed", None, {16: 3.0}, beside=True)

    content = rewritten(content_of("flaws_cluster"), change)
    (found,) = read(tmp_path / "twice.ncu-rep", content)
    assert found.metrics[DURATION] == 1.0 and found.metrics["inst_executed"] == 7.0
    assert "inst_executed" not in found.instances and "thread_inst_executed" not in found.metrics
    assert list(found.instances["thread_inst_executed"].items()) == [(16, 3.0)]
    assert not any("twice" in doubt for doubt in found.doubts)
    ncu_report = pytest.importorskip("ncu_report")
    action = ncu_report.load_report(str(tmp_path / "twice.ncu-rep")).range_by_idx(0).action_by_idx(0)
    assert action.metric_by_name(DURATION).value() == 1.0
    assert action.metric_by_name("inst_executed").num_instances() == 0


def test_what_ncu_subtracts_may_lie_below_zero(tmp_path: Path) -> None:
    def change(launch: messages.KernelResult, names: list[str], position: int) -> None:
        set_metric(launch, names, "lts__t_sectors_srcunit_tex_op_red.sum", -3384.0)

    content = rewritten(content_of("flaws_cluster"), change)
    (found,) = read(tmp_path / "below.ncu-rep", content)
    assert found.metrics["lts__t_sectors_srcunit_tex_op_red.sum"] == -3384.0 and found.doubts == ()


def test_stall_samples_outside_the_kernel_cost_no_column(tmp_path: Path) -> None:
    """The sampler meets a function that the kernel calls, which lies elsewhere, before it meets the kernel."""
    name = "smsp__pcsamp_warps_issue_stalled_wait"
    content = content_of("flaws_cluster")
    (good,) = read(tmp_path / "good.ncu-rep", content)
    samples = {int(key): float(count) for key, count in good.instances[name].items()}

    def change(launch: messages.KernelResult, names: list[str], position: int) -> None:
        set_metric(launch, names, name, 4 + sum(samples.values()), {0x1000: 4.0, **samples})

    path = tmp_path / "outside.ncu-rep"
    path.write_bytes(rewritten(content, change))
    assert main(["export", str(path), "-o", str(tmp_path / "tables"), "--format", "csv"]) == 0
    (table,) = (tmp_path / "tables").glob("instructions*.csv")
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert sum(float(row[name]) for row in rows) == 4 + sum(samples.values())


def test_a_process_without_a_number_is_read_with_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of 2019 number their process 0."""
    monkeypatch.setenv("GEMMPROF_CACHE", "off")
    (good,) = read_report(DATA / "flaws_cluster.ncu-rep.xz", units=False)
    path = tmp_path / "old.nsight-cuprof-report"
    path.write_bytes(rewritten(content_of("flaws_cluster"), lambda launch, names, position: None, process=0))
    (found,) = read_report(path, units=False)
    assert found.source.instructions == good.source.instructions and not found.source.unread
    assert expand([tmp_path]) == [path]  # a folder's reports are those of that name, too


def by_names_of_pascal(launch: messages.KernelResult, names: list[str], position: int) -> None:
    """The metrics of the section SpeedOfLight as Pascal has them."""
    wanted = {today: older for older, today in metrics.OLDER_NAMES.items() if "." not in older}
    for older in wanted.values():
        if older not in names:
            names.append(older)
    found = [messages.Metric.FromString(data) for data in launch.metrics]
    del launch.metrics[:]
    for metric in found:
        name = names[metric.name]
        if name in wanted:
            metric.name = names.index(wanted[name])
        if name in wanted or name.startswith(("device__", "launch__")):
            launch.metrics.append(metric.SerializeToString())


def test_names_of_pascal_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = content_of("flaws_cluster")
    path = tmp_path / "pascal.ncu-rep"
    (good,) = read(tmp_path / "good.ncu-rep", content)
    (found,) = read(path, rewritten(content, by_names_of_pascal))
    assert DURATION not in found.metrics and "gpu__time_duration" in found.metrics
    assert found.number(DURATION) == good.number(DURATION)
    light, known = analyse(found).get(SpeedOfLight), analyse(good).get(SpeedOfLight)
    assert light and known and light.sm_clock_hz == known.sm_clock_hz
    assert (light.duration_ns, light.sm_percent, light.l2_percent) == (
        known.duration_ns,
        known.sm_percent,
        known.l2_percent,
    )
    assert main(["show", str(path)]) == 0
    assert "under the profiler" in capsys.readouterr().out


@pytest.mark.parametrize(
    "asked", [("gpu__time_duration.sum",), ("gpu__time_duration.sum", "lts__t_sectors.sum")]
)
def test_what_was_asked_for_by_name_is_shown(
    asked: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(launch: messages.KernelResult, names: list[str], position: int) -> None:
        keep_metrics(launch, names, lambda name: name in asked or name.startswith(("device__", "launch__")))

    path = tmp_path / "metrics.ncu-rep"
    found = read(path, rewritten(content_of("names_templates"), change))
    others = [name for name in asked if name != DURATION and name in found[0].metrics]
    assert main(["show", str(path)]) == 0
    assert main(["report", str(path), "-o", str(tmp_path / "pages")]) == 0
    index = (tmp_path / "pages" / "index.html").read_text()
    for shown in (capsys.readouterr().out, index):
        assert shown.count("Not collected: ") == 1 and "which alone do not explain its time" not in shown
    assert main(["show", str(path), "--launch", "0"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in others)


def test_a_line_table_whose_rows_lie_far_apart_ends() -> None:
    rows = [line_table._Row(0, 1, 1, 0, 0), line_table._Row(1 << 62, 1, 1, 0, 0)]
    with pytest.raises(ValueError):  # which `inlined_calls` takes for a damaged table
        list(line_table._calls(rows, ["a.cu"], b"\0"))
