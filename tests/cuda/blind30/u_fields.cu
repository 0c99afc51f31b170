// Pieces of training and serving of models, of a column store and of graph analytics.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- gradients of a layer norm's gain and shift ---

struct NormGrads {
    const float *dy, *x;        // rows x width
    const float *mean, *rstd;   // of each row
    float *dgain, *dshift;      // of each column
    int rows, width;
};
// A column a thread, down all rows.
__global__ void __launch_bounds__(256) norm_grads(NormGrads g) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= g.width) return;
    float gain = 0.0f, shift = 0.0f;
#pragma unroll 8
    for (int row = 0; row < g.rows; row++) {
        const size_t at = static_cast<size_t>(row) * g.width + column;
        const float dy = g.dy[at];
        gain += dy * (g.x[at] - g.mean[row]) * g.rstd[row];
        shift += dy;
    }
    g.dgain[column] = gain;
    g.dshift[column] = shift;
}
// The rows dealt out over the grid's second dimension.
__global__ void __launch_bounds__(256) norm_grads_slices(NormGrads g) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= g.width) return;
    const int share = (g.rows + gridDim.y - 1) / gridDim.y, first = blockIdx.y * share, end = min(first + share, g.rows);
    float gain = 0.0f, shift = 0.0f;
#pragma unroll 8
    for (int row = first; row < end; row++) {
        const size_t at = static_cast<size_t>(row) * g.width + column;
        const float dy = g.dy[at];
        gain += dy * (g.x[at] - g.mean[row]) * g.rstd[row];
        shift += dy;
    }
    atomicAdd(g.dgain + column, gain);
    atomicAdd(g.dshift + column, shift);
}
// 32 columns and 32 strands of rows a block.
__global__ void __launch_bounds__(1024) norm_grads_tiles(NormGrads g) {
    __shared__ float gains[32][33], shifts[32][33];
    const int column = blockIdx.x * 32 + threadIdx.x;
    float gain = 0.0f, shift = 0.0f;
    if (column < g.width) {
#pragma unroll 4
        for (int row = threadIdx.y; row < g.rows; row += 32) {
            const size_t at = static_cast<size_t>(row) * g.width + column;
            const float dy = g.dy[at];
            gain += dy * (g.x[at] - g.mean[row]) * g.rstd[row];
            shift += dy;
        }
    }
    gains[threadIdx.y][threadIdx.x] = gain;
    shifts[threadIdx.y][threadIdx.x] = shift;
    __syncthreads();
    gain = warp_sum(gains[threadIdx.x][threadIdx.y]);
    shift = warp_sum(shifts[threadIdx.x][threadIdx.y]);
    const int out = blockIdx.x * 32 + threadIdx.y;
    if (threadIdx.x == 0 && out < g.width) {
        g.dgain[out] = gain;
        g.dshift[out] = shift;
    }
}

Study layer_norm("layernorm_gain_gradient_a_column_a_thread", "machine learning: norms", 2048, "gradients of a layer norm's 8192 gains and shifts, summed over 2048 tokens",
    "a thread for each column alone: 32 blocks walk down all rows",
    {{"slices", "rows dealt out over 32 slices of the grid, added atomically", {"small_grid", "memory_latency"}}, {"tiles", "32 columns a block, 32 strands of rows, summed through shared memory", {"small_grid", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int width = 8192;
        NormGrads g;
        g.dy = b.random<float>(n * width);
        g.x = b.random<float>(n * width, -2.0, 2.5);
        g.mean = b.random<float>(n, 0.2, 0.3);
        g.rstd = b.random<float>(n, 0.7, 0.8);
        g.dgain = b.output<float>(width, true);
        g.dshift = b.output<float>(width, true);
        g.rows = static_cast<int>(n), g.width = width;
        return {{"flawed", launch(norm_grads, blocks(width, 256), 256, 0, g)}, {"slices", launch(norm_grads_slices, dim3(blocks(width, 256), 32), 256, 0, g)}, {"tiles", launch(norm_grads_tiles, blocks(width, 32), dim3(32, 32), 0, g)}};
    });

// --- how likely a language model held the next token ---

constexpr int VOCAB = 128256;

// Greatest value so far, and the sum of exponentials relative to it.
struct LogSum {
    float top = -INFINITY, sum = 0.0f;
    __device__ void add(float value) {
        if (value > top) {
            sum = sum * __expf(top - value) + 1.0f;
            top = value;
        } else {
            sum += __expf(value - top);
        }
    }
    __device__ void merge(float other_top, float other_sum) {
        const float both = fmaxf(top, other_top);
        if (both == -INFINITY) return;
        sum = sum * __expf(top - both) + other_sum * __expf(other_top - both);
        top = both;
    }
};
template <int THREADS>
__device__ void write_logprob(LogSum mine, const float *row, const int *targets, float *logprobs) {
    __shared__ float tops[THREADS / 32], sums[THREADS / 32];
    for (int offset = 16; offset > 0; offset >>= 1) {
        const float top = __shfl_xor_sync(~0u, mine.top, offset), sum = __shfl_xor_sync(~0u, mine.sum, offset);
        mine.merge(top, sum);
    }
    if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = mine.top, sums[threadIdx.x / 32] = mine.sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < THREADS / 32; w++) mine.merge(tops[w], sums[w]);
        logprobs[blockIdx.x] = row[targets[blockIdx.x]] - mine.top - __logf(mine.sum);
    }
}
__global__ void token_logprob(const float *__restrict__ logits, const int *__restrict__ targets, float *__restrict__ logprobs) {
    const float *row = logits + static_cast<size_t>(blockIdx.x) * VOCAB;
    LogSum mine;
    for (int v = threadIdx.x; v < VOCAB; v += 256) mine.add(row[v]);
    write_logprob<256>(mine, row, targets, logprobs);
}
__global__ void token_logprob_vectors(const float *__restrict__ logits, const int *__restrict__ targets, float *__restrict__ logprobs) {
    const float *row = logits + static_cast<size_t>(blockIdx.x) * VOCAB;
    const float4 *row4 = reinterpret_cast<const float4 *>(row);
    LogSum mine;
    const auto four = [&](float4 x) {
        const float top = fmaxf(fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w)), mine.top);
        mine.sum = mine.sum * __expf(mine.top - top) + (__expf(x.x - top) + __expf(x.y - top)) + (__expf(x.z - top) + __expf(x.w - top));
        mine.top = top;
    };
    int v = threadIdx.x;
    for (; v + 3 * 256 < VOCAB / 4; v += 4 * 256) {
        const float4 a = row4[v], b = row4[v + 256], c = row4[v + 512], d = row4[v + 768];
        four(a), four(b), four(c), four(d);
    }
    for (; v < VOCAB / 4; v += 256) four(row4[v]);
    write_logprob<256>(mine, row, targets, logprobs);
}
// The next sixteen are under way while these are added.
__global__ void token_logprob_ahead(const float *__restrict__ logits, const int *__restrict__ targets, float *__restrict__ logprobs) {
    const float *row = logits + static_cast<size_t>(blockIdx.x) * VOCAB;
    LogSum mine;
    float next[16];
#pragma unroll
    for (int k = 0; k < 16; k++) next[k] = row[threadIdx.x + 256 * k];
    for (int first = 0; first < VOCAB; first += 16 * 256) {
        float now[16];
#pragma unroll
        for (int k = 0; k < 16; k++) {
            now[k] = next[k];
            const int v = first + 256 * (16 + k) + threadIdx.x;
            next[k] = v < VOCAB ? row[v] : -INFINITY;
        }
        float top = mine.top;
#pragma unroll
        for (int k = 0; k < 16; k++) top = fmaxf(top, now[k]);
        mine.sum *= __expf(mine.top - top);
        mine.top = top;
#pragma unroll
        for (int k = 0; k < 16; k++) mine.sum += __expf(now[k] - top);
    }
    write_logprob<256>(mine, row, targets, logprobs);
}

