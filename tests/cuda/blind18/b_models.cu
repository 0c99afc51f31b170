// Small networks, adapters, joints, sensors, alarms, scores, formulas, variates, series and the sun.
#include <algorithm>
#include <cmath>
#include <utility>

#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- tokens of a picture mixed by one matrix, 128 channels ---

constexpr int TOKENS = 64, CHANNELS = 128;

__global__ void __launch_bounds__(256) mix(const __half *__restrict__ matrix, const __half *__restrict__ x, __half *__restrict__ out) {
    __shared__ float4 m[TOKENS][TOKENS / 4];  // transposed: four rows of a column
    __shared__ __half tile[TOKENS][CHANNELS];
    const int t = threadIdx.x, channel = t % CHANNELS, part = t / CHANNELS * 8;
    const size_t first = static_cast<size_t>(blockIdx.x) * TOKENS * CHANNELS;
    for (int k = t; k < TOKENS * TOKENS; k += 256) reinterpret_cast<float *>(m[k % TOKENS])[k / TOKENS] = __half2float(matrix[k]);
    for (int k = t; k < TOKENS * CHANNELS / 8; k += 256) reinterpret_cast<uint4 *>(tile[0])[k] = reinterpret_cast<const uint4 *>(x + first)[k];
    __syncthreads();
    float sum[32] = {};
    for (int k = 0; k < TOKENS; k++) {
        const float value = __half2float(tile[k][channel]);
#pragma unroll
        for (int r = 0; r < 8; r++) {
            const float4 four = m[k][part + r];
            sum[4 * r] += four.x * value, sum[4 * r + 1] += four.y * value, sum[4 * r + 2] += four.z * value, sum[4 * r + 3] += four.w * value;
        }
    }
#pragma unroll
    for (int r = 0; r < 32; r++) out[first + (part * 4 + r) * CHANNELS + channel] = __float2half(sum[r]);
}
// A warp sixteen channels, all 64 tokens; `each` pictures a block, the matrix kept in fragments.
__global__ void __launch_bounds__(256) mix_tensor(const __half *__restrict__ matrix, const __half *__restrict__ x, __half *__restrict__ out, int each) {
    using namespace nvcuda;
    __shared__ float staged[8][16 * 16];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> m[4][4];
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int k = 0; k < 4; k++) wmma::load_matrix_sync(m[r][k], matrix + r * 16 * TOKENS + k * 16, TOKENS);
    for (int picture = blockIdx.x * each; picture < static_cast<int>(blockIdx.x + 1) * each; picture++) {
        const size_t first = static_cast<size_t>(picture) * TOKENS * CHANNELS + warp * 16;
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[4];
#pragma unroll
        for (int r = 0; r < 4; r++) wmma::fill_fragment(sum[r], 0.0f);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> own;
            wmma::load_matrix_sync(own, x + first + k * 16 * CHANNELS, CHANNELS);
#pragma unroll
            for (int r = 0; r < 4; r++) wmma::mma_sync(sum[r], m[r][k], own, sum[r]);
        }
#pragma unroll
        for (int r = 0; r < 4; r++) {
            wmma::store_matrix_sync(staged[warp], sum[r], 16, wmma::mem_row_major);
            __syncwarp();
            union {
                uint4 all;
                __half one[8];
            } eight;
#pragma unroll
            for (int k = 0; k < 8; k++) eight.one[k] = __float2half(staged[warp][lane * 8 + k]);
            *reinterpret_cast<uint4 *>(out + first + (r * 16 + lane / 2) * CHANNELS + lane % 2 * 8) = eight.all;
            __syncwarp();
        }
    }
}

