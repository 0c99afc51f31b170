// Graphs, databases, cryptography and bioinformatics.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- in-degrees of a graph with hubs ---

__global__ void in_degrees(const int *target, unsigned *degree, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < edges) atomicAdd(&degree[target[e]], 1u);
}
__global__ void in_degrees_matched(const int *__restrict__ target, unsigned *degree, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    int v = target[e];
    unsigned same = __match_any_sync(__activemask(), v);
    if (threadIdx.x % 32 == __ffs(same) - 1) atomicAdd(&degree[v], unsigned(__popc(same)));
}
constexpr int HUBS = 4096;
__global__ void __launch_bounds__(512) in_degrees_hubs(const int *__restrict__ target, unsigned *degree, int edges) {
    __shared__ unsigned hub[HUBS];  // nodes are numbered by falling degree
    for (int i = threadIdx.x; i < HUBS; i += 512) hub[i] = 0;
    __syncthreads();
    for (int e = blockIdx.x * 512 + threadIdx.x; e < edges; e += gridDim.x * 512) {
        int v = target[e];
        atomicAdd(v < HUBS ? &hub[v] : &degree[v], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < HUBS; i += 512)
        if (hub[i]) atomicAdd(&degree[i], hub[i]);
}
Study degrees("in_degrees_hub_atomics", "graphs", 1 << 24, "in-degrees of a graph of 16 million edges, most of them to few hubs",
    "an atomic an edge, many on the same hubs",
    {{"matched", "lanes that meet at a node combined first", {"global_atomics"}}, {"hubs", "the 4096 largest counted in shared memory", {"global_atomics"}}},
    [](Buffers &b, long edges) -> Sides {
        std::vector<int> host(edges);
        int nodes = 1 << 20, n = edges;
        for (long e = 0; e < edges; ++e) {
            double u = (pairs::hash(e) >> 8) / 16777216.0;
            host[e] = int(nodes * u * u * u * u * u * u);
        }
        int *target = b.copy(host);
        auto *degree = b.output<unsigned>(nodes, true);
        b.tolerance = 0;
        return {{"flawed", launch(in_degrees, blocks(edges, 256), 256, 0, target, degree, n)}, {"matched", launch(in_degrees_matched, blocks(edges, 256), 256, 0, target, degree, n)},
            {"hubs", launch(in_degrees_hubs, 132 * 4, 512, 0, target, degree, n)}};
    });

// --- means of neighbours' features ---

__global__ void aggregate(const int *ptr, const int *adj, const float *x, float *y, int nodes, int features) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= nodes) return;
    int first = ptr[v], last = ptr[v + 1];
    for (int f = 0; f < features; f++) {
        float sum = 0.f;
        for (int e = first; e < last; e++) sum += x[adj[e] * features + f];
        y[v * features + f] = sum / (last - first);
    }
}
__global__ void aggregate_warp(const int *__restrict__ ptr, const int *__restrict__ adj, const float2 *__restrict__ x, float2 *__restrict__ y, int nodes) {
    int v = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (v >= nodes) return;
    int first = ptr[v], last = ptr[v + 1];
    float2 sum{};
    for (int e = first; e < last; e++) {
        float2 u = x[adj[e] * 32 + lane];
        sum.x += u.x, sum.y += u.y;
    }
    float scale = 1.f / (last - first);
    y[v * 32 + lane] = {sum.x * scale, sum.y * scale};
}
__global__ void aggregate_sixteen(const int *__restrict__ ptr, const int *__restrict__ adj, const float4 *__restrict__ x, float4 *__restrict__ y, int nodes) {
    int v = (blockIdx.x * blockDim.x + threadIdx.x) / 16, lane = threadIdx.x % 16;
    if (v >= nodes) return;
    int first = ptr[v], last = ptr[v + 1];
    float4 sum{};
#pragma unroll 4
    for (int e = first; e < last; e++) {
        float4 u = x[adj[e] * 16 + lane];
        sum.x += u.x, sum.y += u.y, sum.z += u.z, sum.w += u.w;
    }
    float scale = 1.f / (last - first);
    y[v * 16 + lane] = {sum.x * scale, sum.y * scale, sum.z * scale, sum.w * scale};
}
Study aggregates("gnn_mean_thread_per_node", "graphs", 1 << 17, "mean of the features of 12 neighbours, 131072 nodes of 64 floats",
    "a thread a node: lanes read different rows, and the list of neighbours is read for each feature",
    {{"warp", "a warp a node, two features a lane", {"uncoalesced_access", "redundant_loads"}},
        {"sixteen", "16 lanes a node, four features each", {"uncoalesced_access", "redundant_loads", "narrow_access"}}},
    [](Buffers &b, long nodes) -> Sides {
        std::vector<int> ptr(nodes + 1), adj(nodes * 12);
        for (long v = 0; v < nodes; ++v) ptr[v + 1] = 12 * (v + 1);
        for (long e = 0; e < nodes * 12; ++e) adj[e] = (e / 12 + pairs::hash(e) % 16384) % nodes;
        int *p = b.copy(ptr), *a = b.copy(adj), n = nodes;
        float *x = b.random<float>(nodes * 64), *y = b.output<float>(nodes * 64);
        return {{"flawed", launch(aggregate, blocks(nodes, 128), 128, 0, p, a, x, y, n, 64)},
            {"warp", launch(aggregate_warp, nodes / 8, 256, 0, p, a, (float2 *)x, (float2 *)y, n)},
            {"sixteen", launch(aggregate_sixteen, nodes / 16, 256, 0, p, a, (float4 *)x, (float4 *)y, n)}};
    });

// --- shortest paths: one min-plus product ---

