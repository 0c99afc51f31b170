// Databases, graphs, compression, cryptography and bioinformatics.
#include <algorithm>
#include <cstdint>

#include "../pairs/pair.cuh"

namespace {

// --- totals of orders ---

__global__ void order_totals(const int *first, const float *price, float *total) {
    __shared__ float s[256];
    int begin = first[blockIdx.x], end = first[blockIdx.x + 1];
    float sum = 0.f;
    for (int i = begin + threadIdx.x; i < end; i += blockDim.x) sum += price[i];
    s[threadIdx.x] = sum;
    __syncthreads();
    for (int k = 128; k > 0; k /= 2) {
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0) total[blockIdx.x] = s[0];
}
template <int LANES>
__global__ void __launch_bounds__(256) order_totals_lanes(const int *__restrict__ first, const float *__restrict__ price, float *__restrict__ total) {
    int order = (blockIdx.x * 256 + threadIdx.x) / LANES, lane = threadIdx.x % LANES, end = first[order + 1];
    float sum = 0.f;
    for (int i = first[order] + lane; i < end; i += LANES) sum += price[i];
#pragma unroll
    for (int offset = LANES / 2; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (lane == 0) total[order] = sum;
}

Study totals("order_totals_block_per_order", "databases", 1 << 18, "totals of 262144 orders of 4 to 40 items",
    "a block of 256 threads an order: most have no item, and all of them wait for a sum in eight steps",
    {{"warp", "a warp an order, summed by shuffles", {"idle_threads", "barriers"}}, {"eight", "eight lanes an order, summed by shuffles", {"idle_threads", "barriers"}}},
    [](Buffers &b, long orders) -> Sides {
        std::vector<int> first(orders + 1);
        for (long o = 0; o < orders; ++o) first[o + 1] = first[o] + 4 + pairs::hash(o) % 37;
        int *at = b.copy(first);
        float *price = b.random<float>(first[orders], 0, 100), *total = b.output<float>(orders);
        return {{"flawed", launch(order_totals, orders, 256, 0, at, price, total)}, {"warp", launch(order_totals_lanes<32>, orders / 8, 256, 0, at, price, total)}, {"eight", launch(order_totals_lanes<8>, orders / 32, 256, 0, at, price, total)}};
    });

// --- one round of shortest paths ---

__global__ void relax(const int *from, const int *to, const unsigned *weight, const unsigned *distance, unsigned *next, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < edges) atomicMin(&next[to[e]], distance[from[e]] + weight[e]);
}
__global__ void relax_looked(const int *__restrict__ from, const int *__restrict__ to, const unsigned *__restrict__ weight, const unsigned *__restrict__ distance, unsigned *next, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    unsigned through = distance[from[e]] + weight[e], *place = &next[to[e]];
    if (through < *place) atomicMin(place, through);
}
__global__ void __launch_bounds__(256) relax_pull(const int *__restrict__ ptr, const int *__restrict__ from, const unsigned *__restrict__ weight, const unsigned *__restrict__ distance, unsigned *__restrict__ next) {
    int v = (blockIdx.x * 256 + threadIdx.x) / 8, lane = threadIdx.x % 8, end = ptr[v + 1];
    unsigned best = distance[v];
    for (int e = ptr[v] + lane; e < end; e += 8) best = min(best, distance[from[e]] + weight[e]);
#pragma unroll
    for (int offset = 4; offset; offset /= 2) best = min(best, __shfl_xor_sync(~0u, best, offset));
    if (lane == 0) next[v] = best;
}

Study relaxations("relax_edges_atomic_always", "graphs", 1 << 23, "one round of shortest paths over 8 million edges and a million nodes",
    "an atomic minimum for each edge, though few of them lower anything",
    {{"looked", "the present distance is read first", {"global_atomics"}}, {"pull", "edges stored by their target, eight lanes a node", {"global_atomics", "narrow_access"}}},
    [](Buffers &b, long edges) -> Sides {
        int nodes = 1 << 20, n = edges;
        std::vector<int> from(edges), to(edges), ptr(nodes + 1), sorted(edges);
        std::vector<unsigned> weight(edges), turned(edges), host(nodes);
        for (int v = 0; v < nodes; ++v) host[v] = 1000 + pairs::hash(v) % 400;
        for (long e = 0; e < edges; ++e) {
            from[e] = int(e / 8), to[e] = pairs::hash(e) % nodes, weight[e] = 1 + pairs::hash(e + 999) % 400;
            ++ptr[to[e] + 1];
        }
        for (int v = 0; v < nodes; ++v) ptr[v + 1] += ptr[v];
        std::vector<int> place(ptr);
        for (long e = 0; e < edges; ++e) {
            int at = place[to[e]]++;
            sorted[at] = from[e], turned[at] = weight[e];
        }
        int *f = b.copy(from), *t = b.copy(to), *p = b.copy(ptr), *s = b.copy(sorted);
        unsigned *w = b.copy(weight), *x = b.copy(turned), *distance = b.copy(host), *next = b.changed(distance, nodes);
        b.tolerance = 0;
        return {{"flawed", launch(relax, edges / 256, 256, 0, f, t, w, distance, next, n)}, {"looked", launch(relax_looked, edges / 256, 256, 0, f, t, w, distance, next, n)},
            {"pull", launch(relax_pull, nodes / 32, 256, 0, p, s, x, distance, next)}};
    });

// --- where a word of eight letters stands ---

__constant__ unsigned char needle[8] = {'a', 'c', 'a', 'b', 'd', 'a', 'c', 'c'};
__global__ void grep(const unsigned char *text, unsigned char *found, int n, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bool same = true;
    for (int k = 0; k < length && same; k++) same = text[i + k] == needle[k];
    found[i] = same;
}
constexpr unsigned NEEDLE_LOW = 'a' | 'c' << 8 | 'a' << 16 | 'b' << 24, NEEDLE_HIGH = 'd' | 'a' << 8 | 'c' << 16 | 'c' << 24;
__device__ unsigned four_matches(unsigned a, unsigned b, unsigned c) {
    unsigned result = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        bool same = __funnelshift_r(a, b, 8 * k) == NEEDLE_LOW && __funnelshift_r(b, c, 8 * k) == NEEDLE_HIGH;
        result |= unsigned(same) << 8 * k;
    }
    return result;
}
__global__ void grep_four(const unsigned *__restrict__ text, unsigned *__restrict__ found) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    found[i] = four_matches(text[i], text[i + 1], text[i + 2]);
}
__global__ void grep_sixteen(const uint4 *__restrict__ text, uint4 *__restrict__ found) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 a = text[i];
    uint2 b = *reinterpret_cast<const uint2 *>(&text[i + 1]);
    found[i] = {four_matches(a.x, a.y, a.z), four_matches(a.y, a.z, a.w), four_matches(a.z, a.w, b.x), four_matches(a.w, b.x, b.y)};
}

