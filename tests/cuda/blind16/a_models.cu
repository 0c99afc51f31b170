// Serving, training and recommending: bounds of key pages, tiles of weights, second moments of activations, bags, topics.
#include <algorithm>
#include <cmath>

#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- bounds of a page of keys: least and largest value of each channel, by which a query picks the pages it reads ---

constexpr int PAGE_TOKENS = 64, HEAD_WIDTH = 128;

__global__ void __launch_bounds__(HEAD_WIDTH) page_bounds(const __half *__restrict__ keys, __half *__restrict__ least, __half *__restrict__ most, int tokens) {
    const __half *own = keys + static_cast<size_t>(blockIdx.x) * tokens * HEAD_WIDTH + threadIdx.x;
    float low = INFINITY, high = -INFINITY;
    for (int t = 0; t < tokens; t++) {
        const float x = __half2float(own[t * HEAD_WIDTH]);
        low = fminf(low, x), high = fmaxf(high, x);
    }
    least[blockIdx.x * HEAD_WIDTH + threadIdx.x] = __float2half(low);
    most[blockIdx.x * HEAD_WIDTH + threadIdx.x] = __float2half(high);
}
// Two channels a thread, sixteen tokens asked for before the first is looked at; two pages a block.
__global__ void __launch_bounds__(HEAD_WIDTH) page_bounds_pairs(const __half2 *__restrict__ keys, __half2 *__restrict__ least, __half2 *__restrict__ most, int tokens) {
    constexpr int PAIRS = HEAD_WIDTH / 2, AHEAD = 16;
    const int page = blockIdx.x * 2 + threadIdx.x / PAIRS, pair = threadIdx.x % PAIRS;
    const __half2 *own = keys + static_cast<size_t>(page) * tokens * PAIRS + pair;
    float2 low = {INFINITY, INFINITY}, high = {-INFINITY, -INFINITY};
    for (int t = 0; t < tokens; t += AHEAD) {
        __half2 some[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) some[k] = own[(t + k) * PAIRS];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            const float2 x = __half22float2(some[k]);
            low = {fminf(low.x, x.x), fminf(low.y, x.y)}, high = {fmaxf(high.x, x.x), fmaxf(high.y, x.y)};
        }
    }
    least[page * PAIRS + pair] = __floats2half2_rn(low.x, low.y);
    most[page * PAIRS + pair] = __floats2half2_rn(high.x, high.y);
}
// Eight channels a thread: sixteen threads have a token, eight tokens are read at once; joined in shared memory.
__global__ void __launch_bounds__(HEAD_WIDTH) page_bounds_wide(const uint4 *__restrict__ keys, __half *__restrict__ least, __half *__restrict__ most, int tokens) {
    constexpr int LANES = HEAD_WIDTH / 8, ROWS = HEAD_WIDTH / LANES;
    __shared__ float lows[ROWS][HEAD_WIDTH + 1], highs[ROWS][HEAD_WIDTH + 1];
    const int row = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const uint4 *own = keys + (static_cast<size_t>(blockIdx.x) * tokens + row) * LANES + lane;
    float low[8], high[8];
#pragma unroll
    for (int k = 0; k < 8; k++) low[k] = INFINITY, high[k] = -INFINITY;
#pragma unroll 4
    for (int t = 0; t < tokens; t += ROWS) {
        const uint4 eight = own[t * LANES];
        const unsigned words[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float2 x = __half22float2(*reinterpret_cast<const __half2 *>(&words[k]));
            low[2 * k] = fminf(low[2 * k], x.x), low[2 * k + 1] = fminf(low[2 * k + 1], x.y);
            high[2 * k] = fmaxf(high[2 * k], x.x), high[2 * k + 1] = fmaxf(high[2 * k + 1], x.y);
        }
    }
#pragma unroll
    for (int k = 0; k < 8; k++) lows[row][lane * 8 + k] = low[k], highs[row][lane * 8 + k] = high[k];
    __syncthreads();
    float l = lows[0][threadIdx.x], h = highs[0][threadIdx.x];
#pragma unroll
    for (int r = 1; r < ROWS; r++) l = fminf(l, lows[r][threadIdx.x]), h = fmaxf(h, highs[r][threadIdx.x]);
    least[blockIdx.x * HEAD_WIDTH + threadIdx.x] = __float2half(l);
    most[blockIdx.x * HEAD_WIDTH + threadIdx.x] = __float2half(h);
}

