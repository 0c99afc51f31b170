"""The line table of a cubin: which lines each instruction came from, with the calls that were inlined on the way.

``ncu_report`` tells the innermost line alone. The table (DWARF 2, ``.debug_line``) holds more, in two opcodes of
NVIDIA's: the row of the call that a row was inlined at, and the name of the function that was called there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from gemmprof.gpu.cubins import every_section, sections_of
from gemmprof.model import LineTable
from gemmprof.ncurep.ncu_frame import varint

_HEADER = struct.Struct("<IHIBBbBB")
_RELOCATION = struct.Struct("<QQq")
_SYMBOL = struct.Struct("<IBBHQQ")
_BEFORE_ADDRESS = 3  # a zero, the length and the opcode stand before the address itself
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN = 1, 2, 3, 4, 5
_CONST_ADD_PC, _FIXED_ADVANCE_PC = 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_INLINED_CALL, _FUNCTION_NAME = 0x90, 0x91  # DW_LNE_NVIDIA_*
# Where a hostile table ends; real ones have some ten thousand rows a function, and a function an address.
MOST_ROWS = 1 << 19  # of a function
MOST_STEPS = 1 << 22  # of a function: opcodes, and calls of all its instructions
MOST_FUNCTIONS = 1 << 17
MOST_UNITS, MOST_FILES, LONGEST_PATH = 1 << 12, 1 << 14, 1 << 12
MOST_CALLS = 64  # inlined within one another
LAST_LINE = 1 << 24


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


def line_table_of(cubin: bytes) -> LineTable | None:
    """What `inlined_calls` and `ptx_lines` need of a cubin; None where it has no line table, or a damaged one."""
    sections = sections_of(cubin)
    if ".debug_line" not in sections or ".symtab" not in sections:
        return None
    order = [name for name, _, _ in every_section(cubin)]

    def content(name: str) -> bytes:
        return cubin[slice(*sections.get(name, (0, 0)))]

    def functions_in(relocations: bytes) -> dict[int, str] | None:
        symbols_at, symbols_end = sections[".symtab"]
        functions: dict[int, str] = {}
        if len(relocations) > MOST_FUNCTIONS * _RELOCATION.size:
            return None
        try:
            for offset, info, _ in _RELOCATION.iter_unpack(relocations):
                symbol_at = symbols_at + (info >> 32) * _SYMBOL.size
                if symbol_at + _SYMBOL.size > symbols_end:
                    return None
                section = _SYMBOL.unpack_from(cubin, symbol_at)[3]
                if section < len(order):
                    functions[offset] = order[section].removeprefix(".text.")
        except struct.error:
            return None
        return functions

    functions = functions_in(content(".rela.debug_line"))
    if functions is None:
        return None
    table = LineTable(content(".debug_line"), content(".debug_str"), functions)
    of_ptx = functions_in(content(".rela.nv_debug_line_sass"))
    if not of_ptx:
        return table
    ptx, rows = content(".nv_debug_ptx_txt"), content(".nv_debug_line_sass")
    return replace(table, ptx=ptx, ptx_rows=rows, ptx_functions=of_ptx)


def ptx_lines(table: LineTable | None, function: str) -> dict[int, int]:
    """The line of the module's PTX, from 1, that each instruction of a function came from, by its offset.

    {} where the code holds no PTX, or its table is damaged.
    """
    if table is None or not table.ptx:
        return {}
    wanted = [offset for offset, name in table.ptx_functions.items() if name == function]
    try:
        return {row.offset: row.line for rows, _ in _sequences(table.ptx_rows, wanted) for row in rows}
    except (struct.error, IndexError, ValueError, ZeroDivisionError):
        return {}


def inlined_calls(table: LineTable | None, function: str) -> dict[int, tuple[Call, ...]]:
    """The calls that each instruction of a function was inlined through, innermost first, by its offset.

    Offsets that no call was inlined at are left out. {} where the table is damaged. The function's name is mangled.
    """
    if table is None:
        return {}
    wanted = tuple(offset for offset, name in table.functions.items() if name == function)
    return _inlined_calls(table.rows, table.names, wanted)


# A kernel is asked about by each of its launches, and by several parts of a page.
@lru_cache(maxsize=4)
def _inlined_calls(rows: bytes, names: bytes, wanted: tuple[int, ...]) -> dict[int, tuple[Call, ...]]:
    found: dict[int, tuple[Call, ...]] = {}
    try:
        for sequence, files in _sequences(rows, wanted):
            found.update(_calls(sequence, files, names))
    except (struct.error, IndexError, ValueError, ZeroDivisionError):
        return {}
    return {offset: chain for offset, chain in found.items() if chain}


def _sequences(data: bytes, wanted: Sequence[int]) -> Iterator[tuple[list[_Row], list[str]]]:
    """The rows of the runs of addresses that begin at these places, with the names of their files."""
    unit = 0
    for _ in range(MOST_UNITS):
        opcodes = unit + _HEADER.size
        if opcodes > len(data):
            return
        length, _, _, step, _, line_base, line_range, opcode_base = _HEADER.unpack_from(data, unit)
        end = min(unit + 4 + length, len(data))
        inside = [place for place in wanted if unit < place < end]
        if inside:
            begin = opcodes + opcode_base - 1  # of its files; before them the numbers of operands
            files, header = _files(data[:end], begin), (step, line_base, line_range, opcode_base)
            for place in inside[:MOST_CALLS]:
                yield _rows(data, place - _BEFORE_ADDRESS, end, header, data[opcodes:begin]), files
        unit += 4 + length
    raise ValueError("more units than a module has")


def _files(data: bytes, position: int) -> list[str]:
    folders = [""]
    while data[position] and len(folders) < MOST_FILES:
        folder, position = _string(data, position, LONGEST_PATH)
        folders.append(folder)
    position += 1
    files = [""]
    while data[position] and len(files) < MOST_FILES:
        name, position = _string(data, position, LONGEST_PATH)
        folder_index, position = varint(data, position)
        _, position = varint(data, position)
        _, position = varint(data, position)
        folder = folders[folder_index] if folder_index < len(folders) else ""
        files.append(f"{folder}/{name}" if folder and not name.startswith("/") else name)
    return files


def _rows(data: bytes, position: int, end: int, header: Sequence[int], lengths: bytes) -> list[_Row]:
    """The rows of the run of addresses that begins there, which it does by setting its address."""
    step, line_base, line_range, opcode_base = header
    rows: list[_Row] = []
    address, file, line, context, function = 0, 1, 1, 0, 0
    for _ in range(MOST_STEPS):
        if position >= end or len(rows) >= MOST_ROWS:
            break
        opcode = data[position]
        position += 1
        if opcode >= opcode_base:
            address += (opcode - opcode_base) // line_range * step
            line += line_base + (opcode - opcode_base) % line_range
            rows.append(_Row(address, file, line, context, function))
        elif opcode == 0:
            size, position = varint(data, position)
            kind, after = data[position], position + size
            if kind == _END_SEQUENCE:
                return rows
            if kind == _SET_ADDRESS:
                address = int.from_bytes(data[position + 1 : min(after, position + 9)], "little")
            elif kind == _INLINED_CALL:
                context, position = varint(data, position + 1)
                function, _ = varint(data, position)
            elif kind == _FUNCTION_NAME:
                function, _ = varint(data, position + 1)
                context = 0
            position = after
        elif opcode == _COPY:
            rows.append(_Row(address, file, line, context, function))
        elif opcode == _ADVANCE_PC:
            delta, position = varint(data, position)
            address += delta * step
        elif opcode == _ADVANCE_LINE:
            begin = position
            value, position = varint(data, position)
            bits = 7 * (position - begin)
            line += value - (1 << bits) if value >> (bits - 1) & 1 else value
        elif opcode == _SET_FILE:
            file, position = varint(data, position)
        elif opcode == _CONST_ADD_PC:
            address += (255 - opcode_base) // line_range * step
        elif opcode == _FIXED_ADVANCE_PC:
            address += int.from_bytes(data[position : position + 2], "little")
            position += 2
        else:
            for _ in range(lengths[opcode - 1]):
                _, position = varint(data, position)
    return []  # it does not end


def _calls(rows: list[_Row], files: list[str], names: bytes) -> Iterator[tuple[int, tuple[Call, ...]]]:
    known: dict[int, str] = {}
    chains: dict[tuple[int, int], tuple[Call, ...]] = {}
    room, covered = len(names), 0

    def name(at: int) -> str:
        nonlocal room
        if at not in known:
            known[at] = _string(names, at)[0]
            room -= len(known[at])
        return known[at]

    for place, row in enumerate(rows):
        chain = chains.get((row.context, row.function))
        if chain is None:
            calls: list[Call] = []
            at = row
            while 0 < at.context <= len(rows) and len(calls) < MOST_CALLS:
                outer = rows[at.context - 1]
                if not 0 < outer.line <= LAST_LINE:
                    break
                calls.append(Call(files[outer.file], outer.line, name(at.function)))
                at = outer
            chain = chains[row.context, row.function] = tuple(calls)
            covered += len(calls)
        following = rows[place + 1].offset if place + 1 < len(rows) else row.offset + 16
        covered += max(following - row.offset, 0) // 16
        if covered > MOST_STEPS or room < 0:
            raise ValueError("more code or names than there is")
        for offset in range(row.offset, max(following, row.offset + 16), 16):
            yield offset, chain


def _string(data: bytes, position: int, longest: int | None = None) -> tuple[str, int]:
    end = data.index(0, position, None if longest is None else position + longest)
    return data[position:end].decode("utf-8", "replace"), end + 1
