// Sound and radio: samples of three bytes, a compressor's gain, inverses for detectors, a sound kernel. Each other
// kernel has one weakness and two or three ways out.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- 24-bit samples of eight interleaved channels into planes of floats ---

constexpr int CHANNELS = 8;

struct Gains {
    float of[CHANNELS];
};
struct Planes {
    float *data;
    size_t stride;
    __device__ __forceinline__ float &operator()(int channel, size_t frame) const { return data[channel * stride + frame]; }
};

__global__ void unpack_24_bit(const unsigned char *packed, Planes out, Gains gains, int frames) {
    int frame = blockIdx.x * blockDim.x + threadIdx.x;
    if (frame >= frames) return;
    const unsigned char *p = packed + static_cast<size_t>(frame) * (3 * CHANNELS);
#pragma unroll
    for (int c = 0; c < CHANNELS; ++c) {
        unsigned word = static_cast<unsigned>(p[3 * c]) << 8 | static_cast<unsigned>(p[3 * c + 1]) << 16 | static_cast<unsigned>(p[3 * c + 2]) << 24;
        out(c, frame) = static_cast<float>(static_cast<int>(word) >> 8) * (gains.of[c] / 8388608.f);
    }
}
// The samples of a frame, from its six words.
__device__ __forceinline__ void samples_of(const unsigned (&w)[6], int (&sample)[CHANNELS]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        unsigned a = w[3 * h], b = w[3 * h + 1], c = w[3 * h + 2];
        sample[4 * h] = static_cast<int>(a << 8) >> 8;
        sample[4 * h + 1] = static_cast<int>((a >> 24 | b << 8) << 8) >> 8;
        sample[4 * h + 2] = static_cast<int>((b >> 16 | c << 16) << 8) >> 8;
        sample[4 * h + 3] = static_cast<int>(c) >> 8;
    }
}
// A frame is three words of eight bytes.
__global__ void unpack_24_bit_by_words(const uint2 *__restrict__ packed, Planes out, Gains gains, int frames) {
    int frame = blockIdx.x * blockDim.x + threadIdx.x, sample[CHANNELS];
    if (frame >= frames) return;
    uint2 a = packed[static_cast<size_t>(frame) * 3], b = packed[static_cast<size_t>(frame) * 3 + 1], c = packed[static_cast<size_t>(frame) * 3 + 2];
    samples_of({a.x, a.y, b.x, b.y, c.x, c.y}, sample);
#pragma unroll
    for (int k = 0; k < CHANNELS; ++k) out(k, frame) = static_cast<float>(sample[k]) * (gains.of[k] / 8388608.f);
}
// 512 frames a block through shared memory, 16 bytes a thread and load; two frames a thread, stored together.
__global__ void __launch_bounds__(256) unpack_24_bit_staged(const uint4 *__restrict__ packed, Planes out, Gains gains) {
    __shared__ uint4 staged[768];
#pragma unroll
    for (int k = 0; k < 3; ++k) staged[k * 256 + threadIdx.x] = packed[static_cast<size_t>(blockIdx.x) * 768 + k * 256 + threadIdx.x];
    __syncthreads();
    const uint4 *mine = staged + 3 * threadIdx.x;
    uint4 a = mine[0], b = mine[1], c = mine[2];
    int first[CHANNELS], second[CHANNELS];
    samples_of({a.x, a.y, a.z, a.w, b.x, b.y}, first);
    samples_of({b.z, b.w, c.x, c.y, c.z, c.w}, second);
    size_t frame = static_cast<size_t>(blockIdx.x) * 512 + 2 * threadIdx.x;
#pragma unroll
    for (int k = 0; k < CHANNELS; ++k) {
        float gain = gains.of[k] / 8388608.f;
        reinterpret_cast<float2 *>(out.data)[(k * out.stride + frame) / 2] = make_float2(static_cast<float>(first[k]) * gain, static_cast<float>(second[k]) * gain);
    }
}

