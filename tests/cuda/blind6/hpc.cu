// Pieces of simulations and of their linear algebra. Each kernel has one weakness and two or three ways out.
#include "../pairs/pair.cuh"

namespace {

// --- forces of hexahedral elements on their corners ---

struct Mesh {
    const int *corners;  // eight nodes an element: bit 0 of the corner is x, bit 1 y, bit 2 z
    const double *x, *y, *z, *pressure;
    double *fx, *fy, *fz;  // eight an element
    int elements;
};
struct Vector {
    double x, y, z;
};
__device__ __forceinline__ Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
__device__ __forceinline__ Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
__device__ __forceinline__ Vector operator*(double s, Vector a) { return {s * a.x, s * a.y, s * a.z}; }
__device__ __forceinline__ Vector cross(Vector a, Vector b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
__device__ __forceinline__ Vector corner_force(int corner, Vector own, Vector along_x, Vector along_y, Vector along_z, double pressure) {
    Vector a = along_x - own, b = along_y - own, c = along_z - own;
    double sign = (__popc(corner) & 1) ? -pressure / 12.0 : pressure / 12.0;
    return sign * (cross(a, b) + cross(b, c) + cross(c, a));
}

__global__ void __launch_bounds__(128) corner_forces(Mesh m) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= m.elements) return;
    Vector node[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) {
        int n = m.corners[e * 8 + c];
        node[c] = {m.x[n], m.y[n], m.z[n]};
    }
    double p = m.pressure[e];
#pragma unroll
    for (int c = 0; c < 8; ++c) {
        Vector f = corner_force(c, node[c], node[c ^ 1], node[c ^ 2], node[c ^ 4], p);
        m.fx[e * 8 + c] = f.x;
        m.fy[e * 8 + c] = f.y;
        m.fz[e * 8 + c] = f.z;
    }
}
// Eight lanes an element: neighbours come by shuffles, and everything lies side by side.
__global__ void __launch_bounds__(128) corner_forces_lanes(Mesh m) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, c = threadIdx.x % 8, n = m.corners[at];
    Vector own{m.x[n], m.y[n], m.z[n]};
    auto other = [&](int mask) { return Vector{__shfl_xor_sync(~0u, own.x, mask), __shfl_xor_sync(~0u, own.y, mask), __shfl_xor_sync(~0u, own.z, mask)}; };
    Vector f = corner_force(c, own, other(1), other(2), other(4), m.pressure[at / 8]);
    m.fx[at] = f.x, m.fy[at] = f.y, m.fz[at] = f.z;
}
__global__ void __launch_bounds__(128) corner_forces_staged(Mesh m) {
    __shared__ double stage[128 * 9];
    int e = blockIdx.x * 128 + threadIdx.x;
    Vector node[8], f[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) {
        int n = m.corners[e * 8 + c];
        node[c] = {m.x[n], m.y[n], m.z[n]};
    }
    double p = m.pressure[e];
#pragma unroll
    for (int c = 0; c < 8; ++c) f[c] = corner_force(c, node[c], node[c ^ 1], node[c ^ 2], node[c ^ 4], p);
    auto store = [&](double *to, auto component) {
        __syncthreads();
#pragma unroll
        for (int c = 0; c < 8; ++c) stage[threadIdx.x * 9 + c] = component(f[c]);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            int at = k * 128 + threadIdx.x;
            to[static_cast<size_t>(blockIdx.x) * 1024 + at] = stage[at / 8 * 9 + at % 8];
        }
    };
    store(m.fx, [](Vector v) { return v.x; });
    store(m.fy, [](Vector v) { return v.y; });
    store(m.fz, [](Vector v) { return v.z; });
}

