// Stage 1, FP8: e4m3 operands at twice the rate of 16-bit ones, sums kept in float32.
//
// It stands on stages 7 and 8 of the 16-bit ladder: one warpgroup copies, two multiply, blocks stay and walk the tiles
// in an order made for L2, C leaves by way of shared memory and the copy engine. What 8 bits change:
// 1. A row of 128 bytes holds 128 elements, so tiles of the same bytes bring twice the work.
// 2. The tensor cores keep about 14 bits of a sum and cut the rest. So they add over BK = 128 only; then their sums are
//    added to float32 ones in registers. That doubles the registers of sums, which is why a block computes 128 x 192
//    and not 128 x 256. While one warpgroup adds, the other keeps the tensor cores busy; with 128 columns each has
//    registers for two parts, and multiplies a step while it adds the one before. Where the caller allows it the sums
//    stay in the tensor cores, and a block computes 128 x 256.
// 3. wgmma reads 8-bit operands with K along their rows only. A row-major and B stored transposed, as torch._scaled_mm
//    wants them, are taken as they are; other orders are copied first (fp8_operands.cuh).
// 4. Few tiles: the blocks of a cluster share one, and where A has few rows, B takes its place (fp8_shared.cuh).
// 5. Rows an odd multiple of 16 bytes apart: even and odd ones come as matrices of their own (SplitRows, fp8_tiles.cuh).
#include <algorithm>
#include <type_traits>

#include "../include/kernel_list.cuh"
#include "fp8_shared.cuh"
#include "fp8_tiles.cuh"

// The build compiles the kernels in so many parts side by side.
constexpr int PARTS = 5;

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

