// Graphs, sparse products and databases.
#include <algorithm>

#include "../pairs/pair.cuh"

namespace {

// A random graph in compressed rows. Degrees are `mean`, or of a heavy tail around it.
struct Graph {
    int *offsets, *targets, *sources;
    int nodes, edges;
    std::vector<int> host_offsets;
};
Graph random_graph(Buffers &b, int nodes, int mean, bool heavy, bool with_sources = false, int spread = 0) {
    std::vector<int> offsets(nodes + 1);
    for (int v = 0; v < nodes; ++v) {
        unsigned r = pairs::hash(v);
        int degree = mean;
        if (heavy) degree = r % 1024 == 0 ? mean * 128 : r % 32 == 0 ? mean * 8 : 1 + r % mean;
        offsets[v + 1] = offsets[v] + degree;
    }
    std::vector<int> targets(offsets[nodes]), sources(with_sources ? offsets[nodes] : 0);
    for (int v = 0; v < nodes; ++v)
        for (int e = offsets[v]; e < offsets[v + 1]; ++e) {
            unsigned r = pairs::hash(e ^ 0x5bd1e995);
            targets[e] = spread ? int((long(v) + r % spread) % nodes) : int(r % nodes);
            if (with_sources) sources[e] = v;
        }
    return {b.copy(offsets), b.copy(targets), with_sources ? b.copy(sources) : nullptr, nodes, offsets[nodes], offsets};
}

// --- sparse product in compressed rows, a thread a row ---

__global__ void spmv_scalar(const int *ptr, const int *col, const float *val, const float *x, float *y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0;
        for (int j = ptr[row]; j < ptr[row + 1]; j++) sum += val[j] * x[col[j]];
        y[row] = sum;
    }
}
template <int LANES>
__global__ void spmv_lanes(const int *__restrict__ ptr, const int *__restrict__ col, const float *__restrict__ val,
    const float *__restrict__ x, float *__restrict__ y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    if (row >= rows) return;
    float sum = 0;
    for (int j = ptr[row] + lane; j < ptr[row + 1]; j += LANES) sum += val[j] * x[col[j]];
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) y[row] = sum;
}

Study spmv_thread("spmv_csr_thread_per_row", "hpc", 1 << 18, "sparse matrix times vector, compressed rows of 64 entries, band of 4096",
    "a thread a row: lanes are 64 entries apart in values and columns",
    {{"warp_per_row", "a warp a row", {"uncoalesced_access"}}, {"eight_lanes", "eight lanes a row", {"uncoalesced_access"}}},
    [](Buffers &b, long rows) -> Sides {
        Graph g = random_graph(b, rows, 64, false, false, 4096);
        float *val = b.random<float>(g.edges), *x = b.random<float>(rows), *y = b.output<float>(rows);
        b.tolerance = 1e-3;
        int n = rows;
        return {{"flawed", launch(spmv_scalar, blocks(rows, 128), 128, 0, g.offsets, g.targets, val, x, y, n)},
            {"warp_per_row", launch(spmv_lanes<32>, blocks(rows, 4), 128, 0, g.offsets, g.targets, val, x, y, n)},
            {"eight_lanes", launch(spmv_lanes<8>, blocks(rows, 16), 128, 0, g.offsets, g.targets, val, x, y, n)}};
    });

Study spmv_short("spmv_csr_short_rows", "hpc", 1 << 21, "sparse matrix times vector, compressed rows of 4 entries",
    "a warp a row of four entries: 28 of 32 lanes find nothing to do",
    {{"four_lanes", "four lanes a row", {"branch_divergence"}}, {"thread_per_row", "a thread a row", {"branch_divergence"}}},
    [](Buffers &b, long rows) -> Sides {
        Graph g = random_graph(b, rows, 4, false, false, 4096);
        float *val = b.random<float>(g.edges), *x = b.random<float>(rows), *y = b.output<float>(rows);
        int n = rows;
        return {{"flawed", launch(spmv_lanes<32>, blocks(rows, 8), 256, 0, g.offsets, g.targets, val, x, y, n)},
            {"four_lanes", launch(spmv_lanes<4>, blocks(rows, 64), 256, 0, g.offsets, g.targets, val, x, y, n)},
            {"thread_per_row", launch(spmv_scalar, blocks(rows, 256), 256, 0, g.offsets, g.targets, val, x, y, n)}};
    });

// --- ELLPACK stored row by row ---

__global__ void spmv_ell(const int *col, const double *val, const double *x, double *y, int rows, int width) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    double sum = 0;
    for (int k = 0; k < width; k++) {
        int c = col[r * width + k];
        if (c >= 0) sum += val[r * width + k] * x[c];
    }
    y[r] = sum;
}
__global__ void spmv_ell_columns(const int *col, const double *val, const double *x, double *y, int rows, int width) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    double sum = 0;
    for (int k = 0; k < width; k++) {
        int c = col[k * rows + r];
        if (c >= 0) sum += val[k * rows + r] * x[c];
    }
    y[r] = sum;
}
__global__ void spmv_ell_lanes(const int *col, const double *val, const double *x, double *y, int rows, int width) {
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 16, lane = threadIdx.x % 16;
    if (r >= rows) return;
    double sum = 0;
    for (int k = lane; k < width; k += 16) {
        int c = col[r * width + k];
        if (c >= 0) sum += val[r * width + k] * x[c];
    }
    for (int d = 8; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) y[r] = sum;
}