Study hexahedra("corner_forces_stored_by_element", "hpc", 96, "pressure forces of 884736 hexahedra on their corners, FP64",
    "an element a thread stores its eight corners one by one: lanes are 64 bytes apart in three arrays",
    {{"lanes", "eight lanes an element, corners exchanged by shuffles", {"uncoalesced_access"}},
        {"staged", "stores turned in shared memory", {"uncoalesced_access"}}},
    [](Buffers &b, long side) -> Sides {
        int n = side, nodes = (n + 1) * (n + 1) * (n + 1), elements = n * n * n;
        std::vector<int> corners(elements * 8);
        for (int e = 0; e < elements; ++e)
            for (int c = 0; c < 8; ++c) corners[e * 8 + c] = ((e / (n * n) + (c >> 2)) * (n + 1) + e / n % n + (c >> 1 & 1)) * (n + 1) + e % n + (c & 1);
        Mesh m{b.copy(corners), b.random<double>(nodes), b.random<double>(nodes), b.random<double>(nodes), b.random<double>(elements, 0.5, 1.5)};
        m.fx = b.output<double>(elements * 8L), m.fy = b.output<double>(elements * 8L), m.fz = b.output<double>(elements * 8L), m.elements = elements;
        return {{"flawed", launch(corner_forces, elements / 128, 128, 0, m)}, {"lanes", launch(corner_forces_lanes, elements / 16, 128, 0, m)},
            {"staged", launch(corner_forces_staged, elements / 128, 128, 0, m)}};
    });

// --- potential of a periodic grid at atoms, by cubic splines ---

constexpr int GRID = 128;

__device__ __forceinline__ void splines(float w, float *t) {
    float v = 1.f - w;
    t[0] = v * v * v / 6.f, t[3] = w * w * w / 6.f;
    t[1] = (4.f - 6.f * w * w + 3.f * w * w * w) / 6.f, t[2] = (4.f - 6.f * v * v + 3.f * v * v * v) / 6.f;
}
__global__ void gather_potential(const float *grid, const float4 *atoms, float *out, int count) {
    int a = blockIdx.x * blockDim.x + threadIdx.x;
    if (a >= count) return;
    float4 p = atoms[a];
    int ix = static_cast<int>(p.x), iy = static_cast<int>(p.y), iz = static_cast<int>(p.z);
    float tx[4], ty[4], tz[4], sum = 0.f;
    splines(p.x - ix, tx), splines(p.y - iy, ty), splines(p.z - iz, tz);
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            for (int k = 0; k < 4; ++k)
                sum += tx[i] * ty[j] * tz[k] * grid[(((ix + i) & (GRID - 1)) * GRID + ((iy + j) & (GRID - 1))) * GRID + ((iz + k) & (GRID - 1))];
    out[a] = p.w * sum;
}
template <int LANES>  // 4: a lane takes one z of all planes; 16: one y and z of all x
__global__ void gather_potential_lanes(const float *__restrict__ grid, const float4 *__restrict__ atoms, float *__restrict__ out, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, a = at / LANES, k = at % 4;
    if (a >= count) return;
    float4 p = atoms[a];
    int ix = static_cast<int>(p.x), iy = static_cast<int>(p.y), iz = static_cast<int>(p.z);
    auto one = [](float w, int which) {
        float t[4];
        splines(w, t);
        return which == 0 ? t[0] : which == 1 ? t[1] : which == 2 ? t[2] : t[3];
    };
    float tx[4], ty[4], sum = 0.f;
    splines(p.x - ix, tx);
    const float *column = grid + ((iz + k) & (GRID - 1));
    if constexpr (LANES == 4) {
        splines(p.y - iy, ty);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) sum += tx[i] * ty[j] * column[(((ix + i) & (GRID - 1)) * GRID + ((iy + j) & (GRID - 1))) * GRID];
        sum *= one(p.z - iz, k);
    } else {
        int j = at / 4 % 4;
#pragma unroll
        for (int i = 0; i < 4; ++i) sum += tx[i] * column[(((ix + i) & (GRID - 1)) * GRID + ((iy + j) & (GRID - 1))) * GRID];
        sum *= one(p.z - iz, k) * one(p.y - iy, j);
    }
    for (int o = LANES / 2; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
    if (at % LANES == 0) out[a] = p.w * sum;
}

Study potentials("spline_gather_thread_per_atom", "hpc", 1 << 19, "potential at 524288 atoms from 64 points each of a grid of 128 x 128 x 128",
    "a thread walks the 64 points of its atom: each load of a warp goes to 32 places",
    {{"four", "four lanes an atom, side by side along z", {"uncoalesced_access"}},
        {"sixteen", "16 lanes an atom, side by side along y and z", {"uncoalesced_access", "memory_latency"}}},
    [](Buffers &b, long atoms) -> Sides {
        float *grid = b.random<float>(GRID * GRID * GRID), *p = b.random<float>(4 * atoms, 0, GRID - 0.01), *out = b.output<float>(atoms);
        return {{"flawed", launch(gather_potential, atoms / 128, 128, 0, grid, (float4 *)p, out, atoms)},
            {"four", launch(gather_potential_lanes<4>, atoms / 32, 128, 0, grid, (float4 *)p, out, atoms)},
            {"sixteen", launch(gather_potential_lanes<16>, atoms / 8, 128, 0, grid, (float4 *)p, out, atoms)}};
    });