Study logprobs("language_model_logprob_one_logit_at_a_time", "machine learning: losses", 128, "log-probability of the next token of 128 sequences over 128256 logits",
    "a block of eight warps a row, each thread with a few single logits under way before it adds them one by one",
    {{"vectors", "four times four logits at once", {"memory_latency", "narrow_access"}}, {"ahead", "sixteen logits asked for while the sixteen before are added", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const float *logits = b.random<float>(n * VOCAB, -9.0, 9.0);
        const int *targets = b.random<int>(n, 0, VOCAB);
        float *out = b.output<float>(n);
        return {{"flawed", launch(token_logprob, n, 256, 0, logits, targets, out)}, {"vectors", launch(token_logprob_vectors, n, 256, 0, logits, targets, out)}, {"ahead", launch(token_logprob_ahead, n, 256, 0, logits, targets, out)}};
    });

// --- a step of AdamW ---

struct AdamArgs {
    float *params, *exp_avg, *exp_avg_sq;
    const float *grads;
    int n, step;
    double lr, beta1, beta2, eps, weight_decay;
};
template <typename T>
__device__ __forceinline__ void adamw_update(const AdamArgs &a, int i, T correction1, T correction2) {
    const float lr = a.lr, beta1 = a.beta1, beta2 = a.beta2;
    const float g = a.grads[i];
    float p = a.params[i];
    const float m = beta1 * a.exp_avg[i] + (1.0f - beta1) * g;
    const float v = beta2 * a.exp_avg_sq[i] + (1.0f - beta2) * g * g;
    const float m_hat = m / static_cast<float>(correction1), v_hat = v / static_cast<float>(correction2);
    p -= lr * static_cast<float>(a.weight_decay) * p;
    p -= lr * m_hat / (sqrtf(v_hat) + static_cast<float>(a.eps));
    a.params[i] = p;
    a.exp_avg[i] = m;
    a.exp_avg_sq[i] = v;
}
__global__ void adamw_kernel(AdamArgs a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.n) return;
    const double correction1 = 1.0 - pow(a.beta1, static_cast<double>(a.step));
    const double correction2 = 1.0 - pow(a.beta2, static_cast<double>(a.step));
    adamw_update(a, i, correction1, correction2);
}
__global__ void adamw_kernel_corrected(AdamArgs a, float correction1, float correction2) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.n) return;
    adamw_update(a, i, correction1, correction2);
}
__global__ void __launch_bounds__(256, 8) adamw_kernel_strided(AdamArgs a) {
    const float correction1 = 1.0 - pow(a.beta1, static_cast<double>(a.step));
    const float correction2 = 1.0 - pow(a.beta2, static_cast<double>(a.step));
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += gridDim.x * blockDim.x) adamw_update(a, i, correction1, correction2);
}

Study adamw("adamw_bias_correction_pow_a_parameter", "machine learning: optimisers", 1 << 24, "a step of AdamW for 16777216 parameters",
    "each thread raises both betas to the step's number again, in double precision",
    {{"corrected", "both corrections computed on the host and passed", {"double_precision", "expensive_math"}}, {"strided", "a grid that stays, each thread computes the corrections once for its parameters", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        AdamArgs a;
        a.grads = b.random<float>(n, -0.01, 0.01);
        a.params = b.changed(b.random<float>(n, -0.05, 0.05), n);
        a.exp_avg = b.changed(b.random<float>(n, -0.005, 0.005), n);
        a.exp_avg_sq = b.changed(b.random<float>(n, 1e-6, 1e-4), n);
        a.n = static_cast<int>(n), a.step = 217;
        a.lr = 3e-4, a.beta1 = 0.9, a.beta2 = 0.999, a.eps = 1e-8, a.weight_decay = 0.01;
        const float correction1 = 1.0 - std::pow(a.beta1, a.step), correction2 = 1.0 - std::pow(a.beta2, a.step);
        return {{"flawed", launch(adamw_kernel, blocks(n, 256), 256, 0, a)}, {"corrected", launch(adamw_kernel_corrected, blocks(n, 256), 256, 0, a, correction1, correction2)}, {"strided", launch(adamw_kernel_strided, multiprocessors() * 8, 256, 0, a)}};
    });

// --- rotary position embedding ---

constexpr int HEAD_DIM = 128;

__device__ __forceinline__ __half2 rotated(__half2 pair, float sine, float cosine) {
    const float2 x = __half22float2(pair);
    return __floats2half2_rn(x.x * cosine - x.y * sine, x.x * sine + x.y * cosine);
}
// A pair of one head's values a thread; heads is a power of two.
__global__ void rope(const __half2 *__restrict__ in, __half2 *__restrict__ out, const int *__restrict__ positions, int log_heads, float base) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    const int pair = index % (HEAD_DIM / 2), token = index / (HEAD_DIM / 2) >> log_heads;
    const float freq = 1.0f / powf(base, 2.0f * pair / HEAD_DIM);
    const float angle = positions[token] * freq;
    out[index] = rotated(in[index], sinf(angle), cosf(angle));
}
__global__ void rope_cached(const __half2 *__restrict__ in, __half2 *__restrict__ out, const int *__restrict__ positions, int log_heads, const float2 *__restrict__ cache) {
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    const int pair = index % (HEAD_DIM / 2), token = index / (HEAD_DIM / 2) >> log_heads;
    const float2 turn = cache[positions[token] * (HEAD_DIM / 2) + pair];
    out[index] = rotated(in[index], turn.x, turn.y);
}
// A token a block of 64 x 4, all of its heads by the same turn.
__global__ void rope_token(const __half2 *__restrict__ in, __half2 *__restrict__ out, const int *__restrict__ positions, int log_heads, float base) {
    const int heads = 1 << log_heads;
    const float freq = 1.0f / powf(base, 2.0f * threadIdx.x / HEAD_DIM);
    float sine, cosine;
    sincosf(positions[blockIdx.x] * freq, &sine, &cosine);
    const size_t first = static_cast<size_t>(blockIdx.x) * heads * (HEAD_DIM / 2) + threadIdx.x;
#pragma unroll 4
    for (int head = threadIdx.y; head < heads; head += blockDim.y) out[first + head * (HEAD_DIM / 2)] = rotated(in[first + head * (HEAD_DIM / 2)], sine, cosine);
}

