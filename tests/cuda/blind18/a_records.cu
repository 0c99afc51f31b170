// Labels, letters, trees of species, names, prices, packets, addresses of coins, polygons, factors and keys.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "../pairs/pair.cuh"

namespace {

// --- labels of a segmentation, renumbered by a table ---

__device__ __forceinline__ unsigned renumbered(const unsigned char *table, unsigned four) {
    return table[four & 255] | table[four >> 8 & 255] << 8 | table[four >> 16 & 255] << 16 | static_cast<unsigned>(table[four >> 24]) << 24;
}
__global__ void __launch_bounds__(256) renumber(const unsigned char *__restrict__ labels, const unsigned char *__restrict__ table, unsigned char *__restrict__ out, long count) {
    __shared__ unsigned char own[256];
    own[threadIdx.x] = table[threadIdx.x];
    __syncthreads();
    const long i = blockIdx.x * 256L + threadIdx.x;
    if (i < count) out[i] = own[labels[i]];
}
__global__ void __launch_bounds__(256) renumber_fours(const unsigned *__restrict__ labels, const unsigned char *__restrict__ table, unsigned *__restrict__ out, long words) {
    __shared__ unsigned char own[256];
    own[threadIdx.x] = table[threadIdx.x];
    __syncthreads();
    const long i = blockIdx.x * 256L + threadIdx.x;
    if (i < words) out[i] = renumbered(own, labels[i]);
}
__global__ void __launch_bounds__(256) renumber_sixteens(const uint4 *__restrict__ labels, const unsigned char *__restrict__ table, uint4 *__restrict__ out, long vectors) {
    __shared__ unsigned char own[256];
    own[threadIdx.x] = table[threadIdx.x];
    __syncthreads();
    const long i = blockIdx.x * 256L + threadIdx.x;
    if (i >= vectors) return;
    const uint4 v = labels[i];
    out[i] = make_uint4(renumbered(own, v.x), renumbered(own, v.y), renumbered(own, v.z), renumbered(own, v.w));
}

Study labels("labels_renumbered_a_byte_a_thread", "medical imaging", 1 << 26, "67108864 labels renumbered by a table of 256",
    "a thread loads and stores one byte",
    {{"fours", "four labels a thread", {"narrow_access"}}, {"sixteens", "sixteen labels a thread", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *in = b.random<unsigned char>(n, 0, 256), *table = b.random<unsigned char>(256, 0, 256);
        unsigned char *out = b.output<unsigned char>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(renumber, blocks(n, 256), 256, 0, in, table, out, n)},
            {"fours", launch(renumber_fours, blocks(n / 4, 256), 256, 0, reinterpret_cast<const unsigned *>(in), table, reinterpret_cast<unsigned *>(out), n / 4)},
            {"sixteens", launch(renumber_sixteens, blocks(n / 16, 256), 256, 0, reinterpret_cast<const uint4 *>(in), table, reinterpret_cast<uint4 *>(out), n / 16)}};
    });

// --- letters of an old machine's code ---

__constant__ unsigned char LETTERS[256];

__global__ void __launch_bounds__(256) recode(const uint2 *__restrict__ text, uint2 *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const uint2 eight = text[i];
    out[i] = make_uint2(renumbered(LETTERS, eight.x), renumbered(LETTERS, eight.y));
}
__global__ void __launch_bounds__(256) recode_shared(const uint2 *__restrict__ text, uint2 *__restrict__ out, int count) {
    __shared__ unsigned char own[256];
    own[threadIdx.x] = LETTERS[threadIdx.x];
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const uint2 eight = text[i];
    out[i] = make_uint2(renumbered(own, eight.x), renumbered(own, eight.y));
}
__global__ void __launch_bounds__(256) recode_global(const uint2 *__restrict__ text, const unsigned char *__restrict__ table, uint2 *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const uint2 eight = text[i];
    out[i] = make_uint2(renumbered(table, eight.x), renumbered(table, eight.y));
}

