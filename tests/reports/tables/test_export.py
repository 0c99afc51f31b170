"""The exported tables hold what the reports hold, in every format, and nothing half-written stays behind."""

from __future__ import annotations

import csv
import importlib
import io
import itertools
import json
import lzma
import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import in_process
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from kept import own_cache
from recorded_data import ROOT
from reports_in_bytes import blocks

from gemmprof import metrics as m
from gemmprof.analysis.reading.report import read_report, units_of_report
from gemmprof.analysis.session import load_session
from gemmprof.base.errors import ReportError, UsageError
from gemmprof.cli import main
from gemmprof.reports.tables import TABLES
from gemmprof.reports.tables.export import export_tables, joined, spool
from gemmprof.reports.tables.launches import Columns, long_table, with_units

DATA = ROOT / "tests" / "data"
FULL = DATA / "flaws_divergence.ncu-rep.xz"
BASIC = DATA / "names_nvtx.ncu-rep.xz"


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GEMMPROF_CACHE", str(own_cache(tmp_path_factory.mktemp("cache"))))
        yield


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], pa.Table]:
    """``tables("kernels")``: the table of two reports, one full and one basic."""
    folder = tmp_path_factory.mktemp("tables")
    exported = export_tables([FULL, BASIC], folder)
    assert [file.name for file in exported.files] == [f"{name}.parquet" for name in TABLES]
    assert exported.launches == 9 and not exported.failures
    assert sorted(entry.name for entry in folder.iterdir()) == sorted(f"{name}.parquet" for name in TABLES)
    return lambda name: pq.read_table(folder / f"{name}.parquet")


def test_kernels_are_the_launches(tables: Callable[[str], pa.Table]) -> None:
    rows = tables("kernels").to_pylist()
    profiles = [*read_report(FULL), *read_report(BASIC)]
    assert [(r["report"], r["launch"], r["name"], r["mangled"]) for r in rows] == [
        (p.report, p.index, p.name, p.mangled_name) for p in profiles
    ]
    for row, profile in zip(rows, profiles, strict=True):
        assert (row["grid_x"], row["grid_y"], row["grid_z"]) == profile.launch.grid
        assert (row["block_x"], row["block_y"], row["block_z"]) == profile.launch.block
        assert row["registers_per_thread"] == profile.launch.registers_per_thread
        assert row["duration_ns"] == profile.metrics[m.DURATION]
        assert tuple(json.loads(row["nvtx"] or "[]")) == profile.nvtx
    assert any(row["nvtx"] for row in rows)


def test_the_long_table_holds_every_scalar_and_its_unit(tables: Callable[[str], pa.Table]) -> None:
    found: dict[tuple[str, int], dict[str, Any]] = {}
    units = {}
    for row in tables("metrics").to_pylist():
        value = next((row[k] for k in ("text", "integer", "value") if row[k] is not None), None)
        found.setdefault((row["report"], row["launch"]), {})[row["metric"]] = value
        units[row["report"], row["metric"]] = row["unit"]
        if row["integer"] is not None:
            assert row["value"] == float(row["integer"])
    for path in (FULL, BASIC):
        for profile in read_report(path):
            ours = found[profile.report, profile.index]
            assert set(ours) == set(profile.metrics)
            for name, value in profile.metrics.items():
                assert ours[name] == value or (isinstance(value, float) and math.isnan(value))
                assert type(ours[name]) is type(value)
                assert units[profile.report, name] == profile.units[name]


