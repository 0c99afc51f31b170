// Stage 2, coalesced: neighbouring threads take neighbouring COLUMNS of C.
//
// One thing changed against stage 1: % and / swapped places in the two lines that give a thread its row and column.
// A warp now reads 32 neighbouring elements of B (four sectors), broadcasts one element of A, and stores 32 neighbours
// of C, because the memory system serves a warp's loads by the sectors they touch and not by the threads that ask.
#include "gemm.cuh"

static_assert(BLOCK * BLOCK <= 1024, "a block has BLOCK x BLOCK threads, and at most 1024");

namespace GEMMPROF_STAGE {

// Index counts the elements of A and B: int where it can, because 64-bit arithmetic for every load costs a fifth of the
// speed of a kernel that does so little else.
template <typename Index>
__global__ void sgemm_coalesced(int M, int N, int K, float alpha, const float* __restrict__ A, std::int64_t lda,
                                const float* __restrict__ B, std::int64_t ldb, float beta, float* __restrict__ C,
                                std::int64_t ldc) {
    const int row = blockIdx.x * BLOCK + threadIdx.x / BLOCK;
    const int col = blockIdx.y * BLOCK + threadIdx.x % BLOCK;
    if (row >= M || col >= N) return;

    const Index a_stride = lda, b_stride = ldb;
    float sum = 0.0f;
    // Unrolled further than the compiler would, so that more loads are on their way.
#pragma unroll 32
    for (int i = 0; i < K; ++i) sum += A[row * a_stride + i] * B[i * b_stride + col];
    gemmprof::store(C + row * ldc + col, sum, alpha, beta);
}

const gemmprof::Kernel kernels[] = {
    {"any shape", sgemm_coalesced<int>, BLOCK* BLOCK, BLOCK, BLOCK, 0, gemmprof::Raster::kDownColumns},
    {"operands of 2^31 elements and more", sgemm_coalesced<std::int64_t>, BLOCK* BLOCK, BLOCK, BLOCK, 0,
     gemmprof::Raster::kDownColumns},
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    return gemmprof::launch_kernel(kernels[gemmprof::fits_int(gemm) ? 0 : 1], gemm, stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
