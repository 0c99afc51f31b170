// Stage 13, on the host: which tile a problem is computed in, and how many blocks share one along K.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "fastest_tile.cuh"

namespace GEMMPROF_STAGE {

constexpr int TILES = 3;  // for tensor copies; the other kernels, for GPUs before Hopper, have the large one only

// What the blocks of a tile cost: microseconds, fitted to the times of 38 shapes on an H100 SXM.
struct Cost {
    int tile_m, tile_n, blocks_per_sm;
    double step[4];   // BK along K, if 1, 2, .. blocks share an SM; together they fill more of its issue slots
    double block;     // start and end
    double addition;  // of the sums of a cluster, besides ADDITION_PER_BLOCK
};

constexpr double SCALE = BM * BN / (128.0 * 128.0);
const Cost costs[TILES] = {
    {Large::bm, Large::bn, Large::blocks_per_sm, {2.73 * SCALE, 5.01 * SCALE}, 2.9, 1.5},
    {Medium::bm, Medium::bn, Medium::blocks_per_sm, {1.57, 2.76, 3.90}, 1.9, 0.6},
    {Small::bm, Small::bn, Small::blocks_per_sm, {1.02, 1.75, 2.55, 3.15}, 0.5, 1.3},
};
constexpr double ADDITION_PER_BLOCK = 0.3;
constexpr double LAUNCH = 6.0;

// The part of the SMs that clusters of 1, 2, .. blocks can use: the others find no partners near enough.
constexpr double USABLE[MAX_SPLITS] = {1.0, 1.0, 0.90, 0.93, 0.88, 0.88, 0.84, 0.90};

// The time of rounds in which every SM is full, and of a last one in which the remaining blocks spread over all SMs.
double expected_time(const gemmprof::Gemm& gemm, int tile, int splits, int sms) {
    const Cost& cost = costs[tile];
    const std::int64_t blocks = std::int64_t(gemmprof::ceil_div(gemm.m, costs[tile].tile_m)) *
                                gemmprof::ceil_div(gemm.n, costs[tile].tile_n) * splits;
    const int usable = std::max(1, int(sms * USABLE[splits - 1])), full = usable * cost.blocks_per_sm;
    const int steps = gemmprof::ceil_div(gemmprof::ceil_div(gemm.k, BK), splits);
    const double once = cost.block + (splits > 1 ? cost.addition + ADDITION_PER_BLOCK * splits : 0.0);
    const auto round = [&](int blocks_on_sm) {
        return blocks_on_sm == 0 ? 0.0 : steps * cost.step[blocks_on_sm - 1] + once;
    };
    return LAUNCH + double(blocks / full) * round(cost.blocks_per_sm) +
           round(gemmprof::ceil_div(int(blocks % full), usable));
}

// Which tile, and how many blocks share one.
struct Schedule {
    int tile, splits;
};

// The fastest of the first `tiles` kernels by expectation; a smaller tile has to promise 1 % more than the one before.
Schedule choose_schedule(const gemmprof::Gemm& gemm, int tiles, int max_splits, int sms) {
    Schedule best{0, 1};
    double best_time = expected_time(gemm, 0, 1, sms);
    for (int tile = 0; tile < tiles; ++tile)
        for (int splits = 1; splits <= max_splits && (splits == 1 || (splits - 1) * BK < gemm.k); ++splits) {
            const double time = expected_time(gemm, tile, splits, sms) * (1.0 + 0.01 * tile);
            if (time < best_time) best = {tile, splits}, best_time = time;
        }
    return best;
}

}  // namespace GEMMPROF_STAGE