Study rotary("rotary_embedding_angles_for_each_head", "machine learning: attention", 8192, "rotary embedding of 8192 tokens' queries, 32 heads of 128 halves",
    "a power, a sine and a cosine, all precise, for each pair of each head, though the heads of a token share them",
    {{"cached", "sines and cosines from a table of all positions", {"expensive_math"}}, {"token", "a token a block: each thread's turn computed once for eight heads", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 4e-3;
        const int log_heads = 5, longest = 4096;
        const size_t pairs = static_cast<size_t>(n << log_heads) * HEAD_DIM / 2;
        const __half2 *in = reinterpret_cast<const __half2 *>(b.random<__half>(2 * pairs, -3.0, 3.0));
        __half2 *out = reinterpret_cast<__half2 *>(b.output<__half>(2 * pairs));
        std::vector<int> positions(n);
        for (long i = 0; i < n; i++) positions[i] = static_cast<int>(i % longest);
        std::vector<float2> cache(longest * HEAD_DIM / 2);
        for (int i = 0; i < longest * HEAD_DIM / 2; i++) {
            const float angle = i / (HEAD_DIM / 2) * (1.0f / std::pow(10000.0f, 2.0f * (i % (HEAD_DIM / 2)) / HEAD_DIM));
            cache[i] = {std::sin(angle), std::cos(angle)};
        }
        const int *at = b.copy(positions);
        const float2 *turns = b.copy(cache);
        return {{"flawed", launch(rope, pairs / 256, 256, 0, in, out, at, log_heads, 10000.0f)}, {"cached", launch(rope_cached, pairs / 256, 256, 0, in, out, at, log_heads, turns)}, {"token", launch(rope_token, n, dim3(64, 4), 0, in, out, at, log_heads, 10000.0f)}};
    });

// --- scores of a step of decoding against the cached keys ---

struct Decode {
    const __half *queries;  // batch x heads x 128
    const __half *keys;     // batch x key heads x length x 128
    float *scores;          // batch x heads x length
    int length, heads, key_heads;
};
constexpr int KEYS_PER_BLOCK = 128, DECODE_THREADS = 128;

__device__ __forceinline__ void eight(float (&x)[8], uint4 raw) {
    const __half2 *pairs = reinterpret_cast<const __half2 *>(&raw);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float2 two = __half22float2(pairs[k]);
        x[2 * k] = two.x, x[2 * k + 1] = two.y;
    }
}
__device__ __forceinline__ float dot(const float (&a)[8], const float (&b)[8]) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; k++) sum += a[k] * b[k];
    return sum;
}
// 16 lanes a key.
__device__ __forceinline__ float over_sixteen(float sum) {
    for (int offset = 8; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    return sum;
}
constexpr int KEYS_AT_ONCE = DECODE_THREADS / 16;

// GROUP queries against a chunk of their keys, four keys a half warp at a time.
template <int GROUP>
__device__ __forceinline__ void score_keys(const Decode &d, int chunk, int batch, int first_head) {
    const int part = threadIdx.x % 16, key_head = first_head / (d.heads / d.key_heads);
    const size_t first = static_cast<size_t>(batch) * d.heads + first_head;
    float queries[GROUP][8];
#pragma unroll
    for (int q = 0; q < GROUP; q++) eight(queries[q], *reinterpret_cast<const uint4 *>(d.queries + (first + q) * 128 + part * 8));
    const uint4 *keys = reinterpret_cast<const uint4 *>(d.keys) + (static_cast<size_t>(batch) * d.key_heads + key_head) * d.length * 16 + part;
    for (int k = 0; k < KEYS_PER_BLOCK; k += 4 * KEYS_AT_ONCE) {
        const int key = chunk * KEYS_PER_BLOCK + k + threadIdx.x / 16;
        uint4 raw[4];
#pragma unroll
        for (int i = 0; i < 4; i++) raw[i] = keys[static_cast<size_t>(key + i * KEYS_AT_ONCE) * 16];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float values[8];
            eight(values, raw[i]);
#pragma unroll
            for (int q = 0; q < GROUP; q++) {
                const float score = over_sixteen(dot(queries[q], values));
                if (part == q) d.scores[(first + q) * d.length + key + i * KEYS_AT_ONCE] = score * 0.088388348f;
            }
        }
    }
}
__global__ void __launch_bounds__(DECODE_THREADS) decode_scores(Decode d) { score_keys<1>(d, blockIdx.x, blockIdx.y, blockIdx.z); }
// Heads first: those that share keys run at the same time.
__global__ void __launch_bounds__(DECODE_THREADS) decode_scores_heads_first(Decode d) { score_keys<1>(d, blockIdx.y, blockIdx.z, blockIdx.x); }
// All four queries of a key head at once.
__global__ void __launch_bounds__(DECODE_THREADS) decode_scores_group(Decode d) { score_keys<4>(d, blockIdx.x, blockIdx.z, blockIdx.y * 4); }

Study decode("decode_scores_key_heads_swept_again", "machine learning: attention", 64, "scores of one query of each of 32 heads against 4096 cached keys of 8 key heads, 64 sequences",
    "heads come last in the grid: the four that share a key head sweep its keys of all sequences one after the other, longer than the L2",
    {{"heads_first", "heads first in the grid, so that those which share keys run together", {"cache_locality"}}, {"group", "the four queries of a key head in one block, each key loaded once", {"cache_locality", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        Decode d;
        d.length = 4096, d.heads = 32, d.key_heads = 8;
        b.tolerance = 1e-3;
        d.queries = b.random<__half>(n * d.heads * 128);
        d.keys = b.random<__half>(n * d.key_heads * d.length * 128);
        d.scores = b.output<float>(n * d.heads * d.length);
        const unsigned chunks = d.length / KEYS_PER_BLOCK, batch = static_cast<unsigned>(n);
        return {{"flawed", launch(decode_scores, dim3(chunks, batch, d.heads), DECODE_THREADS, 0, d)}, {"heads_first", launch(decode_scores_heads_first, dim3(d.heads, chunks, batch), DECODE_THREADS, 0, d)}, {"group", launch(decode_scores_group, dim3(chunks, d.key_heads, batch), DECODE_THREADS, 0, d)}};
    });

// --- revenue of discounted items, from rows ---

struct LineItem {
    long long order;
    int part, supplier, number;
    float quantity, price, discount, tax;
    char returned, status, mode, instructions;
    int shipped, committed, received;
    int comment_offset;
    long long comment_hash;
};
static_assert(sizeof(LineItem) == 64, "as the loader writes it");
struct Question {
    int from, to;
    float least, most, quantity;
    __device__ __forceinline__ float revenue(int shipped, float discount, float quantity_of, float price) const {
        return shipped >= from && shipped < to && discount >= least && discount <= most && quantity_of < quantity ? price * discount : 0.0f;
    }
};
__device__ void add_revenue(float mine, double *revenue) {
    __shared__ float parts[8];
    mine = warp_sum(mine);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x < 32) {
        mine = warp_sum(threadIdx.x < 8 ? parts[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) atomicAdd(revenue, static_cast<double>(mine));
    }
}
__global__ void __launch_bounds__(256) discount_revenue(const LineItem *__restrict__ items, int count, Question q, double *revenue) {
    float mine = 0.0f;
#pragma unroll 4
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
        const LineItem &item = items[i];
        mine += q.revenue(item.shipped, item.discount, item.quantity, item.price);
    }
    add_revenue(mine, revenue);
}
struct Columns {
    const int *shipped;
    const float *discount, *quantity, *price;
};
__global__ void __launch_bounds__(256) discount_revenue_columns(Columns c, int count, Question q, double *revenue) {
    float mine = 0.0f;
#pragma unroll 4
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) mine += q.revenue(c.shipped[i], c.discount[i], c.quantity[i], c.price[i]);
    add_revenue(mine, revenue);
}
// What such questions ask for, in rows of its own.
struct __align__(16) HotItem {
    int shipped;
    float discount, quantity, price;
};
__global__ void __launch_bounds__(256) discount_revenue_split(const HotItem *__restrict__ items, int count, Question q, double *revenue) {
    float mine = 0.0f;
#pragma unroll 4
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
        const HotItem item = items[i];
        mine += q.revenue(item.shipped, item.discount, item.quantity, item.price);
    }
    add_revenue(mine, revenue);
}