Study greps("grep_thread_per_position", "databases", 1 << 26, "places of a word of eight letters in 64 MiB of text",
    "a thread a position compares byte by byte until one differs; one byte a store",
    {{"four", "four positions a thread, words shifted into place", {"narrow_access", "branch_divergence"}}, {"sixteen", "16 positions a thread, 16 bytes a load and store", {"narrow_access", "branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        auto *text = b.random<unsigned char>(n + 64, 97, 101), *found = b.output<unsigned char>(n);
        b.tolerance = 0;
        return {{"flawed", launch(grep, n / 256, 256, 0, text, found, int(n), 8)}, {"four", launch(grep_four, n / 1024, 256, 0, (unsigned *)text, (unsigned *)found)}, {"sixteen", launch(grep_sixteen, n / 4096, 256, 0, (uint4 *)text, (uint4 *)found)}};
    });

// --- separators and lines of each page of a table in text ---

__global__ void separators(const char *text, int *commas, int *lines) {
    __shared__ int comma, line;
    if (threadIdx.x == 0) comma = line = 0;
    __syncthreads();
    int c = 0, l = 0;
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) {
        char byte = text[size_t(blockIdx.x) * 4096 + i];
        if (byte == ',') c++;
        else if (byte == '\n') l++;
    }
    atomicAdd(&comma, c);
    atomicAdd(&line, l);
    __syncthreads();
    if (threadIdx.x == 0) commas[blockIdx.x] = comma, lines[blockIdx.x] = line;
}
__device__ int equal_bytes(uint4 v, unsigned letter) {
    return __popc(__vcmpeq4(v.x, letter) & 0x01010101) + __popc(__vcmpeq4(v.y, letter) & 0x01010101) + __popc(__vcmpeq4(v.z, letter) & 0x01010101) + __popc(__vcmpeq4(v.w, letter) & 0x01010101);
}
__global__ void __launch_bounds__(256) separators_block(const uint4 *__restrict__ text, int *__restrict__ commas, int *__restrict__ lines) {
    __shared__ int part[8];
    uint4 v = text[blockIdx.x * 256 + threadIdx.x];
    int both = __reduce_add_sync(~0u, equal_bytes(v, 0x2c2c2c2c) | equal_bytes(v, 0x0a0a0a0a) << 16);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = both;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) both += part[w];
        commas[blockIdx.x] = both & 65535, lines[blockIdx.x] = both >> 16;
    }
}
__global__ void __launch_bounds__(256) separators_warp(const uint4 *__restrict__ text, int *__restrict__ commas, int *__restrict__ lines) {
    int page = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32, both = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        uint4 v = text[page * 256 + k * 32 + lane];
        both += equal_bytes(v, 0x2c2c2c2c) | equal_bytes(v, 0x0a0a0a0a) << 16;
    }
    both = __reduce_add_sync(~0u, both);
    if (lane == 0) commas[page] = both & 65535, lines[page] = both >> 16;
}

Study csv_pages("csv_separators_by_byte", "databases", 32768, "commas and line ends in each of 32768 pages of 4 KiB",
    "one byte a load, a comparison and branch for each",
    {{"block", "16 bytes a thread, four compared at once, counts by warps", {"narrow_access", "shared_atomics"}}, {"warp", "a warp a page, eight loads of 16 bytes a lane in flight", {"narrow_access", "shared_atomics"}}},
    [](Buffers &b, long pages) -> Sides {
        auto *text = b.random<unsigned char>(pages * 4096, 8, 72);
        int *commas = b.output<int>(pages), *lines = b.output<int>(pages);
        b.tolerance = 0;
        return {{"flawed", launch(separators, pages, 256, 0, (char *)text, commas, lines)}, {"block", launch(separators_block, pages, 256, 0, (uint4 *)text, commas, lines)}, {"warp", launch(separators_warp, pages / 8, 256, 0, (uint4 *)text, commas, lines)}};
    });

// --- running balances of accounts ---

__global__ void balances(const float *amount, float *balance) {
    __shared__ float s[1024];
    int t = threadIdx.x;
    s[t] = amount[blockIdx.x * 1024 + t];
    __syncthreads();
    for (int d = 1; d < 1024; d *= 2) {
        float other = t >= d ? s[t - d] : 0.f;
        __syncthreads();
        s[t] += other;
        __syncthreads();
    }
    balance[blockIdx.x * 1024 + t] = s[t];
}
__device__ float warp_scan(float x) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        float other = __shfl_up_sync(~0u, x, d);
        if (lane >= d) x += other;
    }
    return x;
}
__global__ void __launch_bounds__(1024) balances_shuffles(const float *__restrict__ amount, float *__restrict__ balance) {
    __shared__ float part[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = warp_scan(amount[blockIdx.x * 1024 + threadIdx.x]);
    if (lane == 31) part[warp] = sum;
    __syncthreads();
    if (warp == 0) part[lane] = warp_scan(part[lane]);
    __syncthreads();
    balance[blockIdx.x * 1024 + threadIdx.x] = sum + (warp ? part[warp - 1] : 0.f);
}
__global__ void __launch_bounds__(256) balances_four(const float4 *__restrict__ amount, float4 *__restrict__ balance) {
    __shared__ float part[8];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float4 v = amount[blockIdx.x * 256 + threadIdx.x];
    v.y += v.x, v.z += v.y, v.w += v.z;
    float sum = warp_scan(v.w), before = sum - v.w;
    if (lane == 31) part[warp] = sum;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < 7; ++w) before += w < warp ? part[w] : 0.f;
    balance[blockIdx.x * 256 + threadIdx.x] = {v.x + before, v.y + before, v.z + before, v.w + before};
}

