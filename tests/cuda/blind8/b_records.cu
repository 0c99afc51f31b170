// Pieces of graphs, databases, cryptography, compression, bioinformatics, finance and geometry. Each kernel has one
// weakness and three ways out.
#include <climits>
#include <random>

#include "../pairs/pair.cuh"

namespace {

// --- a level of breadth-first search from 256 sources at once ---

constexpr int WORDS = 8;  // of 32 sources

__global__ void spread(const int *starts, const int *targets, const unsigned *front, const unsigned *seen, unsigned *next, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    unsigned found[WORDS] = {};
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        int u = targets[e];
#pragma unroll
        for (int w = 0; w < WORDS; ++w) found[w] |= front[w * n + u];
    }
#pragma unroll
    for (int w = 0; w < WORDS; ++w) next[w * n + v] = found[w] & ~seen[w * n + v];
}
__device__ __forceinline__ uint4 either(uint4 a, uint4 b) { return {a.x | b.x, a.y | b.y, a.z | b.z, a.w | b.w}; }
__device__ __forceinline__ uint4 without(uint4 a, uint4 b) { return {a.x & ~b.x, a.y & ~b.y, a.z & ~b.z, a.w & ~b.w}; }
__global__ void spread_rows(const int *__restrict__ starts, const int *__restrict__ targets, const uint4 *__restrict__ front, const uint4 *__restrict__ seen,
    uint4 *__restrict__ next, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    uint4 low = {}, high = {};
    for (int e = starts[v]; e < starts[v + 1]; ++e) {
        int u = targets[e];
        low = either(low, front[2 * u]), high = either(high, front[2 * u + 1]);
    }
    next[2 * v] = without(low, seen[2 * v]), next[2 * v + 1] = without(high, seen[2 * v + 1]);
}
// LANES threads a vertex, each with a part of its sources.
template <typename Part, int LANES>
__global__ void spread_lanes(const int *__restrict__ starts, const int *__restrict__ targets, const Part *__restrict__ front, const Part *__restrict__ seen,
    Part *__restrict__ next, int n) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, v = thread / LANES, lane = thread % LANES;
    if (v >= n) return;
    Part found = 0;
    for (int e = starts[v]; e < starts[v + 1]; ++e) found |= front[targets[e] * LANES + lane];
    next[thread] = found & ~seen[thread];
}
__global__ void draw_sets(unsigned *front, unsigned *seen, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned few = hash(i) & hash(i ^ 0x51ab3c0du) & hash(i ^ 0x2f7d1e93u) & hash(i ^ 0x6c0a57e1u);
    front[i] = few, seen[i] = few | (hash(i ^ 0x3d92f6b7u) & hash(i ^ 0x1b8e44c5u));
}
__global__ void rows_of_planes(const unsigned *planes, unsigned *rows, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n * WORDS) rows[i] = planes[i % WORDS * n + i / WORDS];
}
__global__ void planes_of_rows(const unsigned *rows, unsigned *planes, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n * WORDS) planes[i] = rows[i % n * WORDS + i / n];
}

