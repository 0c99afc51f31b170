// Codes, matrices of remainders, ephemerides, maps, small networks, distances, graphs and surveys.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- words of a code: a polynomial of 4096 symbols at each place, modulo 2^31 - 1 ---

constexpr unsigned PRIME = 0x7fffffff;
constexpr int SYMBOLS = 4096;

__device__ __forceinline__ unsigned folded(unsigned long long v) {
    const unsigned sum = static_cast<unsigned>(v & PRIME) + static_cast<unsigned>(v >> 31);
    return ::min(sum, sum - PRIME);
}
__device__ __forceinline__ unsigned horner(unsigned value, unsigned x, unsigned symbol) { return folded(static_cast<unsigned long long>(value) * x + symbol); }
__device__ __forceinline__ unsigned place_of(int i) { return 3 + 7919u * i; }

__global__ void __launch_bounds__(128) code_words(const unsigned *__restrict__ messages, unsigned *__restrict__ out, int places) {
    const unsigned *message = messages + blockIdx.y * SYMBOLS;
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= places) return;
    const unsigned x = place_of(i);
    unsigned value = 0;
    for (int k = 0; k < SYMBOLS; k++) value = horner(value, x, message[k]);
    out[blockIdx.y * places + i] = value;
}
// Every fourth symbol belongs to a polynomial of its own, in the fourth power.
__global__ void __launch_bounds__(128) code_words_four(const unsigned *__restrict__ messages, unsigned *__restrict__ out, int places) {
    const uint4 *message = reinterpret_cast<const uint4 *>(messages + blockIdx.y * SYMBOLS);
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= places) return;
    const unsigned x = place_of(i), square = horner(x, x, 0), fourth = horner(square, square, 0);
    unsigned a = 0, b = 0, c = 0, d = 0;
#pragma unroll 2
    for (int k = 0; k < SYMBOLS / 4; k++) {
        const uint4 four = message[k];
        a = horner(a, fourth, four.x), b = horner(b, fourth, four.y), c = horner(c, fourth, four.z), d = horner(d, fourth, four.w);
    }
    out[blockIdx.y * places + i] = horner(horner(horner(a, x, b), x, c), x, d);
}
// Four lanes share a place: each has a quarter of the message, and powers put them together.
__global__ void __launch_bounds__(128) code_words_lanes(const unsigned *__restrict__ messages, unsigned *__restrict__ out, int places) {
    constexpr int QUARTER = SYMBOLS / 4;
    const int i = (blockIdx.x * 128 + threadIdx.x) / 4, part = threadIdx.x % 4;
    if (i >= places) return;
    const unsigned *message = messages + blockIdx.y * SYMBOLS + part * QUARTER;
    const unsigned x = place_of(i);
    unsigned value = 0, power = x;
#pragma unroll 4
    for (int k = 0; k < QUARTER; k++) value = horner(value, x, message[k]);
    for (int k = 1; k < QUARTER; k *= 2) power = horner(power, power, 0);
    unsigned sum = __shfl_sync(~0u, value, 0, 4);
    for (int k = 1; k < 4; k++) sum = horner(sum, power, __shfl_sync(~0u, value, k, 4));
    if (part == 0) out[blockIdx.y * places + i] = sum;
}

