"""Waivers: kernels that may break a gate for a while, with a reason and an end."""

from __future__ import annotations

import datetime
import tomllib
from dataclasses import dataclass
from pathlib import Path

from gemmprof.analysis.comparison.outcome import Compared
from gemmprof.analysis.inputs.conditions import TIME, canonical
from gemmprof.base.errors import UsageError
from gemmprof.base.foreign_files import read_text
from gemmprof.base.regex import Regex, RegexError, regex

# What is read of a file of waivers: Python's TOML parser takes seconds for a megabyte.
LARGEST_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Waiver:
    """Lets kernels pass although a condition is met, until a day.

    Attributes:
        kernel: expression that is looked for in full name and label.
        condition: name of the figure or finding, '' for any.
        reason: why.
        until: last day on which it holds.
    """

    kernel: Regex
    condition: str
    reason: str
    until: datetime.date

    def covers(self, kernel: Compared, condition: str) -> bool:
        """Whether it is about this kernel and condition."""
        record = kernel.record
        texts = (record.name, record.label, kernel.match.label)
        return any(self.kernel.search(text) for text in texts) and self.condition in ("", condition)


def read_waivers(path: Path) -> tuple[Waiver, ...]:
    """Waivers from a TOML file: tables ``[[waiver]]`` with ``kernel``, ``reason``, ``until`` and perhaps ``condition``.

    Raises:
        UsageError: if the file is missing or a waiver has no reason, no end date, or a key that nobody knows.
    """
    try:
        document = tomllib.loads(read_text(path, LARGEST_BYTES))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as waivers", found=str(error)) from None
    entries = document.get("waiver")
    if not isinstance(entries, list) or set(document) != {"waiver"}:
        raise UsageError(
            f"{path} holds no [[waiver]] tables alone", found=", ".join(map(str, document)) or "nothing"
        )
    return tuple(_waiver(path, number, entry) for number, entry in enumerate(entries, start=1))


def _waiver(path: Path, number: int, entry: object) -> Waiver:
    fix = 'write [[waiver]] with kernel = "regex", reason = "why" and until = 2030-12-31'
    if not isinstance(entry, dict) or not {"kernel", "reason", "until"} <= entry.keys():
        raise UsageError(f"{path}: waiver {number} lacks kernel, reason or until", remedies=[fix])
    unknown = entry.keys() - {"kernel", "reason", "until", "condition"}
    if unknown:
        raise UsageError(
            f"{path}: waiver {number} has unknown keys", found=", ".join(sorted(unknown)), remedies=[fix]
        )
    kernel, reason, until = entry["kernel"], entry["reason"], entry["until"]
    condition = entry.get("condition", "")
    if not all(isinstance(text, str) for text in (kernel, reason, condition)) or not reason.strip():
        raise UsageError(f"{path}: waiver {number}: kernel, reason and condition are texts", remedies=[fix])
    if isinstance(until, datetime.datetime) or not isinstance(until, datetime.date):
        raise UsageError(f"{path}: waiver {number}: until is no date", found=repr(until), remedies=[fix])
    try:
        wanted = regex(str(kernel), ignore_case=False)
    except RegexError as error:
        raise UsageError(
            f"{path}: waiver {number}: kernel is no regular expression", found=str(error)
        ) from None
    # A gate judges time by all repetitions: it is not the duration of one launch.
    meant = condition if condition == TIME else canonical(condition)
    return Waiver(wanted, meant, reason, until)
