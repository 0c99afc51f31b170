// What a block of the fastest stage computes, and how a problem is divided among clusters of them.
#pragma once

#include "../include/store_ring.cuh"
#include "wgmma_tile.cuh"

constexpr int CONSUMERS = 2;
constexpr int THREADS = (CONSUMERS + 1) * 128;
constexpr int SHARED_LIMIT = 232448;  // bytes of shared memory that a block may have on Hopper

namespace GEMMPROF_STAGE {

// How the two consumer warpgroups of a block divide its work.
enum class Consumers {
    kTogether,  // each computes half of the tile: 64 of its rows, or half of its columns where there are only 64 rows
    kInTurn,    // each computes tiles of its own: one multiplies while the other stores
};

// A block computes bm x bn of C. PAIR: 2 where blocks below each other share B. A tile may have fewer rows than the 64
// that wgmma multiplies: then only those are copied, and it reads what lies behind them into sums that nobody stores.
// SWAPPED: of the transpose of C, so A and B have changed places; sums for float32, or to be added to C, do not leave so.
template <int BM_, int BN_, int STAGES_, int PAIR_, Consumers CONSUMERS_, bool SWAPPED_>
struct Tile {
    static constexpr bool swapped = SWAPPED_;
    static constexpr int bm = BM_, bn = BN_, stages = STAGES_, pair = PAIR_;
    static constexpr bool in_turn = CONSUMERS_ == Consumers::kInTurn;
    static constexpr int halves = in_turn && bm == 128 ? 2 : 1;    // times 64 rows that a consumer computes
    static constexpr int wn = in_turn || bm == 128 ? bn : bn / 2;  // columns that a consumer computes
    static constexpr int warps = bm < 64 ? bm / 16 : 4;            // of a consumer whose rows lie in the tile
    static constexpr int store_columns = wn % 64 == 0 ? 64 : wn % 32 == 0 ? 32 : 16;   // that a warp hands over at a time
    static constexpr int store_parts = wn / store_columns, part_words = store_columns / 4;
    static constexpr int store_bytes = 16 * store_columns * 2;
    static constexpr int stage_bytes = (bm + (swapped ? bn : (bn + 63) / 64 * 64)) * BK * 2;
    static constexpr int needed_bytes = stages * stage_bytes + SWIZZLE_ATOM + 16 * stages + 8;
    static constexpr int store_buffers = needed_bytes + CONSUMERS * 4 * 2 * store_bytes <= SHARED_LIMIT ? 2 : 1;
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

// The tiles, their one list: name, rows, columns, stages, blocks of a pair, how consumers divide the work, swapped. The
// catalog's parameters give the large one. The others are for problems that it would leave SMs idle in, or store too
// much in. In turn: in pairs (Turn) or alone (Lone); of swapped ones, rows and columns of C have changed places. Those
// from Narrow on are for problems of one round, whose blocks may share K: narrow, a pair that reads B once, and of 96
// to 192 rows of C. A tile's number is its place in the list; fastest_choice.cuh knows what each costs.
#define GEMMPROF_TILES(X)                                     \
    X(Large, BM, BN, STAGES, 1, Consumers::kTogether, false)  \
    X(Turn128, 128, 128, 6, 2, Consumers::kInTurn, false)     \
    X(Turn160, 128, 160, 5, 2, Consumers::kInTurn, false)     \
    X(Turn192, 128, 192, 5, 2, Consumers::kInTurn, false)     \
    X(Swapped160, 128, 160, 5, 2, Consumers::kInTurn, true)   \
    X(Swapped192, 128, 192, 5, 2, Consumers::kInTurn, true)   \
    X(Medium, 128, 128, 6, 1, Consumers::kTogether, false)    \
    X(Small, 64, 128, 8, 1, Consumers::kTogether, false)      \
    X(Tiny, 64, 64, 12, 1, Consumers::kTogether, false)       \
    X(Lone192, 128, 192, 5, 1, Consumers::kInTurn, false)     \
    X(Lone128, 128, 128, 6, 1, Consumers::kInTurn, false)     \
    X(Lone64, 64, 128, 8, 1, Consumers::kInTurn, false)       \
    X(Lone16, 16, 128, 11, 1, Consumers::kInTurn, false)      \
    X(Narrow, 128, 64, 8, 1, Consumers::kTogether, false)     \
    X(MediumPair, 128, 128, 6, 2, Consumers::kTogether, false) \
    X(Tall160, 128, 160, 5, 1, Consumers::kTogether, true)    \
    X(Tall192, 64, 192, 6, 1, Consumers::kTogether, true)     \
    X(Tall96, 128, 96, 7, 1, Consumers::kTogether, true)      \
    X(Tall176, 128, 176, 5, 1, Consumers::kTogether, true)    \
    X(Slim160, 64, 160, 7, 1, Consumers::kTogether, true)

#define GEMMPROF_TILE(NAME, ...) \
    struct NAME : Tile<__VA_ARGS__> {};
GEMMPROF_TILES(GEMMPROF_TILE)
#undef GEMMPROF_TILE

#define GEMMPROF_TILE(NAME, ...) k##NAME,
enum TileName { GEMMPROF_TILES(GEMMPROF_TILE) kTiles };
#undef GEMMPROF_TILE

// Those that also take a transposed A.
#define GEMMPROF_TRANSPOSED_TILES(X) X(Large) X(Turn192) X(Medium) X(Small) X(Tiny) X(Lone128)

#define GEMMPROF_TILE(NAME) k##NAME,
constexpr int transposed_tiles[] = {GEMMPROF_TRANSPOSED_TILES(GEMMPROF_TILE)};
#undef GEMMPROF_TILE
inline constexpr int kRows = kTiles + int(sizeof(transposed_tiles) / sizeof(int));  // of four kernels each

// The place of a tile in that list; -1 if it is not there.
constexpr int transposed_row(int tile) {
    for (int row = 0; row < kRows - kTiles; ++row)
        if (transposed_tiles[row] == tile) return row;
    return -1;
}

// Division of 0 <= n < 2^31 by a number that the host knows: a multiplication, where the division proper would take a
// hundred cycles.
struct Divisor {
    unsigned divisor, multiplier, shift;

