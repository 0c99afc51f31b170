// 15: betweenness, side "eight"; three arrays as one of records of 16 bytes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s: line %d\n", cudaGetErrorString(e), __LINE__); return 1; } } while (0)

__host__ __device__ __forceinline__ unsigned hash(unsigned x) {
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
__global__ void fill(float *data, size_t count, float low, float high, unsigned seed) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) data[i] = low + (high - low) * (hash(unsigned(i) ^ seed * 0x9e3779b9u) >> 8) / 16777216.f;
}
static double difference(const std::vector<float> &right, const std::vector<float> &other) {
    double most = 0.0;
    for (size_t i = 0; i < right.size(); ++i) {
        const double d = right[i] == other[i] ? 0.0 : std::abs(double(right[i]) - other[i]) / std::max(std::abs(double(right[i])), 1e-30);
        if (!(d <= most)) most = d;  // NaN, too
        if (std::isnan(most)) break;
    }
    return most;
}
// Median of 50 launches after 10, each behind a flush of the L2 cache and `prepare`.
static float median_time(const std::function<void()> &prepare, const std::function<void()> &run, void *flush) {
    cudaEvent_t a, b;
    cudaEventCreate(&a), cudaEventCreate(&b);
    std::vector<float> times;
    for (int i = 0; i < 60; ++i) {
        prepare(), cudaMemsetAsync(flush, 0, 128 << 20);
        cudaEventRecord(a), run(), cudaEventRecord(b), cudaEventSynchronize(b);
        float ms = 0.f;
        cudaEventElapsedTime(&ms, a, b);
        if (i > 9) times.push_back(ms * 1e3f);
    }
    cudaEventDestroy(a), cudaEventDestroy(b);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}
struct Form { const char *name; std::function<void()> run; double diff; };

struct Network {
    const int *sources, *targets, *depths;
    const float *paths, *passed;
    int level;
};
__device__ __forceinline__ float passed_back(const Network &net, int source, int target) {
    if (net.depths[source] != net.level || net.depths[target] != net.level + 1) return 0.f;
    return net.paths[source] / net.paths[target] * (1.f + net.passed[target]);
}
__device__ __forceinline__ void add_where_source_changes(float *gathered, const int (&source)[8], const float (&share)[8]) {
    float sum = share[0];
#pragma unroll
    for (int k = 1; k < 8; ++k) {
        if (source[k] != source[k - 1]) {
            if (sum != 0.f) atomicAdd(gathered + source[k - 1], sum);
            sum = 0.f;
        }
        sum += share[k];
    }
    if (sum != 0.f) atomicAdd(gathered + source[7], sum);
}
__global__ void __launch_bounds__(256) pass_back_eight(Network net, float *gathered, int edges) {
    const int first = (blockIdx.x * 256 + threadIdx.x) * 8;
    if (first >= edges) return;
    const int4 *s = reinterpret_cast<const int4 *>(net.sources + first), *t = reinterpret_cast<const int4 *>(net.targets + first);
    const int4 s0 = s[0], s1 = s[1], t0 = t[0], t1 = t[1];
    const int source[8] = {s0.x, s0.y, s0.z, s0.w, s1.x, s1.y, s1.z, s1.w}, target[8] = {t0.x, t0.y, t0.z, t0.w, t1.x, t1.y, t1.z, t1.w};
    float share[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) share[k] = passed_back(net, source[k], target[k]);
    add_where_source_changes(gathered, source, share);
}

// A vertex: depth, paths, passed, nothing; fetched in one access.
struct Vertex { int depth; float paths, passed; };
__device__ __forceinline__ Vertex vertex_of(const int4 *vertices, int which) {
    const int4 v = __ldg(vertices + which);
    return {v.x, __int_as_float(v.y), __int_as_float(v.z)};
}
__global__ void __launch_bounds__(256) pack(Network net, int4 *vertices, int count) {
    const int v = blockIdx.x * 256 + threadIdx.x;
    if (v < count) vertices[v] = make_int4(net.depths[v], __float_as_int(net.paths[v]), __float_as_int(net.passed[v]), 0);
}
enum How { BRANCHES, ALL_AT_ONCE, TARGETS_ONLY, SOURCE_ONCE };
// BRANCHES: as the original asks, source first. ALL_AT_ONCE: all records in flight before the first is looked at.
// TARGETS_ONLY: the sources, sorted, keep their arrays. SOURCE_ONCE: a source's record is fetched where the source changes.
template <How HOW>
__global__ void __launch_bounds__(256) pass_back_records(Network net, const int4 *__restrict__ vertices, float *gathered, int edges) {
    const int first = (blockIdx.x * 256 + threadIdx.x) * 8;
    if (first >= edges) return;
    const int4 *s = reinterpret_cast<const int4 *>(net.sources + first), *t = reinterpret_cast<const int4 *>(net.targets + first);
    const int4 s0 = s[0], s1 = s[1], t0 = t[0], t1 = t[1];
    const int source[8] = {s0.x, s0.y, s0.z, s0.w, s1.x, s1.y, s1.z, s1.w}, target[8] = {t0.x, t0.y, t0.z, t0.w, t1.x, t1.y, t1.z, t1.w};
    float share[8];
    if (HOW == ALL_AT_ONCE) {
        Vertex from[8], to[8];
#pragma unroll
        for (int k = 0; k < 8; ++k) from[k] = vertex_of(vertices, source[k]), to[k] = vertex_of(vertices, target[k]);
#pragma unroll
        for (int k = 0; k < 8; ++k) share[k] = from[k].depth == net.level && to[k].depth == net.level + 1 ? from[k].paths / to[k].paths * (1.f + to[k].passed) : 0.f;
    } else {
        Vertex from{};
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            if (HOW == TARGETS_ONLY) from.depth = net.depths[source[k]];
            else if (HOW == BRANCHES || k == 0 || source[k] != source[k - 1]) from = vertex_of(vertices, source[k]);
            share[k] = 0.f;
            if (from.depth == net.level) {
                const Vertex to = vertex_of(vertices, target[k]);
                if (to.depth == net.level + 1) share[k] = (HOW == TARGETS_ONLY ? net.paths[source[k]] : from.paths) / to.paths * (1.f + to.passed);
            }
        }
    }
    add_where_source_changes(gathered, source, share);
}

