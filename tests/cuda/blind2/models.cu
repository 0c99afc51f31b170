// Pieces of language and vision models. Each kernel has one flaw and two fixes.
#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- instance norm, a thread a plane ---

__global__ void instance_norm(const float *x, float *y, int planes, int hw, float eps) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= planes) return;
    float mean = 0.f, m2 = 0.f;
    for (int i = 0; i < hw; i++) mean += x[p * hw + i];
    mean /= hw;
    for (int i = 0; i < hw; i++) {
        float d = x[p * hw + i] - mean;
        m2 += d * d;
    }
    float inv = rsqrtf(m2 / hw + eps);
    for (int i = 0; i < hw; i++) y[p * hw + i] = (x[p * hw + i] - mean) * inv;
}
__global__ void instance_norm_warp(const float *__restrict__ x, float *__restrict__ y, int planes, float eps) {
    int p = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (p >= planes) return;
    float v[8], mean = 0.f, m2 = 0.f;
#pragma unroll
    for (int k = 0; k < 8; ++k) mean += v[k] = x[p * 256 + lane + 32 * k];
    mean = warp_sum(mean) / 256;
#pragma unroll
    for (int k = 0; k < 8; ++k) m2 += (v[k] - mean) * (v[k] - mean);
    float inv = rsqrtf(warp_sum(m2) / 256 + eps);
#pragma unroll
    for (int k = 0; k < 8; ++k) y[p * 256 + lane + 32 * k] = (v[k] - mean) * inv;
}
__global__ void __launch_bounds__(256) instance_norm_block(const float *x, float *y, float eps) {
    __shared__ float part[2][8];
    float v = x[blockIdx.x * 256 + threadIdx.x];
    float s = warp_sum(v), q = warp_sum(v * v);
    if (threadIdx.x % 32 == 0) part[0][threadIdx.x / 32] = s, part[1][threadIdx.x / 32] = q;
    __syncthreads();
    s = q = 0.f;
    for (int w = 0; w < 8; ++w) s += part[0][w], q += part[1][w];
    float mean = s / 256;
    y[blockIdx.x * 256 + threadIdx.x] = (v - mean) * rsqrtf(q / 256 - mean * mean + eps);
}

