"""The words that pass between the rooms: frozen dataclasses in CUDA's and Nsight Compute's own terms.

Units are base units throughout: bytes, bytes per second, nanoseconds for durations that ncu measured, seconds
for durations that gemmprof timed, hertz, cycles. Percentages run from 0 to 100, ratios from 0 to 1.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gemmprof.model.gpu import *  # noqa: F403
    from gemmprof.model.ladder import *  # noqa: F403
    from gemmprof.model.profiles import *  # noqa: F403


def __getattr__(name: str) -> Any:
    # The lightest first: an answer on occupancy need not wait for what says a run.json's ranges in msgspec's words.
    for home in ("gpu", "profiles", "ladder") if name[:1].isupper() else ():
        module = import_module(f"gemmprof.model.{home}")
        if name in vars(module):
            return vars(module)[name]
    raise AttributeError(f"module 'gemmprof.model' has no attribute {name!r}")
