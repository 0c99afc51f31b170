// Pieces of image and signal processing. Each kernel has one weakness and two or three ways out.
#include "../pairs/pair.cuh"

namespace {

// --- census transform: which of the 62 pixels around are darker ---

constexpr int MARGIN = 8;  // pixels around the image, which is stored with them

struct Picture {
    const unsigned char *pixels;
    int width, pitch;
    __device__ unsigned char at(int row, int column) const { return pixels[(row + MARGIN) * pitch + column + MARGIN]; }
};
__global__ void census(Picture p, unsigned long long *out) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    const unsigned char centre = p.at(row, column);
    unsigned long long bits = 0;
    for (int dy = -3; dy <= 3; ++dy)
        for (int dx = -4; dx <= 4; ++dx)
            if (dx || dy) bits = bits << 1 | (p.at(row + dy, column + dx) < centre);
    out[row * p.width + column] = bits;
}
__global__ void __launch_bounds__(256) census_tile(Picture p, unsigned long long *out) {
    __shared__ unsigned char tile[14][44];
    const int c0 = blockIdx.x * 32, r0 = blockIdx.y * 8, tx = threadIdx.x, ty = threadIdx.y;
    for (int i = ty * 32 + tx; i < 14 * 40; i += 256) tile[i / 40][i % 40] = p.at(r0 + i / 40 - 3, c0 + i % 40 - 4);
    __syncthreads();
    const unsigned char centre = tile[ty + 3][tx + 4];
    unsigned long long bits = 0;
#pragma unroll
    for (int dy = 0; dy < 7; ++dy)
#pragma unroll
        for (int dx = 0; dx < 9; ++dx)
            if (dx != 4 || dy != 3) bits = bits << 1 | (tile[ty + dy][tx + dx] < centre);
    out[(r0 + ty) * p.width + c0 + tx] = bits;
}
// Four pixels a thread from words of four: seven rows of twelve bytes serve all of them.
__global__ void __launch_bounds__(256) census_words(Picture p, ulonglong2 *out) {
    const int column = (blockIdx.x * blockDim.x + threadIdx.x) * 4, row = blockIdx.y * blockDim.y + threadIdx.y;
    auto byte = [](const unsigned *w, int i) { return w[i / 4] >> i % 4 * 8 & 255u; };
    unsigned words[7][3];
#pragma unroll
    for (int y = 0; y < 7; ++y)
#pragma unroll
        for (int x = 0; x < 3; ++x) words[y][x] = *reinterpret_cast<const unsigned *>(p.pixels + (row + y - 3 + MARGIN) * p.pitch + column - 4 + MARGIN + 4 * x);
    unsigned long long bits[4] = {};
#pragma unroll
    for (int q = 0; q < 4; ++q)
#pragma unroll
        for (int dy = 0; dy < 7; ++dy)
#pragma unroll
            for (int dx = 0; dx < 9; ++dx)
                if (dx != 4 || dy != 3) bits[q] = bits[q] << 1 | (byte(words[dy], q + dx) < byte(words[3], q + 4));
    ulonglong2 *to = out + (row * p.width + column) / 2;
    to[0] = {bits[0], bits[1]}, to[1] = {bits[2], bits[3]};
}

