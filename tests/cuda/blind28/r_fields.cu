// Waves, atoms, stars, options, plasmas, patients, magnets, digests, frames, echoes, links, neutrons, receivers, maps and reads.
#include <algorithm>
#include <cmath>

#include "../pairs/pair.cuh"

namespace {

// --- seismic waves, eighth order in space ---

constexpr int REACH = 4, WAVE_X = 512, WAVE_Y = 512, WAVE_PITCH = WAVE_X + 64, WAVE_PLANE = WAVE_PITCH * (WAVE_Y + 2 * REACH);
__device__ constexpr float STEP[REACH + 1] = {-2.847222f, 1.6f, -0.2f, 0.02539683f, -0.001785714f};

struct Wavefield {
    const float *now;              // with a border of REACH; rows begin 32 values before their first point
    const float *before, *speed;   // without one
    float *next;
    int nz;
};
__device__ __forceinline__ size_t bordered(int x, int y, int z) { return static_cast<size_t>(z + REACH) * WAVE_PLANE + (y + REACH) * WAVE_PITCH + x + 32; }
__device__ __forceinline__ size_t inner(int x, int y, int z) { return (static_cast<size_t>(z) * WAVE_Y + y) * WAVE_X + x; }

__global__ void __launch_bounds__(256) wave_step(Wavefield w) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    const float *p = w.now + bordered(x, y, z);
    float laplacian = 3.0f * STEP[0] * p[0];
#pragma unroll
    for (int r = 1; r <= REACH; r++)
        laplacian += STEP[r] * (p[r] + p[-r] + p[r * WAVE_PITCH] + p[-r * WAVE_PITCH] + p[r * WAVE_PLANE] + p[-r * WAVE_PLANE]);
    const size_t i = inner(x, y, z);
    w.next[i] = 2.0f * p[0] - w.before[i] + w.speed[i] * laplacian;
}

// Walks down z with the column in registers and the plane in shared memory.
constexpr int TILE_X = 32, TILE_Y = 16;
__global__ void __launch_bounds__(TILE_X *TILE_Y) wave_step_tile(Wavefield w, int depth) {
    __shared__ float plane[TILE_Y + 2 * REACH][TILE_X + 2 * REACH];
    const int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * TILE_X + tx, y = blockIdx.y * TILE_Y + ty, first = blockIdx.z * depth;
    const float *p = w.now + bordered(x, y, first);
    size_t i = inner(x, y, first);
    float column[2 * REACH + 1];
#pragma unroll
    for (int k = 1; k <= 2 * REACH; k++) column[k] = p[(k - 1 - REACH) * WAVE_PLANE];
    for (int z = 0; z < depth; z++, p += WAVE_PLANE, i += WAVE_X * WAVE_Y) {
#pragma unroll
        for (int k = 0; k < 2 * REACH; k++) column[k] = column[k + 1];
        column[2 * REACH] = p[REACH * WAVE_PLANE];
        const float before = w.before[i], speed = w.speed[i];
        __syncthreads();
        plane[ty + REACH][tx + REACH] = column[REACH];
        if (ty < REACH) plane[ty][tx + REACH] = p[-REACH * WAVE_PITCH];
        else if (ty < 2 * REACH) plane[ty + TILE_Y][tx + REACH] = p[(TILE_Y - REACH) * WAVE_PITCH];
        if (tx < REACH) plane[ty + REACH][tx] = p[-REACH];
        else if (tx < 2 * REACH) plane[ty + REACH][tx + TILE_X] = p[TILE_X - REACH];
        __syncthreads();
        float laplacian = 3.0f * STEP[0] * column[REACH];
#pragma unroll
        for (int r = 1; r <= REACH; r++)
            laplacian += STEP[r] * (plane[ty + REACH][tx + REACH + r] + plane[ty + REACH][tx + REACH - r] + plane[ty + REACH + r][tx + REACH] + plane[ty + REACH - r][tx + REACH] + column[REACH + r] + column[REACH - r]);
        w.next[i] = 2.0f * column[REACH] - before + speed * laplacian;
    }
}

// Walks down z with the column in registers; the plane's neighbours come through L1.
__global__ void __launch_bounds__(256) wave_step_column(Wavefield w, int depth) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, first = blockIdx.z * depth;
    const float *p = w.now + bordered(x, y, first);
    size_t i = inner(x, y, first);
    float column[2 * REACH + 1];
#pragma unroll
    for (int k = 1; k <= 2 * REACH; k++) column[k] = p[(k - 1 - REACH) * WAVE_PLANE];
    for (int z = 0; z < depth; z++, p += WAVE_PLANE, i += WAVE_X * WAVE_Y) {
#pragma unroll
        for (int k = 0; k < 2 * REACH; k++) column[k] = column[k + 1];
        column[2 * REACH] = p[REACH * WAVE_PLANE];
        float laplacian = 3.0f * STEP[0] * column[REACH];
#pragma unroll
        for (int r = 1; r <= REACH; r++)
            laplacian += STEP[r] * (p[r] + p[-r] + p[r * WAVE_PITCH] + p[-r * WAVE_PITCH] + column[REACH + r] + column[REACH - r]);
        w.next[i] = 2.0f * column[REACH] - w.before[i] + w.speed[i] * laplacian;
    }
}

Study seismic_wave("seismic_wave_25_points_each_loaded", "geophysics", 160, "a time step of the acoustic wave equation, eighth order in space, on 512 x 512 x 160 points",
    "every point loads all its 25 neighbours; those above and below come from L2 nine times",
    {{"tile", "blocks walk down z, column in registers, plane in shared memory", {"redundant_loads"}}, {"column", "blocks walk down z, column in registers, the plane's neighbours through L1", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int nz = static_cast<int>(n), depth = nz / 2;
        const size_t points = static_cast<size_t>(WAVE_X) * WAVE_Y * nz;
        Wavefield w = {b.random<float>(static_cast<size_t>(WAVE_PLANE) * (nz + 2 * REACH)), b.random<float>(points), b.random<float>(points, 0.02, 0.12), b.output<float>(points), nz};
        return {{"flawed", launch(wave_step, dim3(WAVE_X / 32, WAVE_Y / 8, nz), dim3(32, 8), 0, w)},
            {"tile", launch(wave_step_tile, dim3(WAVE_X / TILE_X, WAVE_Y / TILE_Y, 2), dim3(TILE_X, TILE_Y), 0, w, depth)},
            {"column", launch(wave_step_column, dim3(WAVE_X / 32, WAVE_Y / 8, 2), dim3(32, 8), 0, w, depth)}};
    });

// --- forces between argon atoms ---

constexpr int MOST = 80;  // neighbours in a list

struct LennardJones {
    float cutoff2, epsilon24, sigma6;
};
__device__ __forceinline__ void add_pair(float4 &force, float4 me, float4 other, const LennardJones &lj) {
    const float dx = me.x - other.x, dy = me.y - other.y, dz = me.z - other.z;
    const float r2 = dx * dx + dy * dy + dz * dz;
    const float inverse2 = __fdividef(1.0f, r2), s6 = lj.sigma6 * inverse2 * inverse2 * inverse2;
    const bool near = r2 < lj.cutoff2;
    const float pull = near ? lj.epsilon24 * inverse2 * s6 * (2.0f * s6 - 1.0f) : 0.0f;
    force.x += pull * dx;
    force.y += pull * dy;
    force.z += pull * dz;
    force.w += near ? lj.epsilon24 / 6.0f * s6 * (s6 - 1.0f) : 0.0f;
}

__global__ void lj_forces(const float4 *__restrict__ atoms, const int *__restrict__ counts, const int *__restrict__ neighbours, float4 *__restrict__ forces, LennardJones lj, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float4 me = atoms[i];
    const int *mine = neighbours + static_cast<size_t>(i) * MOST;
    float4 force = make_float4(0, 0, 0, 0);
    const int count = counts[i];
    for (int k = 0; k < count; k++) add_pair(force, me, atoms[mine[k]], lj);
    forces[i] = force;
}
// The lists lie side by side: all first neighbours, then all second ones.
__global__ void lj_forces_by_rank(const float4 *__restrict__ atoms, const int *__restrict__ counts, const int *__restrict__ neighbours, float4 *__restrict__ forces, LennardJones lj, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float4 me = atoms[i];
    float4 force = make_float4(0, 0, 0, 0);
    const int count = counts[i];
    const int *at = neighbours + i;
    for (int k = 0; k < count; k++, at += n) add_pair(force, me, atoms[*at], lj);
    forces[i] = force;
}
// Eight lanes an atom.
__global__ void lj_forces_eight(const float4 *__restrict__ atoms, const int *__restrict__ counts, const int *__restrict__ neighbours, float4 *__restrict__ forces, LennardJones lj, int n) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) / 8, part = threadIdx.x % 8;
    if (i >= n) return;
    const float4 me = atoms[i];
    float4 force = make_float4(0, 0, 0, 0);
    const int count = counts[i];
    for (int k = part; k < count; k += 8) add_pair(force, me, atoms[neighbours[static_cast<size_t>(i) * MOST + k]], lj);
