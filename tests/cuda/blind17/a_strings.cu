// Letters of genomes and proteins, and the tables of a database.
#include <algorithm>

#include "../pairs/pair.cuh"

namespace {

// --- the longest common subsequence of a read and a piece of the genome, 64 places a step ---

// One step of the recurrence: bits of `row` that are zero are where the subsequence has grown.
__device__ __forceinline__ unsigned long long grown(unsigned long long row, unsigned long long mask) {
    const unsigned long long u = row & mask;
    return (row + u) | (row - u);
}
// Letters come sixteen to a word, word by word of all pairs.
__device__ __forceinline__ void letter_masks(const unsigned *__restrict__ reads, int pair, int pairs, unsigned long long *masks) {
#pragma unroll
    for (int k = 0; k < 4; k++) masks[k] = 0;
    for (int w = 0; w < 4; w++) {
        unsigned letters = reads[w * pairs + pair];
        for (int i = 0; i < 16; i++, letters >>= 2) masks[letters & 3] |= 1ull << (w * 16 + i);
    }
}
__global__ void __launch_bounds__(128) common_letters(const unsigned *__restrict__ reads, const unsigned *__restrict__ pieces, int *__restrict__ out, int pairs, int words) {
    const int pair = blockIdx.x * 128 + threadIdx.x;
    if (pair >= pairs) return;
    unsigned long long masks[4], row = ~0ull;
    letter_masks(reads, pair, pairs, masks);
    for (int w = 0; w < words; w++) {
        unsigned letters = pieces[w * pairs + pair];
        for (int i = 0; i < 16; i++, letters >>= 2) row = grown(row, masks[letters & 3]);
    }
    out[pair] = 64 - __popcll(row);
}
// The four masks stay in registers; two selections find the one of a letter.
__global__ void __launch_bounds__(128) common_letters_selected(const unsigned *__restrict__ reads, const unsigned *__restrict__ pieces, int *__restrict__ out, int pairs, int words) {
    const int pair = blockIdx.x * 128 + threadIdx.x;
    if (pair >= pairs) return;
    unsigned long long a = 0, c = 0, g = 0, t = 0, row = ~0ull;
    for (int w = 0; w < 4; w++) {
        unsigned letters = reads[w * pairs + pair];
        for (int i = 0; i < 16; i++, letters >>= 2) {
            const unsigned letter = letters & 3;
            const unsigned long long bit = 1ull << (w * 16 + i);
            a |= letter == 0 ? bit : 0, c |= letter == 1 ? bit : 0, g |= letter == 2 ? bit : 0, t |= letter == 3 ? bit : 0;
        }
    }
    for (int w = 0; w < words; w++) {
        unsigned letters = pieces[w * pairs + pair];
#pragma unroll
        for (int i = 0; i < 16; i++, letters >>= 2) {
            const unsigned long long low = letters & 1 ? c : a, high = letters & 1 ? t : g;
            row = grown(row, letters & 2 ? high : low);
        }
    }
    out[pair] = 64 - __popcll(row);
}
__global__ void __launch_bounds__(128) common_letters_shared(const unsigned *__restrict__ reads, const unsigned *__restrict__ pieces, int *__restrict__ out, int pairs, int words) {
    __shared__ unsigned long long masks[4][128];
    const int pair = blockIdx.x * 128 + threadIdx.x, t = threadIdx.x;
    if (pair >= pairs) return;
    unsigned long long row = ~0ull;
    for (int k = 0; k < 4; k++) masks[k][t] = 0;
    for (int w = 0; w < 4; w++) {
        unsigned letters = reads[w * pairs + pair];
        for (int i = 0; i < 16; i++, letters >>= 2) masks[letters & 3][t] |= 1ull << (w * 16 + i);
    }
    for (int w = 0; w < words; w++) {
        unsigned letters = pieces[w * pairs + pair];
#pragma unroll
        for (int i = 0; i < 16; i++, letters >>= 2) row = grown(row, masks[letters & 3][t]);
    }
    out[pair] = 64 - __popcll(row);
}

Study subsequence("read_filter_masks_of_letters_in_local", "bioinformatics", 1 << 19, "longest common subsequences of 524288 reads of 64 letters and pieces of 128, by bits",
    "the masks of the four letters are an array that is indexed by the letter",
    {{"selected", "four variables and two selections", {"local_memory"}}, {"shared", "a thread's masks in shared memory", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const int words = 8;
        std::vector<unsigned> letters(n * (4 + words));
        for (size_t i = 0; i < letters.size(); i++) letters[i] = hash(static_cast<unsigned>(i) + 77);
        const unsigned *reads = b.copy(letters), *pieces = reads + n * 4;
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, 128), 128, 0, reads, pieces, out, n, words); };
        return {{"flawed", side(common_letters)}, {"selected", side(common_letters_selected)}, {"shared", side(common_letters_shared)}};
    });

