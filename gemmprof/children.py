"""How to start a Python of our own as a child: isolated from the folder that the user happens to stand in.

``python -m …`` puts the current folder first on the path of its imports, where a ``json.py`` beside a downloaded
report would be executed. A child finds this very package by its place instead, and all else as any program does.
"""

from __future__ import annotations

import sys
from pathlib import Path

_BOOT = """\
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
spec = PathFinder.find_spec("gemmprof", [{root!r}])
package = sys.modules["gemmprof"] = module_from_spec(spec)
spec.loader.exec_module(package)
from runpy import run_module
run_module({module!r}, run_name="__main__", alter_sys=True)
"""


def python_command(module: str) -> list[str]:
    """The command that runs a module of this package as a program; its arguments are appended.

    ``-P`` keeps the current folder and the script's off the path. The package needs no place on the path either: it is
    loaded from where this process has it.
    """
    root = str(Path(__file__).resolve().parent.parent)
    return [sys.executable, "-P", "-c", _BOOT.format(root=root, module=module)]
