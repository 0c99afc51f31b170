// Kernels held back by what they occupy: shared memory, registers, blocks, code, copies without overlap.
#include <cuda_pipeline.h>

#include "../pairs/pair.cuh"

namespace {

// --- k-means: nearest of 256 centroids ---

constexpr int K = 256, D = 32;

__global__ void kmeans_assign(const float *points, const float *centroids, int *nearest, int n) {
    __shared__ float c[K * D];
    for (int i = threadIdx.x; i < K * D; i += blockDim.x) c[i] = centroids[i];
    __syncthreads();
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    float v[D];
#pragma unroll
    for (int d = 0; d < D; d++) v[d] = points[d * n + p];
    float least = 1e30f;
    int best = 0;
    for (int k = 0; k < K; k++) {
        float sum = 0;
#pragma unroll
        for (int d = 0; d < D; d++) sum += (v[d] - c[k * D + d]) * (v[d] - c[k * D + d]);
        if (sum < least) least = sum, best = k;
    }
    nearest[p] = best;
}
// Centroids in pieces of 64: 8 KiB instead of 32.
__global__ void kmeans_assign_pieces(const float *points, const float *centroids, int *nearest, int n) {
    __shared__ float c[64 * D];
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    float v[D];
#pragma unroll
    for (int d = 0; d < D; d++) v[d] = points[d * n + p];
    float least = 1e30f;
    int best = 0;
    for (int first = 0; first < K; first += 64) {
        __syncthreads();
        for (int i = threadIdx.x; i < 64 * D; i += blockDim.x) c[i] = centroids[first * D + i];
        __syncthreads();
        for (int k = 0; k < 64; k++) {
            float sum = 0;
#pragma unroll
            for (int d = 0; d < D; d++) sum += (v[d] - c[k * D + d]) * (v[d] - c[k * D + d]);
            if (sum < least) least = sum, best = first + k;
        }
    }
    nearest[p] = best;
}

Study kmeans("kmeans_small_blocks", "models", 1 << 19, "nearest of 256 centroids of 32 floats for half a million points",
    "each block of 32 threads keeps a copy of all centroids (32 KiB) in shared memory: seven warps a multiprocessor",
    {{"bigger_blocks", "blocks of 256 threads share a copy", {"low_occupancy"}},
        {"pieces", "centroids in pieces of 8 KiB, the small blocks kept", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        float *points = b.random<float>(n * D), *centroids = b.random<float>(K * D);
        int *nearest = b.output<int>(n);
        b.tolerance = 0;
        return {{"flawed", launch(kmeans_assign, n / 32, 32, 0, points, centroids, nearest, n)},
            {"bigger_blocks", launch(kmeans_assign, n / 256, 256, 0, points, centroids, nearest, n)},
            {"pieces", launch(kmeans_assign_pieces, n / 32, 32, 0, points, centroids, nearest, n)}};
    });

// --- multipole moments with too few registers ---

template <int FROM, int TO>
__device__ __forceinline__ void add_moments(float *m, float x, float y, float z, float q) {
    float p[20] = {1, x, y, z, x * x, y * y, z * z, x * y, y * z, z * x, x * x * x, y * y * y, z * z * z, x * x * y,
        x * x * z, y * y * x, y * y * z, z * z * x, z * z * y, x * y * z};
#pragma unroll
    for (int k = FROM; k < TO; ++k) m[k - FROM] += q * p[k];
}
template <int FROM, int TO>
__device__ __forceinline__ void moments_of_cell(const float4 *particles, float *out, int cell, int cells, int per) {
    float a[TO - FROM] = {}, b[TO - FROM] = {};
    for (int k = 0; k < per; k += 2) {  // two particles at a time
        float4 v = particles[k * cells + cell], w = particles[(k + 1) * cells + cell];
        add_moments<FROM, TO>(a, v.x, v.y, v.z, v.w);
        add_moments<FROM, TO>(b, w.x, w.y, w.z, w.w);
    }
#pragma unroll
    for (int k = 0; k < TO - FROM; ++k) out[(FROM + k) * cells + cell] = a[k] + b[k];
}
template <int BLOCKS>
__global__ void __launch_bounds__(256, BLOCKS) multipoles(const float4 *particles, float *out, int cells, int per) {
    int cell = blockIdx.x * 256 + threadIdx.x;
    moments_of_cell<0, 20>(particles, out, cell, cells, per);
}
// Two threads a cell, ten moments each: fewer sums to keep, particles read twice.
__global__ void __launch_bounds__(256, 4) multipoles_split(const float4 *particles, float *out, int cells, int per) {
    int cell = blockIdx.x * 256 + threadIdx.x;
    if (blockIdx.y) moments_of_cell<10, 20>(particles, out, cell, cells, per);
    else moments_of_cell<0, 10>(particles, out, cell, cells, per);
}

Study moments("multipoles_forced_registers", "physics", 1 << 18, "20 multipole moments of 262144 cells of 32 particles",
    "the launch bounds ask for eight blocks of 256 threads, so 40 sums live in 32 registers and are spilled",
    {{"relaxed", "launch bounds of three blocks: registers enough", {"local_memory"}},
        {"split", "two threads a cell with ten moments each, four blocks of 256 threads", {"local_memory"}}},
    [](Buffers &b, long cells) -> Sides {
        int per = 32;
        float *particles = b.random<float>(cells * per * 4), *out = b.output<float>(cells * 20);
        b.tolerance = 1e-3;
        return {{"flawed", launch(multipoles<8>, cells / 256, 256, 0, (float4 *)particles, out, cells, per)},
            {"relaxed", launch(multipoles<3>, cells / 256, 256, 0, (float4 *)particles, out, cells, per)},
            {"split", launch(multipoles_split, dim3(cells / 256, 2), 256, 0, (float4 *)particles, out, cells, per)}};
    });

// --- distances between all pairs of vectors ---

constexpr int T = 64, DEPTH = 16;

__device__ __forceinline__ void add_distances(const float (*a)[T], const float (*b)[T], float (*sum)[4]) {
    int ty = threadIdx.x / 16 * 4, tx = threadIdx.x % 16 * 4;
#pragma unroll
    for (int k = 0; k < DEPTH; ++k) {
        float4 u = *reinterpret_cast<const float4 *>(&a[k][ty]), v = *reinterpret_cast<const float4 *>(&b[k][tx]);
        float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) sum[i][j] += (us[i] - vs[j]) * (us[i] - vs[j]);
    }
}
__device__ __forceinline__ void store_distances(float *out, int n, float (*sum)[4]) {
    int row = blockIdx.y * T + threadIdx.x / 16 * 4, column = blockIdx.x * T + threadIdx.x % 16 * 4;
    for (int i = 0; i < 4; ++i)
        *reinterpret_cast<float4 *>(&out[size_t(row + i) * n + column]) = {sum[i][0], sum[i][1], sum[i][2], sum[i][3]};
}

// x[d][n]: features by rows. Each thread brings four floats of either tile.
__global__ void __launch_bounds__(256) distances(const float *x, float *out, int n, int d) {
    __shared__ __align__(16) float a[DEPTH][T], b[DEPTH][T];
    float sum[4][4] = {};
    int k = threadIdx.x / 16, c = threadIdx.x % 16 * 4;
    for (int first = 0; first < d; first += DEPTH) {
        *(float4 *)&a[k][c] = *(const float4 *)&x[(first + k) * n + blockIdx.y * T + c];
        *(float4 *)&b[k][c] = *(const float4 *)&x[(first + k) * n + blockIdx.x * T + c];
        __syncthreads();
        add_distances(a, b, sum);
        __syncthreads();
    }
    store_distances(out, n, sum);
}
// The next tile on its way in registers while this one is worked on; two buffers, one barrier.
__global__ void __launch_bounds__(256) distances_prefetched(const float *x, float *out, int n, int d) {
    __shared__ __align__(16) float a[2][DEPTH][T], b[2][DEPTH][T];
    float sum[4][4] = {};
    int k = threadIdx.x / 16, c = threadIdx.x % 16 * 4, stage = 0;
    const float *from_a = x + k * n + blockIdx.y * T + c, *from_b = x + k * n + blockIdx.x * T + c;
    float4 next_a = *(const float4 *)from_a, next_b = *(const float4 *)from_b;
    for (int first = 0; first < d; first += DEPTH, stage ^= 1) {
        *(float4 *)&a[stage][k][c] = next_a;
        *(float4 *)&b[stage][k][c] = next_b;
        __syncthreads();
        if (first + DEPTH < d) {
            next_a = *(const float4 *)(from_a + (first + DEPTH) * n);
            next_b = *(const float4 *)(from_b + (first + DEPTH) * n);
        }
        add_distances(a[stage], b[stage], sum);
    }
    store_distances(out, n, sum);
}
// Asynchronous copies past the registers, three stages.
__global__ void __launch_bounds__(256) distances_async(const float *x, float *out, int n, int d) {
    constexpr int STAGES = 3;
    __shared__ __align__(16) float a[STAGES][DEPTH][T], b[STAGES][DEPTH][T];
    float sum[4][4] = {};
    int k = threadIdx.x / 16, c = threadIdx.x % 16 * 4, steps = d / DEPTH;
    const float *from_a = x + k * n + blockIdx.y * T + c, *from_b = x + k * n + blockIdx.x * T + c;
    auto copy = [&](int step) {
        if (step < steps) {
            __pipeline_memcpy_async(&a[step % STAGES][k][c], from_a + step * DEPTH * n, 16);
            __pipeline_memcpy_async(&b[step % STAGES][k][c], from_b + step * DEPTH * n, 16);
        }
        __pipeline_commit();
    };
    copy(0), copy(1);
    for (int step = 0; step < steps; ++step) {
        __pipeline_wait_prior(1);
        __syncthreads();
        copy(step + 2);
        add_distances(a[step % STAGES], b[step % STAGES], sum);
    }
    store_distances(out, n, sum);
}

Study pairwise("distances_single_buffer", "models", 4096, "squared distances between all pairs of 4096 vectors of 256 floats",
    "each tile is fetched, waited for, used, and only then is the next one asked for, two barriers a step",
    {{"prefetch", "the next tile fetched into registers meanwhile, two buffers, one barrier", {"memory_latency", "barriers"}},
        {"async", "asynchronous copies to shared memory, three stages", {"memory_latency", "barriers"}}},
    [](Buffers &b, long n) -> Sides {
        int d = 256;
        float *x = b.random<float>(n * d), *out = b.output<float>(n * n);
        dim3 grid(n / T, n / T);
        return {{"flawed", launch(distances, grid, 256, 0, x, out, n, d)},
            {"prefetch", launch(distances_prefetched, grid, 256, 0, x, out, n, d)},
            {"async", launch(distances_async, grid, 256, 0, x, out, n, d)}};
    });

// --- XTEA, everything unrolled ---

template <int UNROLL>
__global__ void xtea(const uint2 *in, uint2 *out, uint4 key, int threads) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    unsigned k[4] = {key.x, key.y, key.z, key.w};
#pragma unroll UNROLL
    for (int block = 0; block < 32; ++block) {
        uint2 v = in[block * threads + t];
        unsigned sum = 0;
#pragma unroll
        for (int round = 0; round < 32; ++round) {
            v.x += ((v.y << 4 ^ v.y >> 5) + v.y) ^ (sum + k[sum & 3]);
            sum += 0x9e3779b9;
            v.y += ((v.x << 4 ^ v.x >> 5) + v.x) ^ (sum + k[sum >> 11 & 3]);
        }
        out[block * threads + t] = v;
    }
}

