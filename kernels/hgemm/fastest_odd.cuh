// Small problems with rows that do not begin at multiples of 16 bytes, in one launch.
//
// The copy engine takes no such rows, and to copy them to aligned ones first costs more than a small product does. Here
// a lane loads the one or two aligned 16-byte words that hold its eight elements, a step of K ahead, shifts them into
// place, and stores them to shared memory; from there on it is ldmatrix and mma, as in stage 3. Any C will do, because
// sums leave by way of shared memory, element by element, neighbours by neighbouring lanes.
//
// Blocks of a cluster share K, and add up their sums through distributed shared memory, in one order.
#pragma once

#include <algorithm>
#include <cmath>

#include "../include/hgemm.cuh"
#include "../include/ptx.cuh"

namespace GEMMPROF_STAGE {

namespace odd {

namespace ptx = gemmprof::ptx;
using gemmprof::CHUNK;

constexpr int SIDE = 64, STEP = 64;         // of a block's tile of C; along K
constexpr int ODD_THREADS = 128;            // four warps of 32 x 32
constexpr int LINE = STEP + CHUNK;          // elements from row to row of a tile: ldmatrix meets no bank twice
constexpr int TILE = SIDE * LINE;           // elements of a tile
constexpr int SUMS_LINE = SIDE + 4;         // floats from row to row of the sums
constexpr int CHUNKS = SIDE * STEP / CHUNK / ODD_THREADS;  // of each operand's tile, that a lane loads
constexpr int MOST_PARTS = 8;               // the largest cluster that every Hopper GPU accepts
constexpr int BLOCKS_PER_SM = 3;
// Microseconds, fitted to times of 70 shapes on an H200: of a step whose loads nothing hides, and of each block where
// several share an SM; of a block's start and end; of a launch; and of adding up the sums of blocks that share a tile.
constexpr double STEP_ALONE = 0.6, STEP_BESIDE = 0.25, BLOCK = 1.0, START = 4.5;
constexpr double EXCHANGE = 0.6, EXCHANGE_PER_PART = 0.05;

// The tile of an operand from (start, k) on as it lies in memory: with K along its rows, or across.
template <bool ALONG_K>
struct Loader {
    gemmprof::Stored matrix;
    int start;  // in M or N
    gemmprof::Chunk chunks[CHUNKS];

    __device__ __forceinline__ void load(int k) {
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            const int at = i * ODD_THREADS + int(threadIdx.x), line = at / (STEP / CHUNK);
            const int column = at % (STEP / CHUNK) * CHUNK;
            chunks[i].load(matrix, (ALONG_K ? start : k) + line, (ALONG_K ? k : start) + column);
        }
    }
    __device__ __forceinline__ void store(unsigned short* tile) const {
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            const int at = i * ODD_THREADS + int(threadIdx.x);
            *reinterpret_cast<uint4*>(tile + at / (STEP / CHUNK) * LINE + at % (STEP / CHUNK) * CHUNK) =
                chunks[i].value();
        }
    }
};

struct Problem {
    gemmprof::Stored a, b;
    int m, n, k, columns, parts;  // columns of tiles
    gemmprof::Output out;
};