// --- peptides: masses of the fragments that break off in a spectrometer ---

__constant__ float residue_masses[32] = {71.03711f, 0.0f, 103.00919f, 115.02694f, 129.04259f, 147.06841f, 57.02146f, 137.05891f, 113.08406f, 0.0f, 128.09496f, 113.08406f, 131.04049f, 114.04293f,
    0.0f, 97.05276f, 128.05858f, 156.10111f, 87.03203f, 101.04768f, 0.0f, 99.06841f, 186.07931f, 0.0f, 163.06333f, 0.0f, 15.99491f, 57.02146f, 79.96633f, 42.01057f, 14.01565f, 0.98402f};

struct InConstants {
    __device__ InConstants(const float *) {}
    __device__ float of(unsigned letter) const { return residue_masses[letter]; }
};
struct InShared {
    const float *table;
    __device__ InShared(const float *table) : table(table) {}
    __device__ float of(unsigned letter) const { return table[letter]; }
};
// A lane keeps the mass of one letter.
struct InLanes {
    float own;
    __device__ InLanes(const float *) : own(residue_masses[threadIdx.x % 32]) {}
    __device__ float of(unsigned letter) const { return __shfl_sync(~0u, own, letter); }
};

// A thread scores a peptide: its heavier half against what the spectrum has in bins of half a unit.
template <typename Masses>
__global__ void __launch_bounds__(256) peptide_scores(const unsigned *__restrict__ peptides, const float *__restrict__ spectrum, float *__restrict__ out, int count, int words) {
    __shared__ float table[32];
    if (threadIdx.x < 32) table[threadIdx.x] = residue_masses[threadIdx.x];
    __syncthreads();
    const Masses masses(table);
    const int i = blockIdx.x * 256 + threadIdx.x;  // a multiple of 256 of them
    float mass = 1.00728f, score = 0.0f;
    for (int w = 0; w < words; w++) {
        unsigned letters = peptides[w * count + i];
#pragma unroll
        for (int k = 0; k < 4; k++, letters >>= 8) {
            mass += masses.of(letters & 31);
            score += spectrum[static_cast<int>(mass * 2.0f) & 4095];
        }
    }
    out[i] = score;
}

Study peptides("peptide_masses_looked_up_in_constants", "proteins", 1 << 20, "scores of 1048576 peptides of 32 residues against a spectrum of 4096 bins",
    "every lane asks constant memory for the mass of another residue",
    {{"shared", "the 32 masses in shared memory", {"constant_divergence"}}, {"lanes", "a mass a lane, fetched by shuffles", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> letters(n * 8);
        for (size_t i = 0; i < letters.size(); i++) letters[i] = hash(static_cast<unsigned>(i) + 5);
        const unsigned *peptides = b.copy(letters);
        const float *spectrum = b.random<float>(4096, 0, 1);
        float *out = b.output<float>(n);
        b.tolerance = 1e-3;
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, 256), 256, 0, peptides, spectrum, out, n, 8); };
        return {{"flawed", side(peptide_scores<InConstants>)}, {"shared", side(peptide_scores<InShared>)}, {"lanes", side(peptide_scores<InLanes>)}};
    });

// --- reads searched in an index of the genome: every letter asks how often it occurs before two places ---

struct Marks {
    const unsigned long long *bits;  // of letter k: whether the transform has it at a place
    const unsigned *counts;          // of letter k before each 64 places
    int groups;
    unsigned before[4];
    __device__ unsigned rank(unsigned letter, unsigned place) const {
        const unsigned at = letter * groups + place / 64;
        return counts[at] + __popcll(bits[at] & ((1ull << (place & 63)) - 1));
    }
};
struct Group {  // 64 places: four counts, then the letters' low and high bits
    unsigned counts[4];
    unsigned long long low, high;
};
struct Grouped {
    const uint4 *groups;
    unsigned before[4];
    __device__ unsigned rank(unsigned letter, unsigned place) const {
        const uint4 counts = groups[place / 64 * 2], words = groups[place / 64 * 2 + 1];
        const unsigned long long low = words.x | static_cast<unsigned long long>(words.y) << 32, high = words.z | static_cast<unsigned long long>(words.w) << 32;
        const unsigned long long same = (letter & 1 ? low : ~low) & (letter & 2 ? high : ~high) & ((1ull << (place & 63)) - 1);
        return (letter & 2 ? letter & 1 ? counts.w : counts.z : letter & 1 ? counts.y : counts.x) + __popcll(same);
    }
};

