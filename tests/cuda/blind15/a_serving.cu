// Serving and training of language models. Each kernel but the last has one weakness and two ways out.
#include <algorithm>

#include <cuda_fp16.h>
#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- activations to four bits: groups of 32 share a power of two as their scale (e2m1 with e8m0) ---

constexpr int GROUP = 32;

__device__ __forceinline__ int scale_exponent(float most) { return max(static_cast<int>(__float_as_uint(most) >> 23) - 2, 1); }
__device__ __forceinline__ float inverse_scale(int exponent) { return __uint_as_float(static_cast<unsigned>(254 - exponent) << 23); }
__device__ __forceinline__ unsigned to_e2m1(float value) {
    const float a = fabsf(value);
    const unsigned code = (a > 0.25f) + (a > 0.75f) + (a > 1.25f) + (a > 1.75f) + (a > 2.5f) + (a > 3.5f) + (a > 5.f);
    return code | (value < 0.f ? 8u : 0u);
}

__global__ void __launch_bounds__(256) quantise_groups(const __half *__restrict__ x, unsigned char *__restrict__ codes, unsigned char *__restrict__ scales, int groups) {
    const int group = blockIdx.x * 256 + threadIdx.x;
    if (group >= groups) return;
    const __half *own = x + static_cast<size_t>(group) * GROUP;
    float values[GROUP], most = 0.f;
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        values[i] = __half2float(own[i]);
        most = fmaxf(most, fabsf(values[i]));
    }
    const int exponent = scale_exponent(most);
    const float inverse = inverse_scale(exponent);
    scales[group] = static_cast<unsigned char>(exponent);
#pragma unroll
    for (int i = 0; i < GROUP; i += 2)
        codes[static_cast<size_t>(group) * (GROUP / 2) + i / 2] = static_cast<unsigned char>(to_e2m1(values[i] * inverse) | to_e2m1(values[i + 1] * inverse) << 4);
}
// The group's 64 bytes in four loads, its 16 bytes in one store.
__global__ void __launch_bounds__(256) quantise_groups_vectors(const uint4 *__restrict__ x, uint4 *__restrict__ codes, unsigned char *__restrict__ scales, int groups) {
    const int group = blockIdx.x * 256 + threadIdx.x;
    if (group >= groups) return;
    float values[GROUP], most = 0.f;
#pragma unroll
    for (int v = 0; v < 4; v++) {
        const uint4 eight = x[static_cast<size_t>(group) * 4 + v];
        const unsigned words[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
        for (int w = 0; w < 4; w++) {
            const float2 two = __half22float2(*reinterpret_cast<const __half2 *>(&words[w]));
            values[8 * v + 2 * w] = two.x, values[8 * v + 2 * w + 1] = two.y;
            most = fmaxf(most, fmaxf(fabsf(two.x), fabsf(two.y)));
        }
    }
    const int exponent = scale_exponent(most);
    const float inverse = inverse_scale(exponent);
    scales[group] = static_cast<unsigned char>(exponent);
    unsigned packed[4] = {};
#pragma unroll
    for (int i = 0; i < GROUP; i++) packed[i / 8] |= to_e2m1(values[i] * inverse) << 4 * (i % 8);
    codes[group] = make_uint4(packed[0], packed[1], packed[2], packed[3]);
}
// Eight lanes for a group, four values each.
__global__ void __launch_bounds__(256) quantise_groups_lanes(const uint2 *__restrict__ x, unsigned short *__restrict__ codes, unsigned char *__restrict__ scales, int groups) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= groups * 8) return;
    const uint2 four = x[i];
    const float2 a = __half22float2(*reinterpret_cast<const __half2 *>(&four.x)), b = __half22float2(*reinterpret_cast<const __half2 *>(&four.y));
    float most = fmaxf(fmaxf(fabsf(a.x), fabsf(a.y)), fmaxf(fabsf(b.x), fabsf(b.y)));
