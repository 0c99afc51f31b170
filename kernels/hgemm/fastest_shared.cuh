// Where a block's tile lies, and how blocks of a cluster share a tile of many sums along K: the copy engine brings each
// its share of the others' sums, from shared memory to shared memory. Each block adds up its share in the order of the
// blocks, so the result is the same every time.
#pragma once

#include "exchanged_sums.cuh"
#include "pieces.cuh"

namespace GEMMPROF_STAGE {

constexpr int SUMMERS = CONSUMERS * 128;  // threads that have sums; four of each of them take LANES bytes
constexpr int LANES = SUMMERS * 16;

// Of the smallest tiles so many warps copy that each begins its first stage at once.
template <class TILE>
constexpr bool smallest = TILE::pair == 1 && TILE::stage_bytes <= 16 << 10;

// Sums for float32, or to be added to C: of a tile of C's transpose only where a thread has few.
template <class TILE>
constexpr bool stores_any = !TILE::swapped || (TILE::bn <= 32 && !smallest<TILE>);

// Tiles that may have every second row of C, those of even and of odd rows in turn. Where rows of A along K are an odd
// number of 16 bytes apart, either all of a tile's then begin within a sector, which makes them slow, or none does; and
// those that do are read from 16 bytes earlier on: what lies there reads as zero. So it is with rows of C, where tiles of
// odd rows begin 8 columns earlier; but the copy engine stores nothing that begins before C, so not the first. Of the
// smallest tiles what comes before the first copy is all that counts.
template <class TILE>
constexpr bool spreads = !TILE::swapped && !smallest<TILE>;

// A schedule, and where the last tiles begin: so far in that they are full.
struct Places : Schedule {
    int last_row, last_col;
    bool c_passes;  // C passes L2 with the lowest priority
    int second;     // 1: a tile has every second row
    int k_earlier, col_earlier;  // 1: that of odd rows begins CHUNK elements earlier along K, along C's rows

    // Where a block's tile begins, `rank` of its pair.
    template <class TILE>
    __device__ __forceinline__ void begin(int tile, int rank, int& row, int& col) const {
        place(tile, row, col);
        const int spread = spreads<TILE> ? second : 0, odd = row & spread;
        row = min(((row >> spread) * TILE::pair + rank) * TILE::bm, last_row) << spread | odd;
        col = max(min(col * TILE::bn, last_col) - (odd & col_earlier) * gemmprof::CHUNK, 0);
    }
};

// Tiles whose blocks share one have sums enough that a copy of them is worth its start; the smallest send theirs as stage
// 12 does.
template <class TILE>
constexpr bool copies_sums = !TILE::in_turn && !TILE::kept && !smallest<TILE>;

// Sums go to the memory of the block's stages, and those that others send behind them. All threads arrive at the
// cluster's barrier twice: when their tiles have been read, and when the others' sums are here.
template <class T, class TILE, int COUNT>
__device__ __forceinline__ void copy_and_store(const float (&sums)[COUNT], unsigned tiles, unsigned barrier, int part,
                                               int splits, int pair_rank, int row, int col,
                                               const gemmprof::Output& out) {
    constexpr int QUADS = COUNT / 4, MOST = TILE::pair == 1 ? 8 : 4;  // blocks that share a tile
    static_assert((2 * QUADS + MOST - QUADS / MOST) * LANES <= TILE::stages * TILE::stage_bytes,
                  "a thread's sums and those that it receives must fit the stages");
    const Share share = {QUADS, splits};
    const int thread = int(threadIdx.x), first = share.first(part), count = share.first(part + 1) - first;
    const unsigned mine = tiles + thread * 16, theirs = tiles + QUADS * LANES;
    if (thread == 0) ptx::barrier_expect(barrier, (splits - 1) * count * LANES);
    ptx::named_barrier_sync(3, SUMMERS);
    ptx::cluster_arrive();
#pragma unroll
    for (int i = 0; i < QUADS; ++i)
        ptx::store_shared(mine + i * LANES, make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]));
    ptx::fence_async_proxy();
    ptx::named_barrier_sync(3, SUMMERS);
    ptx::cluster_wait();
    if (thread < splits && thread != part) {
        const int from = share.first(thread), bytes = (share.first(thread + 1) - from) * LANES;
        const unsigned rank = unsigned(thread * TILE::pair + pair_rank);
        const unsigned to = theirs + (part < thread ? part : part - 1) * bytes;
        if (bytes > 0)
            ptx::send(ptx::address_at(to, rank), tiles + from * LANES, bytes, ptx::address_at(barrier, rank));
    }
    ptx::barrier_wait(barrier, 0);
    ptx::cluster_arrive();
    row += thread / 32 % 4 * 16 + thread % 32 / 4, col += thread % 4 * 2;
    store_share<T, TILE>(out, row, col + 8 * first, count, [&](int i) {
        float4 sum = {};
        for (int other = 0; other < splits; ++other) {
            const int slot = (other < part ? other : other - 1) * count + i;
            const float4 v =
                ptx::load_shared(other == part ? mine + (first + i) * LANES : theirs + slot * LANES + thread * 16);
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
        return sum;
    });
}

}  // namespace GEMMPROF_STAGE
