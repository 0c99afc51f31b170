"""The ladders, and what is built of their stages.

The tile letters are the field's: a block computes BM x BN of C in steps of BK along K, a warp WM x WN of it, a
thread TM x TN. The build hands ``parameters`` to the compiler as ``-D`` definitions, so they stand in one table only.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gemmprof.base.documents import checked
from gemmprof.base.errors import UsageError
from gemmprof.gpu.dtypes import BFLOAT16, DTYPES, FLOAT8_E4M3, FLOAT16, FLOAT32
from gemmprof.model import Ladder, Stage
from gemmprof.model.ladder import Variant

# The stages of each ladder, and under ``tuning`` what a search tries; where their threads go, by the name of a stage.
_TABLE, _ADDRESSES = (
    tomllib.loads(Path(__file__).with_name(name).read_text("utf-8"))
    for name in ("stages.toml", "addresses.toml")
)
# How the table of addresses calls accesses.
_ACCESSES: Mapping[str, Mapping[str, object]] = {
    "fetch": {"space": "global", "operation": "load"},
    "put": {"space": "shared", "operation": "store"},
    "use": {"space": "shared", "operation": "load"},
    "write": {"space": "global", "operation": "store", "once": True},
}


def stages_of(ladder: str, folder: str) -> tuple[Stage, ...]:
    """The stages of a ladder as the table has them, numbered, with their sources in a folder of ``kernels/``."""
    found = []
    for number, entry in enumerate(_TABLE[ladder]):
        source = None if "yardstick" in entry else f"{folder}/{entry.get('source', entry['name'])}.cu"
        addresses = _addresses(entry["name"]) if entry["name"] in _ADDRESSES else None
        found.append(checked({**entry, "number": number, "source": source, "addresses": addresses}, Stage))
    return tuple(found)


def _addresses(name: str) -> dict[str, Any]:
    """What a stage declares, in the words of `gemmprof.base.expressions.Addresses`."""
    said = _declared(name)
    kinds = (*_ACCESSES, "copy", "wgmma")
    listed = {kind: [{"matrix": at, **one} for at, one in said.pop(kind, {}).items()] for kind in kinds}
    accesses = [{**words, **entry} for kind, words in _ACCESSES.items() for entry in listed[kind]]
    return {**said, "accesses": accesses, "copies": listed["copy"], "operand_reads": listed["wgmma"]}


def _declared(name: str) -> dict[str, Any]:
    """The table's entry of a stage on top of that of the stage that it is like."""
    own = dict(_ADDRESSES[name])
    before = own.pop("like", None)
    return _on_top(_declared(before), own) if before else own


def _on_top(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    changed = {k: _on_top(old[k], v) if isinstance(v, dict) and k in old else v for k, v in new.items()}
    return {**old, **changed}


def make_ladder(name: str, title: str, dtypes: tuple[str, ...], stages: Sequence[Stage]) -> Ladder:
    """A ladder whose stages know which one they belong to; those that name none of its types compute in all of them."""
    own = (tuple(dtype for dtype in stage.dtypes if dtype in dtypes) or dtypes for stage in stages)
    pairs = zip(stages, own, strict=True)
    return Ladder(name, title, dtypes, tuple(replace(stage, ladder=name, dtypes=of) for stage, of in pairs))


SINGLE = make_ladder("single", "FP32", (FLOAT32.name,), stages_of("single", "sgemm"))

HALF = make_ladder("half", "16 bits", (BFLOAT16.name, FLOAT16.name), stages_of("half", "hgemm"))

FP8 = make_ladder("fp8", "FP8", (FLOAT8_E4M3.name,), stages_of("fp8", "fp8"))

# Every ladder. Numbers are counted in each anew; a problem's type says which ladder a number belongs to.
LADDERS: tuple[Ladder, ...] = (SINGLE, HALF, FP8)


def ladder_named(name: str) -> Ladder:
    """The ladder of this name; UsageError if there is none."""
    known = {ladder.name: ladder for ladder in LADDERS}
    if name not in known:
        raise UsageError(f"there is no ladder '{name}'", f"one of {', '.join(known)}")
    return known[name]


def ladder_of(dtype: str) -> Ladder:
    """The ladder whose stages compute in this type; UsageError if no stage does."""
    if dtype not in ladder_dtypes():
        raise UsageError(f"no stage computes in {dtype}", f"one of {', '.join(ladder_dtypes())}")
    return next(ladder for ladder in LADDERS if dtype in ladder.dtypes)


def ladder_dtypes() -> tuple[str, ...]:
    """The operand types that some ladder is of, in the order in which they are listed everywhere."""
    return tuple(name for name in DTYPES if any(name in ladder.dtypes for ladder in LADDERS))


def stage_by_number(number: int, dtype: str = FLOAT32.name) -> Stage:
    """The stage with this number, in the ladder of the type; KeyError if the ladder has none."""
    return ladder_of(dtype).stage(number)


def stage_variants(stage: Stage) -> tuple[Variant, ...]:
    """What is built of a stage: its own parameters under its name, then each variant as ``<name>_<key>``.

    Stages that are not ours (cuBLAS) have none.
    """
    if stage.source is None:
        return ()
    others = ((f"{stage.name}_{key}", parameters) for key, parameters in stage.variants.items())
    every = (stage.name, stage.parameters), *others
    return tuple(Variant(name, stage, stage.source, parameters) for name, parameters in every)


def all_variants(ladders: Sequence[Ladder] | None = None) -> tuple[Variant, ...]:
    """Everything that the build compiles, in the order of the ladders."""
    every = (stage for ladder in (LADDERS if ladders is None else ladders) for stage in ladder.stages)
    return tuple(variant for stage in every for variant in stage_variants(stage))


def tuning_values(ladder: str = SINGLE.name) -> dict[str, tuple[int, ...]]:
    """What `gemmprof tune` tries for each letter of a ladder's stages, where their constraints allow it.

    Tiles of smaller elements are deeper: of each ladder the table has what differs from the one before. One that is not
    in it has the values of the first.
    """
    tables = _TABLE["tuning"]
    known = list(tables)
    before = known[: known.index(ladder) + 1] if ladder in tables else known[:1]
    return {letter: tuple(tried) for name in before for letter, tried in tables[name].items()}


TUNING_VALUES: Mapping[str, tuple[int, ...]] = tuning_values()
