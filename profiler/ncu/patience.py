"""Tries again where another ncu has what only one at a time can have: it is done soon, or somebody has to end it."""

from __future__ import annotations

import time
from collections.abc import Callable

from gemmprof.base.errors import ProfilerError
from gemmprof.profiler.ncu.failures import DriverResourceError

PAUSES = (5.0, 10.0, 20.0, 40.0)
"""Seconds before each further try: a pass of another ncu takes seconds, its whole work a minute or more."""


class Patience:
    """How often something was tried in vain.

    Args:
        note: told before each pause.
        pause: waits; cut short, it says so by True, as ``threading.Event.wait`` does.
    """

    def __init__(self, note: Callable[[str], object], pause: Callable[[float], object] = time.sleep) -> None:
        self._note, self._pause = note, pause
        self._tried = 0

    def again(self, error: ProfilerError) -> bool:
        """Whether to try again: the error is one that passes, and it was waited a while for that.

        Raises:
            DriverResourceError: it did not pass.
        """
        if not isinstance(error, DriverResourceError):
            return False
        if self._tried == len(PAUSES):
            raise DriverResourceError(
                f"{error.message}, and still did after {len(PAUSES) + 1} tries in {sum(PAUSES):.0f} s",
                remedies=error.remedies,
                found=error.found,
            )
        seconds = PAUSES[self._tried]
        self._tried += 1
        self._note(f"{error.message}: trying again in {seconds:g} s ({self._tried} of {len(PAUSES)})")
        return not self._pause(seconds)

    def reset(self) -> None:
        """It went well since."""
        self._tried = 0
