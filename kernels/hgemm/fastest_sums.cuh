// Where the sums of the fastest stage go: to C by way of shared memory, or first to the blocks that share a tile.
#pragma once

#include "fastest_tiles.cuh"

namespace GEMMPROF_STAGE {

// Sums as elements of C, two in a word.
template <class T, int COUNT>
__device__ __forceinline__ void pack_sums(unsigned (&words)[COUNT], const float* sums, float alpha = 1.0f) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) words[i] = gemmprof::pack<T>(alpha * sums[2 * i], alpha * sums[2 * i + 1]);
}

// A warp's 16 rows of packed sums, store_columns of them, into `buffer` in shared memory, as the copy engine swizzles
// 128, 64 or 32 bytes. Those of a swapped tile are 16 columns of C, of which a row has 32 bytes.
template <class TILE>
__device__ __forceinline__ void stage_part(const unsigned (&words)[TILE::part_words], unsigned buffer) {
    constexpr int COLUMNS = TILE::store_columns;
    const int lane = threadIdx.x % 32;
    const unsigned line = buffer + (TILE::swapped ? (lane / 16 * 8 + lane % 8) * 32 + (lane / 8 ^ lane / 4) % 2 * 16
                                                  : lane % 16 * COLUMNS * 2);
    const int key = COLUMNS == 64 ? lane % 8 : lane / 2 % 4;
#pragma unroll
    for (int i = 0; i < COLUMNS / 16; ++i) {
        const unsigned* const four = &words[i * 4];
        if constexpr (TILE::swapped)
            ptx::store_transposed(line + i * 16 * 32, four[0], four[1], four[2], four[3]);
        else
            ptx::store_matrices(line + ((2 * i + lane / 16) ^ key) * 16, four[0], four[1], four[2], four[3]);
    }
}

// Both, by way of the warp's own buffers.
template <class TILE>
__device__ __forceinline__ void stage_and_store(const unsigned (&words)[TILE::part_words], typename TILE::Ring& ring,
                                                const CUtensorMap* map_c, int row, int col) {
    const unsigned buffer = ring.next();
    stage_part<TILE>(words, buffer);
    ring.store(map_c, TILE::swapped ? row : col, TILE::swapped ? col : row, buffer);
}

// The same where the copy engine cannot store, because rows of C begin anywhere: elements, neighbours by neighbouring
// lanes. From registers a lane would write two in each of eight rows, and L2 merge sixteen writes of a sector.
template <class TILE>
__device__ __forceinline__ void stage_and_store_elements(const unsigned (&words)[TILE::part_words], unsigned buffer,
                                                         const gemmprof::Output& out, int row, int col) {
    constexpr int HIGH = TILE::swapped ? TILE::store_columns : 16, WIDE = TILE::swapped ? 16 : TILE::store_columns;
    const int first_row = TILE::swapped ? col : row, first_col = TILE::swapped ? row : col;
    __syncwarp();  // all have read what the buffer held
    stage_part<TILE>(words, buffer);
    __syncwarp();
    unsigned short* const c = static_cast<unsigned short*>(out.c);
#pragma unroll 4
    for (int i = threadIdx.x % 32; i < HIGH * WIDE; i += 32) {
        const int r = i / WIDE, column = i % WIDE;
        const int key = WIDE == 64 ? r % 8 : WIDE == 32 ? r / 2 % 4 : r / 4 % 2;
        const unsigned short bits =
            ptx::load_shared_16_bits(buffer + r * WIDE * 2 + (column / 8 ^ key) * 16 + column % 8 * 2);
        if (first_row + r < out.m && first_col + column < out.n) c[(first_row + r) * out.ldc + first_col + column] = bits;
    }
}

// Leaves the sums of steps of a tile that are not its first to the block that computes those.
template <int HALVES, int COUNT>
__device__ __forceinline__ void leave_part(const float (&sums)[HALVES][COUNT], float4* part,
                                           unsigned long long* complete, unsigned long long ticket, int barrier) {
    const int thread = threadIdx.x % 128;
    part += thread;
    asm volatile("" : "+l"(part));  // or all its addresses are computed ahead of the loop over tiles, and spilled
#pragma unroll
    for (int i = 0; i < HALVES * COUNT / 4; ++i) {
        const float* const s = &sums[i * 4 / COUNT][i * 4 % COUNT];
        __stcg(part + i * 128, make_float4(s[0], s[1], s[2], s[3]));
    }
    __threadfence();
    ptx::named_barrier_sync(barrier, 128);
    if (thread == 0) ptx::store_release(complete, ticket);
}

