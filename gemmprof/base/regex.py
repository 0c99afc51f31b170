"""Regular expressions from outside, searched in time that grows with the text alone.

Python's engine goes back over what it tried: ``(.*)*x`` asked of one long name of a kernel takes longer than anybody
waits, and nothing can stop it. RE2 never goes back, so it has no look-around and no back-references.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

# Characters of an expression; names of kernels that somebody looks for whole have some thousands.
LONGEST = 10_000
_MEMORY = 8 << 20  # bytes for the program and what is remembered of the search: RE2's own default


class RegexError(ValueError):
    """The text is no regular expression, or one that RE2 does not know."""


@dataclass(frozen=True, slots=True)
class Regex:
    """An expression that `regex` has checked."""

    pattern: str
    ignore_case: bool = True

    def search(self, text: str) -> bool:
        """Whether it is found in the text."""
        return _compiled(self.pattern, self.ignore_case).search(_whole(text)) is not None


def regex(pattern: str, *, ignore_case: bool = True) -> Regex:
    """An expression to search names with; RegexError if it is none."""
    _compiled(pattern, ignore_case)
    return Regex(pattern, ignore_case)


@lru_cache(maxsize=64)
def _compiled(pattern: str, ignore_case: bool) -> Any:
    import re2

    if len(pattern) > LONGEST:
        raise RegexError(f"it has {len(pattern)} characters; {LONGEST} are read")
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return re2.compile(_whole(pattern), options)
    except re2.error as error:
        said = error.args[0]
        raise RegexError(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)) from None


def _whole(text: str) -> str:
    """The text with halves of characters (of file names that are no UTF-8) as question marks: RE2 reads UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")