Study instance_norms("instance_norm_thread_per_plane", "models", 65536, "instance norm of planes of 16 x 16 floats",
    "a thread walks a plane, three times; neighbouring lanes are 1 KiB apart",
    {{"warp", "a warp a plane, eight values a lane kept in registers", {"uncoalesced_access", "redundant_loads"}},
        {"block", "a block of 256 threads a plane, one value a thread", {"uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long planes) -> Sides {
        float *x = b.random<float>(planes * 256), *y = b.output<float>(planes * 256);
        b.tolerance = 1e-3;
        return {{"flawed", launch(instance_norm, blocks(planes, 128), 128, 0, x, y, planes, 256, 1e-5f)},
            {"warp", launch(instance_norm_warp, blocks(planes, 4), 128, 0, x, y, planes, 1e-5f)},
            {"block", launch(instance_norm_block, planes, 256, 0, x, y, 1e-5f)}};
    });

// --- attention scores plus ALiBi ---

__global__ void alibi(const float *scores, float *out, int heads, int queries, int keys, float scale, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int k = i % keys, q = i / keys % queries, h = i / (keys * queries) % heads;
    float slope = powf(2.f, -8.f * (h + 1) / heads);
    out[i] = k > q ? -10000.f : scores[i] * scale - slope * (q - k);
}
__global__ void alibi_grid(const float *__restrict__ scores, float *__restrict__ out, int heads, int queries, int keys, float scale) {
    int q = blockIdx.x, h = blockIdx.y;
    float slope = exp2f(-8.f * (h + 1) / heads);
    size_t row = (size_t(blockIdx.z * heads + h) * queries + q) * keys;
    for (int k = threadIdx.x; k < keys; k += blockDim.x)
        out[row + k] = k > q ? -10000.f : scores[row + k] * scale - slope * (q - k);
}
__global__ void alibi_slopes(const float4 *__restrict__ scores, float4 *__restrict__ out, const float *__restrict__ slopes,
    int log_quads, int log_queries, int heads, float scale) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int k = 4 * (i & ((1 << log_quads) - 1)), row = i >> log_quads, q = row & ((1 << log_queries) - 1);
    float slope = slopes[row >> log_queries & (heads - 1)];
    float4 s = scores[i];
    auto one = [&](float v, int at) { return at > q ? -10000.f : v * scale - slope * (q - at); };
    out[i] = {one(s.x, k), one(s.y, k + 1), one(s.z, k + 2), one(s.w, k + 3)};
}

Study alibis("alibi_bias_flat_index", "models", 2, "scores of 16 heads of 512 x 1024 scaled, masked and biased by ALiBi",
    "every element finds its position by divisions and its head's slope by powf",
    {{"grid", "a block a row; position and slope once a block", {"expensive_math", "integer_arithmetic"}},
        {"table", "slopes from a table, positions by shifts, four elements a thread",
            {"expensive_math", "integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long batch) -> Sides {
        int heads = 16, queries = 512, keys = 1024, total = batch * heads * queries * keys;
        float *s = b.random<float>(total), *out = b.output<float>(total);
        std::vector<float> slopes(heads);
        for (int h = 0; h < heads; ++h) slopes[h] = std::exp2(-8.f * (h + 1) / heads);
        float *table = b.copy(slopes);
        return {{"flawed", launch(alibi, blocks(total, 256), 256, 0, s, out, heads, queries, keys, 0.125f, total)},
            {"grid", launch(alibi_grid, dim3(queries, heads, batch), 256, 0, s, out, heads, queries, keys, 0.125f)},
            {"table", launch(alibi_slopes, total / 1024, 256, 0, (float4 *)s, (float4 *)out, table, 8, 9, heads, 0.125f)}};
    });

// --- masked softmax of half scores ---

__device__ float block_max4(float v, float *scratch) {
    v = warp_max(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
    __syncthreads();
    return fmaxf(fmaxf(scratch[0], scratch[1]), fmaxf(scratch[2], scratch[3]));
}
__device__ float block_sum4(float v, float *scratch) {
    v = warp_sum(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
    __syncthreads();
    return scratch[0] + scratch[1] + scratch[2] + scratch[3];
}
__global__ void __launch_bounds__(128) masked_softmax(const __half *x, const unsigned char *mask, __half *y, int n, int rows_each) {
    __shared__ float scratch[4];
    const __half *row = x + size_t(blockIdx.x) * n;
    const unsigned char *m = mask + size_t(blockIdx.x / rows_each) * n;
    float top = -1e30f, sum = 0.f;
    for (int i = threadIdx.x; i < n; i += 128) top = fmaxf(top, m[i] ? __half2float(row[i]) : -1e4f);
    top = block_max4(top, scratch);
    for (int i = threadIdx.x; i < n; i += 128) sum += __expf((m[i] ? __half2float(row[i]) : -1e4f) - top);
    sum = block_sum4(sum, scratch);
    for (int i = threadIdx.x; i < n; i += 128)
        y[size_t(blockIdx.x) * n + i] = __float2half(__expf((m[i] ? __half2float(row[i]) : -1e4f) - top) / sum);
}
__global__ void __launch_bounds__(128) masked_softmax_registers(const __half *x, const unsigned char *mask, __half *y, int rows_each) {
    __shared__ float scratch[4];
    constexpr int n = 1024;
    const __half *row = x + size_t(blockIdx.x) * n;
    const unsigned char *m = mask + size_t(blockIdx.x / rows_each) * n;
    float v[8], top = -1e30f, sum = 0.f;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        int i = threadIdx.x + 128 * k;
        v[k] = m[i] ? __half2float(row[i]) : -1e4f;
        top = fmaxf(top, v[k]);
    }
    top = block_max4(top, scratch);
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += v[k] = __expf(v[k] - top);
    float inv = 1.f / block_sum4(sum, scratch);
#pragma unroll
    for (int k = 0; k < 8; ++k) y[size_t(blockIdx.x) * n + threadIdx.x + 128 * k] = __float2half(v[k] * inv);
}
__global__ void __launch_bounds__(128) masked_softmax_wide(const uint4 *x, const uint2 *mask, uint4 *y, int rows_each) {
    __shared__ float scratch[4];
    uint4 raw = x[size_t(blockIdx.x) * 128 + threadIdx.x];
    uint2 bits = mask[size_t(blockIdx.x / rows_each) * 128 + threadIdx.x];
    const __half2 *h = reinterpret_cast<const __half2 *>(&raw);
    float v[8], top = -1e30f, sum = 0.f;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float2 f = __half22float2(h[k]);
        unsigned word = (k < 2 ? bits.x : bits.y) >> (k % 2 * 16);
        v[2 * k] = word & 0xff ? f.x : -1e4f, v[2 * k + 1] = word >> 8 & 0xff ? f.y : -1e4f;
        top = fmaxf(top, fmaxf(v[2 * k], v[2 * k + 1]));
    }
    top = block_max4(top, scratch);
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += v[k] = __expf(v[k] - top);
    float inv = 1.f / block_sum4(sum, scratch);
    __half2 out[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) out[k] = __floats2half2_rn(v[2 * k] * inv, v[2 * k + 1] * inv);
    y[size_t(blockIdx.x) * 128 + threadIdx.x] = *reinterpret_cast<uint4 *>(out);
}

Study masked_softmaxes("masked_softmax_three_reads", "models", 24576, "softmax of rows of 1024 half scores under a byte mask",
    "scores and mask are read three times, one value a time",
    {{"registers", "read once, eight values a thread kept in registers", {"redundant_loads"}},
        {"wide", "read once by 16-byte accesses, kept in registers", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        auto *x = b.random<__half>(rows * 1024, -4, 4), *y = b.output<__half>(rows * 1024);
        auto *mask = b.random<unsigned char>(rows / 128 * 1024, 0, 2);
        b.tolerance = 2e-3;
        return {{"flawed", launch(masked_softmax, rows, 128, 0, x, mask, y, 1024, 128)},
            {"registers", launch(masked_softmax_registers, rows, 128, 0, x, mask, y, 128)},
            {"wide", launch(masked_softmax_wide, rows, 128, 0, (uint4 *)x, (uint2 *)mask, (uint4 *)y, 128)}};
    });

// --- cache of keys reordered by beam ---

__global__ void reorder_cache(const __half *src, __half *dst, const int *beam, long long heads, long long steps, long long dim, long long total) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= total) return;
    long long d = i % dim, t = i / dim % steps, h = i / (dim * steps) % heads, b = i / (dim * steps * heads);
    dst[i] = src[((beam[b] * heads + h) * steps + t) * dim + d];
}
__global__ void reorder_cache_grid(const __half *src, __half *dst, const int *beam, int plane) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, h = blockIdx.y;
    if (i < plane)
        dst[(size_t(blockIdx.z) * gridDim.y + h) * plane + i] = src[(size_t(beam[blockIdx.z]) * gridDim.y + h) * plane + i];
}
__global__ void reorder_cache_wide(const uint4 *src, uint4 *dst, const int *beam, int row) {
    const uint4 *from = src + size_t(beam[blockIdx.y]) * row;
    uint4 *to = dst + size_t(blockIdx.y) * row;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < row; i += gridDim.x * blockDim.x) to[i] = from[i];
}

