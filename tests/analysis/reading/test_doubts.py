"""What contradicts itself in a report is refused or named, and nothing is named in a report that ncu wrote."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from mutants import Change, doubled_block, swapped_blocks
from recorded_data import DATA
from reports_in_bytes import blocks, content_of, fields_of, varint, varint_at
from scale import few

from gemmprof.analysis.reading.report import ReportReader, read_report
from gemmprof.base.errors import ReportError
from gemmprof.model import KernelProfile
from gemmprof.ncurep import ncu_frame

REPORTS = ("names_nvtx", "names_templates", "launches_same_kernel", "partial_basic", "modes_graph_nodes")


def test_nothing_is_doubted_in_reports_that_ncu_wrote(report_name: str) -> None:
    with ReportReader(DATA / f"{report_name}.ncu-rep.xz") as reader:
        for profile in reader.profiles():
            assert profile.doubts == ()


def values(profiles: tuple[KernelProfile, ...]) -> list[str]:
    """What was read, comparable although NaN is never equal to itself."""
    return [
        repr((p.name, p.launch, sorted(p.metrics.items()), dict(sorted(p.instances.items()))))
        for p in profiles
    ]


@pytest.mark.parametrize("name", few(REPORTS, ["names_nvtx", "modes_graph_nodes"]))
@pytest.mark.parametrize("change", [doubled_block, swapped_blocks])
def test_moved_and_doubled_blocks_are_seen_wherever_they_matter(
    name: str, change: Change, tmp_path: Path
) -> None:
    content = content_of(name)
    path = tmp_path / "changed.ncu-rep"
    path.write_bytes(content)
    good = values(read_report(path, source=False, units=False))
    seen = 0
    for number in range(25):
        path.write_bytes(change(random.Random(number), content))
        try:
            found = read_report(path, source=False, units=False)
        except ReportError:
            seen += 1
            continue
        doubted = any(profile.doubts for profile in found)
        assert doubted or values(found) == good, number
        seen += doubted
    assert seen > 3


def test_a_doubled_launch_is_seen_where_it_is_asked_for_alone(tmp_path: Path) -> None:
    """As a worker of a cluster does, which has some launches of a report."""
    content = content_of("names_nvtx")
    path = tmp_path / "changed.ncu-rep"
    for number in range(25):
        path.write_bytes(doubled_block(random.Random(number), content))
        with ReportReader(path) as reader:
            whole = [profile.doubts for profile in reader.profiles()]
            alone = [p.doubts for index in range(len(reader)) for p in reader.profiles(only={index})]
        assert alone == whole
        if any("twice" in doubt for doubts in whole for doubt in doubts):
            return
    raise AssertionError("no launch was doubled")


def launches_of(content: bytes) -> Iterator[int]:
    for number, part in enumerate(blocks(content)):
        size = struct.unpack_from("<I", part)[0] if number else 0
        if number and any(
            n == 2 and varint_at(part, 4 + s)[0] for n, _, _, s, _ in fields_of(part[4 : 4 + size])
        ):
            yield number


def test_a_launch_lost_with_its_own_code_before_it_is_seen(tmp_path: Path) -> None:
    """Each kernel of a training step has its code right before its first launch."""
    content = content_of("names_templates")
    parts = blocks(content)
    path = tmp_path / "cut.ncu-rep"
    first = next(launches_of(content))
    path.write_bytes(b"".join(parts[:first] + parts[first + 1 :]))
    with pytest.raises(ReportError):  # the table of names went with it
        read_report(path, source=False)
    # The end is missing from behind a source on.
    path.write_bytes(b"".join([*parts[: first + 1], parts[first - 1]]))
    (profile,) = read_report(path, source=False, units=False)
    assert "code that no launch uses" in " ".join(profile.doubts)


def test_lost_facts_of_the_session_are_named(tmp_path: Path) -> None:
    content = content_of("names_nvtx")
    path, named = tmp_path / "cut.ncu-rep", 0
    for number in range(1, len(blocks(content))):
        parts = blocks(content)
        if len(parts[number]) > 20_000:
            continue
        del parts[number]
        path.write_bytes(b"".join(parts))
        try:
            found = read_report(path, source=False, units=False)
        except ReportError:
            continue
        named += any("does not say" in doubt for doubt in found[0].doubts)
    assert named >= 6


def edited(content: bytes, metric: str, factor: float) -> bytes:
    """The report with the first value of a metric multiplied; one that is a count is changed by one."""
    number = varint(read_names(content).index(metric))
    needle = b"\x08" + number + b"\x12\x09\x19"
    changed = bytearray(content)
    if needle in content:
        at = content.index(needle) + len(needle)
        struct.pack_into("<d", changed, at, struct.unpack_from("<d", content, at)[0] * factor)
    else:
        found = re.search(re.escape(b"\x08" + number) + rb"\x12[\x02-\x0b]\x28", content)
        changed[found.end()] ^= 1
    return bytes(changed)


def read_names(content: bytes) -> list[str]:
    def read(start: int, end: int) -> bytes:
        return content[start:end]

    position = ncu_frame.read_head(read, len(content))[1]
    return [name for block in ncu_frame.blocks(read, position, len(content)) for name in block.strings]


@pytest.mark.parametrize(
    ("metric", "factor", "says"),
    [
        ("sm__cycles_active.avg", -1.0, "sm__cycles_active"),
        ("sm__cycles_active.avg", 1e6, "sm__cycles_active"),
        ("sm__cycles_active.avg", float("nan"), "sm__cycles_active"),
        ("inst_executed", 2.0, "not the sum of their values by instruction: inst_executed"),
    ],
)
def test_values_that_contradict_others_are_named(
    metric: str, factor: float, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "edited.ncu-rep"
    path.write_bytes(edited(content_of("flaws_cluster"), metric, factor))
    (profile,) = read_report(path, source=False, units=False)
    assert says in " ".join(profile.doubts)
    assert not profile.doubts[0].endswith(".")


def test_a_grid_that_contradicts_its_metric_is_named(tmp_path: Path) -> None:
    content = content_of("launches_same_kernel")
    # Two names of the table change places.
    for old, new in ((b"dim_x", b"dim_@"), (b"dim_y", b"dim_x"), (b"dim_@", b"dim_y")):
        content = content.replace(b"launch__grid_" + old, b"launch__grid_" + new)
    path = tmp_path / "edited.ncu-rep"
    path.write_bytes(content)
    found = read_report(path, source=False, units=False)
    assert any("launch__grid_dim_x" in " ".join(profile.doubts) for profile in found)