template <typename T>
const T *seven_times(Buffers &b, const std::vector<T> &rows) {
    T *all = b.allocate<T>(7 * rows.size());
    for (int k = 0; k < 7; k++) CHECK(cudaMemcpy(all + k * rows.size(), rows.data(), rows.size() * sizeof(T), cudaMemcpyHostToDevice));
    return all;
}

Study line_items("row_store_four_fields_of_wide_rows", "databases", 7 << 20, "revenue of the discounted items of a year among 7340032 rows",
    "rows of 64 bytes lie one after the other, and each thread picks four fields of 4 bytes out of its row",
    {{"columns", "a column a field", {"uncoalesced_access"}}, {"split", "the four fields in rows of their own, 16 bytes each", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const long some = n / 7;  // as many rows are made; they come seven times
        std::vector<LineItem> rows(some);
        std::vector<HotItem> hot(some);
        std::vector<int> shipped(some);
        std::vector<float> discount(some), quantity(some), price(some);
        for (long i = 0; i < some; i++) {
            const unsigned h = hash(static_cast<unsigned>(i)), g = hash(h + 1);
            LineItem &row = rows[i];
            row = {};
            row.order = i / 4, row.part = static_cast<int>(g % 200000), row.supplier = static_cast<int>(h % 10000), row.number = static_cast<int>(i % 4);
            row.quantity = 1.0f + h % 50, row.price = row.quantity * (900.0f + g % 1200), row.discount = (h >> 8) % 11 * 0.01f, row.tax = (g >> 8) % 9 * 0.01f;
            row.shipped = static_cast<int>((h >> 12) % 2526), row.committed = row.shipped - 10, row.received = row.shipped + 12;
            hot[i] = {row.shipped, row.discount, row.quantity, row.price};
            shipped[i] = row.shipped, discount[i] = row.discount, quantity[i] = row.quantity, price[i] = row.price;
        }
        const Question q = {731, 1096, 0.045f, 0.075f, 24.0f};
        const LineItem *items = seven_times(b, rows);
        const HotItem *hots = seven_times(b, hot);
        const Columns c = {seven_times(b, shipped), seven_times(b, discount), seven_times(b, quantity), seven_times(b, price)};
        double *out = b.output<double>(1, true);
        const int grid = multiprocessors() * 8, count = static_cast<int>(n);
        return {{"flawed", launch(discount_revenue, grid, 256, 0, items, count, q, out)}, {"columns", launch(discount_revenue_columns, grid, 256, 0, c, count, q, out)}, {"split", launch(discount_revenue_split, grid, 256, 0, hots, count, q, out)}};
    });

// --- weights of four bits, by the quantiles of a normal distribution ---

__constant__ float nf4_levels[16] = {-1.0f, -0.6961928f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f, -0.09105004f, 0.0f, 0.0795803f, 0.1609302f, 0.2461123f, 0.33791524f, 0.44070983f, 0.562617f, 0.72295684f, 1.0f};
constexpr int NF4_BLOCK = 64;

// Eight weights of one word, the first in the lowest bits.
template <typename Level>
__device__ __forceinline__ void nf4_word(unsigned word, float absmax, uint4 *out, Level level) {
    unsigned packed[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float low = level(word >> (8 * k) & 15), high = level(word >> (8 * k + 4) & 15);
        const __half2 pair = __floats2half2_rn(low * absmax, high * absmax);
        packed[k] = *reinterpret_cast<const unsigned *>(&pair);
    }
    *out = make_uint4(packed[0], packed[1], packed[2], packed[3]);
}
__global__ void nf4_dequantize(const unsigned *__restrict__ codes, const float *__restrict__ absmax, uint4 *__restrict__ out, int words) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < words) nf4_word(codes[i], absmax[i / (NF4_BLOCK / 8)], out + i, [](unsigned code) { return nf4_levels[code]; });
}
__global__ void nf4_dequantize_shared(const unsigned *__restrict__ codes, const float *__restrict__ absmax, uint4 *__restrict__ out, int words) {
    __shared__ float levels[16];
    if (threadIdx.x < 16) levels[threadIdx.x] = nf4_levels[threadIdx.x];
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < words) nf4_word(codes[i], absmax[i / (NF4_BLOCK / 8)], out + i, [&](unsigned code) { return levels[code]; });
}
// The table lies in the lanes' registers; whole warps only.
__global__ void nf4_dequantize_lanes(const unsigned *__restrict__ codes, const float *__restrict__ absmax, uint4 *__restrict__ out, const float *__restrict__ levels) {
    const float mine = levels[threadIdx.x % 16];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    nf4_word(codes[i], absmax[i / (NF4_BLOCK / 8)], out + i, [=](unsigned code) { return __shfl_sync(~0u, mine, code); });
}

