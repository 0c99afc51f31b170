// Shares, tastes, frames, sensors, sounds, maps and beats.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- shares of a secret ---

using Word = unsigned long long;
using Wide = unsigned __int128;
constexpr Word PRIME = (Word(1) << 61) - 1;

// Of a product of two numbers below 2^61 and a bit.
__device__ __forceinline__ Word folded(Wide product) {
    const Word sum = (static_cast<Word>(product) & PRIME) + static_cast<Word>(product >> 61);
    return (sum & PRIME) + (sum >> 61);
}
__device__ __forceinline__ Word times(Word a, Word b) { return folded(static_cast<Wide>(a) * b); }
__device__ __forceinline__ Word plus(Word a, Word b) {
    const Word sum = a + b;
    return sum >= PRIME ? sum - PRIME : sum;
}
// A polynomial at a point a thread; the highest coefficient is the first.
__global__ void __launch_bounds__(128) shares(const Word *__restrict__ coefficients, const Word *__restrict__ points, Word *__restrict__ out, int terms) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    const Word x = points[i];
    Word found = 0;
#pragma unroll 8
    for (int k = 0; k < terms; k++) found = plus(times(found, x), coefficients[k]);
    out[i] = plus(found, 0);
}
// Four polynomials of the fourth power, of every fourth coefficient each.
__global__ void __launch_bounds__(128) shares_four(const Word *__restrict__ coefficients, const Word *__restrict__ points, Word *__restrict__ out, int terms) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    const Word x = points[i], square = times(x, x), fourth = times(square, square);
    Word found[4] = {};
#pragma unroll 2
    for (int k = 0; k < terms; k += 4)
#pragma unroll
        for (int j = 0; j < 4; j++) found[j] = plus(times(found[j], fourth), coefficients[k + j]);
    const Word high = plus(times(found[0], x), found[1]), low = plus(times(found[2], x), found[3]);
    out[i] = plus(plus(times(high, square), low), 0);
}
// Four coefficients a step, whose products are folded together.
__global__ void __launch_bounds__(128) shares_steps(const Word *__restrict__ coefficients, const Word *__restrict__ points, Word *__restrict__ out, int terms) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    const Word x = points[i], square = times(x, x), cube = times(square, x), fourth = times(square, square);
    Word found = 0;
#pragma unroll 2
    for (int k = 0; k < terms; k += 4) {
        const Wide low = static_cast<Wide>(coefficients[k]) * cube + static_cast<Wide>(coefficients[k + 1]) * square + static_cast<Wide>(coefficients[k + 2]) * x + coefficients[k + 3];
        found = folded(static_cast<Wide>(found) * fourth + low);
    }
    out[i] = plus(found, 0);
}

Study shared("shares_terms_one_after_another", "cryptography", 16384, "a polynomial of 4096 terms at 16384 points, modulo 2^61 - 1",
    "each term waits for the product of the last one, with a warp or so a scheduler",
    {{"four", "four polynomials of the point's fourth power a thread", {"instruction_latency"}}, {"steps", "four terms a step", {"instruction_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int terms = 4096;
        const double most = 2305843009213692928.0;  // below the prime
        const Word *coefficients = b.random<Word>(terms, 0.0, most), *points = b.random<Word>(n, 1.0, most);
        Word *out = b.output<Word>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(shares, n / 128, 128, 0, coefficients, points, out, terms)}, {"four", launch(shares_four, n / 128, 128, 0, coefficients, points, out, terms)},
            {"steps", launch(shares_steps, n / 128, 128, 0, coefficients, points, out, terms)}};
    });

// --- tastes: the roots of users' Gram matrices ---

constexpr int RANK = 32;

