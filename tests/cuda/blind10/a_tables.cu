// Tables, event logs, graphs, genomes and books of loans. Each kernel has one weakness and two or three ways out.
#include "../pairs/pair.cuh"

namespace {

// --- a column of text to numbers: 16 characters a row, two places after the point, filled up with spaces ---

constexpr int TEXT = 16;

__global__ void parse_prices(const char *text, int *cents, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int value = 0;
    bool negative = false;
    for (int k = 0; k < TEXT; ++k) {
        char c = text[row * TEXT + k];
        if (c == '-') negative = true;
        else if (c >= '0' && c <= '9') value = value * 10 + (c - '0');
    }
    cents[row] = negative ? -value : value;
}
// One load of 16 bytes; letters out of registers.
__global__ void parse_prices_vector(const uint4 *__restrict__ text, int *__restrict__ cents, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    uint4 v = text[row];
    unsigned words[4] = {v.x, v.y, v.z, v.w};
    int value = 0;
    bool negative = false;
#pragma unroll
    for (int k = 0; k < TEXT; ++k) {
        unsigned c = words[k / 4] >> (k % 4 * 8) & 0xff, digit = c - '0';
        negative |= c == '-';
        value = digit < 10 ? value * 10 + static_cast<int>(digit) : value;
    }
    cents[row] = negative ? -value : value;
}
// The block's text through shared memory, five words a row.
__global__ void __launch_bounds__(256) parse_prices_staged(const unsigned *__restrict__ text, int *__restrict__ cents, int rows) {
    __shared__ unsigned held[256 * 5];
    int first = blockIdx.x * 256, row = first + threadIdx.x;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        int at = q * 256 + threadIdx.x;
        if (first + at / 4 < rows) held[at / 4 * 5 + at % 4] = text[first * 4 + at];
    }
    __syncthreads();
    if (row >= rows) return;
    int value = 0;
    bool negative = false;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        unsigned word = held[threadIdx.x * 5 + w];
#pragma unroll
        for (int k = 0; k < 4; ++k, word >>= 8) {
            unsigned c = word & 0xff, digit = c - '0';
            negative |= c == '-';
            value = digit < 10 ? value * 10 + static_cast<int>(digit) : value;
        }
    }
    cents[row] = negative ? -value : value;
}
// Four threads a row with a word each: the point always stands in the same place, so that places have fixed weights.
__global__ void __launch_bounds__(256) parse_prices_quarters(const unsigned *__restrict__ text, int *__restrict__ cents, int rows) {
    int at = blockIdx.x * 256 + threadIdx.x, part = at % 4;
    if (at / 4 >= rows) return;
    unsigned word = text[at], digits[4];
    bool negative = false;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        unsigned c = word >> (8 * k) & 0xff, digit = c - '0';
        negative |= c == '-';
        digits[k] = digit < 10 ? digit : 0;
    }
    // The last places of the words are 10^11, 10^7, 10^3 and one cent; the last word's second letter is the point.
    int whole = ((digits[0] * 10 + digits[1]) * 10 + digits[2]) * 10 + digits[3], last = digits[0] * 100 + digits[2] * 10 + digits[3];
    int value = part == 3 ? last : part == 2 ? whole * 1000 : part == 1 ? whole * 10000000 : 0;
    value += __shfl_xor_sync(~0u, value, 1), value += __shfl_xor_sync(~0u, value, 2);
    negative = (__ballot_sync(~0u, negative) >> (threadIdx.x % 32 & ~3) & 15) != 0;
    if (part == 0) cents[at / 4] = negative ? -value : value;
}
__global__ void write_prices(char *text, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    unsigned drawn = hash(row ^ 0x35a7c19u), value = drawn % 1000000000u >> (hash(row) % 20);
    char *to = text + row * TEXT;
    int k = TEXT - 1;
    for (; k >= TEXT - 2; --k, value /= 10) to[k] = '0' + value % 10;
    to[k--] = '.';
    do to[k--] = '0' + value % 10;
    while (value /= 10);
    if (drawn & 1) to[k--] = '-';
    for (; k >= 0; --k) to[k] = ' ';
}