Study key_bounds("page_key_bounds_a_half_a_thread", "serving", 16384, "least and largest value of 128 channels over the 64 keys of each of 16384 pages, half",
    "a thread reads two bytes of a token and then of the next: few bytes are on their way",
    {{"pairs", "two channels a thread, sixteen tokens asked for at once", {"narrow_access", "memory_latency"}}, {"wide", "eight channels a thread, eight tokens side by side, joined in shared memory", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const __half *keys = b.random<__half>(n * PAGE_TOKENS * HEAD_WIDTH, -3, 3);
        __half *least = b.output<__half>(n * HEAD_WIDTH), *most = b.output<__half>(n * HEAD_WIDTH);
        b.tolerance = 0.0;
        return {{"flawed", launch(page_bounds, n, HEAD_WIDTH, 0, keys, least, most, PAGE_TOKENS)},
            {"pairs", launch(page_bounds_pairs, n / 2, HEAD_WIDTH, 0, reinterpret_cast<const __half2 *>(keys), reinterpret_cast<__half2 *>(least), reinterpret_cast<__half2 *>(most), PAGE_TOKENS)},
            {"wide", launch(page_bounds_wide, n, HEAD_WIDTH, 0, reinterpret_cast<const uint4 *>(keys), least, most, PAGE_TOKENS)}};
    });

// --- weights in eight bits, a scale for each tile of 128 x 128 ---

constexpr int TILE = 128;

__device__ __forceinline__ float largest_of(float4 v) { return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))); }
__device__ __forceinline__ char4 codes_of(float4 v, float inverse) {
    return make_char4(static_cast<signed char>(__float2int_rn(v.x * inverse)), static_cast<signed char>(__float2int_rn(v.y * inverse)), static_cast<signed char>(__float2int_rn(v.z * inverse)), static_cast<signed char>(__float2int_rn(v.w * inverse)));
}
template <int THREADS>
__device__ __forceinline__ float block_largest(float x) {
    __shared__ float of_warp[THREADS / 32];
    x = warp_max(x);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
    __syncthreads();
    x = of_warp[0];
#pragma unroll
    for (int w = 1; w < THREADS / 32; w++) x = fmaxf(x, of_warp[w]);
    return x;
}
struct WeightTile {
    size_t first;
    int pitch;  // of a row, in groups of four
    __device__ WeightTile(int columns) : first((static_cast<size_t>(blockIdx.y) * TILE * columns + blockIdx.x * TILE) / 4), pitch(columns / 4) {}
    __device__ size_t group(int i) const { return first + static_cast<size_t>(i / (TILE / 4)) * pitch + i % (TILE / 4); }
};

