"""Give the stages of a run the addresses that the catalog declares for them now.

    python tools/declare_addresses.py gemmprof/recorded

For runs of before stages declared their addresses. Some tile parameters were constants in the sources then: they are
added with the value that they had. The stages' sources, results and reports stay as they are.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path

from gemmprof.kernels.catalog import ladder_named
from gemmprof.model import StageRecord
from gemmprof.runs.directory import load_run, save_run

WERE_CONSTANTS: Mapping[str, tuple[str, ...]] = {
    "padded": ("MIN_BLOCKS",),
    "async_copy": ("PAD",),
    "fastest": tuple(
        f"{tile}_{letters}" for tile in ("MEDIUM", "SMALL") for letters in ("BM", "BN", "WM", "WN", "TM")
    ),
}
"""Parameters by stage that stood in its source."""


def declared(record: StageRecord) -> StageRecord:
    """The record with its namesake's addresses, unless it has its own."""
    stage = record.stage
    now = next((s for s in ladder_named(stage.ladder).stages if s.name == stage.name), None)
    if now is None or stage.addresses is not None:
        return record
    constants = {
        letter: now.parameters[letter]
        for letter in WERE_CONSTANTS.get(stage.name, ())
        if letter not in stage.parameters
    }
    parameters = {**stage.parameters, **constants}
    return dataclasses.replace(
        record, stage=dataclasses.replace(stage, parameters=parameters, addresses=now.addresses)
    )


def main() -> None:
    """Rewrite the run that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path, help="a run directory")
    run = load_run(parser.parse_args().run)
    print(f"Wrote {save_run(dataclasses.replace(run, stages=tuple(map(declared, run.stages))))}")


if __name__ == "__main__":
    main()
