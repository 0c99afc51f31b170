// Cameras: noise of photons, colours, exposure and a pattern looked for. Each kernel has one weakness and two ways out.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- counts of photons around an expected number for each pixel: numbers are multiplied until they are below e^-mean ---

constexpr int PIXELS_A_WARP = 1024, REFILL = 8;

__device__ __forceinline__ float drawn(unsigned pixel, int draw) { return (static_cast<float>(hash(pixel + static_cast<unsigned>(draw) * 0x9e3779b9u) >> 8) + 0.5f) * 0x1p-24f; }

__global__ void __launch_bounds__(256) photon_counts(const float *__restrict__ mean, int *__restrict__ out) {
    const int pixel = blockIdx.x * 256 + threadIdx.x;
    const float bound = __expf(-mean[pixel]);
    float product = drawn(pixel, 0);
    int count = 0;
    while (product > bound) product *= drawn(pixel, ++count);
    out[pixel] = count;
}
// Sixteen pixels a thread in one loop: who has finished a pixel goes on with its next.
__global__ void __launch_bounds__(256) photon_counts_in_turn(const float *__restrict__ mean, int *__restrict__ out) {
    const int first = blockIdx.x * 4096 + threadIdx.x, end = first + 4096;
    int pixel = first, count = 0;
    float bound = __expf(-mean[pixel]), product = 1.f;
    while (pixel < end) {
        product *= drawn(pixel, count);
        if (product > bound) {
            count++;
        } else {
            out[pixel] = count;
            pixel += 256;
            count = 0;
            product = 1.f;
            if (pixel < end) bound = __expf(-mean[pixel]);
        }
    }
}
// A warp hands its 1024 pixels out: once eight lanes have nothing left, they take the next ones.
__global__ void __launch_bounds__(256) photon_counts_handed_out(const float *__restrict__ mean, int *__restrict__ out) {
    const int lane = threadIdx.x % 32, begin = (blockIdx.x * 8 + threadIdx.x / 32) * PIXELS_A_WARP, end = begin + PIXELS_A_WARP;
    int next = begin + 32, pixel = begin + lane, count = 0;
    float bound = __expf(-mean[pixel]), product = 1.f;
    bool busy = true;
    while (true) {
        if (busy) {
            product *= drawn(pixel, count);
            if (product > bound) {
                count++;
            } else {
                out[pixel] = count;
                busy = false;
            }
        }
        const unsigned idle = __ballot_sync(~0u, !busy);
        if (next < end && __popc(idle) >= REFILL) {
            const int mine = next + __popc(idle & ((1u << lane) - 1));
            if (!busy && mine < end) {
                pixel = mine;
                count = 0;
                product = 1.f;
                bound = __expf(-mean[pixel]);
                busy = true;
            }
            next += __popc(idle);
        } else if (idle == 0xffffffffu) {
            break;
        }
    }
}

