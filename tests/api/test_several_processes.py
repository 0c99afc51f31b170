"""Reports of several processes: one of torchrun under ncu, and a real report whose launches are dealt out to two."""

from __future__ import annotations

import sys
from pathlib import Path

import in_process
import pytest
from recorded_data import DATA
from reports_in_bytes import content_of

import gemmprof
from gemmprof.analysis.reading.report import ReportReader
from gemmprof.ncurep import ncu_frame
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.reports.documents.of_launches import ShowDocument
from gemmprof.reports.facts import facts, headline

RANKS = (4001, 4002)
NCCL = DATA / "processes" / "nccl.ncu-rep.xz"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = content_of("names_nvtx")

    def read(start: int, end: int) -> bytes:
        return content[start:end]

    _, position = ncu_frame.read_head(read, len(content))
    blocks = list(ncu_frame.blocks(read, position, len(content)))
    table = messages.StringTable(names=[name for block in blocks for name in block.strings])
    front = ncu_frame.framed(messages.BlockHeader(strings=table).SerializeToString())
    parts, place = [content[:position], front], 0
    for block in blocks:
        if block.session is not None:
            for rank in RANKS:
                process = messages.Process(id=rank, host="node", name="python")
                header = messages.BlockHeader(process=process, session=block.session)
                parts.append(ncu_frame.framed(header.SerializeToString()))
        for item in ncu_frame.items(read, block, len(content)):
            message = content[item.start : item.end]
            if item.kind == "source":
                parts += [ncu_frame.block_bytes([message], kind="source", process=rank) for rank in RANKS]
            if item.kind == "kernel":
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
    assert "2: 4001 on GPU 0, 4002 on GPU 0" in page


def test_families_hold_the_launches_of_all_of_them(report: Path) -> None:
    opened = gemmprof.open(report)
    assert sum(family.count for family in opened.families) == len(opened)
    whole = {launch.profile.family for launch in opened}
    assert len(opened.families) == len(whole), "a kernel of two ranks is one family"
    assert all(explanation.name for explanation in opened.explanations)


def test_one_process_is_not_worth_a_word() -> None:
    opened = gemmprof.open(DATA / "names_nvtx.ncu-rep.xz")
    assert "process" not in headline(opened.session)
    assert ShowDocument.of_session(opened.session).processes == ()


@pytest.fixture(scope="module")
def nccl() -> gemmprof.Report:
    """What `gemmprof profile -- torchrun` wrote of two ranks that use NCCL on two GPUs."""
    return gemmprof.open(NCCL)


def test_facts_that_ncu_tells_with_one_process_hold_for_all(nccl: gemmprof.Report) -> None:
    details = [launch.profile.session for launch in nccl]
    assert {one.process for one in details} == {2219, 2220}
    assert len({(one.created, one.command_line, tuple(one.versions.items())) for one in details}) == 1
    assert all("torchrun" in one.command_line and one.moment is not None for one in details)
    assert all(launch.profile.doubts == () for launch in nccl)
    second = gemmprof.open(NCCL, launch="3")
    assert "ncu 2025.3.1" in facts(second.session)
    assert second[0].profile.doubts == (), "the first launch that is read need not be of the first process"


@pytest.mark.parametrize("name", ["nccl", "nccl_count", "ranks_count"])
def test_nothing_is_doubted_in_what_ncu_wrote_of_several(name: str) -> None:
    with ReportReader(NCCL.with_name(f"{name}.ncu-rep.xz")) as reader:
        profiles = list(reader.profiles())
    assert len({profile.session.process for profile in profiles}) == 2
    assert {doubt for profile in profiles for doubt in profile.doubts} == set()


def test_each_process_has_its_code(nccl: gemmprof.Report) -> None:
    """References to code are counted by each process; only the addresses of the same code differ."""
    with ReportReader(NCCL) as reader:
        profiles = list(reader.profiles(source=True))
        digests = reader.code_digests(profiles)
    for first, second in zip(profiles[::2], profiles[1::2], strict=True):
        ours, theirs = ([line.sass for line in one.source.instructions] for one in (first, second))
        assert ours and all(ours) and len(ours) == len(theirs)
        same = sum(a == b for a, b in zip(ours, theirs, strict=True))
        assert 0.9 * len(ours) < same < len(ours), "all but the targets of jumps"
        assert digests[first.index] == digests[second.index]
    said = [launch.explanation for launch in nccl]
    found = [(*one.findings, *one.other_arithmetic) for one in said]
    # What saves hardly enough to be shown is shown of one of two launches whose times differ.
    causes = [[finding.cause for finding in mine if finding.saves > 0.05] for mine in found]
    assert causes[::2] == causes[1::2] and "tensor_cores_idle" in causes[2]


def test_a_launch_says_whose_it_is(nccl: gemmprof.Report, tmp_path: Path) -> None:
    page = nccl.write_html(tmp_path / "pages").read_text(encoding="utf-8")
    assert "2: 2219 on GPU 0, 2220 on GPU 1" in page
    assert page.count("2219<br>GPU&nbsp;0") == page.count("2220<br>GPU&nbsp;1") == 3
    (kernel,) = (tmp_path / "pages").glob("003-*.html")
    assert "launch 3, process 2220 on GPU 1." in kernel.read_text(encoding="utf-8")
    shown = in_process.run(
        [sys.executable, "-m", "gemmprof", "show", str(NCCL), "--launch", "3"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert "process 2220 on GPU 1, cuBLAS)" in shown.stdout and shown.stderr == ""
    ours = ShowDocument.of_session(nccl.session).processes
    assert [(one.process, one.gpu, [at.launch for at in one.launches]) for one in ours] == [
        (2219, 0, [0, 2, 4]),
        (2220, 1, [1, 3, 5]),
    ]


def test_the_launches_of_both_are_one_family_with_one_finding(nccl: gemmprof.Report) -> None:
    assert [family.count for family in nccl.families] == [2, 2, 2]
    assert all(family.spread is not None and family.spread < 1.02 for family in nccl.families)
    assert not any("nccl" in launch.profile.name for launch in nccl)