template <typename Index>
__global__ void __launch_bounds__(128) seed_ranges(const __grid_constant__ Index index, const unsigned *__restrict__ reads, uint2 *__restrict__ out, int count, unsigned places) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    unsigned letters = reads[i], first = 0, end = places - 1;
    for (int k = 0; k < 16; k++, letters >>= 2) {
        const unsigned letter = letters & 3;
        first = ::min(index.before[letter] + index.rank(letter, first), places - 1);
        end = ::min(index.before[letter] + index.rank(letter, end), places - 1);
    }
    out[i] = {first, end};
}
// Four reads a thread take their steps together.
__global__ void __launch_bounds__(128) seed_ranges_four(const __grid_constant__ Marks index, const unsigned *__restrict__ reads, uint2 *__restrict__ out, int count, unsigned places) {
    const int i = blockIdx.x * 128 + threadIdx.x, quarter = count / 4;
    if (i >= quarter) return;
    unsigned letters[4], first[4], end[4];
#pragma unroll
    for (int r = 0; r < 4; r++) letters[r] = reads[r * quarter + i], first[r] = 0, end[r] = places - 1;
    for (int k = 0; k < 16; k++) {
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const unsigned letter = letters[r] >> (2 * k) & 3;
            const unsigned a = index.rank(letter, first[r]), z = index.rank(letter, end[r]);
            first[r] = ::min(index.before[letter] + a, places - 1), end[r] = ::min(index.before[letter] + z, places - 1);
        }
    }
#pragma unroll
    for (int r = 0; r < 4; r++) out[r * quarter + i] = {first[r], end[r]};
}

Study seeds("read_seeds_ranks_in_two_tables_of_each_letter", "bioinformatics", 1 << 19, "ranges of 524288 seeds of 16 letters in an index of 268435456 places",
    "a rank is a count from one table and a word of bits from another, two lines far apart, and the next step waits for it",
    {{"grouped", "counts and bits of 64 places in one record of 32 bytes", {"uncoalesced_access", "memory_latency"}}, {"four", "four reads a thread at a time", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned places = static_cast<unsigned>(n) * 512;
        const int groups = static_cast<int>(places / 64);
        std::vector<Group> records(groups);
        std::vector<unsigned long long> bits(4L * groups);
        std::vector<unsigned> counts(4L * groups), reads(n);
        unsigned long long state = 88172645463325252ull;
        const auto next = [&] { return state ^= state << 13, state ^= state >> 7, state ^= state << 17; };
        unsigned sums[4] = {};
        for (int g = 0; g < groups; g++) {
            const unsigned long long low = next(), high = next();
            records[g].low = low, records[g].high = high;
            for (int k = 0; k < 4; k++) {
                const unsigned long long same = (k & 1 ? low : ~low) & (k & 2 ? high : ~high);
                records[g].counts[k] = counts[static_cast<size_t>(k) * groups + g] = sums[k];
                bits[static_cast<size_t>(k) * groups + g] = same;
                sums[k] += __builtin_popcountll(same);
            }
        }
        for (long i = 0; i < n; i++) reads[i] = hash(static_cast<unsigned>(i) + 3);
        Marks marks{b.copy(bits), b.copy(counts), groups, {}};
        Grouped grouped{reinterpret_cast<const uint4 *>(b.copy(records)), {}};
        for (int k = 1; k < 4; k++) marks.before[k] = grouped.before[k] = marks.before[k - 1] + sums[k - 1];
        const unsigned *in = b.copy(reads);
        unsigned *out = b.output<unsigned>(n * 2);
        uint2 *ranges = reinterpret_cast<uint2 *>(out);
        b.tolerance = 0.0;
        return {{"flawed", launch(seed_ranges<Marks>, blocks(n, 128), 128, 0, marks, in, ranges, n, places)}, {"grouped", launch(seed_ranges<Grouped>, blocks(n, 128), 128, 0, grouped, in, ranges, n, places)},
            {"four", launch(seed_ranges_four, blocks(n / 4, 128), 128, 0, marks, in, ranges, n, places)}};
    });

// --- a genome packed from letters to two bits ---

__device__ __forceinline__ unsigned code_of(unsigned letter) { return (letter >> 1 ^ letter >> 2) & 3; }  // A, C, G, T of ASCII
__device__ __forceinline__ unsigned four_codes(unsigned word) {
    const unsigned codes = (word >> 1 ^ word >> 2) & 0x03030303u;
    return (codes | codes >> 6 | codes >> 12 | codes >> 18) & 0xff;
}
__global__ void __launch_bounds__(256) pack_bases(const unsigned char *__restrict__ letters, unsigned char *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const unsigned char *own = letters + static_cast<size_t>(i) * 4;
    out[i] = static_cast<unsigned char>(code_of(own[0]) | code_of(own[1]) << 2 | code_of(own[2]) << 4 | code_of(own[3]) << 6);
}
__global__ void __launch_bounds__(256) pack_bases_wide(const uint4 *__restrict__ letters, unsigned *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const uint4 own = letters[i];
    out[i] = four_codes(own.x) | four_codes(own.y) << 8 | four_codes(own.z) << 16 | four_codes(own.w) << 24;
}
// A word of four letters a load, several of them in flight.
__global__ void __launch_bounds__(256) pack_bases_words(const unsigned *__restrict__ letters, unsigned char *__restrict__ out, int count) {
    const int stride = gridDim.x * 256;
#pragma unroll 4
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += stride) out[i] = static_cast<unsigned char>(four_codes(letters[i]));
}

