// Pieces of language and vision models. Each kernel has one weakness and two ways out.
#include "../pairs/pair.cuh"

namespace {

// --- the mean of a sentence's tokens, as embedding models end ---

__global__ void mean_of_tokens(const __half *tokens, const float *mask, float *out, int steps, int width) {
    int f = blockIdx.x * blockDim.x + threadIdx.x, s = blockIdx.y;
    float sum = 0.f, count = 0.f;
    for (int t = 0; t < steps; ++t) {
        float m = mask[s * steps + t];
        sum += __half2float(tokens[(static_cast<size_t>(s) * steps + t) * width + f]) * m;
        count += m;
    }
    out[s * width + f] = sum / fmaxf(count, 1e-9f);
}
__global__ void mean_of_tokens_length(const __half *__restrict__ tokens, const int *__restrict__ lengths, float *__restrict__ out, int steps, int width) {
    int f = blockIdx.x * blockDim.x + threadIdx.x, s = blockIdx.y, length = lengths[s];
    const __half *token = tokens + static_cast<size_t>(s) * steps * width + f;
    float sum = 0.f;
#pragma unroll 4
    for (int t = 0; t < length; ++t) sum += __half2float(token[static_cast<size_t>(t) * width]);
    out[s * width + f] = sum / fmaxf(length, 1e-9f);
}
// Eight features a lane, the tokens dealt out over the eight warps of a block.
__global__ void __launch_bounds__(256) mean_of_tokens_dealt(const uint4 *__restrict__ tokens, const int *__restrict__ lengths, float *__restrict__ out, int steps, int width) {
    __shared__ float partial[8][256];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, s = blockIdx.y, length = lengths[s];
    const uint4 *token = tokens + static_cast<size_t>(s) * steps * (width / 8) + blockIdx.x * 32 + lane;
    float sum[8] = {};
    for (int t = warp; t < length; t += 8) {
        uint4 packed = token[static_cast<size_t>(t) * (width / 8)];
        const __half2 *pair = reinterpret_cast<const __half2 *>(&packed);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float2 two = __half22float2(pair[i]);
            sum[2 * i] += two.x, sum[2 * i + 1] += two.y;
        }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) partial[warp][i * 32 + lane] = sum[i];
    __syncthreads();
    float total = 0.f;
    for (int w = 0; w < 8; ++w) total += partial[w][threadIdx.x];
    out[s * width + (blockIdx.x * 32 + lane) * 8 + warp] = total / fmaxf(length, 1e-9f);
}

