// Stage 1 of 8 bits: e4m3 operands at twice the rate of 16-bit ones, sums kept in float32.
//
// It stands on stage 7 and 8 of the 16-bit ladder: one warpgroup copies, two multiply, blocks stay and walk the tiles in
// an order made for L2, C leaves by way of shared memory and the copy engine. What 8 bits change:
// 1. A row of 128 bytes holds 128 elements, so the same tiles bring twice the work.
// 2. The tensor cores add 8-bit products with about 14 bits and cut the rest. So they add over BK = 128 only; then their
//    sums are added to float32 ones in registers, at the full 24 bits. That doubles the registers of sums, which is
//    why a block computes 128 x 192 and not 128 x 256. While one warpgroup adds, the other keeps the tensor cores busy.
// 3. wgmma reads 8-bit operands with K along their rows only. A row-major, B stored transposed (as torch._scaled_mm wants
//    it) is taken as it is; other orders are copied first (fp8_operands.cuh).
#include "fp8_tiles.cuh"

static_assert(BM == 128, "BM must be 128: two consumer warpgroups multiply 64 rows each");
static_assert(BN == 128 || BN == 192, "BN must be 128 or 192: sums and their parts must fit the registers");
static_assert(GROUP >= 1, "GROUP must be at least 1: rows of tiles that are walked together");
static_assert(STAGES >= 3, "STAGES must be at least 3: one is multiplied, one is waited for, one is being copied");

namespace GEMMPROF_STAGE {

#ifndef PROMOTE
#define PROMOTE 1
#endif

// Tiles of C (of pairs, where blocks are paired): `rows` below each other, `columns` side by side.
struct Tiles {
    int rows, columns;
    bool bulk;  // the copy engine stores C