Study caches("beam_reorder_long_division", "models", 16, "key cache of 16 beams, 12 heads, 1024 steps of 64 half values copied in the beams' order",
    "the flat 64-bit index is taken apart by six 64-bit divisions for each 2 bytes",
    {{"grid", "heads and beams from the grid, no division", {"integer_arithmetic"}},
        {"wide", "beams from the grid, 16 bytes an access", {"integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long beams) -> Sides {
        int heads = 12, steps = 1024, dim = 64, plane = steps * dim;
        long total = beams * heads * plane;
        auto *src = b.random<__half>(total), *dst = b.output<__half>(total);
        std::vector<int> order(beams);
        for (int i = 0; i < beams; ++i) order[i] = (i * 5 + 3) % beams;
        int *beam = b.copy(order);
        return {{"flawed", launch(reorder_cache, blocks(total, 256), 256, 0, src, dst, beam, heads, steps, dim, total)},
            {"grid", launch(reorder_cache_grid, dim3(plane / 256, heads, beams), 256, 0, src, dst, beam, plane)},
            {"wide", launch(reorder_cache_wide, dim3(64, beams), 256, 0, (uint4 *)src, (uint4 *)dst, beam, heads * plane / 8)}};
    });

// --- scores of grouped-query attention while decoding ---

template <int HEADS>
__global__ void __launch_bounds__(256) grouped_scores(const __half2 *__restrict__ q, const __half2 *__restrict__ k, float *__restrict__ s, int steps) {
    int key = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.y * HEADS;
    const __half2 *row = k + (size_t(first / 8) * steps + key) * 64;  // eight query heads share one
    float2 a = __half22float2(row[lane]), c = __half22float2(row[lane + 32]);
#pragma unroll
    for (int h = 0; h < HEADS; ++h) {
        float2 u = __half22float2(q[(first + h) * 64 + lane]), v = __half22float2(q[(first + h) * 64 + lane + 32]);
        float dot = warp_sum(a.x * u.x + a.y * u.y + c.x * v.x + c.y * v.y);
        if (lane == 0) s[size_t(first + h) * steps + key] = dot * 0.088388f;
    }
}

Study grouped("gqa_scores_head_each", "models", 4096, "scores of 64 query heads against 4096 half keys of 128, eight query heads share a key head, batch of 4",
    "a warp a query head and key: keys are fetched eight times",
    {{"four", "a warp serves four heads with a key it has loaded once", {"redundant_loads"}},
        {"eight", "a warp serves all eight heads", {"redundant_loads"}}},
    [](Buffers &b, long steps) -> Sides {
        int heads = 256;
        auto *q = b.random<__half>(heads * 128), *k = b.random<__half>(heads / 8 * steps * 128);
        float *s = b.output<float>(heads * steps);
        b.tolerance = 1e-3;
        auto run = [&](auto kernel, int each) {
            return launch(kernel, dim3(steps / 8, heads / each), 256, 0, (__half2 *)q, (__half2 *)k, s, steps);
        };
        return {{"flawed", run(grouped_scores<1>, 1)}, {"four", run(grouped_scores<4>, 4)}, {"eight", run(grouped_scores<8>, 8)}};
    });

// --- int8 weights times a vector ---

__global__ void gemv_int8(const signed char *w, const float *scale, const float *x, float *y, int columns) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum = 0.f;
    for (int c = lane; c < columns; c += 32) sum += float(w[row * columns + c]) * x[c];
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum * scale[row];
}
__global__ void gemv_int8_words(const char4 *__restrict__ w, const float *__restrict__ scale, const float4 *__restrict__ x, float *__restrict__ y, int quads) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum = 0.f;
    for (int c = lane; c < quads; c += 32) {
        char4 a = w[row * quads + c];
        float4 v = x[c];
        sum += a.x * v.x + a.y * v.y + a.z * v.z + a.w * v.w;
    }
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum * scale[row];
}
__global__ void gemv_int8_wide(const int4 *__restrict__ w, const float *__restrict__ scale, const float4 *__restrict__ x, float *__restrict__ y, int sixteens) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum = 0.f;
    for (int c = lane; c < sixteens; c += 32) {
        int4 packed = w[row * sixteens + c];
        const char4 *a = reinterpret_cast<const char4 *>(&packed);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            float4 v = x[4 * c + k];
            sum += a[k].x * v.x + a[k].y * v.y + a[k].z * v.z + a[k].w * v.w;
        }
    }
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum * scale[row];
}

