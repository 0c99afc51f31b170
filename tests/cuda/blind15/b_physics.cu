// Physics, stars, graphs, statistics and sound. Each kernel but the sound one has one weakness and two ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- power of a field's waves, by how long they are ---

constexpr int WAVES = 256, HALF = WAVES / 2, SHELLS = 223;  // along an axis; kept of the first axis; whole lengths of waves

__device__ __forceinline__ int signed_wave(int k) { return k < HALF ? k : k - WAVES; }
__device__ __forceinline__ int shell_of(int x, int y, int z) { return static_cast<int>(sqrtf(static_cast<float>(x * x + y * y + z * z)) + 0.5f); }

// A block takes planes' rows in turn, a thread a wave of the row.
__global__ void __launch_bounds__(HALF) power_spectrum(const float2 *__restrict__ field, float *__restrict__ power, int *__restrict__ counts, int rows) {
    __shared__ float sums[SHELLS];
    __shared__ int seen[SHELLS];
    for (int k = threadIdx.x; k < SHELLS; k += HALF) sums[k] = 0.f, seen[k] = 0;
    __syncthreads();
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        const float2 c = field[static_cast<size_t>(row) * HALF + threadIdx.x];
        const int shell = shell_of(threadIdx.x, signed_wave(row % WAVES), signed_wave(row / WAVES));
        atomicAdd(&sums[shell], c.x * c.x + c.y * c.y);
        atomicAdd(&seen[shell], 1);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < SHELLS; k += HALF) {
        atomicAdd(power + k, sums[k]);
        atomicAdd(counts + k, seen[k]);
    }
}
// Eight copies, each for every eighth lane.
__global__ void __launch_bounds__(HALF) power_spectrum_copies(const float2 *__restrict__ field, float *__restrict__ power, int *__restrict__ counts, int rows) {
    __shared__ float sums[SHELLS * 8];
    __shared__ int seen[SHELLS * 8];
    for (int k = threadIdx.x; k < SHELLS * 8; k += HALF) sums[k] = 0.f, seen[k] = 0;
    __syncthreads();
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        const float2 c = field[static_cast<size_t>(row) * HALF + threadIdx.x];
        const int shell = shell_of(threadIdx.x, signed_wave(row % WAVES), signed_wave(row / WAVES));
        atomicAdd(&sums[shell * 8 + threadIdx.x % 8], c.x * c.x + c.y * c.y);
        atomicAdd(&seen[shell * 8 + threadIdx.x % 8], 1);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < SHELLS; k += HALF) {
        float sum = 0.f;
        int count = 0;
        for (int copy = 0; copy < 8; ++copy) sum += sums[k * 8 + copy], count += seen[k * 8 + copy];
        atomicAdd(power + k, sum);
        atomicAdd(counts + k, count);
    }
}
// Lengths do not fall along a row: lanes of a shell lie side by side, and the last of them adds for all.
__global__ void __launch_bounds__(HALF) power_spectrum_runs(const float2 *__restrict__ field, float *__restrict__ power, int *__restrict__ counts, int rows) {
    __shared__ float sums[SHELLS];
    __shared__ int seen[SHELLS];
    for (int k = threadIdx.x; k < SHELLS; k += HALF) sums[k] = 0.f, seen[k] = 0;
    __syncthreads();
    const int lane = threadIdx.x % 32;
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        const float2 c = field[static_cast<size_t>(row) * HALF + threadIdx.x];
        const int shell = shell_of(threadIdx.x, signed_wave(row % WAVES), signed_wave(row / WAVES));
        const int before = __shfl_up_sync(~0u, shell, 1);
        const unsigned heads = __ballot_sync(~0u, lane == 0 || before != shell);
        const int head = 31 - __clz(heads & (0xffffffffu >> (31 - lane)));
        float sum = c.x * c.x + c.y * c.y;
#pragma unroll
        for (int offset = 1; offset < 32; offset *= 2) {
            const float other = __shfl_up_sync(~0u, sum, offset);
            if (lane - offset >= head) sum += other;
        }
        if (lane == 31 || (heads >> (lane + 1) & 1u)) {
            atomicAdd(&sums[shell], sum);
            atomicAdd(&seen[shell], lane - head + 1);
        }
    }
    __syncthreads();
    for (int k = threadIdx.x; k < SHELLS; k += HALF) {
        atomicAdd(power + k, sums[k]);
        atomicAdd(counts + k, seen[k]);
    }
}

