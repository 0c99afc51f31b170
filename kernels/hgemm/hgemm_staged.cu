// Stage 8, 16-bit staged store: C leaves by way of shared memory and the copy engine.
//
// What changed against stage 7, all of it after the last wgmma of a tile: stmatrix lays a warp's 16 rows of packed sums
// into shared memory, 64 columns at a time, and one lane starts the copy to C. A warp gives four instructions for what
// took four shuffles and a store each, whole lines of C reach L2, and while the copy engine stores the first columns
// the warp packs the next: two buffers a warp, taken in turn.
#include "staged_store.cuh"
#include "tile_pairs.cuh"

constexpr int CLUSTER = 2;
constexpr int CONSUMERS = BM / 64;
constexpr int THREADS = (CONSUMERS + 1) * 128;
constexpr int STAGE_BYTES = (BM + BN) * BK * 2;
constexpr int STORE_BYTES = 16 * 64 * 2;  // of C that a warp hands over at a time
constexpr int STORE_BUFFERS = 2;
constexpr int STAGING_BYTES = CONSUMERS * 4 * STORE_BUFFERS * STORE_BYTES;
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + SWIZZLE_ATOM + 16 * STAGES + STAGING_BYTES;

static_assert(BM == 64 || BM == 128,
              "BM must be 64 or 128: a consumer warpgroup multiplies 64 rows, and there are 1 or 2");
static_assert(BN == 64 || BN == 128 || BN == 192 || BN == 256, "BN must be 64, 128, 192 or 256: what wgmma multiplies");
static_assert(STAGES >= 2, "STAGES must be at least 2: one tile is computed while another is copied");
static_assert(GROUP >= 1, "GROUP must be at least 1: rows of tile pairs that are walked together");
static_assert(SHARED_BYTES <= SHARED_LIMIT, "STAGES tiles and what is being stored must fit 227 KiB of shared memory");

namespace GEMMPROF_STAGE {

// What is handed over of a warp's sums (staged_store.cuh).
struct Tile {
    static constexpr bool swapped = false;
    static constexpr int store_columns = 64, part_words = store_columns / 4;
    using Ring = gemmprof::StoreRing<STORE_BUFFERS, STORE_BYTES>;
};

// The copy engine stores C where `bulk` is set.
struct Tiles : TilePairs {
    bool bulk;
};

template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED>
__global__ void __launch_bounds__(THREADS, 1)
    hgemm_staged(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                 const __grid_constant__ CUtensorMap map_c, Tiles places, int K, gemmprof::Output out) {
    using A = OperandTile<BM, !A_TRANSPOSED>;
    using B = OperandTile<BN, B_TRANSPOSED, CLUSTER>;
    extern __shared__ unsigned char shared[];
    const unsigned tiles = (ptx::shared_address(shared) + SWIZZLE_ATOM - 1) / SWIZZLE_ATOM * SWIZZLE_ATOM;
    const unsigned staging = tiles + STAGES * STAGE_BYTES;
    const unsigned full = staging + STAGING_BYTES, empty = full + 8 * STAGES;

    const int rank = int(ptx::cluster_rank());
    const int count = places.rows * places.columns, clusters = int(gridDim.x) / CLUSTER;
    const int steps = gemmprof::ceil_div(K, BK);
    const int group = threadIdx.x / 128;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            ptx::barrier_init(full + 8 * stage, 1);
            ptx::barrier_init(empty + 8 * stage, CLUSTER * CONSUMERS);
        }
        ptx::barrier_init_fence();
    }
    ptx::cluster_meet();

    int stage = 0, parity = 0;
    if (group == CONSUMERS) {
        ptx::give_registers<40>();
        if (threadIdx.x == CONSUMERS * 128) {
            for (int index = int(blockIdx.x) / CLUSTER; index < count; index += clusters) {
                int pair_m, tile_n;
                places.place(index, pair_m, tile_n);
                const int row = (pair_m * CLUSTER + rank) * BM, col = tile_n * BN;
                for (int step = 0; step < steps; ++step) {
                    ptx::barrier_wait(empty + 8 * stage, parity ^ 1);
                    const unsigned tile = tiles + stage * STAGE_BYTES, barrier = full + 8 * stage;
                    ptx::barrier_expect(barrier, STAGE_BYTES);
                    A::copy(tile, &map_a, row, step * BK, barrier);
                    B::copy(tile + A::bytes, &map_b, col, step * BK, barrier, rank, (1 << CLUSTER) - 1);
                    if (++stage == STAGES) stage = 0, parity ^= 1;
                }
            }
        }
    } else {
        ptx::take_registers<232>();
        const unsigned thread = threadIdx.x % 128;
        Tile::Ring ring = {staging + threadIdx.x / 32 * STORE_BUFFERS * STORE_BYTES};
        for (int index = int(blockIdx.x) / CLUSTER; index < count; index += clusters) {
            int pair_m, tile_n;
            places.place(index, pair_m, tile_n);
            float sums[BN / 2];
            for (int step = 0; step < steps; ++step) {
                ptx::barrier_wait(full + 8 * stage, parity);
                const unsigned tile = tiles + stage * STAGE_BYTES;
                ptx::pin(sums);
                ptx::wgmma_fence();
                multiply_step<T, A, B>(sums, A::descriptor(tile, group * 64), B::descriptor(tile + A::bytes, 0),
                                       step > 0);
                ptx::wgmma_commit();
                ptx::wgmma_wait<1>();
                ptx::pin(sums);
                if (step > 0 && thread < CLUSTER)
                    ptx::barrier_arrive_at(empty + 8 * (stage == 0 ? STAGES - 1 : stage - 1), thread);
                if (++stage == STAGES) stage = 0, parity ^= 1;
            }
            ptx::wgmma_wait<0>();
            ptx::pin(sums);
            if (thread < CLUSTER) ptx::barrier_arrive_at(empty + 8 * (stage == 0 ? STAGES - 1 : stage - 1), thread);
            const int row = (pair_m * CLUSTER + rank) * BM + group * 64, col = tile_n * BN;
            store_staged<T, Tile>(sums, ring, places.bulk ? &map_c : nullptr, row, col, out);
        }
        ring.drain();
    }
    // A block that left would take its shared memory from under the copies and arrivals of the other.
    __syncwarp();
    ptx::cluster_meet();
}

GEMMPROF_KERNELS(hgemm_staged)

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    return gemmprof::run_half(gemm, stream, {true, true}, [](const gemmprof::Gemm& g, cudaStream_t on) {
        CUtensorMap map_a, map_b, map_c = {};
        if (cudaError_t error = describe_operands<BM, BN, CLUSTER>(map_a, map_b, g)) return error;
        const bool bulk = stored_by_copies(g);
        if (bulk)
            if (cudaError_t error = gemmprof::describe(map_c, g.c, g.m, g.n, g.ldc, Tile::store_columns, 16))
                return error;
        const Tiles places = {{gemmprof::ceil_div(g.m, BM * CLUSTER), gemmprof::ceil_div(g.n, BN)}, bulk};
        return launch_pairs(g, kernels, places, on, map_a, map_b, map_c);
    });
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)
