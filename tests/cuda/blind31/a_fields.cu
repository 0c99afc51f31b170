// Experts, optimisers, norms, colours, small convolutions, pictures, returns, options, echoes and bags of words.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- which experts a token goes to ---

constexpr int EXPERTS = 64, MOST_CHOSEN = 16;

struct Router {
    const float *logits;  // of all tokens, an expert after another
    float *weights;       // of all tokens, the best expert's first
    int *chosen;
    int tokens, top;
};
// A token a thread; the best ones so far are kept in order.
__global__ void __launch_bounds__(256) route_tokens(Router r) {
    const int token = blockIdx.x * blockDim.x + threadIdx.x;
    if (token >= r.tokens) return;
    float best[MOST_CHOSEN];
    int who[MOST_CHOSEN];
    for (int k = 0; k < r.top; k++) best[k] = -INFINITY, who[k] = 0;
    for (int expert = 0; expert < EXPERTS; expert++) {
        const float value = r.logits[static_cast<size_t>(expert) * r.tokens + token];
        if (value <= best[r.top - 1]) continue;
        int k = r.top - 1;
        for (; k > 0 && best[k - 1] < value; k--) {
            best[k] = best[k - 1];
            who[k] = who[k - 1];
        }
        best[k] = value;
        who[k] = expert;
    }
    const float highest = best[0];
    float sum = 0.0f;
    for (int k = 0; k < r.top; k++) {
        best[k] = __expf(best[k] - highest);
        sum += best[k];
    }
    for (int k = 0; k < r.top; k++) {
        r.weights[static_cast<size_t>(k) * r.tokens + token] = best[k] / sum;
        r.chosen[static_cast<size_t>(k) * r.tokens + token] = who[k];
    }
}
// How many are chosen is known to the compiler: each expert passes along all of them.
template <int TOP>
__global__ void __launch_bounds__(256) route_tokens_sorted(Router r) {
    const int token = blockIdx.x * blockDim.x + threadIdx.x;
    if (token >= r.tokens) return;
    float best[TOP];
    int who[TOP];
#pragma unroll
    for (int k = 0; k < TOP; k++) best[k] = -INFINITY, who[k] = 0;
#pragma unroll 8
    for (int expert = 0; expert < EXPERTS; expert++) {
        float value = r.logits[static_cast<size_t>(expert) * r.tokens + token];
        int carried = expert;
        bool shift = false;
#pragma unroll
        for (int k = 0; k < TOP; k++) {
            shift = shift || value > best[k];
            const float out = shift ? best[k] : value;
            const int out_who = shift ? who[k] : carried;
            best[k] = shift ? value : best[k];
            who[k] = shift ? carried : who[k];
            value = out;
            carried = out_who;
        }
    }
    const float highest = best[0];
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < TOP; k++) sum += best[k] = __expf(best[k] - highest);
#pragma unroll
    for (int k = 0; k < TOP; k++) {
        r.weights[static_cast<size_t>(k) * r.tokens + token] = best[k] / sum;
        r.chosen[static_cast<size_t>(k) * r.tokens + token] = who[k];
    }
}
// All logits in registers; the greatest that is not taken yet, as often as wanted.
__global__ void __launch_bounds__(256) route_tokens_greatest(Router r) {
    const int token = blockIdx.x * blockDim.x + threadIdx.x;
    if (token >= r.tokens) return;
    float logits[EXPERTS];
#pragma unroll
    for (int expert = 0; expert < EXPERTS; expert++) logits[expert] = r.logits[static_cast<size_t>(expert) * r.tokens + token];
    unsigned low = 0, high = 0;
    float highest = 0.0f, sum = 0.0f;
    for (int k = 0; k < r.top; k++) {
        float best = -INFINITY;
        int who = 0;
#pragma unroll
        for (int expert = 0; expert < EXPERTS; expert++) {
            const bool taken = (expert < 32 ? low : high) & (1u << (expert % 32));
            if (!taken && logits[expert] > best) best = logits[expert], who = expert;
        }
        (who < 32 ? low : high) |= 1u << (who % 32);
        if (k == 0) highest = best;
        const float weight = __expf(best - highest);
        sum += weight;
        r.weights[static_cast<size_t>(k) * r.tokens + token] = weight;
        r.chosen[static_cast<size_t>(k) * r.tokens + token] = who;
    }
    for (int k = 0; k < r.top; k++) r.weights[static_cast<size_t>(k) * r.tokens + token] /= sum;
}

Study router("experts_chosen_in_arrays_of_run_time_length", "language models", 1 << 20, "the six best of 64 experts for each of 1048576 tokens, and their softmax",
    "the best so far are kept in arrays that are indexed by a loop of run-time length",
    {{"sorted", "a template on how many are chosen: insertion unrolled into registers", {"local_memory"}}, {"greatest", "all 64 logits in registers, the greatest not taken yet six times", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 1e-4;
        const int tokens = static_cast<int>(n);
        const Router r{b.random<float>(n * EXPERTS, -4.0, 4.0), b.output<float>(n * 6), b.output<int>(n * 6), tokens, 6};
        const dim3 grid(blocks(n, 256));
        return {{"flawed", launch(route_tokens, grid, 256, 0, r)}, {"sorted", launch(route_tokens_sorted<6>, grid, 256, 0, r)},
            {"greatest", launch(route_tokens_greatest, grid, 256, 0, r)}};
    });

// --- a step of AdamW ---

struct AdamW {
    float *parameters, *first, *second;
    const float *gradients;
    float rate, beta1, beta2, epsilon, decay;
    int step, count;
};
__device__ __forceinline__ void moments(const AdamW &o, int i, float &p, float &m, float &v) {
    const float g = o.gradients[i], first = o.first[i], second = o.second[i];
    p = o.parameters[i];
    m = o.beta1 * first + (1.0f - o.beta1) * g;
    v = o.beta2 * second + (1.0f - o.beta2) * g * g;
    o.first[i] = m;
    o.second[i] = v;
}
__global__ void adamw_step(AdamW o) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= o.count) return;
    float p, m, v;
    moments(o, i, p, m, v);
    const float m_hat = m / (1 - pow(o.beta1, o.step));
    const float v_hat = v / (1 - pow(o.beta2, o.step));
    o.parameters[i] = p - o.rate * (m_hat / (sqrtf(v_hat) + o.epsilon) + o.decay * p);
}
__global__ void adamw_step_corrected(AdamW o, float of_first, float of_second) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= o.count) return;
    float p, m, v;
    moments(o, i, p, m, v);
    o.parameters[i] = p - o.rate * (m * of_first / (sqrtf(v * of_second) + o.epsilon) + o.decay * p);
}
__global__ void adamw_step_many(AdamW o) {
    const float of_first = static_cast<float>(1.0 / (1.0 - pow(o.beta1, o.step)));
    const float of_second = static_cast<float>(1.0 / (1.0 - pow(o.beta2, o.step)));
#pragma unroll 2
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < o.count; i += gridDim.x * blockDim.x) {
        float p, m, v;
        moments(o, i, p, m, v);
            o.parameters[i] = p - o.rate * (m * of_first / (sqrtf(v * of_second) + o.epsilon) + o.decay * p);
    }
}