Study censuses("census_63_bytes_from_memory", "images", 4096, "census transform of 4096 x 4096 pixels, a window of 9 x 7",
    "a pixel's window is read byte by byte, and again for every pixel",
    {{"tile", "a tile in shared memory", {"redundant_loads"}}, {"words", "four pixels a thread from words of four", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        int pitch = n + 2 * MARGIN;
        Picture p{b.random<unsigned char>(static_cast<long>(pitch) * pitch, 0, 256), static_cast<int>(n), pitch};
        unsigned long long *out = b.output<unsigned long long>(n * n);
        b.tolerance = 1e-15;
        return {{"flawed", launch(census, dim3(n / 32, n / 8), dim3(32, 8), 0, p, out)}, {"tile", launch(census_tile, dim3(n / 32, n / 8), dim3(32, 8), 0, p, out)},
            {"words", launch(census_words, dim3(n / 128, n / 8), dim3(32, 8), 0, p, (ulonglong2 *)out)}};
    });

// --- structural similarity with a window of 11 x 11 ---

__constant__ float WINDOW[11];

__device__ __forceinline__ float similarity(float sx, float sy, float sxx, float syy, float sxy) {
    const float c1 = 1e-4f, c2 = 9e-4f;
    float xx = sxx - sx * sx, yy = syy - sy * sy, xy = sxy - sx * sy;
    return (2.f * sx * sy + c1) * (2.f * xy + c2) / ((sx * sx + sy * sy + c1) * (xx + yy + c2));
}
__global__ void ssim(const float *x, const float *y, float *out, int width, int pitch) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float sx = 0.f, sy = 0.f, sxx = 0.f, syy = 0.f, sxy = 0.f;
    for (int i = 0; i < 11; ++i)
        for (int j = 0; j < 11; ++j) {
            float w = WINDOW[i] * WINDOW[j], a = x[(row + i) * pitch + column + j], b = y[(row + i) * pitch + column + j];
            sx += w * a, sy += w * b, sxx += w * a * a, syy += w * b * b, sxy += w * a * b;
        }
    out[row * width + column] = similarity(sx, sy, sxx, syy, sxy);
}
// Sums along the rows of a tile first, then down its columns.
__global__ void __launch_bounds__(256) ssim_separable(const float *x, const float *y, float *out, int width, int pitch) {
    __shared__ float tx[26][44], ty[26][44], sums[5][26][32];
    int c0 = blockIdx.x * 32, r0 = blockIdx.y * 16, thread = threadIdx.y * 32 + threadIdx.x;
    for (int i = thread; i < 26 * 42; i += 256) {
        int at = (r0 + i / 42) * pitch + c0 + i % 42;
        tx[i / 42][i % 42] = x[at], ty[i / 42][i % 42] = y[at];
    }
    __syncthreads();
    for (int r = threadIdx.y; r < 26; r += 8) {
        float s[5] = {};
#pragma unroll
        for (int j = 0; j < 11; ++j) {
            float w = WINDOW[j], a = tx[r][threadIdx.x + j], b = ty[r][threadIdx.x + j];
            s[0] += w * a, s[1] += w * b, s[2] += w * a * a, s[3] += w * b * b, s[4] += w * a * b;
        }
        for (int k = 0; k < 5; ++k) sums[k][r][threadIdx.x] = s[k];
    }
    __syncthreads();
    for (int r = threadIdx.y; r < 16; r += 8) {
        float s[5] = {};
#pragma unroll
        for (int i = 0; i < 11; ++i)
#pragma unroll
            for (int k = 0; k < 5; ++k) s[k] += WINDOW[i] * sums[k][r + i][threadIdx.x];
        out[(r0 + r) * width + c0 + threadIdx.x] = similarity(s[0], s[1], s[2], s[3], s[4]);
    }
}
// Four rows a thread: each value that was read serves the windows of all four.
__global__ void __launch_bounds__(128) ssim_rows(const float *__restrict__ x, const float *__restrict__ y, float *__restrict__ out, int width, int pitch) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = (blockIdx.y * blockDim.y + threadIdx.y) * 4;
    float s[4][5] = {};
#pragma unroll
    for (int i = 0; i < 14; ++i) {
        float h[5] = {};
#pragma unroll
        for (int j = 0; j < 11; ++j) {
            float w = WINDOW[j], a = x[(row + i) * pitch + column + j], b = y[(row + i) * pitch + column + j];
            h[0] += w * a, h[1] += w * b, h[2] += w * a * a, h[3] += w * b * b, h[4] += w * a * b;
        }
#pragma unroll
        for (int r = 0; r < 4; ++r)
            if (i >= r && i - r < 11)
#pragma unroll
                for (int k = 0; k < 5; ++k) s[r][k] += WINDOW[i - r] * h[k];
    }
    for (int r = 0; r < 4; ++r) out[(row + r) * width + column] = similarity(s[r][0], s[r][1], s[r][2], s[r][3], s[r][4]);
}

