// Pieces of graphs, databases, cryptography and compression. Each kernel has one weakness and two or three ways out.
#include <random>

#include "../pairs/pair.cuh"

namespace {

// --- a round of greedy colouring ---

// Rows of neighbours, as a view into the arrays of a graph.
struct Graph {
    const int *starts, *targets;
    int vertices;
};

__global__ void colour(Graph graph, const int *colours, int *next) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= graph.vertices) return;
    int first = graph.starts[v], end = graph.starts[v + 1], chosen = 0;
    for (bool taken = true; taken; chosen += taken) {
        taken = false;
        for (int e = first; e < end; ++e)
            if (colours[graph.targets[e]] == chosen) {
                taken = true;
                break;
            }
    }
    next[v] = chosen;
}
// LANES threads a vertex; at most 64 colours.
template <int LANES>
__global__ void colour_mask(Graph graph, const int *__restrict__ colours, int *__restrict__ next) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, v = thread / LANES, lane = thread % LANES;
    if (v >= graph.vertices) return;
    unsigned long long taken = 0;
    for (int e = graph.starts[v] + lane; e < graph.starts[v + 1]; e += LANES) taken |= 1ull << colours[graph.targets[e]];
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) taken |= __shfl_xor_sync(~0u, taken, step);
    if (lane == 0) next[v] = __ffsll(~taken) - 1;
}

Study colouring("colouring_neighbours_read_for_each_colour", "graphs", 1 << 18, "the lowest colour that no neighbour has, 262144 vertices of 8 to 40 neighbours",
    "for each colour that might be free the neighbours and their colours are looked up again",
    {{"mask", "one pass over the neighbours, the colours as bits of a word", {"redundant_loads"}},
        {"eight_lanes", "the same by eight threads a vertex, which join their bits", {"redundant_loads", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(17);
        std::vector<int> starts(n + 1), targets, colours(n);
        for (long v = 0; v < n; ++v) {
            for (int edges = 8 + random() % 33; edges > 0; --edges) targets.push_back(static_cast<int>(random() % n));
            starts[v + 1] = static_cast<int>(targets.size());
            colours[v] = static_cast<int>(random() % (4 + random() % 16));
        }
        Graph graph{b.copy(starts), b.copy(targets), static_cast<int>(n)};
        int *old = b.copy(colours), *next = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(colour, blocks(n, 256), 256, 0, graph, old, next)}, {"mask", launch(colour_mask<1>, blocks(n, 256), 256, 0, graph, old, next)},
            {"eight_lanes", launch(colour_mask<8>, blocks(8 * n, 256), 256, 0, graph, old, next)}};
    });

// --- numbers of the rows that a filter has selected ---

__global__ void row_ids(const unsigned *selected, const int *places, int *ids, int words) {
    int w = blockIdx.x * blockDim.x + threadIdx.x;
    if (w >= words) return;
    unsigned bits = selected[w];
    int at = places[w];
    while (bits) {
        ids[at++] = 32 * w + __ffs(bits) - 1;
        bits &= bits - 1;
    }
}
// Four threads a word, each with eight of its bits.
__global__ void row_ids_quarters(const unsigned *__restrict__ selected, const int *__restrict__ places, int *__restrict__ ids, int words) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, w = thread / 4, shift = thread % 4 * 8;
    if (w >= words) return;
    unsigned all = selected[w], bits = all >> shift & 255;
    int at = places[w] + __popc(all & ((1u << shift) - 1));
    while (bits) {
        ids[at++] = 32 * w + shift + __ffs(bits) - 1;
        bits &= bits - 1;
    }
}
// A warp takes the words of its lanes one after another, a lane for each bit.
__global__ void row_ids_lanes(const unsigned *__restrict__ selected, const int *__restrict__ places, int *__restrict__ ids, int words) {
    int w = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    unsigned mine = w < words ? selected[w] : 0;
    int place = w < words ? places[w] : 0;
#pragma unroll 8
    for (int k = 0; k < 32; ++k) {
        unsigned bits = __shfl_sync(~0u, mine, k);
        int at = __shfl_sync(~0u, place, k);
        if (bits >> lane & 1) ids[at + __popc(bits & ((1u << lane) - 1))] = 32 * (w - lane + k) + lane;
    }
}
// The ids of 256 words are gathered in shared memory.
__global__ void __launch_bounds__(256) row_ids_staged(const unsigned *__restrict__ selected, const int *__restrict__ places, int *__restrict__ ids, int words) {
    __shared__ int found[256 * 32];
    __shared__ int count;
    int w = blockIdx.x * 256 + threadIdx.x, begin = places[blockIdx.x * 256];
    unsigned bits = w < words ? selected[w] : 0;
    int at = w < words ? places[w] - begin : 0;
    if (threadIdx.x == 255 || w == words - 1) count = at + __popc(bits);
    while (bits) {
        found[at++] = 32 * w + __ffs(bits) - 1;
        bits &= bits - 1;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += 256) ids[begin + i] = found[i];
}