// A matrix a block, column by column; lanes are rows.
__global__ void __launch_bounds__(128) taste_roots(const float *__restrict__ grams, float *__restrict__ out, float weight) {
    __shared__ float a[RANK * RANK];
    const int row = threadIdx.x % RANK, own = threadIdx.x / RANK;
    const long at = static_cast<long>(blockIdx.x) * RANK * RANK;
#pragma unroll
    for (int j = own; j < RANK; j += 4) a[j * RANK + row] = grams[at + j * RANK + row] + (row == j ? weight : 0.0f);
    __syncthreads();
    for (int k = 0; k < RANK; k++) {
        if (own == 0) {
            const float scale = rsqrtf(a[k * RANK + k]);
            __syncwarp();
            a[k * RANK + row] *= row < k ? 0.0f : scale;
        }
        __syncthreads();
        const float mine = a[k * RANK + row];
#pragma unroll 4
        for (int j = k + 1 + own; j < RANK; j += 4) a[j * RANK + row] -= mine * a[k * RANK + j];
        __syncthreads();
    }
#pragma unroll
    for (int j = own; j < RANK; j += 4) out[at + j * RANK + row] = a[j * RANK + row];
}
// A matrix a warp.
__global__ void __launch_bounds__(128) taste_roots_warp(const float *__restrict__ grams, float *__restrict__ out, float weight) {
    __shared__ float all[4][RANK * RANK];
    const int row = threadIdx.x % RANK;
    float *a = all[threadIdx.x / RANK];
    const long at = static_cast<long>(blockIdx.x * 4 + threadIdx.x / RANK) * RANK * RANK;
#pragma unroll
    for (int j = 0; j < RANK; j++) a[j * RANK + row] = grams[at + j * RANK + row] + (row == j ? weight : 0.0f);
    __syncwarp();
    for (int k = 0; k < RANK; k++) {
        const float scale = rsqrtf(a[k * RANK + k]), mine = a[k * RANK + row] * (row < k ? 0.0f : scale);
        __syncwarp();
        a[k * RANK + row] = mine;
        __syncwarp();
#pragma unroll 4
        for (int j = k + 1; j < RANK; j++) a[j * RANK + row] -= mine * a[k * RANK + j];
        __syncwarp();
    }
#pragma unroll
    for (int j = 0; j < RANK; j++) out[at + j * RANK + row] = a[j * RANK + row];
}
// A matrix a warp, a row in each lane's registers.
__global__ void __launch_bounds__(128) taste_roots_lanes(const float *__restrict__ grams, float *__restrict__ out, float weight) {
    const int row = threadIdx.x % RANK;
    const long at = static_cast<long>(blockIdx.x * 4 + threadIdx.x / RANK) * RANK * RANK;
    float a[RANK];
#pragma unroll
    for (int j = 0; j < RANK; j++) a[j] = grams[at + j * RANK + row] + (row == j ? weight : 0.0f);
#pragma unroll
    for (int k = 0; k < RANK; k++) {
        const float scale = rsqrtf(__shfl_sync(~0u, a[k], k));
        a[k] = row < k ? 0.0f : a[k] * scale;
#pragma unroll
        for (int j = k + 1; j < RANK; j++) a[j] -= a[k] * __shfl_sync(~0u, a[k], j);
    }
#pragma unroll
    for (int j = 0; j < RANK; j++) out[at + j * RANK + row] = a[j];
}

Study rooted("taste_roots_two_barriers_a_column", "recommenders", 32768, "Cholesky factors of 32768 users' matrices of 32 x 32",
    "four warps wait for each other twice for each column of a small matrix",
    {{"warp", "a matrix a warp", {"barriers"}}, {"lanes", "a matrix a warp, rows in registers", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const float *grams = b.random<float>(n * RANK * RANK);
        float *out = b.output<float>(n * RANK * RANK);
        return {{"flawed", launch(taste_roots, n, 128, 0, grams, out, 14.0f)}, {"warp", launch(taste_roots_warp, n / 4, 128, 0, grams, out, 14.0f)},
            {"lanes", launch(taste_roots_lanes, n / 4, 128, 0, grams, out, 14.0f)}};
    });

// --- columns of a deformable convolution ---

struct Corners {
    int at[4];
    float shares[4];
};
struct Grid {
    const float *picture, *offsets, *masks;
    float *out;
    int side, pixels;
};
// Where point `point` of the nine around a pixel lies, after its offsets.
__device__ __forceinline__ Corners corners_of(const Grid &grid, int pixel, int point) {
    const float y = pixel / grid.side + point / 3 - 1 + grid.offsets[2 * point * grid.pixels + pixel];
    const float x = pixel % grid.side + point % 3 - 1 + grid.offsets[(2 * point + 1) * grid.pixels + pixel];
    const float mask = grid.masks[point * grid.pixels + pixel], below = floorf(y), left = floorf(x);
    const int y0 = static_cast<int>(below), x0 = static_cast<int>(left);
    Corners found;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int row = y0 + k / 2, column = x0 + k % 2;
        const bool inside = row >= 0 && row < grid.side && column >= 0 && column < grid.side;
        found.at[k] = inside ? row * grid.side + column : 0;
        found.shares[k] = inside ? mask * (k / 2 ? y - below : 1.0f - y + below) * (k % 2 ? x - left : 1.0f - x + left) : 0.0f;
    }
    return found;
}
__device__ __forceinline__ float between(const float *__restrict__ plane, const Corners &c) {
    return c.shares[0] * plane[c.at[0]] + c.shares[1] * plane[c.at[1]] + c.shares[2] * plane[c.at[2]] + c.shares[3] * plane[c.at[3]];
}
// A pixel of CHANNELS channels a thread.
template <int CHANNELS>
__global__ void __launch_bounds__(256) deformed(Grid grid) {
    const int pixel = blockIdx.x * 256 + threadIdx.x, first = blockIdx.y * CHANNELS;
    for (int point = 0; point < 9; point++) {
        const Corners corners = corners_of(grid, pixel, point);
#pragma unroll
        for (int c = first; c < first + CHANNELS; c++) grid.out[(c * 9 + point) * grid.pixels + pixel] = between(grid.picture + c * grid.pixels, corners);
    }
}
// A point of a pixel a thread, of 32 channels.
__global__ void __launch_bounds__(256) deformed_points(Grid grid) {
    const int pixel = blockIdx.x * 256 + threadIdx.x, point = blockIdx.y, first = blockIdx.z * 32;
    const Corners corners = corners_of(grid, pixel, point);
#pragma unroll 4
    for (int c = first; c < first + 32; c++) grid.out[(c * 9 + point) * grid.pixels + pixel] = between(grid.picture + c * grid.pixels, corners);
}

