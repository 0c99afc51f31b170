// Stage 13: the order of the FFMAs, free of register-bank conflicts.
#pragma once

#include "fastest_tile.cuh"

namespace GEMMPROF_STAGE {

__device__ __forceinline__ float component(const float4& v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// sums[first_row + row][..] += a[row][k] * b[..] for HELD rows and one k of four.
//
// Along a row, a[row][k] stays in the reuse cache, and each FFMA reads one b and one sum, whose banks differ if a sum's
// column is odd where its register is even (b's registers are aligned quadruples, so column and register agree there;
// ptxas chooses the sums' registers accordingly as long as no vector store ties them together).
// From one row to the next, the row is walked back, so that b stays in the reuse cache, and a new a is read with a sum:
// their banks differ if the row ends in an even column where k is even, and in an odd one where k is odd, because a's
// quadruple runs along k. Hence the columns 0 1 3 5 7 6 4 2 and back, or the same with each pair swapped.
template <int ROWS, int HELD>
__device__ __forceinline__ void multiply(float (&sums)[ROWS][TN], const float4 (&a)[HELD], const float4 (&b)[QUADS],
                                         int first_row, int k) {
#pragma unroll
    for (int row = 0; row < HELD; ++row)
#pragma unroll
        for (int step = 0; step < TN; ++step) {
            const int p = row % 2 == 0 ? step : TN - 1 - step;
            const int column = (p == 0 ? 0 : p <= TN / 2 ? 2 * p - 1 : 2 * (TN - p)) ^ (k & 1);
            float& sum = sums[first_row + row][column];
            asm volatile("fma.rn.f32 %0, %1, %2, %0;"
                         : "+f"(sum)
                         : "f"(component(a[row], k)), "f"(component(b[column / 4], column % 4)));
        }
}

}  // namespace GEMMPROF_STAGE
