// Databases, search and graphs: a search tree, gaps of a column, amounts as text, reach of nodes, candidates ranked again.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- a search tree whose nodes have the least keys of 16 children; the lowest level has the keys themselves ---

constexpr int FANOUT = 16, LEVELS_AT_MOST = 8;

struct Index {
    const unsigned *levels[LEVELS_AT_MOST];  // from the root's down
    int depth;
    const int *rows;
};

__global__ void __launch_bounds__(256) look_up(const __grid_constant__ Index index, const unsigned *__restrict__ wanted, int *__restrict__ found, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const unsigned key = wanted[i];
    unsigned at = 0;
    for (int level = 0; level < index.depth; level++) {
        const unsigned *node = index.levels[level] + static_cast<size_t>(at) * FANOUT;
        int child = 0;
        while (child + 1 < FANOUT && node[child + 1] <= key) child++;
        at = at * FANOUT + child;
    }
    found[i] = index.levels[index.depth - 1][at] == key ? index.rows[at] : -1;
}
// A node in four loads, its keys counted that are not above the one wanted.
__global__ void __launch_bounds__(256) look_up_counted(const __grid_constant__ Index index, const unsigned *__restrict__ wanted, int *__restrict__ found, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const unsigned key = wanted[i];
    unsigned at = 0;
    for (int level = 0; level < index.depth; level++) {
        const uint4 *node = reinterpret_cast<const uint4 *>(index.levels[level] + static_cast<size_t>(at) * FANOUT);
        int child = -1;
#pragma unroll
        for (int k = 0; k < FANOUT / 4; k++) {
            const uint4 four = node[k];
            child += (four.x <= key) + (four.y <= key) + (four.z <= key) + (four.w <= key);
        }
        at = at * FANOUT + child;
    }
    found[i] = index.levels[index.depth - 1][at] == key ? index.rows[at] : -1;
}
// Sixteen lanes look at a node's keys at once.
__global__ void __launch_bounds__(256) look_up_together(const __grid_constant__ Index index, const unsigned *__restrict__ wanted, int *__restrict__ found, int count) {
    const int i = (blockIdx.x * 256 + threadIdx.x) / FANOUT, lane = threadIdx.x % FANOUT, shift = threadIdx.x % 32 / FANOUT * FANOUT;
    if (i >= count) return;
    const unsigned key = wanted[i];
    unsigned at = 0;
    bool same = false;
    for (int level = 0; level < index.depth; level++) {
        const unsigned own = index.levels[level][static_cast<size_t>(at) * FANOUT + lane];
        const unsigned below = __ballot_sync(~0u, own <= key) >> shift & 0xffff, equal = __ballot_sync(~0u, own == key) >> shift & 0xffff;
        at = at * FANOUT + __popc(below) - 1, same = equal != 0;
    }
    if (lane == 0) found[i] = same ? index.rows[at] : -1;
}

