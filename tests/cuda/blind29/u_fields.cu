// Histories, optimisers, clusters, orders, norms, biases and rotated heads; parcels of air, kriging, haloes, ensembles,
// anomalies and heat.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- what somebody has bought before ---

constexpr int HISTORY = 20, WIDTH = 32;  // items of a customer; floats of an item's embedding

__device__ __forceinline__ void add(float4 &sum, const float4 &x) { sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w; }
__device__ __forceinline__ float4 scaled(const float4 &x, float by) { return make_float4(x.x * by, x.y * by, x.z * by, x.w * by); }

// A customer a thread.
__global__ void __launch_bounds__(128) history_mean(const float4 *__restrict__ items, const int *__restrict__ bought, float4 *__restrict__ means, int customers) {
    const int customer = blockIdx.x * blockDim.x + threadIdx.x;
    if (customer >= customers) return;
    float4 sums[WIDTH / 4] = {};
    for (int k = 0; k < HISTORY; k++) {
        const float4 *item = items + static_cast<size_t>(bought[k * customers + customer]) * (WIDTH / 4);
#pragma unroll
        for (int d = 0; d < WIDTH / 4; d++) add(sums[d], item[d]);
    }
#pragma unroll
    for (int d = 0; d < WIDTH / 4; d++) means[static_cast<size_t>(customer) * (WIDTH / 4) + d] = scaled(sums[d], 1.0f / HISTORY);
}
// LANES lanes a customer, each with V of an item's floats.
template <typename V, int LANES>
__global__ void __launch_bounds__(128) history_mean_lanes(const V *__restrict__ items, const int *__restrict__ bought, V *__restrict__ means, int customers) {
    const int customer = (blockIdx.x * 128 + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    if (customer >= customers) return;
    V sum = {};
#pragma unroll 10
    for (int k = 0; k < HISTORY; k++) {
        const V x = items[static_cast<size_t>(bought[k * customers + customer]) * LANES + lane];
        if constexpr (sizeof(V) == 16) add(sum, x);
        else sum += x;
    }
    if constexpr (sizeof(V) == 16) means[static_cast<size_t>(customer) * LANES + lane] = scaled(sum, 1.0f / HISTORY);
    else means[static_cast<size_t>(customer) * LANES + lane] = sum * (1.0f / HISTORY);
}

Study histories("shop_history_mean_a_customer_a_thread", "recommenders", 1 << 18, "mean embedding (32 floats) of the last 20 items of 262144 customers, of 200000 items",
    "each thread reads its own items' rows from end to end, 128 bytes that no neighbour wants",
    {{"eight_lanes", "eight lanes a customer, four floats each", {"uncoalesced_access"}}, {"warp", "a warp a customer, a float a lane", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int ITEMS = 200000;
        std::vector<int> bought(n * HISTORY);
        for (size_t i = 0; i < bought.size(); i++) {
            const float u = (hash(static_cast<unsigned>(i)) + 1.0f) / 4294967296.0f;
            bought[i] = std::min(ITEMS - 1, static_cast<int>(hash(static_cast<unsigned>(ITEMS * u * u)) % ITEMS));  // some sell better
        }
        const float *items = b.random<float>(size_t{ITEMS} * WIDTH);
        const int *histories = b.copy(bought);
        float *means = b.output<float>(n * WIDTH);
        const auto *items4 = reinterpret_cast<const float4 *>(items);
        auto *means4 = reinterpret_cast<float4 *>(means);
        const int customers = static_cast<int>(n);
        return {{"flawed", launch(history_mean, blocks(n, 128), 128, 0, items4, histories, means4, customers)},
            {"eight_lanes", launch(history_mean_lanes<float4, 8>, blocks(n, 16), 128, 0, items4, histories, means4, customers)},
            {"warp", launch(history_mean_lanes<float, 32>, blocks(n, 4), 128, 0, items, histories, means, customers)}};
    });

// --- a step of AdamW ---

struct AdamW {
    float *weights, *first, *second;
    const float *slopes;
    int count, step;
    float rate, beta1, beta2, epsilon, decay;
};
__device__ __forceinline__ void update(const AdamW &a, int i, float scale1, float scale2) {
    const float slope = a.slopes[i], weight = a.weights[i];
    const float first = a.beta1 * a.first[i] + (1.0f - a.beta1) * slope;
    const float second = a.beta2 * a.second[i] + (1.0f - a.beta2) * slope * slope;
    a.first[i] = first;
    a.second[i] = second;
    a.weights[i] = weight - a.rate * (__fdividef(first * scale1, sqrtf(second * scale2) + a.epsilon) + a.decay * weight);
}
// A parameter a thread.
__global__ void __launch_bounds__(256) adamw(AdamW a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.count) return;
    const float correction1 = 1.0 - pow(a.beta1, a.step);
    const float correction2 = 1.0 - pow(a.beta2, a.step);
    update(a, i, 1.0f / correction1, 1.0f / correction2);
}
__global__ void __launch_bounds__(256) adamw_given(AdamW a, float scale1, float scale2) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < a.count) update(a, i, scale1, scale2);
}
__global__ void __launch_bounds__(256) adamw_single(AdamW a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.count) return;
    const float step = a.step;
    update(a, i, __fdividef(1.0f, 1.0f - __powf(a.beta1, step)), __fdividef(1.0f, 1.0f - __powf(a.beta2, step)));
}