Study optimiser("adamw_powers_of_beta_in_every_thread", "language models", 1 << 24, "a step of AdamW for 16777216 parameters",
    "each thread raises both betas to the step's number in double precision, for one parameter",
    {{"host", "both corrections computed once by the host and passed as floats", {"double_precision", "expensive_math"}}, {"many", "computed once a thread for some sixty parameters", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const float *start = b.random<float>(n), *first = b.random<float>(n, -0.1, 0.1), *second = b.random<float>(n, 0.001, 0.1);
        AdamW o{b.changed<float>(start, n), b.changed<float>(first, n), b.changed<float>(second, n), b.random<float>(n)};
        o.rate = 3e-2f, o.beta1 = 0.9f, o.beta2 = 0.95f, o.epsilon = 1e-8f, o.decay = 0.1f, o.step = 37, o.count = static_cast<int>(n);
        const float of_first = static_cast<float>(1.0 / (1.0 - std::pow(0.9f, 37))), of_second = static_cast<float>(1.0 / (1.0 - std::pow(0.95f, 37)));
        return {{"flawed", launch(adamw_step, dim3(blocks(n, 256)), 256, 0, o)},
            {"host", launch(adamw_step_corrected, dim3(blocks(n, 256)), 256, 0, o, of_first, of_second)},
            {"many", launch(adamw_step_many, dim3(std::min<long>(multiprocessors() * 8, blocks(n, 256))), 256, 0, o)}};
    });

// --- gradients of a layer norm's weights ---

constexpr int HIDDEN = 1024;

// A row a block.
__global__ void __launch_bounds__(256) norm_weight_gradients(
    const __half2 *__restrict__ dy, const __half2 *__restrict__ x, const float2 *__restrict__ moments, float *dweight, float *dbias) {
    const size_t row = blockIdx.x;
    const float mean = moments[row].x, scale = moments[row].y;
    for (int c = threadIdx.x; c < HIDDEN / 2; c += blockDim.x) {
        const float2 d = __half22float2(dy[row * (HIDDEN / 2) + c]), v = __half22float2(x[row * (HIDDEN / 2) + c]);
        atomicAdd(dweight + 2 * c, d.x * (v.x - mean) * scale);
        atomicAdd(dweight + 2 * c + 1, d.y * (v.y - mean) * scale);
        atomicAdd(dbias + 2 * c, d.x);
        atomicAdd(dbias + 2 * c + 1, d.y);
    }
}
// Many rows a block, sums in registers.
__global__ void __launch_bounds__(256) norm_weight_gradients_rows(const __half2 *__restrict__ dy, const __half2 *__restrict__ x,
    const float2 *__restrict__ moments, float *dweight, float *dbias, int rows) {
    constexpr int EACH = HIDDEN / 2 / 256;
    float2 weight[EACH] = {}, bias[EACH] = {};
#pragma unroll 4
    for (size_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const float2 moment = moments[row];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const size_t at = row * (HIDDEN / 2) + k * 256 + threadIdx.x;
            const float2 d = __half22float2(dy[at]), v = __half22float2(x[at]);
            weight[k].x += d.x * (v.x - moment.x) * moment.y;
            weight[k].y += d.y * (v.y - moment.x) * moment.y;
            bias[k].x += d.x;
            bias[k].y += d.y;
        }
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int c = 2 * (k * 256 + threadIdx.x);
        atomicAdd(dweight + c, weight[k].x);
        atomicAdd(dweight + c + 1, weight[k].y);
        atomicAdd(dbias + c, bias[k].x);
        atomicAdd(dbias + c + 1, bias[k].y);
    }
}
// 64 columns of 512 rows a block: eight rows at a time, added up in shared memory.
__global__ void __launch_bounds__(256) norm_weight_gradients_stripes(const __half2 *__restrict__ dy, const __half2 *__restrict__ x,
    const float2 *__restrict__ moments, float *dweight, float *dbias, int rows) {
    __shared__ float4 sums[8][32];
    const int c = blockIdx.x * 32 + threadIdx.x, end = min(rows, static_cast<int>(blockIdx.y + 1) * 512);
    float4 sum = {};
#pragma unroll 8
    for (int row = blockIdx.y * 512 + threadIdx.y; row < end; row += 8) {
        const size_t at = static_cast<size_t>(row) * (HIDDEN / 2) + c;
        const float2 moment = moments[row], d = __half22float2(dy[at]), v = __half22float2(x[at]);
        sum.x += d.x * (v.x - moment.x) * moment.y;
        sum.y += d.y * (v.y - moment.x) * moment.y;
        sum.z += d.x;
        sum.w += d.y;
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y) return;
    for (int k = 1; k < 8; k++) {
        const float4 other = sums[k][threadIdx.x];
        sum.x += other.x, sum.y += other.y, sum.z += other.z, sum.w += other.w;
    }
    atomicAdd(dweight + 2 * c, sum.x);
    atomicAdd(dweight + 2 * c + 1, sum.y);
    atomicAdd(dbias + 2 * c, sum.z);
    atomicAdd(dbias + 2 * c + 1, sum.w);
}