Study tree_index("tree_index_keys_of_a_node_one_by_one", "databases", 1 << 24, "rows of 2097152 keys, found in a search tree over 16777216 keys with 16 children a node",
    "a thread walks a node's keys one by one until one is too large, node after node",
    {{"counted", "the 16 keys in four loads, counted without a branch", {"memory_latency", "branch_divergence"}}, {"together", "sixteen lanes look at a node's keys at once", {"uncoalesced_access", "branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> keys(n);
        for (long i = 0, key = 0; i < n; i++, key += 1 + hash(static_cast<unsigned>(i)) % 400) keys[i] = static_cast<unsigned>(key);
        std::vector<std::vector<unsigned>> levels{keys};
        while (levels.back().size() > FANOUT) {
            std::vector<unsigned> above(levels.back().size() / FANOUT);
            for (size_t i = 0; i < above.size(); i++) above[i] = levels.back()[i * FANOUT];
            levels.push_back(above);
        }
        Index index{};
        index.depth = static_cast<int>(levels.size());
        for (int l = 0; l < index.depth; l++) index.levels[l] = b.copy(levels[index.depth - 1 - l]);
        index.rows = b.random<int>(n, 0, 1e9);
        const long count = n / 8;
        std::vector<unsigned> wanted(count);
        for (long i = 0; i < count; i++) wanted[i] = keys[hash(static_cast<unsigned>(i) + 21) % n] + (i % 4 == 0);
        const unsigned *of = b.copy(wanted);
        int *found = b.output<int>(count);
        b.tolerance = 0.0;
        return {{"flawed", launch(look_up, blocks(count, 256), 256, 0, index, of, found, count)}, {"counted", launch(look_up_counted, blocks(count, 256), 256, 0, index, of, found, count)},
            {"together", launch(look_up_together, blocks(count * FANOUT, 256), 256, 0, index, of, found, count)}};
    });

// --- a column whose gaps are filled by the last value before them; a bit a row says whether there is one ---

constexpr int FILL_ROWS = 8;  // of a thread, where a block looks at its rows together

__global__ void __launch_bounds__(256) fill_gaps(const float *__restrict__ values, const unsigned *__restrict__ there, float *__restrict__ out, int count) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row >= count) return;
    int from = row;
    while (from >= 0 && !(there[from / 32] >> from % 32 & 1)) from--;
    out[row] = from < 0 ? 0.0f : values[from];
}
// 32 rows at a time, by the highest bit that is set.
__device__ __forceinline__ int last_before(const unsigned *there, int row) {
    int word = row / 32;
    unsigned bits = there[word] & 0xffffffffu >> (31 - row % 32);
    while (!bits && word > 0) bits = there[--word];
    return bits ? word * 32 + 31 - __clz(bits) : -1;
}
__global__ void __launch_bounds__(256) fill_gaps_words(const float *__restrict__ values, const unsigned *__restrict__ there, float *__restrict__ out, int count) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row >= count) return;
    const int from = last_before(there, row);
    out[row] = from < 0 ? 0.0f : values[from];
}
// A block's last rows by a scan of the places of values; what is before the block is looked for once.
__global__ void __launch_bounds__(256) fill_gaps_scan(const float *__restrict__ values, const unsigned *__restrict__ there, float *__restrict__ out, int count) {
    __shared__ int of_warp[8], before_block;
    const int first = blockIdx.x * 256 * FILL_ROWS, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) before_block = first ? last_before(there, first - 1) : -1;
    // A warp has 256 rows in turn: the words of its rows, of which lane k takes the k-th where it needs it.
    const int own = first + warp * 32 * FILL_ROWS;
    const unsigned word = lane < FILL_ROWS && own + lane * 32 < count ? there[own / 32 + lane] : 0;
    int last = word ? own + lane * 32 + 31 - __clz(word) : -1;
#pragma unroll
    for (int d = 1; d < FILL_ROWS; d *= 2) {
        const int other = __shfl_up_sync(~0u, last, d);
        if (lane >= d) last = max(last, other);
    }
    if (lane == FILL_ROWS - 1) of_warp[warp] = last;
    __syncthreads();
    int before = before_block;
    for (int w = 0; w < warp; w++) before = max(before, of_warp[w]);
#pragma unroll
    for (int k = 0; k < FILL_ROWS; k++) {
        const int row = own + k * 32 + lane, ended = __shfl_sync(~0u, last, max(k - 1, 0));
        const unsigned bits = __shfl_sync(~0u, word, k) & 0xffffffffu >> (31 - lane);
        const int from = bits ? own + k * 32 + 31 - __clz(bits) : max(before, k ? ended : -1);
        if (row < count) out[row] = from < 0 ? 0.0f : values[from];
    }
}

Study gap_filling("gaps_filled_by_walking_back_bit_by_bit", "databases", 1 << 25, "33554432 readings of a column with gaps of 1 to 600 rows, each filled by the last reading before it",
    "a thread of a gap walks back row by row until a bit is set, while its warp waits",
    {{"words", "32 rows at a time by the highest bit of a word", {"branch_divergence", "memory_latency"}}, {"scan", "a block scans the places of its 2048 rows' readings", {"branch_divergence", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> there(n / 32);
        for (long i = 20; i < n;) {
            const unsigned drawn = hash(static_cast<unsigned>(i));
            const long run = 1 + drawn % 90, gap = (drawn >> 8) % 40 ? 1 + (drawn >> 16) % 20 : 100 + (drawn >> 16) % 500;
            for (long k = i; k < std::min(n, i + run); k++) there[k / 32] |= 1u << k % 32;
            i += run + gap;
        }
        const float *values = b.random<float>(n);
        const unsigned *bits = b.copy(there);
        float *out = b.output<float>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(fill_gaps, blocks(n, 256), 256, 0, values, bits, out, n)}, {"words", launch(fill_gaps_words, blocks(n, 256), 256, 0, values, bits, out, n)},
            {"scan", launch(fill_gaps_scan, blocks(n, 256 * FILL_ROWS), 256, 0, values, bits, out, n)}};
    });