Study optimiser("adamw_bias_corrections_by_double_pow", "training", 1 << 24, "a step of AdamW for 16777216 parameters",
    "each thread raises both decay rates to the step's power, in double precision as pow(float, int) does",
    {{"given", "both corrections worked out once by the host", {"double_precision", "expensive_math"}}, {"single", "powers in single precision", {"double_precision"}}},
    [](Buffers &b, long n) -> Sides {
        const AdamW a{b.changed(b.random<float>(n), n), b.changed(b.random<float>(n, -0.01, 0.01), n), b.changed(b.random<float>(n, 1e-6, 1e-3), n), b.random<float>(n, -0.02, 0.02),
            static_cast<int>(n), 137, 1e-3f, 0.9f, 0.999f, 1e-8f, 0.01f};
        const float scale1 = static_cast<float>(1.0 / (1.0 - std::pow(double{a.beta1}, a.step))), scale2 = static_cast<float>(1.0 / (1.0 - std::pow(double{a.beta2}, a.step)));
        const unsigned grid = blocks(n, 256);
        return {{"flawed", launch(adamw, grid, 256, 0, a)}, {"given", launch(adamw_given, grid, 256, 0, a, scale1, scale2)}, {"single", launch(adamw_single, grid, 256, 0, a)}};
    });

// --- the nearest of 64 centres ---

constexpr int CENTRES = 64, FEATURES = 16;

template <int POINTS>
__device__ __forceinline__ void closer(const float (&point)[POINTS][FEATURES], const float *centre, int c, float (&best)[POINTS], int (&label)[POINTS]) {
    float apart[POINTS] = {};
#pragma unroll
    for (int d = 0; d < FEATURES; d++)
#pragma unroll
        for (int p = 0; p < POINTS; p++) {
            const float off = point[p][d] - centre[d];
            apart[p] = fmaf(off, off, apart[p]);
        }
#pragma unroll
    for (int p = 0; p < POINTS; p++)
        if (apart[p] < best[p]) best[p] = apart[p], label[p] = c;
}
// POINTS points a thread, a block's size from each other; features lie one after another.
template <int POINTS, bool SHARED>
__global__ void __launch_bounds__(256) assign(const float *__restrict__ points, const float *__restrict__ centres, int *__restrict__ labels, float *__restrict__ distances, int n) {
    __shared__ __align__(16) float kept[SHARED ? CENTRES * FEATURES : 1];
    if constexpr (SHARED) {
        for (int k = threadIdx.x; k < CENTRES * FEATURES; k += 256) kept[k] = centres[k];
        __syncthreads();
    }
    const int first = blockIdx.x * (256 * POINTS) + threadIdx.x;
    float point[POINTS][FEATURES], best[POINTS];
    int label[POINTS] = {};
#pragma unroll
    for (int p = 0; p < POINTS; p++) {
        best[p] = INFINITY;
#pragma unroll
        for (int d = 0; d < FEATURES; d++) point[p][d] = points[static_cast<size_t>(d) * n + first + p * 256];
    }
    for (int c = 0; c < CENTRES; c++) {
        if constexpr (SHARED) {
            float centre[FEATURES];
#pragma unroll
            for (int d = 0; d < FEATURES; d += 4) *reinterpret_cast<float4 *>(centre + d) = *reinterpret_cast<const float4 *>(kept + c * FEATURES + d);
            closer(point, centre, c, best, label);
        } else closer(point, centres + c * FEATURES, c, best, label);
    }
#pragma unroll
    for (int p = 0; p < POINTS; p++) labels[first + p * 256] = label[p], distances[first + p * 256] = best[p];
}

Study clusters("kmeans_centres_read_again_by_each_point", "clustering", 1 << 22, "the nearest of 64 centres for each of 4194304 points of 16 features",
    "every feature of every centre is loaded for each point, one float for a difference and a square",
    {{"shared", "centres in shared memory, read in fours", {"redundant_loads"}}, {"four_points", "four points a thread share what is loaded", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const float *points = b.random<float>(n * FEATURES), *centres = b.random<float>(CENTRES * FEATURES, -0.7, 0.7);
        int *labels = b.output<int>(n);
        float *distances = b.output<float>(n);
        const int count = static_cast<int>(n);
        return {{"flawed", launch(assign<1, false>, blocks(n, 256), 256, 0, points, centres, labels, distances, count)},
            {"shared", launch(assign<1, true>, blocks(n, 256), 256, 0, points, centres, labels, distances, count)},
            {"four_points", launch(assign<4, false>, blocks(n, 1024), 256, 0, points, centres, labels, distances, count)}};
    });

// --- what each line of an order costs ---

struct Orders {
    const int *articles;    // of each line
    const short *pieces;
    const int *rows;        // of an article in the price list
    const float *prices;
    float *amounts;
    int lines;
};
__device__ __forceinline__ float amount(const Orders &o, int i) { return o.pieces[i] * o.prices[o.rows[o.articles[i]]]; }

__global__ void __launch_bounds__(256) order_amounts(Orders o) {
    const int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < o.lines; i += step) o.amounts[i] = amount(o, i);
}
// Four lines at a time, each look-up for all of them before the next.
__global__ void __launch_bounds__(256) order_amounts_four(Orders o) {
    const int step = gridDim.x * 1024;
    for (int first = blockIdx.x * 1024 + threadIdx.x; first < o.lines; first += step) {
        float amounts[4];
#pragma unroll
        for (int k = 0; k < 4; k++) amounts[k] = first + k * 256 < o.lines ? amount(o, first + k * 256) : 0.0f;
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (first + k * 256 < o.lines) o.amounts[first + k * 256] = amounts[k];
    }
}

