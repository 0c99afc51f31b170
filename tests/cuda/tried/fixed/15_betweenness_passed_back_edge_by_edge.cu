// betweenness_passed_back_edge_by_edge, side eight: three arrays as one of records of 16 bytes.
#include "../tried.cuh"

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
        const int count = hub ? of_a_hub : of_others + int(hashed(unsigned(v)) & 1);
        for (int k = 0; k < count && int(source.size()) < edges; ++k) source.push_back(v);
        const unsigned h = hashed(unsigned(v) + 77u) % 10;
        depth[v] = hub || h < 4 ? 5 : h < 9 ? 6 : 4;
    }
    while (int(source.size()) < edges) source.push_back(vertices - 1);
    for (int i = 0; i < edges; ++i) target[i] = hashed(unsigned(i) ^ 0x51ed270bu) % vertices;
    const Network net{copied(source), copied(target), copied(depth), drawn<float>(vertices, 1, 9, 1), drawn<float>(vertices, 0, 4, 2), 5};
    float *gathered = get<float>(vertices);
    int4 *records = get<int4>(vertices);
    pack<<<vertices / 256, 256>>>(net, records, vertices);
    check(cudaDeviceSynchronize());

    const int grid = edges / 2048;
    judge({{"as_it_is", [=] { pass_back_eight<<<grid, 256>>>(net, gathered, edges); }},
        {"records", [=] { pass_back_records<BRANCHES><<<grid, 256>>>(net, records, gathered, edges); }},
        {"records_all_at_once", [=] { pass_back_records<ALL_AT_ONCE><<<grid, 256>>>(net, records, gathered, edges); }},
        {"records_of_targets", [=] { pass_back_records<TARGETS_ONLY><<<grid, 256>>>(net, records, gathered, edges); }},
        {"records_source_once", [=] { pass_back_records<SOURCE_ONCE><<<grid, 256>>>(net, records, gathered, edges); }},
        {"packing_and_records", [=] { pack<<<vertices / 256, 256>>>(net, records, vertices), pass_back_records<BRANCHES><<<grid, 256>>>(net, records, gathered, edges); }}},
        {{gathered, vertices}}, [=] { cudaMemsetAsync(gathered, 0, vertices * sizeof(float)); });
}
