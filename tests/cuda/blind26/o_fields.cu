// Maps of molecules, seismograms, chirps, scrambled words, photons, votes for lines, geoids, distances and residuals.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- what a microscope would see of a molecule ---

constexpr int MAP = 256, BATCH = 32;  // voxels of a row and a column; atoms at a time

struct Molecule {
    const float4 *atoms;   // tile by tile, with those near it; w: how narrow
    const float *weights;
    const int *starts;     // of a tile's atoms, and the end
    float *map;
};
struct Batch {
    float4 atoms[BATCH];
    float weights[BATCH];
};
// A batch of a tile's atoms, from its first voxel; how many there are.
__device__ __forceinline__ int near_atoms(const Molecule &m, Batch &batch, int first, int end) {
    const int count = min(end - first, BATCH);
    __syncthreads();
    if (threadIdx.x < count) {
        const float4 atom = m.atoms[first + threadIdx.x];
        batch.atoms[threadIdx.x] = make_float4(atom.x - blockIdx.x * 16, atom.y - blockIdx.y * 16, atom.z - blockIdx.z * 8, atom.w);
        batch.weights[threadIdx.x] = m.weights[first + threadIdx.x];
    }
    __syncthreads();
    return count;
}
__device__ __forceinline__ int tile_of() { return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x; }
__device__ __forceinline__ void write_column(const Molecule &m, const float (&density)[8]) {
    float *to = m.map + (static_cast<size_t>(blockIdx.z) * 8 * MAP + blockIdx.y * 16 + threadIdx.x / 16) * MAP + blockIdx.x * 16 + threadIdx.x % 16;
#pragma unroll
    for (int k = 0; k < 8; k++) to[k * MAP * MAP] = density[k];
}
// 16 x 16 x 8 voxels a block, eight above each other a thread.
__global__ void __launch_bounds__(256) density(Molecule m) {
    __shared__ Batch batch;
    const float x = threadIdx.x % 16, y = threadIdx.x / 16;
    const int end = m.starts[tile_of() + 1];
    float density[8] = {};
    for (int first = m.starts[tile_of()]; first < end; first += BATCH) {
        const int count = near_atoms(m, batch, first, end);
        for (int i = 0; i < count; i++) {
            const float4 atom = batch.atoms[i];
            const float weight = batch.weights[i];
            const float dx = x - atom.x, dy = y - atom.y, across = dx * dx + dy * dy;
#pragma unroll
            for (int k = 0; k < 8; k++) {
                const float dz = k - atom.z;
                density[k] += weight * expf(-atom.w * (across + dz * dz));
            }
        }
    }
    write_column(m, density);
}
// A factor for each axis.
__global__ void __launch_bounds__(256) density_factors(Molecule m) {
    __shared__ Batch batch;
    __shared__ float along[BATCH][16], aside[BATCH][16];
    __shared__ __align__(16) float above[BATCH][8];
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    const int end = m.starts[tile_of() + 1];
    float density[8] = {};
    for (int first = m.starts[tile_of()]; first < end; first += BATCH) {
        const int count = near_atoms(m, batch, first, end);
        for (int i = y; i < count; i += 16) {
            const float4 atom = batch.atoms[i];
            const float dx = x - atom.x, dy = x - atom.y, dz = x - atom.z;
            along[i][x] = batch.weights[i] * expf(-atom.w * dx * dx);
            aside[i][x] = expf(-atom.w * dy * dy);
            if (x < 8) above[i][x] = expf(-atom.w * dz * dz);
        }
        __syncthreads();
#pragma unroll 2
        for (int i = 0; i < count; i++) {
            const float flat = along[i][x] * aside[i][y];
            const float4 low = *reinterpret_cast<const float4 *>(above[i]), high = *reinterpret_cast<const float4 *>(above[i] + 4);
            density[0] += flat * low.x, density[1] += flat * low.y, density[2] += flat * low.z, density[3] += flat * low.w;
            density[4] += flat * high.x, density[5] += flat * high.y, density[6] += flat * high.z, density[7] += flat * high.w;
        }
    }
    write_column(m, density);
}
// From voxel to voxel by ratios that change by a ratio.
__global__ void __launch_bounds__(256) density_ratios(Molecule m) {
    __shared__ Batch batch;
    __shared__ float ratios[BATCH];
    const float x = threadIdx.x % 16, y = threadIdx.x / 16;
    const int end = m.starts[tile_of() + 1];
    float density[8] = {};
    for (int first = m.starts[tile_of()]; first < end; first += BATCH) {
        const int count = near_atoms(m, batch, first, end);
        if (threadIdx.x < count) ratios[threadIdx.x] = expf(-2.0f * batch.atoms[threadIdx.x].w);
        __syncthreads();
#pragma unroll 2
        for (int i = 0; i < count; i++) {
            const float4 atom = batch.atoms[i];
            const float bend = ratios[i];
            const float dx = x - atom.x, dy = y - atom.y;
            float value = batch.weights[i] * expf(-atom.w * (dx * dx + dy * dy + atom.z * atom.z)), ratio = expf(atom.w * (2.0f * atom.z - 1.0f));
#pragma unroll
            for (int k = 0; k < 8; k++) density[k] += value, value *= ratio, ratio *= bend;
        }
    }
    write_column(m, density);
}