Study mixing("token_mixing_on_the_fma_pipe", "models", 4096, "64 tokens of 128 channels mixed by a matrix of half values for 4096 pictures",
    "products of half values are added up one by one in single precision",
    {{"tensor", "tiles of 16 x 16 on the tensor cores", {"tensor_cores_idle"}}, {"held", "four pictures a block besides, the matrix kept in registers", {"tensor_cores_idle", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const __half *matrix = b.random<__half>(TOKENS * TOKENS, -0.2, 0.2), *x = b.random<__half>(n * TOKENS * CHANNELS);
        __half *out = b.output<__half>(n * TOKENS * CHANNELS);
        b.tolerance = 2e-3;
        return {{"flawed", launch(mix, n, 256, 0, matrix, x, out)}, {"tensor", launch(mix_tensor, n, 256, 0, matrix, x, out, 1)}, {"held", launch(mix_tensor, n / 4, 256, 0, matrix, x, out, 4)}};
    });

// --- adapters: requests, each with a matrix of its customer's ---

constexpr int RANK = 512, REQUESTS = 16;  // requests of a customer

template <int SOME>
__device__ __forceinline__ void adapted(const uint4 *__restrict__ weights, const __half *__restrict__ x, float *__restrict__ out, const int (&request)[SOME]) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float2 own[SOME][2][4];
#pragma unroll
    for (int s = 0; s < SOME; s++)
#pragma unroll
        for (int p = 0; p < 2; p++) {
            const uint4 eight = reinterpret_cast<const uint4 *>(x + static_cast<size_t>(request[s]) * RANK)[p * 32 + lane];
            const __half2 *two = reinterpret_cast<const __half2 *>(&eight);
#pragma unroll
            for (int k = 0; k < 4; k++) own[s][p][k] = __half22float2(two[k]);
        }
#pragma unroll 2
    for (int row = warp; row < RANK; row += 8) {
        float sum[SOME] = {};
#pragma unroll
        for (int p = 0; p < 2; p++) {
            const uint4 eight = weights[row * (RANK / 8) + p * 32 + lane];
            const __half2 *two = reinterpret_cast<const __half2 *>(&eight);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const float2 w = __half22float2(two[k]);
#pragma unroll
                for (int s = 0; s < SOME; s++) sum[s] += w.x * own[s][p][k].x + w.y * own[s][p][k].y;
            }
        }
#pragma unroll
        for (int s = 0; s < SOME; s++) {
            const float total = warp_sum(sum[s]);
            if (lane == 0) out[static_cast<size_t>(request[s]) * RANK + row] = total;
        }
    }
}
__global__ void __launch_bounds__(256) adapters(const uint4 *__restrict__ weights, const int *__restrict__ customers, const __half *__restrict__ x, float *__restrict__ out) {
    const int request[1] = {static_cast<int>(blockIdx.x)};
    adapted<1>(weights + static_cast<size_t>(customers[request[0]]) * RANK * (RANK / 8), x, out, request);
}
__global__ void __launch_bounds__(256) adapters_sorted(const uint4 *__restrict__ weights, const int *__restrict__ customers, const int *__restrict__ order, const __half *__restrict__ x, float *__restrict__ out) {
    const int request[1] = {order[blockIdx.x]};
    adapted<1>(weights + static_cast<size_t>(customers[request[0]]) * RANK * (RANK / 8), x, out, request);
}
__global__ void __launch_bounds__(256) adapters_fours(const uint4 *__restrict__ weights, const int *__restrict__ customers, const int *__restrict__ order, const __half *__restrict__ x, float *__restrict__ out) {
    const int request[4] = {order[blockIdx.x * 4], order[blockIdx.x * 4 + 1], order[blockIdx.x * 4 + 2], order[blockIdx.x * 4 + 3]};
    adapted<4>(weights + static_cast<size_t>(customers[request[0]]) * RANK * (RANK / 8), x, out, request);
}

