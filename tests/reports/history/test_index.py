"""What a search of all series reads is what its points say, however the records came in and were put together."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from scale import few, inputs

from gemmprof.analysis.history.changes import Origin, Point, changes, steps_in
from gemmprof.reports.history import store as history_store
from gemmprof.reports.history.store import REPLACES, HistoryStore, read_points

START = datetime(2026, 1, 1, tzinfo=UTC)


def record(run: int, kernels: int, rng: np.random.Generator) -> list[Point]:
    """One run of kernels, of which every seventh became 20 % slower in run 25, with other code."""
    origin = Origin(START + timedelta(days=run), commit=f"c{run}")
    points = []
    for number in range(kernels):
        stepped = number % 7 == 3 and run >= 25
        time = 1e4 * (number + 1) * (1.2 if stepped else 1.0) * float(np.exp(rng.normal(0, 0.005)))
        kind = "profiled" if number % 2 else "timed"
        points.append(
            Point(f"kernel {number}", "1x1x1", "H100", kind, origin, time, time, time, 1,
                  code="b" if stepped else "a", counters={"dram_read": 5.0 + stepped})
        )  # fmt: skip
    return points


@pytest.fixture(
    scope="module",
    params=few(["in order", "the past later", "one file each", "many bins"], ["the past later", "many bins"]),
)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HistoryStore]:
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "many bins":
            for name, rows in (("BIN_ROWS", 100), ("ROW_GROUP", 64)):
                patched.setattr(history_store, name, rows)
        yield recorded(request.param, tmp_path_factory.mktemp("history") / "h")


def recorded(order: str, folder: Path) -> HistoryStore:
    store = HistoryStore.open(folder, create=True)
    rng = np.random.default_rng(2)
    runs = list(range(40))
    if order == "the past later":
        runs = [*range(0, 40, 2), *range(1, 40, 2)]
    for place, run in enumerate(runs):
        # Some kernels appear late: the newest records know series that no compacted file does.
        store.add(record(run, 30 if place < 37 else 33, rng))
        if order == "one file each" and place in (19, 35):
            assert store.compact(at_least=1)
    return store


def by_kernel(store: HistoryStore) -> dict[str, list[Point]]:
    return {key[0]: points for key, points in store.points(store.series()).items()}


def test_series_are_those_of_the_points(store: HistoryStore) -> None:
    assert list((store.folder / "records").glob("compact-*"))
    points, series = by_kernel(store), {one.kernel: one for one in store.series()}
    assert series.keys() == points.keys()
    for number, (name, expected) in enumerate(points.items()):
        assert len(expected) == (40 if int(name.split()[1]) < 30 else 3)
        if number % inputs(4, 1):
            continue
        assert store.series(f"^{name}$") == [series[name]]
        assert store.points([series[name]]) == {expected[0].series: expected}
        found = series[name]
        assert found.key == expected[0].series
        assert found.times_ns.tolist() == [point.time_ns for point in expected]
        assert (found.count, found.last_ns) == (len(expected), expected[-1].time_ns)
        assert (found.first, found.last) == (
            expected[0].origin.recorded_at,
            expected[-1].origin.recorded_at,
        )


def test_the_times_alone_have_the_steps_of_the_points(store: HistoryStore) -> None:
    points = by_kernel(store)
    steps = {one.kernel: steps_in(one.times_ns, one.kind) for one in store.series()}
    assert {name for name, found in steps.items() if found} == {f"kernel {n}" for n in (3, 10, 17, 24)}
    for name, found in steps.items():
        assert tuple(change.step for change in changes(points[name])) == found
        made = changes(points[name], found)
        assert made == changes(points[name])
        assert all(change.causes == ("code", "counters") for change in made)


def test_a_store_of_an_earlier_version_answers_alike(store: HistoryStore, tmp_path: Path) -> None:
    """It kept series with a step behind the others, no bounds of a row group, and an index beside the file."""
    older = HistoryStore.open(shutil.copytree(store.folder, tmp_path / "older"))
    for file in (older.folder / "records").glob("compact-*"):
        replaces = {REPLACES: pq.read_schema(file).metadata[REPLACES]}
        rows = read_points([file]).replace_schema_metadata(replaces)
        behind = pc.is_in(rows["kernel"].cast("string"), pa.array(["kernel 3", "kernel 10"]))
        both = pa.concat_tables([rows.filter(pc.invert(behind)), rows.filter(behind)])
        pq.write_table(
            both.cast(history_store.schema_of(both.column_names, replaces)), file, write_statistics=False
        )
    (older.folder / "series").mkdir()
    assert older.series() == store.series()
    assert by_kernel(older) == by_kernel(store)
    assert older.compact(at_least=1) and older.series() == store.series()
