// Stage 10, warp tiling: a level between the block and the thread.
//
// One thing changed against stage 9: the block's tile is divided among its warps before it is divided among threads
// (warp_tile.cuh). A warp's threads then read neighbouring pieces of the same rows of shared memory, which the hardware
// serves as broadcasts without bank conflicts, and what a thread has read into registers serves all of its sub-tiles.
#include "warp_tile.cuh"

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

    const int thread_row = warp_tile_row();
    const int thread_col = warp_tile_col();
    WarpSums sums = {};

    for (int k = 0; k < K; k += BK) {
#pragma unroll
        for (int r = 0; r < BM; r += A_ROWS) {
            const float4 a = gemmprof::load4<GUARDED, ALIGNED>(A + r * lda, block_row + a_row + r < M, k + a_col, K);
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
        multiply_tiles<BM, BN>(As, Bs, thread_row, thread_col, sums);
        __syncthreads();
    }

    store_sums<GUARDED, ALIGNED>(sums, block_row + thread_row, block_col + thread_col, M, N, alpha, beta, C, ldc);
}

const gemmprof::Kernel kernels[] = {
    {"whole tiles", sgemm_warptiled<false, true>, THREADS, BM, BN},
    {"any shape, aligned", sgemm_warptiled<true, true>, THREADS, BM, BN},
    {"any shape", sgemm_warptiled<true, false>, THREADS, BM, BN},
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    const int choice = !gemmprof::fits_16_bytes(gemm) ? 2 : gemmprof::fits_tiles(gemm, BM, BN, BK) ? 0 : 1;
    return gemmprof::launch_kernel(kernels[choice], gemm, stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
