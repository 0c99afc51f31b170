// Stage 13, on the host: which kernel computes a problem, and how many blocks share a tile along K.
#pragma once

#include <algorithm>
#include <atomic>
#include <initializer_list>

#include "clusters.cuh"
#include "fastest_tile.cuh"
#include "workspace.cuh"

namespace GEMMPROF_STAGE {

constexpr int TILES = 7;        // kernels for tensor copies; those for GPUs before Hopper have the large tile only
constexpr int FIRST_TEAMS = 3;  // the first of them whose blocks have several teams

// What the blocks of a tile cost: microseconds, fitted to the times of 38 shapes on an H100 SXM.
struct Cost {
    int tile_m, tile_n, blocks_per_sm, teams;
    double step[4];   // BK along K, if 1, 2, .. blocks share an SM; together they fill more of its issue slots
    double block;     // start and end
    double addition;  // of the sums of the blocks that share a tile, besides
    double addition_per_block;
};

template <class T>
constexpr Cost cost(std::initializer_list<double> steps, double block, double addition, double addition_per_block) {
    Cost c = {T::bm, T::bn, T::blocks_per_sm, T::teams, {}, block, addition, addition_per_block};
    int i = 0;
    for (const double step : steps) c.step[i++] = step;
    return c;
}

constexpr double SCALE = BM * BN / (128.0 * 128.0);
constexpr Cost costs[TILES] = {
    cost<Large>({2.73 * SCALE, 5.01 * SCALE}, 2.9, 1.5, 0.3),
    cost<Medium>({1.57, 2.76, 3.90}, 1.9, 0.6, 0.3),
    cost<Small>({1.02, 1.75, 2.55, 3.15}, 0.5, 1.3, 0.3),
    cost<LargeTeams>({5.01 * SCALE}, 3.7, 3.0, 0.1),
    cost<MediumTeams>({3.90}, 2.7, 3.0, 0.1),
    cost<WideTeams>({3.90}, 2.7, 3.0, 0.1),
    cost<SmallTeams>({3.15}, 1.5, 3.0, 0.1),
};
constexpr double LAUNCH = 6.0;

// What the schedule has to know of the GPU.
struct Gpu {
    int device, sms;
    bool tensor_copies;
};

// How many blocks of a kernel the GPU holds, if so many of them share a tile.
int block_places(const Gpu& gpu, int tile, int splits, const gemmprof::KernelFacts& kernel) {
    static std::atomic<int> known[gemmprof::MAX_DEVICES][FIRST_TEAMS][MAX_SPLITS + 1];
    if (tile >= FIRST_TEAMS || splits == 1) return gpu.sms * costs[tile].blocks_per_sm;
    if (gpu.device >= gemmprof::MAX_DEVICES) return gemmprof::cluster_places(kernel, splits, gpu.sms) * splits;
    std::atomic<int>& clusters = known[gpu.device][tile][splits];
    if (clusters == 0) clusters = gemmprof::cluster_places(kernel, splits, gpu.sms);
    return clusters * splits;
}

// The time of rounds in which every place has a block, and of a last one whose blocks spread over all SMs.
double expected_time(const gemmprof::Gemm& gemm, int tile, int splits, int places) {
    const Cost& cost = costs[tile];
    const std::int64_t blocks =
        std::int64_t(gemmprof::ceil_div(gemm.m, cost.tile_m)) * gemmprof::ceil_div(gemm.n, cost.tile_n) * splits;
    const int usable = std::max(1, places / cost.blocks_per_sm);
    const int steps = gemmprof::ceil_div(gemmprof::ceil_div(gemm.k, BK), splits * cost.teams);
    const double once = cost.block + (splits > 1 ? cost.addition + cost.addition_per_block * splits : 0.0);
    const auto round = [&](int blocks_on_sm) {
        return blocks_on_sm == 0 ? 0.0 : steps * cost.step[blocks_on_sm - 1] + once;
    };
    return LAUNCH + double(blocks / places) * round(cost.blocks_per_sm) +
           round(std::min(cost.blocks_per_sm, gemmprof::ceil_div(int(blocks % places), usable)));
}

// Which kernel, and how many blocks share a tile.
struct Schedule {
    int tile, splits;
};

// How many bytes the blocks that share a tile, but no cluster, leave for each other.
std::size_t part_bytes(const gemmprof::Gemm& gemm, const Schedule& schedule) {
    if (schedule.tile < FIRST_TEAMS || schedule.splits == 1) return 0;
    const Cost& cost = costs[schedule.tile];
    return std::size_t(gemmprof::ceil_div(gemm.m, cost.tile_m)) * gemmprof::ceil_div(gemm.n, cost.tile_n) *
           schedule.splits * cost.tile_m * cost.tile_n * sizeof(float);
}

// The fastest of the first `tiles` kernels by expectation; a smaller tile has to promise 1 % more than the one before.
Schedule choose_schedule(const gemmprof::Gemm& gemm, int tiles, const Gpu& gpu, const gemmprof::Kernel* kernels) {
    Schedule best{0, 1};
    double best_time = 1e300;
    for (int tile = 0; tile < tiles; ++tile) {
        const int most = tile >= FIRST_TEAMS ? MAX_PARTS : gpu.tensor_copies ? MAX_SPLITS : 1;
        for (int splits = 1; splits <= most && (splits == 1 || (splits - 1) * BK * costs[tile].teams < gemm.k);
             ++splits) {
            if (part_bytes(gemm, {tile, splits}) > MOST_PART_BYTES) break;
            const int places = block_places(gpu, tile, splits, kernels[tile]);
            const double time = expected_time(gemm, tile, splits, places) * (1.0 + 0.01 * tile);
            if (time < best_time) best = {tile, splits}, best_time = time;
        }
    }
    return best;
}

}  // namespace GEMMPROF_STAGE