Study source_sets("source_sets_in_planes", "graphs", 1 << 19, "a level of breadth-first search from 256 sources at once, 524288 vertices of 4 to 12 neighbours",
    "which sources reached a vertex lies in eight planes of words: a neighbour's set comes from eight places",
    {{"rows", "the 32 bytes of a vertex side by side, read as two vectors", {"uncoalesced_access"}},
        {"eight_lanes", "side by side, eight threads a vertex with a word each", {"uncoalesced_access"}},
        {"four_lanes", "side by side, four threads a vertex with 64 bits each", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(7);
        std::vector<int> starts(n + 1), targets;
        for (long v = 0; v < n; ++v) {
            for (int edges = 4 + random() % 9; edges > 0; --edges) targets.push_back(static_cast<int>(random() % n));
            starts[v + 1] = static_cast<int>(targets.size());
        }
        int *from = b.copy(starts), *to = b.copy(targets);
        unsigned *front = b.allocate<unsigned>(n * WORDS), *seen = b.allocate<unsigned>(n * WORDS), *next = b.output<unsigned>(n * WORDS);
        unsigned *front_rows = b.allocate<unsigned>(n * WORDS), *seen_rows = b.allocate<unsigned>(n * WORDS), *next_rows = b.allocate<unsigned>(n * WORDS);
        unsigned all = blocks(n * WORDS, 256);
        launch(draw_sets, all, 256, 0, front, seen, n * WORDS)();
        launch(rows_of_planes, all, 256, 0, front, front_rows, n)();
        launch(rows_of_planes, all, 256, 0, seen, seen_rows, n)();
        CHECK_LAUNCH();
        auto planes = launch(planes_of_rows, all, 256, 0, next_rows, next, n);
        b.tolerance = 0.0;
        using Wide = unsigned long long;
        return {{"flawed", launch(spread, blocks(n, 256), 256, 0, from, to, front, seen, next, n)},
            {"rows", launch(spread_rows, blocks(n, 256), 256, 0, from, to, (uint4 *)front_rows, (uint4 *)seen_rows, (uint4 *)next_rows, n), {}, 1, planes},
            {"eight_lanes", launch(spread_lanes<unsigned, 8>, blocks(8 * n, 256), 256, 0, from, to, front_rows, seen_rows, next_rows, n), {}, 1, planes},
            {"four_lanes", launch(spread_lanes<Wide, 4>, blocks(4 * n, 256), 256, 0, from, to, (Wide *)front_rows, (Wide *)seen_rows, (Wide *)next_rows, n), {}, 1, planes}};
    });

// --- zone maps: lowest and highest value of each group of rows, and how many are null ---

constexpr int GROUP = 1 << 18;  // rows

struct Zone {
    int low = INT_MAX, high = INT_MIN, nulls = 0;

    __device__ __forceinline__ void add(int value, unsigned valid) {
        low = valid ? min(low, value) : low, high = valid ? max(high, value) : high, nulls += !valid;
    }
    // The first thread of a block gets what all have found.
    __device__ __forceinline__ void join() {
        __shared__ int lows[32], highs[32], counts[32];
        low = __reduce_min_sync(~0u, low), high = __reduce_max_sync(~0u, high), nulls = __reduce_add_sync(~0u, nulls);
        int warp = threadIdx.x / 32;
        if (threadIdx.x % 32 == 0) lows[warp] = low, highs[warp] = high, counts[warp] = nulls;
        __syncthreads();
        if (threadIdx.x == 0)
            for (int w = 1; w < static_cast<int>(blockDim.x) / 32; ++w)
                low = min(low, lows[w]), high = max(high, highs[w]), nulls += counts[w];
    }
};
__global__ void zones(const int *values, const unsigned *valid, int *out) {
    const int *group = values + blockIdx.x * static_cast<size_t>(GROUP);
    const unsigned *bits = valid + blockIdx.x * static_cast<size_t>(GROUP / 32);
    Zone zone;
    for (int i = threadIdx.x; i < GROUP; i += blockDim.x) zone.add(group[i], bits[i / 32] >> (i % 32) & 1);
    zone.join();
    if (threadIdx.x == 0) out[3 * blockIdx.x] = zone.low, out[3 * blockIdx.x + 1] = zone.high, out[3 * blockIdx.x + 2] = zone.nulls;
}
__global__ void __launch_bounds__(256) zones_vectors(const int4 *__restrict__ values, const unsigned *__restrict__ valid, int *__restrict__ out) {
    const int4 *group = values + blockIdx.x * static_cast<size_t>(GROUP / 4);
    const unsigned *bits = valid + blockIdx.x * static_cast<size_t>(GROUP / 32);
    Zone zone;
#pragma unroll 4
    for (int i = threadIdx.x; i < GROUP / 4; i += 256) {
        int4 four = group[i];
        unsigned here = bits[i / 8] >> (i % 8 * 4);
        zone.add(four.x, here & 1), zone.add(four.y, here & 2), zone.add(four.z, here & 4), zone.add(four.w, here & 8);
    }
    zone.join();
    if (threadIdx.x == 0) out[3 * blockIdx.x] = zone.low, out[3 * blockIdx.x + 1] = zone.high, out[3 * blockIdx.x + 2] = zone.nulls;
}
constexpr int PARTS = 16;  // blocks a group
__global__ void zones_parts(const int *__restrict__ values, const unsigned *__restrict__ valid, int *__restrict__ out) {
    constexpr int PART = GROUP / PARTS;
    const int *part = values + blockIdx.x * static_cast<size_t>(PART);
    const unsigned *bits = valid + blockIdx.x * static_cast<size_t>(PART / 32);
    Zone zone;
    for (int i = threadIdx.x; i < PART; i += blockDim.x) zone.add(part[i], bits[i / 32] >> (i % 32) & 1);
    zone.join();
    if (threadIdx.x != 0) return;
    int *found = out + 3 * (blockIdx.x / PARTS);
    atomicMin(found, zone.low), atomicMax(found + 1, zone.high), atomicAdd(found + 2, zone.nulls);
}

Study zone_maps("zone_maps_one_block_a_group", "databases", 1 << 26, "lowest value, highest value and number of nulls of each of 256 groups of 262144 rows",
    "one block of 256 threads goes through a group: few threads, each with a few loads of four bytes under way",
    {{"vectors", "four rows a load, four loads under way", {"memory_latency", "narrow_access"}},
        {"parts", "16 blocks a group, joined by three atomics a block", {"small_grid", "memory_latency"}},
        {"larger_blocks", "blocks of 512 threads", {"low_occupancy", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        long groups = n / GROUP;
        int *values = b.random<int>(n, -1000000000.0, 1000000000.0);
        unsigned *valid = b.random<unsigned>(n / 32, 0, 4294967295.0);
        std::vector<int> none;
        for (long g = 0; g < groups; ++g) none.insert(none.end(), {INT_MAX, INT_MIN, 0});
        int *out = b.changed(b.copy(none), 3 * groups);
        b.tolerance = 0.0;
        return {{"flawed", launch(zones, groups, 256, 0, values, valid, out)}, {"vectors", launch(zones_vectors, groups, 256, 0, (int4 *)values, valid, out)},
            {"parts", launch(zones_parts, groups * PARTS, 256, 0, values, valid, out)}, {"larger_blocks", launch(zones, groups, 512, 0, values, valid, out)}};
    });

// --- polynomials of a lattice cipher, drawn from random bytes by rejection ---

constexpr int STREAM = 672, COEFFICIENTS = 256;  // bytes; numbers below MODULUS, as 12 bits of the stream each
constexpr unsigned MODULUS = 3329;

__global__ void draw(const unsigned char *streams, unsigned short *out, int n) {
    size_t p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    const unsigned char *bytes = streams + p * STREAM;
    unsigned short *polynomial = out + p * COEFFICIENTS;
    int count = 0;
    for (int i = 0; i < STREAM && count < COEFFICIENTS; i += 3) {
        unsigned first = bytes[i] | (bytes[i + 1] & 15u) << 8, second = bytes[i + 1] >> 4 | static_cast<unsigned>(bytes[i + 2]) << 4;
        if (first < MODULUS) polynomial[count++] = first;
        if (second < MODULUS && count < COEFFICIENTS) polynomial[count++] = second;
    }
}
// Eight candidates of three words; the accepted ones are stored in pairs.
template <typename Words>
__device__ __forceinline__ void draw_from(Words words, unsigned *polynomial) {
    int count = 0;
    unsigned waiting = 0;
    auto offer = [&](unsigned number) {
        if (number >= MODULUS || count == COEFFICIENTS) return;
        if (count % 2) polynomial[count / 2] = waiting | number << 16;
        else waiting = number;
        ++count;
    };
#pragma unroll 1
    for (int i = 0; i < STREAM / 4 && count < COEFFICIENTS; i += 3) {
        unsigned a = words(i), b = words(i + 1), c = words(i + 2);
        offer(a & 4095), offer(a >> 12 & 4095), offer((a >> 24 | b << 8) & 4095), offer(b >> 4 & 4095);
        offer(b >> 16 & 4095), offer((b >> 28 | c << 4) & 4095), offer(c >> 8 & 4095), offer(c >> 20);
    }
}
__global__ void draw_words(const unsigned *__restrict__ streams, unsigned *__restrict__ out, int n) {
    size_t p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    const unsigned *stream = streams + p * (STREAM / 4);
    draw_from([stream](int i) { return stream[i]; }, out + p * (COEFFICIENTS / 2));
}
// The block's streams come through shared memory, in rows of an odd number of words.
__global__ void __launch_bounds__(64) draw_staged(const unsigned *__restrict__ streams, unsigned *__restrict__ out) {
    __shared__ unsigned rows[64][STREAM / 4 + 1];
    const unsigned *mine = streams + static_cast<size_t>(blockIdx.x) * 64 * (STREAM / 4);
    for (int i = threadIdx.x; i < 64 * (STREAM / 4); i += 64) rows[i / (STREAM / 4)][i % (STREAM / 4)] = mine[i];
    __syncthreads();
    const unsigned *row = rows[threadIdx.x];
    draw_from([row](int i) { return row[i]; }, out + static_cast<size_t>(blockIdx.x * 64 + threadIdx.x) * (COEFFICIENTS / 2));
}
// Two candidates a lane; how many were accepted before it says where its own go.
__global__ void draw_warp(const unsigned char *__restrict__ streams, unsigned short *__restrict__ out, int n) {
    size_t p = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (p >= n) return;
    unsigned lane = threadIdx.x % 32, lower = (1u << lane) - 1;
    const unsigned char *bytes = streams + p * STREAM + 3 * lane;
    unsigned short *polynomial = out + p * COEFFICIENTS;
    int count = 0;
    for (int i = 0; i < STREAM && count < COEFFICIENTS; i += 96) {
        unsigned a = bytes[i], b = bytes[i + 1], c = bytes[i + 2], first = a | (b & 15) << 8, second = b >> 4 | c << 4;
        unsigned firsts = __ballot_sync(~0u, first < MODULUS), seconds = __ballot_sync(~0u, second < MODULUS);
        int at = count + __popc(firsts & lower) + __popc(seconds & lower);
        if (first < MODULUS && at < COEFFICIENTS) polynomial[at] = first;
        at += first < MODULUS;
        if (second < MODULUS && at < COEFFICIENTS) polynomial[at] = second;
        count += __popc(firsts) + __popc(seconds);
    }
}

Study lattice("lattice_polynomials_thread_each", "cryptography", 1 << 16, "65536 polynomials of 256 numbers below 3329, drawn from 672 random bytes each",
    "a thread draws a polynomial on its own: lanes read and write 672 and 512 bytes apart",
    {{"words", "a thread reads three words for eight candidates and writes two numbers at a time", {"narrow_access"}},
        {"staged", "the same, and the bytes come through shared memory", {"narrow_access", "uncoalesced_access"}},
        {"warp", "a warp a polynomial, two candidates a lane, places from ballots", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *streams = b.random<unsigned>(n * STREAM / 4, 0, 4294967295.0), *out = b.output<unsigned>(n * COEFFICIENTS / 2);
        auto *bytes = (unsigned char *)streams;
        auto *numbers = (unsigned short *)out;
        b.tolerance = 0.0;
        return {{"flawed", launch(draw, blocks(n, 128), 128, 0, bytes, numbers, n)}, {"words", launch(draw_words, blocks(n, 128), 128, 0, streams, out, n)},
            {"staged", launch(draw_staged, n / 64, 64, 0, streams, out)}, {"warp", launch(draw_warp, blocks(32 * n, 256), 256, 0, bytes, numbers, n)}};
    });

// --- 32 words turned into 32 planes of their bits, before compression ---

__global__ void bit_planes(const unsigned *words, unsigned *planes, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned *group = words + i / 32 * 32;
    unsigned bit = i % 32, plane = 0;
    for (int k = 0; k < 32; ++k) plane |= (group[k] >> bit & 1) << k;
    planes[i] = plane;
}
__global__ void bit_planes_ballots(const unsigned *__restrict__ words, unsigned *__restrict__ planes, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    if (i >= n) return;
    unsigned word = words[i], plane = 0;
#pragma unroll
    for (int bit = 0; bit < 32; ++bit) {
        unsigned found = __ballot_sync(~0u, word >> bit & 1);
        if (lane == bit) plane = found;
    }
    planes[i] = plane;
}
// Halves, quarters, ... of the 32 by 32 bits change places with those of the lane across.
__global__ void bit_planes_exchanged(const unsigned *__restrict__ words, unsigned *__restrict__ planes, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = words[i], mask = 0x0000ffffu;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        unsigned other = __shfl_xor_sync(~0u, x, step);
        x = threadIdx.x & step ? (x & ~mask) | (other >> step & mask) : (x & mask) | (other & mask) << step;
        mask ^= mask << (step / 2);
    }
    planes[i] = x;
}
// A thread holds all 32 words.
__global__ void __launch_bounds__(128) bit_planes_registers(const uint4 *__restrict__ words, uint4 *__restrict__ planes, int groups) {
    int g = blockIdx.x * 128 + threadIdx.x;
    if (g >= groups) return;
    unsigned x[32];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        uint4 four = words[g * 8 + k];
        x[4 * k] = four.x, x[4 * k + 1] = four.y, x[4 * k + 2] = four.z, x[4 * k + 3] = four.w;
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        const unsigned mask = step == 16 ? 0x0000ffffu : step == 8 ? 0x00ff00ffu : step == 4 ? 0x0f0f0f0fu : step == 2 ? 0x33333333u : 0x55555555u;
#pragma unroll
        for (int k = 0; k < 32; ++k)
            if (!(k & step)) {
                unsigned change = (x[k] >> step ^ x[k + step]) & mask;
                x[k] ^= change << step, x[k + step] ^= change;
            }
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) planes[g * 8 + k] = {x[4 * k], x[4 * k + 1], x[4 * k + 2], x[4 * k + 3]};
}

Study planes_of_bits("bit_planes_word_by_word", "compression", 1 << 25, "33554432 words turned into planes of their bits, 32 by 32",
    "each of the 32 lanes reads all 32 words of its group for one bit of each",
    {{"ballots", "a lane reads one word, 32 ballots", {"redundant_loads"}}, {"exchanged", "a lane reads one word, five exchanges", {"redundant_loads", "integer_arithmetic"}},
        {"registers", "a thread turns 32 words in its registers", {"redundant_loads", "integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *words = b.random<unsigned>(n, 0, 4294967295.0), *planes = b.output<unsigned>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(bit_planes, blocks(n, 256), 256, 0, words, planes, n)}, {"ballots", launch(bit_planes_ballots, blocks(n, 256), 256, 0, words, planes, n)},
            {"exchanged", launch(bit_planes_exchanged, blocks(n, 256), 256, 0, words, planes, n)},
            {"registers", launch(bit_planes_registers, blocks(n / 32, 128), 128, 0, (uint4 *)words, (uint4 *)planes, n / 32)}};
    });

// --- minimisers: the lowest hash of 16 neighbouring runs of 15 letters ---

constexpr int RUN = 15, WINDOW = 16;  // letters of two bits; runs

// The letters from `at` on, 16 a word.
__device__ __forceinline__ unsigned run_at(const unsigned *letters, int at) {
    return __funnelshift_r(letters[at / 16], letters[at / 16 + 1], at % 16 * 2) & ((1u << (2 * RUN)) - 1);
}
__device__ __forceinline__ unsigned mixed(unsigned x) {
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}
__global__ void minimisers(const unsigned *letters, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned lowest = ~0u;
    for (int k = 0; k < WINDOW; ++k) lowest = min(lowest, mixed(run_at(letters, i + k)));
    out[i] = lowest;
}
__global__ void __launch_bounds__(256) minimisers_shared(const unsigned *__restrict__ letters, unsigned *__restrict__ out, int n) {
    __shared__ unsigned hashes[256 + WINDOW - 1];
    int first = blockIdx.x * 256;
    for (int k = threadIdx.x; k < 256 + WINDOW - 1; k += 256) hashes[k] = mixed(run_at(letters, first + k));
    __syncthreads();
    unsigned lowest = ~0u;
#pragma unroll
    for (int k = 0; k < WINDOW; ++k) lowest = min(lowest, hashes[threadIdx.x + k]);
    if (first + static_cast<int>(threadIdx.x) < n) out[first + threadIdx.x] = lowest;
}
// Windows of 2, 4, 8 and 16 from two of half the width, in the lanes of a warp and those after it.
__global__ void minimisers_doubled(const unsigned *__restrict__ letters, unsigned *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    if (i >= n) return;
    unsigned here = mixed(run_at(letters, i)), after = mixed(run_at(letters, i + 32));
#pragma unroll
    for (int width = 1; width < WINDOW; width *= 2) {
        unsigned a = __shfl_sync(~0u, here, lane + width), b = __shfl_sync(~0u, after, lane + width);
        here = min(here, lane + width < 32 ? a : b);
        after = min(after, lane + width < 32 ? b : ~0u);
    }
    out[i] = here;
}
// 16 windows a thread: each is the end of the first 16 hashes and the beginning of the next.
__global__ void minimisers_run(const unsigned *__restrict__ letters, uint4 *__restrict__ out, int n) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * WINDOW;
    if (i >= n) return;
    unsigned words[3], lowest[WINDOW], after = ~0u;
#pragma unroll
    for (int k = 0; k < 3; ++k) words[k] = letters[i / 16 + k];
    auto hashed = [&](int k) { return mixed(__funnelshift_r(words[k / 16], words[k / 16 + 1], k % 16 * 2) & ((1u << (2 * RUN)) - 1)); };
#pragma unroll
    for (int k = 0; k < WINDOW; ++k) lowest[k] = hashed(k);
#pragma unroll
    for (int k = WINDOW - 2; k >= 0; --k) lowest[k] = min(lowest[k], lowest[k + 1]);
#pragma unroll
    for (int k = 1; k < WINDOW; ++k) {
        after = min(after, hashed(WINDOW + k - 1));
        lowest[k] = min(lowest[k], after);
    }
#pragma unroll
    for (int k = 0; k < WINDOW / 4; ++k) out[i / 4 + k] = {lowest[4 * k], lowest[4 * k + 1], lowest[4 * k + 2], lowest[4 * k + 3]};
}

Study lowest_hashes("minimisers_hash_every_window", "bioinformatics", 1 << 24, "the lowest hash of 16 neighbouring runs of 15 letters at 16777216 places of a genome",
    "a thread hashes all 16 runs of its window, each of which 15 other threads hash as well",
    {{"shared", "a run is hashed once a block, into shared memory", {"integer_arithmetic", "redundant_loads"}},
        {"doubled", "twice a warp; windows double by shuffles", {"integer_arithmetic", "redundant_loads"}},
        {"run", "16 windows a thread, from the end of one half and the beginning of the other", {"integer_arithmetic", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *letters = b.random<unsigned>(n / 16 + 64, 0, 4294967295.0), *out = b.output<unsigned>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(minimisers, blocks(n, 256), 256, 0, letters, out, n)}, {"shared", launch(minimisers_shared, blocks(n, 256), 256, 0, letters, out, n)},
            {"doubled", launch(minimisers_doubled, blocks(n, 256), 256, 0, letters, out, n)},
            {"run", launch(minimisers_run, blocks(n / WINDOW, 128), 128, 0, letters, (uint4 *)out, n)}};
    });

// --- Sobol's points for quasi-random paths ---

constexpr int DIMENSIONS = 32;
constexpr float UNIT = 1.f / 4294967296.f;

__global__ void sobol(const unsigned *directions, float *out, int n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = 0;
    if (i >= n) return;
    const unsigned *direction = directions + blockIdx.y * 32;
    for (int bit = 0; bit < 32; ++bit)
        if (i >> bit & 1) x ^= direction[bit];
    out[static_cast<size_t>(blockIdx.y) * n + i] = x * UNIT;
}
// Eight points a thread; of 2^bits points no more bits are looked at.
__global__ void sobol_registers(const unsigned *__restrict__ directions, float *__restrict__ out, int n, int bits) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, apart = gridDim.x * blockDim.x, x[8] = {};
    const unsigned *direction = directions + blockIdx.y * 32;
    for (int bit = 0; bit < bits; ++bit) {
        unsigned number = direction[bit];
#pragma unroll
        for (int k = 0; k < 8; ++k) x[k] ^= (i + k * apart) >> bit & 1 ? number : 0;
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) out[static_cast<size_t>(blockIdx.y) * n + i + k * apart] = x[k] * UNIT;
}
// 32 points a thread in the order of Gray's code: each is one direction away from the last.
__global__ void sobol_gray(const unsigned *__restrict__ directions, float *__restrict__ out, int n, int bits) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, apart = gridDim.x * blockDim.x, x = 0;
    const unsigned *direction = directions + blockIdx.y * 32;
    for (int bit = 0; bit < bits - 5; ++bit)
        if (i >> bit & 1) x ^= direction[bit];
    float *points = out + static_cast<size_t>(blockIdx.y) * n + i;
    points[0] = x * UNIT;
#pragma unroll
    for (unsigned k = 1; k < 32; ++k) {
        x ^= direction[bits - 5 + (k % 2 ? 0 : k % 4 ? 1 : k % 8 ? 2 : k % 16 ? 3 : 4)];
        points[(k ^ k / 2) * apart] = x * UNIT;
    }
}
// What the lowest 8, the next 8 and the highest bits give, from tables.
__global__ void __launch_bounds__(256) sobol_tables(const unsigned *__restrict__ directions, float *__restrict__ out, int n) {
    __shared__ unsigned middle[256], high[256];
    const unsigned *direction = directions + blockIdx.y * 32;
    unsigned t = threadIdx.x, low = 0, x = 0, y = 0;
#pragma unroll
    for (int bit = 0; bit < 8; ++bit)
        if (t >> bit & 1) low ^= direction[bit], x ^= direction[8 + bit], y ^= direction[16 + bit];
    middle[t] = x, high[t] = y;
    __syncthreads();
    unsigned first = blockIdx.x * 8192 + t;
    float *points = out + static_cast<size_t>(blockIdx.y) * n;
#pragma unroll 8
    for (int k = 0; k < 32; ++k) {
        unsigned i = first + k * 256;
        points[i] = (low ^ middle[i >> 8 & 255] ^ high[i >> 16]) * UNIT;
    }
}