__global__ void __launch_bounds__(256) tile_codes(const float4 *__restrict__ weights, char4 *__restrict__ codes, float *__restrict__ scales, int columns) {
    const WeightTile tile(columns);
    float most = 1e-12f;
    for (int i = threadIdx.x; i < TILE * TILE / 4; i += 256) most = fmaxf(most, largest_of(weights[tile.group(i)]));
    most = block_largest<256>(most);
    const float inverse = 127.0f / most;
    for (int i = threadIdx.x; i < TILE * TILE / 4; i += 256) codes[tile.group(i)] = codes_of(weights[tile.group(i)], inverse);
    if (threadIdx.x == 0) scales[blockIdx.y * gridDim.x + blockIdx.x] = most / 127.0f;
}
// 512 threads keep 32 values each.
__global__ void __launch_bounds__(512) tile_codes_registers(const float4 *__restrict__ weights, char4 *__restrict__ codes, float *__restrict__ scales, int columns) {
    constexpr int EACH = TILE * TILE / 4 / 512;
    const WeightTile tile(columns);
    float4 own[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) own[k] = weights[tile.group(threadIdx.x + k * 512)];
    float most = 1e-12f;
#pragma unroll
    for (int k = 0; k < EACH; k++) most = fmaxf(most, largest_of(own[k]));
    most = block_largest<512>(most);
    const float inverse = 127.0f / most;
#pragma unroll
    for (int k = 0; k < EACH; k++) codes[tile.group(threadIdx.x + k * 512)] = codes_of(own[k], inverse);
    if (threadIdx.x == 0) scales[blockIdx.y * gridDim.x + blockIdx.x] = most / 127.0f;
}
// The tile waits in shared memory.
__global__ void __launch_bounds__(512) tile_codes_shared(const float4 *__restrict__ weights, char4 *__restrict__ codes, float *__restrict__ scales, int columns) {
    extern __shared__ float4 kept[];
    const WeightTile tile(columns);
    float most = 1e-12f;
#pragma unroll 8
    for (int i = threadIdx.x; i < TILE * TILE / 4; i += 512) {
        const float4 four = weights[tile.group(i)];
        kept[i] = four;
        most = fmaxf(most, largest_of(four));
    }
    most = block_largest<512>(most);
    const float inverse = 127.0f / most;
    for (int i = threadIdx.x; i < TILE * TILE / 4; i += 512) codes[tile.group(i)] = codes_of(kept[i], inverse);
    if (threadIdx.x == 0) scales[blockIdx.y * gridDim.x + blockIdx.x] = most / 127.0f;
}

