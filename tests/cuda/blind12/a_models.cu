// Serving and training: masks of grammars, recurrent layers, paged attention, advantages, pools of graphs. Each kernel has one weakness and two ways out.
#include <algorithm>

#include "../pairs/pair.cuh"

namespace {

// --- logits of the next token, scaled by the temperature, where a grammar allows them ---

constexpr float FORBIDDEN = -65504.f;

__device__ __forceinline__ float masked(float logit, float sharpness, unsigned allowed) { return allowed & 1 ? logit * sharpness : FORBIDDEN; }

__global__ void __launch_bounds__(256) mask_logits(__half *logits, const unsigned *__restrict__ allowed, const float *__restrict__ temperature, int vocabulary) {
    const int row = blockIdx.y, token = blockIdx.x * 256 + threadIdx.x;
    if (token >= vocabulary) return;
    const unsigned word = allowed[static_cast<size_t>(row) * (vocabulary / 32) + token / 32];
    __half *own = logits + static_cast<size_t>(row) * vocabulary + token;
    *own = __float2half(masked(__half2float(*own), 1.f / temperature[row], word >> token % 32));
}

union Eight {
    uint4 word;
    __half value[8];
};
__global__ void __launch_bounds__(256) mask_logits_eight(uint4 *logits, const unsigned char *__restrict__ allowed, const float *__restrict__ temperature, int eights) {
    const int row = blockIdx.y, column = blockIdx.x * 256 + threadIdx.x;
    if (column >= eights) return;
    const size_t at = static_cast<size_t>(row) * eights + column;
    const unsigned bits = allowed[at];
    const float sharpness = 1.f / temperature[row];
    Eight own;
    own.word = logits[at];
#pragma unroll
    for (int k = 0; k < 8; k++) own.value[k] = __float2half(masked(__half2float(own.value[k]), sharpness, bits >> k));
    logits[at] = own.word;
}
// Pairs as before, but eight of them a thread are on their way at once.
__global__ void __launch_bounds__(256) mask_logits_pairs(__half2 *logits, const unsigned *__restrict__ allowed, const float *__restrict__ temperature, int pairs_a_row) {
    const int row = blockIdx.y, first = blockIdx.x * 2048 + threadIdx.x;
    const float sharpness = 1.f / temperature[row];
    __half2 *own = logits + static_cast<size_t>(row) * pairs_a_row;
    const unsigned *bits = allowed + static_cast<size_t>(row) * (pairs_a_row / 16);
    __half2 value[8];
    unsigned word[8];
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const int column = min(first + k * 256, pairs_a_row - 1);
        value[k] = own[column];
        word[k] = bits[column / 16] >> column % 16 * 2;
    }
#pragma unroll
    for (int k = 0; k < 8; k++)
        if (first + k * 256 < pairs_a_row) {
            const float2 v = __half22float2(value[k]);
            own[first + k * 256] = __floats2half2_rn(masked(v.x, sharpness, word[k]), masked(v.y, sharpness, word[k] >> 1));
        }
}

