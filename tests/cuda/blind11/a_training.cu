// Training: optimisers, losses, gradients. Each kernel has one weakness and two or three ways out.
#include <algorithm>

#include "../pairs/pair.cuh"

namespace {

// --- moving average of all of a model's weights, which lie in tensors of very different sizes ---

constexpr int TENSORS = 64, PIECE = 16384;

struct TensorList {
    const float *weight[TENSORS];
    float *average[TENSORS];
    int size[TENSORS];
};
struct PieceStarts {
    int first[TENSORS + 1];  // how many pieces the tensors before have
};

__device__ __forceinline__ float moved(float average, float weight, float rate) { return average + rate * (weight - average); }

__global__ void __launch_bounds__(256) average_tensors(TensorList list, float rate) {
    const float *weight = list.weight[blockIdx.y];
    float *average = list.average[blockIdx.y];
    const int size = list.size[blockIdx.y];
    for (int i = blockIdx.x * 256 + threadIdx.x; i < size; i += gridDim.x * 256) average[i] = moved(average[i], weight[i], rate);
}

__device__ __forceinline__ void average_piece(const TensorList &list, int tensor, int piece, float rate) {
    const float *weight = list.weight[tensor];
    float *average = list.average[tensor];
    const int end = min(list.size[tensor], (piece + 1) * PIECE);
    for (int i = piece * PIECE + threadIdx.x; i < end; i += 256) average[i] = moved(average[i], weight[i], rate);
}
// The host lists which tensor and piece each block has.
__global__ void __launch_bounds__(256) average_listed(TensorList list, const int2 *__restrict__ pieces, float rate) {
    const int2 own = pieces[blockIdx.x];
    average_piece(list, own.x, own.y, rate);
}
// A block looks its tensor up among the numbers of pieces before.
__global__ void __launch_bounds__(256) average_searched(TensorList list, PieceStarts starts, float rate) {
    int low = 0, high = TENSORS;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (starts.first[middle] <= static_cast<int>(blockIdx.x)) low = middle;
        else high = middle;
    }
    average_piece(list, low, blockIdx.x - starts.first[low], rate);
}
__global__ void __launch_bounds__(256) average_listed_quads(TensorList list, const int2 *__restrict__ pieces, float rate) {
    const int2 own = pieces[blockIdx.x];
    const float4 *weight = reinterpret_cast<const float4 *>(list.weight[own.x]);
    float4 *average = reinterpret_cast<float4 *>(list.average[own.x]);
    const int end = min(list.size[own.x], (own.y + 1) * PIECE) / 4;
#pragma unroll 4
    for (int i = own.y * (PIECE / 4) + threadIdx.x; i < end; i += 256) {
        const float4 w = weight[i];
        float4 a = average[i];
        a.x = moved(a.x, w.x, rate), a.y = moved(a.y, w.y, rate), a.z = moved(a.z, w.z, rate), a.w = moved(a.w, w.w, rate);
        average[i] = a;
    }
}