Study similarities("ssim_121_taps_of_five_sums", "images", 2048, "structural similarity of two images of 2048 x 2048 pixels, Gaussian window of 11 x 11",
    "all 121 pairs of pixels of a window are read and summed for each result",
    {{"separable", "a tile in shared memory, sums along rows and then down columns", {"redundant_loads"}},
        {"rows", "four rows a thread, sums along a row shared by their windows", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        float window[11], total = 0.f;
        for (int i = 0; i < 11; ++i) total += window[i] = expf(-0.5f * (i - 5) * (i - 5) / 2.25f);
        for (float &w : window) w /= total;
        CHECK(cudaMemcpyToSymbol(WINDOW, window, sizeof window));
        int pitch = n + 16;
        float *x = b.random<float>(static_cast<long>(pitch) * pitch, 0, 1), *y = b.random<float>(static_cast<long>(pitch) * pitch, 0, 1), *out = b.output<float>(n * n);
        b.tolerance = 2e-3;
        return {{"flawed", launch(ssim, dim3(n / 32, n / 8), dim3(32, 8), 0, x, y, out, n, pitch)},
            {"separable", launch(ssim_separable, dim3(n / 32, n / 16), dim3(32, 8), 0, x, y, out, n, pitch)},
            {"rows", launch(ssim_rows, dim3(n / 32, n / 16), dim3(32, 4), 0, x, y, out, n, pitch)}};
    });

// --- histograms of gradients of cells of 8 x 8 pixels ---

struct Vote {
    int bin, next;
    float low, high;
};
__device__ __forceinline__ Vote vote_of(const float *image, int row, int column, int pitch) {
    const float *p = image + (row + 1) * pitch + column + 1;
    float gx = p[1] - p[-1], gy = p[pitch] - p[-pitch], size = sqrtf(gx * gx + gy * gy);
    float turn = atan2f(gy, gx) * (9.f / 3.14159265f);
    if (turn < 0.f) turn += 9.f;
    int bin = min(static_cast<int>(turn), 8);
    float share = turn - bin;
    return {bin, bin == 8 ? 0 : bin + 1, size * (1.f - share), size * share};
}
__global__ void __launch_bounds__(256) gradients(const float *image, float *cells, int width, int pitch) {
    __shared__ float bins[4][9];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y, thread = threadIdx.y * 32 + threadIdx.x;
    if (thread < 36) bins[thread / 9][thread % 9] = 0.f;
    __syncthreads();
    Vote v = vote_of(image, row, column, pitch);
    atomicAdd(&bins[threadIdx.x / 8][v.bin], v.low);
    atomicAdd(&bins[threadIdx.x / 8][v.next], v.high);
    __syncthreads();
    if (thread < 36) cells[(blockIdx.y * (width / 8) + blockIdx.x * 4) * 9 + thread] = bins[thread / 9][thread % 9];
}
__global__ void __launch_bounds__(256) gradients_fixed_point(const float *image, float *cells, int width, int pitch) {
    __shared__ unsigned bins[4][9];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y, thread = threadIdx.y * 32 + threadIdx.x;
    if (thread < 36) bins[thread / 9][thread % 9] = 0;
    __syncthreads();
    Vote v = vote_of(image, row, column, pitch);
    atomicAdd(&bins[threadIdx.x / 8][v.bin], __float2uint_rn(v.low * 1048576.f));
    atomicAdd(&bins[threadIdx.x / 8][v.next], __float2uint_rn(v.high * 1048576.f));
    __syncthreads();
    if (thread < 36) cells[(blockIdx.y * (width / 8) + blockIdx.x * 4) * 9 + thread] = bins[thread / 9][thread % 9] / 1048576.f;
}
// A lane walks the eight rows of a column with nine sums in registers; eight lanes are added by shuffles.
__global__ void __launch_bounds__(128) gradients_columns(const float *image, float *cells, int width, int pitch) {
    int column = blockIdx.x * 128 + threadIdx.x;
    float sums[9] = {};
    for (int r = 0; r < 8; ++r) {
        Vote v = vote_of(image, blockIdx.y * 8 + r, column, pitch);
#pragma unroll
        for (int k = 0; k < 9; ++k) sums[k] += (k == v.bin ? v.low : 0.f) + (k == v.next ? v.high : 0.f);
    }
#pragma unroll
    for (int k = 0; k < 9; ++k)
        for (int o = 4; o; o /= 2) sums[k] += __shfl_xor_sync(~0u, sums[k], o);
    if (threadIdx.x % 8 == 0)
        for (int k = 0; k < 9; ++k) cells[(blockIdx.y * (width / 8) + column / 8) * 9 + k] = sums[k];
}

Study oriented("gradient_votes_shared_float_atomics", "images", 4096, "histograms of nine directions for cells of 8 x 8 pixels of 4096 x 4096",
    "two floating-point atomics a pixel on nine words of shared memory, which are loops of compare and swap",
    {{"columns", "a lane a column with nine sums in registers, then shuffles", {"shared_atomics"}},
        {"fixed_point", "sums of integers, which shared memory adds by itself", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        int pitch = n + 32;
        float *image = b.random<float>(static_cast<long>(pitch) * (n + 2), 0, 1), *cells = b.output<float>(n / 8 * (n / 8) * 9);
        b.tolerance = 1e-3;
        return {{"flawed", launch(gradients, dim3(n / 32, n / 8), dim3(32, 8), 0, image, cells, n, pitch)},
            {"columns", launch(gradients_columns, dim3(n / 128, n / 8), 128, 0, image, cells, n, pitch)},
            {"fixed_point", launch(gradients_fixed_point, dim3(n / 32, n / 8), dim3(32, 8), 0, image, cells, n, pitch)}};
    });

// --- stack of exposures: mean of what is near the mean, three rounds ---

constexpr int FRAMES = 48;

template <typename Value>
__device__ __forceinline__ float clipped_mean(Value value) {
    float low = -1e30f, high = 1e30f, mean = 0.f;
#pragma unroll 1
    for (int round = 0; round < 3; ++round) {
        float sum = 0.f, squares = 0.f;
        int count = 0;
#pragma unroll
        for (int f = 0; f < FRAMES; ++f) {
            float v = value(f);
            if (v >= low && v <= high) sum += v, ++count;
        }
        mean = sum / count;
#pragma unroll
        for (int f = 0; f < FRAMES; ++f) {
            float v = value(f);
            if (v >= low && v <= high) squares += (v - mean) * (v - mean);
        }
        float sigma = sqrtf(squares / count);
        low = fmaxf(low, mean - 1.6f * sigma), high = fminf(high, mean + 1.6f * sigma);
    }
    return mean;
}
__global__ void stack_frames(const float *frames, float *out, int pixels) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= pixels) return;
    float low = -1e30f, high = 1e30f, mean = 0.f;
    for (int round = 0; round < 3; ++round) {
        float sum = 0.f, squares = 0.f;
        int count = 0;
        for (int f = 0; f < FRAMES; ++f) {
            float v = frames[static_cast<size_t>(f) * pixels + p];
            if (v >= low && v <= high) sum += v, ++count;
        }
        mean = sum / count;
        for (int f = 0; f < FRAMES; ++f) {
            float v = frames[static_cast<size_t>(f) * pixels + p];
            if (v >= low && v <= high) squares += (v - mean) * (v - mean);
        }
        float sigma = sqrtf(squares / count);
        low = fmaxf(low, mean - 1.6f * sigma), high = fminf(high, mean + 1.6f * sigma);
    }
    out[p] = mean;
}
__global__ void __launch_bounds__(128) stack_frames_registers(const float *__restrict__ frames, float *__restrict__ out, int pixels) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    float held[FRAMES];
#pragma unroll
    for (int f = 0; f < FRAMES; ++f) held[f] = frames[static_cast<size_t>(f) * pixels + p];
    out[p] = clipped_mean([&](int f) { return held[f]; });
}
__global__ void __launch_bounds__(128) stack_frames_shared(const float *__restrict__ frames, float *__restrict__ out, int pixels) {
    __shared__ float held[FRAMES][128];
    int p = blockIdx.x * 128 + threadIdx.x;
#pragma unroll 16
    for (int f = 0; f < FRAMES; ++f) held[f][threadIdx.x] = frames[static_cast<size_t>(f) * pixels + p];
    out[p] = clipped_mean([&](int f) { return held[f][threadIdx.x]; });
}