Study teas("xtea_all_unrolled", "crypto", 1 << 18, "XTEA of 32 blocks of 8 bytes a thread",
    "the loop over blocks and the one over rounds are both unrolled: more code than the instruction cache holds",
    {{"rounds_only", "rounds unrolled, blocks in a loop", {"instruction_cache"}},
        {"two_blocks", "rounds unrolled, two blocks at a time", {"instruction_cache"}}},
    [](Buffers &b, long threads) -> Sides {
        unsigned *in = b.random<unsigned>(threads * 64, 0, 4294967295.0), *out = b.output<unsigned>(threads * 64);
        uint4 key = {0x01234567, 0x89abcdef, 0xfedcba98, 0x76543210};
        b.tolerance = 0;
        auto side = [&](auto kernel) { return launch(kernel, blocks(threads, 128), 128, 0, (uint2 *)in, (uint2 *)out, key, threads); };
        return {{"flawed", side(xtea<32>)}, {"rounds_only", side(xtea<1>)}, {"two_blocks", side(xtea<2>)}};
    });

// --- causal averages: later rows have more to do ---

// out[i] = sum over j <= i of w[i - j] x[j], rows in tiles of 32, features along the lanes.
__device__ __forceinline__ void causal_tile(const float *x, const float *w, float *out, int tile, int rows, int features) {
    int f = threadIdx.x;
    float sum[4] = {};
    int row = tile * 4;
    for (int j = 0; j < row + 4; ++j) {
        float v = x[j * features + f];
#pragma unroll
        for (int r = 0; r < 4; ++r)
            if (j <= row + r) sum[r] += w[row + r - j] * v;
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) out[(row + r) * features + f] = sum[r];
}
__global__ void causal_mix(const float *x, const float *w, float *out, int rows, int features, int per_block) {
    for (int k = 0; k < per_block; ++k)
        causal_tile(x, w, out, blockIdx.x * per_block + k, rows, features);
}
__global__ void causal_mix_paired(const float *x, const float *w, float *out, int rows, int features, int per_block) {
    int tiles = rows / 4;
    for (int k = 0; k < per_block / 2; ++k) {
        int tile = blockIdx.x * (per_block / 2) + k;
        causal_tile(x, w, out, tile, rows, features);
        causal_tile(x, w, out, tiles - 1 - tile, rows, features);
    }
}
// One tile a block, the longest first.
__global__ void causal_mix_longest_first(const float *x, const float *w, float *out, int rows, int features) {
    causal_tile(x, w, out, rows / 4 - 1 - int(blockIdx.x), rows, features);
}