// --- amounts of money as text: twenty letters, aligned at the right ---

constexpr int LETTERS = 20;

__global__ void __launch_bounds__(256) print_amounts(const long long *__restrict__ amounts, char *__restrict__ text, int count) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row >= count) return;
    const long long amount = amounts[row];
    unsigned long long left = amount < 0 ? -amount : amount;
    char *own = text + static_cast<size_t>(row) * LETTERS;
    int at = LETTERS - 1;
    for (int digits = 0; left || digits < 3; digits++) {
        if (digits == 2) own[at--] = '.';
        own[at--] = static_cast<char>('0' + left % 10);
        left /= 10;
    }
    if (amount < 0) own[at--] = '-';
    while (at >= 0) own[at--] = ' ';
}
// Parts of nine digits, which are divided in 32 bits; the letters in five words.
__global__ void __launch_bounds__(256) print_amounts_parts(const long long *__restrict__ amounts, unsigned *__restrict__ text, int count) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row >= count) return;
    const long long amount = amounts[row];
    const unsigned long long size = amount < 0 ? -amount : amount;
    const unsigned low = static_cast<unsigned>(size % 1000000000u), high = static_cast<unsigned>(size / 1000000000u);  // below 10^18
    unsigned words[LETTERS / 4] = {};
    unsigned left = low;
    int used = 0;
#pragma unroll
    for (int at = LETTERS - 1, digit = 0; at >= 0; at--) {
        unsigned letter;
        if (at == LETTERS - 3) letter = '.';
        else {
            if (digit == 9) left = high;
            const bool shown = digit < 3 || left || (digit < 9 && high);
            letter = shown ? '0' + left % 10 : used == 0 && amount < 0 ? '-' : ' ';
            if (!shown) used = 1;
            left /= 10, digit++;
        }
        words[at / 4] |= letter << at % 4 * 8;
    }
#pragma unroll
    for (int k = 0; k < LETTERS / 4; k++) text[static_cast<size_t>(row) * (LETTERS / 4) + k] = words[k];
}
// A block's letters wait in shared memory, from where they go out sixteen bytes at a time.
__global__ void __launch_bounds__(256) print_amounts_staged(const long long *__restrict__ amounts, uint4 *__restrict__ text, int count) {
    __shared__ __align__(16) char letters[256 * LETTERS];
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row < count) {
        const long long amount = amounts[row];
        unsigned long long left = amount < 0 ? -amount : amount;
        char *own = letters + threadIdx.x * LETTERS;
        int at = LETTERS - 1;
        for (int digits = 0; left || digits < 3; digits++) {
            if (digits == 2) own[at--] = '.';
            own[at--] = static_cast<char>('0' + left % 10);
            left /= 10;
        }
        if (amount < 0) own[at--] = '-';
        while (at >= 0) own[at--] = ' ';
    }
    __syncthreads();
    const int rows = min(256, count - static_cast<int>(blockIdx.x) * 256);
    for (int i = threadIdx.x; i < rows * LETTERS / 16; i += 256) text[static_cast<size_t>(blockIdx.x) * (256 * LETTERS / 16) + i] = reinterpret_cast<const uint4 *>(letters)[i];
}