template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED>
__global__ void __launch_bounds__(ODD_THREADS, BLOCKS_PER_SM) odd_rows(const Problem p) {
    __shared__ __align__(16) unsigned short tiles[2][2][TILE];  // [buffer][operand]
    static_assert(sizeof(float) * SIDE * SUMS_LINE <= sizeof(tiles), "the sums take the tiles' memory");
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int index = int(blockIdx.x) / p.parts, part = int(blockIdx.x) % p.parts;
    const int row0 = index / p.columns * SIDE, col0 = index % p.columns * SIDE;
    Loader<!A_TRANSPOSED> a = {p.a, row0};
    Loader<B_TRANSPOSED> b = {p.b, col0};
    const int warp_row = warp / 2 * 32, warp_col = warp % 2 * 32;
    const int eighth = lane / 8, line = lane % 8;

    float sums[2][4][4] = {};
    const int steps = gemmprof::ceil_div(p.k, STEP);
    const int first = int(std::int64_t(steps) * part / p.parts), last = int(std::int64_t(steps) * (part + 1) / p.parts);
    if (first < last) a.load(first * STEP), b.load(first * STEP);
    for (int step = first; step < last; ++step) {
        unsigned short(&now)[2][TILE] = tiles[(step - first) % 2];
        a.store(now[0]), b.store(now[1]);
        __syncthreads();
        if (step + 1 < last) a.load((step + 1) * STEP), b.load((step + 1) * STEP);
#pragma unroll
        for (int k = 0; k < STEP; k += 16) {
            unsigned rows[2][4], columns[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                // Of A's 16 x 16 the second eighth lies 8 rows below the first, of B's two 16 x 8 along K.
                const int m = warp_row + 16 * i + eighth % 2 * 8, n = warp_col + 16 * i + eighth / 2 * 8;
                const int k_a = k + eighth / 2 * 8, k_b = k + eighth % 2 * 8;
                ptx::load_matrices<A_TRANSPOSED>(
                    rows[i], ptx::shared_address(now[0] + (A_TRANSPOSED ? (k_a + line) * LINE + m
                                                                         : (m + line) * LINE + k_a)));
                ptx::load_matrices<!B_TRANSPOSED>(
                    columns[i], ptx::shared_address(now[1] + (B_TRANSPOSED ? (n + line) * LINE + k_b
                                                                            : (k_b + line) * LINE + n)));
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    ptx::mma_16x8x16<__is_same(T, __nv_bfloat16)>(sums[i][j], rows[i], columns[j / 2][j % 2 * 2],
                                                                  columns[j / 2][j % 2 * 2 + 1]);
        }
    }

    __syncthreads();
    float* const partial = reinterpret_cast<float*>(tiles);
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float* const at = partial + (warp_row + 16 * i + lane / 4) * SUMS_LINE + warp_col + 8 * j + lane % 4 * 2;
            *reinterpret_cast<float2*>(at) = make_float2(sums[i][j][0], sums[i][j][1]);
            *reinterpret_cast<float2*>(at + 8 * SUMS_LINE) = make_float2(sums[i][j][2], sums[i][j][3]);
        }
    if (p.parts == 1)
        __syncthreads();
    else
        ptx::cluster_sync();
    for (int i = part * ODD_THREADS + int(threadIdx.x); i < SIDE * SIDE; i += p.parts * ODD_THREADS) {
        const int row = row0 + i / SIDE, column = col0 + i % SIDE;
        if (row >= p.m || column >= p.n) continue;
        float* const at = partial + i / SIDE * SUMS_LINE + i % SIDE;
        float sum = *at;
        if (p.parts > 1) {
            sum = 0.0f;
            for (int other = 0; other < p.parts; ++other)
                sum += ptx::load_float_of(ptx::address_at(ptx::shared_address(at), unsigned(other)));
        }
        gemmprof::store_one<T>(p.out, row, column, sum);
    }
    if (p.parts > 1) ptx::cluster_sync();  // no block leaves while another reads its sums
}

// ------------------------------------------------------------------------------------------------------ host code

template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED>
gemmprof::KernelFacts kernel(const char* label) {
    return {label, gemmprof::address(odd_rows<T, A_TRANSPOSED, B_TRANSPOSED>), ODD_THREADS};
}

// Whether an operand would have to be copied before the copy engine takes it.
inline bool suits(const gemmprof::Gemm& g) {
    const auto aligned = [](const gemmprof::Stored& s) {
        return gemmprof::rows_aligned(s.data, s.rows == 1 ? 0 : s.ld, 2);
    };
    return g.m > 0 && g.n > 0 && g.k > 0 && !(aligned(gemmprof::stored(g.a, g.m, g.k, g.lda, g.a_transposed)) &&
                                              aligned(gemmprof::stored(g.b, g.k, g.n, g.ldb, g.b_transposed)));
}

// How many blocks share a tile, and the microseconds that it takes: rounds of blocks, of which an SM computes so many at
// a time, each as many steps as the longest part has.
struct Way {
    int parts;
    double time;
};

inline Way best_way(const gemmprof::Gemm& g, int sms) {
    const double tiles = double(gemmprof::ceil_div(g.m, SIDE)) * gemmprof::ceil_div(g.n, SIDE);
    const int steps = gemmprof::ceil_div(g.k, STEP);
    Way best = {1, 1e300};
    for (int parts = 1; parts <= std::min(MOST_PARTS, steps); ++parts) {
        const double beside = std::min<double>(BLOCKS_PER_SM, std::ceil(tiles * parts / sms));
        const double rounds = std::ceil(tiles * parts / (sms * beside));
        const double step = std::max(STEP_ALONE, beside * STEP_BESIDE);
        const double time = START + rounds * (gemmprof::ceil_div(steps, parts) * step + BLOCK) +
                            (parts > 1 ? EXCHANGE + EXCHANGE_PER_PART * parts : 0.0);
        if (time < best.time) best = {parts, time};
    }
    return best;
}

inline cudaError_t launch(const gemmprof::KernelFacts& kernel, const gemmprof::Gemm& g, int parts,
                          cudaStream_t stream) {
    const int rows = gemmprof::ceil_div(g.m, SIDE), columns = gemmprof::ceil_div(g.n, SIDE);
    const Problem problem = {gemmprof::stored(g.a, g.m, g.k, g.lda, g.a_transposed),
                             gemmprof::stored(g.b, g.k, g.n, g.ldb, g.b_transposed),
                             g.m,
                             g.n,
                             g.k,
                             columns,
                             parts,
                             gemmprof::output_of(g)};
    return gemmprof::launch_kernel(kernel, unsigned(std::int64_t(rows) * columns * parts), unsigned(parts), stream,
                                   problem);
}

}  // namespace odd

}  // namespace GEMMPROF_STAGE