// `odd_a`, `odd_b`: of operands whose rows are split the odd ones, where the others are the even ones; K then ends where the
// last step has to reach.
template <class T, class TILE, class SCALES>
__device__ __forceinline__ void compute_tiles(const CUtensorMap& map_a, const CUtensorMap& odd_a,
                                              const CUtensorMap& map_b, const CUtensorMap& odd_b,
                                              const CUtensorMap& map_c, const Tiles& places, int K,
                                              const gemmprof::Output& out, const SCALES& scales) {
    using Lies = Lying<TILE::split>;
    static_assert(!TILE::split || (SCALES::promoted && !SCALES::of_blocks), "the last chunks of A are one step's");
    constexpr int ST = TILE::stages, COUNT = TILE::bn / 2, BLOCKS = TILE::blocks;
    // A warp's reads of scales are its own; all warps of a group multiply as one.
    constexpr int RELEASE_EVERY = SCALES::of_blocks ? 32 : 128;
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
    const int ahead = min(ST, steps);  // that are asked for before the block meets
    const auto copy = [&](int step, int to, int tile_row, int tile_col) {
        const unsigned tile = tiles + to * TILE::stage_bytes, barrier = full + 8 * to;
        ptx::barrier_expect(barrier, TILE::stage_bytes);
        if constexpr (TILE::split) {
            const int k = step * BK, row = tile_row * (BM / 2), col = tile_col * (TILE::bn / 2);
            const unsigned b = tile + TILE::a_bytes;
            ptx::copy_box(tile, &map_a, k, row, barrier);
            ptx::copy_box(tile + BM / 2 * BK, &odd_a, k - SPLIT_BYTES, row, barrier);
            ptx::copy_box(b, &map_b, k - SPLIT_AHEAD, col, barrier);
            ptx::copy_box(b + TILE::bn / 2 * BK, &odd_b, k - SPLIT_BYTES, col, barrier);
        } else {
            ptx::copy_box(tile, &map_a, step * BK, tile_row * BM, barrier);
            ptx::copy_box(tile + TILE::a_bytes, &map_b, step * BK, tile_col * TILE::bn, barrier);
        }
    };

    if (copies && ptx::elect_one()) {
        ptx::prefetch_map(&map_a);
        ptx::prefetch_map(&map_b);
        if constexpr (TILE::split) ptx::prefetch_map(&odd_a), ptx::prefetch_map(&odd_b);
        if (places.bulk) ptx::prefetch_map(&map_c);
        for (int stage = 0; stage < ST; ++stage) {
            ptx::barrier_init(full + 8 * stage, SCALES::of_blocks ? 2 : 1);  // the tiles, and their scales
            ptx::barrier_init(empty + 8 * stage, CONSUMERS * 128 / RELEASE_EVERY);
        }
        ptx::barrier_init_fence();
        ptx::fence_async_proxy();
        int tile_row, tile_col;
        places.place(int(blockIdx.x), tile_row, tile_col);
#pragma unroll 1
        for (int step = 0; step < ahead; ++step) copy(step, step, tile_row, tile_col);
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
            stage = ahead % ST, parity = ahead == ST;
            for (int index = int(blockIdx.x); index < count; index += int(gridDim.x)) {
                int tile_row, tile_col;
                places.place(index, tile_row, tile_col);
#pragma unroll 1
                for (int step = index == int(blockIdx.x) ? ahead : 0; step < steps; ++step, advance()) {
                    ptx::barrier_wait(empty + 8 * stage, parity ^ 1);
                    copy(step, stage, tile_row, tile_col);
                }
            }
        }
        if constexpr (SCALES::of_blocks)
            if (!copies) {
                const int total = (count - int(blockIdx.x) + int(gridDim.x) - 1) / int(gridDim.x) * steps;
                const auto place = [&](int number, int& step, int& row, int& columns) {
                    int tile_row, tile_col;
                    places.place(int(blockIdx.x) + number / steps * int(gridDim.x), tile_row, tile_col);
                    step = number % steps, row = tile_row * BM, columns = tile_col * TILE::bn / 128;
                };
                bring_scales<BM, ST, BLOCKS>(scales, total, out, scales_of, full, empty, place);
            }
    } else {
        ptx::take_registers<232>();
        const int thread = threadIdx.x % 128;
        typename TILE::Ring ring = {staging + threadIdx.x / 32 * TILE::warp_staging};
        // Starts to multiply the next step's tiles; the stage that they lie in.
        [[maybe_unused]] SplitRows split(int(threadIdx.x) / 32 * 16);
        const auto issue = [&](float(&to)[COUNT], bool add) {
            ptx::barrier_wait(full + 8 * stage, parity);
            const unsigned a = tiles + stage * TILE::stage_bytes;
            if constexpr (TILE::split)
                split.multiply(to, a, a + TILE::a_bytes);
            else
                multiply_step(to, a + group * 64 * BK, a + TILE::a_bytes, add);
            const int used = stage;
            advance();
            return used;
        };
        const auto release = [&](int used) {
            if (thread % RELEASE_EVERY == 0) ptx::barrier_arrive(empty + 8 * used);
        };
        for (int index = int(blockIdx.x); index < count; index += int(gridDim.x)) {
            // Every other tile of 192 columns begins in the middle of a block.
            [[maybe_unused]] bool in_middle = false;
            if constexpr (BLOCKS == 2 && SCALES::of_blocks) {
                int tile_row, tile_col;
                places.place(index, tile_row, tile_col);
                in_middle = tile_col % 2 != 0;
            }
            if constexpr (SCALES::of_rows) {
                int tile_row, tile_col;
                places.place(index, tile_row, tile_col);
                fetch_scales<TILE::bn>(scales, out, tile_col * TILE::bn);
            }
            float sums[COUNT];
#pragma unroll
            for (int i = 0; i < COUNT; ++i) sums[i] = 0.0f;
            if constexpr (TILE::split) split.clear();
            if constexpr (SCALES::promoted) {
                // What part holds is added to the sums; `more`: the latest step is multiplied into another.
                const auto add = [&](float(&part)[COUNT], int used, bool more) {
                    // Of 64 columns each, read while the tensor cores are at work: an answer takes long then.
                    [[maybe_unused]] float above[3], below[3];
                    if constexpr (SCALES::of_blocks) {
                        const float* const scale =
                            scales_of + (used * BM + group * 64 + thread / 32 * 16 + thread % 32 / 4) * BLOCKS;
                        above[0] = above[1] = above[2] = scale[0], below[0] = below[1] = below[2] = scale[8 * BLOCKS];
                        if constexpr (BLOCKS == 2) {
                            above[2] = scale[1], below[2] = scale[8 * BLOCKS + 1];
                            // An index that is chosen at run time would put the arrays into memory.
                            above[1] = in_middle ? above[2] : above[0], below[1] = in_middle ? below[2] : below[0];
                        }
                    }
                    if (more)
                        ptx::wgmma_wait<1>();
                    else
                        ptx::wgmma_wait<0>();
                    ptx::pin(part);
                    if constexpr (TILE::split) split.pin();
                    release(used);
#pragma unroll
                    for (int i = 0; i < COUNT; ++i)
                        if constexpr (SCALES::of_blocks)
                            sums[i] = fmaf(part[i], i / 2 % 2 ? below[i / 32] : above[i / 32], sums[i]);
                        else
                            sums[i] += part[i];
                };
                float part[TILE::parts][COUNT];
                if constexpr (TILE::parts == 1) {
                    for (int step = 0; step < steps; ++step) {
                        const int used = issue(part[0], false);
                        add(part[0], used, false);
                    }
                } else {
                    // A step is multiplied while the one before it is added.
                    int first = issue(part[0], false), second, left = steps;
                    for (; left > 2; left -= 2) {
                        second = issue(part[1], false);
                        add(part[0], first, true);
                        first = issue(part[0], false);
                        add(part[1], second, true);
                    }
                    if (left == 2) {
                        second = issue(part[1], false);
                        add(part[0], first, true);
                        add(part[1], second, false);
                    } else {
                        add(part[0], first, false);
                    }
                }
            } else {
                int before = issue(sums, true);
                for (int step = 1; step < steps; ++step) {
                    const int used = issue(sums, true);
                    ptx::wgmma_wait<1>();
                    release(before);
                    before = used;
                }
                ptx::wgmma_wait<0>();
                ptx::pin(sums);
                release(before);
            }
            int tile_row, tile_col;
            places.place(index, tile_row, tile_col);
            const int row = tile_row * BM + group * 64 + thread / 32 * 16, col = tile_col * TILE::bn;
            if constexpr (TILE::split) SplitRows::pair_up(sums);
            if constexpr (SCALES::of_rows) scale_sums<Lies>(sums, scales, out, row + Lies::row(), col + Lies::column());
            if (places.bulk)
                store_boxes<T, Lies>(sums, ring, &map_c, row, col, out.alpha);
            else
                store_pairs<T, Lies>(sums, row, col, out);
        }
        ring.drain();
    }
}

