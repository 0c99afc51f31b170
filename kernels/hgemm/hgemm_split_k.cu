// Stage 12, 16-bit split-K: blocks of a cluster share a tile where tiles are too few.
//
// What changed against stage 11: up to 8 blocks share a tile of the two that both consumers compute together. Each sums
// a part of K, and as a cluster they send their sums through distributed shared memory to the one that adds and stores
// them, each block a share of the tile (exchanged_sums.cuh). No workspace, the same result every time, and ended sooner
// than what is cut (stage 10), whose sums go by way of memory.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "../include/kernel_list.cuh"
#include "exchanged_sums.cuh"
#include "pieces.cuh"
#include "staged_store.cuh"

// The build compiles the kernels in so many parts side by side.
#ifdef GEMMPROF_PART
constexpr int PARTS = 5;
#else
constexpr int PARTS = 1;
#define GEMMPROF_PART 0
#endif

static_assert(BM == 128, "BM must be 128: a consumer warpgroup multiplies two times 64 rows");
static_assert(BN == 64 || BN == 128 || BN == 192, "BN must be 64, 128 or 192: sums of 128 rows fit the registers");
static_assert(STAGES >= 3, "STAGES must be at least 3: one is multiplied, one is waited for, one is being copied");
static_assert(GROUP >= 1, "GROUP must be at least 1: rows of tile pairs that are walked together");
static_assert(STAGES * 2 * BK * (BM + BN) + 16384 + 1032 + 16 * STAGES <= SHARED_LIMIT,
              "STAGES tiles and what is being stored must fit 227 KiB of shared memory");

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

template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED, class TILE>
__global__ void __launch_bounds__(THREADS, 1)
    hgemm_split_k(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                  const __grid_constant__ CUtensorMap map_c, Schedule schedule, gemmprof::Output out) {
    using A = OperandTile<TILE::bm, !A_TRANSPOSED>;
    using B = OperandTile<TILE::bn, B_TRANSPOSED, TILE::pair>;
    constexpr int ST = TILE::stages, PAIR = TILE::pair, STAGE_BYTES = A::bytes + B::bytes;
    // Who releases a stage: in each block of the pair, both consumers or the one whose tile it is.
    constexpr int RELEASES = PAIR * (TILE::in_turn ? 1 : CONSUMERS);
    extern __shared__ unsigned char shared[];
    const unsigned tiles = (ptx::shared_address(shared) + SWIZZLE_ATOM - 1) / SWIZZLE_ATOM * SWIZZLE_ATOM;
    const unsigned staging = tiles + ST * TILE::stage_bytes;
    const unsigned full = staging + CONSUMERS * 4 * TILE::warp_staging, empty = full + 8 * ST, summed = empty + 8 * ST;

    const int rank = int(ptx::cluster_rank()), pair_rank = rank % PAIR, part = TILE::in_turn ? 0 : rank / PAIR;
    const int index = TILE::in_turn ? int(blockIdx.x) / PAIR : schedule.by_cluster.divide(int(blockIdx.x));
    Pieces pieces(schedule, index, part);
    const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0), group = warp / 4;
    const bool copies = warp == CONSUMERS * 4;  // one lane of it does

    if (copies && ptx::elect_one()) {
        ptx::prefetch_map(&map_a);
        ptx::prefetch_map(&map_b);
        for (int stage = 0; stage < ST; ++stage) {
            ptx::barrier_init(full + 8 * stage, 1);
            ptx::barrier_init(empty + 8 * stage, RELEASES);
        }
        ptx::barrier_init(summed, 1);
        ptx::barrier_init_fence();
    }
    __syncwarp();
    if constexpr (PAIR > 1)
        ptx::cluster_meet();
    else
        __syncthreads();

    if (group == CONSUMERS) {
        ptx::give_registers<40>();
        if (copies && ptx::elect_one()) {
            int stage = 0, parity = 0;
            while (pieces.next(schedule)) {
                int tile_row, tile_col;
                schedule.place(pieces.tile, tile_row, tile_col);
                const int row = (tile_row * PAIR + pair_rank) * TILE::bm, col = tile_col * TILE::bn;
                for (int step = pieces.first; step < pieces.last; ++step) {
                    const unsigned tile = tiles + stage * STAGE_BYTES, barrier = full + 8 * stage;
                    ptx::barrier_wait(empty + 8 * stage, parity ^ 1);
                    ptx::barrier_expect(barrier, STAGE_BYTES);
                    A::copy(tile, &map_a, row, step * BK, barrier);
                    B::copy(tile + A::bytes, &map_b, col, step * BK, barrier, pair_rank, 3u << part * PAIR);
                    if (++stage == ST) stage = 0, parity ^= 1;
                }
            }
        }
        __syncwarp();
        if (schedule.splits > 1) ptx::cluster_meet();
    } else {
        ptx::take_registers<232>();
        const int thread = threadIdx.x % 128;
        const int group_row = TILE::bm == 128 && !TILE::in_turn ? group * 64 : 0;
        const int group_col = TILE::wn < TILE::bn ? group * TILE::wn : 0;
        typename TILE::Ring ring = {staging + threadIdx.x / 32 * TILE::warp_staging};
        const auto release = [&](int s) {
            if constexpr (PAIR == 1) {
                if (thread == 0) ptx::barrier_arrive(empty + 8 * s);
            } else {
                if (thread < PAIR) ptx::barrier_arrive_at(empty + 8 * s, unsigned(part * PAIR + thread));
            }
        };
        if constexpr (TILE::in_turn)
            if (group == 1) ptx::named_barrier_arrive(1, CONSUMERS * 128);  // the first turn is the other's
        int position = 0;                                                   // steps that lie before this piece
        int stage = 0, parity = 0;
        bool some = pieces.next(schedule);
        // Shuffled, so that the compiler sees that it is the same for all lanes: the loop is counted, and wgmma's
        // descriptors are made, in uniform registers.
        int next_steps = __shfl_sync(~0u, pieces.last - pieces.first, 0);
        for (int turn = 0; some; ++turn) {
            const int steps = next_steps;
            if constexpr (TILE::in_turn) {
                stage = __shfl_sync(~0u, position % ST, 0), parity = __shfl_sync(~0u, position / ST & 1, 0);
                position += steps;
                if (turn % CONSUMERS != group) {
                    some = pieces.next(schedule);
                    next_steps = __shfl_sync(~0u, pieces.last - pieces.first, 0);
                    continue;
                }
            }
            float sums[TILE::halves][TILE::wn / 2];
            if constexpr (TILE::in_turn) ptx::named_barrier_sync(1 + group, CONSUMERS * 128);
            int step = 0;
            do {  // a piece has at least one step
                ptx::barrier_wait(full + 8 * stage, parity);
                const unsigned a_tile = tiles + stage * STAGE_BYTES, b_tile = a_tile + A::bytes;
                issue_step<T, TILE, A, B>(sums, a_tile, b_tile, group_row, group_col, step > 0);
                ptx::wgmma_wait<1>();
#pragma unroll
                for (int half = 0; half < TILE::halves; ++half) ptx::pin(sums[half]);
                if (step > 0) release(stage == 0 ? ST - 1 : stage - 1);
                if (++stage == ST) stage = 0, parity ^= 1;
            } while (++step < steps);
            // All is issued, so it is the other's turn, if there is another piece.
            if constexpr (TILE::in_turn)
                if (pieces.more(schedule)) ptx::named_barrier_arrive(2 - group, CONSUMERS * 128);
            // While the last steps are multiplied: where the sums go, and what comes next.
            const Pieces piece = pieces;
            int tile_row, tile_col;
            schedule.place(piece.tile, tile_row, tile_col);
            some = pieces.next(schedule);
            next_steps = __shfl_sync(~0u, pieces.last - pieces.first, 0);
            ptx::wgmma_wait<0>();
#pragma unroll
            for (int half = 0; half < TILE::halves; ++half) ptx::pin(sums[half]);
            release(stage == 0 ? ST - 1 : stage - 1);

            const int row = (tile_row * PAIR + pair_rank) * TILE::bm + group_row;
            const int col = tile_col * TILE::bn + group_col;
            if constexpr (TILE::cuttable)
                if (!complete_sums<TILE>(sums, schedule, piece, index, group)) continue;
            if (!TILE::in_turn && schedule.splits > 1) {
                exchange_and_store<T, TILE>(sums[0], tiles, summed, part, schedule.splits, pair_rank, row, col, out);
                break;
            }
#pragma unroll
            for (int half = 0; half < TILE::halves; ++half)
                store_staged<T, TILE>(sums[half], ring, schedule.bulk ? &map_c : nullptr, row + 64 * half, col,
                                      out);
        }
        ring.drain();
    }
    // A block that left would take its shared memory from under the copies and arrivals of its neighbour.
    __syncwarp();
    if constexpr (PAIR > 1) ptx::cluster_meet();
}

