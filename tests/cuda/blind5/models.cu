// Pieces of models and of what trains and serves them. Each kernel has one weakness and one or two ways out of it.
#include <cfloat>

#include "../pairs/pair.cuh"

namespace {

// --- causal attention within a window ---

constexpr int WINDOW = 128, HEAD_DIM = 64;

__global__ void window_attention(const __half *q, const __half *k, const __half *v, __half *out, int length, float scale) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = blockIdx.x * (blockDim.x / 32) + warp;
    size_t head = size_t(blockIdx.y) * length;
    float2 mine = __half22float2(reinterpret_cast<const __half2 *>(q + (head + row) * HEAD_DIM)[lane]);
    float top = -FLT_MAX, total = 0.f;
    float2 acc{0.f, 0.f};
    for (int key = max(0, row - WINDOW + 1); key <= row; ++key) {
        float2 kk = __half22float2(reinterpret_cast<const __half2 *>(k + (head + key) * HEAD_DIM)[lane]);
        float s = warp_sum(mine.x * kk.x + mine.y * kk.y) * scale;
        float higher = fmaxf(top, s), shrink = __expf(top - higher), p = __expf(s - higher);
        float2 vv = __half22float2(reinterpret_cast<const __half2 *>(v + (head + key) * HEAD_DIM)[lane]);
        total = total * shrink + p;
        acc.x = acc.x * shrink + p * vv.x;
        acc.y = acc.y * shrink + p * vv.y;
        top = higher;
    }
    reinterpret_cast<__half2 *>(out + (head + row) * HEAD_DIM)[lane] = __floats2half2_rn(acc.x / total, acc.y / total);
}