Study spectrum("wave_power_shared_atomics_on_few_lengths", "physics", 256 * 256, "power of a transformed field of 256 x 256 x 128 waves summed by length of wave, and how many of each",
    "two atomics in shared memory for each wave; along a row many lanes have the same length",
    {{"eight_copies", "eight copies of the sums, a lane in its own", {"shared_atomics"}}, {"runs", "lanes of one length summed by shuffles first", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const float2 *field = reinterpret_cast<const float2 *>(b.random<float>(static_cast<size_t>(n) * HALF * 2));
        float *power = b.output<float>(SHELLS, true);
        int *counts = b.output<int>(SHELLS, true);
        const int rows = static_cast<int>(n), grid = 132 * 8;
        b.tolerance = 1e-3;
        return {{"flawed", launch(power_spectrum, grid, HALF, 0, field, power, counts, rows)}, {"eight_copies", launch(power_spectrum_copies, grid, HALF, 0, field, power, counts, rows)},
            {"runs", launch(power_spectrum_runs, grid, HALF, 0, field, power, counts, rows)}};
    });

// --- how a graph's nodes push one another away when it is drawn ---

constexpr int DRAWN = 128;

enum class Push { AS_WRITTEN, ONE_ROOT, NO_ROOT };

template <Push HOW>
__device__ __forceinline__ void push(float2 &force, float2 own, float3 other, float wanted) {
    const float dx = own.x - other.x, dy = own.y - other.y, square = dx * dx + dy * dy + 1e-3f;
    if (HOW == Push::AS_WRITTEN) {
        const float distance = sqrtf(square), size = other.z * wanted * wanted / distance;
        force.x += dx / distance * size;
        force.y += dy / distance * size;
    } else if (HOW == Push::ONE_ROOT) {
        const float inverse = rsqrtf(square), size = other.z * wanted * wanted * inverse;
        force.x += dx * inverse * size;
        force.y += dy * inverse * size;
    } else {
        const float size = __fdividef(other.z, square);  // wanted * wanted is multiplied in at the end
        force.x += dx * size;
        force.y += dy * size;
    }
}
// x and y of a node, and its weight.
template <Push HOW>
__global__ void __launch_bounds__(DRAWN) push_away(const float *__restrict__ xs, const float *__restrict__ ys, const float *__restrict__ weights, float2 *__restrict__ forces, float wanted, int nodes) {
    __shared__ float3 held[DRAWN];
    const int i = blockIdx.x * DRAWN + threadIdx.x;
    const float2 own = make_float2(xs[i], ys[i]);
    float2 force = make_float2(0.f, 0.f);
    for (int first = 0; first < nodes; first += DRAWN) {
        const int j = first + threadIdx.x;
        held[threadIdx.x] = make_float3(xs[j], ys[j], weights[j]);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < DRAWN; ++k) push<HOW>(force, own, held[k], wanted);
        __syncthreads();
    }
    if (HOW == Push::NO_ROOT) force.x *= wanted * wanted, force.y *= wanted * wanted;
    forces[i] = force;
}

Study drawing("drawn_graph_root_and_quotients_each_pair", "graphs", 132 * 256, "how 33792 nodes of a graph push one another away, each weighted, for a drawing of it",
    "a precise root and three precise quotients for each pair of nodes",
    {{"one_root", "one fast reciprocal root a pair", {"expensive_math"}}, {"no_root", "the root cancels: one fast quotient a pair", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const float *xs = b.random<float>(n, -50.0, 50.0), *ys = b.random<float>(n, -50.0, 50.0), *weights = b.random<float>(n, 0.5, 2.0);
        float2 *forces = reinterpret_cast<float2 *>(b.output<float>(n * 2));
        const int nodes = static_cast<int>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(push_away<Push::AS_WRITTEN>, n / DRAWN, DRAWN, 0, xs, ys, weights, forces, 0.7f, nodes)},
            {"one_root", launch(push_away<Push::ONE_ROOT>, n / DRAWN, DRAWN, 0, xs, ys, weights, forces, 0.7f, nodes)},
            {"no_root", launch(push_away<Push::NO_ROOT>, n / DRAWN, DRAWN, 0, xs, ys, weights, forces, 0.7f, nodes)}};
    });

// --- how unusual points are: their distance from the mean in terms of the covariance ---

constexpr int MOST_FEATURES = 32, FEATURES = 20;

