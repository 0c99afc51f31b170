// Radio telescopes, flows, spectra, dust, lattices, orbits, gravity and cellular automata.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- visibilities of a radio telescope spread over a grid ---

constexpr int WIDE = 1024, TAPS = 5;

struct Visibilities {
    const float4 *samples;  // place on the grid, complex value; samples of a pair of antennas follow one another
    const float *taps;      // of sixteen positions within a cell
    int count;
};
__device__ __forceinline__ void add_swapped(float2 *cell, float real, float imaginary) {
    auto *word = reinterpret_cast<unsigned long long *>(cell);
    unsigned long long seen = *word, before;
    do {
        before = seen;
        const float x = __uint_as_float(static_cast<unsigned>(before)) + real, y = __uint_as_float(static_cast<unsigned>(before >> 32)) + imaginary;
        seen = atomicCAS(word, before, static_cast<unsigned long long>(__float_as_uint(y)) << 32 | __float_as_uint(x));
    } while (seen != before);
}
struct Swapped {
    static __device__ void add(float2 *cell, float real, float imaginary) { add_swapped(cell, real, imaginary); }
};
struct Paired {
    static __device__ void add(float2 *cell, float real, float imaginary) { atomicAdd(cell, make_float2(real, imaginary)); }
};
template <typename Way>
__global__ void __launch_bounds__(128) grid_samples(const Visibilities v, float2 *__restrict__ grid) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= v.count) return;
    const float4 s = v.samples[i];
    const int x = static_cast<int>(s.x), y = static_cast<int>(s.y);
    const float *across = v.taps + static_cast<int>((s.x - x) * 16.0f) * TAPS, *down = v.taps + static_cast<int>((s.y - y) * 16.0f) * TAPS;
    for (int r = 0; r < TAPS; r++)
        for (int c = 0; c < TAPS; c++) {
            const float weight = across[c] * down[r];
            Way::add(grid + (y + r) * WIDE + x + c, weight * s.z, weight * s.w);
        }
}
// A thread follows one of 25 cells along 32 samples of a pair, and adds when the samples have moved on.
__global__ void __launch_bounds__(128) grid_tracks(const Visibilities v, float2 *__restrict__ grid) {
    const int thread = blockIdx.x * 128 + threadIdx.x, first = thread / 32 * 32, tap = thread % 32;
    if (first >= v.count || tap >= TAPS * TAPS) return;
    const int r = tap / TAPS, c = tap % TAPS;
    float2 sum = make_float2(0.0f, 0.0f);
    int place = -1;
#pragma unroll 4
    for (int k = 0; k < 32; k++) {
        const float4 s = v.samples[first + k];
        const int x = static_cast<int>(s.x), y = static_cast<int>(s.y), at = (y + r) * WIDE + x + c;
        const float weight = v.taps[static_cast<int>((s.x - x) * 16.0f) * TAPS + c] * v.taps[static_cast<int>((s.y - y) * 16.0f) * TAPS + r];
        if (at != place) {
            if (place >= 0) atomicAdd(&grid[place].x, sum.x), atomicAdd(&grid[place].y, sum.y);
            sum = make_float2(0.0f, 0.0f), place = at;
        }
        sum.x += weight * s.z, sum.y += weight * s.w;
    }
    atomicAdd(&grid[place].x, sum.x), atomicAdd(&grid[place].y, sum.y);
}

Study visibilities("visibilities_added_by_compare_and_swap", "astronomy", 1 << 18, "262144 visibilities of tracks spread over 5 x 5 cells of a grid of 1024 x 1024",
    "a complex sum is changed by compare and swap, again and again while neighbouring lanes change it, too",
    {{"paired", "one addition of two floats by the memory", {"global_atomics"}}, {"tracks", "a thread follows a cell along 32 samples and adds when they have moved on", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> samples(n);
        for (long i = 0; i < n; i++) {
            const unsigned pair = static_cast<unsigned>(i / 512), step = static_cast<unsigned>(i % 512);
            const float radius = 40.0f + hash(pair) % 400, angle = (hash(pair + 91) % 6283) * 1e-3f + step * 4e-4f;
            samples[i] = {512.0f + radius * cosf(angle), 512.0f + 0.8f * radius * sinf(angle), (hash(step * 7 + pair) >> 8) / 8388608.0f - 0.5f, (hash(step + pair * 3) >> 8) / 8388608.0f};
        }
        const Visibilities v{b.copy(samples), b.random<float>(16 * TAPS, 0.1, 1.0), static_cast<int>(n)};
        float *out = b.output<float>(2L * WIDE * WIDE, true);
        float2 *grid = reinterpret_cast<float2 *>(out);
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, 128), 128, 0, v, grid); };
        return {{"flawed", side(grid_samples<Swapped>)}, {"paired", side(grid_samples<Paired>)}, {"tracks", side(grid_tracks)}};
    });

