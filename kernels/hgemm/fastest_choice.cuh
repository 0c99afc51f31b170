// Which tile computes a problem, and how many blocks share one: a model of time, and the memory that shared tiles need.
// Host code.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "clusters.cuh"
#include "fastest_tiles.cuh"
#include "staged_store.cuh"
#include "workspace.cuh"

constexpr int MAX_CLUSTER = 8;  // the largest that every Hopper GPU accepts

namespace GEMMPROF_STAGE {

// What the model needs to know of a tile. Microseconds, fitted to times of 315 shapes on an H200
// and of 139 of them on an H100 (docs/fastest_hgemm.md).
struct TileFacts {
    int bm, bn, pair;
    bool in_turn, swapped, kept, cuttable;  // as Tile's
    int slots, part_bytes;                  // of the sums that a block may leave to another
    double step;                            // BK along K, of a block that waits for nobody
    double block;                           // start and end of a tile; of all tiles together where they overlap
    double hot;                             // part of its time that a step takes more at the card's power limit
    double bandwidth = 1.0;                 // share of the device memory's bandwidth that its copies reach
};

template <class TILE>
constexpr TileFacts facts(double step, double block, double hot, double bandwidth = 1.0) {
    return {TILE::bm,       TILE::bn,      TILE::pair,
            TILE::in_turn,  TILE::swapped, TILE::kept,
            TILE::cuttable, TILE::slots,   TILE::part_floats * 4,
            step,           block,         hot,
            bandwidth};
}

constexpr TileFacts tile_facts[kTiles] = {
    facts<Large>(0.541, 3.30, 0.159, 0.752),      facts<LargePair>(0.540, 5.65, 0.219, 0.855),
    facts<Turn128>(0.319, 3.18, 0.026, 1.236),    facts<Turn160>(0.400, 4.90, 0.013, 1.223),
    facts<Turn192>(0.412, 6.28, 0.237, 1.069),    facts<Swapped160>(0.399, 4.14, 0.014, 1.124),
    facts<Swapped192>(0.459, 5.00, 0.091, 1.544), facts<Medium>(0.261, 2.20, 0.228, 0.819),
    facts<Small>(0.154, 1.11, 0.121, 0.870),      facts<Tiny>(0.131, 0.53, 0.120, 0.798),
    facts<Lone192>(0.420, 2.44, 0.163, 0.797),    facts<Lone128>(0.331, 1.75, 0.000, 0.963),
    facts<Lone64>(0.211, 1.10, 0.121, 1.045),     facts<Lone16>(0.170, 1.21, 0.120, 1.213),
    facts<Narrow>(0.198, 1.22, 0.120, 1.180),     facts<MediumPair>(0.341, 2.28, 0.080, 1.304),
    facts<Tall160>(0.335, 3.51, 0.060, 1.093),    facts<Tall192>(0.257, 2.07, 0.120, 1.382),
    facts<Tall96>(0.249, 1.37, 0.100, 0.966),     facts<Tall176>(0.380, 3.92, 0.080, 0.862),
    facts<Slim160>(0.199, 2.15, 0.100, 1.106),
};

// Operations from which on the card nears its power limit, and from which on it is there, one such launch after
// another.
constexpr double WARM = 59e9, HOT = 396e9;

constexpr double LAUNCH = 4.82;
constexpr double PACK = 3.2, PACK_BANDWIDTH = 4.0e6;  // of the launch that copies operands; bytes a microsecond
constexpr double BANDWIDTH = 3.82e6;      // bytes a microsecond from device memory
constexpr double BANDWIDTH_ONCE = 4.21e6;  // where B is read once
// Other operands drive what others have written to L2 out to memory, up to so many bytes: microseconds a byte.
constexpr double WRITE_BACK = 3.48e-08, WRITTEN_BYTES = 5e7;
constexpr double STORE = 1.43e-07;                              // a byte of C
constexpr double EXCHANGE = 1.05, EXCHANGE_PER_BLOCK = 0.279;  // of the sums of blocks that share a tile
// Clusters that compute pieces of tiles are at different places of K and share fewer operands in L2: a part of their
// time more, up to LONG_K, beyond, and where all tiles are cut; little where one row of tiles reads B anyway. Then the
// sums that they leave are fetched.
constexpr double CUT = 0.339, CUT_LONG = 0.505, CUT_ALL = 0.394, CUT_ONE_ROW = 0.183, LONG_K = 4096;
// So do blocks that share a tile: each row of tiles but the first reads a part of B again.
constexpr double READ_AGAIN = 0.287;
constexpr double FETCH = 2.8, FETCH_PER_PART = 1.64;  // microseconds, and more for each 64 KiB
// Of tiles whose sums are kept only those of the last round are cut. What they read is shared while L2 holds all of it,
// and hardly beyond twice that.
constexpr double KEPT_FETCH = 7.4, KEPT_FETCH_PER_PART = 1.17, L2_BYTES = 3.86e7;
constexpr double SPLIT_ROW = 0.00365;  // that the copy engine takes for a row that begins within a sector
constexpr double KEEP = 0.348;  // between a tile whose sums are kept and the next

struct Choice {
    int tile = kLarge;
    int splits = 1;    // blocks (or pairs) that share every tile
    bool cut = false;  // the last tiles, or all if few, are cut into equal pieces, one for each cluster
    double time = 1e300;  // expected, in microseconds
};

// How many clusters of this size the device holds at a time.
inline int cluster_places(int device, int sms, int cluster, const gemmprof::KernelFacts& kernel) {
    static gemmprof::KnownPlaces<MAX_CLUSTER> known;
    return cluster == 1 ? sms : known(kernel, device, sms, cluster);
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

// How many rows of an operand's tile (of 64 columns, where K is across) begin within a sector of 32 bytes: every second one
// where their distance is an odd multiple of 16 bytes. The copy engine takes four times as long for such a row.
inline double split_rows(int extent, bool along_k, const void* data, std::int64_t ld) {
    const std::int64_t from = std::int64_t(reinterpret_cast<std::uintptr_t>(data)) % 32, apart = 2 * ld % 32;
    // Rows that begin anywhere are copied to aligned ones before.
    const double share = (from | apart) % 16 != 0 ? 0.0 : apart != 0 ? 0.5 : from != 0 ? 1.0 : 0.0;
    return share * (along_k ? extent : gemmprof::ceil_div(extent, 64) * BK);
}

// What two things take that hide each other in part.
inline double both(double one, double other) { return std::sqrt(one * one + other * other); }

// Rounds in which every place has a tile and a last one in which some have; a round takes the time of its steps or that
// of the operands that its tiles read, each once.
inline double expected_time(const gemmprof::Gemm& problem, const Choice& choice, int places, double memory = 1.0) {
    const TileFacts& tile = tile_facts[choice.tile];
    const gemmprof::Gemm g = seen_by(tile, problem);
    const int rows = gemmprof::ceil_div(g.m, tile.bm * tile.pair), columns = gemmprof::ceil_div(g.n, tile.bn);
    const std::int64_t count = std::int64_t(rows) * columns, full = count / places, rest = count % places;
    const double heat = std::clamp((2.0 * g.m * g.n * g.k - WARM) / (HOT - WARM), 0.0, 1.0);
    const double split = split_rows(tile.bm, !g.a_transposed, g.a, g.lda) +
                         split_rows(tile.bn, g.b_transposed, g.b, g.ldb) / tile.pair;
    const double steps = gemmprof::ceil_div(gemmprof::ceil_div(g.k, BK), choice.splits) *
                         std::max(tile.step * (1.0 + heat * tile.hot), SPLIT_ROW * split);
    const bool once = rows == 1 || columns == 1;  // the larger operand is
    const double bandwidth = (once ? BANDWIDTH_ONCE : BANDWIDTH) * tile.bandwidth * memory;
    const double high = std::min(rows, GROUP), again = choice.splits > 1 ? 1.0 + READ_AGAIN * (high - 1.0) : 1.0;
    const auto bytes = [&](std::int64_t tiles) {
        if (tiles == 0) return 0.0;
        const double wide = std::min<double>(columns, std::ceil(double(tiles) / high));
        const double deep = std::min<double>(rows, high * std::ceil(double(tiles) / (high * columns)));
        return (std::min<double>(g.m, deep * tile.bm * tile.pair) + std::min<double>(g.n, wide * tile.bn) * again) * 2.0 *
               g.k;
    };
    const auto read = [&](std::int64_t tiles) { return bytes(tiles) / bandwidth; };
    const double rounds = double(count) / places;
    double time = LAUNCH + STORE * 2.0 * g.m * g.n;
    if (choice.cut && tile.kept) {
        const double apart = std::clamp(bytes(rest) / L2_BYTES - 1.0, 0.0, 1.0);
        time += both((rounds + apart * rest / places) * steps, double(full) * read(places) + read(rest));
        time += KEPT_FETCH + KEPT_FETCH_PER_PART * double((places + rest - 1) / rest);
    } else if (choice.cut) {
        const double pieces = rounds - double(std::max<std::int64_t>(0, full - 1));
        const double more = rows == 1 ? CUT_ONE_ROW : full == 0 ? CUT_ALL : g.k <= LONG_K ? CUT : CUT_LONG;
        const double parts = full == 0 ? tile.part_bytes / 65536.0 * std::ceil(1.0 / rounds) : 1.0;
        time += both((rounds + more * pieces) * steps, double(full) * read(places) + read(rest));
        time += FETCH + FETCH_PER_PART * parts;
    } else {
        time += double(full) * both(steps, read(places)) + (rest > 0 ? both(steps, read(rest)) : 0.0);
    }
    if (!once) time += WRITE_BACK / memory * std::min(2.0 * g.k * (double(g.m) + g.n), WRITTEN_BYTES);
    time += tile.block * (tile.in_turn || tile.kept ? 1.0 : double(full + (rest > 0)));
    if (tile.kept) time += KEEP * double(full + (rest > 0));
    return choice.splits > 1 ? time + EXCHANGE + EXCHANGE_PER_BLOCK * choice.splits : time;
}

// How many tiles, of pairs where blocks are paired.
inline std::int64_t tiles_of(const gemmprof::Gemm& problem, const TileFacts& tile) {
    const gemmprof::Gemm g = seen_by(tile, problem);
    return std::int64_t(gemmprof::ceil_div(g.m, tile.bm * tile.pair)) * gemmprof::ceil_div(g.n, tile.bn);
}

// Whether tiles can be cut: at most two a cluster are, and their steps along K are counted in 32 bits.
inline bool can_cut(const gemmprof::Gemm& problem, const TileFacts& tile, int places) {
    const gemmprof::Gemm g = seen_by(tile, problem);
    const std::int64_t count = tiles_of(problem, tile);
    return tile.cuttable && count % places != 0 && count * gemmprof::ceil_div(g.k, BK) >= 4 * places &&
           2.0 * places * gemmprof::ceil_div(g.k, BK) < 2147483647.0;
}

// Tiles for problems whose tiles are all computed at once, because nothing of a next one hides their stores; not for
// those of whose rows they would compute a fifth in vain.
inline bool suits(const gemmprof::Gemm& g, int tile, int places) {
    const TileFacts& facts = tile_facts[tile];
    return tile < kNarrow || (5 * (facts.swapped ? facts.bn : facts.bm * facts.pair) <= 6 * std::int64_t(g.m) &&
                              tiles_of(g, facts) <= places);
}

// Long products with many rows and columns take the largest tile, in pairs where rows begin within a sector. What the
// model was fitted to is shorter: of these it expects the tiles in turn of 128 and 160 columns to be as fast, which they
// are on an H200 (within 2 %) and are not on an H100 (up to 2.5 times the time).
constexpr int MANY_ROWS = 1024;

inline int largest_tile(const gemmprof::Gemm& g) {
    const double split = split_rows(BM, !g.a_transposed, g.a, g.lda) + split_rows(BN, g.b_transposed, g.b, g.ldb);
    return split > 0.0 && !g.a_transposed ? kLargePair : kLarge;
}

// The choice with the shortest expected time. A transposed A has few tiles. `places_of` says how many clusters of
// a size the device holds, `memory` how fast its memory is.
template <class Places>
Choice choose_schedule(const gemmprof::Gemm& g, const Places& places_of, double memory) {
    Choice best;
    const bool long_one = 2.0 * g.m * g.n * g.k >= HOT && std::min(g.m, g.n) >= MANY_ROWS;
    const int first = long_one ? largest_tile(g) : 0, last = long_one ? first + 1 : kTiles;
    for (int tile = first; tile < last; ++tile) {
        if (g.a_transposed && transposed_row(tile) < 0) continue;
        const TileFacts& facts = tile_facts[tile];
        if (facts.swapped && !stored_packed(g)) continue;
        const int most = facts.in_turn ? 1 : std::min(MAX_CLUSTER / facts.pair, gemmprof::ceil_div(g.k, BK));
        for (int splits = 1; splits <= most; ++splits) {
            const int places = places_of(facts.pair * splits);
            if (!suits(g, tile, places)) continue;
            for (const bool cut : {false, true}) {
                if (cut && (splits > 1 || !can_cut(g, facts, places))) continue;
                Choice choice = {tile, splits, cut};
                choice.time = expected_time(g, choice, places, memory);
                if (choice.time < best.time) best = choice;
            }
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