Study running_balances("running_balance_two_barriers_a_step", "databases", 32768, "running balances of 32768 accounts with 1024 transactions each",
    "ten steps of a scan in shared memory with two barriers each",
    {{"shuffles", "scans of warps by shuffles, two barriers in all", {"barriers"}}, {"four", "four transactions a thread, scans by shuffles, one barrier", {"barriers", "narrow_access"}}},
    [](Buffers &b, long accounts) -> Sides {
        float *amount = b.random<float>(accounts * 1024, -1, 2), *balance = b.output<float>(accounts * 1024);
        return {{"flawed", launch(balances, accounts, 1024, 0, amount, balance)}, {"shuffles", launch(balances_shuffles, accounts, 1024, 0, amount, balance)}, {"four", launch(balances_four, accounts, 256, 0, (float4 *)amount, (float4 *)balance)}};
    });

// --- keys into partitions ---

__device__ int part_of(unsigned key) { return pairs::hash(key) >> 24; }
__global__ void partition(const unsigned *key, unsigned *out, unsigned *cursor, int n, int room) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int p = part_of(key[i]);
    out[p * room + atomicAdd(&cursor[p], 1u)] = key[i];
}
__global__ void __launch_bounds__(512) partition_reserved(const unsigned *__restrict__ key, unsigned *__restrict__ out, unsigned *cursor, int room) {
    __shared__ unsigned count[256];
    int t = threadIdx.x;
    if (t < 256) count[t] = 0;
    __syncthreads();
    unsigned mine[8], rank[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        mine[k] = key[blockIdx.x * 4096 + k * 512 + t];
        rank[k] = atomicAdd(&count[part_of(mine[k])], 1u);
    }
    __syncthreads();
    if (t < 256) count[t] = atomicAdd(&cursor[t], count[t]) + t * room;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; ++k) out[count[part_of(mine[k])] + rank[k]] = mine[k];
}
__global__ void __launch_bounds__(512) partition_ordered(const unsigned *__restrict__ key, unsigned *__restrict__ out, unsigned *cursor, int room) {
    __shared__ unsigned count[256], place[256], shift[256], part[8], sorted[4096];
    int t = threadIdx.x;
    if (t < 256) count[t] = 0;
    __syncthreads();
    unsigned mine[8], rank[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        mine[k] = key[blockIdx.x * 4096 + k * 512 + t];
        rank[k] = atomicAdd(&count[part_of(mine[k])], 1u);
    }
    __syncthreads();
    unsigned here = 0, sum = 0;
    if (t < 256) {
        sum = here = count[t];
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            unsigned other = __shfl_up_sync(~0u, sum, d);
            if (t % 32 >= d) sum += other;
        }
        if (t % 32 == 31) part[t / 32] = sum;
    }
    __syncthreads();
    if (t < 256) {
        unsigned before = sum - here;
        for (int w = 0; w < t / 32; ++w) before += part[w];
        place[t] = before;
        shift[t] = atomicAdd(&cursor[t], here) + t * room - before;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; ++k) sorted[place[part_of(mine[k])] + rank[k]] = mine[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        unsigned value = sorted[k * 512 + t];
        out[shift[part_of(value)] + k * 512 + t] = value;
    }
}
__global__ void partition_sums(const unsigned *out, const unsigned *cursor, unsigned *sums, int room) {
    __shared__ unsigned sum, mixed;
    if (threadIdx.x == 0) sum = mixed = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < cursor[blockIdx.x]; i += blockDim.x) {
        atomicAdd(&sum, out[blockIdx.x * room + i]);
        atomicXor(&mixed, pairs::hash(out[blockIdx.x * room + i]));
    }
    __syncthreads();
    if (threadIdx.x == 0) sums[2 * blockIdx.x] = sum, sums[2 * blockIdx.x + 1] = mixed;
}

