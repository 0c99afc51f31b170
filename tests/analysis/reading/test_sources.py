"""The functions of a cubin, and what a launch says of its GPU, from bytes and values made by hand."""

from __future__ import annotations

import dataclasses
import struct
from typing import cast

import pytest
from profiles import BASE, launch
from recorded_data import DATA

from gemmprof import metrics as m
from gemmprof.analysis.reading.frame import Frame, Module, addresses, open_frame, read_module
from gemmprof.analysis.reading.line_table import line_table_of
from gemmprof.analysis.reading.messages import ResultDecoder
from gemmprof.analysis.reading.report import ReportReader, _in_order
from gemmprof.analysis.reading.values import InstanceTable
from gemmprof.gpu.cubins import code_spans
from gemmprof.model import Instances, SessionDetails
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.ncu_frame import Item

NAMES = b"\0.shstrtab\0.text._Z1fv\0.text._Z1gi\0.debug\0"
_HEADER, _SECTION = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")


def cubin(sections: int = 5) -> bytes:
    """An ELF with two functions; with 65,280 sections and more, their number stands in the first of them."""
    code = b"f" * 32 + b"g" * 48
    table = _HEADER.size + len(code) + len(NAMES)
    names_at, names = _HEADER.size + len(code), sections - 1
    many = sections >= 0xFF00
    head = _HEADER.pack(
        *(b"\x7fELF\x02\x01\x01", 2, 190, 1, 0, 0, table, 0, _HEADER.size, 0, 0, _SECTION.size),
        *(0 if many else sections, 0xFFFF if many else names),
    )

    def section(name: bytes, offset: int, size: int) -> bytes:
        return _SECTION.pack(NAMES.index(name), 1, 0, 0, offset, size, 0, 0, 1, 0)

    first = _SECTION.pack(0, 0, 0, 0, 0, sections if many else 0, names if many else 0, 0, 0, 0)
    functions = section(b".text._Z1fv", _HEADER.size, 32) + section(b".text._Z1gi", _HEADER.size + 32, 48)
    others = section(b".debug", 0, 0) * (sections - 4)
    return head + code + NAMES + first + functions + others + section(b".shstrtab", names_at, len(NAMES))


@pytest.mark.parametrize("sections", [5, 0xFEFF, 0xFF00, 0x10001])
def test_functions_are_found_among_any_number_of_sections(sections: int) -> None:
    assert code_spans(cubin(sections)) == {"_Z1fv": (64, 32), "_Z1gi": (96, 48)}


@pytest.mark.parametrize("cut", [1, 64, 400])
def test_a_cut_cubin_has_no_functions(cut: int) -> None:
    assert code_spans(cubin()[:-cut]) == {}


def test_a_launch_knows_its_own_gpu_better_than_the_session() -> None:
    """A session tells of the first GPU of the machine; clocks are stored in kilohertz."""
    names = ["device__attribute_display_name", "device__attribute_max_gpu_frequency_khz"]
    decoder = ResultDecoder("made.ncu-rep", names)
    session = SessionDetails(device_attributes={"display_name": "First", "max_mem_frequency_khz": 2_600_000})
    device = decoder._device({names[0]: "Second", names[1]: 1_980_000}, session)
    assert (device.name, device.max_clock_hz, device.max_memory_clock_hz) == ("Second", 1.98e9, 2.6e9)
    assert decoder._device({}, session).name == "First"


@pytest.mark.parametrize(
    ("values", "fine"),
    [
        ((-0.5, 0.0, 2.0, 9.0), True),
        ((-0.5, -0.1, 2.0, 9.0), True),
        ((None, None, None, -3384.0), True),
        ((1.0, 1.0, 1.0, -4.0), False),
        ((float("nan"),) * 4, True),
        ((1.0, 1.0, 1.0, 1.0), True),
        ((1.0, 3.0, 2.0, 9.0), False),
        ((1.0, 2.0, 3.0, 2.5), False),
        ((1.0, float("nan"), 3.0, 4.0), False),
        ((1.0, None, 3.0, None), True),
    ],
)
def test_roll_ups_rise_where_nothing_was_subtracted(values: tuple[float | None, ...], fine: bool) -> None:
    names = ("x.min", "x.avg", "x.max", "x.sum")
    metrics = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    assert _in_order(metrics, names) is fine


