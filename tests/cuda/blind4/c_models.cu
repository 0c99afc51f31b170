// Parts of models as people write them: attention, mixtures of experts, optimisers, sampling, embeddings, quantised weights.
#include <cstdint>

#include "../pairs/pair.cuh"

namespace {

__device__ float2 pair_of(unsigned word) { return __half22float2(*reinterpret_cast<const __half2 *>(&word)); }
__device__ unsigned word_of(float x, float y) {
    __half2 both = __floats2half2_rn(x, y);
    return *reinterpret_cast<const unsigned *>(&both);
}

// --- root mean square norm of queries and keys, head by head ---

__global__ void qk_norm(const __half *x, const __half *weight, __half *y, float eps) {
    __shared__ float s[128];
    int t = threadIdx.x;
    float v = __half2float(x[blockIdx.x * 128 + t]);
    s[t] = v * v;
    __syncthreads();
    for (int k = 64; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    y[blockIdx.x * 128 + t] = __float2half(v * rsqrtf(s[0] / 128 + eps) * __half2float(weight[t]));
}
__global__ void __launch_bounds__(256) qk_norm_warp(const uint2 *__restrict__ x, const uint2 *__restrict__ weight, uint2 *__restrict__ y, float eps) {
    int head = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    uint2 raw = x[head * 32 + lane], w = weight[lane];
    float2 a = pair_of(raw.x), b = pair_of(raw.y), u = pair_of(w.x), v = pair_of(w.y);
    float scale = rsqrtf(warp_sum(a.x * a.x + a.y * a.y + b.x * b.x + b.y * b.y) / 128 + eps);
    y[head * 32 + lane] = {word_of(a.x * scale * u.x, a.y * scale * u.y), word_of(b.x * scale * v.x, b.y * scale * v.y)};
}
__global__ void __launch_bounds__(256) qk_norm_half_warp(const uint4 *__restrict__ x, const uint4 *__restrict__ weight, uint4 *__restrict__ y, float eps) {
    int at = blockIdx.x * 256 + threadIdx.x;
    uint4 raw = x[at], w = weight[threadIdx.x % 16];
    unsigned xs[4] = {raw.x, raw.y, raw.z, raw.w}, ws[4] = {w.x, w.y, w.z, w.w};
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float2 a = pair_of(xs[k]);
        sum += a.x * a.x + a.y * a.y;
    }
#pragma unroll
    for (int offset = 8; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    float scale = rsqrtf(sum / 128 + eps);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float2 a = pair_of(xs[k]), u = pair_of(ws[k]);
        xs[k] = word_of(a.x * scale * u.x, a.y * scale * u.y);
    }
    y[at] = {xs[0], xs[1], xs[2], xs[3]};
}

Study qk_norms("qk_norm_block_per_head", "models", 327680, "root mean square norm of 327680 heads of 128 halfs",
    "a block of 128 threads a head: a sum with a barrier for each of seven steps, two bytes a thread",
    {{"warp", "a warp a head, 8 bytes a lane, sums by shuffles", {"barriers", "narrow_access"}}, {"half_warp", "16 lanes a head, 16 bytes a lane, sums by shuffles", {"barriers", "narrow_access"}}},
    [](Buffers &b, long heads) -> Sides {
        auto *x = b.random<__half>(heads * 128), *w = b.random<__half>(128), *y = b.output<__half>(heads * 128);
        b.tolerance = 2e-3;
        return {{"flawed", launch(qk_norm, heads, 128, 0, x, w, y, 1e-6f)}, {"warp", launch(qk_norm_warp, heads / 8, 256, 0, (uint2 *)x, (uint2 *)w, (uint2 *)y, 1e-6f)},
            {"half_warp", launch(qk_norm_half_warp, heads / 16, 256, 0, (uint4 *)x, (uint4 *)w, (uint4 *)y, 1e-6f)}};
    });

// --- mean probability of each expert, for the loss that balances them ---

__global__ void expert_means(const float *logits, float *mean, int tokens) {
    int token = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (token >= tokens) return;
    float a = logits[token * 64 + lane], b = logits[token * 64 + lane + 32];
    float top = warp_max(fmaxf(a, b));
    a = __expf(a - top), b = __expf(b - top);
    float scale = 1.f / (warp_sum(a + b) * tokens);
    atomicAdd(&mean[lane], a * scale);
    atomicAdd(&mean[lane + 32], b * scale);
}
__global__ void __launch_bounds__(256) expert_means_shared(const float *__restrict__ logits, float *mean, int tokens) {
    __shared__ float part[64];
    if (threadIdx.x < 64) part[threadIdx.x] = 0.f;
    __syncthreads();
    int lane = threadIdx.x % 32;
    for (int token = blockIdx.x * 8 + threadIdx.x / 32; token < tokens; token += gridDim.x * 8) {
        float a = logits[token * 64 + lane], b = logits[token * 64 + lane + 32];
        float top = warp_max(fmaxf(a, b));
        a = __expf(a - top), b = __expf(b - top);
        float scale = 1.f / (warp_sum(a + b) * tokens);
        atomicAdd(&part[lane], a * scale);
        atomicAdd(&part[lane + 32], b * scale);
    }
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&mean[threadIdx.x], part[threadIdx.x]);
}
__global__ void __launch_bounds__(256) expert_means_registers(const float2 *__restrict__ logits, float *mean, int tokens) {
    __shared__ float part[8][64];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float2 sum{};
#pragma unroll 2
    for (int token = blockIdx.x * 8 + warp; token < tokens; token += gridDim.x * 8) {
        float2 v = logits[token * 32 + lane];
        float top = warp_max(fmaxf(v.x, v.y));
        v.x = __expf(v.x - top), v.y = __expf(v.y - top);
        float scale = 1.f / warp_sum(v.x + v.y);
        sum.x += v.x * scale, sum.y += v.y * scale;
    }
    part[warp][2 * lane] = sum.x, part[warp][2 * lane + 1] = sum.y;
    __syncthreads();
    if (threadIdx.x < 64) {
        float total = 0.f;
#pragma unroll
        for (int w = 0; w < 8; ++w) total += part[w][threadIdx.x];
        atomicAdd(&mean[threadIdx.x], total / tokens);
    }
}

Study expert_balance("balance_loss_atomic_each_expert", "models", 1 << 17, "softmax over 64 experts of 131072 tokens and the mean probability of each expert",
    "every token adds to 64 words in global memory",
    {{"shared", "sums of a block in shared memory, few blocks", {"global_atomics"}}, {"registers", "a lane keeps its two experts' sums in registers over many tokens", {"global_atomics"}}},
    [](Buffers &b, long tokens) -> Sides {
        float *logits = b.random<float>(tokens * 64, -4, 4), *mean = b.output<float>(64, true);
        b.tolerance = 1e-3;
        int n = tokens;
        return {{"flawed", launch(expert_means, tokens / 8, 256, 0, logits, mean, n)}, {"shared", launch(expert_means_shared, 132 * 8, 256, 0, logits, mean, n)},
            {"registers", launch(expert_means_registers, 132 * 8, 256, 0, (float2 *)logits, mean, n)}};
    });

// --- keys of the cache to int8, a scale a vector ---

