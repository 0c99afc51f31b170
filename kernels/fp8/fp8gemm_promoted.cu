// Stage 1, FP8: e4m3 operands at twice the rate of 16-bit ones, sums kept in float32.
//
// It stands on stages 7 and 8 of the 16-bit ladder: one warpgroup copies, two multiply, blocks stay and walk the tiles
// in an order made for L2, C leaves by way of shared memory and the copy engine. What 8 bits change:
// 1. A row of 128 bytes holds 128 elements, so tiles of the same bytes bring twice the work.
// 2. The tensor cores keep about 14 bits of a sum and cut the rest. So they add over BK = 128 only; then their sums are
//    added to float32 ones in registers. That doubles the registers of sums, which is why a block computes 128 x 192
//    and not 128 x 256. While one warpgroup adds, the other keeps the tensor cores busy.
// 3. wgmma reads 8-bit operands with K along their rows only. A row-major and B stored transposed, as torch._scaled_mm
//    wants them, are taken as they are; other orders are copied first (fp8_operands.cuh).
// 4. Few tiles: the blocks of a cluster share one, and where A has few rows, B takes its place (fp8_shared.cuh).
#include <algorithm>
#include <atomic>
#include <type_traits>

#include "fp8_shared.cuh"
#include "fp8_tiles.cuh"

static_assert(BM == 128, "BM must be 128: two consumer warpgroups multiply 64 rows each");
static_assert(BN == 64 || BN == 128 || BN == 192, "BN must be 64, 128 or 192: a sum and its part fit the registers");
static_assert(GROUP >= 1, "GROUP must be at least 1: rows of tiles that are walked together");
static_assert(STAGES >= 3, "STAGES must be at least 3: one is multiplied, one is waited for, one is being copied");
static_assert(STAGES * BK * (BM + BN) + 1024 + 16 * STAGES + 16384 <= SHARED_LIMIT,
              "STAGES tiles and what is being stored must fit 227 KiB of shared memory");

namespace GEMMPROF_STAGE {

// Tiles of C: `rows` below each other, `columns` side by side.
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

template <class T, class TILE, class SCALES>
__device__ __forceinline__ void compute_tiles(const CUtensorMap& map_a, const CUtensorMap& map_b,
                                              const CUtensorMap& map_c, const Tiles& places, int K,
                                              const gemmprof::Output& out, const SCALES& scales) {
    constexpr int ST = TILE::stages;
    extern __shared__ unsigned char shared[];
    const unsigned tiles = (ptx::shared_address(shared) + SWIZZLE_ATOM - 1) / SWIZZLE_ATOM * SWIZZLE_ATOM;
    const unsigned staging = tiles + ST * TILE::stage_bytes;
    const unsigned full = staging + CONSUMERS * 4 * TILE::warp_staging, empty = full + 8 * ST;
    float* const scales_of = reinterpret_cast<float*>(shared + (empty + 8 * ST - ptx::shared_address(shared)));

    // Shuffled, so that the compiler sees that they are the same for all lanes.
    const int steps = __shfl_sync(~0u, gemmprof::ceil_div(K, BK), 0);
    const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0), group = warp / 4;
    const bool copies = warp == CONSUMERS * 4;  // one lane of it does
    const int count = places.rows * places.columns;

    if (copies && ptx::elect_one()) {
        ptx::prefetch_map(&map_a);
        ptx::prefetch_map(&map_b);
        if (places.bulk) ptx::prefetch_map(&map_c);
        for (int stage = 0; stage < ST; ++stage) {
            ptx::barrier_init(full + 8 * stage, SCALES::of_blocks ? 2 : 1);  // the tiles, and their scales
            ptx::barrier_init(empty + 8 * stage, CONSUMERS);
        }
        ptx::barrier_init_fence();
    }
    __syncwarp();
    __syncthreads();

