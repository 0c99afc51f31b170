"""Text for terminals and logs that do not know every character: spelled in those that they know.

A terminal without UTF-8 (``LC_ALL=C``) knows no µ, × or →. With a ``?`` in their place ``270 µs`` would lose its unit
and a cut name the sign that it is cut.
"""

from __future__ import annotations

import re

# No colon, ``#`` or control character: what was made harmless for a build log stays so.
_WORDS = {
    "µ": "u", "μ": "u", "×": "x", "÷": "/", "·": "-", "•": "*", "–": "-", "—": "-", "−": "-", "…": "...",
    "→": "->", "←": "<-", "↑": "^", "↓": "v", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "²": "^2", "³": "^3",
    "⟨": "<", "⟩": ">", "›": ">", "⌈": "ceil(", "⌉": ")", "√": "sqrt ", "ν": "nu", "Σ": "sum ", "│": "|", "─": "-",
    "┃": "|", "━": "-", "█": "=", "✅": "ok", "❌": "broken", "\u00a0": " ", "‘": "'", "’": "'", "“": '"', "”": '"',
}  # fmt: skip
_PIECES = re.compile(r"[^\x00-\x7f]|  +|\n")


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

    return _PIECES.sub(piece, text)
