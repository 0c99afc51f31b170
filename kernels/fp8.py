"""The 8-bit ladder: FP8 operands (e4m3) with a scale each, float32 sums, C in 16 bits or float32."""

from __future__ import annotations

from gemmprof.model import Stage

STAGES: tuple[Stage, ...] = (
    Stage(
        number=0,
        name="cublas",
        title="cuBLAS",
        idea="NVIDIA's library through torch._scaled_mm, sums kept in float32 (use_fast_accum=False): the yardstick.",
        yardstick=True,
    ),
    Stage(
        number=1,
        name="fp8gemm_promoted",
        title="Promoted sums",
        idea="wgmma of e4m3 adds over 128 of K, then its sums go to float32 ones: twice BF16's rate, 24 bits.",
        source="fp8/fp8gemm_promoted.cu",
        remark="B is best stored transposed, as wgmma reads it; in row-major order it is copied first.",
        parameters={"BM": 128, "BN": 192, "BK": 128, "STAGES": 5, "GROUP": 8},
        architectures=("9.0a",),
    ),
)