Study bases("bases_packed_a_byte_a_thread", "bioinformatics", 1 << 28, "268435456 letters of a genome packed to two bits each",
    "a thread reads four bytes one by one and stores one",
    {{"wide", "sixteen letters a load, a word a store", {"narrow_access"}}, {"words", "four letters a load, four words in flight a thread", {"narrow_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> text(n);
        for (long i = 0; i < n; i++) text[i] = "ACGT"[static_cast<unsigned>(i) * 2654435761u >> 30];
        const unsigned char *letters = b.copy(text);
        unsigned char *out = b.output<unsigned char>(n / 4);
        b.tolerance = 0.0;
        return {{"flawed", launch(pack_bases, blocks(n / 4, 256), 256, 0, letters, out, n / 4)}, {"wide", launch(pack_bases_wide, blocks(n / 16, 256), 256, 0, reinterpret_cast<const uint4 *>(letters), reinterpret_cast<unsigned *>(out), n / 16)},
            {"words", launch(pack_bases_words, multiprocessors() * 8, 256, 0, reinterpret_cast<const unsigned *>(letters), out, n / 4)}};
    });

// --- a column stored as differences: pages of 256 values, each with its first value ---

constexpr int PAGE = 256;

__global__ void __launch_bounds__(128) add_up_page(const int *__restrict__ firsts, const unsigned char *__restrict__ steps, int *__restrict__ out, int pages) {
    const int page = blockIdx.x * 128 + threadIdx.x;
    if (page >= pages) return;
    int value = firsts[page];
    const size_t from = static_cast<size_t>(page) * PAGE;
    for (int i = 0; i < PAGE; i++) out[from + i] = value += steps[from + i];
}
// A page a warp: eight values a lane, whose sums are added up by shuffles.
__global__ void __launch_bounds__(128) add_up_warp(const int *__restrict__ firsts, const unsigned char *__restrict__ steps, int *__restrict__ out, int pages) {
    const int page = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (page >= pages) return;
    const uint2 words = reinterpret_cast<const uint2 *>(steps)[page * 32L + lane];
    int values[8], sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) values[k] = sum += (k < 4 ? words.x >> (8 * k) : words.y >> (8 * k - 32)) & 255;
    int before = sum;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const int other = __shfl_up_sync(~0u, before, d);
        if (lane >= d) before += other;
    }
    before += firsts[page] - sum;
    int4 *own = reinterpret_cast<int4 *>(out) + page * 64L + lane * 2;
    own[0] = make_int4(before + values[0], before + values[1], before + values[2], before + values[3]);
    own[1] = make_int4(before + values[4], before + values[5], before + values[6], before + values[7]);
}
// A thread keeps its page, but a warp brings 32 steps of 32 pages to shared memory and takes their values from there.
__global__ void __launch_bounds__(128) add_up_tiles(const int *__restrict__ firsts, const unsigned char *__restrict__ steps, int *__restrict__ out, int pages) {
    __shared__ int tiles[4][32][33];
    const int lane = threadIdx.x % 32, first = blockIdx.x * 128 + threadIdx.x - lane;
    int(*tile)[33] = tiles[threadIdx.x / 32];
    if (first >= pages) return;
    int value = firsts[first + lane];
    for (int start = 0; start < PAGE; start += 32) {
#pragma unroll 8
        for (int r = 0; r < 32; r++) tile[r][lane] = steps[static_cast<size_t>(first + r) * PAGE + start + lane];
        __syncwarp();
#pragma unroll 8
        for (int i = 0; i < 32; i++) tile[lane][i] = value += tile[lane][i];
        __syncwarp();
#pragma unroll 8
        for (int r = 0; r < 32; r++) out[static_cast<size_t>(first + r) * PAGE + start + lane] = tile[r][lane];
        __syncwarp();
    }
}