// 32 queries a block; a lane takes a key when scores are made, two features when values are mixed.
__global__ void __launch_bounds__(256) window_attention_keys_by_lane(
    const __half *q, const __half *k, const __half *v, __half *out, int length, float scale) {
    __shared__ __half2 keys[32][33], values[32][32], queries[32][32];
    __shared__ float weights[8][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.x * 32;
    size_t head = size_t(blockIdx.y) * length;
    for (int r = warp; r < 32; r += 8) queries[r][lane] = reinterpret_cast<const __half2 *>(q + (head + first + r) * HEAD_DIM)[lane];
    float top[4], total[4];
    float2 acc[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) top[i] = -1e30f, total[i] = 0.f, acc[i] = {0.f, 0.f};
    for (int base = max(0, first - WINDOW); base <= first; base += 32) {
        __syncthreads();
        for (int r = warp; r < 32; r += 8) {
            keys[r][lane] = reinterpret_cast<const __half2 *>(k + (head + base + r) * HEAD_DIM)[lane];
            values[r][lane] = reinterpret_cast<const __half2 *>(v + (head + base + r) * HEAD_DIM)[lane];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int local = warp * 4 + i, row = first + local, key = base + lane;
            bool seen = key <= row && key > row - WINDOW;
            float s = 0.f;
#pragma unroll 8
            for (int d = 0; d < 32; ++d) {
                float2 a = __half22float2(queries[local][d]), b = __half22float2(keys[lane][d]);
                s += a.x * b.x + a.y * b.y;
            }
            s = seen ? s * scale : -1e30f;
            float higher = fmaxf(top[i], warp_max(s)), shrink = __expf(top[i] - higher), p = seen ? __expf(s - higher) : 0.f;
            total[i] = total[i] * shrink + warp_sum(p);
            top[i] = higher;
            __syncwarp();
            weights[warp][lane] = p;
            __syncwarp();
            acc[i].x *= shrink, acc[i].y *= shrink;
#pragma unroll 8
            for (int j = 0; j < 32; ++j) {
                float w = weights[warp][j];
                float2 vv = __half22float2(values[j][lane]);
                acc[i].x += w * vv.x, acc[i].y += w * vv.y;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        reinterpret_cast<__half2 *>(out + (head + first + warp * 4 + i) * HEAD_DIM)[lane] =
            __floats2half2_rn(acc[i].x / total[i], acc[i].y / total[i]);
}

// The warp's 32 lanes as four groups of eight: four keys at a time, eight features a lane.
__global__ void window_attention_four_keys(const uint4 *q, const uint4 *k, const uint4 *v, uint4 *out, int length, float scale) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 8, piece = lane % 8;
    int row = blockIdx.x * (blockDim.x / 32) + warp;
    size_t head = size_t(blockIdx.y) * length;
    float mine[8], acc[8];
    auto open = [](uint4 raw, float *to) {
        const __half2 *h = reinterpret_cast<const __half2 *>(&raw);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float2 f = __half22float2(h[i]);
            to[2 * i] = f.x, to[2 * i + 1] = f.y;
        }
    };
    open(q[(head + row) * 8 + piece], mine);
#pragma unroll
    for (int i = 0; i < 8; ++i) acc[i] = 0.f;
    float top = -1e30f, total = 0.f;
    for (int base = max(0, row - WINDOW + 1); base <= row; base += 4) {
        int key = base + group;
        bool seen = key <= row;
        size_t at = (head + min(key, row)) * 8 + piece;
        uint4 kraw = k[at], vraw = v[at];
        float kk[8], vv[8], s = 0.f;
        open(kraw, kk);
        open(vraw, vv);
#pragma unroll
        for (int i = 0; i < 8; ++i) s += mine[i] * kk[i];
        for (int o = 4; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
        s = seen ? s * scale : -1e30f;
        float higher = fmaxf(top, s), shrink = __expf(top - higher), p = seen ? __expf(s - higher) : 0.f;
        total = total * shrink + p;
#pragma unroll
        for (int i = 0; i < 8; ++i) acc[i] = acc[i] * shrink + p * vv[i];
        top = higher;
    }
    float best = top;
    for (int o = 8; o < 32; o *= 2) best = fmaxf(best, __shfl_xor_sync(~0u, best, o));
    float factor = __expf(top - best);
    total *= factor;
    for (int o = 8; o < 32; o *= 2) total += __shfl_xor_sync(~0u, total, o);
    __half2 result[4];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        acc[i] *= factor;
        for (int o = 8; o < 32; o *= 2) acc[i] += __shfl_xor_sync(~0u, acc[i], o);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) result[i] = __floats2half2_rn(acc[2 * i] / total, acc[2 * i + 1] / total);
    if (group == 0) out[(head + row) * 8 + piece] = *reinterpret_cast<uint4 *>(result);
}

Study window_attentions("sliding_window_warp_per_query", "models", 4096,
    "attention of 16 heads of 4096 queries over the 128 keys before each, 64 half values a key",
    "a warp walks its query's keys one by one: a reduction over lanes and a rescaling each, neighbours fetch the same keys",
    {{"keys_by_lane", "32 queries a block share keys in shared memory, a lane a key", {"instruction_latency", "redundant_loads"}},
        {"four_keys", "four keys at a time, eight features a lane by 16-byte loads", {"instruction_latency", "narrow_access"}}},
    [](Buffers &b, long length) -> Sides {
        long n = 16 * length * HEAD_DIM;
        auto *q = b.random<__half>(n), *k = b.random<__half>(n), *v = b.random<__half>(n), *out = b.output<__half>(n);
        b.tolerance = 5e-3;
        return {{"flawed", launch(window_attention, dim3(length / 8, 16), 256, 0, q, k, v, out, length, 0.5f)},
            {"keys_by_lane", launch(window_attention_keys_by_lane, dim3(length / 32, 16), 256, 0, q, k, v, out, length, 0.5f)},
            {"four_keys", launch(window_attention_four_keys, dim3(length / 8, 16), 256, 0, (uint4 *)q, (uint4 *)k, (uint4 *)v,
                              (uint4 *)out, length, 0.5f)}};
    });

// --- threshold of nucleus sampling ---

__device__ float sum_of_block(float v, float *scratch) {
    v = warp_sum(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
    __syncthreads();
    float s = 0.f;
    for (int w = 0; w < blockDim.x / 32; ++w) s += scratch[w];
    return s;
}
__global__ void nucleus_threshold(const float *probs, float *thresholds, int vocabulary, float keep) {
    __shared__ float scratch[32];
    const float *row = probs + size_t(blockIdx.x) * vocabulary;
    float low = 0.f, high = 1.f;
    for (int step = 0; step < 20; ++step) {
        float middle = 0.5f * (low + high), mass = 0.f;
        for (int i = threadIdx.x; i < vocabulary; i += blockDim.x)
            if (row[i] >= middle) mass += row[i];
        mass = sum_of_block(mass, scratch);
        if (mass >= keep) low = middle;
        else high = middle;
    }
    if (threadIdx.x == 0) thresholds[blockIdx.x] = low;
}
template <int EACH>
__global__ void __launch_bounds__(512) nucleus_threshold_registers(const float4 *probs, float *thresholds, float keep) {
    __shared__ float scratch[32];
    const float4 *row = probs + size_t(blockIdx.x) * EACH * 512;
    float4 v[EACH];
#pragma unroll
    for (int i = 0; i < EACH; ++i) v[i] = row[threadIdx.x + 512 * i];
    float low = 0.f, high = 1.f;
    for (int step = 0; step < 20; ++step) {
        float middle = 0.5f * (low + high), mass = 0.f;
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            mass += v[i].x >= middle ? v[i].x : 0.f;
            mass += v[i].y >= middle ? v[i].y : 0.f;
            mass += v[i].z >= middle ? v[i].z : 0.f;
            mass += v[i].w >= middle ? v[i].w : 0.f;
        }
        mass = sum_of_block(mass, scratch);
        if (mass >= keep) low = middle;
        else high = middle;
    }
    if (threadIdx.x == 0) thresholds[blockIdx.x] = low;
}
// Three cuts a sweep: a quarter of the interval remains, two halvings at once.
__global__ void nucleus_threshold_three_cuts(const float4 *probs, float *thresholds, int quads, float keep) {
    __shared__ float scratch[3][32];
    const float4 *row = probs + size_t(blockIdx.x) * quads;
    float low = 0.f, high = 1.f;
    for (int step = 0; step < 10; ++step) {
        float quarter = 0.25f * (high - low), mass[3] = {0.f, 0.f, 0.f};
        for (int i = threadIdx.x; i < quads; i += blockDim.x) {
            float4 v = row[i];
#pragma unroll
            for (int c = 0; c < 3; ++c) {
                float cut = low + (c + 1) * quarter;
                mass[c] += (v.x >= cut ? v.x : 0.f) + (v.y >= cut ? v.y : 0.f) + (v.z >= cut ? v.z : 0.f) + (v.w >= cut ? v.w : 0.f);
            }
        }
        __syncthreads();
#pragma unroll
        for (int c = 0; c < 3; ++c) {
            float s = warp_sum(mass[c]);
            if (threadIdx.x % 32 == 0) scratch[c][threadIdx.x / 32] = s;
        }
        __syncthreads();
        int passed = 0;
#pragma unroll
        for (int c = 0; c < 3; ++c) {
            float s = 0.f;
            for (int w = 0; w < blockDim.x / 32; ++w) s += scratch[c][w];
            passed += s >= keep;
        }
        low += passed * quarter;
        high = low + quarter;
    }
    if (threadIdx.x == 0) thresholds[blockIdx.x] = low;
}

Study nucleus_thresholds("nucleus_threshold_by_bisection", "models", 1024,
    "probability above which 1024 rows of 16384 words hold half of the mass, by 20 halvings",
    "each halving reads the whole row again, a value a load",
    {{"registers", "the row is read once, 32 values a thread kept in registers", {"redundant_loads", "narrow_access"}},
        {"three_cuts", "three cuts a sweep: ten sweeps, 16 bytes a load", {"redundant_loads", "narrow_access", "barriers"}}},
    [](Buffers &b, long rows) -> Sides {
        float *probs = b.random<float>(rows * 16384, 0, 1), *out = b.output<float>(rows);
        b.tolerance = 1e-3;
        return {{"flawed", launch(nucleus_threshold, rows, 512, 0, probs, out, 16384, 4096.f)},
            {"registers", launch(nucleus_threshold_registers<8>, rows, 512, 0, (float4 *)probs, out, 4096.f)},
            {"three_cuts", launch(nucleus_threshold_three_cuts, rows, 512, 0, (float4 *)probs, out, 4096, 4096.f)}};
    });

// --- row sums of gradient times output, before the backward pass of attention ---

__global__ void attention_delta(const __half *out, const __half *grad, float *delta, int dim) {
    __shared__ float part[128];
    int t = threadIdx.x;
    size_t at = size_t(blockIdx.x) * dim + t;
    part[t] = __half2float(out[at]) * __half2float(grad[at]);
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) delta[blockIdx.x] = part[0];
}
__global__ void attention_delta_warp(const __half2 *out, const __half2 *grad, float *delta, int rows) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float s = 0.f;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float2 a = __half22float2(out[size_t(row) * 64 + lane + 32 * i]), g = __half22float2(grad[size_t(row) * 64 + lane + 32 * i]);
        s += a.x * g.x + a.y * g.y;
    }
    s = warp_sum(s);
    if (lane == 0) delta[row] = s;
}
__global__ void attention_delta_sixteen(const uint4 *__restrict__ out, const uint4 *__restrict__ grad, float *__restrict__ delta, int rows) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= rows * 16) return;
    uint4 a = out[at], g = grad[at];
    const __half2 *x = reinterpret_cast<const __half2 *>(&a), *y = reinterpret_cast<const __half2 *>(&g);
    float s = 0.f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float2 u = __half22float2(x[i]), w = __half22float2(y[i]);
        s += u.x * w.x + u.y * w.y;
    }
    for (int o = 8; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
    if (at % 16 == 0) delta[at / 16] = s;
}

