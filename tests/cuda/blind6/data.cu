// Pieces of databases, codecs, graphs and ciphers. Each kernel has one weakness and two or three ways out.
#include "../pairs/pair.cuh"

namespace {

// --- scattering step of a radix sort, ranks known ---

constexpr int KEYS = 4096, DIGITS = 256;  // keys a block

// Rank of each key among those of its block with the same digit, and the counts; setup only.
__global__ void __launch_bounds__(DIGITS) ranks_of_block(const unsigned *keys, unsigned short *ranks, int *counts) {
    __shared__ unsigned char digits[KEYS];
    for (int i = threadIdx.x; i < KEYS; i += DIGITS) digits[i] = keys[blockIdx.x * KEYS + i] & 255u;
    __syncthreads();
    int count = 0;
    for (int i = 0; i < KEYS; ++i)
        if (digits[i] == threadIdx.x) ranks[blockIdx.x * KEYS + i] = count++;
    counts[threadIdx.x * gridDim.x + blockIdx.x] = count;
}
__global__ void __launch_bounds__(256) scatter_keys(const unsigned *keys, const unsigned short *ranks, const int *offsets, unsigned *out) {
    __shared__ int base[DIGITS];
    base[threadIdx.x] = offsets[threadIdx.x * gridDim.x + blockIdx.x];
    __syncthreads();
    for (int i = blockIdx.x * KEYS + threadIdx.x; i < (blockIdx.x + 1) * KEYS; i += 256) {
        unsigned key = keys[i];
        out[base[key & 255u] + ranks[i]] = key;
    }
}
// The block's keys are put in order in shared memory first and leave it in runs.
__global__ void __launch_bounds__(256) scatter_keys_sorted(const unsigned *__restrict__ keys, const unsigned short *__restrict__ ranks, const int *__restrict__ offsets, unsigned *__restrict__ out) {
    __shared__ int base[DIGITS], begin[DIGITS], warps[8];
    __shared__ unsigned sorted[KEYS];
    const int t = threadIdx.x;
    begin[t] = 0;
    __syncthreads();
    unsigned key[16];
    int rank[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        key[k] = keys[blockIdx.x * KEYS + k * 256 + t], rank[k] = ranks[blockIdx.x * KEYS + k * 256 + t];
        atomicMax(&begin[key[k] & 255u], rank[k] + 1);  // the highest rank tells the count
    }
    __syncthreads();
    int count = begin[t], sum = count;
    for (int o = 1; o < 32; o *= 2) {
        int other = __shfl_up_sync(~0u, sum, o);
        if (t % 32 >= o) sum += other;
    }
    if (t % 32 == 31) warps[t / 32] = sum;
    __syncthreads();
    for (int w = 0; w < t / 32; ++w) sum += warps[w];
    begin[t] = sum - count;
    base[t] = offsets[t * gridDim.x + blockIdx.x] - (sum - count);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) sorted[begin[key[k] & 255u] + rank[k]] = key[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        unsigned v = sorted[k * 256 + t];
        out[base[v & 255u] + k * 256 + t] = v;
    }
}
// Sixteen loads under way before anything is stored; the stores stay where they are.
__global__ void __launch_bounds__(256) scatter_keys_ahead(const unsigned *__restrict__ keys, const unsigned short *__restrict__ ranks, const int *__restrict__ offsets, unsigned *__restrict__ out) {
    __shared__ int base[DIGITS];
    unsigned key[16];
    int rank[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) key[k] = keys[blockIdx.x * KEYS + k * 256 + threadIdx.x], rank[k] = ranks[blockIdx.x * KEYS + k * 256 + threadIdx.x];
    base[threadIdx.x] = offsets[threadIdx.x * gridDim.x + blockIdx.x];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) out[base[key[k] & 255u] + rank[k]] = key[k];
}

