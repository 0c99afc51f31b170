// Stage 12, asynchronous copies: tiles go from global to shared memory without passing through registers.
//
// One thing changed against stage 11: the copy is made by cp.async (LDGSTS in SASS). It needs no registers while it is
// under way, so STAGES - 1 tiles can be on their way instead of one. A is transposed by the copy, four bytes at a time:
// the 32 threads of a warp take 8 columns x 4 rows, whole 32-byte sectors of global memory. What lies on one 128-byte
// line there is written together, so a copy takes 4 wavefronts; PAD keeps each line's 8 floats in 8 banks, no more.
#include <cuda_pipeline.h>

#include "warp_tile.cuh"

constexpr int LDA = BM + PAD;
constexpr int A_TILE = BK * LDA;
constexpr int B_TILE = BK * BN;
constexpr int SHARED_BYTES = 4 * STAGES * (A_TILE + B_TILE);

static_assert(STAGES >= 2, "STAGES must be at least 2: one tile is computed while another is copied");
static_assert(BK % 8 == 0, "BK must be a multiple of 8: a warp copies 8 columns of A at a time");
static_assert(BM * BK % THREADS == 0 && BM % (THREADS / 8) == 0, "all threads must copy as much of the A tile");
static_assert(BK * BN % (4 * THREADS) == 0, "BK * BN must be a multiple of 4 * THREADS: all threads copy as much of B");
static_assert(PAD % 4 == 0, "PAD must be a multiple of 4: rows of the A tile start on 16 bytes");
static_assert(SHARED_BYTES <= 101376, "STAGES copies of the tiles must fit 99 KiB of shared memory");

namespace GEMMPROF_STAGE {

template <bool GUARDED, bool ALIGNED>
__global__ void __launch_bounds__(THREADS)
    sgemm_async_copy(int M, int N, int K, float alpha, const float* __restrict__ A, std::int64_t lda,
                     const float* __restrict__ B, std::int64_t ldb, float beta, float* __restrict__ C,
                     std::int64_t ldc) {
    extern __shared__ __align__(16) float shared[];
    float* const As = shared;                    // transposed: As[stage][k][row]
    float* const Bs = shared + STAGES * A_TILE;  // Bs[stage][k][column]

    const int thread = threadIdx.x;
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
    A += block_row * lda;
    B += block_col;

    // Starts copying the tile at k into a stage. What lies outside the matrix is filled with zeros.
    const auto copy_tiles = [&](int stage, int k) {
        // A warp's threads form 8 columns x 4 rows; its warps follow each other down the rows.
        const int col = thread % 8, row = thread / 8;
#pragma unroll
        for (int c = 0; c < BK; c += 8)
#pragma unroll
            for (int r = 0; r < BM; r += THREADS / 8) {
                const bool inside = !GUARDED || (block_row + row + r < M && k + col + c < K);
                __pipeline_memcpy_async(&As[stage * A_TILE + (col + c) * LDA + row + r],
                                        A + (row + r) * lda + k + col + c, 4, inside ? 0 : 4);
            }
#pragma unroll
        for (int i = 0; i < BK * BN / 4; i += THREADS) {
            const int row = (thread + i) / (BN / 4), col = (thread + i) % (BN / 4) * 4;
            const float* from = B + (k + row) * ldb + col;
            float* to = &Bs[stage * B_TILE + row * BN + col];
            if constexpr (ALIGNED) {
                const bool inside = !GUARDED || (k + row < K && block_col + col < N);
                __pipeline_memcpy_async(to, from, 16, inside ? 0 : 16);
            } else {
#pragma unroll
                for (int n = 0; n < 4; ++n)
                    __pipeline_memcpy_async(to + n, from + n, 4, k + row < K && block_col + col + n < N ? 0 : 4);
            }
        }
    };

    const int thread_row = warp_tile_row();
    const int thread_col = warp_tile_col();
    WarpSums sums = {};

#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        if (stage * BK < K) copy_tiles(stage, stage * BK);
        __pipeline_commit();
    }
    int stage = 0;
    for (int k = 0; k < K; k += BK) {
        // This thread's part of the tile at k has arrived; the barrier says so of the others, and that all have
        // finished with the stage computed last, which the next copy overwrites.
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        const int ahead = k + (STAGES - 1) * BK;
        if (ahead < K) copy_tiles(stage == 0 ? STAGES - 1 : stage - 1, ahead);
        __pipeline_commit();
        multiply_tiles<LDA, BN>(As + stage * A_TILE, Bs + stage * B_TILE, thread_row, thread_col, sums);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }

    store_sums<GUARDED, ALIGNED>(sums, block_row + thread_row, block_col + thread_col, M, N, alpha, beta, C, ldc);
}

const gemmprof::Kernel kernels[] = {
    {"whole tiles", sgemm_async_copy<false, true>, THREADS, BM, BN, SHARED_BYTES},
    {"any shape, aligned", sgemm_async_copy<true, true>, THREADS, BM, BN, SHARED_BYTES},
    {"any shape", sgemm_async_copy<true, false>, THREADS, BM, BN, SHARED_BYTES},
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    const int choice = !gemmprof::fits_16_bytes(gemm) ? 2 : gemmprof::fits_tiles(gemm, BM, BN, BK) ? 0 : 1;
    return gemmprof::launch_kernel(kernels[choice], gemm, stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
