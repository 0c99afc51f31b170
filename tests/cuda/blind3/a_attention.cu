// Attention, caches of keys and values, experts, sampling: one flaw a kernel, two fixes or more.
#include "../pairs/pair.cuh"

namespace {

template <typename T>
__global__ void turn(const T *in, T *out, int rows, int columns, long total) {  // each batch of rows x columns is transposed
    for (long i = blockIdx.x * long(blockDim.x) + threadIdx.x; i < total; i += long(gridDim.x) * blockDim.x) {
        long batch = i / (rows * columns), r = i / columns % rows, c = i % columns;
        out[batch * rows * columns + c * rows + r] = in[i];
    }
}
template <typename T>
T *turned(Buffers &b, const T *in, int rows, int columns, long total) {
    T *out = b.allocate<T>(total);
    turn<<<1024, 256>>>(in, out, rows, columns, total);
    CHECK_LAUNCH();
    return out;
}

// --- weighted values of a paged cache ---

constexpr int PAGE = 16, HEADS = 8, DIM = 128;

__global__ void paged_values(const __half *v, const int *table, const float *p, float *out, int steps) {
    int seq = blockIdx.y, head = blockIdx.x, d = threadIdx.x;
    float acc = 0.f;
    for (int t = 0; t < steps; t++) {
        long page = table[seq * (steps / PAGE) + t / PAGE];
        acc += p[(seq * HEADS + head) * steps + t] * __half2float(v[((page * HEADS + head) * DIM + d) * PAGE + t % PAGE]);
    }
    out[(seq * HEADS + head) * DIM + d] = acc;
}
__global__ void paged_values_wide(const __half *v, const int *table, const float *p, float *out, int steps) {
    int seq = blockIdx.y, head = blockIdx.x, d = threadIdx.x;
    const float *weights = p + (seq * HEADS + head) * steps;
    float acc = 0.f;
    for (int first = 0; first < steps; first += PAGE) {
        long page = table[seq * (steps / PAGE) + first / PAGE];
        const uint4 *from = reinterpret_cast<const uint4 *>(v + ((page * HEADS + head) * DIM + d) * PAGE);
        uint4 raw[2] = {from[0], from[1]};
        const __half2 *h = reinterpret_cast<const __half2 *>(raw);
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            float2 f = __half22float2(h[k]);
            acc += weights[first + 2 * k] * f.x + weights[first + 2 * k + 1] * f.y;
        }
    }
    out[(seq * HEADS + head) * DIM + d] = acc;
}
__global__ void __launch_bounds__(128) paged_values_rows(const __half *v, const int *table, const float *p, float *out, int steps) {
    __shared__ float part[8][DIM];
    int seq = blockIdx.y, head = blockIdx.x, c = threadIdx.x % 16, s = threadIdx.x / 16;  // eight features of every eighth step
    const float *weights = p + (seq * HEADS + head) * steps;
    float acc[8] = {};
    for (int first = 0; first < steps; first += PAGE) {
        long page = table[seq * (steps / PAGE) + first / PAGE];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            int t = s + 8 * k;
            uint4 raw = *reinterpret_cast<const uint4 *>(v + ((page * HEADS + head) * PAGE + t) * DIM + 8 * c);
            const __half2 *h = reinterpret_cast<const __half2 *>(&raw);
            float w = weights[first + t];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                float2 f = __half22float2(h[j]);
                acc[2 * j] += w * f.x, acc[2 * j + 1] += w * f.y;
            }
        }
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) part[s][8 * c + j] = acc[j];
    __syncthreads();
    float sum = 0.f;
    for (int k = 0; k < 8; ++k) sum += part[k][threadIdx.x];
    out[(seq * HEADS + head) * DIM + threadIdx.x] = sum;
}

