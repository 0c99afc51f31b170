// Pieces of simulations: oscillators, meshes, neutrons along their tracks. Each kernel has one weakness and two or
// three ways out.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- oscillators of van der Pol, each with a stiffness of its own and steps as long as their error allows ---

struct Oscillator {
    float x, v, t, h, mu;
};
constexpr float OSCILLATOR_END = 20.f, OSCILLATOR_ERROR = 1e-4f;
constexpr int MOST_STEPS = 20000;

__device__ __forceinline__ float pull(float mu, float x, float v) { return fmaf(mu * fmaf(-x, x, 1.f), v, -x); }
__device__ __forceinline__ Oscillator at_rest(float mu) { return {2.f, 0.f, 0.f, 1e-3f, mu}; }
// One step of Bogacki and Shampine, taken where its error is small enough. Products are fused by hand, so that all
// kernels take the very same steps.
__device__ __forceinline__ void attempt(Oscillator &o) {
    float h = fminf(o.h, OSCILLATOR_END - o.t);
    float a1 = o.v, b1 = pull(o.mu, o.x, o.v);
    float a2 = fmaf(0.5f * h, b1, o.v), b2 = pull(o.mu, fmaf(0.5f * h, a1, o.x), a2);
    float a3 = fmaf(0.75f * h, b2, o.v), b3 = pull(o.mu, fmaf(0.75f * h, a2, o.x), a3);
    float x = fmaf(h, fmaf(2.f / 9.f, a1, fmaf(1.f / 3.f, a2, 4.f / 9.f * a3)), o.x);
    float v = fmaf(h, fmaf(2.f / 9.f, b1, fmaf(1.f / 3.f, b2, 4.f / 9.f * b3)), o.v);
    float b4 = pull(o.mu, x, v);
    float ex = h * fmaf(-5.f / 72.f, a1, fmaf(1.f / 12.f, a2, fmaf(1.f / 9.f, a3, -0.125f * v)));
    float ev = h * fmaf(-5.f / 72.f, b1, fmaf(1.f / 12.f, b2, fmaf(1.f / 9.f, b3, -0.125f * b4)));
    float error = fmaxf(fabsf(ex), __fdividef(fabsf(ev), 1.f + fabsf(v))) * (1.f / OSCILLATOR_ERROR);
    if (error <= 1.f) o.x = x, o.v = v, o.t = o.t + h >= OSCILLATOR_END - 1e-5f ? OSCILLATOR_END : o.t + h;
    o.h = h * fminf(fmaxf(0.9f * exp2f(-1.f / 3.f * __log2f(fmaxf(error, 1e-6f))), 0.2f), 4.f);
}
__global__ void __launch_bounds__(128) oscillate(const float *mu, float *x, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Oscillator o = at_rest(mu[i]);
    for (int step = 0; o.t < OSCILLATOR_END && step < MOST_STEPS; ++step) attempt(o);
    x[i] = o.x;
}
// The stiffest first: the oscillators of a warp need about as many steps.
__global__ void __launch_bounds__(128) oscillate_in_order(const float *__restrict__ mu, const int *__restrict__ order, float *__restrict__ x, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Oscillator o = at_rest(mu[order[i]]);
    for (int step = 0; o.t < OSCILLATOR_END && step < MOST_STEPS; ++step) attempt(o);
    x[order[i]] = o.x;
}
// A lane that is done goes on with its next oscillator while its neighbours still step.
__global__ void __launch_bounds__(128) oscillate_on_and_on(const float *__restrict__ mu, float *__restrict__ x, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, step = 0;
    if (i >= count) return;
    Oscillator o = at_rest(mu[i]);
    while (true) {
        attempt(o);
        if (o.t < OSCILLATOR_END && ++step < MOST_STEPS) continue;
        x[i] = o.x;
        i += gridDim.x * blockDim.x;
        if (i >= count) return;
        o = at_rest(mu[i]), step = 0;
    }
}