#pragma unroll
    for (int offset = 4; offset; offset /= 2) {
        force.x += __shfl_xor_sync(~0u, force.x, offset);
        force.y += __shfl_xor_sync(~0u, force.y, offset);
        force.z += __shfl_xor_sync(~0u, force.z, offset);
        force.w += __shfl_xor_sync(~0u, force.w, offset);
    }
    if (part == 0) forces[i] = force;
}

Study argon("argon_neighbour_lists_atom_by_atom", "molecular dynamics", 1 << 18, "Lennard-Jones forces on 262144 atoms from lists of some 60 neighbours",
    "each atom's list is one run in memory and each thread walks its own, so that lanes read 320 bytes apart",
    {{"by_rank", "lists interleaved: the k-th neighbours of all atoms beside each other", {"uncoalesced_access"}}, {"eight", "eight lanes an atom, sums by shuffles", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const int nx = 64, ny = 64, nz = static_cast<int>(n / (nx * ny)), count = static_cast<int>(n);
        const auto jitter = [](unsigned seed) { return 0.24f * (hash(seed) / 4294967296.0f - 0.5f); };
        std::vector<float4> atoms(n);
        for (int i = 0; i < count; i++) atoms[i] = make_float4(i % nx + jitter(3 * i), i / nx % ny + jitter(3 * i + 1), i / (nx * ny) + jitter(3 * i + 2), 0);
        std::vector<int> offsets;  // of places whose atoms may be near, by dx, dy, dz
        for (int dz = -2; dz <= 2; dz++)
            for (int dy = -2; dy <= 2; dy++)
                for (int dx = -2; dx <= 2; dx++)
                    if ((dx || dy || dz) && dx * dx + dy * dy + dz * dz < 8) offsets.insert(offsets.end(), {dx, dy, dz});
        std::vector<int> counts(n), lists(n * MOST), ranked(n * MOST);
        for (int i = 0; i < count; i++) {
            const int x = i % nx, y = i / nx % ny, z = i / (nx * ny);
            int found = 0;
            for (size_t o = 0; o < offsets.size(); o += 3) {
                const int ox = x + offsets[o], oy = y + offsets[o + 1], oz = z + offsets[o + 2];
                if (ox < 0 || ox >= nx || oy < 0 || oy >= ny || oz < 0 || oz >= nz) continue;
                const int j = (oz * ny + oy) * nx + ox;
                const float dx = atoms[i].x - atoms[j].x, dy = atoms[i].y - atoms[j].y, dz = atoms[i].z - atoms[j].z;
                if (dx * dx + dy * dy + dz * dz < 2.4f * 2.4f && found < MOST) lists[static_cast<size_t>(i) * MOST + found++] = j;
            }
            counts[i] = found;
            for (int k = 0; k < found; k++) ranked[static_cast<size_t>(k) * n + i] = lists[static_cast<size_t>(i) * MOST + k];
        }
        const float4 *placed = b.copy(atoms);
        const int *lengths = b.copy(counts);
        float4 *forces = reinterpret_cast<float4 *>(b.output<float>(4 * n));
        const LennardJones lj = {2.2f * 2.2f, 24.0f, 0.3f};
        b.tolerance = 1e-3;
        const int *listed = b.copy(lists);
        return {{"flawed", launch(lj_forces, blocks(n, 128), 128, 0, placed, lengths, listed, forces, lj, count)},
            {"by_rank", launch(lj_forces_by_rank, blocks(n, 128), 128, 0, placed, lengths, b.copy(ranked), forces, lj, count)},
            {"eight", launch(lj_forces_eight, blocks(8 * n, 128), 128, 0, placed, lengths, listed, forces, lj, count)}};
    });

// --- gravity among stars ---

enum class Law { POWER, ROOT, FAST_POWER };
constexpr int SLICES = 8, CROWD = 128;

template <Law LAW>
__device__ __forceinline__ float falloff(float r2) {
    if (LAW == Law::POWER) return 1.0f / powf(r2, 1.5f);
    if (LAW == Law::FAST_POWER) return __powf(r2, -1.5f);
    const float inverse = rsqrtf(r2);
    return inverse * inverse * inverse;
}
// Pulls of a slice of all stars on those of a block; the integrator adds the slices.
template <Law LAW>
__global__ void __launch_bounds__(CROWD) gravity(const float4 *__restrict__ stars, float3 *__restrict__ pulls, int n, float softening2) {
    __shared__ float4 crowd[CROWD];
    const int i = blockIdx.x * CROWD + threadIdx.x, slice = n / SLICES;
    const float4 me = stars[i];
    float3 pull = make_float3(0, 0, 0);
    for (int first = blockIdx.y * slice; first < (blockIdx.y + 1) * slice; first += CROWD) {
        crowd[threadIdx.x] = stars[first + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < CROWD; k++) {
            const float4 star = crowd[k];
            const float dx = star.x - me.x, dy = star.y - me.y, dz = star.z - me.z;
            const float scale = star.w * falloff<LAW>(dx * dx + dy * dy + dz * dz + softening2);
            pull.x += scale * dx;
            pull.y += scale * dy;
            pull.z += scale * dz;
        }
        __syncthreads();
    }
    pulls[blockIdx.y * n + i] = pull;
}

Study stars("stars_gravity_by_powf", "astronomy", 1 << 14, "pulls of 16384 stars on each other",
    "one over the 1.5th power of the squared distance, by powf and a division",
    {{"root", "a reciprocal square root, cubed", {"expensive_math"}}, {"fast_power", "__powf with the exponent -1.5", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float4> places(n);
        for (long i = 0; i < n; i++) {
            const auto chance = [i](int k) { return hash(4 * i + k) / 4294967296.0f; };
            const float radius = 10.0f * std::sqrt(chance(0)), angle = 6.2831853f * chance(1);
            places[i] = make_float4(radius * std::cos(angle), radius * std::sin(angle), chance(2) - 0.5f, 0.1f + 2.0f * chance(3) * chance(3));
        }
        const float4 *all = b.copy(places);
        float3 *pulls = reinterpret_cast<float3 *>(b.output<float>(3 * SLICES * n));
        const dim3 grid(n / CROWD, SLICES);
        b.tolerance = 1e-3;
        return {{"flawed", launch(gravity<Law::POWER>, grid, CROWD, 0, all, pulls, n, 0.01f)}, {"root", launch(gravity<Law::ROOT>, grid, CROWD, 0, all, pulls, n, 0.01f)},
            {"fast_power", launch(gravity<Law::FAST_POWER>, grid, CROWD, 0, all, pulls, n, 0.01f)}};
    });

// --- options on an average price ---

struct Market {
    float spot, strike, rate, volatility, years;
    int steps;
};
// Two draws from a normal distribution.
__device__ __forceinline__ float2 normals(unsigned path, int step) {
    const unsigned a = hash(path * 2654435761u + step), b = hash(a ^ 0x9e3779b9u);
    const float radius = sqrtf(-2.0f * logf((a + 1.0f) * 2.3283064e-10f)), turn = b * 4.656613e-10f;
    return make_float2(radius * cospif(turn), radius * sinpif(turn));
}
__global__ void __launch_bounds__(256) asian_call(Market m, float *payoffs, int paths) {
    const int path = blockIdx.x * 256 + threadIdx.x;
    if (path >= paths) return;
    const float dt = m.years / m.steps;
    float price = m.spot, sum = 0.0f;
    for (int step = 0; step < m.steps; step += 2) {
        const float2 z = normals(path, step);
        price *= exp((m.rate - 0.5 * m.volatility * m.volatility) * dt + m.volatility * sqrt(dt) * z.x);
        sum += price;
        price *= exp((m.rate - 0.5 * m.volatility * m.volatility) * dt + m.volatility * sqrt(dt) * z.y);
        sum += price;
    }
    payoffs[path] = exp(-m.rate * m.years) * fmax(sum / m.steps - m.strike, 0.0f);
}
__global__ void __launch_bounds__(256) asian_call_single(Market m, float *payoffs, int paths) {
    const int path = blockIdx.x * 256 + threadIdx.x;
    if (path >= paths) return;
    const float dt = m.years / m.steps;
    float price = m.spot, sum = 0.0f;
    for (int step = 0; step < m.steps; step += 2) {
        const float2 z = normals(path, step);
        price *= expf((m.rate - 0.5f * m.volatility * m.volatility) * dt + m.volatility * sqrtf(dt) * z.x);
        sum += price;
        price *= expf((m.rate - 0.5f * m.volatility * m.volatility) * dt + m.volatility * sqrtf(dt) * z.y);
        sum += price;
    }
    payoffs[path] = expf(-m.rate * m.years) * fmaxf(sum / m.steps - m.strike, 0.0f);
}
// Growth of a step in single precision; price and sum stay in double.
__global__ void __launch_bounds__(256) asian_call_mixed(Market m, float *payoffs, int paths) {
    const int path = blockIdx.x * 256 + threadIdx.x;
    if (path >= paths) return;
    const float dt = m.years / m.steps, drift = (m.rate - 0.5f * m.volatility * m.volatility) * dt, spread = m.volatility * sqrtf(dt);
    double price = m.spot, sum = 0.0;
    for (int step = 0; step < m.steps; step += 2) {
        const float2 z = normals(path, step);
        price *= expf(drift + spread * z.x);
        sum += price;
        price *= expf(drift + spread * z.y);
        sum += price;
    }
    payoffs[path] = expf(-m.rate * m.years) * fmaxf(static_cast<float>(sum) / m.steps - m.strike, 0.0f);
}

Study asian("asian_call_paths_promoted_to_double", "finance", 1 << 20, "payoffs of a call on the average of 64 prices along 1048576 paths",
    "constants without f and exp of the wrong type: each step's growth is computed in double precision",
    {{"single", "all in single precision", {"double_precision"}}, {"mixed", "growth in single precision, price and sum in double", {"double_precision"}}},
    [](Buffers &b, long n) -> Sides {
        const Market m = {100.0f, 102.0f, 0.03f, 0.25f, 1.0f, 64};
        float *payoffs = b.output<float>(n);
        return {{"flawed", launch(asian_call, blocks(n, 256), 256, 0, m, payoffs, n)}, {"single", launch(asian_call_single, blocks(n, 256), 256, 0, m, payoffs, n)},
            {"mixed", launch(asian_call_mixed, blocks(n, 256), 256, 0, m, payoffs, n)}};
    });

// --- charges of a plasma ---

constexpr int CELLS = 512, CELL_TILE = 16, TILES = CELLS / CELL_TILE, BORDERED = CELL_TILE + 3;

struct Particle {
    float x, y, vx, vy;  // in cells, and cells a step
};
struct Plasma {
    const Particle *before;
    Particle *after;
    float *charge;         // at the nodes
    float4 *cell_charges;  // a cell's share at its four nodes
    const int *starts;     // of each tile's particles
    float dt, weight;
    int count;
};
__device__ __forceinline__ Particle moved(const Plasma &p, int i) {
    float4 v = reinterpret_cast<const float4 *>(p.before)[i];
    v.x += v.z * p.dt;
    v.y += v.w * p.dt;
    reinterpret_cast<float4 *>(p.after)[i] = v;
    return {v.x, v.y, v.z, v.w};
}
__device__ __forceinline__ int node(int x, int y) { return (y & (CELLS - 1)) * CELLS + (x & (CELLS - 1)); }

__global__ void __launch_bounds__(256) push_and_deposit(Plasma p) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= p.count) return;
    const Particle q = moved(p, i);
    const int x = __float2int_rd(q.x), y = __float2int_rd(q.y);
    const float fx = q.x - x, fy = q.y - y;
    atomicAdd(&p.charge[node(x, y)], p.weight * (1.0f - fx) * (1.0f - fy));
    atomicAdd(&p.charge[node(x + 1, y)], p.weight * fx * (1.0f - fy));
    atomicAdd(&p.charge[node(x, y + 1)], p.weight * (1.0f - fx) * fy);
    atomicAdd(&p.charge[node(x + 1, y + 1)], p.weight * fx * fy);
}
// A block a tile, whose nodes are kept in shared memory.
__global__ void __launch_bounds__(256) push_and_deposit_tile(Plasma p) {
    __shared__ float nodes[BORDERED * BORDERED];
    for (int k = threadIdx.x; k < BORDERED * BORDERED; k += 256) nodes[k] = 0.0f;
    __syncthreads();
    const int left = blockIdx.x % TILES * CELL_TILE - 1, top = blockIdx.x / TILES * CELL_TILE - 1, end = p.starts[blockIdx.x + 1];
    for (int i = p.starts[blockIdx.x] + threadIdx.x; i < end; i += 256) {
        const Particle q = moved(p, i);
        const int x = __float2int_rd(q.x), y = __float2int_rd(q.y);
        const float fx = q.x - x, fy = q.y - y;
        float *at = nodes + (y - top) * BORDERED + x - left;
        atomicAdd(at, p.weight * (1.0f - fx) * (1.0f - fy));
        atomicAdd(at + 1, p.weight * fx * (1.0f - fy));
        atomicAdd(at + BORDERED, p.weight * (1.0f - fx) * fy);
        atomicAdd(at + BORDERED + 1, p.weight * fx * fy);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < BORDERED * BORDERED; k += 256)
        if (nodes[k] != 0.0f) atomicAdd(&p.charge[node(left + k % BORDERED, top + k / BORDERED)], nodes[k]);
}
// Four charges a cell, added at once; the field solver adds up those that meet at a node.
__global__ void __launch_bounds__(256) push_and_deposit_cell(Plasma p) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= p.count) return;
    const Particle q = moved(p, i);
    const int x = __float2int_rd(q.x), y = __float2int_rd(q.y);
    const float fx = q.x - x, fy = q.y - y;
    atomicAdd(&p.cell_charges[node(x, y)], make_float4(p.weight * (1.0f - fx) * (1.0f - fy), p.weight * fx * (1.0f - fy), p.weight * (1.0f - fx) * fy, p.weight * fx * fy));
}
__global__ void unload_cells(Plasma p) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    p.charge[node(x, y)] = p.cell_charges[node(x, y)].x + p.cell_charges[node(x - 1, y)].y + p.cell_charges[node(x, y - 1)].z + p.cell_charges[node(x - 1, y - 1)].w;
}