Study codes("code_words_one_chain_of_4096_products", "communication", 4096, "eight messages of 4096 symbols as polynomials at 4096 places, modulo 2^31 - 1",
    "a product, a sum and a remainder after the other; eight warps a multiprocessor",
    {{"four", "four polynomials in the fourth power", {"instruction_latency"}}, {"lanes", "four lanes a place, a quarter of the message each", {"instruction_latency", "small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *messages = b.random<unsigned>(8 * SYMBOLS, 0, 2147483647.0);
        unsigned *out = b.output<unsigned>(8 * n);
        b.tolerance = 0.0;
        return {{"flawed", launch(code_words, dim3(blocks(n, 128), 8), 128, 0, messages, out, n)}, {"four", launch(code_words_four, dim3(blocks(n, 128), 8), 128, 0, messages, out, n)},
            {"lanes", launch(code_words_lanes, dim3(blocks(n, 32), 8), 128, 0, messages, out, n)}};
    });

// --- a product of matrices modulo a prime of sixteen bits ---

struct EachTerm {
    unsigned sum = 0;
    __device__ void add(unsigned a, unsigned z, unsigned prime, unsigned) { sum = (sum + a * z) % prime; }
    __device__ unsigned result(unsigned) const { return sum; }
};
// The sum of all products fits 64 bits: one remainder at the end.
struct AtTheEnd {
    unsigned long long sum = 0;
    __device__ void add(unsigned a, unsigned z, unsigned, unsigned) { sum += static_cast<unsigned long long>(a) * z; }
    __device__ unsigned result(unsigned prime) const { return static_cast<unsigned>(sum % prime); }
};
// A product with the reciprocal, and one correction.
struct ByReciprocal {
    unsigned sum = 0;
    __device__ void add(unsigned a, unsigned z, unsigned prime, unsigned reciprocal) {
        const unsigned value = sum + a * z, rest = value - __umulhi(value, reciprocal) * prime;
        sum = ::min(rest, rest - prime);
    }
    __device__ unsigned result(unsigned) const { return sum; }
};
template <typename Sum>
__global__ void __launch_bounds__(256) modular_product(const unsigned *__restrict__ left, const unsigned *__restrict__ right, unsigned *__restrict__ out, int size, unsigned prime, unsigned reciprocal) {
    __shared__ unsigned a[32][32], z[32][32];
    const int x = threadIdx.x % 32, y = threadIdx.x / 32, column = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
    Sum sums[4];
    for (int start = 0; start < size; start += 32) {
#pragma unroll
        for (int r = 0; r < 4; r++) a[y + r * 8][x] = left[(row + r * 8) * size + start + x], z[y + r * 8][x] = right[(start + y + r * 8) * size + column];
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < 32; k++)
#pragma unroll
            for (int r = 0; r < 4; r++) sums[r].add(a[y + r * 8][k], z[k][x], prime, reciprocal);
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 4; r++) out[(row + r * 8) * size + column] = sums[r].result(prime);
}

Study remainders("modular_matrix_product_a_remainder_each_term", "numerics", 1024, "a product of matrices of 1024 x 1024 numbers modulo 65521",
    "a division by a number that is known at run time, for each product",
    {{"end", "one remainder of the sum of 64 bits", {"integer_arithmetic"}}, {"reciprocal", "a product with the reciprocal", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned prime = 65521, reciprocal = static_cast<unsigned>((1ull << 32) / prime);
        const unsigned *left = b.random<unsigned>(n * n, 0, prime), *right = b.random<unsigned>(n * n, 0, prime);
        unsigned *out = b.output<unsigned>(n * n);
        b.tolerance = 0.0;
        const auto side = [=](auto kernel) { return launch(kernel, dim3(blocks(n, 32), blocks(n, 32)), 256, 0, left, right, out, n, prime, reciprocal); };
        return {{"flawed", side(modular_product<EachTerm>)}, {"end", side(modular_product<AtTheEnd>)}, {"reciprocal", side(modular_product<ByReciprocal>)}};
    });

// --- where planets are: Chebyshev's series, to twice the precision of a float ---

constexpr int TERMS = 24;

struct Twofold {
    float high, low;
};
// The rest of a product, by halves of its factors.
struct Split {
    static __device__ __forceinline__ float2 halves(float a) {
        const float c = __fmul_rn(4097.0f, a), high = __fsub_rn(c, __fsub_rn(c, a));
        return make_float2(high, __fsub_rn(a, high));
    }
    static __device__ __forceinline__ float rest(float a, float b, float product) {
        const float2 x = halves(a), y = halves(b);
        const float e = __fsub_rn(__fmul_rn(x.x, y.x), product);
        return __fadd_rn(__fadd_rn(__fadd_rn(e, __fmul_rn(x.x, y.y)), __fmul_rn(x.y, y.x)), __fmul_rn(x.y, y.y));
    }
    static __device__ __forceinline__ float more(float a, float b, float c) { return __fadd_rn(__fmul_rn(a, b), c); }
};
// The rest of a product by one fused operation.
struct Fused {
    static __device__ __forceinline__ float rest(float a, float b, float product) { return __fmaf_rn(a, b, -product); }
    static __device__ __forceinline__ float more(float a, float b, float c) { return __fmaf_rn(a, b, c); }
};
__device__ __forceinline__ Twofold normal(float high, float low) {
    const float sum = __fadd_rn(high, low);
    return {sum, __fsub_rn(low, __fsub_rn(sum, high))};
}
__device__ __forceinline__ Twofold plus(Twofold a, Twofold b) {
    const float sum = __fadd_rn(a.high, b.high), back = __fsub_rn(sum, a.high);
    const float rest = __fadd_rn(__fsub_rn(a.high, __fsub_rn(sum, back)), __fsub_rn(b.high, back));
    return normal(sum, __fadd_rn(rest, __fadd_rn(a.low, b.low)));
}
template <typename Way>
struct Series {
    using Number = Twofold;
    static __device__ __forceinline__ Number of(double v) { return {static_cast<float>(v), static_cast<float>(v - static_cast<float>(v))}; }
    static __device__ __forceinline__ Number step(Number c, Number x, Number b, Number before) {
        const float product = __fmul_rn(x.high, b.high), rest = Way::more(x.low, b.high, Way::more(x.high, b.low, Way::rest(x.high, b.high, product)));
        return plus(plus(c, {-before.high, -before.low}), normal(product, rest));
    }
    static __device__ double value(Number v) { return static_cast<double>(v.high) + v.low; }
};
struct Doubles {
    using Number = double;
    static __device__ __forceinline__ Number of(double v) { return v; }
    static __device__ __forceinline__ Number step(Number c, Number x, Number b, Number before) { return fma(x, b, c - before); }
    static __device__ double value(Number v) { return v; }
};
template <typename Way>
__global__ void __launch_bounds__(128) ephemeris(const double *__restrict__ coefficients, const float *__restrict__ times, double *__restrict__ out, int count) {
    __shared__ typename Way::Number c[TERMS];
    if (threadIdx.x < TERMS) c[threadIdx.x] = Way::of(coefficients[blockIdx.y * TERMS + threadIdx.x]);
    __syncthreads();
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const typename Way::Number x = Way::of(times[i] * 2.0), half = Way::of(times[i]), none = Way::of(0.0);
    typename Way::Number before = none, now = none;
#pragma unroll 4
    for (int k = TERMS - 1; k > 0; k--) {
        const typename Way::Number next = Way::step(c[k], x, now, before);
        before = now, now = next;
    }
    out[blockIdx.y * static_cast<size_t>(count) + i] = Way::value(Way::step(c[0], half, now, before));
}

Study planets("ephemeris_products_split_without_fusion", "astronomy", 1 << 20, "three coordinates of a planet at 1048576 times by series of 24 terms, in pairs of floats",
    "the rest of each product by halves of its factors: seventeen operations for what one fused operation gives",
    {{"fused", "the rest by a fused operation", {"non_fused_arithmetic"}}, {"doubles", "doubles, which this hardware has", {"non_fused_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<double> series(3 * TERMS);
        for (int k = 0; k < 3 * TERMS; k++) series[k] = (hash(k) / 4294967296.0 - 0.5) * 150.0 * std::pow(0.4, k % TERMS);
        const double *coefficients = b.copy(series);
        const float *times = b.random<float>(n);
        double *out = b.output<double>(3 * n);
        b.tolerance = 1e-10;
        const auto side = [=](auto kernel) { return launch(kernel, dim3(blocks(n, 128), 3), 128, 0, coefficients, times, out, n); };
        return {{"flawed", side(ephemeris<Series<Split>>)}, {"fused", side(ephemeris<Series<Fused>>)}, {"doubles", side(ephemeris<Doubles>)}};
    });

// --- tiles of a map that points of the globe lie in ---

__global__ void __launch_bounds__(256) map_tiles(const float2 *__restrict__ points, int2 *__restrict__ tiles, int count, float zoom) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float2 p = points[i];
    const float latitude = p.y * 3.14159265358979 / 180.0, across = (p.x + 180.0) / 360.0;
    const float down = (1.0 - log(tanf(latitude) + 1.0 / cosf(latitude)) / 3.14159265358979) / 2.0;
    tiles[i] = make_int2(static_cast<int>(across * zoom), static_cast<int>(down * zoom));
}
__global__ void __launch_bounds__(256) map_tiles_float(const float2 *__restrict__ points, int2 *__restrict__ tiles, int count, float zoom) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float2 p = points[i];
    const float latitude = p.y * (3.14159265f / 180.0f), across = (p.x + 180.0f) / 360.0f;
    const float down = 0.5f - logf(tanf(latitude) + 1.0f / cosf(latitude)) * (0.5f / 3.14159265f);
    tiles[i] = make_int2(static_cast<int>(across * zoom), static_cast<int>(down * zoom));
}
// One sine and one fast logarithm.
__global__ void __launch_bounds__(256) map_tiles_sine(const float2 *__restrict__ points, int2 *__restrict__ tiles, int count, float zoom) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float2 p = points[i];
    const float s = sinpif(p.y * (1.0f / 180.0f));
    const float down = 0.5f - __logf(__fdividef(1.0f + s, 1.0f - s)) * (0.25f / 3.14159265f);
    tiles[i] = make_int2(static_cast<int>((p.x + 180.0f) * (1.0f / 360.0f) * zoom), static_cast<int>(down * zoom));
}

Study maps("map_tiles_literals_in_double", "geography", 1 << 23, "tiles of a map that 8388608 points of the globe lie in",
    "literals without f make doubles of a few floats, and a logarithm with them",
    {{"float", "literals and logarithm in FP32", {"double_precision"}}, {"sine", "one sine and a fast logarithm", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float2> globe(n);
        for (long i = 0; i < n; i++) globe[i] = {hash(static_cast<unsigned>(2 * i)) / 4294967296.0f * 359.9f - 179.95f, hash(static_cast<unsigned>(2 * i + 1)) / 4294967296.0f * 160.0f - 80.0f};
        const float2 *points = b.copy(globe);
        int *out = b.output<int>(2 * n);
        b.tolerance = 2e-4;  // a point on the edge of a tile may go to its neighbour
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, 256), 256, 0, points, reinterpret_cast<int2 *>(out), n, 16384.0f); };
        return {{"flawed", side(map_tiles)}, {"float", side(map_tiles_float)}, {"sine", side(map_tiles_sine)}};
    });