Study paged("paged_values_feature_major", "models", 2048, "weighted sum of the half values of a paged cache, 64 sequences, 8 heads of 128, pages of 16 steps",
    "a lane walks the steps of its feature two bytes at a time, 32 bytes from the next lane's",
    {{"wide", "a page's 16 steps of a feature by two 16-byte loads", {"uncoalesced_access", "narrow_access"}},
        {"rows", "features side by side in the page, 16 bytes a lane", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long steps) -> Sides {
        int seqs = 64, pages = steps / PAGE;
        long total = long(seqs) * steps * HEADS * DIM;
        auto *v = b.random<__half>(total), *rows = turned(b, v, DIM, PAGE, total);
        float *p = b.random<float>(seqs * HEADS * steps, 0, 0.01), *out = b.output<float>(seqs * HEADS * DIM);
        std::vector<int> table(seqs * pages);
        for (size_t i = 0; i < table.size(); ++i) table[i] = (i * 5077 + 11) % table.size();
        int *pages_of = b.copy(table), n = steps;
        b.tolerance = 1e-3;
        return {{"flawed", launch(paged_values, dim3(HEADS, seqs), DIM, 0, v, pages_of, p, out, n)},
            {"wide", launch(paged_values_wide, dim3(HEADS, seqs), DIM, 0, v, pages_of, p, out, n)},
            {"rows", launch(paged_values_rows, dim3(HEADS, seqs), DIM, 0, rows, pages_of, p, out, n)}};
    });

// --- attention, a thread a query, running maximum ---

template <int KEYS, bool VOTE>
__global__ void __launch_bounds__(64) attend(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v, float *__restrict__ out, int length) {
    constexpr int D = 32;
    __shared__ float4 ks[64][D / 4], vs[64][D / 4];
    size_t head = size_t(blockIdx.y) * length * D;
    const float *row = q + head + (blockIdx.x * 64 + threadIdx.x) * D;
    float mine[D], acc[D] = {}, top = -1e30f, sum = 0.f;
#pragma unroll
    for (int d = 0; d < D; ++d) mine[d] = row[d] * 0.17677669f;
    for (int first = 0; first < length; first += 64) {
        __syncthreads();
        for (int i = threadIdx.x; i < 64 * D / 4; i += 64) {
            ks[0][i] = reinterpret_cast<const float4 *>(k + head + first * D)[i];
            vs[0][i] = reinterpret_cast<const float4 *>(v + head + first * D)[i];
        }
        __syncthreads();
#pragma unroll 1
        for (int j = 0; j < 64; j += KEYS) {
            float s[KEYS], higher = top;
#pragma unroll
            for (int u = 0; u < KEYS; ++u) {
                s[u] = 0.f;
#pragma unroll
                for (int d = 0; d < D / 4; ++d) {
                    float4 a = ks[j + u][d];
                    s[u] += mine[4 * d] * a.x + mine[4 * d + 1] * a.y + mine[4 * d + 2] * a.z + mine[4 * d + 3] * a.w;
                }
                higher = fmaxf(higher, s[u]);
            }
            if (!VOTE || __any_sync(~0u, higher > top)) {
                float shrink = expf(top - higher);
                sum *= shrink;
#pragma unroll
                for (int d = 0; d < D; ++d) acc[d] *= shrink;
                top = higher;
            }
#pragma unroll
            for (int u = 0; u < KEYS; ++u) {
                float w = expf(s[u] - top);
                sum += w;
#pragma unroll
                for (int d = 0; d < D / 4; ++d) {
                    float4 a = vs[j + u][d];
                    acc[4 * d] += w * a.x, acc[4 * d + 1] += w * a.y, acc[4 * d + 2] += w * a.z, acc[4 * d + 3] += w * a.w;
                }
            }
        }
    }
#pragma unroll
    for (int d = 0; d < D; ++d) out[head + (blockIdx.x * 64 + threadIdx.x) * D + d] = acc[d] / sum;
}

Study attends("attention_rescale_each_key", "models", 512, "attention over 512 keys of 32 floats, 128 heads, a thread a query",
    "after each key the 32 accumulators are multiplied by a factor that is nearly always one",
    {{"tile", "the maximum of eight keys first, one rescaling for them", {"expensive_math"}},
        {"vote", "rescaling only where a lane of the warp has a new maximum", {"expensive_math"}}},
    [](Buffers &b, long length) -> Sides {
        int heads = 128;
        long n = heads * length * 32;
        float *q = b.random<float>(n, -2, 2), *k = b.random<float>(n), *v = b.random<float>(n), *out = b.output<float>(n);
        dim3 grid(length / 64, heads);
        return {{"flawed", launch(attend<1, false>, grid, 64, 0, q, k, v, out, length)},
            {"tile", launch(attend<8, false>, grid, 64, 0, q, k, v, out, length)},
            {"vote", launch(attend<1, true>, grid, 64, 0, q, k, v, out, length)}};
    });

// --- scores from a tile of keys in shared memory ---

template <int PITCH, bool TURNED>
__global__ void __launch_bounds__(256) tile_scores(const float *__restrict__ q, const float *__restrict__ k, float *__restrict__ s, int length) {
    constexpr int D = 64;
    __shared__ float ks[TURNED ? D * PITCH : 32 * PITCH], qs[32 * D];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    size_t head = size_t(blockIdx.y) * length * D;
    for (int i = threadIdx.x; i < 32 * D; i += 256) {
        float key = k[head + blockIdx.x * 32 * D + i];
        if (TURNED) ks[i % D * PITCH + i / D] = key;
        else ks[i / D * PITCH + i % D] = key;
    }
    for (int first = 0; first < length; first += 32) {
        __syncthreads();
        for (int i = threadIdx.x; i < 32 * D; i += 256) qs[i] = q[head + first * D + i];
        __syncthreads();
        float dot[4] = {};
#pragma unroll 16
        for (int d = 0; d < D; ++d) {
            float key = TURNED ? ks[d * PITCH + lane] : ks[lane * PITCH + d];
#pragma unroll
            for (int r = 0; r < 4; ++r) dot[r] += key * qs[(warp * 4 + r) * D + d];
        }
#pragma unroll
        for (int r = 0; r < 4; ++r)
            s[(size_t(blockIdx.y) * length + first + warp * 4 + r) * length + blockIdx.x * 32 + lane] = dot[r];
    }
}

Study tiles("scores_keys_tile_conflicts", "models", 512, "products of 512 queries and 512 keys of 64 floats, 32 heads, keys in a tile of shared memory",
    "lanes read the same feature of 32 keys that lie 256 bytes apart: one bank",
    {{"padding", "rows of 65 words", {"shared_bank_conflicts"}}, {"turned", "the tile is written transposed, rows of 33 words", {"shared_bank_conflicts"}}},
    [](Buffers &b, long length) -> Sides {
        int heads = 32;
        float *q = b.random<float>(heads * length * 64), *k = b.random<float>(heads * length * 64), *s = b.output<float>(heads * length * length);
        dim3 grid(length / 32, heads);
        b.tolerance = 1e-3;
        return {{"flawed", launch(tile_scores<64, false>, grid, 256, 0, q, k, s, length)},
            {"padding", launch(tile_scores<65, false>, grid, 256, 0, q, k, s, length)},
            {"turned", launch(tile_scores<33, true>, grid, 256, 0, q, k, s, length)}};
    });

// --- routing to eight of 64 experts ---

__global__ void route(const float *logits, int *chosen, float *weights, int tokens) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= tokens) return;
    float score[64], sum = 0.f;
    for (int e = 0; e < 64; e++) score[e] = logits[t * 64 + e];
    for (int k = 0; k < 8; k++) {
        int best = 0;
        for (int e = 1; e < 64; e++)
            if (score[e] > score[best]) best = e;
        chosen[t * 8 + k] = best;
        float w = expf(score[best]);
        weights[t * 8 + k] = w;
        sum += w;
        score[best] = -1e30f;
    }
    for (int k = 0; k < 8; k++) weights[t * 8 + k] /= sum;
}
__global__ void __launch_bounds__(256) route_warp(const float2 *__restrict__ logits, int *__restrict__ chosen, float *__restrict__ weights, int tokens) {
    int t = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (t >= tokens) return;
    float2 s = logits[t * 32 + lane];
    float mine = 0.f, sum = 0.f;
    int expert = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        float top = s.x >= s.y ? s.x : s.y;
        float best = warp_max(top);
        int owner = __ffs(__ballot_sync(~0u, top == best)) - 1;
        bool second = s.x < s.y;
        int which = 2 * owner + __shfl_sync(~0u, second, owner);
        if (lane == owner) (second ? s.y : s.x) = -1e30f;
        float w = expf(best);
        sum += w;
        if (lane == k) mine = w, expert = which;
    }
    if (lane < 8) chosen[t * 8 + lane] = expert, weights[t * 8 + lane] = mine / sum;
}
__global__ void __launch_bounds__(64) route_shared(const float *__restrict__ logits, int *__restrict__ chosen, float *__restrict__ weights) {
    __shared__ float score[64 * 65];
    const float *rows = logits + size_t(blockIdx.x) * 64 * 64;
    for (int i = threadIdx.x; i < 64 * 64; i += 64) score[i / 64 * 65 + i % 64] = rows[i];
    __syncthreads();
    float *mine = score + threadIdx.x * 65, w[8], sum = 0.f;
    int t = blockIdx.x * 64 + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        int best = 0;
        float top = mine[0];
#pragma unroll 8
        for (int e = 1; e < 64; ++e) {
            float s = mine[e];
            if (s > top) top = s, best = e;
        }
        mine[best] = -1e30f;
        chosen[t * 8 + k] = best;
        sum += w[k] = expf(top);
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) weights[t * 8 + k] = w[k] / sum;
}

