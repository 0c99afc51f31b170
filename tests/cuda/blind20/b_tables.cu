// Tables, streams, joins, labyrinths and tags of messages.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "../pairs/pair.cuh"

namespace {

// --- rows of a table that three conditions keep ---

struct Limits {
    unsigned from, span, most, low, high;  // days of the date, the largest quantity, the discount
};
__device__ __forceinline__ unsigned kept(unsigned date, unsigned quantity, unsigned discount, Limits limits) {
    return date - limits.from < limits.span && quantity < limits.most && discount >= limits.low && discount <= limits.high;
}
__global__ void __launch_bounds__(256) rows_kept(const unsigned short *__restrict__ dates, const unsigned char *__restrict__ quantities, const unsigned char *__restrict__ discounts, unsigned char *__restrict__ out, int rows, Limits limits) {
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row < rows) out[row] = kept(dates[row], quantities[row], discounts[row], limits);
}
__global__ void __launch_bounds__(256) rows_kept_fours(const ushort4 *__restrict__ dates, const uchar4 *__restrict__ quantities, const uchar4 *__restrict__ discounts, uchar4 *__restrict__ out, int fours, Limits limits) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= fours) return;
    const ushort4 date = dates[k];
    const uchar4 quantity = quantities[k], discount = discounts[k];
    out[k] = make_uchar4(kept(date.x, quantity.x, discount.x, limits), kept(date.y, quantity.y, discount.y, limits), kept(date.z, quantity.z, discount.z, limits), kept(date.w, quantity.w, discount.w, limits));
}
// Sixteen rows a thread; four bytes are compared at once.
__device__ __forceinline__ unsigned kept_four(uint2 dates, unsigned quantities, unsigned discounts, Limits limits) {
    const unsigned in_time = ((dates.x & 0xffff) - limits.from < limits.span) | ((dates.x >> 16) - limits.from < limits.span) << 8 | ((dates.y & 0xffff) - limits.from < limits.span) << 16 | ((dates.y >> 16) - limits.from < limits.span) << 24;
    const unsigned ones = 0x01010101u;
    return in_time & __vcmpgtu4(limits.most * ones, quantities) & __vcmpgeu4(discounts, limits.low * ones) & __vcmpgeu4(limits.high * ones, discounts);
}
__global__ void __launch_bounds__(256) rows_kept_sixteens(const uint4 *__restrict__ dates, const uint4 *__restrict__ quantities, const uint4 *__restrict__ discounts, uint4 *__restrict__ out, int sixteens, Limits limits) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= sixteens) return;
    const uint4 a = dates[2 * k], z = dates[2 * k + 1], quantity = quantities[k], discount = discounts[k];
    out[k] = make_uint4(kept_four(make_uint2(a.x, a.y), quantity.x, discount.x, limits), kept_four(make_uint2(a.z, a.w), quantity.y, discount.y, limits), kept_four(make_uint2(z.x, z.y), quantity.z, discount.z, limits),
        kept_four(make_uint2(z.z, z.w), quantity.w, discount.w, limits));
}