// --- Cahn-Hilliard: the Laplacian of a chemical potential that holds a Laplacian itself ---

struct Field {
    const float *u;
    int n;
    float kappa;
    __device__ float operator()(int i, int j) const { return u[(i & (n - 1)) * n + (j & (n - 1))]; }
    __device__ float laplacian(int i, int j) const { return (*this)(i - 1, j) + (*this)(i + 1, j) + (*this)(i, j - 1) + (*this)(i, j + 1) - 4.f * (*this)(i, j); }
    __device__ float potential(int i, int j) const {
        float c = (*this)(i, j);
        return c * c * c - c - kappa * laplacian(i, j);
    }
};
__global__ void phase_step(Field f, float *out, float rate) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    float change = f.potential(i - 1, j) + f.potential(i + 1, j) + f.potential(i, j - 1) + f.potential(i, j + 1) - 4.f * f.potential(i, j);
    out[i * f.n + j] = f(i, j) + rate * change;
}
__global__ void __launch_bounds__(256) phase_step_potentials(Field f, float *out, float rate) {
    __shared__ float mu[10][35];
    int j0 = blockIdx.x * 32, i0 = blockIdx.y * 8, tx = threadIdx.x, ty = threadIdx.y;
    for (int at = ty * 32 + tx; at < 340; at += 256) mu[at / 34][at % 34] = f.potential(i0 + at / 34 - 1, j0 + at % 34 - 1);
    __syncthreads();
    float change = mu[ty][tx + 1] + mu[ty + 2][tx + 1] + mu[ty + 1][tx] + mu[ty + 1][tx + 2] - 4.f * mu[ty + 1][tx + 1];
    out[(i0 + ty) * f.n + j0 + tx] = f(i0 + ty, j0 + tx) + rate * change;
}
__global__ void __launch_bounds__(256) phase_step_tile(Field f, float *out, float rate) {
    __shared__ float u[12][37];
    int j0 = blockIdx.x * 32, i0 = blockIdx.y * 8, tx = threadIdx.x, ty = threadIdx.y;
    for (int at = ty * 32 + tx; at < 432; at += 256) u[at / 36][at % 36] = f(i0 + at / 36 - 2, j0 + at % 36 - 2);
    __syncthreads();
    auto mu = [&](int i, int j) {
        float c = u[i][j];
        return c * c * c - c - f.kappa * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1] - 4.f * c);
    };
    int i = ty + 2, j = tx + 2;
    out[(i0 + ty) * f.n + j0 + tx] = u[i][j] + rate * (mu(i - 1, j) + mu(i + 1, j) + mu(i, j - 1) + mu(i, j + 1) - 4.f * mu(i, j));
}

Study phases("chemical_potential_five_times", "hpc", 8192, "a step of Cahn-Hilliard on 8192 x 8192 points",
    "the potential of a point is worked out by all five that need it: 25 wrapped loads",
    {{"potentials", "potentials of a tile in shared memory", {"redundant_loads", "integer_arithmetic"}},
        {"tile", "the field's tile in shared memory, potentials worked out five times still", {"redundant_loads"}}},
    [](Buffers &b, long n) -> Sides {
        Field f{b.random<float>(n * n), static_cast<int>(n), 0.5f};
        float *out = b.output<float>(n * n);
        dim3 grid(n / 32, n / 8), block(32, 8);
        return {{"flawed", launch(phase_step, grid, block, 0, f, out, 0.01f)}, {"potentials", launch(phase_step_potentials, grid, block, 0, f, out, 0.01f)},
            {"tile", launch(phase_step_tile, grid, block, 0, f, out, 0.01f)}};
    });

// --- how many values each row of a product of sparse matrices will have ---

struct Sparse {
    const int *offsets, *columns;
};
constexpr int TABLE = 512;