// `factor` is the covariance's lower triangle, row by row, with reciprocals on its diagonal. Features lie one behind the other.
__global__ void __launch_bounds__(128) outlyingness(const float *__restrict__ points, const float *__restrict__ mean, const float *__restrict__ factor, float *__restrict__ out, int features, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    float solved[MOST_FEATURES];
    float sum = 0.f;
    for (int row = 0; row < features; ++row) {
        float left = points[static_cast<size_t>(row) * count + i] - mean[row];
        for (int k = 0; k < row; ++k) left -= factor[row * features + k] * solved[k];
        solved[row] = left * factor[row * features + row];
        sum += solved[row] * solved[row];
    }
    out[i] = sum;
}
template <int SIZE>
__global__ void __launch_bounds__(128) outlyingness_of(const float *__restrict__ points, const float *__restrict__ mean, const float *__restrict__ factor, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    float solved[SIZE];
    float sum = 0.f;
#pragma unroll
    for (int row = 0; row < SIZE; ++row) {
        float left = points[static_cast<size_t>(row) * count + i] - mean[row];
#pragma unroll
        for (int k = 0; k < row; ++k) left -= factor[row * SIZE + k] * solved[k];
        solved[row] = left * factor[row * SIZE + row];
        sum += solved[row] * solved[row];
    }
    out[i] = sum;
}
__global__ void __launch_bounds__(128) outlyingness_shared(const float *__restrict__ points, const float *__restrict__ mean, const float *__restrict__ factor, float *__restrict__ out, int features, int count) {
    extern __shared__ float strips[];
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    float *solved = strips + threadIdx.x;
    float sum = 0.f;
    for (int row = 0; row < features; ++row) {
        float left = points[static_cast<size_t>(row) * count + i] - mean[row];
        for (int k = 0; k < row; ++k) left -= factor[row * features + k] * solved[k * 128];
        const float own = left * factor[row * features + row];
        solved[row * 128] = own;
        sum += own * own;
    }
    out[i] = sum;
}

Study unusual("outlying_points_solved_in_local", "statistics", 1500000, "distance of 1500000 points of 20 features from the mean, by a triangular system with the covariance's factor",
    "how many features there are is an argument: what is solved lies in local memory",
    {{"known_size", "a template of the number of features, all in registers", {"local_memory"}}, {"in_shared", "a strip of shared memory a thread", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> factor(FEATURES * FEATURES), mean(FEATURES);
        for (int i = 0; i < FEATURES; ++i) {
            mean[i] = 0.05f * static_cast<float>(i % 7);
            for (int j = 0; j <= i; ++j) factor[i * FEATURES + j] = i == j ? 1.f / (0.8f + 0.02f * static_cast<float>(i)) : static_cast<float>(hash(i * 32 + j) % 200) / 1000.f - 0.1f;
        }
        const float *points = b.random<float>(n * FEATURES), *of = b.copy(factor), *middle = b.copy(mean);
        float *out = b.output<float>(n);
        const int count = static_cast<int>(n);
        return {{"flawed", launch(outlyingness, blocks(n, 128), 128, 0, points, middle, of, out, FEATURES, count)},
            {"known_size", launch(outlyingness_of<FEATURES>, blocks(n, 128), 128, 0, points, middle, of, out, count)},
            {"in_shared", launch(outlyingness_shared, blocks(n, 128), 128, FEATURES * 128 * sizeof(float), points, middle, of, out, FEATURES, count)}};
    });

// --- brightness of the sky: the median of each row's pixels, bit by bit ---

constexpr int PIXELS = 1024;

__device__ __forceinline__ unsigned as_key(float f) {
    const unsigned u = __float_as_uint(f);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}
__device__ __forceinline__ float of_key(unsigned u) { return __uint_as_float(u & 0x80000000u ? u & 0x7fffffffu : ~u); }

// The largest key that at most half of the row's pixels lie below.
__global__ void __launch_bounds__(256) sky_medians(const float *__restrict__ rows, float *__restrict__ medians) {
    __shared__ int below[256];
    unsigned keys[4];
    for (int k = 0; k < 4; ++k) keys[k] = as_key(rows[static_cast<size_t>(blockIdx.x) * PIXELS + k * 256 + threadIdx.x]);
    unsigned found = 0;
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned tried = found | 1u << bit;
        int count = 0;
        for (int k = 0; k < 4; ++k) count += keys[k] < tried;
        below[threadIdx.x] = count;
        __syncthreads();
        for (int half = 128; half; half /= 2) {
            if (threadIdx.x < half) below[threadIdx.x] += below[threadIdx.x + half];
            __syncthreads();
        }
        if (below[0] <= PIXELS / 2) found = tried;
        __syncthreads();
    }
    if (threadIdx.x == 0) medians[blockIdx.x] = of_key(found);
}
// Warps add up for themselves; one meeting a bit.
__global__ void __launch_bounds__(256) sky_medians_warps(const float *__restrict__ rows, float *__restrict__ medians) {
    __shared__ int below[2][8];
    unsigned keys[4];
    for (int k = 0; k < 4; ++k) keys[k] = as_key(rows[static_cast<size_t>(blockIdx.x) * PIXELS + k * 256 + threadIdx.x]);
    unsigned found = 0;
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned tried = found | 1u << bit;
        int count = 0;
        for (int k = 0; k < 4; ++k) count += keys[k] < tried;
        count = __reduce_add_sync(~0u, count);
        if (threadIdx.x % 32 == 0) below[bit % 2][threadIdx.x / 32] = count;
        __syncthreads();
        count = 0;
        for (int warp = 0; warp < 8; ++warp) count += below[bit % 2][warp];
        if (count <= PIXELS / 2) found = tried;
    }
    if (threadIdx.x == 0) medians[blockIdx.x] = of_key(found);
}
// A warp a row, 32 pixels a lane.
__global__ void __launch_bounds__(128) sky_medians_warp_a_row(const float *__restrict__ rows, float *__restrict__ medians) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    const float4 *own = reinterpret_cast<const float4 *>(rows + static_cast<size_t>(row) * PIXELS);
    unsigned keys[32];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        const float4 v = own[k * 32 + lane];
        keys[4 * k] = as_key(v.x), keys[4 * k + 1] = as_key(v.y), keys[4 * k + 2] = as_key(v.z), keys[4 * k + 3] = as_key(v.w);
    }
    unsigned found = 0;
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned tried = found | 1u << bit;
        int count = 0;
