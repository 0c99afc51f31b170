// Pieces of flow solvers, molecular dynamics, atmosphere, terrain and mass spectra. Each kernel has one weakness and two ways out.
#include <cmath>
#include <random>

#include "../pairs/pair.cuh"

namespace {

// --- gradients of flow fields by least squares over the neighbours of a cell ---

constexpr int FIELDS = 5, NEIGHBOURS = 6;

struct Mesh {
    const float *x, *y, *z;
    const int *neighbours;  // [NEIGHBOURS][cells]
    int cells;
};

// The symmetric matrix of squared distances and the right-hand side of one field.
struct Moments {
    float xx = 0.f, xy = 0.f, xz = 0.f, yy = 0.f, yz = 0.f, zz = 0.f;

    __device__ void add(float w, float dx, float dy, float dz) {
        xx += w * dx * dx, xy += w * dx * dy, xz += w * dx * dz;
        yy += w * dy * dy, yz += w * dy * dz, zz += w * dz * dz;
    }
    // In place; the inverse is symmetric, too.
    __device__ void invert() {
        float a = yy * zz - yz * yz, b = xz * yz - xy * zz, c = xy * yz - xz * yy;
        float scale = 1.f / (xx * a + xy * b + xz * c);
        float d = xx * zz - xz * xz, e = xy * xz - xx * yz, f = xx * yy - xy * xy;
        xx = a * scale, xy = b * scale, xz = c * scale, yy = d * scale, yz = e * scale, zz = f * scale;
    }
    __device__ float3 times(float3 b) const {
        return make_float3(xx * b.x + xy * b.y + xz * b.z, xy * b.x + yy * b.y + yz * b.z, xz * b.x + yz * b.y + zz * b.z);
    }
};

__device__ float3 gradient_of(const Mesh &mesh, const float *field, int cell) {
    Moments matrix;
    float3 right = make_float3(0.f, 0.f, 0.f);
    float x = mesh.x[cell], y = mesh.y[cell], z = mesh.z[cell], here = field[cell];
    for (int k = 0; k < NEIGHBOURS; ++k) {
        int other = mesh.neighbours[k * mesh.cells + cell];
        float dx = mesh.x[other] - x, dy = mesh.y[other] - y, dz = mesh.z[other] - z;
        float w = 1.f / (dx * dx + dy * dy + dz * dz), change = w * (field[other] - here);
        matrix.add(w, dx, dy, dz);
        right.x += change * dx, right.y += change * dy, right.z += change * dz;
    }
    matrix.invert();
    return matrix.times(right);
}
__global__ void gradients(Mesh mesh, const float *fields, float *out) {
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= mesh.cells) return;
    for (int f = 0; f < FIELDS; ++f) {
        float3 g = gradient_of(mesh, fields + static_cast<size_t>(f) * mesh.cells, cell);
        float *to = out + static_cast<size_t>(3 * f) * mesh.cells + cell;
        to[0] = g.x, to[mesh.cells] = g.y, to[2 * mesh.cells] = g.z;
    }
}
__global__ void __launch_bounds__(128) gradients_together(Mesh mesh, const float *__restrict__ fields, float *__restrict__ out) {
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= mesh.cells) return;
    Moments matrix;
    float3 right[FIELDS];
    float here[FIELDS];
#pragma unroll
    for (int f = 0; f < FIELDS; ++f) right[f] = make_float3(0.f, 0.f, 0.f), here[f] = fields[static_cast<size_t>(f) * mesh.cells + cell];
    float x = mesh.x[cell], y = mesh.y[cell], z = mesh.z[cell];
#pragma unroll 2
    for (int k = 0; k < NEIGHBOURS; ++k) {
        int other = mesh.neighbours[k * mesh.cells + cell];
        float dx = mesh.x[other] - x, dy = mesh.y[other] - y, dz = mesh.z[other] - z;
        float w = 1.f / (dx * dx + dy * dy + dz * dz);
        matrix.add(w, dx, dy, dz);
#pragma unroll
        for (int f = 0; f < FIELDS; ++f) {
            float change = w * (fields[static_cast<size_t>(f) * mesh.cells + other] - here[f]);
            right[f].x += change * dx, right[f].y += change * dy, right[f].z += change * dz;
        }
    }
    matrix.invert();
