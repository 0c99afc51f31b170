// Ensembles, copy numbers, barcodes, accelerometers, electrodes, trellises, spikes, scans, contrasts, kinship, scanned lines, light and maps.
#include <algorithm>
#include <cmath>
#include <functional>

#include <cuda_pipeline.h>
#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- an ensemble of forecasts, brought to another grid ---

constexpr int MEMBERS = 16;

struct Regrid {
    const int4 *corners;    // of each place: the four cells around it
    const float4 *weights;
    const float *fields;    // member by member
    float *out;
    int cells, places;
};
__device__ __forceinline__ float between(const float *__restrict__ field, int4 corner, float4 weight) {
    return weight.x * field[corner.x] + weight.y * field[corner.y] + weight.z * field[corner.z] + weight.w * field[corner.w];
}
__device__ __forceinline__ void regrid(const Regrid &r, int i, int member) {
    r.out[static_cast<size_t>(member) * r.places + i] = between(r.fields + static_cast<size_t>(member) * r.cells, r.corners[i], r.weights[i]);
}
__global__ void __launch_bounds__(256) regridded(Regrid r) { regrid(r, blockIdx.x * 256 + threadIdx.x, blockIdx.y); }
__global__ void __launch_bounds__(256) regridded_members(Regrid r) { regrid(r, blockIdx.y * 256 + threadIdx.x, blockIdx.x); }
__global__ void __launch_bounds__(256) regridded_held(Regrid r) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const int4 corner = r.corners[i];
    const float4 weight = r.weights[i];
#pragma unroll 4
    for (int member = 0; member < MEMBERS; member++) r.out[static_cast<size_t>(member) * r.places + i] = between(r.fields + static_cast<size_t>(member) * r.cells, corner, weight);
}

Study ensemble("ensemble_regridded_member_after_member", "weather", 2048, "16 fields of 1048576 cells brought to 2097152 places by four weighted corners each",
    "the grid of blocks runs through all places for a member before the next: corners and weights come from memory sixteen times",
    {{"members", "members along the grid's first axis, places along its second", {"cache_locality"}}, {"held", "all members of a place by one thread, its corners and weights in registers", {"cache_locality", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int wide = static_cast<int>(n), high = wide / 2, side = wide / 2;
        std::vector<int4> corners(static_cast<size_t>(wide) * high);
        std::vector<float4> weights(corners.size());
        for (int y = 0; y < high; y++)
            for (int x = 0; x < wide; x++) {
                const float u = (side - 2) * (0.5f + 0.48f * std::sin(1.5f * (2.0f * x / wide - 1.0f) + 0.05f * std::sin(6.0f * y / high)));
                const float v = (side - 2) * (0.5f + 0.48f * std::sin(1.5f * (2.0f * y / high - 1.0f) + 0.05f * std::cos(5.0f * x / wide)));
                const int left = static_cast<int>(u), low = static_cast<int>(v), first = low * side + left;
                const float p = u - left, q = v - low;
                corners[static_cast<size_t>(y) * wide + x] = {first, first + 1, first + side, first + side + 1};
                weights[static_cast<size_t>(y) * wide + x] = {(1 - p) * (1 - q), p * (1 - q), (1 - p) * q, p * q};
            }
        const int places = wide * high, cells = side * side;
        const Regrid r = {b.copy(corners), b.copy(weights), b.random<float>(static_cast<size_t>(MEMBERS) * cells, 250.0, 310.0), b.output<float>(static_cast<size_t>(MEMBERS) * places), cells, places};
        const unsigned tiles = places / 256;
        return {{"flawed", launch(regridded, dim3(tiles, MEMBERS), 256, 0, r)}, {"members", launch(regridded_members, dim3(MEMBERS, tiles), 256, 0, r)}, {"held", launch(regridded_held, tiles, 256, 0, r)}};
    });

// --- how likely copy numbers are along a chromosome ---

constexpr int COPIES = 5;

struct Chromosomes {
    const float *ratios;  // probe by probe of all samples
    float *likelihoods;
    int samples, probes;
    float logs[COPIES][COPIES], chances[COPIES][COPIES];  // of changes from one number of copies to another
    float narrow;                                         // one over the spread of a ratio
};
// Logarithm of how well a ratio fits a number of copies.
__device__ __forceinline__ float fit(const Chromosomes &c, float ratio, int copies) {
    const float far = (ratio - copies) * c.narrow;
    return -0.5f * far * far;
}
__device__ __forceinline__ float log_sum(const float (&v)[COPIES]) {
    const float top = fmaxf(fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3])), v[4]);
    return top + logf(expf(v[0] - top) + expf(v[1] - top) + expf(v[2] - top) + expf(v[3] - top) + expf(v[4] - top));
}
__global__ void __launch_bounds__(256) copy_numbers(Chromosomes c) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    float now[COPIES];
#pragma unroll
    for (int k = 0; k < COPIES; k++) now[k] = fit(c, c.ratios[i], k);
#pragma unroll 2
    for (int probe = 1; probe < c.probes; probe++) {
        const float ratio = c.ratios[probe * c.samples + i];
        float next[COPIES];
#pragma unroll
        for (int to = 0; to < COPIES; to++) {
            float ways[COPIES];
#pragma unroll
            for (int from = 0; from < COPIES; from++) ways[from] = now[from] + c.logs[from][to];
            next[to] = log_sum(ways) + fit(c, ratio, to);
        }
#pragma unroll
        for (int k = 0; k < COPIES; k++) now[k] = next[k];
    }
    c.likelihoods[i] = log_sum(now);
}
// One probe further.
__device__ __forceinline__ void advance(const Chromosomes &c, float ratio, float (&now)[COPIES]) {
    float next[COPIES];
#pragma unroll
    for (int to = 0; to < COPIES; to++) {
        float all = now[0] * c.chances[0][to];
#pragma unroll
        for (int from = 1; from < COPIES; from++) all += now[from] * c.chances[from][to];
        next[to] = all * expf(fit(c, ratio, to));
    }
#pragma unroll
    for (int k = 0; k < COPIES; k++) now[k] = next[k];
}
__device__ __forceinline__ float total(const float (&v)[COPIES]) { return v[0] + v[1] + v[2] + v[3] + v[4]; }
__global__ void __launch_bounds__(256) copy_numbers_scaled(Chromosomes c) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    float now[COPIES], sum = 0.0f;
#pragma unroll
    for (int k = 0; k < COPIES; k++) now[k] = expf(fit(c, c.ratios[i], k));
#pragma unroll 4
    for (int probe = 1; probe < c.probes; probe++) {
        advance(c, c.ratios[probe * c.samples + i], now);
        const float all = total(now), scale = 1.0f / all;
        sum += logf(all);
#pragma unroll
        for (int k = 0; k < COPIES; k++) now[k] *= scale;
    }
    c.likelihoods[i] = sum + logf(total(now));
}
__global__ void __launch_bounds__(256) copy_numbers_powers(Chromosomes c) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    float now[COPIES];
    int power = 0;
#pragma unroll
    for (int k = 0; k < COPIES; k++) now[k] = expf(fit(c, c.ratios[i], k));
    for (int first = 1; first < c.probes; first += 8) {
        float ratios[8];
#pragma unroll
        for (int k = 0; k < 8; k++) ratios[k] = first + k < c.probes ? c.ratios[(first + k) * c.samples + i] : 0.0f;
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (first + k < c.probes) advance(c, ratios[k], now);
        const int up = (__float_as_int(total(now)) >> 23) - 127;
        const float scale = __int_as_float((127 - up) << 23);
        power += up;
#pragma unroll
        for (int k = 0; k < COPIES; k++) now[k] *= scale;
    }
    c.likelihoods[i] = logf(total(now)) + 0.69314718f * power;
}