Study prices("prices_parsed_letter_by_letter", "databases", 1 << 23, "8388608 fields of 16 characters to numbers of cents",
    "a thread a row, one letter a load",
    {{"vector", "one 16-byte load a row, letters out of registers", {"uncoalesced_access", "narrow_access", "memory_latency"}},
        {"staged", "the block's text through shared memory", {"uncoalesced_access", "narrow_access"}},
        {"quarters", "four threads a row, a word each, places with fixed weights", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        char *text = b.allocate<char>(n * TEXT);
        launch(write_prices, blocks(n, 256), 256, 0, text, n)();
        CHECK_LAUNCH();
        int *cents = b.output<int>(n);
        auto words = reinterpret_cast<const unsigned *>(text);
        b.tolerance = 0;
        return {{"flawed", launch(parse_prices, blocks(n, 256), 256, 0, text, cents, n)},
            {"vector", launch(parse_prices_vector, blocks(n, 256), 256, 0, reinterpret_cast<const uint4 *>(text), cents, n)},
            {"staged", launch(parse_prices_staged, blocks(n, 256), 256, 0, words, cents, n)},
            {"quarters", launch(parse_prices_quarters, blocks(4 * n, 256), 256, 0, words, cents, n)}};
    });

// --- sessions: events of a user, sorted by time; a long pause begins another session ---

__global__ void sessions(const int *starts, const int *times, int *session, int *counts, int users, int pause) {
    int user = blockIdx.x * blockDim.x + threadIdx.x;
    if (user >= users) return;
    int number = 0;
    for (int e = starts[user]; e < starts[user + 1]; ++e) {
        if (e > starts[user] && times[e] - times[e - 1] > pause) ++number;
        session[e] = number;
    }
    counts[user] = number + 1;
}
// `lanes` threads a user, as many events at a time; an event's number is that of the votes up to it.
template <int lanes>
__global__ void __launch_bounds__(256) sessions_votes(const int *__restrict__ starts, const int *__restrict__ times, int *__restrict__ session, int *__restrict__ counts, int users, int pause) {
    int user = (blockIdx.x * 256 + threadIdx.x) / lanes, lane = threadIdx.x % lanes, shift = threadIdx.x % 32 / lanes * lanes;
    if (user >= users) return;
    unsigned group = lanes == 32 ? ~0u : ((1u << lanes % 32) - 1) << shift;
    int first = starts[user], end = starts[user + 1], number = 0;
    for (int e = first; e < end; e += lanes) {
        int at = e + lane;
        bool begins = at < end && at > first && times[at] - times[at - 1] > pause;
        unsigned votes = __ballot_sync(group, begins) >> shift;
        if (at < end) session[at] = number + __popc(votes & (2u << lane) - 1);
        number += __popc(votes);
    }
    if (lane == 0) counts[user] = number + 1;
}

Study session_numbers("sessions_thread_per_user", "databases", 1 << 17, "numbers of the sessions of 131072 users with 16 to 111 events each",
    "a thread walks along all events of a user",
    {{"warp", "a warp a user, sessions counted by votes", {"uncoalesced_access", "memory_latency"}},
        {"eight", "eight threads a user, sessions counted by votes", {"uncoalesced_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(n + 1), times;
        for (long user = 0; user < n; ++user) {
            int events = 16 + hash(user) % 96, time = hash(user ^ 0x5bd1e995u) % 100000;
            for (int e = 0; e < events; ++e) {
                unsigned drawn = hash(static_cast<unsigned>(times.size()) ^ 0x2c1b3c6du);
                times.push_back(time += drawn % 8 ? drawn % 1000 : 1801 + drawn % 30000);
            }
            starts[user + 1] = times.size();
        }
        const int *from = b.copy(starts), *when = b.copy(times);
        int *session = b.output<int>(times.size()), *counts = b.output<int>(n), pause = 1800;
        b.tolerance = 0;
        return {{"flawed", launch(sessions, blocks(n, 256), 256, 0, from, when, session, counts, n, pause)},
            {"warp", launch(sessions_votes<32>, blocks(32 * n, 256), 256, 0, from, when, session, counts, n, pause)},
            {"eight", launch(sessions_votes<8>, blocks(8 * n, 256), 256, 0, from, when, session, counts, n, pause)}};
    });

// --- a round of Boruvka's spanning tree: the lightest edge that leaves each component ---

constexpr int DEGREE = 8, COMPONENT = 256;
using Key = unsigned long long;

__device__ __forceinline__ Key key_of(const unsigned *weights, int edge) { return static_cast<Key>(weights[edge]) << 32 | edge; }

__global__ void lightest(const int2 *edges, const unsigned *weights, const int *component, Key *best, int count) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= count) return;
    int a = component[edges[e].x], b = component[edges[e].y];
    if (a == b) return;
    atomicMin(&best[a], key_of(weights, e));
    atomicMin(&best[b], key_of(weights, e));
}
// Most edges are heavier than what was found before.
__global__ void lightest_tested(const int2 *__restrict__ edges, const unsigned *__restrict__ weights, const int *__restrict__ component, Key *best, int count) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= count) return;
    int2 edge = edges[e];
    int a = component[edge.x], b = component[edge.y];
    if (a == b) return;
    Key key = key_of(weights, e);
    if (key < __ldcg(&best[a])) atomicMin(&best[a], key);
    if (key < __ldcg(&best[b])) atomicMin(&best[b], key);
}
// A thread for the edges of a vertex, in both directions; then the minimum of a warp whose vertices share a component.
__global__ void __launch_bounds__(256) lightest_by_vertex(const int *__restrict__ starts, const int2 *__restrict__ neighbours, const unsigned *__restrict__ weights,
    const int *__restrict__ component, Key *best, int vertices) {
    int v = blockIdx.x * 256 + threadIdx.x;
    if (v >= vertices) return;
    int own = component[v];
    Key least = ~Key{0};
    for (int i = starts[v]; i < starts[v + 1]; ++i) {
        int2 to = neighbours[i];
        if (component[to.x] != own) least = min(least, key_of(weights, to.y));
    }
    int alike;
    __match_all_sync(~0u, own, &alike);
    if (!alike) {
        atomicMin(&best[own], least);
        return;
    }
    for (int offset = 16; offset; offset /= 2) least = min(least, __shfl_xor_sync(~0u, least, offset));
    if (threadIdx.x % 32 == 0) atomicMin(&best[own], least);
}

