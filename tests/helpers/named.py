"""Finds one of several by its name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class HasName(Protocol):
    """What has a name."""

    @property
    def name(self) -> str:
        """Its name."""


Item = TypeVar("Item", bound=HasName)


def named(found: Iterable[Item], name: str) -> Item | None:
    """The first of this name, or None."""
    return next((one for one in found if one.name == name), None)