Study weight_average("weight_average_eight_blocks_for_each_tensor", "models", 1 << 20, "moving average of the weights of 64 tensors of 4096 to 8 million values",
    "each tensor has eight blocks, whatever its size",
    {{"listed", "a block for each 16384 values, from a list", {"workload_imbalance"}}, {"searched", "a block for each 16384 values, its tensor by binary search", {"workload_imbalance"}},
        {"listed_quads", "from a list, four values a thread", {"workload_imbalance", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        TensorList list;
        PieceStarts starts;
        std::vector<int2> pieces;
        std::vector<long> begin;
        long all = 0;
        for (int t = 0; t < TENSORS; t++) {
            const long size = t % 31 == 7 ? 8 * n : t % 4 == 1 ? n : std::min(n, 4096L);
            begin.push_back(all), list.size[t] = static_cast<int>(size), starts.first[t] = static_cast<int>(pieces.size());
            for (int p = 0; p * static_cast<long>(PIECE) < size; p++) pieces.push_back(make_int2(t, p));
            all += size;
        }
        starts.first[TENSORS] = static_cast<int>(pieces.size());
        const float *weights = b.random<float>(all), *before = b.random<float>(all);
        float *averages = b.changed<float>(before, all);
        for (int t = 0; t < TENSORS; t++) list.weight[t] = weights + begin[t], list.average[t] = averages + begin[t];
        int2 *own = b.allocate<int2>(pieces.size());
        CHECK(cudaMemcpy(own, pieces.data(), pieces.size() * sizeof(int2), cudaMemcpyHostToDevice));
        const float rate = 0.01f;
        return {{"flawed", launch(average_tensors, dim3(8, TENSORS), 256, 0, list, rate)}, {"listed", launch(average_listed, pieces.size(), 256, 0, list, own, rate)},
            {"searched", launch(average_searched, pieces.size(), 256, 0, list, starts, rate)}, {"listed_quads", launch(average_listed_quads, pieces.size(), 256, 0, list, own, rate)}};
    });

// --- a step of Sinkhorn's balancing: the soft minimum of each column of costs less the rows' potentials ---

struct SoftSum {  // the sum of exp(v), as exp(most) * sum
    float most = -1e30f, sum = 0.f;
    __device__ void add(float v) {
        if (v > most) {
            sum = sum * __expf(most - v) + 1.f;
            most = v;
        } else {
            sum += __expf(v - most);
        }
    }
    __device__ void join(float other_most, float other_sum) {
        const float top = fmaxf(most, other_most);
        sum = sum * __expf(most - top) + other_sum * __expf(other_most - top);
        most = top;
    }
};

// A warp for each column; its lanes go down the rows.
__global__ void __launch_bounds__(256) sinkhorn_warps(const float *__restrict__ cost, const float *__restrict__ potential, float *__restrict__ out, int rows, int columns, float sharpness) {
    const int lane = threadIdx.x % 32, column = (blockIdx.x * 256 + threadIdx.x) / 32;
    SoftSum s;
    for (int r = lane; r < rows; r += 32) s.add((potential[r] - cost[static_cast<size_t>(r) * columns + column]) * sharpness);
    for (int step = 16; step; step /= 2) s.join(__shfl_xor_sync(~0u, s.most, step), __shfl_xor_sync(~0u, s.sum, step));
    if (lane == 0) out[column] = -(s.most + __logf(s.sum)) / sharpness;
}

// 32 columns a block: lanes along the columns, warps down the rows.
__global__ void __launch_bounds__(1024) sinkhorn_lanes(const float *__restrict__ cost, const float *__restrict__ potential, float *__restrict__ out, int rows, int columns, float sharpness) {
    __shared__ float most[32][32], sum[32][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = blockIdx.x * 32 + lane;
    SoftSum s;
#pragma unroll 4
    for (int r = warp; r < rows; r += 32) s.add((potential[r] - cost[static_cast<size_t>(r) * columns + column]) * sharpness);
    most[warp][lane] = s.most;
    sum[warp][lane] = s.sum;
    __syncthreads();
    if (warp) return;
    for (int w = 1; w < 32; w++) s.join(most[w][lane], sum[w][lane]);
    out[column] = -(s.most + __logf(s.sum)) / sharpness;
}

// A warp a column still, but tiles of 32 x 32 costs are turned in shared memory.
__global__ void __launch_bounds__(1024) sinkhorn_turned(const float *__restrict__ cost, const float *__restrict__ potential, float *__restrict__ out, int rows, int columns, float sharpness) {
    __shared__ float tile[2][32][33];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = blockIdx.x * 32;
    SoftSum s;
    for (int r = 0; r < rows; r += 64) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int row = r + half * 32 + warp;
            tile[half][warp][lane] = potential[row] - cost[static_cast<size_t>(row) * columns + column + lane];
        }
        __syncthreads();
        s.add(tile[0][lane][warp] * sharpness);
        s.add(tile[1][lane][warp] * sharpness);
        __syncthreads();
    }
    for (int step = 16; step; step /= 2) s.join(__shfl_xor_sync(~0u, s.most, step), __shfl_xor_sync(~0u, s.sum, step));
    if (lane == 0) out[column + warp] = -(s.most + __logf(s.sum)) / sharpness;
}

Study sinkhorn("sinkhorn_columns_a_warp_for_each", "models", 8192, "half a step of optimal transport between 8192 and 8192 points: soft minima of the columns",
    "the lanes of a warp go down a column: each load has 32 sectors",
    {{"lanes", "lanes along the columns, the warps of a block share the rows", {"uncoalesced_access"}}, {"turned", "tiles turned in shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *cost = b.random<float>(n * n, 0, 4), *potential = b.random<float>(n);
        float *out = b.output<float>(n);
        const int size = static_cast<int>(n);
        return {{"flawed", launch(sinkhorn_warps, n / 8, 256, 0, cost, potential, out, size, size, 5.f)}, {"lanes", launch(sinkhorn_lanes, n / 32, 1024, 0, cost, potential, out, size, size, 5.f)},
            {"turned", launch(sinkhorn_turned, n / 32, 1024, 0, cost, potential, out, size, size, 5.f)}};
    });

// --- gradient of the root mean square norm with respect to its input ---

constexpr int WIDTH = 2048, MOST_A_LANE = WIDTH / 32;

// A warp a row of any width up to 2048: its lanes keep what they read.
__global__ void __launch_bounds__(128) rms_gradient(const float *x, const float *dy, const float *gamma, float *dx, int rows, int width) {
    const int lane = threadIdx.x % 32, row = (blockIdx.x * 128 + threadIdx.x) / 32;
    if (row >= rows) return;
    x += static_cast<size_t>(row) * width, dy += static_cast<size_t>(row) * width, dx += static_cast<size_t>(row) * width;
    const int count = width / 32;
    float value[MOST_A_LANE], scaled[MOST_A_LANE];
    float squares = 0.f, product = 0.f;
    for (int i = 0; i < count; i++) {
        value[i] = x[i * 32 + lane];
        scaled[i] = dy[i * 32 + lane] * gamma[i * 32 + lane];
        squares += value[i] * value[i];
        product += value[i] * scaled[i];
    }
    squares = warp_sum(squares);
    product = warp_sum(product);
    const float scale = rsqrtf(squares / width + 1e-6f), back = product / width * scale * scale;
    for (int i = 0; i < count; i++) dx[i * 32 + lane] = scale * (scaled[i] - value[i] * back);
}

// As many values a lane as the compiler is told.
template <int COUNT>
__global__ void __launch_bounds__(128) rms_gradient_known(const float *__restrict__ x, const float *__restrict__ dy, const float *__restrict__ gamma, float *__restrict__ dx, int rows) {
    const int lane = threadIdx.x % 32, row = (blockIdx.x * 128 + threadIdx.x) / 32;
    if (row >= rows) return;
    const size_t start = static_cast<size_t>(row) * COUNT * 32 + lane;
    float value[COUNT], scaled[COUNT];
    float squares = 0.f, product = 0.f;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        value[i] = x[start + i * 32];
        scaled[i] = dy[start + i * 32] * gamma[i * 32 + lane];
        squares = fmaf(value[i], value[i], squares);
        product = fmaf(value[i], scaled[i], product);
    }
    squares = warp_sum(squares);
    product = warp_sum(product);
    const float scale = rsqrtf(squares / (COUNT * 32) + 1e-6f), back = product / (COUNT * 32) * scale * scale;
#pragma unroll
    for (int i = 0; i < COUNT; i++) dx[start + i * 32] = scale * (scaled[i] - value[i] * back);
}

// A block a row: each thread has two pieces of four values.
__global__ void __launch_bounds__(256) rms_gradient_block(const float4 *__restrict__ x, const float4 *__restrict__ dy, const float4 *__restrict__ gamma, float4 *__restrict__ dx, int width) {
    __shared__ float2 of_warp[8];
    const size_t start = static_cast<size_t>(blockIdx.x) * (width / 4) + threadIdx.x;
    float4 value[2], scaled[2];
    float squares = 0.f, product = 0.f;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const bool there = threadIdx.x + i * 256 < width / 4;
        const float4 none = make_float4(0.f, 0.f, 0.f, 0.f);
        const float4 v = there ? x[start + i * 256] : none, d = there ? dy[start + i * 256] : none, g = there ? gamma[threadIdx.x + i * 256] : none;
        value[i] = v;
        scaled[i] = make_float4(d.x * g.x, d.y * g.y, d.z * g.z, d.w * g.w);
        squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
        product += v.x * scaled[i].x + v.y * scaled[i].y + v.z * scaled[i].z + v.w * scaled[i].w;
    }
    squares = warp_sum(squares);
    product = warp_sum(product);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = make_float2(squares, product);
    __syncthreads();
    squares = product = 0.f;
#pragma unroll
    for (int w = 0; w < 8; w++) squares += of_warp[w].x, product += of_warp[w].y;
    const float scale = rsqrtf(squares / width + 1e-6f), back = product / width * scale * scale;
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (threadIdx.x + i * 256 < width / 4)
            dx[start + i * 256] = make_float4(scale * (scaled[i].x - value[i].x * back), scale * (scaled[i].y - value[i].y * back),
                scale * (scaled[i].z - value[i].z * back), scale * (scaled[i].w - value[i].w * back));
}