Study nf4("nf4_levels_looked_up_in_constant_memory", "machine learning: quantisation", 1 << 23, "67108864 weights of four bits to halves, by sixteen levels and a factor for each 64",
    "the sixteen levels lie in constant memory, and each lane wants another",
    {{"shared", "the levels copied to shared memory", {"constant_divergence"}}, {"lanes", "a level a lane in registers, handed over by shuffles", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const float levels[16] = {-1.0f, -0.6961928f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f, -0.09105004f, 0.0f, 0.0795803f, 0.1609302f, 0.2461123f, 0.33791524f, 0.44070983f, 0.562617f, 0.72295684f, 1.0f};
        const unsigned *codes = reinterpret_cast<const unsigned *>(b.random<unsigned char>(4 * n, 0.0, 256.0));
        const float *absmax = b.random<float>(n * 8 / NF4_BLOCK, 0.01, 0.1);
        uint4 *out = reinterpret_cast<uint4 *>(b.output<__half>(8 * n));
        const float *table = b.copy(std::vector<float>(levels, levels + 16));
        const int words = static_cast<int>(n);
        return {{"flawed", launch(nf4_dequantize, blocks(n, 256), 256, 0, codes, absmax, out, words)}, {"shared", launch(nf4_dequantize_shared, blocks(n, 256), 256, 0, codes, absmax, out, words)}, {"lanes", launch(nf4_dequantize_lanes, n / 256, 256, 0, codes, absmax, out, table)}};
    });

// --- SELECT tenant, SUM(units) GROUP BY tenant ---

constexpr int TENANTS = 4096;

__global__ void sum_by_tenant(const int *__restrict__ tenants, const unsigned *__restrict__ units, int rows, unsigned *__restrict__ sums) {
    const int stride = gridDim.x * blockDim.x;
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += stride) atomicAdd(&sums[tenants[row]], units[row]);
}
__global__ void __launch_bounds__(1024) sum_by_tenant_block(const int *__restrict__ tenants, const unsigned *__restrict__ units, int rows, unsigned *__restrict__ sums) {
    __shared__ unsigned mine[TENANTS];
    for (int t = threadIdx.x; t < TENANTS; t += blockDim.x) mine[t] = 0;
    __syncthreads();
    const int stride = gridDim.x * blockDim.x;
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += stride) atomicAdd(&mine[tenants[row]], units[row]);
    __syncthreads();
    for (int t = threadIdx.x; t < TENANTS; t += blockDim.x)
        if (mine[t]) atomicAdd(&sums[t], mine[t]);
}
// Eight rows in a row a thread: one addition for each run of a tenant.
__global__ void sum_by_tenant_runs(const int4 *__restrict__ tenants, const uint4 *__restrict__ units, int eights, unsigned *__restrict__ sums) {
    const int stride = gridDim.x * blockDim.x;
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < eights; at += stride) {
        const int4 t0 = tenants[2 * at], t1 = tenants[2 * at + 1];
        const uint4 u0 = units[2 * at], u1 = units[2 * at + 1];
        const int tenant[8] = {t0.x, t0.y, t0.z, t0.w, t1.x, t1.y, t1.z, t1.w};
        const unsigned unit[8] = {u0.x, u0.y, u0.z, u0.w, u1.x, u1.y, u1.z, u1.w};
        unsigned sum = unit[0];
#pragma unroll
        for (int k = 1; k < 8; k++) {
            if (tenant[k] != tenant[k - 1]) {
                atomicAdd(&sums[tenant[k - 1]], sum);
                sum = 0;
            }
            sum += unit[k];
        }
        atomicAdd(&sums[tenant[7]], sum);
    }
}