Study letters("letters_of_an_old_code_in_constants", "databases", 1 << 23, "67108864 letters brought from one code to another by a table",
    "the table lies in constant memory, where each lane asks for another letter's entry",
    {{"shared", "the table in shared memory", {"constant_divergence"}}, {"global", "the table in global memory, which stays in the L1 cache", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> table(256);
        for (int k = 0; k < 256; k++) table[k] = static_cast<unsigned char>(k * 37 + 11);
        CHECK(cudaMemcpyToSymbol(LETTERS, table.data(), 256));
        const unsigned char *lookup = b.copy(table);
        const uint2 *text = reinterpret_cast<const uint2 *>(b.random<unsigned char>(n * 8, 0, 256));
        uint2 *out = reinterpret_cast<uint2 *>(b.output<unsigned char>(n * 8));
        b.tolerance = 0.0;
        return {{"flawed", launch(recode, blocks(n, 256), 256, 0, text, out, n)}, {"shared", launch(recode_shared, blocks(n, 256), 256, 0, text, out, n)},
            {"global", launch(recode_global, blocks(n, 256), 256, 0, text, lookup, out, n)}};
    });

// --- least changes along a tree of 64 species ---

constexpr int TAXA = 64;

__global__ void __launch_bounds__(256) least_changes(const unsigned char *__restrict__ states, unsigned char *__restrict__ out, int sites) {
    const int site = blockIdx.x * 256 + threadIdx.x;
    if (site >= sites) return;
    unsigned state = states[site], changes = 0;
#pragma unroll 8
    for (int k = 1; k < TAXA; k++) {
        const unsigned other = states[static_cast<size_t>(k) * sites + site], both = state & other;
        changes += both == 0;
        state = both ? both : state | other;
    }
    out[site] = changes;
}
// Four sites in the bytes of a word, states in the lower half of each byte.
__device__ __forceinline__ void step_of_four(unsigned &state, unsigned &changes, unsigned other) {
    const unsigned both = state & other, some = (both + 0x0f0f0f0fu) >> 4 & 0x01010101u;
    changes += 0x01010101u - some;
    state = both | ((state | other) & ~(some * 15));
}
__global__ void __launch_bounds__(256) least_changes_fours(const unsigned *__restrict__ states, unsigned *__restrict__ out, int words) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= words) return;
    unsigned state = states[at], changes = 0;
#pragma unroll 8
    for (int k = 1; k < TAXA; k++) step_of_four(state, changes, states[static_cast<size_t>(k) * words + at]);
    out[at] = changes;
}
__global__ void __launch_bounds__(64) least_changes_sixteens(const uint4 *__restrict__ states, uint4 *__restrict__ out, int vectors) {
    const int at = blockIdx.x * 64 + threadIdx.x;
    if (at >= vectors) return;
    uint4 state = states[at], changes = make_uint4(0, 0, 0, 0);
#pragma unroll 8
    for (int k = 1; k < TAXA; k++) {
        const uint4 other = states[static_cast<size_t>(k) * vectors + at];
        step_of_four(state.x, changes.x, other.x), step_of_four(state.y, changes.y, other.y), step_of_four(state.z, changes.z, other.z), step_of_four(state.w, changes.w, other.w);
    }
    out[at] = changes;
}

Study species("least_changes_of_a_tree_a_byte_a_site", "bioinformatics", 1 << 21, "least changes of 2097152 sites along a tree of 64 species",
    "a thread takes one site: a byte each load, an operation for four bits",
    {{"fours", "four sites in the bytes of a word", {"narrow_access"}}, {"sixteens", "sixteen sites in a vector", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> masks(n * TAXA / 4);
        for (size_t i = 0; i < masks.size(); i++) {
            const unsigned r = hash(static_cast<unsigned>(i));
            for (int k = 0; k < 4; k++) masks[i] |= (1u << (r >> (4 * k) & 3) | ((r >> (20 + k) & 1) << (r >> (4 * k + 2) & 3))) << (8 * k);
        }
        const unsigned *words = b.copy(masks);
        unsigned char *out = b.output<unsigned char>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(least_changes, blocks(n, 256), 256, 0, reinterpret_cast<const unsigned char *>(words), out, n)},
            {"fours", launch(least_changes_fours, blocks(n / 4, 256), 256, 0, words, reinterpret_cast<unsigned *>(out), n / 4)},
            {"sixteens", launch(least_changes_sixteens, blocks(n / 16, 64), 64, 0, reinterpret_cast<const uint4 *>(words), reinterpret_cast<uint4 *>(out), n / 16)}};
    });

// --- names of sixteen letters, sought in a dictionary ---