Study samples("samples_of_24_bits_byte_by_byte", "audio", 3 << 19, "1572864 frames of eight channels of 24 bits into planes of floats",
    "24 loads of one byte a frame, frames of 24 bytes: each load touches the sectors of all frames of the warp again",
    {{"by_words", "a frame in three loads of eight bytes", {"narrow_access", "uncoalesced_access"}},
        {"staged", "16 bytes a thread through shared memory, two frames a thread", {"narrow_access", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *packed = b.random<unsigned char>(n * 3 * CHANNELS, 0, 256);
        Planes out{b.output<float>(n * CHANNELS), static_cast<size_t>(n)};
        Gains gains{{1.f, 0.9f, 0.8f, 0.7f, 1.1f, 1.2f, 0.5f, 0.6f}};
        return {{"flawed", launch(unpack_24_bit, blocks(n, 256), 256, 0, packed, out, gains, n)},
            {"by_words", launch(unpack_24_bit_by_words, blocks(n, 256), 256, 0, reinterpret_cast<const uint2 *>(packed), out, gains, n)},
            {"staged", launch(unpack_24_bit_staged, n / 512, 256, 0, reinterpret_cast<const uint4 *>(packed), out, gains)}};
    });

// --- a compressor's gain: from the level of each sample in decibels, around a soft knee ---

struct Compressor {
    float threshold, ratio, knee, makeup;  // in decibels, but for the ratio
};

__global__ void compress(const float *envelope, const float *in, float *out, Compressor c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float level = 20.0 * log10(envelope[i] + 1e-6), over = level - c.threshold, gain = 0.0;
    if (2.0 * fabs(over) <= c.knee) gain = (1.0 / c.ratio - 1.0) * pow(over + 0.5 * c.knee, 2.0) / (2.0 * c.knee);
    else if (over > 0.0) gain = (1.0 / c.ratio - 1.0) * over;
    out[i] = in[i] * pow(10.0, (gain + c.makeup) / 20.0);
}
__global__ void compress_in_float(const float *__restrict__ envelope, const float *__restrict__ in, float *__restrict__ out, Compressor c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float level = 20.f * log10f(envelope[i] + 1e-6f), over = level - c.threshold, gain = 0.f, slope = 1.f / c.ratio - 1.f;
    if (2.f * fabsf(over) <= c.knee) gain = slope * (over + 0.5f * c.knee) * (over + 0.5f * c.knee) / (2.f * c.knee);
    else if (over > 0.f) gain = slope * over;
    out[i] = in[i] * exp10f((gain + c.makeup) / 20.f);
}
// In octaves: constants from the host, four samples a thread.
struct Octaves {
    float threshold, half_knee, slope, curve, makeup;
};
__device__ __forceinline__ float compressed(float envelope, float x, Octaves c) {
    float over = __log2f(envelope + 1e-6f) - c.threshold, bent = over + c.half_knee;
    float gain = fabsf(over) <= c.half_knee ? c.curve * bent * bent : c.slope * fmaxf(over, 0.f);
    return x * exp2f(gain + c.makeup);
}
__global__ void compress_in_octaves(const float4 *__restrict__ envelope, const float4 *__restrict__ in, float4 *__restrict__ out, Octaves c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 e = envelope[i], x = in[i];
    out[i] = make_float4(compressed(e.x, x.x, c), compressed(e.y, x.y, c), compressed(e.z, x.z, c), compressed(e.w, x.w, c));
}

Study compressor("compressor_levels_in_double", "audio", 1 << 22, "the gain of a compressor with a soft knee on 4194304 samples",
    "20.0, 1e-6 and pow(10.0, …) make logarithm, knee and power FP64",
    {{"in_float", "the same formulas in FP32", {"double_precision"}},
        {"in_octaves", "logarithms and powers of two by the fast functions, constants from the host, four samples a thread", {"double_precision", "expensive_math", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *envelope = b.random<float>(n, 0, 1), *in = b.random<float>(n);
        float *out = b.output<float>(n);
        Compressor c{-12.f, 4.f, 6.f, 4.5f};
        const float db = 20.f * std::log10(2.f), slope = 1.f / c.ratio - 1.f;
        Octaves o{c.threshold / db, 0.5f * c.knee / db, slope, slope * db / (2.f * c.knee), c.makeup / db};
        return {{"flawed", launch(compress, blocks(n, 256), 256, 0, envelope, in, out, c, n)},
            {"in_float", launch(compress_in_float, blocks(n, 256), 256, 0, envelope, in, out, c, n)},
            {"in_octaves", launch(compress_in_octaves, blocks(n / 4, 256), 256, 0, reinterpret_cast<const float4 *>(envelope),
                               reinterpret_cast<const float4 *>(in), reinterpret_cast<float4 *>(out), o, n / 4)}};
    });

// --- a detector's covariances of 16 antennas, inverted for each subcarrier: Gauss and Jordan in place ---

constexpr int ANTENNAS = 16;

__device__ __forceinline__ float2 times(float2 a, float2 b) { return make_float2(fmaf(a.x, b.x, -a.y * b.y), fmaf(a.x, b.y, a.y * b.x)); }
__device__ __forceinline__ float2 less_product(float2 c, float2 a, float2 b) {
    return make_float2(fmaf(-a.x, b.x, fmaf(a.y, b.y, c.x)), fmaf(-a.x, b.y, fmaf(-a.y, b.x, c.y)));
}
__device__ __forceinline__ float2 reciprocal(float2 a) {
    float s = 1.f / fmaf(a.x, a.x, a.y * a.y);
    return make_float2(a.x * s, -a.y * s);
}
__device__ __forceinline__ float2 minus(float2 a) { return make_float2(-a.x, -a.y); }

__global__ void __launch_bounds__(ANTENNAS *ANTENNAS) invert_covariances(const float2 *in, float2 *out) {
    __shared__ float2 a[ANTENNAS][ANTENNAS];
    int i = threadIdx.y, j = threadIdx.x;
    size_t at = static_cast<size_t>(blockIdx.x) * ANTENNAS * ANTENNAS + i * ANTENNAS + j;
    a[i][j] = in[at];
    for (int k = 0; k < ANTENNAS; ++k) {
        __syncthreads();
        float2 pivot = reciprocal(a[k][k]), row = a[k][j], column = a[i][k], own = a[i][j];
        __syncthreads();
        if (i == k && j == k) own = pivot;
        else if (i == k) own = times(row, pivot);
        else if (j == k) own = minus(times(column, pivot));
        else own = less_product(own, times(column, pivot), row);
        a[i][j] = own;
    }
    out[at] = a[i][j];
}
// Two copies in turn: one barrier a step.
__global__ void __launch_bounds__(ANTENNAS *ANTENNAS) invert_covariances_in_turn(const float2 *__restrict__ in, float2 *__restrict__ out) {
    __shared__ float2 kept[2][ANTENNAS][ANTENNAS];
    int i = threadIdx.y, j = threadIdx.x;
    size_t at = static_cast<size_t>(blockIdx.x) * ANTENNAS * ANTENNAS + i * ANTENNAS + j;
    float2 own = in[at];
    for (int k = 0; k < ANTENNAS; ++k) {
        float2(*a)[ANTENNAS] = kept[k % 2];
        a[i][j] = own;
        __syncthreads();
        float2 pivot = reciprocal(a[k][k]), row = a[k][j], column = a[i][k];
        if (i == k && j == k) own = pivot;
        else if (i == k) own = times(row, pivot);
        else if (j == k) own = minus(times(column, pivot));
        else own = less_product(own, times(column, pivot), row);
    }
    out[at] = own;
}
// A warp takes a matrix: a lane half a column in registers, what it needs of others by shuffles.
__global__ void __launch_bounds__(128) invert_covariances_by_warps(const float2 *__restrict__ in, float2 *__restrict__ out) {
    int lane = threadIdx.x % 32, j = lane % ANTENNAS, half = lane / ANTENNAS;
    size_t at = (static_cast<size_t>(blockIdx.x) * 4 + threadIdx.x / 32) * ANTENNAS * ANTENNAS + half * 8 * ANTENNAS + j;
    float2 a[8];
#pragma unroll
    for (int r = 0; r < 8; ++r) a[r] = in[at + r * ANTENNAS];
    auto of = [](float2 v, int from) { return make_float2(__shfl_sync(~0u, v.x, from), __shfl_sync(~0u, v.y, from)); };
#pragma unroll
    for (int k = 0; k < ANTENNAS; ++k) {
        const int there = k / 8 * ANTENNAS;
        float2 pivot = reciprocal(of(a[k % 8], there + k)), row = of(a[k % 8], there + j);
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            float2 column = times(of(a[r], half * ANTENNAS + k), pivot);
            bool first = half == k / 8 && r == k % 8;
            float2 other = j == k ? minus(column) : less_product(a[r], column, row);
            a[r] = first ? j == k ? pivot : times(row, pivot) : other;
        }
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) out[at + r * ANTENNAS] = a[r];
}
// Random off the diagonal, dominant on it.
__global__ void heavy_diagonal(float2 *a, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        if (i / ANTENNAS % ANTENNAS == i % ANTENNAS) a[i] = make_float2(12.f + a[i].x, 0.1f * a[i].y);
}

Study covariances("covariance_inverses_two_barriers_a_pivot", "radio", 16384, "inverses of 16384 complex matrices of 16 x 16 without pivoting",
    "a thread an entry: two barriers of 256 threads for each of 16 pivots",
    {{"by_warps", "a warp a matrix, half a column a lane in registers, shuffles", {"barriers", "shared_memory_bandwidth"}},
        {"in_turn", "two copies in turn: one barrier a pivot", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = n * ANTENNAS * ANTENNAS;
        float2 *in = reinterpret_cast<float2 *>(b.random<float>(2 * static_cast<size_t>(count)));
        float2 *out = reinterpret_cast<float2 *>(b.output<float>(2 * static_cast<size_t>(count)));
        launch(heavy_diagonal, 1024, 256, 0, in, count)();
        b.tolerance = 1e-3;
        return {{"flawed", launch(invert_covariances, n, dim3(ANTENNAS, ANTENNAS), 0, in, out)},
            {"by_warps", launch(invert_covariances_by_warps, n / 4, 128, 0, in, out)},
            {"in_turn", launch(invert_covariances_in_turn, n, dim3(ANTENNAS, ANTENNAS), 0, in, out)}};
    });

// --- as it should be: samples of a receiver, two of 16 bits each, made complex with offset and imbalance taken out ---

struct Imbalance {
    float offset_i, offset_q, gain, cross;
};
__device__ __forceinline__ float2 balanced(unsigned word, Imbalance m) {
    float i = static_cast<float>(static_cast<short>(word & 0xffffu)) - m.offset_i, q = static_cast<float>(static_cast<short>(word >> 16)) - m.offset_q;
    return make_float2(i * (1.f / 32768.f), fmaf(m.cross, i, m.gain * q) * (1.f / 32768.f));
}
__global__ void __launch_bounds__(256) balance_samples(const uint2 *__restrict__ raw, float4 *__restrict__ out, Imbalance m, int couples) {
    int first = blockIdx.x * 1024 + threadIdx.x;
    uint2 word[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if (first + 256 * k < couples) word[k] = __ldcs(raw + first + 256 * k);
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if (first + 256 * k < couples) {
            float2 a = balanced(word[k].x, m), b = balanced(word[k].y, m);
            __stcs(out + first + 256 * k, make_float4(a.x, a.y, b.x, b.y));
        }
}

Study receiver("sound_receiver_samples", "radio", 10 << 20, "10485760 samples of two 16-bit parts into complex floats, offset and imbalance taken out", "", {},
    [](Buffers &b, long n) -> Sides {
        const unsigned *raw = b.random<unsigned>(n, 0, 4294967296.0);
        float *out = b.output<float>(2 * n);
        Imbalance m{12.f, -7.f, 1.02f, 0.013f};
        return {{"sound", launch(balance_samples, blocks(n / 2, 1024), 256, 0, reinterpret_cast<const uint2 *>(raw), reinterpret_cast<float4 *>(out), m, n / 2)}};
    });

}  // namespace
