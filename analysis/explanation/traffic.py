"""What a launch moves between L1, L2 and DRAM, and what each resource on the way would see if it moved less."""

from __future__ import annotations

from dataclasses import dataclass

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

    lsu = "l1tex__t_sectors_pipe_lsu_mem_"
    asked = number(f"{lsu}global_op_ld.sum") + number(f"{lsu}local_op_ld.sum")
    local_missed = number(f"{lsu}local_op_ld_lookup_miss.sum")
    local_written = number(f"{lsu}local_op_st.sum")
    missed = number("l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld.sum")
    if not missed:
        missed = number(f"{lsu}global_op_ld_lookup_miss.sum") + local_missed
    written = number("l1tex__m_l1tex2xbar_write_sectors_mem_lg_op_st.sum")
    if not written:
        written = number(f"{lsu}global_op_st.sum") + local_written
    local_written = min(local_written, max(0.0, written - number(f"{lsu}global_op_st.sum")))
    return Traffic(
        asked=asked,
        missed=missed,
        written=written,
        atomics=number(f"{lsu}global_op_atom.sum") + number(f"{lsu}global_op_red.sum"),
        dram_read=number("dram__bytes_read.sum", "dram__bytes_op_read.sum") / SECTOR,
        dram_written=number("dram__bytes_write.sum", "dram__bytes_op_write.sum") / SECTOR,
        local=min(missed, local_missed) + local_written,
    )
