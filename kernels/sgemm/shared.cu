// Stage 3, shared-memory tiling: a block stages a TILE x TILE piece of A and of B in shared memory.
//
// One thing changed against stage 2: a thread reads A and B from shared memory, where the whole block put them once,
// so each element loaded from global memory is used TILE times. TILE is a parameter because it teaches something
// about occupancy: with 32 a block has 1024 threads and only whole blocks fit an SM, with 16 it has 256.
#include <type_traits>

#include "gemm.cuh"

static_assert(TILE * TILE <= 1024, "a block has TILE x TILE threads, and at most 1024");

namespace GEMMPROF_STAGE {

template <bool GUARDED>
__global__ void sgemm_shared(int M, int N, int K, float alpha, const float* __restrict__ A, std::int64_t lda,
                             const float* __restrict__ B, std::int64_t ldb, float beta, float* __restrict__ C,
                             std::int64_t ldc) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE];

    const int thread_row = threadIdx.x / TILE;
    const int thread_col = threadIdx.x % TILE;
    const int row = blockIdx.x * TILE + thread_row;
    const int col = blockIdx.y * TILE + thread_col;

    // From a tile of B to the one below. Of 32 bits for whole tiles: ptxas then lets a warp arrive at the barrier with
    // its last products still to be added, 1.5 % faster than behind them.
    const std::conditional_t<GUARDED, std::int64_t, unsigned> step_b = TILE * ldb;

    A += row * lda + thread_col;
    B += thread_row * ldb + col;
    float sum = 0.0f;
    for (int k = 0; k < K; k += TILE) {
        As[thread_row][thread_col] = gemmprof::load<GUARDED>(A, row < M && k + thread_col < K);
        Bs[thread_row][thread_col] = gemmprof::load<GUARDED>(B, k + thread_row < K && col < N);
        __syncthreads();
        A += TILE;
        B += step_b;
        for (int i = 0; i < TILE; ++i) sum += As[thread_row][i] * Bs[i][thread_col];
        // No thread may overwrite the tile while another still reads it.
        __syncthreads();
    }
    if (!GUARDED || (row < M && col < N)) gemmprof::store(C + row * ldc + col, sum, alpha, beta);
}

const gemmprof::Kernel kernels[] = {
    {"whole tiles", sgemm_shared<false>, TILE* TILE, TILE, TILE, 0, gemmprof::Raster::kDownColumns},
    {"any shape", sgemm_shared<true>, TILE* TILE, TILE, TILE, 0, gemmprof::Raster::kDownColumns},
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    const bool whole = gemmprof::fits_tiles(gemm, TILE, TILE, TILE) && gemm.ldb <= 0xFFFFFFFF / TILE;
    return gemmprof::launch_kernel(kernels[whole ? 0 : 1], gemm, stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
