// Few tiles of 8-bit operands: the blocks of a cluster share a tile, each sums a part of K.
//
// B may take A's place: a tile is then 128 columns of C and BN of its rows. Where A has few rows, little is multiplied
// in vain so, and B, the larger operand, is read once. Each block sends the others their share of its sums through
// distributed shared memory, and adds up its own in the order of the blocks: the same result every time.
#pragma once

#include "../include/clusters.cuh"
#include "../include/shares.cuh"
#include "fp8_tiles.cuh"

namespace GEMMPROF_STAGE {

struct Slim : Tile<32, 10> {};

// How the blocks of a cluster share its tile.
struct Sharing {
    int rows;                // tiles below each other, of C or, where it is swapped, of its transpose
    int last_row, last_col;  // where the last tiles begin
    bool swapped;            // B has A's place
    bool a_once, b_once;     // each element of A, of B, is read by one block only, and L2 need not keep it
    gemmprof::Divisor by_rows, by_parts;
    gemmprof::Shares steps;  // of a tile along K
};

constexpr int LANES = CONSUMERS * 128 * 16;  // bytes that four sums of all threads take

// Sends each block that shares a tile its share of this thread's sums, every `parts`-th four of them, adds up what all
// have sent, and stores it. `memory` is the stages', which all have read when the cluster has met; row and column are
// the thread's first in the tile, where B may have A's place.
template <class T, int COUNT, class SCALES>
__device__ __forceinline__ void exchange_sums(const float (&sums)[COUNT], unsigned memory, unsigned barrier, int part,
                                              int parts, const Sharing& sharing, int row, int col,
                                              const gemmprof::Output& out, const SCALES& scales) {
    constexpr int FOURS = COUNT / 4;
    const int within_c = (sharing.swapped ? out.m : out.n) - col / 8 * 8;
    const int fours = min(FOURS, gemmprof::ceil_div(within_c, 8)), last = fours - 1;
    const int most = sharing.by_parts.divide(last + parts), count = sharing.by_parts.divide(last + parts - part);
    const unsigned mine = memory + threadIdx.x * 16;
    if (threadIdx.x == 0) ptx::barrier_expect(barrier, parts * count * LANES);
    __syncwarp();
    ptx::cluster_arrive();
    ptx::cluster_wait();
    const auto four_of = [&](int i) {
        return make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
    };
    if (parts > 1) {
        unsigned to = mine + part * most * LANES;
        int owner = 0;
#pragma unroll
        for (int i = 0; i < FOURS; ++i, ++owner) {
            if (owner == parts) owner = 0, to += LANES;
            if (i < fours)
                ptx::send(ptx::address_at(to, unsigned(owner)), four_of(i), ptx::address_at(barrier, unsigned(owner)));
        }
        ptx::barrier_wait(barrier, 0);
        __syncwarp();
    } else {
#pragma unroll
        for (int i = 0; i < FOURS; ++i) ptx::store_shared(mine + i * LANES, four_of(i));
    }
    const bool odd = row % 2 != 0;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
        float4 sent[gemmprof::MAX_CLUSTER];
#pragma unroll
        for (int other = 0; other < gemmprof::MAX_CLUSTER; ++other)
            if (other < parts) sent[other] = ptx::load_shared(mine + (other * most + i) * LANES);
        float four[4] = {};
#pragma unroll
        for (int other = 0; other < gemmprof::MAX_CLUSTER; ++other) {
            const float4& v = sent[other];
            if (other < parts) four[0] += v.x, four[1] += v.y, four[2] += v.z, four[3] += v.w;
        }
        const int from = col + 8 * (i * parts + part);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float x = four[2 * half], y = four[2 * half + 1];
            int to_row = row + 8 * half, to_col = from;
            if (sharing.swapped) {
                // Neighbours of a row of C are of two lanes: each takes one row of both.
                const float theirs = __shfl_xor_sync(~0u, odd ? x : y, 4);
                (odd ? x : y) = theirs;
                to_col = to_row - odd, to_row = from + odd;
            }
            if constexpr (SCALES::of_rows)
                if (scales.a != nullptr)
                    x *= scale_at(scales, out, to_row, to_col), y *= scale_at(scales, out, to_row, to_col + 1);
            gemmprof::store_pair<T>(out, to_row, to_col, x, y);
        }
    }
}