Study weight_tiles("weight_tiles_read_again_for_their_codes", "training", 8192, "8192 x 8192 weights in eight bits, a scale for each tile of 128 x 128",
    "a tile is read for its largest value, and read again when the scale is known",
    {{"registers", "512 threads keep 32 values each", {"redundant_loads"}}, {"shared", "the tile waits in 64 KiB of shared memory", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const float4 *weights = reinterpret_cast<const float4 *>(b.random<float>(n * n, -0.1, 0.1));
        char4 *codes = reinterpret_cast<char4 *>(b.output<signed char>(n * n));
        float *scales = b.output<float>(n / TILE * (n / TILE));
        b.tolerance = 0.0;
        const dim3 grid(blocks(n, TILE), blocks(n, TILE));
        return {{"flawed", launch(tile_codes, grid, 256, 0, weights, codes, scales, n)}, {"registers", launch(tile_codes_registers, grid, 512, 0, weights, codes, scales, n)},
            {"shared", launch(tile_codes_shared, grid, 512, TILE * TILE * sizeof(float), weights, codes, scales, n)}};
    });

// --- second moments of a layer's inputs, by which its weights are rounded: the lower half of X^T X ---

using namespace nvcuda;

// A block of WARPS x 32 threads has a tile of SIDE x SIDE, a warp 32 x WIDE of it. `Parts`: the tokens are split, sums are added.
template <int SIDE, int WARPS, int WIDE, bool Parts>
__global__ void __launch_bounds__(WARPS * 32) second_moments(const __half *__restrict__ x, float *__restrict__ out, int tokens, int features) {
    constexpr int DEPTH = 32, PITCH = SIDE + 8, THREADS = WARPS * 32, ACROSS = SIDE / WIDE;
    __shared__ __align__(32) __half left[DEPTH * PITCH], right[DEPTH * PITCH];
    int row = static_cast<int>((sqrtf(8.0f * blockIdx.x + 1.0f) - 1.0f) / 2.0f);
    while ((row + 1) * (row + 2) / 2 <= static_cast<int>(blockIdx.x)) row++;
    while (row * (row + 1) / 2 > static_cast<int>(blockIdx.x)) row--;
    const int column = blockIdx.x - row * (row + 1) / 2, warp = threadIdx.x / 32, y = warp / ACROSS * 32, z = warp % ACROSS * WIDE;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][WIDE / 16];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < WIDE / 16; j++) wmma::fill_fragment(sums[i][j], 0.0f);
    const int share = tokens / gridDim.y, first = blockIdx.y * share;
    for (int t = first; t < first + share; t += DEPTH) {
#pragma unroll
        for (int i = threadIdx.x; i < DEPTH * SIDE / 8; i += THREADS) {
            const int k = i / (SIDE / 8), c = i % (SIDE / 8) * 8;
            const __half *from = x + static_cast<size_t>(t + k) * features + c;
            *reinterpret_cast<uint4 *>(&left[k * PITCH + c]) = *reinterpret_cast<const uint4 *>(from + row * SIDE);
            *reinterpret_cast<uint4 *>(&right[k * PITCH + c]) = *reinterpret_cast<const uint4 *>(from + column * SIDE);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::col_major> a[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b[WIDE / 16];
            for (int i = 0; i < 2; i++) wmma::load_matrix_sync(a[i], left + k * PITCH + y + i * 16, PITCH);
            for (int j = 0; j < WIDE / 16; j++) wmma::load_matrix_sync(b[j], right + k * PITCH + z + j * 16, PITCH);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < WIDE / 16; j++) wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
        }
        __syncthreads();
    }
    float *tile = out + static_cast<size_t>(row * SIDE + y) * features + column * SIDE + z;
    if constexpr (!Parts) {
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < WIDE / 16; j++) wmma::store_matrix_sync(tile + static_cast<size_t>(i) * 16 * features + j * 16, sums[i][j], features, wmma::mem_row_major);
    } else {
        float *room = reinterpret_cast<float *>(warp % 2 ? right : left) + warp / 2 * 256;  // 256 of each warp
        const int lane = threadIdx.x % 32;
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < WIDE / 16; j++) {
                wmma::store_matrix_sync(room, sums[i][j], 16, wmma::mem_row_major);
                __syncwarp();
                for (int k = lane; k < 256; k += 32) atomicAdd(tile + static_cast<size_t>(i * 16 + k / 16) * features + j * 16 + k % 16, room[k]);
                __syncwarp();
            }
    }
}

__global__ void clear_upper(float *out, int features) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i % features > i / features) out[i] = 0.0f;
}

