"""The causes that `gemmprof explain` knows, a module a group; `engine` asks them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from gemmprof.base.foreign_files import facts

if TYPE_CHECKING:
    from gemmprof.analysis.explanation.candidate import Candidate
    from gemmprof.analysis.explanation.demands.work import Work

Detector = Callable[["Work"], Iterator["Candidate"]]


# Every cause: the function that looks for it, whether it needs code or counters by instruction (others look at the
# launch alone), and its name with its heading, in the order of lists and pages. A function may know several causes, or
# add to another one's. Its docstring says what "fixed" means. One more cause is one more function and its line in that
# table: by module and name, because whoever asks for a cause's name (a condition, a table) need not load what finds it.
_TABLE = facts(__file__, "causes.csv")
CAUSES: dict[str, str] = {cause: title for *_, cause, title in _TABLE if cause}


@cache
def detectors(*, code: bool = True) -> tuple[Detector, ...]:
    """The functions that look for causes, in the order of the table; all, or those that need no code."""
    wanted = dict.fromkeys((module, function) for module, function, needs, *_ in _TABLE if code or not needs)
    return tuple(
        cast(Detector, getattr(import_module(f"{__name__}.{module}"), function))
        for module, function in wanted
    )


def definition(cause: str) -> str:
    """What "fixed" means for a cause: the docstring of the function that finds it."""
    import inspect

    (found,) = (getattr(import_module(f"{__name__}.{row[0]}"), row[1]) for row in _TABLE if row[3] == cause)
    return inspect.cleandoc(found.__doc__ or "")
