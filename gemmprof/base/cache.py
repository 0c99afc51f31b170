"""Where gemmprof keeps what it can make again: compiled stages, results of searches, disassembly."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "GEMMPROF_CACHE"
"""Environment variable that moves the cache; ``off`` (or empty, or 0) turns the cache of disassembly off."""

_OFF = ("", "off", "0")


def cache_is_off() -> bool:
    """True if the user wants nothing kept that is not needed. Builds need their cache: they keep it where it lies."""
    return os.environ.get(CACHE_VARIABLE) in _OFF


def cache_directory() -> Path:
    """``$GEMMPROF_CACHE``, else ``$XDG_CACHE_HOME/gemmprof``, else ``~/.cache/gemmprof``.

    Raises:
        RuntimeError: if none is set and there is no home directory.
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named and not cache_is_off():
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gemmprof"
