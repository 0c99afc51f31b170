"""What the compiler made of ``ncu_messages.proto`` is what stands there, and what it declares is what reports hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from google.protobuf.internal import api_implementation
from reports_in_bytes import length_prefixed, varint

from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.ncurep.ncu_frame import MAX_FIELDS, SMALL_BYTES, WireError, decode, decode_strictly

PROTO = Path(messages.__file__).with_name("ncu_messages.proto")
FIELD = re.compile(r"^\s*(optional |repeated |)(\w+) (\w+) = (\d+);", re.MULTILINE)


def declared() -> dict[str, set[tuple[str, str, str, int]]]:
    """Messages with their fields (label, type, name, number) by the text of the .proto."""
    text = re.sub(r"//.*", "", PROTO.read_text(encoding="utf-8"))
    parts = re.split(r"^message (\w+) \{", text, flags=re.MULTILINE)[1:]
    return {
        name: {
            (label.strip(), kind, field, int(number)) for label, kind, field, number in FIELD.findall(body)
        }
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def compiled() -> dict[str, set[tuple[str, str, str, int]]]:
    """The same by the compiled module."""
    found: dict[str, set[tuple[str, str, str, int]]] = {}
    names = {9: "string", 12: "bytes", 4: "uint64", 3: "int64", 1: "double", 2: "float"}
    for name, message in messages.DESCRIPTOR.message_types_by_name.items():
        fields = found.setdefault(name, set())
        for field in message.fields:
            of_choice = field.containing_oneof is not None and field.containing_oneof.name == "kind"
            optional = field.has_presence and field.message_type is None and not of_choice
            label = "repeated" if field.is_repeated else "optional" if optional else ""
            kind = field.message_type.name if field.message_type else names[field.type]
            fields.add((label, kind, field.name, field.number))
    return found


def test_the_compiled_messages_are_those_of_the_proto() -> None:
    assert len(declared()) > 30
    assert compiled() == declared()


def test_the_types_name_the_same_messages() -> None:
    types = Path(messages.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert set(re.findall(r"^class (\w+)\(", types, re.MULTILINE)) == set(declared())


def test_the_decoder_is_the_fast_one() -> None:
    assert api_implementation.Type() == "upb"


@pytest.mark.parametrize(
    "data",
    [b"\x08", b"\x08" + b"\xff" * 10, b"\x52\x05\x08\x01", b"\x2a\x02\xc3\x28", b"\x00\x01", b"\x0b\x08\x01"],
    ids=["no value", "no end", "length past the end", "no UTF-8", "field 0", "group without end"],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        decode(messages.KernelResult, data)


def test_a_known_field_of_another_type_is_refused_and_an_unknown_one_is_not() -> None:
    grid_as_number = varint(10 << 3) + varint(7)
    assert not decode(messages.KernelResult, grid_as_number).HasField("grid")
    with pytest.raises(WireError, match="field 10 of a KernelResult has wire type 0"):
        decode_strictly(messages.KernelResult, grid_as_number)
    decode_strictly(messages.KernelResult, varint(99 << 3) + varint(7))
    with pytest.raises(WireError, match="wire type 3"):
        decode_strictly(messages.KernelResult, varint(99 << 3 | 3) + varint(99 << 3 | 4))


def test_small_messages_stay_small_and_large_ones_are_counted() -> None:
    name = length_prefixed(1, b"x" * SMALL_BYTES)
    with pytest.raises(WireError, match="a Rule of 4 MiB"):
        decode(messages.Rule, name)
    assert decode(messages.Rule, name, most=2 * SMALL_BYTES).name == "x" * SMALL_BYTES
    with pytest.raises(WireError, match=f"more than {MAX_FIELDS} fields"):
        decode(
            messages.StringTable, length_prefixed(1, b"12345678") * (MAX_FIELDS + 1), most=16 * SMALL_BYTES
        )
