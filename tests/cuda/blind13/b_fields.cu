// Fields on grids: traces of a seismic survey, deformed volumes, derivatives in a channel. Each kernel has one weakness and two ways out.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../pairs/pair.cuh"

namespace {

// --- normal moveout: each trace stretched so that reflections lie flat ---

constexpr int SAMPLES = 2048;
constexpr float STEP = 0.002f;  // seconds

// A sample of a stretched trace; what lies past the end is the last sample.
__device__ __forceinline__ float moved(const float *trace, float offset, float velocity, int sample) {
    const float zero = sample * STEP, ratio = offset / velocity;
    const float place = fminf(sqrtf(zero * zero + ratio * ratio) * (1.f / STEP), SAMPLES - 1.01f);
    const int at = static_cast<int>(place);
    const float share = place - at;
    return trace[at] + share * (trace[at + 1] - trace[at]);
}
__global__ void __launch_bounds__(256) moveout(const float *__restrict__ traces, const float *__restrict__ offsets, const float *__restrict__ velocities, float *__restrict__ out, int count) {
    const int trace = blockIdx.x * blockDim.x + threadIdx.x, sample = blockIdx.y;
    if (trace >= count) return;
    const size_t first = static_cast<size_t>(trace) * SAMPLES;
    out[first + sample] = moved(traces + first, offsets[trace], velocities[sample], sample);
}
// Lanes along the samples of a trace.
__global__ void __launch_bounds__(256) moveout_along_time(const float *__restrict__ traces, const float *__restrict__ offsets, const float *__restrict__ velocities, float *__restrict__ out, int count) {
    const int sample = blockIdx.x * blockDim.x + threadIdx.x, trace = blockIdx.y;
    const size_t first = static_cast<size_t>(trace) * SAMPLES;
    out[first + sample] = moved(traces + first, offsets[trace], velocities[sample], sample);
}
// A block fetches its whole trace first.
__global__ void __launch_bounds__(256) moveout_held(const float *__restrict__ traces, const float *__restrict__ offsets, const float *__restrict__ velocities, float *__restrict__ out, int count) {
    __shared__ float4 held[SAMPLES / 4];
    const int trace = blockIdx.x;
    const size_t first = static_cast<size_t>(trace) * SAMPLES;
    const float4 *whole = reinterpret_cast<const float4 *>(traces + first);
    for (int k = threadIdx.x; k < SAMPLES / 4; k += 256) held[k] = whole[k];
    const float offset = offsets[trace];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SAMPLES / 256; ++k) {
        const int sample = k * 256 + threadIdx.x;
        out[first + sample] = moved(reinterpret_cast<const float *>(held), offset, velocities[sample], sample);
    }
}