    static Divisor of(int divisor) {
        unsigned bits = 0;
        while ((1u << bits) < unsigned(divisor)) ++bits;
        if (bits == 0) return {1, 0, 0};
        return {unsigned(divisor), unsigned(((1ull << (31 + bits)) + unsigned(divisor) - 1) / unsigned(divisor)),
                bits - 1};
    }
    __device__ __forceinline__ int divide(int n) const {
        return divisor == 1 ? n : int(__umulhi(unsigned(n), multiplier) >> shift);
    }
};

// `total` in `shares` parts that differ by one at most.
struct Shares {
    int each, rest;  // the first `rest` shares have one more

    static Shares of(int total, int shares) { return {total / shares, total % shares}; }
    // Where the index-th begins, in 32 bits throughout.
    __device__ __forceinline__ int begin(int index) const { return each * index + min(index, rest); }
};

// How a problem is divided among the clusters of a launch. `rows` counts rows of tiles, of pairs where blocks are
// paired.
struct Schedule {
    int rows, columns;
    int splits;    // blocks (or pairs) of a cluster that share a tile along K; then a cluster has one tile to do
    int clusters;  // of the launch
    int whole;     // tiles that are computed one after the other by one cluster each
    int steps;     // along K, of a whole tile
    bool bulk;     // the copy engine stores C
    bool a_once;   // each element of A is read by one block (or pair) only, and L2 need not keep it
    bool b_once;
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

// What a cluster does, piece by piece; the producer and the consumers walk the same list.
struct Pieces {
    int tile, first, last;  // this piece: a tile, and steps along K from first up to last
    int next_tile, part_first, part_last;
    int position, end;  // in the row of steps that are cut

    __device__ __forceinline__ Pieces(const Schedule& schedule, int cluster, int part) {
        next_tile = cluster;
        part_first = 0, part_last = schedule.steps, position = 0, end = 0;
        if (schedule.splits > 1) part_first = schedule.part.begin(part), part_last = schedule.part.begin(part + 1);
        if (schedule.parts != nullptr) position = cut(schedule, cluster), end = cut(schedule, cluster - 1);
    }
    // Where a cluster's piece of the row begins. Backwards, and where one ends the piece of the cluster before it
    // begins: a cluster that waits for sums waits for those that were launched before it.
    static __device__ __forceinline__ int cut(const Schedule& schedule, int cluster) {
        return schedule.piece.begin(schedule.clusters - 1 - cluster);
    }
    __device__ __forceinline__ bool more(const Schedule& schedule) const {
        return next_tile < schedule.whole || position < end;
    }
    __device__ __forceinline__ bool next(const Schedule& schedule) {
        if (next_tile < schedule.whole) {
            tile = next_tile, first = part_first, last = part_last;
            next_tile += schedule.clusters;
            return true;
        }
        if (position >= end) return false;
        const int behind = schedule.by_steps.divide(position);
        tile = schedule.whole + behind;
        first = position - behind * schedule.steps;
        last = min(schedule.steps, end - behind * schedule.steps);
        position += last - first;
        return true;
    }
};

}  // namespace GEMMPROF_STAGE
