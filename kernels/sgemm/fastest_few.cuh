// Stage 13: few rows of A, or few columns of B, as fast as the larger operand comes from memory.
//
// Tiles would multiply mostly nothing there. Warps load the larger operand straight into registers, two steps ahead, and
// share K, with those of the other blocks of a cluster. Their sums are added in one order: the same result every time.
// WIDTH: floats that move as one access, 4 where rows begin at multiples of 16 bytes and end there, else 1.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>

#include "fastest_schedule.cuh"
#include "gemm.cuh"
#include "shared_k.cuh"

namespace GEMMPROF_STAGE {

namespace few {

constexpr int FEW_WARPS = 8;
constexpr int FEW_THREADS = FEW_WARPS * 32;
constexpr int MOST_ROWS = 8;
constexpr int ALWAYS_ROWS = 4;  // more read A so often that only a short K gains
constexpr int LONG_K = 1024;
constexpr int MOST_COLUMNS = 8;
constexpr int WARP_ROWS = 4;         // that a warp computes where B has few columns
constexpr int BLOCK_ROWS = FEW_WARPS * WARP_ROWS;
constexpr int SLICE = 256;           // of K, whose part of B a block has in shared memory: an element a thread and column

struct Problem {
    const float *a, *b;
    std::int64_t lda, ldb;
    float* c;
    std::int64_t ldc;
    int m, n, k;
    float alpha, beta;
};

// Four floats that nobody reads again, APART if they do not move as one; 0 for those beyond `count`.
template <int WIDTH, int APART>
__device__ __forceinline__ float4 load_four(const float* from, int count) {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if constexpr (WIDTH == 4) {
        if (count > 0) v = __ldcs(reinterpret_cast<const float4*>(from));
    } else {
        if (count > 0) v.x = __ldcs(from);
        if (count > APART) v.y = __ldcs(from + APART);
        if (count > 2 * APART) v.z = __ldcs(from + 2 * APART);
        if (count > 3 * APART) v.w = __ldcs(from + 3 * APART);
    }
    return v;
}

// Four neighbours that others read, too; 0 for those beyond `count`.
template <int WIDTH>
__device__ __forceinline__ float4 load_along(const float* from, int count) {
    if (WIDTH == 4 && count >= 4) return __ldg(reinterpret_cast<const float4*>(from));
    return make_float4(count > 0 ? __ldg(from) : 0.0f, count > 1 ? __ldg(from + 1) : 0.0f,
                       count > 2 ? __ldg(from + 2) : 0.0f, count > 3 ? __ldg(from + 3) : 0.0f);
}

__device__ __forceinline__ float element(const float4& v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// Adds up the `count` sums of each block of the cluster; `store(i, sum)` is called once for each.
template <class Store>
__device__ __forceinline__ void add_up_blocks(float* partial, int count, int parts, int part, const Store& store) {
    gemmprof::add_up_blocks<FEW_THREADS>(partial, count, parts, part, [](int i) { return i; }, store);
}

// The same where each warp has its own.
template <class Store>
__device__ __forceinline__ void add_up(float* partial, int count, int parts, int part, const Store& store) {
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += FEW_THREADS) {
        float sum = 0.0f;
#pragma unroll
        for (int warp = 0; warp < FEW_WARPS; ++warp) sum += partial[warp * count + i];
        partial[i] = sum;  // the first warp's, which only this thread has read there
    }
    __syncthreads();
    add_up_blocks(partial, count, parts, part, store);
}

// A has at most ROWS rows. LANES of a warp lie along a row of B, the others below them; each takes DEPTH of K a step.
template <int ROWS, int WIDTH, int LANES>
__global__ void __launch_bounds__(FEW_THREADS, ROWS <= 4 ? 2 : 1) few_rows(Problem p) {
#if __CUDA_ARCH__ >= TENSOR_COPIES_FROM  // never launched before
    constexpr int DEPTH = 8, STEP = DEPTH * 32 / LANES, COLUMNS = 4 * LANES, COUNT = ROWS * COLUMNS;
    __shared__ float partial[FEW_WARPS * COUNT];
    const int along = threadIdx.x % LANES, below = threadIdx.x % 32 / LANES, warp = threadIdx.x / 32;
    const int parts = int(gemmprof::ptx::cluster_size()), part = int(gemmprof::ptx::cluster_rank());
    const int first_column = int(blockIdx.x) / parts * COLUMNS;
    const int column = first_column + along * WIDTH, inside = p.n - column;

    struct Fragments {
        float4 b[DEPTH];
    };
    const auto load = [&](Fragments& to, int step) {
#pragma unroll
        for (int i = 0; i < DEPTH; ++i) {
            const int k = step * STEP + below * DEPTH + i;
            to.b[i] = load_four<WIDTH, LANES>(p.b + k * p.ldb + column, k < p.k ? inside : 0);
        }
    };
    float sums[ROWS][4] = {};
    const auto multiply = [&](const Fragments& f, int step) {
#pragma unroll
        for (int i = 0; i < DEPTH; i += 4) {
            const int k = step * STEP + below * DEPTH + i;
            const float* from = p.a + k;
#pragma unroll
            for (int row = 0; row < ROWS; ++row) {
                const float4 a = load_along<WIDTH>(from, p.k - k);
                if (row + 1 < p.m) from += p.lda;
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    sums[row][j] += a.x * element(f.b[i], j), sums[row][j] += a.y * element(f.b[i + 1], j);
                    sums[row][j] += a.z * element(f.b[i + 2], j), sums[row][j] += a.w * element(f.b[i + 3], j);
                }
            }
        }
    };
    gemmprof::walk_steps<FEW_WARPS, Fragments>(gemmprof::ceil_div(p.k, STEP), parts, part, load, multiply);
#pragma unroll
    for (int row = 0; row < ROWS; ++row)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int distance = 16; distance >= LANES; distance /= 2)
                sums[row][j] += __shfl_xor_sync(~0u, sums[row][j], distance);
            if (below == 0)
                partial[warp * COUNT + row * COLUMNS + (WIDTH == 4 ? along * 4 + j : along + LANES * j)] = sums[row][j];
        }
    add_up(partial, COUNT, parts, part, [&](int i, float sum) {
        const int row = i / COLUMNS, col = first_column + i % COLUMNS;
        if (row < p.m && col < p.n) gemmprof::store(p.c + row * p.ldc + col, sum, p.alpha, p.beta);
    });
