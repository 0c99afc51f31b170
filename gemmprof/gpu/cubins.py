"""What a cubin holds: its sections, and the machine code of each function. Bytes of reports may be anything."""

from __future__ import annotations

import struct

_ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
# Names of kernels longer than this are not searched for their end, however many sections there are.
_MAX_NAME_BYTES = 1 << 16
_NOBITS = 8  # sh_type
_TEXT = ".text."


def sections_of(cubin: bytes) -> dict[str, tuple[int, int]]:
    """Begin and end of each section of a cubin by name; {} if it is no ELF."""
    return {name: (begin, end) for name, begin, end in every_section(cubin) if end <= len(cubin)}


def every_section(cubin: bytes) -> list[tuple[str, int, int]]:
    """Name, begin and end of every section in its place, by which symbols name them; [] if it is no ELF."""
    if not cubin.startswith(b"\x7fELF\x02\x01") or len(cubin) < _ELF_HEADER.size:
        return []
    header = _ELF_HEADER.unpack_from(cubin)
    table, entry_size, count, names_index = header[6], header[11], header[12], header[13]
    if entry_size != _SECTION_HEADER.size or table + _SECTION_HEADER.size > len(cubin):
        return []
    first = _SECTION_HEADER.unpack_from(cubin, table)
    count = count or first[5]  # from 65,280 sections on, the true counts stand in the first section header
    names_index = first[6] if names_index == 0xFFFF else names_index
    if table + count * entry_size > len(cubin) or names_index >= count:
        return []
    sections = list(_SECTION_HEADER.iter_unpack(cubin[table : table + count * entry_size]))
    names_at = sections[names_index][4]
    found = []
    room = len(cubin)  # for names: those that lie within one another could be read for ever
    for section in sections:
        start = names_at + section[0]
        end = cubin.find(b"\0", start, start + _MAX_NAME_BYTES)
        room -= end - start if end >= 0 else _MAX_NAME_BYTES
        if room < 0:
            return []
        name = cubin[start:end].decode("utf-8", "replace") if end >= 0 else ""
        # A section that only takes room in memory has a size and no bytes.
        size = 0 if section[1] == _NOBITS else section[5]
        found.append((name, section[4], section[4] + size))
    return found


def code_spans(cubin: bytes) -> dict[str, tuple[int, int]]:
    """Begin and size of each function's code in a cubin, by mangled name; {} if it is no ELF."""
    code = ((name, span) for name, span in sections_of(cubin).items() if name.startswith(_TEXT))
    return {name.removeprefix(_TEXT): (begin, end - begin) for name, (begin, end) in code}