Study gemvs("gemv_int8_byte_loads", "models", 16384, "int8 weights of 16384 x 4096 times a vector of floats, a warp a row",
    "a weight is fetched as a byte, a value of the vector as four",
    {{"words", "four weights and four values an access", {"narrow_access"}},
        {"wide", "16 weights an access", {"narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        int columns = 4096;
        auto *w = b.random<signed char>(rows * columns, -127, 127);
        float *scale = b.random<float>(rows, 0.01, 0.02), *x = b.random<float>(columns), *y = b.output<float>(rows);
        b.tolerance = 1e-3;
        return {{"flawed", launch(gemv_int8, rows / 8, 256, 0, w, scale, x, y, columns)},
            {"words", launch(gemv_int8_words, rows / 8, 256, 0, (char4 *)w, scale, (float4 *)x, y, columns / 4)},
            {"wide", launch(gemv_int8_wide, rows / 8, 256, 0, (int4 *)w, scale, (float4 *)x, y, columns / 16)}};
    });

// --- experts' outputs put together ---

__global__ void moe_combine(const float *expert_out, const int *token_of, const float *weight, float *y, int dim) {
    int slot = blockIdx.x, token = token_of[slot];
    float w = weight[slot];
    for (int c = threadIdx.x; c < dim; c += blockDim.x) atomicAdd(&y[token * dim + c], w * expert_out[slot * dim + c]);
}
__global__ void moe_combine_gather(const float *__restrict__ expert_out, const int2 *__restrict__ slots, const float *__restrict__ weight, float *__restrict__ y, int dim) {
    int2 s = slots[blockIdx.x];
    float u = weight[s.x], v = weight[s.y];
    for (int c = threadIdx.x; c < dim; c += blockDim.x)
        y[blockIdx.x * dim + c] = u * expert_out[s.x * dim + c] + v * expert_out[s.y * dim + c];
}
__global__ void moe_combine_vector(const float4 *expert_out, const int *token_of, const float *weight, float4 *y, int quads) {
    int slot = blockIdx.x, token = token_of[slot];
    float w = weight[slot];
    for (int c = threadIdx.x; c < quads; c += blockDim.x) {
        float4 v = expert_out[slot * quads + c];
        atomicAdd(&y[token * quads + c], make_float4(w * v.x, w * v.y, w * v.z, w * v.w));
    }
}

Study combines("moe_combine_atomics", "models", 6144, "outputs of two experts a token, rows of 2048 floats, weighted and added",
    "every value of every expert's row is added by an atomic",
    {{"gather", "a block a token reads both rows and stores the sum", {"global_atomics"}},
        {"vector", "atomics of four floats", {"global_atomics", "narrow_access"}}},
    [](Buffers &b, long tokens) -> Sides {
        int dim = 2048;
        std::vector<int> token_of(2 * tokens), slots(2 * tokens);
        for (long i = 0; i < 2 * tokens; ++i) {  // slots in the experts' order
            long slot = (i * 5189 + 17) % (2 * tokens);
            token_of[slot] = i / 2, slots[i] = slot;
        }
        int *owner = b.copy(token_of), *both = b.copy(slots);
        float *e = b.random<float>(2 * tokens * dim), *w = b.random<float>(2 * tokens, 0, 1), *y = b.output<float>(tokens * dim, true);
        return {{"flawed", launch(moe_combine, 2 * tokens, 256, 0, e, owner, w, y, dim)},
            {"gather", launch(moe_combine_gather, tokens, 256, 0, e, (int2 *)both, w, y, dim)},
            {"vector", launch(moe_combine_vector, 2 * tokens, 256, 0, (float4 *)e, owner, w, (float4 *)y, dim / 4)}};
    });

// --- focal loss ---

__global__ void focal_loss(const float *logit, const unsigned char *label, float *loss, float alpha, float gamma, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float p = 1.f / (1.f + expf(-logit[i]));
    float pt = label[i] ? p : 1.f - p;
    float a = label[i] ? alpha : 1.f - alpha;
    loss[i] = -a * powf(1.f - pt, gamma) * logf(fmaxf(pt, 1e-7f));
}
__global__ void focal_loss_square(const float *logit, const unsigned char *label, float *loss, float alpha, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float p = 1.f / (1.f + expf(-logit[i]));
    float pt = label[i] ? p : 1.f - p, rest = 1.f - pt;
    loss[i] = -(label[i] ? alpha : 1.f - alpha) * rest * rest * logf(fmaxf(pt, 1e-7f));
}
__global__ void focal_loss_fast(const float *__restrict__ logit, const unsigned char *__restrict__ label, float *__restrict__ loss, float alpha, float gamma, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bool positive = label[i];
    float x = positive ? logit[i] : -logit[i];
    float pt = __fdividef(1.f, 1.f + __expf(-x));
    loss[i] = -(positive ? alpha : 1.f - alpha) * __powf(1.f - pt, gamma) * __logf(fmaxf(pt, 1e-7f));
}

Study focals("focal_loss_pow", "models", 1 << 24, "focal loss of 16 million logits with byte labels",
    "powf with an exponent that is 2, and precise exponential, division and logarithm",
    {{"square", "a product for the power, the rest as it was", {"expensive_math"}},
        {"fast", "fast functions throughout", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n, -6, 6), *loss = b.output<float>(n);
        auto *label = b.random<unsigned char>(n, 0, 2);
        b.tolerance = 1e-3;
        return {{"flawed", launch(focal_loss, blocks(n, 256), 256, 0, x, label, loss, 0.25f, 2.f, n)},
            {"square", launch(focal_loss_square, blocks(n, 256), 256, 0, x, label, loss, 0.25f, n)},
            {"fast", launch(focal_loss_fast, blocks(n, 256), 256, 0, x, label, loss, 0.25f, 2.f, n)}};
    });

// --- squared norms of pieces of a gradient ---

template <int FINISH>  // 0: one thread adds up, 1: a tree in shared memory, 2: shuffles
__global__ void __launch_bounds__(256) piece_norms(const float *grad, float *norms) {
    __shared__ float part[256];
    const float *g = grad + size_t(blockIdx.x) * 1024;
    int tid = threadIdx.x;
    float sum = 0.f;
    for (int k = 0; k < 4; ++k) {
        float v = g[tid + 256 * k];
        sum += v * v;
    }
    if (FINISH == 2) sum = warp_sum(sum);
    part[FINISH == 2 ? tid / 32 : tid] = sum;
    __syncthreads();
    if (FINISH == 0 && tid == 0) {
        float total = 0.f;
        for (int i = 0; i < 256; ++i) total += part[i];
        norms[blockIdx.x] = total;
    }
    if (FINISH == 1) {
        for (int s = 128; s > 0; s >>= 1) {
            if (tid < s) part[tid] += part[tid + s];
            __syncthreads();
        }
        if (tid == 0) norms[blockIdx.x] = part[0];
    }
    if (FINISH == 2 && tid == 0) {
        float total = 0.f;
        for (int i = 0; i < 8; ++i) total += part[i];
        norms[blockIdx.x] = total;
    }
}

Study norms("grad_norms_one_thread_adds", "models", 32768, "squared norms of 32768 pieces of 1024 floats, a block of 256 threads a piece",
    "one thread adds up the block's 256 sums while the others have ended",
    {{"tree", "halved in shared memory", {"branch_divergence", "workload_imbalance", "instruction_latency"}},
        {"shuffles", "added within warps by shuffles, then eight sums", {"branch_divergence", "workload_imbalance", "instruction_latency"}}},
    [](Buffers &b, long pieces) -> Sides {
        float *g = b.random<float>(pieces * 1024), *out = b.output<float>(pieces);
        return {{"flawed", launch(piece_norms<0>, pieces, 256, 0, g, out)}, {"tree", launch(piece_norms<1>, pieces, 256, 0, g, out)},
            {"shuffles", launch(piece_norms<2>, pieces, 256, 0, g, out)}};
    });

// --- gradients of gain and bias of a layer norm ---

__global__ void gain_bias_grad(const float *dy, const float *xhat, float *dgain, float *dbias, int rows, int columns) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float g = 0.f, s = 0.f;
    for (int r = 0; r < rows; r++) {
        g += dy[r * columns + c] * xhat[r * columns + c];
        s += dy[r * columns + c];
    }
    dgain[c] = g, dbias[c] = s;
}
__global__ void __launch_bounds__(1024) gain_bias_grad_tile(const float *__restrict__ dy, const float *__restrict__ xhat, float *dgain, float *dbias, int rows, int columns) {
    __shared__ float gs[32][33], ss[32][33];
    int c = blockIdx.x * 32 + threadIdx.x;
    float g = 0.f, s = 0.f;
    for (int r = threadIdx.y; r < rows; r += 32) {
        float d = dy[r * columns + c];
        g += d * xhat[r * columns + c], s += d;
    }
    gs[threadIdx.y][threadIdx.x] = g, ss[threadIdx.y][threadIdx.x] = s;
    __syncthreads();
    g = warp_sum(gs[threadIdx.x][threadIdx.y]), s = warp_sum(ss[threadIdx.x][threadIdx.y]);
    if (threadIdx.x == 0) dgain[blockIdx.x * 32 + threadIdx.y] = g, dbias[blockIdx.x * 32 + threadIdx.y] = s;
}
__global__ void gain_bias_grad_split(const float *__restrict__ dy, const float *__restrict__ xhat, float *dgain, float *dbias, int each, int columns) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * each;
    float g = 0.f, s = 0.f;
    for (int r = first; r < first + each; r++) {
        float d = dy[r * columns + c];
        g += d * xhat[r * columns + c], s += d;
    }
    atomicAdd(&dgain[c], g), atomicAdd(&dbias[c], s);
}

