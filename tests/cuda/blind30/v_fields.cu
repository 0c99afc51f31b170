// Waves in rock, meshes, molecules, options, filters, plasmas, neutrons, fluids and the like.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <tuple>

#include "../pairs/pair.cuh"

namespace {

// --- acoustic waves, eighth order in space, second in time ---

constexpr int REACH = 4;

struct Shot {
    const float *u;     // pressure now
    const float *vel2;  // (v dt / h)^2
    float *prev;        // pressure one step ago; one step ahead when done
    int nx, ny, nz;
};

__device__ __forceinline__ float weight(int r) {
    constexpr float w[REACH + 1] = {-205.0f / 72, 8.0f / 5, -1.0f / 5, 8.0f / 315, -1.0f / 560};
    return w[r];
}

__global__ void __launch_bounds__(256) wave_step(Shot s) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z + REACH;
    if (x < REACH || x >= s.nx - REACH || y < REACH || y >= s.ny - REACH) return;
    const int row = s.nx, plane = s.nx * s.ny;
    const int i = z * plane + y * row + x;
    float lap = 3 * weight(0) * s.u[i];
#pragma unroll
    for (int r = 1; r <= REACH; r++)
        lap += weight(r) * (s.u[i - r] + s.u[i + r] + s.u[i - r * row] + s.u[i + r * row] + s.u[i - r * plane] + s.u[i + r * plane]);
    s.prev[i] = 2 * s.u[i] - s.prev[i] + s.vel2[i] * lap;
}

// Walks along z with the column in registers and the plane in shared memory.
template <int TX, int TY>
__global__ void __launch_bounds__(TX *TY) wave_step_walk(Shot s, int depth) {
    __shared__ float tile[TY + 2 * REACH][TX + 2 * REACH];
    const int tx = threadIdx.x + REACH, ty = threadIdx.y + REACH;
    const int x = blockIdx.x * TX + threadIdx.x, y = blockIdx.y * TY + threadIdx.y;
    const int row = s.nx, plane = s.nx * s.ny;
    const bool inside = x >= REACH && x < s.nx - REACH && y >= REACH && y < s.ny - REACH;
    const int first = blockIdx.z * depth + REACH, last = min(first + depth, s.nz - REACH);
    int i = first * plane + y * row + x;
    // where this thread's part of the margin lies; none for most
    const bool west = threadIdx.x < REACH && x >= REACH, east = threadIdx.x >= TX - REACH && x < s.nx - REACH;
    const bool south = threadIdx.y < REACH && y >= REACH, north = threadIdx.y >= TY - REACH && y < s.ny - REACH;
    float column[2 * REACH + 1];
#pragma unroll
    for (int k = 0; k < 2 * REACH; k++) column[k + 1] = s.u[i + (k - REACH) * plane];
    for (int z = first; z < last; z++, i += plane) {
#pragma unroll
        for (int k = 0; k < 2 * REACH; k++) column[k] = column[k + 1];
        column[2 * REACH] = s.u[i + REACH * plane];
        const float before = s.prev[i], vel2 = s.vel2[i];
        __syncthreads();
        tile[ty][tx] = column[REACH];
        if (west) tile[ty][tx - REACH] = s.u[i - REACH];
        if (east) tile[ty][tx + REACH] = s.u[i + REACH];
        if (south) tile[ty - REACH][tx] = s.u[i - REACH * row];
        if (north) tile[ty + REACH][tx] = s.u[i + REACH * row];
        __syncthreads();
        if (inside) {
            float lap = 3 * weight(0) * column[REACH];
#pragma unroll
            for (int r = 1; r <= REACH; r++)
                lap += weight(r) * (tile[ty][tx - r] + tile[ty][tx + r] + tile[ty - r][tx] + tile[ty + r][tx] + column[REACH - r] + column[REACH + r]);
            s.prev[i] = 2 * column[REACH] - before + vel2 * lap;
        }
    }
}

// A stack of points a thread: the column is loaded once for all of them.
template <int STACK>
__global__ void __launch_bounds__(256) wave_step_stack(Shot s) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * STACK + REACH;
    if (x < REACH || x >= s.nx - REACH || y < REACH || y >= s.ny - REACH) return;
    const int row = s.nx, plane = s.nx * s.ny;
    const int i = z * plane + y * row + x;
    float column[STACK + 2 * REACH];
#pragma unroll
    for (int k = 0; k < STACK + 2 * REACH; k++) column[k] = s.u[i + (k - REACH) * plane];
    float next[STACK];
#pragma unroll
    for (int k = 0; k < STACK; k++) {
        const int j = i + k * plane;
        float lap = 3 * weight(0) * column[k + REACH];
#pragma unroll
        for (int r = 1; r <= REACH; r++)
            lap += weight(r) * (s.u[j - r] + s.u[j + r] + s.u[j - r * row] + s.u[j + r * row] + column[k + REACH - r] + column[k + REACH + r]);
        next[k] = 2 * column[k + REACH] - s.prev[j] + s.vel2[j] * lap;
    }
#pragma unroll
    for (int k = 0; k < STACK; k++) s.prev[i + k * plane] = next[k];
}

Study rock("rock_wave_every_neighbour_from_global", "seismics", 200, "one step of the acoustic wave equation, eighth order, 512 x 512 x 192 points inside a margin of four planes",
    "each point loads its 25 neighbours from global memory by itself, eight of them from other planes",
    {{"walk", "blocks walk along z: the column in registers, the plane in shared memory", {"redundant_loads", "cache_locality"}},
        {"stack", "four points above each other a thread, their column loaded once", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int nx = 512, ny = 512, nz = static_cast<int>(n);
        const size_t count = static_cast<size_t>(nx) * ny * nz;
        const float *u = b.random<float>(count), *vel2 = b.random<float>(count, 0.05, 0.15), *before = b.random<float>(count);
        const Shot s{u, vel2, b.changed<float>(before, count), nx, ny, nz};
        const int inner = nz - 2 * REACH, depth = 48;
        return {{"flawed", launch(wave_step, dim3(nx / 32, ny / 8, inner), dim3(32, 8), 0, s)},
            {"walk", launch(wave_step_walk<32, 16>, dim3(nx / 32, ny / 16, blocks(inner, depth)), dim3(32, 16), 0, s, depth)},
            {"stack", launch(wave_step_stack<4>, dim3(nx / 32, ny / 8, inner / 4), dim3(32, 8), 0, s)}};
    });

// --- a sparse matrix of finite elements times a vector ---

template <typename T>
__device__ __forceinline__ T sum_of(T value, int lanes) {
    for (int offset = lanes / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset, lanes);
    return value;
}

// LANES threads for each row.
template <int LANES>
__global__ void __launch_bounds__(256) csr_times(int rows, const int *__restrict__ starts, const int *__restrict__ columns,
    const float *__restrict__ values, const float *__restrict__ x, float *__restrict__ y) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / LANES;
    const int lane = threadIdx.x % LANES;
    float sum = 0.0f;
    if (row < rows) {
        const int end = starts[row + 1];
        for (int k = starts[row] + lane; k < end; k += LANES) sum += values[k] * x[columns[k]];
    }
    sum = sum_of(sum, LANES);
    if (row < rows && lane == 0) y[row] = sum;
}

// Slices of 32 rows of about one length, padded to the longest and stored entry by entry; `names` says which rows they are.
__global__ void __launch_bounds__(256) sliced_times(int rows, const int *__restrict__ slices, const int *__restrict__ names, const int *__restrict__ columns,
    const float *__restrict__ values, const float *__restrict__ x, float *__restrict__ y) {
    const int slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= rows) return;
    const int end = slices[slot / 32 + 1];
    float sum = 0.0f;
#pragma unroll 4
    for (int k = slices[slot / 32] + slot % 32; k < end; k += 32) sum += values[k] * x[columns[k]];
    y[names[slot]] = sum;
}