// Adds the sums that another block has left.
template <int HALVES, int COUNT>
__device__ __forceinline__ void take_part(float (&sums)[HALVES][COUNT], const float4* part,
                                          unsigned long long* complete, unsigned long long ticket, int barrier) {
    const int thread = threadIdx.x % 128;
    part += thread;
    asm volatile("" : "+l"(part));
    while (ptx::load_acquire(complete) != ticket) {
    }
    // A few loads at a time: all at once would need registers for as many sums again.
    constexpr int BATCH = 4;
#pragma unroll
    for (int i = 0; i < HALVES * COUNT / 4; i += BATCH) {
        float4 theirs[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; ++j) theirs[j] = ptx::load_l2(part + (i + j) * 128);
#pragma unroll
        for (int j = 0; j < BATCH; ++j) {
            float* const s = &sums[(i + j) * 4 / COUNT][(i + j) * 4 % COUNT];
            s[0] += theirs[j].x, s[1] += theirs[j].y, s[2] += theirs[j].z, s[3] += theirs[j].w;
            asm volatile("" : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]));
        }
    }
    ptx::named_barrier_sync(barrier, 128);
    if (thread == 0) *complete = 0;
}

// The sums of a tile that was cut along K: leaves them to the cluster that has its first steps (false), or takes what
// the others have left. `index` is this cluster's.
template <class TILE>
__device__ __forceinline__ bool complete_sums(float (&sums)[TILE::halves][TILE::wn / 2], const Schedule& schedule,
                                              const Pieces& piece, int index, int group) {
    constexpr int PART = TILE::part_floats / 4;
    const auto slot = [&](int block) { return block * TILE::slots + (TILE::in_turn ? 0 : group); };
    const int block = int(blockIdx.x);
    if (piece.first > 0 && schedule.splits == 1) {
        leave_part(sums, schedule.parts + slot(block) * PART, schedule.complete + slot(block), schedule.ticket,
                   3 + group);
        return false;
    }
    // Clusters before this one have computed the rest of this tile, each a piece.
    for (int from = index, done = piece.last; done < schedule.steps && schedule.splits == 1;) {
        const int begin = Pieces::cut(schedule, --from), end = Pieces::cut(schedule, from - 1);
        const int theirs = slot(block - (index - from) * TILE::pair);
        if (begin < end)
            take_part(sums, schedule.parts + theirs * PART, schedule.complete + theirs, schedule.ticket, 3 + group);
        done += end - begin;
    }
    return true;
}

// Which of a thread's `quads` four sums a block adds up: from first(part) to first(part + 1).
struct Share {
    int quads, splits;
    __device__ __forceinline__ int first(int part) const { return quads * part / splits; }
};

// What one thread holds of a 16 x 8 tile of sums of C transposed.
template <class T>
__device__ __forceinline__ void store_swapped(const gemmprof::Output& out, int row, int col, const float* sums) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int c_row = col + i % 2, c_col = row + i / 2 * 8;
        if (c_row < out.m && c_col < out.n) gemmprof::store_one<T>(out, c_row, c_col, sums[i]);
    }
}

// Sends each block that shares the tile its share of this thread's sums, adds up what the others have sent, in the same
// order every time, and stores it. `exchange` is the tiles' memory.
template <class T, class TILE, int COUNT>
__device__ __forceinline__ void exchange_and_store(const float (&sums)[COUNT], unsigned exchange, unsigned barrier,
                                                   int part, int splits, int pair_rank, int row, int col,
                                                   const gemmprof::Output& out) {
    constexpr int LANES = CONSUMERS * 128 * 16;  // bytes that all threads' four sums take
    const bool active = threadIdx.x / 32 % 4 < TILE::warps;
    const Share share = {COUNT / 4, splits};
    const unsigned mine = exchange + threadIdx.x * 16;
    const int first = share.first(part), count = share.first(part + 1) - first;
    if (threadIdx.x == 0) ptx::barrier_expect(barrier, splits * count * LANES / 4 * TILE::warps);
    // All blocks have read their last tiles, whose memory the sums now take.
    ptx::cluster_meet();
    int owner = 0, start = 0, end = share.first(1);
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i) {
        while (i >= end) ++owner, start = end, end = share.first(owner + 1);
        const unsigned rank = unsigned(owner * TILE::pair + pair_rank);
        const unsigned slot = unsigned(part * (end - start) + i - start);
        if (active)
            ptx::send(ptx::address_at(mine + slot * LANES, rank),
                      make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]),
                      ptx::address_at(barrier, rank));
    }
    if (!active) return;
    ptx::barrier_wait(barrier, 0);
    row += int(threadIdx.x) / 32 % 4 * 16 + int(threadIdx.x) % 32 / 4, col += int(threadIdx.x) % 4 * 2;
    for (int i = 0; i < count; ++i) {
        float4 sum = ptx::load_shared(mine + unsigned(i) * LANES);
        for (int other = 1; other < splits; ++other) {
            const float4 theirs = ptx::load_shared(mine + unsigned(other * count + i) * LANES);
            sum.x += theirs.x, sum.y += theirs.y, sum.z += theirs.z, sum.w += theirs.w;
        }
        const float four[4] = {sum.x, sum.y, sum.z, sum.w};
        if constexpr (TILE::swapped)
            store_swapped<T>(out, row, col + 8 * (first + i), four);
        else
            gemmprof::store_fragment<T>(out, row, col + 8 * (first + i), four);
    }
}

}  // namespace GEMMPROF_STAGE