Study spanning("lightest_edges_atomic_each_edge", "graphs", 1 << 19, "the lightest edge out of each of 2048 components, 4194304 edges",
    "two atomic minima of 64 bits for each edge",
    {{"tested", "a look at the minimum before the atomic", {"global_atomics"}}, {"by_vertex", "a thread for the edges of a vertex, minimum of a warp first", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        int count = n * DEGREE;
        std::vector<int2> edges(count), neighbours(2 * count);
        std::vector<int> starts(n + 1), component(n);
        for (int v = 0; v < n; ++v) component[v] = v / COMPONENT * 1021 % (n / COMPONENT);
        for (int e = 0; e < count; ++e) {
            edges[e] = {e / DEGREE, static_cast<int>(hash(e ^ 0x7ed55d16u) % n)};
            ++starts[edges[e].x + 1], ++starts[edges[e].y + 1];
        }
        for (int v = 0; v < n; ++v) starts[v + 1] += starts[v];
        std::vector<int> at(starts.begin(), starts.end() - 1);
        for (int e = 0; e < count; ++e) neighbours[at[edges[e].x]++] = {edges[e].y, e}, neighbours[at[edges[e].y]++] = {edges[e].x, e};
        const int2 *list = b.copy(edges), *sides = b.copy(neighbours);
        const int *from = b.copy(starts), *labels = b.copy(component);
        const unsigned *weights = b.random<unsigned>(count, 0, 1e9);
        const Key *none = b.copy(std::vector<Key>(n / COMPONENT, ~Key{0} >> 1));
        Key *best = b.changed(none, n / COMPONENT);
        b.tolerance = 0;
        return {{"flawed", launch(lightest, blocks(count, 256), 256, 0, list, weights, labels, best, count)},
            {"tested", launch(lightest_tested, blocks(count, 256), 256, 0, list, weights, labels, best, count)},
            {"by_vertex", launch(lightest_by_vertex, blocks(n, 256), 256, 0, from, sides, weights, labels, best, n)}};
    });

// --- backward search in an index of a genome: how often words occur ---

constexpr int SPACING = 64, WORD = 10;

struct Rank {
    int counts[4];               // of letters before this piece
    unsigned long long bits[2];  // the piece's letters, low and high bit
};

__device__ __forceinline__ int rank_letters(const unsigned char *letters, const int *counts, int c, int at) {
    int piece = at / SPACING, count = counts[piece * 4 + c];
    for (int i = piece * SPACING; i < at; ++i)
        if (letters[i] == c) ++count;
    return count;
}
__global__ void backward_search(const unsigned char *letters, const int *counts, const int *before, const unsigned char *words, int *found, int queries, int length) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= queries) return;
    int low = 0, high = length;
    for (int k = WORD - 1; k >= 0 && low < high; --k) {
        int c = words[k * queries + q];
        low = before[c] + rank_letters(letters, counts, c, low), high = before[c] + rank_letters(letters, counts, c, high);
    }
    found[q] = max(high - low, 0);
}
// Four letters a step, compared as one word.
__device__ __forceinline__ int rank_words(const unsigned *letters, const int *counts, int c, int at) {
    int piece = at / SPACING, count = counts[piece * 4 + c];
    unsigned four = c * 0x01010101u;
    const unsigned *from = letters + piece * (SPACING / 4);
    for (int left = at % SPACING; left > 0; left -= 4, ++from) {
        unsigned same = __vcmpeq4(*from, four) & 0x01010101u;
        count += __popc(left < 4 ? same & (1u << 8 * left) - 1 : same);
    }
    return count;
}
__global__ void backward_search_words(const unsigned *__restrict__ letters, const int *__restrict__ counts, const int *__restrict__ before, const unsigned char *__restrict__ words,
    int *__restrict__ found, int queries, int length) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= queries) return;
    int low = 0, high = length;
    for (int k = WORD - 1; k >= 0 && low < high; --k) {
        int c = words[k * queries + q];
        low = before[c] + rank_words(letters, counts, c, low), high = before[c] + rank_words(letters, counts, c, high);
    }
    found[q] = max(high - low, 0);
}
__device__ __forceinline__ int matching(unsigned long long low, unsigned long long high, int c, int left) {
    return __popcll((c & 1 ? low : ~low) & (c & 2 ? high : ~high) & (1ull << left) - 1);
}
// Letters as two planes of bits.
__global__ void backward_search_planes(const ulonglong2 *__restrict__ bits, const int *__restrict__ counts, const int *__restrict__ before, const unsigned char *__restrict__ words,
    int *__restrict__ found, int queries, int length) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= queries) return;
    int low = 0, high = length;
    for (int k = WORD - 1; k >= 0 && low < high; --k) {
        int c = words[k * queries + q];
        ulonglong2 a = bits[low / SPACING], z = bits[high / SPACING];
        low = before[c] + counts[low / SPACING * 4 + c] + matching(a.x, a.y, c, low % SPACING);
        high = before[c] + counts[high / SPACING * 4 + c] + matching(z.x, z.y, c, high % SPACING);
    }
    found[q] = max(high - low, 0);
}
// Counts and bits of a piece side by side: 32 bytes, one sector.
__global__ void backward_search_records(const Rank *__restrict__ ranks, const int *__restrict__ before, const unsigned char *__restrict__ words, int *__restrict__ found, int queries, int length) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= queries) return;
    int low = 0, high = length;
    for (int k = WORD - 1; k >= 0 && low < high; --k) {
        int c = words[k * queries + q];
        const Rank *a = ranks + low / SPACING, *z = ranks + high / SPACING;
        ulonglong2 al = *reinterpret_cast<const ulonglong2 *>(a->bits), zl = *reinterpret_cast<const ulonglong2 *>(z->bits);
        low = before[c] + a->counts[c] + matching(al.x, al.y, c, low % SPACING), high = before[c] + z->counts[c] + matching(zl.x, zl.y, c, high % SPACING);
    }
    found[q] = max(high - low, 0);
}

