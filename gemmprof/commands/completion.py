"""Print the completion script of a shell.

bash:  gemmprof completion bash > ~/.local/share/bash-completion/completions/gemmprof
zsh:   gemmprof completion zsh > ~/.zfunc/_gemmprof      (with fpath+=~/.zfunc before compinit in ~/.zshrc)
tcsh:  gemmprof completion tcsh > ~/.gemmprof.tcsh       (sourced from ~/.tcshrc)
"""

from __future__ import annotations

import argparse

from gemmprof.errors import UsageError

SHELLS = ("bash", "zsh", "tcsh")
_FILES = frozenset({"inputs", "reports", "output", "program", "baseline", "ptxas", "cubin"})
"""Arguments whose values are files."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(options: argparse.Namespace) -> int:
    """Print the script.

    Raises:
        UsageError: shtab, which makes it, is not installed.
    """
    from gemmprof.cli import build_parser

    try:
        import shtab
    except ImportError:
        raise UsageError("completion needs the package shtab", remedies=["pip install shtab"]) from None
    parser = build_parser()
    for action in _actions(parser):
        if action.dest in _FILES and not action.choices:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, options.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The actions of a parser and of the commands below it."""
    found = []
    for action in parser._actions:
        found.append(action)
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                found += _actions(command)
    return found