Study mean_pooling("mean_pooling_walks_the_padding", "models", 384, "means over the tokens of 384 sentences of 16 to 512 tokens, 1024 half features",
    "sentences are padded to 512 tokens: padding is read and multiplied by a mask of zeros",
    {{"length", "each sentence ends at its own length", {"redundant_loads"}},
        {"dealt", "to its own length, tokens dealt out over eight warps, 16-byte loads", {"redundant_loads", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int steps = 512, width = 1024;
        std::vector<float> mask(n * steps);
        std::vector<int> lengths(n);
        for (int s = 0; s < n; ++s) {
            unsigned h = hash(s + 7);
            lengths[s] = h % 8 ? 16 + (h >> 8) % 180 : 256 + (h >> 8) % 257;
            for (int t = 0; t < steps; ++t) mask[s * steps + t] = t < lengths[s];
        }
        __half *tokens = b.random<__half>(static_cast<size_t>(n) * steps * width);
        float *masked = b.copy(mask), *out = b.output<float>(n * width);
        int *known = b.copy(lengths);
        dim3 threads(width / 256, n);
        return {{"flawed", launch(mean_of_tokens, threads, 256, 0, tokens, masked, out, steps, width)},
            {"length", launch(mean_of_tokens_length, threads, 256, 0, tokens, known, out, steps, width)},
            {"dealt", launch(mean_of_tokens_dealt, threads, 256, 0, (uint4 *)tokens, known, out, steps, width)}};
    });

// --- Adam with moments of eight bits: a code for each of 256 levels, a scale for 256 weights ---

struct Moments {
    unsigned char *first, *second;
    float *first_scale, *second_scale;
};
__device__ __forceinline__ int nearest_code(const float *codes, float value) {
    int low = 0, high = 255;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (codes[middle] <= value) low = middle;
        else high = middle;
    }
    return value - codes[low] <= codes[high] - value ? low : high;
}
__device__ __forceinline__ float block_max(float x) {
    __shared__ float most[8];
    x = warp_max(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) most[threadIdx.x / 32] = x;
    __syncthreads();
    float largest = most[0];
#pragma unroll
    for (int w = 1; w < 8; ++w) largest = fmaxf(largest, most[w]);
    return largest;
}
// `Encode` says how a value in [-1, 1] (first moment) or [0, 1] (second) becomes a code.
template <typename Encode>
__device__ __forceinline__ void adam_step(float *weights, const float *gradients, Moments moments, const float *codes, const float *codes2, Encode encode) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float g = gradients[i];
    float m = codes[moments.first[i]] * moments.first_scale[blockIdx.x], v = codes2[moments.second[i]] * moments.second_scale[blockIdx.x];
    m = 0.9f * m + 0.1f * g, v = 0.999f * v + 0.001f * g * g;
    weights[i] -= 1e-3f * m / (sqrtf(v) + 1e-8f);
    float most = block_max(fabsf(m)), most2 = block_max(v);
    moments.first[i] = encode(m / most, false);
    moments.second[i] = encode(v / most2, true);
    if (threadIdx.x == 0) moments.first_scale[blockIdx.x] = most, moments.second_scale[blockIdx.x] = most2;
}
__global__ void __launch_bounds__(256) adam_halving(float *weights, const float *gradients, Moments moments, const float *codes, const float *codes2) {
    adam_step(weights, gradients, moments, codes, codes2, [=](float x, bool second) { return nearest_code(second ? codes2 : codes, x); });
}
__global__ void __launch_bounds__(256) adam_shared(float *weights, const float *__restrict__ gradients, Moments moments, const float *__restrict__ codes, const float *__restrict__ codes2) {
    __shared__ float near[256], near2[256];
    near[threadIdx.x] = codes[threadIdx.x], near2[threadIdx.x] = codes2[threadIdx.x];
    __syncthreads();
    adam_step(weights, gradients, moments, near, near2, [=](float x, bool second) { return nearest_code(second ? near2 : near, x); });
}
// Levels lie at signed squares: the root tells between which two a value is.
__global__ void __launch_bounds__(256) adam_direct(float *weights, const float *__restrict__ gradients, Moments moments, const float *__restrict__ codes, const float *__restrict__ codes2) {
    adam_step(weights, gradients, moments, codes, codes2, [=](float x, bool second) {
        float root = sqrtf(fabsf(x));
        int low = static_cast<int>(second ? root * 255.f : copysignf(root, x) * 127.5f + 127.5f);
        low = min(max(low, 0), 254);
        const float *table = second ? codes2 : codes;
        return x - table[low] <= table[low + 1] - x ? low : low + 1;
    });
}