__global__ void min_plus(const int *a, const int *b, int *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int best = 1 << 29;
    for (int k = 0; k < n; k++) best = min(best, a[y * n + k] + b[k * n + x]);
    c[y * n + x] = best;
}
__global__ void __launch_bounds__(1024) min_plus_tile(const int *__restrict__ a, const int *__restrict__ b, int *__restrict__ c, int n) {
    __shared__ int as[32][32], bs[32][32];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 32 + tx, y = blockIdx.y * 32 + ty, best = 1 << 29;
    for (int k = 0; k < n; k += 32) {
        as[ty][tx] = a[y * n + k + tx], bs[ty][tx] = b[(k + ty) * n + x];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 32; ++i) best = min(best, as[ty][i] + bs[i][tx]);
        __syncthreads();
    }
    c[y * n + x] = best;
}
__global__ void __launch_bounds__(256) min_plus_registers(const int *__restrict__ a, const int *__restrict__ b, int *__restrict__ c, int n) {
    __shared__ __align__(16) int as[16][64 + 4], bs[16][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16, x0 = blockIdx.x * 64, y0 = blockIdx.y * 64;
    int best[4][4];
    for (auto &row : best)
        for (int &v : row) v = 1 << 29;
    for (int k = 0; k < n; k += 16) {
#pragma unroll
        for (int i = t; i < 1024; i += 256) {
            as[i % 16][i / 16] = a[(y0 + i / 16) * n + k + i % 16];
            bs[i / 64][i % 64] = b[(k + i / 64) * n + x0 + i % 64];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            int4 u = *(int4 *)&as[i][ty * 4], v = *(int4 *)&bs[i][tx * 4];
            int us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int p = 0; p < 4; ++p)
#pragma unroll
                for (int q = 0; q < 4; ++q) best[p][q] = min(best[p][q], us[p] + vs[q]);
        }
        __syncthreads();
    }
    for (int p = 0; p < 4; ++p) *(int4 *)&c[(y0 + ty * 4 + p) * n + x0 + tx * 4] = {best[p][0], best[p][1], best[p][2], best[p][3]};
}
Study products("min_plus_no_tile", "graphs", 1024, "min-plus product of two distance matrices of 1024 x 1024",
    "two loads from global memory for each step of each result",
    {{"tile", "tiles of 32 x 32 in shared memory", {"redundant_loads"}},
        {"registers", "tiles of 64 x 64, 16 results a thread", {"redundant_loads", "shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        int *a = b.random<int>(n * n, 0, 1000000), *c = b.random<int>(n * n, 0, 1000000), *out = b.output<int>(n * n);
        b.tolerance = 0;
        return {{"flawed", launch(min_plus, dim3(n / 32, n / 8), dim3(32, 8), 0, a, c, out, n)}, {"tile", launch(min_plus_tile, dim3(n / 32, n / 32), dim3(32, 32), 0, a, c, out, n)},
            {"registers", launch(min_plus_registers, dim3(n / 64, n / 64), 256, 0, a, c, out, n)}};
    });

// --- the sixteen nearest of a few hundred candidates ---

__global__ void __launch_bounds__(128) nearest16(const float *distance, float *found, int candidates, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float best[16];
    for (int k = 0; k < 16; k++) best[k] = 1e30f;
    for (int c = 0; c < candidates; c++) {
        float d = distance[c * count + i];
        if (d >= best[15]) continue;
        int k = 15;
        while (k > 0 && best[k - 1] > d) best[k] = best[k - 1], k--;
        best[k] = d;
    }
    for (int k = 0; k < 16; k++) found[k * count + i] = best[k];
}
__global__ void __launch_bounds__(128) nearest16_registers(const float *__restrict__ distance, float *__restrict__ found, int candidates, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float best[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) best[k] = 1e30f;
    for (int c = 0; c < candidates; ++c) {
        float d = distance[c * count + i];
        if (d >= best[15]) continue;
#pragma unroll
        for (int k = 15; k > 0; --k) best[k] = fminf(best[k], fmaxf(best[k - 1], d));
        best[0] = fminf(best[0], d);
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) found[k * count + i] = best[k];
}
__global__ void __launch_bounds__(128) nearest16_shared(const float *__restrict__ distance, float *__restrict__ found, int candidates, int count) {
    __shared__ float best[16][128];
    int i = blockIdx.x * 128 + threadIdx.x, t = threadIdx.x;
    for (int k = 0; k < 16; ++k) best[k][t] = 1e30f;
    float last = 1e30f;
    for (int c = 0; c < candidates; ++c) {
        float d = distance[c * count + i];
        if (d >= last) continue;
        int k = 15;
        while (k > 0 && best[k - 1][t] > d) best[k][t] = best[k - 1][t], k--;
        best[k][t] = d, last = best[15][t];
    }
    for (int k = 0; k < 16; ++k) found[k * count + i] = best[k][t];
}
Study nearests("nearest_16_insertion", "graphs", 1 << 16, "the 16 least of 256 distances for each of 65536 points",
    "sorted insertion at an index known at run time only puts the list into local memory",
    {{"registers", "every place compared: the list stays in registers", {"local_memory"}}, {"shared", "the list in shared memory", {"local_memory"}}},
    [](Buffers &b, long count) -> Sides {
        float *d = b.random<float>(256 * count, 0, 1), *found = b.output<float>(16 * count);
        b.tolerance = 0;
        int n = count;
        return {{"flawed", launch(nearest16, count / 128, 128, 0, d, found, 256, n)}, {"registers", launch(nearest16_registers, count / 128, 128, 0, d, found, 256, n)},
            {"shared", launch(nearest16_shared, count / 128, 128, 0, d, found, 256, n)}};
    });

// --- random walks on a graph that fits the cache ---

__global__ void walks(const int *ptr, const int *adj, int *end, int steps, int nodes, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned long long state = i * 2862933555777941757ull + 3037000493ull;
    int v = i % nodes;
    for (int s = 0; s < steps; s++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        int first = ptr[v], degree = ptr[v + 1] - first;
        v = adj[first + (int)((state >> 32) * degree / 4294967296ull % degree)];
    }
    end[i] = v;
}
__global__ void walks_product(const int *__restrict__ ptr, const int *__restrict__ adj, int *__restrict__ end, int steps, int nodes, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned long long state = i * 2862933555777941757ull + 3037000493ull;
    int v = i % nodes;
    for (int s = 0; s < steps; s++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        int first = ptr[v], degree = ptr[v + 1] - first;
        v = adj[first + __umulhi(unsigned(state >> 32), degree)];
    }
    end[i] = v;
}
__global__ void walks_short(const int *__restrict__ ptr, const int *__restrict__ adj, int *__restrict__ end, int steps, int nodes, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned long long state = i * 2862933555777941757ull + 3037000493ull;
    int v = i % nodes;
    for (int s = 0; s < steps; s++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        int first = ptr[v];
        unsigned degree = ptr[v + 1] - first;
        v = adj[first + __umulhi(unsigned(state >> 32), degree) % degree];  // 32 bits suffice
    }
    end[i] = v;
}
Study walkers("random_walk_long_modulo", "graphs", 1 << 19, "524288 random walks of 32 steps on a graph of 16384 nodes",
    "a 64-bit remainder a step keeps the choice within the degree, where it is already",
    {{"product", "the high half of a product, no remainder", {"integer_arithmetic"}}, {"short", "the remainder kept, of 32 bits", {"integer_arithmetic"}}},
    [](Buffers &b, long count) -> Sides {
        int nodes = 16384, n = count;
        std::vector<int> ptr(nodes + 1), adj;
        for (int v = 0; v < nodes; ++v) {
            int degree = 2 + pairs::hash(v) % 13;
            for (int e = 0; e < degree; ++e) adj.push_back(pairs::hash(v * 64 + e) % nodes);
            ptr[v + 1] = adj.size();
        }
        int *p = b.copy(ptr), *a = b.copy(adj), *end = b.output<int>(count);
        b.tolerance = 0;
        auto run = [&](auto kernel) { return launch(kernel, blocks(count, 256), 256, 0, p, a, end, 32, nodes, n); };
        return {{"flawed", run(walks)}, {"product", run(walks_product)}, {"short", run(walks_short)}};
    });

// --- a revenue query over rows ---

struct alignas(16) Item {
    int order, part, date;
    float quantity, price, discount, tax;
    int flags, dates[8];
};
template <typename Get>
__device__ void revenue_of(int i, bool inside, Get get, float *revenue) {
    float sum = 0.f;
    if (inside) sum = get(i);
    sum = warp_sum(sum);
    __shared__ float part[8];
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) sum += part[w];
        atomicAdd(&revenue[blockIdx.x % 64], sum);
    }
}
__device__ float matches(int date, float quantity, float price, float discount) {
    return date >= 300 && date < 665 && discount >= 0.05f && discount <= 0.07f && quantity < 24.f ? price * discount : 0.f;
}
__global__ void __launch_bounds__(256) revenue_rows(const Item *items, float *revenue, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    revenue_of(i, i < n, [&](int k) { return matches(items[k].date, items[k].quantity, items[k].price, items[k].discount); }, revenue);
}
__global__ void __launch_bounds__(256) revenue_columns(const int *__restrict__ date, const float *__restrict__ quantity, const float *__restrict__ price, const float *__restrict__ discount, float *revenue, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    revenue_of(i, i < n, [&](int k) { return matches(date[k], quantity[k], price[k], discount[k]); }, revenue);
}
__global__ void __launch_bounds__(256) revenue_packed(const float4 *__restrict__ rows, float *revenue, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    revenue_of(i, i < n, [&](int k) {
        float4 r = rows[k];
        return matches(__float_as_int(r.x), r.y, r.z, r.w);
    }, revenue);
}
Study revenues("row_store_four_fields", "databases", 1 << 22, "revenue of four million rows of 64 bytes by three conditions",
    "four fields of 16 are needed of each row: lanes are 64 bytes apart",
    {{"columns", "the four fields as columns", {"uncoalesced_access"}}, {"packed", "the four fields of a row packed into 16 bytes", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> rows(n * 16), packed(n * 4), price(n), quantity(n), discount(n);
        std::vector<int> date(n);
        for (long i = 0; i < n; ++i) {
            unsigned r = pairs::hash(i);
            date[i] = r % 1000, quantity[i] = r / 1000 % 50, price[i] = 1.f + r % 977, discount[i] = (r >> 8) % 11 * 0.01f;
            float bits;
            std::copy_n((const char *)&date[i], 4, (char *)&bits);
            rows[i * 16 + 2] = packed[i * 4] = bits, rows[i * 16 + 3] = packed[i * 4 + 1] = quantity[i];
            rows[i * 16 + 4] = packed[i * 4 + 2] = price[i], rows[i * 16 + 5] = packed[i * 4 + 3] = discount[i];
        }
        void *items = b.copy(rows);
        float *four = b.copy(packed), *q = b.copy(quantity), *p = b.copy(price), *d = b.copy(discount), *revenue = b.output<float>(64, true);
        int *dates = b.copy(date), count = n;
        b.tolerance = 1e-3;
        return {{"flawed", launch(revenue_rows, n / 256, 256, 0, (Item *)items, revenue, count)},
            {"columns", launch(revenue_columns, n / 256, 256, 0, dates, q, p, d, revenue, count)}, {"packed", launch(revenue_packed, n / 256, 256, 0, (float4 *)four, revenue, count)}};
    });

// --- a bitmap of the rows that match ---

__global__ void bitmap(const short *key, unsigned *bits, int low, int high, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && key[i] >= low && key[i] < high) atomicOr(&bits[i / 32], 1u << i % 32);
}
__global__ void bitmap_ballot(const short *__restrict__ key, unsigned *__restrict__ bits, int low, int high, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned word = __ballot_sync(~0u, i < n && key[i] >= low && key[i] < high);
    if (i % 32 == 0 && i < n) bits[i / 32] = word;
}
__global__ void bitmap_bytes(const uint4 *__restrict__ key, unsigned char *__restrict__ bits, int low, int high, int eights) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= eights) return;
    uint4 v = key[i];
    const short *k = reinterpret_cast<const short *>(&v);
    unsigned word = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) word |= unsigned(k[j] >= low && k[j] < high) << j;
    bits[i] = word;
}
Study bitmaps("bitmap_atomic_or", "databases", 1 << 25, "a bitmap of the rows of 33 million short keys within bounds, half of them match",
    "an atomicOr for each row that matches",
    {{"ballot", "32 rows by a ballot, one store", {"global_atomics"}}, {"bytes", "eight rows a thread from one 16-byte load, a byte stored", {"global_atomics", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> host(n / 2);
        for (long i = 0; i < n / 2; ++i) host[i] = pairs::hash(i);
        auto *key = (short *)b.copy(std::vector<int>(host.begin(), host.end()));
        auto *bits = b.output<unsigned>(n / 32, true);
        int rows = n;
        b.tolerance = 0;
        return {{"flawed", launch(bitmap, n / 256, 256, 0, key, bits, -16384, 16384, rows)}, {"ballot", launch(bitmap_ballot, n / 256, 256, 0, key, bits, -16384, 16384, rows)},
            {"bytes", launch(bitmap_bytes, n / 2048, 256, 0, (uint4 *)key, (unsigned char *)bits, -16384, 16384, rows / 8)}};
    });

// --- hashes of strings ---

constexpr int LENGTH = 48;
__global__ void string_hashes(const unsigned char *text, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned h = 2166136261u;
    for (int k = 0; k < LENGTH; k++) h = (h ^ text[i * LENGTH + k]) * 16777619u;
    out[i] = h;
}
__global__ void string_hashes_wide(const uint4 *__restrict__ text, unsigned *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned h = 2166136261u;
#pragma unroll
    for (int k = 0; k < LENGTH / 16; ++k) {
        uint4 v = text[i * (LENGTH / 16) + k];
        unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int j = 0; j < 16; ++j) h = (h ^ (words[j / 4] >> 8 * (j % 4) & 255)) * 16777619u;
    }
    out[i] = h;
}
__global__ void __launch_bounds__(128) string_hashes_staged(const unsigned *__restrict__ text, unsigned *__restrict__ out, int n) {
    __shared__ unsigned tile[128 * 13];  // 12 words a string and one of padding
    const unsigned *from = text + size_t(blockIdx.x) * 128 * 12;
    for (int i = threadIdx.x; i < 128 * 12; i += 128) tile[i / 12 * 13 + i % 12] = from[i];
    __syncthreads();
    unsigned h = 2166136261u;
#pragma unroll
    for (int k = 0; k < 12; ++k) {
        unsigned v = tile[threadIdx.x * 13 + k];
        for (int j = 0; j < 4; ++j) h = (h ^ (v >> 8 * j & 255)) * 16777619u;
    }
    out[blockIdx.x * 128 + threadIdx.x] = h;
}
Study strings("string_hash_bytes", "databases", 1 << 21, "FNV hashes of two million strings of 48 bytes",
    "a thread reads its string byte by byte, lanes are 48 bytes apart",
    {{"wide", "16 bytes a load", {"uncoalesced_access", "narrow_access"}}, {"staged", "128 strings brought through padded shared memory", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *text = b.random<unsigned char>(n * LENGTH, 32, 127);
        auto *out = b.output<unsigned>(n);
        int count = n;
        b.tolerance = 0;
        return {{"flawed", launch(string_hashes, n / 256, 256, 0, text, out, count)}, {"wide", launch(string_hashes_wide, n / 256, 256, 0, (uint4 *)text, out, count)},
            {"staged", launch(string_hashes_staged, n / 128, 128, 0, (unsigned *)text, out, count)}};
    });

// --- a moving sum over the last 64 rows ---

__global__ void moving_sum(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    if (i >= n) return;
    for (int k = max(i - 63, 0); k <= i; k++) sum += in[k];
    out[i] = sum;
}
__global__ void __launch_bounds__(256) moving_sum_scan(const int *__restrict__ in, int *__restrict__ out, int n) {
    __shared__ int prefix[320], warps[10];
    int t = threadIdx.x, first = blockIdx.x * 256 - 64, lane = t % 32;  // sums up to every one of 320 rows
    for (int part = 0; part < 2; ++part) {
        int i = part * 256 + t, v = 0;
        if (i < 320) {
            v = first + i >= 0 ? in[first + i] : 0;
            for (int d = 1; d < 32; d *= 2) {
                int other = __shfl_up_sync(~0u, v, d);
                if (lane >= d) v += other;
            }
            prefix[i] = v;
            if (lane == 31) warps[i / 32] = v;
        }
    }
    __syncthreads();
    int i = 64 + t, from = i - 64, sum = prefix[i] - prefix[from];
    for (int w = from / 32; w < i / 32; ++w) sum += warps[w];
    out[blockIdx.x * 256 + t] = sum;
}
__global__ void __launch_bounds__(128) moving_sum_run(const int4 *__restrict__ in, int4 *__restrict__ out, int n) {
    __shared__ int4 tile[128 * 2 + 16];
    int t = threadIdx.x, first = blockIdx.x * 256 - 16;  // counted in fours; eight rows a thread
    for (int i = t; i < 272; i += 128) tile[i] = first + i >= 0 ? in[first + i] : int4{0, 0, 0, 0};
    __syncthreads();
    int sum = 0;
    for (int k = 0; k < 16; ++k) {
        int4 v = tile[2 * t + k];
        sum += v.x + v.y + v.z + v.w;
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        int4 gone = tile[2 * t + k], v = tile[2 * t + k + 16], r;
        r.x = sum += v.x - gone.x, r.y = sum += v.y - gone.y, r.z = sum += v.z - gone.z, r.w = sum += v.w - gone.w;
        out[blockIdx.x * 256 + 2 * t + k] = r;
    }
}
Study sums("moving_sum_64_loads", "databases", 1 << 23, "sum over the last 64 rows for each of 8 million",
    "64 loads a row, of which 63 are its neighbour's too",
    {{"scan", "differences of running sums of the block", {"redundant_loads"}}, {"run", "eight rows a thread from shared memory: one comes, one goes", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        int *in = b.random<int>(n, -100, 1000), *out = b.output<int>(n), count = n;
        b.tolerance = 0;
        return {{"flawed", launch(moving_sum, n / 256, 256, 0, in, out, count)}, {"scan", launch(moving_sum_scan, n / 256, 256, 0, in, out, count)},
            {"run", launch(moving_sum_run, n / 1024, 128, 0, (int4 *)in, (int4 *)out, count)}};
    });

// --- sums of 16 groups ---

__global__ void __launch_bounds__(256) group_sums(const unsigned char *group, const float *amount, float *total, int n) {
    __shared__ float sum[16];
    if (threadIdx.x < 16) sum[threadIdx.x] = 0.f;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&sum[group[i]], amount[i]);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&total[threadIdx.x], sum[threadIdx.x]);
}
__global__ void __launch_bounds__(256) group_sums_private(const unsigned char *__restrict__ group, const float *__restrict__ amount, float *total, int n) {
    __shared__ float sum[16][256];
    for (int g = 0; g < 16; ++g) sum[g][threadIdx.x] = 0.f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum[group[i]][threadIdx.x] += amount[i];
    __syncthreads();
    for (int g = threadIdx.x / 32; g < 16; g += 8) {
        float s = 0.f;
        for (int k = threadIdx.x % 32; k < 256; k += 32) s += sum[g][k];
        s = warp_sum(s);
        if (threadIdx.x % 32 == 0) atomicAdd(&total[g], s);
    }
}
__global__ void __launch_bounds__(256) group_sums_registers(const unsigned char *__restrict__ group, const float *__restrict__ amount, float *total, int n) {
    float sum[16] = {};
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        int g = group[i];
        float v = amount[i];
#pragma unroll
        for (int k = 0; k < 16; ++k) sum[k] += g == k ? v : 0.f;
    }
    __shared__ float part[16][8];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        float s = warp_sum(sum[k]);
        if (threadIdx.x % 32 == 0) part[k][threadIdx.x / 32] = s;
    }
    __syncthreads();
    if (threadIdx.x < 16) {
        float s = 0.f;
        for (int w = 0; w < 8; ++w) s += part[threadIdx.x][w];
        atomicAdd(&total[threadIdx.x], s);
    }
}
Study groups("group_by_16_shared_atomics", "databases", 1 << 24, "sums of 16 million amounts by 16 groups",
    "float atomics on 16 words of shared memory: a warp's lanes meet and retry",
    {{"private", "a copy of the sums for each thread in shared memory", {"shared_atomics"}}, {"registers", "sixteen sums in registers, chosen by comparison", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        auto *group = b.random<unsigned char>(n, 0, 16);
        float *amount = b.random<float>(n, 0, 1), *total = b.output<float>(16, true);
        int count = n;
        b.tolerance = 1e-3;
        auto run = [&](auto kernel) { return launch(kernel, 132 * 4, 256, 0, group, amount, total, count); };
        return {{"flawed", run(group_sums)}, {"private", run(group_sums_private)}, {"registers", run(group_sums_registers)}};
    });

// --- decimal arithmetic ---

__global__ void charges(const long long *price, const long long *discount, const long long *tax, long long *out, long long scale, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = price[i] * (scale - discount[i]) / scale * (scale + tax[i]) / scale;
}
__global__ void charges_fixed(const long long *__restrict__ price, const long long *__restrict__ discount, const long long *__restrict__ tax, long long *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = price[i] * (100 - discount[i]) / 100 * (100 + tax[i]) / 100;
}
__global__ void charges_reciprocal(const longlong2 *__restrict__ price, const longlong2 *__restrict__ discount, const longlong2 *__restrict__ tax, longlong2 *__restrict__ out, long long scale, double inverse, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs) return;
    auto divide = [&](long long v) {  // of numbers below 2^53, none negative
        long long q = (long long)((double)v * inverse);
        long long rest = v - q * scale;
        return q + (rest >= scale) - (rest < 0);
    };
    longlong2 p = price[i], d = discount[i], t = tax[i];
    out[i] = {divide(divide(p.x * (scale - d.x)) * (scale + t.x)), divide(divide(p.y * (scale - d.y)) * (scale + t.y))};
}
Study decimals("decimal_runtime_scale", "databases", 1 << 23, "discounted and taxed prices of 8 million rows in 64-bit decimals",
    "two 64-bit divisions by a scale known at run time only",
    {{"fixed", "the scale known to the compiler", {"integer_arithmetic"}}, {"reciprocal", "a product with the reciprocal, corrected; two rows a thread", {"integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<long long> p(n), d(n), t(n);
        for (long i = 0; i < n; ++i) {
            unsigned r = pairs::hash(i);
            p[i] = 90000 + r % 10000000, d[i] = r % 11, t[i] = r / 16 % 9;
        }
        auto put = [&](const std::vector<long long> &v) {
            auto *to = b.allocate<long long>(n);
            CHECK(cudaMemcpy(to, v.data(), n * 8, cudaMemcpyHostToDevice));
            return to;
        };
        auto *price = put(p), *discount = put(d), *tax = put(t), *out = (long long *)b.output<unsigned long long>(n);
        b.tolerance = 0;
        int count = n;
        return {{"flawed", launch(charges, n / 256, 256, 0, price, discount, tax, out, 100, count)},
            {"fixed", launch(charges_fixed, n / 256, 256, 0, price, discount, tax, out, count)},
            {"reciprocal", launch(charges_reciprocal, n / 512, 256, 0, (longlong2 *)price, (longlong2 *)discount, (longlong2 *)tax, (longlong2 *)out, 100, 0.01, count / 2)}};
    });

// --- AES-128, counter mode, by tables in shared memory ---

struct Aes {
    unsigned table[256], keys[44];
    unsigned char box[256];
};
Aes aes() {
    Aes a;
    unsigned char p = 1, q = 1;
    do {  // p runs through the field, q is its inverse
        p = p ^ (p << 1) ^ (p & 0x80 ? 0x1b : 0);
        q ^= q << 1, q ^= q << 2, q ^= q << 4;
        if (q & 0x80) q ^= 0x09;
        auto turn = [](unsigned char v, int k) { return (unsigned char)(v << k | v >> (8 - k)); };
        a.box[p] = q ^ turn(q, 1) ^ turn(q, 2) ^ turn(q, 3) ^ turn(q, 4) ^ 0x63;
    } while (p != 1);
    a.box[0] = 0x63;
    for (int i = 0; i < 256; ++i) {
        unsigned s = a.box[i], s2 = (s << 1 ^ (s & 0x80 ? 0x1b : 0)) & 255;
        a.table[i] = s2 | s << 8 | s << 16 | (s2 ^ s) << 24;
    }
    for (int i = 0; i < 44; ++i) a.keys[i] = pairs::hash(i);
    return a;
}
template <int COPIES, bool FOUR>  // copies of the table, so that lanes have banks of their own; or four turned tables
__global__ void __launch_bounds__(256) aes_counter(const unsigned *__restrict__ table, const unsigned *__restrict__ keys, uint4 *__restrict__ out) {
    extern __shared__ unsigned t[];
    __shared__ unsigned key[44];
    for (int i = threadIdx.x; i < 256 * (FOUR ? 4 : COPIES); i += 256) t[i] = FOUR ? __funnelshift_l(table[i % 256], table[i % 256], i / 256 * 8) : table[i / COPIES];
    if (threadIdx.x < 44) key[threadIdx.x] = keys[threadIdx.x];
    __syncthreads();
    int lane = threadIdx.x % COPIES;
    auto look = [&](unsigned v, int k) {
        v = v >> 8 * k & 255;
        if (FOUR) return t[k * 256 + v];
        unsigned w = t[v * COPIES + lane];
        return __funnelshift_l(w, w, 8 * k);
    };
    for (int block = 0; block < 8; ++block) {
        unsigned i = (blockIdx.x * 8 + block) * 256 + threadIdx.x;
        uint4 s{i ^ key[0], key[1], key[2] ^ 0x01234567u, key[3] ^ 0x89abcdefu};
#pragma unroll 1
        for (int r = 1; r < 11; ++r) {
            uint4 n;
            n.x = look(s.x, 0) ^ look(s.y, 1) ^ look(s.z, 2) ^ look(s.w, 3) ^ key[4 * r];
            n.y = look(s.y, 0) ^ look(s.z, 1) ^ look(s.w, 2) ^ look(s.x, 3) ^ key[4 * r + 1];
            n.z = look(s.z, 0) ^ look(s.w, 1) ^ look(s.x, 2) ^ look(s.y, 3) ^ key[4 * r + 2];
            n.w = look(s.w, 0) ^ look(s.x, 1) ^ look(s.y, 2) ^ look(s.z, 3) ^ key[4 * r + 3];
            s = n;
        }
        out[i] = s;
    }
}
Study ciphers("aes_tables_conflicts", "crypto", 2048, "key stream of 64 MiB by the rounds of AES-128, tables in shared memory",
    "lanes look up random words of four tables: six or seven turns a look-up",
    {{"copies", "one table in 32 copies, a bank a lane, turned by a shift", {"shared_bank_conflicts"}}, {"eight_copies", "one table in eight copies", {"shared_bank_conflicts"}}},
    [](Buffers &b, long count) -> Sides {
        Aes a = aes();
        auto *table = (unsigned *)b.copy(std::vector<int>(a.table, a.table + 256)), *keys = (unsigned *)b.copy(std::vector<int>(a.keys, a.keys + 44));
        auto *out = b.output<unsigned>(count * 8 * 256 * 4);
        b.tolerance = 0;
        return {{"flawed", launch(aes_counter<1, true>, count, 256, 4096, table, keys, (uint4 *)out)}, {"copies", launch(aes_counter<32, false>, count, 256, 32768, table, keys, (uint4 *)out)},
            {"eight_copies", launch(aes_counter<8, false>, count, 256, 8192, table, keys, (uint4 *)out)}};
    });

// --- BLAKE2s ---

__constant__ unsigned char SIGMA[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8}, {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9}, {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};
__device__ constexpr unsigned char FIXED_SIGMA[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8}, {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9}, {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};
__device__ __forceinline__ void mix(unsigned &a, unsigned &b, unsigned &c, unsigned &d, unsigned x, unsigned y) {
    auto right = [](unsigned v, int k) { return __funnelshift_r(v, v, k); };
    a += b + x, d = right(d ^ a, 16), c += d, b = right(b ^ c, 12);
    a += b + y, d = right(d ^ a, 8), c += d, b = right(b ^ c, 7);
}
template <typename Word>
__device__ __forceinline__ void blake_round(unsigned (&v)[16], Word word) {
    mix(v[0], v[4], v[8], v[12], word(0), word(1)), mix(v[1], v[5], v[9], v[13], word(2), word(3));
    mix(v[2], v[6], v[10], v[14], word(4), word(5)), mix(v[3], v[7], v[11], v[15], word(6), word(7));
    mix(v[0], v[5], v[10], v[15], word(8), word(9)), mix(v[1], v[6], v[11], v[12], word(10), word(11));
    mix(v[2], v[7], v[8], v[13], word(12), word(13)), mix(v[3], v[4], v[9], v[14], word(14), word(15));
}
__device__ __forceinline__ void blake_start(unsigned (&v)[16], unsigned i) {
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = 0x6a09e667u * (k + 1), v[k + 8] = 0xbb67ae85u + k * 0x3c6ef372u;
    v[12] ^= i;
}
template <int KEPT>  // the message: 0 in local memory, 1 in registers, 2 in shared memory
__global__ void __launch_bounds__(128) blake2s(const unsigned *__restrict__ message, unsigned *__restrict__ digest, int count) {
    __shared__ unsigned shared[KEPT == 2 ? 16 : 1][128];
    int i = blockIdx.x * 128 + threadIdx.x;
    unsigned m[16], v[16];
#pragma unroll
    for (int k = 0; k < 16; ++k)
        if (KEPT == 2) shared[k][threadIdx.x] = message[k * count + i];
        else m[k] = message[k * count + i];
    blake_start(v, i);
    if (KEPT == 1) {
#pragma unroll
        for (int r = 0; r < 10; ++r) blake_round(v, [&](int k) { return m[FIXED_SIGMA[r][k]]; });
    } else {
#pragma unroll 1
        for (int r = 0; r < 10; ++r)
            if (KEPT == 2) blake_round(v, [&](int k) { return shared[SIGMA[r][k]][threadIdx.x]; });
            else blake_round(v, [&](int k) { return m[SIGMA[r][k]]; });
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) digest[k * count + i] = v[k] ^ v[k + 8];
}
Study blakes("blake2s_message_array", "crypto", 1 << 20, "BLAKE2s compression of a million blocks of 64 bytes, words interleaved",
    "words of the message are chosen by a table at run time: the array lies in local memory",
    {{"unrolled", "rounds unrolled: every choice is known", {"local_memory"}}, {"shared", "the message in shared memory", {"local_memory"}}},
    [](Buffers &b, long count) -> Sides {
        auto *m = b.random<unsigned>(16 * count, 0, 4e9), *digest = b.output<unsigned>(8 * count);
        int n = count;
        b.tolerance = 0;
        return {{"flawed", launch(blake2s<0>, count / 128, 128, 0, m, digest, n)}, {"unrolled", launch(blake2s<1>, count / 128, 128, 0, m, digest, n)},
            {"shared", launch(blake2s<2>, count / 128, 128, 0, m, digest, n)}};
    });

// --- powers modulo a prime ---

__global__ void powers(const unsigned *base, unsigned *out, unsigned exponent, unsigned long long p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = base[i], result = 1;
    for (unsigned e = exponent; e; e >>= 1) {
        if (e & 1) result = result * x % p;
        x = x * x % p;
    }
    out[i] = result;
}
__global__ void powers_montgomery(const unsigned *__restrict__ base, unsigned *__restrict__ out, unsigned exponent, unsigned p, unsigned inverse, unsigned one, unsigned square, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    auto times = [&](unsigned a, unsigned b) {  // a b / 2^32 modulo p
        unsigned long long t = (unsigned long long)a * b;
        unsigned q = unsigned(t) * inverse, r = unsigned(t >> 32) + p - __umulhi(q, p);
        return r >= p ? r - p : r;
    };
    unsigned x = times(base[i], square), result = one;
    for (unsigned e = exponent; e; e >>= 1) {
        if (e & 1) result = times(result, x);
        x = times(x, x);
    }
    out[i] = times(result, 1);
}
__global__ void powers_barrett(const unsigned *__restrict__ base, unsigned *__restrict__ out, unsigned exponent, unsigned p, unsigned long long reciprocal, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    auto times = [&](unsigned a, unsigned b) {
        unsigned long long t = (unsigned long long)a * b;
        unsigned r = unsigned(t) - unsigned(__umul64hi(t, reciprocal)) * p;
        return r >= p ? r - p : r;
    };
    unsigned x = base[i], result = 1;
    for (unsigned e = exponent; e; e >>= 1) {
        if (e & 1) result = times(result, x);
        x = times(x, x);
    }
    out[i] = result;
}
Study exponents("power_modulo_long_division", "crypto", 1 << 20, "a million numbers raised to a power of 30 bits modulo a prime of 31 bits",
    "a 64-bit remainder for each of 45 products",
    {{"montgomery", "Montgomery products of 32 bits", {"integer_arithmetic"}}, {"barrett", "a product with the reciprocal of the prime", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned p = 2013265921u, inverse = 1;
        for (int k = 0; k < 5; ++k) inverse *= 2 - p * inverse;  // of p modulo 2^32
        unsigned one = (1ull << 32) % p, square = (unsigned long long)one * one % p;
        unsigned long long reciprocal = ~0ull / p;
        auto *base = b.random<unsigned>(n, 1, 2e9), *out = b.output<unsigned>(n);
        int count = n;
        b.tolerance = 0;
        return {{"flawed", launch(powers, n / 256, 256, 0, base, out, 715827881u, p, count)},
            {"montgomery", launch(powers_montgomery, n / 256, 256, 0, base, out, 715827881u, p, inverse, one, square, count)},
            {"barrett", launch(powers_barrett, n / 256, 256, 0, base, out, 715827881u, p, reciprocal, count)}};
    });

// --- parity of a disk array ---

__global__ void raid(const unsigned char *data, const unsigned char *log, const unsigned char *exp, unsigned char *p, unsigned char *q, int disks, int bytes) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= bytes) return;
    unsigned char sum = 0, weighted = 0;
    for (int d = 0; d < disks; d++) {
        unsigned char v = data[d * bytes + i];
        sum ^= v;
        if (v) weighted ^= exp[(log[v] + d) % 255];
    }
    p[i] = sum, q[i] = weighted;
}
__device__ unsigned doubled(unsigned v) {  // four elements of the field at once
    unsigned high = v & 0x80808080u;
    return (v << 1 & 0xfefefefeu) ^ ((high >> 7) * 0x1du);
}
template <typename Word, int WORDS>
__global__ void raid_words(const Word *__restrict__ data, Word *__restrict__ p, Word *__restrict__ q, int disks, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned sum[WORDS] = {}, weighted[WORDS] = {};
    for (int d = disks - 1; d >= 0; --d) {
        Word v = data[d * count + i];
        const unsigned *w = reinterpret_cast<const unsigned *>(&v);
#pragma unroll
        for (int k = 0; k < WORDS; ++k) sum[k] ^= w[k], weighted[k] = doubled(weighted[k]) ^ w[k];
    }
    p[i] = *reinterpret_cast<Word *>(sum), q[i] = *reinterpret_cast<Word *>(weighted);
}
Study raids("raid6_byte_tables", "crypto", 1 << 22, "both parities of ten disks, 4 MiB of each",
    "a byte a thread; products in the field by two dependent look-ups in global memory",
    {{"words", "four bytes a word, products by shifts", {"narrow_access", "memory_latency"}}, {"wide", "16 bytes a thread, products by shifts", {"narrow_access", "memory_latency"}}},
    [](Buffers &b, long bytes) -> Sides {
        int disks = 10, n = bytes;
        std::vector<int> log(64), exp(64);
        auto *l = (unsigned char *)log.data(), *e = (unsigned char *)exp.data();
        for (int k = 0, v = 1; k < 255; ++k) e[k] = v, l[v] = k, v = v << 1 ^ (v & 128 ? 0x11d : 0);
        auto *logs = (unsigned char *)b.copy(log), *exps = (unsigned char *)b.copy(exp), *data = b.random<unsigned char>(disks * bytes, 0, 256);
        auto *p = b.output<unsigned char>(bytes), *q = b.output<unsigned char>(bytes);
        b.tolerance = 0;
        return {{"flawed", launch(raid, bytes / 256, 256, 0, data, logs, exps, p, q, disks, n)},
            {"words", launch(raid_words<unsigned, 1>, bytes / 1024, 256, 0, (unsigned *)data, (unsigned *)p, (unsigned *)q, disks, n / 4)},
            {"wide", launch(raid_words<uint4, 4>, bytes / 4096, 256, 0, (uint4 *)data, (uint4 *)p, (uint4 *)q, disks, n / 16)}};
    });

// --- local alignment scores ---

constexpr int QUERY = 48;
template <typename Row>
__device__ int align(const unsigned char *reference, const unsigned char *query, int pairs, int pair, int length, Row row) {
    for (int j = 0; j < QUERY; ++j) row(j) = 0;
    int best = 0;
    for (int i = 0; i < length; i++) {
        int r = reference[i * pairs + pair], diagonal = 0, left = 0;
        for (int j = 0; j < QUERY; j++) {
            int up = row(j), score = max(max(diagonal + (r == query[j] ? 3 : -2), max(up, left) - 4), 0);
            diagonal = up, left = score;
            row(j) = (short)score;
            best = max(best, score);
        }
    }
    return best;
}
__global__ void __launch_bounds__(128) align_rows(const unsigned char *reference, const unsigned char *query, short *rows, int *score, int pairs, int length) {
    int p = blockIdx.x * 128 + threadIdx.x;
    score[p] = align(reference, query, pairs, p, length, [&](int j) -> short & { return rows[p * QUERY + j]; });
}
__global__ void __launch_bounds__(128) align_interleaved(const unsigned char *reference, const unsigned char *query, short *rows, int *score, int pairs, int length) {
    int p = blockIdx.x * 128 + threadIdx.x;
    score[p] = align(reference, query, pairs, p, length, [&](int j) -> short & { return rows[j * pairs + p]; });
}
__global__ void __launch_bounds__(128) align_shared(const unsigned char *reference, const unsigned char *query, short *, int *score, int pairs, int length) {
    __shared__ short row[QUERY][128];
    int p = blockIdx.x * 128 + threadIdx.x;
    score[p] = align(reference, query, pairs, p, length, [&](int j) -> short & { return row[j][threadIdx.x]; });
}
Study aligns("align_rows_in_global", "bioinformatics", 1 << 15, "Smith-Waterman scores of 32768 references of 64 bases against a query of 48",
    "each thread keeps its row of scores in global memory, 96 bytes from its neighbour's",
    {{"interleaved", "rows interleaved: neighbours side by side", {"uncoalesced_access"}}, {"shared", "rows in shared memory", {"uncoalesced_access", "memory_latency"}}},
    [](Buffers &b, long pairs) -> Sides {
        auto *reference = b.random<unsigned char>(64 * pairs, 0, 4), *query = b.random<unsigned char>(QUERY, 0, 4);
        short *rows = b.allocate<short>(QUERY * pairs);
        int *score = b.output<int>(pairs), n = pairs;
        b.tolerance = 0;
        auto run = [&](auto kernel) { return launch(kernel, pairs / 128, 128, 0, reference, query, rows, score, n, 64); };
        return {{"flawed", run(align_rows)}, {"interleaved", run(align_interleaved)}, {"shared", run(align_shared)}};
    });

// --- hashes of all words of 21 bases ---

constexpr int WORD = 21;
__device__ unsigned base_code(unsigned char c) { return c >> 1 & 3; }
__device__ unsigned kmer_hash(unsigned long long k) {
    k ^= k >> 33, k *= 0xff51afd7ed558ccdull, k ^= k >> 33;
    return k;
}
__global__ void kmers(const unsigned char *text, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long k = 0;
    for (int j = 0; j < WORD; j++) k = k << 2 | base_code(text[i + j]);
    out[i] = kmer_hash(k);
}
__global__ void __launch_bounds__(256) kmers_shared(const unsigned char *__restrict__ text, unsigned *__restrict__ out, int n) {
    __shared__ unsigned codes[20];  // 16 bases a word, the first highest
    int t = threadIdx.x;
    const uint4 *from = reinterpret_cast<const uint4 *>(text + blockIdx.x * 256);
    if (t < 18) {
        uint4 v = from[t];
        const unsigned char *c = reinterpret_cast<const unsigned char *>(&v);
        unsigned w = 0;
#pragma unroll
        for (int k = 0; k < 16; ++k) w = w << 2 | base_code(c[k]);
        codes[t] = w;
    }
    __syncthreads();
    int word = t / 16, shift = 2 * (t % 16);
    unsigned high = __funnelshift_l(codes[word + 1], codes[word], shift), low = __funnelshift_l(codes[word + 2], codes[word + 1], shift);
    out[blockIdx.x * 256 + t] = kmer_hash(((unsigned long long)high << 32 | low) >> (64 - 2 * WORD));
}
__global__ void kmers_rolling(const uint4 *__restrict__ text, uint4 *__restrict__ out, int sixteens) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= sixteens) return;
    uint4 v[3] = {text[i], text[i + 1], text[i + 2]};
    const unsigned char *c = reinterpret_cast<const unsigned char *>(v);
    unsigned long long k = 0;
    unsigned result[16];
