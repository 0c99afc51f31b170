// Laser pulses, seasons, strings, antennas, genotypes, genes, amounts and pictures of a radar.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- when a laser's pulse comes back ---

struct Pulses {
    const float *samples;  // sample by sample of all pulses
    const float *limits;
    float *arrivals;
    int pulses, length;
};
// Where a line between two samples passes the limit.
__device__ __forceinline__ float passed(float before, float now, float limit, int at, int length) { return at < length ? at - (now - limit) / (now - before) : -1.0f; }
// When each pulse's echo first passes its limit.
__global__ void __launch_bounds__(128) echoes(Pulses p) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    const float *__restrict__ sample = p.samples + i;
    const float limit = p.limits[i];
    float before = 0.0f, now = 0.0f;
    int at = 0;
    for (; at < p.length; at++) {
        now = sample[at * p.pulses];
        if (now >= limit) break;
        before = now;
    }
    p.arrivals[i] = passed(before, now, limit, at, p.length);
}
// Samples in order until one passes; whether one did.
template <int COUNT>
__device__ __forceinline__ bool passes(const float (&samples)[COUNT], float limit, float &before, float &now, int &at) {
    bool found = false;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        found = found || samples[k] >= limit;
        before = found ? before : samples[k];
        at += !found;
    }
#pragma unroll
    for (int k = COUNT - 1; k >= 0; k--) now = samples[k] >= limit ? samples[k] : now;
    return found;
}
// Eight samples loaded, then tested.
__global__ void __launch_bounds__(128) echoes_eight(Pulses p) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    const float *__restrict__ sample = p.samples + i;
    const float limit = p.limits[i];
    float before = 0.0f, now = 0.0f;
    int at = 0;
    for (int first = 0; first < p.length; first += 8) {
        float samples[8];
#pragma unroll
        for (int k = 0; k < 8; k++) samples[k] = sample[(first + k) * p.pulses];
        if (passes(samples, limit, before, now, at)) break;
    }
    p.arrivals[i] = passed(before, now, limit, at, p.length);
}
// Eight pulses a warp: four lanes a pulse, two samples a lane.
__global__ void __launch_bounds__(128) echoes_lanes(Pulses p) {
    const int lane = threadIdx.x % 32, time = lane / 8, i = (blockIdx.x * 4 + threadIdx.x / 32) * 8 + lane % 8;
    const float *__restrict__ sample = p.samples + i;
    const float limit = p.limits[i];
    int found = p.length;
    for (int at = 0; at < p.length; at += 8) {
        const float early = sample[(at + time) * p.pulses], late = sample[(at + 4 + time) * p.pulses];
        const unsigned first = __ballot_sync(~0u, early >= limit) >> lane % 8 & 0x01010101u, second = __ballot_sync(~0u, late >= limit) >> lane % 8 & 0x01010101u;
        if (found == p.length && (first | second)) found = at + (first ? __ffs(first) : 32 + __ffs(second)) / 8;
        if (__all_sync(~0u, found < p.length)) break;
    }
    if (time > 0) return;
    const float before = found > 0 ? sample[(found - 1) * p.pulses] : 0.0f, now = found < p.length ? sample[found * p.pulses] : 0.0f;
    p.arrivals[i] = passed(before, now, limit, found, p.length);
}