Study causal("causal_mix_imbalance", "models", 4224, "causal mixing of 4224 rows of 256 features: row i takes from all rows before it",
    "a block takes eight neighbouring tiles of four rows: the last ones have the most work, and 132 blocks leave none to fill in",
    {{"paired", "each block takes tiles from both ends, so that all have as much", {"workload_imbalance"}},
        {"longest_first", "a block a tile, the longest first: the scheduler fills in", {"workload_imbalance", "small_grid"}}},
    [](Buffers &b, long rows) -> Sides {
        int features = 256;
        float *x = b.random<float>(rows * features), *w = b.random<float>(rows), *out = b.output<float>(rows * features);
        b.tolerance = 1e-3;
        return {{"flawed", launch(causal_mix, rows / 32, 256, 0, x, w, out, rows, features, 8)},
            {"paired", launch(causal_mix_paired, rows / 32, 256, 0, x, w, out, rows, features, 8)},
            {"longest_first", launch(causal_mix_longest_first, rows / 4, 256, 0, x, w, out, rows, features)}};
    });

// --- channels first to channels last ---

__global__ void to_channels_last(const float *in, float *out, int C, int HW) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = blockIdx.y;
    if (i >= C * HW) return;
    int c = i / HW, p = i % HW;
    out[(size_t)n * C * HW + (size_t)p * C + c] = in[(size_t)n * C * HW + i];
}
__global__ void to_channels_last_tile(const float *in, float *out, int C, int HW) {
    __shared__ float tile[32][33];
    size_t image = (size_t)blockIdx.z * C * HW;
    int p = blockIdx.x * 32, c = blockIdx.y * 32;
    for (int k = threadIdx.y; k < 32; k += 8) tile[k][threadIdx.x] = in[image + (size_t)(c + k) * HW + p + threadIdx.x];
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += 8) out[image + (size_t)(p + k) * C + c + threadIdx.x] = tile[threadIdx.x][k];
}
// Each thread takes four channels of a pixel: reads in the order of memory, writes of 16 bytes.
__global__ void to_channels_last_four(const float *in, float4 *out, int C, int HW) {
    int p = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y * 4;
    const float *from = in + ((size_t)blockIdx.z * C + c) * HW + p;
    out[((size_t)blockIdx.z * HW + p) * (C / 4) + blockIdx.y] = {from[0], from[HW], from[2 * HW], from[3 * HW]};
}