#pragma unroll
        for (int k = 0; k < 32; ++k) count += keys[k] < tried;
        if (__reduce_add_sync(~0u, count) <= PIXELS / 2) found = tried;
    }
    if (lane == 0) medians[row] = of_key(found);
}

Study sky("sky_medians_a_tree_for_each_bit", "astronomy", 16384, "median of each of 16384 rows of 1024 pixels, found bit by bit by counting", "for each of 32 bits the counts of 256 threads are added by a tree, ten meetings of the block",
    {{"warps", "counts added within warps, one meeting a bit", {"barriers"}}, {"warp_a_row", "a warp a row, no meetings", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> rows(n * PIXELS);
        for (size_t i = 0; i < rows.size(); ++i) {
            const unsigned drawn = hash(static_cast<unsigned>(i));
            rows[i] = 180.f + 0.01f * static_cast<float>(i / PIXELS % 997) + static_cast<float>(drawn % 4096) / 300.f + (drawn % 61 == 0 ? 900.f : 0.f) - (drawn % 67 == 0 ? 400.f : 0.f);
        }
        const float *in = b.copy(rows);
        float *medians = b.output<float>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(sky_medians, n, 256, 0, in, medians)}, {"warps", launch(sky_medians_warps, n, 256, 0, in, medians)}, {"warp_a_row", launch(sky_medians_warp_a_row, n / 4, 128, 0, in, medians)}};
    });

// --- jets: what lies nearest to each particle of a collision ---

struct Particles {
    const float *__restrict__ rapidity, *__restrict__ azimuth, *__restrict__ weight;  // weight: of the momentum across the beam
};

