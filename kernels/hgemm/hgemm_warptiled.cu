// Stage 1, 16-bit warp tiling without tensor cores: where 16 bits save bandwidth and nothing else.
//
// The arithmetic is that of the FP32 ladder's warp tiling (warp_tile.cuh), one FFMA a product. What changed: A and B
// move eight elements in 16 bytes, half of FP32's traffic, and become float32 in registers on their way into shared
// memory, once an element and block. The roof is the FP32 pipe's, which is why the next stage leaves it.
#include "../include/warp_tile.cuh"
#include "../include/hgemm.cuh"

static_assert(BK % 8 == 0, "BK must be a multiple of 8: a row of the A tile is loaded eight elements at a time");
static_assert(BM * BK % (8 * THREADS) == 0, "the threads must load equal parts of the A tile");
static_assert(BK * BN % (8 * THREADS) == 0, "the threads must load equal parts of the B tile");
static_assert(BK * (BM + BN) * 4 <= 49152, "the tiles must fit 48 KiB of shared memory as float32");

namespace GEMMPROF_STAGE {

using gemmprof::CHUNK;

// Eight neighbouring elements as float32, zeros where `inside` is false.
template <class T>
__device__ __forceinline__ void load_chunk(float (&values)[CHUNK], const T* from, bool inside) {
    uint4 bits = {};
    if (inside) bits = *reinterpret_cast<const uint4*>(from);
    const T* const elements = reinterpret_cast<const T*>(&bits);
#pragma unroll
    for (int i = 0; i < CHUNK; ++i) values[i] = gemmprof::to_float(elements[i]);
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    hgemm_warptiled(int M, int N, int K, const T* __restrict__ A, std::int64_t lda, const T* __restrict__ B,
                    std::int64_t ldb, gemmprof::Output out) {
    __shared__ __align__(16) float As[BK * BM];  // transposed: As[k][row]
    __shared__ __align__(16) float Bs[BK * BN];

    const int tiles_n = gemmprof::ceil_div(N, BN);
    const int block_row = int(blockIdx.x / tiles_n) * BM, block_col = int(blockIdx.x % tiles_n) * BN;
    const int thread_row = warp_tile_row(), thread_col = warp_tile_col();
    WarpSums sums = {};

    for (int k = 0; k < K; k += BK) {
        // Neighbouring threads take neighbouring rows of A, so that their transposed stores lie side by side.
#pragma unroll
        for (int i = 0; i < BM * BK / CHUNK; i += THREADS) {
            const int row = (i + threadIdx.x) % BM, col = (i + threadIdx.x) / BM * CHUNK;
            float values[CHUNK];
            load_chunk(values, A + (block_row + row) * lda + k + col, block_row + row < M && k + col < K);
#pragma unroll
            for (int j = 0; j < CHUNK; ++j) As[(col + j) * BM + row] = values[j];
        }
#pragma unroll
        for (int i = 0; i < BK * BN / CHUNK; i += THREADS) {
            const int row = (i + threadIdx.x) / (BN / CHUNK), col = (i + threadIdx.x) % (BN / CHUNK) * CHUNK;
            float values[CHUNK];
            load_chunk(values, B + (k + row) * ldb + block_col + col, k + row < K && block_col + col < N);
#pragma unroll
            for (int j = 0; j < CHUNK; j += 4)
                *reinterpret_cast<float4*>(&Bs[row * BN + col + j]) =
                    float4{values[j], values[j + 1], values[j + 2], values[j + 3]};
        }
        __syncthreads();
        multiply_tiles<BM, BN>(As, Bs, thread_row, thread_col, sums);
        __syncthreads();
    }

#pragma unroll
    for (int wm = 0; wm < WMITER; ++wm)
#pragma unroll
        for (int m = 0; m < TM; ++m)
#pragma unroll
            for (int wn = 0; wn < WNITER; ++wn)
#pragma unroll
                for (int n = 0; n < TN; n += 2)
                    gemmprof::store_pair<T>(out, block_row + thread_row + wm * WSUBM + m,
                                            block_col + thread_col + wn * WSUBN + n, sums[wm][m][wn][n],
                                            sums[wm][m][wn][n + 1]);
}

const gemmprof::KernelFacts kernels[] = {
    {"float16", gemmprof::address(hgemm_warptiled<__half>), THREADS, 0},
    {"bfloat16", gemmprof::address(hgemm_warptiled<__nv_bfloat16>), THREADS, 0},
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
