"""GEMMs of one's own beside the ladder: gemmprof collect --plugin my_gemm.py --shape 4096."""

import torch
import triton
import triton.language as tl


@triton.jit
def tiles(a, b, c, m, n, k, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        depth = start + tl.arange(0, BK)
        left = tl.load(
            a + rows[:, None] * lda + depth[None, :], (rows[:, None] < m) & (depth[None, :] < k), other=0.0
        )
        right = tl.load(
            b + depth[:, None] * ldb + columns[None, :],
            (depth[:, None] < k) & (columns[None, :] < n),
            other=0.0,
        )
        total += tl.dot(left, right, input_precision="ieee")
    tl.store(
        c + rows[:, None] * ldc + columns[None, :],
        total.to(c.dtype.element_ty),
        (rows[:, None] < m) & (columns[None, :] < n),
    )


def triton_gemm(a, b, out):
    """A tile a program, with Triton's own pipelining."""
    (m, k), n = a.shape, b.shape[1]
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    tiles[grid](a, b, out, m, n, k, a.stride(0), b.stride(0), out.stride(0), BM=64, BN=64, BK=32)


def torch_matmul(a, b, out):
    """Whatever torch picks, for comparison."""
    torch.matmul(a, b, out=out)
