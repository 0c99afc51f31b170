"""Print the completion script of a shell.

bash:  gemmprof completion bash > ~/.local/share/bash-completion/completions/gemmprof
zsh:   gemmprof completion zsh > ~/.zfunc/_gemmprof      (with fpath+=~/.zfunc before compinit in ~/.zshrc)
fish:  gemmprof completion fish > ~/.config/fish/completions/gemmprof.fish
tcsh:  gemmprof completion tcsh > ~/.gemmprof.tcsh       (sourced from ~/.tcshrc)
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator

SHELLS = ("bash", "zsh", "fish", "tcsh")
_FILES = frozenset({"FILE", "DIR", "FOLDER", "RUN", "REPORT", "COMMAND"})  # words for values that are files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    from gemmprof.arguments.parser import parser_of_commands

    parser = parser_of_commands()
    for action in _actions(parser):
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                for one in command._actions:
                    words = [word for option in one.option_strings for word in _values(option, name)]
                    one.choices = words or one.choices
    if options.shell == "fish":
        print("\n".join([_HEAD, *_lines(parser, [], takes_files)]))
        return 0
    import shtab

    for action in _actions(parser):
        if takes_files(action):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, options.shell))
    return 0


def _values(word: str, command: str) -> list[str]:
    """What may stand behind an option that lists no choices in its help, because they are many or not all there are."""
    from gemmprof.analysis.kernel_analysis import analyses
    from gemmprof.gpu.arch import LIMITS, PRODUCTS
    from gemmprof.kernels import catalog
    from gemmprof.metrics.lean import GROUPS

    of_ncu = dict.fromkeys(section for group in GROUPS.values() for section in group.sections)
    stages = [stage for ladder in catalog.LADDERS for stage in ladder.stages]
    return {
        "--section": [analysis.NAME for analysis in analyses()] if command == "show" else [*of_ncu],
        "--stage": list(dict.fromkeys(stage.name for stage in stages)),
        "--arch": [limits.label for limits in LIMITS.values()],
        "--gpu": [product.name for product in PRODUCTS],
        "--shape": ["1024", "2048", "4096", "8192"],
    }.get(word, [])


def takes_files(action: argparse.Action) -> bool:
    """Whether the values of an argument are files or folders, by the word that its help shows for them."""
    words = action.metavar if isinstance(action.metavar, str) else ""
    return not action.choices and not _FILES.isdisjoint(re.split(r"[^A-Z]+", words))


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The actions of a parser and of the commands below it."""
    found = []
    for action in parser._actions:
        found.append(action)
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                found += _actions(command)
    return found


_HEAD = """\
# Completion of gemmprof for fish, written by `gemmprof completion fish`.
function __gemmprof_words --description 'words before the cursor that are no options'
    for word in (commandline -opc)[2..-1]
        string match -q -- '-*' $word; or printf '%s\\n' $word
    end
end
function __gemmprof_at --description 'the words before the cursor are exactly these'
    test "$(__gemmprof_words)" = "$argv"
end
function __gemmprof_in --description 'the words before the cursor begin with these'
    set -l words (__gemmprof_words)
    test (count $words) -ge (count $argv); and test "$words[1..$(count $argv)]" = "$argv"
end
complete -c gemmprof -e"""


def _lines(
    parser: argparse.ArgumentParser, path: list[str], files: Callable[[argparse.Action], bool]
) -> Iterator[str]:
    """The lines of one command and of those below it."""
    within = f"-n {_quoted(' '.join(['__gemmprof_in', *path]))}" if path else "-n __gemmprof_at"
    takes_files = False
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            exactly = f"-n {_quoted(' '.join(['__gemmprof_at', *path]))}"
            told = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, command in action.choices.items():
                yield f"complete -c gemmprof {exactly} -f -a {_quoted(name)}{_described(told.get(name, ''))}"
                yield from _lines(command, [*path, name], files)
        elif action.option_strings:
            yield f"complete -c gemmprof {within} {_option(action, files)}{_described(_help(parser, action))}"
        elif action.choices:
            words = " ".join(map(str, action.choices))
            yield f"complete -c gemmprof {within} -f -a {_quoted(words)}"
        else:
            takes_files = takes_files or files(action)
    if not takes_files:
        yield f"complete -c gemmprof {within} -f"


def _option(action: argparse.Action, files: Callable[[argparse.Action], bool]) -> str:
    names = " ".join(
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in action.option_strings
    )
    if action.nargs == 0:
        return names
    if action.choices:
        return f"{names} -x -a {_quoted(' '.join(map(str, action.choices)))}"
    return f"{names} -r -F" if files(action) else f"{names} -x"


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = action.help or ""
    return "" if text == argparse.SUPPRESS else parser._get_formatter()._expand_help(action) if text else ""


def _described(text: str) -> str:
    line = " ".join(text.split())
    return f" -d {_quoted(line)}" if line else ""


def _quoted(text: str) -> str:
    """Text within single quotes, where fish knows two escapes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
