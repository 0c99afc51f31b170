// Pieces of chemistry, weather, finance and robotics, and normals for a renderer. Each kernel but the last has one weakness
// and two or three ways out.
#include <cmath>
#include <random>

#include "../pairs/pair.cuh"

namespace {

// --- the surface of molecules that a solvent can reach, from points on spheres ---

constexpr int POINTS = 96;  // of a sphere

struct Neighbours {
    const int *starts, *atoms;
};

// Whether a point of the sphere around `at` lies within the one around `other`; w: radius of atom and solvent.
__device__ __forceinline__ bool buried(float4 at, float4 direction, float4 other) {
    float dx = fmaf(direction.x, at.w, at.x) - other.x, dy = fmaf(direction.y, at.w, at.y) - other.y, dz = fmaf(direction.z, at.w, at.z) - other.z;
    return fmaf(dx, dx, fmaf(dy, dy, __fmul_rn(dz, dz))) < __fmul_rn(other.w, other.w);
}
__device__ __forceinline__ float area(float4 at, int open) { return 12.566371f / POINTS * at.w * at.w * open; }

__global__ void surface(const float4 *atoms, Neighbours near, const float4 *directions, float *areas, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 at = atoms[i];
    int first = near.starts[i], end = near.starts[i + 1], open = 0;
    for (int p = 0; p < POINTS; ++p) {
        float4 direction = directions[p];
        bool inside = false;
        for (int e = first; e < end && !inside; ++e) inside = buried(at, direction, atoms[near.atoms[e]]);
        open += !inside;
    }
    areas[i] = area(at, open);
}
// A warp an atom; a lane takes every 32nd point.
__global__ void surface_lanes(const float4 *__restrict__ atoms, Neighbours near, const float4 *__restrict__ directions, float *__restrict__ areas, int n) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (i >= n) return;
    float4 at = atoms[i];
    int first = near.starts[i], end = near.starts[i + 1], open = 0;
    for (int p = lane; p < POINTS; p += 32) {
        float4 direction = directions[p];
        bool inside = false;
        for (int e = first; e < end && !inside; ++e) inside = buried(at, direction, atoms[near.atoms[e]]);
        open += !inside;
    }
    open = __reduce_add_sync(~0u, open);
    if (lane == 0) areas[i] = area(at, open);
}
// A warp an atom; neighbours are taken up 32 at a time and handed round, three points a lane.
__global__ void surface_handed_round(const float4 *__restrict__ atoms, Neighbours near, const float4 *__restrict__ directions, float *__restrict__ areas, int n) {
    __shared__ float4 others[8][32];
    int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (i >= n) return;
    float4 at = atoms[i], direction[POINTS / 32];
    bool inside[POINTS / 32] = {};
#pragma unroll
    for (int p = 0; p < POINTS / 32; ++p) direction[p] = directions[32 * p + lane];
    int end = near.starts[i + 1];
    for (int first = near.starts[i]; first < end; first += 32) {
        int here = min(32, end - first);
        __syncwarp();
        if (lane < here) others[warp][lane] = atoms[near.atoms[first + lane]];
        __syncwarp();
        for (int e = 0; e < here; ++e) {
            float4 other = others[warp][e];
#pragma unroll
            for (int p = 0; p < POINTS / 32; ++p) inside[p] |= buried(at, direction[p], other);
        }
    }
    int open = 0;
#pragma unroll
    for (int p = 0; p < POINTS / 32; ++p) open += !inside[p];
    open = __reduce_add_sync(~0u, open);
    if (lane == 0) areas[i] = area(at, open);
}

