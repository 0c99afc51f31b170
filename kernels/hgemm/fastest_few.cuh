// Few columns of B: as fast as A comes from memory.
//
// A tile would multiply mostly nothing, and B's short rows would be copied to aligned ones first. Here every warp loads
// A straight into the registers that mma reads, 16 bytes a lane and two steps ahead, and B element by element. Which k of
// a step a lane holds is its own business as long as both operands agree, so lanes exchange nothing: of a row-major A a
// lane's 16 bytes are what mma wants, of a transposed one it pairs rows with PRMT.
//
// Warps of a block, and blocks of a cluster, share K. Their sums are added through shared memory in one order: no
// workspace, the same result every time.
#pragma once

#include <algorithm>

#include "../include/clusters.cuh"
#include "../include/hgemm.cuh"
#include "../include/shared_k.cuh"

namespace GEMMPROF_STAGE {

namespace few {

namespace ptx = gemmprof::ptx;

constexpr int MOST_COLUMNS = 8;                   // of B: mma's
constexpr int BLOCK_ROWS = 64;                    // of A, that a block (each of its warps) computes
constexpr int FEW_WARPS = 8;
constexpr int FEW_THREADS = FEW_WARPS * 32;       // two such blocks fit an SM
constexpr int STEP = 32;                          // along K, of a warp: four lanes, eight elements each
constexpr int LINE = BLOCK_ROWS + 4;              // floats from column to column of sums in shared memory

struct Problem {
    const void *a, *b;
    std::int64_t lda, b_row, b_column;  // distances in elements, of B between rows and between columns
    int m, n, k;
    gemmprof::Output out;
};

__device__ __forceinline__ unsigned word(const uint4& v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

template <class T, bool A_TRANSPOSED>
__global__ void __launch_bounds__(FEW_THREADS, 2) few_columns(const Problem p) {
    __shared__ __align__(16) float partial[FEW_WARPS * MOST_COLUMNS * LINE];  // [warp][column][LINE]
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, quad_lane = lane % 4;
    const int parts = int(ptx::cluster_size()), part = int(ptx::cluster_rank());
    const int first_row = int(blockIdx.x) / parts * BLOCK_ROWS;
    const std::uint64_t policy = ptx::read_once_policy();
    const T* const a = static_cast<const T*>(p.a);
    const T* const b = static_cast<const T*>(p.b) + min(group, p.n - 1) * p.b_column;

    struct Fragments {
        uint4 a[8];
        unsigned b[4];
    };
    // What lies beyond M or N is read from the last rows or column instead: its sums are not stored.
    const auto load = [&](Fragments& to, int step) {
        const int k = step * STEP + quad_lane * gemmprof::CHUNK;
        const uint4 none = make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            if constexpr (A_TRANSPOSED) {
                const int row = min(first_row + 8 * group, p.m - 8);
                to.a[i] = k + i < p.k ? ptx::load_once(a + (k + i) * p.lda + row, policy) : none;
            } else {
                const int row = min(first_row + 8 * i + group, p.m - 1);
                to.a[i] = k < p.k ? ptx::load_once(a + row * p.lda + k, policy) : none;
            }
        }
        const T* from = b + k * p.b_row;
        T elements[gemmprof::CHUNK];
#pragma unroll
        for (int i = 0; i < gemmprof::CHUNK; ++i, from += p.b_row)
            elements[i] = k + i < p.k ? *from : gemmprof::from_float<T>(0.0f);
#pragma unroll
        for (int i = 0; i < 4; ++i) to.b[i] = reinterpret_cast<const unsigned*>(elements)[i];
    };

    float sums[4][4] = {};  // of 16 rows each
    const auto multiply = [&](const Fragments& f, int) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                unsigned rows[4];
#pragma unroll
                for (int pair = 0; pair < 2; ++pair) {
                    if constexpr (A_TRANSPOSED) {
                        const unsigned even = word(f.a[4 * half + 2 * pair], j);
                        const unsigned odd = word(f.a[4 * half + 2 * pair + 1], j);
                        rows[2 * pair] = __byte_perm(even, odd, 0x5410);
                        rows[2 * pair + 1] = __byte_perm(even, odd, 0x7632);
                    } else {
                        rows[2 * pair] = word(f.a[2 * j], 2 * half + pair);
                        rows[2 * pair + 1] = word(f.a[2 * j + 1], 2 * half + pair);
                    }
                }
                ptx::mma_16x8x16<__is_same(T, __nv_bfloat16)>(sums[j], rows, f.b[2 * half], f.b[2 * half + 1]);
            }
        }
    };

    gemmprof::walk_steps<FEW_WARPS, Fragments>(gemmprof::ceil_div(p.k, STEP), parts, part, load, multiply);