Study oscillators("oscillators_steps_as_they_come", "simulation", 1 << 19, "524288 oscillators of differing stiffness, with steps of adapted length",
    "neighbouring threads need 200 to 1000 steps: most lanes of a warp wait for the stiffest",
    {{"in_order", "oscillators in the order of their stiffness", {"branch_divergence", "workload_imbalance"}},
        {"on_and_on", "a lane that is done takes its next oscillator", {"branch_divergence", "workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> mu(n);
        std::vector<int> order(n);
        for (int i = 0; i < n; ++i) mu[i] = 0.5f * std::exp(4.6f * static_cast<float>(pairs::hash(i + 7) * 0x1p-32)), order[i] = i;
        std::sort(order.begin(), order.end(), [&](int a, int c) { return mu[a] > mu[c]; });
        float *stiffness = b.copy(mu), *x = b.output<float>(n);
        int *places = b.copy(order);
        b.tolerance = 1e-2;
        return {{"flawed", launch(oscillate, blocks(n, 128), 128, 0, stiffness, x, n)},
            {"in_order", launch(oscillate_in_order, blocks(n, 128), 128, 0, stiffness, places, x, n)},
            {"on_and_on", launch(oscillate_on_and_on, multiprocessors() * 4, 128, 0, stiffness, x, n)}};
    });

// --- diffusion of four fields over a mesh of cells with four neighbours each, which an index names ---

__global__ void diffuse_cells(const float *fields, const int *neighbours, const float *weights, float *out, int cells) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cells) return;
    float own[4], sum[4] = {};
    for (int f = 0; f < 4; ++f) own[f] = fields[f * cells + c];
    for (int k = 0; k < 4; ++k) {
        int other = neighbours[k * cells + c];
        float weight = weights[k * cells + c];
        for (int f = 0; f < 4; ++f) sum[f] = fmaf(weight, fields[f * cells + other] - own[f], sum[f]);
    }
    for (int f = 0; f < 4; ++f) out[f * cells + c] = own[f] + sum[f];
}
// The four fields of a cell lie together.
__global__ void diffuse_records(const float4 *__restrict__ fields, const int *__restrict__ neighbours, const float *__restrict__ weights, float4 *__restrict__ out, int cells) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cells) return;
    float4 own = fields[c], sum = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        float4 other = fields[neighbours[k * cells + c]];
        float weight = weights[k * cells + c];
        sum.x = fmaf(weight, other.x - own.x, sum.x), sum.y = fmaf(weight, other.y - own.y, sum.y);
        sum.z = fmaf(weight, other.z - own.z, sum.z), sum.w = fmaf(weight, other.w - own.w, sum.w);
    }
    out[c] = make_float4(own.x + sum.x, own.y + sum.y, own.z + sum.z, own.w + sum.w);
}
// to[k][c] = from[k][number[c]]: the same planes in another order of the cells.
__global__ void renumber_planes(const float *from, const int *number, float *to, int cells, int planes) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < cells * planes; i += gridDim.x * blockDim.x) to[i] = from[i / cells * cells + number[i % cells]];
}
__global__ void planes_of_quads(const float4 *quads, float *planes, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        planes[i] = quads[i].x, planes[count + i] = quads[i].y, planes[2 * count + i] = quads[i].z, planes[3 * count + i] = quads[i].w;
}
__global__ void quads_of_planes(const float *planes, float4 *quads, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        quads[i] = make_float4(planes[i], planes[count + i], planes[2 * count + i], planes[3 * count + i]);
}

