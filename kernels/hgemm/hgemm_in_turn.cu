// Stage 9, 16-bit consumers in turn: one warpgroup stores while the other multiplies.
//
// What changed against stage 8: a tile is computed by one of the two consumer warpgroups alone, both halves of its 128
// rows, and they take the tiles in turn. Two named barriers pass the tensor cores on: a consumer has its turn when the
// other has issued all of its tile, and what that one then does, waiting for the last sums, packing and storing them,
// costs the tensor cores no time. A consumer keeps twice the rows, so a tile has 192 columns and not 256.
#include "consumers.cuh"
#include "staged_store.cuh"
#include "tile_pairs.cuh"

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

// The copy engine stores C where `bulk` is set.
struct Tiles : TilePairs {
    bool bulk;
};

template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED>
__global__ void __launch_bounds__(THREADS, 1)
    hgemm_in_turn(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                  const __grid_constant__ CUtensorMap map_c, Tiles places, int K, gemmprof::Output out) {
    using A = OperandTile<TILE::bm, !A_TRANSPOSED>;
    using B = OperandTile<TILE::bn, B_TRANSPOSED, TILE::pair>;
    constexpr int ST = TILE::stages, PAIR = TILE::pair, STAGE_BYTES = A::bytes + B::bytes;
    extern __shared__ unsigned char shared[];
    const unsigned tiles = (ptx::shared_address(shared) + SWIZZLE_ATOM - 1) / SWIZZLE_ATOM * SWIZZLE_ATOM;
    const unsigned staging = tiles + ST * TILE::stage_bytes;
    const unsigned full = staging + CONSUMERS * 4 * TILE::warp_staging, empty = full + 8 * ST;

    const int pair_rank = int(ptx::cluster_rank()), clusters = int(gridDim.x) / PAIR;
    const int count = places.rows * places.columns, steps = gemmprof::ceil_div(K, BK);
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
            for (int index = int(blockIdx.x) / PAIR; index < count; index += clusters) {
                int tile_row, tile_col;
                places.place(index, tile_row, tile_col);
                const int row = (tile_row * PAIR + pair_rank) * TILE::bm, col = tile_col * TILE::bn;
                for (int step = 0; step < steps; ++step) {
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
        int stage = 0, parity = 0, turn = 0;
        for (int index = int(blockIdx.x) / PAIR; index < count; index += clusters, ++turn) {
            if (turn % CONSUMERS != group) continue;
            // The stages are filled for one tile after the other. Shuffled, so that the compiler sees that it is the
            // same for all lanes: wgmma's descriptors are made in uniform registers.
            const int position = turn * steps;
            stage = __shfl_sync(~0u, position % ST, 0), parity = __shfl_sync(~0u, position / ST & 1, 0);
            float sums[TILE::halves][TILE::wn / 2];
            ptx::named_barrier_sync(1 + group, CONSUMERS * 128);
            int step = 0;
            do {  // there is at least one
                ptx::barrier_wait(full + 8 * stage, parity);
                const unsigned a_tile = tiles + stage * STAGE_BYTES, b_tile = a_tile + A::bytes;
                issue_step<T, TILE, A, B>(sums, a_tile, b_tile, 0, 0, step > 0);
                ptx::wgmma_wait<1>();
#pragma unroll
                for (int half = 0; half < TILE::halves; ++half) ptx::pin(sums[half]);
                if (step > 0) release(stage == 0 ? ST - 1 : stage - 1);
                if (++stage == ST) stage = 0, parity ^= 1;
            } while (++step < steps);
            // All is issued, so it is the other's turn, if there is another tile.
            if (index + clusters < count) ptx::named_barrier_arrive(2 - group, CONSUMERS * 128);
            int tile_row, tile_col;
            places.place(index, tile_row, tile_col);
            ptx::wgmma_wait<0>();
#pragma unroll
            for (int half = 0; half < TILE::halves; ++half) ptx::pin(sums[half]);
            release(stage == 0 ? ST - 1 : stage - 1);

            const int row = (tile_row * PAIR + pair_rank) * TILE::bm;
            const int col = tile_col * TILE::bn;
#pragma unroll
            for (int half = 0; half < TILE::halves; ++half)
                store_staged<T, TILE>(sums[half], ring, places.bulk ? &map_c : nullptr, row + 64 * half, col,
                                      out);
        }
        ring.drain();
    }
    // A block that left would take its shared memory from under the copies and arrivals of its neighbour.
    __syncwarp();
    ptx::cluster_meet();
}

GEMMPROF_KERNELS(hgemm_in_turn)

#if GEMMPROF_PART == 0
cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    return gemmprof::run_half(gemm, stream, {true, true}, [](const gemmprof::Gemm& g, cudaStream_t on) {
        CUtensorMap map_a, map_b, map_c = {};
        if (cudaError_t error = describe_operands<BM, BN, TILE::pair>(map_a, map_b, g)) return error;
        const bool bulk = stored_by_copies(g);
        if (bulk)
            if (cudaError_t error = gemmprof::describe(map_c, g.c, g.m, g.n, g.ldc, TILE::store_columns, 16))
                return error;
        const Tiles places = {{gemmprof::ceil_div(g.m, BM * TILE::pair), gemmprof::ceil_div(g.n, BN)}, bulk};
        return launch_pairs(g, kernels, places, on, map_a, map_b, map_c);
    });
}
#endif

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