Study attention_deltas("attention_delta_block_per_row", "models", 1 << 18,
    "products of output and its gradient summed over rows of 128 half values, for attention's backward pass",
    "a block a row: two bytes a thread, seven rounds of a tree with a barrier each",
    {{"warp", "a warp a row, four values a lane, shuffles", {"barriers", "narrow_access"}},
        {"sixteen", "16 lanes a row, 16 bytes a load", {"barriers", "narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        auto *out = b.random<__half>(rows * 128), *grad = b.random<__half>(rows * 128);
        float *delta = b.output<float>(rows);
        b.tolerance = 1e-3;
        return {{"flawed", launch(attention_delta, rows, 128, 0, out, grad, delta, 128)},
            {"warp", launch(attention_delta_warp, rows / 8, 256, 0, (__half2 *)out, (__half2 *)grad, delta, rows)},
            {"sixteen", launch(attention_delta_sixteen, rows / 16, 256, 0, (uint4 *)out, (uint4 *)grad, delta, rows)}};
    });

// --- a step of Lion on half weights ---

__global__ void lion_step(const __half *weights, const __half *grad, const float *momentum, __half *out, float *next, float lr, float decay, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float w = __half2float(weights[i]), g = __half2float(grad[i]), m = momentum[i];
    float c = 0.9f * m + 0.1f * g;
    float sign = c > 0.f ? 1.f : c < 0.f ? -1.f : 0.f;
    out[i] = __float2half(w - lr * (sign + decay * w));
    next[i] = 0.99f * m + 0.01f * g;
}
__global__ void lion_step_four(const uint2 *__restrict__ weights, const uint2 *__restrict__ grad, const float4 *__restrict__ momentum,
    uint2 *__restrict__ out, float4 *__restrict__ next, float lr, float decay, int quads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    uint2 wraw = weights[i], graw = grad[i];
    float4 m = momentum[i];
    float2 w01 = __half22float2(*reinterpret_cast<__half2 *>(&wraw.x)), w23 = __half22float2(*reinterpret_cast<__half2 *>(&wraw.y));
    float2 g01 = __half22float2(*reinterpret_cast<__half2 *>(&graw.x)), g23 = __half22float2(*reinterpret_cast<__half2 *>(&graw.y));
    auto step = [&](float w, float g, float mm) {
        float c = 0.9f * mm + 0.1f * g;
        return w - lr * ((c > 0.f ? 1.f : c < 0.f ? -1.f : 0.f) + decay * w);
    };
    __half2 a = __floats2half2_rn(step(w01.x, g01.x, m.x), step(w01.y, g01.y, m.y));
    __half2 b = __floats2half2_rn(step(w23.x, g23.x, m.z), step(w23.y, g23.y, m.w));
    out[i] = {*reinterpret_cast<unsigned *>(&a), *reinterpret_cast<unsigned *>(&b)};
    next[i] = {0.99f * m.x + 0.01f * g01.x, 0.99f * m.y + 0.01f * g01.y, 0.99f * m.z + 0.01f * g23.x, 0.99f * m.w + 0.01f * g23.y};
}

Study lion_steps("lion_step_value_each", "models", 1 << 25, "a step of the Lion optimiser: half weights and gradients, float momentum",
    "a value a thread: half weights and gradients by two bytes",
    {{"four", "four values a thread: 8 and 16 bytes an access", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *w = b.random<__half>(n), *g = b.random<__half>(n), *out = b.output<__half>(n);
        float *m = b.random<float>(n), *next = b.output<float>(n);
        b.tolerance = 2e-2;
        return {{"flawed", launch(lion_step, n / 256, 256, 0, w, g, m, out, next, 1e-3f, 0.1f, n)},
            {"four", launch(lion_step_four, n / 1024, 256, 0, (uint2 *)w, (uint2 *)g, (float4 *)m, (uint2 *)out, (float4 *)next, 1e-3f, 0.1f, n / 4)}};
    });

// --- a forest of decision trees ---

constexpr int FEATURES = 32, DEPTH = 6, NODES = 64;  // a full tree: 63 inner nodes, 64 leaves

__global__ void forest(const float *rows, const int *feature, const float *threshold, const int *left, const int *right,
    const float *leaves, float *scores, int count, int trees) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= count) return;
    float score = 0.f;
    for (int t = 0; t < trees; ++t) {
        int node = 0;
        while (node < NODES - 1) {
            int at = t * NODES + node;
            node = rows[size_t(r) * FEATURES + feature[at]] <= threshold[at] ? left[at] : right[at];
        }
        score += leaves[t * NODES + node - (NODES - 1)];
    }
    scores[r] = score;
}
struct __align__(16) TreeNode {
    float threshold;
    int feature, left, right;
};
__global__ void forest_nodes(const float *rows, const TreeNode *nodes, const float *leaves, float *scores, int count, int trees) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= count) return;
    float score = 0.f;
    for (int t = 0; t < trees; ++t) {
        int node = 0;
        while (node < NODES - 1) {
            int4 raw = __ldg(reinterpret_cast<const int4 *>(nodes + t * NODES + node));
            node = rows[size_t(r) * FEATURES + raw.y] <= __int_as_float(raw.x) ? raw.z : raw.w;
        }
        score += leaves[t * NODES + node - (NODES - 1)];
    }
    scores[r] = score;
}
// Children follow from the index; rows and trees lie in shared memory, two trees are walked at a time.
__global__ void __launch_bounds__(128) forest_shared(
    const float *rows, const int *feature, const float *threshold, const float *leaves, float *scores, int count, int trees) {
    __shared__ float mine[128 * 33];
    __shared__ int2 inner[8 * NODES];
    __shared__ float ends[8 * NODES];
    int first = blockIdx.x * 128;
    for (int i = threadIdx.x; i < 128 * FEATURES; i += 128) mine[i / FEATURES * 33 + i % FEATURES] = rows[size_t(first) * FEATURES + i];
    float score = 0.f;
    for (int base = 0; base < trees; base += 8) {
        __syncthreads();
        for (int i = threadIdx.x; i < 8 * NODES; i += 128) {
            inner[i] = {feature[base * NODES + i], __float_as_int(threshold[base * NODES + i])};
            ends[i] = leaves[base * NODES + i];
        }
        __syncthreads();
        for (int t = 0; t < 8; t += 2) {
            int a = 0, b = 0;
#pragma unroll
            for (int d = 0; d < DEPTH; ++d) {
                int2 u = inner[t * NODES + a], w = inner[(t + 1) * NODES + b];
                a = 2 * a + 1 + !(mine[threadIdx.x * 33 + u.x] <= __int_as_float(u.y));
                b = 2 * b + 1 + !(mine[threadIdx.x * 33 + w.x] <= __int_as_float(w.y));
            }
            score += ends[t * NODES + a - (NODES - 1)];
            score += ends[(t + 1) * NODES + b - (NODES - 1)];
        }
    }
    scores[first + threadIdx.x] = score;
}