Study serving("adapters_in_the_order_of_requests", "serving", 512, "8192 requests, each times one of 512 customers' matrices of 512 x 512 half values",
    "requests come mixed: a customer's matrix has left the cache when it is wanted again",
    {{"sorted", "requests taken customer by customer", {"cache_locality"}}, {"fours", "four requests of a customer a block", {"cache_locality", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> customers(n * REQUESTS), order(n * REQUESTS);
        for (int i = 0; i < n * REQUESTS; i++) customers[i] = static_cast<int>(i % n), order[i] = i;
        for (size_t i = customers.size() - 1; i > 0; i--) std::swap(customers[i], customers[hash(static_cast<unsigned>(i)) % (i + 1)]);
        std::stable_sort(order.begin(), order.end(), [&](int a, int z) { return customers[a] < customers[z]; });
        const int *of = b.copy(customers), *sorted = b.copy(order);
        const uint4 *weights = reinterpret_cast<const uint4 *>(b.random<__half>(n * RANK * RANK, -0.1, 0.1));
        const __half *x = b.random<__half>(n * REQUESTS * RANK);
        float *out = b.output<float>(n * REQUESTS * RANK);
        b.tolerance = 1e-3;
        return {{"flawed", launch(adapters, n * REQUESTS, 256, 0, weights, of, x, out)}, {"sorted", launch(adapters_sorted, n * REQUESTS, 256, 0, weights, of, sorted, x, out)},
            {"fours", launch(adapters_fours, n * REQUESTS / 4, 256, 0, weights, of, sorted, x, out)}};
    });

// --- turns of a gyroscope's samples, multiplied ---

__device__ __forceinline__ float4 turned(float4 a, float4 z) {
    return make_float4(a.w * z.x + a.x * z.w + a.y * z.z - a.z * z.y, a.w * z.y - a.x * z.z + a.y * z.w + a.z * z.x, a.w * z.z + a.x * z.y - a.y * z.x + a.z * z.w, a.w * z.w - a.x * z.x - a.y * z.y - a.z * z.z);
}
__global__ void __launch_bounds__(128) turns(const float4 *__restrict__ samples, float4 *__restrict__ out, int sensors, int steps) {
    const int sensor = blockIdx.x * 128 + threadIdx.x;
    if (sensor >= sensors) return;
    float4 total = make_float4(0.0f, 0.0f, 0.0f, 1.0f);
    for (int k = 0; k < steps; k++) total = turned(total, samples[static_cast<size_t>(k) * sensors + sensor]);
    out[sensor] = total;
}
// Four pieces of the time at once, multiplied in the end.
__global__ void __launch_bounds__(128) turns_chains(const float4 *__restrict__ samples, float4 *__restrict__ out, int sensors, int steps) {
    const int sensor = blockIdx.x * 128 + threadIdx.x, each = steps / 4;
    if (sensor >= sensors) return;
    float4 total[4];
#pragma unroll
    for (int p = 0; p < 4; p++) total[p] = make_float4(0.0f, 0.0f, 0.0f, 1.0f);
#pragma unroll 2
    for (int k = 0; k < each; k++)
#pragma unroll
        for (int p = 0; p < 4; p++) total[p] = turned(total[p], samples[static_cast<size_t>(p * each + k) * sensors + sensor]);
    out[sensor] = turned(turned(total[0], total[1]), turned(total[2], total[3]));
}
// A warp's lanes are sensors, its block's sixteen warps pieces of the time.
__global__ void __launch_bounds__(512) turns_pieces(const float4 *__restrict__ samples, float4 *__restrict__ out, int sensors, int steps) {
    __shared__ float4 parts[16][32];
    const int lane = threadIdx.x % 32, piece = threadIdx.x / 32, sensor = blockIdx.x * 32 + lane, each = steps / 16;
    float4 total = make_float4(0.0f, 0.0f, 0.0f, 1.0f);
    for (int k = piece * each; k < (piece + 1) * each; k++) total = turned(total, samples[static_cast<size_t>(k) * sensors + sensor]);
    parts[piece][lane] = total;
    __syncthreads();
    if (piece) return;
    for (int p = 1; p < 16; p++) total = turned(total, parts[p][lane]);
    out[sensor] = total;
}

Study gyroscopes("gyroscope_turns_one_after_another", "robotics", 4096, "1024 turns of each of 4096 gyroscopes multiplied",
    "a thread a gyroscope: few threads, each with one chain of products",
    {{"chains", "four pieces of the time at once in a thread", {"instruction_latency", "memory_latency"}}, {"pieces", "sixteen warps for pieces of the time", {"small_grid", "instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int steps = 1024;
        std::vector<float4> list(n * steps);
        for (size_t i = 0; i < list.size(); i++) {
            const unsigned r = hash(static_cast<unsigned>(i));
            const float x = (r & 1023) * 1e-4f - 0.05f, y = (r >> 10 & 1023) * 1e-4f - 0.05f, z = (r >> 20 & 1023) * 1e-4f - 0.05f;
            list[i] = {x, y, z, sqrtf(1.0f - x * x - y * y - z * z)};
        }
        const float4 *samples = b.copy(list);
        float *out = b.output<float>(n * 4);
        float4 *totals = reinterpret_cast<float4 *>(out);
        b.tolerance = 1e-3;
        return {{"flawed", launch(turns, blocks(n, 128), 128, 0, samples, totals, n, steps)}, {"chains", launch(turns_chains, blocks(n, 128), 128, 0, samples, totals, n, steps)},
            {"pieces", launch(turns_pieces, n / 32, 512, 0, samples, totals, n, steps)}};
    });

// --- least, largest and sum of the samples of 24 machines ---

// Samples are positive: their bits have their order. The least is kept as what it lacks to the largest number.
__device__ __forceinline__ void store_range(float least, float most, float sum, int *ranges, float *sums, int machine) {
    __shared__ float parts[3][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    least = -warp_max(-least), most = warp_max(most), sum = warp_sum(sum);
    if (lane == 0) parts[0][warp] = least, parts[1][warp] = most, parts[2][warp] = sum;
    __syncthreads();
    if (warp) return;
    least = -warp_max(lane < warps ? -parts[0][lane] : -3e38f), most = warp_max(lane < warps ? parts[1][lane] : 0.0f), sum = warp_sum(lane < warps ? parts[2][lane] : 0.0f);
    if (lane == 0) {
        atomicMax(ranges + machine * 2, 0x7f000000 - __float_as_int(least));
        atomicMax(ranges + machine * 2 + 1, __float_as_int(most));
        atomicAdd(sums + machine, sum);
    }
}
__global__ void __launch_bounds__(512) ranges(const float *__restrict__ samples, int *__restrict__ ranges, float *__restrict__ sums, int count) {
    const size_t end = static_cast<size_t>(count) * (blockIdx.x + 1);
    float least = 3e38f, most = 0.0f, sum = 0.0f;
    for (size_t i = static_cast<size_t>(count) * blockIdx.x + threadIdx.x; i < end; i += 512) {
        const float v = samples[i];
        least = fminf(least, v), most = fmaxf(most, v), sum += v;
    }
    store_range(least, most, sum, ranges, sums, blockIdx.x);
}
__global__ void __launch_bounds__(512) ranges_pieces(const float *__restrict__ samples, int *__restrict__ ranges, float *__restrict__ sums, int count) {
    const int each = count / gridDim.y;
    const float *own = samples + static_cast<size_t>(count) * blockIdx.x + blockIdx.y * each;
    float least = 3e38f, most = 0.0f, sum = 0.0f;
#pragma unroll 4
    for (int i = threadIdx.x; i < each; i += 512) {
        const float v = own[i];
        least = fminf(least, v), most = fmaxf(most, v), sum += v;
    }
    store_range(least, most, sum, ranges, sums, blockIdx.x);
}
__global__ void __launch_bounds__(1024) ranges_vectors(const float4 *__restrict__ samples, int *__restrict__ ranges, float *__restrict__ sums, int fours) {
    const float4 *own = samples + static_cast<size_t>(fours) * blockIdx.x;
    float least = 3e38f, most = 0.0f, sum = 0.0f;
#pragma unroll 4
    for (int i = threadIdx.x; i < fours; i += 1024) {
        const float4 v = own[i];
        least = fminf(fminf(fminf(least, v.x), fminf(v.y, v.z)), v.w), most = fmaxf(fmaxf(fmaxf(most, v.x), fmaxf(v.y, v.z)), v.w), sum += v.x + v.y + (v.z + v.w);
    }
    store_range(least, most, sum, ranges, sums, blockIdx.x);
}

Study machines("ranges_of_24_machines_a_block_each", "time series", 1 << 19, "least, largest and sum of 524288 samples of each of 24 machines",
    "a block for each of 24 machines: most multiprocessors have nothing to do",
    {{"pieces", "32 blocks a machine", {"small_grid"}}, {"vectors", "blocks of 1024 threads with vectors of four samples, four of them under way", {"memory_latency", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *samples = b.random<float>(n * 24, 0.5, 7.5);
        int *found = b.output<int>(48, true);
        float *sums = b.output<float>(24, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(ranges, 24, 512, 0, samples, found, sums, n)}, {"pieces", launch(ranges_pieces, dim3(24, 32), 512, 0, samples, found, sums, n)},
            {"vectors", launch(ranges_vectors, 24, 1024, 0, reinterpret_cast<const float4 *>(samples), found, sums, n / 4)}};
    });

// --- when a sensor first goes beyond its limit ---

constexpr int MOMENTS = 512;

__global__ void __launch_bounds__(128) alarms(const float *__restrict__ samples, int *__restrict__ out, int sensors, float limit) {
    const int sensor = blockIdx.x * 128 + threadIdx.x;
    if (sensor >= sensors) return;
    int k = 0;
    while (k < MOMENTS && samples[static_cast<size_t>(k) * sensors + sensor] < limit) k++;
    out[sensor] = k;
}
__global__ void __launch_bounds__(128) alarms_sixteens(const float *__restrict__ samples, int *__restrict__ out, int sensors, float limit) {
    const int sensor = blockIdx.x * 128 + threadIdx.x;
    if (sensor >= sensors) return;
    int found = MOMENTS;
    for (int first = 0; first < MOMENTS && found == MOMENTS; first += 16) {
        float v[16];
#pragma unroll
        for (int k = 0; k < 16; k++) v[k] = samples[static_cast<size_t>(first + k) * sensors + sensor];
#pragma unroll
        for (int k = 15; k >= 0; k--) found = v[k] < limit ? found : first + k;
    }
    out[sensor] = found;
}
// Eight warps for 32 sensors, each with its piece of the time.
__global__ void __launch_bounds__(256) alarms_pieces(const float *__restrict__ samples, int *__restrict__ out, int sensors, float limit) {
    __shared__ int found[32];
    const int lane = threadIdx.x % 32, piece = threadIdx.x / 32, sensor = blockIdx.x * 32 + lane, end = (piece + 1) * (MOMENTS / 8);
    if (piece == 0) found[lane] = MOMENTS;
    __syncthreads();
    int k = piece * (MOMENTS / 8);
    while (k < end && samples[static_cast<size_t>(k) * sensors + sensor] < limit) k++;
    if (k < end) atomicMin(&found[lane], k);
    __syncthreads();
    if (piece == 0) out[sensor] = found[lane];
}

Study limits("alarms_one_sample_at_a_time", "time series", 32768, "the first of 512 samples beyond a limit for each of 32768 sensors",
    "the next sample is asked for when the last one has come and was below the limit",
    {{"sixteens", "sixteen samples at a time", {"memory_latency"}}, {"pieces", "eight warps for pieces of the time", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const float *samples = b.random<float>(n * MOMENTS, 0.0, 1.0);
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(alarms, blocks(n, 128), 128, 0, samples, out, n, 0.997f)}, {"sixteens", launch(alarms_sixteens, blocks(n, 128), 128, 0, samples, out, n, 0.997f)},
            {"pieces", launch(alarms_pieces, n / 32, 256, 0, samples, out, n, 0.997f)}};
    });

// --- lists of 64 scores sorted by exchanges of neighbours ---

constexpr int SCORES = 64;

__global__ void __launch_bounds__(SCORES) sort_scores(const float *__restrict__ scores, float *__restrict__ out) {
    __shared__ float v[SCORES];
    const int t = threadIdx.x;
    v[t] = scores[blockIdx.x * SCORES + t];
    __syncthreads();
    for (int phase = 0; phase < SCORES; phase++) {
        const int left = 2 * t + (phase & 1);
        if (left + 1 < SCORES) {
            const float a = v[left], z = v[left + 1];
            v[left] = fminf(a, z), v[left + 1] = fmaxf(a, z);
        }
        __syncthreads();
    }
    out[blockIdx.x * SCORES + t] = v[t];
}
// Two scores a lane: one phase within the lane, one with the neighbour's by shuffles.
__global__ void __launch_bounds__(128) sort_scores_lanes(const float2 *__restrict__ scores, float2 *__restrict__ out) {
    const int i = blockIdx.x * 128 + threadIdx.x, lane = threadIdx.x % 32;
    const float2 own = scores[i];
    float low = own.x, high = own.y;
    for (int phase = 0; phase < SCORES; phase += 2) {
        const float least = fminf(low, high), most = fmaxf(low, high);
        const float above = __shfl_down_sync(~0u, least, 1), below = __shfl_up_sync(~0u, most, 1);
        low = lane == 0 ? least : fmaxf(below, least), high = lane == 31 ? most : fminf(most, above);
    }
    out[i] = make_float2(low, high);
}
// Bitonic: 21 steps in place of 64.
__global__ void __launch_bounds__(128) sort_scores_bitonic(const float *__restrict__ scores, float *__restrict__ out) {
    const int lane = threadIdx.x % 32, first = (blockIdx.x * 128 + threadIdx.x) / 32 * SCORES;
    float v[2] = {scores[first + lane], scores[first + 32 + lane]};
#pragma unroll
    for (int size = 2; size <= SCORES; size *= 2)
#pragma unroll
        for (int step = size / 2; step > 0; step /= 2) {
            if (step == 32) {
                const float a = v[0], z = v[1];
                v[0] = fminf(a, z), v[1] = fmaxf(a, z);
                continue;
            }
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int i = r * 32 + lane;
                const float other = __shfl_xor_sync(~0u, v[r], step);
                const bool least = ((i & step) == 0) == ((i & size) == 0);
                v[r] = least ? fminf(v[r], other) : fmaxf(v[r], other);
            }
        }
    out[first + lane] = v[0], out[first + 32 + lane] = v[1];
}

Study scores("scores_exchanged_with_a_barrier_each_phase", "recommenders", 65536, "65536 lists of 64 scores sorted",
    "64 phases of exchanges in shared memory, each with a barrier of the block",
    {{"lanes", "two scores a lane, exchanged by shuffles", {"barriers"}}, {"bitonic", "21 steps of a bitonic sort by shuffles", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const float *in = b.random<float>(n * SCORES);
        float *out = b.output<float>(n * SCORES);
        b.tolerance = 0.0;
        return {{"flawed", launch(sort_scores, n, SCORES, 0, in, out)}, {"lanes", launch(sort_scores_lanes, n / 4, 128, 0, reinterpret_cast<const float2 *>(in), reinterpret_cast<float2 *>(out))},
            {"bitonic", launch(sort_scores_bitonic, n / 4, 128, 0, in, out)}};
    });

// --- a formula that is known at run time, worked out for each row of a table ---

constexpr int DEPTH = 20, COLUMNS = 4;

// Below COLUMNS: push that column; from there on: what is done with the two on top.
__device__ __forceinline__ float joined(int what, float a, float z) {
    switch (what) {
    case COLUMNS: return 0.5f * (a + z);
    case COLUMNS + 1: return 0.5f * (a - z);
    case COLUMNS + 2: return a * z;
    case COLUMNS + 3: return fminf(a, z);
    default: return fmaxf(a, z);
    }
}
__global__ void __launch_bounds__(256) formulas(const float *__restrict__ table, const int *__restrict__ steps, int length, float *__restrict__ out, int rows) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row >= rows) return;
    float stack[DEPTH];
    int top = 0;
    for (int k = 0; k < length; k++) {
        const int what = steps[k];
        if (what < COLUMNS) stack[top++] = table[static_cast<size_t>(what) * rows + row];
        else top--, stack[top - 1] = joined(what, stack[top - 1], stack[top]);
    }
    out[row] = stack[0];
}
__global__ void __launch_bounds__(256) formulas_shared(const float *__restrict__ table, const int *__restrict__ steps, int length, float *__restrict__ out, int rows) {
    __shared__ float stack[DEPTH][256];
    const int t = threadIdx.x, row = blockIdx.x * 256 + t;
    if (row >= rows) return;
    int top = 0;
    for (int k = 0; k < length; k++) {
        const int what = steps[k];
        if (what < COLUMNS) stack[top++][t] = table[static_cast<size_t>(what) * rows + row];
        else top--, stack[top - 1][t] = joined(what, stack[top - 1][t], stack[top][t]);
    }
    out[row] = stack[0][t];
}
// The stack moves through registers: its top is always the first of them.
__global__ void __launch_bounds__(256) formulas_registers(const float *__restrict__ table, const int *__restrict__ steps, int length, float *__restrict__ out, int rows) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row >= rows) return;
    float stack[DEPTH] = {};
    for (int k = 0; k < length; k++) {
        const int what = steps[k];
        if (what < COLUMNS) {
#pragma unroll
            for (int d = DEPTH - 1; d > 0; d--) stack[d] = stack[d - 1];
            stack[0] = table[static_cast<size_t>(what) * rows + row];
        } else {
            stack[0] = joined(what, stack[1], stack[0]);
#pragma unroll
            for (int d = 1; d < DEPTH - 1; d++) stack[d] = stack[d + 1];
        }
    }
    out[row] = stack[0];
}

Study formula("formula_with_its_stack_in_local", "databases", 1 << 22, "a formula of 63 steps over four columns for 4194304 rows",
    "the stack is an array with an index known at run time: it lies in local memory",
    {{"shared", "the stack in shared memory", {"local_memory"}}, {"registers", "the stack moves through registers", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> list;
        int depth = 0, left = 32;
        for (unsigned k = 0; list.size() < 63; k++) {
            const bool push = depth < 2 ? left > 0 : left > 0 && depth < DEPTH && hash(k) % 5 < 3;
            if (push) list.push_back(static_cast<int>(hash(k + 100) % COLUMNS)), depth++, left--;
            else list.push_back(COLUMNS + static_cast<int>(hash(k + 200) % 5)), depth--;
        }
        const int *steps = b.copy(list);
        const float *table = b.random<float>(n * COLUMNS, 0.5, 1.5);
        float *out = b.output<float>(n);
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, 256), 256, 0, table, steps, 63, out, n); };
        return {{"flawed", side(formulas)}, {"shared", side(formulas_shared)}, {"registers", side(formulas_registers)}};
    });

