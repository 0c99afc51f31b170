// Series, points and molecules. Each kernel but the sound one has one weakness and two ways out.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "../pairs/pair.cuh"

namespace {

// --- energies of torsions: a Fourier series of the angle between two planes ---

struct Torsion {
    float height[6], phase[6];
};

__device__ __forceinline__ float3 minus(float4 a, float4 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
__device__ __forceinline__ float3 cross(float3 a, float3 b) { return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x); }
__device__ __forceinline__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

// Chains of atoms; torsion i is that of atoms i ... i + 3.
__global__ void __launch_bounds__(256) torsions(const float4 *__restrict__ atoms, const Torsion *__restrict__ kinds, float *__restrict__ energy, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float3 b1 = minus(atoms[i + 1], atoms[i]), b2 = minus(atoms[i + 2], atoms[i + 1]), b3 = minus(atoms[i + 3], atoms[i + 2]);
    const float3 m = cross(b1, b2), n = cross(b2, b3);
    const float phi = atan2f(sqrtf(dot(b2, b2)) * dot(b1, n), dot(m, n));
    const Torsion &kind = kinds[(i >> 5) & 15];
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < 6; ++k) sum += kind.height[k] * (1.f + cosf((k + 1) * phi - kind.phase[k]));
    energy[i] = sum;
}
__global__ void __launch_bounds__(256) torsions_fast(const float4 *__restrict__ atoms, const Torsion *__restrict__ kinds, float *__restrict__ energy, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float3 b1 = minus(atoms[i + 1], atoms[i]), b2 = minus(atoms[i + 2], atoms[i + 1]), b3 = minus(atoms[i + 3], atoms[i + 2]);
    const float3 m = cross(b1, b2), n = cross(b2, b3);
    const float phi = atan2f(sqrtf(dot(b2, b2)) * dot(b1, n), dot(m, n));
    const Torsion &kind = kinds[(i >> 5) & 15];
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < 6; ++k) sum += kind.height[k] * (1.f + __cosf((k + 1) * phi - kind.phase[k]));
    energy[i] = sum;
}
// Cosine and sine of the angle are quotients of products of the vectors; those of its multiples follow by addition. Kinds hold heights times cosine and sine of their phases.
__global__ void __launch_bounds__(256) torsions_without_angle(const float4 *__restrict__ atoms, const Torsion *__restrict__ turned, float *__restrict__ energy, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float3 b1 = minus(atoms[i + 1], atoms[i]), b2 = minus(atoms[i + 2], atoms[i + 1]), b3 = minus(atoms[i + 3], atoms[i + 2]);
    const float3 m = cross(b1, b2), n = cross(b2, b3);
    const float x = dot(m, n), y = sqrtf(dot(b2, b2)) * dot(b1, n), inverse = rsqrtf(x * x + y * y), c = x * inverse, s = y * inverse;
    const Torsion &kind = turned[(i >> 5) & 15];
    float sum = turned[16 + ((i >> 5) & 15)].height[1], ck = 1.f, sk = 0.f;
#pragma unroll
    for (int k = 0; k < 6; ++k) {
        const float next = ck * c - sk * s;
        sk = sk * c + ck * s;
        ck = next;
        sum += kind.height[k] * ck + kind.phase[k] * sk;
    }
    energy[i] = sum;
}

Study torsion("torsion_energies_cosine_of_each_multiple", "molecules", 1 << 23, "energies of 8388608 torsions along chains of atoms, six Fourier terms each",
    "the angle by a precise arc tangent, then six precise cosines",
    {{"fast", "fast cosines", {"expensive_math"}}, {"without_angle", "cosine and sine from the vectors, of multiples by addition", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Torsion> kinds(16), turned(32);
        for (int kind = 0; kind < 16; ++kind) {
            float all = 0.f;
            for (int k = 0; k < 6; ++k) {
                const float height = 0.5f + 0.1f * ((kind * 7 + k * 3) % 11), phase = k % 2 ? 3.14159265f : 0.3f * kind;
                kinds[kind].height[k] = height, kinds[kind].phase[k] = phase;
                turned[kind].height[k] = height * std::cos(phase), turned[kind].phase[k] = height * std::sin(phase);
                all += height;
            }
            for (int k = 0; k < 6; ++k) turned[16 + kind].height[k] = turned[16 + kind].phase[k] = k == 1 ? all : 0.f;
        }
        std::vector<float4> atoms(n + 3);
        float x = 0.f, y = 0.f, z = 0.f;
        for (long i = 0; i < n + 3; ++i) {
            const unsigned h = hash(static_cast<unsigned>(i));
            if (i % 64 == 0) x = y = z = 0.f;
            x += 1.1f, y += (h & 1023) / 512.f - 1.f, z += ((h >> 10) & 1023) / 512.f - 1.f;
            atoms[i] = make_float4(x, y, z, 0.f);
        }
        const float4 *at = b.copy(atoms);
        const Torsion *of = b.copy(kinds), *by = b.copy(turned);
        float *energy = b.output<float>(n);
        const int count = static_cast<int>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(torsions, blocks(n, 256), 256, 0, at, of, energy, count)}, {"fast", launch(torsions_fast, blocks(n, 256), 256, 0, at, of, energy, count)},
            {"without_angle", launch(torsions_without_angle, blocks(n, 256), 256, 0, at, by, energy, count)}};
    });

