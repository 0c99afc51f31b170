"""The line table of a cubin: which lines each instruction came from, with the calls that were inlined on the way.

``ncu_report`` tells the innermost line alone. The table (DWARF 2, ``.debug_line``) holds more, in two opcodes of
NVIDIA's: the row of the call that a row was inlined at, and the name of the function that was called there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from gemmprof.model import LineTable

_ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
# Names of kernels longer than this are not searched for their end, however many sections there are.
_MAX_NAME_BYTES = 1 << 16
_HEADER = struct.Struct("<IHIBBbBB")
_NOBITS = 8  # sh_type
_RELOCATION = struct.Struct("<QQq")
_SYMBOL = struct.Struct("<IBBHQQ")
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN = 1, 2, 3, 4, 5
_CONST_ADD_PC, _FIXED_ADVANCE_PC = 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_INLINED_CALL, _FUNCTION_NAME = 0x90, 0x91  # DW_LNE_NVIDIA_*
MOST_ROWS = 1 << 21  # of all functions of a cubin; a hostile table ends there
MOST_CALLS = 64  # inlined within one another


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was inlined: where it stands, and the function that was called ('' if not told; mangled)."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class _Row:
    offset: int
    file: int
    line: int
    context: int
    function: int


def sections_of(cubin: bytes) -> dict[str, tuple[int, int]]:
    """Begin and end of each section of a cubin by name; {} if it is no ELF."""
    return {name: (begin, end) for name, begin, end in _sections(cubin) if end <= len(cubin)}


def _sections(cubin: bytes) -> list[tuple[str, int, int]]:
    """Name, begin and end of every section in its place, by which symbols name them; [] if it is no ELF."""
    if not cubin.startswith(b"\x7fELF\x02\x01") or len(cubin) < _ELF_HEADER.size:
        return []
    header = _ELF_HEADER.unpack_from(cubin)
    table, entry_size, count, names_index = header[6], header[11], header[12], header[13]
    if entry_size != _SECTION_HEADER.size or table + _SECTION_HEADER.size > len(cubin):
        return []
    first = _SECTION_HEADER.unpack_from(cubin, table)
    # From 65,280 sections on, the true counts stand in the first section header.
    count = count or first[5]
    names_index = first[6] if names_index == 0xFFFF else names_index
    if table + count * entry_size > len(cubin) or names_index >= count:
        return []
    sections = list(_SECTION_HEADER.iter_unpack(cubin[table : table + count * entry_size]))
    names_at = sections[names_index][4]
    found = []
    for section in sections:
        start = names_at + section[0]
        end = cubin.find(b"\0", start, start + _MAX_NAME_BYTES)
        name = cubin[start:end].decode("utf-8", "replace") if end >= 0 else ""
        # A section that only takes room in memory has a size and no bytes.
        size = 0 if section[1] == _NOBITS else section[5]
        found.append((name, section[4], section[4] + size))
    return found


def line_table_of(cubin: bytes) -> LineTable | None:
    """What `inlined_calls` needs of a cubin; None where it has no line table, or a damaged one."""
    sections = sections_of(cubin)
    if ".debug_line" not in sections or ".symtab" not in sections:
        return None
    order = [name for name, _, _ in _sections(cubin)]
    nothing = (0, 0)
    relocations = cubin[slice(*sections.get(".rela.debug_line", nothing))]
    try:
        symbols = list(_SYMBOL.iter_unpack(cubin[slice(*sections[".symtab"])]))
        places = {offset: symbols[info >> 32][3] for offset, info, _ in _RELOCATION.iter_unpack(relocations)}
    except (struct.error, IndexError):
        return None
    functions = {
        offset: order[section].removeprefix(".text.")
        for offset, section in places.items()
        if section < len(order)
    }
    names = cubin[slice(*sections.get(".debug_str", nothing))]
    return LineTable(cubin[slice(*sections[".debug_line"])], names, functions)


def inlined_calls(table: LineTable | None, function: str) -> dict[int, tuple[Call, ...]]:
    """The calls that each instruction of a function was inlined through, innermost first, by its offset.

    Offsets that no call was inlined at are left out. {} where the table is damaged.

    Args:
        table: of the function's module.
        function: mangled name.
    """
    if table is None:
        return {}
    wanted = {offset for offset, name in table.functions.items() if name == function}
    found: dict[int, tuple[Call, ...]] = {}
    try:
        for files, sequence in _sequences(table.rows, wanted):
            found.update(_calls(sequence, files, table.names))
    except (struct.error, IndexError, ValueError, ZeroDivisionError):
        return {}
    return {offset: chain for offset, chain in found.items() if chain}


def _sequences(data: bytes, wanted: set[int]) -> Iterator[tuple[list[str], list[_Row]]]:
    """The rows of each run of addresses that begins at one of the wanted places, with the names of its files."""
    unit = 0
    while unit + _HEADER.size <= len(data):
        length, _, header_length, step, _, line_base, line_range, opcode_base = _HEADER.unpack_from(
            data, unit
        )
        end = min(unit + 4 + length, len(data))
        position = unit + 10 + header_length
        files = _files(data, unit + _HEADER.size + opcode_base - 1)
        lengths = data[unit + _HEADER.size : unit + _HEADER.size + opcode_base - 1]
        yield from _rows(
            data, position, end, files, wanted, (step, line_base, line_range, opcode_base), lengths
        )
        unit = end if end > unit else len(data)


def _files(data: bytes, position: int) -> list[str]:
    folders = [""]
    while data[position]:
        folder, position = _string(data, position)
        folders.append(folder)
    position += 1
    files = [""]
    while data[position]:
        name, position = _string(data, position)
        folder_index, position = _unsigned(data, position)
        _, position = _unsigned(data, position)
        _, position = _unsigned(data, position)
        folder = folders[folder_index] if folder_index < len(folders) else ""
        files.append(f"{folder}/{name}" if folder and not name.startswith("/") else name)
    return files


def _rows(
    data: bytes,
    position: int,
    end: int,
    files: list[str],
    wanted: set[int],
    header: tuple[int, int, int, int],
    lengths: bytes,
) -> Iterator[tuple[list[str], list[_Row]]]:
    step, line_base, line_range, opcode_base = header
    rows: list[_Row] = []
    keep = False
    address, file, line, context, function = 0, 1, 1, 0, 0
    count = 0
    while position < end and count < MOST_ROWS:
        opcode = data[position]
        position += 1
        if opcode >= opcode_base:
            address += (opcode - opcode_base) // line_range * step
            line += line_base + (opcode - opcode_base) % line_range
            rows.append(_Row(address, file, line, context, function))
            count += 1
        elif opcode == 0:
            size, position = _unsigned(data, position)
            kind, after = data[position], position + size
            if kind == _END_SEQUENCE:
                if keep:
                    yield files, rows
                rows, keep = [], False
                address, file, line, context, function = 0, 1, 1, 0, 0
            elif kind == _SET_ADDRESS:
                keep = keep or position + 1 in wanted
                address = int.from_bytes(data[position + 1 : after], "little")
            elif kind == _INLINED_CALL:
                context, position = _unsigned(data, position + 1)
                function, _ = _unsigned(data, position)
            elif kind == _FUNCTION_NAME:
                function, _ = _unsigned(data, position + 1)
                context = 0
            position = after
        elif opcode == _COPY:
            rows.append(_Row(address, file, line, context, function))
            count += 1
        elif opcode == _ADVANCE_PC:
            delta, position = _unsigned(data, position)
            address += delta * step
        elif opcode == _ADVANCE_LINE:
            delta, position = _signed(data, position)
            line += delta
        elif opcode == _SET_FILE:
            file, position = _unsigned(data, position)
        elif opcode == _CONST_ADD_PC:
            address += (255 - opcode_base) // line_range * step
        elif opcode == _FIXED_ADVANCE_PC:
            address += int.from_bytes(data[position : position + 2], "little")
            position += 2
        else:
            for _ in range(lengths[opcode - 1]):
                _, position = _unsigned(data, position)


def _calls(rows: list[_Row], files: list[str], names: bytes) -> Iterator[tuple[int, tuple[Call, ...]]]:
    covered = 0
    for place, row in enumerate(rows):
        chain: list[Call] = []
        at = row
        while 0 < at.context <= len(rows) and len(chain) < MOST_CALLS:
            outer = rows[at.context - 1]
            chain.append(Call(files[outer.file], outer.line, _string(names, at.function)[0]))
            at = outer
        following = rows[place + 1].offset if place + 1 < len(rows) else row.offset + 16
        covered += max(following - row.offset, 0) // 16
        if covered > MOST_ROWS:
            raise ValueError("a line of more code than there is")
        for offset in range(row.offset, max(following, row.offset + 16), 16):
            yield offset, tuple(chain)


def _string(data: bytes, position: int) -> tuple[str, int]:
    end = data.index(0, position)
    return data[position:end].decode("utf-8", "replace"), end + 1


def _unsigned(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 or shift > 63:
            return value, position


def _signed(data: bytes, position: int) -> tuple[int, int]:
    begin = position
    value, position = _unsigned(data, position)
    bits = 7 * (position - begin)
    return (value - (1 << bits) if value >> (bits - 1) & 1 else value), position