#pragma unroll
    for (int f = 0; f < FIELDS; ++f) {
        float3 g = matrix.times(right[f]);
        float *to = out + static_cast<size_t>(3 * f) * mesh.cells + cell;
        to[0] = g.x, to[mesh.cells] = g.y, to[2 * mesh.cells] = g.z;
    }
}
// A cell is two vectors: its place and first field, its other fields.
__global__ void __launch_bounds__(128) gradients_of_records(const float4 *__restrict__ records, const int *__restrict__ neighbours, float *__restrict__ out, int cells) {
    int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) return;
    Moments matrix;
    float3 right[FIELDS];
#pragma unroll
    for (int f = 0; f < FIELDS; ++f) right[f] = make_float3(0.f, 0.f, 0.f);
    float4 place = records[2 * cell], rest = records[2 * cell + 1];
#pragma unroll 2
    for (int k = 0; k < NEIGHBOURS; ++k) {
        int other = neighbours[k * cells + cell];
        float4 there = records[2 * other], more = records[2 * other + 1];
        float dx = there.x - place.x, dy = there.y - place.y, dz = there.z - place.z;
        float w = 1.f / (dx * dx + dy * dy + dz * dz);
        matrix.add(w, dx, dy, dz);
        float changes[FIELDS] = {there.w - place.w, more.x - rest.x, more.y - rest.y, more.z - rest.z, more.w - rest.w};
#pragma unroll
        for (int f = 0; f < FIELDS; ++f) {
            float change = w * changes[f];
            right[f].x += change * dx, right[f].y += change * dy, right[f].z += change * dz;
        }
    }
    matrix.invert();
#pragma unroll
    for (int f = 0; f < FIELDS; ++f) {
        float3 g = matrix.times(right[f]);
        float *to = out + static_cast<size_t>(3 * f) * cells + cell;
        to[0] = g.x, to[cells] = g.y, to[2 * cells] = g.z;
    }
}

Study least_squares("least_squares_matrix_again_for_each_field", "HPC", 128, "gradients of five flow fields by least squares over six neighbours, 2097152 cells",
    "neighbours, distances and the inverse of the matrix are found anew for each field",
    {{"together", "one pass over the neighbours for all fields, one matrix", {"redundant_loads", "expensive_math"}},
        {"records", "the same, place and fields of a cell as two vectors of four", {"redundant_loads", "narrow_access"}}},
    [](Buffers &b, long side) -> Sides {
        std::mt19937 random(3);
        int n = static_cast<int>(side * side * side), s = static_cast<int>(side);
        auto unit = [&] { return static_cast<float>(random() % 65536) / 65536.f; };
        std::vector<float> places[3], fields(static_cast<size_t>(FIELDS) * n);
        std::vector<int> neighbours(static_cast<size_t>(NEIGHBOURS) * n);
        std::vector<float4> records(2 * static_cast<size_t>(n));
        for (float &value : fields) value = unit();
        for (auto &axis : places) axis.resize(n);
        for (int c = 0; c < n; ++c) {
            int at[3] = {c % s, c / s % s, c / s / s}, jump[3] = {1, s, s * s};
            for (int a = 0; a < 3; ++a) {
                places[a][c] = static_cast<float>(at[a]) + 0.3f * unit();
                neighbours[static_cast<size_t>(2 * a) * n + c] = at[a] > 0 ? c - jump[a] : c + jump[a];
                neighbours[static_cast<size_t>(2 * a + 1) * n + c] = at[a] < s - 1 ? c + jump[a] : c - jump[a];
            }
            records[2 * c] = make_float4(places[0][c], places[1][c], places[2][c], fields[c]);
            records[2 * c + 1] = make_float4(fields[n + c], fields[2l * n + c], fields[3l * n + c], fields[4l * n + c]);
        }
        Mesh mesh{b.copy(places[0]), b.copy(places[1]), b.copy(places[2]), b.copy(neighbours), n};
        float *values = b.copy(fields), *out = b.output<float>(3l * FIELDS * n);
        float4 *cells = b.copy(records);
        return {{"flawed", launch(gradients, blocks(n, 128), 128, 0, mesh, values, out)}, {"together", launch(gradients_together, blocks(n, 128), 128, 0, mesh, values, out)},
            {"records", launch(gradients_of_records, blocks(n, 128), 128, 0, cells, mesh.neighbours, out, n)}};
    });

// --- angles between bonds in a potential of three bodies ---

constexpr int MOST = 20;  // neighbours of an atom
constexpr float CUTOFF = 1.9f, SHARPNESS = 1.2f;