__global__ void quantise_vectors(const __half *x, signed char *q, float *scale, int vectors) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= vectors) return;
    float top = 0.f;
    for (int d = 0; d < 128; d++) top = fmaxf(top, fabsf(__half2float(x[v * 128 + d])));
    float s = top / 127.f;
    scale[v] = s;
    for (int d = 0; d < 128; d++) q[v * 128 + d] = (signed char)rintf(__half2float(x[v * 128 + d]) / s);
}
template <int LANES>
__global__ void __launch_bounds__(256) quantise_lanes(const uint2 *__restrict__ x, unsigned *__restrict__ q, float *__restrict__ scale) {
    constexpr int EACH = 32 / LANES;  // words of four values a lane
    int lane = threadIdx.x % LANES, v = blockIdx.x * (256 / LANES) + threadIdx.x / LANES;
    float top = 0.f, value[EACH][4];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        uint2 raw;
        if constexpr (EACH == 1) raw = x[v * 32 + lane];
        else {
            uint4 both = reinterpret_cast<const uint4 *>(x)[v * 16 + lane];
            raw = k == 0 ? uint2{both.x, both.y} : uint2{both.z, both.w};
        }
        float2 a = pair_of(raw.x), b = pair_of(raw.y);
        value[k][0] = a.x, value[k][1] = a.y, value[k][2] = b.x, value[k][3] = b.y;
        top = fmaxf(top, fmaxf(fmaxf(fabsf(a.x), fabsf(a.y)), fmaxf(fabsf(b.x), fabsf(b.y))));
    }
#pragma unroll
    for (int offset = LANES / 2; offset; offset /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, offset));
    float inverse = 127.f / top;
    if (lane == 0) scale[v] = top / 127.f;
    unsigned packed[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        packed[k] = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) packed[k] |= (unsigned(__float2int_rn(value[k][i] * inverse)) & 255) << 8 * i;
    }
    if constexpr (EACH == 1) q[v * 32 + lane] = packed[0];
    else reinterpret_cast<uint2 *>(q)[v * 16 + lane] = {packed[0], packed[1]};
}

Study key_cache("key_cache_int8_thread_per_vector", "models", 1 << 18, "262144 vectors of 128 halfs to int8 with a scale each",
    "a thread a vector, 256 bytes apart, read twice; one-byte stores",
    {{"warp", "a warp a vector, 8 bytes a lane", {"uncoalesced_access", "narrow_access", "redundant_loads"}}, {"half_warp", "16 lanes a vector, 16 bytes a lane", {"uncoalesced_access", "narrow_access", "redundant_loads"}}},
    [](Buffers &b, long vectors) -> Sides {
        auto *x = b.random<__half>(vectors * 128);
        auto *q = b.output<signed char>(vectors * 128);
        float *scale = b.output<float>(vectors);
        b.tolerance = 0.01;
        int n = vectors;
        return {{"flawed", launch(quantise_vectors, vectors / 128, 128, 0, x, q, scale, n)}, {"warp", launch(quantise_lanes<32>, vectors / 8, 256, 0, (uint2 *)x, (unsigned *)q, scale)},
            {"half_warp", launch(quantise_lanes<16>, vectors / 16, 256, 0, (uint2 *)x, (unsigned *)q, scale)}};
    });

// --- one query against a cache of keys and values ---

__global__ void decode_warp(const float *q, const __half *keys, const __half *values, float *out, int length) {
    int head = blockIdx.x, lane = threadIdx.x;
    float4 mine = reinterpret_cast<const float4 *>(q)[head * 32 + lane], sum = {0, 0, 0, 0};
    const uint2 *k = reinterpret_cast<const uint2 *>(keys) + size_t(head) * length * 32;
    const uint2 *v = reinterpret_cast<const uint2 *>(values) + size_t(head) * length * 32;
    float top = -1e30f, total = 0.f;
    for (int i = 0; i < length; i++) {
        float2 a = pair_of(k[i * 32 + lane].x), b = pair_of(k[i * 32 + lane].y);
        float score = warp_sum(mine.x * a.x + mine.y * a.y + mine.z * b.x + mine.w * b.y) * 0.088388f;
        float higher = fmaxf(top, score), shrink = __expf(top - higher), weight = __expf(score - higher);
        float2 c = pair_of(v[i * 32 + lane].x), d = pair_of(v[i * 32 + lane].y);
        sum.x = sum.x * shrink + weight * c.x, sum.y = sum.y * shrink + weight * c.y;
        sum.z = sum.z * shrink + weight * d.x, sum.w = sum.w * shrink + weight * d.y;
        total = total * shrink + weight, top = higher;
    }
    reinterpret_cast<float4 *>(out)[head * 32 + lane] = {sum.x / total, sum.y / total, sum.z / total, sum.w / total};
}
template <int WARPS, int KEYS>
__global__ void __launch_bounds__(32 * WARPS) decode_block(const float4 *__restrict__ q, const uint2 *__restrict__ keys, const uint2 *__restrict__ values, float *__restrict__ out, int length) {
    __shared__ float4 sums[WARPS][32];
    __shared__ float tops[WARPS], totals[WARPS];
    int head = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float4 mine = q[head * 32 + lane], sum = {0, 0, 0, 0};
    const uint2 *k = keys + size_t(head) * length * 32 + lane, *v = values + size_t(head) * length * 32 + lane;
    float top = -1e30f, total = 0.f;
    for (int i = warp * KEYS; i < length; i += WARPS * KEYS) {
        uint2 key[KEYS], value[KEYS];
#pragma unroll
        for (int j = 0; j < KEYS; ++j) key[j] = k[(i + j) * 32], value[j] = v[(i + j) * 32];
        float score[KEYS], higher = top;
#pragma unroll
        for (int j = 0; j < KEYS; ++j) {
            float2 a = pair_of(key[j].x), b = pair_of(key[j].y);
            score[j] = warp_sum(mine.x * a.x + mine.y * a.y + mine.z * b.x + mine.w * b.y) * 0.088388f;
            higher = fmaxf(higher, score[j]);
        }
        float shrink = __expf(top - higher);
        sum = {sum.x * shrink, sum.y * shrink, sum.z * shrink, sum.w * shrink}, total *= shrink, top = higher;
#pragma unroll
        for (int j = 0; j < KEYS; ++j) {
            float2 c = pair_of(value[j].x), d = pair_of(value[j].y);
            float weight = __expf(score[j] - top);
            sum.x += weight * c.x, sum.y += weight * c.y, sum.z += weight * d.x, sum.w += weight * d.y, total += weight;
        }
    }
    sums[warp][lane] = sum;
    if (lane == 0) tops[warp] = top, totals[warp] = total;
    __syncthreads();
    if (threadIdx.x >= 128) return;
    float highest = tops[0], result = 0.f, all = 0.f;
    for (int w = 1; w < WARPS; ++w) highest = fmaxf(highest, tops[w]);
    for (int w = 0; w < WARPS; ++w) {
        float weight = __expf(tops[w] - highest);
        result += weight * reinterpret_cast<const float *>(sums[w])[threadIdx.x], all += weight * totals[w];
    }
    out[head * 128 + threadIdx.x] = result / all;
}

