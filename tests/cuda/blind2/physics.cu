// Physics and finance, and kernels whose flaw lies in the launch.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- prices of bonds ---

__global__ void bonds(const double *yield, const double *coupon, double *price, int periods, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double sum = 0.0;
    for (int t = 1; t <= periods; t++) sum += coupon[i] / pow(1.0 + yield[i] / 2.0, (double)t);
    price[i] = sum + 100.0 / pow(1.0 + yield[i] / 2.0, (double)periods);
}
__global__ void bonds_horner(const double *__restrict__ yield, const double *__restrict__ coupon, double *__restrict__ price, int periods, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double factor = 1.0 / (1.0 + yield[i] * 0.5), c = coupon[i], sum = 100.0;
    for (int t = 0; t < periods; t++) sum = (sum + c) * factor;
    price[i] = sum;
}
__global__ void bonds_annuity(const double *__restrict__ yield, const double *__restrict__ coupon, double *__restrict__ price, int periods, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double rate = yield[i] * 0.5, last = pow(1.0 + rate, -(double)periods);
    price[i] = coupon[i] * (1.0 - last) / rate + 100.0 * last;
}
Study bond_prices("bond_price_pow_per_coupon", "finance", 1 << 17, "prices of 131072 bonds of 40 coupons, FP64",
    "a power and a division for each coupon",
    {{"horner", "discounted step by step with one factor", {"expensive_math"}}, {"annuity", "the closed form: one power a bond", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        double *yield = b.random<double>(n, 0.01, 0.09), *coupon = b.random<double>(n, 1, 4), *price = b.output<double>(n);
        int count = n;
        return {{"flawed", launch(bonds, n / 128, 128, 0, yield, coupon, price, 40, count)}, {"horner", launch(bonds_horner, n / 128, 128, 0, yield, coupon, price, 40, count)},
            {"annuity", launch(bonds_annuity, n / 128, 128, 0, yield, coupon, price, 40, count)}};
    });

// --- options on a binomial tree ---

__global__ void __launch_bounds__(256) binomial(const float *spot, float *price, float up, float p, float q, float strike) {
    __shared__ float value[257];
    int t = threadIdx.x;
    float s = spot[blockIdx.x];
    value[t] = fmaxf(strike - s * exp2f(up * (2 * t - 256)), 0.f);
    if (t == 0) value[256] = fmaxf(strike - s * exp2f(up * 256), 0.f);
    __syncthreads();
    for (int step = 255; step >= 0; step--) {
        float v = 0.f;
        if (t <= step) v = fmaxf(p * value[t + 1] + q * value[t], strike - s * exp2f(up * (2 * t - step)));
        __syncthreads();
        if (t <= step) value[t] = v;
        __syncthreads();
    }
    if (t == 0) price[blockIdx.x] = value[0];
}
// A warp an option, eight neighbouring nodes a lane; the next lane's first node comes by a shuffle.
template <int WARPS>
__global__ void __launch_bounds__(32 * WARPS) binomial_warp(const float *__restrict__ spot, float *__restrict__ price, float up, float p, float q, float strike) {
    int option = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32, first = lane * 8;
    float s = spot[option], v[8], last = fmaxf(strike - s * exp2f(up * 256), 0.f);
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = fmaxf(strike - s * exp2f(up * (2 * (first + k) - 256)), 0.f);
    for (int step = 255; step >= 0; --step) {
        float next = __shfl_down_sync(~0u, v[0], 1);
        if (lane == 31) next = last;
#pragma unroll
        for (int k = 0; k < 8; ++k) v[k] = fmaxf(p * (k < 7 ? v[k + 1] : next) + q * v[k], strike - s * exp2f(up * (2 * (first + k) - step)));
    }
    if (lane == 0) price[option] = v[0];
}
__global__ void __launch_bounds__(256) binomial_double_buffer(const float *__restrict__ spot, float *__restrict__ price, float up, float p, float q, float strike) {
    __shared__ float value[2][257];
    int t = threadIdx.x;
    float s = spot[blockIdx.x];
    value[0][t] = fmaxf(strike - s * exp2f(up * (2 * t - 256)), 0.f);
    if (t == 0) value[0][256] = fmaxf(strike - s * exp2f(up * 256), 0.f);
    for (int step = 255; step >= 0; --step) {
        int now = 1 & (255 - step);
        __syncthreads();
        if (t <= step) value[1 - now][t] = fmaxf(p * value[now][t + 1] + q * value[now][t], strike - s * exp2f(up * (2 * t - step)));
    }
    if (t == 0) price[blockIdx.x] = value[0][0];
}
Study binomials("binomial_tree_two_barriers", "finance", 4096, "American options on binomial trees of 256 steps, a block each",
    "two barriers of 256 threads for each step",
    {{"warp", "a warp an option, eight nodes a lane, shuffles", {"barriers"}}, {"two_buffers", "two buffers: one barrier a step", {"barriers"}}},
    [](Buffers &b, long count) -> Sides {
        float *spot = b.random<float>(count, 80, 120), *price = b.output<float>(count);
        b.tolerance = 1e-3;
        return {{"flawed", launch(binomial, count, 256, 0, spot, price, 0.01f, 0.51f, 0.489f, 100.f)},
            {"warp", launch(binomial_warp<4>, count / 4, 128, 0, spot, price, 0.01f, 0.51f, 0.489f, 100.f)},
            {"two_buffers", launch(binomial_double_buffer, count, 256, 0, spot, price, 0.01f, 0.51f, 0.489f, 100.f)}};
    });

// --- correlated normals ---

constexpr int ASSETS = 32;
__global__ void correlate_paths(const float *factor, const float *z, float *out, int assets, int paths) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= paths) return;
    for (int i = 0; i < assets; i++) {
        float sum = 0.f;
        for (int j = 0; j <= i; j++) sum += factor[i * assets + j] * z[j * paths + p];
        out[i * paths + p] = sum;
    }
}
__global__ void __launch_bounds__(128) correlate_registers(const float *__restrict__ factor, const float *__restrict__ z, float *__restrict__ out, int paths) {
    int p = blockIdx.x * 128 + threadIdx.x;
    float v[ASSETS];
#pragma unroll
    for (int j = 0; j < ASSETS; ++j) v[j] = z[j * paths + p];
#pragma unroll
    for (int i = 0; i < ASSETS; ++i) {
        float sum = 0.f;
#pragma unroll
        for (int j = 0; j <= i; ++j) sum += factor[i * ASSETS + j] * v[j];
        out[i * paths + p] = sum;
    }
}
__global__ void __launch_bounds__(128) correlate_shared(const float *__restrict__ factor, const float *__restrict__ z, float *__restrict__ out, int paths) {
    __shared__ float f[ASSETS * ASSETS], v[ASSETS][128];
    int t = threadIdx.x, p = blockIdx.x * 128 + t;
    for (int i = t; i < ASSETS * ASSETS; i += 128) f[i] = factor[i];
    for (int j = 0; j < ASSETS; ++j) v[j][t] = z[j * paths + p];
    __syncthreads();
    for (int i = 0; i < ASSETS; ++i) {
        float sum = 0.f;
        for (int j = 0; j <= i; ++j) sum += f[i * ASSETS + j] * v[j][t];
        out[i * paths + p] = sum;
    }
}
Study correlations("correlated_normals_reloads", "finance", 1 << 18, "32 correlated normals for each of 262144 paths, by a triangular factor",
    "a path's values are fetched again for each asset, half of them on average",
    {{"registers", "a path's values in registers, loops unrolled", {"redundant_loads"}}, {"shared", "values and factor in shared memory", {"redundant_loads"}}},
    [](Buffers &b, long paths) -> Sides {
        float *factor = b.random<float>(ASSETS * ASSETS), *z = b.random<float>(ASSETS * paths), *out = b.output<float>(ASSETS * paths);
        int n = paths;
        b.tolerance = 1e-3;
        return {{"flawed", launch(correlate_paths, n / 128, 128, 0, factor, z, out, ASSETS, n)}, {"registers", launch(correlate_registers, n / 128, 128, 0, factor, z, out, n)},
            {"shared", launch(correlate_shared, n / 128, 128, 0, factor, z, out, n)}};
    });