constexpr int NAME = 16, NAMES = 65536;

__global__ void __launch_bounds__(256) find_names(const unsigned char *__restrict__ dictionary, const unsigned char *__restrict__ wanted, int *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const unsigned char *own = wanted + static_cast<size_t>(i) * NAME;
    int low = 0, high = NAMES;
    while (low < high) {
        const int middle = (low + high) / 2;
        const unsigned char *name = dictionary + static_cast<size_t>(middle) * NAME;
        int k = 0;
        while (k < NAME && name[k] == own[k]) k++;
        if (k < NAME && name[k] < own[k]) low = middle + 1;
        else high = middle;
    }
    out[i] = low;
}
struct Name {
    unsigned long long first, second;
};
__device__ __forceinline__ unsigned long long big_end_first(unsigned low, unsigned high) {
    return static_cast<unsigned long long>(__byte_perm(low, 0, 0x0123)) << 32 | __byte_perm(high, 0, 0x0123);
}
__device__ __forceinline__ Name name_of(uint4 v) { return {big_end_first(v.x, v.y), big_end_first(v.z, v.w)}; }
__device__ __forceinline__ bool before(Name a, Name z) { return a.first < z.first || (a.first == z.first && a.second < z.second); }

__global__ void __launch_bounds__(256) find_names_words(const uint4 *__restrict__ dictionary, const uint4 *__restrict__ wanted, int *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const Name own = name_of(wanted[i]);
    int low = 0, high = NAMES;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (before(name_of(dictionary[middle]), own)) low = middle + 1;
        else high = middle;
    }
    out[i] = low;
}
// Every 64th name in shared memory: ten of sixteen steps need nothing else.
__global__ void __launch_bounds__(1024) find_names_index(const uint4 *__restrict__ dictionary, const uint4 *__restrict__ wanted, int *__restrict__ out, int count) {
    __shared__ unsigned long long firsts[1024], seconds[1024];
    const Name last = name_of(dictionary[threadIdx.x * 64 + 63]);
    firsts[threadIdx.x] = last.first, seconds[threadIdx.x] = last.second;
    __syncthreads();
    for (int i = blockIdx.x * 1024 + threadIdx.x; i < count; i += gridDim.x * 1024) {
        const Name own = name_of(wanted[i]);
        int low = 0, high = 1024;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (before({firsts[middle], seconds[middle]}, own)) low = middle + 1;
            else high = middle;
        }
        low *= 64, high = min(low + 64, NAMES);
        while (low < high) {
            const int middle = (low + high) / 2;
            if (before(name_of(dictionary[middle]), own)) low = middle + 1;
            else high = middle;
        }
        out[i] = low;
    }
}

Study names("names_sought_letter_by_letter", "search", 1 << 19, "places of 524288 names of sixteen letters in a dictionary of 65536",
    "names are compared letter by letter, a load for each letter of both",
    {{"words", "a name in one load, compared as two words of 64 bits", {"narrow_access", "memory_latency", "branch_divergence"}}, {"index", "every 64th name in shared memory besides", {"narrow_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<std::string> list(NAMES);
        const auto name = [](unsigned seed) {
            std::string text(NAME, ' ');
            for (int k = 0; k < NAME; k++) text[k] = static_cast<char>('a' + hash(seed * 16 + k) % (k < 6 ? 2 : 26));
            return text;
        };
        for (int i = 0; i < NAMES; i++) list[i] = name(i);
        std::sort(list.begin(), list.end());
        std::vector<uint4> known(NAMES), sought(n);
        for (int i = 0; i < NAMES; i++) std::memcpy(&known[i], list[i].data(), NAME);
        for (long i = 0; i < n; i++) {
            const std::string one = hash(static_cast<unsigned>(i)) % 2 ? list[hash(static_cast<unsigned>(i) + 77u) % NAMES] : name(static_cast<unsigned>(i) + 1000000u);
            std::memcpy(&sought[i], one.data(), NAME);
        }
        const uint4 *dictionary = b.copy(known), *wanted = b.copy(sought);
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(find_names, blocks(n, 256), 256, 0, reinterpret_cast<const unsigned char *>(dictionary), reinterpret_cast<const unsigned char *>(wanted), out, n)},
            {"words", launch(find_names_words, blocks(n, 256), 256, 0, dictionary, wanted, out, n)}, {"index", launch(find_names_index, std::min(264u, blocks(n, 1024)), 1024, 0, dictionary, wanted, out, n)}};
    });