Study depths("laser_echo_first_sample_past_limit", "remote sensing", 131072, "when the echoes of 131072 laser pulses first pass a limit, among 384 samples each",
    "a sample is loaded when the one before it was found not to pass: one load on its way a lane",
    {{"eight", "eight samples loaded, then tested", {"memory_latency"}}, {"lanes", "four lanes a pulse, two samples a lane", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int length = 384, pulses = static_cast<int>(n);
        std::vector<float> samples(n * length), limits(n);
        for (int i = 0; i < pulses; i++) {
            const int bottom = 210 + static_cast<int>(90.0 * std::sin(0.0007 * i) + 30.0 * std::sin(0.011 * i)) + static_cast<int>(pairs::hash(static_cast<unsigned>(i)) % 16);
            limits[i] = 3.0f + 0.001f * (i % 64);
            for (int at = 0; at < length; at++) {
                const float noise = (pairs::hash(static_cast<unsigned>(at * pulses + i)) >> 8) * (1.0f / 16777216.0f);
                samples[static_cast<size_t>(at) * n + i] = noise + (at < bottom ? 0.0f : 1.5f * std::min(at - bottom + 1, 4));
            }
        }
        const Pulses p = {b.copy(samples), b.copy(limits), b.output<float>(n), pulses, length};
        return {{"flawed", launch(echoes, n / 128, 128, 0, p)}, {"eight", launch(echoes_eight, n / 128, 128, 0, p)}, {"lanes", launch(echoes_lanes, n / 32, 128, 0, p)}};
    });

// --- how far days are from what is usual ---

constexpr int DAYS = 46, PIECE = 240;  // of a season; of four points each

struct Season {
    const float4 *seen, *usual, *scale;  // year by year, day by day; day by day
    float4 *out;
    int years, points;  // points: of four each
};
__device__ __forceinline__ float4 unusual(float4 seen, float4 usual, float4 scale) {
    return make_float4((seen.x - usual.x) * scale.x, (seen.y - usual.y) * scale.y, (seen.z - usual.z) * scale.z, (seen.w - usual.w) * scale.w);
}
__device__ __forceinline__ void day_of(const Season &s, int year, int day, int piece) {
    const int point = day * s.points + piece * PIECE + threadIdx.x, at = year * DAYS * s.points + point;
    s.out[at] = unusual(s.seen[at], s.usual[point], s.scale[point]);
}
// Each day's temperatures against those usual on that day.
__global__ void __launch_bounds__(PIECE) seasons(Season s) { day_of(s, blockIdx.z, blockIdx.y, blockIdx.x); }
__global__ void __launch_bounds__(PIECE) seasons_years(Season s) { day_of(s, blockIdx.x, blockIdx.z, blockIdx.y); }
// All years of a day a thread.
__global__ void __launch_bounds__(PIECE) seasons_kept(Season s) {
    const int point = blockIdx.y * s.points + blockIdx.x * PIECE + threadIdx.x;
    const float4 usual = s.usual[point], scale = s.scale[point];
#pragma unroll 3
    for (int year = 0; year < s.years; year++) {
        const int at = year * DAYS * s.points + point;
        s.out[at] = unusual(s.seen[at], usual, scale);
    }
}

Study warmth("season_unusual_year_after_year", "climate", 64800, "temperatures of 46 days in six years at 259200 points against each day's mean and deviation",
    "blocks go through a whole year before the next: means and deviations, 96 MB, are fetched from memory again for each year",
    {{"years", "blocks of one day in all years next to each other", {"cache_locality"}}, {"kept", "six years a thread, means and deviations kept", {"cache_locality", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int years = 6, pieces = static_cast<int>(n / PIECE);
        const auto four = [&b](size_t count, double low, double high) { return reinterpret_cast<const float4 *>(b.random<float>(4 * count, low, high)); };
        const Season s = {four(years * DAYS * n, -20.0, 30.0), four(DAYS * n, 0.0, 10.0), four(DAYS * n, 0.1, 1.0), reinterpret_cast<float4 *>(b.output<float>(4 * years * DAYS * n)), years, static_cast<int>(n)};
        return {{"flawed", launch(seasons, dim3(pieces, DAYS, years), PIECE, 0, s)}, {"years", launch(seasons_years, dim3(years, pieces, DAYS), PIECE, 0, s)},
            {"kept", launch(seasons_kept, dim3(pieces, DAYS), PIECE, 0, s)}};
    });

// --- strings that are plucked ---

constexpr int POINTS = 256, PICKUP = 37;

struct Strings {
    const float *plucked, *pull;  // 256 points a string; a string's tension
    float *heard;
    int steps;
    float lasting;
};
__device__ __forceinline__ float swung(float left, float own, float right, float before, float pull, float lasting) {
    return own + (own - before) * lasting + pull * (left - 2.0f * own + right);
}
// What a pickup hears of each string.
__global__ void __launch_bounds__(POINTS) strings(Strings s) {
    __shared__ float now[POINTS + 2];
    const int i = threadIdx.x;
    float *__restrict__ heard = s.heard + blockIdx.x * s.steps;
    const float pull = s.pull[blockIdx.x];
    float own = s.plucked[blockIdx.x * POINTS + i], before = own;
    now[i + 1] = own;
    if (i < 2) now[i * (POINTS + 1)] = 0.0f;
    __syncthreads();
    for (int step = 0; step < s.steps; step++) {
        const float next = swung(now[i], own, now[i + 2], before, pull, s.lasting);
        __syncthreads();
        before = own, own = next;
        now[i + 1] = own;
        if (i == PICKUP) heard[step] = own;
        __syncthreads();
    }
}
__global__ void __launch_bounds__(POINTS) strings_turns(Strings s) {
    __shared__ float now[2][POINTS + 2];
    const int i = threadIdx.x;
    float *__restrict__ heard = s.heard + blockIdx.x * s.steps;
    const float pull = s.pull[blockIdx.x];
    float own = s.plucked[blockIdx.x * POINTS + i], before = own;
    now[0][i + 1] = own;
    if (i < 4) now[i / 2][i % 2 * (POINTS + 1)] = 0.0f;
    __syncthreads();
#pragma unroll 2
    for (int step = 0; step < s.steps; step++) {
        const float next = swung(now[step % 2][i], own, now[step % 2][i + 2], before, pull, s.lasting);
        before = own, own = next;
        now[(step + 1) % 2][i + 1] = own;
        if (i == PICKUP) heard[step] = own;
        __syncthreads();
    }
}
// A string a warp, eight points a lane.
__global__ void __launch_bounds__(128) strings_warps(Strings s) {
    constexpr int EACH = POINTS / 32;
    const int lane = threadIdx.x % 32, string = blockIdx.x * 4 + threadIdx.x / 32;
    float *__restrict__ heard = s.heard + string * s.steps;
    const float pull = s.pull[string];
    float own[EACH], before[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) before[k] = own[k] = s.plucked[string * POINTS + lane * EACH + k];
    for (int step = 0; step < s.steps; step++) {
        float left = __shfl_up_sync(~0u, own[EACH - 1], 1), right = __shfl_down_sync(~0u, own[0], 1);
        left = lane == 0 ? 0.0f : left, right = lane == 31 ? 0.0f : right;
        float next[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) next[k] = swung(k ? own[k - 1] : left, own[k], k < EACH - 1 ? own[k + 1] : right, before[k], pull, s.lasting);
#pragma unroll
        for (int k = 0; k < EACH; k++) before[k] = own[k], own[k] = next[k];
        if (lane == PICKUP / EACH) heard[step] = own[PICKUP % EACH];
    }
}

Study piano("plucked_strings_two_barriers_a_step", "audio", 4096, "4096 steps of 528 strings of 256 points, and what a pickup hears of them",
    "a block a string: two barriers for each step, of a few operations",
    {{"turns", "points in two arrays by turns: one barrier a step", {"barriers"}}, {"warps", "a string a warp, eight points a lane: shuffles, no barrier", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = 528;
        std::vector<float> plucked(count * POINTS), pull(count);
        for (int k = 0; k < count; k++) {
            pull[k] = 0.2f + 0.001f * (k % 600);
            const int peak = 40 + k % 90;
            for (int i = 0; i < POINTS; i++) plucked[k * POINTS + i] = static_cast<float>(i < peak ? (i + 1.0) / (peak + 1.0) : (POINTS - i) / (POINTS - peak + 0.0));
        }
        const Strings s = {b.copy(plucked), b.copy(pull), b.output<float>(count * n), static_cast<int>(n), 0.9998f};
        b.tolerance = 1e-3;
        return {{"flawed", launch(strings, count, POINTS, 0, s)}, {"turns", launch(strings_turns, count, POINTS, 0, s)}, {"warps", launch(strings_warps, count / 4, 128, 0, s)}};
    });

// --- what pairs of antennas see of the sky ---

struct Sky {
    const float4 *sources;  // two of direction, depth, flux
    const float *u, *v, *w;
    float2 *seen;
    int count;
};
template <typename Wave>
__device__ __forceinline__ void look(const Sky &sky, Wave wave) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float u = sky.u[i], v = sky.v[i], w = sky.w[i];
    float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll 4
    for (int k = 0; k < sky.count; k++) {
        const float4 source = sky.sources[k];
        const float2 at = wave(u * source.x + v * source.y + w * source.z);
        sum.x += source.w * at.x, sum.y -= source.w * at.y;
    }
    sky.seen[i] = sum;
}
// Waves of all sources at each pair of antennas.
__global__ void __launch_bounds__(256) baselines(Sky sky) {
    look(sky, [](float turns) {
        float2 at;
        sincosf(6.2831853f * turns, &at.y, &at.x);
        return at;
    });
}
__global__ void __launch_bounds__(256) baselines_halves(Sky sky) {
    look(sky, [](float turns) {
        float2 at;
        sincospif(2.0f * turns, &at.y, &at.x);
        return at;
    });
}
__global__ void __launch_bounds__(256) baselines_rest(Sky sky) {
    look(sky, [](float turns) {
        float2 at;
        __sincosf(6.2831853f * (turns - rintf(turns)), &at.y, &at.x);
        return at;
    });
}

Study interferometer("visibilities_sines_of_many_turns", "radio astronomy", 262144, "what 262144 pairs of antennas see of 512 sources",
    "precise sine and cosine of an angle of up to a hundred turns for each pair and source",
    {{"rest", "whole turns taken off, then fast sine and cosine", {"expensive_math"}}, {"halves", "sine and cosine of multiples of pi", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = 512;
        std::vector<float4> sources(count);
        for (int k = 0; k < count; k++) {
            const double far = 0.1 * std::sqrt((k + 0.5) / count), angle = 2.399963 * k, x = far * std::cos(angle), y = far * std::sin(angle);
            sources[k] = {static_cast<float>(x), static_cast<float>(y), static_cast<float>(std::sqrt(1.0 - x * x - y * y) - 1.0), static_cast<float>(1.0 / (1.0 + 0.1 * k))};
        }
        const Sky sky = {b.copy(sources), b.random<float>(n, -700.0, 700.0), b.random<float>(n, -700.0, 700.0), b.random<float>(n, -100.0, 100.0), reinterpret_cast<float2 *>(b.output<float>(2 * n)), count};
        b.tolerance = 1e-3;
        return {{"flawed", launch(baselines, n / 256, 256, 0, sky)}, {"rest", launch(baselines_rest, n / 256, 256, 0, sky)}, {"halves", launch(baselines_halves, n / 256, 256, 0, sky)}};
    });

// --- genotypes ---

constexpr unsigned DOSES = 0x0001ff02u;  // by two bits: two copies, unknown, one copy, none

// Copies of an allele, four to a byte in the file.
__global__ void __launch_bounds__(256) doses(const unsigned char *__restrict__ file, signed char *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const int two = file[i / 4] >> (i % 4 * 2) & 3;
    out[i] = static_cast<signed char>(DOSES >> (8 * two));
}
__device__ __forceinline__ unsigned four_doses(unsigned byte) { return __byte_perm(DOSES, 0, (byte & 3) | (byte & 12) << 2 | (byte & 48) << 4 | (byte & 192) << 6); }
__global__ void __launch_bounds__(256) doses_bytes(const unsigned char *__restrict__ file, unsigned *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = four_doses(file[i]);
}
__global__ void __launch_bounds__(256) doses_words(const unsigned *__restrict__ file, uint4 *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const unsigned word = file[i];
    out[i] = make_uint4(four_doses(word & 255), four_doses(word >> 8 & 255), four_doses(word >> 16 & 255), four_doses(word >> 24));
}

Study alleles("genotypes_a_thread_each", "genetics", 32768, "genotypes of 4096 people at 32768 places, two bits each, as bytes",
    "a thread for each genotype: it loads the byte that holds four and stores one byte",
    {{"bytes", "a byte of the file a thread: four genotypes in one store", {"narrow_access"}}, {"words", "a word of the file a thread: sixteen genotypes in one store", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const long count = n * 4096;
        const unsigned char *file = b.random<unsigned char>(count / 4, 0.0, 256.0);
        signed char *out = b.output<signed char>(count);
        b.tolerance = 0.0;
        return {{"flawed", launch(doses, count / 256, 256, 0, file, out)}, {"bytes", launch(doses_bytes, count / 1024, 256, 0, file, reinterpret_cast<unsigned *>(out))},
            {"words", launch(doses_words, count / 4096, 256, 0, reinterpret_cast<const unsigned *>(file), reinterpret_cast<uint4 *>(out))}};
    });

// --- how often genes were read ---

struct Genes {
    const uint4 *depths;  // eight places each
    const int *starts;    // of genes, in units of eight places, and the end
    const int2 *pieces;   // gene, start
    unsigned *out;
    int genes, piece, share;
};
__device__ __forceinline__ unsigned halves(unsigned pair) { return (pair & 65535) + (pair >> 16); }
// Sum of a block's part of a gene; the result is the first thread's.
__device__ __forceinline__ unsigned read_depth(const uint4 *__restrict__ depths, int from, int to) {
    __shared__ unsigned sums[8];
    unsigned sum = 0;
#pragma unroll 4
    for (int at = from + threadIdx.x; at < to; at += 256) {
        const uint4 d = depths[at];
        sum += halves(d.x) + halves(d.y) + halves(d.z) + halves(d.w);
    }
    for (int offset = 16; offset; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int k = 1; k < 8; k++) sum += sums[k];
    __syncthreads();
    return sum;
}
// Depths of reads summed along each gene.
__global__ void __launch_bounds__(256) genes(Genes g) {
    const unsigned sum = read_depth(g.depths, g.starts[blockIdx.x], g.starts[blockIdx.x + 1]);
    if (threadIdx.x == 0) g.out[blockIdx.x] = sum;
}
__global__ void __launch_bounds__(256) genes_pieces(Genes g) {
    const int2 piece = g.pieces[blockIdx.x];
    const unsigned sum = read_depth(g.depths, piece.y, min(piece.y + g.piece, g.starts[piece.x + 1]));
    if (threadIdx.x == 0) atomicAdd(g.out + piece.x, sum);
}
// As many places for each block.
__global__ void __launch_bounds__(256) genes_shares(Genes g) {
    const int from = blockIdx.x * g.share, to = min(from + g.share, g.starts[g.genes]);
    int gene = 0;
    for (int step = g.genes / 2; step; step /= 2) gene += g.starts[gene + step] <= from ? step : 0;
    for (int at = from; at < to; gene++) {
        const int end = min(g.starts[gene + 1], to);
        const unsigned sum = read_depth(g.depths, at, end);
        if (threadIdx.x == 0) atomicAdd(g.out + gene, sum);
        at = end;
    }
}

Study transcripts("gene_depths_a_gene_a_block", "transcriptomics", 4096, "depths of reads summed along 4096 genes of 1024 to two million places",
    "a gene a block: a few genes are a hundred times as long as most, and their blocks go on alone",
    {{"pieces", "pieces of 16384 places, an atomic each", {"workload_imbalance"}}, {"shares", "as many places for each block, its genes searched for", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        const int piece = 2048;
        std::vector<int> starts(n + 1);
        std::vector<int2> pieces;
        for (int k = 0; k < n; k++) {
            const double u = pairs::hash(static_cast<unsigned>(k + 77)) / 4294967296.0;
            const int units = static_cast<int>(128.0 * std::exp2(11.0 * u * u * u * u * u));
            starts[k + 1] = starts[k] + units;
            for (int at = 0; at < units; at += piece) pieces.push_back({k, starts[k] + at});
        }
        const size_t units = starts[n];
        std::vector<unsigned short> depths(8 * units);
        for (size_t i = 0; i < depths.size(); i++) depths[i] = static_cast<unsigned short>(pairs::hash(static_cast<unsigned>(i)) % 200);
        const int count = static_cast<int>(pieces.size()), blocks_there = 132 * 16, share = static_cast<int>((units + blocks_there - 1) / blocks_there);
        const Genes g = {reinterpret_cast<const uint4 *>(b.copy(depths)), b.copy(starts), b.copy(pieces), b.output<unsigned>(n, true), static_cast<int>(n), piece, share};
        b.tolerance = 0.0;
        return {{"flawed", launch(genes, n, 256, 0, g)}, {"pieces", launch(genes_pieces, count, 256, 0, g)}, {"shares", launch(genes_shares, pairs::blocks(static_cast<long>(units), share), 256, 0, g)}};
    });

// --- amounts as text ---

constexpr unsigned ZEROS = 0x30303030u;

// Sixteen digits of each amount.
__global__ void __launch_bounds__(256) texts(const unsigned long long *__restrict__ amounts, uint4 *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    unsigned long long rest = amounts[i];
    unsigned word[4] = {ZEROS, ZEROS, ZEROS, ZEROS};
#pragma unroll
    for (int k = 15; k >= 0; k--) {
        word[k / 4] += static_cast<unsigned>(rest % 10) << (8 * (k % 4));
        rest /= 10;
    }
    out[i] = make_uint4(word[0], word[1], word[2], word[3]);
}
// Eight digits each in 32 bits.
__global__ void __launch_bounds__(256) texts_halves(const unsigned long long *__restrict__ amounts, uint4 *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const unsigned long long amount = amounts[i];
    const unsigned high = static_cast<unsigned>(amount / 100000000u);
    unsigned half[2] = {high, static_cast<unsigned>(amount) - high * 100000000u};
    unsigned word[4] = {ZEROS, ZEROS, ZEROS, ZEROS};
#pragma unroll
    for (int k = 15; k >= 0; k--) {
        const unsigned less = half[k / 8] / 10;
        word[k / 4] += (half[k / 8] - less * 10) << (8 * (k % 4));
        half[k / 8] = less;
    }
    out[i] = make_uint4(word[0], word[1], word[2], word[3]);
}
__device__ __forceinline__ unsigned four_digits(unsigned number) {
    const unsigned hundreds = number * 5243u >> 19;
    const unsigned pairs_there = hundreds | (number - hundreds * 100u) << 16, tens = pairs_there * 103u >> 10 & 0x000f000fu;
    return (tens | (pairs_there - tens * 10u) << 8) + ZEROS;
}
// Four digits at a time, by products with inverses.
__global__ void __launch_bounds__(256) texts_fours(const unsigned long long *__restrict__ amounts, uint4 *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const unsigned long long amount = amounts[i];
    const unsigned high = static_cast<unsigned>(amount / 100000000u), low = static_cast<unsigned>(amount) - high * 100000000u;
    const unsigned first = high / 10000u, third = low / 10000u;
    out[i] = make_uint4(four_digits(first), four_digits(high - first * 10000u), four_digits(third), four_digits(low - third * 10000u));
}

Study exported("amounts_as_text_by_long_remainders", "databases", 1 << 23, "8388608 amounts as sixteen digits of text",
    "a quotient and a remainder of 64 bits for each digit",
    {{"halves", "one quotient of 64 bits, then eight digits each in 32 bits", {"integer_arithmetic"}}, {"fours", "four digits at a time, by products with inverses", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned long long> amounts(n);
        for (long i = 0; i < n; i++) {
            const unsigned long long any = static_cast<unsigned long long>(pairs::hash(static_cast<unsigned>(i))) << 32 | pairs::hash(static_cast<unsigned>(i) ^ 0x5bd1e995u);
            amounts[i] = any % 10000000000000000ull >> (i % 13);
        }
        const unsigned long long *in = b.copy(amounts);
        uint4 *out = reinterpret_cast<uint4 *>(b.output<unsigned>(4 * n));
        b.tolerance = 0.0;
        return {{"flawed", launch(texts, n / 256, 256, 0, in, out)}, {"halves", launch(texts_halves, n / 256, 256, 0, in, out)}, {"fours", launch(texts_fours, n / 256, 256, 0, in, out)}};
    });

// --- two pictures of a radar ---

// One picture times the other's conjugate, two pixels a thread.
__global__ void __launch_bounds__(256) fringes(const float4 *__restrict__ first, const float4 *__restrict__ second, float4 *__restrict__ out, float scale) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float4 a = first[i], c = second[i];
    out[i] = make_float4(scale * (a.x * c.x + a.y * c.y), scale * (a.y * c.x - a.x * c.y), scale * (a.z * c.z + a.w * c.w), scale * (a.w * c.z - a.z * c.w));
}

Study radar("sound_radar_fringes_of_two_pictures", "radar", 4096, "fringes of two radar pictures of 4096 x 6144 complex pixels", "", {},
    [](Buffers &b, long n) -> Sides {
        const long pixels = n * 6144;
        const float4 *first = reinterpret_cast<const float4 *>(b.random<float>(2 * pixels)), *second = reinterpret_cast<const float4 *>(b.random<float>(2 * pixels));
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(2 * pixels));
        return {{"sound", launch(fringes, pixels / 512, 256, 0, first, second, out, 0.5f)}};
    });

}  // namespace
