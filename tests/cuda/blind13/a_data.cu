// Documents, names, addresses of a network, tours and speech. Each kernel has one weakness and two ways out.
#include <algorithm>

#include "../pairs/pair.cuh"

namespace {

// --- signatures of documents: the least of (a x + b) mod p over their shingles, for 64 pairs of a and b ---

constexpr int SHINGLES = 128, SIGNATURE = 64, DOCUMENTS_A_BLOCK = 4;
constexpr unsigned long long MERSENNE = 2147483647ull;

struct HashFamily {
    const unsigned *a, *b;
    unsigned long long prime;
};

__global__ void __launch_bounds__(256) signatures(const unsigned *__restrict__ shingles, unsigned *__restrict__ out, HashFamily family) {
    const int k = threadIdx.x % SIGNATURE, document = blockIdx.x * DOCUMENTS_A_BLOCK + threadIdx.x / SIGNATURE;
    const unsigned *own = shingles + static_cast<size_t>(document) * SHINGLES;
    const unsigned long long a = family.a[k], b = family.b[k];
    unsigned least = 0xffffffffu;
    for (int s = 0; s < SHINGLES; s++) least = min(least, static_cast<unsigned>((a * own[s] + b) % family.prime));
    out[static_cast<size_t>(document) * SIGNATURE + k] = least;
}
// 2^31 is 1 modulo 2^31 - 1: the upper bits are added to the lower ones.
__global__ void __launch_bounds__(256) signatures_folded(const unsigned *__restrict__ shingles, unsigned *__restrict__ out, HashFamily family) {
    const int k = threadIdx.x % SIGNATURE, document = blockIdx.x * DOCUMENTS_A_BLOCK + threadIdx.x / SIGNATURE;
    const unsigned *own = shingles + static_cast<size_t>(document) * SHINGLES;
    const unsigned long long a = family.a[k], b = family.b[k];
    const unsigned prime = static_cast<unsigned>(MERSENNE);
    unsigned least = 0xffffffffu;
#pragma unroll 4
    for (int s = 0; s < SHINGLES; s++) {
        const unsigned long long v = a * own[s] + b, once = (v & MERSENNE) + (v >> 31);  // at most 34 bits
        unsigned r = (static_cast<unsigned>(once) & prime) + static_cast<unsigned>(once >> 31);
        if (r >= prime) r -= prime;
        least = min(least, r);
    }
    out[static_cast<size_t>(document) * SIGNATURE + k] = least;
}
// The prime is known to the compiler, which multiplies instead of dividing.
template <unsigned long long PRIME>
__global__ void __launch_bounds__(256) signatures_constant(const unsigned *__restrict__ shingles, unsigned *__restrict__ out, HashFamily family) {
    const int k = threadIdx.x % SIGNATURE, document = blockIdx.x * DOCUMENTS_A_BLOCK + threadIdx.x / SIGNATURE;
    const unsigned *own = shingles + static_cast<size_t>(document) * SHINGLES;
    const unsigned long long a = family.a[k], b = family.b[k];
    unsigned least = 0xffffffffu;
    for (int s = 0; s < SHINGLES; s++) least = min(least, static_cast<unsigned>((a * own[s] + b) % PRIME));
    out[static_cast<size_t>(document) * SIGNATURE + k] = least;
}

Study min_hash("min_hash_remainder_by_a_parameter", "text", 32768, "signatures of 64 least hashes of 32768 documents of 128 shingles",
    "each hash is a 64-bit remainder by a prime that is handed over at run time",
    {{"folded", "the prime is 2^31 - 1: upper bits added to the lower ones", {"integer_arithmetic"}}, {"constant", "the prime as a template's parameter", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *shingles = b.random<unsigned>(n * SHINGLES, 0, 4294967296.0);
        const HashFamily family{b.random<unsigned>(SIGNATURE, 1, 2147483647.0), b.random<unsigned>(SIGNATURE, 0, 2147483647.0), MERSENNE};
        unsigned *out = b.output<unsigned>(n * SIGNATURE);
        b.tolerance = 0.0;
        const unsigned grid = blocks(n, DOCUMENTS_A_BLOCK);
        return {{"flawed", launch(signatures, grid, 256, 0, shingles, out, family)}, {"folded", launch(signatures_folded, grid, 256, 0, shingles, out, family)},
            {"constant", launch(signatures_constant<MERSENNE>, grid, 256, 0, shingles, out, family)}};
    });

// --- names with a capital letter and small ones after it: a column of strings, one after the other ---

using Letter = unsigned char;

__device__ __forceinline__ Letter small(Letter c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }
__device__ __forceinline__ Letter capital(Letter c) { return c >= 'a' && c <= 'z' ? c - 32 : c; }

__global__ void __launch_bounds__(256) capitalise(const Letter *__restrict__ in, const int *__restrict__ offsets, Letter *__restrict__ out, int strings) {
    const int s = blockIdx.x * 256 + threadIdx.x;
    if (s >= strings) return;
    const int begin = offsets[s], end = offsets[s + 1];
    for (int i = begin; i < end; i++) out[i] = i == begin ? capital(in[i]) : small(in[i]);
}
// Eight lanes take a string.
__global__ void __launch_bounds__(256) capitalise_eight_lanes(const Letter *__restrict__ in, const int *__restrict__ offsets, Letter *__restrict__ out, int strings) {
    const int s = (blockIdx.x * 256 + threadIdx.x) / 8;
    if (s >= strings) return;
    const int begin = offsets[s], end = offsets[s + 1];
    for (int i = begin + threadIdx.x % 8; i < end; i += 8) out[i] = i == begin ? capital(in[i]) : small(in[i]);
}
// A warp has the strings of 32 lanes: all of their letters are made small, side by side; then each lane mends its string's first.
__global__ void __launch_bounds__(256) capitalise_warp(const Letter *__restrict__ in, const int *__restrict__ offsets, Letter *__restrict__ out, int strings) {
    const int lane = threadIdx.x % 32, s = blockIdx.x * 256 + threadIdx.x, first = s - lane;
    if (first >= strings) return;
    const int begin = offsets[min(s, strings)], end = offsets[min(s + 1, strings)], last = offsets[min(first + 32, strings)];
#pragma unroll 4
    for (int i = offsets[first] + lane; i < last; i += 32) out[i] = small(in[i]);
    __syncwarp();
    if (begin < end) out[begin] = capital(in[begin]);
}

Study names("names_capitalised_string_a_thread", "databases", 1 << 21, "2097152 strings of 0 to 47 letters, the first letter made a capital, the others small",
    "a thread for each string: the lanes of a warp read and write bytes far apart",
    {{"eight_lanes", "eight lanes a string", {"uncoalesced_access"}}, {"warp", "the letters of 32 strings in order, then their first letters", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> offsets(n + 1);
        for (long i = 0; i < n; i++) offsets[i + 1] = offsets[i] + static_cast<int>(hash(static_cast<unsigned>(i)) % 48);
        const Letter *in = b.random<Letter>(offsets[n], 32, 127);
        const int *starts = b.copy(offsets);
        Letter *out = b.output<Letter>(offsets[n]);
        b.tolerance = 0.0;
        const int strings = static_cast<int>(n);
        return {{"flawed", launch(capitalise, blocks(n, 256), 256, 0, in, starts, out, strings)}, {"eight_lanes", launch(capitalise_eight_lanes, blocks(n, 32), 256, 0, in, starts, out, strings)},
            {"warp", launch(capitalise_warp, blocks(n, 256), 256, 0, in, starts, out, strings)}};
    });

// --- next hops of addresses: the longest prefix that matches ---

struct Trie {
    const int2 *child;  // -1: none
    const int *hop;     // 0: none ends here
};

__global__ void __launch_bounds__(256) next_hops(const unsigned *__restrict__ addresses, int *__restrict__ out, Trie trie, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    const unsigned address = addresses[i];
    int node = 0, best = 0;
    for (int bit = 31; node >= 0; bit--) {
        const int hop = trie.hop[node];
        if (hop) best = hop;
        if (bit < 0) break;
        const int2 child = trie.child[node];
        node = address >> bit & 1 ? child.y : child.x;
    }
    out[i] = best;
}
// The first sixteen bits at once: where they lead and the best hop until there.
__global__ void __launch_bounds__(256) next_hops_from_16(const unsigned *__restrict__ addresses, int *__restrict__ out, Trie trie, const int2 *__restrict__ after_16, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    const unsigned address = addresses[i];
    const int2 start = after_16[address >> 16];
    int node = start.x, best = start.y;
    for (int bit = 15; node >= 0; bit--) {
        const int hop = trie.hop[node];
        if (hop) best = hop;
        if (bit < 0) break;
        const int2 child = trie.child[node];
        node = address >> bit & 1 ? child.y : child.x;
    }
    out[i] = best;
}
// A table of all 24-bit prefixes; there are no longer ones.
__global__ void __launch_bounds__(256) next_hops_direct(const unsigned *__restrict__ addresses, int *__restrict__ out, const unsigned short *__restrict__ of_24, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) out[i] = of_24[addresses[i] >> 8];
}

Study routing("routes_found_bit_by_bit", "networks", 1 << 22, "next hops of 4194304 addresses among 60000 routes of 8 to 24 bits, by a trie",
    "a step down the trie for each bit, each with loads that wait for the one before",
    {{"from_16", "the first sixteen bits by a table", {"memory_latency"}}, {"direct", "a table of all 24-bit prefixes", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int ROUTES = 60000;
        struct Route {
            unsigned prefix;
            int bits, hop;
        };
        std::vector<Route> routes(ROUTES);
        for (int r = 0; r < ROUTES; r++) {
            const unsigned kind = hash(r * 3 + 1) % 100;
            const int bits = kind < 55 ? 24 : kind < 95 ? 16 + static_cast<int>(hash(r * 3 + 2) % 8) : 8 + static_cast<int>(hash(r * 3 + 2) % 8);
            routes[r] = {hash(r * 3) >> (32 - bits) << (32 - bits), bits, 1 + static_cast<int>(hash(r + 99) % 64)};
        }
        // Of two routes with the same prefix the later holds, in the trie as in the tables.
        std::vector<int2> child(1, make_int2(-1, -1));
        std::vector<int> hop(1, 0);
        for (const Route &r : routes) {
            int node = 0;
            for (int k = 0; k < r.bits; k++) {
                const bool right = r.prefix >> (31 - k) & 1;
                int next = right ? child[node].y : child[node].x;
                if (next < 0) {
                    next = static_cast<int>(child.size());
                    (right ? child[node].y : child[node].x) = next;
                    child.push_back(make_int2(-1, -1));
                    hop.push_back(0);
                }
                node = next;
            }
            hop[node] = r.hop;
        }
        std::vector<int2> after_16(65536);
        for (unsigned top = 0; top < 65536; top++) {
            int node = 0, best = 0;
            for (int bit = 15; bit >= 0 && node >= 0; bit--) {
                if (hop[node]) best = hop[node];
                node = top >> bit & 1 ? child[node].y : child[node].x;
            }
            after_16[top] = make_int2(node, best);
        }
        std::stable_sort(routes.begin(), routes.end(), [](const Route &x, const Route &y) { return x.bits < y.bits; });
        std::vector<unsigned short> of_24(1 << 24, 0);
        for (const Route &r : routes) std::fill_n(of_24.begin() + (r.prefix >> 8), size_t{1} << (24 - r.bits), static_cast<unsigned short>(r.hop));
        std::vector<unsigned> addresses(n);
        for (long i = 0; i < n; i++) {
            const unsigned draw = hash(static_cast<unsigned>(i)), any = hash(draw + 5);
            const Route &r = routes[draw % ROUTES];
            addresses[i] = i % 16 ? r.prefix | any >> r.bits : any;
        }
        const Trie trie{b.copy(child), b.copy(hop)};
        const int2 *table = b.copy(after_16);
        const unsigned short *direct = b.copy(of_24);
        const unsigned *in = b.copy(addresses);
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        const int count = static_cast<int>(n);
        return {{"flawed", launch(next_hops, blocks(n, 256), 256, 0, in, out, trie, count)}, {"from_16", launch(next_hops_from_16, blocks(n, 256), 256, 0, in, out, trie, table, count)},
            {"direct", launch(next_hops_direct, blocks(n, 256), 256, 0, in, out, direct, count)}};
    });

// --- lengths of tours of twelve cities that are given by their number in the list of all ---

constexpr int CITIES = 12, OTHERS = CITIES - 1;

__device__ __forceinline__ void copy_distances(int *held, const int *distances) {
    for (int i = threadIdx.x; i < CITIES * CITIES; i += blockDim.x) held[i] = distances[i];
    __syncthreads();
}

__global__ void __launch_bounds__(256) tour_lengths(const int *__restrict__ distances, int *__restrict__ out, unsigned first) {
    __shared__ int d[CITIES * CITIES];
    copy_distances(d, distances);
    const unsigned index = blockIdx.x * 256 + threadIdx.x;
    unsigned number = first + index;
    int left[OTHERS];
    for (int k = 0; k < OTHERS; k++) left[k] = k + 1;
    int here = 0, length = 0;
    for (int k = OTHERS; k > 0; k--) {
        const int pick = static_cast<int>(number % k);
        number /= k;
        const int city = left[pick];
        for (int j = pick; j + 1 < k; j++) left[j] = left[j + 1];
        length += d[here * CITIES + city];
        here = city;
    }
    out[index] = length + d[here * CITIES];
}
// The cities that are left as digits of a 64-bit number.
__global__ void __launch_bounds__(256) tour_lengths_digits(const int *__restrict__ distances, int *__restrict__ out, unsigned first) {
    __shared__ int d[CITIES * CITIES];
    copy_distances(d, distances);
    const unsigned index = blockIdx.x * 256 + threadIdx.x;
    unsigned number = first + index;
    unsigned long long left = 0xba987654321ull;
    int here = 0, length = 0;
#pragma unroll
    for (int k = OTHERS; k > 0; k--) {
        const int shift = 4 * static_cast<int>(number % k);
        number /= k;
        const int city = static_cast<int>(left >> shift) & 15;
        const unsigned long long before = (1ull << shift) - 1;
        left = (left & before) | (left >> 4 & ~before);
        length += d[here * CITIES + city];
        here = city;
    }
    out[index] = length + d[here * CITIES];
}
// Every place is known when it is compiled: each city moves up or stays.
__global__ void __launch_bounds__(256) tour_lengths_chosen(const int *__restrict__ distances, int *__restrict__ out, unsigned first) {
    __shared__ int d[CITIES * CITIES];
    copy_distances(d, distances);
    const unsigned index = blockIdx.x * 256 + threadIdx.x;
    unsigned number = first + index;
    int left[OTHERS];
#pragma unroll
    for (int k = 0; k < OTHERS; k++) left[k] = k + 1;
    int here = 0, length = 0;
#pragma unroll
    for (int k = OTHERS; k > 0; k--) {
        const int pick = static_cast<int>(number % k);
        number /= k;
        int city = left[k - 1];
#pragma unroll
        for (int j = 0; j + 1 < k; j++) {
            if (j == pick) city = left[j];
            if (j >= pick) left[j] = left[j + 1];
        }
        length += d[here * CITIES + city];
        here = city;
    }
    out[index] = length + d[here * CITIES];
}

Study tours("tour_numbers_unranked_in_local", "optimisation", 1 << 24, "lengths of 16777216 of the tours of twelve cities, each from its number",
    "the cities that are left are an array that is indexed by the number's digits",
    {{"digits", "the list as digits of a 64-bit number", {"local_memory"}}, {"chosen", "unrolled, each city of the list moves up or stays", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const int *distances = b.random<int>(CITIES * CITIES, 10, 1000);
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        const unsigned first = 1234567;
        return {{"flawed", launch(tour_lengths, n / 256, 256, 0, distances, out, first)}, {"digits", launch(tour_lengths_digits, n / 256, 256, 0, distances, out, first)},
            {"chosen", launch(tour_lengths_chosen, n / 256, 256, 0, distances, out, first)}};
    });

// --- speech of a telephone line: eight bits by the mu law to sixteen ---

__constant__ short EXPANDED[256];

__host__ __device__ __forceinline__ int expanded(unsigned code) {
    const unsigned c = ~code;
    const int size = static_cast<int>(((c & 15) << 3) + 132) << (c >> 4 & 7);
    return c & 128 ? 132 - size : size - 132;
}

template <typename Expand>
__device__ __forceinline__ unsigned two(unsigned codes, Expand expand) { return (expand(codes & 255) & 0xffff) | static_cast<unsigned>(expand(codes >> 8 & 255)) << 16; }
template <typename Expand>
__device__ __forceinline__ uint4 eight(uint2 codes, Expand expand) { return make_uint4(two(codes.x, expand), two(codes.x >> 16, expand), two(codes.y, expand), two(codes.y >> 16, expand)); }

__global__ void __launch_bounds__(256) expand_speech(const uint2 *__restrict__ in, uint4 *__restrict__ out, int n) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) out[i] = eight(in[i], [](unsigned c) { return static_cast<int>(EXPANDED[c]); });
}
__global__ void __launch_bounds__(256) expand_speech_shared(const uint2 *__restrict__ in, uint4 *__restrict__ out, int n, const short *__restrict__ table) {
    __shared__ int held[256];
    held[threadIdx.x] = table[threadIdx.x];
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) out[i] = eight(in[i], [&](unsigned c) { return held[c]; });
}
__global__ void __launch_bounds__(256) expand_speech_computed(const uint2 *__restrict__ in, uint4 *__restrict__ out, int n) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) out[i] = eight(in[i], [](unsigned c) { return expanded(c); });
}