Study decode_heads("decode_cache_warp_per_head", "models", 256, "attention of one query over 1024 cached keys and values of 128 halfs, 256 heads of all sequences",
    "one warp a head goes through its keys one after the other: two warps a multiprocessor",
    {{"warps", "16 warps a head, results combined in shared memory", {"small_grid", "memory_latency"}}, {"four_keys", "8 warps a head, each with four keys in flight", {"small_grid", "memory_latency"}}},
    [](Buffers &b, long heads) -> Sides {
        int length = 1024;
        float *q = b.random<float>(heads * 128, -2, 2), *out = b.output<float>(heads * 128);
        auto *k = b.random<__half>(heads * length * 128), *v = b.random<__half>(heads * length * 128);
        b.tolerance = 1e-3;
        return {{"flawed", launch(decode_warp, heads, 32, 0, q, k, v, out, length)}, {"warps", launch(decode_block<16, 1>, heads, 512, 0, (float4 *)q, (uint2 *)k, (uint2 *)v, out, length)},
            {"four_keys", launch(decode_block<8, 4>, heads, 256, 0, (float4 *)q, (uint2 *)k, (uint2 *)v, out, length)}};
    });

// --- factored second moments ---

__global__ void factored(const float *grad, float *row, float *column, int columns) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    float square = grad[r * columns + c] * grad[r * columns + c];
    atomicAdd(&row[r], square);
    atomicAdd(&column[c], square);
}
__global__ void __launch_bounds__(256) factored_tile(const float *__restrict__ grad, float *row, float *column, int columns) {
    int c = blockIdx.x * 256 + threadIdx.x, first = blockIdx.y * 32;
    float down = 0.f;
#pragma unroll 4
    for (int r = first; r < first + 32; ++r) {
        float g = grad[r * columns + c], along = warp_sum(g * g);
        down += g * g;
        if (threadIdx.x % 32 == 0) atomicAdd(&row[r], along);
    }
    atomicAdd(&column[c], down);
}
__global__ void __launch_bounds__(256) factored_wide(const float4 *__restrict__ grad, float *row, float *column, int columns) {
    __shared__ float along[32][8];
    int c = blockIdx.x * 256 + threadIdx.x, first = blockIdx.y * 32;
    float4 down{};
#pragma unroll 4
    for (int r = 0; r < 32; ++r) {
        float4 g = grad[(first + r) * (columns / 4) + c];
        g = {g.x * g.x, g.y * g.y, g.z * g.z, g.w * g.w};
        down = {down.x + g.x, down.y + g.y, down.z + g.z, down.w + g.w};
        float sum = warp_sum(g.x + g.y + g.z + g.w);
        if (threadIdx.x % 32 == 0) along[r][threadIdx.x / 32] = sum;
    }
    atomicAdd(&column[4 * c], down.x), atomicAdd(&column[4 * c + 1], down.y), atomicAdd(&column[4 * c + 2], down.z), atomicAdd(&column[4 * c + 3], down.w);
    __syncthreads();
    float sum = along[threadIdx.x / 8][threadIdx.x % 8];
#pragma unroll
    for (int offset = 4; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (threadIdx.x % 8 == 0) atomicAdd(&row[first + threadIdx.x / 8], sum);
}

Study factored_moments("factored_moments_two_atomics", "models", 2048, "sums of squares over the rows and the columns of a 2048 x 4096 gradient",
    "two atomics an element, 32 lanes of a warp on one word of the rows",
    {{"tile", "a thread sums 32 rows of its column, a warp its part of a row", {"global_atomics"}}, {"wide", "four columns a thread, a block's part of a row in shared memory", {"global_atomics", "narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        int columns = 4096;
        float *grad = b.random<float>(rows * columns), *row = b.output<float>(rows, true), *column = b.output<float>(columns, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(factored, dim3(columns / 256, rows), 256, 0, grad, row, column, columns)}, {"tile", launch(factored_tile, dim3(columns / 256, rows / 32), 256, 0, grad, row, column, columns)},
            {"wide", launch(factored_wide, dim3(columns / 1024, rows / 32), 256, 0, (float4 *)grad, row, column, columns)}};
    });

// --- noise for sampling ---

__global__ void gumbel_best(const float *logits, float *best, int words, float temperature) {
    __shared__ float tops[256];
    float top = -1e30f;
    for (int i = threadIdx.x; i < words; i += blockDim.x) {
        float u = (pairs::hash(blockIdx.x * words + i) >> 8) / 16777216.0;
        float noise = -log(-log(u + 1e-20) + 1e-20);
        top = fmaxf(top, logits[blockIdx.x * words + i] / temperature + noise);
    }
    tops[threadIdx.x] = top;
    __syncthreads();
    for (int k = 128; k > 0; k /= 2) {
        if (threadIdx.x < k) tops[threadIdx.x] = fmaxf(tops[threadIdx.x], tops[threadIdx.x + k]);
        __syncthreads();
    }
    if (threadIdx.x == 0) best[blockIdx.x] = tops[0];
}
template <bool FAST>
__global__ void gumbel_best_float(const float *__restrict__ logits, float *__restrict__ best, int words, float temperature) {
    __shared__ float tops[256];
    float top = -1e30f, inverse = 1.f / temperature;
    auto noise = [](unsigned at) {
        float u = (pairs::hash(at) >> 8) * 5.9604645e-8f, inner = -logf(u + 1e-20f) + 1e-20f;
        return FAST ? -__logf(inner) : -logf(inner);
    };
    if constexpr (FAST) {
        for (int i = threadIdx.x; i < words / 4; i += 256) {
            float4 x = reinterpret_cast<const float4 *>(logits)[blockIdx.x * (words / 4) + i];
            unsigned at = blockIdx.x * words + 4 * i;
            top = fmaxf(fmaxf(top, fmaxf(x.x * inverse + noise(at), x.y * inverse + noise(at + 1))), fmaxf(x.z * inverse + noise(at + 2), x.w * inverse + noise(at + 3)));
        }
    } else
        for (int i = threadIdx.x; i < words; i += 256) top = fmaxf(top, logits[blockIdx.x * words + i] * inverse + noise(blockIdx.x * words + i));
    tops[threadIdx.x] = top;
    __syncthreads();
    for (int k = 128; k > 0; k /= 2) {
        if (threadIdx.x < k) tops[threadIdx.x] = fmaxf(tops[threadIdx.x], tops[threadIdx.x + k]);
        __syncthreads();
    }
    if (threadIdx.x == 0) best[blockIdx.x] = tops[0];
}

Study gumbels("gumbel_scores_double_logs", "models", 512, "best of 32000 words with Gumbel noise, 512 rows",
    "constants without f make both logarithms and the random number double precision",
    {{"floats", "single precision throughout", {"double_precision"}}, {"fast", "single precision, the outer logarithm fast, four words a load", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long rows) -> Sides {
        int words = 32000;
        float *logits = b.random<float>(rows * words, -8, 8), *best = b.output<float>(rows);
        b.tolerance = 1e-3;
        auto run = [&](auto kernel) { return launch(kernel, rows, 256, 0, logits, best, words, 0.8f); };
        return {{"flawed", run(gumbel_best)}, {"floats", run(gumbel_best_float<false>)}, {"fast", run(gumbel_best_float<true>)}};
    });

// --- sums of embeddings in bags ---

__global__ void bag_atomics(const int *index, const int *offset, const float *table, float *out, int bags) {
    int i = blockIdx.x, low = 0, high = bags;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (offset[middle] <= i) low = middle;
        else high = middle;
    }
    atomicAdd(&out[low * 128 + threadIdx.x], table[size_t(index[i]) * 128 + threadIdx.x]);
}
__global__ void __launch_bounds__(256) bag_warp(const int *__restrict__ index, const int *__restrict__ offset, const float4 *__restrict__ table, float4 *__restrict__ out) {
    int bag = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    float4 sum{};
#pragma unroll 4
    for (int i = offset[bag]; i < offset[bag + 1]; ++i) {
        float4 v = table[size_t(index[i]) * 32 + lane];
        sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
    }
    out[bag * 32 + lane] = sum;
}
__global__ void __launch_bounds__(128) bag_block(const int *__restrict__ index, const int *__restrict__ offset, const float *__restrict__ table, float *__restrict__ out) {
    int bag = blockIdx.x, last = offset[bag + 1];
    float sum = 0.f;
#pragma unroll 4
    for (int i = offset[bag]; i < last; ++i) sum += table[size_t(index[i]) * 128 + threadIdx.x];
    out[bag * 128 + threadIdx.x] = sum;
}

Study bags_of_embeddings("embedding_bag_atomic_each_index", "models", 65536, "sums of 1 to 15 embeddings of 128 floats, 65536 bags",
    "a block an index: each thread searches the bag by bisection and adds to it atomically",
    {{"warp", "a warp a bag, sums in registers, 16 bytes a lane", {"global_atomics", "memory_latency"}}, {"block", "a block a bag, a thread a feature, sums in registers", {"global_atomics", "memory_latency"}}},
    [](Buffers &b, long bags) -> Sides {
        std::vector<int> offset(bags + 1), index;
        for (long g = 0; g < bags; ++g) {
            for (unsigned k = 0; k <= pairs::hash(g) % 15; ++k) index.push_back(pairs::hash(index.size() + 77) % 131072);
            offset[g + 1] = int(index.size());
        }
        int *at = b.copy(index), *first = b.copy(offset), n = bags;
        float *table = b.random<float>(131072 * 128), *out = b.output<float>(bags * 128, true);
        return {{"flawed", launch(bag_atomics, unsigned(index.size()), 128, 0, at, first, table, out, n)}, {"warp", launch(bag_warp, bags / 8, 256, 0, at, first, (float4 *)table, (float4 *)out)},
            {"block", launch(bag_block, bags, 128, 0, at, first, table, out)}};
    });

// --- relative positions in buckets ---

__device__ int bucket_of(int distance) {
    if (distance < 16) return max(distance, 0);
    return min(31, 16 + int(logf(distance / 16.f) / logf(8.f) * 16.f));
}
__global__ void position_bias(const float *table, __half *out, int length, int heads) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y, h = blockIdx.z;
    out[(size_t(h) * length + i) * length + j] = __float2half(table[bucket_of(i - j) * heads + h]);
}
__global__ void __launch_bounds__(256) position_bias_heads(const float *__restrict__ table, __half2 *__restrict__ out, int length) {
    int j = (blockIdx.x * 256 + threadIdx.x) * 2, i = blockIdx.y;
    const float4 *left = reinterpret_cast<const float4 *>(table + bucket_of(i - j) * 16), *right = reinterpret_cast<const float4 *>(table + bucket_of(i - j - 1) * 16);
#pragma unroll
    for (int h = 0; h < 16; h += 4) {
        float4 a = left[h / 4], b = right[h / 4];
        size_t at = ((size_t(h) * length + i) * length + j) / 2, step = size_t(length) * length / 2;
        out[at] = __floats2half2_rn(a.x, b.x), out[at + step] = __floats2half2_rn(a.y, b.y);
        out[at + 2 * step] = __floats2half2_rn(a.z, b.z), out[at + 3 * step] = __floats2half2_rn(a.w, b.w);
    }
}
__global__ void __launch_bounds__(256) position_bias_table(const float *__restrict__ table, uint4 *__restrict__ out, int length, int heads) {
    __shared__ float bias[132];  // beyond a distance of 128 all is one bucket
    int h = blockIdx.y;
    if (threadIdx.x < 132) bias[threadIdx.x] = table[bucket_of(threadIdx.x) * heads + h];
    __syncthreads();
    for (int r = 0; r < 8; ++r) {
        int i = blockIdx.x * 8 + r, j = threadIdx.x * 8;
        auto at = [&](int k) { return bias[min(max(i - j - k, 0), 131)]; };
        out[(size_t(h) * length + i) * (length / 8) + threadIdx.x] = {word_of(at(0), at(1)), word_of(at(2), at(3)), word_of(at(4), at(5)), word_of(at(6), at(7))};
    }
}

Study position_buckets("position_buckets_log_each_head", "models", 2048, "bias by buckets of relative positions, 2048 x 2048 positions of 16 heads, to half",
    "the bucket's logarithm and division are computed anew for each of the heads; two bytes a store",
    {{"heads", "a thread serves two positions of all heads: the bucket once", {"expensive_math", "narrow_access"}}, {"table", "biases by distance in shared memory, eight positions a store", {"expensive_math", "narrow_access"}}},
    [](Buffers &b, long length) -> Sides {
        float *table = b.random<float>(32 * 16);
        auto *out = b.output<__half>(length * length * 16);
        int n = length;
        b.tolerance = 1e-3;
        return {{"flawed", launch(position_bias, dim3(n / 256, n, 16), 256, 0, table, out, n, 16)}, {"heads", launch(position_bias_heads, dim3(n / 512, n), 256, 0, table, (__half2 *)out, n)},
            {"table", launch(position_bias_table, dim3(n / 8, 16), 256, 0, table, (uint4 *)out, n, 16)}};
    });

// --- windows of an image, shifted ---

__global__ void windows(const __half *x, __half *y, int size, int channels, int window, int shift, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int c = i % channels, rest = i / channels;
    int dx = rest % window, dy = rest / window % window;
    rest /= window * window;
    int wx = rest % (size / window), wy = rest / (size / window) % (size / window), image = rest / (size / window) / (size / window);
    int row = (wy * window + dy + shift) % size, column = (wx * window + dx + shift) % size;
    y[i] = x[((image * size + row) * size + column) * channels + c];
}
template <int SIZE, int CHANNELS, int WINDOW>
__global__ void __launch_bounds__(256) windows_known(const uint4 *__restrict__ x, uint4 *__restrict__ y, int shift, int total) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= total) return;
    int c = i % (CHANNELS / 8), rest = i / (CHANNELS / 8), dx = rest % WINDOW, dy = rest / WINDOW % WINDOW;
    rest /= WINDOW * WINDOW;
    int wx = rest % (SIZE / WINDOW), wy = rest / (SIZE / WINDOW) % (SIZE / WINDOW), image = rest / (SIZE / WINDOW * (SIZE / WINDOW));
    int row = wy * WINDOW + dy + shift, column = wx * WINDOW + dx + shift;
    row -= row >= SIZE ? SIZE : 0, column -= column >= SIZE ? SIZE : 0;
    y[i] = x[((image * SIZE + row) * SIZE + column) * (CHANNELS / 8) + c];
}
__global__ void __launch_bounds__(96) windows_grid(const uint4 *__restrict__ x, uint4 *__restrict__ y, int size, int shift) {
    int c = threadIdx.x % 12, dx = threadIdx.x / 12, image = blockIdx.z, wide = size / 7;  // eight tokens of 96 channels
    if (dx >= 7) return;
    int column = blockIdx.x * 7 + dx + shift;
    column -= column >= size ? size : 0;
#pragma unroll
    for (int dy = 0; dy < 7; ++dy) {
        int row = blockIdx.y * 7 + dy + shift;
        row -= row >= size ? size : 0;
        y[(((image * wide + blockIdx.y) * wide + blockIdx.x) * 49 + dy * 7 + dx) * 12 + c] = x[((image * size + row) * size + column) * 12 + c];
    }
}