// The particle's smallest distance, from others first ... end - 1 of its event.
template <int THREADS>
__device__ __forceinline__ float nearest_in(Particles p, float3 (&held)[THREADS], int first, int end, int i, float y, float phi, float weight) {
    float least = weight;  // the distance from the beam
    for (int from = first; from < end; from += THREADS) {
        __syncthreads();
        const int j = from + threadIdx.x;
        if (j < end) held[threadIdx.x] = make_float3(p.rapidity[j], p.azimuth[j], p.weight[j]);
        __syncthreads();
        const int count = min(THREADS, end - from);
        for (int k = 0; k < count; ++k) {
            const float3 other = held[k];
            const float dy = y - other.x, off = fabsf(phi - other.y), turn = fminf(off, 6.2831853f - off);
            const float distance = fminf(weight, other.z) * (dy * dy + turn * turn) * 6.25f;
            if (from + k != i) least = fminf(least, distance);
        }
    }
    return least;
}
// A block an event.
__global__ void __launch_bounds__(128) nearest_particles(Particles p, const int *__restrict__ starts, const int *__restrict__ order, float *__restrict__ out) {
    __shared__ float3 held[128];
    const int event = order ? order[blockIdx.x] : blockIdx.x, first = starts[event], end = starts[event + 1];
    for (int from = first; from < end; from += 128) {
        const int i = from + threadIdx.x;
        const bool inside = i < end;
        const float least = nearest_in<128>(p, held, first, end, i, inside ? p.rapidity[i] : 0.f, inside ? p.azimuth[i] : 0.f, inside ? p.weight[i] : 0.f);
        if (inside) out[i] = least;
    }
}
// A block 128 particles of an event.
__global__ void __launch_bounds__(128) nearest_particles_tiles(Particles p, const int *__restrict__ starts, const int2 *__restrict__ tiles, float *__restrict__ out) {
    __shared__ float3 held[128];
    const int2 tile = tiles[blockIdx.x];
    const int first = starts[tile.x], end = starts[tile.x + 1], i = tile.y + threadIdx.x;
    const bool inside = i < end;
    const float least = nearest_in<128>(p, held, first, end, i, inside ? p.rapidity[i] : 0.f, inside ? p.azimuth[i] : 0.f, inside ? p.weight[i] : 0.f);
    if (inside) out[i] = least;
}