Study molecule("molecule_map_an_exponential_a_voxel", "structural biology", 128, "density of a molecule at 256 x 256 x 128 voxels from some 48 atoms near each tile of 16 x 16 x 8",
    "an exponential for each voxel and atom, though a bell is a product of three along the axes",
    {{"factors", "exponentials along each axis once a tile, products of them", {"expensive_math"}}, {"ratios", "two exponentials for eight voxels, from voxel to voxel by ratios", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const dim3 grid(MAP / 16, MAP / 16, n / 8);
        const auto chance = [](unsigned seed) { return hash(seed) / 4294967296.0f; };
        std::vector<float4> atoms;
        std::vector<float> weights;
        std::vector<int> starts;
        for (unsigned tile = 0; tile < grid.x * grid.y * grid.z; tile++) {
            starts.push_back(static_cast<int>(atoms.size()));
            for (unsigned k = 40 + hash(tile) % 17; k > 0; k--) {
                const unsigned seed = (tile * 64 + k) * 8;
                atoms.push_back({tile % grid.x * 16 + 28.0f * chance(seed) - 6.0f, tile / grid.x % grid.y * 16 + 28.0f * chance(seed + 1) - 6.0f, tile / (grid.x * grid.y) * 8 + 20.0f * chance(seed + 2) - 6.0f, 0.05f + 0.2f * chance(seed + 3)});
                weights.push_back(6.0f + 10.0f * chance(seed + 4));
            }
        }
        starts.push_back(static_cast<int>(atoms.size()));
        const Molecule m = {b.copy(atoms), b.copy(weights), b.copy(starts), b.output<float>(n * MAP * MAP)};
        return {{"flawed", launch(density, grid, 256, 0, m)}, {"factors", launch(density_factors, grid, 256, 0, m)}, {"ratios", launch(density_ratios, grid, 256, 0, m)}};
    });

// --- seismograms without their drift ---

constexpr int SAMPLES = 10240, FOURS = SAMPLES / 4;

__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ float added(float a, float b) { return a + b; }
// Over a block of 512 threads, for all of them.
template <float (*MERGE)(float, float)>
__device__ __forceinline__ float over_block(float value) {
    __shared__ float parts[16];
    for (int offset = 16; offset; offset /= 2) value = MERGE(value, __shfl_xor_sync(~0u, value, offset));
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[threadIdx.x % 16];
    for (int offset = 8; offset; offset /= 2) value = MERGE(value, __shfl_xor_sync(~0u, value, offset));
    return value;
}
struct Line {
    float mean, slope;
    // What is above the line that starts at sample `at`.
    __device__ __forceinline__ float4 above(float4 s, int at) const {
        const float low = mean + slope * (at - 0.5f * (SAMPLES - 1));
        return make_float4(s.x - low, s.y - (low + slope), s.z - (low + 2.0f * slope), s.w - (low + 3.0f * slope));
    }
};
__device__ __forceinline__ void weigh(float4 s, int at, float &sum, float &moment) {
    const float time = at - 0.5f * (SAMPLES - 1), four = s.x + s.y + s.z + s.w;
    sum += four;
    moment += time * four + (s.y + 2.0f * s.z + 3.0f * s.w);
}
__device__ __forceinline__ Line fitted(float sum, float moment) {
    constexpr double spread = SAMPLES / 12.0 * (static_cast<double>(SAMPLES) * SAMPLES - 1.0);
    return {over_block<added>(sum) * (1.0f / SAMPLES), over_block<added>(moment) * static_cast<float>(1.0 / spread)};
}
__device__ __forceinline__ float farthest(float4 s) { return fmaxf(fmaxf(fabsf(s.x), fabsf(s.y)), fmaxf(fabsf(s.z), fabsf(s.w))); }
__device__ __forceinline__ float4 scaled(float4 s, float scale) { return make_float4(s.x * scale, s.y * scale, s.z * scale, s.w * scale); }
// A seismogram a block: the line that fits it best taken off, then as a share of the largest.
__global__ void __launch_bounds__(512) detrended(const float4 *__restrict__ traces, float4 *__restrict__ out) {
    const float4 *trace = traces + static_cast<size_t>(blockIdx.x) * FOURS;
    float sum = 0.0f, moment = 0.0f, top = 0.0f;
    for (int i = threadIdx.x; i < FOURS; i += 512) weigh(trace[i], 4 * i, sum, moment);
    const Line line = fitted(sum, moment);
    for (int i = threadIdx.x; i < FOURS; i += 512) top = fmaxf(top, farthest(line.above(trace[i], 4 * i)));
    const float scale = 1.0f / over_block<larger>(top);
    for (int i = threadIdx.x; i < FOURS; i += 512) out[static_cast<size_t>(blockIdx.x) * FOURS + i] = scaled(line.above(trace[i], 4 * i), scale);
}
__global__ void __launch_bounds__(512) detrended_held(const float4 *__restrict__ traces, float4 *__restrict__ out) {
    constexpr int EACH = FOURS / 512;
    const size_t first = static_cast<size_t>(blockIdx.x) * FOURS + threadIdx.x;
    float4 own[EACH];
    float sum = 0.0f, moment = 0.0f, top = 0.0f;
#pragma unroll
    for (int k = 0; k < EACH; k++) own[k] = traces[first + 512 * k];
#pragma unroll
    for (int k = 0; k < EACH; k++) weigh(own[k], 4 * (threadIdx.x + 512 * k), sum, moment);
    const Line line = fitted(sum, moment);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        own[k] = line.above(own[k], 4 * (threadIdx.x + 512 * k));
        top = fmaxf(top, farthest(own[k]));
    }
    const float scale = 1.0f / over_block<larger>(top);
#pragma unroll
    for (int k = 0; k < EACH; k++) out[first + 512 * k] = scaled(own[k], scale);
}
__global__ void __launch_bounds__(512) detrended_staged(const float4 *__restrict__ traces, float4 *__restrict__ out) {
    __shared__ float4 own[FOURS];
    const size_t first = static_cast<size_t>(blockIdx.x) * FOURS;
    float sum = 0.0f, moment = 0.0f, top = 0.0f;
#pragma unroll
    for (int i = threadIdx.x; i < FOURS; i += 512) {
        const float4 four = traces[first + i];
        own[i] = four;
        weigh(four, 4 * i, sum, moment);
    }
    const Line line = fitted(sum, moment);
    for (int i = threadIdx.x; i < FOURS; i += 512) top = fmaxf(top, farthest(line.above(own[i], 4 * i)));
    const float scale = 1.0f / over_block<larger>(top);
    for (int i = threadIdx.x; i < FOURS; i += 512) out[first + i] = scaled(line.above(own[i], 4 * i), scale);
}