Study flattened_traces("moveout_lanes_across_the_traces", "geophysics", 8192, "normal moveout of 8192 traces of 2048 samples, linear between samples",
    "neighbouring lanes work on neighbouring traces, whose samples lie 8 KB apart",
    {{"along_time", "lanes along the samples of a trace", {"uncoalesced_access"}}, {"held", "a block fetches its trace into shared memory, lanes along the samples", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> offset(n), velocity(SAMPLES);
        for (long i = 0; i < n; ++i) offset[i] = 100.f + 25.f * static_cast<float>(i % 120);
        for (int i = 0; i < SAMPLES; ++i) velocity[i] = 1500.f + 1.2f * static_cast<float>(i);
        const float *traces = b.random<float>(n * SAMPLES), *offsets = b.copy(offset), *velocities = b.copy(velocity);
        float *out = b.output<float>(n * SAMPLES);
        const int count = static_cast<int>(n);
        return {{"flawed", launch(moveout, dim3(blocks(n, 256), SAMPLES), 256, 0, traces, offsets, velocities, out, count)},
            {"along_time", launch(moveout_along_time, dim3(SAMPLES / 256, static_cast<unsigned>(n)), 256, 0, traces, offsets, velocities, out, count)},
            {"held", launch(moveout_held, static_cast<unsigned>(n), 256, 0, traces, offsets, velocities, out, count)}};
    });

// --- displacements of a deformed volume from the control points of cubic splines, one for each 8 voxels ---

constexpr int SPACING = 8, WIDE = 192, HIGH = 192, DEEP = 128;
constexpr int LATTICE_X = WIDE / SPACING + 3, LATTICE_Y = HIGH / SPACING + 3, LATTICE_Z = DEEP / SPACING + 3;

struct Lattice {
    const float *x, *y, *z;  // displacements of the control points
};

__device__ __forceinline__ int control(int x, int y, int z) { return (z * LATTICE_Y + y) * LATTICE_X + x; }
__device__ __forceinline__ double basis(int i, double u) {
    switch (i) {
    case 0: return (1.0 - u) * (1.0 - u) * (1.0 - u) / 6.0;
    case 1: return (3.0 * u * u * u - 6.0 * u * u + 4.0) / 6.0;
    case 2: return (-3.0 * u * u * u + 3.0 * u * u + 3.0 * u + 1.0) / 6.0;
    default: return u * u * u / 6.0;
    }
}
__device__ __forceinline__ float basis_single(int i, float u) {
    constexpr float SIXTH = 1.f / 6.f;
    switch (i) {
    case 0: return (1.f - u) * (1.f - u) * (1.f - u) * SIXTH;
    case 1: return (3.f * u * u * u - 6.f * u * u + 4.f) * SIXTH;
    case 2: return (-3.f * u * u * u + 3.f * u * u + 3.f * u + 1.f) * SIXTH;
    default: return u * u * u * SIXTH;
    }
}

__global__ void __launch_bounds__(256) deform(Lattice lattice, float *__restrict__ out) {
    const int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z * 4 + threadIdx.z;
    const float u = x % SPACING / static_cast<float>(SPACING), v = y % SPACING / static_cast<float>(SPACING), w = z % SPACING / static_cast<float>(SPACING);
    float sx = 0.f, sy = 0.f, sz = 0.f;
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int at = control(x / SPACING + i, y / SPACING + j, z / SPACING + k);
                const double weight = basis(i, u) * basis(j, v) * basis(k, w);
                sx += weight * lattice.x[at];
                sy += weight * lattice.y[at];
                sz += weight * lattice.z[at];
            }
    const size_t voxel = (static_cast<size_t>(z) * HIGH + y) * WIDE + x, plane = static_cast<size_t>(WIDE) * HIGH * DEEP;
    out[voxel] = sx, out[plane + voxel] = sy, out[2 * plane + voxel] = sz;
}
__global__ void __launch_bounds__(256) deform_single(Lattice lattice, float *__restrict__ out) {
    const int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z * 4 + threadIdx.z;
    const float u = x % SPACING / static_cast<float>(SPACING), v = y % SPACING / static_cast<float>(SPACING), w = z % SPACING / static_cast<float>(SPACING);
    float sx = 0.f, sy = 0.f, sz = 0.f;
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int at = control(x / SPACING + i, y / SPACING + j, z / SPACING + k);
                const float weight = basis_single(i, u) * basis_single(j, v) * basis_single(k, w);
                sx += weight * lattice.x[at];
                sy += weight * lattice.y[at];
                sz += weight * lattice.z[at];
            }
    const size_t voxel = (static_cast<size_t>(z) * HIGH + y) * WIDE + x, plane = static_cast<size_t>(WIDE) * HIGH * DEEP;
    out[voxel] = sx, out[plane + voxel] = sy, out[2 * plane + voxel] = sz;
}
// A block lies within one cell of the lattice: its 64 control points and the weights of the eight places are put in shared memory.
__global__ void __launch_bounds__(256) deform_table(Lattice lattice, float *__restrict__ out) {
    __shared__ float4 near[64];
    __shared__ float table[SPACING][4];
    const int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z * 4 + threadIdx.z;
    const int t = (threadIdx.z * 8 + threadIdx.y) * 8 + threadIdx.x;
    if (t < 64) {
        const int at = control(blockIdx.x + t % 4, blockIdx.y + t / 4 % 4, blockIdx.z / 2 + t / 16);
        near[t] = make_float4(lattice.x[at], lattice.y[at], lattice.z[at], 0.f);
    } else if (t < 96) {
        table[(t - 64) / 4][t % 4] = basis_single(t % 4, (t - 64) / 4 / static_cast<float>(SPACING));
    }
    __syncthreads();
    float sx = 0.f, sy = 0.f, sz = 0.f;
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float outer = table[z % SPACING][k] * table[threadIdx.y][j];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float weight = outer * table[threadIdx.x][i];
                const float4 point = near[(k * 4 + j) * 4 + i];
                sx += weight * point.x, sy += weight * point.y, sz += weight * point.z;
            }
        }
    const size_t voxel = (static_cast<size_t>(z) * HIGH + y) * WIDE + x, plane = static_cast<size_t>(WIDE) * HIGH * DEEP;
    out[voxel] = sx, out[plane + voxel] = sy, out[2 * plane + voxel] = sz;
}