Study speech("mu_law_table_in_constants", "telephony", 1 << 25, "33554432 samples of telephone speech from eight bits to sixteen by the mu law",
    "the table of 256 values is in constant memory, lanes want up to 32 places of it",
    {{"shared", "the table in shared memory", {"constant_divergence"}}, {"computed", "no table: from the code's bits", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<short> table(256);
        for (unsigned c = 0; c < 256; c++) table[c] = static_cast<short>(expanded(c));
        CHECK(cudaMemcpyToSymbol(EXPANDED, table.data(), sizeof EXPANDED));
        const short *copied = b.copy(table);
        const unsigned char *codes = b.random<unsigned char>(n, 0, 256);
        unsigned *samples = b.output<unsigned>(n / 2);
        b.tolerance = 0.0;
        auto in = reinterpret_cast<const uint2 *>(codes);
        auto out = reinterpret_cast<uint4 *>(samples);
        const int words = static_cast<int>(n / 8);
        const unsigned grid = multiprocessors() * 8;
        return {{"flawed", launch(expand_speech, grid, 256, 0, in, out, words)}, {"shared", launch(expand_speech_shared, grid, 256, 0, in, out, words, copied)},
            {"computed", launch(expand_speech_computed, grid, 256, 0, in, out, words)}};
    });

}  // namespace