Study partitions("partition_cursor_atomic_each_key", "databases", 1 << 22, "4 million keys into 256 partitions by their hash, in any order",
    "each key draws its place by an atomic on one of 256 words, and is stored there alone",
    {{"reserved", "a block counts in shared memory and reserves room once a partition", {"global_atomics"}}, {"ordered", "the same, and keys are put in order in shared memory before they are stored", {"global_atomics", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        int room = n / 256 * 5 / 4;
        auto *key = b.random<unsigned>(n, 0, 4294967295.0), *out = b.allocate<unsigned>(room * 256), *cursor = b.output<unsigned>(256, true), *sums = b.output<unsigned>(512);
        b.tolerance = 0;
        Sides sides = {{"flawed", launch(partition, n / 256, 256, 0, key, out, cursor, int(n), room)}, {"reserved", launch(partition_reserved, n / 4096, 512, 0, key, out, cursor, room)}, {"ordered", launch(partition_ordered, n / 4096, 512, 0, key, out, cursor, room)}};
        for (Side &side : sides) side.check = launch(partition_sums, 256, 256, 0, out, cursor, sums, room);
        return sides;
    });

// --- keys looked up in a Bloom filter ---

__device__ uint64_t mixed(uint64_t x) {
    x ^= x >> 33, x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33, x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}
__global__ void bloom(const unsigned *filter, const uint64_t *key, unsigned char *maybe, int n, uint64_t bits, int hashes) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint64_t a = mixed(key[i]), b = mixed(a) | 1;
    bool all = true;
    for (int k = 0; k < hashes; k++) {
        uint64_t bit = (a + k * b) % bits;
        all &= filter[bit / 32] >> bit % 32 & 1;
    }
    maybe[i] = all;
}
__global__ void __launch_bounds__(256) bloom_mask(const unsigned *__restrict__ filter, const uint64_t *__restrict__ key, unsigned char *__restrict__ maybe, uint64_t mask) {
    int i = blockIdx.x * 256 + threadIdx.x;
    uint64_t a = mixed(key[i]), b = mixed(a) | 1;
    unsigned all = 1;
#pragma unroll
    for (int k = 0; k < 6; ++k, a += b) {
        uint64_t bit = a & mask;
        all &= filter[bit / 32] >> bit % 32;
    }
    maybe[i] = all & 1;
}
__global__ void __launch_bounds__(256) bloom_words(const unsigned *__restrict__ filter, const ulonglong2 *__restrict__ key, uchar2 *__restrict__ maybe, unsigned mask) {
    int i = blockIdx.x * 256 + threadIdx.x;
    ulonglong2 two = key[i];
    uint64_t x = mixed(two.x), y = mixed(two.y);
    unsigned a = unsigned(x), b = unsigned(mixed(x)) | 1, c = unsigned(y), d = unsigned(mixed(y)) | 1, left = 1, right = 1;
#pragma unroll
    for (int k = 0; k < 6; ++k, a += b, c += d) {  // low bits of the sums need the low words only
        left &= filter[(a & mask) / 32] >> a % 32;
        right &= filter[(c & mask) / 32] >> c % 32;
    }
    maybe[i] = make_uchar2(left & 1, right & 1);
}

Study blooms("bloom_filter_long_modulo", "databases", 1 << 22, "4 million keys looked up in a filter of 16 million bits, six hashes each",
    "a remainder of 64 bits by a number known at run time for each of the hashes",
    {{"mask", "the number of bits is a power of two: a mask", {"integer_arithmetic"}}, {"words", "masks in 32 bits, two keys a thread", {"integer_arithmetic", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        uint64_t bits = 1 << 24;
        auto *filter = b.random<unsigned>(bits / 32, 0, 4294967295.0);
        auto *key = (uint64_t *)b.random<unsigned>(2 * n, 0, 4294967295.0);
        auto *maybe = b.output<unsigned char>(n);
        b.tolerance = 0;
        return {{"flawed", launch(bloom, n / 256, 256, 0, filter, key, maybe, int(n), bits, 6)}, {"mask", launch(bloom_mask, n / 256, 256, 0, filter, key, maybe, bits - 1)},
            {"words", launch(bloom_words, n / 512, 256, 0, filter, (ulonglong2 *)key, (uchar2 *)maybe, unsigned(bits - 1))}};
    });

// --- Keccak ---

__constant__ uint64_t round_words[24] = {0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a, 0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008};
__constant__ int turns[24] = {1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44}, places[24] = {10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1};
__device__ uint64_t rotated(uint64_t x, int by) { return x << by | x >> (64 - by); }
__global__ void keccak(const uint64_t *seed, uint64_t *out, int n, int rounds) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    uint64_t s[25], c[5], held;
    for (int i = 0; i < 25; i++) s[i] = 0;
    s[0] = seed[t], s[1] = 6, s[16] = 0x8000000000000000ull;
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < 5; i++) c[i] = s[i] ^ s[i + 5] ^ s[i + 10] ^ s[i + 15] ^ s[i + 20];
        for (int i = 0; i < 5; i++) {
            held = c[(i + 4) % 5] ^ rotated(c[(i + 1) % 5], 1);
            for (int j = 0; j < 25; j += 5) s[j + i] ^= held;
        }
        held = s[1];
        for (int i = 0; i < 24; i++) {
            int j = places[i];
            c[0] = s[j], s[j] = rotated(held, turns[i]), held = c[0];
        }
        for (int j = 0; j < 25; j += 5) {
            for (int i = 0; i < 5; i++) c[i] = s[j + i];
            for (int i = 0; i < 5; i++) s[j + i] ^= ~c[(i + 1) % 5] & c[(i + 2) % 5];
        }
        s[0] ^= round_words[r];
    }
    for (int i = 0; i < 4; i++) out[i * n + t] = s[i];
}
__global__ void __launch_bounds__(128) keccak_known(const uint64_t *__restrict__ seed, uint64_t *__restrict__ out, int n, int rounds) {
    constexpr int TURNS[24] = {1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44}, PLACES[24] = {10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1};
    int t = blockIdx.x * 128 + threadIdx.x;
    uint64_t s[25] = {}, c[5];
    s[0] = seed[t], s[1] = 6, s[16] = 0x8000000000000000ull;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int i = 0; i < 5; ++i) c[i] = s[i] ^ s[i + 5] ^ s[i + 10] ^ s[i + 15] ^ s[i + 20];
#pragma unroll
        for (int i = 0; i < 5; ++i) {
            uint64_t held = c[(i + 4) % 5] ^ rotated(c[(i + 1) % 5], 1);
#pragma unroll
            for (int j = 0; j < 25; j += 5) s[j + i] ^= held;
        }
        uint64_t held = s[1];
#pragma unroll
        for (int i = 0; i < 24; ++i) {
            uint64_t next = s[PLACES[i]];
            s[PLACES[i]] = rotated(held, TURNS[i]), held = next;
        }
