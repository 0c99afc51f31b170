// Models: packed sequences, uncertainty, graph embeddings, late interaction, small networks. Each kernel has one weakness and two or three ways out.
#include <algorithm>

#include <cuda_fp16.h>
#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- sequences packed without padding: each token gets the embedding of its place within its own sequence ---

constexpr int EIGHTS = 128;  // 1024 channels of half, eight an access

struct Packed {
    const int *starts;  // of the sequences, and the end of the last
    int sequences, tokens;
};

__device__ __forceinline__ unsigned both(unsigned a, unsigned b) {
    const __half2 sum = __hadd2(*reinterpret_cast<const __half2 *>(&a), *reinterpret_cast<const __half2 *>(&b));
    return *reinterpret_cast<const unsigned *>(&sum);
}
__device__ __forceinline__ void add_place(const uint4 *hidden, const uint4 *table, uint4 *out, int token, int place) {
    const size_t at = static_cast<size_t>(token) * EIGHTS + threadIdx.x;
    const uint4 h = hidden[at], p = table[static_cast<size_t>(place) * EIGHTS + threadIdx.x];
    out[at] = make_uint4(both(h.x, p.x), both(h.y, p.y), both(h.z, p.z), both(h.w, p.w));
}

__global__ void __launch_bounds__(EIGHTS) add_places(const uint4 *__restrict__ hidden, const uint4 *__restrict__ table, uint4 *__restrict__ out, Packed packed) {
    const int token = blockIdx.x;
    int sequence = 0;
    while (packed.starts[sequence + 1] <= token) sequence++;
    add_place(hidden, table, out, token, token - packed.starts[sequence]);
}
__global__ void __launch_bounds__(EIGHTS) add_places_bisected(const uint4 *__restrict__ hidden, const uint4 *__restrict__ table, uint4 *__restrict__ out, Packed packed) {
    const int token = blockIdx.x;
    int low = 0, high = packed.sequences;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (packed.starts[middle] <= token) low = middle;
        else high = middle;
    }
    add_place(hidden, table, out, token, token - packed.starts[low]);
}
// Each warp counts the sequences that have begun, 32 at a time.
__global__ void __launch_bounds__(EIGHTS) add_places_counted(const uint4 *__restrict__ hidden, const uint4 *__restrict__ table, uint4 *__restrict__ out, Packed packed) {
    const int token = blockIdx.x, lane = threadIdx.x % 32;
    int begun = 0;
    for (int first = 0; first < packed.sequences; first += 32)
        begun += __popc(__ballot_sync(~0u, first + lane < packed.sequences && packed.starts[first + lane] <= token));
    add_place(hidden, table, out, token, token - packed.starts[begun - 1]);
}