// --- largest principal axis of small covariance matrices by repeated products ---

constexpr int AXES = 64, ROUNDS = 40;

struct Axis {
    float value;  // of this thread's row of the product
};

// A thread a row, which it holds in registers; the vector is in shared memory.
__device__ __forceinline__ float row_times(const float (&row)[AXES], const float *vector) {
    float sum[4] = {};
#pragma unroll
    for (int k = 0; k < AXES; k += 4) {
        const float4 v = *reinterpret_cast<const float4 *>(vector + k);
        sum[0] += row[k] * v.x, sum[1] += row[k + 1] * v.y, sum[2] += row[k + 2] * v.z, sum[3] += row[k + 3] * v.w;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

template <int WAY>  // 0: a tree each round; 1: shuffles each round; 2: shuffles each eighth round
__global__ void __launch_bounds__(AXES) principal_axis(const float *__restrict__ matrices, float *__restrict__ axes, float *__restrict__ values) {
    __shared__ __align__(16) float vector[2][AXES];
    __shared__ float squares[AXES];
    const int t = threadIdx.x;
    const float *matrix = matrices + static_cast<size_t>(blockIdx.x) * AXES * AXES;
    float row[AXES], length = 1.f;
#pragma unroll
    for (int k = 0; k < AXES; ++k) row[k] = matrix[k * AXES + t];  // symmetric: the column is the row
    vector[0][t] = 0.125f;
    __syncthreads();
    for (int round = 0; round < ROUNDS; ++round) {
        Axis mine{row_times(row, vector[round & 1])};
        if (WAY == 0) {
            squares[t] = mine.value * mine.value;
            __syncthreads();
            for (int stride = AXES / 2; stride > 0; stride >>= 1) {
                if (t < stride) squares[t] += squares[t + stride];
                __syncthreads();
            }
            length = sqrtf(squares[0]);
            mine.value /= length;
        } else if (WAY == 1 || round % 8 == 7) {
            const float part = warp_sum(mine.value * mine.value);
            if (t % 32 == 0) squares[t / 32 + 2 * (round & 1)] = part;
            __syncthreads();
            length = sqrtf(squares[2 * (round & 1)] + squares[2 * (round & 1) + 1]);
            mine.value /= length;
        }
        vector[(round + 1) & 1][t] = mine.value;
        __syncthreads();
    }
    // How long the product with the axis is: the largest eigenvalue.
    const float last = row_times(row, vector[ROUNDS & 1]), own = vector[ROUNDS & 1][t];
    const float part = warp_sum(last * own);
    __syncthreads();
    if (t % 32 == 0) squares[t / 32] = part;
    __syncthreads();
    axes[blockIdx.x * AXES + t] = own;
    if (t == 0) values[blockIdx.x] = squares[0] + squares[1];
}

Study principal("principal_axes_tree_each_norm", "statistics", 8192, "largest eigenvalue and its vector of 8192 covariance matrices of 64 x 64, 40 products each",
    "the vector is made of length one after each product by a tree over the block: eight barriers a product",
    {{"shuffles", "two warps' sums by shuffles, one barrier for them", {"barriers"}}, {"seldom", "made of length one after every eighth product only, by shuffles", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> matrices(n * AXES * AXES);
        for (long m = 0; m < n; ++m)
            for (int i = 0; i < AXES; ++i)
                for (int j = 0; j <= i; ++j) {
                    const float noise = static_cast<float>(hash(static_cast<unsigned>((m * AXES + i) * AXES + j)) >> 8) / 16777216.f;
                    const float v = (i == j ? 0.8f : 0.f) + 0.05f + 0.04f * noise;
                    matrices[(m * AXES + i) * AXES + j] = matrices[(m * AXES + j) * AXES + i] = v;
                }
        const float *data = b.copy(matrices);
        float *axes = b.output<float>(n * AXES), *values = b.output<float>(n);
        return {{"flawed", launch(principal_axis<0>, n, AXES, 0, data, axes, values)}, {"shuffles", launch(principal_axis<1>, n, AXES, 0, data, axes, values)},
            {"seldom", launch(principal_axis<2>, n, AXES, 0, data, axes, values)}};
    });

// --- points of Halton's sequence for a path's steps ---

constexpr int DIMENSIONS = 8;

struct Bases {
    unsigned of[DIMENSIONS];
};

__global__ void __launch_bounds__(256) halton(Bases bases, float *__restrict__ out, unsigned first, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    for (int d = 0; d < DIMENSIONS; ++d) {
        const unsigned base = bases.of[d];
        const float inverse = 1.f / base;
        float place = inverse, value = 0.f;
        for (unsigned rest = first + i; rest; rest /= base) {
            value += place * (rest % base);
            place *= inverse;
        }
        out[static_cast<size_t>(d) * count + i] = value;
    }
}
template <unsigned BASE>
__device__ __forceinline__ float inverted(unsigned rest) {
    constexpr float inverse = 1.f / BASE;
    float place = inverse, value = 0.f;
    while (rest) {
        const unsigned next = rest / BASE;
        value += place * (rest - next * BASE);
        place *= inverse;
        rest = next;
    }
    return value;
}
__global__ void __launch_bounds__(256) halton_known(float *__restrict__ out, unsigned first, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const unsigned n = first + i;
    const size_t pitch = count;
    float *to = out + i;
    to[0] = inverted<2>(n), to[pitch] = inverted<3>(n), to[2 * pitch] = inverted<5>(n), to[3 * pitch] = inverted<7>(n);
    to[4 * pitch] = inverted<11>(n), to[5 * pitch] = inverted<13>(n), to[6 * pitch] = inverted<17>(n), to[7 * pitch] = inverted<19>(n);
}
// A quotient by a product with the base's reciprocal.
__global__ void __launch_bounds__(256) halton_reciprocals(Bases bases, float *__restrict__ out, unsigned first, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
#pragma unroll 1
    for (int d = 0; d < DIMENSIONS; ++d) {
        const unsigned base = bases.of[d];
        const unsigned factor = 0xffffffffu / base + 1;  // exact for what is below 2^27 and bases of up to 19
        const float inverse = 1.f / base;
        float place = inverse, value = 0.f;
        for (unsigned rest = first + i; rest;) {
            const unsigned next = __umulhi(rest, factor);
            value += place * (rest - next * base);
            place *= inverse;
            rest = next;
        }
        out[static_cast<size_t>(d) * count + i] = value;
    }
}

Study low_discrepancy("halton_digits_by_a_base_from_a_table", "finance", 1 << 22, "4194304 points of Halton's sequence in eight dimensions",
    "each digit by a quotient and a remainder by a number known at run time only",
    {{"known_bases", "bases as parameters of a template", {"integer_arithmetic"}}, {"reciprocals", "quotients by a product with the base's reciprocal", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const Bases bases{{2, 3, 5, 7, 11, 13, 17, 19}};
        float *out = b.output<float>(n * DIMENSIONS);
        const int count = static_cast<int>(n);
        const unsigned first = 4096;
        return {{"flawed", launch(halton, n / 256, 256, 0, bases, out, first, count)}, {"known_bases", launch(halton_known, n / 256, 256, 0, out, first, count)},
            {"reciprocals", launch(halton_reciprocals, n / 256, 256, 0, bases, out, first, count)}};
    });

// --- ordinal patterns of a series: in which order six values, some steps apart, are ---

constexpr int ORDER = 6;

__global__ void __launch_bounds__(256) patterns(const float *__restrict__ series, int *__restrict__ out, int count, int lag) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    float value[ORDER];
    int order[ORDER];
    for (int k = 0; k < ORDER; ++k) value[k] = series[i + k * lag], order[k] = k;
    for (int k = 1; k < ORDER; ++k) {
        const int own = order[k];
        int j = k - 1;
        while (j >= 0 && value[order[j]] > value[own]) order[j + 1] = order[j], --j;
        order[j + 1] = own;
    }
    int place[ORDER], number = 0;
    for (int k = 0; k < ORDER; ++k) place[order[k]] = k;
    for (int k = 0; k < ORDER; ++k) {
        int later = 0;
        for (int j = k + 1; j < ORDER; ++j) later += place[j] < place[k];
        number = number * (ORDER - k) + later;
    }
    out[i] = number;
}
__device__ __forceinline__ int pattern_of(const float (&value)[ORDER]) {
    int number = 0;
#pragma unroll
    for (int k = 0; k < ORDER; ++k) {
        int later = 0;
#pragma unroll
        for (int j = k + 1; j < ORDER; ++j) later += value[j] < value[k];
        number = number * (ORDER - k) + later;
    }
    return number;
}
__global__ void __launch_bounds__(256) patterns_counted(const float *__restrict__ series, int *__restrict__ out, int count, int lag) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    float value[ORDER];
#pragma unroll
    for (int k = 0; k < ORDER; ++k) value[k] = series[i + k * lag];
    out[i] = pattern_of(value);
}
// A thread goes along the series in steps of the lag: five of its six values it has already.
__global__ void __launch_bounds__(256) patterns_along(const float *__restrict__ series, int *__restrict__ out, int count, int lag) {
    const int at = blockIdx.x * 256 + threadIdx.x, first = at / lag * lag * 8 + at % lag;
    float value[ORDER];
#pragma unroll
    for (int k = 0; k + 1 < ORDER; ++k) value[k + 1] = first + k * lag < count + (ORDER - 1) * lag ? series[first + k * lag] : 0.f;
#pragma unroll
    for (int step = 0; step < 8; ++step) {
        const int i = first + step * lag;
        if (i >= count) return;
#pragma unroll
        for (int k = 0; k + 1 < ORDER; ++k) value[k] = value[k + 1];
        value[ORDER - 1] = series[i + (ORDER - 1) * lag];
        out[i] = pattern_of(value);
    }
}

Study ordinal("ordinal_patterns_sorted_by_index", "time series", 1 << 25, "which of 720 orders six samples, 32 steps apart, stand in, at 33554432 places of a recording",
    "indices are sorted and turned round in arrays that are indexed at run time",
    {{"counted", "the pattern's number from 15 comparisons of values in registers", {"local_memory"}}, {"along", "the same, eight places a thread, values kept", {"local_memory", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int lag = 32, count = static_cast<int>(n);
        const float *series = b.random<float>(n + (ORDER - 1) * lag);
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(patterns, blocks(n, 256), 256, 0, series, out, count, lag)}, {"counted", launch(patterns_counted, blocks(n, 256), 256, 0, series, out, count, lag)},
            {"along", launch(patterns_along, blocks(n, 2048), 256, 0, series, out, count, lag)}};
    });

// --- a series' nearest repetition: for each window the closest other one, along diagonals ---

constexpr int WINDOW = 64, STRIP = 64;

// Distances along a diagonal follow from one another: a value comes in, one goes out.
__device__ __forceinline__ void lower(unsigned *at, float distance) { atomicMin(at, __float_as_uint(distance)); }
struct Diagonal {
    float distance;
    int i, j;
};
__device__ __forceinline__ Diagonal start(const float *series, int lag, int row) {
    Diagonal d{0.f, row, row + lag};
    for (int k = 0; k < WINDOW; ++k) {
        const float off = series[d.i + k] - series[d.j + k];
        d.distance += off * off;
    }
    return d;
}
__device__ __forceinline__ void advance(Diagonal &d, const float *series) {
    const float out = series[d.i] - series[d.j], in = series[d.i + WINDOW] - series[d.j + WINDOW];
    d.distance += in * in - out * out;
    ++d.i, ++d.j;
}
__global__ void __launch_bounds__(256) repetitions(const float *__restrict__ series, unsigned *nearest, int windows, int gap) {
    const int lag = gap + blockIdx.x * 256 + threadIdx.x, row = blockIdx.y * STRIP;
    if (row + lag >= windows) return;
    Diagonal d = start(series, lag, row);
    for (int step = 0; step < STRIP && d.j < windows; ++step) {
        const float distance = fmaxf(d.distance, 0.f);
        lower(nearest + d.i, distance);
        lower(nearest + d.j, distance);
        advance(d, series);
    }
}
// An atomic only where it would change anything.
__global__ void __launch_bounds__(256) repetitions_if_less(const float *__restrict__ series, unsigned *nearest, int windows, int gap) {
    const int lag = gap + blockIdx.x * 256 + threadIdx.x, row = blockIdx.y * STRIP;
    if (row + lag >= windows) return;
    Diagonal d = start(series, lag, row);
    const volatile unsigned *seen = nearest;
    for (int step = 0; step < STRIP && d.j < windows; ++step) {
        const float distance = fmaxf(d.distance, 0.f);
        const unsigned bits = __float_as_uint(distance);
        if (bits < seen[d.i]) lower(nearest + d.i, distance);
        if (bits < seen[d.j]) lower(nearest + d.j, distance);
        advance(d, series);
    }
}
// The block's least distances of rows and columns in shared memory first.
__global__ void __launch_bounds__(256) repetitions_in_block(const float *__restrict__ series, unsigned *nearest, int windows, int gap) {
    __shared__ unsigned rows[STRIP], columns[STRIP + 256];
    const int t = threadIdx.x, lag = gap + blockIdx.x * 256 + t, row = blockIdx.y * STRIP, column = row + gap + blockIdx.x * 256;
    for (int k = t; k < STRIP + 256; k += 256) columns[k] = 0xffffffffu;
    if (t < STRIP) rows[t] = 0xffffffffu;
    __syncthreads();
    const bool active = row + lag < windows;
    Diagonal d{0.f, row, row + lag};
    if (active) d = start(series, lag, row);
    for (int step = 0; step < STRIP; ++step) {
        const bool inside = active && d.j < windows;
        const unsigned bits = inside ? __float_as_uint(fmaxf(d.distance, 0.f)) : 0xffffffffu, least = __reduce_min_sync(~0u, bits);
        if (t % 32 == 0) atomicMin(&rows[step], least);
        if (inside) {
            atomicMin(&columns[t + step], bits);
            if (d.j + 1 < windows) advance(d, series);
            else ++d.j;
        }
    }
    __syncthreads();
    if (t < STRIP && row + t < windows && rows[t] != 0xffffffffu) atomicMin(nearest + row + t, rows[t]);
    for (int k = t; k < STRIP + 256; k += 256)
        if (column + k < windows && columns[k] != 0xffffffffu) atomicMin(nearest + column + k, columns[k]);
}

Study profile_of_series("nearest_windows_two_atomics_a_pair", "time series", 12288, "distance of each of 12288 windows of 64 samples to the nearest other one, along diagonals",
    "each pair of windows lowers the least distance of both by atomics on global memory",
    {{"if_less", "an atomic only where the distance is less than what stands there", {"global_atomics"}}, {"in_block", "least distances of a block's rows and columns in shared memory first", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int windows = static_cast<int>(n);
        std::vector<float> series(n + WINDOW);
        for (size_t i = 0; i < series.size(); ++i) series[i] = static_cast<float>(static_cast<int>(hash(static_cast<unsigned>(i)) % 33) - 16) + static_cast<float>(i / 7 % 9);  // small whole numbers: sums are exact
        std::vector<unsigned> none(n, 0x7f000000u);
        const float *data = b.copy(series);
        unsigned *nearest = b.changed<unsigned>(b.copy(none), n);
        const dim3 grid(blocks(n - WINDOW, 256), blocks(n, STRIP));
        b.tolerance = 0.0;
        return {{"flawed", launch(repetitions, grid, 256, 0, data, nearest, windows, WINDOW)}, {"if_less", launch(repetitions_if_less, grid, 256, 0, data, nearest, windows, WINDOW)},
            {"in_block", launch(repetitions_in_block, grid, 256, 0, data, nearest, windows, WINDOW)}};
    });

// --- which offers no other one beats in all four prices ---

constexpr int PART = 2048;  // of the others, searched by a block

__device__ __forceinline__ bool beats(float4 p, float4 q) { return p.x <= q.x && p.y <= q.y && p.z <= q.z && p.w <= q.w && (p.x < q.x || p.y < q.y || p.z < q.z || p.w < q.w); }

__global__ void __launch_bounds__(256) unbeaten(const float4 *__restrict__ offers, int *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 own = offers[i];
    for (int j = blockIdx.y * PART; j < (blockIdx.y + 1) * PART; ++j)
        if (beats(offers[j], own)) {
            out[i] = 0;
            break;
        }
}
// Offers of like sums side by side: few lanes go on when the others of their warp are done.
__global__ void __launch_bounds__(256) unbeaten_in_order(const float4 *__restrict__ offers, const int *__restrict__ order, int *__restrict__ out, int count) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= count) return;
    const int i = order[at];
    const float4 own = offers[i];
    for (int j = blockIdx.y * PART; j < (blockIdx.y + 1) * PART; ++j)
        if (beats(offers[j], own)) {
            out[i] = 0;
            break;
        }
}
__global__ void __launch_bounds__(256) unbeaten_by_warp(const float4 *__restrict__ offers, int *__restrict__ out, int count) {
    const int lane = threadIdx.x % 32, i = (blockIdx.x * 256 + threadIdx.x) / 32;
    if (i >= count) return;
    const float4 own = offers[i];
    for (int j = blockIdx.y * PART + lane; j < (blockIdx.y + 1) * PART; j += 32)
        if (__any_sync(~0u, beats(offers[j], own))) {
            if (lane == 0) out[i] = 0;
            break;
        }
}

Study skyline("unbeaten_offers_lanes_search_on", "databases", 65536, "which of 65536 offers no other beats in all of four prices",
    "a lane an offer, each searching until it is beaten: warps go on for their last lanes",
    {{"in_order", "lanes take offers in the order of their sums", {"branch_divergence"}}, {"warp_each", "a warp an offer, 32 others at a time", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> offers(n);
        std::vector<int> order(n);
        for (long i = 0; i < n; ++i) {
            const unsigned h = static_cast<unsigned>(i) * 4;
            offers[i] = make_float4(static_cast<float>(hash(h) % 100000), static_cast<float>(hash(h + 1) % 100000), static_cast<float>(hash(h + 2) % 100000), static_cast<float>(hash(h + 3) % 100000));
        }
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](int p, int q) {
            auto sum = [&](int i) { return offers[i].x + offers[i].y + offers[i].z + offers[i].w; };
            return sum(p) < sum(q);
        });
        const float4 *data = b.copy(offers);
        const int *by_sum = b.copy(order);
        int *out = b.changed<int>(b.copy(std::vector<int>(n, 1)), n);
        const int count = static_cast<int>(n);
        const unsigned parts = blocks(n, PART);
        b.tolerance = 0.0;
        return {{"flawed", launch(unbeaten, dim3(blocks(n, 256), parts), 256, 0, data, out, count)}, {"in_order", launch(unbeaten_in_order, dim3(blocks(n, 256), parts), 256, 0, data, by_sum, out, count)},
            {"warp_each", launch(unbeaten_by_warp, dim3(blocks(n, 8), parts), 256, 0, data, out, count)}};
    });

