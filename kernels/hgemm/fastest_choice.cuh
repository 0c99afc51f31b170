// Which tile computes a problem, and how many blocks share one: a model of time, and the memory that shared tiles need.
// Host code.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "clusters.cuh"
#include "fastest_tiles.cuh"
#include "workspace.cuh"

constexpr int MAX_CLUSTER = 8;  // the largest that every Hopper GPU accepts

namespace GEMMPROF_STAGE {

// What the model needs to know of a tile. Microseconds, fitted to times of 53 shapes on an H200
// (docs/fastest_hgemm.md).
struct TileFacts {
    int bm, bn, pair;
    bool in_turn;
    int part_bytes;          // of the sums that a block may leave to another
    double step;             // BK along K, of a block that waits for nobody
    double block;            // start and end of a tile; of all tiles together where consumers take turns
    double bandwidth = 1.0;  // share of the device memory's bandwidth that its copies reach
};

template <class TILE>
constexpr TileFacts facts(double step, double block, double bandwidth = 1.0) {
    return {TILE::bm, TILE::bn, TILE::pair, TILE::in_turn, TILE::part_floats * 4, step, block, bandwidth};
}

enum TileName {
    kLarge,
    kTurn128,
    kTurn160,
    kTurn192,
    kMedium,
    kSmall,
    kTiny,
    kLone192,
    kLone128,
    kLone64,
    kLone16,
    kTiles
};

constexpr TileFacts tile_facts[kTiles] = {
    facts<Large>(0.647, 2.76),       facts<Turn128>(0.342, 2.04), facts<Turn160>(0.422, 2.26),
    facts<Turn192>(0.476, 2.86),     facts<Medium>(0.350, 1.84),  facts<Small>(0.282, 1.56),
    facts<Tiny>(0.234, 0.90, 0.851), facts<Lone192>(0.477, 2.37), facts<Lone128>(0.334, 1.98),
    facts<Lone64>(0.245, 1.41),      facts<Lone16>(0.253, 1.40),
};

constexpr double LAUNCH = 4.67;
constexpr double BANDWIDTH = 2.73e6;       // bytes a microsecond from device memory
constexpr double BANDWIDTH_ONCE = 3.64e6;  // where B is read once, and what L2 holds is not written back for it
constexpr double STORE = 0.223e-6;         // a byte of C
constexpr double EXCHANGE = 1.29, EXCHANGE_PER_BLOCK = 0.534;  // of the sums of blocks that share a tile
// Clusters that compute pieces of tiles are at different places of K and share fewer operands in L2: a part of their
// time more, up to LONG_K, beyond, and where all tiles are cut; little where one row of tiles reads B anyway. Then the
// sums that they leave are fetched.
constexpr double CUT = 0.362, CUT_LONG = 0.429, CUT_ALL = 0.430, CUT_ONE_ROW = 0.1, LONG_K = 4096;
// So do blocks that share a tile: each row of tiles but the first reads a part of B again.
constexpr double READ_AGAIN = 0.5;
constexpr double FETCH = 2.91, FETCH_PER_PART = 1.0;  // microseconds, and more for each 64 KiB

struct Choice {
    int tile = kLarge;
    int splits = 1;    // blocks (or pairs) that share every tile
    bool cut = false;  // the last tiles, or all if few, are cut into equal pieces, one for each cluster
};

// How many clusters of this size the device holds at a time, asked once a device and size.
inline int cluster_places(int device, int sms, int cluster, const gemmprof::KernelFacts& kernel) {
    static std::atomic<int> known[gemmprof::MAX_DEVICES][MAX_CLUSTER + 1];
    if (cluster == 1) return sms;
    if (device >= gemmprof::MAX_DEVICES) return gemmprof::cluster_places(kernel, cluster, sms);
    std::atomic<int>& places = known[device][cluster];
    if (places == 0) places = gemmprof::cluster_places(kernel, cluster, sms);
    return places;
}

// Rounds in which every place has a tile and a last one in which some have; a round takes the time of its steps or that
// of the operands that its tiles read, each once.
inline double expected_time(const gemmprof::Gemm& g, const Choice& choice, int places) {
    const TileFacts& tile = tile_facts[choice.tile];
    const int rows = gemmprof::ceil_div(g.m, tile.bm * tile.pair), columns = gemmprof::ceil_div(g.n, tile.bn);
    const std::int64_t count = std::int64_t(rows) * columns, full = count / places, rest = count % places;
    const double steps = gemmprof::ceil_div(gemmprof::ceil_div(g.k, BK), choice.splits) * tile.step;
    const double bandwidth = (rows == 1 ? BANDWIDTH_ONCE : BANDWIDTH) * tile.bandwidth;
    const double high = std::min(rows, GROUP), again = choice.splits > 1 ? 1.0 + READ_AGAIN * (high - 1.0) : 1.0;
    const auto read = [&](std::int64_t tiles) {
        if (tiles == 0) return 0.0;
        const double wide = std::min<double>(columns, std::ceil(double(tiles) / high));
        return (high * std::min(g.m, tile.bm * tile.pair) + wide * tile.bn * again) * 2.0 * g.k / bandwidth;
    };
    double time = LAUNCH + STORE * 2.0 * g.m * g.n;
    if (choice.cut) {
        const double rounds = double(count) / places, pieces = rounds - double(std::max<std::int64_t>(0, full - 1));
        const double more = rows == 1 ? CUT_ONE_ROW : full == 0 ? CUT_ALL : g.k <= LONG_K ? CUT : CUT_LONG;
        const double parts = full == 0 ? tile.part_bytes / 65536.0 * std::ceil(1.0 / rounds) : 1.0;
        time += std::max((rounds + more * pieces) * steps, double(full) * read(places) + read(rest));
        time += FETCH + FETCH_PER_PART * parts;
    } else {
        time += double(full) * std::max(steps, read(places)) + (rest > 0 ? std::max(steps, read(rest)) : 0.0);
    }
    time += tile.block * (tile.in_turn ? 1.0 : double(full + (rest > 0)));
    return choice.splits > 1 ? time + EXCHANGE + EXCHANGE_PER_BLOCK * choice.splits : time;
}

// Whether tiles can be cut: at most two a cluster are, and their steps along K are counted in 32 bits.
inline bool can_cut(const gemmprof::Gemm& g, const TileFacts& tile, int places) {
    const std::int64_t count =
        std::int64_t(gemmprof::ceil_div(g.m, tile.bm * tile.pair)) * gemmprof::ceil_div(g.n, tile.bn);
    return tile.in_turn && count % places != 0 && count * gemmprof::ceil_div(g.k, BK) >= 4 * places &&
           2.0 * places * gemmprof::ceil_div(g.k, BK) < 2147483647.0;
}

// The choice with the shortest expected time. A transposed A has two tiles only. `places_of` says how many clusters of a
// size the device holds.
template <class Places>
Choice choose_schedule(const gemmprof::Gemm& g, const Places& places_of) {
    Choice best;
    double best_time = 1e300;
    for (int tile = 0; tile < kTiles; ++tile) {
        if (g.a_transposed && tile != kLarge && tile != kSmall) continue;
        const TileFacts& facts = tile_facts[tile];
        const int most = facts.in_turn ? 1 : std::min(MAX_CLUSTER / facts.pair, gemmprof::ceil_div(g.k, BK));
        for (int splits = 1; splits <= most; ++splits) {
            const int places = places_of(facts.pair * splits);
            for (const bool cut : {false, true}) {
                if (cut && !can_cut(g, facts, places)) continue;
                const Choice choice = {tile, splits, cut};
                const double time = expected_time(g, choice, places);
                if (time < best_time) best_time = time, best = choice;
            }
        }
    }
    return best;
}

// Room for the sums that blocks leave each other, and a word for each that says they are complete. Without room (null),
// tiles are not cut.
class Parts {
  public:
    float4* parts = nullptr;
    unsigned long long* complete = nullptr;

    Parts(int device, int blocks, std::size_t part_bytes, cudaStream_t stream)
        : memory_(device, blocks == 0 ? 0 : flag_bytes(blocks) + blocks * part_bytes, stream) {
        if (memory_.data == nullptr) return;
        complete = static_cast<unsigned long long*>(memory_.data);
        parts = reinterpret_cast<float4*>(static_cast<char*>(memory_.data) + flag_bytes(blocks));
    }

  private:
    static std::size_t flag_bytes(int blocks) { return (std::size_t(blocks) * 8 + 255) / 256 * 256; }

    gemmprof::Workspace memory_;
};

}  // namespace GEMMPROF_STAGE