Study mesh("mesh_matrix_warp_for_fifteen_entries", "finite elements", 1 << 20, "a sparse matrix of a mesh of tetrahedra, 1048576 rows of some fifteen entries, times a vector",
    "a warp for each row, of which most have fifteen entries, so half of the lanes and more have none",
    {{"eights", "eight lanes a row", {"branch_divergence"}}, {"sliced", "a thread a row, rows in slices of 32 of about one length stored entry by entry", {"branch_divergence"}}},
    [](Buffers &b, long n) -> Sides {
        const int rows = static_cast<int>(n), row_of_points = 102, plane = row_of_points * row_of_points, window = 1024;
        std::vector<int> near;  // from the nearest points to the farthest
        for (int far = 0; far <= 3; far++)
            for (int k = 0; k < 27; k++)
                if (const int dx = k % 3 - 1, dy = k / 3 % 3 - 1, dz = k / 9 - 1; dx * dx + dy * dy + dz * dz == far) near.push_back(dz * plane + dy * row_of_points + dx);
        std::vector<int> starts(rows + 1), columns, slices{0}, names(rows), padded_columns;
        std::vector<float> values, padded_values;
        columns.reserve(rows * 16l), values.reserve(rows * 16l), padded_columns.reserve(rows * 18l), padded_values.reserve(rows * 18l);
        for (int row = 0; row < rows; row++) {
            const unsigned draw = hash(row + 1u) % 100;
            const int entries = draw < 10 ? 11 : draw < 25 ? 13 : draw < 65 ? 15 : draw < 85 ? 16 : draw < 95 ? 19 : draw < 99 ? 23 : 27;
            for (int k = 0; k < entries; k++) {
                columns.push_back(std::min(std::max(row + near[k], 0), rows - 1));
                values.push_back(k ? -0.05f - 0.0001f * (draw + k) : 1.0f);
            }
            starts[row + 1] = static_cast<int>(columns.size());
        }
        const auto length = [&](int row) { return starts[row + 1] - starts[row]; };
        std::iota(names.begin(), names.end(), 0);
        for (int first = 0; first < rows; first += window)
            std::stable_sort(names.begin() + first, names.begin() + std::min(first + window, rows), [&](int a, int c) { return length(a) > length(c); });
        for (int slot = 0; slot < rows; slot += 32) {
            const int longest = length(names[slot]);
            const size_t begin = padded_columns.size();
            padded_columns.resize(begin + 32 * longest), padded_values.resize(begin + 32 * longest);
            for (int lane = 0; lane < 32; lane++) {
                const int row = names[slot + lane];
                for (int k = 0; k < longest; k++) {
                    const bool real = k < length(row);
                    padded_columns[begin + 32 * k + lane] = real ? columns[starts[row] + k] : row;
                    padded_values[begin + 32 * k + lane] = real ? values[starts[row] + k] : 0.0f;
                }
            }
            slices.push_back(static_cast<int>(padded_columns.size()));
        }
        const int *from = b.copy(starts), *at = b.copy(columns), *slice = b.copy(slices), *name = b.copy(names), *padded_at = b.copy(padded_columns);
        const float *value = b.copy(values), *padded_value = b.copy(padded_values), *x = b.random<float>(n);
        float *y = b.output<float>(n);
        return {{"flawed", launch(csr_times<32>, blocks(n, 8), 256, 0, rows, from, at, value, x, y)},
            {"eights", launch(csr_times<8>, blocks(n, 32), 256, 0, rows, from, at, value, x, y)},
            {"sliced", launch(sliced_times, blocks(n, 256), 256, 0, rows, slice, name, padded_at, padded_value, x, y)}};
    });

// --- forces in a liquid ---

struct Liquid {
    const float4 *position;
    const int *neighbours;  // [k * atoms + i]
    const int *count;
    float box, cutoff2, sigma2, epsilon;
    int atoms;
};

__device__ float4 lennard_jones(const Liquid &l, int slot, const float4 &own) {
    const float inverse = 1.0f / l.box;
    float4 force = make_float4(0, 0, 0, 0);
    const int count = l.count[slot];
#pragma unroll 4
    for (int k = 0; k < count; k++) {
        const float4 other = l.position[l.neighbours[static_cast<size_t>(k) * l.atoms + slot]];
        float dx = own.x - other.x, dy = own.y - other.y, dz = own.z - other.z;
        dx -= l.box * rintf(dx * inverse);
        dy -= l.box * rintf(dy * inverse);
        dz -= l.box * rintf(dz * inverse);
        const float r2 = dx * dx + dy * dy + dz * dz;
        if (r2 < l.cutoff2) {
            const float near2 = __fdividef(1.0f, r2), s2 = l.sigma2 * near2, s6 = s2 * s2 * s2;
            const float f = 24.0f * l.epsilon * near2 * s6 * (2.0f * s6 - 1.0f);
            force.x += f * dx;
            force.y += f * dy;
            force.z += f * dz;
            force.w += 2.0f * l.epsilon * s6 * (s6 - 1.0f);
        }
    }
    return force;
}

__global__ void __launch_bounds__(128) liquid_forces(Liquid l, float4 *forces) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < l.atoms) forces[i] = lennard_jones(l, i, l.position[i]);
}

// Atoms are stored cell by cell; `names` says which atom each is.
__global__ void __launch_bounds__(128) liquid_forces_sorted(Liquid l, const int *names, float4 *forces) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < l.atoms) forces[names[i]] = lennard_jones(l, i, l.position[i]);
}

// Atoms stay where they are and are only visited cell by cell, as their lists are.
__global__ void __launch_bounds__(128) liquid_forces_visited(Liquid l, const int *names, float4 *forces) {
    const int slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= l.atoms) return;
    const int atom = names[slot];
    forces[atom] = lennard_jones(l, slot, l.position[atom]);
}

Study liquid("liquid_forces_atoms_long_mixed", "molecular dynamics", 64, "Lennard-Jones forces on 262144 atoms from lists of some 56 neighbours",
    "after a long run neighbours in space are anywhere in memory, and atoms are still numbered as they were at the start",
    {{"sorted", "atoms stored cell by cell and renumbered in the lists", {"cache_locality"}},
        {"visited", "positions left where they are, threads take atoms cell by cell", {"cache_locality"}}},
    [](Buffers &b, long n) -> Sides {
        const int side = static_cast<int>(n), atoms = side * side * side;
        std::vector<int> offsets;  // of sites less than 2.4 away
        for (int z = -2; z <= 2; z++)
            for (int y = -2; y <= 2; y++)
                for (int x = -2; x <= 2; x++)
                    if (const int r2 = x * x + y * y + z * z; r2 && r2 <= 5) offsets.push_back((z + 2) * 25 + (y + 2) * 5 + x + 2);
        const int most = static_cast<int>(offsets.size());
        // sites cell by cell, cells of four by four by four
        const auto slot_of = [side](int x, int y, int z) {
            const int cells = side / 4;
            return ((z / 4 * cells + y / 4) * cells + x / 4) * 64 + (z % 4 * 4 + y % 4) * 4 + x % 4;
        };
        std::vector<int> names(atoms);  // which atom is in which slot
        std::iota(names.begin(), names.end(), 0);
        for (int i = atoms - 1; i > 0; i--) std::swap(names[i], names[hash(i) % (i + 1u)]);
        std::vector<int> slots(atoms);
        for (int slot = 0; slot < atoms; slot++) slots[names[slot]] = slot;
        std::vector<float4> sorted(atoms), mixed(atoms);
        std::vector<int> counts(atoms), counts_mixed(atoms), list(static_cast<size_t>(atoms) * most), list_visited(list.size()), list_mixed(list.size());
        const auto jitter = [](unsigned seed) { return hash(seed) / 4294967296.0f * 0.2f; };
        // site and neighbours of a slot
        const auto look = [&](int slot, const auto &found) {
            const int cells = side / 4, cell = slot / 64;
            const int x = cell % cells * 4 + slot % 4, y = cell / cells % cells * 4 + slot / 4 % 4, z = cell / cells / cells * 4 + slot / 16 % 4;
            int count = 0;
            for (const int o : offsets) {
                if (hash(slot * 64u + o) % 16 == 0) continue;  // not all sites are taken
                const int nx = x + o % 5 - 2 + side, ny = y + o / 5 % 5 - 2 + side, nz = z + o / 25 - 2 + side;
                found(count++, slot_of(nx % side, ny % side, nz % side));
            }
            return std::make_pair(make_float4(x + jitter(3 * slot), y + jitter(3 * slot + 1), z + jitter(3 * slot + 2), 0), count);
        };
        for (int slot = 0; slot < atoms; slot++)
            std::tie(sorted[slot], counts[slot]) = look(slot, [&](size_t k, int other) { list[k * atoms + slot] = other, list_visited[k * atoms + slot] = names[other]; });
        for (int atom = 0; atom < atoms; atom++)
            std::tie(mixed[atom], counts_mixed[atom]) = look(slots[atom], [&](size_t k, int other) { list_mixed[k * atoms + atom] = names[other]; });
        const float4 *by_cell = b.copy(sorted), *by_number = b.copy(mixed);
        const int *count = b.copy(counts), *count_by_number = b.copy(counts_mixed), *name = b.copy(names);
        const auto liquid = [=](const float4 *at, const int *near, const int *count) { return Liquid{at, near, count, static_cast<float>(side), 5.0f, 0.81f, 1.0f, atoms}; };
        const Liquid flawed = liquid(by_number, b.copy(list_mixed), count_by_number), in_cells = liquid(by_cell, b.copy(list), count), visited = liquid(by_number, b.copy(list_visited), count);
        float4 *forces = reinterpret_cast<float4 *>(b.output<float>(4l * atoms));
        const unsigned grid = blocks(atoms, 128);
        return {{"flawed", launch(liquid_forces, grid, 128, 0, flawed, forces)}, {"sorted", launch(liquid_forces_sorted, grid, 128, 0, in_cells, name, forces)},
            {"visited", launch(liquid_forces_visited, grid, 128, 0, visited, name, forces)}};
    });

