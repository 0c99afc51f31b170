"""The sessions that the page tests render."""

from page_sessions import hostile, ladder, load

__all__ = ["hostile", "ladder", "load"]
