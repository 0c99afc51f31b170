// Stage 2, 16-bit WMMA: the tensor cores through CUDA C++'s own words.
//
// One thing changed against stage 1: a warp multiplies 16 x 16 x 16 fragments on the tensor cores, so the tiles stay 16
// bits wide in shared memory. Which lane holds what of a fragment is not ours to know: rows of shared memory are padded
// by PAD elements against bank conflicts, and the sums go through shared memory on their way to C. The tensor cores are
// fast enough to wait for memory, so the next tiles are already on their way, in registers.
#include <mma.h>

#include "../include/hgemm.cuh"

constexpr int WARPS = (BM / WM) * (BN / WN);
constexpr int THREADS = WARPS * 32;
constexpr int LDA = BK + PAD;
constexpr int LDB = BN + PAD;

static_assert(BM % WM == 0 && BN % WN == 0, "whole warp tiles must make up the block tile");
static_assert(WM % 16 == 0 && WN % 16 == 0, "a warp tile must be made of 16 x 16 fragments");
static_assert(BK % 16 == 0, "BK must be a multiple of 16: the depth of a fragment");
static_assert(PAD % 8 == 0, "PAD must be a multiple of 8: rows of the tiles start at multiples of 16 bytes");
static_assert(THREADS <= 1024, "a block has 32 * (BM / WM) * (BN / WN) threads, and at most 1024");
static_assert(WM * WN <= 64 * 64, "a warp keeps WM * WN sums, at most 128 in each of its lanes");
static_assert(BM * BK % (8 * THREADS) == 0, "the threads must load equal parts of the A tile");
static_assert(BK * BN % (8 * THREADS) == 0, "the threads must load equal parts of the B tile");
static_assert(2 * (BM * LDA + BK * LDB) <= 49152, "the tiles must fit 48 KiB of shared memory");
static_assert(WARPS * 1024 <= 2 * (BM * LDA + BK * LDB), "a 16 x 16 tile of sums a warp must fit the tiles' memory");

namespace GEMMPROF_STAGE {

using gemmprof::CHUNK;
namespace wmma = nvcuda::wmma;

// Calls each(row, column) for the chunks of a tile of ROWS x COLUMNS that this thread copies.
template <int ROWS, int COLUMNS, class Each>
__device__ __forceinline__ void for_each_chunk(Each each) {
#pragma unroll
    for (int i = 0; i < ROWS * COLUMNS / CHUNK; i += THREADS)
        each((i + int(threadIdx.x)) / (COLUMNS / CHUNK), (i + int(threadIdx.x)) % (COLUMNS / CHUNK) * CHUNK);
}

template <class T>
__global__ void __launch_bounds__(THREADS) hgemm_wmma(int M, int N, int K, const T* __restrict__ A, std::int64_t lda,
                                                      const T* __restrict__ B, std::int64_t ldb, gemmprof::Output out) {
    __shared__ __align__(128) unsigned char shared[2 * (BM * LDA + BK * LDB)];
    T* const As = reinterpret_cast<T*>(shared);
    T* const Bs = As + BM * LDA;

    const int tiles_n = gemmprof::ceil_div(N, BN);
    const int block_row = int(blockIdx.x / tiles_n) * BM, block_col = int(blockIdx.x % tiles_n) * BN;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[WM / 16][WN / 16];
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 16; ++j) wmma::fill_fragment(sums[i][j], 0.0f);

    // The next tiles wait in registers while these are multiplied.
    uint4 next_a[BM * BK / CHUNK / THREADS], next_b[BK * BN / CHUNK / THREADS];
    const auto load_tiles = [&](int k) {
        int i = 0;
        for_each_chunk<BM, BK>([&](int row, int col) {
            const bool inside = block_row + row < M && k + col < K;
            next_a[i++] = inside ? *reinterpret_cast<const uint4*>(A + (block_row + row) * lda + k + col) : uint4{};
        });
        i = 0;
        for_each_chunk<BK, BN>([&](int row, int col) {
            const bool inside = k + row < K && block_col + col < N;
            next_b[i++] = inside ? *reinterpret_cast<const uint4*>(B + (k + row) * ldb + block_col + col) : uint4{};
        });
    };
    load_tiles(0);
    for (int k = 0; k < K; k += BK) {
        int i = 0;
        for_each_chunk<BM, BK>(
            [&](int row, int col) { *reinterpret_cast<uint4*>(As + row * LDA + col) = next_a[i++]; });
        i = 0;
        for_each_chunk<BK, BN>(
            [&](int row, int col) { *reinterpret_cast<uint4*>(Bs + row * LDB + col) = next_b[i++]; });
        __syncthreads();
        load_tiles(k + BK);
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> a[WM / 16];
#pragma unroll
            for (int i = 0; i < WM / 16; ++i) wmma::load_matrix_sync(a[i], As + (warp_row + 16 * i) * LDA + kk, LDA);
#pragma unroll
            for (int j = 0; j < WN / 16; ++j) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> b;
                wmma::load_matrix_sync(b, Bs + kk * LDB + warp_col + 16 * j, LDB);
#pragma unroll
                for (int i = 0; i < WM / 16; ++i) wmma::mma_sync(sums[i][j], a[i], b, sums[i][j]);
            }
        }
        __syncthreads();
    }

    float* const staged = reinterpret_cast<float*>(shared) + warp * 256;
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 16; ++j) {
            wmma::store_matrix_sync(staged, sums[i][j], 16, wmma::mem_row_major);
            __syncwarp();
#pragma unroll
            for (int r = 0; r < 16; r += 4) {
                const int row = r + lane / 8, col = lane % 8 * 2;
                gemmprof::store_pair<T>(out, block_row + warp_row + 16 * i + row, block_col + warp_col + 16 * j + col,
                                        staged[row * 16 + col], staged[row * 16 + col + 1]);
            }
            __syncwarp();
        }
}

const gemmprof::KernelFacts kernels[] = {
    {"float16", gemmprof::address(hgemm_wmma<__half>), THREADS, 0},
    {"bfloat16", gemmprof::address(hgemm_wmma<__nv_bfloat16>), THREADS, 0},
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