Study ell("spmv_ell_row_major", "hpc", 1 << 19, "sparse matrix times vector in ELLPACK, 32 entries a row, FP64",
    "the padded rows are stored row by row while a thread takes a row",
    {{"column_major", "entries stored column by column", {"uncoalesced_access"}},
        {"lanes", "storage kept, 16 lanes a row", {"uncoalesced_access"}}},
    [](Buffers &b, long rows) -> Sides {
        int width = 32;
        std::vector<int> col(rows * width), turned(rows * width);
        for (long r = 0; r < rows; ++r)
            for (int k = 0; k < width; ++k) {
                unsigned h = pairs::hash(r * width + k);
                int c = k >= 28 && h % 2 ? -1 : int((r + h % 2048) % rows);
                col[r * width + k] = turned[k * rows + r] = c;
            }
        std::vector<double> val(rows * width), turned_val(rows * width);
        for (long r = 0; r < rows; ++r)
            for (int k = 0; k < width; ++k)
                val[r * width + k] = turned_val[k * rows + r] = pairs::hash(r + k * rows) / 4294967296.0;
        int *c = b.copy(col), *tc = b.copy(turned);
        double *v = b.copy(val), *tv = b.copy(turned_val), *x = b.random<double>(rows), *y = b.output<double>(rows);
        int n = rows;
        return {{"flawed", launch(spmv_ell, blocks(rows, 128), 128, 0, c, v, x, y, n, width)},
            {"column_major", launch(spmv_ell_columns, blocks(rows, 128), 128, 0, tc, tv, x, y, n, width)},
            {"lanes", launch(spmv_ell_lanes, blocks(rows, 8), 128, 0, c, v, x, y, n, width)}};
    });

// --- a step of breadth-first search ---

__global__ void bfs_step(const int *frontier, int count, const int *ptr, const int *adj, int *level, int depth) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int v = frontier[i];
    for (int e = ptr[v]; e < ptr[v + 1]; e++) {
        int w = adj[e];
        if (level[w] < 0) level[w] = depth;
    }
}
__global__ void bfs_step_warp(const int *frontier, int count, const int *ptr, const int *adj, int *level, int depth) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (i >= count) return;
    int v = frontier[i];
    for (int e = ptr[v] + threadIdx.x % 32; e < ptr[v + 1]; e += 32) {
        int w = adj[e];
        if (level[w] < 0) level[w] = depth;
    }
}
__global__ void bfs_step_edges(const int *__restrict__ source, const int *__restrict__ adj, int edges,
    const unsigned char *__restrict__ in_frontier, int *level, int depth) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges || !in_frontier[source[e]]) return;
    int w = adj[e];
    if (level[w] < 0) level[w] = depth;
}

Study bfs("bfs_thread_per_vertex", "graphs", 1 << 20, "one step of breadth-first search, half of a million vertices in the frontier, heavy-tailed degrees",
    "a thread a vertex: one lane walks up to 1024 edges while the others of its warp have finished",
    {{"warp_per_vertex", "a warp a vertex", {"workload_imbalance", "branch_divergence", "uncoalesced_access"}},
        {"edges", "a thread an edge over the list of sources", {"workload_imbalance", "branch_divergence", "uncoalesced_access"}}},
    [](Buffers &b, long nodes) -> Sides {
        Graph g = random_graph(b, nodes, 8, true, true);
        std::vector<int> frontier, level(nodes, -1);
        std::vector<unsigned char> flags(nodes);
        for (int v = 0; v < nodes; v += 2) frontier.push_back(v), level[v] = 3, flags[v] = 1;
        int *f = b.copy(frontier), *l = b.changed(b.copy(level), nodes), count = frontier.size();
        unsigned char *in = b.copy(flags);
        b.tolerance = 0;
        return {{"flawed", launch(bfs_step, blocks(count, 128), 128, 0, f, count, g.offsets, g.targets, l, 4)},
            {"warp_per_vertex", launch(bfs_step_warp, blocks(count, 4), 128, 0, f, count, g.offsets, g.targets, l, 4)},
            {"edges", launch(bfs_step_edges, blocks(g.edges, 256), 256, 0, g.sources, g.targets, g.edges, in, l, 4)}};
    });

// --- PageRank, pulling ---