Study stacks("stacked_frames_read_six_times", "images", 1 << 21, "mean of 48 exposures of 2097152 pixels without what lies off by 1.6 deviations, three rounds",
    "every round reads all frames twice, once for the mean and once for the deviation",
    {{"registers", "a pixel's 48 values in registers", {"redundant_loads"}}, {"shared", "a pixel's 48 values in shared memory", {"redundant_loads"}}},
    [](Buffers &b, long pixels) -> Sides {
        float *frames = b.random<float>(pixels * FRAMES, 0, 1), *out = b.output<float>(pixels);
        b.tolerance = 0.1;
        return {{"flawed", launch(stack_frames, pixels / 256, 256, 0, frames, out, pixels)},
            {"registers", launch(stack_frames_registers, pixels / 128, 128, 0, frames, out, pixels)},
            {"shared", launch(stack_frames_shared, pixels / 128, 128, 0, frames, out, pixels)}};
    });

// --- an adaptive filter: 128 weights follow a signal ---

constexpr int TAPS = 128;

__global__ void __launch_bounds__(TAPS) adapt(const float *signal, const float *wanted, float *error, int samples, float rate) {
    __shared__ float part[TAPS];
    const int tap = threadIdx.x;
    const float *x = signal + static_cast<size_t>(blockIdx.x) * (samples + TAPS) + TAPS;
    float weight = 0.f;
    for (int n = 0; n < samples; ++n) {
        float own = x[n - tap];
        part[tap] = weight * own;
        __syncthreads();
        for (int half = TAPS / 2; half > 0; half >>= 1) {
            if (tap < half) part[tap] += part[tap + half];
            __syncthreads();
        }
        float e = wanted[static_cast<size_t>(blockIdx.x) * samples + n] - part[0];
        __syncthreads();
        weight += rate * e * own;
        if (tap == 0) error[static_cast<size_t>(blockIdx.x) * samples + n] = e;
    }
}
__global__ void __launch_bounds__(TAPS) adapt_shuffles(const float *signal, const float *wanted, float *error, int samples, float rate) {
    __shared__ float part[2][4];
    const int tap = threadIdx.x;
    const float *x = signal + static_cast<size_t>(blockIdx.x) * (samples + TAPS) + TAPS;
    float weight = 0.f;
    for (int n = 0; n < samples; ++n) {
        float own = x[n - tap], d = wanted[static_cast<size_t>(blockIdx.x) * samples + n], sum = warp_sum(weight * own);
        if (tap % 32 == 0) part[n & 1][tap / 32] = sum;
        __syncthreads();
        const float *p = part[n & 1];
        float e = d - (p[0] + p[1] + p[2] + p[3]);
        weight += rate * e * own;
        if (tap == 0) error[static_cast<size_t>(blockIdx.x) * samples + n] = e;
    }
}
// A warp a channel, four weights a lane: no barrier at all.
__global__ void __launch_bounds__(32) adapt_warp(const float *signal, const float *wanted, float *error, int samples, float rate) {
    const int lane = threadIdx.x;
    const float *x = signal + static_cast<size_t>(blockIdx.x) * (samples + TAPS) + TAPS;
    float weight[4] = {};
    for (int n = 0; n < samples; ++n) {
        float own[4], sum = 0.f, d = wanted[static_cast<size_t>(blockIdx.x) * samples + n];
#pragma unroll
        for (int k = 0; k < 4; ++k) own[k] = x[n - lane - 32 * k], sum += weight[k] * own[k];
        float e = d - warp_sum(sum);
#pragma unroll
        for (int k = 0; k < 4; ++k) weight[k] += rate * e * own[k];
        if (lane == 0) error[static_cast<size_t>(blockIdx.x) * samples + n] = e;
    }
}

