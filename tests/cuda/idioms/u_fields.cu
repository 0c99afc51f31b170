// Scans of rock, terrain, snow, tremors, telescopes, lamps, seeds and orbits.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- a seismic volume smoothed across its slices ---

constexpr int SLICE_PAIRS = 2560, SLICES = 12, RADIUS = 3;

struct Weights {
    float of[2 * RADIUS + 1];
};
__device__ __forceinline__ void accumulate(float2 &sum, float weight, __half2 value) {
    const float2 wide = __half22float2(value);
    sum.x = fmaf(weight, wide.x, sum.x);
    sum.y = fmaf(weight, wide.y, sum.y);
}
__device__ __forceinline__ __half2 smoothed(const __half2 *volume, const Weights &weights, long long plane, long long at, int slice) {
    float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int d = -RADIUS; d <= RADIUS; ++d) {
        int z = slice + d;
        if (z < 0) z = 0;
        if (z >= SLICES) z = SLICES - 1;
        accumulate(sum, weights.of[d + RADIUS], volume[z * plane + at]);
    }
    return __float22half2_rn(sum);
}
__global__ void smooth_slices(const __half2 *volume, __half2 *out, const Weights weights, long long plane) {
    const long long column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    const long long at = row * SLICE_PAIRS + column;
    out[blockIdx.z * plane + at] = smoothed(volume, weights, plane, at, blockIdx.z);
}
// All slices of one tile before the next tile.
__global__ void smooth_slices_tiles(const __half2 *volume, __half2 *out, const Weights weights, long long plane) {
    const long long column = blockIdx.y * blockDim.x + threadIdx.x, row = blockIdx.z * blockDim.y + threadIdx.y;
    const long long at = row * SLICE_PAIRS + column;
    out[blockIdx.x * plane + at] = smoothed(volume, weights, plane, at, blockIdx.x);
}
// Down through the slices with seven of them in registers.
__global__ void smooth_slices_descent(const __half2 *__restrict__ volume, __half2 *__restrict__ out, const Weights weights, long long plane) {
    const long long column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    const long long at = row * SLICE_PAIRS + column;
    __half2 seen[2 * RADIUS + 1];
#pragma unroll
    for (int d = 0; d <= 2 * RADIUS; ++d) seen[d] = volume[(d > RADIUS ? d - RADIUS : 0) * plane + at];
#pragma unroll
    for (int z = 0; z < SLICES; ++z) {
        float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll
        for (int d = 0; d <= 2 * RADIUS; ++d) accumulate(sum, weights.of[d], seen[d]);
        out[z * plane + at] = __float22half2_rn(sum);
#pragma unroll
        for (int d = 0; d < 2 * RADIUS; ++d) seen[d] = seen[d + 1];
        if (z + RADIUS + 1 < SLICES) seen[2 * RADIUS] = volume[(z + RADIUS + 1) * plane + at];
    }
}