Study packed_places("packed_tokens_walk_to_their_sequence", "models", 49152, "embeddings of places added to 49152 tokens of 1024 channels, about 190 sequences packed without padding",
    "each thread walks along the starts of the sequences until it finds its token's",
    {{"bisected", "the sequence by bisection", {"redundant_loads"}}, {"counted", "a warp counts the starts before its token, 32 at a time", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts{0};
        while (starts.back() < n) {
            const int longer = 32 + static_cast<int>(hash(static_cast<unsigned>(starts.size())) % 448);
            starts.push_back(static_cast<int>(std::min<long>(n, starts.back() + longer)));
        }
        const Packed packed{b.copy(starts), static_cast<int>(starts.size()) - 1, static_cast<int>(n)};
        const __half *hidden = b.random<__half>(n * EIGHTS * 8), *table = b.random<__half>(512 * EIGHTS * 8);
        __half *out = b.output<__half>(n * EIGHTS * 8);
        b.tolerance = 0.0;
        auto h = reinterpret_cast<const uint4 *>(hidden), t = reinterpret_cast<const uint4 *>(table);
        auto o = reinterpret_cast<uint4 *>(out);
        return {{"flawed", launch(add_places, n, EIGHTS, 0, h, t, o, packed)}, {"bisected", launch(add_places_bisected, n, EIGHTS, 0, h, t, o, packed)},
            {"counted", launch(add_places_counted, n, EIGHTS, 0, h, t, o, packed)}};
    });

// --- how unsure a segmentation is: the entropy of each pixel's classes ---

constexpr int KINDS = 150, PIXELS_A_TILE = 64;

__global__ void __launch_bounds__(256) entropies(const float *__restrict__ logits, float *__restrict__ out, int plane) {
    const int pixel = blockIdx.x * 256 + threadIdx.x;
    const float *own = logits + static_cast<size_t>(blockIdx.y) * KINDS * plane + pixel;
    float most = -1e30f, sum = 0.f, entropy = 0.f;
    for (int k = 0; k < KINDS; k++) most = fmaxf(most, own[static_cast<size_t>(k) * plane]);
    for (int k = 0; k < KINDS; k++) sum += __expf(own[static_cast<size_t>(k) * plane] - most);
    const float one_over_sum = 1.f / sum;
    for (int k = 0; k < KINDS; k++) {
        const float p = __expf(own[static_cast<size_t>(k) * plane] - most) * one_over_sum;
        entropy -= p * __logf(fmaxf(p, 1e-20f));
    }
    out[static_cast<size_t>(blockIdx.y) * plane + pixel] = entropy;
}
// One sweep: ln of the sum, less the mean exponent; both are scaled where a larger logit comes.
__global__ void __launch_bounds__(256) entropies_online(const float *__restrict__ logits, float *__restrict__ out, int plane) {
    const int pixel = blockIdx.x * 256 + threadIdx.x;
    const float *own = logits + static_cast<size_t>(blockIdx.y) * KINDS * plane + pixel;
    float most = own[0], sum = 1.f, weighted = 0.f;  // weighted: of exp(z - most) (z - most)
#pragma unroll 8
    for (int k = 1; k < KINDS; k++) {
        const float z = own[static_cast<size_t>(k) * plane];
        if (z > most) {
            const float less = most - z, scale = __expf(less);
            weighted = scale * (weighted + less * sum);
            sum = fmaf(sum, scale, 1.f);
            most = z;
        } else {
            const float e = __expf(z - most);
            sum += e;
            weighted = fmaf(e, z - most, weighted);
        }
    }
    out[static_cast<size_t>(blockIdx.y) * plane + pixel] = __logf(sum) - weighted / sum;
}
// The logits of 64 pixels stay in shared memory between the sweeps; four threads share a pixel.
__global__ void __launch_bounds__(256) entropies_tile(const float *__restrict__ logits, float *__restrict__ out, int plane) {
    __shared__ float tile[KINDS * PIXELS_A_TILE], part[3][4][PIXELS_A_TILE];
    const int pixel = threadIdx.x % PIXELS_A_TILE, quarter = threadIdx.x / PIXELS_A_TILE, first = blockIdx.x * PIXELS_A_TILE;
    const float *own = logits + static_cast<size_t>(blockIdx.y) * KINDS * plane + first + pixel;
    float most = -1e30f, sum = 0.f, entropy = 0.f;
#pragma unroll 8
    for (int k = quarter; k < KINDS; k += 4) {
        const float z = own[static_cast<size_t>(k) * plane];
        tile[k * PIXELS_A_TILE + pixel] = z;
        most = fmaxf(most, z);
    }
    part[0][quarter][pixel] = most;
    __syncthreads();
    most = fmaxf(fmaxf(part[0][0][pixel], part[0][1][pixel]), fmaxf(part[0][2][pixel], part[0][3][pixel]));
    for (int k = quarter; k < KINDS; k += 4) sum += __expf(tile[k * PIXELS_A_TILE + pixel] - most);
    part[1][quarter][pixel] = sum;
    __syncthreads();
    const float one_over_sum = 1.f / (part[1][0][pixel] + part[1][1][pixel] + part[1][2][pixel] + part[1][3][pixel]);
    for (int k = quarter; k < KINDS; k += 4) {
        const float p = __expf(tile[k * PIXELS_A_TILE + pixel] - most) * one_over_sum;
        entropy -= p * __logf(fmaxf(p, 1e-20f));
    }
    part[2][quarter][pixel] = entropy;
    __syncthreads();
    if (quarter == 0) out[static_cast<size_t>(blockIdx.y) * plane + first + pixel] = part[2][0][pixel] + part[2][1][pixel] + part[2][2][pixel] + part[2][3][pixel];
}

Study uncertainty("entropy_map_three_sweeps_of_classes", "images", 512, "entropy of 150 classes at each of 512 x 512 pixels of two pictures, from planes of logits",
    "the classes are read three times: for their maximum, their sum and their entropy",
    {{"online", "one sweep, sums scaled where the maximum grows", {"redundant_loads"}}, {"tile", "64 pixels' logits kept in shared memory, four threads a pixel", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int plane = static_cast<int>(n * n), pictures = 2;
        const float *logits = b.random<float>(static_cast<size_t>(pictures) * KINDS * plane, -5, 7);
        float *out = b.output<float>(static_cast<size_t>(pictures) * plane);
        return {{"flawed", launch(entropies, dim3(plane / 256, pictures), 256, 0, logits, out, plane)}, {"online", launch(entropies_online, dim3(plane / 256, pictures), 256, 0, logits, out, plane)},
            {"tile", launch(entropies_tile, dim3(plane / PIXELS_A_TILE, pictures), 256, 0, logits, out, plane)}};
    });

// --- knowledge graphs: a relation turns each complex number of a head; the nearer the tail, the better ---

constexpr int TURNS = 256, NEGATIVES = 256;
constexpr float MARGIN = 12.f, PHASE_TO_ANGLE = 3.14159265f / 0.05f;

struct Graph {
    const float *entities;  // TURNS real parts, then as many imaginary ones
    const float *phases;
    const int *heads, *relations, *tails;  // NEGATIVES tails for each head and relation
};

// A warp for each tail.
template <bool FAST>
__global__ void __launch_bounds__(256) rotate_scores(Graph g, float *__restrict__ out) {
    const int lane = threadIdx.x % 32, triple = (blockIdx.x * 256 + threadIdx.x) / 32, query = triple / NEGATIVES;
    const float *head = g.entities + static_cast<size_t>(g.heads[query]) * 2 * TURNS, *tail = g.entities + static_cast<size_t>(g.tails[triple]) * 2 * TURNS;
    const float *phase = g.phases + static_cast<size_t>(g.relations[query]) * TURNS;
    float distance = 0.f;
#pragma unroll
    for (int k = lane; k < TURNS; k += 32) {
        const float angle = phase[k] * PHASE_TO_ANGLE;
        float s, c;
        if (FAST) __sincosf(angle, &s, &c);
        else sincosf(angle, &s, &c);
        const float re = head[k] * c - head[TURNS + k] * s - tail[k], im = head[k] * s + head[TURNS + k] * c - tail[TURNS + k];
        const float square = re * re + im * im;
        distance += FAST ? square * rsqrtf(fmaxf(square, 1e-30f)) : sqrtf(square);
    }
    distance = warp_sum(distance);
    if (lane == 0) out[triple] = MARGIN - distance;
}
// A block keeps a turned head for its 64 tails.
__global__ void __launch_bounds__(256) rotate_scores_once(Graph g, float *__restrict__ out) {
    __shared__ float turned[2][TURNS];
    const int lane = threadIdx.x % 32, first = blockIdx.x * 64, query = first / NEGATIVES, k0 = threadIdx.x;
    const float *head = g.entities + static_cast<size_t>(g.heads[query]) * 2 * TURNS;
    float s, c;
    sincosf(g.phases[static_cast<size_t>(g.relations[query]) * TURNS + k0] * PHASE_TO_ANGLE, &s, &c);
    turned[0][k0] = head[k0] * c - head[TURNS + k0] * s;
    turned[1][k0] = head[k0] * s + head[TURNS + k0] * c;
    __syncthreads();
    for (int triple = first + threadIdx.x / 32; triple < first + 64; triple += 8) {
        const float *tail = g.entities + static_cast<size_t>(g.tails[triple]) * 2 * TURNS;
        float distance = 0.f;
#pragma unroll
        for (int k = lane; k < TURNS; k += 32) {
            const float re = turned[0][k] - tail[k], im = turned[1][k] - tail[TURNS + k];
            distance += sqrtf(re * re + im * im);
        }
        distance = warp_sum(distance);
        if (lane == 0) out[triple] = MARGIN - distance;
    }
}

Study knowledge("relation_turned_again_for_each_tail", "graphs", 1024, "scores of 256 tails for each of 1024 heads and relations, embeddings of 256 complex numbers that the relation turns",
    "the sines and cosines of the relation's phases are computed again for each tail",
    {{"once", "the turned head once a block, in shared memory", {"expensive_math", "redundant_loads"}}, {"fast", "fast sines and cosines and a fast root", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int entities = 14951, relations = 1345;
        const Graph g{b.random<float>(static_cast<size_t>(entities) * 2 * TURNS, -0.05, 0.05), b.random<float>(static_cast<size_t>(relations) * TURNS, -0.05, 0.05), b.random<int>(n, 0, entities),
            b.random<int>(n, 0, relations), b.random<int>(n * NEGATIVES, 0, entities)};
        float *out = b.output<float>(n * NEGATIVES);
        return {{"flawed", launch(rotate_scores<false>, n * NEGATIVES / 8, 256, 0, g, out)}, {"once", launch(rotate_scores_once, n * NEGATIVES / 64, 256, 0, g, out)},
            {"fast", launch(rotate_scores<true>, n * NEGATIVES / 8, 256, 0, g, out)}};
    });

// --- late interaction: for each token of a question its best match among a document's tokens, summed ---

constexpr int ASKED = 32, WORDS = 64, DIM = 128;

__device__ __forceinline__ float best_of_columns(const float *scores, int stride, int rows) {
    float best = -1e30f;
    for (int r = 0; r < rows; r++) best = fmaxf(best, scores[r * stride + threadIdx.x % 32]);
    return warp_sum(best);
}

// A thread computes four by four of a document's 32 x 64 products.
__global__ void __launch_bounds__(128) late_interaction(const __half2 *__restrict__ question, const __half2 *__restrict__ documents, float *__restrict__ out) {
    constexpr int ROW = DIM / 2 + 1;
    __shared__ __half2 asked[ASKED * ROW], words[WORDS * ROW];
    __shared__ float of_groups[8];
    const __half2 *own = documents + static_cast<size_t>(blockIdx.x) * WORDS * DIM / 2;
    for (int i = threadIdx.x; i < ASKED * DIM / 2; i += 128) asked[i / (DIM / 2) * ROW + i % (DIM / 2)] = question[i];
#pragma unroll 8
    for (int i = threadIdx.x; i < WORDS * DIM / 2; i += 128) words[i / (DIM / 2) * ROW + i % (DIM / 2)] = own[i];
    __syncthreads();
    const int group = threadIdx.x / 16, column = threadIdx.x % 16;
    float sum[4][4] = {};
    for (int k = 0; k < DIM / 2; k++) {
        float2 q[4], w[4];
#pragma unroll
        for (int i = 0; i < 4; i++) q[i] = __half22float2(asked[(group * 4 + i) * ROW + k]), w[i] = __half22float2(words[(column + 16 * i) * ROW + k]);
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) sum[i][j] = fmaf(q[i].y, w[j].y, fmaf(q[i].x, w[j].x, sum[i][j]));
    }
    float score = 0.f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float best = fmaxf(fmaxf(sum[i][0], sum[i][1]), fmaxf(sum[i][2], sum[i][3]));
#pragma unroll
        for (int offset = 8; offset; offset /= 2) best = fmaxf(best, __shfl_xor_sync(~0u, best, offset));
        score += best;
    }
    if (column == 0) of_groups[group] = score;
    __syncthreads();
    if (threadIdx.x == 0) {
        score = 0.f;
        for (int i = 0; i < 8; i++) score += of_groups[i];
        out[blockIdx.x] = score;
    }
}

using Words = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, __half, nvcuda::wmma::row_major>;
using Asked = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, __half, nvcuda::wmma::col_major>;
using Sums = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float>;

// The same tile, a warp for 16 of the document's tokens, on tensor cores.
__global__ void __launch_bounds__(128) late_interaction_tensor(const uint4 *__restrict__ question, const uint4 *__restrict__ documents, float *__restrict__ out) {
    constexpr int ROW = DIM + 8, SCORES = ASKED + 4;
    __shared__ __align__(16) __half asked[ASKED * ROW], words[WORDS * ROW];
    __shared__ __align__(16) float scores[WORDS * SCORES];
    const int warp = threadIdx.x / 32;
    const uint4 *own = documents + static_cast<size_t>(blockIdx.x) * WORDS * DIM / 8;
    for (int i = threadIdx.x; i < ASKED * DIM / 8; i += 128) *reinterpret_cast<uint4 *>(&asked[i / (DIM / 8) * ROW + i % (DIM / 8) * 8]) = question[i];
#pragma unroll
    for (int i = threadIdx.x; i < WORDS * DIM / 8; i += 128) *reinterpret_cast<uint4 *>(&words[i / (DIM / 8) * ROW + i % (DIM / 8) * 8]) = own[i];
    __syncthreads();
    Sums left, right;
    nvcuda::wmma::fill_fragment(left, 0.f);
    nvcuda::wmma::fill_fragment(right, 0.f);
#pragma unroll
    for (int k = 0; k < DIM; k += 16) {
        Words a;
        Asked b;
        nvcuda::wmma::load_matrix_sync(a, &words[warp * 16 * ROW + k], ROW);
        nvcuda::wmma::load_matrix_sync(b, &asked[k], ROW);
        nvcuda::wmma::mma_sync(left, a, b, left);
        nvcuda::wmma::load_matrix_sync(b, &asked[16 * ROW + k], ROW);
        nvcuda::wmma::mma_sync(right, a, b, right);
    }
    nvcuda::wmma::store_matrix_sync(&scores[warp * 16 * SCORES], left, SCORES, nvcuda::wmma::mem_row_major);
    nvcuda::wmma::store_matrix_sync(&scores[warp * 16 * SCORES + 16], right, SCORES, nvcuda::wmma::mem_row_major);
    __syncthreads();
    if (warp == 0) {
        const float score = best_of_columns(scores, SCORES, WORDS);
        if (threadIdx.x == 0) out[blockIdx.x] = score;
    }
}
// A warp for each document, whose tokens go from memory straight into fragments; the question stays in shared memory.
__global__ void __launch_bounds__(128) late_interaction_warp(const uint4 *__restrict__ question, const __half *__restrict__ documents, float *__restrict__ out, int count) {
    constexpr int ROW = DIM + 8, SCORES = ASKED + 4;
    __shared__ __align__(16) __half asked[ASKED * ROW];
    __shared__ __align__(16) float scores[4][16 * SCORES];
    const int warp = threadIdx.x / 32;
    for (int i = threadIdx.x; i < ASKED * DIM / 8; i += 128) *reinterpret_cast<uint4 *>(&asked[i / (DIM / 8) * ROW + i % (DIM / 8) * 8]) = question[i];
    __syncthreads();
    for (int document = blockIdx.x * 4 + warp; document < count; document += gridDim.x * 4) {
        Sums best[2];
#pragma unroll
        for (int rows = 0; rows < WORDS; rows += 16) {
            const __half *own = documents + (static_cast<size_t>(document) * WORDS + rows) * DIM;
            Sums sums[2];
            nvcuda::wmma::fill_fragment(sums[0], 0.f);
            nvcuda::wmma::fill_fragment(sums[1], 0.f);
#pragma unroll
            for (int k = 0; k < DIM; k += 16) {
                Words a;
                Asked b;
                nvcuda::wmma::load_matrix_sync(a, own + k, DIM);
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    nvcuda::wmma::load_matrix_sync(b, &asked[half * 16 * ROW + k], ROW);
                    nvcuda::wmma::mma_sync(sums[half], a, b, sums[half]);
                }
            }
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int e = 0; e < Sums::num_elements; e++) best[half].x[e] = rows ? fmaxf(best[half].x[e], sums[half].x[e]) : sums[half].x[e];
        }
        nvcuda::wmma::store_matrix_sync(scores[warp], best[0], SCORES, nvcuda::wmma::mem_row_major);
        nvcuda::wmma::store_matrix_sync(scores[warp] + 16, best[1], SCORES, nvcuda::wmma::mem_row_major);
        __syncwarp();
        const float score = best_of_columns(scores[warp], SCORES, 16);
        if (threadIdx.x % 32 == 0) out[document] = score;
        __syncwarp();
    }
}