Study window_partition("window_partition_divisions", "models", 64, "shifted windows of 7 x 7 out of 64 images of 112 x 112 with 96 channels, halfs",
    "the flat index is taken apart by eight divisions by sizes known at run time, for two bytes a thread",
    {{"known", "sizes known to the compiler, eight channels a thread", {"integer_arithmetic", "narrow_access"}}, {"grid", "windows from the grid, eight channels and a column of tokens a thread", {"integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long images) -> Sides {
        int total = images * 112 * 112 * 96;
        auto *x = b.random<__half>(total), *y = b.output<__half>(total);
        return {{"flawed", launch(windows, blocks(total, 256), 256, 0, x, y, 112, 96, 7, 3, total)}, {"known", launch(windows_known<112, 96, 7>, blocks(total / 8, 256), 256, 0, (uint4 *)x, (uint4 *)y, 3, total / 8)},
            {"grid", launch(windows_grid, dim3(16, 16, images), 96, 0, (uint4 *)x, (uint4 *)y, 112, 3)}};
    });

// --- linear attention: a state a head ---

__global__ void linear_state(const float *q, const float *k, const float *v, float *o, int length) {
    __shared__ float state[64][64], qs[64], ks[64];
    int j = threadIdx.x;
    for (int i = 0; i < 64; i++) state[i][j] = 0.f;
    for (int t = 0; t < length; t++) {
        int at = (blockIdx.x * length + t) * 64 + j;
        qs[j] = q[at], ks[j] = k[at];
        float mine = v[at], sum = 0.f;
        __syncthreads();
        for (int i = 0; i < 64; i++) {
            state[i][j] += ks[i] * mine;
            sum += qs[i] * state[i][j];
        }
        o[at] = sum;
        __syncthreads();
    }
}
template <int PARTS>
__global__ void __launch_bounds__(64 * PARTS) linear_state_registers(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v, float *__restrict__ o, int length) {
    constexpr int ROWS = 64 / PARTS;
    __shared__ float4 qs[2][16], ks[2][16];
    __shared__ float sums[2][PARTS][64];
    int j = threadIdx.x % 64, part = threadIdx.x / 64;
    float state[ROWS] = {};
    for (int t = 0; t < length; ++t) {
        int at = (blockIdx.x * length + t) * 64 + j, turn = t % 2;
        if (part == 0) reinterpret_cast<float *>(qs[turn])[j] = q[at], reinterpret_cast<float *>(ks[turn])[j] = k[at];
        float mine = v[at], sum = 0.f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ROWS / 4; ++i) {
            float4 key = ks[turn][part * (ROWS / 4) + i], query = qs[turn][part * (ROWS / 4) + i];
            state[4 * i] += key.x * mine, state[4 * i + 1] += key.y * mine, state[4 * i + 2] += key.z * mine, state[4 * i + 3] += key.w * mine;
            sum += query.x * state[4 * i] + query.y * state[4 * i + 1] + query.z * state[4 * i + 2] + query.w * state[4 * i + 3];
        }
        if constexpr (PARTS == 1) o[at] = sum;
        else {
            sums[turn][part][j] = sum;
            __syncthreads();
            if (part == 0) {
#pragma unroll
                for (int p = 1; p < PARTS; ++p) sum += sums[turn][p][j];
                o[at] = sum;
            }
        }
    }
}

Study linear_attention("linear_attention_state_in_shared", "models", 1056, "linear attention of 128 steps with a state of 64 x 64 floats, 1056 heads",
    "every product reads and writes its word of the state in shared memory, and reads key and query there",
    {{"registers", "a column of the state in a thread's registers", {"shared_memory_bandwidth"}}, {"quarters", "a quarter of a column in a thread's registers, four times the threads", {"shared_memory_bandwidth", "instruction_latency"}}},
    [](Buffers &b, long heads) -> Sides {
        int length = 128;
        size_t n = heads * length * 64;
        float *q = b.random<float>(n), *k = b.random<float>(n), *v = b.random<float>(n), *o = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(linear_state, heads, 64, 0, q, k, v, o, length)}, {"registers", launch(linear_state_registers<1>, heads, 64, 0, q, k, v, o, length)},
            {"quarters", launch(linear_state_registers<4>, heads, 256, 0, q, k, v, o, length)}};
    });