// --- closing prices against their mean of five days ---

struct Day {
    float open, high, low, close, volume, turnover, dividend, split;
};
__global__ void __launch_bounds__(256) price_trend(const Day *__restrict__ days, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i + 4 >= count) return;
    const float mean = 0.2f * (days[i].close + days[i + 1].close + days[i + 2].close + days[i + 3].close + days[i + 4].close);
    out[i] = days[i + 4].close / mean - 1.0f;
}
__global__ void __launch_bounds__(256) price_trend_plane(const float *__restrict__ closes, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i + 4 >= count) return;
    const float mean = 0.2f * (closes[i] + closes[i + 1] + closes[i + 2] + closes[i + 3] + closes[i + 4]);
    out[i] = closes[i + 4] / mean - 1.0f;
}
__global__ void __launch_bounds__(256) price_trend_shared(const Day *__restrict__ days, float *__restrict__ out, int count) {
    __shared__ float closes[260];
    const int first = blockIdx.x * 256, t = threadIdx.x;
    if (first + t < count) closes[t] = days[first + t].close;
    if (t < 4 && first + 256 + t < count) closes[256 + t] = days[first + 256 + t].close;
    __syncthreads();
    if (first + t + 4 >= count) return;
    const float mean = 0.2f * (closes[t] + closes[t + 1] + closes[t + 2] + closes[t + 3] + closes[t + 4]);
    out[first + t] = closes[t + 4] / mean - 1.0f;
}

Study prices("closing_prices_out_of_whole_days", "finance", 1 << 22, "closing prices of 4194304 days against their mean of five",
    "one word of each record of eight is used: lanes are 32 bytes apart, in five loads",
    {{"plane", "closing prices in a plane of their own", {"uncoalesced_access"}}, {"shared", "each record's price once, by way of shared memory", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Day> list(n);
        std::vector<float> closes(n);
        for (long i = 0; i < n; i++) {
            const float close = 50.0f + (hash(static_cast<unsigned>(i)) >> 8) * (10.0f / 16777216.0f);
            closes[i] = close, list[i] = {close, close + 1, close - 1, close, 1e4f, 5e5f, 0.0f, 1.0f};
        }
        const Day *days = b.copy(list);
        const float *plane = b.copy(closes);
        float *out = b.output<float>(n - 4);
        b.tolerance = 1e-3;
        return {{"flawed", launch(price_trend, blocks(n, 256), 256, 0, days, out, n)}, {"plane", launch(price_trend_plane, blocks(n, 256), 256, 0, plane, out, n)}, {"shared", launch(price_trend_shared, blocks(n, 256), 256, 0, days, out, n)}};
    });

// --- packets and the first rule of a wall that concerns them ---

constexpr int RULES = 256;

struct Rule {
    unsigned source, source_mask, target, target_mask, first_port, last_port;
};
__device__ __forceinline__ bool concerns(const Rule &rule, uint4 packet) {
    return (packet.x & rule.source_mask) == rule.source && (packet.y & rule.target_mask) == rule.target && packet.z >= rule.first_port && packet.z <= rule.last_port;
}
__device__ __forceinline__ void stage_rules(Rule *own, const Rule *rules) {
    for (int k = threadIdx.x; k < RULES * 6; k += 256) reinterpret_cast<unsigned *>(own)[k] = reinterpret_cast<const unsigned *>(rules)[k];
    __syncthreads();
}
__global__ void __launch_bounds__(256) first_rules(const uint4 *__restrict__ packets, const Rule *__restrict__ rules, int *__restrict__ out, int count) {
    __shared__ Rule own[RULES];
    stage_rules(own, rules);
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const uint4 packet = packets[i];
    int found = RULES;
    for (int k = 0; k < RULES; k++)
        if (concerns(own[k], packet)) found = min(found, k);
    out[i] = found;
}
__global__ void __launch_bounds__(256) first_rules_stop(const uint4 *__restrict__ packets, const Rule *__restrict__ rules, int *__restrict__ out, int count) {
    __shared__ Rule own[RULES];
    stage_rules(own, rules);
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const uint4 packet = packets[i];
    int k = 0;
    while (k < RULES && !concerns(own[k], packet)) k++;
    out[i] = k;
}
// From the last rule of eight to the first, without branches; the warp goes on while a lane has found none.
__global__ void __launch_bounds__(256) first_rules_eights(const uint4 *__restrict__ packets, const Rule *__restrict__ rules, int *__restrict__ out, int count) {
    __shared__ Rule own[RULES];
    stage_rules(own, rules);
    const int i = blockIdx.x * 256 + threadIdx.x;
    const uint4 packet = packets[min(i, count - 1)];
    int found = RULES;
    for (int first = 0; first < RULES; first += 8) {
        int here = RULES;
#pragma unroll
        for (int k = 7; k >= 0; k--) here = concerns(own[first + k], packet) ? first + k : here;
        found = min(found, here);
        if (__all_sync(~0u, found < RULES)) break;
    }
    if (i < count) out[i] = found;
}

Study packets("packets_tested_on_after_their_rule", "networks", 1 << 21, "the first of 256 rules that concerns each of 2097152 packets",
    "each packet is tested by all rules, though most are concerned by one of the first",
    {{"stop", "a packet leaves at its rule", {"idle_threads", "shared_memory_bandwidth"}}, {"eights", "eight rules at a time until all lanes have found theirs", {"idle_threads", "shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Rule> list(RULES);
        for (unsigned k = 0; k < RULES; k++) {
            const unsigned bits = k < 40 ? 3 : 12, mask = ~0u << (32 - bits);
            list[k] = {hash(k) & mask, mask, hash(k + 999) & (k % 3 ? 0u : 0x80000000u), k % 3 ? 0u : 0x80000000u, 0u, k % 5 ? 65535u : 32767u};
        }
        const Rule *rules = b.copy(list);
        std::vector<uint4> made(n);
        for (unsigned i = 0; i < static_cast<unsigned>(n); i++) made[i] = make_uint4(hash(i * 3), hash(i * 3 + 1), hash(i * 3 + 2) & 65535, 6);
        const uint4 *list_of_packets = b.copy(made);
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, 256), 256, 0, list_of_packets, rules, out, n); };
        return {{"flawed", side(first_rules)}, {"stop", side(first_rules_stop)}, {"eights", side(first_rules_eights)}};
    });

