// Tiles of 8-bit operands, and what a warpgroup does with one: multiply it, and store the sums.
//
// BK is 128: 128 elements of 8 bits fill the 128 bytes that the widest swizzle spans. Both operands lie with K along
// their rows, in memory as in shared memory: wgmma reads 8-bit operands in no other way.
#pragma once

#include "../include/half.cuh"
#include "../include/store_ring.cuh"
#include "../include/tensor_map.cuh"
#include "../include/wgmma.cuh"

constexpr int CONSUMERS = 2;
constexpr int THREADS = (CONSUMERS + 1) * 128;
constexpr int STORE_COLUMNS = 64;     // of C that a warp hands over to the copy engine at a time
constexpr int STORE_BYTES = 16 * STORE_COLUMNS * 2;
constexpr int STORING_BYTES = CONSUMERS * 4 * STORE_BYTES;  // of all warps that store

static_assert(BK == 128, "BK must be 128: a row of 8-bit elements is one 128-byte swizzle span");

namespace GEMMPROF_STAGE {

namespace ptx = gemmprof::ptx;

// A block computes BM x bn of C. The tiles of a cluster of `pair` blocks lie below each other, and each copies a part of B for
// all: where rows begin within a line of L2, what takes longest is to ask for them.
template <int BN_, int STAGES_, int PAIR = 1>
struct Tile {
    static constexpr int bn = BN_, stages = STAGES_, pair = PAIR;
    static constexpr int a_bytes = BM * BK, stage_bytes = (BM + bn) * BK;
    static constexpr int needed_bytes = stages * stage_bytes + SWIZZLE_ATOM + 16 * stages;
    static constexpr int store_buffers = needed_bytes + 2 * STORING_BYTES <= SHARED_LIMIT ? 2 : 1;
    static constexpr int warp_staging = store_buffers * STORE_BYTES;
    using Ring = gemmprof::StoreRing<store_buffers, STORE_BYTES>;
    static constexpr int shared_bytes = needed_bytes + store_buffers * STORING_BYTES;
    // With a scale for each row, or, of a tile that blocks share, for each column.
    static constexpr int parts = bn <= 128 ? 2 : 1;  // of a sum that the registers hold besides it
    static constexpr int blocks = 128 % bn ? 2 : 1;  // of 128 columns that it may lie in
    static constexpr int scaled_bytes = shared_bytes + stages * BM * 4 * blocks;
    static constexpr int sharing_bytes = needed_bytes + 16;  // of blocks that exchange sums
    static constexpr int sharing_scaled_bytes = sharing_bytes + stages * bn * 4;
};

// The catalog's parameters give the wide tile. The others are for problems in which it would leave SMs idle.
struct Wide : Tile<BN, STAGES> {};
struct Square : Tile<128, 6> {};
struct Blocks : Tile<128, 5> {};  // leaves room for scales
struct Narrow : Tile<64, 8> {};
struct Between : Tile<160, 5> {};
struct Wider : Tile<176, 5> {};
struct Lean : Tile<112, 6> {};
struct Leaner : Tile<96, 6> {};
struct Whole : Tile<256, 4> {};  // where the tensor cores keep the sums
struct WidePair : Tile<BN, STAGES, 2> {};
struct WideQuad : Tile<BN, STAGES, 4> {};
struct SquareQuad : Tile<128, 6, 4> {};
struct WholePair : Tile<256, 4, 2> {};

// sums = (or += where `add` is set) 64 rows of A @ N columns of B over BK, issued and not awaited.
template <int COUNT>
__device__ __forceinline__ void multiply_step(float (&sums)[COUNT], unsigned a, unsigned b, bool add = false) {
    const std::uint64_t first = ptx::matrix_descriptor(a), second = ptx::matrix_descriptor(b);
    ptx::pin(sums);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < BK / 32; ++k) ptx::wgmma_e4m3(sums, first + 2 * k, second + 2 * k, add || k > 0);
    ptx::wgmma_commit();
}

// Adds what each of `steps` steps leaves to the sums, the next being multiplied meanwhile where the registers hold two
// parts. `issue` is int(float (&part)[COUNT]): it multiplies a step, and says where its tiles lie; `add` is void(part,
// that place, whether another step has been issued since).
template <int PARTS, int COUNT, class Issue, class Add>
__device__ __forceinline__ void add_steps(int steps, const Issue& issue, const Add& add) {
    float part[PARTS][COUNT];
    if constexpr (PARTS == 1) {
        for (int step = 0; step < steps; ++step) {
            const int used = issue(part[0]);
            add(part[0], used, false);
        }
    } else {
        // A step is multiplied while the one before it is added.
        int first = issue(part[0]), second, left = steps;
        for (; left > 2; left -= 2) {
            second = issue(part[1]);
            add(part[0], first, true);
            first = issue(part[0]);
            add(part[1], second, true);
        }
        if (left == 2) {
            second = issue(part[1]);
            add(part[0], first, true);
            add(part[1], second, false);
        } else {
            add(part[0], first, false);
        }
    }
}

// What the operands' elements stand for, relative to their values. One number each: they are part of alpha.
struct OneScale {
    static constexpr bool of_rows = false, of_blocks = false, promoted = true;
};

// A scale each of A's rows and B's columns, read once the sums are complete. Distances in elements, 0 for one scale.
struct RowScales {
    static constexpr bool of_rows = true, of_blocks = false, promoted = true;
    const float *a, *b;
    std::int64_t a_row, b_column;
};

