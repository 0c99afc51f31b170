// Values on grids and in pictures. Each kernel has one weakness and two ways out.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- density of electrons on a grid from orbitals' values and the density matrix ---

constexpr int ORBITALS = 32;

// Orbitals lie one behind the other, each with all places of the grid.
__global__ void __launch_bounds__(128) density(const float *__restrict__ orbitals, const float *__restrict__ matrix, float *__restrict__ out, int places) {
    const int at = blockIdx.x * 128 + threadIdx.x;
    float sum = 0.f;
    for (int i = 0; i < ORBITALS; ++i) {
        const float own = orbitals[static_cast<size_t>(i) * places + at];
        for (int j = 0; j < ORBITALS; ++j) sum += matrix[i * ORBITALS + j] * own * orbitals[static_cast<size_t>(j) * places + at];
    }
    out[at] = sum;
}
// All orbitals of the place in registers.
__global__ void __launch_bounds__(128) density_in_registers(const float *__restrict__ orbitals, const float4 *__restrict__ matrix, float *__restrict__ out, int places) {
    __shared__ float4 held[ORBITALS * ORBITALS / 4];
    const int at = blockIdx.x * 128 + threadIdx.x;
    for (int k = threadIdx.x; k < ORBITALS * ORBITALS / 4; k += 128) held[k] = matrix[k];
    float value[ORBITALS], sum = 0.f;
#pragma unroll
    for (int i = 0; i < ORBITALS; ++i) value[i] = orbitals[static_cast<size_t>(i) * places + at];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ORBITALS; ++i) {
        float row = 0.f;
#pragma unroll
        for (int j = 0; j < ORBITALS; j += 4) {
            const float4 m = held[(i * ORBITALS + j) / 4];
            row += m.x * value[j] + m.y * value[j + 1] + m.z * value[j + 2] + m.w * value[j + 3];
        }
        sum += row * value[i];
    }
    out[at] = sum;
}
// The same of the matrix's lower half, what is off the diagonal counted twice; a word of it serves two places.
__global__ void __launch_bounds__(128) density_of_half(const float *__restrict__ orbitals, const float *__restrict__ matrix, float *__restrict__ out, int places) {
    __shared__ float held[ORBITALS * ORBITALS];
    const int at = blockIdx.x * 256 + threadIdx.x;
    for (int k = threadIdx.x; k < ORBITALS * ORBITALS; k += 128) held[k] = matrix[k];
    float value[2][ORBITALS], sum[2] = {};
#pragma unroll
    for (int i = 0; i < ORBITALS; ++i) value[0][i] = orbitals[static_cast<size_t>(i) * places + at], value[1][i] = orbitals[static_cast<size_t>(i) * places + at + 128];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ORBITALS; ++i) {
        float row[2] = {};
#pragma unroll
        for (int j = 0; j < i; ++j) {
            const float m = held[i * ORBITALS + j];
            row[0] += m * value[0][j], row[1] += m * value[1][j];
        }
        const float m = held[i * ORBITALS + i];
#pragma unroll
        for (int p = 0; p < 2; ++p) sum[p] += (2.f * row[p] + m * value[p][i]) * value[p][i];
    }
    out[at] = sum[0];
    out[at + 128] = sum[1];
}

