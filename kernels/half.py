"""The 16-bit ladder: FP16 or BF16 operands, float32 sums, C in the operands' type or float32."""

from __future__ import annotations

from gemmprof.kernels.half_tiles import float_tiles, fragment_tiles, swizzled_tiles, wgmma_tiles
from gemmprof.model import Stage

_HOPPER = ("9.0a",)

STAGES: tuple[Stage, ...] = (
    Stage(
        number=0,
        name="cublas",
        title="cuBLAS",
        idea="NVIDIA's library through torch.mm: the yardstick.",
        yardstick=True,
    ),
    Stage(
        number=1,
        name="hgemm_warptiled",
        title="Warp tiling",
        idea="16-bit elements become float32 on their way to shared memory: half the traffic, no tensor cores.",
        source="hgemm/hgemm_warptiled.cu",
        remark="Arithmetic on the FP32 pipe decides, so 16 bits gain nothing here: as fast as FP32's warp tiling.",
        parameters={"BM": 128, "BN": 128, "BK": 32, "WM": 64, "WN": 64, "WNITER": 2, "TM": 8, "TN": 4},
        addresses=float_tiles(),
    ),
    Stage(
        number=2,
        name="hgemm_wmma",
        title="WMMA",
        idea="A warp multiplies 16 x 16 x 16 fragments on the tensor cores, through CUDA C++'s own words.",
        source="hgemm/hgemm_wmma.cu",
        parameters={"BM": 256, "BN": 128, "BK": 32, "WM": 64, "WN": 64, "PAD": 8},
        addresses=fragment_tiles(),
    ),
    Stage(
        number=3,
        name="hgemm_mma",
        title="mma.sync, ldmatrix",
        idea="mma.sync with fragments that ldmatrix loads from XOR-swizzled tiles; sums go straight to C.",
        source="hgemm/hgemm_mma.cu",
        parameters={"BM": 128, "BN": 256, "BK": 32, "WM": 64, "WN": 64},
        addresses=swizzled_tiles(),
    ),
    Stage(
        number=4,
        name="hgemm_async_copy",
        title="Asynchronous copies",
        idea="cp.async keeps STAGES - 1 tiles on their way past the registers while one is multiplied.",
        source="hgemm/hgemm_async_copy.cu",
        parameters={"BM": 256, "BN": 128, "BK": 32, "WM": 64, "WN": 64, "STAGES": 4},
        addresses=swizzled_tiles(asynchronous=True),
    ),
    Stage(
        number=5,
        name="hgemm_wgmma",
        title="wgmma, TMA",
        idea="Four warps multiply 64 rows by BN columns straight from shared memory; the copy engine brings the tiles.",
        source="hgemm/hgemm_wgmma.cu",
        parameters={"BM": 128, "BN": 128, "BK": 64, "STAGES": 3},
        architectures=_HOPPER,
        addresses=wgmma_tiles(),
    ),
    Stage(
        number=6,
        name="hgemm_specialized",
        title="Warp specialisation",
        idea="One warpgroup copies, two multiply; two barriers a stage tie them, none of the whole block.",
        source="hgemm/hgemm_specialized.cu",
        parameters={"BM": 128, "BN": 256, "BK": 64, "STAGES": 4},
        architectures=_HOPPER,
        addresses=wgmma_tiles(producer=True),
    ),
    Stage(
        number=7,
        name="hgemm_clusters",
        title="Persistent clusters",
        idea="Blocks stay and walk the tiles in an order made for L2; pairs of them share B by multicast.",
        source="hgemm/hgemm_clusters.cu",
        remark="Most is gained where K is short: the next operands arrive while sums are stored.",
        parameters={"BM": 128, "BN": 256, "BK": 64, "STAGES": 4, "GROUP": 8},
        architectures=_HOPPER,
        addresses=wgmma_tiles(producer=True, cluster=2),
    ),
    Stage(
        number=8,
        name="hgemm_fastest",
        title="Fastest on Hopper",
        idea="Consumers in turn, C stored by the copy engine, K split in clusters or tiles cut, tiles by shape.",
        source="hgemm/hgemm_fastest.cu",
        parameters={"BM": 128, "BN": 256, "BK": 64, "STAGES": 4, "GROUP": 8},
        architectures=_HOPPER,
    ),
)