// A scale for 128 of K of each row of A, and one for each 128 x 128 of B: what is added over BK is multiplied by both
// on its way to the sums.
struct BlockScales {
    static constexpr bool of_rows = false, of_blocks = true, promoted = true;
    const float *a, *b;
    std::int64_t a_row, a_step, b_step, b_column;
};

// The same, and the tensor cores keep the sums: faster, and less exact the longer K is.
template <class SCALES>
struct Fast : SCALES {
    static constexpr bool promoted = false;
};

constexpr int SCALING_WARPS = 3;  // those of the copying warpgroup that copy nothing

// Brings the scales of `total` steps to shared memory: of EXTENT rows of A each times those of the BLOCKS of 128
// columns of B that a tile may lie in, by SCALING_WARPS in turn. `place(number, step, row, columns)` says which. They are
// asked for many steps ahead: an answer from L2 waits behind all that the copy engine has asked for.
template <int EXTENT, int STAGES_OF_TILE, int BLOCKS, class Place>
__device__ __forceinline__ void bring_scales(const BlockScales& scales, int total, const gemmprof::Output& out,
                                             float* to, unsigned full, unsigned empty, const Place& place) {
    constexpr int AHEAD = 3, EACH = EXTENT / 32;
    const int lane = threadIdx.x % 32;
    float a[AHEAD][EACH], b[AHEAD][BLOCKS];
    const int last = gemmprof::ceil_div(out.n, 128) - 1;
    const auto load = [&](int number, float(&to_a)[EACH], float(&to_b)[BLOCKS]) {
        int step, row, columns;
        place(number, step, row, columns);
#pragma unroll
        for (int i = 0; i < BLOCKS; ++i)
            to_b[i] = scales.b[step * scales.b_step + min(columns + i, last) * scales.b_column];
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            to_a[i] = scales.a[min(row + lane + 32 * i, out.m - 1) * scales.a_row + step * scales.a_step];
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
            for (int j = 0; j < EACH * BLOCKS; ++j)
                to[(stage * EXTENT + lane + 32 * (j / BLOCKS)) * BLOCKS + j % BLOCKS] =
                    a[i][j / BLOCKS] * b[i][j % BLOCKS];
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

// Brings the scales of a tile's columns near: read when its sums are complete, they would be waited for.
template <int COLUMNS>
__device__ __forceinline__ void fetch_scales(const RowScales& scales, const gemmprof::Output& out, int column) {
    const int at = column + int(threadIdx.x % 128) * 2;
    if (int(threadIdx.x % 128) * 2 < COLUMNS && at < out.n)
        asm volatile("prefetch.global.L1 [%0];" ::"l"(scales.b + at * scales.b_column));
}

// A lane's sums as wgmma leaves them, from its first row and column on, times the scales of rows and columns.
template <int COUNT>
__device__ __forceinline__ void scale_sums(float (&sums)[COUNT], const RowScales& scales, const gemmprof::Output& out,
                                           int row, int column) {
    const float above = scales.a[min(row, out.m - 1) * scales.a_row];
    const float below = scales.a[min(row + 8, out.m - 1) * scales.a_row];
    const auto scale = [&](int j, float first, float second) {
        sums[4 * j] *= above * first, sums[4 * j + 1] *= above * second;
        sums[4 * j + 2] *= below * first, sums[4 * j + 3] *= below * second;
        if (j % 8 == 7) asm volatile("" ::: "memory");  // more loads ahead would take the sums' registers
    };
    // The same for a whole warp.
    if (scales.b_column == 1 && column / 8 * 8 + 2 * COUNT <= out.n &&
        reinterpret_cast<std::uintptr_t>(scales.b) % 8 == 0) {
        const float2* const b = reinterpret_cast<const float2*>(scales.b + column);
#pragma unroll
        for (int j = 0; j < COUNT / 4; ++j) scale(j, b[4 * j].x, b[4 * j].y);
        return;
    }
    const auto at = [&](int i) { return scales.b[min(column + i, out.n - 1) * scales.b_column]; };
#pragma unroll
    for (int j = 0; j < COUNT / 4; ++j) scale(j, at(8 * j), at(8 * j + 1));
}

// Sums of a warp's 16 rows to C by way of shared memory, STORE_COLUMNS at a time.
template <class T, class RING, int COUNT>
__device__ __forceinline__ void store_boxes(const float (&sums)[COUNT], RING& ring, const CUtensorMap* map_c, int row,
                                            int col, float alpha) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int part = 0; part * STORE_COLUMNS < COUNT * 2; ++part) {
        // The last box of a width that they do not divide covers columns of the one before it, with the same values.
        constexpr int LAST = COUNT * 2 - STORE_COLUMNS;
        const int first = part * STORE_COLUMNS < LAST ? part * STORE_COLUMNS : LAST;
        const unsigned buffer = ring.next();
#pragma unroll
        for (int i = 0; i < STORE_COLUMNS / 16; ++i) {
            const float* const s = &sums[first / 2 + i * 8];
            ptx::store_matrices(
                buffer + lane % 16 * 128 + ((2 * i + lane / 16) ^ lane % 8) * 16,
                gemmprof::pack<T>(alpha * s[0], alpha * s[1]), gemmprof::pack<T>(alpha * s[2], alpha * s[3]),
                gemmprof::pack<T>(alpha * s[4], alpha * s[5]), gemmprof::pack<T>(alpha * s[6], alpha * s[7]));
        }
        ring.store(map_c, col + first, row, buffer);
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