Study norm_weights("layer_norm_weight_gradients_added_row_by_row", "language models", 65536, "gradients of weights and biases of a layer norm of 65536 rows of 1024 half values",
    "each row's block adds to the same 2048 sums in global memory",
    {{"rows", "some 60 rows a block, sums in registers, added once at the end", {"global_atomics"}}, {"stripes", "64 columns of 512 rows a block, added up in shared memory first", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 1e-3;
        const auto *dy = reinterpret_cast<const __half2 *>(b.random<__half>(n * HIDDEN, -0.9, 1.1));
        const auto *x = reinterpret_cast<const __half2 *>(b.random<__half>(n * HIDDEN, -2.0, 2.0));
        const auto *moments = reinterpret_cast<const float2 *>(b.random<float>(2 * n, 0.5, 1.0));
        float *dweight = b.output<float>(HIDDEN, true), *dbias = b.output<float>(HIDDEN, true);
        const int rows = static_cast<int>(n);
        return {{"flawed", launch(norm_weight_gradients, dim3(rows), 256, 0, dy, x, moments, dweight, dbias)},
            {"rows", launch(norm_weight_gradients_rows, dim3(std::min(rows, multiprocessors() * 8)), 256, 0, dy, x, moments, dweight, dbias, rows)},
            {"stripes", launch(norm_weight_gradients_stripes, dim3(HIDDEN / 64, blocks(n, 512)), dim3(32, 8), 0, dy, x, moments, dweight, dbias, rows)}};
    });

// --- colours as they are seen ---

struct Colours {
    const uchar4 *pixels;
    float *lightness, *red_green, *yellow_blue;
    int count;
};
__device__ __forceinline__ void write_lab(const Colours &c, int i, float x, float y, float z) {
    c.lightness[i] = 116.0f * y - 16.0f;
    c.red_green[i] = 500.0f * (x - y);
    c.yellow_blue[i] = 200.0f * (y - z);
}
// Linear red, green and blue to X, Y and Z as shares of white's.
__device__ __forceinline__ float3 to_xyz(float r, float g, float b) {
    return make_float3(0.433953f * r + 0.376219f * g + 0.189828f * b, 0.212671f * r + 0.715160f * g + 0.072169f * b,
        0.017758f * r + 0.109477f * g + 0.872766f * b);
}
__device__ __forceinline__ float linear(unsigned char byte) {
    const float value = byte * (1.0f / 255.0f);
    return value > 0.04045f ? powf((value + 0.055f) * (1.0f / 1.055f), 2.4f) : value * (1.0f / 12.92f);
}
__device__ __forceinline__ float root(float t) { return t > 0.008856f ? powf(t, 1.0f / 3.0f) : 7.787f * t + 16.0f / 116.0f; }
__global__ void __launch_bounds__(256) lab(Colours c) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= c.count) return;
    const uchar4 pixel = c.pixels[i];
    const float3 xyz = to_xyz(linear(pixel.x), linear(pixel.y), linear(pixel.z));
    write_lab(c, i, root(xyz.x), root(xyz.y), root(xyz.z));
}
// Powers by the special function unit alone.
__device__ __forceinline__ float linear_fast(unsigned char byte) {
    const float value = byte * (1.0f / 255.0f);
    return value > 0.04045f ? __powf((value + 0.055f) * (1.0f / 1.055f), 2.4f) : value * (1.0f / 12.92f);
}
__device__ __forceinline__ float root_fast(float t) { return t > 0.008856f ? __powf(t, 1.0f / 3.0f) : 7.787f * t + 16.0f / 116.0f; }
__global__ void __launch_bounds__(256) lab_fast(Colours c) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= c.count) return;
    const uchar4 pixel = c.pixels[i];
    const float3 xyz = to_xyz(linear_fast(pixel.x), linear_fast(pixel.y), linear_fast(pixel.z));
    write_lab(c, i, root_fast(xyz.x), root_fast(xyz.y), root_fast(xyz.z));
}
// A table of the 256 linear values; eight pixels a thread.
__global__ void __launch_bounds__(256) lab_table(Colours c, const float *table) {
    __shared__ float linear[256];
    linear[threadIdx.x] = table[threadIdx.x];
    __syncthreads();
    const int first = blockIdx.x * 2048 + threadIdx.x;
#pragma unroll 2
    for (int i = first; i < min(c.count, first + 2048); i += 256) {
        const uchar4 pixel = c.pixels[i];
        const float3 xyz = to_xyz(linear[pixel.x], linear[pixel.y], linear[pixel.z]);
        write_lab(c, i, root(xyz.x), root(xyz.y), root(xyz.z));
    }
}