Study input_moments("input_moments_in_136_tiles", "models", 2048, "X^T X of 8192 tokens of 2048 half features, lower half, on tensor cores",
    "the lower half is 136 tiles of 128 x 128, a block for each, where 132 multiprocessors wait for the last four",
    {{"parts", "the tokens in four parts, whose sums are added by atomics", {"tail_effect", "low_occupancy"}}, {"small_tiles", "528 tiles of 64 x 64 by four warps", {"tail_effect", "low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        const long tokens = 4 * n, large = n / 128, small = n / 64;
        const __half *x = b.random<__half>(tokens * n, -0.2, 1.0);
        float *out = b.output<float>(n * n, true);
        const auto side = [=](auto kernel, long tiles, unsigned parts, int threads) { return launch(kernel, dim3(blocks(tiles * (tiles + 1) / 2, 1), parts), threads, 0, x, out, tokens, n); };
        b.tolerance = 1e-4;
        const auto lower = launch(clear_upper, blocks(n * n, 256), 256, 0, out, n);  // tiles of the diagonal have some of the upper half
        return {{"flawed", side(second_moments<128, 8, 64, false>, large, 1, 256), {}, 1, lower}, {"parts", side(second_moments<128, 8, 64, true>, large, 4, 256), {}, 1, lower},
            {"small_tiles", side(second_moments<64, 4, 32, false>, small, 1, 128), {}, 1, lower}};
    });

// --- embedding bags of rows in four bits ---

constexpr int BAG_WIDTH = 128, ROW_BYTES = 4 + BAG_WIDTH / 2;  // scale and bias (half) before the codes

struct Bags {
    const unsigned char *table;
    const int *starts, *rows;
    int count;
};

__global__ void __launch_bounds__(BAG_WIDTH) bag_sums(Bags bags, float *__restrict__ out) {
    const int bag = blockIdx.x, d = threadIdx.x;
    float sum = 0.0f;
    for (int i = bags.starts[bag]; i < bags.starts[bag + 1]; i++) {
        const unsigned char *row = bags.table + static_cast<size_t>(bags.rows[i]) * ROW_BYTES;
        const float scale = __half2float(*reinterpret_cast<const __half *>(row)), bias = __half2float(*reinterpret_cast<const __half *>(row + 2));
        const int code = row[4 + d / 2] >> d % 2 * 4 & 15;
        sum += code * scale + bias;
    }
    out[static_cast<size_t>(bag) * BAG_WIDTH + d] = sum;
}
// A warp has a bag; a lane four values of a row.
__global__ void __launch_bounds__(128) bag_sums_warp(Bags bags, float4 *__restrict__ out) {
    const int bag = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (bag >= bags.count) return;
    float4 sum = {};
    const int end = bags.starts[bag + 1];
#pragma unroll 4
    for (int i = bags.starts[bag]; i < end; i++) {
        const unsigned char *row = bags.table + static_cast<size_t>(bags.rows[i]) * ROW_BYTES;
        const float2 form = __half22float2(*reinterpret_cast<const __half2 *>(row));
        const unsigned codes = reinterpret_cast<const unsigned short *>(row + 4)[lane];
        sum.x += (codes & 15) * form.x + form.y, sum.y += (codes >> 4 & 15) * form.x + form.y;
        sum.z += (codes >> 8 & 15) * form.x + form.y, sum.w += (codes >> 12) * form.x + form.y;
    }
    out[static_cast<size_t>(bag) * 32 + lane] = sum;
}
// Sixteen lanes have a row, eight values each: two rows at a time, joined by shuffles.
__global__ void __launch_bounds__(128) bag_sums_halves(Bags bags, float4 *__restrict__ out) {
    const int bag = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 16, second = threadIdx.x / 16 % 2;
    if (bag >= bags.count) return;
    float sums[8] = {};
    const int end = bags.starts[bag + 1];
#pragma unroll 4
    for (int i = bags.starts[bag] + second; i < end; i += 2) {
        const unsigned char *row = bags.table + static_cast<size_t>(bags.rows[i]) * ROW_BYTES;
        const float2 form = __half22float2(*reinterpret_cast<const __half2 *>(row));
        const unsigned codes = reinterpret_cast<const unsigned *>(row + 4)[lane];
#pragma unroll
        for (int k = 0; k < 8; k++) sums[k] += (codes >> 4 * k & 15) * form.x + form.y;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) sums[k] += __shfl_xor_sync(~0u, sums[k], 16);
    out[static_cast<size_t>(bag) * 32 + lane * 2 + second] = second ? make_float4(sums[4], sums[5], sums[6], sums[7]) : make_float4(sums[0], sums[1], sums[2], sums[3]);
}

Study four_bit_bags("bags_of_four_bit_rows_a_value_a_thread", "recommenders", 1 << 16, "sums of 1 to 63 embeddings in four bits of 128 values each, 65536 bags, from 1048576 rows of 68 bytes",
    "a thread takes one code of a row's 64 bytes, and scale and bias again for each",
    {{"warp", "a warp a bag, four values a lane, four rows at once", {"narrow_access", "redundant_loads"}}, {"halves", "eight values a lane, two rows side by side", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const long rows = n * 16;
        std::vector<unsigned char> table(rows * ROW_BYTES);
        for (size_t i = 0; i < table.size(); i++) table[i] = static_cast<unsigned char>(hash(static_cast<unsigned>(i)));
        for (long r = 0; r < rows; r++) {
            const __half form[2] = {__float2half(0.01f + (r % 97) * 1e-4f), __float2half(-0.05f - (r % 31) * 1e-3f)};
            std::copy_n(reinterpret_cast<const unsigned char *>(form), 4, &table[r * ROW_BYTES]);
        }
        std::vector<int> starts(n + 1), members;
        for (long i = 0; i < n; i++) {
            const int length = 1 + hash(static_cast<unsigned>(i) + 11) % 63;
            for (int k = 0; k < length; k++) members.push_back(static_cast<int>(hash(static_cast<unsigned>(members.size()) + 99) % rows));
            starts[i + 1] = static_cast<int>(members.size());
        }
        const Bags bags{b.copy(table), b.copy(starts), b.copy(members), static_cast<int>(n)};
        float *out = b.output<float>(n * BAG_WIDTH);
        float4 *fours = reinterpret_cast<float4 *>(out);
        return {{"flawed", launch(bag_sums, n, BAG_WIDTH, 0, bags, out)}, {"warp", launch(bag_sums_warp, blocks(n, 4), 128, 0, bags, fours)}, {"halves", launch(bag_sums_halves, blocks(n, 4), 128, 0, bags, fours)}};
    });

// --- topics of words: each word of a text draws its topic anew, by counts of the text and of the word ---

constexpr int TOPICS = 64;

struct Topics {
    const unsigned short *of_text, *of_word;  // TOPICS counts each
    const unsigned *weights;                  // of a topic, in whole numbers so that draws can be repeated
    const int *texts, *words;
    int count;
};

__device__ __forceinline__ void eight_weights(const Topics &t, const uint4 *of_text, const uint4 *of_word, int eight, unsigned *out) {
    const uint4 a = of_text[eight], b = of_word[eight];
    const unsigned texts[4] = {a.x, a.y, a.z, a.w}, words[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        out[2 * k] = ((texts[k] & 0xffff) + 1) * ((words[k] & 0xffff) + 1) * t.weights[eight * 8 + 2 * k];
        out[2 * k + 1] = ((texts[k] >> 16) + 1) * ((words[k] >> 16) + 1) * t.weights[eight * 8 + 2 * k + 1];
    }
}
__global__ void __launch_bounds__(128) draw_topics(Topics t, int *__restrict__ out, unsigned seed) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= t.count) return;
    const uint4 *of_text = reinterpret_cast<const uint4 *>(t.of_text + static_cast<size_t>(t.texts[i]) * TOPICS), *of_word = reinterpret_cast<const uint4 *>(t.of_word + static_cast<size_t>(t.words[i]) * TOPICS);
    unsigned sums[TOPICS], sum = 0;
#pragma unroll
    for (int e = 0; e < TOPICS / 8; e++) {
        unsigned weights[8];
        eight_weights(t, of_text, of_word, e, weights);
#pragma unroll
        for (int k = 0; k < 8; k++) sums[e * 8 + k] = sum += weights[k];
    }
    const unsigned drawn = __umulhi(hash(seed + i), sum);
    int low = 0, high = TOPICS - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (sums[middle] > drawn) high = middle;
        else low = middle + 1;
    }
    out[i] = low;
}
// The counts are walked a second time, until the sum has passed what was drawn.
__global__ void __launch_bounds__(128) draw_topics_again(Topics t, int *__restrict__ out, unsigned seed) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= t.count) return;
    const uint4 *of_text = reinterpret_cast<const uint4 *>(t.of_text + static_cast<size_t>(t.texts[i]) * TOPICS), *of_word = reinterpret_cast<const uint4 *>(t.of_word + static_cast<size_t>(t.words[i]) * TOPICS);
    unsigned eights[TOPICS / 8], sum = 0;
