// Traffic, brain waves, sessions, waves near coasts and planes of bits.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- cars on ring roads ---

constexpr int ROADS = 4096, WALK = 16, MARGIN = 3;  // roads side by side; places of a road that one thread walks

struct Traffic {
    const float *cars;  // place by place, MARGIN places before the first and after the last
    float *later;
    float ratio, fastest;  // of the time step to a place's length; bound of the speed of waves
};
// Value at the face after `c` by three parabolas, each weighted by how smooth it is (WENO5).
__device__ __forceinline__ float at_face(float a, float b, float c, float d, float e) {
    constexpr float tiny = 1e-6f;
    const float bend0 = a - 2.0f * b + c, bend1 = b - 2.0f * c + d, bend2 = c - 2.0f * d + e;
    const float slope0 = a - 4.0f * b + 3.0f * c, slope1 = b - d, slope2 = 3.0f * c - 4.0f * d + e;
    const float rough0 = tiny + 13.0f / 12.0f * bend0 * bend0 + 0.25f * slope0 * slope0;
    const float rough1 = tiny + 13.0f / 12.0f * bend1 * bend1 + 0.25f * slope1 * slope1;
    const float rough2 = tiny + 13.0f / 12.0f * bend2 * bend2 + 0.25f * slope2 * slope2;
    const float weight0 = __fdividef(0.1f, rough0 * rough0), weight1 = __fdividef(0.6f, rough1 * rough1), weight2 = __fdividef(0.3f, rough2 * rough2);
    const float value0 = 2.0f * a - 7.0f * b + 11.0f * c, value1 = 5.0f * c - b + 2.0f * d, value2 = 2.0f * c + 5.0f * d - e;
    return __fdividef(weight0 * value0 + weight1 * value1 + weight2 * value2, 6.0f * (weight0 + weight1 + weight2));
}
// Cars that pass the face between `c` and `d`.
__device__ __forceinline__ float flow(const Traffic &t, float a, float b, float c, float d, float e, float f) {
    const auto onward = [&](float q) { return 0.5f * q * (1.0f - q + t.fastest); };
    const auto back = [&](float q) { return 0.5f * q * (1.0f - q - t.fastest); };
    return at_face(onward(a), onward(b), onward(c), onward(d), onward(e)) + at_face(back(f), back(e), back(d), back(c), back(b));
}
// A place of a road a thread.
__global__ void __launch_bounds__(256) driven(Traffic t) {
    const int road = blockIdx.x * 32 + threadIdx.x % 32, place = blockIdx.y * 8 + threadIdx.x / 32;
    const float *at = t.cars + place * ROADS + road;
    float q[7];
#pragma unroll
    for (int k = 0; k < 7; k++) q[k] = at[k * ROADS];
    const float in = flow(t, q[0], q[1], q[2], q[3], q[4], q[5]), out = flow(t, q[1], q[2], q[3], q[4], q[5], q[6]);
    t.later[place * ROADS + road] = q[3] - t.ratio * (out - in);
}
// A thread walks WALK places down its road.
__global__ void __launch_bounds__(128) driven_walk(Traffic t) {
    const int road = blockIdx.x * 128 + threadIdx.x, place = blockIdx.y * WALK;
    const float *at = t.cars + place * ROADS + road;
    float *to = t.later + place * ROADS + road;
    float a = at[ROADS], b = at[2 * ROADS], c = at[3 * ROADS], d = at[4 * ROADS], e = at[5 * ROADS];
    float in = flow(t, at[0], a, b, c, d, e);
#pragma unroll 4
    for (int k = 0; k < WALK; k++) {
        const float f = at[(k + 6) * ROADS], out = flow(t, a, b, c, d, e, f);
        to[k * ROADS] = c - t.ratio * (out - in);
        a = b, b = c, c = d, d = e, e = f, in = out;
    }
}
// A face a thread, one row of threads more than there are places.
__global__ void __launch_bounds__(32 * (WALK + 1)) driven_faces(Traffic t) {
    __shared__ float flows[WALK + 1][32];
    const int row = threadIdx.x / 32, lane = threadIdx.x % 32, place = blockIdx.y * WALK + row;
    const float *at = t.cars + place * ROADS + blockIdx.x * 32 + lane;
    float q[6];
#pragma unroll
    for (int k = 0; k < 6; k++) q[k] = at[k * ROADS];
    flows[row][lane] = flow(t, q[0], q[1], q[2], q[3], q[4], q[5]);
    __syncthreads();
    if (row < WALK) t.later[place * ROADS + blockIdx.x * 32 + lane] = q[3] - t.ratio * (flows[row + 1][lane] - flows[row][lane]);
}