    // The place of the index-th: down a band of GROUP rows, then the next column of the band.
    __device__ __forceinline__ void place(int index, int& row, int& column) const {
        const int band = index / (GROUP * columns), first = band * GROUP;
        const int height = min(GROUP, rows - first), within = index - first * columns;
        row = first + within % height;
        column = within / height;
    }
};

template <class T, class TILE, int PROMOTED>
__global__ void __launch_bounds__(THREADS, 1)
    fp8_promoted(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                 const __grid_constant__ CUtensorMap map_c, Tiles places, int K, gemmprof::Output out) {
    constexpr int ST = TILE::stages, PAIR = TILE::pair;
    extern __shared__ unsigned char shared[];
    const unsigned tiles = (ptx::shared_address(shared) + SWIZZLE_ATOM - 1) / SWIZZLE_ATOM * SWIZZLE_ATOM;
    const unsigned staging = tiles + ST * TILE::stage_bytes;
    const unsigned full = staging + CONSUMERS * 4 * TILE::warp_staging, empty = full + 8 * ST;

    const int rank = PAIR > 1 ? int(ptx::cluster_rank()) : 0;
    const int count = places.rows * places.columns, clusters = int(gridDim.x) / PAIR;
    const int steps = __shfl_sync(~0u, gemmprof::ceil_div(K, BK), 0);
    const int group = __shfl_sync(~0u, int(threadIdx.x) / 128, 0);

    if (threadIdx.x == CONSUMERS * 128) {
        ptx::prefetch_map(&map_a);
        ptx::prefetch_map(&map_b);
        if (places.bulk) ptx::prefetch_map(&map_c);
        for (int stage = 0; stage < ST; ++stage) {
            ptx::barrier_init(full + 8 * stage, 1);
            ptx::barrier_init(empty + 8 * stage, PAIR * CONSUMERS);
        }
        ptx::barrier_init_fence();
    }
    __syncwarp();
    if constexpr (PAIR > 1)
        ptx::cluster_meet();
    else
        __syncthreads();

    int stage = 0, parity = 0;
    const auto advance = [&] {
        if (++stage == ST) stage = 0, parity ^= 1;
    };
    if (group == CONSUMERS) {
        ptx::give_registers<40>();
        if (threadIdx.x == CONSUMERS * 128) {
            for (int index = int(blockIdx.x) / PAIR; index < count; index += clusters) {
                int tile_row, tile_col;
                places.place(index, tile_row, tile_col);
                const int row = (tile_row * PAIR + rank) * BM, col = tile_col * TILE::bn;
                for (int step = 0; step < steps; ++step, advance()) {
                    ptx::barrier_wait(empty + 8 * stage, parity ^ 1);
                    const unsigned a = tiles + stage * TILE::stage_bytes, b = a + TILE::a_bytes, barrier = full + 8 * stage;
                    ptx::barrier_expect(barrier, TILE::stage_bytes);
                    ptx::copy_box(a, &map_a, step * BK, row, barrier);
                    if constexpr (PAIR > 1) {
                        // Each block copies half of B's rows into both.
                        constexpr int HALF = TILE::bn / PAIR;
                        ptx::copy_box_to(b + rank * HALF * BK, &map_b, step * BK, col + rank * HALF, barrier, 3);
                    } else {
                        ptx::copy_box(b, &map_b, step * BK, col, barrier);
                    }
                }
            }
        }
    } else {
        ptx::take_registers<232>();
        const int thread = threadIdx.x % 128;
        const auto release = [&](int s) {
            if constexpr (PAIR > 1) {
                if (thread < PAIR) ptx::barrier_arrive_at(empty + 8 * s, unsigned(thread));
            } else {
                if (thread == 0) ptx::barrier_arrive(empty + 8 * s);
            }
        };
        const unsigned my_staging = staging + threadIdx.x / 32 * TILE::warp_staging;
        for (int index = int(blockIdx.x) / PAIR; index < count; index += clusters) {
            float sums[TILE::bn / 2], parts[TILE::bn / 2];
#pragma unroll
            for (int i = 0; i < TILE::bn / 2; ++i) sums[i] = 0.0f;
            int since = 0;
            for (int step = 0; step < steps; ++step) {
                ptx::barrier_wait(full + 8 * stage, parity);
                const unsigned a = tiles + stage * TILE::stage_bytes, b = a + TILE::a_bytes;
                ptx::pin(parts);
                ptx::wgmma_fence();
                multiply_step(parts, a + group * 64 * BK, b, PROMOTED == 1 ? 0 : PROMOTED == 0 ? step > 0 : since > 0);
                ptx::wgmma_commit();
                if constexpr (PROMOTED == 1) {
                    ptx::wgmma_wait<0>();
                    ptx::pin(parts);
                    release(stage);
#pragma unroll
                    for (int i = 0; i < TILE::bn / 2; ++i) sums[i] += parts[i];
                } else if constexpr (PROMOTED == 0) {
                    ptx::wgmma_wait<1>();
                    ptx::pin(parts);
                    if (step > 0) release(stage == 0 ? ST - 1 : stage - 1);
                } else {
                    ptx::wgmma_wait<0>();
                    ptx::pin(parts);
                    release(stage);
                    if (++since == PROMOTED || step == steps - 1) {
#pragma unroll
                        for (int i = 0; i < TILE::bn / 2; ++i) sums[i] += parts[i];
                        since = 0;
                    }
                }
                advance();
            }
            if constexpr (PROMOTED == 0) {
                ptx::wgmma_wait<0>();
                ptx::pin(parts);
                release(stage == 0 ? ST - 1 : stage - 1);
            }
            const auto& result = *(PROMOTED == 0 ? &parts : &sums);

            int tile_row, tile_col;
            places.place(index, tile_row, tile_col);
            const int row = (tile_row * PAIR + rank) * BM + group * 64 + thread / 32 * 16, col = tile_col * TILE::bn;
            if (places.bulk)
                store_boxes<T, TILE>(result, my_staging, &map_c, row, col, out.alpha);
            else
                store_pairs<T>(result, row, col, out);
        }
        if (threadIdx.x % 32 == 0) ptx::store_box_wait<0>();
    }
    // A block that left would take its shared memory from under the copies and arrivals of its neighbour.
    __syncwarp();
    if constexpr (PAIR > 1) ptx::cluster_meet();
}

template <class T, class TILE, int PROMOTED>
cudaError_t launch_tile(const gemmprof::Gemm& g, int device, cudaStream_t stream) {
    int sms = 0;
    if (cudaError_t error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return error;
    const bool bulk = g.c_dtype != gemmprof::Dtype::kFloat32 && g.beta == 0.0f && (g.ldc | g.n) % 8 == 0 &&
                      reinterpret_cast<std::uintptr_t>(g.c) % 16 == 0;
    CUtensorMap maps[3] = {};
    if (cudaError_t error = gemmprof::describe(maps[0], g.a, g.m, g.k, g.lda, BK, BM, 1)) return error;
    if (cudaError_t error = gemmprof::describe(maps[1], g.b, g.n, g.k, g.ldb, BK, TILE::bn / TILE::pair, 1))
        return error;
    if (bulk)
        if (cudaError_t error = gemmprof::describe(maps[2], g.c, g.m, g.n, g.ldc, STORE_COLUMNS, 16)) return error;
    const Tiles places = {gemmprof::ceil_div(g.m, BM * TILE::pair), gemmprof::ceil_div(g.n, TILE::bn), bulk};
    const std::int64_t count = std::int64_t(places.rows) * places.columns;
    const unsigned clusters = unsigned(count < sms / TILE::pair ? count : sms / TILE::pair);
    const gemmprof::KernelFacts kernel = {"", gemmprof::address(fp8_promoted<T, TILE, PROMOTED>), THREADS, TILE::shared_bytes};
    return gemmprof::launch_kernel(kernel, clusters * TILE::pair, TILE::pair, stream, maps[0], maps[1], maps[2], places,
                                   g.k, gemmprof::output_of(g));
}

}  // namespace GEMMPROF_STAGE