def test_every_sample_over_time_is_there_and_no_sum_of_them(tables: Callable[[str], pa.Table]) -> None:
    samples = tables("samples")
    profiles = read_report(FULL)
    expected = {(p.index, n): p.instances[n] for p in profiles for n in p.sampled}
    assert len(samples) == sum(map(len, expected.values())) == 34_624
    found = samples.to_pandas()
    for (launch, metric), rows in found.groupby(["launch", "metric"], sort=False, observed=True):
        series = expected.pop((launch, metric))
        assert tuple(rows["value"]) == series.values
        # Without the first, which was taken before the sampler had a time.
        steps = rows["start_ns"].dropna().diff().dropna()
        assert list(steps) == [b - a for a, b in itertools.pairwise(series.keys[1:])]
        assert set(rows["counter"]) == {metric.split(".", 2)[2]}
    assert not expected
    blocks = found[found["counter"] == "gr__ctas_launched_realtime.sum"]
    # All blocks of a launch are launched within it; that counter of Hopper's counts lots of 32.
    within = blocks[(blocks["start_ns"] > -1_504) & (blocks["value"] > 0)].groupby("launch")["value"].sum()
    assert list(within) == [p.launch.blocks // 32 * 32 for p in profiles]
    assert set(blocks["unit"].astype(str)) == {"block"}
    # The sum over the samples is the value of no launch: nowhere.
    sampled = set(found["metric"].astype(str))
    assert len(sampled) == 32
    assert not sampled & set(tables("metrics")["metric"].to_pylist())
    assert not sampled & set(tables("metrics_wide").column_names)


def test_the_wide_table_has_nulls_for_what_was_not_collected(tables: Callable[[str], pa.Table]) -> None:
    table = tables("metrics_wide")
    profiles = [*read_report(FULL), *read_report(BASIC)]
    assert set(table.column_names) == {"report", "launch", "name", *(n for p in profiles for n in p.metrics)}
    for row, profile in zip(table.to_pylist(), profiles, strict=True):
        collected = {name for name, value in row.items() if value is not None}
        assert collected - {"report", "launch", "name"} == set(profile.metrics)
        assert row[m.DURATION] == profile.metrics[m.DURATION]


def test_instructions_hold_every_value_by_address(tables: Callable[[str], pa.Table]) -> None:
    rows = tables("instructions").to_pylist()
    assert {row["report"] for row in rows} == {str(FULL)}
    for profile in read_report(FULL):
        ours = {row["address"]: row for row in rows if row["launch"] == profile.index}
        assert list(ours) == [i.address for i in profile.source.instructions]
        for instruction in profile.source.instructions:
            row = ours[instruction.address]
            assert (row["sass"], row["file"], row["line"]) == (
                instruction.sass,
                instruction.file,
                instruction.line,
            )
            assert row["offset"] == instruction.address - profile.source.function_address
        executed = profile.instances[m.INSTRUCTIONS_BY_ADDRESS]
        assert {a: r[m.INSTRUCTIONS_BY_ADDRESS] for a, r in ours.items() if r[m.INSTRUCTIONS_BY_ADDRESS]} == {
            key: value for key, value in executed.items() if value
        }


def test_lines_sum_their_instructions(tables: Callable[[str], pa.Table]) -> None:
    lines, instructions = tables("lines").to_pylist(), tables("instructions").to_pylist()
    assert lines
    for line in lines:
        own = [
            row
            for row in instructions
            if all(row[k] == line[k] for k in ("report", "launch", "file", "line"))
        ]
        assert line["instructions"] == len(own)
        assert line[m.INSTRUCTIONS_BY_ADDRESS] == sum(row[m.INSTRUCTIONS_BY_ADDRESS] or 0 for row in own)
    assert not m.NOT_ADDITIVE_BY_ADDRESS & set(tables("lines").column_names)


@pytest.mark.parametrize("format_name", ["csv", "jsonl"])
def test_text_formats_hold_the_same(
    format_name: str, tables: Callable[[str], pa.Table], tmp_path: Path
) -> None:
    export_tables([FULL, BASIC], tmp_path, format=format_name)
    for name in ("kernels", "metrics", "lines"):
        expected = tables(name).to_pylist()
        text = (tmp_path / f"{name}.{format_name}").read_text(encoding="utf-8")
        if format_name == "jsonl":
            rows = [json.loads(line) for line in text.splitlines()]
            for row, other in zip(rows, expected, strict=True):
                there = {key: value for key, value in other.items() if value is not None}
                assert row.keys() == there.keys()
                assert all(row[key] == value or str(value) == row[key] for key, value in there.items())
        else:
            parsed = list(csv.DictReader(text.splitlines(keepends=True)))
            assert len(parsed) == len(expected)
            assert [row["launch"] for row in parsed] == [str(row["launch"]) for row in expected]
            if name == "kernels":
                assert [row["name"] for row in parsed] == [row["name"] for row in expected]


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """tools/bench_read.py, which makes long reports."""
    return importlib.import_module("bench_read")


def test_damage_in_the_second_half_refuses_the_report(bench: ModuleType, tmp_path: Path) -> None:
    content = bytearray(b"".join(bench.repeated(lzma.decompress(BASIC.read_bytes()), 400)))
    content[-90_000:-89_000] = b"\xff" * 1000  # within the metrics of a launch
    bad = tmp_path / "bad.ncu-rep"
    bad.write_bytes(content)
    with pytest.raises(ReportError, match=r"bad\.ncu-rep is damaged"):
        export_tables([bad], tmp_path / "out")
    exported = export_tables([bad, BASIC], tmp_path / "both")
    assert [bad.name in failure.message for failure in exported.failures] == [True]
    assert set(pq.read_table(tmp_path / "both" / "kernels.parquet")["report"].to_pylist()) == {str(BASIC)}


@pytest.mark.campaign
def test_memory_does_not_grow_with_the_launches(bench: ModuleType, tmp_path: Path) -> None:
    peaks = []
    for launches in (350, 1050):
        path = tmp_path / f"{launches}.ncu-rep"
        with path.open("wb") as file:
            file.writelines(bench.repeated(lzma.decompress(BASIC.read_bytes()), launches))
        found = bench.measure(
            "export", bench.EXPORT, str(path), str(tmp_path / "out"), cache=tmp_path / "cache"
        )
        assert found.output == str(launches)
        peaks.append(found.peaks_mb[0])
    assert max(peaks) < 400
    assert peaks[1] < peaks[0] + 80


def test_wrong_calls_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="table format"):
        export_tables([BASIC], tmp_path, format="xlsx")
    with pytest.raises(UsageError, match="is no table"):
        export_tables([BASIC], tmp_path, tables=["kernels", "rows"])
    with pytest.raises(UsageError, match="no report"):
        export_tables([], tmp_path)