Study gain_biases("layer_norm_grad_few_blocks", "models", 4096, "gradients of gain and bias: sums down 2048 columns of 4096 rows",
    "a thread a column: 16 blocks, each thread with 4096 steps",
    {{"tile", "32 columns a block of 1024 threads, added up in shared memory", {"small_grid", "memory_latency"}},
        {"split", "rows split over 64 blocks, added by atomics", {"small_grid", "memory_latency"}}},
    [](Buffers &b, long rows) -> Sides {
        int columns = 2048;
        float *dy = b.random<float>(rows * columns, 0, 1), *xhat = b.random<float>(rows * columns, 0, 1);
        float *dgain = b.output<float>(columns, true), *dbias = b.output<float>(columns, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(gain_bias_grad, columns / 128, 128, 0, dy, xhat, dgain, dbias, rows, columns)},
            {"tile", launch(gain_bias_grad_tile, columns / 32, dim3(32, 32), 0, dy, xhat, dgain, dbias, rows, columns)},
            {"split", launch(gain_bias_grad_split, dim3(columns / 128, 64), 128, 0, dy, xhat, dgain, dbias, rows / 64, columns)}};
    });

// --- columns back to an image, for a transposed convolution ---

__global__ void col2im(const float *cols, float *image, int channels, int height, int width, int kernel, int stride, int pad, int out_h, int out_w, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int w = i % width, h = i / width % height, c = i / (width * height) % channels, n = i / (width * height * channels);
    float sum = 0.f;
    for (int kh = 0; kh < kernel; kh++)
        for (int kw = 0; kw < kernel; kw++) {
            int y = h + pad - kh, x = w + pad - kw;
            if (y >= 0 && x >= 0 && y % stride == 0 && x % stride == 0 && y / stride < out_h && x / stride < out_w)
                sum += cols[(((n * channels + c) * kernel + kh) * kernel + kw) * out_h * out_w + y / stride * out_w + x / stride];
        }
    image[i] = sum;
}
template <int KERNEL, int STRIDE, int PAD>
__global__ void col2im_fixed(const float *__restrict__ cols, float *__restrict__ image, int channels, int height, int width, int out_h, int out_w, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int w = i % width, h = i / width % height, nc = i / (width * height);
    float sum = 0.f;
#pragma unroll
    for (int kh = 0; kh < KERNEL; kh++)
#pragma unroll
        for (int kw = 0; kw < KERNEL; kw++) {
            int y = h + PAD - kh, x = w + PAD - kw;
            if (y >= 0 && x >= 0 && y % STRIDE == 0 && x % STRIDE == 0 && y / STRIDE < out_h && x / STRIDE < out_w)
                sum += cols[((nc * KERNEL + kh) * KERNEL + kw) * out_h * out_w + y / STRIDE * out_w + x / STRIDE];
        }
    image[i] = sum;
}
__global__ void col2im_bounds(const float *__restrict__ cols, float *__restrict__ image, int height, int width, int kernel, int stride, int pad, int out_h, int out_w) {
    int w = threadIdx.x, h = blockIdx.x, nc = blockIdx.y;
    if (w >= width) return;
    int y1 = min((h + pad) / stride + 1, out_h), x1 = min((w + pad) / stride + 1, out_w);
    int y0 = h + pad < kernel ? 0 : (h + pad - kernel) / stride + 1, x0 = w + pad < kernel ? 0 : (w + pad - kernel) / stride + 1;
    float sum = 0.f;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            sum += cols[((nc * kernel + h + pad - y * stride) * kernel + w + pad - x * stride) * out_h * out_w + y * out_w + x];
    image[(nc * height + h) * width + w] = sum;
}

