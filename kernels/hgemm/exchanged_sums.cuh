// Blocks of a cluster that share a tile along K: each sends its sums through distributed shared memory.
#pragma once

#include "consumers.cuh"

namespace GEMMPROF_STAGE {

// Which of a thread's `quads` four sums a block adds up: from first(part) to first(part + 1).
struct Share {
    int quads, splits;
    __device__ __forceinline__ int first(int part) const { return quads * part / splits; }
};

// What one thread holds of a 16 x 8 tile of sums of C, or of its transpose.
template <class T, class TILE>
__device__ __forceinline__ void store_four(const gemmprof::Output& out, int row, int col, const float (&sums)[4]) {
    if constexpr (!TILE::swapped)
        gemmprof::store_fragment<T>(out, row, col, sums);
    else
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int c_row = col + i % 2, c_col = row + i / 2 * 8;
            if (c_row < out.m && c_col < out.n) gemmprof::store_one<T>(out, c_row, c_col, sums[i]);
        }
}

// Sends each block that shares the tile its share of this thread's sums, adds up what the others have sent, in the same
// order every time, and stores it. `exchange` is the tiles' memory, or, where `apart`, one that nothing else
// uses, and the threads of the cluster have arrived at its barrier.
template <class T, class TILE, int COUNT>
__device__ __forceinline__ void exchange_and_store(const float (&sums)[COUNT], unsigned exchange, unsigned barrier,
                                                   int part, int splits, int pair_rank, int row, int col,
                                                   const gemmprof::Output& out, bool apart = false) {
    constexpr int LANES = CONSUMERS * 128 * 16;  // bytes that all threads' four sums take
    const Share share = {COUNT / 4, splits};
    const unsigned mine = exchange + threadIdx.x * 16;
    const int first = share.first(part), count = share.first(part + 1) - first;
    if (threadIdx.x == 0) ptx::barrier_expect(barrier, splits * count * LANES);
    // All blocks have read their last tiles, whose memory the sums now take, or have begun.
    if (!apart) ptx::cluster_arrive();
    ptx::cluster_wait();
    int owner = 0, start = 0, end = share.first(1);
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i) {
        while (i >= end) ++owner, start = end, end = share.first(owner + 1);
        const unsigned rank = unsigned(owner * TILE::pair + pair_rank);
        const unsigned slot = unsigned(part * (end - start) + i - start);
        ptx::send(ptx::address_at(mine + slot * LANES, rank),
                  make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]),
                  ptx::address_at(barrier, rank));
    }
    ptx::barrier_wait(barrier, 0);
    row += int(threadIdx.x) / 32 % 4 * 16 + int(threadIdx.x) % 32 / 4, col += int(threadIdx.x) % 4 * 2;
    for (int i = 0; i < count; ++i) {
        float4 sum = ptx::load_shared(mine + unsigned(i) * LANES);
        for (int other = 1; other < splits; ++other) {
            const float4 theirs = ptx::load_shared(mine + unsigned(other * count + i) * LANES);
            sum.x += theirs.x, sum.y += theirs.y, sum.z += theirs.z, sum.w += theirs.w;
        }
        store_four<T, TILE>(out, row, col + 8 * (first + i), {sum.x, sum.y, sum.z, sum.w});
    }
}

}  // namespace GEMMPROF_STAGE
