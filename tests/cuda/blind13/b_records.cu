// Records, counts, books and pictures as they are stored. Each kernel has one weakness and two ways out.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../pairs/pair.cuh"

namespace {

// --- counts of genes in cells, sparse: scaled to the same sum for each cell, then logarithms ---

__device__ __forceinline__ float normal(float count, float total) { return log1pf(count * (1e4f / total)); }
// The cell that a count belongs to: the last one that does not start after it.
__device__ __forceinline__ int cell_of(const int *starts, int cells, int at) {
    int low = 0, high = cells;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (starts[middle] <= at) low = middle;
        else high = middle;
    }
    return low;
}

__global__ void __launch_bounds__(256) normalise(const float *__restrict__ counts, const int *__restrict__ starts, const float *__restrict__ totals, float *__restrict__ out, int cells, int entries) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= entries) return;
    out[at] = normal(counts[at], totals[cell_of(starts, cells, at)]);
}
// A warp for each cell.
__global__ void __launch_bounds__(256) normalise_warp_a_cell(const float *__restrict__ counts, const int *__restrict__ starts, const float *__restrict__ totals, float *__restrict__ out, int cells,
    int entries) {
    const int cell = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (cell >= cells) return;
    const int end = starts[cell + 1];
    const float total = totals[cell];
#pragma unroll 4
    for (int at = starts[cell] + lane; at < end; at += 32) out[at] = normal(counts[at], total);
}
// Eight counts a thread: it looks for the cell of the first and steps on from there.
__global__ void __launch_bounds__(256) normalise_eight(const float4 *__restrict__ counts, const int *__restrict__ starts, const float *__restrict__ totals, float4 *__restrict__ out, int cells,
    int entries) {
    const int eight = blockIdx.x * 256 + threadIdx.x;
    if (eight >= entries / 8) return;
    const float4 a = counts[2 * eight], b = counts[2 * eight + 1];
    float value[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    int cell = cell_of(starts, cells, 8 * eight), next = starts[cell + 1];
    float total = totals[cell];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        while (8 * eight + k >= next) ++cell, next = starts[cell + 1], total = totals[cell];
        value[k] = normal(value[k], total);
    }
    out[2 * eight] = make_float4(value[0], value[1], value[2], value[3]);
    out[2 * eight + 1] = make_float4(value[4], value[5], value[6], value[7]);
}

