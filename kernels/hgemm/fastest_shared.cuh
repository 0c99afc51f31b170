// Blocks that share a tile along K, in two more ways than exchanged_sums.cuh's, for tiles of many sums. Of a cluster,
// the copy engine brings each block its share of the others' sums, from shared memory to shared memory. Where the GPU
// holds fewer clusters than there are tiles, blocks leave their sums in memory, which is L2, and any number of them
// shares a tile. Each block adds up its share in the order of the blocks, so the result is the same every time.
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
// those that do are read from 16 bytes earlier on: what lies there reads as zero. Of the smallest tiles what comes before
// the first copy is all that counts.
template <class TILE>
constexpr bool spreads = !TILE::swapped && !smallest<TILE>;

// A schedule, and where the last tiles begin: so far in that they are full. Its bands have a height of their own, and C
// may pass L2 with the lowest priority.
struct Places : Schedule {
    int last_row, last_col;
    int height;
    bool c_passes;
    Divisor by_full;  // tiles of a band's column
    int second;       // 1: a tile has every second row

    __device__ __forceinline__ void place(int index, int& row, int& column) const {
        const int first = by_band.divide(index) * height, high = min(height, rows - first);
        const int within = index - first * columns;
        column = high == height ? by_full.divide(within) : by_height.divide(within);
        row = first + within - column * high;
    }
    // Where a block's tile begins, `rank` of its pair.
    template <class TILE>
    __device__ __forceinline__ void begin(int tile, int rank, int& row, int& col) const {
        if constexpr (smallest<TILE>)
            Schedule::place(tile, row, col);
        else
            place(tile, row, col);
        const int spread = spreads<TILE> ? second : 0, odd = row & spread;
        row = min(((row >> spread) * TILE::pair + rank) * TILE::bm, last_row) << spread | odd;
        col = min(col * TILE::bn, last_col);
    }
};

// The most fours that a thread of a cluster's block receives where blocks share `quads`.
__host__ __device__ constexpr int most_received(int quads) {
    int most = 0;
    for (int splits = 2; splits <= 8; ++splits) {
        const int received = (splits - 1) * gemmprof::ceil_div(quads, splits);
        most = received > most ? received : most;
    }
    return most;
}

// Tiles that a block computes alone with registers left, and with sums enough that a copy of them is worth its start;
// they and what the others send fit the memory of the stages.
template <class TILE>
constexpr bool shareable = !TILE::in_turn && !TILE::kept && !smallest<TILE> &&
                           (TILE::wn / 8 + most_received(TILE::wn / 8)) * LANES <= TILE::stages * TILE::stage_bytes;

__device__ __forceinline__ void add(float (&four)[4], const float4& v) {
    four[0] += v.x, four[1] += v.y, four[2] += v.z, four[3] += v.w;
}

// Of a cluster: sums go to the memory of the block's stages, and those that others send behind them. All threads arrive
// at the cluster's barrier twice: when their tiles have been read, and when the others' sums are here.
template <class T, class TILE, int COUNT>
__device__ __forceinline__ void copy_and_store(const float (&sums)[COUNT], unsigned tiles, unsigned barrier, int part,
                                               int splits, int pair_rank, int row, int col,
                                               const gemmprof::Output& out) {
    constexpr int QUADS = COUNT / 4;
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
    for (int i = 0; i < count; ++i) {
        float four[4] = {};
        for (int other = 0; other < splits; ++other) {
            const int slot = (other < part ? other : other - 1) * count + i;
            add(four, ptx::load_shared(other == part ? mine + (first + i) * LANES : theirs + slot * LANES + thread * 16));
        }
        store_four<T, TILE>(out, row, col + 8 * (first + i), four);
    }
}

// Through memory: the words of block `reader` of a tile: one for each block that shares the tile, which says that its
// sums are there, and one that says that the last has started.
__device__ __forceinline__ unsigned long long* words_of(const Schedule& schedule, int tile, int reader) {
    return schedule.complete + (tile * schedule.splits + reader) * (schedule.splits + 1);
}

// A block that waited for one that has not started could keep it from starting. Blocks start in their order: where the
// last of a tile has, all have.
__device__ __forceinline__ void say_started(const Schedule& schedule, int tile, int part) {
    const int last = schedule.splits - 1, lane = int(threadIdx.x) % 32;
    if (part == last && lane < last)
        *static_cast<volatile unsigned long long*>(words_of(schedule, tile, lane) + schedule.splits) = schedule.ticket;
}

// Leaves this thread's sums, and adds up and stores the block's share of the tile. A block that finds that the last has
// not started leaves its share to that one.
template <class T, class TILE, int COUNT>
__device__ __forceinline__ void leave_and_store(const float (&sums)[COUNT], const Schedule& schedule, int tile,
                                                int part, int row, int col, const gemmprof::Output& out) {
    constexpr int QUADS = COUNT / 4, BATCH = 8;
    const int splits = schedule.splits, last = splits - 1, thread = int(threadIdx.x), lane = thread % 32;
    const unsigned long long ticket = schedule.ticket;
    const Share share = {QUADS, splits};
    const volatile unsigned long long* const started = words_of(schedule, tile, part) + splits;
    const bool asks = part < last && *started != ticket;
    float4* const place = schedule.parts + std::int64_t(tile) * QUADS * splits * SUMMERS + thread;
#pragma unroll
    for (int i = 0; i < QUADS; ++i)
        __stcg(place + (i * splits + part) * SUMMERS,
               make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]));
    const bool leaves = ptx::named_barrier_any(3, SUMMERS, asks);  // the same for all
    if (thread < splits) ptx::store_release(words_of(schedule, tile, thread) + part, ticket + leaves);
    if (leaves) return;
    row += thread / 32 % 4 * 16 + lane / 4, col += lane % 4 * 2;
    unsigned left = 1u << part;  // blocks whose shares are to be added up, this one first
    for (int own = part; left != 0; own = __ffs(int(left)) - 1) {
        unsigned long long* const words = words_of(schedule, tile, own);
        unsigned long long word = ticket;
        if (lane < splits)
            while (word = ptx::load_acquire(words + lane), word != ticket && word != ticket + 1) {
            }
        if (own == last) left |= __ballot_sync(~0u, word != ticket);
        left &= ~(1u << own);
        __syncwarp();
        const int end = share.first(own + 1);
        for (int i = share.first(own); i < end; i += 2) {  // two fours at a time: more loads on their way
            float four[2][4] = {};
            for (int other = 0; other < splits; other += BATCH) {
                float4 sent[2][BATCH];
#pragma unroll
                for (int j = 0; j < 2 * BATCH; ++j)
                    if (i + j / BATCH < end && other + j % BATCH < splits)
                        sent[j / BATCH][j % BATCH] =
                            ptx::load_l2(place + ((i + j / BATCH) * splits + other + j % BATCH) * SUMMERS);
#pragma unroll
                for (int j = 0; j < 2 * BATCH; ++j)
                    if (i + j / BATCH < end && other + j % BATCH < splits)
                        add(four[j / BATCH], sent[j / BATCH][j % BATCH]);
            }
            store_four<T, TILE>(out, row, col + 8 * i, four[0]);
            if (i + 1 < end) store_four<T, TILE>(out, row, col + 8 * i + 8, four[1]);
        }
        ptx::named_barrier_sync(3, SUMMERS);
        if (thread <= splits) words[thread] = 0;  // a replayed graph asks the same words for the same ticket
    }
}

}  // namespace GEMMPROF_STAGE
