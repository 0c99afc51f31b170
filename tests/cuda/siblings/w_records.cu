// Fingerprints, meters, parities, tones, echoes, indices, joins, offers and profiles.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- fingerprints of records, modulo 2^61 - 1 ---

using Long = unsigned long long;
constexpr Long MERSENNE = (1ull << 61) - 1;
constexpr int PIECES = 24;

// [piece][record]
__global__ void __launch_bounds__(128) fingerprints(const unsigned *__restrict__ records, Long *__restrict__ prints, Long base, int count) {
    const int record = blockIdx.x * 128 + threadIdx.x;
    if (record >= count) return;
    Long print = 0;
    for (int piece = 0; piece < PIECES; piece++) print = static_cast<Long>((static_cast<unsigned __int128>(print) * base + records[static_cast<size_t>(piece) * count + record]) % MERSENNE);
    prints[record] = print;
}
__device__ __forceinline__ Long within(Long low, Long high) {
    const Long sum = (low & MERSENNE) + (high << 3 | low >> 61);
    return sum >= MERSENNE ? sum - MERSENNE : sum;
}
__global__ void __launch_bounds__(128) fingerprints_folded(const unsigned *__restrict__ records, Long *__restrict__ prints, Long base, int count) {
    const int record = blockIdx.x * 128 + threadIdx.x;
    if (record >= count) return;
    Long print = 0;
#pragma unroll 4
    for (int piece = 0; piece < PIECES; piece++) {
        const Long product = print * base, sum = product + records[static_cast<size_t>(piece) * count + record];
        print = within(sum, __umul64hi(print, base) + (sum < product));
    }
    prints[record] = print;
}
struct Bases {
    Long third, second, first, fourth;  // powers of the base
};
// Four pieces at a time, their products added up before they are folded.
__global__ void __launch_bounds__(128) fingerprints_late(const unsigned *__restrict__ records, Long *__restrict__ prints, Bases bases, int count) {
    const int record = blockIdx.x * 128 + threadIdx.x;
    if (record >= count) return;
    Long print = 0;
#pragma unroll
    for (int piece = 0; piece < PIECES; piece += 4) {
        const unsigned *at = records + static_cast<size_t>(piece) * count + record;
        const Long one = *at, two = at[count], three = at[2 * static_cast<size_t>(count)], four = at[3 * static_cast<size_t>(count)];
        unsigned __int128 sum = static_cast<unsigned __int128>(print) * bases.fourth;
        sum += static_cast<unsigned __int128>(one) * bases.third;
        sum += static_cast<unsigned __int128>(two) * bases.second;
        sum += static_cast<unsigned __int128>(three) * bases.first + four;
        const Long low = static_cast<Long>(sum), high = static_cast<Long>(sum >> 64), top = within(low, high & (1ull << 58) - 1) + (high >> 58);
        print = top >= MERSENNE ? top - MERSENNE : top;
    }
    prints[record] = print;
}

