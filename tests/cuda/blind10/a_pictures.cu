// Pictures, video and radio. Each kernel has one weakness and two or three ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- texture compression: 4 x 4 pixels of four bytes become two colours of 16 bits and 16 codes of two bits ---

constexpr int TEXTURE = 4096;

__device__ __forceinline__ unsigned short_colour(int r, int g, int b) { return (r >> 3) << 11 | (g >> 2) << 5 | b >> 3; }
// Where a colour lies between the lowest and the highest of its block, in thirds, as a code of two bits.
__device__ __forceinline__ unsigned code_of(int along, int length) {
    int level = (6 * along > length) + (2 * along > length) + (6 * along > 5 * length);
    return level == 0 ? 1u : level == 1 ? 3u : level == 2 ? 2u : 0u;
}
__global__ void compress_blocks(const unsigned char *pixels, uint2 *out) {
    int bx = blockIdx.x * blockDim.x + threadIdx.x, by = blockIdx.y;
    int low[3] = {255, 255, 255}, high[3] = {0, 0, 0};
    for (int y = 0; y < 4; ++y)
        for (int x = 0; x < 4; ++x)
            for (int c = 0; c < 3; ++c) {
                int v = pixels[((by * 4 + y) * TEXTURE + bx * 4 + x) * 4 + c];
                low[c] = min(low[c], v), high[c] = max(high[c], v);
            }
    int dr = high[0] - low[0], dg = high[1] - low[1], db = high[2] - low[2], length = dr * dr + dg * dg + db * db;
    unsigned codes = 0;
    for (int y = 0; y < 4; ++y)
        for (int x = 0; x < 4; ++x) {
            const unsigned char *p = pixels + ((by * 4 + y) * TEXTURE + bx * 4 + x) * 4;
            codes |= code_of((p[0] - low[0]) * dr + (p[1] - low[1]) * dg + (p[2] - low[2]) * db, length) << 2 * (4 * y + x);
        }
    out[by * (TEXTURE / 4) + bx] = make_uint2(short_colour(high[0], high[1], high[2]) | short_colour(low[0], low[1], low[2]) << 16, codes);
}
// A row of the block is one load of 16 bytes.
__global__ void __launch_bounds__(128) compress_rows(const uint4 *__restrict__ pixels, uint2 *__restrict__ out) {
    int bx = blockIdx.x * 128 + threadIdx.x, by = blockIdx.y;
    unsigned pixel[16], low = ~0u, high = 0;
#pragma unroll
    for (int y = 0; y < 4; ++y) {
        uint4 row = pixels[(by * 4 + y) * (TEXTURE / 4) + bx];
        pixel[4 * y] = row.x, pixel[4 * y + 1] = row.y, pixel[4 * y + 2] = row.z, pixel[4 * y + 3] = row.w;
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) low = __vminu4(low, pixel[i]), high = __vmaxu4(high, pixel[i]);
    int lr = low & 255, lg = low >> 8 & 255, lb = low >> 16 & 255, hr = high & 255, hg = high >> 8 & 255, hb = high >> 16 & 255;
    int dr = hr - lr, dg = hg - lg, db = hb - lb, length = dr * dr + dg * dg + db * db;
    unsigned codes = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i)
        codes |= code_of((static_cast<int>(pixel[i] & 255) - lr) * dr + (static_cast<int>(pixel[i] >> 8 & 255) - lg) * dg + (static_cast<int>(pixel[i] >> 16 & 255) - lb) * db, length) << 2 * i;
    out[by * (TEXTURE / 4) + bx] = make_uint2(short_colour(hr, hg, hb) | short_colour(lr, lg, lb) << 16, codes);
}
// A thread a pixel: 16 lanes are a block, four of each of its rows; 32 lanes read two blocks side by side.
__global__ void __launch_bounds__(256) compress_lanes(const unsigned *__restrict__ pixels, uint2 *__restrict__ out) {
    int warp = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32, by = blockIdx.y, bx = warp * 2 + lane / 4 % 2, y = lane / 8, x = lane % 4;
    unsigned pixel = pixels[(by * 4 + y) * TEXTURE + bx * 4 + x], low = pixel, high = pixel;
    // Lanes of one block differ in bits 0, 1, 3 and 4.
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        int step = k < 2 ? 1 << k : 2 << k;
        low = __vminu4(low, __shfl_xor_sync(~0u, low, step)), high = __vmaxu4(high, __shfl_xor_sync(~0u, high, step));
    }
    int lr = low & 255, lg = low >> 8 & 255, lb = low >> 16 & 255, hr = high & 255, hg = high >> 8 & 255, hb = high >> 16 & 255;
    int dr = hr - lr, dg = hg - lg, db = hb - lb, length = dr * dr + dg * dg + db * db;
    unsigned codes = code_of((static_cast<int>(pixel & 255) - lr) * dr + (static_cast<int>(pixel >> 8 & 255) - lg) * dg + (static_cast<int>(pixel >> 16 & 255) - lb) * db, length) << 2 * (4 * y + x);