Study adam_codes("adam_codes_found_by_halving", "models", 1 << 25, "a step of Adam for 33554432 weights, moments kept as 8-bit codes of 256 levels",
    "each new code is searched among 256 levels in global memory: eight dependent loads a moment",
    {{"shared", "the levels in shared memory", {"memory_latency"}}, {"direct", "a root tells the level, two loads settle it", {"memory_latency", "branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> codes(256), codes2(256);
        for (int i = 0; i < 256; ++i) {
            double s = (i - 127.5) / 127.5, u = i / 255.0;
            codes[i] = static_cast<float>(s * std::abs(s)), codes2[i] = static_cast<float>(u * u);
        }
        float *level = b.copy(codes), *level2 = b.copy(codes2), *gradients = b.random<float>(n, -0.1, 0.1);
        float *weights = b.changed<float>(b.random<float>(n), n);
        Moments moments{b.changed<unsigned char>(b.random<unsigned char>(n, 0, 256), n), b.changed<unsigned char>(b.random<unsigned char>(n, 0, 256), n),
            b.changed<float>(b.random<float>(n / 256, 0.01, 0.1), n / 256), b.changed<float>(b.random<float>(n / 256, 0.001, 0.01), n / 256)};
        b.tolerance = 5e-3;  // a code may be its neighbour where a value lies half way
        return {{"flawed", launch(adam_halving, n / 256, 256, 0, weights, gradients, moments, level, level2)},
            {"shared", launch(adam_shared, n / 256, 256, 0, weights, gradients, moments, level, level2)},
            {"direct", launch(adam_direct, n / 256, 256, 0, weights, gradients, moments, level, level2)}};
    });

// --- the two largest of every four weights, and where they were ---

__device__ __forceinline__ unsigned two_of_four(const __half (&w)[4], __half (&kept)[2]) {
    float size[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) size[i] = fabsf(__half2float(w[i]));
    unsigned places = 0;
    int found = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        int larger = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) larger += j != i && (size[j] > size[i] || (size[j] == size[i] && j < i));
        if (larger < 2) {
            if (found == 0) kept[0] = w[i], places = i;
            else kept[1] = w[i], places |= i << 2;
            ++found;
        }
    }
    return places;
}
__global__ void prune(const __half *weights, __half *kept, unsigned *places, int groups) {
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= groups) return;
    __half w[4], k[2];
    for (int i = 0; i < 4; ++i) w[i] = weights[g * 4 + i];
    unsigned found = two_of_four(w, k);
    kept[g * 2] = k[0], kept[g * 2 + 1] = k[1];
    atomicOr(&places[g / 8], found << (g % 8 * 4));
}
__global__ void prune_shuffles(const __half *__restrict__ weights, __half *__restrict__ kept, unsigned *__restrict__ places, int groups) {
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= groups) return;
    __half w[4], k[2];
    for (int i = 0; i < 4; ++i) w[i] = weights[g * 4 + i];
    unsigned found = two_of_four(w, k) << (g % 8 * 4);
    kept[g * 2] = k[0], kept[g * 2 + 1] = k[1];
    for (int offset = 1; offset < 8; offset *= 2) found |= __shfl_xor_sync(~0u, found, offset);
    if (g % 8 == 0) places[g / 8] = found;
}
// Four groups a thread: 32 bytes in, 16 bytes out, and half a word of places.
__global__ void prune_four(const uint4 *__restrict__ weights, uint4 *__restrict__ kept, unsigned short *__restrict__ places, int fours) {
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= fours) return;
    uint4 in[2] = {weights[f * 2], weights[f * 2 + 1]}, out;
    const __half *w = reinterpret_cast<const __half *>(in);
    __half *o = reinterpret_cast<__half *>(&out);
    unsigned found = 0;
#pragma unroll
    for (int g = 0; g < 4; ++g) {
        __half four[4] = {w[4 * g], w[4 * g + 1], w[4 * g + 2], w[4 * g + 3]}, k[2];
        found |= two_of_four(four, k) << (4 * g);
        o[2 * g] = k[0], o[2 * g + 1] = k[1];
    }
    kept[f] = out, places[f] = found;
}