Study keeping("kept_rows_marked_a_row_a_thread", "databases", 1 << 25, "which of 33554432 rows a range of dates, of discounts and a largest quantity keep",
    "a thread takes one row: two bytes of its date, one each of quantity and discount, and stores one",
    {{"fours", "four rows a thread", {"narrow_access"}}, {"sixteens", "sixteen rows a thread, four bytes compared at once", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *dates = b.random<unsigned>(n / 2, 0.0, 4294967295.0);
        const unsigned char *quantities = b.random<unsigned char>(n, 0.0, 50.0), *discounts = b.random<unsigned char>(n, 0.0, 11.0);
        unsigned char *out = b.output<unsigned char>(n);
        const Limits limits = {8000, 30000, 24, 5, 7};
        b.tolerance = 0.0;
        return {{"flawed", launch(rows_kept, blocks(n, 256), 256, 0, reinterpret_cast<const unsigned short *>(dates), quantities, discounts, out, n, limits)},
            {"fours", launch(rows_kept_fours, blocks(n, 1024), 256, 0, reinterpret_cast<const ushort4 *>(dates), reinterpret_cast<const uchar4 *>(quantities), reinterpret_cast<const uchar4 *>(discounts), reinterpret_cast<uchar4 *>(out), n / 4, limits)},
            {"sixteens", launch(rows_kept_sixteens, blocks(n, 4096), 256, 0, reinterpret_cast<const uint4 *>(dates), reinterpret_cast<const uint4 *>(quantities), reinterpret_cast<const uint4 *>(discounts), reinterpret_cast<uint4 *>(out), n / 16, limits)}};
    });

// --- windows of time into which events fall ---

struct Windows {
    long long origin, width, slide, grace, watermark, parts;  // microseconds, but for the parts
};
__device__ __forceinline__ unsigned mixed(unsigned key) { return static_cast<unsigned>(key * 0x9e3779b97f4a7c15ull >> 32); }
__global__ void __launch_bounds__(256) event_windows(const long long *__restrict__ times, const unsigned *__restrict__ keys, uint2 *__restrict__ out, int events, Windows windows) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= events) return;
    const long long since = times[i] - windows.origin;
    const long long window = since / windows.width, slot = since % windows.width / windows.slide, late = (windows.watermark - since) / windows.grace, part = mixed(keys[i]) % windows.parts;
    out[i] = make_uint2(static_cast<unsigned>(window * 64 + slot), static_cast<unsigned>(late * 1024 + part));
}
// Widths are whole milliseconds, of which there are less than 2^32 since the origin.
__global__ void __launch_bounds__(256) event_windows_narrow(const long long *__restrict__ times, const unsigned *__restrict__ keys, uint2 *__restrict__ out, int events, long long origin, long long watermark, unsigned width, unsigned slide, unsigned grace, unsigned parts) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= events) return;
    const unsigned long long micros = times[i] - origin;
    const unsigned since = static_cast<unsigned>(micros / 1000), late = static_cast<unsigned>((watermark - micros) / 1000), window = since / width;
    out[i] = make_uint2(window * 64 + (since - window * width) / slide, late / grace * 1024 + mixed(keys[i]) % parts);
}
// A quotient by the reciprocal in 2^64ths, which is too small by one at most.
struct Divisor {
    unsigned long long by, reciprocal;
    __device__ __forceinline__ unsigned long long divide(unsigned long long x) const {
        const unsigned long long quotient = __umul64hi(x, reciprocal);
        return quotient + (x - quotient * by >= by);
    }
};
__global__ void __launch_bounds__(256) event_windows_reciprocals(const long long *__restrict__ times, const unsigned *__restrict__ keys, uint2 *__restrict__ out, int events, long long origin, long long watermark, Divisor width, Divisor slide, Divisor grace, Divisor parts) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= events) return;
    const unsigned long long since = times[i] - origin, window = width.divide(since), key = mixed(keys[i]);
    out[i] = make_uint2(static_cast<unsigned>(window * 64 + slide.divide(since - window * width.by)), static_cast<unsigned>(grace.divide(watermark - since) * 1024 + key - parts.divide(key) * parts.by));
}