#pragma unroll
        for (int j = 0; j < 25; j += 5) {
#pragma unroll
            for (int i = 0; i < 5; ++i) c[i] = s[j + i];
#pragma unroll
            for (int i = 0; i < 5; ++i) s[j + i] ^= ~c[(i + 1) % 5] & c[(i + 2) % 5];
        }
        s[0] ^= round_words[r];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i * n + t] = s[i];
}
__global__ void __launch_bounds__(64) keccak_shared(const uint64_t *__restrict__ seed, uint64_t *__restrict__ out, int n, int rounds) {
    __shared__ uint64_t state[25][64];
    int t = blockIdx.x * 64 + threadIdx.x, me = threadIdx.x;
    for (int i = 0; i < 25; ++i) state[i][me] = 0;
    state[0][me] = seed[t], state[1][me] = 6, state[16][me] = 0x8000000000000000ull;
    for (int r = 0; r < rounds; ++r) {
        uint64_t c[5];
#pragma unroll
        for (int i = 0; i < 5; ++i) c[i] = state[i][me] ^ state[i + 5][me] ^ state[i + 10][me] ^ state[i + 15][me] ^ state[i + 20][me];
#pragma unroll
        for (int i = 0; i < 5; ++i) {
            uint64_t held = c[(i + 4) % 5] ^ rotated(c[(i + 1) % 5], 1);
#pragma unroll
            for (int j = 0; j < 25; j += 5) state[j + i][me] ^= held;
        }
        uint64_t held = state[1][me];
        for (int i = 0; i < 24; ++i) {
            uint64_t next = state[places[i]][me];
            state[places[i]][me] = rotated(held, turns[i]), held = next;
        }
#pragma unroll
        for (int j = 0; j < 25; j += 5) {
#pragma unroll
            for (int i = 0; i < 5; ++i) c[i] = state[j + i][me];
#pragma unroll
            for (int i = 0; i < 5; ++i) state[j + i][me] = c[i] ^ (~c[(i + 1) % 5] & c[(i + 2) % 5]);
        }
        state[0][me] ^= round_words[r];
    }
    for (int i = 0; i < 4; ++i) out[i * n + t] = state[i][me];
}