Study plasma("plasma_charge_four_atomics_a_particle", "plasma physics", 1 << 22, "some 4194304 particles moved and their charges given to the nodes of 512 x 512 cells",
    "each particle adds to four nodes in global memory, one value each, though a tile's particles lie together",
    {{"tile", "a block a tile, its nodes in shared memory", {"global_atomics"}}, {"cell", "one atomic of 16 bytes a particle to its cell's four charges", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<Particle> particles;
        std::vector<int> starts;
        for (unsigned tile = 0; tile < TILES * TILES; tile++) {
            starts.push_back(static_cast<int>(particles.size()));
            const unsigned each = n / (TILES * TILES), count = each * 7 / 8 + hash(tile) % (each / 4 + 1);
            for (unsigned k = 0; k < count; k++) {
                const unsigned seed = (tile * 8192 + k) * 8;
                const auto chance = [seed](int which) { return hash(seed + which) / 4294967808.0f; };
                particles.push_back({tile % TILES * CELL_TILE + 15.999f * chance(0), tile / TILES * CELL_TILE + 15.999f * chance(1), 0.9f * (chance(2) + chance(3) - 1.0f), 0.9f * (chance(4) + chance(5) - 1.0f)});
            }
        }
        starts.push_back(static_cast<int>(particles.size()));
        const int count = static_cast<int>(particles.size());
        float *charge = b.output<float>(CELLS * CELLS, true), *after = b.output<float>(4 * static_cast<size_t>(count)), *cells = b.allocate<float>(4 * CELLS * CELLS);
        const Plasma p = {b.copy(particles), reinterpret_cast<Particle *>(after), charge, reinterpret_cast<float4 *>(cells), b.copy(starts), 0.5f, 1.0f / 16.0f, count};
        // Starts from no charge, as the field solver leaves it.
        b.outputs.push_back({cells, Type::F32, 0, 4 * CELLS * CELLS * sizeof(float), true});
        return {{"flawed", launch(push_and_deposit, blocks(count, 256), 256, 0, p)}, {"tile", launch(push_and_deposit_tile, TILES * TILES, 256, 0, p)},
            {"cell", launch(push_and_deposit_cell, blocks(count, 256), 256, 0, p), {}, 1, launch(unload_cells, dim3(CELLS / 256, CELLS), 256, 0, p)}};
    });

// --- a slice of a patient from its filtered projections ---

struct Scan {
    const float *projections;  // angle, detector; the slice's circle falls within the detectors
    float *slice;
    int size, detectors, angles;
};
enum class Trigonometry { LIBRARY, TABLE, FAST };

// 16 x 16 pixels a block.
template <Trigonometry WHICH>
__global__ void __launch_bounds__(256) back_project(Scan scan, const float2 *__restrict__ directions) {
    const int ix = blockIdx.x * 16 + threadIdx.x, iy = blockIdx.y * 16 + threadIdx.y;
    const float x = ix - 0.5f * (scan.size - 1), y = iy - 0.5f * (scan.size - 1), middle = 0.5f * (scan.detectors - 1);
    const float per_angle = 3.14159265f / scan.angles;
    float sum = 0.0f;
    for (int k = 0; k < scan.angles; k++) {
        float sine, cosine;
        if (WHICH == Trigonometry::TABLE) cosine = directions[k].x, sine = directions[k].y;
        else if (WHICH == Trigonometry::FAST) __sincosf(k * per_angle, &sine, &cosine);
        else sine = sinf(k * per_angle), cosine = cosf(k * per_angle);
        const float place = x * cosine + y * sine + middle;
        const int left = __float2int_rd(place);
        const float *at = scan.projections + k * scan.detectors + left;
        const float a = __ldg(at), b = __ldg(at + 1);
        sum += a + (place - left) * (b - a);
    }
    scan.slice[iy * scan.size + ix] = sum * per_angle;
}

Study tomography("tomography_slice_sine_and_cosine_a_pixel", "medical imaging", 512, "a slice of 512 x 512 pixels from 720 filtered projections onto 768 detectors",
    "every pixel computes sine and cosine of every angle anew, by the library's precise functions",
    {{"table", "directions of all angles in a table", {"expensive_math"}}, {"fast", "__sincosf", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        const int size = static_cast<int>(n), angles = 720, detectors = size * 3 / 2;
        std::vector<float2> directions(angles);
        for (int k = 0; k < angles; k++) {
            const float angle = k * (3.14159265f / angles);
            directions[k] = make_float2(std::cos(angle), std::sin(angle));
        }
        const Scan scan = {b.random<float>(static_cast<size_t>(angles) * detectors, -0.2, 1.0), b.output<float>(n * n), size, detectors, angles};
        const float2 *table = b.copy(directions);
        const dim3 grid(size / 16, size / 16), block(16, 16);
        b.tolerance = 1e-3;
        return {{"flawed", launch(back_project<Trigonometry::LIBRARY>, grid, block, 0, scan, table)}, {"table", launch(back_project<Trigonometry::TABLE>, grid, block, 0, scan, table)},
            {"fast", launch(back_project<Trigonometry::FAST>, grid, block, 0, scan, table)}};
    });

// --- a magnet of Ising spins, every second one at a time ---

struct Magnet {
    signed char *spins;
    int nx, ny, nz;
    float beta;
    unsigned seed;
    int colour;
};
__device__ __forceinline__ void flip(const Magnet &m, int i, int sum) {
    const float chance = __fdividef(1.0f, 1.0f + __expf(-2.0f * m.beta * sum));  // of pointing up: heat bath
    m.spins[i] = hash(i ^ m.seed) * 2.3283064e-10f < chance ? 1 : -1;
}
__global__ void ising_half_step(Magnet m) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= m.nx / 2 * m.ny * m.nz) return;
    const int y = t / (m.nx / 2) % m.ny, z = t / (m.nx / 2 * m.ny);
    const int x = 2 * (t % (m.nx / 2)) + (y + z + m.colour) % 2;
    const signed char *s = m.spins;
    const int sum = s[(z * m.ny + y) * m.nx + (x + 1) % m.nx] + s[(z * m.ny + y) * m.nx + (x - 1 + m.nx) % m.nx] + s[(z * m.ny + (y + 1) % m.ny) * m.nx + x]
        + s[(z * m.ny + (y - 1 + m.ny) % m.ny) * m.nx + x] + s[((z + 1) % m.nz * m.ny + y) * m.nx + x] + s[((z - 1 + m.nz) % m.nz * m.ny + y) * m.nx + x];
    flip(m, (z * m.ny + y) * m.nx + x, sum);
}
__device__ __forceinline__ int neighbours(const signed char *s, int i, int left, int right, int up, int down, int above, int below) {
    return s[i + left] + s[i + right] + s[i + up] + s[i + down] + s[i + above] + s[i + below];
}
// Rows and planes by the grid; beyond the border by a comparison.
__global__ void ising_half_step_grid(Magnet m) {
    const int half = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (half >= m.nx / 2 || y >= m.ny) return;
    const int x = 2 * half + ((y + z + m.colour) & 1), plane = m.nx * m.ny, i = z * plane + y * m.nx + x;
    flip(m, i, neighbours(m.spins, i, x ? -1 : m.nx - 1, x == m.nx - 1 ? 1 - m.nx : 1, y ? -m.nx : (m.ny - 1) * m.nx, y == m.ny - 1 ? (1 - m.ny) * m.nx : m.nx, z ? -plane : (m.nz - 1) * plane, z == m.nz - 1 ? (1 - m.nz) * plane : plane));
}
// Sizes that are powers of two: shifts and masks.
__global__ void ising_half_step_masks(Magnet m, int log_x, int log_y, int log_z) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = t >> (log_x - 1) & (m.ny - 1), z = t >> (log_x - 1 + log_y);
    const int x = 2 * (t & (m.nx / 2 - 1)) + ((y + z + m.colour) & 1);
    const auto at = [=](int px, int py, int pz) { return ((pz & (m.nz - 1)) << (log_x + log_y)) + ((py & (m.ny - 1)) << log_x) + (px & (m.nx - 1)); };
    const signed char *s = m.spins;
    if (t >> (log_x - 1 + log_y + log_z)) return;
    flip(m, at(x, y, z), s[at(x + 1, y, z)] + s[at(x - 1, y, z)] + s[at(x, y + 1, z)] + s[at(x, y - 1, z)] + s[at(x, y, z + 1)] + s[at(x, y, z - 1)]);
}