template <class T, class TILE>
__global__ void __launch_bounds__(THREADS, 1)
    fp8gemm_promoted(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                     const __grid_constant__ CUtensorMap map_c, Tiles places, int K, gemmprof::Output out) {
    compute_tiles<T, TILE>(map_a, map_a, map_b, map_b, map_c, places, K, out, OneScale());
}

// The same with a scale each of rows and columns, or of blocks.
template <class T, class TILE, class SCALES>
__global__ void __launch_bounds__(THREADS, 1)
    fp8_scaled(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
               const __grid_constant__ CUtensorMap map_c, Tiles places, int K, gemmprof::Output out, SCALES scales) {
    compute_tiles<T, TILE>(map_a, map_a, map_b, map_b, map_c, places, K, out, scales);
}

template <class T, class TILE, class SCALES>
__global__ void __launch_bounds__(THREADS, 1)
    fp8_split(const __grid_constant__ CUtensorMap even_a, const __grid_constant__ CUtensorMap odd_a,
              const __grid_constant__ CUtensorMap even_b, const __grid_constant__ CUtensorMap odd_b,
              const __grid_constant__ CUtensorMap map_c, Tiles places, int K, gemmprof::Output out, SCALES scales) {
    compute_tiles<T, TILE>(even_a, odd_a, even_b, odd_b, map_c, places, K, out, scales);
}