Study orders("order_lines_priced_one_in_flight", "databases", 12000000, "amounts of 12000000 lines of orders: a look-up of the article's row, one of its price",
    "two blocks a multiprocessor walk through the lines, a thread waits for three loads in turn before it begins its next line",
    {{"four", "four lines at a time a thread", {"memory_latency"}}, {"grid", "a thread a line in a grid of full size", {"memory_latency", "low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int ARTICLES = 3000000, LISTED = 1000000;
        std::vector<int> articles(n), rows(ARTICLES);
        for (long i = 0; i < n; i++) {
            const double u = hash(static_cast<unsigned>(i)) / 4294967296.0;
            articles[i] = hash(static_cast<unsigned>(ARTICLES * u * u * u)) % ARTICLES;
        }
        for (int i = 0; i < ARTICLES; i++) rows[i] = hash(i + 77u) % LISTED;
        std::vector<short> pieces(n);
        for (long i = 0; i < n; i++) pieces[i] = static_cast<short>(1 + hash(static_cast<unsigned>(i) + 5u) % 9);
        auto *kept = b.allocate<short>(n);
        CHECK(cudaMemcpy(kept, pieces.data(), n * sizeof(short), cudaMemcpyHostToDevice));
        const Orders o{b.copy(articles), kept, b.copy(rows), b.random<float>(LISTED, 1.0, 100.0), b.output<float>(n), static_cast<int>(n)};
        const unsigned grid = 2 * multiprocessors();
        return {{"flawed", launch(order_amounts, grid, 256, 0, o)}, {"four", launch(order_amounts_four, grid, 256, 0, o)}, {"grid", launch(order_amounts, blocks(n, 256), 256, 0, o)}};
    });

// --- layer norm ---

constexpr int HIDDEN = 512;

struct Norm {
    const float2 *x, *gain, *shift;
    float2 *out;
};
__device__ float tree_sum(float value, float *scratch) {
    const int t = threadIdx.x;
    scratch[t] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) scratch[t] += scratch[t + half];
        __syncthreads();
    }
    const float sum = scratch[0];
    __syncthreads();
    return sum;
}
__device__ float warps_sum(float value, float *scratch) {
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; k++) sum += scratch[k];
    return sum;
}
__device__ __forceinline__ float2 normed(float2 x, float scale, float2 gain, float2 shift) { return make_float2(x.x * scale * gain.x + shift.x, x.y * scale * gain.y + shift.y); }

// A row a block, two floats a thread.
template <bool TREE>
__global__ void __launch_bounds__(256) layer_norm(Norm n) {
    __shared__ float scratch[TREE ? 256 : 16];
    const size_t at = static_cast<size_t>(blockIdx.x) * (HIDDEN / 2) + threadIdx.x;
    float2 x = n.x[at];
    const float2 gain = n.gain[threadIdx.x], shift = n.shift[threadIdx.x];
    const float mean = (TREE ? tree_sum(x.x + x.y, scratch) : warps_sum(x.x + x.y, scratch)) / HIDDEN;
    x.x -= mean, x.y -= mean;
    const float squares = x.x * x.x + x.y * x.y, variance = (TREE ? tree_sum(squares, scratch) : warps_sum(squares, scratch + 8 * !TREE)) / HIDDEN;
    n.out[at] = normed(x, rsqrtf(variance + 1e-5f), gain, shift);
}
// A row a warp.
__global__ void __launch_bounds__(256) layer_norm_warp(Norm n) {
    const int lane = threadIdx.x % 32;
    const size_t row = (static_cast<size_t>(blockIdx.x) * 8 + threadIdx.x / 32) * (HIDDEN / 2);
    float2 x[HIDDEN / 64];
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int k = 0; k < HIDDEN / 64; k++) x[k] = n.x[row + k * 32 + lane];
#pragma unroll
    for (int k = 0; k < HIDDEN / 64; k++) sum += x[k].x + x[k].y;
    const float mean = warp_sum(sum) / HIDDEN;
#pragma unroll
    for (int k = 0; k < HIDDEN / 64; k++) x[k].x -= mean, x[k].y -= mean, squares += x[k].x * x[k].x + x[k].y * x[k].y;
    const float scale = rsqrtf(warp_sum(squares) / HIDDEN + 1e-5f);
#pragma unroll
    for (int k = 0; k < HIDDEN / 64; k++) n.out[row + k * 32 + lane] = normed(x[k], scale, n.gain[k * 32 + lane], n.shift[k * 32 + lane]);
}

Study norm("layer_norm_tree_with_a_barrier_a_level", "models", 65536, "layer norm of 65536 rows of 512 floats",
    "mean and variance by trees in shared memory, a barrier for each of their eight levels",
    {{"shuffles", "sums by shuffles, one barrier for each", {"barriers"}}, {"warp", "a row a warp: no barrier", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const auto pairs = [](const float *data) { return reinterpret_cast<const float2 *>(data); };
        const Norm norm{pairs(b.random<float>(n * HIDDEN)), pairs(b.random<float>(HIDDEN, 0.5, 1.5)), pairs(b.random<float>(HIDDEN)), reinterpret_cast<float2 *>(b.output<float>(n * HIDDEN))};
        return {{"flawed", launch(layer_norm<true>, n, 256, 0, norm)}, {"shuffles", launch(layer_norm<false>, n, 256, 0, norm)}, {"warp", launch(layer_norm_warp, n / 8, 256, 0, norm)}};
    });

// --- the slope of a bias ---

// A column a thread, some rows of it a block.
__global__ void __launch_bounds__(256) bias_slope(const float *__restrict__ slopes, float *__restrict__ out, int rows, int columns) {
    const int column = blockIdx.x * 256 + threadIdx.x, first = blockIdx.y * rows;
    float sum = 0.0f;
#pragma unroll 16
    for (int row = first; row < first + rows; row++) sum += slopes[static_cast<size_t>(row) * columns + column];
    if (gridDim.y == 1) out[column] = sum;
    else atomicAdd(out + column, sum);
}
// 32 columns a block, every eighth row a warp.
__global__ void __launch_bounds__(256) bias_slope_warps(const float *__restrict__ slopes, float *__restrict__ out, int rows, int columns) {
    __shared__ float sums[8][32];
    const int column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
#pragma unroll 16
    for (int row = threadIdx.y; row < rows; row += 8) sum += slopes[static_cast<size_t>(row) * columns + column];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y) return;
#pragma unroll
    for (int k = 1; k < 8; k++) sum += sums[k][threadIdx.x];
    out[column] = sum;
}