Study deformed_volume("deformation_splines_in_double", "medical imaging", DEEP, "displacements of 192 x 192 x 128 voxels from cubic splines, 64 control points each",
    "literals without an f: weights and each of the 192 products and sums are of double precision, converted there and back",
    {{"single", "literals of single precision", {"double_precision"}}, {"table", "weights of single precision from a table, control points in shared memory", {"double_precision", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const size_t points = LATTICE_X * LATTICE_Y * LATTICE_Z;
        const Lattice lattice{b.random<float>(points, -4.0, 4.0), b.random<float>(points, -4.0, 4.0), b.random<float>(points, -4.0, 4.0)};
        float *out = b.output<float>(3l * WIDE * HIGH * n);
        const dim3 grid(WIDE / 8, HIGH / 8, static_cast<unsigned>(n / 4)), block(8, 8, 4);
        return {{"flawed", launch(deform, grid, block, 0, lattice, out)}, {"single", launch(deform_single, grid, block, 0, lattice, out)},
            {"table", launch(deform_table, grid, block, 0, lattice, out)}};
    });

// --- compact differences of the fourth order: derivatives along lines of 64 cells across a channel ---

constexpr int CELLS = 64, LINES = 128;  // of a block of 128 threads, which sweep a line each

// Where a cell of a line lies in shared memory.
template <int PITCH>
struct Rows {
    static __device__ __forceinline__ int place(int line, int cell) { return line * PITCH + cell; }
};
struct Swapped {
    static __device__ __forceinline__ int place(int line, int cell) { return line * CELLS + (cell ^ (line & 31)); }
};

// `factors`: of the elimination, the same for all lines; the rows of both ends are differences of two cells.
template <typename Layout, int ROOM>
__global__ void __launch_bounds__(LINES) derivatives(const float *__restrict__ field, const float *__restrict__ factors, float *__restrict__ out, float scale) {
    __shared__ float tile[ROOM];
    const int t = threadIdx.x;
    const size_t first = static_cast<size_t>(blockIdx.x) * LINES * CELLS;
#pragma unroll 8
    for (int k = t; k < LINES * CELLS; k += LINES) tile[Layout::place(k / CELLS, k % CELLS)] = field[first + k];
    __syncthreads();
    float before = tile[Layout::place(t, 0)], now = tile[Layout::place(t, 1)], slope = (now - before) * scale;
    tile[Layout::place(t, 0)] = slope;
    for (int cell = 1; cell < CELLS - 1; ++cell) {
        const float after = tile[Layout::place(t, cell + 1)];
        slope = (0.75f * scale * (after - before) - 0.25f * slope) * factors[cell];
        tile[Layout::place(t, cell)] = slope;
        before = now, now = after;
    }
    slope = (now - before) * scale;
    tile[Layout::place(t, CELLS - 1)] = slope;
    for (int cell = CELLS - 2; cell > 0; --cell) {
        slope = tile[Layout::place(t, cell)] - 0.25f * factors[cell] * slope;
        tile[Layout::place(t, cell)] = slope;
    }
    __syncthreads();
#pragma unroll 8
    for (int k = t; k < LINES * CELLS; k += LINES) out[first + k] = tile[Layout::place(k / CELLS, k % CELLS)];
}

Study channel_derivatives("compact_derivatives_lines_64_words_apart", "fluid dynamics", 1 << 18, "compact differences along 262144 lines of 64 cells",
    "each thread sweeps a line in shared memory, lines lie 64 words apart: all lanes of a warp meet in one bank",
    {{"padded", "lines 65 words apart", {"shared_bank_conflicts"}}, {"swapped", "cells of a line swapped by an exclusive or with the line's number", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> factor(CELLS, 1.f);
        for (int cell = 1; cell < CELLS - 1; ++cell) factor[cell] = 1.f / (1.f - (cell > 1 ? 0.0625f * factor[cell - 1] : 0.f));
        const float *field = b.random<float>(n * CELLS), *factors = b.copy(factor);
        float *out = b.output<float>(n * CELLS);
        const unsigned grid = blocks(n, LINES);
        return {{"flawed", launch(derivatives<Rows<CELLS>, LINES * CELLS>, grid, LINES, 0, field, factors, out, 32.f)},
            {"padded", launch(derivatives<Rows<CELLS + 1>, LINES *(CELLS + 1)>, grid, LINES, 0, field, factors, out, 32.f)},
            {"swapped", launch(derivatives<Swapped, LINES * CELLS>, grid, LINES, 0, field, factors, out, 32.f)}};
    });

// --- one picture from those of sixteen coils: sums over coils of conjugate sensitivities times pictures ---

__global__ void __launch_bounds__(256) combine_coils(const float4 *__restrict__ pictures, const float4 *__restrict__ sensitivities, float4 *__restrict__ out, int pairs_of_pixels) {
    const int pair = blockIdx.x * 256 + threadIdx.x;
    if (pair >= pairs_of_pixels) return;
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 4
    for (int coil = 0; coil < 16; ++coil) {
        const size_t at = static_cast<size_t>(coil) * pairs_of_pixels + pair;
        const float4 p = pictures[at], s = sensitivities[at];
        sum.x += s.x * p.x + s.y * p.y, sum.y += s.x * p.y - s.y * p.x;
        sum.z += s.z * p.z + s.w * p.w, sum.w += s.z * p.w - s.w * p.z;
    }
    out[pair] = sum;
}

Study coils("sound_pictures_of_sixteen_coils", "medical imaging", 1 << 20, "a complex picture of 1048576 pixels from those of sixteen coils", "", {}, [](Buffers &b, long n) -> Sides {
    const float *pictures = b.random<float>(32 * n), *sensitivities = b.random<float>(32 * n);
    float *out = b.output<float>(2 * n);
    const int pairs_of_pixels = static_cast<int>(n / 2);
    return {{"sound", launch(combine_coils, blocks(pairs_of_pixels, 256), 256, 0, reinterpret_cast<const float4 *>(pictures), reinterpret_cast<const float4 *>(sensitivities),
                          reinterpret_cast<float4 *>(out), pairs_of_pixels)}};
});

}  // namespace