// Of each tile two kernels, by the 16-bit type of C; where that is float32, either does. The first is what large
// problems run. Of each kind: tiles that blocks compute one after the other, then those whose blocks share K.
#define GEMMPROF_KERNELS(X)                                                                                           \
    X(WIDE, fp8gemm_promoted, Wide, shared_bytes, "wide")                                                             \
    X(SQUARE, fp8gemm_promoted, Square, shared_bytes, "128 columns")                                                  \
    X(NARROW, fp8gemm_promoted, Narrow, shared_bytes, "64 columns")                                                   \
    X(BETWEEN, fp8gemm_promoted, Between, shared_bytes, "160 columns")                                                \
    X(WIDER, fp8gemm_promoted, Wider, shared_bytes, "176 columns")                                                    \
    X(LEAN, fp8gemm_promoted, Lean, shared_bytes, "112 columns")                                                      \
    X(LEANER, fp8gemm_promoted, Leaner, shared_bytes, "96 columns")                                                   \
    X(SPLIT_SQUARE, fp8_split, SplitSquare, shared_bytes, "128 columns, split rows", , OneScale)                      \
    X(SPLIT_NARROW, fp8_split, SplitNarrow, shared_bytes, "64 columns, split rows", , OneScale)                       \
    X(SHARED_SQUARE, fp8gemm_shared, Square, needed_bytes, "shared, 128 columns")                                     \
    X(SHARED_NARROW, fp8gemm_shared, Narrow, needed_bytes, "shared, 64 columns")                                      \
    X(SHARED_SLIM, fp8gemm_shared, Slim, needed_bytes, "shared, 32 columns")                                          \
    X(ROWS_WIDE, fp8_scaled, Wide, shared_bytes, "wide, rows scaled", , RowScales)                                    \
    X(ROWS_SQUARE, fp8_scaled, Square, shared_bytes, "128 columns, rows scaled", , RowScales)                         \
    X(ROWS_NARROW, fp8_scaled, Narrow, shared_bytes, "64 columns, rows scaled", , RowScales)                          \
    X(ROWS_BETWEEN, fp8_scaled, Between, shared_bytes, "160 columns, rows scaled", , RowScales)                       \
    X(ROWS_WIDER, fp8_scaled, Wider, shared_bytes, "176 columns, rows scaled", , RowScales)                           \
    X(ROWS_LEAN, fp8_scaled, Lean, shared_bytes, "112 columns, rows scaled", , RowScales)                             \
    X(ROWS_LEANER, fp8_scaled, Leaner, shared_bytes, "96 columns, rows scaled", , RowScales)                          \
    X(ROWS_SPLIT_SQUARE, fp8_split, SplitSquare, shared_bytes, "128 columns, split rows, rows scaled", , RowScales)   \
    X(ROWS_SPLIT_NARROW, fp8_split, SplitNarrow, shared_bytes, "64 columns, split rows, rows scaled", , RowScales)    \
    X(ROWS_SHARED_SQUARE, fp8_scaled_shared, Square, needed_bytes, "shared, 128 columns, rows scaled", , RowScales)   \
    X(ROWS_SHARED_NARROW, fp8_scaled_shared, Narrow, needed_bytes, "shared, 64 columns, rows scaled", , RowScales)    \
    X(ROWS_SHARED_SLIM, fp8_scaled_shared, Slim, needed_bytes, "shared, 32 columns, rows scaled", , RowScales)        \
    X(BLOCKS_WIDE, fp8_scaled, Wide, scaled_bytes, "wide, blocks scaled", , BlockScales)                              \
    X(BLOCKS_SQUARE, fp8_scaled, Blocks, scaled_bytes, "128 columns, blocks scaled", , BlockScales)                   \
    X(BLOCKS_SHARED_NARROW, fp8_scaled_shared, Narrow, shared_scaled_bytes, "shared, 64 columns, blocks scaled", ,    \
      BlockScales)                                                                                                    \
    X(BLOCKS_SHARED_SLIM, fp8_scaled_shared, Slim, shared_scaled_bytes, "shared, 32 columns, blocks scaled", ,        \
      BlockScales)                                                                                                    \
    X(FAST_WHOLE, fp8_scaled, Whole, shared_bytes, "256 columns, fast", , Fast<OneScale>)                             \
    X(FAST_SQUARE, fp8_scaled, Square, shared_bytes, "128 columns, fast", , Fast<OneScale>)                           \
    X(FAST_ROWS_WHOLE, fp8_scaled, Whole, shared_bytes, "256 columns, fast, rows scaled", , Fast<RowScales>)          \
    X(FAST_ROWS_SQUARE, fp8_scaled, Square, shared_bytes, "128 columns, fast, rows scaled", , Fast<RowScales>)

