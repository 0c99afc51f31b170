// Networks, fluids, seismograms, deliveries, time series, neutrons, maps, waves, scans, floods, revenue and molecules.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

float chance(unsigned seed) { return hash(seed) / 4294967296.0f; }

// --- a network's conductances, in coordinates ---

__global__ void __launch_bounds__(256) conduct(const int *__restrict__ row, const int *__restrict__ column, const float *__restrict__ value, const float *__restrict__ x, float *y, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(y + row[i], value[i] * x[column[i]]);
}

// Entries are in the order of rows: sums of runs of one row within a warp.
__global__ void __launch_bounds__(256) conduct_runs(const int *__restrict__ row, const int *__restrict__ column, const float *__restrict__ value, const float *__restrict__ x, float *y, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % 32;
    const int mine = i < count ? row[i] : -1;
    float sum = i < count ? value[i] * x[column[i]] : 0.0f;
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        const float other = __shfl_down_sync(~0u, sum, apart);
        const int owner = __shfl_down_sync(~0u, mine, apart);
        if (lane + apart < 32 && owner == mine) sum += other;
    }
    const int before = __shfl_up_sync(~0u, mine, 1);
    if (mine >= 0 && (lane == 0 || before != mine)) atomicAdd(y + mine, sum);
}

// Four entries in turn; a sum is handed over where the row changes.
__global__ void __launch_bounds__(256) conduct_fours(const int4 *__restrict__ row, const int4 *__restrict__ column, const float4 *__restrict__ value, const float *__restrict__ x, float *y, int fours) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= fours) return;
    const int4 r = row[i], c = column[i];
    const float4 v = value[i];
    const float a = v.x * x[c.x], b = v.y * x[c.y], d = v.z * x[c.z], e = v.w * x[c.w];
    float sum = a;
    if (r.y != r.x) atomicAdd(y + r.x, sum), sum = 0.0f;
    sum += b;
    if (r.z != r.y) atomicAdd(y + r.y, sum), sum = 0.0f;
    sum += d;
    if (r.w != r.z) atomicAdd(y + r.z, sum), sum = 0.0f;
    atomicAdd(y + r.w, sum + e);
}

