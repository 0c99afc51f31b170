"""Pictures: matplotlib figures and hand-made SVG."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def matplotlib_defaults(style: Mapping[str, Any]) -> Iterator[None]:
    """Draw and save inside this context, with matplotlib's own settings and these: no rc file changes a picture.

    A ``matplotlibrc`` in the current folder is read before any other, and may name programs (``text.usetex``).
    """
    _load()
    import matplotlib

    defaults: dict[Any, Any] = {
        name: value for name, value in matplotlib.rcParamsDefault.items() if name != "backend"
    }
    with matplotlib.rc_context(defaults | dict(style)):
        yield


@cache
def _load() -> None:
    """Import matplotlib, which reads an rc file while it is imported: the one that it comes with."""
    # It would tell of its cache where the home is not writable: nothing that a user of ours can act on.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    _give_it_a_folder()
    found = importlib.util.find_spec("matplotlib")
    assert found is not None and found.origin is not None, "it is one of gemmprof's dependencies"
    own = Path(found.origin).parent / "mpl-data" / "matplotlibrc"
    # A backend of another environment, as a notebook names one for its children, would end the import.
    before = {name: os.environ.pop(name, None) for name in ("MATPLOTLIBRC", "MPLBACKEND")}
    os.environ["MATPLOTLIBRC"] = str(own)
    # One of the current folder comes first whatever is set, and may be a pipe: leave that folder meanwhile.
    here = Path.cwd() if os.path.lexists("matplotlibrc") else None
    try:
        if here is not None:
            os.chdir(own.parent.parent)
        import matplotlib  # noqa: F401
    finally:
        if here is not None:
            os.chdir(here)
        del os.environ["MATPLOTLIBRC"]
        os.environ.update({name: value for name, value in before.items() if value is not None})


def _give_it_a_folder() -> None:
    """Where matplotlib cannot write its settings and fonts it says so on stderr each time: give it a folder."""
    if "MPLCONFIGDIR" in os.environ:
        return
    try:
        for variable, usual in (("XDG_CONFIG_HOME", ".config"), ("XDG_CACHE_HOME", ".cache")):
            folder = Path(os.environ.get(variable) or Path.home() / usual) / "matplotlib"
            folder.mkdir(parents=True, exist_ok=True)  # as matplotlib would
            if not os.access(folder, os.W_OK):
                raise PermissionError(folder)
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        os.environ["MPLCONFIGDIR"] = tempfile.mkdtemp(prefix="gemmprof-matplotlib-")
        atexit.register(shutil.rmtree, os.environ["MPLCONFIGDIR"], ignore_errors=True)