// Direction to a neighbour and how much it counts.
__device__ __forceinline__ float4 leg(float4 from, float4 to) {
    float dx = to.x - from.x, dy = to.y - from.y, dz = to.z - from.z;
    float r = sqrtf(dx * dx + dy * dy + dz * dz);
    float weight = r < CUTOFF ? expf(SHARPNESS / (r - CUTOFF)) : 0.f;
    return make_float4(dx / r, dy / r, dz / r, weight);
}
__device__ __forceinline__ float angle_energy(float4 a, float4 b) {
    float off = a.x * b.x + a.y * b.y + a.z * b.z + 1.f / 3.f;
    return a.w * b.w * off * off;
}
__global__ void three_body(const float4 *atoms, const int *counts, const int *list, float *energy, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 self = atoms[i];
    float sum = 0.f;
    for (int j = 1; j < counts[i]; ++j) {
        float4 first = leg(self, atoms[list[j * n + i]]);
        for (int k = 0; k < j; ++k) sum += angle_energy(first, leg(self, atoms[list[k * n + i]]));
    }
    energy[i] = sum;
}
__global__ void __launch_bounds__(64) three_body_shared(const float4 *__restrict__ atoms, const int *__restrict__ counts, const int *__restrict__ list, float *__restrict__ energy, int n) {
    __shared__ float4 legs[MOST][64];
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    float4 self = atoms[i];
    int count = counts[i];
    float sum = 0.f;
    for (int j = 0; j < count; ++j) {
        float4 mine = leg(self, atoms[list[j * n + i]]);
        for (int k = 0; k < j; ++k) sum += angle_energy(mine, legs[k][threadIdx.x]);
        legs[j][threadIdx.x] = mine;
    }
    energy[i] = sum;
}
// Lane j has the leg to neighbour j; `rows` holds the list atom by atom.
__global__ void three_body_warp(const float4 *__restrict__ atoms, const int *__restrict__ counts, const int *__restrict__ rows, float *__restrict__ energy, int n) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (i >= n) return;
    int count = counts[i];
    float4 mine = lane < count ? leg(atoms[i], atoms[rows[i * MOST + lane]]) : make_float4(0.f, 0.f, 0.f, 0.f);
    float sum = 0.f;
    for (int k = 0; k < count - 1; ++k) {
        float4 other = make_float4(__shfl_sync(~0u, mine.x, k), __shfl_sync(~0u, mine.y, k), __shfl_sync(~0u, mine.z, k), __shfl_sync(~0u, mine.w, k));
        if (lane > k) sum += angle_energy(mine, other);
    }
    sum = warp_sum(sum);
    if (lane == 0) energy[i] = sum;
}

Study bond_angles("bond_angles_second_leg_again_for_each_pair", "molecular dynamics", 64, "energies of three bodies of 262144 atoms with up to 18 neighbours",
    "direction and weight of the second neighbour are computed for every pair of neighbours, from memory on",
    {{"legs_in_shared", "each neighbour's direction and weight once, kept in shared memory", {"redundant_loads", "expensive_math"}},
        {"warp_an_atom", "a lane for each neighbour, directions handed round by shuffles", {"redundant_loads", "expensive_math"}}},
    [](Buffers &b, long side) -> Sides {
        std::mt19937 random(5);
        int s = static_cast<int>(side), n = s * s * s;
        std::vector<float4> atoms(n);
        std::vector<int> counts(n), list(static_cast<size_t>(MOST) * n), rows(static_cast<size_t>(MOST) * n);
        auto jitter = [&] { return static_cast<float>(random() % 1024) / 5120.f; };
        for (int i = 0; i < n; ++i) {
            int x = i % s, y = i / s % s, z = i / s / s;
            atoms[i] = make_float4(x + jitter(), y + jitter(), z + jitter(), 0.f);
            for (int d = 0; d < 27; ++d) {
                int dx = d % 3 - 1, dy = d / 3 % 3 - 1, dz = d / 9 - 1, far = dx * dx + dy * dy + dz * dz;
                if (far == 0 || far == 3 || x + dx < 0 || x + dx >= s || y + dy < 0 || y + dy >= s || z + dz < 0 || z + dz >= s) continue;
                int other = i + dx + s * (dy + s * dz);
                list[static_cast<size_t>(counts[i]) * n + i] = rows[static_cast<size_t>(i) * MOST + counts[i]] = other;
                ++counts[i];
            }
        }
        float4 *places = b.copy(atoms);
        int *number = b.copy(counts), *columns = b.copy(list), *by_atom = b.copy(rows);
        float *energy = b.output<float>(n);
        return {{"flawed", launch(three_body, blocks(n, 64), 64, 0, places, number, columns, energy, n)},
            {"legs_in_shared", launch(three_body_shared, blocks(n, 64), 64, 0, places, number, columns, energy, n)},
            {"warp_an_atom", launch(three_body_warp, blocks(32l * n, 128), 128, 0, places, number, by_atom, energy, n)}};
    });