def test_the_command_writes_only_what_is_asked_and_replaces_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gemmprof", "export", str(BASIC), "-o", str(tmp_path / "t")]
    command += ["--format", "csv", "--table", "kernels"]
    environment = {**os.environ, "GEMMPROF_CACHE": "off"}
    first = in_process.run(command, capture_output=True, text=True, check=False, env=environment)
    assert first.returncode == 0, first.stderr
    assert [entry.name for entry in (tmp_path / "t").iterdir()] == ["kernels.csv"]
    assert f"Wrote {tmp_path / 't' / 'kernels.csv'}" in first.stderr
    second = in_process.run(command, capture_output=True, text=True, check=False, env=environment)
    assert second.returncode == 2 and "--force" in second.stderr
    third = in_process.run(
        [*command, "--force"], capture_output=True, text=True, check=False, env=environment
    )
    assert third.returncode == 0


SOURCE_COLUMNS = {
    "# Samples": "smsp__pcsamp_sample_count",
    "Instructions Executed": m.INSTRUCTIONS_BY_ADDRESS,
    "L1 Tag Requests Global": m.GLOBAL_TAGS_BY_ADDRESS,
    "L2 Theoretical Sectors Global": m.GLOBAL_SECTORS_BY_ADDRESS,
    "Divergent Branches": "smsp__branch_targets_threads_divergent",
    "Avg. Threads Executed": "derived__avg_thread_executed",
}


def test_where_ncu_prints_0_stands_0(tmp_path: Path) -> None:
    """Null means not collected; ncu stores nothing for instructions that a counter does not concern."""
    report = DATA / "flaws_divergence.ncu-rep.xz"
    export_tables([report], tmp_path, tables=["instructions"])
    table = pq.read_table(tmp_path / "instructions.parquet")
    first = table.filter(pc.equal(table["launch"], 0))
    printed = lzma.decompress((DATA / "flaws_divergence.source.csv.xz").read_bytes()).decode()
    rows = list(csv.reader(io.StringIO(printed)))
    titles = rows[1]
    body = rows[2 : 2 + first.num_rows]
    assert [row[0] for row in body] == [f"{address:#x}" for address in first["address"].to_pylist()]
    zeros = 0
    for title, name in SOURCE_COLUMNS.items():
        place = titles.index(title)
        found = first[name].to_pylist()
        assert found == [float(row[place]) for row in body], title
        zeros += found.count(0)
    assert zeros > 500
    # What kind of access it is, only an access has.
    assert [value is None for value in first[m.ACCESS_TYPE_BY_ADDRESS].to_pylist()] == [
        row[titles.index("Access Operation")] == "-" for row in body
    ]


def test_averages_are_not_added_up(tmp_path: Path) -> None:
    export_tables([DATA / "flaws_divergence.ncu-rep.xz"], tmp_path, tables=["lines"])
    names = pq.read_schema(tmp_path / "lines.parquet").names
    assert m.INSTRUCTIONS_BY_ADDRESS in names
    assert not [name for name in names if "avg" in name or name in m.CODES_BY_ADDRESS]


def test_whole_numbers_stay_whole_in_pandas(tmp_path: Path) -> None:
    export_tables([BASIC], tmp_path)
    metrics = pd.read_parquet(tmp_path / "metrics.parquet")
    assert str(metrics["integer"].dtype) == "UInt64"
    assert metrics["integer"].isna().any() and metrics["integer"].notna().any()
    kernels = pd.read_parquet(tmp_path / "kernels.parquet")
    assert str(kernels["registers_per_thread"].dtype) == "UInt64"


@pytest.mark.parametrize("tables", [("kernels",), ("metrics",)])
def test_what_other_commands_refuse_is_not_exported(tables: tuple[str, ...], tmp_path: Path) -> None:
    """Damage in what no table shows: ncu's advice."""
    content = lzma.decompress(BASIC.read_bytes())
    at = content.rindex(b"SOLBottleneck")
    bad = tmp_path / "bad.ncu-rep"
    bad.write_bytes(content[:at] + b"\xff" + content[at + 1 :])
    with pytest.raises(ReportError, match="damaged"):
        load_session([bad])
    with pytest.raises(ReportError, match="damaged"):
        export_tables([bad], tmp_path / "out", tables=tables)
    assert not (tmp_path / "out").exists()


