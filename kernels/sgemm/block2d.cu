// Stage 5, 2D block tiling: a thread computes TM x TN elements of C.
//
// One thing changed against stage 4: the thread's tile has two dimensions. At each step along K it reads TM elements of
// A and TN of B into registers and forms their outer product, TM * TN multiply-adds for TM + TN shared loads: with
// 8 x 8 a quarter of a load each.
#include "gemm.cuh"

constexpr int THREADS = (BM / TM) * (BN / TN);

static_assert(BM % TM == 0, "BM must be a multiple of TM: a thread's tile must not leave the block tile");
static_assert(BN % TN == 0, "BN must be a multiple of TN: a thread's tile must not leave the block tile");
static_assert(THREADS <= 1024, "a block has (BM / TM) * (BN / TN) threads, and at most 1024");
static_assert(BM * BK % THREADS == 0 && THREADS % BK == 0, "the threads must load the A tile in whole rows of BK");
static_assert(BK * BN % THREADS == 0 && THREADS % BN == 0, "the threads must load the B tile in whole rows of BN");

namespace GEMMPROF_STAGE {

template <bool GUARDED>
__global__ void __launch_bounds__(THREADS)
    sgemm_block2d(int M, int N, int K, float alpha, const float* __restrict__ A, std::int64_t lda,
                  const float* __restrict__ B, std::int64_t ldb, float beta, float* __restrict__ C, std::int64_t ldc) {
    __shared__ float As[BM * BK];
    __shared__ float Bs[BK * BN];

    const int thread = threadIdx.x;
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;

    // What this thread loads: one element of every A_ROWS-th row of the A tile, and of every B_ROWS-th of the B tile.
    constexpr int A_ROWS = THREADS / BK;
    constexpr int B_ROWS = THREADS / BN;
    const int a_row = thread / BK, a_col = thread % BK;
    const int b_row = thread / BN, b_col = thread % BN;
    A += (block_row + a_row) * lda + a_col;
    B += b_row * ldb + block_col + b_col;

    // What this thread computes.
    const int thread_row = thread / (BN / TN) * TM;
    const int thread_col = thread % (BN / TN) * TN;
    float sums[TM][TN] = {};

    for (int k = 0; k < K; k += BK) {
#pragma unroll
        for (int r = 0; r < BM; r += A_ROWS)
            As[(a_row + r) * BK + a_col] =
                gemmprof::load<GUARDED>(A + r * lda, block_row + a_row + r < M && k + a_col < K);
#pragma unroll
        for (int r = 0; r < BK; r += B_ROWS)
            Bs[(b_row + r) * BN + b_col] =
                gemmprof::load<GUARDED>(B + r * ldb, k + b_row + r < K && block_col + b_col < N);
        __syncthreads();
        A += BK;
        B += BK * ldb;
#pragma unroll
        for (int i = 0; i < BK; ++i) {
            float a[TM], b[TN];
#pragma unroll
            for (int m = 0; m < TM; ++m) a[m] = As[(thread_row + m) * BK + i];
#pragma unroll
            for (int n = 0; n < TN; ++n) b[n] = Bs[i * BN + thread_col + n];
#pragma unroll
            for (int m = 0; m < TM; ++m)
#pragma unroll
                for (int n = 0; n < TN; ++n) sums[m][n] += a[m] * b[n];
        }
        __syncthreads();
    }

    const int row = block_row + thread_row;
    const int col = block_col + thread_col;
    C += row * ldc + col;
#pragma unroll
    for (int m = 0; m < TM; ++m)
#pragma unroll
        for (int n = 0; n < TN; ++n)
            if (!GUARDED || (row + m < M && col + n < N)) gemmprof::store(C + m * ldc + n, sums[m][n], alpha, beta);
}

const gemmprof::Kernel kernels[] = {
    {"whole tiles", sgemm_block2d<false>, THREADS, BM, BN},
    {"any shape", sgemm_block2d<true>, THREADS, BM, BN},
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    return gemmprof::launch_kernel(kernels[gemmprof::fits_tiles(gemm, BM, BN, BK) ? 0 : 1], gemm, stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
