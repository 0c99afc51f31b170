"""What a launch moves between L1, L2 and DRAM, and what each resource on the way would see if it moved
less.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmprof import metrics
from gemmprof.analysis.explanation.candidate import share
from gemmprof.analysis.explanation.work import Work

SECTOR = 32.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sectors of 32 bytes.

    Attributes:
        asked: by global and local loads, at L1.
        missed: of those, fetched from L2.
        written: by stores, which L1 passes on to L2.
        atomics: by atomics and reductions.
        dram_read, dram_written: at device memory.
        local: those of ``missed`` and ``written`` that local memory is to blame for.
    """

    asked: float
    missed: float
    written: float
    atomics: float
    dram_read: float
    dram_written: float
    local: float

    @property
    def l2(self) -> float:
        """Between L1 and L2."""
        return self.missed + self.written + self.atomics

    def factors(
        self, missed: float, written: float, *, tags: float | None = None, dram_read: float | None = None
    ) -> dict[str, float]:
        """What stays of each resource's work when so many sectors are fetched and written.

        What came from DRAM is fetched once at most: the smaller of what it was and what is asked for now.

        Args:
            missed: sectors that L1 fetches from L2.
            written: sectors that L1 writes to L2.
            tags: factor on L2's tag lookups; that of the sectors if None.
            dram_read: sectors read from device memory, the smaller of what it was and ``missed`` if None.
        """
        read = min(self.dram_read, missed) if dram_read is None else dram_read
        # Write-back: what DRAM takes never exceeds what was written.
        wrote = min(self.dram_written, written) if self.written else self.dram_written
        l2 = share(missed + written + self.atomics, self.l2) if self.l2 else 1.0
        return {
            "l2_to_l1": share(missed, self.missed) if self.missed else 1.0,
            "l1_to_l2": 0.5 * (l2 + (share(written, self.written) if self.written else l2)),
            "l2": l2,
            "l2_tags": l2 if tags is None else tags,
            "dram": share(read + wrote, self.dram_read + self.dram_written)
            if self.dram_read + self.dram_written
            else 1.0,
        }


def traffic(work: Work) -> Traffic:
    """The traffic of one launch; 0 where it was not collected."""

    def number(*names: str) -> float:
        return next((value for name in names if (value := work.number(name)) is not None), 0.0)

    def sectors(space: str, operation: str, lookup: str = "") -> float:
        return number(metrics.LSU_SECTORS.format(space=space, operation=operation, lookup=lookup))

    asked = sectors("global", "ld") + sectors("local", "ld")
    local_missed = sectors("local", "ld", "_lookup_miss")
    local_written = sectors("local", "st")
    missed = number(metrics.L1_LOAD_SECTORS_FETCHED)
    if not missed:
        missed = sectors("global", "ld", "_lookup_miss") + local_missed
    if not missed:
        missed = number(metrics.L2_TO_L1_BYTES) / SECTOR
    written = number(metrics.L1_STORE_SECTORS_WRITTEN)
    if not written:
        written = sectors("global", "st") + local_written
    local_written = min(local_written, max(0.0, written - sectors("global", "st")))
    return Traffic(
        asked=asked,
        missed=missed,
        written=written,
        atomics=sectors("global", "atom") + sectors("global", "red"),
        dram_read=number(*metrics.DRAM_READ_BYTES) / SECTOR,
        dram_written=number(*metrics.DRAM_WRITE_BYTES) / SECTOR,
        local=min(missed, local_missed) + local_written,
    )
