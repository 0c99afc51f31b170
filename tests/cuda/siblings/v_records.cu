// Molecules, auctions, reference numbers, discs, texts.
#include <algorithm>

#include "../pairs/pair.cuh"

namespace {

using Key = unsigned long long;

// --- how alike molecules are to those asked for: 1024 bits each ---

constexpr int ASKED = 8, PARTS = 8;  // uint4 a molecule

struct Library {
    const uint4 *bits;
    const int *counts;
    const uint4 *asked;
    const int *asked_counts;
    int molecules;
};
__device__ __forceinline__ int common(uint4 a, uint4 b) { return __popc(a.x & b.x) + __popc(a.y & b.y) + __popc(a.z & b.z) + __popc(a.w & b.w); }
// Eight lanes a molecule.
__device__ __forceinline__ void compare(const Library &library, float *alike, int tile, int query) {
    const int part = threadIdx.x % PARTS, molecule = tile * 32 + threadIdx.x / PARTS;
    int both = common(library.bits[static_cast<size_t>(molecule) * PARTS + part], library.asked[query * PARTS + part]);
    for (int step = PARTS / 2; step; step /= 2) both += __shfl_xor_sync(~0u, both, step);
    if (part == 0)
        alike[static_cast<size_t>(query) * library.molecules + molecule] = __fdividef(static_cast<float>(both), static_cast<float>(library.counts[molecule] + library.asked_counts[query] - both));
}
__global__ void __launch_bounds__(256) compare_by_query(Library library, float *alike) { compare(library, alike, blockIdx.x, blockIdx.y); }
// The queries of a tile of molecules follow one another.
__global__ void __launch_bounds__(256) compare_by_tile(Library library, float *alike) { compare(library, alike, blockIdx.y, blockIdx.x); }
// All queries while a molecule is at hand.
__global__ void __launch_bounds__(256) compare_held(Library library, float *__restrict__ alike) {
    const int part = threadIdx.x % PARTS, molecule = blockIdx.x * 32 + threadIdx.x / PARTS;
    const uint4 own = library.bits[static_cast<size_t>(molecule) * PARTS + part];
    int shared_bits[ASKED];
#pragma unroll
    for (int q = 0; q < ASKED; ++q) {
        shared_bits[q] = common(own, library.asked[q * PARTS + part]);
#pragma unroll
        for (int step = PARTS / 2; step; step /= 2) shared_bits[q] += __shfl_xor_sync(~0u, shared_bits[q], step);
    }
    // A lane writes the query of its own number.
    int both = shared_bits[0];
#pragma unroll
    for (int q = 1; q < ASKED; ++q)
        if (part == q) both = shared_bits[q];
    alike[static_cast<size_t>(part) * library.molecules + molecule] = __fdividef(static_cast<float>(both), static_cast<float>(library.counts[molecule] + library.asked_counts[part] - both));
}

Study molecules("molecules_compared_query_after_query", "chemistry", 1 << 20, "how alike 1048576 molecules are to eight others, by 1024 bits each",
    "blocks go through 134 MB of molecules for one query before they begin the next: nothing of them is left in the cache",
    {{"by_tile", "the eight queries of a tile of molecules follow one another", {"cache_locality"}}, {"held", "a molecule is read once for all queries", {"cache_locality", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> words(n * 32), asked(ASKED * 32);
        std::vector<int> counts(n), asked_counts(ASKED);
        auto draw = [](std::vector<unsigned> &bits, std::vector<int> &count, unsigned seed) {
            for (size_t i = 0; i < bits.size(); i++) {
                bits[i] = hash(static_cast<unsigned>(i) + seed) & hash(static_cast<unsigned>(i) + seed + 0x5bd1e995u);
                count[i / 32] += __builtin_popcount(bits[i]);
            }
        };
        draw(words, counts, 0);
        draw(asked, asked_counts, 77);
        const Library library{reinterpret_cast<const uint4 *>(b.copy(words)), b.copy(counts), reinterpret_cast<const uint4 *>(b.copy(asked)), b.copy(asked_counts), static_cast<int>(n)};
        float *alike = b.output<float>(ASKED * n);
        const unsigned tiles = static_cast<unsigned>(n / 32);
        return {{"flawed", launch(compare_by_query, dim3(tiles, ASKED), 256, 0, library, alike)}, {"by_tile", launch(compare_by_tile, dim3(ASKED, tiles), 256, 0, library, alike)},
            {"held", launch(compare_held, tiles, 256, 0, library, alike)}};
    });

// --- the highest bid for each item; of equal ones the earliest; bids lie in the order of their items ---

struct Bid {
    int item;
    unsigned cents;
};
__device__ __forceinline__ Key rank_of(Bid bid, int number) { return static_cast<Key>(bid.cents) << 32 | (~static_cast<unsigned>(number)); }

__global__ void __launch_bounds__(512) highest_bids(const Bid *__restrict__ bids, Key *best, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const Bid bid = bids[i];
        atomicMax(best + bid.item, rank_of(bid, i));
    }
}
// The highest of a warp's bids for an item climbs to the first of them.
__global__ void __launch_bounds__(512) highest_bids_lanes(const Bid *__restrict__ bids, Key *best, int count) {
    const int lane = threadIdx.x % 32, padded = (count + 31) / 32 * 32;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < padded; i += gridDim.x * blockDim.x) {
        const Bid bid = i < count ? bids[i] : Bid{-1, 0u};
        Key highest = rank_of(bid, i);
        const int before = __shfl_up_sync(~0u, bid.item, 1);
        const bool first = lane == 0 || before != bid.item;
        const unsigned heads = __ballot_sync(~0u, first), behind = lane == 31 ? 0u : heads >> (lane + 1);
        const int left = behind ? __ffs(behind) - 1 : 31 - lane;  // lanes behind this one with the same item
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const Key other = __shfl_down_sync(~0u, highest, step);
            if (step <= left) highest = max(highest, other);
        }
        if (first && bid.item >= 0) atomicMax(best + bid.item, highest);
    }
}
// Eight bids a thread.
__global__ void __launch_bounds__(128) highest_bids_eight(const int4 *__restrict__ pairs, Key *best, int count) {
    const int first = (blockIdx.x * 128 + threadIdx.x) * 8;
    if (first >= count) return;
    Bid bid[8];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int4 two = pairs[first / 2 + k];
        bid[2 * k] = Bid{two.x, static_cast<unsigned>(two.y)}, bid[2 * k + 1] = Bid{two.z, static_cast<unsigned>(two.w)};
    }
    Key highest = rank_of(bid[0], first);