#pragma unroll
    for (int k = 0; k < 4; ++k) codes |= __shfl_xor_sync(~0u, codes, k < 2 ? 1 << k : 2 << k);
    if (y == 0 && x == 0) out[by * (TEXTURE / 4) + bx] = make_uint2(short_colour(hr, hg, hb) | short_colour(lr, lg, lb) << 16, codes);
}

Study textures("texture_blocks_byte_by_byte", "graphics", TEXTURE, "a texture of 4096 x 4096 pixels compressed in blocks of 4 x 4",
    "a thread a block reads the three colours of its 16 pixels as single bytes, twice",
    {{"rows", "a row of four pixels a load, colours side by side in a word", {"narrow_access", "uncoalesced_access", "redundant_loads"}},
        {"lanes", "a thread a pixel, extremes by shuffles", {"narrow_access", "uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *pixels = b.random<unsigned char>(4 * n * n, 0, 256);
        uint2 *out = reinterpret_cast<uint2 *>(b.output<unsigned>(n * n / 8));
        b.tolerance = 0;
        return {{"flawed", launch(compress_blocks, dim3(n / 4 / 128, n / 4), 128, 0, pixels, out)},
            {"rows", launch(compress_rows, dim3(n / 4 / 128, n / 4), 128, 0, reinterpret_cast<const uint4 *>(pixels), out)},
            {"lanes", launch(compress_lanes, dim3(n / 4 / 16, n / 4), 256, 0, reinterpret_cast<const unsigned *>(pixels), out)}};
    });

// --- three exposures of one scene to light, by the camera's response ---

__constant__ float RESPONSE[256];

struct Exposures {
    float light = 0.f, weight = 0.f;

    __device__ __forceinline__ void add(int value, float response, float logarithm) {
        float w = min(value, 255 - value) + 1.f;
        light = fmaf(w, response - logarithm, light), weight += w;
    }
};
// Four pixels a thread; `Response` says where the curve is kept.
template <typename Response>
__device__ __forceinline__ void merge_four(const uchar4 *a, const uchar4 *b, const uchar4 *c, float4 *out, int i, float3 times, Response response) {
    uchar4 p = a[i], q = b[i], r = c[i];
    auto one = [&](int x, int y, int z) {
        Exposures e;
        e.add(x, response(x), times.x), e.add(y, response(y), times.y), e.add(z, response(z), times.z);
        return __expf(__fdividef(e.light, e.weight));
    };
    out[i] = make_float4(one(p.x, q.x, r.x), one(p.y, q.y, r.y), one(p.z, q.z, r.z), one(p.w, q.w, r.w));
}
__global__ void merge_exposures(const uchar4 *a, const uchar4 *b, const uchar4 *c, float4 *out, int quads, float3 times) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < quads) merge_four(a, b, c, out, i, times, [](int v) { return RESPONSE[v]; });
}
__global__ void merge_exposures_global(const uchar4 *__restrict__ a, const uchar4 *__restrict__ b, const uchar4 *__restrict__ c, float4 *__restrict__ out, int quads, float3 times,
    const float *__restrict__ response) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < quads) merge_four(a, b, c, out, i, times, [=](int v) { return __ldg(response + v); });
}
__global__ void __launch_bounds__(256) merge_exposures_shared(const uchar4 *__restrict__ a, const uchar4 *__restrict__ b, const uchar4 *__restrict__ c, float4 *__restrict__ out, int quads, float3 times,
    const float *__restrict__ response) {
    __shared__ float held[256];
    held[threadIdx.x] = response[threadIdx.x];
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < quads; i += gridDim.x * 256) merge_four(a, b, c, out, i, times, [&](int v) { return held[v]; });
}
// A copy for each lane: no two lanes want one bank.
__global__ void __launch_bounds__(1024) merge_exposures_copies(const uchar4 *__restrict__ a, const uchar4 *__restrict__ b, const uchar4 *__restrict__ c, float4 *__restrict__ out, int quads, float3 times,
    const float *__restrict__ response) {
    __shared__ float held[256 * 32];
    for (int i = threadIdx.x; i < 256 * 32; i += 1024) held[i] = response[i / 32];
    __syncthreads();
    const float *mine = held + threadIdx.x % 32;
    for (int i = blockIdx.x * 1024 + threadIdx.x; i < quads; i += gridDim.x * 1024) merge_four(a, b, c, out, i, times, [=](int v) { return mine[v * 32]; });
}