// --- a long low-pass filter ---

constexpr int TAPS = 128, SAMPLES = 256;
__constant__ float low_pass_taps[TAPS];

// The samples of a block and those before them; at the front of the signal there is silence.
__device__ __forceinline__ void fetch(float *to, const float *signal, long first, int count) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const long at = first - (TAPS - 1) + i;
        to[i] = at >= 0 ? signal[at] : 0.0f;
    }
}

__global__ void __launch_bounds__(SAMPLES) low_pass(const float *signal, const float *taps, float *filtered) {
    __shared__ float samples[SAMPLES + TAPS - 1], coefficients[TAPS];
    const long first = static_cast<long>(blockIdx.x) * SAMPLES;
    if (threadIdx.x < TAPS) coefficients[threadIdx.x] = taps[threadIdx.x];
    fetch(samples, signal, first, SAMPLES + TAPS - 1);
    __syncthreads();
    float sum = 0.0f;
#pragma unroll 16
    for (int k = 0; k < TAPS; k++) sum += coefficients[k] * samples[threadIdx.x + k];
    filtered[first + threadIdx.x] = sum;
}

__global__ void __launch_bounds__(SAMPLES) low_pass_constant(const float *signal, float *filtered) {
    __shared__ float samples[SAMPLES + TAPS - 1];
    const long first = static_cast<long>(blockIdx.x) * SAMPLES;
    fetch(samples, signal, first, SAMPLES + TAPS - 1);
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < TAPS; k++) sum += low_pass_taps[k] * samples[threadIdx.x + k];
    filtered[first + threadIdx.x] = sum;
}

__device__ __forceinline__ float four_taps(float sum, const float4 &c, float a, float b, float d, float e) {
    sum += c.x * a;
    sum += c.y * b;
    sum += c.z * d;
    return sum + c.w * e;
}
// Four neighbouring outputs a thread, samples and taps four at a time.
__global__ void __launch_bounds__(SAMPLES) low_pass_fours(const float *signal, const float *taps, float *filtered) {
    __shared__ __align__(16) float samples[4 * SAMPLES + TAPS];
    __shared__ __align__(16) float coefficients[TAPS];
    const long first = static_cast<long>(blockIdx.x) * 4 * SAMPLES;
    if (threadIdx.x < TAPS) coefficients[threadIdx.x] = taps[threadIdx.x];
    fetch(samples, signal, first, 4 * SAMPLES + TAPS - 1);
    __syncthreads();
    const float4 *own = reinterpret_cast<const float4 *>(samples) + threadIdx.x;
    float4 sum = make_float4(0, 0, 0, 0), near = own[0];
#pragma unroll 8
    for (int k = 0; k < TAPS / 4; k++) {
        const float4 c = reinterpret_cast<const float4 *>(coefficients)[k], far = own[k + 1];
        sum.x = four_taps(sum.x, c, near.x, near.y, near.z, near.w);
        sum.y = four_taps(sum.y, c, near.y, near.z, near.w, far.x);
        sum.z = four_taps(sum.z, c, near.z, near.w, far.x, far.y);
        sum.w = four_taps(sum.w, c, near.w, far.x, far.y, far.z);
        near = far;
    }
    reinterpret_cast<float4 *>(filtered + first)[threadIdx.x] = sum;
}

Study filter("filter_tap_and_sample_from_shared", "signal processing", 1 << 24, "16777216 samples through a filter of 128 taps",
    "an output a thread: each multiply-add reads a sample and a tap from shared memory",
    {{"fours", "four neighbouring outputs a thread, samples and taps read four at a time", {"shared_memory_bandwidth"}},
        {"constant", "taps from constant memory, as operands of the multiply-adds", {"shared_memory_bandwidth"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> taps(TAPS);
        for (int k = 0; k < TAPS; k++) {
            const float t = k - (TAPS - 1) / 2.0f;
            taps[k] = std::sin(0.35f * t) / (3.14159265f * t) * (0.54f + 0.46f * std::cos(2 * 3.14159265f * t / TAPS));
        }
        const float *coefficients = b.copy(taps), *signal = b.random<float>(n);
        CHECK(cudaMemcpyToSymbol(low_pass_taps, taps.data(), sizeof(low_pass_taps)));
        float *filtered = b.output<float>(n);
        return {{"flawed", launch(low_pass, blocks(n, SAMPLES), SAMPLES, 0, signal, coefficients, filtered)},
            {"fours", launch(low_pass_fours, blocks(n, 4 * SAMPLES), SAMPLES, 0, signal, coefficients, filtered)},
            {"constant", launch(low_pass_constant, blocks(n, SAMPLES), SAMPLES, 0, signal, filtered)}};
    });

// --- charge of a plasma's particles on the grid ---

namespace plasma {

constexpr int EDGE = 64;  // cells of an edge; the grid is periodic

__device__ __forceinline__ int node(int x, int y, int z) { return ((z % EDGE) * EDGE + y % EDGE) * EDGE + x % EDGE; }
__device__ __forceinline__ int cell_of(const float4 &p) { return node(static_cast<int>(p.x), static_cast<int>(p.y), static_cast<int>(p.z)); }
__device__ __forceinline__ int corner(int cell, int k) {
    return node(cell % EDGE + (k & 1), cell / EDGE % EDGE + (k >> 1 & 1), cell / (EDGE * EDGE) + (k >> 2));
}
// Shares of a charge (w) at the corners of its cell.
__device__ __forceinline__ void shares(const float4 &p, float (&share)[8]) {
    const float x = p.x - floorf(p.x), y = p.y - floorf(p.y), z = p.z - floorf(p.z);
#pragma unroll
    for (int k = 0; k < 8; k++) share[k] = p.w * (k & 1 ? x : 1 - x) * (k & 2 ? y : 1 - y) * (k & 4 ? z : 1 - z);
}

// Particles are in the order of their cells.
__global__ void __launch_bounds__(256) deposit(const float4 *__restrict__ particles, int count, float *charge) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float4 particle = particles[i];
    const int cell = cell_of(particle);
    float share[8];
    shares(particle, share);
#pragma unroll
    for (int k = 0; k < 8; k++) atomicAdd(charge + corner(cell, k), share[k]);
}

// The lanes of a cell add up first.
__global__ void __launch_bounds__(256) deposit_joined(const float4 *__restrict__ particles, int count, float *charge) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const float4 particle = i < count ? particles[i] : make_float4(0, 0, 0, 0);
    const int cell = i < count ? cell_of(particle) : -1;
    float share[8];
    shares(particle, share);
    const unsigned same = __match_any_sync(0xffffffffu, cell);
    const int last = 31 - __clz(same);
    for (int offset = 1; offset < 32; offset *= 2) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const float other = __shfl_down_sync(0xffffffffu, share[k], offset);
            if (lane + offset <= last) share[k] += other;
        }
    }
    if (cell < 0 || lane != __ffs(same) - 1) return;