Study printed("fingerprints_by_wide_remainders", "databases", 1 << 20, "fingerprints of 1048576 records of 24 words, modulo 2^61 - 1",
    "each product of 122 bits is reduced by a general division",
    {{"folded", "reduced by the form of the prime", {"integer_arithmetic"}}, {"late", "four products added up, their sum reduced", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *records = b.random<unsigned>(n * PIECES, 0.0, 4294967295.0);
        Long *prints = b.output<Long>(n);
        const Long base = 0x1357924680acef1ull;
        const auto times = [&](Long a) { return static_cast<Long>(static_cast<unsigned __int128>(a) * base % MERSENNE); };
        const Long second = times(base), third = times(second);
        const Bases bases = {third, second, base, times(third)};
        b.tolerance = 0.0;
        const int count = static_cast<int>(n);
        return {{"flawed", launch(fingerprints, blocks(n, 128), 128, 0, records, prints, base, count)}, {"folded", launch(fingerprints_folded, blocks(n, 128), 128, 0, records, prints, base, count)},
            {"late", launch(fingerprints_late, blocks(n, 128), 128, 0, records, prints, bases, count)}};
    });

// --- what meters show, a digit in four bits ---

// Eight digits of a number below 100 million.
struct Doubled {
    __device__ __forceinline__ unsigned operator()(unsigned value) const {
        unsigned digits = 0;
        for (int bit = 26; bit >= 0; bit--) {
            const unsigned high = (digits + 0x33333333u) & 0x88888888u;
            digits += high >> 2 | high >> 3;
            digits = digits << 1 | (value >> bit & 1u);
        }
        return digits;
    }
};
struct Divided {
    __device__ __forceinline__ unsigned operator()(unsigned value) const {
        const unsigned high = value / 10000u, fours = high | (value - high * 10000u) << 16;
        const unsigned upper = (fours & 0xffffu) / 100u, lower = (fours >> 16) / 100u;
        // two digits a byte, the highest first
        const unsigned twos = upper << 24 | ((fours & 0xffffu) - upper * 100u) << 16 | lower << 8 | ((fours >> 16) - lower * 100u);
        const unsigned tens = ((twos & 0x00ff00ffu) * 103u >> 10 & 0x000f000fu) | ((twos >> 8 & 0x00ff00ffu) * 103u >> 2 & 0x0f000f00u);
        return twos + tens * 6u;
    }
};
struct Hundreds {
    const unsigned char *two;
    __device__ __forceinline__ unsigned operator()(unsigned value) const {
        const unsigned high = value / 10000u, low = value - high * 10000u, first = high / 100u, third = low / 100u;
        return two[first] << 24 | two[high - first * 100u] << 16 | two[third] << 8 | two[low - third * 100u];
    }
};
template <class Digits>
__device__ __forceinline__ void all_shown(const uint2 *values, uint2 *shown, int pairs, Digits digits) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs) return;
    const uint2 own = values[i];
    shown[i] = make_uint2(digits(own.x), digits(own.y));
}
__global__ void meters(const uint2 *__restrict__ values, uint2 *__restrict__ shown, int pairs) { all_shown(values, shown, pairs, Doubled()); }
__global__ void meters_divided(const uint2 *__restrict__ values, uint2 *__restrict__ shown, int pairs) { all_shown(values, shown, pairs, Divided()); }
__global__ void meters_hundreds(const uint2 *__restrict__ values, uint2 *__restrict__ shown, int pairs) {
    __shared__ unsigned char two[100];
    if (threadIdx.x < 100) two[threadIdx.x] = static_cast<unsigned char>(threadIdx.x / 10 * 6 + threadIdx.x);
    __syncthreads();
    all_shown(values, shown, pairs, Hundreds{two});
}