Study chromosomes("copy_number_chains_in_logarithms", "genomics", 131072, "likelihood of 256 probes each of 131072 samples under a hidden chain of five copy numbers",
    "a precise exponential for each of 25 changes of state and a logarithm for each state at every probe, only to add probabilities",
    {{"scaled", "probabilities themselves, scaled to one at each probe", {"expensive_math"}}, {"powers", "probabilities themselves, scaled by a power of two every eight probes", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        Chromosomes c = {b.random<float>(256 * n, -0.3, 4.3), b.output<float>(n), static_cast<int>(n), 256, {}, {}, 1.0f / 0.35f};
        for (int from = 0; from < COPIES; from++)
            for (int to = 0; to < COPIES; to++) {
                const double chance = from == to ? 0.96 + 0.002 * from : (0.04 - 0.002 * from) / 4.0;
                c.logs[from][to] = static_cast<float>(std::log(chance)), c.chances[from][to] = static_cast<float>(chance);
            }
        return {{"flawed", launch(copy_numbers, n / 256, 256, 0, c)}, {"scaled", launch(copy_numbers_scaled, n / 256, 256, 0, c)}, {"powers", launch(copy_numbers_powers, n / 256, 256, 0, c)}};
    });

// --- which barcode a read begins with ---

constexpr int CODE = 24, READ = 28, CODES = 48, MISSES = 4;  // letters of a barcode and of a read's beginning
constexpr unsigned NO_CODE = (MISSES + 1) << 8;

struct Library {
    const unsigned long long *reads;  // two bits a letter
    const unsigned long long *codes;
    unsigned *found;  // changes, then which barcode
};
// Bit 2 k tells whether letter k is another one.
__device__ __forceinline__ unsigned long long others(unsigned long long code, unsigned letter) {
    const unsigned long long x = code ^ letter * 0x5555555555555555ull;
    return (x | x >> 1) & 0x5555555555555555ull;
}
__device__ __forceinline__ unsigned better(unsigned best, int changes, int code) { return min(best, changes <= MISSES ? static_cast<unsigned>(changes) << 8 | code : NO_CODE); }
__global__ void __launch_bounds__(256) demultiplexed(Library l) {
    __shared__ unsigned long long codes[CODES];
    if (threadIdx.x < CODES) codes[threadIdx.x] = l.codes[threadIdx.x];
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    const unsigned long long read = l.reads[i];
    unsigned best = NO_CODE;
    for (int code = 0; code < CODES; code++) {
        int column[CODE + 1], least = CODE;
#pragma unroll
        for (int k = 0; k <= CODE; k++) column[k] = k;
#pragma unroll 1
        for (int at = 0; at < READ; at++) {
            const unsigned long long other = others(codes[code], static_cast<unsigned>(read >> 2 * at) & 3);
            int diagonal = at;
            column[0] = at + 1;
#pragma unroll
            for (int k = 0; k < CODE; k++) {
                const int before = column[k + 1];
                column[k + 1] = min(min(before, column[k]) + 1, diagonal + (static_cast<int>(other >> 2 * k) & 1));
                diagonal = before;
            }
            least = min(least, column[CODE]);
        }
        best = better(best, least, code);
    }
    l.found[i] = best;
}
// How each cell of a column differs from the one above, a bit each.
__global__ void __launch_bounds__(256) demultiplexed_bits(Library l) {
    __shared__ unsigned places[CODES][4];  // of a letter in a barcode
    if (threadIdx.x < CODES * 4) {
        const unsigned long long code = l.codes[threadIdx.x / 4];
        unsigned place = 0;
        for (int k = 0; k < CODE; k++) place |= static_cast<unsigned>((code >> 2 * k & 3) == threadIdx.x % 4) << k;
        places[threadIdx.x / 4][threadIdx.x % 4] = place;
    }
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    const unsigned long long read = l.reads[i];
    unsigned best = NO_CODE;
    for (int code = 0; code < CODES; code++) {
        unsigned more = ~0u, less = 0;
        int changes = CODE, least = CODE;
#pragma unroll 7
        for (int at = 0; at < READ; at++) {
            const unsigned same = places[code][static_cast<unsigned>(read >> 2 * at) & 3];
            const unsigned down = same | less, along = (((same & more) + more) ^ more) | same;
            unsigned up = less | ~(along | more), fall = more & along;
            changes += (up >> (CODE - 1) & 1) - (fall >> (CODE - 1) & 1);
            up = up << 1 | 1, fall <<= 1;
            more = fall | ~(down | up), less = up & down;
            least = min(least, changes);
        }
        best = better(best, least, code);
    }
    l.found[i] = best;
}
// Nine diagonals: what lies farther off takes more changes than are allowed.
__global__ void __launch_bounds__(256) demultiplexed_band(Library l) {
    constexpr int WIDE = 2 * MISSES + 1;
    __shared__ unsigned long long codes[CODES];
    if (threadIdx.x < CODES) codes[threadIdx.x] = l.codes[threadIdx.x];
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    const unsigned long long read = l.reads[i];
    unsigned best = NO_CODE;
    for (int code = 0; code < CODES; code++) {
        int band[WIDE + 1], least = CODE;
#pragma unroll
        for (int k = 0; k <= WIDE; k++) band[k] = k < MISSES || k == WIDE ? 99 : k - MISSES;
        // Letters of the barcode from four before the read's, after four that are none.
        const auto advance = [&band, read](unsigned long long window, int at) {
            const unsigned other = static_cast<unsigned>(others(window, static_cast<unsigned>(read >> 2 * at) & 3));
            int above = 99;
#pragma unroll
            for (int k = 0; k < WIDE; k++) above = band[k] = min(min(above, band[k + 1]) + 1, band[k] + (static_cast<int>(other >> 2 * k) & 1));
        };
        unsigned long long window = codes[code] << 2 * MISSES;
#pragma unroll 4
        for (int at = 0; at < CODE - MISSES - 1; at++, window >>= 2) advance(window, at);
#pragma unroll
        for (int at = CODE - MISSES - 1; at < READ; at++, window >>= 2) {
            advance(window, at);
            least = min(least, band[CODE - 1 - at + MISSES]);
        }
        best = better(best, least, code);
    }
    l.found[i] = best;
}

Study barcodes("barcodes_matched_cell_by_cell", "sequencing", 131072, "the nearest of 48 barcodes of 24 letters for the beginnings of 131072 reads, up to four changes",
    "every cell of each table of changes is computed as a number of its own",
    {{"bits", "a column of the table as the bits of two words", {"integer_arithmetic"}}, {"band", "only the nine diagonals within four changes", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned long long> codes(CODES), reads(n);
        for (int k = 0; k < CODES; k++) codes[k] = (hash(2 * k + 1) | static_cast<unsigned long long>(hash(2 * k + 2)) << 32) & ((1ull << 2 * CODE) - 1);
        for (long i = 0; i < n; i++) {
            unsigned seed = hash(static_cast<unsigned>(i) + 777u);
            const unsigned long long code = codes[seed % CODES];
            for (int at = 0, k = 0; at < READ; at++) {
                seed = hash(seed + 1);
                if (seed % 25 == 0 && k < CODE) k++;  // a letter lost
                const bool kept = k < CODE && seed % 25 > 2;
                reads[i] |= (kept ? code >> 2 * k & 3 : static_cast<unsigned long long>(seed >> 16 & 3)) << 2 * at;
                k += seed % 25 != 1;  // or one too many
            }
        }
        const Library l = {b.copy(reads), b.copy(codes), b.output<unsigned>(n)};
        b.tolerance = 0.0;
        return {{"flawed", launch(demultiplexed, n / 256, 256, 0, l)}, {"bits", launch(demultiplexed_bits, n / 256, 256, 0, l)}, {"band", launch(demultiplexed_band, n / 256, 256, 0, l)}};
    });

// --- how strongly a bridge's sensors shake ---

constexpr int SENSORS = 32, TOGETHER = 16;  // rows a warp loads together

// Sums of the samples of each sensor, then of their squares.
__global__ void __launch_bounds__(256) shaken(const float *__restrict__ rows, float *__restrict__ sums) {
    const int lane = threadIdx.x % 32;
    const size_t warp = blockIdx.x * 8 + threadIdx.x / 32;
    const float *row = rows + warp * TOGETHER * SENSORS + lane;
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int k = 0; k < TOGETHER; k++) {
        const float sample = row[k * SENSORS];
        sum += sample, squares += sample * sample;
    }
    atomicAdd(sums + lane, sum);
    atomicAdd(sums + SENSORS + lane, squares);
}
__device__ __forceinline__ void add_parts(const float *parts, int count, float *sums) {
    __syncthreads();
    if (threadIdx.x >= 2 * SENSORS) return;
    float all = 0.0f;
    for (int k = 0; k < count; k++) all += parts[k * 2 * SENSORS + threadIdx.x];
    atomicAdd(sums + threadIdx.x, all);
}
__global__ void __launch_bounds__(512) shaken_waves(const float *__restrict__ rows, float *__restrict__ sums, int count) {
    __shared__ float parts[16][2 * SENSORS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = 0.0f, squares = 0.0f;
    for (int first = (blockIdx.x * 16 + warp) * TOGETHER; first < count; first += gridDim.x * 16 * TOGETHER) {
        const float *row = rows + static_cast<size_t>(first) * SENSORS + lane;
        float samples[TOGETHER];
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) samples[k] = row[k * SENSORS];
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) sum += samples[k], squares += samples[k] * samples[k];
    }
    parts[warp][lane] = sum, parts[warp][SENSORS + lane] = squares;
    add_parts(parts[0], 16, sums);
}
// 1024 rows a block, four sensors a thread.
__global__ void __launch_bounds__(256) shaken_fours(const float4 *__restrict__ rows, float *__restrict__ sums) {
    __shared__ float parts[8][2 * SENSORS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float4 *four = rows + static_cast<size_t>(blockIdx.x) * 8192 + threadIdx.x;
    float all[8] = {};
#pragma unroll 8
    for (int k = 0; k < 32; k++) {
        const float4 s = four[k * 256];
        all[0] += s.x, all[1] += s.y, all[2] += s.z, all[3] += s.w;
        all[4] += s.x * s.x, all[5] += s.y * s.y, all[6] += s.z * s.z, all[7] += s.w * s.w;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) {
        all[k] += __shfl_xor_sync(~0u, all[k], 8);
        all[k] += __shfl_xor_sync(~0u, all[k], 16);
        if (lane < 8) parts[warp][k / 4 * SENSORS + lane * 4 + k % 4] = all[k];
    }
    add_parts(parts[0], 8, sums);
}

Study bridge("bridge_sensors_summed_by_a_warp_of_sixteen_rows", "structural engineering", 1 << 20, "sums and sums of squares of 1048576 samples of each of 32 accelerometers",
    "each warp adds its sums of sixteen rows to the same 64 words of global memory",
    {{"waves", "as many blocks as run at once, each adds once at its end", {"global_atomics"}}, {"fours", "1024 rows a block, four sensors a thread, merged in shared memory first", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const float *rows = b.random<float>(n * SENSORS, -1.0, 2.0);
        float *sums = b.output<float>(2 * SENSORS, true);
        return {{"flawed", launch(shaken, n / (8 * TOGETHER), 256, 0, rows, sums)}, {"waves", launch(shaken_waves, 4 * multiprocessors(), 512, 0, rows, sums, static_cast<int>(n))},
            {"fours", launch(shaken_fours, n / 1024, 256, 0, reinterpret_cast<const float4 *>(rows), sums)}};
    });

// --- how lithium spreads in the grains of an electrode ---

constexpr int SHELLS = 512, TIMES = 8;

struct Grains {
    const float *conduct;  // of a shell and the one before it
    const float *start;
    float *end;
};
struct System {
    float *a, *b, *c, *d;  // what is before, at and after each unknown, and the right side
    __device__ __forceinline__ void set(int at, float before, float after, float right) const { a[at] = -before, b[at] = 1.0f + before + after, c[at] = -after, d[at] = right; }
    // Equation `from` without its neighbours, written to `to`.
    __device__ __forceinline__ void reduce(int to, int from, int left, int right) const {
        const float before = a[from] / b[left], after = c[from] / b[right];
        const float middle = b[from] - c[left] * before - a[right] * after, side = d[from] - d[left] * before - d[right] * after;
        const float first = -a[left] * before, last = -c[right] * after;
        a[to] = first, b[to] = middle, c[to] = last, d[to] = side;
    }
    __device__ __forceinline__ void solve_two(int first, int second) const {
        const float scale = 1.0f / (b[first] * b[second] - c[first] * a[second]);
        const float x = (d[first] * b[second] - c[first] * d[second]) * scale, y = (b[first] * d[second] - d[first] * a[second]) * scale;
        d[first] = x, d[second] = y;
    }
    __device__ __forceinline__ float solve(int at, float before, float after) const { return (d[at] - a[at] * before - c[at] * after) / b[at]; }
};
struct Straight {
    static constexpr int size = SHELLS;
    static __device__ __forceinline__ int at(int i) { return i; }
};
struct Spaced {
    static constexpr int size = SHELLS + SHELLS / 32;
    static __device__ __forceinline__ int at(int i) { return i + i / 32; }
};
// Every other equation goes, until two are left; then all come back.
template <typename Place>
__global__ void __launch_bounds__(SHELLS / 2) lithium(Grains g) {
    __shared__ float a[Place::size], b[Place::size], c[Place::size], d[Place::size];
    const System s = {a, b, c, d};
    const int t = threadIdx.x, grain = blockIdx.x * SHELLS;
    float before[2], after[2], now[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int i = t + k * SHELLS / 2;
        before[k] = i ? g.conduct[grain + i] : 0.0f, after[k] = i < SHELLS - 1 ? g.conduct[grain + i + 1] : 0.0f;
        now[k] = g.start[grain + i];
    }
    for (int time = 0; time < TIMES; time++) {
#pragma unroll
        for (int k = 0; k < 2; k++) s.set(Place::at(t + k * SHELLS / 2), before[k], after[k], now[k]);
        __syncthreads();
#pragma unroll 1
        for (int step = 1, count = SHELLS / 2; count > 1; step *= 2, count /= 2) {
            if (t < count) {
                const int i = 2 * step * (t + 1) - 1;
                s.reduce(Place::at(i), Place::at(i), Place::at(i - step), Place::at(min(i + step, SHELLS - 1)));
            }
            __syncthreads();
        }
        if (t == 0) s.solve_two(Place::at(SHELLS / 2 - 1), Place::at(SHELLS - 1));
        __syncthreads();
#pragma unroll 1
        for (int step = SHELLS / 4, count = 2; step; step /= 2, count *= 2) {
            if (t < count) {
                const int i = 2 * step * t + step - 1;
                d[Place::at(i)] = s.solve(Place::at(i), t ? d[Place::at(i - step)] : 0.0f, d[Place::at(i + step)]);
            }
            __syncthreads();
        }
#pragma unroll
        for (int k = 0; k < 2; k++) now[k] = d[Place::at(t + k * SHELLS / 2)];
    }
#pragma unroll
    for (int k = 0; k < 2; k++) g.end[grain + t + k * SHELLS / 2] = now[k];
}
// Equations of a level: those that go, then those that stay.
__device__ __forceinline__ int level_start(int level) { return 2 * SHELLS - (2 * SHELLS >> level) + 16 * level; }
__device__ __forceinline__ int level_place(int level, int i) { return level_start(level) + i / 2 + (i % 2 ? (SHELLS / 2 >> level) + 16 : 0); }
__global__ void __launch_bounds__(SHELLS / 2, 6) lithium_levels(Grains g) {
    constexpr int LEVELS = 9, ROOM = 2 * SHELLS + 16 * LEVELS;
    __shared__ float a[ROOM], b[ROOM], c[ROOM], d[ROOM];
    const System s = {a, b, c, d};
    const int t = threadIdx.x, first = blockIdx.x * SHELLS + 2 * t;
    const float2 start = *reinterpret_cast<const float2 *>(g.start + first), conduct = *reinterpret_cast<const float2 *>(g.conduct + first);
    const float before = t ? conduct.x : 0.0f, after = t < SHELLS / 2 - 1 ? g.conduct[first + 2] : 0.0f;
    float now[2] = {start.x, start.y};
    for (int time = 0; time < TIMES; time++) {
        s.set(level_place(0, 2 * t), before, conduct.y, now[0]);
        s.set(level_place(0, 2 * t + 1), conduct.y, after, now[1]);
        __syncthreads();
#pragma unroll
        for (int level = 0; level < LEVELS - 1; level++) {
            const int count = SHELLS / 2 >> level;
            if (t < count) s.reduce(level_place(level + 1, t), level_place(level, 2 * t + 1), level_place(level, 2 * t), level_place(level, 2 * min(t + 1, count - 1)));
            __syncthreads();
        }
        if (t == 0) s.solve_two(level_place(LEVELS - 1, 0), level_place(LEVELS - 1, 1));
        __syncthreads();
#pragma unroll
        for (int level = LEVELS - 2; level >= 0; level--) {
            if (t < SHELLS / 2 >> level) {
                const int at = level_place(level, 2 * t);
                now[1] = d[level_place(level + 1, t)];
                now[0] = s.solve(at, t ? d[level_place(level + 1, t - 1)] : 0.0f, now[1]);
                if (level) d[at] = now[0], d[level_place(level, 2 * t + 1)] = now[1];
            }
            if (level) __syncthreads();
        }
    }
    *reinterpret_cast<float2 *>(g.end + first) = make_float2(now[0], now[1]);
}

Study electrodes("lithium_in_grains_solved_at_doubling_distances", "batteries", 4096, "eight implicit steps of diffusion through 512 shells of each of 4096 grains by cyclic reduction",
    "equations that remain stay where they were in shared memory, twice as far apart after each step",
    {{"spaced", "a word of space after every 32", {"shared_bank_conflicts"}}, {"levels", "those that remain written close together, those that go next and those that stay apart", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        const Grains g = {b.random<float>(n * SHELLS, 0.5, 3.0), b.random<float>(n * SHELLS, 0.0, 1.0), b.output<float>(n * SHELLS)};
        return {{"flawed", launch(lithium<Straight>, n, SHELLS / 2, 0, g)}, {"spaced", launch(lithium<Spaced>, n, SHELLS / 2, 0, g)}, {"levels", launch(lithium_levels, n, SHELLS / 2, 0, g)}};
    });

// --- the likeliest way through a trellis of 64 states ---

constexpr int STATES = 64, MOMENTS = 2048;

struct Trellis {
    const char2 *soft;    // frame by frame, two bits a moment, -7 ... 7
    unsigned *decisions;  // frame by frame: of the first 32 states, then of the others
    int *costs;           // of each state at the end
};
// Which sign the two bits of a moment count with on the way from state 2 i to state i.
__device__ __forceinline__ int cost_of(char2 soft, int i) {
    const int first = __popc(2 * i & 0x79) & 1, second = __popc(2 * i & 0x5b) & 1;
    return (first ? soft.x : -soft.x) + (second ? soft.y : -soft.y);
}
__device__ __forceinline__ char2 moment_of(int chunk, int lane) {
    const int both = __shfl_sync(~0u, chunk, lane);
    return make_char2(static_cast<signed char>(both), static_cast<signed char>(both >> 8));
}
__device__ __forceinline__ int chunk_of(const Trellis &t, int frame, int first) {
    const char2 soft = t.soft[frame * MOMENTS + first + threadIdx.x % 32];
    return static_cast<unsigned char>(soft.x) | static_cast<int>(soft.y) * 256;
}
// A state a thread, four frames a block.
__global__ void __launch_bounds__(256) trellis(Trellis t) {
    __shared__ int costs[4][STATES];
    const int frame = blockIdx.x * 4 + threadIdx.x / STATES, state = threadIdx.x % STATES, lane = threadIdx.x % 32, half = state / 32;
    int *own = costs[threadIdx.x / STATES];
    own[state] = 0;
    __syncthreads();
    for (int first = 0; first < MOMENTS; first += 32) {
        const int chunk = chunk_of(t, frame, first);
        unsigned decided = 0;
#pragma unroll 4
        for (int k = 0; k < 32; k++) {
            const int cost = cost_of(moment_of(chunk, k), lane), signed_cost = half ? -cost : cost;
            const int even = own[2 * lane] + signed_cost, odd = own[2 * lane + 1] - signed_cost;
            const unsigned from_odd = __ballot_sync(~0u, odd < even);
            decided = k == lane ? from_odd : decided;
            __syncthreads();
            own[state] = min(even, odd);
            __syncthreads();
        }
        t.decisions[(frame * 2 + half) * MOMENTS + first + lane] = decided;
    }
    t.costs[frame * STATES + state] = own[state];
}
// A frame a warp, states i and i + 32 a lane, in one word.
__global__ void __launch_bounds__(128) trellis_lanes(Trellis t) {
    const int frame = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32, shift = lane / 16 * 16;
    int low = 0, high = 0;
    for (int first = 0; first < MOMENTS; first += 32) {
        const int chunk = chunk_of(t, frame, first);
        unsigned decided_low = 0, decided_high = 0;
#pragma unroll 4
        for (int k = 0; k < 32; k++) {
            const int cost = cost_of(moment_of(chunk, k), lane);
            const unsigned both = (static_cast<unsigned>(low) & 0xffff) | static_cast<unsigned>(high) << 16;
            const int even = static_cast<short>(__shfl_sync(~0u, both, 2 * lane % 32) >> shift), odd = static_cast<short>(__shfl_sync(~0u, both, 2 * lane % 32 + 1) >> shift);
            const unsigned from_odd = __ballot_sync(~0u, odd - cost < even + cost), from_odd_high = __ballot_sync(~0u, odd + cost < even - cost);
            decided_low = k == lane ? from_odd : decided_low, decided_high = k == lane ? from_odd_high : decided_high;
            low = min(even + cost, odd - cost), high = min(even - cost, odd + cost);
        }
        t.decisions[frame * 2 * MOMENTS + first + lane] = decided_low;
        t.decisions[(frame * 2 + 1) * MOMENTS + first + lane] = decided_high;
    }
    t.costs[frame * STATES + lane] = low, t.costs[frame * STATES + 32 + lane] = high;
}
// A frame a warp, states i and i + 32 a lane, in shared memory of its own.
__global__ void __launch_bounds__(128) trellis_warps(Trellis t) {
    __shared__ int2 costs[4][2][STATES / 2];
    const int frame = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    int2(*pairs)[STATES / 2] = costs[threadIdx.x / 32];
    int low = 0, high = 0;
    for (int first = 0; first < MOMENTS; first += 32) {
        const int chunk = chunk_of(t, frame, first);
        unsigned decided_low = 0, decided_high = 0;
#pragma unroll 4
        for (int k = 0; k < 32; k++) {
            int *own = &pairs[k % 2][0].x;
            own[lane] = low, own[lane + 32] = high;
            const int cost = cost_of(moment_of(chunk, k), lane);
            __syncwarp();
            const int2 from = pairs[k % 2][lane];
            const unsigned from_odd = __ballot_sync(~0u, from.y - cost < from.x + cost), from_odd_high = __ballot_sync(~0u, from.y + cost < from.x - cost);
            decided_low = k == lane ? from_odd : decided_low, decided_high = k == lane ? from_odd_high : decided_high;
            low = min(from.x + cost, from.y - cost), high = min(from.x - cost, from.y + cost);
        }
        t.decisions[frame * 2 * MOMENTS + first + lane] = decided_low;
        t.decisions[(frame * 2 + 1) * MOMENTS + first + lane] = decided_high;
    }
    t.costs[frame * STATES + lane] = low, t.costs[frame * STATES + 32 + lane] = high;
}

Study frames("trellis_states_two_barriers_a_moment", "communications", 1056, "decisions of 1056 frames of 2048 moments through a trellis of 64 states",
    "a block of four frames waits twice a moment, though a frame needs but two warps",
    {{"lanes", "a frame a warp, costs passed from lane to lane", {"barriers"}}, {"warps", "a frame a warp, costs in shared memory that only the warp waits for", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<char2> soft(n * MOMENTS);
        for (long i = 0; i < n * MOMENTS; i++) {
            const unsigned any = hash(static_cast<unsigned>(i));
            soft[i] = {static_cast<signed char>(static_cast<int>(any % 15) - 7), static_cast<signed char>(static_cast<int>((any >> 8) % 15) - 7)};
        }
        const Trellis t = {b.copy(soft), b.output<unsigned>(2 * n * MOMENTS), b.output<int>(n * STATES)};
        b.tolerance = 0.0;
        return {{"flawed", launch(trellis, n / 4, 256, 0, t)}, {"lanes", launch(trellis_lanes, n / 4, 128, 0, t)}, {"warps", launch(trellis_warps, n / 4, 128, 0, t)}};
    });

// --- where a neuron's spike is in a recording ---

constexpr int ELECTRODES = 96, SPIKE = 32, PIECE = 2048, TILE = (PIECE + SPIKE) / 4;  // samples of a spike and a block; fours

struct Recorded {
    const float4 *samples;  // electrode by electrode
    const float4 *spike;
    float4 *scores;
    int pitch;  // fours of an electrode
    __device__ __forceinline__ const float4 *piece(int electrode) const { return samples + static_cast<size_t>(electrode) * pitch + blockIdx.x * (PIECE / 4); }
};
struct Scores {
    float4 sums[2];
    // One electrode's part; four samples a thread, and four 1024 samples later.
    __device__ __forceinline__ void add(const float4 *tile, const float4 *spike) {
#pragma unroll
        for (int g = 0; g < 2; g++) {
            const float4 *from = tile + g * (PIECE / 8) + threadIdx.x;
            float4 &s = sums[g], now = from[0];
#pragma unroll
            for (int k = 0; k < SPIKE / 4; k++) {
                const float4 next = from[k + 1], w = spike[k];
                s.x += w.x * now.x, s.y += w.x * now.y, s.z += w.x * now.z, s.w += w.x * now.w;
                s.x += w.y * now.y, s.y += w.y * now.z, s.z += w.y * now.w, s.w += w.y * next.x;
                s.x += w.z * now.z, s.y += w.z * now.w, s.z += w.z * next.x, s.w += w.z * next.y;
                s.x += w.w * now.w, s.y += w.w * next.x, s.z += w.w * next.y, s.w += w.w * next.z;
                now = next;
            }
        }
    }
    __device__ __forceinline__ void write(const Recorded &r) const {
#pragma unroll
        for (int g = 0; g < 2; g++) r.scores[blockIdx.x * (PIECE / 4) + g * (PIECE / 8) + threadIdx.x] = sums[g];
    }
};
__device__ __forceinline__ void load_spike(const Recorded &r, float4 *spike) {
#pragma unroll
    for (int k = 0; k < ELECTRODES * SPIKE / 4; k += 256) spike[k + threadIdx.x] = r.spike[k + threadIdx.x];
}
__global__ void __launch_bounds__(256) spikes(Recorded r) {
    __shared__ float4 tile[TILE], spike[ELECTRODES * SPIKE / 4];
    load_spike(r, spike);
    Scores scores = {};
    const int t = threadIdx.x;
    for (int electrode = 0; electrode < ELECTRODES; electrode++) {
        const float4 *piece = r.piece(electrode);
        __syncthreads();
        tile[t] = piece[t], tile[256 + t] = piece[256 + t];
        if (t < TILE - 512) tile[512 + t] = piece[512 + t];
        __syncthreads();
        scores.add(tile, spike + electrode * (SPIKE / 4));
    }
    scores.write(r);
}
__global__ void __launch_bounds__(256) spikes_ahead(Recorded r) {
    __shared__ float4 tile[TILE], spike[ELECTRODES * SPIKE / 4];
    load_spike(r, spike);
    Scores scores = {};
    const int t = threadIdx.x, last = 512 + t % 8;
    float4 next[3] = {r.piece(0)[t], r.piece(0)[256 + t], r.piece(0)[last]};
    for (int electrode = 0; electrode < ELECTRODES; electrode++) {
        __syncthreads();
        tile[t] = next[0], tile[256 + t] = next[1];
        if (t < TILE - 512) tile[last] = next[2];
        const float4 *piece = r.piece(min(electrode + 1, ELECTRODES - 1));
        next[0] = piece[t], next[1] = piece[256 + t];
        if (t < TILE - 512) next[2] = piece[last];
        __syncthreads();
        scores.add(tile, spike + electrode * (SPIKE / 4));
    }
    scores.write(r);
}
__device__ __forceinline__ void copy_piece(const Recorded &r, int electrode, float4 *tile) {
    const float4 *piece = r.piece(electrode) + threadIdx.x;
    tile += threadIdx.x;
    __pipeline_memcpy_async(tile, piece, 16);
    __pipeline_memcpy_async(tile + 256, piece + 256, 16);
    if (threadIdx.x < TILE - 512) __pipeline_memcpy_async(tile + 512, piece + 512, 16);
    __pipeline_commit();
}
__global__ void __launch_bounds__(256) spikes_copied(Recorded r) {
    __shared__ float4 tiles[2][TILE], spike[ELECTRODES * SPIKE / 4];
    copy_piece(r, 0, tiles[0]);
    load_spike(r, spike);
    Scores scores = {};
    for (int electrode = 0; electrode < ELECTRODES; electrode++) {
        __pipeline_wait_prior(0);
        __syncthreads();
        if (electrode + 1 < ELECTRODES) copy_piece(r, electrode + 1, tiles[(electrode + 1) % 2]);
        scores.add(tiles[electrode % 2], spike + electrode * (SPIKE / 4));
    }
    scores.write(r);
}

Study neurons("spike_templates_wait_for_each_electrode", "neuroscience", 264 * PIECE, "a spike of 32 samples on 96 electrodes sought at 540672 places of a recording",
    "each electrode's samples are brought to shared memory, waited for, and only then used; two blocks a multiprocessor",
    {{"ahead", "the next electrode's samples loaded to registers meanwhile", {"memory_latency"}}, {"copied", "the next electrode's samples copied asynchronously to a second buffer", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const long pitch = n + SPIKE;
        const Recorded r = {reinterpret_cast<const float4 *>(b.random<float>(ELECTRODES * pitch)), reinterpret_cast<const float4 *>(b.random<float>(ELECTRODES * SPIKE)),
            reinterpret_cast<float4 *>(b.output<float>(n)), static_cast<int>(pitch / 4)};
        return {{"flawed", launch(spikes, n / PIECE, 256, 0, r)}, {"ahead", launch(spikes_ahead, n / PIECE, 256, 0, r)}, {"copied", launch(spikes_copied, n / PIECE, 256, 0, r)}};
    });

// --- the nearest point of a map for each point of a scan ---

constexpr int BUCKET = 8;

struct Map {
    const int2 *nodes;     // from one on: where it is split (a float), and along which axis
    const float4 *points;  // bucket by bucket
    const float4 *scan;
    float *distances;
    int buckets;
};
__device__ __forceinline__ float beyond(const Map &m, float4 at, int node) {
    const int2 split = m.nodes[node];
    return (split.y == 0 ? at.x : split.y == 1 ? at.y : at.z) - __int_as_float(split.x);
}
__device__ __forceinline__ float nearest_of_bucket(const Map &m, float4 at, int bucket, float nearest) {
    const float4 *point = m.points + bucket * BUCKET;
#pragma unroll
    for (int k = 0; k < BUCKET; k++) {
        const float x = point[k].x - at.x, y = point[k].y - at.y, z = point[k].z - at.z;
        nearest = fminf(nearest, x * x + y * y + z * z);
    }
    return nearest;
}
// Down to a bucket; what was passed by waits in shared memory, with how far away it is at least.
__global__ void __launch_bounds__(128) matched(Map m) {
    extern __shared__ int2 waiting[];
    const int i = blockIdx.x * 128 + threadIdx.x;
    const float4 at = m.scan[i];
    float nearest = INFINITY;
    int2 *top = waiting + threadIdx.x;
    int node = 1;
    while (true) {
        while (node < m.buckets) {
            const float far = beyond(m, at, node);
            node = 2 * node + (far > 0.0f);
            *top = make_int2(node ^ 1, __float_as_int(far * far));
            top += 128;
        }
        nearest = nearest_of_bucket(m, at, node - m.buckets, nearest);
        node = 0;
        while (top > waiting + threadIdx.x) {
            top -= 128;
            if (__int_as_float(top->y) < nearest) {
                node = top->x;
                break;
            }
        }
        if (!node) break;
    }
    m.distances[i] = sqrtf(nearest);
}
// Which sides on the way down are still open, a bit each.
__global__ void __launch_bounds__(128) matched_trail(Map m) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    const float4 at = m.scan[i];
    float nearest = INFINITY;
    int node = 1;
    unsigned open = 0;
    while (true) {
        while (node < m.buckets) {
            node = 2 * node + (beyond(m, at, node) > 0.0f);
            open = open << 1 | 1;
        }
        nearest = nearest_of_bucket(m, at, node - m.buckets, nearest);
        bool further = false;
        while (open && !further) {
            const int up = __ffs(static_cast<int>(open)) - 1;
            node >>= up, open >>= up;
            const float far = beyond(m, at, node >> 1);
            open ^= 1;
            further = far * far < nearest;
        }
        if (!further) break;
        node ^= 1;
    }
    m.distances[i] = sqrtf(nearest);
}

Study localisation("scan_points_matched_with_room_for_64_waiting", "robotics", 1 << 18, "the nearest of 262144 points of a map, in a tree of 32768 buckets, for 524288 points of a scan",
    "room for 64 nodes that wait a thread, though no more than fifteen ever do: three blocks of four warps a multiprocessor",
    {{"sixteen", "room for sixteen", {"low_occupancy"}}, {"trail", "a bit in a register for each side that waits", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        const int buckets = static_cast<int>(n / BUCKET);
        const auto chance = [](unsigned seed) { return hash(seed) / 4294967296.0f; };
        std::vector<float4> points(n), scan(2 * n);
        std::vector<int2> nodes(buckets);
        for (unsigned i = 0; i < n; i++) {  // on walls of a building
            const float u = 60.0f * chance(4 * i), v = 4.0f * chance(4 * i + 1), wall = 6.0f * (hash(4 * i + 2) % 11) + 0.02f * chance(4 * i + 3);
            points[i] = hash(i + 99u) % 2 ? float4{u, wall, v, 0.0f} : float4{wall, u, v, 0.0f};
        }
        const std::function<void(int, long, long)> split = [&](int node, long first, long end) {
            if (node >= buckets) return;
            float low[3] = {1e9f, 1e9f, 1e9f}, high[3] = {-1e9f, -1e9f, -1e9f};
            for (long i = first; i < end; i++)
                for (int k = 0; k < 3; k++) low[k] = std::min(low[k], (&points[i].x)[k]), high[k] = std::max(high[k], (&points[i].x)[k]);
            int axis = 0;
            for (int k = 1; k < 3; k++)
                if (high[k] - low[k] > high[axis] - low[axis]) axis = k;
            const long middle = (first + end) / 2;
            std::nth_element(points.begin() + first, points.begin() + middle, points.begin() + end, [axis](const float4 &p, const float4 &q) { return (&p.x)[axis] < (&q.x)[axis]; });
            const float at = (&points[middle].x)[axis];
            nodes[node] = {0, axis};
            std::copy_n(reinterpret_cast<const int *>(&at), 1, &nodes[node].x);
            split(2 * node, first, middle), split(2 * node + 1, middle, end);
        };
        split(1, 0, n);
        for (unsigned i = 0; i < 2 * n; i++) scan[i] = {points[i / 2].x + 0.3f * chance(3 * i + 5u) - 0.1f, points[i / 2].y + 0.3f * chance(3 * i + 6u) - 0.1f, points[i / 2].z + 0.1f * chance(3 * i + 7u), 0.0f};
        const Map m = {b.copy(nodes), b.copy(points), b.copy(scan), b.output<float>(2 * n), buckets};
        return {{"flawed", launch(matched, n / 64, 128, 64 * 128 * sizeof(int2), m)}, {"sixteen", launch(matched, n / 64, 128, 16 * 128 * sizeof(int2), m)}, {"trail", launch(matched_trail, n / 64, 128, 0, m)}};
    });

// --- how a picture differs from its surroundings ---

constexpr int WIDE = 4096;

// Logarithm of a pixel less the mean of the nine around it; 32 x 8 pixels a block.
__global__ void __launch_bounds__(256) contrast(const float *__restrict__ light, float *__restrict__ out, int rows) {
    const int x = blockIdx.x * 32 + threadIdx.x % 32, y = blockIdx.y * 8 + threadIdx.x / 32;
    float sum = 0.0f, own = 0.0f;
#pragma unroll
    for (int v = -1; v <= 1; v++)
#pragma unroll
        for (int u = -1; u <= 1; u++) {
            const float value = logf(light[min(max(y + v, 0), rows - 1) * WIDE + min(max(x + u, 0), WIDE - 1)]);
            sum += value;
            if (u == 0 && v == 0) own = value;
        }
    out[y * WIDE + x] = own - sum * (1.0f / 9.0f);
}
// 32 x 32 pixels a block.
__global__ void __launch_bounds__(256) contrast_tiles(const float *__restrict__ light, float *__restrict__ out, int rows) {
    __shared__ float logs[34][34];
    const int left = blockIdx.x * 32, low = blockIdx.y * 32;
#pragma unroll
    for (int k = threadIdx.x; k < 34 * 34; k += 256) {
        const int x = left + k % 34 - 1, y = low + k / 34 - 1;
        logs[k / 34][k % 34] = logf(light[min(max(y, 0), rows - 1) * WIDE + min(max(x, 0), WIDE - 1)]);
    }
    __syncthreads();
    const int x = threadIdx.x % 32, y = threadIdx.x / 32 * 4;
    float sums[6], own[6];
#pragma unroll
    for (int k = 0; k < 6; k++) own[k] = logs[y + k][x + 1], sums[k] = logs[y + k][x] + own[k] + logs[y + k][x + 2];
#pragma unroll
    for (int k = 0; k < 4; k++) out[(low + y + k) * WIDE + left + x] = own[k + 1] - (sums[k] + sums[k + 1] + sums[k + 2]) * (1.0f / 9.0f);
}
// A warp down 32 rows, thirty columns wide.
__global__ void __launch_bounds__(128) contrast_strips(const float *__restrict__ light, float *__restrict__ out, int rows) {
    const int lane = threadIdx.x % 32, x = (blockIdx.x * 4 + threadIdx.x / 32) * 30 + lane - 1, low = blockIdx.y * 32;
    const bool writes = lane > 0 && lane < 31 && x < WIDE;
    const float *column = light + min(max(x, 0), WIDE - 1);
    const auto row_sum = [](float value) { return __shfl_up_sync(~0u, value, 1) + value + __shfl_down_sync(~0u, value, 1); };
    float own = logf(column[max(low - 1, 0) * WIDE]), before = row_sum(own);
    own = logf(column[low * WIDE]);
    float now = row_sum(own);
#pragma unroll 8
    for (int y = low; y < low + 32; y++) {
        const float value = logf(column[min(y + 1, rows - 1) * WIDE]), next = row_sum(value);
        if (writes) out[y * WIDE + x] = own - (before + now + next) * (1.0f / 9.0f);
        before = now, now = next, own = value;
    }
}

Study retina("contrasts_nine_logarithms_a_pixel", "photography", 4096, "logarithm of each of 4096 x 4096 pixels less the mean of the logarithms of the nine around it",
    "each pixel takes the logarithms of its neighbours, which they take too",
    {{"tiles", "logarithms of a tile and its border once, in shared memory", {"expensive_math"}}, {"strips", "a column a lane, a logarithm a row, sums passed between lanes and rows", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const float *light = b.random<float>(n * WIDE, 0.01, 100.0);
        float *out = b.output<float>(n * WIDE);
        const int rows = static_cast<int>(n);
        return {{"flawed", launch(contrast, dim3(WIDE / 32, n / 8), 256, 0, light, out, rows)}, {"tiles", launch(contrast_tiles, dim3(WIDE / 32, n / 32), 256, 0, light, out, rows)},
            {"strips", launch(contrast_strips, dim3(blocks(WIDE, 120), n / 32), 128, 0, light, out, rows)}};
    });

// --- how people are related to those of a panel ---

constexpr int MARKERS = 2048, DEPTH = 64;  // bytes of a row; those at a time

struct Panel {
    const signed char *people, *panel;  // a row a person: -1, 0 or 1
    int *kinship;
    int others;
};
// 128 x 128 pairs a block, eight by eight a thread.
__global__ void __launch_bounds__(256) kinship(Panel p) {
    __shared__ __align__(16) int first[DEPTH / 4][132], second[DEPTH / 4][132];
    const int tx = threadIdx.x % 16 * 4, ty = threadIdx.x / 16 * 4;
    const signed char *rows = p.people + static_cast<size_t>(blockIdx.y) * 128 * MARKERS, *columns = p.panel + static_cast<size_t>(blockIdx.x) * 128 * MARKERS;
    int sums[8][8] = {};
    for (int marker = 0; marker < MARKERS; marker += DEPTH) {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const int row = k * 64 + threadIdx.x / 4, at = threadIdx.x % 4 * 4;
            const int4 a = *reinterpret_cast<const int4 *>(rows + row * MARKERS + marker + 4 * at), b = *reinterpret_cast<const int4 *>(columns + row * MARKERS + marker + 4 * at);
            first[at][row] = a.x, first[at + 1][row] = a.y, first[at + 2][row] = a.z, first[at + 3][row] = a.w;
            second[at][row] = b.x, second[at + 1][row] = b.y, second[at + 2][row] = b.z, second[at + 3][row] = b.w;
        }
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < DEPTH / 4; k++) {
            int a[8], b[8];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int4 four = *reinterpret_cast<const int4 *>(&first[k][64 * half + ty]), more = *reinterpret_cast<const int4 *>(&second[k][64 * half + tx]);
                a[4 * half] = four.x, a[4 * half + 1] = four.y, a[4 * half + 2] = four.z, a[4 * half + 3] = four.w;
                b[4 * half] = more.x, b[4 * half + 1] = more.y, b[4 * half + 2] = more.z, b[4 * half + 3] = more.w;
            }
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) sums[i][j] = __dp4a(a[i], b[j], sums[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int *to = p.kinship + static_cast<size_t>(blockIdx.y * 128 + i / 4 * 64 + ty + i % 4) * p.others + blockIdx.x * 128 + tx;
        *reinterpret_cast<int4 *>(to) = make_int4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
        *reinterpret_cast<int4 *>(to + 64) = make_int4(sums[i][4], sums[i][5], sums[i][6], sums[i][7]);
    }
}
using Sums = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, int>;
constexpr int ROW = DEPTH + 16;
// 32 x 64 pairs a warp, from rows of both in shared memory.
__device__ __forceinline__ void multiply(const signed char *first, const signed char *second, Sums (&sums)[2][4]) {
    using namespace nvcuda::wmma;
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int k = 0; k < DEPTH; k += 16) {
        fragment<matrix_a, 16, 16, 16, signed char, row_major> a[2];
#pragma unroll
        for (int i = 0; i < 2; i++) load_matrix_sync(a[i], first + (warp / 2 * 32 + 16 * i) * ROW + k, ROW);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            fragment<matrix_b, 16, 16, 16, signed char, col_major> b;
            load_matrix_sync(b, second + (warp % 2 * 64 + 16 * j) * ROW + k, ROW);
#pragma unroll
            for (int i = 0; i < 2; i++) mma_sync(sums[i][j], a[i], b, sums[i][j]);
        }
    }
}
__device__ __forceinline__ void write_kinship(const Panel &p, const Sums (&sums)[2][4]) {
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            nvcuda::wmma::store_matrix_sync(p.kinship + static_cast<size_t>(blockIdx.y * 128 + warp / 2 * 32 + 16 * i) * p.others + blockIdx.x * 128 + warp % 2 * 64 + 16 * j, sums[i][j], p.others, nvcuda::wmma::mem_row_major);
}
__device__ __forceinline__ void clear(Sums (&sums)[2][4]) {
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) nvcuda::wmma::fill_fragment(sums[i][j], 0);
}
__global__ void __launch_bounds__(256) kinship_tensor(Panel p) {
    __shared__ __align__(128) signed char first[128 * ROW], second[128 * ROW];
    const signed char *rows = p.people + static_cast<size_t>(blockIdx.y) * 128 * MARKERS, *columns = p.panel + static_cast<size_t>(blockIdx.x) * 128 * MARKERS;
    Sums sums[2][4];
    clear(sums);
    for (int marker = 0; marker < MARKERS; marker += DEPTH) {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const int row = k * 64 + threadIdx.x / 4, at = threadIdx.x % 4 * 16;
            *reinterpret_cast<int4 *>(first + row * ROW + at) = *reinterpret_cast<const int4 *>(rows + row * MARKERS + marker + at);
            *reinterpret_cast<int4 *>(second + row * ROW + at) = *reinterpret_cast<const int4 *>(columns + row * MARKERS + marker + at);
        }
        __syncthreads();
        multiply(first, second, sums);
        __syncthreads();
    }
    write_kinship(p, sums);
}
__global__ void __launch_bounds__(256) kinship_tensor_copied(Panel p) {
    __shared__ __align__(128) signed char first[2][128 * ROW], second[2][128 * ROW];
    const signed char *rows = p.people + static_cast<size_t>(blockIdx.y) * 128 * MARKERS, *columns = p.panel + static_cast<size_t>(blockIdx.x) * 128 * MARKERS;
    Sums sums[2][4];
    clear(sums);
    const auto copy = [&](int marker, int buffer) {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const int row = k * 64 + threadIdx.x / 4, at = threadIdx.x % 4 * 16;
            __pipeline_memcpy_async(first[buffer] + row * ROW + at, rows + row * MARKERS + marker + at, 16);
            __pipeline_memcpy_async(second[buffer] + row * ROW + at, columns + row * MARKERS + marker + at, 16);
        }
        __pipeline_commit();
    };
    copy(0, 0);
    for (int marker = 0, buffer = 0; marker < MARKERS; marker += DEPTH, buffer ^= 1) {
        __pipeline_wait_prior(0);
        __syncthreads();
        if (marker + DEPTH < MARKERS) copy(marker + DEPTH, buffer ^ 1);
        multiply(first[buffer], second[buffer], sums);
    }
    write_kinship(p, sums);
}