Study permute("nchw_to_nhwc_scattered", "models", 32, "images of 256 channels of 64 x 64 floats from channels-first to channels-last",
    "reads in the order of memory, writes a channel stride (1 KiB) apart",
    {{"tile", "tiles of 32 x 32 through padded shared memory", {"uncoalesced_access"}},
        {"four_channels", "four channels a thread in one 16-byte write", {"uncoalesced_access"}}},
    [](Buffers &b, long N) -> Sides {
        int C = 256, HW = 4096;
        float *in = b.random<float>(N * C * HW), *out = b.output<float>(N * C * HW);
        return {{"flawed", launch(to_channels_last, dim3(C * HW / 256, N), 256, 0, in, out, C, HW)},
            {"tile", launch(to_channels_last_tile, dim3(HW / 32, C / 32, N), dim3(32, 8), 0, in, out, C, HW)},
            {"four_channels", launch(to_channels_last_four, dim3(HW / 256, C / 4, N), 256, 0, in, (float4 *)out, C, HW)}};
    });

// --- moving average along time ---

__global__ void ema(float *x, float *y, int steps, int channels, float alpha) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float state = 0.f;
    for (int t = 0; t < steps; t++) {
        state += alpha * (x[t * channels + c] - state);
        y[t * channels + c] = state;
    }
}
__global__ void ema_restrict(const float *__restrict__ x, float *__restrict__ y, int steps, int channels, float alpha) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float state = 0.f;
    for (int t = 0; t < steps; t += 16) {
        float v[16];
#pragma unroll
        for (int k = 0; k < 16; ++k) v[k] = x[(t + k) * channels + c];
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            state += alpha * (v[k] - state);
            y[(t + k) * channels + c] = state;
        }
    }
}
// Time in 16 pieces: each piece's end value from zero, then what comes in from the pieces before, then the outputs.
__global__ void __launch_bounds__(512) ema_pieces(const float *x, float *y, int steps, int channels, float alpha, float decay) {
    __shared__ float ends[16][32];
    int c = blockIdx.x * 32 + threadIdx.x, piece = threadIdx.y, length = steps / 16, first = piece * length;
    float state = 0.f;
#pragma unroll 8
    for (int t = first; t < first + length; t++) state += alpha * (x[t * channels + c] - state);
    ends[piece][threadIdx.x] = state;
    __syncthreads();
    state = 0.f;
    for (int p = 0; p < piece; ++p) state = ends[p][threadIdx.x] + decay * state;
#pragma unroll 8
    for (int t = first; t < first + length; t++) {
        state += alpha * (x[t * channels + c] - state);
        y[t * channels + c] = state;
    }
}

