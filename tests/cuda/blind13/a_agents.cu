// Flocks and option desks. Each kernel has one weakness and two ways out.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- a step of flocks of 256 birds each: keep apart, fly as the others do, stay together ---

constexpr int FLOCK = 256;

struct Bird {
    float x, y, z, vx, vy, vz, goal_x, goal_y, goal_z, energy, weight, room, tilt, flap, age, hue;
};
struct Pull {
    float apart_x, apart_y, apart_z, along_x, along_y, along_z, to_x, to_y, to_z, weight;
};

__device__ __forceinline__ void feel(Pull &p, const Bird &own, float x, float y, float z, float vx, float vy, float vz, float weight, float room) {
    const float dx = x - own.x, dy = y - own.y, dz = z - own.z, square = dx * dx + dy * dy + dz * dz;
    const float near = weight * fmaxf(1.f - square, 0.f), push = fmaxf(room + own.room - square, 0.f);
    p.apart_x -= push * dx, p.apart_y -= push * dy, p.apart_z -= push * dz;
    p.along_x += near * (vx - own.vx), p.along_y += near * (vy - own.vy), p.along_z += near * (vz - own.vz);
    p.to_x += near * dx, p.to_y += near * dy, p.to_z += near * dz;
    p.weight += near;
}
__device__ __forceinline__ void turn(const Pull &p, const Bird &own, float *out, int i, int all) {
    const float share = 1.f / (p.weight + 1e-3f), pull = 0.02f * own.energy;
    out[i] = own.vx + 0.5f * p.apart_x + share * (0.1f * p.along_x + 0.05f * p.to_x) + pull * (own.goal_x - own.x);
    out[all + i] = own.vy + 0.5f * p.apart_y + share * (0.1f * p.along_y + 0.05f * p.to_y) + pull * (own.goal_y - own.y);
    out[2 * all + i] = own.vz + 0.5f * p.apart_z + share * (0.1f * p.along_z + 0.05f * p.to_z) + pull * (own.goal_z - own.z);
}

// Each bird begins with the one after it and goes round.
__global__ void __launch_bounds__(FLOCK) flock_step(const Bird *__restrict__ birds, float *__restrict__ out, int all) {
    __shared__ Bird flock[FLOCK];
    const int i = blockIdx.x * FLOCK + threadIdx.x;
    const Bird own = birds[i];
    flock[threadIdx.x] = own;
    __syncthreads();
    Pull p = {};
    for (int k = 1; k < FLOCK; k++) {
        const Bird &other = flock[(threadIdx.x + k) % FLOCK];
        feel(p, own, other.x, other.y, other.z, other.vx, other.vy, other.vz, other.weight, other.room);
    }
    turn(p, own, out, i, all);
}
// A plane in shared memory for each value that others need: neighbouring lanes want neighbouring words.
__global__ void __launch_bounds__(FLOCK) flock_step_planes(const Bird *__restrict__ birds, float *__restrict__ out, int all) {
    __shared__ float x[FLOCK], y[FLOCK], z[FLOCK], vx[FLOCK], vy[FLOCK], vz[FLOCK], weight[FLOCK], room[FLOCK];
    const int i = blockIdx.x * FLOCK + threadIdx.x, t = threadIdx.x;
    const Bird own = birds[i];
    x[t] = own.x, y[t] = own.y, z[t] = own.z, vx[t] = own.vx, vy[t] = own.vy, vz[t] = own.vz, weight[t] = own.weight, room[t] = own.room;
    __syncthreads();
    Pull p = {};
    for (int k = 1; k < FLOCK; k++) {
        const int j = (t + k) % FLOCK;
        feel(p, own, x[j], y[j], z[j], vx[j], vy[j], vz[j], weight[j], room[j]);
    }
    turn(p, own, out, i, all);
}
// All lanes look at the same bird, its values in two words of 16 bytes. What a bird does to itself is its weight.
__global__ void __launch_bounds__(FLOCK) flock_step_together(const Bird *__restrict__ birds, float *__restrict__ out, int all) {
    __shared__ float4 places[FLOCK], ways[FLOCK];
    const int i = blockIdx.x * FLOCK + threadIdx.x;
    const Bird own = birds[i];
    places[threadIdx.x] = make_float4(own.x, own.y, own.z, own.weight);
    ways[threadIdx.x] = make_float4(own.vx, own.vy, own.vz, own.room);
    __syncthreads();
    Pull p = {};
#pragma unroll 4
    for (int j = 0; j < FLOCK; j++) {
        const float4 at = places[j], way = ways[j];
        feel(p, own, at.x, at.y, at.z, way.x, way.y, way.z, at.w, way.w);
    }
    p.weight -= own.weight;
    turn(p, own, out, i, all);
}

