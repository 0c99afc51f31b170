// Pieces of models: caches, drafts, packed weights, hash grids. Each kernel has one weakness and two or three ways out.
#include "../pairs/pair.cuh"

namespace {

// --- keys of new tokens into a paged cache: [page][head][feature / 8][slot of page][8] ---

constexpr int PAGE = 16, PACK = 8;

struct CacheShape {
    int heads, features;
    __host__ __device__ long page() const { return static_cast<long>(heads) * features * PAGE; }
};

__global__ void cache_write(const __half *key, __half *cache, const int *slots, CacheShape shape) {
    const int token = blockIdx.x, slot = slots[token];
    if (slot < 0) return;
    const int page = slot / PAGE, within = slot % PAGE, n = shape.heads * shape.features;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const int head = i / shape.features, feature = i % shape.features;
        const long to = page * shape.page() + static_cast<long>(head) * shape.features * PAGE + (feature / PACK) * PAGE * PACK + within * PACK + feature % PACK;
        cache[to] = key[static_cast<long>(token) * n + i];
    }
}
__global__ void cache_write_packs(const uint4 *__restrict__ key, uint4 *__restrict__ cache, const int *__restrict__ slots, CacheShape shape) {
    const int token = blockIdx.x, slot = slots[token];
    if (slot < 0) return;
    const int packs = shape.heads * shape.features / PACK;
    uint4 *page = cache + slot / PAGE * (shape.page() / PACK) + slot % PAGE;
    for (int i = threadIdx.x; i < packs; i += blockDim.x) page[i * PAGE] = key[static_cast<long>(token) * packs + i];
}
// A warp takes two packs of 16 tokens: whole sectors are read, and the tokens of a page are written side by side.
__global__ void cache_write_pages(const uint4 *__restrict__ key, uint4 *__restrict__ cache, const int *__restrict__ slots, CacheShape shape) {
    const int packs = shape.heads * shape.features / PACK, lane = threadIdx.x % 32, token = blockIdx.x * 16 + lane / 2, slot = slots[token];
    if (slot < 0) return;
    uint4 *page = cache + slot / PAGE * (shape.page() / PACK) + slot % PAGE;
    for (int i = threadIdx.x / 32 * 2 + lane % 2; i < packs; i += blockDim.x / 16) page[i * PAGE] = key[static_cast<long>(token) * packs + i];
}