Study adaptive("adaptive_filter_tree_each_sample", "signals", 1056, "least-mean-squares filters of 128 weights over 384 samples of 1056 channels",
    "each sample's sum is a tree in shared memory with nine barriers",
    {{"warp", "a warp a channel, four weights a lane: shuffles, no barrier", {"barriers"}}, {"shuffles", "shuffles, then one barrier a sample", {"barriers"}}},
    [](Buffers &b, long channels) -> Sides {
        const int samples = 384;
        float *x = b.random<float>(channels * (samples + TAPS)), *d = b.random<float>(channels * samples), *e = b.output<float>(channels * samples);
        b.tolerance = 1e-3;
        return {{"flawed", launch(adapt, channels, TAPS, 0, x, d, e, samples, 0.002f)}, {"warp", launch(adapt_warp, channels, 32, 0, x, d, e, samples, 0.002f)},
            {"shuffles", launch(adapt_shuffles, channels, TAPS, 0, x, d, e, samples, 0.002f)}};
    });

// --- scrambling by the sequence of x^31 + x^28 + 1, words of a stream one row apart ---

__global__ void scramble(const unsigned *data, const unsigned *seeds, unsigned *out, int streams, int words) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= streams) return;
    unsigned state = seeds[s];
    for (int w = 0; w < words; ++w) {
        unsigned key = 0;
        for (int bit = 0; bit < 32; ++bit) {
            unsigned fresh = ((state >> 30) ^ (state >> 27)) & 1u;
            state = ((state << 1) | fresh) & 0x7fffffffu;
            key = (key << 1) | fresh;
        }
        out[w * streams + s] = data[w * streams + s] ^ key;
    }
}
__device__ __forceinline__ unsigned sixteen(unsigned &state) {
    unsigned fresh = ((state >> 15) ^ (state >> 12)) & 0xffffu;
    state = (state << 16 | fresh) & 0x7fffffffu;
    return fresh;
}
__global__ void scramble_halves(const unsigned *__restrict__ data, const unsigned *__restrict__ seeds, unsigned *__restrict__ out, int streams, int words) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= streams) return;
    unsigned state = seeds[s];
    for (int w = 0; w < words; ++w) {
        unsigned key = sixteen(state) << 16;
        key |= sixteen(state);
        out[w * streams + s] = data[w * streams + s] ^ key;
    }
}
// The squared recurrence reaches back 62 and 56 bits: a word at once from 64 bits of history.
__global__ void scramble_words(const unsigned *__restrict__ data, const unsigned *__restrict__ seeds, unsigned *__restrict__ out, int streams, int words) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= streams) return;
    unsigned state = seeds[s];
    unsigned long long history = state;
    unsigned key = sixteen(state) << 16;
    key |= sixteen(state);
    for (int w = 0; w < words; ++w) {
        out[w * streams + s] = data[w * streams + s] ^ key;
        history = history << 32 | key;
        key = static_cast<unsigned>(history >> 30) ^ static_cast<unsigned>(history >> 24);
    }
}

