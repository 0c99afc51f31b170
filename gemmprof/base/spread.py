"""A job that is done for each of many inputs: by this process, or by the workers of a cluster that a command was given.

Whoever reads many reports does it through `each`, and does not know where that happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from gemmprof.base.errors import DeviceError

Item = TypeVar("Item")
Key = TypeVar("Key")
Made = TypeVar("Made")


_elsewhere: list[Callable[..., Iterator[Callable[[], Any]]]] = []
_for_others = False


def each(
    job: Callable[..., Made], inputs: Iterable[tuple[Any, ...]], common: tuple[Any, ...] = ()
) -> Iterator[Callable[[], Made]]:
    """For each input, in order, a call that returns what the job returned for it, or raises what the job raised.

    Args:
        job: a function of a module, that neither keeps nor changes anything: it may be done twice.
        inputs: its last arguments; arguments and what it returns must be what pickle knows. Here the job is done by the
            call, so that no more than one result exists at a time.
        common: its first arguments, the same for all, which may be large.
    """
    if _elsewhere:
        return _elsewhere[-1](job, inputs, common)
    return (partial(job, *common, *arguments) for arguments in inputs)


def batched(items: Iterable[Item], size: int) -> Iterator[tuple[Item, ...]]:
    """Items in batches of so many, the last one may be smaller."""
    rest = iter(items)
    while batch := tuple(islice(rest, size)):
        yield batch


def grouped(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """The items of each key, keys and items in the order in which they come."""
    found: dict[Key, list[Item]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found


def unseen(path: object, why: object = "") -> DeviceError:
    """The error where another machine does not have what this one has."""
    fix = "workers read and write the files themselves: name folders that all machines share under one path"
    return DeviceError(f"a worker of the cluster does not see {path}, which is here", fix, found=str(why))


def be_for_others() -> None:
    """From now on this process does jobs for others: what it fetched last it may be asked for again."""
    global _for_others
    _for_others = True


def is_for_others() -> bool:
    """Whether this process does jobs for others."""
    return _for_others


def is_elsewhere() -> bool:
    """Whether `each` has other processes than this one."""
    return bool(_elsewhere)


@contextmanager
def elsewhere(each_there: Callable[..., Iterator[Callable[[], Any]]]) -> Iterator[None]:
    """Have jobs done by others, as long as the context: what `each` is asked for, this is."""
    _elsewhere.append(each_there)
    try:
        yield
    finally:
        _elsewhere.pop()
