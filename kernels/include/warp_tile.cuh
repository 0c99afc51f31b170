// The geometry of warp tiling, and the arithmetic that stages 10 to 12 share: those stages differ only in how the
// tiles reach shared memory.
//
// A block computes BM x BN, each of its warps WM x WN of that, as WMITER x WNITER sub-tiles of WSUBM x WSUBN; a thread
// computes TM x TN at the same place of every sub-tile.
#pragma once

#include "float4.cuh"

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int WMITER = WM * WN / (32 * TM * TN * WNITER);

static_assert(BM % WM == 0, "BM must be a multiple of WM: whole warp tiles fill the block tile");
static_assert(BN % WN == 0, "BN must be a multiple of WN: whole warp tiles fill the block tile");
static_assert(WMITER >= 1, "WM * WN must be at least 32 * TM * TN * WNITER: 32 threads share each sub-tile");
static_assert(WM * WN == 32 * TM * TN * WMITER * WNITER,
              "WM * WN must be a multiple of 32 * TM * TN * WNITER: whole sub-tiles fill the warp tile");
static_assert(WM % WMITER == 0, "WM must be a multiple of WMITER: sub-tiles have whole rows");
static_assert(WN % WNITER == 0, "WN must be a multiple of WNITER: sub-tiles have whole columns");

constexpr int WSUBM = WM / WMITER;
constexpr int WSUBN = WN / WNITER;

static_assert(WSUBM % TM == 0, "WSUBM must be a multiple of TM: a thread's tile must not leave the sub-tile");
static_assert(WSUBN % TN == 0, "WSUBN must be a multiple of TN: a thread's tile must not leave the sub-tile");
static_assert(TM % 4 == 0, "TM must be a multiple of 4: a thread reads its part of A four floats at a time");
static_assert(TN % 4 == 0, "TN must be a multiple of 4: a thread reads its part of B four floats at a time");
static_assert(BK % 4 == 0, "BK must be a multiple of 4: rows of the A tile are loaded four floats at a time");
static_assert(THREADS <= 1024, "a block has 32 * (BM / WM) * (BN / WN) threads, and at most 1024");
static_assert(WMITER * WNITER * TM * TN <= 192, "a thread keeps WMITER * WNITER * TM * TN sums in its 255 registers");

namespace GEMMPROF_STAGE {

// Where this thread's first TM x TN tile starts in the block tile.
__device__ __forceinline__ int warp_tile_row() {
    return threadIdx.x / 32 / (BN / WN) * WM + threadIdx.x % 32 / (WSUBN / TN) * TM;
}
__device__ __forceinline__ int warp_tile_col() {
    return threadIdx.x / 32 % (BN / WN) * WN + threadIdx.x % 32 % (WSUBN / TN) * TN;
}

using WarpSums = float[WMITER][TM][WNITER][TN];

// sums += A tile @ B tile. As[k][row] has rows of LDA floats, Bs[k][column] of LDB.
template <int LDA, int LDB>
__device__ __forceinline__ void multiply_tiles(const float* As, const float* Bs, int thread_row, int thread_col,
                                               WarpSums& sums) {
#pragma unroll
    for (int i = 0; i < BK; ++i) {
        float a[WMITER][TM], b[WNITER][TN];
#pragma unroll
        for (int wm = 0; wm < WMITER; ++wm)
#pragma unroll
            for (int m = 0; m < TM; m += 4)
                *reinterpret_cast<float4*>(&a[wm][m]) =
                    *reinterpret_cast<const float4*>(&As[i * LDA + thread_row + wm * WSUBM + m]);
#pragma unroll
        for (int wn = 0; wn < WNITER; ++wn)
#pragma unroll
            for (int n = 0; n < TN; n += 4)
                *reinterpret_cast<float4*>(&b[wn][n]) =
                    *reinterpret_cast<const float4*>(&Bs[i * LDB + thread_col + wn * WSUBN + n]);
#pragma unroll
        for (int wm = 0; wm < WMITER; ++wm)
#pragma unroll
            for (int wn = 0; wn < WNITER; ++wn)
#pragma unroll
                for (int m = 0; m < TM; ++m)
#pragma unroll
                    for (int n = 0; n < TN; ++n) sums[wm][m][wn][n] += a[wm][m] * b[wn][n];
    }
}

template <bool GUARDED, bool ALIGNED>
__device__ __forceinline__ void store_sums(const WarpSums& sums, int row, int col, int M, int N, float alpha,
                                           float beta, float* C, std::int64_t ldc) {
#pragma unroll
    for (int wm = 0; wm < WMITER; ++wm)
#pragma unroll
        for (int m = 0; m < TM; ++m) {
            const int r = row + wm * WSUBM + m;
#pragma unroll
            for (int wn = 0; wn < WNITER; ++wn)
#pragma unroll
                for (int n = 0; n < TN; n += 4) {
                    const int c = col + wn * WSUBN + n;
                    const float* s = &sums[wm][m][wn][n];
                    gemmprof::store4<GUARDED, ALIGNED>(C + r * ldc + c, float4{s[0], s[1], s[2], s[3]}, alpha, beta,
                                                       r < M, c, N);
                }
        }
}

}  // namespace GEMMPROF_STAGE