#pragma unroll
    for (int k = 0; k < 8; k++) atomicAdd(charge + corner(cell, k), share[k]);
}

// Eight lanes a cell, which walk through its particles and sum in registers.
__global__ void __launch_bounds__(256) deposit_cells(const float4 *__restrict__ particles, const int *__restrict__ starts, float *charge) {
    const int cell = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
    const int end = starts[cell + 1];
    float sum[8] = {};
    for (int i = starts[cell] + lane; i < end; i += 8) {
        float share[8];
        shares(particles[i], share);
#pragma unroll
        for (int k = 0; k < 8; k++) sum[k] += share[k];
    }
    float own = 0.0f;  // this lane's corner
#pragma unroll
    for (int k = 0; k < 8; k++) {
        for (int offset = 4; offset; offset /= 2) sum[k] += __shfl_xor_sync(0xffffffffu, sum[k], offset);
        if (lane == k) own = sum[k];
    }
    atomicAdd(charge + corner(cell, lane), own);
}

Study charges("plasma_charge_eight_atomics_a_particle", "plasma physics", 1 << 22, "charge of 4194304 particles, sorted by cell, on the corners of 64 x 64 x 64 cells",
    "each particle adds to the eight corners of its cell in global memory, where its neighbours in the warp add at the same time",
    {{"joined", "lanes of one cell summed by shuffles, one of them adds", {"global_atomics"}}, {"cells", "eight lanes a cell sum its particles in registers and add once a corner", {"global_atomics"}}},
    [](Buffers &b, long n) -> Sides {
        const int cells = EDGE * EDGE * EDGE;
        const auto chance = [](unsigned seed) { return hash(seed) / 4294967296.0f; };
        // denser in the middle of y, and at random
        std::vector<double> density(cells);
        double all = 0;
        for (int c = 0; c < cells; c++) {
            const float y = (c / EDGE % EDGE - 31.5f) / 16;
            all += density[c] = (0.2f + std::exp(-y * y)) * (0.5f + chance(c + 77u));
        }
        std::vector<int> starts(cells + 1);
        double sum = 0;
        for (int c = 0; c < cells; c++) sum += density[c], starts[c + 1] = static_cast<int>(sum / all * n + 0.5);
        starts[cells] = static_cast<int>(n);
        std::vector<float4> particles(n);
        for (int c = 0; c < cells; c++)
            for (int i = starts[c]; i < starts[c + 1]; i++) {
                const unsigned draw = hash(i), more = hash(draw + 5u);
                particles[i] = make_float4(c % EDGE + (draw & 0xfff) / 4096.0f, c / EDGE % EDGE + (draw >> 12 & 0xfff) / 4096.0f, c / (EDGE * EDGE) + (more & 0xfff) / 4096.0f, 0.5f + (more >> 12 & 0xfff) / 8192.0f);
            }
        const float4 *at = b.copy(particles);
        const int *start = b.copy(starts), count = static_cast<int>(n);
        float *charge = b.output<float>(cells, true);
        return {{"flawed", launch(deposit, blocks(n, 256), 256, 0, at, count, charge)}, {"joined", launch(deposit_joined, blocks(n, 256), 256, 0, at, count, charge)},
            {"cells", launch(deposit_cells, cells / 32, 256, 0, at, start, charge)}};
    });

}  // namespace plasma

// --- spectra of a radar's pulses ---

namespace radar {

constexpr int POINTS = 1024;

enum class Roots { PRECISE, TABLE, FAST };

__device__ __forceinline__ float2 turned(float2 v, float sine, float cosine) { return make_float2(v.x * cosine - v.y * sine, v.x * sine + v.y * cosine); }

template <Roots ROOTS>
__device__ __forceinline__ float2 twiddled(float2 v, int k, int half, const float2 *table) {
    if (ROOTS == Roots::TABLE) {
        const float2 root = __ldg(table + half + k);
        return turned(v, root.y, root.x);
    }
    const float angle = __fdividef(-3.14159265358979f, static_cast<float>(half)) * k;
    float sine, cosine;
    if (ROOTS == Roots::PRECISE) sincosf(angle, &sine, &cosine);
    else __sincosf(angle, &sine, &cosine);
    return turned(v, sine, cosine);
}

// One pulse a block, radix two, from one buffer into the other and back.
template <Roots ROOTS>
__global__ void __launch_bounds__(POINTS / 2) spectrum(const float2 *pulses, float2 *spectra, const float2 *table) {
    __shared__ float2 buffers[2][POINTS];
    const int j = threadIdx.x;
    const size_t first = static_cast<size_t>(blockIdx.x) * POINTS;
    buffers[0][j] = pulses[first + j];
    buffers[0][j + POINTS / 2] = pulses[first + j + POINTS / 2];
    int from = 0;
#pragma unroll 1
    for (int half = 1; half < POINTS; half *= 2, from ^= 1) {
        __syncthreads();
        const int k = j & (half - 1), to = 2 * j - k;
        const float2 a = buffers[from][j], b = twiddled<ROOTS>(buffers[from][j + POINTS / 2], k, half, table);
        buffers[from ^ 1][to] = make_float2(a.x + b.x, a.y + b.y);
        buffers[from ^ 1][to + half] = make_float2(a.x - b.x, a.y - b.y);
    }
    __syncthreads();
    spectra[first + j] = buffers[from][j];
    spectra[first + j + POINTS / 2] = buffers[from][j + POINTS / 2];
}

Study pulses("radar_spectra_sine_and_cosine_a_butterfly", "radar", 16384, "Fourier transforms of 16384 pulses of 1024 complex samples",
    "each butterfly computes the sine and cosine of its angle by the precise function",
    {{"table", "roots of unity from a table, stage by stage", {"expensive_math"}}, {"fast", "the hardware's sine and cosine: all angles are within half a turn", {"expensive_math"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float2> roots(POINTS);
        for (int half = 1; half < POINTS; half *= 2)
            for (int k = 0; k < half; k++) roots[half + k] = make_float2(std::cos(3.14159265358979 * k / half), -std::sin(3.14159265358979 * k / half));
        const float2 *table = b.copy(roots), *pulses = reinterpret_cast<const float2 *>(b.random<float>(2 * n * POINTS));
        float2 *spectra = reinterpret_cast<float2 *>(b.output<float>(2 * n * POINTS));
        return {{"flawed", launch(spectrum<Roots::PRECISE>, n, POINTS / 2, 0, pulses, spectra, table)}, {"table", launch(spectrum<Roots::TABLE>, n, POINTS / 2, 0, pulses, spectra, table)},
            {"fast", launch(spectrum<Roots::FAST>, n, POINTS / 2, 0, pulses, spectra, table)}};
    });

}  // namespace radar

// --- heat sinks into the sea: implicit mixing of each water column ---

namespace sea {

constexpr int LEVELS = 64;

struct Water {
    const float *heat, *mixing;  // mixing: diffusivity dt / dz^2 at the top of each level
    float *scratch, *mixed;
    int columns;
};

// Thomas' algorithm: heat and mixing of a level, and where scratch and result of a level lie.
template <typename Heat, typename Mixing, typename Place>
__device__ __forceinline__ void mix(Heat heat, Mixing mixing, float *scratch, float *mixed, Place at) {
    float upper = 0.0f, ratio = 0.0f, value = 0.0f;
#pragma unroll 8
    for (int k = 0; k < LEVELS; k++) {
        const float lower = k + 1 < LEVELS ? mixing(k + 1) : 0.0f;
        const float inverse = __fdividef(1.0f, 1.0f + upper * (1.0f - ratio) + lower);
        value = (heat(k) + upper * value) * inverse;
        ratio = lower * inverse;
        scratch[at(k)] = ratio;
        mixed[at(k)] = value;
        upper = lower;
    }
    for (int k = LEVELS - 8; k >= 0; k -= 8) {
        float values[8], ratios[8];
#pragma unroll
        for (int j = 0; j < 8; j++) values[j] = mixed[at(k + j)], ratios[j] = scratch[at(k + j)];
#pragma unroll
        for (int j = 7; j >= 0; j--) mixed[at(k + j)] = value = values[j] + ratios[j] * value;
    }
}

// A thread a column of `w`, level k at at(k).
template <typename Place>
__device__ __forceinline__ void mix_column(const Water &w, Place at) {
    mix([=](int k) { return __ldg(w.heat + at(k)); }, [=](int k) { return __ldg(w.mixing + at(k)); }, w.scratch, w.mixed, at);
}

// Its levels next to each other.
__global__ void __launch_bounds__(128) mix_columns(Water w) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < w.columns) mix_column(w, [=](int k) { return column * LEVELS + k; });
}

// A level's columns next to each other.
__global__ void __launch_bounds__(128) mix_levels(Water w) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < w.columns) mix_column(w, [=](int k) { return k * w.columns + column; });
}