Study emas("ema_one_load_in_flight", "models", 8192, "exponential moving average of 8192 channels over 2048 steps",
    "a thread a channel: the next value is asked for only after the last was written (the pointers may alias), and 64 blocks",
    {{"batches", "restrict pointers, 16 loads at a time", {"memory_latency"}},
        {"pieces", "time split into 16 pieces, the carried state put in afterwards: 16 times the threads, input read twice",
            {"small_grid", "memory_latency"}}},
    [](Buffers &b, long channels) -> Sides {
        int steps = 2048;
        float *x = b.random<float>(channels * steps), *y = b.output<float>(channels * steps), alpha = 0.05f;
        float decay = pow(1.0 - alpha, steps / 16);
        b.tolerance = 1e-3;
        return {{"flawed", launch(ema, channels / 128, 128, 0, x, y, steps, channels, alpha)},
            {"batches", launch(ema_restrict, channels / 128, 128, 0, x, y, steps, channels, alpha)},
            {"pieces", launch(ema_pieces, channels / 32, dim3(32, 16), 0, x, y, steps, channels, alpha, decay)}};
    });

// --- a copy between any two layouts ---

struct Layout {
    int rank, size[6];
    long stride[6];
};

__global__ void copy_strided(const float *in, float *out, Layout from, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    long rest = i, at = 0;
    for (int d = from.rank - 1; d >= 0; d--) {
        at += rest % from.size[d] * from.stride[d];
        rest /= from.size[d];
    }
    out[i] = in[at];
}
__global__ void copy_strided_32(const float *in, float *out, Layout from, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned rest = i, at = 0;
#pragma unroll
    for (int d = 4; d >= 0; d--) {
        unsigned size = from.size[d], quotient = rest / size;
        at += (rest - quotient * size) * unsigned(from.stride[d]);
        rest = quotient;
    }
    out[i] = in[at];
}
// The innermost axis lies together on both sides: one set of divisions for four values.
__global__ void copy_strided_four(const float *in, float4 *out, Layout from, unsigned n4) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    unsigned inner = from.size[4] / 4, rest = i / inner, at = (i - rest * inner) * 4;
#pragma unroll
    for (int d = 3; d >= 0; d--) {
        unsigned size = from.size[d], quotient = rest / size;
        at += (rest - quotient * size) * unsigned(from.stride[d]);
        rest = quotient;
    }
    out[i] = *reinterpret_cast<const float4 *>(in + at);
}

