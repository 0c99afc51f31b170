// Stage 7, bank conflicts avoided by a linearised layout: shared memory holds the tiles in the order they are read.
//
// One thing changed against stage 6: where an element lies in shared memory. There, a thread's TN = 8 columns of B lie
// side by side, so that of the eight threads whose 16-byte reads are served together four pairs meet in one bank; and
// the two threads that share a row of A store into one bank. Here the first four columns of all threads come first,
// then the next four, each part turned by a few groups so that the stores spread over the banks too.
#include "float4.cuh"

constexpr int THREADS = (BM / TM) * (BN / TN);

static_assert(BM % TM == 0, "BM must be a multiple of TM: a thread's tile must not leave the block tile");
static_assert(BN % TN == 0, "BN must be a multiple of TN: a thread's tile must not leave the block tile");
static_assert(TM % 4 == 0, "TM must be a multiple of 4: a thread reads its part of A four floats at a time");
static_assert(TN % 4 == 0, "TN must be a multiple of 4: a thread reads its part of B four floats at a time");
static_assert(BM % 32 == 0, "BM must be a multiple of 32: rows swap halves of 32 banks");
static_assert(BK % 4 == 0, "BK must be a multiple of 4: rows of the A tile are loaded four floats at a time");
static_assert(THREADS <= 1024, "a block has (BM / TM) * (BN / TN) threads, and at most 1024");
static_assert(BM * BK % (4 * THREADS) == 0 && 4 * THREADS % BK == 0, "the threads must load the A tile in whole rows");
static_assert(BK * BN % (4 * THREADS) == 0 && 4 * THREADS % BN == 0, "the threads must load the B tile in whole rows");

namespace GEMMPROF_STAGE {

// A group is four floats, 16 bytes; eight groups fill the 32 banks once.
constexpr int PARTS = TN / 4;
static_assert(8 % PARTS == 0, "TN must be 4, 8, 16 or 32: the parts of a thread's columns share out eight bank groups");

// Where a B tile's row keeps the group of columns 4 * group ..: parts of all threads side by side, part p turned by
// p * 8 / PARTS groups.
__device__ __forceinline__ int b_position(int group) {
    const int part = group % PARTS, owner = group / PARTS;
    return 4 * (part * (BN / TN) + (owner + part * (8 / PARTS)) % (BN / TN));
}

// Where row k of the A tile keeps a row of A: the other half of the banks for every second group of four k.
__device__ __forceinline__ int a_position(int k, int row) { return row ^ (k / 4 % 2 * 16); }

template <bool GUARDED, bool ALIGNED>
__global__ void __launch_bounds__(THREADS)
    sgemm_linearized(int M, int N, int K, float alpha, const float* __restrict__ A, std::int64_t lda,
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
            As[(a_col + 0) * BM + a_position(a_col, a_row + r)] = a.x;
            As[(a_col + 1) * BM + a_position(a_col, a_row + r)] = a.y;
            As[(a_col + 2) * BM + a_position(a_col, a_row + r)] = a.z;
            As[(a_col + 3) * BM + a_position(a_col, a_row + r)] = a.w;
        }
#pragma unroll
        for (int r = 0; r < BK; r += B_ROWS)
            *reinterpret_cast<float4*>(&Bs[(b_row + r) * BN + b_position(b_col / 4)]) =
                gemmprof::load4<GUARDED, ALIGNED>(B + r * ldb, k + b_row + r < K, block_col + b_col, N);
        __syncthreads();
        A += BK;
        B += BK * ldb;
#pragma unroll
        for (int i = 0; i < BK; ++i) {
            float a[TM], b[TN];
#pragma unroll
            for (int m = 0; m < TM; m += 4)
                *reinterpret_cast<float4*>(&a[m]) =
                    *reinterpret_cast<const float4*>(&As[i * BM + a_position(i, thread_row + m)]);
#pragma unroll
            for (int n = 0; n < TN; n += 4)
                *reinterpret_cast<float4*>(&b[n]) =
                    *reinterpret_cast<const float4*>(&Bs[i * BN + b_position((thread_col + n) / 4)]);
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
    {"whole tiles", sgemm_linearized<false, true>, THREADS, BM, BN},
    {"any shape, aligned", sgemm_linearized<true, true>, THREADS, BM, BN},
    {"any shape", sgemm_linearized<true, false>, THREADS, BM, BN},
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    const int choice = !gemmprof::fits_16_bytes(gemm) ? 2 : gemmprof::fits_tiles(gemm, BM, BN, BK) ? 0 : 1;
    return gemmprof::launch_kernel(kernels[choice], gemm, stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
