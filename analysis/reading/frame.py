"""An open report: where each launch and each source lies, and the bytes there.

`gemmprof.ncurep.ncu_frame` knows the blocks; `unpack` knows what may be around them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from gemmprof.analysis.reading.unpack import damaged, open_unpacked
from gemmprof.base import system
from gemmprof.base.errors import ReportError
from gemmprof.ncurep import ncu_frame
from gemmprof.ncurep.ncu_frame import MAGIC, MAX_ITEMS, WORKLOADS, Item
from gemmprof.ncurep.wire import WireError


@dataclass(slots=True)
class Frame:
    """A report whose frame has been walked to the end. Close it when done: it keeps the file open.

    The file is read piece by piece and not mapped: a mapped file that somebody overwrites kills the reader.

    Attributes:
        path: the report as the user named it.
        file: its uncompressed bytes, for a compressed one a temporary file without a name.
        size: how many there are.
        version: version of the file format.
        strings: the string table, names of metrics.
        items: every source and result, in file order.
        sessions: the session message of each process, by process id.
    """

    path: Path
    file: BinaryIO
    size: int
    version: int = 0
    strings: list[str] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    sessions: dict[int, bytes] = field(default_factory=dict)

    @property
    def workloads(self) -> list[Item]:
        """The profiled launches, ranges, command lists and graphs, in the order in which they were profiled."""
        return [item for item in self.items if item.kind in WORKLOADS]

    @property
    def sources(self) -> list[Item]:
        """The cubins with their sources."""
        return [item for item in self.items if item.kind == "source"]

    def read(self, start: int, end: int) -> bytes:
        """The bytes ``start`` to ``end`` of the uncompressed report.

        Raises:
            ReportError: if they are not there any more.
        """
        # Not seek and read: several threads may read at once.
        data = system.read_at(self.file, start, end - start)
        while len(data) < end - start:
            more = system.read_at(self.file, start + len(data), end - start - len(data))
            if not more:
                raise damaged(self.path, "it became shorter while it was read")
            data += more
        return data

    def close(self) -> None:
        """Close the file; the temporary copy of a compressed one is gone with it."""
        self.file.close()

    def __enter__(self) -> Frame:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_frame(path: str | os.PathLike[str]) -> Frame:
    """Open a report (plain, zstd, xz or gzip; told by content, not by name) and walk its frame.

    Raises:
        ReportError: if the file is missing, of another kind, truncated or damaged.
    """
    path = Path(path)
    file = open_unpacked(path)
    frame = Frame(path, file, file.seek(0, os.SEEK_END))
    try:
        _walk(frame)
    except ncu_frame.Torn as error:
        frame.close()
        raise damaged(path, "it ends in the middle of a block", str(error)) from None
    except WireError as error:
        frame.close()
        raise damaged(path, "its block structure does not hold", str(error)) from None
    except OSError as error:
        frame.close()
        raise ReportError(f"{path} cannot be read", found=str(error)) from error
    except BaseException:
        frame.close()
        raise
    return frame


def _walk(frame: Frame) -> None:
    size = frame.size
    frame.version, position = ncu_frame.read_head(frame.read, size)
    sessions: dict[int, dict[bytes, None]] = {}
    try:
        for block in ncu_frame.blocks(frame.read, position, size):
            position = block.end
            frame.strings += block.strings
            if block.session is not None:
                # ncu adds what it learns in later blocks; concatenated messages are one merged message.
                sessions.setdefault(block.process, {})[block.session] = None
            frame.items += ncu_frame.items(frame.read, block, size)
            if len(frame.items) > MAX_ITEMS:
                raise WireError(f"more than {MAX_ITEMS} items")
    except WireError:
        if size - position >= len(MAGIC) and frame.read(position, position + len(MAGIC)) == MAGIC:
            raise ReportError(
                f"{frame.path} holds more than one report: another one begins at byte {position}",
                remedies=["give the reports as separate files; they were joined byte by byte"],
            ) from None
        raise
    frame.sessions = {process: b"".join(messages) for process, messages in sessions.items()}
    if not frame.workloads:
        raise ReportError(
            f"{frame.path} holds no profiled launch",
            found=f"{len(frame.items)} items, {len(frame.strings)} metric names, {size} bytes",
            remedies=[
                "check ncu's --kernel-name, --launch-skip and --launch-count: nothing may have matched",
                "record the report again if it was cut off: a run that was killed leaves such a file",
            ],
        )