Study bias("bias_slope_a_column_a_thread_64_blocks", "training", 2048, "sums of the columns of 2048 x 16384 floats: the slope of a bias",
    "a thread sums up a whole column: 64 blocks for all multiprocessors",
    {{"parts", "16 parts of the rows, added by atomics", {"small_grid"}}, {"warps", "512 blocks of 32 columns, rows dealt out among eight warps", {"small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int COLUMNS = 16384;
        const float *slopes = b.random<float>(n * COLUMNS);
        float *out = b.output<float>(COLUMNS, true);
        const int rows = static_cast<int>(n);
        return {{"flawed", launch(bias_slope, COLUMNS / 256, 256, 0, slopes, out, rows, COLUMNS)}, {"parts", launch(bias_slope, dim3(COLUMNS / 256, 16), 256, 0, slopes, out, rows / 16, COLUMNS)},
            {"warps", launch(bias_slope_warps, COLUMNS / 32, dim3(32, 8), 0, slopes, out, rows, COLUMNS)}};
    });

// --- rotary embedding ---

constexpr int HEADS = 32, HEAD = 128, POSITIONS = 4096;

// A token a block, eight lanes a head, eight pairs a lane.
__global__ void __launch_bounds__(HEADS * 8) rotate(const uint4 *__restrict__ x, const uint4 *__restrict__ cosines, const uint4 *__restrict__ sines, uint4 *__restrict__ out) {
    const int lane = threadIdx.x % 8, position = (blockIdx.x % POSITIONS) * 8 + lane;
    const size_t at = (static_cast<size_t>(blockIdx.x) * HEADS + threadIdx.x / 8) * 16 + lane;
    const uint4 low = x[at], high = x[at + 8], cosine = __ldg(cosines + position), sine = __ldg(sines + position);
    const __half2 *a = reinterpret_cast<const __half2 *>(&low), *b = reinterpret_cast<const __half2 *>(&high), *c = reinterpret_cast<const __half2 *>(&cosine), *s = reinterpret_cast<const __half2 *>(&sine);
    uint4 left, right;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float2 p = __half22float2(a[k]), q = __half22float2(b[k]), u = __half22float2(c[k]), v = __half22float2(s[k]);
        reinterpret_cast<__half2 *>(&left)[k] = __floats2half2_rn(p.x * u.x - q.x * v.x, p.y * u.y - q.y * v.y);
        reinterpret_cast<__half2 *>(&right)[k] = __floats2half2_rn(q.x * u.x + p.x * v.x, q.y * u.y + p.y * v.y);
    }
    out[at] = left, out[at + 8] = right;
}

Study rotary("sound_rotary_heads_of_128_halves", "models", 16384, "heads of 16384 tokens, 32 of 128 half values each, rotated by their position", "", {},
    [](Buffers &b, long n) -> Sides {
        std::vector<__half> cosines(POSITIONS * 64), sines(POSITIONS * 64);
        for (int i = 0; i < POSITIONS * 64; i++) {
            const float angle = (i / 64) * std::pow(10000.0f, -(i % 64) / 64.0f);
            cosines[i] = __float2half(std::cos(angle)), sines[i] = __float2half(std::sin(angle));
        }
        const auto fours = [](const __half *data) { return reinterpret_cast<const uint4 *>(data); };
        const uint4 *x = fours(b.random<__half>(n * HEADS * HEAD)), *c = fours(b.copy(cosines)), *s = fours(b.copy(sines));
        return {{"sound", launch(rotate, n, HEADS * 8, 0, x, c, s, reinterpret_cast<uint4 *>(b.output<__half>(n * HEADS * HEAD)))}};
    });

// --- chemistry of parcels of air ---

constexpr float SPAN = 600.0f;  // seconds

struct Air {
    const float4 *parcels;  // ozone, nitric oxide and nitrogen dioxide in ppb; kelvins
    const float *light;     // seconds^-1 at which nitrogen dioxide is split
    const int *order;       // of the parcels by how many steps they need
    float4 *after;
    int count;
};
struct Chemistry {
    float ozone, monoxide, dioxide, rate, light, step;
    int left;  // steps to go
};
__host__ __device__ __forceinline__ int steps_of(float ozone, float monoxide, float light) {
    const int steps = static_cast<int>(SPAN * 0.8f * (4e-4f * (ozone + monoxide) + light));
    return (steps < 4 ? 4 : steps > 160 ? 160 : steps) / 4 * 4;  // in fours
}
__device__ __forceinline__ Chemistry begin(const float4 &parcel, float light) {
    Chemistry c{parcel.x, parcel.y, parcel.z, 0.0f, light, 0.0f, steps_of(parcel.x, parcel.y, light)};
    c.rate = 0.07f * __expf(-__fdividef(1500.0f, parcel.w));
    c.step = __fdividef(SPAN, static_cast<float>(c.left));
    return c;
}
// Four steps, each backwards in time.
__device__ __forceinline__ void four_steps(Chemistry &c) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float made = c.light * c.dioxide * c.step;
        const float ozone = __fdividef(c.ozone + made, 1.0f + c.step * c.rate * c.monoxide);
        const float monoxide = __fdividef(c.monoxide + made, 1.0f + c.step * c.rate * ozone);
        c.dioxide = __fdividef(c.dioxide + c.step * c.rate * ozone * monoxide, 1.0f + c.step * c.light);
        c.ozone = ozone, c.monoxide = monoxide;
    }
    c.left -= 4;
}
__device__ __forceinline__ float4 state(const Chemistry &c, float kelvins) { return make_float4(c.ozone, c.monoxide, c.dioxide, kelvins); }