// --- a small network that knows the distance to a surface: 3, 64, 64, 64, 64, 1 ---

constexpr int NEURONS = 64, LAYERS = 3;
__constant__ float net_first[NEURONS * 3], net_weights[LAYERS * NEURONS * NEURONS], net_last[NEURONS];

// A layer from registers to registers, written out.
__device__ __forceinline__ void written_layer(int layer, const float *from, float *to) {
#pragma unroll
    for (int o = 0; o < NEURONS; o++) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < NEURONS; i++) sum += net_weights[(layer * NEURONS + o) * NEURONS + i] * from[i];
        to[o] = fmaxf(sum, 0.0f);
    }
}
__device__ __forceinline__ void first_layer(const float *__restrict__ points, int i, int count, float *to) {
    const float x = points[i], y = points[count + i], z = points[2 * count + i];
#pragma unroll
    for (int o = 0; o < NEURONS; o++) to[o] = fmaxf(0.0f, net_first[o * 3] * x + net_first[o * 3 + 1] * y + net_first[o * 3 + 2] * z);
}
__device__ __forceinline__ float last_layer(const float *from) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < NEURONS; k++) sum += net_last[k] * from[k];
    return sum;
}
__global__ void __launch_bounds__(128, 3) surface_distance(const float *__restrict__ points, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;  // a multiple of 128 of them
    float a[NEURONS], z[NEURONS];
    first_layer(points, i, count, a);
    written_layer(0, a, z), written_layer(1, z, a), written_layer(2, a, z);
    out[i] = last_layer(z);
}
// The neurons of a layer are a loop; their outputs go by way of shared memory.
__global__ void __launch_bounds__(128) surface_distance_loop(const float *__restrict__ points, float *__restrict__ out, int count) {
    __shared__ float outputs[NEURONS][128];
    const int i = blockIdx.x * 128 + threadIdx.x, t = threadIdx.x;
    float a[NEURONS];
    first_layer(points, i, count, a);
#pragma unroll 1
    for (int layer = 0; layer < LAYERS; layer++) {
#pragma unroll 1
        for (int o = 0; o < NEURONS; o += 4) {
            const float *weights = net_weights + (layer * NEURONS + o) * NEURONS;
            float sums[4] = {};
#pragma unroll
            for (int k = 0; k < NEURONS; k++)
#pragma unroll
                for (int r = 0; r < 4; r++) sums[r] += weights[r * NEURONS + k] * a[k];
#pragma unroll
            for (int r = 0; r < 4; r++) outputs[o + r][t] = fmaxf(sums[r], 0.0f);
        }
#pragma unroll
        for (int k = 0; k < NEURONS; k++) a[k] = outputs[k][t];
    }
    out[i] = last_layer(a);
}
// One layer's code for all; weights of a layer in shared memory, read as vectors for two neurons at once.
__global__ void __launch_bounds__(128) surface_distance_tile(const float *__restrict__ points, const float4 *__restrict__ weights, float *__restrict__ out, int count) {
    extern __shared__ float room[];
    float4 *layer_weights = reinterpret_cast<float4 *>(room);
    float *outputs = room + NEURONS * NEURONS;
    const int i = blockIdx.x * 128 + threadIdx.x, t = threadIdx.x;
    float a[NEURONS];
    first_layer(points, i, count, a);
#pragma unroll 1
    for (int layer = 0; layer < LAYERS; layer++) {
        __syncthreads();
        for (int k = t; k < NEURONS * NEURONS / 4; k += 128) layer_weights[k] = weights[layer * NEURONS * NEURONS / 4 + k];
        __syncthreads();
#pragma unroll 1
        for (int o = 0; o < NEURONS; o += 2) {
            float first = 0.0f, second = 0.0f;
#pragma unroll
            for (int k = 0; k < NEURONS / 4; k++) {
                const float4 w = layer_weights[o * NEURONS / 4 + k], v = layer_weights[(o + 1) * NEURONS / 4 + k];
                first += w.x * a[4 * k] + w.y * a[4 * k + 1] + w.z * a[4 * k + 2] + w.w * a[4 * k + 3];
                second += v.x * a[4 * k] + v.y * a[4 * k + 1] + v.z * a[4 * k + 2] + v.w * a[4 * k + 3];
            }
            outputs[o * 128 + t] = fmaxf(first, 0.0f), outputs[(o + 1) * 128 + t] = fmaxf(second, 0.0f);
        }
#pragma unroll
        for (int k = 0; k < NEURONS; k++) a[k] = outputs[k * 128 + t];
    }
    out[i] = last_layer(a);
}

