// Markets, materials, hearts, galaxies, detectors and reservoirs.
#include <algorithm>

#include <mma.h>

#include "../pairs/pair.cuh"

namespace {

// --- what a book of options loses in each scenario ---

constexpr int FACTORS = 96;

// For each factor its delta and half of its gamma.
__device__ __forceinline__ float moved(float2 greeks, float shock) { return shock * (greeks.x + greeks.y * shock); }
__global__ void __launch_bounds__(128) scenario_losses(const float *__restrict__ shocks, const float2 *__restrict__ greeks, float *__restrict__ out, int scenarios) {
    const int scenario = blockIdx.x * 128 + threadIdx.x;
    if (scenario >= scenarios) return;
    float value = 0.0f;
    for (int k = 0; k < FACTORS; k++) value += moved(greeks[k], shocks[scenario * FACTORS + k]);
    out[scenario] = value;
}
__global__ void __launch_bounds__(128) scenario_losses_warps(const float *__restrict__ shocks, const float2 *__restrict__ greeks, float *__restrict__ out, int scenarios) {
    const int lane = threadIdx.x % 32, scenario = (blockIdx.x * 128 + threadIdx.x) / 32;
    if (scenario >= scenarios) return;
    float value = 0.0f;
#pragma unroll
    for (int k = lane; k < FACTORS; k += 32) value += moved(greeks[k], shocks[scenario * FACTORS + k]);
    value = warp_sum(value);
    if (lane == 0) out[scenario] = value;
}
// Scenarios of one factor lie side by side.
__global__ void __launch_bounds__(128) scenario_losses_turned(const float *__restrict__ shocks, const float2 *__restrict__ greeks, float *__restrict__ out, int scenarios) {
    const int scenario = blockIdx.x * 128 + threadIdx.x;
    if (scenario >= scenarios) return;
    float value = 0.0f;
#pragma unroll 16
    for (int k = 0; k < FACTORS; k++) value += moved(greeks[k], shocks[k * scenarios + scenario]);
    out[scenario] = value;
}
__global__ void turn_shocks(const float *from, float *to, int scenarios) {
    const int k = blockIdx.x * 128 + threadIdx.x;
    if (k < scenarios * FACTORS) to[k % FACTORS * scenarios + k / FACTORS] = from[k];
}

Study scenarios("scenario_losses_a_scenario_a_thread", "finance", 262144, "what a book of options gains or loses in 262144 scenarios of 96 factors, by delta and gamma",
    "a thread walks along its scenario's factors: lanes are 384 bytes apart",
    {{"warps", "a warp a scenario", {"uncoalesced_access"}}, {"turned", "shocks stored factor by factor", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *shocks = b.random<float>(n * FACTORS, -0.05, 0.05);
        const float2 *greeks = reinterpret_cast<const float2 *>(b.random<float>(FACTORS * 2, 0.0, 100.0));
        float *turned = b.allocate<float>(n * FACTORS), *out = b.output<float>(n);
        launch(turn_shocks, blocks(n * FACTORS, 128), 128, 0, shocks, turned, n)();
        return {{"flawed", launch(scenario_losses, blocks(n, 128), 128, 0, shocks, greeks, out, n)}, {"warps", launch(scenario_losses_warps, blocks(n, 4), 128, 0, shocks, greeks, out, n)},
            {"turned", launch(scenario_losses_turned, blocks(n, 128), 128, 0, turned, greeks, out, n)}};
    });

// --- forces of a plate whose points are bonded to all within three cells ---

constexpr int REACH = 3, PLATE_X = 32, PLATE_Y = 8, DOWN = 4;

// A bond's force for small displacements: along the bond, by what it grows.
__device__ __forceinline__ void add_bond(float2 &force, float2 own, float2 other, int dx, int dy) {
    const float length = sqrtf(static_cast<float>(dx * dx + dy * dy)), stiffness = 1.0f / (length * length * length);
    const float growth = (other.x - own.x) * (dx * stiffness) + (other.y - own.y) * (dy * stiffness);
    force.x += growth * dx, force.y += growth * dy;
}
__device__ __forceinline__ constexpr bool bonded(int dx, int dy) { return (dx || dy) && dx * dx + dy * dy <= REACH * REACH; }

// The plate has a margin of REACH points on each side.
__global__ void __launch_bounds__(PLATE_X *PLATE_Y) plate_forces(const float2 *__restrict__ moved, float2 *__restrict__ forces, int side) {
    const int x = blockIdx.x * PLATE_X + threadIdx.x, y = blockIdx.y * PLATE_Y + threadIdx.y, pitch = side + 2 * REACH;
    const float2 *at = moved + (y + REACH) * pitch + x + REACH;
    const float2 own = *at;
    float2 force = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int dy = -REACH; dy <= REACH; dy++)
#pragma unroll
        for (int dx = -REACH; dx <= REACH; dx++)
            if (bonded(dx, dy)) add_bond(force, own, at[dy * pitch + dx], dx, dy);
    forces[y * side + x] = force;
}
__global__ void __launch_bounds__(PLATE_X *PLATE_Y) plate_forces_tile(const float2 *__restrict__ moved, float2 *__restrict__ forces, int side) {
    constexpr int WIDE = PLATE_X + 2 * REACH, TALL = PLATE_Y + 2 * REACH;
    __shared__ float2 tile[TALL][WIDE];
    const int pitch = side + 2 * REACH, x0 = blockIdx.x * PLATE_X, y0 = blockIdx.y * PLATE_Y;
    for (int k = threadIdx.y * PLATE_X + threadIdx.x; k < TALL * WIDE; k += PLATE_X * PLATE_Y) tile[k / WIDE][k % WIDE] = moved[(y0 + k / WIDE) * pitch + x0 + k % WIDE];
    __syncthreads();
    const int x = threadIdx.x + REACH, y = threadIdx.y + REACH;
    const float2 own = tile[y][x];
    float2 force = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int dy = -REACH; dy <= REACH; dy++)
#pragma unroll
        for (int dx = -REACH; dx <= REACH; dx++)
            if (bonded(dx, dy)) add_bond(force, own, tile[y + dy][x + dx], dx, dy);
    forces[(y0 + threadIdx.y) * side + x0 + threadIdx.x] = force;
}
// Four points below one another a thread: a neighbour once loaded serves all that it is bonded to.
__global__ void __launch_bounds__(PLATE_X *PLATE_Y) plate_forces_four(const float2 *__restrict__ moved, float2 *__restrict__ forces, int side) {
    const int x = blockIdx.x * PLATE_X + threadIdx.x, y = (blockIdx.y * PLATE_Y + threadIdx.y) * DOWN, pitch = side + 2 * REACH;
    const float2 *at = moved + (y + REACH) * pitch + x + REACH;
    float2 own[DOWN], force[DOWN];
#pragma unroll
    for (int k = 0; k < DOWN; k++) own[k] = at[k * pitch], force[k] = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int row = -REACH; row < DOWN + REACH; row++)