#pragma unroll
    for (int k = 1; k < 8; ++k) {
        const Key own = rank_of(bid[k], first + k);
        if (bid[k].item != bid[k - 1].item) {
            atomicMax(best + bid[k - 1].item, highest);
            highest = own;
        } else highest = max(highest, own);
    }
    atomicMax(best + bid[7].item, highest);
}

Study auctions("highest_bids_bid_after_bid", "commerce", 1 << 24, "the highest of 16777216 bids for each of 524288 items, half of the bids for 512 of them",
    "an atomic for each bid, though all bids for an item lie together",
    {{"lanes", "lanes of a warp with the same item find their highest first", {"global_atomics"}}, {"eight", "eight bids a thread, an atomic where the item changes", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int items = 1 << 19, sought = 512, every = items / sought;
        const long of_sought = n / 2 / sought, of_others = n / 2 / (items - sought) + 1;
        std::vector<Bid> bids;
        bids.reserve(n);
        for (int item = 0; item < items; item++) {
            const long count = item % every == 100 ? of_sought : of_others - (hash(static_cast<unsigned>(item)) & 1);
            for (long k = 0; k < count && static_cast<long>(bids.size()) < n; k++) bids.push_back({item, 100 + hash(static_cast<unsigned>(bids.size())) % 50000});
        }
        while (static_cast<long>(bids.size()) < n) bids.push_back({items - 1, 100 + hash(static_cast<unsigned>(bids.size())) % 50000});
        const Bid *all = b.copy(bids);
        Key *best = b.output<Key>(items, true);
        b.tolerance = 0.0;
        const int count = static_cast<int>(n);
        const unsigned grid = std::min(blocks(n, 512), 16u * multiprocessors());
        return {{"flawed", launch(highest_bids, grid, 512, 0, all, best, count)}, {"lanes", launch(highest_bids_lanes, grid, 512, 0, all, best, count)},
            {"eight", launch(highest_bids_eight, blocks(n, 1024), 128, 0, reinterpret_cast<const int4 *>(all), best, count)}};
    });

// --- check numbers of references of 64 digits, two digits a byte: what is left over by 97 ---

constexpr int REFERENCE = 4;  // uint2, of sixteen digits each

__device__ __forceinline__ unsigned left_over(unsigned digits, unsigned rest) {
    int shift = 32;
    do {
        shift -= 4;
        rest = (10 * rest + (digits >> shift & 15)) % 97;
    } while (shift > 0);
    return rest;
}
__global__ void __launch_bounds__(256) check_numbers(const uint2 *__restrict__ references, unsigned *__restrict__ rests, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    unsigned rest = 0;
    for (int k = 0; k < REFERENCE; k++) {
        const uint2 digits = references[static_cast<size_t>(k) * count + i];
        rest = left_over(digits.y, left_over(digits.x, rest));
    }
    rests[i] = rest;
}
// The number of eight digits first; 100000000 leaves 81.
__device__ __forceinline__ unsigned left_over_of_eight(unsigned digits, unsigned rest) {
    unsigned number = 0;
#pragma unroll
    for (int shift = 28; shift >= 0; shift -= 4) number = 10 * number + (digits >> shift & 15);
    return (81 * rest + number) % 97;
}
__global__ void __launch_bounds__(256) check_numbers_eight(const uint2 *__restrict__ references, unsigned *__restrict__ rests, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    unsigned rest = 0;
    for (int k = 0; k < REFERENCE; k++) {
        const uint2 digits = references[static_cast<size_t>(k) * count + i];
        rest = left_over_of_eight(digits.y, left_over_of_eight(digits.x, rest));
    }
    rests[i] = rest;
}
// Hundreds in the bytes of a word: 100 leaves 3, 10000 leaves 9, 1000000 leaves 27.
__device__ __forceinline__ unsigned gathered(unsigned digits, unsigned rest) {
    const unsigned tens = digits >> 4 & 0x0f0f0f0fu, hundreds = digits - 6 * tens;
    return __dp4a(hundreds, 0x1b090301u, 81 * rest);
}
__global__ void __launch_bounds__(256) check_numbers_hundreds(const uint2 *__restrict__ references, unsigned *__restrict__ rests, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    unsigned rest = 0;
    for (int k = 0; k < REFERENCE; k++) {
        const uint2 digits = references[static_cast<size_t>(k) * count + i];
        rest = gathered(digits.y, gathered(digits.x, rest)) % 97;
    }
    rests[i] = rest;
}

Study references("reference_numbers_remainder_per_digit", "banking", 1 << 22, "what 4194304 references of 64 digits leave over by 97, references interleaved",
    "a remainder for each digit",
    {{"eight", "a remainder for eight digits", {"integer_arithmetic"}}, {"hundreds", "a remainder for sixteen digits, hundreds gathered with byte products", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> words(n * REFERENCE * 2);
        for (size_t i = 0; i < words.size(); i++) {
            unsigned number = hash(static_cast<unsigned>(i)) % 100000000, digits = 0;
            for (int shift = 0; shift < 32; shift += 4, number /= 10) digits |= number % 10 << shift;
            words[i] = digits;
        }
        const auto *digits = reinterpret_cast<const uint2 *>(b.copy(words));
        unsigned *rests = b.output<unsigned>(n);
        b.tolerance = 0.0;
        const int count = static_cast<int>(n);
        return {{"flawed", launch(check_numbers, blocks(n, 256), 256, 0, digits, rests, count)}, {"eight", launch(check_numbers_eight, blocks(n, 256), 256, 0, digits, rests, count)},
            {"hundreds", launch(check_numbers_hundreds, blocks(n, 256), 256, 0, digits, rests, count)}};
    });

// --- how often a disc must seek from each cluster to the end of its file ---

constexpr int GROUP = 2048;  // clusters, among which the files of a group lie

// The last cluster of a file names itself.
__global__ void __launch_bounds__(256) seeks_ahead(const unsigned short *__restrict__ next, int *__restrict__ seeks, int clusters) {
    const int cluster = blockIdx.x * 256 + threadIdx.x;
    if (cluster >= clusters) return;
    const unsigned short *group = next + cluster / GROUP * GROUP;
    int at = cluster % GROUP, found = 0;
    for (;;) {
        const int to = group[at];
        if (to == at) break;
        if (to != at + 1) ++found;
        at = to;
    }
    seeks[cluster] = found;
}
__global__ void __launch_bounds__(512) seeks_ahead_shared(const uint2 *__restrict__ next, int *__restrict__ seeks) {
    __shared__ uint2 words[GROUP / 4];
    words[threadIdx.x] = next[blockIdx.x * (GROUP / 4) + threadIdx.x];
    __syncthreads();
    const auto *group = reinterpret_cast<const unsigned short *>(words);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        int at = k * 512 + threadIdx.x, found = 0;
        for (int to = group[at]; to != at; to = group[at]) {
            found += to != at + 1;
            at = to;
        }
        seeks[blockIdx.x * GROUP + k * 512 + threadIdx.x] = found;
    }
}
// After each round a cluster knows of twice as many ahead; files have up to 64.
__global__ void __launch_bounds__(512) seeks_ahead_rounds(const unsigned short *__restrict__ next, int *__restrict__ seeks) {
    __shared__ unsigned ahead[GROUP];  // a cluster further on, and above it the seeks until there
    unsigned own[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const unsigned at = k * 512 + threadIdx.x, to = next[blockIdx.x * GROUP + at];
        ahead[at] = own[k] = to | (to != at && to != at + 1 ? 0x10000u : 0u);
    }
    for (int reach = 1; reach < 64; reach *= 2) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 4; ++k) own[k] = (own[k] & 0xffff0000u) + ahead[own[k] & 0xffffu];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 4; ++k) ahead[k * 512 + threadIdx.x] = own[k];
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) seeks[blockIdx.x * GROUP + k * 512 + threadIdx.x] = static_cast<int>(own[k] >> 16);
}

