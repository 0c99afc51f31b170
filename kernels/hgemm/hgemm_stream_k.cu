// Stage 10, 16-bit stream-K: the last tiles are cut along K, so that all SMs end at the same time.
//
// What changed against stage 9: the tiles of the last two rounds, which rarely fill the GPU, or all where they are
// fewer than the pairs of blocks, are one long row of steps along K. It is cut into equal pieces, one for each cluster
// (pieces.cuh). A cluster leaves the sums of steps that are not a tile's first in memory; the one that computes the
// first takes them from there. The order of additions is fixed, so the result is the same every time.
#include <algorithm>
#include <cmath>

#include "../include/clusters.cuh"
#include "../include/hgemm.cuh"
#include "pieces.cuh"
#include "staged_store.cuh"

// The build compiles the kernels in so many parts side by side.
constexpr int PARTS = 2;

static_assert(BM == 128, "BM must be 128: a consumer warpgroup multiplies two times 64 rows");
static_assert(BN == 64 || BN == 128 || BN == 192, "BN must be 64, 128 or 192: sums of 128 rows fit the registers");
static_assert(STAGES >= 3, "STAGES must be at least 3: one is multiplied, one is waited for, one is being copied");
static_assert(GROUP >= 1, "GROUP must be at least 1: rows of tile pairs that are walked together");
static_assert(STAGES * 2 * BK * (BM + BN) + 16384 + 1032 + 16 * STAGES <= SHARED_LIMIT,
              "STAGES tiles and what is being stored must fit 227 KiB of shared memory");

namespace GEMMPROF_STAGE {

using TILE = Tile<BM, BN, STAGES, 2, Consumers::kInTurn, false>;
inline constexpr int SHARED_BYTES = TILE::shared_bytes;

template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED>
__global__ void __launch_bounds__(THREADS, 1)
    hgemm_stream_k(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                  const __grid_constant__ CUtensorMap map_c, Schedule schedule, gemmprof::Output out) {
    using A = OperandTile<TILE::bm, !A_TRANSPOSED>;
    using B = OperandTile<TILE::bn, B_TRANSPOSED, TILE::pair>;
    constexpr int ST = TILE::stages, PAIR = TILE::pair, STAGE_BYTES = A::bytes + B::bytes;
    extern __shared__ unsigned char shared[];
    const unsigned tiles = (ptx::shared_address(shared) + SWIZZLE_ATOM - 1) / SWIZZLE_ATOM * SWIZZLE_ATOM;
    const unsigned staging = tiles + ST * TILE::stage_bytes;
    const unsigned full = staging + CONSUMERS * 4 * TILE::warp_staging, empty = full + 8 * ST;

    const int pair_rank = int(ptx::cluster_rank()), index = int(blockIdx.x) / PAIR;
    Pieces pieces(schedule, index, 0);
    const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0), group = warp / 4;
    const bool copies = warp == CONSUMERS * 4;  // one lane of it does

    if (copies && ptx::elect_one()) {
        ptx::prefetch_map(&map_a);
        ptx::prefetch_map(&map_b);
        for (int stage = 0; stage < ST; ++stage) {
            ptx::barrier_init(full + 8 * stage, 1);
            ptx::barrier_init(empty + 8 * stage, PAIR);  // one consumer of each block
        }
        ptx::barrier_init_fence();
    }
    __syncwarp();
    ptx::cluster_meet();

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
                    B::copy(tile + A::bytes, &map_b, col, step * BK, barrier, pair_rank, 3u);
                    if (++stage == ST) stage = 0, parity ^= 1;
                }
            }
        }
    } else {
        ptx::take_registers<232>();
        const int thread = threadIdx.x % 128;
        TILE::Ring ring = {staging + threadIdx.x / 32 * TILE::warp_staging};
        const auto release = [&](int s) {
            if (thread < PAIR) ptx::barrier_arrive_at(empty + 8 * s, unsigned(thread));
        };
        if (group == 1) ptx::named_barrier_arrive(1, CONSUMERS * 128);  // the first turn is the other's
        int position = 0;                                               // steps that lie before this piece
        int stage = 0, parity = 0;
        bool some = pieces.next(schedule);
        // Shuffled, so that the compiler sees that it is the same for all lanes: the loop is counted, and wgmma's
        // descriptors are made, in uniform registers.
        int next_steps = __shfl_sync(~0u, pieces.steps, 0);
        for (int turn = 0; some; ++turn) {
            const int steps = next_steps;
            stage = __shfl_sync(~0u, position % ST, 0), parity = __shfl_sync(~0u, position / ST & 1, 0);
            position += steps;
            if (turn % CONSUMERS != group) {
                some = pieces.next(schedule);
                next_steps = __shfl_sync(~0u, pieces.steps, 0);
                continue;
            }
            float sums[TILE::halves][TILE::wn / 2];
            ptx::named_barrier_sync(1 + group, CONSUMERS * 128);
            int step = 0;
            do {  // a piece has at least one step
                ptx::barrier_wait(full + 8 * stage, parity);
                const unsigned a_tile = tiles + stage * STAGE_BYTES, b_tile = a_tile + A::bytes;
                issue_step<T, TILE, A, B>(sums, a_tile, b_tile, 0, 0, step > 0);
                ptx::wgmma_wait<1>();
#pragma unroll
                for (int half = 0; half < TILE::halves; ++half) ptx::pin(sums[half]);
                if (step > 0) release(stage == 0 ? ST - 1 : stage - 1);
                if (++stage == ST) stage = 0, parity ^= 1;
            } while (++step < steps);
            // All is issued, so it is the other's turn, if there is another piece.
            if (pieces.more(schedule)) ptx::named_barrier_arrive(2 - group, CONSUMERS * 128);
            // While the last steps are multiplied: where the sums go, and what comes next.
            const Pieces piece = pieces;
            int tile_row, tile_col;
            schedule.place(piece.tile, tile_row, tile_col);
            some = pieces.next(schedule);
            next_steps = __shfl_sync(~0u, pieces.steps, 0);
            ptx::wgmma_wait<0>();
#pragma unroll
            for (int half = 0; half < TILE::halves; ++half) ptx::pin(sums[half]);
            release(stage == 0 ? ST - 1 : stage - 1);

            const int row = (tile_row * PAIR + pair_rank) * TILE::bm;
            const int col = tile_col * TILE::bn;
            if (!complete_sums<TILE>(sums, schedule, piece, index, group)) continue;
#pragma unroll
            for (int half = 0; half < TILE::halves; ++half)
                store_staged<T, TILE>(sums[half], ring, schedule.bulk ? &map_c : nullptr, row + 64 * half, col,
                                      out);
        }
        ring.drain();
    }
    // A block that left would take its shared memory from under the copies and arrivals of its neighbour.
    __syncwarp();
    ptx::cluster_meet();
}