__device__ __forceinline__ bool insert(int *table, int key) {
    unsigned slot = (key * 2654435769u) >> 23;
    while (true) {
        int old = atomicCAS(&table[slot], -1, key);
        if (old == -1) return true;
        if (old == key) return false;
        slot = (slot + 1) & (TABLE - 1);
    }
}
template <typename Insert>
__device__ __forceinline__ int count_row(Sparse a, Sparse b, int row, int lane, Insert fresh) {
    int mine = 0;
    for (int e = a.offsets[row]; e < a.offsets[row + 1]; ++e) {
        int k = a.columns[e];
        for (int f = b.offsets[k] + lane; f < b.offsets[k + 1]; f += 32) mine += fresh(b.columns[f]);
    }
    for (int o = 16; o; o /= 2) mine += __shfl_xor_sync(~0u, mine, o);
    return mine;
}
__global__ void product_counts(Sparse a, Sparse b, int *tables, int *counts, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    int *table = tables + static_cast<size_t>(row) * TABLE;
    for (int i = lane; i < TABLE; i += 32) table[i] = -1;
    __syncwarp();
    int count = count_row(a, b, row, lane, [&](int key) { return insert(table, key); });
    if (lane == 0) counts[row] = count;
}
__global__ void __launch_bounds__(128) product_counts_shared(Sparse a, Sparse b, int *counts, int rows) {
    __shared__ int tables[4][TABLE];
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    int *table = tables[threadIdx.x / 32];
    for (int i = lane; i < TABLE; i += 32) table[i] = -1;
    __syncwarp();
    int count = row < rows ? count_row(a, b, row, lane, [&](int key) { return insert(table, key); }) : 0;
    if (lane == 0 && row < rows) counts[row] = count;
}
__global__ void __launch_bounds__(128) product_counts_bits(Sparse a, Sparse b, int *counts, int rows) {
    __shared__ unsigned bits[4][2048];  // a bit for each of 65536 columns
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    unsigned *own = bits[threadIdx.x / 32];
    for (int i = lane; i < 512; i += 32) reinterpret_cast<uint4 *>(own)[i] = uint4{0, 0, 0, 0};
    __syncwarp();
    int count = row < rows ? count_row(a, b, row, lane, [&](int key) { unsigned bit = 1u << (key & 31); return !(atomicOr(&own[key / 32], bit) & bit); }) : 0;
    if (lane == 0 && row < rows) counts[row] = count;
}

Study products("product_rows_hashed_in_global", "hpc", 65536, "values in each row of the product of two sparse matrices of 65536 rows with 8 and 20 values a row",
    "each row's hash table lies in global memory: it is cleared and filled by atomics there",
    {{"shared", "the tables in shared memory", {"global_atomics"}}, {"bits", "a bit a column in shared memory", {"global_atomics", "branch_divergence"}}},
    [](Buffers &b, long rows) -> Sides {
        auto random = [&](int least, int most, unsigned seed) {
            std::vector<int> offsets{0}, columns;
            for (int r = 0; r < rows; ++r) {
                int count = least + hash(r + seed) % (most - least + 1);
                for (int k = 0; k < count; ++k) columns.push_back(hash(columns.size() * 3 + seed) % rows);
                offsets.push_back(columns.size());
            }
            return Sparse{b.copy(offsets), b.copy(columns)};
        };
        Sparse left = random(4, 12, 1), right = random(12, 28, 77);
        int *tables = b.allocate<int>(rows * TABLE), *counts = b.output<int>(rows);
        b.tolerance = 1e-9;
        return {{"flawed", launch(product_counts, rows / 4, 128, 0, left, right, tables, counts, rows)},
            {"shared", launch(product_counts_shared, rows / 4, 128, 0, left, right, counts, rows)},
            {"bits", launch(product_counts_bits, rows / 4, 128, 0, left, right, counts, rows)}};
    });

// --- cyclic reduction of tridiagonal systems of 512 unknowns ---

constexpr int UNKNOWNS = 512;
template <bool PADDED>
__device__ __forceinline__ int place(int i) { return PADDED ? i + i / 32 : i; }