// --- sums for a regression over paths in the money ---

__device__ double warp_sum_double(double v) {
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    return v;
}
template <int COMBINED>  // 0: an atomic a path and sum, 1: a warp's sums, 2: a block's, several paths a thread
__global__ void __launch_bounds__(256) regression(const float *__restrict__ spot, const float *__restrict__ cash, double *sums, float strike, int paths) {
    __shared__ double part[6][8];
    double s[6] = {};
    int stride = COMBINED == 2 ? gridDim.x * 256 : paths;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < paths; i += stride) {
        double x = spot[i] / strike, y = cash[i];
        if (x >= 1.0) continue;
        if (COMBINED == 0) {
            atomicAdd(&sums[0], 1.0), atomicAdd(&sums[1], x), atomicAdd(&sums[2], x * x);
            atomicAdd(&sums[3], x * x * x), atomicAdd(&sums[4], y), atomicAdd(&sums[5], x * y);
        } else s[0] += 1.0, s[1] += x, s[2] += x * x, s[3] += x * x * x, s[4] += y, s[5] += x * y;
    }
    if (COMBINED == 0) return;
    for (int k = 0; k < 6; ++k) {
        s[k] = warp_sum_double(s[k]);
        if (threadIdx.x % 32) continue;
        if (COMBINED == 1) atomicAdd(&sums[k], s[k]);
        else part[k][threadIdx.x / 32] = s[k];
    }
    if (COMBINED == 1) return;
    __syncthreads();
    if (threadIdx.x < 6) {
        double total = 0.0;
        for (int w = 0; w < 8; ++w) total += part[threadIdx.x][w];
        atomicAdd(&sums[threadIdx.x], total);
    }
}
Study regressions("regression_sums_atomics", "finance", 1 << 17, "six FP64 sums over 131072 paths for an early-exercise regression",
    "six atomics a path, all paths on the same six words",
    {{"warps", "sums of a warp first", {"global_atomics"}}, {"blocks", "sums of a block that goes over several paths a thread", {"global_atomics"}}},
    [](Buffers &b, long paths) -> Sides {
        float *spot = b.random<float>(paths, 50, 130), *cash = b.random<float>(paths, 0, 40);
        double *sums = b.output<double>(6, true);
        int n = paths;
        return {{"flawed", launch(regression<0>, n / 256, 256, 0, spot, cash, sums, 100.f, n)}, {"warps", launch(regression<1>, n / 256, 256, 0, spot, cash, sums, 100.f, n)},
            {"blocks", launch(regression<2>, 128, 256, 0, spot, cash, sums, 100.f, n)}};
    });

