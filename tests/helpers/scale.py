"""How much of a long test runs: a few of its inputs in `make test`, all of them in `make campaign`."""

from __future__ import annotations

import os

CAMPAIGN = os.environ.get("GEMMPROF_CAMPAIGN") == "1"


def inputs(few: int, everything: int) -> int:
    """``few``, or in a campaign ``everything``."""
    return everything if CAMPAIGN else few