template <bool PADDED>
__global__ void __launch_bounds__(256) cyclic_reduction(const float *lower, const float *middle, const float *upper, const float *right, float *out) {
    constexpr int N = UNKNOWNS + (PADDED ? UNKNOWNS / 32 : 0);
    __shared__ float a[N], b[N], c[N], d[N], x[N];
    const size_t base = static_cast<size_t>(blockIdx.x) * UNKNOWNS;
    for (int i = threadIdx.x; i < UNKNOWNS; i += 256) {
        int p = place<PADDED>(i);
        a[p] = i ? lower[base + i] : 0.f, b[p] = middle[base + i], c[p] = i < UNKNOWNS - 1 ? upper[base + i] : 0.f, d[p] = right[base + i];
    }
    int stride = 1, threads = UNKNOWNS / 2;
    for (int step = 0; step < 8; ++step) {
        __syncthreads();
        stride *= 2;
        if (static_cast<int>(threadIdx.x) < threads) {
            int at = stride * threadIdx.x + stride - 1, far = at + stride / 2;
            int i = place<PADDED>(at), l = place<PADDED>(at - stride / 2), r = place<PADDED>(far < UNKNOWNS ? far : UNKNOWNS - 1);
            float s = a[i] / b[l], t = c[i] / b[r];
            b[i] = b[i] - c[l] * s - a[r] * t;
            d[i] = d[i] - d[l] * s - d[r] * t;
            a[i] = -a[l] * s;
            c[i] = -c[r] * t;
        }
        threads /= 2;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        int i = place<PADDED>(stride - 1), j = place<PADDED>(2 * stride - 1);
        float det = b[j] * b[i] - c[i] * a[j];
        x[i] = (b[j] * d[i] - c[i] * d[j]) / det, x[j] = (d[j] * b[i] - d[i] * a[j]) / det;
    }
    threads = 2;
    for (int step = 0; step < 8; ++step) {
        __syncthreads();
        int half = stride / 2;
        if (static_cast<int>(threadIdx.x) < threads) {
            int at = stride * threadIdx.x + half - 1, i = place<PADDED>(at);
            float v = d[i] - c[i] * x[place<PADDED>(at + half)];
            if (at >= half) v -= a[i] * x[place<PADDED>(at - half)];
            x[i] = v / b[i];
        }
        stride /= 2, threads *= 2;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < UNKNOWNS; i += 256) out[base + i] = x[place<PADDED>(i)];
}
// All unknowns in every step: nine steps without strides, more arithmetic.
__global__ void __launch_bounds__(512) parallel_reduction(const float *lower, const float *middle, const float *upper, const float *right, float *out) {
    __shared__ float4 row[2][UNKNOWNS];
    const int i = threadIdx.x;
    const size_t at = static_cast<size_t>(blockIdx.x) * UNKNOWNS + i;
    float4 own{i ? lower[at] : 0.f, middle[at], i < UNKNOWNS - 1 ? upper[at] : 0.f, right[at]};
    int now = 0;
    for (int reach = 1; reach < UNKNOWNS; reach *= 2, now ^= 1) {
        row[now][i] = own;
        __syncthreads();
        float4 l = i >= reach ? row[now][i - reach] : float4{0.f, 1.f, 0.f, 0.f}, r = i + reach < UNKNOWNS ? row[now][i + reach] : float4{0.f, 1.f, 0.f, 0.f};
        float s = __fdividef(own.x, l.y), t = __fdividef(own.z, r.y);
        own = {-l.x * s, own.y - l.z * s - r.x * t, -r.z * t, own.w - l.w * s - r.w * t};
    }
    out[at] = own.w / own.y;
}

Study reductions("cyclic_reduction_doubling_strides", "hpc", 16384, "16384 tridiagonal systems of 512 unknowns by cyclic reduction in shared memory",
    "the stride between lanes doubles with every step: up to 32 words of one bank a request",
    {{"padded", "a word left out after every 32", {"shared_bank_conflicts"}}, {"parallel", "parallel reduction: all rows in every step", {"shared_bank_conflicts", "barriers"}}},
    [](Buffers &b, long systems) -> Sides {
        long n = systems * UNKNOWNS;
        float *l = b.random<float>(n), *m = b.random<float>(n, 3, 4), *u = b.random<float>(n), *r = b.random<float>(n), *out = b.output<float>(n);
        return {{"flawed", launch(cyclic_reduction<false>, systems, 256, 0, l, m, u, r, out)}, {"padded", launch(cyclic_reduction<true>, systems, 256, 0, l, m, u, r, out)},
            {"parallel", launch(parallel_reduction, systems, 512, 0, l, m, u, r, out)}};
    });