Study bent("deformable_columns_channel_a_thread", "vision", 128, "columns of a deformable convolution of 3 x 3 over 256 channels of 128 x 128 values",
    "each channel loads the offsets and masks of its pixel, and works out four places and weights from them, again",
    {{"channels", "eight channels a thread", {"redundant_loads"}}, {"points", "one of nine points a thread, of 32 channels", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int channels = 256, pixels = static_cast<int>(n * n);
        std::vector<float> offsets(18 * pixels);
        for (int k = 0; k < 18; k++)
            for (int i = 0; i < pixels; i++) offsets[k * pixels + i] = 1.6f * std::sin(0.03f * (i % n) + 0.05f * (i / n) + k);
        const Grid grid = {b.random<float>(static_cast<size_t>(channels) * pixels), b.copy(offsets), b.random<float>(9 * pixels, 0.0, 1.0), b.output<float>(static_cast<size_t>(channels) * 9 * pixels), static_cast<int>(n), pixels};
        return {{"flawed", launch(deformed<1>, dim3(pixels / 256, channels), 256, 0, grid)}, {"channels", launch(deformed<8>, dim3(pixels / 256, channels / 8), 256, 0, grid)},
            {"points", launch(deformed_points, dim3(pixels / 256, 9, channels / 32), 256, 0, grid)}};
    });

// --- a frame between two ---

struct Splat {
    int at;  // of the upper left of four pixels; below zero: out of the frame
    float4 upper_left, upper_right, lower_left, lower_right;
};
__device__ __forceinline__ float4 scaled(float4 v, float s) { return make_float4(v.x * s, v.y * s, v.z * s, v.w * s); }
__device__ __forceinline__ float4 added(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
__device__ __forceinline__ Splat splat_of(const float4 *frame, const float2 *flow, int width, int height, float time) {
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
    const float2 move = flow[y * width + x];
    const float4 pixel = frame[y * width + x], weighed = make_float4(pixel.x * pixel.w, pixel.y * pixel.w, pixel.z * pixel.w, pixel.w);
    const float to_x = x + time * move.x, to_y = y + time * move.y, left = floorf(to_x), above = floorf(to_y), fx = to_x - left, fy = to_y - above;
    const int x0 = static_cast<int>(left), y0 = static_cast<int>(above);
    const bool inside = x0 >= 0 && y0 >= 0 && x0 + 1 < width && y0 + 1 < height;
    return {inside ? y0 * width + x0 : -2, scaled(weighed, (1.0f - fx) * (1.0f - fy)), scaled(weighed, fx * (1.0f - fy)), scaled(weighed, (1.0f - fx) * fy), scaled(weighed, fx * fy)};
}
__device__ __forceinline__ void add_values(float4 *to, float4 v) { atomicAdd(&to->x, v.x), atomicAdd(&to->y, v.y), atomicAdd(&to->z, v.z), atomicAdd(&to->w, v.w); }
// Colours, weighed, and weights, where a flow takes them.
__global__ void __launch_bounds__(256) splatted(const float4 *__restrict__ frame, const float2 *__restrict__ flow, float4 *__restrict__ out, int width, int height, float time) {
    const Splat s = splat_of(frame, flow, width, height, time);
    if (s.at < 0) return;
    add_values(out + s.at, s.upper_left), add_values(out + s.at + 1, s.upper_right);
    add_values(out + s.at + width, s.lower_left), add_values(out + s.at + width + 1, s.lower_right);
}
__global__ void __launch_bounds__(256) splatted_vectors(const float4 *__restrict__ frame, const float2 *__restrict__ flow, float4 *__restrict__ out, int width, int height, float time) {
    const Splat s = splat_of(frame, flow, width, height, time);
    if (s.at < 0) return;
    atomicAdd(out + s.at, s.upper_left), atomicAdd(out + s.at + 1, s.upper_right);
    atomicAdd(out + s.at + width, s.lower_left), atomicAdd(out + s.at + width + 1, s.lower_right);
}
__device__ __forceinline__ float4 from_left(float4 v) { return make_float4(__shfl_up_sync(~0u, v.x, 1), __shfl_up_sync(~0u, v.y, 1), __shfl_up_sync(~0u, v.z, 1), __shfl_up_sync(~0u, v.w, 1)); }
// What a lane adds where the next one does, too, it hands over.
__global__ void __launch_bounds__(256) splatted_handed(const float4 *__restrict__ frame, const float2 *__restrict__ flow, float4 *__restrict__ out, int width, int height, float time) {
    Splat s = splat_of(frame, flow, width, height, time);
    const int lane = threadIdx.x % 32, before = __shfl_up_sync(~0u, s.at, 1), after = __shfl_down_sync(~0u, s.at, 1);
    const float4 upper = from_left(s.upper_right), lower = from_left(s.lower_right);
    if (s.at < 0) return;
    if (lane > 0 && before + 1 == s.at) s.upper_left = added(s.upper_left, upper), s.lower_left = added(s.lower_left, lower);
    add_values(out + s.at, s.upper_left), add_values(out + s.at + width, s.lower_left);
    if (lane == 31 || after != s.at + 1) add_values(out + s.at + 1, s.upper_right), add_values(out + s.at + width + 1, s.lower_right);
}

Study between_frames("frame_splatted_sixteen_atomics_a_pixel", "video", 2048, "a frame of 2048 x 1024 pixels moved along a flow: colours and weights added to four pixels each",
    "an atomic for each of four values in each of four pixels",
    {{"vectors", "an atomic of four values a pixel", {"global_atomics"}}, {"handed", "values for the next lane's pixels handed to it first", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int width = static_cast<int>(n), height = width / 2;
        std::vector<float> flow(2 * n * height);
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                flow[2 * (y * n + x)] = 9.0f * std::sin(0.004f * x + 0.011f * y);
                flow[2 * (y * n + x) + 1] = 6.0f * std::cos(0.006f * y - 0.003f * x);
            }
        const float2 *moves = reinterpret_cast<const float2 *>(b.copy(flow));
        const float4 *frame = reinterpret_cast<const float4 *>(b.random<float>(n * height * 4, 0.1, 1.0));
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n * height * 4, true));
        const dim3 grid(width / 256, height);
        return {{"flawed", launch(splatted, grid, 256, 0, frame, moves, out, width, height, 0.5f)}, {"vectors", launch(splatted_vectors, grid, 256, 0, frame, moves, out, width, height, 0.5f)},
            {"handed", launch(splatted_handed, grid, 256, 0, frame, moves, out, width, height, 0.5f)}};
    });