// --- chemistry of cells of different kinds ---

__device__ float react(float t, float y, int kind) {
    if (kind == 0)  // burnt: relaxes
        for (int k = 0; k < 24; k++) y += 0.01f * (t - y * y), t -= 0.002f * y;
    else if (kind == 1)  // cold: slow oxidation
        for (int k = 0; k < 24; k++) y -= 0.01f * __expf(-5.f / t) * y, t += 0.003f * y;
    else if (kind == 2)  // igniting: two rates
        for (int k = 0; k < 24; k++) {
            float a = __expf(-3.f / t), b = __expf(-7.f / t);
            y -= 0.01f * (a * y - b * t), t += 0.002f * (a - b);
        }
    else  // at a wall
        for (int k = 0; k < 24; k++) y = y * 0.99f + 0.01f * rsqrtf(t), t = t * 0.98f + 0.02f;
    return t + y;
}
__global__ void chemistry(const float *temperature, const float *fuel, const unsigned char *kind, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = react(temperature[i], fuel[i], kind[i]);
}
__global__ void chemistry_sorted(const int *__restrict__ order, const float *__restrict__ temperature, const float *__restrict__ fuel, const unsigned char *__restrict__ kind, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    i = order[i];
    out[i] = react(temperature[i], fuel[i], kind[i]);
}
__global__ void __launch_bounds__(512) chemistry_block(const float *__restrict__ temperature, const float *__restrict__ fuel, const unsigned char *__restrict__ kind, float *out, int n) {
    __shared__ int count[4], start[4];
    __shared__ unsigned short order[512];
    int t = threadIdx.x, first = blockIdx.x * 512, k = kind[first + t], place;
    if (t < 4) count[t] = 0;
    __syncthreads();
    place = atomicAdd(&count[k], 1);
    __syncthreads();
    if (t == 0)
        for (int j = 0, sum = 0; j < 4; ++j) start[j] = sum, sum += count[j];
    __syncthreads();
    order[start[k] + place] = t;
    __syncthreads();
    int i = first + order[t];
    out[i] = react(temperature[i], fuel[i], kind[i]);
}
Study reactions("chemistry_mixed_kinds", "physics", 1 << 21, "reaction of two million cells of four kinds in random order",
    "a warp goes all four ways, for each with a quarter of its lanes",
    {{"sorted", "cells taken in an order sorted by kind", {"branch_divergence"}}, {"block", "cells of a block sorted by kind in shared memory", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> kinds(n / 4), order;
        auto *kind = (unsigned char *)kinds.data();
        for (long i = 0; i < n; ++i) kind[i] = pairs::hash(i) % 4;
        for (int k = 0; k < 4; ++k)
            for (long i = 0; i < n; ++i)
                if (kind[i] == k) order.push_back(i);
        auto *device_kind = (unsigned char *)b.copy(kinds);
        int *sorted = b.copy(order), count = n;
        float *t = b.random<float>(n, 0.5, 2), *f = b.random<float>(n, 0, 1), *out = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(chemistry, n / 256, 256, 0, t, f, device_kind, out, count)},
            {"sorted", launch(chemistry_sorted, n / 256, 256, 0, sorted, t, f, device_kind, out, count)},
            {"block", launch(chemistry_block, n / 512, 512, 0, t, f, device_kind, out, count)}};
    });

