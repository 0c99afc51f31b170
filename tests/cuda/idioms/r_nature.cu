// Spikes, vortices, epidemics, slopes, reads and traits.
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- spikes of each electrode in the order of their times ---

using Spike = unsigned long long;  // time in the upper bits, unit in the lower

__device__ __forceinline__ Spike keep(Spike mine, Spike other, bool smaller) { return (mine < other) == smaller ? mine : other; }

template <unsigned N>
__global__ void order_spikes(const Spike *recorded, Spike *ordered) {
    __shared__ Spike buffer[2][N];
    const unsigned tid = threadIdx.x;
    const size_t base = static_cast<size_t>(blockIdx.x) * N;
    Spike mine = recorded[base + tid];
    unsigned side = 0;
    for (unsigned k = 2; k <= N; k <<= 1) {
        unsigned j = k >> 1;
        while (j > 0) {
            buffer[side][tid] = mine;
            __syncthreads();
            mine = keep(mine, buffer[side][tid ^ j], ((tid & j) == 0) == ((tid & k) == 0));
            side ^= 1;
            j >>= 1;
        }
    }
    ordered[base + tid] = mine;
}

template <unsigned N>
__global__ void order_spikes_shuffled(const Spike *recorded, Spike *ordered) {
    __shared__ Spike buffer[2][N];
    const unsigned tid = threadIdx.x;
    const size_t base = static_cast<size_t>(blockIdx.x) * N;
    Spike mine = recorded[base + tid];
    unsigned side = 0;
    for (unsigned k = 2; k <= N; k <<= 1) {
        unsigned j = k >> 1;
        while (j > 0) {
            Spike other;
            if (j >= warpSize) {
                buffer[side][tid] = mine;
                __syncthreads();
                other = buffer[side][tid ^ j];
                side ^= 1;
            } else {
                other = __shfl_xor_sync(0xffffffffu, mine, j);
            }
            mine = keep(mine, other, ((tid & j) == 0) == ((tid & k) == 0));
            j >>= 1;
        }
    }
    ordered[base + tid] = mine;
}

Study spikes("spike_times_of_electrodes_ordered", "neuroscience", 6000, "512 spikes of each of 6000 electrodes in the order of their times",
    "every step of the sort goes by way of shared memory and a barrier, near partners too",
    {{"shuffled", "partners of the same warp by shuffles, barriers only for those farther away", {"barriers", "shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr unsigned each = 512;
        std::vector<Spike> list(n * each);
        for (size_t i = 0; i < list.size(); i++) list[i] = static_cast<Spike>(hash(static_cast<unsigned>(i))) << 20 | (i % 4096);
        const Spike *recorded = b.copy(list);
        Spike *ordered = b.output<Spike>(n * each);
        b.tolerance = 0.0;
        return {{"flawed", launch(order_spikes<each>, n, each, 0, recorded, ordered)}, {"shuffled", launch(order_spikes_shuffled<each>, n, each, 0, recorded, ordered)}};
    });

// --- the wind that vortices cause ---

struct Vortices {
    const float *x, *y, *z;     // places
    const float *sx, *sy, *sz;  // strengths
    int count;
};

struct Exact {
    static __device__ float inverse_cube(float square) { return 1.0f / (square * sqrtf(square)); }
};
struct Reciprocal {
    static __device__ float inverse_cube(float square) {
        const float r = rsqrtf(square);
        return r * r * r;
    }
};

template <class Law, int Tile>
__global__ void __launch_bounds__(Tile) induced_wind(const float3 *__restrict__ points, Vortices v, float3 *__restrict__ wind, float core) {
    __shared__ float4 place[Tile];
    __shared__ float4 strength[Tile];
    const float3 p = points[blockIdx.x * Tile + threadIdx.x];
    float wx = 0.f, wy = 0.f, wz = 0.f;
    for (int start = 0; start < v.count; start += Tile) {
        const int s = start + threadIdx.x;
        place[threadIdx.x] = make_float4(v.x[s], v.y[s], v.z[s], 0.f);
        strength[threadIdx.x] = make_float4(v.sx[s], v.sy[s], v.sz[s], 0.f);
        __syncthreads();
#pragma unroll 2
        for (int k = Tile - 1; k >= 0; --k) {
            const float4 o = place[k], g = strength[k];
            const float dx = p.x - o.x, dy = p.y - o.y, dz = p.z - o.z;
            const float f = Law::inverse_cube(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, core))));
            wx += f * (g.y * dz - g.z * dy);
            wy += f * (g.z * dx - g.x * dz);
            wz += f * (g.x * dy - g.y * dx);
        }
        __syncthreads();
    }
    wind[blockIdx.x * Tile + threadIdx.x] = make_float3(wx, wy, wz);
}

