// Who does what, and in which order: pairs of a triangle, recurrences, edges of a graph.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "../pairs/pair.cuh"

namespace {

// --- energy of points on a sphere: a logarithm of the distance of each pair ---

constexpr int SOME = 128;

struct Sphere {
    const float4 *points;
    int count;
};
// Points of tile `other` against the thread's own; those up to its own number are left out on the diagonal.
__device__ __forceinline__ float tile_energy(const Sphere &s, float4 own, int other, bool diagonal) {
    __shared__ float4 tile[SOME];
    tile[threadIdx.x] = s.points[other * SOME + threadIdx.x];
    __syncthreads();
    float sum = 0.0f;
#pragma unroll 8
    for (int j = 0; j < SOME; j++) {
        const float x = own.x - tile[j].x, y = own.y - tile[j].y, z = own.z - tile[j].z, square = x * x + y * y + z * z;
        sum += !diagonal || j > static_cast<int>(threadIdx.x) ? __log2f(square) : 0.0f;
    }
    __syncthreads();
    return sum;
}
__device__ __forceinline__ void add_energy(float sum, double *energy) {
    __shared__ float sums[SOME / 32];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(energy, -0.34657359027997264 * (static_cast<double>(sums[0]) + sums[1] + sums[2] + sums[3]));  // half of ln 2
}
// A block has a row of the triangle; with several blocks a row, each has some of its tiles in turn.
__global__ void __launch_bounds__(SOME) sphere_energy(Sphere s, double *__restrict__ energy) {
    const int row = blockIdx.x, tiles = s.count / SOME;
    const float4 own = s.points[row * SOME + threadIdx.x];
    float sum = 0.0f;
    for (int other = row + blockIdx.y; other < tiles; other += gridDim.y) sum += tile_energy(s, own, other, other == row);
    add_energy(sum, energy);
}
// Each row goes on around the ring of tiles, for half of them.
__global__ void __launch_bounds__(SOME) sphere_energy_ring(Sphere s, double *__restrict__ energy) {
    const int row = blockIdx.x, tiles = s.count / SOME;
    const float4 own = s.points[row * SOME + threadIdx.x];
    const int last = tiles / 2 - (row < tiles / 2 ? 0 : 1);  // the opposite tile is one of two rows' alone
    float sum = 0.0f;
    for (int k = 0; k <= last; k++) sum += tile_energy(s, own, (row + k) % tiles, k == 0);
    add_energy(sum, energy);
}

Study sphere("sphere_energy_a_row_of_the_triangle_a_block", "mathematics", 1 << 15, "logarithmic energy of all pairs of 32768 points on a sphere, each pair once",
    "a block has a row of a triangle of tiles: the first has 256 of them, the last one",
    {{"ring", "each row has half of all tiles, around a ring", {"workload_imbalance"}}, {"turns", "eight blocks a row, which have its tiles in turn", {"workload_imbalance", "low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> points(n);
        for (long i = 0; i < n; i++) {
            const double z = 1.0 - (2.0 * i + 1.0) / n, r = std::sqrt(1.0 - z * z), angle = i * 2.39996322972865332;
            points[i] = {static_cast<float>(r * std::cos(angle)), static_cast<float>(r * std::sin(angle)), static_cast<float>(z), 0.0f};
        }
        const Sphere s{b.copy(points), static_cast<int>(n)};
        double *energy = b.output<double>(1, true);
        const unsigned rows = blocks(n, SOME);
        return {{"flawed", launch(sphere_energy, rows, SOME, 0, s, energy)}, {"ring", launch(sphere_energy_ring, rows, SOME, 0, s, energy)}, {"turns", launch(sphere_energy, dim3(rows, 8), SOME, 0, s, energy)}};
    });

// --- Bessel functions by a recurrence from high orders down ---

constexpr int HIGHEST = 48;

// J0 and J1 of several values at once.
template <int VALUES>
__device__ __forceinline__ void bessel(const float (&x)[VALUES], float2 (&out)[VALUES]) {
    float twice[VALUES], above[VALUES], now[VALUES], sum[VALUES];
#pragma unroll
    for (int v = 0; v < VALUES; v++) twice[v] = 2.0f / x[v], above[v] = 0.0f, now[v] = 1e-30f, sum[v] = 0.0f;
#pragma unroll 4
    for (int k = HIGHEST; k > 0; k -= 2) {
#pragma unroll
        for (int v = 0; v < VALUES; v++) {
            const float odd = k * twice[v] * now[v] - above[v];  // order k - 1
            sum[v] += now[v];
            above[v] = odd, now[v] = (k - 1) * twice[v] * odd - now[v];
        }
    }
#pragma unroll
    for (int v = 0; v < VALUES; v++) {
        const float scale = 1.0f / (now[v] + 2.0f * sum[v]);
        out[v] = {now[v] * scale, above[v] * scale};
    }
}
__global__ void __launch_bounds__(128) bessel_functions(const float *__restrict__ x, float2 *__restrict__ out, int count) {
    for (int i = blockIdx.x * 128 + threadIdx.x; i < count; i += gridDim.x * 128) {
        const float one[1] = {x[i]};
        float2 result[1];
        bessel(one, result);
        out[i] = result[0];
    }
}
// Four values of a thread side by side.
__global__ void __launch_bounds__(128) bessel_functions_four(const float4 *__restrict__ x, float4 *__restrict__ out, int count) {
    for (int i = blockIdx.x * 128 + threadIdx.x; i < count / 4; i += gridDim.x * 128) {
        const float4 in = x[i];
        const float four[4] = {in.x, in.y, in.z, in.w};
        float2 result[4];
        bessel(four, result);
        out[2 * i] = {result[0].x, result[0].y, result[1].x, result[1].y};
        out[2 * i + 1] = {result[2].x, result[2].y, result[3].x, result[3].y};
    }
}

Study recurrence("bessel_recurrence_a_value_at_a_time", "numerics", 1 << 23, "Bessel functions of orders 0 and 1 at 8388608 places, by 48 steps down from a high order",
    "a chain of dependent products and sums in each of two blocks of 128 threads a multiprocessor",
    {{"four", "four values of a thread side by side", {"instruction_latency"}}, {"more_blocks", "twelve blocks a multiprocessor", {"low_occupancy", "instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const float *x = b.random<float>(n, 8, 24);
        float *out = b.output<float>(2 * n);
        const int few = multiprocessors() * 2, many = multiprocessors() * 12;
        return {{"flawed", launch(bessel_functions, few, 128, 0, x, reinterpret_cast<float2 *>(out), n)}, {"four", launch(bessel_functions_four, few, 128, 0, reinterpret_cast<const float4 *>(x), reinterpret_cast<float4 *>(out), n)},
            {"more_blocks", launch(bessel_functions, many, 128, 0, x, reinterpret_cast<float2 *>(out), n)}};
    });

// --- scores of edges: products of the features of two nodes ---

constexpr int FEATURES = 128;  // half values: eight a lane of sixteen

struct Edges {
    const uint4 *features;
    const int2 *ends;
    const int *order, *starts;  // by the first node
    int count, nodes;
};
__device__ __forceinline__ float product(uint4 a, uint4 b) {
    const unsigned left[4] = {a.x, a.y, a.z, a.w}, right[4] = {b.x, b.y, b.z, b.w};
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float2 x = __half22float2(*reinterpret_cast<const __half2 *>(&left[k])), y = __half22float2(*reinterpret_cast<const __half2 *>(&right[k]));
        sum += x.x * y.x + x.y * y.y;
    }
    return sum;
}
__device__ __forceinline__ float sum_of_sixteen(float x) {
    for (int d = 8; d; d /= 2) x += __shfl_xor_sync(~0u, x, d);
    return x;
}
template <bool Ordered>
__global__ void __launch_bounds__(256) edge_scores(Edges e, float *__restrict__ out) {
    const int i = (blockIdx.x * 256 + threadIdx.x) / 16, lane = threadIdx.x % 16, own = Ordered ? e.order[i] : i;
    const int2 ends = e.ends[own];
    const float score = sum_of_sixteen(product(e.features[static_cast<size_t>(ends.x) * 16 + lane], e.features[static_cast<size_t>(ends.y) * 16 + lane]));
    if (lane == 0) out[own] = score;
}
// A warp has a node, whose features it keeps, and takes two of its edges at a time.
__global__ void __launch_bounds__(256) edge_scores_nodes(Edges e, float *__restrict__ out) {
    const int node = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 16, second = threadIdx.x / 16 % 2;
    if (node >= e.nodes) return;
    const int first = e.starts[node], end = e.starts[node + 1];
    if (first == end) return;
    const uint4 kept = e.features[static_cast<size_t>(node) * 16 + lane];
#pragma unroll 4
    for (int i = first; i < end; i += 2) {
        const int own = e.order[min(i + second, end - 1)];
        const float score = sum_of_sixteen(product(kept, e.features[static_cast<size_t>(e.ends[own].y) * 16 + lane]));
        if (lane == 0) out[own] = score;
    }
}

Study link_scores("edge_scores_in_the_order_of_arrival", "graphs", 1 << 21, "products of 128 half features of the ends of 2097152 edges between 524288 nodes",
    "edges come in no order, and the rows of features do not fit into the cache: each is fetched again for each edge",
    {{"ordered", "edges in the order of their first nodes, by a list", {"cache_locality"}}, {"nodes", "a warp a node, whose row it keeps, two of its edges at a time", {"cache_locality", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const long nodes = n / 4;
        std::vector<int2> ends(n);
        for (long i = 0; i < n; i++) {
            const unsigned a = hash(static_cast<unsigned>(i)) % nodes, drawn = hash(static_cast<unsigned>(i) + 5);
            ends[i] = {static_cast<int>(a), static_cast<int>((drawn % 4 ? a + drawn / 4 % 5000 : drawn / 4) % nodes)};  // three of four are near
        }
        std::vector<int> order(n), starts(nodes + 1);
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](int a, int c) { return ends[a].x != ends[c].x ? ends[a].x < ends[c].x : a < c; });
        for (const int2 &end : ends) starts[end.x + 1]++;
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        const Edges e{reinterpret_cast<const uint4 *>(b.random<__half>(nodes * FEATURES)), b.copy(ends), b.copy(order), b.copy(starts), static_cast<int>(n), static_cast<int>(nodes)};
        float *out = b.output<float>(n);
        return {{"flawed", launch(edge_scores<false>, blocks(n, 16), 256, 0, e, out)}, {"ordered", launch(edge_scores<true>, blocks(n, 16), 256, 0, e, out)}, {"nodes", launch(edge_scores_nodes, blocks(nodes, 8), 256, 0, e, out)}};
    });

}  // namespace