    int stage = 0, parity = 0;
    const auto advance = [&] {
        if (++stage == ST) stage = 0, parity ^= 1;
    };
    if (group == CONSUMERS) {
        ptx::give_registers<40>();
        if (copies && ptx::elect_one()) {
            for (int index = int(blockIdx.x); index < count; index += int(gridDim.x)) {
                int tile_row, tile_col;
                places.place(index, tile_row, tile_col);
                for (int step = 0; step < steps; ++step, advance()) {
                    ptx::barrier_wait(empty + 8 * stage, parity ^ 1);
                    const unsigned tile = tiles + stage * TILE::stage_bytes, barrier = full + 8 * stage;
                    ptx::barrier_expect(barrier, TILE::stage_bytes);
                    ptx::copy_box(tile, &map_a, step * BK, tile_row * BM, barrier);
                    ptx::copy_box(tile + TILE::a_bytes, &map_b, step * BK, tile_col * TILE::bn, barrier);
                }
            }
        }
        if constexpr (SCALES::of_blocks)
            if (!copies)
                bring_scales<BM, ST>(scales, (count - int(blockIdx.x) + int(gridDim.x) - 1) / int(gridDim.x) * steps,
                                     out.m, scales_of, full, empty, [&](int number, int& step, int& row, int& columns) {
                                         int tile_row;
                                         places.place(int(blockIdx.x) + number / steps * int(gridDim.x), tile_row,
                                                      columns);
                                         step = number % steps, row = tile_row * BM;
                                     });
    } else {
        ptx::take_registers<232>();
        const int thread = threadIdx.x % 128;
        typename TILE::Ring ring = {staging + threadIdx.x / 32 * TILE::warp_staging};
        for (int index = int(blockIdx.x); index < count; index += int(gridDim.x)) {
            float sums[TILE::bn / 2], part[TILE::bn / 2];
#pragma unroll
            for (int i = 0; i < TILE::bn / 2; ++i) sums[i] = 0.0f;
            for (int step = 0; step < steps; ++step, advance()) {
                ptx::barrier_wait(full + 8 * stage, parity);
                const float* const scale = scales_of + stage * BM + group * 64 + thread / 32 * 16 + thread % 32 / 4;
                [[maybe_unused]] const float above = SCALES::of_blocks ? scale[0] : 1.0f;
                [[maybe_unused]] const float below = SCALES::of_blocks ? scale[8] : 1.0f;
                const unsigned a = tiles + stage * TILE::stage_bytes, b = a + TILE::a_bytes;
                ptx::pin(part);
                ptx::wgmma_fence();
                multiply_step(part, a + group * 64 * BK, b);
                ptx::wgmma_commit();
                ptx::wgmma_wait<0>();
                ptx::pin(part);
                if (thread == 0) ptx::barrier_arrive(empty + 8 * stage);
#pragma unroll
                for (int i = 0; i < TILE::bn / 2; ++i)
                    if constexpr (SCALES::of_blocks)
                        sums[i] = fmaf(part[i], i / 2 % 2 ? below : above, sums[i]);
                    else
                        sums[i] += part[i];
            }
            int tile_row, tile_col;
            places.place(index, tile_row, tile_col);
            const int row = tile_row * BM + group * 64 + thread / 32 * 16, col = tile_col * TILE::bn;
            if constexpr (std::is_same_v<SCALES, RowScales>)
                scale_sums(sums, scales, out, row + thread % 32 / 4, col + thread % 4 * 2);
            if (places.bulk)
                store_boxes<T>(sums, ring, &map_c, row, col, out.alpha);
            else
                store_pairs<T>(sums, row, col, out);
        }
        ring.drain();
    }
}

template <class T, class TILE>
__global__ void __launch_bounds__(THREADS, 1)
    fp8gemm_promoted(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                     const __grid_constant__ CUtensorMap map_c, Tiles places, int K, gemmprof::Output out) {
    compute_tiles<T, TILE>(map_a, map_b, map_c, places, K, out, OneScale());
}

// The same with a scale each of rows and columns, or of blocks.
template <class T, class TILE, class SCALES>
__global__ void __launch_bounds__(THREADS, 1)
    fp8_scaled(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
               const __grid_constant__ CUtensorMap map_c, Tiles places, int K, gemmprof::Output out, SCALES scales) {
    compute_tiles<T, TILE>(map_a, map_b, map_c, places, K, out, scales);
}