Study exposures("exposures_response_in_constants", "photography", 1 << 25, "three exposures of 33554432 values merged by the camera's response curve",
    "the response curve is in constant memory, lanes want up to 32 places of it",
    {{"global", "the curve in global memory, from L1", {"constant_divergence"}}, {"shared", "the curve in shared memory, blocks stay", {"constant_divergence"}},
        {"copies", "a copy of the curve in shared memory for each lane", {"constant_divergence", "shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> curve(256);
        for (int v = 0; v < 256; ++v) curve[v] = 2.2f * std::log((v + 1) / 256.f) + 0.1f * std::sin(0.05f * v);
        CHECK(cudaMemcpyToSymbol(RESPONSE, curve.data(), sizeof RESPONSE));
        const float *response = b.copy(curve);
        const uchar4 *in[3];
        for (const uchar4 *&one : in) one = reinterpret_cast<const uchar4 *>(b.random<unsigned char>(n, 0, 256));
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n));
        float3 times = make_float3(-3.f, -1.f, 1.f);
        int quads = n / 4, all = multiprocessors();
        return {{"flawed", launch(merge_exposures, blocks(quads, 256), 256, 0, in[0], in[1], in[2], out, quads, times)},
            {"global", launch(merge_exposures_global, blocks(quads, 256), 256, 0, in[0], in[1], in[2], out, quads, times, response)},
            {"shared", launch(merge_exposures_shared, 8 * all, 256, 0, in[0], in[1], in[2], out, quads, times, response)},
            {"copies", launch(merge_exposures_copies, 2 * all, 1024, 0, in[0], in[1], in[2], out, quads, times, response)}};
    });

// --- inverse transform of video coding: blocks of 32 x 32 integers ---

constexpr int SIDE = 32, AREA = SIDE * SIDE;

// out[j][lane] = sum over k of matrix[k][j] in[k][lane], for four j a thread; strides tell how planes lie.
template <int in_step, int in_lane, int out_step, int out_lane>
__device__ __forceinline__ void transform_once(const int *in, int *out, const int *matrix, int shift) {
    int lane = threadIdx.x % 32, first = threadIdx.x / 32, sum[4] = {};
#pragma unroll 8
    for (int k = 0; k < SIDE; ++k) {
        int value = in[k * in_step + lane * in_lane];
#pragma unroll
        for (int q = 0; q < 4; ++q) sum[q] += matrix[k * SIDE + first + 8 * q] * value;
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) out[(first + 8 * q) * out_step + lane * out_lane] = (sum[q] + (1 << (shift - 1))) >> shift;
}
// Columns, then rows by the same routine with steps exchanged; `pitch` words a row.
template <int pitch>
__global__ void __launch_bounds__(256) inverse_transform(const short *coefficients, const int *matrix, int *out) {
    __shared__ int m[AREA], tile[SIDE * pitch], half_way[SIDE * pitch];
    size_t first = static_cast<size_t>(blockIdx.x) * AREA;
    for (int i = threadIdx.x; i < AREA; i += 256) m[i] = matrix[i], tile[i / SIDE * pitch + i % SIDE] = coefficients[first + i];
    __syncthreads();
    transform_once<pitch, 1, pitch, 1>(tile, half_way, m, 7);
    __syncthreads();
    transform_once<1, pitch, 1, pitch>(half_way, tile, m, 12);
    __syncthreads();
    for (int i = threadIdx.x; i < AREA; i += 256) out[first + i] = tile[i / SIDE * pitch + i % SIDE];
}
// In the second half a lane is a column, too: the row's value is the same for all lanes, the matrix's differ.
__global__ void __launch_bounds__(256) inverse_transform_columns(const short *__restrict__ coefficients, const int *__restrict__ matrix, int *__restrict__ out) {
    __shared__ int m[AREA], tile[AREA], half_way[AREA];
    size_t first = static_cast<size_t>(blockIdx.x) * AREA;
    for (int i = threadIdx.x; i < AREA; i += 256) m[i] = matrix[i], tile[i] = coefficients[first + i];
    __syncthreads();
    transform_once<SIDE, 1, SIDE, 1>(tile, half_way, m, 7);
    __syncthreads();
    int lane = threadIdx.x % 32, row = threadIdx.x / 32, sum[4] = {};
#pragma unroll 8
    for (int k = 0; k < SIDE; ++k) {
        int weight = m[k * SIDE + lane];
#pragma unroll
        for (int q = 0; q < 4; ++q) sum[q] += weight * half_way[(row + 8 * q) * SIDE + k];
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) out[first + (row + 8 * q) * SIDE + lane] = (sum[q] + (1 << 11)) >> 12;
}
__global__ void draw_coefficients(short *to, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = static_cast<int>(hash(i ^ 0x68bc21ebu) >> 20) - 2048;
}