Study network("coo_product_an_atomic_an_entry", "sparse linear algebra", 1 << 21, "product of a matrix of 2097152 rows in coordinate form, some fourteen entries a row near the diagonal, and a vector",
    "every entry's product is added to the result in global memory, though a row's entries follow each other",
    {{"runs", "sums of a row's entries within a warp by shuffles first", {"global_atomics"}}, {"fours", "four entries a thread from 16-byte loads, added in registers while the row stays", {"global_atomics", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> rows, columns;
        rows.reserve(n * 15), columns.reserve(n * 15);
        for (int r = 0; r < n; r++) {
            const unsigned noise = hash(r);
            const int entries = 6 + noise % 17;
            for (int k = 0; k < entries; k++) {
                const int far = (k - entries / 2) * static_cast<int>(1 + (noise >> 8) % 40);
                rows.push_back(r), columns.push_back(static_cast<int>(std::min<long>(n - 1, std::max(0, r + far))));
            }
        }
        rows.resize(rows.size() / 4 * 4), columns.resize(rows.size());
        const int count = static_cast<int>(rows.size());
        const int *row = b.copy(rows), *column = b.copy(columns);
        const float *value = b.random<float>(count, 0.1, 1.0), *x = b.random<float>(n, 0.5, 1.5);
        float *y = b.output<float>(n, true);
        return {{"flawed", launch(conduct, blocks(count, 256), 256, 0, row, column, value, x, y, count)},
            {"runs", launch(conduct_runs, blocks(count, 256), 256, 0, row, column, value, x, y, count)},
            {"fours", launch(conduct_fours, blocks(count / 4, 256), 256, 0, reinterpret_cast<const int4 *>(row), reinterpret_cast<const int4 *>(column), reinterpret_cast<const float4 *>(value), x, y, count / 4)}};
    });

// --- a fluid on a lattice ---

namespace lattice {

constexpr int WIDTH = 2048, DIRECTIONS = 9;

// Where a cell keeps what flows in direction q.
struct ByCell {
    static __host__ __device__ __forceinline__ int at(int cell, int q, int) { return cell * DIRECTIONS + q; }
};
struct ByDirection {
    static __host__ __device__ __forceinline__ int at(int cell, int q, int cells) { return q * cells + cell; }
};
struct BySixtyFour {
    static __host__ __device__ __forceinline__ int at(int cell, int q, int) { return (cell / 64 * DIRECTIONS + q) * 64 + cell % 64; }
};

__device__ __forceinline__ float equilibrium(float weight, float density, float along, float speed) { return weight * density * (1.0f + 3.0f * along + 4.5f * along * along - 1.5f * speed); }

template <class Layout>
__global__ void __launch_bounds__(256) step(const float *__restrict__ from, float *__restrict__ to, int height, float omega) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    const int cells = WIDTH * height;
    const int west = x == 0 ? WIDTH - 1 : x - 1, east = x == WIDTH - 1 ? 0 : x + 1;
    const int south = (y == 0 ? height - 1 : y - 1) * WIDTH, here = y * WIDTH, north = (y == height - 1 ? 0 : y + 1) * WIDTH;

    float f[DIRECTIONS];
    f[0] = from[Layout::at(here + x, 0, cells)];
    f[1] = from[Layout::at(here + west, 1, cells)];
    f[2] = from[Layout::at(south + x, 2, cells)];
    f[3] = from[Layout::at(here + east, 3, cells)];
    f[4] = from[Layout::at(north + x, 4, cells)];
    f[5] = from[Layout::at(south + west, 5, cells)];
    f[6] = from[Layout::at(south + east, 6, cells)];
    f[7] = from[Layout::at(north + east, 7, cells)];
    f[8] = from[Layout::at(north + west, 8, cells)];

    const float density = f[0] + f[1] + f[2] + f[3] + f[4] + f[5] + f[6] + f[7] + f[8];
    const float inverse = 1.0f / density;
    const float u = (f[1] + f[5] + f[8] - f[3] - f[6] - f[7]) * inverse;
    const float v = (f[2] + f[5] + f[6] - f[4] - f[7] - f[8]) * inverse;
    const float speed = u * u + v * v;
    const float along[DIRECTIONS] = {0.0f, u, v, -u, -v, u + v, v - u, -u - v, u - v};
#pragma unroll
    for (int q = 0; q < DIRECTIONS; q++) {
        const float weight = q == 0 ? 4.0f / 9.0f : q < 5 ? 1.0f / 9.0f : 1.0f / 36.0f;
        to[Layout::at(here + x, q, cells)] = f[q] + omega * (equilibrium(weight, density, along[q], speed) - f[q]);
    }
}

template <class From, class To>
__global__ void rearrange(const float *from, float *to, int cells) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    for (int q = 0; q < DIRECTIONS; q++) to[To::at(cell, q, cells)] = from[From::at(cell, q, cells)];
}

template <class Layout>
Side side(const char *name, Buffers &b, const float *planes, float *raw, float *out, int height) {
    const int cells = WIDTH * height;
    float *start = b.allocate<float>(static_cast<size_t>(cells) * DIRECTIONS);
    launch(rearrange<ByDirection, Layout>, cells / 256, 256, 0, planes, start, cells)();
    return {name, launch(step<Layout>, dim3(WIDTH / 256, height), 256, 0, start, raw, height, 1.2f), {}, 1, launch(rearrange<Layout, ByDirection>, cells / 256, 256, 0, raw, out, cells)};
}

Study fluid("lattice_boltzmann_cells_of_nine_floats", "lattice methods", 1536, "a step of the lattice Boltzmann method in the plane: what streams in from the neighbours collides, 2048 x 1536 cells of nine directions",
    "a cell's nine values lie side by side, so that the lanes of a warp read and write words 36 bytes apart",
    {{"planes", "a plane for each direction", {"uncoalesced_access"}}, {"strips", "strips of 64 cells, in each a row for each direction", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int height = static_cast<int>(n);
        const size_t count = static_cast<size_t>(WIDTH) * height * DIRECTIONS;
        const float *planes = b.random<float>(count, 0.09, 0.12);
        float *raw = b.allocate<float>(count), *out = b.output<float>(count);
        return {side<ByCell>("flawed", b, planes, raw, out, height), side<ByDirection>("planes", b, planes, raw, out, height), side<BySixtyFour>("strips", b, planes, raw, out, height)};
    });

}  // namespace lattice

// --- when the wave arrives ---

constexpr int SAMPLES = 4096;

// A trace a warp: the first sample that is louder than the trace's noise allows.
__global__ void __launch_bounds__(128) arrivals(const float *__restrict__ traces, const float *__restrict__ noise, int *first, int count, int length, float factor) {
    const int trace = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (trace >= count) return;
    const float *samples = traces + static_cast<size_t>(trace) * length;
    const float limit = factor * noise[trace];
    int found = length;
    for (int start = 0; start < length; start += 32) {
        const unsigned loud = __ballot_sync(~0u, fabsf(samples[start + lane]) > limit);
        if (loud) {
            found = start + __ffs(loud) - 1;
            break;
        }
    }
    if (lane == 0) first[trace] = found;
}

// The same; 256 samples are under way before the first is looked at.
__global__ void __launch_bounds__(128) arrivals_eight(const float *__restrict__ traces, const float *__restrict__ noise, int *first, int count, int length, float factor) {
    const int trace = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (trace >= count) return;
    const float *samples = traces + static_cast<size_t>(trace) * length;
    const float limit = factor * noise[trace];
    int found = length;
    for (int start = 0; start < length && found == length; start += 256) {
        float part[8];
#pragma unroll
        for (int k = 0; k < 8; k++) part[k] = samples[start + 32 * k + lane];
#pragma unroll
        for (int k = 7; k >= 0; k--) {
            const unsigned loud = __ballot_sync(~0u, fabsf(part[k]) > limit);
            if (loud) found = start + 32 * k + __ffs(loud) - 1;
        }
    }
    if (lane == 0) first[trace] = found;
}

// The same; four samples a lane, the next four under way.
__global__ void __launch_bounds__(128) arrivals_ahead(const float4 *__restrict__ traces, const float *__restrict__ noise, int *first, int count, int length, float factor) {
    const int trace = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (trace >= count) return;
    const float4 *samples = traces + static_cast<size_t>(trace) * (length / 4) + lane;
    const float limit = factor * noise[trace];
    int found = length;
    float4 now = samples[0];
    for (int start = 0; start < length; start += 128) {
        const float4 next = start + 128 < length ? samples[(start + 128) / 4] : now;
        int mine = 4;
        if (fabsf(now.w) > limit) mine = 3;
        if (fabsf(now.z) > limit) mine = 2;
        if (fabsf(now.y) > limit) mine = 1;
        if (fabsf(now.x) > limit) mine = 0;
        const unsigned loud = __ballot_sync(~0u, mine < 4);
        if (loud) {
            const int owner = __ffs(loud) - 1;
            found = start + 4 * owner + __shfl_sync(~0u, mine, owner);
            break;
        }
        now = next;
    }
    if (lane == 0) first[trace] = found;
}

__global__ void arrive(float *traces, const int *at, int count) {
    const int trace = blockIdx.x * blockDim.x + threadIdx.x;
    if (trace < count) traces[static_cast<size_t>(trace) * SAMPLES + at[trace]] = 9.0f;
}

Study picks("first_breaks_one_sample_in_flight_a_lane", "geophysics", 24576, "first arrivals in 24576 seismic traces of 4096 samples: the first above a multiple of the trace's noise",
    "a warp asks for the next 32 samples when it has looked at the last ones, a load in flight a lane",
    {{"eight", "eight samples a lane requested together", {"memory_latency"}}, {"ahead", "four samples a lane by one load, the next requested before these are looked at", {"memory_latency", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = static_cast<int>(n);
        float *traces = b.random<float>(static_cast<size_t>(n) * SAMPLES, -1.0, 1.0);
        std::vector<float> noise(n);
        std::vector<int> at(n);
        // Shots of 192 traces: the farther the later. The wave itself is one loud sample of each trace here.
        for (long i = 0; i < n; i++) {
            noise[i] = 0.55f + 0.1f * chance(i);
            const float away = std::fabs(static_cast<float>(i % 192) - 96.0f) / 96.0f;
            at[i] = std::min(SAMPLES - 1, static_cast<int>(SAMPLES * (0.25f + 0.6f * std::sqrt(0.1f + 0.9f * away * away) + 0.08f * chance(i * 3 + 1))));
        }
        launch(arrive, blocks(n, 256), 256, 0, traces, b.copy(at), count)();
        const float *level = b.copy(noise);
        int *first = b.output<int>(n);
        return {{"flawed", launch(arrivals, blocks(n, 4), 128, 0, traces, level, first, count, SAMPLES, 5.0f)}, {"eight", launch(arrivals_eight, blocks(n, 4), 128, 0, traces, level, first, count, SAMPLES, 5.0f)},
            {"ahead", launch(arrivals_ahead, blocks(n, 4), 128, 0, reinterpret_cast<const float4 *>(traces), level, first, count, SAMPLES, 5.0f)}};
    });

// --- how far to the nearest depot ---

constexpr int DEPOTS = 16;
constexpr float EARTH = 6371.0f, DEGREE = 0.017453292519943295f;

// Latitudes and longitudes in degrees; kilometres.
__device__ __forceinline__ float haversine(float2 a, float2 b) {
    const float up = sinf(0.5f * (b.x - a.x) * DEGREE), aside = sinf(0.5f * (b.y - a.y) * DEGREE);
    const float h = up * up + cosf(a.x * DEGREE) * cosf(b.x * DEGREE) * aside * aside;
    return 2.0f * EARTH * asinf(sqrtf(fminf(h, 1.0f)));
}

__global__ void __launch_bounds__(256) nearest_depot(const float2 *__restrict__ customers, const float2 *__restrict__ depots, float *__restrict__ distance, int count) {
    __shared__ float2 all[DEPOTS];
    if (threadIdx.x < DEPOTS) all[threadIdx.x] = depots[threadIdx.x];
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float2 home = customers[i];
    float best = 1e30f;
    for (int k = 0; k < DEPOTS; k++) best = fminf(best, haversine(home, all[k]));
    distance[i] = best;
}

__device__ __forceinline__ float3 direction(float2 place) {
    float up, level, x, y;
    sincospif(place.x / 180.0f, &up, &level);
    sincospif(place.y / 180.0f, &y, &x);
    return make_float3(level * x, level * y, up);
}

// The nearest through the globe is the nearest around it.
__global__ void __launch_bounds__(256) nearest_depot_chord(const float2 *__restrict__ customers, const float2 *__restrict__ depots, float *__restrict__ distance, int count) {
    __shared__ float4 all[DEPOTS];
    if (threadIdx.x < DEPOTS) {
        const float3 at = direction(depots[threadIdx.x]);
        all[threadIdx.x] = make_float4(at.x, at.y, at.z, 0.0f);
    }
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float3 home = direction(customers[i]);
    float best = 4.0f;
#pragma unroll 8
    for (int k = 0; k < DEPOTS; k++) {
        const float4 at = all[k];
        const float x = at.x - home.x, y = at.y - home.y, z = at.z - home.z;
        best = fminf(best, x * x + y * y + z * z);
    }
    distance[i] = 2.0f * EARTH * asinf(0.5f * sqrtf(best));
}

// Haversines are compared, by the hardware's sines; one becomes a distance.
__global__ void __launch_bounds__(256) nearest_depot_fast(const float2 *__restrict__ customers, const float2 *__restrict__ depots, float *__restrict__ distance, int count) {
    __shared__ float4 all[DEPOTS];
    if (threadIdx.x < DEPOTS) {
        const float2 at = depots[threadIdx.x];
        all[threadIdx.x] = make_float4(0.5f * DEGREE * at.x, 0.5f * DEGREE * at.y, cospif(at.x / 180.0f), 0.0f);
    }
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float2 home = customers[i];
    const float half_up = 0.5f * DEGREE * home.x, half_aside = 0.5f * DEGREE * home.y, level = cospif(home.x / 180.0f);
    float best = 1.0f;
#pragma unroll 4
    for (int k = 0; k < DEPOTS; k++) {
        const float4 at = all[k];
        const float up = __sinf(at.x - half_up), aside = __sinf(at.y - half_aside);
        best = fminf(best, up * up + level * at.z * aside * aside);
    }
    distance[i] = 2.0f * EARTH * asinf(sqrtf(best));
}

Study depots("nearest_depot_a_haversine_each", "logistics", 1 << 21, "distance of 2097152 customers to the nearest of sixteen depots on the globe",
    "the whole formula with sines, cosines and an arc sine for every depot, though they are only compared",
    {{"chord", "unit vectors once, squared chords compared, one arc sine at the end", {"expensive_math"}}, {"fast", "haversines compared, by the hardware's sine and cosines stored for each depot", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float2> customers(n), places(DEPOTS);
        for (int k = 0; k < DEPOTS; k++) places[k] = make_float2(36.0f + 22.0f * chance(7 * k + 1), -9.0f + 34.0f * chance(7 * k + 2));
        for (long i = 0; i < n; i++) {
            const float2 town = places[hash(i) % DEPOTS];  // most live not far from one
            const float spread = 0.3f + 6.0f * chance(3 * i + 5);
            customers[i] = make_float2(town.x + spread * (chance(3 * i + 6) - 0.5f), town.y + spread * (chance(3 * i + 7) - 0.5f));
        }
        const float2 *homes = b.copy(customers), *from = b.copy(places);
        float *distance = b.output<float>(n);
        const int count = static_cast<int>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(nearest_depot, blocks(n, 256), 256, 0, homes, from, distance, count)}, {"chord", launch(nearest_depot_chord, blocks(n, 256), 256, 0, homes, from, distance, count)},
            {"fast", launch(nearest_depot_fast, blocks(n, 256), 256, 0, homes, from, distance, count)}};
    });

// --- rows of a time series into buckets ---

struct Windows {
    long long origin, width;  // microseconds
    int slots;                // of a window
    unsigned long long inverse;
    double reciprocal;
};
struct Placed {
    int bucket;
    unsigned char slot;
};

struct Divided {
    static __device__ __forceinline__ Placed place(const Windows &w, long long time) {
        const long long since = time - w.origin;
        return {static_cast<int>(since / w.width), static_cast<unsigned char>(since % w.width * w.slots / w.width)};
    }
};
// By the upper half of a product, at most one too small.
struct Multiplied {
    static __device__ __forceinline__ unsigned long long quotient(unsigned long long a, const Windows &w) {
        const unsigned long long q = __umul64hi(a, w.inverse);
        return q + (a - q * w.width >= static_cast<unsigned long long>(w.width));
    }
    static __device__ __forceinline__ Placed place(const Windows &w, long long time) {
        const unsigned long long since = time - w.origin, bucket = quotient(since, w);
        return {static_cast<int>(bucket), static_cast<unsigned char>(quotient((since - bucket * w.width) * w.slots, w))};
    }
};
// A window by the reciprocal, a slot by a division of 32 bits: a window is shorter than 71 minutes.
struct Narrowed {
    static __device__ __forceinline__ Placed place(const Windows &w, long long time) {
        const long long since = time - w.origin;
        int bucket = static_cast<int>(static_cast<double>(since) * w.reciprocal);
        int rest = static_cast<int>(since - bucket * w.width);
        const int width = static_cast<int>(w.width);
        if (rest < 0) bucket--, rest += width;
        if (rest >= width) bucket++, rest -= width;
        return {bucket, static_cast<unsigned char>(static_cast<unsigned>(rest) / static_cast<unsigned>(width / w.slots))};
    }
};

template <class How>
__global__ void __launch_bounds__(256) bucketed(const longlong2 *__restrict__ times, int2 *__restrict__ buckets, uchar2 *__restrict__ slots, Windows w, int pairs) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += gridDim.x * blockDim.x) {
        const longlong2 time = times[i];
        const Placed a = How::place(w, time.x), b = How::place(w, time.y);
        buckets[i] = make_int2(a.bucket, b.bucket);
        slots[i] = make_uchar2(a.slot, b.slot);
    }
}