// By tile, then by the 16-bit type of C; where that is float32, either does. The first is what large problems run.
#define GEMMPROF_BOTH(KERNEL, TILE, bytes, name, ...)                                                                  \
    {"bfloat16, " name, gemmprof::address(KERNEL<__nv_bfloat16, TILE __VA_ARGS__>), THREADS, TILE::bytes}, {           \
        "float16, " name, gemmprof::address(KERNEL<__half, TILE __VA_ARGS__>), THREADS, TILE::bytes                    \
    }
const gemmprof::KernelFacts kernels[] = {
    GEMMPROF_BOTH(fp8gemm_promoted, Wide, shared_bytes, "wide"),
    GEMMPROF_BOTH(fp8gemm_promoted, Square, shared_bytes, "128 columns"),
    GEMMPROF_BOTH(fp8gemm_promoted, Narrow, shared_bytes, "64 columns"),
    GEMMPROF_BOTH(fp8gemm_shared, Square, needed_bytes, "shared, 128 columns"),
    GEMMPROF_BOTH(fp8gemm_shared, Narrow, needed_bytes, "shared, 64 columns"),
    GEMMPROF_BOTH(fp8gemm_shared, Slim, needed_bytes, "shared, 32 columns"),
    GEMMPROF_BOTH(fp8_scaled, Wide, shared_bytes, "wide, rows scaled", , RowScales),
    GEMMPROF_BOTH(fp8_scaled, Square, shared_bytes, "128 columns, rows scaled", , RowScales),
    GEMMPROF_BOTH(fp8_scaled, Narrow, shared_bytes, "64 columns, rows scaled", , RowScales),
    GEMMPROF_BOTH(fp8_scaled_shared, Square, needed_bytes, "shared, 128 columns, rows scaled", , RowScales),
    GEMMPROF_BOTH(fp8_scaled_shared, Narrow, needed_bytes, "shared, 64 columns, rows scaled", , RowScales),
    GEMMPROF_BOTH(fp8_scaled_shared, Slim, needed_bytes, "shared, 32 columns, rows scaled", , RowScales),
    GEMMPROF_BOTH(fp8_scaled, Blocks, scaled_bytes, "128 columns, blocks scaled", , BlockScales),
    GEMMPROF_BOTH(fp8_scaled_shared, Narrow, shared_scaled_bytes, "shared, 64 columns, blocks scaled", , BlockScales),
    GEMMPROF_BOTH(fp8_scaled_shared, Slim, shared_scaled_bytes, "shared, 32 columns, blocks scaled", , BlockScales),
};

// Columns of the tiles in the order of the kernels: three that blocks compute one after the other, then three whose
// blocks share K.
constexpr int columns_of[] = {Wide::bn, Square::bn, Narrow::bn, Square::bn, Narrow::bn, Slim::bn};
constexpr int TILES = 6;
constexpr int FIRST_SHARED = 3;
enum { SQUARE = 1, NARROW_SHARED = 4, ROWS_SCALED = TILES, BLOCKS_SCALED = 2 * TILES };  // of the kernels, by two

struct Choice {
    int tile = 0;
    int parts = 1;         // blocks that share a tile
    bool swapped = false;  // of C's transpose
};

// How many clusters of this size the device holds at a time, asked once.
int places_of(int device, int sms, int cluster) {
    static std::atomic<int> known[gemmprof::MAX_DEVICES][MAX_CLUSTER + 1];
    if (cluster == 1) return sms;
    const gemmprof::KernelFacts& kernel = kernels[2 * FIRST_SHARED];
    if (device >= gemmprof::MAX_DEVICES) return gemmprof::cluster_places(kernel, cluster, sms);
    std::atomic<int>& places = known[device][cluster];
    if (places == 0) places = gemmprof::cluster_places(kernel, cluster, sms);
    return places;
}

std::int64_t tiles_of(const gemmprof::Gemm& g, const Choice& choice) {
    const int m = choice.swapped ? g.n : g.m, n = choice.swapped ? g.m : g.n;
    return std::int64_t(gemmprof::ceil_div(m, BM)) * gemmprof::ceil_div(n, columns_of[choice.tile]);
}