// --- divergence between a teacher's and a student's words ---

template <typename Combine>
__device__ float block_value(float x, float *part, Combine combine) {
    for (int offset = 16; offset; offset /= 2) x = combine(x, __shfl_xor_sync(~0u, x, offset));
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    x = part[0];
    for (int w = 1; w < int(blockDim.x / 32); ++w) x = combine(x, part[w]);
    return x;
}
__device__ float plus(float x, float y) { return x + y; }
__global__ void distil(const float *student, const float *teacher, float *loss, int words) {
    __shared__ float part[32];
    const float *s = student + size_t(blockIdx.x) * words, *t = teacher + size_t(blockIdx.x) * words;
    float top_s = -1e30f, top_t = -1e30f, sum_s = 0.f, sum_t = 0.f, sum = 0.f;
    for (int i = threadIdx.x; i < words; i += blockDim.x) top_s = fmaxf(top_s, s[i]);
    top_s = block_value(top_s, part, fmaxf);
    for (int i = threadIdx.x; i < words; i += blockDim.x) top_t = fmaxf(top_t, t[i]);
    top_t = block_value(top_t, part, fmaxf);
    for (int i = threadIdx.x; i < words; i += blockDim.x) sum_s += expf(s[i] - top_s);
    sum_s = block_value(sum_s, part, plus);
    for (int i = threadIdx.x; i < words; i += blockDim.x) sum_t += expf(t[i] - top_t);
    sum_t = block_value(sum_t, part, plus);
    float shift = top_s + logf(sum_s) - top_t - logf(sum_t);
    for (int i = threadIdx.x; i < words; i += blockDim.x) sum += expf(t[i] - top_t) / sum_t * (t[i] - s[i] + shift);
    sum = block_value(sum, part, plus);
    if (threadIdx.x == 0) loss[blockIdx.x] = sum;
}
__global__ void __launch_bounds__(256) distil_two(const float4 *__restrict__ student, const float4 *__restrict__ teacher, float *__restrict__ loss, int quads) {
    __shared__ float part[32];
    const float4 *s = student + size_t(blockIdx.x) * quads, *t = teacher + size_t(blockIdx.x) * quads;
    float top_s = -1e30f, top_t = -1e30f, sum_s = 0.f, sum_t = 0.f, sum = 0.f;
    for (int i = threadIdx.x; i < quads; i += 256) {
        float4 a = s[i], b = t[i];
        top_s = fmaxf(top_s, fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w))), top_t = fmaxf(top_t, fmaxf(fmaxf(b.x, b.y), fmaxf(b.z, b.w)));
    }
    top_s = block_value(top_s, part, fmaxf), top_t = block_value(top_t, part, fmaxf);
    for (int i = threadIdx.x; i < quads; i += 256) {
        float4 a = s[i], b = t[i];
        auto add = [&](float x, float y) {
            float weight = __expf(y - top_t);
            sum_s += __expf(x - top_s), sum_t += weight, sum += weight * (y - x);
        };
        add(a.x, b.x), add(a.y, b.y), add(a.z, b.z), add(a.w, b.w);
    }
    sum_s = block_value(sum_s, part, plus), sum_t = block_value(sum_t, part, plus), sum = block_value(sum, part, plus);
    if (threadIdx.x == 0) loss[blockIdx.x] = sum / sum_t + top_s + logf(sum_s) - top_t - logf(sum_t);
}
__global__ void __launch_bounds__(256) distil_one(const float4 *__restrict__ student, const float4 *__restrict__ teacher, float *__restrict__ loss, int quads) {
    __shared__ float part[32];
    const float4 *s = student + size_t(blockIdx.x) * quads, *t = teacher + size_t(blockIdx.x) * quads;
    float top_s = -1e30f, top_t = -1e30f, sum_s = 0.f, sum_t = 0.f, sum = 0.f;
    for (int i = threadIdx.x; i < quads; i += 256) {  // what was summed shrinks where the largest value grows
        float4 a = s[i], b = t[i];
        float new_s = fmaxf(top_s, fmaxf(fmaxf(a.x, a.y), fmaxf(a.z, a.w))), new_t = fmaxf(top_t, fmaxf(fmaxf(b.x, b.y), fmaxf(b.z, b.w)));
        float shrink = __expf(top_t - new_t);
        sum_s *= __expf(top_s - new_s), sum_t *= shrink, sum *= shrink, top_s = new_s, top_t = new_t;
        auto add = [&](float x, float y) {
            float weight = __expf(y - top_t);
            sum_s += __expf(x - top_s), sum_t += weight, sum += weight * (y - x);
        };
        add(a.x, b.x), add(a.y, b.y), add(a.z, b.z), add(a.w, b.w);
    }
    float all_s = block_value(top_s, part, fmaxf), all_t = block_value(top_t, part, fmaxf), shrink = __expf(top_t - all_t);
    sum_s = block_value(sum_s * __expf(top_s - all_s), part, plus), sum_t = block_value(sum_t * shrink, part, plus), sum = block_value(sum * shrink, part, plus);
    if (threadIdx.x == 0) loss[blockIdx.x] = sum / sum_t + all_s + logf(sum_s) - all_t - logf(sum_t);
}