#pragma unroll
        for (int dx = -REACH; dx <= REACH; dx++) {
            const float2 other = at[row * pitch + dx];
#pragma unroll
            for (int k = 0; k < DOWN; k++)
                if (bonded(dx, row - k)) add_bond(force[k], own[k], other, dx, row - k);
        }
#pragma unroll
    for (int k = 0; k < DOWN; k++) forces[(y + k) * side + x] = force[k];
}

Study plate("plate_forces_28_bonds_from_memory", "materials", 2048, "forces on 2048 x 2048 points of a plate, each bonded to the 28 within three cells",
    "each point reads all that it is bonded to from memory, which its neighbours read too",
    {{"tile", "a tile with its margin in shared memory", {"redundant_loads"}}, {"four", "four points a thread, which share what they load", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const float2 *moved = reinterpret_cast<const float2 *>(b.random<float>((n + 2 * REACH) * (n + 2 * REACH) * 2, -0.01, 0.01));
        float2 *forces = reinterpret_cast<float2 *>(b.output<float>(n * n * 2));
        const dim3 block(PLATE_X, PLATE_Y), grid(n / PLATE_X, n / PLATE_Y), fewer(n / PLATE_X, n / (PLATE_Y * DOWN));
        return {{"flawed", launch(plate_forces, grid, block, 0, moved, forces, n)}, {"tile", launch(plate_forces_tile, grid, block, 0, moved, forces, n)}, {"four", launch(plate_forces_four, fewer, block, 0, moved, forces, n)}};
    });

// --- what a bond is worth along paths of the short rate ---

// About normal: the sum of four even numbers.
__device__ __forceinline__ float shock_of(unsigned path, unsigned step) {
    const unsigned a = hash(path * 512u + step), z = a * 0x9e3779b9u;
    return static_cast<float>((a & 0xffff) + (a >> 16) + (z & 0xffff) + (z >> 16)) * (1.7320508f / 65536.0f) - 3.4641016f;
}
__global__ void __launch_bounds__(256) rate_paths(const float *__restrict__ rates, float *__restrict__ out, int paths, int steps) {
    const int path = blockIdx.x * 256 + threadIdx.x;
    if (path >= paths) return;
    const double dt = 1.0 / 64.0, root = 0.125;
    double rate = rates[path], sum = 0.0;
    for (int k = 0; k < steps; k++) {
        sum += rate * dt;
        rate += 0.6 * (0.04 - rate) * dt + 0.12 * sqrt(fmax(rate, 0.0)) * root * shock_of(path, k);
    }
    out[path] = exp(-sum);
}
// Sum is the type of what is summed.
template <typename Sum>
__global__ void __launch_bounds__(256) rate_paths_floats(const float *__restrict__ rates, float *__restrict__ out, int paths, int steps) {
    const int path = blockIdx.x * 256 + threadIdx.x;
    if (path >= paths) return;
    const float dt = 1.0f / 64.0f, root = 0.125f;
    float rate = rates[path];
    Sum sum = 0;
    for (int k = 0; k < steps; k++) {
        sum += rate * dt;
        rate += 0.6f * (0.04f - rate) * dt + 0.12f * sqrtf(fmaxf(rate, 0.0f)) * root * shock_of(path, k);
    }
    out[path] = expf(static_cast<float>(-sum));
}

Study rates("short_rate_paths_in_double", "finance", 524288, "what a bond of two years is worth along 524288 paths of a short rate that returns to its mean",
    "literals and states of the paths are double",
    {{"floats", "all in single precision", {"double_precision"}}, {"sums", "the rate in single precision, its sum alone in double", {"double_precision"}}},
    [](Buffers &b, long n) -> Sides {
        const float *start = b.random<float>(n, 0.01, 0.08);
        float *out = b.output<float>(n);
        return {{"flawed", launch(rate_paths, blocks(n, 256), 256, 0, start, out, n, 128)}, {"floats", launch(rate_paths_floats<float>, blocks(n, 256), 256, 0, start, out, n, 128)},
            {"sums", launch(rate_paths_floats<double>, blocks(n, 256), 256, 0, start, out, n, 128)}};
    });

// --- gates of the cells of a heart ---

constexpr int GATES = 6, LEVELS = 3072, GATE_CONSTANTS = 14;
constexpr float LOWEST = -110.0f, FINE = 0.05f;

// A rate's seven numbers as they are published: of both exponentials, the slope and the offset.
__device__ __forceinline__ float gate_rate(const float *c, float volts) {
    const float below = expf(c[5] * (volts + c[2])) + c[6];
    return below == 0.0f ? 0.0f : (c[0] * expf(c[1] * (volts + c[2])) + c[3] * (volts + c[4])) / below;
}
__device__ __forceinline__ float gate_rate_fast(const float *c, float volts) {
    const float below = __expf(c[5] * (volts + c[2])) + c[6];
    return below == 0.0f ? 0.0f : __fdividef(c[0] * __expf(c[1] * (volts + c[2])) + c[3] * (volts + c[4]), below);
}
__device__ __forceinline__ float current(const float *gate, float volts) {
    return 4.0f * gate[1] * gate[1] * gate[1] * gate[2] * gate[3] * (volts - 50.0f) * 0.1f + 0.09f * gate[4] * gate[5] * (volts + 83.0f) + 0.8f * gate[0] * (volts + 77.0f);
}
// At rest along most of the fibre, a wave in its middle.
__device__ __forceinline__ float resting(int cell, int cells) {
    const float from = (cell - 0.5f * cells) / (0.1f * cells);
    return -84.0f + 90.0f * expf(-from * from);
}
__device__ __forceinline__ void start_gates(float *gate) {
    for (int g = 0; g < GATES; g++) gate[g] = 0.1f + 0.1f * g;
}
__global__ void __launch_bounds__(128) heart_gates(const float *__restrict__ rates, float *__restrict__ out, int cells, int steps, float dt) {
    __shared__ float own[GATES][GATE_CONSTANTS];
    if (threadIdx.x < GATES * GATE_CONSTANTS) own[threadIdx.x / GATE_CONSTANTS][threadIdx.x % GATE_CONSTANTS] = rates[threadIdx.x];
    __syncthreads();
    const int cell = blockIdx.x * 128 + threadIdx.x;
    if (cell >= cells) return;
    float gate[GATES], volts = resting(cell, cells);
    start_gates(gate);
    for (int k = 0; k < steps; k++) {
#pragma unroll
        for (int g = 0; g < GATES; g++) {
            const float opening = gate_rate(own[g], volts), closing = gate_rate(own[g] + 7, volts), both = opening + closing;
            gate[g] = opening / both + (gate[g] - opening / both) * expf(-both * dt);
        }
        volts -= dt * current(gate, volts);
    }
    out[cell] = volts;
}
__global__ void __launch_bounds__(128) heart_gates_fast(const float *__restrict__ rates, float *__restrict__ out, int cells, int steps, float dt) {
    __shared__ float own[GATES][GATE_CONSTANTS];
    if (threadIdx.x < GATES * GATE_CONSTANTS) own[threadIdx.x / GATE_CONSTANTS][threadIdx.x % GATE_CONSTANTS] = rates[threadIdx.x];
    __syncthreads();
    const int cell = blockIdx.x * 128 + threadIdx.x;
    if (cell >= cells) return;
    float gate[GATES], volts = resting(cell, cells);
    start_gates(gate);
    for (int k = 0; k < steps; k++) {
#pragma unroll
        for (int g = 0; g < GATES; g++) {
            const float opening = gate_rate_fast(own[g], volts), both = opening + gate_rate_fast(own[g] + 7, volts), end = __fdividef(opening, both);
            gate[g] = end + (gate[g] - end) * __expf(-both * dt);
        }
        volts -= dt * current(gate, volts);
    }
    out[cell] = volts;
}
// Where each gate tends to and what is left of its distance after a step, for each twentieth of a millivolt.
__global__ void gate_table(const float *rates, float2 *table, float dt) {
    const int k = blockIdx.x * 128 + threadIdx.x;
    if (k >= LEVELS * GATES) return;
    const float *own = rates + k % GATES * GATE_CONSTANTS, volts = LOWEST + FINE * (k / GATES);
    const float opening = gate_rate(own, volts), both = opening + gate_rate(own + 7, volts);
    table[k] = make_float2(opening / both, expf(-both * dt));
}
__global__ void __launch_bounds__(128) heart_gates_table(const float4 *__restrict__ table, float *__restrict__ out, int cells, int steps, float dt) {
    const int cell = blockIdx.x * 128 + threadIdx.x;
    if (cell >= cells) return;
    float gate[GATES], volts = resting(cell, cells);
    start_gates(gate);
    for (int k = 0; k < steps; k++) {
        const float place = fminf(fmaxf((volts - LOWEST) * (1.0f / FINE), 0.0f), LEVELS - 2.0f);
        const int level = static_cast<int>(place);
        const float share = place - level;
        const float4 *low = table + level * (GATES / 2), *high = low + GATES / 2;
#pragma unroll
        for (int g = 0; g < GATES / 2; g++) {
            const float4 a = low[g], z = high[g];
            const float end = a.x + share * (z.x - a.x), left = a.y + share * (z.y - a.y), end2 = a.z + share * (z.z - a.z), left2 = a.w + share * (z.w - a.w);
            gate[2 * g] = end + (gate[2 * g] - end) * left;
            gate[2 * g + 1] = end2 + (gate[2 * g + 1] - end2) * left2;
        }
        volts -= dt * current(gate, volts);
    }
    out[cell] = volts;
}

Study heart("heart_gates_thirty_exponentials_a_step", "medicine", 131072, "a hundred steps of six gates and the voltage of 131072 cells along a fibre of the heart",
    "both rates of each gate and what it keeps of its distance: thirty precise exponentials and two dozen quotients a step",
    {{"fast", "fast exponentials and quotients", {"expensive_math"}}, {"table", "a table by voltage, read between two of its rows", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const float dt = 0.01f;
        const std::vector<float> published = {0.0005f, 0.083f, 50.0f, 0.0f, 0.0f, 0.057f, 1.0f, 0.0013f, -0.06f, 20.0f, 0.0f, 0.0f, -0.04f, 1.0f,  //
            0.0f, 0.0f, 47.013f, -1.0f, 47.013f, -0.1f, -1.0f, 40.0f, -0.056f, 72.0f, 0.0f, 0.0f, 0.0f, 0.0f,                                  //
            0.126f, -0.25f, 77.0f, 0.0f, 0.0f, 0.0f, 0.0f, 1.7f, 0.0f, 22.5f, 0.0f, 0.0f, -0.082f, 1.0f,                                       //
            0.055f, -0.25f, 78.0f, 0.0f, 0.0f, -0.2f, 1.0f, 0.3f, 0.0f, 32.0f, 0.0f, 0.0f, -0.1f, 1.0f,                                        //
            0.095f, -0.01f, -5.0f, 0.0f, 0.0f, -0.072f, 1.0f, 0.07f, -0.017f, 44.0f, 0.0f, 0.0f, 0.05f, 1.0f,                                  //
            0.012f, -0.008f, 28.0f, 0.0f, 0.0f, 0.15f, 1.0f, 0.0065f, -0.02f, 30.0f, 0.0f, 0.0f, -0.2f, 1.0f};
        const float *rates = b.copy(published);
        float4 *table = reinterpret_cast<float4 *>(b.allocate<float>(LEVELS * GATES * 2));
        float *out = b.output<float>(n);
        launch(gate_table, blocks(LEVELS * GATES, 128), 128, 0, rates, reinterpret_cast<float2 *>(table), dt)();
        b.tolerance = 2e-3;
        return {{"flawed", launch(heart_gates, blocks(n, 128), 128, 0, rates, out, n, 100, dt)}, {"fast", launch(heart_gates_fast, blocks(n, 128), 128, 0, rates, out, n, 100, dt)},
            {"table", launch(heart_gates_table, blocks(n, 128), 128, 0, table, out, n, 100, dt)}};
    });

// --- the deepest fall of each fund ---

constexpr int PARTS = 16, AHEAD = 8;

struct Fall {
    float peak = 0.0f, low = 3.0e38f, deepest = 0.0f;
    __device__ __forceinline__ void see(float price) {
        peak = fmaxf(peak, price), low = fminf(low, price);
        deepest = fmaxf(deepest, (peak - price) / peak);
    }
};
// A fund that was closed has prices of nought from then on.
__global__ void __launch_bounds__(64) deepest_falls(const float *__restrict__ prices, float *__restrict__ out, int funds, int days) {
    const int fund = blockIdx.x * 64 + threadIdx.x;
    if (fund >= funds) return;
    Fall fall;
    for (int day = 0; day < days; day++) {
        const float price = prices[static_cast<size_t>(day) * funds + fund];
        if (price <= 0.0f) break;
        fall.see(price);
    }
    out[fund] = fall.deepest;
}
__global__ void __launch_bounds__(64) deepest_falls_ahead(const float *__restrict__ prices, float *__restrict__ out, int funds, int days) {
    const int fund = blockIdx.x * 64 + threadIdx.x;
    if (fund >= funds) return;
    Fall fall;
    for (int day = 0; day < days; day += AHEAD) {
        float next[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) next[k] = prices[static_cast<size_t>(day + k) * funds + fund];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (next[k] > 0.0f) fall.see(next[k]);
        if (next[AHEAD - 1] <= 0.0f) break;
    }
    out[fund] = fall.deepest;
}
// Sixteen parts of the time at once, joined in their order.
__global__ void __launch_bounds__(32 * PARTS) deepest_falls_parts(const float *__restrict__ prices, float *__restrict__ out, int funds, int days) {
    __shared__ float peaks[PARTS][32], lows[PARTS][32], deepests[PARTS][32];
    const int fund = blockIdx.x * 32 + threadIdx.x, length = days / PARTS;
    Fall fall;
    if (fund < funds)
        for (int day = threadIdx.y * length; day < (threadIdx.y + 1) * length; day++) {
            const float price = prices[static_cast<size_t>(day) * funds + fund];
            if (price <= 0.0f) break;
            fall.see(price);
        }
    peaks[threadIdx.y][threadIdx.x] = fall.peak, lows[threadIdx.y][threadIdx.x] = fall.low, deepests[threadIdx.y][threadIdx.x] = fall.deepest;
    __syncthreads();
    if (threadIdx.y || fund >= funds) return;
    float peak = fall.peak, deepest = fall.deepest;
    for (int k = 1; k < PARTS; k++) {
        const float low = lows[k][threadIdx.x];
        if (low < peak) deepest = fmaxf(deepest, (peak - low) / peak);
        deepest = fmaxf(deepest, deepests[k][threadIdx.x]), peak = fmaxf(peak, peaks[k][threadIdx.x]);
    }
    out[fund] = deepest;
}
__global__ void fund_prices(float *prices, int funds, int days) {
    const int k = blockIdx.x * 128 + threadIdx.x;
    if (k >= funds * days) return;
    const unsigned closed = days / 2 + hash(k % funds) % (days * 4);
    prices[k] = k / funds < closed ? 50.0f + hash(k % funds) % 256 + (hash(k) >> 20) * 0.01f : 0.0f;
}

Study falls("deepest_falls_one_price_in_flight", "finance", 16384, "the deepest fall of 16384 funds in 1024 days, until they were closed",
    "whether a fund was closed is asked before the next day's price is loaded: one load in flight in the few threads there are",
    {{"ahead", "prices of eight days loaded before the first is looked at", {"memory_latency"}}, {"parts", "sixteen parts of the time by threads of their own", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int days = 1024;
        float *prices = b.allocate<float>(n * days), *out = b.output<float>(n);
        launch(fund_prices, blocks(n * days, 128), 128, 0, prices, n, days)();
        return {{"flawed", launch(deepest_falls, blocks(n, 64), 64, 0, prices, out, n, days)}, {"ahead", launch(deepest_falls_ahead, blocks(n, 64), 64, 0, prices, out, n, days)},
            {"parts", launch(deepest_falls_parts, blocks(n, 32), dim3(32, PARTS), 0, prices, out, n, days)}};
    });

// --- how many galaxies are how far from how many points drawn at random ---

constexpr int SHELLS = 32, NEAR = 64, SKY = 128;
constexpr float FARTHEST = 0.4f;

__device__ __forceinline__ int shell_of(float4 a, float4 z) {
    const float x = a.x - z.x, y = a.y - z.y, height = a.z - z.z;
    return static_cast<int>(sqrtf(x * x + y * y + height * height) * (SHELLS / FARTHEST));
}
__global__ void __launch_bounds__(SKY) galaxy_pairs(const float4 *__restrict__ galaxies, const float4 *__restrict__ drawn, unsigned *__restrict__ counts) {
    __shared__ float4 tile[NEAR];
    if (threadIdx.x < NEAR) tile[threadIdx.x] = drawn[blockIdx.y * NEAR + threadIdx.x];
    __syncthreads();
    const float4 own = galaxies[blockIdx.x * SKY + threadIdx.x];
    for (int k = 0; k < NEAR; k++) {
        const int shell = shell_of(own, tile[k]);
        if (shell < SHELLS) atomicAdd(counts + shell, 1u);
    }
}
__global__ void __launch_bounds__(SKY) galaxy_pairs_shared(const float4 *__restrict__ galaxies, const float4 *__restrict__ drawn, unsigned *__restrict__ counts) {
    __shared__ float4 tile[NEAR];
    __shared__ unsigned own_counts[SHELLS];
    if (threadIdx.x < NEAR) tile[threadIdx.x] = drawn[blockIdx.y * NEAR + threadIdx.x];
    if (threadIdx.x < SHELLS) own_counts[threadIdx.x] = 0;
    __syncthreads();
    const float4 own = galaxies[blockIdx.x * SKY + threadIdx.x];
    for (int k = 0; k < NEAR; k++) {
        const int shell = shell_of(own, tile[k]);
        if (shell < SHELLS) atomicAdd(own_counts + shell, 1u);
    }
    __syncthreads();
    if (threadIdx.x < SHELLS && own_counts[threadIdx.x]) atomicAdd(counts + threadIdx.x, own_counts[threadIdx.x]);
}
// A thread counts in bytes of its own, of which four lie in a word: 64 points at most are counted.
__global__ void __launch_bounds__(SKY) galaxy_pairs_bytes(const float4 *__restrict__ galaxies, const float4 *__restrict__ drawn, unsigned *__restrict__ counts) {
    __shared__ float4 tile[NEAR];
    __shared__ unsigned strips[SHELLS / 4][SKY];
    if (threadIdx.x < NEAR) tile[threadIdx.x] = drawn[blockIdx.y * NEAR + threadIdx.x];
    for (int k = 0; k < SHELLS / 4; k++) strips[k][threadIdx.x] = 0;
    __syncthreads();
    const float4 own = galaxies[blockIdx.x * SKY + threadIdx.x];
    for (int k = 0; k < NEAR; k++) {
        const int shell = shell_of(own, tile[k]);
        if (shell < SHELLS) strips[shell / 4][threadIdx.x] += 1u << shell % 4 * 8;
    }
    __syncthreads();
    // Sixteen threads a word of four shells, eight words.
    const int word = threadIdx.x / 16;
    unsigned even = 0, odd = 0;
    for (int k = threadIdx.x % 16; k < SKY; k += 16) {
        const unsigned four = strips[word][k];
        even += four & 0xff00ff, odd += four >> 8 & 0xff00ff;
    }
    for (int offset = 8; offset; offset /= 2) even += __shfl_xor_sync(~0u, even, offset), odd += __shfl_xor_sync(~0u, odd, offset);
    if (threadIdx.x % 16 == 0) {
        atomicAdd(counts + word * 4, even & 0xffff), atomicAdd(counts + word * 4 + 2, even >> 16);
        atomicAdd(counts + word * 4 + 1, odd & 0xffff), atomicAdd(counts + word * 4 + 3, odd >> 16);
    }
}

Study galaxies("galaxy_pairs_an_atomic_each", "astronomy", 4096, "how many of 4096 galaxies and 2048 points drawn at random are in each of 32 ranges of distance",
    "each pair that is near enough adds one to its range in global memory",
    {{"shared", "a block's counts in shared memory", {"global_atomics"}}, {"bytes", "a thread's counts as bytes of its own", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const float4 *list = reinterpret_cast<const float4 *>(b.random<float>(n * 4, 0.0, 1.0)), *drawn = reinterpret_cast<const float4 *>(b.random<float>(n * 2, 0.0, 1.0));
        unsigned *counts = b.output<unsigned>(SHELLS, true);
        const dim3 grid(n / SKY, n / 2 / NEAR);
        return {{"flawed", launch(galaxy_pairs, grid, SKY, 0, list, drawn, counts)}, {"shared", launch(galaxy_pairs_shared, grid, SKY, 0, list, drawn, counts)}, {"bytes", launch(galaxy_pairs_bytes, grid, SKY, 0, list, drawn, counts)}};
    });

// --- energy left in each layer of a detector ---

constexpr int LAYERS = 12;

__global__ void __launch_bounds__(256) layer_energies(const float4 *__restrict__ energies, const uchar4 *__restrict__ layers, float *__restrict__ out, int fours) {
    __shared__ float sums[LAYERS];
    if (threadIdx.x < LAYERS) sums[threadIdx.x] = 0.0f;
    __syncthreads();
    for (int k = blockIdx.x * 256 + threadIdx.x; k < fours; k += gridDim.x * 256) {
        const float4 energy = energies[k];
        const uchar4 layer = layers[k];
        atomicAdd(sums + layer.x, energy.x);
        atomicAdd(sums + layer.y, energy.y);
        atomicAdd(sums + layer.z, energy.z);
        atomicAdd(sums + layer.w, energy.w);
    }
    __syncthreads();
    if (threadIdx.x < LAYERS) atomicAdd(out + threadIdx.x, sums[threadIdx.x]);
}
__global__ void __launch_bounds__(256) layer_energies_strips(const float4 *__restrict__ energies, const uchar4 *__restrict__ layers, float *__restrict__ out, int fours) {
    __shared__ float strips[LAYERS][256];
    const int t = threadIdx.x;
    for (int k = 0; k < LAYERS; k++) strips[k][t] = 0.0f;
    for (int k = blockIdx.x * 256 + t; k < fours; k += gridDim.x * 256) {
        const float4 energy = energies[k];
        const uchar4 layer = layers[k];
        strips[layer.x][t] += energy.x;
        strips[layer.y][t] += energy.y;
        strips[layer.z][t] += energy.z;
        strips[layer.w][t] += energy.w;
    }
    __syncthreads();
    for (int k = t / 32; k < LAYERS; k += 8) {
        float sum = 0.0f;
        for (int from = t % 32; from < 256; from += 32) sum += strips[k][from];
        sum = warp_sum(sum);
        if (t % 32 == 0) atomicAdd(out + k, sum);
    }
}
__global__ void __launch_bounds__(256) layer_energies_registers(const float4 *__restrict__ energies, const uchar4 *__restrict__ layers, float *__restrict__ out, int fours) {
    __shared__ float warps[LAYERS][8];
    const int t = threadIdx.x;
    float sums[LAYERS] = {};
    for (int k = blockIdx.x * 256 + t; k < fours; k += gridDim.x * 256) {
        const float4 energy = energies[k];
        const uchar4 layer = layers[k];
#pragma unroll
        for (int l = 0; l < LAYERS; l++) {
            sums[l] += layer.x == l ? energy.x : 0.0f;
            sums[l] += layer.y == l ? energy.y : 0.0f;
            sums[l] += layer.z == l ? energy.z : 0.0f;
            sums[l] += layer.w == l ? energy.w : 0.0f;
        }
    }
#pragma unroll
    for (int l = 0; l < LAYERS; l++) {
        const float sum = warp_sum(sums[l]);
        if (t % 32 == 0) warps[l][t / 32] = sum;
    }
    __syncthreads();
    if (t >= LAYERS) return;
    float sum = 0.0f;
    for (int k = 0; k < 8; k++) sum += warps[t][k];
    atomicAdd(out + t, sum);
}

Study detector("layer_energies_added_in_shared", "physics", 1 << 21, "energy that 8388608 hits left in each of twelve layers of a detector",
    "each hit adds its energy to one of twelve sums in shared memory: a loop of compare and swap, in which lanes of one layer wait for one another",
    {{"strips", "twelve sums of its own for each thread in shared memory", {"shared_atomics"}}, {"registers", "twelve sums in registers, the layer compared with each", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const float4 *energies = reinterpret_cast<const float4 *>(b.random<float>(n * 4, 0.0, 2.0));
        const uchar4 *layers = reinterpret_cast<const uchar4 *>(b.random<unsigned char>(n * 4, 0.0, LAYERS));
        float *out = b.output<float>(LAYERS, true);
        const unsigned grid = std::min<long>(multiprocessors() * 8, blocks(n, 256));
        return {{"flawed", launch(layer_energies, grid, 256, 0, energies, layers, out, n)}, {"strips", launch(layer_energies_strips, grid, 256, 0, energies, layers, out, n)},
            {"registers", launch(layer_energies_registers, grid, 256, 0, energies, layers, out, n)}};
    });

// --- how much of each cell of a reservoir is vapour ---

constexpr int HALVINGS = 22;

__device__ __forceinline__ float4 volatilities(float pressure) { return make_float4(9.0f / pressure, 3.0f / pressure, 1.2f / pressure, 0.2f / pressure); }
__device__ __forceinline__ float surplus(float4 parts, float4 k, float vapour) {
    return parts.x * (k.x - 1.0f) / (1.0f + vapour * (k.x - 1.0f)) + parts.y * (k.y - 1.0f) / (1.0f + vapour * (k.y - 1.0f)) + parts.z * (k.z - 1.0f) / (1.0f + vapour * (k.z - 1.0f)) + parts.w * (k.w - 1.0f) / (1.0f + vapour * (k.w - 1.0f));
}
__device__ __forceinline__ float split(float4 parts, float4 k) {
    float low = 0.0f, high = 1.0f;
    for (int i = 0; i < HALVINGS; i++) {
        const float middle = 0.5f * (low + high);
        if (surplus(parts, k, middle) > 0.0f) low = middle;
        else high = middle;
    }
    return 0.5f * (low + high);
}
// Nought where all is liquid, one where all is vapour, between where both are.
__device__ __forceinline__ bool decided(float4 parts, float4 k, float &vapour) {
    vapour = parts.x * k.x + parts.y * k.y + parts.z * k.z + parts.w * k.w <= parts.x + parts.y + parts.z + parts.w ? 0.0f : 1.0f;
    return vapour == 0.0f || parts.x / k.x + parts.y / k.y + parts.z / k.z + parts.w / k.w <= parts.x + parts.y + parts.z + parts.w;
}
__global__ void __launch_bounds__(256) phase_splits(const float4 *__restrict__ parts, const float *__restrict__ pressures, float *__restrict__ out, int cells) {
    const int cell = blockIdx.x * 256 + threadIdx.x;
    if (cell >= cells) return;
    const float4 own = parts[cell], k = volatilities(pressures[cell]);
    float vapour;
    if (!decided(own, k, vapour)) vapour = split(own, k);
    out[cell] = vapour;
}
// Cells of the block in which both are found are put together first.
__global__ void __launch_bounds__(256) phase_splits_queue(const float4 *__restrict__ parts, const float *__restrict__ pressures, float *__restrict__ out, int cells) {
    __shared__ int count, queue[1024];
    const int t = threadIdx.x, first = blockIdx.x * 1024;
    if (t == 0) count = 0;
    __syncthreads();
    for (int cell = first + t; cell < min(first + 1024, cells); cell += 256) {
        float vapour;
        if (decided(parts[cell], volatilities(pressures[cell]), vapour)) out[cell] = vapour;
        else queue[atomicAdd(&count, 1)] = cell;
    }
    __syncthreads();
    for (int k = t; k < count; k += 256) out[queue[k]] = split(parts[queue[k]], volatilities(pressures[queue[k]]));
}
// Cells in an order in which those with both come first, as the last step of time left them.
__global__ void __launch_bounds__(256) phase_splits_ordered(const int *__restrict__ order, const float4 *__restrict__ parts, const float *__restrict__ pressures, float *__restrict__ out, int cells) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= cells) return;
    const int cell = order[i];
    const float4 own = parts[cell], k = volatilities(pressures[cell]);
    float vapour;
    if (!decided(own, k, vapour)) vapour = split(own, k);
    out[cell] = vapour;
}
// PLACES: how many cells with both there are by now, and how many others.
__global__ void order_cells(const float4 *parts, const float *pressures, int *places, int *order, int cells) {
    const int cell = blockIdx.x * 128 + threadIdx.x;
    if (cell >= cells) return;
    float vapour;
    if (decided(parts[cell], volatilities(pressures[cell]), vapour)) order[cells - 1 - atomicAdd(places + 1, 1)] = cell;
    else order[atomicAdd(places, 1)] = cell;
}

Study phases("phase_splits_both_phases_in_few_lanes", "geophysics", 1 << 20, "how much of what is in 1048576 cells of a reservoir is vapour, of four components",
    "in about one cell of five both phases are found, which takes 22 halvings: the other lanes of the warp wait",
    {{"queue", "a block puts such cells together before it splits them", {"branch_divergence"}}, {"ordered", "cells in an order in which such cells come first", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const float4 *parts = reinterpret_cast<const float4 *>(b.random<float>(n * 4, 0.05, 1.0));
        const float *pressures = b.random<float>(n, 0.5, 14.0);
        int *places = b.copy(std::vector<int>(2, 0)), *order = b.allocate<int>(n);
        float *out = b.output<float>(n);
        launch(order_cells, blocks(n, 128), 128, 0, parts, pressures, places, order, n)();
        return {{"flawed", launch(phase_splits, blocks(n, 256), 256, 0, parts, pressures, out, n)}, {"queue", launch(phase_splits_queue, blocks(n, 1024), 256, 0, parts, pressures, out, n)},
            {"ordered", launch(phase_splits_ordered, blocks(n, 256), 256, 0, order, parts, pressures, out, n)}};
    });

// --- how far two states of a simulation are apart ---

struct Distance {
    float sum = 0.0f, squares = 0.0f, most = 0.0f;
    __device__ __forceinline__ void see(float a, float z) {
        const float d = fabsf(a - z);
        sum += d, squares += d * d, most = fmaxf(most, d);
    }
};
// By all threads of a block of 256: into the sums of all blocks.
__device__ __forceinline__ void hand_over(Distance own, float *out) {
    __shared__ float warps[3][8];
    const int t = threadIdx.x;
    own.sum = warp_sum(own.sum), own.squares = warp_sum(own.squares), own.most = warp_max(own.most);
    if (t % 32 == 0) warps[0][t / 32] = own.sum, warps[1][t / 32] = own.squares, warps[2][t / 32] = own.most;
    __syncthreads();
    if (t) return;
    for (int k = 1; k < 8; k++) own.sum += warps[0][k], own.squares += warps[1][k], own.most = fmaxf(own.most, warps[2][k]);
    atomicAdd(out, own.sum), atomicAdd(out + 1, own.squares);
    atomicMax(reinterpret_cast<int *>(out + 2), __float_as_int(own.most));
}
__global__ void __launch_bounds__(256) state_distances(const float *__restrict__ a, const float *__restrict__ z, float *__restrict__ out, int count) {
    Distance own;
    for (int k = blockIdx.x * 256 + threadIdx.x; k < count; k += gridDim.x * 256) own.see(a[k], z[k]);
    hand_over(own, out);
}
__global__ void __launch_bounds__(256) state_distances_fours(const float4 *__restrict__ a, const float4 *__restrict__ z, float *__restrict__ out, int fours) {
    Distance own;
#pragma unroll 2
    for (int k = blockIdx.x * 256 + threadIdx.x; k < fours; k += gridDim.x * 256) {
        const float4 from = a[k], to = z[k];
        own.see(from.x, to.x), own.see(from.y, to.y), own.see(from.z, to.z), own.see(from.w, to.w);
    }
    hand_over(own, out);
}

Study states("state_distances_by_64_blocks", "HPC", 1 << 24, "sum, sum of squares and the largest of the differences of 16777216 cells in two states of a simulation",
    "a grid of 64 blocks, which was much once: half of the multiprocessors have none",
    {{"waves", "eight blocks for each multiprocessor there is", {"small_grid"}}, {"fours", "four blocks for each multiprocessor, four cells a load", {"small_grid", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *a = b.random<float>(n), *z = b.random<float>(n);
        float *out = b.output<float>(3, true);
        const unsigned each = multiprocessors();
        return {{"flawed", launch(state_distances, 64, 256, 0, a, z, out, n)}, {"waves", launch(state_distances, each * 8, 256, 0, a, z, out, n)},
            {"fours", launch(state_distances_fours, each * 4, 256, 0, reinterpret_cast<const float4 *>(a), reinterpret_cast<const float4 *>(z), out, n / 4)}};
    });

// --- how returns of shares move together ---

constexpr int SHARES = 64, SOME_DAYS = 32, PADDED = 72;

// A block 64 x 64 pairs of shares, a thread 4 x 4 of them.
__global__ void __launch_bounds__(256) return_covariances(const __half *__restrict__ returns, float *__restrict__ out, int shares, int days) {
    __shared__ __half rows[SOME_DAYS][SHARES], columns[SOME_DAYS][SHARES];
    const int t = threadIdx.x, x = t % 16, y = t / 16, row0 = blockIdx.y * SHARES, column0 = blockIdx.x * SHARES, place = t % 8 * 8;
    float sums[4][4] = {};
    for (int day = 0; day < days; day += SOME_DAYS) {
        const __half *from = returns + static_cast<size_t>(day + t / 8) * shares + place;
        *reinterpret_cast<uint4 *>(&rows[t / 8][place]) = *reinterpret_cast<const uint4 *>(from + row0);
        *reinterpret_cast<uint4 *>(&columns[t / 8][place]) = *reinterpret_cast<const uint4 *>(from + column0);
        __syncthreads();
        for (int k = 0; k < SOME_DAYS; k++) {
            float a[4], z[4];
            for (int i = 0; i < 4; i++) a[i] = __half2float(rows[k][y * 4 + i]), z[i] = __half2float(columns[k][x * 4 + i]);
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sums[i][j] += a[i] * z[j];
        }
        __syncthreads();
    }
    const float each = 1.0f / days;
    for (int i = 0; i < 4; i++)
        reinterpret_cast<float4 *>(out)[((row0 + y * 4 + i) * shares + column0) / 4 + x] = make_float4(sums[i][0] * each, sums[i][1] * each, sums[i][2] * each, sums[i][3] * each);
}
// The same tiles, each of eight warps 16 x 32 pairs on the tensor cores.
__global__ void __launch_bounds__(256) return_covariances_tiles(const __half *__restrict__ returns, float *__restrict__ out, int shares, int days) {
    using namespace nvcuda;
    __shared__ __align__(16) __half rows[SOME_DAYS][PADDED], columns[SOME_DAYS][PADDED];
    const int t = threadIdx.x, warp = t / 32, row0 = blockIdx.y * SHARES, column0 = blockIdx.x * SHARES, place = t % 8 * 8, down = warp / 2 * 16, across = warp % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2];
    for (int j = 0; j < 2; j++) wmma::fill_fragment(sums[j], 0.0f);
    for (int day = 0; day < days; day += SOME_DAYS) {
        const __half *from = returns + static_cast<size_t>(day + t / 8) * shares + place;
        *reinterpret_cast<uint4 *>(&rows[t / 8][place]) = *reinterpret_cast<const uint4 *>(from + row0);
        *reinterpret_cast<uint4 *>(&columns[t / 8][place]) = *reinterpret_cast<const uint4 *>(from + column0);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < SOME_DAYS; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::col_major> a;
            wmma::load_matrix_sync(a, &rows[k][down], PADDED);
#pragma unroll
            for (int j = 0; j < 2; j++) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> z;
                wmma::load_matrix_sync(z, &columns[k][across + j * 16], PADDED);
                wmma::mma_sync(sums[j], a, z, sums[j]);
            }
        }
        __syncthreads();
    }
    for (int j = 0; j < 2; j++) {
        for (int i = 0; i < sums[j].num_elements; i++) sums[j].x[i] *= 1.0f / days;
        wmma::store_matrix_sync(out + static_cast<size_t>(row0 + down) * shares + column0 + across + j * 16, sums[j], shares, wmma::mem_row_major);
    }
}
// A warp 32 x 32 pairs, whose returns come straight from memory.
__global__ void __launch_bounds__(128) return_covariances_direct(const __half *__restrict__ returns, float *__restrict__ out, int shares, int days) {
    using namespace nvcuda;
    const int warp = threadIdx.x / 32, row0 = blockIdx.y * SHARES + warp / 2 * 32, column0 = blockIdx.x * SHARES + warp % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) wmma::fill_fragment(sums[i][j], 0.0f);
#pragma unroll 2
    for (int day = 0; day < days; day += 16) {
        const __half *from = returns + static_cast<size_t>(day) * shares;
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::col_major> a[2];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> z[2];
        for (int i = 0; i < 2; i++) wmma::load_matrix_sync(a[i], from + row0 + i * 16, shares), wmma::load_matrix_sync(z[i], from + column0 + i * 16, shares);
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) wmma::mma_sync(sums[i][j], a[i], z[j], sums[i][j]);
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            for (int k = 0; k < sums[i][j].num_elements; k++) sums[i][j].x[k] *= 1.0f / days;
            wmma::store_matrix_sync(out + static_cast<size_t>(row0 + i * 16) * shares + column0 + j * 16, sums[i][j], shares, wmma::mem_row_major);
        }
}

Study covariances("return_covariances_halves_on_fma", "finance", 1536, "how the returns of 1536 shares move together in 2048 spells, kept as halves",
    "halves are widened and multiplied on the FMA pipe",
    {{"tiles", "the same tiles on the tensor cores", {"tensor_cores_idle"}}, {"direct", "32 x 32 a warp on the tensor cores, straight from memory", {"tensor_cores_idle"}}},
    [](Buffers &b, long n) -> Sides {
        const int days = 2048;
        const __half *returns = b.random<__half>(n * days, -1.0, 1.0);
        float *out = b.output<float>(n * n);
        b.tolerance = 1e-3;
        const dim3 grid(n / SHARES, n / SHARES);
        return {{"flawed", launch(return_covariances, grid, 256, 0, returns, out, n, days)}, {"tiles", launch(return_covariances_tiles, grid, 256, 0, returns, out, n, days)},
            {"direct", launch(return_covariances_direct, grid, 128, 0, returns, out, n, days)}};
    });

// --- what it is worth that a put may be exercised early, by trees of 31 steps ---

constexpr int LEAVES = 32, SPELL = 8;

// What a put holds at best and what it holds where it waits for its end.
struct Held {
    float best, waiting;
};
__device__ __forceinline__ Held held(Held down, Held up, float now, float chance) {
    const float discount = 0.999f;
    return {fmaxf(now, discount * (down.best + chance * (up.best - down.best))), discount * (down.waiting + chance * (up.waiting - down.waiting))};
}
__global__ void __launch_bounds__(128) early_exercise(const float4 *__restrict__ puts, float *__restrict__ out, int count, int steps) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const float4 put = puts[i];  // spot, strike, how far a step goes up, the chance that it does
    const float back = 1.0f / put.z, square = put.z * put.z;
    Held values[LEAVES];
    float low = put.x;
    for (int k = 0; k < steps; k++) low *= back;
    float spot = low;
    for (int k = 0; k <= steps; k++, spot *= square) values[k].best = values[k].waiting = fmaxf(put.y - spot, 0.0f);
    for (int step = steps - 1; step >= 0; step--) {
        low *= put.z, spot = low;
        for (int k = 0; k <= step; k++, spot *= square) values[k] = held(values[k], values[k + 1], put.y - spot, put.w);
    }
    out[i] = values[0].best - values[0].waiting;
}
// STEPS more steps of a tree which has NODES at most.
template <int NODES, int STEPS>
__device__ __forceinline__ void step_back(Held *values, float4 put, float square, float &low) {
#pragma unroll 1
    for (int step = 0; step < STEPS; step++) {
        low *= put.z;
        float spot = low;
#pragma unroll
        for (int k = 0; k < NODES; k++, spot *= square) values[k] = held(values[k], values[k + 1], put.y - spot, put.w);
    }
}
// Steps are known when it is compiled: values stay in registers, some beyond the tree are computed in vain.
__global__ void __launch_bounds__(128) early_exercise_registers(const float4 *__restrict__ puts, float *__restrict__ out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= count) return;
    const float4 put = puts[i];
    const float back = 1.0f / put.z, square = put.z * put.z;
    Held values[LEAVES];
    float low = put.x;
    for (int k = 0; k < LEAVES - 1; k++) low *= back;
    float spot = low;