Study network("surface_network_of_12288_products_written_out", "rendering", 1 << 19, "distances of 524288 points to a surface by a network of three layers of 64 neurons",
    "all products of all layers written out: more code than the caches of instructions hold",
    {{"loop", "neurons of a layer as a loop, outputs by way of shared memory", {"instruction_cache"}}, {"tile", "a loop, and the weights of a layer in shared memory", {"instruction_cache"}}},
    [](Buffers &b, long n) -> Sides {
        const auto numbers = [](int count, unsigned seed, float scale) {
            std::vector<float> found(count);
            for (int k = 0; k < count; k++) found[k] = ((hash(seed + k) >> 8) / 8388608.0f - 0.9f) * scale;
            return found;
        };
        const std::vector<float> first = numbers(NEURONS * 3, 1, 1.0f), middle = numbers(LAYERS * NEURONS * NEURONS, 1000, 0.2f), last = numbers(NEURONS, 100000, 0.2f);
        CHECK(cudaMemcpyToSymbol(net_first, first.data(), first.size() * sizeof(float)));
        CHECK(cudaMemcpyToSymbol(net_weights, middle.data(), middle.size() * sizeof(float)));
        CHECK(cudaMemcpyToSymbol(net_last, last.data(), last.size() * sizeof(float)));
        const float *points = b.random<float>(3 * n);
        const float4 *weights = reinterpret_cast<const float4 *>(b.copy(middle));
        float *out = b.output<float>(n);
        return {{"flawed", launch(surface_distance, blocks(n, 128), 128, 0, points, out, n)}, {"loop", launch(surface_distance_loop, blocks(n, 128), 128, 0, points, out, n)},
            {"tile", launch(surface_distance_tile, blocks(n, 128), 128, (NEURONS * NEURONS + NEURONS * 128) * sizeof(float), points, weights, out, n)}};
    });