Study distillation("distillation_loss_five_passes", "models", 4096, "divergence of a student's from a teacher's distribution of 16384 words, 4096 rows",
    "five passes over rows in memory: two for maxima, two for sums, one for the loss",
    {{"two", "maxima of both in one pass, all sums in another, 16 bytes a load", {"redundant_loads", "narrow_access"}}, {"one", "one pass whose sums shrink as the maxima grow", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        int words = 16384;
        float *s = b.random<float>(rows * words, -3, 3), *t = b.random<float>(rows * words, -3, 3), *loss = b.output<float>(rows);
        b.tolerance = 1e-3;
        return {{"flawed", launch(distil, rows, 256, 0, s, t, loss, words)}, {"two", launch(distil_two, rows, 256, 0, (float4 *)s, (float4 *)t, loss, words / 4)},
            {"one", launch(distil_one, rows, 256, 0, (float4 *)s, (float4 *)t, loss, words / 4)}};
    });

// --- a convolution of 1 x 1 ---

__global__ void pointwise(const float *x, const float *w, float *y, int inputs, int outputs) {
    int o = threadIdx.x, p = blockIdx.x;
    float sum = 0.f;
    for (int c = 0; c < inputs; c++) sum += x[p * inputs + c] * w[o * inputs + c];
    y[p * outputs + o] = fmaxf(sum, 0.f);
}
__global__ void __launch_bounds__(128) pointwise_turned(const float4 *__restrict__ x, const float *__restrict__ wt, float *__restrict__ y) {
    int o = threadIdx.x, p = blockIdx.x * 8;
    float sum[8] = {};
    for (int c = 0; c < 16; ++c) {
        float w[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) w[k] = wt[(4 * c + k) * 128 + o];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            float4 v = x[(p + i) * 16 + c];
            sum[i] += v.x * w[0] + v.y * w[1] + v.z * w[2] + v.w * w[3];
        }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) y[(p + i) * 128 + o] = fmaxf(sum[i], 0.f);
}
__global__ void __launch_bounds__(256) pointwise_tile(const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y) {
    extern __shared__ float tile[];
    float *ws = tile, *xs = tile + 64 * 132;  // weights [64][132], pixels [32][64]
    int t = threadIdx.x, p = blockIdx.x * 32;
    for (int i = t; i < 128 * 64; i += 256) ws[i % 64 * 132 + i / 64] = w[i];
    for (int i = t; i < 32 * 64; i += 256) xs[i] = x[p * 64 + i];
    __syncthreads();
    int o = t % 32 * 4, first = t / 32 * 4;
    float sum[4][4] = {};
#pragma unroll 4
    for (int c = 0; c < 64; ++c) {
        float4 weight = *reinterpret_cast<const float4 *>(&ws[c * 132 + o]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float v = xs[(first + i) * 64 + c];
            sum[i][0] += v * weight.x, sum[i][1] += v * weight.y, sum[i][2] += v * weight.z, sum[i][3] += v * weight.w;
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        *reinterpret_cast<float4 *>(&y[(p + first + i) * 128 + o]) = {fmaxf(sum[i][0], 0.f), fmaxf(sum[i][1], 0.f), fmaxf(sum[i][2], 0.f), fmaxf(sum[i][3], 0.f)};
}

Study pointwise_conv("pointwise_conv_weights_by_output", "models", 32768, "convolution of 1 x 1 from 64 to 128 channels, 32768 pixels, channels last",
    "neighbouring threads read weights 256 bytes apart, all of them again for each pixel",
    {{"turned", "weights stored turned, eight pixels a thread", {"uncoalesced_access", "redundant_loads"}}, {"tile", "weights and pixels in shared memory, 4 x 4 outputs a thread", {"uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long pixels) -> Sides {
        std::vector<float> w(128 * 64), turned(128 * 64);
        for (int i = 0; i < 128 * 64; ++i) turned[i % 64 * 128 + i / 64] = w[i] = (pairs::hash(i) >> 8) / 8388608.f - 1.f;
        float *x = b.random<float>(pixels * 64), *weights = b.copy(w), *wt = b.copy(turned), *y = b.output<float>(pixels * 128);
        b.tolerance = 1e-3;
        return {{"flawed", launch(pointwise, pixels, 128, 0, x, weights, y, 64, 128)}, {"turned", launch(pointwise_turned, pixels / 8, 128, 0, (float4 *)x, wt, y)},
            {"tile", launch(pointwise_tile, pixels / 32, 256, (64 * 132 + 32 * 64) * sizeof(float), x, weights, y)}};
    });

// --- sums of an int8 product back to int8 ---

__global__ void requantise(const int *sum, const double *scale, signed char *out, int channels, int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    double v = round(sum[i] * scale[i % channels]) + 3;
    out[i] = (signed char)fmin(fmax(v, -128.0), 127.0);
}
__device__ int to_byte(int sum, float scale) { return min(max(__float2int_rn(sum * scale) + 3, -128), 127); }
__global__ void requantise_float(const int *__restrict__ sum, const float *__restrict__ scale, signed char *__restrict__ out, int channels) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (c < channels) out[row * channels + c] = to_byte(sum[row * channels + c], scale[c]);
}
__global__ void requantise_four(const int4 *__restrict__ sum, const float4 *__restrict__ scale, char4 *__restrict__ out, int quads) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * 4;
    if (c >= quads) return;
    float4 s = scale[c];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        int4 v = sum[(first + r) * quads + c];
        out[(first + r) * quads + c] = make_char4(to_byte(v.x, s.x), to_byte(v.y, s.y), to_byte(v.z, s.z), to_byte(v.w, s.w));
    }
}

Study requantised("requantise_double_scale", "models", 8192, "8192 x 3072 sums of an int8 product to int8 with a scale for each channel",
    "scales in double precision: conversions, product, rounding and limits too",
    {{"floats", "scales in single precision, channels from the grid", {"double_precision", "integer_arithmetic"}}, {"four", "single precision, four channels a load, the scales kept for four rows", {"double_precision", "integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        int channels = 3072;
        std::vector<double> s(channels);
        std::vector<float> f(channels);
        for (int c = 0; c < channels; ++c) f[c] = float(s[c] = 0.001 + pairs::hash(c) % 1000 * 1e-6);
        int *sum = b.random<int>(rows * channels, -60000, 60000);
        double *scale = b.copy(s);
        float *floats = b.copy(f);
        auto *out = b.output<signed char>(rows * channels);
        b.tolerance = 0.01;
        return {{"flawed", launch(requantise, blocks(rows * channels, 256), 256, 0, sum, scale, out, channels, int(rows * channels))},
            {"floats", launch(requantise_float, dim3(channels / 256, rows), 256, 0, sum, floats, out, channels)},
            {"four", launch(requantise_four, dim3(channels / 4 / 128, rows / 4), 128, 0, (int4 *)sum, (float4 *)floats, (char4 *)out, channels / 4)}};
    });

// --- weights of -1, 0 and 1, five in a byte ---

__global__ void ternary(const unsigned char *packed, signed char *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = packed[i];
    for (int k = 0; k < 5; k++) {
        out[5 * i + k] = v % 3 - 1;
        v /= 3;
    }
}
__global__ void __launch_bounds__(256) ternary_words(const unsigned *__restrict__ packed, unsigned *__restrict__ out) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned w = packed[i], part[5] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        unsigned v = w >> 8 * j & 255;
#pragma unroll
        for (int k = 0; k < 5; ++k) {
            unsigned next = v * 171 >> 9;  // v / 3 for v below 256
            part[(5 * j + k) / 4] |= (v - 3 * next + 255 & 255) << (5 * j + k) % 4 * 8;
            v = next;
        }
    }
#pragma unroll
    for (int k = 0; k < 5; ++k) out[5 * i + k] = part[k];
}
__global__ void __launch_bounds__(256) ternary_staged(const unsigned *__restrict__ packed, uint4 *__restrict__ out) {
    __shared__ __align__(16) unsigned stage[1280];
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned w = packed[i], part[5] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        unsigned v = w >> 8 * j & 255;
#pragma unroll
        for (int k = 0; k < 5; ++k) {
            unsigned next = v * 171 >> 9;
            part[(5 * j + k) / 4] |= (v - 3 * next + 255 & 255) << (5 * j + k) % 4 * 8;
            v = next;
        }
    }
#pragma unroll
    for (int k = 0; k < 5; ++k) stage[5 * threadIdx.x + k] = part[k];
    __syncthreads();
    for (int k = threadIdx.x; k < 320; k += 256) out[blockIdx.x * 320 + k] = reinterpret_cast<const uint4 *>(stage)[k];
}

