// Stage 13: spans. Where the tiles divide the places for blocks badly however evenly each is shared, the steps of all
// tiles, one tile after the other, are shared instead: every place takes as many, the end of one tile and the beginning
// of the next. A tile's blocks then add up, each its share, by way of device memory (L2, in effect), in a fixed order.
#pragma once

#include "fastest_epilogue.cuh"
#include "fastest_teams.cuh"
#include "fastest_tile.cuh"

namespace GEMMPROF_STAGE {

// The first of `all` steps that a block takes; no block takes more than a tile has, so it has steps of two at most.
__device__ __forceinline__ int span_first(int all, unsigned block) { return int(unsigned(all) * block / gridDim.x); }

// The block that takes a step: the last that begins no later.
__device__ __forceinline__ int span_of(int all, int step) { return int((unsigned(step + 1) * gridDim.x - 1) / all); }

// Where a block leaves its sums of a tile: which of two parts.
__device__ __forceinline__ std::int64_t part_of(int all, int steps, int block, int tile) {
    return 2 * std::int64_t(block) + (tile - span_first(all, unsigned(block)) / steps);
}

// The sums of the tile whose last step here was `step - 1`, for the blocks that add it up; then they begin anew. A
// thread's lie as it holds them: who adds them up has the same place in its block.
template <class T>
__device__ __forceinline__ void leave_sums(float (&sums)[T::tm][TN], int step, int steps, int all, float alpha,
                                           const Parts& parts) {
    const int tile = (step - 1) / steps;
    const std::int64_t part = part_of(all, steps, int(blockIdx.x), tile);
    float4* const to = parts.sums + part * T::quads + threadIdx.x;
#pragma unroll
    for (int i = 0; i < T::tm; ++i)
#pragma unroll
        for (int quad = 0; quad < QUADS; ++quad) {
            float* const s = &sums[i][quad * 4];
            __stcg(to + (i * QUADS + quad) * T::threads, scaled(make_float4(s[0], s[1], s[2], s[3]), alpha));
            s[0] = s[1] = s[2] = s[3] = 0.0f;
        }
    const int readers = span_of(all, (tile + 1) * steps - 1) - span_of(all, tile * steps) + 1;
    __syncthreads();
    // A release after a barrier stands for the whole block.
    if (int(threadIdx.x) < readers)
        ptx::store_release(parts.complete + part * parts.readers + threadIdx.x, parts.ticket);
}

// Adds up this block's share of a tile: `store(i, quad, sum)` for sums that lie as leave_sums' do.
template <class T, class Store>
__device__ __forceinline__ void add_spans(int tile, int steps, int all, const Parts& parts, const Store& store) {
    constexpr int AT_ONCE = 4, PARTS_AT_ONCE = 5;  // loads on their way
    const int first = span_of(all, tile * steps), count = span_of(all, (tile + 1) * steps - 1) - first + 1;
    const int reader = int(blockIdx.x) - first;
    if (int(threadIdx.x) < count) {
        unsigned long long* const there =
            parts.complete + part_of(all, steps, first + int(threadIdx.x), tile) * parts.readers + reader;
        while (ptx::load_acquire(there) != parts.ticket) {
        }
        *there = 0;
    }
    __syncthreads();
    constexpr int EACH = T::tm * QUADS;
    const int last = EACH * (reader + 1) / count;
#pragma unroll 1
    for (int at = EACH * reader / count; at < last; at += AT_ONCE) {
        float4 sum[AT_ONCE] = {};
#pragma unroll 1
        for (int some = 0; some < count; some += PARTS_AT_ONCE) {
            float4 v[PARTS_AT_ONCE][AT_ONCE];
#pragma unroll
            for (int p = 0; p < PARTS_AT_ONCE; ++p) {
                const int block = min(first + some + p, first + count - 1);
                const float4* const from = parts.sums + threadIdx.x + part_of(all, steps, block, tile) * T::quads;
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i)
                    v[p][i] = some + p < count && at + i < last ? ptx::load_l2(from + (at + i) * T::threads) : float4{};
            }
            add_all(sum, v);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i)
            if (at + i < last) store((at + i) / QUADS, (at + i) % QUADS, sum[i]);
    }
}

}  // namespace GEMMPROF_STAGE