Study magnet("ising_magnet_wrapped_by_remainders", "statistical physics", 256, "half a sweep of an Ising magnet of 512 x 512 x 256 spins with periodic borders",
    "coordinates and all six neighbours by division and remainder of sizes known at run time",
    {{"grid", "coordinates from the grid, borders by comparison", {"integer_arithmetic"}}, {"masks", "shifts and masks, sizes being powers of two", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const int side = 512, depth = static_cast<int>(n);
        const size_t sites = static_cast<size_t>(side) * side * depth;
        std::vector<signed char> spins(sites);
        for (size_t i = 0; i < sites; i++) spins[i] = hash(static_cast<unsigned>(i) + 7) & 3 ? 1 : -1;  // three of four up
        const Magnet m = {b.changed(b.copy(spins), sites), side, side, depth, 0.2217f, 0x51ed27u, 0};
        int log_z = 0;
        while (2 << log_z <= depth) log_z++;
        return {{"flawed", launch(ising_half_step, blocks(sites / 2, 256), 256, 0, m)}, {"grid", launch(ising_half_step_grid, dim3(1, side, depth), dim3(256, 1), 0, m)},
            {"masks", launch(ising_half_step_masks, blocks(sites / 2, 256), 256, 0, m, 9, 9, log_z)}};
    });

// --- digests of numbered messages, Keccak ---

using Lane64 = unsigned long long;
__constant__ Lane64 IOTA[24] = {0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
    0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a, 0x8000000080008081,
    0x8000000000008080, 0x0000000080000001, 0x8000000080008008};
__constant__ int NEXT_LANE[24] = {10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1};
__constant__ int TURN[24] = {1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44};
// The same by the lane that moves: where to, and turned by how much.
__constant__ int MOVES_TO[25] = {0, 10, 20, 5, 15, 16, 1, 11, 21, 6, 7, 17, 2, 12, 22, 23, 8, 18, 3, 13, 14, 24, 9, 19, 4};
__constant__ int TURNS_BY[25] = {0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14};

struct Message {
    Lane64 words[8];  // the first is the number
};
__device__ __forceinline__ Lane64 rotated(Lane64 x, int by) { return x << by | x >> (-by & 63); }
__device__ __forceinline__ void absorb(Lane64 (&state)[25], const Message &message, Lane64 number) {
#pragma unroll
    for (int k = 0; k < 25; k++) state[k] = k < 8 ? message.words[k] : 0;
    state[0] = number;
    state[8] = 6;
    state[16] = 0x8000000000000000;
}
__device__ __forceinline__ void theta(Lane64 (&state)[25]) {
    Lane64 parity[5];
#pragma unroll
    for (int x = 0; x < 5; x++) parity[x] = state[x] ^ state[x + 5] ^ state[x + 10] ^ state[x + 15] ^ state[x + 20];
#pragma unroll
    for (int x = 0; x < 5; x++) {
        const Lane64 change = parity[(x + 4) % 5] ^ rotated(parity[(x + 1) % 5], 1);
#pragma unroll
        for (int y = 0; y < 25; y += 5) state[x + y] ^= change;
    }
}
__device__ __forceinline__ void chi(Lane64 (&state)[25]) {
#pragma unroll
    for (int y = 0; y < 25; y += 5) {
        Lane64 row[5];
#pragma unroll
        for (int x = 0; x < 5; x++) row[x] = state[y + x];
#pragma unroll
        for (int x = 0; x < 5; x++) state[y + x] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
    }
}
__global__ void __launch_bounds__(128) keccak(Message message, unsigned *digests) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Lane64 state[25];
    absorb(state, message, i);
    for (int round = 0; round < 24; round++) {
        theta(state);
        Lane64 moving = state[1];
        for (int k = 0; k < 24; k++) {
            const Lane64 displaced = state[NEXT_LANE[k]];
            state[NEXT_LANE[k]] = rotated(moving, TURN[k]);
            moving = displaced;
        }
        chi(state);
        state[0] ^= IOTA[round];
    }
    digests[i] = static_cast<unsigned>(state[0]);
}
// The tables are known to the compiler, which keeps the state in registers.
__global__ void __launch_bounds__(128) keccak_unrolled(Message message, unsigned *digests) {
    constexpr int next_lane[24] = {10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1};
    constexpr int turn[24] = {1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44};
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Lane64 state[25];
    absorb(state, message, i);
#pragma unroll 1
    for (int round = 0; round < 24; round++) {
        theta(state);
        Lane64 moving = state[1];
#pragma unroll
        for (int k = 0; k < 24; k++) {
            const Lane64 displaced = state[next_lane[k]];
            state[next_lane[k]] = rotated(moving, turn[k]);
            moving = displaced;
        }
        chi(state);
        state[0] ^= IOTA[round];
    }
    digests[i] = static_cast<unsigned>(state[0]);
}
// The state in registers; lanes change places in shared memory.
__global__ void __launch_bounds__(128) keccak_shared(Message message, unsigned *digests) {
    __shared__ Lane64 places[25][128];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Lane64 state[25];
    absorb(state, message, i);
#pragma unroll 1
    for (int round = 0; round < 24; round++) {
        theta(state);
#pragma unroll
        for (int k = 0; k < 25; k++) places[MOVES_TO[k]][threadIdx.x] = rotated(state[k], TURNS_BY[k]);
#pragma unroll
        for (int k = 0; k < 25; k++) state[k] = places[k][threadIdx.x];
        chi(state);
        state[0] ^= IOTA[round];
    }
    digests[i] = static_cast<unsigned>(state[0]);
}

