"""What may reach a terminal or a build log: the one place where untrusted text is made harmless.

Names of kernels, files, NVTX ranges and rules come out of other people's reports. Printed raw they could move the
cursor, retitle or clear the terminal, hide text, open links (OSC 8), turn the reading direction round, or speak to the
machine that reads a build log (``::error::``, ``##vso[…]``). The command line wraps both streams once
(`guarded_output`), so nothing that a command prints goes round it; `printable` is the rule that they apply.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast

# No colon, ``#`` or control character: what was made harmless for a build log stays so.
_WORDS = {
    "µ": "u", "μ": "u", "×": "x", "÷": "/", "·": "-", "•": "*", "–": "-", "—": "-", "−": "-", "…": "...",
    "→": "->", "←": "<-", "↑": "^", "↓": "v", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "²": "^2", "³": "^3",
    "⟨": "<", "⟩": ">", "›": ">", "⌈": "ceil(", "⌉": ")", "√": "sqrt ", "ν": "nu", "Σ": "sum ", "│": "|", "─": "-",
    "┃": "|", "━": "-", "█": "=", "✅": "ok", "❌": "broken", "\u00a0": " ", "‘": "'", "’": "'", "“": '"', "”": '"',
}  # fmt: skip
# Expressions are texts here, which `re` compiles and keeps when they are first used: most commands need few of them.
_PIECES = r"[^\x00-\x7f]|  +|\n"


def knows(encoding: str, text: str) -> bool:
    """Whether a stream of this encoding can show all of the text."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    except LookupError:
        return text.isascii()
    return True


def spelled(text: str, encoding: str) -> str:
    """The text in characters of the encoding: ``->`` for →, an escape (``\\u65e5``) where nothing stands for one.

    What grows is taken from the next run of spaces, so that columns stay where they are as far as there is room.
    """
    if knows(encoding, text):
        return text
    too_long = 0

    def piece(found: re.Match[str]) -> str:
        nonlocal too_long
        part = found[0]
        if part == "\n":
            too_long = 0
        elif part.startswith(" "):
            taken = min(too_long, len(part) - 1)
            too_long -= taken
            return part[taken:]
        elif not knows(encoding, part):
            code = ord(part)
            part = _WORDS.get(part) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
            too_long += len(part) - 1
        return part

    return re.sub(_PIECES, piece, text)