Study events("event_windows_divided_in_64_bits", "databases", 1 << 23, "the window, slot, lateness and part of 8388608 events of a stream",
    "quotients and remainders of 64 bits by what is only known at run time, for each event",
    {{"narrow", "whole milliseconds since the origin in 32 bits", {"integer_arithmetic"}}, {"reciprocals", "products with reciprocals found beforehand", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const Windows windows = {1700000000000000, 7323000000, 121000000, 5000000, 2147000000000, 1021};
        const long long *times = reinterpret_cast<const long long *>(b.random<unsigned long long>(n, 1700000000000000.0, 1702146000000000.0));
        const unsigned *keys = b.random<unsigned>(n, 0.0, 4294967295.0);
        uint2 *out = reinterpret_cast<uint2 *>(b.output<unsigned>(n * 2));
        const auto divisor = [](long long by) { return Divisor{static_cast<unsigned long long>(by), ~0ull / static_cast<unsigned long long>(by)}; };
        b.tolerance = 0.0;
        return {{"flawed", launch(event_windows, blocks(n, 256), 256, 0, times, keys, out, n, windows)},
            {"narrow", launch(event_windows_narrow, blocks(n, 256), 256, 0, times, keys, out, n, windows.origin, windows.watermark, windows.width / 1000, windows.slide / 1000, windows.grace / 1000, windows.parts)},
            {"reciprocals", launch(event_windows_reciprocals, blocks(n, 256), 256, 0, times, keys, out, n, windows.origin, windows.watermark, divisor(windows.width), divisor(windows.slide), divisor(windows.grace), divisor(windows.parts))}};
    });

// --- a join, partition by partition ---

constexpr int BUILD = 128, SLOTS = 256, PROBES = 256, SHARES = 16, PIECE = 4096;
constexpr unsigned EMPTY = 0xffffffffu;

// What a partition's keys and values are, by open addressing.
struct JoinTable {
    unsigned keys[SLOTS];
    int values[SLOTS];
};
__device__ __forceinline__ void build_table(JoinTable &table, const unsigned *keys, const int *values) {
    for (int k = threadIdx.x; k < SLOTS; k += PROBES) table.keys[k] = EMPTY;
    __syncthreads();
    if (threadIdx.x < BUILD) {
        const unsigned key = keys[threadIdx.x];
        unsigned slot = hash(key) % SLOTS;
        while (atomicCAS(table.keys + slot, EMPTY, key) != EMPTY) slot = (slot + 1) % SLOTS;
        table.values[slot] = values[threadIdx.x];
    }
    __syncthreads();
}
__device__ __forceinline__ int found(const JoinTable &table, unsigned key) {
    unsigned slot = hash(key) % SLOTS;
    while (table.keys[slot] != key && table.keys[slot] != EMPTY) slot = (slot + 1) % SLOTS;
    return table.keys[slot] == key ? table.values[slot] : -1;
}
// STARTS: where the rows of each partition begin; partitions are as unlike as what is sold.
__global__ void __launch_bounds__(PROBES) partition_join(const int *__restrict__ starts, const unsigned *__restrict__ keys, const int *__restrict__ values, const unsigned *__restrict__ rows, int *__restrict__ out) {
    __shared__ JoinTable table;
    const int partition = blockIdx.x;
    build_table(table, keys + partition * BUILD, values + partition * BUILD);
    for (int row = starts[partition] + threadIdx.x; row < starts[partition + 1]; row += PROBES) out[row] = found(table, rows[row]);
}
// Each partition is dealt out to sixteen blocks; those for which nothing is left go.
__global__ void __launch_bounds__(PROBES) partition_join_shares(const int *__restrict__ starts, const unsigned *__restrict__ keys, const int *__restrict__ values, const unsigned *__restrict__ rows, int *__restrict__ out) {
    __shared__ JoinTable table;
    const int partition = blockIdx.x, first = starts[partition] + blockIdx.y * PROBES, end = starts[partition + 1];
    if (first >= end) return;
    build_table(table, keys + partition * BUILD, values + partition * BUILD);
    for (int row = first + threadIdx.x; row < end; row += PROBES * SHARES) out[row] = found(table, rows[row]);
}
// A piece: its partition, its first row and the row after its last, 4096 rows at most.
__global__ void __launch_bounds__(PROBES) partition_join_pieces(const int4 *__restrict__ pieces, const unsigned *__restrict__ keys, const int *__restrict__ values, const unsigned *__restrict__ rows, int *__restrict__ out) {
    __shared__ JoinTable table;
    const int4 piece = pieces[blockIdx.x];
    build_table(table, keys + piece.x * BUILD, values + piece.x * BUILD);
    for (int row = piece.y + threadIdx.x; row < piece.z; row += PROBES) out[row] = found(table, rows[row]);
}
__global__ void rows_of_partitions(unsigned *rows, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < count) rows[i] = (hash(i) % (2 * BUILD) + 1) * 2654435761u;
}

