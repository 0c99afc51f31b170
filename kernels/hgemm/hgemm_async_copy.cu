// Stage 4, 16-bit pipeline of asynchronous copies: tiles are on their way while others are multiplied.
//
// One thing changed against stage 3: cp.async copies the tiles past the registers, STAGES - 1 steps ahead. A step has
// one barrier instead of two, and its first fragments are loaded while the last ones of the step before are multiplied.
#include "mma_tile.cuh"

constexpr int STAGE_BYTES = A_BYTES + B_BYTES;

static_assert(STAGES >= 2, "STAGES must be at least 2: one tile is computed while another is copied");
static_assert(STAGES * 2 * BK * (BM + BN) <= 101376, "STAGES tiles must fit 99 KiB of shared memory");

namespace GEMMPROF_STAGE {

template <class T>
__global__ void __launch_bounds__(THREADS, blocks_of_an_sm())
    hgemm_async_copy(int M, int N, int K, const T* __restrict__ A, std::int64_t lda, const T* __restrict__ B,
                     std::int64_t ldb, gemmprof::Output out) {
    extern __shared__ __align__(128) unsigned char shared[];
    const unsigned tiles = gemmprof::ptx::shared_address(shared);

    const int tiles_n = gemmprof::ceil_div(N, BN);
    const int block_row = int(blockIdx.x / tiles_n) * BM, block_col = int(blockIdx.x % tiles_n) * BN;
    WarpSums sums = {};

    // Starts copying the tiles at k into a stage; a step past the end of K is an empty group, so that groups count
    // steps.
    const auto copy_tiles = [&](int stage, int k) {
        const unsigned a_tile = tiles + stage * STAGE_BYTES, b_tile = a_tile + A_BYTES;
        if (k < K) {
            for_each_chunk<BM, BK>([&](int row, int col, int to) {
                const bool inside = block_row + row < M && k + col < K;
                gemmprof::ptx::copy_async(a_tile + to, inside ? A + (block_row + row) * lda + k + col : A, inside);
            });
            for_each_chunk<BK, BN>([&](int row, int col, int to) {
                const bool inside = k + row < K && block_col + col < N;
                gemmprof::ptx::copy_async(b_tile + to, inside ? B + (k + row) * ldb + block_col + col : B, inside);
            });
        }
        gemmprof::ptx::copy_async_commit();
    };

#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) copy_tiles(stage, stage * BK);
    // This thread's part of the first tiles has arrived; the barrier says so of the others.
    gemmprof::ptx::copy_async_wait<STAGES - 2>();
    __syncthreads();
    Fragments fragments[2];
    fragments[0].load(tiles, tiles + A_BYTES, 0);
    int stage = 0;
    for (int k = 0; k < K; k += BK) {
        // The barrier at the end of the last step also said that all have read the stage before this one.
        copy_tiles(stage == 0 ? STAGES - 1 : stage - 1, k + (STAGES - 1) * BK);
#pragma unroll
        for (int step = 0; step < K_STEPS; ++step) {
            if (step + 1 == K_STEPS) {
                gemmprof::ptx::copy_async_wait<STAGES - 2>();
                __syncthreads();
                stage = stage + 1 == STAGES ? 0 : stage + 1;
            }
            // After the last step, the first fragments of the next tiles; past the end of K, of what nobody multiplies.
            const unsigned a_tile = tiles + stage * STAGE_BYTES;
            fragments[(step + 1) % 2].load(a_tile, a_tile + A_BYTES, (step + 1) % K_STEPS);
            fragments[step % 2].multiply<T>(sums);
        }
    }
    store_sums<T>(sums, block_row, block_col, out);
}

const gemmprof::KernelFacts kernels[] = {
    {"float16", gemmprof::address(hgemm_async_copy<__half>), THREADS, STAGES * STAGE_BYTES},
    {"bfloat16", gemmprof::address(hgemm_async_copy<__nv_bfloat16>), THREADS, STAGES * STAGE_BYTES},
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    return gemmprof::run_half(gemm, stream, {false, false}, [](const gemmprof::Gemm& g, cudaStream_t on) {
        const unsigned blocks = unsigned(gemmprof::ceil_div(g.m, BM)) * gemmprof::ceil_div(g.n, BN);
        return gemmprof::launch_kernel(kernels[gemmprof::half_index(g)], blocks, 1, on, g.m, g.n, g.k, g.a, g.lda, g.b,
                                       g.ldb, gemmprof::output_of(g));
    });
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