Study col2ims("col2im_divisions", "models", 8, "columns of a 3 x 3 convolution of stride 2 added back to 64 channels of 112 x 112, batch of 8",
    "divisions and remainders by the stride for each of nine taps",
    {{"fixed", "kernel and stride known to the compiler", {"integer_arithmetic"}},
        {"bounds", "range of taps computed once, position from the grid", {"integer_arithmetic"}}},
    [](Buffers &b, long batch) -> Sides {
        int c = 64, h = 112, o = 56, total = batch * c * h * h;
        float *cols = b.random<float>(batch * c * 9 * o * o), *image = b.output<float>(total);
        return {{"flawed", launch(col2im, blocks(total, 256), 256, 0, cols, image, c, h, h, 3, 2, 1, o, o, total)},
            {"fixed", launch(col2im_fixed<3, 2, 1>, blocks(total, 256), 256, 0, cols, image, c, h, h, o, o, total)},
            {"bounds", launch(col2im_bounds, dim3(h, batch * c), 128, 0, cols, image, h, h, 3, 2, 1, o, o)}};
    });

// --- momentum, by pieces of many tensors ---

struct Piece {
    int offset, count;
};
__global__ void momentum_pieces(const Piece *pieces, float *p, float *m, const float *g, float rate, float mu) {
    Piece piece = pieces[blockIdx.x];
    for (int i = threadIdx.x; i < piece.count; i += blockDim.x) {
        float v = mu * m[piece.offset + i] + g[piece.offset + i];
        m[piece.offset + i] = v;
        p[piece.offset + i] -= rate * v;
    }
}
__global__ void __launch_bounds__(256) momentum_wide(const Piece *pieces, float4 *p, float4 *m, const float4 *g, float rate, float mu) {
    Piece piece = pieces[blockIdx.x];
    for (int i = threadIdx.x; i < piece.count / 4; i += 256) {
        int at = piece.offset / 4 + i;
        float4 v = m[at], d = g[at], q = p[at];
        v = {mu * v.x + d.x, mu * v.y + d.y, mu * v.z + d.z, mu * v.w + d.w};
        m[at] = v;
        p[at] = {q.x - rate * v.x, q.y - rate * v.y, q.z - rate * v.z, q.w - rate * v.w};
    }
}