Study scattering("radix_keys_straight_to_buckets", "data", 1 << 24, "16777216 keys scattered by a digit of eight bits, ranks known",
    "each key goes from its thread to its bucket: the stores of a warp go to 32 places",
    {{"sorted", "a block's keys put in order in shared memory, stored in runs", {"uncoalesced_access"}}, {"ahead", "16 keys a thread read ahead, same stores", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        int grid = n / KEYS;
        unsigned *keys = b.random<unsigned>(n, 0, 4294967295.0), *out = b.output<unsigned>(n);
        unsigned short *ranks = b.allocate<unsigned short>(n);
        int *counts = b.allocate<int>(grid * DIGITS);
        ranks_of_block<<<grid, DIGITS>>>(keys, ranks, counts);
        CHECK_LAUNCH();
        std::vector<int> offsets(grid * DIGITS);
        CHECK(cudaMemcpy(offsets.data(), counts, offsets.size() * sizeof(int), cudaMemcpyDeviceToHost));
        int sum = 0;
        for (int &o : offsets) {
            int count = o;
            o = sum, sum += count;
        }
        int *o = b.copy(offsets);
        b.tolerance = 1e-12;
        return {{"flawed", launch(scatter_keys, grid, 256, 0, keys, ranks, o, out)}, {"sorted", launch(scatter_keys_sorted, grid, 256, 0, keys, ranks, o, out)},
            {"ahead", launch(scatter_keys_ahead, grid, 256, 0, keys, ranks, o, out)}};
    });

// --- a join whose condition is a distance ---

struct Event {
    float time, x;
};
__global__ void band_join(const Event *left, const Event *right, int *matches, int n, int m, float window, float reach) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int found = 0;
    for (int j = 0; j < m; ++j)
        if (fabsf(left[i].time - right[j].time) <= window && fabsf(left[i].x - right[j].x) <= reach) ++found;
    matches[i] = found;
}
__global__ void __launch_bounds__(256) band_join_tile(const Event *__restrict__ left, const Event *__restrict__ right, int *matches, int m, float window, float reach) {
    __shared__ Event tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x, found = 0;
    Event own = left[i];
    for (int start = 0; start < m; start += 256) {
        __syncthreads();
        tile[threadIdx.x] = right[start + threadIdx.x];
        __syncthreads();
#pragma unroll 16
        for (int j = 0; j < 256; ++j) found += (fabsf(own.time - tile[j].time) <= window) & (fabsf(own.x - tile[j].x) <= reach);
    }
    matches[i] = found;
}
// Four events a thread against two at a time: a load serves eight comparisons.
__global__ void __launch_bounds__(64) band_join_four(const Event *__restrict__ left, const float4 *__restrict__ right, int *matches, int pairs, float window, float reach) {
    Event own[4];
    int found[4] = {}, first = blockIdx.x * 256 + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 4; ++k) own[k] = left[first + 64 * k];
#pragma unroll 4
    for (int j = 0; j < pairs; ++j) {
        float4 r = right[j];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            found[k] += (fabsf(own[k].time - r.x) <= window) & (fabsf(own[k].x - r.y) <= reach);
            found[k] += (fabsf(own[k].time - r.z) <= window) & (fabsf(own[k].x - r.w) <= reach);
        }
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) matches[first + 64 * k] = found[k];
}

