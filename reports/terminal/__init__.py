"""What commands print: tables by rich, and lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.table import Table


def columns(*titles: str, ruled: bool = False, **style: Any) -> Table:
    """An empty table; nothing in it is cut but what never wraps. ``>`` before a title stands for a column that is
    justified right, ``!`` for one that never wraps; ``ruled``: a line below the head, and room around it.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, **style) if ruled else Table(box=None, pad_edge=False, **style)
    for title in titles:
        name = title.lstrip(">!")
        marks = title.removesuffix(name)
        side: Literal["left", "right"] = "right" if ">" in marks else "left"
        table.add_column(name, justify=side, no_wrap="!" in marks, overflow="fold")
    return table
