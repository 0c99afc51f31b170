// Mixtures of oil and gas, orbits and whirls.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- what a fluid's cells are made of, by the cubic equation of Peng and Robinson ---

constexpr int CELLS = 1024;  // that a block puts in order

struct Cubic {
    float attraction, volume, middle, q, r;  // middle: a third of the sum of the roots
    __host__ __device__ __forceinline__ Cubic(float pressure, float temperature) {
        const float alpha = 1.0f + 0.4f * (1.0f - sqrtf(temperature));
        attraction = 0.45724f * alpha * alpha * pressure / (temperature * temperature);
        volume = 0.0778f * pressure / temperature;
        const float square = volume - 1.0f, linear = attraction - volume * (3.0f * volume + 2.0f), constant = volume * (volume * (1.0f + volume) - attraction);
        middle = square * (-1.0f / 3.0f);
        q = (square * square - 3.0f * linear) * (1.0f / 9.0f);
        r = (square * (2.0f * square * square - 9.0f * linear) + 27.0f * constant) * (1.0f / 54.0f);
    }
    __host__ __device__ __forceinline__ bool three() const { return r * r < q * q * q; }
};
__device__ __forceinline__ float fugacity(const Cubic &c, float z) {
    return z - 1.0f - logf(z - c.volume) - c.attraction / (2.8284271f * c.volume) * logf((z + 2.4142136f * c.volume) / (z - 0.4142136f * c.volume));
}
// The root of the lower energy and the logarithm of its fugacity.
__device__ __forceinline__ float2 stable(const Cubic &c) {
    if (c.three()) {
        const float root = sqrtf(c.q), third = acosf(c.r / (c.q * root)) * (1.0f / (3.0f * 3.14159265f));
        const float gas = c.middle - 2.0f * root * cospif(third + 2.0f / 3.0f), liquid = c.middle - 2.0f * root * cospif(third);
        const float of_gas = fugacity(c, gas);
        if (liquid <= c.volume) return make_float2(gas, of_gas);
        const float of_liquid = fugacity(c, liquid);
        return of_liquid < of_gas ? make_float2(liquid, of_liquid) : make_float2(gas, of_gas);
    }
    const float s = -copysignf(cbrtf(fabsf(c.r) + sqrtf(c.r * c.r - c.q * c.q * c.q)), c.r), z = c.middle + s + c.q / s;
    return make_float2(z, fugacity(c, z));
}
__global__ void __launch_bounds__(256) compressibility(const float2 *__restrict__ cells, float2 *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float2 cell = cells[i];
    out[i] = stable(Cubic(cell.x, cell.y));
}
// Cells of three roots are listed from the front, those of one from the back.
__global__ void __launch_bounds__(256) compressibility_listed(const float2 *__restrict__ cells, float2 *__restrict__ out) {
    __shared__ unsigned short list[CELLS];
    __shared__ int front, back;
    const int first = blockIdx.x * CELLS, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) front = 0, back = CELLS;
    __syncthreads();
    for (int k = threadIdx.x; k < CELLS; k += 256) {
        const float2 cell = cells[first + k];
        const bool three = Cubic(cell.x, cell.y).three();
        const unsigned who = __ballot_sync(~0u, three), before = (1u << lane) - 1;
        int start = 0;
        if (lane == 0) start = atomicAdd(&front, __popc(who));
        if (lane == 1) start = atomicSub(&back, __popc(~who));
        const int of_three = __shfl_sync(~0u, start, 0), of_one = __shfl_sync(~0u, start, 1);
        list[three ? of_three + __popc(who & before) : of_one - 1 - __popc(~who & before)] = k;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < CELLS; k += 256) {
        const int i = first + list[k];
        const float2 cell = cells[i];
        out[i] = stable(Cubic(cell.x, cell.y));
    }
}
__global__ void __launch_bounds__(256) compressibility_back(const float2 *sorted, const int *order, float2 *out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) out[order[i]] = sorted[i];
}

