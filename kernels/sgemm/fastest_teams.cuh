// Stage 13: how a tile is added up whose blocks have several teams. First the teams of a block, by way of its shared
// memory; then the blocks that share the tile, by way of device memory (L2, in effect). Clusters would be faster, but
// those of three blocks and more leave SMs without partners.
#pragma once

#include "fastest_epilogue.cuh"
#include "fastest_tile.cuh"

namespace GEMMPROF_STAGE {

// Where the sums of a tile go.
struct TileOfC {
    float* c;
    std::int64_t ldc;
    int m, n, row, col;  // the size of C, and where in it the tile begins
    bool aligned;
    float beta;

    template <class T>
    __device__ __forceinline__ void store(int quad, float4 sum) const {
        store_quad(c, ldc, row + quad / (T::bn / 4), col + quad % (T::bn / 4) * 4, m, n, aligned, sum, 1.0f, beta);
    }
};

__device__ __forceinline__ void add(float4& sum, float4 v) { sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w; }

// What so many parts have of each sum, in their order.
template <int PARTS, int COUNT>
__device__ __forceinline__ void add_all(float4 (&sums)[COUNT], const float4 (&parts)[PARTS][COUNT]) {
#pragma unroll
    for (int p = 0; p < PARTS; ++p)
#pragma unroll
        for (int i = 0; i < COUNT; ++i) add(sums[i], parts[p][i]);
}

// Adds up what the blocks of a tile have left: this thread's float4 of a share, in the order of the blocks.
template <class T>
__device__ __forceinline__ void add_parts(const float4* parts, int splits, int first, int last, const TileOfC& c) {
    constexpr int QUADS_AT_ONCE = 2, PARTS_AT_ONCE = 8;  // loads on their way
    for (int quad = first + int(threadIdx.x); quad < last; quad += QUADS_AT_ONCE * T::threads) {
        float4 sum[QUADS_AT_ONCE] = {};
        for (int part = 0; part < splits; part += PARTS_AT_ONCE) {
            float4 v[PARTS_AT_ONCE][QUADS_AT_ONCE];
#pragma unroll
            for (int p = 0; p < PARTS_AT_ONCE; ++p)
#pragma unroll
                for (int q = 0; q < QUADS_AT_ONCE; ++q) {
                    const int from = quad + q * T::threads;
                    v[p][q] = part + p < splits && from < last
                                  ? gemmprof::ptx::load_l2(parts + std::int64_t(part + p) * T::quads + from)
                                  : float4{};
                }
            add_all(sum, v);
        }
#pragma unroll
        for (int q = 0; q < QUADS_AT_ONCE; ++q)
            if (quad + q * T::threads < last) c.store<T>(quad + q * T::threads, sum[q]);
    }
}

// `tiles` is the memory of this team, (row, col) where in the tile the thread's first sum belongs.
template <class T>
__device__ __forceinline__ void add_teams(const float (&sums)[T::tm][TN], unsigned tiles, unsigned all_tiles, int row,
                                          int col, int team, float alpha, int splits, const Parts& parts,
                                          const TileOfC& c) {
    gemmprof::ptx::named_barrier_sync(1 + team, T::team_threads);  // the team has read its last tiles
#pragma unroll
    for (int i = 0; i < T::tm; ++i)
#pragma unroll
        for (int quad = 0; quad < QUADS; ++quad) {
            const float* s = &sums[i][quad * 4];
            ptx::store_shared(tiles + ((row + i * T::lanes_m) * T::bn + col + quad * T::lanes_n * 4) * 4,
                         scaled(make_float4(s[0], s[1], s[2], s[3]), alpha));
        }
    __syncthreads();
    float4* const left = parts.sums + std::int64_t(blockIdx.x) * T::quads;
    constexpr int AT_ONCE = 4;
    for (int first = int(threadIdx.x); first < T::quads; first += AT_ONCE * T::threads) {
        float4 v[T::teams][AT_ONCE];
#pragma unroll
        for (int other = 0; other < T::teams; ++other)
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                const int quad = min(first + i * T::threads, T::quads - 1);
                v[other][i] = ptx::load_shared(all_tiles + other * STAGES * T::stage_bytes + quad * 16);
            }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int quad = first + i * T::threads;
#pragma unroll
            for (int other = 1; other < T::teams; ++other) add(v[0][i], v[other][i]);
            if (quad >= T::quads) break;
            if (splits == 1)
                c.store<T>(quad, v[0][i]);
            else
                __stcg(left + quad, v[0][i]);
        }
    }
    if (splits == 1) return;

    const int split = int(blockIdx.x) % splits, reader = split - (splits - parts.readers);
    __syncthreads();
    // A release after a barrier stands for the whole block.
    if (int(threadIdx.x) < parts.readers)
        gemmprof::ptx::store_release(parts.complete + std::int64_t(blockIdx.x) * parts.readers + threadIdx.x,
                                     parts.ticket);
    if (reader < 0) return;
    const std::int64_t tile_block = int(blockIdx.x) - split;  // the first of this tile
    if (int(threadIdx.x) < splits) {
        unsigned long long* const there = parts.complete + (tile_block + threadIdx.x) * parts.readers + reader;
        while (gemmprof::ptx::load_acquire(there) != parts.ticket) {
        }
        *there = 0;
    }
    __syncthreads();
    add_parts<T>(parts.sums + tile_block * T::quads, splits, T::quads * reader / parts.readers,
                 T::quads * (reader + 1) / parts.readers, c);
}

}  // namespace GEMMPROF_STAGE
