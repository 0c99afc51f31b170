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
// 4. Where a row of K begins within a line of L2, to ask for rows takes longer than to multiply them: then blocks of a
//    cluster, whose tiles lie below each other, each copy a part of B for all.
// 5. Few tiles: the blocks of a cluster share one, and where A has few rows, B takes its place (fp8_shared.cuh).
#include <algorithm>
#include <type_traits>

#include "../include/kernel_list.cuh"
#include "fp8_shared.cuh"
#include "fp8_tiles.cuh"

// The build compiles the kernels in so many parts side by side.
constexpr int PARTS = 6;

static_assert(BM == 128, "BM must be 128: two consumer warpgroups multiply 64 rows each");
static_assert(BN == 64 || BN == 128 || BN == 192, "BN must be 64, 128 or 192: a sum and its part fit the registers");
static_assert(GROUP >= 1, "GROUP must be at least 1: rows of tiles that are walked together");
static_assert(STAGES >= 3, "STAGES must be at least 3: one is multiplied, one is waited for, one is being copied");
static_assert(STAGES * BK * (BM + BN) + 1024 + 16 * STAGES + 16384 <= SHARED_LIMIT,
              "STAGES tiles and what is being stored must fit 227 KiB of shared memory");

namespace GEMMPROF_STAGE {

// Tiles of C, or clusters of them: `rows` below each other, `columns` side by side.
struct Tiles {
    int rows, columns;
    int last_row, last_col;  // where the last tiles begin
    bool bulk;               // the copy engine stores C

