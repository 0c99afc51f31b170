// Nature: rain, porous rock, sinking dust, chords, particles. Each kernel but the sound one has one weakness and two ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- rain: autoconversion, accretion, evaporation and fall of drops, from powers of the rain water ---

struct Air {
    const float *cloud, *rain, *lack, *density;  // lack: of vapour until saturation
};
struct Rain {
    float *cloud, *rain, *speed;
};

__device__ __forceinline__ float fast_power(float x, float power) { return exp2f(power * __log2f(x)); }

struct LibraryPowers {
    float up, half, fall;
    __device__ __forceinline__ LibraryPowers(float rain, float density) : up(powf(rain, 0.875f)), half(powf(density * rain, 0.525f)), fall(powf(density * rain, 0.1364f)) {}
};
struct FastPowers {
    float up, half, fall;
    __device__ __forceinline__ FastPowers(float rain, float density) : up(fast_power(rain, 0.875f)), half(fast_power(density * rain, 0.525f)), fall(fast_power(density * rain, 0.1364f)) {}
};
// One logarithm for two powers; seven eighths by three roots.
struct SharedLogarithm {
    float up, half, fall;
    __device__ __forceinline__ SharedLogarithm(float rain, float density) {
        const float log = __log2f(density * rain), second = sqrtf(rain), fourth = sqrtf(second);
        up = second * fourth * sqrtf(fourth);
        half = exp2f(0.525f * log);
        fall = exp2f(0.1364f * log);
    }
};

template <typename Powers>
__global__ void __launch_bounds__(256) rain_rates(Air air, Rain out, float dt, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    const float cloud = air.cloud[i], rain = fmaxf(air.rain[i], 1e-6f), density = air.density[i];
    const Powers p(rain, density);
    const float formed = 0.001f * fmaxf(cloud - 0.0005f, 0.f), swept = 2.2f * cloud * p.up, gone = air.lack[i] * (1.6f + 124.9f * p.fall * p.up) * p.half / (5.4e5f * density);
    const float moved = fminf(dt * (formed + swept), cloud);
    out.cloud[i] = cloud - moved;
    out.rain[i] = fmaxf(rain + moved - dt * gone, 0.f);
    out.speed[i] = 36.34f * p.fall * rsqrtf(density);
}

Study rain("rain_rates_by_three_powers", "climate", 1 << 24, "water of clouds and rain and the speed of its fall after a step, in 16777216 cells",
    "three calls of the precise power function for each cell",
    {{"fast", "fast powers", {"expensive_math"}}, {"shared_logarithm", "one logarithm for two powers, roots for the third", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const Air air{b.random<float>(n, 0, 0.003), b.random<float>(n, 0, 0.004), b.random<float>(n, 0, 0.002), b.random<float>(n, 0.5, 1.2)};
        const Rain out{b.output<float>(n), b.output<float>(n), b.output<float>(n)};
        const int count = static_cast<int>(n);
        return {{"flawed", launch(rain_rates<LibraryPowers>, blocks(n, 256), 256, 0, air, out, 10.f, count)}, {"fast", launch(rain_rates<FastPowers>, blocks(n, 256), 256, 0, air, out, 10.f, count)},
            {"shared_logarithm", launch(rain_rates<SharedLogarithm>, blocks(n, 256), 256, 0, air, out, 10.f, count)}};
    });

// --- reactions in porous rock: a mineral dissolves where there is a pore ---

constexpr int SUBSTEPS = 12;

struct Rock {
    const unsigned char *pore;
    const float *acid, *mineral, *heat;
};

__device__ __forceinline__ float2 react(float acid, float mineral, float heat) {
    const float rate = 0.2f * __expf(-1.5f / heat);
    for (int step = 0; step < SUBSTEPS; step++) {
        const float dissolved = rate * acid * sqrtf(mineral) / (0.3f + acid);
        acid = fmaxf(acid - 0.5f * dissolved, 0.f) + 0.01f * __expf(-acid);
        mineral = fmaxf(mineral - 0.4f * dissolved, 0.f);
    }
    return make_float2(acid, mineral);
}

__global__ void __launch_bounds__(256) dissolve(Rock rock, float2 *__restrict__ out, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n || !rock.pore[i]) return;
    out[i] = react(rock.acid[i], rock.mineral[i], rock.heat[i]);
}
// The pores' places are listed once for all steps.
__global__ void __launch_bounds__(256) dissolve_listed(Rock rock, float2 *__restrict__ out, const int *__restrict__ pores, int count) {
    const int k = blockIdx.x * 256 + threadIdx.x;
    if (k >= count) return;
    const int i = pores[k];
    out[i] = react(rock.acid[i], rock.mineral[i], rock.heat[i]);
}
// A block gathers the pores of 2048 cells and shares them out.
__global__ void __launch_bounds__(256) dissolve_gathered(Rock rock, float2 *__restrict__ out, int n) {
    __shared__ unsigned short pores[2048];
    __shared__ int found;
    const int lane = threadIdx.x % 32, first = blockIdx.x * 2048;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const int cell = k * 256 + threadIdx.x;
        const bool is_pore = first + cell < n && rock.pore[first + cell];
        const unsigned all = __ballot_sync(~0u, is_pore);
        int at = 0;
        if (lane == 0) at = atomicAdd(&found, __popc(all));
        at = __shfl_sync(~0u, at, 0) + __popc(all & ((1u << lane) - 1));
        if (is_pore) pores[at] = static_cast<unsigned short>(cell);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < found; k += 256) {
        const int i = first + pores[k];
        out[i] = react(rock.acid[i], rock.mineral[i], rock.heat[i]);
    }
}

