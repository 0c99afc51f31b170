// Tiles of 8-bit operands, and what a warpgroup does with one: multiply it, and store the sums.
//
// BK is 128: 128 elements of 8 bits fill the 128 bytes that the widest swizzle spans. Both operands lie with K along
// their rows, in memory as in shared memory: wgmma reads 8-bit operands in no other way.
#pragma once

#include "../include/store_ring.cuh"
#include "../include/tensor_map.cuh"
#include "../include/wgmma.cuh"
#include "fp8_operands.cuh"

constexpr int SWIZZLE_ATOM = 1024;  // the 128-byte swizzle repeats every 8 rows, counted from an aligned address
constexpr int CONSUMERS = 2;
constexpr int THREADS = (CONSUMERS + 1) * 128;
constexpr int SHARED_LIMIT = 232448;  // bytes of shared memory that a block may have on Hopper
constexpr int STORE_COLUMNS = 64;     // of C that a warp hands over to the copy engine at a time
constexpr int STORE_BYTES = 16 * STORE_COLUMNS * 2;
constexpr int STORING_BYTES = CONSUMERS * 4 * STORE_BYTES;  // of all warps that store

static_assert(BK == 128, "BK must be 128: a row of 8-bit elements is one 128-byte swizzle span");

namespace GEMMPROF_STAGE {

namespace ptx = gemmprof::ptx;

// A block computes BM x bn of C.
template <int BN_, int STAGES_>
struct Tile {
    static constexpr int bn = BN_, stages = STAGES_;
    static constexpr int a_bytes = BM * BK, stage_bytes = (BM + bn) * BK;
    static constexpr int needed_bytes = stages * stage_bytes + SWIZZLE_ATOM + 16 * stages;
    static constexpr int store_buffers = needed_bytes + 2 * STORING_BYTES <= SHARED_LIMIT ? 2 : 1;
    static constexpr int warp_staging = store_buffers * STORE_BYTES;
    using Ring = gemmprof::StoreRing<store_buffers, STORE_BYTES>;
    static constexpr int shared_bytes = needed_bytes + store_buffers * STORING_BYTES;
    // With a scale for each row, or, of a tile that blocks share, for each column.
    static constexpr int scaled_bytes = shared_bytes + stages * BM * 4;
    static constexpr int shared_scaled_bytes = needed_bytes + stages * bn * 4;
};

// The catalog's parameters give the wide tile. The others are for problems in which it would leave SMs idle.
struct Wide : Tile<BN, STAGES> {};
struct Square : Tile<128, 6> {};
struct Blocks : Tile<128, 5> {};  // leaves room for scales
struct Narrow : Tile<64, 8> {};

// wgmma's matrix descriptor of rows of 128 swizzled bytes: addresses and strides count 16 bytes, and the second stride
// leads from 8 rows to the next 8.
__device__ __forceinline__ std::uint64_t descriptor(unsigned rows) {
    return std::uint64_t(1) << 62 | std::uint64_t(SWIZZLE_ATOM / 16) << 32 | std::uint64_t(1) << 16 |
           (rows & 0x3FFFF) >> 4;
}

// sums = 64 rows of A @ N columns of B over BK, issued and not awaited.
template <int COUNT>
__device__ __forceinline__ void multiply_step(float (&sums)[COUNT], unsigned a, unsigned b) {
    const std::uint64_t first = descriptor(a), second = descriptor(b);
#pragma unroll
    for (int k = 0; k < BK / 32; ++k) ptx::wgmma_e4m3(sums, first + 2 * k, second + 2 * k, k > 0);
}

// What the operands' elements stand for, relative to their values. One number each: they are part of alpha.
struct OneScale {
    static constexpr bool of_blocks = false;
};

// A scale each of A's rows and B's columns, read once the sums are complete. Distances in elements, 0 for one scale.
struct RowScales {
    static constexpr bool of_blocks = false;
    const float *a, *b;
    std::int64_t a_row, b_column;
};

// A scale for 128 of K of each row of A, and one for each 128 x 128 of B: what is added over BK is multiplied by both on
// its way to the sums. A tile has 128 columns, so that all of it has one of B's.
struct BlockScales {
    static constexpr bool of_blocks = true;
    const float *a, *b;
    std::int64_t a_row, a_step, b_step, b_column;
};

constexpr int SCALING_WARPS = 3;  // those of the copying warpgroup that copy nothing

// Brings the scales of `total` steps to shared memory: of EXTENT rows of A each times that of 128 columns of B, by
// SCALING_WARPS in turn. `place(number, step, row, columns)` says which. They are asked for many steps ahead: an answer
// from L2 waits behind all that the copy engine has asked for.
template <int EXTENT, int STAGES_OF_TILE, class Place>
__device__ __forceinline__ void bring_scales(const BlockScales& scales, int total, int rows, float* to, unsigned full,
                                             unsigned empty, const Place& place) {
    constexpr int AHEAD = 3, EACH = EXTENT / 32;
    const int lane = threadIdx.x % 32;
    float a[AHEAD][EACH], b[AHEAD];
    const auto load = [&](int number, float(&to_a)[EACH], float& to_b) {
        int step, row, columns;
        place(number, step, row, columns);
        to_b = scales.b[step * scales.b_step + columns * scales.b_column];
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            to_a[i] = scales.a[min(row + lane + 32 * i, rows - 1) * scales.a_row + step * scales.a_step];
    };
    int number = __shfl_sync(~0u, int(threadIdx.x) / 32, 0) - CONSUMERS * 4 - 1;
#pragma unroll
    for (int i = 0; i < AHEAD; ++i)
        if (number + i * SCALING_WARPS < total) load(number + i * SCALING_WARPS, a[i], b[i]);
    while (number < total) {
#pragma unroll
        for (int i = 0; i < AHEAD; ++i, number += SCALING_WARPS) {
            if (number >= total) break;
            const int stage = number % STAGES_OF_TILE, parity = number / STAGES_OF_TILE & 1;
            ptx::barrier_wait(empty + 8 * stage, parity ^ 1);
#pragma unroll
            for (int j = 0; j < EACH; ++j) to[stage * EXTENT + lane + 32 * j] = a[i][j] * b[i];
            __syncwarp();
            if (ptx::elect_one()) ptx::barrier_arrive(full + 8 * stage);
            if (number + AHEAD * SCALING_WARPS < total) load(number + AHEAD * SCALING_WARPS, a[i], b[i]);
        }
    }
}

// The scale of an element of C.
__device__ __forceinline__ float scale_at(const RowScales& scales, const gemmprof::Output& out, int row, int column) {
    return scales.a[min(row, out.m - 1) * scales.a_row] * scales.b[min(column, out.n - 1) * scales.b_column];
}

// A lane's sums as wgmma leaves them, from its first row and column on, times the scales of rows and columns.
template <int COUNT>
__device__ __forceinline__ void scale_sums(float (&sums)[COUNT], const RowScales& scales, const gemmprof::Output& out,
                                           int row, int column) {
    const float above = scales.a[min(row, out.m - 1) * scales.a_row];
    const float below = scales.a[min(row + 8, out.m - 1) * scales.a_row];
#pragma unroll
    for (int j = 0; j < COUNT / 4; ++j)
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
            const float b = scales.b[min(column + 8 * j + odd, out.n - 1) * scales.b_column];
            sums[4 * j + odd] *= above * b, sums[4 * j + 2 + odd] *= below * b;
        }
}