Study joins("band_join_events_from_memory", "data", 1 << 17, "how many of 4096 events lie near each of 131072 in time and place",
    "every thread loads every event again, eight bytes a comparison, and the second condition behind a branch",
    {{"tile", "256 events at a time in shared memory, conditions without branches", {"redundant_loads", "branch_divergence"}},
        {"four", "four events a thread, two loaded at once", {"redundant_loads", "branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const int m = 4096;
        float *left = b.random<float>(2 * n, 0, 100), *right = b.random<float>(2 * m, 0, 100);
        int *matches = b.output<int>(n);
        b.tolerance = 1e-9;
        return {{"flawed", launch(band_join, n / 256, 256, 0, (Event *)left, (Event *)right, matches, n, m, 20.f, 10.f)},
            {"tile", launch(band_join_tile, n / 256, 256, 0, (Event *)left, (Event *)right, matches, m, 20.f, 10.f)},
            {"four", launch(band_join_four, n / 256, 64, 0, (Event *)left, (float4 *)right, matches, m / 2, 20.f, 10.f)}};
    });

// --- an entropy coder's streams: which symbol owns a slot of 4096 ---

constexpr int ALPHABET = 64, PRECISION = 12;

struct Model {
    const unsigned short *cumulative;  // ALPHABET + 1 of them
};
struct ByWalk {
    const unsigned short *c;
    __device__ int operator()(unsigned slot) const {
        int s = 0;
        while (c[s + 1] <= slot) ++s;
        return s;
    }
};
struct ByHalves {
    const unsigned short *c;
    __device__ int operator()(unsigned slot) const {
        int s = 0;
#pragma unroll
        for (int step = ALPHABET / 2; step; step /= 2) s += c[s + step] <= slot ? step : 0;
        return s;
    }
};
struct ByTable {
    const unsigned char *table;
    __device__ int operator()(unsigned slot) const { return table[slot]; }
};
template <typename Find>
__device__ __forceinline__ void decode_stream(const unsigned *states, const unsigned short *words, unsigned char *out, const unsigned short *c, Find find, int streams, int symbols) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= streams) return;
    unsigned state = states[s];
    int at = 0;
    for (int i = 0; i < symbols; ++i) {
        unsigned slot = state & ((1u << PRECISION) - 1);
        int symbol = find(slot);
        state = (c[symbol + 1] - c[symbol]) * (state >> PRECISION) + slot - c[symbol];
        if (state < 65536u) state = state << 16 | words[at++ * streams + s];
        out[i * streams + s] = symbol;
    }
}
__device__ __forceinline__ void copy_model(Model m, unsigned short *c) {
    for (int i = threadIdx.x; i <= ALPHABET; i += blockDim.x) c[i] = m.cumulative[i];
    __syncthreads();
}
__global__ void __launch_bounds__(128) decode_walk(Model m, const unsigned *states, const unsigned short *words, unsigned char *out, int streams, int symbols) {
    __shared__ unsigned short c[ALPHABET + 1];
    copy_model(m, c);
    decode_stream(states, words, out, c, ByWalk{c}, streams, symbols);
}
__global__ void __launch_bounds__(128) decode_halves(Model m, const unsigned *states, const unsigned short *words, unsigned char *out, int streams, int symbols) {
    __shared__ unsigned short c[ALPHABET + 1];
    copy_model(m, c);
    decode_stream(states, words, out, c, ByHalves{c}, streams, symbols);
}
__global__ void __launch_bounds__(128) decode_table(Model m, const unsigned *states, const unsigned short *words, unsigned char *out, int streams, int symbols) {
    __shared__ unsigned short c[ALPHABET + 1];
    __shared__ unsigned char table[1 << PRECISION];
    copy_model(m, c);
    for (int i = threadIdx.x; i < 1 << PRECISION; i += blockDim.x) table[i] = ByHalves{c}(i);
    __syncthreads();
    decode_stream(states, words, out, c, ByTable{table}, streams, symbols);
}

Study decoders("entropy_symbols_found_by_walking", "data", 1 << 16, "65536 streams of an asymmetric numeral system, 128 symbols each, 64 different ones",
    "a symbol is found by walking up the sums of frequencies: lanes need one to 64 steps",
    {{"table", "a table of all 4096 slots in shared memory", {"branch_divergence"}}, {"halves", "six halving steps without branches", {"branch_divergence"}}},
    [](Buffers &b, long streams) -> Sides {
        const int symbols = 128;
        std::vector<unsigned short> cumulative(ALPHABET + 1);
        int sum = 0;
        for (int s = 0; s < ALPHABET; ++s) {
            cumulative[s] = sum;
            sum += s == ALPHABET - 1 ? 4096 - sum : 20 + hash(s) % 87;
        }
        cumulative[ALPHABET] = 4096;
        std::vector<unsigned> states(streams);
        std::vector<unsigned short> words(streams * symbols), mine;
        for (long s = 0; s < streams; ++s) {
            unsigned state = 65536u;
            mine.clear();
            for (int i = symbols - 1; i >= 0; --i) {
                unsigned h = hash(s * symbols + i), symbol = h % ALPHABET, f = cumulative[symbol + 1] - cumulative[symbol];
                if (state >= static_cast<unsigned long long>(f) << (32 - PRECISION)) mine.push_back(state), state >>= 16;
                state = (state / f << PRECISION) + state % f + cumulative[symbol];
            }
            states[s] = state;
            for (size_t w = 0; w < mine.size(); ++w) words[w * streams + s] = mine[mine.size() - 1 - w];
        }
        Model m{b.copy(cumulative)};
        unsigned *st = b.copy(states);
        unsigned short *w = b.copy(words);
        unsigned char *out = b.output<unsigned char>(streams * symbols);
        b.tolerance = 1e-12;
        return {{"flawed", launch(decode_walk, streams / 128, 128, 0, m, st, w, out, streams, symbols)},
            {"table", launch(decode_table, streams / 128, 128, 0, m, st, w, out, streams, symbols)},
            {"halves", launch(decode_halves, streams / 128, 128, 0, m, st, w, out, streams, symbols)}};
    });

