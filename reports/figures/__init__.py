"""Pictures: matplotlib figures and hand-made SVG."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path


def _give_matplotlib_a_folder() -> None:
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


_give_matplotlib_a_folder()
