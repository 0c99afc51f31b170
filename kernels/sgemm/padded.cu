// Stage 8, bank conflicts avoided by an offset: a few unused floats shift what would meet in one bank.
// Stage 9, autotuned tile sizes: this very source with the numbers that a search found (`gemmprof tune --stage 9`).
//
// One thing changed against stage 6: where an element lies in shared memory. Every 32 columns of B are followed by four
// floats of padding, so that threads whose columns lie 32 apart read from different banks; every row of the A tile is
// followed by PAD floats, so that the threads which share a row of A store to different banks. Against stage 7 the
// index arithmetic is simpler and costs a little shared memory instead.
//
// To let the search wander, the tiles are loaded by loops that take any number of threads, and MIN_BLOCKS asks the
// compiler for few enough registers that so many blocks fit an SM (0: it may use what it likes).
#include "float4.cuh"

constexpr int THREADS = (BM / TM) * (BN / TN);

static_assert(BM % TM == 0, "BM must be a multiple of TM: a thread's tile must not leave the block tile");
static_assert(BN % TN == 0, "BN must be a multiple of TN: a thread's tile must not leave the block tile");
static_assert(TM % 4 == 0, "TM must be a multiple of 4: a thread reads its part of A four floats at a time");
static_assert(TN % 4 == 0, "TN must be a multiple of 4: a thread reads its part of B four floats at a time");
static_assert(BK % 4 == 0, "BK must be a multiple of 4: rows of the A tile are loaded four floats at a time");
static_assert(BN % 32 == 0, "BN must be a multiple of 32: padding follows every 32 columns of B");
static_assert(PAD % 4 == 0, "PAD must be a multiple of 4: rows of the A tile start on 16 bytes");
static_assert(THREADS >= 32, "a block has (BM / TM) * (BN / TN) threads, and at least one warp");
static_assert(THREADS <= 1024, "a block has (BM / TM) * (BN / TN) threads, and at most 1024");
static_assert(THREADS % 32 == 0, "a block has (BM / TM) * (BN / TN) threads, and whole warps");
static_assert(BM * BK % (4 * THREADS) == 0, "BM * BK must be a multiple of 4 * THREADS: all threads load as much of A");
static_assert(BK * BN % (4 * THREADS) == 0, "BK * BN must be a multiple of 4 * THREADS: all threads load as much of B");
static_assert(TM * TN <= 192, "a thread keeps TM * TN sums in its 255 registers");
static_assert(MIN_BLOCKS * THREADS * (TM * TN + 24) <= 65536,
              "MIN_BLOCKS blocks must find registers for their sums in an SM's 65,536");

constexpr int LDA = BM + PAD;
constexpr int LDB = BN + BN / 32 * 4;

static_assert(4 * BK * (LDA + LDB) <= 49152, "the tiles must fit the 48 KiB that a block can declare statically");

namespace GEMMPROF_STAGE {

#define SGEMM GEMMPROF_PASTE(sgemm_, GEMMPROF_STAGE)

// Where a row of the B tile keeps a column.
__device__ __forceinline__ int b_position(int column) { return column + column / 32 * 4; }

template <bool GUARDED, bool ALIGNED>
__global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    SGEMM(int M, int N, int K, float alpha, const float* __restrict__ A, std::int64_t lda, const float* __restrict__ B,
          std::int64_t ldb, float beta, float* __restrict__ C, std::int64_t ldc) {
    __shared__ __align__(16) float As[BK * LDA];  // transposed: As[k][row]
    __shared__ __align__(16) float Bs[BK * LDB];

    const int thread = threadIdx.x;
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
    A += block_row * lda;
    B += block_col;

    // What this thread computes.
    const int thread_row = thread / (BN / TN) * TM;
    const int thread_col = thread % (BN / TN) * TN;
    float sums[TM][TN] = {};

    for (int k = 0; k < K; k += BK) {
#pragma unroll
        for (int i = 0; i < BM * BK / 4; i += THREADS) {
            const int row = (thread + i) / (BK / 4), col = (thread + i) % (BK / 4) * 4;
            const float4 a = gemmprof::load4<GUARDED, ALIGNED>(A + row * lda + col, block_row + row < M, k + col, K);
            As[(col + 0) * LDA + row] = a.x;
            As[(col + 1) * LDA + row] = a.y;
            As[(col + 2) * LDA + row] = a.z;
            As[(col + 3) * LDA + row] = a.w;
        }
#pragma unroll
        for (int i = 0; i < BK * BN / 4; i += THREADS) {
            const int row = (thread + i) / (BN / 4), col = (thread + i) % (BN / 4) * 4;
            *reinterpret_cast<float4*>(&Bs[row * LDB + b_position(col)]) =
                gemmprof::load4<GUARDED, ALIGNED>(B + row * ldb + col, k + row < K, block_col + col, N);
        }
        __syncthreads();
        A += BK;
        B += BK * ldb;
#pragma unroll
        for (int i = 0; i < BK; ++i) {
            float a[TM], b[TN];
#pragma unroll
            for (int m = 0; m < TM; m += 4)
                *reinterpret_cast<float4*>(&a[m]) = *reinterpret_cast<const float4*>(&As[i * LDA + thread_row + m]);
#pragma unroll
            for (int n = 0; n < TN; n += 4)
                *reinterpret_cast<float4*>(&b[n]) =
                    *reinterpret_cast<const float4*>(&Bs[i * LDB + b_position(thread_col + n)]);
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
    {"whole tiles", SGEMM<false, true>, THREADS, BM, BN},
    {"any shape, aligned", SGEMM<true, true>, THREADS, BM, BN},
    {"any shape", SGEMM<true, false>, THREADS, BM, BN},
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    const int choice = !gemmprof::fits_16_bytes(gemm) ? 2 : gemmprof::fits_tiles(gemm, BM, BN, BK) ? 0 : 1;
    return gemmprof::launch_kernel(kernels[choice], gemm, stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