// A parcel a thread.
template <bool ORDERED>
__global__ void __launch_bounds__(128) react(Air a) {
    const int thread = blockIdx.x * 128 + threadIdx.x;
    if (thread >= a.count) return;
    const int i = ORDERED ? a.order[thread] : thread;
    const float4 parcel = a.parcels[i];
    Chemistry c = begin(parcel, a.light[i]);
    while (c.left > 0) four_steps(c);
    a.after[i] = state(c, parcel.w);
}
// 256 parcels a warp; a lane that is done takes the next of them.
__global__ void __launch_bounds__(128) react_refilled(Air a) {
    const int lane = threadIdx.x % 32, end = min((blockIdx.x * 4 + threadIdx.x / 32 + 1) * 256, a.count);
    int next = (blockIdx.x * 4 + threadIdx.x / 32) * 256, own = -1;
    float kelvins = 0.0f;
    Chemistry c{};
    for (;;) {
        const unsigned idle = __ballot_sync(~0u, c.left == 0);
        if (idle) {
            if (c.left == 0) {
                if (own >= 0) a.after[own] = state(c, kelvins);
                const int taken = next + __popc(idle & ((1u << lane) - 1));
                own = taken < end ? taken : -1;
                if (own >= 0) {
                    const float4 parcel = a.parcels[own];
                    kelvins = parcel.w;
                    c = begin(parcel, a.light[own]);
                }
            }
            next += __popc(idle);
            if (!__any_sync(~0u, own >= 0)) break;
        }
        if (c.left > 0) four_steps(c);
    }
}

