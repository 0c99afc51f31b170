"""The ladders: the one list of stages, with every stage's one idea and its tile parameters.

The tile letters are the field's: a block computes BM x BN of C in steps of BK along K, a warp WM x WN of it, a
thread TM x TN. The build hands ``parameters`` to the compiler as ``-D`` definitions, so they stand here only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gemmprof.dtypes import DTYPES, FLOAT32
from gemmprof.errors import UsageError
from gemmprof.model import Ladder, Stage


def make_ladder(name: str, title: str, dtypes: tuple[str, ...], stages: Sequence[Stage]) -> Ladder:
    """A ladder whose stages know which one they belong to; those that name none of its types compute in all of them."""
    return Ladder(
        name,
        title,
        dtypes,
        tuple(
            replace(s, ladder=name, dtypes=tuple(d for d in s.dtypes if d in dtypes) or dtypes)
            for s in stages
        ),
    )


_SINGLE: tuple[Stage, ...] = (
    Stage(
        number=0,
        name="cublas",
        title="cuBLAS",
        idea="NVIDIA's library through torch.mm with TF32 off: the yardstick.",
        yardstick=True,
    ),
    Stage(
        number=1,
        name="naive",
        title="Naive",
        idea="One thread an output; neighbouring threads walk down a column of C, so every load is uncoalesced.",
        source="sgemm/naive.cu",
        parameters={"BLOCK": 32},
    ),
    Stage(
        number=2,
        name="coalesced",
        title="Coalesced",
        idea="Neighbouring threads take neighbouring columns: a warp reads B and writes C in few sectors.",
        source="sgemm/coalesced.cu",
        parameters={"BLOCK": 32},
    ),
    Stage(
        number=3,
        name="shared",
        title="Shared-memory tiling",
        idea="A block stages a square tile of A and of B in shared memory and reuses every element TILE times.",
        source="sgemm/shared.cu",
        remark="TILE 16 fills an SM with 8 small blocks where TILE 32 has 2 large ones, but reuses half: slower.",
        parameters={"TILE": 32},
        variants={"tile16": {"TILE": 16}},
    ),
    Stage(
        number=4,
        name="block1d",
        title="1D block tiling",
        idea="A thread computes a column of TM outputs and reuses each element of B from a register.",
        source="sgemm/block1d.cu",
        parameters={"BM": 64, "BN": 64, "BK": 8, "TM": 8},
    ),
    Stage(
        number=5,
        name="block2d",
        title="2D block tiling",
        idea="A thread computes TM x TN outputs as outer products in registers: more arithmetic per shared load.",
        source="sgemm/block2d.cu",
        parameters={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
    ),
    Stage(
        number=6,
        name="vectorized",
        title="Vectorised loads",
        idea="Global and shared memory move four floats an instruction; A is transposed on its way into shared memory.",
        source="sgemm/vectorized.cu",
        parameters={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
    ),
    Stage(
        number=7,
        name="linearized",
        title="Linearised shared memory",
        idea="Shared memory holds the tiles in the order they are read, so threads served together meet no bank twice.",
        source="sgemm/linearized.cu",
        parameters={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
    ),
    Stage(
        number=8,
        name="padded",
        title="Padded shared memory",
        idea="A few unused floats after each stretch of a tile shift what would meet in one bank.",
        source="sgemm/padded.cu",
        parameters={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8, "PAD": 4},
    ),
    Stage(
        number=9,
        name="autotuned",
        title="Autotuned tile sizes",
        idea="The same kernel with the tile sizes that a search on the GPU found.",
        source="sgemm/autotuned.cu",
        parameters={"BM": 64, "BN": 128, "BK": 16, "TM": 8, "TN": 8, "PAD": 4, "MIN_BLOCKS": 0},
    ),
    Stage(
        number=10,
        name="warptiled",
        title="Warp tiling",
        idea="Each warp owns a WM x WN tile: its shared loads are broadcasts, its registers serve several sub-tiles.",
        source="sgemm/warptiled.cu",
        remark="No faster than stage 9 on an H100, whose searched tiles have few bank conflicts left; 11 builds on it.",
        parameters={"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 64, "WNITER": 2, "TM": 8, "TN": 4},
    ),
    Stage(
        number=11,
        name="double_buffered",
        title="Double buffering",
        idea="Two copies of the tiles in shared memory: the next is fetched through registers while one is computed.",
        source="sgemm/double_buffered.cu",
        remark="BK is half of stage 10's, so two copies fit where it has one; the largest step after stage 7.",
        parameters={"BM": 128, "BN": 128, "BK": 8, "WM": 64, "WN": 64, "WNITER": 2, "TM": 8, "TN": 4},
    ),
    Stage(
        number=12,
        name="async_copy",
        title="Asynchronous copies",
        idea="cp.async moves tiles to shared memory past the registers, so several are on their way at once.",
        source="sgemm/async_copy.cu",
        remark="Does not pay on an H100: stage 11 hides the latency already, and A is transposed four bytes at a time.",
        parameters={
            "BM": 64,
            "BN": 128,
            "BK": 8,
            "WM": 64,
            "WN": 64,
            "WNITER": 4,
            "TM": 8,
            "TN": 4,
            "STAGES": 3,
        },
    ),
    Stage(
        number=13,
        name="fastest",
        title="Fastest on Hopper",
        idea="FFMAs in an order free of register-bank conflicts, tiles by TMA, K split in clusters if tiles are few.",
        source="sgemm/fastest.cu",
        parameters={
            "BM": 128,
            "BN": 128,
            "BK": 32,
            "WM": 64,
            "WN": 64,
            "TM": 16,
            "TN": 8,
            "STAGES": 3,
        },
        compiler_flags=("-Xptxas=-O1",),
    ),
)


SINGLE = make_ladder("single", "FP32", (FLOAT32.name,), _SINGLE)

LADDERS: tuple[Ladder, ...] = (SINGLE,)
"""Every ladder. Numbers are counted in each anew; a problem's type says which ladder a number belongs to."""

