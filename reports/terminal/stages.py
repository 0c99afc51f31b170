"""The ladder as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gemmprof.model import Stage

if TYPE_CHECKING:
    from rich.table import Table


def table(stages: Sequence[Stage]) -> Table:
    """A row a stage: number, name, idea (and the GPUs that it is written for, if not all), tile parameters."""
    from rich.table import Table

    result = Table(box=None, pad_edge=False)
    result.add_column("stage", justify="right")
    result.add_column(
        "name", overflow="fold", min_width=max((len(stage.name) for stage in stages), default=4)
    )
    result.add_column("its one idea", overflow="fold")
    result.add_column("tile parameters", overflow="fold", max_width=60)
    for stage in stages:
        needs = f" Needs {' or '.join(stage.architectures)}." if stage.architectures else ""
        result.add_row(str(stage.number), stage.name, stage.idea + needs, letters(stage.parameters))
    return result


def letters(parameters: Mapping[str, int]) -> str:
    """Tile parameters as one writes them: ``BM=64 BN=64``."""
    return " ".join(f"{letter}={value}" for letter, value in parameters.items())