Study quasi_random("sobol_points_from_all_bits", "finance", 1 << 20, "1048576 points of Sobol's sequence in 32 dimensions",
    "each point is put together from 32 direction numbers, one for each bit of its number, also those never set",
    {{"registers", "eight points a thread, which share what they read of 20 bits", {"redundant_loads"}},
        {"gray", "32 points a thread, each from the last by one direction number", {"redundant_loads", "integer_arithmetic"}},
        {"tables", "tables of all values of eight bits in shared memory, 32 points a thread", {"redundant_loads", "integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(11);
        std::vector<unsigned> directions;
        for (int d = 0; d < DIMENSIONS; ++d)
            for (int bit = 0; bit < 32; ++bit) directions.push_back(((random() % (1u << bit)) << 1 | 1u) << (31 - bit));
        unsigned *numbers = b.copy(directions);
        float *out = b.output<float>(n * DIMENSIONS);
        int bits = 0;
        while (1L << bits < n) ++bits;
        auto grid = [](long blocks) { return dim3(static_cast<unsigned>(blocks), DIMENSIONS); };
        b.tolerance = 0.0;
        return {{"flawed", launch(sobol, grid(n / 256), 256, 0, numbers, out, n)}, {"registers", launch(sobol_registers, grid(n / 2048), 256, 0, numbers, out, n, bits)},
            {"gray", launch(sobol_gray, grid(n / 8192), 256, 0, numbers, out, n, bits)}, {"tables", launch(sobol_tables, grid(n / 8192), 256, 0, numbers, out, n)}};
    });

// --- the spread of the points around each point of a scan ---

constexpr int ROOM = 8192;  // points of a cell

struct Spread {
    float count = 0.f, x = 0.f, y = 0.f, z = 0.f, xx = 0.f, yy = 0.f, zz = 0.f, xy = 0.f, xz = 0.f, yz = 0.f;

    __device__ __forceinline__ void add(float4 at, float4 other, float radius) {
        float dx = other.x - at.x, dy = other.y - at.y, dz = other.z - at.z;
        float weight = fmaf(dx, dx, fmaf(dy, dy, dz * dz)) < radius * radius ? 1.f : 0.f;
        float wx = weight * dx, wy = weight * dy, wz = weight * dz;
        count += weight, x += wx, y += wy, z += wz;
        xx += wx * dx, yy += wy * dy, zz += wz * dz, xy += wx * dy, xz += wx * dz, yz += wy * dz;
    }
    // The first two invariants of the covariance.
    __device__ __forceinline__ float2 invariants() const {
        float one = 1.f / count, mx = x * one, my = y * one, mz = z * one;
        float a = xx * one - mx * mx, b = yy * one - my * my, c = zz * one - mz * mz;
        float d = xy * one - mx * my, e = xz * one - mx * mz, f = yz * one - my * mz;
        return {a + b + c, a * b + a * c + b * c - d * d - e * e - f * f};
    }
};
__global__ void __launch_bounds__(128) spreads(const float4 *points, const int *starts, float2 *out, float radius) {
    extern __shared__ float4 cell[];
    int first = starts[blockIdx.x], count = starts[blockIdx.x + 1] - first;
    for (int i = threadIdx.x; i < count; i += 128) cell[i] = points[first + i];
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += 128) {
        float4 at = cell[i];
        Spread spread;
        for (int k = 0; k < count; ++k) spread.add(at, cell[k], radius);
        out[first + i] = spread.invariants();
    }
}
__global__ void __launch_bounds__(128) spreads_pieces(const float4 *__restrict__ points, const int *__restrict__ starts, float2 *__restrict__ out, float radius) {
    __shared__ float4 piece[128];
    int first = starts[blockIdx.x], count = starts[blockIdx.x + 1] - first;
    for (int rows = 0; rows < count; rows += 128) {
        int i = rows + threadIdx.x;
        float4 at = points[first + min(i, count - 1)];
        Spread spread;
        for (int begin = 0; begin < count; begin += 128) {
            int here = min(128, count - begin);
            __syncthreads();
            if (static_cast<int>(threadIdx.x) < here) piece[threadIdx.x] = points[first + begin + threadIdx.x];
            __syncthreads();
            for (int k = 0; k < here; ++k) spread.add(at, piece[k], radius);
        }
        if (i < count) out[first + i] = spread.invariants();
    }
}
__global__ void __launch_bounds__(128) spreads_global(const float4 *__restrict__ points, const int *__restrict__ starts, float2 *__restrict__ out, float radius) {
    int first = starts[blockIdx.x], count = starts[blockIdx.x + 1] - first;
    for (int i = threadIdx.x; i < count; i += 128) {
        float4 at = points[first + i];
        Spread spread;
        for (int k = 0; k < count; ++k) spread.add(at, points[first + k], radius);
        out[first + i] = spread.invariants();
    }
}

Study point_spreads("point_spreads_room_for_8192", "geometry", 2048, "spread of the neighbours of each point of a scan, 2048 cells of 256 to 640 points",
    "a block has room for 8192 points in shared memory, more than ten times what a cell holds: one block a multiprocessor",
    {{"fullest", "room for the fullest cell", {"low_occupancy"}}, {"pieces", "128 points in shared memory at a time", {"low_occupancy"}},
        {"global", "no copy, the points are read where they lie", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(13);
        std::uniform_real_distribution<float> place(0.f, 1.f);
        std::vector<int> starts(1);
        std::vector<float> coordinates;
        size_t fullest = 0;
        for (long c = 0; c < n; ++c) {
            size_t count = 256 + random() % 385;
            fullest = std::max(fullest, count);
            starts.push_back(starts.back() + static_cast<int>(count));
            for (size_t k = 0; k < 4 * count; ++k) coordinates.push_back(place(random));
        }
        auto *points = (float4 *)b.copy(coordinates);
        int *cells = b.copy(starts);
        auto *out = (float2 *)b.output<float>(2 * starts.back());
        float radius = 0.4f;
        return {{"flawed", launch(spreads, n, 128, ROOM * sizeof(float4), points, cells, out, radius)},
            {"fullest", launch(spreads, n, 128, fullest * sizeof(float4), points, cells, out, radius)},
            {"pieces", launch(spreads_pieces, n, 128, 0, points, cells, out, radius)}, {"global", launch(spreads_global, n, 128, 0, points, cells, out, radius)}};
    });

}  // namespace