Study mesh("mesh_cells_numbered_as_read", "simulation", 2048, "a step of diffusion of four fields over a mesh of 4194304 cells",
    "cells bear the numbers of the file: neighbours lie anywhere, each field's value in a sector of its own",
    {{"renumbered", "cells numbered along the mesh", {"cache_locality", "uncoalesced_access"}},
        {"records", "the four fields of a cell together", {"uncoalesced_access"}},
        {"both", "cells numbered along the mesh, their fields together", {"cache_locality", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int cells = n * n;
        std::vector<int> number(cells), place(cells), along(4 * cells), asread(4 * cells);  // number[place in the mesh] and back
        for (int i = 0; i < cells; ++i) number[i] = i;
        for (unsigned i = cells - 1, draw = 1; i; --i) draw = draw * 1664525 + 1013904223, std::swap(number[i], number[static_cast<unsigned long long>(draw) * (i + 1) >> 32]);
        for (int i = 0; i < cells; ++i) place[number[i]] = i;
        for (int i = 0; i < cells; ++i) {
            int x = i % n, y = i / n, near[4] = {x ? i - 1 : i, x + 1 < n ? i + 1 : i, y ? i - static_cast<int>(n) : i, y + 1 < n ? i + static_cast<int>(n) : i};
            for (int k = 0; k < 4; ++k) along[k * cells + i] = near[k], asread[k * cells + number[i]] = number[near[k]];
        }
        const int *forward = b.copy(number), *back = b.copy(place), *neighbours = b.copy(asread), *sorted_neighbours = b.copy(along);
        float *fields = b.random<float>(4 * cells), *weights = b.random<float>(4 * cells, 0, 0.2), *out = b.output<float>(4 * cells);
        float *sorted_fields = b.allocate<float>(4 * cells), *sorted_weights = b.allocate<float>(4 * cells), *other = b.allocate<float>(4 * cells);
        float4 *quads = reinterpret_cast<float4 *>(b.allocate<float>(4 * cells)), *sorted_quads = reinterpret_cast<float4 *>(b.allocate<float>(4 * cells));
        float4 *other_quads = reinterpret_cast<float4 *>(b.allocate<float>(4 * cells));
        launch(renumber_planes, 1024, 256, 0, fields, forward, sorted_fields, cells, 4)();
        launch(renumber_planes, 1024, 256, 0, weights, forward, sorted_weights, cells, 4)();
        launch(quads_of_planes, 1024, 256, 0, fields, quads, cells)();
        launch(quads_of_planes, 1024, 256, 0, sorted_fields, sorted_quads, cells)();
        auto back_to_file = launch(renumber_planes, 1024, 256, 0, other, back, out, cells, 4);
        auto to_planes = launch(planes_of_quads, 1024, 256, 0, other_quads, other, cells);
        unsigned grid = blocks(cells, 256);
        return {{"flawed", launch(diffuse_cells, grid, 256, 0, fields, neighbours, weights, out, cells)},
            {"renumbered", launch(diffuse_cells, grid, 256, 0, sorted_fields, sorted_neighbours, sorted_weights, other, cells), {}, 1, back_to_file},
            {"records", launch(diffuse_records, grid, 256, 0, quads, neighbours, weights, other_quads, cells), {}, 1,
                launch(planes_of_quads, 1024, 256, 0, other_quads, out, cells)},
            {"both", launch(diffuse_records, grid, 256, 0, sorted_quads, sorted_neighbours, sorted_weights, other_quads, cells), {}, 1,
                [=] { to_planes(), back_to_file(); }}};
    });

// --- neutrons along tracks: 64 groups of energy, three polar angles, each segment in one of 4096 regions ---

constexpr int GROUPS = 64, POLAR = 3, SEGMENTS = 64, STEPS_OF_TABLE = 1024;
constexpr float END_OF_TABLE = 10.f;

struct Tracks {
    const int *region;  // [track][segment]
    const float *length, *section, *source;  // [track][segment], [region][group], [region][group]
};
struct Sines {
    float of[POLAR];
};
__global__ void sweep_tracks(Tracks tracks, Sines sines, float *leaving) {
    int g = threadIdx.x, track = blockIdx.x * blockDim.y + threadIdx.y;
    float psi[POLAR] = {1.f, 1.f, 1.f};
    for (int s = 0; s < SEGMENTS; ++s) {
        int region = tracks.region[track * SEGMENTS + s];
        float section = tracks.section[region * GROUPS + g], length = tracks.length[track * SEGMENTS + s];
#pragma unroll
        for (int p = 0; p < POLAR; ++p) psi[p] += (tracks.source[region * GROUPS + g] / section - psi[p]) * -expm1f(-section * length / sines.of[p]);
    }
#pragma unroll
    for (int p = 0; p < POLAR; ++p) leaving[(track * POLAR + p) * GROUPS + g] = psi[p];
}
// `attenuated` gives 1 - exp(-x).
template <typename Attenuated>
__device__ __forceinline__ void sweep_with(Tracks tracks, Sines sines, float *leaving, Attenuated attenuated) {
    int g = threadIdx.x, track = blockIdx.x * blockDim.y + threadIdx.y;
    float psi[POLAR] = {1.f, 1.f, 1.f}, inverse[POLAR];
#pragma unroll
    for (int p = 0; p < POLAR; ++p) inverse[p] = 1.f / sines.of[p];
#pragma unroll 2
    for (int s = 0; s < SEGMENTS; ++s) {
        int region = tracks.region[track * SEGMENTS + s];
        float section = tracks.section[region * GROUPS + g], depth = section * tracks.length[track * SEGMENTS + s];
        float level = __fdividef(tracks.source[region * GROUPS + g], section);
#pragma unroll
        for (int p = 0; p < POLAR; ++p) psi[p] = fmaf(level - psi[p], attenuated(depth * inverse[p]), psi[p]);
    }
#pragma unroll
    for (int p = 0; p < POLAR; ++p) leaving[(track * POLAR + p) * GROUPS + g] = psi[p];
}
__global__ void sweep_tracks_fast(Tracks tracks, Sines sines, float *__restrict__ leaving) {
    sweep_with(tracks, sines, leaving, [](float x) { return 1.f - __expf(-x); });
}
// Straight lines between 1024 values.
__global__ void sweep_tracks_table(Tracks tracks, Sines sines, const float2 *__restrict__ table, float *__restrict__ leaving) {
    __shared__ float2 lines[STEPS_OF_TABLE];
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < STEPS_OF_TABLE; i += blockDim.x * blockDim.y) lines[i] = table[i];
    __syncthreads();
    sweep_with(tracks, sines, leaving, [&](float x) {
        float2 line = lines[min(static_cast<int>(x * (STEPS_OF_TABLE / END_OF_TABLE)), STEPS_OF_TABLE - 1)];
        return fminf(fmaf(line.y, x, line.x), 1.f);
    });
}

Study tracks("tracks_exponential_each_angle", "simulation", 8192, "neutrons along 8192 tracks of 64 segments, 64 groups and three angles",
    "a precise exponential and a precise quotient for each segment, group and angle",
    {{"fast", "fast exponential, one fast quotient for the three angles", {"expensive_math"}},
        {"table", "lines between 1024 values in shared memory", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int regions = 4096;
        std::vector<float2> lines(STEPS_OF_TABLE);
        double wide = END_OF_TABLE / STEPS_OF_TABLE;
        for (int i = 0; i < STEPS_OF_TABLE; ++i) {
            double low = -std::expm1(-wide * i), high = -std::expm1(-wide * (i + 1)), slope = (high - low) / wide;
            lines[i] = make_float2(static_cast<float>(low - slope * wide * i), static_cast<float>(slope));
        }
        float2 *table = b.allocate<float2>(STEPS_OF_TABLE);
        CHECK(cudaMemcpy(table, lines.data(), STEPS_OF_TABLE * sizeof(float2), cudaMemcpyHostToDevice));
        Tracks tracks{b.random<int>(n * SEGMENTS, 0, regions), b.random<float>(n * SEGMENTS, 0.01, 0.5), b.random<float>(regions * GROUPS, 0.1, 4),
            b.random<float>(regions * GROUPS, 0, 1)};
        Sines sines{{0.1666f, 0.5377f, 0.9327f}};
        float *leaving = b.output<float>(n * POLAR * GROUPS);
        b.tolerance = 1e-3;
        dim3 block(GROUPS, 4);
        return {{"flawed", launch(sweep_tracks, n / 4, block, 0, tracks, sines, leaving)}, {"fast", launch(sweep_tracks_fast, n / 4, block, 0, tracks, sines, leaving)},
            {"table", launch(sweep_tracks_table, n / 4, block, 0, tracks, sines, table, leaving)}};
    });

// --- sound: charged particles pushed by Boris' scheme, four a thread ---

struct Push {
    float tx, ty, tz, ex, ey, ez, step;  // half the turn, half the kick
};
__device__ __forceinline__ void boris(Push p, float &x, float &y, float &z, float &u, float &v, float &w) {
    float a = u + p.ex, b = v + p.ey, c = w + p.ez, s = __fdividef(2.f, 1.f + p.tx * p.tx + p.ty * p.ty + p.tz * p.tz);
    float d = a + b * p.tz - c * p.ty, e = b + c * p.tx - a * p.tz, f = c + a * p.ty - b * p.tx;
    u = a + s * (e * p.tz - f * p.ty) + p.ex, v = b + s * (f * p.tx - d * p.tz) + p.ey, w = c + s * (d * p.ty - e * p.tx) + p.ez;
    x = fmaf(u, p.step, x), y = fmaf(v, p.step, y), z = fmaf(w, p.step, z);
}
__global__ void __launch_bounds__(256) push_particles(float4 *x, float4 *y, float4 *z, float4 *u, float4 *v, float4 *w, int quads, Push p) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= quads) return;
    float4 a = x[i], b = y[i], c = z[i], d = u[i], e = v[i], f = w[i];
    boris(p, a.x, b.x, c.x, d.x, e.x, f.x), boris(p, a.y, b.y, c.y, d.y, e.y, f.y);
    boris(p, a.z, b.z, c.z, d.z, e.z, f.z), boris(p, a.w, b.w, c.w, d.w, e.w, f.w);
    x[i] = a, y[i] = b, z[i] = c, u[i] = d, v[i] = e, w[i] = f;
}

Study particles("sound_particles_in_a_field", "simulation", 1 << 23, "8388608 charged particles in an even field, in planes", "", {},
    [](Buffers &b, long n) -> Sides {
        float4 *planes[6];
        for (float4 *&plane : planes) plane = reinterpret_cast<float4 *>(b.changed(b.random<float>(n), n));
        Push p{0.1f, 0.05f, 0.2f, 0.01f, 0.f, 0.02f, 0.1f};
        return {{"sound", launch(push_particles, blocks(n / 4, 256), 256, 0, planes[0], planes[1], planes[2], planes[3], planes[4], planes[5], n / 4, p)}};
    });

}  // namespace