Study momenta("momentum_tiny_blocks", "models", 1 << 23, "SGD with momentum on 8 million parameters of many tensors, cut into pieces",
    "a warp and 64 parameters a block",
    {{"bigger", "pieces of 2048, blocks of 256 threads", {"low_occupancy"}},
        {"wide", "pieces of 2048, 256 threads, 16-byte accesses", {"low_occupancy", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Piece> small(n / 64), large(n / 2048);
        for (size_t i = 0; i < small.size(); ++i) small[i] = {int(i * 64), 64};
        for (size_t i = 0; i < large.size(); ++i) large[i] = {int(i * 2048), 2048};
        auto *few = b.copy(small), *many = b.copy(large);
        float *p = b.changed(b.random<float>(n), n), *m = b.changed(b.random<float>(n), n), *g = b.random<float>(n);
        return {{"flawed", launch(momentum_pieces, n / 64, 32, 0, few, p, m, g, 0.1f, 0.9f)},
            {"bigger", launch(momentum_pieces, n / 2048, 256, 0, many, p, m, g, 0.1f, 0.9f)},
            {"wide", launch(momentum_wide, n / 2048, 256, 0, many, (float4 *)p, (float4 *)m, (float4 *)g, 0.1f, 0.9f)}};
    });

// --- statistics of channels that lie side by side ---

__global__ void channel_stats(const float *x, float *sum, float *square, int pixels, int channels) {
    __shared__ float part[2][8];
    int c = blockIdx.x;
    float s = 0.f, q = 0.f;
    for (int i = threadIdx.x; i < pixels; i += blockDim.x) {
        float v = x[i * channels + c];
        s += v, q += v * v;
    }
    s = warp_sum(s), q = warp_sum(q);
    if (threadIdx.x % 32 == 0) part[0][threadIdx.x / 32] = s, part[1][threadIdx.x / 32] = q;
    __syncthreads();
    if (threadIdx.x == 0) {
        s = q = 0.f;
        for (int w = 0; w < 8; ++w) s += part[0][w], q += part[1][w];
        sum[c] = s, square[c] = q;
    }
}
__global__ void __launch_bounds__(256) channel_stats_tile(const float *__restrict__ x, float *sum, float *square, int each, int channels) {
    __shared__ float part[2][8][32];
    int c = blockIdx.x * 32 + threadIdx.x;
    float s = 0.f, q = 0.f;
    for (int i = blockIdx.y * each + threadIdx.y; i < (blockIdx.y + 1) * each; i += 8) {
        float v = x[i * channels + c];
        s += v, q += v * v;
    }
    part[0][threadIdx.y][threadIdx.x] = s, part[1][threadIdx.y][threadIdx.x] = q;
    __syncthreads();
    if (threadIdx.y < 2) {
        float total = 0.f;
        for (int w = 0; w < 8; ++w) total += part[threadIdx.y][w][threadIdx.x];
        atomicAdd(threadIdx.y ? &square[c] : &sum[c], total);
    }
}
__global__ void channel_stats_rows(const float *__restrict__ x, float *sum, float *square, int each, int channels) {
    int c = threadIdx.x;
    float s = 0.f, q = 0.f;
#pragma unroll 4
    for (int i = blockIdx.x * each; i < (int(blockIdx.x) + 1) * each; ++i) {
        float v = x[i * channels + c];
        s += v, q += v * v;
    }
    atomicAdd(&sum[c], s), atomicAdd(&square[c], q);
}

Study channels("batch_norm_stats_channels_last", "models", 65536, "sum and sum of squares of 256 channels over 65536 pixels, channels last",
    "a block a channel: lanes are 1 KiB apart",
    {{"tile", "32 channels and 8 pixels a block side by side", {"uncoalesced_access"}},
        {"rows", "a thread a channel, pixels split over 1024 blocks, atomics", {"uncoalesced_access"}}},
    [](Buffers &b, long pixels) -> Sides {
        int c = 256;
        float *x = b.random<float>(pixels * c, 0, 1), *sum = b.output<float>(c, true), *square = b.output<float>(c, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(channel_stats, c, 256, 0, x, sum, square, pixels, c)},
            {"tile", launch(channel_stats_tile, dim3(8, 64), dim3(32, 8), 0, x, sum, square, pixels / 64, c)},
            {"rows", launch(channel_stats_rows, 1024, 256, 0, x, sum, square, pixels / 1024, c)}};
    });

// --- a linear layer in FP32 ---

__global__ void __launch_bounds__(256) linear16(const float *x, const float *w, const float *bias, float *y, int n, int depth) {
    __shared__ float xs[16][16], ws[16][17];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = bias[column];
    for (int k = 0; k < depth; k += 16) {
        xs[ty][tx] = x[row * depth + k + tx];
        ws[tx][ty] = w[(blockIdx.x * 16 + ty) * depth + k + tx];
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += xs[ty][i] * ws[i][tx];
        __syncthreads();
    }
    y[row * n + column] = sum;
}
template <int TILE, int PER>
__global__ void __launch_bounds__(TILE / PER * (TILE / PER)) linear_blocked(const float *__restrict__ x, const float *__restrict__ w,
    const float *__restrict__ bias, float *__restrict__ y, int n, int depth) {
    constexpr int SIDE = TILE / PER, THREADS = SIDE * SIDE, K = 16;
    __shared__ float xs[K][TILE + 1], ws[K][TILE + 1];
    int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE, row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    float sum[PER][PER] = {};
    for (int k = 0; k < depth; k += K) {
#pragma unroll
        for (int i = threadIdx.x; i < TILE * K; i += THREADS) {
            xs[i % K][i / K] = x[(row0 + i / K) * depth + k + i % K];
            ws[i % K][i / K] = w[(column0 + i / K) * depth + k + i % K];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < K; ++i) {
            float a[PER], c[PER];
#pragma unroll
            for (int p = 0; p < PER; ++p) a[p] = xs[i][ty + SIDE * p], c[p] = ws[i][tx + SIDE * p];
#pragma unroll
            for (int p = 0; p < PER; ++p)
#pragma unroll
                for (int q = 0; q < PER; ++q) sum[p][q] += a[p] * c[q];
        }
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < PER; ++p)
#pragma unroll
        for (int q = 0; q < PER; ++q) {
            int column = column0 + tx + SIDE * q;
            y[(row0 + ty + SIDE * p) * n + column] = sum[p][q] + bias[column];
        }
}

Study linears("linear_fp32_small_tile", "models", 1024, "linear layer in FP32: 1024 rows, 1024 inputs, 1024 outputs, with bias",
    "tiles of 16 x 16 and one output a thread: two shared loads for each multiply-add",
    {{"two", "tiles of 32 x 32, four outputs a thread", {"shared_memory_bandwidth"}},
        {"four", "tiles of 64 x 64, 16 outputs a thread", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n * n), *w = b.random<float>(n * n), *bias = b.random<float>(n), *y = b.output<float>(n * n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(linear16, dim3(n / 16, n / 16), dim3(16, 16), 0, x, w, bias, y, n, n)},
            {"two", launch(linear_blocked<32, 2>, dim3(n / 32, n / 32), 256, 0, x, w, bias, y, n, n)},
            {"four", launch(linear_blocked<64, 4>, dim3(n / 64, n / 64), 256, 0, x, w, bias, y, n, n)}};
    });

