// Stage 10, warp tiling: a level between the block and the thread.
//
// One thing changed against stage 9: the block's tile is divided among its warps before it is divided among threads. A
// warp computes WM x WN elements as WMITER x WNITER sub-tiles of WSUBM x WSUBN, and a thread TM x TN of each sub-tile.
// A warp's threads then read neighbouring pieces of the same rows of shared memory, which the hardware serves as
// broadcasts without bank conflicts, and what a thread has read into registers serves all of its sub-tiles.
#include "float4.cuh"

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int WMITER = WM * WN / (32 * TM * TN * WNITER);
constexpr int WSUBM = WM / (WMITER > 0 ? WMITER : 1);
constexpr int WSUBN = WN / WNITER;

static_assert(BM % WM == 0, "BM must be a multiple of WM: whole warp tiles fill the block tile");
static_assert(BN % WN == 0, "BN must be a multiple of WN: whole warp tiles fill the block tile");
static_assert(WMITER >= 1 && WM * WN == 32 * TM * TN * WMITER * WNITER,
              "WM * WN must be a multiple of 32 * TM * TN * WNITER: 32 threads fill each sub-tile of a warp tile");
static_assert(WM % WMITER == 0, "WM must be a multiple of WMITER: whole sub-tiles fill the warp tile");
static_assert(WN % WNITER == 0, "WN must be a multiple of WNITER: whole sub-tiles fill the warp tile");
static_assert(WSUBM % TM == 0, "WSUBM must be a multiple of TM: a thread's tile must not leave the sub-tile");
static_assert(WSUBN % TN == 0, "WSUBN must be a multiple of TN: a thread's tile must not leave the sub-tile");
static_assert((WSUBM / TM) * (WSUBN / TN) == 32, "a sub-tile must hold the tiles of 32 threads");
static_assert(TM % 4 == 0, "TM must be a multiple of 4: a thread reads its part of A four floats at a time");
static_assert(TN % 4 == 0, "TN must be a multiple of 4: a thread reads its part of B four floats at a time");
static_assert(BK % 4 == 0, "BK must be a multiple of 4: rows of the A tile are loaded four floats at a time");
static_assert(THREADS <= 1024, "a block has 32 * (BM / WM) * (BN / WN) threads, and at most 1024");
static_assert(BM * BK % (4 * THREADS) == 0 && 4 * THREADS % BK == 0, "the threads must load the A tile in whole rows");
static_assert(BK * BN % (4 * THREADS) == 0 && 4 * THREADS % BN == 0, "the threads must load the B tile in whole rows");

namespace GEMMPROF_STAGE {

template <bool GUARDED, bool ALIGNED>
__global__ void __launch_bounds__(THREADS)
    sgemm_warptiled(int M, int N, int K, float alpha, const float* __restrict__ A, std::int64_t lda,
                    const float* __restrict__ B, std::int64_t ldb, float beta, float* __restrict__ C,
                    std::int64_t ldc) {
    __shared__ __align__(16) float As[BK * BM];  // transposed: As[k][row]
    __shared__ __align__(16) float Bs[BK * BN];

    const int thread = threadIdx.x;
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;

    // What this thread loads: four floats of every A_ROWS-th row of the A tile, and of every B_ROWS-th of the B tile.
    constexpr int A_ROWS = 4 * THREADS / BK;
    constexpr int B_ROWS = 4 * THREADS / BN;
    const int a_row = thread / (BK / 4), a_col = thread % (BK / 4) * 4;
    const int b_row = thread / (BN / 4), b_col = thread % (BN / 4) * 4;
    A += (block_row + a_row) * lda + a_col;
    B += b_row * ldb + block_col + b_col;

    // What this thread computes: TM x TN at the same place of every sub-tile of its warp's tile.
    const int warp = thread / 32, lane = thread % 32;
    const int thread_row = warp / (BN / WN) * WM + lane / (WSUBN / TN) * TM;
    const int thread_col = warp % (BN / WN) * WN + lane % (WSUBN / TN) * TN;
    float sums[WMITER][TM][WNITER][TN] = {};

    for (int k = 0; k < K; k += BK) {
#pragma unroll
        for (int r = 0; r < BM; r += A_ROWS) {
            const float4 a =
                gemmprof::load4<GUARDED, ALIGNED>(A + r * lda, block_row + a_row + r < M, k + a_col, K);
            As[(a_col + 0) * BM + a_row + r] = a.x;
            As[(a_col + 1) * BM + a_row + r] = a.y;
            As[(a_col + 2) * BM + a_row + r] = a.z;
            As[(a_col + 3) * BM + a_row + r] = a.w;
        }
#pragma unroll
        for (int r = 0; r < BK; r += B_ROWS)
            *reinterpret_cast<float4*>(&Bs[(b_row + r) * BN + b_col]) =
                gemmprof::load4<GUARDED, ALIGNED>(B + r * ldb, k + b_row + r < K, block_col + b_col, N);
        __syncthreads();
        A += BK;
        B += BK * ldb;
#pragma unroll
        for (int i = 0; i < BK; ++i) {
            float a[WMITER][TM], b[WNITER][TN];
#pragma unroll
            for (int wm = 0; wm < WMITER; ++wm)
#pragma unroll
                for (int m = 0; m < TM; m += 4)
                    *reinterpret_cast<float4*>(&a[wm][m]) =
                        *reinterpret_cast<const float4*>(&As[i * BM + thread_row + wm * WSUBM + m]);
#pragma unroll
            for (int wn = 0; wn < WNITER; ++wn)
#pragma unroll
                for (int n = 0; n < TN; n += 4)
                    *reinterpret_cast<float4*>(&b[wn][n]) =
                        *reinterpret_cast<const float4*>(&Bs[i * BN + thread_col + wn * WSUBN + n]);
#pragma unroll
            for (int wm = 0; wm < WMITER; ++wm)
#pragma unroll
                for (int wn = 0; wn < WNITER; ++wn)
#pragma unroll
                    for (int m = 0; m < TM; ++m)
#pragma unroll
                        for (int n = 0; n < TN; ++n) sums[wm][m][wn][n] += a[wm][m] * b[wn][n];
        }
        __syncthreads();
    }

#pragma unroll
    for (int wm = 0; wm < WMITER; ++wm)
#pragma unroll
        for (int m = 0; m < TM; ++m) {
            const int row = block_row + thread_row + wm * WSUBM + m;
#pragma unroll
            for (int wn = 0; wn < WNITER; ++wn)
#pragma unroll
                for (int n = 0; n < TN; n += 4) {
                    const int col = block_col + thread_col + wn * WSUBN + n;
                    const float* s = &sums[wm][m][wn][n];
                    gemmprof::store4<GUARDED, ALIGNED>(C + row * ldc + col, float4{s[0], s[1], s[2], s[3]}, alpha,
                                                       beta, row < M, col, N);
                }
        }
}

const gemmprof::Kernel kernels[] = {
    {"whole tiles", sgemm_warptiled<false, true>, THREADS, BM, BN},
    {"any shape, aligned", sgemm_warptiled<true, true>, THREADS, BM, BN},
    {"any shape", sgemm_warptiled<true, false>, THREADS, BM, BN},
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    const int choice = !gemmprof::fits_float4(gemm) ? 2 : gemmprof::fits_tiles(gemm, BM, BN, BK) ? 0 : 1;
    return gemmprof::launch_kernel(kernels[choice], gemm, stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