Study strided("copy_any_strides", "models", 64, "a permuted tensor of five axes copied to a contiguous one",
    "five 64-bit divisions and remainders by runtime sizes for every value",
    {{"index32", "32-bit indices, a division an axis, loop unrolled", {"integer_arithmetic"}},
        {"four", "four values along the contiguous axis a thread, 32-bit indices", {"integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long batch) -> Sides {
        // in[batch][12][16][64][64] taken as [batch][64][12][16][64]
        Layout from = {5, {int(batch), 64, 12, 16, 64}, {12 * 16 * 64 * 64, 64, 16 * 64 * 64, 64 * 64, 1}};
        long n = batch * 12 * 16 * 64 * 64;
        float *in = b.random<float>(n), *out = b.output<float>(n);
        return {{"flawed", launch(copy_strided, blocks(n, 256), 256, 0, in, out, from, n)},
            {"index32", launch(copy_strided_32, blocks(n, 256), 256, 0, in, out, from, n)},
            {"four", launch(copy_strided_four, blocks(n / 4, 256), 256, 0, in, (float4 *)out, from, n / 4)}};
    });

// --- kinetic energy ---

__global__ void kinetic(const float4 *velocity, double *energy, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = velocity[i];
    atomicAdd(energy, 0.5 * v.w * (v.x * v.x + v.y * v.y + v.z * v.z));
}
__global__ void kinetic_warp(const float4 *velocity, double *energy, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double e = 0;
    if (i < n) {
        float4 v = velocity[i];
        e = 0.5 * v.w * (v.x * v.x + v.y * v.y + v.z * v.z);
    }
    for (int d = 16; d; d /= 2) e += __shfl_xor_sync(~0u, e, d);
    if (threadIdx.x % 32 == 0) atomicAdd(energy, e);
}
__global__ void kinetic_grid(const float4 *velocity, double *energy, int n) {
    __shared__ double parts[8];
    double e = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 v = velocity[i];
        e += 0.5f * v.w * (v.x * v.x + v.y * v.y + v.z * v.z);
    }
    for (int d = 16; d; d /= 2) e += __shfl_xor_sync(~0u, e, d);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = e;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) e += parts[w];
        atomicAdd(energy, e);
    }
}

Study energies("kinetic_energy_one_atomic", "physics", 1 << 20, "kinetic energy of a million particles",
    "every thread adds its double to the same address",
    {{"warp", "added up in the warp by shuffles, an atomic a warp", {"global_atomics"}},
        {"grid_stride", "grid-stride loop, added up in the block, an atomic a block", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        float *velocity = b.random<float>(n * 4, 0, 1);
        double *energy = b.output<double>(1, true);
        return {{"flawed", launch(kinetic, blocks(n, 256), 256, 0, (float4 *)velocity, energy, n)},
            {"warp", launch(kinetic_warp, blocks(n, 256), 256, 0, (float4 *)velocity, energy, n)},
            {"grid_stride", launch(kinetic_grid, 132 * 4, 256, 0, (float4 *)velocity, energy, n)}};
    });

}  // namespace