// --- addresses of coins, written with 58 letters ---

constexpr int LIMBS = 8, DIGITS = 44;

__global__ void __launch_bounds__(128) written(const unsigned *__restrict__ numbers, unsigned *__restrict__ out, int count, unsigned base) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    unsigned limb[LIMBS];
#pragma unroll
    for (int k = 0; k < LIMBS; k++) limb[k] = numbers[k * count + i];
    for (int word = 0; word < DIGITS / 4; word++) {
        unsigned letters = 0;
        for (int d = 0; d < 4; d++) {
            unsigned long long rest = 0;
#pragma unroll
            for (int k = 0; k < LIMBS; k++) {
                const unsigned long long value = rest << 32 | limb[k];
                limb[k] = static_cast<unsigned>(value / base), rest = value % base;
            }
            letters |= static_cast<unsigned>(rest) << (8 * d);
        }
        out[word * count + i] = letters;
    }
}
__global__ void __launch_bounds__(128) written_constant(const unsigned *__restrict__ numbers, unsigned *__restrict__ out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    unsigned limb[LIMBS];
#pragma unroll
    for (int k = 0; k < LIMBS; k++) limb[k] = numbers[k * count + i];
    for (int word = 0; word < DIGITS / 4; word++) {
        unsigned letters = 0;
        for (int d = 0; d < 4; d++) {
            unsigned long long rest = 0;
#pragma unroll
            for (int k = 0; k < LIMBS; k++) {
                const unsigned long long value = rest << 32 | limb[k];
                limb[k] = static_cast<unsigned>(value / 58u), rest = value % 58u;
            }
            letters |= static_cast<unsigned>(rest) << (8 * d);
        }
        out[word * count + i] = letters;
    }
}
// Four letters at once: the long division is by 58 to the fourth.
__global__ void __launch_bounds__(128) written_fours(const unsigned *__restrict__ numbers, unsigned *__restrict__ out, int count) {
    constexpr unsigned FOUR = 58u * 58u * 58u * 58u;
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    unsigned limb[LIMBS];
#pragma unroll
    for (int k = 0; k < LIMBS; k++) limb[k] = numbers[k * count + i];
    for (int word = 0; word < DIGITS / 4; word++) {
        unsigned long long rest = 0;
#pragma unroll
        for (int k = 0; k < LIMBS; k++) {
            const unsigned long long value = rest << 32 | limb[k];
            limb[k] = static_cast<unsigned>(value / FOUR), rest = value % FOUR;
        }
        unsigned four = static_cast<unsigned>(rest), letters = 0;
#pragma unroll
        for (int d = 0; d < 4; d++) letters |= four % 58u << (8 * d), four /= 58u;
        out[word * count + i] = letters;
    }
}