Study colours("colours_to_lab_six_powers_a_pixel", "computer vision", 1 << 24, "16777216 pixels of bytes from sRGB to CIE Lab, three planes of floats",
    "six precise powers a pixel, three of them of what are only 256 values",
    {{"fast", "the fast power of the special function unit", {"expensive_math"}}, {"table", "a table of the 256 linear values in shared memory, precise roots", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 1e-3;
        std::vector<float> table(256);
        for (int i = 0; i < 256; i++) {
            const float value = i / 255.0f;
            table[i] = value > 0.04045f ? std::pow((value + 0.055f) / 1.055f, 2.4f) : value / 12.92f;
        }
        const auto *pixels = reinterpret_cast<const uchar4 *>(b.random<unsigned char>(4 * n, 0.0, 256.0));
        const Colours c{pixels, b.output<float>(n), b.output<float>(n), b.output<float>(n), static_cast<int>(n)};
        return {{"flawed", launch(lab, dim3(blocks(n, 256)), 256, 0, c)}, {"fast", launch(lab_fast, dim3(blocks(n, 256)), 256, 0, c)},
            {"table", launch(lab_table, dim3(blocks(n, 2048)), 256, 0, c, b.copy(table))}};
    });

// --- a convolution of each channel by itself ---

constexpr int CHANNELS = 128, SIDE = 56, PADDED = SIDE + 6;

// 64 channels of four pixels of a row a block; the input has a border of three.
__global__ void __launch_bounds__(256) depthwise(const float *__restrict__ in, const float *__restrict__ weights, const float *__restrict__ bias, float *out) {
    const int c = blockIdx.x % 2 * 64 + threadIdx.x, x = blockIdx.x / 2 * 4 + threadIdx.y, y = blockIdx.y, image = blockIdx.z;
    float sum = bias[c];
    for (int ky = 0; ky < 7; ky++)
        for (int kx = 0; kx < 7; kx++)
            sum += in[((image * PADDED + y + ky) * PADDED + x + kx) * CHANNELS + c] * weights[(ky * 7 + kx) * CHANNELS + c];
    out[((image * SIDE + y) * SIDE + x) * CHANNELS + c] = sum;
}
// Eight pixels of a row a thread.
__global__ void __launch_bounds__(128) depthwise_row(const float *__restrict__ in, const float *__restrict__ weights, const float *__restrict__ bias, float *out) {
    const int c = threadIdx.x, x = blockIdx.x * 8, y = blockIdx.y, image = blockIdx.z;
    float sums[8];
#pragma unroll
    for (int k = 0; k < 8; k++) sums[k] = bias[c];
#pragma unroll
    for (int ky = 0; ky < 7; ky++) {
        const float *row = in + ((image * PADDED + y + ky) * PADDED + x) * CHANNELS + c;
        float w[7];
#pragma unroll
        for (int kx = 0; kx < 7; kx++) w[kx] = weights[(ky * 7 + kx) * CHANNELS + c];
#pragma unroll
        for (int i = 0; i < 14; i++) {
            const float value = row[i * CHANNELS];
#pragma unroll
            for (int k = 0; k < 8; k++)
                if (i - k >= 0 && i - k < 7) sums[k] += value * w[i - k];
        }
    }
    float *to = out + ((image * SIDE + y) * SIDE + x) * CHANNELS + c;
#pragma unroll
    for (int k = 0; k < 8; k++) to[k * CHANNELS] = sums[k];
}
// Fourteen pixels of a column a thread, all weights in registers.
__global__ void __launch_bounds__(128) depthwise_column(const float *__restrict__ in, const float *__restrict__ weights, const float *__restrict__ bias, float *out) {
    const int c = threadIdx.x, x = blockIdx.x, y = blockIdx.y * 14, image = blockIdx.z;
    float w[49], sums[14];
#pragma unroll
    for (int k = 0; k < 49; k++) w[k] = weights[k * CHANNELS + c];
#pragma unroll
    for (int k = 0; k < 14; k++) sums[k] = bias[c];
    const float *row = in + ((image * PADDED + y) * PADDED + x) * CHANNELS + c;
#pragma unroll
    for (int i = 0; i < 20; i++, row += PADDED * CHANNELS) {
        float values[7];
#pragma unroll
        for (int kx = 0; kx < 7; kx++) values[kx] = row[kx * CHANNELS];
#pragma unroll
        for (int k = 0; k < 14; k++)
            if (i - k >= 0 && i - k < 7)
#pragma unroll
                for (int kx = 0; kx < 7; kx++) sums[k] += values[kx] * w[(i - k) * 7 + kx];
    }
    float *to = out + ((image * SIDE + y) * SIDE + x) * CHANNELS + c;
#pragma unroll
    for (int k = 0; k < 14; k++) to[k * SIDE * CHANNELS] = sums[k];
}

Study depthwise_study("depthwise_seven_by_seven_98_loads_a_pixel", "computer vision", 32, "a 7 x 7 convolution of each of 128 channels of 32 images of 56 x 56 pixels, channels last",
    "each thread loads 49 values and 49 weights for one pixel, of which its neighbours load most again",
    {{"row", "eight pixels of a row a thread: weights and most values serve several", {"redundant_loads"}}, {"column", "fourteen pixels of a column a thread, all 49 weights in registers", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 1e-4;
        const float *in = b.random<float>(n * PADDED * PADDED * CHANNELS), *weights = b.random<float>(49 * CHANNELS), *bias = b.random<float>(CHANNELS);
        float *out = b.output<float>(n * SIDE * SIDE * CHANNELS);
        return {{"flawed", launch(depthwise, dim3(SIDE / 4 * 2, SIDE, n), dim3(64, 4), 0, in, weights, bias, out)},
            {"row", launch(depthwise_row, dim3(SIDE / 8, SIDE, n), 128, 0, in, weights, bias, out)},
            {"column", launch(depthwise_column, dim3(SIDE, SIDE / 14, n), 128, 0, in, weights, bias, out)}};
    });

// --- larger pictures ---

struct Picture {
    const float *data;
    int height, width;
    float to_y, to_x;  // from the larger picture's pixels to its own
};
__device__ __forceinline__ float between(const Picture &in, size_t plane, int y, int x) {
    const float at_y = fmaxf((y + 0.5f) * in.to_y - 0.5f, 0.0f), at_x = fmaxf((x + 0.5f) * in.to_x - 0.5f, 0.0f);
    const int top = static_cast<int>(at_y), left = static_cast<int>(at_x);
    const int right = left < in.width - 1 ? 1 : 0, below = top < in.height - 1 ? in.width : 0;
    const float down = at_y - top, along = at_x - left;
    const float *corner = in.data + plane * in.height * in.width + top * in.width + left;
    const float upper = corner[0] + along * (corner[right] - corner[0]);
    const float lower = corner[below] + along * (corner[below + right] - corner[below]);
    return upper + down * (lower - upper);
}
__global__ void upsample(Picture in, float *out, long long height, long long width, long long total) {
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i >= total) return;
    const long long x = i % width;
    const long long y = i / width % height;
    const long long plane = i / (width * height);
    out[i] = between(in, plane, y, x);
}
// Rows and planes by the grid.
__global__ void upsample_grid(Picture in, float *out, int height, int width) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const size_t plane = blockIdx.z;
    out[(plane * height + y) * width + x] = between(in, plane, y, x);
}
// Division of a 31-bit number by multiplication.
struct Divisor {
    unsigned by, factor, shift;
    explicit Divisor(unsigned by) : by(by), factor(0), shift(0) {
        while ((1ull << shift) < by) shift++;
        factor = static_cast<unsigned>(((1ull << 32) * ((1ull << shift) - by)) / by + 1);
    }
    __device__ __forceinline__ unsigned operator()(unsigned x, unsigned &rest) const {
        const unsigned quotient = (__umulhi(x, factor) + x) >> shift;
        rest = x - quotient * by;
        return quotient;
    }
};
__global__ void upsample_reciprocals(Picture in, float *out, Divisor height, Divisor width, int total) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    unsigned x, y;
    const size_t plane = height(width(i, x), y);
    out[i] = between(in, plane, y, x);
}

