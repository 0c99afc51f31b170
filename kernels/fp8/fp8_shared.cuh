// Few tiles of 8-bit operands: the blocks of a cluster share a tile, each sums a part of K.
//
// Where A has few rows, B takes its place: a tile is then 128 columns of C and BN of its rows, so that little is
// multiplied in vain and B, the larger operand, is read once. The parts are added through distributed shared memory in
// the order of the blocks: the same result every time.
#pragma once

#include "../include/clusters.cuh"
#include "../include/shares.cuh"
#include "fp8_tiles.cuh"

static_assert(4 * (BM + 4) * 128 <= 6 * BK * (BM + 128), "the sums of 128 columns must fit the memory of their tiles");

namespace GEMMPROF_STAGE {

struct Slim : Tile<32, 10> {};

// How the blocks of a cluster share its tile.
struct Sharing {
    int rows;             // tiles below each other, of C or, where it is swapped, of its transpose
    bool swapped;         // B has A's place
    bool a_once, b_once;  // each element of A, of B, is read by one block only, and L2 need not keep it
    gemmprof::Divisor by_rows, by_parts;
    gemmprof::Shares steps;  // of a tile along K
};

template <class T, class TILE, class SCALES>
__device__ __forceinline__ void share_tile(const CUtensorMap& map_a, const CUtensorMap& map_b, const Sharing& sharing,
                                           const gemmprof::Output& out, const SCALES& scales) {
    constexpr int ST = TILE::stages, COLUMNS = TILE::bn;
    extern __shared__ unsigned char shared[];
    const unsigned tiles = (ptx::shared_address(shared) + SWIZZLE_ATOM - 1) / SWIZZLE_ATOM * SWIZZLE_ATOM;
    const unsigned full = tiles + ST * TILE::stage_bytes, empty = full + 8 * ST;
    float* const scales_of = reinterpret_cast<float*>(shared + (empty + 8 * ST - ptx::shared_address(shared)));
    float* const sums_here = reinterpret_cast<float*>(shared + (tiles - ptx::shared_address(shared)));

    const int parts = int(ptx::cluster_size()), part = int(ptx::cluster_rank());
    const int index = sharing.by_parts.divide(int(blockIdx.x));
    const int tile_col = sharing.by_rows.divide(index), tile_row = index - tile_col * sharing.rows;
    const int first = sharing.steps.begin(part);
    const int steps = __shfl_sync(~0u, sharing.steps.begin(part + 1) - first, 0);
    const bool swapped = sharing.swapped;
    const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0), group = warp / 4;
    const bool copies = warp == CONSUMERS * 4;  // one lane of it does
    // Sums lie as C does: `line` columns side by side.
    const int line = swapped ? BM + 4 : COLUMNS + 4;

    const int ahead = min(ST, steps);  // that are asked for before the block meets
    const auto copy = [&](int step, int to) {
        const int k = (first + step) * BK;
        const unsigned tile = tiles + to * TILE::stage_bytes, barrier = full + 8 * to;
        ptx::barrier_expect(barrier, TILE::stage_bytes);
        if (sharing.a_once)
            ptx::copy_box(tile, &map_a, k, tile_row * BM, barrier, ptx::read_once_policy());
        else
            ptx::copy_box(tile, &map_a, k, tile_row * BM, barrier);
        if (sharing.b_once)
            ptx::copy_box(tile + TILE::a_bytes, &map_b, k, tile_col * COLUMNS, barrier, ptx::read_once_policy());
        else
            ptx::copy_box(tile + TILE::a_bytes, &map_b, k, tile_col * COLUMNS, barrier);
    };