// --- level spacings drawn by trial ---

constexpr int DRAWS = 16;

__device__ __forceinline__ bool tried(unsigned draw, int trial, float &x) {
    const unsigned r = hash(draw * 64u + trial);
    x = (r & 65535) * (4.0f / 65536.0f);
    return (r >> 16) * (1.0f / 65536.0f) < 1.9f * x * expf(-0.7f * x * x);
}
__global__ void __launch_bounds__(256) spacings(float *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    float sum = 0.0f;
    for (int draw = 0; draw < DRAWS; draw++) {
        int trial = 0;
        float x;
        while (!tried(i * DRAWS + draw, trial, x)) trial++;
        sum += x * x;
    }
    out[i] = sum;
}
// One loop over trials: a lane whose trial succeeds goes on with its next draw.
__global__ void __launch_bounds__(256) spacings_flat(float *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    float sum = 0.0f, x;
    int draw = 0, trial = 0;
    while (draw < DRAWS) {
        if (tried(i * DRAWS + draw, trial, x)) sum += x * x, draw++, trial = 0;
        else trial++;
    }
    out[i] = sum;
}
// The same with two trials a turn.
__global__ void __launch_bounds__(256) spacings_two(float *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    float sum = 0.0f, x, y;
    int draw = 0, trial = 0;
    while (draw < DRAWS) {
        const bool first = tried(i * DRAWS + draw, trial, x), second = tried(i * DRAWS + draw, trial + 1, y);
        if (first || second) sum += first ? x * x : y * y;
        draw += first || second, trial = first || second ? 0 : trial + 2;
    }
    out[i] = sum;
}