Study tenants("group_by_tenant_added_to_the_result_row_by_row", "databases", 1 << 24, "units of 4096 tenants summed over 16777216 rows, which arrive in bursts",
    "each row adds to its tenant's sum in global memory",
    {{"block", "a table of sums a block in shared memory, added at the end", {"global_atomics"}}, {"runs", "eight rows a thread, one addition for each run of the same tenant", {"global_atomics", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> tenant(n);
        // A few tenants are much larger than most; a burst holds 1 to 24 rows.
        for (long i = 0, burst = 0; i < n; burst++) {
            const unsigned h = hash(static_cast<unsigned>(burst) + 77);
            const double u = (h >> 5) / 134217728.0;
            const int who = static_cast<int>(TENANTS * u * u);
            for (unsigned k = 1 + hash(h) % 24; k > 0 && i < n; k--) tenant[i++] = static_cast<int>(who * 1237L % TENANTS);
        }
        const int *keys = b.copy(tenant);
        const unsigned *units = b.random<unsigned>(n, 1.0, 50.0);
        unsigned *sums = b.output<unsigned>(TENANTS, true);
        const int rows = static_cast<int>(n), count = multiprocessors();
        return {{"flawed", launch(sum_by_tenant, count * 8, 256, 0, keys, units, rows, sums)}, {"block", launch(sum_by_tenant_block, count * 2, 1024, 0, keys, units, rows, sums)}, {"runs", launch(sum_by_tenant_runs, count * 8, 256, 0, reinterpret_cast<const int4 *>(keys), reinterpret_cast<const uint4 *>(units), rows / 8, sums)}};
    });

// --- mean of the neighbours' features, a layer of a graph network ---

struct Graph {
    const int *offsets, *neighbours;
    const float2 *features;  // 64 floats a vertex, two a lane
    float *means;
    int vertices;
};
__device__ __forceinline__ float2 sum_features(const Graph &g, int first, int end, int lane) {
    float2 sum = {0.0f, 0.0f};
#pragma unroll 4
    for (int e = first; e < end; e++) {
        const float2 x = g.features[g.neighbours[e] * 32 + lane];
        sum.x += x.x;
        sum.y += x.y;
    }
    return sum;
}
__device__ __forceinline__ void store_mean(const Graph &g, int vertex, int lane, float2 sum) {
    const float scale = 1.0f / max(g.offsets[vertex + 1] - g.offsets[vertex], 1);
    reinterpret_cast<float2 *>(g.means)[vertex * 32 + lane] = make_float2(sum.x * scale, sum.y * scale);
}
// A vertex a warp.
__global__ void __launch_bounds__(256) aggregate(Graph g) {
    const int vertex = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (vertex >= g.vertices) return;
    store_mean(g, vertex, lane, sum_features(g, g.offsets[vertex], g.offsets[vertex + 1], lane));
}
// The first blocks take a hub each, the others a vertex a warp.
__global__ void __launch_bounds__(256) aggregate_hubs(Graph g, const int *__restrict__ hubs, int hub_count, int hub_degree) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (blockIdx.x >= hub_count) {
        const int vertex = (blockIdx.x - hub_count) * 8 + warp;
        if (vertex >= g.vertices) return;
        const int first = g.offsets[vertex], end = g.offsets[vertex + 1];
        if (end - first < hub_degree) store_mean(g, vertex, lane, sum_features(g, first, end, lane));
        return;
    }
    __shared__ float2 parts[8][32];
    const int vertex = hubs[blockIdx.x], first = g.offsets[vertex], end = g.offsets[vertex + 1];
    const int share = (end - first + 7) / 8, from = first + warp * share;
    parts[warp][lane] = sum_features(g, from, min(from + share, end), lane);
    __syncthreads();
    if (warp > 0) return;
    float2 sum = parts[0][lane];
    for (int w = 1; w < 8; w++) {
        sum.x += parts[w][lane].x;
        sum.y += parts[w][lane].y;
    }
    store_mean(g, vertex, lane, sum);
}
struct Piece {
    int vertex, first, end;
};
// At most 128 neighbours a warp; vertices of several pieces are added up.
__global__ void __launch_bounds__(256) aggregate_pieces(Graph g, const Piece *__restrict__ pieces, int count) {
    const int index = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (index >= count) return;
    const Piece piece = pieces[index];
    const float2 sum = sum_features(g, piece.first, piece.end, lane);
    const int degree = g.offsets[piece.vertex + 1] - g.offsets[piece.vertex];
    if (degree == piece.end - piece.first) {
        store_mean(g, piece.vertex, lane, sum);
        return;
    }
    float *mean = g.means + piece.vertex * 64 + 2 * lane;
    atomicAdd(mean, sum.x / degree);
    atomicAdd(mean + 1, sum.y / degree);
}

Study neighbours("graph_network_mean_a_hub_is_one_warp", "graphs: graph neural networks", 200000, "mean of 64 features over the neighbours of 200000 vertices, whose degrees follow a power law",
    "a warp a vertex: hubs of up to 1500 neighbours keep single warps busy long after the others",
    {{"hubs", "vertices of 256 neighbours and more to whole blocks, which start first", {"workload_imbalance"}}, {"pieces", "neighbours cut into pieces of at most 128 for a warp, those of one vertex added atomically", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> offsets(n + 1), hubs;
        std::vector<Piece> pieces;
        for (long v = 0; v < n; v++) {
            const double u = (hash(static_cast<unsigned>(v) * 3 + 1) + 0.5) / 4294967296.0;
            const int degree = std::min(static_cast<int>(4.0 * std::pow(u, -1.0 / 1.3)), 1500);
            offsets[v + 1] = offsets[v] + degree;
            if (degree >= 256) hubs.push_back(static_cast<int>(v));
            for (int first = offsets[v]; first < offsets[v + 1]; first += 128) pieces.push_back({static_cast<int>(v), first, std::min(first + 128, offsets[v + 1])});
        }
        std::vector<int> edges(offsets[n]);
        for (size_t e = 0; e < edges.size(); e++) edges[e] = static_cast<int>(hash(static_cast<unsigned>(e) + 9) % n);
        Graph g;
        g.offsets = b.copy(offsets), g.neighbours = b.copy(edges);
        g.features = reinterpret_cast<const float2 *>(b.random<float>(64 * n));
        g.means = b.output<float>(64 * n, true);
        g.vertices = static_cast<int>(n);
        const int hub_count = static_cast<int>(hubs.size()), piece_count = static_cast<int>(pieces.size());
        const int *hub_list = b.copy(hubs);
        const Piece *piece_list = b.copy(pieces);
        return {{"flawed", launch(aggregate, blocks(n, 8), 256, 0, g)}, {"hubs", launch(aggregate_hubs, hub_count + blocks(n, 8), 256, 0, g, hub_list, hub_count, 256)}, {"pieces", launch(aggregate_pieces, blocks(piece_count, 8), 256, 0, g, piece_list, piece_count)}};
    });

// --- the nearest of a vector search ---

constexpr int MAX_K = 16;

// Distances lie candidate by candidate, a query a thread: eight of them at a time to `consider`.
template <typename Consider>
__device__ __forceinline__ void all_candidates(const float *distances, int query, int queries, int candidates, Consider consider) {
    for (int first = 0; first < candidates; first += 8) {
        float next[8];
#pragma unroll
        for (int i = 0; i < 8; i++) next[i] = distances[static_cast<size_t>(first + i) * queries + query];
#pragma unroll
        for (int i = 0; i < 8; i++) consider(next[i], first + i);
    }
}
__global__ void __launch_bounds__(256) nearest(const float *__restrict__ distances, int queries, int candidates, int k, int *__restrict__ ids, float *__restrict__ found) {
    const int query = blockIdx.x * blockDim.x + threadIdx.x;
    float best[MAX_K];
    int best_id[MAX_K];
    for (int i = 0; i < k; i++) best[i] = INFINITY, best_id[i] = -1;
    float worst = INFINITY;
    all_candidates(distances, query, queries, candidates, [&](float distance, int id) {
        if (distance >= worst) return;
        int at = k - 1;
        while (at > 0 && best[at - 1] > distance) {
            best[at] = best[at - 1];
            best_id[at] = best_id[at - 1];
            at--;
        }
        best[at] = distance;
        best_id[at] = id;
        worst = best[k - 1];
    });
    for (int i = 0; i < k; i++) {
        ids[i * queries + query] = best_id[i];
        found[i * queries + query] = best[i];
    }
}
template <int K>
__global__ void __launch_bounds__(256) nearest_fixed(const float *__restrict__ distances, int queries, int candidates, int *__restrict__ ids, float *__restrict__ found) {
    const int query = blockIdx.x * blockDim.x + threadIdx.x;
    float best[K];
    int best_id[K];
#pragma unroll
    for (int i = 0; i < K; i++) best[i] = INFINITY, best_id[i] = -1;
    all_candidates(distances, query, queries, candidates, [&](float distance, int id) {
        if (distance >= best[K - 1]) return;
        // Down to its place: what is farther moves on by one.
#pragma unroll
        for (int i = K - 1; i > 0; i--) {
            const bool moves = best[i - 1] > distance, here = best[i] > distance;
            best_id[i] = moves ? best_id[i - 1] : here ? id : best_id[i];
            best[i] = moves ? best[i - 1] : here ? distance : best[i];
        }
        if (best[0] > distance) best[0] = distance, best_id[0] = id;
    });
#pragma unroll
    for (int i = 0; i < K; i++) {
        ids[i * queries + query] = best_id[i];
        found[i * queries + query] = best[i];
    }
}
__global__ void __launch_bounds__(256) nearest_shared(const float *__restrict__ distances, int queries, int candidates, int k, int *__restrict__ ids, float *__restrict__ found) {
    __shared__ float all_best[MAX_K][256];
    __shared__ short all_ids[MAX_K][256];
    const int query = blockIdx.x * blockDim.x + threadIdx.x;
    float *best = &all_best[0][threadIdx.x];
    short *best_id = &all_ids[0][threadIdx.x];
    for (int i = 0; i < k; i++) best[i * 256] = INFINITY, best_id[i * 256] = -1;
    float worst = INFINITY;
    all_candidates(distances, query, queries, candidates, [&](float distance, int id) {
        if (distance >= worst) return;
        int at = (k - 1) * 256;
        float next;
        while (at > 0 && (next = best[at - 256]) > distance) {
            best[at] = next;
            best_id[at] = best_id[at - 256];
            at -= 256;
        }
        best[at] = distance;
        best_id[at] = static_cast<short>(id);
        worst = best[(k - 1) * 256];
    });
    for (int i = 0; i < k; i++) {
        ids[i * queries + query] = best_id[i * 256];
        found[i * queries + query] = best[i * 256];
    }
}

Study vectors("vector_search_nearest_ten_in_an_indexed_array", "databases: vector search", 1 << 16, "the ten nearest of 1024 candidates for each of 65536 queries, from a matrix of distances",
    "each thread keeps its ten best in an array whose places are only known at run time",
    {{"fixed", "ten known at compile time, each place compared in turn", {"local_memory"}}, {"shared", "the lists in shared memory, a column a thread", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const int candidates = 1024, queries = static_cast<int>(n);
        const float *distances = b.random<float>(n * candidates, 0.0, 2.0);
        int *ids = b.allocate<int>(10 * n);
        float *found = b.output<float>(10 * n);
        return {{"flawed", launch(nearest, n / 256, 256, 0, distances, queries, candidates, 10, ids, found)}, {"fixed", launch(nearest_fixed<10>, n / 256, 256, 0, distances, queries, candidates, ids, found)}, {"shared", launch(nearest_shared, n / 256, 256, 0, distances, queries, candidates, 10, ids, found)}};
    });

// --- activations to eight bits, a scale a channel ---

__device__ __forceinline__ signed char to_int8(float x, float inverse_scale) { return static_cast<signed char>(max(-127, min(127, __float2int_rn(x * inverse_scale)))); }

__global__ void quantize_per_channel(const float4 *__restrict__ x, char4 *__restrict__ out, const float *__restrict__ inverse_scales, long long channels, long long spatial, long long fours) {
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i >= fours) return;
    const float4 v = x[i];
    char4 q;
    q.x = to_int8(v.x, inverse_scales[(4 * i + 0) / spatial % channels]);
    q.y = to_int8(v.y, inverse_scales[(4 * i + 1) / spatial % channels]);
    q.z = to_int8(v.z, inverse_scales[(4 * i + 2) / spatial % channels]);
    q.w = to_int8(v.w, inverse_scales[(4 * i + 3) / spatial % channels]);
    out[i] = q;
}
// A channel of an image a block; its size a multiple of four.
__global__ void quantize_planes(const float4 *__restrict__ x, char4 *__restrict__ out, const float *__restrict__ inverse_scales, int fours_each) {
    const float inverse_scale = inverse_scales[blockIdx.x];
    const size_t first = (blockIdx.y * static_cast<size_t>(gridDim.x) + blockIdx.x) * fours_each;
#pragma unroll 4
    for (int i = threadIdx.x; i < fours_each; i += blockDim.x) {
        const float4 v = x[first + i];
        out[first + i] = make_char4(to_int8(v.x, inverse_scale), to_int8(v.y, inverse_scale), to_int8(v.z, inverse_scale), to_int8(v.w, inverse_scale));
    }
}
// Division by what is known on the host.
struct FastDivide {
    unsigned divisor, multiplier, shift;
    explicit FastDivide(unsigned d) : divisor(d), shift(0) {
        while ((1ull << shift) < d) shift++;
        multiplier = static_cast<unsigned>((1ull << 32) * ((1ull << shift) - d) / d + 1);
    }
    __device__ __forceinline__ unsigned quotient(unsigned n) const { return (__umulhi(n, multiplier) + n) >> shift; }
    __device__ __forceinline__ unsigned remainder(unsigned n) const { return n - quotient(n) * divisor; }
};
__global__ void quantize_multiplied(const float4 *__restrict__ x, char4 *__restrict__ out, const float *__restrict__ inverse_scales, FastDivide channels, FastDivide spatial, unsigned fours) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= fours) return;
    const float4 v = x[i];
    char4 q;
    q.x = to_int8(v.x, inverse_scales[channels.remainder(spatial.quotient(4 * i + 0))]);
    q.y = to_int8(v.y, inverse_scales[channels.remainder(spatial.quotient(4 * i + 1))]);
    q.z = to_int8(v.z, inverse_scales[channels.remainder(spatial.quotient(4 * i + 2))]);
    q.w = to_int8(v.w, inverse_scales[channels.remainder(spatial.quotient(4 * i + 3))]);
    out[i] = q;
}

