// Norms, losses, optimisers, attention parts, pooling, columns and logs, words, graphs, keys, and what people looked at.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "../pairs/pair.cuh"

namespace {

float chance(unsigned seed) { return (hash(seed) >> 8) / 16777216.0f; }
// What the first `some` elements hold, over and over.
template <typename T>
void repeat(std::vector<T> &values, size_t some) {
    for (size_t i = some; i < values.size(); i += some) std::copy_n(values.begin(), std::min(some, values.size() - i), values.begin() + i);
}

// --- gradients of a layer norm's scale and shift ---

constexpr int WIDTH = 1024;

struct LayerNorm {
    const float *upstream, *x;     // rows x WIDTH
    const float *mean, *inverse;   // of each row; inverse: one by the deviation
    float *scale, *shift;          // gradients
    int rows;
};

__global__ void __launch_bounds__(256) scale_gradients(LayerNorm p) {
    __shared__ float2 parts[8];
    const int column = blockIdx.x;
    float scale = 0, shift = 0;
    for (int row = threadIdx.x; row < p.rows; row += blockDim.x) {
        const size_t at = static_cast<size_t>(row) * WIDTH + column;
        const float g = p.upstream[at];
        scale += g * (p.x[at] - p.mean[row]) * p.inverse[row];
        shift += g;
    }
    scale = warp_sum(scale), shift = warp_sum(shift);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = make_float2(scale, shift);
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < 8; k++) scale += parts[k].x, shift += parts[k].y;
        p.scale[column] = scale, p.shift[column] = shift;
    }
}

// 32 columns and a part of the rows a block.
__global__ void __launch_bounds__(256) scale_gradients_columns(LayerNorm p) {
    __shared__ float2 parts[8][32];
    const int column = blockIdx.x * 32 + threadIdx.x, some = p.rows / gridDim.y, end = (blockIdx.y + 1) * some;
    float scale = 0, shift = 0;
#pragma unroll 4
    for (int row = blockIdx.y * some + threadIdx.y; row < end; row += 8) {
        const size_t at = static_cast<size_t>(row) * WIDTH + column;
        const float g = p.upstream[at];
        scale += g * (p.x[at] - p.mean[row]) * p.inverse[row];
        shift += g;
    }
    parts[threadIdx.y][threadIdx.x] = make_float2(scale, shift);
    __syncthreads();
    if (threadIdx.y) return;
    for (int k = 1; k < 8; k++) scale += parts[k][threadIdx.x].x, shift += parts[k][threadIdx.x].y;
    atomicAdd(p.scale + column, scale);
    atomicAdd(p.shift + column, shift);
}

// Eight columns a block, all rows.
__global__ void __launch_bounds__(1024) scale_gradients_octets(LayerNorm p) {
    __shared__ float2 parts[32][8];
    const int column = blockIdx.x * 8 + threadIdx.x % 8;
    float scale = 0, shift = 0;
#pragma unroll 4
    for (int row = threadIdx.x / 8; row < p.rows; row += 128) {
        const size_t at = static_cast<size_t>(row) * WIDTH + column;
        const float g = p.upstream[at];
        scale += g * (p.x[at] - p.mean[row]) * p.inverse[row];
        shift += g;
    }
    for (int apart = 8; apart < 32; apart *= 2) {
        scale += __shfl_xor_sync(~0u, scale, apart);
        shift += __shfl_xor_sync(~0u, shift, apart);
    }
    if (threadIdx.x % 32 < 8) parts[threadIdx.x / 32][threadIdx.x % 8] = make_float2(scale, shift);
    __syncthreads();
    if (threadIdx.x >= 8) return;
    for (int k = 1; k < 32; k++) scale += parts[k][threadIdx.x].x, shift += parts[k][threadIdx.x].y;
    p.scale[column] = scale, p.shift[column] = shift;
}

Study layer_norm("layer_norm_scale_gradients_a_column_a_block", "training", 8192, "gradients of scale and shift of a layer norm of width 1024 over 8192 rows",
    "each block sums one column, so that lanes read floats 4 KiB apart",
    {{"columns", "a column a lane, some rows a block, sums added with atomics", {"uncoalesced_access"}}, {"octets", "eight neighbouring columns a block, a full sector for each row", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        LayerNorm p{b.random<float>(n * WIDTH), b.random<float>(n * WIDTH, -2, 2), b.random<float>(n, -0.1, 0.1), b.random<float>(n, 0.8, 1.2),
            b.output<float>(WIDTH, true), b.output<float>(WIDTH, true), static_cast<int>(n)};
        b.tolerance = 1e-3;
        return {{"flawed", launch(scale_gradients, WIDTH, 256, 0, p)}, {"columns", launch(scale_gradients_columns, dim3(WIDTH / 32, 32), dim3(32, 8), 0, p)},
            {"octets", launch(scale_gradients_octets, WIDTH / 8, 1024, 0, p)}};
    });

// --- cross-entropy of every pixel of a segmented picture ---

constexpr int KINDS = 150, PLANE = 512 * 256;

__global__ void __launch_bounds__(256)
    pixel_losses(const float *__restrict__ scores, const unsigned char *__restrict__ labels, float *__restrict__ gradient, float *__restrict__ losses, float share) {
    const int pixel = blockIdx.x * 256 + threadIdx.x;
    const size_t base = static_cast<size_t>(blockIdx.y) * KINDS * PLANE + pixel;
    const float *from = scores + base;
    float most = -INFINITY;
    for (int k = 0; k < KINDS; k++) most = fmaxf(most, from[static_cast<size_t>(k) * PLANE]);
    float sum = 0;
    for (int k = 0; k < KINDS; k++) sum += __expf(from[static_cast<size_t>(k) * PLANE] - most);
    const int label = labels[blockIdx.y * PLANE + pixel];
    const float inverse = 1 / sum;
    for (int k = 0; k < KINDS; k++)
        gradient[base + static_cast<size_t>(k) * PLANE] = share * (__expf(from[static_cast<size_t>(k) * PLANE] - most) * inverse - (k == label ? 1.0f : 0.0f));
    losses[blockIdx.y * PLANE + pixel] = most + __logf(sum) - from[static_cast<size_t>(label) * PLANE];
}

// Maximum and sum in one go.
__global__ void __launch_bounds__(256)
    pixel_losses_running(const float *__restrict__ scores, const unsigned char *__restrict__ labels, float *__restrict__ gradient, float *__restrict__ losses, float share) {
    const int pixel = blockIdx.x * 256 + threadIdx.x;
    const size_t base = static_cast<size_t>(blockIdx.y) * KINDS * PLANE + pixel;
    const float *from = scores + base;
    float most = from[0], sum = 1;
#pragma unroll 8
    for (int k = 1; k < KINDS; k++) {
        const float score = from[static_cast<size_t>(k) * PLANE], higher = fmaxf(most, score);
        sum = sum * __expf(most - higher) + __expf(score - higher);
        most = higher;
    }
    const int label = labels[blockIdx.y * PLANE + pixel];
    const float inverse = 1 / sum;
    for (int k = 0; k < KINDS; k++)
        gradient[base + static_cast<size_t>(k) * PLANE] = share * (__expf(from[static_cast<size_t>(k) * PLANE] - most) * inverse - (k == label ? 1.0f : 0.0f));
    losses[blockIdx.y * PLANE + pixel] = most + __logf(sum) - from[static_cast<size_t>(label) * PLANE];
}

// Eight warps share the classes of 32 pixels and keep their scores.
__global__ void __launch_bounds__(256)
    pixel_losses_kept(const float *__restrict__ scores, const unsigned char *__restrict__ labels, float *__restrict__ gradient, float *__restrict__ losses, float share) {
    constexpr int EACH = (KINDS + 7) / 8;
    __shared__ float maxima[8][32], sums[8][32], wanted[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, pixel = blockIdx.x * 32 + lane;
    const size_t base = static_cast<size_t>(blockIdx.y) * KINDS * PLANE + pixel;
    const int label = labels[blockIdx.y * PLANE + pixel];
    float own[EACH], most = -INFINITY, sum = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int k = i * 8 + warp;
        own[i] = k < KINDS ? scores[base + static_cast<size_t>(k) * PLANE] : -INFINITY;
        most = fmaxf(most, own[i]);
    }
    maxima[warp][lane] = most;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < 8; w++) most = fmaxf(most, maxima[w][lane]);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        if (i * 8 + warp == label) wanted[lane] = own[i];
        own[i] = __expf(own[i] - most);
        sum += own[i];
    }
    sums[warp][lane] = sum;
    __syncthreads();
    sum = 0;