Study photons("photon_counts_wait_for_the_brightest", "photography", 4096, "counts of photons at 4096 x 4096 pixels of a night sky, expected numbers of up to 36, by multiplying random numbers",
    "a pixel a thread: a warp draws until its brightest pixel is done",
    {{"in_turn", "sixteen pixels a thread, each lane goes on with its next", {"branch_divergence"}}, {"handed_out", "a warp hands out its pixels to the lanes that are idle", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const long pixels = n * n;
        std::vector<float> sky(pixels);
        for (long i = 0; i < pixels; i++) {
            const float u = static_cast<float>(hash(static_cast<unsigned>(i) + 5) >> 8) * 0x1p-24f, cube = u * u * u;
            sky[i] = 0.3f + 35.f * cube * cube;
        }
        const float *mean = b.copy(sky);
        int *out = b.output<int>(pixels);
        b.tolerance = 0.0;
        return {{"flawed", launch(photon_counts, pixels / 256, 256, 0, mean, out)}, {"in_turn", launch(photon_counts_in_turn, pixels / 4096, 256, 0, mean, out)},
            {"handed_out", launch(photon_counts_handed_out, pixels / (8 * PIXELS_A_WARP), 256, 0, mean, out)}};
    });

// --- colours of a screen to lightness and two opponents ---

// The way from sRGB to linear light, and the root of the lightness, as three ways of writing them.
struct Precise {
    __device__ __forceinline__ float linear(unsigned v) const {
        const float c = v / 255.f;
        return c <= 0.04045f ? c / 12.92f : powf((c + 0.055f) / 1.055f, 2.4f);
    }
    __device__ __forceinline__ float root(float t) const { return t > 0.008856f ? powf(t, 1.f / 3.f) : 7.787f * t + 16.f / 116.f; }
};
struct Fast {
    __device__ __forceinline__ float linear(unsigned v) const {
        const float c = static_cast<float>(v) * (1.f / 255.f);
        return c <= 0.04045f ? c * (1.f / 12.92f) : __powf((c + 0.055f) * (1.f / 1.055f), 2.4f);
    }
    __device__ __forceinline__ float root(float t) const { return t > 0.008856f ? __powf(t, 1.f / 3.f) : 7.787f * t + 16.f / 116.f; }
};
struct Tabled {
    const float *table;
    __device__ __forceinline__ float linear(unsigned v) const { return table[v]; }
    __device__ __forceinline__ float root(float t) const { return t > 0.008856f ? cbrtf(t) : 7.787f * t + 16.f / 116.f; }
};

__device__ __forceinline__ unsigned char to_byte(float v) { return static_cast<unsigned char>(fminf(fmaxf(v + 0.5f, 0.f), 255.f)); }

template <typename Curves>
__device__ __forceinline__ uchar4 lightness_and_opponents(uchar4 p, const Curves &curves) {
    const float r = curves.linear(p.x), g = curves.linear(p.y), b = curves.linear(p.z);
    const float x = curves.root((0.412453f * r + 0.357580f * g + 0.180423f * b) * (1.f / 0.950456f));
    const float y = curves.root(0.212671f * r + 0.715160f * g + 0.072169f * b);
    const float z = curves.root((0.019334f * r + 0.119193f * g + 0.950227f * b) * (1.f / 1.088754f));
    return make_uchar4(to_byte((116.f * y - 16.f) * 2.55f), to_byte(500.f * (x - y) + 128.f), to_byte(200.f * (y - z) + 128.f), p.w);
}

template <typename Curves>
__global__ void __launch_bounds__(256) to_lab(const uchar4 *__restrict__ in, uchar4 *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = lightness_and_opponents(in[i], Curves());
}
// The 256 values of linear light are in shared memory; roots by the function for them.
__global__ void __launch_bounds__(256) to_lab_table(const uchar4 *__restrict__ in, uchar4 *__restrict__ out, const float *__restrict__ linear) {
    __shared__ float table[256];
    table[threadIdx.x] = linear[threadIdx.x];
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < 8; k++) {
        const int i = blockIdx.x * 2048 + k * 256 + threadIdx.x;
        out[i] = lightness_and_opponents(in[i], Tabled{table});
    }
}

Study lab("lab_colours_by_six_powers", "images", 4096, "4096 x 4096 pixels of a screen's colours to lightness and two opponents, a byte each",
    "three precise powers to linear light and three for the roots for each pixel",
    {{"fast", "fast powers, products instead of quotients", {"expensive_math"}}, {"table", "linear light from a table of 256 in shared memory, cubic roots", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const long pixels = n * n;
        std::vector<float> linear(256);
        for (int v = 0; v < 256; v++) linear[v] = v / 255.f <= 0.04045f ? v / 255.f / 12.92f : std::pow((v / 255.f + 0.055f) / 1.055f, 2.4f);
        const unsigned char *colours = b.random<unsigned char>(4 * pixels, 0, 256);
        const float *table = b.copy(linear);
        unsigned char *bytes = b.output<unsigned char>(4 * pixels);
        b.tolerance = 0.01;  // a step of a byte, where values lie between two
        auto in = reinterpret_cast<const uchar4 *>(colours);
        auto out = reinterpret_cast<uchar4 *>(bytes);
        return {{"flawed", launch(to_lab<Precise>, pixels / 256, 256, 0, in, out)}, {"fast", launch(to_lab<Fast>, pixels / 256, 256, 0, in, out)},
            {"table", launch(to_lab_table, pixels / 2048, 256, 0, in, out, table)}};
    });

// --- exposure of each of some cameras: the mean of the logarithm of its pixels' brightness ---

constexpr int FRAME = 1920 * 1080;

__device__ __forceinline__ float block_sum(float v) {
    __shared__ float of_warps[32];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = v;
    __syncthreads();
    return warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? of_warps[threadIdx.x % 32] : 0.f);
}
__device__ __forceinline__ float brightness(unsigned v) { return __logf(static_cast<float>(v) + 1.f); }
__device__ __forceinline__ float brightness_of_four(unsigned v) { return brightness(v & 255) + brightness(v >> 8 & 255) + brightness(v >> 16 & 255) + brightness(v >> 24); }