Study routes("moe_route_local_scores", "models", 1 << 17, "eight largest of 64 experts' scores a token, their weights by softmax",
    "a thread keeps a token's 64 scores in an array that it indexes: local memory, walked eight times",
    {{"warp", "a warp a token, two scores a lane, maxima by shuffles", {"local_memory", "uncoalesced_access"}},
        {"shared", "the scores of 64 tokens in padded shared memory", {"local_memory", "uncoalesced_access"}}},
    [](Buffers &b, long tokens) -> Sides {
        float *logits = b.random<float>(tokens * 64, -3, 3), *weights = b.output<float>(tokens * 8);
        int *chosen = b.output<int>(tokens * 8);
        return {{"flawed", launch(route, tokens / 128, 128, 0, logits, chosen, weights, tokens)},
            {"warp", launch(route_warp, tokens / 8, 256, 0, (float2 *)logits, chosen, weights, tokens)},
            {"shared", launch(route_shared, tokens / 64, 64, 0, logits, chosen, weights)}};
    });

// --- a token drawn from each row of probabilities ---

__global__ void draw_serial(const float *p, const float *u, int *token, int vocabulary) {
    if (threadIdx.x == 0) {
        float sum = 0.f;
        int found = vocabulary - 1;
        for (int i = 0; i < vocabulary; i++) {
            sum += p[blockIdx.x * vocabulary + i];
            if (sum > u[blockIdx.x] * vocabulary) {
                found = i;
                break;
            }
        }
        token[blockIdx.x] = found;
    }
}
template <int THREADS>
__global__ void __launch_bounds__(THREADS) draw_pieces(const float4 *__restrict__ p, const float *__restrict__ u, int *__restrict__ token, int vocabulary) {
    __shared__ float sums[THREADS], scratch[THREADS / 32];
    __shared__ int piece;
    const float4 *row = p + size_t(blockIdx.x) * (vocabulary / 4);
    int per = vocabulary / 4 / THREADS, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float wanted = u[blockIdx.x] * vocabulary, mine = 0.f;
    for (int w = 0; w < 32; ++w) {  // the warp sums the pieces of its lanes, one after the other
        float s = 0.f;
        for (int i = lane; i < per; i += 32) {
            float4 v = row[(warp * 32 + w) * per + i];
            s += v.x + v.y + v.z + v.w;
        }
        s = warp_sum(s);
        if (lane == w) mine = s;
    }
    float scan = mine;
    for (int o = 1; o < 32; o *= 2) {
        float before = __shfl_up_sync(~0u, scan, o);
        if (lane >= o) scan += before;
    }
    if (lane == 31) scratch[warp] = scan;
    if (threadIdx.x == 0) piece = THREADS;
    __syncthreads();
    float base = 0.f;
    for (int w = 0; w < warp; ++w) base += scratch[w];
    sums[threadIdx.x] = base + scan;
    if (base + scan > wanted) atomicMin(&piece, int(threadIdx.x));
    __syncthreads();
    if (threadIdx.x) return;
    int found = vocabulary - 1;
    if (piece < THREADS) {
        float sum = piece ? sums[piece - 1] : 0.f;
        const float *values = reinterpret_cast<const float *>(row + piece * per);
        for (int i = 0; i < 4 * per; ++i) {
            sum += values[i];
            if (sum > wanted) {
                found = piece * 4 * per + i;
                break;
            }
        }
    }
    token[blockIdx.x] = found;
}