Study open_surface("surface_points_atom_per_thread", "chemistry", 1 << 14, "the surface of 16384 atoms that a solvent reaches, 96 points of each sphere against its neighbours",
    "a thread goes through all points of an atom: 64 blocks of 256 threads, and lanes end their searches at different neighbours",
    {{"lanes", "a warp an atom, a lane for every 32nd point", {"small_grid", "branch_divergence"}},
        {"handed_round", "a warp an atom, neighbours through shared memory, three points a lane", {"small_grid", "uncoalesced_access"}},
        {"small_blocks", "blocks of 32 threads, which reach all multiprocessors", {"small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        constexpr int CELLS = 12;
        constexpr float CELL = 6.4f, REACH = 6.4f;
        std::mt19937 random(29);
        std::uniform_real_distribution<float> place(0.f, CELLS * CELL), size(2.6f, 3.2f);
        std::vector<float> atoms, directions;
        std::vector<std::vector<int>> cells(CELLS * CELLS * CELLS);
        auto cell = [](float x) { return std::min(CELLS - 1, static_cast<int>(x / CELL)); };
        for (long i = 0; i < n; ++i) {
            float x = place(random), y = place(random), z = place(random);
            atoms.insert(atoms.end(), {x, y, z, size(random)});
            cells[(cell(x) * CELLS + cell(y)) * CELLS + cell(z)].push_back(static_cast<int>(i));
        }
        std::vector<int> starts(1), others;
        for (long i = 0; i < n; ++i) {
            const float *a = &atoms[4 * i];
            for (int x = std::max(0, cell(a[0]) - 1); x <= std::min(CELLS - 1, cell(a[0]) + 1); ++x)
                for (int y = std::max(0, cell(a[1]) - 1); y <= std::min(CELLS - 1, cell(a[1]) + 1); ++y)
                    for (int z = std::max(0, cell(a[2]) - 1); z <= std::min(CELLS - 1, cell(a[2]) + 1); ++z)
                        for (int k : cells[(x * CELLS + y) * CELLS + z]) {
                            float dx = a[0] - atoms[4 * k], dy = a[1] - atoms[4 * k + 1], dz = a[2] - atoms[4 * k + 2];
                            if (k != i && dx * dx + dy * dy + dz * dz < REACH * REACH) others.push_back(k);
                        }
            starts.push_back(static_cast<int>(others.size()));
        }
        for (int p = 0; p < POINTS; ++p) {
            double z = 1.0 - (2.0 * p + 1.0) / POINTS, angle = 2.399963 * p, r = std::sqrt(1.0 - z * z);
            directions.insert(directions.end(), {static_cast<float>(r * std::cos(angle)), static_cast<float>(r * std::sin(angle)), static_cast<float>(z), 0.f});
        }
        auto *at = (float4 *)b.copy(atoms), *to = (float4 *)b.copy(directions);
        Neighbours near{b.copy(starts), b.copy(others)};
        float *areas = b.output<float>(n);
        return {{"flawed", launch(surface, blocks(n, 256), 256, 0, at, near, to, areas, n)}, {"lanes", launch(surface_lanes, blocks(32 * n, 256), 256, 0, at, near, to, areas, n)},
            {"handed_round", launch(surface_handed_round, blocks(32 * n, 256), 256, 0, at, near, to, areas, n)},
            {"small_blocks", launch(surface, blocks(n, 32), 32, 0, at, near, to, areas, n)}};
    });

// --- how many pairs of particles lie at which distance ---

constexpr int BINS = 256, TILE = 256;  // particles at a time
constexpr float WIDTH = 0.02f, BOX = 10.24f;

// The bin of a distance, as its author wrote it and in two other ways.
struct DividedBin {
    __device__ __forceinline__ int operator()(float square) const { return static_cast<int>(sqrtf(square) / 0.02); }
};
struct SingleBin {
    __device__ __forceinline__ int operator()(float square) const { return static_cast<int>(sqrtf(square) * (1.f / WIDTH)); }
};
struct FastBin {
    __device__ __forceinline__ int operator()(float square) const { return static_cast<int>(square * rsqrtf(square) * (1.f / WIDTH)); }
};
__device__ __forceinline__ float nearest_image(float d) { return d - BOX * rintf(d * (1.f / BOX)); }

// A block compares 256 particles with a part of all; COPIES of the counts in shared memory.
template <typename Bin, int COPIES>
__global__ void __launch_bounds__(TILE) pair_distances(const float *x, const float *y, const float *z, int *counts, int part) {
    __shared__ float4 tile[TILE];
    __shared__ int found[COPIES][BINS];
    Bin bin;
    for (int c = 0; c < COPIES; ++c) found[c][threadIdx.x] = 0;
    int i = blockIdx.x * TILE + threadIdx.x;
    float px = x[i], py = y[i], pz = z[i];
    int *mine = found[threadIdx.x / 32 % COPIES];
    for (int first = blockIdx.y * part; first < (static_cast<int>(blockIdx.y) + 1) * part; first += TILE) {
        __syncthreads();
        tile[threadIdx.x] = {x[first + threadIdx.x], y[first + threadIdx.x], z[first + threadIdx.x], 0.f};
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < TILE; ++k) {
            float dx = nearest_image(px - tile[k].x), dy = nearest_image(py - tile[k].y), dz = nearest_image(pz - tile[k].z);
            float square = dx * dx + dy * dy + dz * dz;
            if (square > 0.f && square < BOX * BOX / 4) atomicAdd(&mine[min(bin(square), BINS - 1)], 1);
        }
    }
    __syncthreads();
    int sum = 0;
    for (int c = 0; c < COPIES; ++c) sum += found[c][threadIdx.x];
    if (sum) atomicAdd(&counts[threadIdx.x], sum);
}

Study distances("pair_distances_binned_in_double", "chemistry", 1 << 14, "how many of all pairs of 16384 particles in a periodic box lie at which of 256 distances",
    "the distance is divided by a width written as 0.02, a double",
    {{"single", "a product with the reciprocal in single precision", {"double_precision"}},
        {"fast", "the same, with the fast reciprocal root", {"double_precision", "expensive_math"}},
        {"copies", "single precision, and each warp counts for itself", {"double_precision", "shared_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n, 0.0, BOX), *y = b.random<float>(n, 0.0, BOX), *z = b.random<float>(n, 0.0, BOX);
        int *counts = b.output<int>(BINS, true);
        dim3 grid(blocks(n, TILE), 16);
        long part = n / 16;
        b.tolerance = 1e-3;
        return {{"flawed", launch(pair_distances<DividedBin, 1>, grid, TILE, 0, x, y, z, counts, part)},
            {"single", launch(pair_distances<SingleBin, 1>, grid, TILE, 0, x, y, z, counts, part)},
            {"fast", launch(pair_distances<FastBin, 1>, grid, TILE, 0, x, y, z, counts, part)},
            {"copies", launch(pair_distances<SingleBin, 8>, grid, TILE, 0, x, y, z, counts, part)}};
    });

// --- from waves on a sphere to latitudes ---

constexpr int WAVES = 256, LATITUDES = 512, FIELDS = 32;  // 16 levels, real and imaginary

// Where the numbers of wave m begin, which has a degree for each of m ... WAVES - 1.
__host__ __device__ constexpr int wave_begin(int m) { return m * WAVES - m * (m - 1) / 2; }

struct Waves {
    const float4 *amounts;  // FIELDS for each wave and degree
    const float2 *steps;    // of the recurrence, for each wave and degree
    const float *sines, *lowest;
    float *out;
};
__device__ __forceinline__ void add_up_wave(const Waves &waves, int m, int latitude) {
    float sum[FIELDS] = {}, x = waves.sines[latitude], before = 0.f, here = waves.lowest[m * LATITUDES + latitude];
    const float4 *amounts = waves.amounts + wave_begin(m) * (FIELDS / 4);
    const float2 *steps = waves.steps + wave_begin(m);
    for (int degree = m; degree < WAVES; ++degree, ++steps, amounts += FIELDS / 4) {
#pragma unroll
        for (int k = 0; k < FIELDS / 4; ++k) {
            float4 four = amounts[k];
            sum[4 * k] = fmaf(here, four.x, sum[4 * k]), sum[4 * k + 1] = fmaf(here, four.y, sum[4 * k + 1]);
            sum[4 * k + 2] = fmaf(here, four.z, sum[4 * k + 2]), sum[4 * k + 3] = fmaf(here, four.w, sum[4 * k + 3]);
        }
        float2 step = *steps;
        float next = step.x * fmaf(x, here, -step.y * before);
        before = here, here = next;
    }
#pragma unroll
    for (int k = 0; k < FIELDS; ++k) waves.out[(m * FIELDS + k) * LATITUDES + latitude] = sum[k];
}
__global__ void __launch_bounds__(LATITUDES, 2) to_latitudes(Waves waves) { add_up_wave(waves, blockIdx.x, threadIdx.x); }
// A long wave and a short one: all blocks have the same number of degrees.
__global__ void __launch_bounds__(LATITUDES) to_latitudes_paired(Waves waves) {
#pragma unroll 1
    for (int half = 0; half < 2; ++half) add_up_wave(waves, half ? WAVES - 1 - blockIdx.x : blockIdx.x, threadIdx.x);
}
// Blocks of 64 latitudes.
__global__ void __launch_bounds__(64) to_latitudes_pieces(Waves waves) { add_up_wave(waves, blockIdx.y, blockIdx.x * 64 + threadIdx.x); }

Study legendre("legendre_sums_block_per_wave", "weather", WAVES, "256 waves of 16 levels from a sphere's harmonics to 512 latitudes",
    "a block takes one wave at all latitudes: from 256 degrees to one, two blocks a multiprocessor",
    {{"paired", "a block takes a long wave and the short one that makes up for it", {"workload_imbalance"}},
        {"pieces", "blocks of 64 latitudes, long waves first", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> steps, sines, lowest;
        for (long m = 0; m < n; ++m)
            for (long d = m; d < n; ++d) {
                double degree = static_cast<double>(d), next = degree + 1.0, square = static_cast<double>(m) * m;
                steps.push_back(static_cast<float>(std::sqrt((4.0 * next * next - 1.0) / (next * next - square))));
                steps.push_back(static_cast<float>(std::sqrt((degree * degree - square) / std::fabs(4.0 * degree * degree - 1.0))));
            }
        std::vector<double> diagonal(LATITUDES, std::sqrt(0.5));
        for (int l = 0; l < LATITUDES; ++l) sines.push_back(static_cast<float>(-1.0 + (2.0 * l + 1.0) / LATITUDES));
        for (long m = 0; m < n; ++m)
            for (int l = 0; l < LATITUDES; ++l) {
                if (m) diagonal[l] *= std::sqrt((2.0 * m + 1.0) / (2.0 * m) * (1.0 - static_cast<double>(sines[l]) * sines[l]));
                lowest.push_back(static_cast<float>(diagonal[l]));
            }
        Waves waves{(float4 *)b.random<float>(wave_begin(WAVES) * FIELDS), (float2 *)b.copy(steps), b.copy(sines), b.copy(lowest), nullptr};
        waves.out = b.output<float>(n * FIELDS * LATITUDES);
        return {{"flawed", launch(to_latitudes, n, LATITUDES, 0, waves)}, {"paired", launch(to_latitudes_paired, n / 2, LATITUDES, 0, waves)},
            {"pieces", launch(to_latitudes_pieces, dim3(LATITUDES / 64, static_cast<unsigned>(n)), 64, 0, waves)}};
    });

// --- what an option on an average is worth when the market moves a little ---

constexpr int MONTHS = 60, BUMPS = 5;  // none, spot up and down, volatility up and down

struct Market {
    float drift, volatility, step, strike, amount;

    __device__ __forceinline__ float start(int bump) const { return bump == 1 ? amount : bump == 2 ? -amount : 0.f; }
    __device__ __forceinline__ float2 month(int bump) const {  // drift and spread of the logarithm
        float v = volatility + (bump == 3 ? amount : bump == 4 ? -amount : 0.f);
        return {(drift - 0.5f * v * v) * step, v * sqrtf(step)};
    }
    __device__ __forceinline__ float worth(float sum) const { return fmaxf(sum / MONTHS - strike, 0.f); }
};
// Two normal numbers for months 2k and 2k + 1.
struct Precise {
    __device__ __forceinline__ float2 operator()(unsigned path, unsigned k) const {
        unsigned a = hash(path * (MONTHS / 2) + k), c = hash(a ^ 0x9e3779b9u);
        float radius = sqrtf(-2.f * logf((a + 1.f) * 2.3283064e-10f)), sine, cosine;
        sincospif(c * 4.6566129e-10f, &sine, &cosine);
        return {radius * cosine, radius * sine};
    }
};
struct Fast {
    __device__ __forceinline__ float2 operator()(unsigned path, unsigned k) const {
        unsigned a = hash(path * (MONTHS / 2) + k), c = hash(a ^ 0x9e3779b9u);
        float radius = __fsqrt_rn(fmaxf(-2.f * __logf((a + 1.f) * 2.3283064e-10f), 0.f)), sine, cosine;
        __sincosf((c - 2147483648.f) * 1.4629181e-9f, &sine, &cosine);
        return {-radius * cosine, -radius * sine};
    }
};
template <typename Normals>
__global__ void bumped(Market market, float *out, int n) {
    int path = blockIdx.x * blockDim.x + threadIdx.x, bump = blockIdx.y;
    if (path >= n) return;
    float2 month = market.month(bump);
    float level = market.start(bump), sum = 0.f;
    for (int k = 0; k < MONTHS / 2; ++k) {
        float2 normal = Normals()(path, k);
        level += fmaf(month.y, normal.x, month.x);
        sum += __expf(level);
        level += fmaf(month.y, normal.y, month.x);
        sum += __expf(level);
    }
    out[bump * n + path] = market.worth(sum);
}
__global__ void bumped_together(Market market, float *__restrict__ out, int n) {
    int path = blockIdx.x * blockDim.x + threadIdx.x;
    if (path >= n) return;
    float2 month[BUMPS];
    float level[BUMPS], sum[BUMPS] = {};
#pragma unroll
    for (int j = 0; j < BUMPS; ++j) month[j] = market.month(j), level[j] = market.start(j);
    for (int k = 0; k < MONTHS / 2; ++k) {
        float2 normal = Precise()(path, k);
#pragma unroll
        for (int j = 0; j < BUMPS; ++j) {
            level[j] += fmaf(month[j].y, normal.x, month[j].x);
            sum[j] += __expf(level[j]);
            level[j] += fmaf(month[j].y, normal.y, month[j].x);
            sum[j] += __expf(level[j]);
        }
    }
#pragma unroll
    for (int j = 0; j < BUMPS; ++j) out[j * n + path] = market.worth(sum[j]);
}
// A block of 32 paths and a warp for each bump; the warps draw ten months together.
__global__ void __launch_bounds__(32 * BUMPS) bumped_exchanged(Market market, float *__restrict__ out, int n) {
    __shared__ float2 normals[BUMPS][32];
    int path = blockIdx.x * 32 + threadIdx.x, bump = threadIdx.y;
    float2 month = market.month(bump);
    float level = market.start(bump), sum = 0.f;
    for (int first = 0; first < MONTHS / 2; first += BUMPS) {
        __syncthreads();
        normals[bump][threadIdx.x] = Precise()(path, first + bump);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BUMPS; ++k) {
            float2 normal = normals[k][threadIdx.x];
            level += fmaf(month.y, normal.x, month.x);
            sum += __expf(level);
            level += fmaf(month.y, normal.y, month.x);
            sum += __expf(level);
        }
    }
    out[bump * n + path] = market.worth(sum);
}

Study sensitivities("greeks_paths_drawn_for_each_bump", "finance", 1 << 18, "an option on an average of 60 months on 262144 paths, with spot and volatility moved up and down",
    "each of the five markets draws the same normal numbers anew",
    {{"together", "a thread takes its path through all five markets", {"expensive_math", "integer_arithmetic"}},
        {"exchanged", "a warp a market, five warps draw for each other through shared memory", {"expensive_math", "integer_arithmetic"}},
        {"fast", "numbers drawn anew, with fast functions", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        float *out = b.output<float>(BUMPS * n);
        Market market{0.03f, 0.2f, 1.f / 12.f, 1.f, 0.01f};
        dim3 grid(blocks(n, 256), BUMPS);
        b.tolerance = 1e-3;
        return {{"flawed", launch(bumped<Precise>, grid, 256, 0, market, out, n)}, {"together", launch(bumped_together, blocks(n, 128), 128, 0, market, out, n)},
            {"exchanged", launch(bumped_exchanged, n / 32, dim3(32, BUMPS), 0, market, out, n)}, {"fast", launch(bumped<Fast>, grid, 256, 0, market, out, n)}};
    });

// --- inertias of a robot's links as seen from elsewhere ---

constexpr int SIX = 6, MATRIX = 36;  // numbers

// Column `column` of X^T I X.
template <typename Numbers>
__device__ __forceinline__ void turned_column(Numbers motion, Numbers inertia, int column, float *out) {
    float part[SIX], moved[SIX];
#pragma unroll
    for (int k = 0; k < SIX; ++k) part[k] = motion[k * SIX + column];
#pragma unroll
    for (int k = 0; k < SIX; ++k) {
        moved[k] = 0.f;
#pragma unroll
        for (int l = 0; l < SIX; ++l) moved[k] = fmaf(inertia[k * SIX + l], part[l], moved[k]);
    }
#pragma unroll
    for (int i = 0; i < SIX; ++i) {
        float sum = 0.f;
#pragma unroll
        for (int k = 0; k < SIX; ++k) sum = fmaf(motion[k * SIX + i], moved[k], sum);
        out[i * SIX + column] = sum;
    }
}
__global__ void inertias(const float *motions, const float *links, float *out, int n) {
    int link = blockIdx.x * blockDim.y + threadIdx.y, column = threadIdx.x;
    if (link >= n || column >= SIX) return;
    turned_column(motions + link * MATRIX, links + link * MATRIX, column, out + link * MATRIX);
}
// Five links a warp: 30 of 32 lanes work.
__global__ void inertias_five(const float *__restrict__ motions, const float *__restrict__ links, float *__restrict__ out, int n) {
    int lane = threadIdx.x % 32, link = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 5 + lane / SIX;
    if (link >= n || lane >= 30) return;
    turned_column(motions + link * MATRIX, links + link * MATRIX, lane % SIX, out + link * MATRIX);
}
// 32 links a block of 192 threads, in and out through shared memory.
__global__ void __launch_bounds__(192) inertias_staged(const float4 *__restrict__ motions, const float4 *__restrict__ links, float4 *__restrict__ out) {
    __shared__ float4 motion[32 * MATRIX / 4], inertia[32 * MATRIX / 4], result[32 * MATRIX / 4];
    size_t first = static_cast<size_t>(blockIdx.x) * (32 * MATRIX / 4);
#pragma unroll
    for (int turn = 0; turn < 2; ++turn) {
        int i = turn * 192 + threadIdx.x;
        if (i < 32 * MATRIX / 4) motion[i] = motions[first + i], inertia[i] = links[first + i];
    }
    __syncthreads();
    int link = threadIdx.x / SIX * MATRIX;
    turned_column(reinterpret_cast<const float *>(motion) + link, reinterpret_cast<const float *>(inertia) + link, threadIdx.x % SIX, reinterpret_cast<float *>(result) + link);
    __syncthreads();
#pragma unroll
    for (int turn = 0; turn < 2; ++turn) {
        int i = turn * 192 + threadIdx.x;
        if (i < 32 * MATRIX / 4) out[first + i] = result[i];
    }
}
// An element a thread, eight links a block.
__global__ void __launch_bounds__(8 * MATRIX) inertias_elements(const float *__restrict__ motions, const float *__restrict__ links, float *__restrict__ out) {
    __shared__ float motion[8 * MATRIX], inertia[8 * MATRIX], moved[8 * MATRIX];
    int t = threadIdx.x, at = blockIdx.x * (8 * MATRIX) + t, link = t / MATRIX * MATRIX, row = t % MATRIX / SIX, column = t % SIX;
    motion[t] = motions[at], inertia[t] = links[at];
    __syncthreads();
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < SIX; ++k) sum = fmaf(inertia[link + row * SIX + k], motion[link + k * SIX + column], sum);
    moved[t] = sum;
    __syncthreads();
    sum = 0.f;
#pragma unroll
    for (int k = 0; k < SIX; ++k) sum = fmaf(motion[link + k * SIX + row], moved[link + k * SIX + column], sum);
    out[at] = sum;
}

Study turned_inertias("spatial_inertias_six_lanes_of_a_warp", "robotics", 1 << 18, "inertias of 262144 links, 6 x 6 each, turned into other frames",
    "a warp a link and a lane a column: 26 of 32 lanes have nothing to do",
    {{"five", "five links a warp", {"idle_threads"}}, {"staged", "32 links a block of 192 threads, through shared memory", {"idle_threads", "uncoalesced_access"}},
        {"elements", "a thread an element, eight links a block of 288 threads", {"idle_threads", "uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *motions = b.random<float>(n * MATRIX), *links = b.random<float>(n * MATRIX), *out = b.output<float>(n * MATRIX);
        return {{"flawed", launch(inertias, blocks(n, 4), dim3(32, 4), 0, motions, links, out, n)},
            {"five", launch(inertias_five, blocks(n, 20), 128, 0, motions, links, out, n)},
            {"staged", launch(inertias_staged, n / 32, 192, 0, (float4 *)motions, (float4 *)links, (float4 *)out)},
            {"elements", launch(inertias_elements, n / 8, 8 * MATRIX, 0, motions, links, out)}};
    });

// --- inverses of the mass matrices of 16 joints ---

constexpr int JOINTS = 16;

// What becomes of element (i, j) when joint k is taken in turn; `row` and `column` cross at it in the pivot's.
__device__ __forceinline__ float taken(int i, int j, int k, float here, float row, float column, float pivot) {
    float inverse = 1.f / pivot;
    if (i == k) return j == k ? inverse : row * inverse;
    return j == k ? -column * inverse : fmaf(-column * inverse, row, here);
}
__global__ void inverses(const float *masses, float *out) {
    __shared__ float a[JOINTS][JOINTS + 1];
    int j = threadIdx.x, i = threadIdx.y, at = (blockIdx.x * JOINTS + i) * JOINTS + j;
    a[i][j] = masses[at];
    __syncthreads();
    for (int k = 0; k < JOINTS; ++k) {
        float next = taken(i, j, k, a[i][j], a[k][j], a[i][k], a[k][k]);
        __syncthreads();
        a[i][j] = next;
        __syncthreads();
    }
    out[at] = a[i][j];
}
__global__ void inverses_two_copies(const float *__restrict__ masses, float *__restrict__ out) {
    __shared__ float a[2][JOINTS][JOINTS + 1];
    int j = threadIdx.x, i = threadIdx.y, at = (blockIdx.x * JOINTS + i) * JOINTS + j;
    float here = masses[at];
    for (int k = 0; k < JOINTS; ++k) {
        auto &now = a[k % 2];
        now[i][j] = here;
        __syncthreads();
        here = taken(i, j, k, here, now[k][j], now[i][k], now[k][k]);
    }
    out[at] = here;
}
// A column a lane and two matrices a warp; what is in the pivot's column comes by shuffles.
__global__ void inverses_lanes(const float *__restrict__ masses, float *__restrict__ out, int n) {
    int matrix = (blockIdx.x * blockDim.x + threadIdx.x) / JOINTS, j = threadIdx.x % JOINTS;
    if (matrix >= n) return;
    float a[JOINTS];
#pragma unroll
    for (int i = 0; i < JOINTS; ++i) a[i] = masses[(matrix * JOINTS + i) * JOINTS + j];
#pragma unroll
    for (int k = 0; k < JOINTS; ++k) {
        float row = a[k], pivot = __shfl_sync(~0u, row, k, JOINTS);
#pragma unroll
        for (int i = 0; i < JOINTS; ++i) {
            float column = __shfl_sync(~0u, a[i], k, JOINTS);
            a[i] = taken(i, j, k, a[i], row, column, pivot);
        }
    }
#pragma unroll
    for (int i = 0; i < JOINTS; ++i) out[(matrix * JOINTS + i) * JOINTS + j] = a[i];
}
// A warp a matrix, eight elements of one column a lane; warps do not wait for each other.
__global__ void __launch_bounds__(128) inverses_warp(const float *__restrict__ masses, float *__restrict__ out, int n) {
    __shared__ float all[4][JOINTS][JOINTS + 1];
    int matrix = blockIdx.x * 4 + threadIdx.x / 32, j = threadIdx.x % JOINTS, first = threadIdx.x % 32 / JOINTS;
    if (matrix >= n) return;
    auto &a = all[threadIdx.x / 32];
#pragma unroll
    for (int i = first; i < JOINTS; i += 2) a[i][j] = masses[(matrix * JOINTS + i) * JOINTS + j];
    __syncwarp();
    for (int k = 0; k < JOINTS; ++k) {
        float row = a[k][j], pivot = a[k][k], next[JOINTS / 2];
#pragma unroll
        for (int e = 0; e < JOINTS / 2; ++e) next[e] = taken(first + 2 * e, j, k, a[first + 2 * e][j], row, a[first + 2 * e][k], pivot);
        __syncwarp();
#pragma unroll
        for (int e = 0; e < JOINTS / 2; ++e) a[first + 2 * e][j] = next[e];
        __syncwarp();
    }
#pragma unroll
    for (int i = first; i < JOINTS; i += 2) out[(matrix * JOINTS + i) * JOINTS + j] = a[i][j];
}
__global__ void draw_masses(float *masses, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, i = at / JOINTS % JOINTS, j = at % JOINTS, matrix = at / (JOINTS * JOINTS);
    if (at >= n * JOINTS * JOINTS) return;
    float noise = hash((matrix * JOINTS + min(i, j)) * JOINTS + max(i, j)) * 4.6566129e-10f - 1.f;
    masses[at] = i == j ? 12.f + 4.f * noise : noise;
}

Study mass_inverses("mass_inverses_two_barriers_a_joint", "robotics", 1 << 15, "inverses of the mass matrices of 32768 robots of 16 joints",
    "a block of 256 threads a matrix waits twice for each of the 16 joints",
    {{"two_copies", "two copies in turns, one barrier a joint", {"barriers"}}, {"lanes", "a column a lane in registers, two matrices a warp", {"barriers", "shared_memory_bandwidth"}},
        {"warp", "a warp a matrix in shared memory, without barriers of the block", {"barriers"}}},
    [](Buffers &b, long n) -> Sides {
        long count = n * JOINTS * JOINTS;
        float *masses = b.allocate<float>(count), *out = b.output<float>(count);
        launch(draw_masses, blocks(count, 256), 256, 0, masses, n)();
        CHECK_LAUNCH();
        dim3 square(JOINTS, JOINTS);
        return {{"flawed", launch(inverses, n, square, 0, masses, out)}, {"two_copies", launch(inverses_two_copies, n, square, 0, masses, out)},
            {"lanes", launch(inverses_lanes, blocks(n, 8), 128, 0, masses, out, n)}, {"warp", launch(inverses_warp, blocks(n, 4), 128, 0, masses, out, n)}};
    });

// --- normals of a mesh as two numbers of 16 bits on an octahedron ---

__device__ __forceinline__ unsigned on_octahedron(float x, float y, float z) {
    float scale = __fdividef(1.f, fabsf(x) + fabsf(y) + fabsf(z));
    float u = x * scale, v = y * scale, over = 1.f - fabsf(u), across = 1.f - fabsf(v);
    if (z < 0.f) {
        float turned = copysignf(across, u);
        v = copysignf(over, v), u = turned;
    }
    int low = __float2int_rn(u * 32767.f), high = __float2int_rn(v * 32767.f);
    return __byte_perm(low, high, 0x5410);
}
__global__ void __launch_bounds__(256) octahedral(const float4 *__restrict__ xs, const float4 *__restrict__ ys, const float4 *__restrict__ zs, uint4 *__restrict__ out, int fours) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= fours) return;
    float4 x = __ldcs(xs + i), y = __ldcs(ys + i), z = __ldcs(zs + i);
    __stcs(out + i, uint4{on_octahedron(x.x, y.x, z.x), on_octahedron(x.y, y.y, z.y), on_octahedron(x.z, y.z, z.z), on_octahedron(x.w, y.w, z.w)});
}

Study sound_octahedral("sound_octahedral_normals", "rendering", 8 << 20, "8388608 normals of a mesh packed into 32 bits each", "", {},
    [](Buffers &b, long n) -> Sides {
        float *x = b.random<float>(n), *y = b.random<float>(n), *z = b.random<float>(n);
        unsigned *out = b.output<unsigned>(n);
        b.tolerance = 0.0;
        return {{"sound", launch(octahedral, blocks(n / 4, 256), 256, 0, (float4 *)x, (float4 *)y, (float4 *)z, (uint4 *)out, n / 4)}};
    });

}  // namespace
