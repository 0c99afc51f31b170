// What a consumer warpgroup of the fastest stage multiplies in one step.
#pragma once

#include "fastest_tiles.cuh"

namespace GEMMPROF_STAGE {

// sums += (or = where `add` is 0) its part of the tiles' product over BK, issued and not awaited.
template <class T, class A, class B, int HALVES, int COUNT>
__device__ __forceinline__ void issue_step(float (&sums)[HALVES][COUNT], unsigned a_tile, unsigned b_tile, int row,
                                           int col, int add) {
#pragma unroll
    for (int half = 0; half < HALVES; ++half) ptx::pin(sums[half]);
    ptx::wgmma_fence();
#pragma unroll
    for (int half = 0; half < HALVES; ++half)
        multiply_step<T, A, B>(sums[half], A::descriptor(a_tile, row + 64 * half), B::descriptor(b_tile, col), add);
    ptx::wgmma_commit();
}

}  // namespace GEMMPROF_STAGE