def test_all_instructions_of_a_function_are_shown_and_those_measured_elsewhere() -> None:
    profile = launch({}, per_instruction={m.INSTRUCTIONS_BY_ADDRESS: {16: 5, 4096: 2}})
    known = {**profile.instances, m.FUNCTION_PCS: Instances((0,), (BASE,))}
    module = Module({profile.mangled_name: 48}, {}, (), "")
    whole = [BASE, BASE + 16, BASE + 32, BASE + 4096]
    assert addresses(dataclasses.replace(profile, instances=known), module) == (BASE, whole)
    # Without the function's own address the first measured one stands for it, without its size what was measured.
    assert addresses(profile, dataclasses.replace(module, code_bytes={})) == (
        BASE + 16,
        [BASE + 16, BASE + 4096],
    )


def test_values_without_keys_are_numbered_from_0() -> None:
    table = InstanceTable({"x": messages.ElementColumns(values=messages.Column(whole=[7, 8, 9]))})
    assert list(table.columns_of("x")[0]) == [0, 1, 2]
    assert list(table["x"].items()) == [(0, 7), (1, 8), (2, 9)]
    assert list(table.columns_of("x")[0]) == [0, 1, 2]


@pytest.mark.parametrize("only", [{0}, {2}, {1, 2}, set(), None])
def test_only_the_launches_that_are_asked_for_are_read(only: set[int] | None) -> None:
    with ReportReader(DATA / "ladder_simple.ncu-rep.xz") as reader:
        found = [profile.index for profile in reader.profiles(only=only, instances=False, rules=False)]
    assert found == sorted(range(3) if only is None else only)


@pytest.fixture(scope="module")
def with_lines() -> bytes:
    """A cubin of a recorded report, with its line table."""
    with open_frame(DATA / "flaws_tensor.ncu-rep.xz") as frame:
        found = [messages.SourceData.FromString(frame.read(item.start, item.end)) for item in frame.sources]
    return next(source.cubin for source in found if b".debug_line\0" in source.cubin)


def test_sections_without_bytes_keep_their_place(with_lines: bytes) -> None:
    """Symbols name sections by their number; one that takes room in memory alone may be larger than the file."""
    table = line_table_of(with_lines)
    assert table is not None and len(table.functions) == 3
    header = _HEADER.unpack_from(with_lines)
    changed = bytearray(with_lines)
    # The section behind the first, which no symbol of a function needs, becomes shared memory of a gigabyte.
    at = header[6] + next(
        place * header[11]
        for place in range(1, header[12])
        if _SECTION.unpack_from(with_lines, header[6] + place * header[11])[1] == 0x70000000
    )
    section = list(_SECTION.unpack_from(with_lines, at))
    section[1], section[5] = 8, 1 << 30
    _SECTION.pack_into(changed, at, *section)
    assert line_table_of(bytes(changed)) == table
    assert code_spans(bytes(changed)) == code_spans(with_lines)


def test_a_damaged_line_table_leaves_a_good_one(with_lines: bytes) -> None:
    damaged = with_lines.replace(b"\0.symtab\0", b"\0.nothing")
    assert line_table_of(damaged) is None
    parts = [messages.SourceData(cubin=cubin).SerializeToString() for cubin in (with_lines, damaged)]

    class InMemory:
        def read(self, start: int, end: int) -> bytes:
            return b"".join(parts)[start:end]

    first = len(parts[0])
    items = [Item("source", 0, first, 1), Item("source", first, first + len(parts[1]), 1)]
    module = read_module(cast(Frame, InMemory()), items)
    assert module.line_table == line_table_of(with_lines)
