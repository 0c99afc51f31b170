"""Teaching model: which address each thread of a warp touches, and what the memory system makes of it.

From nothing but a stage's tile parameters: the 32-byte sectors of a global access, the banks and wavefronts of a
shared one. Data only; the pages draw it.
"""

from __future__ import annotations

from dataclasses import dataclass

SECTOR_BYTES = 32
BANKS = 32
BANK_BYTES = 4
WARP_SIZE = 32


@dataclass(frozen=True, slots=True)
class WarpAccess:
    """One load or store instruction as a warp executes it.

    Attributes:
        name: identifier, for example ``load_a``.
        title: name for people, for example ``Load of A into shared memory``.
        space: ``global`` or ``shared``.
        operation: ``load`` or ``store``.
        matrix: ``A``, ``B`` or ``C``.
        code: the access as the kernel's source writes it, in tile letters.
        bytes_per_thread: 4, 8 or 16.
        addresses: byte address of each lane relative to the matrix or tile; None for an inactive lane.
        rows, columns: element coordinates of each lane in the matrix (global) or tile (shared).
        explanation: one sentence: why it is good or bad.
    """

    name: str
    title: str
    space: str
    operation: str
    matrix: str
    code: str
    bytes_per_thread: int
    addresses: tuple[int | None, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    explanation: str = ""

    @property
    def sectors(self) -> tuple[int, ...]:
        """The distinct 32-byte sectors that the warp touches, ascending (sector = address // 32)."""
        touched = set()
        for address in self.addresses:
            if address is not None:
                touched.update(range(address // SECTOR_BYTES, (address + self.bytes_per_thread - 1) // SECTOR_BYTES + 1))
        return tuple(sorted(touched))

    @property
    def ideal_sectors(self) -> int:
        """Sectors that the distinct bytes would fill side by side."""
        return -(-len(self._bytes()) // SECTOR_BYTES)

    @property
    def banks(self) -> tuple[tuple[int, ...], ...]:
        """The shared-memory banks of each lane (bank = address // 4 mod 32), () for an inactive lane."""
        width = self.bytes_per_thread // BANK_BYTES
        return tuple(
            () if address is None else tuple((address // BANK_BYTES + word) % BANKS for word in range(width))
            for address in self.addresses
        )

    def _bytes(self) -> set[int]:
        return {
            address + offset
            for address in self.addresses
            if address is not None
            for offset in range(self.bytes_per_thread)
        }


@dataclass(frozen=True, slots=True)
class AccessPatterns:
    """Every load and store of one stage's main loop and epilogue, as the warp with index 0 executes it."""

    stage_number: int
    stage_title: str
    accesses: tuple[WarpAccess, ...]

    def access(self, name: str) -> WarpAccess | None:
        """The access with this name, or None."""
        return next((access for access in self.accesses if access.name == name), None)