__global__ void __launch_bounds__(1024) exposures(const unsigned char *__restrict__ frames, float *out, int pixels) {
    const unsigned char *frame = frames + static_cast<size_t>(blockIdx.x) * pixels;
    float sum = 0.f;
    for (int i = threadIdx.x; i < pixels; i += 1024) sum += brightness(frame[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum / pixels;
}
// Many blocks a camera, each adds its part.
__global__ void __launch_bounds__(256) exposures_added(const unsigned char *__restrict__ frames, float *out, int pixels) {
    const unsigned char *frame = frames + static_cast<size_t>(blockIdx.y) * pixels;
    float sum = 0.f;
#pragma unroll 4
    for (int i = blockIdx.x * 256 + threadIdx.x; i < pixels; i += gridDim.x * 256) sum += brightness(frame[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) atomicAdd(&out[blockIdx.y], sum / pixels);
}
// Sixteen pixels an access; parts are written down, the camera's last block adds them in order.
__global__ void __launch_bounds__(256) exposures_last_block(const uint4 *__restrict__ frames, float *out, float *parts, unsigned *arrived, int pixels) {
    __shared__ bool last;
    const uint4 *frame = frames + static_cast<size_t>(blockIdx.y) * (pixels / 16);
    float sum = 0.f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < pixels / 16; i += gridDim.x * 256) {
        const uint4 v = frame[i];
        sum += brightness_of_four(v.x) + brightness_of_four(v.y) + brightness_of_four(v.z) + brightness_of_four(v.w);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        parts[blockIdx.y * gridDim.x + blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&arrived[blockIdx.y], gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || threadIdx.x >= 32) return;
    __threadfence();
    float all = 0.f;
    for (unsigned k = threadIdx.x; k < gridDim.x; k += 32) all += static_cast<volatile float *>(parts)[blockIdx.y * gridDim.x + k];
    all = warp_sum(all);
    if (threadIdx.x == 0) out[blockIdx.y] = all / pixels;
}

Study metering("exposure_a_block_for_each_camera", "photography", 16, "mean logarithm of the brightness of frames of 1920 x 1080 pixels of 16 cameras",
    "a block for each camera: 16 blocks",
    {{"added", "64 blocks a camera, each adds its part", {"small_grid"}}, {"last_block", "32 blocks a camera, 16 bytes an access, the last block adds the parts", {"small_grid", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *frames = b.random<unsigned char>(n * FRAME, 0, 256);
        float *out = b.output<float>(n, true), *parts = b.random<float>(n * 32);
        unsigned *arrived = b.copy(std::vector<unsigned>(n, 0));
        const int pixels = FRAME;
        const unsigned cameras = static_cast<unsigned>(n);
        return {{"flawed", launch(exposures, cameras, 1024, 0, frames, out, pixels)}, {"added", launch(exposures_added, dim3(64, cameras), 256, 0, frames, out, pixels)},
            {"last_block", launch(exposures_last_block, dim3(32, cameras), 256, 0, reinterpret_cast<const uint4 *>(frames), out, parts, arrived, pixels)}};
    });

// --- a pattern of 24 x 24 looked for: the sum of squared differences at every place of a picture ---

constexpr int PATTERN = 24;

__global__ void __launch_bounds__(256) pattern_distances(const float *__restrict__ image, const float *__restrict__ pattern, float *__restrict__ out, int width, int pitch) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    float sum = 0.f;
    for (int j = 0; j < PATTERN; j++)
        for (int i = 0; i < PATTERN; i++) {
            const float d = image[(y + j) * pitch + x + i] - pattern[j * PATTERN + i];
            sum += d * d;
        }
    out[y * width + x] = sum;
}
// ROWS places one below the other: a column of the pattern is in registers, a pixel read once serves all of them.
template <int ROWS, typename Pixel, typename Part>
__device__ __forceinline__ void add_column(float (&sum)[ROWS], Pixel pixel, Part part) {
    float column[PATTERN];
#pragma unroll
    for (int j = 0; j < PATTERN; j++) column[j] = part(j);
#pragma unroll
    for (int j = 0; j < PATTERN + ROWS - 1; j++) {
        const float v = pixel(j);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (j - r >= 0 && j - r < PATTERN) {
                const float d = v - column[j - r];
                sum[r] = fmaf(d, d, sum[r]);
            }
    }
}
__global__ void __launch_bounds__(256) pattern_distances_eight(const float *__restrict__ image, const float *__restrict__ pattern, float *__restrict__ out, int width, int pitch) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = (blockIdx.y * 8 + threadIdx.y) * 8;
    float sum[8] = {};
#pragma unroll 1
    for (int i = 0; i < PATTERN; i++)
        add_column<8>(sum, [&](int j) { return image[(y + j) * pitch + x + i]; }, [&](int j) { return pattern[j * PATTERN + i]; });
#pragma unroll
    for (int r = 0; r < 8; r++) out[(y + r) * width + x] = sum[r];
}
// The picture's part for 32 x 32 places and the pattern in shared memory, four places a thread.
__global__ void __launch_bounds__(256) pattern_distances_tile(const float *__restrict__ image, const float *__restrict__ pattern, float *__restrict__ out, int width, int pitch) {
    constexpr int SIDE = 32 + PATTERN - 1;
    __shared__ float tile[SIDE][SIDE + 1], part[PATTERN][PATTERN];
    const int own = threadIdx.y * 32 + threadIdx.x, left = blockIdx.x * 32, top = blockIdx.y * 32;
    for (int k = own; k < PATTERN * PATTERN; k += 256) part[k / PATTERN][k % PATTERN] = pattern[k];
    for (int j = threadIdx.y; j < SIDE; j += 8)
        for (int i = threadIdx.x; i < SIDE; i += 32) tile[j][i] = image[(top + j) * pitch + left + i];
    __syncthreads();
    const int y = threadIdx.y * 4;
    float sum[4] = {};
#pragma unroll 1
    for (int i = 0; i < PATTERN; i++)
        add_column<4>(sum, [&](int j) { return tile[y + j][threadIdx.x + i]; }, [&](int j) { return part[j][i]; });
#pragma unroll
    for (int r = 0; r < 4; r++) out[(top + y + r) * width + left + threadIdx.x] = sum[r];
}

Study pattern_search("pattern_and_picture_read_for_each_product", "vision", 1536, "squared differences of a pattern of 24 x 24 at 1536 x 1536 places of a picture",
    "a pixel of the picture and one of the pattern are read from memory for each term",
    {{"eight", "eight places a thread, a column of the pattern in registers", {"redundant_loads"}}, {"tile", "picture and pattern in shared memory, four places a thread", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int width = static_cast<int>(n), pitch = width + 32;
        const float *image = b.random<float>(static_cast<size_t>(pitch) * (width + PATTERN), 0, 1), *pattern = b.random<float>(PATTERN * PATTERN, 0, 1);
        float *out = b.output<float>(n * n);
        const dim3 block(32, 8);
        return {{"flawed", launch(pattern_distances, dim3(n / 32, n / 8), block, 0, image, pattern, out, width, pitch)},
            {"eight", launch(pattern_distances_eight, dim3(n / 32, n / 64), block, 0, image, pattern, out, width, pitch)},
            {"tile", launch(pattern_distances_tile, dim3(n / 32, n / 32), block, 0, image, pattern, out, width, pitch)}};
    });

}  // namespace