// --- what a flow does to the bodies in it: momentum of the links between fluid and body ---

struct Links {
    const float4 *moments;  // three components; the fourth is not used
    const int *bodies;
    int count;
};
__global__ void __launch_bounds__(256) drag(const Links links, float *__restrict__ forces) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= links.count) return;
    const float4 m = links.moments[i];
    float *force = forces + links.bodies[i] * 3;
    atomicAdd(force, m.x), atomicAdd(force + 1, m.y), atomicAdd(force + 2, m.z);
}
__device__ __forceinline__ void add_for_warp(float *forces, int body, float4 m) {
    const int first = __shfl_sync(~0u, body, 0);
    if (__all_sync(~0u, body == first)) {
        m.x = warp_sum(m.x), m.y = warp_sum(m.y), m.z = warp_sum(m.z);
        if (threadIdx.x % 32 == 0) atomicAdd(forces + body * 3, m.x), atomicAdd(forces + body * 3 + 1, m.y), atomicAdd(forces + body * 3 + 2, m.z);
    } else atomicAdd(forces + body * 3, m.x), atomicAdd(forces + body * 3 + 1, m.y), atomicAdd(forces + body * 3 + 2, m.z);
}
__global__ void __launch_bounds__(256) drag_warps(const Links links, float *__restrict__ forces) {
    const int i = blockIdx.x * 256 + threadIdx.x, last = links.count - 1;
    float4 m = links.moments[::min(i, last)];
    if (i > last) m = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    add_for_warp(forces, links.bodies[::min(i, last)], m);
}
// A warp walks along 1024 links; a lane adds up while the body stays the same.
__global__ void __launch_bounds__(256) drag_walk(const Links links, float *__restrict__ forces) {
    const int warp = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32, end = ::min(links.count, (warp + 1) * 1024);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    int body = 0;
#pragma unroll 4
    for (int i = warp * 1024 + lane; i < end; i += 32) {
        const float4 m = links.moments[i];
        const int own = links.bodies[i];
        if (own != body) {
            if (sum.x != 0.0f || sum.y != 0.0f || sum.z != 0.0f) atomicAdd(forces + body * 3, sum.x), atomicAdd(forces + body * 3 + 1, sum.y), atomicAdd(forces + body * 3 + 2, sum.z);
            sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f), body = own;
        }
        sum.x += m.x, sum.y += m.y, sum.z += m.z;
    }
    add_for_warp(forces, body, sum);
}

Study bodies("drag_of_bodies_three_atomics_a_link", "simulation", 1 << 20, "forces on 40 bodies from 1048576 links to the fluid around them",
    "every link adds its three components to its body's force by atomics, as its neighbours do",
    {{"warps", "shuffles first where a warp has one body", {"global_atomics"}}, {"walk", "a lane adds up 32 links while their body is the same", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> owners(n);
        for (long i = 0; i < n; i++) owners[i] = static_cast<int>(hash(static_cast<unsigned>((i + hash(static_cast<unsigned>(i / 900)) % 300) / 1500)) % 40);
        const Links links{reinterpret_cast<const float4 *>(b.random<float>(n * 4, -0.2, 1.0)), b.copy(owners), static_cast<int>(n)};
        float *forces = b.output<float>(120, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(drag, blocks(n, 256), 256, 0, links, forces)}, {"warps", launch(drag_warps, blocks(n, 256), 256, 0, links, forces)}, {"walk", launch(drag_walk, blocks(n, 8192), 256, 0, links, forces)}};
    });

// --- absorption by the lines of a gas ---