// Microseconds but for what all have. A step goes by what it moves through shared memory: the copy engine writes both
// operands, and each of two warpgroups reads 64 rows of A and all of B. The constants are from 25 shapes on an H100.
double expected_time(const gemmprof::Gemm& g, const Choice& choice, int places, double memory) {
    constexpr double ROWS_OF_128_BYTES = 1160.0, BANDWIDTH = 4.8e6, ALONE = 1.5, EXCHANGE = 5.2, PER_BLOCK = 1.3;
    const double rounds = double((tiles_of(g, choice) + places - 1) / places);
    const double step = (2.0 * BM + 3.0 * columns_of[choice.tile]) / ROWS_OF_128_BYTES;
    const int steps = gemmprof::ceil_div(gemmprof::ceil_div(g.k, BK), choice.parts);
    // Blocks that share K are at different places of it.
    const double apart = choice.parts > 1 ? 1.375 : 1.0;
    const double bytes = double(g.k) * (double(g.m) + g.n) + 2.0 * g.m * g.n;
    const double time = std::max(rounds * steps * step, bytes * apart / (BANDWIDTH * memory));
    if (choice.tile < FIRST_SHARED) return time;
    return time + (choice.parts == 1 ? ALONE : EXCHANGE + PER_BLOCK * choice.parts);
}

// Of the tiles that blocks compute one after the other that which ends first, unless sharing is expected to end sooner.
// `of_blocks`: with scales of 128 columns, which one tile has, and which those that share K have only where B takes A's
// place.
Choice choose(const gemmprof::Gemm& g, int device, int sms, bool of_blocks) {
    constexpr int relative_time[FIRST_SHARED] = {7, 5, 3};  // of a tile, on an H200
    Choice best;
    std::int64_t soonest = 0;
    if (of_blocks) best.tile = SQUARE;
    for (int tile = 0; tile < FIRST_SHARED && !of_blocks; ++tile) {
        const std::int64_t time = (tiles_of(g, {tile}) + sms - 1) / sms * relative_time[tile];
        if (tile == 0 || time < soonest) best.tile = tile, soonest = time;
    }
    const double memory = gemmprof::memory_speed(device);
    const int most = std::min(MAX_CLUSTER, gemmprof::ceil_div(g.k, BK));
    // Rows of A that are not there would be multiplied, and filled with zeros, as if they were: of 16 x 3456 x 3072 that
    // takes 15.8 us, with A and B in each other's place 11.8.
    const bool swapped = g.m < BM && g.m < g.n;
    if (of_blocks && !swapped) return best;
    double least = swapped ? 1e300 : expected_time(g, best, sms, memory);
    for (int tile = of_blocks ? NARROW_SHARED : FIRST_SHARED; tile < TILES; ++tile)
        for (int parts = 1; parts <= most; ++parts) {
            const Choice choice = {tile, parts, swapped};
            const int places = places_of(device, sms, parts);
            if (tiles_of(g, choice) > places) continue;  // nothing of a next tile would hide its stores
            const double time = expected_time(g, choice, places, memory);
            if (time < least) least = time, best = choice;
        }
    return best;
}

template <class SCALES>
cudaError_t launch_shared(const gemmprof::Gemm& g, const Choice& choice, const SCALES& scales, cudaStream_t stream) {
    const int columns = columns_of[choice.tile], m = choice.swapped ? g.n : g.m, n = choice.swapped ? g.m : g.n;
    CUtensorMap maps[2] = {};
    CUtensorMap &map_a = maps[choice.swapped], &map_b = maps[!choice.swapped];
    if (cudaError_t error = gemmprof::describe(map_a, g.a, g.m, g.k, g.lda, BK, choice.swapped ? columns : BM, 1))
        return error;
    if (cudaError_t error = gemmprof::describe(map_b, g.b, g.n, g.k, g.ldb, BK, choice.swapped ? BM : columns, 1))
        return error;
    const int rows = gemmprof::ceil_div(m, BM);
    const unsigned blocks = unsigned(rows * gemmprof::ceil_div(n, columns) * choice.parts);
    const bool half = g.c_dtype == gemmprof::Dtype::kFloat16;
    if constexpr (!std::is_same_v<SCALES, OneScale>) {
        const int kernel = SCALES::of_blocks ? BLOCKS_SCALED + 1 + choice.tile - NARROW_SHARED
                                             : ROWS_SCALED + choice.tile;
        return gemmprof::launch_kernel(kernels[2 * kernel + half], blocks, unsigned(choice.parts), stream, maps[0],
                                       maps[1], rows, g.k, choice.swapped, gemmprof::output_of(g), scales);
    }
    return gemmprof::launch_kernel(kernels[2 * choice.tile + half], blocks, unsigned(choice.parts), stream, maps[0],
                                   maps[1], rows, g.k, choice.swapped, gemmprof::output_of(g));
}