int main() {
    const int edges = 1 << 24, vertices = 1 << 19, of_a_hub = edges / 2 / 256, of_others = edges / 2 / (vertices - 256), step = vertices / 256;
    std::vector<int> source, target(edges), depth(vertices);
    source.reserve(edges);
    for (int v = 0; v < vertices; ++v) {
        const bool hub = v % step == 7;
        const int count = hub ? of_a_hub : of_others + int(hash(unsigned(v)) & 1);
        for (int k = 0; k < count && int(source.size()) < edges; ++k) source.push_back(v);
        const unsigned h = hash(unsigned(v) + 77u) % 10;
        depth[v] = hub || h < 4 ? 5 : h < 9 ? 6 : 4;
    }
    while (int(source.size()) < edges) source.push_back(vertices - 1);
    for (int i = 0; i < edges; ++i) target[i] = hash(unsigned(i) ^ 0x51ed270bu) % vertices;
    int *sources, *targets, *depths;
    float *paths, *passed, *gathered;
    int4 *records;
    void *flush;
    CHECK(cudaMalloc(&sources, edges * 4ull)); CHECK(cudaMalloc(&targets, edges * 4ull)); CHECK(cudaMalloc(&depths, vertices * 4));
    CHECK(cudaMalloc(&paths, vertices * 4)); CHECK(cudaMalloc(&passed, vertices * 4)); CHECK(cudaMalloc(&gathered, vertices * 4));
    CHECK(cudaMalloc(&records, vertices * 16)); CHECK(cudaMalloc(&flush, 128 << 20));
    CHECK(cudaMemcpy(sources, source.data(), edges * 4ull, cudaMemcpyHostToDevice)); CHECK(cudaMemcpy(targets, target.data(), edges * 4ull, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(depths, depth.data(), vertices * 4, cudaMemcpyHostToDevice));
    fill<<<256, 256>>>(paths, vertices, 1.f, 9.f, 1), fill<<<256, 256>>>(passed, vertices, 0.f, 4.f, 2);
    const Network net{sources, targets, depths, paths, passed, 5};
    pack<<<vertices / 256, 256>>>(net, records, vertices);
    CHECK(cudaDeviceSynchronize());

    const int grid = edges / 2048;
    const auto zero = [&] { cudaMemsetAsync(gathered, 0, vertices * 4); };
    std::vector<Form> forms = {
        {"as_it_is", [&] { pass_back_eight<<<grid, 256>>>(net, gathered, edges); }, 0},
        {"records", [&] { pass_back_records<BRANCHES><<<grid, 256>>>(net, records, gathered, edges); }, 0},
        {"records_all_at_once", [&] { pass_back_records<ALL_AT_ONCE><<<grid, 256>>>(net, records, gathered, edges); }, 0},
        {"records_of_targets", [&] { pass_back_records<TARGETS_ONLY><<<grid, 256>>>(net, records, gathered, edges); }, 0},
        {"records_source_once", [&] { pass_back_records<SOURCE_ONCE><<<grid, 256>>>(net, records, gathered, edges); }, 0},
        {"packing_and_records", [&] { pack<<<vertices / 256, 256>>>(net, records, vertices); pass_back_records<BRANCHES><<<grid, 256>>>(net, records, gathered, edges); }, 0},
    };
    std::vector<float> right(vertices), other(vertices);
    for (Form &form : forms) {
        zero(), form.run();
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(other.data(), gathered, vertices * 4, cudaMemcpyDeviceToHost));
        if (&form == &forms[0]) right = other;
        form.diff = difference(right, other);
    }
    for (int turn = 0; turn < 2; ++turn)
        for (const Form &form : forms) printf("STMT 15 %s %.3f %.3g\n", form.name, median_time(zero, form.run, flush), form.diff);
    CHECK(cudaDeviceSynchronize());
}
