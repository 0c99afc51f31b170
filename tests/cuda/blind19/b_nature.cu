// Crops, magnets, genes, lamps and sparks.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- warmth that crops have had since spring ---

constexpr int DAYS = 365, SPAN = 23, SPANS = 16;

__device__ __forceinline__ float warmth(float coldest, float warmest) {
    return fmaxf(0.0f, 0.5f * (fminf(warmest, 30.0f) + fmaxf(coldest, 8.0f)) - 8.0f);
}
__global__ void __launch_bounds__(128) growing_degrees(const float *coldest, const float *warmest, float *out, int cells) {
    const int cell = blockIdx.x * 128 + threadIdx.x;
    if (cell >= cells) return;
    float sum = 0.0f;
    for (int day = 0; day < DAYS; day++) {
        const int at = day * cells + cell;
        sum += warmth(coldest[at], warmest[at]);
        out[at] = sum;
    }
}
// Eight days are on their way together: nothing is stored to what is read.
__global__ void __launch_bounds__(128) growing_degrees_ahead(const float *__restrict__ coldest, const float *__restrict__ warmest, float *__restrict__ out, int cells) {
    const int cell = blockIdx.x * 128 + threadIdx.x;
    if (cell >= cells) return;
    float sum = 0.0f;
    int day = 0;
    for (; day + 8 <= DAYS; day += 8) {
        float low[8], high[8];
#pragma unroll
        for (int k = 0; k < 8; k++) low[k] = coldest[(day + k) * cells + cell], high[k] = warmest[(day + k) * cells + cell];
#pragma unroll
        for (int k = 0; k < 8; k++) out[(day + k) * cells + cell] = sum += warmth(low[k], high[k]);
    }
    for (; day < DAYS; day++) out[day * cells + cell] = sum += warmth(coldest[day * cells + cell], warmest[day * cells + cell]);
}
// Sixteen warps share the days of 32 cells; each adds up its own, then what came before them.
__global__ void __launch_bounds__(32 * SPANS) growing_degrees_spans(const float *__restrict__ coldest, const float *__restrict__ warmest, float *__restrict__ out, int cells) {
    __shared__ float totals[SPANS][32];
    const int cell = blockIdx.x * 32 + threadIdx.x, span = threadIdx.y, first = span * SPAN;
    float own[SPAN], sum = 0.0f;
#pragma unroll
    for (int k = 0; k < SPAN; k++) {
        const int at = (first + k) * cells + cell;
        own[k] = first + k < DAYS ? warmth(coldest[at], warmest[at]) : 0.0f;
        sum += own[k];
    }
    totals[span][threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int before = 0; before < span; before++) sum += totals[before][threadIdx.x];
#pragma unroll
    for (int k = 0; k < SPAN; k++) {
        sum += own[k];
        if (first + k < DAYS) out[(first + k) * cells + cell] = sum;
    }
}