// Columns as they lie, brought to shared memory and back together.
__global__ void __launch_bounds__(64) mix_staged(Water w) {
    __shared__ float heat[64][LEVELS + 1], mixing[64][LEVELS + 1];
    const size_t first = static_cast<size_t>(blockIdx.x) * 64 * LEVELS;
#pragma unroll 8
    for (int k = 0; k < 64; k++) {
        heat[k][threadIdx.x] = w.heat[first + k * LEVELS + threadIdx.x];
        mixing[k][threadIdx.x] = w.mixing[first + k * LEVELS + threadIdx.x];
    }
    __syncthreads();
    // what has been read is not needed any more
    float *own = heat[threadIdx.x], *ratios = mixing[threadIdx.x];
    mix([=](int k) { return own[k]; }, [=](int k) { return ratios[k]; }, ratios, own, [](int k) { return k; });
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < 64; k++) w.mixed[first + k * LEVELS + threadIdx.x] = heat[k][threadIdx.x];
}

__global__ void turn(const float *from, float *to, int columns) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i % LEVELS * columns + i / LEVELS];
}

__global__ void turn_back(const float *from, float *to, int columns) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i % LEVELS * columns + i / LEVELS] = from[i];
}

Study mixing("sea_mixing_levels_next_to_each_other", "oceanography", 512 * 512, "implicit vertical mixing of heat in 262144 columns of 64 levels",
    "a thread walks down a column whose levels lie next to each other, so its neighbours are 256 bytes away",
    {{"levels", "fields stored level by level", {"uncoalesced_access"}}, {"staged", "64 columns at a time brought to shared memory row by row", {"uncoalesced_access", "redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        const int columns = static_cast<int>(n);
        const size_t count = n * LEVELS;
        const float *heat = b.random<float>(count, 2.0, 24.0), *mixing = b.random<float>(count, 0.0, 3.0);
        float *by_level_heat = b.allocate<float>(count), *by_level_mixing = b.allocate<float>(count), *by_level = b.allocate<float>(count), *scratch = b.allocate<float>(count);
        float *mixed = b.output<float>(count);
        // the same numbers, level by level: a transposition of columns x levels
        launch(turn_back, blocks(count, 256), 256, 0, heat, by_level_heat, columns)();
        launch(turn_back, blocks(count, 256), 256, 0, mixing, by_level_mixing, columns)();
        return {{"flawed", launch(mix_columns, blocks(n, 128), 128, 0, Water{heat, mixing, scratch, mixed, columns})},
            {"levels", launch(mix_levels, blocks(n, 128), 128, 0, Water{by_level_heat, by_level_mixing, scratch, by_level, columns}), {}, 1, launch(turn, blocks(count, 256), 256, 0, by_level, mixed, columns)},
            {"staged", launch(mix_staged, blocks(n, 64), 64, 0, Water{heat, mixing, scratch, mixed, columns})}};
    });

}  // namespace sea

// --- how volatile each share is ---

namespace shares_of_companies {

constexpr float DECAY = 0.94f;
constexpr int WARM = 192;  // ticks after which the start is forgotten
constexpr int SIDE = 16, PARTS = 64;

struct Market {
    const float *returns;  // [tick][share]
    const float *first;    // variances to begin with
    float *volatility;     // [tick][share], of a year
    int ticks, shares;
};
__device__ __forceinline__ float update(float variance, float r) { return DECAY * variance + (1.0f - DECAY) * r * r; }
__device__ __forceinline__ float yearly(float variance) {
    const float of_year = 252.0f * variance;
    return of_year * rsqrtf(of_year);
}

__global__ void ewma(Market m) {
    const int share = blockIdx.x * blockDim.x + threadIdx.x;
    if (share >= m.shares) return;
    float variance = m.first[share];
#pragma unroll 8
    for (int t = 0; t < m.ticks; t++) {
        variance = update(variance, __ldg(m.returns + t * m.shares + share));
        m.volatility[t * m.shares + share] = yearly(variance);
    }
}

// Each part of the time on its own, after a run over what came just before.
__global__ void ewma_warmed(Market m, int length) {
    const int share = blockIdx.x * blockDim.x + threadIdx.x;
    if (share >= m.shares) return;
    const int begin = blockIdx.y * length, end = min(begin + length, m.ticks), start = max(begin - WARM, 0);
    float variance = m.first[share];
#pragma unroll 8
    for (int t = start; t < begin; t++) variance = update(variance, __ldg(m.returns + t * m.shares + share));
#pragma unroll 8
    for (int t = begin; t < end; t++) {
        variance = update(variance, __ldg(m.returns + t * m.shares + share));
        m.volatility[t * m.shares + share] = yearly(variance);
    }
}

// A block takes sixteen shares, its threads parts of the time: what each part adds first, then all with what came before.
__global__ void __launch_bounds__(SIDE *PARTS) ewma_carried(Market m) {
    __shared__ float carried[PARTS][SIDE];
    const int share = blockIdx.x * SIDE + threadIdx.x, length = m.ticks / PARTS;
    const int begin = threadIdx.y * length;
    float variance = 0.0f;
#pragma unroll 8
    for (int t = begin; t < begin + length; t++) variance = update(variance, __ldg(m.returns + t * m.shares + share));
    carried[threadIdx.y][threadIdx.x] = variance;
    __syncthreads();
    if (threadIdx.y == 0) {
        const float kept = powf(DECAY, static_cast<float>(length));
        float before = m.first[share];
        for (int part = 0; part < PARTS; part++) {
            const float added = carried[part][threadIdx.x];
            carried[part][threadIdx.x] = before;
            before = kept * before + added;
        }
    }
    __syncthreads();
    variance = carried[threadIdx.y][threadIdx.x];
#pragma unroll 8
    for (int t = begin; t < begin + length; t++) {
        variance = update(variance, __ldg(m.returns + t * m.shares + share));
        m.volatility[t * m.shares + share] = yearly(variance);
    }
}

Study market("market_volatility_a_thread_a_share", "finance", 8192, "exponentially weighted volatility of 8192 shares at each of 4096 ticks",
    "a thread a share in blocks of 256 is 32 blocks, each of which walks through all ticks",
    {{"warmed", "sixteen parts of the time side by side, each begun 192 ticks early", {"small_grid"}}, {"carried", "blocks of sixteen shares whose threads take parts of the time, carried over between them", {"small_grid"}}},
    [](Buffers &b, long n) -> Sides {
        const int ticks = 4096, shares = static_cast<int>(n);
        const size_t count = static_cast<size_t>(ticks) * shares;
        const float *returns = b.random<float>(count, -0.02, 0.02), *first = b.random<float>(shares, 0.0001, 0.0004);
        const Market m{returns, first, b.output<float>(count), ticks, shares};
        return {{"flawed", launch(ewma, blocks(n, 256), 256, 0, m)}, {"warmed", launch(ewma_warmed, dim3(blocks(n, 256), 16), 256, 0, m, ticks / 16)},
            {"carried", launch(ewma_carried, blocks(n, SIDE), dim3(SIDE, PARTS), 0, m)}};
    });

}  // namespace shares_of_companies

// --- options on an average, volatility at random too ---

namespace heston {

struct Model {
    float spot, strike, rate, variance, reversion, mean, wobble, correlation;
    int steps;
};

__device__ __forceinline__ float uniform(unsigned bits) { return (bits + 0.5f) * 2.3283064e-10f; }
// Two independent normal numbers for a path and a step.
__device__ __forceinline__ float2 normals(unsigned path, unsigned step) {
    const unsigned a = hash(path * 0x9e3779b9u + step), b = hash(a ^ 0x85ebca6bu);
    const float radius = sqrtf(-2.0f * __logf(fminf(uniform(a), 0.99999994f)));
    float sine, cosine;
    __sincosf(6.2831853f * uniform(b) - 3.1415927f, &sine, &cosine);
    return make_float2(radius * cosine, radius * sine);
}

// REAL: of a step; SUM: of the average.
template <typename REAL, typename SUM>
__global__ void __launch_bounds__(256) average_option(Model m, int paths, float *payoffs) {
    const int path = blockIdx.x * blockDim.x + threadIdx.x;
    if (path >= paths) return;
    const REAL dt = REAL(1) / m.steps, root = sqrt(dt), rest = sqrt(REAL(1) - REAL(m.correlation) * m.correlation);
    const REAL half = REAL(0.5), rate = m.rate, reversion = m.reversion, mean = m.mean, wobble = m.wobble, correlation = m.correlation;
    REAL price = m.spot, variance = m.variance;
    SUM sum = 0;
    for (int step = 0; step < m.steps; step++) {
        const float2 z = normals(path, step);
        const REAL first = z.x, second = correlation * first + rest * REAL(z.y);
        const REAL positive = variance > 0 ? variance : REAL(0), shock = sqrt(positive) * root;
        price *= exp((rate - half * positive) * dt + shock * first);
        variance += reversion * (mean - positive) * dt + wobble * shock * second;
        sum += price;
    }
    const float average = static_cast<float>(sum / m.steps);
    payoffs[path] = fmaxf(average - m.strike, 0.0f) * __expf(-m.rate);
}

Study option("average_option_steps_in_double", "finance", 1 << 18, "payoffs of an option on an average along 262144 paths of 252 days, Heston's model",
    "prices, variances and the sum are kept in double precision, exponential and root included, though normals are single",
    {{"single", "all in single precision", {"double_precision"}}, {"mixed", "steps in single precision, only the sum in double", {"double_precision"}}},
    [](Buffers &b, long n) -> Sides {
        const Model m{100.0f, 98.0f, 0.03f, 0.04f, 2.0f, 0.04f, 0.4f, -0.6f, 252};
        float *payoffs = b.output<float>(n);
        const unsigned grid = blocks(n, 256);
        const int paths = static_cast<int>(n);
        return {{"flawed", launch(average_option<double, double>, grid, 256, 0, m, paths, payoffs)}, {"single", launch(average_option<float, float>, grid, 256, 0, m, paths, payoffs)},
            {"mixed", launch(average_option<float, double>, grid, 256, 0, m, paths, payoffs)}};
    });

}  // namespace heston

// --- grains of an alloy that grow and melt ---

namespace alloy {

struct Grid {
    int nx, ny, nz;
};
struct Material {
    float dt, width2, barrier, drive;
};

// From a phase and the sum of its six neighbours.
__device__ __forceinline__ float advanced(const Material &m, float phase, float around, float heat) {
    const float tilt = phase - 0.5f + m.drive * (1.0f - heat);
    return phase + m.dt * (m.width2 * (around - 6.0f * phase) + m.barrier * phase * (1.0f - phase) * tilt);
}

// The domain is periodic.
__global__ void __launch_bounds__(256) grow(Grid g, Material m, const float *__restrict__ phase, const float *__restrict__ heat, float *__restrict__ next) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.nx * g.ny * g.nz) return;
    const int x = i % g.nx, y = i / g.nx % g.ny, z = i / (g.nx * g.ny);
    const auto at = [&](int x, int y, int z) { return phase[(z * g.ny + y) * g.nx + x]; };
    const float around = at((x + 1) % g.nx, y, z) + at((x + g.nx - 1) % g.nx, y, z) + at(x, (y + 1) % g.ny, z) +
        at(x, (y + g.ny - 1) % g.ny, z) + at(x, y, (z + 1) % g.nz) + at(x, y, (z + g.nz - 1) % g.nz);
    next[i] = advanced(m, phase[i], around, heat[i]);
}

