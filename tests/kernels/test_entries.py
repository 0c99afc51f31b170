"""Entries of the cache: many may make one at the same time, and who reads one is not disturbed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gemmprof.kernels.compiler import is_whole, new_entry


def test_many_make_one_entry_and_it_is_never_gone_once_it_is_there(tmp_path: Path) -> None:
    target = tmp_path / "entry"

    def make(_: int) -> bool:
        with new_entry(target) as folder:
            for name in ("object.o", "record.json"):
                (folder / name).write_bytes(b"x" * 100_000)
        return is_whole(target)

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(make, range(100)))
    assert [path.name for path in tmp_path.iterdir()] == ["entry"]


def test_a_damaged_entry_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "entry"
    for text in ("first", "second"):
        with new_entry(target) as folder:
            (folder / "file").write_text(text)
        assert is_whole(target)
        if text == "first":
            (target / "file").write_text("flipped")
            assert not is_whole(target)
    assert (target / "file").read_text() == "second"
