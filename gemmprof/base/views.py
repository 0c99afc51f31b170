"""How results show themselves in a notebook, without knowing who draws them.

The front door says where the room above is found that does, so that nothing is imported before something is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    Views = Mapping[type[Any], tuple[Callable[[Any], str], Callable[[Any], pd.DataFrame]]]

_drawn_by: list[Callable[[], Views]] = []


def drawn_by(load: Callable[[], Views]) -> None:
    """Say what draws each type, as HTML for a notebook and as a table; asked when something is first shown."""
    _drawn_by[:] = [load]


class Shown:
    """A result that shows itself."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _drawn_by[0]()[type(self)][0](self)

    def to_dataframe(self) -> pd.DataFrame:
        """What it holds as a table.

        Returns:
            Of a comparison a row a kernel: verdict, times in seconds, change with its interval, what changed, why. Of a
            run a row a stage and problem: times in seconds, speed in TFLOP/s, verification, failure. Of a launch a row
            a scalar metric, indexed by its name: ``value`` (base units) and ``unit``.
        """
        return _drawn_by[0]()[type(self)][1](self)