Study cache_writes("cache_pages_written_by_halves", "models", 65536, "keys of 65536 tokens, 8 heads of 128 half values, into pages of 16 tokens",
    "two bytes a store, in runs of 16 bytes that lie 256 bytes apart, with two divisions each",
    {{"packs", "16 bytes a thread", {"narrow_access", "integer_arithmetic"}},
        {"pages", "16 bytes a thread, 16 tokens a block: stores side by side", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long tokens) -> Sides {
        CacheShape shape{8, 128};
        __half *key = b.random<__half>(tokens * 1024);
        std::vector<int> slots(tokens);
        for (long t = 0; t < tokens; ++t) slots[t] = (t / PAGE * 2741 % (tokens / PAGE)) * PAGE + t % PAGE;
        int *s = b.copy(slots);
        __half *cache = b.output<__half>(tokens * 1024);
        b.tolerance = 1e-9;
        return {{"flawed", launch(cache_write, tokens, 256, 0, key, cache, s, shape)},
            {"packs", launch(cache_write_packs, tokens, 128, 0, (uint4 *)key, (uint4 *)cache, s, shape)},
            {"pages", launch(cache_write_pages, tokens / 16, 256, 0, (uint4 *)key, (uint4 *)cache, s, shape)}};
    });

// --- what is left of the target's distribution when a draft was refused ---

template <int THREADS>
__device__ float sum_of_block(float v) {
    __shared__ float part[THREADS / 32];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < THREADS / 32 ? part[threadIdx.x] : 0.f;
    return threadIdx.x < 32 ? warp_sum(v) : 0.f;
}
__global__ void __launch_bounds__(256) residual_mass(const float *target, const float *draft, float *mass, int vocabulary) {
    const float *p = target + blockIdx.x * static_cast<size_t>(vocabulary), *q = draft + blockIdx.x * static_cast<size_t>(vocabulary);
    float sum = 0.f;
    for (int i = threadIdx.x; i < vocabulary; i += blockDim.x) sum += fmaxf(p[i] - q[i], 0.f);
    sum = sum_of_block<256>(sum);
    if (threadIdx.x == 0) mass[blockIdx.x] = sum;
}
__global__ void __launch_bounds__(1024) residual_mass_wide(const float4 *__restrict__ target, const float4 *__restrict__ draft, float *mass, int quads) {
    const float4 *p = target + blockIdx.x * static_cast<size_t>(quads), *q = draft + blockIdx.x * static_cast<size_t>(quads);
    float sum = 0.f;
    for (int i = threadIdx.x; i < quads; i += 1024) {
        float4 a = p[i], b = q[i];
        sum += fmaxf(a.x - b.x, 0.f) + fmaxf(a.y - b.y, 0.f) + fmaxf(a.z - b.z, 0.f) + fmaxf(a.w - b.w, 0.f);
    }
    sum = sum_of_block<1024>(sum);
    if (threadIdx.x == 0) mass[blockIdx.x] = sum;
}
__global__ void __launch_bounds__(256) residual_mass_parts(const float *__restrict__ target, const float *__restrict__ draft, float *mass, int vocabulary, int part) {
    const size_t row = blockIdx.y * static_cast<size_t>(vocabulary);
    float sum = 0.f;
    for (int i = blockIdx.x * part + threadIdx.x; i < (blockIdx.x + 1) * part; i += 256) sum += fmaxf(target[row + i] - draft[row + i], 0.f);
    sum = sum_of_block<256>(sum);
    if (threadIdx.x == 0) atomicAdd(&mass[blockIdx.y], sum);
}

Study residual_masses("draft_residual_block_per_sequence", "models", 48, "mass of max(p - q, 0) over 131072 tokens for 48 sequences",
    "a block of 256 threads a sequence: 48 blocks for the whole GPU",
    {{"parts", "32 blocks a sequence that add up by atomics", {"small_grid"}},
        {"wide", "1024 threads a sequence, 16 bytes a load", {"memory_latency", "narrow_access"}}},
    [](Buffers &b, long sequences) -> Sides {
        const int vocabulary = 131072;
        float *p = b.random<float>(sequences * vocabulary, 0, 1), *q = b.random<float>(sequences * vocabulary, 0, 1);
        float *mass = b.output<float>(sequences, true);
        return {{"flawed", launch(residual_mass, sequences, 256, 0, p, q, mass, vocabulary)},
            {"parts", launch(residual_mass_parts, dim3(32, sequences), 256, 0, p, q, mass, vocabulary, vocabulary / 32)},
            {"wide", launch(residual_mass_wide, sequences, 1024, 0, (float4 *)p, (float4 *)q, mass, vocabulary / 4)}};
    });

// --- results of an attention whose keys were split, joined ---

__global__ void merge_splits(const float *partial, const float *lse, float *out, int rows, int features, int splits) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= rows * features) return;
    int row = at / features;
    float top = -INFINITY;
    for (int s = 0; s < splits; ++s) top = fmaxf(top, lse[row * splits + s]);
    float total = 0.0f;
    for (int s = 0; s < splits; ++s) total += expf(lse[row * splits + s] - top);
    float value = 0.0f;
    for (int s = 0; s < splits; ++s) value += expf(lse[row * splits + s] - top) / total * partial[static_cast<size_t>(s) * rows * features + at];
    out[at] = value;
}
__global__ void __launch_bounds__(128) merge_splits_row(const float *__restrict__ partial, const float *__restrict__ lse, float *__restrict__ out, int rows, int splits) {
    __shared__ float weight[32];
    const int row = blockIdx.x, at = row * 128 + threadIdx.x;
    if (threadIdx.x < 32) {
        float own = static_cast<int>(threadIdx.x) < splits ? lse[row * splits + threadIdx.x] : -INFINITY;
        float e = expf(own - warp_max(own));
        weight[threadIdx.x] = e / warp_sum(e);
    }
    __syncthreads();
    float value = 0.0f;
#pragma unroll 8
    for (int s = 0; s < splits; ++s) value += weight[s] * partial[static_cast<size_t>(s) * rows * 128 + at];
    out[at] = value;
}
__global__ void merge_splits_four(const float4 *__restrict__ partial, const float *__restrict__ lse, float4 *__restrict__ out, int rows, int splits) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, row = at / 32, lane = threadIdx.x % 32;  // a warp a row
    float own = lane < splits ? lse[row * splits + lane] : -INFINITY;
    float e = expf(own - warp_max(own)), w = e / warp_sum(e);
    float4 value{};
    for (int s = 0; s < splits; ++s) {
        float4 p = partial[static_cast<size_t>(s) * rows * 32 + at];
        float f = __shfl_sync(~0u, w, s);
        value.x += f * p.x, value.y += f * p.y, value.z += f * p.z, value.w += f * p.w;
    }
    out[at] = value;
}