Study jets("jet_distances_an_event_a_block", "physics", 2500, "the smallest distance of each particle from others of its collision, 2500 collisions of 40 to 2000 particles",
    "a block does a whole collision, as they were recorded: few have most of the pairs, and some of these come last",
    {{"longest_first", "the collisions with most particles first", {"workload_imbalance"}}, {"tiles", "a block 128 particles of a collision", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(n + 1), order(n);
        std::vector<int2> tiles;
        for (long e = 0; e < n; ++e) {
            const float unit = static_cast<float>(hash(static_cast<unsigned>(e + 17)) >> 8) / 16777216.f, square = unit * unit;
            const int size = 40 + static_cast<int>(1960.f * square * square);
            starts[e + 1] = starts[e] + size;
            order[e] = static_cast<int>(e);
            for (int at = 0; at < size; at += 128) tiles.push_back(make_int2(static_cast<int>(e), starts[e] + at));
        }
        std::stable_sort(order.begin(), order.end(), [&](int l, int r) { return starts[l + 1] - starts[l] > starts[r + 1] - starts[r]; });
        const long all = starts[n];
        const Particles p{b.random<float>(all, -4.0, 4.0), b.random<float>(all, 0.0, 6.283), b.random<float>(all, 0.01, 1.0)};
        const int *from = b.copy(starts), *sorted = b.copy(order);
        const int2 *parts = b.copy(tiles);
        float *out = b.output<float>(all);
        return {{"flawed", launch(nearest_particles, n, 128, 0, p, from, static_cast<const int *>(nullptr), out)}, {"longest_first", launch(nearest_particles, n, 128, 0, p, from, sorted, out)},
            {"tiles", launch(nearest_particles_tiles, static_cast<unsigned>(tiles.size()), 128, 0, p, from, parts, out)}};
    });

// --- back along lines of cells, five unknowns each ---

constexpr int CELLS = 32, UNKNOWNS = 5, RECORD = 32;

// A cell's record: five rows of five coefficients and the right side; two words are left over. Lines lie one behind the other.
__global__ void __launch_bounds__(128) back_along_lines(const float *__restrict__ records, float *__restrict__ out, int lines) {
    const int line = blockIdx.x * 128 + threadIdx.x;
    if (line >= lines) return;
    const float *at = records + static_cast<size_t>(line) * CELLS * RECORD;
    float next[UNKNOWNS] = {};
    for (int cell = CELLS - 1; cell >= 0; --cell) {
        const float *rows = at + cell * RECORD;
        float x[UNKNOWNS];
#pragma unroll
        for (int i = 0; i < UNKNOWNS; ++i) {
            x[i] = rows[i * 6 + 5];
#pragma unroll
            for (int j = 0; j < UNKNOWNS; ++j) x[i] -= rows[i * 6 + j] * next[j];
        }
#pragma unroll
        for (int i = 0; i < UNKNOWNS; ++i) next[i] = x[i], out[static_cast<size_t>(cell * UNKNOWNS + i) * lines + line] = x[i];
    }
}
// Each word of a cell for all lines side by side.
__global__ void __launch_bounds__(128) back_along_lines_planes(const float *__restrict__ planes, float *__restrict__ out, int lines) {
    const int line = blockIdx.x * 128 + threadIdx.x;
    if (line >= lines) return;
    float next[UNKNOWNS] = {};
    for (int cell = CELLS - 1; cell >= 0; --cell) {
        const float *words = planes + static_cast<size_t>(cell) * 6 * UNKNOWNS * lines + line;
        float x[UNKNOWNS];
#pragma unroll
        for (int i = 0; i < UNKNOWNS; ++i) {
            x[i] = words[static_cast<size_t>(i * 6 + 5) * lines];
#pragma unroll
            for (int j = 0; j < UNKNOWNS; ++j) x[i] -= words[static_cast<size_t>(i * 6 + j) * lines] * next[j];
        }
#pragma unroll
        for (int i = 0; i < UNKNOWNS; ++i) next[i] = x[i], out[static_cast<size_t>(cell * UNKNOWNS + i) * lines + line] = x[i];
    }
}
// Five of eight lanes a line, each with a row of its own; the block's solutions meet in shared memory before they are stored.
__global__ void __launch_bounds__(256) back_along_lines_in_lanes(const float *__restrict__ records, float *__restrict__ out, int lines) {
    __shared__ float held[CELLS * UNKNOWNS][33];
    const int own = threadIdx.x / 8, row = min(static_cast<int>(threadIdx.x % 8), UNKNOWNS - 1), first = blockIdx.x * 32;
    const float *at = records + static_cast<size_t>(min(first + own, lines - 1)) * CELLS * RECORD + row * 6;
    float x = 0.f;
#pragma unroll 4
    for (int cell = CELLS - 1; cell >= 0; --cell) {
        const float2 *words = reinterpret_cast<const float2 *>(at + cell * RECORD);
        const float2 a = words[0], c = words[1], e = words[2];
        const float x0 = __shfl_sync(~0u, x, 0, 8), x1 = __shfl_sync(~0u, x, 1, 8), x2 = __shfl_sync(~0u, x, 2, 8), x3 = __shfl_sync(~0u, x, 3, 8), x4 = __shfl_sync(~0u, x, 4, 8);
        x = e.y - a.x * x0 - a.y * x1 - c.x * x2 - c.y * x3 - e.x * x4;
        if (threadIdx.x % 8 < UNKNOWNS) held[cell * UNKNOWNS + row][own] = x;
    }
    __syncthreads();
    const int lane = threadIdx.x % 32;
    if (first + lane < lines)
        for (int k = threadIdx.x / 32; k < CELLS * UNKNOWNS; k += 8) out[static_cast<size_t>(k) * lines + first + lane] = held[k][lane];
}

Study implicit("implicit_lines_records_of_five_rows", "simulation", 256 * 256, "back along 65536 lines of 32 cells with five unknowns each, a block of 5 x 5 coefficients a cell",
    "a thread a line: its cells' records lie 4 KB from the next thread's, each load of a warp is from 32 lines of memory",
    {{"planes", "each word of a cell for all lines side by side", {"uncoalesced_access"}}, {"in_lanes", "a row a lane, eight lanes a line", {"uncoalesced_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> records(static_cast<size_t>(n) * CELLS * RECORD), planes(static_cast<size_t>(n) * CELLS * 6 * UNKNOWNS);
        for (long line = 0; line < n; ++line)
            for (int cell = 0; cell < CELLS; ++cell)
                for (int k = 0; k < 6 * UNKNOWNS; ++k) {
                    const float unit = static_cast<float>(hash(static_cast<unsigned>((line * CELLS + cell) * RECORD + k)) >> 8) / 16777216.f;
                    const float value = k % 6 == 5 ? unit : 0.3f * (unit - 0.4f);
                    records[(line * CELLS + cell) * RECORD + k] = value;
                    planes[(static_cast<size_t>(cell) * 6 * UNKNOWNS + k) * n + line] = value;
                }
        const float *in = b.copy(records), *apart = b.copy(planes);
        float *out = b.output<float>(static_cast<size_t>(n) * CELLS * UNKNOWNS);
        const int lines = static_cast<int>(n);
        return {{"flawed", launch(back_along_lines, blocks(n, 128), 128, 0, in, out, lines)}, {"planes", launch(back_along_lines_planes, blocks(n, 128), 128, 0, apart, out, lines)},
            {"in_lanes", launch(back_along_lines_in_lanes, blocks(n, 32), 256, 0, in, out, lines)}};
    });

// --- long echoes by parts: spectra of past blocks times spectra of an echo's parts ---

constexpr int PARTS = 24, BINS = 512;

// Block t of the output is the sum over parts p of block t - p of the input times part p of the echo; 23 silent blocks come first.
template <int EACH>
__global__ void __launch_bounds__(128) echo(const float2 *__restrict__ input, const float2 *__restrict__ parts, float2 *__restrict__ out) {
    const int bin = blockIdx.x * 128 + threadIdx.x;
    const int first = blockIdx.y * EACH;
    float2 sum[EACH] = {}, past[EACH];
#pragma unroll
    for (int k = 1; k < EACH; ++k) past[k - 1] = input[static_cast<size_t>(first + PARTS - 1 + k) * BINS + bin];
#pragma unroll 4
    for (int p = 0; p < PARTS; ++p) {
        const float2 h = parts[p * BINS + bin];
#pragma unroll
        for (int k = EACH - 1; k; --k) past[k] = past[k - 1];
        past[0] = input[static_cast<size_t>(first + PARTS - 1 - p) * BINS + bin];
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            sum[k].x += past[k].x * h.x - past[k].y * h.y;
            sum[k].y += past[k].x * h.y + past[k].y * h.x;
        }
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) out[static_cast<size_t>(first + k) * BINS + bin] = sum[k];
}

Study echoes("long_echo_parts_again_for_each_block", "sound", 16384, "spectra of 16384 blocks of sound times those of an echo's 24 parts, 512 bins each",
    "a thread a bin of one block: for each product it loads both the input's and the echo's bin",
    {{"four_blocks", "four blocks a thread: a part serves four, an input moves on in registers", {"redundant_loads"}}, {"eight_blocks", "eight blocks a thread", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const float2 *input = reinterpret_cast<const float2 *>(b.random<float>((n + PARTS - 1) * BINS * 2)), *parts = reinterpret_cast<const float2 *>(b.random<float>(PARTS * BINS * 2));
        float2 *out = reinterpret_cast<float2 *>(b.output<float>(n * BINS * 2));
        return {{"flawed", launch(echo<1>, dim3(BINS / 128, n), 128, 0, input, parts, out)}, {"four_blocks", launch(echo<4>, dim3(BINS / 128, n / 4), 128, 0, input, parts, out)},
            {"eight_blocks", launch(echo<8>, dim3(BINS / 128, n / 8), 128, 0, input, parts, out)}};
    });

// --- sound: four tracks to one ---

__global__ void __launch_bounds__(256) mix_tracks(const float4 *__restrict__ a, const float4 *__restrict__ c, const float4 *__restrict__ d, const float4 *__restrict__ e, float4 *__restrict__ out, float4 gains, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 p = a[i], q = c[i], r = d[i], s = e[i];
    out[i] = make_float4(gains.x * p.x + gains.y * q.x + gains.z * r.x + gains.w * s.x, gains.x * p.y + gains.y * q.y + gains.z * r.y + gains.w * s.y,
        gains.x * p.z + gains.y * q.z + gains.z * r.z + gains.w * s.z, gains.x * p.w + gains.y * q.w + gains.z * r.w + gains.w * s.w);
}

Study mix("sound_four_tracks_to_one", "sound", 10000000, "four tracks of 10000000 samples mixed to one", "", {}, [](Buffers &b, long n) -> Sides {
    auto track = [&] { return reinterpret_cast<const float4 *>(b.random<float>(n)); };
    const float4 *a = track(), *c = track(), *d = track(), *e = track();
    float4 *out = reinterpret_cast<float4 *>(b.output<float>(n));
    const int count = static_cast<int>(n / 4);
    return {{"sound", launch(mix_tracks, blocks(count, 256), 256, 0, a, c, d, e, out, make_float4(0.4f, 0.3f, 0.2f, 0.1f), count)}};
});

}  // namespace