Study draws("sample_cumulative_one_thread", "models", 512, "a token drawn from each of 512 rows of 16384 probabilities by their running sum",
    "one thread a row adds the probabilities one after the other",
    {{"pieces", "128 threads: sums of pieces by warps, a scan, then the piece is walked", {"idle_threads", "instruction_latency"}},
        {"shorter", "the same by 512 threads, pieces a quarter as long", {"idle_threads", "instruction_latency"}}},
    [](Buffers &b, long rows) -> Sides {
        int vocabulary = 16384;
        std::vector<float> host(rows * vocabulary), at(rows);
        for (size_t i = 0; i < host.size(); ++i) host[i] = hash(i) % 3;  // whole numbers: sums are exact in any order
        for (long r = 0; r < rows; ++r) at[r] = (hash(r + 77) % 16000) / 16384.f;
        float *p = b.copy(host), *u = b.copy(at);
        int *token = b.output<int>(rows);
        return {{"flawed", launch(draw_serial, rows, 32, 0, p, u, token, vocabulary)},
            {"pieces", launch(draw_pieces<128>, rows, 128, 0, (float4 *)p, u, token, vocabulary)},
            {"shorter", launch(draw_pieces<512>, rows, 512, 0, (float4 *)p, u, token, vocabulary)}};
    });

