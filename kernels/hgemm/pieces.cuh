// How a problem is divided among the clusters of a launch: tiles one after the other, and tiles cut along K (stream-K).
#pragma once

#include "../include/handed_sums.cuh"
#include "../include/shares.cuh"
#include "consumers.cuh"

namespace GEMMPROF_STAGE {

using gemmprof::Divisor;
using gemmprof::Shares;

// How a problem is divided among the clusters of a launch. `rows` counts rows of tiles, of pairs where blocks are
// paired.
struct Schedule {
    int rows, columns;
    int splits;    // blocks (or pairs) of a cluster that share a tile along K; then a cluster has one tile to do
    int clusters;  // of the launch
    int whole;     // tiles that are computed one after the other by one cluster each
    int steps;     // along K, of a whole tile
    bool bulk;     // the copy engine stores C
    bool a_once, b_once;  // each element of A, of B, is read by one block (or pair) only, and L2 need not keep it
    Divisor by_band, by_height;  // tiles of a band; rows of a last band that is lower than the others
    // The tiles after those, as one long row of steps along K, are cut into equal pieces, one for each cluster.
    float4* parts;                 // room for the sums of a block, for each block; null: no tiles are cut
    Shares part;                   // of a tile's steps, for the blocks that share it
    Shares piece;                  // of that row's steps
    Divisor by_cluster, by_steps;  // blocks of a cluster; steps of a tile
    unsigned long long* complete;  // for each block: `ticket` when its sums are there, reset by who takes them
    unsigned long long ticket;     // differs from launch to launch

    // The place of the index-th tile: down a band of GROUP rows, then the next column of the band.
    __device__ __forceinline__ void place(int index, int& row, int& column) const {
        const int first = by_band.divide(index) * GROUP, height = min(GROUP, rows - first);
        const int within = index - first * columns;
        column = height == GROUP ? within / GROUP : by_height.divide(within);
        row = first + within - column * height;
    }
};

// What a cluster does, piece by piece; the producer and the consumers walk the same list. CUT: tiles may be cut. Blocks
// that share a tile take its steps in turn: what they read at a time lies side by side along K.
template <bool CUT = true>
struct Pieces {
    int tile, first, last, steps;  // this piece: a tile, and so many steps along K, `splits` apart
    int next_tile, part_first, part_steps;
    int position, end;  // in the row of steps that are cut

    __device__ __forceinline__ Pieces(const Schedule& schedule, int cluster, int part) {
        next_tile = cluster;
        part_first = 0, part_steps = schedule.steps, position = 0, end = 0;
        if (schedule.splits > 1) part_first = part, part_steps = schedule.part.each + (part < schedule.part.rest);
        if (CUT && schedule.parts != nullptr) position = cut(schedule, cluster), end = cut(schedule, cluster - 1);
    }
    // Where a cluster's piece of the row begins. Backwards, and where one ends the piece of the cluster before it
    // begins: a cluster that waits for sums waits for those that were launched before it.
    static __device__ __forceinline__ int cut(const Schedule& schedule, int cluster) {
        return schedule.piece.begin(schedule.clusters - 1 - cluster);
    }
    __device__ __forceinline__ bool more(const Schedule& schedule) const {
        return next_tile < schedule.whole || (CUT && position < end);
    }
    __device__ __forceinline__ bool next(const Schedule& schedule) {
        if (next_tile < schedule.whole) {
            tile = next_tile, first = part_first, last = schedule.steps, steps = part_steps;
            next_tile += schedule.clusters;
            return true;
        }
        if (!CUT || position >= end) return false;
        const int behind = schedule.by_steps.divide(position);
        tile = schedule.whole + behind;
        first = position - behind * schedule.steps;
        last = min(schedule.steps, end - behind * schedule.steps), steps = last - first;
        position += steps;
        return true;
    }
};

// The sums of a tile that was cut along K: leaves them to the cluster that has its first steps (false), or takes what
// the others have left. `index` is this cluster's.
template <class TILE>
__device__ __forceinline__ bool complete_sums(float (&sums)[TILE::halves][TILE::wn / 2], const Schedule& schedule,
                                              const Pieces<>& piece, int index, int group) {
    constexpr int PART = TILE::part_floats / 4;
    const auto slot = [&](int block) { return block * TILE::slots + (TILE::in_turn ? 0 : group); };
    const int block = int(blockIdx.x);
    if (piece.first > 0 && schedule.splits == 1) {
        gemmprof::leave_part(sums, schedule.parts + slot(block) * PART, schedule.complete + slot(block), schedule.ticket,
                   3 + group);
        return false;
    }
    // Clusters before this one have computed the rest of this tile, each a piece.
    for (int from = index, done = piece.last; done < schedule.steps && schedule.splits == 1;) {
        const int begin = Pieces<>::cut(schedule, --from), end = Pieces<>::cut(schedule, from - 1);
        const int theirs = slot(block - (index - from) * TILE::pair);
        if (begin < end)
            gemmprof::take_part(sums, schedule.parts + theirs * PART, schedule.complete + theirs, schedule.ticket, 3 + group);
        done += end - begin;
    }
    return true;
}

}  // namespace GEMMPROF_STAGE
