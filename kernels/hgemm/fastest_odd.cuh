// Small problems with rows that do not begin at multiples of 16 bytes, in one launch.
//
// The copy engine takes no such rows, and to copy them to aligned ones first costs more than a small product does. Here
// cp.async copies the aligned 16-byte words that hold a row, some steps of K ahead, and a lane shifts its eight elements
// into place on their way to the tile that ldmatrix reads; from there on it is mma, as in stage 4. Any C will do,
// because sums leave by way of shared memory, element by element, neighbours by neighbouring lanes.
//
// Blocks of a cluster share K, and add up their sums through distributed shared memory, in one order.
#pragma once

#include <algorithm>
#include <cmath>

#include "../include/clusters.cuh"
#include "../include/hgemm.cuh"
#include "../include/ptx.cuh"

namespace GEMMPROF_STAGE {

namespace odd {

namespace ptx = gemmprof::ptx;
using gemmprof::CHUNK;

constexpr int SIDE = 64;  // of a block's tile of C
constexpr int STEP = 64;  // along K
constexpr int ODD_THREADS = 256;            // eight warps of 32 x 16
constexpr int LINE = STEP + CHUNK;          // elements from row to row of a tile: ldmatrix meets no bank twice
constexpr int TILE = SIDE * LINE;           // elements of a tile
constexpr int SUMS_LINE = SIDE + 4;         // floats from row to row of the sums
static_assert(4 * SIDE * SUMS_LINE <= 2 * 2 * TILE * 2, "the sums must fit the tiles' memory");
constexpr int WORDS = STEP / CHUNK + 1;     // of 16 bytes that hold a row of it, which may begin anywhere
constexpr int STAGES_AHEAD = 4;             // steps whose words are in shared memory, or on their way
constexpr int RAW_BYTES = SIDE * WORDS * 16;
constexpr int SHARED_BYTES = 2 * STAGES_AHEAD * RAW_BYTES + 2 * 2 * TILE * 2;
constexpr int BLOCKS_PER_SM = 2;
// Microseconds, fitted to times of 114 shapes on an H200 (of either half the choice is within 1.5 % of the fastest on the
// other half): of a step, alone on an SM and of each of two blocks; of a block's start and end; of a launch; and of adding
// up the sums of blocks that share a tile.
constexpr double STEP_ALONE = 0.70, STEP_BESIDE = 0.84, BLOCK = 3.34, START = 2.6, EXCHANGE = 0.84;

// A thread's part of an operand's tile as it lies in memory: with K along its rows, or across. Of every 16th row it has
// eight elements, whose aligned 16-byte words are copied as they are, STAGES_AHEAD - 1 steps ahead, and shifted on their
// way to the tile that ldmatrix reads. Rows 8 apart begin equally far from an aligned word, so the shift is one number.
template <bool ALONG_K>
struct Rows {
    static constexpr int BESIDE = STEP / CHUNK, APART = ODD_THREADS / BESIDE, COUNT = SIDE / APART;
    const char* first;        // the aligned word of its first row at k = 0
    std::int64_t row_bytes;
    int shift;                // bytes of that word before the first element
    int rows, columns;        // of the matrix from the tile's corner on, at k = 0
    int line, word;

