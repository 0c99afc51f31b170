// Stage 11, double buffering: the next tile is on its way while this one is computed.
//
// One thing changed against stage 10: there are two copies of the tiles in shared memory. A thread asks for its part of
// the next tile before the arithmetic and puts it into the other copy afterwards, so the latency of global memory
// passes during the arithmetic, and one barrier a tile is enough. The price: the part on its way waits in registers.
#include "warp_tile.cuh"

static_assert(BM * BK % (4 * THREADS) == 0 && 4 * THREADS % BK == 0, "the threads must load the A tile in whole rows");
static_assert(BK * BN % (4 * THREADS) == 0 && 4 * THREADS % BN == 0, "the threads must load the B tile in whole rows");
static_assert(2 * 4 * BK * (BM + BN) <= 49152, "two copies of the tiles must fit the 48 KiB a block can declare");

namespace GEMMPROF_STAGE {

// What a thread loads: four floats of every A_ROWS-th row of the A tile, and of every B_ROWS-th of the B tile.
constexpr int A_ROWS = 4 * THREADS / BK;
constexpr int B_ROWS = 4 * THREADS / BN;

template <bool GUARDED, bool ALIGNED>
__global__ void __launch_bounds__(THREADS)
    sgemm_double_buffered(int M, int N, int K, float alpha, const float* __restrict__ A, std::int64_t lda,
                          const float* __restrict__ B, std::int64_t ldb, float beta, float* __restrict__ C,
                          std::int64_t ldc) {
    __shared__ __align__(16) float As[2][BK * BM];  // transposed: As[copy][k][row]
    __shared__ __align__(16) float Bs[2][BK * BN];

    const int thread = threadIdx.x;
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
    const int a_row = thread / (BK / 4), a_col = thread % (BK / 4) * 4;
    const int b_row = thread / (BN / 4), b_col = thread % (BN / 4) * 4;
    A += (block_row + a_row) * lda + a_col;
    B += b_row * ldb + block_col + b_col;

    float4 a_next[BM / A_ROWS], b_next[BK / B_ROWS];
    const auto fetch = [&](int k) {
#pragma unroll
        for (int r = 0; r < BM; r += A_ROWS)
            a_next[r / A_ROWS] =
                gemmprof::load4<GUARDED, ALIGNED>(A + r * lda, block_row + a_row + r < M, k + a_col, K);
#pragma unroll
        for (int r = 0; r < BK; r += B_ROWS)
            b_next[r / B_ROWS] =
                gemmprof::load4<GUARDED, ALIGNED>(B + r * ldb, k + b_row + r < K, block_col + b_col, N);
        A += BK;
        B += BK * ldb;
    };
    const auto put = [&](int copy) {
#pragma unroll
        for (int r = 0; r < BM; r += A_ROWS) {
            const float4 a = a_next[r / A_ROWS];
            As[copy][(a_col + 0) * BM + a_row + r] = a.x;
            As[copy][(a_col + 1) * BM + a_row + r] = a.y;
            As[copy][(a_col + 2) * BM + a_row + r] = a.z;
            As[copy][(a_col + 3) * BM + a_row + r] = a.w;
        }
#pragma unroll
        for (int r = 0; r < BK; r += B_ROWS)
            *reinterpret_cast<float4*>(&Bs[copy][(b_row + r) * BN + b_col]) = b_next[r / B_ROWS];
    };

    const int thread_row = warp_tile_row();
    const int thread_col = warp_tile_col();
    WarpSums sums = {};

    if (K > 0) {
        fetch(0);
        put(0);
        __syncthreads();
    }
    int copy = 0;
    for (int k = 0; k < K; k += BK) {
        const bool more = k + BK < K;
        if (more) fetch(k + BK);
        multiply_tiles<BM, BN>(As[copy], Bs[copy], thread_row, thread_col, sums);
        copy ^= 1;
        if (more) put(copy);
        __syncthreads();
    }

    store_sums<GUARDED, ALIGNED>(sums, block_row + thread_row, block_col + thread_col, M, N, alpha, beta, C, ldc);
}

const gemmprof::Kernel kernels[] = {
    {"whole tiles", sgemm_double_buffered<false, true>, THREADS, BM, BN},
    {"any shape, aligned", sgemm_double_buffered<true, true>, THREADS, BM, BN},
    {"any shape", sgemm_double_buffered<true, false>, THREADS, BM, BN},
};

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    const int choice = !gemmprof::fits_16_bytes(gemm) ? 2 : gemmprof::fits_tiles(gemm, BM, BN, BK) ? 0 : 1;
    return gemmprof::launch_kernel(kernels[choice], gemm, stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