Study transform("inverse_transform_rows_collide", "video", 16384, "inverse transforms of 16384 blocks of 32 x 32 coefficients of video",
    "for the rows the routine of the columns runs with steps exchanged: all lanes read one bank",
    {{"padded", "rows of 33 words", {"shared_bank_conflicts"}}, {"columns", "a lane is a column in both halves", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> cosines(AREA);
        for (int k = 0; k < SIDE; ++k)
            for (int j = 0; j < SIDE; ++j) cosines[k * SIDE + j] = static_cast<int>(std::lround((k ? 90.51 : 64.0) * std::cos((2 * j + 1) * k * 3.14159265358979 / 64)));
        const int *matrix = b.copy(cosines);
        short *coefficients = b.allocate<short>(n * AREA);
        launch(draw_coefficients, blocks(n * AREA, 256), 256, 0, coefficients, n * AREA)();
        CHECK_LAUNCH();
        int *out = b.output<int>(n * AREA);
        b.tolerance = 0;
        return {{"flawed", launch(inverse_transform<SIDE>, n, 256, 0, coefficients, matrix, out)}, {"padded", launch(inverse_transform<SIDE + 1>, n, 256, 0, coefficients, matrix, out)},
            {"columns", launch(inverse_transform_columns, n, 256, 0, coefficients, matrix, out)}};
    });

// --- messages from the checks of a code to its bits: sign and least magnitude of all others, for 256 words at once ---

constexpr int EDGES = 8, CODEWORDS = 256;

__global__ void check_messages(const float *in, float *out) {
    int edge = blockIdx.x, word = threadIdx.x, check = edge / EDGES;
    float sign = 1.f, least = 1e30f;
    for (int e = check * EDGES; e < (check + 1) * EDGES; ++e) {
        if (e == edge) continue;
        float message = in[e * CODEWORDS + word];
        if (message < 0.f) sign = -sign;
        least = fminf(least, fabsf(message));
    }
    out[edge * CODEWORDS + word] = 0.75f * sign * least;
}
// What the eight messages of a check say to each: the second least to the one that is least, the least to the others.
__device__ __forceinline__ void answer(float *message) {
    float least = 1e30f, second = 1e30f;
    unsigned signs = 0;
#pragma unroll
    for (int e = 0; e < EDGES; ++e) {
        float size = fabsf(message[e]);
        second = fminf(second, fmaxf(least, size)), least = fminf(least, size);
        signs ^= __float_as_uint(message[e]) & 0x80000000u;
    }
#pragma unroll
    for (int e = 0; e < EDGES; ++e)
        message[e] = __uint_as_float(__float_as_uint(0.75f * (fabsf(message[e]) == least ? second : least)) | (signs ^ (__float_as_uint(message[e]) & 0x80000000u)));
}
// A thread a check.
__global__ void __launch_bounds__(CODEWORDS) check_messages_once(const float *__restrict__ in, float *__restrict__ out) {
    size_t first = static_cast<size_t>(blockIdx.x) * EDGES * CODEWORDS + threadIdx.x;
    float message[EDGES];
#pragma unroll
    for (int e = 0; e < EDGES; ++e) message[e] = in[first + e * CODEWORDS];
    answer(message);
#pragma unroll
    for (int e = 0; e < EDGES; ++e) out[first + e * CODEWORDS] = message[e];
}
// The check's messages in shared memory, a thread an edge and word as before.
__global__ void __launch_bounds__(EDGES * 64) check_messages_shared(const float *__restrict__ in, float *__restrict__ out) {
    __shared__ float held[EDGES][64];
    int edge = threadIdx.x / 64, word = threadIdx.x % 64;
    size_t at = (static_cast<size_t>(blockIdx.x) * EDGES + edge) * CODEWORDS + blockIdx.y * 64 + word;
    held[edge][word] = in[at];
    __syncthreads();
    float sign = 1.f, least = 1e30f;
#pragma unroll
    for (int e = 0; e < EDGES; ++e) {
        float message = held[e][word];
        if (e != edge) sign = message < 0.f ? -sign : sign, least = fminf(least, fabsf(message));
    }
    out[at] = 0.75f * sign * least;
}
// Two words a thread.
__global__ void __launch_bounds__(CODEWORDS / 2) check_messages_pairs(const float2 *__restrict__ in, float2 *__restrict__ out) {
    size_t first = static_cast<size_t>(blockIdx.x) * EDGES * CODEWORDS / 2 + threadIdx.x;
    float left[EDGES], right[EDGES];
#pragma unroll
    for (int e = 0; e < EDGES; ++e) {
        float2 both = in[first + e * (CODEWORDS / 2)];
        left[e] = both.x, right[e] = both.y;
    }
    answer(left), answer(right);
#pragma unroll
    for (int e = 0; e < EDGES; ++e) out[first + e * (CODEWORDS / 2)] = make_float2(left[e], right[e]);
}

Study checks("check_messages_edge_each", "communications", 16384, "messages of 16384 checks of eight bits each, 256 words of a code at once",
    "a thread an edge reads the seven other messages of its check",
    {{"once", "a thread a check, the two least magnitudes", {"redundant_loads"}}, {"shared", "the check's messages in shared memory", {"redundant_loads"}},
        {"pairs", "a thread a check and two words", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *in = b.random<float>(n * EDGES * CODEWORDS, -8, 8);
        float *out = b.output<float>(n * EDGES * CODEWORDS);
        return {{"flawed", launch(check_messages, n * EDGES, CODEWORDS, 0, in, out)}, {"once", launch(check_messages_once, n, CODEWORDS, 0, in, out)},
            {"shared", launch(check_messages_shared, dim3(n, CODEWORDS / 64), EDGES * 64, 0, in, out)},
            {"pairs", launch(check_messages_pairs, n, CODEWORDS / 2, 0, reinterpret_cast<const float2 *>(in), reinterpret_cast<float2 *>(out))}};
    });

// --- soft bits of received symbols: six for each of a square of 64 points ---

constexpr int BITS = 6, POINTS = 1 << BITS;

__constant__ float2 CONSTELLATION[POINTS];

__global__ void soft_bits(const float2 *symbols, float *out, int count, int bits, float noise) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    for (int k = 0; k < bits; ++k) {
        float zero = 1e30f, one = 1e30f;
        for (int p = 0; p < 1 << bits; ++p) {
            float dx = symbols[i].x - CONSTELLATION[p].x, dy = symbols[i].y - CONSTELLATION[p].y, distance = dx * dx + dy * dy;
            if (p >> k & 1) one = fminf(one, distance);
            else zero = fminf(zero, distance);
        }
        out[k * count + i] = (one - zero) / noise;
    }
}
// Each distance once, for all six bits.
__global__ void soft_bits_once(const float2 *__restrict__ symbols, float *__restrict__ out, int count, float quality) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float2 symbol = symbols[i];
    float zero[BITS], one[BITS];
#pragma unroll
    for (int k = 0; k < BITS; ++k) zero[k] = one[k] = 1e30f;
#pragma unroll
    for (int p = 0; p < POINTS; ++p) {
        float dx = symbol.x - CONSTELLATION[p].x, dy = symbol.y - CONSTELLATION[p].y, distance = fmaf(dx, dx, dy * dy);
#pragma unroll
        for (int k = 0; k < BITS; ++k)
            if (p >> k & 1) one[k] = fminf(one[k], distance);
            else zero[k] = fminf(zero[k], distance);
    }
#pragma unroll
    for (int k = 0; k < BITS; ++k) out[k * count + i] = (one[k] - zero[k]) * quality;
}
// Points are a square: three bits depend on x alone, three on y; what the other axis adds cancels out.
__device__ __forceinline__ void soft_axis(float value, const float *levels, float *soft) {
    float zero[BITS / 2], one[BITS / 2];
#pragma unroll
    for (int k = 0; k < BITS / 2; ++k) zero[k] = one[k] = 1e30f;
#pragma unroll
    for (int p = 0; p < 8; ++p) {
        float distance = (value - levels[p]) * (value - levels[p]);
#pragma unroll
        for (int k = 0; k < BITS / 2; ++k)
            if (p >> k & 1) one[k] = fminf(one[k], distance);
            else zero[k] = fminf(zero[k], distance);
    }
#pragma unroll
    for (int k = 0; k < BITS / 2; ++k) soft[k] = one[k] - zero[k];
}
__global__ void soft_bits_axes(const float2 *__restrict__ symbols, float *__restrict__ out, int count, float quality) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float2 symbol = symbols[i];
    float levels[8], soft[BITS];
    // The low three bits of a point's number are its place along x, the high ones along y.