Study crops("growing_degrees_a_load_waits_for_the_store", "agriculture", 32768, "sums of the warmth of 365 days so far for 32768 fields",
    "a thread goes through the days, and since the sums might lie where the temperatures do, each day's loads come after the store of the day before",
    {{"ahead", "pointers without overlap, eight days loaded at a time", {"memory_latency"}}, {"spans", "sixteen warps for the days of 32 fields", {"memory_latency", "small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        const float *coldest = b.random<float>(n * DAYS, -5.0, 15.0), *warmest = b.random<float>(n * DAYS, 5.0, 35.0);
        float *out = b.output<float>(n * DAYS);
        return {{"flawed", launch(growing_degrees, blocks(n, 128), 128, 0, coldest, warmest, out, n)}, {"ahead", launch(growing_degrees_ahead, blocks(n, 128), 128, 0, coldest, warmest, out, n)},
            {"spans", launch(growing_degrees_spans, n / 32, dim3(32, SPANS), 0, coldest, warmest, out, n)}};
    });

// --- torques of spins with an exchange of long range ---

constexpr int REACH = 5, WINDOW = 2 * REACH + 1, TALL = 8;

__constant__ float exchange[WINDOW * WINDOW];

__device__ __forceinline__ void add_exchange(float3 &field, float4 spin, float strength) {
    field.x += strength * spin.x, field.y += strength * spin.y, field.z += strength * spin.z;
}
__device__ __forceinline__ float4 torque(float4 spin, float3 field) {
    return make_float4(spin.y * field.z - spin.z * field.y, spin.z * field.x - spin.x * field.z, spin.x * field.y - spin.y * field.x, spin.x * field.x + spin.y * field.y + spin.z * field.z);
}
__global__ void __launch_bounds__(256) spin_torques(const float4 *__restrict__ spins, float4 *__restrict__ out, int n) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * TALL + threadIdx.y, mask = n - 1;
    float3 field = make_float3(0.0f, 0.0f, 0.0f);
    for (int dy = -REACH; dy <= REACH; dy++)
#pragma unroll
        for (int dx = -REACH; dx <= REACH; dx++)
            add_exchange(field, spins[(y + dy & mask) * n + (x + dx & mask)], exchange[(dy + REACH) * WINDOW + dx + REACH]);
    out[y * n + x] = torque(spins[y * n + x], field);
}
__global__ void __launch_bounds__(256) spin_torques_tile(const float4 *__restrict__ spins, float4 *__restrict__ out, int n) {
    constexpr int WIDE = 32 + 2 * REACH, HIGH = TALL + 2 * REACH;
    __shared__ float4 tile[HIGH][WIDE];
    const int left = blockIdx.x * 32, top = blockIdx.y * TALL, mask = n - 1;
    for (int k = threadIdx.y * 32 + threadIdx.x; k < HIGH * WIDE; k += 256) tile[k / WIDE][k % WIDE] = spins[(top + k / WIDE - REACH & mask) * n + (left + k % WIDE - REACH & mask)];
    __syncthreads();
    float3 field = make_float3(0.0f, 0.0f, 0.0f);
    for (int dy = 0; dy < WINDOW; dy++)
#pragma unroll
        for (int dx = 0; dx < WINDOW; dx++) add_exchange(field, tile[threadIdx.y + dy][threadIdx.x + dx], exchange[dy * WINDOW + dx]);
    out[(top + threadIdx.y) * n + left + threadIdx.x] = torque(tile[threadIdx.y + REACH][threadIdx.x + REACH], field);
}
// Four spins of a column a thread: what is loaded serves all of them that it reaches.
__global__ void __launch_bounds__(256) spin_torques_columns(const float4 *__restrict__ spins, float4 *__restrict__ out, int n) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = (blockIdx.y * TALL + threadIdx.y) * 4, mask = n - 1;
    float3 fields[4] = {};
    for (int dx = 0; dx < WINDOW; dx++) {
        const int column = x + dx - REACH & mask;
#pragma unroll
        for (int row = 0; row < WINDOW + 3; row++) {
            const float4 spin = spins[(y + row - REACH & mask) * n + column];
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (row >= k && row - k < WINDOW) add_exchange(fields[k], spin, exchange[(row - k) * WINDOW + dx]);
        }
    }
#pragma unroll
    for (int k = 0; k < 4; k++) out[(y + k) * n + x] = torque(spins[(y + k) * n + x], fields[k]);
}

Study magnets("spin_torques_121_neighbours_from_memory", "magnetism", 2048, "torques on 2048 x 2048 spins by the exchange with 120 neighbours each",
    "each thread reads all the neighbours of its spin anew, which those beside it read as well",
    {{"tile", "a tile with its margin in shared memory", {"redundant_loads"}}, {"columns", "four spins of a column a thread", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> strengths(WINDOW * WINDOW, 0.0f);
        for (int k = 0; k < WINDOW * WINDOW; k++) {
            const double dx = k % WINDOW - REACH, dy = k / WINDOW - REACH, r = std::sqrt(dx * dx + dy * dy);
            if (r > 0) strengths[k] = static_cast<float>(std::cos(1.3 * r) / (r * r * r));
        }
        CHECK(cudaMemcpyToSymbol(exchange, strengths.data(), strengths.size() * sizeof(float)));
        const float4 *spins = reinterpret_cast<const float4 *>(b.random<float>(n * n * 4));
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n * n * 4));
        const dim3 block(32, TALL);
        return {{"flawed", launch(spin_torques, dim3(n / 32, n / TALL), block, 0, spins, out, n)}, {"tile", launch(spin_torques_tile, dim3(n / 32, n / TALL), block, 0, spins, out, n)},
            {"columns", launch(spin_torques_columns, dim3(n / 32, n / TALL / 4), block, 0, spins, out, n)}};
    });

