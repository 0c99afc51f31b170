// Lakes, winds, scanners, clinics, weather, rooms, stars, robots, X-rays and ions.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <cuda_pipeline.h>

#include "../pairs/pair.cuh"

namespace {

// --- points in a lake ---

__device__ __forceinline__ float2 seen_from(float2 shore, int x, int y) { return make_float2(shore.x - (x + 0.5f), shore.y - (y + 0.265625f)); }
__device__ __forceinline__ float crossed(float2 a, float2 b) { return a.x * b.y - a.y * b.x; }
// How often a shore winds around the middle of a cell.
__global__ void __launch_bounds__(256) in_lake(const float2 *__restrict__ shore, signed char *__restrict__ out, int corners) {
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
    float2 last = seen_from(shore[corners - 1], x, y);
    float turned = 0.0f;
#pragma unroll 4
    for (int k = 0; k < corners; k++) {
        const float2 next = seen_from(shore[k], x, y);
        turned += atan2f(crossed(last, next), last.x * next.x + last.y * next.y);
        last = next;
    }
    out[y * gridDim.x * 256 + x] = static_cast<signed char>(rintf(turned * 0.15915494f));
}
// Edges that pass the cell on its right, up and down.
__global__ void __launch_bounds__(256) in_lake_passed(const float2 *__restrict__ shore, signed char *__restrict__ out, int corners) {
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
    float2 last = seen_from(shore[corners - 1], x, y);
    int turns = 0;
#pragma unroll 4
    for (int k = 0; k < corners; k++) {
        const float2 next = seen_from(shore[k], x, y);
        const float side = crossed(last, next);
        turns += last.y <= 0.0f && next.y > 0.0f && side > 0.0f;
        turns -= last.y > 0.0f && next.y <= 0.0f && side < 0.0f;
        last = next;
    }
    out[y * gridDim.x * 256 + x] = static_cast<signed char>(turns);
}
// Quarters of a turn from the signs of coordinates.
__global__ void __launch_bounds__(256) in_lake_quarters(const float2 *__restrict__ shore, signed char *__restrict__ out, int corners) {
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
    float2 last = seen_from(shore[corners - 1], x, y);
    int quarter = last.y > 0.0f ? last.x <= 0.0f : 2 + (last.x > 0.0f), turned = 0;
#pragma unroll 4
    for (int k = 0; k < corners; k++) {
        const float2 next = seen_from(shore[k], x, y);
        const int to = next.y > 0.0f ? next.x <= 0.0f : 2 + (next.x > 0.0f), moved = (to - quarter) & 3;
        turned += moved == 2 ? (crossed(last, next) > 0.0f ? 2 : -2) : moved == 3 ? -1 : moved;
        quarter = to, last = next;
    }
    out[y * gridDim.x * 256 + x] = static_cast<signed char>(turned / 4);
}

Study lakes("lake_mask_angle_of_each_edge", "geography", 1024, "how often a shore of 512 corners winds around each of 1024 x 1024 cells",
    "an arc tangent of two arguments for each edge and cell",
    {{"passed", "edges counted that pass a cell on its right", {"expensive_math"}}, {"quarters", "quarters of a turn from signs", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int corners = 512;
        std::vector<float> shore(2 * corners);
        for (int k = 0; k < corners; k++) {
            const double angle = 2.0 * 3.14159265358979 * k / corners, reach = n * (0.3 + 0.09 * std::sin(3.0 * angle) + 0.06 * std::cos(11.0 * angle) + 0.03 * std::sin(37.0 * angle));
            shore[2 * k] = static_cast<float>(std::floor(0.5 * n + reach * std::cos(angle))), shore[2 * k + 1] = static_cast<float>(std::floor(0.5 * n + reach * std::sin(angle)));
        }
        const float2 *points = reinterpret_cast<const float2 *>(b.copy(shore));
        signed char *out = b.output<signed char>(n * n);
        b.tolerance = 0.0;
        const dim3 grid(n / 256, n);
        return {{"flawed", launch(in_lake, grid, 256, 0, points, out, corners)}, {"passed", launch(in_lake_passed, grid, 256, 0, points, out, corners)},
            {"quarters", launch(in_lake_quarters, grid, 256, 0, points, out, corners)}};
    });

// --- how winds turn and part ---

struct Winds {
    const float *east, *north;  // level by level, latitude by latitude
    const float *steps;         // a latitude's share of a difference along it
    float *turning, *parting;
    int latitudes, longitudes;
    float step;  // of a difference across latitudes
};
__device__ __forceinline__ void wind_at(const Winds &w, int level, int latitude, int longitude) {
    const float *__restrict__ east = w.east + level * w.latitudes * w.longitudes, *__restrict__ north = w.north + level * w.latitudes * w.longitudes;
    const int row = latitude * w.longitudes, above = max(latitude - 1, 0) * w.longitudes + longitude, below = min(latitude + 1, w.latitudes - 1) * w.longitudes + longitude;
    const int left = row + (longitude ? longitude : w.longitudes) - 1, right = row + (longitude + 1 < w.longitudes ? longitude + 1 : 0);
    const float along = w.steps[latitude];
    const int to = level * w.latitudes * w.longitudes + row + longitude;
    w.turning[to] = (north[right] - north[left]) * along - (east[above] - east[below]) * w.step;
    w.parting[to] = (east[right] - east[left]) * along + (north[above] - north[below]) * w.step;
}
__global__ void __launch_bounds__(256) winds(Winds w) { wind_at(w, blockIdx.z, blockIdx.x * 16 + threadIdx.x, blockIdx.y * 16 + threadIdx.y); }
__global__ void __launch_bounds__(256) winds_along(Winds w) { wind_at(w, blockIdx.z, blockIdx.y * 8 + threadIdx.y, blockIdx.x * 32 + threadIdx.x); }
__device__ __forceinline__ float4 differences(float4 a, float4 b, float share) { return make_float4((a.x - b.x) * share, (a.y - b.y) * share, (a.z - b.z) * share, (a.w - b.w) * share); }
// Four longitudes a thread.
__global__ void __launch_bounds__(240) winds_four(Winds w) {
    const int latitude = blockIdx.y * 2 + threadIdx.y, longitude = 4 * (blockIdx.x * 120 + threadIdx.x), level = blockIdx.z * w.latitudes * w.longitudes;
    const int row = level + latitude * w.longitudes, own = row + longitude;
    const int above = level + max(latitude - 1, 0) * w.longitudes + longitude, below = level + min(latitude + 1, w.latitudes - 1) * w.longitudes + longitude;
    const int left = row + (longitude ? longitude : w.longitudes) - 1, right = row + (longitude + 4 < w.longitudes ? longitude + 4 : 0);
    const auto four = [](const float *values) { return *reinterpret_cast<const float4 *>(values); };
    const float4 east = four(w.east + own), north = four(w.north + own);
    const float along = w.steps[latitude];
    const float4 east_along = differences(make_float4(east.y, east.z, east.w, w.east[right]), make_float4(w.east[left], east.x, east.y, east.z), along);
    const float4 north_along = differences(make_float4(north.y, north.z, north.w, w.north[right]), make_float4(w.north[left], north.x, north.y, north.z), along);
    const float4 east_across = differences(four(w.east + above), four(w.east + below), w.step), north_across = differences(four(w.north + above), four(w.north + below), w.step);
    *reinterpret_cast<float4 *>(w.turning + own) = differences(north_along, east_across, 1.0f);
    *reinterpret_cast<float4 *>(w.parting + own) = make_float4(east_along.x + north_across.x, east_along.y + north_across.y, east_along.z + north_across.z, east_along.w + north_across.w);
}

Study turning("winds_latitudes_in_lanes", "climate", 13, "vorticity and divergence of winds on 13 levels of 720 x 1440 points",
    "neighbouring lanes have neighbouring latitudes, 5760 bytes apart",
    {{"along", "neighbouring lanes have neighbouring longitudes", {"uncoalesced_access"}}, {"four", "four longitudes a lane", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int latitudes = 720, longitudes = 1440, levels = static_cast<int>(n);
        std::vector<float> steps(latitudes);
        for (int k = 0; k < latitudes; k++) steps[k] = 0.5f / std::cos((k - 359.5f) * 0.00436f);
        const size_t points = n * latitudes * longitudes;
        const Winds w = {b.random<float>(points, -40.0, 40.0), b.random<float>(points, -40.0, 40.0), b.copy(steps), b.output<float>(points), b.output<float>(points), latitudes, longitudes, 0.5f};
        return {{"flawed", launch(winds, dim3(latitudes / 16, longitudes / 16, levels), dim3(16, 16), 0, w)}, {"along", launch(winds_along, dim3(longitudes / 32, latitudes / 8, levels), dim3(32, 8), 0, w)},
            {"four", launch(winds_four, dim3(longitudes / 480, latitudes / 2, levels), dim3(120, 2), 0, w)}};
    });

// --- heights that a scanner sees ---

constexpr int CELLS = 512;

struct Seen {
    int cell;  // below zero: off the map
    unsigned height;
};
__device__ __forceinline__ Seen seen(float4 point) {
    const int x = static_cast<int>(floorf(point.x * 5.0f)) + CELLS / 2, y = static_cast<int>(floorf(point.y * 5.0f)) + CELLS / 2;
    const bool inside = x >= 0 && x < CELLS && y >= 0 && y < CELLS;
    return {inside ? y * CELLS + x : -1, static_cast<unsigned>((point.z + 4.0f) * 1000.0f)};
}
// Sums of heights, in millimetres, and how many there are.
__global__ void __launch_bounds__(256) heights(const float4 *__restrict__ points, uint2 *__restrict__ map) {
    const Seen s = seen(points[blockIdx.x * 256 + threadIdx.x]);
    if (s.cell < 0) return;
    atomicAdd(&map[s.cell].x, s.height);
    atomicAdd(&map[s.cell].y, 1u);
}
__global__ void __launch_bounds__(256) heights_words(const float4 *__restrict__ points, uint2 *__restrict__ map) {
    const Seen s = seen(points[blockIdx.x * 256 + threadIdx.x]);
    if (s.cell >= 0) atomicAdd(reinterpret_cast<unsigned long long *>(map) + s.cell, (1ull << 32) | s.height);
}
// Points of a cell that follow each other are summed first.
template <bool WORDS>
__global__ void __launch_bounds__(256) heights_runs(const float4 *__restrict__ points, uint2 *__restrict__ map) {
    const int lane = threadIdx.x % 32;
    const Seen s = seen(points[blockIdx.x * 256 + threadIdx.x]);
    const int before = __shfl_up_sync(~0u, s.cell, 1);
    const unsigned firsts = __ballot_sync(~0u, lane == 0 || before != s.cell), later = firsts >> lane >> 1;
    const int end = later ? lane + __ffs(static_cast<int>(later)) : 32;
    unsigned sum = s.height;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const unsigned other = __shfl_down_sync(~0u, sum, offset);
        sum += lane + offset < end ? other : 0;
    }
    if (!(firsts >> lane & 1) || s.cell < 0) return;
    const unsigned count = end - lane;
    if constexpr (WORDS) {
        atomicAdd(reinterpret_cast<unsigned long long *>(map) + s.cell, static_cast<unsigned long long>(count) << 32 | sum);
    } else {
        atomicAdd(&map[s.cell].x, sum);
        atomicAdd(&map[s.cell].y, count);
    }
}

Study scanned("elevation_map_two_atomics_a_point", "robotics", 4194304, "4194304 points of a scanner summed by 512 x 512 cells: heights and how many",
    "two atomics a point, of neighbours in a cell to the same two words",
    {{"words", "one atomic of 64 bits for both", {"global_atomics"}}, {"runs", "neighbours in a cell summed first", {"global_atomics"}}, {"both", "neighbours in a cell summed first, one atomic of 64 bits for both sums", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> points(4 * n);
        for (long i = 0; i < n; i++) {
            const int scan = static_cast<int>(i / 131072), ring = i / 2048 % 64, turn = i % 2048;
            const double angle = turn * 0.00306796157577 + 0.0007 * scan, reach = (2.0 + 0.45 * ring) * (1.0 + 0.08 * std::sin(5.0 * angle + 0.2 * ring));
            const double x = reach * std::cos(angle) + 0.8 * scan - 12.0, y = reach * std::sin(angle) + 0.3 * scan;
            points[4 * i] = static_cast<float>(x), points[4 * i + 1] = static_cast<float>(y), points[4 * i + 3] = 0.5f;
            points[4 * i + 2] = static_cast<float>(0.4 * std::sin(0.3 * x) * std::cos(0.2 * y) + 0.01 * (pairs::hash(static_cast<unsigned>(i)) % 8));
        }
        const float4 *cloud = reinterpret_cast<const float4 *>(b.copy(points));
        uint2 *map = reinterpret_cast<uint2 *>(b.output<unsigned>(2 * CELLS * CELLS, true));
        b.tolerance = 0.0;
        return {{"flawed", launch(heights, n / 256, 256, 0, cloud, map)}, {"words", launch(heights_words, n / 256, 256, 0, cloud, map)}, {"runs", launch(heights_runs<false>, n / 256, 256, 0, cloud, map)},
            {"both", launch(heights_runs<true>, n / 256, 256, 0, cloud, map)}};
    });

// --- what tissue takes of gamma rays ---

constexpr int KNOTS = 256, VOXELS = 16;

__constant__ float2 knots_there[KNOTS];

__device__ __forceinline__ float taken(float2 knot, int unit) { return knot.x + knot.y * (unit % 16); }
template <typename Knot>
__device__ __forceinline__ void tissue(const ushort4 *__restrict__ units, float4 *__restrict__ out, Knot knot) {
#pragma unroll
    for (int k = 0; k < VOXELS / 4; k++) {
        const int at = (blockIdx.x * (VOXELS / 4) + k) * 256 + threadIdx.x;
        const ushort4 u = units[at];
        out[at] = make_float4(taken(knot(u.x / 16), u.x), taken(knot(u.y / 16), u.y), taken(knot(u.z / 16), u.z), taken(knot(u.w / 16), u.w));
    }
}
// Units of a scanner as what each voxel takes, along a curve of 256 pieces.
__global__ void __launch_bounds__(256) tissues(const ushort4 *__restrict__ units, float4 *__restrict__ out) {
    tissue(units, out, [](int k) { return knots_there[k]; });
}
__global__ void __launch_bounds__(256) tissues_shared(const ushort4 *__restrict__ units, const float2 *__restrict__ knots, float4 *__restrict__ out) {
    __shared__ float2 own[KNOTS];
    own[threadIdx.x] = knots[threadIdx.x];
    __syncthreads();
    tissue(units, out, [&](int k) { return own[k]; });
}
__global__ void __launch_bounds__(256) tissues_cached(const ushort4 *__restrict__ units, const float2 *__restrict__ knots, float4 *__restrict__ out) {
    tissue(units, out, [=](int k) { return __ldg(knots + k); });
}

Study attenuated("attenuation_curve_in_constant_memory", "medical imaging", 128, "128 slices of 512 x 512 voxels of a scanner as what they take of gamma rays, along a curve of 256 pieces",
    "each lane looks up another piece of the curve in constant memory",
    {{"shared", "the curve in shared memory", {"constant_divergence"}}, {"cached", "the curve in global memory, by way of the L1 cache", {"constant_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const long voxels = n * 512 * 512;
        std::vector<unsigned short> units(voxels);
        for (long i = 0; i < voxels; i++) {
            const int x = i % 512 - 256, y = i / 512 % 512 - 256, far = x * x + y * y;
            const unsigned chance = pairs::hash(static_cast<unsigned>(i));
            const int noise = static_cast<int>(chance % 97 + (chance >> 8) % 97 + (chance >> 16) % 97) - 144;
            const int here = far > 210 * 210 ? 200 : far > 190 * 190 ? 2100 : 1060 + (x / 40 + y / 56) % 3 * 35;
            units[i] = static_cast<unsigned short>(std::min(std::max(here + noise, 0), 4095));
        }
        std::vector<float2> knots(KNOTS);
        const auto curve = [](double unit) { return unit < 1024.0 ? 0.096 * unit / 1024.0 : 0.096 + 0.00005 * (unit - 1024.0) - 2e-9 * (unit - 1024.0) * (unit - 1024.0); };
        for (int k = 0; k < KNOTS; k++) knots[k] = {static_cast<float>(curve(16.0 * k)), static_cast<float>((curve(16.0 * k + 16.0) - curve(16.0 * k)) / 16.0)};
        const ushort4 *in = reinterpret_cast<const ushort4 *>(b.copy(units));
        const float2 *table = b.copy(knots);
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(voxels));
        CHECK(cudaMemcpyToSymbol(knots_there, knots.data(), sizeof(knots_there)));
        const int grid = static_cast<int>(voxels / 256 / VOXELS);
        return {{"flawed", launch(tissues, grid, 256, 0, in, out)}, {"shared", launch(tissues_shared, grid, 256, 0, in, table, out)}, {"cached", launch(tissues_cached, grid, 256, 0, in, table, out)}};
    });

// --- heights of pressure levels ---

constexpr int LEVELS = 24, LEVELS_EACH = 6, COLUMNS = 64;

struct Air {
    const float *surface, *warmth, *vapour;
    float *out;
    int columns;
    float layers[LEVELS];  // of logarithms of pressure, times the gas constant
};
__device__ __forceinline__ float layer(const Air &air, int level, int column) {
    const int at = level * air.columns + column;
    return air.layers[level] * air.warmth[at] * (1.0f + 0.608f * air.vapour[at]);
}
__global__ void __launch_bounds__(256) geopotential(const __grid_constant__ Air air) {
    const int column = blockIdx.y * COLUMNS + threadIdx.x, level = blockIdx.x * 4 + threadIdx.y;
    float height = air.surface[column];
#pragma unroll 4
    for (int k = 0; k <= level; k++) height += layer(air, k, column);
    air.out[level * air.columns + column] = height;
}
// A column a thread.
__global__ void __launch_bounds__(256) geopotential_columns(const __grid_constant__ Air air) {
    const int column = blockIdx.x * 256 + threadIdx.x;
    float height = air.surface[column];
#pragma unroll
    for (int first = 0; first < LEVELS; first += 8) {
        float layers[8];
#pragma unroll
        for (int k = 0; k < 8; k++) layers[k] = layer(air, first + k, column);
#pragma unroll
        for (int k = 0; k < 8; k++) air.out[(first + k) * air.columns + column] = height += layers[k];
    }
}
// Six levels of a column a thread; what is below comes from shared memory.
__global__ void __launch_bounds__(256) geopotential_parts(const __grid_constant__ Air air) {
    __shared__ float parts[LEVELS / LEVELS_EACH][COLUMNS];
    const int column = blockIdx.x * COLUMNS + threadIdx.x, first = threadIdx.y * LEVELS_EACH;
    float layers[LEVELS_EACH], sum = 0.0f, height = air.surface[column];
#pragma unroll
    for (int k = 0; k < LEVELS_EACH; k++) layers[k] = layer(air, first + k, column);
#pragma unroll
    for (int k = 0; k < LEVELS_EACH; k++) sum += layers[k];
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    for (int k = 0; k < static_cast<int>(threadIdx.y); k++) height += parts[k][threadIdx.x];
#pragma unroll
    for (int k = 0; k < LEVELS_EACH; k++) air.out[(first + k) * air.columns + column] = height += layers[k];
}

Study risen("geopotential_summed_from_the_ground_for_each_level", "weather", 1048576, "heights of 24 pressure levels above 1048576 places, from warmth and vapour",
    "each level loads and sums all levels below it again",
    {{"columns", "a column a thread", {"redundant_loads"}}, {"parts", "six levels a thread, sums below from shared memory", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        Air air = {b.random<float>(n, 0.0, 9000.0), b.random<float>(n * LEVELS, 210.0, 300.0), b.random<float>(n * LEVELS, 0.0, 0.02), b.output<float>(n * LEVELS), static_cast<int>(n), {}};
        for (int k = 0; k < LEVELS; k++) air.layers[k] = 287.05f * (0.05f + 0.006f * k);
        return {{"flawed", launch(geopotential, dim3(LEVELS / 4, n / COLUMNS), dim3(COLUMNS, 4), 0, air)}, {"columns", launch(geopotential_columns, n / 256, 256, 0, air)},
            {"parts", launch(geopotential_parts, n / COLUMNS, dim3(COLUMNS, LEVELS / LEVELS_EACH), 0, air)}};
    });

// --- rooms of 64 delays ---

constexpr int LINES = 64, TIMES = 128, ROW = LINES + 2, CHUNK = 64;

struct Rooms {
    const float *in;
    float *out;
    int samples;
    float gain;
};
__device__ __forceinline__ int heard_before(int t, int line) { return ((t - 64 - line) & (TIMES - 1)) * ROW + line; }
// A room a block, a delay a thread: all mixed by a reflection.
__global__ void __launch_bounds__(LINES) rooms(Rooms r) {
    __shared__ float lines[TIMES * ROW], heard[CHUNK], parts[2];
    const int line = threadIdx.x, room = blockIdx.x * r.samples;
    for (int t = 0; t < TIMES; t++) lines[t * ROW + line] = 0.0f;
    for (int start = 0; start < r.samples; start += CHUNK) {
        heard[line] = r.in[room + start + line];
        __syncthreads();
        for (int s = 0; s < CHUNK; s++) {
            const int t = start + s;
            const float own = lines[heard_before(t, line)], part = warp_sum(own);
            if (line % 32 == 0) parts[line / 32] = part;
            __syncthreads();
            const float all = parts[0] + parts[1];
            lines[(t & (TIMES - 1)) * ROW + line] = heard[s] + r.gain * (own - all * (2.0f / LINES));
            if (line == 0) r.out[room + t] = all;
            __syncthreads();
        }
    }
}
// A room a warp, two delays a lane.
__global__ void __launch_bounds__(32) rooms_warp(Rooms r) {
    __shared__ float lines[TIMES * ROW], heard[CHUNK];
    const int lane = threadIdx.x, room = blockIdx.x * r.samples;
    for (int t = 0; t < TIMES; t++) lines[t * ROW + lane] = lines[t * ROW + lane + 32] = 0.0f;
    for (int start = 0; start < r.samples; start += CHUNK) {
        __syncwarp();
        heard[lane] = r.in[room + start + lane], heard[lane + 32] = r.in[room + start + lane + 32];
        __syncwarp();
#pragma unroll 2
        for (int s = 0; s < CHUNK; s++) {
            const int t = start + s;
            const float low = lines[heard_before(t, lane)], high = lines[heard_before(t, lane + 32)], all = warp_sum(low + high), in = heard[s];
            lines[(t & (TIMES - 1)) * ROW + lane] = in + r.gain * (low - all * (2.0f / LINES));
            lines[(t & (TIMES - 1)) * ROW + lane + 32] = in + r.gain * (high - all * (2.0f / LINES));
            if (lane == 0) r.out[room + t] = all;
        }
    }
}
// Four samples at a time: the shortest delay has 64.
__global__ void __launch_bounds__(LINES) rooms_four(Rooms r) {
    __shared__ float lines[TIMES * ROW], heard[CHUNK], parts[2][4];
    const int line = threadIdx.x, room = blockIdx.x * r.samples;
    for (int t = 0; t < TIMES; t++) lines[t * ROW + line] = 0.0f;
    for (int start = 0; start < r.samples; start += CHUNK) {
        heard[line] = r.in[room + start + line];
        __syncthreads();
        for (int s = 0; s < CHUNK; s += 4) {
            const int t = start + s;
            float own[4];
#pragma unroll
            for (int k = 0; k < 4; k++) own[k] = lines[heard_before(t + k, line)];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const float part = warp_sum(own[k]);
                if (line % 32 == 0) parts[line / 32][k] = part;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const float all = parts[0][k] + parts[1][k];
                lines[((t + k) & (TIMES - 1)) * ROW + line] = heard[s + k] + r.gain * (own[k] - all * (2.0f / LINES));
                if (line == k) r.out[room + t + k] = all;
            }
            __syncthreads();
        }
    }
}

Study echoes("reverberation_two_barriers_a_sample", "audio", 792, "reverberation in 792 rooms of 64 delays each, mixed by a reflection, for 2048 samples",
    "two warps wait for each other twice for each sample",
    {{"warp", "a room a warp, two delays a lane", {"barriers"}}, {"four", "four samples between two barriers", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const int samples = 2048;
        const Rooms r = {b.random<float>(n * samples), b.output<float>(n * samples), samples, 0.93f};
        return {{"flawed", launch(rooms, n, LINES, 0, r)}, {"warp", launch(rooms_warp, n, 32, 0, r)}, {"four", launch(rooms_four, n, LINES, 0, r)}};
    });

// --- periods of stars ---

struct Sky {
    const int *starts;
    const float2 *visits;  // days, brightness
    float *powers;
    int frequencies;
    float step;
};
__device__ __forceinline__ void visit(float2 &sum, float2 visit, float frequency) {
    const float turns = visit.x * frequency, angle = 6.2831853f * (turns - rintf(turns));
    sum.x += visit.y * __cosf(angle), sum.y += visit.y * __sinf(angle);
}
__device__ __forceinline__ void star_of(const Sky &sky, int star) {
    const int first = sky.starts[star], end = sky.starts[star + 1];
    const float frequency = (threadIdx.x + 1) * sky.step;
    float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll 4
    for (int k = first; k < end; k++) visit(sum, sky.visits[k], frequency);
    sky.powers[star * sky.frequencies + threadIdx.x] = (sum.x * sum.x + sum.y * sum.y) / (end - first);
}
// A star a block, a frequency a thread; stars come as often as they were visited.
__global__ void __launch_bounds__(256) star_powers(Sky sky) { star_of(sky, blockIdx.x); }
__global__ void __launch_bounds__(256) star_powers_back(Sky sky) { star_of(sky, gridDim.x - 1 - blockIdx.x); }
// 64 frequencies a block, a quarter of the visits a thread.
__global__ void __launch_bounds__(256) star_powers_quarters(Sky sky) {
    __shared__ float2 sums[4][64];
    const int star = blockIdx.y, first = sky.starts[star], end = sky.starts[star + 1], own = threadIdx.x % 64, quarter = threadIdx.x / 64;
    const int at = blockIdx.x * 64 + own;
    const float frequency = (at + 1) * sky.step;
    float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll 4
    for (int k = first + quarter; k < end; k += 4) visit(sum, sky.visits[k], frequency);
    sums[quarter][own] = sum;
    __syncthreads();
    if (quarter) return;
#pragma unroll
    for (int k = 1; k < 4; k++) sum.x += sums[k][own].x, sum.y += sums[k][own].y;
    sky.powers[star * sky.frequencies + at] = (sum.x * sum.x + sum.y * sum.y) / (end - first);
}

Study periods("star_periods_most_visited_last", "astronomy", 2640, "powers at 256 frequencies of the brightness of 2640 stars, visited 100 to 2000 times",
    "the blocks of the stars with the most visits begin last",
    {{"back", "the stars from the last to the first", {"workload_imbalance"}}, {"quarters", "a quarter of the visits a thread, 64 frequencies a block", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(n + 1);
        for (long i = 0; i < n; i++) starts[i + 1] = starts[i] + 100 + static_cast<int>(1900.0 * std::pow((i + 1.0) / n, 6.0));
        std::vector<float> visits(2 * starts[n]);
        for (long i = 0; i < n; i++)
            for (int k = starts[i]; k < starts[i + 1]; k++) {
                const double day = 0.9 * (k - starts[i]) + 0.3 * (pairs::hash(static_cast<unsigned>(k)) % 1024) / 1024.0;
                visits[2 * k] = static_cast<float>(day);
                visits[2 * k + 1] = static_cast<float>(std::sin(6.28318530718 * day * (0.01 + 0.0001 * (i % 900))) + 0.2 * ((pairs::hash(static_cast<unsigned>(k) + 77u) % 1024) / 512.0 - 1.0));
            }
        const Sky sky = {b.copy(starts), reinterpret_cast<const float2 *>(b.copy(visits)), b.output<float>(n * 256), 256, 0.0005f};
        return {{"flawed", launch(star_powers, n, 256, 0, sky)}, {"back", launch(star_powers_back, n, 256, 0, sky)}, {"quarters", launch(star_powers_quarters, dim3(4, n), 256, 0, sky)}};
    });

// --- how far a robot would see ---

constexpr int WIDE = 512, WORDS = WIDE * WIDE / 32, FARTHEST = 700;

struct Beams {
    const unsigned *map;   // a bit a cell
    const float4 *starts;  // place and direction
    const int *places;     // where a beam's range belongs
    int *out;
    int count;
};
__device__ __forceinline__ bool is_free(const unsigned *map, float4 beam, int k) {
    const int x = static_cast<int>(floorf(fmaf(k, beam.z, beam.x))), y = static_cast<int>(floorf(fmaf(k, beam.w, beam.y)));
    if (static_cast<unsigned>(x) >= WIDE || static_cast<unsigned>(y) >= WIDE) return false;
    const int cell = y * WIDE + x;
    return !(map[cell / 32] >> cell % 32 & 1);
}
__device__ __forceinline__ void bring_map(unsigned *own, const unsigned *map) {
    for (int k = threadIdx.x; k < WORDS / 4; k += 256) reinterpret_cast<uint4 *>(own)[k] = reinterpret_cast<const uint4 *>(map)[k];
    __syncthreads();
}
// Steps of a beam until it meets something.
template <bool PLACED>
__global__ void __launch_bounds__(256) beam_ranges(Beams b) {
    __shared__ __align__(16) unsigned map[WORDS];
    bring_map(map, b.map);
    for (int i = blockIdx.x * 256 + threadIdx.x; i < b.count; i += gridDim.x * 256) {
        const float4 beam = b.starts[i];
        int k = 1;
        while (k < FARTHEST && is_free(map, beam, k)) k++;
        b.out[PLACED ? b.places[i] : i] = k;
    }
}
// Lanes whose beams have ended take the next ones together.
__global__ void __launch_bounds__(256) beam_ranges_taken(Beams b) {
    __shared__ __align__(16) unsigned map[WORDS];
    bring_map(map, b.map);
    const int stride = gridDim.x * 256;
    int i = blockIdx.x * 256 + threadIdx.x, k = 1;
    float4 beam = i < b.count ? b.starts[i] : float4{};
    bool going = i < b.count;
    while (__any_sync(~0u, going)) {
        const int least = __any_sync(~0u, i + stride < b.count) ? max(3 * __popc(__ballot_sync(~0u, i < b.count)) / 4, 1) : 1;
        do {
            if (going) {
                if (k < FARTHEST && is_free(map, beam, k)) k++;
                else going = false;
            }
        } while (__popc(__ballot_sync(~0u, going)) >= least);
        if (!going && i < b.count) {
            b.out[i] = k;
            i += stride, k = 1;
            going = i < b.count;
            if (going) beam = b.starts[i];
        }
    }
}

Study beamed("expected_ranges_beams_of_all_lengths_in_a_warp", "robotics", 1622016, "how far each of 1622016 beams gets in a map of 512 x 512 cells",
    "a warp walks on until its longest beam has ended",
    {{"taken", "lanes that are done take new beams", {"branch_divergence"}}, {"sorted", "beams in the order of their last ranges", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> map(WORDS);
        for (unsigned k = 0; k < 900; k++) {
            const int x = pairs::hash(3 * k) % WIDE, y = pairs::hash(3 * k + 1) % WIDE, size = 1 + pairs::hash(3 * k + 2) % 3;
            for (int v = std::max(y - size, 0); v < std::min(y + size, WIDE); v++)
                for (int u = std::max(x - size, 0); u < std::min(x + size, WIDE); u++) map[(v * WIDE + u) / 32] |= 1u << u % 32;
        }
        std::vector<float4> starts(n), ordered(n);
        std::vector<int> places(n), ranges(n);
        for (long i = 0; i < n; i++) {
            const unsigned seed = static_cast<unsigned>(i), turn = pairs::hash(seed * 3 + 2) % 4096;
            starts[i] = {static_cast<float>(20 + pairs::hash(seed * 3) % 472) + 0.37f, static_cast<float>(20 + pairs::hash(seed * 3 + 1) % 472) + 0.61f,
                static_cast<float>(std::cos(turn * 0.00153398)), static_cast<float>(std::sin(turn * 0.00153398))};
            for (ranges[i] = 1; ranges[i] < FARTHEST; ranges[i]++) {
                const int x = static_cast<int>(starts[i].x + 0.1f + ranges[i] * starts[i].z), y = static_cast<int>(starts[i].y + 0.1f + ranges[i] * starts[i].w);
                if (x < 0 || x >= WIDE || y < 0 || y >= WIDE || map[(y * WIDE + x) / 32] >> x % 32 & 1) break;
            }
        }
        std::iota(places.begin(), places.end(), 0);
        std::stable_sort(places.begin(), places.end(), [&](int one, int other) { return ranges[one] > ranges[other]; });
        for (long i = 0; i < n; i++) ordered[i] = starts[places[i]];
        Beams beams = {b.copy(map), b.copy(starts), b.copy(places), b.output<int>(n), static_cast<int>(n)}, by_range = beams;
        by_range.starts = b.copy(ordered);
        b.tolerance = 0.0;
        const int grid = 6 * multiprocessors();
        return {{"flawed", launch(beam_ranges<false>, grid, 256, 0, beams)}, {"taken", launch(beam_ranges_taken, grid, 256, 0, beams)}, {"sorted", launch(beam_ranges<true>, grid, 256, 0, by_range)}};
    });

// --- X-ray films without noise ---

constexpr int AHEAD = 8;

struct Film {
    const float *frames;
    float *out;
    int pixels, count;
    float noise, least;
};
// A pixel follows what it sees: the faster, the more that differs from noise.
__device__ __forceinline__ float followed(const Film &film, float own, float seen) {
    const float away = seen - own, square = away * away;
    return own + (film.least + (1.0f - film.least) * __fdividef(square, square + film.noise)) * away;
}
__global__ void __launch_bounds__(128) films(Film film) {
    const int pixel = blockIdx.x * 128 + threadIdx.x;
    float own = film.frames[pixel];
    for (int t = 0; t < film.count; t++) {
        own = followed(film, own, film.frames[t * film.pixels + pixel]);
        film.out[t * film.pixels + pixel] = own;
    }
}
// Eight frames at a time.
__global__ void __launch_bounds__(128) films_eight(Film film) {
    const int pixel = blockIdx.x * 128 + threadIdx.x;
    float own = film.frames[pixel];
    for (int t = 0; t < film.count; t += AHEAD) {
        float seen[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) seen[k] = film.frames[(t + k) * film.pixels + pixel];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) film.out[(t + k) * film.pixels + pixel] = own = followed(film, own, seen[k]);
    }
}
// Sixteen frames are on their way into shared memory.
__global__ void __launch_bounds__(128) films_ring(Film film) {
    __shared__ float ring[2 * AHEAD][128];
    const int pixel = blockIdx.x * 128 + threadIdx.x;
    float own = film.frames[pixel];
    const auto bring = [&](int t) {
        if (t < film.count) __pipeline_memcpy_async(&ring[t % (2 * AHEAD)][threadIdx.x], film.frames + t * film.pixels + pixel, sizeof(float));
        __pipeline_commit();
    };
    for (int t = 0; t < 2 * AHEAD - 1; t++) bring(t);
    for (int t = 0; t < film.count; t++) {
        bring(t + 2 * AHEAD - 1);
        __pipeline_wait_prior(2 * AHEAD - 1);
        own = followed(film, own, ring[t % (2 * AHEAD)][threadIdx.x]);
        film.out[t * film.pixels + pixel] = own;
    }
}

Study filmed("fluoroscopy_frame_after_frame", "medical imaging", 33792, "512 frames of 33792 pixels of an X-ray film freed of noise, a recursion over time",
    "the next frame is loaded when the last one is stored, in two warps a scheduler",
    {{"eight", "eight frames loaded at a time", {"memory_latency"}}, {"ring", "fifteen frames ahead in shared memory", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = 512;
        const Film film = {b.random<float>(n * count, 80.0, 120.0), b.output<float>(n * count), static_cast<int>(n), count, 400.0f, 0.1f};
        return {{"flawed", launch(films, n / 128, 128, 0, film)}, {"eight", launch(films_eight, n / 128, 128, 0, film)}, {"ring", launch(films_ring, n / 128, 128, 0, film)}};
    });

// --- ions that circle ---

constexpr int POINTS = 512, SEGMENTS = 16, TRANSIENTS = 4;

__device__ __forceinline__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ __forceinline__ float2 operator-(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
__device__ __forceinline__ float2 operator*(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
__device__ __forceinline__ float2 quarter_back(float2 a) { return make_float2(a.y, -a.x); }
__device__ __forceinline__ void four_points(float2 &a, float2 &b, float2 &c, float2 &d) {
    const float2 even = a + c, odd = a - c, sum = b + d, rest = quarter_back(b - d);
    a = even + sum, b = odd + rest, c = even - sum, d = odd - rest;
}
__device__ __forceinline__ void eight_points(float2 *v) {
    constexpr float HALF = 0.70710678f;
    four_points(v[0], v[2], v[4], v[6]), four_points(v[1], v[3], v[5], v[7]);
    const float2 odd[4] = {v[1], v[3] * make_float2(HALF, -HALF), quarter_back(v[5]), v[7] * make_float2(-HALF, -HALF)}, even[4] = {v[0], v[2], v[4], v[6]};
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = even[k] + odd[k], v[k + 4] = even[k] - odd[k];
}
// By the powers of a turn.
__device__ __forceinline__ void turned_by(float2 *v, float angle) {
    float2 one;
    __sincosf(angle, &one.y, &one.x);
    const float2 two = one * one, three = two * one, four = two * two;
    v[1] = v[1] * one, v[2] = v[2] * two, v[3] = v[3] * three, v[4] = v[4] * four;
    v[5] = v[5] * (four * one), v[6] = v[6] * (four * two), v[7] = v[7] * (four * three);
}
struct InOrder {
    static constexpr int SIZE = POINTS;
    __device__ static int at(int i) { return i; }
};
struct WithGaps {
    static constexpr int SIZE = POINTS + POINTS / 32;
    __device__ static int at(int i) { return i + i / 64 * 2; }
};
struct Crossed {
    static constexpr int SIZE = POINTS;
    __device__ static int at(int i) { return i ^ (i / 64 * 10 & 14); }
};
// Mean powers of the segments of a transient, by Fourier transforms; 64 threads a transient, eight points a thread.
template <typename Order>
__global__ void __launch_bounds__(256, 3) ion_spectra(const short2 *__restrict__ transients, float *__restrict__ out) {
    __shared__ float2 all[TRANSIENTS][Order::SIZE];
    const int j = threadIdx.x % 64, low = j % 8, high = j / 8, transient = blockIdx.x * TRANSIENTS + threadIdx.x / 64;
    float2 *own = all[threadIdx.x / 64];
    float powers[8] = {};
    for (int segment = 0; segment < SEGMENTS; segment++) {
        const short2 *from = transients + (transient * SEGMENTS + segment) * POINTS;
        float2 v[8];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const short2 value = from[j + 64 * k];
            v[k] = make_float2(value.x, value.y);
        }
        eight_points(v);
        turned_by(v, j * (-6.2831853f / 512));
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) own[Order::at(j + 64 * k)] = v[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = own[Order::at(low * 64 + high + 8 * k)];
        eight_points(v);
        turned_by(v, high * (-6.2831853f / 64));
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) own[Order::at(j + 64 * k)] = v[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; k++) v[k] = own[Order::at(high * 64 + low + 8 * k)];
        eight_points(v);
#pragma unroll
        for (int k = 0; k < 8; k++) powers[k] += v[k].x * v[k].x + v[k].y * v[k].y;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) out[transient * POINTS + j + 64 * k] = powers[k] * (1.0f / SEGMENTS);
}

Study ions("ion_spectra_lanes_512_bytes_apart", "chemistry", 8448, "mean powers of 16 segments of 512 complex points of 8448 transients of an ion trap",
    "lanes read points that lie 512 bytes apart in shared memory",
    {{"gaps", "two points left free after each 64", {"shared_bank_conflicts"}}, {"crossed", "places crossed with the row's number", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<short> values(2 * n * SEGMENTS * POINTS);
        for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<short>(pairs::hash(static_cast<unsigned>(i)) % 4096) - 2048 + (i / 2 % 16 < 8 ? 1200 : -1200);
        const short2 *in = reinterpret_cast<const short2 *>(b.copy(values));
        float *out = b.output<float>(n * POINTS);
        return {{"flawed", launch(ion_spectra<InOrder>, n / TRANSIENTS, 256, 0, in, out)}, {"gaps", launch(ion_spectra<WithGaps>, n / TRANSIENTS, 256, 0, in, out)},
            {"crossed", launch(ion_spectra<Crossed>, n / TRANSIENTS, 256, 0, in, out)}};
    });

// --- eight exposures as one ---

struct Exposures {
    const float4 *frames[8];
    float weights[8], backgrounds[8];
};
__global__ void __launch_bounds__(256) exposed(const __grid_constant__ Exposures e, float4 *__restrict__ out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    float4 sum = {};
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const float4 seen = __ldcs(e.frames[k] + i);
        sum.x += e.weights[k] * (seen.x - e.backgrounds[k]), sum.y += e.weights[k] * (seen.y - e.backgrounds[k]);
        sum.z += e.weights[k] * (seen.z - e.backgrounds[k]), sum.w += e.weights[k] * (seen.w - e.backgrounds[k]);
    }
    __stcs(out + i, sum);
}

Study together("sound_exposures_added", "astronomy", 3072, "eight exposures of 3072 x 3072 pixels, less their backgrounds, weighed and added", "", {},
    [](Buffers &b, long n) -> Sides {
        Exposures e = {};
        for (int k = 0; k < 8; k++) {
            e.frames[k] = reinterpret_cast<const float4 *>(b.random<float>(n * n, 90.0, 200.0));
            e.weights[k] = 0.1f + 0.005f * k, e.backgrounds[k] = 100.0f + k;
        }
        float4 *out = reinterpret_cast<float4 *>(b.output<float>(n * n));
        return {{"sound", launch(exposed, n * n / 1024, 256, 0, e, out)}};
    });

}  // namespace