// --- drifts of sensors ---

constexpr int STEPS = 256, PITCH = 33;

// Sums of what is above and below the usual, each no less than zero, and the largest seen.
struct Drift {
    float above = 0.0f, below = 0.0f, most = 0.0f;
    __device__ __forceinline__ void add(float x, float slack) {
        above = fmaxf(0.0f, above + (x - slack)), below = fmaxf(0.0f, below - (x + slack));
        most = fmaxf(most, fmaxf(above, below));
    }
};
// A sensor a thread. SENSOR, STEP: how far apart the values of sensors, and of steps, lie (zero: as many as there are sensors).
template <int SENSOR, int STEP>
__global__ void __launch_bounds__(128) drifts(const float *__restrict__ values, float *__restrict__ out, int sensors, float slack) {
    const int i = blockIdx.x * 128 + threadIdx.x, step = STEP ? STEP : sensors;
    Drift drift;
#pragma unroll 8
    for (int t = 0; t < STEPS; t++) drift.add(values[i * SENSOR + t * step], slack);
    out[i] = drift.most;
}
// A warp brings 32 steps of its 32 sensors at a time.
__global__ void __launch_bounds__(128) drifts_staged(const float *__restrict__ values, float *__restrict__ out, int sensors, float slack) {
    __shared__ float all[4][32 * PITCH];
    const int lane = threadIdx.x % 32, i = blockIdx.x * 128 + threadIdx.x;
    float *own = all[threadIdx.x / 32];
    const float *from = values + (i - lane) * STEPS + lane;
    Drift drift;
    for (int t = 0; t < STEPS; t += 32) {
#pragma unroll
        for (int k = 0; k < 32; k++) own[k * PITCH + lane] = from[k * STEPS + t];
        __syncwarp();
#pragma unroll
        for (int k = 0; k < 32; k++) drift.add(own[lane * PITCH + k], slack);
        __syncwarp();
    }
    out[i] = drift.most;
}
__global__ void turned_over(const float *in, float *out, int sensors) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    for (int t = 0; t < STEPS; t++) out[t * sensors + i] = in[i * STEPS + t];
}