Study sponge("keccak_state_moved_by_tables", "ciphers and hashing", 3 << 17, "SHA-3 digests of 393216 messages of 64 bytes",
    "lanes change places by a table in constant memory, so that the state is an array in local memory",
    {{"unrolled", "tables known when compiling, all lanes in registers", {"local_memory"}}, {"shared", "lanes in registers, which change places in shared memory", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        Message message;
        for (int k = 0; k < 8; k++) message.words[k] = static_cast<Lane64>(hash(k)) << 32 | hash(k + 50);
        unsigned *found = b.output<unsigned>(n);
        return {{"flawed", launch(keccak, n / 128, 128, 0, message, found)}, {"unrolled", launch(keccak_unrolled, n / 128, 128, 0, message, found)}, {"shared", launch(keccak_shared, n / 128, 128, 0, message, found)}};
    });

// --- frames of a video, transformed in squares of eight ---

constexpr int SQUARES = 32;  // of a block: side by side, eight threads each

__device__ __forceinline__ void dct8(float (&v)[8]) {
    const float a0 = v[0] + v[7], a1 = v[1] + v[6], a2 = v[2] + v[5], a3 = v[3] + v[4];
    const float d0 = v[0] - v[7], d1 = v[1] - v[6], d2 = v[2] - v[5], d3 = v[3] - v[4];
    const float b0 = a0 + a3, b1 = a1 + a2, b2 = a1 - a2, b3 = a0 - a3;
    v[0] = 0.35355339f * (b0 + b1);
    v[4] = 0.35355339f * (b0 - b1);
    v[2] = 0.46193977f * b3 + 0.19134172f * b2;
    v[6] = 0.19134172f * b3 - 0.46193977f * b2;
    v[1] = 0.49039264f * d0 + 0.41573481f * d1 + 0.27778512f * d2 + 0.09754516f * d3;
    v[3] = 0.41573481f * d0 - 0.09754516f * d1 - 0.49039264f * d2 - 0.27778512f * d3;
    v[5] = 0.27778512f * d0 - 0.49039264f * d1 + 0.09754516f * d2 + 0.41573481f * d3;
    v[7] = 0.09754516f * d0 - 0.27778512f * d1 + 0.41573481f * d2 - 0.49039264f * d3;
}
__device__ __forceinline__ void unpack(uint2 bytes, float (&v)[8]) {
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = static_cast<float>((i < 4 ? bytes.x : bytes.y) >> (i % 4 * 8) & 255) - 128.0f;
}
__device__ __forceinline__ unsigned level(float coefficient, float per_step) { return __float2int_rn(fminf(fmaxf(coefficient * per_step, -127.0f), 127.0f)) & 255; }

struct Video {
    const uint2 *pixels;  // eight a value
    uint2 *levels;
    int eights;             // in a row
    const float *per_step;  // by row of a square: one over the quantiser's step
};
__device__ __forceinline__ size_t eight_of(const Video &video, int square, int row) { return static_cast<size_t>(blockIdx.y * 8 + row) * video.eights + blockIdx.x * SQUARES + square; }
__device__ __forceinline__ uint2 levels_of(const float (&v)[8], float per_step) {
    uint2 levels = make_uint2(0, 0);
#pragma unroll
    for (int i = 0; i < 4; i++) levels.x |= level(v[i], per_step) << 8 * i, levels.y |= level(v[i + 4], per_step) << 8 * i;
    return levels;
}

// A row of a square a thread, then a column, through shared memory and back; the eight of a square are of one warp. PITCH: words from row to row.
template <int PITCH>
__global__ void __launch_bounds__(SQUARES * 8) transform(Video video) {
    __shared__ float squares[SQUARES][8][PITCH];
    const int square = threadIdx.x / 8, row = threadIdx.x % 8;
    const size_t at = eight_of(video, square, row);
    float v[8];
    unpack(video.pixels[at], v);
    dct8(v);
#pragma unroll
    for (int turn = 0; turn < 2; turn++) {
#pragma unroll
        for (int i = 0; i < 8; i++) squares[square][i][row] = v[i];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = squares[square][row][i];
        if (turn) break;
        dct8(v);
        __syncwarp();
    }
    video.levels[at] = levels_of(v, video.per_step[row]);
}
// Rows and columns of eight lanes' eight values change places.
__device__ __forceinline__ void transpose8(float (&v)[8], int lane) {
#pragma unroll
    for (int step = 1; step < 8; step *= 2)
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (!(i & step)) {
                const bool upper = lane & step;
                const float given = __shfl_xor_sync(~0u, upper ? v[i] : v[i + step], step);
                if (upper) v[i] = given;
                else v[i + step] = given;
            }
}
// The eight threads of a square exchange by shuffles.
__global__ void __launch_bounds__(SQUARES * 8) transform_lanes(Video video) {
    const int square = threadIdx.x / 8, row = threadIdx.x % 8;
    const size_t at = eight_of(video, square, row);
    float v[8];
    unpack(video.pixels[at], v);
    dct8(v);
    transpose8(v, row);
    dct8(v);
    transpose8(v, row);
    video.levels[at] = levels_of(v, video.per_step[row]);
}

Study video("video_transform_squares_of_64_words", "video", 20, "8 x 8 cosine transforms and quantised levels of twenty frames of 3840 x 2160 pixels",
    "squares lie 64 words apart in shared memory: the four of a warp write the same eight banks, and rows are read eight words apart",
    {{"pitch", "rows of nine words", {"shared_bank_conflicts"}}, {"lanes", "eight lanes of a square transpose by shuffles", {"shared_bank_conflicts"}}},
    [](Buffers &b, long n) -> Sides {
        const int width = 3840, height = 2160;
        const size_t bytes = static_cast<size_t>(width) * height * n;
        std::vector<float> per_step(8);
        for (int k = 0; k < 8; k++) per_step[k] = 1.0f / (16.0f + 6.0f * k);
        const Video v = {reinterpret_cast<const uint2 *>(b.random<unsigned char>(bytes, 0, 256)), reinterpret_cast<uint2 *>(b.output<signed char>(bytes)), width / 8, b.copy(per_step)};
        b.tolerance = 0.06;  // a level more or less where a coefficient lies between two
        const dim3 grid(width / 8 / SQUARES, height / 8 * n);
        return {{"flawed", launch(transform<8>, grid, SQUARES * 8, 0, v)}, {"pitch", launch(transform<9>, grid, SQUARES * 8, 0, v)}, {"lanes", launch(transform_lanes, grid, SQUARES * 8, 0, v)}};
    });

// --- echoes of a radar, added over its pulses ---

constexpr int PULSES = 128;

struct Echoes {
    const float2 *samples;  // beam, pulse, range
    const float *window;    // of the pulses
    float *power;           // beam, range
    int ranges;
};
__device__ __forceinline__ float power_at(const Echoes &e, int beam, int range, int pulse, int end) {
    const float2 *sample = e.samples + (static_cast<size_t>(beam) * PULSES + pulse) * e.ranges + range;
    float sum = 0.0f;
#pragma unroll 8
    for (; pulse < end; pulse++, sample += e.ranges) {
        const float2 s = *sample;
        sum += e.window[pulse] * (s.x * s.x + s.y * s.y);
    }
    return sum;
}
__global__ void __launch_bounds__(1024) integrate_pulses(Echoes e) {
    const int beam = blockIdx.x;
    for (int range = threadIdx.x; range < e.ranges; range += blockDim.x) e.power[beam * e.ranges + range] = power_at(e, beam, range, 0, PULSES);
}
__global__ void __launch_bounds__(256) integrate_pulses_ranges(Echoes e) {
    const int beam = blockIdx.y, range = blockIdx.x * 256 + threadIdx.x;
    e.power[beam * e.ranges + range] = power_at(e, beam, range, 0, PULSES);
}
__global__ void __launch_bounds__(1024) integrate_pulses_groups(Echoes e, int each) {
    const int beam = blockIdx.x, pulse = blockIdx.y * each;
    for (int range = threadIdx.x; range < e.ranges; range += blockDim.x) atomicAdd(&e.power[beam * e.ranges + range], power_at(e, beam, range, pulse, pulse + each));
}

Study radar("radar_pulses_a_block_for_each_of_16_beams", "radar", 16384, "power of 16 beams' echoes at 16384 ranges, added over 128 pulses",
    "one block a beam: 16 blocks, most multiprocessors are idle",
    {{"ranges", "blocks of 256 ranges of a beam", {"small_grid"}}, {"groups", "blocks of eight pulses of a beam, added by atomics", {"small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        const int beams = 16;
        std::vector<float> window(PULSES);
        for (int k = 0; k < PULSES; k++) window[k] = 0.54f - 0.46f * std::cos(6.2831853f * k / (PULSES - 1));
        const Echoes e = {reinterpret_cast<const float2 *>(b.random<float>(2 * beams * PULSES * n)), b.copy(window), b.output<float>(beams * n, true), static_cast<int>(n)};
        return {{"flawed", launch(integrate_pulses, beams, 1024, 0, e)}, {"ranges", launch(integrate_pulses_ranges, dim3(n / 256, beams), 256, 0, e)}, {"groups", launch(integrate_pulses_groups, dim3(beams, PULSES / 8), 1024, 0, e, 8)}};
    });

// --- links between pages, times a vector ---

constexpr int PIECE = 512, LONG_ROW = 2048;

struct Csr {
    const int *rows;      // where each begins, and the end
    const int *columns;
    const float *values, *x;
    float *y;
    int count;
};
struct Piece {
    int row, begin, end;
    bool whole;
};
__device__ __forceinline__ float part_of_row(const Csr &m, int from, int end, int step) {
    float sum = 0.0f;
#pragma unroll 4
    for (int k = from; k < end; k += step) sum += m.values[k] * __ldg(m.x + m.columns[k]);
    return sum;
}
// A warp a row.
__global__ void __launch_bounds__(256) spmv_warps(Csr m) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= m.count) return;
    const float sum = warp_sum(part_of_row(m, m.rows[row] + lane, m.rows[row + 1], 32));
    if (lane == 0) m.y[row] = sum;
}
// A warp a piece of a row.
__global__ void __launch_bounds__(256) spmv_pieces(Csr m, const Piece *pieces, int count) {
    const int i = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (i >= count) return;
    const Piece piece = pieces[i];
    const float sum = warp_sum(part_of_row(m, piece.begin + lane, piece.end, 32));
    if (lane) return;
    if (piece.whole) m.y[piece.row] = sum;
    else atomicAdd(&m.y[piece.row], sum);
}
// The first blocks take a long row each, the others eight short ones.
__global__ void __launch_bounds__(256) spmv_long_rows_first(Csr m, const int *long_rows, int count) {
    __shared__ float sums[8];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (blockIdx.x < count) {
        const int row = long_rows[blockIdx.x];
        const float sum = warp_sum(part_of_row(m, m.rows[row] + threadIdx.x, m.rows[row + 1], 256));
        if (lane == 0) sums[warp] = sum;
        __syncthreads();
        if (threadIdx.x == 0) m.y[row] = sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
        return;
    }
    const int row = (blockIdx.x - count) * 8 + warp;
    if (row >= m.count) return;
    const int begin = m.rows[row], end = m.rows[row + 1];
    if (end - begin > LONG_ROW) return;
    const float sum = warp_sum(part_of_row(m, begin + lane, end, 32));
    if (lane == 0) m.y[row] = sum;
}

Study links("web_links_spmv_a_warp_for_any_row", "sparse algebra", 1 << 19, "a matrix of links between 524288 pages, some with thousands, times a vector",
    "each row has one warp, and a few rows are a thousand times longer than most",
    {{"pieces", "rows cut into pieces of at most 512 values, added by atomics", {"workload_imbalance"}}, {"long_rows", "a block each for rows of more than 2048 values", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<int> starts(n + 1), long_rows;
        std::vector<Piece> pieces;
        for (int row = 0; row < n; row++) {
            const double chance = (hash(row + 11) + 1.0) / 4294967297.0;
            const int length = static_cast<int>(std::min(16384.0, 12.0 * std::pow(chance, -1.0 / 1.35))), begin = starts[row], end = begin + length;
            starts[row + 1] = end;
            if (length > LONG_ROW) long_rows.push_back(row);
            for (int k = begin; k < end; k += PIECE) pieces.push_back({row, k, std::min(k + PIECE, end), length <= PIECE});
        }
        const Csr m = {b.copy(starts), b.random<int>(starts[n], 0, n), b.random<float>(starts[n]), b.random<float>(n), b.output<float>(n, true), static_cast<int>(n)};
        const int long_count = static_cast<int>(long_rows.size()), piece_count = static_cast<int>(pieces.size());
        return {{"flawed", launch(spmv_warps, blocks(n, 8), 256, 0, m)}, {"pieces", launch(spmv_pieces, blocks(piece_count, 8), 256, 0, m, b.copy(pieces), piece_count)},
            {"long_rows", launch(spmv_long_rows_first, long_count + blocks(n, 8), 256, 0, m, b.copy(long_rows), long_count)}};
    });

// --- neutrons in a slab ---

struct Slab {
    float thickness, free_path, absorbed;  // in centimetres; share of collisions that absorb
    float *ends;  // how deep each history ended; below 0 and above the thickness: escaped
    int histories;
};
struct Neutron {
    float depth, cosine;
    unsigned state;
};
__device__ __forceinline__ float draw(unsigned &state) {
    state = state * 747796405u + 2891336453u;
    const unsigned word = (state >> (state >> 28) + 4 ^ state) * 277803737u;
    return ((word >> 22 ^ word) + 1.0f) * 2.3283064e-10f;
}
__device__ __forceinline__ Neutron born(int history) { return {0.0f, 1.0f, hash(history + 12345u)}; }
// Flies to the next collision; whether the history goes on.
__device__ __forceinline__ bool collide(const Slab &s, Neutron &n) {
    n.depth = fmaf(n.cosine, -s.free_path * __logf(draw(n.state)), n.depth);
    if (n.depth < 0.0f || n.depth > s.thickness || draw(n.state) < s.absorbed) return false;
    n.cosine = fmaf(2.0f, draw(n.state), -1.0f);
    return true;
}
__global__ void __launch_bounds__(256) histories(Slab s) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= s.histories) return;
    Neutron n = born(i);
    while (collide(s, n)) {}
    s.ends[i] = n.depth;
}
// Sixteen histories a thread in one loop over collisions: whoever is done begins the next.
__global__ void __launch_bounds__(256) histories_in_a_row(Slab s, int each) {
    int i = blockIdx.x * 256 * each + threadIdx.x;
    const int end = min(s.histories, static_cast<int>(blockIdx.x + 1) * 256 * each);
    Neutron n = born(i);
    while (__any_sync(~0u, i < end)) {
        if (i >= end || collide(s, n)) continue;
        s.ends[i] = n.depth;
        i += 256;
        n = born(i);
    }
}
// A block's warps take histories from its pool, as many as lanes are free.
__global__ void __launch_bounds__(256) histories_from_a_pool(Slab s, int each) {
    __shared__ int next;
    const int begin = blockIdx.x * each, end = min(s.histories, begin + each), lane = threadIdx.x % 32;
    if (threadIdx.x == 0) next = begin + 256;
    __syncthreads();
    int i = begin + threadIdx.x;
    Neutron n = born(i);
    while (__any_sync(~0u, i < end)) {
        const bool done = i < end && !collide(s, n);
        const unsigned free = __ballot_sync(~0u, done);
        if (!free) continue;
        int first = 0;
        if (lane == 0) first = atomicAdd(&next, __popc(free));
        first = __shfl_sync(~0u, first, 0);
        if (done) {
            s.ends[i] = n.depth;
            i = first + __popc(free & ((1u << lane) - 1));
            n = born(i);
        }
    }
}