Study air("air_parcels_steps_differ_among_lanes", "atmospheric chemistry", 1 << 21, "ozone and nitrogen oxides in 2097152 parcels of air after ten minutes, in 4 to 160 steps as each needs",
    "parcels lie as they were let go: a warp waits for the one that needs most steps",
    {{"ordered", "parcels in the order of how many steps they need", {"branch_divergence"}}, {"refilled", "a lane that is done takes its warp's next parcel", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 1e-3;
        std::vector<float4> parcels(n);
        std::vector<float> light(n);
        std::vector<int> starts(162), order(n);
        const auto chance = [](unsigned seed) { return hash(seed) / 4294967296.0f; };
        const auto steps = [&](long i) { return steps_of(parcels[i].x, parcels[i].y, light[i]); };
        for (long i = 0; i < n; i++) {
            const unsigned k = static_cast<unsigned>(i) * 5;
            const float dirt = chance(k);
            light[i] = 0.009f * chance(k + 1);
            parcels[i] = make_float4(20.0f + 60.0f * chance(k + 2), 0.5f + 500.0f * dirt * dirt * dirt * dirt, 2.0f + 40.0f * chance(k + 3), 230.0f + 70.0f * chance(k + 4));
            starts[steps(i) + 1]++;
        }
        for (int k = 1; k < 162; k++) starts[k] += starts[k - 1];
        for (long i = 0; i < n; i++) order[starts[steps(i)]++] = static_cast<int>(i);
        auto *from = b.allocate<float4>(n);
        CHECK(cudaMemcpy(from, parcels.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
        const Air a{from, b.copy(light), b.copy(order), reinterpret_cast<float4 *>(b.output<float>(4 * n)), static_cast<int>(n)};
        return {{"flawed", launch(react<false>, blocks(n, 128), 128, 0, a)}, {"ordered", launch(react<true>, blocks(n, 128), 128, 0, a)}, {"refilled", launch(react_refilled, blocks(n, 1024), 128, 0, a)}};
    });

// --- kriging ---

constexpr int WELLS = 28, SQUARE = WELLS * WELLS;

// Weights of the 28 wells near a place: a covariance a warp, a row a lane; rows ROW and columns COLUMN words apart.
template <int ROW, int COLUMN>
__global__ void __launch_bounds__(128) krige(const float *__restrict__ covariances, const float *__restrict__ towards, float *__restrict__ weights, int places) {
    __shared__ float all[4][WELLS * (ROW > COLUMN ? ROW : COLUMN)];
    const int lane = threadIdx.x % 32, place = blockIdx.x * 4 + threadIdx.x / 32;
    if (place >= places) return;
    float *a = all[threadIdx.x / 32];
    const auto at = [](int row, int column) { return row * ROW + column * COLUMN; };
    for (int k = lane; k < SQUARE; k += 32) a[at(k / WELLS, k % WELLS)] = covariances[static_cast<size_t>(place) * SQUARE + k];
    float b = lane < WELLS ? towards[place * WELLS + lane] : 0.0f;
    __syncwarp();
    for (int k = 0; k < WELLS; k++) {  // Cholesky's factor, a column after another
        const float inverse = rsqrtf(a[at(k, k)]);
        const float factor = lane >= k && lane < WELLS ? a[at(lane, k)] * inverse : 0.0f;
        __syncwarp();
        if (lane >= k && lane < WELLS) a[at(lane, k)] = factor;
        __syncwarp();
        for (int j = k + 1; j < WELLS; j++)
            if (lane >= j && lane < WELLS) a[at(lane, j)] -= factor * a[at(j, k)];
        __syncwarp();
    }
    for (int k = 0; k < WELLS; k++) {
        const float value = __shfl_sync(~0u, b, k) / a[at(k, k)];
        if (lane == k) b = value;
        else if (lane > k && lane < WELLS) b -= a[at(lane, k)] * value;
    }
    for (int k = WELLS - 1; k >= 0; k--) {
        const float value = __shfl_sync(~0u, b, k) / a[at(k, k)];
        if (lane == k) b = value;
        else if (lane < k) b -= a[at(k, lane)] * value;
    }
    if (lane < WELLS) weights[place * WELLS + lane] = b;
}

Study kriging("kriging_covariance_rows_28_words_apart", "geostatistics", 40000, "weights of the 28 wells nearest to each of 40000 places, by Cholesky's factors",
    "a lane has a row in shared memory, 28 words from the next: four lanes want the same bank",
    {{"padded", "rows 29 words apart", {"shared_bank_conflicts"}}, {"columns", "a column's words one after another", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 1e-3;
        std::vector<float> covariances(n * SQUARE), towards(n * WELLS);
        std::vector<float> kinds(64 * SQUARE);  // of how wells lie about a place
        for (int kind = 0; kind < 64; kind++) {
            const auto spot = [&](int well, int axis) { return hash(kind * 100u + well * 2 + axis) / 4294967296.0f * 4.0f - 2.0f; };
            for (int i = 0; i < SQUARE; i++) {
                const float dx = spot(i / WELLS, 0) - spot(i % WELLS, 0), dy = spot(i / WELLS, 1) - spot(i % WELLS, 1);
                kinds[kind * SQUARE + i] = std::exp(-std::sqrt(dx * dx + dy * dy)) + (i / WELLS == i % WELLS ? 0.2f : 0.0f);
            }
        }
        for (long p = 0; p < n; p++) {
            const float sill = 0.5f + hash(static_cast<unsigned>(p)) / 4294967296.0f;
            for (int i = 0; i < SQUARE; i++) covariances[p * SQUARE + i] = sill * kinds[(p % 64) * SQUARE + i];
            for (int i = 0; i < WELLS; i++) towards[p * WELLS + i] = sill * (0.1f + 0.8f * hash(static_cast<unsigned>(p * WELLS + i)) / 4294967296.0f);
        }
        const float *from = b.copy(covariances), *right = b.copy(towards);
        float *weights = b.output<float>(n * WELLS);
        const int places = static_cast<int>(n);
        const unsigned grid = blocks(n, 4);
        return {{"flawed", launch(krige<WELLS, 1>, grid, 128, 0, from, right, weights, places)}, {"padded", launch(krige<WELLS + 1, 1>, grid, 128, 0, from, right, weights, places)},
            {"columns", launch(krige<1, WELLS>, grid, 128, 0, from, right, weights, places)}};
    });

// --- where haloes of galaxies are ---

struct Haloes {
    const float4 *bodies;  // halo by halo; w: mass
    const int *starts;
    float *sums;           // of mass times place, and of mass
    const int2 *pieces;    // halo and first body
};
// Adds up what a block's threads found of bodies first + thread, + step, ...
__device__ __forceinline__ float4 moments(const float4 *bodies, int first, int end, int step) {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
    for (int i = first; i < end; i += step) {
        const float4 body = bodies[i];
        sum.x += body.w * body.x, sum.y += body.w * body.y, sum.z += body.w * body.z, sum.w += body.w;
    }
    return sum;
}
template <bool ALONE>
__device__ __forceinline__ void write_moments(const float4 &sum, float *to) {
    __shared__ float parts[4][8];
    const float own[4] = {warp_sum(sum.x), warp_sum(sum.y), warp_sum(sum.z), warp_sum(sum.w)};
    if (threadIdx.x % 32 == 0)
        for (int k = 0; k < 4; k++) parts[k][threadIdx.x / 32] = own[k];
    __syncthreads();
    if (threadIdx.x >= 4) return;
    float total = 0.0f;
    for (int k = 0; k < 8; k++) total += parts[threadIdx.x][k];
    if (ALONE) to[threadIdx.x] = total;
    else atomicAdd(to + threadIdx.x, total);
}
// A halo a block.
__global__ void __launch_bounds__(256) halo_centres(Haloes h) {
    const int halo = blockIdx.x, end = h.starts[halo + 1];
    write_moments<true>(moments(h.bodies, h.starts[halo] + threadIdx.x, end, 256), h.sums + 4 * halo);
}
// A halo's pieces of at most 4096 bodies, each a block.
__global__ void __launch_bounds__(256) halo_centres_pieces(Haloes h) {
    const int2 piece = h.pieces[blockIdx.x];
    const int end = min(h.starts[piece.x + 1], piece.y + 4096);
    write_moments<false>(moments(h.bodies, piece.y + threadIdx.x, end, 256), h.sums + 4 * piece.x);
}
// Sixteen blocks a halo; those that find nothing to do leave.
__global__ void __launch_bounds__(256) halo_centres_shared(Haloes h) {
    const int halo = blockIdx.x, first = h.starts[halo] + blockIdx.y * 256, end = h.starts[halo + 1];
    if (first >= end) return;
    write_moments<false>(moments(h.bodies, first + threadIdx.x, end, 256 * gridDim.y), h.sums + 4 * halo);
}

Study haloes("halo_centres_a_block_a_halo_of_any_size", "cosmology", 8000, "mass and centres of 8000 haloes of some 200 to 120000 bodies",
    "a block a halo, though a few haloes have a hundred times the bodies of most",
    {{"pieces", "pieces of 4096 bodies a block, added by atomics", {"workload_imbalance"}}, {"sixteen_blocks", "sixteen blocks a halo", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        b.tolerance = 1e-3;
        std::vector<int> starts(n + 1);
        std::vector<int2> pieces;
        for (long i = 0; i < n; i++) {
            const double u = (hash(static_cast<unsigned>(i) + 3u) + 1.0) / 4294967297.0;
            const int size = static_cast<int>(std::min(120000.0, 200.0 * std::pow(u, -0.85)));
            starts[i + 1] = starts[i] + size;
            for (int first = starts[i]; first < starts[i + 1]; first += 4096) pieces.push_back(make_int2(static_cast<int>(i), first));
        }
        auto *list = b.allocate<int2>(pieces.size());
        CHECK(cudaMemcpy(list, pieces.data(), pieces.size() * sizeof(int2), cudaMemcpyHostToDevice));
        const auto *bodies = reinterpret_cast<const float4 *>(b.random<float>(4L * starts[n], 0.1, 1.0));
        const Haloes h{bodies, b.copy(starts), b.output<float>(4 * n, true), list};
        return {{"flawed", launch(halo_centres, n, 256, 0, h)}, {"pieces", launch(halo_centres_pieces, pieces.size(), 256, 0, h)}, {"sixteen_blocks", launch(halo_centres_shared, dim3(n, 16), 256, 0, h)}};
    });

// --- quantiles of an ensemble of forecasts ---

constexpr int MOST = 16;

struct Ensemble {
    const float *rain;  // member by member
    float *low, *middle, *high;
    int cells, members;
};
template <typename Values>
__device__ __forceinline__ void write_quantiles(const Ensemble &e, int cell, int members, const Values &values) {
    e.low[cell] = values(members / 10);
    e.middle[cell] = members % 2 ? values(members / 2) : 0.5f * (values(members / 2 - 1) + values(members / 2));
    e.high[cell] = values(members - 1 - members / 10);
}
// A cell a thread.
__global__ void __launch_bounds__(128) quantiles(Ensemble e) {
    const int cell = blockIdx.x * 128 + threadIdx.x;
    if (cell >= e.cells) return;
    float sorted[MOST];
    for (int k = 0; k < e.members; k++) sorted[k] = e.rain[static_cast<size_t>(k) * e.cells + cell];
    for (int last = e.members - 1; last > 0; last--)
        for (int k = 0; k < last; k++) {
            const float a = sorted[k], b = sorted[k + 1];
            sorted[k] = fminf(a, b), sorted[k + 1] = fmaxf(a, b);
        }
    write_quantiles(e, cell, e.members, [&](int k) { return sorted[k]; });
}
// How many members there are is known: everything stays in registers.
template <int MEMBERS>
__global__ void __launch_bounds__(128) quantiles_known(Ensemble e) {
    const int cell = blockIdx.x * 128 + threadIdx.x;
    if (cell >= e.cells) return;
    float sorted[MEMBERS];
#pragma unroll
    for (int k = 0; k < MEMBERS; k++) sorted[k] = e.rain[static_cast<size_t>(k) * e.cells + cell];
#pragma unroll
    for (int round = 0; round < MEMBERS; round++)
#pragma unroll
        for (int k = round % 2; k < MEMBERS - 1; k += 2) {
            const float a = sorted[k], b = sorted[k + 1];
            sorted[k] = fminf(a, b), sorted[k + 1] = fmaxf(a, b);
        }
    write_quantiles(e, cell, MEMBERS, [&](int k) { return sorted[k]; });
}
// What is carried along stays in a register, the rest in shared memory.
__global__ void __launch_bounds__(128) quantiles_shared(Ensemble e) {
    __shared__ float strips[MOST][128];
    const int cell = blockIdx.x * 128 + threadIdx.x;
    if (cell >= e.cells) return;
    for (int k = 0; k < e.members; k++) strips[k][threadIdx.x] = e.rain[static_cast<size_t>(k) * e.cells + cell];
    for (int last = e.members - 1; last > 0; last--) {
        float carried = strips[0][threadIdx.x];
        for (int k = 0; k < last; k++) {
            const float next = strips[k + 1][threadIdx.x];
            strips[k][threadIdx.x] = fminf(carried, next);
            carried = fmaxf(carried, next);
        }
        strips[last][threadIdx.x] = carried;
    }
    write_quantiles(e, cell, e.members, [&](int k) { return strips[k][threadIdx.x]; });
}

Study ensemble("forecast_quantiles_sorted_in_local_memory", "weather", 1 << 21, "three quantiles of the rain that twelve forecasts tell for each of 2097152 cells",
    "twelve values are sorted in an array indexed by loops whose length is not known before",
    {{"known", "the number of members as a template's parameter: a network in registers", {"local_memory"}}, {"shared", "a strip of shared memory, the value carried along in a register", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int MEMBERS = 12;
        const Ensemble e{b.random<float>(n * MEMBERS, 0.0, 30.0), b.output<float>(n), b.output<float>(n), b.output<float>(n), static_cast<int>(n), MEMBERS};
        const unsigned grid = blocks(n, 128);
        return {{"flawed", launch(quantiles, grid, 128, 0, e)}, {"known", launch(quantiles_known<MEMBERS>, grid, 128, 0, e)}, {"shared", launch(quantiles_shared, grid, 128, 0, e)}};
    });

// --- how a climate differs from what is usual ---

struct Climate {
    const float *now;      // times, levels, latitudes, longitudes
    const float *usual;    // months, levels, latitudes, longitudes
    const float *areas;    // of a latitude
    const float *layers;   // thickness of a level
    float *anomalies;
    long long longitudes, latitudes, levels, times;
    int first;             // month of the first time
};
// A value a thread, its place worked out from its number.
template <typename Number>
__global__ void __launch_bounds__(256) anomalies(Climate c) {
    const Number i = static_cast<Number>(blockIdx.x) * blockDim.x + threadIdx.x;
    const Number longitudes = c.longitudes, latitudes = c.latitudes, levels = c.levels;
    if (i >= static_cast<Number>(c.times) * levels * latitudes * longitudes) return;
    const Number longitude = i % longitudes;
    const Number latitude = (i / longitudes) % latitudes;
    const Number level = (i / (longitudes * latitudes)) % levels;
    const Number time = i / (longitudes * latitudes * levels);
    const Number month = (time + c.first) % 12;
    const float usual = c.usual[((month * levels + level) * latitudes + latitude) * longitudes + longitude];
    c.anomalies[i] = (c.now[i] - usual) * c.areas[latitude] * c.layers[level];
}
// A grid of rows: longitudes, latitudes, levels and times.
__global__ void __launch_bounds__(256) anomalies_rows(Climate c) {
    const int longitude = blockIdx.x * 64 + threadIdx.x, latitude = blockIdx.y * 4 + threadIdx.y;
    const int levels = static_cast<int>(c.levels), latitudes = static_cast<int>(c.latitudes), longitudes = static_cast<int>(c.longitudes);
    if (latitude >= latitudes || longitude >= longitudes) return;
    const int level = blockIdx.z % levels, time = blockIdx.z / levels, month = (time + c.first) % 12;
    const size_t i = (static_cast<size_t>(blockIdx.z) * latitudes + latitude) * longitudes + longitude;
    const float usual = c.usual[(static_cast<size_t>(month * levels + level) * latitudes + latitude) * longitudes + longitude];
    c.anomalies[i] = (c.now[i] - usual) * c.areas[latitude] * c.layers[level];
}

Study climate("climate_anomalies_places_by_64_bit_division", "climate", 60, "60 monthly means of 16 x 192 x 320 values less what is usual in their month, weighted by area and layer",
    "each value's longitude, latitude, level and time come of its number by divisions of 64 bits",
    {{"rows", "a grid whose axes are those of the data", {"integer_arithmetic"}}, {"unsigned", "numbers of 32 bits", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr long LONGITUDES = 320, LATITUDES = 192, LEVELS = 16, CELLS = LONGITUDES * LATITUDES * LEVELS;
        const Climate c{b.random<float>(n * CELLS, 230.0, 300.0), b.random<float>(12 * CELLS, 230.0, 300.0), b.random<float>(LATITUDES, 0.0, 1.0), b.random<float>(LEVELS, 0.5, 1.5), b.output<float>(n * CELLS),
            LONGITUDES, LATITUDES, LEVELS, n, 4};
        const unsigned grid = blocks(n * CELLS, 256);
        return {{"flawed", launch(anomalies<long long>, grid, 256, 0, c)}, {"rows", launch(anomalies_rows, dim3(LONGITUDES / 64, LATITUDES / 4, LEVELS * n), dim3(64, 4), 0, c)},
            {"unsigned", launch(anomalies<unsigned>, grid, 256, 0, c)}};
    });

// --- heat in a plate ---

constexpr int ACROSS = 8192, DOWN = 32;  // floats of a row; rows of a block

// 1024 columns a block, four a thread, from row to row.
__global__ void __launch_bounds__(256) heat(const float *__restrict__ now, float *__restrict__ then, int rows, float share) {
    const int lane = threadIdx.x % 32, column = blockIdx.x * 1024 + threadIdx.x * 4, first = blockIdx.y * DOWN;
    const auto row_of = [&](int row) { return *reinterpret_cast<const float4 *>(now + static_cast<size_t>(min(max(row, 0), rows - 1)) * ACROSS + column); };
    float4 above = row_of(first - 1), here = row_of(first);
#pragma unroll 4
    for (int row = first; row < first + DOWN; row++) {
        const float4 below = row_of(row + 1);
        const float *line = now + static_cast<size_t>(row) * ACROSS;
        float left = __shfl_up_sync(~0u, here.w, 1), right = __shfl_down_sync(~0u, here.x, 1);
        if (lane == 0) left = line[max(column - 1, 0)];
        if (lane == 31) right = line[min(column + 4, ACROSS - 1)];
        float4 next;
        next.x = here.x + share * (left + here.y + above.x + below.x - 4.0f * here.x);
        next.y = here.y + share * (here.x + here.z + above.y + below.y - 4.0f * here.y);
        next.z = here.z + share * (here.y + here.w + above.z + below.z - 4.0f * here.z);
        next.w = here.w + share * (here.z + right + above.w + below.w - 4.0f * here.w);
        *reinterpret_cast<float4 *>(then + static_cast<size_t>(row) * ACROSS + column) = next;
        above = here, here = below;
    }
}

Study plate("sound_heat_plate_from_row_to_row", "heat conduction", 4096, "a step of heat in a plate of 4096 x 8192 cells", "", {},
    [](Buffers &b, long n) -> Sides {
        const float *now = b.random<float>(n * ACROSS, 280.0, 320.0);
        return {{"sound", launch(heat, dim3(ACROSS / 1024, n / DOWN), 256, 0, now, b.output<float>(n * ACROSS), static_cast<int>(n), 0.2f)}};
    });

}  // namespace