#endif
}

// B has at most COLUMNS columns. Each warp computes rows of its own, all along the block's part of K, SLICE of it at a
// time, whose part of B lies in shared memory: read from B itself, its scattered elements would take more of L1's time
// than A takes of memory's.
template <int COLUMNS, int WIDTH>
__global__ void __launch_bounds__(FEW_THREADS, 2) few_columns(Problem p) {
#if __CUDA_ARCH__ >= TENSOR_COPIES_FROM
    constexpr int DEPTH = SLICE / 128;
    __shared__ __align__(16) float columns[2][COLUMNS][SLICE];
    __shared__ float partial[BLOCK_ROWS * COLUMNS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int parts = int(gemmprof::ptx::cluster_size()), part = int(gemmprof::ptx::cluster_rank());
    const int first_row = int(blockIdx.x) / parts * BLOCK_ROWS;
    const int slices = gemmprof::ceil_div(p.k, SLICE);
    const int first = int(std::int64_t(slices) * part / parts), last = int(std::int64_t(slices) * (part + 1) / parts);

    const float* rows[WARP_ROWS];
#pragma unroll
    for (int row = 0; row < WARP_ROWS; ++row)
        rows[row] = p.a + min(first_row + warp * WARP_ROWS + row, p.m - 1) * p.lda + lane * WIDTH;
    float4 a[DEPTH][WARP_ROWS], next[DEPTH][WARP_ROWS];
    float of_b[COLUMNS];
    const auto load = [&](int slice) {
#pragma unroll
        for (int i = 0; i < DEPTH; ++i) {
            const int k = slice * SLICE + i * 128;
#pragma unroll
            for (int row = 0; row < WARP_ROWS; ++row)
                next[i][row] = load_four<WIDTH, 32>(rows[row] + k, slice < last ? p.k - k - lane * WIDTH : 0);
        }
        const int k = slice * SLICE + int(threadIdx.x);
#pragma unroll
        for (int col = 0; col < COLUMNS; ++col)
            of_b[col] = slice < last && k < p.k && col < p.n ? __ldg(p.b + k * p.ldb + col) : 0.0f;
    };
    float sums[WARP_ROWS][COLUMNS] = {};
    load(first);
    for (int slice = first; slice < last; ++slice) {
        float(&b)[COLUMNS][SLICE] = columns[slice % 2];
#pragma unroll
        for (int col = 0; col < COLUMNS; ++col) b[col][threadIdx.x] = of_b[col];
#pragma unroll
        for (int i = 0; i < DEPTH; ++i)
#pragma unroll
            for (int row = 0; row < WARP_ROWS; ++row) a[i][row] = next[i][row];
        __syncthreads();
        load(slice + 1);
#pragma unroll
        for (int i = 0; i < DEPTH; ++i) {
#pragma unroll
            for (int col = 0; col < COLUMNS; ++col) {
                const float* const from = &b[col][i * 128 + lane * WIDTH];
                const float4 four = WIDTH == 4 ? *reinterpret_cast<const float4*>(from)
                                               : make_float4(from[0], from[32], from[64], from[96]);
#pragma unroll
                for (int row = 0; row < WARP_ROWS; ++row) {
                    const float4& v = a[i][row];
                    sums[row][col] += v.x * four.x, sums[row][col] += v.y * four.y;
                    sums[row][col] += v.z * four.z, sums[row][col] += v.w * four.w;
                }
            }
        }
    }
#pragma unroll
    for (int row = 0; row < WARP_ROWS; ++row) {
#pragma unroll
        for (int col = 0; col < COLUMNS; ++col) {
            float sum = sums[row][col];
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
            if (lane == 0) partial[(warp * WARP_ROWS + row) * COLUMNS + col] = sum;
        }
    }
    __syncthreads();
    add_up_blocks(partial, BLOCK_ROWS * COLUMNS, parts, part, [&](int i, float sum) {
        const int row = first_row + i / COLUMNS, col = i % COLUMNS;
        if (row < p.m && col < p.n) gemmprof::store(p.c + row * p.ldc + col, sum, p.alpha, p.beta);
    });
#endif
}

// ------------------------------------------------------------------------------------------------------ host code

using Function = void(Problem);

struct Variant {
    const char* label;
    Function *wide, *narrow;  // WIDTH 4 and 1; null where there is none
    int count;                // rows of A, or columns of B, at most
    int tile;                 // columns of B, or rows of A, that a block takes
    int on_sm;                // blocks, as the launch bounds say
};

// Of rows, with more and more columns a block; then of columns.
const Variant variants[] = {
    {"one row, 32 columns", few_rows<1, 4, 8>, nullptr, 1, 32, 2},
    {"one row, 64 columns", few_rows<1, 4, 16>, nullptr, 1, 64, 2},
    {"one row", few_rows<1, 4, 32>, few_rows<1, 1, 32>, 1, 128, 2},
    {"4 rows, 32 columns", few_rows<4, 4, 8>, nullptr, 4, 32, 2},
    {"4 rows, 64 columns", few_rows<4, 4, 16>, nullptr, 4, 64, 2},
    {"4 rows", few_rows<4, 4, 32>, few_rows<4, 1, 32>, 4, 128, 2},
    {"8 rows", few_rows<8, 4, 32>, few_rows<8, 1, 32>, 8, 128, 1},
    {"one column", few_columns<1, 4>, few_columns<1, 1>, 1, BLOCK_ROWS, 2},
    {"4 columns", few_columns<4, 4>, few_columns<4, 1>, 4, BLOCK_ROWS, 2},
    {"8 columns", few_columns<8, 4>, few_columns<8, 1>, 8, BLOCK_ROWS, 2},
};
constexpr int FIRST_COLUMNS = 7;

// How a problem is divided; no variant where tiles, of which more blocks share K, do better.
struct Division {
    const Variant* variant;
    int tiles, parts;  // a tile's parts of K make up a cluster
    bool wide;
};

// How many blocks the GPU holds where `parts` of them are a cluster: of an H200 with two on an SM 264, but 240 of
// clusters of eight.
int places_of(const Variant& variant, const Gpu& gpu, int parts) {
    static gemmprof::KnownPlaces<MAX_SPLITS> known[std::size(variants)];
    if (parts == 1) return variant.on_sm * gpu.sms;
    const gemmprof::KernelFacts kernel("", reinterpret_cast<const void*>(variant.wide), FEW_THREADS);
    return known[&variant - variants](kernel, gpu.device, gpu.sms, parts) * parts;
}

// Microseconds of few rows but for what all have. A block alone takes so many bytes, all together no more than memory
// gives; in between each hinders the others. Blocks that share K cost their meeting. What begins a second round takes
// longer, clusters much longer. From the times of ten shapes on an H100.
double time_of_rows(const gemmprof::Gemm& gemm, const Variant& variant, const Gpu& gpu, int tiles, int parts) {
    const double speed = gemmprof::memory_speed(gpu.device);
    // Memory gives 64 bytes at a time: where rows begin within them, a block takes what its neighbours want.
    const double beside = gemm.ldb % 16 != 0 ? 8.0 / variant.tile : 0.0;
    const double bytes = 4.0 * gemm.n * gemm.k * (1.0 + beside), blocks = double(tiles) * parts;
    const double few = (variant.count == 1 ? 90.0 : variant.count == 4 ? 195.0 : 260.0) * speed / blocks;
    double time = bytes / (4.0e6 * speed) * std::cbrt(1.0 + few * few * few);
    if (variant.tile == 32) time *= 1.015;
    if (blocks > places_of(variant, gpu, parts)) time *= parts == 1 ? 1.07 : 1.3;
    return time + (parts == 1 ? 0.0 : 0.8 + 0.15 * parts);
}

// Rounds of blocks of few columns, each a part of K long. Memory's speed is shared by what a round has, so half of the
// places take half as long, fewer no less. A part more costs as much as an eightieth of the whole, adding up two or
// three steps.
double time_of_columns(const Variant& variant, const Gpu& gpu, int tiles, int steps, int parts) {
    const int places = places_of(variant, gpu, parts);
    const std::int64_t blocks = tiles * std::int64_t(parts), rest = blocks % places;
    const double last = rest == 0 ? 0.0 : std::max(0.55, double(rest) / places);
    return (double(blocks / places) + last) / parts + parts / 80.0 + (parts > 1 ? 2.4 / steps : 0.0);
}

Division divide(const gemmprof::Gemm& gemm, const Gpu& gpu) {
    const bool columns = gemm.n <= MOST_COLUMNS;
    if (gemm.k == 0 || gemm.m == 0 || gemm.n == 0 || (!columns && gemm.m > MOST_ROWS)) return {};
    // 16 bytes move as one only if they do of A also: along K.
    const bool wide = gemmprof::rows_aligned(gemm.a, gemm.lda, 4) && gemm.k % 4 == 0 &&
                      (columns || (gemmprof::rows_aligned(gemm.b, gemm.ldb, 4) && gemm.n % 4 == 0));
    const int count = columns ? gemm.n : gemm.m, along = columns ? gemm.m : gemm.n;
    const int round_up_to = count == 1 ? 1 : count <= 4 ? 4 : 8;
    if (!columns && count > ALWAYS_ROWS && gemm.k > LONG_K) return {};
    Division best = {};
    double least = 1e300;
    for (const Variant& variant : variants) {
        if ((&variant - variants >= FIRST_COLUMNS) != columns || variant.count != round_up_to) continue;
        if (!wide && variant.narrow == nullptr) continue;
        const int tiles = gemmprof::ceil_div(along, variant.tile);
        // A step of a warp, and of a block that has one for each warp.
        const int step = columns ? SLICE : 8 * 128 / variant.tile, steps = gemmprof::ceil_div(gemm.k, step);
        const int most = std::min(MAX_SPLITS, columns ? steps : gemmprof::ceil_div(steps, FEW_WARPS));
        const bool long_k = steps > MAX_SPLITS * (columns ? 4 : FEW_WARPS);
        if (long_k && 2 * tiles * most < gpu.sms) continue;
        for (int parts = 1; parts <= most; ++parts) {
            const double time = columns ? time_of_columns(variant, gpu, tiles, steps, parts)
                                        : time_of_rows(gemm, variant, gpu, tiles, parts);
            if (time < least) least = time, best = {&variant, tiles, parts, wide};
        }
    }
    return best;
}

cudaError_t launch(const gemmprof::Gemm& gemm, const Division& division, cudaStream_t stream) {
    const Problem problem = {static_cast<const float*>(gemm.a), static_cast<const float*>(gemm.b), gemm.lda, gemm.ldb,
                             static_cast<float*>(gemm.c),       gemm.ldc, gemm.m, gemm.n, gemm.k, gemm.alpha, gemm.beta};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(division.tiles * division.parts)), config.blockDim = dim3(FEW_THREADS), config.stream = stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = unsigned(division.parts), attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.attrs = &attribute, config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, division.wide ? division.variant->wide : division.variant->narrow, problem);
}

}  // namespace few

}  // namespace GEMMPROF_STAGE
