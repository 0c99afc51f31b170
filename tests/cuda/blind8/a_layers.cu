// Layers of networks written by hand. Each kernel has one weakness and two or three ways out.
#include "../pairs/pair.cuh"

namespace {

// --- cost volume of two feature maps: products of each pixel with 9 x 9 displaced ones, over 64 channels ---

constexpr int FEATURES = 64, REACH = 4, SPAN = 2 * REACH + 1, MAP_WIDTH = 512;

__global__ void cost_volume(const float *first, const float *second, float *out, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, d = blockIdx.z;
    int ox = x + d % SPAN - REACH, oy = y + d / SPAN - REACH, plane = height * MAP_WIDTH;
    float sum = 0.f;
    if (ox >= 0 && ox < MAP_WIDTH && oy >= 0 && oy < height)
        for (int c = 0; c < FEATURES; ++c) sum = fmaf(first[c * plane + y * MAP_WIDTH + x], second[c * plane + oy * MAP_WIDTH + ox], sum);
    out[d * plane + y * MAP_WIDTH + x] = sum * (1.f / FEATURES);
}
// The nine displacements along x share the pixel's own feature.
__global__ void __launch_bounds__(128) cost_volume_nine(const float *__restrict__ first, const float *__restrict__ second, float *__restrict__ out, int height) {
    int x = blockIdx.x * 128 + threadIdx.x, y = blockIdx.y, oy = y + static_cast<int>(blockIdx.z) - REACH, plane = height * MAP_WIDTH;
    float sum[SPAN] = {};
    if (oy >= 0 && oy < height) {
        const float *own = first + y * MAP_WIDTH + x, *other = second + oy * MAP_WIDTH + x;
        bool inside = x >= REACH && x < MAP_WIDTH - REACH;
#pragma unroll 2
        for (int c = 0; c < FEATURES; ++c) {
            float a = own[c * plane];
#pragma unroll
            for (int d = 0; d < SPAN; ++d)
                if (inside || (x + d >= REACH && x + d < MAP_WIDTH + REACH)) sum[d] = fmaf(a, other[c * plane + d - REACH], sum[d]);
        }
    }
#pragma unroll
    for (int d = 0; d < SPAN; ++d) out[(blockIdx.z * SPAN + d) * plane + y * MAP_WIDTH + x] = sum[d] * (1.f / FEATURES);
}
// Four pixels side by side and nine displacements a thread: four loads of 16 bytes for 36 products.
__global__ void __launch_bounds__(MAP_WIDTH / 4) cost_volume_quads(const float *__restrict__ first, const float *__restrict__ second, float *__restrict__ out, int height) {
    int x = threadIdx.x * 4, y = blockIdx.x, oy = y + static_cast<int>(blockIdx.y) - REACH, plane = height * MAP_WIDTH;
    float sum[SPAN][4] = {};
    if (oy >= 0 && oy < height) {
        const float4 nothing = make_float4(0.f, 0.f, 0.f, 0.f);
        for (int c = 0; c < FEATURES; ++c) {
            const float *other = second + c * plane + oy * MAP_WIDTH + x;
            float4 a4 = *reinterpret_cast<const float4 *>(first + c * plane + y * MAP_WIDTH + x);
            float4 l4 = x ? *reinterpret_cast<const float4 *>(other - 4) : nothing, m4 = *reinterpret_cast<const float4 *>(other);
            float4 r4 = x < MAP_WIDTH - 4 ? *reinterpret_cast<const float4 *>(other + 4) : nothing;
            float a[4] = {a4.x, a4.y, a4.z, a4.w}, o[12] = {l4.x, l4.y, l4.z, l4.w, m4.x, m4.y, m4.z, m4.w, r4.x, r4.y, r4.z, r4.w};
#pragma unroll
            for (int d = 0; d < SPAN; ++d)
#pragma unroll
                for (int i = 0; i < 4; ++i) sum[d][i] = fmaf(a[i], o[i + d], sum[d][i]);
        }
    }
#pragma unroll
    for (int d = 0; d < SPAN; ++d)
        *reinterpret_cast<float4 *>(out + (blockIdx.y * SPAN + d) * plane + y * MAP_WIDTH + x) =
            make_float4(sum[d][0] / FEATURES, sum[d][1] / FEATURES, sum[d][2] / FEATURES, sum[d][3] / FEATURES);
}

Study volume("cost_volume_each_displacement", "models", 256, "a cost volume of 81 displacements over 64 features of 512 x 256 pixels",
    "a thread a pixel and displacement: two loads for each product",
    {{"nine", "nine displacements a thread share the pixel's feature", {"redundant_loads"}},
        {"quads", "four pixels and nine displacements a thread, 16-byte loads", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *first = b.random<float>(FEATURES * n * MAP_WIDTH), *second = b.random<float>(FEATURES * n * MAP_WIDTH);
        float *out = b.output<float>(SPAN * SPAN * n * MAP_WIDTH);
        return {{"flawed", launch(cost_volume, dim3(MAP_WIDTH / 128, n, SPAN * SPAN), 128, 0, first, second, out, n)},
            {"nine", launch(cost_volume_nine, dim3(MAP_WIDTH / 128, n, SPAN), 128, 0, first, second, out, n)},
            {"quads", launch(cost_volume_quads, dim3(n, SPAN), MAP_WIDTH / 4, 0, first, second, out, n)}};
    });

// --- maxima of 3 x 3 windows, two pixels apart, of quantised maps: 112 x 112 pixels of 64 channels ---

constexpr int POOL_IN = 112, POOL_OUT = 56, POOL_CHANNELS = 64;

__global__ void pool_bytes(const signed char *in, signed char *out) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, c = at % POOL_CHANNELS, x = at / POOL_CHANNELS, y = blockIdx.y;
    const signed char *image = in + static_cast<size_t>(blockIdx.z) * POOL_IN * POOL_IN * POOL_CHANNELS;
    int most = -128;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            int ix = 2 * x + dx, iy = 2 * y + dy;
            if (ix >= 0 && ix < POOL_IN && iy >= 0 && iy < POOL_IN) most = max(most, static_cast<int>(image[(iy * POOL_IN + ix) * POOL_CHANNELS + c]));
        }
    out[((static_cast<size_t>(blockIdx.z) * POOL_OUT + y) * POOL_OUT + x) * POOL_CHANNELS + c] = most;
}
// Windows begin left of and above the picture at most: the pixel inside is read twice instead.
__global__ void pool_words(const unsigned *__restrict__ in, unsigned *__restrict__ out) {
    constexpr int words = POOL_CHANNELS / 4;
    int at = blockIdx.x * blockDim.x + threadIdx.x, c = at % words, x = at / words, y = blockIdx.y;
    const unsigned *image = in + static_cast<size_t>(blockIdx.z) * POOL_IN * POOL_IN * words + c;
    unsigned most = 0x80808080u;
#pragma unroll
    for (int dy = -1; dy <= 1; ++dy)
#pragma unroll
        for (int dx = -1; dx <= 1; ++dx) most = __vmaxs4(most, image[(max(2 * y + dy, 0) * POOL_IN + max(2 * x + dx, 0)) * words]);
    out[((static_cast<size_t>(blockIdx.z) * POOL_OUT + y) * POOL_OUT + x) * words + c] = most;
}
__device__ __forceinline__ uint4 greater(uint4 a, uint4 b) { return make_uint4(__vmaxs4(a.x, b.x), __vmaxs4(a.y, b.y), __vmaxs4(a.z, b.z), __vmaxs4(a.w, b.w)); }
__global__ void __launch_bounds__(224) pool_quads(const uint4 *__restrict__ in, uint4 *__restrict__ out) {
    constexpr int quads = POOL_CHANNELS / 16;
    int c = threadIdx.x % quads, x = threadIdx.x / quads, y = blockIdx.x;
    const uint4 *image = in + static_cast<size_t>(blockIdx.y) * POOL_IN * POOL_IN * quads + c;
    uint4 most = make_uint4(0x80808080u, 0x80808080u, 0x80808080u, 0x80808080u);
#pragma unroll
    for (int dy = -1; dy <= 1; ++dy)
#pragma unroll
        for (int dx = -1; dx <= 1; ++dx) most = greater(most, image[(max(2 * y + dy, 0) * POOL_IN + max(2 * x + dx, 0)) * quads]);
    out[((static_cast<size_t>(blockIdx.y) * POOL_OUT + y) * POOL_OUT + x) * quads + c] = most;
}
// A thread goes down seven outputs and keeps the maximum of the row that two of them share.
__global__ void __launch_bounds__(128) pool_columns(const unsigned *__restrict__ in, unsigned *__restrict__ out) {
    constexpr int words = POOL_CHANNELS / 4;
    int at = blockIdx.x * blockDim.x + threadIdx.x, c = at % words, x = at / words, first = blockIdx.y * 7;
    const unsigned *image = in + static_cast<size_t>(blockIdx.z) * POOL_IN * POOL_IN * words + c;
    auto row = [&](int y) {
        const unsigned *p = image + (y * POOL_IN + 2 * x) * words;
        return __vmaxs4(__vmaxs4(p[0], p[words]), x ? p[-words] : 0x80808080u);
    };
    unsigned shared = row(max(2 * first - 1, 0));
#pragma unroll
    for (int y = first; y < first + 7; ++y) {
        unsigned most = __vmaxs4(shared, row(2 * y));
        shared = row(2 * y + 1);
        out[((static_cast<size_t>(blockIdx.z) * POOL_OUT + y) * POOL_OUT + x) * words + c] = __vmaxs4(most, shared);
    }
}