Study shown("meters_shown_bit_by_bit", "energy", 1 << 25, "33554432 readings below 100 million as eight digits of four bits",
    "27 rounds of some eight operations on whole numbers, a bit of the reading each",
    {{"divided", "quotients by constants, digits of all bytes at once", {"integer_arithmetic"}}, {"hundreds", "quotients by constants, two digits from a table", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const uint2 *values = reinterpret_cast<const uint2 *>(b.random<unsigned>(n, 0.0, 100000000.0));
        uint2 *shown = reinterpret_cast<uint2 *>(b.output<unsigned>(n));
        b.tolerance = 0.0;
        const int pairs = static_cast<int>(n / 2);
        return {{"flawed", launch(meters, blocks(pairs, 320), 320, 0, values, shown, pairs)}, {"divided", launch(meters_divided, blocks(pairs, 320), 320, 0, values, shown, pairs)},
            {"hundreds", launch(meters_hundreds, blocks(pairs, 320), 320, 0, values, shown, pairs)}};
    });

// --- two parities of ten disks, in the field of 256 ---

constexpr int DISKS = 10;

struct Factors {
    unsigned of[2][DISKS];
};
__host__ __device__ __forceinline__ unsigned twice(unsigned factor) { return (factor << 1 ^ (factor & 0x80 ? 0x11d : 0)) & 0x1ff; }

// [disk][word]: four bytes at a time.
__global__ void __launch_bounds__(256) parities(const unsigned *__restrict__ disks, uint2 *__restrict__ out, Factors factors, int words) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= words) return;
    uint2 sum = {0, 0};
    for (int disk = 0; disk < DISKS; disk++) {
        const unsigned word = disks[static_cast<size_t>(disk) * words + i];
        unsigned first = factors.of[0][disk], second = factors.of[1][disk];
        for (int bit = 0; bit < 8; bit++) {
            const unsigned where = word >> bit & 0x01010101u;
            sum.x ^= where * first;
            sum.y ^= where * second;
            first = twice(first), second = twice(second);
        }
    }
    out[i] = sum;
}
// All bits' multiples of all factors, worked out once a block.
__global__ void __launch_bounds__(256) parities_multiples(const unsigned *__restrict__ disks, uint2 *__restrict__ out, Factors factors, int words) {
    __shared__ uint2 multiples[DISKS * 8];
    if (threadIdx.x < DISKS * 8) {
        unsigned first = factors.of[0][threadIdx.x / 8], second = factors.of[1][threadIdx.x / 8];
        for (int bit = threadIdx.x % 8; bit > 0; bit--) first = twice(first), second = twice(second);
        multiples[threadIdx.x] = make_uint2(first, second);
    }
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= words) return;
    uint2 sum = {0, 0};
#pragma unroll
    for (int disk = 0; disk < DISKS; disk++) {
        const unsigned word = disks[static_cast<size_t>(disk) * words + i];
#pragma unroll
        for (int bit = 0; bit < 8; bit++) {
            const unsigned where = word >> bit & 0x01010101u;
            const uint2 by = multiples[disk * 8 + bit];
            sum.x ^= where * by.x;
            sum.y ^= where * by.y;
        }
    }
    out[i] = sum;
}
// Products of all four bits with both factors, a byte each.
__global__ void __launch_bounds__(256) parities_nibbles(const unsigned *__restrict__ disks, uint2 *__restrict__ out, Factors factors, int words) {
    __shared__ unsigned products[DISKS * 32];  // [disk][upper or lower four bits][value]
    for (int k = threadIdx.x; k < DISKS * 32; k += 256) {
        const unsigned value = k % 16 << (k & 16 ? 0 : 4);
        unsigned first = factors.of[0][k / 32], second = factors.of[1][k / 32], sum = 0;
        for (int bit = 0; bit < 8; bit++) {
            if (value >> bit & 1) sum ^= first | second << 16;
            first = twice(first), second = twice(second);
        }
        products[k] = sum;
    }
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= words) return;
    unsigned bytes[4] = {};
#pragma unroll
    for (int disk = 0; disk < DISKS; disk++) {
        const unsigned word = disks[static_cast<size_t>(disk) * words + i];
#pragma unroll
        for (int k = 0; k < 4; k++) bytes[k] ^= products[disk * 32 + 16 + (word >> 8 * k & 15)] ^ products[disk * 32 + (word >> (8 * k + 4) & 15)];
    }
    const unsigned lower = bytes[0] | bytes[1] << 8, upper = bytes[2] | bytes[3] << 8;  // first and second factor in halves
    out[i] = make_uint2((lower & 0xffffu) | upper << 16, lower >> 16 | (upper & 0xffff0000u));
}

