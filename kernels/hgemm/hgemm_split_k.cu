// Stage 12, 16-bit split-K: blocks of a cluster share a tile where tiles are too few.
//
// What changed against stage 11: up to 8 blocks share a tile of the two that both consumers compute together. They take
// its steps along K in turn (pieces.cuh), and as a cluster they send their sums through distributed shared memory to
// the one that adds and stores them, each block a share of the tile (exchanged_sums.cuh). No workspace, the same result
// every time, and ended sooner than what is cut (stage 10), whose sums go by way of memory.
// The tiles and the choice are in hgemm_tiles.cuh.
#include "exchanged_sums.cuh"
#include "pieces.cuh"
#include "staged_store.cuh"

// The build compiles the kernels in so many parts side by side.
constexpr int PARTS = 6;

static_assert(BM == 128, "BM must be 128: a consumer warpgroup multiplies two times 64 rows");
static_assert(BN == 64 || BN == 128 || BN == 192, "BN must be 64, 128 or 192: sums of 128 rows fit the registers");
static_assert(STAGES >= 3, "STAGES must be at least 3: one is multiplied, one is waited for, one is being copied");
static_assert(GROUP >= 1, "GROUP must be at least 1: rows of tile pairs that are walked together");
static_assert(STAGES * 2 * BK * (BM + BN) + 16384 + 1032 + 16 * STAGES <= SHARED_LIMIT,
              "STAGES tiles and what is being stored must fit 227 KiB of shared memory");

namespace GEMMPROF_STAGE {

constexpr bool SHARE_K = true;

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
                for (int step = pieces.first; step < pieces.last; step += schedule.splits) {
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
        int next_steps = __shfl_sync(~0u, pieces.steps, 0);
        for (int turn = 0; some; ++turn) {
            const int steps = next_steps;
            if constexpr (TILE::in_turn) {
                stage = __shfl_sync(~0u, position % ST, 0), parity = __shfl_sync(~0u, position / ST & 1, 0);
                position += steps;
                if (turn % CONSUMERS != group) {
                    some = pieces.next(schedule);
                    next_steps = __shfl_sync(~0u, pieces.steps, 0);
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
            next_steps = __shfl_sync(~0u, pieces.steps, 0);
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

}  // namespace GEMMPROF_STAGE

#include "hgemm_tiles.cuh"