    __device__ __forceinline__ Rows(const gemmprof::Stored& matrix, int start)
        : row_bytes(2 * matrix.ld),
          rows(matrix.rows - (ALONG_K ? start : 0)),
          columns(matrix.columns - (ALONG_K ? 0 : start)),
          line(int(threadIdx.x) / BESIDE),
          word(int(threadIdx.x) % BESIDE) {
        const char* const row = static_cast<const char*>(matrix.data) +
                                (ALONG_K ? (start + line) * row_bytes : line * row_bytes + 2 * std::int64_t(start));
        shift = int(reinterpret_cast<std::uintptr_t>(row) % 16);
        first = row - shift + 16 * word;
    }
    __device__ __forceinline__ void copy(unsigned raw, int step) const {
        const char* const from = first + step * (ALONG_K ? STEP * 2 : STEP * row_bytes);
        const int left = ALONG_K ? columns - step * STEP : columns, below = ALONG_K ? rows : rows - step * STEP;
        const int bytes = 2 * min(left, STEP + CHUNK) + shift - 16 * word;  // of the row, from this word on
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const unsigned to = raw + ((line + APART * i) * WORDS + word) * 16;
            const int inside = line + APART * i < below ? bytes : 0;
            ptx::copy_async_part(to, from + APART * i * row_bytes, max(0, min(16, inside)));
            if (word == BESIDE - 1)  // what follows its eighth word where the shift reaches into it
                ptx::copy_async_part(to + 16, from + APART * i * row_bytes + 16, max(0, min(shift, inside - 16)));
        }
    }
    __device__ __forceinline__ void align(unsigned raw, unsigned short* tile) const {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const unsigned from = raw + ((line + APART * i) * WORDS + word) * 16;
            const uint4 v = gemmprof::shifted(ptx::load_shared_words(from), ptx::load_shared_words(from + 16), shift);
            *reinterpret_cast<uint4*>(tile + (line + APART * i) * LINE + word * CHUNK) = v;
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
    extern __shared__ unsigned char shared[];
    unsigned short(*const tiles)[2][TILE] = reinterpret_cast<unsigned short(*)[2][TILE]>(shared);  // [buffer][operand]
    const unsigned raw = ptx::shared_address(shared) + 2 * 2 * TILE * 2;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int index = int(blockIdx.x) / p.parts, part = int(blockIdx.x) % p.parts;
    const int row0 = index / p.columns * SIDE, col0 = index % p.columns * SIDE;
    const Rows<!A_TRANSPOSED> a(p.a, row0);
    const Rows<B_TRANSPOSED> b(p.b, col0);
    const int warp_row = warp / 4 * 32, warp_col = warp % 4 * 16;
    const int eighth = lane / 8, line = lane % 8;

    float sums[2][2][4] = {};
    const int steps = gemmprof::ceil_div(p.k, STEP);
    const int first = int(std::int64_t(steps) * part / p.parts), last = int(std::int64_t(steps) * (part + 1) / p.parts);
    // One loop also for the first copies: instructions that no cache holds cost a small problem most of its time.
#pragma unroll 1
    for (int step = first - (STAGES_AHEAD - 1); step < last; ++step) {
        unsigned short(&now)[2][TILE] = tiles[(step - first) & 1];
        if (step >= first) {
            const unsigned from = raw + (step - first) % STAGES_AHEAD * 2 * RAW_BYTES;
            ptx::copy_async_wait<STAGES_AHEAD - 2>();
            __syncthreads();  // the words are there, and those of the step before have been read
            a.align(from, now[0]), b.align(from + RAW_BYTES, now[1]);
        }
        const int ahead = step + STAGES_AHEAD - 1;
        const unsigned to = raw + (ahead - first) % STAGES_AHEAD * 2 * RAW_BYTES;
        if (ahead < last) a.copy(to, ahead), b.copy(to + RAW_BYTES, ahead);
        ptx::copy_async_commit();
        if (step < first) continue;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < STEP; k += 16) {
            // Of A's 16 x 16 the second eighth lies 8 rows below the first, of B's two 16 x 8 along K.
            const int n = warp_col + eighth / 2 * 8, k_a = k + eighth / 2 * 8, k_b = k + eighth % 2 * 8;
            unsigned rows[2][4], columns[4];
            ptx::load_matrices<!B_TRANSPOSED>(columns, ptx::shared_address(now[1] + (B_TRANSPOSED ? (n + line) * LINE + k_b
                                                                                       : (k_b + line) * LINE + n)));
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int m = warp_row + 16 * i + eighth % 2 * 8;
                ptx::load_matrices<A_TRANSPOSED>(
                    rows[i], ptx::shared_address(now[0] + (A_TRANSPOSED ? (k_a + line) * LINE + m
                                                                         : (m + line) * LINE + k_a)));
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j)
                    ptx::mma_16x8x16<__is_same(T, __nv_bfloat16)>(sums[i][j], rows[i], columns[2 * j], columns[2 * j + 1]);
        }
    }

    __syncthreads();
    float* const partial = reinterpret_cast<float*>(tiles);
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            float* const at = partial + (warp_row + 16 * i + lane / 4) * SUMS_LINE + warp_col + 8 * j + lane % 4 * 2;
            *reinterpret_cast<float2*>(at) = make_float2(sums[i][j][0], sums[i][j][1]);
            *reinterpret_cast<float2*>(at + 8 * SUMS_LINE) = make_float2(sums[i][j][2], sums[i][j][3]);
        }
    ptx::cluster_sync();
    // Four neighbours at a time, and what all blocks have of them is on its way before the first is added.
    for (int i = part * ODD_THREADS + int(threadIdx.x); i < SIDE * SIDE / 4; i += p.parts * ODD_THREADS) {
        const int row = row0 + i / (SIDE / 4), column = col0 + i % (SIDE / 4) * 4;
        if (row >= p.m || column >= p.n) continue;
        const unsigned at = ptx::shared_address(partial + i / (SIDE / 4) * SUMS_LINE + i % (SIDE / 4) * 4);
        float4 theirs[gemmprof::MAX_CLUSTER];
#pragma unroll
        for (int other = 0; other < gemmprof::MAX_CLUSTER; ++other)
            theirs[other] = other < p.parts ? ptx::load_shared_of(ptx::address_at(at, unsigned(other)))
                                            : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        float sums[4] = {};
#pragma unroll
        for (const float4& v : theirs) sums[0] += v.x, sums[1] += v.y, sums[2] += v.z, sums[3] += v.w;
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (column + j < p.n) gemmprof::store_one<T>(p.out, row, column + j, sums[j]);
    }
    ptx::cluster_sync();  // no block leaves while another reads its sums
}

// ------------------------------------------------------------------------------------------------------ host code

struct Kernels {
    static constexpr int threads = ODD_THREADS, shared_bytes = SHARED_BYTES;
    template <class T, bool A_TRANSPOSED, bool B_TRANSPOSED>
    static const void* address() {
        return gemmprof::address(odd_rows<T, A_TRANSPOSED, B_TRANSPOSED>);
    }
};

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
    for (int parts = 1; parts <= std::min(gemmprof::MAX_CLUSTER, steps); ++parts) {
        const double beside = std::min<double>(BLOCKS_PER_SM, std::ceil(tiles * parts / sms));
        const double rounds = std::ceil(tiles * parts / (sms * beside));
        const double step = std::max(STEP_ALONE, beside * STEP_BESIDE);
        const double time = START + rounds * (gemmprof::ceil_div(steps, parts) * step + BLOCK) +
                            (parts > 1 ? EXCHANGE : 0.0);
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
