"""How results show themselves in a notebook, without knowing who draws them.

A room above registers what it draws of a type; the front door says where that room is found, so that nothing is
imported before something is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


# No dataclass: making one imports more than all that `gemmprof --help` needs otherwise.
class View:
    """What is drawn of one type: HTML for a notebook, and a table."""

    def __init__(self, html: Callable[[Any], str], frame: Callable[[Any], pd.DataFrame]) -> None:
        self.html, self.frame = html, frame


_views: dict[type[Any], View] = {}
_providers: list[Callable[[], object]] = []


def provided_by(load: Callable[[], object]) -> None:
    """Name who registers views; ``load`` is called when the first of them is asked for."""
    _providers.append(load)


def register(kind: type[Any], view: View) -> None:
    """Say how values of this type are shown."""
    _views[kind] = view


def view_of(value: object) -> View:
    """The view that was registered for the value's type; LookupError if none was."""
    while type(value) not in _views and _providers:
        _providers.pop(0)()
    try:
        return _views[type(value)]
    except KeyError:
        raise LookupError(f"nothing shows a {type(value).__name__}") from None