// Three coordinates from the launch, and a comparison at each face.
__global__ void __launch_bounds__(256) grow_boxes(Grid g, Material m, const float *__restrict__ phase, const float *__restrict__ heat, float *__restrict__ next) {
    const int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z;
    if (x >= g.nx || y >= g.ny) return;
    const int row = g.nx, plane = g.nx * g.ny, i = z * plane + y * row + x;
    const int east = x + 1 < g.nx ? i + 1 : i + 1 - row, west = x > 0 ? i - 1 : i - 1 + row;
    const int north = y + 1 < g.ny ? i + row : i + row - plane, south = y > 0 ? i - row : i - row + plane;
    const int above = z + 1 < g.nz ? i + plane : i + plane - plane * g.nz, below = z > 0 ? i - plane : i - plane + plane * g.nz;
    const float around = phase[east] + phase[west] + phase[north] + phase[south] + phase[above] + phase[below];
    next[i] = advanced(m, phase[i], around, heat[i]);
}

// A divisor with its reciprocal, for numbers below 2^31.
struct Divisor {
    unsigned value, reciprocal, shift;
    explicit Divisor(unsigned value) : value(value), shift(0) {
        while ((1ull << shift) < value) shift++;
        reciprocal = static_cast<unsigned>((1ull << 32) * ((1ull << shift) - value) / value + 1);
    }
    __device__ __forceinline__ unsigned quotient(unsigned n) const { return (__umulhi(n, reciprocal) + n) >> shift; }
    __device__ __forceinline__ unsigned rest(unsigned n) const { return n - quotient(n) * value; }
};
struct Divisors {
    Divisor x, y, z, plane;
};
__global__ void __launch_bounds__(256) grow_reciprocals(Divisors g, Material m, const float *__restrict__ phase, const float *__restrict__ heat, float *__restrict__ next) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= g.plane.value * g.z.value) return;
    const unsigned x = g.x.rest(i), y = g.y.rest(g.x.quotient(i)), z = g.plane.quotient(i);
    const auto at = [&](unsigned x, unsigned y, unsigned z) { return phase[(z * g.y.value + y) * g.x.value + x]; };
    const float around = at(g.x.rest(x + 1), y, z) + at(g.x.rest(x + g.x.value - 1), y, z) + at(x, g.y.rest(y + 1), z) +
        at(x, g.y.rest(y + g.y.value - 1), z) + at(x, y, g.z.rest(z + 1)) + at(x, y, g.z.rest(z + g.z.value - 1));
    next[i] = advanced(m, phase[i], around, heat[i]);
}

Study grains("alloy_grains_remainders_for_neighbours", "materials", 240, "a step of a phase field on 300 x 250 x 240 periodic points",
    "a flat index is taken apart by division, and each neighbour's coordinate is a remainder by an extent known at run time",
    {{"boxes", "a launch of boxes, comparisons at the faces", {"integer_arithmetic"}}, {"reciprocals", "the same remainders by products with reciprocals", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        const Grid g{300, 250, static_cast<int>(n)};
        const Divisors d{Divisor(g.nx), Divisor(g.ny), Divisor(g.nz), Divisor(g.nx * g.ny)};
        const Material m{0.1f, 0.8f, 4.0f, 0.3f};
        const size_t count = static_cast<size_t>(g.nx) * g.ny * g.nz;
        const float *phase = b.random<float>(count, 0.0, 1.0), *heat = b.random<float>(count, 0.0, 1.0);
        float *next = b.output<float>(count);
        return {{"flawed", launch(grow, blocks(count, 256), 256, 0, g, m, phase, heat, next)},
            {"boxes", launch(grow_boxes, dim3(blocks(g.nx, 64), blocks(g.ny, 4), g.nz), dim3(64, 4), 0, g, m, phase, heat, next)},
            {"reciprocals", launch(grow_reciprocals, blocks(count, 256), 256, 0, d, m, phase, heat, next)}};
    });

}  // namespace alloy