Study merges("split_weights_for_each_feature", "models", 16384, "results of 16 splits of 16384 rows of 128 features, joined by their log sums",
    "every feature works out the 16 weights of its row again, with precise exponentials and quotients",
    {{"row", "weights once a row, in shared memory", {"expensive_math", "redundant_loads"}},
        {"four", "a warp a row: a weight a lane, four features a thread", {"expensive_math", "narrow_access"}}},
    [](Buffers &b, long rows) -> Sides {
        const int splits = 16, features = 128;
        float *partial = b.random<float>(rows * features * splits), *lse = b.random<float>(rows * splits, -3, 3);
        float *out = b.output<float>(rows * features);
        return {{"flawed", launch(merge_splits, rows * features / 256, 256, 0, partial, lse, out, rows, features, splits)},
            {"row", launch(merge_splits_row, rows, 128, 0, partial, lse, out, rows, splits)},
            {"four", launch(merge_splits_four, rows / 8, 256, 0, (float4 *)partial, lse, (float4 *)out, rows, splits)}};
    });

// --- four-bit weights packed along the depth: eight of a row of w into a word, words of neighbouring rows side by side ---

__global__ void pack_depth(const unsigned char *w, unsigned *out, int rows, int depth) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, word = blockIdx.y;
    if (row >= rows) return;
    unsigned packed = 0;
    for (int k = 0; k < 8; ++k) packed |= (w[static_cast<size_t>(row) * depth + word * 8 + k] & 15u) << (4 * k);
    out[static_cast<size_t>(word) * rows + row] = packed;
}
__device__ __forceinline__ unsigned nibbles(unsigned low, unsigned high) {
    auto half = [](unsigned x) { return (x & 15) | (x >> 4 & 0xf0) | (x >> 8 & 0xf00) | (x >> 12 & 0xf000); };
    return half(low) | half(high) << 16;
}
__global__ void __launch_bounds__(256) pack_depth_tile(const uint2 *__restrict__ w, unsigned *__restrict__ out, int rows, int words) {
    __shared__ unsigned tile[32][33];
    int lane = threadIdx.x % 32, line = threadIdx.x / 32, row = blockIdx.x * 32, word = blockIdx.y * 32;
    for (int r = line; r < 32; r += 8) {
        uint2 v = w[static_cast<size_t>(row + r) * words + word + lane];
        tile[r][lane] = nibbles(v.x, v.y);
    }
    __syncthreads();
    for (int r = line; r < 32; r += 8) out[static_cast<size_t>(word + r) * rows + row + lane] = tile[lane][r];
}
__global__ void pack_depth_sectors(const uint4 *__restrict__ w, unsigned *__restrict__ out, int rows, int depth) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, four = blockIdx.y;
    if (row >= rows) return;
    const uint4 *from = w + static_cast<size_t>(row) * (depth / 16) + four * 2;
    uint4 a = from[0], b = from[1];
    unsigned *to = out + static_cast<size_t>(four) * 4 * rows + row;
    to[0] = nibbles(a.x, a.y), to[rows] = nibbles(a.z, a.w), to[2 * rows] = nibbles(b.x, b.y), to[3 * rows] = nibbles(b.z, b.w);
}