// --- an ensemble of Lorenz systems ---

__global__ void lorenz(const float4 *start, float4 *end, float h, int steps, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 s = start[i];
        float x = s.x, y = s.y, z = s.z, rho = 20.f + s.w;
        auto dx = [](float x, float y) { return 10.f * (y - x); };
        auto dy = [rho](float x, float y, float z) { return x * (rho - z) - y; };
        auto dz = [](float x, float y, float z) { return x * y - 2.6666667f * z; };
        for (int k = 0; k < steps; k++) {
            float a = dx(x, y), b = dy(x, y, z), c = dz(x, y, z);
            float u = x + 0.5f * h * a, v = y + 0.5f * h * b, w = z + 0.5f * h * c;
            float a2 = dx(u, v), b2 = dy(u, v, w), c2 = dz(u, v, w);
            x += h * a2, y += h * b2, z += h * c2;
        }
        end[i] = {x, y, z, rho};
    }
}
Study lorenzes("lorenz_eight_blocks_over", "physics", 140, "an ensemble of 286720 Lorenz systems of 200 steps",
    "140 blocks of 1024 threads for 132 multiprocessors: eight of them have twice the work",
    {{"small_blocks", "blocks of 128 threads and systems", {"tail_effect", "workload_imbalance"}}, {"middle_blocks", "blocks of 512 threads and systems", {"tail_effect", "workload_imbalance"}}},
    [](Buffers &b, long parts) -> Sides {
        long n = parts * 2048;
        float4 *start = (float4 *)b.random<float>(4 * n, 0, 1), *end = (float4 *)b.output<float>(4 * n);
        int count = n;
        b.tolerance = 1e-2;
        return {{"flawed", launch(lorenz, parts, 1024, 0, start, end, 1e-3f, 200, count)},
            {"small_blocks", launch(lorenz, n / 128, 128, 0, start, end, 1e-3f, 200, count)},
            {"middle_blocks", launch(lorenz, n / 512, 512, 0, start, end, 1e-3f, 200, count)}};
    });

// --- particles, of which few are alive ---