# The one list of characters that text from outside may not hold, wherever it goes.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed; C1 holds one-byte CSI and OSC
    # Unicode's formatting characters (category Cf), and what else nobody sees: marks of direction, joiners, fillers.
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\ud800-\udfff"  # halves of characters: file names that are no UTF-8
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"  # tags, which models read, and more variation selectors
)
_UNSAFE_CHARACTER = f"[{_UNSAFE}]"
_UNSAFE_OR_FOREIGN = f"[{_UNSAFE}]|[^\\x00-\\x7f]"
_UNSAFE_IN_A_LINE = f"[{_UNSAFE}\n\t]"
# GitHub reads `::command::` at the start of a line and `##[command]` anywhere; Azure `##vso[`, TeamCity `##teamcity[`.
_COMMAND_AT_START = r"(?m)^([^\S\n]*):(?=:)"
_COMMAND_ANYWHERE = r"##(?=\w*\[)"
_LONGEST_COMMAND = 32  # how much of a line is looked at where it is written in pieces
# GitHub makes links of `https://…` and `www.…`, too.
_MARKDOWN = r"(?i)([\\`*_\[\]<>#|~@&$]|:(?=/)|^[-+]|(?<=www)\.)"


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(found[0], f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_plain(text: str) -> bool:
    """Whether nothing in the text needs a look: nearly all texts, known at the price of two walks in C."""
    return text.isascii() and text.isprintable()


def printable(text: str) -> str:
    """The text with every character that a terminal would obey or hide written as an escape (``\\x1b``).

    Line feeds and tabs stay. The result contains no unsafe character, so applying it twice changes nothing.
    """
    return text if _is_plain(text) else re.sub(_UNSAFE_CHARACTER, _visible, text)


def visible(text: str) -> str:
    """The text for a page or a picture: what acts or hides is shown by name, ``⟨U+202E⟩``, control characters by sign.

    Tabs and line feeds stay; escaping for HTML is the template's.
    """
    return text if _is_plain(text) else re.sub(_UNSAFE_CHARACTER, _named, text)


def _named(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\N{REPLACEMENT CHARACTER}" if code < 0xA0 or 0xD800 <= code < 0xE000 else f"⟨U+{code:04X}⟩"


def lower_first(text: str) -> str:
    """The first letter small unless the word is an abbreviation."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def one_line(text: object) -> str:
    """As `printable`, for a name within a sentence: a line feed is written as ``\\n``, too."""
    line = str(text)
    return line if _is_plain(line) else re.sub(_UNSAFE_IN_A_LINE, _visible, line)


def without_log_commands(text: str) -> str:
    """The text with nothing in it that the reader of a build log takes for a command."""
    if ":" in text:
        text = re.sub(_COMMAND_AT_START, r"\1: ", text)
    return _no_commands(text)


def _no_commands(text: str, instead: str = "# #") -> str:
    return re.sub(_COMMAND_ANYWHERE, instead, text) if "##" in text else text


def log_text(text: str) -> str:
    """The text for whoever prints it raw: an exception's message, which ends in other people's logs."""
    return without_log_commands(printable(text))


def markdown(text: object) -> str:
    """A name as a part of Markdown: one line, no markup, no link, no mention, no HTML."""
    return re.sub(_MARKDOWN, r"\\\1", one_line(text))


def spreadsheet(text: str) -> str:
    """A text as a cell of a table that a spreadsheet opens: nothing unsafe, and no formula."""
    safe = printable(text)
    return f"'{safe}" if safe.startswith(("=", "+", "-", "@", "\t")) else safe


def json_safe(document: str, encoding: str = "utf-8") -> str:
    """A JSON document with unsafe characters of its strings as ``\\uXXXX``: the same data, harmless to print.

    So are characters that the encoding of the stream does not know.
    """

    def escape(found: re.Match[str]) -> str:
        units = found[0].encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

    pattern = _UNSAFE_CHARACTER if knows(encoding, document) else _UNSAFE_OR_FOREIGN
    return _no_commands(re.sub(pattern, escape, document), r"#\\u0023")


def github_command(kind: str, title: str, message: str, place: tuple[str, int] | None = None) -> str:
    """An annotation for GitHub's build log (``::error title=…::…``); its texts cannot end it or begin another."""

    def escaped(text: str, more: str) -> str:
        for character in "%\r\n" + more:
            text = text.replace(character, f"%{ord(character):02X}")
        return text

    safe_title = escaped(one_line(title), ":,")
    safe = escaped(_no_commands(printable(message)), "")
    where = "" if place is None else f"file={escaped(one_line(place[0]), ':,')},line={place[1]},"
    return f"::{kind} {where}title={safe_title}::{safe}"


class GuardedStream(io.TextIOBase):
    """A text stream that makes harmless what is written to it.

    A reader that leaves early (``gemmprof … | head``) is no failure: what is written afterwards is dropped, so that the
    command comes to its own end and its own exit code.

    Args:
        styled: let escape sequences through, for a writer that cleans the text before it adds its own colours.
    """

    def __init__(self, stream: TextIO, *, styled: bool = False) -> None:
        self._stream, self._keeps_escapes = stream, styled
        self._line, self._gone = "", False

    @property
    def styled(self) -> GuardedStream:
        """A stream to the same place for `rich`, which cleans its texts itself and adds colours."""
        return GuardedStream(self._stream, styled=True)

    def write(self, text: str) -> int:
        """Write the text, made harmless; returns the length of what was given."""
        if self._gone:
            return len(text)
        safe = text if self._keeps_escapes else printable(text)
        begun = self._line
        # In the middle of a line, what stands first here is not at its start.
        mark = "x" if begun.strip() else ""
        safe = without_log_commands(mark + safe)[len(mark) :]
        safe = spelled(safe, self.encoding)
        head = safe[:_LONGEST_COMMAND]
        if begun and without_log_commands(begun + head) != without_log_commands(begun) + head:
            safe = " " + safe  # two pieces that are harmless alone would make a command
        line = (begun + safe).rpartition("\n")[2]
        self._line = "x" + line[-_LONGEST_COMMAND:] if line.strip(" \t:") else line
        self._guard(lambda: self._stream.write(safe))
        return len(text)

    def write_command(
        self, kind: str, title: str, message: str, place: tuple[str, int] | None = None
    ) -> None:
        """Write an annotation that GitHub shall obey, on a line of its own: the only way round the guard."""
        begin = "\n" if self._line else ""
        self._line = ""
        self._guard(lambda: self._stream.write(f"{begin}{github_command(kind, title, message, place)}\n"))

    def flush(self) -> None:
        """Hand on what is buffered."""
        if not self._gone:
            self._guard(self._stream.flush)

    def _guard(self, act: Any) -> None:
        try:
            act()
        except BrokenPipeError:
            self._gone = True
            silence(self._stream)

    def isatty(self) -> bool:
        """Whether a person looks at it."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Descriptor of the stream beneath."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """It is."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the stream beneath."""
        return encoding_of(self._stream)


def encoding_of(stream: TextIO) -> str:
    """Encoding of a stream; one that has none, as a test's may, takes every character."""
    return getattr(stream, "encoding", None) or "utf-8"


def silence(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that Python does not complain of it at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextlib.contextmanager
def guarded_output() -> Iterator[None]:
    """Make both standard streams harmless in this context. One that is closed swallows what is printed."""
    # Closed descriptors 0 to 2 are filled: else the next file that is opened is what prints and children write into.
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free one, which is this one
    before = sys.stdout, sys.stderr
    with contextlib.ExitStack() as stack:
        streams: list[TextIO] = []
        for stream in before:
            if stream is None:
                streams.append(stack.enter_context(open(os.devnull, "w", encoding="utf-8")))  # noqa: PTH123
                continue
            # What is not spelled (an annotation for GitHub) must not end in a traceback either.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
            streams.append(stream)
        sys.stdout, sys.stderr = (cast(TextIO, GuardedStream(stream)) for stream in streams)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