Study porous_rock("rock_reactions_lanes_without_pores", "geophysics", 192, "a mineral that dissolves in the pores of 192 x 192 x 192 cells of rock, a fifth of them pores, in twelve substeps",
    "a thread a cell: in most warps a few lanes work and the others wait",
    {{"listed", "a list of the pores' places", {"branch_divergence"}}, {"gathered", "each block gathers the pores of 2048 cells first", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const long cells = n * n * n;
        std::vector<unsigned char> pore(cells);
        std::vector<int> pores;
        for (long i = 0; i < cells; i++) {
            const unsigned grain = hash(static_cast<unsigned>(i / 3 % n + i / n / 4 % n * 1000 + i / n / n / 4 * 1000000));
            pore[i] = grain % 5 == 0 ? hash(static_cast<unsigned>(i)) % 8 != 0 : hash(static_cast<unsigned>(i)) % 40 == 0;
            if (pore[i]) pores.push_back(static_cast<int>(i));
        }
        const Rock rock{b.copy(pore), b.random<float>(cells, 0.1, 1), b.random<float>(cells, 0.2, 2), b.random<float>(cells, 0.8, 1.3)};
        auto out = reinterpret_cast<float2 *>(b.output<float>(2 * cells, true));
        const int count = static_cast<int>(cells), listed = static_cast<int>(pores.size());
        const int *list = b.copy(pores);
        return {{"flawed", launch(dissolve, blocks(count, 256), 256, 0, rock, out, count)}, {"listed", launch(dissolve_listed, blocks(listed, 256), 256, 0, rock, out, list, listed)},
            {"gathered", launch(dissolve_gathered, blocks(count, 2048), 256, 0, rock, out, count)}};
    });

// --- dust that sinks: from the top of each column down, what leaves a layer enters the next ---

struct Column {
    const float *density, *thickness, *speed;
    int columns, layers;
};

__device__ __forceinline__ float sink(float &flux, float dust, float density, float thickness, float speed, float dt) {
    const float share = dt * speed / thickness, mass = (dust * density * thickness + dt * flux) / (1.f + share);
    flux = mass * speed / thickness;
    return mass / (density * thickness);
}

__global__ void __launch_bounds__(128) sink_dust(Column c, const float *dust, float *after, float *ground, float dt) {
    const int x = blockIdx.x * 128 + threadIdx.x;
    if (x >= c.columns) return;
    float flux = 0.f;
    for (int z = 0; z < c.layers; z++) {
        const size_t at = static_cast<size_t>(z) * c.columns + x;
        after[at] = sink(flux, dust[at], c.density[at], c.thickness[at], c.speed[at], dt);
    }
    ground[x] = flux;
}
// Eight layers are loaded before the first of them is worked on.
__global__ void __launch_bounds__(128) sink_dust_eight(Column c, const float *__restrict__ dust, float *__restrict__ after, float *__restrict__ ground, float dt) {
    const int x = blockIdx.x * 128 + threadIdx.x;
    if (x >= c.columns) return;
    float flux = 0.f;
    for (int first = 0; first < c.layers; first += 8) {
        float d[8], r[8], t[8], v[8];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const size_t at = static_cast<size_t>(min(first + k, c.layers - 1)) * c.columns + x;
            d[k] = dust[at], r[k] = c.density[at], t[k] = c.thickness[at], v[k] = c.speed[at];
        }
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (first + k < c.layers) after[static_cast<size_t>(first + k) * c.columns + x] = sink(flux, d[k], r[k], t[k], v[k], dt);
    }
    ground[x] = flux;
}
// The next layer is loaded while this one is worked on, and blocks are of one warp.
__global__ void __launch_bounds__(32) sink_dust_ahead(Column c, const float *__restrict__ dust, float *__restrict__ after, float *__restrict__ ground, float dt) {
    const int x = blockIdx.x * 32 + threadIdx.x;
    if (x >= c.columns) return;
    constexpr int AHEAD = 4;
    float flux = 0.f, d[AHEAD], r[AHEAD], t[AHEAD], v[AHEAD];
    auto load = [&](int slot, int z) {
        const size_t at = static_cast<size_t>(min(z, c.layers - 1)) * c.columns + x;
        d[slot] = dust[at], r[slot] = c.density[at], t[slot] = c.thickness[at], v[slot] = c.speed[at];
    };
#pragma unroll
    for (int k = 0; k < AHEAD; k++) load(k, k);
    for (int first = 0; first < c.layers; first += AHEAD)
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            const float new_dust = sink(flux, d[k], r[k], t[k], v[k], dt);
            if (first + k < c.layers) {
                after[static_cast<size_t>(first + k) * c.columns + x] = new_dust;
                if (first + k == c.layers - 1) ground[x] = flux;
            }
            load(k, first + k + AHEAD);
        }
}