Study pages("difference_pages_added_up_by_a_thread", "databases", 1 << 17, "131072 pages of 256 values decoded from differences of a byte",
    "a thread walks along its page: neighbouring lanes are 256 values apart",
    {{"warp", "a page a warp, eight values a lane, sums by shuffles", {"uncoalesced_access", "narrow_access"}}, {"tiles", "32 values of 32 pages by way of shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int *firsts = b.random<int>(n, 0, 1 << 20);
        const unsigned char *steps = b.random<unsigned char>(n * PAGE, 0, 256);
        int *out = b.output<int>(n * PAGE);
        b.tolerance = 0.0;
        return {{"flawed", launch(add_up_page, blocks(n, 128), 128, 0, firsts, steps, out, n)}, {"warp", launch(add_up_warp, blocks(n, 4), 128, 0, firsts, steps, out, n)}, {"tiles", launch(add_up_tiles, blocks(n, 128), 128, 0, firsts, steps, out, n)}};
    });

// --- a join has found its rows: eight columns of them are brought ---

constexpr int COLUMNS = 8;

__global__ void __launch_bounds__(256) gather_columns(const int *__restrict__ rows, const float *__restrict__ table, float *__restrict__ out, int count, int height) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const int row = rows[i];
    for (int c = 0; c < COLUMNS; c++) out[static_cast<size_t>(c) * count + i] = table[static_cast<size_t>(c) * height + row];
}
__global__ void __launch_bounds__(256) gather_records(const int *__restrict__ rows, const float4 *__restrict__ table, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 *record = table + rows[i] * 2L;
    const float4 a = record[0], z = record[1];
    float *own = out + i;
    own[0] = a.x, own[static_cast<size_t>(count)] = a.y, own[2L * count] = a.z, own[3L * count] = a.w;
    own[4L * count] = z.x, own[5L * count] = z.y, own[6L * count] = z.z, own[7L * count] = z.w;
}
// Rows are brought in the order in which they lie in the table, pieces of which then stay in the cache; `places` says where they belong.
__global__ void __launch_bounds__(256) gather_ordered(const int *__restrict__ rows, const int *__restrict__ places, const float *__restrict__ table, float *__restrict__ out, int count, int height) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const int row = rows[i], place = places[i];
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) out[static_cast<size_t>(c) * count + place] = table[static_cast<size_t>(c) * height + row];
}

Study joined("joined_columns_brought_one_by_one", "databases", 1 << 21, "eight columns of 2097152 rows that a join has found among 8388608",
    "a sector of 32 bytes is brought for each value of four, eight for a row",
    {{"records", "the columns that are asked for together lie in records of 32 bytes", {"uncoalesced_access"}}, {"ordered", "in the order of the table, to the places where they belong", {"uncoalesced_access", "cache_locality"}}},
    [](Buffers &b, long n) -> Sides {
        const long height = n * 4;
        std::vector<int> rows(n), places(n), ordered(n);
        std::vector<std::pair<int, int>> both(n);
        for (long i = 0; i < n; i++) rows[i] = static_cast<int>(hash(static_cast<unsigned>(i) + 13) % height), both[i] = {rows[i], static_cast<int>(i)};
        std::sort(both.begin(), both.end());
        for (long i = 0; i < n; i++) ordered[i] = both[i].first, places[i] = both[i].second;
        std::vector<float> table(height * COLUMNS), records(height * COLUMNS);
        for (long r = 0; r < height; r++)
            for (int c = 0; c < COLUMNS; c++) table[c * height + r] = records[r * COLUMNS + c] = static_cast<float>(hash(static_cast<unsigned>(r * COLUMNS + c)) >> 8) / 16777216.0f;
        const int *found = b.copy(rows), *sorted = b.copy(ordered), *where = b.copy(places);
        const float *columns = b.copy(table);
        const float4 *wide = reinterpret_cast<const float4 *>(b.copy(records));
        float *out = b.output<float>(n * COLUMNS);
        b.tolerance = 0.0;
        return {{"flawed", launch(gather_columns, blocks(n, 256), 256, 0, found, columns, out, n, height)}, {"records", launch(gather_records, blocks(n, 256), 256, 0, found, wide, out, n)},
            {"ordered", launch(gather_ordered, blocks(n, 256), 256, 0, sorted, where, columns, out, n, height)}};
    });

}  // namespace