Study gene_counts("gene_counts_cell_found_by_bisection", "genomics", 65536, "counts of genes in 65536 cells, 25 million that are not zero, scaled and turned into logarithms",
    "each count looks for its cell by bisection of the places where cells start: sixteen loads, one after the other",
    {{"warp_a_cell", "a warp for each cell", {"memory_latency", "redundant_loads"}}, {"eight", "eight counts a thread with one bisection", {"memory_latency", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> start(n + 1, 0);
        std::vector<float> total(n);
        for (long i = 0; i < n; ++i) {
            start[i + 1] = start[i] + 128 + static_cast<int>(hash(static_cast<unsigned>(i)) % 512);
            if (i == n - 1) start[n] = (start[n] + 7) / 8 * 8;
            total[i] = 4.f * static_cast<float>(start[i + 1] - start[i]);
        }
        const int entries = start[n], cells = static_cast<int>(n);
        const float *counts = b.random<float>(entries, 1.0, 8.0), *totals = b.copy(total);
        const int *starts = b.copy(start);
        float *out = b.output<float>(entries);
        return {{"flawed", launch(normalise, blocks(entries, 256), 256, 0, counts, starts, totals, out, cells, entries)},
            {"warp_a_cell", launch(normalise_warp_a_cell, blocks(n, 8), 256, 0, counts, starts, totals, out, cells, entries)},
            {"eight", launch(normalise_eight, blocks(entries / 8, 256), 256, 0, reinterpret_cast<const float4 *>(counts), starts, totals, reinterpret_cast<float4 *>(out), cells, entries)}};
    });

// --- sample adaptive offsets of a video's pictures: pixels compared with two neighbours, then corrected ---

constexpr int WIDE = 3840, HIGH = 2160, TREE = 64;                // of coding tree units
constexpr int ACROSS = WIDE / TREE, DOWN = (HIGH + TREE - 1) / TREE;
struct Offsets {
    signed char direction, value[5];  // 0: to the left and right, 1: above and below, 2 and 3: diagonals; of five kinds of pixels
    signed char unused[2];
};
__constant__ int STEP_X[4] = {-1, 0, -1, 1}, STEP_Y[4] = {0, -1, -1, -1};

__device__ __forceinline__ int corrected(int pixel, int a, int c, const Offsets &offsets) {
    const int kind = 2 + (pixel > a) - (pixel < a) + (pixel > c) - (pixel < c);
    return min(max(pixel + offsets.value[kind], 0), 255);
}

__global__ void __launch_bounds__(256) adapt(const unsigned char *__restrict__ pictures, const Offsets *__restrict__ units, unsigned char *__restrict__ out) {
    const int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    const size_t at = (static_cast<size_t>(blockIdx.z) * HIGH + y) * WIDE + x;
    const Offsets &offsets = units[(blockIdx.z * DOWN + y / TREE) * ACROSS + x / TREE];
    int pixel = pictures[at];
    if (x > 0 && x < WIDE - 1 && y > 0 && y < HIGH - 1) {
        const int step = STEP_Y[offsets.direction] * WIDE + STEP_X[offsets.direction];
        pixel = corrected(pixel, pictures[at + step], pictures[at - step], offsets);
    }
    out[at] = static_cast<unsigned char>(pixel);
}

// Four pixels and both their neighbours in the row.
struct Strip {
    unsigned before, here, after;
};
__device__ __forceinline__ Strip strip(const unsigned *words, long at) { return {words[at - 1], words[at], words[at + 1]}; }
// The four pixels a step to the left, here, or to the right.
__device__ __forceinline__ unsigned shifted(const Strip &s, int step) {
    return step < 0 ? __funnelshift_l(s.before, s.here, 8) : step > 0 ? __funnelshift_r(s.here, s.after, 8) : s.here;
}
// Both neighbours' signs choose one of the bytes that `bits` holds.
__device__ __forceinline__ unsigned four_corrected(unsigned four, unsigned first, unsigned second, uint2 bits, int x) {
    unsigned result = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        int pixel = four >> 8 * k & 255;
        if (x + k > 0 && x + k < WIDE - 1) {
            const int a = first >> 8 * k & 255, c = second >> 8 * k & 255, kind = 2 + (pixel > a) - (pixel < a) + (pixel > c) - (pixel < c);
            pixel = min(max(pixel + static_cast<signed char>(__byte_perm(bits.x, bits.y, kind + 1) & 255), 0), 255);
        }
        result |= static_cast<unsigned>(pixel) << 8 * k;
    }
    return result;
}
__device__ __forceinline__ Strip either(bool first, const Strip &a, const Strip &c) { return {first ? a.before : c.before, first ? a.here : c.here, first ? a.after : c.after}; }
__global__ void __launch_bounds__(256) adapt_four(const unsigned *__restrict__ pictures, const uint2 *__restrict__ units, unsigned *__restrict__ out) {
    const int x = (blockIdx.x * 32 + threadIdx.x) * 4, y = blockIdx.y * 8 + threadIdx.y;
    const long at = ((static_cast<long>(blockIdx.z) * HIGH + y) * WIDE + x) / 4;
    if (y == 0 || y == HIGH - 1) {
        out[at] = pictures[at];
        return;
    }
    const uint2 bits = units[(blockIdx.z * DOWN + y / TREE) * ACROSS + x / TREE];
    const int right = STEP_X[bits.x & 3], rows = STEP_Y[bits.x & 3] * (WIDE / 4);
    const Strip first = strip(pictures, at + rows), second = strip(pictures, at - rows);
    out[at] = four_corrected(pictures[at], shifted(first, right), shifted(second, -right), bits, x);
}
// A thread walks down sixteen rows of four pixels: three rows stay in registers.
__global__ void __launch_bounds__(64) adapt_walk(const unsigned *__restrict__ pictures, const uint2 *__restrict__ units, unsigned *__restrict__ out) {
    const int x = (blockIdx.x * 64 + threadIdx.x) * 4, y = blockIdx.y * 16;
    const uint2 bits = units[(blockIdx.z * DOWN + y / TREE) * ACROSS + x / TREE];
    const int right = STEP_X[bits.x & 3];
    const bool level = STEP_Y[bits.x & 3] == 0;
    long at = ((static_cast<long>(blockIdx.z) * HIGH + y) * WIDE + x) / 4;
    Strip above = strip(pictures, y == 0 ? at : at - WIDE / 4), here = strip(pictures, at);
#pragma unroll 4
    for (int row = y; row < y + 16; ++row, at += WIDE / 4) {
        const Strip below = strip(pictures, row == HIGH - 1 ? at : at + WIDE / 4);
        out[at] = row == 0 || row == HIGH - 1 ? here.here : four_corrected(here.here, shifted(either(level, here, above), right), shifted(either(level, here, below), -right), bits, x);
        above = here, here = below;
    }
}

Study sample_offsets("sample_offsets_a_pixel_a_thread", "video", 16, "sample adaptive offsets of 16 pictures of 3840 x 2160 pixels of eight bits",
    "a thread takes one pixel: three loads and a store of a byte each",
    {{"four", "four pixels a thread, in words", {"narrow_access"}}, {"walk", "a thread walks down sixteen rows of four pixels, three rows in registers", {"narrow_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> unit(n * DOWN * ACROSS * sizeof(Offsets));
        for (long i = 0; i < n * DOWN * ACROSS; ++i) {
            const unsigned h = hash(static_cast<unsigned>(i));
            const unsigned char own[8] = {static_cast<unsigned char>(h & 3), static_cast<unsigned char>(1 + (h >> 4) % 7), static_cast<unsigned char>(1 + (h >> 8) % 4), 0,
                static_cast<unsigned char>(256 - 1 - (h >> 12) % 4), static_cast<unsigned char>(256 - 1 - (h >> 16) % 7), 0, 0};
            std::copy(own, own + 8, &unit[i * 8]);
        }
        const size_t count = static_cast<size_t>(n) * WIDE * HIGH, room = 64;  // words before the first and after the last are read, not used
        const unsigned char *pictures = b.random<unsigned char>(count + 2 * room, 0, 256) + room;
        const unsigned char *units = b.copy(unit);
        unsigned char *out = b.output<unsigned char>(count);
        const unsigned *words = reinterpret_cast<const unsigned *>(pictures);
        auto fours = reinterpret_cast<unsigned *>(out);
        const unsigned many = static_cast<unsigned>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(adapt, dim3(WIDE / 64, HIGH / 4, many), dim3(64, 4), 0, pictures, reinterpret_cast<const Offsets *>(units), out)},
            {"four", launch(adapt_four, dim3(WIDE / 128, HIGH / 8, many), dim3(32, 8), 0, words, reinterpret_cast<const uint2 *>(units), fours)},
            {"walk", launch(adapt_walk, dim3(WIDE / 256, HIGH / 16, many), 64, 0, words, reinterpret_cast<const uint2 *>(units), fours)}};
    });

// --- bytes sent, summed by how long the answer took: buckets of a logarithmic scale, sixteen an octave ---

constexpr int BUCKETS = 512, FIRST_BUCKET = 1792;  // 2 to the -15 up to 2 to the 17 seconds

__device__ __forceinline__ int bucket(float seconds) { return min(max((__float_as_int(seconds) >> 19) - FIRST_BUCKET, 0), BUCKETS - 1); }

__global__ void __launch_bounds__(256) bytes_by_latency(const float4 *__restrict__ latencies, const int4 *__restrict__ bytes, int *out, int vectors) {
    __shared__ int sums[BUCKETS];
    for (int k = threadIdx.x; k < BUCKETS; k += 256) sums[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < vectors; i += gridDim.x * 256) {
        const float4 latency = latencies[i];
        const int4 sent = bytes[i];
        atomicAdd(sums + bucket(latency.x), sent.x), atomicAdd(sums + bucket(latency.y), sent.y);
        atomicAdd(sums + bucket(latency.z), sent.z), atomicAdd(sums + bucket(latency.w), sent.w);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < BUCKETS; k += 256)
        if (sums[k]) atomicAdd(out + k, sums[k]);
}
// Sixteen copies of the sums, for every sixteenth lane one.
__global__ void __launch_bounds__(256) bytes_by_latency_copies(const float4 *__restrict__ latencies, const int4 *__restrict__ bytes, int *out, int vectors) {
    __shared__ int sums[BUCKETS * 16];
    for (int k = threadIdx.x; k < BUCKETS * 16; k += 256) sums[k] = 0;
    __syncthreads();
    int *own = sums + threadIdx.x % 16;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < vectors; i += gridDim.x * 256) {
        const float4 latency = latencies[i];
        const int4 sent = bytes[i];
        atomicAdd(own + 16 * bucket(latency.x), sent.x), atomicAdd(own + 16 * bucket(latency.y), sent.y);
        atomicAdd(own + 16 * bucket(latency.z), sent.z), atomicAdd(own + 16 * bucket(latency.w), sent.w);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < BUCKETS; k += 256) {
        int sum = 0;
#pragma unroll
        for (int copy = 0; copy < 16; ++copy) sum += sums[16 * k + (copy + threadIdx.x) % 16];
        if (sum) atomicAdd(out + k, sum);
    }
}
// Lanes of a warp that want the same bucket put their bytes together first.
__device__ __forceinline__ void add_together(int *sums, int which, unsigned sent) {
    const unsigned alike = __match_any_sync(~0u, which);
    const unsigned sum = __reduce_add_sync(alike, sent);
    if (static_cast<int>(threadIdx.x % 32) == __ffs(alike) - 1) atomicAdd(sums + which, static_cast<int>(sum));
}
__global__ void __launch_bounds__(256) bytes_by_latency_together(const float4 *__restrict__ latencies, const int4 *__restrict__ bytes, int *out, int vectors) {
    __shared__ int sums[BUCKETS];
    for (int k = threadIdx.x; k < BUCKETS; k += 256) sums[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < vectors; i += gridDim.x * 256) {  // whole warps: vectors are a multiple of 32
        const float4 latency = latencies[i];
        const int4 sent = bytes[i];
        add_together(sums, bucket(latency.x), sent.x), add_together(sums, bucket(latency.y), sent.y);
        add_together(sums, bucket(latency.z), sent.z), add_together(sums, bucket(latency.w), sent.w);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < BUCKETS; k += 256)
        if (sums[k]) atomicAdd(out + k, sums[k]);
}