#define GEMMPROF_KERNEL(NAME, ...) NAME,
enum Kernel { GEMMPROF_KERNELS(GEMMPROF_KERNEL) KERNELS };
#undef GEMMPROF_KERNEL

// Each part of the stage is compiled alone, and lists some of the kernels; the first also has the host's code. The types
// are parameters, so that a part has no kernels of others.
template <int PART, class BFLOAT16, class FLOAT16>
void list_kernels(gemmprof::KernelFacts* kernels) {
#define GEMMPROF_KERNEL(NAME, KERNEL, TILE, bytes, name, ...)                                                         \
    if constexpr (NAME % PARTS == PART) {                                                                             \
        const auto first = gemmprof::address(KERNEL<BFLOAT16, TILE __VA_ARGS__>);                                     \
        kernels[2 * NAME] = {"bfloat16, " name, first, THREADS, TILE::bytes};                                         \
        const auto second = gemmprof::address(KERNEL<FLOAT16, TILE __VA_ARGS__>);                                     \
        kernels[2 * NAME + 1] = {"float16, " name, second, THREADS, TILE::bytes};                                     \
    }
    GEMMPROF_KERNELS(GEMMPROF_KERNEL)
#undef GEMMPROF_KERNEL
}

template <>
void list_part<GEMMPROF_PART>(gemmprof::KernelFacts* kernels) {
    list_kernels<GEMMPROF_PART, __nv_bfloat16, __half>(kernels);
}

}  // namespace GEMMPROF_STAGE

// ------------------------------------------------------------------------------------------------------ host code

#if GEMMPROF_PART == 0
#include "../include/clusters.cuh"
#include "fp8_operands.cuh"