Study variates("level_spacings_lanes_wait_for_the_unlucky", "physics", 1 << 20, "sixteen spacings of levels for each of 1048576 threads, drawn by trial",
    "at each draw a warp tries until the unluckiest of its lanes has succeeded",
    {{"flat", "a lane goes on with its next draw in the same loop", {"branch_divergence"}}, {"two", "the same with two trials a turn", {"branch_divergence", "instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        float *out = b.output<float>(n);
        return {{"flawed", launch(spacings, blocks(n, 256), 256, 0, out, n)}, {"flat", launch(spacings_flat, blocks(n, 256), 256, 0, out, n)}, {"two", launch(spacings_two, blocks(n, 256), 256, 0, out, n)}};
    });

// --- a long series of the Moon's place ---

constexpr int TERMS = 2048;

__host__ __device__ constexpr unsigned drawn(unsigned x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return (x ^ x >> 16) >> 16;
}
__host__ __device__ constexpr float rate(int k) { return static_cast<float>(drawn(k * 3u)) * (0.5f / 65536.0f); }
__host__ __device__ constexpr float phase_of(int k) { return static_cast<float>(drawn(k * 3u + 1u)) * (1.0f / 65536.0f); }
__host__ __device__ constexpr float size_of(int k) { return static_cast<float>(drawn(k * 3u + 2u)) * (1.0f / 65536.0f); }

// A sine of so many turns, as two parabolas.
__device__ __forceinline__ float wave(float turns) {
    const float off = turns - ((turns + 12582912.0f) - 12582912.0f);  // the sum has no bits behind the point
    return off * (8.0f - 16.0f * fabsf(off));
}

__constant__ float4 SERIES[TERMS];

template <int K>
__device__ __forceinline__ float term(float t) {
    constexpr float fast = rate(K), start = phase_of(K), size = size_of(K);
    return size * wave(fast * t + start);
}
template <int FIRST, int... K>
__device__ __forceinline__ float terms(float t, std::integer_sequence<int, K...>) {
    float sum = 0.0f;
    ((sum += term<FIRST + K>(t)), ...);
    return sum;
}
template <int... PIECE>
__device__ __forceinline__ float all_terms(float t, std::integer_sequence<int, PIECE...>) {
    float sum = 0.0f;
    ((sum += terms<PIECE * 128>(t, std::make_integer_sequence<int, 128>())), ...);
    return sum;
}
__global__ void __launch_bounds__(128) moon(const float *__restrict__ times, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < count) out[i] = all_terms(times[i], std::make_integer_sequence<int, TERMS / 128>());
}
__global__ void __launch_bounds__(128) moon_table(const float *__restrict__ times, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const float t = times[i];
    float sum = 0.0f;
#pragma unroll 8
    for (int k = 0; k < TERMS; k++) sum += SERIES[k].z * wave(SERIES[k].x * t + SERIES[k].y);
    out[i] = sum;
}
__global__ void __launch_bounds__(128) moon_shared(const float4 *__restrict__ series, const float *__restrict__ times, float *__restrict__ out, int count) {
    __shared__ float4 own[512];
    const int i = blockIdx.x * 128 + threadIdx.x;
    const float t = times[min(i, count - 1)];
    float sum = 0.0f;
    for (int first = 0; first < TERMS; first += 512) {
        for (int k = threadIdx.x; k < 512; k += 128) own[k] = series[first + k];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < 512; k++) sum += own[k].z * wave(own[k].x * t + own[k].y);
        __syncthreads();
    }
    if (i < count) out[i] = sum;
}