Study scrambled("scrambler_bit_at_a_time", "signals", 1 << 18, "64 words of each of 262144 streams scrambled by a sequence of 31 bits",
    "the sequence is made bit by bit: six instructions and a dependent step for each",
    {{"halves", "16 bits at once", {"integer_arithmetic", "instruction_latency"}},
        {"words", "the squared recurrence: 32 bits at once", {"integer_arithmetic", "instruction_latency"}}},
    [](Buffers &b, long streams) -> Sides {
        unsigned *data = b.random<unsigned>(streams * 64, 0, 4294967295.0), *seeds = b.random<unsigned>(streams, 1, 2147483647.0), *out = b.output<unsigned>(streams * 64);
        b.tolerance = 1e-12;
        return {{"flawed", launch(scramble, streams / 256, 256, 0, data, seeds, out, streams, 64)}, {"halves", launch(scramble_halves, streams / 256, 256, 0, data, seeds, out, streams, 64)},
            {"words", launch(scramble_words, streams / 256, 256, 0, data, seeds, out, streams, 64)}};
    });

// --- how often grey levels lie side by side, for tiles of 64 x 64 ---

template <typename Count>
__global__ void __launch_bounds__(64) neighbours(const unsigned char *image, unsigned *tiles, int pitch) {
    extern __shared__ unsigned char memory[];
    Count *own = reinterpret_cast<Count *>(memory);  // 256 pairs of levels for each of 64 threads
    const int t = threadIdx.x;
    for (int k = 0; k < 256; ++k) own[k * 64 + t] = 0;
    const unsigned char *column = image + static_cast<size_t>(blockIdx.y) * 64 * pitch + blockIdx.x * 64 + t;
    for (int r = 0; r < 64; ++r) {
        int left = column[r * pitch] >> 4, right = column[r * pitch + 1] >> 4;
        ++own[(left * 16 + right) * 64 + t];
    }
    __syncthreads();
    for (int k = t; k < 256; k += 64) {
        unsigned sum = 0;
        for (int i = 0; i < 64; ++i) sum += own[k * 64 + ((i + t) & 63)];
        tiles[(blockIdx.y * gridDim.x + blockIdx.x) * 256 + k] = sum;
    }
}
__global__ void __launch_bounds__(256) neighbours_atomic(const unsigned char *image, unsigned *tiles, int pitch) {
    __shared__ unsigned counts[256];
    const int t = threadIdx.x;
    counts[t] = 0;
    __syncthreads();
    const unsigned char *column = image + (static_cast<size_t>(blockIdx.y) * 64 + t / 64) * pitch + blockIdx.x * 64 + t % 64;
    for (int r = 0; r < 64; r += 4) atomicAdd(&counts[(column[r * pitch] >> 4) * 16 + (column[r * pitch + 1] >> 4)], 1u);
    __syncthreads();
    tiles[(blockIdx.y * gridDim.x + blockIdx.x) * 256 + t] = counts[t];
}

