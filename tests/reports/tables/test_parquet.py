"""A Parquet file is the old one or the new one, whenever whoever writes it is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gemmprof.base.output import is_leftover, remove_leftovers
from gemmprof.reports.tables.parquet import new_parquet, write_parquet

WRITER = """
import sys
from itertools import count
from pathlib import Path
import pyarrow as pa
from gemmprof.reports.tables.parquet import write_parquet
for at in count():
    rows = 2_000 + 500 * (at % 7)
    write_parquet(pa.table({"at": [at] * rows, "name": [f"row {at}"] * rows}), Path(sys.argv[1]))
    if not at:
        print("ready", flush=True)
"""

KILLS = int(os.environ.get("GEMMPROF_KILLS", "8"))


@pytest.mark.campaign
def test_a_writer_killed_at_random_leaves_a_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "table.parquet"
    write_parquet(pa.table({"at": [-1] * 10, "name": [""] * 10}), target)
    rng = random.Random(11)
    seen, left_behind = set(), 0
    for _ in range(KILLS):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.1))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        left_behind += any(map(is_leftover, tmp_path.iterdir()))
        (at,) = set(pq.read_table(target)["at"].to_pylist())
        assert len(pq.read_table(target)) == (10 if at == -1 else 2_000 + 500 * (at % 7))
        seen.add(at)
    assert len(seen) > 1, "nothing was ever written"
    assert left_behind, "no kill came while a file was being written: the test shows nothing"
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_an_error_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "table.parquet"
    table = pa.table({"at": [1, 2]})
    write_parquet(table, target)
    with pytest.raises(ZeroDivisionError), new_parquet(target, table.schema) as writer:
        writer.write_table(pa.table({"at": [3]}))
        _ = 1 / 0
    assert pq.read_table(target).equals(table)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_parquet(pa.table({"at": [1]}), tmp_path / "nowhere" / "table.parquet")
    remove_leftovers(tmp_path / "nowhere")