// --- largest differences of features, for all pairs of items ---

constexpr int FEATURES = 64;

__global__ void __launch_bounds__(256) largest_gaps(const float *__restrict__ left, const float *__restrict__ right, float *__restrict__ out, int count) {
    __shared__ float a[16][FEATURES + 1], z[16][FEATURES + 1];
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    for (int k = threadIdx.x; k < 16 * FEATURES; k += 256) {
        a[k / FEATURES][k % FEATURES] = left[(blockIdx.y * 16 + k / FEATURES) * FEATURES + k % FEATURES];
        z[k / FEATURES][k % FEATURES] = right[(blockIdx.x * 16 + k / FEATURES) * FEATURES + k % FEATURES];
    }
    __syncthreads();
    float gap = 0.0f;
#pragma unroll 8
    for (int k = 0; k < FEATURES; k++) gap = fmaxf(gap, fabsf(a[y][k] - z[x][k]));
    out[static_cast<size_t>(blockIdx.y * 16 + y) * count + blockIdx.x * 16 + x] = gap;
}
// Sixteen pairs a thread, four items of either side from shared memory.
__global__ void __launch_bounds__(256) largest_gaps_sixteen(const float *__restrict__ left, const float *__restrict__ right, float *__restrict__ out, int count) {
    __shared__ float a[FEATURES / 2][65], z[FEATURES / 2][65];
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    float gaps[4][4] = {};
    for (int half = 0; half < FEATURES; half += FEATURES / 2) {
        for (int k = threadIdx.x; k < 64 * FEATURES / 2; k += 256) {
            a[k % 32][k / 32] = left[(blockIdx.y * 64 + k / 32) * FEATURES + half + k % 32];
            z[k % 32][k / 32] = right[(blockIdx.x * 64 + k / 32) * FEATURES + half + k % 32];
        }
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < FEATURES / 2; k++) {
            float p[4], q[4];
#pragma unroll
            for (int r = 0; r < 4; r++) p[r] = a[k][y + r * 16], q[r] = z[k][x + r * 16];
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int c = 0; c < 4; c++) gaps[r][c] = fmaxf(gaps[r][c], fabsf(p[r] - q[c]));
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 4; c++) out[static_cast<size_t>(blockIdx.y * 64 + y + r * 16) * count + blockIdx.x * 64 + x + c * 16] = gaps[r][c];
}
// A thread keeps an item in registers; the items of the other side come as vectors that all lanes read at once.
__global__ void __launch_bounds__(128) largest_gaps_kept(const float4 *__restrict__ left, const float4 *__restrict__ right, float *__restrict__ out, int count) {
    __shared__ float4 a[32][FEATURES / 4];
    const int column = blockIdx.x * 128 + threadIdx.x;
    float4 own[FEATURES / 4];
#pragma unroll
    for (int k = 0; k < FEATURES / 4; k++) own[k] = right[column * (FEATURES / 4) + k];
    for (int k = threadIdx.x; k < 32 * FEATURES / 4; k += 128) a[k / (FEATURES / 4)][k % (FEATURES / 4)] = left[blockIdx.y * 32 * (FEATURES / 4) + k];
    __syncthreads();
    for (int r = 0; r < 32; r++) {
        float gap = 0.0f;
#pragma unroll
        for (int k = 0; k < FEATURES / 4; k++) {
            const float4 v = a[r][k];
            gap = fmaxf(fmaxf(gap, fmaxf(fabsf(v.x - own[k].x), fabsf(v.y - own[k].y))), fmaxf(fabsf(v.z - own[k].z), fabsf(v.w - own[k].w)));
        }
        out[static_cast<size_t>(blockIdx.y * 32 + r) * count + column] = gap;
    }
}