// --- attraction between near stars ---

namespace galaxy {

constexpr int SPAN = 16, GROUP = 64;  // cells of an edge; stars at a time

struct Stars {
    const float4 *stars;  // cell by cell; w: mass
    const int *starts;
    float4 *pull;
};

__device__ __forceinline__ int cell_at(int x, int y, int z) { return (z * SPAN + y) * SPAN + x; }

// What pulls at stars `first` ... `first + GROUP - 1` of a cell: those of the 27 cells around it.
__device__ void pull_group(const Stars &s, int cell, int first, float4 *near) {
    const int x = cell % SPAN, y = cell / SPAN % SPAN, z = cell / (SPAN * SPAN);
    const int own = first + threadIdx.x, end = s.starts[cell + 1];
    const float4 star = own < end ? s.stars[own] : make_float4(0, 0, 0, 0);
    float4 sum = make_float4(0, 0, 0, 0);
    for (int dz = -1; dz <= 1; dz++)
        for (int dy = -1; dy <= 1; dy++) {
            if (y + dy < 0 || y + dy >= SPAN || z + dz < 0 || z + dz >= SPAN) continue;
            // three cells in a row follow each other in memory
            const int from = s.starts[cell_at(max(x - 1, 0), y + dy, z + dz)], to = s.starts[cell_at(min(x + 1, SPAN - 1), y + dy, z + dz) + 1];
            for (int base = from; base < to; base += GROUP) {
                const int count = min(GROUP, to - base);
                __syncthreads();
                if (threadIdx.x < count) near[threadIdx.x] = s.stars[base + threadIdx.x];
                __syncthreads();
#pragma unroll 8
                for (int k = 0; k < count; k++) {
                    const float4 other = near[k];
                    const float ax = other.x - star.x, ay = other.y - star.y, az = other.z - star.z;
                    const float r2 = ax * ax + ay * ay + az * az;
                    const float inverse = rsqrtf(r2 + 1e-3f);
                    const float weight = other.w * fmaxf(1.0f - r2, 0.0f);  // fades at one cell's width
                    const float f = weight * inverse * inverse * inverse;
                    sum.x += f * ax, sum.y += f * ay, sum.z += f * az, sum.w += weight * inverse;
                }
            }
        }
    if (own < end) s.pull[own] = sum;
}

// A cell a block.
__global__ void __launch_bounds__(GROUP) attract(Stars s) {
    __shared__ float4 near[GROUP];
    for (int first = s.starts[blockIdx.x]; first < s.starts[blockIdx.x + 1]; first += GROUP) pull_group(s, blockIdx.x, first, near);
}
// The fullest cells first.
__global__ void __launch_bounds__(GROUP) attract_ordered(Stars s, const int *order) {
    __shared__ float4 near[GROUP];
    const int cell = order[blockIdx.x];
    for (int first = s.starts[cell]; first < s.starts[cell + 1]; first += GROUP) pull_group(s, cell, first, near);
}
// As many blocks for a cell as it has groups.
__global__ void __launch_bounds__(GROUP) attract_groups(Stars s, const int2 *groups) {
    __shared__ float4 near[GROUP];
    const int2 group = groups[blockIdx.x];
    pull_group(s, group.x, group.y, near);
}

Study clusters("galaxy_pull_of_crowded_cells", "astrophysics", 4096, "short-range attraction among the stars of 4096 cells and their neighbours, a dozen of them cores of clusters",
    "a block a cell, and the cores of clusters hold ten times the stars of others",
    {{"groups", "a block for each group of 64 stars of a cell", {"workload_imbalance"}}, {"ordered", "the fullest cells first", {"workload_imbalance"}}},
    [](Buffers &b, long n) -> Sides {
        const int cells = static_cast<int>(n);
        std::vector<int> starts(cells + 1), order(cells), sizes(cells);
        for (int c = 0; c < cells; c++) sizes[c] = 34 + hash(c + 11u) % 28;
        for (unsigned k = 0; k < 12; k++) {
            const int core = hash(k + 500u) % cells, x = core % SPAN;
            sizes[core] = 400 + hash(k + 900u) % 160;
            if (x > 0) sizes[core - 1] = std::max(sizes[core - 1], 110);
            if (x + 1 < SPAN) sizes[core + 1] = std::max(sizes[core + 1], 120);
        }
        for (int c = 0; c < cells; c++) starts[c + 1] = starts[c] + sizes[c];
        std::vector<float4> stars(starts[cells]);
        std::vector<int2> groups;
        const auto chance = [](unsigned seed) { return hash(seed) / 4294967296.0f; };
        for (int c = 0; c < cells; c++)
            for (int i = starts[c]; i < starts[c + 1]; i++) {
                stars[i] = make_float4(c % SPAN + chance(4 * i), c / SPAN % SPAN + chance(4 * i + 1), c / (SPAN * SPAN) + chance(4 * i + 2), 0.5f + chance(4 * i + 3));
                if ((i - starts[c]) % GROUP == 0) groups.push_back(make_int2(c, i));
            }
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int c) { return sizes[a] > sizes[c]; });
        const float4 *at = b.copy(stars);
        const int *start = b.copy(starts), *fullest = b.copy(order);
        const int2 *group = b.copy(groups);
        const Stars s{at, start, reinterpret_cast<float4 *>(b.output<float>(4 * stars.size()))};
        return {{"flawed", launch(attract, cells, GROUP, 0, s)}, {"groups", launch(attract_groups, static_cast<unsigned>(groups.size()), GROUP, 0, s, group)},
            {"ordered", launch(attract_ordered, cells, GROUP, 0, s, fullest)}};
    });

}  // namespace galaxy

// --- spikes taken out of a telescope's record ---

namespace record {

constexpr int WIDEST = 31, WIDTH = 11, RUN = 16, THREADS = 128;  // WIDTH: of the versions for one width

// Samples beyond the ends are those at the ends.
__device__ __forceinline__ float sample(const float *samples, int count, int i) { return samples[min(max(i, 0), count - 1)]; }

__global__ void __launch_bounds__(256) despike(const float *__restrict__ samples, float *__restrict__ clean, int count, int width) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float window[WIDEST];
    for (int k = 0; k < width; k++) {
        const float value = sample(samples, count, i - width / 2 + k);
        int j = k;
        while (j > 0 && window[j - 1] > value) {
            window[j] = window[j - 1];
            j--;
        }
        window[j] = value;
    }
    clean[i] = window[width / 2];
}

__device__ __forceinline__ void order(float &a, float &b) {
    const float low = fminf(a, b);
    b = fmaxf(a, b);
    a = low;
}

// The least and the greatest of those at hand cannot be the median: both go, one more comes.
__global__ void __launch_bounds__(256) despike_selected(const float *__restrict__ samples, float *__restrict__ clean, int count) {
    constexpr int HELD = WIDTH / 2 + 2;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float held[HELD];
#pragma unroll
    for (int k = 0; k < HELD; k++) held[k] = sample(samples, count, i - WIDTH / 2 + k);
#pragma unroll
    for (int size = HELD; size > 2; size--) {
#pragma unroll
        for (int k = 1; k < size; k++) order(held[0], held[k]);
#pragma unroll
        for (int k = 1; k < size - 1; k++) order(held[k], held[size - 1]);
        if (size > 3) held[0] = sample(samples, count, i - WIDTH / 2 + HELD + (HELD - size));
    }
    clean[i] = held[1];
}