Study drifting("drifts_a_sensor_after_another", "time series", 131072, "cumulative sums of 256 values of 131072 sensors, and their largest",
    "neighbouring lanes read values 1024 bytes apart",
    {{"staged", "tiles of 32 x 32 through shared memory", {"uncoalesced_access"}}, {"turned", "values of one time side by side", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *values = b.random<float>(n * STEPS);
        float *turned = b.allocate<float>(n * STEPS), *out = b.output<float>(n);
        launch(turned_over, n / 128, 128, 0, values, turned, n)();
        return {{"flawed", launch(drifts<STEPS, 1>, n / 128, 128, 0, values, out, n, 0.1f)}, {"staged", launch(drifts_staged, n / 128, 128, 0, values, out, n, 0.1f)},
            {"turned", launch(drifts<1, 0>, n / 128, 128, 0, turned, out, n, 0.1f)}};
    });

// --- what air takes of a sound on its way ---

struct Ways {
    const float4 *lengths, *warmths, *vapours;  // metres, kelvins, parts in a hundred
    float4 *out;                                // decibels
};
// By ISO 9613-1, at the pressure of the sea's level.
__device__ __forceinline__ float absorbed(float length, float warmth, float vapour, float frequency) {
    const double t = warmth / 293.15, root = sqrt(t), square = frequency * frequency;
    const double oxygen = 24.0 + 4.04e4 * vapour * (0.02 + vapour) / (0.391 + vapour);
    const double nitrogen = (9.0 + 280.0 * vapour * exp(-4.170 * (rcbrt(t) - 1.0))) / root;
    const double relaxed = 0.01275 * exp(-2239.1 / warmth) / (oxygen + square / oxygen) + 0.1068 * exp(-3352.0 / warmth) / (nitrogen + square / nitrogen);
    return length * (8.686 * square * (1.84e-11 * root + relaxed / (t * t * root)));
}
__device__ __forceinline__ float absorbed_single(float length, float warmth, float vapour, float frequency) {
    const float t = warmth / 293.15f, root = sqrtf(t), square = frequency * frequency;
    const float oxygen = 24.0f + 4.04e4f * vapour * (0.02f + vapour) / (0.391f + vapour);
    const float nitrogen = (9.0f + 280.0f * vapour * expf(-4.170f * (rcbrtf(t) - 1.0f))) / root;
    const float relaxed = 0.01275f * expf(-2239.1f / warmth) / (oxygen + square / oxygen) + 0.1068f * expf(-3352.0f / warmth) / (nitrogen + square / nitrogen);
    return length * (8.686f * square * (1.84e-11f * root + relaxed / (t * t * root)));
}
// The same with one root, and quotients of sums of products.
__device__ __forceinline__ float absorbed_quick(float length, float warmth, float vapour, float frequency) {
    const float t = warmth * (1.0f / 293.15f), inverse = __fdividef(1.0f, warmth), unrooted = rsqrtf(t), square = frequency * frequency;
    const float oxygen = 24.0f + __fdividef(4.04e4f * vapour * (0.02f + vapour), 0.391f + vapour);
    const float nitrogen = (9.0f + 280.0f * vapour * __expf(4.170f - 4.170f * exp2f(-0.33333333f * __log2f(t)))) * unrooted;
    const float by_oxygen = __fdividef(0.01275f * __expf(-2239.1f * inverse) * oxygen, oxygen * oxygen + square);
    const float by_nitrogen = __fdividef(0.1068f * __expf(-3352.0f * inverse) * nitrogen, nitrogen * nitrogen + square);
    const float inverse_t = unrooted * unrooted;
    return length * (8.686f * square * (1.84e-11f * t * unrooted + (by_oxygen + by_nitrogen) * inverse_t * inverse_t * unrooted));
}
template <float (*ABSORBED)(float, float, float, float)>
__device__ __forceinline__ void each_way(const Ways &ways, int quads, float frequency) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= quads) return;
    const float4 length = ways.lengths[i], warmth = ways.warmths[i], vapour = ways.vapours[i];
    ways.out[i] = make_float4(ABSORBED(length.x, warmth.x, vapour.x, frequency), ABSORBED(length.y, warmth.y, vapour.y, frequency), ABSORBED(length.z, warmth.z, vapour.z, frequency), ABSORBED(length.w, warmth.w, vapour.w, frequency));
}
__global__ void __launch_bounds__(256) absorptions(Ways ways, int quads, float frequency) { each_way<absorbed>(ways, quads, frequency); }
__global__ void __launch_bounds__(256) absorptions_single(Ways ways, int quads, float frequency) { each_way<absorbed_single>(ways, quads, frequency); }
__global__ void __launch_bounds__(256) absorptions_quick(Ways ways, int quads, float frequency) { each_way<absorbed_quick>(ways, quads, frequency); }

Study absorbing("air_absorption_with_literals_in_double", "geography", 1 << 23, "what air takes of a sound of 2 kHz on 8388608 ways of a map of noise",
    "the standard's constants are doubles, and so is what is done with them",
    {{"single", "constants and functions in single precision", {"double_precision"}}, {"quick", "one root and quick quotients in single precision", {"double_precision"}}},
    [](Buffers &b, long n) -> Sides {
        const float4 *lengths = reinterpret_cast<const float4 *>(b.random<float>(n, 20.0, 2000.0)), *warmths = reinterpret_cast<const float4 *>(b.random<float>(n, 258.0, 308.0)), *vapours = reinterpret_cast<const float4 *>(b.random<float>(n, 0.2, 2.5));
        const Ways ways = {lengths, warmths, vapours, reinterpret_cast<float4 *>(b.output<float>(n))};
        const unsigned grid = blocks(n / 4, 256);
        return {{"flawed", launch(absorptions, grid, 256, 0, ways, n / 4, 2000.0f)}, {"single", launch(absorptions_single, grid, 256, 0, ways, n / 4, 2000.0f)},
            {"quick", launch(absorptions_quick, grid, 256, 0, ways, n / 4, 2000.0f)}};
    });

// --- places along a curve that fills a map ---

