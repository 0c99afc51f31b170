// Small products of any strides: a thread for each element of C, or several, each of which takes a part of its K.
//
// Of such a product most of the time passes before its first load and after its last: waiting for instructions that no
// cache holds, barriers, copies to shared memory and back. So this kernel is short, and has one barrier at most: operands
// come element by element, many at once, and neighbouring threads take neighbouring elements of whichever runs along
// memory. How many lanes, and how many warps, share a sum, the host chooses. Where C has more rows and columns, a warp
// multiplies 16 x 8 of it by mma, of the same operands loaded the same way: a tenth of the loads.
#pragma once

#include <algorithm>
#include <cmath>

#include "../include/hgemm.cuh"
#include "../include/ptx.cuh"
#include "../include/shares.cuh"

namespace GEMMPROF_STAGE {

namespace dots {

constexpr int MOST_THREADS = 1024, LEAST_THREADS = 256;  // of a block: those that share a sum, or LEAST_THREADS
constexpr int AT_ONCE = 4;                               // products of a thread whose loads are on their way together
constexpr int SM_THREADS = 2048;
constexpr double MOST_PRODUCTS = 1 << 28;                // M * N * K: what is beyond takes tiles anyway

// Microseconds that a card takes.
struct Costs {
    double start, wait, block;             // a launch of these instructions, loads that wait, a round of blocks
    double adding;                         // up what each warp has
    double line;                           // of L1 that a warp asks for
    double instructions;                   // as lines, that a product costs a warp beside its loads
    double tile_start, tile_instructions;  // what a warp's tile takes more, and a step of it
    double bandwidth;                      // of its memory, bytes a microsecond
};

constexpr int ROWS = 16, COLUMNS = 8, STEP = 16;          // of a warp's tile: mma's
constexpr int TILE_SM_THREADS = 1024;                    // as many of its registers as fit

struct Problem {
    const void *a, *b;
    unsigned a_row, a_k, b_column, b_k;      // distances in elements; 32 bits reach all that a product reads
    int k, count, lanes, warps;              // elements of C, or tiles; powers of two of lanes and warps that share one
    gemmprof::Divisor by_columns;
    gemmprof::Output out;
};

template <class T>
__global__ void __launch_bounds__(MOST_THREADS, SM_THREADS / MOST_THREADS) dot_products(const Problem p) {
    __shared__ float partial[MOST_THREADS];
    const int lane = threadIdx.x % 32, warp = int(blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int part = (lane & ((1 << p.lanes) - 1)) | (warp & ((1 << p.warps) - 1)) << p.lanes;
    const int index = ((warp >> p.warps) * 32 + lane) >> p.lanes, inside = min(index, p.count - 1);
    const int row = p.by_columns.divide(inside), column = inside - row * p.out.n, sharers = 1 << (p.lanes + p.warps);
    const T* const a = static_cast<const T*>(p.a);
    const T* const b = static_cast<const T*>(p.b);
    unsigned at_a = row * p.a_row + part * p.a_k, at_b = column * p.b_column + part * p.b_k;
    const unsigned a_step = p.a_k * sharers, b_step = p.b_k * sharers;
    float sum = 0.0f;
#pragma unroll 1
    for (int k = part; k < p.k;) {
        T x[AT_ONCE], y[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i, k += sharers, at_a += a_step, at_b += b_step) {
            x[i] = y[i] = T();
            if (k < p.k) x[i] = a[at_a], y[i] = b[at_b];
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) sum = fmaf(gemmprof::to_float(x[i]), gemmprof::to_float(y[i]), sum);
    }
#pragma unroll 1
    for (int apart = (1 << p.lanes) / 2; apart > 0; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
    if (p.warps > 0) {
        partial[threadIdx.x] = sum;
        __syncthreads();
        sum = 0.0f;
        if (part == 0)
#pragma unroll 1
            for (int i = 0; i < 32 << p.warps; i += 32) sum += partial[threadIdx.x + i];
    }
    if (part == 0 && index < p.count) gemmprof::store_one<T>(p.out, row, column, sum);
}

// Which k of a step a lane holds is its own business as long as both operands agree: neighbours of a quad have
// neighbours.
template <class T>
__global__ void __launch_bounds__(MOST_THREADS, TILE_SM_THREADS / MOST_THREADS) tile_products(const Problem p) {
    __shared__ __align__(8) float partial[MOST_THREADS / 32][ROWS * COLUMNS];
    const int lane = threadIdx.x % 32, group = lane / 4, quad_lane = lane % 4;
    const int warp = int(blockIdx.x * blockDim.x + threadIdx.x) / 32, part = warp & ((1 << p.warps) - 1);
    const int tile = warp >> p.warps, row = p.by_columns.divide(tile);
    const int row0 = row * ROWS, col0 = (tile - row * int(p.by_columns.divisor)) * COLUMNS;
    const T* const a = static_cast<const T*>(p.a);
    const T* const b = static_cast<const T*>(p.b);
    // What lies beyond M or N is read from the last row or column instead: its sums are not stored.
    const unsigned k0 = part * STEP + quad_lane;
    unsigned at_a = min(row0 + group, p.out.m - 1) * p.a_row + k0 * p.a_k;
    unsigned below = min(row0 + group + 8, p.out.m - 1) * p.a_row + k0 * p.a_k;
    unsigned at_b = min(col0 + group, p.out.n - 1) * p.b_column + k0 * p.b_k;
    float sums[4] = {};
#pragma unroll 1
    for (int k = part * STEP; k < p.k; k += STEP << p.warps) {
        T x[2][4], y[4];
#pragma unroll
        for (int i = 0; i < 4; ++i, at_a += 4 * p.a_k, below += 4 * p.a_k, at_b += 4 * p.b_k) {
            x[0][i] = x[1][i] = y[i] = T();
            if (k + quad_lane + 4 * i < p.k) x[0][i] = a[at_a], x[1][i] = a[below], y[i] = b[at_b];
        }
        const unsigned steps = (STEP << p.warps) - STEP;
        at_a += steps * p.a_k, below += steps * p.a_k, at_b += steps * p.b_k;
        const auto two = [](const T* from) { return *reinterpret_cast<const unsigned*>(from); };
        const unsigned rows[4] = {two(x[0]), two(x[1]), two(x[0] + 2), two(x[1] + 2)};
        gemmprof::ptx::mma_16x8x16<__is_same(T, __nv_bfloat16)>(sums, rows, two(y), two(y + 2));
    }
    float* const mine = partial[threadIdx.x / 32];
    *reinterpret_cast<float2*>(mine + group * COLUMNS + 2 * quad_lane) = make_float2(sums[0], sums[1]);
    *reinterpret_cast<float2*>(mine + (group + 8) * COLUMNS + 2 * quad_lane) = make_float2(sums[2], sums[3]);
    __syncthreads();
    if (tile >= p.count) return;
#pragma unroll 1
    for (int i = part * 32 + lane; i < ROWS * COLUMNS; i += 32 << p.warps) {
        float sum = 0.0f;
#pragma unroll 1
        for (int other = 0; other < 1 << p.warps; ++other) sum += partial[threadIdx.x / 32 - part + other][i];
        const int at_row = row0 + i / COLUMNS, at_column = col0 + i % COLUMNS;
        if (at_row < p.out.m && at_column < p.out.n) gemmprof::store_one<T>(p.out, at_row, at_column, sum);
    }
}

// ------------------------------------------------------------------------------------------------------ host code

template <class T>
void list(gemmprof::KernelFacts* kernels, const char* label) {
    kernels[0] = {label, gemmprof::address(dot_products<T>), MOST_THREADS};
    kernels[1] = {label, gemmprof::address(tile_products<T>), MOST_THREADS};
}

// Lines of 128 bytes that hold so many elements along one side, `apart` elements from each other, for so many k.
inline double lines(double side, double apart, double ks, double k_apart) {
    const auto one = [](double count, double distance) { return 1.0 + (count - 1.0) * distance / 64.0; };
    const double rows = side * std::min(ks, one(ks, k_apart)), columns = ks * std::min(side, one(side, apart));
    return std::min({rows, columns, 1.0 + ((side - 1.0) * apart + (ks - 1.0) * k_apart) / 64.0});
}

// The powers of two of lanes and of warps that share a sum, or of warps that share a tile, and the microseconds.
struct Way {
    bool tiles;
    int lanes, warps;
    double time;
};

// Rounds of warps whose loads wait for memory in so many turns, in each of which a warp asks L1 for so many lines, and
// the bytes that memory hands out. They hide each other in part, as in the choice of tiles.
inline double expected(const Costs& costs, double warps, double places, int sms, double turns, double asked, double read,
                       int sharers) {
    const double rounds = std::ceil(warps / (places * sms));
    const double waiting = rounds * (turns * costs.wait + costs.block) + costs.adding * sharers;
    const double asking = std::max(1.0, warps / sms) * turns * asked * costs.line;
    return costs.start + std::cbrt(waiting * waiting * waiting + asking * asking * asking + read * read * read);
}

inline Way best_way(const gemmprof::Gemm& g, int sms, const Costs& costs) {
    Way best = {false, 0, 0, 1e300};
    const double count = double(g.m) * g.n;
    const auto elements = [](const gemmprof::Stored& s) { return double(s.rows) * double(s.ld); };
    const double reach = std::max(elements(gemmprof::stored(g.a, g.m, g.k, g.lda, g.a_transposed)),
                                  elements(gemmprof::stored(g.b, g.k, g.n, g.ldb, g.b_transposed)));
    if (count == 0.0 || g.k == 0 || count * g.k > MOST_PRODUCTS || reach > 1u << 31) return best;
    const double read = 2.0 * g.k * (double(g.m) + g.n) / costs.bandwidth;
    const double a_row = double(g.a_transposed ? 1 : g.lda), a_k = double(g.a_transposed ? g.lda : 1);
    const double b_column = double(g.b_transposed ? g.ldb : 1), b_k = double(g.b_transposed ? 1 : g.ldb);
    for (int lanes = 0; lanes <= 5; ++lanes) {
        // What a warp asks for: elements that are neighbours in C, some k of each.
        const double ks = 1 << lanes, side = 32.0 / ks, wide = std::min<double>(side, g.n);
        const double high = std::min<double>(g.m, std::ceil(side / g.n));
        const double asked = lines(high, a_row, ks, a_k) + lines(wide, b_column, ks, b_k) + costs.instructions;
        for (int warps = 0; warps <= 5 && ks * (1 << warps) < 2.0 * g.k; ++warps) {
            const double all = std::ceil(count / side) * (1 << warps), turns = std::ceil(g.k / (ks * (AT_ONCE << warps)));
            const double time =
                expected(costs, all, SM_THREADS / 32, sms, turns, AT_ONCE * asked, read, 1 << warps);
            if (time < best.time && all < 1 << 25) best = {false, lanes, warps, time};
        }
    }
    const double tiles = double(gemmprof::ceil_div(g.m, ROWS)) * gemmprof::ceil_div(g.n, COLUMNS);
    const double asked = 8.0 * lines(std::min(g.m, 8), a_row, 4, a_k) + 4.0 * lines(std::min(g.n, 8), b_column, 4, b_k) +
                         costs.tile_instructions;
    for (int warps = 0; warps <= 5 && STEP << warps < 2 * g.k; ++warps) {
        const double time =
            costs.tile_start + expected(costs, tiles * (1 << warps), TILE_SM_THREADS / 32, sms,
                                        gemmprof::ceil_div(g.k, STEP << warps), asked, read, 1 << warps);
        if (time < best.time) best = {true, 0, warps, time};
    }
    return best;
}

inline cudaError_t launch(const gemmprof::KernelFacts* kernels, const gemmprof::Gemm& g, const Way& way,
                          cudaStream_t stream) {
    gemmprof::KernelFacts kernel = kernels[way.tiles];
    kernel.threads = std::max(LEAST_THREADS, 32 << way.warps);
    const unsigned lda = unsigned(g.lda), ldb = unsigned(g.ldb);
    const int columns = way.tiles ? gemmprof::ceil_div(g.n, COLUMNS) : g.n;
    const int count = columns * (way.tiles ? gemmprof::ceil_div(g.m, ROWS) : g.m);
    const int of_block = (way.tiles ? kernel.threads / 32 : kernel.threads) >> (way.lanes + way.warps);
    const Problem problem = {g.a,
                             g.b,
                             g.a_transposed ? 1 : lda,
                             g.a_transposed ? lda : 1,
                             g.b_transposed ? ldb : 1,
                             g.b_transposed ? 1 : ldb,
                             g.k,
                             count,
                             way.lanes,
                             way.warps,
                             gemmprof::Divisor::of(columns),
                             gemmprof::output_of(g)};
    return gemmprof::launch_kernel(kernel, unsigned(gemmprof::ceil_div(count, of_block)), 1, stream, problem);
}

}  // namespace dots

}  // namespace GEMMPROF_STAGE