Study phases("fluid_cells_of_one_or_three_roots_in_a_warp", "simulation", 8388608, "roots and fugacities of 8388608 cells by a cubic equation of state",
    "cells with three roots take angles, those with one cube roots, and both are in every warp",
    {{"listed", "a block lists its cells by the number of their roots", {"branch_divergence"}}, {"sorted", "cells are kept in the order of their roots", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float2> cells(n), sorted_cells(n);
        std::vector<int> order(n);
        for (unsigned k = 0; k < n; k++) cells[k] = make_float2(0.1f + 0.8f * (hash(k) >> 8) / 16777216.0f, 0.7f + 0.5f * (hash(k + 123456789) >> 8) / 16777216.0f), order[k] = k;
        std::stable_partition(order.begin(), order.end(), [&](int k) { return Cubic(cells[k].x, cells[k].y).three(); });
        for (long k = 0; k < n; k++) sorted_cells[k] = cells[order[k]];
        const float2 *in = b.copy(cells), *sorted_in = b.copy(sorted_cells);
        const int *back = b.copy(order);
        float2 *out = reinterpret_cast<float2 *>(b.output<float>(2 * n)), *sorted = b.allocate<float2>(n);
        const unsigned grid = blocks(n, 256);
        return {{"flawed", launch(compressibility, grid, 256, 0, in, out, n)}, {"listed", launch(compressibility_listed, blocks(n, CELLS), 256, 0, in, out)},
            Side{"sorted", launch(compressibility, grid, 256, 0, sorted_in, sorted, n), {}, 1, launch(compressibility_back, grid, 256, 0, sorted, back, out, n)}};
    });

// --- an orbit as Chebyshev series, at many times ---

constexpr int PARTS = 6, DEGREE = 2048, TIMES = 128;  // position and velocity

__device__ __forceinline__ void load_series(float *series, const float *__restrict__ from, int threads) {
    for (int k = threadIdx.y * TIMES + threadIdx.x; k < PARTS * DEGREE / 4; k += threads) reinterpret_cast<float4 *>(series)[k] = reinterpret_cast<const float4 *>(from)[k];
    __syncthreads();
}
// Clenshaw's recurrence, from the highest degree down.
__device__ __forceinline__ float series_at(const float *series, float x) {
    float above = 0.0f, own = 0.0f;
#pragma unroll 16
    for (int k = DEGREE - 1; k > 0; k--) {
        const float next = fmaf(2.0f * x, own, series[k] - above);
        above = own, own = next;
    }
    return fmaf(x, own, series[0] - above);
}
__global__ void __launch_bounds__(TIMES) orbit(const float *__restrict__ from, const float *__restrict__ times, float *__restrict__ out, int count) {
    extern __shared__ __align__(16) float series[];
    load_series(series, from, TIMES);
    const int i = blockIdx.x * TIMES + threadIdx.x;
    const float x = times[i];
#pragma unroll 1
    for (int part = 0; part < PARTS; part++) out[part * count + i] = series_at(series + part * DEGREE, x);
}
// A part a row of threads.
__global__ void __launch_bounds__(TIMES *PARTS) orbit_parts(const float *__restrict__ from, const float *__restrict__ times, float *__restrict__ out, int count) {
    extern __shared__ __align__(16) float series[];
    load_series(series, from, TIMES * PARTS);
    const int i = blockIdx.x * TIMES + threadIdx.x;
    out[threadIdx.y * count + i] = series_at(series + threadIdx.y * DEGREE, times[i]);
}
// All parts of a degree together.
__global__ void __launch_bounds__(TIMES) orbit_together(const float *__restrict__ from, const float *__restrict__ times, float *__restrict__ out, int count) {
    extern __shared__ __align__(16) float series[];
    load_series(series, from, TIMES);
    const int i = blockIdx.x * TIMES + threadIdx.x;
    const float x = times[i];
    float above[PARTS] = {}, own[PARTS] = {};
#pragma unroll 8
    for (int k = DEGREE - 1; k > 0; k--)
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const float next = fmaf(2.0f * x, own[part], series[part * DEGREE + k] - above[part]);
            above[part] = own[part], own[part] = next;
        }
#pragma unroll
    for (int part = 0; part < PARTS; part++) out[part * count + i] = fmaf(x, own[part], series[part * DEGREE] - above[part]);
}

Study orbits("orbit_series_one_part_after_the_other", "astronomy", 132 * TIMES, "position and velocity at 16896 times from six Chebyshev series of degree 2047",
    "each step of a recurrence waits for the last, one series after the other, four warps a multiprocessor",
    {{"together", "a step of all six series at a time", {"instruction_latency"}}, {"parts", "a thread for each part of a time", {"instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> series(PARTS * DEGREE), times(n);
        for (unsigned k = 0; k < series.size(); k++) series[k] = ((hash(k) >> 8) / 8388608.0f - 1.0f) / (1.0f + k % DEGREE);
        for (unsigned k = 0; k < n; k++) times[k] = 0.95f * ((hash(k + 31415926) >> 8) / 8388608.0f - 1.0f);
        const float *from = b.copy(series), *at = b.copy(times);
        float *out = b.output<float>(PARTS * n);
        const size_t shared = PARTS * DEGREE * sizeof(float);
        return {{"flawed", launch(orbit, n / TIMES, TIMES, shared, from, at, out, n)}, {"together", launch(orbit_together, n / TIMES, TIMES, shared, from, at, out, n)},
            {"parts", launch(orbit_parts, n / TIMES, dim3(TIMES, PARTS), shared, from, at, out, n)}};
    });

// --- how whirls carry one another along: without a flaw ---

constexpr int WHIRLS = 4096, TILE = 256;

__global__ void __launch_bounds__(128) whirls(const float4 *__restrict__ sources, const float2 *__restrict__ places, float2 *__restrict__ speeds, float core) {
    __shared__ float4 tile[TILE];
    const int i = blockIdx.x * 128 + threadIdx.x;
    const float2 own = places[i];
    float2 speed = {0.0f, 0.0f};
    for (int first = 0; first < WHIRLS; first += TILE) {
        for (int k = threadIdx.x; k < TILE; k += 128) tile[k] = sources[first + k];
        __syncthreads();
#pragma unroll 16
        for (int k = 0; k < TILE; k++) {
            const float4 source = tile[k];
            const float dx = own.x - source.x, dy = own.y - source.y, pull = __fdividef(source.z, fmaf(dx, dx, fmaf(dy, dy, core)));
            speed.x = fmaf(-dy, pull, speed.x), speed.y = fmaf(dx, pull, speed.y);
        }
        __syncthreads();
    }
    speeds[i] = speed;
}

Study blobs("sound_whirls", "fluids", 132 * 512, "how 4096 whirls move 67584 points", "", {}, [](Buffers &b, long n) -> Sides {
    return {{"sound", launch(whirls, n / 128, 128, 0, reinterpret_cast<const float4 *>(b.random<float>(4 * WHIRLS)), reinterpret_cast<const float2 *>(b.random<float>(2 * n)), reinterpret_cast<float2 *>(b.output<float>(2 * n)), 1e-4f)}};
});

}  // namespace