Study dust("sinking_dust_a_layer_at_a_time", "climate", 32768, "dust that sinks through 80 layers of 32768 columns, implicit, from the top down",
    "the loads of a layer wait until the layer above is stored: few bytes in flight",
    {{"eight", "eight layers loaded at once", {"memory_latency"}}, {"ahead", "four layers ahead in registers, blocks of one warp", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int layers = 80;
        const size_t all = static_cast<size_t>(n) * layers;
        const Column c{b.random<float>(all, 0.1, 1.2), b.random<float>(all, 100, 900), b.random<float>(all, 0.01, 2), static_cast<int>(n), layers};
        const float *dust = b.random<float>(all, 0, 1);
        float *after = b.output<float>(all), *ground = b.output<float>(n);
        return {{"flawed", launch(sink_dust, blocks(n, 128), 128, 0, c, dust, after, ground, 300.f)}, {"eight", launch(sink_dust_eight, blocks(n, 128), 128, 0, c, dust, after, ground, 300.f)},
            {"ahead", launch(sink_dust_ahead, blocks(n, 32), 32, 0, c, dust, after, ground, 300.f)}};
    });

// --- chords: the energy of each of twelve tones in every frame of a spectrum ---

constexpr int BINS = 2048, TONES = 12;

struct Spectra {
    const float2 *value;
    const unsigned char *tone;  // of each bin; TONES and above: none
};
__device__ __forceinline__ float energy(float2 v) { return v.x * v.x + v.y * v.y; }

__global__ void __launch_bounds__(256) chords(Spectra s, float *__restrict__ out) {
    __shared__ float tones[TONES];
    if (threadIdx.x < TONES) tones[threadIdx.x] = 0.f;
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += 256) {
        const unsigned tone = s.tone[bin];
        if (tone < TONES) atomicAdd(&tones[tone], energy(s.value[static_cast<size_t>(blockIdx.x) * BINS + bin]));
    }
    __syncthreads();
    if (threadIdx.x < TONES) out[blockIdx.x * TONES + threadIdx.x] = log1pf(tones[threadIdx.x]);
}
// Each lane has sums of its own in shared memory, one column of a warp's; no two threads meet.
__global__ void __launch_bounds__(256) chords_columns(Spectra s, float *__restrict__ out) {
    __shared__ float tones[TONES][256];
#pragma unroll
    for (int t = 0; t < TONES; t++) tones[t][threadIdx.x] = 0.f;
#pragma unroll
    for (int k = 0; k < BINS / 256; k++) {
        const unsigned tone = s.tone[k * 256 + threadIdx.x];
        const float e = energy(s.value[static_cast<size_t>(blockIdx.x) * BINS + k * 256 + threadIdx.x]);
        if (tone < TONES) tones[tone][threadIdx.x] += e;
    }
    __syncthreads();
    for (int t = threadIdx.x / 32; t < TONES; t += 8) {
        float sum = 0.f;
#pragma unroll
        for (int k = 0; k < 8; k++) sum += tones[t][k * 32 + threadIdx.x % 32];
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0) out[blockIdx.x * TONES + t] = log1pf(sum);
    }
}
// The frame's energies go to shared memory; a warp sums the bins of a tone, which are listed.
__global__ void __launch_bounds__(384) chords_listed(Spectra s, const unsigned short *__restrict__ bins, const int *__restrict__ begin, float *__restrict__ out) {
    __shared__ float energies[BINS];
    const int tone = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int bin = threadIdx.x; bin < BINS; bin += 384) energies[bin] = energy(s.value[static_cast<size_t>(blockIdx.x) * BINS + bin]);
    __syncthreads();
    float sum = 0.f;
    for (int k = begin[tone] + lane; k < begin[tone + 1]; k += 32) sum += energies[bins[k]];
    sum = warp_sum(sum);
    if (lane == 0) out[blockIdx.x * TONES + tone] = log1pf(sum);
}

