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

// C from (row, col) on, known to be of T and only written, for pairs also `plain`: what is stored through it is
// compiled without the tests for any other C.
template <class T>
__device__ __forceinline__ gemmprof::Output plain_from(const gemmprof::Output& out, int row, int col) {
    T* const c = static_cast<T*>(out.c) + row * out.ldc + col;
    return {c, out.ldc, out.m - row, out.n - col, out.alpha, 0.0f, false, true, false};
}

// Stores `count` fours side by side from `col` on, as sum_of(i) adds them up. What C is, is asked once a four: asked
// before each element, the loop took 500 cycles a four.
template <class T, class TILE, class Sum>
__device__ __forceinline__ void store_share(const gemmprof::Output& out, int row, int col, int count, const Sum& sum_of) {
    constexpr int DOWN = TILE::swapped ? 8 : 0, RIGHT = 8 - DOWN;
    const bool plain = !out.is_float && (TILE::swapped ? out.beta == 0.0f : out.plain);
    auto rest = TILE::swapped ? plain_from<T>(out, col, row) : plain_from<T>(out, row, col);
    for (int i = 0; i < count; ++i) {
        const float4 sum = sum_of(i);
        const float four[4] = {sum.x, sum.y, sum.z, sum.w};
        if (plain)
            store_four<T, TILE>(rest, 0, 0, four);
        else
            store_four<T, TILE>(out, row, col + 8 * i, four);
        rest = plain_from<T>(rest, DOWN, RIGHT);
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
    store_share<T, TILE>(out, row, col + 8 * first, count, [&](int i) {
        float4 sum = ptx::load_shared(mine + unsigned(i) * LANES);
        for (int other = 1; other < splits; ++other) {
            const float4 theirs = ptx::load_shared(mine + unsigned(other * count + i) * LANES);
            sum.x += theirs.x, sum.y += theirs.y, sum.z += theirs.z, sum.w += theirs.w;
        }
        return sum;
    });
}

}  // namespace GEMMPROF_STAGE