Study gaps("largest_gaps_two_shared_words_a_feature", "statistics", 4096, "largest difference of 64 features for all pairs of 4096 items",
    "two words of shared memory for each feature of a pair",
    {{"sixteen", "sixteen pairs a thread", {"shared_memory_bandwidth"}}, {"kept", "an item in registers, the others as vectors", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const float *left = b.random<float>(n * FEATURES), *right = b.random<float>(n * FEATURES);
        float *out = b.output<float>(n * n);
        return {{"flawed", launch(largest_gaps, dim3(blocks(n, 16), blocks(n, 16)), 256, 0, left, right, out, n)}, {"sixteen", launch(largest_gaps_sixteen, dim3(blocks(n, 64), blocks(n, 64)), 256, 0, left, right, out, n)},
            {"kept", launch(largest_gaps_kept, dim3(blocks(n, 128), blocks(n, 32)), 128, 0, reinterpret_cast<const float4 *>(left), reinterpret_cast<const float4 *>(right), out, n)}};
    });

// --- neighbours of a node in the order of their angles ---

constexpr int AROUND = 16;

struct Rows {
    static constexpr int WORDS = 128 * AROUND;
    static __device__ __forceinline__ int at(int node, int k) { return node * AROUND + k; }
};
struct LongerRows {
    static constexpr int WORDS = 128 * (AROUND + 1);
    static __device__ __forceinline__ int at(int node, int k) { return node * (AROUND + 1) + k; }
};
struct Columns {
    static constexpr int WORDS = 128 * AROUND;
    static __device__ __forceinline__ int at(int node, int k) { return k * 128 + node; }
};
template <typename Place>
__global__ void __launch_bounds__(128) order_angles(const float *__restrict__ angles, float *__restrict__ out) {
    __shared__ float room[Place::WORDS];
    const int t = threadIdx.x;
    const size_t first = static_cast<size_t>(blockIdx.x) * 128 * AROUND;
    for (int k = t; k < 128 * AROUND; k += 128) room[Place::at(k / AROUND, k % AROUND)] = angles[first + k];
    __syncthreads();
    for (int k = 1; k < AROUND; k++) {
        const float own = room[Place::at(t, k)];
        int to = k;
        for (; to > 0; to--) {
            const float before = room[Place::at(t, to - 1)];
            if (before <= own) break;
            room[Place::at(t, to)] = before;
        }
        room[Place::at(t, to)] = own;
    }
    __syncthreads();
    for (int k = t; k < 128 * AROUND; k += 128) out[first + k] = room[Place::at(k / AROUND, k % AROUND)];
}

Study angles("neighbour_angles_ordered_in_rows_of_16", "graphs", 1 << 20, "angles of 16 neighbours of 1048576 nodes brought into order",
    "a thread's row of sixteen words in shared memory begins in one of two banks",
    {{"longer", "rows of seventeen words", {"shared_bank_conflicts"}}, {"columns", "a column of shared memory for each thread", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        const float *angles = b.random<float>(n * AROUND, -3.14, 3.14);
        float *out = b.output<float>(n * AROUND);
        b.tolerance = 0.0;
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, 128), 128, 0, angles, out); };
        return {{"flawed", side(order_angles<Rows>)}, {"longer", side(order_angles<LongerRows>)}, {"columns", side(order_angles<Columns>)}};
    });