#pragma unroll
    for (int j = 0; j < WORD + 15; ++j) {
        k = (k << 2 | base_code(c[j])) & (1ull << 2 * WORD) - 1;
        if (j >= WORD - 1) result[j - WORD + 1] = kmer_hash(k);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) out[4 * i + j] = {result[4 * j], result[4 * j + 1], result[4 * j + 2], result[4 * j + 3]};
}
Study words("kmer_hash_bytes", "bioinformatics", 1 << 23, "hashes of all words of 21 bases of a sequence of 8 million letters",
    "21 byte loads a word, twenty of them its neighbour's too",
    {{"shared", "letters packed to two bits in shared memory, a word from two shifts", {"redundant_loads", "narrow_access"}},
        {"rolling", "16 words a thread, each from the one before", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *text = b.random<unsigned char>(n + 64, 65, 90);
        auto *out = b.output<unsigned>(n);
        int count = n;
        b.tolerance = 0;
        return {{"flawed", launch(kmers, n / 256, 256, 0, text, out, count)}, {"shared", launch(kmers_shared, n / 256, 256, 0, text, out, count)},
            {"rolling", launch(kmers_rolling, n / 4096, 256, 0, (uint4 *)text, (uint4 *)out, count / 16)}};
    });

// --- Hamming distances of all pairs of sequences ---

__global__ void hamming(const unsigned char *a, int *distance, int count, int length) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, d = 0;
    for (int k = 0; k < length; k++) d += a[y * length + k] != a[x * length + k];
    distance[y * count + x] = d;
}
__global__ void hamming_words(const uint4 *__restrict__ a, int *__restrict__ distance, int count, int sixteens) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, d = 0;
    for (int k = 0; k < sixteens; k++) {
        uint4 u = a[y * sixteens + k], v = a[x * sixteens + k];
        d += __popc(__vcmpne4(u.x, v.x)) + __popc(__vcmpne4(u.y, v.y)) + __popc(__vcmpne4(u.z, v.z)) + __popc(__vcmpne4(u.w, v.w));
    }
    distance[y * count + x] = d / 8;
}
__global__ void __launch_bounds__(256) hamming_tile(const unsigned *__restrict__ a, int *__restrict__ distance, int count, int words) {
    __shared__ unsigned rows[16][33], columns[16][33];
    int tx = threadIdx.x, ty = threadIdx.y, d = 0;
    for (int k = 0; k < words; k += 32) {
#pragma unroll
        for (int h = 0; h < 32; h += 16) {
            rows[ty][tx + h] = a[(blockIdx.y * 16 + ty) * words + k + tx + h];
            columns[ty][tx + h] = a[(blockIdx.x * 16 + ty) * words + k + tx + h];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 32; ++i) d += __popc(__vcmpne4(rows[ty][i], columns[tx][i]));
        __syncthreads();
    }
    distance[(blockIdx.y * 16 + ty) * count + blockIdx.x * 16 + tx] = d / 8;
}
Study hammings("hamming_pairs_bytes", "bioinformatics", 1024, "Hamming distances of all pairs of 1024 sequences of 256 letters",
    "letters are fetched byte by byte from global memory, lanes 256 bytes apart",
    {{"words", "16 letters a load, four compared at once", {"uncoalesced_access", "narrow_access"}}, {"tile", "tiles of words in shared memory, four letters compared at once", {"uncoalesced_access", "narrow_access", "redundant_loads"}}},
    [](Buffers &b, long count) -> Sides {
        auto *a = b.random<unsigned char>(count * 256, 0, 4);
        int *d = b.output<int>(count * count), n = count;
        b.tolerance = 0;
        return {{"flawed", launch(hamming, dim3(n / 16, n / 16), dim3(16, 16), 0, a, d, n, 256)}, {"words", launch(hamming_words, dim3(n / 16, n / 16), dim3(16, 16), 0, (uint4 *)a, d, n, 16)},
            {"tile", launch(hamming_tile, dim3(n / 16, n / 16), dim3(16, 16), 0, (unsigned *)a, d, n, 64)}};
    });