Study series("moon_series_written_out_by_a_generator", "astronomy", 1 << 19, "a series of 2048 terms at 524288 times",
    "each term is written out with its numbers: the code does not fit the instruction cache",
    {{"table", "a loop over a table in constant memory", {"instruction_cache"}}, {"shared", "a loop over pieces of the table in shared memory", {"instruction_cache"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> list(TERMS);
        for (int k = 0; k < TERMS; k++) list[k] = {rate(k), phase_of(k), size_of(k), 0.0f};
        CHECK(cudaMemcpyToSymbol(SERIES, list.data(), sizeof(float4) * TERMS));
        const float4 *terms = b.copy(list);
        const float *times = b.random<float>(n, 0.0, 100.0);
        float *out = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(moon, blocks(n, 128), 128, 0, times, out, n)}, {"table", launch(moon_table, blocks(n, 128), 128, 0, times, out, n)}, {"shared", launch(moon_shared, blocks(n, 128), 128, 0, terms, times, out, n)}};
    });

// --- the sun's energy on slopes through a year ---

constexpr int HOURS = 288;  // 24 of one day a month

// Where the sun is: east, north, up.
__host__ __device__ __forceinline__ float4 sun_at(int k, float latitude) {
    const float tilt = 0.409f * sinf(0.5236f * (k / 24) - 1.39f), angle = 0.2618f * (k % 24) - 3.1416f;
    const float up = sinf(latitude) * sinf(tilt) + cosf(latitude) * cosf(tilt) * cosf(angle);
    return make_float4(-cosf(tilt) * sinf(angle), cosf(latitude) * sinf(tilt) - sinf(latitude) * cosf(tilt) * cosf(angle), up, up > 0.0f ? expf(-0.2f / (up + 0.05f)) : 0.0f);
}
__global__ void __launch_bounds__(256) sunshine(const float4 *__restrict__ slopes, float *__restrict__ out, int count, float latitude) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 slope = slopes[i];
    float sum = 0.0f;
    for (int k = 0; k < HOURS; k++) {
        const float4 sun = sun_at(k, latitude);
        sum += sun.w * fmaxf(0.0f, slope.x * sun.x + slope.y * sun.y + slope.z * sun.z);
    }
    out[i] = sum;
}
__global__ void __launch_bounds__(256) sunshine_shared(const float4 *__restrict__ slopes, float *__restrict__ out, int count, float latitude) {
    __shared__ float4 suns[HOURS];
    for (int k = threadIdx.x; k < HOURS; k += 256) suns[k] = sun_at(k, latitude);
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 slope = slopes[i];
    float sum = 0.0f;
#pragma unroll 4
    for (int k = 0; k < HOURS; k++) sum += suns[k].w * fmaxf(0.0f, slope.x * suns[k].x + slope.y * suns[k].y + slope.z * suns[k].z);
    out[i] = sum;
}
// Places of the sun made by the host, those above the horizon alone.
__global__ void __launch_bounds__(256) sunshine_listed(const float4 *__restrict__ slopes, const float4 *__restrict__ suns, float *__restrict__ out, int count, int days) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 slope = slopes[i];
    float sum = 0.0f;