Study grammar("grammar_mask_a_logit_a_thread", "models", 256, "logits of 151936 tokens in half, divided by the temperature where a grammar's bitmask allows them, 256 sequences",
    "a logit a thread: loads and stores of two bytes",
    {{"eight", "eight logits and a byte of the mask a thread", {"narrow_access"}}, {"pairs", "eight pairs a thread, loaded before any is stored", {"narrow_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int vocabulary = 151936;
        const __half *before = b.random<__half>(n * vocabulary, -8, 8);
        const unsigned *allowed = b.random<unsigned>(n * vocabulary / 32, 0, 4294967296.0);
        const float *temperature = b.random<float>(n, 0.5, 1.5);
        __half *logits = b.changed<__half>(before, n * vocabulary);
        b.tolerance = 1e-6;  // of what is forbidden, which is far from any logit
        const unsigned rows = static_cast<unsigned>(n);
        return {{"flawed", launch(mask_logits, dim3(blocks(vocabulary, 256), rows), 256, 0, logits, allowed, temperature, vocabulary)},
            {"eight", launch(mask_logits_eight, dim3(blocks(vocabulary, 2048), rows), 256, 0, reinterpret_cast<uint4 *>(logits), reinterpret_cast<const unsigned char *>(allowed), temperature, vocabulary / 8)},
            {"pairs", launch(mask_logits_pairs, dim3(blocks(vocabulary, 4096), rows), 256, 0, reinterpret_cast<__half2 *>(logits), allowed, temperature, vocabulary / 2)}};
    });

// --- time mixing of a recurrent language model: a state of 64 x 64 for each head, decayed and added to at each token ---

constexpr int HEAD = 64, MIX_HEADS = 32, AHEAD = 16;

struct Mixing {
    const float *receptance, *key, *decay, *value;  // [sequence][token][head][64]
    const float *bonus;                             // [head][64]
};

// One token: thread i has column i of the state.
__device__ __forceinline__ float mix_token(float (&state)[HEAD], const float *r, const float *k, const float *w, const float *u, float v) {
    float sum = 0.f;
#pragma unroll
    for (int j = 0; j < HEAD; j += 4) {
        const float4 r4 = *reinterpret_cast<const float4 *>(r + j), k4 = *reinterpret_cast<const float4 *>(k + j), w4 = *reinterpret_cast<const float4 *>(w + j), u4 = *reinterpret_cast<const float4 *>(u + j);
        const float a = k4.x * v, b = k4.y * v, c = k4.z * v, d = k4.w * v;
        sum += r4.x * (u4.x * a + state[j]) + r4.y * (u4.y * b + state[j + 1]) + r4.z * (u4.z * c + state[j + 2]) + r4.w * (u4.w * d + state[j + 3]);
        state[j] = state[j] * w4.x + a, state[j + 1] = state[j + 1] * w4.y + b, state[j + 2] = state[j + 2] * w4.z + c, state[j + 3] = state[j + 3] * w4.w + d;
    }
    return sum;
}

__global__ void __launch_bounds__(HEAD) mix_tokens(Mixing m, float *__restrict__ out, int tokens) {
    __shared__ __align__(16) float r[HEAD], k[HEAD], w[HEAD], u[HEAD];
    const int i = threadIdx.x, head = blockIdx.x % MIX_HEADS, sequence = blockIdx.x / MIX_HEADS;
    float state[HEAD] = {};
    u[i] = m.bonus[head * HEAD + i];
    for (int t = 0; t < tokens; t++) {
        const size_t at = ((static_cast<size_t>(sequence) * tokens + t) * MIX_HEADS + head) * HEAD + i;
        __syncthreads();
        r[i] = m.receptance[at];
        k[i] = m.key[at];
        w[i] = m.decay[at];
        __syncthreads();
        out[at] = mix_token(state, r, k, w, u, m.value[at]);
    }
}
// The next token's vectors are fetched while this one's are used.
__global__ void __launch_bounds__(HEAD) mix_tokens_ahead(Mixing m, float *__restrict__ out, int tokens) {
    __shared__ __align__(16) float r[2][HEAD], k[2][HEAD], w[2][HEAD], u[HEAD];
    const int i = threadIdx.x, head = blockIdx.x % MIX_HEADS, sequence = blockIdx.x / MIX_HEADS;
    const size_t first = (static_cast<size_t>(sequence) * tokens * MIX_HEADS + head) * HEAD + i;
    float state[HEAD] = {};
    u[i] = m.bonus[head * HEAD + i];
    float next_r = m.receptance[first], next_k = m.key[first], next_w = m.decay[first], next_v = m.value[first];
    for (int t = 0; t < tokens; t++) {
        const size_t at = first + static_cast<size_t>(t) * MIX_HEADS * HEAD, after = t + 1 < tokens ? at + MIX_HEADS * HEAD : at;
        const int half = t % 2;
        r[half][i] = next_r, k[half][i] = next_k, w[half][i] = next_w;
        const float v = next_v;
        next_r = m.receptance[after], next_k = m.key[after], next_w = m.decay[after], next_v = m.value[after];
        __syncthreads();
        out[at] = mix_token(state, r[half], k[half], w[half], u, v);
    }
}
// Sixteen tokens' vectors at once.
__global__ void __launch_bounds__(HEAD) mix_tokens_sixteen(Mixing m, float *__restrict__ out, int tokens) {
    __shared__ __align__(16) float r[AHEAD][HEAD], k[AHEAD][HEAD], w[AHEAD][HEAD], v[AHEAD][HEAD], u[HEAD];
    const int i = threadIdx.x, head = blockIdx.x % MIX_HEADS, sequence = blockIdx.x / MIX_HEADS;
    const size_t first = (static_cast<size_t>(sequence) * tokens * MIX_HEADS + head) * HEAD + i;
    float state[HEAD] = {};
    u[i] = m.bonus[head * HEAD + i];
    for (int begin = 0; begin < tokens; begin += AHEAD) {
        __syncthreads();
#pragma unroll 8
        for (int t = 0; t < AHEAD; t++) {
            const size_t at = first + static_cast<size_t>(begin + t) * MIX_HEADS * HEAD;
            r[t][i] = m.receptance[at], k[t][i] = m.key[at], w[t][i] = m.decay[at], v[t][i] = m.value[at];
        }
        __syncthreads();
        for (int t = 0; t < AHEAD; t++) out[first + static_cast<size_t>(begin + t) * MIX_HEADS * HEAD] = mix_token(state, r[t], k[t], w[t], u, v[t][i]);
    }
}

Study mixing("time_mixing_waits_for_each_token", "models", 512, "time mixing of a recurrent language model, 8 sequences of 512 tokens, 32 heads of 64",
    "each token's vectors are asked for when the one before is done: few warps, and all wait for memory",
    {{"ahead", "the next token's vectors loaded before this one is computed, two buffers", {"memory_latency", "barriers"}},
        {"sixteen", "vectors of sixteen tokens loaded at once", {"memory_latency", "barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const long sequences = 8, values = sequences * n * MIX_HEADS * HEAD;
        const Mixing m{b.random<float>(values), b.random<float>(values), b.random<float>(values, 0.8, 0.99), b.random<float>(values), b.random<float>(MIX_HEADS * HEAD)};
        float *out = b.output<float>(values);
        const int tokens = static_cast<int>(n);
        const unsigned grid = sequences * MIX_HEADS;
        return {{"flawed", launch(mix_tokens, grid, HEAD, 0, m, out, tokens)}, {"ahead", launch(mix_tokens_ahead, grid, HEAD, 0, m, out, tokens)},
            {"sixteen", launch(mix_tokens_sixteen, grid, HEAD, 0, m, out, tokens)}};
    });

// --- attention of one new token over keys and values in pages of 16 tokens ---

constexpr int PAGE = 16, QUERY = 128, ATTENTION_HEADS = 32;

struct Pages {
    const uint2 *keys, *values;  // [page][head][token][32] pieces of four halves
    const int *table;            // [sequence][most pages]
    const int *lengths;
    int most;
};

__device__ __forceinline__ float4 widened(uint2 piece) {
    const float2 a = __half22float2(*reinterpret_cast<const __half2 *>(&piece.x)), b = __half22float2(*reinterpret_cast<const __half2 *>(&piece.y));
    return make_float4(a.x, a.y, b.x, b.y);
}
__device__ __forceinline__ size_t piece_of(int page, int head, int token, int lane) { return ((static_cast<size_t>(page) * ATTENTION_HEADS + head) * PAGE + token) * 32 + lane; }
__device__ __forceinline__ float product(float4 q, float4 k) { return q.x * k.x + q.y * k.y + q.z * k.z + q.w * k.w; }
__device__ __forceinline__ void add_scaled(float4 &sum, float4 v, float by) { sum.x += v.x * by, sum.y += v.y * by, sum.z += v.z * by, sum.w += v.w * by; }

// A block for each sequence and head; four warps share the pages. `scores` has room for as many tokens as the launch says.
__global__ void __launch_bounds__(128) attend_pages(Pages p, const float4 *__restrict__ query, float4 *__restrict__ out, float scale) {
    extern __shared__ float scores[];
    __shared__ float of_warp[4];
    __shared__ float4 parts[4][32];
    const int head = blockIdx.x, sequence = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32, length = p.lengths[sequence];
    const int *table = p.table + sequence * p.most;
    const float4 q = query[(sequence * ATTENTION_HEADS + head) * 32 + lane];
    float most = -1e30f;
    for (int page = warp; page * PAGE < length; page += 4) {
        const int place = table[page];
#pragma unroll 4
        for (int t = 0; t < PAGE; t++) {
            const float score = warp_sum(product(q, widened(p.keys[piece_of(place, head, t, lane)]))) * scale;
            if (page * PAGE + t < length) {
                if (lane == 0) scores[page * PAGE + t] = score;
                most = fmaxf(most, score);
            }
        }
    }
    if (lane == 0) of_warp[warp] = most;
    __syncthreads();
    most = fmaxf(fmaxf(of_warp[0], of_warp[1]), fmaxf(of_warp[2], of_warp[3]));
    float sum = 0.f;
    for (int t = threadIdx.x; t < length; t += 128) {
        const float e = __expf(scores[t] - most);
        scores[t] = e;
        sum += e;
    }
    sum = warp_sum(sum);
    __syncthreads();
    if (lane == 0) of_warp[warp] = sum;
    float4 own = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int page = warp; page * PAGE < length; page += 4) {
        const int place = table[page], here = min(PAGE, length - page * PAGE);
#pragma unroll 4
        for (int t = 0; t < here; t++) add_scaled(own, widened(p.values[piece_of(place, head, t, lane)]), scores[page * PAGE + t]);
    }
    parts[warp][lane] = own;
    __syncthreads();
    if (warp) return;
    const float share = 1.f / (of_warp[0] + of_warp[1] + of_warp[2] + of_warp[3]);
    for (int w = 1; w < 4; w++) add_scaled(own, parts[w][lane], 1.f);
    out[(sequence * ATTENTION_HEADS + head) * 32 + lane] = make_float4(own.x * share, own.y * share, own.z * share, own.w * share);
}

// Nothing is kept of a page: each warp rescales its sums when it meets a larger score.
__global__ void __launch_bounds__(128) attend_pages_at_once(Pages p, const float4 *__restrict__ query, float4 *__restrict__ out, float scale) {
    __shared__ float2 of_warp[4];
    __shared__ float4 parts[4][32];
    const int head = blockIdx.x, sequence = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32, length = p.lengths[sequence];
    const int *table = p.table + sequence * p.most;
    const float4 q = query[(sequence * ATTENTION_HEADS + head) * 32 + lane];
    float most = -1e30f, sum = 0.f;
    float4 own = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int page = warp; page * PAGE < length; page += 4) {
        const int place = table[page], here = length - page * PAGE;
#pragma unroll
        for (int first = 0; first < PAGE; first += 4) {
            float score[4];
            uint2 key[4], value[4];
#pragma unroll
            for (int t = 0; t < 4; t++) key[t] = p.keys[piece_of(place, head, first + t, lane)], value[t] = p.values[piece_of(place, head, first + t, lane)];
            float top = most;
#pragma unroll
            for (int t = 0; t < 4; t++) {
                score[t] = warp_sum(product(q, widened(key[t]))) * scale;
                if (first + t >= here) score[t] = -1e30f;
                top = fmaxf(top, score[t]);
            }
            const float less = __expf(most - top);
            own = make_float4(own.x * less, own.y * less, own.z * less, own.w * less);
            sum *= less;
            most = top;
#pragma unroll
            for (int t = 0; t < 4; t++) {
                const float e = first + t < here ? __expf(score[t] - most) : 0.f;
                sum += e;
                add_scaled(own, widened(value[t]), e);
            }
        }
    }
    if (lane == 0) of_warp[warp] = make_float2(most, sum);
    parts[warp][lane] = own;
    __syncthreads();
    if (warp) return;
    const float top = fmaxf(fmaxf(of_warp[0].x, of_warp[1].x), fmaxf(of_warp[2].x, of_warp[3].x));
    float4 all = make_float4(0.f, 0.f, 0.f, 0.f);
    float total = 0.f;
    for (int w = 0; w < 4; w++) {
        const float part = __expf(of_warp[w].x - top);
        total += of_warp[w].y * part;
        add_scaled(all, parts[w][lane], part);
    }
    const float share = 1.f / total;
    out[(sequence * ATTENTION_HEADS + head) * 32 + lane] = make_float4(all.x * share, all.y * share, all.z * share, all.w * share);
}

Study paged("page_scores_room_for_the_longest_context", "models", 64, "attention of a new token over pages of half, 64 sequences of 256 to 1024 tokens, 32 heads of 128",
    "shared memory for the scores of 32768 tokens, as the model allows: one block of four warps on a multiprocessor",
    {{"longest_here", "room for the longest sequence of this batch", {"low_occupancy"}}, {"at_once", "no scores kept: sums rescaled where a larger score comes", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        const int sequences = static_cast<int>(n), most = 64;
        std::vector<int> lengths(n), table(n * most);
        int pages = 0, longest = 0;
        for (int s = 0; s < sequences; s++) {
            lengths[s] = 256 + static_cast<int>(hash(s + 77) % 769);
            longest = std::max(longest, lengths[s]);
            for (int page = 0; page * PAGE < lengths[s]; page++) table[s * most + page] = pages++;
        }
        // Pages were handed out as sequences grew.
        std::vector<int> order(pages);
        for (int i = 0; i < pages; i++) order[i] = i;
        for (int i = pages - 1; i > 0; i--) std::swap(order[i], order[hash(i) % (i + 1)]);
        for (int s = 0; s < sequences; s++)
            for (int page = 0; page * PAGE < lengths[s]; page++) table[s * most + page] = order[table[s * most + page]];
        const size_t halves = static_cast<size_t>(pages) * ATTENTION_HEADS * PAGE * QUERY;
        const __half *keys = b.random<__half>(halves), *values = b.random<__half>(halves);
        const Pages p{reinterpret_cast<const uint2 *>(keys), reinterpret_cast<const uint2 *>(values), b.copy(table), b.copy(lengths), most};
        const float *query = b.random<float>(n * ATTENTION_HEADS * QUERY);
        float *out = b.output<float>(n * ATTENTION_HEADS * QUERY);
        auto q = reinterpret_cast<const float4 *>(query);
        auto o = reinterpret_cast<float4 *>(out);
        const dim3 grid(ATTENTION_HEADS, sequences);
        const float scale = 0.0884f;
        return {{"flawed", launch(attend_pages, grid, 128, 32768 * sizeof(float), p, q, o, scale)}, {"longest_here", launch(attend_pages, grid, 128, longest * sizeof(float), p, q, o, scale)},
            {"at_once", launch(attend_pages_at_once, grid, 128, 0, p, q, o, scale)}};
    });

// --- advantages of a policy's steps, from the last to the first ---

constexpr float DISCOUNT = 0.99f, TRACE = 0.95f;
constexpr int PARTS = 32;

struct Rollout {
    const float *reward, *value;  // [step][environment]; values have a step more
    const unsigned char *ended;
    int steps, environments;
};

// A = part of the later advantage that counts, B = what this step adds.
__device__ __forceinline__ float2 step_of(const Rollout &r, size_t at) {
    const float goes_on = r.ended[at] ? 0.f : 1.f;
    return make_float2(DISCOUNT * TRACE * goes_on, r.reward[at] + DISCOUNT * r.value[at + r.environments] * goes_on - r.value[at]);
}

__global__ void __launch_bounds__(256) advantages(Rollout r, float *__restrict__ advantage, float *__restrict__ target) {
    const int e = blockIdx.x * 256 + threadIdx.x;
    float later = 0.f;
#pragma unroll 4
    for (int t = r.steps - 1; t >= 0; t--) {
        const size_t at = static_cast<size_t>(t) * r.environments + e;
        const float2 own = step_of(r, at);
        later = own.y + own.x * later;
        advantage[at] = later;
        target[at] = later + r.value[at];
    }
}
// 32 environments a block; each warp has a 32nd of the steps, whose factors and sums it finds first.
__global__ void __launch_bounds__(1024) advantages_parts(Rollout r, float *__restrict__ advantage, float *__restrict__ target) {
    __shared__ float2 whole[PARTS][32];
    const int lane = threadIdx.x % 32, part = threadIdx.x / 32, e = blockIdx.x * 32 + lane, length = r.steps / PARTS;
    float2 all = make_float2(1.f, 0.f);
#pragma unroll 4
    for (int t = (part + 1) * length - 1; t >= part * length; t--) {
        const float2 own = step_of(r, static_cast<size_t>(t) * r.environments + e);
        all = make_float2(own.x * all.x, own.y + own.x * all.y);
    }
    whole[part][lane] = all;
    __syncthreads();
    float later = 0.f;
    for (int p = PARTS - 1; p > part; p--) later = whole[p][lane].y + whole[p][lane].x * later;
#pragma unroll 4
    for (int t = (part + 1) * length - 1; t >= part * length; t--) {
        const size_t at = static_cast<size_t>(t) * r.environments + e;
        const float2 own = step_of(r, at);
        later = own.y + own.x * later;
        advantage[at] = later;
        target[at] = later + r.value[at];
    }
}
// A warp a block, so that every multiprocessor has some, and sixteen steps on their way at once.
__global__ void __launch_bounds__(32) advantages_warps(Rollout r, float *__restrict__ advantage, float *__restrict__ target) {
    const int e = blockIdx.x * 32 + threadIdx.x;
    float later = 0.f;
    for (int end = r.steps; end > 0; end -= 16) {
        float2 own[16];
#pragma unroll
        for (int k = 0; k < 16; k++) own[k] = step_of(r, static_cast<size_t>(end - 1 - k) * r.environments + e);
#pragma unroll
        for (int k = 0; k < 16; k++) {
            const size_t at = static_cast<size_t>(end - 1 - k) * r.environments + e;
            later = own[k].y + own[k].x * later;
            advantage[at] = later;
            target[at] = later + r.value[at];
        }
    }
}

Study advantage("advantages_walk_back_in_16_blocks", "models", 4096, "generalised advantages of 1024 steps of 4096 environments",
    "a thread for each environment walks all steps: 16 blocks",
    {{"parts", "the steps in 32 parts, each summed up first, then walked with what comes after it", {"small_grid", "memory_latency"}},
        {"warps", "blocks of a warp, sixteen steps loaded at once", {"small_grid", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const long steps = 1024;
        std::vector<unsigned char> ended(steps * n);
        for (long i = 0; i < steps * n; i++) ended[i] = hash(static_cast<unsigned>(i)) % 200 == 0;
        const Rollout r{b.random<float>(steps * n), b.random<float>((steps + 1) * n), b.copy(ended), static_cast<int>(steps), static_cast<int>(n)};
        float *advantage = b.output<float>(steps * n), *target = b.output<float>(steps * n);
        return {{"flawed", launch(advantages, n / 256, 256, 0, r, advantage, target)}, {"parts", launch(advantages_parts, n / 32, 1024, 0, r, advantage, target)},
            {"warps", launch(advantages_warps, n / 32, 32, 0, r, advantage, target)}};
    });

// --- mean and maximum over the nodes of each of many graphs in a batch ---

constexpr int CHANNELS = 128, NODES_A_PIECE = 64;

__global__ void __launch_bounds__(CHANNELS) read_out(const float *__restrict__ nodes, const int *__restrict__ first, float *__restrict__ out) {
    const int graph = blockIdx.x, begin = first[graph], end = first[graph + 1];
    float sum = 0.f, most = 0.f;
#pragma unroll 4
    for (int i = begin; i < end; i++) {
        const float v = nodes[static_cast<size_t>(i) * CHANNELS + threadIdx.x];
        sum += v;
        most = fmaxf(most, v);
    }
    out[graph * 2 * CHANNELS + threadIdx.x] = sum / (end - begin);
    out[graph * 2 * CHANNELS + CHANNELS + threadIdx.x] = most;
}
// The host lists pieces of up to 64 nodes; those of one graph are added up.
__global__ void __launch_bounds__(CHANNELS) read_out_pieces(const float *__restrict__ nodes, const int *__restrict__ first, const int2 *__restrict__ pieces, float *__restrict__ out) {
    const int graph = pieces[blockIdx.x].x, begin = pieces[blockIdx.x].y, all = first[graph + 1] - first[graph], end = min(begin + NODES_A_PIECE, first[graph + 1]);
    float sum = 0.f, most = 0.f;
#pragma unroll 8
    for (int i = begin; i < end; i++) {
        const float v = nodes[static_cast<size_t>(i) * CHANNELS + threadIdx.x];
        sum += v;
        most = fmaxf(most, v);
    }
    float *mean = out + graph * 2 * CHANNELS + threadIdx.x;
    if (all <= NODES_A_PIECE) {
        mean[0] = sum / all;
        mean[CHANNELS] = most;
    } else {
        atomicAdd(mean, sum / all);
        atomicMax(reinterpret_cast<int *>(mean) + CHANNELS, __float_as_int(most));  // none is negative
    }
}
// A graph a block still, but sixteen warps, each with whole nodes.
__global__ void __launch_bounds__(512) read_out_wide(const float4 *__restrict__ nodes, const int *__restrict__ first, float *__restrict__ out) {
    __shared__ float sums[16][CHANNELS], maxima[16][CHANNELS];
    const int graph = blockIdx.x, begin = first[graph], end = first[graph + 1], warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f), most = sum;
#pragma unroll 4
    for (int i = begin + warp; i < end; i += 16) {
        const float4 v = nodes[static_cast<size_t>(i) * (CHANNELS / 4) + lane];
        sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
        most = make_float4(fmaxf(most.x, v.x), fmaxf(most.y, v.y), fmaxf(most.z, v.z), fmaxf(most.w, v.w));
    }
    *reinterpret_cast<float4 *>(&sums[warp][lane * 4]) = sum;
    *reinterpret_cast<float4 *>(&maxima[warp][lane * 4]) = most;
    __syncthreads();
    const int channel = threadIdx.x % CHANNELS;
    if (threadIdx.x < CHANNELS) {
        float all = 0.f;
        for (int w = 0; w < 16; w++) all += sums[w][channel];
        out[graph * 2 * CHANNELS + channel] = all / (end - begin);
    } else if (threadIdx.x < 2 * CHANNELS) {
        float top = 0.f;
        for (int w = 0; w < 16; w++) top = fmaxf(top, maxima[w][channel]);
        out[graph * 2 * CHANNELS + CHANNELS + channel] = top;
    }
}

Study readout("graph_readout_a_block_for_any_graph", "models", 8192, "mean and maximum of 128 channels over the nodes of 8192 graphs, most of 8 to 55 nodes, ten of 6000",
    "a block of 128 threads for each graph, whatever its size",
    {{"pieces", "a block for each 64 nodes, added up where a graph has more", {"workload_imbalance"}}, {"wide", "sixteen warps a graph, four channels a lane", {"workload_imbalance", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> first(n + 1);
        std::vector<int2> pieces;
        for (long g = 0; g < n; g++) {
            const int size = g % 800 == 399 ? 6000 : 8 + static_cast<int>(hash(static_cast<unsigned>(g)) % 48);
            first[g + 1] = first[g] + size;
            for (int i = first[g]; i < first[g + 1]; i += NODES_A_PIECE) pieces.push_back(make_int2(static_cast<int>(g), i));
        }
        const float *nodes = b.random<float>(static_cast<size_t>(first[n]) * CHANNELS, 0, 1);
        const int *starts = b.copy(first);
        const int2 *listed = b.copy(pieces);
        float *out = b.output<float>(n * 2 * CHANNELS, true);
        return {{"flawed", launch(read_out, n, CHANNELS, 0, nodes, starts, out)}, {"pieces", launch(read_out_pieces, pieces.size(), CHANNELS, 0, nodes, starts, listed, out)},
            {"wide", launch(read_out_wide, n, 512, 0, reinterpret_cast<const float4 *>(nodes), starts, out)}};
    });

}  // namespace