struct Quotient {
    static __device__ __forceinline__ float of(float place, float4 a, float4 z) {
        const float d = place - a.x, e = place - z.x;
        return a.y / (d * d + a.z) + z.y / (e * e + z.z);
    }
};
struct FastQuotient {
    static __device__ __forceinline__ float of(float place, float4 a, float4 z) {
        const float d = place - a.x, e = place - z.x;
        return __fdividef(a.y, d * d + a.z) + __fdividef(z.y, e * e + z.z);
    }
};
// Two lines over one denominator.
struct CommonQuotient {
    static __device__ __forceinline__ float of(float place, float4 a, float4 z) {
        const float d = place - a.x, e = place - z.x, p = d * d + a.z, q = e * e + z.z;
        return (a.y * q + z.y * p) / (p * q);
    }
};
template <typename Way>
__global__ void __launch_bounds__(128) absorb(const float4 *__restrict__ lines, float *__restrict__ out, int places, int count) {
    __shared__ float4 tile[128];
    const int i = blockIdx.x * 128 + threadIdx.x;  // a multiple of 128 of them, and of lines
    const float place = 500.0f + 0.01f * i;
    float sum = 0.0f;
    for (int first = 0; first < count; first += 128) {
        tile[threadIdx.x] = lines[first + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < 128; k += 2) sum += Way::of(place, tile[k], tile[k + 1]);
        __syncthreads();
    }
    out[i] = sum;
}

Study absorption("absorption_of_lines_a_quotient_for_each", "climate", 1 << 17, "absorption at 131072 wave numbers by 2048 lines of a gas",
    "a precise quotient for each line and wave number",
    {{"fast", "the hardware's quotient", {"expensive_math"}}, {"common", "one quotient for two lines", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = 2048;
        std::vector<float4> lines(count);
        for (int k = 0; k < count; k++) lines[k] = {500.0f + (hash(k) % 100000) * 1e-5f * 0.01f * n, 0.1f + (hash(k + 7) % 1000) * 1e-3f, 0.01f + (hash(k + 11) % 100) * 1e-3f, 0.0f};
        const float4 *in = b.copy(lines);
        float *out = b.output<float>(n);
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, 128), 128, 0, in, out, n, count); };
        return {{"flawed", side(absorb<Quotient>)}, {"fast", side(absorb<FastQuotient>)}, {"common", side(absorb<CommonQuotient>)}};
    });

// --- dust grains of 256 masses that stick together: what each loses, in the cells of a disc ---

constexpr int MASSES = 256;

__device__ __forceinline__ float sticking(float mass, float other) {
    const float radii = cbrtf(mass) + cbrtf(other);
    return radii * radii * sqrtf(1.0f / mass + 1.0f / other);
}
__global__ void __launch_bounds__(MASSES) dust_losses(const float *__restrict__ masses, const float *__restrict__ densities, float *__restrict__ out) {
    __shared__ float mass[MASSES], density[MASSES];
    const int i = threadIdx.x, at = blockIdx.x * MASSES + i;
    mass[i] = masses[i], density[i] = densities[at];
    __syncthreads();
    float loss = 0.0f;
    for (int j = 0; j < MASSES; j++) loss += sticking(mass[i], mass[j]) * density[j];
    out[at] = loss * density[i];
}
__global__ void __launch_bounds__(MASSES) dust_losses_prepared(const float *__restrict__ masses, const float *__restrict__ densities, float *__restrict__ out) {
    __shared__ float4 grain[MASSES];  // radius, inverse of the mass, density
    const int i = threadIdx.x, at = blockIdx.x * MASSES + i;
    const float radius = cbrtf(masses[i]), inverse = 1.0f / masses[i], own = densities[at];
    grain[i] = make_float4(radius, inverse, own, 0.0f);
    __syncthreads();
    float loss = 0.0f;
#pragma unroll 8
    for (int j = 0; j < MASSES; j++) {
        const float4 g = grain[j];
        const float radii = radius + g.x;
        loss += radii * radii * sqrtf(inverse + g.y) * g.z;
    }
    out[at] = loss * own;
}
// All cells have the same kernel of masses: it is a matrix that was made when the program began.
__global__ void __launch_bounds__(MASSES) dust_losses_table(const float *__restrict__ kernel, const float *__restrict__ densities, float *__restrict__ out) {
    __shared__ float density[4][MASSES];
    const int i = threadIdx.x, first = blockIdx.x * 4;
#pragma unroll
    for (int c = 0; c < 4; c++) density[c][i] = densities[(first + c) * MASSES + i];
    __syncthreads();
    float loss[4] = {};
#pragma unroll 4
    for (int j = 0; j < MASSES; j++) {
        const float k = kernel[j * MASSES + i];
#pragma unroll
        for (int c = 0; c < 4; c++) loss[c] += k * density[c][j];
    }
#pragma unroll
    for (int c = 0; c < 4; c++) out[(first + c) * MASSES + i] = loss[c] * density[c][i];
}