__device__ float4 drift(float4 p) {
    for (int k = 0; k < 32; ++k) {
        float r = rsqrtf(p.x * p.x + p.y * p.y + p.z * p.z + 0.01f), f = -0.001f * r * r * r;
        p.x += 0.01f * p.w + f * p.x, p.y += f * p.y, p.z += f * p.z, p.w *= 0.999f;
    }
    return p;
}
__global__ void drift_alive(const unsigned char *alive, const float4 *in, float4 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && alive[i]) out[i] = drift(in[i]);
}
__global__ void drift_listed(const int *__restrict__ list, const float4 *__restrict__ in, float4 *__restrict__ out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[list[i]] = drift(in[list[i]]);
}
__global__ void __launch_bounds__(256) drift_gathered(const unsigned *__restrict__ alive, const float4 *__restrict__ in, float4 *__restrict__ out, int n) {
    __shared__ unsigned short list[1024];
    __shared__ int count;
    int t = threadIdx.x, first = blockIdx.x * 1024;
    if (t == 0) count = 0;
    __syncthreads();
    unsigned four = alive[blockIdx.x * 256 + t];
    int mine = __popc(four & 0x01010101u), place = mine ? atomicAdd(&count, mine) : 0;
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if (four >> 8 * k & 1) list[place++] = 4 * t + k;
    __syncthreads();
    for (int i = t; i < count; i += 256) out[first + list[i]] = drift(in[first + list[i]]);
}
Study drifts("drift_few_alive", "physics", 1 << 22, "drift of particles in 4 million slots of which one in 16 is taken",
    "a thread a slot: two lanes of a warp have something to do",
    {{"listed", "a list of the slots that are taken", {"branch_divergence", "idle_threads"}}, {"gathered", "each block gathers the taken ones of 1024 slots first", {"branch_divergence", "idle_threads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> flags(n / 4), list;
        auto *alive = (unsigned char *)flags.data();
        for (long i = 0; i < n; ++i)
            if ((alive[i] = pairs::hash(i) % 16 == 0)) list.push_back(i);
        auto *device_alive = (unsigned char *)b.copy(flags);
        int *taken = b.copy(list), count = list.size(), slots = n;
        float4 *in = (float4 *)b.random<float>(4 * n, 0.1, 1), *out = (float4 *)b.output<float>(4 * n, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(drift_alive, n / 256, 256, 0, device_alive, in, out, slots)}, {"listed", launch(drift_listed, blocks(count, 256), 256, 0, taken, in, out, count)},
            {"gathered", launch(drift_gathered, n / 1024, 256, 0, (unsigned *)device_alive, in, out, slots)}};
    });

// --- cross sections by interpolation in a table ---

constexpr int ENTRIES = 12288;
__device__ float interpolate(const float *table, float e) {
    float at = e * (ENTRIES - 2);
    int i = at;
    float w = at - i;
    return table[i] + w * (table[i + 1] - table[i]);
}
template <bool SHARED>
__global__ void cross_sections(const float *__restrict__ table, const float *__restrict__ energy, float *__restrict__ out, int each) {
    extern __shared__ float kept[];
    if (SHARED) {
        for (int i = threadIdx.x; i < ENTRIES; i += blockDim.x) kept[i] = table[i];
        __syncthreads();
    }
    const float *from = SHARED ? kept : table;
    int first = blockIdx.x * blockDim.x * each + threadIdx.x;
    for (int k = 0; k < each; ++k) {
        int i = first + k * blockDim.x;
        float e = energy[i], s = interpolate(from, e);
        for (int j = 0; j < 4; ++j) {  // an energy after each of four collisions
            e = e * (0.5f + 0.4f * s);
            s = interpolate(from, e);
        }
        out[i] = s;
    }
}
Study sections("cross_sections_big_table", "physics", 1 << 22, "cross sections of four million particles, five look-ups each in a table of 48 KiB",
    "blocks of 128 threads keep the whole table in shared memory: 16 warps a multiprocessor at most",
    {{"big_blocks", "blocks of 512 threads share a table", {"low_occupancy"}}, {"cache", "the table read through the cache", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        float *table = b.random<float>(ENTRIES, 0, 1), *energy = b.random<float>(n, 0, 1), *out = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(cross_sections<true>, n / (128 * 16), 128, ENTRIES * 4, table, energy, out, 16)},
            {"big_blocks", launch(cross_sections<true>, n / (512 * 16), 512, ENTRIES * 4, table, energy, out, 16)},
            {"cache", launch(cross_sections<false>, n / 256, 256, 0, table, energy, out, 1)}};
    });

// --- the largest of a field and where it is ---