Study pool("pool_quantised_byte_each", "models", 256, "maxima of 3 x 3 windows, stride two, 256 int8 maps of 112 x 112 pixels and 64 channels",
    "a thread an output, nine loads of a byte",
    {{"words", "four channels a thread", {"narrow_access", "integer_arithmetic"}}, {"quads", "16 channels a thread", {"narrow_access", "integer_arithmetic"}},
        {"columns", "four channels and seven outputs a thread, shared rows kept", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const signed char *in = b.random<signed char>(n * POOL_IN * POOL_IN * POOL_CHANNELS, -128, 128);
        signed char *out = b.output<signed char>(n * POOL_OUT * POOL_OUT * POOL_CHANNELS);
        auto words = reinterpret_cast<const unsigned *>(in);
        auto out_words = reinterpret_cast<unsigned *>(out);
        b.tolerance = 0;
        return {{"flawed", launch(pool_bytes, dim3(POOL_OUT * POOL_CHANNELS / 256, POOL_OUT, n), 256, 0, in, out)},
            {"words", launch(pool_words, dim3(POOL_OUT * POOL_CHANNELS / 4 / 128, POOL_OUT, n), 128, 0, words, out_words)},
            {"quads", launch(pool_quads, dim3(POOL_OUT, n), 224, 0, reinterpret_cast<const uint4 *>(in), reinterpret_cast<uint4 *>(out))},
            {"columns", launch(pool_columns, dim3(POOL_OUT * POOL_CHANNELS / 4 / 128, POOL_OUT / 7, n), 128, 0, words, out_words)}};
    });

}  // namespace
