// Stages 11 and 12: four tiles, and a model of time that chooses one and how a problem is divided.
//
// A stage defines its kernel, named as the stage, and SHARE_K, whether blocks may share a tile, before it includes this.
namespace GEMMPROF_STAGE {

// The tiles: name, rows, columns, stages, blocks of a pair, how consumers divide the work. Then, measured on an H200 in
// microseconds: BK along K, and start and end of a tile (of all tiles together where they overlap).
#define GEMMPROF_TILES(X)                                              \
    X(Large, 0.450, 5.25, BM, BN, STAGES, 2, Consumers::kInTurn)       \
    X(Square, 0.317, 3.60, 128, 128, 6, 2, Consumers::kInTurn)         \
    X(Medium, 0.310, 2.63, 128, 128, 6, 1, Consumers::kTogether)       \
    X(Small, 0.255, 0.44, 64, 128, 8, 1, Consumers::kTogether)

#define GEMMPROF_TILE(NAME, STEP, BLOCK, ...) \
    struct NAME : Tile<__VA_ARGS__, false> {};
GEMMPROF_TILES(GEMMPROF_TILE)
#undef GEMMPROF_TILE

#define GEMMPROF_TILE(NAME, ...) k##NAME,
enum TileName { GEMMPROF_TILES(GEMMPROF_TILE) kTiles };
#undef GEMMPROF_TILE

template <class TILE>
struct Of : TILE {
    static constexpr int threads = THREADS;
    template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED>
    static const void* address() {
        return gemmprof::address(GEMMPROF_STAGE<T, A_TRANSPOSED, B_TRANSPOSED, TILE>);
    }
};

template <>
void list_part<GEMMPROF_PART>(gemmprof::KernelFacts* kernels) {
#define GEMMPROF_TILE(NAME, ...) list_kernels<GEMMPROF_PART, PARTS, Of<NAME>, 2 * kLayouts * k##NAME>(kernels);
    GEMMPROF_TILES(GEMMPROF_TILE)
#undef GEMMPROF_TILE
}

}  // namespace GEMMPROF_STAGE

// ------------------------------------------------------------------------------------------------------ host code

#if GEMMPROF_PART == 0
#include <algorithm>
#include <cmath>

#include "../include/clusters.cuh"
#include "../include/hgemm.cuh"

