// Pieces of graphs, databases, text and compression. Each kernel has one weakness and two ways out.
#include <algorithm>
#include <random>

#include "../pairs/pair.cuh"

namespace {

using Wide = unsigned long long;

// --- random walks along weighted edges ---

constexpr int STEPS = 12;

struct WeightedGraph {
    const int *starts, *targets;
    const unsigned *reached;  // sum of the weights of a vertex's edges up to and with this one
};

// A number below `total`.
__device__ __forceinline__ unsigned draw(int walk, int step, unsigned total) { return __umulhi(hash(walk * STEPS + step), total); }

struct FromTheStart {
    static constexpr int LANES = 1;
    static __device__ int edge(const unsigned *reached, int begin, int end, unsigned wanted) {
        int e = begin;
        while (reached[e] <= wanted) ++e;
        return e;
    }
};
struct Halving {
    static constexpr int LANES = 1;
    static __device__ int edge(const unsigned *reached, int begin, int end, unsigned wanted) {
        int low = begin, high = end - 1;
        while (low < high) {
            int middle = (low + high) / 2;
            if (reached[middle] <= wanted) low = middle + 1;
            else high = middle;
        }
        return low;
    }
};
// Eight lanes look at eight edges at once.
struct EightLanes {
    static constexpr int LANES = 8;
    static __device__ int edge(const unsigned *reached, int begin, int end, unsigned wanted) {
        int lane = threadIdx.x % 32, first = lane & 24;
        unsigned group = 0xffu << first, found;
        for (int e = begin + lane % 8;; e += 8) {
            found = __ballot_sync(group, e < end && reached[e] > wanted) >> first & 255;
            if (found) return e - lane % 8 + __ffs(found) - 1;
        }
    }
};
template <typename Search>
__global__ void walks(WeightedGraph graph, int *visited, int count) {
    int walk = (blockIdx.x * blockDim.x + threadIdx.x) / Search::LANES;
    if (walk >= count) return;
    int vertex = walk;
    for (int step = 0; step < STEPS; ++step) {
        int begin = graph.starts[vertex], end = graph.starts[vertex + 1];
        vertex = graph.targets[Search::edge(graph.reached, begin, end, draw(walk, step, graph.reached[end - 1]))];
        if (threadIdx.x % Search::LANES == 0) visited[step * count + walk] = vertex;
    }
}

Study random_walks("weighted_walks_sums_looked_through", "graphs", 1 << 17, "random walks of twelve steps from each of 131072 vertices along weighted edges, 4 to 31 of them or 256 to 511",
    "the running sums of weights are looked through from the first edge on: a warp waits for its vertex of most edges",
    {{"halving", "a search by halving", {"branch_divergence", "uncoalesced_access"}}, {"eight_lanes", "eight lanes a walk look at eight sums at once", {"uncoalesced_access", "branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(29);
        std::vector<int> starts(n + 1), targets;
        std::vector<unsigned> reached;
        for (long v = 0; v < n; ++v) {
            unsigned sum = 0;
            for (int edges = random() % 64 ? 4 + random() % 28 : 256 + random() % 256; edges > 0; --edges) {
                targets.push_back(static_cast<int>(random() % n));
                reached.push_back(sum += 1 + random() % 1000);
            }
            starts[v + 1] = static_cast<int>(targets.size());
        }
        WeightedGraph graph{b.copy(starts), b.copy(targets), b.copy(reached)};
        int *visited = b.output<int>(n * STEPS);
        b.tolerance = 0.0;
        return {{"flawed", launch(walks<FromTheStart>, blocks(n, 128), 128, 0, graph, visited, n)}, {"halving", launch(walks<Halving>, blocks(n, 128), 128, 0, graph, visited, n)},
            {"eight_lanes", launch(walks<EightLanes>, blocks(8 * n, 128), 128, 0, graph, visited, n)}};
    });

// --- revenue of some customers, suppliers and parts, by year and nation ---

constexpr int CUSTOMERS = 1 << 18, SUPPLIERS = 1 << 16, PARTS = 1 << 19, DAYS = 2557, YEARS = 7, NATIONS = 25;

struct Orders {
    const int *customer, *supplier, *part, *day;
    const unsigned *revenue;
    int rows;
};
struct Dimensions {
    const unsigned char *customer_nation, *supplier_nation, *part_maker, *day_year;
};

__device__ __forceinline__ void add_row(const Orders &orders, int row, Wide *groups, Dimensions found) {
    int nation = found.customer_nation[orders.customer[row]], supplier = found.supplier_nation[orders.supplier[row]];
    int maker = found.part_maker[orders.part[row]], year = found.day_year[orders.day[row]];
    unsigned revenue = orders.revenue[row];
    bool wanted = (nation / 5 == 1) & (supplier / 5 == 1) & (maker < 2) & (year > 0);
    if (wanted) atomicAdd(groups + year * NATIONS + nation, static_cast<Wide>(revenue));
}
struct InTurn {
    Dimensions tables;
};
__device__ __forceinline__ void add_row(const Orders &orders, int row, Wide *groups, InTurn found) {
    int nation = found.tables.customer_nation[orders.customer[row]];
    if (nation / 5 != 1) return;
    if (found.tables.supplier_nation[orders.supplier[row]] / 5 != 1) return;
    if (found.tables.part_maker[orders.part[row]] >= 2) return;
    int year = found.tables.day_year[orders.day[row]];
    if (year > 0) atomicAdd(groups + year * NATIONS + nation, static_cast<Wide>(orders.revenue[row]));
}
// A bit for each customer, supplier and part says whether it is wanted.
struct Bitmaps {
    const unsigned *customers, *suppliers, *parts;
};
__device__ __forceinline__ bool marked(const unsigned *bits, int i) { return bits[i / 32] >> (i % 32) & 1; }
__device__ __forceinline__ void add_row(const Orders &orders, int row, Wide *groups, Dimensions tables, Bitmaps bits) {
    int customer = orders.customer[row], supplier = orders.supplier[row];
    if (!marked(bits.suppliers, supplier) || !marked(bits.customers, customer)) return;
    if (!marked(bits.parts, orders.part[row])) return;
    int year = tables.day_year[orders.day[row]];
    if (year > 0) atomicAdd(groups + year * NATIONS + tables.customer_nation[customer], static_cast<Wide>(orders.revenue[row]));
}
template <typename... Found>
__global__ void __launch_bounds__(256) star_join(Orders orders, Wide *sums, Found... found) {
    __shared__ Wide groups[YEARS * NATIONS];
    for (int g = threadIdx.x; g < YEARS * NATIONS; g += blockDim.x) groups[g] = 0;
    __syncthreads();
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < orders.rows; row += gridDim.x * blockDim.x) add_row(orders, row, groups, found...);
    __syncthreads();
    for (int g = threadIdx.x; g < YEARS * NATIONS; g += blockDim.x)
        if (groups[g]) atomicAdd(sums + g, groups[g]);
}

Study revenue_by_nation("star_join_all_tables_before_the_test", "databases", 1 << 24, "revenue by year and nation of 16777216 orders joined with customers, suppliers, parts and days",
    "all four tables are looked up for each order before it is known whether the first excludes it",
    {{"in_turn", "an order is left when a table excludes it", {"redundant_loads", "uncoalesced_access"}},
        {"bitmaps", "the same with bits of the wanted customers, suppliers and parts, which fit into L1", {"redundant_loads", "cache_locality"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(31);
        auto table = [&](int size, int kinds) {
            std::vector<unsigned char> found(size);
            for (auto &kind : found) kind = static_cast<unsigned char>(random() % kinds);
            return found;
        };
        auto bits = [&](const std::vector<unsigned char> &kinds, int low, int high) {
            std::vector<unsigned> words(kinds.size() / 32);
            for (size_t i = 0; i < kinds.size(); ++i) words[i / 32] |= static_cast<unsigned>(kinds[i] >= low && kinds[i] < high) << (i % 32);
            return b.copy(words);
        };
        auto customers = table(CUSTOMERS, NATIONS), suppliers = table(SUPPLIERS, NATIONS), parts = table(PARTS, 5);
        std::vector<unsigned char> years(DAYS);
        for (int d = 0; d < DAYS; ++d) years[d] = static_cast<unsigned char>(std::min(d / 365, YEARS - 1));
        Orders orders{b.random<int>(n, 0, CUSTOMERS), b.random<int>(n, 0, SUPPLIERS), b.random<int>(n, 0, PARTS), b.random<int>(n, 0, DAYS), b.random<unsigned>(n, 100, 1000000), static_cast<int>(n)};
        Dimensions tables{b.copy(customers), b.copy(suppliers), b.copy(parts), b.copy(years)};
        Bitmaps marks{bits(customers, 5, 10), bits(suppliers, 5, 10), bits(parts, 0, 2)};
        Wide *sums = b.output<Wide>(YEARS * NATIONS, true);
        b.tolerance = 0.0;
        unsigned grid = std::min(blocks(n, 256), 8u * multiprocessors());
        return {{"flawed", launch(star_join<Dimensions>, grid, 256, 0, orders, sums, tables)}, {"in_turn", launch(star_join<InTurn>, grid, 256, 0, orders, sums, InTurn{tables})},
            {"bitmaps", launch(star_join<Dimensions, Bitmaps>, grid, 256, 0, orders, sums, tables, marks)}};
    });

// --- is a text valid UTF-8? ---

constexpr int TEXT_PAGE = 4096;  // bytes, for each of which errors are counted

// Whether `now` may not follow the three bytes before it.
__device__ __forceinline__ bool wrong(unsigned before3, unsigned before2, unsigned before, unsigned now) {
    bool due = before >= 0xc0 || before2 >= 0xe0 || before3 >= 0xf0, goes_on = (now & 0xc0) == 0x80;
    bool bad = now == 0xc0 || now == 0xc1 || now > 0xf4;
    bad |= (before == 0xe0 && now < 0xa0) || (before == 0xed && now >= 0xa0) || (before == 0xf0 && now < 0x90) || (before == 0xf4 && now >= 0x90);
    return bad || due != goes_on;
}
__global__ void __launch_bounds__(256) utf8_errors(const unsigned char *text, int *errors, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    bool found = wrong(i > 2 ? text[i - 3] : 0, i > 1 ? text[i - 2] : 0, i > 0 ? text[i - 1] : 0, text[i]);
    int count = __syncthreads_count(found);
    if (threadIdx.x == 0 && count) atomicAdd(errors + i / TEXT_PAGE, count);
}
// Sixteen bytes a thread, one after another.
__global__ void __launch_bounds__(256) utf8_errors_16(const uint4 *__restrict__ text, int *__restrict__ errors, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n / 16) return;
    uint4 words = text[i];
    unsigned last = i ? reinterpret_cast<const unsigned *>(text)[4 * i - 1] : 0, four[4] = {words.x, words.y, words.z, words.w};
    unsigned before3 = last >> 8 & 255, before2 = last >> 16 & 255, before = last >> 24;
    int found = 0;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        unsigned now = four[k / 4] >> (8 * (k % 4)) & 255;
        found += wrong(before3, before2, before, now);
        before3 = before2, before2 = before, before = now;
    }
    for (int step = 16; step > 0; step /= 2) found += __shfl_xor_sync(~0u, found, step);
    if (threadIdx.x % 32 == 0 && found) atomicAdd(errors + i / (TEXT_PAGE / 16), found);
}
// The same for four bytes at once: one bit for each that is wrong.
__device__ __forceinline__ unsigned wrong_of_four(unsigned last, unsigned now) {
    unsigned before = __byte_perm(last, now, 0x6543), before2 = __byte_perm(last, now, 0x5432), before3 = __byte_perm(last, now, 0x4321);
    unsigned due = __vcmpgeu4(before, 0xc0c0c0c0) | __vcmpgeu4(before2, 0xe0e0e0e0) | __vcmpgeu4(before3, 0xf0f0f0f0);
    unsigned bad = due ^ __vcmpeq4(now & 0xc0c0c0c0, 0x80808080);
    bad |= __vcmpeq4(now & 0xfefefefe, 0xc0c0c0c0) | __vcmpgeu4(now, 0xf5f5f5f5);
    unsigned from_90 = __vcmpgeu4(now, 0x90909090), from_a0 = __vcmpgeu4(now, 0xa0a0a0a0);
    bad |= (__vcmpeq4(before, 0xe0e0e0e0) & ~from_a0) | (__vcmpeq4(before, 0xedededed) & from_a0);
    bad |= (__vcmpeq4(before, 0xf0f0f0f0) & ~from_90) | (__vcmpeq4(before, 0xf4f4f4f4) & from_90);
    return bad & 0x01010101;
}
// Four words of sixteen bytes a thread; where no letter is beyond ASCII there is nothing to check.
__global__ void __launch_bounds__(256) utf8_errors_words(const uint4 *__restrict__ text, int *__restrict__ errors, int n) {
    int i = blockIdx.x * 256 + threadIdx.x, found = 0;
    if (i >= n / 16) return;
    uint4 now = text[i];
    unsigned last = i ? reinterpret_cast<const unsigned *>(text)[4 * i - 1] : 0;
    if ((last | now.x | now.y | now.z | now.w) & 0x80808080)
        found = __popc(wrong_of_four(last, now.x)) + __popc(wrong_of_four(now.x, now.y)) + __popc(wrong_of_four(now.y, now.z)) + __popc(wrong_of_four(now.z, now.w));
    found = __reduce_add_sync(~0u, found);
    if (threadIdx.x % 32 == 0 && found) atomicAdd(errors + i / (TEXT_PAGE / 16), found);
}

Study utf8("utf8_checked_a_byte_a_thread", "databases", 1 << 26, "where 64 MB of text are not valid UTF-8, counted for each page of 4096 bytes",
    "a thread checks a byte and loads it and three before it one by one",
    {{"sixteen_bytes", "sixteen bytes a thread in one load, those before from registers", {"narrow_access", "redundant_loads"}},
        {"four_at_once", "sixteen bytes a thread, four compared at once in a word", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(37);
        std::vector<unsigned char> text;
        text.reserve(n + 4);
        auto tail = [&](int count) {
            for (; count > 0; --count) text.push_back(0x80 | random() % 64);
        };
        while (static_cast<long>(text.size()) < n) {
            unsigned kind = random() % 1024;
            if (kind < 700) text.insert(text.end(), 3, 'a' + kind % 26);
            else if (kind < 850) text.push_back(0xc2 + kind % 28), tail(1);
            else if (kind < 960) text.push_back(0xe1 + kind % 12), tail(2);
            else if (kind < 1023) text.push_back(0xf1 + kind % 3), tail(3);
            else text.push_back(0x80 | random() % 128), text.push_back(0xe0), text.push_back(0x80 | random() % 64), text.push_back(0x81);
        }
        text.resize(n);
        unsigned char *bytes = b.copy(text);
        int *errors = b.output<int>(n / TEXT_PAGE, true);
        b.tolerance = 0.0;
        return {{"flawed", launch(utf8_errors, blocks(n, 256), 256, 0, bytes, errors, n)}, {"sixteen_bytes", launch(utf8_errors_16, blocks(n / 16, 256), 256, 0, (uint4 *)bytes, errors, n)},
            {"four_at_once", launch(utf8_errors_words, blocks(n / 16, 256), 256, 0, (uint4 *)bytes, errors, n)}};
    });

// --- a text in code words of 2 to 13 bits ---

struct Codes {
    const uint2 *words;       // bits and their number, of each letter
    const unsigned *offsets;  // in bits, of each letter of the text and of its end
};

__global__ void __launch_bounds__(256) encode(const unsigned char *text, Codes codes, unsigned *out, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    unsigned at = codes.offsets[i];
    Wide bits = static_cast<Wide>(codes.words[text[i]].x) << (at % 32);
    atomicOr(out + at / 32, static_cast<unsigned>(bits));
    if (bits >> 32) atomicOr(out + at / 32 + 1, static_cast<unsigned>(bits >> 32));
}
// Sixteen letters a thread: only its first and last word are shared with others.
__global__ void __launch_bounds__(256) encode_16(const uint4 *__restrict__ text, Codes codes, unsigned *__restrict__ out, int n) {
    __shared__ uint2 table[256];
    table[threadIdx.x] = codes.words[threadIdx.x];
    __syncthreads();
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n / 16) return;
    uint4 letters = text[i];
    unsigned four[4] = {letters.x, letters.y, letters.z, letters.w}, at = codes.offsets[16 * i], filled = at % 32;
    unsigned *to = out + at / 32;
    Wide bits = 0;
    bool first = true;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        uint2 word = table[four[k / 4] >> (8 * (k % 4)) & 255];
        bits |= static_cast<Wide>(word.x) << filled;
        filled += word.y;
        if (filled >= 32) {
            if (first) atomicOr(to, static_cast<unsigned>(bits));
            else *to = static_cast<unsigned>(bits);
            first = false, ++to, bits >>= 32, filled -= 32;
        }
    }
    if (bits) atomicOr(to, static_cast<unsigned>(bits));
}
// The words of a block are put together in shared memory.
constexpr int LETTERS = 2048;
__global__ void __launch_bounds__(256) encode_shared(const unsigned char *__restrict__ text, Codes codes, unsigned *__restrict__ out, int n) {
    __shared__ unsigned words[LETTERS * 13 / 32 + 2];
    int begin = blockIdx.x * LETTERS, end = min(n, begin + LETTERS);
    int first = codes.offsets[begin] / 32, last = codes.offsets[end] / 32;
    for (int w = threadIdx.x; w <= last - first; w += 256) words[w] = 0;
    __syncthreads();
    for (int i = begin + threadIdx.x; i < end; i += 256) {
        unsigned at = codes.offsets[i], word = at / 32 - first;
        Wide bits = static_cast<Wide>(codes.words[text[i]].x) << (at % 32);
        atomicOr(words + word, static_cast<unsigned>(bits));
        if (bits >> 32) atomicOr(words + word + 1, static_cast<unsigned>(bits >> 32));
    }
    __syncthreads();
    for (int w = threadIdx.x; w <= last - first; w += 256)
        if (w > 0 && w < last - first) out[first + w] = words[w];
        else atomicOr(out + first + w, words[w]);
}

Study code_words("code_words_joined_by_an_atomic_a_letter", "compression", 1 << 24, "16777216 letters as code words of 2 to 13 bits, at places known before",
    "each letter is joined to the bits of others by an atomic on global memory",
    {{"sixteen_letters", "a thread joins sixteen letters in a register", {"global_atomics", "narrow_access"}}, {"in_shared", "a block joins its letters in shared memory and stores whole words", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(41);
        std::vector<uint2> words(256);
        for (unsigned letter = 0; letter < 256; ++letter) {
            unsigned length = std::min(2 + letter / 3, 13u);
            words[letter] = make_uint2(random() & ((1u << length) - 1), length);
        }
        std::vector<unsigned char> text(n);
        std::vector<unsigned> offsets(n + 1);
        for (long i = 0; i < n; ++i) {
            text[i] = static_cast<unsigned char>((random() & 255) * (random() & 255) >> 10);
            offsets[i + 1] = offsets[i] + words[text[i]].y;
        }
        Codes codes{b.copy(words), b.copy(offsets)};
        unsigned char *letters = b.copy(text);
        unsigned *out = b.output<unsigned>(offsets[n] / 32 + 2, true);
        b.tolerance = 0.0;
        return {{"flawed", launch(encode, blocks(n, 256), 256, 0, letters, codes, out, n)}, {"sixteen_letters", launch(encode_16, blocks(n / 16, 256), 256, 0, (uint4 *)letters, codes, out, n)},
            {"in_shared", launch(encode_shared, blocks(n, LETTERS), 256, 0, letters, codes, out, n)}};
    });

}  // namespace