Study disc("disc_seeks_cluster_by_cluster", "file systems", 1 << 22, "seeks from each of 4194304 clusters to the end of its file of up to 64 clusters",
    "each cluster of a file is looked up in global memory with the number that the one before it held",
    {{"shared", "2048 clusters in shared memory, followed there", {"memory_latency"}}, {"rounds", "the same, with twice as many ahead known after each of six rounds", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned short> table(n);
        for (long first = 0; first < n; first += GROUP) {
            const unsigned factor = hash(static_cast<unsigned>(first)) | 1, change = hash(static_cast<unsigned>(first + 1)) % (GROUP / 2);
            auto place = [&](unsigned j) { return ((j / 2 * factor % (GROUP / 2)) ^ change) * 2 + j % 2; };
            for (unsigned j = 0; j < GROUP; j++) table[first + place(j)] = static_cast<unsigned short>(place(j % 64 == 63 ? j : j + 1));
        }
        const unsigned short *next = b.copy(table);
        int *seeks = b.output<int>(n);
        b.tolerance = 0.0;
        const int clusters = static_cast<int>(n);
        return {{"flawed", launch(seeks_ahead, blocks(n, 256), 256, 0, next, seeks, clusters)}, {"shared", launch(seeks_ahead_shared, n / GROUP, 512, 0, reinterpret_cast<const uint2 *>(next), seeks)},
            {"rounds", launch(seeks_ahead_rounds, n / GROUP, 512, 0, next, seeks)}};
    });

// --- how far pairs of names agree ---

constexpr int NAME = 64, FAMILY = 64;  // bytes a name, names that begin alike

__global__ void __launch_bounds__(256) agreement(const char *__restrict__ names, const int2 *__restrict__ pairs, int *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const char *left = names + static_cast<size_t>(pairs[i].x) * NAME, *right = names + static_cast<size_t>(pairs[i].y) * NAME;
    const char *from = left;
    while (left - from < NAME && *left == *right) ++left, ++right;
    out[i] = static_cast<int>(left - from);
}
// Four letters a step.
__global__ void __launch_bounds__(256) agreement_words(const unsigned *__restrict__ names, const int2 *__restrict__ pairs, int *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const unsigned *left = names + static_cast<size_t>(pairs[i].x) * (NAME / 4), *right = names + static_cast<size_t>(pairs[i].y) * (NAME / 4);
    int length = NAME;
    for (int k = 0; k < NAME / 4; ++k) {
        const unsigned differ = left[k] ^ right[k];
        if (differ) {
            length = 4 * k + (__ffs(static_cast<int>(differ)) - 1) / 8;
            break;
        }
    }
    out[i] = length;
}
// Sixteen letters a step.
__global__ void __launch_bounds__(256) agreement_vectors(const ulonglong2 *__restrict__ names, const int2 *__restrict__ pairs, int *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const ulonglong2 *left = names + static_cast<size_t>(pairs[i].x) * (NAME / 16), *right = names + static_cast<size_t>(pairs[i].y) * (NAME / 16);
    int length = NAME;
    for (int k = 0; k < NAME / 16; ++k) {
        const ulonglong2 a = left[k], z = right[k];
        const Key low = a.x ^ z.x, high = a.y ^ z.y;
        if (low | high) {
            length = 16 * k + (low ? (__ffsll(static_cast<long long>(low)) - 1) / 8 : 8 + (__ffsll(static_cast<long long>(high)) - 1) / 8);
            break;
        }
    }
    out[i] = length;
}

Study names("names_compared_letter_by_letter", "records", 1 << 20, "how far 1048576 pairs among 262144 names of 64 letters agree",
    "two bytes are loaded for each letter, up to 64 times one after the other",
    {{"words", "four letters compared at once", {"narrow_access", "memory_latency"}}, {"vectors", "sixteen letters compared at once", {"narrow_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = 1 << 18;
        std::vector<char> letters(static_cast<size_t>(count) * NAME);
        for (int name = 0; name < count; name++) {
            const int alike = 16 + static_cast<int>(hash(static_cast<unsigned>(name)) % 49);
            for (int k = 0; k < NAME; k++) letters[static_cast<size_t>(name) * NAME + k] = static_cast<char>('a' + hash(static_cast<unsigned>((k < alike ? name / FAMILY + 7 * count : name) * NAME + k)) % 26);
        }
        std::vector<int2> chosen(n);
        for (long i = 0; i < n; i++) {
            const unsigned draw = hash(static_cast<unsigned>(i)), family = draw % (count / FAMILY) * FAMILY, other = hash(draw);
            chosen[i] = make_int2(static_cast<int>(family + other % FAMILY), static_cast<int>(family + (other >> 8) % FAMILY));
        }
        const char *text = b.copy(letters);
        const int2 *pairs = b.copy(chosen);
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        const int m = static_cast<int>(n);
        return {{"flawed", launch(agreement, blocks(n, 256), 256, 0, text, pairs, out, m)}, {"words", launch(agreement_words, blocks(n, 256), 256, 0, reinterpret_cast<const unsigned *>(text), pairs, out, m)},
            {"vectors", launch(agreement_vectors, blocks(n, 256), 256, 0, reinterpret_cast<const ulonglong2 *>(text), pairs, out, m)}};
    });

// --- signatures of documents: the least of each of 32 hashes of their words ---

constexpr int HASHES = 32, PIECE = 4096;

struct Documents {
    const unsigned *words;
    const int *first;  // word of each document, and the number of all words
};
__device__ __forceinline__ void least_hashes(const unsigned *words, int from, int step, int end, int stride, unsigned (*warps)[HASHES], unsigned *signature, bool alone) {
    unsigned least[HASHES];
#pragma unroll
    for (int k = 0; k < HASHES; ++k) least[k] = ~0u;
    for (int piece = from; piece < end; piece += stride) {
        const int last = min(piece + step, end);
        for (int i = piece + threadIdx.x; i < last; i += 256) {
            const unsigned word = words[i];
#pragma unroll
            for (int k = 0; k < HASHES; ++k) least[k] = min(least[k], word * (hash(k + 1) | 1) + hash(k + 101));
        }
    }
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < HASHES; ++k) {
        const unsigned found = __reduce_min_sync(~0u, least[k]);
        if (lane == k) warps[threadIdx.x / 32][k] = found;
    }
    __syncthreads();
    if (threadIdx.x >= HASHES) return;
    unsigned found = warps[0][lane];
    for (int warp = 1; warp < 8; ++warp) found = min(found, warps[warp][lane]);
    if (alone) signature[lane] = found;
    else atomicMin(signature + lane, found);
}
// A block a document.
__global__ void __launch_bounds__(256) sign_documents(Documents documents, unsigned *signatures) {
    __shared__ unsigned warps[8][HASHES];
    const int document = blockIdx.x, end = documents.first[document + 1];
    least_hashes(documents.words, documents.first[document], PIECE, end, PIECE, warps, signatures + document * HASHES, true);
}
// Sixteen blocks a document.
__global__ void __launch_bounds__(256) sign_documents_shared_out(Documents documents, unsigned *signatures) {
    __shared__ unsigned warps[8][HASHES];
    const int document = blockIdx.x, from = documents.first[document] + static_cast<int>(blockIdx.y) * PIECE, end = documents.first[document + 1];
    if (from >= end) return;
    least_hashes(documents.words, from, PIECE, end, PIECE * gridDim.y, warps, signatures + document * HASHES, false);
}
// A block 4096 words; x the document, y its first word.
__global__ void __launch_bounds__(256) sign_documents_by_table(Documents documents, const int2 *__restrict__ table, unsigned *signatures) {
    __shared__ unsigned warps[8][HASHES];
    const int2 piece = table[blockIdx.x];
    least_hashes(documents.words, piece.y, PIECE, min(piece.y + PIECE, documents.first[piece.x + 1]), PIECE, warps, signatures + piece.x * HASHES, false);
}

Study signatures("documents_signed_a_block_each", "text search", 1 << 24, "the least of 32 hashes of the words of each of 512 documents, 16777216 words in all, a document 8000 to 370000",
    "a block goes through all words of its document: the longest has eleven times the mean",
    {{"by_table", "a block for each 4096 words, from a table", {"workload_imbalance"}}, {"shared_out", "sixteen blocks a document", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = 512;
        auto share = [](int d) { return 1.0 / (d * 37 % 512 + 12); };  // in no order
        double all = 0.0, before = 0.0;
        for (int d = 0; d < count; d++) all += share(d);
        std::vector<int> first(count + 1, 0);
        std::vector<int2> table;
        for (int d = 0; d < count; d++) {
            before += share(d);
            first[d + 1] = d + 1 == count ? static_cast<int>(n) : static_cast<int>(static_cast<double>(n) * before / all);
            for (int word = first[d]; word < first[d + 1]; word += PIECE) table.push_back(make_int2(d, word));
        }
        const Documents documents{b.random<unsigned>(n, 0, 4294967295.0), b.copy(first)};
        const unsigned *none = b.copy(std::vector<unsigned>(count * HASHES, ~0u));
        const int2 *pieces = b.copy(table);
        unsigned *found = b.changed(none, count * HASHES);
        b.tolerance = 0.0;
        return {{"flawed", launch(sign_documents, count, 256, 0, documents, found)}, {"by_table", launch(sign_documents_by_table, static_cast<unsigned>(table.size()), 256, 0, documents, pieces, found)},
            {"shared_out", launch(sign_documents_shared_out, dim3(count, 16), 256, 0, documents, found)}};
    });

}  // namespace
