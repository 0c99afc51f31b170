// Pieces of language models in training and serving. Each kernel has one weakness and two ways out.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "../pairs/pair.cuh"

namespace {

// --- gradient of a bias: sums down the columns of what comes back ---

__global__ void __launch_bounds__(256) bias_gradient(const float *back, float *gradient, int rows, int columns) {
    __shared__ float sums[256];
    int column = blockIdx.x, t = threadIdx.x;
    float sum = 0.f;
    for (int row = t; row < rows; row += 256) sum += back[static_cast<size_t>(row) * columns + column];
    sums[t] = sum;
    __syncthreads();
    for (int stride = 128; stride; stride /= 2) {
        if (t < stride) sums[t] += sums[t + stride];
        __syncthreads();
    }
    if (t == 0) gradient[column] += sums[0];
}
// Lanes along a row; the rows are split over blocks, too.
__global__ void __launch_bounds__(256) bias_gradient_rows(const float *back, float *gradient, int rows, int columns) {
    __shared__ float sums[8][33];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = blockIdx.x * 32 + lane;
    float sum = 0.f;
    if (column < columns)
        for (int row = blockIdx.y * 8 + warp; row < rows; row += 8 * gridDim.y) sum += back[static_cast<size_t>(row) * columns + column];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < columns) {
        for (int other = 1; other < 8; ++other) sum += sums[other][lane];
        atomicAdd(gradient + column, sum);
    }
}
// Four columns a lane.
__global__ void __launch_bounds__(256) bias_gradient_vectors(const float4 *__restrict__ back, float *__restrict__ gradient, int rows, int vectors) {
    __shared__ float4 sums[8][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, at = blockIdx.x * 32 + lane;
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
    if (at < vectors) {
#pragma unroll 4
        for (int row = blockIdx.y * 8 + warp; row < rows; row += 8 * gridDim.y) {
            float4 v = back[static_cast<size_t>(row) * vectors + at];
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
    }
    sums[warp][lane] = sum;
    __syncthreads();
    int column = blockIdx.x * 128 + threadIdx.x;
    if (threadIdx.x < 128 && column < 4 * vectors) {
        float total = 0.f;
        for (int other = 0; other < 8; ++other) total += (&sums[other][threadIdx.x / 4].x)[threadIdx.x % 4];
        atomicAdd(gradient + column, total);
    }
}

Study bias("bias_gradient_block_a_column", "training", 8192, "gradient of a bias of 3072 values: sums over 8192 tokens",
    "a block sums one column: neighbouring lanes read rows 12 KB apart",
    {{"rows", "lanes along the rows, 32 columns and an eighth of all rows a block", {"uncoalesced_access"}},
        {"vectors", "four columns a lane, a thirty-second of all rows a block", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        int columns = 3072;
        float *back = b.random<float>(n * columns, -0.5, 1.0), *gradient = b.output<float>(columns, true);
        return {{"flawed", launch(bias_gradient, columns, 256, 0, back, gradient, n, columns)},
            {"rows", launch(bias_gradient_rows, dim3(blocks(columns, 32), 8), 256, 0, back, gradient, n, columns)},
            {"vectors", launch(bias_gradient_vectors, dim3(blocks(columns, 128), 32), 256, 0, (float4 *)back, gradient, n, columns / 4)}};
    });

// --- attention in single precision, keys and values in shared memory ---

constexpr int FEATURES = 64, PLACES = 512, KEY_TILE = 32, KEYS_AT_ONCE = 8;
constexpr float LOG_SCALE = 0.125f * 1.44269504f;

// A row of a tile every `pitch` floats.
__device__ __forceinline__ void load_tile(float *tile, const float *rows, int pitch) {
    for (int i = threadIdx.x; i < KEY_TILE * FEATURES; i += 128) tile[i / FEATURES * pitch + i % FEATURES] = rows[i];
}
// A thread a query: its row, and the sum of values, in registers. PITCH: of rows in shared memory; 0: `given`, odd against bank conflicts.
template <int PITCH>
__global__ void __launch_bounds__(128) attention(const float *queries, const float *keys, const float *values, float *out, int given) {
    __shared__ __align__(16) float key_tile[KEY_TILE * (FEATURES + 1)], value_tile[KEY_TILE * (FEATURES + 1)];
    const int pitch = PITCH ? PITCH : given;
    size_t head = static_cast<size_t>(blockIdx.y) * PLACES * FEATURES, at = head + (blockIdx.x * 128 + threadIdx.x) * FEATURES;
    float query[FEATURES], mixed[FEATURES], top = -1e30f, total = 0.f;
#pragma unroll
    for (int d = 0; d < FEATURES; ++d) query[d] = queries[at + d] * LOG_SCALE, mixed[d] = 0.f;
    for (int first = 0; first < PLACES; first += KEY_TILE) {
        __syncthreads();
        load_tile(key_tile, keys + head + first * FEATURES, pitch);
        load_tile(value_tile, values + head + first * FEATURES, pitch);
        __syncthreads();
#pragma unroll 1
        for (int j = 0; j < KEY_TILE; j += KEYS_AT_ONCE) {
            float score[KEYS_AT_ONCE], higher = top;
#pragma unroll
            for (int i = 0; i < KEYS_AT_ONCE; ++i) {
                score[i] = 0.f;
#pragma unroll
                for (int d = 0; d < FEATURES; ++d) score[i] += query[d] * key_tile[(j + i) * pitch + d];
                higher = fmaxf(higher, score[i]);
            }
            float old = exp2f(top - higher);
            total *= old, top = higher;
#pragma unroll
            for (int d = 0; d < FEATURES; ++d) mixed[d] *= old;
#pragma unroll
            for (int i = 0; i < KEYS_AT_ONCE; ++i) {
                float weight = exp2f(score[i] - top);
                total += weight;
#pragma unroll
                for (int d = 0; d < FEATURES; ++d) mixed[d] += weight * value_tile[(j + i) * pitch + d];
            }
        }
    }
    float inverse = 1.f / total;
#pragma unroll
    for (int d = 0; d < FEATURES; ++d) out[at + d] = mixed[d] * inverse;
}
// Two lanes share two queries: each has every second four features of both.
__global__ void __launch_bounds__(128) attention_pairs(const float *queries, const float *keys, const float *values, float *out) {
    constexpr int HALF = FEATURES / 2;
    __shared__ __align__(16) float key_tile[KEY_TILE * FEATURES], value_tile[KEY_TILE * FEATURES];
    int side = 4 * (threadIdx.x & 1);
    size_t head = static_cast<size_t>(blockIdx.y) * PLACES * FEATURES, at = head + (blockIdx.x * 128 + (threadIdx.x & ~1)) * FEATURES + side;
    float query[2][HALF], mixed[2][HALF], top[2] = {-1e30f, -1e30f}, total[2] = {0.f, 0.f};
#pragma unroll
    for (int q = 0; q < 2; ++q)
#pragma unroll
        for (int d = 0; d < HALF; ++d) query[q][d] = queries[at + q * FEATURES + d / 4 * 8 + d % 4] * LOG_SCALE, mixed[q][d] = 0.f;
    for (int first = 0; first < PLACES; first += KEY_TILE) {
        __syncthreads();
        load_tile(key_tile, keys + head + first * FEATURES, FEATURES);
        load_tile(value_tile, values + head + first * FEATURES, FEATURES);
        __syncthreads();
#pragma unroll 1
        for (int j = 0; j < KEY_TILE; j += KEYS_AT_ONCE) {
            float score[2][KEYS_AT_ONCE];
#pragma unroll
            for (int i = 0; i < KEYS_AT_ONCE; ++i) {
                score[0][i] = score[1][i] = 0.f;
#pragma unroll
                for (int d = 0; d < HALF; d += 4) {
                    float4 key = *reinterpret_cast<const float4 *>(key_tile + (j + i) * FEATURES + 2 * d + side);
#pragma unroll
                    for (int q = 0; q < 2; ++q) score[q][i] += query[q][d] * key.x + query[q][d + 1] * key.y + query[q][d + 2] * key.z + query[q][d + 3] * key.w;
                }
            }
#pragma unroll
            for (int q = 0; q < 2; ++q) {
                float higher = top[q];
#pragma unroll
                for (int i = 0; i < KEYS_AT_ONCE; ++i) score[q][i] += __shfl_xor_sync(~0u, score[q][i], 1), higher = fmaxf(higher, score[q][i]);
                float old = exp2f(top[q] - higher);
                total[q] *= old, top[q] = higher;
#pragma unroll
                for (int d = 0; d < HALF; ++d) mixed[q][d] *= old;
#pragma unroll
                for (int i = 0; i < KEYS_AT_ONCE; ++i) score[q][i] = exp2f(score[q][i] - higher), total[q] += score[q][i];
            }
#pragma unroll
            for (int i = 0; i < KEYS_AT_ONCE; ++i)
#pragma unroll
                for (int d = 0; d < HALF; d += 4) {
                    float4 value = *reinterpret_cast<const float4 *>(value_tile + (j + i) * FEATURES + 2 * d + side);
#pragma unroll
                    for (int q = 0; q < 2; ++q)
                        mixed[q][d] += score[q][i] * value.x, mixed[q][d + 1] += score[q][i] * value.y, mixed[q][d + 2] += score[q][i] * value.z, mixed[q][d + 3] += score[q][i] * value.w;
                }
        }
    }
#pragma unroll
    for (int q = 0; q < 2; ++q)
#pragma unroll
        for (int d = 0; d < HALF; ++d) out[at + q * FEATURES + d / 4 * 8 + d % 4] = mixed[q][d] / total[q];
}

Study padded_attention("attention_key_rows_padded_to_65", "training", 96, "attention of 512 places, 96 heads of 64 floats, a thread a query",
    "rows in shared memory lie a pitch apart that is given at run time, 65 floats, though all lanes read the same word: a read for each product",
    {{"whole_rows", "rows of 64 floats, as the compiler knows: four are read at a time", {"shared_memory_bandwidth"}},
        {"pairs", "two lanes share two queries: half the features of both each", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        size_t count = static_cast<size_t>(n) * PLACES * FEATURES;
        float *queries = b.random<float>(count), *keys = b.random<float>(count), *values = b.random<float>(count), *out = b.output<float>(count);
        dim3 grid(PLACES / 128, static_cast<unsigned>(n));
        b.tolerance = 1e-3;
        return {{"flawed", launch(attention<0>, grid, 128, 0, queries, keys, values, out, FEATURES + 1)}, {"whole_rows", launch(attention<FEATURES>, grid, 128, 0, queries, keys, values, out, FEATURES)},
            {"pairs", launch(attention_pairs, grid, 128, 0, queries, keys, values, out)}};
    });

// --- largest values of rows and columns, before they become eight bits ---

constexpr int PEAK_ROWS = 64, PEAK_COLUMNS = 1024;  // of a block of 256 threads

__device__ __forceinline__ void raise(float *peak, float value) { atomicMax(reinterpret_cast<int *>(peak), __float_as_int(value)); }  // of positive values
__device__ __forceinline__ float4 sizes_of_four(uint2 packed) {
    float2 a = __half22float2(*reinterpret_cast<__half2 *>(&packed.x)), c = __half22float2(*reinterpret_cast<__half2 *>(&packed.y));
    return make_float4(fabsf(a.x), fabsf(a.y), fabsf(c.x), fabsf(c.y));
}
__global__ void __launch_bounds__(256) peaks(const __half *x, float *rows, float *columns, int width) {
    __shared__ float warps[8];
    int t = threadIdx.x, column = blockIdx.x * PEAK_COLUMNS + 4 * t;
    float4 highest = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int i = 0; i < PEAK_ROWS; ++i) {
        int row = blockIdx.y * PEAK_ROWS + i;
        float4 v = sizes_of_four(*reinterpret_cast<const uint2 *>(x + static_cast<size_t>(row) * width + column));
        highest.x = fmaxf(highest.x, v.x), highest.y = fmaxf(highest.y, v.y), highest.z = fmaxf(highest.z, v.z), highest.w = fmaxf(highest.w, v.w);
        float peak = warp_max(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
        if (t % 32 == 0) warps[t / 32] = peak;
        __syncthreads();
        if (t == 0) {
            for (int warp = 1; warp < 8; ++warp) peak = fmaxf(peak, warps[warp]);
            raise(rows + row, peak);
        }
        __syncthreads();
    }
    raise(columns + column, highest.x), raise(columns + column + 1, highest.y), raise(columns + column + 2, highest.z), raise(columns + column + 3, highest.w);
}
// What the warps found of all rows is put together at the end.
__global__ void __launch_bounds__(256) peaks_at_the_end(const __half *x, float *rows, float *columns, int width) {
    __shared__ float warps[PEAK_ROWS][9];
    int t = threadIdx.x, column = blockIdx.x * PEAK_COLUMNS + 4 * t;
    float4 highest = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 8
    for (int i = 0; i < PEAK_ROWS; ++i) {
        float4 v = sizes_of_four(*reinterpret_cast<const uint2 *>(x + static_cast<size_t>(blockIdx.y * PEAK_ROWS + i) * width + column));
        highest.x = fmaxf(highest.x, v.x), highest.y = fmaxf(highest.y, v.y), highest.z = fmaxf(highest.z, v.z), highest.w = fmaxf(highest.w, v.w);
        float peak = warp_max(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
        if (t % 32 == 0) warps[i][t / 32] = peak;
    }
    __syncthreads();
    if (t < PEAK_ROWS) {
        float peak = warps[t][0];
        for (int warp = 1; warp < 8; ++warp) peak = fmaxf(peak, warps[t][warp]);
        raise(rows + blockIdx.y * PEAK_ROWS + t, peak);
    }
    raise(columns + column, highest.x), raise(columns + column + 1, highest.y), raise(columns + column + 2, highest.z), raise(columns + column + 3, highest.w);
}
// A warp a row: rows need no barrier, columns one.
__global__ void __launch_bounds__(256) peaks_warp_a_row(const __half *__restrict__ x, float *__restrict__ rows, float *__restrict__ columns, int width) {
    __shared__ uint4 found[8][PEAK_COLUMNS / 8];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.x * PEAK_COLUMNS;
    __half2 highest[4][4];
#pragma unroll
    for (int k = 0; k < 16; ++k) highest[k / 4][k % 4] = __float2half2_rn(0.f);
    for (int i = warp; i < PEAK_ROWS; i += 8) {
        int row = blockIdx.y * PEAK_ROWS + i;
        __half2 peak = __float2half2_rn(0.f);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            uint4 eight = *reinterpret_cast<const uint4 *>(x + static_cast<size_t>(row) * width + first + 8 * (k * 32 + lane));
            const __half2 *two = reinterpret_cast<const __half2 *>(&eight);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                __half2 size = __habs2(two[j]);
                highest[k][j] = __hmax2(highest[k][j], size), peak = __hmax2(peak, size);
            }
        }
        float2 both = __half22float2(peak);
        float most = warp_max(fmaxf(both.x, both.y));
        if (lane == 0) raise(rows + row, most);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) found[warp][k * 32 + lane] = *reinterpret_cast<uint4 *>(highest[k]);
    __syncthreads();
    const __half *all = reinterpret_cast<const __half *>(found);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        int column = k * 256 + threadIdx.x;
        float peak = 0.f;
        for (int other = 0; other < 8; ++other) peak = fmaxf(peak, __half2float(all[other * PEAK_COLUMNS + column]));
        raise(columns + first + column, peak);
    }
}

Study absolute_maxima("row_and_column_peaks_two_barriers_a_row", "quantisation", 16384, "largest sizes of the 16384 rows and 4096 columns of a half matrix",
    "two barriers for each row's maximum over the block",
    {{"at_the_end", "the warps' maxima of all rows kept in shared memory, one barrier", {"barriers"}}, {"warp_a_row", "a warp a row, eight values a load", {"barriers", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        int width = 4096;
        __half *x = b.random<__half>(n * width);
        float *rows = b.output<float>(n, true), *columns = b.output<float>(width, true);
        dim3 grid(width / PEAK_COLUMNS, blocks(n, PEAK_ROWS));
        return {{"flawed", launch(peaks, grid, 256, 0, x, rows, columns, width)}, {"at_the_end", launch(peaks_at_the_end, grid, 256, 0, x, rows, columns, width)},
            {"warp_a_row", launch(peaks_warp_a_row, grid, 256, 0, x, rows, columns, width)}};
    });

// --- a step of a causal convolution of four: the last inputs of each channel move up by one ---

struct Convolution {
    const float *x, *weights, *bias;  // weights [channel][4]
    int channels;
};
__device__ __forceinline__ float gated(float v) { return __fdividef(v, 1.f + __expf(-v)); }

__global__ void __launch_bounds__(256) conv_step(Convolution conv, float *states, float *out, int count) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    int channel = i % conv.channels;
    float *state = states + static_cast<size_t>(i) * 4, sum = conv.bias[channel], last[4];
#pragma unroll
    for (int k = 0; k < 3; ++k) last[k] = state[k + 1];
    last[3] = conv.x[i];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        state[k] = last[k];
        sum += last[k] * conv.weights[channel * 4 + k];
    }
    out[i] = gated(sum);
}
__global__ void __launch_bounds__(256) conv_step_vectors(Convolution conv, float4 *__restrict__ states, float *__restrict__ out, int count) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    int channel = i % conv.channels;
    float4 old = states[i], w = reinterpret_cast<const float4 *>(conv.weights)[channel];
    float x = conv.x[i];
    states[i] = make_float4(old.y, old.z, old.w, x);
    out[i] = gated(conv.bias[channel] + old.y * w.x + old.z * w.y + old.w * w.z + x * w.w);
}
// Four lanes a channel, each with one of its inputs.
__global__ void __launch_bounds__(256) conv_step_lanes(Convolution conv, float *__restrict__ states, float *__restrict__ out, int count) {
    int at = blockIdx.x * 256 + threadIdx.x, i = at / 4, tap = at % 4;
    bool inside = i < count;
    int channel = inside ? i % conv.channels : 0;
    float old = inside ? states[at] : 0.f, value = __shfl_down_sync(~0u, old, 1, 4);
    if (inside && tap == 3) value = conv.x[i];
    float sum = value * conv.weights[channel * 4 + tap];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    if (!inside) return;
    states[at] = value;
    if (tap == 0) out[i] = gated(conv.bias[channel] + sum);
}

Study convolution_step("conv_state_moved_up_value_by_value", "serving", 1 << 23, "a step of a causal convolution of four and SiLU, 2048 sequences of 4096 channels, with their last inputs",
    "a thread moves the four inputs of its channel one by one: lanes 16 bytes apart",
    {{"vectors", "four inputs in one load and one store", {"uncoalesced_access", "narrow_access"}}, {"four_lanes", "four lanes a channel, each with one input", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        int channels = 4096;
        Convolution conv{b.random<float>(n), b.random<float>(4 * channels), b.random<float>(channels), channels};
        float *before = b.random<float>(4 * n), *states = b.changed<float>(before, 4 * n), *out = b.output<float>(n);
        return {{"flawed", launch(conv_step, blocks(n, 256), 256, 0, conv, states, out, n)}, {"vectors", launch(conv_step_vectors, blocks(n, 256), 256, 0, conv, (float4 *)states, out, n)},
            {"four_lanes", launch(conv_step_lanes, blocks(4 * n, 256), 256, 0, conv, states, out, n)}};
    });

// --- gates of the tokens that each expert was given ---

constexpr int EXPERTS = 32, SLOTS = 2048, HIDDEN = 1024;

// Eight values a thread of 128.
__device__ __forceinline__ void gate_slot(const uint4 *both, uint4 *out, int expert, int slot) {
    size_t at = static_cast<size_t>(expert) * SLOTS + slot;
    uint4 gate = both[at * (HIDDEN / 4) + threadIdx.x], up = both[at * (HIDDEN / 4) + HIDDEN / 8 + threadIdx.x], made;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float2 g = __half22float2(reinterpret_cast<__half2 *>(&gate)[k]), u = __half22float2(reinterpret_cast<__half2 *>(&up)[k]);
        reinterpret_cast<__half2 *>(&made)[k] = __floats2half2_rn(gated(g.x) * u.x, gated(g.y) * u.y);
    }
    out[at * (HIDDEN / 8) + threadIdx.x] = made;
}
__global__ void __launch_bounds__(128) gates(const uint4 *both, const int *counts, uint4 *out) {
    int expert = blockIdx.x;
    for (int slot = blockIdx.y; slot < counts[expert]; slot += gridDim.y) gate_slot(both, out, expert, slot);
}
__global__ void __launch_bounds__(128) gates_chunks(const uint4 *__restrict__ both, const int *__restrict__ counts, uint4 *__restrict__ out) {
    int expert = blockIdx.y, first = blockIdx.x * 8, end = min(first + 8, counts[expert]);
    for (int slot = first; slot < end; ++slot) gate_slot(both, out, expert, slot);
}
// All tokens in one row, dealt out evenly; starts[e] is how many tokens experts before e have.
__global__ void __launch_bounds__(128) gates_flat(const uint4 *__restrict__ both, const int *__restrict__ starts, uint4 *__restrict__ out) {
    __shared__ int begin[EXPERTS + 1];
    if (threadIdx.x <= EXPERTS) begin[threadIdx.x] = starts[threadIdx.x];
    __syncthreads();
    int expert = 0;
    for (int token = blockIdx.x; token < begin[EXPERTS]; token += gridDim.x) {
        while (token >= begin[expert + 1]) ++expert;
        gate_slot(both, out, expert, token - begin[expert]);
    }
}

Study masked_gates("expert_gates_32_blocks_for_each", "serving", 1, "SiLU gates of 1024 half values for the tokens of 32 experts: 2048 for the three busiest, 24 for most",
    "every expert has 32 blocks, however many tokens it was given",
    {{"chunks", "a block for each eight slots; those without tokens end at once", {"workload_imbalance"}}, {"flat", "all tokens in one row, dealt out over as many blocks as run together", {"workload_imbalance"}}},
    [](Buffers &b, long) -> Sides {
        std::vector<int> counts(EXPERTS), starts(EXPERTS + 1);
        for (int e = 0; e < EXPERTS; ++e) {
            int rank = e * 13 % EXPERTS;
            counts[e] = rank < 3 ? SLOTS : std::max(24, SLOTS >> rank / 2);
            starts[e + 1] = starts[e] + counts[e];
        }
        auto *both = (uint4 *)b.random<__half>(static_cast<size_t>(EXPERTS) * SLOTS * 2 * HIDDEN, -2.0, 2.0);
        auto *out = (uint4 *)b.output<__half>(static_cast<size_t>(EXPERTS) * SLOTS * HIDDEN, true);
        int *given = b.copy(counts), *begin = b.copy(starts);
        b.tolerance = 2e-3;
        return {{"flawed", launch(gates, dim3(EXPERTS, 32), 128, 0, both, given, out)}, {"chunks", launch(gates_chunks, dim3(SLOTS / 8, EXPERTS), 128, 0, both, given, out)},
            {"flat", launch(gates_flat, multiprocessors() * 12, 128, 0, both, begin, out)}};
    });

// --- weights as codes for points of a lattice, for a few tokens ---

constexpr int DEPTH = 4096, TOKENS = 8;

struct Codes {
    const uint32_t *codes;  // two codes of eight weights each: a point's number and eight signs
    const float *scales;    // one for 64 weights
    const uint2 *lattice;   // 256 points of eight bytes
};
struct Sixteen {
    float of[16];
};
__device__ __forceinline__ Sixteen decode(uint32_t codes, float scale, const uint2 *lattice) {
    Sixteen weights;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        uint32_t code = codes >> 16 * half;
        uint2 point = lattice[code & 255];
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            float size = static_cast<float>((k < 4 ? point.x : point.y) >> 8 * (k % 4) & 255);
            weights.of[8 * half + k] = (code >> (8 + k) & 1 ? -scale : scale) * size;
        }
    }
    return weights;
}
// ROWS rows of weights a warp, for TOKENS_EACH tokens.
template <int ROWS, int TOKENS_EACH>
__global__ void __launch_bounds__(128) lattice_product(Codes codes, const __half *x, float *out, int rows) {
    __shared__ uint2 lattice[256];
    for (int i = threadIdx.x; i < 256; i += 128) lattice[i] = codes.lattice[i];
    __syncthreads();
    int lane = threadIdx.x % 32, row = (blockIdx.x * 4 + threadIdx.x / 32) * ROWS, token = blockIdx.y * TOKENS_EACH;
    if (row >= rows) return;
    float sum[ROWS][TOKENS_EACH] = {};
    for (int at = lane; at < DEPTH / 16; at += 32) {
        Sixteen weights[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            weights[r] = decode(codes.codes[static_cast<size_t>(row + r) * (DEPTH / 16) + at], codes.scales[static_cast<size_t>(row + r) * (DEPTH / 64) + at / 4], lattice);
#pragma unroll
        for (int t = 0; t < TOKENS_EACH; ++t) {
            const uint4 *values = reinterpret_cast<const uint4 *>(x + (token + t) * DEPTH + at * 16);
#pragma unroll
            for (int part = 0; part < 2; ++part) {
                uint4 eight = values[part];
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    float2 two = __half22float2(reinterpret_cast<__half2 *>(&eight)[k]);
#pragma unroll
                    for (int r = 0; r < ROWS; ++r) sum[r][t] += weights[r].of[8 * part + 2 * k] * two.x + weights[r].of[8 * part + 2 * k + 1] * two.y;
                }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int t = 0; t < TOKENS_EACH; ++t) {
            float total = warp_sum(sum[r][t]);
            if (lane == 0) out[(token + t) * rows + row + r] = total;
        }
}

Study lattice_codes("lattice_codes_decoded_again_for_each_token", "quantisation", 16384, "product of eight tokens of 4096 half values with 16384 rows of weights, two bits each as points of a lattice",
    "a warp makes one output of one token: codes are loaded and decoded again for each of the eight",
    {{"all_tokens", "a warp decodes a row once for all eight tokens", {"redundant_loads"}}, {"two_rows", "two rows of weights a warp, for all eight tokens", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(61);
        std::vector<uint32_t> codes(n * (DEPTH / 16));
        for (auto &code : codes) code = static_cast<uint32_t>(random());
        std::vector<uint2> points(256);
        for (auto &point : points) {
            const uint32_t sizes[4] = {1, 3, 5, 9};
            point = make_uint2(0, 0);
            for (int k = 0; k < 4; ++k) point.x |= sizes[random() % 4] << 8 * k, point.y |= sizes[random() % 4] << 8 * k;
        }
        Codes all{b.copy(codes), b.random<float>(n * (DEPTH / 64), 0.01, 0.03), b.copy(points)};
        __half *x = b.random<__half>(TOKENS * DEPTH);
        float *out = b.output<float>(TOKENS * n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(lattice_product<1, 1>, dim3(blocks(n, 4), TOKENS), 128, 0, all, x, out, n)}, {"all_tokens", launch(lattice_product<1, TOKENS>, blocks(n, 4), 128, 0, all, x, out, n)},
            {"two_rows", launch(lattice_product<2, TOKENS>, blocks(n, 8), 128, 0, all, x, out, n)}};
    });

// --- how often two tokens follow each other, to learn which to merge ---

constexpr int WORDS = 512, COMMON = 96, POSITIONS_A_BLOCK = 8192;  // the first 96 words are the commonest; 0 parts texts

__global__ void __launch_bounds__(256) count_pairs(const unsigned short *tokens, int *counts, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i + 1 >= n) return;
    int left = tokens[i], right = tokens[i + 1];
    if (left && right) atomicAdd(counts + left * WORDS + right, 1);
}
// Lanes with the same pair add once.
__global__ void __launch_bounds__(256) count_pairs_matched(const unsigned short *__restrict__ tokens, int *__restrict__ counts, int n) {
    int i = blockIdx.x * 256 + threadIdx.x, left = i + 1 < n ? tokens[i] : 0, right = i + 1 < n ? tokens[i + 1] : 0;
    int pair = left && right ? left * WORDS + right : -1;
    unsigned same = __match_any_sync(~0u, pair);
    if (pair >= 0 && __ffs(static_cast<int>(same)) - 1 == static_cast<int>(threadIdx.x % 32)) atomicAdd(counts + pair, __popc(same));
}
// Pairs of common words are counted in shared memory first.
__global__ void __launch_bounds__(256) count_pairs_common(const unsigned short *__restrict__ tokens, int *__restrict__ counts, int n) {
    __shared__ int common[COMMON * COMMON];
    for (int k = threadIdx.x; k < COMMON * COMMON; k += 256) common[k] = 0;
    __syncthreads();
    int end = min(static_cast<int>(blockIdx.x + 1) * POSITIONS_A_BLOCK, n - 1);
    for (int i = blockIdx.x * POSITIONS_A_BLOCK + threadIdx.x; i < end; i += 256) {
        int left = tokens[i], right = tokens[i + 1];
        if (!left || !right) continue;
        if (left < COMMON && right < COMMON) atomicAdd(common + left * COMMON + right, 1);
        else atomicAdd(counts + left * WORDS + right, 1);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < COMMON * COMMON; k += 256)
        if (common[k]) atomicAdd(counts + k / COMMON * WORDS + k % COMMON, common[k]);
}

Study pairs_of_tokens("token_pairs_counted_by_an_atomic_each", "tokenisation", 1 << 23, "how often each two of 512 tokens follow each other among 8388608",
    "an atomic for each position, many of them on the few commonest pairs",
    {{"matched", "lanes with the same pair add once", {"global_atomics"}}, {"common_in_shared", "pairs of the 96 commonest tokens counted in shared memory first", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(67);
        std::vector<double> until(WORDS);
        double sum = 0.0;
        for (int word = 0; word < WORDS; ++word) until[word] = sum += std::pow(word + 3.0, -1.4);
        std::vector<unsigned short> tokens(n), drawn(4096);
        for (int k = 0; k < 4096; ++k) drawn[k] = static_cast<unsigned short>(std::lower_bound(until.begin(), until.end(), (k + 0.5) / 4096 * sum) - until.begin());
        for (auto &token : tokens) token = drawn[random() % 4096];
        unsigned short *all = b.allocate<unsigned short>(n);
        CHECK(cudaMemcpy(all, tokens.data(), n * sizeof *all, cudaMemcpyHostToDevice));
        int *counts = b.output<int>(WORDS * WORDS, true);
        return {{"flawed", launch(count_pairs, blocks(n, 256), 256, 0, all, counts, n)}, {"matched", launch(count_pairs_matched, blocks(n, 256), 256, 0, all, counts, n)},
            {"common_in_shared", launch(count_pairs_common, blocks(n, POSITIONS_A_BLOCK), 256, 0, all, counts, n)}};
    });

// --- four streams of a residual mixed, and what a layer made added to each ---

struct Mixing {
    float streams[4][4], layer[4];
};
__global__ void __launch_bounds__(256) mix_streams(Mixing mixing, const float4 *__restrict__ streams, const float4 *__restrict__ layer, float4 *__restrict__ out, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float4 old[4], made = layer[i];
#pragma unroll
    for (int s = 0; s < 4; ++s) old[s] = streams[static_cast<size_t>(s) * n + i];
#pragma unroll
    for (int s = 0; s < 4; ++s) {
        float w = mixing.layer[s];
        float4 sum = make_float4(w * made.x, w * made.y, w * made.z, w * made.w);
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            float m = mixing.streams[s][r];
            sum.x += m * old[r].x, sum.y += m * old[r].y, sum.z += m * old[r].z, sum.w += m * old[r].w;
        }
        out[static_cast<size_t>(s) * n + i] = sum;
    }
}

Study four_streams("sound_four_streams_of_a_residual", "training", 1 << 21, "four streams of 8388608 floats mixed, and a layer's result added to each", "", {},
    [](Buffers &b, long n) -> Sides {
        Mixing mixing{{{0.9f, 0.1f, 0.f, 0.f}, {0.05f, 0.8f, 0.1f, 0.05f}, {0.f, 0.2f, 0.7f, 0.1f}, {0.1f, 0.1f, 0.1f, 0.7f}}, {1.f, 0.5f, 0.25f, 0.75f}};
        float *streams = b.random<float>(16 * n), *layer = b.random<float>(4 * n), *out = b.output<float>(16 * n);
        return {{"sound", launch(mix_streams, blocks(n, 256), 256, 0, mixing, (float4 *)streams, (float4 *)layer, (float4 *)out, n)}};
    });

}  // namespace