#pragma unroll
    for (int e = 0; e < TOPICS / 8; e++) {
        unsigned weights[8];
        eight_weights(t, of_text, of_word, e, weights);
#pragma unroll
        for (int k = 0; k < 8; k++) sum += weights[k];
        eights[e] = sum;
    }
    const unsigned drawn = __umulhi(hash(seed + i), sum);
    int eight = 0;
    unsigned before = 0;
#pragma unroll
    for (int e = 0; e < TOPICS / 8 - 1; e++)
        if (eights[e] <= drawn) eight = e + 1, before = eights[e];
    unsigned weights[8];
    eight_weights(t, of_text, of_word, eight, weights);
    int topic = eight * 8;
#pragma unroll
    for (int k = 0; k < 7; k++) topic += (before += weights[k]) <= drawn;
    out[i] = topic;
}
// Eight lanes have a word, eight topics each.
__global__ void __launch_bounds__(128) draw_topics_lanes(Topics t, int *__restrict__ out, unsigned seed) {
    const int i = (blockIdx.x * 128 + threadIdx.x) / 8, lane = threadIdx.x % 8;
    if (i >= t.count) return;
    const uint4 *of_text = reinterpret_cast<const uint4 *>(t.of_text + static_cast<size_t>(t.texts[i]) * TOPICS), *of_word = reinterpret_cast<const uint4 *>(t.of_word + static_cast<size_t>(t.words[i]) * TOPICS);
    unsigned weights[8], own = 0;
    eight_weights(t, of_text, of_word, lane, weights);
#pragma unroll
    for (int k = 0; k < 8; k++) own += weights[k];
    unsigned upto = own;
#pragma unroll
    for (int d = 1; d < 8; d *= 2) {
        const unsigned other = __shfl_up_sync(~0u, upto, d, 8);
        if (lane >= d) upto += other;
    }
    const unsigned drawn = __umulhi(hash(seed + i), __shfl_sync(~0u, upto, 7, 8));
    unsigned before = upto - own;
    if (before > drawn || upto <= drawn) return;
    int topic = lane * 8;
#pragma unroll
    for (int k = 0; k < 7; k++) topic += (before += weights[k]) <= drawn;
    out[i] = topic;
}

