"""Completion for fish, which shtab has none for: one ``complete`` line an option, asked of the argument parser."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

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


def fish_script(parser: argparse.ArgumentParser, files: Callable[[argparse.Action], bool]) -> str:
    """The script that fish reads.

    Args:
        parser: the whole command line.
        files: whether the values of an argument are files.
    """
    return "\n".join([_HEAD, *_lines(parser, [], files)])


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
