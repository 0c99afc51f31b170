"""How to start a Python of our own as a child: isolated from the folder that the user happens to stand in.

``python -m …`` puts the current folder first on the path of its imports, where a ``json.py`` beside a downloaded
report would be executed. A child finds this very package by its place instead, and all else as any program does.
"""

from __future__ import annotations

import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().with_name("watched.py")


def python_command(module: str) -> list[str]:
    """The command that runs a module of this package as a program; its arguments are appended.

    ``-P`` keeps the current folder and the script's off the path. The package needs no place on the path either: the
    script loads it from where this process has it.
    """
    return [sys.executable, "-P", str(SCRIPT), module]