// Of Hilbert's curve over 65536 x 65536 places; x is the lower half of a place.
struct BitByBit {
    __device__ __forceinline__ unsigned operator()(unsigned place) const {
        unsigned x = place & 0xffff, y = place >> 16, along = 0;
        for (unsigned side = 1u << 15; side; side >>= 1) {
            const unsigned right = (x & side) != 0, up = (y & side) != 0;
            along += side * side * ((3 * right) ^ up);
            if (!up) {
                if (right) x = 0xffff - x, y = 0xffff - y;
                const unsigned other = x;
                x = y, y = other;
            }
        }
        return along;
    }
};
__device__ __forceinline__ unsigned spread(unsigned x) {
    x = (x | x << 8) & 0x00ff00ff, x = (x | x << 4) & 0x0f0f0f0f, x = (x | x << 2) & 0x33333333;
    return (x | x << 1) & 0x55555555;
}
// The turns of all bits from those of one, two, four and eight.
struct Doubled {
    __device__ __forceinline__ unsigned operator()(unsigned place) const {
        const unsigned x = place & 0xffff, y = place >> 16;
        unsigned a = x ^ y, b = 0xffff ^ a, c = 0xffff ^ (x | y), d = x & (y ^ 0xffff);
        unsigned swaps = a | b >> 1, keeps = a >> 1 ^ a, lows = (c >> 1 ^ (b & d >> 1)) ^ c, highs = ((a & c >> 1) ^ d >> 1) ^ d;
#pragma unroll
        for (int bits = 2; bits <= 4; bits *= 2) {
            a = swaps, b = keeps, c = lows, d = highs;
            swaps = (a & a >> bits) ^ (b & b >> bits), keeps = (a & b >> bits) ^ (b & (a ^ b) >> bits);
            lows ^= (a & c >> bits) ^ (b & d >> bits), highs ^= (b & c >> bits) ^ ((a ^ b) & d >> bits);
        }
        a = swaps, b = keeps, c = lows, d = highs;
        lows ^= (a & c >> 8) ^ (b & d >> 8), highs ^= (b & c >> 8) ^ ((a ^ b) & d >> 8);
        const unsigned odd = x ^ y, even = (highs ^ highs >> 1) | (0xffff ^ (odd | (lows ^ lows >> 1)));
        return spread(even & 0xffff) << 1 | spread(odd & 0xffff);
    }
};
// Four bits of both at a time: how the curve is turned and eight bits along it.
struct FourBits {
    const unsigned short *next;
    __device__ __forceinline__ unsigned operator()(unsigned place) const {
        unsigned along = 0, turn = 0;
#pragma unroll
        for (int shift = 12; shift >= 0; shift -= 4) {
            const unsigned found = next[turn | (place >> shift & 15) << 4 | (place >> (shift + 16) & 15)];
            along = along << 8 | (found & 255), turn = found & 0x300;
        }
        return along;
    }
};
template <typename Along>
__device__ __forceinline__ void each_place(const uint4 *places, uint4 *out, int quads, Along along) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < quads; i += gridDim.x * 256) {
        const uint4 four = places[i];
        out[i] = make_uint4(along(four.x), along(four.y), along(four.z), along(four.w));
    }
}
__global__ void __launch_bounds__(256) along_curve(const uint4 *__restrict__ places, uint4 *__restrict__ out, int quads) { each_place(places, out, quads, BitByBit()); }
__global__ void __launch_bounds__(256) along_curve_doubled(const uint4 *__restrict__ places, uint4 *__restrict__ out, int quads) { each_place(places, out, quads, Doubled()); }
__global__ void __launch_bounds__(256) along_curve_table(const uint4 *__restrict__ places, uint4 *__restrict__ out, const unsigned *__restrict__ table, int quads) {
    __shared__ unsigned next[512];
    next[threadIdx.x] = table[threadIdx.x], next[threadIdx.x + 256] = table[threadIdx.x + 256];
    __syncthreads();
    each_place(places, out, quads, FourBits{reinterpret_cast<const unsigned short *>(next)});
}

