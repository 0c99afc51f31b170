// Stars, sounds, networks and atoms. Each kernel has one weakness and two ways out.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../pairs/pair.cuh"

namespace {

// --- light of stars: sums over the pixels of a circle, less the mean of a ring around it ---

constexpr int PICTURE = 4096, REACH = 10, BOX = 2 * REACH + 1;
constexpr float INNER = 5.5f, RING_FROM = 7.5f, RING_TO = 10.f;

struct Light {
    float circle, pixels, ring, ring_pixels;
};

// A pixel's share of the four sums.
__device__ __forceinline__ void add_pixel(Light &light, const float *picture, float2 star, int k) {
    const int x = static_cast<int>(star.x) - REACH + k % BOX, y = static_cast<int>(star.y) - REACH + k / BOX;
    const float dx = x - star.x, dy = y - star.y, far = __fmaf_rn(dx, dx, __fmul_rn(dy, dy));
    const float value = picture[y * PICTURE + x];
    if (far < INNER * INNER) light.circle += value, light.pixels += 1.f;
    else if (far > RING_FROM * RING_FROM && far < RING_TO * RING_TO) light.ring += value, light.ring_pixels += 1.f;
}
__device__ __forceinline__ float2 outcome(const Light &light) {
    const float sky = light.ring / light.ring_pixels;
    return make_float2(light.circle - light.pixels * sky, sky);
}
__device__ __forceinline__ Light of_warp(const Light &light) { return {warp_sum(light.circle), warp_sum(light.pixels), warp_sum(light.ring), warp_sum(light.ring_pixels)}; }

__global__ void __launch_bounds__(512) measure_stars(const float *__restrict__ picture, const float2 *__restrict__ stars, float2 *__restrict__ out) {
    __shared__ float circle[512], pixels[512], ring[512], ring_pixels[512];
    const int t = threadIdx.x;
    Light light{0.f, 0.f, 0.f, 0.f};
    if (t < BOX * BOX) add_pixel(light, picture, stars[blockIdx.x], t);
    circle[t] = light.circle, pixels[t] = light.pixels, ring[t] = light.ring, ring_pixels[t] = light.ring_pixels;
    __syncthreads();
    for (int half = 256; half > 0; half /= 2) {
        if (t < half) circle[t] += circle[t + half], pixels[t] += pixels[t + half], ring[t] += ring[t + half], ring_pixels[t] += ring_pixels[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = outcome({circle[0], pixels[0], ring[0], ring_pixels[0]});
}
// A warp for each star.
__global__ void __launch_bounds__(256) measure_stars_warp(const float *__restrict__ picture, const float2 *__restrict__ stars, float2 *__restrict__ out) {
    const int which = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    const float2 star = stars[which];
    Light light{0.f, 0.f, 0.f, 0.f};
#pragma unroll
    for (int k = 0; k < BOX * BOX / 32; ++k) add_pixel(light, picture, star, k * 32 + lane);
    if (lane < BOX * BOX % 32) add_pixel(light, picture, star, BOX * BOX / 32 * 32 + lane);
    light = of_warp(light);
    if (lane == 0) out[which] = outcome(light);
}
// Blocks of 128, several pixels a thread; one barrier between the warps' sums and that of the block.
__global__ void __launch_bounds__(128) measure_stars_four(const float *__restrict__ picture, const float2 *__restrict__ stars, float2 *__restrict__ out) {
    __shared__ Light warps[4];
    const float2 star = stars[blockIdx.x];
    Light light{0.f, 0.f, 0.f, 0.f};
#pragma unroll
    for (int k = threadIdx.x; k < BOX * BOX; k += 128) add_pixel(light, picture, star, k);
    light = of_warp(light);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = light;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < 4; ++warp)
            light.circle += warps[warp].circle, light.pixels += warps[warp].pixels, light.ring += warps[warp].ring, light.ring_pixels += warps[warp].ring_pixels;
        out[blockIdx.x] = outcome(light);
    }
}

Study photometry("star_light_tree_of_512_for_each_star", "astronomy", 65536, "light of 65536 stars in a picture of 4096 x 4096 pixels: a circle less the mean of a ring around it",
    "a pixel a thread, then a tree over 512 threads in shared memory: nine steps, a barrier after each",
    {{"warp", "a warp for each star, sums by shuffles", {"barriers", "idle_threads"}}, {"four", "blocks of 128, four pixels a thread, shuffles and one barrier", {"barriers", "idle_threads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float2> star(n);
        for (long i = 0; i < n; ++i) {
            const unsigned h = hash(static_cast<unsigned>(i)), g = hash(h);
            star[i] = make_float2(16.f + static_cast<float>(h >> 8) * (4064.f / 16777216.f), 16.f + static_cast<float>(g >> 8) * (4064.f / 16777216.f));
        }
        const float *picture = b.random<float>(static_cast<size_t>(PICTURE) * PICTURE, 0.0, 1.0);
        const float2 *stars = b.copy(star);
        float2 *out = reinterpret_cast<float2 *>(b.output<float>(2 * n));
        const unsigned many = static_cast<unsigned>(n);
        return {{"flawed", launch(measure_stars, many, 512, 0, picture, stars, out)}, {"warp", launch(measure_stars_warp, many / 8, 256, 0, picture, stars, out)},
            {"four", launch(measure_stars_four, many, 128, 0, picture, stars, out)}};
    });

// --- sound from partials: frames of 256 samples, each with 64 sines whose levels are given in decibels ---

constexpr int PARTIALS = 64, FRAME = 256;
constexpr float TURN = 6.2831853f;

struct Partial {
    float level, turns, start;  // decibels, turns a sample, turns at the first sample
};

__global__ void __launch_bounds__(FRAME) add_partials(const Partial *__restrict__ partials, float *__restrict__ sound) {
    const int t = threadIdx.x;
    float sum = 0.f;
    for (int k = 0; k < PARTIALS; ++k) {
        const Partial p = partials[blockIdx.x * PARTIALS + k];
        sum += powf(10.f, p.level / 20.f) * sinf(TURN * fmaf(p.turns, static_cast<float>(t), p.start));
    }
    sound[blockIdx.x * FRAME + t] = sum;
}
// The block's levels become amplitudes once; whole turns are dropped before a fast sine.
__global__ void __launch_bounds__(FRAME) add_partials_once(const Partial *__restrict__ partials, float *__restrict__ sound) {
    __shared__ float4 held[PARTIALS];
    const int t = threadIdx.x;
    if (t < PARTIALS) {
        const Partial p = partials[blockIdx.x * PARTIALS + t];
        held[t] = make_float4(powf(10.f, p.level / 20.f), p.turns, p.start, 0.f);
    }
    __syncthreads();
    float sum = 0.f;
#pragma unroll 8
    for (int k = 0; k < PARTIALS; ++k) {
        const float4 p = held[k];
        const float turns = fmaf(p.y, static_cast<float>(t), p.z);
        sum += p.x * __sinf(TURN * (turns - rintf(turns)));
    }
    sound[blockIdx.x * FRAME + t] = sum;
}
// As it was, by powers of two and sines of half turns.
__global__ void __launch_bounds__(FRAME) add_partials_half_turns(const Partial *__restrict__ partials, float *__restrict__ sound) {
    const int t = threadIdx.x;
    float sum = 0.f;
#pragma unroll 4
    for (int k = 0; k < PARTIALS; ++k) {
        const Partial p = partials[blockIdx.x * PARTIALS + k];
        sum += exp2f(p.level * 0.16609640f) * sinpif(2.f * fmaf(p.turns, static_cast<float>(t), p.start));
    }
    sound[blockIdx.x * FRAME + t] = sum;
}

Study additive("partial_levels_by_a_power_for_each_sample", "audio", 12288, "sound of 12288 frames of 256 samples from 64 partials each, levels in decibels",
    "for each partial of each sample a level is turned into an amplitude by a power, and a precise sine taken",
    {{"once", "amplitudes once for a frame, in shared memory, and fast sines of less than a turn", {"expensive_math", "redundant_loads"}},
        {"half_turns", "powers of two and sines of half turns", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> partial(3 * n * PARTIALS);
        for (long i = 0; i < n * PARTIALS; ++i) {
            const unsigned h = hash(static_cast<unsigned>(i)), g = hash(h);
            partial[3 * i] = -48.f * static_cast<float>(h >> 16) / 65536.f;
            partial[3 * i + 1] = 0.002f + 0.4f * static_cast<float>(g >> 16) / 65536.f;
            partial[3 * i + 2] = static_cast<float>(g & 0xffff) / 65536.f;
        }
        const Partial *partials = reinterpret_cast<const Partial *>(b.copy(partial));
        float *sound = b.output<float>(n * FRAME);
        const unsigned many = static_cast<unsigned>(n);
        b.tolerance = 5e-4;
        return {{"flawed", launch(add_partials, many, FRAME, 0, partials, sound)}, {"once", launch(add_partials_once, many, FRAME, 0, partials, sound)},
            {"half_turns", launch(add_partials_half_turns, many, FRAME, 0, partials, sound)}};
    });

// --- betweenness: what the vertices of a level pass back to those one level higher, along edges sorted by their sources ---

struct Network {
    const int *sources, *targets, *depths;
    const float *paths, *passed;  // numbers of shortest paths, what the deeper level has gathered
    int level;
};

__device__ __forceinline__ float passed_back(const Network &net, int source, int target) {
    if (net.depths[source] != net.level || net.depths[target] != net.level + 1) return 0.f;
    return net.paths[source] / net.paths[target] * (1.f + net.passed[target]);
}

__global__ void __launch_bounds__(256) pass_back(Network net, float *gathered, int edges) {
    const int edge = blockIdx.x * 256 + threadIdx.x;
    if (edge >= edges) return;
    const int source = net.sources[edge], target = net.targets[edge];
    if (net.depths[source] == net.level && net.depths[target] == net.level + 1)
        atomicAdd(gathered + source, net.paths[source] / net.paths[target] * (1.f + net.passed[target]));
}
// Lanes of a warp with edges of the same source add up first.
__global__ void __launch_bounds__(256) pass_back_segments(Network net, float *gathered, int edges) {
    const int edge = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32;
    const int source = edge < edges ? net.sources[edge] : -1;
    float share = edge < edges ? passed_back(net, source, net.targets[edge]) : 0.f;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const float behind = __shfl_down_sync(~0u, share, step);
        const int other = __shfl_down_sync(~0u, source, step);
        if (lane + step < 32 && other == source) share += behind;
    }
    const int before = __shfl_up_sync(~0u, source, 1);
    if ((lane == 0 || before != source) && share != 0.f) atomicAdd(gathered + source, share);
}
// A thread takes eight edges and adds where the source changes.
__global__ void __launch_bounds__(256) pass_back_eight(Network net, float *gathered, int edges) {
    const int first = (blockIdx.x * 256 + threadIdx.x) * 8;
    if (first >= edges) return;
    const int4 *s = reinterpret_cast<const int4 *>(net.sources + first), *t = reinterpret_cast<const int4 *>(net.targets + first);
    const int4 s0 = s[0], s1 = s[1], t0 = t[0], t1 = t[1];
    const int source[8] = {s0.x, s0.y, s0.z, s0.w, s1.x, s1.y, s1.z, s1.w}, target[8] = {t0.x, t0.y, t0.z, t0.w, t1.x, t1.y, t1.z, t1.w};
    float share[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) share[k] = passed_back(net, source[k], target[k]);
    float sum = share[0];
#pragma unroll
    for (int k = 1; k < 8; ++k) {
        if (source[k] != source[k - 1]) {
            if (sum != 0.f) atomicAdd(gathered + source[k - 1], sum);
            sum = 0.f;
        }
        sum += share[k];
    }
    if (sum != 0.f) atomicAdd(gathered + source[7], sum);
}

Study betweenness("betweenness_passed_back_edge_by_edge", "graph analytics", 1 << 24, "what 524288 vertices pass back in a search for betweenness, 16777216 edges, half of them of 256 hubs",
    "a thread for each edge: an atomic for each, though edges are sorted by what they add to",
    {{"segments", "lanes of a warp with the same source add up first", {"global_atomics"}}, {"eight", "eight edges a thread, an atomic where the source changes", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int vertices = 1 << 19, of_a_hub = static_cast<int>(n / 2 / 256), of_others = static_cast<int>(n / 2 / (vertices - 256)), step = vertices / 256;
        std::vector<int> source, depth(vertices);
        source.reserve(n);
        for (int v = 0; v < vertices; ++v) {
            const bool hub = v % step == 7;
            const int count = hub ? of_a_hub : of_others + static_cast<int>(hash(static_cast<unsigned>(v)) & 1);
            for (int k = 0; k < count && static_cast<long>(source.size()) < n; ++k) source.push_back(v);
            const unsigned h = hash(static_cast<unsigned>(v) + 77u) % 10;
            depth[v] = hub || h < 4 ? 5 : h < 9 ? 6 : 4;
        }
        while (static_cast<long>(source.size()) < n) source.push_back(vertices - 1);
        const int *sources = b.copy(source), *targets = b.random<int>(n, 0, vertices), *depths = b.copy(depth);
        const Network net{sources, targets, depths, b.random<float>(vertices, 1.0, 9.0), b.random<float>(vertices, 0.0, 4.0), 5};
        float *gathered = b.output<float>(vertices, true);
        const int edges = static_cast<int>(n);
        return {{"flawed", launch(pass_back, blocks(n, 256), 256, 0, net, gathered, edges)}, {"segments", launch(pass_back_segments, blocks(n, 256), 256, 0, net, gathered, edges)},
            {"eight", launch(pass_back_eight, blocks(n, 2048), 256, 0, net, gathered, edges)}};
    });

// --- forces between atoms that no bonds exclude: 64 neighbours each ---

constexpr int EDGE = 64, NEIGHBOURS = 64, EXCLUDED = 10;

// Adds force and energy of a pair: charges and a wall of the twelfth power.
__device__ __forceinline__ void add_pair(float4 &sum, const float4 &own, const float4 &other) {
    const float dx = own.x - other.x, dy = own.y - other.y, dz = own.z - other.z, inverse = rsqrtf(dx * dx + dy * dy + dz * dz);
    const float square = inverse * inverse, six = square * square * square, charges = own.w * other.w * inverse, wall = 0.01f * six * six;
    const float force = (charges + 12.f * wall) * square;
    sum.x += force * dx, sum.y += force * dy, sum.z += force * dz, sum.w += charges + wall;
}

__global__ void __launch_bounds__(128) pair_forces(const float4 *__restrict__ atoms, const int *__restrict__ neighbours, const int *__restrict__ excluded, const int *__restrict__ counts,
    float4 *__restrict__ forces, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const float4 own = atoms[i];
    const int without = counts[i];
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
    for (int k = 0; k < NEIGHBOURS; ++k) {
        const int j = neighbours[k * count + i];
        bool bonded = false;
        for (int m = 0; m < without; ++m)
            if (excluded[i * EXCLUDED + m] == j) {
                bonded = true;
                break;
            }
        if (!bonded) add_pair(sum, own, atoms[j]);
    }
    forces[i] = sum;
}
// Excluded atoms are at most 31 numbers away: a bit for each, made once.
__global__ void __launch_bounds__(128) pair_forces_bits(const float4 *__restrict__ atoms, const int *__restrict__ neighbours, const int *__restrict__ excluded, const int *__restrict__ counts,
    float4 *__restrict__ forces, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const float4 own = atoms[i];
    const int without = counts[i];
    unsigned long long bits = 0;
    for (int m = 0; m < without; ++m) bits |= 1ull << (excluded[i * EXCLUDED + m] - i + 32);
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 4
    for (int k = 0; k < NEIGHBOURS; ++k) {
        const int j = neighbours[k * count + i];
        const unsigned away = static_cast<unsigned>(j - i + 32);
        if (away >= 64u || !(bits >> away & 1ull)) add_pair(sum, own, atoms[j]);
    }
    forces[i] = sum;
}
// The list itself says which neighbours are excluded, by its highest bit.
__global__ void __launch_bounds__(128) pair_forces_marked(const float4 *__restrict__ atoms, const int *__restrict__ marked, float4 *__restrict__ forces, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const float4 own = atoms[i];
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 4
    for (int k = 0; k < NEIGHBOURS; ++k) {
        const int j = marked[k * count + i];
        if (j >= 0) add_pair(sum, own, atoms[j]);
    }
    forces[i] = sum;
}

Study exclusions("pair_exclusions_walked_for_each_neighbour", "molecular dynamics", EDGE *EDGE *EDGE, "forces on 262144 atoms, 64 neighbours each, without pairs that bonds exclude",
    "an atom's list of excluded atoms is walked again for each of its neighbours",
    {{"bits", "excluded atoms as bits of a long word, made once for an atom", {"redundant_loads", "branch_divergence"}},
        {"marked", "neighbours marked in the list when it is built", {"redundant_loads", "branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> atom(n);
        std::vector<int> list(n * NEIGHBOURS), marks(n * NEIGHBOURS), bonds(n * EXCLUDED, -1), number(n);
        struct Step {
            int x, y, z;
        };
        std::vector<Step> steps;
        for (int z = -2; z <= 2; ++z)
            for (int y = -2; y <= 2; ++y)
                for (int x = -2; x <= 2; ++x)
                    if (x || y || z) steps.push_back({x, y, z});
        std::stable_sort(steps.begin(), steps.end(), [](const Step &a, const Step &c) { return a.x * a.x + a.y * a.y + a.z * a.z < c.x * c.x + c.y * c.y + c.z * c.z; });
        auto inside = [](int at, int step) { return at + step < 0 || at + step >= EDGE ? at - step : at + step; };
        for (long i = 0; i < n; ++i) {
            const unsigned h = hash(static_cast<unsigned>(i));
            const int x = static_cast<int>(i % EDGE), y = static_cast<int>(i / EDGE % EDGE), z = static_cast<int>(i / (EDGE * EDGE));
            auto jitter = [&](int shift) { return static_cast<float>(h >> shift & 255) / 1280.f - 0.1f; };
            atom[i] = make_float4(x + jitter(0), y + jitter(8), z + jitter(16), static_cast<float>(h >> 24) / 255.f - 0.5f);
            number[i] = 6 + static_cast<int>(h % 5);
            for (int m = 0; m < number[i]; ++m) {
                const int away = m % 2 ? m / 2 + 1 : -(m / 2 + 1);  // along the chain
                bonds[i * EXCLUDED + m] = static_cast<int>(i) + away;
            }
            for (int k = 0; k < NEIGHBOURS; ++k) {
                const int j = (inside(z, steps[k].z) * EDGE + inside(y, steps[k].y)) * EDGE + inside(x, steps[k].x);
                const bool bonded = std::find(&bonds[i * EXCLUDED], &bonds[i * EXCLUDED] + number[i], j) != &bonds[i * EXCLUDED] + number[i];
                list[k * n + i] = j, marks[k * n + i] = bonded ? -1 - j : j;
            }
        }
        const float4 *atoms = b.copy(atom);
        const int *neighbours = b.copy(list), *marked = b.copy(marks), *excluded = b.copy(bonds), *counts = b.copy(number);
        float4 *forces = reinterpret_cast<float4 *>(b.output<float>(4 * n));
        const int count = static_cast<int>(n);
        return {{"flawed", launch(pair_forces, n / 128, 128, 0, atoms, neighbours, excluded, counts, forces, count)},
            {"bits", launch(pair_forces_bits, n / 128, 128, 0, atoms, neighbours, excluded, counts, forces, count)},
            {"marked", launch(pair_forces_marked, n / 128, 128, 0, atoms, marked, forces, count)}};
    });

}  // namespace
