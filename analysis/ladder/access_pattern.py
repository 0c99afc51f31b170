"""Teaching model: which address each thread of a warp touches, and what the memory system makes of it.

From a stage's declared addresses (`gemmprof.base.expressions`), its tile parameters and the matrix shape: the 32-byte
sectors of a global access, the banks and wavefronts of a shared one. Data only; the pages draw it. It holds for
shapes that are whole multiples of the tiles. The compiler may fuse neighbouring scalar accesses into wider ones: then
fewer instructions move the same bytes, and the model shows the source's own accesses.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from gemmprof.base.spread import grouped
from gemmprof.gpu.arch import BANK_BYTES, BANKS, WARP
from gemmprof.model import LaunchStatistics, Problem, Stage

SECTOR_BYTES = 32
LINE_BYTES = 128
WARPS_OF_A_GROUP = 4  # a warpgroup issues wgmma together


@dataclass(frozen=True, slots=True)
class WarpAccess:
    """One load or store instruction as the first warp of a block executes it."""

    name: str  # identifier, for example ``load_a``
    title: str  # name for people, for example ``Load of A from global memory``
    space: str  # ``global`` or ``shared``
    operation: str  # ``load`` or ``store``
    matrix: str  # ``A``, ``B`` or ``C``
    code: str  # the access as the kernel's source writes it, in tile letters
    bytes_per_thread: int  # 2, 4, 8 or 16
    addresses: tuple[int, ...]  # byte address of each lane relative to the matrix (global) or tile (shared)
    # rows, columns: coordinates of each lane's first element in the matrix or tile
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    # how often a warp executes the access in one step along K (``once``: in the whole kernel)
    executions: int = 1
    once: bool = False  # True for what happens once, after the loop along K
    # for an asynchronous copy into shared memory, the global address that each lane copies from
    copied_from: tuple[int, ...] = ()
    # executions beyond those of the steps: operands loaded ahead of the step that needs them, which after the last
    # step nobody needs
    ahead: int = 0
    element_bytes: int = 4  # size of an element where the access touches it

    @property
    def sectors(self) -> tuple[int, ...]:
        """The distinct 32-byte sectors that the warp touches, ascending (sector = address // 32)."""
        return tuple(sorted({sector for lane in self.sectors_of_lanes for sector in lane}))

    @property
    def sectors_of_lanes(self) -> tuple[tuple[int, ...], ...]:
        """The sectors of each lane."""
        spans = (
            (at // SECTOR_BYTES, (at + self.bytes_per_thread - 1) // SECTOR_BYTES) for at in self.addresses
        )
        return tuple(tuple(range(first, last + 1)) for first, last in spans)

    @property
    def ideal_sectors(self) -> int:
        """Sectors that the bytes of all lanes would fill side by side; lanes that share bytes count once."""
        return -(-self.distinct_bytes // SECTOR_BYTES)

    @property
    def distinct_bytes(self) -> int:
        """Bytes that at least one lane asks for."""
        return sum(self.bytes_of_sectors.values())

    @property
    def bytes_of_sectors(self) -> dict[int, int]:
        """The same by the sector in which they lie, ascending."""
        asked = {byte for at in self.addresses for byte in range(at, at + self.bytes_per_thread)}
        return dict(sorted(Counter(byte // SECTOR_BYTES for byte in asked).items()))

    @property
    def addresses_of_words(self) -> tuple[int, ...]:
        """The distinct 4-byte words that the warp touches, by address, ascending."""
        return tuple(sorted({word for words in self._words for word in words}))

    @property
    def banks(self) -> tuple[tuple[int, ...], ...]:
        """The shared-memory banks of each lane: address // 4 mod 32."""
        return tuple(tuple(word // BANK_BYTES % BANKS for word in words) for words in self._words)

    @property
    def passes(self) -> tuple[tuple[int, ...], ...]:
        """The lanes that the hardware serves together, in order: the whole warp for 4-byte accesses.

        8-byte accesses go by half-warps and 16-byte ones by quarter-warps, except that two neighbouring groups go
        together where lanes share addresses in pairs (lane and lane^1, or lane and lane^2). What an asynchronous copy
        brings is written one 128-byte line of global memory at a time.
        """
        lanes = tuple(range(len(self.addresses)))
        if self.copied_from:
            lines = grouped((at // LINE_BYTES, lane) for lane, at in enumerate(self.copied_from))
            return tuple(map(tuple, lines.values()))
        if self.bytes_per_thread <= BANK_BYTES:
            return (lanes,)
        size = WARP * BANK_BYTES // self.bytes_per_thread
        groups = []
        at = self.addresses
        for start in range(0, len(lanes), 2 * size):
            both = lanes[start : start + 2 * size]
            paired = any(all(at[lane] == at[lane ^ distance] for lane in both) for distance in (1, 2))
            groups += [both] if paired else [both[:size], both[size:]]
        return tuple(group for group in groups if group)

    @property
    def wavefronts(self) -> int:
        """Passes through shared memory: in each group of lanes, the most distinct words that fall on one bank."""
        words = self._words
        served = ({word for lane in group for word in words[lane]} for group in self.passes)
        return sum(max(Counter(word // BANK_BYTES % BANKS for word in group).values()) for group in served)

    @property
    def conflict_free_wavefronts(self) -> int:
        """Passes if no two words of a group fell on one bank (and a copy came from as few lines as it fills)."""
        if self.copied_from:
            return -(-len(self.addresses_of_words) // BANKS)
        return len(self.passes)

    @property
    def conflicts(self) -> int:
        """Wavefronts that bank conflicts add to one execution."""
        return self.wavefronts - self.conflict_free_wavefronts

    @property
    def explanation(self) -> str:
        """One sentence: what the memory system makes of it."""
        return _explain_global(self) if self.space == "global" else _explain_shared(self)

    @property
    def _words(self) -> list[range]:
        size = self.bytes_per_thread
        return [range(at // BANK_BYTES * BANK_BYTES, at + size, BANK_BYTES) for at in self.addresses]


def _explain_global(access: WarpAccess) -> str:
    touched, ideal, asked = len(access.sectors), access.ideal_sectors, access.distinct_bytes
    if asked == access.bytes_per_thread:
        return f"All {WARP} threads use the same element: one sector serves the whole warp."
    sectors = f"{touched} sector" if touched == 1 else f"{touched} sectors"
    if asked == touched * SECTOR_BYTES:
        return f"The warp fills every sector that it touches: {sectors}, no byte wasted."
    used = 100.0 * asked / (touched * SECTOR_BYTES)
    if touched == ideal:
        whole = "it" if touched == 1 else "them"
        no_more = "The warp touches no more sectors than its bytes need"
        return f"{no_more}: {sectors}, {used:.0f} % of {whole} used."
    return f"The warp touches {touched} sectors where {ideal} would do: {used:.0f} % of the bytes moved are used."


def _explain_shared(access: WarpAccess) -> str:
    groups = len(access.passes)
    if access.copied_from and access.conflicts:
        return (
            f"The copy is written one 128-byte line of global memory at a time: {access.wavefronts} wavefronts "
            f"where {access.conflict_free_wavefronts} would do."
        )
    together = "" if groups == 1 else f" in each of {groups} groups of threads"
    if len(access.addresses_of_words) * BANK_BYTES == access.bytes_per_thread:
        return f"All {WARP} threads use the same {access.bytes_per_thread} bytes: a broadcast, no conflict."
    if not access.conflicts:
        return f"No two different words fall on one bank{together}: no conflict."
    return (
        f"Different words fall on one bank{together}: {access.wavefronts} wavefronts where "
        f"{access.conflict_free_wavefronts} would do."
    )


@dataclass(frozen=True, slots=True)
class TensorCopy:
    """A tile copied from global to shared memory by the Tensor Memory Accelerator, box by box, once a step.

    One thread starts it, and the copy engine moves the box straight from L2: no warp loads or stores anything, so it
    counts in no request, sector or wavefront of a warp.
    """

    matrix: str  # ``A`` or ``B``
    # rows, columns: a box, in elements
    rows: int
    columns: int
    element_bytes: int  # size of an element
    code: str  # the copy as the kernel's source writes it, in tile letters
    layout: str  # one sentence on how the tile then lies in shared memory, and why
    boxes: int = 1  # boxes that a block asks for
    receivers: int = 1  # blocks of a cluster that each ask for so many, which arrive in all of them

    @property
    def title(self) -> str:
        """Name for people."""
        return f"Tensor copy of {self.matrix} from global to shared memory"

    @property
    def bytes(self) -> int:
        """Bytes that arrive in the shared memory of a block in a step."""
        return self.rows * self.columns * self.element_bytes * self.boxes * self.receivers


@dataclass(frozen=True, slots=True)
class AccessPatterns:
    """Every load and store of one stage, as the first warp of a block executes it."""

    # stage, problem: what was modelled
    stage: Stage
    problem: Problem
    warps_per_block: int  # warps of a block
    blocks: int  # tiles of C: blocks of the grid, unless these are resident and take one tile after another
    steps: int  # steps along K
    tile: tuple[int, int]  # rows and columns of C that a block computes
    accesses: tuple[WarpAccess, ...]  # in the order of the kernel's source
    # True if the shape is a whole multiple of the block tile, so that every warp of every block does what the first
    # one does and the totals are exact
    whole_tiles: bool = True
    # tiles that no warp loads because the copy engine brings them, each once a step
    copies: tuple[TensorCopy, ...] = ()
    computing_warps: int = 0  # warps of a block that execute each access; 0 for all of them
    resident: bool = False  # blocks stay and take one tile after another
    # what wgmma reads from shared memory for one warpgroup in a step, without any thread
    operand_bytes_a_step: int = 0

    def describes(self, launch: LaunchStatistics) -> bool:
        """Whether a launch has these blocks: stage 13 takes another tile, or several blocks a tile, where few are."""
        warps = -(-launch.threads_per_block // WARP)
        return warps == self.warps_per_block and (self.resident or launch.blocks == self.blocks)

    @property
    def executing_warps(self) -> int:
        """Warps of all blocks that execute each access."""
        return self.blocks * (self.computing_warps or self.warps_per_block)

    @property
    def operand_bytes(self) -> int:
        """Bytes that wgmma reads from shared memory in the whole launch."""
        return self.executing_warps // WARPS_OF_A_GROUP * self.steps * self.operand_bytes_a_step

    def requests(self, access: WarpAccess) -> int:
        """Warp-level executions of the access in the whole launch."""
        return self.needed_requests(access) + self.executing_warps * access.ahead

    def needed_requests(self, access: WarpAccess) -> int:
        """The same without what is loaded ahead in vain."""
        steps = 1 if access.once else self.steps
        return self.executing_warps * steps * access.executions

    @property
    def bytes_ahead(self) -> int:
        """Bytes that all threads of the launch load ahead in vain."""
        threads = self.executing_warps * WARP
        return sum(threads * access.ahead * access.bytes_per_thread for access in self.accesses)

    @property
    def copied_bytes(self) -> int:
        """Bytes that the tensor copies of the launch bring into shared memory."""
        return self.blocks * self.steps * sum(copy.bytes for copy in self.copies)

    def sectors(self, operation: str) -> int:
        """Global-memory sectors of all loads or all stores of the launch."""
        found = (a for a in self.accesses if a.space == "global" and a.operation == operation)
        return sum(self.requests(access) * len(access.sectors) for access in found)