Study series("time_buckets_by_long_divisions", "databases", 1 << 24, "window of fifteen minutes, and quarter minute of it, of 16777216 rows by their time in microseconds",
    "divisions and remainders of 64 bits by a width that is known at run time only",
    {{"inverse", "products with the width's inverse, upper halves, corrected by a comparison", {"integer_arithmetic"}}, {"narrow", "the window by a product with the reciprocal, the rest in 32 bits", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const long long origin = 1672531200000000ll, width = 15 * 60 * 1000000ll;
        std::vector<longlong2> times(n / 2);
        long long now = origin + 86400000000ll * 90;
        for (long i = 0; i < n; i++) {
            now += 1 + hash(i) % 900000;
            const long long late = hash(i + 77) % 64 == 0 ? hash(i + 5) % 30000000 : 0;
            (i % 2 ? times[i / 2].y : times[i / 2].x) = now - late;
        }
        const longlong2 *all = b.copy(times);
        int2 *buckets = reinterpret_cast<int2 *>(b.output<int>(n));
        uchar2 *slots = reinterpret_cast<uchar2 *>(b.output<unsigned char>(n));
        const Windows w = {origin, width, 60, ~0ull / width, 1.0 / width};
        const int pairs = static_cast<int>(n / 2), grid = multiprocessors() * 8;
        return {{"flawed", launch(bucketed<Divided>, grid, 256, 0, all, buckets, slots, w, pairs)}, {"inverse", launch(bucketed<Multiplied>, grid, 256, 0, all, buckets, slots, w, pairs)},
            {"narrow", launch(bucketed<Narrowed>, grid, 256, 0, all, buckets, slots, w, pairs)}};
    });

// --- neutrons through a wall ---

struct Wall {
    float thickness, scattering, absorbed;  // in mean free paths; what remains of a weight, below which it ends
};
struct Neutron {
    float x, cosine, weight, path;
    unsigned random;
};
__device__ __forceinline__ float drawn(unsigned &state) {
    state = state * 747796405u + 2891336453u;
    unsigned word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
    word ^= word >> 22;
    return (word >> 8) * (1.0f / 16777216.0f) + (0.5f / 16777216.0f);
}
__device__ __forceinline__ Neutron born(int history) { return {0.0f, 1.0f, 1.0f, 0.0f, hash(history)}; }
// One flight and what follows; false: its history ends.
__device__ __forceinline__ bool flown(Neutron &n, const Wall &wall) {
    const float flight = -logf(drawn(n.random));
    n.x += flight * n.cosine;
    n.path += flight * n.weight;
    if (n.x < 0.0f || n.x > wall.thickness) return false;
    n.weight *= wall.scattering;
    if (n.weight < wall.absorbed) {
        if (drawn(n.random) > 0.5f) return false;
        n.weight *= 2.0f;
    }
    // Scattered forwards more often than back.
    const float g = 0.3f, part = (1.0f - g * g) / (1.0f - g + 2.0f * g * drawn(n.random));
    const float turn = fminf(1.0f, fmaxf(-1.0f, (1.0f + g * g - part * part) / (2.0f * g)));
    const float across = sqrtf((1.0f - turn * turn) * (1.0f - n.cosine * n.cosine));
    n.cosine = n.cosine * turn + across * cospif(2.0f * drawn(n.random));
    n.cosine = fminf(1.0f, fmaxf(-1.0f, n.cosine));
    return true;
}
__device__ __forceinline__ float2 tallied(const Neutron &n, const Wall &wall) { return make_float2(n.x > wall.thickness ? n.weight : 0.0f, n.path); }

__global__ void __launch_bounds__(128) histories(float2 *tallies, Wall wall, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Neutron n = born(i);
    while (flown(n, wall)) {
    }
    tallies[i] = tallied(n, wall);
}

// A lane whose neutron is gone begins its next history at once.
__global__ void __launch_bounds__(128) histories_in_turn(float2 *tallies, Wall wall, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Neutron n = born(i);
    while (i < count) {
        if (!flown(n, wall)) {
            tallies[i] = tallied(n, wall);
            i += gridDim.x * blockDim.x;
            n = born(i);
        }
    }
}

// The same; the next history of the block's share that nobody has begun.
__global__ void __launch_bounds__(128) histories_shared(float2 *tallies, Wall wall, int share) {
    __shared__ int next;
    if (threadIdx.x == 0) next = blockDim.x;
    __syncthreads();
    const int first = blockIdx.x * share;
    int i = threadIdx.x;
    Neutron n = born(first + i);
    while (i < share) {
        if (!flown(n, wall)) {
            tallies[first + i] = tallied(n, wall);
            i = atomicAdd(&next, 1);
            n = born(first + i);
        }
    }
}

// What batches of 4096 neutrons carry through, and their paths: a history may end otherwise by the last bit of a float.
__global__ void batches(const float2 *tallies, double *sums) {
    double through = 0.0, path = 0.0;
    for (int i = 0; i < 4096; i++) {
        const float2 tally = tallies[(blockIdx.x * blockDim.x + threadIdx.x) * 4096 + i];
        through += tally.x, path += tally.y;
    }
    sums[2 * (blockIdx.x * blockDim.x + threadIdx.x)] = through;
    sums[2 * (blockIdx.x * blockDim.x + threadIdx.x) + 1] = path;
}

Study neutrons("neutron_histories_wait_for_the_longest", "Monte Carlo transport", 2048 * 1024, "what 2097152 neutrons carry through a wall of ten mean free paths, and their paths, by the Monte Carlo method",
    "a history a thread: most end after a few flights, and a warp flies on until its last neutron is gone",
    {{"in_turn", "a thread begins its next history in the same loop when one ends", {"branch_divergence"}}, {"shared", "the same, the next history drawn from a counter of the block", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        float2 *tallies = b.allocate<float2>(n);
        double *sums = b.output<double>(n / 2048);
        b.tolerance = 1e-3;
        const auto check = launch(batches, n / 4096, 1, 0, tallies, sums);
        const Wall wall = {10.0f, 0.96f, 0.2f};
        const int count = static_cast<int>(n);
        return {{"flawed", launch(histories, blocks(n, 128), 128, 0, tallies, wall, count), {}, 1, check}, {"in_turn", launch(histories_in_turn, multiprocessors() * 16, 128, 0, tallies, wall, count), {}, 1, check},
            {"shared", launch(histories_shared, n / 1024, 128, 0, tallies, wall, 1024), {}, 1, check}};
    });

// --- areas and middles of what is on a map ---

struct Outlines {
    const float2 *corners;
    const int *starts;
    const int3 *pieces;  // polygon, first corner and the end
};
struct Moments {
    float area, x, y;
};
// Corners [first, end) of a polygon that begins at `start` and ends at `stop`: twice the area, and its moments.
__device__ __forceinline__ Moments around(const float2 *__restrict__ corners, int first, int end, int start, int stop) {
    Moments m = {};
    const float2 base = corners[start];
    for (int i = first + threadIdx.x; i < end; i += blockDim.x) {
        const float2 a = corners[i], b = corners[i + 1 < stop ? i + 1 : start];
        const float ax = a.x - base.x, ay = a.y - base.y, bx = b.x - base.x, by = b.y - base.y;
        const float twice = ax * by - bx * ay;
        m.area += twice;
        m.x += twice * (ax + bx);
        m.y += twice * (ay + by);
    }
    return m;
}
// The sums of all threads, in the first.
__device__ __forceinline__ Moments of_block(Moments m) {
    __shared__ Moments warps[8];
    m = {warp_sum(m.area), warp_sum(m.x), warp_sum(m.y)};
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = m;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < 8; w++) m.area += warps[w].area, m.x += warps[w].x, m.y += warps[w].y;
    return m;
}

__global__ void __launch_bounds__(256) outline_moments(Outlines o, const int *order, float *out) {
    const int polygon = order ? order[blockIdx.x] : blockIdx.x;
    const int start = o.starts[polygon], stop = o.starts[polygon + 1];
    const Moments m = of_block(around(o.corners, start, stop, start, stop));
    if (threadIdx.x == 0) out[3 * polygon] = m.area, out[3 * polygon + 1] = m.x, out[3 * polygon + 2] = m.y;
}
__global__ void __launch_bounds__(256) outline_moments_pieces(Outlines o, float *out) {
    const int3 piece = o.pieces[blockIdx.x];
    const Moments m = of_block(around(o.corners, piece.y, piece.z, o.starts[piece.x], o.starts[piece.x + 1]));
    if (threadIdx.x == 0) atomicAdd(out + 3 * piece.x, m.area), atomicAdd(out + 3 * piece.x + 1, m.x), atomicAdd(out + 3 * piece.x + 2, m.y);
}

Study outlines("polygon_moments_a_block_an_outline", "computational geometry", 12288, "areas and first moments of 12288 outlines of land cover, most of some hundred corners, none of more than sixty thousand",
    "a block an outline, however many corners it has: the largest keep one multiprocessor busy when all others are done",
    {{"pieces", "pieces of at most 4096 corners, added up by atomics", {"workload_imbalance"}}, {"largest_first", "outlines in descending order of their corners", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(1, 0), order(n);
        for (long i = 0; i < n; i++) {
            const float count = 400.0f * std::pow(1.0f - chance(i * 13 + 11), -1.0f / 1.15f);
            starts.push_back(starts.back() + static_cast<int>(std::min(count, 60000.0f)));
            order[i] = static_cast<int>(i);
        }
        const auto corners_of = [&starts](int i) { return starts[i + 1] - starts[i]; };
        std::stable_sort(order.begin(), order.end(), [&](int l, int r) { return corners_of(l) > corners_of(r); });
        std::vector<float2> corners(starts.back());
        std::vector<int3> pieces;
        for (int i = 0; i < n; i++) {
            const int count = corners_of(i);
            const float size = 1.0f + 3.0f * chance(i * 5 + 3), step = 4.0f / count;
            for (int k = 0; k < count; k++) {  // around a rough diamond
                const float t = k * step, u = t - std::floor(t), r = size * (0.9f + 0.2f * chance(k / 8 + 31 * i));
                const float c = t < 1 ? 1 - u : t < 2 ? -u : t < 3 ? u - 1 : u, s = t < 1 ? u : t < 2 ? 1 - u : t < 3 ? -u : u - 1;
                corners[starts[i] + k] = make_float2(10.0f + r * c, 20.0f + r * s);
            }
            for (int at = starts[i]; at < starts[i + 1]; at += 4096) pieces.push_back(make_int3(i, at, std::min(at + 4096, starts[i + 1])));
        }
        const Outlines o = {b.copy(corners), b.copy(starts), b.copy(pieces)};
        const int *sorted = b.copy(order);
        float *out = b.output<float>(3 * n, true);
        b.tolerance = 1e-3;
        return {{"flawed", launch(outline_moments, n, 256, 0, o, nullptr, out)}, {"pieces", launch(outline_moments_pieces, static_cast<unsigned>(pieces.size()), 256, 0, o, out)},
            {"largest_first", launch(outline_moments, n, 256, 0, o, sorted, out)}};
    });

// --- a wave through the ground ---

namespace wave {

constexpr int NX = 512, NY = 384, R = 4, PITCH = NX + 64, PLANE = PITCH * (NY + 2 * R);  // the present field has margins

struct Field {
    const float *__restrict__ now;  // with margins
    const float *__restrict__ before, *__restrict__ speed;
    float *__restrict__ next;
    float weights[R + 1];
};
__device__ __forceinline__ size_t inner(int x, int y, int z) { return (static_cast<size_t>(z) * NY + y) * NX + x; }
__device__ __forceinline__ size_t padded(int x, int y, int z) { return static_cast<size_t>(z + R) * PLANE + (y + R) * PITCH + x + 32; }

__global__ void __launch_bounds__(256) propagate(Field f) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z;
    const float *at = f.now + padded(x, y, z);
    const float middle = at[0];
    float sum = 3.0f * f.weights[0] * middle;
#pragma unroll
    for (int r = 1; r <= R; r++) sum += f.weights[r] * (at[r] + at[-r] + at[r * PITCH] + at[-r * PITCH] + at[r * PLANE] + at[-r * PLANE]);
    const size_t i = inner(x, y, z);
    f.next[i] = 2.0f * middle - f.before[i] + f.speed[i] * sum;
}

// Down a column: what lies above and below is kept.
__global__ void __launch_bounds__(256) propagate_columns(Field f, int depth) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, top = blockIdx.z * depth;
    const float *at = f.now + padded(x, y, top);
    float column[2 * R + 1];
#pragma unroll
    for (int k = 1; k <= 2 * R; k++) column[k] = at[(k - 1 - R) * PLANE];
    for (int z = top; z < top + depth; z++, at += PLANE) {
#pragma unroll
        for (int k = 0; k < 2 * R; k++) column[k] = column[k + 1];
        column[2 * R] = at[R * PLANE];
        float sum = 3.0f * f.weights[0] * column[R];
#pragma unroll
        for (int r = 1; r <= R; r++) sum += f.weights[r] * (at[r] + at[-r] + at[r * PITCH] + at[-r * PITCH] + column[R + r] + column[R - r]);
        const size_t i = inner(x, y, z);
        f.next[i] = 2.0f * column[R] - f.before[i] + f.speed[i] * sum;
    }
}

// The same; a plane's neighbours from shared memory.
__global__ void __launch_bounds__(512) propagate_tiles(Field f, int depth) {
    __shared__ float tile[16 + 2 * R][32 + 2 * R];
    const int tx = threadIdx.x + R, ty = threadIdx.y + R;
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y, top = blockIdx.z * depth;
    const float *at = f.now + padded(x, y, top);
    float column[2 * R + 1];
#pragma unroll
    for (int k = 1; k <= 2 * R; k++) column[k] = at[(k - 1 - R) * PLANE];
    for (int z = top; z < top + depth; z++, at += PLANE) {
#pragma unroll
        for (int k = 0; k < 2 * R; k++) column[k] = column[k + 1];
        column[2 * R] = at[R * PLANE];
        const size_t i = inner(x, y, z);
        const float before = f.before[i], speed = f.speed[i];
        __syncthreads();
        tile[ty][tx] = column[R];
        if (threadIdx.y < R) {
            tile[threadIdx.y][tx] = at[-R * PITCH];
            tile[ty + 16][tx] = at[16 * PITCH];
        }
        if (threadIdx.x < R) {
            tile[ty][threadIdx.x] = at[-R];
            tile[ty][tx + 32] = at[32];
        }
        __syncthreads();
        float sum = 3.0f * f.weights[0] * column[R];
#pragma unroll
        for (int r = 1; r <= R; r++) sum += f.weights[r] * (tile[ty][tx + r] + tile[ty][tx - r] + tile[ty + r][tx] + tile[ty - r][tx] + column[R + r] + column[R - r]);
        f.next[i] = 2.0f * column[R] - before + speed * sum;
    }
}

Study ground("acoustic_wave_25_loads_a_point", "geophysics", 192, "a step of the acoustic wave equation, eighth order in space, 512 x 384 x 192 points",
    "every point loads its 25 neighbours itself, among them those of eight other planes",
    {{"columns", "a thread goes down a column and keeps nine values of it in registers", {"redundant_loads"}}, {"tiles", "the same, with the plane's neighbours from a tile in shared memory", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const size_t count = static_cast<size_t>(NX) * NY * n;
        const int chunks = n % 48 ? 1 : 4, depth = static_cast<int>(n) / chunks;
        const Field f = {b.random<float>(static_cast<size_t>(PLANE) * (n + 2 * R)), b.random<float>(count), b.random<float>(count, 0.02, 0.12), b.output<float>(count),
            {-205.0f / 72.0f, 8.0f / 5.0f, -1.0f / 5.0f, 8.0f / 315.0f, -1.0f / 560.0f}};
        return {{"flawed", launch(propagate, dim3(NX / 32, NY / 8, n), dim3(32, 8), 0, f)}, {"columns", launch(propagate_columns, dim3(NX / 32, NY / 8, chunks), dim3(32, 8), 0, f, depth)},
            {"tiles", launch(propagate_tiles, dim3(NX / 32, NY / 16, chunks), dim3(32, 16), 0, f, depth)}};
    });

}  // namespace wave

// --- where the camera is, from two depth images ---

namespace icp {

constexpr int IW = 640, IH = 480, SUMS = 28, THREADS = 256, TILE = 2048;  // pixels of a block, 64 x 32

struct Pose {
    float r[9], t[3], fx, fy, cx, cy;
};
struct Frames {
    const float *__restrict__ seen, *__restrict__ model;  // depths
    const char4 *__restrict__ normals;
    float *__restrict__ sums;  // of each tile: 21 of the matrix, 6 of the right side, squared distances
    Pose pose;
};
// What eight of a tile's pixels add to the normal equations.
__device__ __forceinline__ void collect(const Frames &f, float (&sum)[SUMS]) {
    const size_t frame = static_cast<size_t>(blockIdx.z) * IW * IH;
    const Pose &p = f.pose;
#pragma unroll
    for (int k = 0; k < SUMS; k++) sum[k] = 0.0f;
    for (int k = 0; k < TILE / THREADS; k++) {
        const int u = blockIdx.x * 64 + threadIdx.x % 64, v = blockIdx.y * 32 + k * 4 + threadIdx.x / 64;
        const size_t at = frame + v * IW + u;
        const float depth = f.seen[at], there = f.model[at];
        const char4 packed = f.normals[at];
        const float dx = (u - p.cx) * p.fx, dy = (v - p.cy) * p.fy;
        const float sx = dx * depth, sy = dy * depth;
        const float x = p.r[0] * sx + p.r[1] * sy + p.r[2] * depth + p.t[0];
        const float y = p.r[3] * sx + p.r[4] * sy + p.r[5] * depth + p.t[1];
        const float z = p.r[6] * sx + p.r[7] * sy + p.r[8] * depth + p.t[2];
        const float ex = dx * there - x, ey = dy * there - y, ez = there - z;
        const bool matches = ex * ex + ey * ey + ez * ez < 0.01f && depth > 0.0f;
        const float scale = matches ? 1.0f / 127.0f : 0.0f;
        const float nx = packed.x * scale, ny = packed.y * scale, nz = packed.z * scale;
        const float row[7] = {y * nz - z * ny, z * nx - x * nz, x * ny - y * nx, nx, ny, nz, nx * ex + ny * ey + nz * ez};
        int to = 0;
#pragma unroll
        for (int a = 0; a < 7; a++)
#pragma unroll
            for (int b = a; b < 7; b++) sum[to++] += row[a] * row[b];
    }
}
__device__ __forceinline__ float *tile_sums(const Frames &f) { return f.sums + ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * SUMS; }

__device__ __forceinline__ float block_sum(float value, float *space) {
    __syncthreads();
    space[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) space[threadIdx.x] += space[threadIdx.x + half];
        __syncthreads();
    }
    return space[0];
}

__global__ void __launch_bounds__(THREADS) equations(Frames f) {
    __shared__ float space[THREADS];
    float sum[SUMS];
    collect(f, sum);
    float *out = tile_sums(f);
#pragma unroll
    for (int k = 0; k < SUMS; k++) {
        const float all = block_sum(sum[k], space);
        if (threadIdx.x == 0) out[k] = all;
    }
}

// Shuffles within warps, then one round among them.
__global__ void __launch_bounds__(THREADS) equations_warps(Frames f) {
    __shared__ float space[THREADS / 32][SUMS];
    float sum[SUMS];
    collect(f, sum);
#pragma unroll
    for (int k = 0; k < SUMS; k++) {
        const float all = warp_sum(sum[k]);
        if (threadIdx.x % 32 == 0) space[threadIdx.x / 32][k] = all;
    }
    __syncthreads();
    if (threadIdx.x < SUMS) {
        float all = 0.0f;
#pragma unroll
        for (int w = 0; w < THREADS / 32; w++) all += space[w][threadIdx.x];
        tile_sums(f)[threadIdx.x] = all;
    }
}

// All threads' values at once; eight threads a sum.
__global__ void __launch_bounds__(THREADS) equations_together(Frames f) {
    __shared__ float space[SUMS][THREADS + 4];
    float sum[SUMS];
    collect(f, sum);
#pragma unroll
    for (int k = 0; k < SUMS; k++) space[k][threadIdx.x] = sum[k];
    __syncthreads();
    const int k = threadIdx.x / 8, part = threadIdx.x % 8;
    float all = 0.0f;
    if (k < SUMS)
#pragma unroll 8
        for (int i = part; i < THREADS; i += 8) all += space[k][i];
    all += __shfl_xor_sync(~0u, all, 4);
    all += __shfl_xor_sync(~0u, all, 2);
    all += __shfl_xor_sync(~0u, all, 1);
    if (k < SUMS && part == 0) tile_sums(f)[k] = all;
}

Study camera("icp_equations_a_tree_for_each_of_28_sums", "robotics", 48, "normal equations of aligning 48 depth images of 640 x 480 with a model, summed over tiles of 2048 pixels",
    "a block adds up each of its 28 sums by a tree in shared memory of its own, ten barriers each",
    {{"warps", "shuffles within warps, one round in shared memory among them", {"barriers"}}, {"together", "all 28 values of all threads in shared memory at once, eight threads a sum", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        const size_t pixels = static_cast<size_t>(n) * IW * IH;
        const dim3 grid(IW / 64, IH / 32, n);
        Frames f = {b.random<float>(pixels, 1.0, 1.08), b.random<float>(pixels, 1.0, 1.08), reinterpret_cast<const char4 *>(b.random<signed char>(4 * pixels, -100, 100)), b.output<float>(grid.x * grid.y * grid.z * SUMS),
            {{1.0f, -0.002f, 0.003f, 0.002f, 1.0f, -0.001f, -0.003f, 0.001f, 1.0f}, {0.01f, -0.004f, 0.006f}, 1.0f / 525.0f, 1.0f / 525.0f, 319.5f, 239.5f}};
        return {{"flawed", launch(equations, grid, THREADS, 0, f)}, {"warps", launch(equations_warps, grid, THREADS, 0, f)}, {"together", launch(equations_together, grid, THREADS, 0, f)}};
    });

}  // namespace icp

// --- the nearest points of a scan ---

namespace scan {

constexpr int QUERIES = 128, MOST = 16;

struct Clusters {
    const float4 *points;  // a cluster's own 128 first, then those around it
    float *distances;      // the nearest first, all queries of one rank side by side
    int around, queries, k;
};
// The next 128 points into shared memory.
__device__ __forceinline__ void fetch(const Clusters &c, float4 *tile, int first) {
    __syncthreads();
    tile[threadIdx.x] = c.points[static_cast<size_t>(blockIdx.x) * c.around + first + threadIdx.x];
    __syncthreads();
}
__device__ __forceinline__ float squared(float4 a, float4 b) { return (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) + (a.z - b.z) * (a.z - b.z); }

__global__ void __launch_bounds__(QUERIES) nearest(Clusters c) {
    __shared__ float4 tile[QUERIES];
    const float4 own = c.points[static_cast<size_t>(blockIdx.x) * c.around + threadIdx.x];
    float best[MOST];
    for (int j = 0; j < c.k; j++) best[j] = 1e30f;
    for (int first = 0; first < c.around; first += QUERIES) {
        fetch(c, tile, first);
        for (int i = 0; i < QUERIES; i++) {
            const float d = squared(own, tile[i]);
            if (d < best[c.k - 1]) {
                int j = c.k - 1;
                for (; j > 0 && best[j - 1] > d; j--) best[j] = best[j - 1];
                best[j] = d;
            }
        }
    }
    for (int j = 0; j < c.k; j++) c.distances[static_cast<size_t>(j) * c.queries + blockIdx.x * QUERIES + threadIdx.x] = sqrtf(best[j]);
}

// As many as the template says, always at the same places.
template <int K>
__global__ void __launch_bounds__(QUERIES) nearest_fixed(Clusters c) {
    __shared__ float4 tile[QUERIES];
    const float4 own = c.points[static_cast<size_t>(blockIdx.x) * c.around + threadIdx.x];
    float best[K];
#pragma unroll
    for (int j = 0; j < K; j++) best[j] = 1e30f;
    for (int first = 0; first < c.around; first += QUERIES) {
        fetch(c, tile, first);
        for (int i = 0; i < QUERIES; i++) {
            const float d = squared(own, tile[i]);
            if (d < best[K - 1]) {
#pragma unroll
                for (int j = K - 1; j > 0; j--) best[j] = fminf(best[j], fmaxf(best[j - 1], d));
                best[0] = fminf(best[0], d);
            }
        }
    }
#pragma unroll
    for (int j = 0; j < K; j++) c.distances[static_cast<size_t>(j) * c.queries + blockIdx.x * QUERIES + threadIdx.x] = sqrtf(best[j]);
}

// A column of shared memory a thread; the farthest of the list is known.
__global__ void __launch_bounds__(QUERIES) nearest_columns(Clusters c) {
    __shared__ float4 tile[QUERIES];
    __shared__ float lists[MOST][QUERIES];
    const float4 own = c.points[static_cast<size_t>(blockIdx.x) * c.around + threadIdx.x];
    for (int j = 0; j < c.k; j++) lists[j][threadIdx.x] = 1e30f;
    float worst = 1e30f;
    for (int first = 0; first < c.around; first += QUERIES) {
        fetch(c, tile, first);
        for (int i = 0; i < QUERIES; i++) {
            const float d = squared(own, tile[i]);
            if (d < worst) {
                int j = c.k - 1;
                for (; j > 0; j--) {
                    const float closer = lists[j - 1][threadIdx.x];
                    if (closer <= d) break;
                    lists[j][threadIdx.x] = closer;
                }
                lists[j][threadIdx.x] = d;
                worst = lists[c.k - 1][threadIdx.x];
            }
        }
    }
    for (int j = 0; j < c.k; j++) c.distances[static_cast<size_t>(j) * c.queries + blockIdx.x * QUERIES + threadIdx.x] = sqrtf(lists[j][threadIdx.x]);
}

Study neighbours("scan_neighbours_in_a_list_of_run_time_length", "robotics", 2112, "distances to the ten nearest of 512 points around, for each of 270336 points of a laser scan in clusters of 128",
    "the list of the nearest so far is an array that is indexed at run time, so it lies in local memory",
    {{"fixed", "ten known at compile time: the list is put in order in registers, by minima and maxima", {"local_memory"}}, {"columns", "the list in a column of shared memory", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        const int around = 512, queries = static_cast<int>(n) * QUERIES;
        const float4 *points = reinterpret_cast<const float4 *>(b.random<float>(static_cast<size_t>(n) * around * 4, 0.0, 2.0));
        const Clusters c = {points, b.output<float>(static_cast<size_t>(queries) * 10), around, queries, 10};
        return {{"flawed", launch(nearest, n, QUERIES, 0, c)}, {"fixed", launch(nearest_fixed<10>, n, QUERIES, 0, c)}, {"columns", launch(nearest_columns, n, QUERIES, 0, c)}};
    });

}  // namespace scan

// --- a flood ---

namespace flood {

constexpr int COLUMNS = 4096;

struct Water {
    const float *__restrict__ h, *__restrict__ hu, *__restrict__ hv;
    float *__restrict__ h1, *__restrict__ hu1, *__restrict__ hv1;
    float ratio;  // of time step and cell
};
struct State {
    float h, hu, hv;
};
struct Flux {
    float h, hu, hv;
};
__device__ __forceinline__ State cell(const Water &w, size_t i) { return {w.h[i], w.hu[i], w.hv[i]}; }
__device__ __forceinline__ State turned(State s) { return {s.h, s.hv, s.hu}; }

// Rusanov's flux to the right.
__device__ __forceinline__ Flux flux(State l, State r) {
    const float ul = l.hu / l.h, ur = r.hu / r.h;
    const float speed = fmax(fabs(ul) + sqrt(9.81 * l.h), fabs(ur) + sqrt(9.81 * r.h));
    const float pl = 0.5 * 9.81 * l.h * l.h, pr = 0.5 * 9.81 * r.h * r.h;
    return {static_cast<float>(0.5 * (l.hu + r.hu) - 0.5 * speed * (r.h - l.h)),
        static_cast<float>(0.5 * (l.hu * ul + pl + r.hu * ur + pr) - 0.5 * speed * (r.hu - l.hu)),
        static_cast<float>(0.5 * (l.hv * ul + r.hv * ur) - 0.5 * speed * (r.hv - l.hv))};
}
__device__ __forceinline__ Flux flux_floats(State l, State r) {
    const float ul = l.hu / l.h, ur = r.hu / r.h;
    const float speed = fmaxf(fabsf(ul) + sqrtf(9.81f * l.h), fabsf(ur) + sqrtf(9.81f * r.h));
    const float pl = 0.5f * 9.81f * l.h * l.h, pr = 0.5f * 9.81f * r.h * r.h;
    return {0.5f * (l.hu + r.hu) - 0.5f * speed * (r.h - l.h), 0.5f * (l.hu * ul + pl + r.hu * ur + pr) - 0.5f * speed * (r.hu - l.hu), 0.5f * (l.hv * ul + r.hv * ur) - 0.5f * speed * (r.hv - l.hv)};
}
// The same, by the hardware's square roots and reciprocals.
__device__ __forceinline__ Flux flux_fast(State l, State r) {
    const float ul = __fdividef(l.hu, l.h), ur = __fdividef(r.hu, r.h);
    const float gl = 9.81f * l.h, gr = 9.81f * r.h;
    const float speed = 0.5f * fmaxf(fabsf(ul) + gl * rsqrtf(gl), fabsf(ur) + gr * rsqrtf(gr));
    const float pressure = 0.25f * (gl * l.h + gr * r.h);
    return {0.5f * (l.hu + r.hu) - speed * (r.h - l.h), 0.5f * (l.hu * ul + r.hu * ur) + pressure - speed * (r.hu - l.hu), 0.5f * (l.hv * ul + r.hv * ur) - speed * (r.hv - l.hv)};
}

template <Flux (*Across)(State, State)>
__global__ void __launch_bounds__(256) advance(Water w, int rows) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    const size_t i = static_cast<size_t>(y) * COLUMNS + x;
    const State own = cell(w, i);
    const State west = x > 0 ? cell(w, i - 1) : own, east = x < COLUMNS - 1 ? cell(w, i + 1) : own;
    const State south = y > 0 ? cell(w, i - COLUMNS) : own, north = y < rows - 1 ? cell(w, i + COLUMNS) : own;
    const Flux in = Across(west, own), out = Across(own, east);
    const Flux below = Across(turned(south), turned(own)), above = Across(turned(own), turned(north));
    w.h1[i] = own.h - w.ratio * (out.h - in.h + above.h - below.h);
    w.hu1[i] = own.hu - w.ratio * (out.hu - in.hu + above.hv - below.hv);
    w.hv1[i] = own.hv - w.ratio * (out.hv - in.hv + above.hu - below.hu);
}

Study water("shallow_water_fluxes_literals_without_f", "fluid dynamics", 2048, "a step of the shallow water equations with Rusanov's fluxes, 4096 x 2048 cells",
    "literals without an f: pressures, wave speeds and fluxes of floats are computed in double precision",
    {{"floats", "literals and functions of single precision", {"double_precision"}}, {"fast", "the same, by the hardware's reciprocals and square roots", {"double_precision", "expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const size_t count = static_cast<size_t>(COLUMNS) * n;
        const Water w = {b.random<float>(count, 1.0, 1.5), b.random<float>(count, -0.3, 0.3), b.random<float>(count, -0.3, 0.3), b.output<float>(count), b.output<float>(count), b.output<float>(count), 0.05f};
        const dim3 grid(COLUMNS / 256, n);
        const int rows = static_cast<int>(n);
        return {{"flawed", launch(advance<flux>, grid, 256, 0, w, rows)}, {"floats", launch(advance<flux_floats>, grid, 256, 0, w, rows)}, {"fast", launch(advance<flux_fast>, grid, 256, 0, w, rows)}};
    });

}  // namespace flood

// --- revenue by a forecast of changed discounts ---

namespace revenue {

struct Lines {
    const uint4 *shipped;               // eight days, 16 bits each
    const uint2 *discounts, *quantities;  // eight bytes each
    const float4 *prices;
};
struct Query {
    unsigned from, to, low, high, most;
};
__device__ __forceinline__ float worth(const Query &q, unsigned day, unsigned discount, unsigned quantity, float price) {
    const bool taken = day - q.from < q.to - q.from && discount - q.low <= q.high - q.low && quantity < q.most;
    return taken ? price * discount : 0.0f;
}
__device__ __forceinline__ float worth_four(const Query &q, unsigned days, unsigned more_days, unsigned discounts, unsigned quantities, float4 price) {
    return worth(q, days & 65535, discounts & 255, quantities & 255, price.x) + worth(q, days >> 16, discounts >> 8 & 255, quantities >> 8 & 255, price.y) +
           worth(q, more_days & 65535, discounts >> 16 & 255, quantities >> 16 & 255, price.z) + worth(q, more_days >> 16, discounts >> 24, quantities >> 24, price.w);
}
__global__ void __launch_bounds__(256) forecast(Lines l, Query q, float *out, int eights) {
    __shared__ float warps[8];
    float sum = 0.0f;
#pragma unroll 2
    for (int k = 0; k < eights; k++) {
        const size_t i = (static_cast<size_t>(blockIdx.x) * eights + k) * 256 + threadIdx.x;
        const uint4 days = l.shipped[i];
        const uint2 discounts = l.discounts[i], quantities = l.quantities[i];
        sum += worth_four(q, days.x, days.y, discounts.x, quantities.x, l.prices[2 * i]) + worth_four(q, days.z, days.w, discounts.y, quantities.y, l.prices[2 * i + 1]);
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < 8 ? warps[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
}

Study query("sound_revenue_forecast", "databases", 4096, "revenue of 67108864 order lines in a range of days, discounts and quantities, in 4096 parts", "", {},
    [](Buffers &b, long n) -> Sides {
        const int eights = 8;
        const size_t rows = static_cast<size_t>(n) * eights * 2048;
        std::vector<unsigned> days(rows / 2);
        for (size_t i = 0; i < days.size(); i++) days[i] = (hash(static_cast<unsigned>(i)) & 0xffffu) % 2556 | (hash(static_cast<unsigned>(i)) >> 16) % 2556 << 16;
        const Lines l = {reinterpret_cast<const uint4 *>(b.copy(days)), reinterpret_cast<const uint2 *>(b.random<unsigned char>(rows, 0, 11)), reinterpret_cast<const uint2 *>(b.random<unsigned char>(rows, 1, 51)),
            reinterpret_cast<const float4 *>(b.random<float>(rows, 900.0, 100000.0))};
        return {{"sound", launch(forecast, n, 256, 0, l, Query{731, 1096, 5, 7, 24}, b.output<float>(n), eights)}};
    });

}  // namespace revenue

// --- the potential around a molecule ---

namespace potential {

constexpr int LX = 512, LY = 256, EACH = 8, BATCH = 128;

__device__ __forceinline__ float reciprocal_root(float x) {
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

__global__ void __launch_bounds__(128) coulomb(const float4 *__restrict__ atoms, float *__restrict__ out, int count, float spacing) {
    __shared__ float4 batch[BATCH];
    const int y = blockIdx.y * 4 + threadIdx.y, x = blockIdx.x * 32 * EACH + threadIdx.x, t = threadIdx.y * 32 + threadIdx.x;
    const float py = y * spacing, pz = blockIdx.z * spacing;
    float px[EACH], sum[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) px[k] = (x + 32 * k) * spacing, sum[k] = 0.0f;
    for (int first = 0; first < count; first += BATCH) {
        __syncthreads();
        batch[t] = atoms[first + t];
        __syncthreads();
#pragma unroll 4
        for (int i = 0; i < BATCH; i++) {
            const float4 atom = batch[i];
            const float dy = py - atom.y, dz = pz - atom.z, across = dy * dy + dz * dz;
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                const float dx = px[k] - atom.x;
                sum[k] += atom.w * reciprocal_root(dx * dx + across);
            }
        }
    }
    float *to = out + (static_cast<size_t>(blockIdx.z) * LY + y) * LX + x;
#pragma unroll
    for (int k = 0; k < EACH; k++) to[32 * k] = sum[k];
}

Study molecule("sound_coulomb_potential_map", "molecular dynamics", 32, "electrostatic potential of 256 charges at 512 x 256 x 32 points, summed directly", "", {},
    [](Buffers &b, long n) -> Sides {
        const int count = 256;
        std::vector<float4> atoms(count);
        for (int i = 0; i < count; i++) atoms[i] = make_float4(51.2f * chance(4 * i) + 0.03f, 25.6f * chance(4 * i + 1) + 0.03f, 3.2f * chance(4 * i + 2) + 0.05f, 2.0f * chance(4 * i + 3) - 1.0f);
        const float4 *all = b.copy(atoms);
        return {{"sound", launch(coulomb, dim3(LX / (32 * EACH), LY / 4, n), dim3(32, 4), 0, all, b.output<float>(static_cast<size_t>(LX) * LY * n), count, 0.1f)}};
    });

}  // namespace potential

}  // namespace