// --- a round of Luby's independent set on a graph with hubs ---

struct Graph {
    const int *offsets, *targets;
    int nodes;
};
__device__ __forceinline__ bool beats(int other, unsigned own_key, int own) {
    unsigned key = hash(other);
    return key > own_key || (key == own_key && other > own);
}
__global__ void independent(Graph g, const int *alive, int *chosen) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= g.nodes) return;
    int best = alive[v];
    unsigned key = hash(v);
    for (int e = g.offsets[v]; e < g.offsets[v + 1]; ++e) {
        int u = g.targets[e];
        if (alive[u] && beats(u, key, v)) best = 0;
    }
    chosen[v] = best;
}
__global__ void independent_leaves(Graph g, const int *alive, int *chosen) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= g.nodes) return;
    int best = alive[v];
    unsigned key = hash(v);
    for (int e = g.offsets[v]; best && e < g.offsets[v + 1]; ++e) {
        int u = g.targets[e];
        if (beats(u, key, v) && alive[u]) best = 0;
    }
    chosen[v] = best;
}
// Eight lanes a node, side by side along its edges.
__global__ void independent_lanes(Graph g, const int *__restrict__ alive, int *__restrict__ chosen) {
    int v = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
    unsigned group = 0xffu << (threadIdx.x & 24);
    if (v >= g.nodes) return;
    bool best = alive[v];
    unsigned key = hash(v);
    for (int e = g.offsets[v] + lane, end = g.offsets[v + 1]; e - lane < end; e += 8) {
        if (e < end) {
            int u = g.targets[e];
            if (alive[u] && beats(u, key, v)) best = false;
        }
    }
    best = __all_sync(group, best);
    if (lane == 0) chosen[v] = best;
}

Study sets("independent_set_all_neighbours_read", "graphs", 1 << 19, "a round of Luby's independent set on 524288 nodes with 4 to 4096 neighbours",
    "a thread reads all neighbours of its node, hubs included, though one that is higher decides",
    {{"leaves", "out of the loop with the first that is higher", {"workload_imbalance", "branch_divergence"}},
        {"lanes", "eight lanes a node along its edges", {"workload_imbalance", "uncoalesced_access"}}},
    [](Buffers &b, long nodes) -> Sides {
        std::vector<int> offsets{0}, targets;
        for (long v = 0; v < nodes; ++v) {
            unsigned h = hash(v + 99);
            int degree = h % 2048 == 0 ? 4096 : h % 64 == 0 ? 128 : 4 + h % 13;
            for (int k = 0; k < degree; ++k) targets.push_back(hash(targets.size() * 7 + 5) % nodes);
            offsets.push_back(targets.size());
        }
        Graph g{b.copy(offsets), b.copy(targets), static_cast<int>(nodes)};
        int *alive = b.random<int>(nodes, 0, 4), *chosen = b.output<int>(nodes);
        std::vector<int> flags(nodes);
        for (long v = 0; v < nodes; ++v) flags[v] = hash(v * 3 + 1) % 4 != 0;
        CHECK(cudaMemcpy(alive, flags.data(), nodes * sizeof(int), cudaMemcpyHostToDevice));
        b.tolerance = 1e-12;
        return {{"flawed", launch(independent, nodes / 256, 256, 0, g, alive, chosen)}, {"leaves", launch(independent_leaves, nodes / 256, 256, 0, g, alive, chosen)},
            {"lanes", launch(independent_lanes, nodes / 32, 256, 0, g, alive, chosen)}};
    });