Study packs("four_bit_words_packed_down_the_rows", "models", 8192, "8192 x 8192 four-bit codes from bytes, eight along a row in a word, stored turned",
    "neighbouring lanes read bytes of different rows, 8192 bytes apart",
    {{"tile", "rows read side by side, words turned in shared memory", {"uncoalesced_access"}},
        {"sectors", "a thread reads 32 bytes of its row and makes four words", {"narrow_access", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned char *w = b.random<unsigned char>(n * n, 0, 16);
        unsigned *out = b.output<unsigned>(n * n / 8);
        b.tolerance = 1e-12;
        return {{"flawed", launch(pack_depth, dim3(n / 256, n / 8), 256, 0, w, out, n, n)},
            {"tile", launch(pack_depth_tile, dim3(n / 32, n / 256), 256, 0, (uint2 *)w, out, n, n / 8)},
            {"sectors", launch(pack_depth_sectors, dim3(n / 256, n / 32), 256, 0, (uint4 *)w, out, n, n)}};
    });

// --- features of points from a hash grid of many resolutions ---

constexpr unsigned SLOTS = 1u << 19;
constexpr int LEVELS = 16;

struct Grid {
    const __half2 *table;
    float growth;  // log2 of the ratio of neighbouring resolutions
    __device__ __half2 at(int level, unsigned x, unsigned y, unsigned z) const {
        return table[level * SLOTS + ((x ^ y * 2654435761u ^ z * 805459861u) & (SLOTS - 1))];
    }
    __device__ float2 sample(int level, float px, float py, float pz) const {
        float scale = 16.f * exp2f(level * growth);
        float x = px * scale, y = py * scale, z = pz * scale, fx = floorf(x), fy = floorf(y), fz = floorf(z);
        float wx = x - fx, wy = y - fy, wz = z - fz;
        float2 sum{0.f, 0.f};
#pragma unroll
        for (int corner = 0; corner < 8; ++corner) {
            int dx = corner & 1, dy = corner >> 1 & 1, dz = corner >> 2;
            float weight = (dx ? wx : 1.f - wx) * (dy ? wy : 1.f - wy) * (dz ? wz : 1.f - wz);
            float2 v = __half22float2(at(level, static_cast<unsigned>(fx) + dx, static_cast<unsigned>(fy) + dy, static_cast<unsigned>(fz) + dz));
            sum.x += weight * v.x, sum.y += weight * v.y;
        }
        return sum;
    }
};
__global__ void encode(Grid grid, const float *x, const float *y, const float *z, float2 *out, int points) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= points) return;
    for (int level = 0; level < LEVELS; ++level) out[static_cast<size_t>(level) * points + p] = grid.sample(level, x[p], y[p], z[p]);
}
__global__ void encode_levels(Grid grid, const float *__restrict__ x, const float *__restrict__ y, const float *__restrict__ z, float2 *__restrict__ out, int points) {
    int p = blockIdx.x * blockDim.x + threadIdx.x, level = blockIdx.y;
    if (p < points) out[static_cast<size_t>(level) * points + p] = grid.sample(level, x[p], y[p], z[p]);
}
// Two points a thread: twice the looks into the table under way.
__global__ void encode_pairs(Grid grid, const float *__restrict__ x, const float *__restrict__ y, const float *__restrict__ z, float2 *__restrict__ out, int points) {
    int p = (blockIdx.x * blockDim.x + threadIdx.x) * 2, level = blockIdx.y;
    float2 px = *reinterpret_cast<const float2 *>(x + p), py = *reinterpret_cast<const float2 *>(y + p), pz = *reinterpret_cast<const float2 *>(z + p);
    float2 a = grid.sample(level, px.x, py.x, pz.x), b = grid.sample(level, px.y, py.y, pz.y);
    reinterpret_cast<float4 *>(out)[(static_cast<size_t>(level) * points + p) / 2] = {a.x, a.y, b.x, b.y};
}