Study parity("disk_parities_bit_by_bit", "storage", 1 << 22, "two parities of ten disks in the field of 256, 16 MB of each",
    "a product takes eight rounds, and each doubles factors that are the same for all",
    {{"multiples", "multiples for all bits once a block, in shared memory", {"integer_arithmetic"}}, {"nibbles", "products of four bits from tables in shared memory", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *disks = b.random<unsigned>(n * DISKS, 0.0, 4294967295.0);
        uint2 *out = reinterpret_cast<uint2 *>(b.output<unsigned>(2 * n));
        Factors factors = {};
        unsigned power = 1;
        for (int disk = 0; disk < DISKS; disk++) {
            factors.of[0][disk] = 29 + 17 * disk;
            factors.of[1][disk] = power;
            power = twice(power);
        }
        b.tolerance = 0.0;
        const int words = static_cast<int>(n);
        return {{"flawed", launch(parities, blocks(n, 256), 256, 0, disks, out, factors, words)}, {"multiples", launch(parities_multiples, blocks(n, 256), 256, 0, disks, out, factors, words)},
            {"nibbles", launch(parities_nibbles, blocks(n, 256), 256, 0, disks, out, factors, words)}};
    });

// --- which of 240 quarter tones frequencies are ---

constexpr int TONES = 240;
constexpr float LOWEST = 27.5f;

// Between which two of TONES + 1 limits a frequency lies.
__device__ __forceinline__ int between(const float *limits, float frequency) {
    int low = 0, high = TONES;
    do {
        const int middle = (low + high) / 2;
        if (limits[middle] <= frequency) low = middle;
        else high = middle;
    } while (high - low > 1);
    return low;
}
__device__ __forceinline__ int guessed(const float *limits, float frequency) {
    int tone = min(max(static_cast<int>(__log2f(frequency * (1.0f / LOWEST)) * 24.0f), 0), TONES - 1);
    if (tone > 0 && frequency < limits[tone]) tone--;
    if (tone + 1 < TONES && frequency >= limits[tone + 1]) tone++;
    return tone;
}
__global__ void tones(const float4 *__restrict__ frequencies, const float *__restrict__ limits, uchar4 *__restrict__ names, int quads) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    const float4 four = frequencies[i];
    names[i] = make_uchar4(between(limits, four.x), between(limits, four.y), between(limits, four.z), between(limits, four.w));
}
__global__ void __launch_bounds__(256) tones_shared(const float4 *__restrict__ frequencies, const float *__restrict__ limits, uchar4 *__restrict__ names, int quads) {
    __shared__ float held[TONES + 1];
    if (threadIdx.x <= TONES) held[threadIdx.x] = limits[threadIdx.x];
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= quads) return;
    const float4 four = frequencies[i];
    names[i] = make_uchar4(between(held, four.x), between(held, four.y), between(held, four.z), between(held, four.w));
}
__global__ void tones_guessed(const float4 *__restrict__ frequencies, const float *__restrict__ limits, uchar4 *__restrict__ names, int quads) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    const float4 four = frequencies[i];
    names[i] = make_uchar4(guessed(limits, four.x), guessed(limits, four.y), guessed(limits, four.z), guessed(limits, four.w));
}