Study latency_sketch("bytes_by_latency_few_hot_buckets", "databases", 1 << 24, "bytes of 16777216 answers summed by their latency, 512 buckets of a logarithmic scale",
    "nearly all answers take about as long: the lanes of a warp add to the same few sums in shared memory",
    {{"copies", "sixteen copies of the sums, for every sixteenth lane one", {"shared_atomics"}}, {"together", "lanes of a warp with the same bucket add once", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> latency(n);
        for (long i = 0; i < n; ++i) {
            const unsigned h = hash(static_cast<unsigned>(i)), g = hash(h);
            const float bell = static_cast<float>((h & 255) + (h >> 8 & 255) + (h >> 16 & 255) + (h >> 24)) / 510.f - 1.f;
            latency[i] = 0.004f * (1.f + 0.05f * bell);
            if (g % 20 == 0) latency[i] *= 1.f + static_cast<float>(g >> 16) / 4096.f;
        }
        const float *latencies = b.copy(latency);
        const int *bytes = b.random<int>(n, 0, 200);
        int *out = b.output<int>(BUCKETS, true);
        const unsigned grid = static_cast<unsigned>(multiprocessors()) * 6;
        const int vectors = static_cast<int>(n / 4);
        const float4 *l = reinterpret_cast<const float4 *>(latencies);
        const int4 *s = reinterpret_cast<const int4 *>(bytes);
        b.tolerance = 0.0;
        return {{"flawed", launch(bytes_by_latency, grid, 256, 0, l, s, out, vectors)}, {"copies", launch(bytes_by_latency_copies, grid, 256, 0, l, s, out, vectors)},
            {"together", launch(bytes_by_latency_together, grid, 256, 0, l, s, out, vectors)}};
    });

// --- books of payments valued under 1024 scenarios of a curve of rates ---

constexpr int SCENARIOS = 1024, PILLARS = 32, PAYMENTS = 1536;
struct Payment {
    float place, amount;  // between which pillars of the curve, in money
};

// Values some scenarios of a book: a thread each, curves in shared memory.
template <int OF_A_BLOCK>
__global__ void __launch_bounds__(OF_A_BLOCK) value_books(const float *__restrict__ curves, const Payment *__restrict__ payments, float *__restrict__ values) {
    extern __shared__ float curve[];  // [pillar][thread]
    const int book = blockIdx.x, scenario = blockIdx.y * OF_A_BLOCK + threadIdx.x;
    for (int pillar = 0; pillar < PILLARS; ++pillar)
        curve[pillar * OF_A_BLOCK + threadIdx.x] = curves[(static_cast<size_t>(book) * PILLARS + pillar) * SCENARIOS + scenario];
    float value = 0.f;
    for (int k = 0; k < PAYMENTS; ++k) {
        const Payment payment = payments[book * PAYMENTS + k];
        const int at = static_cast<int>(payment.place);
        const float low = curve[at * OF_A_BLOCK + threadIdx.x], high = curve[(at + 1) * OF_A_BLOCK + threadIdx.x];
        value += payment.amount * exp2f(low + (payment.place - at) * (high - low));
    }
    values[book * SCENARIOS + scenario] = value;
}
// Two threads share a scenario, each with half of the payments.
__global__ void __launch_bounds__(256) value_books_halves(const float *__restrict__ curves, const Payment *__restrict__ payments, float *__restrict__ values) {
    __shared__ float curve[PILLARS * 128], other[128];
    const int book = blockIdx.x, own = threadIdx.x % 128, half = threadIdx.x / 128, scenario = blockIdx.y * 128 + own;
    for (int pillar = half; pillar < PILLARS; pillar += 2) curve[pillar * 128 + own] = curves[(static_cast<size_t>(book) * PILLARS + pillar) * SCENARIOS + scenario];
    __syncthreads();
    float value = 0.f;
    for (int k = half * (PAYMENTS / 2); k < (half + 1) * (PAYMENTS / 2); ++k) {
        const Payment payment = payments[book * PAYMENTS + k];
        const int at = static_cast<int>(payment.place);
        const float low = curve[at * 128 + own], high = curve[(at + 1) * 128 + own];
        value += payment.amount * exp2f(low + (payment.place - at) * (high - low));
    }
    if (half) other[own] = value;
    __syncthreads();
    if (!half) values[book * SCENARIOS + scenario] = value + other[own];
}

Study books("books_valued_by_160_blocks_of_1024", "finance", 160, "160 books of 1536 payments valued under 1024 scenarios of a curve of 32 rates",
    "a block of 1024 threads with 128 KB for each book: one fits a multiprocessor, 28 of them run when all others are done",
    {{"quarters", "a block for 256 scenarios of a book", {"tail_effect"}}, {"halves", "blocks for 128 scenarios, two threads for each", {"tail_effect"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Payment> payment(n * PAYMENTS);
        for (size_t i = 0; i < payment.size(); ++i) {
            const unsigned h = hash(static_cast<unsigned>(i));
            payment[i] = {static_cast<float>(h >> 16) * (30.99f / 65536.f), 1.f + static_cast<float>(h & 1023) / 64.f};
        }
        const float *curves = b.random<float>(n * PILLARS * SCENARIOS, -1.0, 0.0);
        const Payment *payments = b.copy(payment);
        float *values = b.output<float>(n * SCENARIOS);
        const unsigned many = static_cast<unsigned>(n);
        return {{"flawed", launch(value_books<1024>, dim3(many, 1), 1024, 1024 * PILLARS * sizeof(float), curves, payments, values)},
            {"quarters", launch(value_books<256>, dim3(many, 4), 256, 256 * PILLARS * sizeof(float), curves, payments, values)},
            {"halves", launch(value_books_halves, dim3(many, 8), 256, 0, curves, payments, values)}};
    });

}  // namespace