// --- a password function that mixes through a scratchpad of 8 KB a candidate ---

constexpr int ENTRIES = 128, WORDS = 16;  // entries of 64 bytes

__device__ __forceinline__ void mix(unsigned (&x)[WORDS]) {
    auto quarter = [](unsigned &a, unsigned &b, unsigned &c, unsigned &d) {
        b ^= __funnelshift_l(a + d, a + d, 7);
        c ^= __funnelshift_l(b + a, b + a, 9);
        d ^= __funnelshift_l(c + b, c + b, 13);
        a ^= __funnelshift_l(d + c, d + c, 18);
    };
    quarter(x[0], x[4], x[8], x[12]), quarter(x[5], x[9], x[13], x[1]), quarter(x[10], x[14], x[2], x[6]), quarter(x[15], x[3], x[7], x[11]);
    quarter(x[0], x[1], x[2], x[3]), quarter(x[5], x[6], x[7], x[4]), quarter(x[10], x[11], x[8], x[9]), quarter(x[15], x[12], x[13], x[14]);
}
struct OwnPad {  // a candidate's entries one after the other
    unsigned *pad;
    __device__ unsigned &operator()(int entry, int word) const { return pad[(static_cast<size_t>(blockIdx.x * blockDim.x + threadIdx.x) * ENTRIES + entry) * WORDS + word]; }
};
template <typename Pad>
__global__ void __launch_bounds__(128) memory_hard(const unsigned *seeds, Pad pad, unsigned *out, int candidates) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= candidates) return;
    unsigned x[WORDS], seed = seeds[at];
#pragma unroll
    for (int w = 0; w < WORDS; ++w) x[w] = seed * (2 * w + 1) + w;
    for (int e = 0; e < ENTRIES; ++e) {
#pragma unroll
        for (int w = 0; w < WORDS; ++w) pad(e, w) = x[w];
        mix(x);
    }
    for (int e = 0; e < ENTRIES; ++e) {
        int from = x[0] % ENTRIES;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) x[w] ^= pad(from, w);
        mix(x);
    }
    unsigned sum = 0;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) sum ^= x[w];
    out[at] = sum;
}
// Sixteen bytes at a time; those of a warp's lanes side by side where it is woven.
template <bool WOVEN>
__global__ void __launch_bounds__(128) memory_hard_quads(const unsigned *seeds, uint4 *pad, unsigned *out, int candidates) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= candidates) return;
    unsigned x[WORDS], seed = seeds[at];
    constexpr int STEP = WOVEN ? 32 : 1;
    uint4 *own = pad + (WOVEN ? static_cast<size_t>(at / 32) * 32 * ENTRIES * (WORDS / 4) + at % 32 : static_cast<size_t>(at) * ENTRIES * (WORDS / 4));
#pragma unroll
    for (int w = 0; w < WORDS; ++w) x[w] = seed * (2 * w + 1) + w;
    for (int e = 0; e < ENTRIES; ++e) {
#pragma unroll
        for (int q = 0; q < WORDS / 4; ++q) own[(e * (WORDS / 4) + q) * STEP] = {x[4 * q], x[4 * q + 1], x[4 * q + 2], x[4 * q + 3]};
        mix(x);
    }
    for (int e = 0; e < ENTRIES; ++e) {
        const uint4 *from = own + x[0] % ENTRIES * (WORDS / 4) * STEP;
#pragma unroll
        for (int q = 0; q < WORDS / 4; ++q) {
            uint4 v = from[q * STEP];
            x[4 * q] ^= v.x, x[4 * q + 1] ^= v.y, x[4 * q + 2] ^= v.z, x[4 * q + 3] ^= v.w;
        }
        mix(x);
    }
    unsigned sum = 0;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) sum ^= x[w];
    out[at] = sum;
}