GEMMPROF_KERNELS(hgemm_stream_k)

#if GEMMPROF_PART == 0
// Whether tiles are cut: microseconds of a step, and what cutting costs on an H200. Clusters at different places of K
// share less of L2, a part of their time more, and the sums that they leave are fetched, those of a tile one by one.
bool cut_pays(int count, int places, int steps) {
    constexpr double STEP = 0.45, APART = 0.33, FETCH = 1.7, FETCH_PER_PART = 2.2;
    const double rounds = double(count) / places, cut = rounds - std::max(0, count / places - 1);
    return double(count) * steps >= 4.0 * places && 2.0 * places * steps < 2147483647.0 &&
           (std::ceil(rounds) - rounds - APART * cut) * steps * STEP > FETCH + FETCH_PER_PART * std::ceil(1.0 / rounds);
}

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    return gemmprof::run_half(gemm, stream, {true, true}, [](const gemmprof::Gemm& g, cudaStream_t on) {
        CUtensorMap map_a, map_b, map_c = {};
        if (cudaError_t error = describe_operands<BM, BN, TILE::pair>(map_a, map_b, g)) return error;
        const bool bulk = stored_by_copies(g);
        if (bulk)
            if (cudaError_t error = gemmprof::describe(map_c, g.c, g.m, g.n, g.ldc, TILE::store_columns, 16))
                return error;
        int device = 0, sms = 0;
        if (cudaError_t error = gemmprof::current_device(device, sms)) return error;
        const int rows = gemmprof::ceil_div(g.m, BM * TILE::pair), columns = gemmprof::ceil_div(g.n, BN);
        const int count = rows * columns, cluster = TILE::pair, steps = gemmprof::ceil_div(g.k, BK);
        const int places = sms / cluster;
        const bool cut = cut_pays(count, places, steps);
        const int clusters = cut ? places : std::min(count, places);
        Schedule schedule = {};
        schedule.rows = rows, schedule.columns = columns, schedule.splits = 1, schedule.clusters = clusters;
        schedule.whole = count, schedule.steps = steps, schedule.bulk = bulk;
        schedule.by_band = Divisor::of(GROUP * columns), schedule.by_steps = Divisor::of(steps);
        schedule.by_height = Divisor::of(rows % GROUP == 0 ? GROUP : rows % GROUP);
        const gemmprof::Parts parts(device, cut ? clusters * cluster : 0, TILE::part_floats * sizeof(float), on);
        if (parts.complete != nullptr) {
            schedule.whole = std::max(0, count / places - 1) * places;
            schedule.piece = Shares::of((count - schedule.whole) * steps, clusters);
            schedule.parts = parts.parts, schedule.complete = parts.complete, schedule.ticket = gemmprof::new_ticket();
        }
        return gemmprof::launch_kernel(kernels[kernel_of(g)], clusters * cluster, cluster, on, map_a, map_b, map_c,
                                       schedule, gemmprof::output_of(g));
    });
}
#endif

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