#pragma unroll
    for (int p = 0; p < 8; ++p) levels[p] = CONSTELLATION[p].x;
    soft_axis(symbol.x, levels, soft), soft_axis(symbol.y, levels, soft + BITS / 2);
#pragma unroll
    for (int k = 0; k < BITS; ++k) out[k * count + i] = soft[k] * quality;
}

Study demapper("soft_bits_all_points_for_each_bit", "communications", 1 << 22, "six soft bits of each of 4194304 symbols of 64 points",
    "the distances to all 64 points are computed again for each bit",
    {{"once", "each distance once, all loops unrolled", {"expensive_math", "redundant_loads"}}, {"axes", "bits of x and of y by eight levels each", {"expensive_math", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float2> points(POINTS);
        auto level = [](int code) { return (2 * (code ^ code >> 1 ^ code >> 2) - 7) / 6.48074f; };
        for (int p = 0; p < POINTS; ++p) points[p] = make_float2(level(p % 8), level(p / 8));
        CHECK(cudaMemcpyToSymbol(CONSTELLATION, points.data(), sizeof CONSTELLATION));
        const float2 *symbols = reinterpret_cast<const float2 *>(b.random<float>(2 * n, -1.3, 1.3));
        float *out = b.output<float>(n * BITS), noise = 0.05f;
        return {{"flawed", launch(soft_bits, blocks(n, 256), 256, 0, symbols, out, n, BITS, noise)}, {"once", launch(soft_bits_once, blocks(n, 256), 256, 0, symbols, out, n, 1.f / noise)},
            {"axes", launch(soft_bits_axes, blocks(n, 256), 256, 0, symbols, out, n, 1.f / noise)}};
    });

// --- sound: currents of three phases to the turning frame of a motor, four samples a thread ---

__device__ __forceinline__ float2 park(float a, float b, float c, float angle) {
    float alpha = (2.f * a - b - c) * (1.f / 3.f), beta = (b - c) * 0.57735027f, s, k;
    __sincosf(angle, &s, &k);
    return make_float2(fmaf(alpha, k, beta * s), fmaf(beta, k, -alpha * s));
}
__global__ void __launch_bounds__(256) motor_frame(const float4 *__restrict__ a, const float4 *__restrict__ b, const float4 *__restrict__ c, const float4 *__restrict__ angle, float4 *__restrict__ direct,
    float4 *__restrict__ quadrature, int quads) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= quads) return;
    float4 p = a[i], q = b[i], r = c[i], t = angle[i];
    float2 w = park(p.x, q.x, r.x, t.x), x = park(p.y, q.y, r.y, t.y), y = park(p.z, q.z, r.z, t.z), z = park(p.w, q.w, r.w, t.w);
    direct[i] = make_float4(w.x, x.x, y.x, z.x), quadrature[i] = make_float4(w.y, x.y, y.y, z.y);
}

Study motor("sound_three_phases", "control", 1 << 25, "33554432 samples of three phases to a turning frame", "", {},
    [](Buffers &b, long n) -> Sides {
        const float4 *in[3];
        for (const float4 *&one : in) one = reinterpret_cast<const float4 *>(b.random<float>(n));
        const float4 *angle = reinterpret_cast<const float4 *>(b.random<float>(n, -3, 3));
        float4 *direct = reinterpret_cast<float4 *>(b.output<float>(n)), *quadrature = reinterpret_cast<float4 *>(b.output<float>(n));
        return {{"sound", launch(motor_frame, blocks(n / 4, 256), 256, 0, in[0], in[1], in[2], angle, direct, quadrature, n / 4)}};
    });

}  // namespace