Study stations("seismograms_walked_three_times", "seismology", 2560, "2560 seismograms of 10240 samples: their drift taken off, then scaled by the largest sample",
    "each seismogram is loaded for the line, again for the largest sample, and again for the result",
    {{"held", "twenty samples a thread, held in registers", {"redundant_loads"}}, {"staged", "a block's seismogram in shared memory", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const float4 *traces = reinterpret_cast<const float4 *>(b.random<float>(n * SAMPLES, -1.0, 2.0));
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n * SAMPLES));
        return {{"flawed", launch(detrended, n, 512, 0, traces, out)}, {"held", launch(detrended_held, n, 512, 0, traces, out)}, {"staged", launch(detrended_staged, n, 512, 0, traces, out)}};
    });

// --- how far a radar's echoes come from ---

constexpr int RANGES = 512, CHIRPS = 16;

__device__ __forceinline__ float2 plus(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ __forceinline__ float2 minus(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
__device__ __forceinline__ float2 times(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
__device__ __forceinline__ float2 quarter(float2 a) { return make_float2(a.y, -a.x); }
// Waves of eight values, in order.
__device__ __forceinline__ void waves_of_eight(float2 (&v)[8]) {
    constexpr float half = 0.70710678f;
    const float2 a = plus(v[0], v[4]), b = minus(v[0], v[4]), c = plus(v[2], v[6]), d = quarter(minus(v[2], v[6]));
    const float2 e = plus(v[1], v[5]), f = minus(v[1], v[5]), g = plus(v[3], v[7]), h = quarter(minus(v[3], v[7]));
    const float2 even = plus(a, c), odd = plus(e, g), over = minus(a, c), under = quarter(minus(e, g));
    const float2 one = plus(b, d), three = minus(b, d), p = plus(f, h), q = minus(f, h);
    const float2 turned = make_float2(half * (p.x + p.y), half * (p.y - p.x)), twice = make_float2(half * (q.y - q.x), -half * (q.x + q.y));
    v[0] = plus(even, odd), v[4] = minus(even, odd), v[2] = plus(over, under), v[6] = minus(over, under);
    v[1] = plus(one, turned), v[5] = minus(one, turned), v[3] = plus(three, twice), v[7] = minus(three, twice);
}
__device__ __forceinline__ void powers(const float2 *__restrict__ turns, int step, float2 (&power)[8]) {
#pragma unroll
    for (int k = 1; k < 8; k++) power[k] = turns[step * k];
}
__device__ __forceinline__ void turn(float2 (&v)[8], const float2 (&power)[8]) {
#pragma unroll
    for (int k = 1; k < 8; k++) v[k] = times(v[k], power[k]);
}
// Where values lie between the stages: part j of eight, row u and column v of its 8 x 8.
struct InOrder {
    static constexpr int size = RANGES;
    static __device__ __forceinline__ int part(int s) { return s / 8; }
    static __device__ __forceinline__ int column(int s) { return s % 8; }
    static __device__ __forceinline__ int early(int j, int u, int v) { return j * 64 + u * 8 + v; }
    static __device__ __forceinline__ int late(int j, int u, int v) { return j * 64 + u * 8 + v; }
};
struct Crossed : InOrder {
    static __device__ __forceinline__ int early(int j, int u, int v) { return j * 64 + ((u * 8 + v) ^ (j | (j & 1) << 3)); }
    static __device__ __forceinline__ int late(int j, int u, int v) { return early(j, u, v); }
};
struct Pitched {
    static constexpr int size = 8 * 72;
    static __device__ __forceinline__ int part(int s) { return s % 8; }
    static __device__ __forceinline__ int column(int s) { return s / 8; }
    static __device__ __forceinline__ int early(int j, int u, int v) { return j * 66 + u * 8 + v; }
    static __device__ __forceinline__ int late(int j, int u, int v) { return u * 72 + v * 8 + j; }
};
// Power at each range, over the chirps of one look a block.
template <typename Layout>
__global__ void __launch_bounds__(64) ranged(const short2 *__restrict__ echoes, const float2 *__restrict__ turns, float *__restrict__ out) {
    __shared__ float2 between[Layout::size];
    const int s = threadIdx.x, part = Layout::part(s), column = Layout::column(s);
    float2 first[8], second[8];
    powers(turns, s, first);
    powers(turns, 8 * column, second);
    const short2 *echo = echoes + static_cast<size_t>(blockIdx.x) * CHIRPS * RANGES + s;
    float power[8] = {};
    for (int chirp = 0; chirp < CHIRPS; chirp++, echo += RANGES) {
        float2 v[8];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const short2 sample = echo[64 * k];
            v[k] = make_float2(sample.x, sample.y);
        }
        waves_of_eight(v);
        turn(v, first);
#pragma unroll
        for (int k = 0; k < 8; k++) between[Layout::early(k, s / 8, s % 8)] = v[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = between[Layout::early(part, k, column)];
        waves_of_eight(v);
        turn(v, second);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) between[Layout::late(part, k, column)] = v[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = between[Layout::late(s % 8, s / 8, k)];
        waves_of_eight(v);
#pragma unroll
        for (int k = 0; k < 8; k++) power[k] += v[k].x * v[k].x + v[k].y * v[k].y;
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < 8; k++) out[static_cast<size_t>(blockIdx.x) * RANGES + 64 * k + s] = power[k];
}

Study chirps("radar_ranges_exchanged_in_order", "radar", 4096, "power at 512 ranges of 4096 looks of a radar, over sixteen chirps each",
    "between the stages of a transform lanes take values 512 bytes apart from shared memory",
    {{"crossed", "places crossed with the number of their part", {"shared_bank_conflicts"}}, {"pitched", "parts 66 places apart, columns side by side before the last stage", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float2> turns(RANGES);
        for (int k = 0; k < RANGES; k++) {
            const double angle = -6.283185307179586 * k / RANGES;
            turns[k] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
        }
        std::vector<short2> samples(n * CHIRPS * RANGES);
        for (size_t i = 0; i < samples.size(); i++) {
            const unsigned any = hash(static_cast<unsigned>(i));
            samples[i] = {static_cast<short>(static_cast<int>(any % 4096) - 2048), static_cast<short>(static_cast<int>(any / 65536 % 4096) - 2048)};
        }
        const short2 *echoes = b.copy(samples);
        const float2 *table = b.copy(turns);
        float *out = b.output<float>(n * RANGES);
        return {{"flawed", launch(ranged<InOrder>, n, 64, 0, echoes, table, out)}, {"crossed", launch(ranged<Crossed>, n, 64, 0, echoes, table, out)},
            {"pitched", launch(ranged<Pitched>, n, 64, 0, echoes, table, out)}};
    });

// --- words from a fast Ethernet link ---

constexpr int LINK = 32768;  // words of a link

using Word = unsigned long long;

// Undoes x^58 + x^39 + 1; `seeds`: the word before each link's first.
__global__ void __launch_bounds__(256) descrambled(const Word *__restrict__ received, const Word *__restrict__ seeds, Word *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const Word word = received[i];
    Word state = i % LINK ? received[i - 1] : seeds[i / LINK], clear = 0;
#pragma unroll
    for (int bit = 0; bit < 64; bit++) {
        const Word in = word >> bit & 1;
        clear |= (in ^ (state >> 25 & 1) ^ (state >> 6 & 1)) << bit;
        state = state >> 1 | in << 63;
    }
    out[i] = clear;
}
__global__ void __launch_bounds__(256) descrambled_words(const Word *__restrict__ received, const Word *__restrict__ seeds, Word *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const Word word = received[i], before = i % LINK ? received[i - 1] : seeds[i / LINK];
    out[i] = word ^ (word << 39 | before >> 25) ^ (word << 58 | before >> 6);
}
__device__ __forceinline__ unsigned clear(unsigned earlier, unsigned before, unsigned half) { return half ^ __funnelshift_l(earlier, before, 7) ^ __funnelshift_l(earlier, before, 26); }
// Two words a thread, as four halves.
__global__ void __launch_bounds__(256) descrambled_halves(const uint2 *__restrict__ received, const uint2 *__restrict__ seeds, uint4 *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const uint4 own = reinterpret_cast<const uint4 *>(received)[i];
    const uint2 before = i % (LINK / 2) ? received[2 * i - 1] : seeds[i / (LINK / 2)];
    out[i] = make_uint4(clear(before.x, before.y, own.x), clear(before.y, own.x, own.y), clear(own.x, own.y, own.z), clear(own.y, own.z, own.w));
}

Study link("ethernet_words_descrambled_bit_by_bit", "networks", 512, "32768 words of 64 bits from each of 512 links, descrambled",
    "a shift register is moved on for each of a word's 64 bits",
    {{"words", "two shifted words for all bits at once", {"integer_arithmetic"}}, {"halves", "two words a thread in halves, by funnel shifts", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const auto words = [&b](size_t count) { return reinterpret_cast<const Word *>(b.random<unsigned>(2 * count, 0.0, 4294967296.0)); };
        const Word *received = words(n * LINK), *seeds = words(n);
        Word *out = reinterpret_cast<Word *>(b.output<unsigned>(2 * n * LINK));
        b.tolerance = 0.0;
        return {{"flawed", launch(descrambled, n * LINK / 256, 256, 0, received, seeds, out)}, {"words", launch(descrambled_words, n * LINK / 256, 256, 0, received, seeds, out)},
            {"halves", launch(descrambled_halves, n * LINK / 512, 256, 0, reinterpret_cast<const uint2 *>(received), reinterpret_cast<const uint2 *>(seeds), reinterpret_cast<uint4 *>(out))}};
    });

// --- light in tissue ---

constexpr float THICK = 12.0f, ALBEDO = 0.94f, FORWARD = 0.8f;  // in free paths; of light that is scattered on; its mean cosine

struct Photon {
    float depth, down, path;  // down: cosine of its direction
    unsigned drawn;
};
__device__ __forceinline__ float chance(unsigned &state) {
    state = state * 1664525u + 1013904223u;
    unsigned word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
    word ^= word >> 22;
    return ((word >> 8) + 0.5f) * (1.0f / 16777216.0f);
}
__device__ __forceinline__ Photon entered(int i) { return {0.0f, 1.0f, 0.0f, hash(static_cast<unsigned>(i))}; }
// One flight and what comes at its end; whether it goes on.
__device__ __forceinline__ bool flies(Photon &p) {
    const float length = __fmul_rn(-0.69314718f, __log2f(chance(p.drawn)));  // roundings are the same wherever this is inlined
    p.path += length;
    p.depth = fmaf(length, p.down, p.depth);
    if (p.depth < 0.0f || p.depth > THICK || chance(p.drawn) > ALBEDO) return false;
    const float share = __fdividef(1.0f - FORWARD * FORWARD, fmaf(2.0f * FORWARD, chance(p.drawn), 1.0f - FORWARD));
    const float cosine = fmaf(-share, share, 1.0f + FORWARD * FORWARD) * (0.5f / FORWARD);
    const float aside = sqrtf(fmaxf(0.0f, fmaf(-cosine, cosine, 1.0f) * fmaf(-p.down, p.down, 1.0f)));
    p.down = fminf(fmaxf(fmaf(aside, cospif(2.0f * chance(p.drawn)), __fmul_rn(p.down, cosine)), -1.0f), 1.0f);
    return true;
}
// A photon's way until it is absorbed (below zero) or leaves.
__device__ __forceinline__ float way(const Photon &p) { return p.depth < 0.0f || p.depth > THICK ? p.path : -p.path; }
__global__ void __launch_bounds__(256) lit(float *__restrict__ ways) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    Photon photon = entered(i);
    while (flies(photon)) {}
    ways[i] = way(photon);
}
// 512 photons a warp; who is done takes the next.
__global__ void __launch_bounds__(256) lit_next(float *__restrict__ ways) {
    const int lane = threadIdx.x % 32, first = (blockIdx.x * 8 + threadIdx.x / 32) * 512, end = first + 512;
    int i = first + lane, next = first + 32;
    Photon photon = entered(i);
    while (__any_sync(~0u, i < end)) {
        const bool done = i < end && !flies(photon);
        const unsigned all = __ballot_sync(~0u, done);
        if (done) {
            ways[i] = way(photon);
            i = next + __popc(all & ((1u << lane) - 1));
            photon = entered(i);
        }
        next += __popc(all);
    }
}
// Those still on their way are moved together after every eight flights.
__global__ void __launch_bounds__(256) lit_together(float *__restrict__ ways) {
    __shared__ Photon waiting[256];
    __shared__ int numbers[256], count;
    int i = blockIdx.x * 256 + threadIdx.x, left = 256;
    Photon photon = entered(i);
    while (left > 0) {
        if (threadIdx.x == 0) count = 0;
        __syncthreads();
        if (threadIdx.x < left) {
            bool on = true;
            for (int k = 0; k < 8 && on; k++) on = flies(photon);
            if (on) {
                const int place = atomicAdd(&count, 1);
                waiting[place] = photon, numbers[place] = i;
            } else ways[i] = way(photon);
        }
        __syncthreads();
        left = count;
        if (threadIdx.x < left) photon = waiting[threadIdx.x], i = numbers[threadIdx.x];
        __syncthreads();
    }
}

Study tissue("photons_of_all_lengths_in_a_warp", "medical physics", 1 << 22, "ways of 4194304 photons through tissue twelve free paths thick",
    "a photon a lane: lanes wait for the one of 32 that is scattered most often",
    {{"next", "512 photons a warp, a lane that is done takes the next", {"branch_divergence"}}, {"together", "photons still on their way moved together after every eight flights", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        float *ways = b.output<float>(n);
        return {{"flawed", launch(lit, n / 256, 256, 0, ways)}, {"next", launch(lit_next, n / 4096, 256, 0, ways)}, {"together", launch(lit_together, n / 256, 256, 0, ways)}};
    });

// --- lines in a robot's pictures ---

constexpr int ANGLES = 180, FAR = 1472, AWAY = 736;  // a picture of 1280 x 720: distances from its middle

struct Picture {
    const short2 *points;   // of edges, row by row, from the middle
    const int *starts;      // of each picture's points, and the end
    const float2 *normals;  // of each angle
    int *votes;             // of a picture, angle and distance
};
__device__ __forceinline__ int away(short2 point, float2 normal) { return AWAY + __float2int_rn(fmaf(point.x, normal.x, point.y * normal.y)); }
// A point a thread.
__global__ void __launch_bounds__(256) voted(Picture p) {
    const int i = p.starts[blockIdx.y] + blockIdx.x * 256 + threadIdx.x;
    if (i >= p.starts[blockIdx.y + 1]) return;
    const short2 point = p.points[i];
    int *votes = p.votes + blockIdx.y * ANGLES * FAR;
#pragma unroll 4
    for (int angle = 0; angle < ANGLES; angle++) atomicAdd(votes + angle * FAR + away(point, p.normals[angle]), 1);
}
// An angle a block.
__global__ void __launch_bounds__(512) voted_angle(Picture p) {
    __shared__ int votes[FAR];
    for (int k = threadIdx.x; k < FAR; k += 512) votes[k] = 0;
    const float2 normal = p.normals[blockIdx.x];
    const int end = p.starts[blockIdx.y + 1];
    __syncthreads();
#pragma unroll 4
    for (int i = p.starts[blockIdx.y] + threadIdx.x; i < end; i += 512) atomicAdd(votes + away(p.points[i], normal), 1);
    __syncthreads();
    for (int k = threadIdx.x; k < FAR; k += 512) p.votes[(blockIdx.y * ANGLES + blockIdx.x) * FAR + k] = votes[k];
}
// Six angles and a fourth of the points a block.
__global__ void __launch_bounds__(512) voted_parts(Picture p) {
    __shared__ int votes[6][FAR];
    for (int k = threadIdx.x; k < 6 * FAR; k += 512) votes[0][k] = 0;
    float2 normals[6];
#pragma unroll
    for (int k = 0; k < 6; k++) normals[k] = p.normals[blockIdx.x * 6 + k];
    const int end = p.starts[blockIdx.y + 1];
    __syncthreads();
    for (int i = p.starts[blockIdx.y] + blockIdx.z * 512 + threadIdx.x; i < end; i += 2048) {
        const short2 point = p.points[i];
#pragma unroll
        for (int k = 0; k < 6; k++) atomicAdd(&votes[k][away(point, normals[k])], 1);
    }
    __syncthreads();
    int *all = p.votes + (blockIdx.y * ANGLES + blockIdx.x * 6) * FAR;
    for (int k = threadIdx.x; k < 6 * FAR; k += 512)
        if (votes[0][k]) atomicAdd(all + k, votes[0][k]);
}

Study lines("lines_voted_for_in_global_memory", "robotics", 8, "votes of some 50000 edge points of each of eight pictures for lines at 180 angles and 1472 distances",
    "each point adds a vote an angle to counters in global memory",
    {{"angle", "an angle a block, its counters in shared memory", {"global_atomics"}}, {"parts", "six angles of a fourth of the points a block, counted in shared memory first", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<short2> points;
        std::vector<int> starts = {0};
        std::vector<float2> normals(ANGLES);
        for (int k = 0; k < ANGLES; k++) normals[k] = {static_cast<float>(std::cos(k * 3.141592653589793 / ANGLES)), static_cast<float>(std::sin(k * 3.141592653589793 / ANGLES))};
        int most = 0;
        for (int picture = 0; picture < n; picture++) {
            for (int y = -360; y < 360; y++)
                for (int x = -640; x < 640; x++) {
                    const unsigned any = hash(static_cast<unsigned>((picture * 720 + y + 360) * 1280 + x + 640));
                    const bool line = std::abs(x + 2 * y - 30 * picture) % 311 < 2 || std::abs(3 * x - y + 17 * picture) % 487 < 3;
                    if (line ? any % 4 : any % 25 == 0) points.push_back({static_cast<short>(x), static_cast<short>(y)});
                }
            starts.push_back(static_cast<int>(points.size()));
            most = std::max(most, starts[picture + 1] - starts[picture]);
        }
        const Picture p = {b.copy(points), b.copy(starts), b.copy(normals), b.output<int>(n * ANGLES * FAR, true)};
        b.tolerance = 0.0;
        return {{"flawed", launch(voted, dim3(blocks(most, 256), n), 256, 0, p)}, {"angle", launch(voted_angle, dim3(ANGLES, n), 512, 0, p)}, {"parts", launch(voted_parts, dim3(ANGLES / 6, n, 4), 512, 0, p)}};
    });

// --- heights of the geoid ---

constexpr int DEGREE = 36, TERMS = DEGREE * (DEGREE + 1) / 2;  // orders 0 ... 35, degrees from the order's next to 36

struct Geoid {
    const float4 *terms;   // order by order: factors of the two degrees before, of cosine and of sine
    const float4 *firsts;  // of each order: factors of its first cosine and sine, and of the next order's first degree
    const float4 *places;  // sine and cosine of latitude, cosine and sine of longitude
    float *heights;
};
struct Model {
    float4 terms[TERMS], firsts[DEGREE];
};
__device__ __forceinline__ void load_model(const Geoid &geoid, Model &model) {
    for (int i = threadIdx.x; i < TERMS; i += blockDim.x) model.terms[i] = geoid.terms[i];
    if (threadIdx.x < DEGREE) model.firsts[threadIdx.x] = geoid.firsts[threadIdx.x];
    __syncthreads();
}
// Sums over one order, then on to the next; places of a thread are a block apart.
template <int COUNT>
struct Places {
    float4 at[COUNT];
    float diagonal[COUNT], cosine[COUNT], sine[COUNT], height[COUNT];
    float now[COUNT], before[COUNT], even[COUNT], odd[COUNT];
    __device__ __forceinline__ Places(const Geoid &geoid) {
        const float4 *from = geoid.places + blockIdx.x * COUNT * blockDim.x + threadIdx.x;
#pragma unroll
        for (int k = 0; k < COUNT; k++) at[k] = from[k * blockDim.x], diagonal[k] = cosine[k] = 1.0f, sine[k] = height[k] = 0.0f;
    }
    __device__ __forceinline__ void begin(float4 first) {
#pragma unroll
        for (int k = 0; k < COUNT; k++) now[k] = diagonal[k], before[k] = 0.0f, even[k] = first.x * now[k], odd[k] = first.y * now[k];
    }
    __device__ __forceinline__ void add(float4 term) {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            const float next = term.x * (at[k].x * now[k]) - term.y * before[k];
            before[k] = now[k], now[k] = next;
            even[k] += term.z * next, odd[k] += term.w * next;
        }
    }
    __device__ __forceinline__ void end(float4 first) {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            height[k] += even[k] * cosine[k] + odd[k] * sine[k];
            diagonal[k] *= first.z * at[k].y;
            const float turned = cosine[k] * at[k].z - sine[k] * at[k].w;
            sine[k] = sine[k] * at[k].z + cosine[k] * at[k].w, cosine[k] = turned;
        }
    }
    __device__ __forceinline__ void write(const Geoid &geoid) const {
        float *to = geoid.heights + blockIdx.x * COUNT * blockDim.x + threadIdx.x;
#pragma unroll
        for (int k = 0; k < COUNT; k++) to[k * blockDim.x] = height[k];
    }
};
template <int ORDER>
__device__ __forceinline__ void all_orders(const Model &model, Places<4> &places) {
    if constexpr (ORDER < DEGREE) {
        constexpr int first = ORDER * DEGREE - ORDER * (ORDER - 1) / 2;
        places.begin(model.firsts[ORDER]);
#pragma unroll
        for (int k = 0; k < DEGREE - ORDER; k++) places.add(model.terms[first + k]);
        places.end(model.firsts[ORDER]);
        all_orders<ORDER + 1>(model, places);
    }
}
// Four places a thread.
__global__ void __launch_bounds__(256) heights(Geoid geoid) {
    __shared__ Model model;
    load_model(geoid, model);
    Places<4> places(geoid);
    all_orders<0>(model, places);
    places.write(geoid);
}
template <int COUNT, int ROUND>
__device__ __forceinline__ void loop_orders(const Geoid &geoid) {
    __shared__ Model model;
    load_model(geoid, model);
    Places<COUNT> places(geoid);
    const float4 *term = model.terms;
    for (int order = 0; order < DEGREE; order++) {
        places.begin(model.firsts[order]);
#pragma unroll ROUND
        for (int k = order; k < DEGREE; k++) places.add(*term++);
        places.end(model.firsts[order]);
    }
    places.write(geoid);
}
__global__ void __launch_bounds__(256) heights_loops(Geoid geoid) { loop_orders<4, 4>(geoid); }
// Eight places a thread.
__global__ void __launch_bounds__(128) heights_eight(Geoid geoid) { loop_orders<8, 2>(geoid); }

Study geoid("geoid_heights_every_term_written_out", "geodesy", 1 << 21, "heights of the geoid at 2097152 places from spherical harmonics up to degree 36",
    "666 terms of four places are written out one after another: more instructions than the caches for them hold",
    {{"loops", "loops over orders and degrees, four degrees a round", {"instruction_cache"}}, {"eight", "loops, two degrees a round, eight places a thread", {"instruction_cache"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> terms, firsts(DEGREE), places(n);
        const auto noise = [](unsigned seed) { return hash(seed) / 2147483648.0 - 1.0; };
        for (int m = 0; m < DEGREE; m++) {
            const double share = 1.0 + m * m;
            firsts[m] = {static_cast<float>(noise(2 * m) / share), static_cast<float>(noise(2 * m + 1) / share), static_cast<float>(m ? std::sqrt((2.0 * m + 3.0) / (2.0 * m + 2.0)) : std::sqrt(3.0)), 0.0f};
            for (int l = m + 1; l <= DEGREE; l++) {
                const double all = static_cast<double>(l - m) * (l + m), far = std::sqrt((2.0 * l + 1.0) * (2.0 * l - 1.0) / all);
                const double near = l > m + 1 ? std::sqrt((2.0 * l + 1.0) * (l + m - 1.0) * (l - m - 1.0) / (all * (2.0 * l - 3.0))) : 0.0;
                const unsigned seed = 1000u + 2 * (100 * m + l);
                terms.push_back({static_cast<float>(far), static_cast<float>(near), static_cast<float>(noise(seed) / (1.0 + l * l)), static_cast<float>(noise(seed + 1) / (1.0 + l * l))});
            }
        }
        for (long i = 0; i < n; i++) {
            const double latitude = 1.5 * noise(static_cast<unsigned>(i) + 123456u), longitude = 3.141592653589793 * noise(static_cast<unsigned>(i) + 98765432u);
            places[i] = {static_cast<float>(std::sin(latitude)), static_cast<float>(std::cos(latitude)), static_cast<float>(std::cos(longitude)), static_cast<float>(std::sin(longitude))};
        }
        const Geoid geoid = {b.copy(terms), b.copy(firsts), b.copy(places), b.output<float>(n)};
        return {{"flawed", launch(heights, n / 1024, 256, 0, geoid)}, {"loops", launch(heights_loops, n / 1024, 256, 0, geoid)}, {"eight", launch(heights_eight, n / 1024, 128, 0, geoid)}};
    });

// --- shortest ways through a network of roads ---

constexpr int VIA = 64;  // crossings that ways may newly lead through

struct Roads {
    const int *to, *from;  // ways to those crossings, a row a start; from them, a row a crossing
    const int *known;
    int *ways;
    int count;
};
// 32 x 32 ways a block, one a thread.
__global__ void __launch_bounds__(1024) shortened(Roads roads) {
    __shared__ int to[32][VIA], from[VIA][32];
    const int tx = threadIdx.x % 32, ty = threadIdx.x / 32, row = blockIdx.y * 32 + ty, column = blockIdx.x * 32 + tx;
#pragma unroll
    for (int k = 0; k < VIA; k += 32) {
        to[ty][k + tx] = roads.to[row * VIA + k + tx];
        from[k + ty][tx] = roads.from[(k + ty) * roads.count + column];
    }
    const int at = row * roads.count + column;
    int shortest = roads.known[at];
    __syncthreads();
#pragma unroll 16
    for (int k = 0; k < VIA; k++) shortest = min(shortest, to[ty][k] + from[k][tx]);
    roads.ways[at] = shortest;
}
// 64 x 64 ways a block, four by four a thread.
__global__ void __launch_bounds__(256) shortened_squares(Roads roads) {
    __shared__ __align__(16) int to[64][VIA + 4], from[VIA][64];
    const int tx = threadIdx.x % 16 * 4, ty = threadIdx.x / 16 * 4, row = blockIdx.y * 64, column = blockIdx.x * 64;
#pragma unroll
    for (int k = 0; k < 64; k += 16) {
        const int line = k + threadIdx.x / 16;
        *reinterpret_cast<int4 *>(&to[line][tx]) = *reinterpret_cast<const int4 *>(roads.to + (row + line) * VIA + tx);
        *reinterpret_cast<int4 *>(&from[line][tx]) = *reinterpret_cast<const int4 *>(roads.from + line * roads.count + column + tx);
    }
    int4 shortest[4];
#pragma unroll
    for (int j = 0; j < 4; j++) shortest[j] = *reinterpret_cast<const int4 *>(roads.known + (row + ty + j) * roads.count + column + tx);
    __syncthreads();
    const auto shorten = [](int4 &ways, int start, int4 rest) {
        ways.x = min(ways.x, start + rest.x), ways.y = min(ways.y, start + rest.y);
        ways.z = min(ways.z, start + rest.z), ways.w = min(ways.w, start + rest.w);
    };
#pragma unroll 2
    for (int k = 0; k < VIA; k += 4) {
        int4 rest[4];
#pragma unroll
        for (int i = 0; i < 4; i++) rest[i] = *reinterpret_cast<const int4 *>(&from[k + i][tx]);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int4 start = *reinterpret_cast<const int4 *>(&to[ty + j][k]);
            shorten(shortest[j], start.x, rest[0]), shorten(shortest[j], start.y, rest[1]);
            shorten(shortest[j], start.z, rest[2]), shorten(shortest[j], start.w, rest[3]);
        }
    }
#pragma unroll
    for (int j = 0; j < 4; j++) *reinterpret_cast<int4 *>(roads.ways + (row + ty + j) * roads.count + column + tx) = shortest[j];
}
// 64 x 64 ways a block, eight below each other of two columns a thread.
__global__ void __launch_bounds__(256) shortened_columns(Roads roads) {
    __shared__ __align__(16) int to[64][VIA], from[VIA][64];
    const int tx = threadIdx.x % 32, ty = threadIdx.x / 32, row = blockIdx.y * 64, column = blockIdx.x * 64;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int item = k * 256 + threadIdx.x;
        *reinterpret_cast<int4 *>(&to[0][4 * item]) = *reinterpret_cast<const int4 *>(roads.to + row * VIA + 4 * item);
        *reinterpret_cast<int4 *>(&from[0][4 * item]) = *reinterpret_cast<const int4 *>(roads.from + item / 16 * roads.count + column + item % 16 * 4);
    }
    int2 shortest[8];
#pragma unroll
    for (int j = 0; j < 8; j++) shortest[j] = *reinterpret_cast<const int2 *>(roads.known + (row + ty * 8 + j) * roads.count + column + 2 * tx);
    __syncthreads();
#pragma unroll 2
    for (int k = 0; k < VIA; k += 4) {
        int2 a[4];
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = *reinterpret_cast<const int2 *>(&from[k + i][2 * tx]);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int4 four = *reinterpret_cast<const int4 *>(&to[ty * 8 + j][k]);
            shortest[j].x = min(min(min(min(shortest[j].x, four.x + a[0].x), four.y + a[1].x), four.z + a[2].x), four.w + a[3].x);
            shortest[j].y = min(min(min(min(shortest[j].y, four.x + a[0].y), four.y + a[1].y), four.z + a[2].y), four.w + a[3].y);
        }
    }
#pragma unroll
    for (int j = 0; j < 8; j++) *reinterpret_cast<int2 *>(roads.ways + (row + ty * 8 + j) * roads.count + column + 2 * tx) = shortest[j];
}

Study crossings("road_distances_two_words_a_sum", "transport", 4096, "ways between 4096 crossings of roads, shortened by those through 64 of them",
    "two values from shared memory for each sum that is compared",
    {{"squares", "four by four ways a thread", {"shared_memory_bandwidth"}}, {"columns", "eight ways below each other of two columns a thread", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const Roads roads = {b.random<int>(n * VIA, 0.0, 20000.0), b.random<int>(n * VIA, 0.0, 20000.0), b.random<int>(n * n, 0.0, 40000.0), b.output<int>(n * n), static_cast<int>(n)};
        b.tolerance = 0.0;
        return {{"flawed", launch(shortened, dim3(n / 32, n / 32), 1024, 0, roads)}, {"squares", launch(shortened_squares, dim3(n / 64, n / 64), 256, 0, roads)},
            {"columns", launch(shortened_columns, dim3(n / 64, n / 64), 256, 0, roads)}};
    });

// --- how much a flow still changes ---

// Sums of squared differences of two states, one a block.
__global__ void __launch_bounds__(256) changes(const float4 *__restrict__ now, const float4 *__restrict__ before, float *__restrict__ out, int share) {
    __shared__ float parts[8];
    const size_t first = static_cast<size_t>(blockIdx.x) * share + threadIdx.x;
    float sums[4] = {};
#pragma unroll 4
    for (int i = 0; i < share; i += 256) {
        const float4 a = now[first + i], c = before[first + i];
        const float4 d = make_float4(a.x - c.x, a.y - c.y, a.z - c.z, a.w - c.w);
        sums[0] += d.x * d.x, sums[1] += d.y * d.y, sums[2] += d.z * d.z, sums[3] += d.w * d.w;
    }
    const float sum = warp_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

Study residual("sound_flow_residual_summed", "fluid dynamics", 1 << 25, "squared differences of two states of 33554432 values, summed in 2048 parts", "", {},
    [](Buffers &b, long n) -> Sides {
        const float4 *now = reinterpret_cast<const float4 *>(b.random<float>(n)), *before = reinterpret_cast<const float4 *>(b.random<float>(n));
        float *out = b.output<float>(2048);
        return {{"sound", launch(changes, 2048, 256, 0, now, before, out, static_cast<int>(n / 8192))}};
    });

}  // namespace