#pragma unroll
    for (int k = 0; k < LEAVES; k++, spot *= square) values[k].best = values[k].waiting = fmaxf(put.y - spot, 0.0f);
    step_back<LEAVES - 1, SPELL>(values, put, square, low);
    step_back<LEAVES - 1 - SPELL, SPELL>(values, put, square, low);
    step_back<LEAVES - 1 - 2 * SPELL, SPELL>(values, put, square, low);
    step_back<LEAVES - 1 - 3 * SPELL, SPELL - 1>(values, put, square, low);
    out[i] = values[0].best - values[0].waiting;
}
// A lane a leaf.
__global__ void __launch_bounds__(128) early_exercise_warps(const float4 *__restrict__ puts, float *__restrict__ out, int count) {
    const int i = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (i >= count) return;
    const float4 put = puts[i];
    float spot = put.x * exp2f((2 * lane - (LEAVES - 1)) * log2f(put.z));
    Held value;
    value.best = value.waiting = fmaxf(put.y - spot, 0.0f);
#pragma unroll
    for (int step = 0; step < LEAVES - 1; step++) {
        const Held up = {__shfl_down_sync(~0u, value.best, 1), __shfl_down_sync(~0u, value.waiting, 1)};
        spot *= put.z;
        value = held(value, up, put.y - spot, put.w);
    }
    if (lane == 0) out[i] = value.best - value.waiting;
}

