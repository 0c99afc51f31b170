// The arithmetic of stages 3 and 4, which differ only in how the tiles reach shared memory: swizzled tiles, ldmatrix,
// mma.sync.
//
// A block computes BM x BN in steps of BK, each of its warps WM x WN of that as 16 x 8 tensor-core tiles. Rows of the
// tiles are unpadded; the 16-byte chunks of a row are XOR-swizzled instead, so that the eight rows that ldmatrix reads
// together lie in different banks.
#pragma once

#include "../include/hgemm.cuh"
#include "../include/ptx.cuh"
#include "../include/quad_store.cuh"

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
// Blocks that an SM's 65,536 registers are to hold: a thread with up to 64 sums may use 128 of them, else 255.
constexpr int blocks_of_an_sm() {
    const int threads = WM * WN <= 64 * 32 ? 512 : 256;
    return threads > THREADS ? threads / THREADS : 1;
}
constexpr int A_BYTES = BM * BK * 2;
constexpr int B_BYTES = BK * BN * 2;

static_assert(BM % WM == 0 && BN % WN == 0, "whole warp tiles must make up the block tile");
static_assert(WM % 16 == 0 && WN % 32 == 0, "a warp tile must be made of 16 x 32 tiles, whose rows are stored at once");
static_assert(BK == 32 || BK == 64, "BK must be 32 or 64: the swizzle is made for rows of 64 or 128 bytes");
static_assert(BN % 64 == 0, "BN must be a multiple of 64: the swizzle spans 128 bytes of a row of B");
static_assert(THREADS <= 1024, "a block has 32 * (BM / WM) * (BN / WN) threads, and at most 1024");
static_assert(WM * WN <= 64 * 64, "a warp keeps WM * WN sums, at most 128 in each of its lanes");
static_assert(BM * BN <= 32768, "a block keeps BM * BN sums in 65,536 registers, and needs others");
static_assert(BM * BK % (8 * THREADS) == 0, "the threads must load equal parts of the A tile");
static_assert(BK * BN % (8 * THREADS) == 0, "the threads must load equal parts of the B tile");

namespace GEMMPROF_STAGE {

using gemmprof::CHUNK;

// Where the chunk of a row lies in a tile whose rows have CHUNKS of them, in bytes.
template <int CHUNKS>
__device__ __forceinline__ int swizzled(int row, int chunk) {
    // 64-byte rows: two of them span all banks, so pairs of rows are told apart, else single rows.
    const int key = CHUNKS == 4 ? row / 2 % 4 : row % 8;
    return (row * CHUNKS + (chunk ^ key)) * 16;
}

// Which part of a tile this thread copies: calls copy(row, column, byte offset in the tile) for each of its chunks.
template <int ROWS, int COLUMNS, class Copy>
__device__ __forceinline__ void for_each_chunk(Copy copy) {
    constexpr int CHUNKS = COLUMNS / CHUNK;
#pragma unroll
    for (int i = 0; i < ROWS * CHUNKS; i += THREADS) {
        const int row = (i + int(threadIdx.x)) / CHUNKS, chunk = (i + int(threadIdx.x)) % CHUNKS;
        copy(row, chunk * CHUNK, swizzled<CHUNKS>(row, chunk));
    }
}

__device__ __forceinline__ int warp_tile_row() { return threadIdx.x / 32 / (BN / WN) * WM; }
__device__ __forceinline__ int warp_tile_col() { return threadIdx.x / 32 % (BN / WN) * WN; }

using WarpSums = float[WM / 16][WN / 8][4];

constexpr int K_STEPS = BK / 16;

// What a warp multiplies in a step of 16 along K. There are two of them, so that one is loaded while the other is
// multiplied.
struct Fragments {
    unsigned a[WM / 16][4], b[WN / 16][4];

    // From the tiles at byte addresses in shared memory.
    __device__ __forceinline__ void load(unsigned a_tile, unsigned b_tile, int step) {
        const int lane = threadIdx.x % 32, half = lane / 16;
        const int a_row = warp_tile_row() + lane % 16, b_col = warp_tile_col() / CHUNK;
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            gemmprof::ptx::load_matrices<false>(a[i], a_tile + swizzled<BK / CHUNK>(a_row + 16 * i, 2 * step + half));
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
            gemmprof::ptx::load_matrices<true>(
                b[j], b_tile + swizzled<BN / CHUNK>(16 * step + lane % 16, b_col + 2 * j + half));
    }
    template <class T>
    __device__ __forceinline__ void multiply(WarpSums& sums) const {
        constexpr bool BFLOAT16 = __is_same(T, __nv_bfloat16);
        // Back and forth along the columns, so that neighbouring instructions share an operand.
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
#pragma unroll
            for (int n = 0; n < WN / 8; ++n) {
                const int j = i % 2 ? WN / 8 - 1 - n : n;
                gemmprof::ptx::mma_16x8x16<BFLOAT16>(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
            }
    }
};

template <class T>
__device__ __forceinline__ void store_sums(const WarpSums& sums, int block_row, int block_col,
                                           const gemmprof::Output& out) {
    const int lane = threadIdx.x % 32;
    int row = block_row + warp_tile_row(), col = block_col + warp_tile_col();
    if (out.wide && row + WM <= out.m && col + WN <= out.n) {
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
#pragma unroll
            for (int j = 0; j < WN / 8; j += 4)
                gemmprof::store_four_tiles(static_cast<T*>(out.c) + (row + 16 * i) * out.ldc + col + 8 * j, out.ldc,
                                           sums[i][j], out.alpha);
        return;
    }
    row += lane / 4, col += lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 8; ++j) gemmprof::store_fragment<T>(out, row + 16 * i, col + 8 * j, sums[i][j]);
}

}  // namespace GEMMPROF_STAGE