Study amount_printing("amounts_printed_by_divisions_of_64_bits", "databases", 1 << 22, "4194304 amounts of money of three to fifteen digits as text of twenty letters",
    "each digit is a remainder and a quotient of 64 bits, stored as a byte of its own",
    {{"parts", "parts of nine digits divided in 32 bits, letters stored as words", {"integer_arithmetic", "narrow_access"}}, {"staged", "letters wait in shared memory and go out sixteen bytes at a time", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<long long> amounts(n);
        for (long i = 0; i < n; i++) {
            const double size = std::exp(hash(static_cast<unsigned>(i)) / 4294967296.0 * 34.0);
            amounts[i] = static_cast<long long>(size) * (i % 3 ? 1 : -1) + (i % 7 == 0);
        }
        const long long *in = b.copy(amounts);
        char *text = reinterpret_cast<char *>(b.output<unsigned char>(n * LETTERS));
        b.tolerance = 0.0;
        return {{"flawed", launch(print_amounts, blocks(n, 256), 256, 0, in, text, n)}, {"parts", launch(print_amounts_parts, blocks(n, 256), 256, 0, in, reinterpret_cast<unsigned *>(text), n)},
            {"staged", launch(print_amounts_staged, blocks(n, 256), 256, 0, in, reinterpret_cast<uint4 *>(text), n)}};
    });

// --- how many nodes are within reach: sketches of 64 registers, each the largest among a node and its neighbours ---

constexpr int REGISTERS = 64;

struct Graph {
    const int *starts, *neighbours;
    int nodes;
};

__global__ void __launch_bounds__(256) reach(Graph g, const unsigned char *__restrict__ sketches, unsigned char *__restrict__ out) {
    const int node = blockIdx.x * 4 + threadIdx.x / REGISTERS, k = threadIdx.x % REGISTERS;
    if (node >= g.nodes) return;
    unsigned most = sketches[static_cast<size_t>(node) * REGISTERS + k];
    for (int e = g.starts[node]; e < g.starts[node + 1]; e++) most = max(most, static_cast<unsigned>(sketches[static_cast<size_t>(g.neighbours[e]) * REGISTERS + k]));
    out[static_cast<size_t>(node) * REGISTERS + k] = static_cast<unsigned char>(most);
}
// Four registers in a word: sixteen lanes a node.
__global__ void __launch_bounds__(256) reach_words(Graph g, const unsigned *__restrict__ sketches, unsigned *__restrict__ out) {
    const int node = blockIdx.x * 16 + threadIdx.x / 16, k = threadIdx.x % 16;
    if (node >= g.nodes) return;
    unsigned most = sketches[static_cast<size_t>(node) * 16 + k];
    for (int e = g.starts[node]; e < g.starts[node + 1]; e++) most = __vmaxu4(most, sketches[static_cast<size_t>(g.neighbours[e]) * 16 + k]);
    out[static_cast<size_t>(node) * 16 + k] = most;
}
// Sixteen registers a lane: four lanes a sketch, four neighbours of a node at a time.
__global__ void __launch_bounds__(256) reach_wide(Graph g, const uint4 *__restrict__ sketches, uint4 *__restrict__ out) {
    const int node = blockIdx.x * 16 + threadIdx.x / 16, k = threadIdx.x % 4, turn = threadIdx.x / 4 % 4;
    if (node >= g.nodes) return;
    uint4 most = sketches[static_cast<size_t>(node) * 4 + k];
    for (int e = g.starts[node] + turn; e < g.starts[node + 1]; e += 4) {
        const uint4 other = sketches[static_cast<size_t>(g.neighbours[e]) * 4 + k];
        most = {__vmaxu4(most.x, other.x), __vmaxu4(most.y, other.y), __vmaxu4(most.z, other.z), __vmaxu4(most.w, other.w)};
    }
#pragma unroll
    for (int d = 4; d < 16; d *= 2) {
        const unsigned x = __shfl_xor_sync(~0u, most.x, d), y = __shfl_xor_sync(~0u, most.y, d), z = __shfl_xor_sync(~0u, most.z, d), w = __shfl_xor_sync(~0u, most.w, d);
        most = {__vmaxu4(most.x, x), __vmaxu4(most.y, y), __vmaxu4(most.z, z), __vmaxu4(most.w, w)};
    }
    if (turn == 0) out[static_cast<size_t>(node) * 4 + k] = most;
}

Study reach_sketches("reach_registers_a_byte_a_lane", "graphs", 1 << 18, "sketches of 64 registers of 262144 nodes joined with those of 4 to 43 neighbours",
    "a lane has one register of a byte: a request brings 32 bytes",
    {{"words", "four registers a lane, compared in one word", {"narrow_access"}}, {"wide", "sixteen registers a lane, four neighbours side by side", {"narrow_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(n + 1), neighbours;
        for (long i = 0; i < n; i++) {
            const int degree = 4 + hash(static_cast<unsigned>(i) + 4) % 40;
            for (int k = 0; k < degree; k++) {
                const unsigned drawn = hash(static_cast<unsigned>(neighbours.size()) + 1000);
                neighbours.push_back(static_cast<int>((drawn % 3 ? i + drawn / 3 % 2000 : drawn / 3) % n));
            }
            starts[i + 1] = static_cast<int>(neighbours.size());
        }
        std::vector<unsigned char> sketches(n * REGISTERS);
        for (size_t i = 0; i < sketches.size(); i++) sketches[i] = static_cast<unsigned char>(std::min(60, __builtin_clz(hash(static_cast<unsigned>(i)) | 1) + 1));
        const Graph g{b.copy(starts), b.copy(neighbours), static_cast<int>(n)};
        const unsigned char *in = b.copy(sketches);
        unsigned char *out = b.output<unsigned char>(n * REGISTERS);
        b.tolerance = 0.0;
        return {{"flawed", launch(reach, blocks(n, 4), 256, 0, g, in, out)}, {"words", launch(reach_words, blocks(n, 16), 256, 0, g, reinterpret_cast<const unsigned *>(in), reinterpret_cast<unsigned *>(out))},
            {"wide", launch(reach_wide, blocks(n, 16), 256, 0, g, reinterpret_cast<const uint4 *>(in), reinterpret_cast<uint4 *>(out))}};
    });

// --- candidates of a search ranked again by their true distance ---

constexpr int VECTOR = 128;  // half values: four a lane

struct Candidates {
    const uint2 *queries, *vectors;
    const int *ids;
    int of_query;
};

__device__ __forceinline__ float distance(uint2 a, uint2 b) {
    const float2 a0 = __half22float2(*reinterpret_cast<const __half2 *>(&a.x)), a1 = __half22float2(*reinterpret_cast<const __half2 *>(&a.y)), b0 = __half22float2(*reinterpret_cast<const __half2 *>(&b.x)),
                 b1 = __half22float2(*reinterpret_cast<const __half2 *>(&b.y));
    const float x = a0.x - b0.x, y = a0.y - b0.y, z = a1.x - b1.x, w = a1.y - b1.y;
    return x * x + y * y + z * z + w * w;
}
template <int WARPS>
__global__ void __launch_bounds__(WARPS * 32) rank_again(Candidates c, float *__restrict__ out) {
    const int pair = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    const float sum = warp_sum(distance(c.queries[pair / c.of_query * 32 + lane], c.vectors[static_cast<size_t>(c.ids[pair]) * 32 + lane]));
    if (lane == 0) out[pair] = sum;
}
// A warp ranks 16 candidates of a query, which it keeps in registers; four are on their way at a time.
__global__ void __launch_bounds__(256) rank_again_sixteen(Candidates c, float *__restrict__ out) {
    constexpr int EACH = 16, AHEAD = 4;
    const int first = (blockIdx.x * 8 + threadIdx.x / 32) * EACH, lane = threadIdx.x % 32;
    const uint2 query = c.queries[first / c.of_query * 32 + lane];
    const int own = c.ids[first + lane % EACH];
    float result = 0.0f;
    for (int i = 0; i < EACH; i += AHEAD) {
        uint2 vectors[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) vectors[k] = c.vectors[static_cast<size_t>(__shfl_sync(~0u, own, i + k)) * 32 + lane];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            const float sum = warp_sum(distance(query, vectors[k]));
            if (lane == i + k) result = sum;
        }
    }
    if (lane < EACH) out[first + lane] = result;
}

Study candidate_ranking("candidates_ranked_again_by_blocks_of_32", "search", 1 << 19, "distances of 4096 queries from 128 candidates each, vectors of 128 half values out of 524288",
    "a block of one warp for each pair: a multiprocessor has room for 32 blocks, half of its warps, and starts half a million",
    {{"eight_warps", "eight pairs a block", {"low_occupancy"}}, {"sixteen_each", "a warp has 16 candidates, four on their way at a time", {"low_occupancy", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const Candidates c{reinterpret_cast<const uint2 *>(b.random<__half>(n / 128 * VECTOR)), reinterpret_cast<const uint2 *>(b.random<__half>(n * VECTOR)), b.random<int>(n, 0, static_cast<double>(n)), 128};
        float *out = b.output<float>(n);
        return {{"flawed", launch(rank_again<1>, n, 32, 0, c, out)}, {"eight_warps", launch(rank_again<8>, n / 8, 256, 0, c, out)}, {"sixteen_each", launch(rank_again_sixteen, n / 128, 256, 0, c, out)}};
    });

}  // namespace