Study forests("forest_nodes_in_four_arrays", "models", 1 << 18,
    "scores of 262144 rows of 32 features by a forest of 128 trees of six levels",
    "each step waits for a feature's number, the row's value, a threshold and a child out of separate arrays",
    {{"nodes", "a node is one record of 16 bytes", {"uncoalesced_access", "memory_latency"}},
        {"shared", "rows and trees in shared memory, children by index, two trees at a time", {"uncoalesced_access", "memory_latency"}}},
    [](Buffers &b, long count) -> Sides {
        int trees = 128;
        std::vector<int> feature(trees * NODES), left(trees * NODES), right(trees * NODES);
        std::vector<float> threshold(trees * NODES);
        std::vector<TreeNode> nodes(trees * NODES);
        for (int i = 0; i < trees * NODES; ++i) {
            int node = i % NODES;
            feature[i] = hash(i) % FEATURES, threshold[i] = (hash(i + 77777) % 2000 / 1000.f - 1.f) * 0.5f;
            left[i] = 2 * node + 1, right[i] = 2 * node + 2;
            nodes[i] = {threshold[i], feature[i], left[i], right[i]};
        }
        float *rows = b.random<float>(count * FEATURES), *scores = b.output<float>(count), *leaves = b.random<float>(trees * NODES, 0, 1);
        int *f = b.copy(feature), *l = b.copy(left), *r = b.copy(right);
        float *th = b.copy(threshold);
        TreeNode *packed = b.copy(nodes);
        return {{"flawed", launch(forest, count / 128, 128, 0, rows, f, th, l, r, leaves, scores, count, trees)},
            {"nodes", launch(forest_nodes, count / 128, 128, 0, rows, packed, leaves, scores, count, trees)},
            {"shared", launch(forest_shared, count / 128, 128, 0, rows, f, th, leaves, scores, count, trees)}};
    });

