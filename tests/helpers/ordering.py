"""The order in which pytest-xdist begins with what takes longest."""

from __future__ import annotations

from collections.abc import Sequence


def shares(count: int, workers: int) -> list[int]:
    """How many of ``count`` tests ``--dist worksteal`` hands to each worker at first: stretches of the list."""
    found = []
    for waiting in range(workers, 0, -1):
        found.append(count // waiting)
        count -= found[-1]
    return found


def longest_first(seconds: Sequence[float], workers: int) -> list[int]:
    """The positions of tests in the order in which to hand them out, so that the long ones are begun first.

    Idle workers steal from the ends of the others' stretches: what stands at the front of one is begun at once.

    Args:
        seconds: about how long each test takes, 0 for those that need no place of their own.
        workers: how many work side by side.
    """
    by_length = sorted(
        (place for place, time in enumerate(seconds) if time), key=lambda place: -seconds[place]
    )
    rest = [place for place, time in enumerate(seconds) if not time]
    fronts: list[list[int]] = [[] for _ in range(workers)]
    for turn, place in enumerate(by_length):
        # There and back again: who has the longest of the first round gets the shortest of the second.
        fronts[turn % workers if turn // workers % 2 == 0 else -1 - turn % workers].append(place)
    order: list[int] = []
    for front, size in zip(fronts, shares(len(seconds), workers), strict=True):
        filling = max(0, size - len(front))
        order += [*front, *rest[:filling]]
        del rest[:filling]
    return [*order, *rest]