Study ternaries("ternary_weights_byte_stores", "models", 1 << 24, "84 million weights of -1, 0 and 1 out of 16 million bytes",
    "a byte a thread in, five stores of a byte out, lanes five bytes apart",
    {{"words", "four bytes a thread in, five words out", {"narrow_access", "uncoalesced_access"}}, {"staged", "the same through shared memory, 16 bytes a store", {"narrow_access", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *packed = b.random<unsigned char>(n, 0, 243);
        auto *out = b.output<signed char>(n * 5);
        b.tolerance = 0;
        return {{"flawed", launch(ternary, n / 256, 256, 0, packed, out, int(n))}, {"words", launch(ternary_words, n / 1024, 256, 0, (unsigned *)packed, (unsigned *)out)},
            {"staged", launch(ternary_staged, n / 1024, 256, 0, (unsigned *)packed, (uint4 *)out)}};
    });

// --- places of tokens among those of their expert ---

__global__ void ranks_warp(const int *expert, int *rank, int *count, int tokens) {
    int lane = threadIdx.x, seen = 0;
    for (int i = lane; i < tokens; i += 32) {
        bool mine = expert[i] == int(blockIdx.x);
        unsigned votes = __ballot_sync(~0u, mine);
        if (mine) rank[i] = seen + __popc(votes & ((1u << lane) - 1));
        seen += __popc(votes);
    }
    if (lane == 0) count[blockIdx.x] = seen;
}
__global__ void __launch_bounds__(1024) ranks_block(const int *__restrict__ expert, int *__restrict__ rank, int *__restrict__ count, int tokens) {
    __shared__ int part[2][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, seen = 0, turn = 0;
    for (int i = threadIdx.x; i < tokens; i += 1024, turn ^= 1) {
        bool mine = expert[i] == int(blockIdx.x);
        unsigned votes = __ballot_sync(~0u, mine);
        if (lane == 0) part[turn][warp] = __popc(votes);
        __syncthreads();
        int c = part[turn][lane], before = __reduce_add_sync(~0u, lane < warp ? c : 0);
        if (mine) rank[i] = seen + before + __popc(votes & ((1u << lane) - 1));
        seen += __reduce_add_sync(~0u, c);
    }
    if (threadIdx.x == 0) count[blockIdx.x] = seen;
}
__global__ void __launch_bounds__(1024) ranks_chunks(const int *__restrict__ expert, int *__restrict__ rank, int *__restrict__ count, int tokens) {
    __shared__ int part[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, each = tokens / 32, first = warp * each, seen = 0;
#pragma unroll 4
    for (int i = first + lane; i < first + each; i += 32) seen += expert[i] == int(blockIdx.x);
    seen = __reduce_add_sync(~0u, seen);
    if (lane == 0) part[warp] = seen;
    __syncthreads();
    int all = __reduce_add_sync(~0u, part[lane]);
    seen = __reduce_add_sync(~0u, lane < warp ? part[lane] : 0);
#pragma unroll 4
    for (int i = first + lane; i < first + each; i += 32) {
        bool mine = expert[i] == int(blockIdx.x);
        unsigned votes = __ballot_sync(~0u, mine);
        if (mine) rank[i] = seen + __popc(votes & ((1u << lane) - 1));
        seen += __popc(votes);
    }
    if (threadIdx.x == 0) count[blockIdx.x] = all;
}

Study expert_ranks("expert_ranks_warp_per_expert", "models", 1 << 17, "the place of each of 131072 tokens among those of its expert, 64 experts",
    "one warp an expert looks through all tokens: 64 warps on the whole GPU",
    {{"block", "1024 threads an expert, warps' counts in shared memory", {"small_grid", "memory_latency"}}, {"chunks", "32 warps an expert with a stretch each, counted first", {"small_grid", "memory_latency"}}},
    [](Buffers &b, long tokens) -> Sides {
        int *expert = b.random<int>(tokens, 0, 64), *rank = b.output<int>(tokens), *count = b.output<int>(64), n = tokens;
        b.tolerance = 0;
        return {{"flawed", launch(ranks_warp, 64, 32, 0, expert, rank, count, n)}, {"block", launch(ranks_block, 64, 1024, 0, expert, rank, count, n)},
            {"chunks", launch(ranks_chunks, 64, 1024, 0, expert, rank, count, n)}};
    });

// --- capped logits ---

__global__ void soft_cap(const __half *x, __half *y, float cap, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __float2half(cap * tanhf(__half2float(x[i]) / cap));
}
__device__ float fast_tanh(float x) {
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__global__ void soft_cap_approximate(const __half2 *__restrict__ x, __half2 *__restrict__ y, float cap, float inverse) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float2 v = __half22float2(x[i]);
    y[i] = __floats2half2_rn(cap * fast_tanh(v.x * inverse), cap * fast_tanh(v.y * inverse));
}
__global__ void soft_cap_exponential(const uint4 *__restrict__ x, uint4 *__restrict__ y, float cap, float twice) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 v = x[i];
    auto both = [&](unsigned w) {
        float2 p = pair_of(w);
        return word_of(cap - __fdividef(2.f * cap, 1.f + __expf(p.x * twice)), cap - __fdividef(2.f * cap, 1.f + __expf(p.y * twice)));
    };
    y[i] = {both(v.x), both(v.y), both(v.z), both(v.w)};
}

Study soft_caps("soft_cap_precise_tanh", "models", 1 << 26, "64 million logits in half, capped by a hyperbolic tangent",
    "the library's tanh and a division, for two bytes a thread",
    {{"approximate", "the instruction for tanh, two logits a thread", {"expensive_math", "narrow_access"}}, {"exponential", "a fast exponential and division, eight logits a thread", {"expensive_math", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *x = b.random<__half>(n, -60, 60), *y = b.output<__half>(n);
        b.tolerance = 3e-3;
        return {{"flawed", launch(soft_cap, n / 512, 512, 0, x, y, 30.f, int(n))}, {"approximate", launch(soft_cap_approximate, n / 512, 256, 0, (__half2 *)x, (__half2 *)y, 30.f, 1 / 30.f)},
            {"exponential", launch(soft_cap_exponential, n / 2048, 256, 0, (uint4 *)x, (uint4 *)y, 30.f, 2 / 30.f)}};
    });

// --- a step of Adagrad on records ---

struct Parameter {
    float weight, grad, sum, rate, decay;
};
__global__ void adagrad_records(const Parameter *p, Parameter *next, __half *copy, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float g = p[i].grad + p[i].decay * p[i].weight;
    next[i].sum = p[i].sum + g * g;
    next[i].weight = p[i].weight - p[i].rate * g * rsqrtf(next[i].sum + 1e-8f);
    copy[i] = __float2half(next[i].weight);
}
__global__ void adagrad_planes(const float *__restrict__ p, float *__restrict__ next, __half *__restrict__ copy, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float w = p[i], g = p[n + i] + p[4 * n + i] * w, sum = p[2 * n + i] + g * g;
    next[2 * n + i] = sum;
    next[i] = w = w - p[3 * n + i] * g * rsqrtf(sum + 1e-8f);
    copy[i] = __float2half(w);
}
__global__ void __launch_bounds__(256) adagrad_planes_four(const float4 *__restrict__ p, float4 *__restrict__ next, uint2 *__restrict__ copy, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 w = p[i], g = p[n + i], s = p[2 * n + i], r = p[3 * n + i], d = p[4 * n + i];
    auto step = [](float &w, float &s, float g, float r, float d) {
        g += d * w, s += g * g, w -= r * g * rsqrtf(s + 1e-8f);
    };
    step(w.x, s.x, g.x, r.x, d.x), step(w.y, s.y, g.y, r.y, d.y), step(w.z, s.z, g.z, r.z, d.z), step(w.w, s.w, g.w, r.w, d.w);
    next[2 * n + i] = s, next[i] = w;
    copy[i] = {word_of(w.x, w.y), word_of(w.z, w.w)};
}

Study adagrads("adagrad_records_of_five", "models", 1 << 23, "a step of Adagrad on 8 million parameters with a rate and a decay each, and their copy in half",
    "records of five floats: lanes 20 bytes apart",
    {{"planes", "a plane for each field", {"uncoalesced_access"}}, {"four", "planes, four parameters a thread", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *records = b.random<float>(n * 5, 0.001, 1), *planes = b.allocate<float>(n * 5), *next = b.allocate<float>(n * 5);
        std::vector<float> host(n * 5), turned(n * 5);
        CHECK(cudaMemcpy(host.data(), records, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
        for (long i = 0; i < n * 5; ++i) turned[i % 5 * n + i / 5] = host[i];
        CHECK(cudaMemcpy(planes, turned.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
        auto *copy = b.output<__half>(n);
        b.tolerance = 2e-3;
        int count = n;
        return {{"flawed", launch(adagrad_records, n / 256, 256, 0, (Parameter *)records, (Parameter *)next, copy, count)}, {"planes", launch(adagrad_planes, n / 256, 256, 0, planes, next, copy, count)},
            {"four", launch(adagrad_planes_four, n / 1024, 256, 0, (float4 *)planes, (float4 *)next, (uint2 *)copy, count / 4)}};
    });

// --- sound: largest magnitude of each row ---

__global__ void __launch_bounds__(512) row_magnitudes(const uint4 *__restrict__ x, float *__restrict__ top, int words) {
    __shared__ float part[16];
    __half2 most = __float2half2_rn(0.f);
#pragma unroll 4
    for (int i = threadIdx.x; i < words; i += 512) {
        uint4 v = x[size_t(blockIdx.x) * words + i];
        const __half2 *h = reinterpret_cast<const __half2 *>(&v);
        most = __hmax2(__hmax2(most, __hmax2(__habs2(h[0]), __habs2(h[1]))), __hmax2(__habs2(h[2]), __habs2(h[3])));
    }
    float mine = warp_max(fmaxf(__low2float(most), __high2float(most)));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x < 32) {
        mine = warp_max(part[threadIdx.x % 16]);
        if (threadIdx.x == 0) top[blockIdx.x] = mine;
    }
}

Study magnitudes("sound_row_magnitudes", "models", 8192, "largest magnitude of each row of 8192 x 16384 halfs", "", {},
    [](Buffers &b, long rows) -> Sides {
        auto *x = b.random<__half>(rows * 16384);
        float *top = b.output<float>(rows);
        return {{"sound", launch(row_magnitudes, rows, 512, 0, (uint4 *)x, top, 2048)}};
    });

}  // namespace