// A thread goes along a run of samples with the window sorted in registers: the oldest leaves, the next is put in its place.
__global__ void __launch_bounds__(THREADS) despike_runs(const float *__restrict__ samples, float *__restrict__ clean, int count) {
    __shared__ float near[(THREADS * RUN + WIDTH - 1) / RUN * (RUN + 1) + RUN];  // a word of padding a run
    const auto place = [](unsigned k) { return k + k / RUN; };
    const int first = blockIdx.x * THREADS * RUN;
    for (int k = threadIdx.x; k < THREADS * RUN + WIDTH - 1; k += THREADS) near[place(k)] = sample(samples, count, first - WIDTH / 2 + k);
    __syncthreads();
    const int begin = threadIdx.x * RUN;
    float sorted[WIDTH], medians[RUN];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) {
        sorted[k] = near[place(begin + k)];
#pragma unroll
        for (int j = 0; j < k; j++) order(sorted[j], sorted[k]);
    }
    medians[0] = sorted[WIDTH / 2];
#pragma unroll
    for (int k = 1; k < RUN; k++) {
        const float oldest = near[place(begin + k - 1)];
#pragma unroll
        for (int j = 0; j < WIDTH - 1; j++) sorted[j] = sorted[j] >= oldest ? sorted[j + 1] : sorted[j];
        sorted[WIDTH - 1] = near[place(begin + k + WIDTH - 1)];
#pragma unroll
        for (int j = 0; j < WIDTH - 1; j++) order(sorted[j], sorted[WIDTH - 1]);
        medians[k] = sorted[WIDTH / 2];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < RUN; k++) near[place(begin + k)] = medians[k];
    __syncthreads();
    for (int k = threadIdx.x; k < THREADS * RUN && first + k < count; k += THREADS) clean[first + k] = near[place(k)];
}

Study telescope("telescope_despike_sorts_a_local_array", "radio astronomy", 1 << 24, "median of eleven samples around each of 16777216",
    "each thread sorts its eleven samples by insertion in an array indexed at run time, which lies in local memory",
    {{"selected", "least and greatest dropped in turn, all in registers", {"local_memory"}},
        {"runs", "runs of sixteen samples a thread, the window kept sorted in registers", {"local_memory"}}},
    [](Buffers &b, long n) -> Sides {
        std::vector<float> samples(n);
        for (long i = 0; i < n; i++) {
            const unsigned draw = hash(static_cast<unsigned>(i));
            samples[i] = 0.001f * ((i >> 8) % 300) + (draw & 0xffff) / 65536.0f + (draw >> 24 < 6 ? 20.0f : 0.0f);
        }
        const float *record = b.copy(samples);
        float *clean = b.output<float>(n);
        const int count = static_cast<int>(n);
        return {{"flawed", launch(despike, blocks(n, 256), 256, 0, record, clean, count, WIDTH)}, {"selected", launch(despike_selected, blocks(n, 256), 256, 0, record, clean, count)},
            {"runs", launch(despike_runs, blocks(n, THREADS * RUN), THREADS, 0, record, clean, count)}};
    });

}  // namespace record

// --- without a flaw: clusters of stars, all pairs ---

namespace ensemble {

constexpr int BODIES = 4096, TILE = 256;  // bodies of a cluster; a block has two for each of its threads

struct Star {
    float3 at, pull;
};

__device__ __forceinline__ void attracted(Star &star, const float4 &other) {
    const float dx = other.x - star.at.x, dy = other.y - star.at.y, dz = other.z - star.at.z;
    float inverse;
    const float r2 = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 1e-4f)));
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(r2));
    const float f = other.w * inverse * (inverse * inverse);
    star.pull.x = fmaf(f, dx, star.pull.x), star.pull.y = fmaf(f, dy, star.pull.y), star.pull.z = fmaf(f, dz, star.pull.z);
}

__global__ void __launch_bounds__(TILE, 4) all_pairs(const float4 *__restrict__ bodies, float4 *__restrict__ pulls) {
    __shared__ float4 tile[TILE];
    const float4 *cluster = bodies + static_cast<size_t>(blockIdx.y) * BODIES;
    const int first = blockIdx.x * 2 * TILE + threadIdx.x;
    const float4 a = cluster[first], b = cluster[first + TILE];
    Star one{make_float3(a.x, a.y, a.z), make_float3(0, 0, 0)}, two{make_float3(b.x, b.y, b.z), make_float3(0, 0, 0)};
    float4 next = cluster[threadIdx.x];
    for (int base = 0; base < BODIES; base += TILE) {
        __syncthreads();
        tile[threadIdx.x] = next;
        __syncthreads();
        if (base + TILE < BODIES) next = cluster[base + TILE + threadIdx.x];
#pragma unroll 16
        for (int k = 0; k < TILE; k++) {
            const float4 other = tile[k];
            attracted(one, other);
            attracted(two, other);
        }
    }
    float4 *to = pulls + static_cast<size_t>(blockIdx.y) * BODIES + first;
    to[0] = make_float4(one.pull.x, one.pull.y, one.pull.z, a.w);
    to[TILE] = make_float4(two.pull.x, two.pull.y, two.pull.z, b.w);
}

Study bodies("sound_clusters_of_stars_all_pairs", "astrophysics", 66, "attraction among all 4096 stars of each of 66 clusters, two stars a thread", "", {},
    [](Buffers &b, long n) -> Sides {
        const float4 *bodies = reinterpret_cast<const float4 *>(b.random<float>(4 * n * BODIES, 0.0, 1.0));
        float4 *pulls = reinterpret_cast<float4 *>(b.output<float>(4 * n * BODIES));
        return {{"sound", launch(all_pairs, dim3(BODIES / (2 * TILE), n), TILE, 0, bodies, pulls)}};
    });

}  // namespace ensemble

// --- without a flaw: ions in a trap pushed through its fields ---

namespace trap {

struct Fields {
    float half_charge, magnetic, gradient, dt;  // half_charge: q dt / (2 m)
};

// Boris' scheme: half a kick, a turn about the magnetic axis, half a kick, a drift.
__device__ __forceinline__ void push(const Fields &f, float4 &at, float4 &speed) {
    const float kick_x = f.half_charge * f.gradient * at.x, kick_y = f.half_charge * f.gradient * at.y, kick_z = -2.0f * f.half_charge * f.gradient * at.z;
    const float vx = speed.x + kick_x, vy = speed.y + kick_y;
    const float t = f.half_charge * f.magnetic, s = 2.0f * t * __fdividef(1.0f, 1.0f + t * t);
    const float turned_x = vx + vy * t, turned_y = vy - vx * t;
    speed.x = vx + turned_y * s + kick_x;
    speed.y = vy - turned_x * s + kick_y;
    speed.z += 2.0f * kick_z;
    at.x += speed.x * f.dt, at.y += speed.y * f.dt, at.z += speed.z * f.dt;
}

// Two ions a thread, so that four loads are on their way.
__global__ void __launch_bounds__(256) push_ions(Fields f, float4 *__restrict__ places, float4 *__restrict__ speeds) {
    const size_t i = static_cast<size_t>(blockIdx.x) * 512 + threadIdx.x;
    float4 at = places[i], more_at = places[i + 256], speed = speeds[i], more_speed = speeds[i + 256];
    push(f, at, speed);
    push(f, more_at, more_speed);
    places[i] = at, places[i + 256] = more_at;
    speeds[i] = speed, speeds[i + 256] = more_speed;
}

Study ions("sound_ions_pushed_through_a_trap", "plasma physics", 1 << 23, "one step of 8388608 ions in a trap's fields, places and speeds in place", "", {},
    [](Buffers &b, long n) -> Sides {
        const Fields f{0.05f, 8.0f, 0.6f, 0.01f};
        const float *places = b.random<float>(4 * n), *speeds = b.random<float>(4 * n);
        float4 *at = reinterpret_cast<float4 *>(b.changed<float>(places, 4 * n)), *speed = reinterpret_cast<float4 *>(b.changed<float>(speeds, 4 * n));
        return {{"sound", launch(push_ions, blocks(n, 512), 256, 0, f, at, speed)}};
    });

}  // namespace trap

}  // namespace
