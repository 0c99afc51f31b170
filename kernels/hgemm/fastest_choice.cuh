// Which tile computes a problem, and how many blocks share one: a model of time, and the memory that shared tiles need.
// Host code.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "clusters.cuh"
#include "fastest_shared.cuh"
#include "fastest_tiles.cuh"
#include "staged_store.cuh"
#include "workspace.cuh"

constexpr int MAX_CLUSTER = 8;  // the largest that every Hopper GPU accepts

namespace GEMMPROF_STAGE {

// What the model needs to know of a tile. Microseconds, fitted to 7,420 shapes of an H200 and 3,719 of an H100
// (docs/fastest_hgemm.md). So are all constants below: what hides behind other times counts for less, which is why some
// bandwidths are above what a card has.
struct TileFacts {
    int bm, bn, pair;
    bool in_turn, swapped, kept, cuttable;  // as Tile's
    bool far;                               // `shareable`
    int slots, part_bytes;                  // of the sums that a block may leave to another
    double step;                            // BK along K, of a block that waits for nobody
    double block;                           // start and end of a tile; of all tiles together where they overlap
    double hot;                             // part of its time that a step takes more at the card's power limit
    double bandwidth;                       // share of the device memory's bandwidth that its copies reach
    double wasted;                          // the power of what tiles cover over C that all but sharing takes longer
    double sharing = 1.0;                   // factor of what the exchange of sums within a cluster takes
};

template <class TILE>
constexpr TileFacts facts(double step, double block, double hot, double bandwidth, double wasted,
                          double sharing = 1.0) {
    return {TILE::bm,       TILE::bn,        TILE::pair,  TILE::in_turn,         TILE::swapped, TILE::kept,
            TILE::cuttable, shareable<TILE>, TILE::slots, TILE::part_floats * 4, step,          block,
            hot,            bandwidth,       wasted,      sharing};
}

constexpr TileFacts tile_facts[kTiles] = {
    facts<Large>(0.574, 3.21, 0.016, 1.063, 0.025),
    facts<LargePair>(0.599, 4.68, 0.020, 1.555, 0.073),
    facts<Turn160>(0.398, 6.92, 0.017, 1.416, 0.317),
    facts<Turn192>(0.435, 6.11, 0.066, 1.100, 0.180),
    facts<Medium>(0.292, 0.79, 0.187, 0.878, 0.071, 1.239),
    facts<Small>(0.172, 0.42, 0.052, 0.911, 0.083, 1.122),
    facts<Tiny>(0.117, 0.28, 0.118, 0.872, 0.105, 0.847),
    facts<Lone128>(0.276, 1.93, 0.001, 0.667, 0.050),
    facts<Lone64>(0.157, 0.93, 0.131, 0.844, 0.098),
    facts<Lone16>(0.116, 1.04, 0.120, 0.736, 0.079),
    facts<Narrow>(0.187, 0.48, 0.130, 0.830, 0.100, 1.161),
    facts<MediumPair>(0.317, 1.53, 0.043, 0.948, 0.157, 0.924),
    facts<Tall96>(0.221, 0.71, 0.253, 0.814, 0.090, 1.241),
    facts<Slim32>(0.100, 0.24, 0.117, 0.772, 0.081, 1.129),
    facts<TallPair192>(0.448, 2.73, 0.033, 0.976, 0.066, 0.662),
    facts<SmallQuad>(0.212, 0.62, 0.049, 1.235, 0.069, 0.907),
    facts<MediumQuad>(0.336, 0.92, 0.026, 1.229, 0.084, 0.860),
    facts<TallQuad160>(0.374, 2.29, 0.027, 1.156, 0.077, 0.874),
    facts<SlimQuad160>(0.226, 1.30, 0.050, 1.081, 0.066, 0.989),
};

// Operations from which on the card nears its power limit, and from which on it is there, one such launch after
// another.
constexpr double WARM = 59e9, HOT = 396e9;

// What differs between cards. Bytes a microsecond, microseconds a byte.
struct Card {
    double memory;                     // how fast its memory is (gemmprof::memory_speed)
    double bandwidth, bandwidth_once;  // of device memory, and where B is read once, by a tile of bandwidth 1
    double from_l2;                    // that L2 hands out to all SMs
    double store;                      // of C
    double write_back;                 // of what others have written to L2 and operands drive out, up to WRITTEN_BYTES
};
constexpr Card H200 = {1.0, 6.43e+06, 8.63e+06, 1.88e+07, 9.78e-08, 1.74e-08};
constexpr Card H100 = {0.682, 5.15e+06, 6.15e+06, 1.62e+07, 1.19e-07, 2.91e-08};

constexpr double LAUNCH = 5.04, WRITTEN_BYTES = 5e7;
constexpr double PACK = 3.2, PACK_BANDWIDTH = 4.0e6;  // of the launch that copies operands; bytes a microsecond
constexpr double BEYOND_LINE = 0.734;  // that a row costs more whose 128 bytes lie in two lines of L2
constexpr double STORE_ODD = 0.262;  // that C costs more whose rows begin within a sector
constexpr double L2_HOLDS = 7.87e+06;  // operands of which later rounds find all in L2, of twice that none
// Of the sums of blocks that share a tile, for each tile of a block: microseconds, and a byte, as if all blocks had the
// largest share of them to add; more while others do.
constexpr double EXCHANGE = 0.434, EXCHANGE_BYTE = 2.84e-05, EXCHANGE_BUSY = 3.1;
constexpr double COPIED = 0.691, COPIED_BYTE = 1.50e-05;
// Of those that blocks which are no cluster leave in memory: microseconds, for each of them, and a byte of all sums.
constexpr double FAR = 3.68, FAR_BLOCK = 0.109, FAR_BYTE = 4.34e-07;
// Of the bandwidth that a tile's copies reach: what blocks that share it do, as a cluster and far from each other.
constexpr double NEAR_BANDWIDTH = 0.975, FAR_BANDWIDTH = 0.751;
constexpr int MOST_FAR = 31;  // a lane each asks whether another's are there
// Clusters that compute pieces of tiles are at different places of K and share fewer operands in L2: a part of their
// time more, where all tiles are cut, and little where one row of tiles reads B anyway. Then the sums that they leave
// are fetched: microseconds, and more for each 64 KiB.
constexpr double CUT = 0.482, CUT_ALL = 0.398, CUT_ONE_ROW = 0.158, FETCH = 3.05, FETCH_PER_PART = 1.75;
// So do clusters that share a tile: each row of tiles but the first reads a part of B again.
constexpr double READ_AGAIN = 0.342;
// A tile that lies partly beyond C copies less than its neighbours and runs ahead of them along K, so fewer of their
// requests are for the same at the same time: what L2 takes more, times the largest part of a tile beyond C.
constexpr double EDGE = 0.368;
// Of tiles whose sums are kept only those of the last round are cut. What they read is shared while L2 holds all of it,
// and hardly beyond twice that.
constexpr double KEPT_FETCH = 11, KEPT_FETCH_PER_PART = 1.38, L2_BYTES = 4.40e+07;
constexpr double SPLIT_ROW = 0.00366;  // that the copy engine takes for a row that begins within a sector
constexpr double KEEP = 0.415;  // between a tile whose sums are kept and the next

struct Choice {
    int tile = kSmall;
    int splits = 1;    // blocks (or pairs) that share every tile
    bool cut = false;  // the last tiles, or all if few, are cut into equal pieces, one for each cluster
    bool far = false;  // who share a tile are no cluster, and meet in memory
    double time = 1e300;  // expected, in microseconds
};

// How many clusters of this size the device holds at a time.
inline int cluster_places(int device, int sms, int cluster, const gemmprof::KernelFacts& kernel) {
    static gemmprof::KnownPlaces<MAX_CLUSTER> known;
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

// The problem as a tile computes it.
inline gemmprof::Gemm seen_by(const TileFacts& tile, const gemmprof::Gemm& g) { return tile.swapped ? swapped(g) : g; }

// How many rows of an operand's tile (of 64 columns, where K is across) begin within a sector of 32 bytes: every second
// one where their distance is an odd multiple of 16 bytes. The copy engine takes four times as long for such a row.
inline double split_rows(int extent, bool along_k, const void* data, std::int64_t ld) {
    const std::int64_t from = std::int64_t(reinterpret_cast<std::uintptr_t>(data)) % 32, apart = 2 * ld % 32;
    // Rows that begin anywhere are copied to aligned ones before.
    const double share = (from | apart) % 16 != 0 ? 0.0 : apart != 0 ? 0.5 : from != 0 ? 1.0 : 0.0;
    return share * (along_k ? extent : gemmprof::ceil_div(extent, 64) * BK);
}

// Of an operand's rows of 128 bytes, those that lie in two lines of L2.
inline double beyond_lines(const void* data, std::int64_t ld) {
    const std::int64_t from = std::int64_t(reinterpret_cast<std::uintptr_t>(data)) % 128, apart = 2 * ld % 128;
    if ((from | apart) % 16 != 0) return 0.0;  // is copied before
    return apart != 0 ? 1.0 - double(apart & -apart) / 128 : from != 0 ? 1.0 : 0.0;
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
inline double expected_time(const gemmprof::Gemm& problem, const Choice& choice, int places, const Card& card,
                            double bound) {
    const TileFacts& tile = tile_facts[choice.tile];
    const gemmprof::Gemm g = seen_by(tile, problem);
    const int rows = gemmprof::ceil_div(g.m, tile.bm * tile.pair), columns = gemmprof::ceil_div(g.n, tile.bn);
    const std::int64_t count = std::int64_t(rows) * columns, full = count / places, rest = count % places;
    const double rounds = double(full + (rest > 0)), filled = double(count) / places;
    const int parts = gemmprof::ceil_div(gemmprof::ceil_div(g.k, BK), choice.splits);
    if (LAUNCH + filled * parts * tile.step >= bound) return 1e300;
    const double at_once = choice.cut ? double(places) : std::ceil(double(count) / rounds);
    const double heat = std::clamp((2.0 * g.m * g.n * g.k - WARM) / (HOT - WARM), 0.0, 1.0);
    const double split = split_rows(tile.bm, !g.a_transposed, g.a, g.lda) +
                         split_rows(tile.bn, g.b_transposed, g.b, g.ldb) / tile.pair;
    const double a_cost = 1.0 + BEYOND_LINE * beyond_lines(g.a, g.lda);
    const double b_cost = 1.0 + BEYOND_LINE * beyond_lines(g.b, g.ldb);
    const int copied = tile.swapped ? tile.bn : gemmprof::ceil_div(tile.bn, 64) * 64;
    const double asked = (a_cost * tile.bm * tile.pair + b_cost * copied) * 2.0 * BK * choice.splits * at_once;
    const double edge = std::max(beyond_edge(g.m, tile.bm * tile.pair), beyond_edge(g.n, tile.bn));
    const double l2 = asked * (1.0 + EDGE * edge) / card.from_l2;
    const double steps = parts * all(tile.step * (1.0 + heat * tile.hot), SPLIT_ROW * split, l2);
    const bool once = rows == 1 || columns == 1;  // the larger operand is
    const bool near = choice.splits > 1 && !choice.far;
    const double high = std::min(rows, GROUP), again = near ? 1.0 + READ_AGAIN * (high - 1.0) : 1.0;
    const auto bytes = [&](double tiles) {
        const double wide = std::min<double>(columns, std::ceil(tiles / high));
        const double deep = std::min<double>(rows, high * std::ceil(tiles / (high * columns)));
        return (std::min<double>(g.m, deep * tile.bm * tile.pair) * a_cost +
                std::min<double>(g.n, wide * tile.bn) * b_cost * again) * 2.0 * g.k;
    };
    const double operands = 2.0 * g.k * (double(g.m) + g.n), each_once = 2.0 * g.k * (g.m * a_cost + g.n * b_cost);
    const double reached = tile.bandwidth * (choice.far ? FAR_BANDWIDTH : near ? NEAR_BANDWIDTH : 1.0);
    double read = choice.cut ? double(full) * bytes(places) + bytes(double(rest)) : rounds * bytes(at_once);
    read -= std::clamp(2.0 - operands / L2_HOLDS, 0.0, 1.0) * std::max(0.0, read - each_once);
    read /= (once ? card.bandwidth_once : card.bandwidth) * reached;
    double time = LAUNCH + card.store * 2.0 * g.m * g.n * (problem.ldc % 16 != 0 ? 1.0 + STORE_ODD : 1.0);
    if (choice.cut && tile.kept) {
        const double apart = std::clamp(bytes(double(rest)) / L2_BYTES - 1.0, 0.0, 1.0);
        time += both((filled + apart * double(rest) / places) * steps, read);
        time += KEPT_FETCH + KEPT_FETCH_PER_PART * double((places + rest - 1) / rest);
    } else if (choice.cut) {
        const double pieces = filled - double(std::max<std::int64_t>(0, full - 1));
        const double more = rows == 1 ? CUT_ONE_ROW : full == 0 ? CUT_ALL : CUT;
        time += both((filled + more * pieces) * steps, read);
        time += FETCH + FETCH_PER_PART * tile.part_bytes / 65536.0 * (full == 0 ? std::ceil(1.0 / filled) : 1.0);
    } else {
        time += both(rounds * steps, read);
    }
    if (!once) time += card.write_back * std::min(operands, WRITTEN_BYTES);
    time += tile.block * (tile.in_turn || tile.kept ? 1.0 : rounds);
    if (tile.kept) time += KEEP * rounds;
    const double covered = double(count) * tile.bm * tile.pair * tile.bn / (double(g.m) * g.n);
    if (covered > 1.0) time *= std::pow(covered, tile.wasted);
    if (choice.far)
        return time + FAR + choice.splits * (FAR_BLOCK + FAR_BYTE * 4.0 * at_once * tile.bm * tile.pair * tile.bn);
    const int quads = tile.bm * tile.bn / 1024;  // times four sums that a thread has
    const double sums = 4096.0 * choice.splits * gemmprof::ceil_div(quads, choice.splits);
    const double byte = (tile.far ? COPIED_BYTE : EXCHANGE_BYTE) * (1.0 + EXCHANGE_BUSY * at_once / places);
    return choice.splits == 1 ? time : time + tile.sharing * rounds * ((tile.far ? COPIED : EXCHANGE) + byte * sums);
}

// How many tiles, or pairs of them, C has.
inline std::int64_t tiles_of(const gemmprof::Gemm& problem, const TileFacts& tile) {
    const gemmprof::Gemm g = seen_by(tile, problem);
    return std::int64_t(gemmprof::ceil_div(g.m, tile.bm * tile.pair)) * gemmprof::ceil_div(g.n, tile.bn);
}

// Whether tiles can be cut: at most two a cluster are, and their steps along K are counted in 32 bits.
inline bool can_cut(const gemmprof::Gemm& problem, const TileFacts& tile, int places) {
    const std::int64_t count = tiles_of(problem, tile), steps = gemmprof::ceil_div(problem.k, BK);
    return tile.cuttable && count % places != 0 && count * steps >= 4 * places && 2.0 * places * steps < 2147483647.0;
}

// The choice with the shortest expected time. A transposed A has few tiles. `places_of` says how many clusters of
// a size the device holds, `memory` how fast its memory is.
template <class Places>
Choice choose_schedule(const gemmprof::Gemm& g, const Places& places_of, double memory) {
    Choice best;
    Card card = memory > 0.84 ? H200 : H100;  // the nearer
    card.bandwidth *= memory / card.memory, card.bandwidth_once *= memory / card.memory;
    for (int tile = 0; tile < kTiles; ++tile) {
        if (g.a_transposed && transposed_row(tile) < 0) continue;
        const TileFacts& facts = tile_facts[tile];
        if (facts.swapped && !stored_packed(g)) continue;
        const int most = facts.in_turn || facts.kept ? 1 : std::min(MAX_CLUSTER / facts.pair, gemmprof::ceil_div(g.k, BK));
        for (int splits = 1; splits <= most; ++splits) {
            const int places = places_of(facts.pair * splits);
            for (const bool cut : {false, true}) {
                if (cut && (splits > 1 || !can_cut(g, facts, places))) continue;
                Choice choice = {tile, splits, cut};
                choice.time = expected_time(g, choice, places, card, best.time);
                if (choice.time < best.time) best = choice;
            }
        }
        if (!facts.far) continue;
        // In memory: as many as there is room for, or fewer that take no longer.
        const int places = places_of(facts.pair), steps = gemmprof::ceil_div(g.k, BK);
        const int room = std::min<int>({int(places / tiles_of(g, facts)), MOST_FAR, steps});
        if (room < 2) continue;
        Choice choice = {tile, gemmprof::ceil_div(steps, gemmprof::ceil_div(steps, room)), false, true};
        choice.time = expected_time(g, choice, places / choice.splits, card, best.time);
        if (choice.time < best.time) best = choice;
    }
    return best;
}

// All that a choice depends on. Of operands' addresses, where in a line of L2 they lie.
using Question = std::array<std::int64_t, 7>;

inline Question question(const gemmprof::Gemm& g, int device) {
    const auto in_line = [](const void* data) { return std::int64_t(reinterpret_cast<std::uintptr_t>(data) % 128); };
    const int orders = g.a_transposed << 1 | g.b_transposed, packed = stored_packed(g);
    return {std::int64_t(device) << 32 | in_line(g.a) << 16 | in_line(g.b) << 8 | packed << 2 | orders,
            g.m, g.n, g.k, g.lda, g.ldb, g.ldc};
}

// The answer to a question of a problem with elements, remembered while this thread asks few others: to expect the time
// of every way takes longer than all else that a launch needs.
template <class Answer>
Choice remembered(const Question& question, const Answer& answer) {
    struct Known {
        Question question;
        Choice choice;
    };
    constexpr int BITS = 6;
    thread_local Known known[1 << BITS] = {};
    std::uint64_t hash = 0;
    for (const std::int64_t number : question) hash = (hash ^ std::uint64_t(number)) * 0x9E3779B97F4A7C15ull;
    Known& entry = known[hash >> (64 - BITS)];
    if (entry.question != question) entry = {question, answer()};
    return entry.choice;
}

// What it takes to copy the operands that lie as the copy engine does not take them, each read and written once.
inline double packing_time(const gemmprof::Gemm& g, double memory) {
    double bytes = 0.0;
    if (!gemmprof::rows_aligned(g.a, g.lda, 2)) bytes += 4.0 * g.m * g.k;
    if (!gemmprof::rows_aligned(g.b, g.ldb, 2)) bytes += 4.0 * g.k * g.n;
    return PACK + bytes / (PACK_BANDWIDTH * memory);
}

}  // namespace GEMMPROF_STAGE
