// What a consumer warpgroup of the fastest stage multiplies in one step.
#pragma once

#include "fastest_tiles.cuh"

namespace GEMMPROF_STAGE {

// sums += (or = where `add` is 0) its part of the tiles' product over BK, issued and not awaited.
template <class T, class TILE, class A, class B>
__device__ __forceinline__ void issue_step(float (&sums)[TILE::halves][TILE::wn / 2], unsigned a_tile, unsigned b_tile,
                                           int row, int col, int add) {
#pragma unroll
    for (int half = 0; half < TILE::halves; ++half) ptx::pin(sums[half]);
    ptx::wgmma_fence();
#pragma unroll
    for (int half = 0; half < TILE::halves; ++half)
        multiply_step<T, A, B>(sums[half], A::descriptor(a_tile, row + 64 * half), B::descriptor(b_tile, col), add);
    ptx::wgmma_commit();
}

}  // namespace GEMMPROF_STAGE