// --- genes that switch one another on and off in many cells ---

constexpr int GENES = 64, REGULATORS = 4;

struct Regulator {
    int gene, activates;
    float threshold, exponent;
};
struct ByPowers {
    __device__ static float share(float level, Regulator r) { return powf(level, r.exponent) / (powf(r.threshold, r.exponent) + powf(level, r.exponent)); }
};
// Exponents are one to four.
struct ByProducts {
    __device__ static float share(float level, Regulator r) {
        const float ratio = __fdividef(r.threshold, level), square = ratio * ratio;
        const float power = (r.exponent >= 2.0f ? square : 1.0f) * (r.exponent >= 4.0f ? square : r.exponent == 2.0f ? 1.0f : ratio);
        return __fdividef(1.0f, 1.0f + power);
    }
};
struct ByLogarithms {
    __device__ static float share(float level, Regulator r) { return __fdividef(1.0f, 1.0f + exp2f(r.exponent * (__log2f(r.threshold) - __log2f(level)))); }
};
template <typename Switch>
__global__ void __launch_bounds__(256) gene_step(const float *__restrict__ levels, const Regulator *__restrict__ regulators, float *__restrict__ out, int cells, float step) {
    const int cell = blockIdx.x * 256 + threadIdx.x, gene = blockIdx.y;
    if (cell >= cells) return;
    float rate = 1.0f;
#pragma unroll
    for (int k = 0; k < REGULATORS; k++) {
        const Regulator r = regulators[gene * REGULATORS + k];
        const float share = Switch::share(levels[r.gene * cells + cell], r);
        rate *= r.activates ? share : 1.0f - share;
    }
    const float own = levels[gene * cells + cell];
    out[gene * cells + cell] = own + step * (2.0f * rate - own);
}

Study genes("gene_switches_a_power_for_each_regulator", "systems biology", 131072, "a step of 64 genes, which four others regulate each, in 131072 cells",
    "two general powers for each regulator, though the exponents are one to four",
    {{"products", "powers as products", {"expensive_math"}}, {"logarithms", "powers of two and fast logarithms", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Regulator> list(GENES * REGULATORS);
        for (unsigned k = 0; k < list.size(); k++) list[k] = {static_cast<int>(hash(k) % GENES), static_cast<int>(hash(k + 1000) % 3 > 0), 0.3f + (hash(k + 2000) % 100) / 80.0f, 1.0f + hash(k + 3000) % 4};
        const float *levels = b.random<float>(n * GENES, 0.05, 2.0);
        const Regulator *regulators = b.copy(list);
        float *out = b.output<float>(n * GENES);
        const dim3 grid(blocks(n, 256), GENES);
        return {{"flawed", launch(gene_step<ByPowers>, grid, 256, 0, levels, regulators, out, n, 0.05f)}, {"products", launch(gene_step<ByProducts>, grid, 256, 0, levels, regulators, out, n, 0.05f)},
            {"logarithms", launch(gene_step<ByLogarithms>, grid, 256, 0, levels, regulators, out, n, 0.05f)}};
    });

// --- light of the lamps of a hall on its floor ---

constexpr int LAMPS = 512;

__device__ __forceinline__ float lamp_light(float4 lamp, float x, float y) {
    const float dx = x - lamp.x, dy = y - lamp.y, inverse = rsqrtf(dx * dx + dy * dy + lamp.z * lamp.z);
    const float inverse2 = inverse * inverse, cosine = lamp.z * inverse, cosine2 = cosine * cosine;
    return lamp.w * cosine2 * cosine2 * inverse2;
}
__global__ void __launch_bounds__(256) floor_light(const float4 *__restrict__ lamps, float *__restrict__ out, int width, int tiles, float pitch) {
    __shared__ float4 own[LAMPS];
    for (int k = threadIdx.x; k < LAMPS; k += 256) own[k] = lamps[k];
    __syncthreads();
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int at = tile * 256 + threadIdx.x;
        const float x = at % width * pitch, y = at / width * pitch;
        float sum = 0.0f;
        for (int k = 0; k < LAMPS; k++) sum += lamp_light(own[k], x, y);
        out[at] = sum;
    }
}
// Two points a thread; no block goes round.
__global__ void __launch_bounds__(256) floor_light_pairs(const float4 *__restrict__ lamps, float *__restrict__ out, int width, float pitch) {
    __shared__ float4 own[LAMPS];
    for (int k = threadIdx.x; k < LAMPS; k += 256) own[k] = lamps[k];
    __syncthreads();
    const int at = blockIdx.x * 512 + threadIdx.x, other = at + 256;
    const float x = at % width * pitch, y = at / width * pitch, x2 = other % width * pitch, y2 = other / width * pitch;
    float sum = 0.0f, sum2 = 0.0f;
    for (int k = 0; k < LAMPS; k++) {
        const float4 lamp = own[k];
        sum += lamp_light(lamp, x, y), sum2 += lamp_light(lamp, x2, y2);
    }
    out[at] = sum, out[other] = sum2;
}

