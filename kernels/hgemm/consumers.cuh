// What a block of the stages from consumers in turn on computes, and what each of its consumer warpgroups multiplies.
#pragma once

#include "../include/store_ring.cuh"
#include "wgmma_tile.cuh"

constexpr int CONSUMERS = 2;
constexpr int THREADS = (CONSUMERS + 1) * 128;

namespace GEMMPROF_STAGE {

// How the two consumer warpgroups of a block divide its work.
enum class Consumers {
    kTogether,  // each computes half of the tile: 64 of its rows, or half of its columns where there are only 64 rows
    kInTurn,    // each computes tiles of its own: one multiplies while the other stores
};

// A block computes bm x bn of C. PAIR: 2 where blocks below each other share B.
// SWAPPED: of the transpose of C, so A and B have changed places; sums for float32, or to be added to C, do not leave so.
template <int BM_, int BN_, int STAGES_, int PAIR_, Consumers CONSUMERS_, bool SWAPPED_, int BUF = 2>
struct Tile {
    static constexpr bool swapped = SWAPPED_;
    static constexpr int bm = BM_, bn = BN_, stages = STAGES_, pair = PAIR_;
    static constexpr bool in_turn = CONSUMERS_ == Consumers::kInTurn;
    static constexpr int halves = in_turn && bm == 128 ? 2 : 1;    // times 64 rows that a consumer computes
    static constexpr int wn = in_turn || bm == 128 ? bn : bn / 2;  // columns that a consumer computes
    static constexpr int store_columns = wn % 64 == 0 ? 64 : wn % 32 == 0 ? 32 : 16;   // that a warp hands over at a time
    static constexpr int store_parts = wn / store_columns, part_words = store_columns / 4;
    static constexpr int store_bytes = 16 * store_columns * 2;
    static constexpr int stage_bytes = (bm + (swapped ? bn : (bn + 63) / 64 * 64)) * BK * 2;
    static constexpr int needed_bytes = stages * stage_bytes + SWIZZLE_ATOM + 16 * stages + 8;
    static constexpr int store_buffers = needed_bytes + CONSUMERS * 4 * BUF * store_bytes <= SHARED_LIMIT ? BUF : 1;
    static constexpr int warp_staging = store_buffers * store_bytes;
    using Ring = gemmprof::StoreRing<store_buffers, store_bytes>;
    // Whether the packed sums of a tile stay in registers and are stored during the next one: consumers that compute a
    // tile together would otherwise both store and leave the tensor cores idle.
    static constexpr bool kept = !in_turn && wn == 256;
    static constexpr bool cuttable = in_turn || kept;      // into pieces along K
    static constexpr int slots = in_turn ? 1 : CONSUMERS;  // for the sums that consumers of a block leave to another
    static constexpr int part_floats = 64 * halves * wn;   // of a slot: the sums of one consumer
    static constexpr int shared_bytes = needed_bytes + CONSUMERS * 4 * warp_staging;
};

// sums += (or = where `add` is 0) its part of the tiles' product over BK, issued and not awaited.
template <class T, class TILE, class A, class B>
__device__ __forceinline__ void issue_step(float (&sums)[TILE::halves][TILE::wn / 2], unsigned a_tile, unsigned b_tile,
                                           int row, int col, int add) {
#pragma unroll
    for (int half = 0; half < TILE::halves; ++half) ptx::pin(sums[half]);
    ptx::wgmma_fence();
#pragma unroll
    for (int half = 0; half < TILE::halves; ++half)
        multiply_step<T, A, B>(sums[half], A::descriptor(a_tile, row + 64 * half), B::descriptor(b_tile, col), add);
    ptx::wgmma_commit();
}

}  // namespace GEMMPROF_STAGE
