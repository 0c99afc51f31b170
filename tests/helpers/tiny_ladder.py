"""The smallest ladder of 16 bits: what a second ladder costs is a kernel, and this."""

from __future__ import annotations

from pathlib import Path

from gemmprof.kernels import catalog
from gemmprof.model import Stage

FOLDER = Path(__file__).resolve().parents[1] / "kernels" / "tiny_ladder"

TINY = catalog.make_ladder(
    "tiny",
    "16 bits",
    ("bfloat16", "float16"),
    (
        Stage(0, "cublas", "cuBLAS", "NVIDIA's library through torch.mm: the yardstick.", yardstick=True),
        Stage(
            1,
            "tiny_naive",
            "Naive",
            "One thread an output, operands of 16 bits.",
            source=str(FOLDER / "naive_half.cu"),
            parameters={"BLOCK": 16},
        ),
        Stage(
            2,
            "tiny_hopper",
            "Naive on Hopper",
            "The same, for one architecture alone.",
            source=str(FOLDER / "naive_half.cu"),
            parameters={"BLOCK": 32},
            architectures=("9.0a",),
        ),
    ),
)
