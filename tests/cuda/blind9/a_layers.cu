// Layers written by hand: products of experts, correlations of features, quantised rows, upsampled volumes. Each kernel
// has one weakness and two or three ways out.
#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- a product for each expert of a mixture: tokens sorted by expert, every expert with its own weights ---

constexpr int DEPTH = 256, WIDTH = 256, TILE = 64, STEP = 16;

struct Experts {
    const float *tokens;   // [token][DEPTH], sorted by expert
    const float *weights;  // [expert][DEPTH][WIDTH]
    const int *first;      // first token of each expert, and the number of all tokens
    float *out;            // [token][WIDTH]
};
// 64 tokens of one expert times 64 columns by 256 threads, four by four results each.
__device__ __forceinline__ void expert_tile(const Experts &e, int expert, int token, int end, int column) {
    __shared__ __align__(16) float x[STEP][TILE + 4], w[STEP][TILE];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = threadIdx.x / 4, part = threadIdx.x % 4 * 4;
    const float *weights = e.weights + static_cast<size_t>(expert) * DEPTH * WIDTH + column;
    float sum[4][4] = {};
    for (int k = 0; k < DEPTH; k += STEP) {
        float4 read = make_float4(0.f, 0.f, 0.f, 0.f);
        if (token + row < end) read = *reinterpret_cast<const float4 *>(e.tokens + static_cast<size_t>(token + row) * DEPTH + k + part);
        float4 weight = *reinterpret_cast<const float4 *>(weights + (k + ty) * WIDTH + 4 * tx);
        x[part][row] = read.x, x[part + 1][row] = read.y, x[part + 2][row] = read.z, x[part + 3][row] = read.w;
        *reinterpret_cast<float4 *>(&w[ty][4 * tx]) = weight;
        __syncthreads();
#pragma unroll
        for (int s = 0; s < STEP; ++s) {
            float4 a = *reinterpret_cast<const float4 *>(&x[s][4 * ty]), b = *reinterpret_cast<const float4 *>(&w[s][4 * tx]);
            const float left[4] = {a.x, a.y, a.z, a.w}, right[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
            for (int r = 0; r < 4; ++r)
#pragma unroll
                for (int c = 0; c < 4; ++c) sum[r][c] = fmaf(left[r], right[c], sum[r][c]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 4; ++r)
        if (token + 4 * ty + r < end)
            *reinterpret_cast<float4 *>(e.out + static_cast<size_t>(token + 4 * ty + r) * WIDTH + column + 4 * tx) = make_float4(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
}
// A block an expert and 64 columns: through all of its tokens.
__global__ void __launch_bounds__(256) expert_products(Experts e) {
    int expert = blockIdx.y, end = e.first[expert + 1];
    for (int token = e.first[expert]; token < end; token += TILE) expert_tile(e, expert, token, end, blockIdx.x * TILE);
}
// Eight blocks share an expert's tokens.
__global__ void __launch_bounds__(256) expert_products_shared_out(Experts e) {
    int expert = blockIdx.y, end = e.first[expert + 1];
    for (int token = e.first[expert] + blockIdx.z * TILE; token < end; token += TILE * gridDim.z) expert_tile(e, expert, token, end, blockIdx.x * TILE);
}
// A block a tile, from the table that the sort by experts leaves: x the expert, y its tile's first token.
__global__ void __launch_bounds__(256) expert_products_by_table(Experts e, const int2 *__restrict__ table) {
    int2 tile = table[blockIdx.y];
    expert_tile(e, tile.x, tile.y, e.first[tile.x + 1], blockIdx.x * TILE);
}

Study experts("expert_products_a_block_for_all_tokens", "models", 16384, "16384 tokens of width 256 times the weights of 64 experts, which draw between 90 and 1100 tokens",
    "a block walks through all tokens of its expert: the busiest expert has four times the mean",
    {{"by_table", "a block for each 64 tokens, from a table", {"workload_imbalance", "small_grid"}},
        {"shared_out", "eight blocks an expert", {"workload_imbalance", "small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = 64;
        double all = 0;
        auto share = [](int e) { return 1.0 / (e * 37 % 64 + 6); };  // in no order
        for (int e = 0; e < count; ++e) all += share(e);
        std::vector<int> first(count + 1, 0);
        std::vector<int2> table;
        double before = 0;
        for (int e = 0; e < count; ++e) {
            before += share(e);
            first[e + 1] = e + 1 == count ? static_cast<int>(n) : static_cast<int>(n * before / all);
            for (int token = first[e]; token < first[e + 1]; token += TILE) table.push_back(make_int2(e, token));
        }
        Experts e{b.random<float>(n * DEPTH), b.random<float>(count * DEPTH * WIDTH), b.copy(first), b.output<float>(n * WIDTH)};
        const int2 *tiles = b.copy(table);
        return {{"flawed", launch(expert_products, dim3(WIDTH / TILE, count), 256, 0, e)},
            {"by_table", launch(expert_products_by_table, dim3(WIDTH / TILE, static_cast<unsigned>(table.size())), 256, 0, e, tiles)},
            {"shared_out", launch(expert_products_shared_out, dim3(WIDTH / TILE, count, 8), 256, 0, e)}};
    });

// --- correlations of all pairs of pixels of two frames, from their features in half precision ---

constexpr int FEATURES = 256;

__global__ void __launch_bounds__(256) correlate(const __half *one, const __half *two, float *out, int pixels, float scale) {
    __shared__ __align__(16) float a[32][68], b[32][68];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = threadIdx.x % 64, part = threadIdx.x / 64 * 8;
    size_t frame = static_cast<size_t>(blockIdx.z) * pixels;
    const __half *left = one + (frame + blockIdx.y * 64 + row) * FEATURES + part, *right = two + (frame + blockIdx.x * 64 + row) * FEATURES + part;
    float sum[4][4] = {};
    for (int k = 0; k < FEATURES; k += 32) {
        uint4 p = *reinterpret_cast<const uint4 *>(left + k), q = *reinterpret_cast<const uint4 *>(right + k);
        const __half *from = reinterpret_cast<const __half *>(&p), *and_from = reinterpret_cast<const __half *>(&q);
#pragma unroll
        for (int j = 0; j < 8; ++j) a[part + j][row] = __half2float(from[j]), b[part + j][row] = __half2float(and_from[j]);
        __syncthreads();
#pragma unroll 8
        for (int s = 0; s < 32; ++s) {
            float4 u = *reinterpret_cast<const float4 *>(&a[s][4 * ty]), v = *reinterpret_cast<const float4 *>(&b[s][4 * tx]);
            const float l[4] = {u.x, u.y, u.z, u.w}, r[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(l[i], r[j], sum[i][j]);
        }
        __syncthreads();
    }
    float4 *corner = reinterpret_cast<float4 *>(out) + ((frame + blockIdx.y * 64 + 4 * ty) * pixels + blockIdx.x * 64) / 4 + tx;
#pragma unroll
    for (int i = 0; i < 4; ++i) corner[i * pixels / 4] = make_float4(scale * sum[i][0], scale * sum[i][1], scale * sum[i][2], scale * sum[i][3]);
}
// On tensor cores: warps of DOWN x ACROSS fragments, WARPS_DOWN x WARPS_ACROSS of them.
template <int DOWN, int ACROSS, int WARPS_DOWN, int WARPS_ACROSS>
__global__ void __launch_bounds__(32 * WARPS_DOWN *WARPS_ACROSS) correlate_tensor(const __half *__restrict__ one, const __half *__restrict__ two, float *__restrict__ out,
    int pixels, float scale) {
    using namespace nvcuda::wmma;
    constexpr int HIGH = 16 * DOWN * WARPS_DOWN, WIDE = 16 * ACROSS * WARPS_ACROSS, THREADS = 32 * WARPS_DOWN * WARPS_ACROSS;
    __shared__ __align__(32) __half a[HIGH][40], b[WIDE][40];
    int warp = threadIdx.x / 32, down = warp / WARPS_ACROSS * 16 * DOWN, across = warp % WARPS_ACROSS * 16 * ACROSS;
    size_t frame = static_cast<size_t>(blockIdx.z) * pixels;
    const __half *left = one + (frame + blockIdx.y * HIGH) * FEATURES, *right = two + (frame + blockIdx.x * WIDE) * FEATURES;
    fragment<accumulator, 16, 16, 16, float> sum[DOWN][ACROSS];
#pragma unroll
    for (int i = 0; i < DOWN; ++i)
#pragma unroll
        for (int j = 0; j < ACROSS; ++j) fill_fragment(sum[i][j], 0.f);
    for (int k = 0; k < FEATURES; k += 32) {
        for (int t = threadIdx.x; t < HIGH * 4; t += THREADS) *reinterpret_cast<uint4 *>(&a[t / 4][t % 4 * 8]) = *reinterpret_cast<const uint4 *>(left + t / 4 * FEATURES + k + t % 4 * 8);
        for (int t = threadIdx.x; t < WIDE * 4; t += THREADS) *reinterpret_cast<uint4 *>(&b[t / 4][t % 4 * 8]) = *reinterpret_cast<const uint4 *>(right + t / 4 * FEATURES + k + t % 4 * 8);
        __syncthreads();
#pragma unroll
        for (int s = 0; s < 32; s += 16) {
            fragment<matrix_a, 16, 16, 16, __half, row_major> u[DOWN];
#pragma unroll
            for (int i = 0; i < DOWN; ++i) load_matrix_sync(u[i], &a[down + 16 * i][s], 40);
#pragma unroll
            for (int j = 0; j < ACROSS; ++j) {
                fragment<matrix_b, 16, 16, 16, __half, col_major> v;
                load_matrix_sync(v, &b[across + 16 * j][s], 40);
#pragma unroll
                for (int i = 0; i < DOWN; ++i) mma_sync(sum[i][j], u[i], v, sum[i][j]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < DOWN; ++i)
#pragma unroll
        for (int j = 0; j < ACROSS; ++j) {
#pragma unroll
            for (int t = 0; t < sum[i][j].num_elements; ++t) sum[i][j].x[t] *= scale;
            store_matrix_sync(out + (frame + blockIdx.y * HIGH + down + 16 * i) * pixels + blockIdx.x * WIDE + across + 16 * j, sum[i][j], pixels, mem_row_major);
        }
}

Study correlations("all_pairs_correlation_half_on_fma", "vision", 4, "correlations of all pairs of 2048 pixels of two frames with 256 features in half, four times",
    "halves are turned into floats in shared memory and multiplied on the FMA pipe",
    {{"tensor", "tensor cores with the same tiles of 64 x 64", {"tensor_cores_idle", "shared_memory_bandwidth"}},
        {"wide", "tensor cores with tiles of 128 x 128", {"tensor_cores_idle", "shared_memory_bandwidth", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int pixels = 2048;
        const __half *one = b.random<__half>(n * pixels * FEATURES), *two = b.random<__half>(n * pixels * FEATURES);
        float *out = b.output<float>(n * pixels * pixels);
        b.tolerance = 1e-3;
        unsigned narrow = pixels / 64, wide = pixels / 128, frames = n;
        return {{"flawed", launch(correlate, dim3(narrow, narrow, frames), 256, 0, one, two, out, pixels, 0.0625f)},
            {"tensor", launch(correlate_tensor<1, 2, 4, 2>, dim3(narrow, narrow, frames), 256, 0, one, two, out, pixels, 0.0625f)},
            {"wide", launch(correlate_tensor<2, 4, 4, 2>, dim3(wide, wide, frames), 256, 0, one, two, out, pixels, 0.0625f)}};
    });

// --- rows of activations to int8, each with a scale from its largest value ---

constexpr int ROW = 14336;

template <int THREADS>
__device__ __forceinline__ float largest_of_block(float x) {
    __shared__ float of_warp[THREADS / 32];
    x = warp_max(x);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
    __syncthreads();
    x = of_warp[threadIdx.x % (THREADS / 32)];
    return warp_max(x);
}
__device__ __forceinline__ signed char rounded(float x, float inverse) { return static_cast<signed char>(__float2int_rn(x * inverse)); }

// The row stays in shared memory as floats between the search for the largest and the rounding.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) quantise_rows(const __half2 *in, char2 *out, float *scales) {
    extern __shared__ float2 kept[];
    size_t first = static_cast<size_t>(blockIdx.x) * (ROW / 2);
    float largest = 1e-6f;
    for (int i = threadIdx.x; i < ROW / 2; i += THREADS) {
        float2 x = __half22float2(in[first + i]);
        kept[i] = x;
        largest = fmaxf(largest, fmaxf(fabsf(x.x), fabsf(x.y)));
    }
    largest = largest_of_block<THREADS>(largest);
    float inverse = 127.f / largest;
    for (int i = threadIdx.x; i < ROW / 2; i += THREADS) {
        float2 x = kept[i];
        out[first + i] = make_char2(rounded(x.x, inverse), rounded(x.y, inverse));
    }
    if (threadIdx.x == 0) scales[blockIdx.x] = largest / 127.f;
}
// The row stays in registers as it came: seven times eight halves a thread.
__global__ void __launch_bounds__(256) quantise_rows_in_registers(const uint4 *__restrict__ in, uint2 *__restrict__ out, float *__restrict__ scales) {
    size_t first = static_cast<size_t>(blockIdx.x) * (ROW / 8) + threadIdx.x;
    uint4 kept[7];
#pragma unroll
    for (int k = 0; k < 7; ++k) kept[k] = in[first + 256 * k];
    float largest = 1e-6f;
#pragma unroll
    for (int k = 0; k < 7; ++k) {
        const unsigned words[4] = {kept[k].x, kept[k].y, kept[k].z, kept[k].w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float2 x = __half22float2(*reinterpret_cast<const __half2 *>(&words[j]));
            largest = fmaxf(largest, fmaxf(fabsf(x.x), fabsf(x.y)));
        }
    }
    largest = largest_of_block<256>(largest);
    float inverse = 127.f / largest;
#pragma unroll
    for (int k = 0; k < 7; ++k) {
        const unsigned words[4] = {kept[k].x, kept[k].y, kept[k].z, kept[k].w};
        unsigned bytes[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float2 x = __half22float2(*reinterpret_cast<const __half2 *>(&words[j]));
            bytes[j] = static_cast<unsigned char>(rounded(x.x, inverse)) | static_cast<unsigned char>(rounded(x.y, inverse)) << 8;
        }
        out[first + 256 * k] = make_uint2(bytes[0] | bytes[1] << 16, bytes[2] | bytes[3] << 16);
    }
    if (threadIdx.x == 0) scales[blockIdx.x] = largest / 127.f;
}

Study quantised("row_quantisation_keeps_floats_in_shared", "models", 2048, "2048 rows of 14336 halves to int8 with a scale each",
    "a row waits in 56 kilobytes of shared memory for 128 threads: three blocks of four warps a multiprocessor",
    {{"in_registers", "256 threads keep the row as halves in registers, 16 bytes a load", {"low_occupancy", "narrow_access", "memory_latency"}},
        {"more_threads", "512 threads a row", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        const __half *in = b.random<__half>(n * ROW, -4, 4);
        signed char *out = b.output<signed char>(n * ROW);
        float *scales = b.output<float>(n);
        return {{"flawed", launch(quantise_rows<128>, n, 128, ROW * sizeof(float), reinterpret_cast<const __half2 *>(in), reinterpret_cast<char2 *>(out), scales)},
            {"in_registers", launch(quantise_rows_in_registers, n, 256, 0, reinterpret_cast<const uint4 *>(in), reinterpret_cast<uint2 *>(out), scales)},
            {"more_threads", launch(quantise_rows<512>, n, 512, ROW * sizeof(float), reinterpret_cast<const __half2 *>(in), reinterpret_cast<char2 *>(out), scales)}};
    });

// --- volumes of features made twice as large each way, between the eight nearest values ---

struct Shape {
    long channels, depth, height, width;
};
struct Near {
    long low, high;
    float weight;  // of the high one
};
// Which two of `size` values an output of twice as many lies between.
__device__ __forceinline__ Near near(long i, long size) {
    float x = fmaxf(0.5f * (static_cast<float>(i) + 0.5f) - 0.5f, 0.f);
    long low = static_cast<long>(x);
    return {low, min(low + 1, size - 1), x - static_cast<float>(low)};
}
__device__ __forceinline__ float mix(float a, float b, float weight) { return fmaf(weight, b - a, a); }

__global__ void upsample(const float *in, float *out, Shape from, Shape to) {
    long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= to.channels * to.depth * to.height * to.width) return;
    long x = i % to.width, y = i / to.width % to.height, z = i / (to.width * to.height) % to.depth, channel = i / (to.width * to.height * to.depth);
    Near nx = near(x, from.width), ny = near(y, from.height), nz = near(z, from.depth);
    auto at = [&](long c, long d, long h, long w) { return in[((c * from.depth + d) * from.height + h) * from.width + w]; };
    auto line = [&](long d, long h) { return mix(at(channel, d, h, nx.low), at(channel, d, h, nx.high), nx.weight); };
    out[i] = mix(mix(line(nz.low, ny.low), line(nz.low, ny.high), ny.weight), mix(line(nz.high, ny.low), line(nz.high, ny.high), ny.weight), nz.weight);
}
// The grid has the shape of the result: a block 32 x 8 values of one layer.
struct Close {
    int low, high;
    float weight;
};
__device__ __forceinline__ Close close_to(int i, int size) {
    float x = fmaxf(0.5f * (static_cast<float>(i) + 0.5f) - 0.5f, 0.f);
    int low = static_cast<int>(x);
    return {low, min(low + 1, size - 1), x - static_cast<float>(low)};
}
__global__ void __launch_bounds__(256) upsample_by_layers(const float *__restrict__ in, float *__restrict__ out, int depth, int height, int width) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z, channel = blockIdx.z / (2 * depth);
    if (x >= 2 * width || y >= 2 * height) return;
    Close nx = close_to(x, width), ny = close_to(y, height), nz = close_to(z - channel * 2 * depth, depth);
    const float *front = in + static_cast<size_t>(channel * depth + nz.low) * height * width, *back = in + static_cast<size_t>(channel * depth + nz.high) * height * width;
    auto line = [&](const float *layer, int h) { return mix(layer[h * width + nx.low], layer[h * width + nx.high], nx.weight); };
    out[(static_cast<size_t>(z) * 2 * height + y) * 2 * width + x] =
        mix(mix(line(front, ny.low), line(front, ny.high), ny.weight), mix(line(back, ny.low), line(back, ny.high), ny.weight), nz.weight);
}
// Four values a thread, from four columns. The width of the result must be a multiple of four.
__global__ void __launch_bounds__(192) upsample_by_fours(const float *__restrict__ in, float4 *__restrict__ out, int depth, int height, int width) {
    int x = 2 * threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z, channel = blockIdx.z / (2 * depth);
    if (y >= 2 * height) return;
    Close ny = close_to(y, height), nz = close_to(z - channel * 2 * depth, depth);
    const float *front = in + static_cast<size_t>(channel * depth + nz.low) * height * width, *back = in + static_cast<size_t>(channel * depth + nz.high) * height * width;
    const int column[4] = {max(x - 1, 0), x, x + 1, min(x + 2, width - 1)}, low = ny.low * width, high = ny.high * width;
    float v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
        v[k] = mix(mix(front[low + column[k]], front[high + column[k]], ny.weight), mix(back[low + column[k]], back[high + column[k]], ny.weight), nz.weight);
    out[(static_cast<size_t>(z) * 2 * height + y) * (width / 2) + threadIdx.x] = make_float4(mix(v[0], v[1], 0.75f), mix(v[1], v[2], 0.25f), mix(v[1], v[2], 0.75f), mix(v[2], v[3], 0.25f));
}

Study upsampled("volume_upsampling_long_divisions", "models", 16, "16 channels of 32 x 48 x 48 made twice as large each way",
    "the place of each value is found by divisions and remainders of 64 bits",
    {{"by_layers", "a grid of the shape of the result, 32-bit indices", {"integer_arithmetic"}},
        {"by_fours", "four values a thread from four columns, 32-bit indices", {"integer_arithmetic", "redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int depth = 32, height = 48, width = 48;
        const float *in = b.random<float>(n * depth * height * width);
        const long count = 8 * n * depth * height * width;
        float *out = b.output<float>(count);
        Shape from{n, depth, height, width}, to{n, 2 * depth, 2 * height, 2 * width};
        unsigned layers = 2 * depth * n;
        return {{"flawed", launch(upsample, blocks(count, 256), 256, 0, in, out, from, to)},
            {"by_layers", launch(upsample_by_layers, dim3(2 * width / 32, 2 * height / 8, layers), dim3(32, 8), 0, in, out, depth, height, width)},
            {"by_fours", launch(upsample_by_fours, dim3(1, 2 * height / 8, layers), dim3(width / 2, 8), 0, in, reinterpret_cast<float4 *>(out), depth, height, width)}};
    });

}  // namespace