Study pads("scratchpad_a_candidate_word_by_word", "cryptography", 1 << 16, "65536 candidates of a password function with 128 entries of 64 bytes each",
    "the words of a candidate's scratchpad are written and read one by one, 8 KB from those of the next lane",
    {{"quads", "16 bytes an access", {"narrow_access", "uncoalesced_access"}}, {"woven", "16 bytes an access, those of a warp's candidates side by side", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        unsigned *seeds = b.random<unsigned>(n, 0, 4294967295.0), *pad = b.allocate<unsigned>(n * ENTRIES * WORDS), *out = b.output<unsigned>(n);
        b.tolerance = 1e-12;
        return {{"flawed", launch(memory_hard<OwnPad>, n / 128, 128, 0, seeds, OwnPad{pad}, out, n)}, {"quads", launch(memory_hard_quads<false>, n / 128, 128, 0, seeds, (uint4 *)pad, out, n)},
            {"woven", launch(memory_hard_quads<true>, n / 128, 128, 0, seeds, (uint4 *)pad, out, n)}};
    });

// --- the best exchange of two edges of a tour ---

__device__ __forceinline__ float gap(float2 a, float2 b) { return sqrtf((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)); }
__device__ __forceinline__ float gain(const float2 *tour, int i, int j, int n) {
    float2 a = tour[i], b = tour[i + 1], c = tour[j], d = tour[j + 1 == n ? 0 : j + 1];
    return gap(a, b) + gap(c, d) - gap(a, c) - gap(b, d);
}
__global__ void exchange(const float2 *tour, float *best, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n - 1) return;
    float top = 0.f;
    for (int j = i + 1; j < n; ++j) top = fmaxf(top, gain(tour, i, j, n));
    best[i] = top;
}
// A warp a city, and rows from both ends in turn, so that all warps have as much to do.
__global__ void exchange_warps(const float2 *__restrict__ tour, float *__restrict__ best, int n) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    for (int side = 0; side < 2; ++side) {
        int i = side ? n - 1 - warp : warp;
        if (i >= n - 1) continue;
        float top = 0.f;
        for (int j = i + 1 + lane; j < n; j += 32) top = fmaxf(top, gain(tour, i, j, n));
        top = warp_max(top);
        if (lane == 0) best[i] = top;
    }
}
// A share of the row a block: those behind the diagonal end at once, results meet in an atomic maximum.
__global__ void exchange_pieces(const float2 *__restrict__ tour, float *best, int n, int piece) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, end = min(n, static_cast<int>(blockIdx.y + 1) * piece);
    if (i >= n - 1 || end <= i + 1) return;
    float top = 0.f;
    for (int j = max(i + 1, static_cast<int>(blockIdx.y) * piece); j < end; ++j) top = fmaxf(top, gain(tour, i, j, n));
    atomicMax(reinterpret_cast<int *>(best + i), __float_as_int(top));
}

Study exchanges("tour_exchanges_triangle_by_city", "graphs", 16384, "best exchange of two edges for each city of a tour of 16384",
    "a city a thread against all behind it: 64 blocks, the first with everything to do and the last with nothing",
    {{"warps", "a warp for two cities from both ends of the tour", {"workload_imbalance", "small_grid"}},
        {"pieces", "the row in 32 pieces, joined by an atomic maximum", {"workload_imbalance", "small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        float *tour = b.random<float>(2 * n, 0, 1000), *best = b.output<float>(n - 1, true);
        return {{"flawed", launch(exchange, n / 256, 256, 0, (float2 *)tour, best, n)}, {"warps", launch(exchange_warps, n / 2 / 8, 256, 0, (float2 *)tour, best, n)},
            {"pieces", launch(exchange_pieces, dim3(n / 256, 32), 256, 0, (float2 *)tour, best, n, n / 32)}};
    });

}  // namespace