Study flocks("flock_of_16_word_structures", "animation", 2048, "a step of 2048 flocks of 256 birds, each of which feels all others of its flock",
    "birds are structures of 16 words in shared memory, and each lane reads another",
    {{"planes", "a plane in shared memory for each value that others need", {"shared_bank_conflicts"}}, {"together", "all lanes read the same bird, 16 bytes at once", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        const long all = n * FLOCK;
        std::vector<Bird> birds(all);
        for (long i = 0; i < all; i++) {
            auto draw = [&](unsigned k, float low, float high) { return low + (high - low) * static_cast<float>(hash(static_cast<unsigned>(i) * 16 + k) >> 8) * 0x1p-24f; };
            birds[i] = {draw(0, 0, 1.5), draw(1, 0, 1.5), draw(2, 0, 1.5), draw(3, -1, 1), draw(4, -1, 1), draw(5, -1, 1), draw(6, 0, 9), draw(7, 0, 9), draw(8, 0, 9), draw(9, 0, 1),
                draw(10, 0.5, 2), draw(11, 0.01, 0.05), draw(12, -1, 1), draw(13, 0, 1), draw(14, 0, 20), draw(15, 0, 1)};
        }
        const Bird *in = b.copy(birds);
        float *out = b.output<float>(3 * all);
        const int count = static_cast<int>(all);
        return {{"flawed", launch(flock_step, n, FLOCK, 0, in, out, count)}, {"planes", launch(flock_step_planes, n, FLOCK, 0, in, out, count)},
            {"together", launch(flock_step_together, n, FLOCK, 0, in, out, count)}};
    });

// --- calls priced with volatilities from a surface over moneyness and time ---

constexpr int ACROSS = 96, ALONG = 104;

struct Calls {
    const float *moneyness, *years;
    float *price;
    int count;
};

__device__ __forceinline__ float volatility(const float *surface, float moneyness, float years) {
    const float u = (moneyness - 0.5f) * (ACROSS - 1.001f), v = years * ((ALONG - 1.001f) / 5.f);
    const int i = static_cast<int>(u), j = static_cast<int>(v);
    const float a = u - i, b = v - j;
    const float *at = surface + j * ACROSS + i;
    return (1.f - b) * (at[0] + a * (at[1] - at[0])) + b * (at[ACROSS] + a * (at[ACROSS + 1] - at[ACROSS]));
}
__device__ __forceinline__ float call_price(const float *surface, float moneyness, float years) {
    const float spread = volatility(surface, moneyness, years) * sqrtf(years), d1 = __logf(moneyness) / spread + 0.5f * spread;
    return moneyness * normcdff(d1) - normcdff(d1 - spread);
}

// The surface is copied to shared memory by each block; blocks stay.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) price_calls(Calls calls, const float *__restrict__ surface) {
    __shared__ float held[ACROSS * ALONG];
    for (int k = threadIdx.x; k < ACROSS * ALONG; k += THREADS) held[k] = surface[k];
    __syncthreads();
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < calls.count; i += gridDim.x * THREADS) calls.price[i] = call_price(held, calls.moneyness[i], calls.years[i]);
}
// The same blocks, but four calls at once: their loads and chains of arithmetic overlap.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) price_calls_four(Calls calls, const float *__restrict__ surface) {
    __shared__ float held[ACROSS * ALONG];
    for (int k = threadIdx.x; k < ACROSS * ALONG; k += THREADS) held[k] = surface[k];
    __syncthreads();
    auto moneyness = reinterpret_cast<const float4 *>(calls.moneyness), years = reinterpret_cast<const float4 *>(calls.years);
    auto price = reinterpret_cast<float4 *>(calls.price);
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < calls.count / 4; i += gridDim.x * THREADS) {
        const float4 m = moneyness[i], t = years[i];
        price[i] = make_float4(call_price(held, m.x, t.x), call_price(held, m.y, t.y), call_price(held, m.z, t.z), call_price(held, m.w, t.w));
    }
}

Study surface("volatility_surface_for_blocks_of_64", "finance", 1 << 23, "8388608 calls priced with volatilities from a surface of 96 x 104 points",
    "the surface fills 39 KB of shared memory for a block of two warps: ten warps on a multiprocessor",
    {{"blocks_of_512", "blocks of 512 threads share the surface", {"low_occupancy"}}, {"four", "four calls a thread at once in the same blocks", {"low_occupancy", "memory_latency", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> points(ACROSS * ALONG);
        for (int j = 0; j < ALONG; j++)
            for (int i = 0; i < ACROSS; i++) points[j * ACROSS + i] = 0.18f + 0.3f * std::pow(i / 95.f - 0.5f, 2.f) + 0.05f * std::exp(-0.03f * j) + 0.01f * std::sin(0.7f * i + 0.4f * j);
        const float *volatilities = b.copy(points);
        const Calls calls{b.random<float>(n, 0.5, 1.5), b.random<float>(n, 0.05, 5), b.output<float>(n), static_cast<int>(n)};
        const int all = multiprocessors();
        return {{"flawed", launch(price_calls<64>, all * 5, 64, 0, calls, volatilities)}, {"blocks_of_512", launch(price_calls<512>, all * 4, 512, 0, calls, volatilities)},
            {"four", launch(price_calls_four<64>, all * 5, 64, 0, calls, volatilities)}};
    });

}  // namespace