__device__ unsigned long long packed(float v, int i) { return (unsigned long long)__float_as_uint(v) << 32 | unsigned(~i); }
__device__ unsigned long long largest(unsigned long long v) {
    for (int d = 16; d; d /= 2) v = max(v, __shfl_xor_sync(~0u, v, d));
    return v;
}
template <int EACH>
__global__ void __launch_bounds__(1024) arg_max(const float *__restrict__ x, unsigned long long *result, int n) {
    __shared__ unsigned long long part[32];
    unsigned long long best = 0;
    int i = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    if (EACH == 4)
        for (; i < n / 4; i += stride) {
            float4 v = reinterpret_cast<const float4 *>(x)[i];
            best = max(max(best, max(packed(v.x, 4 * i), packed(v.y, 4 * i + 1))), max(packed(v.z, 4 * i + 2), packed(v.w, 4 * i + 3)));
        }
    else
        for (; i < n; i += stride) best = max(best, packed(x[i], i));
    best = largest(best);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = best;
    __syncthreads();
    if (threadIdx.x < 32) {
        best = largest(threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0);
        if (threadIdx.x == 0) atomicMax(result, best);
    }
}
Study maxima("arg_max_one_block", "physics", 1 << 20, "the largest of a million values and its place",
    "a single block of 1024 threads goes over all of them",
    {{"grid", "264 blocks of 256 threads, an atomic each", {"small_grid"}}, {"grid_four", "66 blocks of 512 threads, four values a load", {"small_grid", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n, 0, 1);
        auto *result = b.output<unsigned long long>(1, true);
        b.tolerance = 0;
        int count = n;
        return {{"flawed", launch(arg_max<1>, 1, 1024, 0, x, result, count)}, {"grid", launch(arg_max<1>, 264, 256, 0, x, result, count)}, {"grid_four", launch(arg_max<4>, 66, 512, 0, x, result, count)}};
    });

// --- four moments of a field ---

template <int SWEEPS>  // four: one moment a sweep over the thread's values; one: all at once
__global__ void __launch_bounds__(256) moments(const float *__restrict__ x, float *out, int n) {
    float m[4] = {};
    int stride = gridDim.x * 256, first = blockIdx.x * 256 + threadIdx.x;
    if (SWEEPS == 4) {
        for (int i = first; i < n; i += stride) m[0] += x[i];
        for (int i = first; i < n; i += stride) m[1] += x[i] * x[i];
        for (int i = first; i < n; i += stride) m[2] += x[i] * x[i] * x[i];
        for (int i = first; i < n; i += stride) m[3] += x[i] * x[i] * x[i] * x[i];
    } else if (SWEEPS == 1) {
        for (int i = first; i < n; i += stride) {
            float v = x[i], v2 = v * v;
            m[0] += v, m[1] += v2, m[2] += v2 * v, m[3] += v2 * v2;
        }
    } else {
        for (int i = first; i < n / 4; i += stride) {
            float4 q = reinterpret_cast<const float4 *>(x)[i];
            auto add = [&](float v) {
                float v2 = v * v;
                m[0] += v, m[1] += v2, m[2] += v2 * v, m[3] += v2 * v2;
            };
            add(q.x), add(q.y), add(q.z), add(q.w);
        }
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        m[k] = warp_sum(m[k]);
        if (threadIdx.x % 32 == 0) atomicAdd(&out[k], m[k]);
    }
}
Study moment_sums("moments_four_sweeps", "physics", 1 << 25, "four moments of 33 million values",
    "four sweeps over the field, which no cache holds",
    {{"one_sweep", "all four in one sweep", {"redundant_loads", "cache_locality"}}, {"one_sweep_four", "one sweep, four values a load", {"redundant_loads", "cache_locality", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n, 0, 1), *out = b.output<float>(4, true);
        b.tolerance = 2e-3;
        int count = n;
        return {{"flawed", launch(moments<4>, 132 * 8, 256, 0, x, out, count)}, {"one_sweep", launch(moments<1>, 132 * 8, 256, 0, x, out, count)},
            {"one_sweep_four", launch(moments<2>, 132 * 8, 256, 0, x, out, count)}};
    });

}  // namespace