namespace GEMMPROF_STAGE {

GEMMPROF_LIST(2 * kLayouts * kTiles)

using Describe = cudaError_t(CUtensorMap& map_a, CUtensorMap& map_b, const gemmprof::Gemm& g, int apart);

struct TileFacts {
    int bm, bn, pair, part_bytes;
    bool in_turn;
    double step, block;
    Describe* describe;
};

#define GEMMPROF_TILE(NAME, STEP, BLOCK, ...) \
    {NAME::bm, NAME::bn, NAME::pair, NAME::part_floats * 4, NAME::in_turn, STEP, BLOCK, \
     describe_operands<NAME::bm, NAME::bn, NAME::pair>},
const TileFacts tile_facts[kTiles] = {GEMMPROF_TILES(GEMMPROF_TILE)};
#undef GEMMPROF_TILE

struct Choice {
    int tile = kLarge, splits = 1;  // blocks (or pairs) that share every tile
    bool cut = false;
};

// In microseconds but for what all have: rounds in which every cluster has a tile, or a piece of one. Clusters at
// different places of K share less of L2, a part of their time more, and the sums that they leave are fetched one by
// one. Blocks that share a tile exchange their sums.
double expected_time(const gemmprof::Gemm& g, const Choice& choice, int sms) {
    constexpr double APART = 0.33, FETCH = 1.7, FETCH_PER_PART = 2.2, EXCHANGE = 0.95, EXCHANGE_PER_BLOCK = 0.472;
    const TileFacts& tile = tile_facts[choice.tile];
    const int steps = gemmprof::ceil_div(g.k, BK), places = sms / (tile.pair * choice.splits);
    const double count = double(gemmprof::ceil_div(g.m, tile.bm * tile.pair)) * gemmprof::ceil_div(g.n, tile.bn);
    const double rounds = count / places, cut = rounds - std::max(0.0, std::floor(rounds) - 1.0);
    const double longest = gemmprof::ceil_div(steps, choice.splits) * tile.step;
    if (choice.cut) {
        const bool can = tile.in_turn && count * steps >= 4.0 * places && 2.0 * places * steps < 2147483647.0;
        const double fetch = FETCH + FETCH_PER_PART * std::ceil(1.0 / rounds);
        return can ? (rounds + APART * cut) * longest + tile.block + fetch : 1e300;
    }
    const double exchange = choice.splits > 1 ? EXCHANGE + EXCHANGE_PER_BLOCK * choice.splits : 0.0;
    return std::ceil(rounds) * longest + (tile.in_turn ? 1.0 : std::ceil(rounds)) * tile.block + exchange;
}

Choice choose(const gemmprof::Gemm& g, int sms) {
    Choice best;
    for (int tile = 0; tile < kTiles; ++tile) {
        const TileFacts& facts = tile_facts[tile];
        const int most = facts.in_turn || !SHARE_K ? 1 : std::min(gemmprof::MAX_CLUSTER, gemmprof::ceil_div(g.k, BK));
        for (int splits = 1; splits <= most; ++splits)
            for (const bool cut : {false, true}) {
                const Choice choice = {tile, splits, cut};
                if (expected_time(g, choice, sms) < expected_time(g, best, sms)) best = choice;
            }
    }
    return best;
}

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    return gemmprof::run_half(gemm, stream, {true, true}, [](const gemmprof::Gemm& g, cudaStream_t on) {
        int device = 0, sms = 0;
        if (cudaError_t error = gemmprof::current_device(device, sms)) return error;
        const Choice choice = choose(g, sms);
        const TileFacts& tile = tile_facts[choice.tile];
        CUtensorMap map_a, map_b, map_c = {};
        if (cudaError_t error = tile.describe(map_a, map_b, g, 1)) return error;
        const bool bulk = choice.splits == 1 && stored_by_copies(g);
        if (bulk)
            if (cudaError_t error = gemmprof::describe(map_c, g.c, g.m, g.n, g.ldc, Large::store_columns, 16))
                return error;
        const int rows = gemmprof::ceil_div(g.m, tile.bm * tile.pair), columns = gemmprof::ceil_div(g.n, tile.bn);
        const int count = rows * columns, cluster = tile.pair * choice.splits, steps = gemmprof::ceil_div(g.k, BK);
        const int places = sms / cluster;
        const int clusters = choice.splits > 1 ? count : choice.cut ? places : std::min(count, places);
        Schedule schedule = {};
        schedule.rows = rows, schedule.columns = columns, schedule.splits = choice.splits, schedule.clusters = clusters;
        schedule.whole = count, schedule.steps = steps, schedule.bulk = bulk;
        schedule.part = Shares::of(steps, choice.splits), schedule.by_cluster = Divisor::of(cluster);
        schedule.by_band = Divisor::of(GROUP * columns), schedule.by_steps = Divisor::of(steps);
        schedule.by_height = Divisor::of(rows % GROUP == 0 ? GROUP : rows % GROUP);
        const gemmprof::Parts parts(device, choice.cut ? clusters * cluster : 0, std::size_t(tile.part_bytes), on);
        if (parts.complete != nullptr) {
            schedule.whole = std::max(0, count / places - 1) * places;
            schedule.piece = Shares::of((count - schedule.whole) * steps, clusters);
            schedule.parts = parts.parts, schedule.complete = parts.complete, schedule.ticket = gemmprof::new_ticket();
        }
        const int kernel = 2 * kLayouts * choice.tile + kernel_of(g);
        return gemmprof::launch_kernel(kernels[kernel], clusters * cluster, cluster, on, map_a, map_b, map_c, schedule,
                                       gemmprof::output_of(g));
    });
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
#endif
