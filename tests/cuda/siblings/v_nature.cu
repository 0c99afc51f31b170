// Soil, grains, hills, detectors, sites and stars.
#include "../pairs/pair.cuh"

namespace {

// --- warmth that goes down into the ground, hour by hour ---

constexpr int LAYERS = 128, HOURS = 1000;

// Near the freezing point most of the heat goes into ice or water.
__device__ __forceinline__ float after_an_hour(float own, float above, float below, float up, float down) {
    const float gain = up * (above - own) + down * (below - own);
    return own + gain * (0.25f + 0.75f * fminf(own * own, 1.0f));
}
__global__ void __launch_bounds__(LAYERS) soil_column(const float *__restrict__ start, const float *__restrict__ weather, const float *__restrict__ conducted, float *__restrict__ out) {
    __shared__ float air[HOURS], ground[2][LAYERS + 2];
    const int layer = threadIdx.x;
    const size_t at = static_cast<size_t>(blockIdx.x) * LAYERS + layer;
    for (int h = layer; h < HOURS; h += LAYERS) air[h] = weather[h];
    __syncthreads();
    float own = start[at];
    const float up = conducted[layer], down = layer + 1 < LAYERS ? conducted[layer + 1] : 0.0f;
    if (layer == 0) ground[0][LAYERS + 1] = ground[1][LAYERS + 1] = 0.0f;
    for (int h = 0; h < HOURS; h++) {
        float *now = ground[h % 2];
        now[layer + 1] = own;
        if (layer == 0) now[0] = air[h];
        __syncthreads();
        own = after_an_hour(own, now[layer], now[layer + 2], up, down);
    }
    out[at] = own;
}
// Four layers a lane.
template <int COLUMNS>
__global__ void __launch_bounds__(32 * COLUMNS) soil_column_warp(const float4 *__restrict__ start, const float *__restrict__ weather, const float *__restrict__ conducted, float4 *__restrict__ out) {
    __shared__ float air[HOURS];
    const int lane = threadIdx.x % 32;
    const size_t at = (static_cast<size_t>(blockIdx.x) * COLUMNS + threadIdx.x / 32) * 32 + lane;
    for (int h = threadIdx.x; h < HOURS; h += 32 * COLUMNS) air[h] = weather[h];
    __syncthreads();
    float4 own = start[at];
    const float4 up = reinterpret_cast<const float4 *>(conducted)[lane];
    const float last = lane < 31 ? conducted[4 * lane + 4] : 0.0f;
    for (int h = 0; h < HOURS; h++) {
        float above = __shfl_up_sync(~0u, own.w, 1);
        const float below = __shfl_down_sync(~0u, own.x, 1);
        if (lane == 0) above = air[h];
        const float4 old = own;
        own.x = after_an_hour(old.x, above, old.y, up.x, up.y);
        own.y = after_an_hour(old.y, old.x, old.z, up.y, up.z);
        own.z = after_an_hour(old.z, old.y, old.w, up.z, up.w);
        own.w = after_an_hour(old.w, old.z, below, up.w, last);
    }
    out[at] = own;
}

Study soils("soil_columns_meet_every_hour", "geophysics", 2048, "the warmth of 2048 columns of soil, 128 layers each, over 1000 hours",
    "a block of 128 threads a column meets at a barrier in every hour",
    {{"warp_alone", "a warp a column, four layers a lane, shuffles", {"barriers"}}, {"warps", "the same, four columns a block", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> air(HOURS), share(LAYERS);
        for (int h = 0; h < HOURS; h++) air[h] = static_cast<float>((h % 24 < 12 ? h % 24 : 24 - h % 24) - 6) + static_cast<float>(h % 200) / 40.0f;
        for (int l = 0; l < LAYERS; l++) share[l] = 0.1f + 0.2f * static_cast<float>(hash(static_cast<unsigned>(l)) % 100) / 100.0f;
        const float *start = b.random<float>(n * LAYERS, -4.0, 8.0), *weather = b.copy(air), *conducted = b.copy(share);
        float *out = b.output<float>(n * LAYERS);
        const auto *quads = reinterpret_cast<const float4 *>(start);
        auto *quads_out = reinterpret_cast<float4 *>(out);
        return {{"flawed", launch(soil_column, n, LAYERS, 0, start, weather, conducted, out)}, {"warp_alone", launch(soil_column_warp<1>, n, 32, 0, quads, weather, conducted, quads_out)},
            {"warps", launch(soil_column_warp<4>, n / 4, 128, 0, quads, weather, conducted, quads_out)}};
    });

// --- how hard grains press and rub that may touch ---

constexpr int GRAINS = 1 << 19;

struct Heap {
    const float4 *places;  // x, y, z, size
    const float4 *motions;  // velocity, mass
    const float4 *spins;  // spin, stiffness
};
__device__ __forceinline__ float3 between(float4 a, float4 b) { return make_float3(b.x - a.x, b.y - a.y, b.z - a.z); }
__device__ __forceinline__ float scalar(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ __forceinline__ float reach(float4 grain) { return 0.15f + 0.1f * grain.w; }
// Pressure along the line of the centres, and how fast the surfaces slide.
__device__ __forceinline__ float2 pressed(float overlap, float3 apart, float distance, float4 moving, float4 other, float4 turning, float4 turned) {
    const float3 speed = between(moving, other);
    const float closing = scalar(speed, apart) / distance;
    const float stiff = (2.0f + turning.w) * (2.0f + turned.w) / (4.0f + turning.w + turned.w), mass = (2.0f + moving.w) * (2.0f + other.w) / (4.0f + moving.w + other.w);
    const float sx = turning.x + turned.x, sy = turning.y + turned.y, sz = turning.z + turned.z;
    const float turn = scalar(make_float3(sy * apart.z - sz * apart.y, sz * apart.x - sx * apart.z, sx * apart.y - sy * apart.x), speed);
    return make_float2(overlap * (stiff - 0.2f * mass * closing), overlap * (fabsf(turn) * 0.5f + fabsf(closing)));
}
__global__ void __launch_bounds__(128) grain_contacts(const int2 *__restrict__ candidates, Heap heap, float2 *__restrict__ out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const int2 pair = candidates[i];
    const float4 place = heap.places[pair.x], there = heap.places[pair.y];
    const float4 moving = heap.motions[pair.x], other = heap.motions[pair.y];
    const float4 turning = heap.spins[pair.x], turned = heap.spins[pair.y];
    const float3 apart = between(place, there);
    const float distance = sqrtf(scalar(apart, apart)) + 1e-6f, overlap = reach(place) + reach(there) - distance;
    out[i] = pressed(fmaxf(overlap, 0.0f), apart, distance, moving, other, turning, turned);
}
__global__ void __launch_bounds__(128) grain_contacts_near(const int2 *__restrict__ candidates, Heap heap, float2 *__restrict__ out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const int2 pair = candidates[i];
    const float4 place = heap.places[pair.x], there = heap.places[pair.y];
    const float3 apart = between(place, there);
    const float distance = sqrtf(scalar(apart, apart)) + 1e-6f, overlap = reach(place) + reach(there) - distance;
    float2 found = make_float2(0.0f, 0.0f);
    if (overlap > 0.0f) found = pressed(overlap, apart, distance, heap.motions[pair.x], heap.motions[pair.y], heap.spins[pair.x], heap.spins[pair.y]);
    out[i] = found;
}

Study contacts("grain_contacts_all_loaded_before_the_distance", "mechanics", 1 << 22, "how hard 4194304 pairs of 524288 grains press and rub, of which one in six touches",
    "places, motions and spins of both grains are read before it is known whether they touch",
    {{"near", "motions and spins of those that touch only", {"redundant_loads", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int2> pairs(n);
        for (long i = 0; i < n; i++) {
            const unsigned first = hash(static_cast<unsigned>(i)) % GRAINS, step = 1 + hash(static_cast<unsigned>(i) + 99u) % 8000;
            pairs[i] = make_int2(static_cast<int>(first), static_cast<int>((first + step) % GRAINS));
        }
        auto quads = [&](double low) { return reinterpret_cast<const float4 *>(b.random<float>(4L * GRAINS, low, 1.0)); };
        const Heap heap{quads(0.0), quads(-1.0), quads(-1.0)};
        const int2 *candidates = b.copy(pairs);
        float *out = b.output<float>(2 * n);
        auto *found = reinterpret_cast<float2 *>(out);
        const int count = static_cast<int>(n);
        return {{"flawed", launch(grain_contacts, blocks(n, 128), 128, 0, candidates, heap, found, count)}, {"near", launch(grain_contacts_near, blocks(n, 128), 128, 0, candidates, heap, found, count)}};
    });

// --- how high the hills to the north stand against the sky ---

constexpr int MAP = 6144, SIGHT = 24;

// Heights have SIGHT rows more in the north; slopes in 1/65536.
__global__ void __launch_bounds__(256) horizon(const short *__restrict__ heights, int *__restrict__ out) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const short *here = heights + static_cast<size_t>(y + SIGHT) * MAP + x;
    int steepest = 0;
    for (int k = 1; k <= SIGHT; ++k) steepest = max(steepest, (here[-k * MAP] - here[0]) * (65536 / k));
    out[static_cast<size_t>(y) * MAP + x] = steepest;
}
// 64 rows, and what can be seen from them.
__global__ void __launch_bounds__(256) horizon_tile(const short *__restrict__ heights, int *__restrict__ out) {
    __shared__ short seen[64 + SIGHT][32];
    const int x = blockIdx.x * 32 + threadIdx.x, top = blockIdx.y * 64;
    for (int r = threadIdx.y; r < 64 + SIGHT; r += 8) seen[r][threadIdx.x] = heights[static_cast<size_t>(top + r) * MAP + x];
    __syncthreads();
    for (int r = threadIdx.y; r < 64; r += 8) {
        const int own = seen[r + SIGHT][threadIdx.x];
        int steepest = 0;
#pragma unroll
        for (int k = 1; k <= SIGHT; ++k) steepest = max(steepest, (seen[r + SIGHT - k][threadIdx.x] - own) * (65536 / k));
        out[static_cast<size_t>(top + r) * MAP + x] = steepest;
    }
}
// Eight rows a thread.
__global__ void __launch_bounds__(128) horizon_eight(const short *__restrict__ heights, int *__restrict__ out) {
    const int x = blockIdx.x * 32 + threadIdx.x, top = (blockIdx.y * 4 + threadIdx.y) * 8;
    const short *first = heights + static_cast<size_t>(top) * MAP + x;
    int seen[8 + SIGHT];
#pragma unroll
    for (int r = 0; r < 8 + SIGHT; ++r) seen[r] = first[r * MAP];
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        int steepest = 0;
#pragma unroll
        for (int k = 1; k <= SIGHT; ++k) steepest = max(steepest, (seen[r + SIGHT - k] - seen[r + SIGHT]) * (65536 / k));
        out[static_cast<size_t>(top + r) * MAP + x] = steepest;
    }
}

Study horizons("horizon_24_points_north", "geography", 4096, "the steepest view to 24 points in the north, of each of 6144 x 4096 heights",
    "25 loads a point: each height is loaded again by all who see it",
    {{"tile", "64 rows and what they see in shared memory", {"redundant_loads"}}, {"eight", "eight rows a thread: 32 loads for eight points", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<short> ground((n + SIGHT) * MAP);
        for (size_t i = 0; i < ground.size(); i++) ground[i] = static_cast<short>(1500 + (i / MAP * 7 + i % MAP * 3) % 900 + hash(static_cast<unsigned>(i)) % 50);
        const short *heights = b.copy(ground);
        int *out = b.output<int>(n * MAP);
        b.tolerance = 0.0;
        const unsigned rows = static_cast<unsigned>(n);
        return {{"flawed", launch(horizon, dim3(MAP / 32, rows / 8), dim3(32, 8), 0, heights, out)}, {"tile", launch(horizon_tile, dim3(MAP / 32, rows / 64), dim3(32, 8), 0, heights, out)},
            {"eight", launch(horizon_eight, dim3(MAP / 32, rows / 32), dim3(32, 4), 0, heights, out)}};
    });

// --- lines of a detector, evened out and stretched around what stands out of the background ---

constexpr int CELLS = 2048;

// A cell's own gain; bright cells answer too weakly.
__device__ __forceinline__ float evened(unsigned count, float gain) {
    const float seen = static_cast<float>(count) * gain;
    return __fdividef(seen, 1.0f - 0.002f * seen);
}
__device__ __forceinline__ float least_of_block(float x, float *warps) {
    for (int step = 16; step; step /= 2) x = fminf(x, __shfl_xor_sync(~0u, x, step));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
    __syncthreads();
    return fminf(fminf(warps[0], warps[1]), fminf(warps[2], warps[3]));
}
__device__ __forceinline__ float total_of_block(float x, float *warps) {
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
    __syncthreads();
    return warps[0] + warps[1] + warps[2] + warps[3];
}
__device__ __forceinline__ unsigned stretched(float above, float scale) { return static_cast<unsigned>(fminf(above * scale, 255.0f)); }
__device__ __forceinline__ float scale_of(float total) { return 100.0f * CELLS / (total + 1.0f); }

__global__ void __launch_bounds__(128) stretch_line(const unsigned char *lines, const float *gains, unsigned char *out, int cells) {
    __shared__ float warps[2][4];
    const unsigned char *own = lines + static_cast<size_t>(blockIdx.x) * cells;
    float least = 1e30f, total = 0.0f;
    for (int c = threadIdx.x; c < cells; c += 128) least = fminf(least, evened(own[c], gains[c]));
    least = least_of_block(least, warps[0]);
    for (int c = threadIdx.x; c < cells; c += 128) total += evened(own[c], gains[c]) - least;
    const float scale = scale_of(total_of_block(total, warps[1]));
    for (int c = threadIdx.x; c < cells; c += 128) out[static_cast<size_t>(blockIdx.x) * cells + c] = static_cast<unsigned char>(stretched(evened(own[c], gains[c]) - least, scale));
}
// Sixteen cells a thread, kept.
__global__ void __launch_bounds__(128) stretch_line_kept(const unsigned char *lines, const float *gains, unsigned char *out) {
    __shared__ float warps[2][4];
    const size_t first = static_cast<size_t>(blockIdx.x) * CELLS + threadIdx.x;
    float value[CELLS / 128], least = 1e30f, total = 0.0f;
#pragma unroll
    for (int k = 0; k < CELLS / 128; ++k) {
        value[k] = evened(lines[first + 128 * k], gains[threadIdx.x + 128 * k]);
        least = fminf(least, value[k]);
    }
    least = least_of_block(least, warps[0]);
#pragma unroll
    for (int k = 0; k < CELLS / 128; ++k) total += value[k] -= least;
    const float scale = scale_of(total_of_block(total, warps[1]));
#pragma unroll
    for (int k = 0; k < CELLS / 128; ++k) out[first + 128 * k] = static_cast<unsigned char>(stretched(value[k], scale));
}
// Sixteen cells that lie together.
__global__ void __launch_bounds__(128) stretch_line_wide(const uint4 *lines, const float4 *gains, uint4 *out) {
    __shared__ float warps[2][4];
    const size_t at = static_cast<size_t>(blockIdx.x) * (CELLS / 16) + threadIdx.x;
    const uint4 read = lines[at];
    unsigned word[4] = {read.x, read.y, read.z, read.w};
    float value[16], least = 1e30f, total = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const float4 gain = gains[threadIdx.x * 4 + k];
        value[4 * k] = evened(word[k] & 255, gain.x), value[4 * k + 1] = evened(word[k] >> 8 & 255, gain.y);
        value[4 * k + 2] = evened(word[k] >> 16 & 255, gain.z), value[4 * k + 3] = evened(word[k] >> 24, gain.w);
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) least = fminf(least, value[k]);
    least = least_of_block(least, warps[0]);
#pragma unroll
    for (int k = 0; k < 16; ++k) total += value[k] -= least;
    const float scale = scale_of(total_of_block(total, warps[1]));
#pragma unroll
    for (int k = 0; k < 4; ++k)
        word[k] = stretched(value[4 * k], scale) | stretched(value[4 * k + 1], scale) << 8 | stretched(value[4 * k + 2], scale) << 16 | stretched(value[4 * k + 3], scale) << 24;
    out[at] = make_uint4(word[0], word[1], word[2], word[3]);
}

Study stretched_lines("detector_lines_stretched_three_reads", "physics", 32768, "32768 lines of 2048 cells of a detector, evened out and stretched above their background",
    "cells and gains are read for the background, again for the sum and again for the result, one a time",
    {{"kept", "read once, sixteen values a thread kept in registers", {"redundant_loads"}}, {"wide", "read once by 16-byte accesses, kept in registers", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *lines = b.random<unsigned char>(n * CELLS, 20, 200);
        const float *gains = b.random<float>(CELLS, 0.8, 1.2);
        unsigned char *out = b.output<unsigned char>(n * CELLS);
        b.tolerance = 5e-3;  // a step of the result
        return {{"flawed", launch(stretch_line, n, 128, 0, lines, gains, out, CELLS)}, {"kept", launch(stretch_line_kept, n, 128, 0, lines, gains, out)},
            {"wide", launch(stretch_line_wide, n, 128, 0, reinterpret_cast<const uint4 *>(lines), reinterpret_cast<const float4 *>(gains), reinterpret_cast<uint4 *>(out))}};
    });

// --- in how many of the 128 visits to a site each of 32 species was seen ---

constexpr int VISITS = 128;

// A warp a site, a lane a species.
__global__ void __launch_bounds__(192) species_seen(const unsigned *__restrict__ visits, int *__restrict__ seen, int sites) {
    const int site = blockIdx.x * 6 + threadIdx.y, species = threadIdx.x;
    if (site >= sites) return;
    const unsigned *own = visits + static_cast<size_t>(site) * VISITS;
    int count = 0;
    for (int v = 0; v < VISITS; v++) count += own[v] >> species & 1;
    seen[site * 32 + species] = count;
}
// Lane l gets bit l of the words of all lanes.
__device__ __forceinline__ unsigned turned_over(unsigned x, int lane) {
    unsigned keep = 0x0000ffffu;
#pragma unroll
    for (int step = 16; step; step >>= 1) {
        const unsigned other = __shfl_xor_sync(~0u, x, step);
        x = lane & step ? (other >> step & keep) | (x & ~keep) : (x & keep) | (other & keep) << step;
        keep ^= keep << (step >> 1);
    }
    return x;
}
__global__ void __launch_bounds__(192) species_seen_turned(const uint4 *__restrict__ visits, int *__restrict__ seen, int sites) {
    const int site = blockIdx.x * 6 + threadIdx.y, lane = threadIdx.x;
    if (site >= sites) return;
    const uint4 own = visits[static_cast<size_t>(site) * (VISITS / 4) + lane];
    seen[site * 32 + lane] = __popc(turned_over(own.x, lane)) + __popc(turned_over(own.y, lane)) + __popc(turned_over(own.z, lane)) + __popc(turned_over(own.w, lane));
}
// A lane's four visits are added first: digits of one, two and four.
__global__ void __launch_bounds__(192) species_seen_added(const uint4 *__restrict__ visits, int *__restrict__ seen, int sites) {
    const int site = blockIdx.x * 6 + threadIdx.y, lane = threadIdx.x;
    if (site >= sites) return;
    const uint4 own = visits[static_cast<size_t>(site) * (VISITS / 4) + lane];
    const unsigned odd = own.x ^ own.y ^ own.z, carry = (own.x & own.y) | (own.z & (own.x ^ own.y)), ones = odd ^ own.w, second = odd & own.w;
    const unsigned twos = carry ^ second, fours = carry & second;
    seen[site * 32 + lane] = __popc(turned_over(ones, lane)) + 2 * __popc(turned_over(twos, lane)) + 4 * __popc(turned_over(fours, lane));
}

Study species("species_counted_visit_by_visit", "ecology", 1 << 18, "how often each of 32 species was seen in 128 visits to each of 262144 sites",
    "each of the 32 lanes reads all 128 words of its site for one bit of each",
    {{"turned", "a lane reads four words, bits change places between lanes", {"redundant_loads"}}, {"added", "the same after a lane's four words were added bit by bit", {"redundant_loads", "integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *visits = b.random<unsigned>(n * VISITS, 0, 4294967295.0);
        int *seen = b.output<int>(n * 32);
        b.tolerance = 0.0;
        const int sites = static_cast<int>(n);
        const auto *fours = reinterpret_cast<const uint4 *>(visits);
        return {{"flawed", launch(species_seen, blocks(n, 6), dim3(32, 6), 0, visits, seen, sites)}, {"turned", launch(species_seen_turned, blocks(n, 6), dim3(32, 6), 0, fours, seen, sites)},
            {"added", launch(species_seen_added, blocks(n, 6), dim3(32, 6), 0, fours, seen, sites)}};
    });

// --- light and brightest point of stars, within a circle of 16 pixels ---

constexpr int PLATE = 4096, APERTURE = 16;

__device__ __forceinline__ bool in_circle(int i, int j) {
    const int x = 2 * i - (APERTURE - 1), y = 2 * j - (APERTURE - 1);
    return x * x + y * y <= APERTURE * APERTURE;
}
__global__ void __launch_bounds__(128) star_light(const unsigned short *__restrict__ plate, const short2 *__restrict__ corners, int2 *__restrict__ out, int stars) {
    const int star = blockIdx.x * 128 + threadIdx.x;
    if (star >= stars) return;
    const short2 corner = corners[star];
    int light = 0, peak = 0;
    for (int j = 0; j < APERTURE; ++j) {
        const unsigned short *row = plate + (corner.y + j) * PLATE + corner.x;
        for (int i = 0; i < APERTURE; ++i) {
            if (!in_circle(i, j)) continue;
            const int pixel = row[i];
            light += pixel;
            peak = max(peak, pixel);
        }
    }
    out[star] = make_int2(light, peak);
}
// A lane a column; with 32 lanes a star, two rows at a time.
template <int LANES>
__global__ void __launch_bounds__(128) star_light_columns(const unsigned short *__restrict__ plate, const short2 *__restrict__ corners, int2 *__restrict__ out, int stars) {
    const int star = (blockIdx.x * 128 + threadIdx.x) / LANES, i = threadIdx.x % APERTURE, first = threadIdx.x % LANES / APERTURE;
    if (star >= stars) return;
    const short2 corner = corners[star];
    const unsigned short *column = plate + corner.y * PLATE + corner.x + i;
    int light = 0, peak = 0;
#pragma unroll
    for (int k = 0; k < APERTURE * APERTURE / LANES; ++k) {
        const int j = k * (LANES / APERTURE) + first, pixel = in_circle(i, j) ? column[j * PLATE] : 0;
        light += pixel;
        peak = max(peak, pixel);
    }
#pragma unroll
    for (int step = LANES / 2; step; step /= 2) {
        light += __shfl_xor_sync(~0u, light, step);
        peak = max(peak, __shfl_xor_sync(~0u, peak, step));
    }
    if (threadIdx.x % LANES == 0) out[star] = make_int2(light, peak);
}

Study stars("aperture_light_thread_per_star", "astronomy", 1 << 17, "light and brightest point of 131072 stars, within circles of 16 pixels on a plate of 4096 x 4096",
    "a thread walks through the circle of its star: each load of a warp goes to 32 places",
    {{"sixteen", "16 lanes a star, side by side in a row", {"uncoalesced_access", "memory_latency"}}, {"warp", "32 lanes a star, two rows at a time", {"uncoalesced_access", "memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> words(static_cast<size_t>(PLATE) * PLATE / 2);
        for (size_t i = 0; i < words.size(); i++) words[i] = hash(static_cast<unsigned>(i)) & 0x3fff3fffu;
        std::vector<short2> places(n);
        for (long i = 0; i < n; i++) places[i] = make_short2(static_cast<short>(hash(static_cast<unsigned>(2 * i)) % (PLATE - APERTURE)), static_cast<short>(hash(static_cast<unsigned>(2 * i + 1)) % (PLATE - APERTURE)));
        const auto *plate = reinterpret_cast<const unsigned short *>(b.copy(words));
        const short2 *corners = b.copy(places);
        auto *out = reinterpret_cast<int2 *>(b.output<int>(2 * n));
        b.tolerance = 0.0;
        const int count = static_cast<int>(n);
        return {{"flawed", launch(star_light, blocks(n, 128), 128, 0, plate, corners, out, count)}, {"sixteen", launch(star_light_columns<16>, blocks(n, 8), 128, 0, plate, corners, out, count)},
            {"warp", launch(star_light_columns<32>, blocks(n, 4), 128, 0, plate, corners, out, count)}};
    });

}  // namespace