Study lamps("floor_light_grid_for_108_multiprocessors", "lighting", 512, "light of 512 lamps on 512 x 512 points of a floor",
    "the grid is as large as an older GPU has multiprocessors: 108 blocks of 256 threads go round",
    {{"filled", "as many blocks as this GPU holds, eight a multiprocessor", {"small_grid"}}, {"pairs", "a block for each 512 points, two of them a thread", {"small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> list(LAMPS);
        const auto unit = [](unsigned k) { return (hash(k) >> 8) / 16777216.0f; };
        for (unsigned k = 0; k < LAMPS; k++) list[k] = make_float4(unit(k * 4) * 60.0f, unit(k * 4 + 1) * 60.0f, 3.0f + 3.0f * unit(k * 4 + 2), 1.0f + unit(k * 4 + 3));
        const float4 *in = b.copy(list);
        float *out = b.output<float>(n * n);
        const long tiles = n * n / 256;
        const float pitch = 60.0f / n;
        return {{"flawed", launch(floor_light, 108, 256, 0, in, out, n, tiles, pitch)}, {"filled", launch(floor_light, multiprocessors() * 8, 256, 0, in, out, n, tiles, pitch)},
            {"pairs", launch(floor_light_pairs, blocks(tiles, 2), 256, 0, in, out, n, pitch)}};
    });

// --- sparks that burning particles throw, a list for each fire ---

constexpr int FIRES = 16;

struct __align__(16) Spark {
    float x, y, z;
    int parent;
};
__device__ __forceinline__ int sparks_of(float4 particle) { return min(3, static_cast<int>(particle.w * 4.0f)); }
__device__ __forceinline__ void throw_sparks(Spark *sparks, int count, float4 particle, int parent) {
    for (int k = 0; k < count; k++) {
        const unsigned h = hash(parent * 4 + k);
        sparks[k] = {particle.x + (h & 1023) * 1e-3f, particle.y + (h >> 10 & 1023) * 1e-3f, particle.z + (h >> 20 & 1023) * 1e-3f, parent};
    }
}
__global__ void __launch_bounds__(256) emit_sparks(const float4 *__restrict__ particles, const int *__restrict__ fires, Spark *__restrict__ sparks, int *__restrict__ used, int count, int room) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const float4 particle = particles[i];
    const int own = sparks_of(particle), fire = fires[i];
    if (own == 0) return;
    const int first = atomicAdd(used + fire, own);
    throw_sparks(sparks + fire * room + first, own, particle, i);
}
// Lanes of one fire ask together; their numbers of two bits are added up by votes.
__global__ void __launch_bounds__(256) emit_sparks_warps(const float4 *__restrict__ particles, const int *__restrict__ fires, Spark *__restrict__ sparks, int *__restrict__ used, int count, int room) {
    const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32;
    const float4 particle = i < count ? particles[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const int own = sparks_of(particle), fire = i < count ? fires[i] : 0;
    const unsigned same = __match_any_sync(~0u, fire), ones = __ballot_sync(~0u, own & 1) & same, twos = __ballot_sync(~0u, own & 2) & same;
    const unsigned below = (1u << lane) - 1;
    const int leader = __ffs(same) - 1, all = __popc(ones) + 2 * __popc(twos);
    int first = 0;
    if (lane == leader && all) first = atomicAdd(used + fire, all);
    first = __shfl_sync(~0u, first, leader) + __popc(ones & below) + 2 * __popc(twos & below);
    throw_sparks(sparks + fire * room + first, own, particle, i);
}
__global__ void __launch_bounds__(256) emit_sparks_blocks(const float4 *__restrict__ particles, const int *__restrict__ fires, Spark *__restrict__ sparks, int *__restrict__ used, int count, int room) {
    __shared__ int sums[FIRES], starts[FIRES];
    const int i = blockIdx.x * 256 + threadIdx.x, t = threadIdx.x;
    if (t < FIRES) sums[t] = 0;
    __syncthreads();
    const float4 particle = i < count ? particles[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const int own = sparks_of(particle), fire = i < count ? fires[i] : 0;
    const int place = own ? atomicAdd(sums + fire, own) : 0;
    __syncthreads();
    if (t < FIRES) starts[t] = atomicAdd(used + t, sums[t]);
    __syncthreads();
    throw_sparks(sparks + fire * room + starts[fire] + place, own, particle, i);
}
// Sparks of a fire lie in any order: compared is what belongs to each particle.
__global__ void __launch_bounds__(256) sparks_by_particle(const Spark *__restrict__ sparks, const int *__restrict__ used, float *__restrict__ out, int room) {
    const int k = blockIdx.x * 256 + threadIdx.x, fire = blockIdx.y;
    if (k >= used[fire] || k >= room) return;
    const Spark spark = sparks[fire * room + k];
    atomicAdd(out + spark.parent, spark.x + 2.0f * spark.y + 4.0f * spark.z);
}

Study sparks("sparks_room_asked_for_by_each_particle", "animation", 1 << 21, "up to three sparks of each of 2097152 burning particles, in a list for each of 16 fires",
    "each particle that throws sparks adds to its fire's counter, and there are 16 of them in all",
    {{"warps", "lanes of a fire ask together", {"global_atomics"}}, {"blocks", "a block counts in shared memory and asks once for each fire", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const float4 *particles = reinterpret_cast<const float4 *>(b.random<float>(n * 4, 0.0, 1.0));
        const int *fires = b.random<int>(n, 0, FIRES);
        const long room = n / 4;
        Spark *list = b.allocate<Spark>(room * FIRES);
        int *used = b.output<int>(FIRES, true);
        float *sums = b.output<float>(n, true);
        const auto side = [=](const char *name, auto kernel) {
            return Side{name, launch(kernel, blocks(n, 256), 256, 0, particles, fires, list, used, n, room), {}, 1, launch(sparks_by_particle, dim3(blocks(room, 256), FIRES), 256, 0, list, used, sums, room)};
        };
        return {side("flawed", emit_sparks), side("warps", emit_sparks_warps), side("blocks", emit_sparks_blocks)};
    });

// --- oscillators with a cubic spring: without a flaw ---

__device__ __forceinline__ float2 duffing_slope(float2 s, float force) { return make_float2(s.y, force - 0.2f * s.y + s.x * (1.0f - s.x * s.x)); }
__device__ __forceinline__ float2 along(float2 s, float2 slope, float h) { return make_float2(s.x + h * slope.x, s.y + h * slope.y); }
__global__ void __launch_bounds__(256) duffing(const float4 *__restrict__ states, float4 *__restrict__ out, int pairs, int steps, float h) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= pairs) return;
    const float4 both = states[i];
    float2 s[2] = {make_float2(both.x, both.y), make_float2(both.z, both.w)};
    float force = 0.3f, turned = 0.0f;
    for (int step = 0; step < steps; step++) {
        const float next = 0.999f * force - 0.04471f * turned;
        turned = 0.999f * turned + 0.04471f * force;
        const float middle = 0.5f * (force + next);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const float2 a = duffing_slope(s[k], force), c = duffing_slope(along(s[k], a, 0.5f * h), middle), d = duffing_slope(along(s[k], c, 0.5f * h), middle), e = duffing_slope(along(s[k], d, h), next);
            s[k] = along(along(along(along(s[k], a, h / 6.0f), c, h / 3.0f), d, h / 3.0f), e, h / 6.0f);
        }
        force = next;
    }
    out[i] = make_float4(s[0].x, s[0].y, s[1].x, s[1].y);
}

Study oscillators("sound_duffing_oscillators", "physics", 1 << 20, "100 steps of 2097152 oscillators with a cubic spring", "", {}, [](Buffers &b, long n) -> Sides {
    const float4 *states = reinterpret_cast<const float4 *>(b.random<float>(n * 4));
    return {{"sound", launch(duffing, blocks(n, 256), 256, 0, states, reinterpret_cast<float4 *>(b.output<float>(n * 4)), n, 100, 0.0447f)}};
});

}  // namespace