Study dust("dust_sticks_cube_roots_for_each_pair", "astronomy", 4096, "grains of 256 masses lost to one another in 4096 cells of a disc",
    "cube roots, quotients and a root for each pair of masses, the same in every cell",
    {{"prepared", "radii and inverse masses once a block", {"expensive_math"}}, {"table", "a matrix of all pairs, read for four cells at once", {"expensive_math", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> masses(MASSES), kernel(MASSES * MASSES);
        for (int k = 0; k < MASSES; k++) masses[k] = powf(1.08f, static_cast<float>(k)) * 1e-3f;
        for (int i = 0; i < MASSES; i++)
            for (int j = 0; j < MASSES; j++) {
                const float radii = cbrtf(masses[i]) + cbrtf(masses[j]);
                kernel[j * MASSES + i] = radii * radii * sqrtf(1.0f / masses[i] + 1.0f / masses[j]);
            }
        const float *in = b.copy(masses), *matrix = b.copy(kernel), *densities = b.random<float>(n * MASSES, 0, 1);
        float *out = b.output<float>(n * MASSES);
        return {{"flawed", launch(dust_losses, n, MASSES, 0, in, densities, out)}, {"prepared", launch(dust_losses_prepared, n, MASSES, 0, in, densities, out)}, {"table", launch(dust_losses_table, n / 4, MASSES, 0, matrix, densities, out)}};
    });

// --- correlator of a particle on a lattice: sums over each time slice ---

constexpr int PIECES = 6;  // of four floats a site

__device__ __forceinline__ float square(float4 v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }
__device__ __forceinline__ float block_total(float sum) {
    __shared__ float parts[32];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    return warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? parts[threadIdx.x % 32] : 0.0f);
}
__global__ void __launch_bounds__(256) slice_sums(const float4 *__restrict__ field, float *__restrict__ out, int sites) {
    const float4 *slice = field + static_cast<size_t>(blockIdx.x) * PIECES * sites;
    float sum = 0.0f;
    for (int s = threadIdx.x; s < sites; s += 256)
        for (int k = 0; k < PIECES; k++) sum += square(slice[static_cast<size_t>(k) * sites + s]);
    sum = block_total(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
__global__ void __launch_bounds__(256) slice_sums_parts(const float4 *__restrict__ field, float *__restrict__ out, int sites) {
    const float4 *slice = field + static_cast<size_t>(blockIdx.y) * PIECES * sites;
    float sum = 0.0f;
    for (int s = blockIdx.x * 256 + threadIdx.x; s < sites; s += gridDim.x * 256)
#pragma unroll
        for (int k = 0; k < PIECES; k++) sum += square(slice[static_cast<size_t>(k) * sites + s]);
    sum = block_total(sum);
    if (threadIdx.x == 0) atomicAdd(out + blockIdx.y, sum);
}
// Blocks of 1024 threads with twelve loads in flight each.
__global__ void __launch_bounds__(1024) slice_sums_wide(const float4 *__restrict__ field, float *__restrict__ out, int sites) {
    const float4 *slice = field + static_cast<size_t>(blockIdx.x) * PIECES * sites;
    float sum = 0.0f;
#pragma unroll 2
    for (int s = threadIdx.x; s < sites; s += 1024) {
        float4 v[PIECES];
#pragma unroll
        for (int k = 0; k < PIECES; k++) v[k] = slice[static_cast<size_t>(k) * sites + s];
#pragma unroll
        for (int k = 0; k < PIECES; k++) sum += square(v[k]);
    }
    sum = block_total(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

Study correlator("correlator_a_block_for_each_of_48_slices", "physics", 32768, "norms of 24 numbers at 32768 sites of each of 48 time slices of a lattice",
    "a block of 256 threads for each slice: most multiprocessors have none",
    {{"parts", "sixteen blocks a slice, joined by atomics", {"small_grid"}}, {"wide", "blocks of 1024 threads with twelve loads in flight a thread", {"memory_latency", "low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        const int slices = 48;
        const float4 *field = reinterpret_cast<const float4 *>(b.random<float>(4L * PIECES * slices * n));
        float *out = b.output<float>(slices, true);
        return {{"flawed", launch(slice_sums, slices, 256, 0, field, out, n)}, {"parts", launch(slice_sums_parts, dim3(16, slices), 256, 0, field, out, n)}, {"wide", launch(slice_sums_wide, slices, 1024, 0, field, out, n)}};
    });

// --- asteroids around the sun and a planet on its circle ---

// Attraction by the sun and by the planet.
__device__ __forceinline__ void attraction(const float *x, float time, float *a) {
    float s, c;
    __sincosf(0.53f * time, &s, &c);
    const float px = 5.2f * c - x[0], py = 5.2f * s - x[1], pz = -x[2];
    const float sun = rsqrtf(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]), planet = rsqrtf(px * px + py * py + pz * pz + 1e-4f);
    const float near = 39.48f * sun * sun * sun, far = 0.0377f * planet * planet * planet;
    a[0] = far * px - near * x[0], a[1] = far * py - near * x[1], a[2] = far * pz - near * x[2];
}
// Six stages of Fehlberg's, of place and speed alike.
struct Fehlberg {
    static __device__ __forceinline__ void step(float *y, float time, float h) {
        constexpr float AT[6] = {0.0f, 0.25f, 0.375f, 12.0f / 13.0f, 1.0f, 0.5f};
        constexpr float OF[6][5] = {{}, {0.25f}, {3.0f / 32.0f, 9.0f / 32.0f}, {1932.0f / 2197.0f, -7200.0f / 2197.0f, 7296.0f / 2197.0f}, {439.0f / 216.0f, -8.0f, 3680.0f / 513.0f, -845.0f / 4104.0f},
            {-8.0f / 27.0f, 2.0f, -3544.0f / 2565.0f, 1859.0f / 4104.0f, -0.275f}};
        constexpr float SUM[6] = {16.0f / 135.0f, 0.0f, 6656.0f / 12825.0f, 28561.0f / 56430.0f, -0.18f, 2.0f / 55.0f};
        float k[6][6];
#pragma unroll
        for (int s = 0; s < 6; s++) {
            float z[6];
#pragma unroll
            for (int c = 0; c < 6; c++) {
                z[c] = 0.0f;
#pragma unroll
                for (int r = 0; r < s; r++) z[c] += OF[s][r] * k[r][c];
                z[c] = y[c] + h * z[c];
            }
            attraction(z, time + AT[s] * h, k[s] + 3);
#pragma unroll
            for (int c = 0; c < 3; c++) k[s][c] = z[c + 3];
        }
#pragma unroll
        for (int c = 0; c < 6; c++) {
            float sum = 0.0f;
#pragma unroll
            for (int s = 0; s < 6; s++) sum += SUM[s] * k[s][c];
            y[c] += h * sum;
        }
    }
};
// Three stages of Nystrom's: forces depend on places alone, of which three attractions are kept.
struct Nystrom {
    static __device__ __forceinline__ void step(float *y, float time, float h) {
        float first[3], second[3], third[3], x[3];
        attraction(y, time, first);
#pragma unroll
        for (int c = 0; c < 3; c++) x[c] = y[c] + 0.5f * h * (y[c + 3] + 0.25f * h * first[c]);
        attraction(x, time + 0.5f * h, second);
#pragma unroll
        for (int c = 0; c < 3; c++) x[c] = y[c] + h * (y[c + 3] + 0.5f * h * second[c]);
        attraction(x, time + h, third);
#pragma unroll
        for (int c = 0; c < 3; c++) {
            y[c] += h * (y[c + 3] + h / 6.0f * (first[c] + 2.0f * second[c]));
            y[c + 3] += h / 6.0f * (first[c] + 4.0f * second[c] + third[c]);
        }
    }
};
template <typename Method>
__device__ __forceinline__ void orbit(const float *__restrict__ in, float *__restrict__ out, int count, int steps) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    float y[6];
#pragma unroll
    for (int c = 0; c < 6; c++) y[c] = in[c * count + i];
    for (int s = 0; s < steps; s++) Method::step(y, s * 1e-3f, 1e-3f);
#pragma unroll
    for (int c = 0; c < 6; c++) out[c * count + i] = y[c];
}
__global__ void __launch_bounds__(256, 8) orbits(const float *__restrict__ in, float *__restrict__ out, int count, int steps) { orbit<Fehlberg>(in, out, count, steps); }
__global__ void __launch_bounds__(256) orbits_room(const float *__restrict__ in, float *__restrict__ out, int count, int steps) { orbit<Fehlberg>(in, out, count, steps); }
__global__ void __launch_bounds__(256, 8) orbits_places(const float *__restrict__ in, float *__restrict__ out, int count, int steps) { orbit<Nystrom>(in, out, count, steps); }

Study asteroids("asteroid_stages_forced_into_32_registers", "astronomy", 1 << 20, "1048576 asteroids, 48 steps of six stages each",
    "launch bounds ask for eight blocks a multiprocessor: 32 registers, where six stages need twice as many",
    {{"room", "as many registers as it takes", {"local_memory"}}, {"places", "a method of three stages that keeps attractions alone", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> start(n * 6);
        for (long i = 0; i < n; i++) {
            const unsigned u = static_cast<unsigned>(i);
            const float radius = 2.0f + (hash(u) % 1000) * 1.5e-3f, angle = (hash(u + 1) % 6283) * 1e-3f, speed = sqrtf(39.48f / radius);
            const float values[6] = {radius * cosf(angle), radius * sinf(angle), (hash(u + 2) % 100) * 2e-3f, -speed * sinf(angle), speed * cosf(angle), 0.1f};
            for (int c = 0; c < 6; c++) start[c * n + i] = values[c];
        }
        const float *in = b.copy(start);
        float *out = b.output<float>(n * 6);
        b.tolerance = 1e-3;
        const auto side = [=](auto kernel) { return launch(kernel, blocks(n, 256), 256, 0, in, out, n, 48); };
        return {{"flawed", side(orbits)}, {"room", side(orbits_room)}, {"places", side(orbits_places)}};
    });

// --- gravity of rectangular blocks of rock at stations of a survey ---

struct Prism {
    float low[3], high[3], density;
};
__device__ __forceinline__ float prism_gravity(const Prism &p, float x, float y) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const float dx = (k & 1 ? p.high[0] : p.low[0]) - x, dy = (k & 2 ? p.high[1] : p.low[1]) - y, dz = k & 4 ? p.high[2] : p.low[2];
        const float r = sqrtf(dx * dx + dy * dy + dz * dz);
        const float term = dx * logf(dy + r) + dy * logf(dx + r) - dz * atan2f(dx * dy, dz * r);
        sum += (k & 1) ^ (k >> 1 & 1) ^ (k >> 2 & 1) ? term : -term;
    }
    return sum * p.density;
}
template <int THREADS>
__global__ void __launch_bounds__(THREADS) survey(const Prism *__restrict__ prisms, const float2 *__restrict__ stations, float *__restrict__ out, int count, int share) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const float2 s = stations[i];
    float sum = 0.0f;
    for (int k = blockIdx.y * share; k < static_cast<int>(blockIdx.y + 1) * share; k++) sum += prism_gravity(prisms[k], s.x, s.y);
    if (gridDim.y > 1) atomicAdd(out + i, sum);
    else out[i] = sum;
}

Study prisms("gravity_survey_of_140_blocks_of_1024", "geophysics", 140 * 1024, "gravity of 64 rectangular bodies of rock at 143360 stations",
    "one block of 1024 threads fits a multiprocessor: after the first wave of them eight are left",
    {{"small", "blocks of 128 threads", {"tail_effect"}}, {"parts", "bodies in eight parts, added up by atomics", {"tail_effect"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Prism> rocks(64);
        for (unsigned k = 0; k < 64; k++) {
            const float x = hash(k) % 1000 * 1.0f, y = hash(k + 100) % 1000 * 1.0f, z = 20.0f + hash(k + 200) % 100;
            rocks[k] = {{x, y, z}, {x + 30 + hash(k + 300) % 50, y + 30 + hash(k + 400) % 50, z + 20 + hash(k + 500) % 40}, 0.2f + (hash(k + 600) % 100) * 0.01f};
        }
        const Prism *in = b.copy(rocks);
        const float2 *stations = reinterpret_cast<const float2 *>(b.random<float>(n * 2, 0, 1000));
        float *out = b.output<float>(n, true);
        b.tolerance = 2e-3;
        return {{"flawed", launch(survey<1024>, blocks(n, 1024), 1024, 0, in, stations, out, n, 64)}, {"small", launch(survey<128>, blocks(n, 128), 128, 0, in, stations, out, n, 64)},
            {"parts", launch(survey<1024>, dim3(blocks(n, 1024), 8), 1024, 0, in, stations, out, n, 8)}};
    });

// --- an automaton of cells on rings of 1024 ---

constexpr int RING = 1024, RULE = 110;

__global__ void __launch_bounds__(RING) ring_cells(const unsigned char *__restrict__ in, unsigned char *__restrict__ out, int generations) {
    __shared__ unsigned char cells[2][RING];
    const int t = threadIdx.x, left = (t + RING - 1) % RING, right = (t + 1) % RING;
    const size_t at = static_cast<size_t>(blockIdx.x) * RING + t;
    cells[0][t] = in[at];
    __syncthreads();
    for (int g = 0; g < generations; g++) {
        const unsigned char *now = cells[g & 1];
        cells[(g + 1) & 1][t] = RULE >> (now[left] << 2 | now[t] << 1 | now[right]) & 1;
        __syncthreads();
    }
    out[at] = cells[generations & 1][t];
}
// What the rule says of bits in the middle, by their neighbours.
__device__ __forceinline__ unsigned next_cells(unsigned left, unsigned middle, unsigned right) { return (middle ^ right) | (~left & middle); }
// Four cells a thread, a byte each.
__global__ void __launch_bounds__(RING / 4) ring_words(const unsigned *__restrict__ in, unsigned *__restrict__ out, int generations) {
    constexpr int WORDS = RING / 4;
    __shared__ unsigned words[2][WORDS];
    const int t = threadIdx.x, left = (t + WORDS - 1) % WORDS, right = (t + 1) % WORDS;
    unsigned own = in[blockIdx.x * WORDS + t];
    words[0][t] = own;
    __syncthreads();
    for (int g = 0; g < generations; g++) {
        const unsigned *now = words[g & 1];
        own = next_cells(__funnelshift_l(now[left], own, 8), own, __funnelshift_r(own, now[right], 8)) & 0x01010101u;
        words[(g + 1) & 1][t] = own;
        __syncthreads();
    }
    out[blockIdx.x * WORDS + t] = own;
}
// A ring a warp, a bit a cell.
__global__ void __launch_bounds__(128) ring_bits(const uint4 *__restrict__ in, uint4 *__restrict__ out, int rings, int generations) {
    const int ring = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (ring >= rings) return;
    unsigned own = 0;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const uint4 bytes = in[ring * 64 + lane * 2 + half];
        const unsigned words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
#pragma unroll
        for (int k = 0; k < 16; k++) own |= (words[k / 4] >> (k % 4 * 8) & 1) << (half * 16 + k);
    }
    for (int g = 0; g < generations; g++) {
        const unsigned left = __shfl_sync(~0u, own, lane + 31), right = __shfl_sync(~0u, own, lane + 1);
        own = next_cells(__funnelshift_l(left, own, 1), own, __funnelshift_r(own, right, 1));
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        unsigned words[4] = {};
#pragma unroll
        for (int k = 0; k < 16; k++) words[k / 4] |= (own >> (half * 16 + k) & 1) << (k % 4 * 8);
        out[ring * 64 + lane * 2 + half] = make_uint4(words[0], words[1], words[2], words[3]);
    }
}

Study rings("automaton_a_barrier_of_32_warps_each_generation", "simulation", 4096, "4096 rings of 1024 cells, 200 generations of an automaton",
    "a byte and a thread for each cell: 32 warps wait for one another after a handful of instructions",
    {{"words", "four cells a thread: eight warps wait", {"barriers", "narrow_access"}}, {"bits", "a ring a warp, 32 cells a lane as bits, neighbours by shuffles", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *in = b.random<unsigned char>(n * RING, 0, 2);
        unsigned char *out = b.output<unsigned char>(n * RING);
        b.tolerance = 0.0;
        return {{"flawed", launch(ring_cells, n, RING, 0, in, out, 200)}, {"words", launch(ring_words, n, RING / 4, 0, reinterpret_cast<const unsigned *>(in), reinterpret_cast<unsigned *>(out), 200)},
            {"bits", launch(ring_bits, blocks(n, 4), 128, 0, reinterpret_cast<const uint4 *>(in), reinterpret_cast<uint4 *>(out), n, 200)}};
    });

}  // namespace