Study traffic("road_traffic_each_flow_worked_out_twice", "traffic", 4096, "a step of the cars on 4096 roads of 4096 places, by parabolas weighted by their smoothness",
    "what flows between two places is worked out on both sides",
    {{"walk", "a thread walks sixteen places and keeps the last flow", {"expensive_math"}}, {"faces", "a face a thread, flows of a block in shared memory", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> cars((n + 2 * MARGIN) * ROADS);
        for (size_t i = 0; i < cars.size(); i++) {
            const unsigned place = static_cast<unsigned>(i / ROADS), road = static_cast<unsigned>(i % ROADS);
            cars[i] = 0.1f + 0.5f * (hash(place / 37 * 8191 + road) >> 8) / 16777216.0f + 0.3f * (hash(static_cast<unsigned>(i)) >> 8) / 16777216.0f;
        }
        const Traffic t = {b.copy(cars), b.output<float>(n * ROADS), 0.3f, 1.0f};
        return {{"flawed", launch(driven, dim3(ROADS / 32, n / 8), 256, 0, t)}, {"walk", launch(driven_walk, dim3(ROADS / 128, n / WALK), 128, 0, t)},
            {"faces", launch(driven_faces, dim3(ROADS / 32, n / WALK), 32 * (WALK + 1), 0, t)}};
    });

// --- waves of the brain ---

constexpr int ORDER = 16, MOMENTS = 256, WINDOW = 32;  // samples that foretell the next; of an electrode; of one power

struct Model {
    float weights[ORDER + 1];  // of the samples before, the last one first
};
// Power of what a model does not foretell of electrodes' samples, by windows; moments one after another.
__global__ void __launch_bounds__(256) surprises(const short *__restrict__ samples, float *__restrict__ powers, int electrodes, int moments, Model model) {
    const int electrode = blockIdx.x * 256 + threadIdx.x;
    float past[ORDER] = {}, power = 0.0f;
    for (int t = 0; t < moments; t++) {
        const float now = samples[t * electrodes + electrode];
        float wrong = now;
#pragma unroll
        for (int k = ORDER; k > 0; k--) wrong -= model.weights[k] * past[(t - k) & (ORDER - 1)];
        past[t & (ORDER - 1)] = now;
        power += wrong * wrong;
        if (t % WINDOW == WINDOW - 1) {
            powers[t / WINDOW * electrodes + electrode] = power * (1.0f / WINDOW);
            power = 0.0f;
        }
    }
}
// Sixteen moments a round.
__global__ void __launch_bounds__(256) surprises_rounds(const short *__restrict__ samples, float *__restrict__ powers, int electrodes, int moments, Model model) {
    const int electrode = blockIdx.x * 256 + threadIdx.x;
    float past[ORDER] = {}, power = 0.0f;
    for (int first = 0; first < moments; first += ORDER) {
#pragma unroll
        for (int j = 0; j < ORDER; j++) {
            const float now = samples[(first + j) * electrodes + electrode];
            float wrong = now;
#pragma unroll
            for (int k = ORDER; k > 0; k--) wrong -= model.weights[k] * past[(j - k) & (ORDER - 1)];
            past[j] = now;
            power += wrong * wrong;
        }
        if (first % WINDOW == WINDOW - ORDER) {
            powers[first / WINDOW * electrodes + electrode] = power * (1.0f / WINDOW);
            power = 0.0f;
        }
    }
}
// Sums of what is foretold of the next sixteen moments instead of those past.
__global__ void __launch_bounds__(256) surprises_sums(const short *__restrict__ samples, float *__restrict__ powers, int electrodes, int moments, Model model) {
    const int electrode = blockIdx.x * 256 + threadIdx.x;
    float sums[ORDER] = {};
    for (int first = 0; first < moments; first += WINDOW) {
        float power = 0.0f;
#pragma unroll 8
        for (int j = 0; j < WINDOW; j++) {
            const float now = samples[(first + j) * electrodes + electrode], wrong = now - sums[0];
#pragma unroll
            for (int k = 1; k < ORDER; k++) sums[k - 1] = sums[k] + model.weights[k] * now;
            sums[ORDER - 1] = model.weights[ORDER] * now;
            power += wrong * wrong;
        }
        powers[first / WINDOW * electrodes + electrode] = power * (1.0f / WINDOW);
    }
}

Study brain("brain_waves_past_in_a_ring", "neuroscience", 1 << 18, "power of what a model of order sixteen does not foretell of 256 samples of 262144 electrodes",
    "the last sixteen samples are a ring whose places the loop counts",
    {{"rounds", "sixteen moments a round: each place is known", {"local_memory"}}, {"sums", "sums of what is foretold of later moments, without a past", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        Model model = {};
        for (int k = 1; k <= ORDER; k++) model.weights[k] = static_cast<float>(1.5 * std::pow(0.8, k) * std::cos(0.7 * k));
        std::vector<short> measured(n * MOMENTS);
        for (size_t i = 0; i < measured.size(); i++) measured[i] = static_cast<short>(static_cast<int>(hash(static_cast<unsigned>(i)) % 4096) - 2048);
        const short *samples = b.copy(measured);
        float *powers = b.output<float>(n * MOMENTS / WINDOW);
        return {{"flawed", launch(surprises, n / 256, 256, 0, samples, powers, n, MOMENTS, model)}, {"rounds", launch(surprises_rounds, n / 256, 256, 0, samples, powers, n, MOMENTS, model)},
            {"sums", launch(surprises_sums, n / 256, 256, 0, samples, powers, n, MOMENTS, model)}};
    });

// --- visits to a shop ---

struct Visits {
    const unsigned *views;  // of all visits, one after another: minutes ago above, price below
    const int *starts;      // of each visit's views, and the end
    float *worth;
    unsigned *next;
    int count;
};
// What a visit's views are worth, the older the less; by a warp.
__device__ __forceinline__ void value(const Visits &v, int visit) {
    const int lane = threadIdx.x % 32, end = v.starts[visit + 1];
    float worth = 0.0f;
#pragma unroll 4
    for (int i = v.starts[visit] + lane; i < end; i += 32) {
        const unsigned view = v.views[i];
        worth += (view & 0xffff) * exp2f((view >> 16) * (-1.0f / 2880.0f));
    }
    worth = warp_sum(worth);
    if (lane == 0) v.worth[visit] = worth;
}
__global__ void __launch_bounds__(256) valued(Visits v) {
    for (;;) {
        unsigned visit = 0;
        if (threadIdx.x % 32 == 0) visit = atomicAdd(v.next, 1u);
        visit = __shfl_sync(~0u, visit, 0);
        if (visit >= static_cast<unsigned>(v.count)) break;
        value(v, visit);
    }
}
// Four visits a turn.
__global__ void __launch_bounds__(256) valued_fours(Visits v) {
    for (;;) {
        unsigned visit = 0;
        if (threadIdx.x % 32 == 0) visit = atomicAdd(v.next, 4u);
        visit = __shfl_sync(~0u, visit, 0);
        if (visit >= static_cast<unsigned>(v.count)) break;
        const int end = min(static_cast<int>(visit) + 4, v.count);
        for (int k = visit; k < end; k++) value(v, k);
    }
}
// Visits by turns.
__global__ void __launch_bounds__(256) valued_turns(Visits v) {
    for (int visit = blockIdx.x * 8 + threadIdx.x / 32; visit < v.count; visit += gridDim.x * 8) value(v, visit);
}

Study visits("shop_visits_a_ticket_each", "retail", 1 << 18, "worth of 262144 visits to a shop from 32 to 287 views each, a warp a visit",
    "each warp asks one counter for every single visit",
    {{"fours", "four visits a ticket", {"global_atomics"}}, {"turns", "visits dealt to warps by turns, without a counter", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(n + 1);
        for (int k = 0; k < n; k++) starts[k + 1] = starts[k] + 32 + static_cast<int>(hash(static_cast<unsigned>(k)) % 256);
        const unsigned *views = b.random<unsigned>(starts[n], 0.0, 4294967296.0);
        float *worth = b.output<float>(n);
        unsigned *next = b.output<unsigned>(1, true);
        b.outputs.back().count = 0;  // zeroed before each launch, not compared
        const Visits v = {views, b.copy(starts), worth, next, static_cast<int>(n)};
        const unsigned grid = 8 * multiprocessors();
        return {{"flawed", launch(valued, grid, 256, 0, v)}, {"fours", launch(valued_fours, grid, 256, 0, v)}, {"turns", launch(valued_turns, grid, 256, 0, v)}};
    });

// --- how fast waves of the sea carry their energy ---

constexpr int PERIODS = 16, SEA = 1984;  // places of a row

struct Swell {
    float deep[PERIODS];    // wave numbers in deep water
    float speeds[PERIODS];  // of energy there, times the share of each period
};
__device__ __forceinline__ float bent(float x) { return 1.0f - __fdividef(2.0f, __expf(2.0f * x) + 1.0f); }
// Mean speed of the energy where the sea is `depth` metres deep; none on land and where it breaks.
__device__ __forceinline__ float energy_speed(const Swell &swell, float depth) {
    if (depth < 0.1f) return 0.0f;
    float speed = 0.0f;
#pragma unroll 2
    for (int k = 0; k < PERIODS; k++) {
        const float deep = fminf(swell.deep[k] * depth, 20.0f);
        float x = deep * rsqrtf(bent(deep));
#pragma unroll
        for (int round = 0; round < 2; round++) {
            const float t = bent(x);
            x -= __fdividef(x * t - deep, t + x * (1.0f - t * t));
        }
        const float t = bent(x);
        speed += swell.speeds[k] * (t + x * (1.0f - t * t));
    }
    return speed;
}
// A block its share of the map, from north to south.
__global__ void __launch_bounds__(1024) swell_speeds(const float *__restrict__ depths, float *__restrict__ speeds, int count, Swell swell) {
    const int share = (count / 1024 + gridDim.x - 1) / gridDim.x * 1024, end = min(count, static_cast<int>(blockIdx.x + 1) * share);
    for (int i = blockIdx.x * share + threadIdx.x; i < end; i += 1024) speeds[i] = energy_speed(swell, depths[i]);
}
// Pieces of 1024 places by turns.
__global__ void __launch_bounds__(1024) swell_speeds_turns(const float *__restrict__ depths, float *__restrict__ speeds, int count, Swell swell) {
    for (int i = blockIdx.x * 1024 + threadIdx.x; i < count; i += gridDim.x * 1024) speeds[i] = energy_speed(swell, depths[i]);
}
// A place a thread.
__global__ void __launch_bounds__(256) swell_speeds_places(const float *__restrict__ depths, float *__restrict__ speeds, Swell swell) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    speeds[i] = energy_speed(swell, depths[i]);
}

Study coast("swell_speeds_a_stretch_of_the_map_a_block", "coastal engineering", 2048, "speeds at which swell of sixteen periods carries energy at 2048 x 1984 places of sea and land",
    "each block has a stretch of the map: those with much land are done early",
    {{"turns", "pieces of 1024 places by turns", {"workload_imbalance"}}, {"places", "a block each 256 places", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> depths(n * SEA);
        for (int row = 0; row < n; row++)
            for (int column = 0; column < SEA; column++) {
                const double y = 1.0 * row / n, x = 1.0 * column / SEA;
                const double height = std::sin(9.0 * x + 2.0 * y) * 0.5 + std::sin(5.0 * x - 11.0 * y + 1.0) * 0.35 + 0.9 * (0.55 - y) - 0.2;
                depths[static_cast<size_t>(row) * SEA + column] = static_cast<float>(-60.0 * height);
            }
        Swell swell;
        for (int k = 0; k < PERIODS; k++) {
            const double turns = 6.283185307179586 / (5.0 + 0.75 * k);
            swell.deep[k] = static_cast<float>(turns * turns / 9.81);
            swell.speeds[k] = static_cast<float>(0.5 * 9.81 / turns / PERIODS);
        }
        const float *sea = b.copy(depths);
        float *speeds = b.output<float>(n * SEA);
        const unsigned grid = multiprocessors();
        return {{"flawed", launch(swell_speeds, grid, 1024, 0, sea, speeds, n * SEA, swell)}, {"turns", launch(swell_speeds_turns, grid, 1024, 0, sea, speeds, n * SEA, swell)},
            {"places", launch(swell_speeds_places, n * SEA / 256, 256, 0, sea, speeds, swell)}};
    });

// --- planes of bits ---

// Lane k's bit i and lane i's bit k change places, for all of a warp.
__device__ __forceinline__ unsigned turned(unsigned word, int lane) {
    unsigned mask = 0xffffu;
#pragma unroll
    for (int apart = 16; apart; apart /= 2, mask ^= mask << apart) {
        const unsigned other = __shfl_xor_sync(~0u, word, apart);
        word = lane & apart ? (word & ~mask) | (other >> apart & mask) : (word & mask) | (other & mask) << apart;
    }
    return word;
}
// Planes of the bits of 128 samples a warp; lane k writes plane k of every fourth sample from each of the first four.
__global__ void __launch_bounds__(256) planes(const uint4 *__restrict__ samples, uint4 *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32;
    const uint4 own = samples[i];
    out[i] = make_uint4(turned(own.x, lane), turned(own.y, lane), turned(own.z, lane), turned(own.w, lane));
}

Study bits("sound_planes_of_bits", "compression", 1 << 25, "planes of bits of 33554432 samples of 32 bits, 128 samples at a time", "", {}, [](Buffers &b, long n) -> Sides {
    const uint4 *samples = reinterpret_cast<const uint4 *>(b.random<unsigned>(n, 0.0, 4294967296.0));
    uint4 *out = reinterpret_cast<uint4 *>(b.output<unsigned>(n));
    b.tolerance = 0.0;
    return {{"sound", launch(planes, n / 1024, 256, 0, samples, out)}};
});

}  // namespace