    if (copies && ptx::elect_one()) {
        ptx::prefetch_map(&map_a);
        ptx::prefetch_map(&map_b);
        for (int stage = 0; stage < ST; ++stage) {
            ptx::barrier_init(full + 8 * stage, SCALES::of_blocks ? 2 : 1);  // the tiles, and their scales
            ptx::barrier_init(empty + 8 * stage, CONSUMERS);
        }
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
        if (parts > 1) ptx::cluster_sync();
    } else {
        ptx::take_registers<232>();
        const int thread = threadIdx.x % 128;
        float sums[COLUMNS / 2] = {}, now[COLUMNS / 2];
#pragma unroll 1
        for (int step = 0; step < steps; ++step, advance()) {
            ptx::barrier_wait(full + 8 * stage, parity);
            float2 scale[COLUMNS / 8];
            if constexpr (SCALES::of_blocks)
#pragma unroll
                for (int i = 0; i < COLUMNS / 8; ++i)
                    scale[i] = reinterpret_cast<const float2*>(scales_of + stage * COLUMNS)[4 * i + thread % 4];
            const unsigned a = tiles + stage * TILE::stage_bytes, b = a + TILE::a_bytes;
            multiply_step(now, a + group * 64 * BK, b);
            ptx::wgmma_wait<0>();
            ptx::pin(now);
            if (thread == 0) ptx::barrier_arrive(empty + 8 * stage);
#pragma unroll
            for (int i = 0; i < COLUMNS / 2; ++i)
                if constexpr (SCALES::of_blocks)
                    sums[i] = fmaf(now[i], i % 2 ? scale[i / 4].y : scale[i / 4].x, sums[i]);
                else
                    sums[i] += now[i];
        }
        ptx::named_barrier_sync(1, CONSUMERS * 128);  // both have read the last tiles, whose memory the sums now take
        const int row = group * 64 + thread / 32 * 16 + thread % 32 / 4, col = thread % 4 * 2;
#pragma unroll
        for (int i = 0; i < COLUMNS / 2; ++i) {
            const int r = row + i / 2 % 2 * 8, c = col + i / 4 * 8 + i % 2;
            sums_here[swapped ? c * line + r : r * line + c] = sums[i];
        }
        if (parts > 1)
            ptx::cluster_sync();
        else
            ptx::named_barrier_sync(1, CONSUMERS * 128);

        // The consumers add up: they have the registers to ask for all parts before the first is added. One after the
        // other, each would be waited for.
        const int high = swapped ? COLUMNS : BM, wide = swapped ? BM : COLUMNS;
        const int first_row = swapped ? tile_col * COLUMNS : tile_row * BM;
        const int first_col = swapped ? tile_row * BM : tile_col * COLUMNS;
        const int quads = min(high, out.m - first_row) * (wide / 4);
#pragma unroll 1
        for (int quad = part * CONSUMERS * 128 + int(threadIdx.x); quad < quads; quad += parts * CONSUMERS * 128) {
            const int row = quad / (wide / 4), col = quad % (wide / 4) * 4;
            const unsigned at = tiles + (row * line + col) * 4;
            float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f), theirs[gemmprof::MAX_CLUSTER];
#pragma unroll
            for (int other = 0; other < gemmprof::MAX_CLUSTER; ++other)
                if (other < parts) theirs[other] = ptx::load_shared_of(ptx::address_at(at, unsigned(other)));
#pragma unroll
            for (int other = 0; other < gemmprof::MAX_CLUSTER; ++other) {
                const float4& v = theirs[other];
                if (other < parts) sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
            }
            if constexpr (SCALES::of_rows) {
                const auto scale = [&](int i) { return scale_at(scales, out, first_row + row, first_col + col + i); };
                sum.x *= scale(0), sum.y *= scale(1), sum.z *= scale(2), sum.w *= scale(3);
            }
            gemmprof::store_pair<T>(out, first_row + row, first_col + col, sum.x, sum.y);
            gemmprof::store_pair<T>(out, first_row + row, first_col + col + 2, sum.z, sum.w);
        }
    }
    if (parts > 1) ptx::cluster_sync();  // no block leaves while another reads its sums
}

template <class T, class TILE>
__global__ void __launch_bounds__(THREADS, 1)
    fp8gemm_shared(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                   Sharing sharing, gemmprof::Output out) {
    share_tile<T, TILE>(map_a, map_b, sharing, out, OneScale());
}

// The same with a scale each of rows and columns, or of blocks.
template <class T, class TILE, class SCALES>
__global__ void __launch_bounds__(THREADS, 1)
    fp8_scaled_shared(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                      Sharing sharing, gemmprof::Output out, SCALES scales) {
    share_tile<T, TILE>(map_a, map_b, sharing, out, scales);
}

}  // namespace GEMMPROF_STAGE
