// Of each edge of a graph, turned from the end of lower degree to the other, the neighbours that both ends have: each
// triangle once. Neighbours are sorted.
#include <numeric>

#include "../tried/tried.cuh"

constexpr int LEVELS = 17, VERTICES = 1 << LEVELS, DRAWN = 8 * VERTICES;

struct Graph { const int *first, *neighbours, *from; int edges; };

__global__ void as_it_is(Graph graph, int *common) {
    const int edge = blockIdx.x * blockDim.x + threadIdx.x;
    if (edge >= graph.edges) return;
    const int u = graph.from[edge], v = graph.neighbours[edge];
    int a = graph.first[u], b = graph.first[v], count = 0;
    const int a_end = graph.first[u + 1], b_end = graph.first[v + 1];
    while (a < a_end && b < b_end) {
        const int x = graph.neighbours[a], y = graph.neighbours[b];
        if (x == y) ++count, ++a, ++b;
        else if (x < y) ++a;
        else ++b;
    }
    common[edge] = count;
}

// First step, branch divergence: both sides one computation, or edges sorted by how long they walk.
__global__ void one_computation(Graph graph, int *common) {
    const int edge = blockIdx.x * blockDim.x + threadIdx.x;
    if (edge >= graph.edges) return;
    const int u = graph.from[edge], v = graph.neighbours[edge];
    int a = graph.first[u], b = graph.first[v], count = 0;
    const int a_end = graph.first[u + 1], b_end = graph.first[v + 1];
    while (a < a_end && b < b_end) {
        const int x = graph.neighbours[a], y = graph.neighbours[b];
        count += x == y, a += x <= y, b += y <= x;
    }
    common[edge] = count;
}
__global__ void edges_by_length(Graph graph, const int *order, int *common) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= graph.edges) return;
    const int edge = order[i], u = graph.from[edge], v = graph.neighbours[edge];
    int a = graph.first[u], b = graph.first[v], count = 0;
    const int a_end = graph.first[u + 1], b_end = graph.first[v + 1];
    while (a < a_end && b < b_end) {
        const int x = graph.neighbours[a], y = graph.neighbours[b];
        if (x == y) ++count, ++a, ++b;
        else if (x < y) ++a;
        else ++b;
    }
    common[edge] = count;
}

// A warp takes 32 edges, most of them from the same vertex: its neighbours lie in shared memory, with a bit each in a
// filter; lanes walk those of the other end side by side, and only what the filter lets through is searched for.
constexpr int WARPS = 8, ROOM = 512, BITS = 4096;
__device__ __forceinline__ int bit_of(int vertex) { return vertex * 0x9e3779b1u >> 20; }
__device__ __forceinline__ bool holds(const int *sorted, int count, int sought) {
    int low = 0;
    for (int left = count; left > 1;) {
        const int half = left / 2;
        if (sorted[low + half] <= sought) low += half;
        left -= half;
    }
    return sorted[low] == sought;
}
__global__ void __launch_bounds__(WARPS * 32) expert(Graph graph, int *common) {
    __shared__ unsigned filters[WARPS][BITS / 32];
    __shared__ int lists[WARPS][ROOM];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned *filter = filters[warp];
    int *list = lists[warp];
    const int edge = (blockIdx.x * WARPS + warp) * 32 + lane;
    int u = -1, begin = 0, end = 0;
    if (edge < graph.edges) {
        u = graph.from[edge];
        const int v = graph.neighbours[edge];
        begin = graph.first[v], end = graph.first[v + 1];
    }
    int built = -1, count = 0, own = 0;
    const int *sorted = list;
    for (int e = 0; e < 32; ++e) {
        const int from = __shfl_sync(~0u, u, e), start = __shfl_sync(~0u, begin, e), stop = __shfl_sync(~0u, end, e);
        if (from < 0) break;
        if (start == stop) continue;
        if (from != built) {
            const int *neighbours = graph.neighbours + graph.first[from];
            built = from, count = graph.first[from + 1] - graph.first[from], sorted = count <= ROOM ? list : neighbours;
            __syncwarp();
            for (int i = lane; i < BITS / 32; i += 32) filter[i] = 0;
            __syncwarp();
            for (int i = lane; i < count; i += 32) {
                const int vertex = neighbours[i], bit = bit_of(vertex);
                if (i < ROOM) list[i] = vertex;
                atomicOr(&filter[bit / 32], 1u << bit % 32);
            }
            __syncwarp();
        }
        if (count < 2) continue;
        unsigned found = 0;
        for (int i = start + lane; i < stop; i += 32) {
            const int vertex = graph.neighbours[i], bit = bit_of(vertex);
            if (filter[bit / 32] >> bit % 32 & 1) found += holds(sorted, count, vertex);
        }
        found = __reduce_add_sync(~0u, found);
        if (lane == e) own = found;
    }
    if (edge < graph.edges) common[edge] = own;
}

