"""Which rank of a distributed program each profiled process is, as its launcher told it.

ncu's report knows processes by their ids, and their users by their ranks. A launcher puts the rank into the environment
of what it starts, which Linux shows as long as the process lives.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from gemmprof.base.foreign_files import LARGEST_DOCUMENT, read_bytes, read_text

# Where torchrun, Open MPI, PMIx, MPICH and srun put a rank; the first that is set counts.
VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")

_CONNECTED = re.compile(r"^==PROF== Connected to process (\d+)", re.MULTILINE)


@dataclass(slots=True)
class Ranks:
    """The ranks of the processes that ncu has connected to, looked up while they run.

    Attributes:
        known: rank by process; those without one are left out.
    """

    known: dict[int, int] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)

    def look(self, log: Path) -> None:
        """Look up the processes that ncu's log has named since."""
        try:
            text = read_text(log, LARGEST_DOCUMENT, errors="replace")
        except OSError:
            return
        for process in {int(number) for number in _CONNECTED.findall(text)} - self._seen:
            self._seen.add(process)
            rank = rank_of(process)
            if rank is not None:
                self.known[process] = rank


def rank_of(process: int) -> int | None:
    """The rank in a running process's environment; None where there is none of its own, or it cannot be seen."""
    try:
        content = read_bytes(f"/proc/{process}/environ")
    except OSError:
        return None
    variables = dict(entry.partition(b"=")[::2] for entry in content.split(b"\0"))
    # What it has from this process (which srun may have started, say) is no rank among those that are profiled.
    own = (
        variables[name]
        for name in map(str.encode, VARIABLES)
        if name in variables and variables[name] != os.environb.get(name)
    )
    told = next(own, b"")
    return int(told) if told.isdigit() else None