Study vortices("wind_of_vortices_by_root_and_quotient", "aerodynamics", 101376, "the wind that 4032 vortices cause at 101376 points",
    "an exact root and an exact division for each point and vortex",
    {{"reciprocal", "a reciprocal root and its powers", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int count = 4032;
        const auto some = [&](double reach) -> const float * { return b.random<float>(count, -reach, reach); };
        const Vortices v = {some(2.0), some(1.0), some(1.0), some(0.3), some(0.3), some(0.3), count};
        const float3 *points = reinterpret_cast<const float3 *>(b.random<float>(3 * n, -2.0, 2.0));
        float3 *wind = reinterpret_cast<float3 *>(b.output<float>(3 * n));
        b.tolerance = 1e-3;
        return {{"flawed", launch(induced_wind<Exact, 192>, n / 192, 192, 0, points, v, wind, 1e-2f)}, {"reciprocal", launch(induced_wind<Reciprocal, 192>, n / 192, 192, 0, points, v, wind, 1e-2f)}};
    });

// --- epidemics of many towns ---

struct Town {
    double healthy, ill, contacts, recovery;
};

template <int Threads>
__global__ void __launch_bounds__(Threads) epidemics(const Town *before, Town *after, double step, int steps, int towns) {
    int i = blockIdx.x * Threads + threadIdx.x;
    do {
        const Town town = before[i];
        const auto caught = [&](double s, double c) { return town.contacts * s * c; };
        double s = town.healthy, c = town.ill;
        int left = steps;
        while (left-- > 0) {
            const double first = caught(s, c), change = first - town.recovery * c;
            const double half_s = s - 0.5 * step * first, half_c = c + 0.5 * step * change;
            const double second = caught(half_s, half_c);
            s -= step * second;
            c += step * (second - town.recovery * half_c);
        }
        after[i] = {s, c, town.contacts, town.recovery};
        i += gridDim.x * Threads;
    } while (i < towns);
}

Study towns("epidemics_of_towns_three_a_thread", "epidemiology", 150, "300 steps of epidemics in 345600 towns",
    "150 blocks for 132 multiprocessors: eighteen of these have two and finish late",
    {{"small", "blocks of 96 threads, a town each", {"tail_effect", "workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        const int threads = 768, count = static_cast<int>(n) * threads * 3;
        std::vector<Town> list(count);
        for (int i = 0; i < count; i++) list[i] = {0.99, 0.01, 0.2 + hash(i) % 1000 * 0.0003, 0.05 + hash(i + 7) % 1000 * 0.0001};
        const Town *before = b.copy(list);
        Town *after = reinterpret_cast<Town *>(b.output<double>(4 * static_cast<size_t>(count)));
        return {{"flawed", launch(epidemics<threads>, n, threads, 0, before, after, 0.1, 300, count)}, {"small", launch(epidemics<96>, count / 96, 96, 0, before, after, 0.1, 300, count)}};
    });

// --- how steep a terrain is ---

// A cell of a raster with `pitch` values a row.
struct Raster {
    const float *heights;
    int rows, columns, pitch;
    __device__ float at(int row, int column) const { return heights[static_cast<long long>(min(max(row, 0), rows - 1)) * pitch + min(max(column, 0), columns - 1)]; }
};

__device__ __forceinline__ void steep(const Raster &raster, float *slope, int row, int column, float scale) {
    if (row >= raster.rows || column >= raster.columns) return;
    const float east = raster.at(row, column + 1) - raster.at(row, column - 1);
    const float south = raster.at(row + 1, column) - raster.at(row - 1, column);
    slope[static_cast<long long>(row) * raster.pitch + column] = scale * (east * east + south * south);
}
__global__ void slopes(Raster raster, float *slope, float scale) {
    steep(raster, slope, blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y, scale);
}
__global__ void slopes_along(Raster raster, float *slope, float scale) {
    steep(raster, slope, blockIdx.y * blockDim.y + threadIdx.y, blockIdx.x * blockDim.x + threadIdx.x, scale);
}

Study terrain("terrain_slope_with_x_for_rows", "geography", 3600, "how steep each of 3600 x 5000 cells of a terrain is",
    "the first index of a thread is its row: sixteen lanes are in sixteen rows",
    {{"along", "the first index of a thread is its column", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int rows = static_cast<int>(n), columns = 5000, pitch = 5024;
        const Raster raster = {b.random<float>(static_cast<size_t>(rows) * pitch, 0.0, 900.0), rows, columns, pitch};
        float *slope = b.output<float>(static_cast<size_t>(rows) * pitch, true);
        const dim3 block(16, 16);
        return {{"flawed", launch(slopes, dim3(blocks(rows, 16), blocks(columns, 16)), block, 0, raster, slope, 0.25f)},
            {"along", launch(slopes_along, dim3(blocks(columns, 16), blocks(rows, 16)), block, 0, raster, slope, 0.25f)}};
    });

// --- how far the reads of a family differ ---

using Read = ulonglong2;  // 64 letters: their lower bits, their upper bits

__device__ __forceinline__ int differing(Read a, Read b) { return __popcll((a.x ^ b.x) | (a.y ^ b.y)); }

__global__ void family_distances(const Read *reads, const unsigned *firsts, int *distances) {
    const Read *begin = reads + firsts[blockIdx.x], *end = reads + firsts[blockIdx.x + 1];
    for (const Read *read = begin + threadIdx.x; read < end; read += blockDim.x) {
        const Read own = *read;
        int sum = 0;
        for (const Read *other = begin; other != end; ++other) sum += differing(own, *other);
        distances[read - reads] = sum;
    }
}
// A read a thread, whatever family it is of.
__global__ void family_distances_pieces(const Read *reads, const uint3 *pieces, int *distances) {
    const uint3 piece = pieces[blockIdx.x];  // its first read, and where the family begins and ends
    const unsigned i = piece.x + threadIdx.x;
    if (i >= piece.z) return;
    const Read own = reads[i];
    int sum = 0;
    for (const Read *other = reads + piece.y, *end = reads + piece.z; other != end; ++other) sum += differing(own, *other);
    distances[i] = sum;
}

Study families("distances_within_families_of_reads", "genetics", 6000, "distances of each read to all others of its family, 6000 families of up to 1000",
    "a block a family: work grows with the square of its reads",
    {{"pieces", "a block for each 96 reads of a family", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned threads = 96;
        std::vector<unsigned> firsts = {0};
        std::vector<uint3> pieces;
        for (long k = 0; k < n; k++) {
            const unsigned begin = firsts.back(), end = begin + static_cast<unsigned>(1000.0 * std::pow(1.0 + (k * 2411 + 5) % n, -0.35));
            for (unsigned from = begin; from < end; from += threads) pieces.push_back(make_uint3(from, begin, end));
            firsts.push_back(end);
        }
        std::vector<Read> reads(firsts.back());
        for (unsigned i = 0; i < reads.size(); i++) {
            const auto any = [i](unsigned k) { return static_cast<unsigned long long>(hash(4 * i + k)) << 32 | hash(4 * i + k + 1); };
            reads[i] = {any(0), any(2)};
        }
        const Read *all = b.copy(reads);
        const unsigned *starts = b.copy(firsts);
        const uint3 *parts = b.copy(pieces);
        int *distances = b.output<int>(reads.size());
        b.tolerance = 0.0;
        return {{"flawed", launch(family_distances, n, threads, 0, all, starts, distances)}, {"pieces", launch(family_distances_pieces, pieces.size(), threads, 0, all, parts, distances)}};
    });

// --- genes and traits ---

constexpr int WORDS = 512;  // of sixteen people each

// Person k of word w has trait value [k][w].
template <int Traits>
__global__ void __launch_bounds__(160) associations(const unsigned *genotypes, const float2 *markers, const float *traits, float *scores, int count) {
    const int lane = threadIdx.x & 31, marker = blockIdx.x * 5 + (threadIdx.x >> 5), trait = blockIdx.y * Traits;
    if (marker >= count) return;
    const float mean = markers[marker].x, inverse = markers[marker].y;
    const unsigned *row = genotypes + static_cast<long long>(marker) * WORDS;
    float sums[Traits];
    for (int t = 0; t < Traits; t++) sums[t] = 0.0f;
    int w = lane;
    while (w < WORDS) {
        const unsigned word = row[w];
#pragma unroll
        for (int k = 0; k < 16; k++) {
            const unsigned code = word >> (2 * k) & 3u;
            const float dose = code == 3u ? 0.0f : (static_cast<float>(code) - mean) * inverse;
#pragma unroll
            for (int t = 0; t < Traits; t++) sums[t] += dose * traits[((trait + t) * 16 + k) * WORDS + w];
        }
        w += 32;
    }
#pragma unroll
    for (int t = 0; t < Traits; t++) {
        for (int hop = 1; hop < 32; hop <<= 1) sums[t] += __shfl_down_sync(0xffffffffu, sums[t], hop);
        if (lane == 0) scores[(trait + t) * count + marker] = sums[t];
    }
}

Study genes("marker_scores_a_warp_a_trait", "statistical genetics", 24000, "scores of 24000 markers of 8192 people for six traits",
    "a warp for each marker and trait: genotypes are loaded and decoded again for each of six",
    {{"six", "a warp has all six traits of its marker", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const unsigned *genotypes = b.random<unsigned>(n * WORDS, 0.0, 4294967295.0);
        const float2 *markers = reinterpret_cast<const float2 *>(b.random<float>(2 * n, 0.5, 1.5));
        const float *traits = b.random<float>(6 * 16 * WORDS);
        float *scores = b.output<float>(6 * n);
        const int count = static_cast<int>(n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(associations<1>, dim3(blocks(n, 5), 6), 160, 0, genotypes, markers, traits, scores, count)},
            {"six", launch(associations<6>, blocks(n, 5), 160, 0, genotypes, markers, traits, scores, count)}};
    });

}  // namespace