Study activations("quantize_channel_of_each_value_divided", "machine learning: quantisation", 48, "activations of 48 images, 256 channels of 56 x 56, to eight bits with a scale a channel",
    "each value finds its channel by two divisions of 64 bits",
    {{"planes", "a channel of an image a block, one scale for all of it", {"integer_arithmetic", "redundant_loads"}}, {"multiplied", "indices of 32 bits, divisions by products prepared on the host", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const int channels = 256, spatial = 56 * 56;
        const long fours = n * channels * spatial / 4;
        const float4 *x = reinterpret_cast<const float4 *>(b.random<float>(4 * fours, -3.0, 3.0));
        const float *inverse_scales = b.random<float>(channels, 30.0, 60.0);
        char4 *out = reinterpret_cast<char4 *>(b.output<signed char>(4 * fours));
        return {{"flawed", launch(quantize_per_channel, blocks(fours, 256), 256, 0, x, out, inverse_scales, channels, spatial, fours)}, {"planes", launch(quantize_planes, dim3(channels, n), 196, 0, x, out, inverse_scales, spatial / 4)}, {"multiplied", launch(quantize_multiplied, blocks(fours, 256), 256, 0, x, out, inverse_scales, FastDivide(channels), FastDivide(spatial), fours)}};
    });

// --- how far names are from one that is looked for ---

// The edit distance to a pattern of at most 32 letters, a bit a letter.
struct Distance {
    unsigned more = ~0u, less = 0;
    int score;
    __device__ __forceinline__ explicit Distance(int length) : score(length) {}
    __device__ __forceinline__ void add(unsigned equal, int last) {
        const unsigned vertical = equal | less, across = (((equal & more) + more) ^ more) | equal;
        unsigned up = less | ~(across | more), down = more & across;
        score += static_cast<int>(up >> last & 1) - static_cast<int>(down >> last & 1);
        up = up << 1 | 1;
        down <<= 1;
        more = down | ~(vertical | up);
        less = up & vertical;
    }
};
struct Names {
    const uint4 *text;      // CHAR(64), filled up with zeros
    const unsigned *masks;  // of each of 128 letters, where it stands in the pattern
    unsigned char *distances;
    int count, length;
};
__device__ __forceinline__ void load_masks(const Names &n, unsigned (&masks)[128]) {
    if (threadIdx.x < 128) masks[threadIdx.x] = n.masks[threadIdx.x];
    __syncthreads();
}
// Sixteen letters; whether the name ends among them.
__device__ __forceinline__ bool add_letters(Distance &distance, uint4 letters, const unsigned (&masks)[128], int last) {
    const unsigned words[4] = {letters.x, letters.y, letters.z, letters.w};
#pragma unroll
    for (int w = 0; w < 4; w++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const unsigned letter = words[w] >> (8 * k) & 127;
            if (letter == 0) return true;
            distance.add(masks[letter], last);
        }
    return false;
}
__device__ __forceinline__ void compare_name(const Names &n, int row, const unsigned (&masks)[128]) {
    Distance distance(n.length);
    for (int part = 0; part < 4; part++)
        if (add_letters(distance, n.text[row * 4 + part], masks, n.length - 1)) break;
    n.distances[row] = static_cast<unsigned char>(distance.score);
}
__global__ void __launch_bounds__(256) name_distances(Names n) {
    __shared__ unsigned masks[128];
    load_masks(n, masks);
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row < n.count) compare_name(n, row, masks);
}
// Rows by the length of their names.
__global__ void __launch_bounds__(256) name_distances_ordered(Names n, const int *__restrict__ order) {
    __shared__ unsigned masks[128];
    load_masks(n, masks);
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n.count) compare_name(n, order[i], masks);
}
// 1024 rows a block: who has finished takes the next.
__global__ void __launch_bounds__(256) name_distances_refilled(Names n) {
    __shared__ unsigned masks[128];
    __shared__ int next;
    if (threadIdx.x == 0) next = 256;
    load_masks(n, masks);
    const int first = blockIdx.x * 1024, rows = min(1024, n.count - first);
    int row = threadIdx.x, part = 0;
    Distance distance(n.length);
    while (row < rows) {
        const bool ended = add_letters(distance, n.text[(first + row) * 4 + part], masks, n.length - 1);
        if (ended || ++part == 4) {
            n.distances[first + row] = static_cast<unsigned char>(distance.score);
            row = atomicAdd(&next, 1);
            part = 0;
            distance = Distance(n.length);
        }
    }
}