Study electrons("electron_density_orbitals_again_for_each_pair", "chemistry", 1 << 19, "density at 524288 places of a grid from 32 orbitals and their density matrix",
    "both orbitals and the matrix's word are read again for each of 1024 pairs",
    {{"in_registers", "a place's orbitals in registers, the matrix in shared memory", {"redundant_loads"}},
        {"lower_half", "the same with half of the pairs, two places a thread", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> matrix(ORBITALS * ORBITALS);
        for (int i = 0; i < ORBITALS; ++i)
            for (int j = 0; j <= i; ++j) matrix[i * ORBITALS + j] = matrix[j * ORBITALS + i] = (i == j ? 2.f : 0.f) + static_cast<float>(hash(i * 64 + j) % 200) / 1000.f - 0.1f;
        const float *orbitals = b.random<float>(n * ORBITALS), *of = b.copy(matrix);
        float *out = b.output<float>(n);
        const int places = static_cast<int>(n);
        return {{"flawed", launch(density, n / 128, 128, 0, orbitals, of, out, places)},
            {"in_registers", launch(density_in_registers, n / 128, 128, 0, orbitals, reinterpret_cast<const float4 *>(of), out, places)},
            {"lower_half", launch(density_of_half, n / 256, 128, 0, orbitals, of, out, places)}};
    });

// --- colours of splats from where they are seen: nine coefficients a colour ---

constexpr int TERMS = 9;

struct Splat {
    float colour[3][TERMS];
    float place[3];
    float opacity, unused;
};
static_assert(sizeof(Splat) == 128, "a line of memory");

struct Basis {
    float of[TERMS];
};
__device__ __forceinline__ Basis seen_from(float3 eye, float px, float py, float pz) {
    float x = px - eye.x, y = py - eye.y, z = pz - eye.z;
    const float inverse = rsqrtf(x * x + y * y + z * z);
    x *= inverse, y *= inverse, z *= inverse;
    return {{0.28209479f, -0.48860251f * y, 0.48860251f * z, -0.48860251f * x, 1.09254843f * x * y, -1.09254843f * y * z, 0.31539157f * (3.f * z * z - 1.f), -1.09254843f * x * z, 0.54627422f * (x * x - y * y)}};
}
__global__ void __launch_bounds__(256) splat_colours(const Splat *__restrict__ splats, float4 *__restrict__ out, float3 eye, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const Splat &splat = splats[i];
    const Basis basis = seen_from(eye, splat.place[0], splat.place[1], splat.place[2]);
    float sum[3];
    for (int c = 0; c < 3; ++c) {
        sum[c] = 0.5f;
        for (int k = 0; k < TERMS; ++k) sum[c] += basis.of[k] * splat.colour[c][k];
    }
    out[i] = make_float4(fmaxf(sum[0], 0.f), fmaxf(sum[1], 0.f), fmaxf(sum[2], 0.f), splat.opacity);
}
// A plane for each of a splat's 32 words.
__global__ void __launch_bounds__(256) splat_colours_planes(const float *__restrict__ words, float4 *__restrict__ out, float3 eye, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    auto word = [=](int k) { return words[static_cast<size_t>(k) * count + i]; };
    const Basis basis = seen_from(eye, word(27), word(28), word(29));
    float sum[3];
#pragma unroll
    for (int c = 0; c < 3; ++c) {
        sum[c] = 0.5f;
#pragma unroll
        for (int k = 0; k < TERMS; ++k) sum[c] += basis.of[k] * word(c * TERMS + k);
    }
    out[i] = make_float4(fmaxf(sum[0], 0.f), fmaxf(sum[1], 0.f), fmaxf(sum[2], 0.f), word(30));
}
// A warp brings its 32 splats to shared memory, a splat a request.
__global__ void __launch_bounds__(128) splat_colours_staged(const Splat *__restrict__ splats, float4 *__restrict__ out, float3 eye, int count) {
    __shared__ float held[4][32][33];
    const int i = blockIdx.x * 128 + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = i - lane;
    const float *words = reinterpret_cast<const float *>(splats + first);
#pragma unroll 8
    for (int k = 0; k < 32; ++k) held[warp][k][lane] = first + k < count ? words[k * 32 + lane] : 0.f;
    __syncwarp();
    if (i >= count) return;
    const float *own = held[warp][lane];
    const Basis basis = seen_from(eye, own[27], own[28], own[29]);
    float sum[3];
#pragma unroll
    for (int c = 0; c < 3; ++c) {
        sum[c] = 0.5f;
#pragma unroll
        for (int k = 0; k < TERMS; ++k) sum[c] += basis.of[k] * own[c * TERMS + k];
    }
    out[i] = make_float4(fmaxf(sum[0], 0.f), fmaxf(sum[1], 0.f), fmaxf(sum[2], 0.f), own[30]);
}

Study splats("splat_colours_records_of_a_line", "rendering", 2000000, "colours of 2000000 splats as seen from a place, nine coefficients for each of three colours",
    "a lane a record of 128 bytes: each load of a warp is from 32 lines",
    {{"planes", "a plane for each word of the records", {"uncoalesced_access"}}, {"staged", "a warp reads its records one by one into shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Splat> splats(n);
        std::vector<float> planes(n * 32);
        for (long i = 0; i < n; ++i) {
            float *words = &splats[i].colour[0][0];
            for (int k = 0; k < 32; ++k) {
                const float unit = static_cast<float>(hash(static_cast<unsigned>(i * 32 + k)) >> 8) / 16777216.f;
                words[k] = k < 27 ? unit - 0.4f : 10.f * unit;
                planes[k * n + i] = words[k];
            }
        }
        const Splat *records = b.copy(splats);
        const float *words = b.copy(planes);
        float *out = b.output<float>(n * 4);
        const float3 eye = make_float3(-3.f, 4.f, -7.f);
        const int count = static_cast<int>(n);
        float4 *to = reinterpret_cast<float4 *>(out);
        return {{"flawed", launch(splat_colours, blocks(n, 256), 256, 0, records, to, eye, count)}, {"planes", launch(splat_colours_planes, blocks(n, 256), 256, 0, words, to, eye, count)},
            {"staged", launch(splat_colours_staged, blocks(n, 128), 128, 0, records, to, eye, count)}};
    });

// --- which of five predictions suits a row of a picture: sums of what each leaves over ---

enum { NONE, LEFT, ABOVE, MEAN, NEAREST, FILTERS };

__device__ __forceinline__ int nearest_of(int left, int above, int corner) {
    const int to_left = abs(above - corner), to_above = abs(left - corner), to_corner = abs(left + above - 2 * corner);
    return to_left <= to_above && to_left <= to_corner ? left : to_above <= to_corner ? above : corner;
}
// Left over, as a byte with sign; its size.
__device__ __forceinline__ int left_over(int value, int predicted) { return abs(static_cast<int>(static_cast<signed char>(value - predicted))); }
__device__ __forceinline__ int predicted(int filter, int left, int above, int corner) {
    switch (filter) {
    case LEFT: return left;
    case ABOVE: return above;
    case MEAN: return (left + above) >> 1;
    case NEAREST: return nearest_of(left, above, corner);
    default: return 0;
    }
}
__device__ __forceinline__ int block_sum(int x, int *warps) {
    for (int offset = 16; offset; offset /= 2) x += __shfl_down_sync(~0u, x, offset);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
    __syncthreads();
    int sum = 0;
    for (int warp = 0; warp < 8; ++warp) sum += warps[warp];
    __syncthreads();
    return sum;
}
// Rows of `pitch` bytes, four a pixel, with a pixel of zeros before each and a row of zeros above the first.
__global__ void __launch_bounds__(256) filter_sums(const unsigned char *__restrict__ picture, int *__restrict__ sums, int bytes, int pitch) {
    __shared__ int warps[8];
    const unsigned char *row = picture + static_cast<size_t>(blockIdx.x + 1) * pitch + 4, *above = row - pitch;
    for (int filter = 0; filter < FILTERS; ++filter) {
        int sum = 0;
        for (int i = threadIdx.x; i < bytes; i += 256) sum += left_over(row[i], predicted(filter, row[i - 4], above[i], above[i - 4]));
        sum = block_sum(sum, warps);
        if (threadIdx.x == 0) sums[blockIdx.x * FILTERS + filter] = sum;
    }
}
__global__ void __launch_bounds__(256) filter_sums_at_once(const unsigned char *__restrict__ picture, int *__restrict__ sums, int bytes, int pitch) {
    __shared__ int warps[8];
    const unsigned char *row = picture + static_cast<size_t>(blockIdx.x + 1) * pitch + 4, *above = row - pitch;
    int sum[FILTERS] = {};
    for (int i = threadIdx.x; i < bytes; i += 256) {
        const int value = row[i], left = row[i - 4], up = above[i], corner = above[i - 4];
#pragma unroll
        for (int filter = 0; filter < FILTERS; ++filter) sum[filter] += left_over(value, predicted(filter, left, up, corner));
    }
#pragma unroll
    for (int filter = 0; filter < FILTERS; ++filter) {
        const int all = block_sum(sum[filter], warps);
        if (threadIdx.x == 0) sums[blockIdx.x * FILTERS + filter] = all;
    }
}
// A pixel's four bytes in a word.
__global__ void __launch_bounds__(256) filter_sums_of_pixels(const unsigned *__restrict__ picture, int *__restrict__ sums, int pixels, int pitch) {
    __shared__ int warps[8];
    const unsigned *row = picture + static_cast<size_t>(blockIdx.x + 1) * pitch + 1, *above = row - pitch;
    int sum[FILTERS] = {};
    for (int i = threadIdx.x; i < pixels; i += 256) {
        const unsigned value = row[i], left = row[i - 1], up = above[i], corner = above[i - 1];
#pragma unroll
        for (int shift = 0; shift < 32; shift += 8)
#pragma unroll
            for (int filter = 0; filter < FILTERS; ++filter)
                sum[filter] += left_over(value >> shift & 255, predicted(filter, left >> shift & 255, up >> shift & 255, corner >> shift & 255));
    }
#pragma unroll
    for (int filter = 0; filter < FILTERS; ++filter) {
        const int all = block_sum(sum[filter], warps);
        if (threadIdx.x == 0) sums[blockIdx.x * FILTERS + filter] = all;
    }
}

Study filters("row_filters_tried_one_after_the_other", "images", 4096, "what five predictions leave over of each of 4096 rows of 4096 pixels of four bytes",
    "the row and the one above are read byte by byte, and again for each prediction",
    {{"at_once", "all five predictions of a byte at once", {"redundant_loads"}}, {"pixels", "all five at once, a pixel's four bytes in a word", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int pixels = 4096, pitch = 4 * pixels + 16;
        std::vector<unsigned char> picture((n + 1) * pitch);
        for (long row = 1; row <= n; ++row)
            for (int i = 4; i < 4 + 4 * pixels; ++i) picture[row * pitch + i] = static_cast<unsigned char>((row + i / 4) / 3 + (i % 4) * 40 + hash(static_cast<unsigned>(row * pitch + i)) % 12);
        const unsigned char *bytes = b.copy(picture);
        int *sums = b.output<int>(n * FILTERS);
        b.tolerance = 0.0;
        return {{"flawed", launch(filter_sums, n, 256, 0, bytes, sums, 4 * pixels, pitch)}, {"at_once", launch(filter_sums_at_once, n, 256, 0, bytes, sums, 4 * pixels, pitch)},
            {"pixels", launch(filter_sums_of_pixels, n, 256, 0, reinterpret_cast<const unsigned *>(bytes), sums, pixels, pitch / 4)}};
    });

}  // namespace