Study upsampling("upsampling_place_from_a_64_bit_index", "computer vision", 64, "bilinear resampling of 64 planes of 270 x 480 pixels to 540 x 960",
    "a pixel's plane, row and column by 64-bit divisions of a running index",
    {{"grid", "rows and planes by the grid's other dimensions", {"integer_arithmetic"}}, {"reciprocals", "32-bit divisions by multiplication with numbers made by the host", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 1e-4;
        const Picture in{b.random<float>(n * 270 * 480, 0.0, 1.0), 270, 480, 0.5f, 0.5f};
        const long long total = n * 540 * 960;
        float *out = b.output<float>(total);
        return {{"flawed", launch(upsample, dim3(blocks(total, 256)), 256, 0, in, out, 540LL, 960LL, total)},
            {"grid", launch(upsample_grid, dim3(960 / 64, 540 / 4, n), dim3(64, 4), 0, in, out, 540, 960)},
            {"reciprocals", launch(upsample_reciprocals, dim3(blocks(total, 256)), 256, 0, in, out, Divisor(540), Divisor(960), static_cast<int>(total))}};
    });

// --- how much shares move ---

constexpr int DAYS = 512;
constexpr float KEPT = 0.94f;

// Exponentially weighted volatility, a share a thread.
__global__ void __launch_bounds__(128) volatility(const float *__restrict__ returns, const float *__restrict__ start, float *out, int shares) {
    const int share = blockIdx.x * blockDim.x + threadIdx.x;
    if (share >= shares) return;
    const float *own = returns + static_cast<size_t>(share) * DAYS;
    float *to = out + static_cast<size_t>(share) * DAYS;
    float variance = start[share];
    for (int day = 0; day < DAYS; day++) {
        variance = KEPT * variance + (1.0f - KEPT) * own[day] * own[day];
        to[day] = sqrtf(variance);
    }
}
// 32 shares a warp, 32 days at a time by way of shared memory.
__global__ void __launch_bounds__(128) volatility_tiles(const float *__restrict__ returns, const float *__restrict__ start, float *out, int shares) {
    __shared__ float tiles[4][32][33];
    const int lane = threadIdx.x % 32, first = blockIdx.x * 128 + threadIdx.x / 32 * 32;
    float(*tile)[33] = tiles[threadIdx.x / 32];
    const size_t corner = static_cast<size_t>(first) * DAYS + lane;
    float variance = start[first + lane];
    for (int day = 0; day < DAYS; day += 32) {
#pragma unroll
        for (int k = 0; k < 32; k++) tile[k][lane] = returns[corner + k * DAYS + day];
        __syncwarp();
#pragma unroll 8
        for (int k = 0; k < 32; k++) {
            const float r = tile[lane][k];
            variance = KEPT * variance + (1.0f - KEPT) * r * r;
            tile[lane][k] = sqrtf(variance);
        }
        __syncwarp();
#pragma unroll
        for (int k = 0; k < 32; k++) out[corner + k * DAYS + day] = tile[k][lane];
        __syncwarp();
    }
}
// A share a warp, four days a lane, what came before by shuffles.
__global__ void __launch_bounds__(256) volatility_scan(const float *__restrict__ returns, const float *__restrict__ start, float *out, int shares) {
    const int lane = threadIdx.x % 32, share = blockIdx.x * 8 + threadIdx.x / 32;
    const auto *own = reinterpret_cast<const float4 *>(returns + static_cast<size_t>(share) * DAYS);
    auto *to = reinterpret_cast<float4 *>(out + static_cast<size_t>(share) * DAYS);
    float variance = start[share];
    float4 days[DAYS / 128];
#pragma unroll
    for (int k = 0; k < DAYS / 128; k++) days[k] = own[k * 32 + lane];
    const float four = KEPT * KEPT * KEPT * KEPT, since = exp2f(log2f(four) * (lane + 1));
#pragma unroll
    for (int k = 0; k < DAYS / 128; k++) {
        const float4 r = days[k];
        float a = (1.0f - KEPT) * r.x * r.x, b = KEPT * a + (1.0f - KEPT) * r.y * r.y, c = KEPT * b + (1.0f - KEPT) * r.z * r.z;
        float sum = KEPT * c + (1.0f - KEPT) * r.w * r.w, factor = four;
        const float own_sum = sum;
#pragma unroll
        for (int offset = 1; offset < 32; offset *= 2) {
            const float before = __shfl_up_sync(~0u, sum, offset);
            if (lane >= offset) sum += factor * before;
            factor *= factor;
        }
        sum += since * variance;
        float before = __shfl_up_sync(~0u, sum, 1);
        if (lane == 0) before = variance;
        variance = __shfl_sync(~0u, sum, 31);
        const float d = own_sum + four * before;
        to[k * 32 + lane] = make_float4(sqrtf(a + KEPT * before), sqrtf(b + KEPT * KEPT * before), sqrtf(c + KEPT * KEPT * KEPT * before), sqrtf(d));
    }
}

Study shares("volatility_each_share_walks_its_own_row", "finance", 65536, "exponentially weighted volatility of 65536 shares on each of 512 days, a share's days after each other",
    "a share a thread: lanes read and write 2 KiB apart",
    {{"tiles", "32 shares by 32 days of a warp turned in shared memory", {"uncoalesced_access"}}, {"scan", "a share a warp, four days a lane, the recurrence by shuffles", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 1e-3;
        const float *returns = b.random<float>(n * DAYS, -0.05, 0.05), *start = b.random<float>(n, 1e-4, 4e-4);
        float *out = b.output<float>(n * DAYS);
        const int count = static_cast<int>(n);
        return {{"flawed", launch(volatility, dim3(blocks(n, 128)), 128, 0, returns, start, out, count)},
            {"tiles", launch(volatility_tiles, dim3(blocks(n, 128)), 128, 0, returns, start, out, count)},
            {"scan", launch(volatility_scan, dim3(blocks(n, 8)), 256, 0, returns, start, out, count)}};
    });

// --- options that may be used early ---

constexpr int NODES = 512;

struct Option {
    float spot, strike, rate, spread, years;
};
struct Tree {
    float lowest, up_twice, up, discount_up, discount_down;
};
__device__ __forceinline__ Tree tree_of(const Option &o) {
    const float step = o.years / (NODES - 1), up = expf(o.spread * sqrtf(step)), down = 1.0f / up;
    const float chance = (expf(o.rate * step) - down) / (up - down), discount = expf(-o.rate * step);
    return {o.spot * expf(-o.spread * sqrtf(step) * (NODES - 1)), up * up, up, discount * chance, discount * (1.0f - chance)};
}
// An option a block, a node a thread.
__global__ void __launch_bounds__(NODES) american_puts(const Option *options, float *prices) {
    __shared__ float values[NODES + 1];
    const Option o = options[blockIdx.x];
    const Tree tree = tree_of(o);
    const int node = threadIdx.x;
    float spot = tree.lowest * powf(tree.up_twice, node);
    values[node] = fmaxf(o.strike - spot, 0.0f);
    __syncthreads();
    for (int step = NODES - 2; step >= 0; step--) {
        spot *= tree.up;
        float value = 0.0f;
        if (node <= step) value = fmaxf(tree.discount_up * values[node + 1] + tree.discount_down * values[node], o.strike - spot);
        __syncthreads();
        if (node <= step) values[node] = value;
        __syncthreads();
    }
    if (node == 0) prices[blockIdx.x] = values[0];
}
// An option a warp, sixteen nodes a lane; the next lane's first by a shuffle.
__global__ void __launch_bounds__(128) american_puts_warps(const Option *options, float *prices, int count) {
    constexpr int EACH = NODES / 32;
    const int lane = threadIdx.x % 32, number = blockIdx.x * 4 + threadIdx.x / 32;
    if (number >= count) return;
    const Option o = options[number];
    const Tree tree = tree_of(o);
    float values[EACH], spots[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        spots[k] = tree.lowest * powf(tree.up_twice, lane * EACH + k);
        values[k] = fmaxf(o.strike - spots[k], 0.0f);
    }
    float raised = 1.0f;
    for (int step = NODES - 2; step >= 0; step--) {
        raised *= tree.up;
        const float next = __shfl_down_sync(~0u, values[0], 1);
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const float above = k + 1 < EACH ? values[k + 1] : next;
            values[k] = fmaxf(tree.discount_up * above + tree.discount_down * values[k], o.strike - raised * spots[k]);
        }
    }
    if (lane == 0) prices[number] = values[0];
}
// Four nodes a thread, seven steps between barriers: what the next ones would do is done again.
__global__ void __launch_bounds__(NODES / 4) american_puts_strips(const Option *options, float *prices) {
    constexpr int EACH = 4, STEPS = 7;
    __shared__ __align__(16) float values[NODES + 8];
    const Option o = options[blockIdx.x];
    const Tree tree = tree_of(o);
    const int node = threadIdx.x * EACH;
    float spots[EACH + STEPS];
#pragma unroll
    for (int k = 0; k < EACH + STEPS; k++) spots[k] = tree.lowest * powf(tree.up_twice, node + k);
#pragma unroll
    for (int k = 0; k < EACH; k++) values[node + k] = fmaxf(o.strike - spots[k], 0.0f);
    if (node == NODES - EACH)
        for (int k = 0; k < 8; k++) values[NODES + k] = 0.0f;
    __syncthreads();
    float raised = 1.0f;
    for (int left = NODES - 1; left > 0; left -= STEPS) {  // 511 is 73 times seven
        float own[EACH + STEPS + 1];
#pragma unroll
        for (int k = 0; k < EACH + STEPS + 1; k += 4) {
            const float4 four = *reinterpret_cast<const float4 *>(values + node + k);
            own[k] = four.x, own[k + 1] = four.y, own[k + 2] = four.z, own[k + 3] = four.w;
        }
        __syncthreads();
#pragma unroll
        for (int step = 1; step <= STEPS; step++) {
            raised *= tree.up;
#pragma unroll
            for (int k = 0; k < EACH + STEPS - step; k++)
                own[k] = fmaxf(tree.discount_up * own[k + 1] + tree.discount_down * own[k], o.strike - raised * spots[k]);
        }
        *reinterpret_cast<float4 *>(values + node) = make_float4(own[0], own[1], own[2], own[3]);
        __syncthreads();
    }
    if (node == 0) prices[blockIdx.x] = values[0];
}

Study puts("american_puts_two_barriers_a_step", "finance", 4096, "4096 American puts by binomial trees of 511 steps",
    "an option a block of a thread a node, with two barriers for each of 511 steps",
    {{"warps", "an option a warp, sixteen nodes a lane in registers, a shuffle a step", {"barriers"}}, {"strips", "four nodes a thread, seven steps between barriers", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 1e-3;
        std::vector<Option> options(n);
        for (long i = 0; i < n; i++) {
            const auto chance = [i](unsigned k) { return hash(8 * i + k) / 4294967296.0f; };
            options[i] = {50.0f + 100.0f * chance(0), 50.0f + 100.0f * chance(1), 0.01f + 0.05f * chance(2), 0.15f + 0.4f * chance(3), 0.1f + 2.0f * chance(4)};
        }
        const Option *all = b.copy(options);
        float *prices = b.output<float>(n);
        return {{"flawed", launch(american_puts, dim3(n), NODES, 0, all, prices)},
            {"warps", launch(american_puts_warps, dim3(blocks(n, 4)), 128, 0, all, prices, static_cast<int>(n))},
            {"strips", launch(american_puts_strips, dim3(n), NODES / 4, 0, all, prices)}};
    });

// --- how a room sounds ---

constexpr int TAPS = 512, TRACKS = 8;

__constant__ float constant_taps[TRACKS][TAPS];

// A block's part of a track, that before it as well; `taps` are those of the room, the last first.
template <int OUTPUTS>
__device__ __forceinline__ void load_track(float (&samples)[OUTPUTS + TAPS], const float *track, int first) {
    for (int i = threadIdx.x; i < OUTPUTS + TAPS; i += 256) samples[i] = track[first + i];
}
__global__ void __launch_bounds__(256) reverberate(const float *__restrict__ tracks, const float *__restrict__ rooms, float *out, int length) {
    __shared__ float samples[256 + TAPS], taps[TAPS];
    const int first = blockIdx.x * 256, track = blockIdx.y;
    load_track<256>(samples, tracks + static_cast<size_t>(track) * (length + TAPS), first);
    for (int k = threadIdx.x; k < TAPS; k += 256) taps[k] = rooms[track * TAPS + k];
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < TAPS; k++) sum += samples[threadIdx.x + k] * taps[k];
    out[static_cast<size_t>(track) * length + first + threadIdx.x] = sum;
}
__device__ __forceinline__ void add_four(float4 &sum, float a, float b, float c, float d, float tap) {
    sum.x += a * tap;
    sum.y += b * tap;
    sum.z += c * tap;
    sum.w += d * tap;
}
// Four samples a thread: each four samples and taps read serve sixteen products.
__global__ void __launch_bounds__(256) reverberate_four(const float *__restrict__ tracks, const float *__restrict__ rooms, float *out, int length) {
    __shared__ __align__(16) float samples[1024 + TAPS], taps[TAPS];
    const int first = blockIdx.x * 1024, track = blockIdx.y;
    load_track<1024>(samples, tracks + static_cast<size_t>(track) * (length + TAPS), first);
    for (int k = threadIdx.x; k < TAPS; k += 256) taps[k] = rooms[track * TAPS + k];
    __syncthreads();
    const auto *own = reinterpret_cast<const float4 *>(samples) + threadIdx.x, *tap = reinterpret_cast<const float4 *>(taps);
    float4 sum = {}, now = own[0];
#pragma unroll 4
    for (int k = 0; k < TAPS / 4; k++) {
        const float4 next = own[k + 1], t = tap[k];
        add_four(sum, now.x, now.y, now.z, now.w, t.x);
        add_four(sum, now.y, now.z, now.w, next.x, t.y);
        add_four(sum, now.z, now.w, next.x, next.y, t.z);
        add_four(sum, now.w, next.x, next.y, next.z, t.w);
        now = next;
    }
    reinterpret_cast<float4 *>(out + static_cast<size_t>(track) * length + first)[threadIdx.x] = sum;
}
// Two samples a thread, taps as constants.
__global__ void __launch_bounds__(256) reverberate_constants(const float *__restrict__ tracks, float *out, int length) {
    __shared__ __align__(16) float samples[512 + TAPS];
    const int first = blockIdx.x * 512, track = blockIdx.y;
    load_track<512>(samples, tracks + static_cast<size_t>(track) * (length + TAPS), first);
    __syncthreads();
    const auto *own = reinterpret_cast<const float2 *>(samples) + threadIdx.x;
    float2 sum = {}, now = own[0];
#pragma unroll 16
    for (int k = 0; k < TAPS; k += 2) {
        const float2 next = own[k / 2 + 1];
        const float even = constant_taps[track][k], odd = constant_taps[track][k + 1];
        sum.x += now.x * even;
        sum.y += now.y * even;
        sum.x += now.y * odd;
        sum.y += next.x * odd;
        now = next;
    }
    reinterpret_cast<float2 *>(out + static_cast<size_t>(track) * length + first)[threadIdx.x] = sum;
}

Study echoes("reverberation_two_shared_words_a_product", "audio", 1 << 19, "eight tracks of 524288 samples, each convolved with its room's 512 taps",
    "a sample a thread: each product reads a sample and a tap from shared memory",
    {{"four", "four samples a thread in a sliding window of registers, 16 bytes at a time", {"shared_memory_bandwidth"}}, {"constants", "two samples a thread, taps from constant memory", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> rooms(TRACKS * TAPS);
        for (int i = 0; i < TRACKS * TAPS; i++) {
            const float since = static_cast<float>(TAPS - 1 - i % TAPS);
            rooms[i] = (hash(i) / 4294967296.0f - 0.5f) * std::exp(-since / (60.0f + 20.0f * (i / TAPS)));
        }
        CHECK(cudaMemcpyToSymbol(constant_taps, rooms.data(), rooms.size() * sizeof(float)));
        const float *tracks = b.random<float>(TRACKS * (n + TAPS)), *taps = b.copy(rooms);
        float *out = b.output<float>(TRACKS * n);
        const int length = static_cast<int>(n);
        return {{"flawed", launch(reverberate, dim3(n / 256, TRACKS), 256, 0, tracks, taps, out, length)},
            {"four", launch(reverberate_four, dim3(n / 1024, TRACKS), 256, 0, tracks, taps, out, length)},
            {"constants", launch(reverberate_constants, dim3(n / 512, TRACKS), 256, 0, tracks, out, length)}};
    });

// --- what somebody watched, as one vector ---

constexpr int LONG_BAG = 96;

struct Bags {
    const float2 *table;  // 64 values an item
    const int *starts, *items;
    float2 *sums;
    int count;
};
__device__ __forceinline__ float2 bag_sum(const Bags &b, int first, int end, int step) {
    const int lane = threadIdx.x % 32;
    float2 sum = {};
#pragma unroll 4
    for (int i = first; i < end; i += step) {
        const float2 value = b.table[static_cast<size_t>(b.items[i]) * 32 + lane];
        sum.x += value.x;
        sum.y += value.y;
    }
    return sum;
}
// A bag a warp.
__global__ void __launch_bounds__(256) embedding_bags(Bags b) {
    const int bag = blockIdx.x * 8 + threadIdx.x / 32;
    if (bag >= b.count) return;
    b.sums[bag * 32 + threadIdx.x % 32] = bag_sum(b, b.starts[bag], b.starts[bag + 1], 1);
}
// A piece of a bag a warp; those of one bag add up.
__global__ void __launch_bounds__(256) embedding_bags_pieces(Bags b, const int3 *pieces, int count) {
    const int number = blockIdx.x * 8 + threadIdx.x / 32;
    if (number >= count) return;
    const int3 piece = pieces[number];
    const float2 sum = bag_sum(b, piece.y, piece.z, 1);
    float2 *to = b.sums + piece.x * 32 + threadIdx.x % 32;
    if (b.starts[piece.x] == piece.y && b.starts[piece.x + 1] == piece.z) {
        *to = sum;
    } else {
        atomicAdd(&to->x, sum.x);
        atomicAdd(&to->y, sum.y);
    }
}
// A bag a warp, but long ones by all warps of the block.
__global__ void __launch_bounds__(256) embedding_bags_together(Bags b) {
    __shared__ float2 parts[8][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int own = blockIdx.x * 8 + warp;
    if (own < b.count && b.starts[own + 1] - b.starts[own] <= LONG_BAG) b.sums[own * 32 + lane] = bag_sum(b, b.starts[own], b.starts[own + 1], 1);
    for (int bag = blockIdx.x * 8; bag < min(b.count, static_cast<int>(blockIdx.x) * 8 + 8); bag++) {
        const int first = b.starts[bag], end = b.starts[bag + 1];
        if (end - first <= LONG_BAG) continue;
        parts[warp][lane] = bag_sum(b, first + warp, end, 8);
        __syncthreads();
        if (warp == 0) {
            float2 sum = {};
            for (int k = 0; k < 8; k++) sum.x += parts[k][lane].x, sum.y += parts[k][lane].y;
            b.sums[bag * 32 + lane] = sum;
        }
        __syncthreads();
    }
}

Study watched("watched_items_long_histories_a_warp_each", "recommenders", 32768, "sums of the vectors of 64 floats of what each of 32768 users watched, some 28 items and 768 at most",
    "a user a warp, though few of them watched most",
    {{"pieces", "pieces of at most 64 items a warp, those of one user added up by atomics", {"workload_imbalance"}}, {"together", "histories of more than 96 items by all warps of their block", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int ITEMS = 400000, LONGEST = 768, PIECE = 64;
        std::vector<int> starts(n + 1), items;
        std::vector<int3> pieces;
        for (long i = 0; i < n; i++) {
            const float chance = (hash(i) + 1.0f) / 4294967296.0f;
            const int length = std::min(LONGEST, static_cast<int>(7.0f * std::pow(chance, -1.0f / 1.2f)));
            starts[i + 1] = starts[i] + length;
            for (int first = starts[i]; first < starts[i + 1]; first += PIECE)
                pieces.push_back(make_int3(static_cast<int>(i), first, std::min(first + PIECE, starts[i + 1])));
        }
        items.resize(starts[n]);
        for (size_t i = 0; i < items.size(); i++) {
            const float chance = hash(static_cast<unsigned>(i) + 77777777u) / 4294967296.0f;
            items[i] = std::min(ITEMS - 1, static_cast<int>(ITEMS * chance * chance));
        }
        const Bags bags{reinterpret_cast<const float2 *>(b.random<float>(ITEMS * 64L, -0.5, 1.0)), b.copy(starts), b.copy(items),
            reinterpret_cast<float2 *>(b.output<float>(n * 64, true)), static_cast<int>(n)};
        const int count = static_cast<int>(pieces.size());
        return {{"flawed", launch(embedding_bags, dim3(blocks(n, 8)), 256, 0, bags)},
            {"pieces", launch(embedding_bags_pieces, dim3(blocks(count, 8)), 256, 0, bags, b.copy(pieces), count)},
            {"together", launch(embedding_bags_together, dim3(blocks(n, 8)), 256, 0, bags)}};
    });

// --- a norm with what came past it ---

__device__ __forceinline__ void to_floats(const uint4 &packed, float *values) {
    const auto *halves = reinterpret_cast<const __half2 *>(&packed);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float2 two = __half22float2(halves[k]);
        values[2 * k] = two.x;
        values[2 * k + 1] = two.y;
    }
}
__device__ __forceinline__ uint4 to_halves(const float *values) {
    uint4 packed;
    auto *halves = reinterpret_cast<__half2 *>(&packed);
#pragma unroll
    for (int k = 0; k < 4; k++) halves[k] = __floats2half2_rn(values[2 * k], values[2 * k + 1]);
    return packed;
}
// A row of 4096 a block, sixteen values a thread.
__global__ void __launch_bounds__(256) add_and_norm(const uint4 *__restrict__ x, const uint4 *__restrict__ past, const uint4 *__restrict__ weights, uint4 *sum, uint4 *out) {
    __shared__ float parts[8];
    const size_t at = static_cast<size_t>(blockIdx.x) * 512 + threadIdx.x;
    const uint4 x0 = x[at], x1 = x[at + 256], p0 = past[at], p1 = past[at + 256];
    const uint4 w0 = weights[threadIdx.x], w1 = weights[threadIdx.x + 256];
    float values[16], other[16];
    to_floats(x0, values), to_floats(x1, values + 8), to_floats(p0, other), to_floats(p1, other + 8);
    float squares = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; k++) values[k] += other[k], squares += values[k] * values[k];
    sum[at] = to_halves(values);
    sum[at + 256] = to_halves(values + 8);
    squares = warp_sum(squares);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = squares;
    __syncthreads();
    squares = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; k++) squares += parts[k];
    const float scale = rsqrtf(squares / 4096 + 1e-6f);
    to_floats(w0, other), to_floats(w1, other + 8);
#pragma unroll
    for (int k = 0; k < 16; k++) values[k] *= scale * other[k];
    out[at] = to_halves(values);
    out[at + 256] = to_halves(values + 8);
}

Study residual("sound_residual_added_and_normalised", "language models", 16384, "a residual added to 16384 rows of 4096 half values, and their RMS norm", "", {},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 2e-3;
        const auto *x = reinterpret_cast<const uint4 *>(b.random<__half>(n * 4096)), *past = reinterpret_cast<const uint4 *>(b.random<__half>(n * 4096));
        const auto *weights = reinterpret_cast<const uint4 *>(b.random<__half>(4096, 0.5, 1.5));
        auto *sum = reinterpret_cast<uint4 *>(b.output<__half>(n * 4096)), *out = reinterpret_cast<uint4 *>(b.output<__half>(n * 4096));
        return {{"sound", launch(add_and_norm, dim3(n), 256, 0, x, past, weights, sum, out)}};
    });