Study filled("map_curve_bit_by_bit", "geography", 1 << 25, "how far along Hilbert's curve 33554432 places of a map lie",
    "sixteen rounds of some ten operations on whole numbers, a bit of both coordinates each",
    {{"doubled", "turns of all bits in four rounds", {"integer_arithmetic"}}, {"table", "four bits of both at a time from a table", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> table(512, 0);
        for (unsigned k = 0; k < 1024; k++) {
            const unsigned mirror = k >> 8 & 1 ? 15 : 0, swap = k >> 9;
            unsigned x = (swap ? k & 15 : k >> 4 & 15) ^ mirror, y = (swap ? k >> 4 & 15 : k & 15) ^ mirror, along = 0, turn = k >> 8;
            for (unsigned side = 8; side; side >>= 1) {
                const unsigned right = (x & side) != 0, up = (y & side) != 0;
                along += side * side * ((3 * right) ^ up);
                if (up) continue;
                if (right) x ^= 15, y ^= 15, turn ^= 1;
                std::swap(x, y), turn ^= 2;
            }
            table[k / 2] |= (along | turn << 8) << 16 * (k % 2);
        }
        const unsigned *next = b.copy(table);
        const uint4 *places = reinterpret_cast<const uint4 *>(b.random<unsigned>(n, 0.0, 4294967295.0));
        uint4 *out = reinterpret_cast<uint4 *>(b.output<unsigned>(n));
        b.tolerance = 0.0;
        const unsigned grid = 8 * multiprocessors();
        return {{"flawed", launch(along_curve, grid, 256, 0, places, out, n / 4)}, {"doubled", launch(along_curve_doubled, grid, 256, 0, places, out, n / 4)},
            {"table", launch(along_curve_table, grid, 256, 0, places, out, next, n / 4)}};
    });

// --- how trees of a forest stand together ---

constexpr int REACHES = 8, FORESTERS = 1024;

struct Reaches {
    float squares[REACHES];
};
// How many of the trees after `i` are nearer than each reach.
__device__ __forceinline__ void count_row(int (&counts)[REACHES], const float2 *trees, int i, int count, const Reaches &reaches) {
    const float2 own = trees[i];
#pragma unroll 2
    for (int j = i + 1 + threadIdx.x; j < count; j += FORESTERS) {
        const float2 other = trees[j];
        const float dx = other.x - own.x, dy = other.y - own.y, square = dx * dx + dy * dy;
#pragma unroll
        for (int k = 0; k < REACHES; k++) counts[k] += square < reaches.squares[k];
    }
}
__device__ __forceinline__ void add_counts(int *out, int (&counts)[REACHES]) {
#pragma unroll
    for (int k = 0; k < REACHES; k++) {
        const int sum = __reduce_add_sync(~0u, counts[k]);
        if (threadIdx.x % 32 == 0) atomicAdd(out + k, sum);
    }
}
// Trees in pieces, one a block.
__global__ void __launch_bounds__(FORESTERS) near_trees(const float2 *__restrict__ trees, int *__restrict__ out, int count, Reaches reaches) {
    const int piece = (count + gridDim.x - 1) / gridDim.x, first = blockIdx.x * piece, last = min(first + piece, count);
    int counts[REACHES] = {};
    for (int i = first; i < last; i++) count_row(counts, trees, i, count, reaches);
    add_counts(out, counts);
}
// Trees dealt out to blocks.
__global__ void __launch_bounds__(FORESTERS) near_trees_dealt(const float2 *__restrict__ trees, int *__restrict__ out, int count, Reaches reaches) {
    int counts[REACHES] = {};
    for (int i = blockIdx.x; i < count; i += gridDim.x) count_row(counts, trees, i, count, reaches);
    add_counts(out, counts);
}
// Pieces from both ends.
__global__ void __launch_bounds__(FORESTERS) near_trees_ends(const float2 *__restrict__ trees, int *__restrict__ out, int count, Reaches reaches) {
    const int piece = (count / 2 + gridDim.x - 1) / gridDim.x, first = blockIdx.x * piece, last = min(first + piece, count / 2);
    int counts[REACHES] = {};
    for (int i = first; i < last; i++) count_row(counts, trees, i, count, reaches), count_row(counts, trees, count - 1 - i, count, reaches);
    add_counts(out, counts);
}

Study forested("near_trees_pieces_of_a_triangle", "ecology", 24576, "how many pairs of 24576 trees are nearer than each of eight reaches",
    "a block a piece of trees, each compared with those after it: the first piece has twice the mean",
    {{"dealt", "trees dealt out one by one", {"workload_imbalance"}}, {"ends", "a block takes trees from both ends", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        const float2 *trees = reinterpret_cast<const float2 *>(b.random<float>(2 * n, 0.0, 1000.0));
        int *out = b.output<int>(REACHES, true), count = multiprocessors();
        Reaches reaches;
        for (int k = 0; k < REACHES; k++) reaches.squares[k] = 1600.0f * static_cast<float>((k + 1) * (k + 1));
        b.tolerance = 0.0;
        return {{"flawed", launch(near_trees, count, FORESTERS, 0, trees, out, n, reaches)}, {"dealt", launch(near_trees_dealt, count, FORESTERS, 0, trees, out, n, reaches)},
            {"ends", launch(near_trees_ends, count, FORESTERS, 0, trees, out, n, reaches)}};
    });

// --- beats of hearts ---

constexpr int BEAT = 256;

// A beat a block, less its mean and divided by its deviation.
__global__ void __launch_bounds__(BEAT) beats(const float *__restrict__ signal, float *__restrict__ out) {
    __shared__ float values[BEAT], sums[2];
    const int t = threadIdx.x, at = blockIdx.x * BEAT + t;
    float value = signal[at];
    values[t] = value;
    __syncthreads();
    if (t == 0) {
        float sum = 0.0f, squares = 0.0f;
        for (int k = 0; k < BEAT; k++) sum += values[k], squares += values[k] * values[k];
        sums[0] = sum / BEAT, sums[1] = rsqrtf(squares / BEAT - sums[0] * sums[0] + 1e-6f);
    }
    __syncthreads();
    out[at] = (value - sums[0]) * sums[1];
}
// Sums of warps first.
__global__ void __launch_bounds__(BEAT) beats_warps(const float *__restrict__ signal, float *__restrict__ out) {
    __shared__ float2 parts[BEAT / 32];
    const int t = threadIdx.x, at = blockIdx.x * BEAT + t;
    const float value = signal[at], of_warp = warp_sum(value), squares_of_warp = warp_sum(value * value);
    if (t % 32 == 0) parts[t / 32] = make_float2(of_warp, squares_of_warp);
    __syncthreads();
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int k = 0; k < BEAT / 32; k++) sum += parts[k].x, squares += parts[k].y;
    const float mean = sum / BEAT;
    out[at] = (value - mean) * rsqrtf(squares / BEAT - mean * mean + 1e-6f);
}
// A beat a warp.
__global__ void __launch_bounds__(256) beats_warp_each(const float4 *__restrict__ signal, float4 *__restrict__ out) {
    const int at = (blockIdx.x * 8 + threadIdx.x / 32) * (BEAT / 4) + threadIdx.x % 32;
    const float4 a = signal[at], c = signal[at + 32];
    const float mean = warp_sum(a.x + a.y + a.z + a.w + c.x + c.y + c.z + c.w) / BEAT;
    const float squares = warp_sum(a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w + c.x * c.x + c.y * c.y + c.z * c.z + c.w * c.w) / BEAT;
    const float scale = rsqrtf(squares - mean * mean + 1e-6f);
    out[at] = make_float4((a.x - mean) * scale, (a.y - mean) * scale, (a.z - mean) * scale, (a.w - mean) * scale);
    out[at + 32] = make_float4((c.x - mean) * scale, (c.y - mean) * scale, (c.z - mean) * scale, (c.w - mean) * scale);
}

Study beating("heart_beats_summed_by_one_thread", "medicine", 131072, "131072 beats of 256 values with a mean of zero and a deviation of one",
    "one thread of 256 adds up the beat while the others wait",
    {{"warps", "sums of warps by shuffles, then of eight", {"idle_threads"}}, {"warp_each", "a beat a warp, eight values a lane", {"idle_threads", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float *signal = b.random<float>(n * BEAT, -0.6, 1.0);
        float *out = b.output<float>(n * BEAT);
        return {{"flawed", launch(beats, n, BEAT, 0, signal, out)}, {"warps", launch(beats_warps, n, BEAT, 0, signal, out)},
            {"warp_each", launch(beats_warp_each, n / 8, 256, 0, reinterpret_cast<const float4 *>(signal), reinterpret_cast<float4 *>(out))}};
    });

// --- when a wave arrives ---

constexpr int SAMPLES = 768;

// The mean power of the last few samples and of many.
struct Powers {
    float few, many;
    __device__ __forceinline__ bool arrives(float x) {
        const float power = __fmul_rn(x, x);
        few = fmaf(power - few, 0.1f, few), many = fmaf(power - many, 0.01f, many);
        return few > 3.0f * many;
    }
};
// A trace a thread; samples of one time are side by side.
__global__ void __launch_bounds__(128) arrivals(const float *__restrict__ traces, int *__restrict__ out, int count, float usual) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    Powers powers = {usual, usual};
    int t = 0;
    while (t < SAMPLES && !powers.arrives(traces[t * count + i])) t++;
    out[i] = t;
}
// Eight samples are loaded before the first is looked at.
__global__ void __launch_bounds__(128) arrivals_eight(const float *__restrict__ traces, int *__restrict__ out, int count, float usual) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    Powers powers = {usual, usual};
    int found = SAMPLES;
    for (int t = 0; t < SAMPLES && found == SAMPLES; t += 8) {
        float x[8];
#pragma unroll
        for (int k = 0; k < 8; k++) x[k] = traces[(t + k) * count + i];
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (powers.arrives(x[k]) && found == SAMPLES) found = t + k;
    }
    out[i] = found;
}
// The next eight are loaded before these are looked at.
__global__ void __launch_bounds__(128) arrivals_ahead(const float *__restrict__ traces, int *__restrict__ out, int count, float usual) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    Powers powers = {usual, usual};
    int found = SAMPLES;
    float x[8], next[8];
#pragma unroll
    for (int k = 0; k < 8; k++) next[k] = traces[k * count + i];
    for (int t = 0; t < SAMPLES && found == SAMPLES; t += 8) {
#pragma unroll
        for (int k = 0; k < 8; k++) x[k] = next[k], next[k] = traces[(min(t + 8, SAMPLES - 8) + k) * count + i];
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (powers.arrives(x[k]) && found == SAMPLES) found = t + k;
    }
    out[i] = found;
}