Study hash_grids("hash_grid_levels_in_a_loop", "models", 1 << 19, "features of 524288 points from a hash grid of 16 resolutions, 2 MB each",
    "a point walks all 16 tables: 32 MB are looked into at the same time by everyone",
    {{"levels", "level by level: the grid's second axis is the level", {"cache_locality"}},
        {"pairs", "level by level, two points a thread", {"cache_locality", "memory_latency"}}},
    [](Buffers &b, long points) -> Sides {
        Grid grid{reinterpret_cast<__half2 *>(b.random<__half>(2L * SLOTS * LEVELS)), 0.46f};
        float *x = b.random<float>(points, 0, 1), *y = b.random<float>(points, 0, 1), *z = b.random<float>(points, 0, 1);
        float *out = b.output<float>(2 * points * LEVELS);
        return {{"flawed", launch(encode, points / 256, 256, 0, grid, x, y, z, (float2 *)out, points)},
            {"levels", launch(encode_levels, dim3(points / 256, LEVELS), 256, 0, grid, x, y, z, (float2 *)out, points)},
            {"pairs", launch(encode_pairs, dim3(points / 512, LEVELS), 256, 0, grid, x, y, z, (float2 *)out, points)}};
    });

// --- products of a head's features with each other, summed over its tokens ---

template <int TILE>
__global__ void __launch_bounds__(256) head_gram(const float *keys, float *gram, int tokens, bool add) {
    extern __shared__ float tile[];  // TILE tokens of 64 features
    const int head = blockIdx.y, i = threadIdx.x / 16 * 4, j = threadIdx.x % 16 * 4, part = tokens / gridDim.x;
    const float *from = keys + (static_cast<size_t>(head) * tokens + blockIdx.x * part) * 64;
    float sum[4][4] = {};
    for (int start = 0; start < part; start += TILE) {
        for (int at = threadIdx.x; at < TILE * 16; at += 256) reinterpret_cast<float4 *>(tile)[at] = reinterpret_cast<const float4 *>(from + start * 64)[at];
        __syncthreads();
#pragma unroll 4
        for (int t = 0; t < TILE; ++t) {
            float4 a = *reinterpret_cast<float4 *>(tile + t * 64 + i), b = *reinterpret_cast<float4 *>(tile + t * 64 + j);
            const float left[4] = {a.x, a.y, a.z, a.w}, right[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
            for (int r = 0; r < 4; ++r)
#pragma unroll
                for (int c = 0; c < 4; ++c) sum[r][c] += left[r] * right[c];
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r)
        for (int c = 0; c < 4; ++c) {
            float *to = gram + (head * 64 + i + r) * 64 + j + c;
            if (add) atomicAdd(to, sum[r][c]);
            else *to = sum[r][c];
        }
}

Study head_grams("head_products_one_block_a_multiprocessor", "models", 140, "products of 64 features with each other over 4096 tokens for 140 heads",
    "a block a head with 128 KB of shared memory: one fits, and eight blocks run in a second round",
    {{"small_tile", "tiles of 64 tokens: all blocks run at once", {"tail_effect", "low_occupancy"}},
        {"parts", "four blocks a head that add up by atomics, tiles of 64 tokens", {"tail_effect", "low_occupancy"}}},
    [](Buffers &b, long heads) -> Sides {
        const int tokens = 4096;
        float *keys = b.random<float>(heads * tokens * 64), *gram = b.output<float>(heads * 4096, true);
        return {{"flawed", launch(head_gram<512>, dim3(1, heads), 256, 512 * 256, keys, gram, tokens, false)},
            {"small_tile", launch(head_gram<64>, dim3(1, heads), 256, 64 * 256, keys, gram, tokens, false)},
            {"parts", launch(head_gram<64>, dim3(4, heads), 256, 64 * 256, keys, gram, tokens, true)}};
    });

// --- a branch scaled by channel, dropped by sample, added to the residual ---

__global__ void layer_scale(const __half *x, const __half *residual, const float *gamma, const float *keep, __half *out, int channels, int each_sample, size_t n) {
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __float2half(__half2float(residual[i]) + gamma[i % channels] * keep[i / each_sample] * __half2float(x[i]));
}
__global__ void layer_scale_rows(const __half *x, const __half *residual, const float *gamma, const float *keep, __half *out, int tokens) {
    // A block a token; threads are channels.
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    float scale = gamma[threadIdx.x] * keep[blockIdx.x / tokens];
    out[i] = __float2half(__half2float(residual[i]) + scale * __half2float(x[i]));
}
__global__ void layer_scale_eight(const uint4 *__restrict__ x, const uint4 *__restrict__ residual, const float *__restrict__ gamma, const float *__restrict__ keep,
    uint4 *__restrict__ out, unsigned channels, unsigned each_sample, unsigned packs) {
    unsigned p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= packs) return;
    uint4 a = x[p], r = residual[p];
    const float4 *g = reinterpret_cast<const float4 *>(gamma + p * 8 % channels);
    float4 low = g[0], high = g[1];
    const float scale[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}, k = keep[p * 8 / each_sample];
    const __half2 *from = reinterpret_cast<const __half2 *>(&a);
    __half2 *to = reinterpret_cast<__half2 *>(&r);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        float2 v = __half22float2(from[j]), o = __half22float2(to[j]);
        to[j] = __floats2half2_rn(o.x + scale[2 * j] * k * v.x, o.y + scale[2 * j + 1] * k * v.y);
    }
    out[p] = r;
}