Study keccaks("keccak_state_by_tables", "crypto", 1 << 20, "Keccak of a million seeds, 24 rounds",
    "words of the state are named by a table in constant memory: the state lies in local memory",
    {{"known", "tables known to the compiler, all steps of a round unrolled", {"local_memory"}}, {"shared", "a strip of shared memory for each state", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        auto *seed = (uint64_t *)b.random<unsigned>(2 * n, 0, 4294967295.0);
        auto *out = (uint64_t *)b.output<unsigned>(8 * n);
        b.tolerance = 0;
        return {{"flawed", launch(keccak, n / 128, 128, 0, seed, out, int(n), 24)}, {"known", launch(keccak_known, n / 128, 128, 0, seed, out, int(n), 24)}, {"shared", launch(keccak_shared, n / 64, 64, 0, seed, out, int(n), 24)}};
    });

// --- bytes to text of 64 letters ---

__constant__ char letters[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
__global__ void base64(const unsigned char *in, char *out, int groups) {
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g >= groups) return;
    int a = in[3 * g], b = in[3 * g + 1], c = in[3 * g + 2];
    out[4 * g] = letters[a >> 2];
    out[4 * g + 1] = letters[(a & 3) << 4 | b >> 4];
    out[4 * g + 2] = letters[(b & 15) << 2 | c >> 6];
    out[4 * g + 3] = letters[c & 63];
}
__global__ void __launch_bounds__(256) base64_table(const unsigned char *__restrict__ in, uchar4 *__restrict__ out, int groups) {
    __shared__ unsigned char table[64];
    if (threadIdx.x < 64) table[threadIdx.x] = letters[threadIdx.x];
    __syncthreads();
    int g = blockIdx.x * 256 + threadIdx.x;
    if (g >= groups) return;
    int a = in[3 * g], b = in[3 * g + 1], c = in[3 * g + 2];
    out[g] = make_uchar4(table[a >> 2], table[(a & 3) << 4 | b >> 4], table[(b & 15) << 2 | c >> 6], table[c & 63]);
}
__device__ unsigned letter(unsigned v) {
    unsigned code = v + 'A';
    code = v >= 26 ? v + 'a' - 26 : code, code = v >= 52 ? v - 52 + '0' : code, code = v == 62 ? '+' : code;
    return v == 63 ? '/' : code;
}
__global__ void __launch_bounds__(256) base64_words(const unsigned *__restrict__ in, uint4 *__restrict__ out) {
    int i = blockIdx.x * 256 + threadIdx.x;  // four groups: three words in, four out
    unsigned x = in[3 * i], y = in[3 * i + 1], z = in[3 * i + 2];
    auto group = [](unsigned w) {  // bytes a, b and c from the low one up
        unsigned a = w & 255, b = w >> 8 & 255, c = w >> 16 & 255;
        return letter(a >> 2) | letter((a & 3) << 4 | b >> 4) << 8 | letter((b & 15) << 2 | c >> 6) << 16 | letter(c & 63) << 24;
    };
    out[i] = {group(x), group(__funnelshift_r(x, y, 24)), group(__funnelshift_r(y, z, 16)), group(z >> 8)};
}

Study base64s("base64_letters_in_constants", "databases", 1 << 24, "48 million bytes to 64 million letters of base 64",
    "lanes look up different letters in the constant bank; one byte a load and store",
    {{"table", "letters in shared memory, four bytes a store", {"constant_divergence", "narrow_access"}}, {"words", "letters by selection, twelve bytes in and 16 out a thread", {"constant_divergence", "narrow_access"}}},
    [](Buffers &b, long groups) -> Sides {
        auto *in = b.random<unsigned char>(groups * 3, 0, 256), *out = b.output<unsigned char>(groups * 4);
        b.tolerance = 0;
        return {{"flawed", launch(base64, groups / 256, 256, 0, in, (char *)out, int(groups))}, {"table", launch(base64_table, groups / 256, 256, 0, in, (uchar4 *)out, int(groups))}, {"words", launch(base64_words, groups / 1024, 256, 0, (unsigned *)in, (uint4 *)out)}};
    });

// --- lengths of matches with an earlier place ---

__global__ void match_lengths(const unsigned char *data, const int *candidate, unsigned char *length, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int c = candidate[i], k = 0;
    while (k < 64 && data[c + k] == data[i + k]) k++;
    length[i] = k;
}
__device__ unsigned word_at(const unsigned *words, int at) { return __funnelshift_r(words[at / 4], words[at / 4 + 1], at % 4 * 8); }
__global__ void match_lengths_words(const unsigned *__restrict__ data, const int *__restrict__ candidate, unsigned char *__restrict__ length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, c = candidate[i], k = 0;
    for (; k < 64; k += 4) {
        unsigned different = word_at(data, c + k) ^ word_at(data, i + k);
        if (different) {
            k += (__ffs(different) - 1) / 8;
            break;
        }
    }
    length[i] = k;
}
__global__ void __launch_bounds__(256) match_lengths_carried(const unsigned *__restrict__ data, const int *__restrict__ candidate, unsigned char *__restrict__ length) {
    int i = blockIdx.x * 256 + threadIdx.x, c = candidate[i], k = 0;
    unsigned left = data[c / 4], right = data[i / 4];  // each word once, carried to the next step
#pragma unroll 4
    for (; k < 64; k += 4) {
        unsigned next = data[c / 4 + k / 4 + 1], other = data[i / 4 + k / 4 + 1];
        unsigned different = __funnelshift_r(left, next, c % 4 * 8) ^ __funnelshift_r(right, other, i % 4 * 8);
        if (different) {
            k += (__ffs(different) - 1) / 8;
            break;
        }
        left = next, right = other;
    }
    length[i] = k;
}

Study matches("match_lengths_by_byte", "compression", 1 << 23, "lengths of matches, up to 64 bytes, of 8 million positions with an earlier one each",
    "two loads of a byte and a comparison for each byte that matches",
    {{"words", "four bytes at a time out of two words each, the first that differs by its bit", {"narrow_access"}}, {"carried", "the same, each word loaded once", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> data(n + 128);
        std::vector<int> candidate(n), last(64, 0);
        for (long i = 0; i < n + 128; ++i) {
            int word = pairs::hash(i / 24) % 64;
            data[i] = pairs::hash(word * 24 + i % 24) & 255;
            if (i < n) candidate[i] = last[word] + i % 24;
            if (i % 24 == 23) last[word] = int(i - 23);
        }
        auto *d = b.copy(data), *length = b.output<unsigned char>(n);
        int *c = b.copy(candidate);
        b.tolerance = 0;
        return {{"flawed", launch(match_lengths, n / 256, 256, 0, d, c, length, int(n))}, {"words", launch(match_lengths_words, n / 256, 256, 0, (unsigned *)d, c, length)}, {"carried", launch(match_lengths_carried, n / 256, 256, 0, (unsigned *)d, c, length)}};
    });

// --- the other strand of short reads ---

__global__ void other_strand(const char *read, char *out, int reads, int length) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= reads) return;
    for (int k = 0; k < length; k++) {
        char base = read[r * length + k], other = 'N';
        switch (base) {
        case 'A': other = 'T'; break;
        case 'C': other = 'G'; break;
        case 'G': other = 'C'; break;
        case 'T': other = 'A'; break;
        }
        out[r * length + length - 1 - k] = other;
    }
}
__device__ unsigned opposite(unsigned w) { return __byte_perm(w ^ 0x15151515 ^ (w >> 1 & 0x01010101) * 0x11, 0, 0x0123); }
__global__ void __launch_bounds__(256) other_strand_words(const unsigned *__restrict__ read, unsigned *__restrict__ out) {
    int i = blockIdx.x * 256 + threadIdx.x, r = i / 32, k = i % 32;  // 32 words a read
    out[r * 32 + 31 - k] = opposite(read[i]);
}
__global__ void __launch_bounds__(256) other_strand_quads(const uint4 *__restrict__ read, uint4 *__restrict__ out) {
    int i = blockIdx.x * 256 + threadIdx.x, r = i / 8, k = i % 8;
    uint4 v = read[i];
    out[r * 8 + 7 - k] = {opposite(v.w), opposite(v.z), opposite(v.y), opposite(v.x)};
}

Study strands("other_strand_thread_per_read", "bioinformatics", 1 << 19, "reverse complements of half a million reads of 128 bases",
    "a thread a read: lanes 128 bytes apart, one byte at a time, a branch for each letter",
    {{"words", "four bases a thread, lanes side by side, turned by bit operations", {"uncoalesced_access", "narrow_access", "branch_divergence"}}, {"quads", "16 bases a thread", {"uncoalesced_access", "narrow_access", "branch_divergence"}}},
    [](Buffers &b, long reads) -> Sides {
        std::vector<unsigned char> host(reads * 128);
        for (size_t i = 0; i < host.size(); ++i) host[i] = "ACGT"[pairs::hash(i) % 4];
        auto *read = b.copy(host), *out = b.output<unsigned char>(reads * 128);
        b.tolerance = 0;
        return {{"flawed", launch(other_strand, reads / 256, 256, 0, (char *)read, (char *)out, int(reads), 128)}, {"words", launch(other_strand_words, reads / 8, 256, 0, (unsigned *)read, (unsigned *)out)},
            {"quads", launch(other_strand_quads, reads / 32, 256, 0, (uint4 *)read, (uint4 *)out)}};
    });

// --- bases that reads show at each place of a genome ---