#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
        float* const line = partial + (warp * MOST_COLUMNS + 2 * quad_lane + odd) * LINE;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            // The two rows of a lane: neighbours where their elements were paired, else eight apart.
            const int row = A_TRANSPOSED ? 8 * group + 2 * j : 16 * j + group;
            line[row] = sums[j][odd], line[row + (A_TRANSPOSED ? 1 : 8)] = sums[j][2 + odd];
        }
    }
    __syncthreads();

    const auto place = [](int i) { return i / BLOCK_ROWS * LINE + i % BLOCK_ROWS; };
    const auto store = [&](int i, float sum) {
        const int row = first_row + i % BLOCK_ROWS, column = i / BLOCK_ROWS;
        if (row < p.m && column < p.n) gemmprof::store_one<T>(p.out, row, column, sum);
    };
    const int count = p.n * BLOCK_ROWS;
    for (int i = threadIdx.x; i < count; i += FEW_THREADS) {
        float sum = 0.0f;
#pragma unroll
        for (int other = 0; other < FEW_WARPS; ++other) sum += partial[other * MOST_COLUMNS * LINE + place(i)];
        if (parts == 1)
            store(i, sum);
        else
            partial[place(i)] = sum;  // of the first warp, which only this thread has read there
    }
    if (parts > 1) gemmprof::add_up_blocks<FEW_THREADS>(partial, count, parts, part, place, store);
}

// ------------------------------------------------------------------------------------------------------ host code

template <class T, bool A_TRANSPOSED>
gemmprof::KernelFacts kernel(const char* label) {
    return {label, gemmprof::address(few_columns<T, A_TRANSPOSED>), FEW_THREADS};
}

// How many blocks share 64 rows; 0 where tiles compute a problem: more than MOST_COLUMNS columns, a B that need not be
// copied for them, an A that does not move 16 bytes at a time, or so few rows that half of the SMs would have none.
inline int parts_of(const gemmprof::Gemm& g, int sms) {
    const int beside = g.a_transposed ? g.m : g.k;
    if (g.m == 0 || g.n == 0 || g.k == 0 || g.n > MOST_COLUMNS || beside % gemmprof::CHUNK != 0 ||
        !gemmprof::rows_aligned(g.a, g.lda, 2) || gemmprof::rows_aligned(g.b, g.ldb, 2))
        return 0;
    const int blocks = gemmprof::ceil_div(g.m, BLOCK_ROWS), places = 2 * sms;
    const int most = std::min(gemmprof::MAX_CLUSTER, gemmprof::ceil_div(g.k, STEP * FEW_WARPS));
    if (2 * blocks * most < sms) return 0;
    // Rounds of blocks, each a part of K long; a part more costs as much as an eightieth of the whole.
    return gemmprof::fewest_time(most, [&](int parts) {
        return double((blocks * std::int64_t(parts) + places - 1) / places) / parts + parts / 80.0;
    });
}

inline cudaError_t launch(const gemmprof::KernelFacts& kernel, const gemmprof::Gemm& g, int parts,
                          cudaStream_t stream) {
    const Problem problem = {g.a,
                             g.b,
                             g.lda,
                             g.b_transposed ? 1 : g.ldb,
                             g.b_transposed ? g.ldb : 1,
                             g.m,
                             g.n,
                             g.k,
                             gemmprof::output_of(g)};
    const unsigned blocks = unsigned(gemmprof::ceil_div(g.m, BLOCK_ROWS) * parts);
    return gemmprof::launch_kernel(kernel, blocks, unsigned(parts), stream, problem);
}

}  // namespace few

}  // namespace GEMMPROF_STAGE