// --- penalty for tokens already said ---

__global__ void penalise(const float *logits, const int *history, float *out, int vocabulary, int said, float penalty) {
    int v = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (v >= vocabulary) return;
    float x = logits[row * vocabulary + v];
    bool seen = false;
    for (int i = 0; i < said; i++) seen |= history[row * said + i] == v;
    out[row * vocabulary + v] = seen ? (x > 0 ? x / penalty : x * penalty) : x;
}
__global__ void __launch_bounds__(1024) penalise_bits(const float *__restrict__ logits, const int *__restrict__ history, float *__restrict__ out, int vocabulary, int said, float penalty) {
    __shared__ unsigned bits[1024];
    int row = blockIdx.y, per = vocabulary / gridDim.x, first = blockIdx.x * per;
    for (int i = threadIdx.x; i < per / 32; i += 1024) bits[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < said; i += 1024) {
        unsigned at = history[row * said + i] - first;
        if (at < unsigned(per)) atomicOr(&bits[at / 32], 1u << at % 32);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < per; i += 1024) {
        float x = logits[size_t(row) * vocabulary + first + i];
        out[size_t(row) * vocabulary + first + i] = bits[i / 32] >> i % 32 & 1 ? (x > 0 ? x / penalty : x * penalty) : x;
    }
}
__global__ void __launch_bounds__(1024) penalise_copy(const float *__restrict__ logits, const int *__restrict__ history, float *out, int vocabulary, int said, float penalty) {
    int row = blockIdx.y, per = vocabulary / gridDim.x, first = blockIdx.x * per;
    const float *from = logits + size_t(row) * vocabulary + first;
    float *to = out + size_t(row) * vocabulary + first;
    for (int i = threadIdx.x; i < per; i += 1024) to[i] = from[i];
    __syncthreads();
    for (int i = threadIdx.x; i < said; i += 1024) {
        unsigned at = history[row * said + i] - first;
        if (at < unsigned(per)) {
            float x = from[at];
            to[at] = x > 0 ? x / penalty : x * penalty;
        }
    }
}

Study penalties("repetition_penalty_searches_history", "models", 512, "scores of 512 rows of 32768 tokens lowered where a row's history of 512 tokens has them",
    "every token of the vocabulary looks through the whole history",
    {{"bits", "the history is marked in a bit set in shared memory first", {"redundant_loads"}},
        {"copy", "the row is copied, then the history's tokens alone are changed", {"redundant_loads"}}},
    [](Buffers &b, long rows) -> Sides {
        int vocabulary = 32768, said = 512;
        float *logits = b.random<float>(rows * vocabulary, -5, 5), *out = b.output<float>(rows * vocabulary);
        int *history = b.random<int>(rows * said, 0, vocabulary);
        return {{"flawed", launch(penalise, dim3(vocabulary / 256, rows), 256, 0, logits, history, out, vocabulary, said, 1.2f)},
            {"bits", launch(penalise_bits, dim3(8, rows), 1024, 0, logits, history, out, vocabulary, said, 1.2f)},
            {"copy", launch(penalise_copy, dim3(8, rows), 1024, 0, logits, history, out, vocabulary, said, 1.2f)}};
    });

// --- candidates sorted by score ---