#pragma unroll 4
    for (int k = 0; k < days; k++) {
        const float4 sun = suns[k];
        sum += sun.w * fmaxf(0.0f, slope.x * sun.x + slope.y * sun.y + slope.z * sun.z);
    }
    out[i] = sum;
}

Study sun("sunshine_places_of_the_sun_for_each_cell", "geography", 1 << 19, "the sun's energy on 524288 slopes at 288 hours of a year",
    "the sun's place at an hour, sines and cosines, is worked out again for each cell",
    {{"shared", "places once a block, in shared memory", {"expensive_math"}}, {"listed", "a list of the hours of light, made by the host", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> light;
        for (int k = 0; k < HOURS; k++) {
            const float4 at = sun_at(k, 0.8f);
            if (at.w > 0.0f) light.push_back(at);
        }
        const float4 *suns = b.copy(light);
        const float4 *slopes = reinterpret_cast<const float4 *>(b.random<float>(n * 4, 0.0, 1.0));
        float *out = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(sunshine, blocks(n, 256), 256, 0, slopes, out, n, 0.8f)}, {"shared", launch(sunshine_shared, blocks(n, 256), 256, 0, slopes, out, n, 0.8f)},
            {"listed", launch(sunshine_listed, blocks(n, 256), 256, 0, slopes, suns, out, n, light.size())}};
    });

}  // namespace