Study american("early_exercise_trees_in_local", "finance", 262144, "what it is worth that 262144 puts may be exercised early, by trees of 31 steps",
    "how many steps there are is known at run time alone: both values of each of the tree's leaves lie in local memory",
    {{"registers", "as many steps as the code was compiled for, values in registers", {"local_memory"}}, {"warps", "a warp a put, a lane a leaf, values by shuffles", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> list(n);
        for (unsigned i = 0; i < list.size(); i++) {
            const float u = hash(i) * 0x1p-32f, v = hash(i ^ 0x5bd1e995u) * 0x1p-32f;
            list[i] = make_float4(80.0f + 40.0f * u, 100.0f, 1.01f + 0.03f * v, 0.49f + 0.03f * u);
        }
        const float4 *puts = b.copy(list);
        float *out = b.output<float>(n);
        b.tolerance = 2e-3;
        return {{"flawed", launch(early_exercise, blocks(n, 128), 128, 0, puts, out, n, LEAVES - 1)}, {"registers", launch(early_exercise_registers, blocks(n, 128), 128, 0, puts, out, n)},
            {"warps", launch(early_exercise_warps, blocks(n, 4), 128, 0, puts, out, n)}};
    });

// --- a step in time from three slopes: without a flaw ---

__device__ __forceinline__ float stepped(float u, float now, float before, float first, float dt) { return u + dt * (23.0f * now - 16.0f * before + 5.0f * first); }
__global__ void __launch_bounds__(256) third_order_step(const float4 *__restrict__ states, const float4 *__restrict__ now, const float4 *__restrict__ before, const float4 *__restrict__ first, float4 *__restrict__ out, int fours, float dt) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= fours) return;
    const float4 u = states[k], a = now[k], b = before[k], c = first[k];
    out[k] = make_float4(stepped(u.x, a.x, b.x, c.x, dt), stepped(u.y, a.y, b.y, c.y, dt), stepped(u.z, a.z, b.z, c.z, dt), stepped(u.w, a.w, b.w, c.w, dt));
}

Study third_order("sound_third_order_step", "HPC", 1 << 21, "a step in time of 8388608 unknowns from their slopes now and twice before", "", {}, [](Buffers &b, long n) -> Sides {
    const auto fours = [&] { return reinterpret_cast<const float4 *>(b.random<float>(n * 4)); };
    const float4 *states = fours(), *now = fours(), *before = fours(), *first = fours();
    return {{"sound", launch(third_order_step, blocks(n, 256), 256, 0, states, now, before, first, reinterpret_cast<float4 *>(b.output<float>(n * 4)), n, 0.01f / 12.0f)}};
});

}  // namespace