__global__ void __launch_bounds__(1024) sort_candidates(const float *x, float *y) {
    __shared__ float s[1024];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 1024 + t];
    __syncthreads();
    for (int k = 2; k <= 1024; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            int other = t ^ j;
            if (other > t) {
                float a = s[t], c = s[other];
                if ((t & k) == 0 ? a < c : a > c) s[t] = c, s[other] = a;
            }
            __syncthreads();
        }
    y[blockIdx.x * 1024 + t] = s[t];
}
__global__ void __launch_bounds__(1024) sort_candidates_shuffles(const float *__restrict__ x, float *__restrict__ y) {
    __shared__ float s[2][1024];
    int t = threadIdx.x, turn = 0;
    float v = x[blockIdx.x * 1024 + t];
#pragma unroll
    for (int k = 2; k <= 1024; k *= 2)
#pragma unroll
        for (int j = k / 2; j > 0; j /= 2) {
            float o;
            if (j < 32) o = __shfl_xor_sync(~0u, v, j);
            else {
                s[turn][t] = v;
                __syncthreads();
                o = s[turn][t ^ j];
                turn ^= 1;
            }
            bool larger = ((t & k) == 0) == ((t & j) == 0);
            v = larger ? fmaxf(v, o) : fminf(v, o);
        }
    y[blockIdx.x * 1024 + t] = v;
}
__global__ void __launch_bounds__(128) sort_candidates_registers(const float *__restrict__ x, float *__restrict__ y) {
    __shared__ float s[1024];
    int t = threadIdx.x;  // a thread holds eight neighbours
    float v[8];
#pragma unroll
    for (int r = 0; r < 8; ++r) v[r] = x[size_t(blockIdx.x) * 1024 + 8 * t + r];
#pragma unroll
    for (int k = 2; k <= 1024; k *= 2)
#pragma unroll
        for (int j = k / 2; j > 0; j /= 2) {
            if (j < 8) {
#pragma unroll
                for (int r = 0; r < 8; ++r) {
                    if (r & j) continue;
                    bool down = ((8 * t + r) & k) == 0;
                    float a = v[r], c = v[r | j], high = fmaxf(a, c), low = fminf(a, c);
                    v[r] = down ? high : low, v[r | j] = down ? low : high;
                }
                continue;
            }
            int far = j / 8;
            bool larger = ((8 * t & k) == 0) == ((t & far) == 0);
            float o[8];
            if (far < 32) {
#pragma unroll
                for (int r = 0; r < 8; ++r) o[r] = __shfl_xor_sync(~0u, v[r], far);
            } else {
                __syncthreads();
#pragma unroll
                for (int r = 0; r < 8; ++r) s[r * 128 + t] = v[r];
                __syncthreads();
#pragma unroll
                for (int r = 0; r < 8; ++r) o[r] = s[r * 128 + (t ^ far)];
            }
#pragma unroll
            for (int r = 0; r < 8; ++r) v[r] = larger ? fmaxf(v[r], o[r]) : fminf(v[r], o[r]);
        }
#pragma unroll
    for (int r = 0; r < 8; ++r) y[size_t(blockIdx.x) * 1024 + 8 * t + r] = v[r];
}

Study sorts("sort_candidates_barrier_each_step", "models", 8192, "1024 candidates' scores a row sorted from high to low by a bitonic network",
    "all 55 steps go through shared memory with a barrier, though 40 of them stay within a warp; half the threads idle",
    {{"shuffles", "a value a thread in a register, shuffles within warps, 15 steps in shared memory", {"barriers", "shared_memory_bandwidth"}},
        {"registers", "eight values a thread, steps in registers first", {"barriers", "shared_memory_bandwidth"}}},
    [](Buffers &b, long rows) -> Sides {
        float *x = b.random<float>(rows * 1024), *y = b.output<float>(rows * 1024);
        return {{"flawed", launch(sort_candidates, rows, 1024, 0, x, y)}, {"shuffles", launch(sort_candidates_shuffles, rows, 1024, 0, x, y)},
            {"registers", launch(sort_candidates_registers, rows, 128, 0, x, y)}};
    });

// --- softmax within windows of 49 tokens ---