// Nothing is kept: the row is read again, from the cache.
__global__ void __launch_bounds__(128) rms_gradient_again(const float *__restrict__ x, const float *__restrict__ dy, const float *__restrict__ gamma, float *__restrict__ dx, int rows, int width) {
    const int lane = threadIdx.x % 32, row = (blockIdx.x * 128 + threadIdx.x) / 32;
    if (row >= rows) return;
    x += static_cast<size_t>(row) * width, dy += static_cast<size_t>(row) * width, dx += static_cast<size_t>(row) * width;
    float squares = 0.f, product = 0.f;
#pragma unroll 4
    for (int i = lane; i < width; i += 32) {
        squares = fmaf(x[i], x[i], squares);
        product = fmaf(x[i], dy[i] * gamma[i], product);
    }
    squares = warp_sum(squares);
    product = warp_sum(product);
    const float scale = rsqrtf(squares / width + 1e-6f), back = product / width * scale * scale;
#pragma unroll 4
    for (int i = lane; i < width; i += 32) dx[i] = scale * (dy[i] * gamma[i] - x[i] * back);
}

Study norm_gradient("rms_norm_gradient_row_kept_in_local", "models", 16384, "gradient of the root mean square norm of 16384 rows of 2048 values",
    "a lane keeps its values in arrays that are indexed at run time",
    {{"known", "the number of values known to the compiler", {"local_memory"}}, {"block", "a block a row, eight values a thread", {"local_memory", "narrow_access"}},
        {"again", "values read again", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const float *x = b.random<float>(n * WIDTH), *dy = b.random<float>(n * WIDTH), *gamma = b.random<float>(WIDTH, 0.5, 1.5);
        float *dx = b.output<float>(n * WIDTH);
        const int rows = static_cast<int>(n);
        auto quads = [](const float *data) { return reinterpret_cast<const float4 *>(data); };
        return {{"flawed", launch(rms_gradient, n / 4, 128, 0, x, dy, gamma, dx, rows, WIDTH)}, {"known", launch(rms_gradient_known<MOST_A_LANE>, n / 4, 128, 0, x, dy, gamma, dx, rows)},
            {"block", launch(rms_gradient_block, n, 256, 0, quads(x), quads(dy), quads(gamma), reinterpret_cast<float4 *>(dx), WIDTH)},
            {"again", launch(rms_gradient_again, n / 4, 128, 0, x, dy, gamma, dx, rows, WIDTH)}};
    });

// --- gradient of the bias by relative position in windows of 7 x 7 places ---

constexpr int PLACES = 49, SCORES = PLACES * PLACES, WINDOW_HEADS = 12, OFFSETS = 13 * 13;

__device__ __forceinline__ int offset_of(int score) {
    const int i = score / PLACES, j = score % PLACES;
    return (i / 7 - j / 7 + 6) * 13 + i % 7 - j % 7 + 6;
}

__global__ void __launch_bounds__(256) bias_gradient(const float *grad, float *table, int count) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= count) return;
    const int head = at / SCORES % WINDOW_HEADS;
    atomicAdd(&table[offset_of(at % SCORES) * WINDOW_HEADS + head], grad[at]);
}
// A block has one head of 16 windows and adds to a table of its own.
__global__ void __launch_bounds__(256) bias_gradient_shared(const float *__restrict__ grad, float *table) {
    __shared__ float own[OFFSETS];
    for (int o = threadIdx.x; o < OFFSETS; o += 256) own[o] = 0.f;
    __syncthreads();
    for (int w = 0; w < 16; w++) {
        const float *from = grad + (static_cast<size_t>(blockIdx.y * 16 + w) * WINDOW_HEADS + blockIdx.x) * SCORES;
        for (int s = threadIdx.x; s < SCORES; s += 256) atomicAdd(&own[offset_of(s)], from[s]);
    }
    __syncthreads();
    for (int o = threadIdx.x; o < OFFSETS; o += 256) atomicAdd(&table[o * WINDOW_HEADS + blockIdx.x], own[o]);
}
// Scores of one place are first added over 16 windows in registers: they all have the same offset.
__global__ void __launch_bounds__(512) bias_gradient_registers(const float *__restrict__ grad, float *table) {
    constexpr int EACH = (SCORES + 511) / 512;
    __shared__ float own[OFFSETS];
    for (int o = threadIdx.x; o < OFFSETS; o += 512) own[o] = 0.f;
    __syncthreads();
    float sum[EACH] = {};
    for (int w = 0; w < 16; w++) {
        const float *from = grad + (static_cast<size_t>(blockIdx.y * 16 + w) * WINDOW_HEADS + blockIdx.x) * SCORES;
#pragma unroll
        for (int k = 0; k < EACH; k++)
            if (const int s = threadIdx.x + k * 512; s < SCORES) sum[k] += from[s];
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (const int s = threadIdx.x + k * 512; s < SCORES) atomicAdd(&own[offset_of(s)], sum[k]);
    __syncthreads();
    for (int o = threadIdx.x; o < OFFSETS; o += 512) atomicAdd(&table[o * WINDOW_HEADS + blockIdx.x], own[o]);
}

Study bias("window_bias_gradient_atomic_each_score", "models", 1024, "gradient of the bias by relative position, 1024 windows of 49 places, 12 heads",
    "an atomic for each of 30 million scores on a table of 2028 values",
    {{"shared", "a table in shared memory for each block", {"global_atomics"}}, {"registers", "sums over windows in registers first, then a table of the block", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const float *grad = b.random<float>(n * WINDOW_HEADS * SCORES);
        float *table = b.output<float>(OFFSETS * WINDOW_HEADS, true);
        const int count = static_cast<int>(n * WINDOW_HEADS * SCORES);
        return {{"flawed", launch(bias_gradient, blocks(count, 256), 256, 0, grad, table, count)}, {"shared", launch(bias_gradient_shared, dim3(WINDOW_HEADS, n / 16), 256, 0, grad, table)},
            {"registers", launch(bias_gradient_registers, dim3(WINDOW_HEADS, n / 16), 512, 0, grad, table)}};
    });

}  // namespace