// --- Lorenz's 96 model with 16 variables, Runge-Kutta of fourth order ---

constexpr int VARIABLES = 16;
__device__ __forceinline__ void tendency(const float *y, float force, float *k) {
#pragma unroll
    for (int i = 0; i < VARIABLES; ++i) k[i] = (y[(i + 1) % VARIABLES] - y[(i + VARIABLES - 2) % VARIABLES]) * y[(i + VARIABLES - 1) % VARIABLES] - y[i] + force;
}
__device__ __forceinline__ void runge_kutta(const float *start, const float *forces, float *out, int members, int steps, float h) {
    int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= members) return;
    float y[VARIABLES], k1[VARIABLES], k2[VARIABLES], k3[VARIABLES], k4[VARIABLES], t[VARIABLES], force = forces[m];
    for (int i = 0; i < VARIABLES; ++i) y[i] = start[i * members + m];
    for (int s = 0; s < steps; ++s) {
        tendency(y, force, k1);
        for (int i = 0; i < VARIABLES; ++i) t[i] = y[i] + 0.5f * h * k1[i];
        tendency(t, force, k2);
        for (int i = 0; i < VARIABLES; ++i) t[i] = y[i] + 0.5f * h * k2[i];
        tendency(t, force, k3);
        for (int i = 0; i < VARIABLES; ++i) t[i] = y[i] + h * k3[i];
        tendency(t, force, k4);
        for (int i = 0; i < VARIABLES; ++i) y[i] += h / 6.f * (k1[i] + 2.f * k2[i] + 2.f * k3[i] + k4[i]);
    }
    for (int i = 0; i < VARIABLES; ++i) out[i * members + m] = y[i];
}
__global__ void __launch_bounds__(256, 8) lorenz_96_full(const float *start, const float *forces, float *out, int members, int steps, float h) { runge_kutta(start, forces, out, members, steps, h); }
__global__ void __launch_bounds__(128) lorenz_96_free(const float *start, const float *forces, float *out, int members, int steps, float h) { runge_kutta(start, forces, out, members, steps, h); }
// A lane a variable: neighbours by shuffles within 16 lanes.
__global__ void __launch_bounds__(256) lorenz_96_lanes(const float *start, const float *forces, float *out, int members, int steps, float h) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, m = at / VARIABLES, i = at % VARIABLES;
    float y = start[i * members + m], force = forces[m];
    auto slope = [&](float v) {
        float next = __shfl_sync(~0u, v, i + 1, 16), before = __shfl_sync(~0u, v, i + 15, 16), far = __shfl_sync(~0u, v, i + 14, 16);
        return (next - far) * before - v + force;
    };
    for (int s = 0; s < steps; ++s) {
        float k1 = slope(y), k2 = slope(y + 0.5f * h * k1), k3 = slope(y + 0.5f * h * k2), k4 = slope(y + h * k3);
        y += h / 6.f * (k1 + 2.f * k2 + 2.f * k3 + k4);
    }
    out[i * members + m] = y;
}

Study lorenz("lorenz_96_stages_spilled", "hpc", 1 << 18, "32 steps of Runge-Kutta for 262144 members of Lorenz's 96 model with 16 variables",
    "eight blocks a multiprocessor are asked for: 32 registers a thread, and the stages spill",
    {{"free", "as many registers as it takes", {"local_memory"}}, {"lanes", "a lane a variable, neighbours by shuffles", {"local_memory"}}},
    [](Buffers &b, long members) -> Sides {
        float *start = b.random<float>(members * VARIABLES, -2, 2), *forces = b.random<float>(members, 1, 3), *out = b.output<float>(members * VARIABLES);
        b.tolerance = 1e-3;
        return {{"flawed", launch(lorenz_96_full, members / 256, 256, 0, start, forces, out, members, 32, 0.01f)},
            {"free", launch(lorenz_96_free, members / 128, 128, 0, start, forces, out, members, 32, 0.01f)},
            {"lanes", launch(lorenz_96_lanes, members * VARIABLES / 256, 256, 0, start, forces, out, members, 32, 0.01f)}};
    });

// --- a field of four axes rolled around ---

