// Stage 13: few rows of A, or few columns of B, as fast as the larger operand comes from memory.
//
// Tiles would multiply mostly nothing there. Warps load the larger operand straight into registers, two steps ahead, and
// share K, with those of the other blocks of a cluster. Their sums are added in one order: the same result every time.
// WIDTH: floats that move as one access, 4 where rows begin at multiples of 16 bytes and end there, else 1.
#pragma once

#include <algorithm>
#include <iterator>

#include "fastest_schedule.cuh"
#include "gemm.cuh"
#include "shared_k.cuh"

namespace GEMMPROF_STAGE {

namespace few {

constexpr int FEW_WARPS = 8;
constexpr int FEW_THREADS = FEW_WARPS * 32;
constexpr int MOST_ROWS = 8;
constexpr int ALWAYS_ROWS = 2;  // more read A so often that only a short K gains
constexpr int MOST_COLUMNS = 8;
constexpr int BLOCK_COLUMNS = 128;   // that a block computes where A has few rows
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

// Four floats that nobody reads again, `distance` apart if they do not move as one; 0 for those beyond `count`.
template <int WIDTH>
__device__ __forceinline__ float4 load_four(const float* from, int count) {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if constexpr (WIDTH == 4) {
        if (count > 0) v = __ldcs(reinterpret_cast<const float4*>(from));
    } else {
        if (count > 0) v.x = __ldcs(from);
        if (count > 32) v.y = __ldcs(from + 32);
        if (count > 64) v.z = __ldcs(from + 64);
        if (count > 96) v.w = __ldcs(from + 96);
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

// A has at most ROWS rows; a step is DEPTH of K.
template <int ROWS, int WIDTH>
__global__ void __launch_bounds__(FEW_THREADS, ROWS <= 4 ? 2 : 1) few_rows(Problem p) {
#if __CUDA_ARCH__ >= TENSOR_COPIES_FROM  // never launched before
    constexpr int DEPTH = 8, COUNT = ROWS * BLOCK_COLUMNS;
    __shared__ float partial[FEW_WARPS * COUNT];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int parts = int(gemmprof::ptx::cluster_size()), part = int(gemmprof::ptx::cluster_rank());
    const int first_column = int(blockIdx.x) / parts * BLOCK_COLUMNS;
    const int column = first_column + lane * WIDTH, inside = p.n - column;

    struct Fragments {
        float4 b[DEPTH];
    };
    const auto load = [&](Fragments& to, int step) {
#pragma unroll
        for (int i = 0; i < DEPTH; ++i) {
            const int k = step * DEPTH + i;
            to.b[i] = load_four<WIDTH>(p.b + k * p.ldb + column, k < p.k ? inside : 0);
        }
    };
    float sums[ROWS][4] = {};
    const auto multiply = [&](const Fragments& f, int step) {
#pragma unroll
        for (int i = 0; i < DEPTH; i += 4) {
            const int k = step * DEPTH + i;
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
    gemmprof::walk_steps<FEW_WARPS, Fragments>(gemmprof::ceil_div(p.k, DEPTH), parts, part, load, multiply);
#pragma unroll
    for (int row = 0; row < ROWS; ++row)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            partial[warp * COUNT + row * BLOCK_COLUMNS + (WIDTH == 4 ? lane * 4 + j : lane + 32 * j)] = sums[row][j];
    add_up(partial, COUNT, parts, part, [&](int i, float sum) {
        const int row = i / BLOCK_COLUMNS, col = first_column + i % BLOCK_COLUMNS;
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
                next[i][row] = load_four<WIDTH>(rows[row] + k, slice < last ? p.k - k - lane * WIDTH : 0);
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
    Function *wide, *narrow;  // WIDTH 4 and 1
    int tile_m, tile_n;
};

// By 1, 4 and 8 rows, then as many columns.
const Variant variants[] = {
    {"one row", few_rows<1, 4>, few_rows<1, 1>, 1, BLOCK_COLUMNS},
    {"4 rows", few_rows<4, 4>, few_rows<4, 1>, 4, BLOCK_COLUMNS},
    {"8 rows", few_rows<8, 4>, few_rows<8, 1>, 8, BLOCK_COLUMNS},
    {"one column", few_columns<1, 4>, few_columns<1, 1>, BLOCK_ROWS, 1},
    {"4 columns", few_columns<4, 4>, few_columns<4, 1>, BLOCK_ROWS, 4},
    {"8 columns", few_columns<8, 4>, few_columns<8, 1>, BLOCK_ROWS, 8},
};

// How a problem is divided; no variant where tiles, of which more blocks share K, do better.
struct Division {
    const Variant* variant;
    int tiles, parts;  // a tile's parts of K make up a cluster
    bool wide;
};

// How many blocks the GPU holds where `parts` of them are a cluster: of an H200 with two on an SM 264, but 240 of
// clusters of eight.
int places_of(const Variant& variant, const Gpu& gpu, int on_sm, int parts) {
    static std::atomic<int> known[gemmprof::MAX_DEVICES][std::size(variants)][MAX_SPLITS + 1];
    if (parts == 1) return on_sm * gpu.sms;
    const gemmprof::KernelFacts kernel("", reinterpret_cast<const void*>(variant.wide), FEW_THREADS);
    if (gpu.device >= gemmprof::MAX_DEVICES) return gemmprof::cluster_places(kernel, parts, gpu.sms) * parts;
    std::atomic<int>& clusters = known[gpu.device][&variant - variants][parts];
    if (clusters == 0) clusters = gemmprof::cluster_places(kernel, parts, gpu.sms);
    return clusters * parts;
}

Division divide(const gemmprof::Gemm& gemm, const Gpu& gpu) {
    const bool columns = gemm.n <= MOST_COLUMNS;
    if (gemm.k == 0 || gemm.m == 0 || gemm.n == 0 || (!columns && gemm.m > MOST_ROWS)) return {};
    // 16 bytes move as one only if they do of A also: along K.
    const bool wide = gemmprof::rows_aligned(gemm.a, gemm.lda, 4) && gemm.k % 4 == 0 &&
                      (columns || (gemmprof::rows_aligned(gemm.b, gemm.ldb, 4) && gemm.n % 4 == 0));
    const int count = columns ? gemm.n : gemm.m;
    const int tiles = columns ? gemmprof::ceil_div(gemm.m, BLOCK_ROWS) : gemmprof::ceil_div(gemm.n, BLOCK_COLUMNS);
    const int steps = gemmprof::ceil_div(gemm.k, columns ? SLICE : 8);
    const Variant& variant = variants[(columns ? 3 : 0) + (count == 1 ? 0 : count <= 4 ? 1 : 2)];
    const int on_sm = columns || count <= 4 ? 2 : 1;  // as the launch bounds say
    if (!columns && count > ALWAYS_ROWS && steps > 2 * FEW_WARPS * MAX_SPLITS) return {};
    const int most = std::min(MAX_SPLITS, columns ? steps : gemmprof::ceil_div(steps, FEW_WARPS));  // or a warp would have no step
    // Rounds of blocks, each a part of K long. Memory's speed is shared by what a round has, so half of the places take
    // half as long, fewer no less. A part more costs as much as an eightieth of the whole (rows: a fortieth, as times of
    // 1 to 8 parts of nine shapes say), adding up two or three steps.
    const auto time = [&](int parts) {
        const int places = places_of(variant, gpu, on_sm, parts);
        const std::int64_t blocks = tiles * std::int64_t(parts), rest = blocks % places;
        const double last = rest == 0 ? 0.0 : columns ? std::max(0.55, double(rest) / places) : 1.0;
        const double adding = columns && parts > 1 ? 2.4 / steps : 0.0;
        return (double(blocks / places) + last) / parts + parts / (columns ? 80.0 : 40.0) + adding;
    };
    const int parts = columns || tiles < on_sm * gpu.sms ? gemmprof::fewest_time(most, time) : 1;  // more need no parts of K
    const bool long_k = steps > MAX_SPLITS * (columns ? 4 : FEW_WARPS);
    if (long_k && 2 * tiles * most < gpu.sms) return {};
    return {&variant, tiles, parts, wide};
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