Study named("tones_found_by_halving", "music", 1 << 25, "which of 240 quarter tones each of 33554432 frequencies is",
    "a tone is searched among 241 limits in global memory: eight loads, each after the one before",
    {{"shared", "the limits in shared memory", {"memory_latency"}}, {"guessed", "a logarithm tells the tone, two loads settle it", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> limits(TONES + 1), heard(n);
        for (int k = 0; k <= TONES; k++) limits[k] = LOWEST * static_cast<float>(std::exp2(k / 24.0));
        for (long i = 0; i < n; i++) heard[i] = LOWEST * std::exp2(10.0f * static_cast<float>(hash(static_cast<unsigned>(i)) >> 8) / 16777216.0f);
        const float4 *frequencies = reinterpret_cast<const float4 *>(b.copy(heard));
        const float *between = b.copy(limits);
        uchar4 *names = reinterpret_cast<uchar4 *>(b.output<unsigned char>(n));
        b.tolerance = 0.0;
        const int quads = static_cast<int>(n / 4);
        return {{"flawed", launch(tones, blocks(quads, 256), 256, 0, frequencies, between, names, quads)}, {"shared", launch(tones_shared, blocks(quads, 256), 256, 0, frequencies, between, names, quads)},
            {"guessed", launch(tones_guessed, blocks(quads, 256), 256, 0, frequencies, between, names, quads)}};
    });

// --- echoes made wider ---

// The strongest of five echoes of a byte around each; there are 16 more before the first and after the last.
__global__ void __launch_bounds__(256) widened(const unsigned char *echoes, unsigned char *out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    int most = 0;
#pragma unroll
    for (int k = 14; k <= 18; k++) most = max(most, echoes[i + k]);
    out[i] = static_cast<unsigned char>(most);
}
// Four at a time: the word, and what is beside it.
__device__ __forceinline__ unsigned widest(unsigned before, unsigned own, unsigned after) {
    const unsigned left = __vmaxu4(__byte_perm(before, own, 0x5432), __byte_perm(before, own, 0x6543));
    const unsigned right = __vmaxu4(__byte_perm(own, after, 0x4321), __byte_perm(own, after, 0x5432));
    return __vmaxu4(own, __vmaxu4(left, right));
}
__global__ void __launch_bounds__(256) widened_words(const unsigned *__restrict__ echoes, unsigned *__restrict__ out, int words) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < words) out[i] = widest(echoes[i + 3], echoes[i + 4], echoes[i + 5]);
}
__global__ void __launch_bounds__(256) widened_sixteen(const uint4 *__restrict__ echoes, uint4 *__restrict__ out, int quads) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= quads) return;
    const unsigned *words = reinterpret_cast<const unsigned *>(echoes + i + 1);
    const uint4 own = echoes[i + 1];
    const unsigned before = words[-1], after = words[4];
    out[i] = make_uint4(widest(before, own.x, own.y), widest(own.x, own.y, own.z), widest(own.y, own.z, own.w), widest(own.z, own.w, after));
}

