// Finance, physics, geometry, sorting and scans.
#include "../pairs/pair.cuh"

namespace {

// --- paths of a price ---

__device__ __forceinline__ float step_price(float s, unsigned &state) {
    state = state * 1664525u + 1013904223u;
    unsigned h = state ^ state >> 15;
    float z = ((h & 255) + (h >> 8 & 255) + (h >> 16 & 255) + (h >> 24)) * (1.f / 148.f) - 3.446f;
    return s * (1.0002f + 0.01f * z);
}
__global__ void write_paths(float *out, int steps, int n) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    unsigned state = pairs::hash(p);
    float s = 100.f;
    for (int t = 0; t < steps; t++) {
        s = step_price(s, state);
        out[p * steps + t] = s;
    }
}
__global__ void __launch_bounds__(128) write_paths_tile(float *__restrict__ out, int steps) {
    __shared__ float tile[4][32][33];
    int w = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.x * 128 + w * 32;
    unsigned state = pairs::hash(first + lane);
    float s = 100.f;
    for (int t0 = 0; t0 < steps; t0 += 32) {
#pragma unroll 8
        for (int t = 0; t < 32; ++t) tile[w][lane][t] = s = step_price(s, state);
        __syncwarp();
#pragma unroll 8
        for (int p = 0; p < 32; ++p) out[(first + p) * steps + t0 + lane] = tile[w][p][lane];
        __syncwarp();
    }
}
__global__ void write_paths_four(float4 *__restrict__ out, int steps, int n) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    unsigned state = pairs::hash(p);
    float s = 100.f;
    for (int t = 0; t < steps / 4; ++t) {
        float4 v;
        v.x = s = step_price(s, state), v.y = s = step_price(s, state), v.z = s = step_price(s, state), v.w = s = step_price(s, state);
        out[p * (steps / 4) + t] = v;
    }
}
Study paths("price_paths_written_by_row", "finance", 1 << 19, "524288 price paths of 64 steps, written path by path",
    "a thread a path writes its steps one by one, lanes 256 bytes apart",
    {{"tile", "32 steps of 32 paths in a tile of shared memory, written along the paths", {"uncoalesced_access"}}, {"four", "four steps a store", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *out = b.output<float>(n * 64);
        b.tolerance = 1e-3;
        int m = n;
        return {{"flawed", launch(write_paths, n / 128, 128, 0, out, 64, m)}, {"tile", launch(write_paths_tile, n / 128, 128, 0, out, 64)}, {"four", launch(write_paths_four, n / 128, 128, 0, (float4 *)out, 64, m)}};
    });

// --- low-discrepancy points ---

constexpr int DIMENSIONS = 8;
__global__ void sobol(const unsigned *direction, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int d = 0; d < DIMENSIONS; d++) {
        unsigned x = 0;
        for (int b = 0; b < 32; b++)
            if (i >> b & 1) x ^= direction[d * 32 + b];
        out[d * n + i] = x * 2.3283064e-10f;
    }
}
__global__ void __launch_bounds__(128) sobol_sixteen(const unsigned *__restrict__ direction, float *__restrict__ out, int n, int log_part) {
    int i = blockIdx.x * 128 + threadIdx.x;
    for (int d = 0; d < DIMENSIONS; ++d) {
        unsigned low = 0, high[4];
        for (int b = 0; b < log_part; ++b) low ^= direction[d * 32 + b] & -(i >> b & 1);
#pragma unroll
        for (int b = 0; b < 4; ++b) high[b] = direction[d * 32 + log_part + b];
#pragma unroll
        for (int k = 0; k < 16; ++k)
            out[d * n + (k << log_part) + i] = (low ^ (k & 1 ? high[0] : 0) ^ (k & 2 ? high[1] : 0) ^ (k & 4 ? high[2] : 0) ^ (k & 8 ? high[3] : 0)) * 2.3283064e-10f;
    }
}
__global__ void __launch_bounds__(256) sobol_together(const uint4 *__restrict__ by_bit, float *__restrict__ out, int n) {
    __shared__ uint4 kept[64];
    if (threadIdx.x < 64) kept[threadIdx.x] = by_bit[threadIdx.x];
    __syncthreads();
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned x[8] = {};
    for (int b = 0; n >> b; ++b) {
        unsigned mask = -(i >> b & 1);
        uint4 p = kept[2 * b], q = kept[2 * b + 1];
        x[0] ^= p.x & mask, x[1] ^= p.y & mask, x[2] ^= p.z & mask, x[3] ^= p.w & mask;
        x[4] ^= q.x & mask, x[5] ^= q.y & mask, x[6] ^= q.z & mask, x[7] ^= q.w & mask;
    }
#pragma unroll
    for (int d = 0; d < 8; ++d) out[d * n + i] = x[d] * 2.3283064e-10f;
}
Study sobols("sobol_all_bits_again", "finance", 1 << 22, "four million Sobol points of eight dimensions",
    "for each dimension all 32 bits of the point's number are tested, each with a load",
    {{"sixteen", "16 points a thread that share their low bits", {"integer_arithmetic", "redundant_loads"}}, {"together", "each bit once for all dimensions, directions in shared memory, no more bits than there are", {"integer_arithmetic", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> direction(256), by_bit(256);
        for (int d = 0; d < 8; ++d)
            for (int k = 0; k < 32; ++k) direction[d * 32 + k] = by_bit[k * 8 + d] = (pairs::hash(d * 32 + k) | 1u) << (31 - k);
        unsigned *a = b.copy(direction), *c = b.copy(by_bit);
        float *out = b.output<float>(8 * n);
        int m = n;
        return {{"flawed", launch(sobol, n / 256, 256, 0, a, out, m)}, {"sixteen", launch(sobol_sixteen, n / (16 * 128), 128, 0, a, out, m, 18)}, {"together", launch(sobol_together, n / 256, 256, 0, (uint4 *)c, out, m)}};
    });

// --- a minimal standard generator ---

template <int HOW>
__device__ __forceinline__ unsigned minimal_standard(unsigned x) {
    if (HOW == 0) return (unsigned long long)x * 16807ull % 2147483647ull;
    if (HOW == 1) {
        unsigned long long p = (unsigned long long)x * 16807u;
        x = unsigned(p & 2147483647u) + unsigned(p >> 31);
        return x >= 2147483647u ? x - 2147483647u : x;
    }
    int high = x / 127773u, low = x - high * 127773, next = 16807 * low - 2836 * high;
    return next < 0 ? next + 2147483647 : next;
}
template <int HOW>
__global__ void inside_circle(const unsigned *seed, int *inside, int draws, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = seed[i];
    int count = 0;
    for (int k = 0; k < draws; k++) {
        unsigned u = x = minimal_standard<HOW>(x), v = x = minimal_standard<HOW>(x);
        float a = u * 4.656613e-10f, c = v * 4.656613e-10f;
        if (a * a + c * c < 1.f) count++;
    }
    inside[i] = count;
}
Study circles("minimal_standard_long_modulo", "hpc", 1 << 18, "262144 streams of 1024 draws of the minimal standard generator, points inside a circle counted",
    "a 64-bit remainder for each draw",
    {{"folded", "the remainder by a shift and a sum: the modulus is 2^31 - 1", {"integer_arithmetic"}}, {"schrage", "Schrage's split, 32 bits throughout", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *seed = b.random<unsigned>(n, 1, 2147483646.0);
        int *inside = b.output<int>(n), m = n;
        b.tolerance = 0.01;
        return {{"flawed", launch(inside_circle<0>, n / 256, 256, 0, seed, inside, 512, m)}, {"folded", launch(inside_circle<1>, n / 256, 256, 0, seed, inside, 512, m)}, {"schrage", launch(inside_circle<2>, n / 256, 256, 0, seed, inside, 512, m)}};
    });

// --- structure factors ---

template <int HOW>  // 0: precise, 1: precise for half turns, 2: turns taken off, then fast
__global__ void __launch_bounds__(256) structure_factor(const float4 *__restrict__ at, const float4 *__restrict__ wave, float2 *__restrict__ out, int n) {
    __shared__ float2 part[8];
    float4 k = wave[blockIdx.x];
    float c = 0.f, s = 0.f;
    for (int i = threadIdx.x; i < n; i += 256) {
        float4 p = at[i];
        float turns = k.x * p.x + k.y * p.y + k.z * p.z, si, co;
        if (HOW == 0) sincosf(6.2831853f * turns, &si, &co);
        else if (HOW == 1) sincospif(2.f * turns, &si, &co);
        else __sincosf(6.2831853f * (turns - rintf(turns)), &si, &co);
        c += p.w * co, s += p.w * si;
    }
    c = warp_sum(c), s = warp_sum(s);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = {c, s};
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) c += part[w].x, s += part[w].y;
        out[blockIdx.x] = {c, s};
    }
}
Study structure_factors("structure_factor_precise", "physics", 8192, "structure factors of 8192 particles for 8192 waves",
    "a precise sine and cosine for each particle and wave",
    {{"half_turns", "sine and cosine of multiples of pi", {"expensive_math"}}, {"fast", "whole turns taken off, then the fast functions", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> waves(n);
        for (long k = 0; k < n; ++k) waves[k] = {float(k % 13), float(k / 13 % 13), float(k / 169 % 13), 0.f};
        float4 *wave = b.copy(waves), *at = (float4 *)b.random<float>(4 * 8192, 0, 1);
        float2 *out = (float2 *)b.output<float>(2 * n);
        b.tolerance = 2e-3;
        return {{"flawed", launch(structure_factor<0>, n, 256, 0, at, wave, out, 8192)}, {"half_turns", launch(structure_factor<1>, n, 256, 0, at, wave, out, 8192)}, {"fast", launch(structure_factor<2>, n, 256, 0, at, wave, out, 8192)}};
    });

// --- rays and triangles ---

struct Ray {
    float ox, oy, dx, dy, dz;
};
// Rounded alike wherever it is inlined: at an edge the last bit decides what is hit.
__device__ __forceinline__ float cross(float a, float b, float c, float d) { return __fmaf_rn(a, b, -__fmul_rn(c, d)); }
__device__ __forceinline__ float dot(float x, float y, float z, float a, float b, float c) { return __fmaf_rn(x, a, __fmaf_rn(y, b, __fmul_rn(z, c))); }
__device__ __forceinline__ void hit(const Ray &r, float oz, const float *v, float &nearest) {
    float ax = v[3] - v[0], ay = v[4] - v[1], az = v[5] - v[2], bx = v[6] - v[0], by = v[7] - v[1], bz = v[8] - v[2];
    float px = cross(r.dy, bz, r.dz, by), py = cross(r.dz, bx, r.dx, bz), pz = cross(r.dx, by, r.dy, bx);
    float inv = __fdividef(1.f, dot(ax, ay, az, px, py, pz));
    float tx = r.ox - v[0], ty = r.oy - v[1], tz = oz - v[2];
    float u = __fmul_rn(dot(tx, ty, tz, px, py, pz), inv);
    float qx = cross(ty, az, tz, ay), qy = cross(tz, ax, tx, az), qz = cross(tx, ay, ty, ax);
    float w = __fmul_rn(dot(r.dx, r.dy, r.dz, qx, qy, qz), inv), t = __fmul_rn(dot(bx, by, bz, qx, qy, qz), inv);
    if (u >= 0.f && w >= 0.f && __fadd_rn(u, w) <= 1.f && t > 0.f && t < nearest) nearest = t;
}
__device__ __forceinline__ Ray camera_ray(int i) {
    float x = (i % 512) / 512.f, y = (i / 512) / 512.f;
    return {x, y, 0.2f * (x - 0.5f), 0.2f * (y - 0.5f), 1.f};
}
__global__ void trace(const float *triangle, float *depth, int triangles, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Ray r = camera_ray(i);
    float nearest = 100.f;
    for (int k = 0; k < triangles; k++) {
        float v[9];
        for (int j = 0; j < 9; j++) v[j] = triangle[k * 9 + j];
        hit(r, -1.f, v, nearest);
    }
    depth[i] = nearest;
}
template <int RAYS>
__global__ void __launch_bounds__(128) trace_shared(const float *__restrict__ triangle, float *__restrict__ depth, int triangles) {
    __shared__ float4 kept[3 * 256];
    for (int k = threadIdx.x; k < 3 * triangles; k += 128) kept[k] = {triangle[3 * k], triangle[3 * k + 1], triangle[3 * k + 2], 0.f};
    __syncthreads();
    Ray r[RAYS];
    float nearest[RAYS];
    int first = blockIdx.x * 128 * RAYS + threadIdx.x;
#pragma unroll
    for (int j = 0; j < RAYS; ++j) r[j] = camera_ray(first + 128 * j), nearest[j] = 100.f;
    for (int k = 0; k < triangles; ++k) {
        float4 a = kept[3 * k], c = kept[3 * k + 1], d = kept[3 * k + 2];
        float v[9] = {a.x, a.y, a.z, c.x, c.y, c.z, d.x, d.y, d.z};
#pragma unroll
        for (int j = 0; j < RAYS; ++j) hit(r[j], -1.f, v, nearest[j]);
    }
#pragma unroll
    for (int j = 0; j < RAYS; ++j) depth[first + 128 * j] = nearest[j];
}
Study traces("rays_triangles_nine_loads", "physics", 1 << 18, "the nearest of 256 triangles for each of 262144 rays",
    "every thread loads the nine floats of each triangle from global memory, one by one",
    {{"shared", "triangles in shared memory, a corner a load", {"redundant_loads", "narrow_access"}}, {"two_rays", "the same, two rays a thread", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *triangle = b.random<float>(256 * 9, 0, 1), *depth = b.output<float>(n);
        b.tolerance = 5e-3;
        int m = n;
        return {{"flawed", launch(trace, n / 128, 128, 0, triangle, depth, 256, m)}, {"shared", launch(trace_shared<1>, n / 128, 128, 0, triangle, depth, 256)}, {"two_rays", launch(trace_shared<2>, n / 256, 128, 0, triangle, depth, 256)}};
    });

// --- a fractal ---

__device__ __forceinline__ int escape(int x, int y) {
    float a = -2.f + 2.5f * x / 2048.f, c = -1.25f + 2.5f * y / 2112.f, u = 0.f, v = 0.f;
    int k = 0;
    for (; k < 400 && u * u + v * v < 4.f; ++k) {
        float w = u * u - v * v + a;
        v = 2.f * u * v + c, u = w;
    }
    return k;
}
template <bool DEALT>
__global__ void fractal(int *out, int rows_each) {
    for (int r = 0; r < rows_each; r++) {
        int y = DEALT ? r * gridDim.x + blockIdx.x : blockIdx.x * rows_each + r;
        for (int x = threadIdx.x; x < 2048; x += blockDim.x) out[y * 2048 + x] = escape(x, y);
    }
}
__global__ void fractal_small(int *out) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    out[y * 2048 + x] = escape(x, y);
}
Study fractals("fractal_contiguous_rows", "physics", 2112, "escape times of 2048 x 2112 points, 400 steps at most",
    "each of 264 blocks has eight neighbouring rows: those in the middle take many times as long as those at the edges",
    {{"dealt", "rows dealt out in turn", {"workload_imbalance"}}, {"small", "a block for each 16 x 8 points", {"workload_imbalance"}}},
    [](Buffers &b, long rows) -> Sides {
        int *out = b.output<int>(rows * 2048);
        b.tolerance = 0;
        return {{"flawed", launch(fractal<false>, 264, 256, 0, out, 8)}, {"dealt", launch(fractal<true>, 264, 256, 0, out, 8)}, {"small", launch(fractal_small, dim3(128, 264), dim3(16, 8), 0, out)}};
    });

// --- running sums of rows ---

__device__ __forceinline__ int block_offset(int total, int *part) {  // sum of the totals of the threads before, 256 threads
    int lane = threadIdx.x % 32, w = threadIdx.x / 32, sum = total;
    for (int d = 1; d < 32; d *= 2) {
        int other = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += other;
    }
    if (lane == 31) part[w] = sum;
    __syncthreads();
    for (int k = 0; k < w; ++k) sum += part[k];
    return sum - total;
}
__global__ void __launch_bounds__(256) scan_rows(const int *in, int *out) {
    __shared__ int part[8];
    int first = blockIdx.x * 8192 + threadIdx.x * 32, sum = 0;
    for (int k = 0; k < 32; k++) sum += in[first + k];
    sum = block_offset(sum, part);
    for (int k = 0; k < 32; k++) {
        sum += in[first + k];
        out[first + k] = sum;
    }
}
__global__ void __launch_bounds__(256) scan_rows_staged(const int *__restrict__ in, int *__restrict__ out) {
    __shared__ int tile[256 * 33], part[8];
    int t = threadIdx.x, first = blockIdx.x * 8192, sum = 0;
#pragma unroll 8
    for (int k = t; k < 8192; k += 256) tile[k / 32 * 33 + k % 32] = in[first + k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 32; ++k) sum += tile[t * 33 + k];
    sum = block_offset(sum, part);
#pragma unroll
    for (int k = 0; k < 32; ++k) tile[t * 33 + k] = sum += tile[t * 33 + k];
    __syncthreads();
#pragma unroll 8
    for (int k = t; k < 8192; k += 256) out[first + k] = tile[k / 32 * 33 + k % 32];
}
// Four neighbouring values a lane, eight such groups a warp, 1024 values apart from the next warp's.
__global__ void __launch_bounds__(256) scan_rows_lanes(const int4 *__restrict__ in, int4 *__restrict__ out) {
    __shared__ int part[8];
    int lane = threadIdx.x % 32, w = threadIdx.x / 32, first = blockIdx.x * 2048 + w * 256 + lane, carried = 0;
    int4 v[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = in[first + 32 * k];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        v[k].y += v[k].x, v[k].z += v[k].y, v[k].w += v[k].z;
        int sum = v[k].w;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            int other = __shfl_up_sync(~0u, sum, d);
            if (lane >= d) sum += other;
        }
        int before = carried + sum - v[k].w;
        v[k].x += before, v[k].y += before, v[k].z += before, v[k].w += before;
        carried += __shfl_sync(~0u, sum, 31);
    }
    if (lane == 0) part[w] = carried;
    __syncthreads();
    int before = 0;
    for (int k = 0; k < w; ++k) before += part[k];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        v[k].x += before, v[k].y += before, v[k].z += before, v[k].w += before;
        out[first + 32 * k] = v[k];
    }
}
Study row_scans("scan_32_values_a_thread", "databases", 1 << 25, "running sums of 4096 rows of 8192 integers, a block a row",
    "a thread has 32 consecutive values: lanes are 128 bytes apart, and all is read twice",
    {{"staged", "the row through shared memory", {"uncoalesced_access", "redundant_loads"}}, {"lanes", "warps scan along the row with shuffles, 16 bytes a load", {"uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        int *in = b.random<int>(n, 0, 100), *out = b.output<int>(n);
        b.tolerance = 0;
        return {{"flawed", launch(scan_rows, n / 8192, 256, 0, in, out)}, {"staged", launch(scan_rows_staged, n / 8192, 256, 0, in, out)}, {"lanes", launch(scan_rows_lanes, n / 8192, 256, 0, (int4 *)in, (int4 *)out)}};
    });

// --- sorted runs merged ---

__global__ void merge_runs(const int *in, int *out, int length, int n) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    const int *a = in + p * 2 * length, *b = a + length;
    int i = 0, j = 0;
    for (int k = 0; k < 2 * length; k++)
        if (j >= length || (i < length && a[i] <= b[j])) out[p * 2 * length + k] = a[i++];
        else out[p * 2 * length + k] = b[j++];
}
__global__ void __launch_bounds__(256) merge_ranks(const int *__restrict__ in, int *__restrict__ out) {
    __shared__ int from[256], to[256];
    int t = threadIdx.x, mine = from[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    int other = (t & ~63) ^ 64, lo = 0, hi = 64;
    bool right = t & 64;
    while (lo < hi) {  // how many of the other run come before
        int mid = (lo + hi) / 2, v = from[other + mid];
        if (right ? v <= mine : v < mine) lo = mid + 1;
        else hi = mid;
    }
    to[(t & 128) + (t & 63) + lo] = mine;
    __syncthreads();
    out[blockIdx.x * 256 + t] = to[t];
}
__global__ void __launch_bounds__(128) merge_diagonals(const int4 *__restrict__ in, int4 *__restrict__ out) {
    __shared__ int4 words[256];
    const int *from = reinterpret_cast<const int *>(words);
    int t = threadIdx.x;
    words[t] = in[blockIdx.x * 256 + t], words[t + 128] = in[blockIdx.x * 256 + t + 128];
    __syncthreads();
    const int *a = from + t / 16 * 128, *b = a + 64;
    int d = t % 16 * 8, lo = max(0, d - 64), hi = min(d, 64), v[8];
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (a[mid] <= b[d - 1 - mid]) lo = mid + 1;
        else hi = mid;
    }
    int i = lo, j = d - lo;
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = j >= 64 || (i < 64 && a[i] <= b[j]) ? a[i++] : b[j++];
    out[blockIdx.x * 256 + 2 * t] = {v[0], v[1], v[2], v[3]}, out[blockIdx.x * 256 + 2 * t + 1] = {v[4], v[5], v[6], v[7]};
}
Study merges("merge_runs_thread_each", "databases", 1 << 17, "131072 pairs of sorted runs of 64 integers merged",
    "a thread merges a pair value by value: lanes 512 bytes apart, one load after the other",
    {{"ranks", "a thread a value looks up its rank in the other run, in shared memory", {"uncoalesced_access", "memory_latency"}}, {"diagonals", "eight results a thread, places found on the diagonal, in shared memory", {"uncoalesced_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> host(n * 128);
        for (long r = 0; r < 2 * n; ++r)
            for (int k = 0, v = 0; k < 64; ++k) host[r * 64 + k] = v += pairs::hash(unsigned(r * 64 + k)) % 100;
        int *in = b.copy(host), *out = b.output<int>(n * 128), m = n;
        b.tolerance = 0;
        return {{"flawed", launch(merge_runs, n / 128, 128, 0, in, out, 64, m)}, {"ranks", launch(merge_ranks, n / 2, 256, 0, in, out)}, {"diagonals", launch(merge_diagonals, n / 8, 128, 0, (int4 *)in, (int4 *)out)}};
    });

// --- pieces sorted ---

__global__ void __launch_bounds__(512) bitonic(int *data) {
    int *a = data + blockIdx.x * 1024, t = threadIdx.x;
    for (int size = 2; size <= 1024; size *= 2)
        for (int d = size / 2; d > 0; d /= 2) {
            int i = 2 * t - (t & (d - 1)), up = (i & size) == 0;
            int x = a[i], y = a[i + d];
            if ((x > y) == up) a[i] = y, a[i + d] = x;
            __syncthreads();
        }
}
__global__ void __launch_bounds__(512) bitonic_shared(int *__restrict__ data) {
    __shared__ int a[1024];
    int t = threadIdx.x, first = blockIdx.x * 1024;
    a[t] = data[first + t], a[t + 512] = data[first + t + 512];
    __syncthreads();
    for (int size = 2; size <= 1024; size *= 2)
        for (int d = size / 2; d > 0; d /= 2) {
            int i = 2 * t - (t & (d - 1)), up = (i & size) == 0;
            int x = a[i], y = a[i + d];
            if ((x > y) == up) a[i] = y, a[i + d] = x;
            __syncthreads();
        }
    data[first + t] = a[t], data[first + t + 512] = a[t + 512];
}
__global__ void __launch_bounds__(1024) bitonic_shuffles(int *__restrict__ data) {
    __shared__ int a[1024];
    int t = threadIdx.x, mine = data[blockIdx.x * 1024 + t];
    for (int size = 2; size <= 1024; size *= 2)
        for (int d = size / 2; d > 0; d /= 2) {
            int other;
            if (d < 32) other = __shfl_xor_sync(~0u, mine, d);
            else {
                __syncthreads();
                a[t] = mine;
                __syncthreads();
                other = a[t ^ d];
            }
            bool smaller = ((t & d) == 0) == ((t & size) == 0);
            mine = smaller ? min(mine, other) : max(mine, other);
        }
    data[blockIdx.x * 1024 + t] = mine;
}
Study bitonics("bitonic_in_global", "databases", 1 << 22, "4096 pieces of 1024 integers sorted in place, a block each",
    "each of 55 steps reads and writes global memory",
    {{"shared", "the piece in shared memory", {"memory_latency", "redundant_loads"}}, {"shuffles", "a value a thread in a register, shuffles for near partners", {"memory_latency", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        int *initial = b.random<int>(n, 0, 1000000), *data = b.changed(initial, n);
        b.tolerance = 0;
        return {{"flawed", launch(bitonic, n / 1024, 512, 0, data)}, {"shared", launch(bitonic_shared, n / 1024, 512, 0, data)}, {"shuffles", launch(bitonic_shuffles, n / 1024, 1024, 0, data)}};
    });

// --- smallest values of rows ---

template <int HOW>  // 0: every second, fourth … thread, 1: halves, 2: shuffles
__global__ void __launch_bounds__(256) row_minima(const float *in, float *out) {
    __shared__ float part[256];
    int t = threadIdx.x;
    const float *row = in + (size_t)blockIdx.x * 512;
    float m = fminf(row[t], row[t + 256]);
    if (HOW == 2) {
        for (int d = 16; d; d /= 2) m = fminf(m, __shfl_xor_sync(~0u, m, d));
        if (t % 32 == 0) part[t / 32] = m;
        __syncthreads();
        if (t == 0)
            for (int w = 1; w < 8; ++w) m = fminf(m, part[w]);
    } else {
        part[t] = m;
        __syncthreads();
        for (int s = 1; s < 256; s *= 2) {
            if (HOW == 0) {
                if (t % (2 * s) == 0) part[t] = fminf(part[t], part[t + s]);
            } else if (t < 128 / s) part[t] = fminf(part[t], part[t + 128 / s]);
            __syncthreads();
        }
        m = part[0];
    }
    if (t == 0) out[blockIdx.x] = m;
}
Study minima("row_minima_every_second_thread", "hpc", 1 << 16, "the smallest values of 65536 rows of 512 floats",
    "a tree in which every second, fourth … thread works, chosen by a remainder, with a barrier a level",
    {{"halves", "the lower half of the threads works", {"branch_divergence"}}, {"shuffles", "shuffles within warps, one barrier", {"barriers", "branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        float *in = b.random<float>(n * 512, 0, 1), *out = b.output<float>(n);
        b.tolerance = 0;
        return {{"flawed", launch(row_minima<0>, n, 256, 0, in, out)}, {"halves", launch(row_minima<1>, n, 256, 0, in, out)}, {"shuffles", launch(row_minima<2>, n, 256, 0, in, out)}};
    });

// --- charged particles ---

__global__ void push_double(const float4 *in, const float4 *place, float4 *out, int substeps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 u = in[i], f = place[i];
    for (int k = 0; k < substeps; k++) {
        double gamma = sqrt(1.0 + u.x * u.x + u.y * u.y + u.z * u.z);
        double tz = 0.5 * 0.01 * f.w / gamma, s = 2.0 * tz / (1.0 + tz * tz);
        double ax = u.x + 0.005 * f.x, ay = u.y + 0.005 * f.y;
        double bx = ax + ay * tz, by = ay - ax * tz;
        u.x = ax + by * s + 0.005 * f.x, u.y = ay - bx * s + 0.005 * f.y, u.z += 0.01 * f.z;
    }
    out[i] = u;
}
template <bool FAST>
__global__ void push_single(const float4 *__restrict__ in, const float4 *__restrict__ place, float4 *__restrict__ out, int substeps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 u = in[i], f = place[i];
    for (int k = 0; k < substeps; ++k) {
        float square = 1.f + u.x * u.x + u.y * u.y + u.z * u.z;
        float tz = FAST ? 0.005f * f.w * rsqrtf(square) : 0.005f * f.w / sqrtf(square), s = FAST ? __fdividef(2.f * tz, 1.f + tz * tz) : 2.f * tz / (1.f + tz * tz);
        float ax = u.x + 0.005f * f.x, ay = u.y + 0.005f * f.y, bx = ax + ay * tz, by = ay - ax * tz;
        u.x = ax + by * s + 0.005f * f.x, u.y = ay - bx * s + 0.005f * f.y, u.z += 0.01f * f.z;
    }
    out[i] = u;
}
Study pushers("boris_push_doubles", "physics", 1 << 22, "four steps of four million relativistic particles in given fields",
    "literals and variables of double precision between floats",
    {{"single", "single precision throughout", {"double_precision"}}, {"single_fast", "single precision with the fast reciprocal root and division", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float4 *in = (float4 *)b.random<float>(4 * n), *place = (float4 *)b.random<float>(4 * n), *out = (float4 *)b.output<float>(4 * n);
        b.tolerance = 1e-3;
        int m = n;
        return {{"flawed", launch(push_double, n / 256, 256, 0, in, place, out, 4, m)}, {"single", launch(push_single<false>, n / 256, 256, 0, in, place, out, 4, m)}, {"single_fast", launch(push_single<true>, n / 256, 256, 0, in, place, out, 4, m)}};
    });

// --- maps iterated ---

__device__ __forceinline__ void iterate(float r, float &x, float &sum) { x = r * x * (1.f - x), sum += x * x; }
__global__ void maps(const float *rate, float *out, int steps, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float r = rate[i], x = 0.3f, sum = 0.f;
        for (int k = 0; k < steps; k++) iterate(r, x, sum);
        out[i] = sum;
    }
}
__global__ void maps_four(const float4 *__restrict__ rate, float4 *__restrict__ out, int steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i >= n) return;
    float4 r = rate[i], x = {0.3f, 0.3f, 0.3f, 0.3f}, s = {};
    for (int k = 0; k < steps; ++k) iterate(r.x, x.x, s.x), iterate(r.y, x.y, s.y), iterate(r.z, x.z, s.z), iterate(r.w, x.w, s.w);
    out[i] = s;
}
Study logistic("logistic_maps_in_turn", "physics", 132 * 128 * 4, "67584 logistic maps of 4096 steps",
    "132 blocks of 128 threads take four maps each one after the other: one warp a scheduler, one chain of dependent operations",
    {{"four", "four maps a thread at once", {"instruction_latency"}}, {"blocks", "a thread a map, four times as many blocks", {"instruction_latency", "low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        float *rate = b.random<float>(n, 2.6, 2.95), *out = b.output<float>(n);
        b.tolerance = 1e-3;
        int m = n;
        return {{"flawed", launch(maps, 132, 128, 0, rate, out, 4096, m)}, {"four", launch(maps_four, 132, 128, 0, (float4 *)rate, (float4 *)out, 4096, m)}, {"blocks", launch(maps, 528, 128, 0, rate, out, 4096, m)}};
    });

// --- without a flaw ---

__global__ void philox(uint4 *__restrict__ out, unsigned key) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, k0 = key, k1 = key ^ 0x5a5a5a5au;
    uint4 c = {i, 0, 0, 0};
#pragma unroll
    for (int round = 0; round < 10; ++round, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        unsigned h0 = __umulhi(0xd2511f53u, c.x), l0 = 0xd2511f53u * c.x, h1 = __umulhi(0xcd9e8d57u, c.z), l1 = 0xcd9e8d57u * c.z;
        c = {h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0};
    }
    out[i] = c;
}
Study sound_philoxes("sound_philox_blocks", "hpc", 1 << 24, "16 million blocks of four numbers of the Philox generator", "", {}, [](Buffers &b, long n) -> Sides {
    unsigned *out = b.output<unsigned>(4 * n);
    return {{"sound", launch(philox, n / 256, 256, 0, (uint4 *)out, 7u)}};
});

__global__ void __launch_bounds__(256) lattice(const float *__restrict__ in, float *__restrict__ out, int nx, int ny, float omega) {
    int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y, l = x ? x - 1 : nx - 1, r = x < nx - 1 ? x + 1 : 0;
    int d = (y ? y - 1 : ny - 1) * nx, u = (y < ny - 1 ? y + 1 : 0) * nx, h = y * nx, n = nx * ny;
    float f0 = in[h + x], f1 = in[n + h + l], f2 = in[2 * n + d + x], f3 = in[3 * n + h + r], f4 = in[4 * n + u + x];
    float f5 = in[5 * n + d + l], f6 = in[6 * n + d + r], f7 = in[7 * n + u + r], f8 = in[8 * n + u + l];
    float rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8, inv = __fdividef(1.f, rho);
    float ux = (f1 + f5 + f8 - f3 - f6 - f7) * inv, uy = (f2 + f5 + f6 - f4 - f7 - f8) * inv, s = 1.f - 1.5f * (ux * ux + uy * uy);
    auto relax = [&](float f, float w, float e) { return f + omega * (w * rho * (s + e * (3.f + 4.5f * e)) - f); };
    int i = h + x;
    out[i] = relax(f0, 4.f / 9, 0.f), out[n + i] = relax(f1, 1.f / 9, ux), out[2 * n + i] = relax(f2, 1.f / 9, uy);
    out[3 * n + i] = relax(f3, 1.f / 9, -ux), out[4 * n + i] = relax(f4, 1.f / 9, -uy), out[5 * n + i] = relax(f5, 1.f / 36, ux + uy);
    out[6 * n + i] = relax(f6, 1.f / 36, uy - ux), out[7 * n + i] = relax(f7, 1.f / 36, -ux - uy), out[8 * n + i] = relax(f8, 1.f / 36, ux - uy);
}
Study sound_lattices("sound_lattice_d2q9", "hpc", 2048, "a step of a two-dimensional lattice Boltzmann fluid, 4096 x 2048, one array a direction", "", {}, [](Buffers &b, long ny) -> Sides {
    float *in = b.random<float>(9 * 4096 * ny, 0.05, 0.15), *out = b.output<float>(9 * 4096 * ny);
    return {{"sound", launch(lattice, dim3(16, ny), 256, 0, in, out, 4096, int(ny), 1.2f)}};
});

__global__ void __launch_bounds__(256) mix(const ulonglong2 *__restrict__ in, ulonglong2 *__restrict__ out, int rounds) {
    int i = blockIdx.x * 256 + threadIdx.x;
    ulonglong2 v = in[i];
#pragma unroll 4
    for (int k = 0; k < rounds; ++k) {
        v.x = (v.x ^ v.x >> 30) * 0xbf58476d1ce4e5b9ull, v.y = (v.y ^ v.y >> 30) * 0xbf58476d1ce4e5b9ull;
        v.x = (v.x ^ v.x >> 27) * 0x94d049bb133111ebull, v.y = (v.y ^ v.y >> 27) * 0x94d049bb133111ebull;
        v.x ^= v.x >> 31, v.y ^= v.y >> 31;
    }
    out[i] = v;
}
Study sound_mixes("sound_mix_64_bits", "crypto", 1 << 20, "two million 64-bit words mixed 64 times", "", {}, [](Buffers &b, long n) -> Sides {
    unsigned *in = b.random<unsigned>(4 * n, 0, 4294967296.0), *out = b.output<unsigned>(4 * n);
    return {{"sound", launch(mix, n / 256, 256, 0, (ulonglong2 *)in, (ulonglong2 *)out, 64)}};
});

__global__ void __launch_bounds__(256) complex_product(const float4 *__restrict__ a, const float4 *__restrict__ b, float4 *__restrict__ out) {
    int i = blockIdx.x * 512 + threadIdx.x;
    float4 p = a[i], q = b[i], r = a[i + 256], s = b[i + 256];
    out[i] = {p.x * q.x - p.y * q.y, p.x * q.y + p.y * q.x, p.z * q.z - p.w * q.w, p.z * q.w + p.w * q.z};
    out[i + 256] = {r.x * s.x - r.y * s.y, r.x * s.y + r.y * s.x, r.z * s.z - r.w * s.w, r.z * s.w + r.w * s.z};
}
Study sound_products("sound_spectra_product", "hpc", 1 << 24, "two spectra of 16 million complex values multiplied, two values a load", "", {}, [](Buffers &b, long n) -> Sides {
    float *x = b.random<float>(2 * n), *y = b.random<float>(2 * n), *out = b.output<float>(2 * n);
    return {{"sound", launch(complex_product, n / 1024, 256, 0, (float4 *)x, (float4 *)y, (float4 *)out)}};
});

}  // namespace