// --- distances of product-quantised vectors ---

__global__ void code_distances(const unsigned char *codes, const float *table, float *distances, int vectors) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= vectors) return;
    float d = 0.f;
    for (int m = 0; m < 32; ++m) d += table[m * 256 + codes[size_t(v) * 32 + m]];
    distances[v] = d;
}
__global__ void code_distances_shared(const unsigned char *codes, const float *table, float *distances, int vectors) {
    extern __shared__ float lookup[];
    for (int i = threadIdx.x; i < 32 * 256; i += blockDim.x) lookup[i] = table[i];
    __syncthreads();
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < vectors; v += gridDim.x * blockDim.x) {
        float d = 0.f;
#pragma unroll 8
        for (int m = 0; m < 32; ++m) d += lookup[m * 256 + codes[size_t(v) * 32 + m]];
        distances[v] = d;
    }
}
__global__ void code_distances_wide(const uint4 *__restrict__ codes, const float *__restrict__ table, float *__restrict__ distances, int vectors) {
    extern __shared__ float lookup[];
    for (int i = threadIdx.x; i < 32 * 256; i += blockDim.x) lookup[i] = table[i];
    __syncthreads();
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < vectors; v += gridDim.x * blockDim.x) {
        uint4 raw[2] = {codes[size_t(v) * 2], codes[size_t(v) * 2 + 1]};
        const unsigned *words = reinterpret_cast<const unsigned *>(raw);
        float d[4] = {};
#pragma unroll
        for (int w = 0; w < 8; ++w)
#pragma unroll
            for (int k = 0; k < 4; ++k) d[k] += lookup[(4 * w + k) * 256 + (words[w] >> (8 * k) & 0xff)];
        distances[v] = (d[0] + d[1]) + (d[2] + d[3]);
    }
}

Study code_distance_tables("product_codes_tables_in_global", "data", 1 << 22,
    "distances of 4194304 vectors of 32 byte codes, by tables of 256 floats for each of the 32 parts",
    "codes by single bytes, 32 bytes apart between lanes; table look-ups through L1",
    {{"shared", "tables in shared memory, a block for many vectors", {"uncoalesced_access"}},
        {"wide", "tables in shared memory, codes by two 16-byte loads", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long vectors) -> Sides {
        auto *codes = b.random<unsigned char>(vectors * 32, 0, 256);
        float *table = b.random<float>(32 * 256, 0, 1), *distances = b.output<float>(vectors);
        return {{"flawed", launch(code_distances, vectors / 256, 256, 0, codes, table, distances, vectors)},
            {"shared", launch(code_distances_shared, 6 * multiprocessors(), 256, 32768, codes, table, distances, vectors)},
            {"wide", launch(code_distances_wide, 6 * multiprocessors(), 256, 32768, (uint4 *)codes, table, distances, vectors)}};
    });

}  // namespace