__global__ void pagerank(const int *ptr, const int *in, const float *rank, const int *degree, float *next, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    float sum = 0.f;
    for (int e = ptr[v]; e < ptr[v + 1]; e++) sum += rank[in[e]] / degree[in[e]];
    next[v] = 0.15f / n + 0.85f * sum;
}
__global__ void pagerank_shares(const int *ptr, const int *in, const float *share, float *next, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    float sum = 0.f;
    for (int e = ptr[v]; e < ptr[v + 1]; e++) sum += share[in[e]];
    next[v] = 0.15f / n + 0.85f * sum;
}
__global__ void pagerank_pairs(const int *ptr, const int *in, const float2 *rank_inverse, float *next, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    float sum = 0.f;
    for (int e = ptr[v]; e < ptr[v + 1]; e++) {
        float2 r = rank_inverse[in[e]];
        sum += r.x * r.y;
    }
    next[v] = 0.15f / n + 0.85f * sum;
}

Study pageranks("pagerank_two_lookups", "graphs", 1 << 22, "a PageRank iteration, 4 million vertices of 8 random in-edges",
    "for each edge two look-ups at a random vertex (rank and degree) and an exact division",
    {{"shares", "rank divided by degree beforehand: one look-up an edge", {"cache_locality", "expensive_math"}},
        {"pairs", "rank and reciprocal degree side by side: one 8-byte look-up an edge", {"cache_locality", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        Graph g = random_graph(b, n, 8, false);
        std::vector<float> rank(n), share(n), both(2 * n);
        std::vector<int> degree(n);
        for (long v = 0; v < n; ++v) {
            rank[v] = pairs::hash(v) / 4294967296.0f, degree[v] = 1 + pairs::hash(v ^ 77) % 15;
            share[v] = rank[v] / degree[v], both[2 * v] = rank[v], both[2 * v + 1] = 1.0f / degree[v];
        }
        float *r = b.copy(rank), *s = b.copy(share), *rs = b.copy(both), *next = b.output<float>(n);
        int *d = b.copy(degree), nodes = n;
        return {{"flawed", launch(pagerank, blocks(n, 256), 256, 0, g.offsets, g.targets, r, d, next, nodes)},
            {"shares", launch(pagerank_shares, blocks(n, 256), 256, 0, g.offsets, g.targets, s, next, nodes)},
            {"pairs", launch(pagerank_pairs, blocks(n, 256), 256, 0, g.offsets, g.targets, (float2 *)rs, next, nodes)}};
    });

// --- connected components: smallest label along edges ---

__global__ void hook(const int *source, const int *target, const int *label, int *next, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    int u = source[e], v = target[e];
    atomicMin(&next[v], label[u]);
    atomicMin(&next[u], label[v]);
}
__global__ void hook_checked(const int *source, const int *target, const int *label, int *next, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    int u = source[e], v = target[e], lu = label[u], lv = label[v];
    if (lu < lv) atomicMin(&next[v], lu);
    else if (lv < lu) atomicMin(&next[u], lv);
}
// Edges are sorted by source: lanes with the same source combine their minimum first.
__global__ void hook_combined(const int *source, const int *target, const int *label, int *next, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    bool there = e < edges;
    int u = there ? source[e] : -1, v = there ? target[e] : -1;
    int lu = there ? label[u] : 0, lv = there ? label[v] : 0;
    if (there && lu < lv) atomicMin(&next[v], lu);
    unsigned same = __match_any_sync(~0u, u);
    int least = __reduce_min_sync(same, lv);
    if (there && threadIdx.x % 32 == __ffs(same) - 1 && least < lu) atomicMin(&next[u], least);
}

Study components("components_atomic_min", "graphs", 1 << 20, "a round of label propagation along 16 million edges",
    "two atomic minima an edge, though at most one of them can change anything",
    {{"checked", "labels compared first: one atomic where it can change something", {"global_atomics"}},
        {"combined", "compared, and minima of one source combined in the warp", {"global_atomics"}}},
    [](Buffers &b, long nodes) -> Sides {
        Graph g = random_graph(b, nodes, 16, false, true);
        std::vector<int> label(nodes);
        for (long v = 0; v < nodes; ++v) label[v] = pairs::hash(v) >> 4;
        int *l = b.copy(label), *next = b.changed(l, nodes);
        b.tolerance = 0;
        auto side = [&](auto kernel) { return launch(kernel, blocks(g.edges, 256), 256, 0, g.sources, g.targets, l, next, g.edges); };
        return {{"flawed", side(hook)}, {"checked", side(hook_checked)}, {"combined", side(hook_combined)}};
    });

// --- triangles: common neighbours of the ends of an edge ---

__global__ void triangles(const int *ptr, const int *adj, const int *source, int *common, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    int u = source[e], v = adj[e], i = ptr[u], j = ptr[v], count = 0;
    while (i < ptr[u + 1] && j < ptr[v + 1]) {
        int a = adj[i], b = adj[j];
        if (a == b) count++, i++, j++;
        else if (a < b) i++;
        else j++;
    }
    common[e] = count;
}
__device__ bool contains(const int *adj, int low, int high, int value) {
    while (low < high) {
        int middle = (low + high) / 2;
        if (adj[middle] < value) low = middle + 1;
        else high = middle;
    }
    return adj[low] == value;
}
__global__ void triangles_warp(const int *ptr, const int *adj, const int *source, int *common, int edges) {
    int e = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (e >= edges) return;
    int u = source[e], v = adj[e], begin = ptr[v], end = ptr[v + 1], count = 0;
    for (int i = ptr[u] + lane; i < ptr[u + 1]; i += 32) count += begin < end && contains(adj, begin, end - 1, adj[i]);
    count = __reduce_add_sync(~0u, count);
    if (lane == 0) common[e] = count;
}
// The source's list in shared memory: a block takes the edges of one source.
__global__ void __launch_bounds__(64) triangles_block(const int *ptr, const int *adj, int *common) {
    __shared__ int mine[64];
    int u = blockIdx.x, first = ptr[u], degree = ptr[u + 1] - first;
    if (threadIdx.x < degree) mine[threadIdx.x] = adj[first + threadIdx.x];
    __syncthreads();
    for (int k = threadIdx.x; k < degree; k += 64) {
        int v = mine[k], i = 0, count = 0;
        for (int j = ptr[v]; j < ptr[v + 1]; ++j) {
            int b = adj[j];
            while (i < degree && mine[i] < b) i++;
            count += i < degree && mine[i] == b;
        }
        common[first + k] = count;
    }
}

Study triangle("triangles_merge_per_thread", "graphs", 1 << 15, "common neighbours of the ends of every edge, sorted lists of 48",
    "a thread an edge merges two lists: serial dependent loads, every lane in lists of its own",
    {{"warp_search", "a warp an edge, a lane an element, binary search in the other list", {"memory_latency", "uncoalesced_access"}},
        {"shared_list", "a block a vertex, its list in shared memory", {"redundant_loads"}}},
    [](Buffers &b, long nodes) -> Sides {
        int degree = 48;
        std::vector<int> offsets(nodes + 1), adj(nodes * degree), source(nodes * degree);
        for (long v = 0; v < nodes; ++v) {
            offsets[v + 1] = (v + 1) * degree;
            int *list = &adj[v * degree];
            // Increasing, without doubles, within a neighbourhood so that there are triangles.
            for (int k = 0; k < degree; ++k)
                list[k] = int(v / 256 * 256 % nodes) + k * 5 + int(pairs::hash(v * degree + k) % 5), source[v * degree + k] = v;
        }
        int *p = b.copy(offsets), *a = b.copy(adj), *s = b.copy(source), edges = nodes * degree, *common = b.output<int>(edges);
        b.tolerance = 0;
        return {{"flawed", launch(triangles, blocks(edges, 128), 128, 0, p, a, s, common, edges)},
            {"warp_search", launch(triangles_warp, blocks(edges, 4), 128, 0, p, a, s, common, edges)},
            {"shared_list", launch(triangles_block, nodes, 64, 0, p, a, common)}};
    });

// --- probing a hash table ---

constexpr unsigned EMPTY = 0xffffffffu;
__host__ __device__ inline unsigned slot_of(unsigned key) { return key * 2654435769u; }

__global__ void probe(const unsigned *keys, const unsigned *table_keys, const unsigned *table_values, unsigned *out, int n, unsigned mask) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = keys[i], slot = slot_of(key) & mask, found = 0;
    while (table_keys[slot] != EMPTY) {
        if (table_keys[slot] == key) {
            found = table_values[slot];
            break;
        }
        slot = (slot + 1) & mask;
    }
    out[i] = found;
}
__global__ void probe_pairs(const unsigned *keys, const uint2 *table, unsigned *out, int n, unsigned mask) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = keys[i], slot = slot_of(key) & mask, found = 0;
    for (;;) {
        uint2 entry = table[slot];
        if (entry.x == EMPTY) break;
        if (entry.x == key) {
            found = entry.y;
            break;
        }
        slot = (slot + 1) & mask;
    }
    out[i] = found;
}
// A bitmap of the keys' hashes (4 MiB, stays in L2) turns most of the misses away.
__global__ void probe_filtered(const unsigned *keys, const unsigned *filter, const unsigned *table_keys,
    const unsigned *table_values, unsigned *out, int n, unsigned mask) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = keys[i], bit = pairs::hash(key) & ((1u << 25) - 1), found = 0;
    if (filter[bit >> 5] >> (bit & 31) & 1) {
        unsigned slot = slot_of(key) & mask;
        while (table_keys[slot] != EMPTY) {
            if (table_keys[slot] == key) {
                found = table_values[slot];
                break;
            }
            slot = (slot + 1) & mask;
        }
    }
    out[i] = found;
}