// --- weights of communities of a graph, of which a few are large ---

constexpr int COMMUNITIES = 64, EACH_BLOCK = 4096;

struct Nodes {
    const int *labels;
    const float *weights;
    int count;
};
__global__ void __launch_bounds__(256) community_weights(const Nodes nodes, float *__restrict__ out) {
    __shared__ float sums[COMMUNITIES];
    if (threadIdx.x < COMMUNITIES) sums[threadIdx.x] = 0.0f;
    __syncthreads();
    const int end = ::min(nodes.count, static_cast<int>(blockIdx.x + 1) * EACH_BLOCK);
    for (int i = blockIdx.x * EACH_BLOCK + threadIdx.x; i < end; i += 256) atomicAdd(sums + nodes.labels[i], nodes.weights[i]);
    __syncthreads();
    if (threadIdx.x < COMMUNITIES) atomicAdd(out + threadIdx.x, sums[threadIdx.x]);
}
// Whole numbers of 1/4096: shared memory adds these by itself.
__global__ void __launch_bounds__(256) community_weights_whole(const Nodes nodes, float *__restrict__ out) {
    __shared__ unsigned sums[COMMUNITIES];
    if (threadIdx.x < COMMUNITIES) sums[threadIdx.x] = 0;
    __syncthreads();
    const int end = ::min(nodes.count, static_cast<int>(blockIdx.x + 1) * EACH_BLOCK);
    for (int i = blockIdx.x * EACH_BLOCK + threadIdx.x; i < end; i += 256) atomicAdd(sums + nodes.labels[i], static_cast<unsigned>(nodes.weights[i] * 4096.0f + 0.5f));
    __syncthreads();
    if (threadIdx.x < COMMUNITIES) atomicAdd(out + threadIdx.x, sums[threadIdx.x] * (1.0f / 4096.0f));
}
// Sums for each lane: no two lanes of a warp meet.
__global__ void __launch_bounds__(256) community_weights_lanes(const Nodes nodes, float *__restrict__ out) {
    __shared__ float sums[COMMUNITIES][32];
    const int lane = threadIdx.x % 32;
    for (int k = threadIdx.x; k < COMMUNITIES * 32; k += 256) sums[k / 32][k % 32] = 0.0f;
    __syncthreads();
    const int end = ::min(nodes.count, static_cast<int>(blockIdx.x + 1) * EACH_BLOCK);
    for (int i = blockIdx.x * EACH_BLOCK + threadIdx.x; i < end; i += 256) atomicAdd(&sums[nodes.labels[i]][lane], nodes.weights[i]);
    __syncthreads();
    for (int k = threadIdx.x / 32; k < COMMUNITIES; k += 8) {
        const float sum = warp_sum(sums[k][lane]);
        if (lane == 0) atomicAdd(out + k, sum);
    }
}

Study communities("community_weights_floats_added_in_shared", "graphs", 1 << 24, "weights of 64 communities of 16777216 nodes, a few of which are large",
    "atomic additions of floats in shared memory are tried again and again where lanes have one community",
    {{"whole", "whole numbers of 1/4096", {"shared_atomics"}}, {"lanes", "sums for each lane", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> labels(n);
        for (long i = 0; i < n; i++) {
            const unsigned h = hash(static_cast<unsigned>(i)), within = h >> 8 & 7;
            labels[i] = static_cast<int>(h % 64 & (within < 4 ? 1 : within < 6 ? 7 : 63));
        }
        const Nodes nodes{b.copy(labels), b.random<float>(n, 0.5, 3.5), static_cast<int>(n)};
        float *out = b.output<float>(COMMUNITIES, true);
        b.tolerance = 2e-3;
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, EACH_BLOCK), 256, 0, nodes, out); };
        return {{"flawed", side(community_weights)}, {"whole", side(community_weights_whole)}, {"lanes", side(community_weights_lanes)}};
    });

// --- rain between the gauges that measured it ---