Study genome_index("occurrences_counted_letter_by_letter", "bioinformatics", 1 << 24, "how often 262144 words of ten letters occur, by an index of 16777216 letters",
    "up to 63 letters are counted one by one in each look-up",
    {{"words", "four letters compared at once", {"narrow_access", "memory_latency"}}, {"planes", "letters as two planes of bits, counted at once", {"narrow_access", "memory_latency"}},
        {"records", "bits and counts of a piece side by side in 32 bytes", {"narrow_access", "memory_latency", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int queries = 1 << 18;
        std::vector<unsigned char> letters(n + SPACING);
        std::vector<Rank> ranks(n / SPACING + 1);
        std::vector<int> counts((n / SPACING + 1) * 4), before(4);
        std::vector<ulonglong2> bits(n / SPACING + 1);
        int sofar[4] = {};
        for (long i = 0; i < n + SPACING; ++i) {
            long piece = i / SPACING;
            if (i % SPACING == 0)
                for (int c = 0; c < 4; ++c) counts[piece * 4 + c] = ranks[piece].counts[c] = sofar[c];
            int c = letters[i] = hash(static_cast<unsigned>(i)) >> 30;
            ranks[piece].bits[0] |= static_cast<unsigned long long>(c & 1) << i % SPACING;
            ranks[piece].bits[1] |= static_cast<unsigned long long>(c >> 1) << i % SPACING;
            if (i < n) ++sofar[c];
        }
        for (size_t p = 0; p < bits.size(); ++p) bits[p] = {ranks[p].bits[0], ranks[p].bits[1]};
        for (int c = 1; c < 4; ++c) before[c] = before[c - 1] + sofar[c - 1];
        const unsigned char *text = b.copy(letters), *words = b.random<unsigned char>(queries * WORD, 0, 4);
        const int *samples = b.copy(counts), *offsets = b.copy(before);
        const ulonglong2 *planes = b.copy(bits);
        const Rank *records = b.copy(ranks);
        int *found = b.output<int>(queries);
        unsigned grid = blocks(queries, 256);
        b.tolerance = 0;
        return {{"flawed", launch(backward_search, grid, 256, 0, text, samples, offsets, words, found, queries, n)},
            {"words", launch(backward_search_words, grid, 256, 0, reinterpret_cast<const unsigned *>(text), samples, offsets, words, found, queries, n)},
            {"planes", launch(backward_search_planes, grid, 256, 0, planes, samples, offsets, words, found, queries, n)},
            {"records", launch(backward_search_records, grid, 256, 0, records, offsets, words, found, queries, n)}};
    });

// --- losses of a book of loans under a one-factor model ---

constexpr int LOANS = 256;

struct Loan {
    float probability, correlation, exposure, lost;
};
__device__ __forceinline__ bool defaults(float root, float rest, float market, float own, float threshold) { return fmaf(root, market, __fmul_rn(rest, own)) < threshold; }

__global__ void book_losses(const Loan *loans, const float *market, const float *own, float *losses, int paths) {
    int path = blockIdx.x * blockDim.x + threadIdx.x;
    if (path >= paths) return;
    float loss = 0.f;
    for (int i = 0; i < LOANS; ++i) {
        Loan loan = loans[i];
        if (defaults(sqrtf(loan.correlation), sqrtf(1.f - loan.correlation), market[path], own[static_cast<size_t>(i) * paths + path], normcdfinvf(loan.probability)))
            loss += loan.exposure * loan.lost;
    }
    losses[path] = loss;
}
__device__ __forceinline__ float4 prepared(Loan loan) {
    return make_float4(sqrtf(loan.correlation), sqrtf(1.f - loan.correlation), normcdfinvf(loan.probability), loan.exposure * loan.lost);
}
__global__ void __launch_bounds__(LOANS) book_losses_shared(const Loan *__restrict__ loans, const float *__restrict__ market, const float *__restrict__ own, float *__restrict__ losses, int paths) {
    __shared__ float4 ready[LOANS];
    int path = blockIdx.x * LOANS + threadIdx.x;
    ready[threadIdx.x] = prepared(loans[threadIdx.x]);
    __syncthreads();
    float loss = 0.f, m = market[path];
#pragma unroll 8
    for (int i = 0; i < LOANS; ++i) {
        float4 r = ready[i];
        if (defaults(r.x, r.y, m, own[static_cast<size_t>(i) * paths + path], r.z)) loss += r.w;
    }
    losses[path] = loss;
}
__global__ void prepare_loans(const Loan *loans, float4 *ready) { ready[threadIdx.x] = prepared(loans[threadIdx.x]); }
// What depends on the loan alone comes ready from an earlier launch.
__global__ void book_losses_ready(const float4 *__restrict__ ready, const float *__restrict__ market, const float *__restrict__ own, float *__restrict__ losses, int paths) {
    int path = blockIdx.x * blockDim.x + threadIdx.x;
    if (path >= paths) return;
    float loss = 0.f, m = market[path];
#pragma unroll 8
    for (int i = 0; i < LOANS; ++i) {
        float4 r = ready[i];
        if (defaults(r.x, r.y, m, own[static_cast<size_t>(i) * paths + path], r.z)) loss += r.w;
    }
    losses[path] = loss;
}
// Two paths a thread, prepared loans in shared memory.
__global__ void __launch_bounds__(LOANS) book_losses_pairs(const Loan *__restrict__ loans, const float2 *__restrict__ market, const float2 *__restrict__ own, float2 *__restrict__ losses, int pairs) {
    __shared__ float4 ready[LOANS];
    int pair = blockIdx.x * LOANS + threadIdx.x;
    ready[threadIdx.x] = prepared(loans[threadIdx.x]);
    __syncthreads();
    float2 loss = {}, m = market[pair];
#pragma unroll 8
    for (int i = 0; i < LOANS; ++i) {
        float4 r = ready[i];
        float2 z = own[static_cast<size_t>(i) * pairs + pair];
        loss.x += defaults(r.x, r.y, m.x, z.x, r.z) ? r.w : 0.f, loss.y += defaults(r.x, r.y, m.y, z.y, r.z) ? r.w : 0.f;
    }
    losses[pair] = loss;
}

Study book("loan_thresholds_inverted_on_each_path", "finance", 1 << 18, "losses of a book of 256 loans on 262144 paths of a one-factor model",
    "each path computes roots and the inverse of the normal distribution again for each loan",
    {{"shared", "once a block, in shared memory", {"expensive_math"}}, {"ready", "once for all, in an earlier launch", {"expensive_math"}},
        {"pairs", "once a block, two paths a thread", {"expensive_math", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Loan> book(LOANS);
        for (int i = 0; i < LOANS; ++i)
            book[i] = {0.01f + 0.09f * (hash(i) % 1000) / 1000.f, 0.1f + 0.3f * (hash(i + 999) % 1000) / 1000.f, 1.f + hash(i + 5555) % 100, 0.4f + 0.1f * (i % 3)};
        const Loan *loans = b.copy(book);
        const float *market = b.random<float>(n, -2, 2), *own = b.random<float>(n * LOANS, -2.5, 2.5);
        float4 *ready = b.allocate<float4>(LOANS);
        launch(prepare_loans, 1, LOANS, 0, loans, ready)();
        CHECK_LAUNCH();
        float *losses = b.output<float>(n);
        return {{"flawed", launch(book_losses, n / 256, 256, 0, loans, market, own, losses, n)}, {"shared", launch(book_losses_shared, n / LOANS, LOANS, 0, loans, market, own, losses, n)},
            {"ready", launch(book_losses_ready, n / 256, 256, 0, ready, market, own, losses, n)},
            {"pairs", launch(book_losses_pairs, n / 2 / LOANS, LOANS, 0, loans, reinterpret_cast<const float2 *>(market), reinterpret_cast<const float2 *>(own), reinterpret_cast<float2 *>(losses), n / 2)}};
    });

// --- sound: SipHash of keys of eight bytes, two keys a thread ---

using Wide = unsigned long long;
__device__ __forceinline__ Wide rotated(Wide x, int by) { return x << by | x >> (64 - by); }
__device__ __forceinline__ void sip_round(Wide &a, Wide &b, Wide &c, Wide &d) {
    a += b, b = rotated(b, 13) ^ a, a = rotated(a, 32);
    c += d, d = rotated(d, 16) ^ c;
    a += d, d = rotated(d, 21) ^ a;
    c += b, b = rotated(b, 17) ^ c, c = rotated(c, 32);
}
__device__ __forceinline__ Wide sip_hash(Wide word, Wide k0, Wide k1) {
    Wide a = k0 ^ 0x736f6d6570736575ull, b = k1 ^ 0x646f72616e646f6dull, c = k0 ^ 0x6c7967656e657261ull, d = k1 ^ 0x7465646279746573ull, length = 8ull << 56;
    d ^= word, sip_round(a, b, c, d), sip_round(a, b, c, d), a ^= word;
    d ^= length, sip_round(a, b, c, d), sip_round(a, b, c, d), a ^= length;
    c ^= 0xff;
    sip_round(a, b, c, d), sip_round(a, b, c, d), sip_round(a, b, c, d), sip_round(a, b, c, d);
    return a ^ b ^ c ^ d;
}
__global__ void __launch_bounds__(256) sip_keys(const ulonglong2 *__restrict__ keys, ulonglong2 *__restrict__ hashes, int pairs, Wide k0, Wide k1) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= pairs) return;
    ulonglong2 key = keys[i];
    hashes[i] = make_ulonglong2(sip_hash(key.x, k0, k1), sip_hash(key.y, k0, k1));
}

Study sip("sound_sip_hashes", "databases", 1 << 24, "SipHash of 16777216 keys of eight bytes", "", {},
    [](Buffers &b, long n) -> Sides {
        const unsigned *keys = b.random<unsigned>(2 * n, 0, 4294967296.0);
        Wide *hashes = b.output<Wide>(n);
        return {{"sound", launch(sip_keys, blocks(n / 2, 256), 256, 0, reinterpret_cast<const ulonglong2 *>(keys), reinterpret_cast<ulonglong2 *>(hashes), n / 2, 0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull)}};
    });

}  // namespace