    // Where a block's tile of the index-th begins: down a band of GROUP rows, then the next column of the band.
    template <class TILE>
    __device__ __forceinline__ void place(int index, int rank, int& row, int& col) const {
        const int band = index / (GROUP * columns), first = band * GROUP;
        const int height = min(GROUP, rows - first), within = index - first * columns;
        row = min(((first + within % height) * TILE::pair + rank) * BM, last_row);
        col = min(within / height * TILE::bn, last_col);
    }
};

template <class T, class TILE, class SCALES>
__device__ __forceinline__ void compute_tiles(const CUtensorMap& map_a, const CUtensorMap& map_b,
                                              const CUtensorMap& map_c, const Tiles& places, int K,
                                              const gemmprof::Output& out, const SCALES& scales) {
    constexpr int ST = TILE::stages, COUNT = TILE::bn / 2, BLOCKS = TILE::blocks, PAIR = TILE::pair;
    static_assert(PAIR == 1 || !SCALES::of_blocks, "a block brings scales for itself only");
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
    // That are asked for before the block meets; blocks that copy for each other have to meet first.
    const int ahead = PAIR > 1 ? 0 : min(ST, steps);
    const int rank = PAIR > 1 ? int(ptx::cluster_rank()) : 0;
    const int begin = int(blockIdx.x) / PAIR, stride = int(gridDim.x) / PAIR;
    const auto place = [&](int index, int& row, int& col) { places.place<TILE>(index, rank, row, col); };
    const auto copy = [&](int step, int to, int row, int col) {
        const unsigned tile = tiles + to * TILE::stage_bytes, barrier = full + 8 * to;
        ptx::barrier_expect(barrier, TILE::stage_bytes);
        ptx::copy_box(tile, &map_a, step * BK, row, barrier);
        constexpr int EACH = TILE::bn / PAIR;
        const unsigned b = tile + TILE::a_bytes + rank * EACH * BK;
        const int column = col + rank * EACH;
        if constexpr (PAIR == 1)
            ptx::copy_box(b, &map_b, step * BK, column, barrier);
        else
            ptx::copy_box_to(b, &map_b, step * BK, column, barrier, (1 << PAIR) - 1);
    };

    if (copies && ptx::elect_one()) {
        ptx::prefetch_map(&map_a);
        ptx::prefetch_map(&map_b);
        if (places.bulk) ptx::prefetch_map(&map_c);
        for (int stage = 0; stage < ST; ++stage) {
            ptx::barrier_init(full + 8 * stage, SCALES::of_blocks ? 2 : 1);  // the tiles, and their scales
            ptx::barrier_init(empty + 8 * stage, PAIR * CONSUMERS * 128 / RELEASE_EVERY);
        }
        ptx::barrier_init_fence();
        ptx::fence_async_proxy();
        int row, col;
        place(begin, row, col);
#pragma unroll 1
        for (int step = 0; step < ahead; ++step) copy(step, step, row, col);
    }
    __syncwarp();
    if constexpr (PAIR == 1)
        __syncthreads();
    else
        ptx::cluster_sync();

    int stage = 0, parity = 0;
    const auto advance = [&] {
        if (++stage == ST) stage = 0, parity ^= 1;
    };
    if (group == CONSUMERS) {
        ptx::give_registers<40>();
        if (copies && ptx::elect_one()) {
            stage = ahead % ST, parity = ahead == ST;
            for (int index = begin; index < count; index += stride) {
                int row, col;
                place(index, row, col);
#pragma unroll 1
                for (int step = index == begin ? ahead : 0; step < steps; ++step, advance()) {
                    ptx::barrier_wait(empty + 8 * stage, parity ^ 1);
                    copy(step, stage, row, col);
                }
            }
        }
        if constexpr (SCALES::of_blocks)
            if (!copies) {
                const int total = (count - int(blockIdx.x) + int(gridDim.x) - 1) / int(gridDim.x) * steps;
                const auto place_of = [&](int number, int& step, int& row, int& columns) {
                    int col;
                    place(begin + number / steps * stride, row, col);
                    step = number % steps, columns = col / 128;
                };
                bring_scales<BM, ST, BLOCKS>(scales, total, out, scales_of, full, empty, place_of);
            }
    } else {
        ptx::take_registers<232>();
        const int thread = threadIdx.x % 128;
        typename TILE::Ring ring = {staging + threadIdx.x / 32 * TILE::warp_staging};
        // Starts to multiply the next step's tiles; the stage that they lie in.
        const auto issue = [&](float(&to)[COUNT], bool add) {
            ptx::barrier_wait(full + 8 * stage, parity);
            const unsigned a = tiles + stage * TILE::stage_bytes;
            multiply_step(to, a + group * 64 * BK, a + TILE::a_bytes, add);
            const int used = stage;
            advance();
            return used;
        };
        const auto release = [&](int used) {
            if constexpr (PAIR == 1) {
                if (thread % RELEASE_EVERY == 0) ptx::barrier_arrive(empty + 8 * used);
            } else {
                if (thread < PAIR) ptx::barrier_arrive_at(empty + 8 * used, unsigned(thread));
            }
        };
        for (int index = begin; index < count; index += stride) {
            // Every other tile of 192 columns begins in the middle of a block.
            [[maybe_unused]] bool in_middle = false;
            if constexpr (BLOCKS == 2 && SCALES::of_blocks) {
                int row, col;
                place(index, row, col);
                in_middle = col % 128 != 0;
            }
            if constexpr (SCALES::of_rows) {
                int row, col;
                place(index, row, col);
                fetch_scales<TILE::bn>(scales, out, col);
            }
            float sums[COUNT];
#pragma unroll
            for (int i = 0; i < COUNT; ++i) sums[i] = 0.0f;
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
                    release(used);
#pragma unroll
                    for (int i = 0; i < COUNT; ++i)
                        if constexpr (SCALES::of_blocks)
                            sums[i] = fmaf(part[i], i / 2 % 2 ? below[i / 32] : above[i / 32], sums[i]);
                        else
                            sums[i] += part[i];
                };
                add_steps<TILE::parts, COUNT>(steps, [&](float(&part)[COUNT]) { return issue(part, false); }, add);
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
            int row, col;
            place(index, row, col);
            row += group * 64 + thread / 32 * 16;  // this warp's first
            if constexpr (SCALES::of_rows)
                scale_sums(sums, scales, out, row + thread % 32 / 4, col + thread % 4 * 2);
            if (places.bulk)
                store_boxes<T>(sums, ring, &map_c, row, col, out.alpha);
            else
                store_pairs<T>(sums, row, col, out);
        }
        ring.drain();
    }
    if constexpr (PAIR > 1) {
        __syncwarp();
        ptx::cluster_meet();  // no block leaves while another may still arrive at its barriers
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

// Of each tile two kernels, by the 16-bit type of C; where that is float32, either does. The first is what large
// problems run. Of each kind: tiles that blocks compute one after the other, then those whose blocks share K, with a
// scale each of rows and columns or without.
#define GEMMPROF_KERNELS(X)                                                                                           \
    X(WIDE, fp8gemm_promoted, Wide, shared_bytes, "wide")                                                             \
    X(SQUARE, fp8gemm_promoted, Square, shared_bytes, "128 columns")                                                  \
    X(NARROW, fp8gemm_promoted, Narrow, shared_bytes, "64 columns")                                                   \
    X(BETWEEN, fp8gemm_promoted, Between, shared_bytes, "160 columns")                                                \
    X(WIDER, fp8gemm_promoted, Wider, shared_bytes, "176 columns")                                                    \
    X(LEAN, fp8gemm_promoted, Lean, shared_bytes, "112 columns")                                                      \
    X(LEANER, fp8gemm_promoted, Leaner, shared_bytes, "96 columns")                                                   \
    X(WIDE_PAIR, fp8gemm_promoted, WidePair, shared_bytes, "wide, pairs")                                             \
    X(WIDE_QUAD, fp8gemm_promoted, WideQuad, shared_bytes, "wide, fours")                                             \
    X(SQUARE_QUAD, fp8gemm_promoted, SquareQuad, shared_bytes, "128 columns, fours")                                  \
    X(SHARED_WIDE, fp8gemm_shared, Wide, sharing_bytes, "shared, 192 columns", , RowScales)                           \
    X(SHARED_BETWEEN, fp8gemm_shared, Between, sharing_bytes, "shared, 160 columns", , RowScales)                     \
    X(SHARED_SQUARE, fp8gemm_shared, Square, sharing_bytes, "shared, 128 columns", , RowScales)                       \
    X(SHARED_LEANER, fp8gemm_shared, Leaner, sharing_bytes, "shared, 96 columns", , RowScales)                        \
    X(SHARED_NARROW, fp8gemm_shared, Narrow, sharing_bytes, "shared, 64 columns", , RowScales)                        \
    X(SHARED_SLIM, fp8gemm_shared, Slim, sharing_bytes, "shared, 32 columns", , RowScales)                            \
    X(ROWS_WIDE, fp8_scaled, Wide, shared_bytes, "wide, rows scaled", , RowScales)                                    \
    X(ROWS_SQUARE, fp8_scaled, Square, shared_bytes, "128 columns, rows scaled", , RowScales)                         \
    X(ROWS_NARROW, fp8_scaled, Narrow, shared_bytes, "64 columns, rows scaled", , RowScales)                          \
    X(ROWS_BETWEEN, fp8_scaled, Between, shared_bytes, "160 columns, rows scaled", , RowScales)                       \
    X(ROWS_WIDER, fp8_scaled, Wider, shared_bytes, "176 columns, rows scaled", , RowScales)                           \
    X(ROWS_LEAN, fp8_scaled, Lean, shared_bytes, "112 columns, rows scaled", , RowScales)                             \
    X(ROWS_LEANER, fp8_scaled, Leaner, shared_bytes, "96 columns, rows scaled", , RowScales)                          \
    X(ROWS_WIDE_PAIR, fp8_scaled, WidePair, shared_bytes, "wide, pairs, rows scaled", , RowScales)                    \
    X(ROWS_WIDE_QUAD, fp8_scaled, WideQuad, shared_bytes, "wide, fours, rows scaled", , RowScales)                    \
    X(ROWS_SQUARE_QUAD, fp8_scaled, SquareQuad, shared_bytes, "128 columns, fours, rows scaled", , RowScales)         \
    X(BLOCKS_WIDE, fp8_scaled, Wide, scaled_bytes, "wide, blocks scaled", , BlockScales)                              \
    X(BLOCKS_SQUARE, fp8_scaled, Blocks, scaled_bytes, "128 columns, blocks scaled", , BlockScales)                   \
    X(BLOCKS_SHARED_NARROW, fp8gemm_shared, Narrow, sharing_scaled_bytes, "shared, 64 columns, blocks scaled", ,      \
      BlockScales)                                                                                                    \
    X(BLOCKS_SHARED_SLIM, fp8gemm_shared, Slim, sharing_scaled_bytes, "shared, 32 columns, blocks scaled", ,          \
      BlockScales)                                                                                                    \
    X(FAST_WHOLE, fp8_scaled, Whole, shared_bytes, "256 columns, fast", , Fast<OneScale>)                             \
    X(FAST_SQUARE, fp8_scaled, Square, shared_bytes, "128 columns, fast", , Fast<OneScale>)                           \
    X(FAST_WHOLE_PAIR, fp8_scaled, WholePair, shared_bytes, "256 columns, pairs, fast", , Fast<OneScale>)             \
    X(FAST_ROWS_WHOLE, fp8_scaled, Whole, shared_bytes, "256 columns, fast, rows scaled", , Fast<RowScales>)          \
    X(FAST_ROWS_SQUARE, fp8_scaled, Square, shared_bytes, "128 columns, fast, rows scaled", , Fast<RowScales>)        \
    X(FAST_ROWS_WHOLE_PAIR, fp8_scaled, WholePair, shared_bytes, "256 columns, pairs, fast, rows scaled", ,           \
      Fast<RowScales>)

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
#include "../include/remembered.cuh"
#include "fp8_operands.cuh"

namespace GEMMPROF_STAGE {

GEMMPROF_LIST(2 * KERNELS)

// A tile's number is that of its kernel with one scale; those for fast sums come last.
enum { FIRST_SHARED = SHARED_WIDE, FIRST_FAST = ROWS_WIDE, TILES = FIRST_FAST + 3 };

struct TileFacts {
    int columns;
    double relative_time;  // of a step, on an H200, of tiles that blocks compute one after the other; 0: shared
    int pair = 1;          // blocks that copy B for each other
};
constexpr TileFacts tiles[TILES] = {
    {Wide::bn, 70.0}, {Square::bn, 47.0}, {Narrow::bn, 33.0}, {Between::bn, 61.5}, {Wider::bn, 65.5}, {Lean::bn, 46.0},
    {Leaner::bn, 44.0}, {WidePair::bn, 70.0, 2}, {WideQuad::bn, 70.0, 4}, {SquareQuad::bn, 47.0, 4}, {Wide::bn, 0.0},
    {Between::bn, 0.0}, {Square::bn, 0.0}, {Leaner::bn, 0.0}, {Narrow::bn, 0.0}, {Slim::bn, 0.0}, {Whole::bn, 91.0},
    {Square::bn, 46.0}, {WholePair::bn, 91.0, 2},
};

constexpr bool shares_k(int tile) { return tile >= FIRST_SHARED && tile < FIRST_FAST; }

template <class SCALES>
const gemmprof::KernelFacts& kernel_for(const gemmprof::Gemm& g, int tile) {
    int kernel = (SCALES::of_rows ? ROWS_WIDE : SCALES::of_blocks ? BLOCKS_WIDE : 0) + tile;
    if (shares_k(tile)) kernel = tile + (SCALES::of_blocks ? BLOCKS_SHARED_NARROW - SHARED_NARROW : 0);
    if (tile >= FIRST_FAST) kernel = (SCALES::of_rows ? FAST_ROWS_WHOLE : FAST_WHOLE) + tile - FIRST_FAST;
    return kernels[2 * kernel + (g.c_dtype == gemmprof::Dtype::kFloat16)];
}

struct Choice {
    int tile = 0;
    int parts = 1;         // blocks of a cluster that share a tile
    bool swapped = false;  // B has A's place
};

// How many clusters of this size the device holds at a time.
int places_of(int device, int sms, int cluster) {
    static gemmprof::KnownPlaces<gemmprof::MAX_CLUSTER> known;
    return known(kernels[2 * FIRST_SHARED], device, sms, cluster);
}

// How many tiles, or clusters of them, C has.
std::int64_t tiles_of(const gemmprof::Gemm& g, const Choice& choice) {
    const int m = choice.swapped ? g.n : g.m, n = choice.swapped ? g.m : g.n;
    const TileFacts& tile = tiles[choice.tile];
    return std::int64_t(gemmprof::ceil_div(m, BM * tile.pair)) * gemmprof::ceil_div(n, tile.columns);
}

// How many tiles of a column (of a row, where B has A's place) each element of B is read for.
int readers_of_b(const gemmprof::Gemm& g, const Choice& choice) {
    return gemmprof::ceil_div(g.m, choice.swapped ? tiles[choice.tile].columns : BM);
}

// Whether A has fewer rows than a tile.
bool few_rows(const gemmprof::Gemm& g) { return g.m < BM && g.m < g.n; }

// Microseconds to ask for a row of 128 bytes of an operand, where that is not hidden: where it lies in two lines of L2, and
// longer where it begins in the middle of a sector.
double row_time(const void* data, std::int64_t ld) {
    constexpr double ROW = 0.00125, BEYOND_LINE = 0.00088, MID_SECTOR = 0.00187;
    const auto from = std::int64_t(reinterpret_cast<std::uintptr_t>(data) % 128), apart = ld % 128;
    const double beyond = apart != 0 ? 1.0 - double(apart & -apart) / 128 : from != 0 ? 1.0 : 0.0;
    const double split = apart % 32 != 0 ? 0.5 : from % 32 != 0 ? 1.0 : 0.0;
    return beyond == 0.0 ? 0.0 : ROW + BEYOND_LINE * beyond + MID_SECTOR * split;
}

// Microseconds that a step takes, or in which its rows are asked for, if that is longer: by 61,000 times of all ways on
// an H100, and 50,000 where blocks share tiles (docs/fastest_fp8.md); shorter where few blocks ask. Few rows wait for
// memory in any case. Blocks that share a tile fetch different parts of K: the more of them, the longer.
double step_time(const gemmprof::Gemm& g, const Choice& choice, int places, int sms) {
    constexpr double STEP = 0.0562, STEP_COLUMN = 0.00137, BUSY = 0.344, RELATIVE_STEP = 0.00793, FEW_ASK = 0.446;
    const TileFacts& tile = tiles[choice.tile];
    const std::int64_t count = tiles_of(g, choice), rounds = (count + places - 1) / places;
    const double busy = double((count + rounds - 1) / rounds) * choice.parts * tile.pair / sms;
    const double step = shares_k(choice.tile)
                            ? STEP + STEP_COLUMN * tile.columns + BUSY * busy * (BM + tile.columns) / (2 * BM)
                            : RELATIVE_STEP * tile.relative_time;
    if (few_rows(g)) return step;
    const double rows = BM * row_time(g.a, g.lda) + double(tile.columns) / tile.pair * row_time(g.b, g.ldb);
    return std::max(step, rows * (1.0 - FEW_ASK * (1.0 - busy)));
}

// Microseconds until blocks that copy for each other have met.
constexpr double meeting_time(int tile) { return tiles[tile].pair > 1 ? 2.0 : 0.0; }

// Microseconds that a tile's steps take, of tiles that blocks compute one after the other.
double steps_time(const gemmprof::Gemm& g, int tile, int places, int sms) {
    const std::int64_t rounds = (tiles_of(g, {tile}) + places - 1) / places;
    return double(rounds) * gemmprof::ceil_div(g.k, BK) * step_time(g, {tile}, places, sms) + meeting_time(tile);
}

// Microseconds but for what all have; the constants are from 189 times of every way on an H200 and an H100, the times of
// 240 products of few rows, and those of step_time (docs/fastest_fp8.md). A round takes the time of its steps, all
// together that of the operands on their way from memory: more where they pass L2 as what is read again does, and drive
// what others wrote there out to memory. Half of the shorter of both is not hidden: it is one or two rounds.
double expected_time(const gemmprof::Gemm& g, const Choice& choice, int places, int sms, double memory) {
    constexpr double BANDWIDTH = 3.7e6, WRITE_BACK = 0.25;  // bytes a microsecond; a part of what is read
    constexpr double NOT_HIDDEN = 0.5, ORDERED = 0.355, ROUND = 0.068;
    constexpr double STORED_ROW = 0.0222, COLUMN = 0.0187, PART = 0.179;
    const TileFacts& tile = tiles[choice.tile];
    const bool shared = shares_k(choice.tile), once = shared && readers_of_b(g, choice) == 1;
    const double rounds = double((tiles_of(g, choice) + places - 1) / places);
    const int steps = gemmprof::ceil_div(gemmprof::ceil_div(g.k, BK), choice.parts);
    const double bytes = double(g.k) * (double(g.m) + g.n) + 2.0 * g.m * g.n;
    const double computed = rounds * steps * step_time(g, choice, places, sms);
    const double moved = bytes * (once ? 1.0 : 1.0 + WRITE_BACK) / (BANDWIDTH * memory);
    const double time = std::max(computed, moved) + NOT_HIDDEN * std::min(computed, moved);
    if (!shared) return time + ORDERED + meeting_time(choice.tile);
    const int stored = choice.swapped ? std::min(g.m, tile.columns) : tile.columns;
    return time + rounds * (ROUND + STORED_ROW * stored) + COLUMN * tile.columns +
           (choice.parts > 1 ? PART * choice.parts : 0.0);
}

// Of the tiles that blocks compute one after the other that which ends first, unless sharing is expected to end sooner.
// Either operand may be A there, but few rows always have B in A's place: rows that are not there would be multiplied,
// and filled with zeros, as if they were (16 x 3456 x 3072: 11.8 us for 15.8). A tile then has all of A's rows, so that
// B is read once.
// `of_blocks`: with scales of 128 columns, for which those that share K take few rows only.
// `fast`: the tensor cores may keep the sums.
Choice choose(const gemmprof::Gemm& g, int device, int sms, bool of_blocks, bool fast) {
    const double memory = gemmprof::memory_speed(device);
    const bool few = few_rows(g);
    Choice best;
    double least = 1e300;
    for (int tile = 0; tile < TILES; ++tile) {
        if (shares_k(tile) || (of_blocks && tile > SQUARE) || (!fast && tile >= FIRST_FAST)) continue;
        const int places = places_of(device, sms, tiles[tile].pair);
        const double time = few ? expected_time(g, {tile}, places, sms, memory) : steps_time(g, tile, places, sms);
        if (time < least) best.tile = tile, least = time;
    }
    if (of_blocks && !few) return best;
    if (!few) least = expected_time(g, best, places_of(device, sms, tiles[best.tile].pair), sms, memory);
    const int most = std::min(gemmprof::MAX_CLUSTER, gemmprof::ceil_div(g.k, BK));
    const int widest = of_blocks ? SHARED_NARROW : few ? SHARED_SQUARE : SHARED_WIDE;
    for (int tile = widest; shares_k(tile); ++tile) {
        if (few && tile != widest && tiles[tile].columns < g.m) continue;
        for (int parts = 1; parts <= most; ++parts) {
            const int places = places_of(device, sms, parts);
            for (int swapped = few; swapped <= 1; ++swapped) {
                const Choice choice = {tile, parts, swapped == 1};
                // Nothing of a next tile would hide its stores; but few rows have little to store.
                if (tiles_of(g, choice) > places && !(few && parts == 1)) continue;
                const double time = expected_time(g, choice, places, sms, memory);
                if (time < least) least = time, best = choice;
            }
        }
    }
    return best;
}

// Where the last tile of so many elements begins: so far in that it is full. Beside the edge of C it would ask for fewer
// rows, run ahead of the tiles that read the same operand, and L2 would be asked for that more than once: such products
// took up to half as long again. Two tiles store the same bits where they overlap, which is right where C is not read.
// In eights, as elements of a row are stored.
template <class SCALES>
int last_begin(const gemmprof::Gemm& g, int extent, int of_tile) {
    if (SCALES::of_blocks || g.beta != 0.0f) return extent;
    return std::max(0, gemmprof::ceil_div(extent - of_tile, 8) * 8);
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
    const Sharing sharing = {rows, last_begin<SCALES>(g, m, BM), last_begin<SCALES>(g, n, columns), choice.swapped,
                             count == rows, rows == 1, gemmprof::Divisor::of(rows), gemmprof::Divisor::of(choice.parts),
                             gemmprof::Shares::of(gemmprof::ceil_div(g.k, BK), choice.parts)};
    return gemmprof::launch_kernel(kernel_for<SCALES>(g, choice.tile), blocks, unsigned(choice.parts), stream, maps[0],
                                   maps[1], sharing, gemmprof::output_of(g), scales);
}

template <class SCALES>
cudaError_t launch_ordered(const gemmprof::Gemm& g, int tile, int device, int sms, const SCALES& scales,
                           cudaStream_t stream) {
    const bool bulk = g.c_dtype != gemmprof::Dtype::kFloat32 && g.beta == 0.0f && (g.ldc | g.n) % 8 == 0 &&
                      reinterpret_cast<std::uintptr_t>(g.c) % 16 == 0;
    const int bn = tiles[tile].columns, pair = tiles[tile].pair;
    CUtensorMap maps[3] = {};
    if (cudaError_t error = gemmprof::describe(maps[0], g.a, g.m, g.k, g.lda, BK, BM, 1)) return error;
    if (cudaError_t error = gemmprof::describe(maps[1], g.b, g.n, g.k, g.ldb, BK, bn / pair, 1)) return error;
    if (bulk)
        if (cudaError_t error = gemmprof::describe(maps[2], g.c, g.m, g.n, g.ldc, STORE_COLUMNS, 16)) return error;
    const Tiles places = {gemmprof::ceil_div(g.m, BM * pair), gemmprof::ceil_div(g.n, bn),
                          last_begin<SCALES>(g, g.m, BM), last_begin<SCALES>(g, g.n, bn), bulk};
    const std::int64_t count = std::int64_t(places.rows) * places.columns;
    const unsigned clusters = unsigned(std::min<std::int64_t>(count, places_of(device, sms, pair)));
    return gemmprof::launch_kernel(kernel_for<SCALES>(g, tile), clusters * pair, unsigned(pair), stream, maps[0],
                                   maps[1], maps[2], places, g.k, gemmprof::output_of(g), scales);
}

template <class SCALES>
cudaError_t launch_scaled(const gemmprof::Gemm& gemm, const SCALES& scales, cudaStream_t stream, bool fast = false) {
    return gemmprof::run_fp8(gemm, stream, [&](const gemmprof::Gemm& g, int device, cudaStream_t on) {
        int sms = 0;
        if (cudaError_t error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device)) return error;
        const Choice choice = gemmprof::remembered(gemmprof::question(g, device, SCALES::of_blocks << 1 | fast), [&] {
            return choose(g, device, sms, SCALES::of_blocks, fast);
        });
        if (!shares_k(choice.tile)) return launch_ordered(g, choice.tile, device, sms, scales, on);
        if constexpr (SCALES::of_blocks || SCALES::of_rows)
            return launch_shared(g, choice, scales, on);
        else
            return launch_shared(g, choice, RowScales(), on);
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
