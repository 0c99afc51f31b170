"""JSON that is read back: what does not fit is one error that names the place, or counts as missing in a cache."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from json_formats import generator

from gemmprof.base.documents import DocumentError, read_json
from gemmprof.base.errors import BuildError
from gemmprof.kernels.compiler import Compiled, read_note
from gemmprof.kernels.parameters import FILE_NAME, Tuned, load_tuned, save_tuned
from gemmprof.model import Problem
from gemmprof.model.answers import Outcome
from gemmprof.profiler.job import Job, Task
from gemmprof.profiler.tuning import Journal
from gemmprof.reports.dataset.manifest import MARK, DatasetError, load_contents
from gemmprof.reports.history.store import HistoryError, HistoryStore

WRONG: dict[str, Callable[[Any], Any]] = {
    "text": lambda value: "x" if not isinstance(value, str) else 7,
    "null": lambda _: None,
    "list": lambda _: [[]],
    "negative": lambda value: -5 if type(value) is int else {"a": 1},
}


def changes(document: Any) -> list[tuple[str, str]]:
    """Every change of one value of a document: the place, and the text of the changed document."""
    found = []

    def walk(value: Any, place: str, put: Callable[[Any], None]) -> None:
        for name, change in WRONG.items():
            wrong = change(value)
            if type(wrong) is not type(value) or name == "negative":
                put(wrong)
                found.append((f"{place}: {name}", json.dumps(document)))
                put(value)
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, item in list(items):
            walk(item, f"{place}.{key}", lambda new, key=key, value=value: value.__setitem__(key, new))

    whole = {"document": document}
    walk(document, "$", lambda new: whole.update(document=new))
    return [(place, text) for place, text in found if not place.startswith("$:")]


def test_the_place_of_an_error_is_named() -> None:
    with pytest.raises(DocumentError, match=r"Expected `int`, got `str` - at `\$\[...\]\[0\].problem.m`"):
        read_json('{"tasks": [{"stage": 1, "problem": {"m": "8", "n": 8, "k": 8}}]}', dict[str, list[Task]])
    for text in ("", "[" * 5000, "{", "\x00", '{"a": NaN}', b"\xff\xfe"):
        with pytest.raises(DocumentError):
            read_json(text, dict[str, float])


def test_a_job(tmp_path: Path) -> None:
    problem = Problem(8, 8, 8, "bfloat16")
    job = Job((Task(1, problem, time=True),), tmp_path, tmp_path / "e", tmp_path / "s", 3, ("ab",))
    path = tmp_path / "job.json"
    job.save(path)
    assert Job.load(path) == job
    for place, text in changes(json.loads(path.read_text())):
        path.write_text(text)
        try:
            assert Job.load(path) != job, place
        except DocumentError as error:
            assert "$" in str(error), place


def test_tuned_parameters(tmp_path: Path) -> None:
    winner = Tuned("autotuned", "sm_90a", "hash", {"BM": 64, "BN": 128}, ("64x64x64",), 1.25)
    path = save_tuned(tmp_path, winner)
    assert load_tuned(tmp_path) == {("autotuned", "sm_90a"): winner}
    other = asdict(winner) | {"name": "other"}
    for entry in (
        {"parameters": {"BM": "64$(touch x)"}},
        {"parameters": {"BM": -1}},
        {"parameters": {"BM": 1 << 20}},
        {"parameters": {"B M": 1}},
        {"parameters": {"BM\n": 1}},
        {"architecture": "sm_90; rm"},
        {"architecture": "sm_90\n"},
        {"name": "a b"},
        {"gain": "fast"},
        {"shapes": "64"},
        {"parameters": {"BM": True}},
    ):
        path.write_text(json.dumps([asdict(winner) | entry, other]))
        assert list(load_tuned(tmp_path)) == [("other", "sm_90a")], entry
    for text in ("{}", "[", "[1, null]", ""):
        (tmp_path / FILE_NAME).write_text(text)
        assert load_tuned(tmp_path) == {}


def test_a_journal_leaves_out_lines_that_no_search_wrote(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    outcome = Outcome({"BM": 64}, "timed", 0.5, registers=40)
    journal.add(outcome)
    with journal.path.open("a") as file:
        for text in ('{"parameters": {"BM": "x"}, "status": "timed"}', "[]", '{"status": "timed"}', '{"par'):
            file.write(text + "\n")
    journal.add(outcome)
    assert journal.read() == [outcome, outcome]


def test_a_note_of_a_build(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    kernel = {
        "name": "k", "architecture": "sm_90", "registers_per_thread": 40, "static_shared_memory": 0,
    }  # fmt: skip
    path.write_text(json.dumps({"seconds": 1, "kernels": [kernel], "command": ["nvcc"]}))
    assert read_note(path, Compiled).kernels[0].registers_per_thread == 40
    path.write_text(json.dumps({"seconds": 1, "kernels": [kernel | {"registers_per_thread": "40"}]}))
    with pytest.raises(BuildError, match="damaged") as caught:
        read_note(path, Compiled)
    assert "$.kernels[0].registers_per_thread" in str(caught.value) and "remove" in str(caught.value)


def test_a_manifest_of_a_data_set(tmp_path: Path) -> None:
    entry = {"size": 1, "changed_ns": 2, "part": "a.parquet", "launches": 3, "error": ""}
    good = {
        "format": "gemmprof.dataset-part/1", "version": "1", "explained": True, "generation": 1,
        "reports": {"r": entry}, "gone": ["s"],
    }  # fmt: skip
    mark = {"format": "gemmprof.dataset/2", "version": "1"}
    (tmp_path / MARK).write_text(json.dumps(mark))
    path = tmp_path / "manifests" / "a.json"
    path.parent.mkdir()
    path.write_text(json.dumps(good))
    assert load_contents(tmp_path).reports["r"].launches == 3
    for place, text in changes(good):
        if not place.endswith(": negative") or place == "$.reports.r.launches: negative":  # is read again
            path.write_text(text)
            with pytest.raises(DatasetError) as caught:
                load_contents(tmp_path)
            assert caught.value.exit_code == 2
    path.write_text(json.dumps(good | {"reports": {"r": entry | {"part": "../a.parquet"}}}))
    with pytest.raises(DatasetError, match="damaged"):
        load_contents(tmp_path)
    path.write_text(json.dumps(good))
    for _, text in changes(mark):
        (tmp_path / MARK).write_text(text)
        with pytest.raises(DatasetError):
            load_contents(tmp_path)


def test_the_marker_of_a_history(tmp_path: Path) -> None:
    store = tmp_path / "store"
    HistoryStore.open(store, create=True)
    HistoryStore.open(store)
    for text in ("[]", '{"format": 1}', "", "[" * 5000):
        (store / "history.json").write_text(text)
        with pytest.raises(HistoryError, match="cannot be read") as caught:
            HistoryStore.open(store)
        assert caught.value.exit_code == 2 and "the times beside it are whole" in str(caught.value)
    (store / "history.json").write_text('{"format": "gemmprof.history/9"}')
    with pytest.raises(HistoryError, match="another format"):
        HistoryStore.open(store)


def test_schema_and_page_are_current() -> None:
    """`python tools/build_formats.py` writes them."""
    formats = generator()
    assert not re.findall(r"^.*\|  \|$", formats.page(), re.MULTILINE), "a field without words"
    for path, text in formats.outputs().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run python tools/build_formats.py"