// --- scores of half queries and keys ---

__global__ void __launch_bounds__(256) scores_fma(const __half *__restrict__ q, const __half *__restrict__ k, float *__restrict__ s, int length) {
    __shared__ float qs[32][65], ks[32][65];  // 64 features in two halves, 64 x 64 scores a block
    int t = threadIdx.x, tx = t % 16, ty = t / 16, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    size_t head = size_t(blockIdx.z) * length * 64;
    float sum[4][4] = {};
    for (int f = 0; f < 64; f += 32) {
        for (int i = t; i < 64 * 32; i += 256) {
            qs[i % 32][i / 32] = __half2float(q[head + (row0 + i / 32) * 64 + f + i % 32]);
            ks[i % 32][i / 32] = __half2float(k[head + (column0 + i / 32) * 64 + f + i % 32]);
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            float a[4], c[4];
#pragma unroll
            for (int p = 0; p < 4; ++p) a[p] = qs[i][ty + 16 * p], c[p] = ks[i][tx + 16 * p];
#pragma unroll
            for (int p = 0; p < 4; ++p)
#pragma unroll
                for (int r = 0; r < 4; ++r) sum[p][r] += a[p] * c[r];
        }
        __syncthreads();
    }
    for (int p = 0; p < 4; ++p)
        for (int r = 0; r < 4; ++r) s[(size_t(blockIdx.z) * length + row0 + ty + 16 * p) * length + column0 + tx + 16 * r] = sum[p][r] * 0.125f;
}
template <int TALL, int WIDE>  // fragments of 16 x 16 a warp; four warps a block, side by side
__global__ void __launch_bounds__(128) scores_wmma(const __half *__restrict__ q, const __half *__restrict__ k, float *__restrict__ s, int length) {
    using namespace nvcuda::wmma;
    size_t head = size_t(blockIdx.z) * length * 64;
    int warp = threadIdx.x / 32, row0 = blockIdx.y * TALL * 16, column0 = (blockIdx.x * 4 + warp) * WIDE * 16;
    fragment<accumulator, 16, 16, 16, float> sum[TALL][WIDE];
#pragma unroll
    for (int p = 0; p < TALL; ++p)
#pragma unroll
        for (int r = 0; r < WIDE; ++r) fill_fragment(sum[p][r], 0.f);
#pragma unroll
    for (int f = 0; f < 64; f += 16) {
        fragment<matrix_a, 16, 16, 16, __half, row_major> a[TALL];
        fragment<matrix_b, 16, 16, 16, __half, col_major> c[WIDE];
#pragma unroll
        for (int p = 0; p < TALL; ++p) load_matrix_sync(a[p], q + head + (row0 + p * 16) * 64 + f, 64);
#pragma unroll
        for (int r = 0; r < WIDE; ++r) load_matrix_sync(c[r], k + head + (column0 + r * 16) * 64 + f, 64);
#pragma unroll
        for (int p = 0; p < TALL; ++p)
#pragma unroll
            for (int r = 0; r < WIDE; ++r) mma_sync(sum[p][r], a[p], c[r], sum[p][r]);
    }
#pragma unroll
    for (int p = 0; p < TALL; ++p)
#pragma unroll
        for (int r = 0; r < WIDE; ++r) {
            for (int e = 0; e < sum[p][r].num_elements; ++e) sum[p][r].x[e] *= 0.125f;
            store_matrix_sync(s + (size_t(blockIdx.z) * length + row0 + p * 16) * length + column0 + r * 16, sum[p][r], length, mem_row_major);
        }
}
Study head_scores("scores_half_on_fma", "models", 1024, "scores of 32 heads: 1024 queries times 1024 keys of 64 half values",
    "half values multiplied in FP32 by the threads, tensor cores idle",
    {{"wmma", "a warp computes 32 x 32 scores by WMMA, straight from global memory", {"tensor_cores_idle"}}, {"wmma_tall", "64 x 32 scores a warp", {"tensor_cores_idle"}}},
    [](Buffers &b, long length) -> Sides {
        int heads = 32, n = length;
        auto *q = b.random<__half>(heads * length * 64), *k = b.random<__half>(heads * length * 64);
        float *s = b.output<float>(heads * length * length);
        b.tolerance = 1e-3;
        return {{"flawed", launch(scores_fma, dim3(n / 64, n / 64, heads), 256, 0, q, k, s, n)},
            {"wmma", launch(scores_wmma<2, 2>, dim3(n / 128, n / 32, heads), 128, 0, q, k, s, n)}, {"wmma_tall", launch(scores_wmma<4, 2>, dim3(n / 128, n / 64, heads), 128, 0, q, k, s, n)}};
    });

}  // namespace
