// Stage 6, vectorised loads: global and shared memory move four floats an instruction.
//
// One thing changed against stage 5: every access is a float4. Loads of A and B and stores of C use LDG.128 and
// STG.128; the A tile is transposed on its way into shared memory, so that the TM values a thread needs of it lie side
// by side and come as LDS.128 too. Fewer instructions for the same bytes leaves more issue slots for multiply-adds.
#include "float4.cuh"

constexpr int THREADS = (BM / TM) * (BN / TN);

static_assert(BM % TM == 0, "BM must be a multiple of TM: a thread's tile must not leave the block tile");
static_assert(BN % TN == 0, "BN must be a multiple of TN: a thread's tile must not leave the block tile");
static_assert(TM % 4 == 0, "TM must be a multiple of 4: a thread reads its part of A four floats at a time");
static_assert(TN % 4 == 0, "TN must be a multiple of 4: a thread reads its part of B four floats at a time");
static_assert(BK % 4 == 0, "BK must be a multiple of 4: rows of the A tile are loaded four floats at a time");
static_assert(THREADS <= 1024, "a block has (BM / TM) * (BN / TN) threads, and at most 1024");
static_assert(BM * BK % (4 * THREADS) == 0 && 4 * THREADS % BK == 0, "the threads must load the A tile in whole rows");
static_assert(BK * BN % (4 * THREADS) == 0 && 4 * THREADS % BN == 0, "the threads must load the B tile in whole rows");

namespace GEMMPROF_STAGE {

template <bool GUARDED, bool ALIGNED>
__global__ void __launch_bounds__(THREADS)
    sgemm_vectorized(int M, int N, int K, float alpha, const float* __restrict__ A, std::int64_t lda,
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

    // What this thread computes.
    const int thread_row = thread / (BN / TN) * TM;
    const int thread_col = thread % (BN / TN) * TN;
    float sums[TM][TN] = {};

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
#pragma unroll
        for (int i = 0; i < BK; ++i) {
            float a[TM], b[TN];
#pragma unroll
            for (int m = 0; m < TM; m += 4)
                *reinterpret_cast<float4*>(&a[m]) = *reinterpret_cast<const float4*>(&As[i * BM + thread_row + m]);
#pragma unroll
            for (int n = 0; n < TN; n += 4)
                *reinterpret_cast<float4*>(&b[n]) = *reinterpret_cast<const float4*>(&Bs[i * BN + thread_col + n]);
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
        for (int n = 0; n < TN; n += 4)
            gemmprof::store4<GUARDED, ALIGNED>(C + m * ldc + n,
                                               float4{sums[m][n], sums[m][n + 1], sums[m][n + 2], sums[m][n + 3]},
                                               alpha, beta, row + m < M, col + n, N);
}

const gemmprof::Kernel kernels[] = {
    {"whole tiles", sgemm_vectorized<false, true>, THREADS, BM, BN},
    {"any shape, aligned", sgemm_vectorized<true, true>, THREADS, BM, BN},
    {"any shape", sgemm_vectorized<true, false>, THREADS, BM, BN},
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    const int choice = !gemmprof::fits_16_bytes(gemm) ? 2 : gemmprof::fits_tiles(gemm, BM, BN, BK) ? 0 : 1;
    return gemmprof::launch_kernel(kernels[choice], gemm, stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