__device__ __forceinline__ float nearness(float x, float y, float4 gauge) {
    const float dx = gauge.x - x, dy = gauge.y - y, square = dx * dx + dy * dy + 1e-3f;
    return __fdividef(1.0f, square * square);
}
struct Field {
    float *weighted, *weights;  // sums so far, then rain
    int width, cells;
};
__global__ void __launch_bounds__(256) rain_between(const float4 *gauges, int count, Field field) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= field.cells) return;
    const float x = i % field.width, y = i / field.width;
    field.weighted[i] = field.weights[i] = 0.0f;
    for (int k = 0; k < count; k++) {
        const float w = nearness(x, y, gauges[k]);
        field.weighted[i] += w * gauges[k].z;
        field.weights[i] += w;
    }
    field.weighted[i] /= field.weights[i];
}
__global__ void __launch_bounds__(256) rain_between_sums(const float4 *__restrict__ gauges, int count, Field field) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= field.cells) return;
    const float x = i % field.width, y = i / field.width;
    float weighted = 0.0f, weights = 0.0f;
#pragma unroll 4
    for (int k = 0; k < count; k++) {
        const float4 gauge = gauges[k];
        const float w = nearness(x, y, gauge);
        weighted += w * gauge.z, weights += w;
    }
    field.weighted[i] = weighted / weights, field.weights[i] = weights;
}
// Gauges in shared memory, and four cells a thread.
__global__ void __launch_bounds__(128) rain_between_four(const float4 *__restrict__ gauges, int count, Field field) {
    __shared__ float4 tile[128];
    const int first = blockIdx.x * 512 + threadIdx.x;  // cells are a multiple of 512, gauges of 128
    float weighted[4] = {}, weights[4] = {};
    for (int start = 0; start < count; start += 128) {
        tile[threadIdx.x] = gauges[start + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < 128; k++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const int i = first + c * 128;
                const float w = nearness(i % field.width, i / field.width, tile[k]);
                weighted[c] += w * tile[k].z, weights[c] += w;
            }
        __syncthreads();
    }
#pragma unroll
    for (int c = 0; c < 4; c++) field.weighted[first + c * 128] = weighted[c] / weights[c], field.weights[first + c * 128] = weights[c];
}

Study rain("rain_between_gauges_summed_in_global", "climate", 512, "rain at 262144 cells from 512 gauges, weighted by distance",
    "both sums are read from global memory and written back for each gauge, as the gauges might be changed by it",
    {{"sums", "sums in registers", {"redundant_loads"}}, {"four", "sums in registers, gauges in shared memory for four cells a thread", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> list(512);
        for (unsigned k = 0; k < 512; k++) list[k] = {hash(k) % 5120 * 0.1f, hash(k + 600) % 5120 * 0.1f, 5.0f + hash(k + 1200) % 100 * 0.3f, 0.0f};
        const float4 *gauges = b.copy(list);
        const int cells = static_cast<int>(n * n);
        const Field field{b.output<float>(cells), b.output<float>(cells), static_cast<int>(n), cells};
        b.tolerance = 1e-3;
        return {{"flawed", launch(rain_between, blocks(cells, 256), 256, 0, gauges, 512, field)}, {"sums", launch(rain_between_sums, blocks(cells, 256), 256, 0, gauges, 512, field)},
            {"four", launch(rain_between_four, blocks(cells, 512), 128, 0, gauges, 512, field)}};
    });

// --- radiances of bodies of a temperature at four wave lengths: without a flaw ---

__global__ void __launch_bounds__(256) radiances(const float4 *__restrict__ temperatures, float4 *__restrict__ out, float4 lengths, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 t = temperatures[i];
    const float inverse[4] = {__frcp_rn(t.x), __frcp_rn(t.y), __frcp_rn(t.z), __frcp_rn(t.w)}, wave[4] = {lengths.x, lengths.y, lengths.z, lengths.w};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float v[4];
#pragma unroll
        for (int c = 0; c < 4; c++) v[c] = __fdividef(1e5f, __expf(wave[k] * inverse[c]) - 1.0f);
        out[static_cast<size_t>(k) * count + i] = make_float4(v[0], v[1], v[2], v[3]);
    }
}

Study planck("sound_radiances_of_temperatures", "climate", 1 << 24, "radiances of 16777216 temperatures at four wave lengths", "", {}, [](Buffers &b, long n) -> Sides {
    const float *temperatures = b.random<float>(n, 180, 330);
    float *out = b.output<float>(n * 4);
    return {{"sound", launch(radiances, blocks(n / 4, 256), 256, 0, reinterpret_cast<const float4 *>(temperatures), reinterpret_cast<float4 *>(out), make_float4(1320.0f, 1340.0f, 2050.0f, 3680.0f), n / 4)}};
});

}  // namespace