// --- what somebody might like ---

// Eight lanes a row of 64 half values, four pairs at once.
__global__ void __launch_bounds__(256) score_pairs(const uint4 *__restrict__ users, const uint4 *__restrict__ items, const int2 *__restrict__ pairs, float *scores, int count) {
    const int part = threadIdx.x % 8, first = (blockIdx.x * 32 + threadIdx.x / 8) * 4;
    if (first >= count) return;
    uint4 user[4], item[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int2 pair = pairs[first + k];
        user[k] = users[static_cast<size_t>(pair.x) * 8 + part];
        item[k] = items[static_cast<size_t>(pair.y) * 8 + part];
    }
    float found[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float a[8], b[8];
        to_floats(user[k], a), to_floats(item[k], b);
        found[k] = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; i++) found[k] += a[i] * b[i];
#pragma unroll
        for (int offset = 4; offset; offset /= 2) found[k] += __shfl_xor_sync(~0u, found[k], offset);
    }
    if (part == 0) *reinterpret_cast<float4 *>(scores + first) = make_float4(found[0], found[1], found[2], found[3]);
}

Study likes("sound_scores_of_users_and_items", "recommenders", 1 << 21, "products of the vectors of 64 half values of 2097152 pairs of a user and an item", "", {},
    [](Buffers &b, long n) -> Sides {
        constexpr int ROWS = 1 << 20;
        std::vector<int2> pairs(n);
        for (long i = 0; i < n; i++) pairs[i] = make_int2(hash(2 * i) % ROWS, hash(2 * i + 1) % ROWS);
        const auto *users = reinterpret_cast<const uint4 *>(b.random<__half>(ROWS * 64L)), *items = reinterpret_cast<const uint4 *>(b.random<__half>(ROWS * 64L));
        return {{"sound", launch(score_pairs, dim3(blocks(n, 128)), 256, 0, users, items, b.copy(pairs), b.output<float>(n), static_cast<int>(n))}};
    });

}  // namespace