__global__ void window_softmax(const float *s, const float *bias, float *p, int heads) {
    __shared__ float row[64];
    int t = threadIdx.x, r = blockIdx.x % 49, h = blockIdx.x / 49 % heads;
    float v = -1e30f;
    if (t < 49) v = s[blockIdx.x * 49 + t] + bias[(h * 49 + r) * 49 + t];
    if (t < 64) row[t] = v;
    __syncthreads();
    float top = -1e30f, sum = 0.f;
    for (int i = 0; i < 49; i++) top = fmaxf(top, row[i]);
    for (int i = 0; i < 49; i++) sum += expf(row[i] - top);
    if (t < 49) p[blockIdx.x * 49 + t] = expf(v - top) / sum;
}
__global__ void __launch_bounds__(256) window_softmax_warp(const float *__restrict__ s, const float *__restrict__ bias, float *__restrict__ p, int heads) {
    int at = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32, r = at % 49, h = at / 49 % heads;
    bool more = lane < 17;
    float a = s[at * 49 + lane] + bias[(h * 49 + r) * 49 + lane];
    float c = more ? s[at * 49 + lane + 32] + bias[(h * 49 + r) * 49 + lane + 32] : -1e30f;
    float top = warp_max(fmaxf(a, c));
    a = expf(a - top), c = more ? expf(c - top) : 0.f;
    float inv = 1.f / warp_sum(a + c);
    p[at * 49 + lane] = a * inv;
    if (more) p[at * 49 + lane + 32] = c * inv;
}
__global__ void __launch_bounds__(64) window_softmax_fewer(const float *__restrict__ s, const float *__restrict__ bias, float *__restrict__ p, int heads) {
    __shared__ float part[2][2];
    int t = threadIdx.x, r = blockIdx.x % 49, h = blockIdx.x / 49 % heads;
    float v = t < 49 ? s[blockIdx.x * 49 + t] + bias[(h * 49 + r) * 49 + t] : -1e30f;
    float top = warp_max(v);
    if (t % 32 == 0) part[0][t / 32] = top;
    __syncthreads();
    top = fmaxf(part[0][0], part[0][1]);
    v = t < 49 ? expf(v - top) : 0.f;
    float sum = warp_sum(v);
    if (t % 32 == 0) part[1][t / 32] = sum;
    __syncthreads();
    if (t < 49) p[blockIdx.x * 49 + t] = v / (part[1][0] + part[1][1]);
}

Study windows("window_softmax_block_of_256", "models", 1024, "softmax with bias of 49 scores a row, 49 rows a window, 6 heads, 1024 windows",
    "256 threads a row of 49, and each of them adds up the whole row",
    {{"warp", "a warp a row, sums by shuffles", {"idle_threads", "expensive_math"}}, {"fewer", "64 threads a row, sums by shuffles", {"idle_threads", "expensive_math"}}},
    [](Buffers &b, long windows) -> Sides {
        int heads = 6;
        long rows = windows * heads * 49;
        float *s = b.random<float>(rows * 49, -3, 3), *bias = b.random<float>(heads * 49 * 49), *p = b.output<float>(rows * 49);
        return {{"flawed", launch(window_softmax, rows, 256, 0, s, bias, p, heads)}, {"warp", launch(window_softmax_warp, rows / 8, 256, 0, s, bias, p, heads)},
            {"fewer", launch(window_softmax_fewer, rows, 64, 0, s, bias, p, heads)}};
    });

// --- tokens brought into the experts' order ---

__global__ void permute_rows(const float *x, const int *source, float *y, int rows, int dim) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    for (int c = 0; c < dim; c++) y[r * dim + c] = x[source[r] * dim + c];
}
__global__ void permute_rows_warp(const float *__restrict__ x, const int *__restrict__ source, float *__restrict__ y, int rows, int dim) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (r >= rows) return;
    const float *from = x + size_t(source[r]) * dim;
    for (int c = threadIdx.x % 32; c < dim; c += 32) y[size_t(r) * dim + c] = from[c];
}
__global__ void permute_rows_flat(const float4 *__restrict__ x, const int *__restrict__ source, float4 *__restrict__ y, int log_quads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, r = i >> log_quads;
    y[i] = x[(source[r] << log_quads) + (i & ((1 << log_quads) - 1))];
}

