// Stage 13: from a thread's sums to C.
#pragma once

#include "fastest_multiply.cuh"
#include "fastest_tile.cuh"

namespace GEMMPROF_STAGE {

__device__ __forceinline__ float4 scaled(float4 sum, float alpha) {
    return make_float4(alpha * sum.x, alpha * sum.y, alpha * sum.z, alpha * sum.w);
}

// alpha * sum + beta * C for four neighbouring columns of C, those that exist.
__device__ __forceinline__ void store_quad(float* __restrict__ C, std::int64_t ldc, int row, int col, int M, int N,
                                           bool aligned, float4 sum, float alpha, float beta) {
    if (row >= M || col >= N) return;
    float* const c = C + row * ldc + col;
    float4 v = scaled(sum, alpha);
    if (aligned && col + 4 <= N) {
        if (beta != 0.0f) {
            const float4 old = *reinterpret_cast<const float4*>(c);
            v.x += beta * old.x, v.y += beta * old.y, v.z += beta * old.z, v.w += beta * old.w;
        }
        *reinterpret_cast<float4*>(c) = v;
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (col + i < N) gemmprof::store(c + i, component(sum, i), alpha, beta);
    }
}

// A block has a tile for itself: (row, col) is where the thread's first sum belongs.
template <class T>
__device__ __forceinline__ void store_tile(const float (&sums)[T::tm][TN], float* __restrict__ C, std::int64_t ldc,
                                           int row, int col, int M, int N, bool aligned_c, float alpha, float beta) {
#pragma unroll
    for (int i = 0; i < T::tm; ++i)
#pragma unroll
        for (int quad = 0; quad < QUADS; ++quad) {
            const float* s = &sums[i][quad * 4];
            store_quad(C, ldc, row + i * T::lanes_m, col + quad * T::lanes_n * 4, M, N, aligned_c,
                       make_float4(s[0], s[1], s[2], s[3]), alpha, beta);
        }
}

}  // namespace GEMMPROF_STAGE
