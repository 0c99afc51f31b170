"""A report of several processes, as torchrun's under ncu: a real report whose launches are dealt out to two."""

from __future__ import annotations

from pathlib import Path

import pytest
from reports_in_bytes import content_of
from slow_ncu import parts_of

import gemmprof
from gemmprof import ncu_frame
from gemmprof import ncu_messages_pb2 as messages
from gemmprof.reports.terminal.overview import headline

RANKS = (4001, 4002)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = content_of("names_nvtx")

    def read(start: int, end: int) -> bytes:
        return content[start:end]

    front, _ = parts_of(content)
    _, position = ncu_frame.read_head(read, len(content))
    parts, place = [front], 0
    for block in ncu_frame.blocks(read, position, len(content)):
        if block.session is not None:
            for rank in RANKS:
                process = messages.Process(id=rank, host="node", name="python")
                header = messages.BlockHeader(process=process, session=block.session)
                parts.append(ncu_frame.framed(header.SerializeToString()))
        for item in ncu_frame.items(read, block, len(content)):
            if item.kind == "kernel":
                message = content[item.start : item.end]
                parts.append(ncu_frame.block_bytes([message], kind="kernel", process=RANKS[place % 2]))
                place += 1
    path = tmp_path_factory.mktemp("ranks") / "ranks.ncu-rep"
    path.write_bytes(b"".join(parts))
    return path


def test_it_says_how_many_and_which_is_whose(report: Path, tmp_path: Path) -> None:
    opened = gemmprof.open(report)
    assert "by 2 processes" in headline(opened.session)
    frame = opened.to_dataframe()
    assert str(frame["process"].dtype) == "Int64"
    assert set(frame["process"]) == set(RANKS)
    assert frame["process"].tolist()[:2] == list(RANKS), "in the order of profiling"
    page = opened.write_html(tmp_path / "pages").read_text(encoding="utf-8")
    assert "2: 4001, 4002" in page


def test_families_hold_the_launches_of_all_of_them(report: Path) -> None:
    opened = gemmprof.open(report)
    assert sum(family.count for family in opened.families) == len(opened)
    whole = {(launch.profile.name, launch.profile.nvtx) for launch in opened}
    assert len(opened.families) == len(whole), "a kernel of two ranks is one family"
    assert all(explanation.name for explanation in opened.explanations)


def test_one_process_is_not_worth_a_word() -> None:
    names = Path(__file__).parents[1] / "data" / "names_nvtx.ncu-rep.xz"
    assert "process" not in headline(gemmprof.open(names).session)