Study pruning("prune_two_of_four_by_atomic_or", "models", 1 << 24, "the two largest of every four of 67108864 half weights, with their places packed",
    "eight threads put their four bits into one word by atomics",
    {{"shuffles", "the bits of eight lanes gathered by shuffles, one store", {"global_atomics"}},
        {"four", "four groups a thread: no bits to gather, 16-byte accesses", {"global_atomics", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        __half *weights = b.random<__half>(4 * n), *kept = b.output<__half>(2 * n);
        unsigned *places = b.output<unsigned>(n / 8, true);
        b.tolerance = 0.0;
        return {{"flawed", launch(prune, n / 256, 256, 0, weights, kept, places, n)},
            {"shuffles", launch(prune_shuffles, n / 256, 256, 0, weights, kept, places, n)},
            {"four", launch(prune_four, n / 1024, 256, 0, (uint4 *)weights, (uint4 *)kept, (unsigned short *)places, n / 4)}};
    });

// --- deformable attention: four points a head, sampled between pixels ---

constexpr int HEADS = 8, FEATURES = 32, SIDE = 64, POINTS = 4;

__device__ __forceinline__ void corners(float2 at, int (&x)[2], int (&y)[2], float (&wx)[2], float (&wy)[2]) {
    float px = fminf(fmaxf(at.x, 0.f), SIDE - 1.001f), py = fminf(fmaxf(at.y, 0.f), SIDE - 1.001f);
    x[0] = static_cast<int>(px), y[0] = static_cast<int>(py), x[1] = x[0] + 1, y[1] = y[0] + 1;
    wx[1] = px - x[0], wy[1] = py - y[0], wx[0] = 1.f - wx[1], wy[0] = 1.f - wy[1];
}
__global__ void deformable(const float *values, const float2 *locations, const float *weights, float *out, int queries) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int c = t % FEATURES, h = t / FEATURES % HEADS, q = t / (FEATURES * HEADS), image = q / (SIDE * SIDE);
    if (q >= queries) return;
    const float *plane = values + ((image * HEADS + h) * FEATURES + c) * SIDE * SIDE;
    float sum = 0.f;
    for (int p = 0; p < POINTS; ++p) {
        int x[2], y[2];
        float wx[2], wy[2];
        corners(locations[(q * HEADS + h) * POINTS + p], x, y, wx, wy);
        float sampled = 0.f;
        for (int j = 0; j < 2; ++j)
            for (int i = 0; i < 2; ++i) sampled += plane[y[j] * SIDE + x[i]] * wx[i] * wy[j];
        sum += sampled * weights[(q * HEADS + h) * POINTS + p];
    }
    out[t] = sum;
}
__global__ void deformable_last(const float *__restrict__ values, const float2 *__restrict__ locations, const float *__restrict__ weights, float *__restrict__ out, int queries) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int c = t % FEATURES, h = t / FEATURES % HEADS, q = t / (FEATURES * HEADS), image = q / (SIDE * SIDE);
    if (q >= queries) return;
    float sum = 0.f;
    for (int p = 0; p < POINTS; ++p) {
        int x[2], y[2];
        float wx[2], wy[2];
        corners(locations[(q * HEADS + h) * POINTS + p], x, y, wx, wy);
        float sampled = 0.f;
        for (int j = 0; j < 2; ++j)
            for (int i = 0; i < 2; ++i) sampled += values[((image * SIDE * SIDE + y[j] * SIDE + x[i]) * HEADS + h) * FEATURES + c] * wx[i] * wy[j];
        sum += sampled * weights[(q * HEADS + h) * POINTS + p];
    }
    out[t] = sum;
}
// Lanes are neighbouring queries, whose points lie near each other in each plane; four features a thread.
__global__ void deformable_queries(const float *__restrict__ values, const float2 *__restrict__ locations, const float *__restrict__ weights, float4 *__restrict__ out, int queries) {
    int q = blockIdx.x * 32 + threadIdx.x, h = blockIdx.y, c = threadIdx.y * 4, image = q / (SIDE * SIDE);
    const float *plane = values + ((image * HEADS + h) * FEATURES + c) * SIDE * SIDE;
    float sum[4] = {};
#pragma unroll
    for (int p = 0; p < POINTS; ++p) {
        int x[2], y[2];
        float wx[2], wy[2];
        corners(locations[(q * HEADS + h) * POINTS + p], x, y, wx, wy);
        float weight = weights[(q * HEADS + h) * POINTS + p];
#pragma unroll
        for (int k = 0; k < 4; ++k)
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll
                for (int i = 0; i < 2; ++i) sum[k] += plane[k * SIDE * SIDE + y[j] * SIDE + x[i]] * wx[i] * wy[j] * weight;
    }
    out[(q * HEADS + h) * (FEATURES / 4) + threadIdx.y] = {sum[0], sum[1], sum[2], sum[3]};
}