Study best_matches("late_interaction_half_on_fma", "search", 16384, "sums of the best matches of 32 tokens of a question among the 64 of each of 16384 documents, 128 halves a token",
    "products of halves are converted and summed by multiply-adds",
    {{"tensor", "the tile's products by tensor cores", {"tensor_cores_idle"}}, {"warp", "tensor cores, a warp a document, tokens straight into fragments", {"tensor_cores_idle", "barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const __half *question = b.random<__half>(ASKED * DIM), *documents = b.random<__half>(n * WORDS * DIM);
        float *out = b.output<float>(n);
        auto q = reinterpret_cast<const uint4 *>(question);
        return {{"flawed", launch(late_interaction, n, 128, 0, reinterpret_cast<const __half2 *>(question), reinterpret_cast<const __half2 *>(documents), out)},
            {"tensor", launch(late_interaction_tensor, n, 128, 0, q, reinterpret_cast<const uint4 *>(documents), out)},
            {"warp", launch(late_interaction_warp, multiprocessors() * 8, 128, 0, q, documents, out, static_cast<int>(n))}};
    });

// --- a small network for each sample of a ray: 16 features, two layers of 32, four outputs ---

constexpr int FEATURES = 16, HIDDEN = 32, OUTPUTS = 4, SAMPLES = 128, WEIGHTS = (FEATURES + HIDDEN + OUTPUTS) * HIDDEN;

struct Rows {
    static constexpr int WORDS_IN_ALL = SAMPLES * HIDDEN;
    static __device__ __forceinline__ int at(int unit) { return threadIdx.x * HIDDEN + unit; }
};
struct PaddedRows {
    static constexpr int WORDS_IN_ALL = SAMPLES * (HIDDEN + 1);
    static __device__ __forceinline__ int at(int unit) { return threadIdx.x * (HIDDEN + 1) + unit; }
};
struct Columns {
    static constexpr int WORDS_IN_ALL = SAMPLES * HIDDEN;
    static __device__ __forceinline__ int at(int unit) { return unit * SAMPLES + threadIdx.x; }
};

template <typename Place>
__device__ __forceinline__ void layer(const float *in, float *out, const float *weights, int width_in, int width_out, bool cut) {
    for (int j = 0; j < width_out; j++) {
        float sum = 0.f;
#pragma unroll 8
        for (int k = 0; k < width_in; k++) sum = fmaf(in[Place::at(k)], weights[j * width_in + k], sum);
        out[Place::at(j)] = cut ? fmaxf(sum, 0.f) : sum;
    }
}

template <typename Place>
__global__ void __launch_bounds__(SAMPLES) small_network(const float *__restrict__ features, const float *__restrict__ weights, float4 *__restrict__ out, int n) {
    __shared__ float held[WEIGHTS], one[Place::WORDS_IN_ALL], other[Place::WORDS_IN_ALL];
    const int sample = blockIdx.x * SAMPLES + threadIdx.x;
    for (int i = threadIdx.x; i < WEIGHTS; i += SAMPLES) held[i] = weights[i];
#pragma unroll
    for (int k = 0; k < FEATURES; k++) one[Place::at(k)] = features[static_cast<size_t>(k) * n + sample];
    __syncthreads();
    layer<Place>(one, other, held, FEATURES, HIDDEN, true);
    layer<Place>(other, one, held + FEATURES * HIDDEN, HIDDEN, HIDDEN, true);
    layer<Place>(one, other, held + (FEATURES + HIDDEN) * HIDDEN, HIDDEN, OUTPUTS, false);
    out[sample] = make_float4(other[Place::at(0)], other[Place::at(1)], other[Place::at(2)], other[Place::at(3)]);
}

template <int IN, int OUT, bool CUT>
__device__ __forceinline__ void layer_in_registers(const float (&in)[IN], float (&out)[OUT], const float *weights) {
#pragma unroll
    for (int j = 0; j < OUT; j++) {
        float sum = 0.f;
#pragma unroll
        for (int k = 0; k < IN; k++) sum = fmaf(in[k], weights[j * IN + k], sum);
        out[j] = CUT ? fmaxf(sum, 0.f) : sum;
    }
}
__global__ void __launch_bounds__(SAMPLES) small_network_registers(const float *__restrict__ features, const float *__restrict__ weights, float4 *__restrict__ out, int n) {
    __shared__ __align__(16) float held[WEIGHTS];
    const int sample = blockIdx.x * SAMPLES + threadIdx.x;
    for (int i = threadIdx.x; i < WEIGHTS; i += SAMPLES) held[i] = weights[i];
    float in[FEATURES], first[HIDDEN], second[HIDDEN], last[OUTPUTS];
#pragma unroll
    for (int k = 0; k < FEATURES; k++) in[k] = features[static_cast<size_t>(k) * n + sample];
    __syncthreads();
    layer_in_registers<FEATURES, HIDDEN, true>(in, first, held);
    layer_in_registers<HIDDEN, HIDDEN, true>(first, second, held + FEATURES * HIDDEN);
    layer_in_registers<HIDDEN, OUTPUTS, false>(second, last, held + (FEATURES + HIDDEN) * HIDDEN);
    out[sample] = make_float4(last[0], last[1], last[2], last[3]);
}

Study small_networks("ray_samples_network_activations_in_rows", "rendering", 1 << 18, "a network of 16 features, two layers of 32 and four outputs for each of 262144 samples of rays",
    "a thread keeps its sample's activations in a row of 32 words of shared memory, the same bank for all lanes",
    {{"columns", "activations of a unit side by side", {"shared_bank_conflicts"}}, {"padded", "rows of 33 words", {"shared_bank_conflicts"}}, {"registers", "widths known to the compiler, activations in registers", {"shared_bank_conflicts", "shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const float *features = b.random<float>(n * FEATURES), *weights = b.random<float>(WEIGHTS, -0.4, 0.4);
        float *out = b.output<float>(4 * n);
        auto o = reinterpret_cast<float4 *>(out);
        const unsigned grid = static_cast<unsigned>(n / SAMPLES);
        const int count = static_cast<int>(n);
        return {{"flawed", launch(small_network<Rows>, grid, SAMPLES, 0, features, weights, o, count)}, {"columns", launch(small_network<Columns>, grid, SAMPLES, 0, features, weights, o, count)},
            {"padded", launch(small_network<PaddedRows>, grid, SAMPLES, 0, features, weights, o, count)}, {"registers", launch(small_network_registers, grid, SAMPLES, 0, features, weights, o, count)}};
    });

}  // namespace