int main(int, char **argv) {
    // A recursive matrix: at each of its levels an edge falls into a quarter, into the first most often.
    std::vector<std::pair<int, int>> drawn_edges;
    for (unsigned e = 0; e < DRAWN; ++e) {
        int u = 0, v = 0;
        for (int level = 0; level < LEVELS; ++level) {
            const unsigned chance = hashed(e * LEVELS + level) % 100;
            u = 2 * u + (chance >= 76), v = 2 * v + ((chance >= 57 && chance < 76) || chance >= 95);
        }
        if (u != v) drawn_edges.emplace_back(std::min(u, v), std::max(u, v));
    }
    std::sort(drawn_edges.begin(), drawn_edges.end());
    drawn_edges.erase(std::unique(drawn_edges.begin(), drawn_edges.end()), drawn_edges.end());
    std::vector<int> degree(VERTICES), label(VERTICES), starts(VERTICES + 1), ends, from;
    for (const auto &edge : drawn_edges) ++degree[edge.first], ++degree[edge.second];
    // Names as they come: no order of degrees.
    std::iota(label.begin(), label.end(), 0);
    std::sort(label.begin(), label.end(), [](int a, int b) { return hashed(a) < hashed(b); });
    for (auto &edge : drawn_edges) {
        const int a = edge.first, b = edge.second;
        const bool turned = std::make_pair(degree[a], a) > std::make_pair(degree[b], b);
        edge = turned ? std::make_pair(label[b], label[a]) : std::make_pair(label[a], label[b]);
    }
    std::sort(drawn_edges.begin(), drawn_edges.end());
    for (const auto &edge : drawn_edges) ++starts[edge.first + 1], from.push_back(edge.first), ends.push_back(edge.second);
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    const int edges = ends.size();
    const Graph graph{copied(starts), copied(ends), copied(from), edges};
    int *common = get<int>(edges);
    std::vector<int> by_length(edges);
    std::iota(by_length.begin(), by_length.end(), 0);
    auto length = [&](int edge) { return starts[from[edge] + 1] - starts[from[edge]] + starts[ends[edge] + 1] - starts[ends[edge]]; };
    std::stable_sort(by_length.begin(), by_length.end(), [&](int a, int b) { return length(a) > length(b); });
    const int *order = copied(by_length);
    judge({{"as_it_is", [=] { as_it_is<<<(edges + 255) / 256, 256>>>(graph, common); }},
           {"one_computation", [=] { one_computation<<<(edges + 255) / 256, 256>>>(graph, common); }},
           {"edges_by_length", [=] { edges_by_length<<<(edges + 255) / 256, 256>>>(graph, order, common); }},
           {"expert", [=] { expert<<<(edges + WARPS * 32 - 1) / (WARPS * 32), WARPS * 32>>>(graph, common); }}},
          {{common, size_t(edges)}}, [] {}, argv[1]);
}