Study relatives("kinship_by_dot_products_of_four_bytes", "genetics", 2048, "products of the genotypes of 2048 people and 4096 of a panel at 2048 markers, bytes",
    "products of matrices of bytes by integer dot products of four, tensor cores idle",
    {{"tensor", "tiles of 32 x 64 a warp on the tensor cores", {"tensor_cores_idle"}}, {"copied", "the same tiles, markers copied asynchronously ahead", {"tensor_cores_idle"}}},
    [](Buffers &b, long n) -> Sides {
        const Panel p = {b.random<signed char>(n * MARKERS, -1.0, 2.0), b.random<signed char>(2 * n * MARKERS, -1.0, 2.0), b.output<int>(2 * n * n), static_cast<int>(2 * n)};
        const dim3 grid(2 * n / 128, n / 128);
        b.tolerance = 0.0;
        return {{"flawed", launch(kinship, grid, 256, 0, p)}, {"tensor", launch(kinship_tensor, grid, 256, 0, p)}, {"copied", launch(kinship_tensor_copied, grid, 256, 0, p)}};
    });

// --- lines of a scanner, corrected ---

constexpr int ACROSS = 8003;  // samples of a line

struct Scan {
    const unsigned char *raw;
    const int2 *lines;  // gain of a line and its offset, in 4096ths
    unsigned char *out;
};
__device__ __forceinline__ unsigned corrected(unsigned raw, int2 line) { return min(max((static_cast<int>(raw) * line.x + line.y) >> 12, 0), 255); }
// Sixteen samples; `of`: which line each is of.
template <typename Of>
__device__ __forceinline__ uint4 sixteen_corrected(uint4 raw, Of of) {
    const unsigned from[4] = {raw.x, raw.y, raw.z, raw.w};
    unsigned to[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
        to[k] = corrected(from[k] & 255, of(4 * k)) | corrected(from[k] >> 8 & 255, of(4 * k + 1)) << 8 | corrected(from[k] >> 16 & 255, of(4 * k + 2)) << 16 | corrected(from[k] >> 24, of(4 * k + 3)) << 24;
    return make_uint4(to[0], to[1], to[2], to[3]);
}
// A line a block.
__global__ void __launch_bounds__(256) evened(Scan s) {
    const unsigned char *__restrict__ raw = s.raw + static_cast<size_t>(blockIdx.x) * ACROSS;
    unsigned char *__restrict__ out = s.out + static_cast<size_t>(blockIdx.x) * ACROSS;
    const int2 line = s.lines[blockIdx.x];
#pragma unroll 4
    for (int i = threadIdx.x; i < ACROSS; i += 256) out[i] = static_cast<unsigned char>(corrected(raw[i], line));
}
// The samples before and after whole pieces of sixteen bytes one by one.
__global__ void __launch_bounds__(256) evened_pieces(Scan s) {
    const size_t first = static_cast<size_t>(blockIdx.x) * ACROSS;
    const unsigned char *__restrict__ raw = s.raw + first;
    unsigned char *__restrict__ out = s.out + first;
    const int2 line = s.lines[blockIdx.x];
    const int t = threadIdx.x, head = static_cast<int>((16 - first % 16) % 16), count = (ACROSS - head) / 16;
    const uint4 *from = reinterpret_cast<const uint4 *>(raw + head);
    uint4 *to = reinterpret_cast<uint4 *>(out + head);
    const auto of = [line](int) { return line; };
    const uint4 early = from[t], late = from[min(256 + t, count - 1)];
    to[t] = sixteen_corrected(early, of);
    if (256 + t < count) to[256 + t] = sixteen_corrected(late, of);
    const int edge = t < 16 ? t : head + 16 * count + t - 16;
    if (t < 16 ? edge < head : edge < ACROSS) out[edge] = static_cast<unsigned char>(corrected(raw[edge], line));
}
// Sixteen samples a thread, over the ends of lines.
__global__ void __launch_bounds__(256) evened_flat(Scan s) {
    const unsigned i = blockIdx.x * 256 + threadIdx.x, row = 16 * i / ACROSS;
    const int left = static_cast<int>((row + 1) * ACROSS - 16 * i);  // samples of the first line
    const int2 line = s.lines[row];
    const uint4 raw = reinterpret_cast<const uint4 *>(s.raw)[i];
    uint4 *to = reinterpret_cast<uint4 *>(s.out) + i;
    if (left >= 16) *to = sixteen_corrected(raw, [line](int) { return line; });
    else {
        const int2 next = s.lines[row + 1];
        *to = sixteen_corrected(raw, [left, line, next](int k) { return k < left ? line : next; });
    }
}

Study scanner("scanner_lines_of_8003_samples_one_by_one", "quality control", 12288, "12288 lines of 8003 samples of a byte, each with a gain and an offset of its own",
    "a byte a load and a store, as lines of odd length do not begin where wide loads may",
    {{"pieces", "sixteen samples a thread where sixteen bytes are aligned, the ends of a line one by one", {"narrow_access"}}, {"flat", "sixteen samples a thread of all lines in a row, two lines' gains where one ends", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int2> lines(n);
        for (long i = 0; i < n; i++) lines[i] = {3000 + static_cast<int>(hash(static_cast<unsigned>(i)) % 2500), -static_cast<int>(hash(static_cast<unsigned>(i) + 55555u) % 80000)};
        const Scan s = {b.random<unsigned char>(n * ACROSS, 0.0, 256.0), b.copy(lines), b.output<unsigned char>(n * ACROSS)};
        b.tolerance = 0.0;
        return {{"flawed", launch(evened, n, 256, 0, s)}, {"pieces", launch(evened_pieces, n, 256, 0, s)}, {"flat", launch(evened_flat, n * ACROSS / 4096, 256, 0, s)}};
    });

// --- light through a plate that turns it ---

// Two fields a pixel, complex, times the plate's matrix there.
__global__ void __launch_bounds__(256) polarised(const float4 *__restrict__ light, const float4 *__restrict__ firsts, const float4 *__restrict__ seconds, float4 *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float4 e = light[i], p = firsts[i], q = seconds[i];
    out[i] = make_float4(p.x * e.x - p.y * e.y + p.z * e.z - p.w * e.w, p.x * e.y + p.y * e.x + p.z * e.w + p.w * e.z, q.x * e.x - q.y * e.y + q.z * e.z - q.w * e.w, q.x * e.y + q.y * e.x + q.z * e.w + q.w * e.z);
}

Study optics("sound_light_through_a_plate", "optics", 1 << 22, "polarised light at 4194304 pixels through a plate with a matrix of four complex values each", "", {}, [](Buffers &b, long n) -> Sides {
    const auto four = [&b, n] { return reinterpret_cast<const float4 *>(b.random<float>(4 * n)); };
    const float4 *light = four(), *firsts = four(), *seconds = four();
    return {{"sound", launch(polarised, n / 256, 256, 0, light, firsts, seconds, reinterpret_cast<float4 *>(b.output<float>(4 * n)))}};
});

// --- how chaotic a map is ---

// Mean logarithm of how far neighbours part in a step, by the map's parameter.
__global__ void __launch_bounds__(256) exponents(const float *__restrict__ parameters, float *__restrict__ out, int rounds) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float r = parameters[i];
    float x = 0.3f, sum = 0.0f;
    for (int round = 0; round < rounds; round++) {
        float apart = 1.0f;
#pragma unroll
        for (int k = 0; k < 32; k++) {
            const float grown = r * x;
            apart *= fmaf(-2.0f, grown, r);
            x = fmaf(-grown, x, grown);
        }
        sum += __log2f(fmaxf(fabsf(apart), 1e-30f));
    }
    out[i] = sum / (32.0f * rounds);
}

Study chaos("sound_exponents_of_a_map", "mathematics", 1 << 20, "Lyapunov exponents of the logistic map for 1048576 parameters, 1024 steps each", "", {}, [](Buffers &b, long n) -> Sides {
    const float *parameters = b.random<float>(n, 3.4, 3.99);
    return {{"sound", launch(exponents, n / 256, 256, 0, parameters, b.output<float>(n), 32)}};
});

}  // namespace