__global__ void pileup(const int *start, const unsigned char *base, unsigned *count, int reads) {
    int r = blockIdx.x, k = threadIdx.x;
    if (k < 100) atomicAdd(&count[(start[r] + k) * 4 + base[r * 100 + k]], 1u);
}
__device__ int first_from(const int *start, int reads, int place) {
    int low = 0, high = reads;
    while (low < high) {
        int middle = (low + high) / 2;
        if (start[middle] < place) low = middle + 1;
        else high = middle;
    }
    return low;
}
__global__ void __launch_bounds__(256) pileup_shared(const int *__restrict__ start, const unsigned char *__restrict__ base, unsigned *__restrict__ count, int reads) {
    __shared__ unsigned counts[2048];  // 512 places
    __shared__ int range[2];
    int first = blockIdx.x * 512;
    for (int i = threadIdx.x; i < 2048; i += 256) counts[i] = 0;
    if (threadIdx.x < 2) range[threadIdx.x] = first_from(start, reads, threadIdx.x ? first + 512 : first - 99);
    __syncthreads();
    for (int r = range[0] + threadIdx.x / 32; r < range[1]; r += 8) {
        int from = start[r] - first;
        for (int k = threadIdx.x % 32; k < 100; k += 32)
            if (unsigned(from + k) < 512) atomicAdd(&counts[(from + k) * 4 + base[r * 100 + k]], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2048; i += 256) count[first * 4 + i] = counts[i];
}
__global__ void __launch_bounds__(256) pileup_gather(const int *__restrict__ start, const unsigned char *__restrict__ base, uint4 *__restrict__ count, int reads) {
    int place = blockIdx.x * 256 + threadIdx.x, r = first_from(start, reads, place - 99);
    uint4 found{};
    for (; r < reads; ++r) {
        int k = place - start[r];
        if (k < 0) break;
        int b = base[r * 100 + k];
        found.x += b == 0, found.y += b == 1, found.z += b == 2, found.w += b == 3;
    }
    count[place] = found;
}

Study pileups("pileup_atomic_each_base", "bioinformatics", 1 << 18, "counts of four bases at a million places, out of 262144 sorted reads of 100",
    "an atomic in global memory for each base",
    {{"shared", "a block counts 512 places in shared memory", {"global_atomics"}}, {"gather", "a thread a place looks at the reads that cover it", {"global_atomics"}}},
    [](Buffers &b, long reads) -> Sides {
        int places = 1 << 20;
        std::vector<int> start(reads);
        for (long r = 0; r < reads; ++r) start[r] = pairs::hash(r) % (places - 100);
        std::sort(start.begin(), start.end());
        int *s = b.copy(start), n = reads;
        auto *base = b.random<unsigned char>(reads * 100, 0, 4);
        auto *count = b.output<unsigned>(4 * places, true);
        b.tolerance = 0;
        return {{"flawed", launch(pileup, reads, 128, 0, s, base, count, n)}, {"shared", launch(pileup_shared, places / 512, 256, 0, s, base, count, n)}, {"gather", launch(pileup_gather, places / 256, 256, 0, s, base, (uint4 *)count, n)}};
    });

// --- likelihood of sequences under a hidden Markov model ---

__global__ void hidden_logs(const unsigned char *symbol, const float *change, const float *emit, float *likelihood, int length) {
    int sequence = (blockIdx.x * blockDim.x + threadIdx.x) / 16, state = threadIdx.x % 16;
    float mine[16];
    for (int i = 0; i < 16; i++) mine[i] = logf(change[i * 16 + state]);
    float alpha = logf(emit[symbol[sequence * length] * 16 + state] / 16);
    for (int t = 1; t < length; t++) {
        float top = -1e30f, sum = 0.f;
        for (int i = 0; i < 16; i++) top = fmaxf(top, __shfl_sync(~0u, alpha, i, 16) + mine[i]);
        for (int i = 0; i < 16; i++) sum += expf(__shfl_sync(~0u, alpha, i, 16) + mine[i] - top);
        alpha = logf(emit[symbol[sequence * length + t] * 16 + state]) + top + logf(sum);
    }
    float top = alpha, sum = 0.f;
    for (int d = 8; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
    sum = expf(alpha - top);
    for (int d = 8; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (state == 0) likelihood[sequence] = top + logf(sum);
}
__global__ void __launch_bounds__(128) hidden_fast(const unsigned char *__restrict__ symbol, const float *__restrict__ change, const float *__restrict__ emit, float *__restrict__ likelihood, int length) {
    int sequence = (blockIdx.x * 128 + threadIdx.x) / 16, state = threadIdx.x % 16;
    float mine[16], logs[4];
#pragma unroll
    for (int i = 0; i < 16; ++i) mine[i] = change[i * 16 + state];
#pragma unroll
    for (int s = 0; s < 4; ++s) logs[s] = __logf(emit[s * 16 + state]);
    float alpha = __logf(emit[symbol[sequence * length] * 16 + state] / 16);
    for (int t = 1; t < length; ++t) {
        int s = symbol[sequence * length + t];
        float top = __shfl_sync(~0u, alpha, 0, 16), weight = __expf(alpha - top), sum = 0.f;  // one exponential a state
#pragma unroll
        for (int i = 0; i < 16; ++i) sum += __shfl_sync(~0u, weight, i, 16) * mine[i];
        alpha = (s == 0 ? logs[0] : s == 1 ? logs[1] : s == 2 ? logs[2] : logs[3]) + top + __logf(sum);
    }
    float top = __shfl_sync(~0u, alpha, 0, 16), sum = __expf(alpha - top);
#pragma unroll
    for (int d = 8; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (state == 0) likelihood[sequence] = top + __logf(sum);
}
__global__ void __launch_bounds__(128) hidden_scaled(const unsigned char *__restrict__ symbol, const float *__restrict__ change, const float *__restrict__ emit, float *__restrict__ likelihood, int length) {
    int sequence = (blockIdx.x * 128 + threadIdx.x) / 16, state = threadIdx.x % 16;
    float mine[16], out[4], logs = 0.f;
#pragma unroll
    for (int i = 0; i < 16; ++i) mine[i] = change[i * 16 + state];
#pragma unroll
    for (int s = 0; s < 4; ++s) out[s] = emit[s * 16 + state];
    float alpha = emit[symbol[sequence * length] * 16 + state] / 16;
    for (int t = 1; t < length; ++t) {
        int s = symbol[sequence * length + t];
        float sum = 0.f;
#pragma unroll
        for (int i = 0; i < 16; ++i) sum += __shfl_sync(~0u, alpha, i, 16) * mine[i];
        alpha = sum * (s == 0 ? out[0] : s == 1 ? out[1] : s == 2 ? out[2] : out[3]);
        if (t % 8 == 0) {
            float all = alpha;
#pragma unroll
            for (int d = 8; d; d /= 2) all += __shfl_xor_sync(~0u, all, d);
            alpha = __fdividef(alpha, all), logs += __logf(all);
        }
    }
#pragma unroll
    for (int d = 8; d; d /= 2) alpha += __shfl_xor_sync(~0u, alpha, d);
    if (state == 0) likelihood[sequence] = logs + __logf(alpha);
}

Study hidden_models("hidden_markov_all_in_logs", "bioinformatics", 16384, "likelihoods of 16384 sequences of 128 symbols under a model of 16 states",
    "sums of probabilities are formed in logarithms: an exponential for each pair of states and step, library functions",
    {{"fast", "one fast exponential a state and step, products with the probabilities", {"expensive_math", "redundant_loads"}}, {"scaled", "probabilities scaled every eighth step", {"expensive_math"}}},
    [](Buffers &b, long sequences) -> Sides {
        int length = 128;
        auto *symbol = b.random<unsigned char>(sequences * length, 0, 4);
        float *change = b.random<float>(256, 0.01, 0.12), *emit = b.random<float>(64, 0.05, 0.45), *likelihood = b.output<float>(sequences);
        b.tolerance = 1e-3;
        auto run = [&](auto kernel) { return launch(kernel, sequences / 8, 128, 0, symbol, change, emit, likelihood, length); };
        return {{"flawed", run(hidden_logs)}, {"fast", run(hidden_fast)}, {"scaled", run(hidden_scaled)}};
    });

// --- runs back to values ---

__global__ void expand(const int *first, const int *value, int *out, int runs) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= runs) return;
    for (int i = first[r]; i < first[r + 1]; i++) out[i] = value[r];
}
__global__ void __launch_bounds__(256) expand_warp(const int *__restrict__ first, const int *__restrict__ value, int *__restrict__ out) {
    int r = blockIdx.x * 8 + threadIdx.x / 32, end = first[r + 1], v = value[r];
    for (int i = first[r] + threadIdx.x % 32; i < end; i += 32) out[i] = v;
}
__global__ void __launch_bounds__(256) expand_outputs(const int *__restrict__ first, const int *__restrict__ value, int4 *__restrict__ out, int runs, int total) {
    int at = (blockIdx.x * 256 + threadIdx.x) * 4;
    if (at >= total) return;
    int low = 0, high = runs;
    while (high - low > 1) {  // lanes of a warp go nearly the same way
        int middle = (low + high) / 2;
        if (first[middle] <= at) low = middle;
        else high = middle;
    }
    int result[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        while (low + 1 < runs && first[low + 1] <= at + k) ++low;
        result[k] = value[low];
    }
    out[at / 4] = {result[0], result[1], result[2], result[3]};
}

Study runs_expanded("run_lengths_thread_per_run", "compression", 1 << 20, "a million runs of 1 to 63 values expanded",
    "a thread a run: lanes write to places far apart, and wait for the longest run of 32",
    {{"warp", "a warp a run", {"uncoalesced_access", "branch_divergence"}}, {"outputs", "a thread for four outputs, which finds its run by bisection", {"uncoalesced_access", "branch_divergence", "narrow_access"}}},
    [](Buffers &b, long runs) -> Sides {
        std::vector<int> first(runs + 1);
        for (long r = 0; r < runs; ++r) first[r + 1] = first[r] + 1 + pairs::hash(r) % 63;
        int total = first[runs] / 4 * 4, n = runs;
        int *at = b.copy(first), *value = b.random<int>(runs, 0, 1000000), *out = b.output<int>(first[runs]);
        b.outputs.back().count = total;
        b.tolerance = 0;
        return {{"flawed", launch(expand, runs / 256, 256, 0, at, value, out, n)}, {"warp", launch(expand_warp, runs / 8, 256, 0, at, value, out)}, {"outputs", launch(expand_outputs, blocks(total, 1024), 256, 0, at, value, (int4 *)out, n, total)}};
    });

// --- sound: four planes of bytes to pixels ---

__global__ void __launch_bounds__(256) interleave(const unsigned *__restrict__ planes, uint4 *__restrict__ out, int words) {
    int i = blockIdx.x * 256 + threadIdx.x;
    unsigned r = planes[i], g = planes[words + i], b = planes[2 * words + i], a = planes[3 * words + i];
    unsigned low = __byte_perm(r, g, 0x5140), high = __byte_perm(r, g, 0x7362), left = __byte_perm(b, a, 0x5140), right = __byte_perm(b, a, 0x7362);
    out[i] = {__byte_perm(low, left, 0x5410), __byte_perm(low, left, 0x7632), __byte_perm(high, right, 0x5410), __byte_perm(high, right, 0x7632)};
}

Study interleaved("sound_planes_to_pixels", "images", 1 << 24, "four planes of 64 million bytes to pixels of four bytes", "", {},
    [](Buffers &b, long words) -> Sides {
        auto *planes = b.random<unsigned>(words * 4, 0, 4294967295.0), *out = b.output<unsigned>(words * 4);
        return {{"sound", launch(interleave, words / 256, 256, 0, planes, (uint4 *)out, int(words))}};
    });

}  // namespace