#pragma unroll
    for (int w = 0; w < 8; w++) sum += sums[w][lane];
    const float inverse = 1 / sum;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int k = i * 8 + warp;
        if (k < KINDS) gradient[base + static_cast<size_t>(k) * PLANE] = share * (own[i] * inverse - (k == label ? 1.0f : 0.0f));
    }
    if (warp == 0) losses[blockIdx.y * PLANE + pixel] = most + __logf(sum) - wanted[lane];
}

Study segments("segmentation_loss_scores_read_three_times", "computer vision", 4, "cross-entropy and its gradient for four pictures of 512 x 256 pixels and 150 classes",
    "a pixel's 150 scores are read for their maximum, for the sum of exponentials and again for the gradient",
    {{"kept", "eight threads a pixel, each keeping a part of its scores in registers", {"redundant_loads"}}, {"running", "maximum and sum in one pass, with the sum rescaled", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const auto *scores = b.random<float>(n * KINDS * PLANE, -6, 6);
        std::vector<unsigned char> labels(n * PLANE);
        for (long i = 0; i < n * PLANE; i++) {
            const float x = chance(i / 16);
            labels[i] = static_cast<unsigned char>(x * x * KINDS);
        }
        const auto *wanted = b.copy(labels);
        auto *gradient = b.output<float>(n * KINDS * PLANE), *losses = b.output<float>(n * PLANE);
        const float share = 1.0f / (n * PLANE);
        return {{"flawed", launch(pixel_losses, dim3(PLANE / 256, n), 256, 0, scores, wanted, gradient, losses, share)},
            {"kept", launch(pixel_losses_kept, dim3(PLANE / 32, n), 256, 0, scores, wanted, gradient, losses, share)},
            {"running", launch(pixel_losses_running, dim3(PLANE / 256, n), 256, 0, scores, wanted, gradient, losses, share)}};
    });

// --- a step of AdamW ---

struct Moments {
    float *weights, *first, *second;
    const __half *gradient;
    float rate, beta1, beta2, decay, scale;
    int step;
    float correction1, correction2;  // of the moments; of this step
};
__device__ __forceinline__ void descend(const Moments &s, long i, float correction1, float correction2) {
    const float g = __half2float(s.gradient[i]) * s.scale;
    const float m = s.beta1 * s.first[i] + (1 - s.beta1) * g, v = s.beta2 * s.second[i] + (1 - s.beta2) * g * g;
    const float w = s.weights[i] * (1 - s.rate * s.decay);
    s.first[i] = m, s.second[i] = v;
    s.weights[i] = w - s.rate * (m / correction1) / (sqrtf(v / correction2) + 1e-8f);
}
__global__ void __launch_bounds__(256) adamw(Moments s, long count) {
    const long i = blockIdx.x * 256l + threadIdx.x;
    if (i >= count) return;
    const float correction1 = 1 - std::pow(s.beta1, s.step), correction2 = 1 - std::pow(s.beta2, s.step);
    descend(s, i, correction1, correction2);
}
__global__ void __launch_bounds__(256) adamw_floats(Moments s, long count) {
    const long i = blockIdx.x * 256l + threadIdx.x;
    if (i >= count) return;
    const float correction1 = 1 - powf(s.beta1, s.step), correction2 = 1 - powf(s.beta2, s.step);
    descend(s, i, correction1, correction2);
}
__global__ void __launch_bounds__(256) adamw_given(Moments s, long count) {
    const long i = blockIdx.x * 256l + threadIdx.x;
    if (i < count) descend(s, i, s.correction1, s.correction2);
}

Study adam("adamw_corrections_in_doubles_by_every_thread", "training", 1 << 24, "a step of AdamW for 16.8 million weights with gradients of 16 bits",
    "every thread raises both rates of decay to the step's number, in double precision since the exponent is an integer",
    {{"given", "corrections computed once on the host", {"double_precision", "expensive_math"}}, {"floats", "powers in single precision", {"double_precision"}}},
    [](Buffers &b, long n) -> Sides {
        Moments s{b.changed<float>(b.random<float>(n, -0.05, 0.05), n), b.changed<float>(b.random<float>(n, -1e-3, 1e-3), n), b.changed<float>(b.random<float>(n, 1e-7, 1e-5), n),
            b.random<__half>(n), 3e-4f, 0.9f, 0.95f, 0.1f, 1e-3f, 37, 0, 0};
        s.correction1 = 1 - std::pow(0.9f, 37), s.correction2 = 1 - std::pow(0.95f, 37);
        return {{"flawed", launch(adamw, blocks(n, 256), 256, 0, s, n)}, {"given", launch(adamw_given, blocks(n, 256), 256, 0, s, n)}, {"floats", launch(adamw_floats, blocks(n, 256), 256, 0, s, n)}};
    });

// --- messages along a graph's edges ---

constexpr int FEATURES = 64;

struct Graph {
    const int *from, *to;     // of each edge, by "to"
    const float *weights;     // of each edge
    const float *features;    // of each node
    float *sums;              // of each node
    const int *starts;        // of a node's edges, and the end
    int edges, nodes;
};
// A warp an edge.
__global__ void __launch_bounds__(256) messages(Graph g) {
    const int edge = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (edge >= g.edges) return;
    const float weight = g.weights[edge];
    const float *from = g.features + static_cast<size_t>(g.from[edge]) * FEATURES;
    float *to = g.sums + static_cast<size_t>(g.to[edge]) * FEATURES;
    atomicAdd(to + lane, weight * from[lane]);
    atomicAdd(to + 32 + lane, weight * from[32 + lane]);
}
__device__ __forceinline__ void flush(const Graph &g, int to, float &low, float &high) {
    float *sums = g.sums + static_cast<size_t>(to) * FEATURES + threadIdx.x % 32;
    atomicAdd(sums, low);
    atomicAdd(sums + 32, high);
    low = high = 0;
}
// A warp 32 edges that follow each other.
__global__ void __launch_bounds__(256) messages_runs(Graph g) {
    const int first = (blockIdx.x * 8 + threadIdx.x / 32) * 32, lane = threadIdx.x % 32;
    if (first >= g.edges) return;
    const int own_from = g.from[first + lane], own_to = g.to[first + lane];
    const float own_weight = g.weights[first + lane];
    int to = __shfl_sync(~0u, own_to, 0);
    float low = 0, high = 0;
    for (int k = 0; k < 32; k += 4) {
        float lows[4], highs[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float *from = g.features + static_cast<size_t>(__shfl_sync(~0u, own_from, k + j)) * FEATURES + lane;
            lows[j] = from[0], highs[j] = from[32];
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int next = __shfl_sync(~0u, own_to, k + j);
            const float weight = __shfl_sync(~0u, own_weight, k + j);
            if (next != to) flush(g, to, low, high), to = next;
            low += weight * lows[j], high += weight * highs[j];
        }
    }
    flush(g, to, low, high);
}
// A warp a node.
__global__ void __launch_bounds__(256) messages_nodes(Graph g) {
    const int node = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (node >= g.nodes) return;
    const int end = g.starts[node + 1];
    float low = 0, high = 0;
#pragma unroll 4
    for (int edge = g.starts[node]; edge < end; edge++) {
        const float weight = g.weights[edge];
        const float *from = g.features + static_cast<size_t>(g.from[edge]) * FEATURES + lane;
        low += weight * from[0], high += weight * from[32];
    }
    g.sums[static_cast<size_t>(node) * FEATURES + lane] = low;
    g.sums[static_cast<size_t>(node) * FEATURES + 32 + lane] = high;
}

Study graph_network("graph_network_sorted_edges_added_one_by_one", "graph learning", 1 << 21, "weighted sums of 64 features along 2 million edges of 131072 nodes, edges sorted by their ends",
    "each edge adds its 64 numbers to the node with atomics, though edges of one node follow each other",
    {{"runs", "a warp goes through 32 edges and adds when the node changes", {"global_atomics"}}, {"nodes", "a warp a node, with sums in registers and plain stores", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int nodes = n / 16;
        std::vector<int> from(n), to(n), starts(nodes + 1);
        long missing = n;
        for (int v = 0; v < nodes; v++) missing -= starts[v + 1] = std::min(192, static_cast<int>(8 / std::sqrt(chance(v) + 1e-3f)));
        for (int v = 0; missing; v = (v + 1) % nodes) starts[v + 1] += missing > 0 ? 1 : -1, missing += missing > 0 ? -1 : 1;
        for (int v = 0; v < nodes; v++) {
            starts[v + 1] += starts[v];
            std::fill(to.begin() + starts[v], to.begin() + starts[v + 1], v);
        }
        for (long e = 0; e < n; e++) {
            const float x = chance(e + 77777);
            from[e] = static_cast<int>(hash(static_cast<unsigned>(x * x * nodes)) % nodes);
        }
        Graph g{b.copy(from), b.copy(to), b.random<float>(n, 0, 1), b.random<float>(static_cast<size_t>(nodes) * FEATURES), b.output<float>(static_cast<size_t>(nodes) * FEATURES, true), b.copy(starts),
            static_cast<int>(n), nodes};
        return {{"flawed", launch(messages, blocks(n, 8), 256, 0, g)}, {"runs", launch(messages_runs, blocks(n, 256), 256, 0, g)}, {"nodes", launch(messages_nodes, blocks(nodes, 8), 256, 0, g)}};
    });

// --- how often each digit occurs in each block of keys ---

constexpr int PER_THREAD = 32, KEY_TILE = 256 * PER_THREAD;

struct Keys {
    const unsigned *keys;
    unsigned *counts;  // of each digit and block
    int shift;
};
__device__ __forceinline__ unsigned key_of(const Keys &k, int i) { return k.keys[static_cast<size_t>(blockIdx.x) * KEY_TILE + i * 256 + threadIdx.x]; }

__global__ void __launch_bounds__(256) digits(Keys k) {
    __shared__ unsigned counters[256][16], totals[16];
    if (threadIdx.x < 16) totals[threadIdx.x] = 0;
    for (int d = 0; d < 16; d++) counters[d * 16 + threadIdx.x / 16][threadIdx.x % 16] = 0;
    __syncthreads();
#pragma unroll 8
    for (int i = 0; i < PER_THREAD; i++) counters[threadIdx.x][key_of(k, i) >> k.shift & 15]++;
    __syncthreads();
    unsigned sum = 0;
    for (int row = threadIdx.x / 16; row < 256; row += 16) sum += counters[row][threadIdx.x % 16];
    sum += __shfl_xor_sync(~0u, sum, 16);
    if (threadIdx.x % 32 < 16) atomicAdd(totals + threadIdx.x % 16, sum);
    __syncthreads();
    if (threadIdx.x < 16) k.counts[threadIdx.x * gridDim.x + blockIdx.x] = totals[threadIdx.x];
}
// A row of counters for each digit.
__global__ void __launch_bounds__(256) digits_rows(Keys k) {
    __shared__ unsigned counters[16][256];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int d = 0; d < 16; d++) counters[d][threadIdx.x] = 0;
#pragma unroll 8
    for (int i = 0; i < PER_THREAD; i++) counters[key_of(k, i) >> k.shift & 15][threadIdx.x]++;
    __syncthreads();
    for (int d = warp; d < 16; d += 8) {
        unsigned sum = 0;
        for (int i = lane; i < 256; i += 32) sum += counters[d][i];
        sum = __reduce_add_sync(~0u, sum);
        if (lane == 0) k.counts[d * gridDim.x + blockIdx.x] = sum;
    }
}
// A byte of two registers a digit.
__global__ void __launch_bounds__(256) digits_bytes(Keys k) {
    __shared__ unsigned totals[16];
    if (threadIdx.x < 16) totals[threadIdx.x] = 0;
    __syncthreads();
    unsigned long long low = 0, high = 0;
#pragma unroll 8
    for (int i = 0; i < PER_THREAD; i++) {
        const unsigned digit = key_of(k, i) >> k.shift & 15;
        const unsigned long long one = 1ull << (digit % 8 * 8);
        low += digit < 8 ? one : 0, high += digit < 8 ? 0 : one;
    }
#pragma unroll
    for (int d = 0; d < 16; d++) {
        const unsigned sum = __reduce_add_sync(~0u, static_cast<unsigned>((d < 8 ? low : high) >> (d % 8 * 8)) & 255);
        if (threadIdx.x % 32 == 0) atomicAdd(totals + d, sum);
    }
    __syncthreads();
    if (threadIdx.x < 16) k.counts[threadIdx.x * gridDim.x + blockIdx.x] = totals[threadIdx.x];
}

Study radix("radix_digits_counters_side_by_side_in_a_row", "sorting", 4096l * KEY_TILE, "counts of 16 digits in each tile of 8192 of 34 million keys",
    "a thread's sixteen counters lie in a row, so that lanes that meet the same digit use the same two banks",
    {{"rows", "a row of 256 counters for each digit", {"shared_bank_conflicts"}}, {"bytes", "a byte of a register for each digit", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> keys(n);
        constexpr long SOME = 300l * KEY_TILE;
        for (long i = 0; i < std::min(n, SOME); i++) keys[i] = hash(i) >> (8 + hash(i) % 8);  // small ones more often
        repeat(keys, SOME);
        Keys k{b.copy(keys), b.output<unsigned>(n / KEY_TILE * 16), 20};
        const unsigned grid = n / KEY_TILE;
        return {{"flawed", launch(digits, grid, 256, 0, k)}, {"rows", launch(digits_rows, grid, 256, 0, k)}, {"bytes", launch(digits_bytes, grid, 256, 0, k)}};
    });

// --- what a log says of each class of answers ---

constexpr int CLASSES = 5;

struct Log {
    const unsigned short *status;  // 100 ... 599
    const unsigned short *milliseconds;
    const unsigned *bytes;
    unsigned long long *totals;    // requests, bytes and milliseconds of each class
    long count;
};
__global__ void __launch_bounds__(256) summary(Log log) {
    __shared__ unsigned sums[CLASSES][3];
    if (threadIdx.x < CLASSES * 3) sums[threadIdx.x / 3][threadIdx.x % 3] = 0;
    __syncthreads();
    for (long i = blockIdx.x * 256l + threadIdx.x; i < log.count; i += gridDim.x * 256l) {
        unsigned *of = sums[log.status[i] / 100 - 1];
        atomicAdd(of, 1u);
        atomicAdd(of + 1, log.bytes[i]);
        atomicAdd(of + 2, static_cast<unsigned>(log.milliseconds[i]));
    }
    __syncthreads();
    if (threadIdx.x < CLASSES * 3) atomicAdd(log.totals + threadIdx.x, static_cast<unsigned long long>(sums[threadIdx.x / 3][threadIdx.x % 3]));
}
// Sums of every class in registers.
__global__ void __launch_bounds__(256) summary_registers(Log log) {
    __shared__ unsigned sums[CLASSES][3];
    if (threadIdx.x < CLASSES * 3) sums[threadIdx.x / 3][threadIdx.x % 3] = 0;
    __syncthreads();
    unsigned own[CLASSES][3] = {};
#pragma unroll 4
    for (long i = blockIdx.x * 256l + threadIdx.x; i < log.count; i += gridDim.x * 256l) {
        const int kind = log.status[i] / 100 - 1;
        const unsigned bytes = log.bytes[i], milliseconds = log.milliseconds[i];
#pragma unroll
        for (int k = 0; k < CLASSES; k++) {
            if (k != kind) continue;
            own[k][0]++, own[k][1] += bytes, own[k][2] += milliseconds;
        }
    }
#pragma unroll
    for (int k = 0; k < CLASSES; k++)
#pragma unroll
        for (int j = 0; j < 3; j++) {
            const unsigned sum = __reduce_add_sync(~0u, own[k][j]);
            if (threadIdx.x % 32 == 0) atomicAdd(&sums[k][j], sum);
        }
    __syncthreads();
    if (threadIdx.x < CLASSES * 3) atomicAdd(log.totals + threadIdx.x, static_cast<unsigned long long>(sums[threadIdx.x / 3][threadIdx.x % 3]));
}
// Sums for each lane of a block.
__global__ void __launch_bounds__(256) summary_lanes(Log log) {
    __shared__ unsigned sums[CLASSES * 3][32];
    const int lane = threadIdx.x % 32;
    for (int k = threadIdx.x / 32; k < CLASSES * 3; k += 8) sums[k][lane] = 0;
    __syncthreads();
    for (long i = blockIdx.x * 256l + threadIdx.x; i < log.count; i += gridDim.x * 256l) {
        unsigned *of = sums[(log.status[i] / 100 - 1) * 3] + lane;
        atomicAdd(of, 1u);
        atomicAdd(of + 32, log.bytes[i]);
        atomicAdd(of + 64, static_cast<unsigned>(log.milliseconds[i]));
    }
    __syncthreads();
    for (int k = threadIdx.x / 32; k < CLASSES * 3; k += 8) {
        const unsigned sum = __reduce_add_sync(~0u, sums[k][lane]);
        if (lane == 0) atomicAdd(log.totals + k, static_cast<unsigned long long>(sum));
    }
}

Study logs("access_log_totals_a_shared_atomic_a_number", "databases", 1 << 24, "requests, bytes and milliseconds of five classes of answers in a log of 16.8 million lines",
    "every line adds three numbers to its class's sums in shared memory, and most lines are of one class",
    {{"registers", "sums of all classes in registers, brought together at the end", {"shared_atomics"}}, {"lanes", "sums for each lane in banks of their own", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr long SOME = 3000001;
        std::vector<unsigned short> status(n), waits(n);
        for (long i = 0; i < std::min(n, SOME); i++) {
            const unsigned x = hash(i) >> 24;
            status[i] = x < 2 ? 101 : x < 200 ? 200 : x < 232 ? 304 : x < 252 ? 404 : 503;
            waits[i] = 5 + hash(i) % 128;
        }
        repeat(status, SOME);
        repeat(waits, SOME);
        Log log{b.copy(status), b.copy(waits), b.random<unsigned>(n, 200, 32000), b.output<unsigned long long>(CLASSES * 3, true), n};
        const unsigned grid = 132 * 8;
        return {{"flawed", launch(summary, grid, 256, 0, log)}, {"registers", launch(summary_registers, grid, 256, 0, log)}, {"lanes", launch(summary_lanes, grid, 256, 0, log)}};
    });

// --- how often a word occurs in each comment ---

constexpr int ROWS = 256, ROOM = ROWS * 96 + 32;

struct Comments {
    const unsigned char *text;      // one after the other, with room behind
    const unsigned *starts;         // of each, and the end
    unsigned char *found;           // how often
    unsigned long long word;        // up to eight letters, the first one lowest
    int length, count;
};
__device__ __forceinline__ int occurrences(const unsigned char *text, int length, unsigned long long word, int letters) {
    int found = 0;
    for (int at = 0; at + letters <= length; at++) {
        int k = 0;
        while (k < letters && text[at + k] == (word >> 8 * k & 255)) k++;
        found += k == letters;
    }
    return found;
}
// A comment a thread.
__global__ void __launch_bounds__(ROWS) occurs(Comments c) {
    const int row = blockIdx.x * ROWS + threadIdx.x;
    if (row >= c.count) return;
    const unsigned start = c.starts[row];
    c.found[row] = occurrences(c.text + start, c.starts[row + 1] - start, c.word, c.length);
}
// The block's text in shared memory first.
__global__ void __launch_bounds__(ROWS) occurs_staged(Comments c) {
    __shared__ __align__(16) unsigned char text[ROOM];
    const int first = blockIdx.x * ROWS, last = min(first + ROWS, c.count), row = first + threadIdx.x;
    const unsigned from = c.starts[first] & ~15u, end = c.starts[last];
    for (unsigned at = from + threadIdx.x * 16; at < end; at += ROWS * 16) *reinterpret_cast<uint4 *>(text + (at - from)) = *reinterpret_cast<const uint4 *>(c.text + at);
    __syncthreads();
    if (row >= last) return;
    const unsigned start = c.starts[row];
    c.found[row] = occurrences(text + (start - from), c.starts[row + 1] - start, c.word, c.length);
}
// Eight bytes a load, and one letter further a step; a comment a thread still.
__global__ void __launch_bounds__(ROWS) occurs_words(Comments c) {
    const int row = blockIdx.x * ROWS + threadIdx.x;
    if (row >= c.count) return;
    const unsigned start = c.starts[row], end = c.starts[row + 1];
    const unsigned long long mask = ~0ull >> (64 - 8 * c.length);
    const auto *words = reinterpret_cast<const unsigned long long *>(c.text);
    unsigned long long low = words[start / 8];
    int found = 0;
    for (unsigned at = start & ~7u; at < end; at += 8) {
        const unsigned long long high = words[at / 8 + 1];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const unsigned long long here = k ? low >> 8 * k | high << (64 - 8 * k) : low;
            found += at + k >= start && at + k + c.length <= end && ((here ^ c.word) & mask) == 0;
        }
        low = high;
    }
    c.found[row] = found;
}

Study comments("comments_word_sought_a_row_a_thread", "text search", 1 << 20, "how often a word occurs in each of a million comments of some 48 letters",
    "each thread reads a comment of its own letter by letter, so that lanes are some 48 bytes apart",
    {{"staged", "a block's comments read into shared memory in one piece first", {"uncoalesced_access"}}, {"words", "eight letters a load, compared as words", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const char *words[] = {"the ", "order ", "late ", "special ", "carefully ", "deposits ", "are ", "sleep ", "request ", "about ", "spec ", "final ", "blithely ", "of ", "regular ", "ideas "};
        std::vector<unsigned char> text(n * 64 + 128, ' ');
        std::vector<unsigned> starts(n + 1);
        size_t at = 0;
        for (long row = 0; row < n; row++) {
            starts[row] = at;
            const unsigned wanted = 12 + hash(row) % 72;
            for (unsigned k = 0; at - starts[row] < wanted; k++) {
                const char *word = words[hash(row * 64 + k) >> 28];
                const size_t length = std::strlen(word);
                std::memcpy(text.data() + at, word, length);
                at += length;
            }
        }
        starts[n] = at;
        text.resize(at + 64);
        Comments c{b.copy(text), b.copy(starts), b.output<unsigned char>(n), 0, 7, static_cast<int>(n)};
        std::memcpy(&c.word, "special", 7);
        return {{"flawed", launch(occurs, blocks(n, ROWS), ROWS, 0, c)}, {"staged", launch(occurs_staged, blocks(n, ROWS), ROWS, 0, c)}, {"words", launch(occurs_words, blocks(n, ROWS), ROWS, 0, c)}};
    });

// --- words that may have been meant ---

struct Dictionary {
    const unsigned char *letters;  // the first of all words, the second, ...
    const unsigned char *lengths;
    unsigned char *distances;
    int count;
};
struct Typed {
    const unsigned char *letters;
    int length;
};
__device__ __forceinline__ void letters_to(unsigned char (&letters)[24], const Typed &typed) {
    if (threadIdx.x < typed.length) letters[threadIdx.x] = typed.letters[threadIdx.x];
    __syncthreads();
}
__global__ void __launch_bounds__(128) edits(Dictionary d, Typed typed) {
    __shared__ unsigned char letters[24];
    letters_to(letters, typed);
    const int word = blockIdx.x * 128 + threadIdx.x;
    if (word >= d.count) return;
    int row[25];
    for (int i = 0; i <= typed.length; i++) row[i] = i;
    const int length = d.lengths[word];
    for (int j = 0; j < length; j++) {
        const unsigned char letter = d.letters[static_cast<size_t>(j) * d.count + word];
        int before = row[0], left = row[0] = j + 1;
        for (int i = 1; i <= typed.length; i++) {
            const int above = row[i];
            left = min(min(above, left) + 1, before + (letter != letters[i - 1]));
            before = above;
            row[i] = left;
        }
    }
    d.distances[word] = row[typed.length];
}
// The length is known to the compiler.
template <int LENGTH>
__global__ void __launch_bounds__(128) edits_known(Dictionary d, Typed typed) {
    __shared__ unsigned char letters[24];
    letters_to(letters, typed);
    const int word = blockIdx.x * 128 + threadIdx.x;
    if (word >= d.count) return;
    int row[LENGTH + 1];
#pragma unroll
    for (int i = 0; i <= LENGTH; i++) row[i] = i;
    const int length = d.lengths[word];
    for (int j = 0; j < length; j++) {
        const unsigned char letter = d.letters[static_cast<size_t>(j) * d.count + word];
        int before = row[0], left = row[0] = j + 1;
#pragma unroll
        for (int i = 1; i <= LENGTH; i++) {
            const int above = row[i];
            left = min(min(above, left) + 1, before + (letter != letters[i - 1]));
            before = above;
            row[i] = left;
        }
    }
    d.distances[word] = row[LENGTH];
}
// Rows in shared memory.
__global__ void __launch_bounds__(128) edits_shared(Dictionary d, Typed typed) {
    __shared__ unsigned char letters[24];
    letters_to(letters, typed);
    __shared__ unsigned char rows[25][128];
    const int word = blockIdx.x * 128 + threadIdx.x;
    if (word >= d.count) return;
    for (int i = 0; i <= typed.length; i++) rows[i][threadIdx.x] = i;
    const int length = d.lengths[word];
    for (int j = 0; j < length; j++) {
        const unsigned char letter = d.letters[static_cast<size_t>(j) * d.count + word];
        int before = j, left = j + 1;
        for (int i = 1; i <= typed.length; i++) {
            const int above = rows[i][threadIdx.x];
            left = min(min(above, left) + 1, before + (letter != letters[i - 1]));
            before = above;
            rows[i][threadIdx.x] = left;
        }
    }
    d.distances[word] = rows[typed.length][threadIdx.x];
}
// A bit for each step up and down along the row (Myers).
__global__ void __launch_bounds__(128) edits_bits(Dictionary d, Typed typed) {
    __shared__ unsigned char letters[24];
    letters_to(letters, typed);
    __shared__ unsigned places[32];
    if (threadIdx.x < 32) {
        unsigned same = 0;
        for (int i = 0; i < typed.length; i++) same |= (letters[i] - 'a' == threadIdx.x ? 1u : 0u) << i;
        places[threadIdx.x] = same;
    }
    __syncthreads();
    const int word = blockIdx.x * 128 + threadIdx.x;
    if (word >= d.count) return;
    unsigned up = ~0u, down = 0;
    int distance = typed.length;
    const int length = d.lengths[word], last = typed.length - 1;
    for (int j = 0; j < length; j++) {
        const unsigned same = places[d.letters[static_cast<size_t>(j) * d.count + word] - 'a'];
        const unsigned diagonal = (((same & up) + up) ^ up) | same | down;
        unsigned rise = down | ~(diagonal | up), fall = up & diagonal;
        distance += static_cast<int>(rise >> last & 1) - static_cast<int>(fall >> last & 1);
        rise = rise << 1 | 1, fall <<= 1;
        up = fall | ~(diagonal | rise), down = rise & diagonal;
    }
    d.distances[word] = distance;
}

Study spelling("spelling_distances_row_indexed_at_run_time", "text search", 1 << 21, "edit distances of a word of eleven letters to two million words of 3 to 18",
    "each thread keeps a row of the table in an array that is indexed at run time, and so in local memory",
    {{"known", "a template by the word's length, with the row in registers", {"local_memory"}}, {"shared", "bytes of shared memory", {"local_memory"}}, {"bits", "differences along the row as bits of two registers", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int LONGEST = 18;
        std::vector<unsigned char> letters(n * LONGEST, 'a'), lengths(n);
        const char *common = "etaoinshrdlcumwfgypbvkjxqz";
        for (long w = 0; w < n; w++) {
            lengths[w] = 3 + (hash(w) % 8) + (hash(w) >> 16) % 9;
            for (int j = 0; j < lengths[w]; j++) {
                const float x = chance(w * LONGEST + j);
                letters[static_cast<size_t>(j) * n + w] = common[static_cast<int>(x * x * 26)];
            }
        }
        Dictionary d{b.copy(letters), b.copy(lengths), b.output<unsigned char>(n), static_cast<int>(n)};
        const std::vector<unsigned char> typing{'r', 'e', 'c', 'i', 'e', 'v', 'e', 'a', 'b', 'l', 'e'};
        Typed typed{b.copy(typing), 11};
        const unsigned grid = blocks(n, 128);
        return {{"flawed", launch(edits, grid, 128, 0, d, typed)}, {"known", launch(edits_known<11>, grid, 128, 0, d, typed)}, {"shared", launch(edits_shared, grid, 128, 0, d, typed)},
            {"bits", launch(edits_bits, grid, 128, 0, d, typed)}};
    });

// --- how much better than expected an agent did ---

struct Rollout {
    const float *rewards, *values;  // step by step, of all environments; values of one step more
    const unsigned char *ends;      // of an episode
    float *advantages, *returns;
    int environments, steps;
    float discount, smooth;
};
__global__ void __launch_bounds__(128) advantages(Rollout r) {
    const int environment = blockIdx.x * blockDim.x + threadIdx.x;
    if (environment >= r.environments) return;
    size_t at = static_cast<size_t>(r.steps) * r.environments + environment;
    float next = r.values[at], advantage = 0;
    for (int t = r.steps - 1; t >= 0; t--) {
        at -= r.environments;
        const float going = r.ends[at] ? 0.0f : 1.0f, value = r.values[at];
        advantage = r.rewards[at] + r.discount * next * going - value + r.discount * r.smooth * going * advantage;
        r.advantages[at] = advantage;
        r.returns[at] = advantage + value;
        next = value;
    }
}
// Eight steps' numbers are asked for together.
__global__ void __launch_bounds__(128) advantages_ahead(Rollout r) {
    constexpr int AHEAD = 8;
    const int environment = blockIdx.x * blockDim.x + threadIdx.x;
    if (environment >= r.environments) return;
    const size_t stride = r.environments;
    float next = r.values[r.steps * stride + environment], advantage = 0;
    for (int t = r.steps - AHEAD; t >= 0; t -= AHEAD) {
        const size_t at = t * stride + environment;
        float rewards[AHEAD], values[AHEAD];
        bool ends[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) rewards[k] = r.rewards[at + k * stride], values[k] = r.values[at + k * stride], ends[k] = r.ends[at + k * stride];
#pragma unroll
        for (int k = AHEAD - 1; k >= 0; k--) {
            const float going = ends[k] ? 0.0f : 1.0f;
            advantage = rewards[k] + r.discount * next * going - values[k] + r.discount * r.smooth * going * advantage;
            r.advantages[at + k * stride] = advantage;
            r.returns[at + k * stride] = advantage + values[k];
            next = values[k];
        }
    }
}
// Eight threads an environment, each with a part of the steps: first what a part makes of what follows it.
__global__ void __launch_bounds__(256) advantages_parts(Rollout r) {
    constexpr int PARTS = 8;
    __shared__ float2 effects[PARTS][32];
    const int part = threadIdx.y, environment = blockIdx.x * 32 + threadIdx.x, some = r.steps / PARTS;
    if (environment >= r.environments) return;
    const size_t stride = r.environments, end = static_cast<size_t>(part + 1) * some * stride + environment;
    float next = r.values[end], advantage = 0, factor = 1;
    size_t at = end;
#pragma unroll 4
    for (int t = 0; t < some; t++) {
        at -= stride;
        const float going = r.ends[at] ? 0.0f : 1.0f, value = r.values[at], kept = r.discount * r.smooth * going;
        advantage = r.rewards[at] + r.discount * next * going - value + kept * advantage;
        factor *= kept;
        next = value;
    }
    effects[part][threadIdx.x] = make_float2(advantage, factor);
    __syncthreads();
    advantage = 0;
    for (int k = PARTS - 1; k > part; k--) advantage = effects[k][threadIdx.x].x + effects[k][threadIdx.x].y * advantage;
    next = r.values[end], at = end;
    for (int t = 0; t < some; t++) {
        at -= stride;
        const float going = r.ends[at] ? 0.0f : 1.0f, value = r.values[at];
        advantage = r.rewards[at] + r.discount * next * going - value + r.discount * r.smooth * going * advantage;
        r.advantages[at] = advantage;
        r.returns[at] = advantage + value;
        next = value;
    }
}

Study rollouts("reinforcement_advantages_one_step_in_flight", "reinforcement learning", 65536, "advantages and returns of 128 steps of 65536 environments, backward in time",
    "each thread asks for a step's numbers only when the step after it is done and stored, with sixteen warps on a multiprocessor",
    {{"ahead", "eight steps' numbers loaded together", {"memory_latency"}}, {"parts", "eight threads an environment, joined by what each part makes of what follows", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int STEPS = 128;
        std::vector<unsigned char> ends(n * STEPS);
        for (long i = 0; i < n * STEPS; i++) ends[i] = hash(i) % 97 == 0;
        const auto *rewards = b.random<float>(n * STEPS), *values = b.random<float>(n * (STEPS + 1), 0, 4);
        const auto *ended = b.copy(ends);
        auto *advantage = b.output<float>(n * STEPS), *returns = b.output<float>(n * STEPS);
        Rollout r{rewards, values, ended, advantage, returns, static_cast<int>(n), STEPS, 0.99f, 0.95f};
        return {{"flawed", launch(advantages, blocks(n, 128), 128, 0, r)}, {"ahead", launch(advantages_ahead, blocks(n, 128), 128, 0, r)}, {"parts", launch(advantages_parts, blocks(n, 32), dim3(32, 8), 0, r)}};
    });

// --- queries and keys of each head brought to one length ---

constexpr int HEAD = 128;

// A block a head and token.
__global__ void __launch_bounds__(HEAD) head_norm(const __half *__restrict__ x, const float *__restrict__ scale, __half *__restrict__ y, float epsilon) {
    __shared__ float squares[HEAD];
    const int i = threadIdx.x;
    const size_t at = static_cast<size_t>(blockIdx.x) * HEAD + i;
    const float value = __half2float(x[at]);
    squares[i] = value * value;
    __syncthreads();
    for (int half = HEAD / 2; half; half /= 2) {
        if (i < half) squares[i] += squares[i + half];
        __syncthreads();
    }
    y[at] = __float2half(value * rsqrtf(squares[0] / HEAD + epsilon) * scale[i]);
}
__global__ void __launch_bounds__(HEAD) head_norm_shuffled(const __half *__restrict__ x, const float *__restrict__ scale, __half *__restrict__ y, float epsilon) {
    __shared__ float parts[4];
    const int i = threadIdx.x;
    const size_t at = static_cast<size_t>(blockIdx.x) * HEAD + i;
    const float value = __half2float(x[at]), part = warp_sum(value * value);
    if (i % 32 == 0) parts[i / 32] = part;
    __syncthreads();
    const float sum = parts[0] + parts[1] + parts[2] + parts[3];
    y[at] = __float2half(value * rsqrtf(sum / HEAD + epsilon) * scale[i]);
}
// A warp a head and token.
__global__ void __launch_bounds__(256) head_norm_warps(const __half *__restrict__ x, const float *__restrict__ scale, __half *__restrict__ y, float epsilon) {
    const size_t at = (static_cast<size_t>(blockIdx.x) * 8 + threadIdx.x / 32) * HEAD + threadIdx.x % 32 * 4;
    union {
        uint2 raw;
        __half2 pairs[2];
    } four;
    four.raw = *reinterpret_cast<const uint2 *>(x + at);
    const float2 low = __half22float2(four.pairs[0]), high = __half22float2(four.pairs[1]);
    const float4 scales = *reinterpret_cast<const float4 *>(scale + threadIdx.x % 32 * 4);
    const float factor = rsqrtf(warp_sum(low.x * low.x + low.y * low.y + high.x * high.x + high.y * high.y) / HEAD + epsilon);
    four.pairs[0] = __floats2half2_rn(low.x * factor * scales.x, low.y * factor * scales.y);
    four.pairs[1] = __floats2half2_rn(high.x * factor * scales.z, high.y * factor * scales.w);
    *reinterpret_cast<uint2 *>(y + at) = four.raw;
}

Study heads("attention_head_norm_a_barrier_each_halving", "language models", 4096 * 40, "queries and keys of 4096 tokens and 40 heads of 128, each brought to the same root mean square",
    "a block for each 128 numbers halves their sum of squares with a barrier each time",
    {{"shuffled", "sums by shuffles within warps, then one barrier", {"barriers"}}, {"warps", "a warp a head, without a barrier", {"barriers", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const auto *x = b.random<__half>(n * HEAD, -2, 2);
        const auto *scale = b.random<float>(HEAD, 0.5, 1.5);
        auto *y = b.output<__half>(n * HEAD);
        b.tolerance = 2e-3;
        return {{"flawed", launch(head_norm, n, HEAD, 0, x, scale, y, 1e-6f)}, {"shuffled", launch(head_norm_shuffled, n, HEAD, 0, x, scale, y, 1e-6f)},
            {"warps", launch(head_norm_warps, n / 8, 256, 0, x, scale, y, 1e-6f)}};
    });

// --- queries turned by their positions ---

constexpr int HEADS = 32, TURNS = 64;

struct Queries {
    const __half2 *from;    // tokens x HEADS x TURNS
    __half2 *to;
    const int *positions;   // of tokens
    const float2 *table;    // cosine and sine of each position and pair
    float base;
    long pairs;
};
__device__ __forceinline__ __half2 turned(__half2 pair, float cosine, float sine) {
    const float2 v = __half22float2(pair);
    return __floats2half2_rn(v.x * cosine - v.y * sine, v.x * sine + v.y * cosine);
}
__global__ void __launch_bounds__(256) rotary(Queries q) {
    const long i = blockIdx.x * 256l + threadIdx.x;
    if (i >= q.pairs) return;
    const int pair = i % TURNS, token = i / (TURNS * HEADS);
    const float angle = q.positions[token] * powf(q.base, -2.0f * pair / (2 * TURNS));
    float sine, cosine;
    sincosf(angle, &sine, &cosine);
    q.to[i] = turned(q.from[i], cosine, sine);
}
__global__ void __launch_bounds__(256) rotary_table(Queries q) {
    const long i = blockIdx.x * 256l + threadIdx.x;
    if (i >= q.pairs) return;
    const int pair = i % TURNS, token = i / (TURNS * HEADS);
    const float2 turn = q.table[q.positions[token] * TURNS + pair];
    q.to[i] = turned(q.from[i], turn.x, turn.y);
}
// All heads of a token and pair a thread.
__global__ void __launch_bounds__(256) rotary_heads(Queries q) {
    const int pair = threadIdx.x % TURNS, token = blockIdx.x * 4 + threadIdx.x / TURNS;
    const float angle = q.positions[token] * powf(q.base, -2.0f * pair / (2 * TURNS));
    float sine, cosine;
    sincosf(angle, &sine, &cosine);
    const long first = static_cast<long>(token) * HEADS * TURNS + pair;
#pragma unroll 8
    for (int head = 0; head < HEADS; head++) q.to[first + head * TURNS] = turned(q.from[first + head * TURNS], cosine, sine);
}

Study rotations("rotary_angles_anew_for_each_head", "language models", 8192, "queries of 8192 tokens and 32 heads of 128, turned in pairs by their positions",
    "a power, a sine and a cosine for each pair of every head, though heads share them",
    {{"table", "cosines and sines of all positions from a table", {"expensive_math"}}, {"heads", "angles once for the 32 heads of a token", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> positions(n);
        for (long t = 0; t < n; t++) positions[t] = t % 2048;
        std::vector<float2> table(2048 * TURNS);
        for (int t = 0; t < 2048; t++)
            for (int k = 0; k < TURNS; k++) {
                const double angle = t * std::pow(10000.0, -k / static_cast<double>(TURNS));
                table[t * TURNS + k] = make_float2(std::cos(angle), std::sin(angle));
            }
        const long pairs = n * HEADS * TURNS;
        const auto *from = reinterpret_cast<const __half2 *>(b.random<__half>(pairs * 2));
        auto *to = reinterpret_cast<__half2 *>(b.output<__half>(pairs * 2));
        Queries q{from, to, b.copy(positions), b.copy(table), 10000.0f, pairs};
        b.tolerance = 3e-3;
        return {{"flawed", launch(rotary, blocks(pairs, 256), 256, 0, q)}, {"table", launch(rotary_table, blocks(pairs, 256), 256, 0, q)}, {"heads", launch(rotary_heads, n / 4, 256, 0, q)}};
    });

// --- means of two by two ---

struct Pool {
    const float *x;
    float *y;
    long channels, height, width;            // of y
    long image_stride, channel_stride;       // of x, which may be a slice of more channels
    long count;
};
__device__ __forceinline__ float mean_of_four(const float *x, long width, long row, long column) {
    const auto *pairs = reinterpret_cast<const float2 *>(x) + 2 * row * width + column;
    const float2 above = pairs[0], below = pairs[width];
    return 0.25f * (above.x + above.y + below.x + below.y);
}
__global__ void __launch_bounds__(256) mean_pool(Pool p) {
    const long i = blockIdx.x * 256l + threadIdx.x;
    if (i >= p.count) return;
    const long column = i % p.width, row = i / p.width % p.height, channel = i / (p.width * p.height) % p.channels, image = i / (p.width * p.height * p.channels);
    p.y[i] = mean_of_four(p.x + image * p.image_stride + channel * p.channel_stride, p.width, row, column);
}
// Images and channels by the grid.
__global__ void __launch_bounds__(256) mean_pool_grid(Pool p) {
    const int width = p.width, area = width * static_cast<int>(p.height), i = blockIdx.x * 256 + threadIdx.x;
    if (i >= area) return;
    const int row = i / width, column = i - row * width;
    p.y[(blockIdx.z * p.channels + blockIdx.y) * area + i] = mean_of_four(p.x + blockIdx.z * p.image_stride + blockIdx.y * p.channel_stride, width, row, column);
}
struct Divider {
    unsigned by, factor, shift;
};
__device__ __forceinline__ unsigned divide(unsigned x, Divider d) { return (__umulhi(x, d.factor) + x) >> d.shift; }
__global__ void __launch_bounds__(256) mean_pool_products(Pool p, Divider width, Divider height, Divider channels) {
    const unsigned i = blockIdx.x * 256 + threadIdx.x;
    if (i >= p.count) return;
    const unsigned line = divide(i, width), column = i - line * width.by, plane = divide(line, height), row = line - plane * height.by, image = divide(plane, channels), channel = plane - image * channels.by;
    p.y[i] = mean_of_four(p.x + image * p.image_stride + channel * p.channel_stride, p.width, row, column);
}
Divider divider(unsigned by) {
    unsigned shift = 0;
    while ((1ull << shift) < by) shift++;
    return {by, static_cast<unsigned>((((1ull << shift) - by) << 32) / by + 1), shift};
}

Study pool("pooling_coordinates_by_long_divisions", "computer vision", 32, "means of two by two of 32 images of 96 channels and 112 x 112, a slice of 128 channels",
    "image, channel, row and column come from divisions of 64 bits by numbers that are known at run time only",
    {{"grid", "image and channel from the grid, one division of 32 bits", {"integer_arithmetic"}}, {"products", "divisions by products with reciprocals", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr long CHANNELS = 96, OF = 128, SIDE = 56;
        const auto *x = b.random<float>(n * OF * SIDE * SIDE * 4);
        const long count = n * CHANNELS * SIDE * SIDE;
        Pool p{x, b.output<float>(count), CHANNELS, SIDE, SIDE, OF * SIDE * SIDE * 4, SIDE * SIDE * 4, count};
        return {{"flawed", launch(mean_pool, blocks(count, 256), 256, 0, p)}, {"grid", launch(mean_pool_grid, dim3(blocks(SIDE * SIDE, 256), CHANNELS, n), 256, 0, p)},
            {"products", launch(mean_pool_products, blocks(count, 256), 256, 0, p, divider(SIDE), divider(SIDE), divider(CHANNELS))}};
    });

// --- what people have looked at, as one vector each ---

constexpr int DIMENSIONS = 64, PIECE = 64;

struct Histories {
    const float2 *items;    // DIMENSIONS each
    const int *looked;      // items of all people
    const int *starts;      // of each person's, and the end
    float *means;           // of each person
    const int2 *pieces;     // person and first of up to PIECE items
    int people, count;      // of pieces
};
__device__ __forceinline__ float2 sum_items(const Histories &h, int first, int end, int step) {
    const int lane = threadIdx.x % 32;
    float2 sum = make_float2(0, 0);
#pragma unroll 4
    for (int k = first; k < end; k += step) {
        const float2 item = h.items[static_cast<size_t>(h.looked[k]) * (DIMENSIONS / 2) + lane];
        sum.x += item.x, sum.y += item.y;
    }
    return sum;
}
// A warp a person.
__global__ void __launch_bounds__(256) interests(Histories h) {
    const int person = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (person >= h.people) return;
    const int first = h.starts[person], end = h.starts[person + 1];
    const float2 sum = sum_items(h, first, end, 1);
    const float share = 1.0f / max(end - first, 1);
    reinterpret_cast<float2 *>(h.means)[static_cast<size_t>(person) * 32 + lane] = make_float2(sum.x * share, sum.y * share);
}
// A warp a piece.
__global__ void __launch_bounds__(256) interests_pieces(Histories h) {
    const int piece = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (piece >= h.count) return;
    const int2 of = h.pieces[piece];
    const int first = h.starts[of.x], end = h.starts[of.x + 1];
    const float2 sum = sum_items(h, of.y, min(of.y + PIECE, end), 1);
    const float share = 1.0f / (end - first);
    float *to = h.means + static_cast<size_t>(of.x) * DIMENSIONS + 2 * lane;
    atomicAdd(to, sum.x * share);
    atomicAdd(to + 1, sum.y * share);
}
// A block of four warps a person.
__global__ void __launch_bounds__(128) interests_blocks(Histories h) {
    __shared__ float2 sums[4][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = h.starts[blockIdx.x], end = h.starts[blockIdx.x + 1];
    sums[warp][lane] = sum_items(h, first + warp, end, 4);
    __syncthreads();
    if (warp) return;
    const float share = 1.0f / max(end - first, 1);
    float2 sum = sums[0][lane];
    for (int w = 1; w < 4; w++) sum.x += sums[w][lane].x, sum.y += sums[w][lane].y;
    reinterpret_cast<float2 *>(h.means)[static_cast<size_t>(blockIdx.x) * 32 + lane] = make_float2(sum.x * share, sum.y * share);
}

Study histories("recommender_histories_a_warp_a_person", "recommenders", 32768, "means of the vectors of what 32768 people looked at, 11 to 1000 items each",
    "a warp takes all items of a person, and a few people have looked at forty times as many as most",
    {{"pieces", "a warp for every 64 items, added with atomics", {"workload_imbalance"}}, {"blocks", "four warps a person", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int ITEMS = 1 << 18;
        std::vector<int> starts(n + 1), looked;
        std::vector<int2> pieces;
        for (long p = 0; p < n; p++) {
            starts[p] = looked.size();
            const int count = std::min(1000, static_cast<int>(12 / (chance(p) + 1e-3f)));
            for (int k = 0; k < count; k += PIECE) pieces.push_back(make_int2(p, starts[p] + k));
            for (int k = 0; k < count; k++) {
                const float x = chance(looked.size() + 12345);
                looked.push_back(hash(static_cast<unsigned>(x * x * x * ITEMS)) % ITEMS);
            }
        }
        starts[n] = looked.size();
        const auto *items = reinterpret_cast<const float2 *>(b.random<float>(static_cast<size_t>(ITEMS) * DIMENSIONS));
        Histories h{items, b.copy(looked), b.copy(starts), b.output<float>(n * DIMENSIONS, true), b.copy(pieces), static_cast<int>(n), static_cast<int>(pieces.size())};
        return {{"flawed", launch(interests, blocks(n, 8), 256, 0, h)}, {"pieces", launch(interests_pieces, blocks(h.count, 8), 256, 0, h)}, {"blocks", launch(interests_blocks, n, 128, 0, h)}};
    });

// --- keys that a benchmark asks for, few of them often ---

struct Zipf {
    float exponent;   // more than one
    float most;       // largest key
    float inverse;    // -1 / (exponent - 1)
    float scale;      // 2^(exponent - 1)
    unsigned seed;
};
// A try for key i: whether it fits, and what it is.
__device__ __forceinline__ bool drawn(const Zipf &z, unsigned i, unsigned attempt, float &key) {
    const unsigned state = hash(i ^ z.seed) + attempt * 0x9e3779b9u;
    const float u = 1 - __uint2float_rn(hash(state) >> 8) * 0x1p-24f, v = __uint2float_rn(hash(state ^ 0x68bc21ebu) >> 8) * 0x1p-24f;
    key = floorf(__powf(u, z.inverse));
    const float ratio = __powf(__fadd_rn(1.0f, __fdividef(1.0f, key)), z.exponent - 1);
    return key <= z.most && __fmul_rn(__fmul_rn(v, key), __fmul_rn(__fadd_rn(ratio, -1.0f), z.scale)) <= __fmul_rn(ratio, z.scale - 1);
}
__global__ void __launch_bounds__(256) benchmark_keys(Zipf z, int *keys, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    float key;
    for (unsigned attempt = 0; !drawn(z, i, attempt, key); attempt++);
    keys[i] = static_cast<int>(key);
}
// A thread goes on to the next of its sixteen keys without waiting for its neighbours.
__global__ void __launch_bounds__(256) benchmark_keys_flat(Zipf z, int *keys, int count) {
    constexpr int EACH = 16;
    int i = blockIdx.x * 256 * EACH + threadIdx.x;
    const int end = min(static_cast<int>((blockIdx.x + 1) * 256 * EACH), count);
    unsigned attempt = 0;
    while (i < end) {
        float key;
        if (drawn(z, i, attempt++, key)) {
            keys[i] = static_cast<int>(key);
            i += 256, attempt = 0;
        }
    }
}
// Lanes that have found their key take the warp's next ones.
__global__ void __launch_bounds__(256) benchmark_keys_queue(Zipf z, int *keys, int count) {
    constexpr int EACH = 16;
    const int lane = threadIdx.x % 32, first = (blockIdx.x * 8 + threadIdx.x / 32) * 32 * EACH, end = min(first + 32 * EACH, count);
    int i = first + lane, next = first + 32;
    unsigned attempt = 0;
    while (__any_sync(~0u, i < end)) {
        float key;
        const bool found = i < end && drawn(z, i, attempt, key);
        if (found) keys[i] = static_cast<int>(key);
        attempt++;
        const unsigned finders = __ballot_sync(~0u, found);
        if (found) i = next + __popc(finders & ((1u << lane) - 1)), attempt = 0;
        next += __popc(finders);
    }
}

Study zipf("benchmark_keys_drawn_until_one_fits", "databases", 1 << 24, "16.8 million keys of a benchmark by Zipf's law, drawn by rejection",
    "each thread draws until its key fits, and the lanes of a warp wait for the unluckiest",
    {{"flat", "sixteen keys a thread in one loop that goes on to the next", {"branch_divergence"}}, {"queue", "lanes that have found a key take the warp's next one", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const float exponent = 1.1f;
        Zipf z{exponent, 1e5f, -1 / (exponent - 1), std::pow(2.0f, exponent - 1), 2024};
        auto *keys = b.output<int>(n);
        const int count = n;
        return {{"flawed", launch(benchmark_keys, blocks(n, 256), 256, 0, z, keys, count)}, {"flat", launch(benchmark_keys_flat, blocks(n, 4096), 256, 0, z, keys, count)},
            {"queue", launch(benchmark_keys_queue, blocks(n, 4096), 256, 0, z, keys, count)}};
    });

// --- seven by seven for each channel, channels last ---

struct Depthwise {
    const __half2 *x;        // images x SIDE x SIDE x PAIRS
    const __half2 *weights;  // 49 x PAIRS
    __half2 *y;
};
constexpr int SIDE = 56, PAIRS = 64;

__device__ __forceinline__ size_t pixel_at(int image, int row, int column) { return ((static_cast<size_t>(image) * SIDE + row) * SIDE + column) * PAIRS + threadIdx.x; }
__device__ __forceinline__ void fused(float2 &sum, float2 a, float2 b) { sum.x = fmaf(a.x, b.x, sum.x), sum.y = fmaf(a.y, b.y, sum.y); }

// A pair of channels of a pixel a thread.
__global__ void __launch_bounds__(256) depthwise(Depthwise d) {
    const int column = blockIdx.x * 4 + threadIdx.y, row = blockIdx.y, image = blockIdx.z;
    float2 sum = make_float2(0, 0);
    for (int i = 0; i < 7; i++) {
        const int y = row + i - 3;
        if (y < 0 || y >= SIDE) continue;
#pragma unroll
        for (int j = 0; j < 7; j++) {
            const int x = column + j - 3;
            if (x >= 0 && x < SIDE) fused(sum, __half22float2(d.x[pixel_at(image, y, x)]), __half22float2(d.weights[(i * 7 + j) * PAIRS + threadIdx.x]));
        }
    }
    d.y[pixel_at(image, row, column)] = __float22half2_rn(sum);
}
// Four pixels of a row a thread.
__global__ void __launch_bounds__(128) depthwise_strip(Depthwise d) {
    const int column = (blockIdx.x * 2 + threadIdx.y) * 4, row = blockIdx.y, image = blockIdx.z;
    float2 sums[4] = {};
    for (int i = 0; i < 7; i++) {
        const int y = row + i - 3;
        if (y < 0 || y >= SIDE) continue;
        float2 values[10];
#pragma unroll
        for (int j = 0; j < 10; j++) {
            const int x = column + j - 3;
            values[j] = x >= 0 && x < SIDE ? __half22float2(d.x[pixel_at(image, y, x)]) : make_float2(0, 0);
        }
#pragma unroll
        for (int j = 0; j < 7; j++) {
            const float2 weight = __half22float2(d.weights[(i * 7 + j) * PAIRS + threadIdx.x]);
#pragma unroll
            for (int k = 0; k < 4; k++) fused(sums[k], values[j + k], weight);
        }
    }
#pragma unroll
    for (int k = 0; k < 4; k++) d.y[pixel_at(image, row, column + k)] = __float22half2_rn(sums[k]);
}
// Eight pixels of a column a thread, with the weights in registers.
__global__ void __launch_bounds__(128) depthwise_column(Depthwise d) {
    const int column = blockIdx.x * 2 + threadIdx.y, row = blockIdx.y * 8, image = blockIdx.z;
    __half2 weights[49];
#pragma unroll
    for (int k = 0; k < 49; k++) weights[k] = d.weights[k * PAIRS + threadIdx.x];
    float2 sums[8] = {};
#pragma unroll
    for (int i = 0; i < 14; i++) {
        const int y = row + i - 3;
        if (y < 0 || y >= SIDE) continue;
#pragma unroll
        for (int j = 0; j < 7; j++) {
            const int x = column + j - 3;
            const float2 value = x >= 0 && x < SIDE ? __half22float2(d.x[pixel_at(image, y, x)]) : make_float2(0, 0);
#pragma unroll
            for (int k = 0; k < 8; k++)
                if (i - k >= 0 && i - k < 7) fused(sums[k], value, __half22float2(weights[(i - k) * 7 + j]));
        }
    }
#pragma unroll
    for (int k = 0; k < 8; k++) d.y[pixel_at(image, row + k, column)] = __float22half2_rn(sums[k]);
}

Study convolution("depthwise_convolution_a_pixel_a_thread", "computer vision", 32, "seven by seven for each of 128 channels of 32 images of 56 x 56, channels last",
    "each thread loads 49 numbers and 49 weights for one pixel, though its neighbours need nearly the same",
    {{"strip", "four pixels of a row a thread", {"redundant_loads"}}, {"column", "eight pixels of a column a thread, with weights in registers", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const size_t count = n * SIDE * SIDE * PAIRS;
        const auto *x = reinterpret_cast<const __half2 *>(b.random<__half>(count * 2));
        const auto *weights = reinterpret_cast<const __half2 *>(b.random<__half>(49 * PAIRS * 2, -0.2, 0.2));
        Depthwise d{x, weights, reinterpret_cast<__half2 *>(b.output<__half>(count * 2))};
        b.tolerance = 2e-3;
        return {{"flawed", launch(depthwise, dim3(SIDE / 4, SIDE, n), dim3(PAIRS, 4), 0, d)}, {"strip", launch(depthwise_strip, dim3(SIDE / 8, SIDE, n), dim3(PAIRS, 2), 0, d)},
            {"column", launch(depthwise_column, dim3(SIDE / 2, SIDE / 8, n), dim3(PAIRS, 2), 0, d)}};
    });

// --- what a layer adds, and the norm before the next one ---

struct Stream {
    const uint4 *added, *weights;  // eight halves each
    const uint4 *stream;
    uint4 *next, *normed;
};
constexpr int MODEL = 4096;

__global__ void __launch_bounds__(MODEL / 8) residual_norm(Stream s) {
    __shared__ float parts[MODEL / 256];
    union Eight {
        uint4 raw;
        __half2 pairs[4];
    } a, b, w;
    const size_t at = static_cast<size_t>(blockIdx.x) * (MODEL / 8) + threadIdx.x;
    a.raw = s.added[at], b.raw = s.stream[at], w.raw = s.weights[threadIdx.x];
    float2 sums[4];
    float square = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float2 x = __half22float2(a.pairs[k]), y = __half22float2(b.pairs[k]);
        sums[k] = make_float2(x.x + y.x, x.y + y.y);
        b.pairs[k] = __float22half2_rn(sums[k]);
        square += sums[k].x * sums[k].x + sums[k].y * sums[k].y;
    }
    s.next[at] = b.raw;
    square = warp_sum(square);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = square;
    __syncthreads();
    square = 0;
#pragma unroll
    for (int k = 0; k < MODEL / 256; k++) square += parts[k];
    const float factor = rsqrtf(square / MODEL + 1e-6f);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float2 weight = __half22float2(w.pairs[k]);
        a.pairs[k] = __floats2half2_rn(sums[k].x * factor * weight.x, sums[k].y * factor * weight.y);
    }
    s.normed[at] = a.raw;
}

Study residual("sound_residual_stream_and_norm_of_halves", "language models", 8192, "what a layer adds to 8192 tokens of 4096 halves, and their root mean square norm", "", {},
    [](Buffers &b, long n) -> Sides {
        const auto halves = [&](size_t count) { return reinterpret_cast<const uint4 *>(b.random<__half>(count)); };
        const auto *added = halves(n * MODEL), *weights = halves(MODEL), *stream = halves(n * MODEL);
        Stream s{added, weights, stream, reinterpret_cast<uint4 *>(b.output<__half>(n * MODEL)), reinterpret_cast<uint4 *>(b.output<__half>(n * MODEL))};
        return {{"sound", launch(residual_norm, n, MODEL / 8, 0, s)}};
    });

// --- a column packed as what exceeds the least of each frame ---

constexpr int FRAME = 4096;

// A block a frame.
__global__ void __launch_bounds__(256) unpacked(const unsigned *__restrict__ packed, const int *__restrict__ least, int4 *__restrict__ values) {
    const size_t first = static_cast<size_t>(blockIdx.x) * (FRAME / 4) + threadIdx.x;
    const int from = least[blockIdx.x];
    unsigned four[4];
#pragma unroll
    for (int k = 0; k < 4; k++) four[k] = packed[first + k * 256];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const unsigned x = four[k];
        values[first + k * 256] = make_int4(from + (x & 255), from + (x >> 8 & 255), from + (x >> 16 & 255), from + (x >> 24));
    }
}

Study packed("sound_column_of_bytes_above_the_least", "databases", 16384, "67 million integers from bytes that say how far above the least of 4096 each is", "", {},
    [](Buffers &b, long n) -> Sides {
        const auto *bytes = reinterpret_cast<const unsigned *>(b.random<unsigned char>(n * FRAME, 0, 256));
        const auto *least = b.random<int>(n, 1000, 2000000);
        auto *values = reinterpret_cast<int4 *>(b.output<int>(n * FRAME));
        return {{"sound", launch(unpacked, n, 256, 0, bytes, least, values)}};
    });

}  // namespace