// --- optical depths of the layers of an atmosphere ---

constexpr int QUADRATURE = 128, TEMPERATURES = 14, PRESSURES = 60;

// Where a layer lies between the entries of the table.
struct Place {
    int corner;
    float t, p;
};
__device__ __forceinline__ Place place_in_table(float pressure, float temperature) {
    float p = fminf(fmaxf(5.f * (11.6f - __logf(pressure)), 0.f), PRESSURES - 1.01f);
    float t = fminf(fmaxf((temperature - 160.f) / 15.f, 0.f), TEMPERATURES - 1.01f);
    int row = static_cast<int>(t), column = static_cast<int>(p);
    return {(row * PRESSURES + column) * QUADRATURE, t - row, p - column};
}
template <typename V>
__device__ __forceinline__ V between(V a, V b, float share);
template <>
__device__ __forceinline__ float between(float a, float b, float share) {
    return a + share * (b - a);
}
template <>
__device__ __forceinline__ float4 between(float4 a, float4 b, float share) {
    return make_float4(between(a.x, b.x, share), between(a.y, b.y, share), between(a.z, b.z, share), between(a.w, b.w, share));
}
template <typename V>
__device__ __forceinline__ V absorption(const V *table, Place place, int g) {
    constexpr int each = sizeof(V) / sizeof(float), column = QUADRATURE / each, row = PRESSURES * column;
    const V *corner = table + place.corner / each + g;
    return between(between(corner[0], corner[column], place.p), between(corner[row], corner[row + column], place.p), place.t);
}
__global__ void optical_depths(const float *pressure, const float *temperature, const float *amount, const float *table, const float *scattering, float *depth, int layers) {
    int layer = blockIdx.x * blockDim.x + threadIdx.x;
    if (layer >= layers) return;
    Place place = place_in_table(pressure[layer], temperature[layer]);
    float there = amount[layer];
    for (int g = 0; g < QUADRATURE; ++g) depth[static_cast<size_t>(layer) * QUADRATURE + g] = there * (absorption(table, place, g) + scattering[g]);
}
__global__ void __launch_bounds__(QUADRATURE) optical_depths_lanes(const float *__restrict__ pressure, const float *__restrict__ temperature, const float *__restrict__ amount,
    const float *__restrict__ table, const float *__restrict__ scattering, float *__restrict__ depth, int layers) {
    int g = threadIdx.x, end = min(layers, static_cast<int>(blockIdx.x + 1) * 16);
    float scattered = scattering[g];
#pragma unroll 4
    for (int layer = blockIdx.x * 16; layer < end; ++layer) {
        Place place = place_in_table(pressure[layer], temperature[layer]);
        depth[static_cast<size_t>(layer) * QUADRATURE + g] = amount[layer] * (absorption(table, place, g) + scattered);
    }
}
__global__ void optical_depths_vectors(const float *__restrict__ pressure, const float *__restrict__ temperature, const float *__restrict__ amount, const float4 *__restrict__ table,
    const float4 *__restrict__ scattering, float4 *__restrict__ depth, int layers) {
    int lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    float4 s = scattering[lane];
    for (int layer = 4 * warp; layer < min(layers, 4 * warp + 4); ++layer) {
        float4 a = absorption(table, place_in_table(pressure[layer], temperature[layer]), lane);
        float there = amount[layer];
        depth[layer * 32l + lane] = make_float4(there * (a.x + s.x), there * (a.y + s.y), there * (a.z + s.z), there * (a.w + s.w));
    }
}