Study arriving("wave_arrivals_sample_by_sample", "seismology", 65536, "when a wave arrives in each of 65536 traces of 768 samples",
    "a sample is asked for once the one before has been looked at",
    {{"eight", "eight samples loaded at a time", {"memory_latency"}}, {"ahead", "the next eight loaded before these are looked at", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> list(n * SAMPLES);
        for (long i = 0; i < n; i++) {
            const int arrival = 200 + static_cast<int>(450.0f * std::fabs(std::sin(0.0007f * i)));
            for (int t = 0; t < SAMPLES; t++) list[t * n + i] = (t < arrival ? 1.0f : 9.0f) * (static_cast<float>(hash(t * n + i) >> 8) * 0x1p-23f - 1.0f);
        }
        const float *traces = b.copy(list);
        int *out = b.output<int>(n);
        b.tolerance = 0.0;
        return {{"flawed", launch(arrivals, n / 128, 128, 0, traces, out, n, 0.33f)}, {"eight", launch(arrivals_eight, n / 128, 128, 0, traces, out, n, 0.33f)},
            {"ahead", launch(arrivals_ahead, n / 128, 128, 0, traces, out, n, 0.33f)}};
    });

// --- spectra as decibels: without a flaw ---

__device__ __forceinline__ float decibels(float real, float imaginary) { return 3.01029996f * __log2f(real * real + imaginary * imaginary + 1e-12f); }
// Two complex values a thread.
__global__ void __launch_bounds__(256) spectra(const float4 *__restrict__ in, float2 *__restrict__ out, int pairs) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= pairs) return;
    const float4 two = in[i];
    out[i] = make_float2(decibels(two.x, two.y), decibels(two.z, two.w));
}

Study loud("sound_spectra_as_decibels", "audio", 1 << 24, "powers of 16777216 complex values in decibels", "", {}, [](Buffers &b, long n) -> Sides {
    const float4 *in = reinterpret_cast<const float4 *>(b.random<float>(n * 2));
    return {{"sound", launch(spectra, blocks(n / 2, 256), 256, 0, in, reinterpret_cast<float2 *>(b.output<float>(n)), n / 2)}};
});

}  // namespace
