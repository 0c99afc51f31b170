// Pictures and sound: superpixels, volume rendering, normal maps, activations of vocoders; checkpoints. Each kernel but the sound one has one weakness and two ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- superpixels: sums of colour and place over the pixels of each centre ---

constexpr int STEP = 16, SUMS = 6;

struct Picture {
    const float *l, *a, *b;
    const int *label;
    int width, height;
};

__device__ __forceinline__ void hand_in(float *sums, int centres, int label, const float (&v)[SUMS]) {
#pragma unroll
    for (int k = 0; k < SUMS; k++) atomicAdd(&sums[k * centres + label], v[k]);
}

__global__ void __launch_bounds__(256) superpixel_sums(Picture p, float *sums, int centres) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, i = y * p.width + x;
    const float v[SUMS] = {p.l[i], p.a[i], p.b[i], static_cast<float>(x), static_cast<float>(y), 1.f};
    hand_in(sums, centres, p.label[i], v);
}
// A thread goes down sixteen pixels and adds where the label changes.
__global__ void __launch_bounds__(256) superpixel_runs(Picture p, float *sums, int centres) {
    const int x = blockIdx.x * 32 + threadIdx.x, first = (blockIdx.y * 8 + threadIdx.y) * STEP;
    int open = p.label[first * p.width + x];
    float v[SUMS] = {};
#pragma unroll 4
    for (int y = first; y < first + STEP; y++) {
        const int i = y * p.width + x, label = p.label[i];
        if (label != open) {
            hand_in(sums, centres, open, v);
            open = label;
#pragma unroll
            for (int k = 0; k < SUMS; k++) v[k] = 0.f;
        }
        v[0] += p.l[i], v[1] += p.a[i], v[2] += p.b[i], v[3] += x, v[4] += y, v[5] += 1.f;
    }
    hand_in(sums, centres, open, v);
}
// A warp for each centre looks at the 32 x 32 pixels that can belong to it.
__global__ void __launch_bounds__(256) superpixel_windows(Picture p, float *__restrict__ sums, int centres) {
    const int lane = threadIdx.x % 32, centre = (blockIdx.x * 256 + threadIdx.x) / 32, across = p.width / STEP;
    const int x = centre % across * STEP - STEP / 2 + lane, top = centre / across * STEP - STEP / 2;
    float v[SUMS] = {};
    if (x >= 0 && x < p.width)
#pragma unroll 4
        for (int y = max(top, 0); y < min(top + 2 * STEP, p.height); y++) {
            const int i = y * p.width + x;
            if (p.label[i] == centre) v[0] += p.l[i], v[1] += p.a[i], v[2] += p.b[i], v[3] += x, v[4] += y, v[5] += 1.f;
        }
#pragma unroll
    for (int k = 0; k < SUMS; k++) {
        const float sum = warp_sum(v[k]);
        if (lane == 0) sums[k * centres + centre] = sum;
    }
}