Study echo("echoes_widened_a_byte_a_thread", "radar", 1 << 26, "the strongest of five echoes around each of 64 million, a byte each",
    "a thread makes a byte from five that it loads one by one",
    {{"words", "four echoes a thread, compared at once in a word", {"narrow_access", "redundant_loads"}}, {"sixteen", "sixteen echoes a thread in one load", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *echoes = b.random<unsigned char>(n + 32, 0, 256);
        unsigned char *out = b.output<unsigned char>(n);
        b.tolerance = 0.0;
        const int count = static_cast<int>(n);
        return {{"flawed", launch(widened, blocks(n, 256), 256, 0, echoes, out, count)},
            {"words", launch(widened_words, blocks(n / 4, 256), 256, 0, reinterpret_cast<const unsigned *>(echoes), reinterpret_cast<unsigned *>(out), count / 4)},
            {"sixteen", launch(widened_sixteen, blocks(n / 16, 256), 256, 0, reinterpret_cast<const uint4 *>(echoes), reinterpret_cast<uint4 *>(out), count / 16)}};
    });

// --- an index of bits for each of 32 values ---

// [32 rows][value]: a bit for each of the rows that have the value.
__global__ void indexed(const unsigned char *column, unsigned *bits, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const unsigned char *rows = column + (i & ~31);
    const int value = i & 31;
    unsigned word = 0;
    for (int row = 31; row >= 0; row--) word = word << 1 | (rows[row] == value);
    bits[i] = word;
}
__global__ void __launch_bounds__(256) indexed_votes(const unsigned char *__restrict__ column, unsigned *__restrict__ bits) {
    const int i = blockIdx.x * 256 + threadIdx.x, lane = i & 31, own = column[i];
    unsigned word = 0;
#pragma unroll
    for (int value = 0; value < 32; value++) {
        const unsigned vote = __ballot_sync(~0u, own == value);
        if (lane == value) word = vote;
    }
    bits[i] = word;
}
// A vote for each bit of the value.
__global__ void __launch_bounds__(256) indexed_five(const unsigned char *__restrict__ column, unsigned *__restrict__ bits) {
    const int i = blockIdx.x * 256 + threadIdx.x, own = column[i];
    unsigned word = ~0u;
#pragma unroll
    for (int bit = 0; bit < 5; bit++) {
        const unsigned vote = __ballot_sync(~0u, own >> bit & 1);
        word &= i >> bit & 1 ? vote : ~vote;
    }
    bits[i] = word;
}

Study bitmaps("index_of_bits_32_loads_a_word", "databases", 1 << 25, "an index of bits for each of the 32 values of a column of 33554432 rows",
    "each thread loads all 32 rows of its word to compare them with its value",
    {{"votes", "a row a lane, 32 votes of the warp", {"redundant_loads"}}, {"five", "a row a lane, a vote for each of five bits", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *column = b.random<unsigned char>(n, 0, 32);
        unsigned *bits = b.output<unsigned>(n);
        b.tolerance = 0.0;
        const int count = static_cast<int>(n);
        return {{"flawed", launch(indexed, blocks(n, 256), 256, 0, column, bits, count)}, {"votes", launch(indexed_votes, n / 256, 256, 0, column, bits)}, {"five", launch(indexed_five, n / 256, 256, 0, column, bits)}};
    });

// --- orders joined with what goods cost ---

constexpr unsigned NOTHING = 0xffffffffu;

__global__ void joined(const unsigned *orders, const unsigned *goods, const float *prices, float *out, unsigned mask, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const unsigned wanted = orders[i];
    unsigned slot = hash(wanted) & mask, found = goods[slot];
    while (found != wanted && found != NOTHING) {
        slot = (slot + 1) & mask;
        found = goods[slot];
    }
    out[i] = found == wanted ? prices[slot] : 0.0f;
}
struct alignas(8) Good {
    unsigned number;
    float price;
};
__global__ void joined_together(const unsigned *__restrict__ orders, const Good *__restrict__ goods, float *__restrict__ out, unsigned mask, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const unsigned wanted = orders[i];
    unsigned slot = hash(wanted) & mask;
    Good found = goods[slot];
    while (found.number != wanted && found.number != NOTHING) {
        slot = (slot + 1) & mask;
        found = goods[slot];
    }
    out[i] = found.number == wanted ? found.price : 0.0f;
}

Study join("goods_and_prices_in_two_tables", "databases", 1 << 24, "prices of 16777216 orders from a hash table of 33554432 places",
    "a good's number and its price lie in two arrays: two sectors anywhere for eight bytes",
    {{"together", "number and price in one word of eight bytes", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned mask = static_cast<unsigned>(2 * n - 1);
        std::vector<unsigned> numbers(2 * n, NOTHING), orders(n);
        std::vector<float> prices(2 * n, 0.0f);
        std::vector<Good> goods(2 * n);
        for (long k = 0; k < n; k++) {
            const unsigned number = static_cast<unsigned>(k) * 2654435761u & 0x7fffffffu;
            unsigned slot = hash(number) & mask;
            while (numbers[slot] != NOTHING && numbers[slot] != number) slot = (slot + 1) & mask;
            numbers[slot] = number;
            prices[slot] = static_cast<float>(1 + k % 9973) * 0.25f;
        }
        for (long k = 0; k < 2 * n; k++) goods[k] = {numbers[k], prices[k]};
        for (long i = 0; i < n; i++) orders[i] = (hash(static_cast<unsigned>(i)) % static_cast<unsigned>(n + n / 8)) * 2654435761u & 0x7fffffffu;
        const unsigned *wanted = b.copy(orders), *apart = b.copy(numbers);
        const float *costs = b.copy(prices);
        const Good *both = b.copy(goods);
        float *out = b.output<float>(n);
        b.tolerance = 0.0;
        const int count = static_cast<int>(n);
        return {{"flawed", launch(joined, blocks(n, 256), 256, 0, wanted, apart, costs, out, mask, count)}, {"together", launch(joined_together, blocks(n, 256), 256, 0, wanted, both, out, mask, count)}};
    });

// --- the best that neighbours offer of eight goods ---

constexpr int OFFERS = 8;

// [offer][place]
__global__ void bettered(const int *begins, const int *neighbours, const unsigned short *offers, unsigned short *best, int places) {
    const int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= places) return;
    int most[OFFERS];
#pragma unroll
    for (int k = 0; k < OFFERS; k++) most[k] = offers[k * places + place];
    const int end = begins[place + 1];
    for (int at = begins[place]; at < end; at++) {
        const unsigned short *theirs = offers + neighbours[at];
#pragma unroll
        for (int k = 0; k < OFFERS; k++) most[k] = max(most[k], theirs[k * places]);
    }
#pragma unroll
    for (int k = 0; k < OFFERS; k++) best[k * places + place] = static_cast<unsigned short>(most[k]);
}
// [place][offer]
__global__ void bettered_rows(const int *__restrict__ begins, const int *__restrict__ neighbours, const uint4 *__restrict__ offers, uint4 *__restrict__ best, int places) {
    const int place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= places) return;
    uint4 most = offers[place];
    const int end = begins[place + 1];
    for (int at = begins[place]; at < end; at++) {
        const uint4 theirs = offers[neighbours[at]];
        most = make_uint4(__vmaxu2(most.x, theirs.x), __vmaxu2(most.y, theirs.y), __vmaxu2(most.z, theirs.z), __vmaxu2(most.w, theirs.w));
    }
    best[place] = most;
}
// The same, two offers a thread.
__global__ void bettered_lanes(const int *__restrict__ begins, const int *__restrict__ neighbours, const unsigned *__restrict__ offers, unsigned *__restrict__ best, int places) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x, place = thread / 4, pair = thread % 4;
    if (place >= places) return;
    unsigned most = offers[thread];
    const int end = begins[place + 1];
    for (int at = begins[place]; at < end; at++) most = __vmaxu2(most, offers[neighbours[at] * 4 + pair]);
    best[thread] = most;
}
__global__ void rows_to_planes(const unsigned short *rows, unsigned short *planes, int places) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < places * OFFERS) planes[i] = rows[i % places * OFFERS + i / places];
}