Study neutrons("neutron_slab_a_history_to_its_end", "nuclear physics", 1 << 23, "8388608 neutron histories in a slab, from the source to absorption or escape",
    "each thread follows one history to its end, and a warp waits for its longest",
    {{"in_a_row", "sixteen histories a thread in one loop over collisions", {"branch_divergence"}}, {"pool", "lanes whose history ended take the next of their block's pool", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const Slab s = {20.0f, 1.0f, 0.08f, b.output<float>(n), static_cast<int>(n)};
        return {{"flawed", launch(histories, blocks(n, 256), 256, 0, s)}, {"in_a_row", launch(histories_in_a_row, blocks(n, 256 * 16), 256, 0, s, 16)}, {"pool", launch(histories_from_a_pool, blocks(n, 4096), 256, 0, s, 4096)}};
    });

// --- a receiver's channels, freed of their mean and levelled ---

constexpr int AHEAD = 8;

struct Gain {
    float mean = 0.0f, level = 1.0f;
    __device__ float step(float sample) {
        mean += 0.01f * (sample - mean);
        const float free = sample - mean;
        level += 0.02f * (fabsf(free) - level);
        return free * __fdividef(1.0f, level + 0.001f);
    }
};
__global__ void __launch_bounds__(128) level_channels(const float *in, float *out, int channels, int samples) {
    const int channel = blockIdx.x * blockDim.x + threadIdx.x;
    Gain gain;
    for (int t = 0; t < samples; t++) {
        const size_t i = static_cast<size_t>(t) * channels + channel;
        out[i] = gain.step(in[i]);
    }
}
// Eight samples at once; input and output are different memory, and said to be.
__global__ void __launch_bounds__(128) level_channels_eights(const float *__restrict__ in, float *__restrict__ out, int channels, int samples) {
    const int channel = blockIdx.x * blockDim.x + threadIdx.x;
    Gain gain;
    for (int t = 0; t < samples; t += AHEAD) {
        const size_t i = static_cast<size_t>(t) * channels + channel;
        float ahead[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) ahead[k] = in[i + static_cast<size_t>(k) * channels];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) out[i + static_cast<size_t>(k) * channels] = gain.step(ahead[k]);
    }
}
// Eight samples ahead of the one in work.
__global__ void __launch_bounds__(128) level_channels_ahead(const float *in, float *out, int channels, int samples) {
    const int channel = blockIdx.x * blockDim.x + threadIdx.x;
    Gain gain;
    float ahead[AHEAD];
    const float *next = in + channel;
    float *to = out + channel;
#pragma unroll
    for (int k = 0; k < AHEAD; k++, next += channels) ahead[k] = *next;
    for (int t = 0; t < samples; t += AHEAD) {
        const bool more = t + AHEAD < samples;
#pragma unroll
        for (int k = 0; k < AHEAD; k++, next += channels, to += channels) {
            const float sample = ahead[k];
            if (more) ahead[k] = *next;
            *to = gain.step(sample);
        }
    }
}

