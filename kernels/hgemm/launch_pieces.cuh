// Host code of stages 10 to 12: a problem as tiles of one kind, each computed by a cluster, shared by its blocks, or cut.
#pragma once

#include <algorithm>

#include "../include/hgemm.cuh"
#include "pieces.cuh"
#include "staged_store.cuh"

namespace GEMMPROF_STAGE {

// What the host needs of a tile. Microseconds, measured on an H200: BK along K, and start and end of a tile (of all
// tiles together where they overlap); for stages that choose.
struct TileFacts {
    int bm, bn, pair, part_bytes, store_columns;
    bool in_turn;
    cudaError_t (*describe)(CUtensorMap& map_a, CUtensorMap& map_b, const gemmprof::Gemm& g);
    double step, block;
};

template <class TILE>
TileFacts facts(double step = 0.0, double block = 0.0) {
    return {TILE::bm,      TILE::bn,      TILE::pair, TILE::part_floats * 4, TILE::store_columns,
            TILE::in_turn, describe_operands<TILE::bm, TILE::bn, TILE::pair>, step, block};
}

// `splits`: blocks (or pairs) that share every tile along K. `cut`: the last tiles are cut into equal pieces.
inline cudaError_t launch_pieces(const gemmprof::Gemm& g, const gemmprof::KernelFacts* kernels, const TileFacts& tile,
                                 int splits, bool cut, int device, int sms, cudaStream_t stream) {
    CUtensorMap map_a, map_b, map_c = {};
    if (cudaError_t error = tile.describe(map_a, map_b, g)) return error;
    const bool bulk = splits == 1 && stored_by_copies(g);
    if (bulk)
        if (cudaError_t error = gemmprof::describe(map_c, g.c, g.m, g.n, g.ldc, tile.store_columns, 16)) return error;
    const int rows = gemmprof::ceil_div(g.m, tile.bm * tile.pair), columns = gemmprof::ceil_div(g.n, tile.bn);
    const int count = rows * columns, cluster = tile.pair * splits, steps = gemmprof::ceil_div(g.k, BK);
    const int places = sms / cluster;
    const int clusters = splits > 1 ? count : cut ? places : std::min(count, places);
    Schedule schedule = {};
    schedule.rows = rows, schedule.columns = columns, schedule.splits = splits, schedule.clusters = clusters;
    schedule.whole = count, schedule.steps = steps, schedule.bulk = bulk;
    schedule.part = Shares::of(steps, splits), schedule.by_cluster = Divisor::of(cluster);
    schedule.by_band = Divisor::of(GROUP * columns), schedule.by_steps = Divisor::of(steps);
    schedule.by_height = Divisor::of(rows % GROUP == 0 ? GROUP : rows % GROUP);
    const gemmprof::Parts parts(device, cut ? clusters * cluster : 0, std::size_t(tile.part_bytes), stream);
    if (parts.complete != nullptr) {
        schedule.whole = std::max(0, count / places - 1) * places;
        schedule.piece = Shares::of((count - schedule.whole) * steps, clusters);
        schedule.parts = parts.parts, schedule.complete = parts.complete, schedule.ticket = gemmprof::new_ticket();
    }
    const gemmprof::KernelFacts& kernel = kernels[gemmprof::half_index(g) * kLayouts + layout_of(g)];
    return gemmprof::launch_kernel(kernel, clusters * cluster, cluster, stream, map_a, map_b, map_c, schedule,
                                   gemmprof::output_of(g));
}

}  // namespace GEMMPROF_STAGE
