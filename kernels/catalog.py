"""The ladder: the one list of stages, with every stage's one idea and its tile parameters.

The tile letters are the field's: a block computes BM x BN of C in steps of BK along K, a warp WM x WN of it, a
thread TM x TN. The build hands ``parameters`` to the compiler as ``-D`` definitions, so they stand here only.
"""

from __future__ import annotations

from gemmprof.model import Stage

STAGES: tuple[Stage, ...] = (
    Stage(
        number=0,
        name="cublas",
        title="cuBLAS",
        idea="NVIDIA's library through torch.mm with TF32 off: the yardstick.",
    ),
    Stage(
        number=1,
        name="naive",
        title="Naive",
        idea="One thread an output; neighbouring threads walk down a column of C, so every load is uncoalesced.",
        source="naive.cu",
        parameters={"BLOCK": 32},
    ),
    Stage(
        number=2,
        name="coalesced",
        title="Coalesced",
        idea="Neighbouring threads take neighbouring columns, so a warp's loads of B and stores of C fuse into few sectors.",
        source="coalesced.cu",
        parameters={"BLOCK": 32},
    ),
    Stage(
        number=3,
        name="shared",
        title="Shared-memory tiling",
        idea="A block stages a square tile of A and of B in shared memory and reuses every element TILE times.",
        source="shared.cu",
        parameters={"TILE": 32},
        variants={"tile16": {"TILE": 16}},
    ),
    Stage(
        number=4,
        name="block1d",
        title="1D block tiling",
        idea="A thread computes a column of TM outputs and reuses each element of B from a register.",
        source="block1d.cu",
        parameters={"BM": 64, "BN": 64, "BK": 8, "TM": 8},
    ),
    Stage(
        number=5,
        name="block2d",
        title="2D block tiling",
        idea="A thread computes TM x TN outputs as outer products in registers: more arithmetic per shared load.",
        source="block2d.cu",
        parameters={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
    ),
    Stage(
        number=6,
        name="vectorized",
        title="Vectorised loads",
        idea="Global and shared memory move four floats an instruction; A is transposed on its way into shared memory.",
        source="vectorized.cu",
        parameters={"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8},
    ),
    Stage(
        number=10,
        name="warptiled",
        title="Warp tiling",
        idea="Each warp owns a WM x WN tile, so its shared loads are broadcasts and its registers are reused across sub-tiles.",
        source="warptiled.cu",
        parameters={"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 64, "WNITER": 4, "TM": 8, "TN": 4},
    ),
)


def stage_by_number(number: int) -> Stage:
    """The stage with this number.

    Raises:
        KeyError: if the ladder has none.
    """
    for stage in STAGES:
        if stage.number == number:
            return stage
    raise KeyError(number)
