// Stage 4, 1D block tiling: a thread computes a column of TM elements of C.
//
// One thing changed against stage 3: a thread keeps TM sums in registers. It reads an element of B from shared memory
// once and uses it TM times, so it needs about half as many shared loads for a multiply-add: (TM + 1) / TM instead of
// two. Stage 3 spends its time waiting for shared memory; this is the first step away from it.
#include "gemm.cuh"

constexpr int THREADS = BM * BN / TM;

static_assert(BM % TM == 0, "BM must be a multiple of TM: a thread's column of TM rows must not leave the block tile");
static_assert(THREADS == BM * BK, "BN / TM must equal BK: each thread loads one element of the A tile");
static_assert(THREADS == BK * BN, "BM / TM must equal BK: each thread loads one element of the B tile");
static_assert(THREADS <= 1024, "a block has BM * BN / TM threads, and at most 1024");

namespace GEMMPROF_STAGE {

template <bool GUARDED>
__global__ void __launch_bounds__(THREADS)
    sgemm_block1d(int M, int N, int K, float alpha, const float* __restrict__ A, std::int64_t lda,
                  const float* __restrict__ B, std::int64_t ldb, float beta, float* __restrict__ C, std::int64_t ldc) {
    __shared__ float As[BM * BK];
    __shared__ float Bs[BK * BN];

    const int thread = threadIdx.x;
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;

    // What this thread loads.
    const int a_row = thread / BK, a_col = thread % BK;
    const int b_row = thread / BN, b_col = thread % BN;
    A += (block_row + a_row) * lda + a_col;
    B += b_row * ldb + block_col + b_col;

    // What this thread computes: rows thread_row .. thread_row + TM - 1 of one column.
    const int thread_row = thread / BN * TM;
    const int thread_col = thread % BN;
    float sums[TM] = {};

    for (int k = 0; k < K; k += BK) {
        As[a_row * BK + a_col] = gemmprof::load<GUARDED>(A, block_row + a_row < M && k + a_col < K);
        Bs[b_row * BN + b_col] = gemmprof::load<GUARDED>(B, k + b_row < K && block_col + b_col < N);
        __syncthreads();
        A += BK;
        B += BK * ldb;
#pragma unroll
        for (int i = 0; i < BK; ++i) {
            const float b = Bs[i * BN + thread_col];
#pragma unroll
            for (int m = 0; m < TM; ++m) sums[m] += As[(thread_row + m) * BK + i] * b;
        }
        __syncthreads();
    }

    const int row = block_row + thread_row;
    const int col = block_col + thread_col;
    C += row * ldc + col;
#pragma unroll
    for (int m = 0; m < TM; ++m)
        if (!GUARDED || (row + m < M && col < N)) gemmprof::store(C + m * ldc, sums[m], alpha, beta);
}

const gemmprof::Kernel kernels[] = {
    {"whole tiles", sgemm_block1d<false>, THREADS, BM, BN},
    {"any shape", sgemm_block1d<true>, THREADS, BM, BN},
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    return gemmprof::launch_kernel(kernels[gemmprof::fits_tiles(gemm, BM, BN, BK) ? 0 : 1], gemm, stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