Study neighbouring("level_pairs_counts_each_thread", "images", 4096, "how often each of 16 x 16 pairs of grey levels lies side by side, in 4096 tiles of 64 x 64 pixels",
    "each thread has 256 counts of its own in shared memory: 64 KB for two warps, six warps a multiprocessor",
    {{"atomic", "one set of counts a block, by shared atomics", {"low_occupancy"}}, {"halves", "counts of 16 bits", {"low_occupancy"}}, {"bytes", "counts of eight bits", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        int pitch = n + 64;
        unsigned char *image = b.random<unsigned char>(static_cast<long>(pitch) * n, 0, 256);
        unsigned *tiles = b.output<unsigned>(n / 64 * (n / 64) * 256);
        b.tolerance = 1e-9;
        dim3 grid(n / 64, n / 64);
        return {{"flawed", launch(neighbours<unsigned>, grid, 64, 65536, image, tiles, pitch)}, {"atomic", launch(neighbours_atomic, grid, 256, 0, image, tiles, pitch)},
            {"halves", launch(neighbours<unsigned short>, grid, 64, 32768, image, tiles, pitch)}, {"bytes", launch(neighbours<unsigned char>, grid, 64, 16384, image, tiles, pitch)}};
    });

// --- sound: colours multiplied by their opacity ---

__global__ void premultiply(const uint4 *__restrict__ in, uint4 *__restrict__ out, int quads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    uint4 p = in[i];
    auto one = [](unsigned v) {
        unsigned a = v >> 24, even = (v & 0x00ff00ffu) * a + 0x00800080u, odd = (v >> 8 & 0xffu) * a + 0x80u;
        even = (even + (even >> 8 & 0x00ff00ffu)) >> 8 & 0x00ff00ffu;
        odd = (odd + (odd >> 8)) & 0xff00u;
        return (v & 0xff000000u) | even | odd;
    };
    out[i] = {one(p.x), one(p.y), one(p.z), one(p.w)};
}

Study premultiplied("sound_premultiplied_colours", "images", 1 << 26, "67108864 pixels of four bytes multiplied by their opacity", "", {},
    [](Buffers &b, long n) -> Sides {
        unsigned *in = b.random<unsigned>(n, 0, 4294967295.0), *out = b.output<unsigned>(n);
        return {{"sound", launch(premultiply, n / 1024, 256, 0, (uint4 *)in, (uint4 *)out, n / 4)}};
    });

}  // namespace