// ------------------------------------------------------------------------------------------------ kernels by tile

// A tile's kernels, which a part of the stage of its own has; the first part has the host's code.
template <int TILE_NAME, class TILE>
void list_tile(gemmprof::KernelFacts* kernels) {
    if constexpr (PARTS == 1 || TILE_NAME + 1 == GEMMPROF_PART) {
        constexpr int SHARED_BYTES = TILE::shared_bytes;
        const gemmprof::KernelFacts of_tile[] = GEMMPROF_KERNELS(hgemm_split_k, , TILE);
        std::copy(std::begin(of_tile), std::end(of_tile), kernels + 2 * kLayouts * TILE_NAME);
    }
}

template <>
void list_part<GEMMPROF_PART>(gemmprof::KernelFacts* kernels) {
#define GEMMPROF_TILE(NAME, ...) list_tile<k##NAME, NAME>(kernels);
    GEMMPROF_TILES(GEMMPROF_TILE)
#undef GEMMPROF_TILE
}

}  // namespace GEMMPROF_STAGE

// ------------------------------------------------------------------------------------------------------ host code

#if GEMMPROF_PART == 0
#include "../include/hgemm.cuh"

namespace GEMMPROF_STAGE {

const KernelList<2 * kLayouts * kTiles, PARTS> list;
const gemmprof::KernelFacts (&kernels)[2 * kLayouts * kTiles] = list.all;

using Describe = cudaError_t(CUtensorMap& map_a, CUtensorMap& map_b, const gemmprof::Gemm& g);

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
    constexpr int MAX_CLUSTER = 8;  // the largest that every Hopper GPU accepts
    Choice best;
    for (int tile = 0; tile < kTiles; ++tile) {
        const TileFacts& facts = tile_facts[tile];
        const int most = facts.in_turn ? 1 : std::min(MAX_CLUSTER, gemmprof::ceil_div(g.k, BK));
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
        if (cudaError_t error = cudaGetDevice(&device)) return error;
        if (cudaError_t error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return error;
        const Choice choice = choose(g, sms);
        const TileFacts& tile = tile_facts[choice.tile];
        CUtensorMap map_a, map_b, map_c = {};
        if (cudaError_t error = tile.describe(map_a, map_b, g)) return error;
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
        const int kernel = (2 * choice.tile + gemmprof::half_index(g)) * kLayouts + layout_of(g);
        return gemmprof::launch_kernel(kernels[kernel], clusters * cluster, cluster, on, map_a, map_b, map_c, schedule,
                                       gemmprof::output_of(g));
    });
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
#endif
