// Stage 13, on the host: which kernel computes a problem, and how many blocks share a tile along K.
#pragma once

#include <algorithm>
#include <climits>
#include <initializer_list>

#include "clusters.cuh"
#include "fastest_tile.cuh"
#include "workspace.cuh"

namespace GEMMPROF_STAGE {

constexpr int TILES = 11;            // kernels for tensor copies; those for GPUs before Hopper have the large tile only
constexpr int FIRST_THROUGH_L2 = 3;  // the first of them whose blocks add up through L2, not as a cluster
constexpr int FIRST_PARTS = 8;       // the first of those with one team a block
constexpr int SPANS = 10;            // of those, the one whose blocks share the steps of all tiles

// What the blocks of a tile cost: microseconds, fitted to the times of 47 and more shapes on an H200
// (docs/fastest_sgemm.md).
struct Cost {
    int tile_m, tile_n, blocks_per_sm, teams;
    double step[4];   // BK along K (of each team), if 1, 2, .. blocks share an SM: more of them fill more issue slots
    double block;     // start and end
    double addition;  // of the sums of the blocks that share a tile, besides what each block costs
};

template <class T>
constexpr Cost cost(std::initializer_list<double> steps, double block, double addition) {
    Cost c = {T::bm, T::bn, T::blocks_per_sm, T::teams, {}, block, addition};
    int i = 0;
    for (const double step : steps) c.step[i++] = step;
    return c;
}

constexpr double SCALE = BM * BN / (128.0 * 128.0);
constexpr Cost costs[TILES] = {
    cost<Large>({2.72 * SCALE, 5.07 * SCALE}, 4.9, 0.0),  // clusters
    cost<Medium>({1.61, 2.78, 3.95}, 0.0, 1.8),
    cost<Small>({1.06, 1.78, 2.54, 3.24}, 0.0, 0.9),
    cost<LargeTeams>({5.14 * SCALE}, 1.5, 5.2),  // through L2
    cost<MediumTeams>({4.05}, 1.9, 4.4),
    cost<WideTeams>({4.05}, 1.9, 4.4),
    cost<SmallTeams>({3.29}, 0.7, 3.5),
    cost<SlimTeams>({2.6}, 0.7, 3.7),
    cost<LargeParts>({2.72 * SCALE, 5.07 * SCALE}, 1.5, 6.7),
    cost<MediumParts>({1.61, 2.78, 3.95}, 1.9, 4.4),
    cost<LargeSpans>({2.72 * SCALE, 5.07 * SCALE}, 1.5, 16.0),
};
// Of an addition, for each block: in a cluster; through L2, by all blocks of a tile.
constexpr double BY_CLUSTER = 0.25, BY_ALL = 0.05;
// Through L2, by the last block of a tile alone: for itself, and for each block that has 128 x 128 sums.
constexpr double BY_LAST = 3.6, BY_LAST_EACH = 0.3;
constexpr double LAUNCH = 5.9;
// What other tiles than the large one must promise more, and clusters of three blocks and more, which do not spread as
// evenly as they could every time; and blocks of one team through L2.
constexpr double TILE_RISK = 1.01, CLUSTER_RISK = 1.04, PARTS_RISK = 1.02;

// What the schedule has to know of the GPU.
struct Gpu {
    int device, sms;
    int shared_limit;  // bytes of shared memory that a block may have
    bool tensor_copies;
};

// How many blocks of a kernel the GPU holds, if so many of them share a tile.
int block_places(const Gpu& gpu, int tile, int splits, const gemmprof::KernelFacts& kernel) {
    static gemmprof::KnownPlaces<MAX_SPLITS> known[FIRST_THROUGH_L2];
    if (tile >= FIRST_THROUGH_L2 || splits == 1) return gpu.sms * costs[tile].blocks_per_sm;
    return known[tile](kernel, gpu.device, gpu.sms, splits) * splits;
}

std::int64_t tiles_of(const gemmprof::Gemm& gemm, int tile) {
    return std::int64_t(gemmprof::ceil_div(gemm.m, costs[tile].tile_m)) *
           gemmprof::ceil_div(gemm.n, costs[tile].tile_n);
}

// The time of rounds in which every place has a block, and of a last one whose blocks spread over all SMs.
double expected_time(const gemmprof::Gemm& gemm, int tile, int splits, int places) {
    const Cost& cost = costs[tile];
    const std::int64_t blocks = tiles_of(gemm, tile) * splits;
    const int steps = gemmprof::ceil_div(gemmprof::ceil_div(gemmprof::ceil_div(gemm.k, BK), splits), cost.teams);
    double once = cost.block;
    if (splits > 1 && tile < FIRST_THROUGH_L2)
        once += cost.addition + BY_CLUSTER * splits;
    else if (splits > 1)
        once += blocks <= places ? cost.addition + BY_ALL * splits
                                 : BY_LAST + BY_LAST_EACH * splits * cost.tile_m * cost.tile_n / 16384;

    const std::int64_t full = blocks / places;
    const int rest = int(blocks % places), usable = std::max(1, places / cost.blocks_per_sm);
    int on_sm = gemmprof::ceil_div(rest, usable);
    // Clusters of a last round go where the round before it ends, two to an SM while others are idle.
    if (tile < FIRST_THROUGH_L2 && splits > 1 && full > 0 && 2 * rest > usable) on_sm = std::max(on_sm, 2);
    on_sm = std::min(on_sm, cost.blocks_per_sm);
    const auto round = [&](int blocks_on_sm) {
        return blocks_on_sm == 0 ? 0.0 : steps * cost.step[blocks_on_sm - 1] + once;
    };
    return LAUNCH + double(full) * round(cost.blocks_per_sm) + round(on_sm);
}

// Which kernel, and how many blocks share a tile (of spans: all tiles).
struct Schedule {
    int tile, splits;
};

// The steps along K of all tiles.
std::int64_t all_steps(const gemmprof::Gemm& gemm, int tile) {
    return tiles_of(gemm, tile) * gemmprof::ceil_div(gemm.k, BK);
}

// The most blocks that have a part of one tile.
int blocks_of_tile(const gemmprof::Gemm& gemm, const Schedule& schedule) {
    if (schedule.tile != SPANS) return schedule.splits;
    return int((gemmprof::ceil_div(gemm.k, BK) - 1) / (all_steps(gemm, SPANS) / schedule.splits)) + 2;
}

// How many parts of tiles are left in memory.
std::int64_t parts_left(const gemmprof::Gemm& gemm, const Schedule& schedule) {
    return schedule.splits * (schedule.tile == SPANS ? 2 : tiles_of(gemm, schedule.tile));
}

// How many bytes the blocks that share a tile, but no cluster, leave for each other.
std::size_t part_bytes(const gemmprof::Gemm& gemm, const Schedule& schedule) {
    if (schedule.tile < FIRST_THROUGH_L2 || schedule.splits == 1) return 0;
    const Cost& cost = costs[schedule.tile];
    return std::size_t(parts_left(gemm, schedule)) * cost.tile_m * cost.tile_n * sizeof(float);
}

double risk(int tile, int splits) {
    if (tile >= FIRST_PARTS) return PARTS_RISK;
    return (tile > 0 ? TILE_RISK : 1.0) * (tile < FIRST_THROUGH_L2 && splits > 2 ? CLUSTER_RISK : 1.0);
}

// Blocks of spans fill the GPU. Each has steps of two tiles at most, so there are no more tiles than blocks.
Schedule spans(const Gpu& gpu) {
    return {SPANS, gpu.sms * costs[SPANS].blocks_per_sm};
}
bool fits_spans(const gemmprof::Gemm& gemm, const Schedule& schedule) {
    return tiles_of(gemm, SPANS) < schedule.splits && all_steps(gemm, SPANS) >= schedule.splits &&
           (all_steps(gemm, SPANS) + 1) * schedule.splits <= INT_MAX && blocks_of_tile(gemm, schedule) <= MAX_PARTS;
}
double expected_time_of_spans(const gemmprof::Gemm& gemm, const Schedule& schedule) {
    const Cost& cost = costs[SPANS];
    const double steps = double((all_steps(gemm, SPANS) + schedule.splits - 1) / schedule.splits);
    return LAUNCH + steps * cost.step[cost.blocks_per_sm - 1] + cost.block + cost.addition;
}

// The fastest of the first `tiles` kernels by expectation. Parts are for blocks that are all at work at once.
Schedule choose_schedule(const gemmprof::Gemm& gemm, int tiles, const Gpu& gpu, const gemmprof::Kernel* kernels) {
    Schedule best{0, 1};
    double best_time = 1e300;
    for (int tile = 0; tile < tiles; ++tile) {
        // What one block may have is all but 1 KiB of an SM's, so it says how many fit, too.
        const int together = tile >= FIRST_PARTS ? costs[tile].blocks_per_sm : 1;
        if (together * kernels[tile].dynamic_shared_memory > gpu.shared_limit) continue;
        if (tile == SPANS) {
            const Schedule all = spans(gpu);
            if (!fits_spans(gemm, all) || part_bytes(gemm, all) > MOST_PART_BYTES) continue;
            const double time = expected_time_of_spans(gemm, all) * risk(SPANS, all.splits);
            if (time < best_time) best = all, best_time = time;
            continue;
        }
        const int most = tile >= FIRST_THROUGH_L2 ? MAX_PARTS : gpu.tensor_copies ? MAX_SPLITS : 1;
        for (int splits = 1; splits <= most && (splits == 1 || (splits - 1) * BK * costs[tile].teams < gemm.k);
             ++splits) {
            if (part_bytes(gemm, {tile, splits}) > MOST_PART_BYTES) break;
            const int places = block_places(gpu, tile, splits, kernels[tile]);
            if (tile >= FIRST_PARTS && (splits == 1 || tiles_of(gemm, tile) * splits > places)) continue;
            const double time = expected_time(gemm, tile, splits, places) * risk(tile, splits);
            if (time < best_time) best = {tile, splits}, best_time = time;
        }
    }
    return best;
}

}  // namespace GEMMPROF_STAGE