Study gas_optics("gas_optics_layer_per_thread", "HPC", 1 << 18, "optical depths of 262144 layers of air at 128 points of the spectrum from a table of temperatures and pressures",
    "a thread takes a layer through all points: lanes read and write rows of 512 bytes apart",
    {{"point_a_lane", "a lane for each point of the spectrum, layer after layer", {"uncoalesced_access"}},
        {"four_points_a_lane", "a warp a layer, four points a lane", {"uncoalesced_access", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *pressure = b.random<float>(n, 2.0, 100000.0), *temperature = b.random<float>(n, 165.0, 330.0), *amount = b.random<float>(n, 0.1, 1.0);
        float *table = b.random<float>(static_cast<size_t>(TEMPERATURES) * PRESSURES * QUADRATURE, 0.0, 2.0), *scattering = b.random<float>(QUADRATURE, 0.0, 0.1);
        float *depth = b.output<float>(n * QUADRATURE);
        return {{"flawed", launch(optical_depths, blocks(n, 128), 128, 0, pressure, temperature, amount, table, scattering, depth, n)},
            {"point_a_lane", launch(optical_depths_lanes, blocks(n, 16), QUADRATURE, 0, pressure, temperature, amount, table, scattering, depth, n)},
            {"four_points_a_lane", launch(optical_depths_vectors, blocks(n, 16), 128, 0, pressure, temperature, amount, (float4 *)table, (float4 *)scattering, (float4 *)depth, n)}};
    });

// --- what can be seen along rays over a terrain ---

constexpr int RAY = 1024;  // samples

__device__ __forceinline__ float slope(float height, int sample, float eye) { return (height - eye) * __frcp_rn(sample + 1.f); }

__global__ void __launch_bounds__(RAY) viewshed(const float *heights, const float *eyes, unsigned char *visible) {
    __shared__ float highest[RAY];
    int t = threadIdx.x;
    size_t at = static_cast<size_t>(blockIdx.x) * RAY + t;
    float mine = slope(heights[at], t, eyes[blockIdx.x]);
    highest[t] = mine;
    __syncthreads();
    for (int step = 1; step < RAY; step *= 2) {
        float other = t >= step ? highest[t - step] : mine;
        __syncthreads();
        highest[t] = fmaxf(highest[t], other);
        __syncthreads();
    }
    visible[at] = t == 0 || mine >= highest[t - 1];
}
// The largest of this lane and those before it.
__device__ __forceinline__ float running_max(float x) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        float other = __shfl_up_sync(~0u, x, step);
        if (threadIdx.x % 32 >= step) x = fmaxf(x, other);
    }
    return x;
}
__global__ void __launch_bounds__(RAY) viewshed_shuffles(const float *__restrict__ heights, const float *__restrict__ eyes, unsigned char *__restrict__ visible) {
    __shared__ float warps[32];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    size_t at = static_cast<size_t>(blockIdx.x) * RAY + t;
    float mine = slope(heights[at], t, eyes[blockIdx.x]), top = running_max(mine);
    if (lane == 31) warps[warp] = top;
    __syncthreads();
    float before = running_max(warps[lane]);
    before = __shfl_sync(~0u, before, max(warp - 1, 0));
    float near = __shfl_up_sync(~0u, top, 1);
    bool seen = (lane == 0 || mine >= near) && (warp == 0 || mine >= before);
    visible[at] = seen;
}
// A warp a ray, four samples a lane and turn.
__global__ void viewshed_warp(const float4 *__restrict__ heights, const float *__restrict__ eyes, uchar4 *__restrict__ visible, int rays) {
    int ray = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (ray >= rays) return;
    float eye = eyes[ray], reached = -INFINITY;
#pragma unroll 4
    for (int turn = 0; turn < RAY / 128; ++turn) {
        size_t at = static_cast<size_t>(ray) * (RAY / 4) + turn * 32 + lane;
        float4 h = heights[at];
        int sample = turn * 128 + 4 * lane;
        float a = slope(h.x, sample, eye), b = slope(h.y, sample + 1, eye), c = slope(h.z, sample + 2, eye), d = slope(h.w, sample + 3, eye);
        float all = running_max(fmaxf(fmaxf(a, b), fmaxf(c, d)));
        float before = __shfl_up_sync(~0u, all, 1);
        before = lane ? fmaxf(before, reached) : reached;
        float ab = fmaxf(before, a), abc = fmaxf(ab, b), abcd = fmaxf(abc, c);
        visible[at] = make_uchar4(a >= before, b >= ab, c >= abc, d >= abcd);
        reached = fmaxf(reached, __shfl_sync(~0u, all, 31));
    }
}