Study layer_scales("layer_scale_half_each_with_remainders", "models", 1 << 25, "branch of 33554432 half values scaled by channel and sample, plus the residual",
    "two bytes a thread, and a 64-bit remainder and quotient for each to find channel and sample",
    {{"rows", "a block a token: channel and sample need no division", {"integer_arithmetic"}},
        {"eight", "eight values a thread with 32-bit indices", {"narrow_access", "integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const int channels = 768, tokens = 197;
        n = n / (channels * tokens) * channels * tokens;
        const int each = channels * tokens;
        __half *x = b.random<__half>(n), *residual = b.random<__half>(n);
        float *gamma = b.random<float>(channels, 0.1, 1), *keep = b.random<float>(n / each, 0.5, 1.5);
        __half *out = b.output<__half>(n);
        b.tolerance = 2e-3;
        return {{"flawed", launch(layer_scale, blocks(n, 256), 256, 0, x, residual, gamma, keep, out, channels, each, n)},
            {"rows", launch(layer_scale_rows, n / channels, channels, 0, x, residual, gamma, keep, out, tokens)},
            {"eight", launch(layer_scale_eight, blocks(n / 8, 256), 256, 0, (uint4 *)x, (uint4 *)residual, gamma, keep, (uint4 *)out, channels, each, n / 8)}};
    });

// --- sound: a step of Rprop ---

__global__ void rprop(const float4 *__restrict__ gradient, float4 *__restrict__ before, float4 *__restrict__ step, float4 *__restrict__ weight, int quads) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    float4 g = gradient[i], o = before[i], s = step[i], w = weight[i];
    auto one = [](float &g, float o, float &s, float &w) {
        float product = g * o;
        s = product > 0.f ? fminf(s * 1.2f, 50.f) : product < 0.f ? fmaxf(s * 0.5f, 1e-6f) : s;
        g = product < 0.f ? 0.f : g;
        w -= g == 0.f ? 0.f : copysignf(s, g);
    };
    one(g.x, o.x, s.x, w.x), one(g.y, o.y, s.y, w.y), one(g.z, o.z, s.z, w.z), one(g.w, o.w, s.w, w.w);
    before[i] = g, step[i] = s, weight[i] = w;
}

Study rprops("sound_rprop_step", "models", 1 << 25, "a step of Rprop for 33554432 weights", "", {},
    [](Buffers &b, long n) -> Sides {
        float *g = b.random<float>(n);
        float *o = b.changed(b.random<float>(n), n), *s = b.changed(b.random<float>(n, 0, 0.1), n), *w = b.changed(b.random<float>(n), n);
        return {{"sound", launch(rprop, n / 1024, 256, 0, (float4 *)g, (float4 *)o, (float4 *)s, (float4 *)w, n / 4)}};
    });

}  // namespace