Study probes("hash_probe_split_table", "databases", 1 << 24, "probe of a hash table of 16 million slots, a quarter filled, a third of the keys found",
    "keys and values of the table in two arrays: two random accesses to memory for a hit",
    {{"pairs", "key and value side by side: one 8-byte access", {"cache_locality"}},
        {"filter", "a bitmap in L2 asked first, which most misses do not pass", {"cache_locality"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned slots = 1u << 24, mask = slots - 1, filled = slots / 4;
        std::vector<unsigned> table_keys(slots, EMPTY), table_values(slots), filter(1 << 20), keys(n);
        std::vector<unsigned> both(2 * size_t(slots));
        for (unsigned k = 0; k < filled; ++k) {
            unsigned key = pairs::hash(k) & 0x7fffffff, slot = slot_of(key) & mask;
            while (table_keys[slot] != EMPTY && table_keys[slot] != key) slot = (slot + 1) & mask;
            table_keys[slot] = key, table_values[slot] = k + 1;
            unsigned bit = pairs::hash(key) & ((1u << 25) - 1);
            filter[bit >> 5] |= 1u << (bit & 31);
        }
        for (unsigned s = 0; s < slots; ++s) both[2 * size_t(s)] = table_keys[s], both[2 * size_t(s) + 1] = table_values[s];
        for (long i = 0; i < n; ++i) {
            unsigned r = pairs::hash(i ^ 0x9e3779b9);
            keys[i] = r % 3 == 0 ? pairs::hash(r % filled) & 0x7fffffff : r | 0x80000000;
            if (keys[i] == EMPTY) keys[i] = 0x80000000;
        }
        unsigned *k = b.copy(keys), *tk = b.copy(table_keys), *tv = b.copy(table_values), *f = b.copy(filter),
                 *t = b.copy(both), *out = b.output<unsigned>(n);
        b.tolerance = 0;
        return {{"flawed", launch(probe, blocks(n, 256), 256, 0, k, tk, tv, out, n, mask)},
            {"pairs", launch(probe_pairs, blocks(n, 256), 256, 0, k, (uint2 *)t, out, n, mask)},
            {"filter", launch(probe_filtered, blocks(n, 256), 256, 0, k, f, tk, tv, out, n, mask)}};
    });

// --- group by, sum ---

__global__ void group_by(const int *group, const int *amount, unsigned long long *sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&sums[group[i]], (unsigned long long)amount[i]);
}
__global__ void group_by_shared(const int *group, const int *amount, unsigned long long *sums, int n, int groups) {
    extern __shared__ unsigned long long local[];
    for (int g = threadIdx.x; g < groups; g += blockDim.x) local[g] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[group[i]], (unsigned long long)amount[i]);
    __syncthreads();
    for (int g = threadIdx.x; g < groups; g += blockDim.x)
        if (local[g]) atomicAdd(&sums[g], local[g]);
}
// Rows come in runs of one group: each thread takes 16 rows in a row and sends one atomic a run.
__global__ void group_by_runs(const int4 *group, const int4 *amount, unsigned long long *sums, int n16) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n16) return;
    int current = -1;
    unsigned long long sum = 0;
    for (int k = 0; k < 4; ++k) {
        int4 g = group[t * 4 + k], a = amount[t * 4 + k];
        int gs[4] = {g.x, g.y, g.z, g.w}, as[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            if (gs[j] != current) {
                if (current >= 0) atomicAdd(&sums[current], sum);
                current = gs[j], sum = 0;
            }
            sum += as[j];
        }
    }
    atomicAdd(&sums[current], sum);
}