Study receiver("receiver_channels_a_sample_waited_for", "radio", 512, "mean and gain followed over 512 samples of 65536 channels",
    "each sample is stored before the next is asked for, since the output might be the input: one load in flight a thread",
    {{"eights", "eight samples loaded at once, pointers restricted", {"memory_latency"}}, {"ahead", "loads eight samples ahead, in registers", {"memory_latency"}}},
    [](Buffers &b, long n) -> Sides {
        const int channels = 65536;
        const float *in = b.random<float>(channels * n);
        float *out = b.output<float>(channels * n);
        b.tolerance = 1e-3;
        return {{"flawed", launch(level_channels, channels / 128, 128, 0, in, out, channels, n)}, {"eights", launch(level_channels_eights, channels / 128, 128, 0, in, out, channels, n)},
            {"ahead", launch(level_channels_ahead, channels / 128, 128, 0, in, out, channels, n)}};
    });

// --- a map turned to another meridian ---

struct Map {
    const float *source;
    float *target;
    int size;                        // of both, to either side
    float cosine, sine, centre_x, centre_y;
};
__device__ __forceinline__ float2 source_of(const Map &m, int x, int y) {
    const float dx = x - 0.5f * m.size, dy = y - 0.5f * m.size;
    return make_float2(fmaf(m.cosine, dx, fmaf(-m.sine, dy, m.centre_x)), fmaf(m.sine, dx, fmaf(m.cosine, dy, m.centre_y)));
}
__device__ __forceinline__ float between(float a, float b, float c, float d, float fx, float fy) {
    const float upper = a + fx * (b - a), lower = c + fx * (d - c);
    return upper + fy * (lower - upper);
}
__device__ __forceinline__ float sampled(const Map &m, float2 p) {
    const int x = __float2int_rd(p.x), y = __float2int_rd(p.y);
    if (x < 0 || y < 0 || x >= m.size - 1 || y >= m.size - 1) return 0.0f;
    const float *at = m.source + static_cast<size_t>(y) * m.size + x;
    return between(__ldg(at), __ldg(at + 1), __ldg(at + m.size), __ldg(at + m.size + 1), p.x - x, p.y - y);
}
__global__ void __launch_bounds__(256) turn_map(Map m) {
    const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
    m.target[static_cast<size_t>(y) * m.size + x] = sampled(m, source_of(m, x, y));
}
// Squares: a warp has 8 x 4 points, a block 32 x 8.
__global__ void __launch_bounds__(256) turn_map_squares(Map m) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int x = blockIdx.x * 32 + warp % 4 * 8 + lane % 8, y = blockIdx.y * 8 + warp / 4 * 4 + lane / 8;
    m.target[static_cast<size_t>(y) * m.size + x] = sampled(m, source_of(m, x, y));
}
// The part of the source that 32 x 16 points need, by rows, in shared memory first.
constexpr int PATCH = 38;
__global__ void __launch_bounds__(256) turn_map_patch(Map m) {
    __shared__ float patch[PATCH][33];
    const float2 a = source_of(m, blockIdx.x * 32, blockIdx.y * 16), b = source_of(m, blockIdx.x * 32 + 31, blockIdx.y * 16);
    const float2 c = source_of(m, blockIdx.x * 32, blockIdx.y * 16 + 15), d = source_of(m, blockIdx.x * 32 + 31, blockIdx.y * 16 + 15);
    const int left = __float2int_rd(fminf(fminf(a.x, b.x), fminf(c.x, d.x)) - 0.01f), top = __float2int_rd(fminf(fminf(a.y, b.y), fminf(c.y, d.y)) - 0.01f);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int row = warp; row < PATCH; row += 8) {
        const int x = left + lane, y = top + row;
        patch[row][lane] = x >= 0 && y >= 0 && x < m.size && y < m.size ? m.source[static_cast<size_t>(y) * m.size + x] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int x = blockIdx.x * 32 + lane, y = blockIdx.y * 16 + warp * 2 + half;
        const float2 p = source_of(m, x, y);
        const int sx = __float2int_rd(p.x), sy = __float2int_rd(p.y), column = sx - left, row = sy - top;
        const bool inside = sx >= 0 && sy >= 0 && sx < m.size - 1 && sy < m.size - 1;
        m.target[static_cast<size_t>(y) * m.size + x] = inside ? between(patch[row][column], patch[row][column + 1], patch[row + 1][column], patch[row + 1][column + 1], p.x - sx, p.y - sy) : 0.0f;
    }
}