Study superpixels("superpixel_sums_six_atomics_a_pixel", "images", 2048, "sums of colour, place and number over the superpixels of 2048 x 2048 pixels, 16384 centres",
    "six atomics in global memory for each pixel",
    {{"runs", "sixteen pixels a thread, added where the label changes", {"global_atomics"}}, {"windows", "a warp for each centre reads the window around it", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int size = static_cast<int>(n), across = size / STEP, centres = across * across;
        std::vector<int> label(n * n);
        std::vector<float> bend(n);
        for (int i = 0; i < size; i++) bend[i] = 6.f * sinf(i * 0.11f);
        for (int y = 0; y < size; y++)
            for (int x = 0; x < size; x++) {
                const int column = static_cast<int>(floorf((x + bend[y]) / STEP)), row = static_cast<int>(floorf((y + bend[x]) / STEP));
                label[static_cast<size_t>(y) * size + x] = std::min(std::max(row, 0), across - 1) * across + std::min(std::max(column, 0), across - 1);
            }
        const Picture p{b.random<float>(n * n, 0, 100), b.random<float>(n * n, -60, 60), b.random<float>(n * n, -60, 60), b.copy(label), size, size};
        float *sums = b.output<float>(SUMS * centres, true);
        b.tolerance = 1e-6;
        const dim3 block(32, 8);
        return {{"flawed", launch(superpixel_sums, dim3(size / 32, size / 8), block, 0, p, sums, centres)},
            {"runs", launch(superpixel_runs, dim3(size / 32, size / (8 * STEP)), block, 0, p, sums, centres)}, {"windows", launch(superpixel_windows, centres / 8, 256, 0, p, sums, centres)}};
    });

// --- colours and depths of rays from the samples along them ---

struct Samples {
    const float *density, *colour, *step;  // of all rays, one after the other; colours in threes
    const int *first;
    int rays;
};

__global__ void __launch_bounds__(128) composite(Samples s, float4 *__restrict__ out) {
    const int ray = blockIdx.x * 128 + threadIdx.x;
    if (ray >= s.rays) return;
    float left = 1.f, r = 0.f, g = 0.f, b = 0.f, depth = 0.f, far = 0.f;
    for (int i = s.first[ray]; i < s.first[ray + 1]; i++) {
        const float alpha = 1.f - __expf(-s.density[i] * s.step[i]), weight = alpha * left;
        r += weight * s.colour[3 * i];
        g += weight * s.colour[3 * i + 1];
        b += weight * s.colour[3 * i + 2];
        far += s.step[i];
        depth += weight * far;
        left *= 1.f - alpha;
        if (left < 1e-5f) break;
    }
    out[ray] = make_float4(r, g, b, depth);
}
// LANES lanes share a ray; what the samples before let through and how far they reach are running sums.
template <int LANES>
__global__ void __launch_bounds__(128) composite_lanes(Samples s, float4 *__restrict__ out) {
    const int lane = threadIdx.x % LANES, ray = (blockIdx.x * 128 + threadIdx.x) / LANES;
    if (blockIdx.x * 128 / LANES >= static_cast<unsigned>(s.rays)) return;
    const int begin = ray < s.rays ? s.first[ray] : 0, end = ray < s.rays ? s.first[ray + 1] : 0;
    int longest = end - begin;
#pragma unroll
    for (int offset = 16; offset; offset /= 2) longest = max(longest, __shfl_xor_sync(~0u, longest, offset));
    float thick = 0.f, far = 0.f, r = 0.f, g = 0.f, b = 0.f, depth = 0.f;
    for (int done = 0; done < longest; done += LANES) {
        const int i = begin + done + lane;
        const bool there = i < end;
        const float step = there ? s.step[i] : 0.f, own = there ? s.density[i] * step : 0.f;
        const float red = there ? s.colour[3 * i] : 0.f, green = there ? s.colour[3 * i + 1] : 0.f, blue = there ? s.colour[3 * i + 2] : 0.f;
        float reach = step, sum = own;
#pragma unroll
        for (int offset = 1; offset < LANES; offset *= 2) {
            const float a = __shfl_up_sync(~0u, sum, offset, LANES), c = __shfl_up_sync(~0u, reach, offset, LANES);
            if (lane >= offset) sum += a, reach += c;
        }
        const float weight = __expf(-(thick + sum - own)) * (1.f - __expf(-own));
        r += weight * red, g += weight * green, b += weight * blue;
        depth += weight * (far + reach);
        thick += __shfl_sync(~0u, sum, LANES - 1, LANES);
        far += __shfl_sync(~0u, reach, LANES - 1, LANES);
    }
#pragma unroll
    for (int offset = LANES / 2; offset; offset /= 2) {
        r += __shfl_xor_sync(~0u, r, offset), g += __shfl_xor_sync(~0u, g, offset);
        b += __shfl_xor_sync(~0u, b, offset), depth += __shfl_xor_sync(~0u, depth, offset);
    }
    if (lane == 0 && ray < s.rays) out[ray] = make_float4(r, g, b, depth);
}

Study compositing("ray_samples_composited_by_a_thread", "rendering", 131072, "colours and depths of 131072 rays of 32 to 127 samples each, one ray's samples after the other's",
    "a thread for each ray: the lanes of a warp read far apart",
    {{"warp", "a warp a ray, what is let through by running sums over its lanes", {"uncoalesced_access"}}, {"eight_lanes", "the same with eight lanes a ray", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> first(n + 1);
        for (long i = 0; i < n; i++) first[i + 1] = first[i] + 32 + static_cast<int>(hash(static_cast<unsigned>(i)) % 96);
        const size_t all = first[n];
        const Samples s{b.random<float>(all, 0, 4), b.random<float>(3 * all, 0, 1), b.random<float>(all, 0.005, 0.02), b.copy(first), static_cast<int>(n)};
        float *out = b.output<float>(4 * n);
        auto o = reinterpret_cast<float4 *>(out);
        return {{"flawed", launch(composite, blocks(n, 128), 128, 0, s, o)}, {"warp", launch(composite_lanes<32>, blocks(n, 4), 128, 0, s, o)}, {"eight_lanes", launch(composite_lanes<8>, blocks(n, 16), 128, 0, s, o)}};
    });

// --- normal maps unpacked: blocks of 4 x 4 pixels, each channel two ends and 16 numbers of three bits ---

struct Channel {
    int a, b;
    unsigned long long numbers;
};
__device__ __forceinline__ Channel channel_of(uint2 block) {
    const unsigned long long bits = static_cast<unsigned long long>(block.y) << 32 | block.x;
    return {static_cast<int>(block.x & 255), static_cast<int>(block.x >> 8 & 255), bits >> 16};
}
__device__ __forceinline__ int number(const Channel &c, int pixel) { return static_cast<int>(c.numbers >> 3 * pixel) & 7; }

struct PaletteArray {
    int value[8];
    __device__ __forceinline__ PaletteArray(int a, int b) {
        value[0] = a, value[1] = b;
        if (a > b) {
            for (int k = 1; k < 7; k++) value[k + 1] = ((7 - k) * a + k * b) / 7;
        } else {
            for (int k = 1; k < 5; k++) value[k + 1] = ((5 - k) * a + k * b) / 5;
            value[6] = 0, value[7] = 255;
        }
    }
    __device__ __forceinline__ unsigned at(int number) const { return value[number]; }
};
// The eight bytes in two words, from which a permutation takes one.
struct PaletteBytes {
    unsigned low, high;
    __device__ __forceinline__ PaletteBytes(int a, int b) {
        if (a > b) {
            low = a | b << 8 | (6 * a + b) / 7 << 16 | (5 * a + 2 * b) / 7 << 24;
            high = (4 * a + 3 * b) / 7 | (3 * a + 4 * b) / 7 << 8 | (2 * a + 5 * b) / 7 << 16 | (a + 6 * b) / 7 << 24;
        } else {
            low = a | b << 8 | (4 * a + b) / 5 << 16 | (3 * a + 2 * b) / 5 << 24;
            high = (2 * a + 3 * b) / 5 | (a + 4 * b) / 5 << 8 | 255u << 24;
        }
    }
    __device__ __forceinline__ unsigned at(int number) const { return __byte_perm(low, high, number) & 255; }
};
// No palette: each pixel's share of the two ends.
struct PaletteShares {
    int a, b;
    __device__ __forceinline__ PaletteShares(int a, int b) : a(a), b(b) {}
    __device__ __forceinline__ unsigned at(int number) const {
        const int steps = a > b ? 7 : 5, share = number == 0 ? 0 : number == 1 ? steps : number - 1;
        const int sum = (steps - share) * a + share * b;
        const int between = a > b ? sum / 7 : sum / 5;
        return a > b || number < 6 ? between : number == 6 ? 0 : 255;
    }
};

template <typename Palette>
__global__ void __launch_bounds__(128) unpack_normals(const uint4 *__restrict__ blocks, uint2 *__restrict__ out, int across) {
    const int column = blockIdx.x * 128 + threadIdx.x, row = blockIdx.y;
    const uint4 block = blocks[static_cast<size_t>(row) * across + column];
    const Channel x = channel_of(make_uint2(block.x, block.y)), y = channel_of(make_uint2(block.z, block.w));
    const Palette of_x(x.a, x.b), of_y(y.a, y.b);
#pragma unroll
    for (int line = 0; line < 4; line++) {
        unsigned word[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int pixel = line * 4 + half * 2;
            word[half] = of_x.at(number(x, pixel)) | of_y.at(number(y, pixel)) << 8 | of_x.at(number(x, pixel + 1)) << 16 | of_y.at(number(y, pixel + 1)) << 24;
        }
        out[(static_cast<size_t>(row) * 4 + line) * across + column] = make_uint2(word[0], word[1]);
    }
}

Study normals("normal_map_palettes_in_local", "rendering", 8192, "a normal map of 8192 x 8192 pixels unpacked from blocks of 4 x 4, two channels of eight steps",
    "each block's palettes are arrays that are indexed by the pixels' numbers",
    {{"bytes", "a palette as two words, a pixel by a permutation of bytes", {"local_memory"}}, {"shares", "each pixel computed from the two ends", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const int across = static_cast<int>(n / 4);
        const unsigned *packed = b.random<unsigned>(static_cast<size_t>(across) * across * 4, 0, 4294967296.0);
        unsigned char *out = b.output<unsigned char>(n * n * 2);
        b.tolerance = 0.0;
        auto in = reinterpret_cast<const uint4 *>(packed);
        auto o = reinterpret_cast<uint2 *>(out);
        const dim3 grid(across / 128, across);
        return {{"flawed", launch(unpack_normals<PaletteArray>, grid, 128, 0, in, o, across)}, {"bytes", launch(unpack_normals<PaletteBytes>, grid, 128, 0, in, o, across)},
            {"shares", launch(unpack_normals<PaletteShares>, grid, 128, 0, in, o, across)}};
    });

// --- a periodic activation of a vocoder at twice the sampling rate: up by twelve taps, x + sin²(ax)/a, down by twelve taps ---

constexpr int RUN = 16, EDGE = 5, OUT_OF_TILE = 1024;

struct Taps {
    float up[2][6], down[12];
};

__device__ __forceinline__ float snake(float v, float a, float one_over_a) {
    const float wave = __sinf(v * a);
    return v + wave * wave * one_over_a;
}
__device__ __forceinline__ int inside(int i, int length) { return min(max(i, 0), length - 1); }

// From RUN + 10 samples in registers.
__device__ __forceinline__ void activate_run(const float (&x)[RUN + 2 * EDGE], float (&y)[RUN], const Taps &taps, float a, float one_over_a) {
    float u[2 * RUN + 10];
#pragma unroll
    for (int q = 0; q < 2 * RUN + 10; q++) {
        float sum = 0.f;
#pragma unroll
        for (int k = 0; k < 6; k++) sum = fmaf(taps.up[(q + 1) % 2][k], x[q / 2 + k], sum);
        u[q] = snake(sum, a, one_over_a);
    }
#pragma unroll
    for (int i = 0; i < RUN; i++) {
        float sum = 0.f;
#pragma unroll
        for (int k = 0; k < 12; k++) sum = fmaf(taps.down[k], u[2 * i + k], sum);
        y[i] = sum;
    }
}

// Sixteen samples in a row for each thread.
__global__ void __launch_bounds__(128) activate(const float *__restrict__ in, const float *__restrict__ sharpness, float *__restrict__ out, Taps taps, int length) {
    const int first = (blockIdx.x * 128 + threadIdx.x) * RUN, channel = blockIdx.y;
    const float *own = in + static_cast<size_t>(channel) * length;
    const float a = sharpness[channel];
    float x[RUN + 2 * EDGE], y[RUN];
#pragma unroll
    for (int j = 0; j < RUN + 2 * EDGE; j++) x[j] = own[inside(first - EDGE + j, length)];
    activate_run(x, y, taps, a, 1.f / a);
#pragma unroll
    for (int j = 0; j < RUN; j++) out[static_cast<size_t>(channel) * length + first + j] = y[j];
}
// The same runs, but memory is read and written in order, by way of shared memory; a word is left out after every sixteen.
__global__ void __launch_bounds__(128) activate_turned(const float *__restrict__ in, const float *__restrict__ sharpness, float *__restrict__ out, Taps taps, int length) {
    constexpr int ALL = 128 * RUN;
    __shared__ float held[(ALL + 2 * EDGE) / RUN * (RUN + 1) + RUN + 1];
    const int start = blockIdx.x * ALL, channel = blockIdx.y;
    const float *own = in + static_cast<size_t>(channel) * length;
    const float a = sharpness[channel];
    for (int j = threadIdx.x; j < ALL + 2 * EDGE; j += 128) held[j + j / RUN] = own[inside(start - EDGE + j, length)];
    __syncthreads();
    float x[RUN + 2 * EDGE], y[RUN];
#pragma unroll
    for (int j = 0; j < RUN + 2 * EDGE; j++) x[j] = held[threadIdx.x * (RUN + 1) + j + j / RUN];
    activate_run(x, y, taps, a, 1.f / a);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < RUN; j++) held[threadIdx.x * (RUN + 1) + j] = y[j];
    __syncthreads();
    for (int j = threadIdx.x; j < ALL; j += 128) out[static_cast<size_t>(channel) * length + start + j] = held[j + j / RUN];
}
// Neighbouring lanes have neighbouring samples; those of twice the rate are shared, even and odd ones apart.
__global__ void __launch_bounds__(256) activate_tile(const float *__restrict__ in, const float *__restrict__ sharpness, float *__restrict__ out, Taps taps, int length) {
    __shared__ float x[OUT_OF_TILE + 2 * EDGE], u[2][OUT_OF_TILE + EDGE];
    const int start = blockIdx.x * OUT_OF_TILE, channel = blockIdx.y;
    const float *own = in + static_cast<size_t>(channel) * length;
    const float a = sharpness[channel], one_over_a = 1.f / a;
    for (int j = threadIdx.x; j < OUT_OF_TILE + 2 * EDGE; j += 256) x[j] = own[inside(start - EDGE + j, length)];
    __syncthreads();
    for (int h = threadIdx.x; h < OUT_OF_TILE + EDGE; h += 256) {
        float odd = 0.f, even = 0.f;
#pragma unroll
        for (int k = 0; k < 6; k++) {
            odd = fmaf(taps.up[1][k], x[h + k], odd);
            even = fmaf(taps.up[0][k], x[h + k], even);
        }
        u[0][h] = snake(odd, a, one_over_a);
        u[1][h] = snake(even, a, one_over_a);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < OUT_OF_TILE; i += 256) {
        float sum = 0.f;
#pragma unroll
        for (int k = 0; k < 12; k++) sum = fmaf(taps.down[k], u[k % 2][i + k / 2], sum);
        out[static_cast<size_t>(channel) * length + start + i] = sum;
    }
}

Study activation("vocoder_activation_sixteen_samples_in_a_row", "audio", 256, "a periodic activation at twice the sampling rate, 256 channels of 65536 samples",
    "each thread has sixteen samples in a row: lanes read and write 64 bytes apart",
    {{"turned", "the runs read and written by way of shared memory", {"uncoalesced_access"}}, {"tile", "neighbouring samples to neighbouring lanes, those of twice the rate in shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int length = 65536;
        Taps taps;
        for (int k = 0; k < 6; k++) taps.up[0][k] = 0.02f + 0.13f * (k + 1) - 0.021f * k * k, taps.up[1][5 - k] = taps.up[0][k];
        for (int k = 0; k < 12; k++) taps.down[k] = 0.03f + 0.02f * std::min(k, 11 - k);
        const float *in = b.random<float>(n * length), *sharpness = b.random<float>(n, 0.5, 3);
        float *out = b.output<float>(n * length);
        const unsigned channels = static_cast<unsigned>(n);
        return {{"flawed", launch(activate, dim3(length / (128 * RUN), channels), 128, 0, in, sharpness, out, taps, length)},
            {"turned", launch(activate_turned, dim3(length / (128 * RUN), channels), 128, 0, in, sharpness, out, taps, length)},
            {"tile", launch(activate_tile, dim3(length / OUT_OF_TILE, channels), 256, 0, in, sharpness, out, taps, length)}};
    });

// --- what changed between two checkpoints, for a packer to squeeze ---

__global__ void __launch_bounds__(256) differences(const uint4 *__restrict__ before, const uint4 *__restrict__ now, uint4 *__restrict__ out) {
    const size_t first = static_cast<size_t>(blockIdx.x) * 1024 + threadIdx.x;
    uint4 a[4], b[4];
#pragma unroll
    for (int k = 0; k < 4; k++) a[k] = before[first + k * 256], b[k] = now[first + k * 256];
#pragma unroll
    for (int k = 0; k < 4; k++) out[first + k * 256] = make_uint4(a[k].x ^ b[k].x, a[k].y ^ b[k].y, a[k].z ^ b[k].z, a[k].w ^ b[k].w);
}

Study checkpoints("sound_checkpoint_differences", "compression", 1 << 26, "what differs between two checkpoints of 256 MB, bit by bit", "", {}, [](Buffers &b, long n) -> Sides {
    const unsigned *before = b.random<unsigned>(n, 0, 4294967296.0), *now = b.random<unsigned>(n, 0, 4294967296.0);
    unsigned *out = b.output<unsigned>(n);
    return {{"sound", launch(differences, n / 4096, 256, 0, reinterpret_cast<const uint4 *>(before), reinterpret_cast<const uint4 *>(now), reinterpret_cast<uint4 *>(out))}};
});

}  // namespace