Study topic_draws("topics_drawn_from_sums_in_local", "statistics", 1 << 20, "a topic of 64 for each of 1048576 words, by counts of its text and its word",
    "64 sums are kept by a thread and searched by halving: an array indexed at run time",
    {{"again", "eight sums in registers, the eight counts between them read again", {"local_memory"}}, {"lanes", "eight lanes a word, eight topics each, sums by shuffles", {"local_memory", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const long texts = std::max(1L, n / 160), vocabulary = std::max(64L, n / 32);
        std::vector<unsigned short> of_text(texts * TOPICS), of_word(vocabulary * TOPICS);
        for (size_t i = 0; i < of_text.size(); i++) of_text[i] = static_cast<unsigned short>(hash(static_cast<unsigned>(i)) % 5 ? 0 : hash(static_cast<unsigned>(i) + 3) % 31);
        for (size_t i = 0; i < of_word.size(); i++) of_word[i] = static_cast<unsigned short>(hash(static_cast<unsigned>(i) + 8) % 7 ? 1 : hash(static_cast<unsigned>(i) + 6) % 1000);
        std::vector<unsigned> weights(TOPICS);
        for (int k = 0; k < TOPICS; k++) weights[k] = 30 + hash(k) % 200;
        std::vector<int> of(n), words(n);
        for (long i = 0; i < n; i++) {
            const double u = hash(static_cast<unsigned>(i) + 77) / 4294967296.0;  // common words come first
            of[i] = static_cast<int>(std::min(i / 160, texts - 1)), words[i] = static_cast<int>(vocabulary * u * u * u);
        }
        const Topics t{b.copy(of_text), b.copy(of_word), b.copy(weights), b.copy(of), b.copy(words), static_cast<int>(n)};
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(draw_topics, blocks(n, 128), 128, 0, t, out, 5u)}, {"again", launch(draw_topics_again, blocks(n, 128), 128, 0, t, out, 5u)}, {"lanes", launch(draw_topics_lanes, blocks(n * 8, 128), 128, 0, t, out, 5u)}};
    });

}  // namespace
