"""Print the completion script of a shell.

bash:  gemmprof completion bash > ~/.local/share/bash-completion/completions/gemmprof
zsh:   gemmprof completion zsh > ~/.zfunc/_gemmprof      (with fpath+=~/.zfunc before compinit in ~/.zshrc)
fish:  gemmprof completion fish > ~/.config/fish/completions/gemmprof.fish
tcsh:  gemmprof completion tcsh > ~/.gemmprof.tcsh       (sourced from ~/.tcshrc)
PowerShell:  gemmprof completion powershell > gemmprof.ps1       (dot-sourced from $PROFILE)
"""

from __future__ import annotations

import argparse
import re

from gemmprof.arguments.parser import values

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")
_FILES = frozenset({"FILE", "DIR", "FOLDER", "RUN", "REPORT", "COMMAND"})  # words for values that are files
ARGUMENTS = "shell  the shell"
VALUES = values(shell=SHELLS)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    from gemmprof.arguments.parser import parser_of_commands

    parser = parser_of_commands()
    for action in _actions(parser):
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                for one in command._actions:
                    words = [word for option in one.option_strings for word in _values(option, name)]
                    one.choices = words or one.choices
    for action in _actions(parser):
        shown = action.metavar if isinstance(action.metavar, str) else ""
        if not action.choices and not _FILES.isdisjoint(re.split(r"[^A-Z]+", shown)):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, options.shell))
    return 0


def _values(word: str, command: str) -> list[str]:
    """What may stand behind an option that lists no choices in its help, because they are many or not all there are."""
    from gemmprof.analysis.kernel_analysis import analyses
    from gemmprof.gpu.arch import LIMITS, PRODUCTS
    from gemmprof.kernels import catalog
    from gemmprof.metrics.constants import GROUPS

    of_ncu = dict.fromkeys(section for group in GROUPS.values() for section in group.sections)
    stages = [stage for ladder in catalog.LADDERS for stage in ladder.stages]
    return {
        "--section": [analysis.NAME for analysis in analyses()] if command == "show" else [*of_ncu],
        "--stage": list(dict.fromkeys(stage.name for stage in stages)),
        "--arch": [limits.label for limits in LIMITS.values()],
        "--gpu": [product.name for product in PRODUCTS],
        "--shape": ["1024", "2048", "4096", "8192"],
    }.get(word, [])


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The actions of a parser and of the commands below it."""
    found = []
    for action in parser._actions:
        found.append(action)
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                found += _actions(command)
    return found
