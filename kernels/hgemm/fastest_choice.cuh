// Which tile computes a problem, and how many blocks share one: a model of time, and the memory that shared tiles need.
// Host code.
#pragma once

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>

#include "clusters.cuh"
#include "fastest_dots.cuh"
#include "fastest_shared.cuh"
#include "fastest_tiles.cuh"
#include "staged_store.cuh"
#include "workspace.cuh"

constexpr int LARGEST_CLUSTER = 16;  // that some GPUs accept: fours of blocks that read one operand once share K in it

namespace GEMMPROF_STAGE {

using gemmprof::MAX_CLUSTER;

// What the model needs to know of a tile.
struct TileFacts {
    int bm, bn, pair;
    bool in_turn, swapped, kept, smallest, any;  // `any`: `stores_any`
    int part_bytes;                              // of the sums that a consumer may leave to another
};

template <class TILE>
constexpr TileFacts facts() {
    return {TILE::bm,   TILE::bn,       TILE::pair,       TILE::in_turn,        TILE::swapped,
            TILE::kept, smallest<TILE>, stores_any<TILE>, TILE::part_floats * 4};
}

#define GEMMPROF_TILE(NAME, ...) facts<NAME>(),
constexpr TileFacts tile_facts[kTiles] = {GEMMPROF_TILES(GEMMPROF_TILE)};
#undef GEMMPROF_TILE

// What a card takes for it. Microseconds, fitted to 7,420 shapes of an H200 and 14,807 of an H100, and from there half of
// the way (H200), or 0.7 of it, to what 2,507 others ask for whose last tiles begin further in; but an H100's LargePair
// has its old time for each later tile (docs/fastest_hgemm.md). So are most constants below: what hides behind other times
// counts for less, which is why some bandwidths are above what a card has.
struct TileTimes {
    double step;       // BK along K, of a block that waits for nobody
    double block;      // start and end of a block's tiles
    double later;      // of a block's second tile and each that follows; behind steps, where storing hides there
    double hot;        // part of its time that a step takes more at the card's power limit
    double bandwidth;  // share of the device memory's bandwidth that its copies reach
    double wasted;     // the power of what tiles cover over C that all but sharing takes longer
    double sharing;    // factor of what the exchange of sums within a cluster takes
};

// Operations from which on the card nears its power limit, and from which on it is there, one such launch after
// another.
constexpr double WARM = 59e9, HOT = 396e9;

// What differs between cards. Bytes a microsecond, microseconds a byte.
struct Card {
    double memory;                     // how fast its memory is (gemmprof::memory_speed)
    double launch;                     // microseconds
    double bandwidth, bandwidth_once;  // of device memory, and where B is read once, by a tile of bandwidth 1
    double from_l2;                    // that L2 hands out to all SMs
    double store;                      // of C
    double write_back;                 // of what others have written to L2 and operands drive out, up to WRITTEN_BYTES
    dots::Costs small;                 // of products straight from memory
    TileTimes tiles[kTiles];
};
constexpr Card H200 = {
    1.0, 4.91, 6.18e+06, 7.89e+06, 2.00e+07, 5.46e-08, 1.51e-08,
    {3.77, 0.684, 0.158, 0.0551, 0.000879, 4.15, 0.0287, 5.62, 1.84e+06},
    {
        {0.544, 2.35, 1.65, 0.0159, 1.01, 0.025, 1.0},              // Large
        {0.597, 3.66, 0.886, 0.0196, 1.64, 0.0717, 1.0},            // LargePair
        {0.38, 3.41, 1.35, 0.017, 1.5, 0.313, 1.0},                 // Turn160
        {0.42, 2.88, 1.22, 0.0654, 1.12, 0.179, 1.0},               // Turn192
        {0.277, 1.14, 0.483, 0.188, 0.791, 0.0537, 1.16},           // Medium
        {0.167, 0.421, 0.573, 0.052, 0.808, 0.0589, 1.09},          // Small
        {0.108, 0.234, 0.508, 0.118, 0.748, 0.0891, 0.822},         // Tiny
        {0.258, 1.37, 1.05, 0.001, 0.673, 0.0565, 1.0},             // Lone128
        {0.15, 0.691, 0.441, 0.15, 0.798, 0.107, 1.0},              // Lone64
        {0.068, 1.22, 0.5, 0.12, 0.76, 0.049, 1.11},                // Flat16
        {0.087, 0.93, 0.5, 0.12, 0.82, 0.064, 0.92},                // Flat32
        {0.1, 0.93, 0.5, 0.12, 0.82, 0.064, 0.92},                  // Thin32
        {0.172, 0.621, 0.373, 0.133, 0.666, 0.13, 0.917},           // Narrow
        {0.301, 1.69, 0.538, 0.0426, 0.883, 0.206, 0.773},          // MediumPair
        {0.199, 0.83, 0.807, 0.425, 0.704, 0.111, 1.1},             // Tall96
        {0.102, 0.243, 0.599, 0.117, 0.729, 0.0532, 1.09},          // Slim32
        {0.427, 3.27, 1.75, 0.03, 1.07, 0.0735, 0.583},             // TallPair192
        {0.206, 0.964, 0.266, 0.0483, 1.47, 0.0408, 0.833},         // SmallQuad
        {0.324, 1.44, 0.422, 0.0257, 1.41, 0.0303, 0.791},          // MediumQuad
        {0.366, 2.6, 1.86, 0.0261, 1.1, 0.0823, 0.766},             // TallQuad160
        {0.211, 1.84, 0.762, 0.0495, 0.89, 0.0772, 0.735},          // SlimQuad160
        {0.43, 1.6, 1.10, 0.065, 0.7, 0.12, 1.0}                    // Lone192
    }};
constexpr Card H100 = {
    0.682, 4.72, 4.91e+06, 5.17e+06, 1.80e+07, 1.13e-07, 5.62e-08,
    {3.18, 0.709, 0.236, 0.0588, 0.000795, 4.44, 0.0652, 1.15, 1.59e+06},
    {
        {0.481, 2.27, 1.56, 0.0203, 1.03, 0.0229, 1.0},             // Large
        {0.517, 3.92, 1.0, 0.0136, 1.37, 0.0588, 1.0},              // LargePair
        {0.38, 3.81, 1.25, 0.0173, 1.35, 0.247, 1.0},               // Turn160
        {0.371, 2.89, 1.21, 0.0651, 1.22, 0.289, 1.0},              // Turn192
        {0.241, 1.24, 0.577, 0.155, 0.783, 0.0443, 1.15},           // Medium
        {0.149, 0.451, 0.493, 0.0523, 0.898, 0.051, 1.15},          // Small
        {0.103, 0.206, 0.521, 0.118, 0.815, 0.075, 0.818},          // Tiny
        {0.233, 1.4, 0.571, 0.001, 0.634, 0.0476, 1.0},             // Lone128
        {0.14, 0.666, 0.1, 0.136, 0.805, 0.107, 1.0},               // Lone64
        {0.06, 1.28, 0.4, 0.12, 0.89, 0.04, 0.9},                   // Flat16
        {0.087, 1.23, 0.4, 0.12, 0.9, 0.071, 0.9},                  // Flat32
        {0.1, 1.23, 0.4, 0.12, 0.9, 0.071, 0.9},                    // Thin32
        {0.166, 0.678, 0.295, 0.132, 0.82, 0.0471, 1.07},           // Narrow
        {0.283, 2.19, 0.57, 0.0393, 1.05, 0.162, 0.707},            // MediumPair
        {0.195, 0.989, 0.641, 0.269, 0.785, 0.0838, 1.24},          // Tall96
        {0.0879, 0.198, 0.686, 0.117, 0.742, 0.0399, 1.19},         // Slim32
        {0.377, 3.44, 1.75, 0.0444, 1.15, 0.121, 0.51},             // TallPair192
        {0.192, 0.844, 0.257, 0.0483, 1.32, 0.0509, 0.782},         // SmallQuad
        {0.298, 1.57, 0.263, 0.0256, 1.32, 0.061, 0.864},           // MediumQuad
        {0.319, 2.75, 1.99, 0.0272, 1.08, 0.0804, 0.971},           // TallQuad160
        {0.213, 1.74, 1.01, 0.0493, 1.25, 0.0769, 0.795},           // SlimQuad160
        {0.38, 3.2, 1.3, 0.065, 0.7, 0.2, 1.0}                       // Lone192
    }};

constexpr double WRITTEN_BYTES = 5e7;
// From which on an operand that is read once has no policy, of memory as fast as an H200's: K along its rows, or across;
// and one whose rows of 128 bytes lie in two lines of L2.
constexpr double READ_ONCE_ALONG = 2.9e8, READ_ONCE_ACROSS = 4.2e8, READ_ONCE_BEYOND = 2.4e8;
// Operands that are read more than once pass L2 with the lowest priority: both are between these, the third where no
// blocks share K, and each is at least.
constexpr double PASSING_LEAST = 1.6e7, PASSING_MOST = 6.4e7, PASSING_MOST_ALONE = 1.12e8, PASSING_EACH = 4e6;
// So does C, from so many bytes on and up to such a K: of memory as fast as an H200's, and of slower one.
constexpr double PASSING_C = 1e8;
constexpr int PASSING_C_K = 64, PASSING_C_K_SLOWER = 256;
constexpr double PACK = 3.2, PACK_BANDWIDTH = 4.0e6;  // of the launch that copies operands; bytes a microsecond
constexpr int FOUR = 4;
// Blocks that are launched four by four: at most this part of the SMs; the bandwidth that they reach over that of others.
constexpr double MOST_IN_FOURS = 0.7, IN_FOURS = 1.05;
constexpr double BEYOND_LINE = 0.734;  // that a row costs more whose 128 bytes lie in two lines of L2
// Of a tile in turn half of a block's threads store all. Where that is element by element, in so few rounds little hides it:
// microseconds.
constexpr double STORED_IN_TURN = 3.0, FEW_ROUNDS = 3;
constexpr double L2_HOLDS = 7.87e+06;  // operands of which later rounds find all in L2, of twice that none
// Of the sums of blocks that share a tile, for each tile of a block: microseconds, and a byte, as if all blocks had the
// largest share of them to add; more while others do.
constexpr double EXCHANGE = 0.434, EXCHANGE_BYTE = 2.84e-05, EXCHANGE_BUSY = 3.1;
constexpr double COPIED = 0.691, COPIED_BYTE = 1.50e-05;
// By the blocks of a cluster that shares a tile: the time it takes over that of the terms above.
constexpr double SHARERS[MAX_CLUSTER + 1] = {1.0, 1.0, 1.0, 1.01, 0.98, 1.045, 1.04, 1.0, 1.01};
constexpr double MORE_SHARERS = 1.07;  // of more than MAX_CLUSTER
constexpr double NEAR_BANDWIDTH = 0.975;  // of the bandwidth that a tile's copies reach: what blocks that share it do
// Clusters that share a tile are at different places of K, too: each row of tiles but the first reads a part of B again.
constexpr double READ_AGAIN = 0.342;
// A tile that lies partly beyond C copies less than its neighbours and runs ahead of them along K, so fewer of their
// requests are for the same at the same time: what L2 takes more, times the largest part of a tile beyond C. From so long
// a K on the last tiles begin further in instead.
constexpr int INWARD_K = 512;
constexpr double EDGE = 0.368;
// The tiles of the last round are cut only where sums are kept. What they read is shared while L2 holds all of it, and
// hardly beyond twice that.
constexpr double FETCH = 11, FETCH_PER_PART = 1.38, L2_BYTES = 4.40e+07;
constexpr double SPLIT_ROW = 0.00366;  // that the copy engine takes for a row that begins within a sector, read or stored
constexpr double SPREAD = 0.6;  // the part of it that rows of A still take where a tile has every second one
constexpr double KEEP = 0.415;  // between a tile whose sums are kept and the next

struct Choice {
    int tile = kSmall;
    int splits = 1;    // blocks (or pairs) that share every tile
    bool cut = false;  // the last round's tiles are cut into equal pieces, one for each cluster
    bool second = false;  // a tile has every second row
    double time = 1e300;  // expected, in microseconds
};

// Two tiles store the same bits where they overlap, unless C is read or they are cut at different places.
inline bool begins_inward(const gemmprof::Gemm& g, const Choice& choice) {
    return g.k > INWARD_K && g.beta == 0.0f && !choice.cut;
}

// How many clusters of this size the device holds at a time; none where it accepts only smaller ones.
inline int cluster_places(int device, int sms, int cluster, const gemmprof::KernelFacts& kernel) {
    static gemmprof::KnownPlaces<LARGEST_CLUSTER> known;
    return known(kernel, device, sms, cluster);
}

// The problem whose C is the transpose of this one's C: operands and sides change places. It says nothing of C's
// memory.
inline gemmprof::Gemm swapped(const gemmprof::Gemm& g) {
    gemmprof::Gemm other = g;
    other.m = g.n, other.n = g.m;
    other.a = g.b, other.lda = g.ldb, other.a_transposed = !g.b_transposed;
    other.b = g.a, other.ldb = g.lda, other.b_transposed = !g.a_transposed;
    return other;
}

// A problem as a tile computes it, and how tiles, or pairs of them, cover C.
struct Cover {
    const Choice& choice;
    const TileFacts& tile;
    gemmprof::Gemm seen;
    int places;                // clusters that the device holds
    int side;                  // rows of C, or every second one, that a column of tiles divides
    int rows, columns, steps;  // of tiles; of BK along K
    std::int64_t count;
};

inline Cover cover_of(const gemmprof::Gemm& problem, const Choice& choice, int places) {
    const TileFacts& tile = tile_facts[choice.tile];
    const gemmprof::Gemm g = tile.swapped ? swapped(problem) : problem;
    const int side = gemmprof::ceil_div(g.m, 1 + choice.second), columns = gemmprof::ceil_div(g.n, tile.bn);
    const int rows = gemmprof::ceil_div(side, tile.bm * tile.pair) << choice.second;
    return {choice, tile, g, places, side, rows, columns, gemmprof::ceil_div(g.k, BK), std::int64_t(rows) * columns};
}

// How many rows of an operand's tile (of 64 columns, where K is across) begin within a sector of 32 bytes: every second
// one where their distance is an odd multiple of 16 bytes. The copy engine takes four times as long for such a row.
inline double split_rows(int extent, bool along_k, const void* data, std::int64_t ld) {
    const std::int64_t from = std::int64_t(reinterpret_cast<std::uintptr_t>(data)) % 32, apart = 2 * ld % 32;
    // Rows that begin anywhere are copied to aligned ones before.
    const double share = (from | apart) % 16 != 0 ? 0.0 : apart != 0 ? 0.5 : from != 0 ? 1.0 : 0.0;
    return share * (along_k ? extent : gemmprof::ceil_div(extent, 64) * BK);
}

// Whether rows along K, or C's, begin within a sector every second one, the odd ones.
inline bool odd_within(const void* data, std::int64_t ld) {
    return split_rows(2, true, data, ld) == 1.0 && reinterpret_cast<std::uintptr_t>(data) % 32 == 0;
}

// The same of C, if no tile more is needed where those of odd rows begin earlier.
inline bool odd_within_c(const gemmprof::Gemm& g) { return odd_within(g.c, g.ldc) && g.n % (2 * gemmprof::CHUNK) != 0; }

// Whether tiles of every second row can compute a problem, and odd rows of A or C begin within a sector: to begin earlier
// adds no step for A's.
inline bool can_spread(const gemmprof::Gemm& g, const TileFacts& tile) {
    return !tile.swapped && !tile.smallest && !g.a_transposed && stored_by_copies(g) &&
           (odd_within(g.a, g.lda) ? g.k % BK != 0 && g.k % BK <= BK - gemmprof::CHUNK : odd_within_c(g));
}

// Of an operand's rows of 128 bytes, those that lie in two lines of L2.
inline double beyond_lines(const void* data, std::int64_t ld) {
    const std::int64_t from = std::int64_t(reinterpret_cast<std::uintptr_t>(data)) % 128, apart = 2 * ld % 128;
    if ((from | apart) % 16 != 0) return 0.0;  // is copied before
    return apart != 0 ? 1.0 - double(apart & -apart) / 128 : from != 0 ? 1.0 : 0.0;
}

// What passes L2 with the lowest priority. Of operands: then what other launches wrote is not written back meanwhile.
struct Passing {
    bool a, b, c;
};

// An operand that is read once passes, unless it is much larger than L2 and read faster as any other. One that several
// blocks read does, if it is neither small nor far beyond L2, where they read the same at about the same time: each has
// one tile, and all clusters are at the same places of K, of a size that divides a group of SMs evenly. Those of other
// sizes drift apart, and rows of 128 bytes that lie in two lines need each line twice: what comes second has to read from
// memory again. C does, if its writing takes longer than all else and L2 holds little of it.
inline Passing passing(const Cover& cover, double memory) {
    const auto& [choice, tile, g, places, side, rows, columns, steps, count] = cover;
    const int cluster = tile.pair * choice.splits;
    const double a = 2.0 * g.m * g.k, b = 2.0 * g.n * g.k;
    const double most = choice.splits > 1 ? PASSING_MOST : PASSING_MOST_ALONE;
    const bool together = !choice.cut && count <= places && (cluster & (cluster - 1)) == 0 && a + b >= PASSING_LEAST &&
                          a + b <= most;
    const auto passes = [&](int others, double bytes, const void* data, std::int64_t ld, bool along) {
        const bool beyond = beyond_lines(data, ld) > 0.0;
        if (others > 1) return together && bytes >= PASSING_EACH && !beyond;
        return bytes < memory * (beyond ? READ_ONCE_BEYOND : along ? READ_ONCE_ALONG : READ_ONCE_ACROSS);
    };
    const bool fast = memory > 0.84;
    const bool c = 2.0 * g.m * g.n >= PASSING_C && g.k <= (fast ? PASSING_C_K : PASSING_C_K_SLOWER) &&
                   (!fast || tile.bm >= 128) && !tile.swapped && !tile.smallest;
    return {passes(columns, a, g.a, g.lda, !g.a_transposed), passes(rows, b, g.b, g.ldb, g.b_transposed), c};
}

// Whether blocks that compute tiles alone are launched four by four, which changes where they run and nothing else: those
// of a cluster have the same neighbours and the same speed, so those that read the same rows of a large operand side by
// side stay together. Where it is read once, and no group of SMs has to take more of them than others.
inline bool in_fours(const Cover& cover) {
    const auto& [choice, tile, g, places, side, rows, columns, steps, count] = cover;
    const bool once = (rows == 1 || (columns == 1 && g.n > 8)) && 2.0 * g.k * std::max(g.m, g.n) >= PASSING_LEAST;
    return tile.pair == 1 && choice.splits == 1 && !choice.cut && once &&
           std::ceil(double(count) / std::ceil(double(count) / places)) <= MOST_IN_FOURS * places;
}

// What things take that hide each other in part.
inline double both(double a, double b) { return std::sqrt(a * a + b * b); }
inline double all(double a, double b, double c) { return std::cbrt(a * a * a + b * b * b + c * c * c); }

// The part of the last tile that lies beyond C, along one side; none where that tile is the only one, and all are alike.
inline double beyond_edge(int extent, int tile) {
    return extent > tile && extent % tile != 0 ? 1.0 - double(extent % tile) / tile : 0.0;
}

// Rounds in which as many places have a tile as need no more rounds: the time of their steps, which L2 may hold up, or
// that of the operands that their tiles read, each once a round. Endless where it is clearly no less than `bound`.
inline double expected_time(const gemmprof::Gemm& problem, const Cover& cover, const Card& card, double bound) {
    const Choice& choice = cover.choice;
    const TileFacts& tile = cover.tile;
    const gemmprof::Gemm& g = cover.seen;
    const int places = cover.places, rows = cover.rows, columns = cover.columns, all_steps = cover.steps;
    const std::int64_t count = cover.count;
    const TileTimes& times = card.tiles[choice.tile];
    const std::int64_t full = count / places, rest = count % places;
    // What is cut: at most one tile a cluster, whose steps along K are counted in 32 bits.
    if (choice.cut && (rest == 0 || count * all_steps < 4 * places || 2.0 * places * all_steps >= INT_MAX)) return 1e300;
    const double rounds = double(full + (rest > 0)), filled = double(count) / places;
    const int parts = gemmprof::ceil_div(all_steps, choice.splits);
    if (card.launch + filled * parts * times.step >= bound) return 1e300;
    const double at_once = choice.cut ? double(places) : std::ceil(double(count) / rounds);
    const double heat = std::clamp((2.0 * g.m * g.n * g.k - WARM) / (HOT - WARM), 0.0, 1.0);
    const double split = (choice.second ? SPREAD : 1.0) * split_rows(tile.bm, !g.a_transposed, g.a, g.lda) +
                         split_rows(tile.bn, g.b_transposed, g.b, g.ldb) / tile.pair;
    // Rows that are stored from within a sector, by the copy engine that reads the next tile meanwhile.
    const double stored = choice.splits > 1 ? 0.0 : split_rows(tile.bm * tile.bn / 64, true, problem.c, problem.ldc) /
                                                         (choice.second && odd_within_c(problem) ? columns : 1);
    const double a_cost = 1.0 + BEYOND_LINE * beyond_lines(g.a, g.lda);
    const double b_cost = 1.0 + BEYOND_LINE * beyond_lines(g.b, g.ldb);
    const int copied = tile.swapped ? tile.bn : gemmprof::ceil_div(tile.bn, 64) * 64;
    const double asked = (a_cost * tile.bm * tile.pair + b_cost * copied) * 2.0 * BK * choice.splits * at_once;
    const double beyond = std::max(beyond_edge(cover.side, tile.bm * tile.pair), beyond_edge(g.n, tile.bn));
    const double l2 = asked * (1.0 + (begins_inward(g, choice) ? 0.0 : EDGE * beyond)) / card.from_l2;
    const double steps = parts * all(times.step * (1.0 + heat * times.hot), SPLIT_ROW * (split + stored / parts), l2);
    // So many tiles of a block, one after the other.
    const double next = tile.in_turn || tile.kept ? both(steps, times.later) : steps + times.later;
    const auto work = [&](double tiles) { return std::min(tiles, 1.0) * steps + std::max(tiles - 1.0, 0.0) * next; };
    const bool once = rows == 1 || columns == 1;  // the larger operand is
    const bool near = choice.splits > 1;
    const double high = std::min(rows, GROUP), again = near ? 1.0 + READ_AGAIN * (high - 1.0) : 1.0;
    const auto bytes = [&](double tiles) {
        const double wide = std::min<double>(columns, std::ceil(tiles / high));
        const double deep = std::min<double>(rows, high * std::ceil(tiles / (high * columns)));
        return (std::min<double>(g.m, deep * tile.bm * tile.pair) * a_cost +
                std::min<double>(g.n, wide * tile.bn) * b_cost * again) * 2.0 * g.k;
    };
    const double operands = 2.0 * g.k * (double(g.m) + g.n), each_once = 2.0 * g.k * (g.m * a_cost + g.n * b_cost);
    const double reached = times.bandwidth * (near ? NEAR_BANDWIDTH : 1.0);
    double read = choice.cut ? double(full) * bytes(places) + bytes(double(rest)) : rounds * bytes(at_once);
    read -= std::clamp(2.0 - operands / L2_HOLDS, 0.0, 1.0) * std::max(0.0, read - each_once);
    read /= (once ? card.bandwidth_once : card.bandwidth) * reached * (in_fours(cover) ? IN_FOURS : 1.0);
    double time = card.launch + card.store * 2.0 * g.m * g.n + SPLIT_ROW * stored;
    if (choice.cut) {
        const double apart = std::clamp(bytes(double(rest)) / L2_BYTES - 1.0, 0.0, 1.0);
        time += both(work(filled + apart * double(rest) / places), read);
        time += FETCH + FETCH_PER_PART * double((places + rest - 1) / rest);
    } else {
        time += both(work(rounds), read);
    }
    if (!once) time += card.write_back * std::min(operands, WRITTEN_BYTES);
    time += times.block + (tile.kept ? KEEP * rounds : 0.0);
    if (tile.in_turn && rounds <= FEW_ROUNDS && stored_packed(problem) && !stored_by_copies(problem))
        time += STORED_IN_TURN;
    const double covered = double(count) * tile.bm * tile.pair * tile.bn / (double(g.m) * g.n);
    if (covered > 1.0) time *= std::pow(covered, times.wasted);
    if (!near) return time;
    const int quads = tile.bm * tile.bn / 1024;  // times four sums that a thread has
    const double sums = 4096.0 * choice.splits * gemmprof::ceil_div(quads, choice.splits);
    const double byte = (tile.smallest ? EXCHANGE_BYTE : COPIED_BYTE) * (1.0 + EXCHANGE_BUSY * at_once / places);
    time += times.sharing * rounds * ((tile.smallest ? EXCHANGE : COPIED) + byte * sums);
    const int sharers = tile.pair * choice.splits;
    return time * (sharers > MAX_CLUSTER ? MORE_SHARERS : SHARERS[sharers]);
}

// The constants of a card whose memory is so fast: those of the measured one whose memory is nearer.
inline Card card_of(double memory) {
    Card card = memory > 0.84 ? H200 : H100;
    const double faster = memory / card.memory;
    card.bandwidth *= faster, card.bandwidth_once *= faster, card.small.bandwidth *= faster;
    return card;
}

// The choice with the shortest expected time. A transposed A has few tiles. `places_of` says how many clusters of
// a size the device holds.
template <class Places>
Choice choose_schedule(const gemmprof::Gemm& g, const Places& places_of, const Card& card) {
    Choice best;
    const auto consider = [&](Choice choice, int places) {
        choice.time = expected_time(g, cover_of(g, choice, places), card, best.time);
        if (choice.time < best.time) best = choice;
    };
    for (int tile = 0; tile < kTiles; ++tile) {
        if (g.a_transposed && transposed_row(tile) < 0) continue;
        const TileFacts& facts = tile_facts[tile];
        if (!facts.any && !stored_packed(g)) continue;
        // Tiles of few rows or columns would read the larger operand again and again.
        if (facts.bn <= 32 && !facts.smallest && (facts.swapped ? g.m : g.n) > facts.bn) continue;
        const int blocks = facts.pair == 4 ? LARGEST_CLUSTER : MAX_CLUSTER;
        const int most = facts.in_turn || facts.kept ? 1 : std::min(blocks / facts.pair, gemmprof::ceil_div(g.k, BK));
        for (int splits = 1; splits <= most; ++splits) {
            const int places = places_of(facts.pair * splits);
            if (places == 0) continue;
            consider({tile, splits}, places);
            if (facts.kept) consider({tile, 1, true}, places);
            if (splits == 1 && can_spread(g, facts)) consider({tile, 1, false, true}, places);
        }
    }
    return best;
}

// What it takes to copy the operands that lie as the copy engine does not take them, each read and written once.
inline double packing_time(const gemmprof::Gemm& g, double memory) {
    double bytes = 0.0;
    if (!gemmprof::rows_aligned(g.a, g.lda, 2)) bytes += 4.0 * g.m * g.k;
    if (!gemmprof::rows_aligned(g.b, g.ldb, 2)) bytes += 4.0 * g.k * g.n;
    return PACK + bytes / (PACK_BANDWIDTH * memory);
}

}  // namespace GEMMPROF_STAGE