STAGES = SINGLE.stages


def ladder_named(name: str, ladders: Sequence[Ladder] | None = None) -> Ladder:
    """The ladder of this name.

    Raises:
        UsageError: there is none.
    """
    known = LADDERS if ladders is None else ladders
    for ladder in known:
        if ladder.name == name:
            return ladder
    raise UsageError(
        f"there is no ladder '{name}'", remedies=[f"one of {', '.join(item.name for item in known)}"]
    )


def ladder_of(dtype: str) -> Ladder:
    """The ladder whose stages compute in this type.

    Raises:
        UsageError: no stage does.
    """
    for ladder in LADDERS:
        if dtype in ladder.dtypes:
            return ladder
    raise UsageError(f"no stage computes in {dtype}", remedies=[f"one of {', '.join(ladder_dtypes())}"])


def ladder_dtypes() -> tuple[str, ...]:
    """The operand types that some ladder is of, in the order in which they are listed everywhere."""
    return tuple(name for name in DTYPES if any(name in ladder.dtypes for ladder in LADDERS))


def stage_by_number(number: int, dtype: str = FLOAT32.name) -> Stage:
    """The stage with this number, in the ladder of the type.

    Raises:
        KeyError: if the ladder has none.
    """
    return ladder_of(dtype).stage(number)


@dataclass(frozen=True, slots=True)
class Variant:
    """One compiled form of a stage: a parameter set under the name of its operator (``torch.ops.gemmprof.<name>``)."""

    name: str
    stage: Stage
    source: str
    parameters: Mapping[str, int]


def stage_variants(stage: Stage) -> tuple[Variant, ...]:
    """What is built of a stage: its own parameters under its name, then each variant as ``<name>_<key>``.

    Stages that are not ours (cuBLAS) have none.
    """
    if stage.source is None:
        return ()
    others = ((f"{stage.name}_{key}", parameters) for key, parameters in stage.variants.items())
    return tuple(
        Variant(name, stage, stage.source, parameters)
        for name, parameters in ((stage.name, stage.parameters), *others)
    )


def all_variants(ladders: Sequence[Ladder] | None = None) -> tuple[Variant, ...]:
    """Everything that the build compiles, in the order of the ladders."""
    return tuple(
        variant
        for ladder in (LADDERS if ladders is None else ladders)
        for stage in ladder.stages
        for variant in stage_variants(stage)
    )


TUNING_VALUES: Mapping[str, tuple[int, ...]] = {
    "BLOCK": (8, 16, 32),
    "TILE": (8, 16, 32),
    "BM": (32, 64, 96, 128, 192, 256),
    "BN": (32, 64, 96, 128, 192, 256),
    "BK": (8, 16, 32),
    "WM": (32, 64, 96, 128),
    "WN": (32, 64, 96, 128),
    "WNITER": (1, 2, 4),
    "TM": (4, 8, 12, 16),
    "TN": (4, 8, 12, 16),
    "PAD": (0, 4, 8),
    "MIN_BLOCKS": (0, 1, 2, 3),
    "STAGES": (2, 3, 4, 5),
}
"""What `gemmprof tune` tries for each letter, where the stage's constraints allow it."""