Study joined("partition_join_a_block_a_partition", "databases", 1024, "a join of 1024 partitions, of which the largest has a twenty-fourth of all rows",
    "a block a partition: those of the largest work on when all others have ended",
    {{"pieces", "a list of pieces of 4096 rows at most, a block a piece", {"workload_imbalance"}}, {"shares", "sixteen blocks for each partition", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(1, 0), values(n * BUILD);
        std::vector<unsigned> keys(n * BUILD);
        std::vector<int4> pieces;
        for (int p = 0; p < n; p++) {
            const int place = (p * 389 + 17) % n, size = static_cast<int>(160000.0 * std::pow(place + 1.0, -0.7)), start = starts.back();
            for (int from = 0; from < size; from += PIECE) pieces.push_back(make_int4(p, start + from, start + std::min(size, from + PIECE), 0));
            starts.push_back(start + size);
            for (int k = 0; k < BUILD; k++) keys[p * BUILD + k] = (2 * k + 1) * 2654435761u, values[p * BUILD + k] = p * BUILD + k;
        }
        const int count = starts.back();
        unsigned *rows = b.allocate<unsigned>(count);
        launch(rows_of_partitions, blocks(count, 128), 128, 0, rows, count)();
        const int *begin = b.copy(starts), *held = b.copy(values);
        const unsigned *built = b.copy(keys);
        const int4 *list = b.copy(pieces);
        int *out = b.output<int>(count);
        b.tolerance = 0.0;
        return {{"flawed", launch(partition_join, n, PROBES, 0, begin, built, held, rows, out)}, {"pieces", launch(partition_join_pieces, pieces.size(), PROBES, 0, list, built, held, rows, out)},
            {"shares", launch(partition_join_shares, dim3(n, SHARES), PROBES, 0, begin, built, held, rows, out)}};
    });

// --- amounts in one currency by a table of rates ---

constexpr int RATES = 1500;

// SIZE slots of a key and a rate in dynamic shared memory; a block of THREADS.
template <int SIZE, int THREADS>
__global__ void __launch_bounds__(THREADS) converted(const uint2 *__restrict__ table, const unsigned *__restrict__ keys, const float *__restrict__ amounts, float *__restrict__ out, int rows) {
    extern __shared__ uint2 slots[];
    for (int k = threadIdx.x; k < SIZE; k += THREADS) slots[k] = table[k];
    __syncthreads();
    for (int row = blockIdx.x * THREADS + threadIdx.x; row < rows; row += gridDim.x * THREADS) {
        const unsigned key = keys[row];
        unsigned slot = hash(key) % SIZE;
        while (slots[slot].x != key && slots[slot].x) slot = (slot + 1) % SIZE;
        out[row] = slots[slot].x ? amounts[row] * __uint_as_float(slots[slot].y) : 0.0f;
    }
}

Study converting("converted_amounts_table_of_128_kib", "databases", 1 << 23, "8388608 amounts times what a table of 1500 rates has for their keys",
    "a table ten times as large as its rates need takes the shared memory of a multiprocessor for eight warps",
    {{"small", "a table of 4096 slots, six blocks a multiprocessor", {"low_occupancy"}}, {"wide", "blocks of 1024 threads around the table as it is", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        const auto table_of = [&](unsigned size) {
            std::vector<uint2> table(size, make_uint2(0, 0));
            for (unsigned k = 1; k <= RATES; k++) {
                unsigned slot = hash(k) % size;
                while (table[slot].x) slot = (slot + 1) % size;
                const float rate = 0.5f + k * 0.001f;
                table[slot].x = k, std::memcpy(&table[slot].y, &rate, sizeof rate);
            }
            return b.copy(table);
        };
        const uint2 *large = table_of(16384), *small = table_of(4096);
        const unsigned *keys = b.random<unsigned>(n, 1.0, RATES + 100.0);
        const float *amounts = b.random<float>(n, 1.0, 100.0);
        float *out = b.output<float>(n);
        const int each = multiprocessors();
        return {{"flawed", launch(converted<16384, 256>, each, 256, 16384 * sizeof(uint2), large, keys, amounts, out, n)}, {"small", launch(converted<4096, 256>, each * 6, 256, 4096 * sizeof(uint2), small, keys, amounts, out, n)},
            {"wide", launch(converted<16384, 1024>, each, 1024, 16384 * sizeof(uint2), large, keys, amounts, out, n)}};
    });

// --- how many steps each place of a labyrinth is from its entrance ---

constexpr int MAZE = 32, PLANES = 10, MAZES = 4;

// A row's open places are the bits of a word; the entrance is open always.
__device__ __forceinline__ unsigned open_places(const unsigned *rows, int maze, int row) { return rows[maze * MAZE + row] | (row == 0); }
__global__ void __launch_bounds__(MAZE *MAZE) maze_steps(const unsigned *__restrict__ rows, int *__restrict__ out) {
    __shared__ int steps[MAZE + 2][MAZE + 2];
    __shared__ bool changed;
    const int x = threadIdx.x % MAZE, y = threadIdx.x / MAZE, maze = blockIdx.x;
    const bool open = open_places(rows, maze, y) >> x & 1;
    for (int k = threadIdx.x; k < (MAZE + 2) * (MAZE + 2); k += MAZE * MAZE) (&steps[0][0])[k] = -1;
    __syncthreads();
    if (threadIdx.x == 0) steps[1][1] = 0;
    for (int step = 1;; step++) {
        __syncthreads();
        if (threadIdx.x == 0) changed = false;
        __syncthreads();
        const int before = step - 1;
        if (open && steps[y + 1][x + 1] < 0 && (steps[y][x + 1] == before || steps[y + 2][x + 1] == before || steps[y + 1][x] == before || steps[y + 1][x + 2] == before)) {
            steps[y + 1][x + 1] = step;
            changed = true;
        }
        __syncthreads();
        if (!changed) break;
    }
    out[maze * MAZE * MAZE + threadIdx.x] = steps[y + 1][x + 1];
}
// One barrier tells all whether anybody has come further.
__global__ void __launch_bounds__(MAZE *MAZE) maze_steps_told(const unsigned *__restrict__ rows, int *__restrict__ out) {
    __shared__ int steps[MAZE + 2][MAZE + 2];
    const int x = threadIdx.x % MAZE, y = threadIdx.x / MAZE, maze = blockIdx.x;
    const bool open = open_places(rows, maze, y) >> x & 1;
    for (int k = threadIdx.x; k < (MAZE + 2) * (MAZE + 2); k += MAZE * MAZE) (&steps[0][0])[k] = -1;
    __syncthreads();
    int own = -1;
    if (threadIdx.x == 0) steps[1][1] = own = 0;
    bool further = true;
    for (int step = 1; __syncthreads_or(further); step++) {
        const int before = step - 1;
        further = open && own < 0 && (steps[y][x + 1] == before || steps[y + 2][x + 1] == before || steps[y + 1][x] == before || steps[y + 1][x + 2] == before);
        if (further) steps[y + 1][x + 1] = own = step;
    }
    out[maze * MAZE * MAZE + threadIdx.x] = own;
}
// A warp a labyrinth, a lane a row of bits; steps are kept bit by bit in ten words.
__global__ void __launch_bounds__(32 * MAZES) maze_steps_bits(const unsigned *__restrict__ rows, int *__restrict__ out, int mazes) {
    const int lane = threadIdx.x % 32, maze = blockIdx.x * MAZES + threadIdx.x / 32;
    if (maze >= mazes) return;
    const unsigned open = open_places(rows, maze, lane);
    unsigned fresh = lane == 0, reached = fresh, planes[PLANES] = {};
    for (int step = 1; __any_sync(~0u, fresh != 0); step++) {
        const unsigned above = __shfl_up_sync(~0u, fresh, 1), below = __shfl_down_sync(~0u, fresh, 1);
        fresh = (fresh << 1 | fresh >> 1 | (lane ? above : 0) | (lane < 31 ? below : 0)) & open & ~reached;
        reached |= fresh;
#pragma unroll
        for (int k = 0; k < PLANES; k++)
            if (step >> k & 1) planes[k] |= fresh;
    }
    for (int row = 0; row < MAZE; row++) {
        int steps = 0;
#pragma unroll
        for (int k = 0; k < PLANES; k++) steps |= (__shfl_sync(~0u, planes[k], row) >> lane & 1) << k;
        out[(maze * MAZE + row) * MAZE + lane] = __shfl_sync(~0u, reached, row) >> lane & 1 ? steps : -1;
    }
}

Study mazes("maze_steps_three_barriers_a_step", "games", 4096, "how many steps each place of 4096 labyrinths of 32 x 32 is from the entrance",
    "a block of 1024 threads waits three times for each step",
    {{"told", "one barrier a step, which also tells whether anybody has come further", {"barriers"}}, {"bits", "a warp a labyrinth, rows as bits of a word", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> list(n * MAZE);
        for (unsigned k = 0; k < list.size(); k++) list[k] = hash(3 * k) | hash(3 * k + 1) & hash(3 * k + 2);
        const unsigned *rows = b.copy(list);
        int *out = b.output<int>(n * MAZE * MAZE);
        b.tolerance = 0.0;
        return {{"flawed", launch(maze_steps, n, MAZE * MAZE, 0, rows, out)}, {"told", launch(maze_steps_told, n, MAZE * MAZE, 0, rows, out)}, {"bits", launch(maze_steps_bits, blocks(n, MAZES), 32 * MAZES, 0, rows, out, n)}};
    });

// --- tags of messages: polynomials of their words by a key ---

constexpr int WORDS = 1024, FETCHED = 4, TAG_PARTS = 8;
constexpr unsigned long long PRIME = (1ull << 61) - 1;

// A product by the key, less than 2^61 + 8.
__host__ __device__ __forceinline__ unsigned long long folded(unsigned long long low, unsigned long long high) {
    const unsigned long long sum = (low & PRIME) + (low >> 61 | high << 3);
    return (sum & PRIME) + (sum >> 61);
}
__device__ __forceinline__ unsigned long long times(unsigned long long a, unsigned long long z) { return folded(a * z, __umul64hi(a, z)); }
__device__ __forceinline__ unsigned tag_of(unsigned long long sum) {
    sum = sum >= PRIME ? sum - PRIME : sum;
    return static_cast<unsigned>(sum) ^ static_cast<unsigned>(sum >> 32);
}
// The next sixteen words are under way while these are worked on.
__device__ __forceinline__ unsigned long long horner(const uint4 *words, size_t pitch, int fours, unsigned long long key) {
    unsigned long long sum = 0;
    uint4 next[FETCHED];
#pragma unroll
    for (int k = 0; k < FETCHED; k++) next[k] = words[k * pitch];
    for (int from = 0; from < fours; from += FETCHED) {
        uint4 own[FETCHED];
#pragma unroll
        for (int k = 0; k < FETCHED; k++) own[k] = next[k];
        if (from + FETCHED < fours)
#pragma unroll
            for (int k = 0; k < FETCHED; k++) next[k] = words[(from + FETCHED + k) * pitch];
#pragma unroll
        for (int k = 0; k < FETCHED; k++) {
            sum = times(sum + own[k].x, key);
            sum = times(sum + own[k].y, key);
            sum = times(sum + own[k].z, key);
            sum = times(sum + own[k].w, key);
        }
    }
    return sum;
}
__global__ void __launch_bounds__(64) message_tags(const uint4 *__restrict__ words, unsigned *__restrict__ tags, int messages, unsigned long long key) {
    const int message = blockIdx.x * 64 + threadIdx.x;
    if (message < messages) tags[message] = tag_of(horner(words + message, messages, WORDS / 4, key));
}
// Every fourth word in one of four sums, by the key's fourth power.
__global__ void __launch_bounds__(64) message_tags_four(const uint4 *__restrict__ words, unsigned *__restrict__ tags, int messages, unsigned long long key, unsigned long long fourth) {
    const int message = blockIdx.x * 64 + threadIdx.x;
    if (message >= messages) return;
    unsigned long long a = 0, b = 0, c = 0, d = 0;
#pragma unroll 8
    for (int k = 0; k < WORDS / 4; k++) {
        const uint4 own = words[static_cast<size_t>(k) * messages + message];
        a = times(a, fourth) + own.x;
        b = times(b, fourth) + own.y;
        c = times(c, fourth) + own.z;
        d = times(d, fourth) + own.w;
    }
    tags[message] = tag_of(times(times(times(times(a, key) + b, key) + c, key) + d, key));
}
// Eight parts of a message by threads of their own, joined by a power of the key.
__global__ void __launch_bounds__(32 * TAG_PARTS) message_tags_parts(const uint4 *__restrict__ words, unsigned *__restrict__ tags, int messages, unsigned long long key, unsigned long long power) {
    __shared__ unsigned long long sums[TAG_PARTS][32];
    const int message = blockIdx.x * 32 + threadIdx.x, length = WORDS / 4 / TAG_PARTS;
    if (message < messages) sums[threadIdx.y][threadIdx.x] = horner(words + static_cast<size_t>(threadIdx.y) * length * messages + message, messages, length, key);
    __syncthreads();
    if (threadIdx.y || message >= messages) return;
    unsigned long long sum = sums[0][threadIdx.x];
    for (int k = 1; k < TAG_PARTS; k++) sum = folded(times(sum, power) + sums[k][threadIdx.x], 0);
    tags[message] = tag_of(sum);
}

Study tags("message_tags_one_chain_of_products", "cryptography", 16384, "tags of 16384 messages of 1024 words: polynomials by a key modulo 2^61 - 1",
    "a product waits for the one before, a thousand times in a row, in the few threads that there are",
    {{"four", "four sums a thread, by the key's fourth power", {"instruction_latency"}}, {"parts", "eight threads a message, each an eighth of it", {"instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const uint4 *words = reinterpret_cast<const uint4 *>(b.random<unsigned>(n * WORDS, 0.0, 4294967295.0));
        unsigned *out = b.output<unsigned>(n);
        const unsigned long long key = 0x123456789abcdefull;
        const auto power = [&](int exponent) {
            unsigned long long all = 1;
            for (int k = 0; k < exponent; k++) {
                const unsigned __int128 product = static_cast<unsigned __int128>(all) * key;
                all = folded(static_cast<unsigned long long>(product), static_cast<unsigned long long>(product >> 64));
            }
            return all;
        };
        b.tolerance = 0.0;
        return {{"flawed", launch(message_tags, blocks(n, 64), 64, 0, words, out, n, key)}, {"four", launch(message_tags_four, blocks(n, 64), 64, 0, words, out, n, key, power(4))},
            {"parts", launch(message_tags_parts, blocks(n, 32), dim3(32, TAG_PARTS), 0, words, out, n, key, power(WORDS / TAG_PARTS))}};
    });

// --- where the rows that are kept go: sums before each within a page ---

constexpr int PAGE = 1024, HALF = PAGE / 2;

struct Plain {
    static constexpr int SIZE = PAGE;
    __device__ static __forceinline__ int at(int k) { return k; }
};
struct Spread {
    static constexpr int SIZE = PAGE + PAGE / 32;
    __device__ static __forceinline__ int at(int k) { return k + k / 32; }
};
// Up the tree of sums and down again.
template <typename Place>
__global__ void __launch_bounds__(HALF) page_places(const int *__restrict__ counts, int *__restrict__ out) {
    __shared__ int tree[Place::SIZE];
    const int t = threadIdx.x, first = blockIdx.x * PAGE;
    tree[Place::at(t)] = counts[first + t], tree[Place::at(t + HALF)] = counts[first + t + HALF];
    int stride = 1;
    for (int active = HALF; active; active /= 2, stride *= 2) {
        __syncthreads();
        if (t < active) tree[Place::at(stride * (2 * t + 2) - 1)] += tree[Place::at(stride * (2 * t + 1) - 1)];
    }
    __syncthreads();
    if (t == 0) tree[Place::at(PAGE - 1)] = 0;
    for (int active = 1; active < PAGE; active *= 2) {
        stride /= 2;
        __syncthreads();
        if (t < active) {
            const int left = Place::at(stride * (2 * t + 1) - 1), right = Place::at(stride * (2 * t + 2) - 1), before = tree[left];
            tree[left] = tree[right], tree[right] += before;
        }
    }
    __syncthreads();
    out[first + t] = tree[Place::at(t)], out[first + t + HALF] = tree[Place::at(t + HALF)];
}
// A warp sums its 64 by shuffles, the first warp the sums of all sixteen.
__global__ void __launch_bounds__(HALF) page_places_shuffles(const int2 *__restrict__ counts, int2 *__restrict__ out) {
    __shared__ int sums[HALF / 32];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    const int2 own = counts[blockIdx.x * HALF + t];
    int sum = own.x + own.y;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const int before = __shfl_up_sync(~0u, sum, offset);
        if (lane >= offset) sum += before;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        int all = lane < HALF / 32 ? sums[lane] : 0;
#pragma unroll
        for (int offset = 1; offset < HALF / 32; offset *= 2) {
            const int before = __shfl_up_sync(~0u, all, offset);
            if (lane >= offset) all += before;
        }
        if (lane < HALF / 32) sums[lane] = all;
    }
    __syncthreads();
    const int before = (warp ? sums[warp - 1] : 0) + sum - own.x - own.y;
    out[blockIdx.x * HALF + t] = make_int2(before, before + own.x);
}

Study places("kept_places_strides_that_double", "databases", 1 << 24, "how many entries of their page are written before each of 16777216 rows, by pages of 1024",
    "a tree of sums whose strides double: lanes ask two, four and at last 32 words of one bank",
    {{"spread", "an empty word after each 32", {"shared_bank_conflicts"}}, {"shuffles", "sums of warps by shuffles", {"shared_bank_conflicts", "barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const int *counts = b.random<int>(n, 0.0, 3.0);
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(page_places<Plain>, n / PAGE, HALF, 0, counts, out)}, {"spread", launch(page_places<Spread>, n / PAGE, HALF, 0, counts, out)},
            {"shuffles", launch(page_places_shuffles, n / PAGE, HALF, 0, reinterpret_cast<const int2 *>(counts), reinterpret_cast<int2 *>(out))}};
    });

// --- one number for the four columns of a row: without a flaw ---

__device__ __forceinline__ unsigned row_number(unsigned a, unsigned b, unsigned c, unsigned d) {
    unsigned h = 0x9747b28cu;
    const unsigned words[4] = {a, b, c, d};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const unsigned word = words[k] * 0xcc9e2d51u;
        h ^= (word << 15 | word >> 17) * 0x1b873593u;
        h = (h << 13 | h >> 19) * 5 + 0xe6546b64u;
    }
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}
__global__ void __launch_bounds__(256) row_numbers(const uint4 *__restrict__ a, const uint4 *__restrict__ b, const uint4 *__restrict__ c, const uint4 *__restrict__ d, uint4 *__restrict__ out, int fours) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= fours) return;
    const uint4 i = a[k], j = b[k], l = c[k], m = d[k];
    out[k] = make_uint4(row_number(i.x, j.x, l.x, m.x), row_number(i.y, j.y, l.y, m.y), row_number(i.z, j.z, l.z, m.z), row_number(i.w, j.w, l.w, m.w));
}

Study numbered("sound_numbers_of_rows", "databases", 1 << 21, "one number for the four columns of each of 8388608 rows", "", {}, [](Buffers &b, long n) -> Sides {
    const auto column = [&] { return reinterpret_cast<const uint4 *>(b.random<unsigned>(n * 4, 0.0, 4294967295.0)); };
    const uint4 *first = column(), *second = column(), *third = column(), *fourth = column();
    return {{"sound", launch(row_numbers, blocks(n, 256), 256, 0, first, second, third, fourth, reinterpret_cast<uint4 *>(b.output<unsigned>(n * 4)), n)}};
});

}  // namespace