Study permutes("moe_permute_thread_per_token", "models", 1 << 16, "rows of 512 floats of 65536 tokens copied into the experts' order",
    "a thread copies a row: lanes are 2 KiB apart",
    {{"warp", "a warp a row", {"uncoalesced_access"}}, {"flat", "16 bytes a thread", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        int dim = 512;
        std::vector<int> order(rows);
        for (long r = 0; r < rows; ++r) order[r] = (r * 40503 + 5) % rows;
        int *source = b.copy(order);
        float *x = b.random<float>(rows * dim), *y = b.output<float>(rows * dim);
        return {{"flawed", launch(permute_rows, rows / 256, 256, 0, x, source, y, rows, dim)},
            {"warp", launch(permute_rows_warp, rows / 8, 256, 0, x, source, y, rows, dim)},
            {"flat", launch(permute_rows_flat, rows * dim / 1024, 256, 0, (float4 *)x, source, (float4 *)y, 7)}};
    });

// --- selective scan ---

template <int AHEAD>
__global__ void __launch_bounds__(64) selective_scan(const float *__restrict__ x, const float *__restrict__ dt, const float *__restrict__ gate, float *__restrict__ y, int steps, int channels) {
    int c = blockIdx.x * 64 + threadIdx.x;
    size_t at = size_t(blockIdx.y) * steps * channels + c;
    float state = 0.f;
    for (int t = 0; t < steps; t += AHEAD) {
        float u[AHEAD], d[AHEAD], g[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            size_t i = at + size_t(t + k) * channels;
            u[k] = x[i], d[k] = dt[i], g[k] = gate[i];
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            state = state * __expf(-d[k]) + d[k] * u[k];
            y[at + size_t(t + k) * channels] = state * g[k];
        }
    }
}
__global__ void __launch_bounds__(64) selective_scan_naive(const float *x, const float *dt, const float *gate, float *y, int steps, int channels) {
    int c = blockIdx.x * 64 + threadIdx.x;
    float state = 0.f;
#pragma unroll 1
    for (int t = 0; t < steps; t++) {
        size_t i = (size_t(blockIdx.y) * steps + t) * channels + c;
        state = state * __expf(-dt[i]) + dt[i] * x[i];
        y[i] = state * gate[i];
    }
}
__global__ void __launch_bounds__(256) selective_scan_pieces(const float *__restrict__ x, const float *__restrict__ dt, const float *__restrict__ gate, float *__restrict__ y, int steps, int channels) {
    __shared__ float decay[8][32], ends[8][32];  // a warp a piece of 16 steps, in registers
    int lane = threadIdx.x % 32, w = threadIdx.x / 32, c = blockIdx.x * 32 + lane;
    float carried = 0.f;
    for (int first = 0; first < steps; first += 128) {
        size_t at = (size_t(blockIdx.y) * steps + first + w * 16) * channels + c;
        float a[16], h[16], state = 0.f, product = 1.f;
#pragma unroll
        for (int k = 0; k < 16; ++k) a[k] = dt[at + size_t(k) * channels], h[k] = x[at + size_t(k) * channels];
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float e = __expf(-a[k]);
            h[k] = state = state * e + a[k] * h[k];
            a[k] = product *= e;
        }
        decay[w][lane] = product, ends[w][lane] = state;
        __syncthreads();
        float before = carried, now = carried;
        for (int i = 0; i < 8; ++i) {
            if (i == w) before = now;
            now = now * decay[i][lane] + ends[i][lane];
        }
        carried = now;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) y[at + size_t(k) * channels] = (h[k] + a[k] * before) * gate[at + size_t(k) * channels];
    }
}

Study scans("selective_scan_step_by_step", "models", 2048, "gated linear recurrence over 2048 steps, 2048 channels, batch of 4",
    "a thread a channel waits for each step's loads before the next; 8192 threads in all",
    {{"ahead", "the loads of 16 steps are issued before their recurrence", {"memory_latency"}},
        {"pieces", "eight warps scan pieces of 16 steps side by side, joined in shared memory", {"memory_latency", "small_grid", "low_occupancy"}}},
    [](Buffers &b, long steps) -> Sides {
        int channels = 2048, batch = 4;
        long n = batch * steps * channels;
        float *x = b.random<float>(n), *dt = b.random<float>(n, 0.01, 0.5), *gate = b.random<float>(n), *y = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(selective_scan_naive, dim3(channels / 64, batch), 64, 0, x, dt, gate, y, steps, channels)},
            {"ahead", launch(selective_scan<16>, dim3(channels / 64, batch), 64, 0, x, dt, gate, y, steps, channels)},
            {"pieces", launch(selective_scan_pieces, dim3(channels / 32, batch), 256, 0, x, dt, gate, y, steps, channels)}};
    });

}  // namespace
