// Databases and storage: compressed bitmaps, rows for an exchange, sketches, nullable columns, parities. Each kernel but the last has one weakness and two ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- compressed bitmaps: how many values two sorted lists of 16 bits have in common ---

struct Containers {
    const int *begin;  // of the first list of each pair, of its second, and so on
    const unsigned short *values;
};

__device__ __forceinline__ int not_below(const unsigned short *list, int count, int value) {
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (list[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low;
}

// A warp a pair: each lane merges a thirty-second of the first list with what it needs of the second.
__global__ void __launch_bounds__(128) common_values(Containers c, int *__restrict__ out, int pairs) {
    const int pair = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (pair >= pairs) return;
    const int first = c.begin[2 * pair], second = c.begin[2 * pair + 1], of_second = c.begin[2 * pair + 2] - second, of_first = second - first;
    const unsigned short *a = c.values + first, *b = c.values + second;
    int i = of_first * lane / 32, common = 0;
    const int end = of_first * (lane + 1) / 32;
    if (i < end) {
        int j = not_below(b, of_second, a[i]);
        while (i < end && j < of_second) {
            const int left = a[i], right = b[j];
            if (left == right) common++, i++, j++;
            else if (left < right) i++;
            else j++;
        }
    }
    common = __reduce_add_sync(~0u, common);
    if (lane == 0) out[pair] = common;
}
// Lanes take neighbouring values of the first list and look each of them up in the second.
__global__ void __launch_bounds__(128) common_values_looked_up(Containers c, int *__restrict__ out, int pairs) {
    const int pair = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (pair >= pairs) return;
    const int first = c.begin[2 * pair], second = c.begin[2 * pair + 1], of_second = c.begin[2 * pair + 2] - second, of_first = second - first;
    const unsigned short *b = c.values + second;
    int common = 0;
    for (int i = lane; i < of_first; i += 32) {
        const int value = c.values[first + i], at = not_below(b, of_second, value);
        common += at < of_second && b[at] == value;
    }
    common = __reduce_add_sync(~0u, common);
    if (lane == 0) out[pair] = common;
}
// A block a pair: the second list as 65536 bits in shared memory.
__global__ void __launch_bounds__(128) common_values_bits(Containers c, int *__restrict__ out) {
    __shared__ unsigned bits[2048];
    __shared__ int total;
    const int pair = blockIdx.x, first = c.begin[2 * pair], second = c.begin[2 * pair + 1], end = c.begin[2 * pair + 2];
    for (int i = threadIdx.x; i < 2048; i += 128) bits[i] = 0;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    for (int i = second + threadIdx.x; i < end; i += 128) atomicOr(&bits[c.values[i] / 32], 1u << c.values[i] % 32);
    __syncthreads();
    int common = 0;
    for (int i = first + threadIdx.x; i < second; i += 128) common += bits[c.values[i] / 32] >> c.values[i] % 32 & 1;
    common = __reduce_add_sync(~0u, common);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, common);
    __syncthreads();
    if (threadIdx.x == 0) out[pair] = total;
}

Study containers("bitmap_containers_merged_by_lanes", "databases", 24576, "values that two sorted lists of 16 bits have in common, for 24576 pairs of lists of 100 to 4000",
    "each lane merges a piece of its own, which takes the lanes to places far apart and to different branches",
    {{"looked_up", "neighbouring values a warp, looked up by bisection", {"uncoalesced_access", "branch_divergence"}}, {"bits", "the second list as bits in shared memory", {"branch_divergence", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> begin{0};
        std::vector<unsigned short> values;
        for (long list = 0; list < 2 * n; list++) {
            const unsigned draw = hash(static_cast<unsigned>(list) + 41), gap = 32 + draw % 512;
            for (unsigned value = draw / 512 % gap, k = 0; value < 65536 && k < 4000; k++) {
                values.push_back(static_cast<unsigned short>(value));
                value += 1 + hash(static_cast<unsigned>(values.size())) % gap;
            }
            begin.push_back(static_cast<int>(values.size()));
        }
        // There is no buffer of 16-bit numbers: two of them are one of 32.
        std::vector<unsigned> words(values.size() / 2 + 1);
        std::copy_n(reinterpret_cast<const unsigned char *>(values.data()), values.size() * 2, reinterpret_cast<unsigned char *>(words.data()));
        const Containers c{b.copy(begin), reinterpret_cast<const unsigned short *>(b.copy(words))};
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        const int pairs = static_cast<int>(n);
        return {{"flawed", launch(common_values, blocks(n, 4), 128, 0, c, out, pairs)}, {"looked_up", launch(common_values_looked_up, blocks(n, 4), 128, 0, c, out, pairs)}, {"bits", launch(common_values_bits, n, 128, 0, c, out)}};
    });

// --- columns to rows, for an exchange between machines ---

struct Columns {
    const unsigned long long *order, *price;
    const unsigned *part, *supplier, *day, *amount;
    const unsigned long long *comment;
};
struct OrderRow {
    unsigned long long order, price;
    unsigned part, supplier, day, amount;
    unsigned long long comment;
};
constexpr int WORDS = sizeof(OrderRow) / 8;  // five words of 64 bits

__device__ __forceinline__ OrderRow row_of(const Columns &c, int i) { return {c.order[i], c.price[i], c.part[i], c.supplier[i], c.day[i], c.amount[i], c.comment[i]}; }
__device__ __forceinline__ unsigned long long both(unsigned low, unsigned high) { return static_cast<unsigned long long>(high) << 32 | low; }

__global__ void __launch_bounds__(256) to_rows(Columns c, OrderRow *__restrict__ rows, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) rows[i] = row_of(c, i);
}
// 256 rows are put together in shared memory and written as they lie there.
__global__ void __launch_bounds__(256) to_rows_staged(Columns c, unsigned long long *__restrict__ rows, int count) {
    __shared__ unsigned long long staged[256 * WORDS];
    const int first = blockIdx.x * 256, i = first + threadIdx.x;
    if (i < count) {
        const OrderRow row = row_of(c, i);
        unsigned long long *own = staged + threadIdx.x * WORDS;
        own[0] = row.order, own[1] = row.price, own[2] = both(row.part, row.supplier), own[3] = both(row.day, row.amount), own[4] = row.comment;
    }
    __syncthreads();
    const int words = min(256, count - first) * WORDS;
    for (int w = threadIdx.x; w < words; w += 256) rows[static_cast<size_t>(first) * WORDS + w] = staged[w];
}
// A thread a word of the rows.
__global__ void __launch_bounds__(320) to_rows_word_each(Columns c, unsigned long long *__restrict__ rows, int count) {
    const int at = blockIdx.x * 320 + threadIdx.x, i = at / WORDS, word = at - i * WORDS;
    if (i >= count) return;
    unsigned long long value;
    if (word == 2) value = both(c.part[i], c.supplier[i]);
    else if (word == 3) value = both(c.day[i], c.amount[i]);
    else value = (word == 0 ? c.order : word == 1 ? c.price : c.comment)[i];
    rows[at] = value;
}

Study exchange_rows("rows_of_40_bytes_stored_by_a_thread_each", "databases", 1 << 22, "4194304 rows of 40 bytes put together from seven columns",
    "a thread stores its row word by word, 40 bytes from those of its neighbours",
    {{"staged", "rows put together in shared memory and written word after word", {"uncoalesced_access"}}, {"word_each", "a thread for each word of the rows", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const auto wide = [&] { return b.random<unsigned long long>(n, 0, 9e15); };
        const auto narrow = [&] { return b.random<unsigned>(n, 0, 4e9); };
        Columns c{};
        c.order = wide(), c.price = wide(), c.part = narrow(), c.supplier = narrow(), c.day = narrow(), c.amount = narrow(), c.comment = wide();
        unsigned long long *rows = b.output<unsigned long long>(n * WORDS);
        b.tolerance = 0.0;
        return {{"flawed", launch(to_rows, blocks(n, 256), 256, 0, c, reinterpret_cast<OrderRow *>(rows), n)}, {"staged", launch(to_rows_staged, blocks(n, 256), 256, 0, c, rows, n)},
            {"word_each", launch(to_rows_word_each, blocks(n * WORDS, 320), 320, 0, c, rows, n)}};
    });

// --- count-min sketches: four rows of counters, of which each key adds to one ---

constexpr int SKETCH_ROWS = 4, SKETCH_WIDTH = 1 << 16;

__device__ __forceinline__ void add_to_sketch(int *sketch, unsigned key, int times) {
#pragma unroll
    for (int r = 0; r < SKETCH_ROWS; r++) atomicAdd(&sketch[r * SKETCH_WIDTH + hash(key ^ 0x9e3779b9u * (r + 1)) % SKETCH_WIDTH], times);
}

__global__ void __launch_bounds__(256) sketch_keys(const unsigned *__restrict__ keys, int *sketch, int count) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) add_to_sketch(sketch, keys[i], 1);
}
// One lane of those that hold the same key adds for all.
__global__ void __launch_bounds__(256) sketch_keys_matched(const unsigned *__restrict__ keys, int *sketch, int count) {
    for (int first = blockIdx.x * 256; first < count; first += gridDim.x * 256) {
        const int i = first + threadIdx.x;
        const bool there = i < count;
        const unsigned key = there ? keys[i] : 0u, same = __match_any_sync(~0u, there ? static_cast<long long>(key) : -1ll);
        if (there && __ffs(static_cast<int>(same)) - 1 == static_cast<int>(threadIdx.x % 32)) add_to_sketch(sketch, key, __popc(same));
    }
}
// Keys that come first to a slot of the block's table are counted there and handed in once at the end.
__global__ void __launch_bounds__(256) sketch_keys_cached(const unsigned *__restrict__ keys, int *sketch, int count) {
    constexpr int SLOTS = 2048;
    __shared__ unsigned held[SLOTS];
    __shared__ int times[SLOTS];
    for (int i = threadIdx.x; i < SLOTS; i += 256) held[i] = ~0u, times[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
        const unsigned key = keys[i], slot = hash(key) % SLOTS, before = held[slot] == key ? key : atomicCAS(&held[slot], ~0u, key);
        if (before == key || before == ~0u) atomicAdd(&times[slot], 1);
        else add_to_sketch(sketch, key, 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < SLOTS; i += 256)
        if (times[i] > 0) add_to_sketch(sketch, held[i], times[i]);
}

Study count_min("count_min_sketch_four_atomics_a_key", "databases", 1 << 22, "4194304 keys, few of which are frequent, counted in a sketch of four rows of 65536 counters",
    "four global atomics for each key, also for those that half of the rows have",
    {{"matched", "equal keys of a warp are added by one lane", {"global_atomics"}}, {"cached", "a table of 2048 keys in shared memory for each block", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> keys(n);
        for (long i = 0; i < n; i++) {
            const double u = hash(static_cast<unsigned>(i) + 17) / 4294967296.0;
            keys[i] = hash(static_cast<unsigned>(std::exp(u * 13.8))) >> 1;  // the k-th key with a likelihood as 1 / k
        }
        const unsigned *all = b.copy(keys);
        int *sketch = b.output<int>(SKETCH_ROWS * SKETCH_WIDTH, true);
        b.tolerance = 0.0;
        const int grid = multiprocessors() * 8;
        return {{"flawed", launch(sketch_keys, grid, 256, 0, all, sketch, n)}, {"matched", launch(sketch_keys_matched, grid, 256, 0, all, sketch, n)}, {"cached", launch(sketch_keys_cached, grid, 256, 0, all, sketch, n)}};
    });

// --- columns with nulls: prices less discounts where both are there, and a bit for each row that says whether they are ---

struct Nullable {
    const int *values;
    const unsigned *there;  // a bit a row
};

__device__ __forceinline__ int discounted(int price, int percent) { return price - price * percent / 100; }

__global__ void __launch_bounds__(256) discounts(Nullable price, Nullable percent, int *__restrict__ out, unsigned *__restrict__ there, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    bool both = false;
    if (i < count) {
        const unsigned char *a = reinterpret_cast<const unsigned char *>(price.there), *b = reinterpret_cast<const unsigned char *>(percent.there);
        both = a[i / 8] >> i % 8 & b[i / 8] >> i % 8 & 1;
        out[i] = both ? discounted(price.values[i], percent.values[i]) : 0;
    }
    const unsigned word = __ballot_sync(~0u, both);
    if (i < count && i % 32 == 0) there[i / 32] = word;
}
// Four rows a thread; eight threads share a word of bits.
__global__ void __launch_bounds__(256) discounts_four(const int4 *__restrict__ prices, const unsigned *__restrict__ price_there, const int4 *__restrict__ percents, const unsigned *__restrict__ percent_there,
    int4 *__restrict__ out, unsigned *__restrict__ there, int count) {
    const int four = blockIdx.x * 256 + threadIdx.x;
    if (four * 4 >= count) return;
    const int4 price = prices[four], percent = percents[four];
    const unsigned word = price_there[four / 8] & percent_there[four / 8], bits = word >> 4 * (four % 8);
    out[four] = make_int4(bits & 1 ? discounted(price.x, percent.x) : 0, bits & 2 ? discounted(price.y, percent.y) : 0, bits & 4 ? discounted(price.z, percent.z) : 0, bits & 8 ? discounted(price.w, percent.w) : 0);
    if (four % 8 == 0) there[four / 8] = word;
}
// A warp takes 1024 rows: a word of bits a lane, which the others get by shuffles, and loads for 128 rows at a time.
__global__ void __launch_bounds__(256) discounts_words(const int4 *__restrict__ prices, const unsigned *__restrict__ price_there, const int4 *__restrict__ percents, const unsigned *__restrict__ percent_there,
    int4 *__restrict__ out, unsigned *__restrict__ there, int count) {
    const int warp = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (warp * 1024 >= count) return;
    const unsigned word = price_there[warp * 32 + lane] & percent_there[warp * 32 + lane];
    there[warp * 32 + lane] = word;
#pragma unroll 4
    for (int step = 0; step < 8; step++) {
        const int four = warp * 256 + step * 32 + lane;
        const int4 price = prices[four], percent = percents[four];
        const unsigned bits = __shfl_sync(~0u, word, step * 4 + lane / 8) >> 4 * (lane % 8);
        out[four] = make_int4(bits & 1 ? discounted(price.x, percent.x) : 0, bits & 2 ? discounted(price.y, percent.y) : 0, bits & 4 ? discounted(price.z, percent.z) : 0, bits & 8 ? discounted(price.w, percent.w) : 0);
    }
}

Study nullable_columns("nullable_discounts_a_row_and_a_bit_a_thread", "databases", 1 << 25, "prices less discounts of 33554432 rows, of which some are null, and which of the results are",
    "a row a thread: four bytes an access, and a byte for the one bit that is wanted",
    {{"four", "four rows a thread", {"narrow_access"}}, {"words", "1024 rows a warp, a word of bits a lane", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> first(n / 32), second(n / 32);
        for (size_t i = 0; i < first.size(); i++) {
            const unsigned a = static_cast<unsigned>(i);
            first[i] = hash(a) | hash(a + 1) | hash(a + 2) | hash(a + 3), second[i] = hash(a + 4) | hash(a + 5) | hash(a + 6);
        }
        const Nullable price{b.random<int>(n, 100, 1000000), b.copy(first)}, percent{b.random<int>(n, 0, 40), b.copy(second)};
        int *out = b.output<int>(n);
        unsigned *there = b.output<unsigned>(n / 32);
        b.tolerance = 0.0;
        auto prices = reinterpret_cast<const int4 *>(price.values), percents = reinterpret_cast<const int4 *>(percent.values);
        return {{"flawed", launch(discounts, blocks(n, 256), 256, 0, price, percent, out, there, n)},
            {"four", launch(discounts_four, blocks(n, 1024), 256, 0, prices, price.there, percents, percent.there, reinterpret_cast<int4 *>(out), there, n)},
            {"words", launch(discounts_words, blocks(n, 8192), 256, 0, prices, price.there, percents, percent.there, reinterpret_cast<int4 *>(out), there, n)}};
    });

// --- parity of a stripe over eight disks ---

constexpr int DISKS = 8;

struct Stripe {
    const uint4 *disk[DISKS];
};

__global__ void __launch_bounds__(256) parity(Stripe s, uint4 *__restrict__ out, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    uint4 all = s.disk[0][i];
#pragma unroll
    for (int d = 1; d < DISKS; d++) {
        const uint4 v = s.disk[d][i];
        all.x ^= v.x, all.y ^= v.y, all.z ^= v.z, all.w ^= v.w;
    }
    out[i] = all;
}

Study stripe_parity("sound_parity_of_eight_disks", "storage", 1 << 20, "parity of 8 disks of 16777216 bytes", "", {},
    [](Buffers &b, long n) -> Sides {
        Stripe s{};
        for (auto &disk : s.disk) disk = reinterpret_cast<const uint4 *>(b.random<unsigned>(n * 4, 0, 4294967295.0));
        unsigned *out = b.output<unsigned>(n * 4);
        b.tolerance = 0.0;
        return {{"sound", launch(parity, blocks(n, 256), 256, 0, s, reinterpret_cast<uint4 *>(out), n)}};
    });

}  // namespace