Study map("map_turned_warps_along_slanted_lines", "geography", 8192, "a map of 8192 x 8192 heights turned by 64 degrees, sampled between four points",
    "a warp makes 32 points of a row, which lie on a slanted line of the source, almost each in a row of its own",
    {{"squares", "a warp makes 8 x 4 points", {"uncoalesced_access"}}, {"patch", "the source's patch for 32 x 16 points through shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long n) -> Sides {
        const float angle = 1.117f, shift = 0.5f * n;
        const Map m = {b.random<float>(n * n, 0.0, 4000.0), b.output<float>(n * n), static_cast<int>(n), std::cos(angle), std::sin(angle), shift + 3.3f, shift - 7.7f};
        b.tolerance = 1e-3;
        return {{"flawed", launch(turn_map, dim3(n / 256, n), 256, 0, m)}, {"squares", launch(turn_map_squares, dim3(n / 32, n / 8), 256, 0, m)}, {"patch", launch(turn_map_patch, dim3(n / 32, n / 16), 256, 0, m)}};
    });

// --- reads, two bits a base ---

__device__ __forceinline__ unsigned two_bits(unsigned letter) { return letter >> 1 & 3; }  // A 0, C 1, T 2, G 3, of either case
// Two bits of each of four letters, the first lowest.
__device__ __forceinline__ unsigned four_bases(unsigned letters) {
    const unsigned bits = letters >> 1 & 0x03030303u;
    return (bits | bits >> 6 | bits >> 12 | bits >> 18) & 255;
}
__global__ void __launch_bounds__(256) pack_bases(const char *__restrict__ letters, unsigned char *__restrict__ packed, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    unsigned byte = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) byte |= two_bits(letters[4 * static_cast<size_t>(i) + k]) << 2 * k;
    packed[i] = byte;
}
__global__ void __launch_bounds__(256) pack_bases_sixteen(const uint4 *__restrict__ letters, unsigned *__restrict__ packed, int count) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const uint4 l = letters[i];
    packed[i] = four_bases(l.x) | four_bases(l.y) << 8 | four_bases(l.z) << 16 | four_bases(l.w) << 24;
}
// Four words of neighbouring threads' loads at a time, each coalesced; every fourth lane writes what four have packed.
__global__ void __launch_bounds__(256) pack_bases_words(const unsigned *__restrict__ letters, unsigned *__restrict__ packed, int count) {
    const int lane = threadIdx.x % 4, first = blockIdx.x * 1024 + threadIdx.x;
    unsigned words[4];
#pragma unroll
    for (int k = 0; k < 4; k++) words[k] = first + 256 * k < count ? letters[first + 256 * k] : 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        unsigned four = four_bases(words[k]) << 8 * lane;
        four |= __shfl_xor_sync(~0u, four, 1);
        four |= __shfl_xor_sync(~0u, four, 2);
        if (lane == 0 && first + 256 * k < count) packed[(first + 256 * k) / 4] = four;
    }
}

Study reads("sequencing_reads_packed_letter_by_letter", "bioinformatics", 1 << 29, "536870912 letters of sequenced bases packed into two bits each",
    "a thread loads its four letters one byte at a time and writes one byte",
    {{"sixteen", "sixteen letters a load of 16 bytes, a word written", {"narrow_access"}}, {"words", "four letters a load, four loads a thread, words written by every fourth lane", {"narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        const char *letters = reinterpret_cast<const char *>(b.random<unsigned char>(n, 65, 90));
        unsigned char *packed = b.output<unsigned char>(n / 4);
        const int fours = static_cast<int>(n / 4);
        return {{"flawed", launch(pack_bases, blocks(fours, 256), 256, 0, letters, packed, fours)},
            {"sixteen", launch(pack_bases_sixteen, blocks(n / 16, 256), 256, 0, reinterpret_cast<const uint4 *>(letters), reinterpret_cast<unsigned *>(packed), fours / 4)},
            {"words", launch(pack_bases_words, blocks(fours, 1024), 256, 0, reinterpret_cast<const unsigned *>(letters), reinterpret_cast<unsigned *>(packed), fours)}};
    });

// --- shaded relief ---

constexpr int SHADED_ROWS = 8;

struct Relief {
    const float *heights;  // with a row above and below, and 32 values to the left and right of each
    float *shades;
    int width;
    float per_run, east, north, up;  // one over eight cells; where the sun is
};
struct Six {
    float v[6];
};
__device__ __forceinline__ Six heights_of(const float *row) {
    const float4 middle = *reinterpret_cast<const float4 *>(row);
    return {row[-1], middle.x, middle.y, middle.z, middle.w, row[4]};
}
// Four points wide and eight rows down, three rows in registers.
__global__ void __launch_bounds__(256) shade(Relief r) {
    const int x = (blockIdx.x * 256 + threadIdx.x) * 4, y = blockIdx.y * SHADED_ROWS;
    const size_t pitch = r.width + 64;
    const float *at = r.heights + y * pitch + x + 32;
    Six above = heights_of(at), here = heights_of(at + pitch);
#pragma unroll 4
    for (int k = 0; k < SHADED_ROWS; k++) {
        const Six below = heights_of(at + (k + 2) * pitch);
        float shades[4], down[6], across[6];
#pragma unroll
        for (int i = 0; i < 6; i++) down[i] = below.v[i] - above.v[i], across[i] = above.v[i] + 2.0f * here.v[i] + below.v[i];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float p = (across[i + 2] - across[i]) * r.per_run, q = (down[i] + 2.0f * down[i + 1] + down[i + 2]) * r.per_run;
            shades[i] = fmaxf(0.0f, (r.up - r.east * p - r.north * q) * rsqrtf(1.0f + p * p + q * q));
        }
        *reinterpret_cast<float4 *>(r.shades + (static_cast<size_t>(y) + k) * r.width + x) = make_float4(shades[0], shades[1], shades[2], shades[3]);
        above = here, here = below;
    }
}

Study relief("sound_relief_shaded", "cartography", 8192, "shades of 8192 x 8192 heights under a sun from the northwest, by Horn's slopes", "", {}, [](Buffers &b, long n) -> Sides {
    const int width = 8192;
    const Relief r = {b.random<float>((width + 64) * (n + 2), 0.0, 200.0), b.output<float>(width * n), width, 1.0f / (8.0f * 30.0f), -0.5f, 0.5f, 0.7071f};
    return {{"sound", launch(shade, dim3(width / 1024, n / SHADED_ROWS), 256, 0, r)}};
});

// --- the potential of a molecule's charges ---

constexpr int CHARGES = 2048, GRID_X = 128, GRID_Y = 128, ALONG = 8;
__constant__ float4 CHARGE[CHARGES];

__device__ __forceinline__ float over_root(float square) {
#ifdef __CUDA_ARCH__
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(square));
    return root;
#else
    return rsqrtf(square);
#endif
}
// Eight points along x a thread, each 16 apart from the next so that a half-warp writes 64 bytes.
__global__ void __launch_bounds__(128) potential(float *out, float spacing) {
    const int x = threadIdx.x % 16, y = blockIdx.x * 8 + threadIdx.x / 16, z = blockIdx.y;
    const float px = x * spacing, py = y * spacing, pz = z * spacing, apart = 16.0f * spacing;
    float sums[ALONG] = {};
#pragma unroll 4
    for (int k = 0; k < CHARGES; k++) {
        const float4 charge = CHARGE[k];
        const float dy = py - charge.y, dz = pz - charge.z, aside = dy * dy + dz * dz, dx = px - charge.x;
#pragma unroll
        for (int i = 0; i < ALONG; i++) {
            const float d = dx + i * apart;
            sums[i] += charge.w * over_root(d * d + aside);
        }
    }
    float *to = out + (static_cast<size_t>(z) * GRID_Y + y) * GRID_X + x;
#pragma unroll
    for (int i = 0; i < ALONG; i++) to[i * 16] = sums[i];
}

Study ions("sound_charges_potential", "structural biology", 64, "the potential of 2048 charges at 128 x 128 x 64 points", "", {}, [](Buffers &b, long n) -> Sides {
    std::vector<float4> charges(CHARGES);
    const auto chance = [](unsigned seed) { return hash(seed) / 4294967296.0f; };
    for (int k = 0; k < CHARGES; k++) charges[k] = make_float4(63.5f * chance(8 * k), 63.5f * chance(8 * k + 1), 31.5f * chance(8 * k + 2) + 0.1f, chance(8 * k + 3) - 0.5f);
    CHECK(cudaMemcpyToSymbol(CHARGE, charges.data(), CHARGES * sizeof(float4)));
    return {{"sound", launch(potential, dim3(GRID_Y / 8, n), 128, 0, b.output<float>(static_cast<size_t>(GRID_X) * GRID_Y * n), 0.5f)}};
});

}  // namespace