#pragma unroll
    for (int offset = 1; offset < 8; offset *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, offset));
    const int exponent = scale_exponent(most);
    const float inverse = inverse_scale(exponent);
    if (i % 8 == 0) scales[i / 8] = static_cast<unsigned char>(exponent);
    codes[i] = static_cast<unsigned short>(to_e2m1(a.x * inverse) | to_e2m1(a.y * inverse) << 4 | to_e2m1(b.x * inverse) << 8 | to_e2m1(b.y * inverse) << 12);
}

Study four_bit_groups("mxfp4_groups_of_32_a_thread_each", "models", 8192, "8192 tokens of 4096 half activations quantised to four bits with a power of two as scale for each 32",
    "a thread takes a group of 32 value by value, so that neighbouring lanes are 64 bytes apart",
    {{"lanes", "eight lanes a group, four neighbouring values each, the largest by shuffles", {"uncoalesced_access"}}, {"vectors", "a group a thread, loads and stores of 16 bytes", {"narrow_access", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int groups = static_cast<int>(n) * 4096 / GROUP;
        const __half *x = b.random<__half>(static_cast<size_t>(groups) * GROUP, -3, 3);
        unsigned char *codes = b.output<unsigned char>(static_cast<size_t>(groups) * 16), *scales = b.output<unsigned char>(groups);
        b.tolerance = 0.0;
        return {{"flawed", launch(quantise_groups, blocks(groups, 256), 256, 0, x, codes, scales, groups)},
            {"lanes", launch(quantise_groups_lanes, blocks(groups, 32), 256, 0, reinterpret_cast<const uint2 *>(x), reinterpret_cast<unsigned short *>(codes), scales, groups)},
            {"vectors", launch(quantise_groups_vectors, blocks(groups, 256), 256, 0, reinterpret_cast<const uint4 *>(x), reinterpret_cast<uint4 *>(codes), scales, groups)}};
    });

// --- speculative decoding: a node of a draft tree may attend to itself and its ancestors ---

constexpr int NODES = 512;

__global__ void __launch_bounds__(256) tree_mask(const int *__restrict__ parent, unsigned char *__restrict__ mask) {
    const int at = blockIdx.x * 256 + threadIdx.x, query = at / NODES, key = at % NODES;
    const int *tree = parent + blockIdx.y * NODES;
    int node = query;
    while (node > key) node = tree[node];  // parents come before their children; the root's is -1
    mask[static_cast<size_t>(blockIdx.y) * NODES * NODES + at] = node == key;
}
// The tree's parents in shared memory, 32 rows of the mask a block.
__global__ void __launch_bounds__(256) tree_mask_shared(const int *__restrict__ parent, unsigned char *__restrict__ mask) {
    __shared__ short tree[NODES];
    for (int i = threadIdx.x; i < NODES; i += 256) tree[i] = static_cast<short>(parent[blockIdx.y * NODES + i]);
    __syncthreads();
    for (int i = threadIdx.x; i < 32 * NODES; i += 256) {
        const int at = blockIdx.x * 32 * NODES + i, key = at % NODES;
        int node = at / NODES;
        while (node > key) node = tree[node];
        mask[static_cast<size_t>(blockIdx.y) * NODES * NODES + at] = node == key;
    }
}
// A warp a row: it walks to the root once, and each lane marks which of its 16 keys were met.
__global__ void __launch_bounds__(256) tree_mask_once(const int *__restrict__ parent, uint4 *__restrict__ mask) {
    const int lane = threadIdx.x % 32, query = blockIdx.x * 8 + threadIdx.x / 32;
    const int *tree = parent + blockIdx.y * NODES;
    unsigned met = 0;
    for (int node = query; node >= 0; node = tree[node])
        if (node / 16 == lane) met |= 1u << node % 16;
    auto spread = [](unsigned four) { return (four & 15) * 0x00204081u & 0x01010101u; };
    mask[(static_cast<size_t>(blockIdx.y) * NODES + query) * (NODES / 16) + lane] = make_uint4(spread(met), spread(met >> 4), spread(met >> 8), spread(met >> 12));
}

Study draft_trees("draft_tree_walked_for_each_query_and_key", "serving", 512, "masks of attention over 512 draft trees of 512 nodes: a node sees its ancestors",
    "each pair of query and key walks up the tree in global memory, though a query's walk is the same for all keys",
    {{"shared", "the tree's parents in shared memory", {"memory_latency"}}, {"once", "a warp a query walks once and marks the keys it met; 16 bytes a store", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> parent(n * NODES);
        for (long t = 0; t < n; t++)
            for (int i = 0; i < NODES; i++) {
                // Levels of about 32 nodes: the likelier a node, the more children it has.
                const unsigned draw = hash(static_cast<unsigned>(t * NODES + i)), width = 24 + hash(static_cast<unsigned>(t)) % 17;
                const int level = i == 0 ? -1 : (i - 1) / static_cast<int>(width);
                const int first = level <= 0 ? 0 : 1 + (level - 1) * static_cast<int>(width);
                parent[t * NODES + i] = i == 0 ? -1 : level == 0 ? 0 : first + static_cast<int>(std::min(draw % width, draw / 64 % width));
            }
        const int *tree = b.copy(parent);
        unsigned char *mask = b.output<unsigned char>(static_cast<size_t>(n) * NODES * NODES);
        b.tolerance = 0.0;
        const unsigned trees = static_cast<unsigned>(n);
        return {{"flawed", launch(tree_mask, dim3(NODES * NODES / 256, trees), 256, 0, tree, mask)}, {"shared", launch(tree_mask_shared, dim3(NODES / 32, trees), 256, 0, tree, mask)},
            {"once", launch(tree_mask_once, dim3(NODES / 8, trees), 256, 0, tree, reinterpret_cast<uint4 *>(mask))}};
    });

// --- gated delta rule: a state of 64 x 64 for each head, changed by every token ---

constexpr int WIDTH = 64, CHUNK = 8;

struct DeltaRule {
    const float *q, *k, *v, *gate, *rate;  // [head][token][WIDTH]; gate and rate [head][token]
    float *out;
    int tokens;
};

// SPLIT threads share a column of the state.
template <int SPLIT>
__device__ __forceinline__ void delta_rule(const DeltaRule &d) {
    constexpr int ROWS = WIDTH / SPLIT, THREADS = WIDTH * SPLIT;
    __shared__ float keys[CHUNK][WIDTH], queries[CHUNK][WIDTH];
    const int column = threadIdx.x / SPLIT, part = threadIdx.x % SPLIT;
    const size_t head = static_cast<size_t>(blockIdx.x) * d.tokens;
    float state[ROWS] = {};
    for (int first = 0; first < d.tokens; first += CHUNK) {
        __syncthreads();
        for (int i = threadIdx.x; i < CHUNK * WIDTH; i += THREADS) {
            keys[i / WIDTH][i % WIDTH] = d.k[(head + first) * WIDTH + i];
            queries[i / WIDTH][i % WIDTH] = d.q[(head + first) * WIDTH + i];
        }
        __syncthreads();
#pragma unroll 1
        for (int t = 0; t < CHUNK; t++) {
            const size_t token = head + first + t;
            const float gate = d.gate[token], rate = d.rate[token], value = d.v[token * WIDTH + column];
            const float4 *key = reinterpret_cast<const float4 *>(keys[t]) + part, *query = reinterpret_cast<const float4 *>(queries[t]) + part;
            float seen = 0.f, result = 0.f;
#pragma unroll
            for (int r = 0; r < ROWS; r += 4) {
                const float4 k = key[r / 4 * SPLIT];
                seen += state[r] * k.x + state[r + 1] * k.y + state[r + 2] * k.z + state[r + 3] * k.w;
            }
#pragma unroll
            for (int lane = 1; lane < SPLIT; lane *= 2) seen += __shfl_xor_sync(~0u, seen, lane);
            const float change = rate * (value - gate * seen);
#pragma unroll
            for (int r = 0; r < ROWS; r += 4) {
                const float4 k = key[r / 4 * SPLIT], q = query[r / 4 * SPLIT];
                state[r] = gate * state[r] + k.x * change;
                state[r + 1] = gate * state[r + 1] + k.y * change;
                state[r + 2] = gate * state[r + 2] + k.z * change;
                state[r + 3] = gate * state[r + 3] + k.w * change;
                result += state[r] * q.x + state[r + 1] * q.y + state[r + 2] * q.z + state[r + 3] * q.w;
            }
#pragma unroll
            for (int lane = 1; lane < SPLIT; lane *= 2) result += __shfl_xor_sync(~0u, result, lane);
            if (part == 0) d.out[token * WIDTH + column] = result;
        }
    }
}

__global__ void __launch_bounds__(WIDTH, 16) delta_rule_sixteen_blocks(DeltaRule d) { delta_rule<1>(d); }
__global__ void __launch_bounds__(WIDTH) delta_rule_unbounded(DeltaRule d) { delta_rule<1>(d); }
__global__ void __launch_bounds__(4 * WIDTH, 5) delta_rule_quarters(DeltaRule d) { delta_rule<4>(d); }

Study delta_states("delta_rule_columns_spilled_for_16_blocks", "models", 640, "gated delta rule over 192 tokens of 640 heads, states of 64 x 64 in registers",
    "the launch bounds ask for 16 blocks a multiprocessor, so that a column of 64 values does not fit a thread's registers",
    {{"unbounded", "no least number of blocks", {"local_memory"}}, {"quarters", "four threads share a column, 16 values each", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const int tokens = 192;
        const size_t all = static_cast<size_t>(n) * tokens;
        DeltaRule d{};
        d.q = b.random<float>(all * WIDTH, -0.2, 0.2), d.k = b.random<float>(all * WIDTH, -0.2, 0.2), d.v = b.random<float>(all * WIDTH);
        d.gate = b.random<float>(all, 0.9, 1.0), d.rate = b.random<float>(all, 0.1, 0.9);
        d.out = b.output<float>(all * WIDTH), d.tokens = tokens;
        const unsigned heads = static_cast<unsigned>(n);
        return {{"flawed", launch(delta_rule_sixteen_blocks, heads, WIDTH, 0, d)}, {"unbounded", launch(delta_rule_unbounded, heads, WIDTH, 0, d)}, {"quarters", launch(delta_rule_quarters, heads, 4 * WIDTH, 0, d)}};
    });

// --- latent attention: keys of all heads from the latent vectors in the cache ---

constexpr int LATENT = 512;

// A tile of SIDE x SIDE by 256 threads, each of which has PER x PER of it.
template <int SIDE>
__global__ void __launch_bounds__(256) raise_keys(const __half *__restrict__ latent, const __half *__restrict__ weights, __half *__restrict__ keys, int columns) {
    constexpr int PER = SIDE / 16, DEPTH = 16;
    __shared__ float a[DEPTH][SIDE + 4], w[DEPTH][SIDE + 4];
    const int row = blockIdx.y * SIDE, column = blockIdx.x * SIDE, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sums[PER][PER] = {};
    for (int depth = 0; depth < LATENT; depth += DEPTH) {
        for (int i = threadIdx.x; i < SIDE * DEPTH / 2; i += 256) {
            const int r = i / (DEPTH / 2), c = i % (DEPTH / 2) * 2;
            const float2 two = __half22float2(*reinterpret_cast<const __half2 *>(&latent[static_cast<size_t>(row + r) * LATENT + depth + c]));
            a[c][r] = two.x, a[c + 1][r] = two.y;
            const int d = i / (SIDE / 2), e = i % (SIDE / 2) * 2;
            const float2 weight = __half22float2(*reinterpret_cast<const __half2 *>(&weights[static_cast<size_t>(depth + d) * columns + column + e]));
            *reinterpret_cast<float2 *>(&w[d][e]) = weight;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            float own[PER], other[PER];
#pragma unroll
            for (int p = 0; p < PER; p += 4) {
                *reinterpret_cast<float4 *>(&own[p]) = *reinterpret_cast<const float4 *>(&a[k][ty * 4 + p * 16]);
                *reinterpret_cast<float4 *>(&other[p]) = *reinterpret_cast<const float4 *>(&w[k][tx * 4 + p * 16]);
            }
#pragma unroll
            for (int y = 0; y < PER; y++)
#pragma unroll
                for (int x = 0; x < PER; x++) sums[y][x] = fmaf(own[y], other[x], sums[y][x]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int y = 0; y < PER; y++)
#pragma unroll
        for (int x = 0; x < PER; x += 2)
            *reinterpret_cast<__half2 *>(&keys[static_cast<size_t>(row + ty * 4 + y / 4 * 64 + y % 4) * columns + column + tx * 4 + x / 4 * 64 + x % 4]) = __floats2half2_rn(sums[y][x], sums[y][x + 1]);
}

// The same tile of 64 x 64 by four warps, each 32 x 32 of it on the tensor cores.
__global__ void __launch_bounds__(128) raise_keys_tensor(const __half *__restrict__ latent, const __half *__restrict__ weights, __half *__restrict__ keys, int columns) {
    using namespace nvcuda;
    constexpr int SIDE = 64, DEPTH = 32;
    __shared__ __align__(16) __half a[SIDE][DEPTH + 8], w[DEPTH][SIDE + 8];
    __shared__ __align__(16) float staged[SIDE][SIDE + 4];
    const int row = blockIdx.y * SIDE, column = blockIdx.x * SIDE, warp = threadIdx.x / 32, y = warp / 2 * 32, x = warp % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) wmma::fill_fragment(sums[i][j], 0.f);
    for (int depth = 0; depth < LATENT; depth += DEPTH) {
        for (int i = threadIdx.x; i < SIDE * DEPTH / 8; i += 128) {
            const int r = i / (DEPTH / 8), c = i % (DEPTH / 8) * 8, d = i / (SIDE / 8), e = i % (SIDE / 8) * 8;
            *reinterpret_cast<uint4 *>(&a[r][c]) = *reinterpret_cast<const uint4 *>(&latent[static_cast<size_t>(row + r) * LATENT + depth + c]);
            *reinterpret_cast<uint4 *>(&w[d][e]) = *reinterpret_cast<const uint4 *>(&weights[static_cast<size_t>(depth + d) * columns + column + e]);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> own[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> other[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                wmma::load_matrix_sync(own[i], &a[y + 16 * i][k], DEPTH + 8);
                wmma::load_matrix_sync(other[i], &w[k][x + 16 * i], SIDE + 8);
            }
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) wmma::mma_sync(sums[i][j], own[i], other[j], sums[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) wmma::store_matrix_sync(&staged[y + 16 * i][x + 16 * j], sums[i][j], SIDE + 4, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < SIDE * SIDE / 2; i += 128) {
        const int r = i / (SIDE / 2), c = i % (SIDE / 2) * 2;
        *reinterpret_cast<__half2 *>(&keys[static_cast<size_t>(row + r) * columns + column + c]) = __floats2half2_rn(staged[r][c], staged[r][c + 1]);
    }
}

Study latent_keys("latent_keys_of_16_heads_on_fma", "serving", 4096, "keys of 16 heads of 128 channels from 4096 latent vectors of 512, in half",
    "the product of half matrices runs on the FMA pipe, tiles of 64 x 64 with four by four results a thread",
    {{"tensor", "the same tiles on the tensor cores", {"tensor_cores_idle"}}, {"larger", "tiles of 128 x 128, eight by eight results a thread, still on the FMA pipe", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const int columns = 2048;
        const __half *latent = b.random<__half>(n * LATENT), *weights = b.random<__half>(static_cast<size_t>(LATENT) * columns, -0.1, 0.1);
        __half *keys = b.output<__half>(n * columns);
        b.tolerance = 2e-3;
        const unsigned rows = static_cast<unsigned>(n);
        return {{"flawed", launch(raise_keys<64>, dim3(columns / 64, rows / 64), 256, 0, latent, weights, keys, columns)},
            {"tensor", launch(raise_keys_tensor, dim3(columns / 64, rows / 64), 128, 0, latent, weights, keys, columns)},
            {"larger", launch(raise_keys<128>, dim3(columns / 128, rows / 128), 256, 0, latent, weights, keys, columns)}};
    });

// --- perplexity: the logarithm of the sum of exponentials over the vocabulary, less the next token's logit ---

struct Running {
    float most, sum;
    __device__ __forceinline__ void add(float z) {
        const float larger = fmaxf(most, z);
        sum = sum * __expf(most - larger) + __expf(z - larger);
        most = larger;
    }
    __device__ __forceinline__ void join(float other_most, float other_sum) {
        const float larger = fmaxf(most, other_most);
        sum = sum * __expf(most - larger) + other_sum * __expf(other_most - larger);
        most = larger;
    }
};
template <int THREADS>
__device__ __forceinline__ Running over_block(Running r) {
    __shared__ Running of_warps[THREADS / 32];
#pragma unroll
    for (int offset = 16; offset; offset /= 2) {
        const float m = __shfl_xor_sync(~0u, r.most, offset), s = __shfl_xor_sync(~0u, r.sum, offset);
        r.join(m, s);
    }
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = r;
    __syncthreads();
    r = of_warps[0];
    for (int w = 1; w < THREADS / 32; w++) r.join(of_warps[w].most, of_warps[w].sum);
    return r;
}

__global__ void __launch_bounds__(256) surprise(const float *__restrict__ logits, const int *__restrict__ next, float *__restrict__ out, int vocabulary) {
    const float *row = logits + static_cast<size_t>(blockIdx.x) * vocabulary;
    Running r{-1e30f, 0.f};
    for (int i = threadIdx.x; i < vocabulary; i += 256) r.add(row[i]);
    r = over_block<256>(r);
    if (threadIdx.x == 0) out[blockIdx.x] = __logf(r.sum) + r.most - row[next[blockIdx.x]];
}
// 1024 threads a row, 16 bytes an access, one rescaling for four values.
__global__ void __launch_bounds__(1024) surprise_wide(const float4 *__restrict__ logits, const int *__restrict__ next, float *__restrict__ out, int vocabulary) {
    const float4 *row = logits + static_cast<size_t>(blockIdx.x) * (vocabulary / 4);
    Running r{-1e30f, 0.f};
#pragma unroll 4
    for (int i = threadIdx.x; i < vocabulary / 4; i += 1024) {
        const float4 z = row[i];
        const float larger = fmaxf(r.most, fmaxf(fmaxf(z.x, z.y), fmaxf(z.z, z.w)));
        r.sum = r.sum * __expf(r.most - larger) + __expf(z.x - larger) + __expf(z.y - larger) + __expf(z.z - larger) + __expf(z.w - larger);
        r.most = larger;
    }
    r = over_block<1024>(r);
    if (threadIdx.x == 0) out[blockIdx.x] = __logf(r.sum) + r.most - reinterpret_cast<const float *>(row)[next[blockIdx.x]];
}
// Several blocks a row; the one that ends last joins what all have found.
__global__ void __launch_bounds__(256) surprise_parts(const float *__restrict__ logits, const int *__restrict__ next, float *__restrict__ out, int vocabulary, Running *found, unsigned *ended) {
    __shared__ bool last;
    const int parts = gridDim.x, each = (vocabulary + parts - 1) / parts, from = blockIdx.x * each, to = min(vocabulary, from + each);
    const float *row = logits + static_cast<size_t>(blockIdx.y) * vocabulary;
    Running r{-1e30f, 0.f};
    for (int i = from + threadIdx.x; i < to; i += 256) r.add(row[i]);
    r = over_block<256>(r);
    if (threadIdx.x == 0) {
        found[blockIdx.y * parts + blockIdx.x] = r;
        __threadfence();
        last = atomicAdd(&ended[blockIdx.y], 1u) % parts == parts - 1u;
    }
    __syncthreads();
    if (!last || threadIdx.x > 0) return;
    __threadfence();
    const volatile Running *all = found + blockIdx.y * parts;
    r = Running{all[0].most, all[0].sum};
    for (int p = 1; p < parts; p++) r.join(all[p].most, all[p].sum);
    out[blockIdx.y] = __logf(r.sum) + r.most - row[next[blockIdx.y]];
}

Study perplexity("perplexity_a_block_for_each_of_48_rows", "models", 48, "surprise of the next token for 48 rows of 151936 logits, exponentials summed online",
    "a block of 256 threads for each row: 48 blocks, and each of them waits for every value",
    {{"parts", "16 blocks a row, the last of which joins their sums", {"small_grid"}}, {"wide", "1024 threads a row and 16 bytes an access", {"memory_latency", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int vocabulary = 151936, parts = 16;
        const float *logits = b.random<float>(static_cast<size_t>(n) * vocabulary, -8, 8);
        const int *next = b.random<int>(n, 0, vocabulary);
        float *out = b.output<float>(n);
        Running *found = reinterpret_cast<Running *>(b.allocate<float>(2 * n * parts));
        unsigned *ended = b.copy(std::vector<unsigned>(n, 0u));
        const unsigned rows = static_cast<unsigned>(n);
        return {{"flawed", launch(surprise, rows, 256, 0, logits, next, out, vocabulary)}, {"parts", launch(surprise_parts, dim3(parts, rows), 256, 0, logits, next, out, vocabulary, found, ended)},
            {"wide", launch(surprise_wide, rows, 1024, 0, reinterpret_cast<const float4 *>(logits), next, out, vocabulary)}};
    });

// --- calibration before weights and activations are quantised: how often which magnitude occurs in each layer ---

constexpr int BINS = 2048;

struct Calibration {
    const float *values;  // `each` of a layer in a row
    unsigned *out;  // BINS a layer
    int each;
    float scale;  // bins by magnitude
};

__device__ __forceinline__ int bin_of(float value, float scale) { return min(static_cast<int>(fabsf(value) * scale), BINS - 1); }

// Eight warps share COPIES histograms.
template <int COPIES>
__global__ void __launch_bounds__(256) magnitudes(Calibration c) {
    extern __shared__ unsigned counts[];
    for (int i = threadIdx.x; i < COPIES * BINS; i += 256) counts[i] = 0;
    __syncthreads();
    unsigned *own = counts + threadIdx.x / 32 % COPIES * BINS;
    const int each = c.each / gridDim.x;
    const float *values = c.values + static_cast<size_t>(blockIdx.y) * c.each + static_cast<size_t>(blockIdx.x) * each;
    for (int i = threadIdx.x; i < each; i += 256) atomicAdd(&own[bin_of(values[i], c.scale)], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += 256) {
        unsigned sum = 0;
        for (int copy = 0; copy < COPIES; copy++) sum += counts[copy * BINS + bin];
        if (sum) atomicAdd(&c.out[blockIdx.y * BINS + bin], sum);
    }
}
// A histogram for each warp, two bins of 16 bits a word: no warp sees 65536 values.
__global__ void __launch_bounds__(256) magnitudes_short(Calibration c) {
    extern __shared__ unsigned counts[];
    for (int i = threadIdx.x; i < 8 * BINS / 2; i += 256) counts[i] = 0;
    __syncthreads();
    unsigned *own = counts + threadIdx.x / 32 * (BINS / 2);
    const int each = c.each / gridDim.x;
    const float *values = c.values + static_cast<size_t>(blockIdx.y) * c.each + static_cast<size_t>(blockIdx.x) * each;
    for (int i = threadIdx.x; i < each; i += 256) {
        const int bin = bin_of(values[i], c.scale);
        atomicAdd(&own[bin / 2], 1u << 16 * (bin % 2));
    }
    __syncthreads();
    for (int word = threadIdx.x; word < BINS / 2; word += 256) {
        unsigned even = 0, odd = 0;
        for (int copy = 0; copy < 8; copy++) even += counts[copy * (BINS / 2) + word] & 0xffff, odd += counts[copy * (BINS / 2) + word] >> 16;
        if (even) atomicAdd(&c.out[blockIdx.y * BINS + 2 * word], even);
        if (odd) atomicAdd(&c.out[blockIdx.y * BINS + 2 * word + 1], odd);
    }
}

Study calibration("calibration_histograms_eight_copies_a_block", "models", 24, "histograms of magnitudes, 2048 bins for each of 24 layers of 4194304 activations",
    "each of a block's eight warps has a histogram of its own: 64 KiB of shared memory a block, so that three blocks fit",
    {{"two_copies", "two histograms a block, which four warps share", {"low_occupancy"}}, {"short", "counters of 16 bits", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        const int each = 1 << 22, parts = 32;
        Calibration c{};
        c.each = each;
        c.values = b.random<float>(n * each, -1.02, 1.01), c.scale = BINS;
        c.out = b.output<unsigned>(n * BINS, true);
        b.tolerance = 0.0;
        const dim3 grid(parts, static_cast<unsigned>(n));
        return {{"flawed", launch(magnitudes<8>, grid, 256, 8 * BINS * 4, c)}, {"two_copies", launch(magnitudes<2>, grid, 256, 2 * BINS * 4, c)}, {"short", launch(magnitudes_short, grid, 256, 8 * BINS * 2, c)}};
    });

// --- token shift: three mixtures of each token with the one before it, with weights of each channel ---

constexpr int CHANNELS = 2048;

__device__ __forceinline__ uint4 mixed(uint4 now, uint4 before, uint4 weight) {
    uint4 result;
    const __half2 *n = reinterpret_cast<const __half2 *>(&now), *b = reinterpret_cast<const __half2 *>(&before), *w = reinterpret_cast<const __half2 *>(&weight);
    __half2 *r = reinterpret_cast<__half2 *>(&result);
#pragma unroll
    for (int i = 0; i < 4; i++) r[i] = __hfma2(w[i], __hsub2(b[i], n[i]), n[i]);
    return result;
}

struct Shift {
    const uint4 *hidden, *key, *value, *gate;
    uint4 *keys, *values, *gates;
};

__global__ void __launch_bounds__(CHANNELS / 8) token_shift(Shift s, int tokens) {
    const int token = blockIdx.x, channel = threadIdx.x;
    const size_t at = static_cast<size_t>(token) * (CHANNELS / 8) + channel;
    const uint4 now = s.hidden[at], before = token % tokens ? s.hidden[at - CHANNELS / 8] : make_uint4(0, 0, 0, 0);
    s.keys[at] = mixed(now, before, s.key[channel]);
    s.values[at] = mixed(now, before, s.value[channel]);
    s.gates[at] = mixed(now, before, s.gate[channel]);
}

Study token_shifts("sound_three_shifts_of_tokens", "models", 16384, "16384 tokens of 2048 half channels, each mixed with the one before it by three sets of weights", "", {},
    [](Buffers &b, long n) -> Sides {
        const auto given = [&](size_t count, double low) { return reinterpret_cast<const uint4 *>(b.random<__half>(count, low, 1)); };
        const auto result = [&] { return reinterpret_cast<uint4 *>(b.output<__half>(n * CHANNELS)); };
        Shift s{};
        s.hidden = given(n * CHANNELS, -1), s.key = given(CHANNELS, 0), s.value = given(CHANNELS, 0), s.gate = given(CHANNELS, 0);
        s.keys = result(), s.values = result(), s.gates = result();
        return {{"sound", launch(token_shift, n, CHANNELS / 8, 0, s, 2048)}};
    });

}  // namespace