template <class T, class TILE, class SCALES>
__device__ __forceinline__ void share_tile(const CUtensorMap& map_a, const CUtensorMap& map_b, const Sharing& sharing,
                                           const gemmprof::Output& out, const SCALES& scales) {
    constexpr int ST = TILE::stages, COLUMNS = TILE::bn, COUNT = COLUMNS / 2;
    constexpr int RELEASE_EVERY = SCALES::of_blocks ? 32 : 128;  // threads: each warp reads scales for itself
    static_assert((COUNT / 4 + gemmprof::MAX_CLUSTER - 1) * LANES <= ST * TILE::stage_bytes,
                  "the sums that blocks exchange must fit the memory of their tiles");
    extern __shared__ unsigned char shared[];
    const unsigned tiles = (ptx::shared_address(shared) + SWIZZLE_ATOM - 1) / SWIZZLE_ATOM * SWIZZLE_ATOM;
    const unsigned full = tiles + ST * TILE::stage_bytes, empty = full + 8 * ST, summed = empty + 8 * ST;
    float* const scales_of = reinterpret_cast<float*>(shared + (summed + 16 - ptx::shared_address(shared)));

    const int parts = int(ptx::cluster_size()), part = int(ptx::cluster_rank());
    const int index = sharing.by_parts.divide(int(blockIdx.x));
    const int tile_col = sharing.by_rows.divide(index), tile_row = index - tile_col * sharing.rows;
    const int first_row = min(tile_row * BM, sharing.last_row), first_col = min(tile_col * COLUMNS, sharing.last_col);
    const int first = sharing.steps.begin(part);
    const int steps = __shfl_sync(~0u, sharing.steps.begin(part + 1) - first, 0);
    const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0), group = warp / 4;
    const bool copies = warp == CONSUMERS * 4;  // one lane of it does

    const int ahead = min(ST, steps);  // that are asked for before the block meets
    const auto copy = [&](int step, int to) {
        const int k = (first + step) * BK;
        const unsigned tile = tiles + to * TILE::stage_bytes, barrier = full + 8 * to;
        ptx::barrier_expect(barrier, TILE::stage_bytes);
        if (sharing.a_once)
            ptx::copy_box(tile, &map_a, k, first_row, barrier, ptx::read_once_policy());
        else
            ptx::copy_box(tile, &map_a, k, first_row, barrier);
        if (sharing.b_once)
            ptx::copy_box(tile + TILE::a_bytes, &map_b, k, first_col, barrier, ptx::read_once_policy());
        else
            ptx::copy_box(tile + TILE::a_bytes, &map_b, k, first_col, barrier);
    };

    if (copies && ptx::elect_one()) {
        ptx::prefetch_map(&map_a);
        ptx::prefetch_map(&map_b);
        for (int stage = 0; stage < ST; ++stage) {
            ptx::barrier_init(full + 8 * stage, SCALES::of_blocks ? 2 : 1);  // the tiles, and their scales
            ptx::barrier_init(empty + 8 * stage, CONSUMERS * 128 / RELEASE_EVERY);
        }
        ptx::barrier_init(summed, 1);
        ptx::barrier_init_fence();
        ptx::fence_async_proxy();
#pragma unroll 1
        for (int step = 0; step < ahead; ++step) copy(step, step);
    }
    __syncwarp();
    __syncthreads();

    int stage = 0, parity = 0;
    const auto advance = [&] {
        if (++stage == ST) stage = 0, parity ^= 1;
    };
    if (group == CONSUMERS) {
        ptx::give_registers<40>();
        if (copies && ptx::elect_one()) {
            stage = ahead % ST, parity = ahead == ST;
#pragma unroll 1
            for (int step = ahead; step < steps; ++step, advance()) {
                ptx::barrier_wait(empty + 8 * stage, parity ^ 1);
                copy(step, stage);
            }
        }
        __syncwarp();
        // Where B has taken A's place, all rows of a tile have one scale, each column another.
        if constexpr (SCALES::of_blocks)
            if (!copies)
                bring_scales<COLUMNS, ST, 1>(scales, steps, out, scales_of, full, empty,
                                          [&](int number, int& step, int& row, int& columns) {
                                              step = first + number, row = tile_col * COLUMNS, columns = tile_row;
                                          });
        ptx::cluster_arrive();
        ptx::cluster_wait();
    } else {
        ptx::take_registers<232>();
        const int thread = threadIdx.x % 128;
        float sums[COUNT] = {};
        const auto issue = [&](float(&to)[COUNT]) {
            ptx::barrier_wait(full + 8 * stage, parity);
            const unsigned a = tiles + stage * TILE::stage_bytes;
            multiply_step(to, a + group * 64 * BK, a + TILE::a_bytes);
            const int used = stage;
            advance();
            return used;
        };
        const auto add = [&](float(&part_sums)[COUNT], int used, bool more) {
            [[maybe_unused]] float2 scale[COLUMNS / 8];
            if constexpr (SCALES::of_blocks)
#pragma unroll
                for (int i = 0; i < COLUMNS / 8; ++i)
                    scale[i] = reinterpret_cast<const float2*>(scales_of + used * COLUMNS)[4 * i + thread % 4];
            if (more)
                ptx::wgmma_wait<1>();
            else
                ptx::wgmma_wait<0>();
            ptx::pin(part_sums);
            if (thread % RELEASE_EVERY == 0) ptx::barrier_arrive(empty + 8 * used);
#pragma unroll
            for (int i = 0; i < COUNT; ++i)
                if constexpr (SCALES::of_blocks)
                    sums[i] = fmaf(part_sums[i], i % 2 ? scale[i / 4].y : scale[i / 4].x, sums[i]);
                else
                    sums[i] += part_sums[i];
        };
        add_steps<TILE::parts, COUNT>(steps, issue, add);
        const int row = first_row + group * 64 + thread / 32 * 16 + thread % 32 / 4;
        exchange_sums<T>(sums, tiles, summed, part, parts, sharing, row, first_col + thread % 4 * 2, out, scales);
    }
}

// The scales of rows and columns may be none.
template <class T, class TILE, class SCALES>
__global__ void __launch_bounds__(THREADS, 1)
    fp8gemm_shared(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                   Sharing sharing, gemmprof::Output out, SCALES scales) {
    share_tile<T, TILE>(map_a, map_b, sharing, out, scales);
}

}  // namespace GEMMPROF_STAGE