// Sums of a warp's 16 rows to C by way of shared memory, STORE_COLUMNS at a time.
template <class T, class RING, int COUNT>
__device__ __forceinline__ void store_boxes(const float (&sums)[COUNT], RING& ring, const CUtensorMap* map_c, int row,
                                            int col, float alpha) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int part = 0; part < COUNT * 2 / STORE_COLUMNS; ++part) {
        const unsigned buffer = ring.next();
#pragma unroll
        for (int i = 0; i < STORE_COLUMNS / 16; ++i) {
            const float* const s = &sums[part * (STORE_COLUMNS / 2) + i * 8];
            ptx::store_matrices(
                buffer + lane % 16 * 128 + ((2 * i + lane / 16) ^ lane % 8) * 16,
                gemmprof::pack<T>(alpha * s[0], alpha * s[1]), gemmprof::pack<T>(alpha * s[2], alpha * s[3]),
                gemmprof::pack<T>(alpha * s[4], alpha * s[5]), gemmprof::pack<T>(alpha * s[6], alpha * s[7]));
        }
        ring.store(map_c, col + part * STORE_COLUMNS, row, buffer);
    }
}

// The same without the copy engine: C of float32, read as well as written, or of rows that are not aligned.
template <class T, int COUNT>
__device__ __forceinline__ void store_pairs(const float (&sums)[COUNT], int row, int col, const gemmprof::Output& out) {
    row += threadIdx.x % 32 / 4, col += threadIdx.x % 4 * 2;
    if (out.plain) {
#pragma unroll
        for (int j = 0; j < COUNT / 4; ++j) gemmprof::store_fragment<T>(out, row, col + 8 * j, &sums[4 * j]);
    } else {
        // Rare, so a loop over sums in local memory instead of COUNT copies of the code.
        float kept[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; ++i) kept[i] = sums[i];
#pragma unroll 1
        for (int j = 0; j < COUNT / 4; ++j) gemmprof::store_fragment<T>(out, row, col + 8 * j, &kept[4 * j]);
    }
}

}  // namespace GEMMPROF_STAGE