Study slices("slices_smoothed_one_after_another", "seismics", 3072, "weighted means of seven neighbouring slices, twelve slices of 3072 x 5120 halves",
    "slice after slice: the six slices shared with the next one have left the cache before it comes",
    {{"tiles", "all slices of a tile one after the other", {"cache_locality"}}, {"descent", "a thread goes down the slices with seven values in registers", {"cache_locality", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const long long plane = n * SLICE_PAIRS;
        const auto *volume = reinterpret_cast<const __half2 *>(b.random<__half>(2 * plane * SLICES));
        auto *out = reinterpret_cast<__half2 *>(b.output<__half>(2 * plane * SLICES));
        const Weights weights = {{0.05f, 0.1f, 0.2f, 0.3f, 0.2f, 0.1f, 0.05f}};
        b.tolerance = 2e-3;
        const unsigned across = SLICE_PAIRS / 64, down = static_cast<unsigned>(n / 4);
        const dim3 block(64, 4);
        return {{"flawed", launch(smooth_slices, dim3(across, down, SLICES), block, 0, volume, out, weights, plane)}, {"tiles", launch(smooth_slices_tiles, dim3(SLICES, across, down), block, 0, volume, out, weights, plane)},
            {"descent", launch(smooth_slices_descent, dim3(across, down), block, 0, volume, out, weights, plane)}};
    });

// --- how rough a terrain is ---

constexpr int TERRAIN = 5120, BORDER = 2;

__device__ __forceinline__ void widen(int &low, int &high, int height) {
    low = min(low, height);
    high = max(high, height);
}
// Between the highest and the lowest of nine points, two each way.
__device__ __forceinline__ unsigned short relief(const unsigned short *centre, int pitch) {
    int low = *centre, high = low;
#pragma unroll
    for (int step = 1; step <= BORDER; ++step) {
        widen(low, high, centre[step]);
        widen(low, high, centre[-step]);
        widen(low, high, centre[step * pitch]);
        widen(low, high, centre[-step * pitch]);
    }
    return static_cast<unsigned short>(high - low);
}
template <int TILE_X, int TILE_Y>
__global__ void __launch_bounds__(256) roughness(const unsigned short *heights, unsigned short *out) {
    constexpr int PITCH = TILE_X + 2 * BORDER, ROWS = TILE_Y + 2 * BORDER;
    extern __shared__ unsigned short tile[];
    const int left = blockIdx.x * TILE_X, top = blockIdx.y * TILE_Y;
    for (int y = threadIdx.y; y < ROWS; y += 8)
        for (int x = threadIdx.x; x < PITCH; x += 32) tile[y * PITCH + x] = heights[(top + y) * (TERRAIN + 2 * BORDER) + left + x];
    __syncthreads();
    for (int y = threadIdx.y; y < TILE_Y; y += 8)
        for (int x = threadIdx.x; x < TILE_X; x += 32) out[(top + y) * TERRAIN + left + x] = relief(&tile[(y + BORDER) * PITCH + x + BORDER], PITCH);
}
__global__ void __launch_bounds__(256) roughness_untiled(const unsigned short *__restrict__ heights, unsigned short *__restrict__ out) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    out[y * TERRAIN + x] = relief(heights + (y + BORDER) * (TERRAIN + 2 * BORDER) + x + BORDER, TERRAIN + 2 * BORDER);
}
template <int TILE_X, int TILE_Y>
std::function<void()> rough(long rows, const unsigned short *heights, unsigned short *out) {
    return launch(roughness<TILE_X, TILE_Y>, dim3(TERRAIN / TILE_X, static_cast<unsigned>(rows / TILE_Y)), dim3(32, 8), sizeof(short) * (TILE_X + 2 * BORDER) * (TILE_Y + 2 * BORDER), heights, out);
}

Study terrain("terrain_roughness_big_tile", "geography", 4608, "relief around each of 5120 x 4608 points of a terrain, nine points each",
    "tiles of 256 x 192 points: 100 KiB of shared memory a block of 256 threads, two blocks a multiprocessor",
    {{"small_tile", "tiles of 64 x 16 points", {"low_occupancy"}}, {"untiled", "no tile: neighbours from the cache", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> words((n + 2 * BORDER) * (TERRAIN + 2 * BORDER) / 2);
        for (size_t i = 0; i < words.size(); i++) words[i] = hash(static_cast<unsigned>(i)) & 0x0fff0fffu;
        const auto *heights = reinterpret_cast<const unsigned short *>(b.copy(words));
        auto *bytes = b.output<unsigned char>(n * TERRAIN * 2);
        auto *out = reinterpret_cast<unsigned short *>(bytes);
        b.tolerance = 0.0;
        return {{"flawed", rough<256, 192>(n, heights, out)}, {"small_tile", rough<64, 16>(n, heights, out)},
            {"untiled", launch(roughness_untiled, dim3(TERRAIN / 32, static_cast<unsigned>(n / 8)), dim3(32, 8), 0, heights, out)}};
    });

// --- snow on the ground, day by day ---

struct Winter {
    const float *precipitation, *temperature;  // day by day of all cells
    float *snow;
    int cells, days;
    float melting, settling;
};
__device__ __forceinline__ float next_day(const Winter &w, float lying, float fallen, float degrees) {
    const float melted = w.melting * fmaxf(degrees, 0.0f);
    return fmaxf(lying * w.settling + (degrees < 0.5f ? fallen : 0.0f) - melted, 0.0f);
}
__global__ void __launch_bounds__(64) snow_cover(Winter w) {
    const int cell = blockIdx.x * 64 + threadIdx.x;
    const float *precipitation = w.precipitation + cell, *temperature = w.temperature + cell;
    float *snow = w.snow + cell, lying = 0.0f;
    int left = w.days;
    while (left-- > 0) {
        lying = next_day(w, lying, *precipitation, *temperature);
        *snow = lying;
        precipitation += w.cells, temperature += w.cells, snow += w.cells;
    }
}
template <int DAYS>
struct Weather {
    float fallen[DAYS], degrees[DAYS];
    __device__ __forceinline__ void load(const Winter &w, int cell, int day) {
#pragma unroll
        for (int d = 0; d < DAYS; ++d) {
            const size_t at = static_cast<size_t>(day + d) * w.cells + cell;
            fallen[d] = __ldg(w.precipitation + at), degrees[d] = __ldg(w.temperature + at);
        }
    }
    __device__ __forceinline__ float pass(const Winter &w, int cell, int day, float lying) const {
#pragma unroll
        for (int d = 0; d < DAYS; ++d) {
            lying = next_day(w, lying, fallen[d], degrees[d]);
            w.snow[static_cast<size_t>(day + d) * w.cells + cell] = lying;
        }
        return lying;
    }
};
// Ten days at a time.
__global__ void __launch_bounds__(64) snow_cover_tens(Winter w) {
    const int cell = blockIdx.x * 64 + threadIdx.x;
    float lying = 0.0f;
    Weather<10> weather;
    for (int day = 0; day < w.days; day += 10) {
        weather.load(w, cell, day);
        lying = weather.pass(w, cell, day, lying);
    }
}
// Five days, while the next ten are on their way.
__global__ void __launch_bounds__(64) snow_cover_ahead(Winter w) {
    const int cell = blockIdx.x * 64 + threadIdx.x;
    float lying = 0.0f;
    Weather<5> now, next;
    now.load(w, cell, 0);
    next.load(w, cell, 5);
    for (int day = 0; day < w.days; day += 5) {
        Weather<5> later = next;
        if (day + 10 < w.days) later.load(w, cell, day + 10);
        lying = now.pass(w, cell, day, lying);
        now = next, next = later;
    }
}

Study winter("snow_cover_day_after_day", "hydrology", 33792, "snow on 33792 cells over 730 days from what falls and melts",
    "the weather of the next day is loaded when the last day's snow is stored, in two warps a scheduler",
    {{"tens", "ten days loaded at a time", {"memory_latency"}}, {"ahead", "five days while the next ten are loaded", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int days = 730;
        const Winter w = {b.random<float>(n * days, 0.0, 12.0), b.random<float>(n * days, -8.0, 6.0), b.output<float>(n * days), static_cast<int>(n), days, 1.5f, 0.995f};
        return {{"flawed", launch(snow_cover, n / 64, 64, 0, w)}, {"tens", launch(snow_cover_tens, n / 64, 64, 0, w)}, {"ahead", launch(snow_cover_ahead, n / 64, 64, 0, w)}};
    });

// --- when the ground trembles: what was felt lately against what was felt before ---

constexpr int BEFORE = 64, LATELY = 8, LONG_AGO = 40, RECORD = 8000;

__global__ void __launch_bounds__(200) tremors(const short *__restrict__ traces, float *__restrict__ out) {
    const unsigned i = blockIdx.x * 200 + threadIdx.x, trace = blockIdx.y;
    const short *sample = traces + trace * (RECORD + BEFORE) + BEFORE + i;
    int lately = 0, ever = 0;
#pragma unroll
    for (int k = 0; k < LONG_AGO; ++k) {
        const int felt = abs(static_cast<int>(sample[-k]));
        ever += felt;
        if (k < LATELY) lately += felt;
    }
    out[trace * RECORD + i] = __fdividef(static_cast<float>(lately * (LONG_AGO / LATELY)), static_cast<float>(ever + 1));
}
union Eight {
    uint4 word;
    short sample[8];
};
// Eight moments a thread: what is felt comes in and goes out of both sums.
__global__ void __launch_bounds__(200) tremors_sums(const uint4 *__restrict__ traces, float4 *__restrict__ out) {
    const unsigned group = blockIdx.x * 200 + threadIdx.x, trace = blockIdx.y;
    const uint4 *from = traces + (trace * (RECORD + BEFORE) + BEFORE - LONG_AGO) / 8 + group;
    int felt[LONG_AGO + 8];
#pragma unroll
    for (int k = 0; k < LONG_AGO / 8 + 1; ++k) {
        Eight eight;
        eight.word = from[k];
#pragma unroll
        for (int s = 0; s < 8; ++s) felt[8 * k + s] = abs(static_cast<int>(eight.sample[s]));
    }
    int lately = 0, ever = 0;
#pragma unroll
    for (int k = 1; k <= LONG_AGO; ++k) {
        ever += felt[k];
        if (k > LONG_AGO - LATELY) lately += felt[k];
    }
    float ratio[8];
#pragma unroll
    for (int s = 0; s < 8; ++s) {
        ratio[s] = __fdividef(static_cast<float>(lately * (LONG_AGO / LATELY)), static_cast<float>(ever + 1));
        if (s == 7) break;
        ever += felt[LONG_AGO + 1 + s] - felt[1 + s];
        lately += felt[LONG_AGO + 1 + s] - felt[LONG_AGO + 1 - LATELY + s];
    }
    float4 *to = out + (trace * (RECORD / 8) + group) * 2;
    to[0] = make_float4(ratio[0], ratio[1], ratio[2], ratio[3]);
    to[1] = make_float4(ratio[4], ratio[5], ratio[6], ratio[7]);
}

Study quakes("tremor_ratios_40_samples_read_for_each", "seismology", 2048, "averages over 8 samples against those over 40 at each of 8000 samples of 2048 traces",
    "each thread loads the 40 samples that it adds up: each sample is asked for 40 times",
    {{"sums", "eight moments a thread from vectors, sums that move on", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<unsigned> words(n * (RECORD + BEFORE) / 2);
        for (size_t i = 0; i < words.size(); i++) words[i] = hash(static_cast<unsigned>(i)) & 0x83ff83ffu;
        const unsigned *traces = b.copy(words);
        float *out = b.output<float>(n * RECORD);
        const unsigned count = static_cast<unsigned>(n);
        return {{"flawed", launch(tremors, dim3(RECORD / 200, count), 200, 0, reinterpret_cast<const short *>(traces), out)},
            {"sums", launch(tremors_sums, dim3(RECORD / 1600, count), 200, 0, reinterpret_cast<const uint4 *>(traces), reinterpret_cast<float4 *>(out))}};
    });

// --- a telescope's picture through the spot that it makes of a star ---

constexpr int SPOT = 11, SKY = 4096, SKY_PITCH = SKY + 32;

struct Spot {
    float light[SPOT][SPOT];
};
template <int ROWS>
__device__ __forceinline__ void expose(float (&plate)[ROWS][32 + SPOT - 1], const unsigned char *sky) {
    for (int y = threadIdx.y; y < ROWS; y += 8)
        for (int x = threadIdx.x; x < 32 + SPOT - 1; x += 32) plate[y][x] = sky[y * SKY_PITCH + x];
    __syncthreads();
}
__global__ void __launch_bounds__(256) blurred(const unsigned char *__restrict__ sky, float *__restrict__ out, const Spot spot) {
    __shared__ float plate[8 + SPOT - 1][32 + SPOT - 1];
    const int left = blockIdx.x * 32, top = blockIdx.y * 8;
    expose(plate, sky + top * SKY_PITCH + left);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < SPOT; ++i)
#pragma unroll
        for (int j = 0; j < SPOT; ++j) sum = fmaf(spot.light[j][i], plate[threadIdx.y + j][threadIdx.x + i], sum);
    out[(top + threadIdx.y) * SKY + left + threadIdx.x] = sum;
}
// DOWN pixels of a column a thread.
template <int DOWN>
__global__ void __launch_bounds__(256) blurred_columns(const unsigned char *__restrict__ sky, float *__restrict__ out, const Spot spot) {
    __shared__ float plate[8 * DOWN + SPOT - 1][32 + SPOT - 1];
    const int left = blockIdx.x * 32, top = blockIdx.y * 8 * DOWN, own = threadIdx.y * DOWN;
    expose(plate, sky + top * SKY_PITCH + left);
    float sums[DOWN] = {};
#pragma unroll
    for (int i = 0; i < SPOT; ++i) {
        float column[DOWN + SPOT - 1];
#pragma unroll
        for (int j = 0; j < DOWN + SPOT - 1; ++j) column[j] = plate[own + j][threadIdx.x + i];
#pragma unroll
        for (int j = 0; j < SPOT; ++j)
#pragma unroll
            for (int d = 0; d < DOWN; ++d) sums[d] = fmaf(spot.light[j][i], column[d + j], sums[d]);
    }
#pragma unroll
    for (int d = 0; d < DOWN; ++d) out[(top + own + d) * SKY + left + threadIdx.x] = sums[d];
}

Study telescope("star_blur_pixel_a_thread", "astronomy", 2304, "4096 x 2304 pixels through a spot of 11 x 11",
    "each product loads its pixel from shared memory",
    {{"four", "four pixels of a column a thread, which share what they load", {"shared_memory_bandwidth"}}, {"eight", "eight pixels of a column a thread", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned char *sky = b.random<unsigned char>((n + SPOT) * SKY_PITCH, 0.0, 256.0);
        float *out = b.output<float>(n * SKY);
        Spot spot;
        for (int j = 0; j < SPOT; j++)
            for (int i = 0; i < SPOT; i++) spot.light[j][i] = static_cast<float>(hash(j * SPOT + i) % 1000) * 1e-5f + 1e-3f;
        const dim3 block(32, 8);
        const unsigned rows = static_cast<unsigned>(n);
        return {{"flawed", launch(blurred, dim3(SKY / 32, rows / 8), block, 0, sky, out, spot)}, {"four", launch(blurred_columns<4>, dim3(SKY / 32, rows / 32), block, 0, sky, out, spot)},
            {"eight", launch(blurred_columns<8>, dim3(SKY / 32, rows / 64), block, 0, sky, out, spot)}};
    });

// --- light of flat lamps on the floor of a hall ---

constexpr int LAMPS = 48, HALL = 256;

struct Lamp {
    float3 corners[4];
    float3 colour;
};
struct Floor {
    const float4 *surface;  // its upward direction, and in w its height
    float *light;           // three colours, plane by plane
    int width;
};
__device__ __forceinline__ float dot(float3 a, float3 c) { return a.x * c.x + a.y * c.y + a.z * c.z; }
__device__ __forceinline__ float3 cross(float3 a, float3 c) { return make_float3(a.y * c.z - a.z * c.y, a.z * c.x - a.x * c.z, a.x * c.y - a.y * c.x); }
__device__ __forceinline__ float3 towards(float3 corner, float3 place) {
    const float3 d = make_float3(corner.x - place.x, corner.y - place.y, corner.z - place.z);
    const float inverse = rsqrtf(dot(d, d));
    return make_float3(d.x * inverse, d.y * inverse, d.z * inverse);
}
// Lambert's sum over the edges that a point sees.
__device__ __forceinline__ float received(const Lamp &lamp, float3 place, float3 up) {
    float3 look[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) look[k] = towards(lamp.corners[k], place);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const float3 normal = cross(look[k], look[(k + 1) % 4]);
        const float angle = acosf(fminf(fmaxf(dot(look[k], look[(k + 1) % 4]), -1.0f), 1.0f));
        sum += angle * dot(normal, up) * rsqrtf(dot(normal, normal));
    }
    return fabsf(sum);
}
template <int ROWS>
__global__ void __launch_bounds__(32 * ROWS, 64 / ROWS) lit(const Lamp *lamps, Floor floor, int each) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * ROWS + threadIdx.y, at = y * floor.width + x;
    const float4 surface = floor.surface[at];
    const float3 place = make_float3(x * 0.1f, y * 0.1f, surface.w), up = make_float3(surface.x, surface.y, surface.z);
    const Lamp *lamp = lamps + blockIdx.z * each, *const end = lamp + each;
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    do {
        const float share = received(*lamp, place, up);
        sum.x += share * lamp->colour.x, sum.y += share * lamp->colour.y, sum.z += share * lamp->colour.z;
    } while (++lamp != end);
    float *light = floor.light + at;
    const int plane = floor.width * HALL;
    if (gridDim.z == 1) light[0] = sum.x, light[plane] = sum.y, light[2 * plane] = sum.z;
    else atomicAdd(light, sum.x), atomicAdd(light + plane, sum.y), atomicAdd(light + 2 * plane, sum.z);
}

Study hall("lamp_light_of_272_blocks_of_1024", "lighting", 1088, "light of 48 lamps at 1088 x 256 points of a floor",
    "two blocks of 1024 threads fit a multiprocessor: eight of 272 come in a second wave",
    {{"parts", "lamps in eight parts, added up by atomics", {"tail_effect"}}, {"fine", "blocks of 128 threads, lamps in four parts", {"tail_effect"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Lamp> lamps(LAMPS);
        for (unsigned k = 0; k < LAMPS; k++) {
            const float x = hash(k) % 1080 * 0.1f, y = hash(k + 70) % 250 * 0.1f, z = 4.0f + hash(k + 140) % 20 * 0.1f, wide = 0.5f + hash(k + 210) % 10 * 0.1f;
            lamps[k] = {{{x, y, z}, {x + wide, y, z}, {x + wide, y + 0.6f, z}, {x, y + 0.6f, z}}, {1.0f, 0.9f, 0.5f + 0.01f * k}};
        }
        const Lamp *in = b.copy(lamps);
        std::vector<float4> surface(n * HALL);
        for (unsigned i = 0; i < surface.size(); i++) surface[i] = make_float4(hash(i) % 100 * 1e-3f, hash(i + 7) % 100 * 1e-3f, 0.99f, hash(i + 13) % 200 * 1e-3f);
        const int width = static_cast<int>(n);
        const Floor floor = {b.copy(surface), b.output<float>(3 * n * HALL, true), width};
        b.tolerance = 1e-3;
        return {{"flawed", launch(lit<32>, dim3(width / 32, HALL / 32), dim3(32, 32), 0, in, floor, LAMPS)},
            {"parts", launch(lit<32>, dim3(width / 32, HALL / 32, 8), dim3(32, 32), 0, in, floor, LAMPS / 8)}, {"fine", launch(lit<4>, dim3(width / 32, HALL / 4, 4), dim3(32, 4), 0, in, floor, LAMPS / 4)}};
    });

// --- where the seeds of trees fall ---

constexpr int MOTHERS = 40, PLOT_WIDE = 48, PLOT_CELLS = 48 * 32;

// exp(-(r / a)^1.5), from the square of r / a.
__device__ __forceinline__ float dispersal_power(float square) { return expf(-powf(square, 0.75f)); }
__device__ __forceinline__ float dispersal_roots(float square) {
    const float root = sqrtf(square);
    return expf(-root * sqrtf(root));
}
__device__ __forceinline__ float dispersal_twos(float square) { return __expf(-exp2f(0.75f * __log2f(square))); }

template <float (*DISPERSAL)(float)>
__global__ void __launch_bounds__(192) seed_rain(const float4 *trees, float *rain) {
    const float4 *const first = trees + static_cast<size_t>(blockIdx.x) * MOTHERS, *const last = first + MOTHERS;
    int cell = threadIdx.x;
    do {
        const float x = cell % PLOT_WIDE + 0.5f, y = cell / PLOT_WIDE + 0.5f;
        float sum = 0.0f;
        for (const float4 *tree = first; tree < last; ++tree) {
            const float4 t = __ldg(tree);
            const float dx = x - t.x, dy = y - t.y;
            sum += t.w * DISPERSAL((dx * dx + dy * dy) * t.z);
        }
        rain[static_cast<size_t>(blockIdx.x) * PLOT_CELLS + cell] = sum;
        cell += 192;
    } while (cell < PLOT_CELLS);
}

Study forest("seed_rain_a_power_for_each_tree", "ecology", 2048, "seeds that 40 trees each let fall on 2048 plots of 48 x 32 cells",
    "a general power and a precise exponential for each cell and tree, where roots would do",
    {{"roots", "the power by two square roots", {"expensive_math"}}, {"twos", "powers of two and the fast exponential", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> list(n * MOTHERS);
        const auto unit = [](unsigned k) { return static_cast<float>(hash(k) >> 8) / 16777216.0f; };
        for (unsigned i = 0; i < list.size(); i++) {
            const float reach = 6.0f + 14.0f * unit(4 * i + 2);
            list[i] = make_float4(unit(4 * i) * 68.0f - 10.0f, unit(4 * i + 1) * 52.0f - 10.0f, 1.0f / (reach * reach), 1.0f + unit(4 * i + 3));
        }
        const float4 *trees = b.copy(list);
        float *rain = b.output<float>(n * PLOT_CELLS);
        b.tolerance = 1e-3;
        return {{"flawed", launch(seed_rain<dispersal_power>, n, 192, 0, trees, rain)}, {"roots", launch(seed_rain<dispersal_roots>, n, 192, 0, trees, rain)}, {"twos", launch(seed_rain<dispersal_twos>, n, 192, 0, trees, rain)}};
    });

// --- where bodies are on their orbits ---

constexpr int NEWTON = 5;

struct __align__(16) Orbit {
    float axis, eccentricity, mean, argument;
};
struct Exact {
    using Number = double;
    __device__ static void turn(double angle, double &sine, double &cosine) { sincos(angle, &sine, &cosine); }
    __device__ static double root(double x) { return sqrt(x); }
    __device__ static double over(double a, double c) { return a / c; }
};
struct Single {
    using Number = float;
    __device__ static void turn(float angle, float &sine, float &cosine) { sincosf(angle, &sine, &cosine); }
    __device__ static float root(float x) { return sqrtf(x); }
    __device__ static float over(float a, float c) { return a / c; }
};
struct Quick {
    using Number = float;
    __device__ static void turn(float angle, float &sine, float &cosine) { __sincosf(angle, &sine, &cosine); }
    __device__ static float root(float x) { return __fsqrt_rn(x); }
    __device__ static float over(float a, float c) { return __fdividef(a, c); }
};
// Newton's steps on Kepler's equation.
template <typename Arithmetic>
__global__ void __launch_bounds__(320) orbit_positions(const Orbit *orbits, float2 *places, int count) {
    using Number = typename Arithmetic::Number;
    for (int i = blockIdx.x * 320 + threadIdx.x; i < count; i += gridDim.x * 320) {
        const Orbit orbit = orbits[i];
        const Number e = orbit.eccentricity, mean = orbit.mean, axis = orbit.axis;
        Number anomaly = mean, sine, cosine;
        for (int step = 0; step < NEWTON; ++step) {
            Arithmetic::turn(anomaly, sine, cosine);
            anomaly -= Arithmetic::over(anomaly - e * sine - mean, Number(1) - e * cosine);
        }
        Arithmetic::turn(anomaly, sine, cosine);
        const Number x = axis * (cosine - e), y = axis * Arithmetic::root(Number(1) - e * e) * sine;
        Arithmetic::turn(orbit.argument, sine, cosine);
        places[i] = make_float2(static_cast<float>(x * cosine - y * sine), static_cast<float>(x * sine + y * cosine));
    }
}

Study kepler("orbit_positions_in_double", "celestial mechanics", 4000000, "places of 4000000 bodies from elements of their orbits in single precision, by five of Newton's steps",
    "double precision throughout for values that come and go as floats",
    {{"single", "single precision", {"double_precision"}}, {"quick", "single precision, fast sines and divisions", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Orbit> list(n);
        const auto unit = [](unsigned k) { return static_cast<float>(hash(k) >> 8) / 16777216.0f; };
        for (unsigned i = 0; i < list.size(); i++) list[i] = {1.0f + unit(4 * i), 0.5f * unit(4 * i + 1), 6.2f * unit(4 * i + 2) - 3.1f, 6.2f * unit(4 * i + 3) - 3.1f};
        const Orbit *orbits = b.copy(list);
        auto *places = reinterpret_cast<float2 *>(b.output<float>(2 * n));
        const int count = static_cast<int>(n);
        const unsigned grid = blocks(n, 320 * 4);
        b.tolerance = 1e-3;
        return {{"flawed", launch(orbit_positions<Exact>, grid, 320, 0, orbits, places, count)}, {"single", launch(orbit_positions<Single>, grid, 320, 0, orbits, places, count)},
            {"quick", launch(orbit_positions<Quick>, grid, 320, 0, orbits, places, count)}};
    });

}  // namespace