// --- scores of a motif along a sequence ---

__constant__ float MOTIF[20][4];
__global__ void motif(const unsigned char *text, float *score, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.f;
    for (int k = 0; k < 20; k++) sum += MOTIF[k][text[i + k]];
    score[i] = sum;
}
__global__ void __launch_bounds__(256) motif_shared(const unsigned char *__restrict__ text, float *__restrict__ score, int n) {
    __shared__ float table[80];
    if (threadIdx.x < 80) table[threadIdx.x] = MOTIF[threadIdx.x / 4][threadIdx.x % 4];
    __syncthreads();
    int i = blockIdx.x * 256 + threadIdx.x;
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < 20; ++k) sum += table[k * 4 + text[i + k]];
    score[i] = sum;
}
__global__ void __launch_bounds__(256) motif_select(const unsigned char *__restrict__ text, float *__restrict__ score, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < 20; ++k) {  // one constant address a time, the letter chosen by comparison
        int c = text[i + k];
        float low = c & 1 ? MOTIF[k][1] : MOTIF[k][0], high = c & 1 ? MOTIF[k][3] : MOTIF[k][2];
        sum += c & 2 ? high : low;
    }
    score[i] = sum;
}
Study motifs("motif_constant_lookup", "bioinformatics", 1 << 22, "scores of a motif of 20 places at each of 4 million positions",
    "weights are chosen by the letter from constant memory: four turns a look-up",
    {{"shared", "weights in shared memory", {"constant_divergence"}}, {"select", "all four weights read, one chosen by comparison", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        float host[80];
        for (int k = 0; k < 80; ++k) host[k] = pairs::hash(k) / 4294967296.f - 0.5f;
        CHECK(cudaMemcpyToSymbol(MOTIF, host, sizeof host));
        auto *text = b.random<unsigned char>(n + 64, 0, 4);
        float *score = b.output<float>(n);
        int count = n;
        auto run = [&](auto kernel) { return launch(kernel, n / 256, 256, 0, text, score, count); };
        return {{"flawed", run(motif)}, {"shared", run(motif_shared)}, {"select", run(motif_select)}};
    });

}  // namespace