Study chord_energies("chord_energies_atomics_on_twelve_tones", "sound", 8192, "energies of twelve tones in 8192 frames of 2048 complex numbers",
    "each bin adds its energy to one of twelve floats in shared memory by an atomic",
    {{"columns", "sums for each thread in shared memory, joined at the end", {"shared_atomics"}}, {"listed", "energies to shared memory, a warp sums a tone's listed bins", {"shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned char> tone(BINS);
        std::vector<int> begin(TONES + 1);
        std::vector<unsigned short> bins;
        for (int k = 0; k < BINS; k++) tone[k] = k < 6 ? 255 : static_cast<int>(lroundf(12.f * log2f(k * 5.383f / 440.f)) + 1200) % TONES;
        for (int t = 0; t < TONES; t++) {
            for (int k = 0; k < BINS; k++)
                if (tone[k] == t) bins.push_back(static_cast<unsigned short>(k));
            begin[t + 1] = static_cast<int>(bins.size());
        }
        std::vector<unsigned char> bytes(reinterpret_cast<const unsigned char *>(bins.data()), reinterpret_cast<const unsigned char *>(bins.data() + bins.size()));
        const Spectra s{reinterpret_cast<const float2 *>(b.random<float>(2 * n * BINS)), b.copy(tone)};
        auto list = reinterpret_cast<const unsigned short *>(b.copy(bytes));
        const int *first = b.copy(begin);
        float *out = b.output<float>(n * TONES);
        return {{"flawed", launch(chords, n, 256, 0, s, out)}, {"columns", launch(chords_columns, n, 256, 0, s, out)}, {"listed", launch(chords_listed, n, 384, 0, s, list, first, out)}};
    });

// --- a step of particles in a well: half a kick, a drift, a kick at the new place ---

__device__ __forceinline__ float pull(float x, float stiff) { return -stiff * x * (1.f - 0.1f * x * x); }
__device__ __forceinline__ void leap(float &x, float &v, float stiff, float dt) {
    v = fmaf(0.5f * dt, pull(x, stiff), v);
    x = fmaf(dt, v, x);
    v = fmaf(0.5f * dt, pull(x, stiff), v);
}

__global__ void __launch_bounds__(256) wells(const float4 *__restrict__ place, const float4 *__restrict__ speed, float4 *__restrict__ place_after, float4 *__restrict__ speed_after, float stiff, float dt, int quads) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= quads) return;
    float4 x = place[i], v = speed[i];
    leap(x.x, v.x, stiff, dt), leap(x.y, v.y, stiff, dt), leap(x.z, v.z, stiff, dt), leap(x.w, v.w, stiff, dt);
    place_after[i] = x;
    speed_after[i] = v;
}

Study particle_wells("sound_leapfrog_in_a_well", "physics", 1 << 25, "places and speeds of 33554432 coordinates after a step in an anharmonic well", "", {}, [](Buffers &b, long n) -> Sides {
    const float *x = b.random<float>(n), *v = b.random<float>(n);
    float *after = b.output<float>(n), *speed = b.output<float>(n);
    return {{"sound", launch(wells, blocks(n, 1024), 256, 0, reinterpret_cast<const float4 *>(x), reinterpret_cast<const float4 *>(v), reinterpret_cast<float4 *>(after), reinterpret_cast<float4 *>(speed), 1.5f, 0.01f, n / 4)}};
});

}  // namespace