// --- poses between two key frames: cubic curves through values and slopes ---

__global__ void __launch_bounds__(256) between_frames(const float4 *__restrict__ from, const float4 *__restrict__ from_slope, const float4 *__restrict__ to, const float4 *__restrict__ to_slope, float4 *__restrict__ out, float u) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float4 a = from[i], s = from_slope[i], b = to[i], e = to_slope[i];
    const float u2 = u * u, u3 = u2 * u, h00 = 2.f * u3 - 3.f * u2 + 1.f, h10 = u3 - 2.f * u2 + u, h01 = 1.f - h00, h11 = u3 - u2;
    out[i] = make_float4(h00 * a.x + h10 * s.x + h01 * b.x + h11 * e.x, h00 * a.y + h10 * s.y + h01 * b.y + h11 * e.y, h00 * a.z + h10 * s.z + h01 * b.z + h11 * e.z, h00 * a.w + h10 * s.w + h01 * b.w + h11 * e.w);
}

Study key_frames("sound_poses_between_key_frames", "rendering", 1 << 25, "33554432 values of poses by cubic curves between two key frames", "", {},
    [](Buffers &b, long n) -> Sides {
        const float4 *data[4];
        for (const float4 *&each : data) each = reinterpret_cast<const float4 *>(b.random<float>(n));
        float *out = b.output<float>(n);
        return {{"sound", launch(between_frames, n / 1024, 256, 0, data[0], data[1], data[2], data[3], reinterpret_cast<float4 *>(out), 0.375f)}};
    });

}  // namespace