def test_doubts_are_exported_beside_the_launch(tmp_path: Path) -> None:
    content = lzma.decompress(BASIC.read_bytes())
    *parts, last = blocks(content)
    moved = tmp_path / "moved.ncu-rep"
    moved.write_bytes(b"".join([*parts[:-1], last, parts[-1]]))
    export_tables([moved], tmp_path / "out", tables=["kernels"])
    doubts = pq.read_table(tmp_path / "out" / "kernels.parquet")["doubts"].to_pylist()
    assert "moved or doubled" in doubts[-1] and doubts[0] is None


def test_counters_stay_whole_where_another_report_lacks_them(tmp_path: Path) -> None:
    # A range has no stream: its slice knows nothing of that column's type.
    export_tables([DATA / "modes_range.ncu-rep.xz", BASIC], tmp_path, tables=("kernels",))
    kernels = pq.read_table(tmp_path / "kernels.parquet")
    assert kernels.schema.field("stream").type == pa.uint64()
    assert kernels["stream"].null_count and kernels["stream"].drop_null().to_pylist()


def test_a_large_counter_keeps_every_digit_beside_slices_without_it(tmp_path: Path) -> None:
    slices = []
    for number, values in enumerate(([None, None], [2**64 - 1, None], [None])):
        columns = Columns({})
        columns.extend(len(values), {"count": values, "never": [None] * len(values)})
        slices.append(spool(columns.take(), tmp_path / f"{number}.arrow"))
    joined(slices, tmp_path / "t.parquet", "parquet")
    found = pq.read_table(tmp_path / "t.parquet")
    assert found["count"].to_pylist() == [None, None, 2**64 - 1, None, None]
    assert found.schema.field("never").type == pa.float64() and found["never"].null_count == 5


def test_report_and_launch_join_all_tables(tables: Callable[[str], pa.Table]) -> None:
    kernels = tables("kernels").select(["report", "launch", "grid_x"])
    for name in TABLES[1:]:
        table = tables(name).unify_dictionaries()
        joined = table.select(["report", "launch"]).join(kernels, ["report", "launch"])
        assert len(joined) == len(table) and not joined["grid_x"].null_count


def test_units_are_those_of_each_report() -> None:
    rows = [(0, "kernel", {"duration": 1.0})]
    units = {"known": {"duration": "ns"}, "unknown": {"duration": ""}}
    shown = {
        name: with_units(long_table(name, rows), units)["unit"].to_pylist() for name in (*units, "other")
    }
    assert shown == {"known": ["ns"], "unknown": [""], "other": [""]}


def test_reports_of_which_ncu_says_other_units_keep_theirs(tmp_path: Path) -> None:
    reports = [DATA / "flaws_async_copy.ncu-rep.xz", DATA / "launches_same_kernel.ncu-rep.xz"]
    export_tables(reports, tmp_path, tables=("metrics",))
    found = pq.read_table(tmp_path / "metrics.parquet").to_pandas()
    told = {}
    for report in reports:
        rows = found[found["report"] == str(report)]
        told[report] = dict(zip(rows["metric"], rows["unit"], strict=True))
        known = units_of_report(report)
        assert told[report] == {name: known[name] for name in told[report]}
    one, other = told.values()
    assert any(one[name] != other[name] for name in one.keys() & other.keys())


def test_a_row_of_the_long_table_holds_its_value_in_the_column_of_its_kind() -> None:
    rows = [(3, "kernel", {"ratio": 0.5, "count": 2**63 + 1, "name": "sm_90"}), (4, "other", {"count": 7})]
    table = long_table("r", rows).select(["launch", "metric", "value", "integer", "text"])
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (3, "ratio", 0.5, None, None),
        (3, "count", float(2**63), 2**63 + 1, None),
        (3, "name", None, None, "sm_90"),
        (4, "count", 7.0, 7, None),
    ]


def test_what_could_not_be_read_beside_others_is_a_finding(tmp_path: Path) -> None:
    torn = tmp_path / "torn.ncu-rep"
    torn.write_bytes(lzma.decompress(BASIC.read_bytes())[:-5])
    words = ["export", str(torn), str(BASIC), "--table", "kernels", "-o"]
    assert main([*words, str(tmp_path / "both")]) == 2
    assert pq.read_table(tmp_path / "both" / "kernels.parquet")["report"].unique().to_pylist() == [str(BASIC)]
    assert main(["export", *words[2:], str(tmp_path / "one")]) == 0