struct Tensor4 {
    float *data;
    long size[4], stride[4];
    __device__ float &operator()(long a, long b, long c, long d) const { return data[a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3]]; }
};
__global__ void roll(Tensor4 in, Tensor4 out, long sa, long sb, long sc, long sd) {
    long count = out.size[0] * out.size[1] * out.size[2] * out.size[3];
    for (long at = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x; at < count; at += static_cast<long>(gridDim.x) * blockDim.x) {
        long rest = at, d = rest % out.size[3];
        rest /= out.size[3];
        long c = rest % out.size[2];
        rest /= out.size[2];
        long b = rest % out.size[1], a = rest / out.size[1];
        out(a, b, c, d) = in((a + sa) % in.size[0], (b + sb) % in.size[1], (c + sc) % in.size[2], (d + sd) % in.size[3]);
    }
}
// A row of the last axis a warp: coordinates once a row, wrapping by a comparison.
__global__ void roll_rows(Tensor4 in, Tensor4 out, int sa, int sb, int sc, int sd) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32, wide = out.size[3], c = row % static_cast<int>(out.size[2]);
    int rest = row / static_cast<int>(out.size[2]), b = rest % static_cast<int>(out.size[1]), a = rest / static_cast<int>(out.size[1]);
    auto wrapped = [](int i, int n) { return i < n ? i : i - n; };
    const float *from = &in(wrapped(a + sa, in.size[0]), wrapped(b + sb, in.size[1]), wrapped(c + sc, in.size[2]), 0);
    float *to = &out(a, b, c, 0);
    for (int d = lane; d < wide; d += 32) to[d] = from[wrapped(d + sd, wide)];
}
__global__ void roll_32_bits(const float *__restrict__ in, float *__restrict__ out, unsigned na, unsigned nb, unsigned nc, unsigned nd, unsigned sa, unsigned sb, unsigned sc, unsigned sd) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= na * nb * nc * nd) return;
    unsigned d = at % nd, c = at / nd % nc, rest = at / nd / nc, b = rest % nb, a = rest / nb;
    auto wrapped = [](unsigned i, unsigned n) { return i < n ? i : i - n; };
    out[at] = in[((wrapped(a + sa, na) * nb + wrapped(b + sb, nb)) * nc + wrapped(c + sc, nc)) * nd + wrapped(d + sd, nd)];
}

Study rolls("roll_four_axes_long_remainders", "hpc", 24, "24 x 72 x 96 x 200 floats rolled around along four axes",
    "a general tensor with 64-bit sizes: three quotients and seven remainders of 64 bits an element",
    {{"rows", "a warp a row of the last axis: coordinates once a row", {"integer_arithmetic"}},
        {"short", "32-bit indices, wrapping by a comparison", {"integer_arithmetic"}}},
    [](Buffers &b, long n) -> Sides {
        long count = n * 72 * 96 * 200;
        Tensor4 in{b.random<float>(count), {n, 72, 96, 200}, {72 * 96 * 200, 96 * 200, 200, 1}}, out = in;
        out.data = b.output<float>(count);
        b.tolerance = 1e-12;
        return {{"flawed", launch(roll, 16 * multiprocessors(), 256, 0, in, out, 5, 7, 13, 33)},
            {"rows", launch(roll_rows, n * 72 * 96 / 8, 256, 0, in, out, 5, 7, 13, 33)},
            {"short", launch(roll_32_bits, blocks(count, 256), 256, 0, in.data, out.data, n, 72, 96, 200, 5, 7, 13, 33)}};
    });

// --- sound: particles move and are reflected ---

__global__ void move(const float4 *__restrict__ velocity, float4 *__restrict__ place, float4 *__restrict__ after, int quads, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    float4 v = velocity[i], x = place[i];
    auto one = [dt](float &x, float &v) {
        x += dt * v;
        if (fabsf(x) > 1.f) x = copysignf(2.f, x) - x, v = -v;
    };
    one(x.x, v.x), one(x.y, v.y), one(x.z, v.z), one(x.w, v.w);
    place[i] = x, after[i] = v;
}

Study moves("sound_reflected_particles", "hpc", 1 << 26, "67108864 coordinates move and are reflected at walls", "", {},
    [](Buffers &b, long n) -> Sides {
        float *v = b.random<float>(n), *x = b.changed(b.random<float>(n), n), *after = b.output<float>(n);
        return {{"sound", launch(move, n / 1024, 256, 0, (float4 *)v, (float4 *)x, (float4 *)after, n / 4, 0.1f)}};
    });

}  // namespace