Study group_bys("group_by_global_atomics", "databases", 1 << 23, "sums of 8 million amounts by 1024 groups, rows in runs of about ten of one group",
    "a 64-bit atomic in global memory for every row",
    {{"shared", "sums in shared memory first, added up once a block", {"global_atomics"}},
        {"runs", "16 rows a thread, one atomic for each run of equal groups", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> group(n);
        for (long i = 0; i < n; ++i) group[i] = pairs::hash(i / 10) % 1024;
        int *g = b.copy(group), *amount = b.random<int>(n, 0, 1000);
        auto *sums = b.output<unsigned long long>(1024, true);
        b.tolerance = 0;
        return {{"flawed", launch(group_by, blocks(n, 256), 256, 0, g, amount, sums, n)},
            {"shared", launch(group_by_shared, 132 * 4, 512, 8192, g, amount, sums, n, 1024)},
            {"runs", launch(group_by_runs, blocks(n / 16, 256), 256, 0, (int4 *)g, (int4 *)amount, sums, n / 16)}};
    });

// --- filtering rows, stable within a block ---

__global__ void __launch_bounds__(1024) filter_scan(const int *in, int *out, int *counts, int below) {
    __shared__ int scan[2][1024];
    int tid = threadIdx.x, from = 0;
    int v = in[blockIdx.x * 1024 + tid], keep = v < below;
    scan[0][tid] = keep;
    __syncthreads();
    for (int d = 1; d < 1024; d *= 2) {
        scan[1 - from][tid] = scan[from][tid] + (tid >= d ? scan[from][tid - d] : 0);
        from = 1 - from;
        __syncthreads();
    }
    if (keep) out[blockIdx.x * 1024 + scan[from][tid] - 1] = v;
    if (tid == 1023) counts[blockIdx.x] = scan[from][tid];
}
__global__ void __launch_bounds__(1024) filter_ballot(const int *in, int *out, int *counts, int below) {
    __shared__ int totals[32];
    int tid = threadIdx.x, warp = tid / 32;
    int v = in[blockIdx.x * 1024 + tid];
    unsigned kept = __ballot_sync(~0u, v < below);
    if (tid % 32 == 0) totals[warp] = __popc(kept);
    __syncthreads();
    int lane_total = totals[tid % 32], before = __reduce_add_sync(~0u, tid % 32 < warp ? lane_total : 0);
    if (v < below) out[blockIdx.x * 1024 + before + __popc(kept & ((1u << tid % 32) - 1))] = v;
    if (tid == 1023) counts[blockIdx.x] = before + __popc(kept);
}
// A warp takes its 1024 rows by itself, 32 at a time: no barrier at all.
__global__ void filter_warp(const int *in, int *out, int *counts, int below) {
    int part = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, written = 0;
#pragma unroll 8
    for (int k = 0; k < 32; ++k) {
        int v = in[part * 1024 + k * 32 + lane];
        unsigned kept = __ballot_sync(~0u, v < below);
        if (v < below) out[part * 1024 + written + __popc(kept & ((1u << lane) - 1))] = v;
        written += __popc(kept);
    }
    if (lane == 0) counts[part] = written;
}

Study filters("filter_scan_barriers", "databases", 1 << 25, "rows below a bound moved to the front of each part of 1024, a third passes",
    "positions by a scan in shared memory with a barrier for each of its ten steps",
    {{"ballot", "ballots and population counts, one barrier", {"barriers"}},
        {"warp", "a warp takes a part, 32 rows at a time: no barrier", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        int *in = b.random<int>(n, 0, 3000), *out = b.output<int>(n), *counts = b.output<int>(n / 1024);
        b.tolerance = 0;
        return {{"flawed", launch(filter_scan, n / 1024, 1024, 0, in, out, counts, 1000)},
            {"ballot", launch(filter_ballot, n / 1024, 1024, 0, in, out, counts, 1000)},
            {"warp", launch(filter_warp, n / 8192, 256, 0, in, out, counts, 1000)}};
    });

// --- counts of a radix partition ---

__global__ void __launch_bounds__(256) radix_counts(const unsigned *keys, int *counts, int shift, int per_block) {
    __shared__ int bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    const unsigned *mine = keys + size_t(blockIdx.x) * per_block;
    for (int i = threadIdx.x; i < per_block; i += 256) atomicAdd(&bins[mine[i] >> shift & 15], 1);
    __syncthreads();
    if (threadIdx.x < 16) counts[blockIdx.x * 16 + threadIdx.x] = bins[threadIdx.x];
}
__global__ void __launch_bounds__(256) radix_counts_lanes(const unsigned *keys, int *counts, int shift, int per_block) {
    __shared__ unsigned char bins[16][256];  // a counter a thread: at most 255 keys of a digit each
    for (int d = 0; d < 16; ++d) bins[d][threadIdx.x] = 0;
    const unsigned *mine = keys + size_t(blockIdx.x) * per_block;
    for (int i = threadIdx.x; i < per_block; i += 256) bins[mine[i] >> shift & 15][threadIdx.x]++;
    __syncthreads();
    int digit = threadIdx.x / 16, sum = 0;
    for (int k = threadIdx.x % 16; k < 256; k += 16) sum += bins[digit][k];
    for (int d = 8; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 16 == 0) counts[blockIdx.x * 16 + digit] = sum;
}
// Sixteen counters of four bits in one 64-bit register, emptied every 15 keys.
__global__ void __launch_bounds__(256) radix_counts_packed(const unsigned *keys, int *counts, int shift, int per_block) {
    __shared__ int bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    const unsigned *mine = keys + size_t(blockIdx.x) * per_block;
    int total[16] = {};
    for (int i = threadIdx.x; i < per_block; i += 256 * 8) {
        unsigned long long packed = 0;
#pragma unroll
        for (int k = 0; k < 8; ++k) packed += 1ull << (mine[i + 256 * k] >> shift & 15) * 4;
#pragma unroll
        for (int d = 0; d < 16; ++d) total[d] += packed >> 4 * d & 15;
    }
#pragma unroll
    for (int d = 0; d < 16; ++d) {
        int sum = __reduce_add_sync(~0u, total[d]);
        if (threadIdx.x % 32 == 0) atomicAdd(&bins[d], sum);
    }
    __syncthreads();
    if (threadIdx.x < 16) counts[blockIdx.x * 16 + threadIdx.x] = bins[threadIdx.x];
}

Study radix("radix_counts_shared_atomics", "databases", 1 << 25, "digit counts of a radix partition, 16 digits, most keys small",
    "an atomic on one of 16 words of shared memory for every key, most of them on the same few",
    {{"thread_counters", "counters of one byte for every thread in shared memory", {"shared_atomics"}},
        {"packed", "sixteen 4-bit counters in a register, added up by warp reductions", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> keys(n);
        for (long i = 0; i < n; ++i) {
            unsigned r = pairs::hash(i);
            keys[i] = (r & 15) & (r >> 4 & 15);
        }
        unsigned *k = b.copy(keys);
        int per = 16384, *counts = b.output<int>(n / per * 16);
        b.tolerance = 0;
        return {{"flawed", launch(radix_counts, n / per, 256, 0, k, counts, 0, per)},
            {"thread_counters", launch(radix_counts_lanes, n / per, 256, 0, k, counts, 0, per)},
            {"packed", launch(radix_counts_packed, n / per, 256, 0, k, counts, 0, per)}};
    });

// --- Blelloch scan of blocks ---

template <bool Padded>
__global__ void __launch_bounds__(512) scan_blelloch(const int *in, int *out) {
    __shared__ int s[1024 + (Padded ? 32 : 0)];
    auto at = [](int i) { return Padded ? i + i / 32 : i; };
    int tid = threadIdx.x, base = blockIdx.x * 1024, offset = 1;
    s[at(tid)] = in[base + tid];
    s[at(tid + 512)] = in[base + tid + 512];
    for (int d = 512; d > 0; d >>= 1) {
        __syncthreads();
        if (tid < d) s[at(offset * (2 * tid + 2) - 1)] += s[at(offset * (2 * tid + 1) - 1)];
        offset *= 2;
    }
    if (tid == 0) s[at(1023)] = 0;
    for (int d = 1; d < 1024; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (tid < d) {
            int a = at(offset * (2 * tid + 1) - 1), b = at(offset * (2 * tid + 2) - 1), t = s[a];
            s[a] = s[b];
            s[b] += t;
        }
    }
    __syncthreads();
    out[base + tid] = s[at(tid)];
    out[base + tid + 512] = s[at(tid + 512)];
}
__global__ void __launch_bounds__(256) scan_shuffles(const int4 *in, int4 *out) {
    __shared__ int totals[8];
    int tid = threadIdx.x;
    int4 v = in[blockIdx.x * 256 + tid];
    int sum = v.x + v.y + v.z + v.w, scan = sum;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        int left = __shfl_up_sync(~0u, scan, d);
        if (tid % 32 >= d) scan += left;
    }
    if (tid % 32 == 31) totals[tid / 32] = scan;
    __syncthreads();
    int before = scan - sum;
    for (int w = 0; w < tid / 32; ++w) before += totals[w];
    out[blockIdx.x * 256 + tid] = {before, before + v.x, before + v.x + v.y, before + v.x + v.y + v.z};
}

Study scans("scan_blelloch_conflicts", "databases", 1 << 25, "exclusive sums of blocks of 1024 integers",
    "the work-efficient scan in shared memory meets ever more words in one bank",
    {{"padding", "a word of padding every 32", {"shared_bank_conflicts"}},
        {"shuffles", "four values a thread and shuffles in warps, one barrier", {"shared_bank_conflicts", "barriers"}}},
    [](Buffers &b, long n) -> Sides {
        int *in = b.random<int>(n, 0, 10), *out = b.output<int>(n);
        b.tolerance = 0;
        return {{"flawed", launch(scan_blelloch<false>, n / 1024, 512, 0, in, out)},
            {"padding", launch(scan_blelloch<true>, n / 1024, 512, 0, in, out)},
            {"shuffles", launch(scan_shuffles, n / 1024, 256, 0, (int4 *)in, (int4 *)out)}};
    });

// --- LIKE '%abcd%' over strings of 64 bytes ---

__global__ void like(const char *strings, const char *pattern, unsigned char *matches, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bool found = false;
    for (int p = 0; p <= 60 && !found; p++) {
        int k = 0;
        while (k < 4 && strings[i * 64 + p + k] == pattern[k]) k++;
        found = k == 4;
    }
    matches[i] = found;
}
__device__ bool match_words(const unsigned *w, unsigned wanted) {
    bool found = false;
#pragma unroll
    for (int p = 0; p <= 60; ++p) {
        unsigned here = p % 4 ? __funnelshift_r(w[p / 4], w[min(p / 4 + 1, 15)], p % 4 * 8) : w[p / 4];
        found |= here == wanted;
    }
    return found;
}
__global__ void like_registers(const uint4 *strings, unsigned wanted, unsigned char *matches, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned w[16];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        uint4 v = strings[i * 4 + k];
        w[4 * k] = v.x, w[4 * k + 1] = v.y, w[4 * k + 2] = v.z, w[4 * k + 3] = v.w;
    }
    matches[i] = match_words(w, wanted);
}
__global__ void __launch_bounds__(128) like_staged(const unsigned *strings, unsigned wanted, unsigned char *matches) {
    __shared__ unsigned tile[128][17];
    const unsigned *from = strings + size_t(blockIdx.x) * 128 * 16;
    for (int i = threadIdx.x; i < 128 * 16; i += 128) tile[i / 16][i % 16] = from[i];
    __syncthreads();
    unsigned w[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) w[k] = tile[threadIdx.x][k];
    matches[blockIdx.x * 128 + threadIdx.x] = match_words(w, wanted);
}

Study likes("like_bytes", "databases", 1 << 22, "substring search in 4 million strings of 64 bytes",
    "a thread a string reads and compares byte by byte, lanes 64 bytes apart",
    {{"registers", "the string in registers by 16-byte loads, windows by funnel shifts", {"narrow_access", "uncoalesced_access"}},
        {"staged", "strings brought through shared memory in the order of memory, then as before", {"narrow_access", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *strings = b.random<unsigned char>(n * 64, 97, 105);
        std::vector<unsigned char> wanted = {'a', 'c', 'g', 'b'};
        auto *pattern = b.copy(wanted), *matches = b.output<unsigned char>(n);
        unsigned word = 'a' | 'c' << 8 | 'g' << 16 | 'b' << 24;
        b.tolerance = 0;
        return {{"flawed", launch(like, blocks(n, 256), 256, 0, (char *)strings, (char *)pattern, matches, n)},
            {"registers", launch(like_registers, blocks(n, 256), 256, 0, (uint4 *)strings, word, matches, n)},
            {"staged", launch(like_staged, n / 128, 128, 0, (unsigned *)strings, word, matches)}};
    });

// --- dictionary codes to values ---

__constant__ float prices[4096];

__global__ void decode_constant(const unsigned short *codes, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = prices[codes[i]];
}
__global__ void decode_global(const unsigned short *codes, const float *__restrict__ dictionary, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = dictionary[codes[i]];
}
__global__ void decode_shared(const ushort4 *codes, const float *__restrict__ dictionary, float4 *out, int n4) {
    __shared__ float local[4096];
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) local[i] = dictionary[i];
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
        ushort4 c = codes[i];
        out[i] = {local[c.x], local[c.y], local[c.z], local[c.w]};
    }
}

Study dictionary("dictionary_constant", "databases", 1 << 24, "16-bit codes to the floats of a dictionary of 4096 values",
    "the dictionary lies in constant memory, which serves one address at a time",
    {{"global", "dictionary in global memory, served by L1", {"constant_divergence"}},
        {"shared", "dictionary in shared memory, four codes a thread, grid-stride", {"constant_divergence", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned short> codes(n);
        for (long i = 0; i < n; ++i) codes[i] = pairs::hash(i) % 4096;
        unsigned short *c = b.copy(codes);
        float *values = b.random<float>(4096), *out = b.output<float>(n);
        CHECK(cudaMemcpyToSymbol(prices, values, 4096 * 4, 0, cudaMemcpyDeviceToDevice));
        return {{"flawed", launch(decode_constant, blocks(n, 256), 256, 0, c, out, n)},
            {"global", launch(decode_global, blocks(n, 256), 256, 0, c, values, out, n)},
            {"shared", launch(decode_shared, 132 * 4, 512, 0, (ushort4 *)c, values, (float4 *)out, n / 4)}};
    });

// --- years of dates ---

template <typename Int>
__host__ __device__ int year_of(Int days, Int era_days, Int century_days) {  // Gregorian calendar, days since 0000-03-01
    Int era = days / era_days, day = days - era * era_days;
    Int year = (day - day / 1460 + day / century_days - day / (era_days - 1)) / 365;
    Int in_year = day - (365 * year + year / 4 - year / 100);
    return int(year + era * 400 + (in_year >= 306));
}
template <typename Int>
__global__ void years(const int *date, short *year, int n, Int era_days, Int century_days) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) year[i] = year_of<Int>(date[i], era_days, century_days);
}
__global__ void years_table(const int *date, const short *__restrict__ table, short *year, int first, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) year[i] = table[date[i] - first];
}
__global__ void widen(const short *from, int *to, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = from[i];
}

Study dates("year_of_date_int64", "databases", 1 << 25, "the years of 33 million dates stored as day numbers",
    "64-bit divisions by calendar lengths that come as arguments",
    {{"int32", "the same in 32 bits", {"integer_arithmetic"}},
        {"table", "a table of the years of 60000 days", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        int first = 700000, days = 60000;
        int *date = b.random<int>(n, first, first + days);
        std::vector<short> table(days);
        for (int d = 0; d < days; ++d) table[d] = year_of<int>(first + d, 146097, 36524);
        short *t = b.copy(table), *year = b.allocate<short>(n);
        int *wide = b.output<int>(n), count = n;
        auto compare = [=] { widen<<<1056, 256>>>(year, wide, count); };
        b.tolerance = 0;
        return {{"flawed", launch(years<long long>, blocks(n, 256), 256, 0, date, year, count, 146097, 36524), {}, 1, compare},
            {"int32", launch(years<int>, blocks(n, 256), 256, 0, date, year, count, 146097, 36524), {}, 1, compare},
            {"table", launch(years_table, blocks(n, 256), 256, 0, date, t, year, first, count), {}, 1, compare}};
    });

}  // namespace