Study addresses("coin_addresses_divided_letter_by_letter", "cryptography", 1 << 17, "131072 numbers of 256 bits written with 58 letters",
    "a division of 64 bits by a base known at run time for each limb and letter",
    {{"constant", "the base known when compiled", {"integer_arithmetic"}}, {"fours", "four letters a long division besides", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *numbers = b.random<unsigned>(n * LIMBS, 0, 4294967295.0);
        unsigned *out = b.output<unsigned>(n * (DIGITS / 4));
        b.tolerance = 0.0;
        return {{"flawed", launch(written, blocks(n, 128), 128, 0, numbers, out, n, 58u)}, {"constant", launch(written_constant, blocks(n, 128), 128, 0, numbers, out, n)},
            {"fours", launch(written_fours, blocks(n, 128), 128, 0, numbers, out, n)}};
    });

// --- areas of polygons, kept in the order of their length ---

__device__ __forceinline__ void polygon_area(const float2 *__restrict__ corners, const int *__restrict__ starts, float *__restrict__ out, int polygon) {
    const int first = starts[polygon], end = starts[polygon + 1], lane = threadIdx.x % 32;
    float sum = 0.0f;
    for (int i = first + lane; i < end; i += 32) {
        const float2 a = corners[i], z = corners[i + 1 < end ? i + 1 : first];
        sum += a.x * z.y - a.y * z.x;
    }
    sum = warp_sum(sum);
    if (lane == 0) out[polygon] = 0.5f * sum;
}
__global__ void __launch_bounds__(256) areas(const float2 *__restrict__ corners, const int *__restrict__ starts, float *__restrict__ out, int count) {
    const int each = (count + gridDim.x - 1) / gridDim.x, first = blockIdx.x * each, end = min(count, first + each);
    for (int polygon = first + threadIdx.x / 32; polygon < end; polygon += 8) polygon_area(corners, starts, out, polygon);
}
__global__ void __launch_bounds__(256) areas_dealt(const float2 *__restrict__ corners, const int *__restrict__ starts, float *__restrict__ out, int count) {
    for (int polygon = blockIdx.x * 8 + threadIdx.x / 32; polygon < count; polygon += gridDim.x * 8) polygon_area(corners, starts, out, polygon);
}

Study polygons("polygon_areas_ranges_in_order_of_length", "geography", 1 << 16, "areas of 65536 polygons of 8 to 1000 corners, kept in the order of their length",
    "each block takes a range of polygons that follow one another: the last blocks have all the long ones",
    {{"dealt", "polygons dealt out to warps in turn", {"workload_imbalance"}}, {"each", "a warp a polygon, as many blocks as that takes", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(1, 0);
        for (long i = 0; i < n; i++) {
            const double share = static_cast<double>(i) / static_cast<double>(n);
            starts.push_back(starts.back() + 8 + static_cast<int>(992 * share * share * share * share * share));
        }
        const int *from = b.copy(starts);
        const float2 *corners = reinterpret_cast<const float2 *>(b.random<float>(starts.back() * 2L, 0.0, 10.0));
        float *out = b.output<float>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(areas, std::min(528L, n / 8), 256, 0, corners, from, out, n)}, {"dealt", launch(areas_dealt, std::min(528L, n / 8), 256, 0, corners, from, out, n)},
            {"each", launch(areas_dealt, blocks(n, 8), 256, 0, corners, from, out, n)}};
    });

// --- how many of the first primes divide a number ---

constexpr int PRIMES = 512;