namespace GEMMPROF_STAGE {

GEMMPROF_LIST(2 * KERNELS)

// A tile's number is that of its kernel with one scale; those for fast sums come last.
enum { FIRST_SHARED = SHARED_SQUARE, FIRST_FAST = ROWS_WIDE, TILES = FIRST_FAST + 2 };

struct TileFacts {
    int columns;
    double relative_time;  // of a step, on an H200, of tiles that blocks compute one after the other; 0: shared
};
constexpr TileFacts tiles[TILES] = {
    {Wide::bn, 70.0}, {Square::bn, 47.0}, {Narrow::bn, 33.0}, {Between::bn, 61.5}, {Wider::bn, 65.5}, {Lean::bn, 46.0},
    {Leaner::bn, 44.0}, {SplitSquare::bn, 66.0}, {SplitNarrow::bn, 42.0}, {Square::bn, 0.0}, {Narrow::bn, 0.0},
    {Slim::bn, 0.0}, {Whole::bn, 91.0}, {Square::bn, 46.0},
};

constexpr bool splits_rows(int tile) { return tile == SPLIT_SQUARE || tile == SPLIT_NARROW; }
constexpr bool shares_k(int tile) { return tile >= FIRST_SHARED && tile < FIRST_FAST; }

template <class SCALES>
const gemmprof::KernelFacts& kernel_for(const gemmprof::Gemm& g, int tile) {
    int kernel = (SCALES::of_rows ? ROWS_WIDE : 0) + tile;
    if (SCALES::of_blocks) kernel = shares_k(tile) ? BLOCKS_SHARED_NARROW + tile - SHARED_NARROW : BLOCKS_WIDE + tile;
    if (tile >= FIRST_FAST) kernel = (SCALES::of_rows ? FAST_ROWS_WHOLE : FAST_WHOLE) + tile - FIRST_FAST;
    return kernels[2 * kernel + (g.c_dtype == gemmprof::Dtype::kFloat16)];
}

struct Choice {
    int tile = 0;
    int parts = 1;         // blocks of a cluster that share a tile
    bool swapped = false;  // of C's transpose
};

// How many clusters of this size the device holds at a time.
int places_of(int device, int sms, int cluster) {
    static gemmprof::KnownPlaces<gemmprof::MAX_CLUSTER> known;
    return known(kernels[2 * FIRST_SHARED], device, sms, cluster);
}

std::int64_t tiles_of(const gemmprof::Gemm& g, const Choice& choice) {
    const int m = choice.swapped ? g.n : g.m, n = choice.swapped ? g.m : g.n;
    return std::int64_t(gemmprof::ceil_div(m, BM)) * gemmprof::ceil_div(n, tiles[choice.tile].columns);
}

// How many tiles of a column (of a row, where B has A's place) each element of B is read for.
int readers_of_b(const gemmprof::Gemm& g, const Choice& choice) {
    return gemmprof::ceil_div(g.m, choice.swapped ? tiles[choice.tile].columns : BM);
}

// Whether A has fewer rows than a tile.
bool few_rows(const gemmprof::Gemm& g) { return g.m < BM && g.m < g.n; }

// Whether every other row of both operands begins in the middle of a sector. Few rows wait for memory in any case.
// Only by the compiler whose machine code was looked at: ptxas may give registers away that the tensor cores still read.
bool in_mid_sector(const gemmprof::Gemm& g) {
    constexpr bool LOOKED_AT = __CUDACC_VER_MAJOR__ == 13 && __CUDACC_VER_MINOR__ == 0;
    if (!LOOKED_AT) return false;
    const auto half = [](const void* data, std::int64_t ld) {
        return reinterpret_cast<std::uintptr_t>(data) % (2 * SPLIT_BYTES) == 0 && ld % (2 * SPLIT_BYTES) == SPLIT_BYTES;
    };
    return !few_rows(g) && g.m > 1 && g.n > 1 && half(g.a, g.lda) && half(g.b, g.ldb);
}

// Microseconds but for what all have; the constants are from 189 times of every way on an H200 and an H100, and the times
// of 240 products of few rows (docs/fastest_fp8.md). A round takes the time of its steps, all together that of the
// operands on their way from memory: more where they pass L2 as what is read again does, and drive what others wrote
// there out to memory. Of few rows, which are one or two rounds, half of the shorter of both is not hidden, but by the
// smallest tiles.
double expected_time(const gemmprof::Gemm& g, const Choice& choice, int places, double memory) {
    constexpr double STEP = 0.149, STEP_COLUMN = 0.00143, RELATIVE_STEP = 0.00793;
    constexpr double BANDWIDTH = 3.7e6, WRITE_BACK = 0.25;  // bytes a microsecond; a part of what is read
    constexpr double NOT_HIDDEN = 0.5, ORDERED = 0.54, ROUND = 0.57;
    constexpr double SPLIT_ROW = 0.0055;  // that the copy engine takes for a row that begins in the middle of a sector
    constexpr double STORED_ROW = 0.0266, COLUMN = 0.0088, PART = 0.117;
    const TileFacts& tile = tiles[choice.tile];
    const bool shared = shares_k(choice.tile), once = shared && readers_of_b(g, choice) == 1;
    const double rounds = double((tiles_of(g, choice) + places - 1) / places);
    const int steps = gemmprof::ceil_div(gemmprof::ceil_div(g.k, BK), choice.parts);
    const double step = !shared ? RELATIVE_STEP * tile.relative_time
                        : std::max(STEP + STEP_COLUMN * tile.columns,
                                   in_mid_sector(g) ? SPLIT_ROW * (BM + tile.columns) / 2 : 0.0);
    const double bytes = double(g.k) * (double(g.m) + g.n) + 2.0 * g.m * g.n;
    const double computed = rounds * steps * step;
    const double moved = bytes * (once ? 1.0 : 1.0 + WRITE_BACK) / (BANDWIDTH * memory);
    const double not_hidden = few_rows(g) && choice.tile != SHARED_SLIM ? NOT_HIDDEN : 0.0;
    const double time = std::max(computed, moved) + not_hidden * std::min(computed, moved);
    if (!shared) return time + ORDERED;
    const int stored = choice.swapped ? std::min(g.m, tile.columns) : tile.columns;
    return time + rounds * (ROUND + STORED_ROW * stored) + COLUMN * tile.columns +
           (choice.parts > 1 ? PART * choice.parts : 0.0);
}

// Of the tiles that blocks compute one after the other that which ends first, unless sharing is expected to end sooner.
// Few rows have B in A's place where blocks share: rows that are not there would be multiplied, and filled with zeros, as
// if they were (16 x 3456 x 3072: 11.8 us for 15.8). A tile then has all of A's rows, so that B is read once.
// `of_blocks`: with scales of 128 columns, for which those that share K take few rows only.
// `fast`: the tensor cores may keep the sums.
Choice choose(const gemmprof::Gemm& g, int device, int sms, bool of_blocks, bool fast) {
    const double memory = gemmprof::memory_speed(device);
    const bool swapped = few_rows(g), split = !of_blocks && in_mid_sector(g);
    Choice best;
    double least = 1e300;
    for (int tile = 0; tile < TILES; ++tile) {
        if (shares_k(tile) || (of_blocks && tile > SQUARE) || (!fast && tile >= FIRST_FAST)) continue;
        if (splits_rows(tile) != split) continue;
        const double time = swapped ? expected_time(g, {tile}, sms, memory)
                                    : double((tiles_of(g, {tile}) + sms - 1) / sms) * tiles[tile].relative_time;
        if (time < least) best.tile = tile, least = time;
    }
    if (of_blocks && !swapped) return best;
    if (!swapped) least = expected_time(g, best, sms, memory);
    const int most = std::min(gemmprof::MAX_CLUSTER, gemmprof::ceil_div(g.k, BK));
    const int widest = of_blocks ? SHARED_NARROW : SHARED_SQUARE;
    for (int tile = widest; shares_k(tile); ++tile) {
        if (swapped && tile != widest && tiles[tile].columns < g.m) continue;
        for (int parts = 1; parts <= most; ++parts) {
            const Choice choice = {tile, parts, swapped};
            const int places = places_of(device, sms, parts);
            // Nothing of a next tile would hide its stores; but few rows have little to store.
            if (tiles_of(g, choice) > places && !(swapped && parts == 1)) continue;
            const double time = expected_time(g, choice, places, memory);
            if (time < least) least = time, best = choice;
        }
    }
    return best;
}

// A kernel without scales takes no notice of the last parameter.
template <class SCALES>
cudaError_t launch_shared(const gemmprof::Gemm& g, const Choice& choice, const SCALES& scales, cudaStream_t stream) {
    const int columns = tiles[choice.tile].columns, m = choice.swapped ? g.n : g.m, n = choice.swapped ? g.m : g.n;
    CUtensorMap maps[2] = {};
    CUtensorMap &map_a = maps[choice.swapped], &map_b = maps[!choice.swapped];
    if (cudaError_t error = gemmprof::describe(map_a, g.a, g.m, g.k, g.lda, BK, choice.swapped ? columns : BM, 1))
        return error;
    if (cudaError_t error = gemmprof::describe(map_b, g.b, g.n, g.k, g.ldb, BK, choice.swapped ? BM : columns, 1))
        return error;
    const int rows = gemmprof::ceil_div(m, BM), count = rows * gemmprof::ceil_div(n, columns);
    const unsigned blocks = unsigned(count * choice.parts);
    const Sharing sharing = {rows, choice.swapped, count == rows, rows == 1, gemmprof::Divisor::of(rows),
                             gemmprof::Divisor::of(choice.parts),
                             gemmprof::Shares::of(gemmprof::ceil_div(g.k, BK), choice.parts)};
    return gemmprof::launch_kernel(kernel_for<SCALES>(g, choice.tile), blocks, unsigned(choice.parts), stream, maps[0],
                                   maps[1], sharing, gemmprof::output_of(g), scales);
}

template <class SCALES>
cudaError_t launch_ordered(const gemmprof::Gemm& g, int tile, int sms, const SCALES& scales, cudaStream_t stream) {
    const bool bulk = g.c_dtype != gemmprof::Dtype::kFloat32 && g.beta == 0.0f && (g.ldc | g.n) % 8 == 0 &&
                      reinterpret_cast<std::uintptr_t>(g.c) % 16 == 0;
    const int bn = tiles[tile].columns;
    CUtensorMap a[2] = {}, b[2] = {}, c = {};
    // Of every `apart`-th row one, from `first` on.
    const auto rows_of = [&](CUtensorMap& map, const void* data, int rows, std::int64_t ld, int box, int first,
                             int apart) {
        return gemmprof::describe(map, static_cast<const char*>(data) + first * ld, (rows - first + apart - 1) / apart,
                                  g.k, ld * apart, BK, box / apart, 1);
    };
    const int apart = splits_rows(tile) ? 2 : 1;
    for (int first = 0; first < apart; ++first) {
        if (cudaError_t error = rows_of(a[first], g.a, g.m, g.lda, BM, first, apart)) return error;
        if (cudaError_t error = rows_of(b[first], g.b, g.n, g.ldb, bn, first, apart)) return error;
    }
    if (bulk)
        if (cudaError_t error = gemmprof::describe(c, g.c, g.m, g.n, g.ldc, STORE_COLUMNS, 16)) return error;
    const Tiles places = {gemmprof::ceil_div(g.m, BM), gemmprof::ceil_div(g.n, bn), bulk};
    const std::int64_t count = std::int64_t(places.rows) * places.columns;
    const unsigned blocks = unsigned(count < sms ? count : sms);
    const gemmprof::KernelFacts& kernel = kernel_for<SCALES>(g, tile);
    if (splits_rows(tile))
        return gemmprof::launch_kernel(kernel, blocks, 1, stream, a[0], a[1], b[0], b[1], c, places,
                                       g.k + SPLIT_AHEAD, gemmprof::output_of(g), scales);
    return gemmprof::launch_kernel(kernel, blocks, 1, stream, a[0], b[0], c, places, g.k, gemmprof::output_of(g),
                                   scales);
}

template <class SCALES>
cudaError_t launch_scaled(const gemmprof::Gemm& gemm, const SCALES& scales, cudaStream_t stream, bool fast = false) {
    return gemmprof::run_fp8(gemm, stream, [&](const gemmprof::Gemm& g, int device, cudaStream_t on) {
        int sms = 0;
        if (cudaError_t error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return error;
        const Choice choice = choose(g, device, sms, SCALES::of_blocks, fast);
        return shares_k(choice.tile) ? launch_shared(g, choice, scales, on)
                                   : launch_ordered(g, choice.tile, sms, scales, on);
    });
}

cudaError_t launch(const gemmprof::Gemm& gemm, cudaStream_t stream) {
    return launch_scaled(gemm, OneScale(), stream);
}

}  // namespace GEMMPROF_STAGE

GEMMPROF_EXPORT_STAGE(launch, kernels)

// Products with a scale for each row and column (none where there is no `a`), or for each block of 128; distances in
// elements. `fast`: the tensor cores may keep the sums (kernels/scaled.py).
extern "C" int GEMMPROF_PASTE(gemmprof_rows_scaled_, GEMMPROF_STAGE)(const gemmprof::Gemm* gemm, const float* a,
                                                                    std::int64_t a_row, const float* b,
                                                                    std::int64_t b_column, int fast, void* stream) {
    using namespace GEMMPROF_STAGE;
    const auto on = static_cast<cudaStream_t>(stream);
    if (a == nullptr) return int(launch_scaled(*gemm, OneScale(), on, fast));
    return int(launch_scaled(*gemm, RowScales{a, b, a_row, b_column}, on, fast));
}

extern "C" int GEMMPROF_PASTE(gemmprof_blocks_scaled_, GEMMPROF_STAGE)(const gemmprof::Gemm* gemm, const float* a,
                                                                      std::int64_t a_row, std::int64_t a_step,
                                                                      const float* b, std::int64_t b_step,
                                                                      std::int64_t b_column, void* stream) {
    using namespace GEMMPROF_STAGE;
    return int(launch_scaled(*gemm, BlockScales{a, b, a_row, a_step, b_step, b_column},
                             static_cast<cudaStream_t>(stream)));
}
#endif