Study names("fuzzy_match_names_of_uneven_length_a_thread", "databases: text", 3 << 20, "edit distance of 3145728 names of up to 64 letters to a pattern of 24",
    "a name a thread as they come: a warp's short names wait for its longest",
    {{"ordered", "rows by the length of their names", {"branch_divergence"}}, {"refilled", "a thread takes the next of its block's names when it has finished one", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const std::string pattern = "international trading co";
        std::vector<unsigned> masks(128);
        for (size_t i = 0; i < pattern.size(); i++) masks[pattern[i]] |= 1u << i;
        std::vector<unsigned char> text(64 * n);
        std::vector<int> lengths(n), order(n), starts(66);
        unsigned state = 12345;
        for (long row = 0; row < n; row++) {
            const double u = (hash(static_cast<unsigned>(row)) + 0.5) / 4294967296.0;
            const int length = std::min(3 + static_cast<int>(-14.0 * std::log(u)), 63);
            for (int k = 0; k < length; k++) {
                state = state * 1664525u + 1013904223u;
                text[64 * row + k] = "etaoinshrdlucmfwypvbgkjqxz  eaointr"[(state >> 16) % 35];
            }
            lengths[row] = length;
            starts[length + 1]++;
        }
        for (int length = 1; length < 66; length++) starts[length] += starts[length - 1];
        for (long row = 0; row < n; row++) order[starts[lengths[row]]++] = static_cast<int>(row);
        Names names;
        names.text = reinterpret_cast<const uint4 *>(b.copy(text));
        names.masks = b.copy(masks);
        names.distances = b.output<unsigned char>(n);
        names.count = static_cast<int>(n), names.length = static_cast<int>(pattern.size());
        const int *by_length = b.copy(order);
        return {{"flawed", launch(name_distances, blocks(n, 256), 256, 0, names)}, {"ordered", launch(name_distances_ordered, blocks(n, 256), 256, 0, names, by_length)}, {"refilled", launch(name_distances_refilled, blocks(n, 1024), 256, 0, names)}};
    });

// --- a residual added, and its norm ---

constexpr int HIDDEN = 4096, NORM_THREADS = 256, NORM_PARTS = HIDDEN / 8 / NORM_THREADS;

// A token a block, which stays in registers between sum and scaling.
__global__ void __launch_bounds__(NORM_THREADS) add_rms_norm(const uint4 *__restrict__ x, const uint4 *__restrict__ residual, const uint4 *__restrict__ gain, uint4 *__restrict__ sums, uint4 *__restrict__ out) {
    __shared__ float parts[NORM_THREADS / 32];
    const size_t first = static_cast<size_t>(blockIdx.x) * (HIDDEN / 8) + threadIdx.x;
    uint4 a[NORM_PARTS], b[NORM_PARTS];
#pragma unroll
    for (int p = 0; p < NORM_PARTS; p++) a[p] = x[first + p * NORM_THREADS], b[p] = residual[first + p * NORM_THREADS];
    float2 values[NORM_PARTS][4];
    float squares = 0.0f;
#pragma unroll
    for (int p = 0; p < NORM_PARTS; p++) {
        uint4 sum;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float2 u = __half22float2(reinterpret_cast<const __half2 *>(&a[p])[k]), v = __half22float2(reinterpret_cast<const __half2 *>(&b[p])[k]);
            values[p][k] = make_float2(u.x + v.x, u.y + v.y);
            reinterpret_cast<__half2 *>(&sum)[k] = __floats2half2_rn(values[p][k].x, values[p][k].y);
            squares += values[p][k].x * values[p][k].x + values[p][k].y * values[p][k].y;
        }
        sums[first + p * NORM_THREADS] = sum;
    }
    squares = warp_sum(squares);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = squares;
    __syncthreads();
    squares = 0.0f;
#pragma unroll
    for (int w = 0; w < NORM_THREADS / 32; w++) squares += parts[w];
    const float scale = rsqrtf(squares / HIDDEN + 1e-5f);
#pragma unroll
    for (int p = 0; p < NORM_PARTS; p++) {
        const uint4 g = gain[threadIdx.x + p * NORM_THREADS];
        uint4 scaled;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float2 by = __half22float2(reinterpret_cast<const __half2 *>(&g)[k]);
            reinterpret_cast<__half2 *>(&scaled)[k] = __floats2half2_rn(values[p][k].x * scale * by.x, values[p][k].y * scale * by.y);
        }
        out[first + p * NORM_THREADS] = scaled;
    }
}

Study residual_norm("sound_residual_rms_norm_in_registers", "machine learning: norms", 8192, "a residual added to 8192 tokens of 4096 halves, the sum and its RMS norm written", "", {},
    [](Buffers &b, long n) -> Sides {
        const auto halves = [&b](size_t count, double low, double high) { return reinterpret_cast<const uint4 *>(b.random<__half>(count, low, high)); };
        const uint4 *x = halves(n * HIDDEN, -2.0, 2.0), *residual = halves(n * HIDDEN, -4.0, 4.0), *gain = halves(HIDDEN, 0.5, 1.5);
        uint4 *sums = reinterpret_cast<uint4 *>(b.output<__half>(n * HIDDEN)), *out = reinterpret_cast<uint4 *>(b.output<__half>(n * HIDDEN));
        return {{"sound", launch(add_rms_norm, n, NORM_THREADS, 0, x, residual, gain, sums, out)}};
    });

// --- which rows a scan lets through ---

struct Range {
    int from, to;
    __device__ __forceinline__ unsigned holds(int x) const { return static_cast<unsigned>(x - from) < static_cast<unsigned>(to - from); }
    __device__ __forceinline__ unsigned holds(int4 x) const { return holds(x.x) | holds(x.y) << 1 | holds(x.z) << 2 | holds(x.w) << 3; }
};
// Two times four rows a thread; eight lanes fill a word.
__global__ void __launch_bounds__(256) select_rows(const int4 *__restrict__ dates, const int4 *__restrict__ cents, Range date, Range cent, unsigned *__restrict__ selected) {
    const int first = blockIdx.x * 512 + threadIdx.x, lane = threadIdx.x % 32;
    const int4 d0 = dates[first], d1 = dates[first + 256], c0 = cents[first], c1 = cents[first + 256];
    unsigned low = (date.holds(d0) & cent.holds(c0)) << (lane % 8 * 4), high = (date.holds(d1) & cent.holds(c1)) << (lane % 8 * 4);
#pragma unroll
    for (int offset = 4; offset > 0; offset /= 2) {
        low |= __shfl_xor_sync(~0u, low, offset);
        high |= __shfl_xor_sync(~0u, high, offset);
    }
    if (lane % 8 == 0) {
        selected[first / 8] = low;
        selected[first / 8 + 32] = high;
    }
}

Study scan("sound_scan_two_columns_to_a_bitmap", "databases", 1 << 25, "a bit for each of 33554432 rows whose date and price lie in ranges", "", {},
    [](Buffers &b, long n) -> Sides {
        const int4 *dates = reinterpret_cast<const int4 *>(b.random<int>(n, 8000.0, 10500.0)), *cents = reinterpret_cast<const int4 *>(b.random<int>(n, 100.0, 1000000.0));
        unsigned *selected = b.output<unsigned>(n / 32);
        return {{"sound", launch(select_rows, n / 2048, 256, 0, dates, cents, Range{8766, 9131}, Range{20000, 700000}, selected)}};
    });

}  // namespace