Study seen("viewshed_maxima_two_barriers_a_step", "HPC", 32768, "which of 1024 samples along each of 32768 rays over a terrain can be seen",
    "the running maximum of slopes takes ten steps over a block of 1024 threads with two barriers each",
    {{"shuffles", "shuffles within warps, one barrier", {"barriers"}}, {"warp_a_ray", "a warp a ray, four samples a lane, no barrier", {"barriers", "narrow_access"}}},
    [](Buffers &b, long n) -> Sides {
        float *heights = b.random<float>(n * RAY, 0.0, 300.0), *eyes = b.random<float>(n, 100.0, 500.0);
        auto *visible = b.output<unsigned char>(n * RAY);
        b.tolerance = 0.0;
        return {{"flawed", launch(viewshed, n, RAY, 0, heights, eyes, visible)}, {"shuffles", launch(viewshed_shuffles, n, RAY, 0, heights, eyes, visible)},
            {"warp_a_ray", launch(viewshed_warp, blocks(n, 8), 256, 0, (float4 *)heights, eyes, (uchar4 *)visible, n)}};
    });

// --- measured spectra against a library ---

constexpr int BINS = 8192, PIECE = 1024;  // of the table; spectra of the library a block

struct Library {
    const int *starts;
    const unsigned *peaks;  // bin, level in the upper half
    int spectra;
};

__device__ __forceinline__ void keep(float *to, float value) { *to = value; }
__device__ __forceinline__ void keep(__half *to, float value) { *to = __float2half(value); }
__device__ __forceinline__ float kept(float value) { return value; }
__device__ __forceinline__ float kept(__half value) { return __half2float(value); }

// A warp a spectrum; the query lies in a table of all bins.
template <typename Entry, int THREADS>
__global__ void __launch_bounds__(THREADS) spectra_scores(const float *queries, Library library, float *scores) {
    __shared__ Entry table[BINS];
    const float *query = queries + static_cast<size_t>(blockIdx.y) * BINS;
    for (int i = threadIdx.x; i < BINS; i += THREADS) keep(table + i, query[i]);
    __syncthreads();
    int lane = threadIdx.x % 32, end = min(library.spectra, static_cast<int>(blockIdx.x + 1) * PIECE);
    for (int s = blockIdx.x * PIECE + threadIdx.x / 32; s < end; s += THREADS / 32) {
        float sum = 0.f;
        for (int p = library.starts[s] + lane; p < library.starts[s + 1]; p += 32) {
            unsigned peak = library.peaks[p];
            sum += kept(table[peak & 65535]) * static_cast<float>(peak >> 16);
        }
        sum = warp_sum(sum);
        if (lane == 0) scores[static_cast<size_t>(blockIdx.y) * library.spectra + s] = sum;
    }
}

Study mass_spectra("spectra_scored_by_two_warps_a_table", "bioinformatics", 1 << 14, "scores of 128 measured spectra against 16384 of a library, 32 to 95 peaks each",
    "a table of 32 KB in shared memory serves 64 threads only: twelve warps a multiprocessor",
    {{"sixteen_warps", "512 threads share a table", {"low_occupancy"}}, {"half_table", "the table in half, which holds its whole numbers, for 64 threads", {"low_occupancy"}},
        {"both", "a table in half for 256 threads", {"low_occupancy"}}},
    [](Buffers &b, long n) -> Sides {
        std::mt19937 random(9);
        int queries = 128;
        std::vector<int> starts(n + 1);
        std::vector<unsigned> peaks;
        for (long s = 0; s < n; ++s) {
            int bin = 0, count = 32 + random() % 64;
            for (int p = 0; p < count; ++p) {
                bin += 1 + random() % (2 * BINS / 100);
                if (bin < BINS) peaks.push_back(bin | (1 + random() % 255) << 16);
            }
            starts[s + 1] = static_cast<int>(peaks.size());
        }
        std::vector<float> tables(static_cast<size_t>(queries) * BINS);
        for (float &level : tables) level = random() % 8 ? 0.f : static_cast<float>(random() % 256);
        Library library{b.copy(starts), b.copy(peaks), static_cast<int>(n)};
        float *measured = b.copy(tables), *scores = b.output<float>(queries * n);
        dim3 grid(blocks(n, PIECE), queries);
        return {{"flawed", launch(spectra_scores<float, 64>, grid, 64, 0, measured, library, scores)},
            {"sixteen_warps", launch(spectra_scores<float, 512>, grid, 512, 0, measured, library, scores)},
            {"half_table", launch(spectra_scores<__half, 64>, grid, 64, 0, measured, library, scores)},
            {"both", launch(spectra_scores<__half, 256>, grid, 256, 0, measured, library, scores)}};
    });

}  // namespace
