"""The user's own line of every instruction: code of a header counts against the line that it was inlined into.

Reports name the innermost line only. So an instruction of a header belongs to the nearest line of the user's own before
it, which is where compilers put what they inline.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

_TOOLKIT = re.compile(
    r"/(?:cuda(?:-[\d.]+)?|cccl|hpc_sdk)/(?:[^/]+/)*include/|/targets/[\w-]+/include/|"
    r"/(?:cub|thrust|cuda/std|libcudacxx|cooperative_groups|cutlass|cute|crt)/[^/]*(?:/[^/]*)*\.(?:cuh|hpp?|inl)$|"
    r"/sm_\d+_\w+\.hpp?$|/cuda_(?:fp|bf)\d+\.hpp?$|/device_\w*functions\.hpp?$"
)


class Line(Protocol):
    """An instruction and the innermost line that it came from (None without line information)."""

    @property
    def file(self) -> str | None: ...  # noqa: D102
    @property
    def line(self) -> int | None: ...  # noqa: D102


@lru_cache(maxsize=1024)
def is_users(path: str | None) -> bool:
    """Whether a source file is the user's own, not a header of a toolkit."""
    return path is not None and not _TOOLKIT.search("/" + path.replace("\\", "/"))


def own_lines(instructions: Sequence[Line]) -> list[tuple[str, int] | None]:
    """File and line of the user's for each instruction, in address order; None without line information."""
    found: list[tuple[str, int] | None] = []
    last: tuple[str, int] | None = None
    for item in instructions:
        if item.file is None or item.line is None:
            found.append(None)
            continue
        if is_users(item.file):
            last = (item.file, item.line)
        found.append(last)
    # A header's code before the first line of the user's counts against that line.
    following: tuple[str, int] | None = None
    for index in range(len(found) - 1, -1, -1):
        if found[index] is not None:
            following = found[index]
        elif instructions[index].file is not None:
            found[index] = following
    return found
