// Graphs, tables, ciphers and sequences.
#include <algorithm>
#include <climits>

#include "../pairs/pair.cuh"

namespace {

// --- roots of trees ---

__global__ void find_roots(const int *parent, int *root, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int r = i;
    while (parent[r] != r) r = parent[r];
    root[i] = r;
}
template <bool DOUBLING>
__global__ void __launch_bounds__(1024) find_roots_tile(const int *__restrict__ parent, int *__restrict__ root) {
    __shared__ int up[1024];
    int t = threadIdx.x, first = blockIdx.x * 1024;
    up[t] = parent[first + t] - first;
    __syncthreads();
    int r = t;
    if (DOUBLING)
        for (int round = 0; round < 6; ++round) {
            r = up[up[t]];
            __syncthreads();
            up[t] = r;
            __syncthreads();
        }
    else
        while (up[r] != r) r = up[r];
    root[first + t] = first + r;
}
Study roots("find_roots_long_chains", "graphs", 1 << 22, "the roots of four million nodes of a union-find forest, chains of up to 64 links within 1024 nodes",
    "each link is a load from global memory that waits for the one before",
    {{"shared", "parents of 1024 nodes in shared memory, links followed there", {"memory_latency"}}, {"doubling", "the same, and pointers doubled: six rounds", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> host(n);
        for (long tile = 0; tile < n; tile += 1024) {
            int a = pairs::hash(tile) | 1, c = pairs::hash(tile + 1) & 1023;
            auto place = [&](int j) { return int(tile) + (int((unsigned(j) * unsigned(a)) & 1023) ^ c); };
            for (int j = 0; j < 1024; ++j) host[place(j)] = j % 64 ? place(j - 1) : place(j);
        }
        int *parent = b.copy(host), *root = b.output<int>(n), m = n;
        b.tolerance = 0;
        return {{"flawed", launch(find_roots, n / 256, 256, 0, parent, root, m)}, {"shared", launch(find_roots_tile<false>, n / 1024, 1024, 0, parent, root)},
            {"doubling", launch(find_roots_tile<true>, n / 1024, 1024, 0, parent, root)}};
    });

// --- a bottom-up step of a breadth-first search ---

__global__ void bottom_up(const int *start, const int *edge, const int *frontier, int *next, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int found = 0;
    for (int j = start[v]; j < start[v + 1]; j++)
        if (frontier[edge[j]]) found = 1;
    next[v] = found;
}
template <bool BITS>
__global__ void bottom_up_stop(const int *__restrict__ start, const int *__restrict__ edge, const int *__restrict__ frontier, int *__restrict__ next, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int found = 0, end = start[v + 1];
    for (int j = start[v]; j < end && !found; ++j) {
        int u = edge[j];
        found = BITS ? frontier[u / 32] >> u % 32 & 1 : frontier[u];
    }
    next[v] = found;
}
Study bottom_ups("bottom_up_bfs_goes_on", "graphs", 1 << 20, "a bottom-up step of a breadth-first search: a million vertices of 16 edges, a third of them in the frontier",
    "goes over all edges of a vertex, although the first one into the frontier decides",
    {{"stop", "stops at the first edge into the frontier", {"redundant_loads"}}, {"stop_bits", "the same, the frontier a bit a vertex", {"redundant_loads", "cache_locality"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> start(n + 1), flags(n), bits(n / 32);
        for (long v = 0; v < n; ++v) {
            start[v + 1] = 16 * (v + 1), flags[v] = pairs::hash(v) % 3 == 0;
            bits[v / 32] |= int(unsigned(flags[v]) << v % 32);
        }
        int *ds = b.copy(start), *edge = b.random<int>(16 * n, 0, n), *frontier = b.copy(flags), *packed = b.copy(bits), *next = b.output<int>(n), m = n;
        b.tolerance = 0;
        return {{"flawed", launch(bottom_up, n / 256, 256, 0, ds, edge, frontier, next, m)}, {"stop", launch(bottom_up_stop<false>, n / 256, 256, 0, ds, edge, frontier, next, m)},
            {"stop_bits", launch(bottom_up_stop<true>, n / 256, 256, 0, ds, edge, packed, next, m)}};
    });

// --- ranks pushed along edges ---

__global__ void push_ranks(const int *start, const int *to, const float *share, float *next, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    float s = share[v];
    for (int j = start[v]; j < start[v + 1]; j++) atomicAdd(&next[to[j]], s);
}
__global__ void pull_ranks(const int *__restrict__ start, const int *__restrict__ from, const float *__restrict__ share, float *__restrict__ next, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    float s = 0.f;
    for (int j = start[v], end = start[v + 1]; j < end; ++j) s += share[from[j]];
    next[v] = s;
}
__global__ void pull_ranks_eight(const int *__restrict__ start, const int *__restrict__ from, const float *__restrict__ share, float *__restrict__ next) {
    int v = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
    float s = 0.f;
    for (int j = start[v] + lane, end = start[v + 1]; j < end; j += 8) s += share[from[j]];
    for (int d = 4; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (lane == 0) next[v] = s;
}
Study pushes("rank_push_atomics", "graphs", 1 << 19, "a step of page ranks over half a million pages and eight million links",
    "an atomic addition for each link",
    {{"pull", "links listed by their target: a thread a page gathers", {"global_atomics"}}, {"pull_eight", "eight lanes a page gather, summed by shuffles", {"global_atomics", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> start(n + 1), to, back(n + 1);
        for (long v = 0; v < n; ++v) {
            for (int k = 8 + pairs::hash(v) % 16; k; --k) to.push_back(pairs::hash(unsigned(to.size()) + 77) % n);
            start[v + 1] = to.size();
        }
        std::vector<int> from(to.size());
        for (int t : to) ++back[t + 1];
        for (long v = 0; v < n; ++v) back[v + 1] += back[v];
        std::vector<int> at(back.begin(), back.end() - 1);
        for (long v = 0; v < n; ++v)
            for (int j = start[v]; j < start[v + 1]; ++j) from[at[to[j]]++] = v;
        int *ds = b.copy(start), *dt = b.copy(to), *db = b.copy(back), *df = b.copy(from), m = n;
        float *share = b.random<float>(n, 0, 1), *next = b.output<float>(n, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(push_ranks, n / 256, 256, 0, ds, dt, share, next, m)}, {"pull", launch(pull_ranks, n / 256, 256, 0, db, df, share, next, m)},
            {"pull_eight", launch(pull_ranks_eight, n / 32, 256, 0, db, df, share, next)}};
    });

// --- common neighbours ---

__global__ void common_linear(const int2 *pair, const int *start, const int *neighbour, int *count, int n) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= n) return;
    int u = pair[e].x, v = pair[e].y, found = 0;
    for (int i = start[u]; i < start[u + 1]; i++)
        for (int j = start[v]; j < start[v + 1]; j++)
            if (neighbour[i] == neighbour[j]) {
                found++;
                break;
            }
    count[e] = found;
}
__global__ void common_binary(const int2 *__restrict__ pair, const int *__restrict__ start, const int *__restrict__ neighbour, int *__restrict__ count, int n) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= n) return;
    int2 p = pair[e];
    int found = 0, first = start[p.y], end = start[p.y + 1];
    for (int i = start[p.x], last = start[p.x + 1]; i < last; ++i) {
        int want = neighbour[i], lo = first, hi = end;
        while (lo < hi) {
            int mid = (lo + hi) / 2;
            if (neighbour[mid] < want) lo = mid + 1;
            else hi = mid;
        }
        found += lo < end && neighbour[lo] == want;
    }
    count[e] = found;
}
__global__ void common_merge(const int2 *__restrict__ pair, const int *__restrict__ start, const int *__restrict__ neighbour, int *__restrict__ count, int n) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= n) return;
    int2 p = pair[e];
    int i = start[p.x], j = start[p.y], i_end = start[p.x + 1], j_end = start[p.y + 1], found = 0;
    while (i < i_end && j < j_end) {
        int a = neighbour[i], c = neighbour[j];
        found += a == c, i += a <= c, j += c <= a;
    }
    count[e] = found;
}
Study commons("common_neighbours_linear", "graphs", 1 << 18, "common neighbours of 262144 pairs of vertices with about 32 neighbours each, sorted",
    "each neighbour of one is looked for from the beginning of the other's list",
    {{"binary", "looked for by halving", {"redundant_loads"}}, {"merge", "both lists gone through once together", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int NODES = 4096;
        std::vector<int> start(1), neighbours;
        for (int v = 0; v < NODES; ++v) {
            std::vector<int> mine;
            for (int k = 0; k < 32; ++k) mine.push_back((v + pairs::hash(v * 32 + k) % 256) % NODES);
            std::sort(mine.begin(), mine.end());
            mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
            neighbours.insert(neighbours.end(), mine.begin(), mine.end());
            start.push_back(neighbours.size());
        }
        std::vector<int2> pairs_host(n);
        for (long e = 0; e < n; ++e) {
            int u = pairs::hash(e) % NODES;
            pairs_host[e] = {u, int((u + pairs::hash(e + n) % 64) % NODES)};
        }
        int *ds = b.copy(start), *dn = b.copy(neighbours), *count = b.output<int>(n), m = n;
        int2 *list = b.copy(pairs_host);
        b.tolerance = 0;
        return {{"flawed", launch(common_linear, n / 128, 128, 0, list, ds, dn, count, m)}, {"binary", launch(common_binary, n / 128, 128, 0, list, ds, dn, count, m)},
            {"merge", launch(common_merge, n / 128, 128, 0, list, ds, dn, count, m)}};
    });

// --- the commonest label among neighbours ---

__global__ void commonest(const int *neighbour, const unsigned char *label, unsigned char *out, int degree, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int count[16];
    for (int l = 0; l < 16; l++) count[l] = 0;
    for (int k = 0; k < degree; k++) count[label[neighbour[k * n + v]]]++;
    int best = 0;
    for (int l = 1; l < 16; l++)
        if (count[l] > count[best]) best = l;
    out[v] = best;
}
__global__ void __launch_bounds__(128) commonest_shared(const int *__restrict__ neighbour, const unsigned char *__restrict__ label, unsigned char *__restrict__ out, int degree, int n) {
    __shared__ int count[16][128];
    int t = threadIdx.x, v = blockIdx.x * 128 + t;
#pragma unroll
    for (int l = 0; l < 16; ++l) count[l][t] = 0;
#pragma unroll 4
    for (int k = 0; k < degree; ++k) count[label[neighbour[k * n + v]]][t]++;
    int best = 0, most = count[0][t];
#pragma unroll
    for (int l = 1; l < 16; ++l)
        if (count[l][t] > most) best = l, most = count[l][t];
    out[v] = best;
}
__global__ void __launch_bounds__(128) commonest_packed(const int *__restrict__ neighbour, const unsigned char *__restrict__ label, unsigned char *__restrict__ out, int degree, int n) {
    int v = blockIdx.x * 128 + threadIdx.x;
    unsigned long long low = 0, high = 0;
#pragma unroll 4
    for (int k = 0; k < degree; ++k) {
        int l = label[neighbour[k * n + v]];
        unsigned long long one = 1ull << 8 * (l & 7);
        low += l < 8 ? one : 0, high += l < 8 ? 0 : one;
    }
    int best = 0, most = low & 255;
#pragma unroll
    for (int l = 1; l < 16; ++l) {
        int c = int((l < 8 ? low : high) >> 8 * (l & 7)) & 255;
        if (c > most) best = l, most = c;
    }
    out[v] = best;
}
Study commonests("commonest_label_counts_array", "graphs", 1 << 21, "the commonest of 16 labels among 32 neighbours of two million vertices",
    "16 counters a thread in an array indexed by the label: local memory",
    {{"shared", "counters in shared memory, a column a thread", {"local_memory"}}, {"packed", "counters of eight bits in two 64-bit registers", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> host(32 * n);
        for (long k = 0; k < 32; ++k)
            for (long v = 0; v < n; ++v) host[k * n + v] = int((v + pairs::hash(unsigned(k * n + v)) % 512) % n);
        int *neighbour = b.copy(host), m = n;
        unsigned char *label = b.random<unsigned char>(n, 0, 16), *out = b.output<unsigned char>(n);
        b.tolerance = 0;
        return {{"flawed", launch(commonest, n / 128, 128, 0, neighbour, label, out, 32, m)}, {"shared", launch(commonest_shared, n / 128, 128, 0, neighbour, label, out, 32, m)},
            {"packed", launch(commonest_packed, n / 128, 128, 0, neighbour, label, out, 32, m)}};
    });

// --- probes of a hash join ---

__host__ __device__ __forceinline__ unsigned bucket(unsigned key) { return (key ^ key >> 15) * 0x85ebca6bu >> 13; }
__global__ void probe_chains(const unsigned *probe, const int *head, const int *next, const unsigned *key, const int *payload, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned k = probe[i];
    int found = 0;
    for (int e = head[bucket(k)]; e >= 0; e = next[e])
        if (key[e] == k) {
            found = payload[e];
            break;
        }
    out[i] = found;
}
__global__ void probe_runs(const unsigned *__restrict__ probe, const int *__restrict__ start, const uint2 *__restrict__ entry, int *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned k = probe[i], b = bucket(k);
    int found = 0;
    for (int e = start[b], end = start[b + 1]; e < end; ++e) {
        uint2 one = entry[e];
        if (one.x == k) found = one.y;
    }
    out[i] = found;
}
__global__ void __launch_bounds__(128) probe_chains_four(const uint4 *__restrict__ probe, const int *__restrict__ head, const int *__restrict__ next, const unsigned *__restrict__ key, const int *__restrict__ payload, int4 *__restrict__ out, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    uint4 q = probe[i];
    unsigned k[4] = {q.x, q.y, q.z, q.w};
    int e[4], found[4] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j) e[j] = head[bucket(k[j])];
    while (e[0] >= 0 || e[1] >= 0 || e[2] >= 0 || e[3] >= 0) {
        unsigned seen[4];
        int after[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (e[j] >= 0) seen[j] = key[e[j]], after[j] = next[e[j]];
#pragma unroll
        for (int j = 0; j < 4; ++j)
            if (e[j] >= 0) {
                if (seen[j] == k[j]) found[j] = payload[e[j]], after[j] = -1;
                e[j] = after[j];
            }
    }
    out[i] = {found[0], found[1], found[2], found[3]};
}
Study probes("join_probe_linked_chains", "databases", 1 << 22, "four million probes of a hash table of a million rows, half of them found",
    "entries of a bucket are linked: each is waited for before the next can be fetched",
    {{"runs", "a bucket's entries side by side, key and payload together", {"memory_latency", "uncoalesced_access"}}, {"four", "four probes a thread at once", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int ROWS = 1 << 20, BUCKETS = 1 << 19;
        std::vector<int> head(BUCKETS, -1), next(ROWS), payload(ROWS), start(BUCKETS + 1);
        std::vector<unsigned> key(ROWS), probe(n);
        std::vector<uint2> entry(ROWS);
        for (int r = 0; r < ROWS; ++r) {
            key[r] = unsigned(r) * 2654435761u, payload[r] = r + 1;
            unsigned at = bucket(key[r]);
            next[r] = head[at], head[at] = r, ++start[at + 1];
        }
        for (int i = 0; i < BUCKETS; ++i) start[i + 1] += start[i];
        std::vector<int> at(start.begin(), start.end() - 1);
        for (int r = 0; r < ROWS; ++r) entry[at[bucket(key[r])]++] = {key[r], unsigned(payload[r])};
        for (long i = 0; i < n; ++i) probe[i] = (pairs::hash(i) % (2 * ROWS)) * 2654435761u;
        int *dh = b.copy(head), *dn = b.copy(next), *dp = b.copy(payload), *ds = b.copy(start), *out = b.output<int>(n), m = n;
        unsigned *dk = b.copy(key), *dq = b.copy(probe);
        uint2 *de = b.copy(entry);
        b.tolerance = 0;
        return {{"flawed", launch(probe_chains, n / 128, 128, 0, dq, dh, dn, dk, dp, out, m)}, {"runs", launch(probe_runs, n / 128, 128, 0, dq, ds, de, out, m)},
            {"four", launch(probe_chains_four, n / 512, 128, 0, (uint4 *)dq, dh, dn, dk, dp, (int4 *)out, m)}};
    });

// --- strings of a dictionary ---

__global__ void decode_strings(const int *code, const char *dictionary, char *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int k = 0; k < 16; k++) out[i * 16 + k] = dictionary[code[i] * 16 + k];
}
__global__ void decode_strings_vector(const int *__restrict__ code, const uint4 *__restrict__ dictionary, uint4 *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = dictionary[code[i]];
}
__global__ void decode_strings_lanes(const int *__restrict__ code, const unsigned *__restrict__ dictionary, unsigned *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 4 * n) out[i] = dictionary[code[i / 4] * 4 + i % 4];
}
Study strings("dictionary_strings_by_byte", "databases", 1 << 22, "four million strings of 16 characters copied from a dictionary of 4096",
    "a thread a string copies byte by byte",
    {{"vector", "a string in one 16-byte load and store", {"narrow_access", "uncoalesced_access"}}, {"lanes", "four lanes a string, four bytes each", {"narrow_access", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        int *code = b.random<int>(n, 0, 4096), m = n;
        auto *dictionary = b.random<unsigned char>(4096 * 16, 32, 127), *out = b.output<unsigned char>(16 * n);
        b.tolerance = 0;
        return {{"flawed", launch(decode_strings, n / 256, 256, 0, code, (char *)dictionary, (char *)out, m)}, {"vector", launch(decode_strings_vector, n / 256, 256, 0, code, (uint4 *)dictionary, (uint4 *)out, m)},
            {"lanes", launch(decode_strings_lanes, n / 64, 256, 0, code, (unsigned *)dictionary, (unsigned *)out, m)}};
    });

// --- values of 13 bits ---

__global__ void unpack_bits(const unsigned *packed, int *out, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int value = 0;
    for (int b = 0; b < width; b++) {
        int at = i * width + b;
        if (packed[at / 32] & (1u << (at % 32))) value |= 1 << b;
    }
    out[i] = value;
}
__global__ void unpack_shift(const unsigned *__restrict__ packed, int *__restrict__ out, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned at = unsigned(i) * width, w = at >> 5;
    out[i] = __funnelshift_r(packed[w], packed[w + 1], at & 31) & ((1u << width) - 1);
}
__global__ void __launch_bounds__(256) unpack_staged(const unsigned *__restrict__ packed, int *__restrict__ out, int width) {
    __shared__ unsigned words[1024 + 1];
    int t = threadIdx.x, first = blockIdx.x * 32 * width;  // 1024 values a block
    for (int k = t; k <= 32 * width; k += 256) words[k] = packed[first + k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        unsigned at = (t + 256 * k) * width, w = at >> 5;
        out[blockIdx.x * 1024 + t + 256 * k] = __funnelshift_r(words[w], words[w + 1], at & 31) & ((1u << width) - 1);
    }
}
Study unpacks("unpack_13_bits_one_by_one", "databases", 1 << 24, "16 million values of 13 bits unpacked to integers",
    "bits are fetched and set one by one",
    {{"shift", "two words shifted together, once a value", {"integer_arithmetic", "redundant_loads"}}, {"staged", "words of a block in shared memory first, four values a thread", {"integer_arithmetic", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *packed = b.random<unsigned>(n / 32 * 13 + 1, 0, 4294967296.0);
        int *out = b.output<int>(n), m = n;
        b.tolerance = 0;
        return {{"flawed", launch(unpack_bits, n / 256, 256, 0, packed, out, 13, m)}, {"shift", launch(unpack_shift, n / 256, 256, 0, packed, out, 13, m)},
            {"staged", launch(unpack_staged, n / 1024, 256, 0, packed, out, 13)}};
    });

// --- lines through an automaton ---

__global__ void automaton(const unsigned char *text, const unsigned char *table, int *state, int length, int n) {
    __shared__ unsigned char next[8192];
    for (int i = threadIdx.x; i < 8192; i += blockDim.x) next[i] = table[i];
    __syncthreads();
    int line = blockIdx.x * blockDim.x + threadIdx.x, s = 0;
    if (line >= n) return;
    for (int k = 0; k < length; k++) s = next[text[line * length + k] * 32 + s];
    state[line] = s;
}
__device__ __forceinline__ int four_steps(const unsigned char *next, unsigned w, int s) {
#pragma unroll
    for (int k = 0; k < 4; ++k, w >>= 8) s = next[(w & 255) * 32 + s];
    return s;
}
__global__ void automaton_vectors(const uint4 *__restrict__ text, const uint4 *__restrict__ table, int *__restrict__ state, int length, int n) {
    __shared__ uint4 words[512];
    const auto *next = reinterpret_cast<const unsigned char *>(words);
    for (int i = threadIdx.x; i < 512; i += blockDim.x) words[i] = table[i];
    __syncthreads();
    int line = blockIdx.x * blockDim.x + threadIdx.x, s = 0;
    if (line >= n) return;
#pragma unroll 2
    for (int k = 0; k < length / 16; ++k) {
        uint4 v = text[line * (length / 16) + k];
        s = four_steps(next, v.w, four_steps(next, v.z, four_steps(next, v.y, four_steps(next, v.x, s))));
    }
    state[line] = s;
}
__global__ void __launch_bounds__(128) automaton_staged(const unsigned *__restrict__ text, const uint4 *__restrict__ table, int *__restrict__ state) {
    __shared__ uint4 words[512];
    __shared__ unsigned lines[128][33];  // 128 lines of 128 bytes
    const auto *next = reinterpret_cast<const unsigned char *>(words);
    int t = threadIdx.x, s = 0;
    for (int i = t; i < 512; i += 128) words[i] = table[i];
#pragma unroll 8
    for (int i = t; i < 4096; i += 128) lines[i / 32][i % 32] = text[blockIdx.x * 4096 + i];
    __syncthreads();
    for (int k = 0; k < 32; ++k) s = four_steps(next, lines[t][k], s);
    state[blockIdx.x * 128 + t] = s;
}
Study automata("automaton_line_per_thread", "databases", 1 << 19, "half a million lines of 128 characters through an automaton of 32 states",
    "a thread a line reads byte by byte, lanes 128 bytes apart",
    {{"vectors", "16 characters a load", {"narrow_access", "uncoalesced_access"}}, {"staged", "lines of a block brought to shared memory first", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        auto *text = b.random<unsigned char>(n * 128, 0, 256), *table = b.random<unsigned char>(8192, 0, 32);
        int *state = b.output<int>(n), m = n;
        b.tolerance = 0;
        return {{"flawed", launch(automaton, n / 128, 128, 0, text, table, state, 128, m)}, {"vectors", launch(automaton_vectors, n / 128, 128, 0, (uint4 *)text, (uint4 *)table, state, 128, m)},
            {"staged", launch(automaton_staged, n / 128, 128, 0, (unsigned *)text, (uint4 *)table, state)}};
    });

// --- look-ups in a sorted column ---

__global__ void lower_bounds(const int *sorted, const int *wanted, int *place, int size, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int k = wanted[i], lo = 0, hi = size;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (sorted[mid] < k) lo = mid + 1;
        else hi = mid;
    }
    place[i] = lo;
}
__global__ void __launch_bounds__(512) lower_bounds_top(const int *__restrict__ sorted, const int *__restrict__ wanted, int *__restrict__ place, int size, int n) {
    __shared__ int top[4096];
    int each = size / 4096;
    for (int j = threadIdx.x; j < 4096; j += 512) top[j] = sorted[(j + 1) * each - 1];
    __syncthreads();
    for (int i = blockIdx.x * 512 + threadIdx.x; i < n; i += gridDim.x * 512) {
        int k = wanted[i], at = 0;
#pragma unroll
        for (int step = 2048; step; step /= 2)
            if (top[at + step - 1] < k) at += step;
        at *= each;
        for (int step = each / 2; step; step /= 2)
            if (sorted[at + step - 1] < k) at += step;
        place[i] = at;
    }
}
__global__ void __launch_bounds__(128) lower_bounds_four(const int *__restrict__ sorted, const int4 *__restrict__ wanted, int4 *__restrict__ place, int size) {
    int i = blockIdx.x * 128 + threadIdx.x;
    int4 q = wanted[i];
    int k[4] = {q.x, q.y, q.z, q.w}, at[4] = {};
    for (int step = size / 2; step; step /= 2) {
        int seen[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) seen[j] = sorted[at[j] + step - 1];
#pragma unroll
        for (int j = 0; j < 4; ++j) at[j] += seen[j] < k[j] ? step : 0;
    }
    place[i] = {at[0], at[1], at[2], at[3]};
}
Study searches("binary_search_one_at_a_time", "databases", 1 << 22, "four million look-ups in a sorted column of four million keys",
    "22 loads one after the other, one search a thread",
    {{"top", "the top twelve levels in shared memory", {"memory_latency"}}, {"four", "four searches a thread at once, without branches", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> host(n);
        for (long i = 0; i < n; ++i) host[i] = int(i * 256 + pairs::hash(i) % 256);
        host[n - 1] = INT_MAX;
        int *sorted = b.copy(host), *wanted = b.random<int>(n, 0, double(n) * 256), *place = b.output<int>(n), m = n;
        b.tolerance = 0;
        return {{"flawed", launch(lower_bounds, n / 256, 256, 0, sorted, wanted, place, m, m)}, {"top", launch(lower_bounds_top, 528, 512, 0, sorted, wanted, place, m, m)},
            {"four", launch(lower_bounds_four, n / 512, 128, 0, sorted, (int4 *)wanted, (int4 *)place, m)}};
    });

// --- Adler-32 ---

template <int HOW>  // 0: remainders for each byte, 1: at the end, 2: four bytes at once
__global__ void adler(const uint4 *data, unsigned *sums, int words, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned a = 1, b = 0;
    for (int k = 0; k < words; k++) {
        uint4 v = data[k * n + i];
        unsigned w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            if (HOW == 2) b += __dp4a(w[j], 0x01020304u, 4 * a), a = __dp4a(w[j], 0x01010101u, a);
            else
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    unsigned byte = w[j] >> 8 * c & 255;
                    if (HOW == 0) a = (a + byte) % 65521, b = (b + a) % 65521;
                    else a += byte, b += a;
                }
        }
    }
    sums[i] = b % 65521 << 16 | a % 65521;
}
Study adlers("adler32_remainder_per_byte", "crypto", 1 << 17, "Adler-32 sums of 131072 chunks of 1024 bytes, chunks interleaved",
    "two remainders for each byte",
    {{"deferred", "one remainder at the end of a chunk", {"integer_arithmetic"}}, {"dot", "the same, four bytes at once with byte products", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *data = b.random<unsigned>(n * 256, 0, 4294967296.0), *sums = b.output<unsigned>(n);
        b.tolerance = 0;
        int m = n;
        return {{"flawed", launch(adler<0>, n / 128, 128, 0, (uint4 *)data, sums, 64, m)}, {"deferred", launch(adler<1>, n / 128, 128, 0, (uint4 *)data, sums, 64, m)},
            {"dot", launch(adler<2>, n / 128, 128, 0, (uint4 *)data, sums, 64, m)}};
    });

// --- a Feistel cipher ---

__constant__ unsigned boxes[512];
template <typename Box>
__device__ __forceinline__ uint2 feistel(uint2 block, const unsigned *keys, Box box) {
    unsigned l = block.x, r = block.y;
#pragma unroll 2
    for (int round = 0; round < 16; round++) {
        unsigned x = r ^ keys[2 * round], y = __funnelshift_r(r, r, 4) ^ keys[2 * round + 1];
        unsigned f = box(0, x & 63) ^ box(1, x >> 8 & 63) ^ box(2, x >> 16 & 63) ^ box(3, x >> 24 & 63) ^ box(4, y & 63) ^ box(5, y >> 8 & 63) ^ box(6, y >> 16 & 63) ^ box(7, y >> 24 & 63);
        unsigned old = r;
        r = l ^ f, l = old;
    }
    return {l, r};
}
__global__ void feistel_constant(const uint2 *in, uint2 *out, const unsigned *keys, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = feistel(in[i], keys, [](int b, unsigned k) { return boxes[b * 64 + k]; });
}
__global__ void feistel_shared(const uint2 *__restrict__ in, uint2 *__restrict__ out, const unsigned *__restrict__ keys, const unsigned *__restrict__ table, int n) {
    __shared__ unsigned kept[512];
    for (int k = threadIdx.x; k < 512; k += blockDim.x) kept[k] = table[k];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = feistel(in[i], keys, [](int b, unsigned k) { return kept[b * 64 + k]; });
}
__global__ void feistel_cached(const uint2 *__restrict__ in, uint2 *__restrict__ out, const unsigned *__restrict__ keys, const unsigned *__restrict__ table, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = feistel(in[i], keys, [=](int b, unsigned k) { return __ldg(table + b * 64 + k); });
}
Study feistels("feistel_constant_boxes", "crypto", 1 << 21, "two million blocks through 16 rounds of a cipher with eight boxes of 64 words",
    "boxes in constant memory, which serves one word of a warp at a time",
    {{"shared", "boxes in shared memory", {"constant_divergence"}}, {"cached", "boxes read through the L1 cache", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> host(512);
        for (int k = 0; k < 512; ++k) host[k] = pairs::hash(k + 5);
        CHECK(cudaMemcpyToSymbol(boxes, host.data(), 2048));
        unsigned *table = b.copy(host), *keys = b.random<unsigned>(32, 0, 4294967296.0), *in = b.random<unsigned>(2 * n, 0, 4294967296.0), *out = b.output<unsigned>(2 * n);
        b.tolerance = 0;
        int m = n;
        return {{"flawed", launch(feistel_constant, n / 256, 256, 0, (uint2 *)in, (uint2 *)out, keys, m)}, {"shared", launch(feistel_shared, n / 256, 256, 0, (uint2 *)in, (uint2 *)out, keys, table, m)},
            {"cached", launch(feistel_cached, n / 256, 256, 0, (uint2 *)in, (uint2 *)out, keys, table, m)}};
    });

// --- time series warped onto each other ---

template <bool ROTATING>
__global__ void __launch_bounds__(256) warp_series(const float *a, const float *b, float *cost) {
    __shared__ float line[3][257], series[256];
    int t = threadIdx.x;
    series[t] = a[blockIdx.x * 256 + t];
    float mine = b[blockIdx.x * 256 + t];
    for (int k = 0; k < 3; k++) line[k][t + 1] = 1e30f;
    if (t < 3) line[t][0] = 1e30f;
    __syncthreads();
    int now = 0, before = 1, earlier = 2;
    for (int d = 0; d < 511; d++) {
        int i = d - t;
        float c = 1e30f;
        if (i >= 0 && i < 256) {
            float best = fminf(line[before][t], fminf(line[before][t + 1], line[earlier][t]));
            if (d == 0) best = 0.f;
            c = fabsf(series[i] - mine) + best;
        }
        if (ROTATING) {
            line[now][t + 1] = c;
            __syncthreads();
            int old = earlier;
            earlier = before, before = now, now = old;
        } else {
            __syncthreads();
            line[earlier][t + 1] = line[before][t + 1];
            line[before][t + 1] = c;
            __syncthreads();
        }
    }
    if (t == 255) cost[blockIdx.x] = line[before][256];
}
__global__ void __launch_bounds__(128) warp_series_shuffles(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ cost) {
    __shared__ float series[4][256];
    int w = threadIdx.x / 32, lane = threadIdx.x % 32, pair = blockIdx.x * 4 + w;
    float mine[8], v[8], before = 1e30f;
#pragma unroll
    for (int k = 0; k < 8; ++k) series[w][k * 32 + lane] = a[pair * 256 + k * 32 + lane], mine[k] = b[pair * 256 + lane * 8 + k], v[k] = 1e30f;
    __syncwarp();
    for (int s = 0; s < 287; ++s) {
        int i = s - lane;
        float left = __shfl_up_sync(~0u, v[7], 1);
        if (lane == 0) left = 1e30f, before = i == 0 ? 0.f : 1e30f;
        float corner = before;
        before = left;
        if (i < 0 || i >= 256) continue;
        float x = series[w][i];
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            float up = v[k];
            left = fabsf(x - mine[k]) + fminf(left, fminf(up, corner));
            corner = up, v[k] = left;
        }
    }
    if (lane == 31) cost[pair] = v[7];
}
Study warped("time_warp_barriers", "bioinformatics", 4096, "4096 pairs of signals of 256 samples warped onto each other, a block a pair",
    "two barriers of 256 threads for each of 511 diagonals",
    {{"rotating", "three lines that take turns: one barrier a diagonal", {"barriers"}}, {"shuffles", "a warp a pair, eight columns a lane, shuffles", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n * 256), *y = b.random<float>(n * 256), *cost = b.output<float>(n);
        return {{"flawed", launch(warp_series<false>, n, 256, 0, x, y, cost)}, {"rotating", launch(warp_series<true>, n, 256, 0, x, y, cost)}, {"shuffles", launch(warp_series_shuffles, n / 4, 128, 0, x, y, cost)}};
    });

// --- k-mers weighted by their quality ---

template <int HOW>  // 0: one table a block, 1: a copy for each lane, 2: runs of one k-mer added up first
__global__ void __launch_bounds__(256) kmer_weights(const uint4 *__restrict__ bases, const uint4 *__restrict__ quality, int *table, int n) {
    constexpr int COPIES = HOW == 1 ? 32 : 1;
    __shared__ int kept[256 * COPIES];
    int t = threadIdx.x, lane = t % COPIES;
    for (int k = t; k < 256 * COPIES; k += 256) kept[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) {
        uint4 v = bases[i], q = quality[i];
        unsigned w[4] = {v.x, v.y, v.z, v.w}, s[4] = {q.x, q.y, q.z, q.w};
        int kmer = 0, last = -1, sum = 0;
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            kmer = (kmer << 2 | (w[k / 4] >> 8 * (k % 4) & 3)) & 255;
            int weight = s[k / 4] >> 8 * (k % 4) & 63;
            if (k < 3) continue;
            if (HOW < 2) atomicAdd(&kept[kmer * COPIES + lane], weight);
            else {
                if (kmer != last) {
                    if (last >= 0) atomicAdd(&kept[last], sum);
                    last = kmer, sum = 0;
                }
                sum += weight;
            }
        }
        if (HOW == 2) atomicAdd(&kept[last], sum);
    }
    __syncthreads();
    int sum = 0;
    for (int c = 0; c < COPIES; ++c) sum += kept[t * COPIES + (c + t) % COPIES];
    atomicAdd(&table[t], sum);
}
Study kmers("kmer_weights_hot_bins", "bioinformatics", 1 << 22, "weights of 4-mers added up over 64 million bases of a sequence poor in variety",
    "half of the atomics on shared memory go to one of 256 bins",
    {{"copies", "a table for each lane", {"shared_atomics"}}, {"runs", "runs of one k-mer added up in a register first", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> host(4 * n);
        for (long i = 0; i < 4 * n; ++i) {
            unsigned h = pairs::hash(i);
            for (int k = 0; k < 4; ++k) host[i] |= ((h >> 8 * k & 255) < 216 ? 0u : h >> 8 * k & 3) << 8 * k;
        }
        unsigned *bases = b.copy(host), *quality = b.random<unsigned>(4 * n, 0, 4294967296.0);
        int *table = b.output<int>(256, true), m = n;
        b.tolerance = 0;
        return {{"flawed", launch(kmer_weights<0>, 1056, 256, 0, (uint4 *)bases, (uint4 *)quality, table, m)}, {"copies", launch(kmer_weights<1>, 792, 256, 0, (uint4 *)bases, (uint4 *)quality, table, m)},
            {"runs", launch(kmer_weights<2>, 1056, 256, 0, (uint4 *)bases, (uint4 *)quality, table, m)}};
    });

// --- expected errors of reads ---

template <int HOW>  // 0: powers, 1: a table, 2: powers of two
__global__ void __launch_bounds__(256) expected_errors(const uint4 *__restrict__ quality, float *__restrict__ out) {
    __shared__ float table[64];
    if (HOW == 1) {
        if (threadIdx.x < 64) table[threadIdx.x] = powf(10.f, -float(threadIdx.x) / 10.f);
        __syncthreads();
    }
    int i = blockIdx.x * 256 + threadIdx.x;
    uint4 v = quality[i];
    unsigned w[4] = {v.x, v.y, v.z, v.w};
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        int q = w[k / 4] >> 8 * (k % 4) & 63;
        if (HOW == 0) sum += powf(10.f, -q / 10.f);
        else if (HOW == 1) sum += table[q];
        else sum += exp2f(-0.33219281f * q);
    }
    out[i] = sum;
}
Study errors("expected_errors_pow", "bioinformatics", 1 << 22, "expected errors of four million windows of 16 bases from their qualities",
    "a power for each base",
    {{"table", "64 values in shared memory", {"expensive_math"}}, {"exponential", "a power of two instead", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *quality = b.random<unsigned>(4 * n, 0, 4294967296.0);
        float *out = b.output<float>(n);
        return {{"flawed", launch(expected_errors<0>, n / 256, 256, 0, (uint4 *)quality, out)}, {"table", launch(expected_errors<1>, n / 256, 256, 0, (uint4 *)quality, out)}, {"exponential", launch(expected_errors<2>, n / 256, 256, 0, (uint4 *)quality, out)}};
    });

}  // namespace