Study deformable_attention("deformable_samples_from_planes", "models", 4, "deformable attention of 4 images of 64 x 64 queries, 8 heads of 32 features, four points each",
    "lanes are features, but values lie in a plane a feature: each lane reads a sector of its own",
    {{"last", "the values with the features last", {"uncoalesced_access"}},
        {"queries", "lanes are neighbouring queries, four features a thread", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        int pixels = SIDE * SIDE, queries = n * pixels, channels = HEADS * FEATURES;
        std::vector<float> planes(static_cast<size_t>(queries) * channels), last(planes.size()), at(2 * queries * HEADS * POINTS);
        for (int image = 0; image < n; ++image)
            for (int c = 0; c < channels; ++c)
                for (int p = 0; p < pixels; ++p) {
                    size_t from = (static_cast<size_t>(image) * channels + c) * pixels + p;
                    last[(static_cast<size_t>(image) * pixels + p) * channels + c] = planes[from] = static_cast<float>(hash(from) % 2001) * 1e-3f - 1.f;
                }
        for (size_t i = 0; i < at.size() / 2; ++i) {
            int q = i / (HEADS * POINTS) % pixels;
            unsigned h = hash(i + 99);
            at[2 * i] = q % SIDE + static_cast<float>(h % 1024) / 128.f - 4.f, at[2 * i + 1] = q / SIDE + static_cast<float>(h / 1024 % 1024) / 128.f - 4.f;
        }
        float *values = b.copy(planes), *turned = b.copy(last), *locations = b.copy(at), *weights = b.random<float>(queries * HEADS * POINTS, 0, 0.5);
        float *out = b.output<float>(static_cast<size_t>(queries) * channels);
        return {{"flawed", launch(deformable, queries * channels / 256, 256, 0, values, (float2 *)locations, weights, out, queries)},
            {"last", launch(deformable_last, queries * channels / 256, 256, 0, turned, (float2 *)locations, weights, out, queries)},
            {"queries", launch(deformable_queries, dim3(queries / 32, HEADS), dim3(32, 8), 0, values, (float2 *)locations, weights, (float4 *)out, queries)}};
    });

// --- Winograd's transform of the input: patches of 4 x 4, two apart, into 16 planes of tiles by channels ---

constexpr int IMAGE = 56, TILES = IMAGE / 2;

__device__ __forceinline__ void winograd(const float *plane, int ty, int tx, float (&v)[16]) {
    float d[4][4];
#pragma unroll
    for (int y = 0; y < 4; ++y)
#pragma unroll
        for (int x = 0; x < 4; ++x) {
            int py = 2 * ty + y - 1, px = 2 * tx + x - 1;
            d[y][x] = py >= 0 && py < IMAGE && px >= 0 && px < IMAGE ? plane[py * IMAGE + px] : 0.f;
        }
#pragma unroll
    for (int x = 0; x < 4; ++x) {
        float a = d[0][x] - d[2][x], b = d[1][x] + d[2][x], c = d[2][x] - d[1][x], e = d[1][x] - d[3][x];
        d[0][x] = a, d[1][x] = b, d[2][x] = c, d[3][x] = e;
    }
#pragma unroll
    for (int y = 0; y < 4; ++y) {
        v[4 * y] = d[y][0] - d[y][2], v[4 * y + 1] = d[y][1] + d[y][2];
        v[4 * y + 2] = d[y][2] - d[y][1], v[4 * y + 3] = d[y][1] - d[y][3];
    }
}
__global__ void winograd_tiles(const float *images, float *out, int tiles, int channels) {
    int tile = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y;
    if (tile >= tiles) return;
    int image = tile / (TILES * TILES), place = tile % (TILES * TILES);
    float v[16];
    winograd(images + (image * channels + c) * IMAGE * IMAGE, place / TILES, place % TILES, v);
    for (int k = 0; k < 16; ++k) out[(k * tiles + tile) * channels + c] = v[k];
}
__global__ void winograd_channels(const float *__restrict__ images, float *__restrict__ out, int tiles, int channels) {
    int c = threadIdx.x, tile = blockIdx.x * blockDim.y + threadIdx.y;
    if (tile >= tiles) return;
    int image = tile / (TILES * TILES), place = tile % (TILES * TILES);
    float v[16];
    winograd(images + (image * channels + c) * IMAGE * IMAGE, place / TILES, place % TILES, v);
#pragma unroll
    for (int k = 0; k < 16; ++k) out[(k * tiles + tile) * channels + c] = v[k];
}
// 32 tiles of 32 channels: read with tiles across the lanes, turned in shared memory, stored with channels across them.
__global__ void __launch_bounds__(256) winograd_turned(const float *__restrict__ images, float *__restrict__ out, int tiles, int channels) {
    __shared__ float turned[4][32][33];
    int first = blockIdx.x * 32, tile = first + threadIdx.x, c0 = blockIdx.y * 32;
    int image = tile / (TILES * TILES), place = tile % (TILES * TILES);
    for (int part = 0; part < 4; ++part) {
        float v[16];
        int c = part * 8 + threadIdx.y;
        winograd(images + (image * channels + c0 + c) * IMAGE * IMAGE, place / TILES, place % TILES, v);
#pragma unroll
        for (int quarter = 0; quarter < 4; ++quarter) {
            __syncthreads();
#pragma unroll
            for (int k = 0; k < 4; ++k) turned[k][threadIdx.x][threadIdx.y] = v[4 * quarter + k];
            __syncthreads();
            for (int i = threadIdx.y * 32 + threadIdx.x; i < 4 * 32 * 8; i += 256) {
                int k = i / 256, t = i / 8 % 32, channel = i % 8;
                out[((4 * quarter + k) * tiles + first + t) * channels + c0 + part * 8 + channel] = turned[k][t][channel];
            }
        }
    }
}

Study winograd_input("winograd_tiles_across_the_lanes", "models", 32, "Winograd's transform of 32 images of 64 x 56 x 56 for convolutions of 3 x 3",
    "lanes are tiles, but the channel is the last index of what is stored: every lane stores into a sector of its own",
    {{"channels", "lanes are channels", {"uncoalesced_access"}}, {"turned", "eight channels of 32 tiles turned in shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        int channels = 64, tiles = n * TILES * TILES;
        float *images = b.random<float>(n * channels * IMAGE * IMAGE), *out = b.output<float>(static_cast<size_t>(16) * tiles * channels);
        return {{"flawed", launch(winograd_tiles, dim3(blocks(tiles, 128), channels), 128, 0, images, out, tiles, channels)},
            {"channels", launch(winograd_channels, blocks(tiles, 4), dim3(64, 4), 0, images, out, tiles, channels)},
            {"turned", launch(winograd_turned, dim3(tiles / 32, channels / 32), dim3(32, 8), 0, images, out, tiles, channels)}};
    });

// --- the gradient of Mish ---

__global__ void mish_gradient(const __half *x, const __half *gradient, __half *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = __half2float(x[i]);
    float t = tanhf(log1pf(expf(value))), s = 1.f / (1.f + expf(-value));
    out[i] = __float2half(__half2float(gradient[i]) * (t + value * s * (1.f - t * t)));
}
// With e = exp(x): tanh(log(1 + e)) is e (e + 2) / (e (e + 2) + 2), the sigmoid e / (1 + e).
__device__ __forceinline__ float mish_slope(float value) {
    float e = __expf(fminf(value, 20.f)), n = e * (e + 2.f);
    float t = __fdividef(n, n + 2.f), s = __fdividef(e, 1.f + e);
    return t + value * s * (1.f - t * t);
}
__global__ void mish_gradient_algebra(const __half *__restrict__ x, const __half *__restrict__ gradient, __half *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __float2half(__half2float(gradient[i]) * mish_slope(__half2float(x[i])));
}
__global__ void mish_gradient_eight(const uint4 *__restrict__ x, const uint4 *__restrict__ gradient, uint4 *__restrict__ out, int eights) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= eights) return;
    uint4 value = x[i], slope = gradient[i];
    __half2 *v = reinterpret_cast<__half2 *>(&value), *g = reinterpret_cast<__half2 *>(&slope);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float2 a = __half22float2(v[k]), c = __half22float2(g[k]);
        g[k] = __floats2half2_rn(c.x * mish_slope(a.x), c.y * mish_slope(a.y));
    }
    out[i] = slope;
}

Study mish("mish_gradient_by_five_functions", "models", 1 << 26, "the gradient of Mish for 67108864 half values",
    "an exponential, a logarithm, a hyperbolic tangent, another exponential and a quotient, all precise",
    {{"algebra", "one fast exponential, two fast quotients", {"expensive_math"}},
        {"eight", "the same, eight values a thread", {"expensive_math", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        __half *x = b.random<__half>(n, -5, 5), *gradient = b.random<__half>(n), *out = b.output<__half>(n);
        b.tolerance = 2e-3;
        return {{"flawed", launch(mish_gradient, n / 256, 256, 0, x, gradient, out, n)}, {"algebra", launch(mish_gradient_algebra, n / 256, 256, 0, x, gradient, out, n)},
            {"eight", launch(mish_gradient_eight, n / 2048, 256, 0, (uint4 *)x, (uint4 *)gradient, (uint4 *)out, n / 8)}};
    });

}  // namespace