Study offered("offers_of_neighbours_in_planes", "markets", 1 << 20, "the best of eight offers among 4 to 12 neighbours of each of 1048576 places",
    "a kind of offer is an array of its own: a neighbour's eight come from eight places",
    {{"rows", "the offers of a place side by side, read as one vector", {"uncoalesced_access"}}, {"lanes", "side by side, four threads a place", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> begins(n + 1), neighbours;
        for (long v = 0; v < n; v++) {
            const unsigned some = 4 + hash(static_cast<unsigned>(v)) % 9;
            for (unsigned k = 0; k < some; k++) neighbours.push_back(static_cast<int>(hash(static_cast<unsigned>(v) * 16 + k + 77) % static_cast<unsigned>(n)));
            begins[v + 1] = static_cast<int>(neighbours.size());
        }
        std::vector<unsigned short> planes(OFFERS * n), rows(OFFERS * n);
        for (long i = 0; i < OFFERS * n; i++) planes[i] = static_cast<unsigned short>(hash(static_cast<unsigned>(i) + 5) % 50000);
        for (long i = 0; i < OFFERS * n; i++) rows[i] = planes[i % OFFERS * n + i / OFFERS];
        const int *starts = b.copy(begins), *others = b.copy(neighbours);
        const unsigned short *in_planes = b.copy(planes), *in_rows = b.copy(rows);
        unsigned short *best = reinterpret_cast<unsigned short *>(b.output<unsigned>(OFFERS / 2 * n)), *best_rows = b.allocate<unsigned short>(OFFERS * n);
        b.tolerance = 0.0;
        const int places = static_cast<int>(n);
        const auto turned = launch(rows_to_planes, blocks(OFFERS * n, 256), 256, 0, best_rows, best, places);
        return {{"flawed", launch(bettered, blocks(n, 128), 128, 0, starts, others, in_planes, best, places)},
            {"rows", launch(bettered_rows, blocks(n, 128), 128, 0, starts, others, reinterpret_cast<const uint4 *>(in_rows), reinterpret_cast<uint4 *>(best_rows), places), {}, 1, turned},
            {"lanes", launch(bettered_lanes, blocks(4 * n, 128), 128, 0, starts, others, reinterpret_cast<const unsigned *>(in_rows), reinterpret_cast<unsigned *>(best_rows), places), {}, 1, turned}};
    });

// --- how far profiles are from others at their farthest ---

__global__ void __launch_bounds__(256) farthest(const float *one, const float *two, float *out, int columns, int depth) {
    __shared__ float left[8][33], right[32][33];
    const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 8 + ty, column = blockIdx.x * 32;
    float most = 0.0f;
    for (int first = 0; first < depth; first += 32) {
        left[ty][tx] = one[row * depth + first + tx];
        for (int k = ty; k < 32; k += 8) right[k][tx] = two[(column + k) * depth + first + tx];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++) most = fmaxf(most, fabsf(left[ty][k] - right[tx][k]));
        __syncthreads();
    }
    out[row * columns + column + tx] = most;
}
// Rows x Columns values a thread, 8 Rows x 32 Columns a block.
template <int Rows, int Columns>
__global__ void __launch_bounds__(256) farthest_blocked(const float *__restrict__ one, const float *__restrict__ two, float *__restrict__ out, int columns, int depth) {
    constexpr int DEEP = 32;
    __shared__ float left[8 * Rows][DEEP + 1], right[32 * Columns][DEEP + 1];
    const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 8 * Rows, column = blockIdx.x * 32 * Columns;
    float most[Rows][Columns] = {};
    for (int first = 0; first < depth; first += DEEP) {
#pragma unroll
        for (int k = ty; k < 8 * Rows; k += 8) left[k][tx] = one[(row + k) * depth + first + tx];
#pragma unroll
        for (int k = ty; k < 32 * Columns; k += 8) right[k][tx] = two[(column + k) * depth + first + tx];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < DEEP; k++) {
            float a[Rows], b[Columns];
#pragma unroll
            for (int p = 0; p < Rows; p++) a[p] = left[ty + 8 * p][k];
#pragma unroll
            for (int q = 0; q < Columns; q++) b[q] = right[tx + 32 * q][k];
#pragma unroll
            for (int p = 0; p < Rows; p++)
#pragma unroll
                for (int q = 0; q < Columns; q++) most[p][q] = fmaxf(most[p][q], fabsf(a[p] - b[q]));
        }
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < Rows; p++)
#pragma unroll
        for (int q = 0; q < Columns; q++) out[(row + ty + 8 * p) * columns + column + tx + 32 * q] = most[p][q];
}

Study profiles("profiles_farthest_small_tile", "chemistry", 1536, "largest differences of 1536 profiles of 512 values from 1536 others",
    "tiles of 8 x 32 and one pair a thread: two shared loads for each difference",
    {{"four", "four pairs a thread", {"shared_memory_bandwidth"}}, {"sixteen", "sixteen pairs a thread", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const int depth = 512, columns = static_cast<int>(n);
        const float *one = b.random<float>(n * depth), *two = b.random<float>(n * depth);
        float *out = b.output<float>(n * n);
        b.tolerance = 1e-6;
        const dim3 block(32, 8);
        return {{"flawed", launch(farthest, dim3(n / 32, n / 8), block, 0, one, two, out, columns, depth)}, {"four", launch(farthest_blocked<4, 1>, dim3(n / 32, n / 32), block, 0, one, two, out, columns, depth)},
            {"sixteen", launch(farthest_blocked<8, 2>, dim3(n / 64, n / 64), block, 0, one, two, out, columns, depth)}};
    });

}  // namespace