template <class SCALES>
cudaError_t launch_ordered(const gemmprof::Gemm& g, int tile, int sms, const SCALES& scales, cudaStream_t stream) {
    const bool bulk = g.c_dtype != gemmprof::Dtype::kFloat32 && g.beta == 0.0f && (g.ldc | g.n) % 8 == 0 &&
                      reinterpret_cast<std::uintptr_t>(g.c) % 16 == 0;
    const int bn = columns_of[tile];
    CUtensorMap maps[3] = {};
    if (cudaError_t error = gemmprof::describe(maps[0], g.a, g.m, g.k, g.lda, BK, BM, 1)) return error;
    if (cudaError_t error = gemmprof::describe(maps[1], g.b, g.n, g.k, g.ldb, BK, bn, 1)) return error;
    if (bulk)
        if (cudaError_t error = gemmprof::describe(maps[2], g.c, g.m, g.n, g.ldc, STORE_COLUMNS, 16)) return error;
    const Tiles places = {gemmprof::ceil_div(g.m, BM), gemmprof::ceil_div(g.n, bn), bulk};
    const std::int64_t count = std::int64_t(places.rows) * places.columns;
    const bool half = g.c_dtype == gemmprof::Dtype::kFloat16;
    const unsigned blocks = unsigned(count < sms ? count : sms);
    if constexpr (!std::is_same_v<SCALES, OneScale>) {
        const int kernel = (SCALES::of_blocks ? BLOCKS_SCALED : ROWS_SCALED + tile) * 2 + half;
        return gemmprof::launch_kernel(kernels[kernel], blocks, 1, stream, maps[0], maps[1], maps[2], places, g.k,
                                       gemmprof::output_of(g), scales);
    }
    return gemmprof::launch_kernel(kernels[2 * tile + half], blocks, 1, stream, maps[0], maps[1], maps[2], places, g.k,
                                   gemmprof::output_of(g));
}

template <class SCALES>
cudaError_t launch_scaled(const gemmprof::Gemm& gemm, const SCALES& scales, cudaStream_t stream) {
    return gemmprof::run_fp8(gemm, stream, [&](const gemmprof::Gemm& g, int device, cudaStream_t on) {
        int sms = 0;
        if (cudaError_t error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return error;
        const Choice choice = choose(g, device, sms, SCALES::of_blocks);
        return choice.tile < FIRST_SHARED ? launch_ordered(g, choice.tile, sms, scales, on)
                                          : launch_shared(g, choice, scales, on);
    });
}

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    return launch_scaled(gemm, OneScale(), stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)

// Products with a scale for each row and column, or for each block of 128; distances in elements (kernels/scaled.py).
extern "C" int GEMMPROF_PASTE(gemmprof_rows_scaled_, GEMMPROF_STAGE)(const gemmprof::Gemm* gemm, const float* a,
                                                                    std::int64_t a_row, const float* b,
                                                                    std::int64_t b_column, void* stream) {
    using namespace GEMMPROF_STAGE;
    return int(launch_scaled(*gemm, RowScales{a, b, a_row, b_column}, static_cast<cudaStream_t>(stream)));
}

extern "C" int GEMMPROF_PASTE(gemmprof_blocks_scaled_, GEMMPROF_STAGE)(const gemmprof::Gemm* gemm, const float* a,
                                                                      std::int64_t a_row, std::int64_t a_step,
                                                                      const float* b, std::int64_t b_step,
                                                                      std::int64_t b_column, void* stream) {
    using namespace GEMMPROF_STAGE;
    return int(launch_scaled(*gemm, BlockScales{a, b, a_row, a_step, b_step, b_column},
                             static_cast<cudaStream_t>(stream)));
}
