"""The program that a child of ours runs: ``python -P …/watched.py MODULE ARGUMENT…`` (`started.python_command`).

It loads this very package by its place, so that it needs none on the path of imports, then runs a module of it.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from runpy import run_module


def main() -> None:
    """Run the module that the first argument names, as a program with the others."""
    module = sys.argv.pop(1)
    spec = PathFinder.find_spec("gemmprof", [str(Path(__file__).resolve().parents[2])])
    assert spec is not None and spec.loader is not None
    package = sys.modules["gemmprof"] = module_from_spec(spec)
    spec.loader.exec_module(package)
    run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

SCRIPT = Path(__file__).resolve().with_name("watched.py")


def python_command(module: str) -> list[str]:
    """The command that runs a module of this package as a program; its arguments are appended.

    ``-P`` keeps the current folder and the script's off the path. The package needs no place on the path either: the
    script loads it from where this process has it.
    """
    return [sys.executable, "-P", str(SCRIPT), module]