__global__ void __launch_bounds__(256) factors(const unsigned *__restrict__ numbers, const unsigned *__restrict__ primes, unsigned *__restrict__ out, int count) {
    __shared__ unsigned own[PRIMES];
    for (int k = threadIdx.x; k < PRIMES; k += 256) own[k] = primes[k];
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const unsigned number = numbers[i];
    unsigned found = 0;
    for (int k = 0; k < PRIMES; k++) found += number % own[k] == 0;
    out[i] = found;
}
// An odd prime divides a number where its inverse modulo 2^32 takes the number below the largest quotient.
__global__ void __launch_bounds__(256) factors_inverses(const unsigned *__restrict__ numbers, const uint2 *__restrict__ inverses, unsigned *__restrict__ out, int count) {
    __shared__ uint2 own[PRIMES];
    for (int k = threadIdx.x; k < PRIMES; k += 256) own[k] = inverses[k];
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const unsigned number = numbers[i];
    unsigned found = 0;
#pragma unroll 8
    for (int k = 0; k < PRIMES; k++) found += number * own[k].x <= own[k].y;
    out[i] = found;
}
// The quotient by a reciprocal, wrong by one at most: numbers are below 2^24.
__global__ void __launch_bounds__(256) factors_floats(const unsigned *__restrict__ numbers, const unsigned *__restrict__ primes, unsigned *__restrict__ out, int count) {
    __shared__ int2 own[PRIMES];
    for (int k = threadIdx.x; k < PRIMES; k += 256) own[k] = make_int2(primes[k], __float_as_int(1.0f / primes[k]));
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const int number = numbers[i];
    const float real = number;
    unsigned found = 0;
#pragma unroll 8
    for (int k = 0; k < PRIMES; k++) {
        const int prime = own[k].x, quotient = __float2int_rn(real * __int_as_float(own[k].y));
        found += number == quotient * prime;
    }
    out[i] = found;
}

Study divisors("factors_tried_by_remainders", "mathematics", 1 << 20, "how many of the first 512 odd primes divide each of 1048576 numbers",
    "a remainder by a number that is known at run time only for each prime",
    {{"inverses", "a product with the prime's inverse, compared with the largest quotient", {"integer_arithmetic"}}, {"floats", "the quotient by a reciprocal in floating point", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> list;
        std::vector<uint2> pairs_of;
        for (unsigned p = 3; list.size() < PRIMES; p += 2) {
            bool prime = true;
            for (unsigned q : list) prime = prime && p % q;
            if (!prime) continue;
            unsigned inverse = p;
            for (int k = 0; k < 5; k++) inverse *= 2u - p * inverse;
            list.push_back(p), pairs_of.push_back(make_uint2(inverse, ~0u / p));
        }
        const unsigned *primes = b.copy(list), *numbers = b.random<unsigned>(n, 1, 16777215);
        const uint2 *inverses = b.copy(pairs_of);
        unsigned *out = b.output<unsigned>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(factors, blocks(n, 256), 256, 0, numbers, primes, out, n)}, {"inverses", launch(factors_inverses, blocks(n, 256), 256, 0, numbers, inverses, out, n)},
            {"floats", launch(factors_floats, blocks(n, 256), 256, 0, numbers, primes, out, n)}};
    });

// --- keys stretched by many rounds: without a flaw ---

__global__ void __launch_bounds__(256) stretch(const uint2 *__restrict__ keys, uint2 *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    uint2 key = keys[i];
#pragma unroll 8
    for (unsigned round = 0; round < 256; round++) {
        key.x += __funnelshift_l(key.y, key.y, 7) ^ round;
        key.y ^= __funnelshift_l(key.x, key.x, 18) + 0x9e3779b9u;
        key.x *= 0x85ebca6bu, key.y *= 0xc2b2ae35u;
    }
    out[i] = key;
}

Study keys("sound_stretched_keys", "cryptography", 1 << 22, "256 rounds of mixing for 4194304 keys of 64 bits", "", {}, [](Buffers &b, long n) -> Sides {
    const unsigned *words = b.random<unsigned>(n * 2, 0, 4294967295.0);
    return {{"sound", launch(stretch, blocks(n, 256), 256, 0, reinterpret_cast<const uint2 *>(words), reinterpret_cast<uint2 *>(b.output<unsigned>(n * 2)), n)}};
});

}  // namespace