Study selected_rows("row_ids_bitmap_word_per_thread", "databases", 1 << 21, "numbers of the selected rows from a bitmap of 67108864 rows, a quarter of them selected",
    "a thread writes the rows of its word one after another: lanes write at places that lie apart",
    {{"lane_each_bit", "a warp takes a word at a time, a lane for each bit", {"uncoalesced_access"}},
        {"staged", "a block gathers its rows in shared memory and writes them in order", {"uncoalesced_access"}},
        {"quarters", "four threads a word", {"branch_divergence", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(19);
        std::vector<unsigned> words(n);
        std::vector<int> places(n);
        int count = 0;
        for (long w = 0; w < n; ++w) {
            words[w] = random() & random();
            places[w] = count, count += __builtin_popcount(words[w]);
        }
        unsigned *selected = b.copy(words);
        int *from = b.copy(places), *ids = b.output<int>(count);
        b.tolerance = 0.0;
        return {{"flawed", launch(row_ids, blocks(n, 256), 256, 0, selected, from, ids, n)}, {"lane_each_bit", launch(row_ids_lanes, blocks(n, 256), 256, 0, selected, from, ids, n)},
            {"staged", launch(row_ids_staged, blocks(n, 256), 256, 0, selected, from, ids, n)},
            {"quarters", launch(row_ids_quarters, blocks(4 * n, 256), 256, 0, selected, from, ids, n)}};
    });

// --- a universal hash: messages as polynomials modulo 2^61 - 1 ---

using Wide = unsigned long long;
constexpr Wide PRIME = (1ull << 61) - 1;
constexpr int MESSAGE = 32768;  // words
constexpr int POWERS = 513;     // of the key, from 0 on

// h * m + w; arguments and result may exceed the prime by a little.
__device__ __forceinline__ Wide horner(Wide h, Wide m, Wide w) {
    Wide low, high;  // in PTX: the compiler takes minutes to think about chains of these
    asm("mul.lo.u64 %0, %1, %2;" : "=l"(low) : "l"(h), "l"(m));
    asm("mul.hi.u64 %0, %1, %2;" : "=l"(high) : "l"(h), "l"(m));
    Wide sum = (low & PRIME) + (high << 3 | low >> 61) + w;
    return (sum & PRIME) + (sum >> 61);
}
__device__ __forceinline__ Wide lowest_residue(Wide h) {
    h = (h & PRIME) + (h >> 61);
    return h >= PRIME ? h - PRIME : h;
}
// The sum over a block of THREADS, for its first thread.
template <int THREADS>
__device__ __forceinline__ Wide block_sum(Wide h) {
    __shared__ Wide parts[THREADS / 32];
    for (int step = 16; step > 0; step /= 2) h = lowest_residue(h + __shfl_xor_sync(~0u, h, step));
    if constexpr (THREADS > 32) {
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = h;
        __syncthreads();
        if (threadIdx.x == 0)
            for (int k = 1; k < THREADS / 32; ++k) h = lowest_residue(h + parts[k]);
    }
    return h;
}
template <int THREADS>
__global__ void __launch_bounds__(THREADS) polynomial(const uint4 *messages, const Wide *powers, Wide *out) {
    const uint4 *message = messages + static_cast<size_t>(blockIdx.x) * (MESSAGE / 4) + threadIdx.x;
    Wide key = powers[1], jump = powers[4 * THREADS - 3], h = 0;
#pragma unroll 8
    for (int i = 0; i < MESSAGE / 4; i += THREADS) {
        uint4 words = message[i];
        h = horner(h, jump, words.x), h = horner(h, key, words.y), h = horner(h, key, words.z), h = horner(h, key, words.w);
    }
    h = block_sum<THREADS>(horner(h, powers[4 * THREADS - 4 - 4 * threadIdx.x], 0));
    if (threadIdx.x == 0) out[blockIdx.x] = h;
}
// Every word of a vector is a polynomial of its own.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) polynomial_four(const uint4 *__restrict__ messages, const Wide *__restrict__ powers, Wide *__restrict__ out) {
    const uint4 *message = messages + static_cast<size_t>(blockIdx.x) * (MESSAGE / 4) + threadIdx.x;
    Wide key = powers[1], jump = powers[4 * THREADS], a = 0, b = 0, c = 0, d = 0;
#pragma unroll 8
    for (int i = 0; i < MESSAGE / 4; i += THREADS) {
        uint4 words = message[i];
        a = horner(a, jump, words.x), b = horner(b, jump, words.y), c = horner(c, jump, words.z), d = horner(d, jump, words.w);
    }
    Wide h = horner(horner(horner(a, key, b), key, c), key, d);
    h = block_sum<THREADS>(horner(h, powers[4 * THREADS - 4 - 4 * threadIdx.x], 0));
    if (threadIdx.x == 0) out[blockIdx.x] = h;
}

Study message_hashes("polynomial_hash_one_chain_a_lane", "cryptography", 512, "512 messages of 131072 bytes as polynomials of their words modulo 2^61 - 1",
    "one warp a message, and each of its lanes multiplies in one chain, word after word",
    {{"four_chains", "a chain for each word of a vector, joined at the end", {"instruction_latency"}},
        {"four_warps", "four warps a message, one chain a lane as before", {"instruction_latency", "memory_latency"}},
        {"both", "four warps and four chains", {"instruction_latency", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Wide> powers(POWERS, 1);
        for (int k = 1; k < POWERS; ++k) powers[k] = static_cast<Wide>(static_cast<unsigned __int128>(powers[k - 1]) * 0x1234567890abcdeull % PRIME);
        Wide *keys = b.copy(powers), *out = b.output<Wide>(n);
        auto *messages = (uint4 *)b.random<unsigned>(n * MESSAGE, 0, 4294967295.0);
        b.tolerance = 0.0;
        return {{"flawed", launch(polynomial<32>, n, 32, 0, messages, keys, out)}, {"four_chains", launch(polynomial_four<32>, n, 32, 0, messages, keys, out)},
            {"four_warps", launch(polynomial<128>, n, 128, 0, messages, keys, out)}, {"both", launch(polynomial_four<128>, n, 128, 0, messages, keys, out)}};
    });

// --- the coefficients of a picture's transform in steps of a table ---

// A plane of blocks of 64 coefficients; luma has a table of its own.
__global__ void quantise(const short *coefficients, const unsigned short *tables, short *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, plane = blockIdx.y;
    if (i >= n) return;
    size_t at = static_cast<size_t>(plane) * n + i;
    int step = tables[(plane > 0) * 64 + i % 64], value = coefficients[at];
    out[at] = value < 0 ? -((-value + step / 2) / step) : (value + step / 2) / step;
}
// Ready-made for each place: half a step, and 2^32 by the step, rounded up.
__device__ __forceinline__ int in_steps(int value, uint2 step) {
    int amount = __umulhi(abs(value) + step.x, step.y);
    return value < 0 ? -amount : amount;
}
__global__ void quantise_reciprocals(const short *__restrict__ coefficients, const uint2 *__restrict__ tables, short *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, plane = blockIdx.y;
    if (i >= n) return;
    size_t at = static_cast<size_t>(plane) * n + i;
    out[at] = in_steps(coefficients[at], tables[(plane > 0) * 64 + i % 64]);
}
__global__ void quantise_floats(const short *__restrict__ coefficients, const unsigned short *__restrict__ tables, short *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, plane = blockIdx.y;
    if (i >= n) return;
    size_t at = static_cast<size_t>(plane) * n + i;
    int step = tables[(plane > 0) * 64 + i % 64], value = coefficients[at];
    int amount = static_cast<int>(__fdividef(abs(value) + step / 2 + 0.5f, step));
    out[at] = value < 0 ? -amount : amount;
}
// A row of eight coefficients a thread and turn, four turns with the same steps.
__global__ void __launch_bounds__(256) quantise_rows(const uint4 *__restrict__ coefficients, const uint2 *__restrict__ tables, uint4 *__restrict__ out, int rows) {
    uint2 steps[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) steps[k] = tables[(blockIdx.y > 0) * 64 + threadIdx.x % 8 * 8 + k];
    size_t plane = static_cast<size_t>(blockIdx.y) * rows;
#pragma unroll
    for (int turn = 0; turn < 4; ++turn) {
        int row = blockIdx.x * 1024 + turn * 256 + threadIdx.x;
        if (row >= rows) return;
        uint4 values = coefficients[plane + row];
        auto *words = reinterpret_cast<unsigned *>(&values);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            int low = in_steps(static_cast<short>(words[k]), steps[2 * k]), high = in_steps(static_cast<int>(words[k]) >> 16, steps[2 * k + 1]);
            words[k] = __byte_perm(low, high, 0x5410);
        }
        out[plane + row] = values;
    }
}

Study quantised_blocks("coefficients_divided_by_their_steps", "compression", 1 << 23, "the coefficients of three planes of 131072 blocks of 8 x 8 in steps of a table for each place",
    "a division of integers by the step, whose value is only known at run time",
    {{"reciprocals", "a table of reciprocals, the upper half of a product", {"integer_arithmetic"}}, {"floats", "a fast division of floats", {"integer_arithmetic"}},
        {"rows", "reciprocals in registers, eight coefficients a load and four loads a thread", {"integer_arithmetic", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(23);
        std::vector<unsigned> packed(64), pairs;
        for (int k = 0; k < 128; ++k) {
            unsigned step = 3 + k % 64 + random() % 40;
            packed[k / 2] |= step << (k % 2 * 16);
            pairs.push_back(step / 2), pairs.push_back(static_cast<unsigned>(((1ull << 32) + step - 1) / step));
        }
        auto *tables = (unsigned short *)b.copy(packed);
        auto *reciprocals = (uint2 *)b.copy(pairs);
        unsigned *words = b.random<unsigned>(3 * n / 2, 0, 4294967295.0), *out = b.output<unsigned>(3 * n / 2);
        auto grid = [](long count) { return dim3(static_cast<unsigned>(count), 3); };
        b.tolerance = 0.0;
        return {{"flawed", launch(quantise, grid(n / 256), 256, 0, (short *)words, tables, (short *)out, n)},
            {"reciprocals", launch(quantise_reciprocals, grid(n / 256), 256, 0, (short *)words, reciprocals, (short *)out, n)},
            {"floats", launch(quantise_floats, grid(n / 256), 256, 0, (short *)words, tables, (short *)out, n)},
            {"rows", launch(quantise_rows, grid(n / 8192), 256, 0, (uint4 *)words, reciprocals, (uint4 *)out, n / 8)}};
    });

}  // namespace
